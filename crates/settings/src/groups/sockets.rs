//! Sockets.

use std::sync::Arc;
use std::time::Duration;

use plan::listeners::SocketOptions;
use plan::upstreams::Outgoing;

/// Sockets of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// Octets of queries that the kernel may hold.
    pub receive_buffer: u64,
    /// Octets of replies that it may hold.
    pub send_buffer: u64,
    /// How long a query may have waited there; `None`: as long as it likes.
    pub queue_timeout: Option<Duration>,
    /// What it is told besides.
    pub options: SocketOptions,
}

/// Sockets to other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingSettings {
    /// What they are bound to.
    pub bound: Arc<Outgoing>,
    /// Connections that one worker may have for resolvers.
    pub connections: u16,
}
