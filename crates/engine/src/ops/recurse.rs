//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `recurse(resolver)`: has a resolver find the answer, waits, and goes on with it.

use wire::HashKey;

use super::forward::{ALL_MEMBERS, ForwardStep, Sending};
use super::outgoing::Outgoing;
use super::wait::{OutQuery, PoolId, ResolveWant, ResolverId};
use super::watch::Watch;
use crate::query::request::Request;

/// What the step needs to know about its resolver.
#[derive(Clone, Copy, Debug)]
pub struct RecurseStep {
    /// The resolver.
    pub resolver: ResolverId,
    /// Whether later steps look at the name servers that led to the answer; a program sets it by
    /// itself.
    pub wants_servers: bool,
    /// Whether the resolver tells any server of clients' subnets.
    pub sends_subnets: bool,
    /// Whether a query without RD is told whom to ask; if not, it is refused.
    pub refers: bool,
}

impl RecurseStep {
    /// Returns what to resolve for a query before it goes on.
    #[inline]
    pub(crate) fn want(
        &self,
        key: &HashKey,
        request: &Request<'_>,
        outgoing: &Outgoing,
        (stale_after_ms, watch): (Option<u32>, Option<Watch>),
        no_recursion: bool,
    ) -> ResolveWant {
        let as_group = ForwardStep {
            pool: PoolId(self.resolver.0),
            members: ALL_MEMBERS,
            forwards_client_subnet: false,
            trusts_ad: false,
        };
        // Servers of zones hear nothing of clients' options, and of their subnets only those that
        // the operator names.
        let told = if self.sends_subnets { *outgoing } else { outgoing.without_subnet() };
        let sending = Sending { outgoing: &told, options: Box::default(), stale_after_ms };
        let query = as_group.want(key, request, sending).query;
        let query = OutQuery { no_recursion, ..query };
        let Self { resolver, wants_servers, .. } = *self;
        ResolveWant { resolver, query, wants_servers, watch, stale_after_ms }
    }
}
