//! Queries over the sockets of this machine: what a worker does around the state machine.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Instant;

use authorities::{
    Arrival, Authorities, AuthorityQuery, CookieSecret, Counters, Event, Heard, PoolLimits, PoolLinkKey,
    PoolSocketKey, Unanswered,
};
use cache::servers::{ServerLimits, Servers};
use exchange::net::{PoolEvents, PoolNet, QuerySocket, Received};
use exchange::sys::Inbox;
use rand::SeedableRng;
use rand::rngs::StdRng;
use timers::Moment;
use tokio::io::Interest;
use tokio::sync::Notify;
use wire::{HashKey, Rcode};

/// What became of a query.
pub(crate) type End = Result<(Rcode, Arrival), Unanswered>;

/// Asks, and keeps what became of it.
pub(crate) struct Owner {
    pub(crate) authorities: RefCell<Authorities<PoolNet>>,
    inbox: RefCell<Inbox>,
    since: Instant,
    ended: RefCell<Vec<(u32, End)>>,
    has_ended: Notify,
    /// Set while several are asked, so that they leave together.
    pub(crate) is_batching: Cell<bool>,
}

impl Owner {
    pub(crate) fn new(limits: PoolLimits) -> Rc<Self> {
        let servers = Servers::new(ServerLimits { lines: 4096, cookies: 4096 }, HashKey::new([1, 2]));
        let mut rng = StdRng::seed_from_u64(7);
        let secret = CookieSecret::draw(&mut rng);
        Rc::new_cyclic(|owner| {
            let owner: Weak<dyn PoolEvents> = Weak::<Self>::clone(owner);
            let net = PoolNet::new(owner);
            let counters = Arc::new(Counters::default());
            let mut authorities =
                Authorities::new(net, Arc::new(servers), secret, rng, counters, Moment::default());
            authorities.adopt(limits);
            Self {
                authorities: RefCell::new(authorities),
                inbox: RefCell::new(Inbox::with_sources()),
                since: Instant::now(),
                ended: RefCell::default(),
                has_ended: Notify::new(),
                is_batching: Cell::new(false),
            }
        })
    }

    fn now(&self) -> Moment {
        Moment(self.since.elapsed().as_micros() as u64)
    }

    /// Asks; sends at once unless several are asked.
    pub(crate) fn ask(&self, query: &AuthorityQuery<'_>, tag: u32) {
        self.authorities.borrow_mut().ask(query, tag, self.now());
        if !self.is_batching.get() {
            self.settle();
        }
    }

    /// Sends what was queued.
    pub(crate) fn settle(&self) {
        let mut authorities = self.authorities.borrow_mut();
        authorities.flush();
        while let Some(Event::Unanswered { tag, why }) = authorities.next_event() {
            self.ended.borrow_mut().push((tag, Err(why)));
        }
        self.has_ended.notify_one();
    }

    fn keep(&self, heard: Option<Heard<'_>>) {
        if let Some(heard) = heard {
            self.ended.borrow_mut().push((heard.tag, Ok((heard.message.rcode(), heard.arrival))));
        }
    }

    /// Waits until queries have ended, and returns them.
    pub(crate) async fn ended(&self) -> Vec<(u32, End)> {
        loop {
            let ended = self.ended.take();
            if !ended.is_empty() {
                return ended;
            }
            let due = self.authorities.borrow().next_due();
            let wait = due.map_or(100_000, |due| due.since(self.now()).0.min(100_000));
            let wait = std::time::Duration::from_micros(wait);
            if tokio::time::timeout(wait, self.has_ended.notified()).await.is_err() {
                self.authorities.borrow_mut().due(self.now());
                self.settle();
            }
        }
    }
}

impl PoolEvents for Owner {
    fn pool_receive(&self, key: PoolSocketKey, socket: &Rc<QuerySocket>, interest: Interest) -> Received {
        if !self.authorities.borrow().network().is_current(key, socket) {
            return Received::Closed;
        }
        let now = self.now();
        let mut inbox = self.inbox.borrow_mut();
        inbox.clear();
        let read = socket.try_io(interest, |socket| {
            let has_more = inbox.receive(socket.as_fd())?;
            if has_more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        for (from, bytes, is_cut) in inbox.iter_with_sources() {
            self.keep(self.authorities.borrow_mut().datagram(key, from, bytes, is_cut, now));
        }
        drop(inbox);
        self.settle();
        if read.is_ok() { Received::Some } else { Received::All }
    }

    fn pool_link_opened(&self, key: PoolLinkKey) {
        self.authorities.borrow_mut().link_opened(key, self.now());
    }

    fn pool_link_hear(&self, key: PoolLinkKey, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while let Some((&length, after)) = rest.split_first_chunk::<2>()
            && let Some((message, after)) = after.split_at_checked(usize::from(u16::from_be_bytes(length)))
        {
            rest = after;
            self.keep(self.authorities.borrow_mut().message(key, message, self.now()));
        }
        self.settle();
        bytes.len() - rest.len()
    }

    fn pool_link_stalled(&self, key: PoolLinkKey) {
        self.authorities.borrow_mut().link_stalled(key, self.now());
        self.settle();
    }

    fn pool_link_lacked(&self, key: PoolLinkKey) {
        self.authorities.borrow_mut().link_lacked(key, self.now());
        self.settle();
    }

    fn pool_link_closed(&self, key: PoolLinkKey) {
        self.authorities.borrow_mut().link_closed(key, self.now());
        self.settle();
    }
}
