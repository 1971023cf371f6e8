//! The clocks of a worker, read by whoever has the worker: the engine is told the time.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::client::Now;

/// How the clocks are read. All workers of a server have the same.
#[derive(Clone, Copy)]
pub struct Clock {
    since_boot: fn() -> Duration,
    wall: fn() -> SystemTime,
    started: Duration,
}

impl Clock {
    /// Returns clocks that count from now on. `since_boot` reads one that nobody sets and that goes
    /// on while the machine sleeps (CLOCK_BOOTTIME), `wall` the one that people and protocols go
    /// by.
    pub fn start(since_boot: fn() -> Duration, wall: fn() -> SystemTime) -> Self {
        Self { since_boot, wall, started: since_boot() }
    }

    /// Reads both.
    pub fn now(self) -> Now {
        self.read().0
    }

    /// Reads both; says besides how long ago the machine booted, to the microsecond.
    pub fn read(self) -> (Now, Duration) {
        let since_boot = (self.since_boot)();
        let since_start = since_boot.saturating_sub(self.started);
        let now = Now {
            monotonic_us_rest: (since_start.subsec_micros() % 1000) as u16,
            monotonic_ms: u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX),
            ..Now::new((self.wall)(), since_boot)
        };
        (now, since_boot)
    }

    /// Returns how long ago the machine booted.
    pub fn since_boot(self) -> Duration {
        (self.since_boot)()
    }

    /// Returns how long ago the clocks were started.
    pub fn since_start(self) -> Duration {
        (self.since_boot)().saturating_sub(self.started)
    }

    /// Returns the time as caches count it.
    pub fn cache_now(self) -> cache::Now {
        cache::Now::since_boot((self.since_boot)())
    }

    /// Returns the time on the wall.
    pub fn wall(self) -> SystemTime {
        (self.wall)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("started", &self.started).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn only_the_seconds_of_the_wall_follow_a_step_of_its_clock() {
        static WALL: AtomicU64 = AtomicU64::new(1_800_000_000);
        static BOOT_MS: AtomicU64 = AtomicU64::new(5_000);
        let clock = Clock::start(
            || Duration::from_millis(BOOT_MS.load(Ordering::Relaxed)),
            || SystemTime::UNIX_EPOCH + Duration::from_secs(WALL.load(Ordering::Relaxed)),
        );
        let before = clock.now();
        assert_eq!((before.unix_seconds, before.monotonic_us()), (1_800_000_000, 0));
        for step in [1_800_086_400, 1_799_913_600, 0] {
            WALL.store(step, Ordering::Relaxed);
            let after = BOOT_MS.fetch_add(1_500, Ordering::Relaxed) + 1_500;
            let now = clock.now();
            assert_eq!((u64::from(now.unix_seconds), now.monotonic_ms), (step, after - 5_000));
            assert_eq!(u64::from(now.cache.0 - before.cache.0), after / 1000 - 5);
        }
    }
}
