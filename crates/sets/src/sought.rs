//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A name that is looked for, with what look-ups of many sets have in common: worked out once, when
//! first needed.

use std::cell::{Cell, OnceCell};

use wire::name::NAME_OCTETS_MAX;
use wire::{Folded, Name, Shape};

use crate::fingerprint::{Fingerprint, FingerprintKey};

/// Labels of a name whose fingerprints are kept; of longer names the rest is worked out for each
/// set.
pub(crate) const DEPTHS_KEPT: usize = 8;
/// Labels of the longest name.
const LABELS_MAX: usize = NAME_OCTETS_MAX / 2;
/// A dot in the lowest octet.
const DOT: u64 = b'.' as u64;
/// What a dot inside a label is in the text, so that nobody takes it for the border of a label.
const DOT_IN_LABEL: u8 = 0xff;

/// A name that is looked for, with what every look-up needs to know about it.
pub struct Sought<'a> {
    name: Name<'a>,
    hash: u64,
    /// One of 64 bits for the last label; none until it is needed.
    top: Cell<u64>,
    shape: Shape,
    /// Where the last labels begin, in the lowest octet that of the very last one; zero until it is
    /// needed.
    begins: Cell<u64>,
    /// How many of the fingerprints are worked out.
    known: Cell<u32>,
    /// The fingerprints of the last label, the last two, …, once one is needed.
    suffixes: OnceCell<[Cell<Fingerprint>; DEPTHS_KEPT]>,
    text: OnceCell<Text>,
}

const _: () = assert!(DEPTHS_KEPT == size_of::<u64>(), "each has an octet of `begins`");

/// A name as text between two dots.
pub(crate) struct Text {
    octets: [u8; NAME_OCTETS_MAX],
    /// With both dots. The root is one dot.
    len: u8,
}

impl Text {
    fn new(name: Name<'_>) -> Self {
        // The wire form has an octet before each label and one at the end: the places of the dots.
        let wire = name.as_bytes();
        let mut text = Self { octets: [0; NAME_OCTETS_MAX], len: 0 };
        let Some(room) = text.octets.get_mut(..wire.len()) else { return text };
        room.copy_from_slice(wire);
        text.len = wire.len() as u8;
        // A length can be the number of a dot, too: then nothing is found to be hidden.
        if wire.iter().fold(false, |found, &octet| found | (octet == b'.')) {
            hide_dots(room);
        }
        let mut at = 0;
        // Ends: each step goes over one label.
        while let Some(octet) = room.get_mut(at) {
            at += 1 + usize::from(*octet);
            *octet = b'.';
        }
        text
    }

    /// Returns the name between dots, `.www.example.org.`.
    #[inline]
    pub(crate) fn between_dots(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Returns the name without them.
    #[inline]
    pub(crate) fn bare(&self) -> &[u8] {
        self.octets.get(1..usize::from(self.len).saturating_sub(1)).unwrap_or(&[])
    }
}

/// Hides the dots inside of labels of a name in wire form.
#[cold]
fn hide_dots(wire: &mut [u8]) {
    let mut at = 0;
    // Ends: each step goes over one label.
    while let Some(&len) = wire.get(at) {
        let end = at + 1 + usize::from(len);
        for octet in wire.get_mut(at + 1..end).unwrap_or(&mut []) {
            if *octet == b'.' {
                *octet = DOT_IN_LABEL;
            }
        }
        at = end;
    }
}

impl<'a> Sought<'a> {
    /// Returns what look-ups need; `hash` is [`wire::HashKey::hash_name`] of the name.
    ///
    /// Every set that is asked for it was compiled with the same key.
    pub fn new(folded: &'a Folded, hash: u64) -> Self {
        Self::with_shape(folded, hash, folded.as_name().shape())
    }

    /// Returns likewise what look-ups need of a name whose shape is known.
    #[inline]
    pub fn with_shape(folded: &'a Folded, hash: u64, shape: Shape) -> Self {
        Self {
            name: folded.as_name(),
            hash,
            top: Cell::new(0),
            shape,
            begins: Cell::new(0),
            known: Cell::new(0),
            suffixes: OnceCell::new(),
            text: OnceCell::new(),
        }
    }

    /// Returns the name, in lower case.
    pub const fn name(&self) -> Name<'a> {
        self.name
    }

    /// Returns the hash of the name.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns one of 64 bits for the last label, as [`top_bit`] does.
    #[inline]
    pub fn top(&self) -> u64 {
        match self.top.get() {
            0 => {
                let wire = self.name.as_bytes();
                let last = usize::from(self.shape.last_at) + 1..wire.len() - 1;
                let top = top_bit(wire.get(last).unwrap_or(&[]));
                self.top.set(top);
                top
            }
            top => top,
        }
    }

    /// Returns how many labels there are.
    pub const fn depth(&self) -> u32 {
        self.shape.labels as u32
    }

    /// Returns the fingerprint of the last `depth` labels; of no more than are kept.
    #[inline]
    pub(crate) fn suffix(&self, key: &FingerprintKey, depth: u32) -> Fingerprint {
        if depth > self.known.get() {
            self.work_out(key, depth);
        }
        match (depth as usize).checked_sub(1).and_then(|at| self.suffixes.get()?.get(at)) {
            Some(suffix) => suffix.get(),
            None => key.root(),
        }
    }

    /// Works out fingerprints from the root down.
    #[inline(never)]
    fn work_out(&self, key: &FingerprintKey, depth: u32) {
        let wire = self.name.as_bytes();
        if self.begins.get() == 0 {
            self.begins.set(begins(wire));
        }
        let begin_of = |at: u32| (self.begins.get().checked_shr(8 * at).unwrap_or(0) & 0xff) as usize;
        let known = self.known.get();
        let (mut parent, mut end) = match known.checked_sub(1) {
            Some(last) => (self.suffix(key, known), begin_of(last).saturating_sub(1)),
            None => (key.root(), wire.len().saturating_sub(1)),
        };
        let suffixes = || [const { Cell::new(Fingerprint { place: 0, check: 0 }) }; DEPTHS_KEPT];
        let unknown = self.suffixes.get_or_init(suffixes).iter().enumerate().skip(known as usize);
        for (at, place) in unknown.take((depth.min(self.depth()) - known.min(self.depth())) as usize) {
            let begin = begin_of(at as u32);
            parent = key.below_at(parent, wire, begin, end.saturating_sub(begin));
            place.set(parent);
            end = begin.saturating_sub(1);
        }
        self.known.set(depth);
    }

    /// Calls `f` with the fingerprints of the suffixes that are too long to be kept, and their
    /// number of labels.
    #[cold]
    pub(crate) fn long_suffixes(&self, key: &FingerprintKey, mut f: impl FnMut(u32, Fingerprint)) {
        // The labels before those that are kept, the last one first.
        let mut labels: [&[u8]; LABELS_MAX] = [&[]; LABELS_MAX];
        let count = self.depth() as usize - DEPTHS_KEPT.min(self.depth() as usize);
        for (label, place) in self.name.labels().take(count).zip(labels.iter_mut().take(count).rev()) {
            *place = label;
        }
        let mut parent = self.suffix(key, DEPTHS_KEPT as u32);
        for (depth, label) in (DEPTHS_KEPT as u32 + 1..).zip(labels.iter().take(count)) {
            parent = key.below(parent, label);
            f(depth, parent);
        }
    }

    /// Calls `f` with the place of each label, counted from the begin of the name, and its first
    /// eight octets; of shorter labels all, a dot, and zeros.
    #[inline]
    pub(crate) fn each_begin(&self, mut f: impl FnMut(usize, u64)) {
        let wire = self.name.as_bytes();
        let mut at = 0;
        // Ends: each step goes over one label.
        while let Some(&len) = wire.get(at)
            && len != 0
        {
            let word = match word_at(wire, at + 1) {
                word if len < 8 => word & u64::MAX >> (64 - 8 * u32::from(len)) | DOT << (8 * u32::from(len)),
                word => word,
            };
            f(at + 1, word);
            at += 1 + usize::from(len);
        }
    }

    /// Returns whether some suffixes are too long to be kept.
    pub(crate) const fn is_long(&self) -> bool {
        self.depth() as usize > DEPTHS_KEPT
    }

    /// Returns the name as text, in lower case.
    #[inline]
    pub(crate) fn text(&self) -> &Text {
        self.text.get_or_init(|| Text::new(self.name))
    }
}

/// Returns the eight octets at `start` as a number; zeros where the name has none.
#[inline]
pub(crate) fn word_at(wire: &[u8], start: usize) -> u64 {
    let rest = wire.get(start..).unwrap_or(&[]);
    match (rest.first_chunk::<8>(), wire.last_chunk::<8>()) {
        (Some(word), _) => u64::from_le_bytes(*word),
        (None, Some(last)) => u64::from_le_bytes(*last).checked_shr(64 - 8 * rest.len() as u32).unwrap_or(0),
        (None, None) => rest.iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet)),
    }
}

/// Returns where the last labels begin, of the very last one in the lowest octet.
#[inline]
fn begins(wire: &[u8]) -> u64 {
    let (mut begins, mut at) = (0, 0);
    // Ends: each step goes over one label.
    while let Some(&len) = wire.get(at)
        && len != 0
    {
        begins = begins << 8 | (at as u64 + 1);
        at += 1 + usize::from(len);
    }
    begins
}

/// Returns one of 64 bits for the last label of a name, in lower case.
pub fn top_bit(label: &[u8]) -> u64 {
    bit_of([label.first(), label.last()].map(|octet| octet.copied().unwrap_or(0)), label.len())
}

/// Returns the bit of a label by its first and its last octet, and how many it has.
#[inline]
const fn bit_of([first, last]: [u8; 2], octets: usize) -> u64 {
    1_u64.wrapping_shl(first as u32 * 7 + last as u32 * 3 + octets as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{HashKey, NameBuf};

    fn check(labels: &[&[u8]], text: &[u8]) {
        let key = HashKey::new([1, 2]);
        let mut name = NameBuf::root();
        for label in labels {
            name.push_label(label).expect("short");
        }
        let folded = name.as_name().to_folded();
        let sought = Sought::new(&folded, key.hash_name(name.as_name()));
        assert_eq!(sought.text().bare(), text);
        let dots = if labels.is_empty() { b".".to_vec() } else { [b".", text, b"."].concat() };
        assert_eq!(sought.text().between_dots(), dots);
        sought.each_begin(|at, word| {
            let rest = &dots[at..];
            let len = rest.iter().position(|&octet| octet == b'.').map_or(rest.len(), |dot| dot + 1).min(8);
            let mut shown = word.to_le_bytes();
            // A dot inside a label is not hidden there.
            shown.iter_mut().take(len - 1).for_each(|octet| {
                if *octet == b'.' {
                    *octet = DOT_IN_LABEL;
                }
            });
            assert_eq!(&shown[..len], &rest[..len]);
        });
        let fingerprints = FingerprintKey::new(&key);
        let mut expected = vec![fingerprints.root()];
        for label in labels.iter().rev() {
            let last = *expected.last().expect("the root is there");
            expected.push(fingerprints.below(last, &label.to_ascii_lowercase()));
        }
        let kept = labels.len().min(DEPTHS_KEPT) as u32;
        // In an order in which some are known when others are asked for.
        assert_eq!(sought.suffix(&fingerprints, kept / 2), expected[kept as usize / 2]);
        let mut found: Vec<Fingerprint> =
            (0..=kept).map(|depth| sought.suffix(&fingerprints, depth)).collect();
        sought.long_suffixes(&fingerprints, |depth, fingerprint| {
            assert_eq!(depth as usize, found.len());
            found.push(fingerprint);
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn names_become_text_and_fingerprints() {
        check(&[], b"");
        check(&[b"org"], b"org");
        check(&[b"WWW", b"Example", b"org"], b"www.example.org");
        check(&[b"a.b", b"org"], b"a\xffb.org");
        check(&[b"a".as_slice(); 8], b"a.a.a.a.a.a.a.a");
        check(&[b"a".as_slice(); 9], b"a.a.a.a.a.a.a.a.a");
        check(&[b"label".as_slice(); 9], &[b"label.".as_slice(); 9].concat()[..53]);
        check(&[b"b".as_slice(); 127], &[b"b.".as_slice(); 127].concat()[..253]);
    }
}
