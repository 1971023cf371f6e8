//! Where listeners and fetchers meet: they know these traits and never each other.
//!
//! Everything here belongs to one worker thread and is shared by `Rc`.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::{BusyPoll, Clock, Engine, Suspended};

/// Carries out what deferred queries wait for. Never blocks; one per worker.
pub trait Driver {
    /// Takes a deferred query; its reply goes to `to`, exactly once, or never if the client has
    /// gone.
    ///
    /// May answer before it returns (overload, no upstream): the caller must not hold the engine.
    fn take(&self, suspended: Box<Suspended>, to: ReplyTo);

    /// Takes work that no client waits for: a prefetch, or the refresh behind a stale answer.
    fn prefetch(&self, suspended: Box<Suspended>);

    /// Sends what was queued since the last call. Listeners call it once per batch.
    fn flush(&self);

    /// Returns how many fetches are under way.
    fn fetching(&self) -> usize;

    /// Returns whether half of what may wait here is waiting.
    fn is_crowded(&self) -> bool;
}

/// Carries messages that it cannot read to other servers, for clients that do not want to be seen
/// there (RFC 9230). One per worker.
pub trait Courier {
    /// Returns whether messages are carried to a target, which is called by its name, with a port
    /// if that is not 443.
    fn serves(&self, target: &str) -> bool;

    /// Carries a message; `done` hears what the target said, or is dropped if it could not be
    /// reached in time.
    fn carry(&self, parcel: Parcel, done: Box<dyn FnOnce(Delivery)>);
}

/// A sealed message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The target.
    pub target: String,
    /// The path at the target.
    pub path: String,
    /// The message.
    pub sealed: Vec<u8>,
}

/// What a target said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The status of HTTP.
    pub status: u16,
    /// The sealed response; empty if there is none.
    pub sealed: Vec<u8>,
}

/// A client's socket or connection: takes replies that come later.
pub trait Outlet {
    /// Queues `reply`; does nothing when the client has gone.
    fn deliver(&self, address: &Address, reply: &[u8]);

    /// Sends what was queued. Fetchers call it once per batch of upstream replies.
    fn flush(&self);

    /// Returns the most octets a reply may have here, so that the buffer can be chosen.
    fn reply_octets_max(&self) -> usize;

    /// Waits until the client has taken most of what was delivered; `false` when it has gone. For
    /// replies of many messages.
    fn poll_room(&self, context: &mut Context<'_>) -> Poll<bool> {
        let _ = context;
        Poll::Ready(true)
    }
}

/// Whose query it was, in terms of the outlet it came through.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Where a datagram goes back to (behind a proxy: the proxy).
    pub peer: SocketAddr,
    /// The address and interface index the query came to; the reply leaves from there.
    pub local: Option<(IpAddr, u32)>,
    /// Which of a connection's queries it was.
    pub stream: u64,
}

/// Where a late reply goes.
#[derive(Clone)]
pub struct ReplyTo {
    /// The socket or connection.
    pub outlet: Rc<dyn Outlet>,
    /// The client's address at that outlet.
    pub address: Address,
}

/// What the parts of one worker share. Borrowed inside one synchronous call, never across a wait.
pub struct Worker {
    /// Number of this worker, from zero.
    pub index: usize,
    /// What it reads the time from: the same for all workers.
    pub clock: Clock,
    /// The engine.
    pub engine: RefCell<Engine>,
    /// Whether it stays awake for a moment when it has nothing to do. Whoever ends a batch stirs
    /// it.
    pub busy_poll: BusyPoll,
}
