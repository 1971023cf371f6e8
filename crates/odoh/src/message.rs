//! How oblivious messages and configurations are written (RFC 9230 §5 and §6.1).

use crate::Wrong;
use crate::hpke::{self, AEAD_ID, HASH_OCTETS, Hash, KDF_ID, KEM_ID, PUBLIC_OCTETS, Public};

/// The version of RFC 9230.
const VERSION: u16 = 1;

/// What an oblivious message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Query = 1,
    Response = 2,
}

/// An oblivious message, taken apart.
pub(crate) struct Message<'m> {
    /// Whose key it is for, or in a response the nonce.
    pub(crate) key: &'m [u8],
    pub(crate) sealed: &'m [u8],
}

impl<'m> Message<'m> {
    pub(crate) fn parse(octets: &'m [u8], kind: Kind) -> Result<Self, Wrong> {
        let (&first, rest) = octets.split_first().ok_or(Wrong::Malformed)?;
        let (key, rest) = vector(rest)?;
        let (sealed, rest) = vector(rest)?;
        if first != kind as u8 || sealed.is_empty() || !rest.is_empty() {
            return Err(Wrong::Malformed);
        }
        Ok(Self { key, sealed })
    }

    pub(crate) fn write(kind: Kind, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Wrong> {
        Ok([&[kind as u8][..], &length(key)?, key, &length(sealed)?, sealed].concat())
    }
}

/// Returns what is authenticated with a message: its kind and its key.
pub(crate) fn associated(kind: Kind, key: &[u8]) -> Result<Vec<u8>, Wrong> {
    Ok([&[kind as u8][..], &length(key)?, key].concat())
}

/// Returns a DNS message with padding so that the two fill a multiple of `block` octets.
pub(crate) fn pad(dns: &[u8], block: usize) -> Result<Vec<u8>, Wrong> {
    let padding = vec![0; dns.len().next_multiple_of(block) - dns.len()];
    Ok([&length(dns)?[..], dns, &length(&padding)?, &padding].concat())
}

/// Returns the DNS message in what was encrypted.
pub(crate) fn unpad(plain: &[u8]) -> Result<&[u8], Wrong> {
    let (dns, rest) = vector(plain)?;
    let (padding, rest) = vector(rest)?;
    if dns.is_empty() || !rest.is_empty() {
        return Err(Wrong::Malformed);
    }
    if padding.iter().any(|&octet| octet != 0) {
        return Err(Wrong::Padding);
    }
    Ok(dns)
}

/// Returns a configuration's content: how to encrypt, and the key.
pub(crate) fn contents(public: &Public) -> Vec<u8> {
    let mut octets = Vec::with_capacity(8 + PUBLIC_OCTETS);
    for number in [KEM_ID, KDF_ID, AEAD_ID, PUBLIC_OCTETS as u16] {
        octets.extend(number.to_be_bytes());
    }
    octets.extend(public);
    octets
}

/// Returns the octets of several configurations, the preferred one first.
pub(crate) fn write_configs<'c>(contents: impl IntoIterator<Item = &'c [u8]>) -> Result<Vec<u8>, Wrong> {
    let mut list = Vec::new();
    for contents in contents {
        list.extend(VERSION.to_be_bytes());
        list.extend(length(contents)?);
        list.extend(contents);
    }
    Ok([&length(&list)?[..], &list].concat())
}

/// Returns the first configuration that we can use: its content and its key.
pub(crate) fn read_configs(octets: &[u8]) -> Result<(Vec<u8>, Public), Wrong> {
    let (mut list, rest) = vector(octets)?;
    if !rest.is_empty() || list.is_empty() {
        return Err(Wrong::Malformed);
    }
    let mut found = None;
    // Ends: each round takes at least four octets off the list.
    while !list.is_empty() {
        let (&version, after) = list.split_first_chunk::<2>().ok_or(Wrong::Malformed)?;
        let (content, after) = vector(after)?;
        list = after;
        // RFC 9230 §5: what is not known is passed over.
        if u16::from_be_bytes(version) == VERSION && found.is_none() {
            found = key(content).map(|key| (content.to_vec(), key));
        }
    }
    found.ok_or(Wrong::Suite)
}

/// Returns the key in a configuration of our suite.
fn key(content: &[u8]) -> Option<Public> {
    let (&[k0, k1, d0, d1, a0, a1], rest) = content.split_first_chunk::<6>()?;
    let ids = [[k0, k1], [d0, d1], [a0, a1]].map(u16::from_be_bytes);
    let (key, rest) = vector(rest).ok()?;
    (ids == [KEM_ID, KDF_ID, AEAD_ID] && rest.is_empty()).then(|| key.try_into().ok()).flatten()
}

/// Returns what a key is called (RFC 9230 §6.1).
pub(crate) fn key_id(contents: &[u8]) -> Hash {
    let key = hpke::extract(&[], &[contents]);
    hpke::expand::<HASH_OCTETS>(&key, &[b"odoh key id"])
}

fn length(octets: &[u8]) -> Result<[u8; 2], Wrong> {
    u16::try_from(octets.len()).map(u16::to_be_bytes).map_err(|_| Wrong::Machine)
}

/// Splits off octets that stand after their length.
fn vector(octets: &[u8]) -> Result<(&[u8], &[u8]), Wrong> {
    let (&length, rest) = octets.split_first_chunk::<2>().ok_or(Wrong::Malformed)?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(length))).ok_or(Wrong::Malformed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Reads hexadecimal digits.
    pub(crate) fn octets(text: &str) -> Vec<u8> {
        let digit = |octet: u8| char::from(octet).to_digit(16).expect("a digit") as u8;
        text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    fn check_message(octets: &[u8], expect: Option<(&[u8], &[u8])>) {
        let found = Message::parse(octets, Kind::Query).ok();
        assert_eq!(found.map(|message| (message.key, message.sealed)), expect, "{octets:02x?}");
    }

    #[test]
    fn messages_are_bounded() {
        check_message(b"\x01\0\x02ab\0\x01c", Some((b"ab", b"c")));
        check_message(b"\x01\0\0\0\x01c", Some((b"", b"c")));
        check_message(b"\x02\0\0\0\x01c", None); // A response.
        check_message(b"\x01\0\0\0\0", None); // Nothing is encrypted.
        check_message(b"\x01\0\0\0\x01cd", None);
        check_message(b"\x01\0\x05ab\0\x01c", None);
        check_message(b"", None);
    }

    #[test]
    fn padding_fills_blocks_and_is_zero() {
        for len in [1, 127, 128, 129, 300] {
            let dns = vec![7; len];
            let plain = pad(&dns, 128).expect("room");
            assert_eq!((plain.len() - 4) % 128, 0);
            assert_eq!(unpad(&plain), Ok(&dns[..]));
        }
        assert_eq!(unpad(b"\0\x01a\0\x01\x01"), Err(Wrong::Padding));
        assert_eq!(unpad(b"\0\0\0\0"), Err(Wrong::Malformed));
        assert_eq!(unpad(b"\0\x01a\0\0x"), Err(Wrong::Malformed));
    }

    #[test]
    fn configurations_of_other_kinds_are_passed_over() {
        let ours = contents(&[9; 32]);
        let mut other = ours.clone();
        other[5] = 3; // ChaCha20-Poly1305.
        let configs = write_configs([&other[..], &ours[..]]).expect("room");
        assert_eq!(read_configs(&configs), Ok((ours.clone(), [9; 32])));
        let mut later = write_configs([&ours[..]]).expect("room");
        later[3] = 2; // Another version.
        assert_eq!(read_configs(&later), Err(Wrong::Suite));
        assert_eq!(read_configs(&configs[..40]), Err(Wrong::Malformed));
        assert_eq!(read_configs(b"\0\0"), Err(Wrong::Malformed));
    }
}
