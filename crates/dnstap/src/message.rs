//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What is said of a message besides its octets.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Between whom a message went, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A client's query.
    ClientQuery,
    /// The reply to it.
    ClientResponse,
    /// A query to an authoritative server.
    ResolverQuery,
    /// The reply to it.
    ResolverResponse,
    /// A query to an upstream resolver.
    ForwarderQuery,
    /// The reply to it.
    ForwarderResponse,
}

impl Kind {
    /// All of them, in the order of their bits.
    pub const ALL: [Self; 6] = [
        Self::ClientQuery,
        Self::ClientResponse,
        Self::ResolverQuery,
        Self::ResolverResponse,
        Self::ForwarderQuery,
        Self::ForwarderResponse,
    ];

    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClientQuery => "client-query",
            Self::ClientResponse => "client-response",
            Self::ResolverQuery => "resolver-query",
            Self::ResolverResponse => "resolver-response",
            Self::ForwarderQuery => "forwarder-query",
            Self::ForwarderResponse => "forwarder-response",
        }
    }

    /// Returns its number in `dnstap.proto` (`Message.Type`).
    pub const fn number(self) -> u8 {
        match self {
            Self::ClientQuery => 5,
            Self::ClientResponse => 6,
            Self::ResolverQuery => 3,
            Self::ResolverResponse => 4,
            Self::ForwarderQuery => 7,
            Self::ForwarderResponse => 8,
        }
    }

    /// Returns whether it is a reply.
    pub const fn is_response(self) -> bool {
        matches!(self, Self::ClientResponse | Self::ResolverResponse | Self::ForwarderResponse)
    }

    /// Returns whether it goes between a client and us.
    pub const fn is_of_client(self) -> bool {
        matches!(self, Self::ClientQuery | Self::ClientResponse)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    pub(crate) fn of_index(index: u8) -> Self {
        Self::ALL.get(usize::from(index)).copied().unwrap_or(Self::ClientQuery)
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Returns a set of these.
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }

    /// Returns whether a kind is among them.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Returns whether there are any between clients and us.
    pub const fn has_clients(self) -> bool {
        self.has(Kind::ClientQuery) || self.has(Kind::ClientResponse)
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self(bits)
    }
}

/// What carried a message, by its number in `dnstap.proto` (`SocketProtocol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A datagram.
    Udp = 1,
    /// A connection.
    Tcp = 2,
    /// DNS over TLS (RFC 7858).
    Tls = 3,
    /// DNS over HTTPS (RFC 8484), of any version of HTTP.
    Https = 4,
    /// DNSCrypt in datagrams.
    Dnscrypt = 5,
    /// DNSCrypt over connections.
    DnscryptConnection = 6,
    /// DNS over QUIC (RFC 9250).
    Quic = 7,
}

impl Protocol {
    pub(crate) const fn of_number(number: u8) -> Self {
        match number {
            1 => Self::Udp,
            3 => Self::Tls,
            4 => Self::Https,
            5 => Self::Dnscrypt,
            6 => Self::DnscryptConnection,
            7 => Self::Quic,
            _ => Self::Tcp,
        }
    }
}

/// The other end: the client, or the server that was asked. One behind a Unix socket has no
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it is.
    pub address: Option<SocketAddr>,
    /// What carried the message.
    pub protocol: Protocol,
}

/// A message as it is copied into a ring.
#[derive(Clone, Copy, Debug)]
pub struct Tapped<'a> {
    /// What it is.
    pub kind: Kind,
    /// The other end.
    pub peer: Peer,
    /// Which of our listeners it came to, or left from; nothing that counts if there is no client.
    pub listener: u16,
    /// When it was read or written, in microseconds of a clock that nobody sets.
    pub at_us: u64,
    /// When the query was, if this is the reply and it is known.
    pub query_at_us: Option<u64>,
    /// The message.
    pub octets: &'a [u8],
}

/// Returns an address as a number, and whether it is one of IPv4.
pub(crate) const fn to_bits(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), true),
        IpAddr::V6(address) => (address.to_bits(), false),
    }
}

/// Returns the address that a number stands for.
pub(crate) fn from_bits(bits: u128, is_v4: bool) -> IpAddr {
    let address = Ipv6Addr::from_bits(bits);
    if is_v4 { address.to_canonical() } else { IpAddr::V6(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        for kind in Kind::ALL {
            let set = Kinds::of([kind]);
            assert_eq!(Kind::ALL.map(|other| set.has(other)), Kind::ALL.map(|other| other == kind));
            assert_eq!(Kind::of_index(kind as u8), kind);
            assert_eq!(set.has_clients(), kind.is_of_client());
        }
        assert_eq!(Kind::ALL.map(|kind| Kinds::default().has(kind)), [false; 6]);
    }

    #[test]
    fn addresses_are_numbers_and_back() {
        for text in ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"] {
            let address: IpAddr = text.parse().expect("an address");
            let (bits, is_v4) = to_bits(address);
            assert_eq!(from_bits(bits, is_v4), address);
        }
    }
}
