//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that ask in several ways: fallback, a race of policies, preference for one family, DNS64,
//! redirection.
//!
//! A *split* runs branches: policies, or the rest of the program with another question. What can be
//! answered from memory is run at once, branch by branch; the first that must wait puts the query
//! aside, and whoever waits for it runs the others as [`SplitStep::next`] says. The rules are here,
//! once, for both.

use wire::{HashKey, Message, NameBuf, Query, Rcode, Rtype};

use super::dns64::{Dns64, Reverse};
use super::forward::{ALL_MEMBERS, ForwardStep, Sending};
use super::prefer::Prefer;
use super::rewrite::{Rewrite, restore};
use super::wait::{OutQuery, PoolId};
pub use crate::answer::report::{BranchReport, Worth};
use crate::answer::written::Written;
use crate::answer::{Answer, Ending, SubnetScope, answer_records};
use crate::matchers::Facts;
use crate::query::request::Request;
use events::EventSet;

/// Branches of one split.
pub const BRANCHES_MAX: usize = 4;
/// Splits that one query may be inside of at once, so that programs which split in the rest of
/// their rest end.
pub const SPLITS_MAX: u8 = 8;

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
    /// The first branch has failed after this long without an answer; the second starts then, and
    /// both go on.
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
        if answer.end == Ending::Silent {
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
    /// The steps after the split, each branch with its own question; their answer ends the query.
    Rest,
}

/// What equal queries share.
#[derive(Clone, Copy)]
struct Sharing {
    forwards_client_subnet: bool,
}

/// How far the branches are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    states: [State; BRANCHES_MAX],
    is_due: bool,
    /// The note of the first branch's report.
    note: u32,
}

/// How far one branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Running,
    Ended(Worth),
}

/// What to do about a split now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start this branch.
    Begin(u8),
    /// Wait for a branch; if there is a number, at most so many milliseconds from when it is first
    /// said.
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

    /// Returns whether a branch has ended in silence.
    pub fn is_dropped(&self, branch: u8) -> bool {
        self.state(branch) == State::Ended(Worth::Dropped)
    }

    pub(crate) fn state(&self, branch: u8) -> State {
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
    /// Returns a step that runs policies; their first steps are given, or set later by
    /// [`SplitStep::set_start`].
    pub fn of_policies(rule: Rule, firsts: &[u16]) -> Self {
        let mut starts = [0; BRANCHES_MAX];
        for (start, first) in starts.iter_mut().zip(firsts) {
            *start = *first;
        }
        let count = firsts.len().min(BRANCHES_MAX) as u8;
        Self { rule, branches: Branches::Policies { starts, count }, sharing: None }
    }

    /// Returns a step that runs the steps after it.
    pub const fn of_rest(rule: Rule) -> Self {
        Self { rule, branches: Branches::Rest, sharing: None }
    }

    /// Says where a branch's policy starts.
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

    /// Returns whether answers are compared that come from different places: an old one must not
    /// win over a better one that is on its way.
    pub(crate) fn compares(&self) -> bool {
        match self.rule {
            Rule::Fallback(_) => true,
            Rule::Race(_) => self.starts().len() > 1,
            Rule::Prefer(_) | Rule::Dns64(_) | Rule::Reverse(_) | Rule::Rewrite(_) => false,
        }
    }

    /// Notes what its branches do, if all that each does is to ask a group.
    pub(crate) fn set_sharing(&mut self, forwards: impl Iterator<Item = ForwardStep>) {
        let forwards_client_subnet =
            forwards.fold(false, |any, forward| any | forward.forwards_client_subnet);
        self.sharing = Some(Sharing { forwards_client_subnet });
    }

    /// Returns whether its branches run the steps after it.
    pub const fn is_rest(&self) -> bool {
        matches!(self.branches, Branches::Rest)
    }

    /// Returns how many steps before those after it its branches begin.
    pub(crate) fn steps_back(&self) -> u16 {
        if let Rule::Rewrite(rewrite) = &self.rule { rewrite.steps_back() } else { 0 }
    }

    /// Returns whether branches have the name that an alias from a list leads to.
    pub(crate) const fn follows_list(&self) -> bool {
        if let Rule::Rewrite(rewrite) = &self.rule { rewrite.follows_list() } else { false }
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
    pub(crate) fn applies(&self, facts: &Facts<'_>) -> bool {
        let query = facts.request.query;
        match &self.rule {
            Rule::Fallback(_) | Rule::Race(_) => true,
            Rule::Prefer(prefer) => prefer.applies(query),
            Rule::Dns64(dns64) => dns64.applies(query),
            Rule::Reverse(reverse) => reverse.target(query, facts.request.sought.name()).is_some(),
            Rule::Rewrite(rewrite) => rewrite.target(facts).is_some(),
        }
    }

    /// Returns what a branch asks, if that is not what the query asks.
    pub(crate) fn question(&self, branch: u8, facts: &Facts<'_>) -> Option<(NameBuf, Rtype)> {
        let query = facts.request.query;
        let question = &query.question;
        match (&self.rule, branch) {
            (Rule::Prefer(prefer), 1) => Some((question.qname.to_buf(), prefer.wanted)),
            (Rule::Dns64(_), 1) => Some((question.qname.to_buf(), Rtype::A)),
            (Rule::Reverse(reverse), _) => {
                Some((reverse.target(query, facts.request.sought.name())?, Rtype::PTR))
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
            errors: answer.errors,
            security: answer.security,
            end: answer.end,
            // Bits are those of one branch's answer, and others may have been asked.
            scope: if answer.scope == SubnetScope::EVERY { answer.scope } else { SubnetScope::OWN },
            note,
            event_set: EventSet::NONE,
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

    /// Writes the answer to `query` that a branch's answer, `message`, makes; only if it
    /// [changes](Self::changes) it.
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
            Rule::Reverse(reverse) => restore(reverse.style, message, query, out),
            Rule::Rewrite(rewrite) => {
                let written = restore(rewrite.style, message, query, out)?;
                Some(Written { is_own: rewrite.is_own() && message.rcode() != Rcode::REFUSED, ..written })
            }
        }
    }

    /// Returns what the branches would ask, whomever they ask; if two queries that would ask the
    /// same can share them.
    pub(crate) fn shared<'s>(
        &self,
        key: &HashKey,
        request: &Request<'_>,
        sending: impl FnOnce() -> Sending<'s>,
    ) -> Option<OutQuery> {
        let Sharing { forwards_client_subnet } = self.sharing?;
        let forward = ForwardStep {
            pool: PoolId(u16::MAX),
            members: ALL_MEMBERS,
            forwards_client_subnet,
            trusts_ad: false,
        };
        Some(forward.want(key, request, sending()).query)
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
        _ if matches!(answer.end, Ending::Silent) => 1,
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
