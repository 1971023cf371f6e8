//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The name servers that led to an answer, as conditions and lists look at them.

use std::net::IpAddr;

use wire::{Folded, HashKey, Name};

use crate::sought::Sought;

/// What is known of a name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameServer<'a> {
    /// Its name, in lower case.
    Name(Name<'a>),
    /// An address of the one whose name came before.
    Address(IpAddr),
}

/// Knows which name servers lead to a name.
pub trait NameServers {
    /// Calls `f` with the servers of the zones that a name is in, those of the closest zone first,
    /// until it returns true. `now` is the time of the caches, in seconds.
    fn each(&self, name: Name<'_>, now: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool);
}

/// Where lists and conditions find the name servers that led to an answer.
#[derive(Clone, Copy)]
pub struct KnownServers<'a> {
    /// Who knows them.
    pub source: &'a dyn NameServers,
    /// The key that every set was compiled with.
    pub key: &'a HashKey,
    /// The time of the caches, in seconds.
    pub now: u32,
}

impl KnownServers<'_> {
    /// Returns the first thing that `f` says of the name of a server that leads to `name`.
    pub fn find_name<T>(&self, name: Name<'_>, mut f: impl FnMut(&Sought<'_>) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.source.each(name, self.now, &mut |server| {
            if let NameServer::Name(name) = server {
                let mut folded = Folded::root();
                let hash = self.key.fold(name, &mut folded);
                found = f(&Sought::new(&folded, hash));
            }
            found.is_some()
        });
        found
    }

    /// Calls `f` with the addresses of the servers that lead to `name`, until it returns true;
    /// returns whether it did.
    pub fn any_address(&self, name: Name<'_>, mut f: impl FnMut(IpAddr) -> bool) -> bool {
        let mut is_found = false;
        self.source.each(name, self.now, &mut |server| {
            if let NameServer::Address(address) = server {
                is_found = f(address);
            }
            is_found
        });
        is_found
    }
}
