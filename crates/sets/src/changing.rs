//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Names of a long list that changes by single rules: a table that is compiled, and what is
//! different from it since.

use std::sync::Arc;

use wire::Name;

use crate::changes::Changes;
use crate::dynamic::ALONE;
use crate::fingerprint::{Fingerprint, FingerprintKey};
use crate::live::LiveTable;
use crate::names::{Found, NameSet};
use crate::sought::{DEPTHS_KEPT, Sought};
use crate::table::Reach;

/// Which rules a list has on one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RulesOfName {
    /// One on the name and those below it.
    pub with_below: bool,
    /// One on the name alone.
    pub alone: bool,
}

impl RulesOfName {
    /// Returns whether the list holds the name itself, and whether it holds those below it.
    const fn holds(self) -> [bool; 2] {
        [self.with_below || self.alone, self.with_below]
    }
}

/// Names with a difference to what was compiled. One thread changes them at a time; any number
/// reads. Room for the difference is taken when they are compiled.
pub struct ChangingNames {
    /// Rules as they were compiled. It includes and excludes no other set.
    base: Arc<NameSet>,
    /// What is kept of names that have a rule of each kind: the table says only that they are held.
    both: Box<[u64]>,
    added: LiveTable,
    removed: LiveTable,
}

impl ChangingNames {
    /// Returns names that are as compiled, with room for a difference of about `limit` names.
    // Once per configuration.
    pub(crate) fn new(base: NameSet, both: Box<[u64]>, limit: usize) -> Self {
        let (added, removed) = (LiveTable::new(limit), LiveTable::new(limit));
        Self { base: Arc::new(base), both, added, removed }
    }

    pub(crate) const fn base(&self) -> &Arc<NameSet> {
        &self.base
    }

    /// Returns which rules were compiled on a name.
    pub fn compiled(&self, name: Name<'_>) -> RulesOfName {
        let print = print(&self.base.key, name);
        let is_held = |reach| self.base.table.has_rule(print, reach);
        let with_below = is_held(Reach::Below);
        let is_both = self.both.binary_search(&crate::table::kept(print.check)).is_ok();
        RulesOfName { with_below, alone: is_both || (!with_below && is_held(Reach::Itself)) }
    }

    /// Says which rules there are on a name now; readers know when this returns. Returns false if
    /// there is no room for that.
    pub fn set(&self, name: Name<'_>, now: RulesOfName) -> bool {
        let print = print(&self.base.key, name);
        let depth = name.labels().count() as u32;
        let places = [(print.turned(), ALONE), (print, depth)];
        let compiled = self.compiled(name).holds();
        let mut fits = true;
        for (((print, length), was), is) in places.into_iter().zip(compiled).zip(now.holds()) {
            for (table, wanted) in [(&self.added, is && !was), (&self.removed, was && !is)] {
                match (table.contains(print), wanted) {
                    (false, true) => fits &= table.insert(print, length),
                    (true, false) => table.remove(print, length),
                    _ => {}
                }
            }
        }
        fits
    }

    /// Returns whether the list holds the name or one above it.
    #[inline]
    pub(crate) fn contains(&self, sought: &Sought<'_>) -> bool {
        if self.removed.is_empty() {
            return self.base.contains(sought) || self.is_added(sought);
        }
        self.base.patterns.as_ref().is_some_and(|patterns| patterns.fits(sought))
            || self.is_added(sought)
            || self.closest_left(sought).is_some()
    }

    /// Finds a rule that is why the list holds the name.
    pub(crate) fn find(&self, sought: &Sought<'_>) -> Option<Found<'_>> {
        let left = self.closest_left(sought).map(|place| self.base.found_at(place));
        let pattern = || self.base.found_pattern(sought);
        left.or_else(pattern).or_else(|| self.is_added(sought).then(|| self.base.found_added()))
    }

    /// Finds the closest rule that was compiled and not removed since.
    fn closest_left(&self, sought: &Sought<'_>) -> Option<usize> {
        self.base.table.closest_of(&self.base.key, sought, |print, depth| {
            let print = if depth == sought.depth() { print.turned() } else { print };
            !self.removed.contains(print)
        })
    }

    fn is_added(&self, sought: &Sought<'_>) -> bool {
        if self.added.is_empty() {
            return false;
        }
        let (key, depth) = (&self.base.key, sought.depth());
        let is_kept = |at: u32, print: Fingerprint| match at == depth {
            true => self.added.may_hold(ALONE) && self.added.contains(print.turned()),
            false => self.added.may_hold(at) && self.added.contains(print),
        };
        let kept = depth.min(DEPTHS_KEPT as u32);
        let mut found = (0..=kept).any(|at| is_kept(at, sought.suffix(key, at)));
        if !found && sought.is_long() {
            sought.long_suffixes(key, |at, print| found |= is_kept(at, print));
        }
        found
    }

    /// Calls `f` with the numbers of changes of what is different.
    // Once per configuration.
    pub(crate) fn each_changes(&self, f: &mut dyn FnMut(&Changes)) {
        let Self { base, both: _, added, removed } = self;
        base.each_changes(f);
        f(added.changes());
        f(removed.changes());
    }

    /// Returns how many rules were compiled.
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// Returns whether no rule was compiled, and none is there since.
    pub fn is_empty(&self) -> bool {
        self.base.is_empty() && self.added.is_empty()
    }

    /// Returns how many octets of memory the names take.
    pub fn octets(&self) -> usize {
        self.base.octets() + size_of_val(&*self.both) + self.added.octets() + self.removed.octets()
    }
}

/// Returns the fingerprint of a name.
fn print(key: &FingerprintKey, name: Name<'_>) -> Fingerprint {
    let folded = name.to_folded();
    let mut labels: [&[u8]; 128] = [&[]; 128];
    let mut count = 0;
    for (label, place) in folded.as_name().labels().zip(labels.iter_mut()) {
        *place = label;
        count += 1;
    }
    let labels = labels.get(..count).unwrap_or(&[]);
    labels.iter().rev().fold(key.root(), |parent, label| key.below(parent, label))
}
