//! The numbers of texts that stand in the database once, as far as they were used lately.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// Numbers by what they stand for: those used since the last change of generations, and those used
/// before.
///
/// When one generation is full, the one before is forgotten, so that what is used often stays.
pub(super) struct Known<K, V = i64> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    max: usize,
}

impl<K: Eq + Hash, V: Copy> Known<K, V> {
    /// Remembers at most `2 * max`.
    pub(super) fn new(max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), max }
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    pub(super) fn find<Q: ?Sized + Eq + Hash>(&mut self, what: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(number) = self.young.get(what) {
            return Some(*number);
        }
        let (key, number) = self.old.remove_entry(what)?;
        self.remember(key, number);
        Some(number)
    }

    pub(super) fn remember(&mut self, what: K, number: V) {
        if self.young.len() >= self.max {
            self.old.clear();
            mem::swap(&mut self.young, &mut self.old);
        }
        self.young.insert(what, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_often_stays_and_the_rest_is_bounded() {
        let mut known: Known<Box<[u8]>> = Known::new(100);
        known.remember([0; 4].into(), 7);
        for number in 1..10_000_u32 {
            known.remember(number.to_be_bytes().into(), 1);
            assert_eq!(known.find(&[0; 4][..]), Some(7), "after {number}");
            assert!(known.young.len() <= 100 && known.old.len() <= 100);
        }
        assert_eq!(known.find(&1_u32.to_be_bytes()[..]), None);
        known.clear();
        assert_eq!(known.find(&[0; 4][..]), None);
    }
}
