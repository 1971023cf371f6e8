//! Queries that wait for a resolver.

use std::net::SocketAddr;
use std::sync::Arc;

use authorities::{PoolLinkKey, PoolNetwork, PoolSocketKey};
use engine::{Authority, Failure, Want};
use exchange::network::Network;
use timers::Moment;

use crate::recursion::{AllServers, LinkEvent, Probe, Purpose, ToSecondLevel};

use super::admission::Begins;
use super::{Ending, Event, Finished, Machine, Source, Waiter, WaiterList};

impl<N: Network, P: PoolNetwork, W: Waiter> Machine<N, P, W> {
    /// Takes a query that waits for a resolver: joins an equal one or begins.
    pub(super) fn take_resolution(&mut self, who: W, now: Moment) {
        let Want::Resolve(want) = who.want() else { return };
        let is_equal = |&key: &u32| match self.fetches.get(key as usize).map(|other| &other.source) {
            Some(Source::Resolver { instance, query, watch }) => {
                self.recursion.is_current(*instance, want.resolver)
                    && *query == want.query
                    && *watch == want.watch
            }
            Some(Source::Forward { .. } | Source::ForResolver { .. }) | None => false,
        };
        if let Some(&key) = self.index.find(want.query.hash, is_equal) {
            return self.join(key, who, now);
        }
        let (resolver, query, wants_servers) = (want.resolver, want.query.clone(), want.wants_servers);
        let (has_stale, watch) = (want.stale_after_ms.is_some(), want.watch.clone());
        let refused = if self.is_stopping { Failure::Stopping } else { Failure::NoUpstream };
        let Some(instance) = self.recursion.current(resolver).filter(|_| !self.is_stopping) else {
            return self.events.push_back(Event::Rejected(who, refused));
        };
        match self.admit(0, Begins::Resolution, &who, now) {
            Ok(cell) => {
                let key = self.fetches.vacant_key() as u32;
                let purpose = match who.client() {
                    _ if who.is_watched() => Purpose::Watched,
                    None => Purpose::Prefetch,
                    Some(_) => Purpose::Client,
                };
                let how = (key, purpose, has_stale);
                self.enter(
                    query.hash,
                    Source::Resolver { instance, query: query.clone(), watch: watch.clone() },
                );
                self.attach(key, who, cell, now);
                if wants_servers {
                    self.recursion.want_servers(instance);
                }
                if let Some(watch) = watch {
                    self.recursion.watch(instance, key, watch);
                }
                self.recursion.begin(instance, &query, how, now);
                self.drain(now);
            }
            Err(failure) => self.events.push_back(Event::Rejected(who, failure)),
        }
    }

    /// Ends all waits for resolvers: the server stops.
    pub(super) fn stop_resolving(&mut self) {
        let is_resolver = |source: &Source| matches!(source, Source::Resolver { .. });
        let all = self.fetches.iter().filter(|(_, fetch)| is_resolver(&fetch.source));
        let keys: Vec<u32> = all.map(|(key, _)| key as u32).collect();
        for key in keys {
            let Some(shared) = self.forget_fetch(key) else { continue };
            self.cancel(key, &shared.source);
            self.end_waiting(shared.waiters.first);
            let waiters = WaiterList(shared.waiters.first);
            let ending = Ending::Failed(Failure::Stopping);
            self.events.push_back(Event::Finished(Finished { waiters, ending, from: None }));
        }
    }

    /// Returns the next thing for a second-level cache to do.
    pub(crate) fn next_to_second_level(&mut self) -> Option<ToSecondLevel> {
        self.recursion.next_to_second_level()
    }

    /// Takes the value that a second-level cache has for a question, if it has one.
    pub(crate) fn found(&mut self, tag: u32, value: Option<&mut [u8]>, now: Moment) {
        self.recursion.found(tag, value, now);
        self.drain(now);
    }

    /// Returns the time by the calendar, in seconds since 1970.
    pub(crate) const fn unix_seconds(&self, now: Moment) -> u64 {
        self.recursion.unix_seconds(now)
    }

    /// Returns what resolvers know of name servers.
    pub(crate) fn servers_known(&self) -> AllServers {
        self.recursion.servers_known()
    }

    /// Asks a question of a job's.
    pub(crate) fn probe(&mut self, probe: Probe, now: Moment) {
        if !self.is_stopping {
            self.recursion.probe(probe, now);
            self.drain(now);
        }
    }

    /// Has resolvers read these zones in memory, in place of asking for them.
    pub(crate) fn serve(&mut self, own: Option<&Arc<Authority>>) {
        self.recursion.serve(own);
    }

    /// Says what time it is by the calendar, in seconds since 1970: after each change of the plan,
    /// and from time to time, since clocks are set.
    pub(crate) fn set_time(&mut self, unix_seconds: u64, now: Moment) {
        self.recursion.set_time(unix_seconds, now);
    }

    /// Takes one datagram from an authoritative server; `is_cut` says that it was longer than our
    /// buffer.
    pub(crate) fn pool_datagram(
        &mut self,
        key: PoolSocketKey,
        from: SocketAddr,
        (bytes, is_cut): (&[u8], bool),
        now: Moment,
    ) {
        self.recursion.datagram(key, from, (bytes, is_cut), now);
        self.drain(now);
    }

    /// Takes one message from a connection to an authoritative server.
    pub(crate) fn pool_message(&mut self, key: PoolLinkKey, bytes: &[u8], now: Moment) {
        self.recursion.message(key, bytes, now);
        self.drain(now);
    }

    /// Takes the news that a socket for authoritative servers has failed.
    pub(crate) fn pool_socket_failed(&mut self, key: PoolSocketKey, now: Moment) {
        self.recursion.socket_failed(key, now);
        self.drain(now);
    }

    /// Takes what has become of a connection to an authoritative server.
    pub(crate) fn pool_link(&mut self, key: PoolLinkKey, event: LinkEvent, now: Moment) {
        self.recursion.link(key, event, now);
        self.drain(now);
    }
}
