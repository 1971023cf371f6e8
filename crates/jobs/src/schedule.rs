//! Things done at certain times, as cron does them.
//!
//! Times are those of a time zone. A time that does not exist, because clocks were put forward, is
//! the first that does; one that exists twice counts once. What is still at work when its next time
//! comes is not begun again. Times that passed while the server did not run, or while the machine
//! slept, are not made up for.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use croner::Cron;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use plan::jobs::{Schedule, Task};
use tracing::{error, info, warn};

use crate::lock;

/// How long we sleep at most: the clock on the wall may be set, and time zones may change.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// Later than this, a time has passed by: the machine slept.
const LATE_MAX: Duration = Duration::from_secs(120);

/// Why a schedule is not begun now.
#[derive(Debug)]
pub enum ScheduleError {
    /// There is none of this name.
    NotFound(String),
    /// This one is still at work.
    AtWork(String),
    /// The machine refuses a thread.
    NoThread(io::Error),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(name) => write!(f, "there is no schedule \"{name}\""),
            Self::AtWork(name) => write!(f, "\"{name}\" is still at work"),
            Self::NoThread(error) => write!(f, "no thread for it: {error}"),
        }
    }
}

impl std::error::Error for ScheduleError {}

/// Does what a task says; returns what came of it, for the log.
pub(crate) trait TaskRunner: Send + Sync {
    /// Does it, however long that takes.
    fn carry_out(&self, task: &Task) -> Result<String, String>;
}

/// A schedule as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its name.
    pub name: String,
    /// When it runs.
    pub at: String,
    /// The time zone that means.
    pub time_zone: String,
    /// What it does.
    pub tasks: Vec<String>,
    /// When it runs next.
    pub next: Option<String>,
    /// When it began last.
    pub last: Option<String>,
    /// What came of that; `None` while it is at work, or if it never was.
    pub outcome: Option<Result<String, String>>,
    /// Whether it is at work.
    pub is_running: bool,
    /// How often it ran.
    pub runs: u64,
    /// Times at which it was still at work.
    pub skipped: u64,
}

struct Entry {
    schedule: Schedule,
    cron: Cron,
    zone: TimeZone,
    next: Mutex<Option<Zoned>>,
    record: Mutex<Record>,
    is_running: AtomicBool,
    runs: AtomicU64,
    skipped: AtomicU64,
}

#[derive(Default)]
struct Record {
    last: Option<Zoned>,
    outcome: Option<Result<String, String>>,
}

impl Entry {
    fn new(schedule: &Schedule) -> Option<Arc<Self>> {
        // Both were checked with the configuration.
        let cron = schedule.at.parse::<Cron>().ok()?;
        let zone = match &schedule.time_zone {
            Some(name) => TimeZone::get(name).ok()?,
            None => TimeZone::system(),
        };
        let entry = Self {
            schedule: schedule.clone(),
            cron,
            zone,
            next: Mutex::new(None),
            record: Mutex::new(Record::default()),
            is_running: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        };
        *lock(&entry.next) = entry.after(Timestamp::now());
        Some(Arc::new(entry))
    }

    fn after(&self, now: Timestamp) -> Option<Zoned> {
        self.cron.find_next_occurrence(&now.to_zoned(self.zone.clone()), false).ok()
    }

    /// Returns whether its time has come, and sets the next.
    fn is_due(&self, now: Timestamp) -> bool {
        let mut next = lock(&self.next);
        let Some(at) = next.as_ref().map(Zoned::timestamp) else { return false };
        if at > now {
            return false;
        }
        *next = self.after(now);
        let late = now.duration_since(at).unsigned_abs();
        if late > LATE_MAX {
            warn!(schedule = %self.schedule.name, late_s = late.as_secs(), "its time has passed by");
        }
        late <= LATE_MAX
    }

    fn state(&self) -> State {
        let record = lock(&self.record);
        let shown = |time: &Zoned| time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        State {
            name: self.schedule.name.clone(),
            at: self.schedule.at.clone(),
            time_zone: self.schedule.time_zone.as_ref().map_or_else(|| "local".to_owned(), Clone::clone),
            tasks: self.schedule.tasks.iter().map(ToString::to_string).collect(),
            next: lock(&self.next).as_ref().map(shown),
            last: record.last.as_ref().map(shown),
            outcome: record.outcome.clone(),
            is_running: self.is_running.load(Ordering::Acquire),
            runs: self.runs.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
        }
    }

    /// Begins it on a thread of its own, unless it is at work.
    fn begin(self: &Arc<Self>, task_runner: &Arc<dyn TaskRunner>) -> Result<(), ScheduleError> {
        if self.is_running.swap(true, Ordering::AcqRel) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            warn!(schedule = %self.schedule.name, "still at work; not begun again");
            return Err(ScheduleError::AtWork(self.schedule.name.clone()));
        }
        let (entry, task_runner) = (Arc::clone(self), Arc::clone(task_runner));
        let started =
            std::thread::Builder::new().name("schedule".to_owned()).spawn(move || entry.run(&*task_runner));
        started.map(drop).map_err(|error| {
            self.is_running.store(false, Ordering::Release);
            ScheduleError::NoThread(error)
        })
    }

    fn run(&self, task_runner: &dyn TaskRunner) {
        let begin = Instant::now();
        *lock(&self.record) =
            Record { last: Some(Timestamp::now().to_zoned(self.zone.clone())), outcome: None };
        let mut said = Vec::new();
        let mut failed = Vec::new();
        // One that fails does not keep the others from being done.
        for task in &self.schedule.tasks {
            match task_runner.carry_out(task) {
                Ok(what) => said.push(what),
                Err(why) => failed.push(format!("{task}: {why}")),
            }
        }
        let (name, took_ms) = (&self.schedule.name, begin.elapsed().as_millis() as u64);
        let outcome = if failed.is_empty() { Ok(said.join("; ")) } else { Err(failed.join("; ")) };
        match &outcome {
            Ok(what) => info!(schedule = %name, took_ms, "done: {what}"),
            Err(why) => error!(schedule = %name, took_ms, "failed: {why}"),
        }
        lock(&self.record).outcome = Some(outcome);
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.is_running.store(false, Ordering::Release);
    }
}

/// All schedules, and the thread that watches the clock.
pub(crate) struct Schedules {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    entries: Mutex<Vec<Arc<Entry>>>,
    changed: Condvar,
    stops: AtomicBool,
    task_runner: Arc<dyn TaskRunner>,
}

impl Schedules {
    /// Starts the thread; there is nothing to do yet.
    pub(crate) fn start(task_runner: Arc<dyn TaskRunner>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            entries: Mutex::new(Vec::new()),
            changed: Condvar::new(),
            stops: AtomicBool::new(false),
            task_runner,
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("schedules".to_owned()).spawn(move || own.watch())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Takes up new schedules; those that stay keep what is known of them.
    pub(crate) fn adopt(&self, schedules: &[Schedule]) {
        let mut entries = lock(&self.shared.entries);
        *entries = schedules
            .iter()
            .filter_map(|schedule| {
                let kept = entries.iter().find(|entry| entry.schedule == *schedule);
                kept.cloned().or_else(|| Entry::new(schedule))
            })
            .collect();
        drop(entries);
        self.shared.changed.notify_all();
    }

    /// Returns all of them.
    pub(crate) fn states(&self) -> Vec<State> {
        lock(&self.shared.entries).iter().map(|entry| entry.state()).collect()
    }

    /// Begins one now.
    pub(crate) fn run_now(&self, name: &str) -> Result<(), ScheduleError> {
        let found = lock(&self.shared.entries).iter().find(|entry| entry.schedule.name == name).cloned();
        match found {
            Some(entry) => entry.begin(&self.shared.task_runner),
            None => Err(ScheduleError::NotFound(name.to_owned())),
        }
    }

    /// Ends the watch; what is at work is left to itself.
    pub(crate) fn stop(&self) {
        self.shared.stops.store(true, Ordering::Release);
        self.shared.changed.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn watch(&self) {
        let mut entries = lock(&self.entries);
        while !self.stops.load(Ordering::Acquire) {
            let now = Timestamp::now();
            for entry in entries.iter().filter(|entry| entry.is_due(now)) {
                // It was logged.
                let _ = entry.begin(&self.task_runner);
            }
            let next =
                entries.iter().filter_map(|entry| lock(&entry.next).as_ref().map(Zoned::timestamp)).min();
            let sleep = next.map_or(SLEEP_MAX, |next| {
                Duration::try_from(next.duration_since(now)).unwrap_or_default().min(SLEEP_MAX)
            });
            // A millisecond more than needed, so that the time has come when we wake.
            let sleep = sleep + Duration::from_millis(1);
            entries = self.changed.wait_timeout(entries, sleep).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(at: &str, zone: &str) -> Schedule {
        Schedule {
            name: "nightly".to_owned(),
            at: at.to_owned(),
            time_zone: Some(zone.to_owned()),
            tasks: vec![Task::Dump(None)],
        }
    }

    fn times(at: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let entry = Entry::new(&schedule(at, zone)).expect("a schedule");
        let mut now: Timestamp = from.parse().expect("a time");
        let next = std::iter::from_fn(|| {
            let next = entry.after(now)?;
            now = next.timestamp();
            Some(now.to_string())
        });
        next.take(count).collect()
    }

    #[test]
    fn times_are_those_of_the_zone() {
        assert_eq!(
            times("0 4 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3),
            ["2026-03-28T03:00:00Z", "2026-03-29T02:00:00Z", "2026-03-30T02:00:00Z"]
        );
        assert_eq!(
            times("*/15 * * * *", "UTC", "2026-01-01T00:14:59Z", 2),
            ["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"]
        );
        assert_eq!(times("0 0 * * 1", "UTC", "2026-11-20T00:00:00Z", 1), ["2026-11-23T00:00:00Z"]);
    }

    #[test]
    fn a_time_counts_once_and_not_long_after() {
        let entry = Entry::new(&schedule("0 * * * *", "UTC")).expect("a schedule");
        let at = lock(&entry.next).clone().expect("it has a next time").timestamp();
        assert!(!entry.is_due(at - Duration::from_secs(1)));
        assert!(entry.is_due(at));
        assert!(!entry.is_due(at), "once");
        let next = lock(&entry.next).clone().expect("another").timestamp();
        assert!(next > at);
        assert!(!entry.is_due(next + Duration::from_secs(600)), "the machine slept");
    }

    /// Holds up what it does until it is told to go on.
    struct Slow {
        gate: Mutex<()>,
        done: AtomicU64,
    }

    impl TaskRunner for Slow {
        fn carry_out(&self, _: &Task) -> Result<String, String> {
            drop(lock(&self.gate));
            self.done.fetch_add(1, Ordering::AcqRel);
            Err("it did not work".to_owned())
        }
    }

    #[test]
    fn what_is_at_work_is_not_begun_again() {
        let slow = Arc::new(Slow { gate: Mutex::new(()), done: AtomicU64::new(0) });
        let schedules = Schedules::start(Arc::<Slow>::clone(&slow)).expect("a thread");
        schedules.adopt(&[schedule("0 0 1 1 *", "UTC")]);
        let held = lock(&slow.gate);
        assert!(schedules.run_now("nightly").is_ok());
        let again = schedules.run_now("nightly").expect_err("it is at work");
        assert!(matches!(again, ScheduleError::AtWork(_)), "{again:?}");
        assert_eq!(again.to_string(), "\"nightly\" is still at work");
        assert!(schedules.run_now("daily").is_err());
        drop(held);
        let state = loop {
            let state = schedules.states().remove(0);
            if !state.is_running {
                break state;
            }
            std::thread::yield_now();
        };
        assert_eq!((state.runs, state.skipped, slow.done.load(Ordering::Acquire)), (1, 1, 1));
        assert_eq!(state.outcome, Some(Err("dump(caches): it did not work".to_owned())));
        // The same again keeps what is known; another does not.
        schedules.adopt(&[schedule("0 0 1 1 *", "UTC")]);
        assert_eq!(schedules.states()[0].runs, 1);
        schedules.adopt(&[schedule("0 0 2 1 *", "UTC")]);
        assert_eq!(schedules.states()[0].runs, 0);
        schedules.stop();
    }
}
