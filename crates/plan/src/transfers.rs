//! Other servers of our zones: primaries, secondaries, servers of a parent.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use wire::NameBuf;

use crate::tls::ClientTls;

/// Another server of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Where it is. Of a host, only the port is known.
    pub address: SocketAddr,
    /// The host whose addresses are looked for before it is asked, if it is not known by its own.
    pub host: Option<NameBuf>,
    /// What it must prove, if it is spoken to over TLS.
    pub tls: Option<ClientTls>,
    /// What messages are signed with.
    pub key: Option<Arc<tsig::Key>>,
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls.is_some() { "tls://" } else { "" })?;
        match &self.host {
            Some(host) => write!(f, "{host}:{}", self.address.port()),
            None => write!(f, "{}", self.address),
        }
    }
}
