//! TLS to other servers: what a server must prove, and who we are to it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, ServerName};

use super::identity::Identity;

/// What another server must prove, and how connections to it begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// Its name (or address), which its certificate must bear and which it is told (SNI).
    pub name: ServerName<'static>,
    /// What counts as proof.
    pub proof: Proof,
    /// If there are any, one certificate of a chain that proves it must be among these: SHA-256 of
    /// its TBSCertificate, as in DNS stamps.
    pub certificates: Vec<[u8; 32]>,
    /// Who we are, if the server asks.
    pub identity: Option<Arc<Identity>>,
    /// The application protocols offered (ALPN).
    pub protocols: Vec<Vec<u8>>,
    /// Whether it is told its name (SNI).
    pub sends_name: bool,
    /// Whether queries may leave before the server has answered (TLS 1.3 early data), which
    /// somebody on the way could send again.
    pub early_data: bool,
}

impl ClientTls {
    /// Returns what is demanded of servers whose identity nobody knows: nothing. Such a server is
    /// told no name (SNI): who has one is not known, and who listens would learn it (RFC 9539
    /// §4.6.3.3).
    pub fn of_anybody(protocol: &[u8]) -> Self {
        Self {
            name: ServerName::IpAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED).into()),
            proof: Proof::None,
            certificates: Vec::new(),
            identity: None,
            protocols: vec![protocol.to_vec()],
            sends_name: false,
            early_data: false,
        }
    }

    /// Returns whether it is for servers whose identity nobody knows.
    pub fn is_of_anybody(&self) -> bool {
        matches!(self.name, ServerName::IpAddress(address) if IpAddr::from(address).is_unspecified())
    }

    /// Returns the name of the server at an address: sessions are kept by it.
    pub fn name_at(&self, address: IpAddr) -> ServerName<'static> {
        if self.is_of_anybody() { ServerName::IpAddress(address.into()) } else { self.name.clone() }
    }
}

/// What a server proves its identity with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A valid certificate for the name, from one of these authorities.
    Authorities(Roots),
    /// A valid certificate from one of these authorities, for whatever name.
    Chain(Roots),
    /// The possession of one of these keys: each is the SHA-256 of a SubjectPublicKeyInfo (RFC 7858
    /// §4.2). Nothing else about the certificate counts then, neither names nor dates.
    Keys(Vec<[u8; 32]>),
    /// Nothing: whoever answers is believed.
    None,
}

/// Authorities that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Those that Mozilla trusts, as of when this program was built.
    Mozilla,
    /// These alone.
    Own(Authorities),
}

/// Certificates of authorities, of which at least one can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities(Arc<[CertificateDer<'static>]>);

/// There is no certificate that could be that of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAuthority;

impl fmt::Display for NoAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no certificate of an authority that could be used")
    }
}

impl Authorities {
    /// Checks that one of `certificates` can be that of an authority; the others are left out
    /// where servers are verified.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, NoAuthority> {
        let (usable, _) = RootCertStore::empty().add_parsable_certificates(certificates.iter().cloned());
        if usable == 0 { Err(NoAuthority) } else { Ok(Self(certificates.into())) }
    }

    /// Returns the certificates.
    pub fn certificates(&self) -> &Arc<[CertificateDer<'static>]> {
        &self.0
    }
}

/// Reads what a certificate can be for: a host name or an address.
pub fn tls_name(text: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(text.trim_end_matches('.').to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_certificates() {
        assert_eq!(Authorities::new(Vec::new()), Err(NoAuthority));
        assert_eq!(
            Authorities::new(vec![CertificateDer::from(b"no certificate".to_vec())]),
            Err(NoAuthority)
        );
    }

    #[test]
    fn what_is_demanded_keeps_plans_apart() {
        let plan = |proof, early_data| ClientTls {
            name: tls_name("dns.example").expect("a name"),
            proof,
            certificates: Vec::new(),
            identity: None,
            protocols: vec![b"dot".to_vec()],
            sends_name: true,
            early_data,
        };
        let mozilla = || Proof::Authorities(Roots::Mozilla);
        assert_eq!(plan(mozilla(), false), plan(mozilla(), false));
        assert_ne!(plan(mozilla(), false), plan(mozilla(), true));
        assert_ne!(plan(mozilla(), false), plan(Proof::Keys(vec![[1; 32]]), false));
        assert_ne!(plan(Proof::None, false), plan(Proof::Keys(vec![[1; 32]]), false));
    }
}
