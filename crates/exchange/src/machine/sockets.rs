//! The UDP side: which socket a query leaves through, and what becomes of sockets.

use std::io;

use crate::machine::requests::AttemptState;
use crate::machine::{Exchange, SendError, Token};
use crate::network::{Network, SocketKey, is_shortage};
use crate::server::{BURST, SOCKET_AGE_MAX, SOCKET_QUERIES_MAX, SOCKETS_MAX};

use engine::Failure;
use queries::transactions::{Transaction, Transactions};
use timers::{Moment, TimerKey};

/// One UDP socket, connected to one server.
pub(super) struct Socket {
    pub(super) server: u32,
    pub(super) transactions: Transactions,
    pub(super) sent: u32,
    /// Datagrams with an ID nobody waits for.
    pub(super) strays: u32,
    /// Queries that ended without a reply: as many strays may be late replies.
    pub(super) unanswered: u32,
    /// Sends nothing more; closed when the last reply is in.
    pub(super) is_retiring: bool,
    /// The end of its life.
    pub(super) timer: TimerKey,
}

impl<N: Network> Exchange<N> {
    /// Returns the socket that this burst's queries to `key` leave through.
    pub(super) fn socket_for(&mut self, key: u32, now: Moment) -> Result<SocketKey, SendError> {
        let server = self.servers.get(key as usize).ok_or(SendError::Network)?;
        if let Some((burst, until)) = server.burst
            && now < until
            && self.sockets.get(burst.0 as usize).is_some_and(Socket::is_fresh)
        {
            return Ok(burst);
        }
        let start = self.random_below(SOCKETS_MAX);
        for step in 0..SOCKETS_MAX {
            let slot = (start + step) % SOCKETS_MAX;
            let server = self.servers.get(key as usize).ok_or(SendError::Network)?;
            let held = server.sockets.get(slot).copied().flatten();
            let socket = match held {
                Some(socket) if self.sockets.get(socket.0 as usize).is_some_and(Socket::is_fresh) => socket,
                _ => match self.open_socket(key, slot, now) {
                    Ok(socket) => socket,
                    // What is worn is better than nothing.
                    Err(SendError::Shortage) => match held {
                        Some(worn) if self.sockets.get(worn.0 as usize).is_some_and(Socket::has_room) => worn,
                        _ => continue,
                    },
                    Err(other) => return Err(other),
                },
            };
            let server = self.servers.get_mut(key as usize).ok_or(SendError::Network)?;
            server.burst = Some((socket, now + BURST));
            return Ok(socket);
        }
        Err(SendError::Shortage)
    }

    /// Opens a socket in a slot, in place of the worn one that may be there.
    fn open_socket(&mut self, key: u32, slot: usize, now: Moment) -> Result<SocketKey, SendError> {
        let server = self.servers.get_mut(key as usize).ok_or(SendError::Network)?;
        // Whoever has none may always have one: a busy server must not take all from the others.
        let has_any = server.sockets.iter().any(Option::is_some);
        if has_any && self.sockets.len() >= self.limits.sockets_max as usize {
            return Err(SendError::Shortage);
        }
        let entry = self.sockets.vacant_entry();
        let socket = SocketKey(entry.key() as u32);
        match self.network.open(socket, &server.remote) {
            Ok(()) => {
                entry.insert(Socket {
                    server: key,
                    transactions: Transactions::default(),
                    sent: 0,
                    strays: 0,
                    unanswered: 0,
                    is_retiring: false,
                    timer: self.wheel.set(now + SOCKET_AGE_MAX, Token::Socket(socket.0)),
                });
                let worn = server.sockets.get_mut(slot).and_then(|room| room.replace(socket));
                if let Some(worn) = worn {
                    self.retire_socket(worn);
                }
                Ok(socket)
            }
            // That we lack something says nothing about the server.
            Err(error) if is_shortage(&error) => Err(SendError::Shortage),
            Err(error) => {
                let change = server.refused(now);
                self.changed(key, change, error.kind().into());
                Err(SendError::Network)
            }
        }
    }

    /// Ends the life of a port.
    pub(super) fn socket_due(&mut self, key: SocketKey) {
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return };
        socket.timer = TimerKey::NONE;
        self.retire_socket(key);
    }

    /// Gives up a port that somebody floods: what is outstanding on it is asked again over TCP, so
    /// that no guess is taken.
    #[cold]
    pub(super) fn abandon_socket(&mut self, key: SocketKey, now: Moment) {
        self.counters.ports_abandoned.bump();
        self.retire_socket(key);
        let Some(socket) = self.sockets.get(key.0 as usize) else { return };
        let outstanding: Vec<Transaction> = socket.transactions.iter().copied().collect();
        for transaction in outstanding {
            self.distrust(transaction.request, now);
        }
    }

    /// Takes a socket out of use; it is closed once nothing is outstanding on it.
    pub fn retire_socket(&mut self, key: SocketKey) {
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return };
        if std::mem::replace(&mut socket.is_retiring, true) {
            return;
        }
        if socket.transactions.is_empty() {
            self.closing.push(key);
        }
        if let Some(server) = self.servers.get_mut(socket.server as usize) {
            for slot in server.sockets.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
            if server.burst.is_some_and(|(burst, _)| burst == key) {
                server.burst = None;
            }
        }
    }

    /// Takes all sockets to one server out of use.
    pub(super) fn retire_sockets(&mut self, key: u32) {
        let Some(server) = self.servers.get(key as usize) else { return };
        for socket in server.sockets.into_iter().flatten() {
            self.retire_socket(socket);
        }
    }

    /// Takes the news that the network refused what a socket sent (ICMP on a connected socket, no
    /// route…).
    ///
    /// The kernel does not say which of the queries it was; they all went the same way.
    pub fn socket_failed(&mut self, key: SocketKey, why: io::ErrorKind, now: Moment) {
        let Some(socket) = self.sockets.get(key.0 as usize) else { return };
        let server = socket.server;
        let lost: Vec<Transaction> = socket.transactions.iter().copied().collect();
        self.counters.network_errors.bump();
        if let Some(to) = self.servers.get_mut(server as usize) {
            let change = to.refused(now);
            self.changed(server, change, why.into());
        }
        self.retire_socket(key);
        for transaction in lost {
            if self.close_attempt(transaction, AttemptState::Failed) {
                self.lost(transaction.request, Some(Failure::Network), false);
            }
        }
    }

    /// Closes the sockets that are retired and have nothing outstanding.
    pub(super) fn close_drained(&mut self) {
        while let Some(key) = self.closing.pop() {
            if let Some(socket) = self.sockets.try_remove(key.0 as usize) {
                self.wheel.cancel(socket.timer);
                self.network.close(key);
            }
        }
    }
}

impl Socket {
    fn has_room(&self) -> bool {
        !self.is_retiring && self.transactions.len() < queries::transactions::TRANSACTIONS_MAX
    }

    fn is_fresh(&self) -> bool {
        self.has_room() && self.sent < SOCKET_QUERIES_MAX
    }
}
