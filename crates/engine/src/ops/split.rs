//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that ask in several ways: fallback, a race of policies, preference for one family, DNS64, redirection.
//!
//! A *split* runs branches: policies, or the rest of the program with another question. What can be answered from
//! memory is run at once, branch by branch; the first that must wait puts the query aside, and whoever waits for it
//! runs the others as [`SplitStep::next`] says. The rules are here, once, for both.

use wire::message::records;
use wire::{EdeCode, Flags, Folded, Header, Message, NameBuf, Query, Rcode, Rtype, Section};

use super::cache::Fill;
use super::dns64::{Dns64, Reverse};
use super::forward::{ALL_MEMBERS, ForwardStep};
use super::prefer::Prefer;
use super::rewrite::Rewrite;
use crate::events::Tells;
use crate::finish::Answer;
use crate::gate::cookie::Proof;
use crate::matchers::Facts;
use crate::names::Sought;
use crate::program::Position;
use crate::resume::{ERRANDS_MAX, Suspended};
use crate::run::{Desktop, End, Run, Workspace};
use crate::trace::Tracer;
use crate::want::{PoolId, SharedSplit, SplitWant, Want};

/// Branches of one split.
pub const BRANCHES_MAX: usize = 4;
/// Splits that one query may be inside of at once, so that programs which split in the rest of their rest end.
pub const SPLITS_MAX: u8 = 8;
/// Octets of a branch's query about something else; EDNS options that do not fit stay behind.
const QUERY_OCTETS_MAX: usize = 1024;

/// Asks in several ways and goes on with one answer.
pub struct SplitStep {
    rule: Rule,
    branches: Branches,
    /// Set when all that every branch does is to ask a group: then equal queries can share it.
    sharing: Option<Sharing>,
}

/// Which answer wins, and what becomes of it.
pub enum Rule {
    /// The first branch; the second when the first fails or takes too long.
    Fallback(Fallback),
    /// All branches at once; the first usable answer.
    Race(Unusable),
    /// No addresses of one family where there are some of the other.
    Prefer(Prefer),
    /// IPv6 addresses made from IPv4 ones where there are no others.
    Dns64(Box<Dns64>),
    /// Reverse names of such addresses.
    Reverse(Box<Reverse>),
    /// Another name in place of the one asked for.
    Rewrite(Box<Rewrite>),
}

/// How a second branch stands in for the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The first branch has failed after this long without an answer; the second starts then, and both go on.
    pub after_ms: u32,
    /// Whether being slow is a reason for the second to start.
    pub on_slow: bool,
    /// Whether the second starts together with the first, its answer kept back until it is needed.
    pub standby: Standby,
    /// What counts as failure.
    pub unusable: Unusable,
}

/// When the second branch of a fallback starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standby {
    /// When the first has failed or is slow.
    Late,
    /// At once.
    Always,
}

/// Answers that do not count as long as another branch may have a better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// One bit for each of the first 32 rcodes; those above are never usable.
    pub rcodes: u32,
    /// Whether failures of our own (no upstream answered) are unusable.
    pub failures: bool,
}

impl Default for Unusable {
    /// Every rcode but NOERROR, NXDOMAIN and YXDOMAIN, and every failure.
    fn default() -> Self {
        Self { rcodes: !(1 | 1 << 3 | 1 << 6), failures: true }
    }
}

impl Unusable {
    fn covers(self, answer: &Answer) -> bool {
        if answer.is_silence {
            self.failures
        } else {
            answer.rcode.0 >= 32 || self.rcodes >> answer.rcode.0 & 1 != 0
        }
    }
}

/// What the branches run.
enum Branches {
    /// Policies, by their first steps.
    Policies { starts: [u16; BRANCHES_MAX], count: u8 },
    /// The steps after the split, each branch with a question of its own; the query ends with their answer.
    Rest,
}

/// What equal queries share.
#[derive(Clone, Copy)]
struct Sharing {
    forwards_client_subnet: bool,
}

/// What a branch's answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// It can win.
    Usable,
    /// It wins only when no other branch has a better one; the larger number is the better one.
    Unusable(u8),
    /// The branch ended without an answer.
    Nothing,
    /// The branch decided to say nothing at all.
    Dropped,
}

/// What is known about a branch that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchReport {
    /// What its answer is worth.
    pub worth: Worth,
    pub(crate) ede: Option<(EdeCode, &'static str)>,
    pub(crate) is_failure: bool,
    pub(crate) is_for_every_subnet: bool,
    /// Something the rule wants to know when it joins: for DNS64 the seconds that "no IPv6" is true.
    pub(crate) note: u32,
    /// What it has to tell, if it wins.
    pub(crate) tells: Tells,
}

impl BranchReport {
    /// Returns the report of a branch that brought nothing.
    pub const fn empty(worth: Worth) -> Self {
        Self { worth, ede: None, is_failure: false, is_for_every_subnet: false, note: 0, tells: Tells::NONE }
    }
}

/// How far the branches are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    states: [State; BRANCHES_MAX],
    is_due: bool,
    /// The note of the first branch's report.
    note: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Ended(Worth),
}

/// What to do about a split now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start this branch.
    Begin(u8),
    /// Wait for a branch; if there is a number, at most so many milliseconds from when it is first said.
    Wait(Option<u32>),
    /// This branch's answer is the one; or there is none.
    Done(Option<u8>),
}

impl Progress {
    /// Returns the beginning: no branch has started.
    pub const fn new() -> Self {
        Self { states: [State::Idle; BRANCHES_MAX], is_due: false, note: 0 }
    }

    /// Notes that a branch has started.
    pub fn begin(&mut self, branch: u8) {
        self.set(branch, State::Running);
    }

    /// Notes that a branch has ended.
    pub fn end(&mut self, branch: u8, report: &BranchReport) {
        self.set(branch, State::Ended(report.worth));
        if branch == 0 {
            self.note = report.note;
        }
    }

    /// Notes that the time of [`Next::Wait`] has passed.
    pub const fn due(&mut self) {
        self.is_due = true;
    }

    /// Returns what the rule noted about the first branch.
    pub(crate) const fn note(&self) -> u32 {
        self.note
    }

    /// Returns whether a branch has started and not ended.
    pub fn is_running(&self, branch: u8) -> bool {
        self.state(branch) == State::Running
    }

    fn set(&mut self, branch: u8, state: State) {
        if let Some(slot) = self.states.get_mut(usize::from(branch)) {
            *slot = state;
        }
    }

    fn state(&self, branch: u8) -> State {
        self.states.get(usize::from(branch)).copied().unwrap_or(State::Ended(Worth::Nothing))
    }

    /// Returns the best of the answers that are there, the first of several equally good ones.
    fn best(&self) -> Option<u8> {
        let mut best: Option<(u8, u8)> = None;
        for (branch, state) in (0..).zip(&self.states) {
            let rank = match state {
                State::Ended(Worth::Usable) => u8::MAX,
                State::Ended(Worth::Unusable(rank)) => *rank,
                State::Ended(Worth::Nothing | Worth::Dropped) | State::Idle | State::Running => continue,
            };
            if best.is_none_or(|(_, other)| rank > other) {
                best = Some((branch, rank));
            }
        }
        best.map(|(branch, _)| branch)
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl SplitStep {
    /// Returns a step that runs policies; their first steps are given, or set later by [`SplitStep::set_start`].
    // Once per configuration.
    pub fn of_policies(rule: Rule, firsts: &[u16]) -> Self {
        let mut starts = [0; BRANCHES_MAX];
        for (start, first) in starts.iter_mut().zip(firsts) {
            *start = *first;
        }
        let count = firsts.len().min(BRANCHES_MAX) as u8;
        Self { rule, branches: Branches::Policies { starts, count }, sharing: None }
    }

    /// Returns a step that runs the steps after it.
    // Once per configuration.
    pub const fn of_rest(rule: Rule) -> Self {
        Self { rule, branches: Branches::Rest, sharing: None }
    }

    /// Says where a branch's policy starts.
    // Once per configuration.
    pub fn set_start(&mut self, branch: usize, start: u16) {
        if let Branches::Policies { starts, .. } = &mut self.branches
            && let Some(slot) = starts.get_mut(branch)
        {
            *slot = start;
        }
    }

    /// Returns the first steps of the policies it runs.
    pub fn starts(&self) -> &[u16] {
        match &self.branches {
            Branches::Policies { starts, count } => starts.get(..usize::from(*count)).unwrap_or(&[]),
            Branches::Rest => &[],
        }
    }

    /// Returns the rule.
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Returns how often it may run the steps after it.
    pub(crate) const fn rest_runs(&self) -> u32 {
        match (&self.branches, &self.rule) {
            (Branches::Policies { .. }, _) => 1,
            (Branches::Rest, Rule::Prefer(_) | Rule::Dns64(_)) => 2,
            (Branches::Rest, _) => 1,
        }
    }

    /// Notes what its branches do, if all that each does is to ask a group.
    // Once per configuration.
    pub(crate) fn set_sharing(&mut self, forwards: impl Iterator<Item = ForwardStep>) {
        let forwards_client_subnet =
            forwards.fold(false, |any, forward| any | forward.forwards_client_subnet);
        self.sharing = Some(Sharing { forwards_client_subnet });
    }

    pub(crate) const fn is_rest(&self) -> bool {
        matches!(self.branches, Branches::Rest)
    }

    /// Returns what to do when the branches are so far.
    pub fn next(&self, progress: &Progress) -> Next {
        match &self.rule {
            Rule::Fallback(fallback) => fallback.next(progress),
            Rule::Race(_) => self.next_in_race(progress),
            Rule::Prefer(prefer) => {
                // The other family first: from memory that says at once whether more is to be done.
                match (progress.state(0), progress.state(1)) {
                    (_, State::Idle) => Next::Begin(1),
                    (_, State::Ended(Worth::Usable)) => Next::Done(Some(1)),
                    (State::Idle, _) => Next::Begin(0),
                    (State::Running, _) => Next::Wait(None),
                    (State::Ended(_), State::Running) if !progress.is_due => Next::Wait(Some(prefer.wait_ms)),
                    (State::Ended(_), _) => Next::Done(Some(0)),
                }
            }
            Rule::Dns64(_) => match (progress.state(0), progress.state(1)) {
                (State::Idle, _) => Next::Begin(0),
                (State::Running, _) | (_, State::Running) => Next::Wait(None),
                (State::Ended(Worth::Unusable(_)), State::Idle) => Next::Begin(1),
                (State::Ended(Worth::Unusable(_)), State::Ended(Worth::Usable)) => Next::Done(Some(1)),
                (State::Ended(_), _) => Next::Done(Some(0)),
            },
            Rule::Reverse(_) | Rule::Rewrite(_) => match progress.state(0) {
                State::Idle => Next::Begin(0),
                State::Running => Next::Wait(None),
                State::Ended(_) => Next::Done(Some(0)),
            },
        }
    }

    fn next_in_race(&self, progress: &Progress) -> Next {
        let count = self.starts().len() as u8;
        let mut is_running = false;
        for branch in 0..count {
            match progress.state(branch) {
                State::Idle => return Next::Begin(branch),
                State::Ended(Worth::Usable) => return Next::Done(Some(branch)),
                State::Running => is_running = true,
                State::Ended(_) => {}
            }
        }
        if is_running { Next::Wait(None) } else { Next::Done(progress.best()) }
    }

    /// Returns whether it does anything about this query.
    fn applies(&self, facts: &Facts<'_>) -> bool {
        let query = facts.run.query;
        match &self.rule {
            Rule::Fallback(_) | Rule::Race(_) => true,
            Rule::Prefer(prefer) => prefer.applies(query),
            Rule::Dns64(_) => Dns64::applies(query),
            Rule::Reverse(reverse) => reverse.target(query, facts.run.sought.name()).is_some(),
            Rule::Rewrite(rewrite) => rewrite.target(facts).is_some(),
        }
    }

    /// Returns what a branch asks, if that is not what the query asks.
    fn question(&self, branch: u8, facts: &Facts<'_>) -> Option<(NameBuf, Rtype)> {
        let query = facts.run.query;
        let question = &query.question;
        match (&self.rule, branch) {
            (Rule::Prefer(prefer), 1) => Some((question.qname.to_buf(), prefer.wanted)),
            (Rule::Dns64(_), 1) => Some((question.qname.to_buf(), Rtype::A)),
            (Rule::Reverse(reverse), _) => {
                Some((reverse.target(query, facts.run.sought.name())?, Rtype::PTR))
            }
            (Rule::Rewrite(rewrite), _) => Some((rewrite.target(facts)?, question.qtype)),
            _ => None,
        }
    }

    /// Judges the answer of a branch, whose question and records stand in `message`.
    pub(crate) fn judge(&self, branch: u8, answer: &Answer, message: &[u8], body_at: usize) -> BranchReport {
        let mut note = 0;
        let worth = match (&self.rule, branch) {
            (Rule::Fallback(Fallback { unusable, .. }) | Rule::Race(unusable), _) => {
                if unusable.covers(answer) { Worth::Unusable(rank(answer)) } else { Worth::Usable }
            }
            (Rule::Prefer(prefer), 1) => {
                if has_type(answer, message, body_at, prefer.wanted) {
                    Worth::Usable
                } else {
                    Worth::Unusable(0)
                }
            }
            (Rule::Dns64(dns64), 0) => match dns64.lacks_addresses(answer, message, body_at) {
                Some(seconds) => {
                    note = seconds;
                    Worth::Unusable(rank(answer))
                }
                None => Worth::Usable,
            },
            (Rule::Dns64(_), _) => {
                if has_type(answer, message, body_at, Rtype::A) {
                    Worth::Usable
                } else {
                    Worth::Unusable(0)
                }
            }
            (Rule::Prefer(_) | Rule::Reverse(_) | Rule::Rewrite(_), _) => Worth::Usable,
        };
        BranchReport {
            worth,
            ede: answer.ede,
            is_failure: answer.is_failure,
            is_for_every_subnet: answer.is_for_every_subnet,
            note,
            tells: Tells::NONE,
        }
    }

    /// Returns whether a branch's answer must be changed to be the split's.
    pub(crate) const fn changes(&self, branch: u8) -> bool {
        match &self.rule {
            Rule::Fallback(_) | Rule::Race(_) => false,
            Rule::Prefer(_) => branch == 1,
            Rule::Dns64(_) | Rule::Reverse(_) | Rule::Rewrite(_) => true,
        }
    }

    /// Writes the answer to `query` that a branch's answer, `message`, makes; only if it [changes](Self::changes) it.
    pub(crate) fn change(
        &self,
        branch: u8,
        note: u32,
        message: &Message<'_>,
        query: &Query<'_>,
        out: &mut [u8],
    ) -> Option<Written> {
        match &self.rule {
            Rule::Fallback(_) | Rule::Race(_) => None,
            Rule::Prefer(_) => Prefer::refuse(query, out),
            Rule::Dns64(dns64) if branch == 1 => dns64.synthesise(note, message, query, out),
            Rule::Dns64(dns64) => dns64.without_excluded(message, query, out),
            Rule::Reverse(_) => super::rewrite::restore(super::rewrite::Style::Cname, message, query, out),
            Rule::Rewrite(rewrite) => super::rewrite::restore(rewrite.style, message, query, out),
        }
    }

    /// Returns what makes two queries that wait here the same, if they can be.
    pub(crate) fn shared(&self, desktop: &Desktop<'_>, run: &Run<'_>) -> Option<SharedSplit> {
        let Sharing { forwards_client_subnet } = self.sharing?;
        let forward = ForwardStep {
            pool: PoolId(u16::MAX),
            members: ALL_MEMBERS,
            forwards_client_subnet,
            trusts_ad: false,
        };
        let want = forward.want(&desktop.snapshot.key, desktop.snapshot.program.ops(), run, None);
        Some(SharedSplit { query: want.query, continuation: run.at.fingerprint() })
    }
}

impl Fallback {
    fn next(&self, progress: &Progress) -> Next {
        let (first, second) = (progress.state(0), progress.state(1));
        match (first, second) {
            (State::Idle, _) => Next::Begin(0),
            (State::Ended(Worth::Usable), _) => Next::Done(Some(0)),
            (State::Running, State::Idle) if self.standby == Standby::Always => Next::Begin(1),
            (State::Running, _) if self.on_slow && !progress.is_due => Next::Wait(Some(self.after_ms)),
            (State::Running, State::Idle) if self.on_slow => Next::Begin(1),
            (State::Running, State::Ended(Worth::Usable)) if self.on_slow => Next::Done(Some(1)),
            (State::Running, _) => Next::Wait(None),
            (State::Ended(_), State::Idle) => Next::Begin(1),
            (State::Ended(_), State::Running) => Next::Wait(None),
            (State::Ended(_), State::Ended(_)) => Next::Done(progress.best()),
        }
    }
}

/// Returns how telling an unusable answer is.
const fn rank(answer: &Answer) -> u8 {
    match answer.rcode {
        _ if answer.is_silence => 1,
        Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN => 5,
        Rcode::SERVFAIL => 4,
        Rcode::REFUSED => 3,
        _ => 2,
    }
}

/// Returns whether the answer section holds a record of this type.
fn has_type(answer: &Answer, message: &[u8], body_at: usize, rtype: Rtype) -> bool {
    answer.rcode == Rcode::NOERROR
        && answer_records(answer, message, body_at).any(|record| record.rtype == rtype)
}

/// Walks the answer section of an answer in the making.
pub(crate) fn answer_records<'m>(
    answer: &Answer,
    message: &'m [u8],
    body_at: usize,
) -> impl Iterator<Item = wire::Record<'m>> + use<'m> {
    all_records(answer, message, body_at).take_while(|record| record.section == Section::Answer)
}

/// Walks all sections of an answer in the making.
pub(crate) fn all_records<'m>(
    answer: &Answer,
    message: &'m [u8],
    body_at: usize,
) -> impl Iterator<Item = wire::Record<'m>> + use<'m> {
    let [answers, authorities, additionals] = answer.counts;
    let header = Header { questions: 1, answers, authorities, additionals, ..Header::default() };
    let bytes = message.get(..body_at + answer.octets).unwrap_or(&[]);
    records(bytes, body_at, &header).map_while(Result::ok)
}

/// An answer that was written anew: its octets after the question, and its records.
pub(crate) struct Written {
    pub(crate) octets: usize,
    pub(crate) counts: [u16; 3],
    pub(crate) rcode: Rcode,
    pub(crate) ede: Option<(EdeCode, &'static str)>,
    /// Whether the data is still what was validated.
    pub(crate) is_whole: bool,
}

impl Written {
    /// Returns what a writer wrote, header and question included, from the header in `out`.
    pub(crate) fn new(out: &[u8], len: usize, body_at: usize, rcode: Rcode) -> Option<Self> {
        let header = Header::parse(out)?;
        Some(Self {
            octets: len.checked_sub(body_at)?,
            counts: [header.answers, header.authorities, header.additionals],
            rcode,
            ede: None,
            is_whole: false,
        })
    }
}

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
        (step, split): (u16, &SplitStep),
        desktop: &Desktop<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> Parted {
        // What asks in what follows is too late when there is an answer: that one stays.
        if split.is_rest() && self.answer.is_some() {
            return Parted::Passes;
        }
        if !split.applies(&Facts { run: self, desktop, message: work.message }) {
            return Parted::Passes;
        }
        if self.depth >= SPLITS_MAX {
            return Parted::Ends(End::Answer(too_deep()));
        }
        let mut progress = Progress::new();
        let mut begun: [Option<Box<Suspended>>; BRANCHES_MAX] = [const { None }; BRANCHES_MAX];
        // What the last branch left in the message, and the best of the ones before, which stands in `spare`.
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
                        errands: &mut *work.errands,
                        candidates: &mut *work.candidates,
                    };
                    match self.branch(split, (step, branch), desktop, &mut work, tracer) {
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
                        shared: split.shared(desktop, self),
                        stale_after_ms: self.patience_ms(desktop.snapshot),
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
            self.tells.merge(&report.tells);
        }
        let answer = self.join(split, &won, progress.note, work);
        work.ttl_count = None;
        if split.is_rest() { Parted::Ends(End::Answer(answer)) } else { Parted::GoesOn(answer) }
    }

    /// Makes the split's answer out of the branch's that stands in the message.
    fn join(&self, split: &SplitStep, won: &Shown, note: u32, work: &mut Workspace<'_>) -> Answer {
        if !split.changes(won.branch) {
            return won.answer;
        }
        put_header(&won.answer, work.message);
        let written = match work.message.get(..won.len()).map(Message::parse) {
            Some(Ok(message)) => split.change(won.branch, note, &message, self.query, work.spare),
            _ => None,
        };
        let body_at = Header::LEN + self.query.question_bytes().len();
        match written {
            Some(written) => {
                let end = body_at + written.octets;
                if let (Some(from), Some(to)) = (work.spare.get(..end), work.message.get_mut(..end)) {
                    to.copy_from_slice(from);
                }
                changed(&won.answer, &written)
            }
            None => unwritten(),
        }
    }

    /// Runs one branch as far as memory goes.
    pub(crate) fn branch<T: Tracer + ?Sized>(
        &self,
        split: &SplitStep,
        (step, index): (u16, u8),
        desktop: &Desktop<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> BranchEnd {
        let start = match &split.branches {
            Branches::Rest => self.at,
            Branches::Policies { starts, .. } => {
                Position::at(starts.get(usize::from(index)).copied().unwrap_or(u16::MAX))
            }
        };
        let branch = BranchOf { step, index };
        match split.question(index, &Facts { run: self, desktop, message: work.message }) {
            None => {
                let sought = Sought::new(desktop.folded, self.sought.hash());
                self.child(self.query, sought, start).run_branch(split, branch, desktop, work, tracer)
            }
            Some((qname, qtype)) => {
                let mut octets = [0; QUERY_OCTETS_MAX];
                let Some(query) = self.query.about(qname.as_name(), qtype, &mut octets) else {
                    return BranchEnd::Ended(Worth::Nothing);
                };
                let mut folded = Folded::root();
                let name_hash = desktop.snapshot.key.fold(query.question.qname, &mut folded);
                let desktop = &Desktop { folded: &folded, ..*desktop };
                self.child(&query, Sought::new(&folded, name_hash), start)
                    .run_branch(split, branch, desktop, work, tracer)
            }
        }
    }

    /// Returns a query under way for a branch: it knows what this one knows, and keeps and answers on its own account.
    fn child<'c>(&'c self, query: &'c Query<'c>, sought: Sought<'c>, start: Position) -> Run<'c> {
        Run {
            query,
            client: self.client,
            proof: self.proof,
            sought,
            at: start,
            marks: self.marks,
            tells: Tells::NONE,
            outgoing: self.outgoing,
            fill: None,
            answer: None,
            errand: None,
            depth: self.depth + 1,
            looked: 0,
        }
    }

    fn run_branch<T: Tracer + ?Sized>(
        mut self,
        split: &SplitStep,
        branch: BranchOf,
        desktop: &Desktop<'_>,
        work: &mut Workspace<'_>,
        tracer: &mut T,
    ) -> BranchEnd {
        let end = self.interpret(desktop, work, tracer);
        if let Some((at, fill)) = self.errand {
            self.send_errand(at, fill, desktop, work);
        }
        match end {
            End::Answer(answer) => {
                let question = self.query.question_bytes();
                let body_at = Header::LEN + question.len();
                if let Some(place) = work.message.get_mut(Header::LEN..body_at) {
                    place.copy_from_slice(question);
                }
                let report = split.judge(branch.index, &answer, work.message, body_at);
                let report = BranchReport { tells: self.tells, ..report };
                BranchEnd::Answer(answer, body_at, report)
            }
            End::Nothing => BranchEnd::Ended(Worth::Nothing),
            End::Drop => BranchEnd::Ended(Worth::Dropped),
            End::Wait(want) => {
                let kept = tracer.keep();
                BranchEnd::Waits(Suspended::new(
                    desktop.snapshot,
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
    fn send_errand(&self, at: Position, fill: Fill, desktop: &Desktop<'_>, work: &mut Workspace<'_>) {
        if work.errands.len() < ERRANDS_MAX {
            desktop.counters.prefetches.bump();
            let sought = Sought::new(desktop.folded, self.sought.hash());
            let run = Run {
                fill: Some(fill),
                proof: Proof::None,
                tells: Tells::SILENT,
                ..self.child(self.query, sought, at)
            };
            work.errands.push(Suspended::new(desktop.snapshot, &run, Want::Sleep(0), None, &[], None));
        }
    }
}

/// Whose branch a query is, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BranchOf {
    /// The split's step.
    pub(crate) step: u16,
    pub(crate) index: u8,
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

/// Writes the header of an answer whose question and records stand in `message`.
pub(crate) fn put_header(answer: &Answer, message: &mut [u8]) {
    let [answers, authorities, additionals] = answer.counts;
    let mut flags = Flags::QR.with_rcode(answer.rcode);
    for (is_set, flag) in [
        (answer.authoritative, Flags::AA),
        (answer.authentic, Flags::AD),
        (answer.is_partial || answer.is_too_large, Flags::TC),
    ] {
        if is_set {
            flags = flags.with(flag);
        }
    }
    let header = Header { id: 0, flags, questions: 1, answers, authorities, additionals };
    if let Some(place) = message.first_chunk_mut() {
        *place = header.to_bytes();
    }
}

/// Returns the answer that a branch's answer became.
pub(crate) fn changed(answer: &Answer, written: &Written) -> Answer {
    Answer {
        rcode: written.rcode,
        authentic: answer.authentic && written.is_whole,
        octets: written.octets,
        counts: written.counts,
        ede: written.ede.or(answer.ede),
        ..*answer
    }
}

/// A branch's answer does not let itself be changed: larger than a message, or no records of the form they claim.
#[cold]
pub(crate) const fn unwritten() -> Answer {
    let ede = Some((EdeCode::INVALID_DATA, "the answer could not be rewritten"));
    Answer { is_failure: true, ..Answer::empty(Rcode::SERVFAIL, ede) }
}

#[cold]
const fn too_deep() -> Answer {
    let ede = Some((EdeCode::OTHER, "the policy asks for itself too often"));
    Answer { is_failure: true, ..Answer::empty(Rcode::SERVFAIL, ede) }
}

/// Returns what becomes of a query none of whose branches had an answer.
#[cold]
const fn nothing(split: &SplitStep) -> Parted {
    if split.is_rest() { Parted::Ends(End::Nothing) } else { Parted::GoesOn(no_branch()) }
}

pub(crate) const fn no_branch() -> Answer {
    let ede = Some((EdeCode::OTHER, "no branch of the policy had an answer"));
    Answer { is_failure: true, ..Answer::empty(Rcode::SERVFAIL, ede) }
}
