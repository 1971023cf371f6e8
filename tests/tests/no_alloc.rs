//! Answering from memory does not allocate: a counting allocator watches while the corpus goes through the engine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, mpsc};

use cache::{Cache, Limits};
use engine::chaos::Chaos;
use engine::gate::Gate;
use engine::gate::cookie::Secrets;
use engine::gate::prefixes::{Prefix, PrefixSet};
use engine::gate::rate::{RateRule, RateTable};
use engine::local::LocalBuilder;
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::forward::ForwardStep;
use engine::program::{Op, Program};
use engine::{
    Client, Counters, Engine, Failure, Now, Outcome, PoolId, Reply, Share, Snapshot, SnapshotCell, Transport,
    Verdict,
};
use testkit::corpus::{CACHED, LOCAL, cases};
use testkit::{Answer, Ask, Heard};
use wire::{Class, Flags, HashKey, Message, OptionCode, Rcode, Rtype, Ttl};

/// Counts what the current thread allocates, and otherwise is the system's allocator.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator with the arguments it came with; counting
// touches a thread-local of constant initial value, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above with this layout, so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns what `f` returns and how often it allocated.
fn counted<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.with(Cell::get);
    let outcome = f();
    (outcome, ALLOCATIONS.with(Cell::get) - before)
}

const START: Now = Now { unix_seconds: 1_800_000_000, monotonic_ms: 1_000_000 };
const TTL: u32 = 3600;

fn later(seconds: u32) -> Now {
    Now {
        unix_seconds: START.unix_seconds + seconds,
        monotonic_ms: START.monotonic_ms + u64::from(seconds) * 1000,
    }
}

fn client(transport: Transport) -> Client {
    Client {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 4711,
        transport,
        verified: transport == Transport::Tcp,
        reply_octets_max: if transport == Transport::Tcp { u16::MAX } else { 1232 },
        keepalive: (transport == Transport::Tcp).then_some(100),
    }
}

fn loopback() -> PrefixSet {
    PrefixSet::compile(Prefix::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8))
}

fn engine(rate: Option<RateRule>, rules: CacheRules) -> Engine {
    let key = HashKey::new([1, 2]);
    let mut local = LocalBuilder::new();
    local.address(testkit::name(LOCAL).as_name(), IpAddr::V4(Ipv4Addr::new(192, 168, 1, 10)), Ttl::new(3600));
    engine::special::add(&mut local);
    let cache = Arc::new(Cache::new(Limits { octets_max: 1 << 20 }, key));
    let ops = vec![
        Op::Local(Arc::new(local.compile(key, Ttl::new(3600)))),
        Op::Cache(CacheStep { cache, rules, view: 0 }),
        Op::Forward(ForwardStep { pool: PoolId(0), forwards_client_subnet: false, trusts_ad: false }),
    ];
    let snapshot = Snapshot {
        key,
        gate: Gate {
            allowed: loopback(),
            cookies: Some(Secrets { active: [7; 16], staging: Some([8; 16]) }),
            rate,
            table: Arc::new(RateTable::new(1024, 1)),
        },
        program: Program::new(ops).expect("a program that ends"),
        chaos: Chaos { version: (*b"shown").into(), ..Chaos::default() },
        udp_octets_max: 1232,
        recursion_available: true,
    };
    // Nobody receives old snapshots here: there is only one.
    let (reclaim, _) = mpsc::channel();
    let mut engine =
        Engine::new(Arc::new(SnapshotCell::new(Arc::new(snapshot), reclaim)), Arc::new(Counters::default()));
    engine.begin(START);
    engine
}

/// Asks something that is not in memory and says what becomes of the fetch.
fn fetch(engine: &mut Engine, ask: &Ask, answer: Option<&Answer>) {
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

fn warm(rules: CacheRules) -> Engine {
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

/// Answers one query and asserts that this allocates nothing; returns the reply, if there is one.
#[track_caller]
fn answer(engine: &mut Engine, what: &str, query: &[u8], client: &Client) -> Option<Heard> {
    let mut buffer = [0; 65_535];
    let ((has_reply, length), allocations) = counted(|| {
        let mut reply = Reply::new(&mut buffer);
        match engine.answer(query, client, &mut reply) {
            Verdict::Answered => (true, reply.len()),
            Verdict::Drop => (false, 0),
            Verdict::Defer(_) => panic!("{what}: not answered from memory"),
        }
    });
    assert_eq!(allocations, 0, "{what}");
    has_reply.then(|| Heard::new(buffer[..length].to_vec()))
}

#[test]
fn the_counter_counts() {
    assert_eq!(counted(|| 1 + 1).1, 0);
    assert_eq!(counted(|| drop(std::hint::black_box(Box::new(1)))).1, 1);
}

#[test]
fn the_corpus_is_answered_without_allocation() {
    let mut engine = warm(CacheRules::default());
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut replies = 0;
        let cases = cases();
        for case in &cases {
            replies += usize::from(answer(&mut engine, case.what, &case.bytes, &client(transport)).is_some());
        }
        assert!(replies > cases.len() * 3 / 4, "{replies} replies to {} cases", cases.len());
    }
}

#[test]
fn hits_are_right_and_free() {
    let mut engine = warm(CacheRules::default());
    engine.begin(later(600));
    let udp = client(Transport::Udp);
    let heard =
        answer(&mut engine, "hit", &Ask::new(CACHED, Rtype::A).edns(1232).bytes(), &udp).expect("a reply");
    assert_eq!(heard.answers(), [format!("{CACHED}. {} A 192.0.2.1", TTL - 600)]);
    let heard = answer(&mut engine, "negative", &Ask::new(CACHED, Rtype::MX).bytes(), &udp).expect("a reply");
    assert_eq!((heard.rcode(), heard.authorities().len()), (Rcode::NOERROR, 1));
    let heard =
        answer(&mut engine, "too long", &Ask::new(CACHED, Rtype::TXT).bytes(), &udp).expect("a reply");
    assert!(heard.has(Flags::TC) && heard.bytes().len() <= 512);
    let ask = Ask::new(CACHED, Rtype::TXT).option(OptionCode::TCP_KEEPALIVE, &[]);
    let heard = answer(&mut engine, "whole", &ask.bytes(), &client(Transport::Tcp)).expect("a reply");
    assert_eq!(heard.answers().len(), 10);
    assert!(heard.option(OptionCode::TCP_KEEPALIVE).is_some());
}

#[test]
fn what_the_server_says_about_itself_is_free() {
    let mut engine = warm(CacheRules::default());
    let ask = Ask::new("version.bind", Rtype::TXT).class(Class::CH);
    let heard = answer(&mut engine, "version.bind", &ask.bytes(), &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.answers(), ["version.bind. 0 TXT \"shown\""]);
}

#[test]
fn cookies_are_free() {
    let mut engine = warm(CacheRules::default());
    let udp = client(Transport::Udp);
    let ask = |cookie: &[u8]| Ask::new(CACHED, Rtype::A).option(OptionCode::COOKIE, cookie).bytes();
    let heard = answer(&mut engine, "client cookie", &ask(&[1; 8]), &udp).expect("a reply");
    let cookie = heard.option(OptionCode::COOKIE).expect("a server cookie");
    let heard = answer(&mut engine, "our cookie", &ask(&cookie), &udp).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::NOERROR);
}

#[test]
fn stale_answers_are_free_once_somebody_refreshes_them() {
    let rules = CacheRules { stale_client_timeout_ms: 0, ..CacheRules::default() };
    let mut engine = warm(rules);
    engine.begin(later(TTL + 10));
    let udp = client(Transport::Udp);
    let query = Ask::new(CACHED, Rtype::A).edns(1232).bytes();
    // The first to find it stale causes the refresh, and that is put aside on the heap.
    let mut buffer = [0; 1232];
    assert!(matches!(engine.answer(&query, &udp, &mut Reply::new(&mut buffer)), Verdict::Answered));
    assert!(engine.next_errand().is_some());
    let heard = answer(&mut engine, "stale", &query, &udp).expect("a reply");
    assert_eq!(heard.ttls(), [30]);
    assert_eq!(heard.errors().first().map(|(code, _)| *code), Some(3));
}

#[test]
fn remembered_failures_are_free() {
    let mut engine = warm(CacheRules::default());
    let ask = Ask::new("broken.example.org", Rtype::A).edns(1232);
    fetch(&mut engine, &ask, None);
    let heard = answer(&mut engine, "failure", &ask.bytes(), &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::SERVFAIL);
    assert!(!heard.errors().is_empty());
}

#[test]
fn turning_strangers_and_floods_away_is_free() {
    let rule = RateRule {
        per_second: 1,
        burst: 2,
        slip: 2,
        ipv4_prefix: 24,
        ipv6_prefix: 56,
        exempt: PrefixSet::default(),
    };
    let mut engine = engine(Some(rule), CacheRules::default());
    let query = Ask::new(LOCAL, Rtype::A).edns(1232).bytes();
    let stranger = Client { address: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), ..client(Transport::Udp) };
    let heard = answer(&mut engine, "stranger", &query, &stranger).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::REFUSED);
    let replies: Vec<_> =
        (0..20).map(|_| answer(&mut engine, "flood", &query, &client(Transport::Udp))).collect();
    assert!(replies.iter().any(Option::is_none));
    assert!(replies.iter().flatten().any(|heard| heard.has(Flags::TC)));
    let cookie = Ask::new(LOCAL, Rtype::A).option(OptionCode::COOKIE, &[1; 8]).bytes();
    let heard = answer(&mut engine, "flood with cookie", &cookie, &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::BADCOOKIE);
}
