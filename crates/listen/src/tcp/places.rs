//! Places for connections: so many in all, so many for one client. Shared by all workers.
//!
//! Touched when a connection opens or closes, never per query: that is why the table of clients may
//! have a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::refusals::{Refusal, Refusals};
use plan::listeners::{Prefix, TcpPlan};

/// How many places there are, and who has them.
#[derive(Debug)]
pub(crate) struct Places {
    taken: AtomicUsize,
    taken_max: usize,
    clients: Mutex<HashMap<Prefix, usize>>,
    per_client_max: usize,
    /// Networks whose clients have so many together, the longest prefixes first.
    networks: Box<[Network]>,
    refusals: Arc<Refusals>,
}

/// How many connections the clients of a network have, and may have.
#[derive(Debug)]
struct Network {
    prefix: Prefix,
    taken: AtomicUsize,
    taken_max: usize,
}

impl Places {
    pub(crate) fn new(plan: &TcpPlan, networks: &[(Prefix, usize)], refusals: &Arc<Refusals>) -> Arc<Self> {
        let network = |&(prefix, taken_max): &_| Network { prefix, taken: AtomicUsize::new(0), taken_max };
        let mut networks: Vec<Network> = networks.iter().map(network).collect();
        networks.sort_by_key(|network| std::cmp::Reverse(network.prefix.bits()));
        Arc::new(Self {
            networks: networks.into(),
            taken: AtomicUsize::new(0),
            taken_max: plan.connections_max.max(1),
            clients: Mutex::default(),
            per_client_max: plan.connections_per_client_max.max(1),
            refusals: Arc::clone(refusals),
        })
    }

    /// Returns how many places are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes a place; `None` when there is none left.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Place> {
        let one_more = |taken: usize| (taken < self.taken_max).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Place { places: Arc::clone(self), client: None, network: None })
    }
}

/// One connection's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    client: Option<Prefix>,
    /// The place of its network.
    network: Option<usize>,
}

impl Place {
    /// Says whose place it is; false when that client, or its network, has as many as it may.
    #[must_use]
    pub(crate) fn charge(&mut self, client: Prefix) -> bool {
        self.discharge();
        if !self.charge_network(client) {
            self.places.refusals.note(client, Refusal::Connection);
            return false;
        }
        let mut clients = self.places.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = clients.entry(client).or_default();
        if *taken >= self.places.per_client_max {
            drop(clients);
            self.places.refusals.note(client, Refusal::Connection);
            return false;
        }
        *taken += 1;
        self.client = Some(client);
        true
    }

    /// Takes a place of the client's network, if that has a limit; false when there is none left.
    fn charge_network(&mut self, client: Prefix) -> bool {
        let mut all = self.places.networks.iter().enumerate();
        let Some((at, network)) = all.find(|(_, network)| network.prefix.contains(client.address())) else {
            return true;
        };
        let one_more = |taken: usize| (taken < network.taken_max).then_some(taken + 1);
        if network.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
            return false;
        }
        self.network = Some(at);
        true
    }

    fn discharge(&mut self) {
        if let Some(network) = self.network.take().and_then(|at| self.places.networks.get(at)) {
            network.taken.fetch_sub(1, Ordering::Relaxed);
        }
        let Some(client) = self.client.take() else { return };
        let mut clients = self.places.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = clients.get_mut(&client) {
            *taken -= 1;
            if *taken == 0 {
                clients.remove(&client);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.discharge();
        self.places.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Prefix {
        Prefix::new([192, 0, 2, last].into(), 32)
    }

    #[test]
    fn tcp_connection_limit_is_for_all_clients_of_a_network_and_leaves_others_alone() {
        let network = |bits| Prefix::new([192, 0, 2, 0].into(), bits);
        let refusals = Arc::new(Refusals::default());
        let networks = [(network(24), 2), (network(30), 1)];
        let places = Places::new(&TcpPlan::default(), &networks, &refusals);
        let take = |last| {
            let mut place = places.take().expect("a place");
            place.charge(client(last)).then_some(place)
        };
        let one = take(1).expect("the first of the small network");
        assert!(take(2).is_none(), "the longest prefix counts");
        let (two, three) = (take(77), take(78));
        assert!(two.is_some() && three.is_some() && take(79).is_none(), "two of the large one");
        let mut other = places.take().expect("a place");
        assert!(other.charge(Prefix::new([198, 51, 100, 1].into(), 32)), "another network");
        drop((one, two));
        assert!(take(3).is_some() && take(79).is_some(), "they come back");
    }

    #[test]
    fn places_are_limited_in_all_and_per_client_and_come_back() {
        let plan = TcpPlan { connections_max: 3, connections_per_client_max: 2, ..TcpPlan::default() };
        let refusals = Arc::new(Refusals::default());
        let places = Places::new(&plan, &[], &refusals);
        let mut first = places.take().expect("a place");
        assert!(first.charge(client(1)));
        let mut second = places.take().expect("a place");
        assert!(second.charge(client(1)));
        let mut third = places.take().expect("a place");
        assert!(!third.charge(client(1)), "two are taken");
        let report = refusals.take().expect("it was refused");
        assert_eq!((report.client, report.refused.connections), (client(1), 1));
        assert!(third.charge(client(2)));
        assert!(places.take().is_none(), "three are taken");
        drop(first);
        assert_eq!(places.taken(), 2);
        let mut fourth = places.take().expect("one came back");
        assert!(fourth.charge(client(1)));
        drop((second, third, fourth));
        assert_eq!(places.taken(), 0);
        assert!(
            places.clients.lock().expect("not poisoned").is_empty(),
            "nothing is kept about clients that left"
        );
    }
}
