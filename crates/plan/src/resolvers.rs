//! Resolvers: what each is told to do, and how much it may keep.

use engine::ResolverId;
pub use resolver::{HeapName, NegativeAnchor, Settings, TrustAnchor};

/// Descriptors that one worker may hold at once for its resolvers, however many: 64 UDP sockets of
/// each family and twice as many that wait for their last replies, and 64 connections.
const DESCRIPTORS_MAX: usize = 2 * 3 * 64 + 64;

/// Every resolver that a policy uses; replaced whole on a reload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
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

impl Plan {
    /// Returns the most descriptors that one worker may hold at once for asking servers of zones.
    pub const fn descriptors_max(&self) -> usize {
        if self.resolvers.is_empty() { 0 } else { DESCRIPTORS_MAX }
    }

    /// Returns a resolver by its number.
    pub fn find(&self, id: ResolverId) -> Option<&ResolverPlan> {
        self.resolvers.iter().find(|resolver| resolver.id == id)
    }
}
