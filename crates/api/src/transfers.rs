//! Archives that come and go over a connection, which lasts as long as they do.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::timeout;

/// How long a connection may last from its beginning to its end.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(600);

/// The archives that come and go over a connection.
#[derive(Clone, Default)]
pub(crate) struct Transfers(Arc<AtomicUsize>);

/// One of them, for as long as it is there.
pub(crate) struct Transfer(Arc<AtomicUsize>);

impl Transfers {
    pub(crate) fn begin(&self) -> Transfer {
        self.0.fetch_add(1, Ordering::Relaxed);
        Transfer(Arc::clone(&self.0))
    }

    /// Waits for the end of a connection: for as long as any may last, and as long as archives are
    /// under way, which end by themselves when their client does not go on.
    pub(crate) async fn wait_for(&self, connection: impl Future) {
        let mut connection = pin!(connection);
        while timeout(CONNECTION_TIME_MAX, connection.as_mut()).await.is_err() {
            if self.0.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, sleep};

    #[tokio::test(start_paused = true)]
    async fn a_connection_lasts_as_long_as_an_archive_is_under_way() {
        let begun = Instant::now();
        let transfers = Transfers::default();
        let connection = async {
            let transfer = transfers.begin();
            sleep(CONNECTION_TIME_MAX * 5).await;
            drop(transfer);
            sleep(CONNECTION_TIME_MAX * 5).await;
        };
        transfers.wait_for(connection).await;
        let lasted = begun.elapsed();
        assert!(lasted >= CONNECTION_TIME_MAX * 5 && lasted <= CONNECTION_TIME_MAX * 6, "{lasted:?}");
        let begun = Instant::now();
        Transfers::default().wait_for(sleep(CONNECTION_TIME_MAX * 5)).await;
        assert_eq!(begun.elapsed(), CONNECTION_TIME_MAX);
    }
}
