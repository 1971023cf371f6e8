//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Finding out whether steps leave a cached answer alone, whoever asks for it: then it is given out
//! early, before them.
//!
//! The steps are gone through once more as the next query with the same question will go through
//! them, from the early look into the cache to the end. They may look at the question, at the
//! answer and at sets, and at clients as far as their class says it; they may do nothing. Whatever
//! else a step is, it speaks against the answer.

use std::cell::Cell;
use std::sync::Arc;

use sets::{Blocklist, NameServer};
use wire::{Header, Name, Rtype};

use super::buffers::Workspace;
use super::context::Context;
use super::state::Run;
use crate::answer::put::put;
use crate::answer::{Answer, Interim};
use crate::matchers::{Facts, Matcher};
use crate::ops::answer::Build;
use crate::ops::cache::{Asked, CacheStep, Early, Known};
use crate::ops::rewrite::Targets;
use crate::ops::split::{Rule, SPLITS_MAX, SplitStep};
use crate::program::certain::{is_about_answers, is_last_word};
use crate::program::{Op, Position};

/// An early look into a cache that found an answer of which nothing is known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    /// The number of its step.
    pub(crate) step: u16,
    /// The step after it.
    pub(crate) at: Position,
    /// What the answer would have to be known for.
    pub(crate) known: Known,
}

/// The steps, gone through once more.
struct Proof<'p> {
    run: &'p Run<'p>,
    context: &'p Context<'p>,
    /// The early look.
    early: &'p CacheStep,
    /// The answer, whose question and records stand in the message.
    answer: Answer,
    message: &'p [u8],
}

impl Run<'_> {
    /// Finds out whether the answer that the cache has by now is left alone by all steps, and notes
    /// it beside the answer.
    #[cold]
    #[inline(never)]
    pub(crate) fn prove(&self, missed: &Missed, context: &Context<'_>, work: &mut Workspace<'_>) {
        let Missed { step, at, known } = *missed;
        let Some(early) = context.snapshot.program.cache(step) else { return };
        let query = self.request.query;
        let subnet = self.outgoing.subnet(query, early.rules.keeps_subnets_apart);
        let (folded, name_hash) = (self.request.folded, self.request.sought.hash());
        let asked = Asked { query, folded, name_hash, subnet, bits: self.key_bits() };
        let body_at = self.request.body_at();
        let room = work.spare.get_mut(body_at..).unwrap_or(&mut []);
        let Some(judged) = early.look_up_to_judge(&asked, context.env.now.cache, room) else { return };
        if known.is_settled(judged.stamp) || put(work.spare, Header::LEN, query.question_bytes()).is_none() {
            return;
        }
        let proof = Proof { run: self, context, early, answer: judged.answer, message: work.spare };
        let is_untouched = proof.goes_through(at, 0).is_some_and(|interim| interim.answer.is_some());
        early.note(&judged, if is_untouched { known.untouched() } else { known.touched() });
    }
}

impl Proof<'_> {
    /// Goes through the steps from `at` to their end, or to that of a branch inside of so many
    /// others. `None` if one of them may do something.
    fn goes_through(&self, mut at: Position, depth: u8) -> Option<Interim> {
        let program = &self.context.snapshot.program;
        let mut interim = Interim { marks: 0, answer: None, is_listed_alias: false };
        // Ends: skips lead forward and calls are acyclic; `Program::new` saw to that.
        while let Some(op) = program.ops().get(at.advance()) {
            match op {
                Op::SkipUnless(matcher, steps) => {
                    if !self.holds(matcher, &interim)? {
                        at.skip(*steps);
                    }
                }
                Op::SkipIf(matcher, steps) => {
                    if self.holds(matcher, &interim)? {
                        at.skip(*steps);
                    }
                }
                // What it leaves out does not concern the query: going through that is the same.
                Op::Seek(_) => {}
                Op::Skip(steps) => at.skip(*steps),
                Op::Call(target) => at.call(*target),
                Op::Goto(target) => at.jump(*target),
                Op::Return if at.pop() => {}
                Op::Return | Op::Accept => break,
                Op::Mark(bit) => interim.marks |= 1 << (bit & 63),
                Op::Unmark(bits) => interim.marks &= !bits,
                Op::Local(local) => {
                    let Run { request, .. } = self.run;
                    if local.answer(&request.sought, request.query.question.qtype).is_some() {
                        return None;
                    }
                }
                Op::Cache(cache) if cache.rules.early != Early::No => {}
                Op::Cache(cache) if interim.answer.is_none() && self.early.is_same_cache(cache) => {
                    interim.answer = Some(self.answer);
                    if !cache.continues {
                        break;
                    }
                }
                Op::Split(split) => self.split(split, &mut interim, depth)?,
                Op::Answer(build) => self.builds_nothing(build, &interim)?,
                other => {
                    debug_assert!(is_last_word(other), "the two lists differ");
                    return None;
                }
            }
        }
        Some(interim)
    }

    fn facts<'f>(&'f self, interim: &'f Interim) -> Facts<'f> {
        Facts { request: &self.run.request, interim, env: &self.context.env, message: self.message }
    }

    /// Returns whether a condition holds; `None` if that may be otherwise for the next query.
    fn holds(&self, matcher: &Matcher, interim: &Interim) -> Option<bool> {
        let facts = self.facts(interim);
        let program = &self.context.snapshot.program;
        let is_certain = match matcher {
            Matcher::Client(set) => program.reliance().has_bit(set),
            Matcher::Listed(list) | Matcher::Ruled(list) | Matcher::ServerListed(list, _) => {
                self.knows_servers_for(list, &facts)
            }
            Matcher::ServerName(_) => self.knows_servers(Knowing::Names, &facts),
            Matcher::ServerAddress(_) => self.knows_servers(Knowing::Addresses, &facts),
            other => is_about_answers(other),
        };
        is_certain.then(|| matcher.holds(facts))
    }

    /// Goes over a split; `None` unless it is for other queries, or runs one policy and does
    /// nothing to its answer.
    fn split(&self, split: &SplitStep, interim: &mut Interim, depth: u8) -> Option<()> {
        if split.is_rest() {
            if interim.answer.is_some() {
                return Some(());
            }
            let facts = self.facts(interim);
            let is_certain = match split.rule() {
                Rule::Rewrite(rewrite) => match &rewrite.targets {
                    Targets::Listed(list) => self.knows_servers_for(list, &facts),
                    Targets::One(_) | Targets::Table { .. } => true,
                },
                Rule::Reverse(_) => true,
                Rule::Fallback(_) | Rule::Race(_) | Rule::Prefer(_) | Rule::Dns64(_) => false,
            };
            return (is_certain && !split.applies(&facts)).then_some(());
        }
        let (Rule::Race(_), &[start]) = (split.rule(), split.starts()) else { return None };
        if interim.answer.is_some() || interim.marks != 0 || self.run.depth + depth >= SPLITS_MAX {
            return None;
        }
        let of_branch = self.goes_through(Position::at(start), depth + 1)?;
        interim.answer = Some(of_branch.answer?);
        Some(())
    }

    /// Returns whether a step that makes answers makes none; `None` if it does, or may do so for
    /// the next query.
    fn builds_nothing(&self, build: &Build, interim: &Interim) -> Option<()> {
        let facts = self.facts(interim);
        let qtype = self.run.request.query.question.qtype;
        let is_nothing = match build {
            Build::Listed(listed) => {
                self.knows_servers_for(&listed.list, &facts) && listed.says_nothing(&facts)
            }
            Build::Reverse(_) => qtype != Rtype::PTR,
            Build::Block(_) | Build::Respond(_) | Build::Records { .. } => false,
        };
        is_nothing.then_some(())
    }

    /// Returns whether what a list says of name servers stays so.
    fn knows_servers_for(&self, list: &Arc<Blocklist>, facts: &Facts<'_>) -> bool {
        if list.looks_at_server_addresses() {
            self.knows_servers(Knowing::Addresses, facts)
        } else if list.looks_at_servers() {
            self.knows_servers(Knowing::Names, facts)
        } else {
            true
        }
    }

    /// Returns whether the name servers that led to the answer are known, so that no more of them
    /// come to be known later.
    fn knows_servers(&self, knowing: Knowing, facts: &Facts<'_>) -> bool {
        // Without a resolver there are none; without an answer none is looked at.
        let Some(known) = facts.servers() else { return true };
        let is_known = |name: Name<'_>| {
            // Whether there is a server, and whether the last one has an address.
            let (has_some, is_complete) = (Cell::new(false), Cell::new(true));
            known.source.each(name, known.now, &mut |server| {
                match server {
                    NameServer::Name(_) if has_some.get() && !is_complete.get() => return true,
                    NameServer::Name(_) => {
                        has_some.set(true);
                        is_complete.set(knowing == Knowing::Names);
                    }
                    NameServer::Address(_) => is_complete.set(true),
                }
                false
            });
            has_some.get() && is_complete.get()
        };
        is_known(self.run.request.sought.name())
            && facts.answer_cname(|alias| (!is_known(alias.name())).then_some(())).is_none()
    }
}

/// What of name servers has to be known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knowing {
    /// Their names.
    Names,
    /// An address of each.
    Addresses,
}
