//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers past their TTL: when a client gets one, and with which error beside it (RFC 8767).

use cache::{Freshness, Key, Now};
use wire::{EdeCode, Rcode};

use super::{Asked, CacheStep, Outlook, answer_of};
use crate::answer::Answer;

impl CacheStep {
    /// Answers with stale data if there is any, whatever is known about failures.
    pub(crate) fn look_up_stale(&self, asked: &Asked<'_>, now: Now, out: &mut [u8]) -> Option<Answer> {
        let hit = self
            .read(&self.key(asked), now, out)
            .or_else(|| self.read_of_others(asked, now, out).map(|found| found.hit))?;
        // Another worker may have refreshed it meanwhile; then it is simply the answer.
        let ede = match hit.freshness {
            Freshness::Fresh { .. } => None,
            Freshness::Stale { .. } => Some(ede(hit.rcode)),
        };
        Some(answer_of(&hit, ede))
    }

    /// Says what a stale answer is good for; if the client does not get it at once, whether it is
    /// held for later. Its refresh is claimed only by a query that may have others asked.
    #[cold]
    pub(super) fn when_stale(&self, key: &Key<'_>, now: Now, may_refresh: bool) -> Result<Outlook, bool> {
        if self.rules.stale_seconds == 0 {
            return Err(false);
        }
        // RFC 8767 §5: after a failure, do not try again for a while.
        if self.failure(key, now).is_some() {
            return Ok(Outlook::Stale);
        }
        if self.rules.stale_client_timeout_ms == 0 {
            let is_claimed = may_refresh && self.cache.try_claim_refresh(key);
            return Ok(if is_claimed { Outlook::Refresh } else { Outlook::Stale });
        }
        Err(true)
    }
}

/// Returns the error beside a stale answer (RFC 8914 §4.4, §4.20).
pub(super) const fn ede(rcode: Rcode) -> (EdeCode, &'static str) {
    match rcode {
        Rcode::NXDOMAIN => (EdeCode::STALE_NXDOMAIN_ANSWER, "upstream did not answer"),
        _ => (EdeCode::STALE_ANSWER, "upstream did not answer"),
    }
}
