//! Begins sessions: one worker's view of how TLS is spoken now.

use std::sync::Arc;

use plan::listeners::ClientCertificates;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::sync::watch;

use super::challenges::ChallengeResolver;
use super::identity::AskedName;
use super::{ALPN_CHALLENGE, Session, Tls, TlsCell, Trust};

/// How DNS over TLS is called in a handshake (IANA's registry of ALPN protocol IDs).
const ALPN_DOT: &[u8] = b"dot";
/// The versions of HTTP over connections, the better one first (RFC 7301, RFC 9113 §3.1).
const ALPN_HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

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
        let mut changes = cell.tls.subscribe();
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
            let https =
                tls.as_ref().and_then(|tls| self.config(tls, vouched(certificates), &ALPN_HTTP, None));
            let dot = tls.as_ref().and_then(|tls| {
                let resolver = self.asked_name.noting(Arc::clone(&tls.identities));
                self.config(tls, certificates, &[ALPN_DOT], Some(resolver))
            });
            self.all_configs.push(AcceptConfigs { certificates, dot, https });
            self.all_configs.len() - 1
        });
        self.all_configs.get(at)
    }

    /// Returns how to speak with clients over TCP, and with authorities as long as one looks for
    /// something.
    fn config(
        &self,
        tls: &Tls,
        certificates: ClientCertificates,
        protocols: &[&[u8]],
        resolver: Option<Arc<dyn ResolvesServerCert>>,
    ) -> Option<Arc<ServerConfig>> {
        let challenges = self.cell.challenges();
        if !challenges.has_certificates() {
            return tls.config(certificates, protocols, resolver);
        }
        let protocols = [protocols, &[ALPN_CHALLENGE]].concat();
        let otherwise = resolver.unwrap_or_else(|| Arc::clone(&tls.identities) as _);
        let resolver = ChallengeResolver::new(challenges, otherwise);
        tls.config(certificates, &protocols, Some(Arc::new(resolver)))
    }

    /// Returns the text of the file that an authority looks for.
    pub(crate) fn challenge(&self, token: &str) -> Option<String> {
        self.cell.challenges().file(token).map(str::to_owned)
    }

    /// Returns how to speak with clients over QUIC; `None` when there is no certificate.
    pub(crate) fn quic(
        &self,
        certificates: ClientCertificates,
        protocols: &[&[u8]],
    ) -> Option<Arc<ServerConfig>> {
        self.cell.load()?.config(vouched(certificates), protocols, None)
    }

    /// Returns the channel of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<Arc<Tls>>> {
        self.cell.tls.subscribe()
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
