//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A query as a stranger sends it: checked whole, borrowed, never copied.

use crate::edns::Edns;
use crate::header::{Flags, Header};
use crate::message::{self, Section};
use crate::name::{Name, Shape};
use crate::numbers::{Class, Opcode, OptionCode, Rcode, Rtype};

/// Why bytes are not a query we can work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than a header: not even an ID to echo.
    Header,
    /// A response (QR set): answering it could start a loop.
    Response,
    /// An operation other than QUERY.
    Opcode,
    /// Not exactly one question.
    Question,
    /// A name that overruns, is too long, or whose pointers do not lead backwards.
    Name,
    /// A record that overruns the message.
    Record,
    /// Two OPT records, an OPT outside the additional section or not at the root, or an option that
    /// overruns.
    Edns,
    /// Octets after the last record.
    Trailing,
}

impl Malformed {
    /// The code the client sees; `None` means stay silent.
    pub const fn rcode(self) -> Option<Rcode> {
        match self {
            Self::Header | Self::Response => None,
            Self::Opcode => Some(Rcode::NOTIMP),
            Self::Question | Self::Name | Self::Record | Self::Edns | Self::Trailing => Some(Rcode::FORMERR),
        }
    }
}

/// What is asked.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The name.
    pub qname: Name<'a>,
    /// The type.
    pub qtype: Rtype,
    /// The class.
    pub qclass: Class,
}

/// A well-formed query with exactly one question.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The header.
    pub header: Header,
    /// The one question.
    pub question: Question<'a>,
    /// The OPT record, if there is one.
    pub edns: Option<Edns<'a>>,
    /// Whether there is a TSIG record (RFC 8945): who answers has to verify it first.
    pub is_signed: bool,
    /// The shape of the name asked for.
    pub shape: Shape,
    bytes: &'a [u8],
    question_bytes: &'a [u8],
}

impl<'a> Query<'a> {
    /// Reads a query; every octet is accounted for.
    #[inline(never)]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_inlined(bytes)
    }

    /// Does what [`Query::parse`] does, as a part of its caller: what it returns is a hundred
    /// octets, which nobody has to copy then.
    #[inline(always)]
    pub fn parse_inlined(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let header = Header::parse(bytes).ok_or(Malformed::Header)?;
        if header.flags.has(Flags::QR) {
            return Err(Malformed::Response);
        }
        if header.flags.opcode() != Opcode::QUERY {
            return Err(Malformed::Opcode);
        }
        if header.questions != 1 {
            return Err(Malformed::Question);
        }
        let body = bytes.get(Header::LEN..).ok_or(Malformed::Header)?;
        let (qname, shape, rest) = Name::parse_with_shape(body)?;
        let (&[t0, t1, c0, c1], rest) = rest.split_first_chunk::<4>().ok_or(Malformed::Question)?;
        let question = Question {
            qname,
            qtype: Rtype(u16::from_be_bytes([t0, t1])),
            qclass: Class(u16::from_be_bytes([c0, c1])),
        };
        let question_bytes = body.get(..qname.len() + 4).unwrap_or(&[]);
        let others = [header.answers, header.authorities, header.additionals];
        // Each kind of query is put together on its own, so that without an OPT no room for one is
        // copied.
        let query =
            |edns, is_signed| Self { header, question, edns, is_signed, shape, bytes, question_bytes };
        match (rest, others) {
            ([], [0, 0, 0]) => Ok(query(None, false)),
            // Nearly all queries end in an OPT at the root and have nothing else.
            (&[0, 0, 41, s0, s1, e0, e1, e2, e3, l0, l1, ref options @ ..], [0, 0, 1])
                if options.len() == usize::from(u16::from_be_bytes([l0, l1])) =>
            {
                let (size, ttl) = (u16::from_be_bytes([s0, s1]), u32::from_be_bytes([e0, e1, e2, e3]));
                let edns = Edns::parse(size, ttl, options).ok_or(Malformed::Edns)?;
                Ok(query(Some(edns), false))
            }
            _ => {
                let (edns, is_signed) = sections(bytes, bytes.len() - rest.len(), &header)?;
                Ok(query(edns, is_signed))
            }
        }
    }

    /// Returns the whole message.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the question section as it came (letter case kept).
    pub const fn question_bytes(&self) -> &'a [u8] {
        self.question_bytes
    }

    /// Returns whether the client wants DNSSEC records.
    pub fn wants_dnssec(&self) -> bool {
        self.edns.is_some_and(|edns| edns.wants_dnssec())
    }

    /// Writes the same query about something else: header and OPT stay, records besides them are
    /// left out.
    ///
    /// `None` when `out` does not hold it.
    pub fn about<'o>(&self, qname: Name<'_>, qtype: Rtype, out: &'o mut [u8]) -> Option<Query<'o>> {
        let additionals = u16::from(self.edns.is_some());
        let header = Header { answers: 0, authorities: 0, additionals, ..self.header };
        let [t0, t1] = qtype.0.to_be_bytes();
        let [c0, c1] = self.question.qclass.0.to_be_bytes();
        let mut len = 0;
        put(out, &mut len, &header.to_bytes())?;
        put(out, &mut len, qname.as_bytes())?;
        put(out, &mut len, &[t0, t1, c0, c1])?;
        if let Some(edns) = &self.edns {
            let options = edns.options_bytes();
            let [s0, s1] = edns.udp_size.to_be_bytes();
            let [f0, f1] = edns.flags.to_be_bytes();
            let [l0, l1] = u16::try_from(options.len()).ok()?.to_be_bytes();
            put(out, &mut len, &[0, 0, 41, s0, s1, edns.extended_rcode, edns.version, f0, f1, l0, l1])?;
            put(out, &mut len, options)?;
        }
        Query::parse(out.get(..len)?).ok()
    }
}

fn put(out: &mut [u8], len: &mut usize, bytes: &[u8]) -> Option<()> {
    out.get_mut(*len..*len + bytes.len())?.copy_from_slice(bytes);
    *len += bytes.len();
    Some(())
}

/// Reads a message that asks for nothing but a server cookie: no question, and an OPT with a COOKIE
/// option (RFC 7873 §5.4). [`Query::parse`] calls such a message [`Malformed::Question`].
#[cold]
pub fn cookie_only(bytes: &[u8]) -> Option<(Header, Edns<'_>)> {
    let header = Header::parse(bytes)?;
    let is_query = !header.flags.has(Flags::QR) && header.flags.opcode() == Opcode::QUERY;
    if !is_query || header.questions != 0 {
        return None;
    }
    let edns = sections(bytes, Header::LEN, &header).ok()?.0?;
    edns.option(OptionCode::COOKIE)?;
    Some((header, edns))
}

/// Walks all records of a message and returns its OPT, and whether there is a TSIG record.
#[cold]
fn sections<'a>(bytes: &'a [u8], at: usize, header: &Header) -> Result<(Option<Edns<'a>>, bool), Malformed> {
    let mut edns = None;
    let mut is_signed = false;
    let mut records = message::records(bytes, at, header);
    for record in &mut records {
        let record = record?;
        is_signed |= record.rtype == Rtype::TSIG;
        if record.rtype == Rtype::OPT {
            if edns.is_some() || record.section != Section::Additional || !record.owner.is_root() {
                return Err(Malformed::Edns);
            }
            edns = Some(Edns::parse(record.class.0, record.ttl_raw, record.rdata).ok_or(Malformed::Edns)?);
        }
    }
    if records.at() == bytes.len() { Ok((edns, is_signed)) } else { Err(Malformed::Trailing) }
}
