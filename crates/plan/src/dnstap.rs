//! Who receives messages as dnstap, and which.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use dnstap::{Envelope, Kinds};

use crate::tls::ClientTls;

/// Where messages are sent, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dnstap {
    /// Who receives them.
    pub to: Receiver,
    /// Whether the receiver says that it takes them, and that it has them (Frame Streams).
    pub is_bidirectional: bool,
    /// What all messages have.
    pub envelope: Envelope,
    /// Which are sent.
    pub kinds: Kinds,
    /// One of so many is; one: all.
    pub one_of: u32,
}

/// Where a receiver is, and what is spoken with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Behind a Unix socket.
    Unix(PathBuf),
    /// At an address.
    Tcp(SocketAddr),
    /// At an address, and it must prove who it is.
    Tls(SocketAddr, Box<ClientTls>),
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Tls(address, _) => write!(f, "tls://{address}"),
        }
    }
}
