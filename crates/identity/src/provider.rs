//! Who alone can read messages that are sealed for it: the provider of a DNSCrypt resolver, the
//! target of oblivious messages; the key that is in use.

use std::sync::{Arc, Mutex, PoisonError};

use dnscrypt::Certificate;
use plan::upstreams::{DnscryptPlan, OdohPlan};

use crate::last_errors::LastErrors;
use crate::registry::{Interned, Registry};
use crate::tls;

/// A certificate is used for this long, in seconds, before the resolver is asked whether there is a
/// newer one.
const KNOWN_MAX: u64 = 3600;

/// How messages to one resolver are sealed, for all workers.
pub struct Dnscrypt {
    /// Who the provider is.
    pub plan: DnscryptPlan,
    /// The certificate that is in use, and when it came, in seconds since 1970.
    known: Mutex<Option<(Certificate, u64)>>,
    last_errors: LastErrors,
}

impl Interned for Dnscrypt {
    type Plan = DnscryptPlan;

    fn plan(&self) -> &DnscryptPlan {
        &self.plan
    }

    fn new(plan: &DnscryptPlan, _: &Registry) -> Self {
        Self { plan: plan.clone(), known: Mutex::default(), last_errors: LastErrors::default() }
    }
}

impl Dnscrypt {
    /// Returns what was last wrong with it.
    pub fn last_errors(&self) -> &LastErrors {
        &self.last_errors
    }

    /// Returns the certificate to use without asking again, at this second since 1970.
    pub fn known(&self, now: u64) -> Option<Certificate> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (certificate, since) = known.as_ref()?;
        let is_fresh = now.saturating_sub(*since) < KNOWN_MAX && certificate.is_valid_at(now);
        is_fresh.then(|| certificate.clone())
    }

    /// Remembers the certificate that is in use.
    pub fn remember(&self, certificate: Certificate, now: u64) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((certificate, now));
    }

    /// Forgets it: perhaps the resolver has another.
    pub fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// How messages to one target are sealed, for all workers.
pub struct Odoh {
    /// Who the target is.
    pub plan: OdohPlan,
    /// For when it is asked for its key.
    tls: Arc<tls::Client>,
    /// The key that is in use, and when it came, in seconds since 1970.
    known: Mutex<Option<(odoh::Client, u64)>>,
}

impl Interned for Odoh {
    type Plan = OdohPlan;

    fn plan(&self) -> &OdohPlan {
        &self.plan
    }

    fn new(plan: &OdohPlan, registry: &Registry) -> Self {
        Self { plan: plan.clone(), tls: registry.tls(&plan.tls), known: Mutex::default() }
    }
}

impl Odoh {
    /// Returns how it proves who it is.
    pub fn tls(&self) -> &tls::Client {
        &self.tls
    }

    /// Returns the key to use without asking again, at this second since 1970.
    pub fn known(&self, now: u64) -> Option<odoh::Client> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(_, since)| now.saturating_sub(*since) < KNOWN_MAX).map(|(key, _)| key.clone())
    }

    /// Remembers the key that is in use.
    pub fn remember(&self, key: odoh::Client, now: u64) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, now));
    }

    /// Forgets this key: the target has another.
    pub fn forget(&self, key: &odoh::Client) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
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
        let name = wire::NameBuf::root();
        let plan = Dnscrypt::new(&DnscryptPlan { name, key: [1; 32] }, &Registry::default());
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
