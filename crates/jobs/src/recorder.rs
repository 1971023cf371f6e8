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

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::Hash;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, mem};

use config::jobs as settings;
use engine::events::{EventView, Mark};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Statement, Transaction, params};
use tracing::{error, info, warn};

use crate::clock::{Clock, unix_ms_now};
use crate::effects::Count;
use crate::names::name_text;

/// The version of the schema.
pub const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE queries (
    id INTEGER PRIMARY KEY,           -- rises with time
    at_ms INTEGER NOT NULL,           -- when the reply was complete, since 1970
    waited_ms INTEGER NOT NULL,       -- how long the query waited for others
    client BLOB NOT NULL,             -- 4 or 16 octets
    port INTEGER NOT NULL,
    transport TEXT NOT NULL,          -- udp, tcp
    name INTEGER NOT NULL REFERENCES names (id),
    type INTEGER NOT NULL,
    class INTEGER NOT NULL,
    rcode INTEGER,                    -- NULL: no reply
    answers INTEGER NOT NULL,         -- records in the answer section
    addresses TEXT,                   -- of the reply, separated by spaces
    path INTEGER REFERENCES paths (id)
) STRICT;
CREATE INDEX queries_by_client ON queries (client, id);
CREATE INDEX queries_by_name ON queries (name, id);
CREATE INDEX queries_by_time ON queries (at_ms);
PRAGMA user_version = 1;
";

const INSERT: &str = "
INSERT INTO queries (at_ms, waited_ms, client, port, transport, name, type, class, rcode, answers, addresses, path)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

/// Octets of records that may wait to be written.
const WAITING_OCTETS_MAX: usize = 4 << 20;
/// How long a record may wait.
const WRITE_EVERY: Duration = Duration::from_millis(200);
/// How often old records are removed.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// Rows that one clean-up removes, so that writing goes on.
const CLEAN_ROWS_MAX: u32 = 20_000;
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

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
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

/// Opens the database for writing, and makes it if it is not there.
fn open(file: &Path) -> rusqlite::Result<Connection> {
    if let Some(folder) = file.parent() {
        // What cannot be made is reported by the database.
        let _ = std::fs::create_dir_all(folder);
    }
    let database = open_as_it_is(file)?;
    let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let is_empty: bool =
        database.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    let database = match (version, is_empty) {
        (VERSION, _) => database,
        (_, true) => {
            database.execute_batch(SCHEMA)?;
            database
        }
        (other, false) => {
            drop(database);
            let aside = PathBuf::from(format!("{}.version-{other}", file.display()));
            warn!(file = %file.display(), aside = %aside.display(), "a database of another version is put aside");
            for end in ["", "-wal", "-shm"] {
                let _ =
                    std::fs::rename(format!("{}{end}", file.display()), format!("{}{end}", aside.display()));
            }
            let database = open_as_it_is(file)?;
            database.execute_batch(SCHEMA)?;
            database
        }
    };
    Ok(database)
}

fn open_as_it_is(file: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(file)?;
    // Readers do not wait for the writer, and a lost second after a power cut is no harm.
    database.execute_batch(
        // The first must come before the file has a page.
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         PRAGMA wal_autocheckpoint = 4000; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192;",
    )?;
    database.busy_timeout(Duration::from_secs(2))?;
    Ok(database)
}

/// Removes records; returns how many.
fn clean(database: &mut Connection, settings: &settings::Recorder, now_ms: i64) -> rusqlite::Result<u64> {
    let keep_ms = i64::try_from(settings.keep.as_millis()).unwrap_or(i64::MAX);
    let oldest = now_ms.saturating_sub(keep_ms);
    let mut removed = database.execute(
        "DELETE FROM queries WHERE id IN (SELECT id FROM queries WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
        params![oldest, CLEAN_ROWS_MAX],
    )?;
    let octets: i64 = database.query_row(
        "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
        [],
        |row| row.get(0),
    )?;
    let octets_max = i64::try_from(settings.octets_max).unwrap_or(i64::MAX);
    if octets > octets_max {
        // As large a part of the rows as the file is too large, and a little more.
        let rows: i64 = database.query_row("SELECT count(*) FROM queries", [], |row| row.get(0))?;
        let part = (octets - octets_max) as f64 / octets as f64 + 0.05;
        let count = ((rows as f64 * part) as i64).max(1);
        removed += database.execute(
            "DELETE FROM queries WHERE id IN (SELECT id FROM queries ORDER BY id LIMIT ?1)",
            params![count],
        )?;
    }
    if removed > 0 {
        database.execute_batch(
            "DELETE FROM names WHERE id NOT IN (SELECT name FROM queries);
             DELETE FROM paths WHERE id NOT IN (SELECT path FROM queries WHERE path IS NOT NULL);
             PRAGMA incremental_vacuum;",
        )?;
    }
    Ok(removed as u64)
}

/// Which recorded queries to show.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// At most so many.
    pub count: u32,
    /// Of this client.
    pub client: Option<IpAddr>,
    /// For this name, in lower case and without its final dot.
    pub name: Option<String>,
    /// Also for names below that.
    pub covers_below: bool,
}

/// A recorded query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number, rising with time.
    pub id: i64,
    /// When its reply was complete, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it waited for others.
    pub waited_ms: u32,
    /// Who asked.
    pub client: IpAddr,
    /// Over what.
    pub transport: String,
    /// The name asked for.
    pub name: String,
    /// The type asked for.
    pub qtype: u16,
    /// The reply's code, if there was a reply.
    pub rcode: Option<u16>,
    /// Records in the answer section.
    pub answers: u16,
    /// The addresses, separated by spaces.
    pub addresses: String,
    /// The way through the policy.
    pub path: String,
}

/// Reads a database of the recorder, while it is written or not.
pub struct Reader {
    database: Connection,
}

impl Reader {
    /// Opens the database for reading only.
    pub fn open(file: &Path) -> Result<Self, String> {
        let said = |error: rusqlite::Error| format!("{}: {error}", file.display());
        let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(said)?;
        database.busy_timeout(Duration::from_secs(2)).map_err(said)?;
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(said)?;
        if version != VERSION {
            return Err(format!("{} is no record of queries that this program reads", file.display()));
        }
        Ok(Self { database })
    }

    /// Returns the newest queries first.
    pub fn newest(&self, wanted: &Wanted) -> Result<Vec<Recorded>, String> {
        self.try_newest(wanted).map_err(|error| error.to_string())
    }

    fn try_newest(&self, wanted: &Wanted) -> rusqlite::Result<Vec<Recorded>> {
        let client = wanted.client.map(octets);
        let mut conditions: Vec<&str> = Vec::new();
        if client.is_some() {
            conditions.push("queries.client = ?1");
        }
        match (&wanted.name, wanted.covers_below) {
            (None, _) => {}
            (Some(_), false) => conditions.push("queries.name = (SELECT id FROM names WHERE name = ?2)"),
            (Some(_), true) => conditions.push(
                "queries.name IN (SELECT id FROM names WHERE name = ?2 OR substr(name, -length(?2) - 1) = '.' || ?2)",
            ),
        }
        let filter =
            if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        let mut query = self.database.prepare(&format!(
            "SELECT queries.id, at_ms, waited_ms, client, transport, names.name, type, rcode, answers, addresses, paths.path
             FROM queries JOIN names ON names.id = queries.name LEFT JOIN paths ON paths.id = queries.path
             {filter} ORDER BY queries.id DESC LIMIT ?3",
        ))?;
        // Parameters that no condition uses are bound all the same.
        let bound = params![client, wanted.name, wanted.count];
        let rows = query.query_map(bound, |row| {
            let client: Vec<u8> = row.get(3)?;
            Ok(Recorded {
                id: row.get(0)?,
                at_ms: row.get(1)?,
                waited_ms: row.get(2)?,
                client: address(&client),
                transport: row.get(4)?,
                name: row.get(5)?,
                qtype: row.get(6)?,
                rcode: row.get(7)?,
                answers: row.get(8)?,
                addresses: row.get::<_, Option<String>>(9)?.unwrap_or_default(),
                path: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
            })
        })?;
        rows.collect()
    }

    /// Returns the names asked for most since a time, and how often.
    pub fn top_names(&self, since_ms: i64, count: u32) -> Result<Vec<(String, u64)>, String> {
        self.top(
            "SELECT names.name, n FROM (SELECT name, count(*) AS n FROM queries WHERE at_ms >= ?1 GROUP BY name
             ORDER BY n DESC LIMIT ?2) AS top JOIN names ON names.id = top.name ORDER BY n DESC, names.name",
            since_ms,
            count,
            |row| row.get(0),
        )
    }

    /// Returns the clients that asked most since a time, and how often.
    pub fn top_clients(&self, since_ms: i64, count: u32) -> Result<Vec<(String, u64)>, String> {
        self.top(
            "SELECT client, count(*) AS n FROM queries WHERE at_ms >= ?1 GROUP BY client ORDER BY n DESC, client LIMIT ?2",
            since_ms,
            count,
            |row| Ok(address(&row.get::<_, Vec<u8>>(0)?).to_string()),
        )
    }

    fn top(
        &self,
        sql: &str,
        since_ms: i64,
        count: u32,
        text: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<String>,
    ) -> Result<Vec<(String, u64)>, String> {
        let found = || -> rusqlite::Result<Vec<(String, u64)>> {
            let mut query = self.database.prepare(sql)?;
            let rows = query.query_map(params![since_ms, count], |row| {
                Ok((text(row)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })?;
            rows.collect()
        };
        found().map_err(|error| error.to_string())
    }
}

fn address(octets: &[u8]) -> IpAddr {
    match (<[u8; 4]>::try_from(octets), <[u8; 16]>::try_from(octets)) {
        (Ok(octets), _) => IpAddr::from(octets),
        (_, Ok(octets)) => IpAddr::from(octets),
        _ => IpAddr::from([0; 4]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Transport;
    use engine::events::{Addresses, Event, EventRecord, Tells, ring};
    use wire::{Class, NameBuf, Rcode, Rtype};

    fn settings(file: PathBuf) -> settings::Recorder {
        settings::Recorder {
            file,
            records_all: true,
            share_percent: 100,
            keeps_path: true,
            keep: Duration::from_secs(3600),
            octets_max: 1 << 30,
        }
    }

    /// Returns the words of one record.
    fn words(qname: &str, client: &str, monotonic_ms: u64) -> Vec<u64> {
        let (mut writer, mut reader) = ring(0, Arc::default());
        let qname: NameBuf = qname.parse().expect("a name");
        let mut path = engine::events::Path::default();
        path.push(1, Mark::Failed);
        path.push(2, Mark::Hit);
        let body = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7];
        writer.tell(&Event {
            tells: &Tells::default(),
            monotonic_ms,
            waited_ms: 3,
            client: client.parse().expect("an address"),
            port: 5353,
            transport: Transport::Udp,
            qname: qname.as_name(),
            qtype: Rtype::A,
            qclass: Class::IN,
            rcode: Some(Rcode::NOERROR),
            answers: 1,
            addresses: &Addresses::read(&body, 1),
            snapshot: 4,
            path: &path,
        });
        let mut record = EventRecord::default();
        assert!(reader.read(&mut record));
        record.words().to_vec()
    }

    fn steps() -> Steps {
        let names: Arc<[String]> = ["a", "if b", "cache(main)"].map(str::to_owned).into();
        Arc::new(Mutex::new(vec![(9, Arc::from([])), (4, names)]))
    }

    /// Offers records until they are taken or dropped.
    fn take(recorder: &Recorder, words: &[u64], records: u64) {
        while recorder.take(words, records) == Taking::Later {
            std::thread::yield_now();
        }
    }

    fn record(file: &Path, queries: &[(&str, &str)]) {
        let clock = Clock::new(Instant::now());
        let recorder = Recorder::start(&settings(file.to_owned()), clock, steps(), || ()).expect("a thread");
        for (at, (qname, client)) in queries.iter().enumerate() {
            take(&recorder, &words(qname, client, at as u64), 1);
        }
        recorder.stop();
        assert_eq!(recorder.counts().written.read(), queries.len() as u64);
    }

    fn names(found: &[Recorded]) -> Vec<&str> {
        found.iter().map(|query| query.name.as_str()).collect()
    }

    #[test]
    fn what_is_recorded_is_found_again() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let file = folder.path().join("new/queries.db");
        record(
            &file,
            &[("a.example.org", "192.0.2.1"), ("B.a.example.org", "2001:db8::1"), (".", "192.0.2.1")],
        );
        // A second run goes on with the same file.
        record(&file, &[("xa.example.org", "192.0.2.1")]);
        let reader = Reader::open(&file).expect("a database");
        let find = |wanted: Wanted| reader.newest(&Wanted { count: 10, ..wanted }).expect("an answer");
        let all = find(Wanted::default());
        assert_eq!(names(&all), ["xa.example.org", ".", "b.a.example.org", "a.example.org"]);
        let first = &all[3];
        assert_eq!((first.qtype, first.rcode, first.waited_ms, first.answers), (1, Some(0), 3, 1));
        assert_eq!((first.addresses.as_str(), first.transport.as_str()), ("192.0.2.7", "udp"));
        assert_eq!(first.path, "if b: no; cache(main): hit");
        let client = |text: &str| Some(text.parse().expect("an address"));
        assert_eq!(
            names(&find(Wanted { client: client("2001:db8::1"), ..Wanted::default() })),
            ["b.a.example.org"]
        );
        let name = Some("a.example.org".to_owned());
        assert_eq!(names(&find(Wanted { name: name.clone(), ..Wanted::default() })), ["a.example.org"]);
        let below = find(Wanted { name, covers_below: true, ..Wanted::default() });
        assert_eq!(names(&below), ["b.a.example.org", "a.example.org"]);
        assert_eq!(reader.newest(&Wanted { count: 1, ..Wanted::default() }).expect("one").len(), 1);
        let top = reader.top_clients(0, 1).expect("an answer");
        assert_eq!(top, [("192.0.2.1".to_owned(), 3)]);
        assert_eq!(reader.top_names(0, 10).expect("an answer").len(), 4);
        assert_eq!(reader.top_names(i64::MAX, 10).expect("an answer"), []);
    }

    #[test]
    fn what_is_old_or_too_much_is_removed() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let file = folder.path().join("queries.db");
        record(&file, &(0..500).map(|_| ("a.example.org", "192.0.2.1")).collect::<Vec<_>>());
        let mut database = open(&file).expect("a database");
        let count = |database: &Connection| -> i64 {
            database.query_row("SELECT count(*) FROM queries", [], |row| row.get(0)).expect("a count")
        };
        let mut rules = settings(file);
        assert_eq!(clean(&mut database, &rules, unix_ms_now()), Ok(0));
        rules.octets_max = 40_000;
        let removed = clean(&mut database, &rules, unix_ms_now()).expect("it cleans");
        assert!(removed > 20 && removed < 500, "{removed}");
        assert_eq!(count(&database), 500 - removed as i64);
        let oldest: i64 =
            database.query_row("SELECT min(id) FROM queries", [], |row| row.get(0)).expect("an id");
        assert_eq!(oldest, removed as i64 + 1, "the oldest go first");
        let later = unix_ms_now() + 2 * 3_600_000;
        clean(&mut database, &rules, later).expect("it cleans");
        assert_eq!(count(&database), 0);
        let left: i64 = database
            .query_row("SELECT (SELECT count(*) FROM names) + (SELECT count(*) FROM paths)", [], |row| {
                row.get(0)
            })
            .expect("a count");
        assert_eq!(left, 0);
    }

    #[test]
    fn the_questions_people_ask_use_an_index() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let database = open(&folder.path().join("queries.db")).expect("a database");
        let check = |sql: &str, index: &str| {
            let plan: String = database
                .query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [], |row| row.get("detail"))
                .expect("a plan");
            assert!(plan.contains(index), "{sql}: {plan}");
        };
        check(
            "SELECT * FROM queries WHERE client = x'c0000201' ORDER BY id DESC LIMIT 20",
            "queries_by_client",
        );
        check("SELECT * FROM queries WHERE name = 1 ORDER BY id DESC LIMIT 20", "queries_by_name");
        check("SELECT * FROM queries WHERE at_ms >= 5", "queries_by_time");
    }

    #[test]
    fn a_database_of_another_version_is_put_aside() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let file = folder.path().join("queries.db");
        let other = Connection::open(&file).expect("a database");
        other.execute_batch("CREATE TABLE x (y); PRAGMA user_version = 7;").expect("it is made");
        drop(other);
        assert!(Reader::open(&file).is_err());
        record(&file, &[("a.example.org", "192.0.2.1")]);
        assert!(folder.path().join("queries.db.version-7").is_file());
        assert!(Reader::open(&file).is_ok());
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_slows_nobody() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        // A folder is no database.
        let rules = settings(folder.path().to_owned());
        let recorder = Recorder::start(&rules, Clock::new(Instant::now()), steps(), || ()).expect("a thread");
        take(&recorder, &words("a.example.org", "192.0.2.1", 0), 1);
        recorder.stop();
        assert_eq!((recorder.counts().written.read(), recorder.counts().failed.read()), (0, 1));
        take(&recorder, &words("a.example.org", "192.0.2.1", 0), 1);
        assert_eq!(recorder.counts().dropped.read(), 1, "nobody takes it any more");
        let recorder = Recorder::start(&rules, Clock::new(Instant::now()), steps(), || ()).expect("a thread");
        take(&recorder, &vec![1; WAITING_OCTETS_MAX / 8 + 1], 1000);
        assert_eq!(recorder.counts().dropped.read(), 1000, "there is no room");
        recorder.stop();
    }

    #[test]
    fn a_writer_that_stands_still_costs_records_and_each_is_counted() {
        let shared = Arc::new(Shared {
            waiting: Mutex::new(Waiting { words: Vec::new(), records: 0, is_closed: false }),
            changed: Condvar::new(),
            counts: Counts::default(),
        });
        // Nobody takes out what is put in.
        let recorder = Recorder {
            settings: settings(PathBuf::from("queries.db")),
            shared: Arc::clone(&shared),
            thread: Mutex::new(None),
        };
        let words = words("a.example.org", "192.0.2.1", 0);
        let room = (WAITING_OCTETS_MAX / (words.len() * size_of::<u64>())) as u64;
        for _ in 0..room + 10 {
            take(&recorder, &words, 1);
        }
        assert_eq!((shared.lock().records, recorder.counts().dropped.read()), (room, 10));
        // While the writer is at it, a little is offered again and much is dropped: nobody waits.
        let held = shared.lock();
        assert_eq!(recorder.take(&words, 1), Taking::Later);
        assert_eq!(recorder.counts().dropped.read(), 10);
        assert_eq!(recorder.take(&vec![1; WAITING_OCTETS_MAX / 4], 50), Taking::Done);
        assert_eq!(recorder.counts().dropped.read(), 60);
        drop(held);
        recorder.close();
        take(&recorder, &words, 1);
        assert_eq!(recorder.counts().dropped.read(), 61, "it has ended");
    }

    #[test]
    fn ways_through_the_policy_and_names_are_told_apart() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let file = folder.path().join("queries.db");
        record(
            &file,
            &[("a.example.org", "192.0.2.1"), ("A.Example.ORG", "192.0.2.1"), ("[.example.org", "192.0.2.1")],
        );
        let database = open(&file).expect("a database");
        let count = |table: &str| -> i64 {
            let sql = format!("SELECT count(*) FROM {table}");
            database.query_row(&sql, [], |row| row.get(0)).expect("a count")
        };
        assert_eq!((count("queries"), count("names"), count("paths")), (3, 2, 1));
    }
}
