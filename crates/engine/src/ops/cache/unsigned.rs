//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers without signatures are kept once, under the key of who does not set DO, for who does.

use cache::{Entry, Hit, Key, KeyBits, Now};
use wire::{Flags, Folded, Query, Rtype};

use super::{Asked, CacheStep, rtype_before};
use crate::answer::{Answer, Ending, SubnetScope};

impl CacheStep {
    /// Looks for such an answer, if the query sets DO.
    #[inline(always)]
    pub(super) fn read_for_do<'a>(
        &self,
        asked: &Asked<'a>,
        now: Now,
        out: &mut [u8],
    ) -> Option<(Key<'a>, Hit)> {
        // One by one: `asked` itself would have to be written to memory for every query.
        let &Asked { query, folded, name_hash, bits, .. } = asked;
        let asks_for_dnssec = bits.has(KeyBits::DO);
        if asks_for_dnssec { self.read_unsigned((query, folded, name_hash, bits), now, out) } else { None }
    }

    /// Looks for an answer that others got without DO, for who sets it and has none of its own; it
    /// must be the same for both.
    #[cold]
    pub(super) fn read_unsigned<'a>(
        &self,
        (query, folded, name_hash, bits): (&'a Query<'a>, &'a Folded, u64, KeyBits),
        now: Now,
        out: &mut [u8],
    ) -> Option<(Key<'a>, Hit)> {
        let asked = Asked { query, folded, name_hash, subnet: None, bits };
        if !self.shares_with_do(&asked) {
            return None;
        }
        let key = self.key(&asked.without_do());
        let hit = self.read(&key, now, out)?;
        hit.flags.has(Entry::SAME_FOR_DO).then_some((key, hit))
    }

    /// Returns where such an answer is kept, for a query that sets DO.
    #[inline(always)]
    pub(super) fn key_of_unsigned<'a>(&self, asked: &Asked<'a>) -> Option<Key<'a>> {
        if !asked.bits.has(KeyBits::DO) || !self.shares_with_do(asked) {
            return None;
        }
        Some(self.key(&asked.without_do()))
    }

    /// Returns whether who sets DO may be given what was kept for who does not.
    fn shares_with_do(&self, asked: &Asked<'_>) -> bool {
        !self.rules.keeps_do_apart && asked.subnet.is_none() && !is_for_dnssec(asked.query.question.qtype)
    }

    /// Returns where an answer is kept, and how it is marked.
    pub(super) fn place<'a>(
        &self,
        asked: &Asked<'a>,
        now: Now,
        answer: &Answer,
        (body, ttl_offsets): (&[u8], &[u16]),
    ) -> (Key<'a>, Flags) {
        let own = match asked.subnet {
            Some(_) if answer.scope == SubnetScope::EVERY => self.scope_zero_key(asked),
            // One for more bits than were told is for who told as many, and for nobody else.
            Some(subnet) => match answer.scope.bits().filter(|&bits| bits <= subnet.prefix) {
                Some(bits) if self.cache.note_scope(subnet.family, bits) => {
                    self.within_key(asked, subnet, bits)
                }
                _ => self.key(asked),
            },
            None => self.key(asked),
        };
        let is_signature = |rtype| matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3);
        let is_signed = || ttl_offsets.iter().any(|&at| rtype_before(body, at).is_none_or(is_signature));
        let wants_dnssec = asked.bits.has(KeyBits::DO);
        let is_unsigned = answer.end == Ending::Unsigned || wants_dnssec && !is_signed();
        if !is_unsigned || !self.shares_with_do(asked) {
            return (own, Flags::default());
        }
        // What is there under the key with DO would be found before it.
        if wants_dnssec && self.read(&own, now, &mut []).is_some() {
            return (own, Flags::default());
        }
        (self.key(&asked.without_do()), Entry::SAME_FOR_DO)
    }
}

impl<'a> Asked<'a> {
    pub(super) fn without_do(&self) -> Asked<'a> {
        Asked { bits: self.bits.without(KeyBits::DO), ..*self }
    }
}

/// Returns whether only who sets DO gets such records that he did not ask for.
const fn is_for_dnssec(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3)
}
