//! Checks what servers prove.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plan::tls::{CertificateFacts, ClientTls, Proof, Roots, pin_text};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use super::certificate::to_be_signed;
use super::explain::explain_tls;

/// What a certificate was refused for, where the library has no word for it.
#[derive(Debug)]
enum Refused {
    SelfSigned,
    Authority,
    OtherKey([u8; 32]),
    OtherChain,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SelfSigned => {
                f.write_str("the server's certificate is self-signed, and nobody vouches for it")
            }
            Self::Authority => f.write_str(
                "the server shows the certificate of an authority as its own; to trust it, give it as \"roots\", or its key under \"pins\"",
            ),
            Self::OtherKey(key) => {
                write!(f, "the server has another key than those pinned: {}", pin_text(key))
            }
            Self::OtherChain => {
                f.write_str("the server's certificate is not from an authority that its stamp names")
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Checks what servers prove.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    demand: Demand,
    /// Certificates of which a chain must have one, if there are any.
    certificates: Vec<[u8; 32]>,
    /// Why a certificate was last refused.
    refusal: Mutex<Option<String>>,
    /// The certificate that a server last showed, accepted or not.
    shown: Mutex<Option<CertificateDer<'static>>>,
}

#[derive(Debug)]
enum Demand {
    /// A chain from an authority; or one of these certificates itself, which whoever configured
    /// them trusts.
    Chain(Arc<WebPkiServerVerifier>, Arc<[CertificateDer<'static>]>, Names),
    Keys(Vec<[u8; 32]>),
    Nothing,
}

/// Which names a certificate may be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// The server's alone.
    Expected,
    /// Any.
    All,
}

impl Verifier {
    pub(super) fn new(plan: &ClientTls, provider: Arc<CryptoProvider>) -> Self {
        let demand = match &plan.proof {
            Proof::Authorities(roots) | Proof::Chain(roots) => {
                let names = match &plan.proof {
                    Proof::Chain(_) => Names::All,
                    _ => Names::Expected,
                };
                let mut store = RootCertStore::empty();
                let own = match roots {
                    Roots::Mozilla => {
                        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().map(TrustAnchor::to_owned));
                        Arc::default()
                    }
                    Roots::Own(authorities) => {
                        store.add_parsable_certificates(authorities.certificates().iter().cloned());
                        Arc::clone(authorities.certificates())
                    }
                };
                let builder =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider));
                Demand::Chain(builder.build().expect("one authority can be used"), own, names)
            }
            Proof::Keys(keys) => Demand::Keys(keys.clone()),
            Proof::None => Demand::Nothing,
        };
        let certificates = plan.certificates.clone();
        Self { provider, demand, certificates, refusal: Mutex::default(), shown: Mutex::default() }
    }

    /// Returns one that demands nothing.
    pub(super) fn anybody(provider: Arc<CryptoProvider>) -> Self {
        let demand = Demand::Nothing;
        let certificates = Vec::new();
        Self { provider, demand, certificates, refusal: Mutex::default(), shown: Mutex::default() }
    }

    /// Returns why a certificate was last refused.
    pub(super) fn last_refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the certificate that a server last showed.
    pub(super) fn last_shown(&self) -> Option<CertificateDer<'static>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.demand {
            Demand::Nothing => Ok(ServerCertVerified::assertion()),
            Demand::Keys(keys) => {
                let certificate = webpki::EndEntityCert::try_from(end_entity).map_err(|_| bad_encoding())?;
                let key = sha256(&certificate.subject_public_key_info());
                if keys.contains(&key) {
                    Ok(ServerCertVerified::assertion())
                } else {
                    Err(refused(Refused::OtherKey(key)))
                }
            }
            Demand::Chain(chain, own, names) => {
                let checked =
                    chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
                match checked {
                    Ok(_) => {}
                    // The name is looked at when everything else was found right.
                    Err(error) if *names == Names::All && is_of_name(&error) => {}
                    Err(error) if is_authority(&error) => {
                        // `openssl req -x509` makes certificates that are their own authority.
                        if !own.iter().any(|trusted| trusted.as_ref() == end_entity.as_ref()) {
                            return Err(refused(Refused::Authority));
                        }
                        check_itself(
                            end_entity,
                            Some(server_name).filter(|_| *names == Names::Expected),
                            now,
                        )?;
                    }
                    Err(rustls::Error::InvalidCertificate(
                        CertificateError::UnknownIssuer | CertificateError::BadSignature,
                    )) if is_self_signed(end_entity) => return Err(refused(Refused::SelfSigned)),
                    Err(other) => return Err(other),
                }
                let mut shown = std::iter::once(end_entity).chain(intermediates);
                let is_known = |certificate: &CertificateDer<'_>| {
                    to_be_signed(certificate)
                        .is_some_and(|signed| self.certificates.contains(&sha256(signed)))
                };
                if self.certificates.is_empty() || shown.any(is_known) {
                    Ok(ServerCertVerified::assertion())
                } else {
                    Err(refused(Refused::OtherChain))
                }
            }
        }
    }
}

fn refused(cause: Refused) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(cause))).into()
}

fn bad_encoding() -> rustls::Error {
    CertificateError::BadEncoding.into()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(end_entity.clone().into_owned());
        let checked = self.check(end_entity, intermediates, server_name, ocsp_response, now);
        if let Err(error) = &checked {
            *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(explain_tls(error));
        }
        checked
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns whether a certificate was refused because it is for other names.
fn is_of_name(error: &rustls::Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(error, rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
}

/// Returns whether a certificate was refused because it is an authority's.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) = error else {
        return false;
    };
    matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Checks a certificate that is trusted itself: whether it is for this name, if one is given, and
/// for this time.
fn check_itself(
    certificate: &CertificateDer<'_>,
    name: Option<&ServerName<'_>>,
    now: UnixTime,
) -> Result<(), rustls::Error> {
    let parsed = webpki::EndEntityCert::try_from(certificate).map_err(|_| bad_encoding())?;
    let is_for = |name| parsed.verify_is_valid_for_subject_name(name);
    name.map_or(Ok(()), is_for).map_err(|error| match error {
        webpki::Error::CertNotValidForName(context) => {
            let (expected, presented) = (context.expected, context.presented);
            CertificateError::NotValidForNameContext { expected, presented }
        }
        _ => CertificateError::NotValidForName,
    })?;
    let facts = CertificateFacts::parse(certificate).ok_or_else(bad_encoding)?;
    let [not_before, not_after] = [facts.begins, facts.ends].map(|second| u64::try_from(second).unwrap_or(0));
    let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    if now.as_secs() < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before: at(not_before) }.into());
    }
    if now.as_secs() > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after: at(not_after) }.into());
    }
    Ok(())
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut hash = [0; 32];
    for (to, from) in hash.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    hash
}

/// Returns whether a certificate names itself as its issuer.
fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|it| it.issuer() == it.subject())
}
