//! A database file of the recorder: its schema, how it is opened, and what is removed from it.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use tracing::warn;

use crate::days::{self, DayFile, with_end};

/// The version of the schema.
pub const VERSION: i64 = 3;

/// Rows whose `id` differs in these last bits alone are a block: some hundred kilobytes, which are
/// read in milliseconds.
pub(super) const BLOCK_BITS: u32 = 14;

const SCHEMA: &str = "
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    rule TEXT NOT NULL,               -- file:line, its steps; '' if none decided
    list TEXT NOT NULL,               -- the list that has the rule's line, or ''
    line INTEGER NOT NULL,            -- the line there, or 0
    upstream TEXT NOT NULL,           -- the server that answered, or ''
    UNIQUE (rule, list, line, upstream)
) STRICT;
CREATE TABLE queries (
    id INTEGER PRIMARY KEY,           -- rises in the order of recording
    at_ms INTEGER NOT NULL,           -- when the reply was complete, since 1970
    waited_ms INTEGER NOT NULL,       -- how long the query waited for others
    client BLOB NOT NULL,             -- 4 or 16 octets; 8: a pseudonym; none: not recorded
    port INTEGER NOT NULL,
    transport TEXT NOT NULL,          -- udp, tcp
    name INTEGER NOT NULL REFERENCES names (id),
    type INTEGER NOT NULL,
    class INTEGER NOT NULL,
    rcode INTEGER,                    -- NULL: no reply
    answers INTEGER NOT NULL,         -- records in the answer section
    addresses TEXT,                   -- of the reply, separated by spaces
    path INTEGER REFERENCES paths (id),
    waited_us INTEGER NOT NULL,       -- microseconds beside waited_ms
    one_of INTEGER NOT NULL,          -- how many queries it stands for
    outcome INTEGER NOT NULL,         -- what became of it, see the manual
    decision INTEGER REFERENCES decisions (id),
    ede INTEGER                       -- the Extended DNS Error of the reply
) STRICT;
CREATE TABLE blocks (
    block INTEGER PRIMARY KEY,
    since_ms INTEGER NOT NULL,        -- the least at_ms of its rows
    until_ms INTEGER NOT NULL,        -- the greatest
    holds INTEGER NOT NULL            -- a bit for each outcome and each rcode among them
) STRICT;
CREATE TABLE client_blocks (
    block INTEGER,
    client BLOB,
    rows BLOB,                        -- its rows there and their names, once the block is full
    PRIMARY KEY (block, client)
) STRICT, WITHOUT ROWID;
CREATE TABLE name_blocks (block INTEGER, name INTEGER, PRIMARY KEY (block, name)) STRICT, WITHOUT ROWID;
CREATE TABLE removed (last_id INTEGER NOT NULL) STRICT; -- the last number when rows were removed
PRAGMA user_version = 3;
";

/// Read and written by the server alone.
const PRIVATE: u32 = 0o600;
/// Rows that one transaction removes, so that others need not wait long.
const CLEAN_ROWS_MAX: i64 = 20_000;
/// How long a clean-up goes on: meanwhile, nothing is written.
const CLEAN_TIME: Duration = Duration::from_secs(10);

/// Opens the database of a day for writing, and makes it if it is not there; one of another version
/// is put aside.
pub(super) fn open(file: &DayFile) -> rusqlite::Result<Connection> {
    let database = open_as_it_is(&file.path)?;
    let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let is_empty: bool =
        database.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    match (version, is_empty) {
        (VERSION, _) => Ok(database),
        (_, true) => {
            make(&database)?;
            Ok(database)
        }
        (other, false) => {
            drop(database);
            let aside = file.put_aside(&format!("version-{other}"));
            warn!(file = %file.path.display(), aside = %aside.display(), "a database of another version is put aside");
            let database = open_as_it_is(&file.path)?;
            make(&database)?;
            Ok(database)
        }
    }
}

/// Makes the tables of an empty database.
fn make(database: &Connection) -> rusqlite::Result<()> {
    database.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT;"))
}

/// Returns whether a file is no database any more: something cut it off or wrote over it.
pub(super) fn is_broken(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Returns the number of the newest row, whether it was removed since or not; 0 if there was none.
pub(super) fn last_id(database: &Connection) -> rusqlite::Result<i64> {
    let mut query = database.prepare_cached("SELECT coalesce(max(id), 0) FROM queries")?;
    let last: i64 = query.query_row([], |row| row.get(0))?;
    // Files of older versions lack it.
    let has_removed = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'removed')";
    if !database.prepare_cached(has_removed)?.query_row([], |row| row.get(0))? {
        return Ok(last);
    }
    let mut query = database.prepare_cached("SELECT coalesce(max(last_id), 0) FROM removed")?;
    query.query_row([], |row| row.get(0)).map(|removed: i64| last.max(removed))
}

/// Notes the number of the newest row before rows are removed, so that no other gets it: sums and
/// readers know by numbers what they have seen.
pub(super) fn keep_last_id(database: &Connection) -> rusqlite::Result<()> {
    let last = last_id(database)?;
    database.execute_batch(
        "CREATE TABLE IF NOT EXISTS removed (last_id INTEGER NOT NULL) STRICT; DELETE FROM removed;",
    )?;
    database.execute("INSERT INTO removed VALUES (?1)", [last]).map(drop)
}

/// Returns the block of a row.
pub(super) const fn block_of(id: i64) -> i64 {
    id >> BLOCK_BITS
}

/// Makes a database that is not there yet readable to nobody else, and one that is likewise: who
/// asked for what is nobody's business. What SQLite makes beside it gets the same rights.
fn keep_private(file: &Path) {
    // What cannot be done is reported when the database is opened, or it is somebody else's file.
    let _ = OpenOptions::new().create(true).append(true).mode(PRIVATE).open(file);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::set_permissions(with_end(file, end), Permissions::from_mode(PRIVATE));
    }
}

/// Opens a database for writing, for the server alone.
pub(super) fn open_as_it_is(file: &Path) -> rusqlite::Result<Connection> {
    if let Some(folder) = file.parent() {
        // What cannot be made is reported by the database.
        let _ = std::fs::create_dir_all(folder);
    }
    keep_private(file);
    let database = Connection::open(file)?;
    // Readers do not wait for the writer, and a lost second after a power cut is no harm. Rows name
    // nothing but what was written before them, so that looking it up again for each of them (this
    // SQLite's default) is for nothing.
    database.execute_batch(
        // The first must come before the file has a page.
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         PRAGMA wal_autocheckpoint = 4000; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192;
         PRAGMA foreign_keys = OFF;",
    )?;
    database.busy_timeout(Duration::from_secs(2))?;
    Ok(database)
}

/// Returns how many rows a file has, rows that were removed between others counted with them.
pub(super) fn rows_of(file: &DayFile) -> u64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let count = Connection::open_with_flags(&file.path, flags).and_then(|database| {
        let sql = "SELECT coalesce((SELECT max(id) FROM queries) - (SELECT min(id) FROM queries) + 1, 0)";
        database.query_row(sql, [], |row| row.get::<_, i64>(0))
    });
    count.map_or(0, i64::unsigned_abs)
}

/// Removes rows from before `oldest_ms`, in small transactions, and a part of them if it takes too
/// long; returns how many.
pub(super) fn clean_by_age(database: &mut Connection, oldest_ms: i64) -> rusqlite::Result<u64> {
    let begin = Instant::now();
    let mut removed = 0;
    loop {
        let count = clean_some(database, oldest_ms)?;
        removed += count;
        if count < CLEAN_ROWS_MAX as u64 || begin.elapsed() >= CLEAN_TIME {
            break;
        }
    }
    if removed > 0 {
        let transaction = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        forget_blocks(&transaction)?;
        transaction.commit()?;
    }
    Ok(removed)
}

/// Removes the first rows from before `oldest_ms`; returns how many.
fn clean_some(database: &mut Connection, oldest_ms: i64) -> rusqlite::Result<u64> {
    let transaction = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    keep_last_id(&transaction)?;
    let removed = transaction.execute(
        "DELETE FROM queries WHERE id IN (
           SELECT queries.id FROM blocks CROSS JOIN queries
             ON queries.id >= block << ?3 AND queries.id < (block + 1) << ?3
           WHERE since_ms < ?1 AND at_ms < ?1 LIMIT ?2)",
        params![oldest_ms, CLEAN_ROWS_MAX, BLOCK_BITS],
    )?;
    // Nothing was written if nothing was removed.
    match removed {
        0 => transaction.rollback()?,
        _ => transaction.commit()?,
    }
    Ok(removed as u64)
}

/// Removes the oldest rows of a database that is too large alone; returns how many.
pub(super) fn clean_by_size(database: &mut Connection, octets_max: u64) -> rusqlite::Result<u64> {
    let transaction = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let octets: i64 = transaction.query_row(
        "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
        [],
        |row| row.get(0),
    )?;
    let octets_max = i64::try_from(octets_max).unwrap_or(i64::MAX);
    if octets <= octets_max {
        return Ok(0);
    }
    // As large a part of the rows as the file is too large, and a little more.
    let rows: i64 = transaction.query_row("SELECT count(*) FROM queries", [], |row| row.get(0))?;
    let part = (octets - octets_max) as f64 / octets as f64 + 0.05;
    let count = ((rows as f64 * part) as i64).max(1);
    keep_last_id(&transaction)?;
    let removed = transaction.execute(
        "DELETE FROM queries WHERE id IN (SELECT id FROM queries ORDER BY id LIMIT ?1)",
        params![count],
    )?;
    forget_blocks(&transaction)?;
    transaction.commit()?;
    database.execute_batch("PRAGMA incremental_vacuum;")?;
    Ok(removed as u64)
}

/// Removes what only rows had that are gone, the oldest of the file.
fn forget_blocks(database: &Connection) -> rusqlite::Result<()> {
    const END: i64 = i64::MAX;
    database.execute_batch(&format!(
        "CREATE TEMP TABLE first_block AS SELECT coalesce((SELECT min(id) FROM queries) >> {BLOCK_BITS}, {END}) AS number;
         DELETE FROM blocks WHERE block < (SELECT number FROM first_block);
         DELETE FROM client_blocks WHERE block < (SELECT number FROM first_block);
         DELETE FROM name_blocks WHERE block < (SELECT number FROM first_block);
         DROP TABLE first_block;
         DELETE FROM names WHERE id NOT IN (SELECT name FROM name_blocks);
         DELETE FROM paths WHERE id NOT IN (SELECT path FROM queries WHERE path IS NOT NULL);
         DELETE FROM decisions WHERE id NOT IN (SELECT decision FROM queries WHERE decision IS NOT NULL);",
    ))
}

/// Puts a database aside that is none any more, so that a new one is begun.
pub(super) fn put_aside_broken(file: &DayFile, error: &rusqlite::Error) {
    let aside = days::put_aside(&file.path, "broken");
    warn!(file = %file.path.display(), aside = %aside.display(), %error, "a damaged database is put aside");
}
