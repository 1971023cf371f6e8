//! Zone transfers as they come: where one ends, and what is shown of it (RFC 5936, RFC 1995).

use wire::serial::is_newer;
use wire::{Class, Message, NameBuf, Rcode, Rtype, Section};

/// What a transfer turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every record of the zone.
    Whole,
    /// Differences between versions.
    Differences,
    /// Nothing is newer than the serial that was asked with.
    UpToDate,
}

impl Kind {
    /// Returns the word for it in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Differences => "differences",
            Self::UpToDate => "up-to-date",
        }
    }
}

/// Why a transfer is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server refuses it.
    Refused(Rcode),
    /// It sent what is no transfer.
    Disordered(&'static str),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(rcode) => write!(f, "the server answers {rcode}"),
            Self::Disordered(why) => f.write_str(why),
        }
    }
}

/// Where in a transfer we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first SOA.
    Begin,
    /// Behind it: what comes next says what kind of transfer it is.
    Second,
    Whole,
    /// Differences: records that go, and that come.
    Removed,
    Added,
    Done(Kind),
}

/// A transfer as it comes, message by message.
pub struct Transfer {
    is_incremental: bool,
    /// The serial that differences were asked from.
    have: u32,
    state: State,
    apex: Option<NameBuf>,
    /// The serial of the version that it leads to.
    pub serial: u32,
    /// How many records came.
    pub records: u64,
}

impl Transfer {
    /// Begins one that was asked for with this type, and with this serial if it is IXFR.
    pub const fn new(rtype: Rtype, have: u32) -> Self {
        Self {
            is_incremental: rtype.0 == Rtype::IXFR.0,
            have,
            state: State::Begin,
            apex: None,
            serial: 0,
            records: 0,
        }
    }

    /// Takes the next message; returns what the transfer was when it has ended.
    ///
    /// # Errors
    ///
    /// Why the transfer is none; no further message helps.
    pub fn take(&mut self, message: &Message<'_>) -> Result<Option<Kind>, Fault> {
        if message.rcode() != Rcode::NOERROR {
            return Err(Fault::Refused(message.rcode()));
        }
        let mut count = 0;
        for record in message.records().filter(|record| record.section == Section::Answer) {
            if let State::Done(_) = self.state {
                return Err(Fault::Disordered("there are records behind the last SOA"));
            }
            count += 1;
            let serial = serial_of(&record).filter(|_| record.class != Class::ANY);
            self.state = self.next(serial, || record.owner.expand().ok())?;
        }
        self.records += count;
        if count == 0 {
            return Err(Fault::Disordered("a message has no records"));
        }
        // RFC 1995 §2 and §4: one SOA alone says that there is nothing newer, or, over UDP, that it
        // does not fit.
        if self.state == State::Second && self.is_incremental && !is_newer(self.serial, self.have) {
            self.state = State::Done(Kind::UpToDate);
        }
        match self.state {
            State::Done(kind) => Ok(Some(kind)),
            _ => Ok(None),
        }
    }

    /// Returns where the transfer is behind a record; `soa` is the serial if it is a SOA.
    fn next(&mut self, soa: Option<u32>, owner: impl Fn() -> Option<NameBuf>) -> Result<State, Fault> {
        Ok(match (self.state, soa) {
            (State::Begin, Some(serial)) => {
                self.serial = serial;
                self.apex = owner();
                State::Second
            }
            (State::Begin, None) => return Err(Fault::Disordered("it does not begin with a SOA")),
            // A zone that has nothing but its SOA, or differences that begin with the old one.
            (State::Second, Some(serial)) if self.is_incremental && serial != self.serial => State::Removed,
            (State::Second | State::Whole, Some(_)) if owner() == self.apex => State::Done(Kind::Whole),
            (State::Second | State::Whole, _) => State::Whole,
            (State::Removed, Some(_)) => State::Added,
            (State::Added, Some(serial)) if serial == self.serial => State::Done(Kind::Differences),
            (State::Added, Some(_)) => State::Removed,
            (state @ (State::Removed | State::Added | State::Done(_)), _) => state,
        })
    }
}

/// Returns the serial of a SOA.
fn serial_of(record: &wire::Record<'_>) -> Option<u32> {
    if record.rtype != Rtype::SOA {
        return None;
    }
    // Five numbers end it, of which the serial is the first.
    let at = record.rdata.len().checked_sub(20)?;
    record.rdata.get(at..)?.first_chunk().map(|serial| u32::from_be_bytes(*serial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Flags, Name, Question, Ttl, Writer};

    const APEX: &[u8] = b"\x07example\x03org\0";

    /// Writes a message with SOAs of these serials, and A records where there is no number.
    fn message(records: &[Option<u32>]) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let mut writer = Writer::new(&mut bytes, 4096, 7, Flags::QR);
        let (apex, _) = Name::parse(APEX).unwrap();
        writer.question(&Question { qname: apex, qtype: Rtype::AXFR, qclass: Class::IN }).unwrap();
        for record in records {
            let (rtype, data) = match record {
                Some(serial) => (Rtype::SOA, [&[0, 0][..], &serial.to_be_bytes(), &[0; 16]].concat()),
                None => (Rtype::A, vec![192, 0, 2, 1]),
            };
            writer.record(Section::Answer, apex, rtype, Class::IN, Ttl::new(60), |w| w.bytes(&data)).unwrap();
        }
        let len = writer.finish();
        bytes.truncate(len);
        bytes
    }

    fn check(rtype: Rtype, have: u32, messages: &[&[Option<u32>]], expect: &Result<Option<Kind>, Fault>) {
        let mut transfer = Transfer::new(rtype, have);
        let mut outcome = Ok(None);
        for records in messages {
            assert_eq!(outcome, Ok(None), "{messages:?} ends too early");
            outcome = transfer.take(&Message::parse(&message(records)).unwrap());
        }
        assert_eq!(&outcome, expect, "{messages:?}");
    }

    #[test]
    fn a_whole_zone_ends_with_its_soa() {
        let (soa, a) = (Some(5), None);
        check(Rtype::AXFR, 0, &[&[soa, a, a, soa]], &Ok(Some(Kind::Whole)));
        check(Rtype::AXFR, 0, &[&[soa], &[a], &[a, a], &[soa]], &Ok(Some(Kind::Whole)));
        check(Rtype::AXFR, 0, &[&[soa, a], &[a]], &Ok(None));
        check(Rtype::IXFR, 3, &[&[soa, a, soa]], &Ok(Some(Kind::Whole)));
        check(
            Rtype::AXFR,
            0,
            &[&[soa, soa, a]],
            &Err(Fault::Disordered("there are records behind the last SOA")),
        );
        check(Rtype::AXFR, 0, &[&[a, soa]], &Err(Fault::Disordered("it does not begin with a SOA")));
    }

    #[test]
    fn differences_end_with_the_newest_soa() {
        let (a, soa) = (None, Some);
        let one: &[Option<u32>] = &[soa(5), soa(4), a, soa(5), a, a, soa(5)];
        check(Rtype::IXFR, 4, &[one], &Ok(Some(Kind::Differences)));
        let two: &[Option<u32>] = &[soa(6), soa(4), a, soa(5), a, soa(5), soa(6), a, soa(6)];
        check(Rtype::IXFR, 4, &[two], &Ok(Some(Kind::Differences)));
        check(Rtype::IXFR, 4, &[&two[..6], &two[6..]], &Ok(Some(Kind::Differences)));
        check(Rtype::IXFR, 4, &[&two[..8]], &Ok(None));
        check(Rtype::IXFR, 6, &[&[soa(6)]], &Ok(Some(Kind::UpToDate)));
        check(Rtype::IXFR, 7, &[&[soa(6)]], &Ok(Some(Kind::UpToDate)));
        // One SOA a message and nothing else yet: a whole zone may follow.
        check(Rtype::IXFR, 4, &[&[soa(6)]], &Ok(None));
    }
}
