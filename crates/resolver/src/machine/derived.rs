//! Answers that nobody is asked for: what was proved for other names says them.

use wire::{Rcode, Rtype};

use super::{Node, Resolver, TaskKey};
use crate::derive::{Derived, HASHES_MAX};
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::prove::ZoneTrust;
use crate::scrub::Set;

impl Resolver {
    /// Returns the DNAME that this was made from, if it is an alias that was.
    pub(super) fn dname_of(&mut self, set: &Set, unchecked: bool, now: Moment) -> Option<Set> {
        let is_alias = set.rtype == Rtype::CNAME;
        is_alias.then(|| self.memory.dname_of(set, unchecked, now.seconds())).flatten()
    }

    /// Goes on with what a known alias is for, behind the DNAME that it was made from, if it was.
    pub(super) fn follow_alias(
        &mut self,
        key: TaskKey,
        cname: Set,
        target: HeapName,
        unchecked: bool,
        now: Moment,
    ) {
        match self.dname_of(&cname, unchecked, now) {
            Some(dname) => self.follow(key, &[dname, cname], &[], target),
            None => self.follow(key, &[cname], &[], target),
        }
    }

    /// Ends a task with what is known, behind the DNAME that it was made from, if it was.
    pub(super) fn end_with_set(&mut self, key: TaskKey, set: Set, unchecked: bool, now: Moment) {
        match self.dname_of(&set, unchecked, now) {
            Some(dname) => self.end_with_data(key, Rcode::NOERROR, &[dname, set], &[]),
            None => self.end_with_data(key, Rcode::NOERROR, &[set], &[]),
        }
    }

    /// Ends a task, or goes on with what its name is an alias for, if what is known of other names
    /// says so; `floor` is the labels of the closest zone whose servers could be asked. Returns
    /// whether it does.
    pub(super) fn derive(
        &mut self,
        key: TaskKey,
        question: &HeapQuestion,
        floor: usize,
        now: Moment,
    ) -> bool {
        if !self.settings.aggressive_nsec || !self.validates() {
            return false;
        }
        let by_dname = self.memory.by_dname(question, floor, now.seconds());
        let Some(derived) = by_dname.or_else(|| self.by_ranges(key, question, floor, now)) else {
            return false;
        };
        self.counts.derived += 1;
        match derived {
            Derived::Data(set, proofs) => self.end_with_data(key, Rcode::NOERROR, &[set], &proofs),
            Derived::TooLong(dname) => self.end_with_data(key, Rcode::YXDOMAIN, &[dname], &[]),
            // The question is for the alias itself.
            Derived::Alias(sets, proofs, _) if matches!(question.rtype, Rtype::CNAME | Rtype::ANY) => {
                self.end_with_data(key, Rcode::NOERROR, &sets, &proofs);
            }
            Derived::Alias(sets, proofs, target) => self.follow(key, &sets, &proofs, target),
            Derived::Denied(rcode, denied) => {
                self.counts.derived_nxdomain += u64::from(rcode == Rcode::NXDOMAIN);
                self.end_with_known(key, rcode, &denied);
            }
        }
        true
    }

    fn by_ranges(
        &mut self,
        key: TaskKey,
        question: &HeapQuestion,
        floor: usize,
        now: Moment,
    ) -> Option<Derived> {
        let place = question.place();
        let depths = (floor..=place.label_count()).rev();
        let depths: Vec<usize> =
            depths.filter(|&labels| self.memory.tables.proofs.has_depth(labels)).collect();
        depths.into_iter().find_map(|labels| {
            let zone = place.suffix(labels);
            let trust = self.chains.trust(zone, &self.settings.trust, now);
            if matches!(trust, Some(ZoneTrust::Insecure(_) | ZoneTrust::Indeterminate)) {
                return None;
            }
            let payer = self.payer_of_hashes(Node::Task(key));
            let budget = payer.and_then(|payer| self.task(payer)?.budget);
            // Some hashes are kept for a reply, in case that nothing is found here.
            let left = budget.map_or(0, |budget| budget.hashes).saturating_sub(HASHES_MAX);
            let (mut hashes, most) = (left, self.settings.trust.iterations_max);
            let found = self.memory.by_ranges(question, zone, most, &mut hashes, now.seconds());
            if let Some(budget) = payer.and_then(|payer| self.task_mut(payer)?.budget.as_mut()) {
                budget.hashes -= left - hashes;
            }
            found
        })
    }
}
