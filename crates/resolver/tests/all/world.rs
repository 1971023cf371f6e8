//! A small internet: zones as text, servers by address, a clock that jumps from event to event.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::Security;
use cache::claims::Claims;
use cache::proofs::Proofs;
use cache::rrsets::{RrsetLimits, Rrsets};
use cache::servers::{LetterCase, ServerLimits, Servers};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use resolver::{
    Arrival, Ask, Effect, Failure, Forward, ForwardKey, HeapName, Hint, Moment, Resolution, Resolver,
    Settings, Tables, Unanswered, Waiter,
};
use wire::{
    Class, ClientSubnet, EdeCode, Flags, HashKey, Message, Name, NameBuf, Question, Rcode, Rtype, Section,
    Ttl, Writer, rdata,
};
use zone::{Asked, Zones};

#[path = "second_level_store.rs"]
mod second_level_store;

use second_level_store::SecondLevelStore;

/// Microseconds after which the transport gives a query up.
const GIVEN_UP_US: u64 = 5_000_000;

/// What the calendar says when the clock starts.
pub(crate) const UNIX_SECONDS: u64 = 1_795_000_000;

/// One record of a zone.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) owner: NameBuf,
    pub(crate) rtype: Rtype,
    pub(crate) ttl: u32,
    pub(crate) data: Vec<u8>,
}

/// A zone: `NAME [TTL] TYPE DATA` in each line, names in full.
#[derive(Clone)]
pub(crate) struct Zone {
    apex: NameBuf,
    records: Vec<Record>,
}

pub(crate) fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

pub(crate) fn record(line: &str) -> Record {
    let mut words = line.split_whitespace().peekable();
    let owner = name(words.next().expect("an owner"));
    let ttl =
        words.next_if(|word| word.parse::<u32>().is_ok()).map_or(3600, |word| word.parse().expect("digits"));
    let rtype: Rtype = words.next().expect("a type").parse().expect("a type");
    let mut data = Vec::new();
    let text = words.collect::<Vec<_>>().join(" ");
    rdata::parse_text(rtype, &text, Some(Name::ROOT), &mut data).expect("data");
    Record { owner, rtype, ttl, data }
}

impl Zone {
    /// Reads a zone, and adds a SOA record.
    fn new(apex: &str, text: &str) -> Self {
        let below = if apex == "." { ".".to_string() } else { format!(".{apex}.") };
        let soa = format!("{apex} 900 SOA ns{below} admin{below} 1 7200 3600 86400 300");
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self { apex: name(apex), records: lines.map(record).chain([record(&soa)]).collect() }
    }

    fn of(&self, owner: Name<'_>, rtype: Rtype) -> Vec<&Record> {
        self.records
            .iter()
            .filter(|record| record.owner.as_name() == owner && record.rtype == rtype)
            .collect()
    }
}

/// What a server does with a query.
#[derive(Clone)]
pub(crate) enum Behaviour {
    /// Answers from its zones.
    Honest,
    /// Answers nothing.
    Dead,
    /// Answers everything with this.
    Rcode(Rcode),
    /// Answers honestly, without AA.
    WithoutAuthority,
    /// Answers this to names which only have others below them (an old fault).
    OnEmptyNonTerminals(Rcode),
    /// Puts records beside what it answers.
    Poisoner(Vec<(Section, Record)>),
    /// Answers honestly, but for some octets.
    Garbled,
    /// Answers everything with these records, AA set.
    Liar(Vec<(Section, Record)>),
    /// Answers with what this makes; with nothing if it makes none.
    Crafted(Crafted),
}

/// Makes octets of a reply, whatever they are, as long as they are a message.
pub(crate) type Crafted = Arc<dyn Fn(&Question<'_>) -> Option<Vec<u8>>>;

pub(crate) struct Server {
    pub(crate) zones: Vec<String>,
    pub(crate) latency_us: u64,
    pub(crate) behaviour: Behaviour,
    /// Of a thousand packets.
    pub(crate) lost_permille: u32,
    /// Signed zones, which are served instead of the others.
    pub(crate) signed: Option<Zones>,
    /// Whether referrals come without DS records and proofs.
    pub(crate) refers_bare: bool,
    /// For how many bits of clients' subnets it has an answer of its own: the subnet's address.
    /// `None`: it does not look at them.
    pub(crate) scope: Option<u8>,
}

/// A query that a server got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) to: IpAddr,
    pub(crate) port: u16,
    pub(crate) question: String,
    pub(crate) over_tcp: bool,
    /// What it was told of the client.
    pub(crate) subnet: Option<String>,
    /// Whether its letters are mixed.
    pub(crate) case: LetterCase,
}

/// What happens to a query of the worker with this number.
enum Event {
    Reply(usize, Ask, Vec<u8>),
    GivenUp(usize, Ask),
    /// What a group comes to: who answered, and what.
    Forwarded(usize, ForwardKey, Option<(IpAddr, Vec<u8>)>),
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) rcode: Rcode,
    /// Records of the answer section as text, in order.
    pub(crate) answer: Vec<String>,
    pub(crate) authority: Vec<String>,
    /// Name of the reason.
    pub(crate) failure: Option<String>,
    pub(crate) security: Security,
    /// Code of the Extended DNS Error: of the failure, or of why it is insecure.
    pub(crate) ede: Option<EdeCode>,
    /// Records of both sections for who sets DO.
    pub(crate) with_dnssec: Vec<String>,
    pub(crate) took_ms: u64,
    pub(crate) sends: usize,
}

pub(crate) struct World {
    pub(crate) zones: BTreeMap<String, Zone>,
    pub(crate) servers: BTreeMap<IpAddr, Server>,
    /// Addresses of forwarders, by the number of their group. The first is asked that was not
    /// refused, or the first.
    pub(crate) forwarders: BTreeMap<u16, Vec<IpAddr>>,
    /// The second-level cache.
    pub(crate) second_level: SecondLevelStore,
    settings: Settings,
    pub(crate) resolver: Resolver,
    /// Other workers with the same tables, numbered from one.
    others: Vec<Resolver>,
    pub(crate) tables: Tables,
    pub(crate) now: Moment,
    pub(crate) sent: Vec<Sent>,
    pub(crate) done: HashMap<Waiter, Arc<Resolution>>,
    events: BTreeMap<(Moment, usize), Event>,
    event_count: usize,
    rng: StdRng,
    /// Queries without a report: each is reported once.
    open: BTreeSet<(usize, resolver::AskKey)>,
    open_forwards: BTreeSet<(usize, ForwardKey)>,
    /// How long the resolver took, replies parsed; for benchmarks.
    pub(crate) spent: Duration,
}

fn tables() -> Tables {
    let hash_key = HashKey::new([3, 4]);
    let claims = Arc::<Claims>::default();
    Tables {
        rrsets: Arc::new(Rrsets::new(RrsetLimits::with_octets(4 << 20), hash_key)),
        servers: Arc::new(Servers::new(ServerLimits { lines: 4096, cookies: 8 }, hash_key)),
        proofs: Arc::new(Proofs::new(1 << 20, hash_key)),
        failures: Arc::default(),
        rates: Arc::default(),
        worker: claims.enter(),
        claims,
    }
}

/// Settings whose only root server is 192.0.2.1, without priming, and with the full name asked for.
pub(crate) fn plain_settings() -> Settings {
    let hint = Hint { name: HeapName::new(name("a.root").as_name()), addresses: vec![ip("192.0.2.1")] };
    Settings {
        hints: vec![hint],
        priming: false,
        minimisation: resolver::Minimisation::Off,
        validation: resolver::Validation::Off,
        ..Settings::default()
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(plain_settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let (tables, now) = (tables(), Moment(1_000_000_000));
        let mut resolver = Resolver::new(settings.clone(), tables.clone(), StdRng::seed_from_u64(1));
        resolver.set_time(UNIX_SECONDS, now);
        Self {
            zones: BTreeMap::new(),
            servers: BTreeMap::new(),
            forwarders: BTreeMap::new(),
            second_level: SecondLevelStore::default(),
            settings,
            resolver,
            others: Vec::new(),
            tables,
            now,
            sent: Vec::new(),
            done: HashMap::new(),
            events: BTreeMap::new(),
            event_count: 0,
            rng: StdRng::seed_from_u64(2),
            open: BTreeSet::new(),
            open_forwards: BTreeSet::new(),
            spent: Duration::ZERO,
        }
    }

    /// Lets another worker go on with the same tables.
    pub(crate) fn change_worker(&mut self) {
        let (settings, tables) = (self.settings.clone(), self.tables.clone());
        self.resolver = Resolver::new(settings, tables, StdRng::seed_from_u64(3));
        self.resolver.set_time(UNIX_SECONDS, Moment(1_000_000_000));
    }

    /// Forgets everything that was learned.
    pub(crate) fn forget(&mut self) {
        self.tables = tables();
        self.change_worker();
    }

    /// Has another worker work beside the first one.
    pub(crate) fn add_worker(&mut self) {
        let number = self.others.len() as u16 + 1;
        let tables = Tables { worker: self.tables.claims.enter(), ..self.tables.clone() };
        let rng = StdRng::seed_from_u64(u64::from(number) + 100);
        let mut resolver = Resolver::new(self.settings.clone(), tables, rng);
        resolver.set_time(UNIX_SECONDS, Moment(1_000_000_000));
        self.others.push(resolver);
    }

    fn worker(&mut self, number: usize) -> &mut Resolver {
        match number.checked_sub(1) {
            Some(other) => &mut self.others[other],
            None => &mut self.resolver,
        }
    }

    fn workers(&mut self) -> usize {
        self.others.len() + 1
    }

    /// Has one of several workers look for an answer.
    pub(crate) fn want_of(&mut self, worker: usize, text: &str, rtype: Rtype, waiter: u32) {
        let (qname, now) = (name(text), self.now);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        self.worker(worker).want(&question, Waiter(waiter), now);
        self.carry_out();
    }

    /// Has other packets lost, and other octets changed.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.rng = StdRng::seed_from_u64(seed);
    }

    /// Adds a zone that servers at these addresses serve, 10 ms away.
    pub(crate) fn zone(&mut self, apex: &str, addresses: &[&str], text: &str) -> &mut Self {
        self.zones.insert(apex.to_string(), Zone::new(apex, text));
        for address in addresses {
            self.server(address).zones.push(apex.to_string());
        }
        self
    }

    pub(crate) fn server(&mut self, address: &str) -> &mut Server {
        self.servers.entry(ip(address)).or_insert(Server {
            zones: Vec::new(),
            latency_us: 10_000,
            behaviour: Behaviour::Honest,
            lost_permille: 0,
            signed: None,
            refers_bare: false,
            scope: None,
        })
    }

    pub(crate) fn want(&mut self, text: &str, rtype: Rtype, waiter: u32) {
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        self.timed(0, |resolver, now| resolver.want(&question, Waiter(waiter), now));
        self.carry_out();
    }

    fn timed(&mut self, worker: usize, work: impl FnOnce(&mut Resolver, Moment)) {
        let (begun, now) = (Instant::now(), self.now);
        work(self.worker(worker), now);
        self.spent += begun.elapsed();
    }

    /// Resolves a question, and lets all that was sent for it come to its end.
    pub(crate) fn resolve(&mut self, text: &str, rtype: Rtype) -> Seen {
        let seen = self.resolve_now(text, rtype);
        self.settle();
        seen
    }

    /// Resolves a question. Queries that are late go on being late.
    pub(crate) fn resolve_now(&mut self, text: &str, rtype: Rtype) -> Seen {
        let waiter = u32::MAX - self.event_count as u32;
        let (began, sent) = (self.now, self.sent.len());
        self.want(text, rtype, waiter);
        while !self.done.contains_key(&Waiter(waiter)) {
            assert!(self.step(), "{text}: nothing is left to happen");
        }
        let took_ms = self.now.since_us(began) / 1000;
        let resolution = self.done.remove(&Waiter(waiter)).expect("it is done");
        self.seen(&resolution, text, rtype, took_ms, self.sent.len() - sent)
    }

    /// Returns what somebody says who knows all zones: response code and answer section.
    pub(crate) fn truth(&self, text: &str, rtype: Rtype) -> (Rcode, Vec<String>) {
        let all = Server {
            zones: self.zones.keys().cloned().collect(),
            latency_us: 0,
            behaviour: Behaviour::Honest,
            lost_permille: 0,
            signed: None,
            refers_bare: false,
            scope: None,
        };
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        let mut lines = Lines { rcode: Rcode::NOERROR, is_authority: true, records: Vec::new() };
        self.answer(&all, &question, &mut lines);
        lines.records.sort_by_key(|&(section, _)| section as u8);
        let reply = lines.write(&question);
        let message = Message::parse(&reply).expect("well formed");
        let answer = message.records().filter(|record| record.section == Section::Answer);
        (message.rcode(), answer.map(|record| show(&message, &record)).collect())
    }

    fn seen(&self, resolution: &Resolution, text: &str, rtype: Rtype, took_ms: u64, sends: usize) -> Seen {
        // What the client would get, read again.
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        let mut out = vec![0; 65_535];
        let len = resolution.write(&question, true, &mut out).expect("it fits");
        let message = Message::parse(&out[..len]).expect("it is well formed");
        let with_dnssec = message.records().map(|record| show(&message, &record)).collect();
        let len = resolution.write(&question, false, &mut out).expect("it fits");
        let message = Message::parse(&out[..len]).expect("it is well formed");
        assert_eq!(message.rcode(), resolution.rcode);
        let section = |wanted: Section| {
            let records = message.records().filter(move |record| record.section == wanted);
            records.map(|record| show(&message, &record)).collect()
        };
        Seen {
            rcode: message.rcode(),
            answer: section(Section::Answer),
            authority: section(Section::Authority),
            failure: resolution.failure.as_ref().map(|failure| failure.reason.name().to_string()),
            security: resolution.security,
            ede: resolution.failure.as_ref().map(Failure::ede).or(resolution.insecure_because),
            with_dnssec,
            took_ms,
            sends,
        }
    }

    /// Resolves a question, and returns its trace.
    pub(crate) fn trace(&mut self, text: &str, rtype: Rtype) -> Vec<String> {
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        self.resolver.want_traced(&question, Waiter(0), self.now);
        self.carry_out();
        self.settle();
        let resolution = self.done.remove(&Waiter(0)).expect("it is done");
        resolution.trace.iter().map(ToString::to_string).collect()
    }

    /// Lets everything happen that is on its way.
    pub(crate) fn settle(&mut self) {
        while self.step() {}
        for worker in 0..self.workers() {
            assert_eq!(self.worker(worker).active(), 0, "somebody waits for what never comes");
            assert_eq!(self.worker(worker).next_due(), None);
        }
        assert!(self.open.is_empty() && self.open_forwards.is_empty());
    }

    pub(crate) fn pass_ms(&mut self, ms: u32) {
        let until = self.now.after_ms(ms);
        while self.next_at().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = until;
    }

    fn next_at(&self) -> Option<Moment> {
        let event = self.events.first_key_value().map(|(&(at, _), _)| at);
        let others = self.others.iter().filter_map(Resolver::next_due);
        match (event, others.chain(self.resolver.next_due()).min()) {
            (Some(event), Some(due)) => Some(event.min(due)),
            (event, due) => event.or(due),
        }
    }

    /// Lets the next thing happen; returns whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let Some(at) = self.next_at() else { return false };
        self.now = self.now.max(at);
        let now = self.now;
        let is_due = |resolver: &Resolver| resolver.next_due().is_some_and(|due| due <= now);
        if let Some(worker) = (0..self.workers()).find(|&number| is_due(self.worker(number))) {
            self.timed(worker, Resolver::due);
        } else if let Some((_, event)) = self.events.pop_first() {
            match event {
                Event::Reply(worker, ask, reply) => {
                    assert!(self.open.remove(&(worker, ask.key)));
                    let arrival = if ask.how.over_tcp { Arrival::Tcp } else { Arrival::Udp };
                    self.timed(worker, |resolver, now| {
                        let message = Message::parse(&reply).expect("well formed");
                        resolver.heard(ask.key, &message, arrival, now);
                    });
                }
                Event::Forwarded(worker, key, outcome) => {
                    assert!(self.open_forwards.remove(&(worker, key)));
                    self.timed(worker, |resolver, now| match &outcome {
                        Some((server, reply)) => {
                            let message = Message::parse(reply).expect("well formed");
                            let server = Some(SocketAddr::new(*server, 53));
                            resolver.heard_forwarders(key, &message, server, now);
                        }
                        None => resolver.forwarders_failed(key, Unanswered::Timeout, now),
                    });
                }
                Event::GivenUp(worker, ask) => {
                    assert!(self.open.remove(&(worker, ask.key)));
                    self.timed(worker, |resolver, now| {
                        resolver.unanswered(ask.key, Unanswered::Timeout, now);
                    });
                }
            }
        }
        self.carry_out();
        true
    }

    /// Does what the resolver wants, and lets everything happen that comes of it.
    pub(crate) fn settle_effects(&mut self) {
        self.carry_out();
        self.settle();
    }

    pub(crate) fn carry_out(&mut self) {
        for worker in 0..self.workers() {
            while let Some(effect) = self.worker(worker).next_effect() {
                match effect {
                    Effect::Ask(ask) => self.ask(worker, ask),
                    Effect::Forward(forward) => self.forward(worker, &forward),
                    Effect::LookUp(look_up) => self.look_up(worker, &look_up),
                    Effect::Store(store) => self.store(&store),
                    Effect::Done { waiter, resolution } => {
                        assert!(self.done.insert(waiter, resolution).is_none(), "told twice");
                    }
                }
            }
        }
    }

    fn ask(&mut self, worker: usize, ask: Ask) {
        assert!(self.open.insert((worker, ask.key)), "one key for two queries");
        self.sent.push(Sent {
            to: ask.address.ip(),
            port: ask.address.port(),
            question: format!("{} {}", ask.qname, ask.qtype),
            over_tcp: ask.how.over_tcp,
            case: ask.how.case,
            subnet: ask.subnet.map(|subnet| {
                let [a, b, c, d, ..] = subnet.address;
                format!("{a}.{b}.{c}.{d}/{}", subnet.prefix)
            }),
        });
        let question = Question { qname: ask.qname.as_name(), qtype: ask.qtype, qclass: Class::IN };
        let mut reply = self.reply(ask.address.ip(), &question, ask.how.dnssec_ok);
        let scope = self.servers.get(&ask.address.ip()).and_then(|server| server.scope);
        if let (Some((_, reply)), Some(subnet), Some(scope)) = (&mut reply, ask.subnet, scope) {
            tailor(reply, &question, subnet, scope);
        }
        let (after_us, event) = match reply {
            Some((latency_us, reply)) => (latency_us, Event::Reply(worker, ask, reply)),
            None => (GIVEN_UP_US, Event::GivenUp(worker, ask)),
        };
        self.event_count += 1;
        self.events.insert((self.now.after_us(after_us), self.event_count), event);
    }

    /// Asks a group, which goes on with its next server where one is silent.
    fn forward(&mut self, worker: usize, forward: &Forward) {
        assert!(self.open_forwards.insert((worker, forward.key)), "one key for two questions");
        let group = self.forwarders[&forward.forwarders.0].clone();
        let is_refused = |server: &IpAddr| forward.refused.contains(&SocketAddr::new(*server, 53));
        let others: Vec<IpAddr> = group.iter().copied().filter(|server| !is_refused(server)).collect();
        let asked = if others.is_empty() { group } else { others };
        let question = Question { qname: forward.qname.as_name(), qtype: forward.qtype, qclass: Class::IN };
        let (mut after_us, mut outcome) = (0, None);
        for server in asked {
            self.sent.push(Sent {
                to: server,
                port: 53,
                question: format!("{} {}", forward.qname, forward.qtype),
                over_tcp: false,
                subnet: None,
                case: LetterCase::Unknown,
            });
            match self.reply(server, &question, forward.wants_signatures) {
                Some((latency_us, mut reply)) => {
                    // It has the answer from elsewhere: RA, and no AA.
                    (reply[2], reply[3]) = (reply[2] & !0x04, reply[3] | 0x80);
                    (after_us, outcome) = (after_us + latency_us, Some((server, reply)));
                    break;
                }
                None => after_us += GIVEN_UP_US / 5,
            }
        }
        self.event_count += 1;
        let event = Event::Forwarded(worker, forward.key, outcome);
        self.events.insert((self.now.after_us(after_us), self.event_count), event);
    }

    fn reply(&mut self, address: IpAddr, question: &Question<'_>, dnssec_ok: bool) -> Option<(u64, Vec<u8>)> {
        let server = self.servers.get(&address)?;
        if self.rng.random_range(0..1000) < server.lost_permille {
            return None;
        }
        if let Behaviour::Crafted(craft) = &server.behaviour {
            return Some((server.latency_us, craft(question)?));
        }
        if let (Some(zones), Behaviour::Honest | Behaviour::Garbled) = (&server.signed, &server.behaviour) {
            let full = signed_reply(zones, question, dnssec_ok);
            let is_referral = Message::parse(&full).is_ok_and(|reply| !reply.header.flags.has(Flags::AA));
            let bare = server.refers_bare && is_referral;
            let reply = if bare { signed_reply(zones, question, false) } else { full };
            let is_garbled = matches!(server.behaviour, Behaviour::Garbled);
            let latency_us = server.latency_us;
            return Some((latency_us, if is_garbled { self.garbled(reply)? } else { reply }));
        }
        let mut lines = Lines { rcode: Rcode::NOERROR, is_authority: true, records: Vec::new() };
        match &server.behaviour {
            Behaviour::Dead => return None,
            Behaviour::Rcode(rcode) => lines.rcode = *rcode,
            Behaviour::Liar(records) => lines.records.clone_from(records),
            _ => self.answer(server, question, &mut lines),
        }
        match &server.behaviour {
            Behaviour::WithoutAuthority => lines.is_authority = false,
            Behaviour::Poisoner(records) => lines.records.extend(records.iter().cloned()),
            Behaviour::OnEmptyNonTerminals(rcode) if lines.is_empty_non_terminal() => lines.rcode = *rcode,
            _ => {}
        }
        lines.records.sort_by_key(|&(section, _)| section as u8);
        let mut reply = lines.write(question);
        let latency_us = server.latency_us;
        if matches!(server.behaviour, Behaviour::Garbled) {
            reply = self.garbled(reply)?;
        }
        Some((latency_us, reply))
    }

    /// Changes some octets; the transport passes on what can be read.
    fn garbled(&mut self, mut reply: Vec<u8>) -> Option<Vec<u8>> {
        for _ in 0..self.rng.random_range(1..4) {
            let at = self.rng.random_range(2..reply.len());
            reply[at] ^= 1 << self.rng.random_range(0..8);
        }
        Message::parse(&reply).is_ok().then_some(reply)
    }

    /// Answers as RFC 1034 §4.3.2 says.
    fn answer(&self, server: &Server, question: &Question<'_>, lines: &mut Lines) {
        let closest = |qname: Name<'_>| {
            let zones = server.zones.iter().filter_map(|apex| self.zones.get(apex));
            let above = zones.filter(|zone| {
                let is_parents =
                    question.qtype == Rtype::DS && zone.apex.as_name() == qname && !qname.is_root();
                qname.is_at_or_below(zone.apex.as_name()) && !is_parents
            });
            above.max_by_key(|zone| zone.apex.as_name().label_count())
        };
        let mut qname = question.qname.to_buf();
        for _ in 0..20 {
            let Some(zone) = closest(qname.as_name()) else {
                if lines.records.is_empty() {
                    (lines.rcode, lines.is_authority) = (Rcode::REFUSED, false);
                }
                return;
            };
            match zone.next(question, &qname, lines) {
                Some(target) => qname = target,
                None => return,
            }
        }
    }
}

impl Zone {
    /// Adds what the zone has for a name; returns what it is an alias for.
    fn next(&self, question: &Question<'_>, qname: &NameBuf, lines: &mut Lines) -> Option<NameBuf> {
        let (qname, apex) = (qname.as_name(), self.apex.as_name());
        // AA is about the first name of a chain (RFC 1035 §4.1.1).
        let is_first = lines.records.is_empty();
        let mut add = |section, records: &[&Record]| {
            lines.records.extend(records.iter().map(|&record| (section, record.clone())));
        };
        for labels in apex.label_count() + 1..=qname.label_count() {
            let owner = qname.suffix(labels);
            let is_ds = question.qtype == Rtype::DS && owner == qname;
            let servers = self.of(owner, Rtype::NS);
            if !servers.is_empty() && !is_ds {
                add(Section::Authority, &servers);
                for server in &servers {
                    let (target, _) = Name::parse(&server.data).expect("a name");
                    add(Section::Additional, &self.of(target, Rtype::A));
                    add(Section::Additional, &self.of(target, Rtype::AAAA));
                }
                lines.is_authority &= !is_first;
                return None;
            }
            if let [dname] = self.of(owner, Rtype::DNAME)[..]
                && owner != qname
            {
                add(Section::Answer, &[dname]);
                let (target, _) = Name::parse(&dname.data).expect("a name");
                let kept = &qname.as_bytes()[..qname.len() - owner.len()];
                let Ok(target) = NameBuf::below(kept, target) else {
                    lines.rcode = Rcode::YXDOMAIN;
                    return None;
                };
                let data = target.as_name().as_bytes().to_vec();
                let cname = Record { owner: qname.to_buf(), rtype: Rtype::CNAME, ttl: dname.ttl, data };
                add(Section::Answer, &[&cname]);
                return (question.qtype != Rtype::CNAME).then_some(target);
            }
        }
        let found = self.of(qname, question.qtype);
        if !found.is_empty() {
            add(Section::Answer, &found);
            for server in found.iter().filter(|record| record.rtype == Rtype::NS) {
                let (target, _) = Name::parse(&server.data).expect("a name");
                add(Section::Additional, &self.of(target, Rtype::A));
                add(Section::Additional, &self.of(target, Rtype::AAAA));
            }
            return None;
        }
        if let [cname] = self.of(qname, Rtype::CNAME)[..] {
            add(Section::Answer, &[cname]);
            return Name::parse(&cname.data).ok().map(|(target, _)| target.to_buf());
        }
        let exists = self.records.iter().any(|record| record.owner.as_name().is_at_or_below(qname));
        if !exists {
            lines.rcode = Rcode::NXDOMAIN;
        }
        add(Section::Authority, &self.of(apex, Rtype::SOA));
        None
    }
}

/// A reply in the making.
struct Lines {
    rcode: Rcode,
    is_authority: bool,
    records: Vec<(Section, Record)>,
}

impl Lines {
    fn is_empty_non_terminal(&self) -> bool {
        let is_soa = |(_, record): &(Section, Record)| record.rtype == Rtype::SOA;
        self.rcode == Rcode::NOERROR && !self.records.is_empty() && self.records.iter().all(is_soa)
    }

    fn write(&self, question: &Question<'_>) -> Vec<u8> {
        let mut out = vec![0; 65_535];
        let flags = Flags::QR.with_rcode(self.rcode);
        let flags = if self.is_authority { flags.with(Flags::AA) } else { flags };
        let mut writer = Writer::new(&mut out, usize::MAX, 0, flags);
        writer.question(question).expect("room");
        for (section, record) in &self.records {
            let ttl = Ttl::new(record.ttl);
            writer
                .record(*section, record.owner.as_name(), record.rtype, Class::IN, ttl, |writer| {
                    writer.bytes(&record.data)
                })
                .expect("room");
        }
        let len = writer.finish();
        out.truncate(len);
        out
    }
}

/// Writes a reply with these records, AA set.
pub(crate) fn reply_of(question: &Question<'_>, records: &[(Section, Record)]) -> Vec<u8> {
    Lines { rcode: Rcode::NOERROR, is_authority: true, records: records.to_vec() }.write(question)
}

pub(crate) fn signed_reply(zones: &Zones, question: &Question<'_>, wants_dnssec: bool) -> Vec<u8> {
    let mut out = vec![0; 65_535];
    let mut writer = Writer::new(&mut out, usize::MAX, 0, Flags::QR);
    writer.question(question).expect("room");
    let answered = zones.answer(&Asked::new(question.qname, question.qtype, wants_dnssec), &mut writer);
    let rcode = answered.map_or(Rcode::REFUSED, |answered| answered.rcode);
    let flags = Flags::QR.with_rcode(rcode);
    let is_authority = answered.is_some_and(|answered| answered.is_authoritative);
    writer.set_flags(if is_authority { flags.with(Flags::AA) } else { flags });
    let len = writer.finish();
    out.truncate(len);
    out
}

pub(crate) fn show(message: &Message<'_>, record: &wire::Record<'_>) -> String {
    let data = rdata::display(record.rtype, message.as_bytes(), record.rdata_at..record.end());
    format!("{} {} {} {data}", record.owner, record.ttl(), record.rtype)
}

/// Puts the address of a subnet into an answer, and says for how many bits that is.
fn tailor(reply: &mut Vec<u8>, question: &Question<'_>, subnet: ClientSubnet, scope: u8) {
    let message = Message::parse(reply).expect("well formed");
    let is_answer = message.records().any(|record| record.section == Section::Answer);
    if !is_answer || message.rcode() != Rcode::NOERROR {
        return;
    }
    let mut out = vec![0; 4096];
    let mut writer = Writer::new(&mut out, 4096, 0, message.header.flags);
    writer.question(question).expect("room");
    let address = subnet.cut(scope, scope).address;
    writer
        .record(Section::Answer, question.qname, Rtype::A, Class::IN, Ttl::new(300), |w| {
            w.bytes(&address[..4])
        })
        .expect("room");
    let octets = usize::from(subnet.prefix).div_ceil(8);
    let data = [&[0, subnet.family, subnet.prefix, scope][..], &subnet.address[..octets]].concat();
    writer
        .opt(1232, Rcode::NOERROR, false, |w| w.option(wire::OptionCode::CLIENT_SUBNET, &data))
        .expect("room");
    let len = writer.finish();
    out.truncate(len);
    *reply = out;
}
