//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Running the branches of splits: as far as memory goes at once, the others when what they wait
//! for has come.

use wire::{Folded, Header, Message, Query};

use super::buffers::{PREFETCHES_MAX, Workspace};
use super::context::Context;
use super::state::{End, Run};
use super::suspended::{BranchOf, Suspended};
use super::want::{SharedSplit, SplitWant, Want};
use crate::answer::failure::Failure;
use crate::answer::report::{BranchReport, Worth};
use crate::answer::written::{changed, put_header};
use crate::answer::{Answer, Interim};
use crate::events::EventSet;
use crate::observe::trace::Tracer;
use crate::ops::cache::Fill;
use crate::ops::split::{BRANCHES_MAX, Next, Progress, SPLITS_MAX, SplitStep, State};
use crate::program::Position;
use crate::query::gate::cookie::Proof;
use crate::query::names::Sought;
use crate::query::request::Request;

/// Octets of a branch's query about something else; EDNS options that do not fit stay behind.
const QUERY_OCTETS_MAX: usize = 1024;

/// What a split did to a query under way.
pub(crate) enum Parted {
    /// Nothing: it is for other queries.
    Passes,
    /// It brought this answer, and the steps go on.
    GoesOn(Answer),
    /// The query has ended or must wait.
    Ends(End),
}

/// An answer that stands in the message.
struct Shown {
    branch: u8,
    answer: Answer,
    body_at: usize,
    rank: u8,
}

impl Shown {
    const fn len(&self) -> usize {
        self.body_at + self.answer.octets
    }
}

impl Run<'_> {
    /// Runs the branches that can be answered from memory, and joins them or says what to wait for.
    #[inline(never)]
    pub(crate) fn split<T: Tracer + ?Sized>(
        &mut self,
        step: u16,
        split: &SplitStep,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> Parted {
        // What asks in what follows is too late when there is an answer: that one stays.
        if split.is_rest() && self.interim.answer.is_some() {
            return Parted::Passes;
        }
        if !split.applies(&self.facts(&context.env, work.message)) {
            return Parted::Passes;
        }
        if self.depth >= SPLITS_MAX {
            return Parted::Ends(End::Answer(Answer::failed(Failure::TooDeep)));
        }
        let program = &context.snapshot.program;
        let mut progress = Progress::new();
        let mut begun: [Option<Box<Suspended>>; BRANCHES_MAX] = [const { None }; BRANCHES_MAX];
        // What the last branch left in the message, and the best of the ones before, which stands
        // in `spare`.
        let mut shown: Option<Shown> = None;
        let mut held: Option<Shown> = None;
        let mut reports = [BranchReport::empty(Worth::Nothing); BRANCHES_MAX];
        // Ends: each round starts a branch, or is the last.
        let winner = loop {
            match split.next(&progress) {
                Next::Begin(branch) => {
                    if let Some(shown) = shown.take()
                        && held.as_ref().is_none_or(|held| shown.rank > held.rank)
                        && let (Some(from), Some(to)) =
                            (work.message.get(..shown.len()), work.spare.get_mut(..shown.len()))
                    {
                        to.copy_from_slice(from);
                        held = Some(shown);
                    }
                    let held_len = held.as_ref().map_or(0, Shown::len).min(work.spare.len());
                    let (_, spare) = work.spare.split_at_mut(held_len);
                    let mut work = Workspace {
                        message: &mut *work.message,
                        spare,
                        ttl_offsets: &mut *work.ttl_offsets,
                        ttl_count: None,
                        events: &mut *work.events,
                        distances: &mut *work.distances,
                        prefetches: &mut *work.prefetches,
                        candidates: &mut *work.candidates,
                    };
                    let branch_of = BranchOf { step, index: branch };
                    match self.branch(split, branch_of, context, &mut work, tracer) {
                        BranchEnd::Answer(answer, body_at, report) => {
                            progress.end(branch, &report);
                            if let Some(slot) = reports.get_mut(usize::from(branch)) {
                                *slot = report;
                            }
                            let rank = match report.worth {
                                Worth::Unusable(rank) => rank,
                                _ => u8::MAX,
                            };
                            shown = Some(Shown { branch, answer, body_at, rank });
                        }
                        BranchEnd::Ended(worth) => progress.end(branch, &BranchReport::empty(worth)),
                        BranchEnd::Waits(suspended) => {
                            progress.begin(branch);
                            if let Some(slot) = begun.get_mut(usize::from(branch)) {
                                *slot = Some(suspended);
                            }
                        }
                    }
                }
                Next::Wait(_) => {
                    let mut want = Box::new(SplitWant {
                        step,
                        progress,
                        shared: self.shared_split(split, context),
                        stale_after_ms: self.patience_ms(program),
                        begun,
                        ended: [const { None }; BRANCHES_MAX],
                    });
                    for (kept, message) in [(&held, &mut *work.spare), (&shown, &mut *work.message)] {
                        if let Some(kept) = kept
                            && let Some(report) = reports.get(usize::from(kept.branch))
                        {
                            put_header(&kept.answer, message);
                            want.keep(kept.branch, *report, message.get(..kept.len()).unwrap_or(&[]));
                        }
                    }
                    return Parted::Ends(End::Wait(Want::Split(want)));
                }
                Next::Done(winner) => break winner,
            }
        };
        let Some(winner) = winner else { return nothing(split) };
        match progress.state(winner) {
            State::Ended(Worth::Dropped) if split.is_rest() => return Parted::Ends(End::Drop),
            State::Ended(Worth::Nothing | Worth::Dropped) => return nothing(split),
            _ => {}
        }
        let is_shown = shown.as_ref().is_some_and(|shown| shown.branch == winner);
        let Some(won) = (if is_shown { shown } else { held.filter(|held| held.branch == winner) }) else {
            return nothing(split);
        };
        if !is_shown
            && let (Some(from), Some(to)) = (work.spare.get(..won.len()), work.message.get_mut(..won.len()))
        {
            to.copy_from_slice(from);
        }
        if let Some(report) = reports.get(usize::from(winner)) {
            self.event_set.merge(&report.event_set);
        }
        let answer = self.join(split, &won, progress.note(), work);
        work.ttl_count = None;
        if split.is_rest() { Parted::Ends(End::Answer(answer)) } else { Parted::GoesOn(answer) }
    }

    /// Returns what makes two queries that wait here the same, if they can be.
    fn shared_split(&self, split: &SplitStep, context: &Context<'_>) -> Option<SharedSplit> {
        let sending = || self.sending(&context.snapshot.program);
        let query = split.shared(context.env.key, &self.request, sending)?;
        Some(SharedSplit { query, continuation: self.at.fingerprint() })
    }

    /// Makes the split's answer out of the branch's that stands in the message.
    fn join(&self, split: &SplitStep, won: &Shown, note: u32, work: &mut Workspace<'_>) -> Answer {
        if !split.changes(won.branch) {
            return won.answer;
        }
        put_header(&won.answer, work.message);
        let written = match work.message.get(..won.len()).map(Message::parse) {
            Some(Ok(message)) => split.change(won.branch, note, &message, self.request.query, work.spare),
            _ => None,
        };
        let body_at = self.request.body_at();
        match written {
            Some(written) => {
                let end = body_at + written.octets;
                if let (Some(from), Some(to)) = (work.spare.get(..end), work.message.get_mut(..end)) {
                    to.copy_from_slice(from);
                }
                changed(&won.answer, &written)
            }
            None => Answer::failed(Failure::NotRewritten),
        }
    }

    /// Runs one branch as far as memory goes.
    pub(crate) fn branch<T: Tracer + ?Sized>(
        &self,
        split: &SplitStep,
        branch: BranchOf,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> BranchEnd {
        let start = if split.is_rest() {
            self.at
        } else {
            Position::at(split.starts().get(usize::from(branch.index)).copied().unwrap_or(u16::MAX))
        };
        match split.question(branch.index, &self.facts(&context.env, work.message)) {
            None => {
                let Request { query, folded, ref sought, .. } = self.request;
                self.child(query, folded, sought.hash(), start)
                    .run_branch(split, branch, context, work, tracer)
            }
            Some((qname, qtype)) => {
                let mut octets = [0; QUERY_OCTETS_MAX];
                let Some(query) = self.request.query.about(qname.as_name(), qtype, &mut octets) else {
                    return BranchEnd::Ended(Worth::Nothing);
                };
                let mut folded = Folded::root();
                let name_hash = context.env.key.fold(query.question.qname, &mut folded);
                self.child(&query, &folded, name_hash, start).run_branch(split, branch, context, work, tracer)
            }
        }
    }

    /// Returns a query under way for a branch: it knows what this one knows, and keeps and answers
    /// on its own account.
    fn child<'c>(
        &'c self,
        query: &'c Query<'c>,
        folded: &'c Folded,
        name_hash: u64,
        start: Position,
    ) -> Run<'c> {
        let Request { client, proof, .. } = self.request;
        let sought = Sought::new(folded, name_hash);
        let request = Request { query, client, proof, folded, sought };
        Run {
            interim: Interim { marks: self.interim.marks, answer: None },
            outgoing: self.outgoing,
            depth: self.depth + 1,
            ..Run::new(request, start)
        }
    }

    fn run_branch<T: Tracer + ?Sized>(
        mut self,
        split: &SplitStep,
        branch: BranchOf,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> BranchEnd {
        let end = self.interpret(context, work, tracer);
        if let Some((at, fill)) = self.prefetch {
            self.send_prefetch(at, fill, context, work);
        }
        match end {
            End::Answer(answer) => {
                let question = self.request.query.question_bytes();
                let body_at = Header::LEN + question.len();
                if let Some(place) = work.message.get_mut(Header::LEN..body_at) {
                    place.copy_from_slice(question);
                }
                let report = split.judge(branch.index, &answer, work.message, body_at);
                let report = BranchReport { event_set: self.event_set, ..report };
                BranchEnd::Answer(answer, body_at, report)
            }
            End::Nothing => BranchEnd::Ended(Worth::Nothing),
            End::Drop => BranchEnd::Ended(Worth::Dropped),
            End::Wait(want) => {
                let kept = tracer.keep();
                BranchEnd::Waits(Suspended::new(
                    context.snapshot,
                    &self,
                    want,
                    Some(branch),
                    work.message,
                    kept,
                ))
            }
        }
    }

    /// Puts the refresh of a cached answer aside for the worker.
    #[cold]
    fn send_prefetch(&self, at: Position, fill: Fill, context: &Context<'_>, work: &mut Workspace<'_>) {
        if work.prefetches.len() < PREFETCHES_MAX {
            context.counters.prefetches.bump();
            let Request { query, folded, ref sought, .. } = self.request;
            let child = self.child(query, folded, sought.hash(), at);
            let run = Run {
                request: Request { proof: Proof::None, ..child.request },
                fill: Some(fill),
                event_set: EventSet::SILENT,
                ..child
            };
            work.prefetches.push(Suspended::new(context.snapshot, &run, Want::Yield, None, &[], None));
        }
    }
}

/// How far a branch came from memory.
pub(crate) enum BranchEnd {
    /// To this answer, whose records start here in the message.
    Answer(Answer, usize, BranchReport),
    /// To its end, without an answer.
    Ended(Worth),
    /// It must wait.
    Waits(Box<Suspended>),
}

/// Returns what becomes of a query none of whose branches had an answer.
#[cold]
const fn nothing(split: &SplitStep) -> Parted {
    if split.is_rest() {
        Parted::Ends(End::Nothing)
    } else {
        Parted::GoesOn(Answer::failed(Failure::NoBranch))
    }
}
