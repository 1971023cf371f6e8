//! Resolvers: what each is told to do, and how much it may keep.

use std::sync::Arc;

use engine::ResolverId;
pub use resolver::{HeapName, NegativeAnchor, Settings, TrustAnchor};

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
    pub const fn descriptors_max(&self) -> usize {
        if self.resolvers.is_empty() { 0 } else { SOCKETS_MAX + self.connections_max as usize }
    }

    /// Returns a resolver by its number.
    pub fn find(&self, id: ResolverId) -> Option<&ResolverPlan> {
        self.resolvers.iter().find(|resolver| resolver.id == id)
    }
}
