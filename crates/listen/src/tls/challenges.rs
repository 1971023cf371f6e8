//! What authorities look for that are asked for certificates: files at a web server (RFC 8555
//! §8.3), and certificates in handshakes (RFC 8737).
//!
//! There are some for the seconds that an order takes. As long as there are none, nothing here is
//! on the way of a handshake.

use std::sync::Arc;

use plan::certificates::Challenge;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// What the handshake of an authority is called (RFC 8737 §6.2).
pub(crate) const ALPN_CHALLENGE: &[u8] = b"acme-tls/1";

/// What is answered to authorities.
#[derive(Debug, Default)]
pub(super) struct Challenges {
    /// Tokens and the texts of their files.
    files: Vec<(String, String)>,
    /// Names of servers and their certificates.
    certificates: Vec<(String, Arc<CertifiedKey>)>,
}

impl Challenges {
    /// Prepares what is answered.
    ///
    /// # Errors
    ///
    /// The TLS library refuses a key.
    pub(super) fn new(challenges: &[Challenge]) -> Result<Self, rustls::Error> {
        let mut made = Self::default();
        for challenge in challenges {
            match challenge {
                Challenge::File { token, text } => made.files.push((token.clone(), text.clone())),
                // Zones answer those.
                Challenge::Record { .. } => {}
                Challenge::Handshake { server_name, certificate, key } => {
                    let signer = any_supported_type(key)?;
                    let key = CertifiedKey::new(vec![certificate.clone()], signer);
                    made.certificates.push((server_name.clone(), Arc::new(key)));
                }
            }
        }
        Ok(made)
    }

    /// Returns the text of the file of a token.
    pub(super) fn file(&self, token: &str) -> Option<&str> {
        self.files.iter().find(|(other, _)| other == token).map(|(_, text)| text.as_str())
    }

    /// Returns whether handshakes of authorities are answered.
    pub(super) fn has_certificates(&self) -> bool {
        !self.certificates.is_empty()
    }

    fn certificate(&self, server_name: &str) -> Option<Arc<CertifiedKey>> {
        let found = self.certificates.iter().find(|(name, _)| name.eq_ignore_ascii_case(server_name));
        found.map(|(_, key)| Arc::clone(key))
    }
}

/// Gives authorities what they look for, and everybody else what they get anyway.
#[derive(Debug)]
pub(super) struct ChallengeResolver {
    challenges: Arc<Challenges>,
    otherwise: Arc<dyn ResolvesServerCert>,
}

impl ChallengeResolver {
    pub(super) fn new(challenges: Arc<Challenges>, otherwise: Arc<dyn ResolvesServerCert>) -> Self {
        Self { challenges, otherwise }
    }
}

impl ResolvesServerCert for ChallengeResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // RFC 8737 §3: an authority offers this protocol and no other.
        let is_authority = hello
            .alpn()
            .is_some_and(|mut offered| offered.next() == Some(ALPN_CHALLENGE) && offered.next().is_none());
        if is_authority {
            return self.challenges.certificate(hello.server_name()?);
        }
        self.otherwise.resolve(hello)
    }
}
