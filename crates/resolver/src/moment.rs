//! The time, as the caller reads it.

use std::time::Duration;

use cache::{Now, NowMs};

/// Microseconds since the machine booted (CLOCK_BOOTTIME).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// Returns this moment in the seconds by which the tables count the life of data.
    pub fn seconds(self) -> Now {
        Now::since_boot(Duration::from_micros(self.0))
    }

    /// Returns this moment in the milliseconds by which facts about servers age.
    pub const fn ms(self) -> NowMs {
        NowMs(self.0 / 1000)
    }

    /// Returns the microseconds since an earlier moment; zero if it is not earlier.
    pub const fn since_us(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the moment so many microseconds later.
    #[must_use]
    pub const fn after_us(self, us: u64) -> Self {
        Self(self.0.saturating_add(us))
    }

    /// Returns the moment so many milliseconds later.
    #[must_use]
    pub const fn after_ms(self, ms: u32) -> Self {
        self.after_us(ms as u64 * 1000)
    }
}
