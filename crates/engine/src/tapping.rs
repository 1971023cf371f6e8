//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Copies of clients' messages, for dnstap, and what is counted of them in detail.

use std::sync::Arc;

use dnstap::{Kind, Peer, Protocol, TapWriter, Tapped};

use crate::answer::Security;
use crate::answer::reply::Reply;
use crate::observe::trace::{Tracer, Validation};
use crate::query::details::Details;
use crate::run::suspended::Suspended;
use crate::{Engine, Verdict};
use clients::client::{Client, Transport};
use events::Path;

impl Engine {
    /// Copies messages into this ring from now on, while the snapshot says that they are wanted.
    #[must_use]
    pub fn with_tap(mut self, writer: TapWriter) -> Self {
        self.tap = Some(writer);
        self
    }

    /// Counts queries and replies here in detail from now on, while the snapshot says that it is
    /// wanted.
    #[must_use]
    pub fn with_details(mut self, details: Arc<Details>) -> Self {
        self.details = Some(details);
        self
    }

    /// Answers a query as [`Engine::answer`] does, and copies and counts it and its reply.
    #[inline(never)]
    pub(crate) fn answer_tapped(&mut self, query: &[u8], client: &Client, reply: &mut Reply<'_>) -> Verdict {
        let now_us = self.state.now.monotonic_us();
        let (taps, counts) = (self.snapshot.taps_clients, self.snapshot.counts_details);
        if taps {
            self.tap(Kind::ClientQuery, client, query, None);
        }
        if counts && let Some(details) = &self.details {
            details.query(query, client);
        }
        let (verdict, security) = if self.snapshot.keeps_path {
            let mut path = Path::default();
            let verdict = self.answer_noting_path(query, client, reply, &mut path);
            (verdict, path.security())
        } else {
            let mut validation = Validation::default();
            // The interpreter of `explain`: one more would make the usual one larger.
            let nobody: &mut dyn Tracer = &mut validation;
            let verdict = self.answer_watched(query, client, reply, nobody);
            (verdict, validation.0)
        };
        if matches!(verdict, Verdict::Answered) {
            if taps {
                self.tap(Kind::ClientResponse, client, reply.bytes(), Some(now_us));
            }
            if counts && let Some(details) = &self.details {
                details.reply(reply.bytes(), security);
            }
        }
        verdict
    }

    /// Copies and counts the reply to a query that waited.
    pub(crate) fn tap_late(&mut self, suspended: &Suspended, security: Security, reply: &Reply<'_>) {
        if reply.is_empty() {
            return;
        }
        if self.snapshot.taps_clients {
            self.tap(Kind::ClientResponse, &suspended.client, reply.bytes(), Some(suspended.began_us));
        }
        if self.snapshot.counts_details
            && let Some(details) = &self.details
        {
            details.reply(reply.bytes(), security);
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
        // Connections alone have a time after which they are closed.
        Transport::Dnscrypt if client.keepalive.is_some() => Protocol::DnscryptConnection,
        Transport::Dnscrypt => Protocol::Dnscrypt,
    };
    let is_local = client.transport == Transport::Unix;
    Peer { address: (!is_local).then(|| (client.address, client.port).into()), protocol }
}
