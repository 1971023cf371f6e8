//! Which servers are known, and which are forgotten.
//!
//! A server that somebody holds stays. One that was only asked ([`Exchange::ask`]) stays, too, for
//! what was learned about it, until there are too many: then an idle one is evicted that has not
//! been asked for longest, more or less.

use std::hash::BuildHasher as _;

use timers::Moment;

use crate::machine::{Exchange, SendError, ServerKey};
use crate::network::{Network, Remote};
use crate::server::Server;

/// Servers that are remembered although nobody holds them. Each takes less than a kilobyte, so that
/// strangers who have many asked for them cost a worker some 4 MiB at most.
pub const SERVERS_MAX: usize = 4096;

impl<N: Network> Exchange<N> {
    /// Returns the server at `remote`, new or known, which stays until it is released as often.
    pub fn hold(&mut self, remote: Remote, now: Moment) -> ServerKey {
        let key = self.find(&remote).unwrap_or_else(|| self.insert(Server::new(remote)));
        self.hold_again(key);
        // Connections that are to be kept are kept for those who hold it.
        if self.server(key).is_some_and(|server| server.users == 1) {
            self.fill(key.0, now);
        }
        key
    }

    /// Holds a server once more.
    pub fn hold_again(&mut self, key: ServerKey) -> ServerKey {
        if let Some(server) = self.servers.get_mut(key.0 as usize) {
            server.users += 1;
        }
        key
    }

    /// Lets go of a server; unless it was asked on its own, it is forgotten when nobody holds it
    /// and nothing is outstanding.
    pub fn release(&mut self, key: ServerKey) {
        if let Some(server) = self.servers.get_mut(key.0 as usize) {
            server.users -= 1;
            self.has_garbage |= server.users == 0;
        }
    }

    /// Returns the server at `remote` if it is known.
    pub fn find(&self, remote: &Remote) -> Option<ServerKey> {
        let hash = self.address_key.hash_one(remote.address);
        let is_it = |&key: &u32| self.servers.get(key as usize).is_some_and(|it| it.remote == *remote);
        self.by_address.find(hash, is_it).map(|&key| ServerKey(key))
    }

    /// Returns the server at `remote` for one who does not hold it; makes room for it if it is new.
    pub(super) fn remember(&mut self, remote: Remote) -> Result<ServerKey, SendError> {
        let key = match self.find(&remote) {
            Some(key) => key,
            None if self.servers.len() < SERVERS_MAX || self.evict() => self.insert(Server::new(remote)),
            None => return Err(SendError::Shortage),
        };
        if let Some(server) = self.servers.get_mut(key.0 as usize) {
            (server.is_remembered, server.was_asked) = (true, true);
        }
        Ok(key)
    }

    fn insert(&mut self, server: Server) -> ServerKey {
        let hash = self.address_key.hash_one(server.remote.address);
        let key = self.servers.insert(server) as u32;
        let (servers, address_key) = (&self.servers, &self.address_key);
        self.by_address.insert_unique(hash, key, |&other| {
            servers.get(other as usize).map_or(0, |other| address_key.hash_one(other.remote.address))
        });
        ServerKey(key)
    }

    /// Evicts an idle server that nobody holds; says whether there was one. A clock algorithm: one
    /// that was asked since the hand last came by is passed over once.
    fn evict(&mut self) -> bool {
        // Ends: the second time round nothing is passed over for having been asked.
        for _ in 0..2 * self.servers.capacity() {
            self.hand = if self.hand + 1 < self.servers.capacity() { self.hand + 1 } else { 0 };
            let Some(server) = self.servers.get_mut(self.hand) else { continue };
            if server.users == 0 && server.is_idle() && !std::mem::replace(&mut server.was_asked, false) {
                self.forget(self.hand as u32);
                self.close_drained();
                return true;
            }
        }
        false
    }

    /// Forgets servers that nobody holds and that were not asked on their own.
    pub fn collect_garbage(&mut self) {
        self.has_garbage = false;
        let is_garbage = |server: &Server| server.users == 0 && !server.is_remembered && server.is_idle();
        let garbage: Vec<u32> =
            self.servers.iter().filter(|(_, server)| is_garbage(server)).map(|(key, _)| key as u32).collect();
        for key in garbage {
            self.forget(key);
        }
        self.close_drained();
    }

    /// Forgets a server and closes its sockets and connections.
    fn forget(&mut self, key: u32) {
        self.retire_sockets(key);
        let Some(server) = self.servers.get(key as usize) else { return };
        for link in server.links.into_iter().flatten() {
            self.drop_link(link);
        }
        let Some(server) = self.servers.try_remove(key as usize) else { return };
        self.wheel.cancel(server.filling);
        let hash = self.address_key.hash_one(server.remote.address);
        if let Ok(entry) = self.by_address.find_entry(hash, |&other| other == key) {
            entry.remove();
        }
    }
}
