//! Hybrid public key encryption (RFC 9180), as far as it is needed: base mode, one message a
//! context, and its exporter; DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::hmac;

use crate::Wrong;

/// DHKEM(X25519, HKDF-SHA256) (RFC 9180 §7.1).
pub(crate) const KEM_ID: u16 = 0x0020;
/// HKDF-SHA256 (RFC 9180 §7.2).
pub(crate) const KDF_ID: u16 = 0x0001;
/// AES-128-GCM (RFC 9180 §7.3).
pub(crate) const AEAD_ID: u16 = 0x0001;

/// Octets of public keys, and of what encapsulates a secret.
pub(crate) const PUBLIC_OCTETS: usize = 32;
/// Octets of an AEAD key (Nk).
pub(crate) const KEY_OCTETS: usize = 16;
/// Octets of an AEAD nonce (Nn).
pub(crate) const NONCE_OCTETS: usize = 12;
/// Octets that encryption adds (Nt).
#[cfg(test)]
pub(crate) const TAG_OCTETS: usize = 16;
/// Octets of a hash (Nh).
pub(crate) const HASH_OCTETS: usize = 32;

/// What the labels of the key encapsulation begin with (RFC 9180 §4.1).
const KEM_SUITE: &[u8] = b"KEM\x00\x20";
/// And those of everything else (RFC 9180 §5.1).
const SUITE: &[u8] = b"HPKE\x00\x20\x00\x01\x00\x01";

/// A hash, or a key made of one.
pub(crate) type Hash = [u8; HASH_OCTETS];
/// A public key.
pub(crate) type Public = [u8; PUBLIC_OCTETS];

/// HKDF's extraction (RFC 5869 §2.2), of octets in several parts.
pub(crate) fn extract(salt: &[u8], parts: &[&[u8]]) -> Hash {
    // No salt is the same as as many zeros as the hash has octets.
    mac(if salt.is_empty() { &[0; HASH_OCTETS] } else { salt }, parts)
}

/// HKDF's expansion (RFC 5869 §2.3) to at most one hash.
pub(crate) fn expand<const N: usize>(key: &Hash, parts: &[&[u8]]) -> [u8; N] {
    const { assert!(N <= HASH_OCTETS, "one round is all there is") };
    let mut all: Vec<&[u8]> = parts.to_vec();
    all.push(&[1]);
    let block = mac(key, &all);
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(block) {
        *to = from;
    }
    out
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hash {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; HASH_OCTETS];
    for (to, from) in hash.iter_mut().zip(context.sign().as_ref()) {
        *to = *from;
    }
    hash
}

fn labeled_extract(suite: &[u8], salt: &[u8], label: &[u8], secret: &[u8]) -> Hash {
    extract(salt, &[b"HPKE-v1", suite, label, secret])
}

fn labeled_expand<const N: usize>(suite: &[u8], key: &Hash, label: &[u8], info: &[u8]) -> [u8; N] {
    expand(key, &[&(N as u16).to_be_bytes(), b"HPKE-v1", suite, label, info])
}

/// Makes a private key of at least 32 secret octets, always the same (RFC 9180 §7.1.3).
pub(crate) fn derive_key(secret: &[u8]) -> Result<PrivateKey, Wrong> {
    let key = labeled_extract(KEM_SUITE, &[], b"dkp_prk", secret);
    let private: [u8; 32] = labeled_expand(KEM_SUITE, &key, b"sk", &[]);
    PrivateKey::from_private_key(&X25519, &private).map_err(|_| Wrong::Machine)
}

/// Makes a private key by chance.
pub(crate) fn random_key() -> Result<PrivateKey, Wrong> {
    PrivateKey::generate(&X25519).map_err(|_| Wrong::Machine)
}

/// Returns the public key of a private one.
pub(crate) fn public(key: &PrivateKey) -> Result<Public, Wrong> {
    let public = key.compute_public_key().map_err(|_| Wrong::Machine)?;
    public.as_ref().try_into().map_err(|_| Wrong::Machine)
}

/// What both sides know after the exchange: enough for one message, and for secrets of their own.
pub(crate) struct Context {
    key: [u8; KEY_OCTETS],
    nonce: [u8; NONCE_OCTETS],
    exporter: Hash,
}

impl Context {
    /// Begins as the sender to `receiver`; returns what tells the receiver, too.
    pub(crate) fn to(
        receiver: &Public,
        ephemeral: &PrivateKey,
        info: &[u8],
    ) -> Result<(Public, Self), Wrong> {
        let encapsulated = public(ephemeral)?;
        let secret = shared(ephemeral, receiver, &encapsulated, receiver)?;
        Ok((encapsulated, Self::schedule(&secret, info)))
    }

    /// Begins as the receiver.
    pub(crate) fn from(
        encapsulated: &Public,
        own: &PrivateKey,
        own_public: &Public,
        info: &[u8],
    ) -> Result<Self, Wrong> {
        let secret = shared(own, encapsulated, encapsulated, own_public)?;
        Ok(Self::schedule(&secret, info))
    }

    /// RFC 9180 §5.1, base mode: there is no pre-shared key.
    fn schedule(secret: &Hash, info: &[u8]) -> Self {
        let psk_id = labeled_extract(SUITE, &[], b"psk_id_hash", &[]);
        let info = labeled_extract(SUITE, &[], b"info_hash", info);
        let context = [&[0][..], &psk_id, &info].concat();
        let secret = labeled_extract(SUITE, secret, b"secret", &[]);
        Self {
            key: labeled_expand(SUITE, &secret, b"key", &context),
            nonce: labeled_expand(SUITE, &secret, b"base_nonce", &context),
            exporter: labeled_expand(SUITE, &secret, b"exp", &context),
        }
    }

    /// Encrypts the one message of this context.
    pub(crate) fn seal(&self, aad: &[u8], plain: Vec<u8>) -> Result<Vec<u8>, Wrong> {
        seal(&self.key, self.nonce, aad, plain)
    }

    /// Decrypts the one message of this context.
    pub(crate) fn open(&self, aad: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Wrong> {
        open(&self.key, self.nonce, aad, sealed)
    }

    /// Returns a secret for another purpose (RFC 9180 §5.3).
    pub(crate) fn export<const N: usize>(&self, purpose: &[u8]) -> [u8; N] {
        labeled_expand(SUITE, &self.exporter, b"sec", purpose)
    }
}

/// RFC 9180 §4.1.
fn shared(own: &PrivateKey, other: &Public, encapsulated: &Public, receiver: &Public) -> Result<Hash, Wrong> {
    // The library refuses keys whose secret would be zero (RFC 7748 §6.1).
    agreement::agree(own, UnparsedPublicKey::new(&X25519, other), Wrong::Sealed, |secret| {
        let key = labeled_extract(KEM_SUITE, &[], b"eae_prk", secret);
        let context = [&encapsulated[..], receiver].concat();
        Ok(labeled_expand(KEM_SUITE, &key, b"shared_secret", &context))
    })
}

/// Encrypts with AES-128-GCM; a key has one message with one nonce.
pub(crate) fn seal(
    key: &[u8; KEY_OCTETS],
    nonce: [u8; NONCE_OCTETS],
    aad: &[u8],
    mut plain: Vec<u8>,
) -> Result<Vec<u8>, Wrong> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).map_err(|_| Wrong::Machine)?);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut plain)
        .map_err(|_| Wrong::Machine)?;
    Ok(plain)
}

/// Decrypts the same.
pub(crate) fn open(
    key: &[u8; KEY_OCTETS],
    nonce: [u8; NONCE_OCTETS],
    aad: &[u8],
    sealed: &[u8],
) -> Result<Vec<u8>, Wrong> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).map_err(|_| Wrong::Machine)?);
    let mut octets = sealed.to_vec();
    let plain = key
        .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut octets)
        .map_err(|_| Wrong::Sealed)?
        .len();
    octets.truncate(plain);
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::octets;

    // RFC 9180 appendix A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode.
    const INFO: &str = "4f6465206f6e2061204772656369616e2055726e";
    const EPHEMERAL_SEED: &str = "7268600d403fce431561aef583ee1613527cff655c1343f29812e66706df3234";
    const RECEIVER_SEED: &str = "6db9df30aa07dd42ee5e8181afdb977e538f5e1fec8a06223f33f7013e525037";

    fn both() -> (Public, Context, Context) {
        let ephemeral = derive_key(&octets(EPHEMERAL_SEED)).expect("a key");
        let receiver = derive_key(&octets(RECEIVER_SEED)).expect("a key");
        let to = public(&receiver).expect("a key");
        let (encapsulated, sender) = Context::to(&to, &ephemeral, &octets(INFO)).expect("a context");
        let receiver = Context::from(&encapsulated, &receiver, &to, &octets(INFO)).expect("a context");
        (encapsulated, sender, receiver)
    }

    #[test]
    fn keys_are_derived_as_in_the_rfc() {
        let check = |seed, expect| {
            let key = derive_key(&octets(seed)).and_then(|key| public(&key)).expect("a key");
            assert_eq!(key.to_vec(), octets(expect));
        };
        check(EPHEMERAL_SEED, "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431");
        check(RECEIVER_SEED, "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d");
    }

    #[test]
    fn both_sides_reach_the_keys_of_the_rfc() {
        let (encapsulated, sender, receiver) = both();
        assert_eq!(
            encapsulated.to_vec(),
            octets("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431")
        );
        for context in [sender, receiver] {
            assert_eq!(context.key.to_vec(), octets("4531685d41d65f03dc48f6b8302c05b0"));
            assert_eq!(context.nonce.to_vec(), octets("56d890e5accaaf011cff4b7d"));
            let exporter = octets("45ff1c2e220db587171952c0592d5f5ebe103f1561a2614e38f2ffd47e99e3f8");
            assert_eq!(context.exporter.to_vec(), exporter);
        }
    }

    #[test]
    fn messages_and_exports_are_those_of_the_rfc() {
        let (_, sender, receiver) = both();
        let plain = octets("4265617574792069732074727574682c20747275746820626561757479");
        let aad = octets("436f756e742d30");
        let sealed = sender.seal(&aad, plain.clone()).expect("a message");
        let expect =
            "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a";
        assert_eq!(sealed, octets(expect));
        assert_eq!(receiver.open(&aad, &sealed), Ok(plain));
        assert_eq!(receiver.open(b"other", &sealed), Err(Wrong::Sealed));
        let check = |purpose: &[u8], expect| {
            assert_eq!(receiver.export::<32>(purpose).to_vec(), octets(expect));
        };
        check(b"", "3853fe2b4035195a573ffc53856e77058e15d9ea064de3e59f4961d0095250ee");
        check(b"\0", "2e8f0b54673c7029649d4eb9d5e33bf1872cf76d623ff164ac185da9e88c21a5");
        check(b"TestContext", "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931");
    }

    #[test]
    fn a_key_without_a_secret_is_refused() {
        let ephemeral = random_key().expect("a key");
        assert!(Context::to(&[0; 32], &ephemeral, b"").is_err());
    }
}
