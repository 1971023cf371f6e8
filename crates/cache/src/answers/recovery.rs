//! When remembered failures end before their time: a server of the group that failed has come back.

use super::Cache;
use crate::Now;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counters; groups beyond so many share them, which ends some failures early.
const COUNTERS: usize = 16;

/// Counts, for each group of upstreams, how often one of its servers has come back.
#[derive(Debug, Default)]
pub(crate) struct Recoveries([AtomicU32; COUNTERS]);

/// How often servers of a group had come back at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The number of the group; `None` for any.
    group: Option<u16>,
    count: u32,
}

impl Recovery {
    /// Octets of its form in an entry.
    pub const OCTETS: usize = 8;

    /// Returns the form in which an entry keeps it.
    pub const fn to_octets(self) -> [u8; Self::OCTETS] {
        let (group, has_group) = match self.group {
            Some(group) => (group, 1),
            None => (0, 0),
        };
        (group as u64 | has_group << 16 | (self.count as u64) << 32).to_le_bytes()
    }

    /// Returns what an entry has kept.
    pub const fn from_octets(octets: [u8; Self::OCTETS]) -> Self {
        let word = u64::from_le_bytes(octets);
        let group = if word & 1 << 16 == 0 { None } else { Some(word as u16) };
        Self { group, count: (word >> 32) as u32 }
    }
}

impl Cache {
    /// Returns how often servers of a group have come back; of all groups without one.
    pub fn recovery(&self, group: Option<u16>) -> Recovery {
        let counters = &self.recoveries.0;
        let count = match group {
            Some(group) => counters
                .get(usize::from(group) % COUNTERS)
                .map_or(0, |counter| counter.load(Ordering::Relaxed)),
            None => {
                counters.iter().fold(0, |sum: u32, counter| sum.wrapping_add(counter.load(Ordering::Relaxed)))
            }
        };
        Recovery { group, count }
    }

    /// Notes that a failure is remembered until then.
    pub fn remembers_failure(&self, until: Now) {
        // Whoever looks for answers reads what is beside it.
        if self.failures_end.load(Ordering::Relaxed) < until.0 {
            self.failures_end.fetch_max(until.0, Ordering::Relaxed);
        }
    }

    /// Returns whether any failure may be remembered now, of this run of the server.
    pub fn may_have_failures(&self, now: Now) -> bool {
        now.0 < self.failures_end.load(Ordering::Relaxed)
    }

    /// Returns whether a server of the group has come back since.
    pub fn has_recovered(&self, since: Recovery) -> bool {
        self.recovery(since.group) != since
    }

    /// Notes that a server of a group answers again after having been down. Failures of the group
    /// are not remembered any more.
    pub fn group_recovered(&self, group: u16) {
        if let Some(counter) = self.recoveries.0.get(usize::from(group) % COUNTERS) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Limits;
    use wire::HashKey;

    #[test]
    fn a_recovery_ends_what_its_group_and_any_group_had_before() {
        let cache = Cache::new(Limits { octets_max: 4096 }, HashKey::new([1, 2]));
        let before = [Some(3), Some(4), None, Some(u16::MAX)].map(|group| cache.recovery(group));
        let kept = before.map(|recovery| Recovery::from_octets(recovery.to_octets()));
        assert_eq!(kept, before);
        assert_eq!(before.map(|recovery| cache.has_recovered(recovery)), [false; 4]);
        cache.group_recovered(3);
        assert_eq!(before.map(|recovery| cache.has_recovered(recovery)), [true, false, true, false]);
        let after = cache.recovery(Some(3));
        assert_eq!(Recovery::from_octets(after.to_octets()), after);
        assert!(!cache.has_recovered(after));
    }
}
