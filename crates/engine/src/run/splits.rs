//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Running the branches of splits: as far as memory goes at once, the others when what they wait
//! for has come.

use wire::{Folded, Header, Message, Query};

use super::buffers::{PREFETCHES_MAX, Workspace};
use super::context::Context;
use super::state::{After, End, Run};
use super::suspended::{BranchOf, Suspended};
use super::want::{SharedSplit, SplitWant, Want};
use crate::answer::failure::Failure;
use crate::answer::put::put;
use crate::answer::report::{BranchReport, Worth};
use crate::answer::written::{changed, put_header};
use crate::answer::{Answer, Interim};
use crate::observe::trace::{StepOutcome, Tracer};
use crate::ops::cache::Fill;
use crate::ops::split::{Next, SPLITS_MAX, SplitStep, State};
use crate::program::Position;
use crate::query::names::Sought;
use crate::query::request::Request;
use clients::gate::cookie::Proof;
use events::EventSet;

/// Octets of a branch's query about something else; EDNS options that do not fit stay behind.
const QUERY_OCTETS_MAX: usize = 1024;

/// What a split did to a query under way.
enum Parted {
    /// Nothing: it is for other queries.
    Passes,
    /// It brought this answer, and the steps go on.
    GoesOn(Answer),
    /// The query has ended or must wait.
    Ends(End),
}

/// A branch's answer, which stands in the message or in `spare`.
struct Shown {
    branch: u8,
    answer: Answer,
    body_at: usize,
    report: BranchReport,
}

impl Shown {
    const fn len(&self) -> usize {
        self.body_at + self.answer.octets
    }

    const fn rank(&self) -> u8 {
        if let Worth::Unusable(rank) = self.report.worth { rank } else { u8::MAX }
    }
}

/// The answers that branches have from memory, those that may still win.
struct Answers {
    /// The last one, which stands in the message.
    shown: Option<Shown>,
    /// The best of the ones before, which stands in `spare`.
    held: Option<Shown>,
}

impl Answers {
    /// Makes the message free for another branch. Returns how many octets of `spare` are not.
    fn hold(&mut self, work: &mut Workspace<'_>) -> usize {
        if let Some(shown) = self.shown.take()
            && self.held.as_ref().is_none_or(|held| shown.rank() > held.rank())
            && copy(work.message, work.spare, shown.len())
        {
            self.held = Some(shown);
        }
        self.held.as_ref().map_or(0, Shown::len)
    }

    /// Keeps them while their split waits for other branches.
    fn keep(&self, want: &mut SplitWant, work: &mut Workspace<'_>) {
        for (kept, message) in [(&self.held, &mut *work.spare), (&self.shown, &mut *work.message)] {
            if let Some(kept) = kept {
                put_header(&kept.answer, message);
                want.keep(kept.branch, kept.report, message.get(..kept.len()).unwrap_or(&[]));
            }
        }
    }

    /// Takes the answer of a branch, which then stands in the message.
    fn show(self, branch: u8, work: &mut Workspace<'_>) -> Option<Shown> {
        let is_its = |shown: &Shown| shown.branch == branch;
        self.shown.filter(is_its).or_else(|| {
            let held = self.held.filter(is_its)?;
            copy(work.spare, work.message, held.len());
            Some(held)
        })
    }
}

/// Copies so many octets, if there is room.
fn copy(from: &[u8], to: &mut [u8], octets: usize) -> bool {
    from.get(..octets).and_then(|from| put(to, 0, from)).is_some()
}

impl Run<'_> {
    /// Takes the step of a split; says how the query ends if it does here.
    #[inline(never)]
    pub(crate) fn split<T: Tracer + ?Sized>(
        &mut self,
        step: u16,
        split: &SplitStep,
        context: &Context<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> Option<End> {
        let (outcome, end) = match self.part(step, split, context, work, tracer) {
            Parted::Passes => (StepOutcome::Done, None),
            Parted::GoesOn(answer) => {
                self.go_on_with(answer, work);
                (StepOutcome::Answered, None)
            }
            Parted::Ends(End::Wait(want)) => (StepOutcome::Waits(want.waiting()), Some(End::Wait(want))),
            Parted::Ends(end) => (StepOutcome::Ended, Some(end)),
        };
        tracer.step(step, outcome);
        end
    }

    /// Runs the branches that can be answered from memory, and joins them or says what to wait for.
    fn part<T: Tracer + ?Sized>(
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
        let mut want = SplitWant::new(step, None, None);
        let mut answers = Answers { shown: None, held: None };
        // Ends: each round starts a branch, or is the last.
        let winner = loop {
            match split.next(&want.progress) {
                Next::Begin(index) => {
                    let held_octets = answers.hold(work);
                    let branch = BranchOf { step, index };
                    match self.branch(split, branch, context, &mut work.behind(held_octets), tracer) {
                        BranchEnd::Answer(answer, body_at, report) => {
                            want.progress.end(index, &report);
                            answers.shown = Some(Shown { branch: index, answer, body_at, report });
                        }
                        BranchEnd::Ended(worth) => want.progress.end(index, &BranchReport::empty(worth)),
                        BranchEnd::Waits(suspended) => want.begin(index, suspended),
                    }
                }
                Next::Wait(_) => {
                    want.shared = self.shared_split(split, context);
                    want.stale_after_ms = self.patience_ms(&context.snapshot.program);
                    answers.keep(&mut want, work);
                    return Parted::Ends(End::Wait(Want::Split(Box::new(want))));
                }
                Next::Done(winner) => break winner,
            }
        };
        let Some(winner) = winner else { return nothing(split) };
        if want.progress.state(winner) == State::Ended(Worth::Dropped) && split.is_rest() {
            return Parted::Ends(End::Drop);
        }
        let Some(won) = answers.show(winner, work) else { return nothing(split) };
        self.event_set.merge(&won.report.event_set);
        let answer = self.join(split, &won, want.progress.note(), work);
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
                copy(work.spare, work.message, body_at + written.octets);
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
            self.at.back(split.steps_back())
        } else {
            Position::at(split.starts().get(usize::from(branch.index)).copied().unwrap_or(u16::MAX))
        };
        match split.question(branch.index, &self.facts(&context.env, work.message)) {
            None => {
                let Request { query, folded, ref sought, .. } = self.request;
                self.child(query, folded, sought.hash(), (start, false))
                    .run_branch(split, branch, context, work, tracer)
            }
            Some((qname, qtype)) => {
                let mut octets = [0; QUERY_OCTETS_MAX];
                let Some(query) = self.request.query.about(qname.as_name(), qtype, &mut octets) else {
                    return BranchEnd::Ended(Worth::Nothing);
                };
                let mut folded = Folded::root();
                let name_hash = context.env.key.fold(query.question.qname, &mut folded);
                self.child(&query, &folded, name_hash, (start, split.follows_list()))
                    .run_branch(split, branch, context, work, tracer)
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
        (start, follows_list): (Position, bool),
    ) -> Run<'c> {
        let Request { client, proof, .. } = self.request;
        let sought = Sought::new(folded, name_hash);
        let request = Request { query, client, proof, folded, sought };
        let is_listed_alias = self.interim.is_listed_alias || follows_list;
        Run {
            interim: Interim { marks: self.interim.marks, is_listed_alias, answer: None },
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
        match self.after {
            None => {}
            Some(After::Prefetch(at, fill)) => self.send_prefetch(at, fill, context, work),
            Some(After::Prove(missed)) => self.prove(&missed, context, work),
            Some(After::ClearRa) => {}
        }
        match end {
            End::Answer(answer) => {
                let question = self.request.query.question_bytes();
                let body_at = Header::LEN + question.len();
                put(work.message, Header::LEN, question);
                let report = split.judge(branch.index, &answer, work.message, body_at);
                let report = BranchReport { event_set: self.event_set, ..report };
                BranchEnd::Answer(answer, body_at, report)
            }
            End::Nothing => BranchEnd::Ended(Worth::Nothing),
            End::Drop => BranchEnd::Ended(Worth::Dropped),
            End::Wait(want) => {
                let (snapshot, kept) = (context.snapshot, tracer.keep());
                BranchEnd::Waits(Suspended::new(snapshot, &self, want, Some(branch), work.message, kept))
            }
        }
    }

    /// Puts the refresh of a cached answer aside for the worker.
    #[cold]
    fn send_prefetch(&self, at: Position, fill: Fill, context: &Context<'_>, work: &mut Workspace<'_>) {
        if work.prefetches.len() < PREFETCHES_MAX {
            context.counters.prefetches.bump();
            let Request { query, folded, ref sought, .. } = self.request;
            let child = self.child(query, folded, sought.hash(), (at, false));
            let run = Run {
                request: Request { proof: Proof::None, ..child.request },
                fill: Some(fill),
                event_set: EventSet::SILENT,
                // Nobody waits for the answer: policies are asked when somebody wants it.
                outgoing: child.outgoing.servers_first(),
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
