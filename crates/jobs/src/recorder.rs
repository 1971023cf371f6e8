//! The record of queries: a SQLite database that one thread writes in batches.
//!
//! The events thread hands over records as they came from the workers' rings, by copying words;
//! everything else (names to text, paths to text, SQL) happens here. When there is no room for all
//! of them, an even sample is recorded ([`sample`]) and what goes is counted, so that a slow disk
//! costs records and never queries. The thread runs only when no other wants the processor: a busy
//! machine costs records, too.
//!
//! # The database
//!
//! `PRAGMA user_version` is the version of the schema, [`VERSION`]. A file of another version is
//! put aside (renamed) and a new one begun. Addresses are blobs of 4 or 16 octets, so that they
//! sort; times are milliseconds since 1970, UTC.
//!
//! | table | holds |
//! |---|---|
//! | `queries` | one row for each query |
//! | `names` | each name once: lower case, without its final dot |
//! | `paths` | each way through the policy once, as text |
//! | `client_blocks`, `name_blocks` | who is among the rows of which block |
//!
//! An index by client and one by name would cost four times as much as everything else: each row
//! would change two pages somewhere in the file. Instead, rows whose `id` is the same but for the
//! last [`database::BLOCK_BITS`] bits are a block, and each client and each name is noted once for
//! each block. Who looks for one reads the blocks that it is in.

mod database;
mod known;
mod notice;
mod read;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, mem};

use events::{EventView, Mark};
use plan::jobs as settings;
use rusqlite::{Connection, Statement, Transaction, params};
use tracing::{error, info, warn};

use crate::clock::{Clock, unix_ms_now};
use crate::effects::Count;
use crate::names::name_text;
pub use database::VERSION;
use database::{block_of, clean, last_id, open};
use known::Known;
use notice::Notice;
pub use read::{Reader, Recorded, Wanted};
use sample::Sample;

const INSERT: &str = "
INSERT INTO queries (id, at_ms, waited_ms, client, port, transport, name, type, class, rcode, answers, addresses, path, waited_us, one_of)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

/// Octets of records that may wait to be written.
const WAITING_OCTETS_MAX: usize = 4 << 20;
/// Octets of records that may wait until the writer has taken out those before.
const ASIDE_OCTETS_MAX: usize = WAITING_OCTETS_MAX / 4;
/// How long a record may wait.
const WRITE_EVERY: Duration = Duration::from_millis(200);
/// How often old records are removed.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// Names and paths whose numbers are remembered, in each of two generations.
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
pub(crate) struct Recorder {
    pub(crate) settings: settings::Recorder,
    shared: Arc<Shared>,
    /// What came while the writer took out what came before. Only the events thread uses it.
    aside: Mutex<Sample>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// Starts its thread. The database is opened there; that it cannot be is logged, counted, and
    /// tried again.
    pub(crate) fn start(
        settings: &settings::Recorder,
        clock: Clock,
        steps: Steps,
        lower_priority: fn(),
    ) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let mut writer = Writer {
            settings: settings.clone(),
            shared: Arc::clone(&shared),
            clock,
            steps,
            database: None,
            names: Known::new(REMEMBERED_MAX),
            paths: Known::new(REMEMBERED_MAX),
            block: Block::default(),
            cleaned: None,
            paused_until: None,
            is_well: true,
        };
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            lower_priority();
            writer.work();
        })?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { settings: settings.clone(), shared, aside: Mutex::default(), thread })
    }

    /// Returns what it counts.
    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Takes records: their words, one record after the other, and how many they are. When there
    /// are too many, a sample of them.
    ///
    /// Does not wait: while the writer takes records out, they are put aside, and it is to be
    /// called again soon, with others or none.
    pub(crate) fn take(&self, words: &[u64], records: u64) -> Taking {
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

    /// Writes what waits and ends.
    pub(crate) fn stop(&self) {
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
pub(crate) enum Taking {
    /// They were taken, or dropped and counted.
    Done,
    /// They were put aside: the recorder is to be called again soon.
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
    names: Known<Box<[u8]>>,
    /// The numbers of paths, by the snapshot and the steps as events have them.
    paths: Known<Box<[u32]>>,
    /// The block of rows that is being written.
    block: Block,
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

/// Who is in a block of rows, as far as it was written since the start.
#[derive(Default)]
struct Block {
    number: i64,
    clients: HashSet<IpAddr>,
    names: HashSet<i64>,
    /// Those that the database lacks.
    new_clients: Vec<IpAddr>,
    new_names: Vec<i64>,
}

impl Block {
    fn forget(&mut self) {
        *self = Self { number: -1, ..Self::default() };
    }

    /// Notes a row.
    fn add(&mut self, client: IpAddr, name: i64) {
        if self.clients.insert(client) {
            self.new_clients.push(client);
        }
        if self.names.insert(name) {
            self.new_names.push(name);
        }
    }

    /// Writes who is new, in the order of the tables.
    fn write(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.new_clients.sort_unstable();
        self.new_names.sort_unstable();
        let mut insert = transaction
            .prepare_cached("INSERT OR IGNORE INTO client_blocks (block, client) VALUES (?1, ?2)")?;
        for client in self.new_clients.drain(..) {
            let (room, len) = client_octets(client);
            insert.execute(params![self.number, room.get(..len)])?;
        }
        let mut insert =
            transaction.prepare_cached("INSERT OR IGNORE INTO name_blocks (block, name) VALUES (?1, ?2)")?;
        for name in self.new_names.drain(..) {
            insert.execute([self.number, name])?;
        }
        Ok(())
    }
}

/// Returns a client as it stands in the database, and how many octets that is.
fn client_octets(client: IpAddr) -> ([u8; 16], usize) {
    match client {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            ([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 4)
        }
        IpAddr::V6(address) => (address.octets(), 16),
    }
}

impl Writer {
    fn work(&mut self) {
        let mut words = Vec::new();
        loop {
            let (sample, is_closed) = self.wait(mem::take(&mut words));
            if sample.records() > 0 {
                self.write(&sample);
            }
            let one_of = sample.one_of();
            words = sample.into_words();
            if is_closed {
                break;
            }
            self.shared.report(one_of);
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

    /// Waits for records, then for more of them as long as one may wait, and takes them. Comes back
    /// without any when there is something else to do.
    fn wait(&self, room: Vec<u64>) -> (Sample, bool) {
        let mut waiting = self.shared.lock();
        let is_idle = |waiting: &mut Waiting| !waiting.is_closed && waiting.sample.records() == 0;
        if is_idle(&mut waiting) {
            let changed = &self.shared.changed;
            waiting = match self.idle_until() {
                None => changed.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let result = changed.wait_timeout_while(waiting, left, is_idle);
                    result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        if !waiting.is_closed && waiting.sample.records() > 0 {
            let gathers = |waiting: &mut Waiting| {
                !waiting.is_closed && waiting.sample.octets() < WAITING_OCTETS_MAX / 2
            };
            let result = self.shared.changed.wait_timeout_while(waiting, WRITE_EVERY, gathers);
            waiting = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        (waiting.sample.take(room, WAITING_OCTETS_MAX), waiting.is_closed)
    }

    /// Returns when something is to be done although no record comes.
    fn idle_until(&self) -> Option<Instant> {
        let clean = self.cleaned.filter(|_| self.database.is_some()).map(|at| at + CLEAN_EVERY);
        let dropped = self.shared.counts.dropped.read();
        let report = self.shared.notice.lock().unwrap_or_else(PoisonError::into_inner).at(dropped);
        [clean, report].into_iter().flatten().min()
    }

    fn write(&mut self, sample: &Sample) {
        let records = sample.records();
        if self.paused_until.is_some_and(|until| until > Instant::now()) {
            // The log has the database's failure.
            self.shared.notice.lock().unwrap_or_else(PoisonError::into_inner).leave_out(records);
            self.shared.counts.dropped.add(records);
            return;
        }
        match self.try_write(sample) {
            Ok(written) => {
                self.shared.counts.written.add(written);
                if !mem::replace(&mut self.is_well, true) {
                    info!(file = %self.settings.file.display(), "queries are recorded again");
                }
            }
            Err(problem) => {
                self.shared.counts.failed.add(records);
                self.database = None;
                self.forget();
                self.paused_until = Some(Instant::now() + PAUSE);
                if mem::replace(&mut self.is_well, false) {
                    error!(file = %self.settings.file.display(), error = %problem, "queries are not recorded");
                }
            }
        }
    }

    /// Forgets what is known of the database's content.
    fn forget(&mut self) {
        self.names.clear();
        self.paths.clear();
        self.block.forget();
    }

    fn try_write(&mut self, sample: &Sample) -> rusqlite::Result<u64> {
        let mut database = match self.database.take() {
            Some(database) => database,
            None => open(&self.settings.file)?,
        };
        let transaction = database.transaction()?;
        let mut written = 0;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            let mut scratch = Scratch::default();
            let mut id = last_id(&transaction)?;
            // One look at the clocks for all.
            let epoch_ms = self.clock.unix_ms(0);
            let mut rest = sample.words();
            while let Some((event, after)) = EventView::split(rest) {
                rest = after;
                id += 1;
                if block_of(id) != self.block.number {
                    self.block.write(&transaction)?;
                    self.block.forget();
                    self.block.number = block_of(id);
                }
                let row = Row { id, epoch_ms, one_of: sample.one_of() };
                self.insert(&transaction, &mut insert, &mut scratch, event, row)?;
                written += 1;
            }
            self.block.write(&transaction)?;
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
        row: Row,
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
        let client = event.client();
        self.block.add(client, name);
        let (room, len) = client_octets(client);
        insert.execute(params![
            row.id,
            row.epoch_ms.saturating_add_unsigned(event.monotonic_ms()),
            event.waited_ms(),
            room.get(..len),
            event.port(),
            event.transport().word(),
            name,
            event.qtype().0,
            event.qclass().0,
            event.rcode().map(|rcode| rcode.0),
            event.answers(),
            (!addresses.is_empty()).then_some(addresses.as_str()),
            path,
            (event.waited_us() % 1000) as u16,
            row.one_of,
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
        if let Some(number) = self.names.find(&*folded) {
            return Ok(number);
        }
        let number = number(transaction, &name_text(name), FIND_NAME, ADD_NAME)?;
        self.names.remember((&*folded).into(), number);
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
        if let Some(number) = self.paths.find(scratch.path.as_slice()) {
            return Ok(number);
        }
        let number = number(transaction, &self.path_text(event), FIND_PATH, ADD_PATH)?;
        self.paths.remember(scratch.path.as_slice().into(), number);
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
                    self.forget();
                }
            }
            Err(problem) => warn!(error = %problem, "old records of queries were not removed"),
        }
    }
}

/// What a row has beside what the event says.
#[derive(Clone, Copy)]
struct Row {
    id: i64,
    /// When the workers' clock was at zero, in milliseconds since 1970.
    epoch_ms: i64,
    one_of: u32,
}

const FIND_NAME: &str = "SELECT id FROM names WHERE name = ?1";
const ADD_NAME: &str = "INSERT INTO names (name) VALUES (?1) ON CONFLICT DO NOTHING";
const FIND_PATH: &str = "SELECT id FROM paths WHERE path = ?1";
const ADD_PATH: &str = "INSERT INTO paths (path) VALUES (?1) ON CONFLICT DO NOTHING";

/// Returns the number of a text in one of the tables that hold each text once. Most that are not
/// remembered are new.
fn number(transaction: &Transaction<'_>, text: &str, find: &str, add: &str) -> rusqlite::Result<i64> {
    if transaction.prepare_cached(add)?.execute([text])? > 0 {
        return Ok(transaction.last_insert_rowid());
    }
    transaction.prepare_cached(find)?.query_row([text], |row| row.get(0))
}
