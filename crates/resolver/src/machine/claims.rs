//! Two workers do not ask the same: the second one waits for what the first one brings.
//!
//! It waits for about as long as a reply takes, looks into the tables again, and then asks for
//! itself. Nobody wakes it, and nothing depends on the first one.

use cache::claims::Claim;

use super::fetches::{Fetch, FetchEnd};
use super::{FetchKey, Resolver};
use crate::heap_name::HeapQuestion;
use crate::moment::Moment;

/// Milliseconds for which a second worker waits at most.
const WAIT_MS_MAX: u32 = 50;
/// Milliseconds after which nobody waits for whom has not come back.
const HOLDS_MS: u32 = 2000;

/// What a fetch has to do with those of other workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Claimed {
    /// Nobody looked yet.
    #[default]
    Unknown,
    /// Others wait for this one, by its hash.
    Ours(u64),
    /// It waits for another worker's until its timer ends.
    Waits,
    /// It goes by itself.
    Alone,
}

impl Resolver {
    /// Returns whether another worker asks the same and a fetch waits for that, or has ended
    /// because the tables know what it is for by now.
    pub(super) fn yields(&mut self, key: FetchKey, now: Moment) -> bool {
        let Some(fetch) = self.fetch(key) else { return true };
        match fetch.claimed {
            Claimed::Ours(_) | Claimed::Alone => false,
            Claimed::Waits if fetch.timer.is_some() => true,
            Claimed::Waits => {
                let (question, labels) =
                    (fetch.question.clone(), fetch.delegation.zone.as_name().label_count());
                self.set_claimed(key, Claimed::Alone);
                let is_known = self.knows_more(&question, labels, now);
                if is_known {
                    self.end_fetch(key, &FetchEnd::Known);
                }
                is_known
            }
            // What is for one subnet does not go to the tables, where others would find it.
            Claimed::Unknown if fetch.question.subnet.is_some() => false,
            Claimed::Unknown if self.memory.tables.claims.is_shared() => self.claim(key, now),
            // A worker alone has nobody to wait for.
            Claimed::Unknown => {
                self.set_claimed(key, Claimed::Alone);
                false
            }
        }
    }

    /// Claims a fetch for this worker; returns whether it waits for another one's.
    fn claim(&mut self, key: FetchKey, now: Moment) -> bool {
        let Some(fetch) = self.fetch(key) else { return true };
        let hash = self.claim_hash(fetch);
        let tables = &self.memory.tables;
        let since_ms = match tables.claims.claim(hash, tables.worker, now.ms(), HOLDS_MS) {
            Claim::Ours | Claim::Unnoted => {
                self.set_claimed(key, Claimed::Ours(hash));
                return false;
            }
            Claim::Theirs { since_ms, .. } => since_ms,
        };
        let wait_ms = self.reply_takes_ms(fetch, now).saturating_sub(since_ms);
        if wait_ms == 0 {
            self.set_claimed(key, Claimed::Alone);
            return false;
        }
        self.counts.yielded += 1;
        self.set_claimed(key, Claimed::Waits);
        let at = now.after_ms(wait_ms);
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.timer = Some(at);
            self.timers.insert((at, key));
        }
        true
    }

    fn set_claimed(&mut self, key: FetchKey, claimed: Claimed) {
        if let Some(fetch) = self.fetch_mut(key) {
            fetch.claimed = claimed;
        }
    }

    /// Returns the milliseconds after which a reply should have come: one and a half round trips to
    /// the best of the servers.
    fn reply_takes_ms(&self, fetch: &Fetch, now: Moment) -> u32 {
        let facts_of = &self.memory.tables.servers;
        let round_trips = fetch.servers.iter().filter_map(|server| {
            let facts = facts_of.look(server.address, now.ms())?;
            facts.round_trip.map(|known| known.smoothed_us)
        });
        let best_us = round_trips.min().unwrap_or(u32::MAX);
        (best_us / 2).saturating_mul(3).div_ceil(1000).clamp(1, WAIT_MS_MAX)
    }

    /// Returns whether the tables have the answer to a question, or a zone closer to it than one of
    /// so many labels.
    fn knows_more(&mut self, question: &HeapQuestion, labels: usize, now: Moment) -> bool {
        self.memory.look(question, now.seconds()).is_some()
            || self
                .memory
                .delegation(question.place(), now.seconds())
                .is_some_and(|cut| cut.zone.as_name().label_count() > labels)
    }

    fn claim_hash(&self, fetch: &Fetch) -> u64 {
        let Fetch { question, delegation, .. } = fetch;
        let hash_key = self.memory.tables.rrsets.hash_key();
        let route = delegation.route.map_or(0, |route| route.number() + 1);
        let how = u64::from(question.rtype.0)
            | u64::from(question.unchecked) << 16
            | u64::from(self.memory.partition.0) << 17
            | route << 33;
        hash_key
            .mix(hash_key.hash(question.name.as_name(), how), hash_key.hash_name(delegation.zone.as_name()))
    }
}
