//! What one worker counts about queries that wait. Only its worker writes; anybody may read and add
//! up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Transport;
use events::Counter;
use timers::{Histogram, Span};

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

/// What a client's last wait was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitedFor {
    /// A server of an upstream group.
    Upstream,
    /// A resolver.
    Recursion,
    /// Branches of the policy: `fallback`, `race` and the like.
    Branches,
    /// As long as a client waits before it gets an expired answer.
    Stale,
}

impl WaitedFor {
    const WORDS: [&'static str; 4] = ["upstream", "recursion", "branches", "stale"];
}

/// How long clients waited for answers that were not in memory, by what for and over which
/// transport they had asked. One count for each wait is all that it costs: sums are made by whoever
/// reads. 10,576 octets.
#[derive(Debug, Default)]
pub struct Waits {
    times: [[Histogram; Transport::ALL.len()]; WaitedFor::WORDS.len()],
    /// Queries of clients that began to wait, by transport.
    begun: [Counter; Transport::ALL.len()],
    /// How many waited already when one began to, added up.
    found: Counter,
    /// The most of them since somebody looked.
    most: AtomicU64,
}

impl Waits {
    /// Counts a query that begins to wait, when so many wait already.
    pub(crate) fn begin(&self, transport: Transport, waiting: usize) {
        let waiting = waiting as u64;
        self.found.add(waiting);
        // Who forgets it at this moment hears of it once more.
        if waiting > self.most.load(Ordering::Relaxed) {
            self.most.store(waiting, Ordering::Relaxed);
        }
        if let Some(counter) = self.begun.get(transport as usize) {
            counter.bump();
        }
    }

    /// Counts a wait that has ended.
    pub(crate) fn note(&self, what: WaitedFor, transport: Transport, waited: Span) {
        let times = self.times.get(what as usize).and_then(|times| times.get(transport as usize));
        if let Some(times) = times {
            times.note(waited);
        }
    }

    /// Calls `f` with what waits were for, the transport, and their histogram.
    pub fn read(&self, mut f: impl FnMut(&'static str, Transport, &Histogram)) {
        for (what, times) in WaitedFor::WORDS.into_iter().zip(&self.times) {
            Transport::ALL.into_iter().zip(times).for_each(|(transport, times)| f(what, transport, times));
        }
    }

    /// Returns how many queries were waiting already when one began to, added up for all of them,
    /// and the most.
    pub fn read_found(&self) -> (u64, u64) {
        (self.found.read(), self.most.load(Ordering::Relaxed))
    }

    /// Has the most begin from zero.
    pub fn forget_most(&self) {
        self.most.store(0, Ordering::Relaxed);
    }

    /// Calls `f` with each transport, and how many queries over it began to wait.
    pub fn read_begun(&self, mut f: impl FnMut(Transport, u64)) {
        Transport::ALL.into_iter().zip(&self.begun).for_each(|(transport, begun)| f(transport, begun.read()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_for_what_it_was_for_and_for_its_transport() {
        let waits = Waits::default();
        waits.begin(Transport::Unix, 7);
        assert_eq!(waits.read_found(), (7, 7));
        waits.forget_most();
        assert_eq!(waits.read_found(), (7, 0));
        waits.note(WaitedFor::Stale, Transport::Unix, Span(5));
        waits.note(WaitedFor::Upstream, Transport::Udp, Span(7));
        let mut found = Vec::new();
        waits.read(|what, transport, times| {
            let mut counted = timers::Counted::default();
            times.read(&mut counted);
            if counted.sum_us > 0 {
                found.push((what, transport, counted.sum_us));
            }
        });
        assert_eq!(found, [("upstream", Transport::Udp, 7), ("stale", Transport::Unix, 5)]);
        let mut begun = Vec::new();
        waits.read_begun(|transport, count| begun.extend((count > 0).then_some((transport, count))));
        assert_eq!(begun, [(Transport::Unix, 1)]);
    }

    #[test]
    fn transports_have_the_numbers_of_their_places() {
        for (at, transport) in Transport::ALL.into_iter().enumerate() {
            assert_eq!(transport as usize, at);
        }
    }
}
