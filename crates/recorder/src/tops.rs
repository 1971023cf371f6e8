//! The most frequent names: by the hour as they are counted, and by the day once it is over, so
//! that a week is not added up from its hours each time.

use std::collections::HashMap;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, params};

use crate::days::{Day, Files};
use crate::sketch::Sketch;

/// Names that are counted in an hour, and kept of a day.
pub(super) const NAMES_MAX: usize = 2_000;
/// Seconds of an hour.
const HOUR: i64 = 3_600;
/// Hours of a day.
const HOURS: i64 = 24;

pub(super) const SCHEMA: &str = "
CREATE TABLE top (
    kind INTEGER NOT NULL,            -- 1: names, 2: names that were blocked
    hour INTEGER NOT NULL,            -- when it began, in seconds since 1970
    run INTEGER NOT NULL,             -- which run of the server counted
    name TEXT NOT NULL,
    queries INTEGER NOT NULL,         -- at most so many
    error INTEGER NOT NULL,           -- by so much that may be too large
    PRIMARY KEY (kind, hour, run, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE floors (
    kind INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    run INTEGER NOT NULL,
    queries INTEGER NOT NULL,         -- a name that is not there had so many at most
    PRIMARY KEY (kind, hour, run)
) STRICT, WITHOUT ROWID;
CREATE TABLE day_top (                -- the same of the hours of a day that is over
    kind INTEGER NOT NULL,
    day INTEGER NOT NULL,             -- since 1970
    name TEXT NOT NULL,
    queries INTEGER NOT NULL,
    error INTEGER NOT NULL,           -- by so much that may be wrong
    PRIMARY KEY (kind, day, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE day_floors (
    kind INTEGER NOT NULL,
    day INTEGER NOT NULL,
    queries INTEGER NOT NULL,
    PRIMARY KEY (kind, day)
) STRICT, WITHOUT ROWID;
";

/// Which names are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Tops {
    All = 1,
    Blocked = 2,
}

/// How often a name was counted.
#[derive(Clone, Copy, Default)]
struct Count {
    queries: u64,
    /// By so much that may be too large.
    error: u64,
    /// What it would have had at most where it was counted, if it had been missing there.
    floors: u64,
}

/// Writes the most frequent names of an hour in place of what was written before.
pub(super) fn write(
    transaction: &Transaction<'_>,
    of_day: &Connection,
    (kind, hour, run): (Tops, i64, i64),
    sketch: &Sketch<i64>,
) -> rusqlite::Result<()> {
    let kind = kind as u8;
    transaction
        .prepare_cached("DELETE FROM top WHERE kind = ?1 AND hour = ?2 AND run = ?3")?
        .execute(params![kind, hour, run])?;
    let mut name = of_day.prepare_cached("SELECT name FROM names WHERE id = ?1")?;
    let mut insert =
        transaction.prepare_cached("INSERT OR REPLACE INTO top VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for counter in sketch.counters() {
        let name: Option<String> = name.query_row([counter.key], |row| row.get(0)).optional()?;
        if let Some(name) = name {
            insert.execute(params![kind, hour, run, name, counter.count as i64, counter.error as i64])?;
        }
    }
    let floor = sketch.floor() as i64;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO floors VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![kind, hour, run, floor])?;
    // Rows of a day that is over came late.
    take_apart(transaction, Day(hour.div_euclid(HOURS * HOUR)))
}

/// Removes what was added up of a day, so that it is added up again.
fn take_apart(database: &Connection, day: Day) -> rusqlite::Result<()> {
    if database.prepare_cached("DELETE FROM day_floors WHERE day = ?1")?.execute([day.0])? > 0 {
        database.prepare_cached("DELETE FROM day_top WHERE day = ?1")?.execute([day.0])?;
    }
    Ok(())
}

/// Adds up the hours of each day that is over.
pub(super) fn add_up_days(database: &mut Connection, today: Day) -> rusqlite::Result<()> {
    for kind in [Tops::All, Tops::Blocked] {
        let days: Vec<i64> = {
            let mut query = database.prepare_cached(
                "SELECT DISTINCT hour / 86400 AS day FROM floors WHERE kind = ?1 AND hour < ?2
                 AND NOT EXISTS (SELECT 1 FROM day_floors WHERE day_floors.kind = ?1 AND day_floors.day = hour / 86400)",
            )?;
            let rows = query.query_map(params![kind as u8, today.begin_ms() / 1000], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for day in days {
            add_up(database, kind, Day(day))?;
        }
    }
    Ok(())
}

fn add_up(database: &mut Connection, kind: Tops, day: Day) -> rusqlite::Result<()> {
    let transaction = database.transaction()?;
    let mut counts = HashMap::new();
    let begin = day.begin_ms() / 1000;
    let floors = add_hours(&transaction, kind, (begin, begin + HOURS * HOUR), &mut counts)?;
    let mut all: Vec<(String, Count)> = counts.into_iter().collect();
    all.sort_unstable_by(|(one, its), (other, others)| {
        others.queries.cmp(&its.queries).then_with(|| one.cmp(other))
    });
    let left_out = all.split_off(all.len().min(NAMES_MAX));
    let most = |count: &Count| count.queries + floors.saturating_sub(count.floors);
    let floor = left_out.iter().map(|(_, count)| most(count)).max().unwrap_or(0).max(floors);
    {
        let mut insert =
            transaction.prepare_cached("INSERT OR REPLACE INTO day_top VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for (name, count) in &all {
            let error = count.error + floors.saturating_sub(count.floors);
            insert.execute(params![kind as u8, day.0, name, count.queries as i64, error as i64])?;
        }
    }
    transaction.execute(
        "INSERT OR REPLACE INTO day_floors VALUES (?1, ?2, ?3)",
        params![kind as u8, day.0, floor as i64],
    )?;
    transaction.commit()
}

/// Adds up the names since the beginning of an hour: how often, and by how much that may be wrong.
pub(super) fn since(
    database: &Connection,
    kind: Tops,
    since: i64,
) -> rusqlite::Result<HashMap<String, (u64, u64)>> {
    let mut counts: HashMap<String, Count> = HashMap::new();
    let mut floors = 0;
    let mut query = database.prepare_cached(
        "SELECT day, queries FROM day_floors WHERE kind = ?1 AND day * 86400 >= ?2 ORDER BY day",
    )?;
    let days: Vec<(i64, u64)> = query
        .query_map(params![kind as u8, since], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?
        .collect::<rusqlite::Result<_>>()?;
    let mut of_day =
        database.prepare_cached("SELECT name, queries, error FROM day_top WHERE kind = ?1 AND day = ?2")?;
    let mut next = since;
    for (day, floor) in days {
        // Hours between the days that were added up.
        let begin = Day(day).begin_ms() / 1000;
        floors += add_hours(database, kind, (next, begin), &mut counts)?;
        next = begin + HOURS * HOUR;
        add(&mut of_day.query(params![kind as u8, day])?, floor, &mut counts)?;
        floors += floor;
    }
    floors += add_hours(database, kind, (next, i64::MAX), &mut counts)?;
    // A name that is missing somewhere had at most the floor of it.
    let whole = |(name, count): (String, Count)| {
        (name, (count.queries, count.error + floors.saturating_sub(count.floors)))
    };
    Ok(counts.into_iter().map(whole).collect())
}

/// Adds what was counted in the hours between two times; returns the sum of their floors.
fn add_hours(
    database: &Connection,
    kind: Tops,
    (begin, end): (i64, i64),
    counts: &mut HashMap<String, Count>,
) -> rusqlite::Result<u64> {
    let mut query = database.prepare_cached(
        "SELECT hour, run, queries FROM floors WHERE kind = ?1 AND hour >= ?2 AND hour < ?3",
    )?;
    let mut hours = query.query(params![kind as u8, begin, end])?;
    let mut of_hour = database
        .prepare_cached("SELECT name, queries, error FROM top WHERE kind = ?1 AND hour = ?2 AND run = ?3")?;
    let mut floors = 0;
    while let Some(hour) = hours.next()? {
        let floor = hour.get::<_, i64>(2)?.unsigned_abs();
        let place = params![kind as u8, hour.get::<_, i64>(0)?, hour.get::<_, i64>(1)?];
        add(&mut of_hour.query(place)?, floor, counts)?;
        floors += floor;
    }
    Ok(floors)
}

/// Adds names where those that are missing had `floor` at most.
fn add(
    rows: &mut rusqlite::Rows<'_>,
    floor: u64,
    counts: &mut HashMap<String, Count>,
) -> rusqlite::Result<()> {
    while let Some(row) = rows.next()? {
        let name = row.get_ref(0)?.as_str()?;
        let number = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        let (queries, error) = (number(1)?, number(2)?);
        let count = match counts.get_mut(name) {
            Some(count) => count,
            None => counts.entry(name.to_owned()).or_default(),
        };
        count.queries += queries;
        count.error += error;
        count.floors += floor;
    }
    Ok(())
}

/// Removes the names that the file of their day does not have any more: only a client asked for
/// them whose records were removed. Without the file nobody knows, and they go, too.
pub(super) fn forget(transaction: &Transaction<'_>, files: &Files) -> rusqlite::Result<()> {
    let days: Vec<i64> = {
        let sql = "SELECT hour / 86400 FROM floors UNION SELECT day FROM day_floors";
        let mut query = transaction.prepare_cached(sql)?;
        query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?
    };
    for day in days.into_iter().map(Day) {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let of_day = Connection::open_with_flags(files.of(day).path, flags).ok();
        let mut is_there = match &of_day {
            Some(database) => Some(database.prepare("SELECT EXISTS (SELECT 1 FROM names WHERE name = ?1)")?),
            None => None,
        };
        let begin = day.begin_ms() / 1000;
        let hours = (begin, begin + (HOURS - 1) * HOUR);
        for (table, (from, to)) in [("top WHERE hour", hours), ("day_top WHERE day", (day.0, day.0))] {
            let names: Vec<String> = {
                let sql = format!("SELECT DISTINCT name FROM {table} BETWEEN ?1 AND ?2");
                let mut query = transaction.prepare_cached(&sql)?;
                query.query_map([from, to], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?
            };
            let sql = format!("DELETE FROM {table} BETWEEN ?1 AND ?2 AND name = ?3");
            let mut remove = transaction.prepare_cached(&sql)?;
            for name in names {
                let stays = match &mut is_there {
                    Some(query) => query.query_row([&name], |row| row.get(0))?,
                    None => false,
                };
                if !stays {
                    remove.execute(params![from, to, name])?;
                }
            }
        }
    }
    Ok(())
}

/// Removes what is older than a time, in seconds since 1970.
pub(super) fn clean(database: &Connection, oldest: i64) -> rusqlite::Result<()> {
    for table in ["top", "floors"] {
        database.execute(&format!("DELETE FROM {table} WHERE hour + {HOUR} <= ?1"), [oldest])?;
    }
    for table in ["day_top", "day_floors"] {
        database.execute(&format!("DELETE FROM {table} WHERE (day + 1) * 86400 <= ?1"), [oldest])?;
    }
    Ok(())
}
