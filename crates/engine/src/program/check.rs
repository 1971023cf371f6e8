//! Makes a program of steps, once per configuration: checks that every way through them ends, and
//! finds what look-ups can do ahead.

use std::sync::Arc;

use sets::NameSet;

use super::Program;
use super::op::{Next, Op};
use super::position::CALLS_MAX;
use super::shortlist::Shortlist;
use crate::matchers::Matcher;
use crate::ops::forward::ForwardStep;

/// Steps that one query may take, calls included; longer programs are refused when they are loaded.
pub const STEPS_MAX: u32 = 65_536;
/// Sets that are looked into ahead; others are waited for.
pub(crate) const LOOKAHEAD_SETS_MAX: usize = 4;

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

/// What is known about the longest way from a step to its end.
#[derive(Clone, Copy)]
enum Way {
    Unknown,
    Measuring,
    Known { steps: u32, depth: usize },
}

impl Program {
    /// Checks that every way through the steps ends, and how long the longest is.
    pub fn new(ops: Vec<Op>) -> Result<Self, ProgramError> {
        Self::with_shortlists(ops, vec![])
    }

    /// Does the same for steps of which some use shortlists.
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
        let mut ways = vec![Way::Unknown; ops.len() + 1];
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
        let asks_zones = ops.iter().any(|op| matches!(op, Op::Zone));
        let has_zones = asks_zones || ops.iter().any(|op| matches!(op, Op::ZoneSet(_)));
        Ok(Self {
            ops: ops.into_boxed_slice(),
            shortlists: shortlists.into_boxed_slice(),
            longest,
            changes_answers,
            large_sets,
            asks_zones,
            has_zones,
        })
    }
}

/// Returns the steps and the call depth of the longest way from `start`. Works backwards over the
/// routine that `start` begins, so that only calls recurse, and those at most [`CALLS_MAX`] deep.
fn measure(ops: &[Op], start: usize, ways: &mut [Way]) -> Result<(u32, usize), ProgramError> {
    measure_routine(ops, start, ways, 0)
}

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
    let mut reach = vec![false; ops.len() + 1];
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
    let mut longest = vec![(0_u32, 0_usize); ops.len() + 2];
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
            // A jump takes no place among the open calls, but nests here: it is bounded like a
            // call.
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
fn large_sets(ops: &[Op]) -> Box<[Arc<NameSet>]> {
    let mut found: Vec<Arc<NameSet>> = Vec::new();
    let mut add = |set: &Arc<NameSet>| {
        if found.len() < LOOKAHEAD_SETS_MAX && !found.iter().any(|known| Arc::ptr_eq(known, set)) {
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
