//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What one worker counts of queries and replies in detail, where the configuration wants it. Only
//! its worker writes; anybody may read.

use cache::Security;
use wire::{Flags, Header, Query};

use clients::client::Client;
use events::Counter;

/// Types and classes that are counted by their numbers, from zero; those above are counted
/// together.
pub const NUMBERS: u16 = 256;
/// Opcodes, and response codes without their extension.
pub const CODES: u8 = 16;
/// The flags of a query, in the order of [`Detail::Flag`].
const FLAGS: [Flags; 8] = [Flags::QR, Flags::AA, Flags::TC, Flags::RD, Flags::RA, Z, Flags::AD, Flags::CD];
/// The bit of the header that has no meaning (RFC 1035 §4.1.1).
const Z: Flags = Flags(0x0040);

/// One of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Queries for a type, by its number; `None`: one from [`NUMBERS`] on.
    Type(Option<u8>),
    /// Queries in a class, likewise.
    Class(Option<u8>),
    /// Queries with an opcode.
    Opcode(u8),
    /// Queries with a flag: QR, AA, TC, RD, RA, Z, AD, CD, by its place in this list.
    Flag(u8),
    /// Queries with EDNS.
    Edns,
    /// Queries with DO.
    DnssecOk,
    /// Queries that came over IPv6.
    V6,
    /// Replies with a response code, without its extension.
    Rcode(u8),
    /// Replies with NOERROR and no answer.
    NoData,
    /// Replies whose answer was validated.
    Secure,
    /// Replies to queries whose answer was bogus.
    Bogus,
}

impl Detail {
    const TYPES_AT: usize = 0;
    const CLASSES_AT: usize = Self::TYPES_AT + NUMBERS as usize + 1;
    const OPCODES_AT: usize = Self::CLASSES_AT + NUMBERS as usize + 1;
    const FLAGS_AT: usize = Self::OPCODES_AT + CODES as usize;
    const RCODES_AT: usize = Self::FLAGS_AT + FLAGS.len();
    const OTHERS_AT: usize = Self::RCODES_AT + CODES as usize;
    const COUNT: usize = Self::OTHERS_AT + 6;

    fn index(self) -> usize {
        let number = |number: Option<u8>| number.map_or(NUMBERS as usize, usize::from);
        match self {
            Self::Type(of) => Self::TYPES_AT + number(of),
            Self::Class(of) => Self::CLASSES_AT + number(of),
            Self::Opcode(code) => Self::OPCODES_AT + usize::from(code % CODES),
            Self::Flag(place) => Self::FLAGS_AT + usize::from(place) % FLAGS.len(),
            Self::Rcode(code) => Self::RCODES_AT + usize::from(code % CODES),
            Self::Edns => Self::OTHERS_AT,
            Self::DnssecOk => Self::OTHERS_AT + 1,
            Self::V6 => Self::OTHERS_AT + 2,
            Self::NoData => Self::OTHERS_AT + 3,
            Self::Secure => Self::OTHERS_AT + 4,
            Self::Bogus => Self::OTHERS_AT + 5,
        }
    }
}

/// One worker's numbers.
#[derive(Debug)]
pub struct Details([Counter; Detail::COUNT]);

impl Default for Details {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl Details {
    fn bump(&self, detail: Detail) {
        if let Some(counter) = self.0.get(detail.index()) {
            counter.bump();
        }
    }

    /// Counts a query. What is not readable has its flags and its opcode counted.
    pub(crate) fn query(&self, octets: &[u8], client: &Client) {
        if client.address.is_ipv6() {
            self.bump(Detail::V6);
        }
        let Some(header) = Header::parse(octets) else { return };
        for (place, &flag) in (0..).zip(&FLAGS) {
            if header.flags.has(flag) {
                self.bump(Detail::Flag(place));
            }
        }
        self.bump(Detail::Opcode(header.flags.opcode().0));
        let Ok(query) = Query::parse(octets) else { return };
        self.bump(Detail::Type(u8::try_from(query.question.qtype.0).ok()));
        self.bump(Detail::Class(u8::try_from(query.question.qclass.0).ok()));
        if let Some(edns) = &query.edns {
            self.bump(Detail::Edns);
            if edns.wants_dnssec() {
                self.bump(Detail::DnssecOk);
            }
        }
    }

    /// Counts a reply.
    pub(crate) fn reply(&self, octets: &[u8], security: Security) {
        let Some(header) = Header::parse(octets) else { return };
        let code = (header.flags.rcode().0 % u16::from(CODES)) as u8;
        self.bump(Detail::Rcode(code));
        if code == 0 && header.answers == 0 {
            self.bump(Detail::NoData);
        }
        match security {
            Security::Secure => self.bump(Detail::Secure),
            Security::Bogus => self.bump(Detail::Bogus),
            Security::Unchecked | Security::Insecure | Security::Indeterminate => (),
        }
    }

    /// Returns the numbers as they are now.
    pub fn read(&self) -> DetailValues {
        DetailValues(self.0.each_ref().map(Counter::read))
    }
}

/// The numbers of a worker, or of several, at one time or since another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailValues([u64; Detail::COUNT]);

impl Default for DetailValues {
    fn default() -> Self {
        Self([0; Detail::COUNT])
    }
}

impl DetailValues {
    /// Returns one of them.
    pub fn of(&self, detail: Detail) -> u64 {
        self.0.get(detail.index()).copied().unwrap_or(0)
    }

    /// Adds those of another worker.
    pub fn add(&mut self, others: &Self) {
        for (sum, other) in self.0.iter_mut().zip(&others.0) {
            *sum = sum.wrapping_add(*other);
        }
    }

    /// Takes away what there was before.
    pub fn subtract(&mut self, before: &Self) {
        for (now, before) in self.0.iter_mut().zip(&before.0) {
            *now = now.saturating_sub(*before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_place_of_its_own() {
        let numbers = || (0..=255).map(Some).chain([None]);
        let all = numbers()
            .map(Detail::Type)
            .chain(numbers().map(Detail::Class))
            .chain((0..16).map(Detail::Opcode))
            .chain((0..8).map(Detail::Flag))
            .chain((0..16).map(Detail::Rcode))
            .chain([
                Detail::Edns,
                Detail::DnssecOk,
                Detail::V6,
                Detail::NoData,
                Detail::Secure,
                Detail::Bogus,
            ]);
        let mut places: Vec<usize> = all.map(Detail::index).collect();
        places.sort_unstable();
        assert_eq!(places, (0..Detail::COUNT).collect::<Vec<_>>());
    }
}
