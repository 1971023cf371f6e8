//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Watching a query on its way through the program.

use crate::want::Want;

/// What came of one step.
#[derive(Clone, Copy)]
pub enum StepOutcome<'s> {
    /// It did what it does, and the next one follows.
    Done,
    /// Its condition held, or not; what follows may be skipped.
    Matched(bool),
    /// It looked in a cache: `Some` says whether what it found was fresh.
    Looked(Option<bool>),
    /// It brought an answer.
    Answered,
    /// It ended the query.
    Ended,
    /// It must wait.
    Waits(&'s Want),
}

/// Sees every step that is taken.
pub trait Tracer {
    /// Step number `at` was taken.
    fn step(&mut self, at: u16, outcome: StepOutcome<'_>);
}

/// Watches nothing, and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    #[inline(always)]
    fn step(&mut self, _: u16, _: StepOutcome<'_>) {}
}
