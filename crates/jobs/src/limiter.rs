//! So much and no more: lets things happen so often in the long run, and some at once.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A bucket of tokens.
pub(crate) struct Limiter {
    per_second: f64,
    burst: f64,
    state: Mutex<State>,
}

struct State {
    tokens: f64,
    filled: Option<Instant>,
    refused: u64,
}

impl Limiter {
    /// Allows `burst` at once and `per_second` in the long run.
    pub(crate) const fn new(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst, state: Mutex::new(State { tokens: burst, filled: None, refused: 0 }) }
    }

    /// Returns whether one more may happen now.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(filled) = state.filled {
            let passed = now.saturating_duration_since(filled).as_secs_f64();
            state.tokens = (state.tokens + passed * self.per_second).min(self.burst);
        }
        state.filled = Some(now);
        if state.tokens >= 1.0 {
            state.tokens -= 1.0;
            return true;
        }
        state.refused += 1;
        false
    }

    /// Returns how many were refused since the last call.
    pub(crate) fn refused(&self) -> u64 {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_passes_and_then_only_the_rate() {
        let limiter = Limiter::new(2.0, 3.0);
        let start = Instant::now();
        let passed =
            |after_ms| (0..10).filter(|_| limiter.allows(start + Duration::from_millis(after_ms))).count();
        assert_eq!(passed(0), 3);
        assert_eq!(passed(500), 1);
        assert_eq!(passed(60_000), 3);
        assert_eq!(limiter.refused(), 7 + 9 + 7);
        assert_eq!(limiter.refused(), 0);
    }
}
