//! Encryption that proves who encrypted: the construction of NaCl's `secretbox`, with either stream
//! cipher.
//!
//! The first 32 octets of the key stream are the key of Poly1305 and the rest encrypts, so this is
//! not the AEAD of RFC 8439.

use std::fmt;

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use chacha20::{R20, XChaCha20, hchacha};
use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit as _;
use salsa20::cipher::consts::U10;
use salsa20::cipher::{KeyIvInit as _, StreamCipher};
use salsa20::{XSalsa20, hsalsa};

use crate::Wrong;

/// Octets of a nonce; the client chooses one half and the resolver the other.
pub const NONCE_OCTETS: usize = 24;
/// Octets of a key.
pub const KEY_OCTETS: usize = 32;
/// Octets that prove who encrypted, in front of what is encrypted.
pub const TAG_OCTETS: usize = 16;

/// How keys are exchanged and messages encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// X25519 and XSalsa20-Poly1305.
    XSalsa20,
    /// X25519 and XChaCha20-Poly1305.
    XChaCha20,
}

impl System {
    /// Returns the system with this number in certificates.
    pub(crate) const fn numbered(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::XSalsa20),
            2 => Some(Self::XChaCha20),
            _ => None,
        }
    }

    /// Returns its number in certificates.
    pub const fn number(self) -> u16 {
        match self {
            Self::XSalsa20 => 1,
            Self::XChaCha20 => 2,
        }
    }
}

/// What both sides know, and nobody else.
#[derive(Clone, Copy)]
pub struct SharedKey {
    system: System,
    key: [u8; KEY_OCTETS],
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(…)")
    }
}

impl SharedKey {
    /// Agrees on a key with the holder of `other`.
    pub fn agree(system: System, own: &PrivateKey, other: &[u8; KEY_OCTETS]) -> Result<Self, Wrong> {
        // The library refuses weak keys, with which the secret would be zero.
        agreement::agree(own, UnparsedPublicKey::new(&X25519, other), Wrong::Key, |secret| {
            let secret: &[u8; KEY_OCTETS] = secret.try_into().map_err(|_| Wrong::Key)?;
            let key = match system {
                System::XSalsa20 => hsalsa::<U10>(secret.into(), &[0; 16].into()),
                System::XChaCha20 => hchacha::<R20>(secret.into(), &[0; 16].into()),
            };
            Ok(Self { system, key: key.into() })
        })
    }

    /// Encrypts what is never encrypted with the same nonce again.
    pub fn seal(&self, nonce: &[u8; NONCE_OCTETS], plain: &[u8]) -> Vec<u8> {
        let mut octets = vec![0; TAG_OCTETS + plain.len()];
        if let Some(room) = octets.get_mut(TAG_OCTETS..) {
            room.copy_from_slice(plain);
        }
        self.seal_in_place(nonce, &mut octets);
        octets
    }

    /// Decrypts what the other side encrypted with this nonce.
    pub fn open(&self, nonce: &[u8; NONCE_OCTETS], sealed: &[u8]) -> Result<Vec<u8>, Wrong> {
        let mut octets = sealed.to_vec();
        self.open_in_place(nonce, &mut octets).map(|plain| plain.to_vec())
    }

    /// Encrypts what stands behind the first [`TAG_OCTETS`], and writes the proof into these. The
    /// nonce is never used again.
    pub fn seal_in_place(&self, nonce: &[u8; NONCE_OCTETS], octets: &mut [u8]) {
        match self.system {
            System::XSalsa20 => seal_with(XSalsa20::new((&self.key).into(), nonce.into()), octets),
            System::XChaCha20 => seal_with(XChaCha20::new((&self.key).into(), nonce.into()), octets),
        }
    }

    /// Decrypts what the other side encrypted with this nonce, where it stands; returns the text.
    /// What is not proved to be the other side's is left as it is.
    pub fn open_in_place<'o>(
        &self,
        nonce: &[u8; NONCE_OCTETS],
        octets: &'o mut [u8],
    ) -> Result<&'o mut [u8], Wrong> {
        match self.system {
            System::XSalsa20 => open_with(XSalsa20::new((&self.key).into(), nonce.into()), octets),
            System::XChaCha20 => open_with(XChaCha20::new((&self.key).into(), nonce.into()), octets),
        }
    }
}

/// Takes the key of the proof from the key stream; what follows encrypts.
fn proof_key(cipher: &mut impl StreamCipher) -> [u8; KEY_OCTETS] {
    let mut key = [0; KEY_OCTETS];
    cipher.apply_keystream(&mut key);
    key
}

fn seal_with(mut cipher: impl StreamCipher, octets: &mut [u8]) {
    let Some((proof, text)) = octets.split_first_chunk_mut::<TAG_OCTETS>() else { return };
    let key = proof_key(&mut cipher);
    cipher.apply_keystream(text);
    *proof = tag(&key, text);
}

fn open_with(mut cipher: impl StreamCipher, octets: &mut [u8]) -> Result<&mut [u8], Wrong> {
    let (claimed, text) = octets.split_first_chunk_mut::<TAG_OCTETS>().ok_or(Wrong::Malformed)?;
    let key = proof_key(&mut cipher);
    verify_slices_are_equal(&tag(&key, text), claimed).map_err(|_| Wrong::Sealed)?;
    cipher.apply_keystream(text);
    Ok(text)
}

fn tag(key: &[u8; KEY_OCTETS], sealed: &[u8]) -> [u8; TAG_OCTETS] {
    Poly1305::new(key.into()).compute_unpadded(sealed).into()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Reads hexadecimal digits.
    pub(crate) fn octets(text: &str) -> Vec<u8> {
        let digit = |octet: u8| char::from(octet).to_digit(16).expect("a digit") as u8;
        text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    pub(crate) fn array<const N: usize>(text: &str) -> [u8; N] {
        octets(text).try_into().expect("as many octets")
    }

    pub(crate) fn private(octets: &[u8]) -> PrivateKey {
        PrivateKey::from_private_key(&X25519, octets).expect("a key")
    }

    // "Cryptography in NaCl" (Bernstein), sections 8 to 10: Alice's and Bob's keys, and a message.
    const ALICE: &str = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
    const BOB: &str = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
    const NACL_KEY: &str = "1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389";
    const NACL_NONCE: &str = "69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37";
    const NACL_PLAIN: &str = "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c6129\
         6cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde\
         048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705";
    const NACL_SEALED: &str = "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186a\
         c0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae\
         90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74\
         e355a5";

    fn nacl() -> SharedKey {
        SharedKey { system: System::XSalsa20, key: array(NACL_KEY) }
    }

    #[test]
    fn messages_are_sealed_as_nacl_does() {
        let (nonce, plain) = (array(NACL_NONCE), octets(NACL_PLAIN));
        assert_eq!(nacl().seal(&nonce, &plain), octets(NACL_SEALED));
        assert_eq!(nacl().open(&nonce, &octets(NACL_SEALED)), Ok(plain));
    }

    #[test]
    fn keys_are_agreed_as_nacl_does() {
        let (alice, bob) = (private(&octets(ALICE)), array(BOB));
        let shared = SharedKey::agree(System::XSalsa20, &alice, &bob).expect("a key");
        assert_eq!(shared.key, array(NACL_KEY));
    }

    #[test]
    fn the_subkey_function_is_that_of_the_draft() {
        // draft-denis-dprive-dnscrypt-11, section 13.3.
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let input: [u8; 16] = std::array::from_fn(|i| i as u8);
        let out: [u8; 32] = hchacha::<R20>(&key.into(), &input.into()).into();
        assert_eq!(out, array("51e3ff45a895675c4b33b46c64f4a9ace110d34df6a2ceab486372bacbd3eff6"));
    }

    #[test]
    fn what_was_changed_is_refused() {
        for system in [System::XSalsa20, System::XChaCha20] {
            let key = SharedKey { system, key: [7; 32] };
            let good = key.seal(&[1; 24], b"a message");
            assert_eq!(key.open(&[1; 24], &good), Ok(b"a message".to_vec()));
            assert_eq!(key.open(&[2; 24], &good), Err(Wrong::Sealed));
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1;
                assert_eq!(key.open(&[1; 24], &bad), Err(Wrong::Sealed), "{system:?}, octet {at}");
            }
            assert_eq!(key.open(&[1; 24], &good[..15]), Err(Wrong::Malformed));
        }
    }

    #[test]
    fn a_weak_key_is_refused() {
        let own = PrivateKey::generate(&X25519).expect("a key");
        assert_eq!(SharedKey::agree(System::XChaCha20, &own, &[0; 32]).err(), Some(Wrong::Key));
    }
}
