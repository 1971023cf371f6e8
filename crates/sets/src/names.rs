//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Sets of names.

use std::sync::Arc;

use crate::changes::Changes;
use crate::changing::ChangingNames;
use crate::dynamic::DynamicNames;
use crate::fingerprint::FingerprintKey;
use crate::patterns::Patterns;
use crate::sought::Sought;
use crate::table::{Lookahead, Table};

/// Octets from which on a table does not stay in a processor's own memory.
const LARGE_OCTETS_MIN: usize = 4 << 20;

/// A set of names: names themselves, what lies below names, keywords and regular expressions; what
/// other sets hold, and without what others hold.
///
/// Rules on whole labels are kept as fingerprints of 62 bits under a key that is secret and the
/// process's own, in a place that more bits choose. That a name is taken for another happens once
/// in 2^60 look-ups.
pub struct NameSet {
    pub(crate) key: FingerprintKey,
    pub(crate) table: Table,
    pub(crate) patterns: Option<Box<Patterns>>,
    pub(crate) include: Box<[Part]>,
    pub(crate) except: Box<[Arc<NameSet>]>,
    /// Names that are added and removed while the server runs.
    pub(crate) live: Option<Arc<DynamicNames>>,
    pub(crate) sources: Box<[Source]>,
}

/// What a set holds besides its own rules.
#[derive(Clone)]
pub(crate) enum Part {
    /// What another one holds.
    Set(Arc<NameSet>),
    /// A list that changes by single rules.
    Changing(Arc<ChangingNames>),
}

impl Part {
    #[inline]
    fn contains(&self, sought: &Sought<'_>) -> bool {
        match self {
            Self::Set(set) => set.contains(sought),
            Self::Changing(names) => names.contains(sought),
        }
    }

    fn find(&self, sought: &Sought<'_>) -> Option<Found<'_>> {
        match self {
            Self::Set(set) => set.find(sought),
            Self::Changing(names) => names.find(sought),
        }
    }

    /// Returns the set, or the one that a list was compiled to.
    fn base(&self) -> &Arc<NameSet> {
        match self {
            Self::Set(set) => set,
            Self::Changing(names) => names.base(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Set(set) => set.is_empty(),
            Self::Changing(names) => names.is_empty(),
        }
    }
}

/// Where rules come from.
pub(crate) struct Source {
    pub(crate) label: Box<str>,
    /// The highest number of a rule that comes before.
    pub(crate) before: u32,
}

/// The number of a rule in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleRef(u32);

/// A rule that a name fits.
#[derive(Clone, Copy)]
pub struct Found<'s> {
    set: &'s NameSet,
    /// The rule.
    pub rule: RuleRef,
}

impl<'s> Found<'s> {
    /// Returns what the rule's source is called, and the rule's line there, from 1.
    pub fn place(&self) -> (&'s str, u32) {
        let RuleRef(number) = self.rule;
        if number == 0 {
            return ("added at run time", 0);
        }
        let after = self.set.sources.partition_point(|source| source.before < number);
        match after.checked_sub(1).and_then(|at| self.set.sources.get(at)) {
            Some(source) => (&source.label, number - source.before),
            None => ("", number),
        }
    }
}

impl NameSet {
    /// Returns whether the set holds the name.
    #[inline]
    pub fn contains(&self, sought: &Sought<'_>) -> bool {
        (self.table.holds(&self.key, sought)
            || self.patterns.as_ref().is_some_and(|patterns| patterns.fits(sought))
            || self.live.as_ref().is_some_and(|live| live.contains(sought))
            || self.include.iter().any(|part| part.contains(sought)))
            && !self.except.iter().any(|set| set.contains(sought))
    }

    /// Returns what the sources of its rules are called.
    // Once per configuration.
    pub fn labels(&self) -> Vec<&str> {
        let own = self.sources.iter().map(|source| &*source.label);
        own.chain(self.include.iter().flat_map(|part| part.base().labels())).collect()
    }

    /// Finds a rule that is why the set holds the name: the closest of those on labels, else any.
    pub fn find(&self, sought: &Sought<'_>) -> Option<Found<'_>> {
        if self.except.iter().any(|set| set.contains(sought)) {
            return None;
        }
        if let Some(place) = self.table.find(&self.key, sought) {
            return Some(self.found_at(place));
        }
        match self.found_pattern(sought) {
            Some(found) => Some(found),
            None if self.live.as_ref().is_some_and(|live| live.contains(sought)) => Some(self.found_added()),
            None => self.include.iter().find_map(|part| part.find(sought)),
        }
    }

    /// Returns the rule in a place of the table.
    pub(crate) fn found_at(&self, place: usize) -> Found<'_> {
        Found { set: self, rule: RuleRef(self.table.origin(place)) }
    }

    /// Finds a keyword or an expression that the name fits.
    pub(crate) fn found_pattern(&self, sought: &Sought<'_>) -> Option<Found<'_>> {
        let mut rule = None;
        self.patterns.as_ref()?.each(sought, |origin| {
            rule = Some(RuleRef(origin));
            true
        });
        rule.map(|rule| Found { set: self, rule })
    }

    /// Returns what stands for a rule that was added while the server ran: it has no line.
    pub(crate) const fn found_added(&self) -> Found<'_> {
        Found { set: self, rule: RuleRef(0) }
    }

    /// Finds the closest of the set's own rules on labels, and how many labels it is about.
    pub(crate) fn closest(&self, sought: &Sought<'_>) -> Option<(Found<'_>, u32)> {
        let (place, labels) = self.table.closest(&self.key, sought)?;
        Some((Found { set: self, rule: RuleRef(self.table.origin(place)) }, labels))
    }

    /// Calls `f` with every rule of the set itself that the name fits; with a pattern perhaps more
    /// than once.
    pub fn each(&self, sought: &Sought<'_>, mut f: impl FnMut(RuleRef)) {
        self.table.each(&self.key, sought, |origin| f(RuleRef(origin)));
        if let Some(patterns) = &self.patterns {
            patterns.each(sought, |origin| {
                f(RuleRef(origin));
                false
            });
        }
    }

    /// Calls `f` with the sets behind this one whose rules no processor keeps in its own memory.
    // Once per configuration.
    pub fn each_large(self: &Arc<Self>, f: &mut impl FnMut(&Arc<Self>)) {
        if self.table.octets() >= LARGE_OCTETS_MIN {
            f(self);
        }
        for set in self.include.iter().map(Part::base).chain(&self.except) {
            set.each_large(f);
        }
    }

    /// Calls `f` with the number of changes of each set that this one looks into and that is
    /// changed while the server runs.
    // Once per configuration.
    pub fn each_changes(&self, f: &mut dyn FnMut(&Changes)) {
        let Self { key: _, table: _, patterns: _, include, except, live, sources: _ } = self;
        for part in include {
            match part {
                Part::Set(set) => set.each_changes(f),
                Part::Changing(names) => names.each_changes(f),
            }
        }
        for set in except {
            set.each_changes(f);
        }
        if let Some(live) = live {
            f(live.changes());
        }
    }

    /// Asks for the first part of what [`NameSet::contains`] will read of the set's own rules, and
    /// notes what the second part will be.
    ///
    /// Look-ups of many names cost less when both parts of all were asked for before the first is
    /// made, because their waits for memory overlap: first this for each, then
    /// [`NameSet::prefetch_rules`] once.
    pub fn prefetch_filter(&self, sought: &Sought<'_>, ahead: &mut Lookahead) {
        self.table.prefetch_filter(&self.key, sought, ahead);
    }

    /// Asks for the second part, of what was noted since `ahead` was cleared.
    pub fn prefetch_rules(&self, ahead: &Lookahead) {
        self.table.prefetch_rules(ahead);
    }

    /// Returns how many rules the set has itself; equal names count once in each list that changes,
    /// and once in all others.
    pub fn len(&self) -> usize {
        let changing: usize = self.changing().map(ChangingNames::len).sum();
        self.table.len() + self.patterns.as_ref().map_or(0, |patterns| patterns.len()) + changing
    }

    fn changing(&self) -> impl Iterator<Item = &ChangingNames> {
        self.include.iter().filter_map(|part| match part {
            Part::Set(_) => None,
            Part::Changing(names) => Some(&**names),
        })
    }

    /// Returns whether no name is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
            && self.live.as_ref().is_none_or(|live| live.is_empty())
            && self.include.iter().all(Part::is_empty)
    }

    /// Returns how many octets of memory the set takes itself, without those that it includes.
    pub fn octets(&self) -> usize {
        let sources: usize = self.sources.iter().map(|source| size_of_val(source) + source.label.len()).sum();
        size_of::<Self>()
            + self.table.octets()
            + self.patterns.as_ref().map_or(0, |patterns| size_of::<Patterns>() + patterns.octets())
            + self.changing().map(ChangingNames::octets).sum::<usize>()
            + sources
    }
}

impl RuleRef {
    /// Returns the number.
    pub const fn number(self) -> u32 {
        self.0
    }
}
