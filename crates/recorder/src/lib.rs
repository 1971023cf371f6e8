//! The record of queries: SQLite databases that one thread writes in batches.
//!
//! Never slows a worker, nor the thread that reads the workers' rings: what cannot be written in
//! time is sampled, and what goes is counted.
//!
//! The events thread hands over records as they came from the workers' rings, by copying words;
//! everything else (names to text, paths to text, SQL) happens here. When there is no room for all
//! of them, an even sample is recorded ([`sample`]) and what goes is counted, so that a slow disk
//! costs records and never queries. The thread runs only when no other wants the processor: a busy
//! machine costs records, too.
//!
//! # The databases
//!
//! Each day of UTC has a file of its own, so that age and size are an unlink ([`days`]). `PRAGMA
//! user_version` is the version of the schema, [`VERSION`]. A file of another version is put aside
//! (renamed) and a new one begun. Addresses are blobs of 4 or 16 octets, so that they sort; times
//! are milliseconds since 1970, UTC.
//!
//! | table | holds |
//! |---|---|
//! | `queries` | one row for each query |
//! | `names` | each name once: lower case, without its final dot |
//! | `paths` | each way through the policy once, as text |
//! | `decisions` | what decided and who answered, each combination once |
//! | `blocks` | from when the rows of a block are, and what is among them |
//! | `client_blocks`, `name_blocks` | who is among the rows of which block, and which rows are whose |
//!
//! An index by client and one by name would cost four times as much as everything else: each row
//! would change two pages somewhere in the file. Instead, rows whose `id` is the same but for the
//! last [`database::BLOCK_BITS`] bits are a block, and each client and each name is noted once for
//! each block. Who looks for one reads the blocks that it is in ([`search`]).

#![forbid(unsafe_code)]

mod block;
mod client;
mod clock;
mod database;
mod days;
mod forget;
mod known;
mod live;
mod name_text;
mod names;
mod notice;
mod of_clients;
mod outcome;
mod pseudonyms;
mod read;
mod rows;
mod sample;
mod search;
mod sketch;
mod steps;
mod sums;
#[cfg(test)]
mod tests;
mod tops;
mod write;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Instant;
use std::{io, mem};

use plan::jobs as settings;
use tracing::warn;

use events::Count;

pub use client::{Client, Clients};
pub use clock::{Clock, Offsets, unix_ms_now};
pub use database::VERSION;
pub use live::{Live, Told};
pub use name_text::name_text;
pub use names::{NameTest, Names};
use notice::Notice;
pub use of_clients::{ClientCounts, ClientPage, ClientSum};
pub use outcome::Outcome;
pub use read::{Reader, Recorded, TopOf};
use sample::Sample;
pub use search::{Page, Wanted};
pub use steps::StepNames;
pub use sums::{Kind, Sum, Tally};
use write::Writer;

/// Octets of records that may wait to be written.
const WAITING_OCTETS_MAX: usize = 4 << 20;
/// Octets of records that may wait until the writer has taken out those before.
const ASIDE_OCTETS_MAX: usize = WAITING_OCTETS_MAX / 4;
/// Returns the names of the files that the setting `recorder.file` stands for, those that are there
/// and those that SQLite may make beside them.
pub fn names(file: &Path) -> Vec<OsString> {
    let files = days::Files::new(file);
    let all = files.all().into_iter().map(|file| file.path);
    let ends = |path: PathBuf| ["", "-wal", "-shm", "-journal"].map(|end| days::with_end(&path, end));
    let paths = all.chain([file.to_owned(), files.sums(), files.key()]).flat_map(ends);
    paths.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect()
}

/// What the steps of each policy of the last reloads are called.
pub type Steps = Arc<Mutex<Vec<StepNames>>>;

/// What the recorder counts.
#[derive(Default)]
pub struct Counts {
    /// Records that were written.
    pub written: Count,
    /// Records that found no room.
    pub dropped: Count,
    /// Records that could not be written.
    pub failed: Count,
    /// Records that were removed: too old, or too much.
    pub removed: Count,
}

#[derive(Default)]
struct Waiting {
    sample: Sample,
    is_closed: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    counts: Counts,
    notice: Mutex<Notice>,
    /// Whether the writer has to look up numbers of names again. Set and read by whoever may write
    /// the file at the moment.
    has_forgotten: AtomicBool,
    /// Whether the key of pseudonyms goes with the writer.
    forgets_key: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that records were dropped, if it is time to. Never waits.
    fn report(&self, one_of: u32) {
        let dropped = self.counts.dropped.read();
        let due = self.notice.try_lock().ok().and_then(|mut notice| notice.due(Instant::now(), dropped));
        if let Some(dropped) = due {
            warn!(
                dropped,
                one_of, "queries come faster than they can be recorded: an even sample of them is recorded"
            );
        }
    }
}

/// The recorder as others see it.
pub struct Recorder {
    /// What it was started with.
    pub settings: settings::Recorder,
    shared: Arc<Shared>,
    /// What came while the writer took out what came before. Only the events thread uses it.
    aside: Mutex<Sample>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// Starts its thread. The database is opened there; that it cannot be is logged, counted, and
    /// tried again.
    pub fn start(
        settings: &settings::Recorder,
        clock: Clock,
        steps: Steps,
        lower_priority: fn(),
    ) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let mut writer = Writer::new(settings.clone(), Arc::clone(&shared), clock, steps);
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            lower_priority();
            writer.work();
        })?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { settings: settings.clone(), shared, aside: Mutex::default(), thread })
    }

    /// Returns what it counts.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Takes records: their words, one record after the other, and how many they are. When there
    /// are too many, a sample of them.
    ///
    /// Does not wait: while the writer takes records out, they are put aside, and it is to be
    /// called again soon, with others or none.
    pub fn take(&self, words: &[u64], records: u64) -> Taking {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = match self.shared.waiting.try_lock() {
            Ok(waiting) => waiting,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The writer has no priority: it may have been interrupted right there.
            Err(TryLockError::WouldBlock) => {
                let dropped = aside.add(words, records, ASIDE_OCTETS_MAX);
                self.shared.counts.dropped.add(dropped);
                return if aside.records() > 0 { Taking::Later } else { Taking::Done };
            }
        };
        if waiting.is_closed {
            drop(waiting);
            self.shared.counts.dropped.add(records + mem::take(&mut *aside).records());
            return Taking::Done;
        }
        let was_empty = waiting.sample.records() == 0;
        let mut dropped = 0;
        if aside.records() > 0 {
            dropped += waiting.sample.absorb(&mut aside, WAITING_OCTETS_MAX);
        }
        dropped += waiting.sample.add(words, records, WAITING_OCTETS_MAX);
        let is_half_full = waiting.sample.octets() > WAITING_OCTETS_MAX / 2;
        let one_of = waiting.sample.one_of();
        let is_first = was_empty && waiting.sample.records() > 0;
        drop(waiting);
        if is_half_full || is_first {
            self.shared.changed.notify_one();
        }
        if dropped > 0 {
            self.shared.counts.dropped.add(dropped);
            self.shared.report(one_of);
        }
        Taking::Done
    }

    /// Removes what these clients asked for from all files; returns how many records.
    ///
    /// # Errors
    ///
    /// A file cannot be changed; those before it were.
    pub fn forget_clients(&self, clients: Clients) -> Result<u64, String> {
        let files = days::Files::new(&self.settings.file);
        let removed = forget::clients(&files, clients, &self.shared.has_forgotten)?;
        let said = |error: rusqlite::Error| format!("{}: {error}", files.sums().display());
        sums::forget(&files, clients).map_err(said)?;
        Ok(removed)
    }

    /// Has the key of today's pseudonyms overwritten and removed when all is written: nobody goes
    /// on with it.
    pub fn forget_key(&self) {
        self.shared.forgets_key.store(true, Ordering::Release);
    }

    /// Writes what waits and ends.
    pub fn stop(&self) {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }

    fn close(&self) {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = self.shared.lock();
        if aside.records() > 0 {
            let dropped = waiting.sample.absorb(&mut aside, WAITING_OCTETS_MAX);
            self.shared.counts.dropped.add(dropped);
        }
        waiting.is_closed = true;
        drop(waiting);
        self.shared.changed.notify_all();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

/// What became of records that were offered to the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taking {
    /// They were taken, or dropped and counted.
    Done,
    /// They were put aside: the recorder is to be called again soon.
    Later,
}
