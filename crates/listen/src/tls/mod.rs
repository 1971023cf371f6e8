//! TLS: who we are, how we speak, and what a handshake may cost.
//!
//! Everything that a configuration says is compiled into one [`Tls`], which a reload replaces
//! whole; connections keep the one they began with. Keys stay inside `rustls` and are never
//! printed.

mod acceptor;
mod challenges;
mod client_certificates;
mod handshakes;
mod identity;
mod session;
mod shown;
mod tickets;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::CipherSuite;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::version::{TLS12, TLS13};
use tokio::sync::watch;

use plan::certificates::Challenge;
use plan::listeners::ClientCertificates;
use plan::tls::TlsPlan;

pub(crate) use acceptor::TlsAcceptor;
pub(crate) use challenges::ALPN_CHALLENGE;
use challenges::Challenges;
use client_certificates::{Demand, verifier};
pub(crate) use handshakes::Handshakes;
use identity::Identities;
pub(crate) use session::{FLIGHT_OCTETS_MAX, Session, Trust, sealed_octets};
pub(crate) use shown::ShownCertificate;
use tickets::TicketKeys;

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
        let mut provider = aws_lc_rs::default_provider();
        if !plan.suites.is_empty() {
            let is_offered = |suite: CipherSuite| plan.suites.iter().any(|offered| offered.suite() == suite);
            provider.cipher_suites.retain(|suite| is_offered(suite.suite()));
        }
        let provider = Arc::new(provider);
        let identities = Arc::new(Identities::new(plan)?);
        let previous = previous.filter(|previous| {
            previous.plan.client_roots == plan.client_roots && previous.plan.ticket_keys.is_empty()
        });
        let tickets = match (plan.ticket_keys.as_slice(), previous) {
            ([], Some(previous)) => previous.tickets.clone(),
            ([], None) => TicketKeys::new()?,
            (keys, _) => TicketKeys::given(keys)?,
        };
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

    /// Returns how to speak HTTP/1.1 with operators, who show no certificates.
    pub fn for_control(&self) -> Option<Arc<ServerConfig>> {
        self.config(ClientCertificates::Never, &[b"http/1.1"], None)
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

/// Holds how TLS is spoken from now on. Workers look when a connection begins.
#[derive(Debug)]
pub struct TlsCell {
    tls: watch::Sender<Option<Arc<Tls>>>,
    /// What is answered to authorities. Held for a moment, when a handshake is prepared for or a
    /// file is asked for.
    challenges: Mutex<Arc<Challenges>>,
}

impl Default for TlsCell {
    fn default() -> Self {
        Self::new(None)
    }
}

impl TlsCell {
    /// Returns a cell with its first content.
    pub fn new(first: Option<Arc<Tls>>) -> Self {
        Self { tls: watch::Sender::new(first), challenges: Mutex::default() }
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
        self.tls.send_if_modified(|known| {
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
        self.tls.borrow().clone()
    }

    /// Answers authorities like this from now on, instead of what was answered before. Connections
    /// stay open.
    ///
    /// # Errors
    ///
    /// The TLS library refuses a key; then nothing has changed.
    pub fn answer_challenges(&self, challenges: &[Challenge]) -> Result<(), rustls::Error> {
        let challenges = Arc::new(Challenges::new(challenges)?);
        *self.challenges.lock().unwrap_or_else(PoisonError::into_inner) = challenges;
        // Workers look again how they shake hands.
        self.tls.send_modify(|_| ());
        Ok(())
    }

    /// Returns what is answered to authorities.
    fn challenges(&self) -> Arc<Challenges> {
        Arc::clone(&self.challenges.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
