//! Private keys: made, taken apart, put together, signed with. Nothing here prints one.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use aws_lc_rs::encoding::{AsBigEndian, AsDer, Curve25519SeedBin, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeyPairComponents, KeySize as LcKeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaEncoding, RsaPublicKeyComponents,
};
use ed448_goldilocks::SigningKey as Ed448Key;
use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::der::{self, Der};
use crate::dnskey::{Dnskey, RsaParts, ZONE_KEY};
use crate::parsed::verify_octets;
use crate::rsa::{BITS_MIN, SmallRsa};

/// Bits of RSA keys that are signed with.
const RSA_BITS: std::ops::RangeInclusive<usize> = BITS_MIN..=8192;
/// Bits of the smallest RSA key that is not weak, and that the library signs with.
const RSA_BITS_SOUND: usize = 2048;

/// Why a private key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Keys of this algorithm are not signed with here.
    Algorithm(Algorithm),
    /// The key is of another algorithm than the one given.
    OtherAlgorithm,
    /// The octets are no key, or their parts do not fit together.
    Malformed,
    /// An RSA key of fewer than 1024 or more than 8192 bits.
    Size,
    /// The private key does not belong to the public one.
    OtherPublicKey,
    /// The machine has no randomness, or the library refused.
    Machine,
    /// The private part was asked for, and its holder does not give it away.
    Held,
    /// The holder does not sign; why, in words that say where the key is.
    Holder(Box<str>),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Algorithm(algorithm) => {
                write!(f, "algorithm {algorithm} is not supported, expected 8, 10, 13, 14, 15 or 16")
            }
            Self::OtherAlgorithm => f.write_str("the key is one of another algorithm"),
            Self::Malformed => f.write_str("the private key cannot be read"),
            Self::Size => f.write_str("an RSA key needs 1024 to 8192 bits"),
            Self::OtherPublicKey => f.write_str("the private key does not belong to the public key"),
            Self::Machine => f.write_str("the machine could not make a key"),
            Self::Held => f.write_str("the private key stays in its token, which does not give it away"),
            Self::Holder(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unusable {}

/// How large a new RSA key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySize {
    /// 2048 bits.
    Bits2048,
    /// 3072 bits.
    Bits3072,
    /// 4096 bits.
    Bits4096,
}

impl KeySize {
    /// Returns the size with this number of bits.
    pub const fn of_bits(bits: u32) -> Option<Self> {
        match bits {
            2048 => Some(Self::Bits2048),
            3072 => Some(Self::Bits3072),
            4096 => Some(Self::Bits4096),
            _ => None,
        }
    }
}

/// Signs with a private key that nobody else sees, such as a hardware module does.
pub trait Holder: Send + Sync {
    /// Signs `input` and returns the signature in the form that RRSIG has.
    ///
    /// For RSA, `input` is a `DigestInfo` that the holder pads (RFC 8017 §9.2, RSASSA-PKCS1-v1_5);
    /// for ECDSA it is a digest, for EdDSA the message itself.
    fn sign(&self, input: &[u8]) -> Result<Vec<u8>, Unusable>;

    /// Returns where the key is, in a form that finds it again. Files and messages show it, so
    /// nothing in it is secret.
    fn place(&self) -> &str;
}

/// The numbers of an RSA key (RFC 8017 §3), big-endian, wiped when dropped.
#[derive(Clone)]
pub(crate) struct RsaNumbers {
    pub(crate) modulus: Vec<u8>,
    pub(crate) public_exponent: Vec<u8>,
    pub(crate) private_exponent: Zeroizing<Vec<u8>>,
    pub(crate) prime_1: Zeroizing<Vec<u8>>,
    pub(crate) prime_2: Zeroizing<Vec<u8>>,
    pub(crate) exponent_1: Zeroizing<Vec<u8>>,
    pub(crate) exponent_2: Zeroizing<Vec<u8>>,
    pub(crate) coefficient: Zeroizing<Vec<u8>>,
}

impl RsaNumbers {
    /// Reads an `RSAPrivateKey` (RFC 8017 A.1.2).
    fn parse(pkcs1: &[u8]) -> Option<Self> {
        let mut numbers = Der::new(pkcs1).sequence()?;
        let mut next = || numbers.integer().map(<[u8]>::to_vec);
        // Version 0: two primes.
        if !next()?.is_empty() {
            return None;
        }
        Some(Self {
            modulus: next()?,
            public_exponent: next()?,
            private_exponent: Zeroizing::new(next()?),
            prime_1: Zeroizing::new(next()?),
            prime_2: Zeroizing::new(next()?),
            exponent_1: Zeroizing::new(next()?),
            exponent_2: Zeroizing::new(next()?),
            coefficient: Zeroizing::new(next()?),
        })
    }
}

impl RsaNumbers {
    /// Writes an `RSAPrivateKey` (RFC 8017 A.1.2).
    fn write(&self) -> Zeroizing<Vec<u8>> {
        der::value(der::SEQUENCE, |out| {
            der::push_integer(out, &[]);
            der::push_integer(out, &self.modulus);
            der::push_integer(out, &self.public_exponent);
            let private = [
                &self.private_exponent,
                &self.prime_1,
                &self.prime_2,
                &self.exponent_1,
                &self.exponent_2,
                &self.coefficient,
            ];
            private.iter().for_each(|number| der::push_integer(out, number));
        })
    }
}

/// The private part of a key, as files hold it.
pub(crate) enum Parts {
    Rsa(RsaNumbers),
    /// The private scalar of an elliptic curve, or the seed of an EdDSA key: as many octets as the
    /// curve has.
    Scalar(Zeroizing<Vec<u8>>),
}

enum Pair {
    Rsa(RsaKeyPair),
    /// One of fewer bits than the library takes.
    SmallRsa(Box<SmallRsa>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Ed448(Box<Ed448Key>),
    Held(Arc<dyn Holder>),
}

/// A private key and its algorithm.
pub struct SecretKey {
    algorithm: Algorithm,
    pair: Pair,
    /// The key field of its DNSKEY.
    public: Box<[u8]>,
}

impl fmt::Debug for SecretKey {
    /// Says the algorithm and nothing else.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.algorithm)
    }
}

fn curve_of(algorithm: Algorithm) -> Option<(&'static EcdsaSigningAlgorithm, usize)> {
    match algorithm {
        Algorithm::ECDSAP256SHA256 => Some((&ECDSA_P256_SHA256_FIXED_SIGNING, 32)),
        Algorithm::ECDSAP384SHA384 => Some((&ECDSA_P384_SHA384_FIXED_SIGNING, 48)),
        _ => None,
    }
}

impl SecretKey {
    /// Makes a new key. `size` is only looked at for RSA.
    pub fn generate(algorithm: Algorithm, size: KeySize) -> Result<Self, Unusable> {
        let machine = |_| Unusable::Machine;
        let pair = match algorithm {
            Algorithm::RSASHA256 | Algorithm::RSASHA512 => {
                let size = match size {
                    KeySize::Bits2048 => LcKeySize::Rsa2048,
                    KeySize::Bits3072 => LcKeySize::Rsa3072,
                    KeySize::Bits4096 => LcKeySize::Rsa4096,
                };
                Pair::Rsa(RsaKeyPair::generate(size).map_err(machine)?)
            }
            Algorithm::ED25519 => Pair::Ed25519(Ed25519KeyPair::generate().map_err(machine)?),
            Algorithm::ED448 => {
                let mut seed = Zeroizing::new([0; 57]);
                rand::fill(seed.as_mut_slice()).map_err(machine)?;
                return Self::from_scalar(algorithm, seed.as_slice(), None);
            }
            _ => {
                let (curve, _) = curve_of(algorithm).ok_or(Unusable::Algorithm(algorithm))?;
                Pair::Ecdsa(EcdsaKeyPair::generate(curve).map_err(machine)?)
            }
        };
        Self::of_pair(algorithm, pair)
    }

    /// Takes a key whose private part `holder` has. `public` is the key field of its DNSKEY.
    ///
    /// The holder is not asked: that it has this very key shows when it signs.
    pub fn held(algorithm: Algorithm, public: &[u8], holder: Arc<dyn Holder>) -> Result<Self, Unusable> {
        let is_whole = match algorithm {
            Algorithm::RSASHA256 | Algorithm::RSASHA512 => {
                let parts = RsaParts::parse(public).ok_or(Unusable::Malformed)?;
                if !RSA_BITS.contains(&(parts.modulus.len() * 8)) {
                    return Err(Unusable::Size);
                }
                true
            }
            Algorithm::ECDSAP256SHA256 => public.len() == 64,
            Algorithm::ECDSAP384SHA384 => public.len() == 96,
            Algorithm::ED25519 => public.len() == 32,
            Algorithm::ED448 => public.len() == 57,
            _ => return Err(Unusable::Algorithm(algorithm)),
        };
        if !is_whole {
            return Err(Unusable::Malformed);
        }
        Ok(Self { algorithm, pair: Pair::Held(holder), public: public.into() })
    }

    fn of_pair(algorithm: Algorithm, pair: Pair) -> Result<Self, Unusable> {
        let public = match &pair {
            Pair::SmallRsa(small) => {
                let numbers = small.numbers();
                RsaParts { exponent: &numbers.public_exponent, modulus: &numbers.modulus }.write()
            }
            Pair::Rsa(pair) => {
                let mut numbers =
                    Der::new(pair.public_key().as_ref()).sequence().ok_or(Unusable::Malformed)?;
                let modulus = numbers.integer().ok_or(Unusable::Malformed)?;
                let exponent = numbers.integer().ok_or(Unusable::Malformed)?;
                RsaParts { exponent, modulus }.write()
            }
            // RFC 6605 §4: without the octet that says how the point is written.
            Pair::Ecdsa(pair) => pair.public_key().as_ref().get(1..).unwrap_or(&[]).to_vec(),
            Pair::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed448(key) => key.verifying_key().to_bytes().as_slice().to_vec(),
            Pair::Held(_) => return Err(Unusable::Held),
        };
        Ok(Self { algorithm, pair, public: public.into_boxed_slice() })
    }

    /// Puts an RSA key together.
    pub(crate) fn from_rsa(algorithm: Algorithm, numbers: RsaNumbers) -> Result<Self, Unusable> {
        if !algorithm.is_rsa() {
            return Err(Unusable::OtherAlgorithm);
        }
        let bits = numbers.modulus.len() * 8;
        if !RSA_BITS.contains(&bits) {
            return Err(Unusable::Size);
        }
        if bits < RSA_BITS_SOUND {
            let small = SmallRsa::new(numbers).ok_or(Unusable::Malformed)?;
            let key = Self::of_pair(algorithm, Pair::SmallRsa(Box::new(small)))?;
            // The parts were not compared with each other: a signature shows whether they fit.
            let mut signature = Vec::new();
            key.sign(&[], &mut signature).map_err(|_| Unusable::Malformed)?;
            return Ok(key);
        }
        let components = KeyPairComponents {
            public_key: RsaPublicKeyComponents {
                n: numbers.modulus.as_slice(),
                e: numbers.public_exponent.as_slice(),
            },
            d: numbers.private_exponent.as_slice(),
            p: numbers.prime_1.as_slice(),
            q: numbers.prime_2.as_slice(),
            dP: numbers.exponent_1.as_slice(),
            dQ: numbers.exponent_2.as_slice(),
            qInv: numbers.coefficient.as_slice(),
        };
        let pair = RsaKeyPair::from_components(&components).map_err(|_| Unusable::Malformed)?;
        Self::of_pair(algorithm, Pair::Rsa(pair))
    }

    /// Puts a key of a curve together. ECDSA needs the public key, the key field of a DNSKEY, too.
    pub(crate) fn from_scalar(
        algorithm: Algorithm,
        scalar: &[u8],
        public: Option<&[u8]>,
    ) -> Result<Self, Unusable> {
        let pair = match algorithm {
            Algorithm::ED25519 if scalar.len() == 32 => {
                Pair::Ed25519(Ed25519KeyPair::from_seed_unchecked(scalar).map_err(|_| Unusable::Malformed)?)
            }
            Algorithm::ED448 => {
                Pair::Ed448(Box::new(Ed448Key::try_from(scalar).map_err(|_| Unusable::Malformed)?))
            }
            _ => {
                let (curve, octets) = curve_of(algorithm).ok_or(Unusable::Algorithm(algorithm))?;
                // Old writers leave leading zeros out.
                let lacking = octets.checked_sub(scalar.len()).ok_or(Unusable::Malformed)?;
                let padded = Zeroizing::new([&vec![0; lacking], scalar].concat());
                let point = [&[4], public.ok_or(Unusable::Malformed)?].concat();
                let pair = EcdsaKeyPair::from_private_key_and_public_key(curve, &padded, &point)
                    .map_err(|_| Unusable::OtherPublicKey)?;
                Pair::Ecdsa(pair)
            }
        };
        let key = Self::of_pair(algorithm, pair)?;
        match public {
            Some(public) if public != &*key.public => Err(Unusable::OtherPublicKey),
            _ => Ok(key),
        }
    }

    /// Reads a key in one of the forms that PEM files hold: PKCS#8, `RSAPrivateKey` or
    /// `ECPrivateKey`. RSA keys do not say their algorithm, so `algorithm` does; that of others
    /// must agree with it, if it is given.
    pub fn from_der(octets: &[u8], algorithm: Option<Algorithm>) -> Result<Self, Unusable> {
        const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
        const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
        const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
        const P384: &[u8] = &[0x2b, 0x81, 0x04, 0, 0x22];
        const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
        const ED448: &[u8] = &[0x2b, 0x65, 0x71];
        let agreed = |found: Algorithm| match algorithm {
            Some(said) if said != found => Err(Unusable::OtherAlgorithm),
            _ => Ok(found),
        };
        let ecdsa = |curve: &[u8]| match curve {
            P256 => agreed(Algorithm::ECDSAP256SHA256),
            P384 => agreed(Algorithm::ECDSAP384SHA384),
            _ => Err(Unusable::OtherAlgorithm),
        };
        let from_ec = |curve: &[u8]| {
            let algorithm = ecdsa(curve)?;
            let (signing, _) = curve_of(algorithm).ok_or(Unusable::Malformed)?;
            let pair =
                EcdsaKeyPair::from_private_key_der(signing, octets).map_err(|_| Unusable::Malformed)?;
            Self::of_pair(algorithm, Pair::Ecdsa(pair))
        };
        let mut fields = Der::new(octets).sequence().ok_or(Unusable::Malformed)?;
        let version = fields.integer().ok_or(Unusable::Malformed)?;
        let (tag, content) = fields.next_value().ok_or(Unusable::Malformed)?;
        match tag {
            der::SEQUENCE => {
                let mut identifier = Der::new(content);
                let kind = identifier.expect(der::OBJECT).ok_or(Unusable::Malformed)?;
                let key = fields.expect(der::OCTET_STRING).ok_or(Unusable::Malformed)?;
                match kind {
                    RSA => Self::from_rsa(
                        algorithm.unwrap_or(Algorithm::RSASHA256),
                        RsaNumbers::parse(key).ok_or(Unusable::Malformed)?,
                    ),
                    EC => from_ec(identifier.expect(der::OBJECT).ok_or(Unusable::Malformed)?),
                    ED25519 | ED448 => {
                        let found = if kind == ED25519 { Algorithm::ED25519 } else { Algorithm::ED448 };
                        let seed = Der::new(key).expect(der::OCTET_STRING).ok_or(Unusable::Malformed)?;
                        Self::from_scalar(agreed(found)?, seed, None)
                    }
                    _ => Err(Unusable::OtherAlgorithm),
                }
            }
            // RFC 5915: the curve follows the key, in brackets of its own.
            der::OCTET_STRING if version == [1] => {
                let (_, curve) =
                    fields.next_value().filter(|&(tag, _)| tag == 0xa0).ok_or(Unusable::Malformed)?;
                from_ec(Der::new(curve).expect(der::OBJECT).ok_or(Unusable::Malformed)?)
            }
            der::INTEGER => Self::from_rsa(
                algorithm.unwrap_or(Algorithm::RSASHA256),
                RsaNumbers::parse(octets).ok_or(Unusable::Malformed)?,
            ),
            _ => Err(Unusable::Malformed),
        }
    }

    /// Returns the key in PKCS#8 (RFC 5208), version 1.
    pub fn to_pkcs8(&self) -> Result<Zeroizing<Vec<u8>>, Unusable> {
        let machine = |_| Unusable::Machine;
        Ok(match &self.pair {
            Pair::Rsa(pair) => {
                let document: Pkcs8V1Der<'_> = pair.as_der().map_err(machine)?;
                Zeroizing::new(document.as_ref().to_vec())
            }
            // RFC 8017 A.1: rsaEncryption, whose parameters are NULL.
            Pair::SmallRsa(small) => der::value(der::SEQUENCE, |out| {
                const RSA_ENCRYPTION: &[u8] =
                    &[der::OBJECT, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
                der::push_integer(out, &[]);
                der::push(out, der::SEQUENCE, RSA_ENCRYPTION);
                der::push(out, der::OCTET_STRING, &small.numbers().write());
            }),
            Pair::Ecdsa(pair) => Zeroizing::new(pair.to_pkcs8v1().map_err(machine)?.as_ref().to_vec()),
            Pair::Ed25519(pair) => Zeroizing::new(pair.to_pkcs8v1().map_err(machine)?.as_ref().to_vec()),
            // RFC 8410 §7.
            Pair::Ed448(key) => der::value(der::SEQUENCE, |out| {
                der::push_integer(out, &[]);
                der::push(out, der::SEQUENCE, &[der::OBJECT, 3, 0x2b, 0x65, 0x71]);
                let seed = der::value(der::OCTET_STRING, |out| out.extend(key.as_bytes().as_slice()));
                der::push(out, der::OCTET_STRING, &seed);
            }),
            Pair::Held(_) => return Err(Unusable::Held),
        })
    }

    /// Returns the private part as files hold it.
    pub(crate) fn parts(&self) -> Result<Parts, Unusable> {
        let machine = |_| Unusable::Machine;
        Ok(match &self.pair {
            Pair::Rsa(pair) => {
                let document: Pkcs8V1Der<'_> = pair.as_der().map_err(machine)?;
                let numbers = Der::new(document.as_ref()).sequence().and_then(|mut fields| {
                    fields.integer()?;
                    fields.sequence()?;
                    RsaNumbers::parse(fields.expect(der::OCTET_STRING)?)
                });
                Parts::Rsa(numbers.ok_or(Unusable::Machine)?)
            }
            Pair::SmallRsa(small) => Parts::Rsa(small.numbers().clone()),
            Pair::Ecdsa(pair) => {
                let scalar: EcPrivateKeyBin<'_> = pair.private_key().as_be_bytes().map_err(machine)?;
                Parts::Scalar(Zeroizing::new(scalar.as_ref().to_vec()))
            }
            Pair::Ed25519(pair) => {
                let seed = pair.seed().map_err(machine)?;
                let seed: Curve25519SeedBin<'_> = seed.as_be_bytes().map_err(machine)?;
                Parts::Scalar(Zeroizing::new(seed.as_ref().to_vec()))
            }
            Pair::Ed448(key) => Parts::Scalar(Zeroizing::new(key.as_bytes().as_slice().to_vec())),
            Pair::Held(_) => return Err(Unusable::Held),
        })
    }

    /// Returns where the private part is, if somebody else holds it.
    pub fn place(&self) -> Option<&str> {
        match &self.pair {
            Pair::Held(holder) => Some(holder.place()),
            _ => None,
        }
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the key field of the DNSKEY.
    pub const fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the data of the DNSKEY with these flags.
    pub fn dnskey(&self, flags: u16) -> Vec<u8> {
        Dnskey::write(flags, self.algorithm, &self.public)
    }

    /// Returns the bits of an RSA key's modulus, or of the curve.
    pub fn bits(&self) -> usize {
        match self.algorithm {
            Algorithm::ED25519 => 256,
            Algorithm::ED448 => 456,
            algorithm if algorithm.is_rsa() => {
                RsaParts::parse(&self.public).map_or(0, |parts| parts.modulus.len() * 8)
            }
            _ => self.public.len() * 4,
        }
    }

    /// Returns whether it is an RSA key of fewer bits than anybody should still use (NIST SP 800-57
    /// part 1, table 2).
    pub fn is_small(&self) -> bool {
        self.algorithm.is_rsa() && self.bits() < RSA_BITS_SOUND
    }

    /// Returns what a holder is given to sign.
    fn input(&self, message: &[u8]) -> Vec<u8> {
        // RFC 8017 §9.2, note 1.
        const SHA256: &[u8] = &[
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05,
            0x00, 0x04, 0x20,
        ];
        const SHA512: &[u8] = &[
            0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05,
            0x00, 0x04, 0x40,
        ];
        let digest = |algorithm| digest::digest(algorithm, message);
        match self.algorithm {
            Algorithm::RSASHA256 => [SHA256, digest(&digest::SHA256).as_ref()].concat(),
            Algorithm::RSASHA512 => [SHA512, digest(&digest::SHA512).as_ref()].concat(),
            Algorithm::ECDSAP256SHA256 => digest(&digest::SHA256).as_ref().to_vec(),
            Algorithm::ECDSAP384SHA384 => digest(&digest::SHA384).as_ref().to_vec(),
            _ => message.to_vec(),
        }
    }

    /// Appends the signature over `message`, in the form that RRSIG has.
    pub fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Unusable> {
        let machine = |_| Unusable::Machine;
        let random = SystemRandom::new();
        match &self.pair {
            Pair::SmallRsa(small) => {
                let signature = small.sign(&self.input(message)).ok_or(Unusable::Machine)?;
                // RFC 8017 §3 knows of no check, but one wrong signature gives a prime away.
                let rdata = self.dnskey(ZONE_KEY);
                let is_right = Dnskey::parse(&rdata)
                    .is_some_and(|dnskey| verify_octets(dnskey, message, &signature).is_ok());
                if !is_right {
                    return Err(Unusable::Machine);
                }
                out.extend(signature);
            }
            Pair::Rsa(pair) => {
                let padding: &'static dyn RsaEncoding = match self.algorithm {
                    Algorithm::RSASHA512 => &RSA_PKCS1_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let start = out.len();
                out.resize(start + pair.public_modulus_len(), 0);
                let place = out.get_mut(start..).unwrap_or(&mut []);
                pair.sign(padding, &random, message, place).map_err(machine)?;
            }
            Pair::Ecdsa(pair) => out.extend(pair.sign(&random, message).map_err(machine)?.as_ref()),
            Pair::Ed25519(pair) => out.extend(pair.try_sign(message).map_err(machine)?.as_ref()),
            Pair::Ed448(key) => out.extend(key.sign_raw(message).to_bytes()),
            Pair::Held(holder) => {
                let signature = holder.sign(&self.input(message))?;
                // The holder may have another key under this name by now, or be out of order: a
                // wrong signature would be served for weeks.
                let rdata = self.dnskey(ZONE_KEY);
                let is_right = Dnskey::parse(&rdata)
                    .is_some_and(|dnskey| verify_octets(dnskey, message, &signature).is_ok());
                if !is_right {
                    let why = format!("what is signed by {} does not belong to the DNSKEY", holder.place());
                    return Err(Unusable::Holder(why.into()));
                }
                out.extend(signature);
            }
        }
        Ok(())
    }
}
