//! Fetching with real sockets and a real engine, from a stub upstream on loopback that misbehaves
//! on demand.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant, SystemTime};

use cache::Cache;
use driver::status::UpstreamState;
use driver::{Board, Driver, Plans, Shared};
use engine::chaos::Chaos;
use engine::gate::Gate;
use engine::gate::prefix_set::PrefixSet;
use engine::gate::rate::RateTable;
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::forward::ForwardStep;
use engine::ops::ttl::TtlRule;
use engine::program::{Matcher, Op, Program};
use engine::{
    Address, Client, Clock, Counters, Driver as _, Engine, ListenerId, Outlet, PoolId, Reply, ReplyTo,
    Snapshot, SnapshotCell, Transport, Verdict, Worker,
};
use plan::upstreams::{Hedge, Pick, Plan, PoolPlan, ServerPlan, Target};
use testkit::{Answer, Ask, Heard, Lie, Script, Stub};
use tokio::sync::Notify;
use wire::Prefix;
use wire::{EdeCode, HashKey, Rcode, Rtype, Ttl};

/// Everything here is over in milliseconds; what hangs fails.
const PATIENCE: Duration = Duration::from_secs(20);

const KEY: HashKey = HashKey::new([1, 2]);

/// Returns the time since it was first asked for.
fn since_first() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

/// A client that keeps what it is told.
#[derive(Default)]
struct Mailbox {
    replies: RefCell<Vec<(u64, Heard)>>,
    flushed: Notify,
}

impl Outlet for Mailbox {
    fn deliver(&self, address: &Address, reply: &[u8]) {
        self.replies.borrow_mut().push((address.stream, Heard::new(reply.to_vec())));
    }

    fn flush(&self) {
        self.flushed.notify_one();
    }

    fn reply_octets_max(&self) -> usize {
        65_535
    }
}

struct House {
    worker: Rc<Worker>,
    driver: Rc<Driver>,
    mailbox: Rc<Mailbox>,
    board: Arc<Board>,
}

impl House {
    fn new(pool: PoolPlan) -> Self {
        Self::running(vec![forward()], pool)
    }

    /// Returns a worker with a policy of these steps.
    fn running(ops: Vec<Op>, pool: PoolPlan) -> Self {
        let key = KEY;
        let snapshot = Snapshot {
            key,
            gate: Gate {
                allowed: PrefixSet::compile([Prefix::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 32)]),
                banned: PrefixSet::default(),
                banned_live: None,
                banned_now: Arc::new(engine::gate::live::LiveBans::new(KEY)),
                query_octets_max: u16::MAX,
                cookies: None,
                cookie_required: None,
                rate: None,
                table: Arc::new(RateTable::new(16, 1)),
            },
            program: Program::new(ops).expect("a program that ends"),
            trusted_peers: Default::default(),
            connection_tests: Box::default(),
            chaos: Chaos::default(),
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
        let (reclaim, _) = mpsc::channel();
        let cell = Arc::new(SnapshotCell::new(Arc::new(snapshot), reclaim));
        let engine = RefCell::new(Engine::new(cell, Arc::new(Counters::default())));
        let worker = Rc::new(Worker {
            index: 0,
            clock: Clock::start(since_first, SystemTime::now),
            engine,
            busy_poll: engine::BusyPoll::new(polling::Polling::Always),
        });
        let board = Arc::new(Board::default());
        let (upstreams, resolvers) = (plan(pool), Default::default());
        let plans = Plans { upstreams: &upstreams, resolvers: &resolvers };
        let driver = Driver::new(Rc::clone(&worker), plans, Shared::default(), Arc::clone(&board));
        Self { worker, driver, mailbox: Rc::default(), board }
    }

    /// Has the driver ask another group from now on.
    fn adopt(&self, pool: PoolPlan) {
        let (upstreams, resolvers) = (plan(pool), Default::default());
        self.driver.adopt(Plans { upstreams: &upstreams, resolvers: &resolvers });
    }

    /// Hands in queries as one batch, as a listener would.
    fn send(&self, asks: &[Ask]) {
        for (stream, ask) in asks.iter().enumerate() {
            let answered = self.hand_in(ask, ListenerId::default(), stream);
            assert!(answered.is_none(), "everything is forwarded");
        }
        self.driver.flush();
    }

    /// Hands in one query of a batch; returns its reply if memory has it.
    fn hand_in(&self, ask: &Ask, listener: ListenerId, stream: usize) -> Option<Heard> {
        let mut buffer = vec![0; 65_535];
        let client = Client {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 4711,
            transport: Transport::Tcp,
            verified: true,
            reply_octets_max: u16::MAX,
            keepalive: None,
            listener,
            connection: 0,
            certificate: None,
        };
        let mut reply = Reply::new(&mut buffer);
        let verdict = self.worker.engine.borrow_mut().answer(&ask.bytes(), &client, &mut reply);
        let Verdict::Defer(suspended) = verdict else { return Some(Heard::new(reply.bytes().to_vec())) };
        let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
        let address = Address { peer, local: None, stream: stream as u64 };
        self.driver.take(suspended, ReplyTo { outlet: Rc::clone(&self.mailbox) as Rc<dyn Outlet>, address });
        None
    }

    /// Waits for `count` replies and returns them in the order of the questions.
    async fn receive(&self, count: usize) -> Vec<Heard> {
        let all = async {
            while self.mailbox.replies.borrow().len() < count {
                self.mailbox.flushed.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("every query is answered");
        let mut replies = self.mailbox.replies.take();
        assert_eq!(replies.len(), count, "one reply each");
        replies.sort_by_key(|(stream, _)| *stream);
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    async fn ask(&self, qname: &str) -> Heard {
        self.send(&[Ask::new(qname, Rtype::A)]);
        self.receive(1).await.remove(0)
    }

    /// Waits until the upstreams are as `holds` says.
    async fn until(&self, what: &str, mut holds: impl FnMut(&driver::Status) -> bool) {
        let wait = async {
            while !holds(&self.driver.status()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"));
    }
}

/// Asks the only group.
fn forward() -> Op {
    Op::Forward(ForwardStep { pool: PoolId(0), members: 0, forwards_client_subnet: false, trusts_ad: false })
}

fn plan(pool: PoolPlan) -> Plan {
    Plan { pools: vec![pool], ..Plan::default() }
}

fn udp(stubs: &[&Stub]) -> PoolPlan {
    let servers = stubs.iter().map(|stub| ServerPlan::udp(stub.address())).collect();
    PoolPlan { hedge: Hedge::Off, ..PoolPlan::new(PoolId(0), "test", servers) }
}

/// Runs a test as a worker runs: one thread, one `LocalSet`.
fn on_a_worker<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

fn assert_answered(reply: &Heard) {
    assert_eq!(reply.rcode(), Rcode::NOERROR, "{reply:?}");
    assert_eq!(reply.answers().len(), 1, "{reply:?}");
}

#[test]
fn what_others_read_counts_a_query_as_soon_as_it_is_answered() {
    let stub = Stub::start(Script::default());
    on_a_worker(async {
        let house = House::new(udp(&[&stub]));
        for number in 1..=10 {
            assert_answered(&house.ask(&format!("n{number}.example.org")).await);
            let status = house.board.status();
            let [upstream] = status.upstreams.as_slice() else { panic!("{status:?}") };
            assert_eq!((status.waiting, status.fetching, upstream.outstanding), (0, 0, 0));
            assert_eq!((upstream.tally.queries, upstream.tally.replies), (number, number));
        }
    });
}

#[test]
fn views_that_ask_the_same_share_one_exchange_and_each_fills_its_own_cache() {
    let stub = Stub::start(Script::always(Answer::a(60, Ipv4Addr::new(192, 0, 2, 1))));
    on_a_worker(async {
        let (home, guests) = (ListenerId::default(), ListenerId(1));
        let cache = Arc::new(Cache::new(cache::Limits { octets_max: 1 << 20 }, KEY));
        let cached = |view| {
            let (cache, rules) = (Arc::clone(&cache), CacheRules::default());
            Op::Cache(CacheStep { cache, rules, view, continues: false })
        };
        let is_guest = Matcher::Listener([guests].into());
        let for_guests = [cached(1), forward(), Op::Ttl(TtlRule::Fixed(Ttl::new(5))), Op::Accept].into_iter();
        let ops = [Op::SkipUnless(is_guest, 4)].into_iter().chain(for_guests);
        let house = House::running(ops.chain([cached(0), forward()]).collect(), udp(&[&stub]));
        let ask = Ask::new("www.example.org", Rtype::A);
        for (stream, listener) in [home, guests, home, guests].into_iter().enumerate() {
            assert!(house.hand_in(&ask, listener, stream).is_none(), "nothing is known yet");
        }
        house.driver.flush();
        let ttls: Vec<Vec<u32>> = house.receive(4).await.iter().map(Heard::ttls).collect();
        assert_eq!(ttls, [[60], [5], [60], [5]]);
        for (listener, ttl) in [(home, 60), (guests, 5)] {
            let kept = house.hand_in(&ask, listener, 0).expect("each view has kept its answer");
            assert_eq!(kept.ttls(), [ttl]);
        }
        assert_eq!(stub.count("www.example.org."), 1, "all shared one exchange");
    });
}

#[test]
fn a_burst_is_answered_query_by_query() {
    let stub = Stub::start(Script::default());
    on_a_worker(async {
        let house = House::new(udp(&[&stub]));
        for round in 0..20 {
            let asks: Vec<Ask> =
                (0..100).map(|i| Ask::new(&format!("n{i}.r{round}.example.org"), Rtype::A).id(i)).collect();
            house.send(&asks);
            for (i, reply) in house.receive(100).await.iter().enumerate() {
                assert_answered(reply);
                assert_eq!(usize::from(reply.id()), i);
            }
        }
        assert_eq!(house.driver.fetching(), 0);
        assert_eq!(house.driver.waiting(), 0);
    });
    let ports: std::collections::HashSet<u16> = stub.seen().iter().map(|asked| asked.from.port()).collect();
    assert!(ports.len() > 1, "several source ports");
    let ids: std::collections::HashSet<u16> = stub.seen().iter().map(|asked| asked.id).collect();
    assert!(ids.len() > 1500, "IDs of our own");
}

#[test]
fn lost_packets_are_sent_again() {
    let stub = Stub::start(Script::default().losing(20));
    on_a_worker(async {
        let house = House::new(udp(&[&stub]));
        for round in 0..5 {
            let asks: Vec<Ask> =
                (0..50).map(|i| Ask::new(&format!("n{i}.r{round}.example.org"), Rtype::A)).collect();
            house.send(&asks);
            house.receive(50).await.iter().for_each(assert_answered);
        }
    });
}

#[test]
fn a_truncated_reply_is_fetched_over_tcp() {
    let stub = Stub::start(Script::always(Answer::long_text(300, 4000)));
    on_a_worker(async {
        let house = House::new(udp(&[&stub]));
        for i in 0..3 {
            house.send(&[Ask::new(&format!("n{i}.example.org"), Rtype::TXT)]);
            let reply = house.receive(1).await.remove(0);
            assert!(reply.bytes().len() > 3900, "{} octets", reply.bytes().len());
        }
    });
    assert_eq!(stub.connections(), 1, "one connection for all");
    assert_eq!(stub.seen().iter().filter(|asked| asked.over_tcp).count(), 3);
}

#[test]
fn a_tcp_upstream_gets_many_queries_at_once() {
    let stub = Stub::start(Script::default());
    on_a_worker(async {
        let mut pool = udp(&[&stub]);
        pool.servers[0] = ServerPlan::tcp(stub.address());
        let house = House::new(pool);
        let asks: Vec<Ask> = (0..200).map(|i| Ask::new(&format!("n{i}.example.org"), Rtype::A)).collect();
        house.send(&asks);
        house.receive(200).await.iter().for_each(assert_answered);
    });
    assert!(stub.connections() <= 4);
    assert!(stub.seen().iter().all(|asked| asked.over_tcp));
}

#[test]
fn connections_that_the_upstream_closes_lose_nothing() {
    let stub = Stub::start(Script::default().closing_after(3));
    on_a_worker(async {
        let mut pool = udp(&[&stub]);
        pool.servers[0] = ServerPlan::tcp(stub.address());
        let house = House::new(pool);
        for i in 0..20 {
            assert_answered(&house.ask(&format!("n{i}.example.org")).await);
        }
    });
    assert!(stub.connections() >= 6);
}

#[test]
fn lies_are_not_believed() {
    for lie in [Lie::Id, Lie::Question, Lie::NoQuestion, Lie::NotAReply, Lie::Garbage] {
        let stub = Stub::start(Script::default().lying_first(lie));
        on_a_worker(async {
            let house = House::new(udp(&[&stub]));
            for i in 0..10 {
                assert_answered(&house.ask(&format!("n{i}.example.org")).await);
            }
            assert!(house.board.counts.exchange.mismatched.read() >= 10, "{lie:?}");
        });
    }
}

#[test]
fn a_reply_from_another_address_does_not_reach_us() {
    let upstream = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = upstream.local_addr().expect("a bound socket");
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 512];
        let (len, from) = upstream.recv_from(&mut buffer).expect("a query");
        let query = &buffer[..len];
        let forged = Answer::rcode(Rcode::NXDOMAIN).to(query);
        stranger.send_to(&forged, from).expect("loopback takes it");
        let truth = Answer::a(300, Ipv4Addr::new(192, 0, 2, 1)).to(query);
        upstream.send_to(&truth, from).expect("loopback takes it");
    });
    on_a_worker(async {
        let house = House::new(PoolPlan::new(PoolId(0), "test", vec![ServerPlan::udp(address)]));
        assert_answered(&house.ask("www.example.org").await);
        assert_eq!(house.board.counts.exchange.mismatched.read(), 0);
    });
    thread.join().expect("the upstream ends");
}

#[test]
fn a_dead_upstream_fails_fast_and_comes_back_by_itself() {
    let mut stub = Stub::start(Script::default());
    on_a_worker(async {
        let house = House::new(udp(&[&stub]));
        assert_answered(&house.ask("before.example.org").await);
        stub.die();
        let began = Instant::now();
        let failed = house.ask("during.example.org").await;
        assert_eq!(failed.rcode(), Rcode::SERVFAIL);
        assert!(began.elapsed() < Duration::from_secs(4), "the kernel said so; nobody waits for a timeout");
        assert!(matches!(house.driver.status().upstreams[0].state, UpstreamState::Down { .. }));
        stub.revive();
        house.until("it is found again", |status| status.upstreams[0].state == UpstreamState::Up).await;
        assert_answered(&house.ask("after.example.org").await);
    });
}

#[test]
fn failures_say_why() {
    let mut stub = Stub::start(Script::default());
    on_a_worker(async {
        let house = House::new(udp(&[&stub]));
        stub.die();
        house.send(&[Ask::new("www.example.org", Rtype::A).edns(1232)]);
        let refused = house.receive(1).await.remove(0);
        assert_eq!(refused.errors()[0].0, EdeCode::NETWORK_ERROR.0);
        let mut pool = udp(&[]);
        pool.id = PoolId(0);
        house.adopt(pool);
        house.send(&[Ask::new("www.example.org", Rtype::A).edns(1232)]);
        let nobody = house.receive(1).await.remove(0);
        assert_eq!(nobody.errors()[0].0, EdeCode::NO_REACHABLE_AUTHORITY.0);
    });
}

#[test]
fn a_race_is_won_by_the_first_good_answer() {
    let slow = Stub::start(Script::default().delayed(Duration::from_secs(3)));
    let bad = Stub::start(Script::always(Answer::rcode(Rcode::SERVFAIL)));
    let good = Stub::start(Script::default());
    on_a_worker(async {
        let pool = PoolPlan { pick: Pick::Race(3), ..udp(&[&slow, &bad, &good]) };
        let house = House::new(pool);
        let began = Instant::now();
        for i in 0..20 {
            assert_answered(&house.ask(&format!("n{i}.example.org")).await);
        }
        assert!(began.elapsed() < Duration::from_secs(3), "the slow one adds nothing");
    });
}

#[test]
fn a_bad_rcode_falls_back_to_the_next_upstream() {
    let bad = Stub::start(Script::always(Answer::rcode(Rcode::REFUSED)));
    let good = Stub::start(Script::default());
    on_a_worker(async {
        let house = House::new(udp(&[&bad, &good]));
        assert_answered(&house.ask("www.example.org").await);
    });
    assert_eq!((bad.count("www.example.org."), good.count("www.example.org.")), (1, 1));
}

#[test]
fn upstreams_are_found_by_name() {
    let named = Stub::start(Script::default());
    let port = named.address().port();
    let bootstrap = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::A => Answer::a(60, Ipv4Addr::LOCALHOST),
        _ => Answer::negative(Rcode::NOERROR, 60, 60),
    }));
    on_a_worker(async {
        let mut pool = udp(&[&named]);
        pool.servers[0].target = Target::Name { name: testkit::name("dns.example.net"), port };
        pool.bootstrap = vec![bootstrap.address()];
        let house = House::new(pool);
        assert_answered(&house.ask("www.example.org").await);
    });
    // Both families; once more each if the machine was too busy for the first reply.
    assert!(matches!(bootstrap.count("dns.example.net."), 2..=4));
}

#[test]
fn a_reload_drops_no_waiting_query() {
    let slow = Stub::start(Script::default().delayed(Duration::from_millis(100)));
    let other = Stub::start(Script::default());
    on_a_worker(async {
        let house = House::new(udp(&[&slow]));
        house.send(&[Ask::new("www.example.org", Rtype::A)]);
        house.adopt(udp(&[&other]));
        let reply = house.receive(1).await.remove(0);
        assert_answered(&reply);
        assert_answered(&house.ask("new.example.org").await);
    });
    assert_eq!((other.count("www.example.org."), other.count("new.example.org.")), (0, 1));
}

#[test]
fn stopping_answers_everybody() {
    let silent = Stub::start(Script::silent());
    on_a_worker(async {
        let house = House::new(udp(&[&silent]));
        house.send(&[Ask::new("www.example.org", Rtype::A).edns(1232)]);
        house.driver.stop();
        let reply = house.receive(1).await.remove(0);
        assert_eq!((reply.rcode(), reply.errors()[0].0), (Rcode::SERVFAIL, EdeCode::NOT_READY.0));
    });
}
