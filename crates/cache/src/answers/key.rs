//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What an answer is remembered under.

use std::time::Duration;
use wire::{Class, Folded, HashKey, Name, Rtype};

/// Seconds of a clock that nobody sets and that goes on while the machine sleeps (CLOCK_BOOTTIME);
/// the worker says what time it is. A step of the wall clock neither ends an answer's life nor
/// lengthens it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(pub u32);

impl Now {
    /// The reading when the machine booted: an answer that is read from a file may be older than
    /// that, by any TTL.
    const AT_BOOT: u32 = 1 << 31;

    /// Returns the reading so long after the machine booted.
    pub const fn since_boot(time: Duration) -> Self {
        Self(Self::AT_BOOT.saturating_add(time.as_secs() as u32))
    }
}

/// What keeps answers to the same question apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyBits(pub u8);

impl KeyBits {
    /// None set.
    pub const NONE: Self = Self(0);
    /// The client wanted DNSSEC records (DO, RFC 3225).
    pub const DO: Self = Self(1);
    /// The client checks signatures itself (CD, RFC 4035 §3.2.2).
    pub const CD: Self = Self(2);
    /// A remembered failure (RFC 9520), kept beside an answer that may be stale.
    pub const FAILURE: Self = Self(4);
    /// The bits a key may have.
    const ALL: u8 = 7;

    /// Returns these bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these bits but for those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether every bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The network an answer was given for (RFC 7871 §7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The address, bits beyond the prefix zero; IPv4 uses the first four octets.
    pub address: [u8; 16],
    /// The address family: 1 is IPv4, 2 is IPv6.
    pub family: u8,
    /// The bits of the address that count.
    pub prefix: u8,
}

impl Scope {
    /// Returns the scope as three words, as it is hashed and stored.
    pub(crate) fn to_words(self) -> [u64; 3] {
        let [a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7] = self.address;
        [
            u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
            u64::from(self.family) | u64::from(self.prefix) << 8,
        ]
    }

    /// Reads back what [`Scope::to_words`] made.
    pub(crate) fn from_words([low, high, numbers]: [u64; 3]) -> Self {
        let mut address = [0; 16];
        let (first, second) = address.split_at_mut(8);
        first.copy_from_slice(&low.to_le_bytes());
        second.copy_from_slice(&high.to_le_bytes());
        Self { address, family: numbers as u8, prefix: (numbers >> 8) as u8 }
    }
}

/// Set in the identity word of an entry whose key has a scope.
pub(crate) const SCOPED: u8 = 0x80;

/// What an answer is remembered under: the question and everything that may change its answer.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    hash: u64,
    name_hash: u64,
    identity: u64,
    name: Name<'a>,
    scope: Option<Scope>,
}

impl<'a> Key<'a> {
    /// Returns the key for a question; `hash_key` is the cache's own ([`crate::Cache::hash_key`]).
    pub fn new(
        hash_key: &HashKey,
        name: &'a Folded,
        qtype: Rtype,
        qclass: Class,
        bits: KeyBits,
        view: u16,
    ) -> Self {
        Self::with_name_hash(hash_key, name, hash_key.hash_name(name.as_name()), qtype, qclass, bits, view)
    }

    /// Returns the same, with what `hash_key` made of the name before ([`HashKey::fold`]).
    pub fn with_name_hash(
        hash_key: &HashKey,
        name: &'a Folded,
        name_hash: u64,
        qtype: Rtype,
        qclass: Class,
        bits: KeyBits,
        view: u16,
    ) -> Self {
        let name = name.as_name();
        // A name has at most 255 octets, so its length fits the top octet.
        let identity = u64::from(qtype.0)
            | u64::from(qclass.0) << 16
            | u64::from(view) << 32
            | u64::from(bits.0 & KeyBits::ALL) << 48
            | (name.len() as u64) << 56;
        Self { hash: hash_key.mix(name_hash, identity), name_hash, identity, name, scope: None }
    }

    /// Returns the key for the same question with the answer meant for one network only.
    #[must_use]
    pub fn with_scope(mut self, hash_key: &HashKey, scope: Scope) -> Self {
        self.identity |= u64::from(SCOPED) << 48;
        self.scope = Some(scope);
        self.rehash(hash_key);
        self
    }

    /// Returns the key for the same question, scope included, with other bits.
    #[must_use]
    pub fn with_bits(mut self, hash_key: &HashKey, bits: KeyBits) -> Self {
        self.identity =
            self.identity & !(u64::from(KeyBits::ALL) << 48) | u64::from(bits.0 & KeyBits::ALL) << 48;
        self.rehash(hash_key);
        self
    }

    fn rehash(&mut self, hash_key: &HashKey) {
        self.hash = hash_key.mix(self.name_hash, self.identity);
        if let Some(scope) = self.scope {
            // Each word goes through the secret: a client chooses its subnet, and must not choose
            // its bucket.
            for word in scope.to_words() {
                self.hash = hash_key.hash(Name::ROOT, self.hash ^ word);
            }
        }
    }

    /// Returns the keyed hash of all parts.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the name, lower case.
    pub const fn name(&self) -> Name<'a> {
        self.name
    }

    /// Returns the bits.
    pub const fn bits(&self) -> KeyBits {
        KeyBits((self.identity >> 48) as u8 & KeyBits::ALL)
    }

    /// Returns the network the answer is meant for.
    pub const fn scope(&self) -> Option<Scope> {
        self.scope
    }

    /// Type, class, view, bits and length of the name in one word.
    pub(crate) const fn identity(&self) -> u64 {
        self.identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_key_changes_its_hash() {
        let hash_key = HashKey::new([7, 9]);
        let (name, _) = Name::parse(b"\x07example\x03org\0").expect("well formed");
        let (other, _) = Name::parse(b"\x07example\x03net\0").expect("well formed");
        let (name, other) = (name.to_folded(), other.to_folded());
        let key = Key::new(&hash_key, &name, Rtype::A, Class::IN, KeyBits::NONE, 0);
        let scope =
            Scope { address: [192, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], family: 1, prefix: 24 };
        let mut hashes = vec![
            key.hash(),
            Key::new(&hash_key, &other, Rtype::A, Class::IN, KeyBits::NONE, 0).hash(),
            Key::new(&hash_key, &name, Rtype::AAAA, Class::IN, KeyBits::NONE, 0).hash(),
            Key::new(&hash_key, &name, Rtype::A, Class::CH, KeyBits::NONE, 0).hash(),
            Key::new(&hash_key, &name, Rtype::A, Class::IN, KeyBits::NONE, 1).hash(),
            key.with_bits(&hash_key, KeyBits::DO).hash(),
            key.with_bits(&hash_key, KeyBits::CD).hash(),
            key.with_bits(&hash_key, KeyBits::FAILURE).hash(),
            key.with_scope(&hash_key, scope).hash(),
            key.with_scope(&hash_key, Scope { prefix: 23, ..scope }).hash(),
            key.with_scope(&hash_key, Scope { family: 2, ..scope }).hash(),
            key.with_scope(&hash_key, scope).with_bits(&hash_key, KeyBits::DO).hash(),
        ];
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 12);
        assert_eq!(
            key.with_bits(&hash_key, KeyBits::DO).with_bits(&hash_key, KeyBits::NONE).hash(),
            key.hash()
        );
    }

    #[test]
    fn a_scope_survives_its_words() {
        let scope = Scope { address: *b"0123456789abcdef", family: 2, prefix: 56 };
        assert_eq!(Scope::from_words(scope.to_words()), scope);
    }
}
