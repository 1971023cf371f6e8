//! A client that has a zone transferred to it: counts messages and records, looks into the first
//! and the last message.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use wire::{Header, Message, Rcode, Record, Rtype, Section};

use super::serial_of;
use crate::queries::{Ask, Extras, Packets};

/// How long the next octets may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Octets that are read at once, at most.
const ROOM_OCTETS: usize = 1 << 20;
/// The ID of the question.
const ID: u16 = 0x4741;

/// A transfer that was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Records, the closing SOA among them.
    pub records: u64,
    /// Messages.
    pub messages: u64,
    /// Octets, lengths of messages among them.
    pub octets: u64,
    /// The serial of both SOA records.
    pub serial: u32,
    /// From before the connection is opened to after the last message.
    pub took: Duration,
}

/// What has come so far.
struct Count {
    /// Records that a transfer has.
    expected: u64,
    transferred: Transferred,
    first_serial: Option<u32>,
}

/// Has `zone` transferred by `server`. Its records, the closing SOA among them, are `records`:
/// where the transfer ends is then plain without a look at each of them.
pub fn receive(server: SocketAddr, zone: &str, records: u64) -> Result<Transferred, String> {
    let packets = Packets::new(&[Ask::new(zone, Rtype::AXFR)], Extras::default())?;
    let mut query = Vec::new();
    packets.frame(0, ID, &mut query);
    let mut room = vec![0; ROOM_OCTETS];
    let broken = |error: std::io::Error| format!("transfer: {error}");

    let begun = Instant::now();
    let mut stream = TcpStream::connect(server).map_err(broken)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    stream.write_all(&query).map_err(broken)?;
    let mut count = Count::new(records);
    let mut filled = 0;
    while !count.is_done() {
        let read = stream.read(room.get_mut(filled..).unwrap_or(&mut [])).map_err(broken)?;
        if read == 0 {
            return Err(format!("transfer: the connection ends after {} records", count.transferred.records));
        }
        filled += read;
        let taken = count.take(room.get(..filled).unwrap_or(&[]))?;
        room.copy_within(taken..filled, 0);
        filled -= taken;
    }
    if filled > 0 {
        return Err(format!("transfer: {filled} octets behind the closing SOA"));
    }
    Ok(Transferred { took: begun.elapsed(), ..count.transferred })
}

impl Count {
    fn new(expected: u64) -> Self {
        let transferred = Transferred { records: 0, messages: 0, octets: 0, serial: 0, took: Duration::ZERO };
        Self { expected, transferred, first_serial: None }
    }

    const fn is_done(&self) -> bool {
        self.transferred.records >= self.expected
    }

    /// Takes the whole messages at the front of `octets`; returns how many octets these are.
    fn take(&mut self, octets: &[u8]) -> Result<usize, String> {
        let mut rest = octets;
        while !self.is_done()
            && let Some((length, behind)) = rest.split_first_chunk::<2>()
            && let Some((message, behind)) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))
        {
            self.message(message)?;
            rest = behind;
        }
        let taken = octets.len() - rest.len();
        self.transferred.octets += taken as u64;
        Ok(taken)
    }

    fn message(&mut self, octets: &[u8]) -> Result<(), String> {
        let at = self.transferred.messages;
        let wrong = |what: &str| format!("transfer: message {at}: {what}");
        let header = Header::parse(octets).ok_or_else(|| wrong("no header"))?;
        if header.id != ID || header.flags.rcode() != Rcode::NOERROR {
            return Err(wrong(&format!("ID {:#06x}, rcode {}", header.id, header.flags.rcode().0)));
        }
        self.transferred.messages += 1;
        self.transferred.records += u64::from(header.answers);
        if at == 0 {
            let serial = answers(octets)?.first().and_then(soa).ok_or_else(|| wrong("no SOA comes first"))?;
            self.first_serial = Some(serial);
            self.transferred.serial = serial;
        }
        if self.is_done() {
            if self.transferred.records > self.expected {
                let (records, expected) = (self.transferred.records, self.expected);
                return Err(wrong(&format!("{records} records instead of {expected}")));
            }
            if answers(octets)?.last().and_then(soa) != self.first_serial {
                return Err(wrong("the last record is not the SOA that was the first"));
            }
        }
        Ok(())
    }
}

fn answers(octets: &[u8]) -> Result<Vec<Record<'_>>, String> {
    let message = Message::parse(octets).map_err(|error| format!("transfer: {error:?}"))?;
    Ok(message.records().filter(|record| record.section == Section::Answer).collect())
}

fn soa(record: &Record<'_>) -> Option<u32> {
    (record.rtype == Rtype::SOA).then(|| serial_of(record.rdata)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::ZONE;
    use crate::transfer::primary::Primary;

    /// Takes a transfer of our own primary, in pieces of `piece` octets, after `change` was made to
    /// it.
    fn taken(expected: u64, piece: usize, change: impl Fn(&mut Vec<u8>)) -> Result<Transferred, String> {
        let primary = Primary::start(&(0..5_000).collect::<Vec<_>>()).expect("loopback has ports");
        let mut octets = primary.transfer(ID, Rtype::AXFR);
        change(&mut octets);
        let mut count = Count::new(expected);
        let mut room = Vec::new();
        for piece in octets.chunks(piece) {
            room.extend_from_slice(piece);
            let taken = count.take(&room)?;
            room.drain(..taken);
        }
        if !count.is_done() || !room.is_empty() {
            return Err(format!("{} records, {} octets left", count.transferred.records, room.len()));
        }
        Ok(count.transferred)
    }

    #[test]
    fn a_transfer_is_counted_however_it_is_cut() {
        let whole = taken(5_004, 1 << 20, |_| {}).expect("a right transfer");
        assert_eq!((whole.records, whole.serial), (5_004, 1));
        assert!(whole.messages > 2);
        for piece in [1, 1_000, 65_537] {
            assert_eq!(taken(5_004, piece, |_| {}), Ok(whole), "{piece}");
        }
    }

    #[test]
    fn what_is_not_the_whole_zone_is_no_transfer() {
        let count = |expected: u64| taken(expected, 1 << 20, |_| {}).unwrap_err();
        assert!(count(5_002).contains("5003 records instead of 5002"));
        assert!(count(5_003).contains("is not the SOA"));
        assert!(count(5_005).contains("5004 records, 0 octets left"));
        let other_serial = |octets: &mut Vec<u8>| {
            let at = octets.len() - 20;
            octets[at + 3] ^= 1;
        };
        assert!(taken(5_004, 1 << 20, other_serial).unwrap_err().contains("is not the SOA"));
        let refused = |octets: &mut Vec<u8>| octets[5] |= 5;
        assert!(taken(5_004, 1 << 20, refused).unwrap_err().contains("rcode 5"));
    }

    #[test]
    fn a_zone_comes_over_a_connection() {
        let primary = Primary::start(&(0..20_000).collect::<Vec<_>>()).expect("loopback has ports");
        primary.next_version();
        let transferred = receive(primary.address(), ZONE, 20_004).expect("a right transfer");
        assert_eq!((transferred.records, transferred.serial), (20_004, 2));
        assert!(receive(primary.address(), "other.example", 4).is_err());
    }
}
