//! The workers' clock and the one on the wall.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Knows what the workers' milliseconds count from.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    workers: engine::Clock,
}

impl Clock {
    /// `workers` is what the workers read the time from.
    pub const fn new(workers: engine::Clock) -> Self {
        Self { workers }
    }

    /// Returns the time on the wall, in milliseconds since 1970, at a time of the workers' clock.
    /// Follows the wall's clock when somebody sets it.
    pub(crate) fn unix_ms(self, monotonic_ms: u64) -> i64 {
        let now = self.workers.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ago = self.workers.since_start().saturating_sub(Duration::from_millis(monotonic_ms));
        i64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(i64::MAX)
    }
}

/// Returns the time on the wall, in milliseconds since 1970.
pub(crate) fn unix_ms_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
