//! Stays awake for as long as the worker's vigil says.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use tokio::task::yield_now;

use crate::service::Service;

/// Looks for more whenever the vigil calls, until it is dropped.
///
/// Each look is a turn of the whole runtime, which asks the kernel for every socket and timer of this thread, upstreams'
/// ones and connections included, and does not wait: nothing has to stand back for it.
pub(crate) async fn keep<S: Service>(service: Rc<S>) -> io::Result<()> {
    let Some(vigil) = service.vigil() else { return std::future::pending().await };
    let started = Instant::now();
    loop {
        poll_fn(|context| if vigil.is_called(context.waker()) { Poll::Ready(()) } else { Poll::Pending })
            .await;
        while vigil.goes_on(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)) {
            yield_now().await;
        }
    }
}
