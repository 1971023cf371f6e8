//! TLS: who the server is, which versions it speaks, and who signs the certificates of clients;
//! what other servers must prove.

mod certificate;
mod client;
mod identity;
mod pem;
mod pin;

use rustls::{CipherSuite, RootCertStore};

use crate::Secret;

pub use certificate::{CertificateFacts, renewal_id};
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
    /// Cipher suites that are offered; empty: all.
    pub suites: Vec<SuiteWord>,
    /// Keys of session tickets that other servers have, too, [`TICKET_KEY_OCTETS`] each: the first
    /// makes them. Empty: the server makes its own.
    pub ticket_keys: Vec<Secret>,
}

/// Octets of a key of session tickets: a name of 16, and 64 that are secret, as OpenSSL has them.
pub const TICKET_KEY_OCTETS: usize = 80;

values::words! {
    /// A cipher suite, by its name at IANA.
    SuiteWord {
        /// Of TLS 1.3.
        Aes256 = "TLS_AES_256_GCM_SHA384",
        /// Of TLS 1.3.
        Aes128 = "TLS_AES_128_GCM_SHA256",
        /// Of TLS 1.3.
        Chacha = "TLS_CHACHA20_POLY1305_SHA256",
        /// Of TLS 1.2.
        EcdsaAes256 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        /// Of TLS 1.2.
        EcdsaAes128 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        /// Of TLS 1.2.
        EcdsaChacha = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        /// Of TLS 1.2.
        RsaAes256 = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        /// Of TLS 1.2.
        RsaAes128 = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        /// Of TLS 1.2.
        RsaChacha = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    }
}

impl SuiteWord {
    /// Returns the suite.
    pub const fn suite(self) -> CipherSuite {
        match self {
            Self::Aes256 => CipherSuite::TLS13_AES_256_GCM_SHA384,
            Self::Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
            Self::Chacha => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
            Self::EcdsaAes256 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            Self::EcdsaAes128 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            Self::EcdsaChacha => CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            Self::RsaAes256 => CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            Self::RsaAes128 => CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            Self::RsaChacha => CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        }
    }

    /// Returns whether it is one of TLS 1.3.
    pub const fn is_tls13(self) -> bool {
        matches!(self, Self::Aes256 | Self::Aes128 | Self::Chacha)
    }
}
