//! Who alone can read messages that are sealed for it: the provider of a DNSCrypt resolver, the target of oblivious messages;
//! what it must prove, and the key that is in use.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use dnscrypt::Certificate;
use wire::NameBuf;

use crate::plan::Target;
use crate::secure::{News, Secure};

/// A certificate is used for this long, in seconds, before the resolver is asked whether there is a newer one.
const KNOWN_MAX: u64 = 3600;

/// What a resolver must prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnscryptPlan {
    /// The name that its certificates are asked for under: `2.dnscrypt-cert.example.org`.
    pub name: NameBuf,
    /// The key (Ed25519) that they are signed with.
    pub key: [u8; 32],
}

/// How messages to one resolver are sealed: the plan, and what is known of the resolver. Two are equal if their plans are.
#[derive(Clone)]
pub struct Dnscrypt(Arc<Parts>);

struct Parts {
    plan: DnscryptPlan,
    /// The certificate that is in use, and when it came, in seconds since 1970; for all workers.
    known: Mutex<Option<(Certificate, u64)>>,
    news: News,
}

impl PartialEq for Dnscrypt {
    fn eq(&self, other: &Self) -> bool {
        self.0.plan == other.0.plan
    }
}

impl Eq for Dnscrypt {}

impl fmt::Debug for Dnscrypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.plan, f)
    }
}

impl Dnscrypt {
    /// Prepares what `plan` says.
    pub fn new(plan: DnscryptPlan) -> Self {
        Self(Arc::new(Parts { plan, known: Mutex::default(), news: News::default() }))
    }

    /// Returns what the resolver must prove.
    pub fn plan(&self) -> &DnscryptPlan {
        &self.0.plan
    }

    pub(crate) fn news(&self) -> &News {
        &self.0.news
    }

    /// Returns the certificate to use without asking again, at this second since 1970.
    pub(crate) fn known(&self, now: u64) -> Option<Certificate> {
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (certificate, since) = known.as_ref()?;
        let is_fresh = now.saturating_sub(*since) < KNOWN_MAX && certificate.is_valid_at(now);
        is_fresh.then(|| certificate.clone())
    }

    /// Remembers the certificate that is in use.
    pub(crate) fn remember(&self, certificate: Certificate, now: u64) {
        *self.0.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((certificate, now));
    }

    /// Forgets it: perhaps the resolver has another.
    pub(crate) fn forget(&self) {
        *self.0.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What is known of a target of oblivious messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OdohPlan {
    /// Where it is, to be asked for its key.
    pub target: Target,
    /// Its name or address, and the port if it is not 443.
    pub authority: String,
    /// What it must prove when it is asked for its key.
    pub secure: Secure,
    /// Resolvers for its name.
    pub bootstrap: Vec<SocketAddr>,
}

/// How messages to one target are sealed: the plan, and its key. Two are equal if their plans are.
#[derive(Clone)]
pub struct Odoh(Arc<Sealed>);

struct Sealed {
    plan: OdohPlan,
    /// The key that is in use, and when it came, in seconds since 1970; for all workers.
    known: Mutex<Option<(odoh::Client, u64)>>,
}

impl PartialEq for Odoh {
    fn eq(&self, other: &Self) -> bool {
        self.0.plan == other.0.plan
    }
}

impl Eq for Odoh {}

impl fmt::Debug for Odoh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.plan, f)
    }
}

impl Odoh {
    /// Prepares what `plan` says.
    pub fn new(plan: OdohPlan) -> Self {
        Self(Arc::new(Sealed { plan, known: Mutex::default() }))
    }

    /// Returns what is known of the target.
    pub fn plan(&self) -> &OdohPlan {
        &self.0.plan
    }

    /// Returns the key to use without asking again, at this second since 1970.
    pub(crate) fn known(&self, now: u64) -> Option<odoh::Client> {
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(_, since)| now.saturating_sub(*since) < KNOWN_MAX).map(|(key, _)| key.clone())
    }

    /// Remembers the key that is in use.
    pub(crate) fn remember(&self, key: odoh::Client, now: u64) {
        *self.0.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, now));
    }

    /// Forgets this key: the target has another.
    pub(crate) fn forget(&self, key: &odoh::Client) {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|(known, _)| known == key) {
            *known = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_used_for_an_hour_and_never_after_its_end() {
        let name = NameBuf::root();
        let plan = Dnscrypt::new(DnscryptPlan { name, key: [1; 32] });
        let system = dnscrypt::System::XChaCha20;
        let certificate =
            Certificate { system, key: [2; 32], magic: [3; 8], serial: 1, valid: (1000, 10_000) };
        assert_eq!(plan.known(2000), None);
        plan.remember(certificate.clone(), 2000);
        assert_eq!(plan.known(5599), Some(certificate.clone()));
        assert_eq!(plan.known(5600), None);
        plan.remember(certificate, 9900);
        assert!(plan.known(10_000).is_some());
        assert_eq!(plan.known(10_001), None);
        plan.forget();
        assert_eq!(plan.known(10_000), None);
    }
}
