//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A compiled policy: a list of steps with forward skips and acyclic calls, so that every query ends.

use std::sync::Arc;

use sets::NameSet;
use wire::{EdeCode, Rcode};

use crate::foresee::SETS_FORESEEN_MAX;
pub use crate::matchers::Matcher;
use crate::ops::answer::Build;
use crate::ops::cache::CacheStep;
use crate::ops::edit::Edit;
use crate::ops::event::EventStep;
use crate::ops::forward::ForwardStep;
use crate::ops::outgoing::Change;
use crate::ops::quickest::Quickest;
use crate::ops::split::SplitStep;
use crate::ops::ttl::TtlRule;
use crate::shortlist::{Seek, Shortlist};

/// Steps that one query may take, calls included; longer programs are refused when they are loaded.
pub const STEPS_MAX: u32 = 65_536;
/// Calls that may be open at once.
pub const CALLS_MAX: usize = 16;

/// One step of a compiled policy. Targets are steps of the same program.
pub enum Op {
    /// Skips the next so many steps unless the matcher holds.
    SkipUnless(Matcher, u16),
    /// Skips the next so many steps if the matcher holds.
    SkipIf(Matcher, u16),
    /// Skips the next so many steps.
    Skip(u16),
    /// Skips the rules that do not concern the query.
    Seek(Seek),
    /// Goes on at a step further on or back, and comes back at [`Op::Return`].
    Call(u16),
    /// Ends the innermost call; outside of one, ends the program.
    Return,
    /// Ends the program with the answer there is.
    Accept,
    /// Ends the program without a reply.
    Drop,
    /// Sets a mark, 0 to 63.
    Mark(u8),
    /// Takes these marks away, one bit each.
    Unmark(u64),
    /// Answers from local names, if the name is there.
    Local(Arc<crate::local::LocalData>),
    /// Answers from the zones, if the name belongs to one of them. They were compiled with the snapshot's key.
    Zone(Arc<zone::Zones>),
    /// Likewise, from a set of zones that only policies lead to.
    ZoneSet(Arc<zone::Zones>),
    /// Answers from the cache, or remembers to fill it with what the steps after it bring.
    Cache(CacheStep),
    /// Answers with an rcode and nothing else.
    Reject(Rcode, Option<EdeCode>),
    /// Asks an upstream group, waits, and goes on with its answer.
    Forward(ForwardStep),
    /// Changes the TTLs of the answer there is.
    Ttl(TtlRule),
    /// Goes on at a step further on or back, and does not come back.
    Goto(u16),
    /// Runs branches, policies or what comes after it, and takes the answer of one.
    Split(Box<SplitStep>),
    /// Waits so many milliseconds.
    Sleep(u32),
    /// Puts the addresses of the answer first that connect fastest.
    Quickest(Quickest),
    /// Drops the answer there is.
    Forget,
    /// Cuts the answer there is for clients that ask over UDP, so that they come back over TCP.
    Truncate,
    /// Changes the records of the answer there is; does nothing without one.
    Edit(Edit),
    /// Makes an answer.
    Answer(Build),
    /// Changes the query that later steps send to other servers.
    Outgoing(Change),
    /// Tells somebody outside about the query; never waits.
    Event(EventStep),
}

impl Op {
    /// Returns the text that the step sends with an Extended DNS Error.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Edit(edit) => edit.text(),
            Self::Answer(build) => build.text(),
            _ => None,
        }
    }

    /// Returns where a query may go from the step in the same routine.
    pub const fn next(&self) -> Next {
        match self {
            Self::SkipUnless(_, steps) | Self::SkipIf(_, steps) => Next::Either(*steps),
            // A rule that is left out is skipped: leaving out several is to skip one after the other.
            Self::Seek(seek) => Next::Either(seek.steps),
            Self::Skip(steps) => Next::Past(*steps),
            Self::Return | Self::Accept | Self::Drop | Self::Reject(..) | Self::Goto(_) => Next::Nowhere,
            Self::Call(_)
            | Self::Mark(_)
            | Self::Unmark(_)
            | Self::Local(_)
            | Self::Zone(_)
            | Self::ZoneSet(_)
            | Self::Cache(_)
            | Self::Forward(_)
            | Self::Ttl(_)
            | Self::Split(_)
            | Self::Sleep(_)
            | Self::Quickest(_)
            | Self::Forget
            | Self::Truncate
            | Self::Edit(_)
            | Self::Answer(_)
            | Self::Outgoing(_)
            | Self::Event(_) => Next::Following,
        }
    }
}

/// Where a query may go from a step in the same routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The step that follows.
    Following,
    /// Past so many steps.
    Past(u16),
    /// The step that follows, or past so many.
    Either(u16),
    /// Nowhere: the routine or the program ends.
    Nowhere,
}

/// Where a query is in a program. Small and copyable: this is all that a waiting query keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    next: u16,
    depth: u8,
    returns: [u16; CALLS_MAX],
}

impl Position {
    /// Returns the position before step `next`.
    pub const fn at(next: u16) -> Self {
        Self { next, depth: 0, returns: [0; CALLS_MAX] }
    }

    /// Returns the number of the next step.
    pub const fn next(self) -> u16 {
        self.next
    }

    /// Takes the next step's number and moves past it.
    pub(crate) fn advance(&mut self) -> usize {
        let at = self.next;
        self.next = at.saturating_add(1);
        usize::from(at)
    }

    pub(crate) fn skip(&mut self, steps: u16) {
        self.next = self.next.saturating_add(steps);
    }

    /// Goes on at a step of the same routine.
    pub(crate) const fn go_to(&mut self, step: u16) {
        self.next = step;
    }

    /// Goes on at a step and forgets the open calls.
    pub(crate) const fn jump(&mut self, target: u16) {
        self.next = target;
        self.depth = 0;
    }

    pub(crate) fn call(&mut self, target: u16) {
        // Programs that nest deeper are refused by `Program::new`.
        if let Some(slot) = self.returns.get_mut(usize::from(self.depth)) {
            *slot = self.next;
            self.depth += 1;
            self.next = target;
        }
    }

    /// Returns false outside of any call.
    pub(crate) fn pop(&mut self) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else { return false };
        self.depth = depth;
        self.next = self.returns.get(usize::from(depth)).copied().unwrap_or(u16::MAX);
        true
    }

    /// Folds the whole position into one number: equal positions give equal numbers.
    pub(crate) fn fingerprint(&self) -> u32 {
        let mut hash = u32::from(self.next);
        for target in self.returns.iter().take(usize::from(self.depth)) {
            hash = hash.rotate_left(7).wrapping_mul(0x9e37_79b1) ^ u32::from(*target);
        }
        hash
    }
}

/// Why steps are not a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// More steps than a position can name.
    TooLong,
    /// A skip or call leads out of the program.
    Target {
        /// The step.
        at: usize,
    },
    /// A call leads back to itself.
    Cycle {
        /// The step.
        at: usize,
    },
    /// Calls nest deeper than [`CALLS_MAX`].
    Depth {
        /// The step.
        at: usize,
    },
    /// The longest way through takes more than [`STEPS_MAX`] steps.
    Steps,
}

/// A checked program.
pub struct Program {
    ops: Box<[Op]>,
    shortlists: Box<[Shortlist]>,
    longest: u32,
    changes_answers: bool,
    large_sets: Box<[Arc<NameSet>]>,
    /// The first step that answers from the zones.
    zone_step: Option<usize>,
    /// Whether some step answers from zones, of whatever set.
    has_zones: bool,
}

/// What is known about the longest way from a step to its end.
#[derive(Clone, Copy)]
enum Way {
    Unknown,
    Measuring,
    Known { steps: u32, depth: usize },
}

impl Program {
    /// Checks that every way through the steps ends, and how long the longest is.
    // Once per configuration.
    pub fn new(ops: Vec<Op>) -> Result<Self, ProgramError> {
        Self::with_shortlists(ops, std::vec![])
    }

    /// Does the same for steps of which some use shortlists.
    // Once per configuration.
    pub fn with_shortlists(mut ops: Vec<Op>, shortlists: Vec<Shortlist>) -> Result<Self, ProgramError> {
        if ops.len() >= usize::from(u16::MAX) {
            return Err(ProgramError::TooLong);
        }
        for (at, op) in ops.iter().enumerate() {
            if let Op::Seek(seek) = op {
                let list = shortlists.get(usize::from(seek.list));
                if !list.is_some_and(|list| list.leads_forward(*seek, at, ops.len())) {
                    return Err(ProgramError::Target { at });
                }
            }
        }
        let mut ways = std::vec![Way::Unknown; ops.len() + 1];
        let (longest, _) = measure(&ops, 0, &mut ways)?;
        if longest > STEPS_MAX {
            return Err(ProgramError::Steps);
        }
        find_sharing(&mut ops);
        let changes_answers = ops.iter().any(|op| match op {
            Op::Cache(cache) => cache.continues,
            Op::Edit(_) | Op::Answer(_) | Op::Split(_) | Op::Quickest(_) => true,
            _ => false,
        });
        let large_sets = large_sets(&ops);
        let zone_step = ops.iter().position(|op| matches!(op, Op::Zone(_)));
        let has_zones = ops.iter().any(|op| matches!(op, Op::Zone(_) | Op::ZoneSet(_)));
        Ok(Self {
            ops: ops.into_boxed_slice(),
            shortlists: shortlists.into_boxed_slice(),
            longest,
            changes_answers,
            large_sets,
            zone_step,
            has_zones,
        })
    }

    /// Returns the first sets that names asked for are compared with and that are so large that looking ahead pays.
    pub(crate) const fn large_sets(&self) -> &[Arc<NameSet>] {
        &self.large_sets
    }

    /// Returns the zones, wherever in the program they answer.
    pub(crate) fn zones(&self) -> Option<&zone::Zones> {
        match self.ops.get(self.zone_step?) {
            Some(Op::Zone(zones)) => Some(zones),
            _ => None,
        }
    }

    /// Returns whether some step answers from zones.
    pub(crate) const fn has_zones(&self) -> bool {
        self.has_zones
    }

    /// Returns whether some step works on an answer that came from memory, so that it must be there in whole, however
    /// little the client takes.
    pub(crate) const fn changes_answers(&self) -> bool {
        self.changes_answers
    }

    /// Returns what [`Op::Seek`] looks at.
    pub(crate) const fn shortlists(&self) -> &[Shortlist] {
        &self.shortlists
    }

    /// Returns the steps.
    pub const fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns how many steps the longest way through takes.
    pub const fn longest(&self) -> u32 {
        self.longest
    }
}

/// Returns the steps and the call depth of the longest way from `start`. Works backwards over the routine that
/// `start` begins, so that only calls recurse, and those at most [`CALLS_MAX`] deep.
fn measure(ops: &[Op], start: usize, ways: &mut [Way]) -> Result<(u32, usize), ProgramError> {
    measure_routine(ops, start, ways, 0)
}

// Once per configuration.
fn measure_routine(
    ops: &[Op],
    start: usize,
    ways: &mut [Way],
    open: usize,
) -> Result<(u32, usize), ProgramError> {
    if start >= ops.len() {
        return Ok((0, 0));
    }
    match ways.get(start) {
        Some(Way::Known { steps, depth }) => return Ok((*steps, *depth)),
        Some(Way::Measuring) => return Err(ProgramError::Cycle { at: start }),
        Some(Way::Unknown) | None => {}
    }
    // The steps of this routine: everything reachable by skips, which only lead forward.
    let mut reach = std::vec![false; ops.len() + 1];
    if let Some(first) = reach.get_mut(start) {
        *first = true;
    }
    let mut end = start;
    for at in start..ops.len() {
        if !reach.get(at).copied().unwrap_or(false) {
            continue;
        }
        end = at;
        for next in followers(ops, at)?.into_iter().flatten() {
            if let Some(slot) = reach.get_mut(next) {
                *slot = true;
            }
        }
    }
    if let Some(way) = ways.get_mut(start) {
        *way = Way::Measuring;
    }
    let mut longest = std::vec![(0_u32, 0_usize); ops.len() + 2];
    for at in (start..=end.min(ops.len().saturating_sub(1))).rev() {
        if !reach.get(at).copied().unwrap_or(false) {
            continue;
        }
        let (mut steps, mut depth) = (0, 0);
        for next in followers(ops, at)?.into_iter().flatten() {
            let &(further, deep) = longest.get(next).unwrap_or(&(0, 0));
            steps = steps.max(further);
            depth = depth.max(deep);
        }
        if let Some(Op::Goto(target)) = ops.get(at) {
            // A jump takes no place among the open calls, but nests here: it is bounded like a call.
            if open + 1 > CALLS_MAX {
                return Err(ProgramError::Depth { at });
            }
            if usize::from(*target) >= ops.len() {
                return Err(ProgramError::Target { at });
            }
            let (further, deep) = match measure_routine(ops, usize::from(*target), ways, open + 1) {
                Err(ProgramError::Cycle { .. }) => return Err(ProgramError::Cycle { at }),
                other => other?,
            };
            steps = steps.max(further);
            depth = depth.max(deep + 1);
        }
        if let Some(Op::Split(split)) = ops.get(at) {
            steps = steps.saturating_mul(split.rest_runs());
            for &target in split.starts() {
                if open + 1 > CALLS_MAX {
                    return Err(ProgramError::Depth { at });
                }
                if usize::from(target) >= ops.len() {
                    return Err(ProgramError::Target { at });
                }
                let (branch, deep) = match measure_routine(ops, usize::from(target), ways, open + 1) {
                    Err(ProgramError::Cycle { .. }) => return Err(ProgramError::Cycle { at }),
                    other => other?,
                };
                steps = steps.saturating_add(branch);
                depth = depth.max(deep + 1);
            }
            if open + depth > CALLS_MAX {
                return Err(ProgramError::Depth { at });
            }
        }
        if let Some(Op::Call(target)) = ops.get(at) {
            if open + 1 > CALLS_MAX {
                return Err(ProgramError::Depth { at });
            }
            if usize::from(*target) >= ops.len() {
                return Err(ProgramError::Target { at });
            }
            let (called, deep) = match measure_routine(ops, usize::from(*target), ways, open + 1) {
                Err(ProgramError::Cycle { .. }) => return Err(ProgramError::Cycle { at }),
                other => other?,
            };
            steps = steps.saturating_add(called);
            depth = depth.max(deep + 1);
            if open + depth > CALLS_MAX {
                return Err(ProgramError::Depth { at });
            }
        }
        if let Some(slot) = longest.get_mut(at) {
            *slot = (steps.saturating_add(1), depth);
        }
    }
    let &(steps, depth) = longest.get(start).unwrap_or(&(0, 0));
    if let Some(way) = ways.get_mut(start) {
        *way = Way::Known { steps, depth };
    }
    Ok((steps, depth))
}

/// Finds the first large sets that names asked for are compared with.
// Once per configuration.
fn large_sets(ops: &[Op]) -> Box<[Arc<NameSet>]> {
    let mut found: Vec<Arc<NameSet>> = std::vec![];
    let mut add = |set: &Arc<NameSet>| {
        if found.len() < SETS_FORESEEN_MAX && !found.iter().any(|known| Arc::ptr_eq(known, set)) {
            found.push(Arc::clone(set));
        }
    };
    for op in ops {
        match op {
            Op::SkipUnless(Matcher::Qname(set), _) | Op::SkipIf(Matcher::Qname(set), _) => {
                set.each_large(&mut add);
            }
            Op::SkipUnless(Matcher::Listed(list), _) | Op::SkipIf(Matcher::Listed(list), _) => {
                list.each_large(&mut add);
            }
            _ => {}
        }
    }
    found.into_boxed_slice()
}

/// Tells the splits whose branches do nothing but ask a group each.
// Once per configuration.
fn find_sharing(ops: &mut [Op]) {
    for at in 0..ops.len() {
        let Some(Op::Split(split)) = ops.get(at) else { continue };
        let forwards: Option<Vec<ForwardStep>> = split
            .starts()
            .iter()
            .map(|&start| match ops.get(usize::from(start)..)? {
                [Op::Forward(forward), Op::Return | Op::Accept, ..] => Some(*forward),
                _ => None,
            })
            .collect();
        if let Some(forwards) = forwards.filter(|forwards| !forwards.is_empty())
            && let Some(Op::Split(split)) = ops.get_mut(at)
        {
            split.set_sharing(forwards.into_iter());
        }
    }
}

/// Returns the steps that may come after `at` in the same routine.
fn followers(ops: &[Op], at: usize) -> Result<[Option<usize>; 2], ProgramError> {
    let target = |skip: u16| {
        let target = at + 1 + usize::from(skip);
        if target > ops.len() { Err(ProgramError::Target { at }) } else { Ok(Some(target)) }
    };
    Ok(match ops.get(at).map_or(Next::Nowhere, Op::next) {
        Next::Following => [Some(at + 1), None],
        Next::Past(steps) => [target(steps)?, None],
        Next::Either(steps) => [Some(at + 1), target(steps)?],
        Next::Nowhere => [None, None],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ops: Vec<Op>, expected: Result<u32, ProgramError>) {
        assert_eq!(Program::new(ops).map(|program| program.longest()), expected);
    }

    fn marked() -> Matcher {
        Matcher::Mark(0)
    }

    #[test]
    fn the_longest_way_is_known_when_the_program_is_loaded() {
        check(std::vec![], Ok(0));
        check(std::vec![Op::Mark(1), Op::Accept], Ok(2));
        check(std::vec![Op::SkipUnless(marked(), 1), Op::Mark(1), Op::Accept], Ok(3));
        check(std::vec![Op::Skip(1), Op::Mark(1), Op::Accept], Ok(2));
        // Two calls of a routine of two steps.
        check(std::vec![Op::Call(3), Op::Call(3), Op::Accept, Op::Mark(1), Op::Return], Ok(7));
    }

    #[test]
    fn programs_that_could_go_astray_are_refused() {
        check(std::vec![Op::Skip(1)], Err(ProgramError::Target { at: 0 }));
        check(std::vec![Op::Call(1)], Err(ProgramError::Target { at: 0 }));
        check(std::vec![Op::Call(0)], Err(ProgramError::Cycle { at: 0 }));
        check(
            std::vec![Op::Call(2), Op::Accept, Op::Call(4), Op::Return, Op::Call(2), Op::Return],
            Err(ProgramError::Cycle { at: 0 }),
        );
    }

    #[test]
    fn what_a_jump_leads_to_counts_but_not_what_stands_after_it() {
        // Mark, jump, mark, accept; the steps right after the jump are never taken.
        check(std::vec![Op::Goto(3), Op::Mark(1), Op::Mark(1), Op::Mark(1), Op::Accept], Ok(3));
        check(std::vec![Op::Goto(1)], Err(ProgramError::Target { at: 0 }));
        check(std::vec![Op::Goto(0)], Err(ProgramError::Cycle { at: 0 }));
        check(std::vec![Op::Goto(2), Op::Accept, Op::Goto(0)], Err(ProgramError::Cycle { at: 0 }));
    }

    #[test]
    fn calls_nest_only_so_deep() {
        let chain = |routines: u16| {
            let mut ops = std::vec![];
            for i in 0..routines {
                ops.push(Op::Call((i + 1) * 2));
                ops.push(Op::Return);
            }
            ops.push(Op::Return);
            Program::new(ops).map(|program| program.longest())
        };
        assert!(chain(16).is_ok());
        assert!(matches!(chain(17), Err(ProgramError::Depth { .. })));
    }

    #[test]
    fn programs_that_double_at_every_call_are_refused() {
        let mut ops = std::vec![];
        for i in 0..16_u16 {
            let next = (i + 1) * 4;
            ops.extend([Op::Call(next), Op::Call(next), Op::Call(next), Op::Return]);
        }
        ops.push(Op::Return);
        check(ops, Err(ProgramError::Steps));
    }
}
