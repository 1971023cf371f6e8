//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers past their TTL: when a client gets one, and with which error beside it (RFC 8767).

use cache::{Freshness, Key, KeyBits, Now};
use wire::{EdeCode, Rcode};

use super::{Asked, CacheStep, OfOthers, Outlook, answer_of};
use crate::answer::texts::Texts;
use crate::answer::{Answer, Security, SubnetScope};

impl CacheStep {
    /// Answers with stale data if there is any, whatever is known about failures.
    pub(crate) fn look_up_stale(&self, asked: &Asked<'_>, now: Now, out: &mut [u8]) -> Option<Answer> {
        let own = self
            .read(&self.key(asked), now, out)
            .or_else(|| self.read_of_others(asked, now, out).map(|found| found.hit));
        let (hit, is_unchecked) = match own {
            Some(hit) => (hit, false),
            None => (self.read_validated(asked, now, out)?.hit, true),
        };
        // Another worker may have refreshed it meanwhile; then it is simply the answer.
        let ede = match hit.freshness {
            Freshness::Fresh { .. } => None,
            Freshness::Stale { .. } => Some(ede(hit.rcode)),
        };
        let answer = answer_of(&hit, ede);
        let security = if is_unchecked { Security::Unchecked } else { answer.security };
        Some(Answer { security, ..answer })
    }

    /// Looks for what there is besides answers to such queries: a failure that is remembered, and
    /// for who sets CD an expired answer that others got. If there is none, returns whether there
    /// is a stale one.
    #[cold]
    #[inline(never)]
    pub(super) fn look_up_rest(
        &self,
        asked: &Asked<'_>,
        own_key: &Key<'_>,
        (now, texts): (Now, &Texts),
        out: &mut [u8],
        may_refresh: impl Fn() -> bool,
    ) -> Result<(Answer, Outlook), bool> {
        let failure = self.look_up_failure(own_key, now, texts);
        let validated = self.read_validated(asked, now, out).filter(|found| found.hit.is_stale());
        let Some(OfOthers { key, hit, scope }) = validated else {
            return failure.map(|answer| (answer, Outlook::Failure)).ok_or(false);
        };
        let outlook = match failure {
            Some(_) => Ok(Outlook::Stale),
            None => self.when_stale(&key, now, may_refresh()),
        };
        let answer = answer_of(&hit, Some(ede(hit.rcode)));
        Ok((Answer { scope, security: Security::Unchecked, ..answer }, outlook?))
    }

    /// Looks for what is kept for the same query without CD, for who sets it: what was validated is
    /// good for everybody.
    fn read_validated<'a>(&self, asked: &Asked<'a>, now: Now, out: &mut [u8]) -> Option<OfOthers<'a>> {
        let &Asked { query, folded, name_hash, subnet, bits } = asked;
        if !bits.has(KeyBits::CD) || self.rules.stale_seconds == 0 {
            return None;
        }
        let asked = Asked { query, folded, name_hash, subnet, bits: bits.without(KeyBits::CD) };
        let key = self.key(&asked);
        match self.read(&key, now, out) {
            Some(hit) => Some(OfOthers { key, hit, scope: SubnetScope::OWN }),
            None => self.read_of_others(&asked, now, out),
        }
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

/// Returns the error beside a stale answer (RFC 8914 §4.4, §4.20). It has no text: nobody need have
/// been asked.
pub(super) const fn ede(rcode: Rcode) -> (EdeCode, &'static str) {
    match rcode {
        Rcode::NXDOMAIN => (EdeCode::STALE_NXDOMAIN_ANSWER, ""),
        _ => (EdeCode::STALE_ANSWER, ""),
    }
}
