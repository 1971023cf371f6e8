//! Sums of recorded queries: by minute, hour and day.
//!
//! The recorder's thread makes them of the rows that it writes and keeps them in a database beside
//! the days' files. That database says up to which row of each file they are, so that what a crash
//! left out is made up for at the next start, and readers add what is newer.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::client::{Client, Clients};
use crate::database::open_as_it_is;
use crate::days::{Day, Files};
use crate::outcome::{self, Outcome};
use crate::read::TopOf;
use crate::sketch::Sketch;
use crate::tops::{self, Tops};

/// The version of the schema.
const VERSION: i64 = 1;
const SCHEMA: &str = "
CREATE TABLE sums (
    period INTEGER NOT NULL,          -- seconds: 60, 3600 or 86400
    kind INTEGER NOT NULL,            -- what is told apart, see the manual
    start INTEGER NOT NULL,           -- when the period began, in seconds since 1970
    key TEXT NOT NULL,
    queries INTEGER NOT NULL,
    PRIMARY KEY (period, kind, start, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE files (day INTEGER PRIMARY KEY, last_id INTEGER NOT NULL) STRICT;
PRAGMA user_version = 1;
";

/// How often what was counted is written.
pub(super) const WRITE_EVERY: Duration = Duration::from_secs(10);
/// Clients that are told apart in an hour; what others ask counts as that of `others`.
const CLIENTS_MAX: usize = 10_000;
const OTHERS: &str = "others";
/// Types, upstreams and lists that are told apart in a period: clients choose types, and names
/// choose the servers that are asked.
const KEYS_MAX: usize = 256;
/// Seconds of the periods, and for how many seconds their sums are kept.
const PERIODS: [(i64, i64); 3] = [(60, 48 * 3_600), (3_600, 90 * 86_400), (86_400, 5 * 366 * 86_400)];
/// Seconds of an hour.
const HOUR: i64 = 3_600;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// What queries are told apart by. The numbers stand in databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// What became of them.
    Outcome = 1,
    /// The type asked for.
    Type = 2,
    /// The transport.
    Transport = 3,
    /// The upstream that answered.
    Upstream = 4,
    /// The list that decided.
    List = 5,
    /// Who asked.
    Client = 6,
    /// Who asked for what was blocked.
    BlockedClient = 7,
}

/// What counts of a row.
pub(super) struct Counted<'a> {
    pub(super) at_ms: i64,
    pub(super) name: i64,
    pub(super) client: Client,
    pub(super) qtype: u16,
    pub(super) transport: &'a str,
    pub(super) outcome: Outcome,
    pub(super) decision: Option<i64>,
    pub(super) one_of: u32,
}

/// Sums of one minute that are not written yet.
#[derive(Default)]
struct Minute {
    /// When it began, in seconds since 1970.
    start: i64,
    outcomes: [u64; 8],
    types: HashMap<u16, u64>,
    other_types: u64,
    transports: HashMap<Box<str>, u64>,
    /// By number, as the day's file has them.
    decisions: HashMap<i64, u64>,
    clients: HashMap<Client, u64>,
    others: u64,
    /// Of these, what was blocked.
    blocked_clients: HashMap<Client, u64>,
    blocked_others: u64,
}

/// What the recorder's thread counts.
pub(super) struct Sums {
    database: Option<Connection>,
    run: i64,
    minutes: Vec<Minute>,
    hour: i64,
    names: Sketch<i64>,
    blocked: Sketch<i64>,
    has_new: bool,
    /// Whether rows may have no sums: what was counted of them was given up.
    is_behind: bool,
    pub(super) written: Option<Instant>,
}

impl Sums {
    /// Returns nothing so far; `run` tells runs of the server apart.
    pub(super) fn new(run: i64) -> Self {
        Self {
            database: None,
            run,
            minutes: Vec::new(),
            hour: 0,
            names: Sketch::new(tops::NAMES_MAX),
            blocked: Sketch::new(tops::NAMES_MAX),
            has_new: false,
            is_behind: false,
            written: None,
        }
    }

    /// Returns whether something is to be written.
    pub(super) const fn has_new(&self) -> bool {
        self.has_new
    }

    /// Returns whether a row belongs to another hour than those that were counted.
    pub(super) const fn is_other_hour(&self, at_ms: i64) -> bool {
        self.hour != 0 && at_ms.div_euclid(HOUR * 1000) * HOUR != self.hour
    }

    /// Counts a row.
    pub(super) fn add(&mut self, row: &Counted<'_>) {
        let count = u64::from(row.one_of);
        let start = row.at_ms.div_euclid(60_000) * 60;
        if self.minutes.last().is_none_or(|minute| minute.start != start) {
            self.minutes.push(Minute { start, ..Minute::default() });
        }
        let Some(minute) = self.minutes.last_mut() else { return };
        if let Some(sum) = minute.outcomes.get_mut(row.outcome as usize) {
            *sum += count;
        }
        let is_full = minute.types.len() >= KEYS_MAX;
        match minute.types.get_mut(&row.qtype) {
            Some(sum) => *sum += count,
            None if is_full => minute.other_types += count,
            None => drop(minute.types.insert(row.qtype, count)),
        }
        match minute.transports.get_mut(row.transport) {
            Some(sum) => *sum += count,
            None => drop(minute.transports.insert(row.transport.into(), count)),
        }
        if let Some(decision) = row.decision {
            *minute.decisions.entry(decision).or_default() += count;
        }
        let is_full = minute.clients.len() >= CLIENTS_MAX;
        match minute.clients.get_mut(&row.client) {
            Some(sum) => *sum += count,
            None if is_full => minute.others += count,
            None => drop(minute.clients.insert(row.client, count)),
        }
        if row.outcome == Outcome::Blocked {
            let is_full = minute.blocked_clients.len() >= CLIENTS_MAX;
            match minute.blocked_clients.get_mut(&row.client) {
                Some(sum) => *sum += count,
                None if is_full => minute.blocked_others += count,
                None => drop(minute.blocked_clients.insert(row.client, count)),
            }
        }
        self.hour = row.at_ms.div_euclid(HOUR * 1000) * HOUR;
        self.names.add(row.name, count);
        if row.outcome == Outcome::Blocked {
            self.blocked.add(row.name, count);
        }
        self.has_new = true;
    }

    /// Writes what was counted of rows up to `last_id` of a day's file, whose names and decisions
    /// are in `of_day`. With `ends`, the names of the next hour are counted from nothing.
    pub(super) fn write(
        &mut self,
        file: &Path,
        (day, last_id, of_day): (Day, i64, &Connection),
        ends: Ends,
    ) -> rusqlite::Result<()> {
        self.written = Some(Instant::now());
        if self.is_behind {
            // What was counted since then is counted again with the rest.
            self.minutes.clear();
            self.begin_hour();
            self.catch_up(file, day, of_day)?;
        }
        if self.has_new {
            let mut database = match self.database.take() {
                Some(database) => database,
                None => open(file)?,
            };
            let transaction = database.transaction()?;
            for minute in &self.minutes {
                minute.write(&transaction, of_day)?;
            }
            for (kind, sketch) in [(Tops::All, &self.names), (Tops::Blocked, &self.blocked)] {
                tops::write(&transaction, of_day, (kind, self.hour, self.run), sketch)?;
            }
            transaction.execute(
                "INSERT INTO files VALUES (?1, ?2) ON CONFLICT DO UPDATE SET last_id = max(last_id, excluded.last_id)",
                [day.0, last_id],
            )?;
            transaction.commit()?;
            self.database = Some(database);
            self.minutes.clear();
            self.has_new = false;
        }
        if ends == Ends::Yes {
            self.begin_hour();
        }
        Ok(())
    }

    /// Counts names from nothing.
    fn begin_hour(&mut self) {
        (self.names, self.blocked) = (Sketch::new(tops::NAMES_MAX), Sketch::new(tops::NAMES_MAX));
        self.hour = 0;
        // Names counted before keep their rows.
        self.run += 1;
    }

    /// Gives up what was not written.
    pub(super) fn give_up(&mut self) {
        self.database = None;
        self.minutes.clear();
        (self.has_new, self.is_behind) = (false, true);
        self.begin_hour();
    }

    /// Counts the rows of a file that have no sums: the server was killed before it wrote them, or
    /// could not.
    pub(super) fn catch_up(&mut self, file: &Path, day: Day, of_day: &Connection) -> rusqlite::Result<()> {
        self.is_behind = false;
        let database = match self.database.take() {
            Some(database) => database,
            None => open(file)?,
        };
        let mut from = last_id(&database, day)?;
        let last = crate::database::last_id(of_day)?;
        if last < from {
            // The file was begun anew: its numbers, too.
            from = last;
            match last {
                0 => database.execute("DELETE FROM files WHERE day = ?1", [day.0])?,
                _ => database.execute("UPDATE files SET last_id = ?2 WHERE day = ?1", [day.0, last])?,
            };
        }
        self.database = Some(database);
        let mut query = of_day.prepare(
            "SELECT at_ms, name, client, type, transport, outcome, decision, one_of, id FROM queries WHERE id > ?1 ORDER BY id",
        )?;
        let mut rows = query.query([from])?;
        while let Some(row) = rows.next()? {
            let (at_ms, id): (i64, i64) = (row.get(0)?, row.get(8)?);
            if self.is_other_hour(at_ms) {
                self.write(file, (day, id - 1, of_day), Ends::Yes)?;
            }
            self.add(&Counted {
                at_ms,
                name: row.get(1)?,
                client: Client::read(row.get_ref(2)?.as_blob()?),
                qtype: row.get(3)?,
                transport: row.get_ref(4)?.as_str()?,
                outcome: Outcome::read(row.get(5)?).unwrap_or(Outcome::Local),
                decision: row.get(6)?,
                one_of: row.get(7)?,
            });
        }
        Ok(())
    }
}

/// Whether an hour, or the numbers of names, are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Yes,
    No,
}

impl Minute {
    fn write(&self, transaction: &Transaction<'_>, of_day: &Connection) -> rusqlite::Result<()> {
        let mut sums: HashMap<(Kind, String), u64> = HashMap::new();
        for outcome in outcome::ALL {
            let count = self.outcomes.get(outcome as usize).copied().unwrap_or(0);
            sums.insert((Kind::Outcome, outcome.word().to_owned()), count);
        }
        for (transport, count) in &self.transports {
            sums.insert((Kind::Transport, transport.to_string()), *count);
        }
        let types = self.types.iter();
        let types = types.map(|(qtype, count)| (wire::Rtype(*qtype).to_string(), *count)).collect();
        let (mut lists, mut upstreams) = (HashMap::new(), HashMap::new());
        let mut decision = of_day.prepare_cached("SELECT list, upstream FROM decisions WHERE id = ?1")?;
        for (number, count) in &self.decisions {
            let found = decision
                .query_row([number], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
                .optional()?;
            let Some((list, upstream)) = found else { continue };
            for (sums, key) in [(&mut lists, list), (&mut upstreams, upstream)] {
                if !key.is_empty() {
                    *sums.entry(key).or_default() += count;
                }
            }
        }
        let mut add = transaction.prepare_cached(
            "INSERT INTO sums (period, kind, start, key, queries) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET queries = queries + excluded.queries",
        )?;
        for (period, _) in PERIODS {
            let start = self.start.div_euclid(period) * period;
            for ((kind, key), count) in sums.iter().filter(|(_, count)| **count > 0) {
                add.execute(params![period, *kind as u8, start, key, *count as i64])?;
            }
        }
        let of_clients = |sums: &HashMap<Client, u64>| -> HashMap<String, u64> {
            sums.iter().map(|(client, count)| (client.to_string(), *count)).collect()
        };
        let (clients, blocked_clients) = (of_clients(&self.clients), of_clients(&self.blocked_clients));
        for (kind, keys, others) in [
            (Kind::Type, &types, self.other_types),
            (Kind::List, &lists, 0),
            (Kind::Upstream, &upstreams, 0),
            (Kind::Client, &clients, self.others),
            (Kind::BlockedClient, &blocked_clients, self.blocked_others),
        ] {
            self.write_keys(transaction, kind, keys, others)?;
        }
        Ok(())
    }

    /// Writes what there may be too many of: those that are not told apart are `others`.
    fn write_keys(
        &self,
        transaction: &Transaction<'_>,
        kind: Kind,
        keys: &HashMap<String, u64>,
        others: u64,
    ) -> rusqlite::Result<()> {
        // Clients by the hour and the day: by the minute they would be too many.
        let (periods, keys_max) = match kind {
            Kind::Client | Kind::BlockedClient => (&PERIODS[1..], CLIENTS_MAX),
            _ => (&PERIODS[..], KEYS_MAX),
        };
        let mut grow = transaction.prepare_cached(
            "UPDATE sums SET queries = queries + ?5 WHERE period = ?1 AND kind = ?2 AND start = ?3 AND key = ?4",
        )?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO sums (period, kind, start, key, queries) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET queries = queries + excluded.queries",
        )?;
        let mut known = transaction
            .prepare_cached("SELECT count(*) FROM sums WHERE period = ?1 AND kind = ?2 AND start = ?3")?;
        // The most frequent are told apart first.
        let mut keys: Vec<(&str, u64)> = keys.iter().map(|(key, count)| (key.as_str(), *count)).collect();
        keys.sort_unstable_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        for (period, _) in periods {
            let start = self.start.div_euclid(*period) * period;
            let kind = kind as u8;
            let mut count: usize =
                known.query_row(params![period, kind, start], |row| row.get::<_, u32>(0))? as usize;
            let mut others = others;
            for (key, queries) in &keys {
                if grow.execute(params![period, kind, start, key, *queries as i64])? > 0 {
                    continue;
                }
                if count >= keys_max {
                    others += queries;
                    continue;
                }
                count += 1;
                insert.execute(params![period, kind, start, key, *queries as i64])?;
            }
            if others > 0 {
                insert.execute(params![period, kind, start, OTHERS, others as i64])?;
            }
        }
        Ok(())
    }
}

/// Opens the database, and makes it if it is not there or another.
fn open(file: &Path) -> rusqlite::Result<Connection> {
    let is_ours = |database: &Connection| -> rusqlite::Result<bool> {
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version == 0 {
            database.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} {} COMMIT;", tops::SCHEMA))?;
        }
        Ok(version == 0 || version == VERSION)
    };
    let opened = open_as_it_is(file).and_then(|database| Ok((is_ours(&database)?, database)));
    match opened {
        Ok((true, database)) => return Ok(database),
        Err(error) if !crate::database::is_broken(&error) => return Err(error),
        _ => {}
    }
    crate::days::put_aside(file, "other");
    let database = open_as_it_is(file)?;
    is_ours(&database)?;
    Ok(database)
}

/// Returns up to which row of a day's file there are sums.
fn last_id(database: &Connection, day: Day) -> rusqlite::Result<i64> {
    let found = database
        .query_row("SELECT last_id FROM files WHERE day = ?1", [day.0], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(0))
}

/// Adds up what is over, and removes sums that are too old; those of names and clients no later
/// than the records are.
pub(super) fn clean(file: &Path, now_ms: i64, keep: Duration) -> rusqlite::Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let mut database = open(file)?;
    let now = now_ms.div_euclid(1000);
    for (period, kept) in PERIODS {
        database.execute("DELETE FROM sums WHERE period = ?1 AND start < ?2", [period, now - kept])?;
    }
    let oldest = now.saturating_sub(i64::try_from(keep.as_secs()).unwrap_or(i64::MAX));
    // A period goes when all of it is older.
    database.execute(
        "DELETE FROM sums WHERE kind IN (?1, ?2) AND start + period <= ?3",
        params![Kind::Client as u8, Kind::BlockedClient as u8, oldest],
    )?;
    tops::clean(&database, oldest)?;
    tops::add_up_days(&mut database, Day::of(now_ms))?;
    database.execute("DELETE FROM files WHERE (day + 1) * 86400 <= ?1", [oldest])?;
    Ok(())
}

/// Removes what is told apart of clients, and names that nobody else asked for.
pub(super) fn forget(files: &Files, clients: Clients) -> rusqlite::Result<()> {
    let file = files.sums();
    if !file.exists() {
        return Ok(());
    }
    let mut database = open(&file)?;
    database.execute_batch("PRAGMA secure_delete = ON")?;
    let transaction = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let keys: Vec<String> = {
        let mut query = transaction.prepare("SELECT DISTINCT key FROM sums WHERE kind IN (?1, ?2)")?;
        let kinds = [Kind::Client as u8, Kind::BlockedClient as u8];
        let rows = query.query_map(kinds, |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let is_one = |key: &&String| key.parse::<Clients>().is_ok_and(|key| clients.contains(key.range().0));
    for key in keys.iter().filter(is_one) {
        transaction.execute(
            "DELETE FROM sums WHERE kind IN (?1, ?2) AND key = ?3",
            params![Kind::Client as u8, Kind::BlockedClient as u8, key],
        )?;
    }
    tops::forget(&transaction, files)?;
    transaction.commit()?;
    // What is not in the file any more is not in the one beside it either.
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
}

/// Reads sums.
pub(super) struct SumsReader {
    database: Connection,
}

/// How often something was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// What.
    pub what: String,
    /// How often.
    pub queries: u64,
    /// By so much that may be wrong.
    pub error: u64,
}

/// Sums of one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// When it began, in seconds since 1970.
    pub start: i64,
    /// What was counted.
    pub key: String,
    /// How often.
    pub queries: u64,
}

impl SumsReader {
    /// Opens the database for reading; `None` if there is none that can be read.
    pub(super) fn open(file: &Path) -> Option<Self> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(file, flags).ok()?;
        database.busy_timeout(Duration::from_secs(2)).ok()?;
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).ok()?;
        database.execute_batch("PRAGMA cache_size = -8192; BEGIN").ok()?;
        (version == VERSION).then_some(Self { database })
    }

    /// Returns up to which row of a day's file there are sums.
    pub(super) fn last_id(&self, day: Day) -> rusqlite::Result<i64> {
        last_id(&self.database, day)
    }

    /// Returns the sums of each period since a time.
    pub(super) fn periods(
        &self,
        kind: Kind,
        (period, since, until): (i64, i64, i64),
    ) -> rusqlite::Result<Vec<Sum>> {
        let mut query = self.database.prepare_cached(
            "SELECT start, key, queries FROM sums WHERE period = ?1 AND kind = ?2 AND start >= ?3 AND start < ?4
             ORDER BY start, key",
        )?;
        let since = since.div_euclid(period) * period;
        let rows = query.query_map(params![period, kind as u8, since, until], |row| {
            Ok(Sum { start: row.get(0)?, key: row.get(1)?, queries: row.get::<_, i64>(2)?.unsigned_abs() })
        })?;
        rows.collect()
    }

    /// Returns the newest period that sums are of, before another one: the days since a time, and
    /// the hours before the first of them. Its length and its beginning, in seconds.
    pub(super) fn newest_start(
        &self,
        kind: Kind,
        since: i64,
        before: Option<(i64, i64)>,
    ) -> rusqlite::Result<Option<(i64, i64)>> {
        let midnight = since.saturating_add(DAY - 1).div_euclid(DAY).saturating_mul(DAY);
        let mut query = self.database.prepare_cached(
            "SELECT max(start) FROM sums WHERE period = ?1 AND kind = ?2 AND start >= ?3 AND start < ?4",
        )?;
        for (period, begin, end) in [(DAY, midnight, i64::MAX), (HOUR, since, midnight)] {
            let end = match before {
                Some((of, _)) if of < period => continue,
                Some((of, start)) if of == period => end.min(start),
                _ => end,
            };
            let newest: Option<i64> =
                query.query_row(params![period, kind as u8, begin, end], |row| row.get(0))?;
            if let Some(start) = newest {
                return Ok(Some((period, start)));
            }
        }
        Ok(None)
    }

    /// Gives the sums of one period by their keys, those behind `after`, at most `count`, to
    /// `take`, until that wants no more.
    pub(super) fn of_start(
        &self,
        (kind, period, start): (Kind, i64, i64),
        (after, count): (&str, usize),
        take: &mut dyn FnMut(&str, u64) -> bool,
    ) -> rusqlite::Result<()> {
        let mut query = self.database.prepare_cached(
            "SELECT key, queries FROM sums WHERE period = ?1 AND kind = ?2 AND start = ?3 AND key > ?4
             ORDER BY key LIMIT ?5",
        )?;
        let mut rows = query.query(params![period, kind as u8, start, after, count as i64])?;
        while let Some(row) = rows.next()? {
            if !take(row.get_ref(0)?.as_str()?, row.get::<_, i64>(1)?.unsigned_abs()) {
                break;
            }
        }
        Ok(())
    }

    /// Adds up since the beginning of an hour: how often, and by how much that may be wrong.
    pub(super) fn top(&self, of: TopOf, since: i64) -> rusqlite::Result<HashMap<String, (u64, u64)>> {
        match of {
            TopOf::Names => tops::since(&self.database, Tops::All, since),
            TopOf::Blocked => tops::since(&self.database, Tops::Blocked, since),
            TopOf::By(kind) => self.tallies(kind, since),
        }
    }

    /// Adds up the days since then, and the hours before the first of them.
    fn tallies(&self, kind: Kind, since: i64) -> rusqlite::Result<HashMap<String, (u64, u64)>> {
        let mut query = self.database.prepare_cached(
            "SELECT key, queries FROM sums WHERE period = ?1 AND kind = ?2 AND start >= ?3 AND start < ?4",
        )?;
        let midnight = since.saturating_add(DAY - 1).div_euclid(DAY).saturating_mul(DAY);
        let mut found: HashMap<String, (u64, u64)> = HashMap::new();
        for (period, begin, end) in [(HOUR, since, midnight), (DAY, midnight, i64::MAX)] {
            let mut rows = query.query(params![period, kind as u8, begin, end])?;
            while let Some(row) = rows.next()? {
                let key = row.get_ref(0)?.as_str()?;
                let queries = row.get::<_, i64>(1)?.unsigned_abs();
                match found.get_mut(key) {
                    Some((sum, _)) => *sum += queries,
                    None => drop(found.insert(key.to_owned(), (queries, 0))),
                }
            }
        }
        Ok(found)
    }
}
