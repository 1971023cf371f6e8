//! What queries to authoritative servers need of the operating system, so that tests can stand in
//! for it.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// A family of addresses, which needs sockets of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4 = 0,
    /// IPv6.
    V6 = 1,
}

impl Family {
    /// Returns the family of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// Names an unconnected UDP socket; the machine chooses it, and uses it again only after
/// [`PoolNetwork::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSocketKey(pub u32);

/// Names a connection to an authoritative server in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLinkKey(pub u32);

/// What carries messages on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP (RFC 7766).
    Tcp,
    /// TLS, whoever the server is (RFC 7858, RFC 9539).
    Tls,
    /// QUIC, whoever the server is (RFC 9250, RFC 9539).
    Quic,
}

impl Carrier {
    /// Returns whether nobody on the way reads along.
    pub const fn is_encrypted(self) -> bool {
        !matches!(self, Self::Tcp)
    }
}

/// A datagram that could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// What it was queued on.
    pub socket: PoolSocketKey,
    /// Where it was to go.
    pub to: SocketAddr,
    /// The ID in its header.
    pub id: u16,
    /// Whether it is we who lack something: room, memory, a route.
    pub is_ours: bool,
}

/// Sockets that are not connected to anybody, and connections. Nothing here waits.
pub trait PoolNetwork {
    /// Opens a UDP socket on a random port.
    fn open(&mut self, key: PoolSocketKey, family: Family) -> io::Result<()>;

    /// Closes a UDP socket.
    fn close(&mut self, key: PoolSocketKey);

    /// Queues a datagram.
    fn queue(&mut self, key: PoolSocketKey, to: SocketAddr, packet: &[u8]);

    /// Sends all queued datagrams; puts those that could not be sent into `unsent`.
    fn flush(&mut self, unsent: &mut Vec<Unsent>);

    /// Begins to connect; [`Authorities::link_opened`](super::Authorities::link_opened),
    /// `link_closed` or `link_lacked` follows.
    fn connect(&mut self, key: PoolLinkKey, to: SocketAddr, carrier: Carrier);

    /// Queues a message on a connection that may still be opening.
    fn write(&mut self, key: PoolLinkKey, packet: &[u8]);

    /// Closes a connection, opening or open.
    fn disconnect(&mut self, key: PoolLinkKey);
}
