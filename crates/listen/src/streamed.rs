//! What takes several messages or time: transfers of zones, and updates.

use std::future::poll_fn;
use std::rc::Rc;

use engine::peers::{Done, Pending, Transfer};
use engine::{ReplyTo, Streamed, Worker};
use tokio::task::{spawn_local, yield_now};
use wire::Rcode;

/// Sees to it, beside the worker's queries. What it starts ends with the client, at the latest with
/// the worker.
pub(crate) fn carry_out(worker: &Rc<Worker>, handed: Streamed, to: ReplyTo) {
    let worker = Rc::clone(worker);
    match handed {
        Streamed::Transfer(transfer) => drop(spawn_local(send(worker, transfer, to))),
        Streamed::Update(pending) => drop(spawn_local(wait(worker, pending, to))),
    }
}

/// Sends message after message, each when the client has taken most of those before; other queries
/// get their turn in between, so that a worker is never busy with more than one message.
async fn send(worker: Rc<Worker>, mut transfer: Transfer, to: ReplyTo) {
    while poll_fn(|context| to.outlet.poll_room(context)).await {
        let Some(message) = transfer.next(worker.clock.now().unix_seconds) else { break };
        to.outlet.deliver(&to.address, &message);
        to.outlet.flush();
        yield_now().await;
    }
}

/// Replies when the update is done.
async fn wait(worker: Rc<Worker>, pending: Pending, to: ReplyTo) {
    let (done, heard) = tokio::sync::oneshot::channel();
    let done = Box::new(move |outcome| {
        // Whoever waits for it may have gone.
        let _ = done.send(outcome);
    });
    let failed = Done::Rcode(Rcode::SERVFAIL);
    let (reply, outcome) = match pending.begin(done) {
        // Whoever was to tell has gone only while the server ends.
        Ok(reply) => (reply, heard.await.unwrap_or(failed)),
        Err(reply) => (reply, failed),
    };
    let reply = reply.finish(outcome, worker.clock.now().unix_seconds);
    to.outlet.deliver(&to.address, &reply);
    to.outlet.flush();
}
