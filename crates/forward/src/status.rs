//! How fetching is doing, as plain data for whoever shows it.

use std::net::SocketAddr;

pub use exchange::server::Tally;
use plan::upstreams::Scheme;

/// One worker's view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Every upstream of every pool, in the pools' order.
    pub upstreams: Vec<UpstreamStatus>,
    /// Fetches that clients wait for.
    pub fetching: u32,
    /// Queries waiting for them.
    pub waiting: u32,
    /// UDP sockets open.
    pub sockets: u32,
    /// TCP connections open or opening.
    pub connections: u32,
}

/// One upstream in one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// The pool's name.
    pub pool: String,
    /// Where it is.
    pub address: SocketAddr,
    /// How it is asked.
    pub protocol: Scheme,
    /// Whether it is in use.
    pub state: UpstreamState,
    /// Smoothed round-trip time in microseconds, if measured.
    pub srtt_us: Option<u64>,
    /// Its mean deviation in microseconds.
    pub rttvar_us: u64,
    /// Silence after which a query is sent again, in milliseconds.
    pub retry_after_ms: u64,
    /// Queries on the wire.
    pub outstanding: u32,
    /// Why the last connection to it could not be made; gone when one was.
    pub trouble: Option<String>,
    /// What was counted.
    pub tally: Tally,
}

/// Whether an upstream is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamState {
    /// It is.
    Up,
    /// It is asked only when all others are down, and probed.
    Down {
        /// For how long, in milliseconds.
        for_ms: u64,
    },
}
