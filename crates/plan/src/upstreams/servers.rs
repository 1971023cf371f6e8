//! The servers of a group: where they are, and how they are asked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::outgoing::Outgoing;
use super::providers::{DnscryptPlan, OdohPlan};
use super::target::Target;
use crate::Secret;
use crate::tls::ClientTls;

/// One server of a group.
#[derive(Clone, PartialEq)]
pub struct ServerPlan {
    /// Where it is.
    pub target: Target,
    /// How to talk to it.
    pub way: Arc<Way>,
    /// Its share under [`Pick::Balanced`]; zero counts as one.
    pub weight: u16,
    /// Which bit stands for it where only some servers of the group may be asked.
    pub member: u8,
}

impl ServerPlan {
    /// Returns a server at `address` that is asked in this way.
    pub fn new(address: SocketAddr, way: Way) -> Self {
        Self { target: Target::Address(address), way: Arc::new(way), weight: 1, member: 0 }
    }

    /// Returns a server at `address` that is asked over UDP (and over TCP when it truncates).
    pub fn udp(address: SocketAddr) -> Self {
        Self::new(address, Way::default())
    }

    /// Returns a server at `address` that is asked over TCP only.
    pub fn tcp(address: SocketAddr) -> Self {
        Self::new(address, Way { protocol: Protocol::Tcp, ..Way::default() })
    }
}

/// Everything about how a server is asked, except where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// What carries the queries.
    pub protocol: Protocol,
    /// What our sockets are bound to.
    pub bind: Bind,
    /// The SOCKS5 proxy that connects us.
    pub proxy: Option<Proxy>,
    /// How many connections are kept.
    pub connections: Connections,
}

impl Way {
    /// Returns whether connections are all that is used; what a proxy relays is one, too.
    pub fn is_connected(&self) -> bool {
        self.protocol.scheme().is_connected() || self.proxy.is_some()
    }
}

/// A SOCKS5 proxy (RFC 1928).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Where it is.
    pub address: SocketAddr,
    /// What it is told about us, if anything.
    pub login: Option<Login>,
}

/// A user and a password, at most 255 octets each (RFC 1929).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// Where an HTTP server has its DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPlan {
    /// The name or address that requests are for, and the port if it is not 443.
    pub authority: String,
    /// The path, beginning with a slash.
    pub path: String,
}

/// How to talk to a server, and what it must prove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Datagrams, and TCP for what does not fit.
    #[default]
    Udp,
    /// Connections only.
    Tcp,
    /// TLS over TCP (RFC 7858).
    Tls(ClientTls),
    /// HTTP/2 over TLS (RFC 8484).
    Https(ClientTls, HttpPlan),
    /// QUIC (RFC 9250).
    Quic(ClientTls),
    /// HTTP/3 over QUIC (RFC 8484).
    Https3(ClientTls, HttpPlan),
    /// DNSCrypt version 2.
    Dnscrypt(DnscryptPlan),
    /// Oblivious messages over HTTP/2 (RFC 9230).
    Odoh {
        /// What the server proves that is connected to: the relay, or the target.
        tls: ClientTls,
        /// What it is asked for.
        http: HttpPlan,
        /// Who alone reads the messages.
        target: Box<OdohPlan>,
    },
}

impl Protocol {
    /// Returns which one it is.
    pub const fn scheme(&self) -> Scheme {
        match self {
            Self::Udp => Scheme::Udp,
            Self::Tcp => Scheme::Tcp,
            Self::Tls(_) => Scheme::Tls,
            Self::Https(..) => Scheme::Https,
            Self::Quic(_) => Scheme::Quic,
            Self::Https3(..) => Scheme::Https3,
            Self::Dnscrypt(_) => Scheme::Dnscrypt,
            Self::Odoh { .. } => Scheme::Odoh,
        }
    }

    /// Returns what the server must prove over TLS.
    pub const fn tls(&self) -> Option<&ClientTls> {
        match self {
            Self::Udp | Self::Tcp | Self::Dnscrypt(_) => None,
            Self::Tls(tls)
            | Self::Https(tls, _)
            | Self::Quic(tls)
            | Self::Https3(tls, _)
            | Self::Odoh { tls, .. } => Some(tls),
        }
    }

    /// Returns whose resolver it must be over DNSCrypt.
    pub const fn dnscrypt(&self) -> Option<&DnscryptPlan> {
        if let Self::Dnscrypt(plan) = self { Some(plan) } else { None }
    }

    /// Returns who alone reads oblivious messages.
    pub fn odoh(&self) -> Option<&OdohPlan> {
        if let Self::Odoh { target, .. } = self { Some(target) } else { None }
    }
}

/// What carries queries to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// UDP, and TCP for what does not fit.
    #[default]
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// HTTP/2 over TLS.
    Https,
    /// QUIC.
    Quic,
    /// HTTP/3 over QUIC.
    Https3,
    /// DNSCrypt; only stamps say so.
    Dnscrypt,
    /// Oblivious messages over HTTP/2, perhaps through a relay.
    Odoh,
}

impl Scheme {
    /// Returns the scheme that a URL begins with; DNSCrypt has none.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "udp" => Some(Self::Udp),
            "tcp" => Some(Self::Tcp),
            "tls" | "dot" => Some(Self::Tls),
            "https" | "doh" => Some(Self::Https),
            "quic" | "doq" => Some(Self::Quic),
            "h3" => Some(Self::Https3),
            "odoh" => Some(Self::Odoh),
            _ => None,
        }
    }

    /// Returns the prefix that says so before an address.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Udp => "",
            Self::Tcp => "tcp://",
            Self::Tls => "tls://",
            Self::Https => "https://",
            Self::Quic => "quic://",
            Self::Https3 => "h3://",
            Self::Dnscrypt => "dnscrypt://",
            Self::Odoh => "odoh://",
        }
    }

    /// Returns what is offered as the application's protocol (ALPN).
    pub fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::Udp | Self::Tcp | Self::Dnscrypt => Vec::new(),
            Self::Tls => vec![b"dot".to_vec()],
            Self::Https | Self::Odoh => vec![b"h2".to_vec()],
            Self::Quic => vec![b"doq".to_vec()],
            Self::Https3 => vec![b"h3".to_vec()],
        }
    }

    /// Returns whether connections are all that is used.
    pub const fn is_connected(self) -> bool {
        !matches!(self, Self::Udp)
    }

    /// Returns the port if none is written.
    pub const fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls | Self::Quic => 853,
            Self::Https | Self::Https3 | Self::Dnscrypt | Self::Odoh => 443,
        }
    }

    /// Returns whether the server must prove who it is by a certificate of TLS.
    pub const fn is_secured(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::Dnscrypt => false,
            Self::Tls | Self::Https | Self::Quic | Self::Https3 | Self::Odoh => true,
        }
    }

    /// Returns the path if none is written; `None` where there are no paths.
    pub const fn path(self) -> Option<&'static str> {
        match self {
            Self::Udp | Self::Tcp | Self::Tls | Self::Quic | Self::Dnscrypt => None,
            // RFC 8484 leaves the path to the server; this is what everybody chose.
            Self::Https | Self::Https3 | Self::Odoh => Some("/dns-query"),
        }
    }
}

/// Connections that one worker keeps to one address of a server, at most.
pub const CONNECTIONS_MAX: usize = 8;

/// How many connections one worker keeps to one address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// This many are opened before anybody asks, and opened again when they end.
    pub min: u8,
    /// At most this many; never more than [`CONNECTIONS_MAX`].
    pub max: u8,
    /// One that has nothing to do is closed after this, in milliseconds, unless it is among the
    /// first `min`.
    pub idle_ms: u32,
}

impl Default for Connections {
    fn default() -> Self {
        Self { min: 0, max: 4, idle_ms: 10_000 }
    }
}

/// What sockets are bound to before they connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bind {
    /// What holds for all servers.
    pub outgoing: Arc<Outgoing>,
    /// The source address, in place of those that hold for all.
    pub source: Option<IpAddr>,
    /// The routing mark (`SO_MARK`; needs `CAP_NET_ADMIN`).
    pub mark: Option<u32>,
    /// The interface (`SO_BINDTODEVICE`).
    pub device: Option<String>,
}
