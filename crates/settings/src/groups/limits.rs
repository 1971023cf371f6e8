//! What protects the server.

use std::path::PathBuf;
use std::time::Duration;

use diagnostic::At;
use plan::Secret;
use plan::listeners::AnnounceWord;
use plan::upstreams::Shed;
use wire::Prefix;

/// What protects the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Queries of one client prefix.
    pub rate: Rate,
    /// Queries that may wait for upstreams at once.
    pub waiting: u32,
    /// What those get that are given up.
    pub shed: Shed,
    /// Replies held for one client whose address may be forged; `None`: any number.
    pub wait_limit: Option<u32>,
    /// Octets of a query that gets a reply; `None`: any number.
    pub query_size: Option<u16>,
    /// Replies held for one client whose address is proven; `None`: any number.
    pub wait_limit_with_cookie: Option<u32>,
    /// The same for clients of networks.
    pub wait_networks: Vec<WaitNetwork>,
    /// When answers to such addresses are no longer sent; `None`: they always are.
    pub discard_timeout: Option<Duration>,
    /// Signatures that may be made in a second while clients wait.
    pub signatures_per_second: u32,
}

/// Replies held for each client of a network. `None` of a number: as many as for everybody; of the
/// number inside: any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitNetwork {
    /// The network.
    pub prefix: Prefix,
    /// If the client's address may be forged.
    pub replies: Option<Option<u32>>,
    /// If its address is proven.
    pub with_cookie: Option<Option<u32>>,
}

/// Queries that one client prefix may send.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// In the long run; `None`: any number.
    pub per_second: Option<u32>,
    /// At once.
    pub burst: u32,
    /// Every how many over the limit get a truncated reply; zero: none.
    pub slip: u32,
    /// Every how many queries over the limit one is answered all the same; 0 never.
    pub pass: u32,
    /// Leading bits of an IPv4 address that share one allowance.
    pub ipv4_prefix: u8,
    /// Leading bits of an IPv6 address that share one allowance.
    pub ipv6_prefix: u8,
    /// Clients without a limit.
    pub exempt: Vec<Prefix>,
    /// In the long run and at once, with a cookie; `None`: any number.
    pub with_cookie: Option<u32>,
    /// Whether those over the limit count.
    pub backoff: bool,
    /// How long those are banned who keep on; `None`: not at all.
    pub ban_for: Option<Duration>,
    /// After how many queries over the limit.
    pub ban_after: u32,
}

/// Limits for connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// In all.
    pub connections: u32,
    /// Of one address.
    pub connections_per_client: u32,
    /// Of networks.
    pub networks: Vec<(Prefix, u32)>,
    /// How long one may be quiet.
    pub idle_timeout: Duration,
    /// Who is told of it.
    pub announced_to: AnnounceWord,
    /// How long after connecting the first query must be there.
    pub first_query_timeout: Duration,
    /// Queries of one connection that may wait at once.
    pub pipeline: u32,
    /// How old one may become.
    pub age: Option<Duration>,
    /// Octets of half queries and replies that wait, of all.
    pub buffers: u64,
}

/// Limits of TLS handshakes, which cost more than anything else that a stranger can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshakes {
    /// Of all clients together, in a second.
    pub handshakes_per_second: u32,
    /// Of one client, in a second.
    pub handshakes_per_client: u32,
    /// Of one client, at once.
    pub handshakes_burst: u32,
    /// How long one may take.
    pub handshake_timeout: Duration,
}

/// DNS cookies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookies {
    /// Whether they are used.
    pub enabled: bool,
    /// The key; `None`: a random one.
    pub secret: Option<Secret>,
    /// Another key whose cookies are accepted.
    pub other_secret: Option<Secret>,
    /// The file that both come from, if it is there.
    pub file: Option<PathBuf>,
    /// Clients that must show one over UDP.
    pub required: Vec<Prefix>,
    /// Listeners whose clients must, too.
    pub required_on: Vec<At<String>>,
    /// But for these of them.
    pub not_required: Vec<Prefix>,
}
