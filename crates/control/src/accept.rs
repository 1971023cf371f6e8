//! Connections, of which there are only so many at once.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};

/// Pause after a failed `accept`, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What becomes of a new connection when there are as many as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits until one of them ends.
    Waits,
    /// The oldest of them is ended for it.
    EndsOldest,
}

/// Accepts connections and converses with each beside the others, with at most `connections_max` at
/// once; never ends. Dropping it ends every connection.
///
/// # Errors
///
/// None: what cannot be accepted is tried again.
pub async fn converse_with_all<C, A, T>(
    (connections_max, when_full): (usize, WhenFull),
    accept: impl Fn() -> A,
    converse: impl Fn(C) -> T,
) -> io::Result<()>
where
    A: Future<Output = io::Result<C>>,
    T: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut by_age = VecDeque::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= connections_max && when_full == WhenFull::Waits {
            connections.join_next().await;
            continue;
        }
        match accept().await {
            Ok(connection) => {
                by_age.retain(|open: &AbortHandle| !open.is_finished());
                if by_age.len() >= connections_max
                    && let Some(oldest) = by_age.pop_front()
                {
                    oldest.abort();
                }
                by_age.push_back(connections.spawn(converse(connection)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}
