//! The thread that sends messages as dnstap: reads the workers' rings, and writes to a receiver.
//!
//! Only this thread waits for the receiver. While it does, messages gather in the rings, and what
//! finds no room there is dropped and counted.

mod connection;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dnstap::{Encoder, Message, Sampling, Tap, TapReader, TapView, Times, frames};
use plan::dnstap::Dnstap;
use tracing::{info, warn};

use crate::lock;
use connection::Connection;
use recorder::Clock;

/// Octets that are written at once, but for the last message.
const BATCH_OCTETS: usize = 64 * 1024;
/// How long messages gather before they are read. Rings that are half full wake the thread.
const NAP: Duration = Duration::from_millis(10);
/// Naps without a message before the thread sleeps until there is one.
const NAPS_MAX: u32 = 10;
/// How long it sleeps then, at most: it looks whether the receiver is there.
const SLEEP: Duration = Duration::from_secs(1);
/// How long it waits before it connects again: twice as long each time.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// How long what is in the rings is still sent when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What it needs of the rest of the program.
pub struct Parts {
    /// Says which messages are wanted.
    pub tap: Arc<Tap>,
    /// The readers of the workers' rings.
    pub readers: Vec<TapReader>,
    /// Where the listeners are, by their numbers.
    pub listeners: Vec<SocketAddr>,
}

/// Sends messages to whom the plan says.
pub(crate) struct Sender {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    rings: Vec<TapView>,
    /// Whether there was ever a plan.
    is_used: AtomicBool,
}

struct Shared {
    tap: Arc<Tap>,
    order: Mutex<Order>,
    /// Whether the order is new: what the thread does now is to end.
    is_changed: AtomicBool,
    counts: Counts,
}

/// What the thread is to do.
#[derive(Default)]
struct Order {
    plan: Option<Arc<Dnstap>>,
    is_stopping: bool,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
    connected: AtomicU64,
    failed: AtomicU64,
}

impl Sender {
    /// Starts the thread, which has nothing to do before [`Sender::adopt`].
    pub(crate) fn start(parts: Parts, clock: Clock) -> io::Result<Self> {
        let Parts { tap, readers, listeners } = parts;
        let rings = readers.iter().map(TapReader::view).collect();
        let shared = Arc::new(Shared {
            tap,
            order: Mutex::default(),
            is_changed: AtomicBool::new(false),
            counts: Counts::default(),
        });
        let thread = Thread {
            shared: Arc::clone(&shared),
            readers,
            listeners,
            clock,
            batch: Vec::new(),
            message: Message::default(),
            encoder: Encoder::default(),
        };
        let thread = std::thread::Builder::new().name("dnstap".to_owned()).spawn(move || thread.run())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), rings, is_used: AtomicBool::new(false) })
    }

    /// Copies messages as `plan` says from now on, and has them sent.
    pub(crate) fn adopt(&self, plan: Option<&Dnstap>) {
        let mut order = lock(&self.shared.order);
        if order.plan.as_deref() == plan {
            return;
        }
        order.plan = plan.cloned().map(Arc::new);
        match plan {
            Some(plan) => {
                self.is_used.store(true, Ordering::Relaxed);
                let mut seed = [0; 8];
                // Without, it can be guessed which messages are in the sample.
                let _ = getrandom::fill(&mut seed);
                self.rings.iter().for_each(TapView::fill_in);
                let sampling = Sampling { one_of: plan.one_of, seed: u64::from_ne_bytes(seed) };
                self.shared.tap.open(plan.kinds, sampling);
            }
            None => self.shared.tap.close(),
        }
        self.announce(&order);
    }

    /// Sends what is in the rings, for a moment, and ends.
    pub(crate) fn stop(&self) {
        self.shared.tap.close();
        {
            let mut order = lock(&self.shared.order);
            order.is_stopping = true;
            self.announce(&order);
        }
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there has ended the process.
            let _ = thread.join();
        }
    }

    /// Returns what is counted, once there was somebody to send to.
    pub(crate) fn stats(&self) -> Option<[(&'static str, u64); 4]> {
        let is_used = self.is_used.load(Ordering::Relaxed);
        let counts = &self.shared.counts;
        let dropped: u64 = self.rings.iter().map(TapView::dropped).sum();
        is_used.then(|| {
            [
                ("sent", counts.sent.load(Ordering::Relaxed)),
                ("lost", counts.lost.load(Ordering::Relaxed) + dropped),
                ("connected", counts.connected.load(Ordering::Relaxed)),
                ("failed", counts.failed.load(Ordering::Relaxed)),
            ]
        })
    }

    /// Has the thread look at the order, which is locked: it takes this one, and no other is
    /// announced to it.
    fn announce(&self, _: &Order) {
        self.shared.is_changed.store(true, Ordering::Release);
        self.shared.tap.bell().ring();
    }
}

struct Thread {
    shared: Arc<Shared>,
    readers: Vec<TapReader>,
    listeners: Vec<SocketAddr>,
    clock: Clock,
    /// Frames that are to be written.
    batch: Vec<u8>,
    message: Message,
    encoder: Encoder,
}

impl Thread {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        shared.tap.bell().belongs_to(std::thread::current());
        loop {
            let (plan, is_stopping) = {
                let order = lock(&shared.order);
                shared.is_changed.store(false, Ordering::Release);
                (order.plan.clone(), order.is_stopping)
            };
            match plan {
                _ if is_stopping => return,
                Some(plan) => self.send(&plan),
                None => self.rest(),
            }
        }
    }

    /// Waits for another order.
    fn rest(&mut self) {
        while !self.is_over() {
            std::thread::park();
        }
    }

    fn is_over(&self) -> bool {
        self.shared.is_changed.load(Ordering::Acquire)
    }

    /// Sends messages until the order changes.
    fn send(&mut self, plan: &Arc<Dnstap>) {
        let mut retry = Retry::default();
        while !self.is_over() {
            match Connection::open(plan, &|| self.is_over()) {
                Ok(connection) => {
                    retry.connected(plan);
                    self.shared.counts.connected.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = self.feed(connection, plan) {
                        retry.failed(plan, &error);
                    }
                }
                Err(_) if self.is_over() => {}
                Err(error) => {
                    self.shared.counts.failed.fetch_add(1, Ordering::Relaxed);
                    retry.failed(plan, &error);
                }
            }
            let until = retry.at();
            while !self.is_over() && Instant::now() < until {
                std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
            }
        }
        if lock(&self.shared.order).plan.is_none() {
            // What was for this receiver is for nobody that comes later.
            let left = self.discard();
            self.shared.counts.lost.fetch_add(left, Ordering::Relaxed);
        }
    }

    /// Feeds a connection until the order changes, or the receiver is gone.
    fn feed(&mut self, mut connection: Connection, plan: &Arc<Dnstap>) -> io::Result<()> {
        let mut quiet = 0;
        while !self.is_over() {
            let count = self.fill(plan);
            if count > 0 {
                quiet = 0;
                self.write(&mut connection, count, &|shared| shared.is_changed.load(Ordering::Acquire))?;
                // More may have come meanwhile.
                if self.batch_was_full() {
                    continue;
                }
            } else {
                quiet += 1;
            }
            if !self.sleep(quiet) && !connection.is_alive() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
            }
        }
        let deadline = Instant::now() + LAST_WORDS;
        loop {
            let count = self.fill(plan);
            if count == 0 || Instant::now() >= deadline {
                self.shared.counts.lost.fetch_add(count, Ordering::Relaxed);
                break;
            }
            self.write(&mut connection, count, &|_| Instant::now() >= deadline)?;
        }
        let deadline = deadline + LAST_WORDS;
        connection.finish(&|| Instant::now() >= deadline)
    }

    fn batch_was_full(&self) -> bool {
        self.batch.len() >= BATCH_OCTETS
    }

    /// Writes the batch, which has so many messages.
    fn write(
        &self,
        connection: &mut Connection,
        count: u64,
        is_over: &dyn Fn(&Shared) -> bool,
    ) -> io::Result<()> {
        let counts = &self.shared.counts;
        let written = if connection.is_alive() {
            connection.write(&self.batch, &|| is_over(&self.shared))
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"))
        };
        let counter = if written.is_ok() { &counts.sent } else { &counts.lost };
        counter.fetch_add(count, Ordering::Relaxed);
        written
    }

    /// Sleeps until there may be messages; false if there may be none for a long time.
    fn sleep(&self, quiet: u32) -> bool {
        let bell = self.shared.tap.bell();
        let is_long = quiet > NAPS_MAX;
        if is_long {
            bell.sleep();
        } else {
            bell.nap();
        }
        if !self.is_over() && self.readers.iter().all(TapReader::is_empty) {
            std::thread::park_timeout(if is_long { SLEEP } else { NAP });
        } else if !is_long {
            // What is there gathers.
            std::thread::park_timeout(NAP);
        }
        bell.wake();
        !is_long
    }

    /// Takes messages from the rings into the batch; returns how many.
    fn fill(&mut self, plan: &Dnstap) -> u64 {
        let Self { readers, listeners, batch, message, encoder, .. } = self;
        let offsets = self.clock.offsets();
        batch.clear();
        let mut count = 0;
        for reader in readers {
            while batch.len() < BATCH_OCTETS && reader.read(message) {
                let is_of_client = message.kind.is_of_client();
                let offset = if is_of_client { offsets.since_start } else { offsets.since_boot };
                let times = Times {
                    at_us: message.at_us.saturating_add(offset),
                    query_at_us: message.query_at_us.map(|at| at.saturating_add(offset)),
                };
                let local = if is_of_client { local(listeners, message) } else { (None, None) };
                let start = frames::begin(batch);
                encoder.write(&plan.envelope, message, times, local, batch);
                frames::end(batch, start);
                count += 1;
            }
        }
        count
    }

    /// Takes everything from the rings; returns how many messages that were.
    fn discard(&mut self) -> u64 {
        let mut count = 0;
        for reader in &mut self.readers {
            while reader.read(&mut self.message) {
                count += 1;
            }
        }
        count
    }
}

/// Returns our end of a conversation with a client: no address where the listener has all.
fn local(listeners: &[SocketAddr], message: &Message) -> (Option<IpAddr>, Option<u16>) {
    let listener = listeners.get(usize::from(message.listener)).filter(|_| message.peer.address.is_some());
    let address = listener.map(SocketAddr::ip).filter(|address| !address.is_unspecified());
    (address, listener.map(SocketAddr::port))
}

/// When to connect again, and what is said of it in the log: once for each time that a receiver is
/// gone.
#[derive(Default)]
struct Retry {
    wait: Duration,
    is_told: bool,
    /// Since when there is a receiver.
    connected: Option<Instant>,
}

impl Retry {
    fn connected(&mut self, plan: &Dnstap) {
        info!(to = %plan.to, "dnstap: connected");
        (self.is_told, self.connected) = (false, Some(Instant::now()));
    }

    fn failed(&mut self, plan: &Dnstap, error: &io::Error) {
        if self.connected.take().is_some_and(|since| since.elapsed() >= RETRY_MAX) {
            // One that takes connections and ends them is not asked again and again.
            self.wait = Duration::ZERO;
        }
        self.wait = (self.wait * 2).clamp(RETRY_MIN, RETRY_MAX);
        if !std::mem::replace(&mut self.is_told, true) {
            warn!(to = %plan.to, %error, "dnstap: no receiver; messages that find no room are dropped");
        }
    }

    fn at(&self) -> Instant {
        Instant::now() + self.wait
    }
}
