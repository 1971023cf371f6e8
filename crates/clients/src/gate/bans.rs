//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Prefixes that are banned for a time, because they kept on being over the rate limit.
//!
//! Two fixed tables that all workers share: what each prefix has sent too much, one atomic word
//! each, and who is banned, two words each. A flood of distinct prefixes can only make the first
//! forget and fill the second up; then prefixes are limited as before, and not banned.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use super::rate::RateRule;
use wire::Prefix;

/// Prefixes that may be banned at a time.
pub const BANS_MAX: usize = 1024;
/// Places that a prefix may have.
const WAYS: usize = 4;
/// Prefixes whose offences are counted at a time.
const COUNTED: usize = 8192;

/// Offences are counted in stretches of so many milliseconds.
pub const STRETCH_MS: u64 = 10_000;

/// Bits of a word of offences that hold how many there were.
const COUNT_BITS: u32 = 24;
/// Bits that hold the stretch they were in.
const STRETCH_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const STRETCH_MASK: u64 = (1 << STRETCH_BITS) - 1;

/// Bits of a ban that hold the family and the length of its prefix; the rest is when it ends.
const SHAPE_BITS: u32 = 8;
const SHAPE_MASK: u64 = (1 << SHAPE_BITS) - 1;
/// The family's bit; the others hold a length of at most 64.
const IS_IPV6: u64 = 0x80;
/// A place that somebody is about to fill. Ended long ago, as all that ends at 0.
const CLAIMED: u64 = IS_IPV6 | 0x7f;

/// When a prefix is banned, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BanRule {
    /// Queries over the limit, within ten seconds.
    pub after: u32,
    /// How long.
    pub for_ms: u64,
}

/// A prefix as a key: the bits that count, from the left, and what they are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    bits: u64,
    shape: u64,
}

impl Key {
    fn of(rule: &RateRule, address: IpAddr) -> Self {
        let (bits, length, family) = match address {
            IpAddr::V4(v4) => (u64::from(v4.to_bits()) << 32, rule.ipv4_prefix.min(32), 0),
            // As the limit itself: finer than /64 makes no sense.
            IpAddr::V6(v6) => ((v6.to_bits() >> 64) as u64, rule.ipv6_prefix.min(64), IS_IPV6),
        };
        let kept = u64::MAX.checked_shl(64 - u32::from(length)).unwrap_or(0);
        Self { bits: bits & kept, shape: family | u64::from(length) }
    }

    fn prefix(self) -> Prefix {
        let length = (self.shape & !IS_IPV6) as u8;
        let address = if self.shape & IS_IPV6 == 0 {
            IpAddr::V4(Ipv4Addr::from_bits((self.bits >> 32) as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(u128::from(self.bits) << 64))
        };
        Prefix::new(address, length)
    }
}

/// A ban: a prefix, and until when.
#[derive(Debug, Default)]
struct Place {
    bits: AtomicU64,
    /// The end in milliseconds, and the shape. Written after `bits`, so that whoever sees it sees
    /// these, too.
    until: AtomicU64,
}

/// What became of bans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BanCounts {
    /// Bans that began.
    pub begun: u64,
    /// Bans that found no place.
    pub unplaced: u64,
}

/// The shared tables.
#[derive(Debug)]
pub struct RateBans {
    offences: Box<[AtomicU64]>,
    places: Box<[[Place; WAYS]]>,
    seed: u64,
    /// When the last of them ends, in milliseconds: usually long ago.
    last_end_ms: AtomicU64,
    begun: AtomicU64,
    unplaced: AtomicU64,
}

impl RateBans {
    /// Returns empty tables; `seed` is random, so that prefixes cannot be made to collide.
    // Once per process.
    pub fn new(seed: u64) -> Self {
        Self {
            offences: (0..COUNTED).map(|_| AtomicU64::new(0)).collect(),
            places: (0..BANS_MAX / WAYS).map(|_| std::array::from_fn(|_| Place::default())).collect(),
            seed,
            last_end_ms: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            unplaced: AtomicU64::new(0),
        }
    }

    /// Returns whether the client's prefix is banned now.
    #[inline(always)]
    pub fn holds(&self, rule: &RateRule, address: IpAddr, now_ms: u64) -> bool {
        self.last_end_ms.load(Ordering::Relaxed) > now_ms && self.is_placed(Key::of(rule, address), now_ms)
    }

    #[inline(never)]
    fn is_placed(&self, key: Key, now_ms: u64) -> bool {
        self.row(key).is_some_and(|row| {
            row.iter().any(|place| {
                let until = place.until.load(Ordering::Acquire);
                until & SHAPE_MASK == key.shape
                    && until >> SHAPE_BITS > now_ms
                    && place.bits.load(Ordering::Relaxed) == key.bits
            })
        })
    }

    /// Counts a query over the limit, and bans its prefix if there were enough.
    #[cold]
    pub fn count(&self, rule: &RateRule, ban: BanRule, address: IpAddr, now_ms: u64) {
        let key = Key::of(rule, address);
        let hash = self.hash(key);
        let Some(cell) = self.offences.get(hash as usize & (COUNTED - 1)) else { return };
        let of_now =
            (hash >> (COUNT_BITS + STRETCH_BITS)) << STRETCH_BITS | (now_ms / STRETCH_MS) & STRETCH_MASK;
        let word = cell.load(Ordering::Relaxed);
        // What is counted of another prefix or time is forgotten.
        let count = if word >> COUNT_BITS == of_now { (word & COUNT_MASK) + 1 } else { 1 };
        let is_enough = count >= u64::from(ban.after);
        let left = if is_enough { 0 } else { count.min(COUNT_MASK) };
        let new = of_now << COUNT_BITS | left;
        // When another worker was faster, its query was counted and this one was not: cheaper than
        // a retry.
        let is_counted = cell.compare_exchange(word, new, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_enough && is_counted {
            self.ban(key, now_ms, now_ms + ban.for_ms);
        }
    }

    fn ban(&self, key: Key, now_ms: u64, until_ms: u64) {
        let Some(row) = self.row(key) else { return };
        for place in row {
            let old = place.until.load(Ordering::Relaxed);
            if old >> SHAPE_BITS > now_ms || old == CLAIMED {
                continue;
            }
            if place.until.compare_exchange(old, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            place.bits.store(key.bits, Ordering::Relaxed);
            place.until.store(until_ms << SHAPE_BITS | key.shape, Ordering::Release);
            self.last_end_ms.fetch_max(until_ms, Ordering::Relaxed);
            self.begun.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.unplaced.fetch_add(1, Ordering::Relaxed);
    }

    fn row(&self, key: Key) -> Option<&[Place; WAYS]> {
        self.places.get((self.hash(key) >> 32) as usize & (BANS_MAX / WAYS - 1))
    }

    fn hash(&self, key: Key) -> u64 {
        let product = u128::from(key.bits ^ self.seed)
            * u128::from(0x9e37_79b9_7f4a_7c15_u64 ^ key.shape ^ self.seed.rotate_left(31) | 1);
        (product as u64) ^ ((product >> 64) as u64)
    }

    /// Returns who is banned now, and when that ends. A prefix may be named twice.
    pub fn list(&self, now_ms: u64) -> impl Iterator<Item = (Prefix, u64)> {
        self.places.iter().flatten().filter_map(move |place| {
            let until = place.until.load(Ordering::Acquire);
            let (until_ms, shape) = (until >> SHAPE_BITS, until & SHAPE_MASK);
            let key = Key { bits: place.bits.load(Ordering::Relaxed), shape };
            (until_ms > now_ms).then(|| (key.prefix(), until_ms))
        })
    }

    /// Ends the bans of prefixes that lie in this one; returns how many there were. Who goes on
    /// being over the limit is banned again.
    #[cold]
    pub fn end(&self, within: Prefix, now_ms: u64) -> usize {
        let places = self.places.iter().flatten().filter(|place| {
            let until = place.until.load(Ordering::Acquire);
            let key = Key { bits: place.bits.load(Ordering::Relaxed), shape: until & SHAPE_MASK };
            let is_meant = until >> SHAPE_BITS > now_ms
                && key.prefix().bits() >= within.bits()
                && within.contains(key.prefix().address());
            // Otherwise it has ended, and the place is another's.
            is_meant && place.until.compare_exchange(until, 0, Ordering::Release, Ordering::Relaxed).is_ok()
        });
        places.count()
    }

    /// Returns what became of bans so far.
    pub fn counts(&self) -> BanCounts {
        BanCounts {
            begun: self.begun.load(Ordering::Relaxed),
            unplaced: self.unplaced.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAN: BanRule = BanRule { after: 3, for_ms: 60_000 };

    fn rule() -> RateRule {
        RateRule { per_second: 1, burst: 1, slip: 0, ipv4_prefix: 24, ipv6_prefix: 56, ..RateRule::default() }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn offend(bans: &RateBans, client: &str, at_ms: u64, times: usize) {
        (0..times).for_each(|_| bans.count(&rule(), BAN, address(client), at_ms));
    }

    fn holds(bans: &RateBans, client: &str, at_ms: u64) -> bool {
        bans.holds(&rule(), address(client), at_ms)
    }

    #[test]
    fn a_prefix_that_keeps_on_is_banned_for_a_time() {
        for (client, neighbour, stranger, prefix) in [
            ("192.0.2.1", "192.0.2.200", "198.51.100.1", "192.0.2.0/24"),
            ("2001:db8:0:100::1", "2001:db8:0:1ff::1", "2001:db8:0:200::1", "2001:db8:0:100::/56"),
        ] {
            let bans = RateBans::new(0x1234_5678_9abc_def0);
            offend(&bans, client, 5_000, 2);
            assert!(!holds(&bans, client, 5_000));
            offend(&bans, neighbour, 5_001, 1);
            assert!(holds(&bans, client, 5_001) && holds(&bans, neighbour, 65_000));
            assert!(!holds(&bans, stranger, 5_001));
            let listed: Vec<_> = bans.list(5_001).map(|(prefix, end)| (prefix.to_string(), end)).collect();
            assert_eq!(listed, [(prefix.to_owned(), 65_001)]);
            assert!(!holds(&bans, client, 65_001));
            assert_eq!(bans.list(65_001).count(), 0);
            // Its place is another's when it has ended.
            offend(&bans, client, 70_000, 3);
            assert!(holds(&bans, client, 70_000));
            assert_eq!(bans.counts(), BanCounts { begun: 2, unplaced: 0 });
        }
    }

    #[test]
    fn a_ban_that_is_ended_counts_no_more_and_its_neighbours_stay() {
        let bans = RateBans::new(5);
        for client in ["192.0.2.1", "198.51.100.1", "2001:db8::1"] {
            offend(&bans, client, 1_000, 3);
        }
        let prefix = |address_: &str, bits| Prefix::new(address(address_), bits);
        assert_eq!(bans.end(prefix("192.0.2.7", 32), 1_000), 0, "it is a part of what is banned");
        assert_eq!(bans.end(prefix("192.0.2.0", 23), 1_000), 1);
        assert!(!holds(&bans, "192.0.2.1", 1_001) && holds(&bans, "198.51.100.1", 1_001));
        assert_eq!(bans.end(prefix("::", 0), 1_000), 1);
        assert_eq!(bans.list(1_000).count(), 1);
        offend(&bans, "192.0.2.1", 1_002, 3);
        assert!(holds(&bans, "192.0.2.1", 1_003), "it goes on");
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let bans = RateBans::new(7);
        for stretch in 0..10 {
            offend(&bans, "192.0.2.1", stretch * STRETCH_MS, 2);
        }
        assert!(!holds(&bans, "192.0.2.1", 10 * STRETCH_MS));
        assert_eq!(bans.counts(), BanCounts::default());
    }

    #[test]
    fn a_flood_of_prefixes_fills_the_table_and_no_more() {
        let bans = RateBans::new(99);
        for i in 0..20_000_u32 {
            let client = IpAddr::V4((i << 8).into());
            (0..3).for_each(|_| bans.count(&rule(), BAN, client, 1_000));
        }
        assert!(bans.list(1_000).count() <= BANS_MAX);
        let counts = bans.counts();
        assert_eq!(counts.begun as usize, bans.list(1_000).count());
        assert_eq!(counts.begun + counts.unplaced, 20_000);
        // When they have ended there is room again.
        offend(&bans, "203.0.113.9", 100_000, 3);
        assert!(holds(&bans, "203.0.113.9", 100_000));
    }
}
