//! How many transfers may be under way.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts transfers under way, so that they cannot take all of a server.
pub struct Places {
    taken: Mutex<HashMap<IpAddr, u32>>,
    max: usize,
    client_max: u32,
}

impl Places {
    /// Allows so many transfers at a time, and so many to each address.
    pub fn new(max: usize, client_max: u32) -> Self {
        Self { taken: Mutex::default(), max, client_max }
    }

    pub(super) fn take(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: u32 = taken.values().sum();
        let own = taken.get(&client).copied().unwrap_or(0);
        if all as usize >= self.max || own >= self.client_max {
            return None;
        }
        taken.insert(client, own + 1);
        Some(Place { places: Arc::clone(self), client })
    }
}

/// The place of one transfer.
pub(super) struct Place {
    places: Arc<Places>,
    client: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.client) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.remove(&self.client);
            }
        }
    }
}
