//! One query of a transport whose requests are futures: answered now, or waited for.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use engine::{Address, Client, ConnectionText, Courier, Delivery, Now, Outlet, Parcel, ReplyTo, Said};
use hyper::body::Bytes;
use tokio::sync::oneshot;
use wire::MESSAGE_OCTETS_MAX;

use crate::budget::Account;
use crate::service::{self, Answer as _, Answered, Service};
use crate::tcp::Shared;

/// As many queries of the connection wait as may, or as many of its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// What became of a query.
#[must_use]
pub(crate) enum Outcome {
    /// It was answered.
    Replied,
    /// It gets no reply.
    Nothing,
    /// The reply comes later.
    Late(Late),
}

/// A reply that comes later.
pub(crate) struct Late(Rc<Pigeonhole>);

impl Late {
    /// Waits for it; `None` if none will come. There may be too many of them when it does.
    pub(crate) async fn reply(self) -> Result<Option<Bytes>, TooMany> {
        poll_fn(|context| self.0.poll(context)).await
    }
}

/// Asks the engine for one connection.
pub(crate) struct Asker<S: Service> {
    shared: Rc<Shared<S>>,
    /// What the connection holds of replies.
    account: Arc<Account>,
    /// Queries that wait for an upstream, also those whose stream is gone.
    waiting: Rc<Cell<u32>>,
}

impl<S: Service + 'static> Asker<S> {
    pub(crate) fn new(shared: Rc<Shared<S>>, account: Arc<Account>) -> Self {
        Self { shared, account, waiting: Rc::default() }
    }

    pub(crate) const fn shared(&self) -> &Rc<Shared<S>> {
        &self.shared
    }

    /// Returns the reply to `query`, or `None` if it gets none. `say` tells policy about the
    /// connection.
    pub(crate) async fn ask<'t>(
        &self,
        query: &[u8],
        client: Client,
        say: impl Fn(&ConnectionText) -> Said<'t>,
    ) -> Result<Option<Bytes>, TooMany> {
        let service = self.shared.service();
        let mut copied = None;
        let copy = |reply: &[u8]| copied = Some(self.account.keep(reply));
        let outcome = self.ask_now(query, client, service.now(), say, copy)?;
        service::finish(&**service, 1);
        Ok(match outcome {
            Outcome::Replied => copied,
            Outcome::Nothing => None,
            Outcome::Late(late) => late.reply().await?,
        })
    }

    /// Asks one of a batch of queries; a reply that is there at once is shown to `reply`. Whoever
    /// asks ends the batch with [`service::finish`].
    pub(crate) fn ask_now<'t>(
        &self,
        query: &[u8],
        client: Client,
        now: Now,
        say: impl Fn(&ConnectionText) -> Said<'t>,
        reply: impl FnOnce(&[u8]),
    ) -> Result<Outcome, TooMany> {
        if self.waiting.get() >= self.shared.plan().waiting_max.max(1) {
            // Streams that were reset still wait: whoever opens more in their place has to slow
            // down.
            return Err(TooMany);
        }
        let answered = self.shared.with_room(|service, room| {
            let mut engine = service.engine();
            engine.begin(now);
            let connection = engine.connection_bits(say);
            let answered = engine.answer(query, &Client { connection, ..client }, room);
            drop(engine);
            if let Answered::Reply(len) = answered {
                reply(room.get(..len).unwrap_or(&[]));
            }
            answered
        });
        Ok(match answered {
            Answered::Reply(_) => Outcome::Replied,
            Answered::Nothing => Outcome::Nothing,
            Answered::Deferred(deferred) => {
                let pigeonhole = Rc::new(Pigeonhole::default());
                let ticket = Ticket::new(&pigeonhole, &self.account, &self.waiting);
                let address = Address { peer: (client.address, client.port).into(), local: None, stream: 0 };
                self.shared.service().take(deferred, ReplyTo { outlet: Rc::new(ticket), address });
                Outcome::Late(Late(pigeonhole))
            }
        })
    }
}

/// Counts a message that is carried elsewhere among what the connection waits for.
struct Waiting(Rc<Cell<u32>>);

impl Waiting {
    fn new(waiting: &Rc<Cell<u32>>) -> Self {
        waiting.set(waiting.get() + 1);
        Self(Rc::clone(waiting))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl<S: Service + 'static> Asker<S> {
    /// Has a message carried to another server; `None` if that cannot be reached.
    pub(crate) async fn carry(
        &self,
        courier: &dyn Courier,
        parcel: Parcel,
    ) -> Result<Option<Delivery>, TooMany> {
        if self.waiting.get() >= self.shared.plan().waiting_max.max(1) {
            return Err(TooMany);
        }
        let (sender, receiver) = oneshot::channel();
        let waiting = Waiting::new(&self.waiting);
        let done = move |delivery| {
            drop(waiting);
            // The client may have gone.
            drop(sender.send(delivery));
        };
        courier.carry(parcel, Box::new(done));
        Ok(receiver.await.ok())
    }
}

/// Where the late reply to one request is put.
#[derive(Default)]
struct Pigeonhole {
    reply: RefCell<Option<Bytes>>,
    /// Whether there will be no (other) reply.
    is_over: Cell<bool>,
    /// Whether there was one, and no room for it.
    was_too_many: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Pigeonhole {
    fn poll(&self, context: &Context<'_>) -> Poll<Result<Option<Bytes>, TooMany>> {
        if let Some(reply) = self.reply.take() {
            return Poll::Ready(Ok(Some(reply)));
        }
        if self.was_too_many.get() {
            return Poll::Ready(Err(TooMany));
        }
        if self.is_over.get() {
            return Poll::Ready(Ok(None));
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Takes the reply to a query that waits. Dropping it means that none will come (any more).
struct Ticket {
    pigeonhole: Rc<Pigeonhole>,
    account: Arc<Account>,
    waiting: Rc<Cell<u32>>,
}

impl Ticket {
    fn new(pigeonhole: &Rc<Pigeonhole>, account: &Arc<Account>, waiting: &Rc<Cell<u32>>) -> Self {
        waiting.set(waiting.get() + 1);
        Self { pigeonhole: Rc::clone(pigeonhole), account: Arc::clone(account), waiting: Rc::clone(waiting) }
    }
}

impl Outlet for Ticket {
    fn deliver(&self, _: &Address, reply: &[u8]) {
        if self.account.has_room_for_late(reply.len()) {
            *self.pigeonhole.reply.borrow_mut() = Some(self.account.keep(reply));
        } else {
            self.pigeonhole.was_too_many.set(true);
        }
        self.pigeonhole.wake();
    }

    fn flush(&self) {}

    fn reply_octets_max(&self) -> usize {
        MESSAGE_OCTETS_MAX
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.waiting.set(self.waiting.get().saturating_sub(1));
        self.pigeonhole.is_over.set(true);
        self.pigeonhole.wake();
    }
}
