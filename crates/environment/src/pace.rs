//! How often progress is reported.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time before the first report of progress, and then between two reports.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Says something at most once a second.
pub struct Pace(Cell<Instant>);

impl Pace {
    /// Begins now.
    pub fn begin() -> Self {
        Self(Cell::new(Instant::now()))
    }

    /// Returns whether a report is due.
    pub fn is_time(&self) -> bool {
        let is_time = self.0.get().elapsed() >= TELL_EVERY;
        if is_time {
            self.0.set(Instant::now());
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_before_a_second_is_over() {
        assert!(!Pace::begin().is_time());
        let Some(earlier) = Instant::now().checked_sub(TELL_EVERY) else { return };
        let pace = Pace(Cell::new(earlier));
        assert!(pace.is_time() && !pace.is_time());
    }
}
