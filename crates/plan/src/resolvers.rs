//! Resolvers: what each is told to do, and how much it may keep.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::ResolverId;
pub use resolver::{HeapName, NegativeAnchor, Settings, TrustAnchor};

use crate::Secret;
use crate::upstreams::Outgoing;

/// UDP sockets that one worker may hold at once for its resolvers, however many: 64 of each family
/// and twice as many that wait for their last replies.
const SOCKETS_MAX: usize = 2 * 3 * 64;

/// Every resolver that a policy uses; replaced whole on a reload.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What their sockets are bound to.
    pub outgoing: Arc<Outgoing>,
    /// Connections that one worker may have to servers of zones.
    pub connections_max: u16,
    /// The resolvers, in the order of their numbers.
    pub resolvers: Vec<ResolverPlan>,
}

/// A resolver.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolverPlan {
    /// Its number, which it keeps over reloads.
    pub id: ResolverId,
    /// Its name.
    pub name: String,
    /// The most octets of its RRsets, negative answers and delegations, which all workers share.
    pub octets_max: usize,
    /// How it finds answers.
    pub settings: Settings,
    /// Its second-level cache, if it has one; how that is used is in the settings.
    pub second_level: Option<Arc<SecondLevelPlan>>,
}

/// A second-level cache: Redis servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondLevelPlan {
    /// What is part of all keys: who does not know it, cannot tell what an entry is for.
    pub secret: Secret,
    /// Whether the server is to forget an entry when its TTL has passed.
    pub expires: bool,
    /// Who stores answers.
    pub server: RedisPlan,
    /// Who is asked in its place.
    pub replica: Option<RedisPlan>,
}

/// A Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisPlan {
    /// Where it is.
    pub place: RedisPlace,
    /// What it wants to hear first.
    pub password: Option<Secret>,
    /// The number of its database.
    pub database: u32,
    /// How long a connection may take until it can be used.
    pub connect_timeout: Duration,
    /// How long a reply may take.
    pub command_timeout: Duration,
}

/// Where a Redis server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisPlace {
    /// Behind a Unix socket.
    Unix(PathBuf),
    /// At an address.
    Address(SocketAddr),
    /// At an address of this host, which the system looks up, and a port.
    Host(String, u16),
}

impl fmt::Display for RedisPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Address(address) => write!(f, "redis://{address}"),
            Self::Host(host, port) => write!(f, "redis://{host}:{port}"),
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        let outgoing = Arc::default();
        Self { outgoing, connections_max: Self::CONNECTIONS_MAX, resolvers: Vec::new() }
    }
}

impl Plan {
    /// Connections of one worker: most servers are asked over UDP.
    pub const CONNECTIONS_MAX: u16 = 64;

    /// Returns the most descriptors that one worker may hold at once for asking servers of zones.
    pub fn descriptors_max(&self) -> usize {
        let of_caches = |plan: &Arc<SecondLevelPlan>| 1 + usize::from(plan.replica.is_some());
        let second_levels = self.resolvers.iter().filter_map(|resolver| resolver.second_level.as_ref());
        let others = if self.resolvers.is_empty() { 0 } else { SOCKETS_MAX + self.connections_max as usize };
        others + second_levels.map(of_caches).sum::<usize>()
    }

    /// Returns a resolver by its number.
    pub fn find(&self, id: ResolverId) -> Option<&ResolverPlan> {
        self.resolvers.iter().find(|resolver| resolver.id == id)
    }
}
