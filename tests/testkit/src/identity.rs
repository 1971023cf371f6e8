//! Who servers claim to be: certificates that are good, or bad in one chosen way.

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, PublicKeyData as _, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;

/// An authority that vouches for servers, and that nobody knows but the tests.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// Makes an authority.
    ///
    /// # Panics
    ///
    /// When the machine has no randomness.
    pub fn new() -> Self {
        Self::named("the authority of the tests")
    }

    /// Makes an authority of this name.
    ///
    /// # Panics
    ///
    /// When the machine has no randomness.
    pub fn named(name: &str) -> Self {
        let mut params = params(&[]);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Returns its certificate, as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Vouches for a server with these names and addresses.
    ///
    /// # Panics
    ///
    /// When one is no name.
    pub fn vouch(&self, names: &[&str]) -> Identity {
        self.sign(&params(names))
    }

    /// The same, until the second day of 2020.
    ///
    /// # Panics
    ///
    /// When one is no name.
    pub fn vouch_until_2020(&self, names: &[&str]) -> Identity {
        let mut params = params(names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 2);
        self.sign(&params)
    }

    /// Vouches for a client called `name`, of an organisation.
    ///
    /// # Panics
    ///
    /// When it is no name.
    pub fn vouch_for_client(&self, name: &str, organisation: &str) -> Identity {
        let mut params = params(&[name]);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, organisation);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Identity { chain: vec![certificate.der().clone()], key }
    }
}

/// A certificate and its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

impl Identity {
    /// Makes a certificate that is its own authority, as `openssl req -x509` does, and the
    /// authority that it is.
    ///
    /// # Panics
    ///
    /// When one is no name.
    pub fn own_authority(names: &[&str]) -> (Authority, Self) {
        let mut params = params(names);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let copy = KeyPair::try_from(key.serialize_der()).expect("the same key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let chain = vec![authority.der().clone()];
        (Authority(authority), Self { chain, key: copy })
    }

    /// Makes one that nobody vouches for.
    ///
    /// # Panics
    ///
    /// When one is no name.
    pub fn self_signed(names: &[&str]) -> Self {
        let key = KeyPair::generate().expect("a key");
        let certificate = params(names).self_signed(&key).expect("a certificate");
        Self { chain: vec![certificate.der().clone()], key }
    }

    /// Returns the hash of its key as settings have it (RFC 7858 §4.2).
    pub fn pin(&self) -> String {
        format!("sha256/{}", base64(&sha256(&self.key.subject_public_key_info())))
    }

    /// Returns a DNS stamp of a DoT server at `address` called `name` that shows this certificate,
    /// or one whose hash says something else.
    pub fn stamp(&self, address: SocketAddr, name: &str, is_right: bool) -> String {
        let der = &self.chain[0];
        // What its issuer signed is the first part of the sequence, after a head of four octets.
        let length = match der[5] {
            0x82 => 4 + usize::from(u16::from_be_bytes([der[6], der[7]])),
            0x81 => 3 + usize::from(der[6]),
            short => 2 + usize::from(short),
        };
        let mut hash = sha256(&der[4..4 + length]);
        hash[0] ^= u8::from(!is_right);
        let address = address.to_string();
        let mut bytes = vec![3, 0, 0, 0, 0, 0, 0, 0, 0];
        for part in [address.as_bytes(), &hash, name.as_bytes()] {
            bytes.push(part.len() as u8);
            bytes.extend(part);
        }
        let text = base64(&bytes).replace('+', "-").replace('/', "_");
        format!("sdns://{}", text.trim_end_matches('='))
    }

    /// Returns the SHA-256 of the certificate, as `openssl x509 -fingerprint` prints it.
    pub fn fingerprint(&self) -> String {
        let octets: Vec<String> = sha256(&self.chain[0]).iter().map(|octet| format!("{octet:02X}")).collect();
        octets.join(":")
    }

    /// Returns the certificate and its key, for a client to show.
    pub(crate) fn for_client(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain.clone(), PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der())))
    }

    /// Returns the certificate and its key, as PEM.
    pub fn pem(&self) -> (String, String) {
        let certificates = self.chain.iter().map(|der| pem("CERTIFICATE", der)).collect();
        (certificates, self.key.serialize_pem())
    }

    /// Returns what a server needs that shows it.
    ///
    /// # Panics
    ///
    /// When certificate and key do not belong together.
    pub fn server(&self) -> Arc<ServerConfig> {
        self.server_for(None)
    }

    /// Returns the same of one that demands a certificate of this authority.
    ///
    /// # Panics
    ///
    /// When certificate and key do not belong together.
    pub fn server_for(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("TLS 1.2 and 1.3");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).expect("an authority");
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("an authority"))
            }
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let mut config =
            builder.with_single_cert(self.chain.clone(), key).expect("the key of the certificate");
        config.alpn_protocols = vec![b"dot".to_vec()];
        Arc::new(config)
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().copied().map(str::to_owned).collect();
    CertificateParams::new(names).expect("names")
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref().to_vec()
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0, |group, i| group << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = ALPHABET[(group >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}
