//! Who asks, and over what.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wire::Query;

use crate::gate::prefix_set::PrefixSet;
use crate::subnet::client_subnet;

/// How a query reached us. Decides sizes and limits, never policy by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A datagram: the source address may be forged, the reply may be truncated.
    Udp,
    /// A connection: the source address is proven.
    Tcp,
    /// A connection with TLS (RFC 7858).
    Tls,
    /// HTTP over TLS, or behind a proxy that speaks it (RFC 8484).
    Https,
    /// QUIC (RFC 9250).
    Quic,
    /// HTTP/3 (RFC 9114).
    H3,
    /// DNSCrypt, over datagrams or connections.
    Dnscrypt,
    /// A Unix socket: who may use it is a matter of the file's rights, not of the access list.
    Unix,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Udp, Self::Tcp, Self::Tls, Self::Https, Self::Quic, Self::H3, Self::Dnscrypt, Self::Unix];

    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Https => "https",
            Self::Quic => "quic",
            Self::H3 => "h3",
            Self::Dnscrypt => "dnscrypt",
            Self::Unix => "unix",
        }
    }

    /// Returns whether nobody on the way can read what is sent, so that lengths are worth hiding;
    /// DNSCrypt hides them by itself.
    pub const fn is_padded(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::Dnscrypt | Self::Unix => false,
            Self::Tls | Self::Https | Self::Quic | Self::H3 => true,
        }
    }

    /// Returns the number that stands for it where it has to be short; below 16.
    pub const fn number(self) -> u8 {
        match self {
            Self::Udp => 0,
            Self::Tcp => 1,
            Self::Tls => 2,
            Self::Https => 3,
            Self::Quic => 4,
            Self::H3 => 5,
            Self::Unix => 6,
            Self::Dnscrypt => 7,
        }
    }

    /// Returns what a number stands for.
    pub const fn of_number(number: u8) -> Self {
        match number {
            0 => Self::Udp,
            2 => Self::Tls,
            3 => Self::Https,
            4 => Self::Quic,
            5 => Self::H3,
            6 => Self::Unix,
            7 => Self::Dnscrypt,
            _ => Self::Tcp,
        }
    }
}

/// The number of a listener: its place in the plan that `listen` runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub u16);

/// Who is told for how long a connection may be quiet (RFC 7828).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announce {
    /// Clients that send the option.
    Asked,
    /// All that send EDNS, as RFC 7828 §3.3.2 allows.
    All,
    /// Nobody.
    Nobody,
}

/// The idle timeout of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// In units of 100 ms.
    pub timeout: u16,
    /// Who is told.
    pub announced_to: Announce,
}

/// The client of one query, as far as policy may know it.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its address; IPv4-mapped IPv6 addresses are given as IPv4.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// How it reached us.
    pub transport: Transport,
    /// Whether the transport proves that the address is not forged.
    pub verified: bool,
    /// The most octets the transport carries in a reply, whatever the client's EDNS says.
    pub reply_octets_max: u16,
    /// What to announce in edns-tcp-keepalive, of a connection.
    pub keepalive: Option<Keepalive>,
    /// Where the query came to.
    pub listener: ListenerId,
    /// What the snapshot's `connection_bits` found out about the
    /// client's connection; zero where nothing is said when one begins. Worked out anew when a
    /// newer snapshot is adopted.
    pub connection: u64,
    /// The certificate that it has shown, if it has: rights between servers may depend on it (RFC
    /// 9103 §9.3.3).
    pub certificate: Option<Arc<ClientCertificate>>,
}

/// The SHA-256 of a public key, as RFC 7858 §4.2 pins it.
pub type KeyHash = [u8; 32];

/// A client's certificate, as far as servers go by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The hosts that it is for, if an authority vouches for them. A wildcard is the name of no
    /// host.
    pub hosts: Vec<String>,
    /// The hash of its key.
    pub key: KeyHash,
}

impl Client {
    /// Returns the address that policies see: the peer's, or the one that a trusted peer says it
    /// asks for, in an EDNS client subnet that names a single address.
    pub fn address_of(&self, query: &Query<'_>, trusted_peers: &PrefixSet) -> IpAddr {
        if trusted_peers.is_empty() {
            return self.address;
        }
        self.address_told(query, trusted_peers).unwrap_or(self.address)
    }

    fn address_told(&self, query: &Query<'_>, trusted_peers: &PrefixSet) -> Option<IpAddr> {
        let subnet = client_subnet(query).filter(|_| trusted_peers.contains(self.address))?;
        let bits = subnet.address_bits();
        match (subnet.family, subnet.prefix) {
            (1, 32) => Some(IpAddr::V4(Ipv4Addr::from_bits((bits >> 96) as u32))),
            (2, 128) => Some(IpAddr::V6(Ipv6Addr::from_bits(bits)).to_canonical()),
            _ => None,
        }
    }
}

/// The time, as the worker saw it when it began the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Seconds since the Unix epoch, by a clock that anybody may set: for what the protocol dates
    /// (TSIG, signatures, cookies) and for hours of the day. Nothing that lasts is measured with
    /// it.
    pub unix_seconds: u32,
    /// Microseconds of that clock beyond `unix_seconds`, below 1,000,000.
    pub unix_us_rest: u32,
    /// Microseconds beyond `monotonic_ms`, below 1,000.
    pub monotonic_us_rest: u16,
    /// Milliseconds of a clock that nobody sets, which goes on while the machine sleeps.
    pub monotonic_ms: u64,
    /// Seconds of that clock, as caches count them.
    pub cache: cache::Now,
}

impl Now {
    /// Returns the time that is `unix` on the wall, and so long after the machine booted.
    pub fn new(unix: SystemTime, since_boot: Duration) -> Self {
        let unix = unix.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            unix_seconds: u32::try_from(unix.as_secs()).unwrap_or(u32::MAX),
            unix_us_rest: unix.subsec_micros(),
            monotonic_us_rest: (since_boot.subsec_micros() % 1000) as u16,
            monotonic_ms: u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX),
            cache: cache::Now::since_boot(since_boot),
        }
    }

    /// Returns the microseconds since the Unix epoch.
    pub const fn unix_us(&self) -> u64 {
        self.unix_seconds as u64 * 1_000_000 + self.unix_us_rest as u64
    }

    /// Returns the microseconds of the clock that never goes back.
    pub const fn monotonic_us(&self) -> u64 {
        self.monotonic_ms.wrapping_mul(1000).wrapping_add(self.monotonic_us_rest as u64)
    }
}
