//! What one worker counts about queries that wait. Only its worker writes; anybody may read and add
//! up.

use std::sync::Arc;

use timers::Histogram;

use crate::recursion::Counters as RecursionCounters;

events::counters! {
    coalesced: "Queries that joined a fetch already under way.",
    splits: "Queries that waited for branches of their policy.",
    branches: "Branches of policies that ran for queries that waited.",
    distances: "Addresses in answers that were connected to, to measure how far they are.",
    impatient: "Clients given a stale answer because the fetch took long.",
    shed_fetching: "Queries shed because too many fetches were under way.",
    shed_waiting: "Queries shed because too many queries were waiting.",
    shed_client: "Queries shed because their client had too many waiting.",
    shed_oldest: "Queries given up early because their client had the most waiting, or asked more.",
    shed_silently: "Queries over UDP that got no reply because they were shed (`limits.shed: drop`).",
    discarded: "Answers over UDP that came too late to be sent (`limits.discard-timeout`); the cache has them.",
}

/// The group of what is counted about queries that wait, upstreams, and messages to them.
const FETCH: &str = "fetch";
/// The group of what is counted about resolvers.
const RESOLVER: &str = "resolver";

/// A group, and its counters with their help texts.
pub type Group = (&'static str, &'static [(&'static str, &'static str)]);

/// How long clients waited for answers that were not in memory, by what their last wait was for.
#[derive(Debug, Default)]
pub struct Waits {
    /// A server of an upstream group.
    pub upstream: Histogram,
    /// A resolver.
    pub recursion: Histogram,
    /// Branches of the policy: `fallback`, `race` and the like.
    pub branches: Histogram,
    /// As long as a client waits before it gets an expired answer.
    pub stale: Histogram,
}

impl Waits {
    /// Calls `f` with what each wait was for, and its histogram.
    pub fn read(&self, mut f: impl FnMut(&'static str, &Histogram)) {
        f("upstream", &self.upstream);
        f("recursion", &self.recursion);
        f("branches", &self.branches);
        f("stale", &self.stale);
    }
}

/// What one worker counts about queries that wait, fetches, and messages.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// About queries that wait.
    pub driver: Arc<Counters>,
    /// About fetches.
    pub forward: Arc<forward::Counters>,
    /// About messages.
    pub exchange: Arc<exchange::Counters>,
    /// About resolvers.
    pub recursion: Arc<RecursionCounters>,
    /// About messages to authoritative servers.
    pub authorities: Arc<authorities::Counters>,
    /// How long clients waited.
    pub waits: Arc<Waits>,
}

impl Counts {
    /// Every counter's group, name and help text, by who counts.
    pub const DESCRIPTIONS: [Group; 5] = [
        (FETCH, Counters::DESCRIPTIONS),
        (FETCH, forward::Counters::DESCRIPTIONS),
        (FETCH, exchange::Counters::DESCRIPTIONS),
        (RESOLVER, RecursionCounters::DESCRIPTIONS),
        (RESOLVER, authorities::Counters::DESCRIPTIONS),
    ];

    /// Calls `f` with every counter's group, name and value.
    pub fn read(&self, mut f: impl FnMut(&'static str, &'static str, u64)) {
        self.driver.read(|name, value| f(FETCH, name, value));
        self.forward.read(|name, value| f(FETCH, name, value));
        self.exchange.read(|name, value| f(FETCH, name, value));
        self.recursion.read(|name, value| f(RESOLVER, name, value));
        self.authorities.read(|name, value| f(RESOLVER, name, value));
    }
}
