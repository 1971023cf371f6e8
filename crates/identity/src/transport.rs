//! How a server is asked: what is planned, and what is shared by all who ask it so.

use std::fmt;
use std::sync::Arc;

use plan::upstreams::Way;

use crate::last_errors::LastErrors;
use crate::provider::{Dnscrypt, Odoh};
use crate::registry::Registry;
use crate::tls;

/// How a server is asked. Two are equal if their plans are.
#[derive(Clone, Default)]
pub struct Transport {
    pub(crate) way: Arc<Way>,
    /// TLS, if it is spoken.
    pub tls: Option<Arc<tls::Client>>,
    /// The provider of a DNSCrypt resolver, if it is one.
    pub dnscrypt: Option<Arc<Dnscrypt>>,
    /// The target of oblivious messages, if there is one.
    pub odoh: Option<Arc<Odoh>>,
}

impl Transport {
    /// Returns one over UDP or TCP, of which nothing needs to be known.
    pub fn plain(way: Way) -> Self {
        Self { way: Arc::new(way), ..Self::default() }
    }

    /// Returns one of which no server need prove anything (RFC 9539).
    pub fn of_anybody(way: Way, registry: &Registry) -> Self {
        let tls = way.protocol.tls().map(|plan| registry.tls(plan));
        Self { way: Arc::new(way), tls, ..Self::default() }
    }

    /// Returns what is planned.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// Returns whose name the server proves, if it must prove one, and what was last wrong with it.
    pub fn identity(&self) -> Option<(String, &LastErrors)> {
        if let Some(client) = self.tls.as_ref().filter(|client| !client.plan.is_of_anybody()) {
            return Some((client.plan.name.to_str().into_owned(), client.last_errors()));
        }
        self.dnscrypt.as_ref().map(|provider| (provider.plan.name.to_string(), provider.last_errors()))
    }
}

impl PartialEq for Transport {
    fn eq(&self, other: &Self) -> bool {
        self.way == other.way
    }
}

impl Eq for Transport {}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.way, f)
    }
}
