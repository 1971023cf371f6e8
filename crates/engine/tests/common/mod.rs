//! A server in memory: an engine on a small program, and an upstream made of bytes.

#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test and bench uses a part of it")]

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;

use cache::{Cache, Limits};
use engine::gate::Gate;
use engine::gate::prefix_set::PrefixSet;
use engine::gate::rate::RateTable;
use engine::local::LocalBuilder;
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::forward::ForwardStep;
use engine::program::{Op, Program};
use engine::{
    Authority, Client, Counters, Engine, ListenerId, Now, Outcome, PoolId, Reply, Share, Snapshot,
    SnapshotCell, Suspended, Transport, Verdict,
};
use wire::Prefix;
use wire::{Class, Flags, HashKey, Header, Message, NameBuf, Question, Rcode, Rtype, Section, Ttl, Writer};
use zone::Zones;

/// What everything here hashes with.
pub const KEY: HashKey = HashKey::new([11, 22]);
/// When everything here begins.
pub const START: u32 = 1_700_000_000;

/// Returns the name written as `text`; no escapes.
pub fn name(text: &str) -> NameBuf {
    let mut name = NameBuf::root();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        name.push_label(label.as_bytes()).expect("a name that fits");
    }
    name
}

/// UDP size, DO, options.
type Edns = (u16, bool, Vec<(u16, Vec<u8>)>);

/// A query in the making.
pub struct Ask {
    pub id: u16,
    pub flags: Flags,
    pub name: NameBuf,
    pub qtype: Rtype,
    pub qclass: Class,
    pub edns: Option<Edns>,
}

impl Ask {
    pub fn new(text: &str, qtype: Rtype) -> Self {
        Self { id: 0x1234, flags: Flags::RD, name: name(text), qtype, qclass: Class::IN, edns: None }
    }

    pub fn edns(mut self, size: u16) -> Self {
        self.edns = Some((size, false, vec![]));
        self
    }

    pub fn option(mut self, code: u16, data: &[u8]) -> Self {
        self.edns.get_or_insert((1232, false, vec![])).2.push((code, data.to_vec()));
        self
    }

    pub fn dnssec(mut self) -> Self {
        self.edns.get_or_insert((1232, false, vec![])).1 = true;
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut buf = [0; 1024];
        let mut writer = Writer::new(&mut buf, 1024, self.id, self.flags);
        let question = Question { qname: self.name.as_name(), qtype: self.qtype, qclass: self.qclass };
        writer.question(&question).expect("room");
        if let Some((size, wants_dnssec, options)) = &self.edns {
            writer
                .opt(*size, Rcode::NOERROR, *wants_dnssec, |w| {
                    options.iter().try_for_each(|(code, data)| w.option(wire::OptionCode(*code), data))
                })
                .expect("room");
        }
        let len = writer.finish();
        buf[..len].to_vec()
    }
}

/// Writes an upstream's reply.
pub fn upstream(ask: &Ask, rcode: Rcode, records: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buf = [0; 4096];
    let flags = Flags::QR.with(Flags::RD).with(Flags::RA).with_rcode(rcode);
    let mut writer = Writer::new(&mut buf, 4096, 7, flags);
    let question = Question { qname: ask.name.as_name(), qtype: ask.qtype, qclass: ask.qclass };
    writer.question(&question).expect("room");
    records(&mut writer);
    writer.opt(1232, rcode, false, |_| Ok(())).expect("room");
    let len = writer.finish();
    buf[..len].to_vec()
}

/// Returns an upstream's reply with one address.
pub fn with_address(ask: &Ask, ttl: u32, octets: [u8; 4]) -> Vec<u8> {
    upstream(ask, Rcode::NOERROR, |w| {
        w.record(Section::Answer, ask.name.as_name(), Rtype::A, Class::IN, Ttl::new(ttl), |w| {
            w.bytes(&octets)
        })
        .expect("room");
    })
}

/// Returns an upstream's NXDOMAIN or NODATA, with the SOA's TTL and MINIMUM.
pub fn negative(ask: &Ask, rcode: Rcode, soa_ttl: u32, minimum: u32) -> Vec<u8> {
    upstream(ask, rcode, |w| {
        // The zone that the name is in: an SOA of another one is not believed.
        let is_ours = ask.name.to_string().to_ascii_lowercase().ends_with("example.org.");
        let zone = if is_ours { name("example.org") } else { name("example.net") };
        w.record(Section::Authority, zone.as_name(), Rtype::SOA, Class::IN, Ttl::new(soa_ttl), |w| {
            w.name(zone.as_name())?;
            w.name(zone.as_name())?;
            for number in [1, 3600, 600, 86400, minimum] {
                w.bytes(&u32::to_be_bytes(number))?;
            }
            Ok(())
        })
        .expect("room");
    })
}

/// The server.
pub struct Server {
    pub engine: Engine,
    cell: Arc<SnapshotCell>,
    pub cache: Arc<Cache>,
    pub counters: Arc<Counters>,
    pub client: Client,
    now: u32,
    /// By how much the clock on the wall is ahead.
    wall_step: i64,
}

/// The policy most tests use: local names, cache, forward.
pub fn usual(cache: &Arc<Cache>, rules: CacheRules) -> Vec<Op> {
    let mut local = LocalBuilder::new();
    local.address(name("nas.home.arpa").as_name(), "192.0.2.10".parse().expect("an address"), Ttl::new(60));
    engine::special::add(&mut local);
    vec![
        Op::Local(Arc::new(local.compile(KEY, Ttl::new(60)))),
        Op::Cache(CacheStep { cache: Arc::clone(cache), rules, view: 0, continues: false }),
        Op::Forward(ForwardStep {
            pool: PoolId(0),
            members: 0,
            forwards_client_subnet: false,
            trusts_ad: false,
        }),
    ]
}

pub fn gate() -> Gate {
    let any = |address: &str| Prefix::new(address.parse().expect("an address"), 0);
    Gate {
        allowed: PrefixSet::compile([any("0.0.0.0"), any("::")]),
        banned: PrefixSet::default(),
        banned_live: None,
        banned_now: Arc::new(engine::gate::live::LiveBans::new(KEY)),
        query_octets_max: u16::MAX,
        cookies: None,
        cookie_required: None,
        rate: None,
        table: Arc::new(RateTable::new(1024, 3)),
    }
}

pub fn client(address: &str) -> Client {
    Client {
        address: address.parse::<IpAddr>().expect("an address"),
        port: 5353,
        transport: Transport::Udp,
        verified: false,
        reply_octets_max: u16::MAX,
        keepalive: None,
        listener: ListenerId::default(),
        connection: 0,
        certificate: None,
    }
}

/// What a server has whose settings say little: like there, the way of queries is not noted.
fn snapshot(gate: Gate, ops: Vec<Op>) -> Snapshot {
    Snapshot {
        key: KEY,
        gate,
        program: Program::new(ops).expect("a program"),
        trusted_peers: Default::default(),
        connection_tests: Box::default(),
        chaos: engine::chaos::Chaos::default(),
        udp_octets_max: 1232,
        udp_octets_announced: 1232,
        padding_octets: 468,
        extended_errors: true,
        takes_dnssec_ok: true,
        fills_truncated: false,
        rotates: false,
        minimal_any: true,
        recursion_available: true,
        number: 1,
        keeps_path: false,
        taps_clients: false,
        refused_event: None,
        counts_details: false,
    }
}

impl Server {
    pub fn new(rules: CacheRules) -> Self {
        Self::with(gate(), |cache| usual(cache, rules))
    }

    pub fn with(gate: Gate, ops: impl FnOnce(&Arc<Cache>) -> Vec<Op>) -> Self {
        Self::with_cache(gate, 4 << 20, ops)
    }

    pub fn with_cache(gate: Gate, octets_max: usize, ops: impl FnOnce(&Arc<Cache>) -> Vec<Op>) -> Self {
        let cache = Arc::new(Cache::new(Limits { octets_max }, KEY));
        let snapshot = snapshot(gate, ops(&cache));
        Self::on(cache, snapshot)
    }

    /// Returns a server that notes each query's way through the policy.
    pub fn noting_path(gate: Gate, ops: impl FnOnce(&Arc<Cache>) -> Vec<Op>) -> Self {
        let cache = Arc::new(Cache::new(Limits { octets_max: 4 << 20 }, KEY));
        let snapshot = Snapshot { keeps_path: true, ..snapshot(gate, ops(&cache)) };
        Self::on(cache, snapshot)
    }

    /// Returns one with a cache that is there.
    pub fn noting_path_on(cache: &Arc<Cache>, ops: Vec<Op>) -> Self {
        Self::on(Arc::clone(cache), Snapshot { keeps_path: true, ..snapshot(gate(), ops) })
    }

    /// Takes other steps from now on.
    pub fn publish(&mut self, ops: Vec<Op>) {
        self.cell.publish(Arc::new(Snapshot { keeps_path: true, ..snapshot(gate(), ops) }));
        self.wait(0);
    }

    /// Returns a server whose replies that are too large have as many RRsets as fit.
    pub fn filling_truncated() -> Self {
        let cache = Arc::new(Cache::new(Limits { octets_max: 4 << 20 }, KEY));
        let snapshot = snapshot(gate(), usual(&cache, CacheRules::default()));
        Self::on(cache, Snapshot { fills_truncated: true, ..snapshot })
    }

    /// Returns a server that tells clients so many octets may be in a query.
    pub fn announcing(octets: u16) -> Self {
        let cache = Arc::new(Cache::new(Limits { octets_max: 4 << 20 }, KEY));
        let snapshot = snapshot(gate(), usual(&cache, CacheRules::default()));
        Self::on(cache, Snapshot { udp_octets_announced: octets, ..snapshot })
    }

    /// Returns a server with a program that is more than steps.
    pub fn of_program(gate: Gate, program: Program) -> Self {
        let cache = Arc::new(Cache::new(Limits { octets_max: 1 << 16 }, KEY));
        let snapshot = Snapshot { program, ..snapshot(gate, vec![]) };
        Self::on(cache, snapshot)
    }

    fn on(cache: Arc<Cache>, snapshot: Snapshot) -> Self {
        let (reclaim, _) = channel();
        let counters = Arc::new(Counters::default());
        let cell = Arc::new(SnapshotCell::new(Arc::new(snapshot), reclaim));
        let mut server = Self {
            engine: Engine::new(Arc::clone(&cell), Arc::clone(&counters)),
            cell,
            cache,
            counters,
            client: client("192.0.2.1"),
            now: START,
            wall_step: 0,
        };
        server.wait(0);
        server
    }

    /// Serves zones that nobody manages.
    #[must_use]
    pub fn serving(mut self, zones: Arc<Zones>) -> Self {
        self.cell.publish_authority(Some(Arc::new(Authority::unmanaged(zones))));
        self.wait(0);
        self
    }

    /// Lets time pass.
    pub fn wait(&mut self, seconds: u32) {
        self.now += seconds;
        let monotonic_ms = u64::from(self.now - START) * 1000 + 1_000_000;
        let cache = cache::Now(self.now);
        let unix_seconds =
            i64::from(self.now).saturating_add(self.wall_step).clamp(0, u32::MAX.into()) as u32;
        self.engine.begin(Now { unix_seconds, monotonic_ms, cache, ..Now::default() });
    }

    /// Somebody sets the clock on the wall.
    pub fn step_wall(&mut self, seconds: i64) {
        self.wall_step = self.wall_step.saturating_add(seconds);
        self.wait(0);
    }

    pub fn ask(&mut self, ask: &Ask) -> Asked {
        let mut buf = vec![0; 4096];
        let mut reply = Reply::new(&mut buf);
        match self.engine.answer(&ask.bytes(), &self.client, &mut reply) {
            Verdict::Answered => Asked::Answered(reply.bytes().to_vec()),
            Verdict::Drop | Verdict::Stream(_) => Asked::Dropped,
            Verdict::Defer(suspended) => Asked::Deferred(suspended),
        }
    }

    /// Asks, expects to wait, and goes on with what the upstream says.
    pub fn fetch(&mut self, ask: &Ask, reply: &[u8]) -> Vec<u8> {
        let suspended = self.ask(ask).deferred();
        self.resume(suspended, Ok(reply))
    }

    pub fn resume(&mut self, suspended: Box<Suspended>, outcome: Result<&[u8], engine::Failure>) -> Vec<u8> {
        let message;
        let outcome = match outcome {
            Ok(bytes) => {
                message = Message::parse(bytes).expect("well formed");
                Outcome::Reply(&message)
            }
            Err(failure) => Outcome::Failed(failure),
        };
        let mut buf = vec![0; 4096];
        let mut reply = Reply::new(&mut buf);
        match self.engine.resume(suspended, outcome, Share::First, &mut reply) {
            Verdict::Answered => reply.bytes().to_vec(),
            Verdict::Drop | Verdict::Stream(_) => vec![],
            Verdict::Defer(_) => panic!("deferred again"),
        }
    }
}

/// What came of a question.
pub enum Asked {
    Answered(Vec<u8>),
    Dropped,
    Deferred(Box<Suspended>),
}

impl Asked {
    pub fn answered(self) -> Vec<u8> {
        match self {
            Self::Answered(bytes) => bytes,
            Self::Dropped => panic!("dropped"),
            Self::Deferred(_) => panic!("deferred"),
        }
    }

    pub fn deferred(self) -> Box<Suspended> {
        match self {
            Self::Deferred(suspended) => suspended,
            Self::Dropped => panic!("dropped"),
            Self::Answered(bytes) => panic!("answered {bytes:02x?}"),
        }
    }

    pub fn is_dropped(&self) -> bool {
        matches!(self, Self::Dropped)
    }
}

/// A reply in a form that tests can compare.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub rcode: Rcode,
    /// Type, TTL and data of the records of the answer section.
    pub answers: Vec<(u16, u32, Vec<u8>)>,
    /// Type and TTL of the records of the authority section.
    pub authorities: Vec<(u16, u32)>,
    /// The Extended DNS Error.
    pub ede: Option<u16>,
    pub flags: Flags,
}

pub fn seen(reply: &[u8]) -> Seen {
    let message = Message::parse(reply).expect("a well-formed reply");
    let of = |section| message.records().filter(move |record| record.section == section);
    Seen {
        rcode: message.rcode(),
        answers: of(Section::Answer).map(|r| (r.rtype.0, r.ttl_raw, r.rdata.to_vec())).collect(),
        authorities: of(Section::Authority).map(|r| (r.rtype.0, r.ttl_raw)).collect(),
        ede: message
            .edns
            .and_then(|edns| edns.option(wire::OptionCode::EDE))
            .map(|data| u16::from_be_bytes([data[0], data[1]])),
        flags: Flags(message.header.flags.0 & !0xf),
    }
}

/// Returns the Extended DNS Errors of a reply.
pub fn errors(reply: &[u8]) -> Vec<(u16, String)> {
    let message = Message::parse(reply).expect("a well-formed reply");
    let options = message.edns.into_iter().flat_map(|edns| edns.options());
    options
        .filter(|option| option.code == wire::OptionCode::EDE)
        .map(|option| {
            let (code, text) = option.data.split_at(2);
            (u16::from_be_bytes([code[0], code[1]]), String::from_utf8_lossy(text).into_owned())
        })
        .collect()
}

/// Returns the header of a reply.
pub fn header(reply: &[u8]) -> Header {
    Header::parse(reply).expect("a header")
}
