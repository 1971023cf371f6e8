//! What a resolver says about itself, signed with its provider's key.

use std::fmt;

use aws_lc_rs::rand;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::Wrong;
use crate::sealing::{KEY_OCTETS, System};

/// What begins every certificate.
const CERTIFICATE_MAGIC: [u8; 4] = *b"DNSC";
/// Octets of a signature.
const SIGNATURE_OCTETS: usize = 64;
/// Octets of a certificate without extensions.
pub const CERTIFICATE_OCTETS: usize = 4 + 2 + 2 + SIGNATURE_OCTETS + KEY_OCTETS + 8 + 4 + 4 + 4;

/// A certificate whose signature was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// How keys are exchanged and messages encrypted.
    pub system: System,
    /// The resolver's key.
    pub key: [u8; KEY_OCTETS],
    /// What queries begin with that are for this key.
    pub magic: [u8; 8],
    /// The larger one is the newer one.
    pub serial: u32,
    /// The first and the last second at which it is valid, since 1970.
    pub valid: (u32, u32),
}

impl Certificate {
    /// Reads a certificate that is signed with the provider's key.
    pub fn parse(octets: &[u8], provider: &[u8; KEY_OCTETS]) -> Result<Self, Wrong> {
        Self::read(octets, |signed, signature| {
            UnparsedPublicKey::new(&ED25519, provider).verify(signed, signature).map_err(|_| Wrong::Signature)
        })
    }

    /// Reads a certificate of one's own: who has its key need not ask who signed it.
    pub fn parse_own(octets: &[u8]) -> Result<Self, Wrong> {
        Self::read(octets, |_, _| Ok(()))
    }

    fn read(octets: &[u8], check: impl FnOnce(&[u8], &[u8]) -> Result<(), Wrong>) -> Result<Self, Wrong> {
        let (magic, rest) = octets.split_first_chunk::<4>().ok_or(Wrong::Malformed)?;
        let (system, rest) = rest.split_first_chunk::<2>().ok_or(Wrong::Malformed)?;
        // The minor version is of no consequence.
        let (_, rest) = rest.split_first_chunk::<2>().ok_or(Wrong::Malformed)?;
        let (signature, signed) = rest.split_first_chunk::<SIGNATURE_OCTETS>().ok_or(Wrong::Malformed)?;
        if *magic != CERTIFICATE_MAGIC {
            return Err(Wrong::Malformed);
        }
        let system = System::numbered(u16::from_be_bytes(*system)).ok_or(Wrong::System)?;
        check(signed, signature)?;
        let (key, rest) = signed.split_first_chunk::<KEY_OCTETS>().ok_or(Wrong::Malformed)?;
        let (magic, rest) = rest.split_first_chunk::<8>().ok_or(Wrong::Malformed)?;
        let (serial, rest) = rest.split_first_chunk::<4>().ok_or(Wrong::Malformed)?;
        let (from, rest) = rest.split_first_chunk::<4>().ok_or(Wrong::Malformed)?;
        // What follows are extensions that we do not know.
        let (until, _) = rest.split_first_chunk::<4>().ok_or(Wrong::Malformed)?;
        let valid = (u32::from_be_bytes(*from), u32::from_be_bytes(*until));
        // Seven zeros would be taken for QUIC.
        if magic.starts_with(&[0; 7]) || valid.0 >= valid.1 {
            return Err(Wrong::Malformed);
        }
        Ok(Self { system, key: *key, magic: *magic, serial: u32::from_be_bytes(*serial), valid })
    }

    /// Writes it, signed by its provider.
    pub fn sign(&self, provider: &ProviderKey) -> [u8; CERTIFICATE_OCTETS] {
        let (from, until) = self.valid;
        let [serial, from, until] = [self.serial, from, until].map(u32::to_be_bytes);
        let signed = [&self.key[..], &self.magic, &serial, &from, &until].concat();
        let signature = provider.0.sign(&signed);
        let head = [&CERTIFICATE_MAGIC[..], &self.system.number().to_be_bytes(), &[0, 0]].concat();
        let mut octets = [0; CERTIFICATE_OCTETS];
        let all = head.iter().chain(signature.as_ref()).chain(&signed);
        octets.iter_mut().zip(all).for_each(|(place, octet)| *place = *octet);
        octets
    }

    /// Returns whether it is valid at this second since 1970.
    pub fn is_valid_at(&self, now: u64) -> bool {
        (u64::from(self.valid.0)..=u64::from(self.valid.1)).contains(&now)
    }
}

/// The key (Ed25519) that a provider signs certificates with.
pub struct ProviderKey(Ed25519KeyPair);

impl fmt::Debug for ProviderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderKey(…)")
    }
}

/// Octets of a provider's key in a file: the seed, and the public key behind it.
pub const PROVIDER_KEY_OCTETS: usize = 2 * KEY_OCTETS;

impl ProviderKey {
    /// Makes a new key; returns what is to be kept of it, too.
    pub fn generate() -> Result<(Self, [u8; PROVIDER_KEY_OCTETS]), Wrong> {
        let mut octets = [0; PROVIDER_KEY_OCTETS];
        let (seed, public) = octets.split_at_mut(KEY_OCTETS);
        rand::fill(seed).map_err(|_| Wrong::Machine)?;
        let key = Self(Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Wrong::Machine)?);
        public.copy_from_slice(&key.public()?);
        Ok((key, octets))
    }

    /// Reads the seed and the public key behind it; or the seed alone.
    pub fn parse(octets: &[u8]) -> Result<Self, Wrong> {
        let (seed, public) = octets.split_at_checked(KEY_OCTETS).ok_or(Wrong::Malformed)?;
        let key = match public.len() {
            0 => Ed25519KeyPair::from_seed_unchecked(seed),
            KEY_OCTETS => Ed25519KeyPair::from_seed_and_public_key(seed, public),
            _ => return Err(Wrong::Malformed),
        };
        key.map(Self).map_err(|_| Wrong::Key)
    }

    /// Returns the public key, by which clients know the provider.
    pub fn public(&self) -> Result<[u8; KEY_OCTETS], Wrong> {
        self.0.public_key().as_ref().try_into().map_err(|_| Wrong::Machine)
    }
}

/// Returns the certificate to use now: of those that are valid the one with the highest serial
/// number, and of equal ones that of the newer system.
pub fn newest(certificates: impl IntoIterator<Item = Certificate>, now: u64) -> Option<Certificate> {
    certificates
        .into_iter()
        .filter(|certificate| certificate.is_valid_at(now))
        .max_by_key(|certificate| (certificate.serial, certificate.system))
}

/// Returns what the data of a TXT record say: its strings one after the other.
pub fn text(mut rdata: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(rdata.len());
    while let Some((&length, rest)) = rdata.split_first() {
        let (string, rest) = rest.split_at_checked(usize::from(length))?;
        text.extend_from_slice(string);
        rdata = rest;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealing::tests::{array, octets};

    // draft-denis-dprive-dnscrypt-11, sections 14.2 and 14.3.
    const PROVIDER: &str = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
    const CERTIFICATE: &str = "444e5343000200003a570ea17f47b80217977fbb455840bfd50ab32f5fbf2aab\
         c173a6a49b7a49ca55362a6c5dec47657cf515e9f99382a316dfecd964b94d1c\
         4659cac45961400c358072d6365880d1aeea329adf9121383851ed21a28e3b75\
         e965d0d2cd166254b1b2b3b4b5b6b7b8000000016800000068015180";

    fn check(octets: &[u8], expect: Wrong) {
        assert_eq!(Certificate::parse(octets, &array(PROVIDER)), Err(expect), "{octets:02x?}");
    }

    #[test]
    fn the_certificate_of_the_draft_is_read() {
        let certificate = Certificate::parse(&octets(CERTIFICATE), &array(PROVIDER)).expect("it is good");
        let expect = Certificate {
            system: System::XChaCha20,
            key: array("358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254"),
            magic: array("b1b2b3b4b5b6b7b8"),
            serial: 1,
            valid: (0x6800_0000, 0x6801_5180),
        };
        assert_eq!(certificate, expect);
    }

    #[test]
    fn only_what_the_provider_signed_is_taken() {
        let good = octets(CERTIFICATE);
        for at in 8..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            check(&bad, Wrong::Signature);
        }
        assert_eq!(Certificate::parse(&good, &[9; 32]), Err(Wrong::Signature));
    }

    #[test]
    fn what_is_no_certificate_of_a_known_kind_is_not_taken() {
        let good = octets(CERTIFICATE);
        check(&good[..71], Wrong::Malformed);
        check(&good[..100], Wrong::Signature);
        let mut other = good.clone();
        other[0] = b'X';
        check(&other, Wrong::Malformed);
        let mut quantum = good;
        quantum[5] = 3;
        check(&quantum, Wrong::System);
    }

    /// Returns a certificate that is signed, whatever it says.
    fn signed(serial: u32, valid: (u32, u32), system: System, magic: [u8; 8]) -> (Vec<u8>, [u8; 32]) {
        let provider = ProviderKey::parse(&[5; 32]).expect("a key");
        let certificate = Certificate { system, key: [8; 32], magic, serial, valid };
        (certificate.sign(&provider).to_vec(), provider.public().expect("32 octets"))
    }

    #[test]
    fn a_providers_key_is_read_from_what_is_kept_of_it() {
        let (key, kept) = ProviderKey::generate().expect("a key");
        let read = ProviderKey::parse(&kept).expect("a key");
        assert_eq!(read.public(), key.public());
        assert_eq!(ProviderKey::parse(&kept[..32]).expect("a key").public(), key.public());
        let mut other = kept;
        other[40] ^= 1;
        assert_eq!(ProviderKey::parse(&other).err(), Some(Wrong::Key));
        assert_eq!(ProviderKey::parse(&kept[..63]).err(), Some(Wrong::Malformed));
    }

    #[test]
    fn the_newest_valid_certificate_is_used() {
        let read = |serial, valid, system| {
            let (octets, key) = signed(serial, valid, system, [1; 8]);
            Certificate::parse(&octets, &key).expect("it is good")
        };
        let all = [
            read(1, (100, 200), System::XChaCha20),
            read(2, (150, 300), System::XSalsa20),
            read(2, (150, 300), System::XChaCha20),
            read(3, (400, 500), System::XChaCha20),
        ];
        let check = |now, expect: Option<usize>| {
            assert_eq!(newest(all.clone(), now), expect.map(|at| all[at].clone()), "at {now}");
        };
        check(99, None);
        check(100, Some(0));
        check(150, Some(2));
        check(300, Some(2));
        check(301, None);
        check(400, Some(3));
        check(u64::MAX, None);
    }

    #[test]
    fn certificates_that_contradict_themselves_are_refused() {
        for (valid, magic) in [((5, 5), [1; 8]), ((1, 5), [0; 8])] {
            let (octets, key) = signed(1, valid, System::XChaCha20, magic);
            assert_eq!(Certificate::parse(&octets, &key), Err(Wrong::Malformed));
        }
    }

    #[test]
    fn strings_of_a_record_are_joined() {
        assert_eq!(text(b"\x02ab\x00\x01c"), Some(b"abc".to_vec()));
        assert_eq!(text(b"\x03ab"), None);
    }
}
