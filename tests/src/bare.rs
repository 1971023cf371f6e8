//! An engine without the world around it: nobody listens and nobody fetches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, mpsc};

use cache::{Cache, Limits};
use engine::chaos::Chaos;
use engine::gate::Gate;
use engine::gate::cookie::Secrets;
use engine::gate::prefix_set::PrefixSet;
use engine::gate::rate::{RateRule, RateTable};
use engine::local::LocalBuilder;
use engine::matchers::Matcher;
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::dns64::{Dns64, Excluded, Reverse};
use engine::ops::event::EventStep;
use engine::ops::forward::ForwardStep;
use engine::ops::prefer::Prefer;
use engine::ops::quickest::Quickest;
use engine::ops::rewrite::{Rewrite, Style, Target, Targets};
use engine::ops::split::{Fallback, Rule, SplitStep, Standby, Unusable};
use engine::ops::ttl::TtlRule;
use engine::ops::zone::Unloaded;
use engine::program::{Op, Program};
use engine::{
    Announce, Client, Counters, Engine, Failure, Keepalive, ListenerId, Now, Outcome, PoolId, Reply, Share,
    Snapshot, SnapshotCell, Transport, Verdict,
};
use events::EventId;
use sets::{NameSetBuilder, Reach};
use testkit::corpus::{CACHED, LOCAL};
use testkit::{Answer, Ask, Heard};
use wire::{HashKey, Message, Rcode, Rtype, Ttl};
use wire::{Prefix, Prefix64};
use zone::Zones;

/// The time at which [`engine`] begins.
pub const START: Now = Now {
    unix_seconds: 1_800_000_000,
    unix_us_rest: 0,
    monotonic_us_rest: 0,
    monotonic_ms: 1_000_000,
    cache: cache::Now(1_800_000_000),
};
/// What names are hashed with here.
pub const KEY: HashKey = HashKey::new([1, 2]);
/// The TTL, in seconds, of everything in a [`warm`] cache.
pub const TTL: u32 = 3600;

/// Returns the time so many seconds after [`START`].
pub fn later(seconds: u32) -> Now {
    Now {
        unix_seconds: START.unix_seconds + seconds,
        unix_us_rest: 0,
        monotonic_us_rest: 0,
        monotonic_ms: START.monotonic_ms + u64::from(seconds) * 1000,
        cache: cache::Now(START.cache.0 + seconds),
    }
}

/// Returns a client on loopback.
pub fn client(transport: Transport) -> Client {
    Client {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 4711,
        transport,
        verified: transport != Transport::Udp,
        reply_octets_max: if transport == Transport::Udp { 1232 } else { u16::MAX },
        keepalive: matches!(transport, Transport::Tcp | Transport::Tls)
            .then_some(Keepalive { timeout: 100, announced_to: Announce::Asked }),
        listener: ListenerId::default(),
        connection: 0,
        certificate: None,
    }
}

fn loopback() -> PrefixSet {
    PrefixSet::compile([Prefix::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8)])
}

/// Returns an engine with local names, an empty cache of 1 MiB, and a group of upstreams behind it;
/// its secrets are known.
///
/// # Panics
///
/// Never: the program in it ends.
pub fn engine(rate: Option<RateRule>, rules: CacheRules) -> Engine {
    let cache = Arc::new(Cache::new(Limits { octets_max: 1 << 20 }, KEY));
    let ops = vec![
        // Tells nobody until the engine is given a ring.
        Op::Event(EventStep::Emit { id: EventId(0), share: None, is_urgent: false }),
        local(),
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

/// Returns the step that answers for [`LOCAL`] and special-use names.
pub fn local() -> Op {
    let mut local = LocalBuilder::new();
    local.address(testkit::name(LOCAL).as_name(), IpAddr::V4(Ipv4Addr::new(192, 168, 1, 10)), Ttl::new(3600));
    engine::special::add(&mut local);
    Op::Local(Arc::new(local.compile(KEY, Ttl::new(3600))))
}

/// Returns an engine that runs these steps; its secrets are known.
///
/// # Panics
///
/// When the steps are no program.
pub fn engine_of(rate: Option<RateRule>, ops: Vec<Op>) -> Engine {
    engine_with(rate, ops, None)
}

/// Returns an engine that answers from zones.
pub fn engine_serving(zones: Arc<Zones>) -> Engine {
    engine_with(None, vec![Op::Zone(Unloaded::Fails.into())], Some(zones))
}

fn engine_with(rate: Option<RateRule>, ops: Vec<Op>, zones: Option<Arc<Zones>>) -> Engine {
    let snapshot = Snapshot {
        key: KEY,
        gate: Gate {
            allowed: loopback(),
            banned: Default::default(),
            banned_live: None,
            banned_now: Arc::new(engine::gate::live::LiveBans::new(HashKey::new([1, 2]))),
            query_octets_max: u16::MAX,
            cookies: Some(Secrets { active: [7; 16], staging: Some([8; 16]) }),
            cookie_required: None,
            rate,
            table: Arc::new(RateTable::new(1024, 1)),
        },
        program: Program::new(ops).expect("a program that ends"),
        trusted_peers: Default::default(),
        connection_tests: Box::default(),
        chaos: Chaos { version: (*b"shown").into(), ..Chaos::default() },
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
    };
    // Nobody receives old snapshots here: there is only one.
    let (reclaim, _) = mpsc::channel();
    let cell = SnapshotCell::new(Arc::new(snapshot), reclaim).serving(zones);
    let mut engine = Engine::new(Arc::new(cell), Arc::new(Counters::default()));
    engine.begin(START);
    engine
}

/// Asks something that is not in memory and says what becomes of the fetch: an answer, or a
/// time-out.
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
    fill(&mut engine);
    engine
}

/// Teaches the cache of an engine [`CACHED`], with and without DO.
fn fill(engine: &mut Engine) {
    let answers = [
        (Rtype::A, Answer::a(TTL, Ipv4Addr::new(192, 0, 2, 1))),
        (Rtype::AAAA, Answer::aaaa(TTL, Ipv6Addr::LOCALHOST)),
        (Rtype::TXT, Answer::long_text(TTL, 2500)),
        (Rtype::MX, Answer::negative(Rcode::NOERROR, TTL, TTL)),
    ];
    for (qtype, answer) in &answers {
        fetch(engine, &Ask::new(CACHED, *qtype), Some(answer));
        fetch(engine, &Ask::new(CACHED, *qtype).dnssec(), Some(answer));
    }
}

/// Returns a cache that knows [`CACHED`] like the one of [`warm`], for programs that look into it.
pub fn warm_cache() -> Arc<Cache> {
    let cache = Arc::new(Cache::new(Limits { octets_max: 1 << 20 }, KEY));
    let step =
        CacheStep { cache: Arc::clone(&cache), rules: CacheRules::default(), view: 0, continues: false };
    let forward =
        ForwardStep { pool: PoolId(0), members: 0, forwards_client_subnet: false, trusts_ad: false };
    fill(&mut engine_of(None, vec![Op::Cache(step), Op::Forward(forward)]));
    cache
}

/// Returns an engine that asks in several ways and changes what it finds, all of it from a
/// [`warm_cache`]:
///
/// - names below `alias.example.org` are aliases of [`CACHED`], those below `hidden.example.org`
///   are it;
/// - `v4.example.org` prefers IPv4, `made.example.org` makes IPv6 addresses, and both are
///   [`CACHED`];
/// - everything else is looked up by a fallback and a race of policies, sorted by distance, and cut
///   for UDP if it is `cut.example.org`.
pub fn splitting() -> Engine {
    let cache = warm_cache();
    let rest = |rule| Op::Split(Box::new(SplitStep::of_rest(rule)));
    let rename = |old: &str, style| {
        let mut patterns = NameSetBuilder::new(&KEY);
        patterns.name(testkit::name(old).as_name(), Reach::ItselfAndBelow, 1);
        let targets = Targets::Table {
            patterns: Box::new(patterns.compile()),
            targets: Box::new([Target::Name(testkit::name(CACHED))]),
        };
        rest(Rule::Rewrite(Box::new(Rewrite { targets, style })))
    };
    let only = |name: &str| {
        let mut names = NameSetBuilder::new(&KEY);
        names.name(testkit::name(name).as_name(), Reach::ItselfAndBelow, 1);
        Op::SkipUnless(Matcher::Qname(Arc::new(names.compile())), 1)
    };
    let prefixes: Box<[Prefix64]> = [Prefix64::WELL_KNOWN].into();
    let look = |continues| {
        let rules = CacheRules::default();
        Op::Cache(CacheStep { cache: Arc::clone(&cache), rules, view: 0, continues })
    };
    let quickest =
        Quickest { ports: [443, 0, 0, 0], timeout_ms: 100, keep_seconds: 3600, keep_failure_seconds: 60 };
    let fallback = Rule::Fallback(Fallback {
        after_ms: 500,
        on_slow: true,
        standby: Standby::Always,
        unusable: Unusable::default(),
    });
    let alias = Style::Cname { ttl: None, authoritative: false };
    let mut ops = vec![
        local(),
        rest(Rule::Reverse(Box::new(Reverse { prefixes: prefixes.clone(), style: alias }))),
        only("v4.example.org"),
        rest(Rule::Prefer(Prefer { wanted: Rtype::A, wait_ms: 500 })),
        only("made.example.org"),
        rest(Rule::Dns64(Box::new(Dns64 {
            prefixes,
            excluded: [Excluded::MAPPED].into(),
            ignores_ipv6: false,
            ignores_cd: false,
        }))),
        rename("alias.example.org", Style::Cname { ttl: None, authoritative: false }),
        rename("hidden.example.org", Style::Restored),
        rename("v4.example.org", Style::Restored),
        rename("made.example.org", Style::Cname { ttl: None, authoritative: false }),
    ];
    let first = ops.len() as u16 + 6;
    ops.extend([
        Op::Split(Box::new(SplitStep::of_policies(fallback, &[first, first + 2]))),
        Op::Quickest(quickest),
        Op::Ttl(TtlRule::Clamped { min: Ttl::new(1), max: Ttl::new(60) }),
        only("cut.example.org"),
        Op::Truncate,
        Op::Accept,
        // The first choice never knows anything; the second is a race with it.
        Op::Reject(Rcode::SERVFAIL, None),
        Op::Return,
        Op::Split(Box::new(SplitStep::of_policies(Rule::Race(Unusable::default()), &[first, first + 4]))),
        Op::Return,
        look(true),
        Op::SkipIf(Matcher::Answer, 1),
        Op::Reject(Rcode::NXDOMAIN, None),
        Op::Goto(first + 8),
        Op::Accept,
    ]);
    engine_of(None, ops)
}
