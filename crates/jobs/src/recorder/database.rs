//! The database file of the recorder: its schema, how it is opened, and what is removed from it.

use std::fs::{OpenOptions, Permissions};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plan::jobs as settings;
use rusqlite::{Connection, params};
use tracing::warn;

/// The version of the schema.
pub const VERSION: i64 = 2;

/// Rows whose `id` differs in these last bits alone are a block: some hundred kilobytes, which are
/// read in milliseconds.
pub(super) const BLOCK_BITS: u32 = 14;

const SCHEMA: &str = "
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE queries (
    id INTEGER PRIMARY KEY,           -- rises in the order of recording
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
    path INTEGER REFERENCES paths (id),
    waited_us INTEGER NOT NULL DEFAULT 0,   -- microseconds beside waited_ms
    one_of INTEGER NOT NULL DEFAULT 1       -- how many queries it stands for
) STRICT;
CREATE INDEX queries_by_time ON queries (at_ms);
";

/// What version 2 added.
const BLOCKS: &str = "
CREATE TABLE client_blocks (block INTEGER, client BLOB, PRIMARY KEY (block, client)) STRICT, WITHOUT ROWID;
CREATE TABLE name_blocks (block INTEGER, name INTEGER, PRIMARY KEY (block, name)) STRICT, WITHOUT ROWID;
PRAGMA user_version = 2;
";

/// Makes version 2 of version 1.
const FROM_1: &str = "
DROP INDEX queries_by_client;
DROP INDEX queries_by_name;
ALTER TABLE queries ADD COLUMN waited_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queries ADD COLUMN one_of INTEGER NOT NULL DEFAULT 1;
";

/// Read and written by the server alone.
const PRIVATE: u32 = 0o600;
/// Rows that one clean-up removes, so that writing goes on.
const CLEAN_ROWS_MAX: u32 = 20_000;

/// Opens the database for writing, and makes it if it is not there; one of another version is put
/// aside.
pub(super) fn open(file: &Path) -> rusqlite::Result<Connection> {
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
            make(&database)?;
            database
        }
        (1, false) => {
            database.execute_batch(&format!(
                "BEGIN IMMEDIATE; {FROM_1} {BLOCKS}
                 INSERT INTO client_blocks SELECT DISTINCT id >> {BLOCK_BITS}, client FROM queries;
                 INSERT INTO name_blocks SELECT DISTINCT id >> {BLOCK_BITS}, name FROM queries;
                 COMMIT;"
            ))?;
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
            make(&database)?;
            database
        }
    };
    Ok(database)
}

/// Makes the tables of an empty database.
fn make(database: &Connection) -> rusqlite::Result<()> {
    database.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} {BLOCKS} COMMIT;"))
}

/// Returns the number of the newest row; 0 if there is none.
pub(super) fn last_id(database: &Connection) -> rusqlite::Result<i64> {
    let mut query = database.prepare_cached("SELECT coalesce(max(id), 0) FROM queries")?;
    query.query_row([], |row| row.get(0))
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
        let path = format!("{}{end}", file.display());
        let _ = std::fs::set_permissions(path, Permissions::from_mode(PRIVATE));
    }
}

fn open_as_it_is(file: &Path) -> rusqlite::Result<Connection> {
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

/// Removes records; returns how many.
pub(super) fn clean(
    database: &mut Connection,
    settings: &settings::Recorder,
    now_ms: i64,
) -> rusqlite::Result<u64> {
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
        const END: i64 = i64::MAX;
        database.execute_batch(&format!(
            "DELETE FROM client_blocks WHERE block < coalesce((SELECT min(id) FROM queries) >> {BLOCK_BITS}, {END});
             DELETE FROM name_blocks WHERE block < coalesce((SELECT min(id) FROM queries) >> {BLOCK_BITS}, {END});
             DELETE FROM names WHERE id NOT IN (SELECT name FROM name_blocks);
             DELETE FROM paths WHERE id NOT IN (SELECT path FROM queries WHERE path IS NOT NULL);
             PRAGMA incremental_vacuum;",
        ))?;
    }
    Ok(removed as u64)
}

/// Writes an address as it stands in the database.
pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Reads one.
pub(super) fn address(octets: &[u8]) -> IpAddr {
    match (<[u8; 4]>::try_from(octets), <[u8; 16]>::try_from(octets)) {
        (Ok(octets), _) => IpAddr::from(octets),
        (_, Ok(octets)) => IpAddr::from(octets),
        _ => IpAddr::from([0; 4]),
    }
}
