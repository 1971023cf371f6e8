//! Who the server is, to clients and to other servers: certificates and their keys.

use std::fmt;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// A certificate with its chain and key, and the names it is for.
#[derive(PartialEq, Eq)]
pub struct Identity {
    /// The server's own certificate is the first.
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// In lower case; `*.` in front stands for one label.
    names: Vec<String>,
}

/// Never shows the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Why a certificate and a key make no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// The key is of a kind or size that is not supported.
    Key(String),
    /// The key is not the certificate's.
    Mismatch,
    /// The certificate cannot be used.
    Certificate(String),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(why) => write!(f, "this kind of key cannot be used: {why}"),
            Self::Mismatch => f.write_str("the key is not that of the certificate"),
            Self::Certificate(why) => write!(f, "the certificate cannot be used: {why}"),
        }
    }
}

impl Identity {
    /// Puts a chain (the server's own certificate first) and its key together, and checks that they
    /// fit. `names` are those in the certificate.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
        names: Vec<String>,
    ) -> Result<Self, IdentityError> {
        let signer = any_supported_type(key).map_err(|error| IdentityError::Key(error.to_string()))?;
        match CertifiedKey::new(chain.clone(), signer).keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => return Err(IdentityError::Mismatch),
            Err(error) => return Err(IdentityError::Certificate(error.to_string())),
        }
        let names = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Ok(Self { chain, key: key.clone_key(), names })
    }

    /// Returns the certificates, the server's own first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Returns the private key.
    pub fn key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    /// Returns whether the certificate is for a server of this name.
    pub fn is_for(&self, server_name: &str) -> bool {
        self.names.iter().any(|name| covers(name, server_name))
    }
}

/// Returns whether a name in a certificate is that of a server (RFC 9525 §6.3): a `*` stands for
/// one whole label.
fn covers(name: &str, server_name: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => {
            server_name.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent))
        }
        None => name.eq_ignore_ascii_case(server_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_certificates_cover_servers() {
        for (name, server, expect) in [
            ("dns.example.org", "dns.example.org", true),
            ("dns.example.org", "DNS.example.ORG", true),
            ("dns.example.org", "a.dns.example.org", false),
            ("*.example.org", "dns.example.org", true),
            ("*.example.org", "a.b.example.org", false),
            ("*.example.org", "example.org", false),
        ] {
            assert_eq!(covers(name, server), expect, "{name} {server}");
        }
    }
}
