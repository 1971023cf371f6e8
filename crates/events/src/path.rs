//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The way a query takes through its policy, as far as it is noted.

use cache::Security;

/// Steps of the way through the policy that a record holds.
pub const PATH_MAX: usize = 32;

/// The way a query took through the policy, step by step: what matched, what did not, what was
/// done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    steps: [u32; PATH_MAX],
    len: u8,
    security: Security,
    decided: Option<(u16, Mark)>,
    listed: Option<Listed>,
}

/// A line of a list that a query fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The step that looked.
    pub step: u16,
    /// What stands for the list: [`list_number`] of what its source is called.
    pub list: u32,
    /// The line there, from 1.
    pub line: u32,
}

/// Returns what stands for a list in records (FNV-1a): names of lists are few.
pub const fn list_number(label: &str) -> u32 {
    let mut sum = 0x811c_9dc5_u32;
    let mut rest = label.as_bytes();
    while let Some((octet, after)) = rest.split_first() {
        sum = (sum ^ *octet as u32).wrapping_mul(0x0100_0193);
        rest = after;
    }
    sum
}

/// What came of a step, in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It did what it does.
    Done,
    /// Its condition held.
    Held,
    /// Its condition did not hold.
    Failed,
    /// It found a fresh answer in a cache.
    Hit,
    /// It found a stale answer in a cache.
    Stale,
    /// It found nothing in a cache.
    Missed,
    /// It brought an answer.
    Answered,
    /// It ended the query.
    Ended,
    /// It waited.
    Waited,
}

impl Mark {
    pub(super) const ALL: [Self; 9] = [
        Self::Done,
        Self::Held,
        Self::Failed,
        Self::Hit,
        Self::Stale,
        Self::Missed,
        Self::Answered,
        Self::Ended,
        Self::Waited,
    ];
}

impl Path {
    /// No step so far.
    pub(super) const NONE: Self =
        Self { steps: [0; PATH_MAX], len: 0, security: Security::Unchecked, decided: None, listed: None };

    /// Adds a step; what comes after the last that fits is left out.
    #[inline]
    pub fn push(&mut self, step: u16, mark: Mark) {
        if let Some(slot) = self.steps.get_mut(usize::from(self.len)) {
            *slot = u32::from(step) | (mark as u32) << 16;
            self.len += 1;
        }
        match mark {
            Mark::Hit | Mark::Stale | Mark::Answered | Mark::Waited => self.decided = Some((step, mark)),
            // An answer that was there before stays the answer.
            Mark::Ended if self.decided.is_none() => self.decided = Some((step, mark)),
            Mark::Ended | Mark::Done | Mark::Held | Mark::Failed | Mark::Missed => {}
        }
    }

    /// Notes which line of a list the query fitted.
    pub const fn note_listed(&mut self, listed: Listed) {
        self.listed = Some(listed);
    }

    /// Returns the step that decided, also if there was no room for it, and what came of it.
    pub const fn decided(&self) -> Option<(u16, Mark)> {
        self.decided
    }

    /// Returns the line of a list that the query fitted last.
    pub const fn listed(&self) -> Option<Listed> {
        self.listed
    }

    /// Notes what validation made of the answer.
    #[inline]
    pub const fn note_validation(&mut self, security: Security) {
        self.security = security;
    }

    /// Returns what validation made of the answer.
    #[inline]
    pub const fn security(&self) -> Security {
        self.security
    }

    pub(super) fn steps(&self) -> &[u32] {
        self.steps.get(..usize::from(self.len)).unwrap_or(&[])
    }
}
