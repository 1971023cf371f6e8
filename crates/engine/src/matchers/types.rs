//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Sets of record types: one bit for each of the first 256, which all known ones but a few are.

use wire::Rtype;

/// A set of record types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeSet {
    low: [u64; 4],
    /// Those from 256 on.
    high: Box<[Rtype]>,
}

impl TypeSet {
    /// Builds the set.
    // Once per configuration.
    pub fn new(types: impl IntoIterator<Item = Rtype>) -> Self {
        let (mut low, mut high) = ([0; 4], std::vec![]);
        for rtype in types {
            match low.get_mut(usize::from(rtype.0 >> 6)) {
                Some(word) => *word |= 1_u64 << (rtype.0 & 63),
                None => high.push(rtype),
            }
        }
        high.sort_unstable();
        high.dedup();
        Self { low, high: high.into_boxed_slice() }
    }

    /// Returns whether the type is in the set.
    #[inline]
    pub fn contains(&self, rtype: Rtype) -> bool {
        match self.low.get(usize::from(rtype.0 >> 6)) {
            Some(word) => word >> (rtype.0 & 63) & 1 != 0,
            None => self.high.binary_search(&rtype).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_in_or_out() {
        let types = [0, 1, 63, 64, 255, 256, 32769, 65535].map(Rtype);
        let set = TypeSet::new(types);
        for number in 0..=u16::MAX {
            assert_eq!(set.contains(Rtype(number)), types.contains(&Rtype(number)), "{number}");
        }
        assert!(!TypeSet::default().contains(Rtype::A));
    }
}
