//! The caches as files: read at the start, written at the end and now and then.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cache::{Cache, Clocks, DumpError, Meaning, Now, Progress};
use config::Plans;
use control::api;
use engine::Caches;
use plan::caches::{CachePlan, DumpPlan};
use tracing::{debug, info, warn};

use crate::{lock, sys};

/// What the numbers of views mean in a file; another number when that changes.
const MEANING: Meaning = Meaning(1);
/// Reading a file that takes longer than this is told, and again whenever as much time has gone by.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Which caches to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// Every one that has a file.
    All,
    /// Those that the configuration wants written now.
    Due,
    /// This one.
    Named(&'a str),
}

/// The caches that are kept in files.
#[derive(Default)]
pub(crate) struct Dumps {
    /// Held while files are written.
    kept: Mutex<Vec<Kept>>,
    has_periodic: AtomicBool,
}

impl Dumps {
    /// Returns the caches of the first configuration, as their files have them.
    pub(crate) fn read(plans: &Plans) -> Self {
        kept(plans).iter().for_each(Kept::read);
        Self::default()
    }

    /// Keeps the caches of these plans from now on. What is the same is not written sooner or later
    /// for that.
    pub(crate) fn adopt(&self, plans: &Plans) {
        let mut new = kept(plans);
        let mut kept = lock(&self.kept);
        new.iter_mut().for_each(|new| new.inherit(&kept));
        self.has_periodic.store(new.iter().any(Kept::is_periodic), Ordering::Relaxed);
        *kept = new;
    }

    /// Returns whether a cache is written now and then.
    pub(crate) fn are_periodic(&self) -> bool {
        self.has_periodic.load(Ordering::Relaxed)
    }

    /// Writes the caches that have files; with `Which::Due`, those whose turn it is.
    pub(crate) fn write(&self, which: Which<'_>) -> Vec<api::Dumped> {
        let mut kept = lock(&self.kept);
        let due = kept.iter_mut().filter(|kept| match which {
            Which::All => true,
            Which::Due => kept.is_due(),
            Which::Named(name) => kept.name == name,
        });
        due.map(Kept::write).collect()
    }
}

/// A cache that is kept in a file.
struct Kept {
    name: String,
    cache: Arc<Cache>,
    file: PathBuf,
    every: Option<Duration>,
    written: Instant,
}

/// Makes the caches of these plans; those that are known already are kept, with all that they hold.
pub(crate) fn make(plans: &[CachePlan], known: &Caches) -> Caches {
    known.adopt(plans.iter().map(|plan| (plan.name.as_str(), plan.octets_max)))
}

/// Returns the caches of `plans` that are kept in files.
fn kept(plans: &Plans) -> Vec<Kept> {
    let kept = plans.cache_plans.iter().filter_map(|plan| {
        let DumpPlan { file, every } = plan.dump.clone()?;
        let cache = Arc::clone(plans.caches.get(&plan.name)?);
        Some(Kept { name: plan.name.clone(), cache, file, every, written: Instant::now() })
    });
    kept.collect()
}

/// Returns the time as caches count it.
pub(crate) fn now() -> Now {
    Now::since_boot(sys::since_boot())
}

/// Returns what the clocks say, for a file that outlives this process and perhaps this run of the
/// machine.
fn clocks() -> Clocks {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Clocks { now: now(), unix_seconds: u32::try_from(seconds).unwrap_or(u32::MAX), boot: sys::boot_number() }
}

impl Kept {
    /// Returns whether it has not been written for as long as the configuration allows.
    fn is_due(&self) -> bool {
        self.every.is_some_and(|every| self.written.elapsed() >= every)
    }

    /// Returns whether it is written now and then.
    const fn is_periodic(&self) -> bool {
        self.every.is_some()
    }

    /// Takes over from the same cache of an older configuration, so that a reload does not put off
    /// its turn.
    fn inherit(&mut self, older: &[Self]) {
        if let Some(older) = older.iter().find(|older| older.name == self.name && older.file == self.file) {
            self.written = older.written;
        }
    }

    /// Reads the file. That it is missing is no mistake; any other trouble costs the content, not
    /// the start.
    fn read(&self) {
        let begin = Instant::now();
        let mut told = begin;
        let progress = |progress: Progress| {
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                info!(cache = %self.name, answers = progress.entries, "reading the cache's file");
            }
        };
        match self.cache.load(&self.file, clocks(), MEANING, progress) {
            Ok(read) => {
                info!(
                    cache = %self.name,
                    file = %self.file.display(),
                    answers = read.entries,
                    expired = read.expired,
                    took_ms = begin.elapsed().as_millis() as u64,
                    "cache read"
                );
                if !read.is_complete {
                    warn!(cache = %self.name, octets_dropped = read.octets_dropped, "parts of the cache's file were damaged");
                }
            }
            Err(DumpError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                debug!(cache = %self.name, file = %self.file.display(), "the cache has no file yet");
            }
            Err(error) => warn!(cache = %self.name, %error, "the cache starts empty"),
        }
    }

    /// Writes the file.
    fn write(&mut self) -> api::Dumped {
        // Also when it fails: the next try is due when the next dump is.
        self.written = Instant::now();
        let (entries, error) = match self.cache.dump(&self.file, clocks(), MEANING, |_| ()) {
            Ok(dumped) => {
                info!(cache = %self.name, file = %self.file.display(), answers = dumped.entries, "cache written");
                (dumped.entries, None)
            }
            Err(error) => {
                warn!(cache = %self.name, %error, "the cache was not written");
                (0, Some(error.to_string()))
            }
        };
        api::Dumped { cache: self.name.clone(), file: self.file.display().to_string(), entries, error }
    }
}
