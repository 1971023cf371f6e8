//! Copies of what is sent to servers and comes back, for dnstap.

use dnstap::{Kind, Peer, Protocol, Tapped};
use plan::upstreams::Scheme;
use timers::Moment;

use crate::machine::Exchange;
use crate::machine::requests::{Attempt, Via};
use crate::network::Network;

impl<N: Network> Exchange<N> {
    /// Copies a query that leaves.
    pub(super) fn tap_query(&self, (server, via): (u32, Via), octets: &[u8], now: Moment) {
        let kind = Kind::ForwarderQuery;
        let (listener, at_us, query_at_us) = (0, now.0, None);
        self.tap.write(kind, || {
            let peer = self.peer(server, via)?;
            Some(Tapped { kind, peer, listener, at_us, query_at_us, octets })
        });
    }

    /// Copies a message that carries the ID of a query of ours, whatever is made of it.
    pub(super) fn tap_reply(&self, attempt: &Attempt, octets: &[u8], now: Moment) {
        let kind = Kind::ForwarderResponse;
        let (listener, at_us, query_at_us) = (0, now.0, Some(attempt.sent.0));
        self.tap.write(kind, || {
            let peer = self.peer(attempt.server, attempt.via)?;
            Some(Tapped { kind, peer, listener, at_us, query_at_us, octets })
        });
    }

    /// Returns who is asked, and over what.
    fn peer(&self, server: u32, via: Via) -> Option<Peer> {
        let remote = &self.servers.get(server as usize)?.remote;
        let protocol = match (remote.way().protocol.scheme(), via) {
            (Scheme::Udp, Via::Socket(_)) => Protocol::Udp,
            (Scheme::Udp, Via::Link(_)) | (Scheme::Tcp, _) => Protocol::Tcp,
            (Scheme::Tls, _) => Protocol::Tls,
            (Scheme::Https | Scheme::Https3 | Scheme::Odoh, _) => Protocol::Https,
            (Scheme::Quic, _) => Protocol::Quic,
            (Scheme::Dnscrypt, _) => Protocol::Dnscrypt,
        };
        Some(Peer { address: Some(remote.address), protocol })
    }
}
