//! The database: its schema, how it is opened, brought up to date, and written.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Transaction, params};

use crate::files::make_folder;
use crate::{Change, Held, Position, StoreError, Trouble};

/// What makes each version of the schema of the one before; the first, of an empty file. A step
/// that was ever part of a release stays as it is.
const STEPS: &[&str] = &[
    "
CREATE TABLE position (
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    oldest INTEGER NOT NULL,               -- the oldest revision that can be read again
    entries INTEGER NOT NULL,              -- how many there are
    total INTEGER NOT NULL,                -- all their sums
    sum INTEGER NOT NULL                   -- of all that
) STRICT;
CREATE TABLE entries (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT,                             -- or else
    blob TEXT,                             -- the SHA-256 of the file that has it
    until INTEGER,                         -- seconds since 1970; NULL: it stays
    revision INTEGER NOT NULL,             -- the change that made it so
    sum INTEGER NOT NULL,
    PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE changes (
    revision INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,                   -- seconds since 1970
    by TEXT NOT NULL,
    why TEXT NOT NULL
) STRICT;
CREATE TABLE edits (
    revision INTEGER NOT NULL,
    number INTEGER NOT NULL,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    before_text TEXT, before_blob TEXT, before_until INTEGER,
    after_text TEXT, after_blob TEXT, after_until INTEGER,
    PRIMARY KEY (revision, number)
) STRICT, WITHOUT ROWID;
",
    "
CREATE TABLE notes (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    until INTEGER NOT NULL,                -- seconds since 1970
    PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;
",
    "
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,            -- from 1, without gaps
    text TEXT NOT NULL,                    -- JSON with sorted keys
    hash BLOB NOT NULL,                    -- of all rows up to this one
    mac BLOB NOT NULL                      -- of that, with the key of its epoch
) STRICT;
",
];

/// Marks a database as one of ours.
const APPLICATION: i64 = 0x676e_6331;
/// Read and written by the server alone: settings may hold secrets.
const PRIVATE: u32 = 0o600;
/// How long another process may take to let go of the file.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);

/// Where a store stands, and what it holds then: SQLite does not notice a page that has lost rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) position: Position,
    pub(crate) oldest: u64,
    pub(crate) entries: i64,
    pub(crate) total: i64,
}

impl Standing {
    const FIRST: Self =
        Self { position: Position { epoch: 1, revision: 0 }, oldest: 0, entries: 0, total: 0 };

    fn numbers(&self) -> [i64; 5] {
        let Self { position, oldest, entries, total } = *self;
        [position.epoch as i64, position.revision as i64, oldest as i64, entries, total]
    }

    fn sum(&self) -> i64 {
        let octets: Vec<u8> = self.numbers().iter().flat_map(|number| number.to_le_bytes()).collect();
        i64::from(crc32fast::hash(&octets))
    }

    /// Reads it; `None` if it is not as it was written.
    pub(crate) fn read(database: &Connection) -> rusqlite::Result<Option<Self>> {
        let query = "SELECT epoch, revision, oldest, entries, total, sum FROM position";
        let found = database.query_row(query, [], |row| {
            let position =
                Position { epoch: row.get::<_, i64>(0)? as u64, revision: row.get::<_, i64>(1)? as u64 };
            let oldest = row.get::<_, i64>(2)? as u64;
            Ok((Self { position, oldest, entries: row.get(3)?, total: row.get(4)? }, row.get::<_, i64>(5)?))
        });
        Ok(found.optional()?.filter(|(standing, sum)| standing.sum() == *sum).map(|(standing, _)| standing))
    }

    /// Writes it in place of the one before.
    pub(crate) fn write(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let [epoch, revision, oldest, entries, total] = self.numbers();
        transaction.execute("DELETE FROM position", [])?;
        let query = "INSERT INTO position (epoch, revision, oldest, entries, total, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        transaction.execute(query, params![epoch, revision, oldest, entries, total, self.sum()]).map(drop)
    }
}

/// Opens the database in `file`, and makes it if it is not there. One that stands where it stood
/// when it was found whole a moment ago is not looked through again.
pub(crate) fn open(file: &Path, found_whole: Option<Standing>) -> Result<(Connection, Standing), StoreError> {
    let mut database = open_with(file, STEPS, found_whole)?;
    let trouble = |error: rusqlite::Error| StoreError::of(file, &error);
    let damaged = |what: &str| StoreError::Trouble(Trouble::Damaged(file.to_owned(), what.to_owned()));
    let is_new: bool = database
        .query_row("SELECT (SELECT count(*) FROM position) + (SELECT count(*) FROM changes) = 0", [], |row| {
            row.get(0)
        })
        .map_err(trouble)?;
    if is_new {
        let write = |database: &mut Connection| {
            let transaction = database.transaction()?;
            Standing::FIRST.write(&transaction)?;
            transaction.commit()
        };
        write(&mut database).map_err(trouble)?;
    }
    let standing =
        Standing::read(&database).map_err(trouble)?.ok_or_else(|| damaged("it has lost its revision"))?;
    if found_whole != Some(standing) && !are_whole(&database, standing).map_err(trouble)? {
        return Err(damaged("its entries are not as they were written"));
    }
    Ok((database, standing))
}

/// Returns whether all entries are there, each as it was written.
fn are_whole(database: &Connection, standing: Standing) -> rusqlite::Result<bool> {
    let mut query = database.prepare("SELECT space, name, text, blob, until, sum FROM entries")?;
    let mut rows = query.query([])?;
    let (mut entries, mut total) = (0, 0);
    while let Some(row) = rows.next()? {
        let (space, name): (String, String) = (row.get(0)?, row.get(1)?);
        let held = Held { text: row.get(2)?, blob: row.get(3)?, until: row.get(4)? };
        if held.sum(&space, &name) != row.get::<_, i64>(5)? {
            return Ok(false);
        }
        entries += 1;
        total += held.sum(&space, &name);
    }
    Ok((entries, total) == (standing.entries, standing.total))
}

/// Opens a database whose schema these steps make.
pub(crate) fn open_with(
    file: &Path,
    steps: &[&str],
    found_whole: Option<Standing>,
) -> Result<Connection, StoreError> {
    if let Some(folder) = file.parent() {
        make_folder(folder).map_err(|error| StoreError::io(folder, &error))?;
    }
    // What cannot be made is reported when it is opened.
    let _ = OpenOptions::new().create(true).append(true).mode(PRIVATE).open(file);
    let trouble = |error: rusqlite::Error| StoreError::of(file, &error);
    let mut database = Connection::open(file).map_err(trouble)?;
    database.busy_timeout(LOCK_PATIENCE).map_err(trouble)?;
    // Looked at before anything is written: what is not ours stays as it is.
    let known = steps.len() as i64;
    let version = check_version(file, &database, known)?;
    // One process at a time, so that nothing is shared in memory beside the file; a commit is on
    // disk when it returns.
    database
        .execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF;",
        )
        .map_err(trouble)?;
    let is_known =
        || found_whole.is_some() && matches!(Standing::read(&database), Ok(it) if it == found_whole);
    if !is_known() {
        let check = "PRAGMA quick_check(1)";
        let found: String = database.query_row(check, [], |row| row.get(0)).map_err(trouble)?;
        if found != "ok" {
            return Err(StoreError::Trouble(Trouble::Damaged(file.to_owned(), found)));
        }
    }
    if version < known {
        bring_up_to_date(&mut database, steps, version).map_err(trouble)?;
    }
    Ok(database)
}

/// Returns the version of the schema, 0 of an empty file.
fn check_version(file: &Path, database: &Connection, known: i64) -> Result<i64, StoreError> {
    let trouble = |error: rusqlite::Error| StoreError::of(file, &error);
    let number = |pragma: &str| database.query_row(pragma, [], |row| row.get::<_, i64>(0)).map_err(trouble);
    let is_empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    match (is_empty, application, version) {
        (true, 0, 0) => Ok(0),
        (_, APPLICATION, version) if version > known => {
            Err(StoreError::Trouble(Trouble::Newer { file: file.to_owned(), found: version, known }))
        }
        (false, APPLICATION, version) if version > 0 => Ok(version),
        _ => Err(StoreError::Trouble(Trouble::Foreign(file.to_owned()))),
    }
}

/// Carries out the steps after `version`: all of them, or none.
fn bring_up_to_date(database: &mut Connection, steps: &[&str], version: i64) -> rusqlite::Result<()> {
    let transaction = database.transaction()?;
    for step in steps.iter().skip(version as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", steps.len() as i64)?;
    transaction.commit()
}

/// What is held of an entry, and the revision that made it so.
pub(crate) type Known = (Held, u64);

/// Reads and writes entries in a transaction: thousands, by statements that are prepared once.
pub(crate) struct Writer<'t> {
    transaction: &'t Transaction<'t>,
    find: CachedStatement<'t>,
    put: CachedStatement<'t>,
    remove: CachedStatement<'t>,
    edit: CachedStatement<'t>,
}

impl<'t> Writer<'t> {
    pub(crate) fn new(transaction: &'t Transaction<'t>) -> rusqlite::Result<Self> {
        let prepare = |query| transaction.prepare_cached(query);
        Ok(Self {
            transaction,
            find: prepare("SELECT text, blob, until, revision FROM entries WHERE space = ?1 AND name = ?2")?,
            put: prepare(
                "INSERT OR REPLACE INTO entries (space, name, text, blob, until, revision, sum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?,
            remove: prepare("DELETE FROM entries WHERE space = ?1 AND name = ?2")?,
            edit: prepare(
                "INSERT INTO edits (revision, number, space, name, before_text, before_blob, before_until,
                                    after_text, after_blob, after_until)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?,
        })
    }

    /// Returns what is held of all entries of a space.
    pub(crate) fn all(&self, space: &str) -> rusqlite::Result<HashMap<String, Known>> {
        let query = "SELECT text, blob, until, revision, name FROM entries WHERE space = ?1";
        let mut query = self.transaction.prepare_cached(query)?;
        query.query_map([space], |row| Ok((row.get(4)?, known(row)?)))?.collect()
    }

    /// Returns what is held of an entry.
    pub(crate) fn find(&mut self, space: &str, name: &str) -> rusqlite::Result<Option<Known>> {
        self.find.query_row([space, name], known).optional()
    }

    /// Makes an entry what it is to be.
    pub(crate) fn put(
        &mut self,
        (space, name): (&str, &str),
        held: &Held,
        (revision, sum): (u64, i64),
    ) -> rusqlite::Result<()> {
        if held.is_nothing() {
            return self.remove.execute([space, name]).map(drop);
        }
        let values = params![space, name, held.text, held.blob, held.until, revision as i64, sum];
        self.put.execute(values).map(drop)
    }

    /// Notes what an entry was before, and what it is now.
    pub(crate) fn edit(
        &mut self,
        (revision, number): (u64, i64),
        (space, name): (&str, &str),
        [was, is]: [&Held; 2],
    ) -> rusqlite::Result<()> {
        let values = params![
            revision as i64,
            number,
            space,
            name,
            was.text,
            was.blob,
            was.until,
            is.text,
            is.blob,
            is.until
        ];
        self.edit.execute(values).map(drop)
    }
}

fn known(row: &rusqlite::Row<'_>) -> rusqlite::Result<Known> {
    let held = Held { text: row.get(0)?, blob: row.get(1)?, until: row.get(2)? };
    Ok((held, row.get::<_, i64>(3)? as u64))
}

/// Notes who made a change, and where the store stands with it.
pub(crate) fn note(
    transaction: &Transaction<'_>,
    change: &Change,
    standing: &Standing,
) -> rusqlite::Result<()> {
    let revision = standing.position.revision;
    let at = change.at.min(i64::MAX as u64) as i64;
    transaction.execute(
        "INSERT INTO changes (revision, at, by, why) VALUES (?1, ?2, ?3, ?4)",
        params![revision as i64, at, change.by, change.why],
    )?;
    standing.write(transaction)
}
