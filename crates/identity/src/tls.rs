//! TLS as a client: the identity that an upstream must prove before it is sent anything.
//!
//! Never sends a query to a server that has not proved what was demanded of it.

mod certificate;
mod explain;
mod verifier;

use std::sync::Arc;

use plan::tls::ClientTls;
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;

use self::verifier::Verifier;
use crate::last_errors::LastErrors;
use crate::registry::{Interned, Registry};

pub use explain::{explain, span};

/// TLS to servers of one plan, for all workers: it remembers sessions, and what was last wrong.
pub struct Client {
    /// What servers must prove.
    pub plan: ClientTls,
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    last_errors: LastErrors,
}

/// Returns what takes any certificate, because the operator says so; what servers sign with it must
/// be right all the same.
pub fn anybody(provider: Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(Verifier::anybody(provider))
}

impl Interned for Client {
    type Plan = ClientTls;

    fn plan(&self) -> &ClientTls {
        &self.plan
    }

    fn new(plan: &ClientTls, _: &Registry) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = Arc::new(Verifier::new(plan, Arc::clone(&provider)));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the library's own provider has what its own versions need");
        let demand: Arc<dyn ServerCertVerifier> = Arc::<Verifier>::clone(&verifier);
        let builder = builder.dangerous().with_custom_certificate_verifier(demand);
        let mut config = match &plan.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain().to_vec(), identity.key().clone_key())
                .expect("an identity is a certificate and its key"),
        };
        config.alpn_protocols.clone_from(&plan.protocols);
        config.enable_sni = plan.sends_name;
        config.enable_early_data = plan.early_data;
        Self { plan: plan.clone(), config: Arc::new(config), verifier, last_errors: LastErrors::default() }
    }
}

impl Client {
    /// Returns the settings of connections, sessions among them.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Returns what was last wrong with it.
    pub fn last_errors(&self) -> &LastErrors {
        &self.last_errors
    }

    /// Returns why a certificate was last refused, where the transport does not pass that on.
    pub fn last_refusal(&self) -> Option<String> {
        self.verifier.last_refusal()
    }

    /// Returns the certificate that a server last showed, accepted or not.
    pub fn last_shown(&self) -> Option<CertificateDer<'static>> {
        self.verifier.last_shown()
    }
}
