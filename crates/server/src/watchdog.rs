//! The watchdog of systemd: it is notified while all workers run.

use crate::systemd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

/// Beats within the time in which systemd wants to hear of us: it is told twice in that, and each
/// time every heart must have beaten.
const BEATS: u32 = 5;

/// Returns ticks at this pace. Those that were missed while the machine slept or its clocks jumped
/// are left out: a month of them would keep a processor busy for seconds.
#[expect(clippy::disallowed_methods, reason = "this is where missed ticks are left out")]
pub(crate) fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// The heartbeat of one worker. It beats on the worker's own runtime and stops when that is stuck.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// Beats until dropped, if somebody listens: an idle worker is not woken for nothing.
    pub(crate) async fn beat(self) {
        let Some(time) = systemd::watchdog() else { return std::future::pending().await };
        self.beat_every((time / BEATS).max(Duration::from_millis(1))).await;
    }

    async fn beat_every(self, every: Duration) {
        let mut ticks = ticks(every);
        loop {
            ticks.tick().await;
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Watches the heartbeats of all workers.
#[derive(Debug)]
pub(crate) struct Watchdog {
    heartbeats: Vec<(Heartbeat, u64)>,
}

impl Watchdog {
    /// Returns a watchdog over `heartbeats`.
    pub(crate) fn new(heartbeats: Vec<Heartbeat>) -> Self {
        Self { heartbeats: heartbeats.into_iter().map(|heartbeat| (heartbeat, 0)).collect() }
    }

    /// Returns whether every worker has beaten since the last call.
    pub(crate) fn are_all_alive(&mut self) -> bool {
        let mut are_alive = true;
        for (heartbeat, seen) in &mut self.heartbeats {
            let beats = heartbeat.0.load(Ordering::Relaxed);
            are_alive &= beats != *seen;
            *seen = beats;
        }
        are_alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_a_month_is_one_beat() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let heartbeat = Heartbeat::default();
            let beats = || heartbeat.0.load(Ordering::Relaxed);
            let beating = heartbeat.clone().beat_every(Duration::from_secs(1));
            tokio::pin!(beating);
            let mut pass = async |time| {
                tokio::time::advance(time).await;
                let moment = tokio::time::sleep(Duration::ZERO);
                tokio::select! { biased; () = &mut beating => {}, () = moment => {} }
            };
            pass(Duration::ZERO).await;
            assert_eq!(beats(), 1);
            pass(Duration::from_secs(30 * 86_400)).await;
            assert_eq!(beats(), 2);
            pass(Duration::from_secs(1)).await;
            assert_eq!(beats(), 3, "then at the pace of before");
        });
    }

    #[test]
    fn one_silent_heart_is_noticed() {
        let heartbeats = [Heartbeat::default(), Heartbeat::default()];
        let mut watchdog = Watchdog::new(heartbeats.to_vec());
        let beat = |index: usize| heartbeats[index].0.fetch_add(1, Ordering::Relaxed);
        beat(0);
        beat(1);
        assert!(watchdog.are_all_alive());
        beat(0);
        assert!(!watchdog.are_all_alive());
    }
}
