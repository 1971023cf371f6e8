//! What certificates are demanded of clients, and what checks them.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

/// What is demanded of clients in a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    Nothing,
    Optional,
    Required,
    /// A certificate of whatever origin.
    Any,
}

impl Demand {
    pub(super) const ALL: [Self; 4] = [Self::Nothing, Self::Optional, Self::Required, Self::Any];
}

/// Returns what checks the certificates of clients; `None` if some are demanded and nobody signs
/// them.
pub(super) fn verifier(
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
