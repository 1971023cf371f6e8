//! Which depths in the tree of names a table has something at.

use crate::sync::{AtomicU64, Ordering};

/// A bit for each number of labels that a name in a table has or had, so that whoever looks for
/// names above another one tries no others. Bits stay set when what set them has gone.
pub(crate) struct Depths([AtomicU64; 2]);

impl Depths {
    pub(crate) fn none() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(0)])
    }

    /// Notes that there is a name with so many labels.
    pub(crate) fn note(&self, labels: usize) {
        if let Some(word) = self.0.get(labels / 64)
            && !self.has(labels)
        {
            word.fetch_or(1 << (labels % 64), Ordering::Relaxed);
        }
    }

    /// Returns whether there may be names with so many labels.
    pub(crate) fn has(&self, labels: usize) -> bool {
        let word = self.0.get(labels / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (labels % 64) & 1 == 1)
    }
}
