//! Who receives messages as dnstap, and which.

use std::net::SocketAddr;
use std::path::PathBuf;

use diagnostic::At;
use dnstap::Kinds;

use super::{Certificate, TrustedRoots};

/// Where messages are sent, and which.
#[derive(Clone, Debug, PartialEq)]
pub struct DnstapSettings {
    /// Who receives them.
    pub to: At<ReceiverPlace>,
    /// Whether the receiver is asked first, and heard at the end.
    pub is_bidirectional: bool,
    /// Who sends them; `None`: that is not said.
    pub identity: Option<At<String>>,
    /// Which program sends them; `None`: that is not said.
    pub version: Option<String>,
    /// Which are sent.
    pub kinds: Kinds,
    /// One of so many is.
    pub one_of: u32,
    /// The name in the receiver's certificate, if it is not its address.
    pub tls_name: Option<At<String>>,
    /// The authorities that may vouch for it.
    pub roots: At<TrustedRoots>,
    /// Whether it must prove anything.
    pub verify: bool,
    /// What it is shown.
    pub certificate: Option<Certificate>,
}

/// Where a receiver is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverPlace {
    /// Behind a Unix socket.
    Unix(PathBuf),
    /// At an address.
    Tcp(SocketAddr),
    /// At an address, inside of TLS.
    Tls(SocketAddr),
}
