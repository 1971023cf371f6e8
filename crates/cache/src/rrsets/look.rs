//! Finding RRsets and negative answers.

use super::Rrsets;
use super::entry::{EntryHead, Kind};
use super::key::{Partition, RrsetKey, class_of, partition_of, rtype_of};
use super::negative::Negative;
use super::rank::Rank;
use crate::store::Head;
use crate::{Now, Security};
use wire::{Class, Name, Rtype};

/// What is known under a key.
#[derive(Clone, Copy)]
pub enum Found<'b> {
    /// Records.
    Rrset(Rrset<'b>),
    /// The name has no records of the type.
    NoData(Negative<'b>),
    /// The name does not exist.
    NoName(Negative<'b>),
}

/// An RRset, copied to the caller's buffer.
#[derive(Clone, Copy)]
pub struct Rrset<'b> {
    /// The owner, lower case.
    pub owner: Name<'b>,
    /// Its type.
    pub rtype: Rtype,
    /// Its class.
    pub class: Class,
    /// Whose it is.
    pub partition: Partition,
    /// Where it was found.
    pub rank: Rank,
    /// What is known of its signatures.
    pub security: Security,
    /// Seconds left, at least one.
    pub ttl: u32,
    /// Seconds that it had when it was stored.
    pub original_ttl: u32,
    /// Labels of the zone that signed it.
    pub signer_labels: u8,
    /// Labels that the signatures count.
    pub labels_signed: u8,
    /// Whether it was asked for before, since it was stored or last moved.
    pub popular: bool,
    pub(super) records: u16,
    pub(super) signatures: u8,
    pub(super) data: &'b [u8],
}

impl<'b> Rrset<'b> {
    /// Walks the data of its records.
    pub const fn records(&self) -> Octets<'b> {
        Octets::new(self.data, self.records)
    }

    /// Walks the data of its RRSIG records.
    pub fn signatures(&self) -> Octets<'b> {
        let mut octets = self.records();
        octets.by_ref().for_each(drop);
        Octets::new(octets.data, self.signatures as u16)
    }
}

/// Pieces of data, each behind a length of two octets.
#[derive(Clone)]
pub struct Octets<'b> {
    data: &'b [u8],
    left: u16,
}

impl<'b> Octets<'b> {
    pub(crate) const fn new(data: &'b [u8], left: u16) -> Self {
        Self { data, left }
    }
}

impl<'b> Iterator for Octets<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (len, rest) = self.data.split_first_chunk::<2>()?;
        let (octets, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        self.data = rest;
        Some(octets)
    }
}

impl Rrsets {
    /// Copies what is known under a key to `out` and returns a view of it.
    ///
    /// Who sets CD ([`RrsetKey::unchecked`]) is given what others fetched, and only then what was
    /// fetched with CD; who does not never sees the latter. Never waits and writes no shared memory
    /// except, for the first three uses of an entry, its use count.
    pub fn look<'b>(&self, key: &RrsetKey<'_>, now: Now, out: &'b mut Vec<u8>) -> Option<Found<'b>> {
        let checked =
            if key.is_unchecked() { self.copy(&key.checked(&self.hash_key), now, out) } else { None };
        let (head, popular) = checked.or_else(|| self.copy(key, now, out))?;
        found(&head, popular, now, out)
    }

    /// Asks memory for what a look-up of this key reads first, without waiting for it: several that
    /// are asked for together come together.
    pub fn prefetch(&self, key: &RrsetKey<'_>) {
        self.store.prefetch_bucket(key.hash());
    }

    /// Copies name and data of the entry for `key`, and returns its head and whether it was used
    /// before.
    pub(crate) fn copy(&self, key: &RrsetKey<'_>, now: Now, out: &mut Vec<u8>) -> Option<(EntryHead, bool)> {
        let mut candidates = self.store.candidates(key.hash())?;
        while let Some(candidate) = candidates.next() {
            let head = EntryHead::of(candidate.words, key);
            let is_copied = head.is_some_and(|head| head.copy_to(candidate.words, out).is_some());
            if !candidate.is_intact() {
                candidates.look_again();
            } else if let Some(head) = head {
                if head.is_expired(now.0) || !is_copied {
                    return None;
                }
                candidate.count_use();
                return Some((head, candidate.slot.freq() >= 1));
            }
        }
        None
    }

    /// Returns the head of the entry for `key`, if it lives. Copies nothing, and counts for no use.
    pub(crate) fn head(&self, key: &RrsetKey<'_>, now: Now) -> Option<EntryHead> {
        let mut candidates = self.store.candidates(key.hash())?;
        while let Some(candidate) = candidates.next() {
            let head = EntryHead::of(candidate.words, key);
            if !candidate.is_intact() {
                candidates.look_again();
            } else if let Some(head) = head {
                return (!head.is_expired(now.0)).then_some(head);
            }
        }
        None
    }

    /// Returns the number of a set of records that a [`Reference`](super::Reference) to it has.
    pub fn reference_mark<'r>(&self, records: impl Iterator<Item = &'r [u8]>) -> u16 {
        (self.fingerprint(records) >> 48) as u16
    }

    /// Shows every RRset and negative answer that lives, in no order. Blocks nobody.
    pub fn for_each(&self, now: Now, mut show: impl FnMut(&Found<'_>)) {
        let mut room: (Option<EntryHead>, Vec<u8>) = (None, Vec::new());
        self.store.for_each(
            &mut room,
            |(head, out), words| {
                *head = EntryHead::read(words);
                head.is_some_and(|head| head.copy_to(words, out).is_some())
            },
            |(head, out), slot| {
                if let Some(head) = head.filter(|head| !head.is_expired(now.0))
                    && let Some(found) = found(&head, slot.freq() >= 1, now, out)
                {
                    show(&found);
                }
            },
        );
    }
}

/// Makes a view of an entry that was copied; cuts have their own.
fn found<'b>(head: &EntryHead, popular: bool, now: Now, octets: &'b [u8]) -> Option<Found<'b>> {
    let (name, data) = octets.split_at_checked(head.name_octets())?;
    let (owner, _) = Name::parse(name).ok()?;
    let facts = head.facts;
    let rrset = Rrset {
        owner,
        rtype: rtype_of(head.identity),
        class: class_of(head.identity),
        partition: partition_of(head.identity),
        rank: facts.rank,
        security: facts.security,
        ttl: head.expires_at.saturating_sub(now.0),
        original_ttl: head.expires_at.saturating_sub(head.stored_at),
        signer_labels: facts.signer_labels,
        labels_signed: facts.labels_signed,
        popular,
        records: facts.records,
        signatures: facts.signatures,
        data,
    };
    match facts.kind {
        Kind::Rrset => Some(Found::Rrset(rrset)),
        Kind::NoData => Some(Found::NoData(Negative(rrset))),
        Kind::NoName => Some(Found::NoName(Negative(rrset))),
        Kind::Cut => None,
    }
}
