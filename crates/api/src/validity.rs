//! How long what lasts goes on, such as a live tail: until the token or the session that it was
//! asked for with is revoked or has expired.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use server::{Caller, Credential, Operator};
use tokio::time::sleep;

/// How often a credential is looked up: within a second its revocation shows. That waits for
/// nobody.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// Ends when a credential is valid no more.
pub(crate) struct Validity(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Validity {
    pub(crate) fn new(operator: &Arc<Operator>, credential: Credential, caller: &Caller) -> Self {
        let (operator, role) = (Arc::clone(operator), caller.role);
        Self(Box::pin(async move {
            while operator.is_valid(&credential, role) {
                sleep(LOOK_EVERY).await;
            }
        }))
    }

    /// Returns one that has ended.
    #[cfg(test)]
    pub(crate) fn ended() -> Self {
        Self(Box::pin(std::future::ready(())))
    }

    pub(crate) fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        matches!(self.0.as_mut().poll(context), Poll::Ready(()))
    }
}
