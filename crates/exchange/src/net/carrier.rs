//! A connection's task as those see it that carry its messages: what is to be written, and who
//! hears what comes.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use tokio::sync::Notify;

use crate::network::LinkKey;

/// Octets queued on one connection: far more than its queries in flight can be.
const OUTBOX_OCTETS_MAX: usize = 1 << 20;

/// What is to be written to a connection: messages, each after its length in two octets.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The connection was given up; its task has nothing more to report.
    is_closed: Cell<bool>,
    bytes: RefCell<Vec<u8>>,
    filled: Notify,
    is_signalled: Cell<bool>,
}

impl Outbox {
    /// Queues a message. One that finds no room is dropped: the peer does not read. The query times
    /// out, and so does whoever writes.
    pub(crate) fn push(&self, packet: &[u8]) {
        let mut bytes = self.bytes.borrow_mut();
        let Ok(len) = u16::try_from(packet.len()) else { return };
        if bytes.len() + packet.len() > OUTBOX_OCTETS_MAX {
            return;
        }
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(packet);
        if !self.is_signalled.replace(true) {
            self.filled.notify_one();
        }
    }

    /// Gives the connection up.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Waits for messages and takes them all. Dropping the future loses none.
    pub(super) async fn take(&self) -> Vec<u8> {
        loop {
            let bytes = self.bytes.take();
            if !bytes.is_empty() {
                return bytes;
            }
            self.is_signalled.set(false);
            self.filled.notified().await;
        }
    }
}

/// Receives what a connection brings.
pub trait LinkEvents {
    /// Hears that queries can be written.
    fn opened(&self, key: LinkKey);

    /// Handles the messages at the front of what was read; returns the octets they took.
    fn hear(&self, key: LinkKey, bytes: &[u8]) -> usize;

    /// Hears that a message began and does not end.
    fn stalled(&self, key: LinkKey);

    /// Hears that no connection could be tried, because this process lacks descriptors, memory or
    /// ports.
    fn lacked(&self, key: LinkKey);

    /// Hears that the connection has ended, or why there was none.
    fn closed(&self, key: LinkKey, trouble: Option<String>);
}

/// A connection's task.
pub(super) struct Carrier {
    pub(super) events: Weak<dyn LinkEvents>,
    pub(super) key: LinkKey,
    pub(super) outbox: Rc<Outbox>,
}

impl Carrier {
    /// Returns who receives this connection's events, as long as somebody does.
    pub(super) fn events(&self) -> Option<Rc<dyn LinkEvents>> {
        self.events.upgrade().filter(|_| !self.outbox.is_closed())
    }
}
