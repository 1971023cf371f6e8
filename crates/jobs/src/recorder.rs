//! The record of queries: a SQLite database that one thread writes in batches.
//!
//! The events thread hands over records as they came from the workers' rings, by copying words; everything else (names to
//! text, paths to text, SQL) happens here. What finds no room is dropped and counted, so that a slow disk costs records
//! and never queries. The thread runs only when no other wants the processor: a busy machine costs records, too.
//!
//! # The database
//!
//! `PRAGMA user_version` is the version of the schema, [`VERSION`]. A file of another version is put aside (renamed) and a
//! new one begun. Addresses are blobs of 4 or 16 octets, so that they sort; times are milliseconds since 1970, UTC.
//!
//! | table | holds |
//! |---|---|
//! | `queries` | one row for each query |
//! | `names` | each name once: lower case, without its final dot |
//! | `paths` | each way through the policy once, as text |

mod database;
mod read;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, mem};

use config::jobs as settings;
use engine::events::{EventView, Mark};
use rusqlite::{Connection, OptionalExtension as _, Statement, Transaction, params};
use tracing::{error, info, warn};

use crate::clock::{Clock, unix_ms_now};
use crate::effects::Count;
use crate::names::name_text;
pub use database::VERSION;
use database::{clean, open};
pub use read::{Reader, Recorded, Wanted};

const INSERT: &str = "
INSERT INTO queries (at_ms, waited_ms, client, port, transport, name, type, class, rcode, answers, addresses, path)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

/// Octets of records that may wait to be written.
const WAITING_OCTETS_MAX: usize = 4 << 20;
/// How long a record may wait.
const WRITE_EVERY: Duration = Duration::from_millis(200);
/// How often old records are removed.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// Names and paths whose numbers are remembered.
const REMEMBERED_MAX: usize = 50_000;
/// How long the database is left alone after it failed.
const PAUSE: Duration = Duration::from_secs(5);

/// What the steps of each policy of the last reloads are called.
pub(crate) type Steps = Arc<Mutex<Vec<(u32, Arc<[String]>)>>>;

/// What the recorder counts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) written: Count,
    pub(crate) dropped: Count,
    pub(crate) failed: Count,
    pub(crate) removed: Count,
}

struct Waiting {
    words: Vec<u64>,
    records: u64,
    is_closed: bool,
}

struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    counts: Counts,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The recorder as others see it.
pub(crate) struct Recorder {
    pub(crate) settings: settings::Recorder,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// Starts its thread. The database is opened there; that it cannot be is logged, counted, and tried again.
    pub(crate) fn start(
        settings: &settings::Recorder,
        clock: Clock,
        steps: Steps,
        lower_priority: fn(),
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            waiting: Mutex::new(Waiting { words: Vec::new(), records: 0, is_closed: false }),
            changed: Condvar::new(),
            counts: Counts::default(),
        });
        let mut writer = Writer {
            settings: settings.clone(),
            shared: Arc::clone(&shared),
            clock,
            steps,
            database: None,
            names: HashMap::new(),
            paths: HashMap::new(),
            cleaned: None,
            paused_until: None,
            is_well: true,
        };
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            lower_priority();
            writer.work();
        })?;
        Ok(Self { settings: settings.clone(), shared, thread: Mutex::new(Some(thread)) })
    }

    /// Returns what it counts.
    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Takes records, as many as there is room for: their words, one record after the other, and how many they are.
    ///
    /// Does not wait: while the writer takes records out, they may have to be offered again later.
    pub(crate) fn take(&self, words: &[u64], records: u64) -> Taking {
        let mut waiting = match self.shared.waiting.try_lock() {
            Ok(waiting) => waiting,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The writer has no priority: it may have been interrupted right there.
            Err(TryLockError::WouldBlock) if size_of_val(words) <= WAITING_OCTETS_MAX / 4 => {
                return Taking::Later;
            }
            Err(TryLockError::WouldBlock) => {
                self.shared.counts.dropped.add(records);
                return Taking::Done;
            }
        };
        if waiting.is_closed || (waiting.words.len() + words.len()) * size_of::<u64>() > WAITING_OCTETS_MAX {
            drop(waiting);
            self.shared.counts.dropped.add(records);
            return Taking::Done;
        }
        waiting.words.extend_from_slice(words);
        waiting.records += records;
        let is_half_full = waiting.words.len() * size_of::<u64>() > WAITING_OCTETS_MAX / 2;
        drop(waiting);
        if is_half_full {
            self.shared.changed.notify_one();
        }
        Taking::Done
    }

    /// Writes what waits and ends.
    pub(crate) fn stop(&self) {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }

    fn close(&self) {
        self.shared.lock().is_closed = true;
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
pub(crate) enum Taking {
    /// They were taken, or dropped and counted.
    Done,
    /// They are to be offered again.
    Later,
}

/// What the recorder's thread works with.
struct Writer {
    settings: settings::Recorder,
    shared: Arc<Shared>,
    clock: Clock,
    steps: Steps,
    database: Option<Connection>,
    /// The numbers of names, by their wire form in lower case.
    names: HashMap<Box<[u8]>, i64>,
    /// The numbers of paths, by the snapshot and the steps as events tell them.
    paths: HashMap<Box<[u32]>, i64>,
    /// When old records were removed last; soon after the start for the first time.
    cleaned: Option<Instant>,
    paused_until: Option<Instant>,
    is_well: bool,
}

/// Memory that rows are made in, one after the other.
#[derive(Default)]
struct Scratch {
    text: String,
    path: Vec<u32>,
}

impl Writer {
    fn work(&mut self) {
        let mut words = Vec::new();
        loop {
            let (records, is_closed) = self.wait(&mut words);
            if records > 0 {
                self.write(&words, records);
                words.clear();
            }
            if is_closed {
                break;
            }
            let is_time = self.cleaned.is_none_or(|at| at.elapsed() >= CLEAN_EVERY);
            if is_time && self.database.is_some() {
                self.cleaned = Some(Instant::now());
                self.clean();
            }
        }
        if let Some(database) = self.database.take() {
            // What the next reader finds is then one file.
            let _ = database.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);");
        }
    }

    /// Waits for records for as long as one may wait, and takes them.
    fn wait(&self, words: &mut Vec<u64>) -> (u64, bool) {
        let mut waiting = self.shared.lock();
        if !waiting.is_closed {
            let half = WAITING_OCTETS_MAX / 2 / size_of::<u64>();
            let waits = |waiting: &mut Waiting| !waiting.is_closed && waiting.words.len() < half;
            let result = self.shared.changed.wait_timeout_while(waiting, WRITE_EVERY, waits);
            waiting = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        mem::swap(&mut waiting.words, words);
        (mem::take(&mut waiting.records), waiting.is_closed)
    }

    fn write(&mut self, words: &[u64], records: u64) {
        if self.paused_until.is_some_and(|until| until > Instant::now()) {
            self.shared.counts.dropped.add(records);
            return;
        }
        match self.try_write(words) {
            Ok(written) => {
                self.shared.counts.written.add(written);
                if !mem::replace(&mut self.is_well, true) {
                    info!(file = %self.settings.file.display(), "queries are recorded again");
                }
            }
            Err(problem) => {
                self.shared.counts.failed.add(records);
                self.database = None;
                self.names.clear();
                self.paths.clear();
                self.paused_until = Some(Instant::now() + PAUSE);
                if mem::replace(&mut self.is_well, false) {
                    error!(file = %self.settings.file.display(), error = %problem, "queries are not recorded");
                }
            }
        }
    }

    fn try_write(&mut self, words: &[u64]) -> rusqlite::Result<u64> {
        let mut database = match self.database.take() {
            Some(database) => database,
            None => open(&self.settings.file)?,
        };
        let transaction = database.transaction()?;
        let mut written = 0;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            let mut scratch = Scratch::default();
            let mut rest = words;
            while let Some((event, after)) = EventView::split(rest) {
                rest = after;
                self.insert(&transaction, &mut insert, &mut scratch, event)?;
                written += 1;
            }
        }
        transaction.commit()?;
        self.database = Some(database);
        Ok(written)
    }

    fn insert(
        &mut self,
        transaction: &Transaction<'_>,
        insert: &mut Statement<'_>,
        scratch: &mut Scratch,
        event: EventView<'_>,
    ) -> rusqlite::Result<()> {
        let name = self.name(transaction, event)?;
        let path =
            if self.settings.keeps_path { Some(self.path(transaction, scratch, event)?) } else { None };
        let addresses = &mut scratch.text;
        addresses.clear();
        for address in event.addresses() {
            if !addresses.is_empty() {
                addresses.push(' ');
            }
            // Text takes whatever it is given.
            let _ = write!(addresses, "{address}");
        }
        let (four, sixteen);
        let client: &[u8] = match event.client() {
            IpAddr::V4(address) => {
                four = address.octets();
                &four
            }
            IpAddr::V6(address) => {
                sixteen = address.octets();
                &sixteen
            }
        };
        insert.execute(params![
            self.clock.unix_ms(event.monotonic_ms()),
            event.waited_ms(),
            client,
            event.port(),
            event.transport().word(),
            name,
            event.qtype().0,
            event.qclass().0,
            event.rcode().map(|rcode| rcode.0),
            event.answers(),
            (!addresses.is_empty()).then_some(addresses.as_str()),
            path,
        ])?;
        Ok(())
    }

    /// Returns the number of the name asked for.
    fn name(&mut self, transaction: &Transaction<'_>, event: EventView<'_>) -> rusqlite::Result<i64> {
        let mut room = [0; 256];
        let name = event.qname(&mut room);
        // No length of a label is a capital letter.
        let mut folded = [0; 256];
        let folded = folded.get_mut(..name.len()).unwrap_or(&mut []);
        folded.copy_from_slice(name.as_bytes());
        folded.make_ascii_lowercase();
        if let Some(number) = self.names.get(&*folded) {
            return Ok(*number);
        }
        let number = number(transaction, &name_text(name), "names", "name")?;
        remember(&mut self.names, &*folded, number);
        Ok(number)
    }

    /// Returns the number of the way through the policy.
    fn path(
        &mut self,
        transaction: &Transaction<'_>,
        scratch: &mut Scratch,
        event: EventView<'_>,
    ) -> rusqlite::Result<i64> {
        scratch.path.clear();
        scratch.path.push(event.snapshot());
        scratch.path.extend(event.path().map(|(step, mark)| u32::from(step) << 8 | mark as u32));
        if let Some(number) = self.paths.get(scratch.path.as_slice()) {
            return Ok(*number);
        }
        let number = number(transaction, &self.path_text(event), "paths", "path")?;
        remember(&mut self.paths, scratch.path.as_slice(), number);
        Ok(number)
    }

    /// Writes the way through the policy: one step after the other, each with what came of it.
    fn path_text(&self, event: EventView<'_>) -> String {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let names = steps
            .iter()
            .find(|(snapshot, _)| *snapshot == event.snapshot())
            .map(|(_, names)| Arc::clone(names));
        drop(steps);
        let mut text = String::new();
        for (step, mark) in event.path() {
            if !text.is_empty() {
                text.push_str("; ");
            }
            match names.as_ref().and_then(|names| names.get(usize::from(step))) {
                Some(name) => text.push_str(name),
                None => text.push_str(&format!("step {step}")),
            }
            text.push_str(match mark {
                Mark::Done => "",
                Mark::Held => ": yes",
                Mark::Failed => ": no",
                Mark::Hit => ": hit",
                Mark::Stale => ": stale",
                Mark::Missed => ": miss",
                Mark::Answered => ": answers",
                Mark::Ended => ": ends",
                Mark::Waited => ": waits",
            });
        }
        text
    }

    /// Removes what is too old, and the oldest of what is too much.
    fn clean(&mut self) {
        let Some(database) = &mut self.database else { return };
        match clean(database, &self.settings, unix_ms_now()) {
            Ok(removed) => {
                self.shared.counts.removed.add(removed);
                if removed > 0 {
                    // Numbers of names that are gone must not be used again.
                    self.names.clear();
                    self.paths.clear();
                }
            }
            Err(problem) => warn!(error = %problem, "old records of queries were not removed"),
        }
    }
}

/// Remembers the number of something; forgets all of them when they are too many.
fn remember<T: Clone + Eq + Hash>(known: &mut HashMap<Box<[T]>, i64>, what: &[T], number: i64) {
    if known.len() >= REMEMBERED_MAX {
        known.clear();
    }
    known.insert(what.into(), number);
}

/// Returns the number of a text in one of the tables that hold each text once.
fn number(transaction: &Transaction<'_>, text: &str, table: &str, column: &str) -> rusqlite::Result<i64> {
    let mut find = transaction.prepare_cached(&format!("SELECT id FROM {table} WHERE {column} = ?1"))?;
    let found: Option<i64> = find.query_row([text], |row| row.get(0)).optional()?;
    match found {
        Some(number) => Ok(number),
        None => {
            let mut insert =
                transaction.prepare_cached(&format!("INSERT INTO {table} ({column}) VALUES (?1)"))?;
            insert.insert([text])
        }
    }
}
