//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which clients were over the rate limit a moment ago, for operators to see.
//!
//! A fixed table: a client that finds its place taken by another one is not listed for that
//! second. A reader may see half of a change, and then lists a client that is none; nothing else
//! looks at it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

/// Clients that are remembered at a time.
const CELLS: usize = 1024;

/// Clients that were over the limit.
#[derive(Debug)]
pub struct Offenders {
    /// The first and the last half of an IPv6 address, or of an IPv4 address in one; then the
    /// second and how many queries were over the limit in it, 32 bits each.
    cells: Box<[[AtomicU64; 3]]>,
}

impl Default for Offenders {
    // Once per configuration.
    fn default() -> Self {
        Self { cells: (0..CELLS).map(|_| Default::default()).collect() }
    }
}

impl Offenders {
    /// Notes a query over the limit; `hash` is of the client.
    pub(crate) fn note(&self, address: IpAddr, hash: u64, now_ms: u64) {
        let Some([first, last, counted]) = self.cells.get(hash as usize % CELLS) else { return };
        let bits = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let (high, low) = ((bits >> 64) as u64, bits as u64);
        let second = (now_ms / 1000) & u64::from(u32::MAX);
        let word = counted.load(Ordering::Relaxed);
        let is_same = first.load(Ordering::Relaxed) == high && last.load(Ordering::Relaxed) == low;
        let (known, count) = (word >> 32, word & u64::from(u32::MAX));
        if !is_same {
            if count > 0 && known == second {
                return;
            }
            first.store(high, Ordering::Relaxed);
            last.store(low, Ordering::Relaxed);
        }
        let count = if is_same && known == second { count.saturating_add(1) } else { 1 };
        counted.store(second << 32 | count.min(u64::from(u32::MAX)), Ordering::Relaxed);
    }

    /// Returns who was over the limit in this second or the one before, and with how many queries.
    pub fn list(&self, now_ms: u64) -> impl Iterator<Item = (IpAddr, u32)> {
        let second = (now_ms / 1000) & u64::from(u32::MAX);
        self.cells.iter().filter_map(move |cell| {
            let [first, last, counted] = cell.each_ref().map(|half| half.load(Ordering::Relaxed));
            let (known, count) = (counted >> 32, counted as u32);
            if count == 0 || second.saturating_sub(known) > 1 {
                return None;
            }
            let address = Ipv6Addr::from_bits(u128::from(first) << 64 | u128::from(last));
            Some((IpAddr::V6(address).to_canonical(), count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_over_the_limit_is_listed_for_two_seconds() {
        let offenders = Offenders::default();
        let [one, two]: [IpAddr; 2] =
            ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().expect("an address"));
        (0..5).for_each(|_| offenders.note(one, 7, 10_000));
        offenders.note(two, 8, 10_500);
        let list = |now_ms| {
            let mut all: Vec<_> = offenders.list(now_ms).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(list(10_900), [(one, 5), (two, 1)]);
        // Whose place is taken is not listed.
        offenders.note(two, 7, 10_999);
        assert_eq!(list(11_999), [(one, 5), (two, 1)]);
        assert!(list(12_000).is_empty());
        offenders.note(two, 7, 12_000);
        assert_eq!(list(12_000), [(two, 1)]);
    }
}
