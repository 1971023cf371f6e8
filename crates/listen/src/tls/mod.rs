//! TLS: who we are, how we speak, and what a handshake may cost.
//!
//! Everything that a configuration says is compiled into one [`Tls`], which a reload replaces whole; connections keep the
//! one they began with. Keys stay inside `rustls` and are never printed.

mod handshakes;
mod identity;
mod session;

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    NoClientAuth, NoServerSessionStorage, ProducesTickets, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::version::{TLS12, TLS13};
use tokio::sync::watch;

pub(crate) use handshakes::Handshakes;
use identity::{Hearing, Identities};
pub use identity::{Identity, IdentityError};
pub(crate) use session::{SEALED_OCTETS_MAX, Session};

/// How DNS over TLS is called in a handshake (IANA's registry of ALPN protocol IDs).
const ALPN_DOT: &[u8] = b"dot";
/// The versions of HTTP over connections, the better one first (RFC 7301, RFC 9113 §3.1).
const ALPN_HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The keys of session tickets, which all workers and configurations share, so that a client can resume on any of them.
/// A new key is made every six hours, and the one before is still read.
#[derive(Clone)]
pub struct TicketKeys(Arc<dyn ProducesTickets>);

impl TicketKeys {
    /// Makes keys.
    pub fn new() -> Result<Self, rustls::Error> {
        aws_lc_rs::Ticketer::new().map(Self)
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys(…)")
    }
}

/// What a configuration says about TLS.
pub struct TlsPlan {
    /// Who we are; the first is for clients that name no server, or one that nobody here is. Not empty.
    pub identities: Vec<Identity>,
    /// The keys of session tickets.
    pub tickets: TicketKeys,
    /// Whether TLS 1.2 is spoken besides TLS 1.3.
    pub speaks_tls12: bool,
    /// Who signs the certificates of clients; if anybody, clients must have one.
    pub client_roots: Vec<CertificateDer<'static>>,
}

/// How we speak TLS.
pub struct Tls {
    identities: Arc<Identities>,
    /// Complete but for the protocols and who looks for the certificate.
    config: ServerConfig,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("identities", &self.identities).finish_non_exhaustive()
    }
}

impl Tls {
    /// Compiles a plan.
    pub fn new(plan: TlsPlan) -> Result<Self, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let identities = Arc::new(Identities::new(plan.identities));
        let versions: &[_] = if plan.speaks_tls12 { &[&TLS13, &TLS12] } else { &[&TLS13] };
        let verifier = verifier(&provider, plan.client_roots)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::clone(&identities) as _);
        config.ticketer = plan.tickets.0;
        // Tickets say everything; a table of sessions would be one more thing that strangers fill.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Self { identities, config })
    }

    /// Returns how to speak with clients of some protocols.
    fn config(
        &self,
        protocols: &[&[u8]],
        resolver: Option<Arc<dyn ResolvesServerCert>>,
    ) -> Arc<ServerConfig> {
        let mut config = self.config.clone();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        if let Some(resolver) = resolver {
            config.cert_resolver = resolver;
        }
        Arc::new(config)
    }
}

fn verifier(
    provider: &Arc<CryptoProvider>,
    roots: Vec<CertificateDer<'static>>,
) -> Result<Arc<dyn ClientCertVerifier>, rustls::Error> {
    if roots.is_empty() {
        return Ok(Arc::new(NoClientAuth));
    }
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root)?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))
}

/// Turns a private key into what signs with it.
fn signer(key: &PrivateKeyDer<'static>) -> Result<Arc<dyn rustls::sign::SigningKey>, rustls::Error> {
    aws_lc_rs::sign::any_supported_type(key)
}

/// Holds how TLS is spoken from now on. Workers look when a connection begins.
#[derive(Debug)]
pub struct TlsCell(watch::Sender<Option<Arc<Tls>>>);

impl Default for TlsCell {
    fn default() -> Self {
        Self::new(None)
    }
}

impl TlsCell {
    /// Returns a cell with its first content.
    pub fn new(first: Option<Arc<Tls>>) -> Self {
        Self(watch::Sender::new(first))
    }

    /// Replaces the content for connections that begin from now on.
    pub fn publish(&self, tls: Option<Arc<Tls>>) {
        self.0.send_replace(tls);
    }

    fn load(&self) -> Option<Arc<Tls>> {
        self.0.borrow().clone()
    }
}

/// Begins one worker's sessions.
pub(crate) struct Doorman {
    cell: Arc<TlsCell>,
    changes: watch::Receiver<Option<Arc<Tls>>>,
    dot: Option<Arc<ServerConfig>>,
    https: Option<Arc<ServerConfig>>,
    hearing: Arc<Hearing>,
}

impl Doorman {
    pub(crate) fn new(cell: Arc<TlsCell>) -> Self {
        let mut changes = cell.0.subscribe();
        changes.mark_changed();
        Self { cell, changes, dot: None, https: None, hearing: Arc::default() }
    }

    /// Adopts what the cell holds now.
    fn adopt(&mut self) {
        if !self.changes.has_changed().unwrap_or(false) {
            return;
        }
        self.changes.mark_unchanged();
        let tls = self.cell.load();
        self.https = tls.as_ref().map(|tls| tls.config(&ALPN_HTTP, None));
        self.dot = tls.map(|tls| {
            let resolver = self.hearing.listening(Arc::clone(&tls.identities));
            tls.config(&[ALPN_DOT], Some(resolver))
        });
    }

    /// Returns how to speak with clients over QUIC; `None` when there is no certificate.
    pub(crate) fn quic(&self, protocols: &[&[u8]]) -> Option<Arc<ServerConfig>> {
        self.cell.load().map(|tls| tls.config(protocols, None))
    }

    /// Returns what tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<Arc<Tls>>> {
        self.cell.0.subscribe()
    }

    /// Returns how to speak with clients that speak HTTP; `None` when there is no certificate.
    pub(crate) fn https(&mut self) -> Option<Arc<ServerConfig>> {
        self.adopt();
        self.https.clone()
    }

    /// Begins a session with a client that speaks DNS over TLS; `None` when there is no certificate.
    pub(crate) fn begin(&mut self) -> Option<Session> {
        self.adopt();
        let config = self.dot.as_ref()?;
        Session::new(Arc::clone(config), Arc::clone(&self.hearing)).ok()
    }
}
