//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A compiled policy: a list of steps with forward skips and acyclic calls, so that every query
//! ends.

pub mod certain;
pub mod check;
pub mod op;
pub mod position;
mod reliance;
pub mod shortlist;
pub mod snapshot;

use std::sync::Arc;

use sets::{NameSet, Reliance};
use wire::{EdeCode, HashKey};

pub use crate::matchers::Matcher;
use crate::ops::cache::CacheStep;
use crate::ops::edit::Edit;
use crate::ops::outgoing::{Change, OptionChange, Outgoing};
use crate::ops::split::SplitStep;
use crate::ops::watch::{Watch, Watched};
pub(crate) use check::LOOKAHEAD_SETS_MAX;
pub use check::{CALLS_MAX, ProgramError, STEPS_MAX};
pub use op::{Next, Op};
pub use position::Position;
use shortlist::Shortlist;

/// A checked program.
pub struct Program {
    ops: Box<[Op]>,
    shortlists: Box<[Shortlist]>,
    longest: u32,
    changes_answers: bool,
    large_sets: Box<[Arc<NameSet>]>,
    /// Whether some step answers from the zones that are served.
    asks_zones: bool,
    /// Whether some step answers from zones, of whatever set.
    has_zones: bool,
    /// Whether some step looks at the client's own subnet.
    reads_subnets: bool,
    /// The lists with response policy zones that steps look at, if there are any.
    watched: Option<Arc<[Watched]>>,
    reliance: Reliance,
}

impl Program {
    /// Returns the first sets that names asked for are compared with and that are so large that
    /// looking ahead pays.
    pub(crate) const fn large_sets(&self) -> &[Arc<NameSet>] {
        &self.large_sets
    }

    /// Returns whether some step answers from the zones that are served.
    pub(crate) const fn asks_zones(&self) -> bool {
        self.asks_zones
    }

    /// Returns whether some step answers from zones.
    pub(crate) const fn has_zones(&self) -> bool {
        self.has_zones
    }

    /// Returns whether some step looks at the client's own subnet (RFC 7871).
    pub(crate) const fn reads_subnets(&self) -> bool {
        self.reads_subnets
    }

    /// Returns the response policy zones that steps look at, for a resolver to ask them before
    /// servers.
    pub(crate) fn watch(&self, key: &HashKey) -> Option<Watch> {
        self.watched.as_ref().map(|lists| Watch { lists: Arc::clone(lists), key: *key })
    }

    /// Returns whether some step works on an answer that came from memory, so that it must be there
    /// in whole, however little the client takes.
    pub(crate) const fn changes_answers(&self) -> bool {
        self.changes_answers
    }

    /// Has addresses of answers from memory take turns, unless steps put them in order. Returns
    /// whether they do.
    pub fn rotate(&mut self) -> bool {
        let sorts = |op: &Op| {
            matches!(op, Op::Quickest(_) | Op::Edit(Edit::Sort(_) | Edit::SortByClient | Edit::Shuffle))
        };
        let rotates = !self.ops.iter().any(sorts);
        self.changes_answers |= rotates;
        rotates
    }

    /// Returns what steps rely on besides question and answer.
    #[inline(always)]
    pub(crate) const fn reliance(&self) -> &Reliance {
        &self.reliance
    }

    /// Returns what [`Op::Seek`] looks at.
    pub(crate) const fn shortlists(&self) -> &[Shortlist] {
        &self.shortlists
    }

    /// Returns the steps.
    pub const fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns how many steps the longest way through takes.
    pub const fn longest(&self) -> u32 {
        self.longest
    }
    /// Returns the cache step at a place.
    #[inline]
    pub(crate) fn cache(&self, step: u16) -> Option<&CacheStep> {
        match self.ops.get(usize::from(step)) {
            Some(Op::Cache(cache)) => Some(cache),
            _ => None,
        }
    }

    /// Returns the split at a place.
    #[inline]
    pub(crate) fn split(&self, step: u16) -> Option<&SplitStep> {
        match self.ops.get(usize::from(step)) {
            Some(Op::Split(split)) => Some(split),
            _ => None,
        }
    }

    /// Returns the EDNS options that are sent, if a step said so.
    #[inline]
    pub(crate) fn options(&self, outgoing: &Outgoing) -> Option<&[OptionChange]> {
        match self.ops.get(outgoing.options_step()?) {
            Some(Op::Outgoing(Change::Options(changes))) => Some(changes),
            _ => None,
        }
    }

    /// Returns the Extended DNS Error that a step sends.
    pub(crate) fn ede(&self, step: u16) -> Option<(EdeCode, &str)> {
        self.ops.get(usize::from(step))?.ede()
    }
}
