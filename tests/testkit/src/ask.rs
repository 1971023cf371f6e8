//! Queries to send, and replies as a test wants to look at them.

use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{
    Class, Flags, Header, Message, NameBuf, NameRef, Opcode, OptionCode, Rcode, Record, Rtype, Section,
};

/// Reads a name from its usual text form; test names need no escapes.
///
/// # Panics
///
/// When the text is not a name.
pub fn name(text: &str) -> NameBuf {
    let mut name = NameBuf::root();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        name.push_label(label.as_bytes()).unwrap_or_else(|_| panic!("{text:?} is not a name"));
    }
    name
}

/// A query under construction. Starts as `dig +noedns` would send it.
#[derive(Clone)]
pub struct Ask {
    id: u16,
    flags: Flags,
    qname: NameBuf,
    qtype: Rtype,
    qclass: Class,
    edns: Option<AskEdns>,
}

#[derive(Clone)]
struct AskEdns {
    udp_size: u16,
    version: u8,
    dnssec: bool,
    options: Vec<(OptionCode, Vec<u8>)>,
}

impl Default for AskEdns {
    fn default() -> Self {
        Self { udp_size: 1232, version: 0, dnssec: false, options: Vec::new() }
    }
}

impl Ask {
    /// Asks for `qtype` at `qname` in class IN, recursion desired, ID 4711.
    pub fn new(qname: &str, qtype: Rtype) -> Self {
        Self { id: 4711, flags: Flags::RD, qname: name(qname), qtype, qclass: Class::IN, edns: None }
    }

    /// Sets the ID.
    #[must_use]
    pub fn id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Sets the class.
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.qclass = class;
        self
    }

    /// Sets the flags, operation code included.
    #[must_use]
    pub fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the operation code.
    #[must_use]
    pub fn opcode(mut self, opcode: Opcode) -> Self {
        self.flags = self.flags.with_opcode(opcode);
        self
    }

    /// Adds EDNS that accepts replies of `udp_size` octets.
    #[must_use]
    pub fn edns(mut self, udp_size: u16) -> Self {
        self.edns.get_or_insert_default().udp_size = udp_size;
        self
    }

    /// Sets the EDNS version.
    #[must_use]
    pub fn edns_version(mut self, version: u8) -> Self {
        self.edns.get_or_insert_default().version = version;
        self
    }

    /// Sets DO.
    #[must_use]
    pub fn dnssec(mut self) -> Self {
        self.edns.get_or_insert_default().dnssec = true;
        self
    }

    /// Adds an EDNS option.
    #[must_use]
    pub fn option(mut self, code: OptionCode, data: &[u8]) -> Self {
        self.edns.get_or_insert_default().options.push((code, data.to_vec()));
        self
    }

    /// Returns the query's octets.
    ///
    /// # Panics
    ///
    /// When an option is longer than an option can be.
    pub fn bytes(&self) -> Vec<u8> {
        let header = Header {
            id: self.id,
            flags: self.flags,
            questions: 1,
            additionals: u16::from(self.edns.is_some()),
            ..Header::default()
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend(self.qname.as_name().as_bytes());
        bytes.extend(self.qtype.0.to_be_bytes());
        bytes.extend(self.qclass.0.to_be_bytes());
        if let Some(edns) = &self.edns {
            bytes.extend([0, 0, 41]);
            bytes.extend(edns.udp_size.to_be_bytes());
            bytes.extend([0, edns.version, if edns.dnssec { 0x80 } else { 0 }, 0]);
            let mut options = Vec::new();
            for (code, data) in &edns.options {
                options.extend(code.0.to_be_bytes());
                options.extend(octets(data.len()));
                options.extend(data);
            }
            bytes.extend(octets(options.len()));
            bytes.extend(options);
        }
        bytes
    }
}

/// Returns a length as DNS writes it.
pub(crate) fn octets(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("test data is short").to_be_bytes()
}

/// A reply that was received.
#[derive(Clone, PartialEq, Eq)]
pub struct Heard(Vec<u8>);

impl Heard {
    /// Takes the octets of a reply.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the octets.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the message.
    ///
    /// # Panics
    ///
    /// When what was received is not a well-formed message.
    pub fn message(&self) -> Message<'_> {
        Message::parse(&self.0).unwrap_or_else(|why| panic!("{why:?}: {:02x?}", self.0))
    }

    /// Returns the ID.
    pub fn id(&self) -> u16 {
        self.message().header.id
    }

    /// Returns the response code, extended by EDNS.
    pub fn rcode(&self) -> Rcode {
        self.message().rcode()
    }

    /// Returns whether these flags are all set.
    pub fn has(&self, flags: Flags) -> bool {
        self.message().header.flags.has(flags)
    }

    /// Returns the answer section, a line each: owner, TTL, type, data as far as tests need it.
    pub fn answers(&self) -> Vec<String> {
        self.section(Section::Answer)
    }

    /// Returns the authority section, as [`Heard::answers`] does.
    pub fn authorities(&self) -> Vec<String> {
        self.section(Section::Authority)
    }

    fn section(&self, section: Section) -> Vec<String> {
        self.message()
            .records()
            .filter(|record| record.section == section)
            .map(|record| line(&record))
            .collect()
    }

    /// Returns the TTLs of the answer section.
    pub fn ttls(&self) -> Vec<u32> {
        let records = self.message().records();
        records.filter(|record| record.section == Section::Answer).map(|record| record.ttl_raw).collect()
    }

    /// Returns the Extended DNS Errors: code and text.
    pub fn errors(&self) -> Vec<(u16, String)> {
        let mut found = Vec::new();
        for option in self.message().edns.iter().flat_map(wire::Edns::options) {
            if let (OptionCode::EDE, Some((code, text))) = (option.code, option.data.split_first_chunk()) {
                found.push((u16::from_be_bytes(*code), String::from_utf8_lossy(text).into_owned()));
            }
        }
        found
    }

    /// Returns the data of an EDNS option.
    pub fn option(&self, code: OptionCode) -> Option<Vec<u8>> {
        self.message().edns.and_then(|edns| edns.option(code)).map(<[u8]>::to_vec)
    }
}

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message = self.message();
        f.debug_struct("Heard")
            .field("header", &message.header)
            .field("rcode", &message.rcode())
            .field("question", &message.question.map(|question| question_text(&question)))
            .field("answers", &self.answers())
            .field("authorities", &self.authorities())
            .field("edns", &message.edns)
            .field("errors", &self.errors())
            .finish()
    }
}

fn question_text(question: &wire::Question<'_>) -> String {
    format!("{} {} {}", name_text(question.qname.as_bytes()), question.qtype.0, question.qclass.0)
}

/// Returns the text of an uncompressed name.
pub(crate) fn name_text(bytes: &[u8]) -> String {
    let Ok((name, _)) = wire::Name::parse(bytes) else { return "?".to_string() };
    let mut text: String = name
        .labels()
        .map(|label| format!("{}.", String::from_utf8_lossy(label)))
        .collect::<Vec<_>>()
        .concat();
    if text.is_empty() {
        text.push('.');
    }
    text
}

fn expanded(name: NameRef<'_>) -> String {
    name.expand().map_or_else(|_| "?".to_string(), |name| name_text(name.as_name().as_bytes()))
}

fn line(record: &Record<'_>) -> String {
    let data = match (record.rtype, record.rdata) {
        (Rtype::A, &[a, b, c, d]) => Ipv4Addr::new(a, b, c, d).to_string(),
        (Rtype::AAAA, rdata) if rdata.len() == 16 => <[u8; 16]>::try_from(rdata)
            .map(Ipv6Addr::from)
            .map(|address| address.to_string())
            .unwrap_or_default(),
        (Rtype::CNAME | Rtype::NS | Rtype::PTR | Rtype::SOA, _) => expanded(record.name_in_rdata(0)),
        (Rtype::TXT, rdata) => format!("{:?}", String::from_utf8_lossy(rdata.get(1..).unwrap_or(&[]))),
        (_, rdata) => format!("{rdata:02x?}"),
    };
    let rtype = match record.rtype {
        Rtype::A => "A".to_string(),
        Rtype::AAAA => "AAAA".to_string(),
        Rtype::CNAME => "CNAME".to_string(),
        Rtype::NS => "NS".to_string(),
        Rtype::PTR => "PTR".to_string(),
        Rtype::SOA => "SOA".to_string(),
        Rtype::TXT => "TXT".to_string(),
        Rtype(number) => format!("TYPE{number}"),
    };
    format!("{} {} {rtype} {data}", expanded(record.owner), record.ttl_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_can_be_parsed() {
        let bytes = Ask::new("www.example.org", Rtype::A)
            .edns(4096)
            .dnssec()
            .option(OptionCode::COOKIE, &[7; 8])
            .bytes();
        let query = wire::Query::parse(&bytes).expect("a query");
        assert_eq!(query.question.qname.len(), 17);
        let edns = query.edns.expect("EDNS");
        assert_eq!((edns.udp_size, edns.wants_dnssec()), (4096, true));
        assert_eq!(edns.option(OptionCode::COOKIE), Some(&[7; 8][..]));
    }
}
