//! The block of rows that is being written: what is known of it without reading it.

use std::collections::HashSet;

use rusqlite::{Transaction, params};

use crate::client::Client;
use crate::outcome::Holds;

/// Who is in a block of rows, as far as it was written since the start.
#[derive(Default)]
pub(super) struct Block {
    pub(super) number: i64,
    clients: HashSet<Client>,
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
        none.begin(-1);
        none
    }

    /// Begins with another one.
    pub(super) fn begin(&mut self, number: i64) {
        *self = Self { number, ..Self::default() };
        self.begin_rows();
    }

    fn begin_rows(&mut self) {
        (self.since_ms, self.until_ms, self.holds) = (i64::MAX, i64::MIN, Holds::default());
    }

    /// Notes a row.
    pub(super) fn add(&mut self, client: Client, name: i64, at_ms: i64, holds: Holds) {
        if self.clients.insert(client) {
            self.new_clients.push(client);
        }
        if self.names.insert(name) {
            self.new_names.push(name);
        }
        self.since_ms = self.since_ms.min(at_ms);
        self.until_ms = self.until_ms.max(at_ms);
        self.holds.add(holds);
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
