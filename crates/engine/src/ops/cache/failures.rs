//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Failures to resolve, remembered beside the answers (RFC 9520).

use cache::{Entry, Freshness, Key, KeyBits, Now, Recovery, Security};
use wire::{Flags, Ttl};

use super::{Asked, CacheStep};
use crate::answer::Answer;
use crate::answer::errors::Errors;
use crate::answer::failure::Failure;
use crate::ops::wait::PoolId;

/// The first failure in a row is remembered for a second, whole ones counted: so the second one has
/// to begin.
const FAILURE_TTL_FIRST: u32 = 2;

/// Octets of what is remembered of a failure: when it was, and why.
const FAILURE_OCTETS: usize = Recovery::OCTETS + Failure::OCTETS;

impl CacheStep {
    pub(super) fn look_up_failure(&self, key: &Key<'_>, now: Now) -> Option<Answer> {
        if self.rules.failure_ttl == Ttl::ZERO {
            return None;
        }
        let key = key.with_bits(self.cache.hash_key(), key.bits().with(KeyBits::FAILURE));
        let mut kept = [0; FAILURE_OCTETS];
        let hit = self.read(&key, now, &mut kept)?;
        let (since, why) = kept.split_first_chunk::<{ Recovery::OCTETS }>()?;
        if hit.len >= Recovery::OCTETS && self.cache.has_recovered(Recovery::from_octets(*since)) {
            return None;
        }
        let failure = why.first_chunk().filter(|_| hit.len == FAILURE_OCTETS).copied();
        let errors = Errors::Remembered(failure.and_then(Failure::from_octets));
        match hit.freshness {
            Freshness::Fresh { .. } => Some(Answer { errors, ..Answer::empty(hit.rcode, None) }),
            Freshness::Stale { .. } => None,
        }
    }

    /// Remembers that a fetch failed (RFC 9520), beside whatever answer there is; `since` is from
    /// when the fetch began.
    #[cold]
    pub(crate) fn store_failure(&self, asked: &Asked<'_>, now: Now, answer: &Answer, since: Recovery) {
        let answer_key = self.key(asked);
        self.cache.release_refresh(&answer_key);
        // Whoever was asked may answer by now.
        if self.rules.failure_ttl == Ttl::ZERO || self.cache.has_recovered(since) {
            return;
        }
        let bits = answer_key.bits().with(KeyBits::FAILURE);
        let key = answer_key.with_bits(self.cache.hash_key(), bits);
        let ttl_max = self.rules.failure_ttl.seconds();
        let ttl = match self.read(&key, now, &mut []) {
            // Somebody else asked at the same time: one failure.
            Some(before) if !before.is_stale() => before.original_ttl,
            Some(before) if !self.has_answer_since(&answer_key, now, before.age) => {
                before.original_ttl.saturating_mul(2)
            }
            _ => FAILURE_TTL_FIRST,
        };
        let mut kept = [0; FAILURE_OCTETS];
        let why = answer.errors.failure().map_or([0; Failure::OCTETS], Failure::to_octets);
        for (to, from) in kept.iter_mut().zip(since.to_octets().into_iter().chain(why)) {
            *to = from;
        }
        let entry = Entry {
            body: &kept,
            ttl_offsets: &[],
            rcode: answer.rcode,
            flags: Flags::default(),
            security: Security::Unchecked,
            answers: 0,
            authorities: 0,
            additionals: 0,
            ttl: ttl.min(ttl_max),
            // A failure within that time after its end is the next in a row.
            stale: ttl_max,
            ede: None,
        };
        let _ = self.cache.insert(&key, &entry, now);
    }

    /// Returns whether the answer that is kept, if any, came less than `age` seconds ago.
    fn has_answer_since(&self, key: &Key<'_>, now: Now, age: u32) -> bool {
        self.read(key, now, &mut []).is_some_and(|hit| hit.age < age)
    }

    /// Returns how often the servers of a group had come back so far.
    pub(crate) fn recovery(&self, pool: Option<PoolId>) -> Recovery {
        self.cache.recovery(pool.map(|pool| pool.0))
    }
}
