//! Where a server is.

use std::net::SocketAddr;

use wire::NameBuf;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At this address.
    Address(SocketAddr),
    /// At all addresses that the pool's bootstrap resolvers give for this name.
    Name {
        /// The name.
        name: NameBuf,
        /// The port.
        port: u16,
    },
}
