//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Copies of what is sent to servers and comes back, for dnstap.

use dnstap::{Kind, Peer, Protocol, Tapped};
use timers::Moment;

use super::Authorities;
use super::network::{Carrier, PoolNetwork};
use super::outstanding::{Query, Via};

impl<N: PoolNetwork> Authorities<N> {
    /// Copies a query that leaves.
    pub(super) fn tap_query(&mut self, slot: u32, octets: &[u8], now: Moment) {
        let Some(query) = self.queries.get_mut(slot as usize) else { return };
        query.sent = now;
        let kind = if query.recursion_desired { Kind::ForwarderQuery } else { Kind::ResolverQuery };
        let peer = peer(query);
        let (listener, at_us, query_at_us) = (0, now.0, None);
        self.tap.write(kind, || Some(Tapped { kind, peer, listener, at_us, query_at_us, octets }));
    }

    /// Copies a message from the right place that carries the ID of a query, whatever is made of
    /// it.
    pub(super) fn tap_reply(&self, slot: u32, octets: &[u8], now: Moment) {
        let Some(query) = self.queries.get(slot as usize) else { return };
        let kind = if query.recursion_desired { Kind::ForwarderResponse } else { Kind::ResolverResponse };
        let (listener, at_us, query_at_us) = (0, now.0, Some(query.sent.0));
        self.tap
            .write(kind, || Some(Tapped { kind, peer: peer(query), listener, at_us, query_at_us, octets }));
    }
}

/// Returns who is asked, and over what.
fn peer(query: &Query) -> Peer {
    let mut address = query.address;
    let protocol = match (query.via, query.tried.encrypted) {
        (Via::Socket(_) | Via::Nothing, _) => Protocol::Udp,
        (Via::Link(_), None | Some(Carrier::Tcp)) => Protocol::Tcp,
        (Via::Link(_), Some(carrier)) => {
            address.set_port(query.encrypt.port);
            if carrier == Carrier::Tls { Protocol::Tls } else { Protocol::Quic }
        }
    };
    Peer { address: Some(address), protocol }
}
