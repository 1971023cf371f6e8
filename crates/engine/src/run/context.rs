//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What the interpreter works with besides the query.

use std::cell::Cell;
use std::sync::Arc;

use sets::NameServers;
use wire::{EdeCode, Query};

use crate::answer::finish::Server;
use crate::answer::texts::{Text, TextId, Texts};
use crate::peers::{self, Authority};
use crate::program::snapshot::Snapshot;
use crate::query::counters::Counters;
use crate::query::request::Environment;
use clients::client::Now;
use clients::gate::cookie::Secrets;

/// What a worker's engine has, whatever snapshot a query runs on.
pub(crate) struct WorkerState {
    /// The zones that are served, and what other servers may do with them.
    pub(crate) authority: Option<Arc<Authority>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) now: Now,
    /// The state of the sequence of random numbers.
    pub(crate) random: Cell<u64>,
    /// What resolvers said of failures.
    pub(crate) texts: Texts,
    /// Who knows the name servers that lead to a name.
    pub(crate) servers: Option<Box<dyn NameServers + Send>>,
}

impl WorkerState {
    /// Returns what a query on a snapshot works with.
    #[inline(always)]
    pub(crate) fn context<'w>(&'w self, snapshot: &'w Arc<Snapshot>) -> Context<'w> {
        Context {
            snapshot,
            authority: &self.authority,
            counters: &self.counters,
            texts: &self.texts,
            env: Environment::new(
                self.now,
                &snapshot.key,
                &snapshot.trusted_peers,
                self.servers.as_deref().map(|servers| servers as &dyn NameServers),
                &self.random,
            ),
        }
    }
}

/// What the interpreter works with besides the query.
#[derive(Clone, Copy)]
pub(crate) struct Context<'w> {
    pub(crate) snapshot: &'w Arc<Snapshot>,
    /// The zones that are served.
    pub(crate) authority: &'w Option<Arc<Authority>>,
    pub(crate) counters: &'w Counters,
    pub(crate) texts: &'w Texts,
    pub(crate) env: Environment<'w>,
}

impl Server for Context<'_> {
    #[inline(always)]
    fn counters(&self) -> &Counters {
        self.counters
    }

    #[inline(always)]
    fn unix_seconds(&self) -> u32 {
        self.env.now.unix_seconds
    }

    #[inline(always)]
    fn cookies(&self) -> Option<&Secrets> {
        self.snapshot.gate.cookies.as_ref()
    }

    #[inline(always)]
    fn nsid(&self) -> &[u8] {
        &self.snapshot.chaos.nsid
    }

    #[inline(always)]
    fn udp_octets_max(&self) -> u16 {
        self.snapshot.udp_octets_max
    }

    #[inline(always)]
    fn udp_octets_announced(&self) -> u16 {
        self.snapshot.udp_octets_announced
    }

    fn extended_errors(&self) -> bool {
        self.snapshot.extended_errors
    }

    fn takes_dnssec_ok(&self) -> bool {
        self.snapshot.takes_dnssec_ok
    }

    fn fills_truncated(&self) -> bool {
        self.snapshot.fills_truncated
    }

    fn padding_octets(&self) -> u16 {
        self.snapshot.padding_octets
    }

    #[inline(always)]
    fn recursion_available(&self) -> bool {
        self.snapshot.recursion_available
    }

    fn ede(&self, step: u16) -> Option<(EdeCode, &str)> {
        self.snapshot.program.ede(step)
    }

    fn text(&self, id: TextId) -> Option<Text> {
        self.texts.text(id)
    }

    #[inline(always)]
    fn expire_s(&self, query: &Query<'_>) -> Option<u32> {
        peers::expire_s(self.authority.as_ref()?, query, self.env.now.unix_seconds)
    }
}
