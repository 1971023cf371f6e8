//! Local zones by their names: a million of them, if it has to be.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use diagnostic::Span;

use crate::kind::Kind;
use crate::names::{above, labels};
use crate::read::Word;

/// Zones from which on it is worth while not to look at each.
pub(super) const MANY: usize = 10_000;

/// A local zone.
pub(super) struct Zone<'a> {
    /// In lower case, without the dot at its end; the root is a dot.
    pub(super) name: Cow<'a, str>,
    pub(super) kind: Kind,
    pub(super) at: Span,
    /// What few zones have.
    pub(super) special: Option<Box<Special<'a>>>,
}

impl Zone<'_> {
    /// Returns whether it may be of another type for some clients.
    pub(super) fn is_other_for_some(&self) -> bool {
        self.has_tags() || self.special.as_ref().is_some_and(|special| !special.overrides.is_empty())
    }

    /// Returns whether it is for clients with tags alone.
    pub(super) fn has_tags(&self) -> bool {
        self.special.as_ref().is_some_and(|special| !special.tags.is_empty())
    }
}

/// What makes a zone different from others of its type.
#[derive(Default)]
pub(super) struct Special<'a> {
    pub(super) tags: Vec<&'a str>,
    /// Other types for clients with these prefixes.
    pub(super) overrides: Vec<(&'a Word, Kind)>,
    /// What the log has of queries for its names: the zone and its type.
    pub(super) logged: Option<String>,
}

/// Many zones that are all of one type, and of which nobody asks for one: none has data or tags,
/// and none lies above a zone of the list.
pub(super) struct Bulk {
    pub(super) kind: Kind,
    /// Where the first one stands.
    pub(super) at: Span,
    pub(super) count: usize,
    /// Their names, each with a line feed behind it.
    pub(super) names: Vec<Arc<str>>,
}

/// Zones, in the order of the file.
#[derive(Default)]
pub(super) struct Zones<'a> {
    /// Those that are not in the list.
    pub(super) bulk: Option<Bulk>,
    list: Vec<Zone<'a>>,
    /// Places in the list, from one, by hash, with a part of the hash; zero is free. Half of it is
    /// at most in use. Empty while nobody has to find a zone.
    table: Vec<(u32, u32)>,
    hasher: RandomState,
}

impl<'a> Zones<'a> {
    /// Returns these zones, and those that others of their names took the place of. Zones that are
    /// all alike are one look-up, for which it does not matter how often each is there: they are
    /// not looked at, unless `is_asked` says that some will be asked for by name. `has_more`: there
    /// are many of them beside the list.
    pub(super) fn new(list: Vec<Zone<'a>>, is_asked: bool, has_more: bool) -> (Self, Vec<Zone<'a>>) {
        let is_plain = |zone: &Zone<'_>| zone.kind != Kind::Redirect && zone.special.is_none();
        let are_alike = match list.as_slice() {
            [] => true,
            [first, others @ ..] => {
                is_plain(first) && others.iter().all(|zone| zone.kind == first.kind && is_plain(zone))
            }
        };
        if are_alike && !is_asked && (has_more || list.len() >= MANY) {
            return (Self { list, ..Self::default() }, Vec::new());
        }
        let table = vec![(0, 0); if list.is_empty() { 0 } else { (2 * list.len()).next_power_of_two() }];
        let list_of = Vec::with_capacity(list.len());
        let mut zones = Self { bulk: None, list: list_of, table, hasher: RandomState::new() };
        let replaced = list.into_iter().filter_map(|zone| zones.insert(zone)).collect();
        (zones, replaced)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.bulk.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len() + self.bulk.as_ref().map_or(0, |bulk| bulk.count)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Zone<'a>> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Zone<'a>> {
        self.list.iter_mut()
    }

    /// Puts a zone in the place of the one of its name, which is returned.
    fn insert(&mut self, zone: Zone<'a>) -> Option<Zone<'a>> {
        let (at, tag) = self.find(&zone.name)?;
        match self.table.get_mut(at)? {
            entry @ (0, _) => {
                self.list.push(zone);
                *entry = (self.list.len() as u32, tag);
                None
            }
            (place, _) => {
                let known = self.list.get_mut(*place as usize - 1)?;
                Some(std::mem::replace(known, zone))
            }
        }
    }

    /// Returns the zone of this name.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Zone<'a>> {
        let place = self.place(name)?;
        self.list.get_mut(place)
    }

    /// Returns the zone that a name is closest to: its own, or the first above it. Somebody must
    /// have said that zones will be asked for.
    pub(super) fn closest(&self, name: &str) -> Option<&Zone<'a>> {
        above(name).find_map(|name| self.list.get(self.place(name)?))
    }

    /// Returns for each zone how many zones lie below it on the longest way down: who goes through
    /// them in this order meets the closest zone of a name first. All are 0 where the order does
    /// not matter.
    pub(super) fn heights(&self) -> Vec<u8> {
        let mut heights = vec![0_u8; self.list.len()];
        if self.table.is_empty() {
            return heights;
        }
        let mut deepest_first: Vec<(usize, usize)> =
            self.list.iter().enumerate().map(|(at, zone)| (labels(&zone.name), at)).collect();
        deepest_first.sort_unstable_by(|a, b| b.cmp(a));
        for (_, at) in deepest_first {
            let (Some(zone), Some(&own)) = (self.list.get(at), heights.get(at)) else { continue };
            // A name has 127 labels at most.
            if let Some(above) = above(&zone.name).skip(1).find_map(|name| self.place(name))
                && let Some(height) = heights.get_mut(above)
            {
                *height = (*height).max(own.saturating_add(1));
            }
        }
        heights
    }

    /// Returns whether zones of the list are looked for one by one, as they are not all alike.
    pub(super) fn differ(&self) -> bool {
        !self.table.is_empty()
    }

    /// Returns the place of the zone of this name in the list.
    fn place(&self, name: &str) -> Option<usize> {
        let (at, _) = self.find(name)?;
        (self.table.get(at)?.0 as usize).checked_sub(1)
    }

    /// Returns where a name is in the table, or would be, with the part of its hash.
    fn find(&self, name: &str) -> Option<(usize, u32)> {
        let mask = self.table.len().checked_sub(1)?;
        let hash = self.hasher.hash_one(name);
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let &(place, other) = self.table.get(at)?;
            let is_it = |zone: &Zone<'_>| zone.name == name;
            if place == 0 || other == tag && self.list.get(place as usize - 1).is_some_and(is_it) {
                return Some((at, tag));
            }
            at = (at + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(names: &[(&'static str, Kind)]) -> (Zones<'static>, usize) {
        let zone = |&(name, kind): &(&'static str, Kind)| Zone {
            name: name.into(),
            kind,
            at: Span::BUILT_IN,
            special: None,
        };
        let (zones, replaced) = Zones::new(names.iter().map(zone).collect(), false, false);
        (zones, replaced.len())
    }

    #[test]
    fn zones_with_others_below_them_come_later() {
        let all = [
            ("example", Kind::Static),
            ("a.b.example", Kind::Refuse),
            ("b.example", Kind::Static),
            ("other", Kind::Refuse),
            (".", Kind::Static),
        ];
        assert_eq!(zones(&all).0.heights(), [2, 0, 1, 0, 3]);
    }

    #[test]
    fn of_several_with_one_name_the_last_counts() {
        let all = [("a.example", Kind::Static), ("b.example", Kind::Static), ("a.example", Kind::Refuse)];
        let (mut zones, replaced) = zones(&all);
        assert_eq!((zones.len(), replaced), (2, 1));
        assert_eq!(zones.closest("x.y.a.example").map(|zone| zone.kind), Some(Kind::Refuse));
        assert_eq!(zones.closest("b.example").map(|zone| zone.kind), Some(Kind::Static));
        assert!(zones.closest("example").is_none());
        assert!(zones.get_mut("c.example").is_none());
    }

    #[test]
    fn many_alike_are_not_looked_at_one_by_one() {
        let alike = vec![("a.example", Kind::Static); MANY];
        let (many, replaced) = zones(&alike);
        assert_eq!((many.len(), replaced, many.heights()), (MANY, 0, vec![0; MANY]));
        let redirected = vec![("a.example", Kind::Redirect); MANY];
        let (one, replaced) = zones(&redirected);
        assert_eq!((one.len(), replaced), (1, MANY - 1));
        let mixed: Vec<_> = alike.into_iter().chain([("b.a.example", Kind::Refuse)]).collect();
        assert_eq!(zones(&mixed).0.heights(), [1, 0]);
    }
}
