//! Resolvers: what each is told to do, and how much it may keep.

use engine::ResolverId;
use resolver::Settings;

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
    /// The most octets of its RRsets, negative answers and delegations, which all workers share;
    /// those of a table that is there already stay as they are.
    pub octets_max: usize,
    /// How it finds answers.
    pub settings: Settings,
}

impl Plan {
    /// Returns a resolver by its number.
    pub fn find(&self, id: ResolverId) -> Option<&ResolverPlan> {
        self.resolvers.iter().find(|resolver| resolver.id == id)
    }
}
