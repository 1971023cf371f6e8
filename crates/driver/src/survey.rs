//! How long it takes to connect to addresses that answers name, measured behind the queries' backs.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Weak;
use std::time::{Duration, Instant};

use engine::ops::quickest::Probe;
use plan::upstreams::DISTANCES_MAX;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::driver::Driver;

/// Measurements under way; they end when this is dropped.
#[derive(Default)]
pub(crate) struct Survey {
    tasks: RefCell<JoinSet<()>>,
}

impl Survey {
    /// Returns whether one more may begin.
    pub(crate) fn has_room(&self) -> bool {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.len() < DISTANCES_MAX
    }

    /// Begins a measurement; the driver hears of its end.
    pub(crate) fn begin(&self, probe: Probe, driver: Weak<Driver>) {
        self.tasks.borrow_mut().spawn_local(async move {
            let micros = measure(&probe).await;
            if let Some(driver) = driver.upgrade() {
                driver.measured(&probe, micros);
            }
        });
    }
}

/// Connects to one port after the other until one connects; says how many microseconds that took.
async fn measure(probe: &Probe) -> Option<u32> {
    let patience = Duration::from_millis(u64::from(probe.how.timeout_ms));
    for port in probe.how.ports.into_iter().filter(|&port| port != 0) {
        let begun = Instant::now();
        let connected = TcpStream::connect(SocketAddr::new(probe.address, port));
        if let Ok(Ok(_)) = tokio::time::timeout(patience, connected).await {
            return Some(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX - 2));
        }
    }
    None
}
