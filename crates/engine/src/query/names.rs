//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A table of names: finds a name, or the closest name above it that covers it.

mod build;

pub use sets::Sought;
use wire::HashKey;

/// One name of the table.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    name_at: u32,
    name_len: u8,
    covers: bool,
}

/// Names, each with the number it was given: 25 octets each, and the name.
pub struct NameTable {
    key: HashKey,
    slots: Box<[u32]>,
    entries: Box<[Entry]>,
    names: Box<[u8]>,
    /// The longest run of full slots that a look-up may have to cross.
    probes_max: usize,
    /// Bit `n`: some name of `n` labels covers the names below it.
    covering_depths: u128,
    /// One bit for each kind of last label; most look-ups end here.
    tops: u64,
}

/// A name found above the one looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of the name.
    pub index: usize,
    /// Octets of the name that was found.
    pub octets: usize,
}

impl NameTable {
    /// Returns how many names the table holds.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the table is empty.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Finds the name itself.
    pub fn exact(&self, sought: &Sought<'_>) -> Option<usize> {
        if self.tops & sought.top() == 0 {
            return None;
        }
        self.probe(sought.name().as_bytes(), sought.hash())
    }

    /// Walks the covering names at or above the name, the closest first, until `f` returns
    /// something.
    #[inline(always)]
    pub fn covering<T>(&self, sought: &Sought<'_>, f: impl FnMut(Found) -> Option<T>) -> Option<T> {
        // Most names end here: nothing above them is in the table.
        if self.tops & sought.top() == 0 && self.covering_depths as u64 & 1 == 0 {
            return None;
        }
        self.walk(sought, f)
    }

    fn walk<T>(&self, sought: &Sought<'_>, mut f: impl FnMut(Found) -> Option<T>) -> Option<T> {
        if self.covering_depths == 0 {
            return None;
        }
        let mut rest = sought.name();
        let mut depth = sought.depth();
        // Ends: each step takes one label off.
        loop {
            if self.covering_depths & 1_u128.checked_shl(depth).unwrap_or(0) != 0
                && let Some(index) = self.probe(rest.as_bytes(), self.key.hash_name(rest))
                && self.entries.get(index).is_some_and(|entry| entry.covers)
                && let Some(value) = f(Found { index, octets: rest.len() })
            {
                return Some(value);
            }
            rest = rest.parent()?;
            depth = depth.checked_sub(1)?;
        }
    }

    /// Finds a name in lower-case wire form.
    fn probe(&self, name: &[u8], hash: u64) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        for _ in 0..self.probes_max {
            let index = (*self.slots.get(at)?).checked_sub(1)? as usize;
            let entry = self.entries.get(index)?;
            if entry.hash == hash && self.name(entry) == Some(name) {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn name(&self, entry: &Entry) -> Option<&[u8]> {
        self.names.get(entry.name_at as usize..)?.get(..usize::from(entry.name_len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::testing::name;
    use wire::Folded;

    const KEY: HashKey = HashKey::new([1, 2]);

    fn sought<T>(text: &str, f: impl FnOnce(&Sought<'_>) -> T) -> T {
        let name = name(text);
        let mut folded = Folded::root();
        let hash = KEY.fold(name.as_name(), &mut folded);
        f(&Sought::new(&folded, hash))
    }

    #[test]
    fn the_closest_covering_name_comes_first() {
        let table = NameTable::compile(KEY, &[(name("org"), true), (name("example.org"), true)]);
        let mut seen = std::vec![];
        sought("www.example.org", |sought| {
            table.covering(sought, |found| {
                seen.push(found.index);
                None::<()>
            })
        });
        assert_eq!(seen, [1, 0]);
    }

    #[test]
    fn many_names_are_all_found() {
        let list: Vec<_> = (0..5000).map(|i| (name(&std::format!("n{i}.example.org")), false)).collect();
        let table = NameTable::compile(KEY, &list);
        for i in 0..list.len() {
            let found = sought(&std::format!("N{i}.example.org"), |sought| table.exact(sought));
            assert_eq!(found, Some(i));
        }
    }
}
