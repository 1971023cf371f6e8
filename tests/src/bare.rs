//! An engine without the world around it: nobody listens and nobody fetches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, mpsc};

use cache::{Cache, Limits};
use engine::chaos::Chaos;
use engine::events::TellId;
use engine::gate::Gate;
use engine::gate::cookie::Secrets;
use engine::gate::prefixes::{Prefix, PrefixSet};
use engine::gate::rate::{RateRule, RateTable};
use engine::local::LocalBuilder;
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::event::EventStep;
use engine::ops::forward::ForwardStep;
use engine::program::{Op, Program};
use engine::{
    Client, Counters, Engine, Failure, ListenerId, Now, Outcome, PoolId, Reply, Share, Snapshot,
    SnapshotCell, Transport, Verdict,
};
use testkit::corpus::{CACHED, LOCAL};
use testkit::{Answer, Ask, Heard};
use wire::{HashKey, Message, Rcode, Rtype, Ttl};

/// The time at which [`engine`] begins.
pub const START: Now = Now { unix_seconds: 1_800_000_000, monotonic_ms: 1_000_000 };
/// What names are hashed with here.
pub const KEY: HashKey = HashKey::new([1, 2]);
/// The TTL, in seconds, of everything in a [`warm`] cache.
pub const TTL: u32 = 3600;

/// Returns the time so many seconds after [`START`].
pub fn later(seconds: u32) -> Now {
    Now {
        unix_seconds: START.unix_seconds + seconds,
        monotonic_ms: START.monotonic_ms + u64::from(seconds) * 1000,
    }
}

/// Returns a client on loopback.
pub fn client(transport: Transport) -> Client {
    Client {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 4711,
        transport,
        verified: transport == Transport::Tcp,
        reply_octets_max: if transport == Transport::Tcp { u16::MAX } else { 1232 },
        keepalive: (transport == Transport::Tcp).then_some(100),
        listener: ListenerId::default(),
        connection: 0,
    }
}

fn loopback() -> PrefixSet {
    PrefixSet::compile(Prefix::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8))
}

/// Returns an engine with local names, an empty cache of 1 MiB, and a group of upstreams behind it; its secrets are known.
///
/// # Panics
///
/// Never: the program in it ends.
pub fn engine(rate: Option<RateRule>, rules: CacheRules) -> Engine {
    let key = KEY;
    let mut local = LocalBuilder::new();
    local.address(testkit::name(LOCAL).as_name(), IpAddr::V4(Ipv4Addr::new(192, 168, 1, 10)), Ttl::new(3600));
    engine::special::add(&mut local);
    let cache = Arc::new(Cache::new(Limits { octets_max: 1 << 20 }, key));
    let ops = vec![
        // Tells nobody until the engine is given a ring.
        Op::Event(EventStep::Tell { id: TellId(0), share: None, is_urgent: false }),
        Op::Local(Arc::new(local.compile(key, Ttl::new(3600)))),
        Op::Cache(CacheStep { cache, rules, view: 0, continues: false }),
        Op::Forward(ForwardStep {
            pool: PoolId(0),
            members: 0,
            forwards_client_subnet: false,
            trusts_ad: false,
        }),
    ];
    engine_of(rate, ops)
}

/// Returns an engine that runs these steps; its secrets are known.
///
/// # Panics
///
/// When the steps are no program.
pub fn engine_of(rate: Option<RateRule>, ops: Vec<Op>) -> Engine {
    let snapshot = Snapshot {
        key: KEY,
        gate: Gate {
            allowed: loopback(),
            cookies: Some(Secrets { active: [7; 16], staging: Some([8; 16]) }),
            rate,
            table: Arc::new(RateTable::new(1024, 1)),
        },
        program: Program::new(ops).expect("a program that ends"),
        trusted_peers: Default::default(),
        connection_tests: Box::default(),
        chaos: Chaos { version: (*b"shown").into(), ..Chaos::default() },
        udp_octets_max: 1232,
        recursion_available: true,
        number: 1,
        keeps_path: true,
    };
    // Nobody receives old snapshots here: there is only one.
    let (reclaim, _) = mpsc::channel();
    let mut engine =
        Engine::new(Arc::new(SnapshotCell::new(Arc::new(snapshot), reclaim)), Arc::new(Counters::default()));
    engine.begin(START);
    engine
}

/// Asks something that is not in memory and says what becomes of the fetch: an answer, or a time-out.
///
/// # Panics
///
/// When it is in memory.
pub fn fetch(engine: &mut Engine, ask: &Ask, answer: Option<&Answer>) {
    let (query, mut buffer) = (ask.bytes(), vec![0; 65_535]);
    let Verdict::Defer(suspended) =
        engine.answer(&query, &client(Transport::Tcp), &mut Reply::new(&mut buffer))
    else {
        panic!("{:?} is in memory already", Heard::new(query));
    };
    let bytes = answer.map(|answer| answer.to(&query));
    let message = bytes.as_ref().map(|bytes| Message::parse(bytes).expect("a message"));
    let outcome = message.as_ref().map_or(Outcome::Failed(Failure::Timeout), Outcome::Reply);
    let verdict = engine.resume(suspended, outcome, Share::First, &mut Reply::new(&mut buffer));
    assert!(matches!(verdict, Verdict::Answered));
}

/// Returns an engine whose cache knows [`CACHED`], with and without DO.
pub fn warm(rules: CacheRules) -> Engine {
    let mut engine = engine(None, rules);
    let answers = [
        (Rtype::A, Answer::a(TTL, Ipv4Addr::new(192, 0, 2, 1))),
        (Rtype::AAAA, Answer::aaaa(TTL, Ipv6Addr::LOCALHOST)),
        (Rtype::TXT, Answer::long_text(TTL, 2500)),
        (Rtype::MX, Answer::negative(Rcode::NOERROR, TTL, TTL)),
    ];
    for (qtype, answer) in &answers {
        fetch(&mut engine, &Ask::new(CACHED, *qtype), Some(answer));
        fetch(&mut engine, &Ask::new(CACHED, *qtype).dnssec(), Some(answer));
    }
    engine
}
