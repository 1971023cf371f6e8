//! A version of a zone that has most of its names from another one, so that a change of a few names
//! costs in proportion to them.
//!
//! It has blocks of its own for the names that may differ, which count before those of the version
//! it lies over; of a name that is gone, the block says so. Versions do not lie over one another in
//! rows: the next one lies over the same, with more blocks of its own, until these are so many that
//! all is compiled anew.
//!
//! What a name is depends on others: it may lie below a zone cut, exist because names below it do,
//! or have a wildcard. So names whose part in the zone may change are compiled with those that
//! change.
//!
//! # Limitations
//!
//! Zones with proofs of absence are compiled anew: a change of a name changes those of others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Rtype};

use crate::block::{Block, Marks};
use crate::build::{Builder, ends_in_labels};
use crate::check::Origin;
use crate::difference::{Difference, Misfit, judged, push, rows_of, serial_of};
use crate::rows::{Row, Rows, identity};
use crate::zone::{Denial, Facts, Under, Zone};

/// Names that a zone has at least: a smaller one is compiled anew as quickly.
const NAMES_MIN: usize = 1024;
/// Names that a version has blocks of its own for at most: each change compiles them.
const OWN_MAX: usize = 2048;
/// The part of a zone's names that these are at most.
const OWN_PART: usize = 16;
/// Names of which it may take a walk through the zone to know what lies below them.
const SOUGHT_MAX: usize = 16;

impl Zone {
    /// Returns how many names this version does not share with the one it lies over; `None` if it
    /// has all names itself.
    pub fn own_names(&self) -> Option<usize> {
        self.under.as_ref()?;
        let mut at = 0;
        let next = || {
            let block = Block::read(&self.blocks, at)?;
            at = block.next();
            Some(())
        };
        Some(std::iter::from_fn(next).count())
    }
}

/// Names that exist because of what lies below them, and names that lie below a wall that has come
/// or gone; in lower case.
type Sought = (Vec<Vec<u8>>, BTreeSet<Vec<u8>>);

/// What a name is to have.
struct State {
    owner: NameBuf,
    rows: Rows,
}

/// A version under way.
struct Change<'z> {
    zone: &'z Arc<Zone>,
    /// The version that all lie over.
    base: &'z Arc<Zone>,
    key: &'z HashKey,
    origin: Origin,
    /// Names that are compiled, in lower case.
    states: BTreeMap<Vec<u8>, State>,
    /// How many there may be.
    own_max: usize,
}

fn folded(name: Name<'_>) -> Vec<u8> {
    name.to_folded().as_bytes().to_vec()
}

/// Returns whether records of a type are about proofs of absence.
const fn proves(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC3PARAM)
}

/// Applies a difference to the version that it begins with; `None` if all is better compiled anew.
pub(crate) fn apply(
    difference: &Difference,
    zone: &Arc<Zone>,
    key: &HashKey,
    origin: Origin,
) -> Option<Result<Arc<Zone>, Misfit>> {
    let base = zone.under.as_ref().map_or(zone, |under| &under.zone);
    let rows = || difference.removed.iter().chain(difference.added.iter());
    let own_max = (base.facts.names / OWN_PART).min(OWN_MAX);
    let is_simple = base.facts.names >= NAMES_MIN
        && matches!(base.denial, Denial::None)
        && base.hashed.is_empty()
        && difference.removed.len() + difference.added.len() <= own_max
        && rows().all(|row| {
            let covered = row.rdata.first_chunk().map_or(0, |covered| u16::from_be_bytes(*covered));
            let proves = proves(row.rtype) || (row.rtype == Rtype::RRSIG && proves(Rtype(covered)));
            !proves && row.owner.is_at_or_below(zone.apex())
        });
    if !is_simple {
        return None;
    }
    if serial_of(zone.soa().1) != Some(difference.old_serial()) {
        return Some(Err(Misfit::Serial));
    }
    let mut change = Change { zone, base, key, origin, states: BTreeMap::new(), own_max };
    change.take_own();
    if let Err(misfit) = change.edit(difference) {
        return Some(Err(misfit));
    }
    change.compile()
}

impl Change<'_> {
    /// Takes the names that the version before has blocks of its own for.
    fn take_own(&mut self) {
        if self.zone.under.is_none() {
            return;
        }
        let mut at = 0;
        while let Some(block) = Block::read(&self.zone.blocks, at) {
            at = block.next();
            let owner = self.zone.owner(block);
            self.states.insert(folded(owner.as_name()), State { owner, rows: rows_at(block, owner) });
        }
    }

    /// Takes a name with what it has now.
    fn take(&mut self, name: Name<'_>) -> &mut State {
        let (zone, key) = (self.zone, self.key);
        self.states.entry(folded(name)).or_insert_with(|| {
            let block = zone.find(name, key.hash_name(name));
            let owner = block.map_or_else(|| name.to_buf(), |block| zone.owner(block));
            State { owner, rows: block.map(|block| rows_at(block, owner)).unwrap_or_default() }
        })
    }

    /// Changes what names have.
    fn edit(&mut self, difference: &Difference) -> Result<(), Misfit> {
        let mut removed: HashMap<Vec<u8>, bool> =
            difference.removed.iter().map(|row| (identity(&row), false)).collect();
        let added: HashSet<Vec<u8>> = difference.added.iter().map(|row| identity(&row)).collect();
        let apex = self.zone.apex;
        let owners = difference.removed.iter().chain(difference.added.iter()).map(|row| folded(row.owner));
        let touched: BTreeSet<Vec<u8>> = owners.chain([folded(apex.as_name())]).collect();
        for name in touched.iter().filter_map(|name| Name::parse(name).ok()) {
            let state = self.take(name.0);
            let mut rows = Rows::default();
            if name.0 == apex.as_name() {
                let (ttl, rdata) = (difference.new_soa.0, &difference.new_soa.1);
                rows.push(&Row { owner: apex.as_name(), rtype: Rtype::SOA, ttl, rdata });
            }
            for row in state.rows.iter().filter(|row| row.rtype != Rtype::SOA) {
                let identity = identity(&row);
                if let Some(is_seen) = removed.get_mut(&identity) {
                    *is_seen = true;
                } else if added.contains(&identity) {
                    return Err(Misfit::Exists(Box::new(row.owner.to_buf()), row.rtype));
                } else {
                    rows.push(&row);
                }
            }
            state.rows = rows;
        }
        for row in difference.removed.iter() {
            if removed.get(&identity(&row)) == Some(&false) {
                return Err(Misfit::Missing(Box::new(row.owner.to_buf()), row.rtype));
            }
        }
        for row in difference.added.iter() {
            let state = self.take(row.owner);
            if state.rows.is_empty() {
                state.owner = row.owner.to_buf();
            }
            state.rows.push(&row);
        }
        Ok(())
    }

    /// Walks the names above one, from the nearest on, that are below the apex.
    fn above<'n>(&self, name: Name<'n>) -> impl Iterator<Item = Name<'n>> + use<'n> {
        let apex_len = self.zone.apex.as_name().len();
        std::iter::successors(name.parent(), |name| name.parent())
            .take_while(move |name| name.len() > apex_len)
    }

    /// Finds which names exist, and which others have to be compiled with them; then makes the
    /// version.
    fn compile(mut self) -> Option<Result<Arc<Zone>, Misfit>> {
        let mut held: HashSet<Vec<u8>> = HashSet::new();
        let owners: Vec<NameBuf> = self.states.values().map(|state| state.owner).collect();
        for owner in &owners {
            let has_rows = self.state(owner).is_some_and(|state| !state.rows.is_empty());
            for above in self.above(owner.as_name()) {
                if has_rows {
                    held.insert(folded(above));
                }
                let block = self.zone.find(above, self.key.hash_name(above));
                // It comes to exist with what is below it; one that exists only for that may go
                // with it.
                if block.map_or(has_rows, |block| !has_rows && block.is_empty()) {
                    self.take(above);
                }
            }
        }
        let (kept, below) = self.seek(&held)?;
        held.extend(kept);
        for name in below.iter().filter_map(|name| Name::parse(name).ok()) {
            self.take(name.0);
        }
        // A wildcard is known by the name that it is directly below.
        let owners: Vec<NameBuf> = self.states.values().map(|state| state.owner).collect();
        for owner in owners.iter().filter(|owner| owner.as_name().as_bytes().starts_with(b"\x01*")) {
            if let Some(parent) = owner.as_name().parent()
                && parent.is_at_or_below(self.zone.apex())
                && self.zone.find(parent, self.key.hash_name(parent)).is_some()
            {
                self.take(parent);
            }
        }
        if self.states.len() > self.own_max {
            return None;
        }
        Some(self.build(&held))
    }

    fn state(&self, owner: &NameBuf) -> Option<&State> {
        self.states.get(&folded(owner.as_name()))
    }

    /// Walks through the zone, where that is needed, and returns the names of which something lies
    /// below, and the names that lie below what is a zone cut or a DNAME now, or is none any more.
    fn seek(&self, held: &HashSet<Vec<u8>>) -> Option<Sought> {
        let (mut may_go, mut walls): (Vec<&State>, Vec<&State>) = (Vec::new(), Vec::new());
        for (name, state) in &self.states {
            let owner = state.owner.as_name();
            let Some(block) = self.base.find(owner, self.key.hash_name(owner)) else { continue };
            if owner.label_count() >= usize::from(self.base.labels_max) {
                continue;
            }
            if state.rows.is_empty() && !held.contains(name) {
                may_go.push(state);
            }
            if wall_of(&state.rows, self.zone.apex()) != block.marks().and(Marks::CUT.with(Marks::DNAME)) {
                walls.push(state);
            }
        }
        let (mut kept, mut below) = (Vec::new(), BTreeSet::new());
        if may_go.is_empty() && walls.is_empty() {
            return Some((kept, below));
        }
        if may_go.len() + walls.len() > SOUGHT_MAX {
            return None;
        }
        let mut at = 0;
        while let Some(block) = Block::read(&self.base.blocks, at) {
            at = block.next();
            let labels = block.labels();
            let is_below = |state: &&State| {
                let above = self.base.relative(state.owner.as_name());
                labels.len() > above.len() && ends_in_labels(labels, above)
            };
            if !may_go.iter().chain(&walls).any(&is_below) {
                continue;
            }
            let name = folded(self.base.owner(block).as_name());
            if self.states.contains_key(&name) {
                continue;
            }
            if !block.is_empty() {
                kept.extend(
                    may_go.iter().filter(|state| is_below(state)).map(|state| folded(state.owner.as_name())),
                );
                may_go.retain(|state| !is_below(state));
            }
            if walls.iter().any(is_below) {
                below.insert(name);
                if below.len() > self.own_max {
                    return None;
                }
            }
        }
        Some((kept, below))
    }

    fn build(self, held: &HashSet<Vec<u8>>) -> Result<Arc<Zone>, Misfit> {
        let mut builder = Builder::over(self.base, *self.key).from(self.origin);
        let mut hidden = Vec::new();
        let mut without = Facts::default();
        for (name, state) in &self.states {
            let owner = state.owner.as_name();
            let block = self.base.find(owner, self.key.hash_name(owner));
            if let Some(block) = block {
                hidden.push(block.at);
                without.names += 1;
                without.cuts += usize::from(block.marks().has(Marks::CUT));
                without.aliases += usize::from(block.alias().is_some());
                without.records += block
                    .rrsets()
                    .map(|set| usize::from(set.count) + usize::from(set.signature_count))
                    .sum::<usize>();
            }
            match (state.rows.is_empty(), held.contains(name)) {
                (true, true) => builder.push_bare(owner, false),
                (true, false) if block.is_some() => builder.push_bare(owner, true),
                // It was not there before, either.
                (true, false) => {}
                (false, _) => {
                    let mut last: Option<NameBuf> = None;
                    for row in state.rows.iter() {
                        let is_same =
                            last.is_some_and(|last| last.as_name().as_bytes() == row.owner.as_bytes());
                        push(&mut builder, &row, is_same);
                        last = Some(row.owner.to_buf());
                    }
                }
            }
        }
        hidden.sort_unstable();
        let mut zone = judged(builder.compile(), self.origin)?;
        let all = &self.base.facts;
        zone.facts.names += all.names - without.names;
        zone.facts.records += all.records - without.records;
        zone.facts.cuts += all.cuts - without.cuts;
        zone.facts.aliases += all.aliases - without.aliases;
        zone.labels_max = zone.labels_max.max(self.base.labels_max);
        zone.under = Some(Under { zone: Arc::clone(self.base), hidden: hidden.into() });
        Ok(Arc::new(zone))
    }
}

/// Returns what is at a name.
fn rows_at(block: Block<'_>, owner: NameBuf) -> Rows {
    let mut rows = Rows::default();
    for row in rows_of(block, owner.as_name()) {
        rows.push(&row);
    }
    rows
}

/// Returns what of a zone cut or a DNAME a name is by its records.
fn wall_of(rows: &Rows, apex: Name<'_>) -> Marks {
    let mut marks = Marks(0);
    for row in rows.iter() {
        let is_wildcard = row.owner.as_bytes().starts_with(b"\x01*");
        match row.rtype {
            Rtype::NS if row.owner != apex && !is_wildcard => marks = marks.with(Marks::CUT),
            Rtype::DNAME => marks = marks.with(Marks::DNAME),
            _ => {}
        }
    }
    marks
}
