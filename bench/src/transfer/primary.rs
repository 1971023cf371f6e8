//! A primary of the large zone: sends messages that it put together before, under a serial that
//! grows.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wire::{Flags, Header, Message, NameBuf, Opcode, Rtype};

use super::{serial_in, sockets};
use crate::queries;
use crate::rules::{self, ZONE};

/// Octets of a message at most: room for a length of two octets.
const MESSAGE_OCTETS_MAX: usize = 60_000;
/// Octets that are sent at once, about.
const PIECE_OCTETS: usize = 256 * 1024;
/// How long threads wait before they look whether they are to end.
const POLL: Duration = Duration::from_millis(100);
/// How long a secondary may take nothing.
const WRITE_MAX: Duration = Duration::from_secs(30);
/// Octets of a query at most.
const QUERY_OCTETS_MAX: usize = 4096;
/// Where the zone's name is in every message: behind the header.
const ZONE_AT: [u8; 2] = [0xc0, Header::LEN as u8];
/// The data of the SOA before its serial: `ns` and `hostmaster` in the zone.
const SOA_NAMES: &[u8] = b"\x02ns\xc0\x0c\x0ahostmaster\xc0\x0c";
/// Seconds that all records of it may be kept.
const TTL_S: u32 = 3600;

/// A server of the zone [`ZONE`] for secondaries. Ends when it is dropped.
pub struct Primary {
    address: SocketAddr,
    served: Arc<Served>,
    threads: Vec<JoinHandle<()>>,
}

/// What is served.
struct Served {
    zone: NameBuf,
    /// Messages of a transfer, without IDs' meaning; the first and the last begin with the SOA.
    messages: Vec<Vec<u8>>,
    records: u64,
    serial: AtomicU32,
    is_over: AtomicBool,
}

impl Primary {
    /// Begins to serve the zone with the names of these numbers, on a free port of loopback.
    pub fn start(numbers: &[usize]) -> Result<Self, String> {
        let served = Arc::new(Served::new(numbers)?);
        let failed = |error: io::Error| format!("primary: {error}");
        let (datagrams, listener) = sockets::bind().map_err(failed)?;
        datagrams.set_read_timeout(Some(POLL)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let over_udp = Arc::clone(&served);
        let over_tcp = Arc::clone(&served);
        let threads = vec![
            thread::spawn(move || over_udp.answer_datagrams(&datagrams)),
            thread::spawn(move || over_tcp.accept(&listener)),
        ];
        Ok(Self { address, served, threads })
    }

    /// Returns where it is.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the records of a transfer, the closing SOA among them.
    pub fn records(&self) -> u64 {
        self.served.records
    }

    /// Makes a new version; returns its serial.
    pub fn next_version(&self) -> u32 {
        self.served.serial.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells `secondary` that there is a new version (RFC 1996); nobody waits for the reply.
    pub fn notify(&self, secondary: SocketAddr) -> Result<(), String> {
        let flags = Flags::AA.with_opcode(Opcode::NOTIFY);
        let id = self.served.serial.load(Ordering::Relaxed) as u16;
        let mut message = Header { id, flags, questions: 1, ..Header::default() }.to_bytes().to_vec();
        message.extend(self.served.question(Rtype::SOA));
        let send = || UdpSocket::bind((self.address.ip(), 0))?.send_to(&message, secondary);
        send().map(drop).map_err(|error| format!("notification: {error}"))
    }

    /// Returns a transfer as a connection carries it.
    #[cfg(test)]
    pub(super) fn transfer(&self, id: u16, qtype: Rtype) -> Vec<u8> {
        let mut all = Vec::new();
        let sent = self.served.send(id, qtype, |piece| {
            all.extend_from_slice(piece);
            Ok(())
        });
        sent.expect("memory takes all");
        all
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        self.served.is_over.store(true, Ordering::Relaxed);
        // Whoever accepts is woken by one more.
        drop(TcpStream::connect(self.address));
        for thread in self.threads.drain(..) {
            // It panicked, or it is over: both are told elsewhere.
            let _ = thread.join();
        }
    }
}

impl Served {
    fn new(numbers: &[usize]) -> Result<Self, String> {
        let zone = queries::parse_name(ZONE)?;
        let mut served = Self {
            zone,
            messages: Vec::new(),
            records: 0,
            serial: AtomicU32::new(1),
            is_over: AtomicBool::new(false),
        };
        let server = [b"\x02ns".as_slice(), &ZONE_AT].concat();
        let soa = [SOA_NAMES, &1_u32.to_be_bytes(), &7200_u32.to_be_bytes(), &600_u32.to_be_bytes()].concat();
        let soa = [soa.as_slice(), &86_400_u32.to_be_bytes(), &300_u32.to_be_bytes()].concat();
        let mut message = served.empty();
        served.put(&mut message, &ZONE_AT, Rtype::SOA, &soa);
        served.put(&mut message, &ZONE_AT, Rtype::NS, &server);
        served.put(&mut message, &server, Rtype::A, &[192, 0, 2, 1]);
        for &number in numbers {
            let (name, address) = rules::zone_name(number);
            let label = name.split('.').next().unwrap_or("").as_bytes();
            let owner = [&[label.len() as u8], label, &ZONE_AT].concat();
            served.put(&mut message, &owner, Rtype::A, &address.octets());
        }
        served.flush(&mut message);
        served.put(&mut message, &ZONE_AT, Rtype::SOA, &soa);
        served.flush(&mut message);
        Ok(served)
    }

    fn question(&self, qtype: Rtype) -> Vec<u8> {
        [self.zone.as_name().as_bytes(), &qtype.0.to_be_bytes(), &[0, 1]].concat()
    }

    /// Returns a message without records.
    fn empty(&self) -> Vec<u8> {
        let flags = Flags::QR.with(Flags::AA);
        let header = Header { flags, questions: 1, ..Header::default() };
        [header.to_bytes().as_slice(), &self.question(Rtype::AXFR)].concat()
    }

    /// Adds a record to a message, or to the next.
    fn put(&mut self, message: &mut Vec<u8>, owner: &[u8], rtype: Rtype, data: &[u8]) {
        if message.len() + owner.len() + data.len() > MESSAGE_OCTETS_MAX {
            self.flush(message);
        }
        message.extend(owner);
        message.extend(rtype.0.to_be_bytes());
        message.extend([0, 1]);
        message.extend(TTL_S.to_be_bytes());
        message.extend((data.len() as u16).to_be_bytes());
        message.extend(data);
        // The answer count is the fourth number of the header.
        if let Some(count) = message.get_mut(6..).and_then(|count| count.first_chunk_mut()) {
            *count = (u16::from_be_bytes(*count) + 1).to_be_bytes();
        }
        self.records += 1;
    }

    fn flush(&mut self, message: &mut Vec<u8>) {
        let empty = self.empty();
        self.messages.push(std::mem::replace(message, empty));
    }

    /// Writes message `at` behind its length, as a reply of this ID to a question of this type.
    fn write(&self, at: usize, (id, qtype, serial): (u16, Rtype, u32), out: &mut Vec<u8>) {
        let Some(message) = self.messages.get(at) else { return };
        out.extend((message.len() as u16).to_be_bytes());
        let start = out.len();
        out.extend(message);
        let mut patch = |at: usize, octets: &[u8]| {
            if let Some(place) = out.get_mut(start + at..start + at + octets.len()) {
                place.copy_from_slice(octets);
            }
        };
        patch(0, &id.to_be_bytes());
        let qtype_at = Header::LEN + self.zone.as_name().len();
        patch(qtype_at, &qtype.0.to_be_bytes());
        if at == 0 || at + 1 == self.messages.len() {
            // Behind the question: owner, type, class, TTL, length, names.
            let soa_at = qtype_at + 4;
            patch(soa_at + 2 + 2 + 2 + 4 + 2 + SOA_NAMES.len(), &serial.to_be_bytes());
        }
    }

    /// Makes the messages of a transfer, piece by piece; all are of one version.
    fn send(&self, id: u16, qtype: Rtype, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let serial = self.serial.load(Ordering::Relaxed);
        let mut piece = Vec::with_capacity(PIECE_OCTETS + MESSAGE_OCTETS_MAX);
        for at in 0..self.messages.len() {
            self.write(at, (id, qtype, serial), &mut piece);
            if piece.len() >= PIECE_OCTETS {
                take(&piece)?;
                piece.clear();
            }
        }
        take(&piece)
    }

    /// Returns the ID and the type of a question about the zone, and the serial that whoever asks
    /// has.
    fn asked(&self, octets: &[u8]) -> Option<(u16, Rtype, Option<u32>)> {
        let message = Message::parse(octets).ok().filter(|message| !message.header.flags.has(Flags::QR))?;
        let question = message.question.filter(|question| question.qname == self.zone.as_name())?;
        Some((message.header.id, question.qtype, serial_in(&message)))
    }

    /// Returns the SOA alone, behind its length.
    fn soa(&self, id: u16, qtype: Rtype) -> Vec<u8> {
        let mut out = Vec::new();
        let last = self.messages.len().saturating_sub(1);
        self.write(last, (id, qtype, self.serial.load(Ordering::Relaxed)), &mut out);
        out
    }

    fn answer_datagrams(&self, socket: &UdpSocket) {
        let mut room = [0; QUERY_OCTETS_MAX];
        while !self.is_over.load(Ordering::Relaxed) {
            // Nothing came within the time, or an earlier reply found nobody.
            let Ok((len, from)) = socket.recv_from(&mut room) else { continue };
            let asked = room.get(..len).and_then(|octets| self.asked(octets));
            let Some((id, qtype @ (Rtype::SOA | Rtype::IXFR), _)) = asked else { continue };
            // RFC 1995 §2: the SOA alone tells who asked for steps to come over TCP.
            let reply = self.soa(id, qtype);
            let _ = socket.send_to(reply.get(2..).unwrap_or(&[]), from);
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let served = Arc::clone(self);
        sockets::accept(
            listener,
            || self.is_over.load(Ordering::Relaxed),
            move |stream| served.converse(stream),
        );
    }

    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(POLL))?;
        stream.set_write_timeout(Some(WRITE_MAX))?;
        stream.set_nodelay(true)?;
        let mut heard = Vec::new();
        let mut room = [0; QUERY_OCTETS_MAX];
        while !self.is_over.load(Ordering::Relaxed) {
            match stream.read(&mut room) {
                Ok(0) => return Ok(()),
                Ok(read) => heard.extend_from_slice(room.get(..read).unwrap_or(&[])),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    continue;
                }
                Err(error) => return Err(error),
            }
            while let Some((length, rest)) = heard.split_first_chunk::<2>()
                && let Some(query) = rest.get(..usize::from(u16::from_be_bytes(*length)))
            {
                let Some((id, qtype, has)) = self.asked(query) else { return Ok(()) };
                let taken = 2 + query.len();
                heard.drain(..taken);
                let is_current = has == Some(self.serial.load(Ordering::Relaxed));
                match qtype {
                    // RFC 1995 §4: a whole zone is an answer, too.
                    Rtype::AXFR => self.send(id, qtype, |piece| stream.write_all(piece))?,
                    Rtype::IXFR if !is_current => self.send(id, qtype, |piece| stream.write_all(piece))?,
                    Rtype::SOA | Rtype::IXFR => stream.write_all(&self.soa(id, qtype))?,
                    _ => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;

    #[test]
    fn every_version_has_its_serial() {
        let primary = Primary::start(&[7]).expect("loopback has ports");
        assert_eq!(probe::serial_now(primary.address(), ZONE), Some(1));
        assert_eq!(primary.next_version(), 2);
        assert_eq!(probe::serial_now(primary.address(), ZONE), Some(2));
        assert_eq!(probe::serial_now(primary.address(), "other.example"), None);
    }

    #[test]
    fn messages_can_be_read_and_have_the_records_of_the_zone() {
        let numbers: Vec<usize> = (0..10_000).collect();
        let served = Served::new(&numbers).expect("a zone");
        let mut found = Vec::new();
        for message in &served.messages {
            let message = Message::parse(message).expect("well-formed");
            for record in message.records() {
                let owner = record.owner.expand().expect("a name").to_string();
                found.push((owner, record.rtype, record.rdata.to_vec()));
            }
        }
        assert_eq!(found.len() as u64, served.records);
        assert_eq!(found.len(), 10_004);
        assert_eq!((found[0].1, found[10_003].1), (Rtype::SOA, Rtype::SOA));
        let (name, address) = rules::zone_name(9_999);
        let (owner, rtype, data) = &found[10_002];
        assert_eq!(
            (owner.trim_end_matches('.'), *rtype, data.as_slice()),
            (&*name, Rtype::A, &address.octets()[..])
        );
    }

    #[test]
    fn who_has_the_version_is_told_so_and_nothing_more() {
        let primary = Primary::start(&[7]).expect("loopback has ports");
        let mut ixfr =
            Header { id: 9, questions: 1, authorities: 1, ..Header::default() }.to_bytes().to_vec();
        ixfr.extend(primary.served.question(Rtype::IXFR));
        let soa = primary.served.soa(9, Rtype::IXFR);
        // The record of the reply, behind length, header and question.
        ixfr.extend(&soa[2 + ixfr.len()..]);
        for (newer, records) in [(false, 1), (true, 5)] {
            if newer {
                primary.next_version();
            }
            let mut stream = TcpStream::connect(primary.address()).expect("it listens");
            let framed = [&(ixfr.len() as u16).to_be_bytes(), ixfr.as_slice()].concat();
            stream.write_all(&framed).expect("it reads");
            let mut seen = 0;
            while seen < records {
                let mut length = [0; 2];
                stream.read_exact(&mut length).expect("a message");
                let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut message).expect("a message");
                let header = Header::parse(&message).expect("a header");
                assert_eq!(header.id, 9);
                seen += header.answers;
            }
            assert_eq!(seen, records, "newer: {newer}");
        }
    }
}
