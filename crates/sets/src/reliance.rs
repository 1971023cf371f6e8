//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What decisions rely on that look at sets: whose addresses are in which, and sets that are
//! changed while the server runs.

use std::net::IpAddr;
use std::sync::Arc;

use crate::addresses::AddressSet;
use crate::blocklist::Blocklist;
use crate::changes::Changes;
use crate::names::NameSet;

/// Bits of the class of a client: one for each set of addresses that it is in.
pub const CLASS_BITS: u32 = 31;

/// What decisions rely on.
#[derive(Default)]
pub struct Reliance {
    /// Sets of clients, each with its bit of a class.
    clients: Vec<Arc<AddressSet>>,
    /// Lists with rules on clients.
    lists: Vec<Arc<Blocklist>>,
    /// How often the sets that are looked into were changed.
    changes: Vec<Changes>,
}

// Once per configuration.
impl Reliance {
    fn change(&mut self, changes: &Changes) {
        if !self.changes.iter().any(|known| known.is_same(changes)) {
            self.changes.push(changes.clone());
        }
    }

    /// Adds a set that names are looked for in.
    pub fn add_names(&mut self, names: &NameSet) {
        names.each_changes(&mut |changes| self.change(changes));
    }

    /// Adds a set that addresses are looked for in, but those of clients.
    pub fn add_addresses(&mut self, addresses: &AddressSet) {
        addresses.each_changes(&mut |changes| self.change(changes));
    }

    /// Adds a set that clients are looked for in.
    pub fn add_clients(&mut self, clients: &Arc<AddressSet>) {
        self.add_addresses(clients);
        if !self.clients.iter().any(|known| Arc::ptr_eq(known, clients)) {
            self.clients.push(Arc::clone(clients));
        }
    }

    /// Adds a list.
    pub fn add_list(&mut self, list: &Arc<Blocklist>) {
        list.each_changes(&mut |changes| self.change(changes));
        if list.looks_at_clients() && !self.lists.iter().any(|known| Arc::ptr_eq(known, list)) {
            self.lists.push(Arc::clone(list));
        }
    }
}

impl Reliance {
    /// Returns how often sets were changed. This is read before the sets themselves are, so that
    /// what is found in those is not older than the number.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes.iter().fold(0, |sum, changes| sum.wrapping_add(changes.number()))
    }

    /// Returns whether it matters who asks.
    #[inline]
    pub const fn looks_at_clients(&self) -> bool {
        !self.clients.is_empty() || !self.lists.is_empty()
    }

    /// Returns whether clients of one class are all in this set or all not.
    pub fn has_bit(&self, set: &Arc<AddressSet>) -> bool {
        self.clients.iter().take(CLASS_BITS as usize).any(|known| Arc::ptr_eq(known, set))
    }

    /// Returns the class of a client, one bit for each set that it is in: decisions that look at
    /// nothing else of a client are the same for all of a class. `None` if there may be no others
    /// like it.
    #[inline(never)]
    pub fn class(&self, client: IpAddr) -> Option<u32> {
        if self.lists.iter().any(|list| list.is_about_client(client)) {
            return None;
        }
        let mut class = 0;
        for (bit, set) in self.clients.iter().enumerate() {
            if set.contains(client) {
                let bit = u32::try_from(bit).ok().filter(|&bit| bit < CLASS_BITS)?;
                class |= 1 << bit;
            }
        }
        Some(class)
    }
}
