//! Makes a program of steps, once per configuration: checks that every way through them ends, and
//! finds what look-ups can do ahead.

use std::collections::BTreeSet;
use std::sync::Arc;

use cache::Cache;
use sets::NameSet;

use super::Program;
use super::op::{Next, Op};
use super::reliance::reliance;
use super::shortlist::Shortlist;
use crate::matchers::Matcher;
use crate::ops::cache::Early;
use crate::ops::forward::ForwardStep;
use crate::ops::watch::Watched;

/// Calls that may be open at once.
pub const CALLS_MAX: usize = 16;
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

/// The longest way from a step to its end.
#[derive(Clone, Copy, Default)]
struct Longest {
    steps: u32,
    /// How deep calls nest.
    depth: usize,
}

impl Longest {
    /// Returns what holds where either way may be taken.
    fn or(self, other: Self) -> Self {
        Self { steps: self.steps.max(other.steps), depth: self.depth.max(other.depth) }
    }

    /// Returns what holds where both ways are taken, one after the other.
    fn and(self, other: Self) -> Self {
        Self { steps: self.steps.saturating_add(other.steps), depth: self.depth.max(other.depth) }
    }
}

/// What is known about the routine that a step begins.
#[derive(Clone, Copy)]
enum Way {
    Unknown,
    Measuring,
    Known(Longest),
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
        let ways = vec![Way::Unknown; ops.len() + 1];
        let longest = Survey { ops: &ops, ways }.measure(0, 0)?.steps;
        if longest > STEPS_MAX {
            return Err(ProgramError::Steps);
        }
        find_sharing(&mut ops);
        want_servers(&mut ops);
        keep_stamps(&mut ops);
        let changes_answers = ops.iter().any(|op| match op {
            Op::Cache(cache) => cache.continues,
            Op::Edit(_) | Op::Answer(_) | Op::Split(_) | Op::Quickest(_) => true,
            _ => false,
        });
        let large_sets = large_sets(&ops);
        let asks_zones = ops.iter().any(|op| matches!(op, Op::Zone(_)));
        let has_zones = asks_zones || ops.iter().any(|op| matches!(op, Op::ZoneSet(..)));
        let reads_subnets = ops.iter().any(Op::reads_subnets);
        let reliance = reliance(&ops);
        let watched: Arc<[Watched]> = ops.iter().filter_map(Op::watched).collect();
        Ok(Self {
            ops: ops.into_boxed_slice(),
            shortlists: shortlists.into_boxed_slice(),
            longest,
            changes_answers,
            large_sets,
            asks_zones,
            reads_subnets,
            has_zones,
            watched: (!watched.is_empty()).then_some(watched),
            reliance,
        })
    }
}

/// Measures the routines of a program.
struct Survey<'o> {
    ops: &'o [Op],
    /// What is known about the routine that each step begins.
    ways: Vec<Way>,
}

impl Survey<'_> {
    /// Returns the longest way from `start`, where `open` calls are open. Works backwards over the
    /// routine that `start` begins, so that only calls recurse, and those at most [`CALLS_MAX`]
    /// deep.
    fn measure(&mut self, start: usize, open: usize) -> Result<Longest, ProgramError> {
        match self.ways.get(start) {
            _ if start >= self.ops.len() => return Ok(Longest::default()),
            Some(Way::Known(longest)) => return Ok(*longest),
            Some(Way::Measuring) => return Err(ProgramError::Cycle { at: start }),
            Some(Way::Unknown) | None => {}
        }
        let routine = self.routine(start)?;
        self.note(start, Way::Measuring);
        let mut known = vec![Longest::default(); self.ops.len() + 1];
        for at in routine.into_iter().rev() {
            let longest = self.longest_from(at, open, &known)?;
            if let Some(slot) = known.get_mut(at) {
                *slot = longest;
            }
        }
        let longest = known.get(start).copied().unwrap_or_default();
        self.note(start, Way::Known(longest));
        Ok(longest)
    }

    fn note(&mut self, start: usize, way: Way) {
        if let Some(slot) = self.ways.get_mut(start) {
            *slot = way;
        }
    }

    /// Returns the steps of the routine that `start` begins, in their order: everything reachable
    /// by skips, which only lead forward.
    fn routine(&self, start: usize) -> Result<Vec<usize>, ProgramError> {
        let (mut routine, mut reached) = (Vec::new(), BTreeSet::from([start]));
        while let Some(at) = reached.pop_first() {
            routine.push(at);
            let next = followers(self.ops, at)?.into_iter().flatten();
            reached.extend(next.filter(|&next| next < self.ops.len()));
        }
        Ok(routine)
    }

    /// Returns the longest way from one step; those from the steps that may come after it in its
    /// routine are `known`.
    fn longest_from(&mut self, at: usize, open: usize, known: &[Longest]) -> Result<Longest, ProgramError> {
        let ops = self.ops;
        let mut way = Longest::default();
        for next in followers(ops, at)?.into_iter().flatten() {
            way = way.or(known.get(next).copied().unwrap_or_default());
        }
        match ops.get(at) {
            // A jump takes no place among the open calls, but nests here: it is bounded like a
            // call.
            Some(Op::Goto(target)) => way = way.or(self.elsewhere(at, *target, open)?),
            Some(Op::Call(target)) => way = way.and(self.elsewhere(at, *target, open)?),
            Some(Op::Split(split)) => {
                way.steps = way.steps.saturating_mul(split.rest_runs());
                for target in split.starts() {
                    way = way.and(self.elsewhere(at, *target, open)?);
                }
            }
            _ => {}
        }
        if matches!(ops.get(at), Some(Op::Call(_) | Op::Split(_))) && open + way.depth > CALLS_MAX {
            return Err(ProgramError::Depth { at });
        }
        Ok(Longest { steps: way.steps.saturating_add(1), ..way })
    }

    /// Returns the longest way from where the step `at` calls or jumps to, itself counted as a
    /// call.
    fn elsewhere(&mut self, at: usize, target: u16, open: usize) -> Result<Longest, ProgramError> {
        if open + 1 > CALLS_MAX {
            return Err(ProgramError::Depth { at });
        }
        if usize::from(target) >= self.ops.len() {
            return Err(ProgramError::Target { at });
        }
        match self.measure(usize::from(target), open + 1) {
            Ok(Longest { steps, depth }) => Ok(Longest { steps, depth: depth + 1 }),
            Err(ProgramError::Cycle { .. }) => Err(ProgramError::Cycle { at }),
            Err(other) => Err(other),
        }
    }
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

/// Has resolvers say which name servers led to what they find, if any step looks at these.
fn want_servers(ops: &mut [Op]) {
    let looks_at_servers = ops.iter().any(Op::looks_at_servers);
    for op in ops {
        if let Op::Recurse(step) = op {
            step.wants_servers = looks_at_servers;
        }
    }
}

/// Has caches keep answers with room for stamps that steps look into early.
fn keep_stamps(ops: &mut [Op]) {
    let is_early = |op: &Op| match op {
        Op::Cache(cache) if cache.rules.early != Early::No => Some(Arc::clone(&cache.cache)),
        _ => None,
    };
    let stamped: Vec<Arc<Cache>> = ops.iter().filter_map(is_early).collect();
    for op in ops {
        if let Op::Cache(cache) = op {
            cache.rules.keeps_stamps = stamped.iter().any(|early| Arc::ptr_eq(early, &cache.cache));
        }
    }
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
