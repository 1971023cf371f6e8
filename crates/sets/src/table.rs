//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Rules on whole labels: a table of fingerprints, one line of memory for each look-up, behind a
//! filter that is small enough for the processor's own memory.
//!
//! A rule takes 8 octets for its fingerprint and 4 for its number in a table that is four fifths
//! full, and 12 bits in the filter: 16.5 octets in all. A look-up asks the filter about each suffix
//! of the name that some rule could be about, all at once, and reads the table only for what the
//! filter does not rule out.

use crate::fingerprint::{Fingerprint, FingerprintKey, scale};
use crate::memory::{LINE, Lines, ask_for};
use crate::sought::{DEPTHS_KEPT, Sought};

/// Fingerprints of one bucket, which is a line of memory.
const BUCKET: usize = LINE;
/// Of so many slots, [`FULL_SLOTS`] are used.
const FULL_OF: usize = 10;
/// Slots that are used of each [`FULL_OF`].
const FULL_SLOTS: usize = 8;
/// Bits of the filter for each rule.
const FILTER_BITS: usize = 12;
/// Rules from which on a table has a filter: a smaller table is in the processor's own memory
/// itself.
const FILTER_RULES_MIN: usize = 16 << 10;
/// Words of the filter of a smaller table.
const MARKS: usize = 4;
/// The part of a slot that says how far a rule reaches.
const REACH: u64 = 0b11;

/// Which names a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The name alone.
    Itself,
    /// Names below it, and not the name.
    Below,
    /// The name and those below it.
    ItselfAndBelow,
}

impl Reach {
    const fn bits(self) -> u64 {
        match self {
            Self::Itself => 0b01,
            Self::Below => 0b10,
            Self::ItselfAndBelow => 0b11,
        }
    }
}

/// A rule before it has its place.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    place: u64,
    /// As it stands in the table, reach included.
    slot: u64,
    origin: u32,
}

impl Entry {
    pub(crate) fn new(fingerprint: Fingerprint, reach: Reach, origin: u32) -> Self {
        Self { place: fingerprint.place, slot: kept(fingerprint.check) | reach.bits(), origin }
    }
}

/// Which rules there are, roughly: what most names fail at.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outline {
    /// Bit `n`: some rule is about a name of `n` labels itself.
    itself: u128,
    /// Bit `n`: some rule is about what lies below a name of `n` labels.
    below: u128,
    /// One bit for each kind of last label.
    tops: u64,
}

impl Outline {
    /// Adds a name of so many labels whose last one is of the kind `top`.
    pub(crate) const fn add(&mut self, depth: u32, top: u64, reach: Reach) {
        let bit = 1_u128 << (depth & 127);
        if !matches!(reach, Reach::Below) {
            self.itself |= bit;
        }
        if !matches!(reach, Reach::Itself) {
            self.below |= bit;
        }
        // What is below the root can end in any label.
        self.tops |= if depth == 0 { u64::MAX } else { top };
    }

    /// Returns one bit for each number of labels, as far as fingerprints are kept, that a rule
    /// about a suffix of a name of `of` labels could have.
    #[inline]
    const fn wanted(&self, of: u32) -> u32 {
        const KEPT: u32 = (1 << (DEPTHS_KEPT + 1)) - 1;
        if of as usize > DEPTHS_KEPT {
            return self.below as u32 & KEPT;
        }
        (self.below as u32 & ((1 << of) - 1)) | (self.itself as u32 & (1 << of))
    }

    /// Returns whether a rule could be about a suffix of a name of `of` labels that is longer than
    /// those that are kept.
    const fn wants_long(&self, of: u32) -> bool {
        self.below >> (DEPTHS_KEPT + 1) != 0 || self.itself >> (of & 127) & 1 != 0
    }
}

/// Rules on whole labels.
pub(crate) struct Table {
    /// The filter, from the first word on, and the buckets.
    lines: Lines,
    /// Words of the filter.
    blocks: usize,
    /// The line of the first bucket.
    buckets_at: usize,
    buckets: usize,
    /// The number of the rule in each slot.
    origins: Box<[u32]>,
    outline: Outline,
    /// A filter of a few rules, for tables that have no other: most names do not get to see the
    /// buckets of a small set.
    marks: [u64; MARKS],
    /// Buckets that finding a rule may take.
    probes_max: usize,
    len: usize,
}

impl Table {
    /// Gives each rule its place. Of rules on the same name, the first that reaches somewhere
    /// counts there.
    // Once per configuration.
    pub(crate) fn compile(entries: &[Entry], outline: Outline) -> Self {
        let table = Self::with_room(entries, outline, entries.len(), None);
        // Lists that hold much of each other leave room that nobody needs.
        if table.len * 10 < entries.len() * 9 {
            Self::with_room(entries, outline, table.len, None)
        } else {
            table
        }
    }

    /// Like [`Table::compile`], and notes what is kept of names that have rules which reach
    /// differently far, in order.
    // Once per configuration.
    pub(crate) fn compile_noting(entries: &[Entry], outline: Outline, both: &mut Vec<u64>) -> Self {
        let table = Self::with_room(entries, outline, entries.len(), Some(both));
        both.sort_unstable();
        both.dedup();
        table
    }

    // Once per configuration.
    fn with_room(entries: &[Entry], outline: Outline, rules: usize, mut both: Option<&mut Vec<u64>>) -> Self {
        let count = (rules * FULL_OF).div_ceil(FULL_SLOTS * BUCKET).max(usize::from(!entries.is_empty()));
        // One more where every slot might be taken, so that each search comes to an end.
        let count = if rules >= count * BUCKET { count + 1 } else { count };
        let blocks = if rules < FILTER_RULES_MIN { 0 } else { (rules * FILTER_BITS).div_ceil(64) };
        let buckets = if entries.is_empty() { 0 } else { count };
        let buckets_at = blocks.div_ceil(LINE);
        let mut table = Self {
            lines: Lines::zeroed(buckets_at + buckets),
            blocks,
            buckets_at,
            buckets,
            origins: std::vec![0; buckets * BUCKET].into_boxed_slice(),
            outline,
            marks: [0; MARKS],
            probes_max: 1,
            len: 0,
        };
        for entry in entries {
            table.put(entry, both.as_deref_mut());
        }
        table
    }

    // Once per configuration.
    fn put(&mut self, entry: &Entry, mut both: Option<&mut Vec<u64>>) {
        let mut at = scale(entry.place, self.buckets);
        let mut reach = entry.slot & REACH;
        // Ends: there are more slots than rules.
        for probes in 1..=self.buckets {
            let Some(bucket) = self.lines.line_mut(self.buckets_at + at) else { return };
            for (place, slot) in bucket.iter_mut().enumerate() {
                if *slot & !REACH == entry.slot & !REACH {
                    if let Some(both) = both.as_deref_mut().filter(|_| *slot != entry.slot) {
                        both.push(entry.slot & !REACH);
                    }
                    reach &= !*slot;
                    if reach == 0 {
                        return;
                    }
                }
                if *slot == 0 {
                    *slot = entry.slot & !REACH | reach;
                    if let Some(origin) = self.origins.get_mut(at * BUCKET + place) {
                        *origin = entry.origin;
                    }
                    let block = if self.blocks == 0 {
                        self.marks.get_mut(block_of(entry.place, MARKS))
                    } else {
                        self.lines.word_mut(block_of(entry.place, self.blocks))
                    };
                    if let Some(block) = block {
                        *block |= bits_of(entry.slot);
                    }
                    self.len += 1;
                    self.probes_max = self.probes_max.max(probes);
                    return;
                }
            }
            at = if at + 1 == self.buckets { 0 } else { at + 1 };
        }
    }

    /// Returns how many rules there are.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns how many octets the table takes.
    pub(crate) const fn octets(&self) -> usize {
        self.lines.octets() + size_of_val(&*self.origins)
    }

    /// Returns the number of the rule in a place that [`Table::find`] returned.
    pub(crate) fn origin(&self, place: usize) -> u32 {
        self.origins.get(place).copied().unwrap_or(0)
    }

    /// Returns whether some rule is about the name, whichever.
    #[inline]
    pub(crate) fn holds(&self, key: &FingerprintKey, sought: &Sought<'_>) -> bool {
        if self.outline.tops & sought.top() == 0 {
            return false;
        }
        // From the shortest suffix: a name is often below one of two labels, and those before them
        // need not be looked at.
        let mut wanted = self.outline.wanted(sought.depth());
        // Ends: each step takes one bit out.
        while wanted != 0 {
            let depth = wanted.trailing_zeros();
            wanted &= wanted - 1;
            let fingerprint = sought.suffix(key, depth);
            if self.may_hold(fingerprint)
                && self.probe(fingerprint, reach_at(depth, sought.depth())).is_some()
            {
                return true;
            }
        }
        sought.is_long() && self.outline.wants_long(sought.depth()) && self.find_long(key, sought).is_some()
    }

    /// Finds the rule that is closest to the name and returns its place.
    #[inline]
    pub(crate) fn find(&self, key: &FingerprintKey, sought: &Sought<'_>) -> Option<usize> {
        self.closest(key, sought).map(|(place, _)| place)
    }

    /// Like [`Table::find`]; returns how many labels the rule is about, too.
    #[inline]
    pub(crate) fn closest(&self, key: &FingerprintKey, sought: &Sought<'_>) -> Option<(usize, u32)> {
        if self.outline.tops & sought.top() == 0 {
            return None;
        }
        if sought.is_long()
            && self.outline.wants_long(sought.depth())
            && let Some(found) = self.find_long(key, sought)
        {
            return Some(found);
        }
        // From the longest suffix: the first that is found is the closest. No line of memory is
        // waited for to know which the next one is, as long as the processor predicts what the
        // filter says.
        let mut wanted = self.outline.wanted(sought.depth());
        while let Some(depth) = wanted.checked_ilog2() {
            wanted ^= 1 << depth;
            let fingerprint = sought.suffix(key, depth);
            if self.may_hold(fingerprint)
                && let Some(place) = self.probe(fingerprint, reach_at(depth, sought.depth()))
            {
                return Some((place, depth));
            }
        }
        None
    }

    /// Finds the rule that is closest to the name among those that `counts` says count, from the
    /// fingerprint and the number of labels.
    pub(crate) fn closest_of(
        &self,
        key: &FingerprintKey,
        sought: &Sought<'_>,
        counts: impl Fn(Fingerprint, u32) -> bool,
    ) -> Option<usize> {
        if self.outline.tops & sought.top() == 0 {
            return None;
        }
        let mut found = None;
        let mut look = |depth: u32, fingerprint: Fingerprint| {
            if self.is_wanted(depth, sought.depth())
                && self.may_hold(fingerprint)
                && let Some(place) = self.probe(fingerprint, reach_at(depth, sought.depth()))
                && counts(fingerprint, depth)
            {
                found = Some(place);
            }
        };
        for depth in 0..=sought.depth().min(DEPTHS_KEPT as u32) {
            look(depth, sought.suffix(key, depth));
        }
        if sought.is_long() {
            sought.long_suffixes(key, look);
        }
        found
    }

    /// Returns whether a rule on this very name reaches so far.
    pub(crate) fn has_rule(&self, fingerprint: Fingerprint, reach: Reach) -> bool {
        self.may_hold(fingerprint) && self.probe(fingerprint, reach.bits()).is_some()
    }

    /// Finds the rule that is closest to the name among those on suffixes that are longer than
    /// those that are kept.
    #[cold]
    fn find_long(&self, key: &FingerprintKey, sought: &Sought<'_>) -> Option<(usize, u32)> {
        let mut found = None;
        sought.long_suffixes(key, |depth, fingerprint| {
            if self.is_wanted(depth, sought.depth()) && self.may_hold(fingerprint) {
                let place = self.probe(fingerprint, reach_at(depth, sought.depth()));
                found = place.map(|place| (place, depth)).or(found);
            }
        });
        found
    }

    /// Calls `f` with the number of every rule on the name, the closest last.
    pub(crate) fn each(&self, key: &FingerprintKey, sought: &Sought<'_>, mut f: impl FnMut(u32)) {
        if self.outline.tops & sought.top() == 0 {
            return;
        }
        let mut look = |depth: u32, fingerprint: Fingerprint| {
            if self.is_wanted(depth, sought.depth())
                && self.may_hold(fingerprint)
                && let Some(place) = self.probe(fingerprint, reach_at(depth, sought.depth()))
            {
                f(self.origin(place));
            }
        };
        for depth in 0..=sought.depth().min(DEPTHS_KEPT as u32) {
            look(depth, sought.suffix(key, depth));
        }
        if sought.is_long() {
            sought.long_suffixes(key, look);
        }
    }

    /// Asks for the lines of the filter that [`Table::find`] will read, and notes what they will be
    /// asked.
    pub(crate) fn prefetch_filter(&self, key: &FingerprintKey, sought: &Sought<'_>, ahead: &mut Lookahead) {
        if self.blocks == 0 || self.outline.tops & sought.top() == 0 {
            return;
        }
        let mut wanted = self.outline.wanted(sought.depth());
        while let Some(depth) = wanted.checked_ilog2() {
            wanted ^= 1 << depth;
            let fingerprint = sought.suffix(key, depth);
            if let Some(block) = self.lines.word(block_of(fingerprint.place, self.blocks)) {
                ask_for(block);
            }
            ahead.note(fingerprint);
        }
    }

    /// Asks for the rules that the filter lets pass of what was noted.
    pub(crate) fn prefetch_rules(&self, ahead: &Lookahead) {
        for &fingerprint in ahead.noted() {
            let bucket = self.buckets_at + scale(fingerprint.place, self.buckets);
            if self.may_hold(fingerprint)
                && let Some(slot) = self.lines.word(bucket * LINE)
            {
                ask_for(slot);
            }
        }
    }

    /// Returns whether some rule could be about the suffix of `depth` labels of a name of `of`
    /// labels.
    #[inline]
    const fn is_wanted(&self, depth: u32, of: u32) -> bool {
        let depths = if depth == of { self.outline.itself } else { self.outline.below };
        depths >> (depth & 127) & 1 != 0
    }

    /// Returns whether the filter lets a fingerprint pass.
    #[inline]
    fn may_hold(&self, fingerprint: Fingerprint) -> bool {
        let block = if self.blocks == 0 {
            self.marks.get(block_of(fingerprint.place, MARKS))
        } else {
            self.lines.word(block_of(fingerprint.place, self.blocks))
        };
        let bits = bits_of(fingerprint.check);
        block.is_some_and(|block| block & bits == bits)
    }

    /// Finds the rule on a name; returns its place if it reaches where it must.
    #[inline]
    fn probe(&self, fingerprint: Fingerprint, reach: u64) -> Option<usize> {
        // The rule's own bits of the reach do not matter, but for the one that is needed.
        let (mask, wanted) = (!REACH | reach, kept(fingerprint.check) | reach);
        let mut at = scale(fingerprint.place, self.buckets);
        for _ in 0..self.probes_max {
            let bucket = self.lines.line(self.buckets_at + at)?;
            // All slots are compared: where a rule is cannot be foreseen, and to guess wrong costs
            // more.
            let mut found: u32 = 0;
            for (place, &slot) in bucket.iter().enumerate() {
                found |= u32::from(slot & mask == wanted) << place;
            }
            if found != 0 {
                return Some(at * BUCKET + found.trailing_zeros() as usize);
            }
            // Slots are filled in order: behind a free one there is nothing.
            if bucket.last() == Some(&0) {
                return None;
            }
            at = if at + 1 == self.buckets { 0 } else { at + 1 };
        }
        None
    }
}

/// Fingerprints that are noted of the names that are looked at ahead together.
const AHEAD_MAX: usize = 64;

/// What was noted of some look-ups that are about to be made in one table.
pub struct Lookahead {
    fingerprints: [Fingerprint; AHEAD_MAX],
    len: usize,
}

impl Default for Lookahead {
    fn default() -> Self {
        Self::new()
    }
}

impl Lookahead {
    /// Returns room for notes.
    pub const fn new() -> Self {
        Self { fingerprints: [Fingerprint { place: 0, check: 0 }; AHEAD_MAX], len: 0 }
    }

    /// Forgets what was noted.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Notes a fingerprint; what finds no room is waited for when it is looked up.
    fn note(&mut self, fingerprint: Fingerprint) {
        if let Some(place) = self.fingerprints.get_mut(self.len) {
            *place = fingerprint;
            self.len += 1;
        }
    }

    fn noted(&self) -> &[Fingerprint] {
        self.fingerprints.get(..self.len).unwrap_or(&[])
    }
}

/// Returns the bit of the reach that a rule needs to be about a suffix of `depth` labels of a name
/// of `of` labels.
#[inline]
const fn reach_at(depth: u32, of: u32) -> u64 {
    if depth == of { Reach::Itself.bits() } else { Reach::Below.bits() }
}

/// Returns what of a fingerprint is kept in a slot; never zero, which is a free slot.
#[inline]
pub(crate) const fn kept(check: u64) -> u64 {
    let kept = check & !REACH;
    if kept == 0 { REACH + 1 } else { kept }
}

/// Returns the block of the filter.
#[inline]
const fn block_of(place: u64, blocks: usize) -> usize {
    // The high half chooses the bucket; this is the other one.
    scale(place << 32, blocks)
}

/// Returns the four bits of a block that stand for a fingerprint.
#[inline]
const fn bits_of(check: u64) -> u64 {
    1 << (check >> 58) | 1 << (check >> 52 & 63) | 1 << (check >> 46 & 63) | 1 << (check >> 40 & 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Folded, HashKey, NameBuf};

    const KEY: HashKey = HashKey::new([1, 2]);

    fn number(text: &str) -> Entry {
        let key = FingerprintKey::new(&KEY);
        let name =
            text.split('.').rev().fold(key.root(), |parent, label| key.below(parent, label.as_bytes()));
        Entry::new(name, Reach::ItselfAndBelow, 7)
    }

    fn outline() -> Outline {
        Outline { itself: u128::MAX, below: u128::MAX, tops: u64::MAX }
    }

    fn find(table: &Table, text: &str) -> Option<u32> {
        let name = NameBuf::from_text(text).expect("a name");
        let mut folded = Folded::root();
        let hash = KEY.fold(name.as_name(), &mut folded);
        table.find(&FingerprintKey::new(&KEY), &Sought::new(&folded, hash)).map(|place| table.origin(place))
    }

    #[test]
    fn every_rule_is_found_at_any_size() {
        for count in [0, 1, 7, 8, 9, 100, FILTER_RULES_MIN - 1, FILTER_RULES_MIN + 1, 40_000] {
            let entries: Vec<Entry> = (0..count)
                .map(|n| Entry { origin: n as u32, ..number(&format!("n{n}.example.org")) })
                .collect();
            let table = Table::compile(&entries, outline());
            assert_eq!(table.len(), count);
            for n in 0..count {
                assert_eq!(find(&table, &format!("n{n}.example.org")), Some(n as u32), "{n} of {count}");
            }
            assert_eq!(find(&table, "n.example.org"), None);
            assert_eq!(find(&table, "example.org"), None);
        }
    }

    #[test]
    fn equal_rules_take_one_place() {
        let entries = [number("a.example"), Entry { origin: 8, ..number("a.example") }];
        let table = Table::compile(&entries, outline());
        assert_eq!((table.len(), find(&table, "x.a.example")), (1, Some(7)));
        let many: Vec<Entry> = (0..100_000).map(|n| number(&format!("n{}.example", n % 20_000))).collect();
        let table = Table::compile(&many, outline());
        assert_eq!(table.len(), 20_000);
        assert!(table.octets() < 20_000 * 17, "{}", table.octets());
    }

    #[test]
    fn a_rule_takes_less_than_seventeen_octets() {
        let entries: Vec<Entry> = (0..100_000).map(|n| number(&format!("n{n}.example"))).collect();
        let octets = Table::compile(&entries, outline()).octets();
        assert!(octets < 1_700_000, "{octets}");
    }
}
