//! What the operator says by signal.

use std::io;

use server::Order;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals we listen to. From the moment this exists they do not end the process.
pub(crate) struct Signals {
    hangup: Signal,
    dump: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen. Called within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            dump: signal(SignalKind::user_defined1())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one: SIGHUP reloads, SIGUSR1 writes the caches, SIGTERM and SIGINT end.
    /// Can be dropped at any time.
    pub(crate) async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.hangup.recv() => Order::Reload,
            _ = self.dump.recv() => Order::Dump,
            _ = self.terminate.recv() => Order::End,
            _ = self.interrupt.recv() => Order::End,
        }
    }
}
