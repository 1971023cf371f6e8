//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A name that is looked for, with what look-ups of many sets have in common: worked out once, when first needed.

use std::cell::OnceCell;

use wire::{Folded, Name};

use crate::fingerprint::{Fingerprint, FingerprintKey};

/// Labels of a name whose fingerprints are kept; of longer names the rest is worked out for each set.
const DEPTHS_KEPT: usize = 15;
/// Octets of the longest name as text: no root label, and a dot for each length but the first.
const TEXT_OCTETS_MAX: usize = 253;
/// What a dot inside a label is in the text, so that nobody takes it for the border of a label.
const DOT_IN_LABEL: u8 = 0xff;

/// A name that is looked for, with what every look-up needs to know about it.
pub struct Sought<'a> {
    name: Name<'a>,
    hash: u64,
    /// One of 64 bits for the last label.
    top: u64,
    /// How many labels there are.
    depth: u32,
    suffixes: OnceCell<[Fingerprint; DEPTHS_KEPT + 1]>,
    text: OnceCell<Text>,
}

/// A name as text, without the dot at the end.
pub(crate) struct Text {
    octets: [u8; TEXT_OCTETS_MAX],
    len: u8,
}

impl Text {
    fn new(name: Name<'_>) -> Self {
        let wire = name.as_bytes();
        let mut text = Self { octets: [0; TEXT_OCTETS_MAX], len: 0 };
        let Some(body) = wire.get(1..wire.len().saturating_sub(1)) else { return text };
        let Some(room) = text.octets.get_mut(..body.len()) else { return text };
        room.copy_from_slice(body);
        text.len = body.len() as u8;
        let mut start = 0;
        for label in name.labels() {
            let end = start + label.len();
            if let Some(dot) = room.get_mut(end) {
                *dot = b'.';
            }
            if label.contains(&b'.')
                && let Some(label) = room.get_mut(start..end)
            {
                hide_dots(label);
            }
            start = end + 1;
        }
        text
    }

    pub(crate) fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

#[cold]
fn hide_dots(label: &mut [u8]) {
    for octet in label {
        if *octet == b'.' {
            *octet = DOT_IN_LABEL;
        }
    }
}

impl<'a> Sought<'a> {
    /// Returns what look-ups need; `hash` is [`wire::HashKey::hash_name`] of the name.
    ///
    /// Every set that is asked for it was compiled with the same key.
    pub fn new(folded: &'a Folded, hash: u64) -> Self {
        let name = folded.as_name();
        let (mut depth, mut last): (u32, &[u8]) = (0, &[]);
        for label in name.labels() {
            depth += 1;
            last = label;
        }
        Self { name, hash, top: top_bit(last), depth, suffixes: OnceCell::new(), text: OnceCell::new() }
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
    pub const fn top(&self) -> u64 {
        self.top
    }

    /// Returns how many labels there are.
    pub const fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the fingerprints of the root, the last label, the last two, …, as far as they are kept.
    #[inline]
    pub(crate) fn suffixes(&self, key: &FingerprintKey) -> &[Fingerprint] {
        let all = self.suffixes.get_or_init(|| suffixes(self.name, self.depth as usize, key));
        all.get(..=self.depth as usize).unwrap_or(all)
    }

    /// Calls `f` with the fingerprints of the suffixes that are too long to be kept, and their number of labels.
    #[cold]
    pub(crate) fn long_suffixes(&self, key: &FingerprintKey, mut f: impl FnMut(u32, Fingerprint)) {
        let Some(&kept) = self.suffixes(key).last() else { return };
        let mut parent = kept;
        for depth in DEPTHS_KEPT as u32 + 1..=self.depth {
            let Some(label) = self.name.labels().nth((self.depth - depth) as usize) else { return };
            parent = key.below(parent, label);
            f(depth, parent);
        }
    }

    /// Returns whether some suffixes are too long to be kept.
    pub(crate) const fn is_long(&self) -> bool {
        self.depth as usize > DEPTHS_KEPT
    }

    /// Returns the name as text, in lower case, labels separated by dots, none at the end.
    pub(crate) fn text(&self) -> &[u8] {
        self.text.get_or_init(|| Text::new(self.name)).octets()
    }
}

/// Works out the fingerprints from the root down.
fn suffixes(name: Name<'_>, depth: usize, key: &FingerprintKey) -> [Fingerprint; DEPTHS_KEPT + 1] {
    // Where the last labels begin and end, the very last one first.
    let mut places = [(0_u8, 0_u8); DEPTHS_KEPT];
    let wire = name.as_bytes();
    let (mut at, mut left) = (0_usize, depth);
    // Ends: each step goes over one label.
    while let Some(&len) = wire.get(at)
        && len != 0
    {
        let end = at + 1 + usize::from(len);
        left = left.saturating_sub(1);
        if let Some(place) = places.get_mut(left) {
            *place = (at as u8 + 1, end as u8);
        }
        at = end;
    }
    let mut parent = key.root();
    let mut all = [parent; DEPTHS_KEPT + 1];
    for (&(start, end), place) in places.iter().take(depth).zip(all.iter_mut().skip(1)) {
        parent = key.below(parent, wire.get(usize::from(start)..usize::from(end)).unwrap_or(&[]));
        *place = parent;
    }
    all
}

/// Returns one of 64 bits for the last label of a name, in lower case.
pub fn top_bit(label: &[u8]) -> u64 {
    let [first, last] = [label.first(), label.last()].map(|octet| usize::from(octet.copied().unwrap_or(0)));
    1 << ((first * 7 + last * 3 + label.len()) & 63)
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
        assert_eq!(sought.text(), text);
        let fingerprints = FingerprintKey::new(&key);
        let mut expected = vec![fingerprints.root()];
        for label in labels.iter().rev() {
            let last = *expected.last().expect("the root is there");
            expected.push(fingerprints.below(last, &label.to_ascii_lowercase()));
        }
        let mut found = sought.suffixes(&fingerprints).to_vec();
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
        check(&[b"a".as_slice(); 15], b"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a");
        check(&[b"a".as_slice(); 16], b"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a");
        check(&[b"b".as_slice(); 127], &[b"b.".as_slice(); 127].concat()[..253]);
    }
}
