//! The keys that a server signs with (RFC 7517), and the algorithms that we believe (RFC 7518).

use aws_lc_rs::signature as lc;
use serde::Deserialize;

use crate::encoding::unbase64url;

/// Keys of one server.
const KEYS_MAX: usize = 64;
/// Octets of an RSA modulus.
const RSA_OCTETS: std::ops::RangeInclusive<usize> = 256..=1024;

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Jwk>,
}

/// A key as it is written.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The keys of a server.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Jwk>);

/// An algorithm of signatures. Who chooses it is the key, not the token: a token that says `none`,
/// or that takes a public key for a shared secret, finds none here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "RS256" => Self::Rs256,
            "PS256" => Self::Ps256,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" => Self::EdDsa,
            _ => return None,
        })
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// Returns the type and the curve of its keys.
    const fn key(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Rs256 | Self::Ps256 => ("RSA", None),
            Self::Es256 => ("EC", Some("P-256")),
            Self::Es384 => ("EC", Some("P-384")),
            Self::EdDsa => ("OKP", Some("Ed25519")),
        }
    }
}

impl Keys {
    /// Reads a set of keys. Those that are for something else, or of kinds that nobody knows, are
    /// left alone when a signature is checked.
    ///
    /// # Errors
    ///
    /// It is none, or has too many.
    pub fn parse(octets: &[u8]) -> Result<Self, String> {
        let set: KeySet =
            serde_json::from_slice(octets).map_err(|error| format!("these are no keys: {error}"))?;
        match set.keys.len() {
            0 => Err("there are no keys".to_owned()),
            1..=KEYS_MAX => Ok(Self(set.keys)),
            more => Err(format!("there are {more} keys: at most {KEYS_MAX} are looked at")),
        }
    }

    /// Returns the keys that a token may be signed by, by the name that it says.
    pub(crate) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Vec<&Jwk> {
        let (kty, crv) = algorithm.key();
        let fits = |key: &&Jwk| {
            key.kty == kty
                && crv.is_none_or(|crv| key.crv.as_deref() == Some(crv))
                && key.usage.as_deref().is_none_or(|usage| usage == "sig")
                && key.alg.as_deref().is_none_or(|alg| alg == algorithm.word())
                && kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
        };
        self.0.iter().filter(fits).collect()
    }
}

impl Jwk {
    /// Returns whether this key has signed a message.
    pub(crate) fn has_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let of = |field: &Option<String>| field.as_deref().and_then(unbase64url);
        let rsa = |parameters: &'static lc::RsaParameters| {
            let (n, e) = (of(&self.n)?, of(&self.e)?);
            if !RSA_OCTETS.contains(&n.len()) {
                return None;
            }
            lc::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).ok()
        };
        let ec = |algorithm: &'static dyn lc::VerificationAlgorithm, octets: usize| {
            let (x, y) = (of(&self.x)?, of(&self.y)?);
            if x.len() != octets || y.len() != octets {
                return None;
            }
            let point = [&[4], x.as_slice(), &y].concat();
            lc::UnparsedPublicKey::new(algorithm, point).verify(message, signature).ok()
        };
        let is_right = match algorithm {
            Algorithm::Rs256 => rsa(&lc::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::Ps256 => rsa(&lc::RSA_PSS_2048_8192_SHA256),
            Algorithm::Es256 => ec(&lc::ECDSA_P256_SHA256_FIXED, 32),
            Algorithm::Es384 => ec(&lc::ECDSA_P384_SHA384_FIXED, 48),
            Algorithm::EdDsa => of(&self.x).and_then(|key| {
                lc::UnparsedPublicKey::new(&lc::ED25519, key).verify(message, signature).ok()
            }),
        };
        is_right.is_some()
    }
}
