//! Where clients' queries are taken, and who the server is to them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use diagnostic::At;
use plan::listeners::{ClientCertificates, LocalPlan, TransportWord};
use plan::tls::SuiteWord;
use schema::{DeviceFamilyWord, TlsVersionWord};
use wire::NameBuf;
use wire::Prefix;

use super::TrustedRoots;

/// A network device whose addresses are listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenDevice {
    /// Its name.
    pub name: String,
    /// Which of its addresses are meant.
    pub family: DeviceFamilyWord,
    /// Whether it was looked up. Until then nobody listens, and [`Listener::at`] has the port
    /// alone.
    pub is_found: bool,
}

/// One address at which queries are taken, or a device until it was looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The address and port.
    pub at: At<SocketAddr>,
    /// The device that it is an address of, if the configuration names that.
    pub device: Option<ListenDevice>,
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
    pub client_certificates: Option<At<ClientCertificates>>,
}

impl Listener {
    /// Returns whether its sockets are known.
    pub fn is_found(&self) -> bool {
        self.device.as_ref().is_none_or(|device| device.is_found)
    }

    /// Returns whether this and `other` would be one socket. Port 0 asks the system for any free
    /// port: two of those are two sockets. Nor is there a clash between UDP and TCP.
    pub fn clashes(&self, other: &Self) -> bool {
        let device = |it: &Self| it.device.as_ref().filter(|it| !it.is_found).map(|it| it.name.clone());
        let mut pairs = self.speaks.iter().flat_map(|one| other.speaks.iter().map(move |two| (one, two)));
        other.at.value == self.at.value
            && device(other) == device(self)
            && self.at.value.port() != 0
            && pairs.any(|(one, two)| one.shares_protocol(*two))
    }

    /// Returns where it is, as the configuration has it.
    pub fn place(&self) -> String {
        let port = self.at.value.port();
        match &self.device {
            Some(ListenDevice { name, family: DeviceFamilyWord::Any, .. }) => format!("{name}@{port}"),
            Some(ListenDevice { name, family, .. }) => format!("{name}@{port} ({})", family.word()),
            None => self.at.value.to_string(),
        }
    }
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
    /// Cipher suites that are offered; none: all.
    pub ciphers: Vec<SuiteWord>,
    /// Whether clients of plain DNS are told of encrypted listeners.
    pub discovery: bool,
    /// Files with the certificates of those who sign for clients; if there are any, clients must
    /// have one, unless a listener says otherwise.
    pub client_ca: Vec<At<PathBuf>>,
    /// Files with keys of session tickets.
    pub ticket_keys: Vec<At<PathBuf>>,
}

/// Who the server is over DNSCrypt.
#[derive(Clone, Debug, PartialEq)]
pub struct Dnscrypt {
    /// The provider's name.
    pub provider: Option<At<NameBuf>>,
    /// Files with secret keys.
    pub keys: Vec<At<PathBuf>>,
    /// Files with certificates that clients are given.
    pub certificates: Vec<At<PathBuf>>,
    /// Files with certificates that were replaced.
    pub rotated: Vec<At<PathBuf>>,
    /// Octets for keys agreed on with clients.
    pub agreed_octets: u64,
    /// Octets for what is known of queries.
    pub replay_octets: u64,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The file with the chain, the server's own first.
    pub chain: At<PathBuf>,
    /// The file with the private key; may be the same.
    pub key: At<PathBuf>,
}
