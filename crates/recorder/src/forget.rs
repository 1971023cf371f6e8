//! Removing what one client asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::types::Value;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::client::{Client, Clients};
use crate::database::{self, BLOCK_BITS, VERSION};
use crate::days::{DayFile, Files};

/// Removes the records of clients from all files, a block at a time so that the writer goes on;
/// returns how many. `has_forgotten` tells the writer that numbers of names are not as before.
pub(super) fn clients(files: &Files, clients: Clients, has_forgotten: &AtomicBool) -> Result<u64, String> {
    let mut removed = 0;
    for file in files.all() {
        let said = |error: rusqlite::Error| format!("{}: {error}", file.path.display());
        removed += of_file(&file, clients, has_forgotten).map_err(said)?;
    }
    Ok(removed)
}

fn of_file(file: &DayFile, clients: Clients, has_forgotten: &AtomicBool) -> rusqlite::Result<u64> {
    let mut database = database::open_as_it_is(&file.path)?;
    let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if !(1..=VERSION).contains(&version) {
        return Ok(0);
    }
    // What was removed is overwritten, not only unlinked.
    database.execute_batch("PRAGMA secure_delete = ON")?;
    let (first, last) = clients.range();
    let blob = |client: Client| {
        let (octets, len) = client.octets();
        Value::Blob(octets.get(..len).unwrap_or_default().to_vec())
    };
    let (first, last, len) = (blob(first), blob(last), first.octets().1 as i64);
    let mut removed = 0;
    for block in blocks(&database, (&first, &last), version)? {
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if version >= 3 {
            // Those before are not written any more.
            database::keep_last_id(&transaction)?;
        }
        let count = transaction.execute(
            "DELETE FROM queries WHERE id >= ?1 AND id < ?2 AND client BETWEEN ?3 AND ?4 AND length(client) = ?5",
            params![block << BLOCK_BITS, (block + 1) << BLOCK_BITS, first, last, len],
        )?;
        if count > 0 && version >= 2 {
            transaction.execute(
                "DELETE FROM client_blocks WHERE block = ?1 AND client BETWEEN ?2 AND ?3 AND length(client) = ?4",
                params![block, first, last, len],
            )?;
            transaction.execute(
                "DELETE FROM name_blocks WHERE block = ?1 AND name NOT IN
                   (SELECT name FROM queries WHERE id >= ?2 AND id < ?3)",
                params![block, block << BLOCK_BITS, (block + 1) << BLOCK_BITS],
            )?;
            // The writer thinks that they are there.
            has_forgotten.store(true, Ordering::Release);
        }
        transaction.commit()?;
        removed += count as u64;
    }
    if removed > 0 {
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Names tell of a client, too, that nobody else asked for.
        let names = if version >= 2 { "SELECT name FROM name_blocks" } else { "SELECT name FROM queries" };
        transaction.execute(&format!("DELETE FROM names WHERE id NOT IN ({names})"), [])?;
        has_forgotten.store(true, Ordering::Release);
        transaction.commit()?;
        database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    }
    Ok(removed)
}

/// Returns the blocks that have one of the clients, as far as that is known.
fn blocks(
    database: &Connection,
    (first, last): (&Value, &Value),
    version: i64,
) -> rusqlite::Result<Vec<i64>> {
    if version >= 2 {
        let sql = "SELECT DISTINCT block FROM client_blocks WHERE client BETWEEN ?1 AND ?2";
        let mut query = database.prepare(sql)?;
        let rows = query.query_map(params![first, last], |row| row.get(0))?;
        return rows.collect();
    }
    let sql = "SELECT coalesce(min(id), 0), coalesce(max(id), -1) FROM queries";
    let (first, last): (i64, i64) = database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((first >> BLOCK_BITS..=last >> BLOCK_BITS).collect())
}
