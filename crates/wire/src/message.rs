//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Any message, record by record, without copying.

use std::ops::Range;

use crate::edns::Edns;
use crate::hash::eq_ignore_case;
use crate::header::Header;
use crate::name::{LABEL_OCTETS_MAX, NAME_OCTETS_MAX, Name, NameBuf};
use crate::numbers::{Class, Rcode, Rtype, Ttl};
use crate::query::{Malformed, Question};

/// Octets of the largest message: its length goes before it as 16 bits (RFC 1035 §4.2.2).
pub const MESSAGE_OCTETS_MAX: usize = 65_535;

/// Where in a message a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The answer section.
    Answer,
    /// The authority section.
    Authority,
    /// The additional section.
    Additional,
}

/// A message with at most one question, checked whole: every record can be walked.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The header.
    pub header: Header,
    /// The question, if there is one.
    pub question: Option<Question<'a>>,
    /// The OPT record, if there is one.
    pub edns: Option<Edns<'a>>,
    bytes: &'a [u8],
    records_at: usize,
}

impl<'a> Message<'a> {
    /// Reads a message of any kind (query or reply, any operation).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let header = Header::parse(bytes).ok_or(Malformed::Header)?;
        let body = bytes.get(Header::LEN..).ok_or(Malformed::Header)?;
        let (question, rest) = match header.questions {
            0 => (None, body),
            1 => {
                let (qname, rest) = Name::parse(body)?;
                let (&[t0, t1, c0, c1], rest) = rest.split_first_chunk::<4>().ok_or(Malformed::Question)?;
                let qtype = Rtype(u16::from_be_bytes([t0, t1]));
                let qclass = Class(u16::from_be_bytes([c0, c1]));
                (Some(Question { qname, qtype, qclass }), rest)
            }
            _ => return Err(Malformed::Question),
        };
        let records_at = bytes.len() - rest.len();
        let mut walk = records(bytes, records_at, &header);
        let mut edns = None;
        for record in &mut walk {
            let record = record?;
            if record.rtype == Rtype::OPT {
                if edns.is_some() || record.section != Section::Additional || !record.owner.is_root() {
                    return Err(Malformed::Edns);
                }
                edns =
                    Some(Edns::parse(record.class.0, record.ttl_raw, record.rdata).ok_or(Malformed::Edns)?);
            }
        }
        if walk.at() != bytes.len() {
            return Err(Malformed::Trailing);
        }
        Ok(Self { header, question, edns, bytes, records_at })
    }

    /// Returns the whole message.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns where the first record starts, in octets from the start of the message.
    pub const fn records_at(&self) -> usize {
        self.records_at
    }

    /// Returns the name at `at`, octets from the start of the message; nothing is checked yet.
    pub const fn name_at(&self, at: usize) -> NameRef<'a> {
        NameRef::new(self.bytes, at)
    }

    /// Returns the response code, with the upper bits from EDNS.
    pub fn rcode(&self) -> Rcode {
        let upper = self.edns.map_or(0, |edns| u16::from(edns.extended_rcode) << 4);
        Rcode(upper | self.header.flags.rcode().0)
    }

    /// Walks the records of all sections; none is an error, [`Message::parse`] saw to that.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let walk = Records { is_checked: true, ..records(self.bytes, self.records_at, &self.header) };
        walk.map_while(Result::ok)
    }
}

/// One record in a message.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// Where it stands.
    pub section: Section,
    /// Its owner, possibly compressed.
    pub owner: NameRef<'a>,
    /// Its type.
    pub rtype: Rtype,
    /// Its class (for OPT: a payload size).
    pub class: Class,
    /// The TTL field as it came (for OPT: version and flags).
    pub ttl_raw: u32,
    /// Its data; names in it may be compressed.
    pub rdata: &'a [u8],
    /// Where the record starts in the message.
    pub at: usize,
    /// Where the TTL field starts in the message.
    pub ttl_at: usize,
    /// Where the data starts in the message.
    pub rdata_at: usize,
}

impl<'a> Record<'a> {
    /// Returns the time to live.
    pub const fn ttl(&self) -> Ttl {
        Ttl::new(self.ttl_raw)
    }

    /// Returns where the record ends in the message.
    pub const fn end(&self) -> usize {
        self.rdata_at + self.rdata.len()
    }

    /// Returns the name that starts `offset` octets into the data (NS, CNAME, SOA, MX…).
    pub fn name_in_rdata(&self, offset: usize) -> NameRef<'a> {
        NameRef { message: self.owner.message, at: self.rdata_at + offset }
    }
}

/// A name somewhere in a message, possibly compressed.
#[derive(Clone, Copy)]
pub struct NameRef<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> NameRef<'a> {
    /// Returns a reference to the name that starts at `at`; nothing is checked yet.
    pub const fn new(message: &'a [u8], at: usize) -> Self {
        Self { message, at }
    }

    /// Returns the message the name stands in.
    pub const fn message(self) -> &'a [u8] {
        self.message
    }

    /// Returns whether the name is written as the root label alone.
    pub fn is_root(self) -> bool {
        self.message.get(self.at) == Some(&0)
    }

    /// Returns the name without compression.
    pub fn expand(self) -> Result<NameBuf, Malformed> {
        let mut name = NameBuf::root();
        self.walk(|row| name.push_row(self.message.get(row).ok_or(Malformed::Name)?))?;
        Ok(name)
    }

    /// Returns whether this is `name`, letter case ignored; the whole name is checked. Costs less
    /// than to write it out and compare.
    pub fn is(self, name: Name<'_>) -> Result<bool, Malformed> {
        let mut rest = Some(name.as_bytes());
        self.walk(|row| {
            let labels = self.message.get(row).ok_or(Malformed::Name)?;
            rest = rest.and_then(|rest| {
                let (own, rest) = rest.split_at_checked(labels.len())?;
                eq_ignore_case(own, labels).then_some(rest)
            });
            Ok(())
        })?;
        Ok(rest == Some(&[0]))
    }

    /// Returns where the octets after this name start; the whole name is checked, pointers
    /// included.
    pub fn skip(self) -> Result<usize, Malformed> {
        self.walk(|_| Ok(()))
    }

    /// Returns where the octets after this name start, if the name has been checked before.
    fn skip_checked(self) -> Option<usize> {
        let mut at = self.at;
        loop {
            match *self.message.get(at)? {
                0 => return Some(at + 1),
                0xc0.. => return Some(at + 2),
                len => at += 1 + usize::from(len),
            }
        }
    }

    /// Checks the name, hands over where its labels stand in rows (length octets included, what
    /// ends the row excluded), and returns where the octets after the name start.
    pub(crate) fn walk(
        self,
        mut f: impl FnMut(Range<usize>) -> Result<(), Malformed>,
    ) -> Result<usize, Malformed> {
        let mut at = self.at;
        let mut row_at = at;
        let mut total = 1;
        let mut end = None;
        // Ends: each label adds to `total`, which is bounded, and each pointer must lead below the
        // row it ends.
        loop {
            let &len = self.message.get(at).ok_or(Malformed::Name)?;
            if usize::from(len) <= LABEL_OCTETS_MAX && len > 0 {
                let next = at + 1 + usize::from(len);
                total += next - at;
                if total > NAME_OCTETS_MAX {
                    return Err(Malformed::Name);
                }
                at = next;
                continue;
            }
            f(row_at..at)?;
            if len == 0 {
                return Ok(end.unwrap_or(at + 1));
            }
            let &low = self.message.get(at + 1).ok_or(Malformed::Name)?;
            let target = (usize::from(len & 0x3f) << 8) | usize::from(low);
            // RFC 1035 §4.1.4: a pointer names a prior occurrence; anything else could loop.
            if len < 0xc0 || target >= row_at || target < Header::LEN {
                return Err(Malformed::Name);
            }
            end.get_or_insert(at + 2);
            at = target;
            row_at = target;
        }
    }
}

/// Walks records; stops after the first error.
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    answers: u16,
    authorities: u16,
    additionals: u16,
    has_question: bool,
    is_checked: bool,
}

/// Walks the records from `at` on: as many as `header` counts, and with its question in place if it
/// has one.
///
/// For messages in the making; [`Message::records`] walks whole ones.
pub const fn records<'a>(bytes: &'a [u8], at: usize, header: &Header) -> Records<'a> {
    Records {
        bytes,
        at,
        answers: header.answers,
        authorities: header.authorities,
        additionals: header.additionals,
        has_question: header.questions > 0,
        is_checked: false,
    }
}

impl<'a> Records<'a> {
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn read(&mut self, section: Section) -> Result<Record<'a>, Malformed> {
        let at = self.at;
        let owner = NameRef::new(self.bytes, at);
        let fixed_at = match self.bytes.get(at..) {
            // Most owners are the question's name, which was checked when the question was read.
            Some([0xc0, 12, ..]) if self.has_question => at + 2,
            _ if self.is_checked => owner.skip_checked().ok_or(Malformed::Name)?,
            _ => owner.skip()?,
        };
        let tail = self.bytes.get(fixed_at..).ok_or(Malformed::Record)?;
        let (&[t0, t1, c0, c1, s0, s1, s2, s3, l0, l1], rest) =
            tail.split_first_chunk::<10>().ok_or(Malformed::Record)?;
        let rdata = rest.get(..usize::from(u16::from_be_bytes([l0, l1]))).ok_or(Malformed::Record)?;
        self.at = fixed_at + 10 + rdata.len();
        Ok(Record {
            section,
            owner,
            rtype: Rtype(u16::from_be_bytes([t0, t1])),
            class: Class(u16::from_be_bytes([c0, c1])),
            ttl_raw: u32::from_be_bytes([s0, s1, s2, s3]),
            rdata,
            at,
            ttl_at: fixed_at + 4,
            rdata_at: fixed_at + 10,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (left, section) = if self.answers > 0 {
            (&mut self.answers, Section::Answer)
        } else if self.authorities > 0 {
            (&mut self.authorities, Section::Authority)
        } else if self.additionals > 0 {
            (&mut self.additionals, Section::Additional)
        } else {
            return None;
        };
        *left -= 1;
        let record = self.read(section);
        if record.is_err() {
            (self.answers, self.authorities, self.additionals) = (0, 0, 0);
        }
        Some(record)
    }
}
