//! Work nobody waits for: each has an owner, a limit, a log line.
//!
//! Never on a query's path: what cannot keep up loses events, counted, and never slows a worker.

#![forbid(unsafe_code)]

pub mod alias;
pub mod anchors;
mod checkpoints;
pub mod dnstap;
mod download;
mod drain;
mod effects;
pub mod health;
mod http;
mod limiter;
mod lines;
mod netlink;
mod queue;
mod resolver;
mod schedule;
mod server;
pub mod signing;
mod tls;
pub mod web;
mod webhooks;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use events::{Doorbell, EventCounts, EventReader, LabelId};
use plan::jobs::{EventAction, Task};
use tracing::info;

pub use download::{Download, ListState};
pub use effects::Occurrence;
pub use recorder::{Clock, StepNames};
pub use resolver::{Addresses, Lookup};
pub use schedule::{ScheduleError, State};
pub use server::Server;
pub use webhooks::{Message, Webhooks};

use checkpoints::Checkpoints;
use download::Downloads;
use drain::{Drain, Route, Routes};
use effects::{Runner, Tail};
use recorder::{Recorder, Steps};
use resolver::Resolvers;
use schedule::{Schedules, TaskRunner};

/// Policies whose steps are remembered by name: queries that wait over a reload name the steps of
/// an older one.
const POLICIES_REMEMBERED: usize = 8;

/// What jobs need of the rest of the program.
pub struct Parts {
    /// The readers of the workers' rings.
    pub readers: Vec<EventReader>,
    /// What wakes the thread that reads them.
    pub doorbell: Arc<Doorbell>,
    /// Messages for dnstap.
    pub dnstap: dnstap::Parts,
    /// The workers' clock.
    pub clock: Clock,
    /// The server that they work for.
    pub server: Arc<dyn Server>,
    /// Resolves names of web servers, at servers that the operator names.
    pub lookup: Arc<dyn Lookup>,
    /// Makes the calling thread less important than those that answer queries.
    pub lower_priority: fn(),
}

/// All jobs of a server.
pub struct Jobs {
    drain: Drain,
    dnstap: dnstap::Sender,
    checkpoints: Checkpoints,
    webhooks: Webhooks,
    schedules: Schedules,
    downloads: Arc<Downloads>,
    counts: Vec<EventCounts>,
    clock: Clock,
    server: Arc<dyn Server>,
    resolvers: Resolvers,
    lower_priority: fn(),
    steps: Steps,
    running: Arc<Mutex<Running>>,
}

/// What a reload replaces.
#[derive(Default)]
struct Running {
    effects: Vec<Arc<Runner>>,
    recorder: Option<Arc<Recorder>>,
    labels: Vec<String>,
}

/// Jobs that have their threads, and run as soon as their plan is adopted. Dropping it ends what is
/// new.
pub struct Prepared {
    effects: Vec<Arc<Runner>>,
    recorder: Option<Arc<Recorder>>,
}

/// A job that the machine refuses a thread.
#[derive(Debug)]
pub struct NotStarted {
    /// Which.
    pub what: String,
    /// What the machine said.
    pub error: io::Error,
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be started: {}", self.what, self.error)
    }
}

impl std::error::Error for NotStarted {}

/// Counters by group: what `gannet stats` shows.
pub type Stats = BTreeMap<String, BTreeMap<String, u64>>;

/// Locks a mutex. A panic ends the process, so that a poisoned one is never seen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what schedules ask for: effects here, the rest elsewhere.
struct OwnTasks {
    running: Arc<Mutex<Running>>,
    downloads: Arc<Downloads>,
    server: Arc<dyn Server>,
}

impl TaskRunner for OwnTasks {
    fn carry_out(&self, task: &Task) -> Result<String, String> {
        let name = match task {
            Task::Effect(name) => name,
            Task::Refresh(set) => {
                let lists = self.downloads.refresh(set.as_deref());
                let count = lists.len();
                return match (count, set) {
                    (0, Some(set)) => Err(format!("no list of the set \"{set}\" is fetched")),
                    (0, None) => Err("no list is fetched".to_owned()),
                    _ => {
                        // The end of one that is taken out of the configuration meanwhile is no
                        // failure.
                        let failed = lists.into_iter().filter(|end| end.recv() == Ok(false)).count();
                        match failed {
                            0 => Ok(format!("lists asked for anew: {count}")),
                            failed => Err(format!("lists not fetched: {failed} of {count}")),
                        }
                    }
                };
            }
            Task::Dump(cache) => return self.server.dump(cache.as_deref()),
        };
        let runner = lock(&self.running).effects.iter().find(|effect| effect.name == *name).cloned();
        let Some(runner) = runner else { return Err(format!("there is no effect \"{name}\"")) };
        let (tail, end) = Tail::new();
        let occurrence = Occurrence { unix_ms: recorder::unix_ms_now(), tail, ..Occurrence::default() };
        if !runner.tell(Arc::new(occurrence)) {
            return Err(format!("the queue of effect \"{name}\" is full"));
        }
        // It is the effect's now: when that is gone, so is what waits in its queue.
        drop(runner);
        // A schedule is at work for as long as what it began.
        let _ = end.recv();
        Ok(format!("effect \"{name}\" has ended"))
    }
}

impl Jobs {
    /// Starts the threads that are always there; effects and the recorder come with
    /// [`Jobs::adopt`].
    pub fn start(parts: Parts) -> io::Result<Self> {
        let Parts { readers, doorbell, dnstap, clock, server, lookup, lower_priority } = parts;
        let running: Arc<Mutex<Running>> = Arc::default();
        let resolvers = Resolvers::new(lookup);
        let downloads = Arc::new(Downloads::start(Arc::clone(&server), resolvers.clone())?);
        let own_tasks = OwnTasks {
            running: Arc::clone(&running),
            downloads: Arc::clone(&downloads),
            server: Arc::clone(&server),
        };
        let counts = readers.iter().map(EventReader::counts).collect();
        Ok(Self {
            drain: Drain::start(readers, doorbell, clock)?,
            dnstap: dnstap::Sender::start(dnstap, clock)?,
            checkpoints: Checkpoints::new(resolvers.clone()),
            webhooks: Webhooks::new(resolvers.clone()),
            schedules: Schedules::start(Arc::new(own_tasks))?,
            downloads,
            counts,
            clock,
            server,
            resolvers,
            lower_priority,
            steps: Steps::default(),
            running,
        })
    }

    /// Starts what a plan has and the one in use has not; it has nothing to do before
    /// [`Jobs::adopt`].
    ///
    /// # Errors
    ///
    /// Everything that cannot be started; the others are ended again.
    pub fn prepare(&self, plan: &plan::jobs::Jobs) -> Result<Prepared, Vec<NotStarted>> {
        let running = lock(&self.running);
        let (mut effects, mut failed) = (Vec::new(), Vec::new());
        for settings in &plan.effects {
            let kept = running.effects.iter().find(|effect| effect.settings == *settings);
            let start = || Runner::start(settings, &self.resolvers).map(Arc::new);
            match kept.map_or_else(start, |kept| Ok(Arc::clone(kept))) {
                Ok(effect) => effects.push(effect),
                Err(error) => {
                    failed.push(NotStarted { what: format!("effect \"{}\"", settings.name), error });
                }
            }
        }
        let recorder = match (&plan.recorder, &running.recorder) {
            (Some(settings), Some(kept)) if kept.settings == *settings => Some(Arc::clone(kept)),
            (Some(settings), _) => {
                // It opens its file with the first record that it gets.
                match Recorder::start(settings, self.clock, Arc::clone(&self.steps), self.lower_priority) {
                    Ok(started) => Some(Arc::new(started)),
                    Err(error) => {
                        failed.push(NotStarted { what: "the recorder".to_owned(), error });
                        None
                    }
                }
            }
            (None, _) => None,
        };
        if failed.is_empty() { Ok(Prepared { effects, recorder }) } else { Err(failed) }
    }

    /// Runs on `plan` from now on, for which `prepared` was made. What is the same as before goes
    /// on undisturbed; what is gone does what is in its queue.
    pub fn adopt(
        &self,
        prepared: Prepared,
        plan: &plan::jobs::Jobs,
        downloads: &[Download],
        steps: StepNames,
    ) {
        let Prepared { effects, recorder } = prepared;
        {
            let mut known = lock(&self.steps);
            known.insert(0, steps);
            known.truncate(POLICIES_REMEMBERED);
        }
        self.resolvers.adopt(&plan.resolvers);
        self.dnstap.adopt(plan.dnstap.as_ref());
        self.checkpoints.adopt(&plan.audit_sinks);
        self.webhooks.adopt(&plan.webhooks);
        let mut running = lock(&self.running);
        if let Some(recorder) = &recorder
            && running.recorder.as_ref().is_none_or(|known| !Arc::ptr_eq(known, recorder))
        {
            info!(file = %recorder.settings.file.display(), "queries are recorded");
        }
        let route = |tell: &EventAction| match tell {
            EventAction::Effect(name) => {
                let effect = effects.iter().find(|effect| effect.name == *name);
                effect.map_or(Route::Nobody, |effect| Route::Effect(Arc::clone(effect)))
            }
            EventAction::Record => Route::Record,
            EventAction::Log(text) => Route::Log(text.clone()),
            EventAction::Lines(lines) => Route::Lines(lines.clone()),
            EventAction::Learn(learn) => Route::Learn(learn.clone()),
        };
        self.drain.redirect(Arc::new(Routes {
            routes: plan.event_set.iter().map(route).collect(),
            listeners: plan.listeners.clone(),
            recorder: recorder.clone(),
            server: Some(Arc::clone(&self.server)),
        }));
        let old = std::mem::replace(&mut running.effects, effects);
        for effect in old.iter().filter(|old| !running.effects.iter().any(|new| Arc::ptr_eq(old, new))) {
            effect.close();
        }
        let is_over = |old: &Recorder| {
            let goes_on = |new: &Arc<Recorder>| {
                new.settings.file == old.settings.file && new.settings.clients == old.settings.clients
            };
            !recorder.as_ref().is_some_and(goes_on)
        };
        if let Some(old) = running.recorder.as_ref().filter(|old| is_over(old)) {
            old.forget_key();
        }
        running.recorder = recorder;
        running.labels = plan.labels.clone();
        drop(running);
        self.schedules.adopt(&plan.schedules);
        self.downloads.adopt(downloads);
    }

    /// Ends everything: past events are still read, what waits is done for a moment, records are
    /// written.
    pub fn stop(&self) {
        self.schedules.stop();
        self.downloads.stop();
        self.drain.stop();
        self.dnstap.stop();
        self.drain.redirect(Arc::default());
        let mut running = lock(&self.running);
        let (effects, recorder) = (std::mem::take(&mut running.effects), running.recorder.take());
        drop(running);
        // All at once, and then one after the other.
        effects.iter().for_each(|effect| effect.close());
        effects.iter().for_each(|effect| effect.join());
        if let Some(recorder) = recorder {
            recorder.stop();
        }
        self.checkpoints.stop();
        self.webhooks.stop();
    }

    /// Has a checkpoint of the audit log given to those who keep them; waits for nobody.
    pub fn keep_checkpoint(&self, checkpoint: &str) {
        self.checkpoints.give(checkpoint);
    }

    /// Returns who is sent events of the server.
    pub const fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// Returns the schedules.
    pub fn schedules(&self) -> Vec<State> {
        self.schedules.states()
    }

    /// Returns the lists that are fetched.
    pub fn lists(&self) -> Vec<ListState> {
        self.downloads.states()
    }

    /// Fetches the lists of a set now, or all; each end says whether that succeeded, when what is
    /// new is in use.
    pub fn fetch_lists(&self, set: Option<&str>) -> Vec<Receiver<bool>> {
        self.downloads.refresh(set)
    }

    /// Begins a schedule now; an error says why not.
    pub fn run_now(&self, name: &str) -> Result<(), ScheduleError> {
        self.schedules.run_now(name)
    }

    /// Removes what these clients asked for from the record of queries; returns how many records.
    ///
    /// # Errors
    ///
    /// Nothing is recorded, or a file cannot be changed.
    pub fn forget_client(&self, clients: recorder::Clients) -> Result<u64, String> {
        let recorder = lock(&self.running).recorder.clone();
        recorder.ok_or_else(|| "no queries are recorded".to_owned())?.forget_clients(clients)
    }

    /// Returns what is counted: `events`, `recorder`, one group for each effect, and the labels.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::new();
        let mut put = |group: &str, numbers: &[(&str, u64)]| {
            let group = stats.entry(group.to_owned()).or_default();
            group.extend(numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)));
        };
        let told = self.counts.iter().map(EventCounts::told).sum();
        let dropped = self.counts.iter().map(EventCounts::dropped).sum();
        let drain = self.drain.counts();
        put(
            "events",
            &[
                ("told", told),
                ("dropped", dropped),
                ("read", drain.read.read()),
                ("lost", drain.lost.read()),
                ("logged", drain.logged.read()),
                ("unlogged", drain.unlogged.read()),
            ],
        );
        let downloads = self.downloads.counts();
        put(
            "downloads",
            &[
                ("fetched", downloads.fetched.read()),
                ("unchanged", downloads.unchanged.read()),
                ("failed", downloads.failed.read()),
                ("octets", downloads.octets.read()),
            ],
        );
        if let Some(counts) = self.dnstap.stats() {
            put("dnstap", &counts);
        }
        put("audit-checkpoints", &self.checkpoints.stats());
        for (name, counts) in self.webhooks.stats() {
            put(&format!("webhook.{name}"), &counts);
        }
        let running = lock(&self.running);
        if let Some(recorder) = &running.recorder {
            let counts = recorder.counts();
            put(
                "recorder",
                &[
                    ("written", counts.written.read()),
                    ("dropped", counts.dropped.read()),
                    ("failed", counts.failed.read()),
                    ("removed", counts.removed.read()),
                ],
            );
        }
        for effect in &running.effects {
            let counts = &effect.counts;
            put(
                &format!("effect.{}", effect.name),
                &[
                    ("done", counts.done.read()),
                    ("failed", counts.failed.read()),
                    ("dropped", counts.dropped.read()),
                    ("waiting", effect.waiting() as u64),
                ],
            );
        }
        drop(running);
        for (label, count) in self.labels() {
            put("label", &[(label.as_str(), count)]);
        }
        stats
    }

    /// Returns how many queries were counted under each label.
    pub fn labels(&self) -> BTreeMap<String, u64> {
        let running = lock(&self.running);
        let ids = (0..=u16::MAX).map(LabelId);
        let count = |id| self.counts.iter().map(|counts| counts.label(id)).sum();
        running.labels.iter().cloned().zip(ids.map(count)).collect()
    }
}
