//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! All zones that are served: which one a name belongs to.
//!
//! Zones stand in shards by the hashes of their apexes. Another set of zones that differs in one of
//! them shares all shards but that one's, so that a change costs the same with one zone and with a
//! hundred thousand.
//!
//! Long because its tests belong to it.

use std::net::IpAddr;
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Rtype};

use crate::alias::Aliases;
use crate::answer::ALIASES_MAX;
use crate::block::{Marks, Records};
use crate::specials::Specials;
use crate::zone::{Place, Zone};

/// Names that are looked at ahead; of a larger batch, the first ones count.
pub const LOOKAHEAD_MAX: usize = 64;
/// Octets from which on zones do not fit the processor's own memory, so that looking ahead pays for
/// itself.
const LARGE_OCTETS_MIN: usize = 4 << 20;
/// Zones that a shard has, on average, when it is made.
const ZONES_PER_SHARD: usize = 32;
/// Shards that there may be: sharing them costs one atomic operation each.
const SHARDS_MAX: usize = 1 << 12;
/// Numbers of labels that a name may have, the root's included.
const DEPTHS: usize = 128;

/// The zones that are served, found by the names that belong to them.
pub struct Zones {
    key: HashKey,
    shards: Box<[Arc<Shard>]>,
    /// How many apexes have so many labels.
    depth_counts: Box<[u32; DEPTHS]>,
    count: usize,
    octets: usize,
    /// Whether the records of an RRset take turns in being the first.
    rotates: bool,
    /// How many zones answer something beside their records.
    special_count: usize,
    /// What the targets of ALIAS records have that lie elsewhere.
    aliases: Option<Arc<Aliases>>,
}

/// Some of the zones: open addressing over the hashes of their apexes, at most half of it used.
struct Shard {
    slots: Box<[Slot]>,
    count: usize,
}

#[derive(Clone)]
struct Slot {
    hash: u64,
    served: Option<Served>,
    /// What the zone answers beside its records.
    specials: Option<Arc<Specials>>,
}

// Two to a line of memory.
const _: () = assert!(size_of::<Slot>() == 32);

/// A zone that we are responsible for, whether or not it could be loaded.
#[derive(Clone)]
pub(crate) enum Served {
    Loaded(Arc<Zone>),
    Missing(Arc<NameBuf>),
}

impl Served {
    pub(crate) fn apex(&self) -> Name<'_> {
        match self {
            Self::Loaded(zone) => zone.apex(),
            Self::Missing(apex) => apex.as_name(),
        }
    }

    /// Returns the zone, if it is loaded.
    pub(crate) fn zone(&self) -> Option<&Zone> {
        match self {
            Self::Loaded(zone) => Some(zone),
            Self::Missing(_) => None,
        }
    }

    fn octets(&self) -> usize {
        self.zone().map_or(0, Zone::octets)
    }
}

/// What becomes of one zone among others.
pub enum Change {
    /// It is served, in the place of the one that has its apex.
    Serve(Arc<Zone>),
    /// We are responsible for it but cannot answer from it: its names get SERVFAIL.
    Unload(NameBuf),
    /// It is not ours any more.
    Remove(NameBuf),
    /// It answers this beside its records, if it is ours; a new version of it changes nothing about
    /// that.
    Special(NameBuf, Arc<Specials>),
}

impl Change {
    fn apex(&self) -> Name<'_> {
        match self {
            Self::Serve(zone) => zone.apex(),
            Self::Unload(apex) | Self::Remove(apex) | Self::Special(apex, _) => apex.as_name(),
        }
    }
}

// Once per configuration.
impl Shard {
    fn with_room(zones: usize) -> Self {
        let slots = (zones * 2 + 2).next_power_of_two();
        Self {
            slots: std::vec![Slot { hash: 0, served: None, specials: None }; slots].into_boxed_slice(),
            count: 0,
        }
    }

    /// Returns where a zone is.
    fn slot_mut(&mut self, hash: u64, apex: Name<'_>) -> Option<&mut Slot> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        // Ends: at least half of the slots are empty.
        loop {
            let slot = self.slots.get(at)?;
            if slot.hash == hash && slot.served.as_ref()?.apex() == apex {
                return self.slots.get_mut(at);
            }
            slot.served.as_ref()?;
            at = (at + 1) & mask;
        }
    }

    /// Puts a zone in; returns the one with the same apex that was there, whose answers beside its
    /// records stay.
    fn put(&mut self, hash: u64, served: Served) -> Option<Served> {
        if self.count * 2 + 2 > self.slots.len() {
            let mut larger = Self::with_room(self.count * 2 + 1);
            for slot in std::mem::take(&mut self.slots) {
                larger.put_slot(slot);
            }
            *self = larger;
        }
        self.put_slot(Slot { hash, served: Some(served), specials: None })
    }

    /// Puts in what stood in another shard, if that is anything; there is room for it. Returns the
    /// zone with the same apex that was there, whose answers beside its records stay.
    fn put_slot(&mut self, new: Slot) -> Option<Served> {
        let apex = new.served.as_ref()?.apex();
        let mask = self.slots.len() - 1;
        let mut at = new.hash as usize & mask;
        // Ends: at most half of the slots are used.
        loop {
            let slot = self.slots.get_mut(at)?;
            match &slot.served {
                None => {
                    *slot = new;
                    self.count += 1;
                    return None;
                }
                Some(known) if slot.hash == new.hash && known.apex() == apex => {
                    return std::mem::replace(&mut slot.served, new.served);
                }
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    /// Takes a zone out and returns it, and whether it answered something beside its records.
    fn take(&mut self, hash: u64, apex: Name<'_>) -> Option<(Served, bool)> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        // Ends: at least half of the slots are empty.
        let taken = loop {
            let slot = self.slots.get_mut(at)?;
            if slot.hash == hash && slot.served.as_ref()?.apex() == apex {
                let had_specials = slot.specials.take().is_some();
                break slot.served.take().map(|served| (served, had_specials));
            }
            slot.served.as_ref()?;
            at = (at + 1) & mask;
        };
        self.count -= 1;
        // Those behind it move up, so that no search ends at the gap.
        let mut gap = at;
        loop {
            at = (at + 1) & mask;
            let Some(slot) = self.slots.get(at).filter(|slot| slot.served.is_some()) else { break };
            let home = slot.hash as usize & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.slots.swap(gap, at);
                gap = at;
            }
        }
        taken
    }

    fn copy(&self) -> Self {
        Self { slots: self.slots.clone(), count: self.count }
    }
}

// Once per configuration.
impl Zones {
    /// Puts zones together that were compiled with `key`. Of two with the same apex, the later one
    /// is served.
    pub fn new(key: HashKey, zones: Vec<Arc<Zone>>) -> Self {
        Self::with_missing(key, zones, &[])
    }

    /// Likewise; names in the zones `missing`, which could not be loaded, get SERVFAIL.
    pub fn with_missing(key: HashKey, zones: Vec<Arc<Zone>>, missing: &[NameBuf]) -> Self {
        let none = Self {
            key,
            shards: [Arc::new(Shard::with_room(0))].into(),
            depth_counts: Box::new([0; DEPTHS]),
            count: 0,
            octets: 0,
            rotates: false,
            special_count: 0,
            aliases: None,
        };
        let missing = missing.iter().map(|apex| Change::Unload(*apex));
        none.with_all(missing.chain(zones.into_iter().map(Change::Serve)))
    }

    /// Returns these zones, the records of each RRset of an answer taking turns in being the first.
    #[must_use]
    pub fn rotating(self) -> Self {
        Self { rotates: true, ..self }
    }

    /// Returns these zones with what some of them, by apex, answer beside their records. It stays
    /// when zones are replaced.
    #[must_use]
    pub fn with_specials(self, specials: Vec<(NameBuf, Specials)>) -> Self {
        if specials.is_empty() {
            return self;
        }
        let special = |(apex, what)| Change::Special(apex, Arc::new(what));
        self.with_all(specials.into_iter().map(special))
    }

    /// Returns these zones with a memory for what the targets of ALIAS records have. It stays when
    /// zones are replaced.
    #[must_use]
    pub fn with_aliases(self, aliases: Arc<Aliases>) -> Self {
        Self { aliases: Some(aliases), ..self }
    }

    /// Returns these zones with `zone` added, or in the place of the one that has its apex. Costs
    /// the same with any number of zones; readers of the zones as they were are not disturbed.
    #[must_use]
    pub fn with_replaced(&self, zone: Arc<Zone>) -> Self {
        self.with_all([Change::Serve(zone)])
    }

    /// Returns these zones with one that we are responsible for but cannot answer from: its names
    /// get SERVFAIL. So it is with a zone that expired, or that was not transferred yet.
    #[must_use]
    pub fn with_unloaded(&self, apex: Name<'_>) -> Self {
        self.with_all([Change::Unload(apex.to_buf())])
    }

    /// Returns these zones without one of them, loaded or not.
    #[must_use]
    pub fn with_removed(&self, apex: Name<'_>) -> Self {
        self.with_all([Change::Remove(apex.to_buf())])
    }

    /// Returns these zones with all changes made, in their order. Each shard that is concerned is
    /// copied once: many changes cost in proportion to their number, or to that of the zones if
    /// that is less.
    #[must_use]
    pub fn with_all(&self, changes: impl IntoIterator<Item = Change>) -> Self {
        let changes: Vec<Change> = changes.into_iter().collect();
        // Zones that were added one by one want more shards at some time.
        let most = self.count + changes.len();
        let mut these = match self.shards.len() {
            shards if shards < SHARDS_MAX && most > shards * ZONES_PER_SHARD * 4 => self.spread(most),
            _ => self.shared(),
        };
        let mut opened: Vec<Option<Shard>> = Vec::new();
        opened.resize_with(these.shards.len(), || None);
        for change in changes {
            let hash = these.key.hash_name(change.apex());
            let number = shard_of(hash, opened.len());
            let (Some(place), Some(before)) = (opened.get_mut(number), these.shards.get(number)) else {
                continue;
            };
            let shard = place.get_or_insert_with(|| before.copy());
            let labels = change.apex().label_count();
            let served = match change {
                Change::Serve(zone) => Served::Loaded(zone),
                Change::Unload(apex) => Served::Missing(Arc::new(apex)),
                Change::Remove(apex) => {
                    if let Some((taken, had_specials)) = shard.take(hash, apex.as_name()) {
                        these.count_out(labels, taken.octets());
                        these.special_count -= usize::from(had_specials);
                    }
                    continue;
                }
                Change::Special(apex, specials) => {
                    if let Some(slot) = shard.slot_mut(hash, apex.as_name())
                        && slot.specials.replace(specials).is_none()
                    {
                        these.special_count += 1;
                    }
                    continue;
                }
            };
            let octets = served.octets();
            let replaced = shard.put(hash, served);
            these.count_in(labels, octets, replaced.as_ref());
        }
        for (place, changed) in these.shards.iter_mut().zip(opened) {
            if let Some(changed) = changed {
                *place = Arc::new(changed);
            }
        }
        these
    }

    /// Returns these zones in as many shards as so many zones want.
    fn spread(&self, zones: usize) -> Self {
        let shard_count = shards_for(zones);
        let mut shards: Vec<Shard> =
            (0..shard_count).map(|_| Shard::with_room(zones / shard_count)).collect();
        for slot in self.shards.iter().flat_map(|shard| &shard.slots) {
            if let (Some(served), Some(shard)) =
                (&slot.served, shards.get_mut(shard_of(slot.hash, shard_count)))
            {
                shard.put(slot.hash, served.clone());
                if let (Some(specials), Some(new)) =
                    (&slot.specials, shard.slot_mut(slot.hash, served.apex()))
                {
                    new.specials = Some(Arc::clone(specials));
                }
            }
        }
        Self { shards: shards.into_iter().map(Arc::new).collect(), ..self.shared() }
    }

    /// Returns how many shards of these zones are not shared with others.
    #[cfg(test)]
    fn own_shards(&self, others: &Self) -> usize {
        let is_shared = |shard: &&Arc<Shard>| others.shards.iter().any(|other| Arc::ptr_eq(shard, other));
        self.shards.len() - self.shards.iter().filter(is_shared).count()
    }

    /// Returns these zones once more, all shards shared.
    fn shared(&self) -> Self {
        Self {
            key: self.key,
            shards: self.shards.clone(),
            depth_counts: self.depth_counts.clone(),
            count: self.count,
            octets: self.octets,
            rotates: self.rotates,
            special_count: self.special_count,
            aliases: self.aliases.as_ref().map(Arc::clone),
        }
    }

    fn count_in(&mut self, labels: usize, octets: usize, before: Option<&Served>) {
        if let Some(before) = before {
            self.count_out(labels, before.octets());
        }
        self.count += 1;
        self.octets += octets;
        if let Some(count) = self.depth_counts.get_mut(labels) {
            *count += 1;
        }
    }

    fn count_out(&mut self, labels: usize, octets: usize) {
        self.count -= 1;
        self.octets -= octets;
        if let Some(count) = self.depth_counts.get_mut(labels) {
            *count -= 1;
        }
    }
}

/// Returns how many shards so many zones are kept in.
fn shards_for(zones: usize) -> usize {
    (zones / ZONES_PER_SHARD).next_power_of_two().min(SHARDS_MAX)
}

/// Returns which of `shards` a hash belongs to. Takes the upper bits: places in a shard go by the
/// lower ones.
const fn shard_of(hash: u64, shards: usize) -> usize {
    ((hash as u128 * shards as u128) >> 64) as usize
}

impl Zones {
    /// Walks the zones that are loaded, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Zone>> {
        self.served().filter_map(|served| match served {
            Served::Loaded(zone) => Some(zone),
            Served::Missing(_) => None,
        })
    }

    /// Walks the apexes of zones that are not loaded, in no order.
    pub fn unloaded(&self) -> impl Iterator<Item = Name<'_>> {
        self.served().filter_map(|served| match served {
            Served::Loaded(_) => None,
            Served::Missing(apex) => Some(apex.as_name()),
        })
    }

    fn served(&self) -> impl Iterator<Item = &Served> {
        self.shards.iter().flat_map(|shard| &shard.slots).filter_map(|slot| slot.served.as_ref())
    }

    /// Returns how many zones there are, loaded or not.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there is no zone.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the zone with this apex, if it is loaded.
    pub fn get(&self, apex: Name<'_>) -> Option<&Arc<Zone>> {
        match self.at_apex(apex)? {
            Served::Loaded(zone) => Some(zone),
            Served::Missing(_) => None,
        }
    }

    /// Returns whether we are responsible for a zone with this apex, loaded or not.
    pub fn has(&self, apex: Name<'_>) -> bool {
        self.at_apex(apex).is_some()
    }

    /// Returns whether [`Zones::prefetch_lines`] pays for itself.
    pub const fn are_large(&self) -> bool {
        self.octets >= LARGE_OCTETS_MIN
    }

    /// Asks for the memory that answers about these names will begin with, so that the waits for it
    /// overlap. Changes nothing but the time that those answers take.
    pub fn prefetch_lines<'n>(&self, names: impl Iterator<Item = Name<'n>>) {
        let mut places: [Option<Place<'_>>; LOOKAHEAD_MAX] = [const { None }; LOOKAHEAD_MAX];
        // The index of all names first, and then, where it points to.
        for (name, place) in names.zip(&mut places) {
            *place = self.zone_of(name).and_then(|zone| zone.place_of(self.key.hash_name(name)));
        }
        for place in places.iter().flatten() {
            place.ask_for_names();
        }
    }

    /// Returns whether answers may depend on who asks.
    pub const fn are_for_clients(&self) -> bool {
        self.special_count > 0
    }

    /// Returns whether answers take a random number.
    pub const fn draw(&self) -> bool {
        self.rotates || self.special_count > 0
    }

    /// Returns whether the records of an RRset take turns in being the first.
    pub const fn rotates(&self) -> bool {
        self.rotates
    }

    /// Returns what a zone answers beside its records.
    #[inline]
    pub(crate) fn specials_of(&self, zone: &Zone) -> Option<&Specials> {
        if self.special_count == 0 {
            return None;
        }
        self.find_specials(zone.apex())
    }

    /// Returns whether a client may query the zone with this apex.
    pub(crate) fn admits(&self, apex: Name<'_>, client: Option<IpAddr>) -> bool {
        self.special_count == 0 || self.find_specials(apex).is_none_or(|specials| specials.admits(client))
    }

    /// Returns whether everybody may query the zone with this apex.
    pub fn is_for_everybody(&self, apex: Name<'_>) -> bool {
        self.special_count == 0 || self.find_specials(apex).is_none_or(Specials::are_for_everybody)
    }

    /// Returns what the targets of ALIAS records have that lie elsewhere.
    pub(crate) fn aliases(&self) -> Option<&Aliases> {
        self.aliases.as_deref()
    }

    /// Returns the name that an ALIAS to `target` ends at, if that lies in none of these zones:
    /// whose addresses are to be asked for.
    pub fn end_of_alias(&self, target: Name<'_>) -> Option<NameBuf> {
        let mut target = target.to_buf();
        // Ends: a loop of aliases is as long as they may be.
        for _ in 0..ALIASES_MAX {
            let Some(zone) = self.zone_of(target.as_name()) else {
                return (!self.covers(target.as_name())).then_some(target);
            };
            let hash = self.key.hash_name(target.as_name());
            let found = zone.find(target.as_name(), hash);
            let is_cut = |above: Name<'_>| {
                zone.find(above, self.key.hash_name(above))
                    .is_some_and(|block| block.marks().has(Marks::CUT.with(Marks::BELOW)))
            };
            let mut above = Some(target.as_name()).filter(|above| above.len() >= zone.apex().len());
            while let Some(name) = above {
                if is_cut(name) {
                    return Some(target);
                }
                above = name.parent().filter(|above| above.len() >= zone.apex().len());
            }
            let next = found.and_then(|block| block.rrset(Rtype::CNAME).or_else(|| block.alias()));
            let record = next.and_then(|rrset| Records(rrset.records).next())?;
            target = Name::parse(record.rdata).ok()?.0.to_buf();
        }
        None
    }

    /// Returns what names are hashed with.
    pub const fn key(&self) -> &HashKey {
        &self.key
    }

    #[cold]
    fn find_specials(&self, apex: Name<'_>) -> Option<&Specials> {
        self.slot_at(apex)?.specials.as_deref()
    }

    fn at_apex(&self, name: Name<'_>) -> Option<&Served> {
        self.slot_at(name)?.served.as_ref()
    }

    fn slot_at(&self, name: Name<'_>) -> Option<&Slot> {
        self.slot_of(name, self.key.hash_name(name))
    }

    #[inline]
    fn slot_of(&self, name: Name<'_>, hash: u64) -> Option<&Slot> {
        let slots = &self.shards.get(shard_of(hash, self.shards.len()))?.slots;
        let mask = slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        // Ends: at least half of the slots are empty.
        loop {
            let slot = slots.get(at)?;
            let served = slot.served.as_ref()?;
            if slot.hash == hash && served.apex() == name {
                return Some(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the zone with this apex: `Some(None)` if it is ours and could not be loaded.
    pub fn at(&self, apex: Name<'_>) -> Option<Option<&Arc<Zone>>> {
        self.at_apex(apex).map(|served| match served {
            Served::Loaded(zone) => Some(zone),
            Served::Missing(_) => None,
        })
    }

    /// Returns the zone that a name belongs to, if it is loaded: the deepest one at or above it.
    pub fn zone_of(&self, name: Name<'_>) -> Option<&Zone> {
        self.deepest(name)?.zone()
    }

    /// Returns whether a name belongs to this one of the zones, as most names do that its own
    /// records have. No look-up among all of them is made for it, so that it may say no although it
    /// does.
    pub(crate) fn certainly_in(&self, name: Name<'_>, zone: &Zone) -> bool {
        let (mut above, mut depth) = (name, name.label_count());
        while above.len() > zone.apex().len() {
            // A deeper zone may have it.
            if self.has_depth(depth) {
                return false;
            }
            let Some(parent) = above.parent() else { return false };
            (above, depth) = (parent, depth.saturating_sub(1));
        }
        above == zone.apex()
    }

    /// Returns whether a name belongs to one of the zones, loaded or not.
    pub fn covers(&self, name: Name<'_>) -> bool {
        self.deepest(name).is_some()
    }

    /// Returns whether a name is the apex of one of the zones, and none above it is served here:
    /// then its DS records are somewhere else.
    pub fn has_parent_elsewhere(&self, name: Name<'_>) -> bool {
        let labels = name.label_count();
        let is_apex = labels > 0 && self.has_depth(labels) && self.at_apex(name).is_some();
        is_apex && self.above(name, labels).is_none()
    }

    /// Returns the hash of a name and the number of its labels.
    pub(crate) fn known_of(&self, name: Name<'_>) -> (u64, usize) {
        (self.key.hash_name(name), name.label_count())
    }

    /// Returns the zone that answers a question: DS belongs to the parent (RFC 4035 §3.1.4.1), if
    /// that is served. The hash of the name and the number of its labels are known.
    #[inline]
    pub(crate) fn zone_for(
        &self,
        qname: Name<'_>,
        (hash, labels): (u64, usize),
        qtype: Rtype,
    ) -> Option<&Served> {
        let Some(served) = self.served_at(qname, hash, labels) else { return self.above(qname, labels) };
        if qtype == Rtype::DS
            && let Some(above) = self.above(qname, labels)
        {
            return Some(above);
        }
        Some(served)
    }

    /// Returns the deepest zone at or above a name.
    fn deepest(&self, name: Name<'_>) -> Option<&Served> {
        let labels = name.label_count();
        let at = if self.has_depth(labels) { self.at_apex(name) } else { None };
        at.or_else(|| self.above(name, labels))
    }

    /// Returns the deepest zone above a name of so many labels.
    fn above(&self, name: Name<'_>, labels: usize) -> Option<&Served> {
        let (mut name, mut depth) = (name, labels);
        // Ends: each turn takes a label off.
        loop {
            depth = depth.checked_sub(1)?;
            name = name.parent()?;
            if self.has_depth(depth)
                && let Some(served) = self.at_apex(name)
            {
                return Some(served);
            }
        }
    }

    /// Returns the zone whose apex is a name of so many labels with this hash.
    #[inline]
    fn served_at(&self, name: Name<'_>, hash: u64, labels: usize) -> Option<&Served> {
        if !self.has_depth(labels) {
            return None;
        }
        self.slot_of(name, hash)?.served.as_ref()
    }

    /// Returns whether some apex has so many labels.
    #[inline]
    fn has_depth(&self, labels: usize) -> bool {
        self.depth_counts.get(labels).is_some_and(|&count| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Record};

    const KEY: HashKey = HashKey::new([3, 5]);

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    fn zone(apex: &NameBuf, serial: u32) -> Arc<Zone> {
        let mut soa = b"\0\0".to_vec();
        for number in [serial, 2, 3, 4, 5] {
            soa.extend_from_slice(&number.to_be_bytes());
        }
        let mut builder = Builder::new(apex.as_name(), KEY);
        builder.add(&Record::new(apex.as_name(), Rtype::SOA, wire::Ttl::new(60), &soa));
        Arc::new(builder.compile().zone.expect("a zone"))
    }

    fn serial(zones: &Zones, text: &str) -> Option<u32> {
        zones.zone_of(name(text).as_name()).map(|zone| zone.facts().serial)
    }

    #[test]
    fn the_parent_of_a_zone_is_elsewhere_unless_a_zone_above_is_served() {
        let zones = Zones::new(KEY, vec![zone(&name("a."), 1), zone(&name("b.a."), 2), zone(&name("."), 3)]);
        let elsewhere = |zones: &Zones, text: &str| zones.has_parent_elsewhere(name(text).as_name());
        assert!(["a", "b.a", ".", "x.a"].iter().all(|text| !elsewhere(&zones, text)));
        let zones = Zones::new(KEY, vec![zone(&name("a."), 1), zone(&name("b.a."), 2)]);
        assert_eq!(["a", "b.a", "x.a", "c"].map(|text| elsewhere(&zones, text)), [true, false, false, false]);
    }

    #[test]
    fn zones_that_differ_in_one_share_the_others() {
        let before = Zones::new(KEY, vec![zone(&name("a."), 1), zone(&name("b.a."), 2)]);
        let after = before.with_replaced(zone(&name("b.a."), 3)).with_replaced(zone(&name("c."), 4));
        assert_eq!((serial(&before, "x.b.a"), serial(&before, "c")), (Some(2), None));
        assert_eq!((serial(&after, "x.b.a"), serial(&after, "c"), after.len()), (Some(3), Some(4), 3));
        assert!(Arc::ptr_eq(
            before.get(name("a").as_name()).expect("a zone"),
            after.get(name("a").as_name()).expect("a zone")
        ));
        // What lies in a zone that is gone belongs to the one above.
        let without = after.with_removed(name("b.a").as_name());
        assert_eq!((serial(&without, "x.b.a"), without.len()), (Some(1), 2));
        let broken = after.with_unloaded(name("b.a").as_name());
        assert_eq!((serial(&broken, "x.b.a"), broken.len()), (None, 3));
        assert!(broken.covers(name("x.b.a").as_name()) && broken.has(name("b.a").as_name()));
        assert_eq!(broken.unloaded().map(Name::to_buf).collect::<Vec<_>>(), [name("b.a")]);
        assert!(!without.with_removed(name("c").as_name()).covers(name("c").as_name()));
    }

    #[test]
    fn one_more_of_many_zones_costs_one_shard() {
        let all = (0..20_000).map(|i| zone(&name(&format!("z{i}.example")), i)).collect();
        let many = Zones::new(KEY, all);
        assert!(many.shards.len() <= 1024 && many.shards.iter().all(|shard| shard.slots.len() <= 512));
        let more = many.with_replaced(zone(&name("new.example"), 1));
        let fewer = more.with_removed(name("z7.example").as_name());
        assert_eq!((more.own_shards(&many), fewer.own_shards(&more)), (1, 1));
        assert_eq!((more.len(), fewer.len()), (20_001, 20_000));
        // A thousand more at once do not copy a shard twice, and stay found.
        let changes = (0..1000).map(|i| Change::Serve(zone(&name(&format!("n{i}.example")), i)));
        let larger = fewer.with_all(changes);
        assert_eq!(larger.len(), 21_000);
        assert_eq!((serial(&larger, "x.n999.example"), serial(&larger, "z7.example")), (Some(999), None));
    }

    #[test]
    fn of_several_changes_to_a_zone_the_last_one_counts() {
        let a = name("a");
        let zones = Zones::new(KEY, vec![zone(&a, 1)]);
        let changed = zones.with_all([
            Change::Remove(a),
            Change::Serve(zone(&a, 2)),
            Change::Unload(a),
            Change::Serve(zone(&a, 3)),
        ]);
        assert_eq!((serial(&changed, "a"), changed.len(), changed.octets), (Some(3), 1, zones.octets));
        assert!(changed.with_all([Change::Unload(a), Change::Remove(a)]).is_empty());
    }

    #[test]
    fn what_a_zone_answers_beside_its_records_comes_and_goes_with_it() {
        let names: Vec<NameBuf> = (0..500).map(|i| name(&format!("z{i}.example"))).collect();
        let specials = || Arc::new(Specials::new(&KEY, Vec::new(), Vec::new()));
        let has = |zones: &Zones, apex: &NameBuf| {
            zones.get(apex.as_name()).is_some_and(|zone| zones.specials_of(zone).is_some())
        };
        let mut zones = Zones::new(KEY, vec![]).with_all([Change::Special(names[0], specials())]);
        // There is no such zone yet.
        assert!(!zones.are_for_clients());
        for (number, apex) in names.iter().enumerate() {
            zones = zones.with_all([Change::Serve(zone(apex, 1))]);
            if number % 3 == 0 {
                zones = zones.with_all([Change::Special(*apex, specials())]);
            }
        }
        // Other versions, and more shards, change nothing of it.
        zones = zones.with_all(names.iter().map(|apex| Change::Serve(zone(apex, 2))));
        zones = zones.with_all([Change::Unload(names[0]), Change::Serve(zone(&names[0], 3))]);
        for (number, apex) in names.iter().enumerate() {
            assert_eq!(has(&zones, apex), number % 3 == 0, "{apex}");
        }
        zones = zones.with_all([Change::Remove(names[6])]);
        zones = zones.with_all([Change::Serve(zone(&names[6], 1)), Change::Special(names[9], specials())]);
        assert!(!has(&zones, &names[6]) && has(&zones, &names[9]) && zones.are_for_clients());
        let others = names.iter().enumerate().filter(|(number, _)| *number > 9);
        zones = zones.with_all(others.map(|(_, apex)| Change::Remove(*apex)));
        assert!(zones.are_for_clients());
        zones = zones.with_all([0, 3, 9].map(|number| Change::Remove(names[number])));
        assert!(!zones.are_for_clients() && !zones.draw() && !zones.is_empty());
    }

    #[test]
    fn zones_added_one_by_one_are_those_put_together_at_once() {
        let all: Vec<(NameBuf, Arc<Zone>)> = (0..1000)
            .map(|i| {
                let apex = name(&format!("z{i}.{}", if i % 3 == 0 { "net" } else { "a.org" }));
                (apex, zone(&apex, i))
            })
            .collect();
        let at_once = Zones::new(KEY, all.iter().map(|(_, zone)| Arc::clone(zone)).collect());
        let mut one_by_one = Zones::new(KEY, vec![]);
        for (_, zone) in &all {
            one_by_one = one_by_one.with_replaced(Arc::clone(zone));
        }
        for (apex, zone) in &all {
            for zones in [&at_once, &one_by_one] {
                assert!(Arc::ptr_eq(zones.get(apex.as_name()).expect("a zone"), zone), "{apex}");
            }
        }
        assert_eq!((one_by_one.len(), one_by_one.octets), (at_once.len(), at_once.octets));
        for (apex, _) in &all {
            one_by_one = one_by_one.with_removed(apex.as_name());
        }
        assert!(one_by_one.is_empty() && one_by_one.octets == 0);
        assert_eq!(*one_by_one.depth_counts, [0; DEPTHS]);
    }
}
