//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Finding an answer and giving it its age.

use super::Cache;
use super::entry::Meta;
use super::key::{Key, Now};
use super::security::Security;
use super::stamp::{Place, Stamp};
use crate::store::{AtomicU64, Head, LINE_WORDS, Ordering};
use wire::{EdeCode, Flags, Rcode};

/// How TTLs are written into an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// What the TTL of an expired record becomes (RFC 8767 §4 recommends 30 seconds), unless it was
    /// stored with a smaller one.
    pub stale_ttl: u32,
}

impl Ageing {
    /// TTLs stay as they were stored, those of stale answers as well.
    pub const NONE: Self = Self { stale_ttl: u32::MAX };
}

/// Whether an answer is within its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It is.
    Fresh {
        /// Seconds left, at least one.
        left: u32,
    },
    /// It is not, but within the stale window.
    Stale {
        /// Seconds since it expired; zero in the first.
        since: u32,
    },
}

/// An answer that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Octets copied; 0 if there was not enough room.
    pub len: usize,
    /// Octets the whole answer needs. If that is more than `len`, nothing was copied.
    pub needs: usize,
    /// The whole response code.
    pub rcode: Rcode,
    /// The flags as they came.
    pub flags: Flags,
    /// Whether it is known to be genuine.
    pub security: Security,
    /// Records in the answer section.
    pub answers: u16,
    /// Records in the authority section.
    pub authorities: u16,
    /// Records in the additional section.
    pub additionals: u16,
    /// The Extended DNS Error to repeat.
    pub ede: Option<EdeCode>,
    /// Seconds since the answer was stored.
    pub age: u32,
    /// Whether the answer is within its lifetime.
    pub freshness: Freshness,
    /// The lifetime in seconds that the answer was stored with.
    pub original_ttl: u32,
    /// Whether the answer was asked for before, since it was stored or last moved.
    pub popular: bool,
    /// Whether somebody claimed its refresh ([`Cache::try_claim_refresh`]).
    pub refresh_claimed: bool,
}

impl Hit {
    /// Returns whether the answer was copied whole.
    pub const fn fits(&self) -> bool {
        self.len == self.needs
    }

    /// Returns whether the answer is past its lifetime.
    pub const fn is_stale(&self) -> bool {
        matches!(self.freshness, Freshness::Stale { .. })
    }
}

impl Cache {
    /// Copies the answer's octets (everything after the question, without OPT) to the front of
    /// `out`, TTLs aged.
    ///
    /// TTLs are less by the answer's age, each from its own start; of a stale answer, those of
    /// records that have expired are `ageing.stale_ttl`, or what they were stored with if that is
    /// less (but at least one second: RFC 8767 §4). What `out` holds after `len` octets is
    /// unspecified. Never waits and writes no shared memory except, for the first three uses of an
    /// entry, its use count.
    pub fn lookup(&self, key: &Key<'_>, now: Now, out: &mut [u8], ageing: Ageing) -> Option<Hit> {
        self.look(key, now, out, ageing, |_| true).map(|(hit, ..)| hit)
    }

    /// Does the same if the answer has this stamp; otherwise says which one it has, if there is an
    /// answer, copies nothing and counts no use.
    pub fn lookup_stamped(
        &self,
        key: &Key<'_>,
        now: Now,
        out: &mut [u8],
        ageing: Ageing,
        stamp: Stamp,
    ) -> Result<Hit, Option<Stamp>> {
        let mut other = None;
        let is_it = |found| {
            other = (found != stamp.0).then_some(Stamp(found));
            found == stamp.0
        };
        match self.look(key, now, out, ageing, is_it) {
            Some((hit, ..)) => Ok(hit),
            None => Err(other),
        }
    }

    /// Does the same as [`Cache::lookup`], and says which stamp the answer has, and where it is:
    /// for [`Cache::stamp`].
    pub fn lookup_placed(
        &self,
        key: &Key<'_>,
        now: Now,
        out: &mut [u8],
        ageing: Ageing,
    ) -> Option<(Hit, Stamp, Place)> {
        self.look(key, now, out, ageing, |_| true)
    }

    #[inline(always)]
    fn look(
        &self,
        key: &Key<'_>,
        now: Now,
        out: &mut [u8],
        ageing: Ageing,
        mut is_wanted: impl FnMut(u64) -> bool,
    ) -> Option<(Hit, Stamp, Place)> {
        let mut candidates = self.store.candidates(key.hash())?;
        while let Some(candidate) = candidates.next() {
            let words = candidate.words;
            // The name and the body are on the next line. Asked for here, it arrives together with
            // the head's; nobody needs the value.
            if let Some(word) = words.get(LINE_WORDS) {
                let _ = word.load(Ordering::Relaxed);
            }
            let meta = match Meta::read(words) {
                Some(meta) if meta.is_for(words, key) => meta,
                _ => {
                    if !candidate.is_intact() {
                        candidates.look_again();
                    }
                    continue;
                }
            };
            if !is_wanted(meta.stamp) {
                return None;
            }
            let age = now.0.saturating_sub(meta.stored_at);
            let freshness = meta.freshness(age);
            let is_expired = matches!(freshness, Freshness::Stale { since } if since >= meta.stale);
            let is_copied = !is_expired && meta.copy_aged(words, out, age, freshness, ageing);
            if !candidate.is_intact() {
                candidates.look_again();
                continue;
            }
            if is_expired {
                return None;
            }
            candidate.count_use();
            let hit = Hit {
                len: if is_copied { meta.body_octets } else { 0 },
                needs: meta.body_octets,
                rcode: meta.rcode,
                flags: meta.flags,
                security: meta.security,
                answers: meta.answers,
                authorities: meta.authorities,
                additionals: meta.additionals,
                ede: meta.ede,
                age,
                freshness,
                original_ttl: meta.ttl,
                popular: candidate.slot.freq() >= 1,
                refresh_claimed: candidate.slot.is_claimed(),
            };
            return Some((hit, Stamp(meta.stamp), Place(candidate.slot)));
        }
        None
    }
}

impl Meta {
    /// Returns whether the answer is within its lifetime at this age.
    #[inline(always)]
    fn freshness(&self, age: u32) -> Freshness {
        if age < self.ttl {
            Freshness::Fresh { left: self.ttl - age }
        } else {
            Freshness::Stale { since: age - self.ttl }
        }
    }

    /// Copies the answer and gives its TTLs their age; returns whether `out` had room.
    #[inline(always)]
    fn copy_aged(
        &self,
        words: &[AtomicU64],
        out: &mut [u8],
        age: u32,
        freshness: Freshness,
        ageing: Ageing,
    ) -> bool {
        if self.copy_body(words, out).is_none() {
            return false;
        }
        if ageing == Ageing::NONE {
            return true;
        }
        for at in self.ttl_offsets(words) {
            let Some(field) = out.get_mut(usize::from(at)..).and_then(<[u8]>::first_chunk_mut::<4>) else {
                break;
            };
            let stored = u32::from_be_bytes(*field);
            let left = stored.saturating_sub(age);
            let ttl = match freshness {
                // What has not expired keeps what is left to it. Nobody is to keep what has expired
                // for longer than its zone says.
                Freshness::Stale { .. } if left == 0 => ageing.stale_ttl.min(stored.max(1)),
                _ => left,
            };
            *field = ttl.to_be_bytes();
        }
        true
    }
}
