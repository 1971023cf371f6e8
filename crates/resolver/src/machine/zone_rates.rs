//! What is said of the servers of single zones: how often they are asked, and in which letter case.

use cache::servers::LetterCase;
use rand::Rng as _;

use super::{FetchKey, Resolver};
use crate::budget::Limit;
use crate::effect::How;
use crate::moment::Moment;

impl Resolver {
    /// Counts a query to the servers of a zone; returns whether the zone's limit lets it through.
    pub(super) fn may_ask_zone(&mut self, key: FetchKey, now: Moment) -> bool {
        if self.settings.zone_rates.is_empty() {
            return true;
        }
        let (hash_key, lot) = (self.hash_key(), self.rng.next_u32());
        let Some(fetch) = self.fetch(key) else { return true };
        let (rules, zone) = (&self.settings.zone_rates, &fetch.delegation.zone);
        let is_admitted = self.memory.tables.rates.admit(rules, zone, (&hash_key, lot), now);
        if !is_admitted {
            self.counts.limited += 1;
            if let Some(fetch) = self.fetch_mut(key) {
                fetch.spent = Some(Limit::ZoneRate);
            }
        }
        is_admitted
    }

    /// Returns whether the name that is asked for has its letter case as it is kept here.
    pub(super) fn has_exact_case(&self, key: FetchKey) -> bool {
        let Some(fetch) = self.fetch(key) else { return false };
        let name = fetch.question.name.as_name();
        self.settings.exact_case.iter().any(|zone| name.is_at_or_below(zone.as_name()))
    }
}

impl How {
    /// Returns it with names in their own letter case, if that is wanted.
    pub(super) const fn in_case(self, is_exact: bool) -> Self {
        if is_exact { Self { case: LetterCase::Changed, ..self } } else { self }
    }
}
