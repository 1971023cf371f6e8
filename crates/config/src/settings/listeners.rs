//! Where clients' queries are taken, and who the server is to them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use diagnostic::At;
use engine::Transport;
use plan::listeners::LocalPlan;
use wire::Prefix;

use super::TrustedRoots;

values::words! {
    /// What a listener speaks.
    TransportWord {
        /// Datagrams.
        Udp = "udp",
        /// Connections.
        Tcp = "tcp",
        /// DNS over TLS.
        Tls = "tls",
        /// DNS over HTTPS.
        Https = "https",
        /// DNS over HTTP, for a proxy that speaks TLS.
        Http = "http",
        /// DNS over QUIC.
        Quic = "quic",
        /// DNS over HTTP/3.
        H3 = "h3",
    }
}

impl TransportWord {
    /// Returns what queries come over.
    pub const fn transport(self) -> Transport {
        match self {
            Self::Udp => Transport::Udp,
            Self::Tcp => Transport::Tcp,
            Self::Tls => Transport::Tls,
            Self::Https | Self::Http => Transport::Https,
            Self::Quic => Transport::Quic,
            Self::H3 => Transport::H3,
        }
    }

    /// Returns the port that clients expect it on.
    pub const fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls | Self::Quic => 853,
            Self::Https | Self::H3 => 443,
            Self::Http => 80,
        }
    }

    /// Returns whether both can be spoken at one address and port.
    pub const fn goes_with(self, other: Self) -> bool {
        let are_both_quic = matches!((self, other), (Self::Quic, Self::H3) | (Self::H3, Self::Quic));
        self.is_datagrams() != other.is_datagrams() || are_both_quic
    }

    /// Returns whether both are carried by the same protocol, so that two listeners cannot have
    /// them at one address and port.
    pub const fn shares_protocol(self, other: Self) -> bool {
        self.is_datagrams() == other.is_datagrams()
    }

    const fn is_datagrams(self) -> bool {
        match self {
            Self::Udp | Self::Quic | Self::H3 => true,
            Self::Tcp | Self::Tls | Self::Https | Self::Http => false,
        }
    }

    /// Returns whether it is HTTP.
    pub const fn is_http(self) -> bool {
        matches!(self, Self::Https | Self::Http | Self::H3)
    }

    /// Returns whether it takes a certificate.
    pub const fn is_secure(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::Http => false,
            Self::Tls | Self::Https | Self::Quic | Self::H3 => true,
        }
    }
}

values::words! {
    /// Whether clients show certificates.
    ClientCertificateWord {
        /// They are not asked.
        Never = "never",
        /// They may.
        Optional = "optional",
        /// They must.
        Required = "required",
        /// They may, and whatever they show is worth its key.
        Any = "any",
    }
}

values::words! {
    /// The oldest version of TLS that is spoken.
    TlsVersionWord {
        /// TLS 1.2.
        V12 = "1.2",
        /// TLS 1.3.
        V13 = "1.3",
    }
}

/// One address at which queries are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The address and port.
    pub at: At<SocketAddr>,
    /// What conditions call it.
    pub name: Option<At<String>>,
    /// What is spoken there.
    pub speaks: Vec<TransportWord>,
    /// Proxies that tell the client's address.
    pub proxy_protocol_from: Vec<Prefix>,
    /// Paths at which HTTP requests are answered.
    pub paths: Vec<String>,
    /// Proxies that tell the client's address in a header of HTTP.
    pub forwarded_from: Vec<Prefix>,
    /// Whether clients show certificates.
    pub client_certificates: Option<At<ClientCertificateWord>>,
}

/// An oblivious target that messages are carried to.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTarget {
    /// Its name.
    pub host: At<String>,
    /// Its port.
    pub port: u16,
    /// Its address; looked up if `None`.
    pub dial: Option<IpAddr>,
    /// The authorities that may vouch for it.
    pub roots: At<TrustedRoots>,
}

/// A Unix socket where queries are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSocket {
    /// How it is opened and served.
    pub plan: LocalPlan,
    /// What conditions call it.
    pub name: Option<At<String>>,
}

/// Who the server is over TLS, and whom it lets in.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Certificates; the first is for clients that name no server, or one that no certificate has.
    pub certificates: Vec<Certificate>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersionWord,
    /// Whether clients of plain DNS are told of encrypted listeners.
    pub discovery: bool,
    /// Files with the certificates of those who sign for clients; if there are any, clients must
    /// have one, unless a listener says otherwise.
    pub client_ca: Vec<At<PathBuf>>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The file with the chain, the server's own first.
    pub chain: At<PathBuf>,
    /// The file with the private key; may be the same.
    pub key: At<PathBuf>,
}
