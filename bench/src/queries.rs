//! What is asked: names and types as text, and the same as ready datagrams.

use std::fmt;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use wire::{Flags, Header, Message, NameBuf, Rtype, Section};

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The name, without the final dot.
    pub name: String,
    /// The type.
    pub rtype: Rtype,
    /// What a right answer looks like.
    pub expected: Expected,
}

/// What a right answer looks like, beside ID and question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The response code.
    pub rcode: u8,
    /// Whether there must be an answer record.
    pub records: bool,
    /// The one address there must be, if it is looked at.
    pub address: Option<Ipv4Addr>,
    /// Whether AD must be set or must not, if it is looked at.
    pub is_secure: Option<bool>,
}

impl Expected {
    /// Returns whether the reply says what is looked at besides response code and number of
    /// records.
    pub fn agrees(&self, reply: &[u8]) -> bool {
        let Self { address, is_secure, .. } = *self;
        if address.is_none() && is_secure.is_none() {
            return true;
        }
        let Ok(message) = Message::parse(reply) else { return false };
        let is_address =
            |record: &wire::Record<'_>| record.section == Section::Answer && record.rtype == Rtype::A;
        let mut addresses = message.records().filter(is_address);
        let has_address = address.is_none_or(|address| {
            let only = (addresses.next(), addresses.next());
            matches!(only, (Some(record), None) if record.rdata == address.octets())
        });
        has_address && is_secure.is_none_or(|is_secure| message.header.flags.has(Flags::AD) == is_secure)
    }
}

impl Ask {
    /// Asks for `name` and `rtype`, which exist.
    pub fn new(name: impl Into<String>, rtype: Rtype) -> Self {
        Self { name: name.into(), rtype, expected: Expected { records: true, ..Expected::default() } }
    }

    /// Expects `rcode`; records only if it is 0.
    #[must_use]
    pub fn coded(self, rcode: u8) -> Self {
        Self { expected: Expected { rcode, records: rcode == 0, ..self.expected }, ..self }
    }

    /// Expects no records.
    #[must_use]
    pub fn empty(self) -> Self {
        Self { expected: Expected { records: false, ..self.expected }, ..self }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TYPES.iter().find(|(_, rtype)| *rtype == self.rtype) {
            Some((text, _)) => write!(out, "{} {text}", self.name),
            None => write!(out, "{} TYPE{}", self.name, self.rtype.0),
        }
    }
}

const TYPES: [(&str, Rtype); 13] = [
    ("A", Rtype::A),
    ("AAAA", Rtype::AAAA),
    ("NS", Rtype::NS),
    ("CNAME", Rtype::CNAME),
    ("SOA", Rtype::SOA),
    ("PTR", Rtype::PTR),
    ("MX", Rtype::MX),
    ("TXT", Rtype::TXT),
    ("SRV", Rtype::SRV),
    ("HTTPS", Rtype::HTTPS),
    ("ANY", Rtype::ANY),
    ("DNSKEY", Rtype::DNSKEY),
    ("CAA", Rtype(257)),
];

/// Reads a type's mnemonic or `TYPEnnn`.
pub fn parse_type(text: &str) -> Option<Rtype> {
    let upper = text.to_ascii_uppercase();
    if let Some(number) = upper.strip_prefix("TYPE") {
        return number.parse().ok().map(Rtype);
    }
    TYPES.iter().find(|(name, _)| *name == upper).map(|(_, rtype)| *rtype)
}

/// Reads a query file of dnsperf: a name and a type per line, `;` and `#` begin a comment.
pub fn parse_file(path: &Path) -> Result<Vec<Ask>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse_text(&text).map_err(|error| format!("{}:{error}", path.display()))
}

/// Like [`parse_file`], from text.
pub fn parse_text(text: &str) -> Result<Vec<Ask>, String> {
    let mut asks = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split([';', '#']).next().unwrap_or("").trim();
        let mut words = line.split_whitespace();
        let (name, rtype) = match (words.next(), words.next(), words.next()) {
            (None, ..) => continue,
            (Some(name), Some(rtype), None) => (name, rtype),
            _ => return Err(format!("{}: expected a name and a type, found \"{line}\"", at + 1)),
        };
        let rtype = parse_type(rtype).ok_or_else(|| format!("{}: unknown type \"{rtype}\"", at + 1))?;
        asks.push(Ask::new(name.trim_end_matches('.'), rtype));
    }
    if asks.is_empty() { Err("0: no queries".to_owned()) } else { Ok(asks) }
}

/// Writes `asks` as a query file of dnsperf.
pub fn write_file(path: &Path, asks: &[Ask]) -> Result<(), String> {
    let text: String = asks.iter().map(|ask| format!("{ask}\n")).collect();
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns `name` in wire form.
pub fn parse_name(name: &str) -> Result<NameBuf, String> {
    let mut buf = NameBuf::root();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        buf.push_label(label.as_bytes()).map_err(|_| format!("\"{name}\" is not a name"))?;
    }
    Ok(buf)
}

/// What a query carries besides its question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The UDP size of an OPT record; no OPT without it.
    pub edns_size: Option<u16>,
    /// Ask for DNSSEC records (needs EDNS).
    pub wants_dnssec: bool,
    /// Give the letters of the name changing case.
    pub mixed_case: bool,
    /// Ask whether the answer was validated (AD, RFC 6840 §5.7).
    pub wants_verdict: bool,
}

impl Extras {
    /// Returns what either wants.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            edns_size: self.edns_size.or(other.edns_size),
            wants_dnssec: self.wants_dnssec || other.wants_dnssec,
            mixed_case: self.mixed_case || other.mixed_case,
            wants_verdict: self.wants_verdict || other.wants_verdict,
        }
    }
}

/// Queries as datagrams, one behind the other; their IDs are zero.
pub struct Packets {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// Where a query lies, and what it is answered with.
struct Span {
    start: u32,
    octets: u16,
    /// Octets of its question.
    question: u16,
    expected: Expected,
}

impl Packets {
    /// Encodes `asks`, each with RD and `extras`.
    pub fn new(asks: &[Ask], extras: Extras) -> Result<Self, String> {
        let mut packets =
            Self { bytes: Vec::with_capacity(asks.len() * 48), spans: Vec::with_capacity(asks.len()) };
        for ask in asks {
            let start = packets.bytes.len();
            let question = packets.push(ask, extras)?;
            let len = packets.bytes.len() - start;
            packets.spans.push(Span {
                start: start as u32,
                octets: len as u16,
                question: question as u16,
                expected: ask.expected,
            });
        }
        Ok(packets)
    }

    fn push(&mut self, ask: &Ask, extras: Extras) -> Result<usize, String> {
        let header = Header {
            flags: if extras.wants_verdict { Flags::RD.with(Flags::AD) } else { Flags::RD },
            questions: 1,
            additionals: u16::from(extras.edns_size.is_some()),
            ..Header::default()
        };
        self.bytes.extend(header.to_bytes());
        let name = parse_name(&ask.name)?;
        let name = name.as_name().as_bytes();
        let mut upper = false;
        for &octet in name {
            upper ^= octet.is_ascii_alphabetic();
            self.bytes.push(if extras.mixed_case && upper { octet.to_ascii_uppercase() } else { octet });
        }
        self.bytes.extend(ask.rtype.0.to_be_bytes());
        self.bytes.extend([0, 1]);
        if let Some(size) = extras.edns_size {
            let [high, low] = size.to_be_bytes();
            let flags = if extras.wants_dnssec { 0x80 } else { 0 };
            self.bytes.extend([0, 0, 41, high, low, 0, 0, flags, 0, 0, 0]);
        }
        Ok(name.len() + 4)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Appends query `at` with an ID, behind its length, as connections carry it.
    pub fn frame(&self, at: usize, id: u16, out: &mut Vec<u8>) {
        let packet = self.packet(at);
        out.extend((packet.len() as u16).to_be_bytes());
        out.extend(id.to_be_bytes());
        out.extend(packet.get(2..).unwrap_or(&[]));
    }

    /// Returns packet `i`.
    pub fn packet(&self, i: usize) -> &[u8] {
        let span = &self.spans[i];
        &self.bytes[span.start as usize..][..usize::from(span.octets)]
    }

    /// Returns the question section of packet `i`.
    pub fn question(&self, i: usize) -> &[u8] {
        let span = &self.spans[i];
        &self.bytes[span.start as usize + Header::LEN..][..usize::from(span.question)]
    }

    /// Returns what packet `i` is answered with.
    pub fn expected(&self, i: usize) -> Expected {
        self.spans[i].expected
    }
}

/// A small generator of numbers (xorshift64*), for orders and losses that a seed repeats.
pub struct Dice(u64);

impl Dice {
    /// Begins with `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the next number.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.roll()) * bound as u128) >> 64) as usize
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let other = self.below(i + 1);
            items.swap(i, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_file_is_read_as_dnsperf_reads_it() {
        let asks =
            parse_text("; names\nwww.example.org A\n\nexample.org. type257 # last\n").expect("well-formed");
        assert_eq!(asks, [Ask::new("www.example.org", Rtype::A), Ask::new("example.org", Rtype(257))]);
        assert_eq!(asks[1].to_string(), "example.org CAA");
        assert_eq!(parse_text("www.example.org").unwrap_err().split(':').next(), Some("1"));
        assert!(parse_text("www.example.org FOO").unwrap_err().contains("FOO"));
    }

    #[test]
    fn packets_are_queries() {
        let extras =
            Extras { edns_size: Some(1232), wants_dnssec: true, mixed_case: true, ..Extras::default() };
        let packets = Packets::new(&[Ask::new("www.example.org", Rtype::AAAA)], extras).expect("encodes");
        let query = wire::Query::parse(packets.packet(0)).expect("parses");
        assert_eq!(query.question.qtype, Rtype::AAAA);
        assert!(query.wants_dnssec());
        assert_eq!(query.question_bytes(), packets.question(0));
        assert_eq!(&packets.question(0)[..5], b"\x03WwW\x07");
    }

    #[test]
    fn an_answer_is_looked_at_if_it_is_known() {
        let expected = Expected {
            address: Some(Ipv4Addr::new(192, 0, 2, 1)),
            is_secure: Some(true),
            ..Expected::default()
        };
        let reply = |ad: u8, last: u8| {
            let head = [0, 0, 0x81, 0x80 | ad, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1];
            let record = [0, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last];
            [&head[..], &record].concat()
        };
        assert!(expected.agrees(&reply(0x20, 1)) && Expected::default().agrees(&reply(0, 9)));
        assert!(!expected.agrees(&reply(0, 1)) && !expected.agrees(&reply(0x20, 2)));
        assert!(!expected.agrees(&reply(0x20, 1)[..30]));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1000).collect();
        Dice::new(7).shuffle(&mut items);
        assert_ne!(items[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..1000));
    }
}
