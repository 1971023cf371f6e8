//! Other servers of our zones: primaries, secondaries, servers of a parent.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::tls::ClientTls;

/// Another server of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Where it is.
    pub address: SocketAddr,
    /// What it must prove, if it is spoken to over TLS.
    pub tls: Option<ClientTls>,
    /// What messages are signed with.
    pub key: Option<Arc<tsig::Key>>,
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.tls.is_some() { "tls://" } else { "" }, self.address)
    }
}
