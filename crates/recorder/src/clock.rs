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
    pub fn unix_ms(self, monotonic_ms: u64) -> i64 {
        let now = self.workers.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ago = self.workers.since_start().saturating_sub(Duration::from_millis(monotonic_ms));
        i64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(i64::MAX)
    }
}

/// What to add to times of the workers' clocks, in microseconds, to have those since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Offsets {
    /// To times since the server was started.
    pub since_start: u64,
    /// To times since the machine was.
    pub since_boot: u64,
}

impl Clock {
    /// Returns what to add to times of about now.
    pub fn offsets(self) -> Offsets {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = us(self.workers.wall().duration_since(UNIX_EPOCH).unwrap_or_default());
        Offsets {
            since_start: now.saturating_sub(us(self.workers.since_start())),
            since_boot: now.saturating_sub(us(self.workers.since_boot())),
        }
    }
}

/// Returns the time on the wall, in milliseconds since 1970.
pub fn unix_ms_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
