//! What a resolver has its caller do.

use std::net::SocketAddr;
use std::sync::Arc;

use cache::servers::{Edns, LetterCase};
use wire::{ClientSubnet, Rtype};

use crate::heap_name::HeapName;
use crate::resolution::Resolution;
use crate::settings::{Forwarders, Opportunistic};

/// Names whoever waits for an answer; the caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Waiter(pub u32);

/// Names a query until the caller has said what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskKey(pub(crate) u32);

/// Names a question to forwarders until the caller has said what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForwardKey(pub(crate) u32);

/// Something to do.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask a server, and report exactly once: [`Resolver::heard`](crate::Resolver::heard) or
    /// [`Resolver::unanswered`](crate::Resolver::unanswered).
    Ask(Ask),
    /// Have forwarders find the answer, and report exactly once:
    /// [`Resolver::heard_forwarders`](crate::Resolver::heard_forwarders) or
    /// [`Resolver::forwarders_failed`](crate::Resolver::forwarders_failed).
    Forward(Forward),
    /// Look a question up in the second-level cache, and report exactly once, as of forwarders.
    LookUp(LookUp),
    /// Store an answer there. Nothing is reported.
    Store(Store),
    /// A question has come to its end.
    Done {
        /// Whose it was.
        waiter: Waiter,
        /// What became of it.
        resolution: Arc<Resolution>,
    },
}

/// A query to one server: class IN, without RD.
///
/// Its ID, its port, cookies, the attempt over TCP after TC and the one without EDNS are the
/// caller's. The caller gives up in its own time; meanwhile the resolver asks others.
#[derive(Clone, Debug)]
pub struct Ask {
    /// By which it is reported.
    pub key: AskKey,
    /// Whom to ask.
    pub address: SocketAddr,
    /// The name, lower case.
    pub qname: HeapName,
    /// The type.
    pub qtype: Rtype,
    /// How to ask.
    pub how: How,
    /// The client's subnet, if the server is to be told (RFC 7871). A reply that repeats another
    /// one is not the reply.
    pub subnet: Option<ClientSubnet>,
}

/// A question to forwarders: class IN, with RD.
///
/// Which of them is asked, how often and how long is the caller's business, as are IDs, ports and
/// transports.
#[derive(Clone, Debug)]
pub struct Forward {
    /// By which it is reported.
    pub key: ForwardKey,
    /// Whom to ask.
    pub forwarders: Forwarders,
    /// The name, lower case.
    pub qname: HeapName,
    /// The type.
    pub qtype: Rtype,
    /// Whether the reply is validated here: whatever the forwarders think of it is to be passed on
    /// all the same (CD).
    pub validates: bool,
    /// Whether signatures and proofs are asked for (DO).
    pub wants_signatures: bool,
    /// Forwarders whose replies to this question were bogus: others are asked, if there are any.
    pub refused: Vec<SocketAddr>,
    /// The client's subnet that they are told, if any.
    pub subnet: Option<ClientSubnet>,
    /// Whether the answer is found otherwise if they fail: forwarders that are known to be down
    /// need not be tried.
    pub is_optional: bool,
}

/// A question to the second-level cache: class IN.
#[derive(Clone, Debug)]
pub struct LookUp {
    /// By which it is reported.
    pub key: ForwardKey,
    /// The name, lower case.
    pub qname: HeapName,
    /// The type.
    pub qtype: Rtype,
}

/// An answer for the second-level cache: it came from servers, and is not bogus.
#[derive(Clone, Debug)]
pub struct Store {
    /// The name that was asked for, lower case.
    pub qname: HeapName,
    /// The type.
    pub qtype: Rtype,
    /// The answer.
    pub resolution: Arc<Resolution>,
}

/// How a server is asked, as far as it is known what it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Whether to ask over TCP at once.
    pub over_tcp: bool,
    /// UDP payload to announce in EDNS.
    pub udp_octets: u16,
    /// What it makes of EDNS.
    pub edns: Edns,
    /// Whether it repeats the letter case of the question.
    pub case: LetterCase,
    /// Whether signatures and proofs are asked for (DO).
    pub dnssec_ok: bool,
    /// Whether it has a cookie (RFC 7873).
    pub cookies: bool,
    /// Which encryption is used where the server has it (RFC 9539).
    pub encryption: Opportunistic,
}

/// How a reply came, which says how hard it is to forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In a datagram.
    Udp,
    /// In a datagram with the server's cookie (RFC 7873).
    UdpWithCookie,
    /// Over a connection.
    Tcp,
}

/// Why a server did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing came in time.
    Timeout,
    /// The network says that it cannot be reached, or the server wants no connection.
    Unreachable,
    /// The query could not be sent: we have no room or no route. Nobody is charged with it.
    NotSent,
}
