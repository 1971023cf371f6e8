//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Copies of clients' messages, for dnstap.

use dnstap::{Kind, Peer, Protocol, TapWriter, Tapped};

use crate::answer::reply::Reply;
use crate::observe::trace::{NoTrace, Tracer};
use crate::run::suspended::Suspended;
use crate::{Engine, Verdict};
use clients::client::{Client, Transport};

impl Engine {
    /// Copies messages into this ring from now on, while the snapshot says that they are wanted.
    #[must_use]
    pub fn with_tap(mut self, writer: TapWriter) -> Self {
        self.tap = Some(writer);
        self
    }

    /// Answers a query as [`Engine::answer`] does, and copies it and its reply.
    #[inline(never)]
    pub(crate) fn answer_tapped(&mut self, query: &[u8], client: &Client, reply: &mut Reply<'_>) -> Verdict {
        let now_us = self.state.now.monotonic_us();
        self.tap(Kind::ClientQuery, client, query, None);
        let verdict = if self.snapshot.keeps_path {
            self.answer_noting_path(query, client, reply)
        } else {
            // The interpreter of `explain`: one more would make the usual one larger.
            let nobody: &mut dyn Tracer = &mut NoTrace;
            self.answer_watched(query, client, reply, nobody)
        };
        if matches!(verdict, Verdict::Answered) {
            self.tap(Kind::ClientResponse, client, reply.bytes(), Some(now_us));
        }
        verdict
    }

    /// Copies the reply to a query that waited.
    pub(crate) fn tap_late(&mut self, suspended: &Suspended, reply: &Reply<'_>) {
        if self.snapshot.taps_clients && !reply.is_empty() {
            self.tap(Kind::ClientResponse, &suspended.client, reply.bytes(), Some(suspended.began_us));
        }
    }

    fn tap(&mut self, kind: Kind, client: &Client, octets: &[u8], query_at_us: Option<u64>) {
        let Some(writer) = self.tap.as_mut().filter(|writer| writer.wants(kind)) else { return };
        let at_us = self.state.now.monotonic_us();
        let listener = client.listener.0;
        writer.write(&Tapped { kind, peer: peer(client), listener, at_us, query_at_us, octets });
    }
}

fn peer(client: &Client) -> Peer {
    let protocol = match client.transport {
        Transport::Udp => Protocol::Udp,
        Transport::Tcp | Transport::Unix => Protocol::Tcp,
        Transport::Tls => Protocol::Tls,
        Transport::Https | Transport::H3 => Protocol::Https,
        Transport::Quic => Protocol::Quic,
    };
    let is_local = client.transport == Transport::Unix;
    Peer { address: (!is_local).then(|| (client.address, client.port).into()), protocol }
}
