//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What the targets of ALIAS records have that lie in none of our zones: somebody else asks for
//! them, ahead of time, and answers are made from memory.

use cache::{Ageing, Cache, Entry, Freshness, Key, KeyBits, Limits, Now, Security};
use wire::{Class, Flags, HashKey, Name, Rcode, Rtype};

use crate::block::{OWNER, RECORD_HEAD};
use crate::online::put_record;

/// Octets that the addresses of one target may have; what is more is left out.
pub const ADDRESSES_OCTETS_MAX: usize = 4096;
/// The TTL of what should have been asked for again and could not be (RFC 8767 §4).
const STALE_TTL: u32 = 30;

/// Addresses of targets, shared by all who answer.
pub struct Aliases {
    memory: Cache,
    key: HashKey,
}

// By who asks, not by who answers.
impl Aliases {
    /// Remembers addresses in so much memory.
    pub fn new(octets_max: usize, key: HashKey) -> Self {
        Self { memory: Cache::new(Limits { octets_max }, key), key }
    }

    /// Remembers what a target has of a type: nothing, or as many addresses as fit. They are fresh
    /// for `ttl` seconds and used for `stale` more if they could not be asked for again.
    pub fn put<'a>(
        &self,
        (target, rtype): (Name<'_>, Rtype),
        addresses: impl IntoIterator<Item = &'a [u8]>,
        (ttl, stale): (u32, u32),
        now: u32,
    ) {
        let mut body = [0; ADDRESSES_OCTETS_MAX];
        let mut ttl_offsets = [0; ADDRESSES_OCTETS_MAX / (RECORD_HEAD + 4)];
        let (mut len, mut count) = (0, 0);
        for (address, offset) in addresses.into_iter().zip(&mut ttl_offsets) {
            let written = body.get_mut(len..).and_then(|room| put_record(room, rtype, ttl, address));
            let Some(written) = written else { break };
            *offset = (len + OWNER.len() + 4) as u16;
            len += written;
            count += 1;
        }
        let entry = Entry {
            body: body.get(..len).unwrap_or(&[]),
            ttl_offsets: ttl_offsets.get(..count).unwrap_or(&[]),
            rcode: Rcode::NOERROR,
            flags: Flags(0),
            security: Security::Unchecked,
            answers: count as u16,
            authorities: 0,
            additionals: 0,
            ttl,
            stale,
            ede: None,
        };
        let target = target.to_folded();
        let key = Key::new(&self.key, &target, rtype, Class::IN, KeyBits(0), 0);
        // Without room there is no answer: whoever looks for it reports that.
        let _ = self.memory.insert(&key, &entry, Now(now));
    }
}

impl Aliases {
    /// Copies the addresses of a target as records that stand ready; returns how many there are and
    /// their octets. `None` when they are not known.
    pub(crate) fn find(
        &self,
        (target, rtype): (Name<'_>, Rtype),
        now: u32,
        out: &mut [u8; ADDRESSES_OCTETS_MAX],
    ) -> Option<(u16, usize)> {
        let target = target.to_folded();
        let key = Key::new(&self.key, &target, rtype, Class::IN, KeyBits(0), 0);
        let hit = self.memory.lookup(&key, Now(now), out, Ageing { stale_ttl: STALE_TTL })?;
        hit.fits().then_some((hit.answers, hit.len))
    }

    /// Returns for how many more seconds the addresses of a target are fresh, if they are.
    pub fn fresh_for(&self, (target, rtype): (Name<'_>, Rtype), now: u32) -> Option<u32> {
        let target = target.to_folded();
        let key = Key::new(&self.key, &target, rtype, Class::IN, KeyBits(0), 0);
        let mut out = [0; ADDRESSES_OCTETS_MAX];
        match self.memory.lookup(&key, Now(now), &mut out, Ageing { stale_ttl: STALE_TTL })?.freshness {
            Freshness::Fresh { left } => Some(left),
            Freshness::Stale { .. } => None,
        }
    }
}
