//! A zone's records, one after the other, in the order that people and other programs expect.

use std::ops::Range;

use wire::{Name, NameBuf, Rtype, Ttl};

use crate::block::{Block, Records};
use crate::canonical::Key;
use crate::zone::{Denial, Zone};

impl Zone {
    /// Hands out every record: the SOA first, then name by name in canonical order (RFC 4034 §6.1), signatures after what
    /// they cover, NSEC3 records last. Data has its names in full.
    pub fn for_each_record(&self, mut f: impl FnMut(Name<'_>, Rtype, Ttl, &[u8])) {
        let mut keys = Vec::new();
        let mut names: Vec<(Range<usize>, Block<'_>)> = Vec::with_capacity(self.facts.names);
        let mut at = 0;
        while let Some(block) = Block::read(&self.blocks, at) {
            let start = keys.len();
            keys.extend_from_slice(Key::new(block.labels()).as_bytes());
            names.push((start..keys.len(), block));
            at = block.next();
        }
        names.sort_unstable_by(|(a, _), (b, _)| keys[a.clone()].cmp(&keys[b.clone()]));
        let hashed = match &self.denial {
            Denial::Nsec3(chain) => chain.hashes.len(),
            Denial::None | Denial::Nsec(_) => 0,
        };
        let proofs = (0..hashed).filter_map(|number| match &self.denial {
            Denial::Nsec3(chain) => chain.numbered(number),
            Denial::None | Denial::Nsec(_) => None,
        });
        for block in names.iter().map(|(_, block)| *block).chain(proofs) {
            let owner = NameBuf::below(block.labels(), self.apex()).unwrap_or(self.apex);
            let mut sets: Vec<_> = block.rrsets().collect();
            sets.sort_by_key(|rrset| rrset.rtype != Rtype::SOA);
            for rrset in sets {
                for record in Records(rrset.records).chain(Records(rrset.signatures)) {
                    f(owner.as_name(), record.rtype, Ttl::new(record.ttl), record.rdata);
                }
            }
        }
    }
}
