//! How an RRset, a negative answer or a cut lies in a ring's words.
//!
//! ```text
//! 0  hash
//! 1  identity: type:16 class:16 partition:16 bits:8 name length:8
//! 2  stored at:32 expires at:32
//! 3  words:14 unused octets:3 rank:4 security:3 kind:2 signer's labels:7 labels signed:7
//!    records:12 signatures:8 times bogus:4
//!    name, then data without padding, to a whole word
//! ```
//!
//! The data of an RRset is its records and then its signatures, each behind a length of two octets;
//! that of a negative answer is in `negative`, that of a cut in `cuts::layout`.

use super::key::{RrsetKey, name_octets_of};
use super::rank::Rank;
use crate::Security;
use crate::store::{AtomicU64, Head, Ordering, Word};

const HEAD_WORDS: usize = 4;
const WORDS_BITS: u32 = 14;
const UNUSED_AT: u32 = WORDS_BITS;
const RANK_AT: u32 = UNUSED_AT + 3;
const SECURITY_AT: u32 = RANK_AT + Rank::BITS;
const KIND_AT: u32 = SECURITY_AT + Security::BITS;
const SIGNER_AT: u32 = KIND_AT + 2;
const LABELS_AT: u32 = SIGNER_AT + 7;
const RECORDS_AT: u32 = LABELS_AT + 7;
const SIGNATURES_AT: u32 = RECORDS_AT + 12;
const BOGUS_AT: u32 = SIGNATURES_AT + 8;
const _: () = assert!(BOGUS_AT + 4 == u64::BITS, "the parts fill a word");

/// Records that an entry may have.
pub(crate) const RECORDS_MAX: usize = (1 << 12) - 1;
/// Signatures that an entry may have.
pub(crate) const SIGNATURES_MAX: usize = (1 << 8) - 1;
/// Octets of name and data that an entry may have.
const OCTETS_MAX: usize = ((1 << WORDS_BITS) - 1 - HEAD_WORDS) * 8;
/// Times bogus that are counted.
const BOGUS_MAX: u8 = (1 << 4) - 1;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Records.
    Rrset = 0,
    /// There are none of this type (RFC 2308 §2.2).
    NoData = 1,
    /// There is no such name (RFC 2308 §2.1).
    NoName = 2,
    /// A delegation.
    Cut = 3,
}

/// What an entry says of itself besides its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) rank: Rank,
    pub(crate) security: Security,
    pub(crate) signer_labels: u8,
    pub(crate) labels_signed: u8,
    pub(crate) records: u16,
    pub(crate) signatures: u8,
    /// Times in a row that it was bogus, less one.
    pub(crate) times_bogus: u8,
}

impl Facts {
    const fn to_bits(self) -> u64 {
        let times_bogus = if self.times_bogus < BOGUS_MAX { self.times_bogus } else { BOGUS_MAX };
        (self.rank as u64) << RANK_AT
            | (self.security.to_bits() as u64) << SECURITY_AT
            | (self.kind as u64) << KIND_AT
            | (self.signer_labels as u64 & 0x7f) << SIGNER_AT
            | (self.labels_signed as u64 & 0x7f) << LABELS_AT
            | (self.records as u64 & RECORDS_MAX as u64) << RECORDS_AT
            | (self.signatures as u64) << SIGNATURES_AT
            | (times_bogus as u64) << BOGUS_AT
    }

    const fn from_bits(bits: u64) -> Self {
        Self {
            kind: match bits >> KIND_AT & 3 {
                0 => Kind::Rrset,
                1 => Kind::NoData,
                2 => Kind::NoName,
                _ => Kind::Cut,
            },
            rank: Rank::from_bits(bits >> RANK_AT),
            security: Security::from_bits((bits >> SECURITY_AT) as u16),
            signer_labels: (bits >> SIGNER_AT) as u8 & 0x7f,
            labels_signed: (bits >> LABELS_AT) as u8 & 0x7f,
            records: (bits >> RECORDS_AT) as u16 & RECORDS_MAX as u16,
            signatures: (bits >> SIGNATURES_AT) as u8,
            times_bogus: (bits >> BOGUS_AT) as u8,
        }
    }
}

/// The head of an entry.
///
/// Read from words that may be overwritten meanwhile: nothing in it can be trusted before the
/// ring's tail was looked at.
#[derive(Clone, Copy)]
pub(crate) struct EntryHead {
    hash: u64,
    pub(crate) identity: u64,
    pub(crate) stored_at: u32,
    pub(crate) expires_at: u32,
    words: usize,
    /// Octets of name and data.
    octets: usize,
    pub(crate) facts: Facts,
}

impl Head for EntryHead {
    fn read<W: Word>(words: &[W]) -> Option<Self> {
        let [hash, identity, times, sizes] = words.first_chunk::<HEAD_WORDS>()?.each_ref().map(Word::read);
        let words = (sizes & ((1 << WORDS_BITS) - 1)) as usize;
        let unused = (sizes >> UNUSED_AT & 7) as usize;
        Some(Self {
            hash,
            identity,
            stored_at: times as u32,
            expires_at: (times >> 32) as u32,
            words,
            octets: (words.saturating_sub(HEAD_WORDS) * 8).saturating_sub(unused),
            facts: Facts::from_bits(sizes),
        })
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn words(&self) -> usize {
        self.words
    }

    fn stored_at(&self) -> u32 {
        self.stored_at
    }

    fn is_expired(&self, now: u32) -> bool {
        now >= self.expires_at
    }
}

impl EntryHead {
    /// Reads the head of the entry for `key`, if it is that.
    pub(crate) fn of<W: Word>(words: &[W], key: &RrsetKey<'_>) -> Option<Self> {
        let head = Self::read(words)?;
        let is_it = head.hash == key.hash()
            && head.identity == key.identity()
            && begins_with(words.get(HEAD_WORDS..)?, key.name().as_bytes());
        is_it.then_some(head)
    }

    pub(crate) const fn name_octets(&self) -> usize {
        name_octets_of(self.identity)
    }

    /// Copies name and data over `out`; `None` if the words end before them.
    pub(crate) fn copy_to<W: Word>(&self, words: &[W], out: &mut Vec<u8>) -> Option<()> {
        let words = words.get(HEAD_WORDS..self.words)?;
        // What is there already is overwritten, so that only growth is cleared.
        out.resize(words.len() * 8, 0);
        for (room, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *room = word.read().to_le_bytes();
        }
        out.truncate(self.octets);
        Some(())
    }
}

/// Returns whether `words` begin with these octets.
fn begins_with<W: Word>(words: &[W], octets: &[u8]) -> bool {
    let chunks = octets.chunks(8);
    chunks.len() <= words.len()
        && chunks.zip(words).all(|(chunk, word)| word.read().to_le_bytes().starts_with(chunk))
}

/// Returns the words that an entry with so many octets of data takes; `None` if there are too many.
pub(crate) fn words_for(key: &RrsetKey<'_>, data_octets: usize) -> Option<u64> {
    let octets = key.name().len() + data_octets;
    (octets <= OCTETS_MAX).then_some((HEAD_WORDS + octets.div_ceil(8)) as u64)
}

/// When an entry was stored, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) stored_at: u32,
    pub(crate) expires_at: u32,
}

/// Writes an entry to words that no reader trusts. `data` writes as many octets as [`words_for`]
/// was told.
pub(crate) fn write(
    words: &[AtomicU64],
    key: &RrsetKey<'_>,
    life: Life,
    facts: Facts,
    data_octets: usize,
    data: impl FnOnce(&mut Pen<'_>),
) {
    let octets = key.name().len() + data_octets;
    let count = HEAD_WORDS + octets.div_ceil(8);
    let unused = (8 - octets % 8) % 8;
    let head = [
        key.hash(),
        key.identity(),
        u64::from(life.stored_at) | u64::from(life.expires_at) << 32,
        count as u64 | (unused as u64) << UNUSED_AT | facts.to_bits(),
    ];
    let (first, rest) = words.split_at_checked(HEAD_WORDS).unwrap_or((&[], &[]));
    for (to, word) in first.iter().zip(head) {
        to.store(word, Ordering::Relaxed);
    }
    let mut pen = Pen { words: rest.iter(), word: [0; 8], filled: 0 };
    pen.put(key.name().as_bytes());
    data(&mut pen);
    pen.finish();
}

/// Writes octets to words, one after the other.
pub(crate) struct Pen<'w> {
    words: std::slice::Iter<'w, AtomicU64>,
    word: [u8; 8],
    filled: usize,
}

impl Pen<'_> {
    pub(crate) fn put(&mut self, octets: &[u8]) {
        for &octet in octets {
            if let Some(to) = self.word.get_mut(self.filled) {
                *to = octet;
            }
            self.filled += 1;
            if self.filled == self.word.len() {
                self.finish();
            }
        }
    }

    fn finish(&mut self) {
        if self.filled > 0
            && let Some(to) = self.words.next()
        {
            to.store(u64::from_le_bytes(self.word), Ordering::Relaxed);
        }
        (self.word, self.filled) = ([0; 8], 0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::rrsets::Partition;
    use wire::{Class, HashKey, NameBuf, Rtype};

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let hash_key = HashKey::new([1, 2]);
        let facts = Facts {
            kind: Kind::Cut,
            rank: Rank::Primary,
            security: Security::Bogus,
            signer_labels: 127,
            labels_signed: 126,
            records: RECORDS_MAX as u16,
            signatures: u8::MAX,
            times_bogus: BOGUS_MAX,
        };
        for label in 1..12 {
            for len in 0..20 {
                let mut name = NameBuf::root();
                name.push_label(&vec![b'a'; label]).expect("short");
                let folded = name.as_name().to_folded();
                let key = RrsetKey::new(&hash_key, &folded, Rtype::A, Class::IN, Partition(9));
                let data: Vec<u8> = (1..=len).collect();
                let count = words_for(&key, data.len()).expect("short");
                let words: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(u64::MAX)).collect();
                let life = Life { stored_at: 7, expires_at: u32::MAX };
                write(&words, &key, life, facts, data.len(), |pen| pen.put(&data));
                let head = EntryHead::of(&words, &key).expect("it is the one");
                assert_eq!((head.facts, head.stored_at, head.expires_at), (facts, 7, u32::MAX));
                assert_eq!((head.words(), head.octets), (words.len(), folded.as_bytes().len() + data.len()));
                let mut out = vec![1];
                head.copy_to(&words, &mut out).expect("all words are there");
                assert_eq!(out, [folded.as_bytes(), &data].concat());
                let mut other = folded.as_bytes().to_vec();
                *other.last_mut().expect("it is not empty") ^= 1;
                assert!(!begins_with(&words[HEAD_WORDS..], &other), "names are compared whole");
            }
        }
        let folded = NameBuf::root().as_name().to_folded();
        let key = RrsetKey::new(&hash_key, &folded, Rtype::A, Class::IN, Partition(9));
        assert!(words_for(&key, 100_000).is_some());
        assert!(words_for(&key, OCTETS_MAX).is_none());
    }
}
