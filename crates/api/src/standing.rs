//! What lasts, such as a live tail, ends with the token or the session that it was asked for with.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use server::{Caller, Operator, Shown};
use tokio::time::sleep;

/// How often it is looked whether somebody may still be here: within a second it shows.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// Is over when what somebody has shown counts no more.
pub(crate) struct Standing(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Standing {
    pub(crate) fn new(operator: &Arc<Operator>, shown: Shown, caller: &Caller) -> Self {
        let (operator, role) = (Arc::clone(operator), caller.role);
        Self(Box::pin(async move {
            while operator.still_shows(&shown, role) {
                sleep(LOOK_EVERY).await;
            }
        }))
    }

    /// Returns one that is over.
    #[cfg(test)]
    pub(crate) fn over() -> Self {
        Self(Box::pin(std::future::ready(())))
    }

    pub(crate) fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        matches!(self.0.as_mut().poll(context), Poll::Ready(()))
    }
}
