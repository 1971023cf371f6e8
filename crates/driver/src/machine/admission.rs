//! Which queries may wait, and which give way when there is no room for all.

use std::net::IpAddr;

use authorities::PoolNetwork;
use engine::Failure;
use exchange::network::Network;
use forward::PoolKey;
use plan::upstreams::{Limits, WaitNetwork};
use timers::{Moment, Span};

use super::{Event, Home, Machine, Waiter};
use crate::clients::{ClientCell, Held};

/// Time that a query has had its chance after, and may give its place to a newer one of its client.
const JOSTLE_AFTER: Span = Span::from_ms(200);
/// Queries that are ended, or passed over, to make room for one.
const SHED_MAX: usize = 16;

/// What a query begins if nothing like it is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// Nothing that takes room beside its own.
    Nothing,
    /// A fetch from this group.
    Fetch(PoolKey),
    /// The work of a resolver.
    Resolution,
}

/// How much is waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    /// There is room for all.
    Light,
    /// Half of what there may be: each client gets its share.
    Half,
    /// No room for another fetch.
    NoFetch,
    /// No room for another query.
    NoQuery,
}

impl<N: Network, P: PoolNetwork, W: Waiter> Machine<N, P, W> {
    /// Returns how much is waiting, and whether there is room for what would begin.
    fn load(&self, begins: Begins) -> Load {
        let waiting = self.waiters.len() as u32;
        let Limits { waiting_max, fetching_max, .. } = self.limits;
        let active = self.fetching();
        let (fetching, room) = match begins {
            Begins::Fetch(pool) => self.forward.load(pool),
            Begins::Resolution | Begins::Nothing => (0, u32::MAX),
        };
        let begins = begins != Begins::Nothing;
        if waiting >= waiting_max {
            Load::NoQuery
        } else if begins && (active >= fetching_max || fetching >= room) {
            Load::NoFetch
        } else if waiting >= waiting_max / 2 || begins && (active >= fetching_max / 2 || fetching >= room / 2)
        {
            Load::Half
        } else {
            Load::Light
        }
    }

    /// Returns whether half of what may wait is waiting.
    pub(crate) fn is_crowded(&self) -> bool {
        self.load(Begins::Nothing) >= Load::Half || self.fetching() >= self.limits.fetching_max / 2
    }

    /// Decides whether one more query may wait where `beside` do.
    ///
    /// While there is room for all, nobody is limited, except to a number of replies that are held
    /// for one address. When half of the room is in use, a client with more than its share loses
    /// its oldest query for each new one. When all is in use, the client with the most queries
    /// does, whoever asks: its queries are what fills the table, and the oldest have had the most
    /// time.
    pub(super) fn admit(
        &mut self,
        beside: u32,
        begins: Begins,
        who: &W,
        now: Moment,
    ) -> Result<Option<ClientCell>, Failure> {
        if beside >= self.limits.waiting_per_fetch_max {
            self.counters.shed_waiting.bump();
            return Err(Failure::Overloaded);
        }
        let cell = who.cause().map(|address| self.clients.cell(address));
        let load = self.load(begins);
        if let Some(cell) = cell {
            let held = who.held();
            let holds_too_many =
                held != Held::Nothing && self.clients.held(cell, held) >= self.wait_limit(who.cause(), held);
            let has_its_share =
                load >= Load::Half && self.clients.waiting(cell) >= self.limits.waiting_per_client_max;
            // A refresh takes the place of nobody.
            let may_jostle = who.client().is_some();
            let why = if holds_too_many { Failure::ClientLimit } else { Failure::Overloaded };
            if (holds_too_many || has_its_share) && !(may_jostle && self.jostle(cell, why, now)) {
                self.counters.shed_client.bump();
                return Err(why);
            }
        }
        if load >= Load::NoFetch && (who.client().is_none() || !self.make_room(cell, begins, now)) {
            match load {
                Load::NoQuery => self.counters.shed_waiting.bump(),
                _ => self.counters.shed_fetching.bump(),
            }
            return Err(Failure::Overloaded);
        }
        Ok(cell)
    }

    /// Returns how many replies may be held for a client of this address: what the longest prefix
    /// says that has it, or the limit for everybody.
    fn wait_limit(&self, client: Option<IpAddr>, held: Held) -> u32 {
        let is_proven = held == Held::Proven;
        let of_network = |network: &WaitNetwork| {
            let limit = if is_proven { network.proven_max } else { network.unproven_max };
            limit.filter(|_| client.is_some_and(|client| network.prefix.contains(client)))
        };
        let usual =
            if is_proven { self.limits.proven_per_client_max } else { self.limits.unproven_per_client_max };
        self.wait_networks.iter().find_map(of_network).unwrap_or(usual)
    }

    /// Makes room for one more query at the cost of the client with the most; returns whether there
    /// is room now.
    #[cold]
    fn make_room(&mut self, asking: Option<ClientCell>, begins: Begins, now: Moment) -> bool {
        for _ in 0..SHED_MAX {
            if self.load(begins) < Load::NoFetch {
                return true;
            }
            let greediest = self.clients.greediest();
            let own = asking.map_or(0, |cell| self.clients.waiting(cell));
            let is_greedier = self.clients.waiting(greediest) > own + 1;
            let is_shed = match asking {
                _ if is_greedier => self.shed_oldest(greediest, Span(0), Failure::Overloaded, now),
                Some(cell) => self.jostle(cell, Failure::Overloaded, now),
                None => false,
            };
            if !is_shed {
                return false;
            }
        }
        self.load(begins) < Load::NoFetch
    }

    /// Ends a client's oldest query for a new one of its own, if it has waited long enough to have
    /// had its chance.
    #[cold]
    fn jostle(&mut self, cell: ClientCell, why: Failure, now: Moment) -> bool {
        self.shed_oldest(cell, JOSTLE_AFTER, why, now)
    }

    /// Ends the oldest query of a client, if it has waited so long; returns whether it did.
    pub(super) fn shed_oldest(
        &mut self,
        cell: ClientCell,
        waited_min: Span,
        why: Failure,
        now: Moment,
    ) -> bool {
        let mut next = self.clients.oldest(cell);
        for _ in 0..SHED_MAX {
            let Some(key) = next else { return false };
            let Some(entry) = self.waiters.get(key as usize) else { return false };
            if now.since(entry.since) < waited_min {
                return false;
            }
            if entry.home != Home::Ending {
                self.counters.shed_oldest.bump();
                self.shed(key, why);
                return true;
            }
            next = Some(entry.newer);
        }
        false
    }

    /// Ends all queries that wait, but for those that end anyway; returns how many.
    #[cold]
    pub(crate) fn shed_all(&mut self) -> usize {
        let waits = self.waiters.iter().filter(|(_, entry)| entry.home != Home::Ending);
        let keys: Vec<usize> = waits.map(|(key, _)| key).collect();
        let key_of = |key: usize| u32::try_from(key).unwrap_or(u32::MAX);
        keys.iter().for_each(|&key| self.shed(key_of(key), Failure::Overloaded));
        keys.len()
    }

    /// Ends a query before what it waits for has ended; that ends, too, if nobody else waits for
    /// it.
    fn shed(&mut self, key: u32, why: Failure) {
        let Some(entry) = self.waiters.try_remove(key as usize) else { return };
        self.wheel.cancel(entry.timer);
        self.leave_client(&entry);
        if let Some(previous) = self.waiters.get_mut(entry.previous as usize) {
            previous.next = entry.next;
        }
        if let Some(next) = self.waiters.get_mut(entry.next as usize) {
            next.previous = entry.previous;
        }
        let list = match entry.home {
            Home::Fetch(fetch) => self.fetches.get_mut(fetch as usize).map(|fetch| &mut fetch.waiters),
            Home::Split(split) => self.splits.get_mut(split as usize).map(|split| &mut split.waiters),
            Home::Sleep | Home::Turn | Home::Ending => None,
        };
        let is_last = list.is_some_and(|list| {
            if list.first == key {
                list.first = entry.next;
            }
            if list.last == key {
                list.last = entry.previous;
            }
            list.count -= 1;
            list.count == 0
        });
        match entry.home {
            Home::Fetch(fetch) if is_last => {
                if let Some(shared) = self.forget_fetch(fetch) {
                    self.cancel(fetch, &shared.source);
                }
            }
            Home::Split(split) if is_last => drop(self.forget_split(split)),
            Home::Fetch(_) | Home::Split(_) | Home::Sleep | Home::Turn | Home::Ending => {}
        }
        self.events.push_back(Event::Rejected(entry.who, why));
    }
}
