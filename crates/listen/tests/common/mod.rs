//! A worker whose answers a test decides.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its part")]

use std::cell::{Cell, RefCell, RefMut};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::{Client, ConnectionText, Now, ReplyTo, Said};
use listen::{Answer, Answered, Counters, DnscryptCell, Service, Stopper, TlsCell, WorkerSockets};
use plan::listeners::{ListenerPlan, Plan};
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};
use tokio::time::Instant;

/// Octets of the reply to `big`.
pub const BIG: usize = 60_000;

/// Answers according to the word after the header.
#[derive(Default)]
pub struct Script {
    /// Who asked what, in order.
    pub seen: Vec<(Client, Vec<u8>)>,
}

/// Returns a query: an identifier, an otherwise empty header, a word that says what becomes of it.
pub fn query(id: u16, word: &str) -> Vec<u8> {
    [&id.to_be_bytes()[..], &[0; 10], word.as_bytes()].concat()
}

impl Answer for Script {
    type Deferred = Vec<u8>;

    fn begin(&mut self, _now: Now) {}

    fn answer(&mut self, query: &[u8], client: &Client, room: &mut [u8]) -> Answered<Vec<u8>> {
        self.seen.push((client.clone(), query.to_vec()));
        match query.get(12..) {
            Some(word) if word.starts_with(b"late") => Answered::Deferred(query.to_vec()),
            Some(word) if word.starts_with(b"big") => {
                room[..BIG].fill(7);
                Answered::Reply(BIG)
            }
            Some(word) if !word.starts_with(b"drop") => {
                room[..query.len()].copy_from_slice(query);
                Answered::Reply(query.len())
            }
            _ => Answered::Nothing,
        }
    }

    fn next_prefetch(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// The policy of this server asks for one server name, and for one name in the certificates of
    /// clients.
    fn connection_bits<'t>(&self, say: impl Fn(&ConnectionText) -> Said<'t>) -> u64 {
        let is_named =
            matches!(say(&ConnectionText::ServerName), Said::One(name) if name == b"b.example.org");
        let has_name = |names: &[String]| names.iter().any(|name| name == "client.example.org");
        let is_client =
            matches!(say(&ConnectionText::CertificateNames), Said::Several(names) if has_name(names));
        u64::from(is_named) | u64::from(is_client) << 1
    }
}

/// The scripted worker.
#[derive(Default)]
pub struct Scripted {
    pub script: RefCell<Script>,
    /// Queries that wait, in the order they came.
    pub late: RefCell<Vec<(Vec<u8>, ReplyTo)>>,
    /// The time in seconds since 1970.
    pub unix_seconds: Cell<u32>,
}

impl Service for Scripted {
    type Engine = Script;

    fn engine(&self) -> RefMut<'_, Script> {
        self.script.borrow_mut()
    }

    fn now(&self) -> Now {
        Now { unix_seconds: self.unix_seconds.get(), ..Now::default() }
    }

    fn take(&self, deferred: Vec<u8>, to: ReplyTo) {
        drop(self.script.try_borrow_mut().expect("the engine is free when the desk is called"));
        self.late.borrow_mut().push((deferred, to));
    }

    fn prefetch(&self, _prefetch: Vec<u8>) {}

    fn flush(&self) {}
}

impl Scripted {
    /// Waits until `count` queries wait, and a little longer.
    pub async fn until_waiting(&self, count: usize) {
        while self.late.borrow().len() < count {
            yield_now().await;
        }
        settle().await;
        assert_eq!(self.late.borrow().len(), count);
    }

    /// Answers waiting query `at` with `reply`.
    pub fn release(&self, at: usize, reply: &[u8]) {
        let (_, to) = self.late.borrow_mut().remove(at);
        to.outlet.deliver(&to.address, reply);
        to.outlet.flush();
    }

    /// Answers waiting query `at` with itself.
    pub fn echo(&self, at: usize) {
        let query = self.late.borrow()[at].0.clone();
        self.release(at, &query);
    }

    /// Returns how many queries were seen.
    pub fn seen(&self) -> usize {
        self.script.borrow().seen.len()
    }

    /// Returns who asked last.
    pub fn last_client(&self) -> Client {
        self.script.borrow().seen.last().expect("somebody asked").0.clone()
    }
}

/// Lets all other tasks run until they have nothing left to do, as far as one can tell.
pub async fn settle() {
    for _ in 0..200 {
        yield_now().await;
    }
}

/// A running worker.
pub struct Running {
    pub service: Rc<Scripted>,
    pub address: SocketAddr,
    pub counters: Arc<Counters>,
    pub stopper: Stopper,
    pub serving: JoinHandle<std::io::Result<()>>,
}

impl Running {
    /// Returns the address with another IP address.
    pub fn at(&self, address: &str) -> SocketAddr {
        SocketAddr::new(address.parse::<IpAddr>().expect("an address"), self.address.port())
    }

    /// Returns a counter.
    pub fn count(&self, name: &str) -> u64 {
        let mut found = None;
        self.counters.read(|other, count| {
            if other == name {
                found = Some(count);
            }
        });
        found.expect("a counter of this name")
    }

    /// Stops the worker, waiting at most for `patience`.
    pub fn stop(&self, patience: Duration) {
        self.stopper.stop(Instant::now() + patience);
    }
}

/// Starts a worker on `address` with the plan that `change` makes of the default one.
pub fn start(address: &str, change: impl FnOnce(&mut Plan)) -> Running {
    start_with(address, &Arc::default(), change)
}

/// Starts a worker that speaks TLS as `tls` says.
pub fn start_with(address: &str, tls: &Arc<TlsCell>, change: impl FnOnce(&mut Plan)) -> Running {
    start_as(address, change, |worker| worker.secured_by(tls))
}

/// Starts a worker that speaks DNSCrypt as `dnscrypt` says.
pub fn start_sealed(address: &str, dnscrypt: &Arc<DnscryptCell>, change: impl FnOnce(&mut Plan)) -> Running {
    start_as(address, change, |worker| worker.sealed_by(dnscrypt))
}

fn start_as(
    address: &str,
    change: impl FnOnce(&mut Plan),
    speaking: impl FnOnce(WorkerSockets) -> WorkerSockets,
) -> Running {
    let listener = ListenerPlan::new(address.parse().expect("an address"));
    let mut plan = Plan { listeners: vec![listener], ..Plan::default() };
    change(&mut plan);
    let sockets = listen::bind(&plan, 1, Vec::new()).expect("loopback has free ports");
    let address = sockets.addresses()[0].address;
    let worker = speaking(sockets.into_workers().pop().expect("one worker"));
    let (service, counters) = (Rc::new(Scripted::default()), Arc::new(Counters::default()));
    let (stopper, stop) = listen::stop();
    let serving = spawn_local(listen::serve(Rc::clone(&service), worker, Arc::clone(&counters), stop));
    Running { service, address, counters, stopper, serving }
}

/// Runs a test in real time.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

/// Runs a test in which time passes only while nothing else happens.
pub fn run_paused(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

/// Returns a PROXY header (version 2) for an IPv4 client.
pub fn proxy_header(client: [u8; 4], port: u16, stream: bool) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    header.push(if stream { 0x11 } else { 0x12 });
    header.extend(12u16.to_be_bytes());
    header.extend(client);
    header.extend([192, 0, 2, 53]);
    header.extend(port.to_be_bytes());
    header.extend(53u16.to_be_bytes());
    header
}
