//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! All zones that are served: which one a name belongs to.

use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Rtype};

use crate::block::UNIT;
use crate::zone::Zone;

/// Names that are looked at ahead; of a larger batch, the first ones count.
pub const FORESEEN_MAX: usize = 64;
/// Octets from which on zones do not fit the processor's own memory, so that looking ahead pays for itself.
const LARGE_OCTETS_MIN: usize = 4 << 20;
/// Octets of a line of memory.
const LINE: usize = 64;

/// The zones that are served, found by the names that belong to them.
pub struct Zones {
    key: HashKey,
    zones: Box<[Served]>,
    /// Open addressing over the hashes of the apexes; the number of a zone + 1, or 0.
    table: Box<[(u64, u32)]>,
    /// Bit `n`: some apex has `n` labels.
    depths: u128,
    octets: usize,
}

/// A zone that we are responsible for, whether or not it could be loaded.
pub(crate) struct Served {
    apex: NameBuf,
    labels: u8,
    pub(crate) zone: Option<Arc<Zone>>,
}

// Once per configuration.
impl Zones {
    /// Puts zones together that were compiled with `key`. Of two with the same apex, the later one is served.
    pub fn new(key: HashKey, zones: Vec<Arc<Zone>>) -> Self {
        Self::with_missing(key, zones, &[])
    }

    /// Likewise; names in the zones `missing`, which could not be loaded, get SERVFAIL.
    pub fn with_missing(key: HashKey, zones: Vec<Arc<Zone>>, missing: &[NameBuf]) -> Self {
        let missing = missing.iter().map(|apex| (*apex, None));
        let all: Vec<(NameBuf, Option<Arc<Zone>>)> =
            missing.chain(zones.into_iter().map(|zone| (zone.apex, Some(zone)))).collect();
        Self::compile(key, all)
    }

    fn compile(key: HashKey, zones: Vec<(NameBuf, Option<Arc<Zone>>)>) -> Self {
        let mut chosen: Vec<Served> = std::vec![];
        let mut table = std::vec![(0, 0); (zones.len() * 2 + 1).next_power_of_two()];
        let mut depths = 0;
        for (apex, zone) in zones {
            let hash = key.hash_name(apex.as_name());
            let labels = apex.as_name().label_count() as u8;
            let mask = table.len() - 1;
            let mut at = hash as usize & mask;
            // Ends: at most half of the table is used.
            while let Some(slot) = table.get_mut(at) {
                let known = chosen.get_mut((slot.1 as usize).wrapping_sub(1));
                match known {
                    None => {
                        *slot = (hash, chosen.len() as u32 + 1);
                        depths |= 1 << (labels & 127);
                        chosen.push(Served { apex, labels, zone });
                        break;
                    }
                    Some(known) if slot.0 == hash && known.apex == apex => {
                        known.zone = zone;
                        break;
                    }
                    Some(_) => at = (at + 1) & mask,
                }
            }
        }
        let octets = chosen.iter().filter_map(|served| served.zone.as_ref()).map(|zone| zone.octets()).sum();
        Self { key, zones: chosen.into_boxed_slice(), table: table.into_boxed_slice(), depths, octets }
    }
}

impl Zones {
    /// Walks the zones that are loaded.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Zone>> {
        self.zones.iter().filter_map(|served| served.zone.as_ref())
    }

    /// Returns whether [`Zones::foresee`] pays for itself.
    pub const fn are_large(&self) -> bool {
        self.octets >= LARGE_OCTETS_MIN
    }

    /// Reads the memory that answers about these names will begin with, so that the waits for it overlap. Changes
    /// nothing but the time that those answers take.
    pub fn foresee<'n>(&self, names: impl Iterator<Item = Name<'n>>) {
        let mut places: [(u32, &[u8]); FORESEEN_MAX] = [(0, &[]); FORESEEN_MAX];
        for (name, place) in names.zip(&mut places) {
            if let Some(zone) = self.zone_of(name) {
                *place = (zone.begin_of_bucket(self.key.hash_name(name)), &zone.blocks);
            }
        }
        let mut read = 0;
        for (at, blocks) in places {
            let at = at as usize * UNIT;
            for at in [at, at + LINE] {
                read ^= blocks.get(at).copied().unwrap_or(0);
            }
        }
        // What nobody uses would not be read.
        std::hint::black_box(read);
    }

    pub(crate) const fn key(&self) -> &HashKey {
        &self.key
    }

    fn at_apex(&self, name: Name<'_>) -> Option<&Served> {
        let hash = self.key.hash_name(name);
        let mask = self.table.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        // Ends: at least half of the table is empty.
        loop {
            let &(other, number) = self.table.get(at)?;
            let served = self.zones.get((number as usize).checked_sub(1)?)?;
            if other == hash && served.apex.as_name() == name {
                return Some(served);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the zone that a name belongs to, if it is loaded: the deepest one at or above it.
    pub fn zone_of(&self, name: Name<'_>) -> Option<&Zone> {
        self.deepest(name, name.label_count())?.zone.as_deref()
    }

    /// Returns the zone that answers a question: DS belongs to the parent (RFC 4035 §3.1.4.1), if that is served.
    pub(crate) fn zone_for(&self, qname: Name<'_>, qtype: Rtype) -> Option<&Served> {
        let labels = qname.label_count();
        let served = self.deepest(qname, labels)?;
        if qtype == Rtype::DS
            && usize::from(served.labels) == labels
            && let Some(parent) = qname.parent()
            && let Some(above) = self.deepest(parent, labels.saturating_sub(1))
        {
            return Some(above);
        }
        Some(served)
    }

    #[inline]
    fn deepest(&self, mut name: Name<'_>, labels: usize) -> Option<&Served> {
        let mut depth = labels;
        // Ends: each turn takes a label off.
        loop {
            if self.depths >> (depth & 127) & 1 == 1
                && let Some(served) = self.at_apex(name)
            {
                return Some(served);
            }
            depth = depth.checked_sub(1)?;
            name = name.parent()?;
        }
    }
}
