//! What was last wrong with servers, so that a log says each thing once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// Addresses whose last error is remembered.
const LAST_ERRORS_MAX: usize = 64;

/// The error that was last logged of each address: all workers meet the same.
#[derive(Debug, Default)]
pub struct LastErrors(Mutex<BTreeMap<SocketAddr, String>>);

impl LastErrors {
    /// Notes an error of `address`; returns whether it is another than before.
    pub fn is_new(&self, address: SocketAddr, error: &str) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(&address).is_some_and(|last| last == error) {
            return false;
        }
        if logged.len() >= LAST_ERRORS_MAX {
            logged.clear();
        }
        logged.insert(address, error.to_owned());
        true
    }

    /// Notes that `address` has proved what it must; returns whether there was an error before.
    pub fn resolve(&self, address: SocketAddr) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&address).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_is_new_once() {
        let errors = LastErrors::default();
        let one: SocketAddr = "192.0.2.1:853".parse().expect("an address");
        let two: SocketAddr = "192.0.2.2:853".parse().expect("an address");
        assert!(errors.is_new(one, "expired"));
        assert!(!errors.is_new(one, "expired"));
        assert!(errors.is_new(two, "expired"));
        assert!(errors.is_new(one, "refused"));
        assert!(errors.resolve(one) && !errors.resolve(one));
        assert!(errors.is_new(one, "refused"));
    }
}
