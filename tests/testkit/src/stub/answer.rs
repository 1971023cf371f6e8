//! What a stub says to a question, and how that becomes octets, true or not.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::{Class, Flags, Header, Query, Rcode, Rtype, Section};

use crate::ask::{name, octets};

/// One record of an answer.
#[derive(Clone, Debug)]
struct StubRecord {
    owner: Vec<u8>,
    rtype: Rtype,
    ttl: u32,
    rdata: Vec<u8>,
}

/// As whom the stub answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    /// One that finds answers: RA.
    #[default]
    Resolver,
    /// One that serves the zone: AA.
    Authority,
    /// One that serves a zone above: neither.
    Parent,
}

/// What the stub says to one question.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    role: Role,
    rcode: u16,
    aliases: Vec<StubRecord>,
    answers: Vec<(Rtype, u32, Vec<u8>)>,
    authorities: Vec<StubRecord>,
    options: Vec<(u16, Vec<u8>)>,
    /// Records that have nothing to do with the question, and in which section.
    strays: Vec<(Section, StubRecord)>,
    pub(super) is_silence: bool,
    is_cut: bool,
    /// A reply that somebody else wrote.
    written: Option<Vec<u8>>,
}

impl Answer {
    /// Says nothing.
    pub fn silence() -> Self {
        Self { is_silence: true, ..Self::default() }
    }

    /// Says what somebody else has said to the same query, under the ID of this one.
    pub fn written(reply: Vec<u8>) -> Self {
        Self { written: Some(reply), ..Self::default() }
    }

    /// Says it as a server of the zone: AA is set, and RA is not.
    #[must_use]
    pub fn authoritative(self) -> Self {
        Self { role: Role::Authority, ..self }
    }

    /// Refers to the servers of a zone, with their addresses.
    pub fn referral(zone: &str, servers: &[(&str, Ipv4Addr)]) -> Self {
        let referral = Self { role: Role::Parent, ..Self::default() };
        servers.iter().fold(referral, |referral, (server, address)| {
            let target = name(server);
            referral.with_stray(Section::Authority, zone, Rtype::NS, target.as_name().as_bytes()).with_stray(
                Section::Additional,
                server,
                Rtype::A,
                &address.octets(),
            )
        })
    }

    /// Says TC, over TCP, too.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { is_cut: true, ..self }
    }

    /// Adds a record of any name to any section.
    #[must_use]
    pub fn with_stray(mut self, section: Section, owner: &str, rtype: Rtype, rdata: &[u8]) -> Self {
        let owner = name(owner).as_name().as_bytes().to_vec();
        self.strays.push((section, StubRecord { owner, rtype, ttl: 300, rdata: rdata.to_vec() }));
        self
    }

    /// Says `rcode` and nothing else.
    pub fn rcode(rcode: Rcode) -> Self {
        Self { rcode: rcode.0, ..Self::default() }
    }

    /// Answers with one address.
    pub fn a(ttl: u32, address: Ipv4Addr) -> Self {
        Self::default().and(Rtype::A, ttl, &address.octets())
    }

    /// Answers with one IPv6 address.
    pub fn aaaa(ttl: u32, address: Ipv6Addr) -> Self {
        Self::default().and(Rtype::AAAA, ttl, &address.octets())
    }

    /// Answers with text records that together have about `size` octets.
    pub fn long_text(ttl: u32, size: usize) -> Self {
        let mut answer = Self::default();
        for number in 0..size.div_ceil(250) {
            let text = format!("{number:04}{}", "x".repeat(230));
            let mut rdata = vec![text.len() as u8];
            rdata.extend(text.as_bytes());
            answer = answer.and(Rtype::TXT, ttl, &rdata);
        }
        answer
    }

    /// Says that the name does not exist, or with `NOERROR` that the type does not: with an SOA of
    /// `example.org`.
    pub fn negative(rcode: Rcode, soa_ttl: u32, minimum: u32) -> Self {
        let zone = name("example.org");
        let mut rdata = name("ns.example.org").as_name().as_bytes().to_vec();
        rdata.extend(name("hostmaster.example.org").as_name().as_bytes());
        for number in [1, 7200, 3600, 1_209_600, minimum] {
            rdata.extend(u32::to_be_bytes(number));
        }
        let soa =
            StubRecord { owner: zone.as_name().as_bytes().to_vec(), rtype: Rtype::SOA, ttl: soa_ttl, rdata };
        Self { rcode: rcode.0, authorities: vec![soa], ..Self::default() }
    }

    /// Adds a record; its owner is the question's name, or the last alias.
    #[must_use]
    pub fn and(mut self, rtype: Rtype, ttl: u32, rdata: &[u8]) -> Self {
        self.answers.push((rtype, ttl, rdata.to_vec()));
        self
    }

    /// Puts a CNAME from `owner` to `target` in front of the records.
    #[must_use]
    pub fn alias(mut self, ttl: u32, owner: &str, target: &str) -> Self {
        let owner = name(owner).as_name().as_bytes().to_vec();
        let rdata = name(target).as_name().as_bytes().to_vec();
        self.aliases.push(StubRecord { owner, rtype: Rtype::CNAME, ttl, rdata });
        self
    }

    /// Returns the reply to a query, as it would come over TCP.
    ///
    /// # Panics
    ///
    /// When `query` is not a query.
    pub fn to(&self, query: &[u8]) -> Vec<u8> {
        write(&Query::parse(query).expect("a query"), self, true, false)
    }

    /// Adds an Extended DNS Error, if the query has EDNS.
    #[must_use]
    pub fn with_ede(self, code: u16) -> Self {
        self.with_option(15, &code.to_be_bytes())
    }

    /// Adds an EDNS option, if the query has EDNS.
    #[must_use]
    pub fn with_option(mut self, code: u16, data: &[u8]) -> Self {
        self.options.push((code, data.to_vec()));
        self
    }
}

/// An untruth in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Another ID than the query's.
    Id,
    /// Another name in the question.
    Question,
    /// No question at all.
    NoQuestion,
    /// A query (QR clear) instead of a reply.
    NotAReply,
    /// Octets that are not a message.
    Garbage,
}

/// Writes a reply. The owner of the answers is the question's name, or where the aliases lead.
pub(super) fn write(query: &Query<'_>, answer: &Answer, over_tcp: bool, truncates: bool) -> Vec<u8> {
    if let Some(reply) = &answer.written {
        return passed_on(query, reply, over_tcp);
    }
    let role = match answer.role {
        Role::Resolver => Flags::RA,
        Role::Authority => Flags::AA,
        Role::Parent => Flags(0),
    };
    let mut flags = Flags::QR.with(role).with(query.header.flags.only(Flags::RD.with(Flags::CD)));
    flags = flags.with_rcode(Rcode(answer.rcode & 15));
    if answer.is_cut {
        flags = flags.with(Flags::TC);
    }
    let strays = |section| answer.strays.iter().filter(move |(place, _)| *place == section);
    let additionals = strays(Section::Additional).count() as u16;
    let header = |flags: Flags, answers: usize, authorities: usize| Header {
        id: query.header.id,
        flags,
        questions: 1,
        answers: answers as u16,
        authorities: authorities as u16,
        additionals: additionals + u16::from(query.edns.is_some()),
    };
    let mut body = query.question_bytes().to_vec();
    let question_end = body.len();
    let mut put = |owner: &[u8], rtype: Rtype, ttl: u32, rdata: &[u8]| {
        body.extend(owner);
        body.extend(rtype.0.to_be_bytes());
        body.extend(Class::IN.0.to_be_bytes());
        body.extend(ttl.to_be_bytes());
        body.extend(octets(rdata.len()));
        body.extend(rdata);
    };
    for alias in &answer.aliases {
        put(&alias.owner, alias.rtype, alias.ttl, &alias.rdata);
    }
    let owner = answer.aliases.last().map_or(&[0xc0, 12][..], |alias| &alias.rdata);
    for (rtype, ttl, rdata) in &answer.answers {
        put(owner, *rtype, *ttl, rdata);
    }
    for (_, stray) in strays(Section::Answer) {
        put(&stray.owner, stray.rtype, stray.ttl, &stray.rdata);
    }
    for authority in &answer.authorities {
        put(&authority.owner, authority.rtype, authority.ttl, &authority.rdata);
    }
    for (_, stray) in strays(Section::Authority).chain(strays(Section::Additional)) {
        put(&stray.owner, stray.rtype, stray.ttl, &stray.rdata);
    }
    let opt = query.edns.map(|_| {
        let mut opt = vec![0, 0, 41, 4, 208, (answer.rcode >> 4) as u8, 0, 0, 0];
        let mut options = Vec::new();
        for (code, data) in &answer.options {
            options.extend(code.to_be_bytes());
            options.extend(octets(data.len()));
            options.extend(data);
        }
        opt.extend(octets(options.len()));
        opt.extend(options);
        opt
    });
    let opt = opt.unwrap_or_default();
    let is_cut =
        (truncates && !over_tcp) || Header::LEN + body.len() + opt.len() > octets_max(query, over_tcp);
    let header = if is_cut {
        body.truncate(question_end);
        Header { additionals: u16::from(query.edns.is_some()), ..header(flags.with(Flags::TC), 0, 0) }
    } else {
        let answers = answer.aliases.len() + answer.answers.len() + strays(Section::Answer).count();
        header(flags, answers, answer.authorities.len() + strays(Section::Authority).count())
    };
    [&header.to_bytes()[..], &body, &opt].concat()
}

/// Returns how long a reply may be.
fn octets_max(query: &Query<'_>, over_tcp: bool) -> usize {
    match (over_tcp, query.edns) {
        (true, _) => usize::from(u16::MAX),
        (false, Some(edns)) => usize::from(edns.udp_size.max(512)),
        (false, None) => 512,
    }
}

/// Returns a reply of somebody else as one to this query, or that it is too long.
fn passed_on(query: &Query<'_>, reply: &[u8], over_tcp: bool) -> Vec<u8> {
    if reply.len() > octets_max(query, over_tcp) {
        return write(query, &Answer::default().cut(), over_tcp, false);
    }
    let mut reply = reply.to_vec();
    reply[..2].copy_from_slice(&query.header.id.to_be_bytes());
    reply
}

pub(super) fn lied(truth: &[u8], lie: Lie) -> Vec<u8> {
    let mut bytes = truth.to_vec();
    match lie {
        Lie::Id => bytes[0] ^= 0x55,
        // The first letter of the name.
        Lie::Question => bytes[Header::LEN + 1] ^= 1,
        Lie::NoQuestion => {
            bytes.truncate(Header::LEN);
            bytes[4..].fill(0);
        }
        Lie::NotAReply => bytes[2] &= 0x7f,
        Lie::Garbage => bytes.truncate(Header::LEN + 3),
    }
    bytes
}
