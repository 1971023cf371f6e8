//! Whom queries are forwarded to, and how: what every worker adopts.

mod limits;
mod outgoing;
mod pools;
mod providers;
mod servers;
mod target;

use std::sync::Arc;

pub use limits::{DISTANCES_MAX, Limits, SOCKETS_MAX, Shed, WaitNetwork};
pub use outgoing::{Outgoing, Ports, SERVER_OPTION_OCTETS_MAX, ServerOptions, address_in};
pub use pools::{Hedge, Patience, Pick, PoolPlan, RcodeSet};
pub use providers::{DnscryptPlan, OdohPlan};
pub use servers::{
    Bind, CONNECTIONS_MAX, Connections, HttpPlan, Login, Protocol, Proxy, Scheme, ServerPlan, Way,
};
pub use target::Target;

/// Addresses of a name that count, of both families; most names have fewer.
const ADDRESSES_PER_NAME: usize = 4;

/// Everything that forwarding needs to know; replaced whole on a reload.
#[derive(Clone, PartialEq, Default)]
pub struct Plan {
    /// The upstream groups.
    pub pools: Vec<PoolPlan>,
    /// What one worker may hold.
    pub limits: Limits,
    /// Networks whose clients may hold other numbers of replies, the longest prefix first.
    pub wait_networks: Arc<[WaitNetwork]>,
}

impl Plan {
    /// Descriptors that one worker may hold at once for asking upstreams as planned: sockets,
    /// connections, measurements.
    ///
    /// An upper bound: UDP ports are only open while queries leave through them.
    pub fn descriptors_max(&self) -> usize {
        let mut addresses = 0;
        let (mut sockets, mut connections) = (0, 0);
        for pool in &self.pools {
            for server in &pool.servers {
                let count = match server.target {
                    Target::Address(_) => 1,
                    Target::Name { .. } => ADDRESSES_PER_NAME,
                };
                addresses += count;
                connections += count * usize::from(server.way.connections.max).clamp(1, CONNECTIONS_MAX);
                if !server.way.is_connected() {
                    sockets += count * SOCKETS_MAX;
                }
            }
            addresses += pool.bootstrap.len();
            sockets += pool.bootstrap.len() * SOCKETS_MAX;
            connections += pool.bootstrap.len() * usize::from(Connections::default().max);
        }
        let Limits { sockets_max, connections_max, .. } = self.limits;
        // Each address may always have one of both. A connection may need two: DNSCrypt and SOCKS5
        // have datagrams and TCP.
        let sockets = sockets.min(sockets_max as usize + addresses);
        let connections = 2 * connections.min(connections_max as usize + addresses);
        sockets + connections + DISTANCES_MAX
    }
}
