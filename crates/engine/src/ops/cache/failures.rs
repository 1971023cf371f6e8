//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Failures to resolve, remembered beside the answers (RFC 9520).

use cache::{Entry, Freshness, Key, KeyBits, Now, Recovery, Security};
use wire::{EdeCode, Flags, Rcode, Ttl};

use super::{Asked, CacheStep};
use crate::answer::Answer;
use crate::answer::errors::Errors;
use crate::answer::failure::Failure;
use crate::answer::texts::{REASON_OCTETS_MAX, Text, Texts};
use crate::ops::wait::PoolId;

/// The first failure in a row is remembered for a second, whole ones counted: so the second one has
/// to begin.
const FAILURE_TTL_FIRST: u32 = 2;

/// Octets of what is remembered of a failure: when it was, and why; behind that may be a text.
const FAILURE_OCTETS: usize = Recovery::OCTETS + Failure::OCTETS;
/// In place of the kind of a failure: a resolver found nothing. The code of the Extended DNS Error
/// follows, and then its text.
const UNRESOLVED: u8 = 0xff;

/// What is remembered of a failure.
type Kept = [u8; FAILURE_OCTETS + REASON_OCTETS_MAX];

impl CacheStep {
    pub(super) fn look_up_failure(&self, key: &Key<'_>, now: Now, texts: &Texts) -> Option<Answer> {
        let (rcode, kept, len) = self.failure(key, now)?;
        let why = kept.get(Recovery::OCTETS..len).unwrap_or(&[]);
        let errors = match why.split_first_chunk() {
            Some(([UNRESOLVED, high, low], text)) => {
                let text = Text::new(std::str::from_utf8(text).unwrap_or(""));
                Errors::Reason(EdeCode(u16::from_be_bytes([*high, *low])), texts.put(text))
            }
            Some((failure, _)) => Errors::Remembered(Failure::from_octets(*failure)),
            None => Errors::Remembered(None),
        };
        Some(Answer { errors, ..Answer::empty(rcode, None) })
    }

    /// Returns what is remembered of a failure that counts yet: its response code, and so many
    /// octets.
    pub(super) fn failure(&self, key: &Key<'_>, now: Now) -> Option<(Rcode, Kept, usize)> {
        if self.rules.failure_ttl == Ttl::ZERO || !self.cache.may_have_failures(now) {
            return None;
        }
        let key = key.with_bits(self.cache.hash_key(), key.bits().with(KeyBits::FAILURE));
        let mut kept: Kept = [0; _];
        let hit = self.read(&key, now, &mut kept)?;
        let since = kept.first_chunk::<{ Recovery::OCTETS }>()?;
        if hit.len >= Recovery::OCTETS && self.cache.has_recovered(Recovery::from_octets(*since)) {
            return None;
        }
        match hit.freshness {
            Freshness::Fresh { .. } => Some((hit.rcode, kept, hit.len)),
            Freshness::Stale { .. } => None,
        }
    }

    /// Remembers that a fetch failed (RFC 9520), beside whatever answer there is; `since` is from
    /// when the fetch began.
    #[cold]
    pub(crate) fn store_failure(
        &self,
        asked: &Asked<'_>,
        now: Now,
        answer: &Answer,
        since: Recovery,
        texts: &Texts,
    ) {
        let answer_key = self.key(asked);
        self.cache.release_refresh(&answer_key);
        if asked.bits.has(KeyBits::DO) {
            self.cache.release_refresh(&self.key(&asked.without_do()));
        }
        if self.rules.restarts_stale {
            let _ = self.cache.renew_stale(&answer_key, now, self.rules.stale_seconds);
            let shared = self.key(&asked.without_do());
            let _ =
                asked.bits.has(KeyBits::DO) && self.cache.renew_stale(&shared, now, self.rules.stale_seconds);
        }
        // Whoever was asked may answer by now.
        if self.rules.failure_ttl == Ttl::ZERO || self.cache.has_recovered(since) {
            return;
        }
        let bits = answer_key.bits().with(KeyBits::FAILURE);
        let key = answer_key.with_bits(self.cache.hash_key(), bits);
        let ttl_max = self.rules.failure_ttl.seconds();
        let ttl = match self.read(&key, now, &mut []) {
            // A resolver remembers by itself how often, and finds out whether servers are back.
            _ if answer.errors.reason().is_some() => FAILURE_TTL_FIRST,
            // Somebody else asked at the same time: one failure.
            Some(before) if !before.is_stale() => before.original_ttl,
            Some(before) if !self.has_answer_since(&answer_key, now, before.age) => {
                before.original_ttl.saturating_mul(2)
            }
            _ => FAILURE_TTL_FIRST,
        };
        let (why, text) = match answer.errors.reason() {
            Some((EdeCode(code), id)) => {
                let [high, low] = code.to_be_bytes();
                ([UNRESOLVED, high, low], texts.text(id))
            }
            None => (answer.errors.failure().map_or([0; Failure::OCTETS], Failure::to_octets), None),
        };
        let text = text.as_ref().map_or("", Text::as_str);
        let mut kept: Kept = [0; _];
        for (to, from) in kept.iter_mut().zip(since.to_octets().into_iter().chain(why).chain(text.bytes())) {
            *to = from;
        }
        let entry = Entry {
            body: kept.get(..FAILURE_OCTETS + text.len()).unwrap_or(&kept),
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
        self.cache.remembers_failure(Now(now.0.saturating_add(entry.ttl)));
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
