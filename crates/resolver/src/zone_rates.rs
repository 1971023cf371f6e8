//! How many queries are sent to the servers of each zone in a second, of all workers together.
//!
//! A zone that is asked for ever other names (a water torture attack) has its servers asked up to
//! its limit, and its other names fail; what is known already is answered, and other zones have
//! limits of their own.

use std::sync::{Mutex, PoisonError};

use wire::{HashKey, Name};

use crate::heap_name::HeapName;
use crate::moment::Moment;

/// Parts of the table, each behind a lock of its own.
const PARTS: usize = 256;
/// Zones of one part. When there are more, the one that was asked least is forgotten, which lets
/// queries through.
const PART_ZONES_MAX: usize = 64;

/// Which limits zones have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneRateRules {
    /// Queries a second to the servers of one zone; zero: any number.
    pub per_second: u32,
    /// Zones with a limit of their own.
    pub zones: Vec<(HeapName, u32)>,
    /// Zones below which others have this limit; the closest one counts.
    pub below: Vec<(HeapName, u32)>,
    /// Of how many queries over the limit one is sent all the same; zero: none.
    pub factor: u32,
    /// Whether queries that were not sent count, too: a zone stays limited until it is wanted less.
    pub backoff: bool,
}

impl ZoneRateRules {
    /// Returns whether no zone has a limit.
    pub const fn is_empty(&self) -> bool {
        self.per_second == 0 && self.zones.is_empty() && self.below.is_empty()
    }

    /// Returns the limit of a zone; zero: none.
    pub fn limit_of(&self, zone: Name<'_>) -> u32 {
        if let Some((_, limit)) = self.zones.iter().find(|(known, _)| known.as_name() == zone) {
            return *limit;
        }
        let is_above = |known: &HeapName| known.as_name() != zone && zone.is_at_or_below(known.as_name());
        let above = self.below.iter().filter(|(known, _)| is_above(known));
        let closest = above.max_by_key(|(known, _)| known.as_name().label_count());
        closest.map_or(self.per_second, |(_, limit)| *limit)
    }
}

/// How much one zone is asked.
#[derive(Clone, Debug)]
struct Rate {
    hash: u64,
    zone: HeapName,
    /// The second that is counted.
    second: u64,
    /// Queries in it, and in the one before.
    counted: u32,
    before: u32,
}

impl Rate {
    /// Begins with the second of `now`, if that has come.
    fn move_to(&mut self, second: u64) {
        match second.saturating_sub(self.second) {
            0 => return,
            1 => self.before = self.counted,
            _ => self.before = 0,
        }
        (self.second, self.counted) = (second, 0);
    }

    fn most(&self, backoff: bool) -> u32 {
        if backoff { self.counted.max(self.before) } else { self.counted }
    }
}

/// A zone that is asked, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRate {
    /// The zone.
    pub zone: HeapName,
    /// Queries in the second that has most, of this one and the one before.
    pub per_second: u32,
}

/// How many queries are sent to the servers of each zone.
#[derive(Debug)]
pub struct ZoneRates {
    parts: Box<[Mutex<Vec<Rate>>]>,
}

impl Default for ZoneRates {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

impl ZoneRates {
    /// Counts a query to the servers of a zone; returns whether it may be sent. `lot` is random: it
    /// decides about queries over the limit.
    pub(crate) fn admit(
        &self,
        rules: &ZoneRateRules,
        zone: &HeapName,
        (hash_key, lot): (&HashKey, u32),
        now: Moment,
    ) -> bool {
        let limit = rules.limit_of(zone.as_name());
        if limit == 0 {
            return true;
        }
        let hash = hash_key.hash_name(zone.as_name());
        let second = now.0 / 1_000_000;
        let Some(part) = self.parts.get(hash as usize % PARTS) else { return true };
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        let at = part.iter().position(|rate| rate.hash == hash && rate.zone == *zone);
        let at = at.unwrap_or_else(|| {
            make_room(&mut part, second);
            part.push(Rate { hash, zone: zone.clone(), second, counted: 0, before: 0 });
            part.len() - 1
        });
        let Some(rate) = part.get_mut(at) else { return true };
        rate.move_to(second);
        let is_within = rate.most(rules.backoff) < limit;
        if is_within || rules.backoff {
            rate.counted = rate.counted.saturating_add(1);
        }
        is_within || rules.factor != 0 && lot.is_multiple_of(rules.factor)
    }

    /// Returns the zones that were asked in this second or the one before.
    pub fn list(&self, now: Moment) -> Vec<ZoneRate> {
        let second = now.0 / 1_000_000;
        let mut all = Vec::new();
        for part in &self.parts {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            for rate in part.iter().filter(|rate| second.saturating_sub(rate.second) <= 1) {
                all.push(ZoneRate { zone: rate.zone.clone(), per_second: rate.most(true) });
            }
        }
        all.sort_by_cached_key(|rate| rate.zone.to_string());
        all
    }
}

/// Forgets zones that are not asked any more; of those that are, the one that is asked least.
fn make_room(part: &mut Vec<Rate>, second: u64) {
    if part.len() < PART_ZONES_MAX {
        return;
    }
    part.retain(|rate| second.saturating_sub(rate.second) <= 1);
    let least = part.iter().enumerate().min_by_key(|(_, rate)| rate.most(true)).map(|(at, _)| at);
    if let Some(at) = least.filter(|_| part.len() >= PART_ZONES_MAX) {
        part.swap_remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NameBuf;

    fn name(text: &str) -> HeapName {
        HeapName::new(NameBuf::from_text(text).expect("a name").as_name())
    }

    fn sent(rates: &ZoneRates, rules: &ZoneRateRules, zone: &str, at_ms: u64, count: u32) -> usize {
        let (key, zone) = (HashKey::new([1, 2]), name(zone));
        (1..=count).filter(|&lot| rates.admit(rules, &zone, (&key, lot), Moment(at_ms * 1000))).count()
    }

    #[test]
    fn ratelimit_holds_for_each_zone_and_second() {
        let rates = ZoneRates::default();
        let rules = ZoneRateRules { per_second: 10, ..ZoneRateRules::default() };
        assert_eq!(sent(&rates, &rules, "a.example", 5000, 50), 10);
        assert_eq!(sent(&rates, &rules, "b.example", 5000, 50), 10, "another zone");
        assert_eq!(sent(&rates, &rules, "a.example", 5999, 50), 0);
        assert_eq!(sent(&rates, &rules, "a.example", 6000, 50), 10);
        let zones: Vec<String> = rates.list(Moment(6_000_000)).iter().map(|it| it.zone.to_string()).collect();
        assert_eq!(zones, ["a.example.", "b.example."]);
        assert!(rates.list(Moment(9_000_000)).is_empty());
    }

    #[test]
    fn ratelimit_for_domain_and_ratelimit_below_domain_are_other_limits() {
        let rules = ZoneRateRules {
            per_second: 1,
            zones: vec![(name("org"), 7), (name("off.example"), 0)],
            below: vec![(name("org"), 3), (name("example.org"), 4)],
            ..ZoneRateRules::default()
        };
        let limit = |zone: &str| rules.limit_of(name(zone).as_name());
        assert_eq!(limit("example"), 1);
        assert_eq!(limit("org"), 7);
        assert_eq!(limit("example.org"), 3, "it is below org, not below itself");
        assert_eq!(limit("a.b.example.org"), 4);
        assert_eq!(limit("off.example"), 0);
        assert_eq!(sent(&ZoneRates::default(), &rules, "off.example", 0, 500), 500);
    }

    #[test]
    fn ratelimit_factor_lets_one_of_so_many_through() {
        let rules = ZoneRateRules { per_second: 5, factor: 10, ..ZoneRateRules::default() };
        // Lots from 1 to 105: the first five are within the limit.
        assert_eq!(sent(&ZoneRates::default(), &rules, "a.example", 0, 105), 5 + 10);
    }

    #[test]
    fn ratelimit_backoff_holds_until_the_zone_is_wanted_less() {
        let rules = ZoneRateRules { per_second: 5, backoff: true, ..ZoneRateRules::default() };
        let rates = ZoneRates::default();
        assert_eq!(sent(&rates, &rules, "a.example", 1000, 50), 5);
        assert_eq!(sent(&rates, &rules, "a.example", 2000, 50), 0, "it was wanted more a second ago");
        assert_eq!(sent(&rates, &rules, "a.example", 3000, 3), 0);
        assert_eq!(sent(&rates, &rules, "a.example", 4000, 3), 3);
    }

    #[test]
    fn a_flood_of_zones_forgets_those_that_are_asked_least() {
        let rules = ZoneRateRules { per_second: 10, ..ZoneRateRules::default() };
        let rates = ZoneRates::default();
        assert_eq!(sent(&rates, &rules, "attacked.example", 0, 50), 10);
        for number in 0..40_000 {
            assert_eq!(sent(&rates, &rules, &format!("n{number}.example"), 0, 1), 1);
        }
        assert_eq!(sent(&rates, &rules, "attacked.example", 0, 50), 0, "it is still known");
        assert!(rates.list(Moment(0)).len() <= PARTS * PART_ZONES_MAX);
    }
}
