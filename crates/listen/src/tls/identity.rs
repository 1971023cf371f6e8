//! Who we are: certificates, and which of them a client gets.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::signer;

/// A certificate with its chain and key, and the names it is for.
pub struct Identity {
    key: Arc<CertifiedKey>,
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

impl Identity {
    /// Puts a chain (the server's own certificate first) and its key together. `names` are those in the certificate.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
        names: Vec<String>,
    ) -> Result<Self, IdentityError> {
        let key = signer(key).map_err(|error| IdentityError::Key(error.to_string()))?;
        let key = CertifiedKey::new(chain, key);
        match key.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => return Err(IdentityError::Mismatch),
            Err(error) => return Err(IdentityError::Certificate(error.to_string())),
        }
        let names = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Ok(Self { key: Arc::new(key), names })
    }

    fn is_for(&self, server_name: &str) -> bool {
        self.names.iter().any(|name| covers(name, server_name))
    }
}

/// Returns whether a name in a certificate is that of a server (RFC 9525 §6.3): a `*` stands for one whole label.
fn covers(name: &str, server_name: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => {
            server_name.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent))
        }
        None => name.eq_ignore_ascii_case(server_name),
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Identities(Vec<Identity>);

impl Identities {
    pub(super) const fn new(identities: Vec<Identity>) -> Self {
        Self(identities)
    }

    /// Returns the one that is `server_name`, or else the first.
    fn choose(&self, server_name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let named = server_name.and_then(|name| self.0.iter().find(|identity| identity.is_for(name)));
        named.or(self.0.first()).map(|identity| Arc::clone(&identity.key))
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name())
    }
}

/// Keeps the server name of the handshake step that a worker has just made: sessions without buffers of their own do not
/// tell it afterwards. One per worker, so nobody ever waits for the lock.
#[derive(Debug, Default)]
pub(super) struct Hearing(Mutex<Option<Box<str>>>);

impl Hearing {
    /// Returns what chooses among `identities` and keeps the name asked for.
    pub(super) fn listening(self: &Arc<Self>, identities: Arc<Identities>) -> Arc<dyn ResolvesServerCert> {
        Arc::new(Listening { identities, hearing: Arc::clone(self) })
    }

    /// Takes the name that was heard last.
    pub(super) fn take(&self) -> Option<Box<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Debug)]
struct Listening {
    identities: Arc<Identities>,
    hearing: Arc<Hearing>,
}

impl ResolvesServerCert for Listening {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        *self.hearing.0.lock().unwrap_or_else(PoisonError::into_inner) = name.map(Into::into);
        self.identities.choose(name)
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
