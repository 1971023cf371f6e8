//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What steps tell the world outside, until somebody takes it away.

/// One worker's events. Bounded: what does not fit is counted and lost.
#[derive(Debug, Default)]
pub struct Ring {}
