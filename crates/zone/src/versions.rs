//! What versions of a zone have in common, for those who make something else of its records.

use std::sync::Arc;

use wire::{HashKey, Name, NameBuf};

use crate::block::Block;
use crate::build::ends_in_labels;
use crate::zone::Zone;

impl Zone {
    /// Returns the version that this one lies over, itself if it has all its names.
    pub fn base(self: &Arc<Self>) -> &Arc<Self> {
        self.under.as_ref().map_or(self, |under| &under.zone)
    }

    /// Walks the names that may differ from those of the version that this one lies over, those
    /// that are gone included.
    pub fn differing(&self) -> impl Iterator<Item = NameBuf> {
        let mut at = 0;
        let blocks = std::iter::from_fn(move || {
            let block = Block::read(&self.blocks, at)?;
            at = block.next();
            Some(block)
        });
        let has_own = self.under.is_some();
        blocks.take_while(move |_| has_own).map(|block| self.owner(block))
    }

    /// Walks the names below one, in no order that matters. Looks at every name of the zone.
    pub fn names_below(&self, top: Name<'_>) -> impl Iterator<Item = NameBuf> {
        let is_ours = top.is_at_or_below(self.apex());
        let top = self.relative(top).to_vec();
        let below = self.names().filter(move |block| {
            let labels = block.labels();
            is_ours && labels.len() > top.len() && ends_in_labels(labels, &top)
        });
        below.map(|block| self.owner(block))
    }

    /// Returns whether a name exists: it has records, or names below it do. `key` is the one that
    /// the zone was compiled with.
    pub fn has_name(&self, name: Name<'_>, key: &HashKey) -> bool {
        name.is_at_or_below(self.apex()) && self.find(name, key.hash_name(name)).is_some()
    }
}
