//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Looking into a cache before the steps that lead to it: only answers count that these, and those
//! after the cache, are known to leave alone. A stamp beside the answer says so.

use std::sync::Arc;

use cache::{Entry, Freshness, Hit, Key, Now, Place, Stamp};
use sets::CLASS_BITS;

use super::{Asked, CacheRules, CacheStep, answer_of};
use crate::answer::Answer;

/// Whether a step looks into its cache before the steps that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// No: any answer counts, and if there is none, what comes is kept.
    No,
    /// For all clients.
    Yes,
    /// For clients that no condition on clients is about.
    OfOrdinaryClients,
}

/// In the lower half of a stamp: some step does not leave the answer alone.
const IS_TOUCHED: u64 = 1 << CLASS_BITS;
/// Under which state of the policy, and for which clients, something is known of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The state of policy and sets, never zero.
    pub(crate) epoch: u32,
    /// The class of the client.
    pub(crate) class: u32,
}

impl Known {
    /// Returns the stamp of an answer that all steps leave alone.
    #[inline(always)]
    pub(crate) const fn untouched(self) -> Stamp {
        Stamp::new((self.epoch as u64) << 32 | self.class as u64)
    }

    /// Returns the stamp of an answer of which that is not so.
    pub(crate) const fn touched(self) -> Stamp {
        Stamp::new(self.untouched().number() | IS_TOUCHED)
    }

    /// Returns whether there is nothing to find out about an answer with this stamp: it is known,
    /// or known for others. Ordinary clients come first, so that clients of two kinds do not write
    /// in turns.
    pub(crate) const fn is_settled(self, stamp: Stamp) -> bool {
        let epoch = (stamp.number() >> 32) as u32;
        let class = (stamp.number() & (IS_TOUCHED - 1)) as u32;
        epoch == self.epoch && (class == self.class || self.class != 0)
    }
}

/// An answer as a look-up that is to be judged finds it.
pub(crate) struct Judged<'a> {
    key: Key<'a>,
    place: Place,
    pub(crate) stamp: Stamp,
    pub(crate) answer: Answer,
}

impl CacheStep {
    /// Returns the step that looks into the same cache early.
    #[must_use]
    pub fn early(&self, early: Early) -> Self {
        let rules = CacheRules { early, ..self.rules };
        Self { cache: Arc::clone(&self.cache), rules, view: self.view, continues: false }
    }

    /// Returns whether both keep the same answers in the same way.
    pub fn is_same_cache(&self, other: &Self) -> bool {
        let &Self { ref cache, rules, view, continues: _ } = other;
        // Queries that set RD are answered alike.
        let CacheRules { early, answers_without_rd, .. } = self.rules;
        let rules = CacheRules { early, answers_without_rd, ..rules };
        Arc::ptr_eq(&self.cache, cache) && self.view == view && self.rules == rules
    }

    /// Copies an answer to `out`, which begins after the question, if it is known to be left alone.
    /// It is fresh, and nobody has to fetch it anew now. Otherwise says whether there is one of
    /// which nothing is known yet.
    #[inline(always)]
    pub(crate) fn look_up_stamped(
        &self,
        asked: &Asked<'_>,
        now: Now,
        out: &mut [u8],
        known: Known,
    ) -> Result<Answer, bool> {
        let (ageing, stamp) = (self.ageing(), known.untouched());
        let is_open = |other: Option<Stamp>| other.is_some_and(|other| !known.is_settled(other));
        let hit = match self.cache.lookup_stamped(&self.key(asked), now, out, ageing, stamp) {
            Ok(hit) => hit,
            Err(other) => match self.key_of_unsigned(asked) {
                Some(key) if other.is_none() => {
                    match self.cache.lookup_stamped(&key, now, out, ageing, stamp) {
                        Ok(hit) if hit.flags.has(Entry::SAME_FOR_DO) => hit,
                        Ok(_) => return Err(false),
                        Err(other) => return Err(is_open(other)),
                    }
                }
                _ => return Err(is_open(other)),
            },
        };
        if self.is_steady(&hit) { Ok(answer_of(&hit, None)) } else { Err(false) }
    }

    /// Returns whether a hit is nothing but an answer: whole, fresh, and not to be fetched anew by
    /// whoever sees it first.
    #[inline(always)]
    fn is_steady(&self, hit: &Hit) -> bool {
        let Freshness::Fresh { left } = hit.freshness else { return false };
        hit.fits() && (!self.is_ending(hit, left) || !hit.popular || hit.refresh_claimed)
    }

    /// Copies the answer that all others would get to `out`, whatever its stamp.
    pub(crate) fn look_up_to_judge<'a>(
        &self,
        asked: &Asked<'a>,
        now: Now,
        out: &mut [u8],
    ) -> Option<Judged<'a>> {
        let own = self.key(asked);
        let (key, found) = match self.cache.lookup_placed(&own, now, out, self.ageing()) {
            Some(found) => (own, found),
            None => {
                let key = self.key_of_unsigned(asked)?;
                let found = self.cache.lookup_placed(&key, now, out, self.ageing())?;
                found.0.flags.has(Entry::SAME_FOR_DO).then_some((key, found))?
            }
        };
        let (hit, stamp, place) = found;
        let is_whole = hit.fits() && !hit.is_stale() && hit.flags.has(Entry::STAMPED);
        is_whole.then(|| Judged { key, place, stamp, answer: answer_of(&hit, None) })
    }

    /// Notes what was found out about an answer.
    pub(crate) fn note(&self, judged: &Judged<'_>, stamp: Stamp) {
        // If another answer took its place meanwhile, or somebody else writes, the next one to ask
        // finds it out.
        let _ = self.cache.stamp(&judged.key, judged.place, stamp);
    }
}
