//! What RRsets, negative answers and cuts are found by.

use wire::{Class, Folded, HashKey, Name, Rtype};

/// A number for each resolver or view whose data must not be seen by others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(pub u16);

/// Type of the entry that says that a name does not exist; no record has it.
pub(super) const NO_NAME: Rtype = Rtype(0);

/// Set in the identity of what was fetched with CD.
const CD: u64 = 1 << 48;
/// Set in the identity of what stood beside an answer.
const BESIDE: u64 = 4 << 48;
/// Set in the identity of a cut.
const CUT: u64 = 2 << 48;

/// What an RRset is found by: name, type, class, partition, and whether it was fetched with CD.
#[derive(Clone, Copy)]
pub struct RrsetKey<'a> {
    hash: u64,
    name_hash: u64,
    identity: u64,
    name: Name<'a>,
}

impl<'a> RrsetKey<'a> {
    /// Returns the key of an RRset; `hash_key` is the table's own
    /// ([`Rrsets::hash_key`](super::Rrsets::hash_key)).
    pub fn new(
        hash_key: &HashKey,
        name: &'a Folded,
        rtype: Rtype,
        class: Class,
        partition: Partition,
    ) -> Self {
        Self::of_lower_case(hash_key, name.as_name(), rtype, class, partition)
    }

    /// Returns the key of an RRset whose owner is known to be in lower case: another one is never
    /// found.
    pub fn of_lower_case(
        hash_key: &HashKey,
        name: Name<'a>,
        rtype: Rtype,
        class: Class,
        partition: Partition,
    ) -> Self {
        Self::of(hash_key, name, identity(name, rtype, class, partition))
    }

    /// Returns the key of another type of the same name.
    #[must_use]
    pub fn with_type(self, hash_key: &HashKey, rtype: Rtype) -> Self {
        self.with_identity(hash_key, self.identity & !u64::from(u16::MAX) | u64::from(rtype.0))
    }

    /// Returns the key of the cut at a name, which is lower case.
    pub(crate) fn cut(hash_key: &HashKey, name: Name<'a>, partition: Partition) -> Self {
        Self::of(hash_key, name, identity(name, Rtype::NS, Class::IN, partition) | CUT)
    }

    fn of(hash_key: &HashKey, name: Name<'a>, identity: u64) -> Self {
        let name_hash = hash_key.hash_name(name);
        Self { hash: hash_key.mix(name_hash, identity), name_hash, identity, name }
    }

    fn with_identity(self, hash_key: &HashKey, identity: u64) -> Self {
        Self { hash: hash_key.mix(self.name_hash, identity), identity, ..self }
    }

    /// Returns the key of what says that the name does not exist, whatever the type (RFC 2308 §5).
    #[must_use]
    pub fn without_type(self, hash_key: &HashKey) -> Self {
        self.with_type(hash_key, NO_NAME)
    }

    /// Returns the key for data that was or is to be fetched with CD (RFC 4035 §3.2.2): nobody
    /// checked it, and only who sets CD may see it.
    #[must_use]
    pub fn unchecked(self, hash_key: &HashKey) -> Self {
        self.with_identity(hash_key, self.identity | CD)
    }

    /// Returns the key for what stands beside answers: it answers no question.
    #[must_use]
    pub fn beside(self, hash_key: &HashKey) -> Self {
        self.with_identity(hash_key, self.identity | BESIDE)
    }

    pub(super) fn checked(self, hash_key: &HashKey) -> Self {
        self.with_identity(hash_key, self.identity & !CD)
    }

    pub(super) const fn is_unchecked(&self) -> bool {
        self.identity & CD != 0
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) const fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the owner, lower case.
    pub const fn name(&self) -> Name<'a> {
        self.name
    }

    pub(super) const fn rtype(&self) -> Rtype {
        rtype_of(self.identity)
    }
}

/// Type, class, partition and length of the name in one word.
fn identity(name: Name<'_>, rtype: Rtype, class: Class, partition: Partition) -> u64 {
    u64::from(rtype.0) | u64::from(class.0) << 16 | u64::from(partition.0) << 32 | (name.len() as u64) << 56
}

pub(crate) const fn rtype_of(identity: u64) -> Rtype {
    Rtype(identity as u16)
}

pub(crate) const fn class_of(identity: u64) -> Class {
    Class((identity >> 16) as u16)
}

pub(crate) const fn partition_of(identity: u64) -> Partition {
    Partition((identity >> 32) as u16)
}

pub(crate) const fn name_octets_of(identity: u64) -> usize {
    (identity >> 56) as usize
}
