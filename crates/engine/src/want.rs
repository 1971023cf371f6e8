//! What a deferred query waits for, and what may become of that.

use std::hash::{Hash, Hasher};

use wire::{Class, EdeCode, Message, NameBuf, Rcode, Rtype};

use crate::ops::split::{BRANCHES_MAX, BranchReport, Progress};
use crate::resume::Suspended;

/// The number of an upstream group in the plan that `fetch` runs on.
///
/// A group keeps its number over reloads for as long as it keeps its name, and no number is
/// used again: a query deferred under the old configuration still finds its group, or learns
/// that it is gone ([`Failure::NoUpstream`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolId(pub u16);

/// An EDNS client subnet (RFC 7871): address bits beyond `prefix` are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientSubnet {
    /// The address family as IANA numbers it: 1 for IPv4, 2 for IPv6.
    pub family: u8,
    /// The number of leading bits that count.
    pub prefix: u8,
    /// The address, IPv4 in the first four octets.
    pub address: [u8; 16],
}

/// A question for another server. Queries that want the same question share one exchange, whatever each does with the answer.
#[derive(Clone)]
pub struct OutQuery {
    /// The name, in the first asker's letter case.
    pub qname: NameBuf,
    /// The type.
    pub qtype: Rtype,
    /// The class.
    pub qclass: Class,
    /// Whether to set CD.
    pub checking_disabled: bool,
    /// Whether to set DO.
    pub wants_dnssec: bool,
    /// Whether to leave RD clear, whatever the group's settings say.
    pub no_recursion: bool,
    /// The client subnet to send, if the policy forwards it.
    pub client_subnet: Option<ClientSubnet>,
    /// Other EDNS options to send, in wire form; at most [`OPTIONS_OCTETS_MAX`](crate::ops::outgoing::OPTIONS_OCTETS_MAX).
    pub options: Box<[u8]>,
    /// Which servers of the group may be asked, one bit each in their order; zero: all.
    pub members: u64,
    /// A keyed hash of all of the above and the pool, letter case ignored.
    pub hash: u64,
}

impl PartialEq for OutQuery {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && self.qtype == other.qtype
            && self.qclass == other.qclass
            && self.checking_disabled == other.checking_disabled
            && self.wants_dnssec == other.wants_dnssec
            && self.no_recursion == other.no_recursion
            && self.client_subnet == other.client_subnet
            && self.options == other.options
            && self.members == other.members
            && self.qname == other.qname
    }
}
impl Eq for OutQuery {}

impl Hash for OutQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What a query waits for before it can go on.
pub enum Want {
    /// Another server's answer.
    Fetch(FetchWant),
    /// The answer of a branch of its own program.
    Split(Box<SplitWant>),
    /// So many milliseconds.
    Sleep(u32),
}

impl Want {
    /// Returns what to fetch, if that is what it waits for.
    pub const fn fetch(&self) -> Option<&FetchWant> {
        match self {
            Self::Fetch(want) => Some(want),
            Self::Split(_) | Self::Sleep(_) => None,
        }
    }

    /// Returns how long the client waits if a stale answer is at hand, in milliseconds (RFC 8767 §5).
    pub fn stale_after_ms(&self) -> Option<u32> {
        match self {
            Self::Fetch(want) => want.stale_after_ms,
            Self::Split(want) => want.stale_after_ms,
            Self::Sleep(_) => None,
        }
    }
}

/// What to fetch before a query can go on.
pub struct FetchWant {
    /// Whom to ask.
    pub pool: PoolId,
    /// What to ask.
    pub query: OutQuery,
    /// If a stale answer is at hand: how long the client waits for a fresh one, in milliseconds (RFC 8767 §5).
    pub stale_after_ms: Option<u32>,
}

/// Which branches to run before a query can go on, and how far they are.
pub struct SplitWant {
    /// The split's step.
    pub(crate) step: u16,
    /// How far the branches came from memory.
    pub progress: Progress,
    /// What makes two of them the same, if the branches would do the same for every client.
    pub shared: Option<SharedSplit>,
    /// If a stale answer is at hand: how long the client waits for a fresh one, in milliseconds (RFC 8767 §5).
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
    // For those who try out what waits, without a program.
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

/// What became of what a query waited for.
#[derive(Clone, Copy)]
pub enum Outcome<'a> {
    /// An upstream answered: its ID, source and question are checked, any rcode is possible.
    Reply(&'a Message<'a>),
    /// Nobody answered usefully.
    Failed(Failure),
    /// A branch won.
    Branch(Won<'a>),
    /// No branch had an answer.
    NoBranch,
    /// The time is over.
    Slept,
}

/// The branch whose answer counts.
#[derive(Clone, Copy)]
pub struct Won<'a> {
    /// Which one.
    pub branch: u8,
    /// What is known about it.
    pub report: BranchReport,
    /// How far the branches were.
    pub progress: Progress,
    /// Its answer.
    pub message: &'a Message<'a>,
}

/// Why a fetch brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No upstream answered in time.
    Timeout,
    /// The network refused: unreachable, connection refused or reset.
    Network,
    /// Every server is known to be down, so that nobody was asked.
    Down,
    /// Upstreams answered, but nothing that could be used; the last rcode.
    BadReply(Rcode),
    /// A bound on waiting queries was reached; the query was shed.
    Overloaded,
    /// The pool has no upstream with a known address (yet).
    NoUpstream,
    /// The server is stopping.
    Stopping,
}

impl Failure {
    /// Returns the Extended DNS Error that tells the client about it (RFC 8914).
    pub const fn ede(self) -> (EdeCode, &'static str) {
        match self {
            Self::Timeout => (EdeCode::NO_REACHABLE_AUTHORITY, "no upstream answered in time"),
            Self::Down => (EdeCode::NO_REACHABLE_AUTHORITY, "all upstreams are down"),
            Self::Network => (EdeCode::NETWORK_ERROR, "upstream not reachable"),
            Self::BadReply(_) => (EdeCode::INVALID_DATA, "upstream sent no usable answer"),
            Self::Overloaded => (EdeCode::OTHER, "too many queries waiting"),
            Self::NoUpstream => (EdeCode::NO_REACHABLE_AUTHORITY, "no upstream has a known address"),
            Self::Stopping => (EdeCode::NOT_READY, "server is stopping"),
        }
    }
}
