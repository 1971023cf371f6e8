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
    refusals: Arc<Refusals>,
}

impl Places {
    pub(crate) fn new(plan: &TcpPlan, refusals: &Arc<Refusals>) -> Arc<Self> {
        Arc::new(Self {
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
        Some(Place { places: Arc::clone(self), client: None })
    }
}

/// One connection's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    client: Option<Prefix>,
}

impl Place {
    /// Says whose place it is; false when that client has as many as it may.
    #[must_use]
    pub(crate) fn charge(&mut self, client: Prefix) -> bool {
        self.discharge();
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

    fn discharge(&mut self) {
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
    fn places_are_limited_in_all_and_per_client_and_come_back() {
        let plan = TcpPlan { connections_max: 3, connections_per_client_max: 2, ..TcpPlan::default() };
        let refusals = Arc::new(Refusals::default());
        let places = Places::new(&plan, &refusals);
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
