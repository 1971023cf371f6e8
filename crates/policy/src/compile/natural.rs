//! Once per configuration: whether it can pay to look into a cache early.
//!
//! Steps have to leave answers alone for that, and to do so for every query with the same question.
//! What most queries go through is looked at: of every rule the condition, and the rules without
//! one.

use std::collections::BTreeSet;

use engine::ops::cache::{CacheStep, Early};
use engine::ops::split::Rule;
use engine::program::certain::{is_about_answers, is_last_word};
use engine::program::{Matcher, Op, STEPS_MAX};

/// Takes steps away that look into a cache early and find nothing there.
pub(super) fn drop_useless(ops: &mut [Op]) {
    let useless: Vec<usize> = (0..ops.len())
        .filter(|&at| match ops.get(at) {
            Some(Op::Cache(cache)) if cache.rules.early != Early::No => !is_left_alone(ops, at, cache),
            _ => false,
        })
        .collect();
    for at in useless {
        if let Some(op) = ops.get_mut(at) {
            *op = Op::Skip(0);
        }
    }
}

fn is_left_alone(ops: &[Op], at: usize, early: &CacheStep) -> bool {
    let mut way = Way { ops, early, left: STEPS_MAX, open: BTreeSet::new() };
    // In a policy that others call, the steps after the call follow; which these are, nobody knows
    // here.
    way.goes_through(at + 1).unwrap_or(false)
}

/// The way that most queries take.
struct Way<'o> {
    ops: &'o [Op],
    early: &'o CacheStep,
    /// Steps that may be taken: it is not known yet whether policies call each other in a circle.
    left: u32,
    /// Where the branches begin that it is inside of.
    open: BTreeSet<u16>,
}

impl Way<'_> {
    /// Goes through the steps; returns whether there is an answer at the end, and `None` if one of
    /// them always speaks against it.
    fn goes_through(&mut self, mut at: usize) -> Option<bool> {
        let mut returns = Vec::new();
        let mut has_answer = false;
        while let Some(op) = self.ops.get(at) {
            self.left = self.left.checked_sub(1)?;
            at += 1;
            match op {
                Op::SkipUnless(matcher, steps) if !holds(matcher, has_answer)? => at += usize::from(*steps),
                Op::SkipIf(matcher, steps) if holds(matcher, has_answer)? => at += usize::from(*steps),
                Op::Skip(steps) => at += usize::from(*steps),
                Op::Call(target) => {
                    returns.push(at);
                    at = usize::from(*target);
                }
                Op::Goto(target) => {
                    returns.clear();
                    at = usize::from(*target);
                }
                Op::Return => match returns.pop() {
                    Some(after) => at = after,
                    None => break,
                },
                Op::Accept => break,
                Op::Cache(cache) if cache.rules.early != Early::No => {}
                Op::Cache(cache) if !has_answer && self.early.is_same_cache(cache) => {
                    has_answer = true;
                    if !cache.continues {
                        break;
                    }
                }
                Op::Split(split)
                    if split.is_rest()
                        && (has_answer || matches!(split.rule(), Rule::Rewrite(_) | Rule::Reverse(_))) => {}
                // One that runs the rest has no starts.
                Op::Split(split) => {
                    let (Rule::Race(_), &[start], false) = (split.rule(), split.starts(), has_answer) else {
                        return None;
                    };
                    if !self.open.insert(start) {
                        return None;
                    }
                    has_answer = self.goes_through(usize::from(start))?;
                }
                op if is_last_word(op) => return None,
                // What a list, local names or marks say, they say of few queries.
                _ => {}
            }
        }
        Some(has_answer)
    }
}

/// Returns whether a condition holds for most queries.
fn holds(matcher: &Matcher, has_answer: bool) -> Option<bool> {
    match matcher {
        Matcher::Constant(holds) => Some(*holds),
        Matcher::Answer | Matcher::Answered => Some(has_answer),
        Matcher::Flag(_) => is_about_answers(matcher).then_some(true),
        _ => is_about_answers(matcher).then_some(false),
    }
}
