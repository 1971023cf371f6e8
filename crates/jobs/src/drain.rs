//! The events thread: reads the workers' events and hands each to whom it concerns.
//!
//! It never waits for any of them: queues have bounds, and what finds no room is dropped and
//! counted there.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use events::{Doorbell, EventReader, EventView};
use plan::jobs::{Learn, QueryLines};
use tracing::info;

use crate::effects::{Occurrence, Runner, Tail};
use crate::limiter::Limiter;
use crate::server::Server;
use events::Count;
use recorder::Clock;
use recorder::name_text;
use recorder::{Recorder, Taking};

/// Records that are read from one worker's ring before the others get their turn.
const TURN_RECORDS: usize = 4096;
/// How long the thread sleeps when nothing is urgent. Rings that are half full wake it, urgent
/// records do. When nothing has come meanwhile, it sleeps until something does.
const SLEEP: Duration = Duration::from_millis(100);
/// How long it pauses after something urgent, so that a busy worker wakes it a thousand times a
/// second at most.
const BREATH: Duration = Duration::from_millis(1);
/// Messages of the action `log` in the long run, and at once.
const LOG_PER_SECOND: f64 = 20.0;
const LOG_BURST: f64 = 50.0;

/// What a number in a record means now.
pub(crate) enum Route {
    Effect(Arc<Runner>),
    Record,
    Log(String),
    Lines(QueryLines),
    Learn(Learn),
    /// An effect that is gone.
    Nobody,
}

/// Where records go.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) routes: Vec<Route>,
    /// The addresses of listeners, by number.
    pub(crate) listeners: Vec<SocketAddr>,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) server: Option<Arc<dyn Server>>,
}

/// What the events thread counts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) read: Count,
    /// Records for effects that are gone.
    pub(crate) lost: Count,
    pub(crate) logged: Count,
    /// Messages that were not logged because there were too many.
    pub(crate) unlogged: Count,
}

/// The events thread as others see it.
pub(crate) struct Drain {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    routes: Mutex<Arc<Routes>>,
    counts: Counts,
    stops: AtomicBool,
}

impl Drain {
    /// Starts the thread.
    pub(crate) fn start(
        readers: Vec<EventReader>,
        doorbell: Arc<Doorbell>,
        clock: Clock,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            routes: Mutex::new(Arc::default()),
            counts: Counts::default(),
            stops: AtomicBool::new(false),
        });
        let mut reader = Reading {
            readers,
            doorbell,
            clock,
            shared: Arc::clone(&shared),
            batch: Vec::new(),
            batch_records: 0,
            limiter: Limiter::new(LOG_PER_SECOND, LOG_BURST),
        };
        let thread = std::thread::Builder::new().name("events".to_owned()).spawn(move || reader.work())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Sends records elsewhere from now on.
    pub(crate) fn redirect(&self, routes: Arc<Routes>) {
        *self.shared.lock() = routes;
    }

    /// Returns what it counts.
    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Reads what is there and ends.
    pub(crate) fn stop(&self) {
        self.shared.stops.store(true, Ordering::Release);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            drop(thread.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Arc<Routes>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the thread sleeps when there is nothing to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// For a moment, so that records gather.
    Short,
    /// For a moment, and workers were told to wake it for whatever comes: it looks once more before
    /// it sleeps for long.
    Announced,
    /// Until something comes.
    Long,
}

/// What the thread works with.
struct Reading {
    readers: Vec<EventReader>,
    doorbell: Arc<Doorbell>,
    clock: Clock,
    shared: Arc<Shared>,
    /// Records for the recorder, one after the other.
    batch: Vec<u64>,
    batch_records: u64,
    limiter: Limiter,
}

impl Reading {
    fn work(&mut self) {
        self.doorbell.belongs_to(std::thread::current());
        let mut taking = Taking::Done;
        let mut rest = Rest::Short;
        loop {
            // Asked before the rings are: events from before the end are read.
            let stops = self.shared.stops.load(Ordering::Acquire);
            let routes = Arc::clone(&self.shared.lock());
            let mut count = 0;
            let mut was_urgent = false;
            for index in 0..self.readers.len() {
                for _ in 0..TURN_RECORDS {
                    // Most records are for the recorder: they are copied once, to where it takes
                    // them from.
                    let start = self.batch.len();
                    let reader = self.readers.get_mut(index);
                    if !reader.is_some_and(|reader| reader.read_behind(&mut self.batch)) {
                        break;
                    }
                    count += 1;
                    was_urgent |= self.pass(&routes, start);
                }
            }
            if count > 0 && rest != Rest::Short {
                rest = Rest::Short;
                self.doorbell.want_many();
            }
            taking = match &routes.recorder {
                Some(recorder) if self.batch_records > 0 || taking == Taking::Later => {
                    recorder.take(&self.batch, self.batch_records)
                }
                Some(_) => Taking::Done,
                None => {
                    // The recorder is gone since they were read.
                    self.shared.counts.lost.add(self.batch_records);
                    Taking::Done
                }
            };
            // What the recorder cannot take now, it keeps aside.
            self.batch.clear();
            self.batch_records = 0;
            self.shared.counts.read.add(count);
            if count > 0 && (stops || was_urgent) {
                if !stops && self.readers.iter().all(EventReader::is_empty) {
                    std::thread::park_timeout(BREATH);
                }
                continue;
            }
            if stops && taking == Taking::Done {
                break;
            }
            if stops {
                std::thread::yield_now();
                continue;
            }
            // What is not urgent gathers: on a busy machine waking this thread costs more than all
            // that it reads. Who is replaced meanwhile ends meanwhile.
            drop(routes);
            self.doorbell.arm();
            if self.readers.iter().all(EventReader::is_empty) {
                match rest {
                    Rest::Long if taking == Taking::Done => std::thread::park(),
                    Rest::Short | Rest::Announced | Rest::Long => std::thread::park_timeout(SLEEP),
                }
                rest = match rest {
                    Rest::Short if count > 0 => Rest::Short,
                    Rest::Short => {
                        self.doorbell.want_any();
                        Rest::Announced
                    }
                    Rest::Announced | Rest::Long => Rest::Long,
                };
            }
            self.doorbell.disarm();
        }
    }

    /// Hands the record that begins at `start` of the batch to everybody whom it concerns, and
    /// leaves it there if the recorder is one of them; returns whether it is urgent.
    fn pass(&mut self, routes: &Routes, start: usize) -> bool {
        let event = EventView::new(self.batch.get(start..).unwrap_or(&[]));
        let mut made: Option<Arc<Occurrence>> = None;
        let mut is_recorded = false;
        for tell in event.event_set() {
            match routes.routes.get(usize::from(tell.0)) {
                Some(Route::Record) => is_recorded = routes.recorder.is_some(),
                Some(Route::Effect(runner)) => {
                    let made = made.get_or_insert_with(|| Arc::new(occurrence(event, self.clock)));
                    // What finds no room is counted there.
                    runner.tell(Arc::clone(made));
                }
                Some(Route::Log(text)) => {
                    let made = made.get_or_insert_with(|| Arc::new(occurrence(event, self.clock)));
                    self.log(text, made);
                }
                Some(Route::Lines(lines)) => {
                    crate::lines::log(event, lines, &routes.listeners);
                    self.shared.counts.logged.add(1);
                }
                Some(Route::Learn(learn)) => {
                    let made = made.get_or_insert_with(|| Arc::new(occurrence(event, self.clock)));
                    if let Some(server) = &routes.server {
                        server.learn(learn, made);
                    }
                }
                Some(Route::Nobody) | None => self.shared.counts.lost.add(1),
            }
        }
        let is_urgent = event.is_urgent();
        if is_recorded {
            self.batch_records += 1;
        } else {
            self.batch.truncate(start);
        }
        is_urgent
    }

    fn log(&self, text: &str, occurrence: &Occurrence) {
        if !self.limiter.allows(Instant::now()) {
            self.shared.counts.unlogged.add(1);
            return;
        }
        self.shared.counts.logged.add(1);
        let unlogged = self.limiter.refused();
        let addresses: Vec<String> = occurrence.addresses.iter().map(ToString::to_string).collect();
        info!(
            client = %occurrence.client,
            name = %occurrence.qname,
            r#type = %occurrence.qtype,
            rcode = %occurrence.rcode.map_or_else(|| "none".to_owned(), |rcode| rcode.to_string()),
            addresses = %addresses.join(","),
            transport = occurrence.transport.word(),
            waited_ms = occurrence.waited_ms,
            unlogged,
            "{text}"
        );
    }
}

/// Returns what a record says, as jobs see it.
fn occurrence(event: EventView<'_>, clock: Clock) -> Occurrence {
    let mut room = [0; 256];
    Occurrence {
        unix_ms: clock.unix_ms(event.monotonic_ms()),
        waited_ms: event.waited_ms(),
        client: event.client(),
        port: event.port(),
        transport: event.transport(),
        qname: name_text(event.qname(&mut room)),
        qtype: event.qtype(),
        qclass: event.qclass(),
        rcode: event.rcode(),
        answers: event.answers(),
        addresses: event.addresses().collect(),
        ttl: event.ttl(),
        tail: Tail::default(),
    }
}
