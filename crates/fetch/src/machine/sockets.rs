//! The UDP side: which socket a query leaves through, and what becomes of sockets.

use crate::machine::{AttemptState, Machine, Waiter};
use crate::network::{Network, SocketKey};
use crate::time::Moment;
use crate::transactions::{Transaction, Transactions};
use crate::upstream::{SOCKET_AGE_MAX, SOCKET_QUERIES_MAX, SOCKETS_MAX};

use engine::Failure;

/// One UDP socket, connected to one upstream.
pub(super) struct Socket {
    pub(super) upstream: u32,
    pub(super) transactions: Transactions,
    pub(super) opened: Moment,
    pub(super) sent: u32,
    /// Datagrams with an ID nobody waits for.
    pub(super) strays: u32,
    /// Sends nothing more; closed when the last reply is in.
    pub(super) is_retiring: bool,
}

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Returns the socket that this burst's queries to `key` leave through; `None` when the network refuses one.
    pub(super) fn socket_for(&mut self, key: u32, now: Moment) -> Option<SocketKey> {
        let upstream = self.upstreams.get(key as usize)?;
        if let Some(burst) = upstream.burst
            && self.sockets.get(burst.0 as usize).is_some_and(Socket::has_room)
        {
            return Some(burst);
        }
        let start = self.random_below(SOCKETS_MAX);
        for step in 0..SOCKETS_MAX {
            let slot = (start + step) % SOCKETS_MAX;
            let found =
                self.upstreams.get(key as usize).and_then(|upstream| upstream.sockets.get(slot).copied());
            let socket = match found.flatten() {
                Some(socket) if self.sockets.get(socket.0 as usize).is_some_and(|it| it.is_fresh(now)) => {
                    socket
                }
                Some(worn) => {
                    self.retire_socket(worn);
                    self.open_socket(key, slot, now)?
                }
                None if self.sockets.len() >= self.limits.sockets_max as usize => continue,
                None => self.open_socket(key, slot, now)?,
            };
            if self.sockets.get(socket.0 as usize).is_some_and(Socket::has_room) {
                let upstream = self.upstreams.get_mut(key as usize)?;
                if upstream.burst.replace(socket).is_none() {
                    self.bursts.push(key);
                }
                return Some(socket);
            }
        }
        None
    }

    fn open_socket(&mut self, key: u32, slot: usize, now: Moment) -> Option<SocketKey> {
        let upstream = self.upstreams.get_mut(key as usize)?;
        let entry = self.sockets.vacant_entry();
        let socket = SocketKey(entry.key() as u32);
        match self.network.open(socket, &upstream.remote) {
            Ok(()) => {
                entry.insert(Socket {
                    upstream: key,
                    transactions: Transactions::default(),
                    opened: now,
                    sent: 0,
                    strays: 0,
                    is_retiring: false,
                });
                if let Some(room) = upstream.sockets.get_mut(slot) {
                    *room = Some(socket);
                }
                Some(socket)
            }
            Err(_) => {
                let change = upstream.refused(now);
                self.changed(key, change, now);
                None
            }
        }
    }

    /// Takes a socket out of use; it is closed once nothing is outstanding on it.
    pub(super) fn retire_socket(&mut self, key: SocketKey) {
        let Some(socket) = self.sockets.get_mut(key.0 as usize) else { return };
        if std::mem::replace(&mut socket.is_retiring, true) {
            return;
        }
        if socket.transactions.is_empty() {
            self.closing.push(key);
        }
        if let Some(upstream) = self.upstreams.get_mut(socket.upstream as usize) {
            for slot in upstream.sockets.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
            if upstream.burst == Some(key) {
                upstream.burst = None;
            }
        }
    }

    /// Takes all sockets to one upstream out of use.
    pub(super) fn retire_sockets(&mut self, key: u32) {
        let Some(upstream) = self.upstreams.get(key as usize) else { return };
        for socket in upstream.sockets.into_iter().flatten() {
            self.retire_socket(socket);
        }
    }

    /// Takes the news that the network refused what a socket sent (ICMP on a connected socket, no route…).
    ///
    /// The kernel does not say which of the queries it was; they all went the same way.
    pub(crate) fn socket_failed(&mut self, key: SocketKey, now: Moment) {
        let Some(socket) = self.sockets.get(key.0 as usize) else { return };
        let upstream = socket.upstream;
        let lost: Vec<Transaction> = socket.transactions.iter().copied().collect();
        self.counters.network_errors.bump();
        if let Some(to) = self.upstreams.get_mut(upstream as usize) {
            let change = to.refused(now);
            self.changed(upstream, change, now);
        }
        self.retire_socket(key);
        for transaction in lost {
            if self.close_attempt(transaction, AttemptState::Failed) {
                if let Some(fetch) = self.fetches.get_mut(transaction.fetch as usize) {
                    fetch.last_failure = Failure::Network;
                }
                self.advance(transaction.fetch, now);
            }
        }
    }

    /// Takes one attempt off the wire with the given end; says whether it was on it.
    pub(super) fn close_attempt(&mut self, transaction: Transaction, end: AttemptState) -> bool {
        let Some(fetch) = self.fetches.get_mut(transaction.fetch as usize) else { return false };
        let Some(attempt) = fetch.attempts_mut().get_mut(usize::from(transaction.attempt)) else {
            return false;
        };
        if !attempt.is_open() || attempt.id != transaction.id {
            return false;
        }
        attempt.state = end;
        let attempt = *attempt;
        self.end_transaction(&attempt);
        true
    }

    /// Sends what was queued, once per batch; closes what is no longer used.
    pub(crate) fn flush(&mut self, now: Moment) {
        for key in self.bursts.drain(..) {
            if let Some(upstream) = self.upstreams.get_mut(key as usize) {
                upstream.burst = None;
            }
        }
        let mut failed = std::mem::take(&mut self.failed);
        // Ends: every round after the first is for fetches that failed over, each at most as often as it has attempts.
        loop {
            self.network.flush(&mut failed);
            if failed.is_empty() {
                break;
            }
            for socket in failed.drain(..) {
                self.socket_failed(socket, now);
            }
        }
        self.failed = failed;
        while let Some(key) = self.closing.pop() {
            if self.sockets.try_remove(key.0 as usize).is_some() {
                self.network.close(key);
            }
        }
        if self.has_garbage {
            self.collect_garbage();
        }
    }
}

impl Socket {
    fn has_room(&self) -> bool {
        !self.is_retiring && self.transactions.len() < crate::transactions::TRANSACTIONS_MAX
    }

    fn is_fresh(&self, now: Moment) -> bool {
        self.sent < SOCKET_QUERIES_MAX && now.since(self.opened) < SOCKET_AGE_MAX
    }
}
