//! Time as exchanges, fetches and waiting queries count it: handed in, never read by the state
//! machines.

use std::ops::Add;

/// Microseconds after the instant that all workers count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// A span of microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

impl Moment {
    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the time from `earlier` to this moment; zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Moment {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// Returns a span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1000))
    }

    /// Returns the whole milliseconds.
    pub const fn ms(self) -> u64 {
        self.0 / 1000
    }
}
