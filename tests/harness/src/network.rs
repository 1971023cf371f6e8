//! What a resolver must keep to, whatever the servers of zones say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use cache::Security;
use cache::claims::Worker;
use cache::proofs::Proofs;
use cache::rrsets::{RrsetLimits, Rrsets};
use cache::servers::{ServerLimits, Servers};
use rand::SeedableRng;
use rand::rngs::StdRng;
use resolver::{
    Arrival, Ask, Effect, Forward, Forwarders, HeapName, Hint, Minimisation, Moment, Resolution, Resolver,
    Route, Settings, Tables, Unanswered, Validation, Waiter, Way,
};
use wire::{
    Class, Flags, HashKey, Message, Name, NameBuf, Question, Rcode, Rtype, Section, Ttl, Writer, rtypes,
};

/// Queries that one question may cost.
const SENDS_MAX: usize = 64;
/// Seconds after which nothing of a question is left: ten to send, and those of the last query.
const SECONDS_MAX: u64 = 20;
/// Octets of what is learned.
const OCTETS_MAX: usize = 1 << 20;
/// Names that liars like.
const NAMES: [&str; 8] =
    [".", "org", "evil.org", "a.evil.org", "b.c.evil.org", "victim.org", "www.victim.org", "*.evil.org"];
const TYPES: [Rtype; 12] = [
    Rtype::A,
    Rtype::AAAA,
    Rtype::NS,
    Rtype::CNAME,
    Rtype::DNAME,
    Rtype::SOA,
    Rtype::TXT,
    Rtype::DS,
    Rtype::DNSKEY,
    Rtype::NSEC,
    Rtype::NSEC3,
    Rtype::RRSIG,
];

/// What a server does with a query.
enum Said {
    Nothing(Unanswered),
    Reply(Vec<u8>, Arrival),
}

/// Octets that are read again and again: a network lies as long as it is asked.
struct Lies<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Lies<'_> {
    fn octet(&mut self) -> u8 {
        let octet = self.bytes.get(self.at % self.bytes.len().max(1)).copied().unwrap_or(0);
        // Each time round they mean something else.
        let round = self.at / self.bytes.len().max(1);
        self.at += 1;
        octet.wrapping_add(round as u8)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let at = usize::from(self.octet()) % all.len().max(1);
        all.get(at).copied()
    }

    /// Returns a name that has to do with the question, or one of some others.
    fn name(&mut self, qname: Name<'_>) -> NameBuf {
        match self.octet() % 4 {
            0 => qname.to_buf(),
            1 => {
                let labels = usize::from(self.octet()) % (qname.label_count() + 1);
                qname.suffix(labels).to_buf()
            }
            2 => {
                let label = [b'a' + self.octet() % 26];
                let labels = usize::from(self.octet()) % (qname.label_count() + 1);
                let below = [&[1], &label[..]].concat();
                NameBuf::below(&below, qname.suffix(labels)).unwrap_or_else(|_| qname.to_buf())
            }
            _ => self
                .one_of(&NAMES)
                .and_then(|text| NameBuf::from_text(text).ok())
                .unwrap_or_else(NameBuf::root),
        }
    }

    fn data(&mut self, rtype: Rtype, qname: Name<'_>) -> Vec<u8> {
        match rtype {
            Rtype::A => vec![192, 0, 2, self.octet()],
            Rtype::NS | Rtype::CNAME | Rtype::DNAME => self.name(qname).as_name().as_bytes().to_vec(),
            Rtype::SOA => {
                let mut data = [self.name(qname).as_name().as_bytes(), &[0]].concat();
                data.extend((0..20).map(|_| self.octet()));
                data
            }
            Rtype::RRSIG => {
                let covered = self.one_of(&TYPES).unwrap_or(Rtype::A);
                let mut data = covered.0.to_be_bytes().to_vec();
                // The labels of the name, and a time that has not ended.
                data.extend([13, qname.label_count() as u8, 0, 0, 1, 0, 0x7f, 0, 0, 0, 0, 0, 0, 0]);
                data.extend([self.octet(), self.octet()]);
                data.extend(self.name(qname).as_name().as_bytes());
                data.extend([7; 64]);
                data
            }
            _ => (0..self.octet() % 64).map(|_| self.octet()).collect(),
        }
    }

    fn reply(&mut self, question: &Question<'_>) -> Option<Vec<u8>> {
        let mut out = vec![0; 16_384];
        let flags = Flags::QR.with(if self.octet().is_multiple_of(4) { Flags(0) } else { Flags::AA });
        let rcode = match self.octet() {
            0..160 => Rcode::NOERROR,
            160..220 => Rcode::NXDOMAIN,
            other => Rcode(u16::from(other % 16)),
        };
        let mut writer = Writer::new(&mut out, usize::MAX, 0, flags.with_rcode(rcode));
        writer.question(question).ok()?;
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            for _ in 0..self.octet() % 6 {
                let owner = self.name(question.qname);
                let rtype = if self.octet().is_multiple_of(3) {
                    question.qtype
                } else {
                    self.one_of(&TYPES).unwrap_or(Rtype::A)
                };
                let data = self.data(rtype, question.qname);
                let ttl = Ttl::new(u32::from(self.octet()) << (self.octet() % 16));
                let written = writer
                    .record(section, owner.as_name(), rtype, Class::IN, ttl, |writer| writer.bytes(&data));
                written.ok()?;
            }
        }
        let len = writer.finish();
        out.truncate(len);
        Some(out)
    }

    fn say(&mut self, query: &OnWire) -> Said {
        let question = query.question();
        let arrival = match query {
            OnWire::Ask(ask) if !ask.how.over_tcp => Arrival::Udp,
            OnWire::Ask(_) | OnWire::Forward(_) => Arrival::Tcp,
        };
        match self.octet() {
            0..16 => Said::Nothing(Unanswered::Timeout),
            16..24 => Said::Nothing(Unanswered::Unreachable),
            24..28 => Said::Nothing(Unanswered::NotSent),
            _ => match self.reply(&question) {
                Some(reply) => Said::Reply(reply, arrival),
                None => Said::Nothing(Unanswered::Timeout),
            },
        }
    }
}

/// A query to a server, or a question to forwarders.
enum OnWire {
    Ask(Ask),
    Forward(Forward),
}

impl OnWire {
    fn question(&self) -> Question<'_> {
        let (name, qtype) = match self {
            Self::Ask(ask) => (&ask.qname, ask.qtype),
            Self::Forward(forward) => (&forward.qname, forward.qtype),
        };
        Question { qname: name.as_name(), qtype, qclass: Class::IN }
    }
}

/// A question, and a network.
struct Course {
    resolver: Resolver,
    tables: Tables,
    began: Moment,
    now: Moment,
    open: Vec<(Moment, OnWire)>,
    sends: usize,
}

impl Course {
    fn new(validation: Validation, minimisation: Minimisation, routes: Vec<Route>) -> Self {
        let hash_key = HashKey::new([3, 4]);
        let tables = Tables {
            rrsets: Arc::new(Rrsets::new(RrsetLimits::with_octets(OCTETS_MAX), hash_key)),
            servers: Arc::new(Servers::new(ServerLimits { lines: 256, cookies: 8 }, hash_key)),
            proofs: Arc::new(Proofs::new(OCTETS_MAX, hash_key)),
            failures: Arc::default(),
            rates: Arc::default(),
            claims: Arc::default(),
            worker: Worker(0),
        };
        let root = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let hint = Hint { name: HeapName::new(Name::ROOT), addresses: vec![root] };
        let settings = Settings {
            hints: vec![hint],
            priming: false,
            validation,
            minimisation,
            routes,
            ..Settings::default()
        };
        let now = Moment(1_000_000_000);
        let mut resolver = Resolver::new(settings, tables.clone(), StdRng::seed_from_u64(1));
        resolver.set_time(1_795_000_000, now);
        Self { resolver, tables, began: now, now, open: Vec::new(), sends: 0 }
    }

    /// Resolves a question to its end, and lets all that was sent be reported.
    fn run(&mut self, question: &Question<'_>, say: &mut dyn FnMut(&OnWire) -> Said) -> Arc<Resolution> {
        self.resolver.want(question, Waiter(0), self.now);
        let mut told = None;
        loop {
            while let Some(effect) = self.resolver.next_effect() {
                let query = match effect {
                    Effect::Ask(ask) => OnWire::Ask(ask),
                    Effect::Forward(forward) => OnWire::Forward(forward),
                    Effect::LookUp(_) | Effect::Store(_) => unreachable!("there is no second-level cache"),
                    Effect::Done { resolution, .. } => {
                        assert!(told.replace(resolution).is_none(), "told twice");
                        continue;
                    }
                };
                self.sends += 1;
                // Some are quicker than others are given up.
                let after_ms = 1 + 37 * (self.sends as u32 % 7);
                self.open.push((self.now.after_ms(after_ms), query));
            }
            assert!(self.sends <= SENDS_MAX, "{} queries", self.sends);
            let next = (0..self.open.len()).min_by_key(|&at| self.open.get(at).map(|(at, _)| *at));
            let heard_at = next.and_then(|at| self.open.get(at)).map(|(at, _)| *at);
            match (self.resolver.next_due(), heard_at, next) {
                (Some(due), heard_at, _) if heard_at.is_none_or(|heard_at| due <= heard_at) => {
                    self.now = self.now.max(due);
                    self.resolver.due(self.now);
                }
                (_, Some(heard_at), Some(at)) => {
                    self.now = self.now.max(heard_at);
                    let (_, query) = self.open.remove(at);
                    self.hear(&query, &say(&query));
                }
                _ => break,
            }
        }
        assert_eq!(self.resolver.active(), 0, "somebody waits for what never comes");
        assert!(self.now.since_us(self.began) <= SECONDS_MAX * 1_000_000);
        assert!(self.tables.rrsets.octets_used() <= OCTETS_MAX);
        assert!(self.tables.proofs.stats().octets <= OCTETS_MAX);
        told.expect("each question has its end")
    }

    fn hear(&mut self, query: &OnWire, said: &Said) {
        let heard = match said {
            Said::Nothing(why) => Err(*why),
            // What cannot be read no transport hands over.
            Said::Reply(reply, arrival) => {
                Message::parse(reply).map(|message| (message, *arrival)).map_err(|_| Unanswered::Timeout)
            }
        };
        let (resolver, now) = (&mut self.resolver, self.now);
        match (query, heard) {
            (OnWire::Ask(ask), Ok((message, arrival))) => resolver.heard(ask.key, &message, arrival, now),
            (OnWire::Ask(ask), Err(why)) => resolver.unanswered(ask.key, why, now),
            (OnWire::Forward(forward), Ok((message, _))) => {
                // It is known which of two it was, or they gave one answer.
                let servers = [Some(1), Some(2), None];
                let last = servers.get(self.sends % servers.len()).copied().flatten();
                let server = last.map(|last| SocketAddr::from((Ipv4Addr::new(198, 51, 100, last), 53)));
                resolver.heard_forwarders(forward.key, &message, server, now);
            }
            (OnWire::Forward(forward), Err(why)) => resolver.forwarders_failed(forward.key, why, now),
        }
    }
}

/// Writes what a client is told: it is well formed, and about the question. Nobody in such a
/// network has a key that is trusted, so nothing is secure.
fn check(resolution: &Resolution, question: &Question<'_>) {
    assert_ne!(resolution.security, Security::Secure, "{} {}", question.qname, question.qtype);
    for wants_dnssec in [false, true] {
        let mut out = vec![0; 65_535];
        let Ok(len) = resolution.write(question, wants_dnssec, &mut out) else { continue };
        let message = Message::parse(out.get(..len).unwrap_or(&[])).expect("what is told is well formed");
        assert_eq!(message.rcode(), resolution.rcode);
        assert_eq!(
            resolution.failure.is_some(),
            message.rcode() == Rcode::SERVFAIL && message.records().count() == 0
        );
        let mut answers = message.records().filter(|record| record.section == Section::Answer);
        if let Some(first) = answers.next() {
            let owner = first.owner.expand().expect("well formed");
            assert!(question.qname.is_at_or_below(owner.as_name()), "{owner} for {}", question.qname);
        }
    }
}

/// A network that lies: random replies to whatever is asked, a few questions in a row.
pub fn network(bytes: &[u8]) {
    lied_to(bytes, |_| Vec::new());
}

/// Forwarders that lie, some of whose zones may be gone round: names of all zones, of one, or of
/// one within another.
pub fn forwarders(bytes: &[u8]) {
    lied_to(bytes, |first| {
        let route = |(zone, group): (&str, u16)| Route {
            zone: HeapName::new(NameBuf::from_text(zone).expect("a name").as_name()),
            way: Way::Forward(Forwarders(group)),
            first: first & 4 != 0,
            keeps: first & 8 == 0,
        };
        let zones: &[(&str, u16)] = match first >> 4 & 3 {
            0 | 1 => &[(".", 1)],
            2 => &[("evil.org", 1)],
            _ => &[("evil.org", 1), ("c.evil.org", 2), (".", 3)],
        };
        zones.iter().copied().map(route).collect()
    });
}

/// Asks a few questions in a row, of which a first octet says how, and the others what is replied.
fn lied_to(bytes: &[u8], routes: impl FnOnce(u8) -> Vec<Route>) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let validation = if first & 1 == 0 { Validation::Off } else { Validation::On };
    let minimisation = if first & 2 == 0 { Minimisation::Off } else { Minimisation::Relaxed };
    let mut course = Course::new(validation, minimisation, routes(first));
    let mut lies = Lies { bytes: rest, at: 0 };
    for (text, qtype) in
        [("www.a.evil.org", Rtype::A), ("a.b.c.evil.org", Rtype::TXT), ("www.victim.org", Rtype::A)]
    {
        let qname = NameBuf::from_text(text).expect("a name");
        let question = Question { qname: qname.as_name(), qtype, qclass: Class::IN };
        (course.sends, course.began) = (0, course.now);
        let resolution = course.run(&question, &mut |query| lies.say(query));
        check(&resolution, &question);
    }
}

/// Records of one reply, with which every question is answered: two octets of flags, two of the
/// type that is asked, three counts, then the records.
pub fn authority(bytes: &[u8]) {
    let Some((&[flags, rcode, high, low, answers, authorities, additionals], records)) =
        bytes.split_first_chunk::<7>()
    else {
        return;
    };
    let qtype = Rtype(u16::from_be_bytes([high, low]));
    let qtype = if rtypes::is_data(qtype) { qtype } else { Rtype::A };
    for validation in [Validation::Off, Validation::On] {
        let mut course = Course::new(validation, Minimisation::Off, Vec::new());
        let qname = NameBuf::from_text("www.a.evil.org").expect("a name");
        let question = Question { qname: qname.as_name(), qtype, qclass: Class::IN };
        let resolution = course.run(&question, &mut |query| {
            let mut reply = vec![0; 300];
            let flags = Flags(u16::from(flags) << 8).with(Flags::QR);
            let mut writer =
                Writer::new(&mut reply, usize::MAX, 0, flags.with_rcode(Rcode(u16::from(rcode % 16))));
            writer.question(&query.question()).expect("room");
            let len = writer.finish();
            reply.truncate(len);
            for (at, count) in [answers, authorities, additionals].into_iter().enumerate() {
                if let Some(place) = reply.get_mut(7 + 2 * at) {
                    *place = count;
                }
            }
            reply.extend(records);
            Said::Reply(reply, Arrival::Udp)
        });
        check(&resolution, &question);
    }
}
