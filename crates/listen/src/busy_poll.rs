//! Polls the kernel for as long as the worker's [`BusyPoll`](engine::BusyPoll) says.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use tokio::task::yield_now;

use crate::service::Service;
use crate::sys;

/// Polls whenever the worker is to, until it is dropped.
///
/// Each look is a turn of the whole runtime, which asks the kernel for every socket and timer of
/// this thread, upstreams' ones and connections included, and does not wait: nothing has to stand
/// back for it.
pub(crate) async fn poll<S: Service>(service: Rc<S>) -> io::Result<()> {
    let Some(busy_poll) = service.busy_poll() else { return std::future::pending().await };
    let started = Instant::now();
    loop {
        poll_fn(|context| if busy_poll.is_wanted(context.waker()) { Poll::Ready(()) } else { Poll::Pending })
            .await;
        let now_us = || u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        while busy_poll.should_poll(now_us(), sys::thread_usage) {
            yield_now().await;
        }
    }
}
