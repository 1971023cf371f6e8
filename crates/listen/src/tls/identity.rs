//! Which of the server's certificates a client gets.

use std::sync::{Arc, Mutex, PoisonError};

use plan::tls::TlsPlan;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The certificates of a plan, ready to sign.
#[derive(Debug)]
pub(super) struct Identities {
    plan: Arc<TlsPlan>,
    /// In the order of the plan.
    keys: Vec<Arc<CertifiedKey>>,
}

impl Identities {
    /// Prepares the keys of a plan.
    pub(super) fn new(plan: &Arc<TlsPlan>) -> Result<Self, rustls::Error> {
        let keys = plan.identities.iter().map(|identity| {
            let signer = any_supported_type(identity.key())?;
            Ok(Arc::new(CertifiedKey::new(identity.chain().to_vec(), signer)))
        });
        let keys = keys.collect::<Result<_, rustls::Error>>()?;
        Ok(Self { plan: Arc::clone(plan), keys })
    }

    /// Returns the certificate that is for `server_name`, or else the first.
    fn choose(&self, server_name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let is_named = |name| self.plan.identities.iter().position(|identity| identity.is_for(name));
        let at = server_name.and_then(is_named).unwrap_or(0);
        self.keys.get(at).map(Arc::clone)
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name())
    }
}

/// Keeps the server name of the handshake step that a worker has just made: sessions without
/// buffers of their own do not tell it afterwards. One per worker, so nobody ever waits for the
/// lock.
#[derive(Debug, Default)]
pub(super) struct AskedName(Mutex<Option<Box<str>>>);

impl AskedName {
    /// Returns what chooses among `identities` and keeps the name asked for.
    pub(super) fn noting(self: &Arc<Self>, identities: Arc<Identities>) -> Arc<dyn ResolvesServerCert> {
        Arc::new(NotingResolver { identities, asked_name: Arc::clone(self) })
    }

    /// Takes the name that came last.
    pub(super) fn take(&self) -> Option<Box<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Debug)]
struct NotingResolver {
    identities: Arc<Identities>,
    asked_name: Arc<AskedName>,
}

impl ResolvesServerCert for NotingResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        *self.asked_name.0.lock().unwrap_or_else(PoisonError::into_inner) = name.map(Into::into);
        self.identities.choose(name)
    }
}
