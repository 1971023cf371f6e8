//! TLS: who we are, how we speak, and what a handshake may cost.
//!
//! Everything that a configuration says is compiled into one [`Tls`], which a reload replaces
//! whole; connections keep the one they began with. Keys stay inside `rustls` and are never
//! printed.

mod handshakes;
mod identity;
mod session;
mod shown;

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{
    NoClientAuth, NoServerSessionStorage, ProducesTickets, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::version::{TLS12, TLS13};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use tokio::sync::watch;

use plan::listeners::ClientCertificates;
use plan::tls::TlsPlan;

pub(crate) use handshakes::Handshakes;
use identity::{AskedName, Identities};
pub(crate) use session::{SEALED_OCTETS_MAX, Session, Trust};
pub(crate) use shown::ShownCertificate;

/// How DNS over TLS is called in a handshake (IANA's registry of ALPN protocol IDs).
const ALPN_DOT: &[u8] = b"dot";
/// The versions of HTTP over connections, the better one first (RFC 7301, RFC 9113 §3.1).
const ALPN_HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What is demanded of clients in a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    Nothing,
    Optional,
    Required,
    /// A certificate of whatever origin.
    Any,
}

impl Demand {
    const ALL: [Self; 4] = [Self::Nothing, Self::Optional, Self::Required, Self::Any];
}

/// The keys of session tickets, which all workers and configurations share, so that a client can
/// resume on any of them. A new key is made every six hours, and the one before is still read.
///
/// Who resumes is not asked for a certificate again: a ticket is worth nothing where more is
/// demanded than where it was given, because there the keys are others.
#[derive(Clone)]
struct TicketKeys([Arc<dyn ProducesTickets>; 4]);

impl TicketKeys {
    /// Makes keys.
    fn new() -> Result<Self, rustls::Error> {
        let new = aws_lc_rs::Ticketer::new;
        Ok(Self([new()?, new()?, new()?, new()?]))
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys(…)")
    }
}

/// How we speak TLS.
pub struct Tls {
    plan: Arc<TlsPlan>,
    identities: Arc<Identities>,
    tickets: TicketKeys,
    /// Complete but for the protocols and who looks for the certificate. Without authorities that
    /// sign for clients, those that need them are not there.
    configs: [Option<ServerConfig>; 4],
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("identities", &self.identities).finish_non_exhaustive()
    }
}

impl Tls {
    /// Prepares a plan. Clients that hold tickets of `previous` can resume, unless other
    /// authorities sign the certificates of clients now: who resumes is not asked for one again.
    pub fn new(plan: &Arc<TlsPlan>, previous: Option<&Self>) -> Result<Self, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let identities = Arc::new(Identities::new(plan)?);
        let previous = previous.filter(|previous| previous.plan.client_roots == plan.client_roots);
        let tickets = previous.map_or_else(TicketKeys::new, |previous| Ok(previous.tickets.clone()))?;
        let versions: &[_] = if plan.speaks_tls12 { &[&TLS13, &TLS12] } else { &[&TLS13] };
        let mut configs = [const { None }; 4];
        for ((demand, ticketer), place) in Demand::ALL.into_iter().zip(&tickets.0).zip(&mut configs) {
            let Some(verifier) = verifier(&provider, &plan.client_roots, demand)? else { continue };
            let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_protocol_versions(versions)?
                .with_client_cert_verifier(verifier)
                .with_cert_resolver(Arc::clone(&identities) as _);
            config.ticketer = Arc::clone(ticketer);
            // Tickets say everything; a table of sessions would be one more thing that strangers
            // fill.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            *place = Some(config);
        }
        Ok(Self { plan: Arc::clone(plan), identities, tickets, configs })
    }

    /// Returns how to speak where clients show certificates or not; `None` if that is not possible:
    /// they have to show one, and nobody signs for them.
    fn config_for(&self, certificates: ClientCertificates) -> Option<&ServerConfig> {
        let [nothing, optional, required, any] = &self.configs;
        match certificates {
            ClientCertificates::Never => nothing.as_ref(),
            ClientCertificates::Optional => optional.as_ref(),
            ClientCertificates::Required => required.as_ref(),
            ClientCertificates::ByRoots => required.as_ref().or(nothing.as_ref()),
            ClientCertificates::Any => any.as_ref(),
        }
    }

    /// Returns how to speak with clients of some protocols.
    fn config(
        &self,
        certificates: ClientCertificates,
        protocols: &[&[u8]],
        resolver: Option<Arc<dyn ResolvesServerCert>>,
    ) -> Option<Arc<ServerConfig>> {
        let mut config = self.config_for(certificates)?.clone();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        if let Some(resolver) = resolver {
            config.cert_resolver = resolver;
        }
        Some(Arc::new(config))
    }
}

/// Returns what checks the certificates of clients; `None` if some are demanded and nobody signs
/// them.
fn verifier(
    provider: &Arc<CryptoProvider>,
    roots: &[CertificateDer<'static>],
    demand: Demand,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, rustls::Error> {
    if demand == Demand::Nothing {
        return Ok(Some(Arc::new(NoClientAuth)));
    }
    if demand == Demand::Any {
        return Ok(Some(Arc::new(AnyCertificate(provider.signature_verification_algorithms))));
    }
    if roots.is_empty() {
        return Ok(None);
    }
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone())?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
    let builder = match demand {
        Demand::Nothing | Demand::Required | Demand::Any => builder,
        Demand::Optional => builder.allow_unauthenticated(),
    };
    let built = builder.build().map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(Some(built))
}

/// Asks clients for certificates and takes what they show: that they have its key is all that it
/// proves, so nothing but the key may be looked at.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
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

    /// Prepares a plan to be published here, so that clients that hold tickets can resume.
    ///
    /// # Errors
    ///
    /// The TLS library refuses the plan.
    pub fn prepare(&self, plan: Option<&Arc<TlsPlan>>) -> Result<Option<Arc<Tls>>, rustls::Error> {
        let current = self.load();
        let Some(plan) = plan else { return Ok(None) };
        match current {
            Some(current) if Arc::ptr_eq(&current.plan, plan) => Ok(Some(current)),
            current => Ok(Some(Arc::new(Tls::new(plan, current.as_deref())?))),
        }
    }

    /// Replaces the content for connections that begin from now on.
    pub fn publish(&self, tls: Option<Arc<Tls>>) {
        self.0.send_if_modified(|known| {
            let is_same = match (&*known, &tls) {
                (Some(known), Some(tls)) => Arc::ptr_eq(known, tls),
                (None, None) => true,
                _ => false,
            };
            *known = tls;
            !is_same
        });
    }

    /// Returns the content.
    pub fn load(&self) -> Option<Arc<Tls>> {
        self.0.borrow().clone()
    }
}

/// How a listener's clients are spoken with, made when the first of them comes.
struct AcceptConfigs {
    certificates: ClientCertificates,
    dot: Option<Arc<ServerConfig>>,
    https: Option<Arc<ServerConfig>>,
}

/// Returns how to ask for certificates where what they say is looked at: not for whatever there may
/// be.
const fn vouched(certificates: ClientCertificates) -> ClientCertificates {
    match certificates {
        ClientCertificates::Any => ClientCertificates::Never,
        vouched => vouched,
    }
}

/// Begins one worker's sessions.
pub(crate) struct TlsAcceptor {
    cell: Arc<TlsCell>,
    changes: watch::Receiver<Option<Arc<Tls>>>,
    /// At most one for each way to ask for certificates.
    all_configs: Vec<AcceptConfigs>,
    asked_name: Arc<AskedName>,
}

impl TlsAcceptor {
    pub(crate) fn new(cell: Arc<TlsCell>) -> Self {
        let mut changes = cell.0.subscribe();
        changes.mark_changed();
        Self { cell, changes, all_configs: Vec::new(), asked_name: Arc::default() }
    }

    /// Returns how to speak as the cell says now.
    fn accept_configs(&mut self, certificates: ClientCertificates) -> Option<&AcceptConfigs> {
        if self.changes.has_changed().unwrap_or(false) {
            self.changes.mark_unchanged();
            self.all_configs.clear();
        }
        let known =
            self.all_configs.iter().position(|accept_configs| accept_configs.certificates == certificates);
        let at = known.unwrap_or_else(|| {
            let tls = self.cell.load();
            let https = tls.as_ref().and_then(|tls| tls.config(vouched(certificates), &ALPN_HTTP, None));
            let dot = tls.and_then(|tls| {
                let resolver = self.asked_name.noting(Arc::clone(&tls.identities));
                tls.config(certificates, &[ALPN_DOT], Some(resolver))
            });
            self.all_configs.push(AcceptConfigs { certificates, dot, https });
            self.all_configs.len() - 1
        });
        self.all_configs.get(at)
    }

    /// Returns how to speak with clients over QUIC; `None` when there is no certificate.
    pub(crate) fn quic(
        &self,
        certificates: ClientCertificates,
        protocols: &[&[u8]],
    ) -> Option<Arc<ServerConfig>> {
        self.cell.load()?.config(vouched(certificates), protocols, None)
    }

    /// Returns what tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<Arc<Tls>>> {
        self.cell.0.subscribe()
    }

    /// Returns how to speak with clients that speak HTTP; `None` when there is no certificate.
    pub(crate) fn https(&mut self, certificates: ClientCertificates) -> Option<Arc<ServerConfig>> {
        self.accept_configs(certificates)?.https.clone()
    }

    /// Begins a session with a client that speaks DNS over TLS; `None` when there is no
    /// certificate.
    pub(crate) fn begin(&mut self, certificates: ClientCertificates) -> Option<Session> {
        let config = Arc::clone(self.accept_configs(certificates)?.dot.as_ref()?);
        let trust = match certificates {
            ClientCertificates::Any => Trust::Nothing,
            _ => Trust::Vouched,
        };
        Session::new(config, Arc::clone(&self.asked_name), trust).ok()
    }
}
