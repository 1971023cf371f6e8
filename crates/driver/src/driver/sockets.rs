//! What the sockets of a worker bring.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use authorities::{PoolLinkKey, PoolSocketKey};
use exchange::net::{LinkEvents, PoolEvents, QuerySocket, Received, SocketEvents};
use exchange::network::{LinkKey, SocketKey};
use timers::Moment;
use tokio::io::Interest;

use super::Driver;
use crate::recursion::LinkEvent;

/// Batches read from one socket before others get their turn.
const ROUNDS_MAX: usize = 4;
/// Replies of upstreams after which clients get theirs without waiting for the end of the batch:
/// they read these, and ask again, while we write more.
const BITE: usize = 32;
/// Replies of authoritative servers that are settled together, from however many sockets.
const GATHERED_MAX: usize = 64;

impl SocketEvents for Driver {
    fn receive(&self, key: SocketKey, socket: &Rc<QuerySocket>, interest: Interest) -> Received {
        if !self.machine.borrow().network().is_current(key, socket) {
            return Received::Closed;
        }
        let now = self.begin();
        let mut inbox = self.inbox.borrow_mut();
        let mut received = Received::Some;
        let mut datagrams = 0;
        for _ in 0..ROUNDS_MAX {
            inbox.clear();
            let read = socket.try_io(interest, |socket| {
                let has_more = inbox.receive(socket.as_fd())?;
                // A short batch means that the queue is empty; saying so saves the call that would
                // find that out.
                if has_more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            for (bytes, is_cut) in inbox.iter() {
                datagrams += 1;
                let finished = self.machine.borrow_mut().datagram(key, bytes, is_cut, now);
                if let Some(finished) = finished {
                    self.conclude(finished, now);
                }
                if datagrams % BITE == 0 {
                    self.show_load();
                    self.hand_out();
                }
            }
            match read {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    received = Received::All;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => {
                    self.machine.borrow_mut().socket_failed(key, error.kind(), now);
                    received = Received::Closed;
                    break;
                }
            }
        }
        drop(inbox);
        self.settle(now);
        self.worker.busy_poll.worked(datagrams);
        received
    }
}

impl PoolEvents for Driver {
    fn pool_receive(&self, key: PoolSocketKey, socket: &Rc<QuerySocket>, interest: Interest) -> Received {
        if !self.machine.borrow().pool_network().is_current(key, socket) {
            return Received::Closed;
        }
        let now = self.begin();
        let mut inbox = self.pool_inbox.borrow_mut();
        let mut received = Received::Some;
        let mut datagrams = 0;
        for _ in 0..ROUNDS_MAX {
            inbox.clear();
            let read = socket.try_io(interest, |socket| {
                let has_more = inbox.receive(socket.as_fd())?;
                if has_more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            for (from, bytes, is_cut) in inbox.iter_with_sources() {
                datagrams += 1;
                self.machine.borrow_mut().pool_datagram(key, from, (bytes, is_cut), now);
            }
            match read {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    received = Received::All;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(_) => {
                    self.machine.borrow_mut().pool_socket_failed(key, now);
                    received = Received::Closed;
                    break;
                }
            }
        }
        drop(inbox);
        self.gather(datagrams, now);
        self.worker.busy_poll.worked(datagrams);
        received
    }

    fn pool_link_hear(&self, key: PoolLinkKey, bytes: &[u8]) -> usize {
        let now = self.begin();
        let mut rest = bytes;
        while let Some((message, after)) = first_message(rest) {
            rest = after;
            self.machine.borrow_mut().pool_message(key, message, now);
        }
        self.settle(now);
        bytes.len() - rest.len()
    }

    fn pool_link_opened(&self, key: PoolLinkKey) {
        self.pool_link(key, LinkEvent::Opened);
    }

    fn pool_link_stalled(&self, key: PoolLinkKey) {
        self.pool_link(key, LinkEvent::Stalled);
    }

    fn pool_link_lacked(&self, key: PoolLinkKey) {
        self.pool_link(key, LinkEvent::Lacked);
    }

    fn pool_link_closed(&self, key: PoolLinkKey) {
        self.pool_link(key, LinkEvent::Closed);
    }
}

impl LinkEvents for Driver {
    fn hear(&self, key: LinkKey, bytes: &[u8]) -> usize {
        let now = self.begin();
        let mut rest = bytes;
        let mut messages = 0;
        while let Some((message, after)) = first_message(rest) {
            rest = after;
            messages += 1;
            let finished = self.machine.borrow_mut().message(key, message, now);
            if let Some(finished) = finished {
                self.conclude(finished, now);
            }
        }
        self.settle(now);
        self.worker.busy_poll.worked(messages);
        bytes.len() - rest.len()
    }

    fn opened(&self, key: LinkKey) {
        let now = self.now();
        self.machine.borrow_mut().link_opened(key, now);
    }

    fn lacked(&self, key: LinkKey) {
        let now = self.begin();
        self.machine.borrow_mut().link_lacked(key, now);
        self.settle(now);
    }

    fn stalled(&self, key: LinkKey) {
        let now = self.begin();
        self.machine.borrow_mut().link_stalled(key, now);
        self.settle(now);
    }

    fn closed(&self, key: LinkKey, trouble: Option<String>) {
        let now = self.begin();
        self.machine.borrow_mut().link_closed(key, trouble, now);
        self.settle(now);
    }
}

impl Driver {
    /// Settles what one socket brought together with what others do that are ready, too.
    fn gather(&self, datagrams: usize, now: Moment) {
        let gathered = &self.gathered;
        let before = gathered.datagrams.get();
        // That a socket failed is settled, too.
        gathered.datagrams.set(before + datagrams.max(1));
        if before + datagrams >= GATHERED_MAX {
            self.settle(now);
        } else if before == 0 {
            gathered.is_waiting.notify_one();
        }
    }

    fn pool_link(&self, key: PoolLinkKey, event: LinkEvent) {
        let now = self.begin();
        self.machine.borrow_mut().pool_link(key, event, now);
        self.settle(now);
    }
}

/// Returns the message at the front of what came over a connection, and what comes after it; `None`
/// if it is not whole.
fn first_message(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, after) = octets.split_first_chunk::<2>()?;
    after.split_at_checked(usize::from(u16::from_be_bytes(length)))
}
