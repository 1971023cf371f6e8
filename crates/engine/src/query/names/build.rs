//! Builds tables of names, once per configuration.

use sets::top_bit;
use wire::{HashKey, Name, NameBuf};

use super::{Entry, NameTable};

/// Slots that one look-up should probe at most: the table is made larger until that is so.
const PROBES_WANTED: usize = 32;
/// Slots for each name beyond which the table is not made larger.
const SLOTS_PER_NAME_MAX: usize = 16;

impl NameTable {
    /// Builds the table from names and whether each covers what lies below it. The position of a
    /// name is its number.
    ///
    /// The names must differ from each other, letter case ignored.
    pub fn compile(key: HashKey, list: &[(NameBuf, bool)]) -> Self {
        Self::compile_from(key, list.iter().map(|(name, covers)| (name.as_name(), *covers)))
    }

    /// Like [`NameTable::compile`], from names that stand elsewhere.
    pub(crate) fn compile_from<'n>(
        key: HashKey,
        list: impl ExactSizeIterator<Item = (Name<'n>, bool)>,
    ) -> Self {
        let count = list.len();
        // At most half full, so that runs stay short.
        let mut capacity = (count * 2).next_power_of_two().max(2);
        let mut names = Vec::new();
        let mut entries = Vec::with_capacity(count);
        let (mut covering_depths, mut tops) = (0, 0);
        for (name, covers) in list {
            let folded = name.to_folded();
            let name = folded.as_name();
            if covers {
                covering_depths |= 1_u128 << name.label_count();
            }
            tops |= top_bit(name.labels().last().unwrap_or(&[]));
            entries.push(Entry {
                hash: key.hash_name(name),
                name_at: names.len() as u32,
                name_len: name.len() as u8,
                covers,
            });
            names.extend_from_slice(name.as_bytes());
        }
        let (slots, probes_max) = loop {
            let (slots, probes) = place(&entries, capacity);
            if probes <= PROBES_WANTED || capacity >= count * SLOTS_PER_NAME_MAX {
                break (slots, probes);
            }
            capacity *= 2;
        };
        Self {
            key,
            slots,
            entries: entries.into_boxed_slice(),
            names: names.into_boxed_slice(),
            probes_max,
            covering_depths,
            tops,
        }
    }
}

/// Places all entries; returns the slots and the most probes that finding one takes.
fn place(entries: &[Entry], capacity: usize) -> (Box<[u32]>, usize) {
    let mut slots = vec![0_u32; capacity].into_boxed_slice();
    let mut longest = 1;
    for (index, entry) in entries.iter().enumerate() {
        let mut at = entry.hash as usize & (capacity - 1);
        let mut probes = 1;
        // Ends: there are at least twice as many slots as entries.
        while slots.get(at).is_some_and(|&slot| slot != 0) {
            at = (at + 1) & (capacity - 1);
            probes += 1;
        }
        longest = longest.max(probes);
        if let Some(slot) = slots.get_mut(at) {
            *slot = index as u32 + 1;
        }
    }
    (slots, longest)
}
