//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What is known about the answer of a branch.

use super::errors::Errors;
use super::{Ending, Security, SubnetScope};
use events::EventSet;

/// What a branch's answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// It can win.
    Usable,
    /// It wins only when no other branch has a better one; the larger number is the better one.
    Unusable(u8),
    /// The branch ended without an answer.
    Nothing,
    /// The branch decided to say nothing at all.
    Dropped,
}

/// What is known about a branch that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchReport {
    /// What its answer is worth.
    pub worth: Worth,
    pub(crate) errors: Errors,
    pub(crate) security: Security,
    pub(crate) end: Ending,
    pub(crate) scope: SubnetScope,
    /// Something the rule wants to know when it joins: for DNS64 the seconds that "no IPv6" is
    /// true.
    pub(crate) note: u32,
    /// What it has to tell, if it wins.
    pub(crate) event_set: EventSet,
}

impl BranchReport {
    /// Returns the report of a branch that brought nothing.
    pub const fn empty(worth: Worth) -> Self {
        Self {
            worth,
            errors: Errors::None,
            security: Security::Unchecked,
            end: Ending::Complete,
            scope: SubnetScope::OWN,
            note: 0,
            event_set: EventSet::NONE,
        }
    }
}
