//! Answers a query from memory: policy, cache and local names, in configured order.
//!
//! Never waits, does no I/O and reads no clock: the worker tells it the time.

#![forbid(unsafe_code)]

pub mod client;
pub mod counters;
pub mod desk;
pub mod reply;
pub mod snapshot;
pub mod want;

use std::sync::Arc;

pub use client::{Client, Now, Transport};
pub use counters::Counters;
pub use desk::{Address, Desk, Outlet, ReplyTo, Worker};
pub use reply::Reply;
pub use snapshot::{Snapshot, SnapshotCell};
pub use want::{ClientSubnet, Failure, OutQuery, Outcome, PoolId, Want};

/// What became of one query.
#[must_use]
pub enum Verdict {
    /// `Reply` holds the answer; send it.
    Answered,
    /// Say nothing: denied, or not worth a packet.
    Drop,
    /// Something must be fetched first. Go on with [`Engine::resume`].
    Defer(Box<Suspended>),
}

/// Whether this asker's outcome is the one to remember; the others that shared the fetch only read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The first to be resumed: fills the cache.
    First,
    /// A later one.
    Other,
}

/// A query put aside. Keeps its snapshot: a position means nothing in another program.
pub struct Suspended {
    snapshot: Arc<Snapshot>,
    client: Client,
    want: Want,
}

impl Suspended {
    /// Returns what it waits for.
    pub const fn want(&self) -> &Want {
        &self.want
    }

    /// Returns whose query it is (for an errand: the client whose query caused it).
    pub const fn client(&self) -> &Client {
        &self.client
    }
}

/// One worker's engine: its snapshot, buffers and counters.
pub struct Engine {
    snapshot: Arc<Snapshot>,
    cell: Arc<SnapshotCell>,
    generation: u64,
    counters: Arc<Counters>,
    now: Now,
}

impl Engine {
    /// Returns an engine that runs on what `cell` holds now.
    pub fn new(cell: Arc<SnapshotCell>, counters: Arc<Counters>) -> Self {
        let (snapshot, generation) = cell.load();
        Self { snapshot, cell, generation, counters, now: Now::default() }
    }

    /// Begins a batch: takes the time, and a newer snapshot if there is one.
    pub fn begin(&mut self, now: Now) {
        self.now = now;
        if self.cell.generation() != self.generation {
            let (snapshot, generation) = self.cell.load();
            let old = std::mem::replace(&mut self.snapshot, snapshot);
            self.generation = generation;
            self.cell.reclaim(old);
        }
    }

    /// Returns the generation of the snapshot in use; changes when a newer one was adopted.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Answers one query from memory, or says what is missing.
    ///
    /// The same call serves every transport: they differ in `client` and in how large
    /// `reply` may grow, never in policy.
    pub fn answer(&mut self, query: &[u8], client: &Client, reply: &mut Reply<'_>) -> Verdict {
        let _ = (query, client, reply, &self.counters, self.now);
        Verdict::Drop
    }

    /// Goes on with a deferred query. May defer again.
    pub fn resume(
        &mut self,
        suspended: Box<Suspended>,
        outcome: Outcome<'_>,
        share: Share,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        let _ = (suspended, outcome, share, reply);
        Verdict::Drop
    }

    /// Answers from the stale data that `suspended` has at hand, because its client waited long enough
    /// (RFC 8767 §5). The caller keeps `suspended`, as an errand that goes on without a client.
    pub fn answer_stale(&mut self, suspended: &Suspended, reply: &mut Reply<'_>) -> Verdict {
        let _ = (suspended, reply);
        Verdict::Drop
    }

    /// Returns the next piece of work that no client waits for; the worker hands it to [`Desk::errand`].
    pub fn next_errand(&mut self) -> Option<Box<Suspended>> {
        None
    }
}
