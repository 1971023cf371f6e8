//! Files with certificates and keys, taken apart (RFC 7468).

use rustls::pki_types::pem::{PemObject as _, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A file in PEM form, taken apart.
pub struct Pem {
    sections: Vec<(SectionKind, Vec<u8>)>,
    has_locked_key: bool,
}

impl Pem {
    /// Takes a file apart; an error is the line before what is not PEM.
    pub fn parse(octets: &[u8]) -> Result<Self, usize> {
        let mut sections = Vec::new();
        let mut iterator = <(SectionKind, Vec<u8>)>::pem_slice_iter(octets);
        loop {
            let at = octets.len() - iterator.remainder().len();
            match iterator.next() {
                Some(Ok(section)) => sections.push(section),
                Some(Err(_)) => {
                    let before = octets.get(..at).unwrap_or(&[]);
                    return Err(before.iter().filter(|&&octet| octet == b'\n').count() + 1);
                }
                None => break,
            }
        }
        let has_locked_key = octets.windows(9).any(|text| text == b"ENCRYPTED");
        Ok(Self { sections, has_locked_key })
    }

    /// Returns what is in it, for a person.
    pub fn content(&self) -> String {
        let count =
            |kind: &dyn Fn(&SectionKind) -> bool| self.sections.iter().filter(|(it, _)| kind(it)).count();
        let certificates = count(&|kind| *kind == SectionKind::Certificate);
        let keys = count(&is_key);
        match (certificates, keys) {
            (0, 0) => "holds neither certificates nor keys in PEM form".to_owned(),
            (0, _) => "holds a private key only".to_owned(),
            (1, 0) => "holds a certificate only".to_owned(),
            (_, 0) => format!("holds {certificates} certificates only"),
            (_, _) => "holds both".to_owned(),
        }
    }

    /// Returns whether a private key in it is locked with a password.
    pub fn has_locked_key(&self) -> bool {
        self.has_locked_key
    }

    /// Returns the certificates, in order.
    pub fn certificates(self) -> Vec<CertificateDer<'static>> {
        let certificates = self.sections.into_iter().filter(|(kind, _)| *kind == SectionKind::Certificate);
        certificates.map(|(_, der)| CertificateDer::from(der)).collect()
    }

    /// Returns the first private key.
    pub fn key(self) -> Option<PrivateKeyDer<'static>> {
        let (kind, der) = self.sections.into_iter().find(|(kind, _)| is_key(kind))?;
        PrivateKeyDer::from_pem(kind, der)
    }
}

fn is_key(kind: &SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}

/// Reads the certificates in a PEM file; what is not one is left out.
pub fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

/// Reads the first private key in a PEM file.
pub fn private_key(pem: &[u8]) -> Option<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem).ok()
}
