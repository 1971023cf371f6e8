//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A rate limit per client prefix in a fixed table that all workers share.
//!
//! Each cell is one atomic word: a tag of the prefix and the time until which the prefix has
//! used up its allowance (the generic cell rate algorithm). A flood of distinct prefixes can
//! only make the table forget, which lets queries through; it cannot make it grow.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bans::{BanRule, RateBans};
use super::offenders::Offenders;
use super::prefix_set::PrefixSet;

/// Cells two prefixes may share before one of them is forgotten.
const WAYS: usize = 4;
/// Bits of a cell that hold the time, in 1/16 ms: about 2,200 years.
const TIME_BITS: u32 = 40;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// Time units in a second.
const UNITS_PER_SECOND: u64 = 16_000;

/// How long a client that asked too much stays limited at most once it asks no more, where queries
/// over the limit count.
const BACKOFF_MAX: u64 = 2 * UNITS_PER_SECOND;
/// Tells the allowance of proven addresses from the other one: bits of the row and of the tag.
const PROVEN: u64 = 0x5a5a_5a00_0000_0000 | 0x0001_5a5a;

/// How many queries a prefix may send.
#[derive(Clone, Debug, Default)]
pub struct RateRule {
    /// Queries a second in the long run.
    pub per_second: u32,
    /// Queries that may come at once.
    pub burst: u32,
    /// Queries a second, and at once, of a client whose cookie proves its address; zero: any
    /// number. Its allowance is its own: who forges the address has another one.
    pub proven_per_second: u32,
    /// Whether queries over the limit count, too: a client stays limited until it asks less.
    pub backoff: bool,
    /// Every how many limited queries one gets a truncated reply, so that an honest client can turn
    /// to TCP; 0 never, 1 always.
    pub slip: u32,
    /// Every how many limited queries one is answered all the same; 0 never. Not of clients whose
    /// cookie proves their address.
    pub pass: u32,
    /// Leading bits of an IPv4 address that share an allowance.
    pub ipv4_prefix: u8,
    /// Leading bits of an IPv6 address that share an allowance.
    pub ipv6_prefix: u8,
    /// Clients without a limit.
    pub exempt: PrefixSet,
    /// Whether those who keep on are banned for a time, and those who are.
    pub ban: Option<(BanRule, Arc<RateBans>)>,
}

impl RateRule {
    /// Returns whether the client's prefix is banned for now.
    #[inline(always)]
    pub fn bans(&self, address: IpAddr, now_ms: u64) -> bool {
        self.ban.as_ref().is_some_and(|(_, bans)| bans.holds(self, address, now_ms))
    }

    /// Hears that a query was over the limit.
    pub fn offended(&self, address: IpAddr, now_ms: u64) {
        if let Some((rule, bans)) = &self.ban {
            bans.count(self, *rule, address, now_ms);
        }
    }
}

/// The shared table.
#[derive(Debug)]
pub struct RateTable {
    cells: Box<[[AtomicU64; WAYS]]>,
    seed: u64,
    /// Who was over the limit, where that is noted.
    offenders: Option<Offenders>,
}

impl RateTable {
    /// Returns a table of about `cells` cells of eight octets; `seed` is random, so that prefixes
    /// cannot be made to collide.
    // Once per configuration.
    pub fn new(cells: usize, seed: u64) -> Self {
        let rows = (cells / WAYS).next_power_of_two();
        let cells = (0..rows).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
        Self { cells, seed, offenders: None }
    }

    /// Returns it with room for who was over the limit.
    #[must_use]
    pub fn with_offenders(self) -> Self {
        Self { offenders: Some(Offenders::default()), ..self }
    }

    /// Returns who was over the limit, where that is noted.
    pub const fn offenders(&self) -> Option<&Offenders> {
        self.offenders.as_ref()
    }

    /// Notes that a client was over the limit.
    #[cold]
    pub fn note(&self, rule: &RateRule, address: IpAddr, now_ms: u64) {
        if let Some(offenders) = &self.offenders {
            offenders.note(address, self.hash(rule, address) >> TIME_BITS, now_ms);
        }
    }

    /// Takes one query from the allowance of the client's prefix, or from the one that those have
    /// whose addresses are proven; returns whether there was one left.
    pub fn admit(&self, rule: &RateRule, address: IpAddr, is_proven: bool, now_ms: u64) -> bool {
        let (per_second, burst) = match is_proven {
            true => (rule.proven_per_second, rule.proven_per_second),
            false => (rule.per_second, rule.burst),
        };
        if per_second == 0 {
            return true;
        }
        let now = (now_ms * (UNITS_PER_SECOND / 1000)) & TIME_MASK;
        let cost = UNITS_PER_SECOND / u64::from(per_second).clamp(1, UNITS_PER_SECOND);
        let allowance = cost * u64::from(burst.max(1));
        let hash = self.hash(rule, address) ^ if is_proven { PROVEN } else { 0 };
        let tag = hash >> TIME_BITS;
        let row_at = (hash as usize) & (self.cells.len() - 1);
        let Some(row) = self.cells.get(row_at) else { return true };
        // The cell of this prefix, or else the one whose prefix has been quiet for longest.
        let mut chosen: Option<(&AtomicU64, u64)> = None;
        for cell in row {
            let word = cell.load(Ordering::Relaxed);
            if word >> TIME_BITS == tag {
                chosen = Some((cell, word));
                break;
            }
            if chosen.is_none_or(|(_, best)| word & TIME_MASK < best & TIME_MASK) {
                chosen = Some((cell, word));
            }
        }
        let Some((cell, word)) = chosen else { return true };
        let used_until = if word >> TIME_BITS == tag { (word & TIME_MASK).max(now) } else { now };
        // A clock in the past of the cell by more than the allowance: the cell is left from another
        // time.
        let is_over = used_until + cost > now + allowance;
        if is_over && (!rule.backoff || used_until > now + allowance + BACKOFF_MAX) {
            return false;
        }
        // When another worker was faster, its query was counted and this one goes free: cheaper
        // than a retry.
        let _ = cell.compare_exchange(
            word,
            (tag << TIME_BITS) | ((used_until + cost) & TIME_MASK),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        !is_over
    }

    fn hash(&self, rule: &RateRule, address: IpAddr) -> u64 {
        let (bits, family) = match address {
            IpAddr::V4(v4) => {
                let kept = u32::from(rule.ipv4_prefix.min(32));
                (u64::from(v4.to_bits()).checked_shr(32 - kept).unwrap_or(0), 4)
            }
            IpAddr::V6(v6) => {
                // Finer than /64 makes no sense: a client has at least that.
                let kept = u32::from(rule.ipv6_prefix.min(64));
                (((v6.to_bits() >> 64) as u64).checked_shr(64 - kept).unwrap_or(0), 6)
            }
        };
        let product = u128::from(bits ^ self.seed)
            * u128::from(0x9e37_79b9_7f4a_7c15_u64 ^ family ^ self.seed.rotate_left(31) | 1);
        // Never a tag of zero: an empty cell has that.
        ((product as u64) ^ ((product >> 64) as u64)) | (1 << TIME_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(per_second: u32, burst: u32) -> RateRule {
        RateRule { per_second, burst, slip: 2, ipv4_prefix: 24, ipv6_prefix: 56, ..RateRule::default() }
    }

    fn admitted(table: &RateTable, rule: &RateRule, address: &str, at_ms: u64, queries: usize) -> usize {
        let address = address.parse().expect("an address");
        (0..queries).filter(|_| table.admit(rule, address, false, at_ms)).count()
    }

    #[test]
    fn a_prefix_gets_its_burst_and_then_its_rate() {
        let table = RateTable::new(1024, 0x1234_5678_9abc_def0);
        let rule = rule(100, 20);
        assert_eq!(admitted(&table, &rule, "192.0.2.1", 1_000, 50), 20);
        assert_eq!(admitted(&table, &rule, "192.0.2.200", 1_000, 50), 0, "the same /24");
        assert_eq!(admitted(&table, &rule, "198.51.100.1", 1_000, 50), 20, "another /24");
        assert_eq!(admitted(&table, &rule, "192.0.2.1", 1_100, 50), 10, "a tenth of a second later");
        assert_eq!(
            admitted(&table, &rule, "192.0.2.1", 60_000, 50),
            20,
            "rest does not pile up beyond the burst"
        );
        assert_eq!(admitted(&table, &rule, "2001:db8::1", 1_000, 50), 20);
        assert_eq!(admitted(&table, &rule, "2001:db8:0:ff::1", 1_000, 50), 0, "the same /56");
    }

    #[test]
    fn ip_ratelimit_cookie_is_a_limit_of_its_own() {
        let table = RateTable::new(1024, 7);
        let rule = RateRule { proven_per_second: 30, ..rule(10, 5) };
        let [client, other] = ["192.0.2.1", "198.51.100.1"].map(|text| text.parse().expect("an address"));
        let proven =
            |address, at_ms: u64| (0..100).filter(|_| table.admit(&rule, address, true, at_ms)).count();
        assert_eq!(admitted(&table, &rule, "192.0.2.1", 1000, 50), 5, "whoever forges its address");
        assert_eq!(proven(client, 1000), 30);
        assert_eq!(proven(other, 1000), 30, "another client");
        assert_eq!(proven(client, 2000), 30, "a second later");
        let none = RateRule { proven_per_second: 0, ..rule.clone() };
        assert!((0..100).all(|_| table.admit(&none, client, true, 2000)));
    }

    #[test]
    fn ip_ratelimit_backoff_holds_until_the_client_asks_less() {
        let table = RateTable::new(1024, 7);
        let rule = RateRule { backoff: true, ..rule(10, 10) };
        let ask = |client: &str, at_ms| admitted(&table, &rule, client, at_ms, 20);
        assert_eq!(ask("192.0.2.1", 1000), 10);
        for second in 2..6 {
            assert_eq!(ask("192.0.2.1", second * 1000), 0, "it asks twice as much as it may");
            assert_eq!(ask("198.51.100.1", 1000), if second == 2 { 10 } else { 0 });
        }
        assert_eq!(admitted(&table, &rule, "192.0.2.1", 9_000, 3), 3, "it was quiet");
        assert_eq!(ask("203.0.113.1", 5000), 10, "another client");
    }

    #[test]
    fn a_flood_of_prefixes_does_not_lock_anybody_out() {
        let table = RateTable::new(64, 99);
        let rule = rule(10, 5);
        for i in 0..100_000_u32 {
            assert!(table.admit(&rule, IpAddr::V4((i << 8).into()), false, 5_000) || i > 64);
        }
        assert_eq!(admitted(&table, &rule, "203.0.113.9", 30_000, 9), 5);
    }
}
