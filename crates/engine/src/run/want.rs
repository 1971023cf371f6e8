//! What a deferred query waits for.

use super::suspended::Suspended;
use crate::answer::report::BranchReport;
use crate::ops::split::{BRANCHES_MAX, Progress};
use crate::ops::wait::{FetchWant, OutQuery, ResolveWant, Waiting};

/// What a query waits for before it can go on.
pub enum Want {
    /// Another server's answer.
    Fetch(FetchWant),
    /// What a resolver finds.
    Resolve(ResolveWant),
    /// The answer of a branch of its own program.
    Split(Box<SplitWant>),
    /// So many milliseconds.
    Sleep(u32),
    /// Its turn, after the queries that clients ask meanwhile: it has work to do that none of them
    /// should wait for.
    Yield,
}

impl Want {
    /// Returns what to fetch, if that is what it waits for.
    #[inline]
    pub const fn fetch(&self) -> Option<&FetchWant> {
        match self {
            Self::Fetch(want) => Some(want),
            Self::Resolve(_) | Self::Split(_) | Self::Sleep(_) | Self::Yield => None,
        }
    }

    /// Returns what it waits for, in a word.
    #[inline]
    pub const fn waiting(&self) -> Waiting {
        match self {
            Self::Fetch(want) => Waiting::Fetch(want.pool),
            Self::Resolve(want) => Waiting::Resolve(want.resolver),
            Self::Split(_) => Waiting::Split,
            Self::Sleep(ms) => Waiting::Sleep(*ms),
            Self::Yield => Waiting::Turn,
        }
    }

    /// Returns how long the client waits if a stale answer is at hand, in milliseconds (RFC 8767
    /// §5).
    pub fn stale_after_ms(&self) -> Option<u32> {
        match self {
            Self::Fetch(want) => want.stale_after_ms,
            Self::Resolve(want) => want.stale_after_ms,
            Self::Split(want) => want.stale_after_ms,
            Self::Sleep(_) | Self::Yield => None,
        }
    }
}

/// Which branches to run before a query can go on, and how far they are.
pub struct SplitWant {
    /// The split's step.
    pub(crate) step: u16,
    /// How far the branches came from memory.
    pub progress: Progress,
    /// What makes two of them the same, if the branches would do the same for every client.
    pub shared: Option<SharedSplit>,
    /// If a stale answer is at hand: how long the client waits for a fresh one, in milliseconds
    /// (RFC 8767 §5).
    pub stale_after_ms: Option<u32>,
    /// Branches that have started and must wait.
    pub(crate) begun: [Option<Box<Suspended>>; BRANCHES_MAX],
    /// Answers of branches that have ended.
    pub(crate) ended: [Option<EndedBranch>; BRANCHES_MAX],
}

/// What queries agree in whose branches do the same.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedSplit {
    /// What the branches would ask, whomever they ask.
    pub query: OutQuery,
    /// A hash of where the program goes on: a branch may be the rest of it.
    pub continuation: u32,
}

/// The answer of a branch, for as long as it is not decided which one wins.
pub struct EndedBranch {
    /// What is known about it.
    pub report: BranchReport,
    /// The whole message.
    pub octets: Box<[u8]>,
}

impl SplitWant {
    /// Returns what waits for branches none of which has started.
    pub fn new(step: u16, shared: Option<SharedSplit>, stale_after_ms: Option<u32>) -> Self {
        Self {
            step,
            progress: Progress::new(),
            shared,
            stale_after_ms,
            begun: [const { None }; BRANCHES_MAX],
            ended: [const { None }; BRANCHES_MAX],
        }
    }

    /// Notes that a branch has started and must wait.
    pub(crate) fn begin(&mut self, branch: u8, suspended: Box<Suspended>) {
        self.progress.begin(branch);
        if let Some(slot) = self.begun.get_mut(usize::from(branch)) {
            *slot = Some(suspended);
        }
    }

    /// Keeps the answer of a branch that ended at once.
    #[cold]
    pub(crate) fn keep(&mut self, branch: u8, report: BranchReport, message: &[u8]) {
        if let Some(slot) = self.ended.get_mut(usize::from(branch)) {
            *slot = Some(EndedBranch { report, octets: message.into() });
        }
    }

    /// Takes the answer of a branch that ended at once.
    pub fn take_ended(&mut self, branch: u8) -> Option<EndedBranch> {
        self.ended.get_mut(usize::from(branch))?.take()
    }

    /// Takes a branch that has started.
    pub fn take_begun(&mut self, branch: u8) -> Option<Box<Suspended>> {
        self.begun.get_mut(usize::from(branch))?.take()
    }
}
