//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Encryption without authentication, where a server has it (RFC 9539): found out beside the
//! queries that clients wait for, and used once it is known to work.
//!
//! Nobody proves who he is: it keeps those out who only listen. Whoever can do more than that could
//! answer in plain text as well.

use std::net::SocketAddr;

use cache::servers::Encryption;
use timers::{Moment, Span};

use super::links::Link;
use super::network::{Carrier, PoolNetwork};
use super::{Authorities, Unanswered, ms};

/// Seconds for which a server that had encryption is taken to have it (RFC 9539 §4.3: persistence).
const PERSISTENCE_SECONDS: u32 = 3 * 24 * 60 * 60;
/// Seconds for which one that had none is not asked again whether it has (damping).
const DAMPING_SECONDS: u32 = 24 * 60 * 60;
/// Time for a reply over an encrypted connection, the handshake included, before the server is
/// asked in plain text (timeout).
const PATIENCE: Span = Span::from_ms(4000);
/// Connections that are opened to find out whether servers have encryption, at once: what clients
/// wait for has room besides.
const PROBES_MAX: usize = 16;

/// How servers are asked that have encryption (RFC 9539).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encrypt {
    /// Whether they are asked over TLS.
    pub tls: bool,
    /// Whether they are asked over QUIC.
    pub quic: bool,
    /// The port for both.
    pub port: u16,
}

impl Encrypt {
    /// Returns whether nothing is encrypted.
    pub const fn is_off(self) -> bool {
        !self.tls && !self.quic
    }

    /// Returns what may carry queries, the better first: QUIC loses nothing behind what was lost.
    fn carriers(self) -> impl Iterator<Item = Carrier> {
        let quic = self.quic.then_some(Carrier::Quic);
        quic.into_iter().chain(self.tls.then_some(Carrier::Tls))
    }
}

impl<N: PoolNetwork> Authorities<N> {
    /// Returns what a query is sent over, if its server is known to have encryption. Where that is
    /// not known, it is being found out from now on.
    pub(super) fn encrypted_carrier(&mut self, slot: u32, now: Moment) -> Option<Carrier> {
        let query = self.queries.get(slot as usize)?;
        let (address, encrypt) = (query.address, query.encrypt);
        if encrypt.is_off() {
            return None;
        }
        let facts = self.servers.look(address, ms(now));
        let state = |carrier| match (facts, carrier) {
            (Some(facts), Carrier::Tls) => facts.tls,
            (Some(facts), Carrier::Quic) => facts.quic,
            (None, _) | (_, Carrier::Tcp) => Encryption::Unknown,
        };
        if let Some(works) = encrypt.carriers().find(|&carrier| state(carrier) == Encryption::Works) {
            return Some(works);
        }
        for carrier in encrypt.carriers().filter(|&carrier| state(carrier) == Encryption::Unknown) {
            self.probe(address, (carrier, encrypt.port), now);
        }
        None
    }

    /// Finds out whether a server has encryption, unless that is being found out.
    fn probe(&mut self, address: SocketAddr, carrier: (Carrier, u16), now: Moment) {
        let is_probe = |link: &Link| link.carrier.is_encrypted() && !link.is_open;
        let probes = self.links.iter().filter(|(_, link)| is_probe(link));
        let is_known = |link: &Link| link.address == address && link.carrier == carrier.0;
        if self.links.iter().any(|(_, link)| is_known(link))
            || probes.count() >= PROBES_MAX
            || self.links.len() >= usize::from(self.limits.links)
        {
            return;
        }
        if self.open_link(address, carrier, now).is_some() {
            self.counters.encryption_probes.bump();
        }
    }

    /// Sends a query over an encrypted connection.
    pub(super) fn send_encrypted(
        &mut self,
        slot: u32,
        carrier: Carrier,
        now: Moment,
    ) -> Result<(), Unanswered> {
        let query = self.queries.get_mut(slot as usize).ok_or(Unanswered::NotSent)?;
        let is_first = query.tried.encrypted.replace(carrier).is_none();
        let port = query.encrypt.port;
        self.send_on_link(slot, (carrier, port), now)?;
        self.counters.sent_encrypted.bump();
        self.set_deadline(slot, now + PATIENCE, is_first);
        Ok(())
    }

    /// Goes on in plain text with a query that had no reply over an encrypted connection; returns
    /// whether it was there.
    pub(super) fn leave_encryption(&mut self, slot: u32, why: Unanswered, now: Moment) -> bool {
        let Some(query) = self.queries.get_mut(slot as usize) else { return false };
        let Some(carrier) = query.tried.encrypted.take() else { return false };
        let address = query.address;
        query.tried.relinked = false;
        if why != Unanswered::NotSent {
            self.encryption_failed(address, carrier, now);
        }
        self.withdraw(slot, true);
        if let Some(query) = self.queries.get_mut(slot as usize) {
            self.wheel.cancel(query.timer);
            query.timer = timers::TimerKey::NONE;
        }
        if let Err(why) = self.send_datagram(slot, now) {
            self.fail(slot, why);
        }
        true
    }

    /// Notes that a server has encryption.
    pub(super) fn encryption_works(&mut self, address: SocketAddr, carrier: Carrier, now: Moment) {
        self.note_encryption(address, carrier, (Encryption::Works, PERSISTENCE_SECONDS), now);
    }

    /// Notes that it has none, or none that answers.
    pub(super) fn encryption_failed(&mut self, address: SocketAddr, carrier: Carrier, now: Moment) {
        self.note_encryption(address, carrier, (Encryption::Refused, DAMPING_SECONDS), now);
    }

    fn note_encryption(
        &self,
        address: SocketAddr,
        carrier: Carrier,
        (state, seconds): (Encryption, u32),
        now: Moment,
    ) {
        match carrier {
            Carrier::Tcp => {}
            Carrier::Tls => self.servers.record_tls(address, state, ms(now), seconds),
            Carrier::Quic => self.servers.record_quic(address, state, ms(now), seconds),
        }
    }
}
