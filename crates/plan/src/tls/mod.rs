//! TLS: who the server is, which versions it speaks, and who signs the certificates of clients;
//! what other servers must prove.

mod certificate;
mod client;
mod identity;
mod pem;
mod pin;

use rustls::RootCertStore;

pub use certificate::CertificateFacts;
pub use client::{Authorities, ClientTls, NoAuthority, Proof, Roots, tls_name};
pub use identity::{Identity, IdentityError};
pub use pem::{Pem, certificates, private_key};
pub use pin::{pin, pin_text};
pub use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Checks that a certificate can be that of an authority.
///
/// # Errors
///
/// What the TLS library cannot read in it.
pub fn check_authority(certificate: &CertificateDer<'static>) -> Result<(), String> {
    RootCertStore::empty().add(certificate.clone()).map_err(|error| error.to_string())
}

/// How the server speaks TLS to clients.
#[derive(Debug)]
pub struct TlsPlan {
    /// Who the server is; the first is for clients that name no server, or one that nobody here is.
    /// Not empty.
    pub identities: Vec<Identity>,
    /// Whether TLS 1.2 is spoken besides TLS 1.3.
    pub speaks_tls12: bool,
    /// The authorities that sign the certificates of clients.
    pub client_roots: Vec<CertificateDer<'static>>,
}
