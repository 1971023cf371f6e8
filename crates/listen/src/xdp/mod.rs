//! Serves queues of interfaces through AF_XDP, beside the kernel's sockets.

mod reader;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::Outlet as _;
use tokio::task::{self, JoinSet};
use tokio::time::{sleep, timeout_at};

use crate::counters::Counters;
use crate::serve::Stop;
use crate::service::Service;
use reader::Reader;
pub use reader::XdpQueue;

/// How long to wait when the interface takes no more packets and none come in: at a million a
/// second it has sent a thousand by then.
const UNSENT_INTERVAL: Duration = Duration::from_millis(1);

/// How often the kernel is asked what it counted.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// How often a stopping worker looks whether packets still wait for their replies.
const WAITING_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Serves queues until `stop` says otherwise; then waits, at most until the deadline, for the
/// replies that are due.
///
/// Runs on the worker's own thread, inside a [`LocalRuntime`](tokio::runtime::LocalRuntime), beside
/// [`serve`](crate::serve()). Returns at once if there are no queues.
pub async fn serve_queues<S: Service + 'static>(
    service: Rc<S>,
    queues: Vec<XdpQueue>,
    counters: Arc<Counters>,
    mut stop: Stop,
) -> io::Result<()> {
    if queues.is_empty() {
        return Ok(());
    }
    let mut tasks = JoinSet::new();
    let mut readers = Vec::with_capacity(queues.len());
    for queue in queues {
        let reader = Reader::new(Rc::clone(&service), queue, Arc::clone(&counters))?;
        let reader = Rc::new(RefCell::new(reader));
        tasks.spawn_local(read(Rc::clone(&reader)));
        tasks.spawn_local(tell(Rc::clone(&reader)));
        readers.push(reader);
    }
    let deadline = tokio::select! {
        biased;
        deadline = stop.requested() => deadline,
        Some(ended) = tasks.join_next() => return ended.unwrap_or_else(|error| Err(io::Error::other(error))),
    };
    tasks.shutdown().await;
    for reader in &readers {
        // What has arrived by now is still answered.
        let mut reader = reader.borrow_mut();
        reader.drain();
        reader.tell();
    }
    let rest = async {
        while readers.iter().any(|reader| reader.borrow().is_waiting()) {
            sleep(WAITING_CHECK_INTERVAL).await;
        }
    };
    let _ = timeout_at(deadline, rest).await;
    Ok(())
}

/// Tells the numbers of a queue until it is dropped.
async fn tell<S: Service>(reader: Rc<RefCell<Reader<S>>>) -> io::Result<()> {
    loop {
        sleep(TELL_INTERVAL).await;
        reader.borrow_mut().tell();
    }
}

/// Answers packets until it is dropped.
async fn read<S: Service>(reader: Rc<RefCell<Reader<S>>>) -> io::Result<()> {
    let outlet = reader.borrow().outlet();
    loop {
        let is_stuck = outlet.has_unsent();
        let mut ready = tokio::select! {
            biased;
            // Whoever is stuck goes on receiving: each batch asks the interface again, and it has
            // had time meanwhile.
            ready = outlet.watch().readable() => ready?,
            () = sleep(UNSENT_INTERVAL), if is_stuck => {
                outlet.flush();
                continue;
            }
            () = outlet.stuck(), if !is_stuck => continue,
        };
        if reader.borrow_mut().drain() {
            // The ring was empty at the end, so whatever comes after that wakes us again.
            ready.clear_ready();
        } else {
            task::yield_now().await;
        }
    }
}
