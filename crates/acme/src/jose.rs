//! Signed requests (RFC 7515, RFC 8555 §6.2), and the keys that sign them.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// Octets of a coordinate of P-256.
const COORDINATE_OCTETS: usize = 32;

/// Returns base64url without padding (RFC 7515 §2).
pub(crate) fn base64url(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    // Writing to a text does not fail.
    let _ = wire::text::write_base64(&mut text, octets);
    text.chars()
        .filter(|letter| *letter != '=')
        .map(|letter| match letter {
            '+' => '-',
            '/' => '_',
            other => other,
        })
        .collect()
}

/// The key of an account: ECDSA with P-256, which every authority knows (RFC 8555 §6.2).
pub(crate) struct AccountKey {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

impl AccountKey {
    pub(crate) fn generate() -> Result<Self, String> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::read(made.map_err(|_| "no key can be made")?.as_ref())
    }

    /// Reads a key in the form of PKCS#8.
    pub(crate) fn read(pkcs8: &[u8]) -> Result<Self, String> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8);
        let pair = pair.map_err(|error| format!("the account's key cannot be read: {error}"))?;
        Ok(Self { pair, pkcs8: pkcs8.to_vec() })
    }

    /// Returns the key in the form of PKCS#8.
    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// Returns the coordinates of the public key, in base64url.
    fn coordinates(&self) -> (String, String) {
        // An uncompressed point: a tag, x and y.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or(&[]).split_at_checked(COORDINATE_OCTETS).unwrap_or_default();
        (base64url(x), base64url(y))
    }

    /// Returns the public key (RFC 7518 §6.2).
    pub(crate) fn public(&self) -> Value {
        let (x, y) = self.coordinates();
        json!({"crv": "P-256", "kty": "EC", "x": x, "y": y})
    }

    /// Returns what challenges name the key by (RFC 7638).
    pub(crate) fn thumbprint(&self) -> String {
        let (x, y) = self.coordinates();
        let text = format!("{{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"{x}\",\"y\":\"{y}\"}}");
        base64url(digest(&SHA256, text.as_bytes()).as_ref())
    }

    /// Signs a request; without a payload it asks for what there is (RFC 8555 §6.3).
    pub(crate) fn sign(&self, mut header: Value, payload: Option<&Value>) -> Result<Value, String> {
        header["alg"] = "ES256".into();
        seal(&header, payload, |text| {
            let signature = self.pair.sign(&SystemRandom::new(), text);
            signature.map(|octets| octets.as_ref().to_vec()).map_err(|_| "nothing can be signed".to_owned())
        })
    }

    /// Binds the account to one elsewhere (RFC 8555 §7.3.4).
    pub(crate) fn bound(&self, key_id: &str, secret: &[u8], url: &str) -> Result<Value, String> {
        let header = json!({"alg": "HS256", "kid": key_id, "url": url});
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        seal(&header, Some(&self.public()), |text| Ok(hmac::sign(&key, text).as_ref().to_vec()))
    }
}

fn seal(
    header: &Value,
    payload: Option<&Value>,
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<Value, String> {
    let protected = base64url(header.to_string().as_bytes());
    let payload = payload.map(|payload| base64url(payload.to_string().as_bytes())).unwrap_or_default();
    let mut text = protected.clone();
    let _ = write!(text, ".{payload}");
    let signature = base64url(&sign(text.as_bytes())?);
    Ok(json!({"protected": protected, "payload": payload, "signature": signature}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    fn octets(text: &str) -> Vec<u8> {
        let mut octets = Vec::new();
        wire::text::read_base64url(text.as_bytes(), &mut octets).expect("base64url");
        octets
    }

    #[test]
    fn base64url_is_that_of_rfc_7515() {
        // RFC 7515 appendix C.
        assert_eq!(base64url(&[3, 236, 255, 224, 193]), "A-z_4ME");
        assert_eq!(base64url(&[]), "");
    }

    #[test]
    fn what_is_signed_can_be_verified_with_the_public_key() {
        let key = AccountKey::generate().expect("a key");
        let key = AccountKey::read(key.pkcs8()).expect("the same");
        let signed = key.sign(json!({"nonce": "n", "url": "u"}), Some(&json!({"a": 1}))).expect("signed");
        let part = |name: &str| signed[name].as_str().expect("a text").to_owned();
        let header: Value = serde_json::from_slice(&octets(&part("protected"))).expect("JSON");
        assert_eq!(header, json!({"alg": "ES256", "nonce": "n", "url": "u"}));
        assert_eq!(octets(&part("payload")), br#"{"a":1}"#);
        let point = key.pair.public_key().as_ref();
        let text = format!("{}.{}", part("protected"), part("payload"));
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        public.verify(text.as_bytes(), &octets(&part("signature"))).expect("the signature is right");
        assert_eq!(key.sign(json!({}), None).expect("signed")["payload"], "");
    }
}
