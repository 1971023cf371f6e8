//! What steps may wait for, and what may become of that.

use std::hash::{Hash, Hasher};

use wire::{Class, EdeCode, Message, NameBuf, Rcode, Rtype};

use super::split::Progress;
use super::watch::Watch;
use crate::answer::Security;
use crate::answer::failure::Failure;
use crate::answer::report::BranchReport;
use clients::subnet::ClientSubnet;

/// The number of an upstream group in the plan that `forward` runs on.
///
/// A group keeps its number over reloads for as long as it keeps its name, and no number is
/// used again: a query deferred under the old configuration still finds its group, or learns
/// that it is gone ([`Failure::NoUpstream`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolId(pub u16);

/// The number of a resolver in the plan that `recurse` runs on.
///
/// A resolver keeps its number over reloads for as long as it keeps its name, and no number is used
/// again: see [`PoolId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResolverId(pub u16);

/// A question for another server. Queries that want the same question share one exchange, whatever
/// each does with the answer.
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
    /// Other EDNS options to send, in wire form; at most
    /// [`OPTIONS_OCTETS_MAX`](crate::ops::outgoing::OPTIONS_OCTETS_MAX).
    pub options: Box<[u8]>,
    /// Which servers of the group may be asked, one bit each in their order; zero: all.
    pub members: u64,
    /// A keyed hash of all of the above and the group or the resolver, letter case ignored.
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

/// What to fetch before a query can go on.
pub struct FetchWant {
    /// Whom to ask.
    pub pool: PoolId,
    /// What to ask.
    pub query: OutQuery,
    /// Whether an AD bit in the answer is believed (RFC 6840 §5.8).
    pub trusts_ad: bool,
    /// If a stale answer is at hand: how long the client waits for a fresh one, in milliseconds
    /// (RFC 8767 §5).
    pub stale_after_ms: Option<u32>,
}

/// What to resolve before a query can go on.
pub struct ResolveWant {
    /// Who is to find the answer.
    pub resolver: ResolverId,
    /// What to find: name, type and class. DO says whether signatures and denials belong into the
    /// answer, CD whether it may be one that is not validated; there are no options, and all
    /// servers may be asked.
    pub query: OutQuery,
    /// Whether later steps look at the name servers that led to the answer: these are to be known
    /// for as long as the answer is kept.
    pub wants_servers: bool,
    /// Who is asked before servers are, for what is known so far.
    pub watch: Option<Watch>,
    /// If a stale answer is at hand: how long the client waits for a fresh one, in milliseconds
    /// (RFC 8767 §5).
    pub stale_after_ms: Option<u32>,
}

/// What a query waits for, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The answer of a group of servers.
    Fetch(PoolId),
    /// What a resolver finds.
    Resolve(ResolverId),
    /// The answer of a branch of its own program.
    Split,
    /// So many milliseconds.
    Sleep(u32),
    /// Its turn.
    Turn,
}

/// What became of what a query waited for.
#[derive(Clone, Copy)]
pub enum Outcome<'a> {
    /// An upstream answered: its ID, source and question are checked, any rcode is possible.
    Reply(&'a Message<'a>),
    /// A resolver found the answer.
    Resolved(Resolved<'a>),
    /// A resolver found none, and says why. For limits of our own and a stop of the server, it is
    /// [`Outcome::Failed`].
    Unresolved(Unresolved<'a>),
    /// Nobody answered usefully.
    Failed(Failure),
    /// A branch won.
    Branch(Won<'a>),
    /// No branch had an answer.
    NoBranch {
        /// Whether the one that counts has ended in silence.
        is_dropped: bool,
    },
    /// The time is over, or it is its turn.
    Slept,
}

/// What a resolver found.
#[derive(Clone, Copy)]
pub struct Resolved<'a> {
    /// A reply to the question that was wanted, with its name as long; without OPT, and any ID.
    pub message: &'a Message<'a>,
    /// What is known of its signatures.
    pub security: Security,
    /// Whether there are neither signatures nor proofs for who sets DO.
    pub is_unsigned: bool,
    /// For how many bits of the client's subnet it is (RFC 7871); `None` or zero: for everybody.
    pub scope: Option<u8>,
    /// Whether it is what is known so far: response policy zones are asked before servers are.
    pub is_interim: bool,
}

/// Why a resolver found nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unresolved<'a> {
    /// The response code for the client.
    pub rcode: Rcode,
    /// The code of the Extended DNS Error (RFC 8914).
    pub ede: EdeCode,
    /// Its text; what is beyond 120 octets is cut off.
    pub text: &'a str,
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
