//! Keys of certificates, and what is signed with them: requests for certificates, and certificates
//! for the handshakes of authorities.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use plan::certificates::{Challenge, Identifier, KeyWord};
use plan::tls::PrivateKeyDer;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, RsaKeySize,
};

/// A key, and the request for its certificate.
pub(crate) struct Requested {
    /// The key in PEM form.
    pub(crate) key_pem: String,
    /// The request in DER form (RFC 2986).
    pub(crate) request: Vec<u8>,
}

/// Makes a key, and a request for a certificate with these names.
pub(crate) fn request(kind: KeyWord, identifiers: &[Identifier]) -> Result<Requested, String> {
    let rsa = |size| KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, size);
    let key = match kind {
        KeyWord::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyWord::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        KeyWord::Rsa2048 => rsa(RsaKeySize::_2048),
        KeyWord::Rsa3072 => rsa(RsaKeySize::_3072),
        KeyWord::Rsa4096 => rsa(RsaKeySize::_4096),
    };
    let made = key.and_then(|key| {
        let mut params =
            CertificateParams::new(identifiers.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&key)?.der().to_vec();
        Ok(Requested { key_pem: key.serialize_pem(), request })
    });
    made.map_err(|error| format!("no key can be made: {error}"))
}

/// Makes the certificate that an authority is to see in a handshake (RFC 8737 §3).
pub(crate) fn handshake(identifier: &Identifier, key_authorization: &str) -> Result<Challenge, String> {
    let made = || -> Result<_, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![identifier.to_string()])?;
        let digest = digest(&SHA256, key_authorization.as_bytes());
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
        let certificate = params.self_signed(&key)?.der().to_vec();
        Ok((certificate, key.serialize_der()))
    };
    let (certificate, key) = made().map_err(|error| format!("no certificate can be made: {error}"))?;
    let server_name = match identifier {
        Identifier::Host(host) => host.clone(),
        Identifier::Address(address) => reverse(*address),
    };
    let key = Arc::new(PrivateKeyDer::Pkcs8(key.into()));
    Ok(Challenge::Handshake { server_name, certificate: certificate.into(), key })
}

/// Returns the name that stands for an address in a handshake (RFC 8738 §6).
fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digits = format!("{:032x}", u128::from(Ipv6Addr::from(address.octets())));
            let labels: Vec<String> = digits.chars().rev().map(String::from).collect();
            format!("{}.ip6.arpa", labels.join("."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_asked_for_by_their_reverse_names() {
        assert_eq!(reverse("192.0.2.1".parse().expect("an address")), "1.2.0.192.in-addr.arpa");
        // RFC 8738 §6.
        let name = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(reverse("2001:db8::1".parse().expect("an address")), name);
    }

    #[test]
    fn each_kind_of_key_can_be_asked_for_a_certificate() {
        let names = [
            Identifier::Host("a.example.org".into()),
            Identifier::Address("192.0.2.1".parse().expect("an address")),
        ];
        for kind in [KeyWord::EcdsaP256, KeyWord::EcdsaP384, KeyWord::Rsa2048] {
            let requested = request(kind, &names).expect("a request");
            assert!(requested.key_pem.contains("PRIVATE KEY") && requested.request.len() > 100, "{kind:?}");
        }
    }
}
