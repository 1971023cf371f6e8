//! What one worker counts about queries that wait. Only its worker writes; anybody may read and add
//! up.

use std::sync::Arc;

engine::counters! {
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

/// What one worker counts about queries that wait, fetches, and messages: one group for operators.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// About queries that wait.
    pub driver: Arc<Counters>,
    /// About fetches.
    pub forward: Arc<forward::Counters>,
    /// About messages.
    pub exchange: Arc<exchange::Counters>,
}

impl Counts {
    /// Every counter's name and help text, by who counts.
    pub const DESCRIPTIONS: [&[(&'static str, &'static str)]; 3] =
        [Counters::DESCRIPTIONS, forward::Counters::DESCRIPTIONS, exchange::Counters::DESCRIPTIONS];

    /// Calls `f` with every counter's name and value.
    pub fn read(&self, mut f: impl FnMut(&'static str, u64)) {
        self.driver.read(&mut f);
        self.forward.read(&mut f);
        self.exchange.read(&mut f);
    }
}
