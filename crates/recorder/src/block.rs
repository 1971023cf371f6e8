//! The block of rows that is being written: what is known of it without reading it.

use std::collections::{HashMap, HashSet};

use rusqlite::{Transaction, params};

use crate::client::Client;
use crate::database::BLOCK_BITS;
use crate::outcome::Holds;
use crate::rows::Rows;

/// Who is in a block of rows, as far as it was written since the start.
#[derive(Default)]
pub(super) struct Block {
    pub(super) number: i64,
    clients: HashMap<Client, Rows>,
    /// Whether `clients` has all rows so far.
    has_all: bool,
    names: HashSet<i64>,
    /// Those that the database lacks.
    new_clients: Vec<Client>,
    new_names: Vec<i64>,
    /// Of rows that the database's row of the block does not cover.
    since_ms: i64,
    until_ms: i64,
    holds: Holds,
}

impl Block {
    /// Returns no block.
    pub(super) fn none() -> Self {
        let mut none = Self::default();
        none.begin(-1, 0);
        none
    }

    /// Begins with another one, whose first row is not written yet if `id` is that.
    pub(super) fn begin(&mut self, number: i64, id: i64) {
        // Numbers begin with one.
        let has_all = id == (number << BLOCK_BITS).max(1);
        *self = Self { number, has_all, ..Self::default() };
        self.begin_rows();
    }

    fn begin_rows(&mut self) {
        (self.since_ms, self.until_ms, self.holds) = (i64::MAX, i64::MIN, Holds::default());
    }

    /// Notes a row.
    pub(super) fn add(&mut self, id: i64, client: Client, name: i64, at_ms: i64, holds: Holds) {
        let rows = self.clients.entry(client).or_insert_with(|| {
            self.new_clients.push(client);
            Rows::default()
        });
        if self.has_all {
            rows.add(id, name);
        }
        if self.names.insert(name) {
            self.new_names.push(name);
        }
        self.since_ms = self.since_ms.min(at_ms);
        self.until_ms = self.until_ms.max(at_ms);
        self.holds.add(holds);
    }

    /// Writes which rows are whose: the block is full.
    pub(super) fn finish(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.write(transaction)?;
        if !self.has_all {
            return Ok(());
        }
        let mut update = transaction
            .prepare_cached("UPDATE client_blocks SET rows = ?3 WHERE block = ?1 AND client = ?2")?;
        for (client, rows) in &self.clients {
            let (room, len) = client.octets();
            update.execute(params![self.number, room.get(..len), rows.octets()])?;
        }
        Ok(())
    }

    /// Writes who is new, in the order of the tables.
    pub(super) fn write(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.new_clients.sort_unstable();
        self.new_names.sort_unstable();
        let mut insert = transaction
            .prepare_cached("INSERT OR IGNORE INTO client_blocks (block, client) VALUES (?1, ?2)")?;
        for client in self.new_clients.drain(..) {
            let (room, len) = client.octets();
            insert.execute(params![self.number, room.get(..len)])?;
        }
        let mut insert =
            transaction.prepare_cached("INSERT OR IGNORE INTO name_blocks (block, name) VALUES (?1, ?2)")?;
        for name in self.new_names.drain(..) {
            insert.execute([self.number, name])?;
        }
        if self.since_ms <= self.until_ms {
            let mut update = transaction.prepare_cached(
                "INSERT INTO blocks (block, since_ms, until_ms, holds) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET since_ms = min(since_ms, excluded.since_ms),
                   until_ms = max(until_ms, excluded.until_ms), holds = holds | excluded.holds",
            )?;
            update.execute([self.number, self.since_ms, self.until_ms, self.holds.0])?;
            self.begin_rows();
        }
        Ok(())
    }
}
