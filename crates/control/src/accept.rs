//! Connections, of which there are only so many at once.

use std::io;
use std::time::Duration;

use tokio::task::JoinSet;

/// Pause after a failed `accept`, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections and converses with each beside the others, with at most `connections_max` at once; never ends.
/// Dropping it ends every connection.
pub(crate) async fn converse_with_all<C, A, T>(
    connections_max: usize,
    accept: impl Fn() -> A,
    converse: impl Fn(C) -> T,
) -> io::Result<()>
where
    A: Future<Output = io::Result<C>>,
    T: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= connections_max {
            connections.join_next().await;
            continue;
        }
        match accept().await {
            Ok(connection) => {
                connections.spawn(converse(connection));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}
