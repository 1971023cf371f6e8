//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Finding an answer and giving it its age.

use crate::cache::Cache;
use crate::entry::Meta;
use crate::key::{Key, Now};
use crate::security::Security;
use crate::slots::{Slot, ask_for, matching};
use crate::sync::{AtomicU64, Ordering};
use wire::{EdeCode, Flags, Rcode};

/// Looks at a bucket per look-up: an entry that moves while it is read is found at its new place.
const LOOKS_MAX: usize = 4;
/// Words of a cache line.
const LINE_WORDS: usize = 8;
/// Attempts to change a slot that readers are changing too; each one fails for at most three uses and two claims.
const EXCHANGES_MAX: usize = 8;

/// How TTLs are written into an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// What every TTL of a stale answer becomes (RFC 8767 §4 recommends 30 seconds).
    pub stale_ttl: u32,
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

/// What a look at one slot showed.
enum Look {
    /// The answer, copied and aged.
    Found(Hit),
    /// The entry for this key is past its stale window.
    Expired,
    /// An entry for another key.
    Other,
    /// The entry was overwritten or moved while it was read.
    Overtaken,
}

impl Cache {
    /// Copies the answer's octets (everything after the question, without OPT) to the front of `out`, TTLs aged.
    ///
    /// The TTLs of a fresh answer are less by its age, each from its own start; those of a stale answer are all
    /// `ageing.stale_ttl`. What `out` holds after `len` octets is unspecified. Never waits and writes no shared memory
    /// except, for the first three uses of an entry, its use count.
    pub fn lookup(&self, key: &Key<'_>, now: Now, out: &mut [u8], ageing: Ageing) -> Option<Hit> {
        let bucket = self.index.bucket_of(key.hash());
        let tag = Slot::tag_of(key.hash());
        for _ in 0..LOOKS_MAX {
            let mut overtaken = false;
            let mut candidates = matching(bucket, tag);
            while candidates != 0 {
                let i = candidates.trailing_zeros() as usize;
                candidates &= candidates - 1;
                let Some(at) = bucket.get(i) else { break };
                let slot = Slot(at.load(Ordering::Acquire));
                if slot.is_empty() || slot.tag() != tag {
                    continue;
                }
                match self.look(slot, key, now, out, ageing) {
                    Look::Found(hit) => {
                        if !slot.is_hottest() {
                            // Lost to another reader's use, or to a move: then one use goes uncounted.
                            let _ = at.compare_exchange(
                                slot.0,
                                slot.hotter().0,
                                Ordering::Relaxed,
                                Ordering::Relaxed,
                            );
                        }
                        return Some(hit);
                    }
                    Look::Expired => return None,
                    Look::Other => {}
                    Look::Overtaken => overtaken = true,
                }
            }
            if !overtaken {
                return None;
            }
        }
        None
    }

    /// Asks memory for what a look-up of the key with this hash reads first, without waiting for it.
    ///
    /// For batches against a cache larger than the processor's: called for all queries, then [`Cache::prefetch_entry`]
    /// for all, then the look-ups; so their waits for memory overlap.
    pub fn prefetch_bucket(&self, hash: u64) {
        let (first, second) = self.index.bucket_of(hash).split_at_checked(LINE_WORDS).unwrap_or((&[], &[]));
        ask_for(first);
        ask_for(second);
    }

    /// Asks memory for what a look-up reads next: the entry.
    pub fn prefetch_entry(&self, hash: u64) {
        let bucket = self.index.bucket_of(hash);
        let candidates = matching(bucket, Slot::tag_of(hash));
        if let (Some(at), Some(shard)) = (bucket.get(candidates.trailing_zeros() as usize), self.shard(hash))
        {
            let slot = Slot(at.load(Ordering::Relaxed));
            let words = shard.ring(slot.ring()).words(&self.arena, slot.position());
            ask_for(words);
            ask_for(words.get(LINE_WORDS..).unwrap_or(&[]));
        }
    }

    fn look(&self, slot: Slot, key: &Key<'_>, now: Now, out: &mut [u8], ageing: Ageing) -> Look {
        let Some(shard) = self.shard(key.hash()) else { return Look::Other };
        let ring = shard.ring(slot.ring());
        let words = ring.words(&self.arena, slot.position());
        // The name and the body are on the next line. Asked for here, it arrives together with the head's; nobody needs
        // the value.
        if let Some(word) = words.get(LINE_WORDS) {
            let _ = word.load(Ordering::Relaxed);
        }
        let is_intact = || ring.is_intact(slot.position());
        let meta = match Meta::read(words) {
            Some(meta) if meta.is_for(words, key) => meta,
            _ => return if is_intact() { Look::Other } else { Look::Overtaken },
        };
        let age = now.0.saturating_sub(meta.stored_at);
        let freshness = if age < meta.ttl {
            Freshness::Fresh { left: meta.ttl - age }
        } else {
            Freshness::Stale { since: age - meta.ttl }
        };
        if let Freshness::Stale { since } = freshness
            && since >= meta.stale
        {
            return if is_intact() { Look::Expired } else { Look::Overtaken };
        }
        let copied = meta.copy_body(words, out).is_some();
        if copied {
            for at in meta.ttl_offsets(words) {
                let Some(field) = out.get_mut(usize::from(at)..).and_then(<[u8]>::first_chunk_mut::<4>)
                else {
                    break;
                };
                let ttl = match freshness {
                    Freshness::Fresh { .. } => u32::from_be_bytes(*field).saturating_sub(age),
                    Freshness::Stale { .. } => ageing.stale_ttl,
                };
                *field = ttl.to_be_bytes();
            }
        }
        if !is_intact() {
            return Look::Overtaken;
        }
        Look::Found(Hit {
            len: if copied { meta.body_octets } else { 0 },
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
            popular: slot.freq() >= 1,
            refresh_claimed: slot.is_claimed(),
        })
    }

    /// Claims the refresh of an entry; `true` for exactly one caller until it is stored anew or released.
    ///
    /// `false` also if there is no such entry (any more).
    pub fn try_claim_refresh(&self, key: &Key<'_>) -> bool {
        self.set_claimed(key, true)
    }

    /// Gives a claim back, so that another caller may try.
    pub fn release_refresh(&self, key: &Key<'_>) {
        self.set_claimed(key, false);
    }

    /// Sets or clears the claim; returns whether this call changed it.
    fn set_claimed(&self, key: &Key<'_>, claimed: bool) -> bool {
        for _ in 0..EXCHANGES_MAX {
            let Some((at, slot)) = self.find(key) else { return false };
            if slot.is_claimed() == claimed {
                return false;
            }
            let wanted = slot.claimed(claimed).0;
            if at.compare_exchange(slot.0, wanted, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        false
    }

    /// Returns the slot of the entry for `key`, and what it held. Position and ring name the entry beyond doubt.
    pub(crate) fn find(&self, key: &Key<'_>) -> Option<(&AtomicU64, Slot)> {
        let tag = Slot::tag_of(key.hash());
        let bucket = self.index.bucket_of(key.hash());
        let shard = self.shard(key.hash())?;
        for _ in 0..LOOKS_MAX {
            let mut overtaken = false;
            for at in bucket {
                let slot = Slot(at.load(Ordering::Acquire));
                if slot.is_empty() || slot.tag() != tag {
                    continue;
                }
                let ring = shard.ring(slot.ring());
                let words = ring.words(&self.arena, slot.position());
                let is_for_key = Meta::read(words).is_some_and(|meta| meta.is_for(words, key));
                match ring.is_intact(slot.position()) {
                    true if is_for_key => return Some((at, slot)),
                    true => {}
                    false => overtaken = true,
                }
            }
            if !overtaken {
                return None;
            }
        }
        None
    }
}
