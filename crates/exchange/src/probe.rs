//! One connection to one server, watched: what an upstream is measured with.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Instant;

use identity::Transport;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::net::carrier::{LinkEvents, Outbox};
use crate::net::link;
use crate::network::{LinkKey, Remote};

/// A connection of its own, over any transport but plain UDP. Closed when it is dropped.
pub struct Watched {
    log: Rc<Log>,
    outbox: Rc<Outbox>,
    task: AbortHandle,
}

/// What happened on it.
#[derive(Default)]
struct Log {
    state: RefCell<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    opened: Option<Instant>,
    ended: Option<Instant>,
    trouble: Option<String>,
    replies: VecDeque<(Instant, Vec<u8>)>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.outbox.close();
        self.task.abort();
    }
}

impl LinkEvents for Log {
    fn opened(&self, _: LinkKey) {
        self.state.borrow_mut().opened = Some(Instant::now());
        self.changed.notify_one();
    }

    fn hear(&self, _: LinkKey, bytes: &[u8]) -> usize {
        let now = Instant::now();
        let mut rest = bytes;
        while let Some((&length, after)) = rest.split_first_chunk::<2>()
            && let Some((message, after)) = after.split_at_checked(usize::from(u16::from_be_bytes(length)))
        {
            rest = after;
            self.state.borrow_mut().replies.push_back((now, message.to_vec()));
        }
        self.changed.notify_one();
        bytes.len() - rest.len()
    }

    fn lacked(&self, key: LinkKey) {
        self.closed(key, Some("this process has no descriptors left".to_owned()));
    }

    fn stalled(&self, _: LinkKey) {
        self.state.borrow_mut().ended = Some(Instant::now());
        self.changed.notify_one();
    }

    fn closed(&self, _: LinkKey, trouble: Option<String>) {
        let mut state = self.state.borrow_mut();
        state.ended = Some(Instant::now());
        state.trouble = trouble;
        self.changed.notify_one();
    }
}

impl Watched {
    /// Begins to connect. Must be called where `spawn_local` works.
    pub fn open(address: SocketAddr, transport: Arc<Transport>) -> Self {
        let (log, outbox) = (Rc::new(Log::default()), Rc::new(Outbox::default()));
        let weak: Weak<Log> = Rc::downgrade(&log);
        let run = link::run(weak, LinkKey(0), Remote { address, transport }, Rc::clone(&outbox));
        let task = tokio::task::spawn_local(run).abort_handle();
        Self { log, outbox, task }
    }

    /// Waits until queries can be sent, and returns since when; an error says why they cannot.
    pub async fn opened(&self) -> Result<Instant, String> {
        loop {
            {
                let state = self.log.state.borrow();
                if let Some(opened) = state.opened {
                    return Ok(opened);
                }
                if state.ended.is_some() {
                    return Err(state.trouble.clone().unwrap_or_else(|| "it ended at once".to_owned()));
                }
            }
            self.log.changed.notified().await;
        }
    }

    /// Sends one query.
    pub fn send(&self, query: &[u8]) {
        self.outbox.push(query);
    }

    /// Waits for the next reply, and returns when it came; `None` when the connection has ended.
    pub async fn next(&self) -> Option<(Instant, Vec<u8>)> {
        loop {
            {
                let mut state = self.log.state.borrow_mut();
                if let Some(reply) = state.replies.pop_front() {
                    return Some(reply);
                }
                if state.ended.is_some() {
                    return None;
                }
            }
            self.log.changed.notified().await;
        }
    }
}
