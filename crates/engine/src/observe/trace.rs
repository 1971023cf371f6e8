//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Watching a query on its way through the program.

use super::explain::Recorder;
use crate::answer::Security;
use crate::matchers::{Facts, Matcher};
use crate::ops::wait::Waiting;
use crate::program::shortlist::{Seek, Shortlist};
use events::Path;

/// What came of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// It did what it does, and the next one follows.
    Done,
    /// It looked in a cache: `Some` says whether what it found was fresh.
    Looked(Option<bool>),
    /// It brought an answer.
    Answered,
    /// It ended the query.
    Ended,
    /// It must wait.
    Waits(Waiting),
}

/// What decided about a query before the program could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It is not readable as a query.
    Malformed,
    /// The client may not ask.
    Denied,
    /// The client is banned.
    Banned,
    /// The client asks too often.
    Limited,
    /// Its cookie is not one.
    BadCookie,
    /// It has no cookie of ours, which its client must show.
    NoCookie,
    /// It has more octets than may be.
    TooLarge,
    /// The protocol says what the answer is, whatever the policy.
    Protocol,
}

/// Sees every step that is taken.
pub trait Tracer {
    /// Step number `at` was taken.
    fn step(&mut self, at: u16, outcome: StepOutcome);

    /// Step number `at` looked whether `matcher` holds.
    fn test(&mut self, at: u16, matcher: &Matcher, facts: Facts<'_>, holds: bool);

    /// Step number `at` goes on at another and leaves rules out, as a shortlist says.
    fn skipped(&mut self, at: u16, by: (&Shortlist, Seek, u16), facts: Facts<'_>);

    /// Something decided before the first step.
    fn note(&mut self, note: Note);

    /// Returns whether every step is to be seen, also those that are known to do nothing.
    #[inline(always)]
    fn wants_every_step(&self) -> bool {
        false
    }

    /// The query has an answer, of which validation made this.
    #[inline(always)]
    fn answered(&mut self, _: Security) {}

    /// Returns who goes on watching when the query has been put aside.
    fn keep(&self) -> Option<Recorder>;

    /// Returns the way so far, if this keeps it.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// Watches what validation made of the answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Validation(pub(crate) Security);

impl Tracer for Validation {
    fn step(&mut self, _: u16, _: StepOutcome) {}

    fn test(&mut self, _: u16, _: &Matcher, _: Facts<'_>, _: bool) {}

    fn skipped(&mut self, _: u16, _: (&Shortlist, Seek, u16), _: Facts<'_>) {}

    fn note(&mut self, _: Note) {}

    fn answered(&mut self, security: Security) {
        self.0 = security;
    }

    fn keep(&self) -> Option<Recorder> {
        None
    }
}

/// Watches nothing, and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    #[inline(always)]
    fn step(&mut self, _: u16, _: StepOutcome) {}

    #[inline(always)]
    fn test(&mut self, _: u16, _: &Matcher, _: Facts<'_>, _: bool) {}

    #[inline(always)]
    fn skipped(&mut self, _: u16, _: (&Shortlist, Seek, u16), _: Facts<'_>) {}

    #[inline(always)]
    fn note(&mut self, _: Note) {}

    #[inline(always)]
    fn keep(&self) -> Option<Recorder> {
        None
    }
}
