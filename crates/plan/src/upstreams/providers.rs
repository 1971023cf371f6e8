//! Who alone can read messages that are sealed for it: the provider of a DNSCrypt resolver, the
//! target of oblivious messages.

use std::net::SocketAddr;

use wire::NameBuf;

use super::target::Target;
use crate::tls::ClientTls;

/// What a DNSCrypt resolver must prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnscryptPlan {
    /// The name that its certificates are asked for under: `2.dnscrypt-cert.example.org`.
    pub name: NameBuf,
    /// The key (Ed25519) that they are signed with.
    pub key: [u8; 32],
}

/// What is known of a target of oblivious messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OdohPlan {
    /// Where it is, to be asked for its key.
    pub target: Target,
    /// Its name or address, and the port if it is not 443.
    pub authority: String,
    /// What it must prove when it is asked for its key.
    pub tls: ClientTls,
    /// Resolvers for its name.
    pub bootstrap: Vec<SocketAddr>,
}
