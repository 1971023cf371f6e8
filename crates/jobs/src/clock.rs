//! The workers' clock and the one on the wall.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Knows what the workers' milliseconds count from.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// `started` is what the workers' clock counts from.
    pub const fn new(started: Instant) -> Self {
        Self { started }
    }

    /// Returns the time on the wall, in milliseconds since 1970, at a time of the workers' clock. Follows the wall's clock
    /// when somebody sets it.
    pub(crate) fn unix_ms(self, monotonic_ms: u64) -> i64 {
        let at = self.started + Duration::from_millis(monotonic_ms);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ago = Instant::now().saturating_duration_since(at);
        i64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(i64::MAX)
    }
}

/// Returns the time on the wall, in milliseconds since 1970.
pub(crate) fn unix_ms_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
