//! Effects: what happens outside because of a query, after its reply and never before it.
//!
//! Each effect has a thread and a queue of its own: a router that does not answer holds up nobody
//! else. When a queue is full, what would be put in is dropped and counted; what waits there is
//! older, but its client may be waiting for it.

mod elements;
mod http;
mod ipset;
mod many;
mod mikrotik;
mod nft;
mod script;
pub(crate) mod template;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::Transport;
use events::Count;
use plan::jobs::{Effect as EffectPlan, EffectKind};
use tracing::{info, warn};
use wire::{Class, Rcode, Rtype};

use crate::limiter::Limiter;
use crate::queue::{Queue, Taken};
use crate::resolver::Resolvers;

/// Occurrences that one turn of an effect takes.
const BATCH_MAX: usize = 256;
/// How often an idle effect looks after what it keeps up.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long an effect that ends may go on with what is in its queue.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A query, as jobs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// When its reply was complete, in milliseconds since the Unix epoch.
    pub unix_ms: i64,
    /// How long it waited for others.
    pub waited_ms: u32,
    /// Who asked.
    pub client: IpAddr,
    /// From which port.
    pub port: u16,
    /// Over what.
    pub transport: Transport,
    /// The name asked for, in lower case, without the final dot (the root aside).
    pub qname: String,
    /// The type asked for.
    pub qtype: Rtype,
    /// The class asked for.
    pub qclass: Class,
    /// The reply's code; `None` when there was no reply.
    pub rcode: Option<Rcode>,
    /// Records in the reply's answer section.
    pub answers: u16,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// The smallest TTL of the addresses, in seconds.
    pub ttl: u32,
    /// Whoever waits until everything is done for it.
    pub tail: Tail,
}

/// Lets somebody wait until nobody works on an occurrence any more.
#[derive(Clone, Debug, Default)]
#[expect(dead_code, reason = "it is there to be dropped")]
pub struct Tail(Option<Sender<Infallible>>);

impl Tail {
    /// Returns one, and what ends when its last copy is gone.
    pub(crate) fn new() -> (Self, Receiver<Infallible>) {
        let (sender, receiver) = channel();
        (Self(Some(sender)), receiver)
    }
}

/// Who waits says nothing about what happened.
impl PartialEq for Tail {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Tail {}

/// What an effect sees that runs because of a schedule and not because of a query.
impl Default for Occurrence {
    fn default() -> Self {
        Self {
            unix_ms: 0,
            waited_ms: 0,
            client: Ipv4Addr::UNSPECIFIED.into(),
            port: 0,
            transport: Transport::Udp,
            qname: String::new(),
            qtype: Rtype(0),
            qclass: Class(0),
            rcode: None,
            answers: 0,
            addresses: Vec::new(),
            ttl: 0,
            tail: Tail::default(),
        }
    }
}

/// Carries out an effect. Lives on its own thread and may wait there.
pub(crate) trait Effect: Send {
    /// Does what is to be done for each of `batch`, and counts what came of it.
    fn carry_out(&mut self, batch: &[Arc<Occurrence>], counts: &Counts);

    /// Looks after what is kept up. Called every few seconds.
    fn look_after(&mut self, counts: &Counts) {
        let _ = counts;
    }

    /// The effect ends.
    fn end(&mut self, counts: &Counts) {
        let _ = counts;
    }
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EffectError(String);

impl EffectError {
    #[expect(clippy::needless_pass_by_value, reason = "callers have a text or a literal")]
    pub(crate) fn refused(why: impl ToString) -> Self {
        Self(why.to_string())
    }

    pub(crate) fn io(error: &io::Error) -> Self {
        match error.raw_os_error() {
            // The rights for it are kept only if the configuration of the start needs them.
            Some(libc::EPERM) => Self(
                "not permitted: the server started without such an effect, or without CAP_NET_ADMIN, and gave up the right"
                    .to_owned(),
            ),
            _ => Self(error.to_string()),
        }
    }
}

/// What an effect counts, and how it says what went wrong.
pub(crate) struct Counts {
    name: String,
    /// Things done: elements written, requests answered, scripts ended well.
    pub(crate) done: Count,
    /// Things that failed.
    pub(crate) failed: Count,
    /// Occurrences that found no room in the queue.
    pub(crate) dropped: Count,
    limiter: Limiter,
    is_well: AtomicBool,
}

impl Counts {
    /// Returns the counts of the effect `name`.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            done: Count::default(),
            failed: Count::default(),
            dropped: Count::default(),
            limiter: Limiter::new(1.0 / 60.0, 3.0),
            is_well: AtomicBool::new(true),
        }
    }

    /// Counts a failure, and logs it unless it was logged a moment ago.
    pub(crate) fn fail(&self, trouble: &EffectError) {
        self.failed.add(1);
        self.is_well.store(false, Ordering::Relaxed);
        if self.limiter.allows(Instant::now()) {
            warn!(effect = %self.name, failed = self.failed.read(), "{}", trouble.0);
        }
    }

    /// Notes that it works, and logs that if it did not before.
    pub(crate) fn works(&self) {
        if !self.is_well.swap(true, Ordering::Relaxed) {
            info!(effect = %self.name, "works again");
        }
    }
}

/// An effect that runs.
pub(crate) struct Runner {
    pub(crate) name: String,
    pub(crate) settings: EffectPlan,
    pub(crate) counts: Arc<Counts>,
    queue: Arc<Queue<Arc<Occurrence>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Runner {
    /// Starts an effect's thread.
    pub(crate) fn start(settings: &EffectPlan, resolvers: &Resolvers) -> io::Result<Self> {
        let name = settings.name.clone();
        let counts = Arc::new(Counts::new(&name));
        let queue = Arc::new(Queue::new(settings.queue));
        let mut effect: Box<dyn Effect> = match &settings.kind {
            EffectKind::Nftset(settings) => Box::new(nft::Nft::new(settings)),
            EffectKind::Ipset(settings) => Box::new(ipset::IpSet::new(settings)),
            EffectKind::Mikrotik(settings) => Box::new(mikrotik::Mikrotik::new(settings)),
            EffectKind::Http(settings) => Box::new(http::Http::new(settings, &name, resolvers)),
            EffectKind::Script(settings) => Box::new(script::Script::new(settings, &name)),
        };
        let (inbox, own) = (Arc::clone(&queue), Arc::clone(&counts));
        let thread = std::thread::Builder::new()
            .name(format!("effect-{}", settings.name))
            .spawn(move || work(&mut *effect, &inbox, &own))?;
        Ok(Self { name, settings: settings.clone(), counts, queue, thread: Mutex::new(Some(thread)) })
    }

    /// Hands an occurrence over, or drops and counts it; returns whether it was taken.
    pub(crate) fn tell(&self, occurrence: Arc<Occurrence>) -> bool {
        let is_taken = self.queue.put(occurrence);
        if !is_taken {
            self.counts.dropped.add(1);
        }
        is_taken
    }

    /// Returns how many occurrences wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Takes nothing more; what waits is still done, for a moment.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Waits for the end after [`Runner::close`].
    pub(crate) fn join(&self) {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn work(effect: &mut dyn Effect, queue: &Queue<Arc<Occurrence>>, counts: &Counts) {
    let mut batch = Vec::new();
    let mut deadline = None;
    let mut looked = Instant::now();
    loop {
        match queue.take(&mut batch, BATCH_MAX, IDLE_LOOK_EVERY) {
            Taken::Some => {
                let failed = counts.failed.read();
                effect.carry_out(&batch, counts);
                if counts.failed.read() == failed {
                    counts.works();
                }
                batch.clear();
            }
            Taken::Nothing => {}
            Taken::Closed => break,
        }
        if looked.elapsed() >= IDLE_LOOK_EVERY {
            looked = Instant::now();
            effect.look_after(counts);
        }
        if queue.is_closed() {
            let end = *deadline.get_or_insert_with(|| Instant::now() + LAST_WORDS);
            if Instant::now() >= end {
                counts.dropped.add(queue.len() as u64);
                break;
            }
        }
    }
    effect.end(counts);
}
