//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A resolver's side: its keys, queries that are opened, and responses that are sealed where they
//! stand.

use std::fmt;

use aws_lc_rs::agreement::{PrivateKey, X25519};
use aws_lc_rs::rand;

use crate::sealing::{KEY_OCTETS, NONCE_OCTETS, SharedKey, TAG_OCTETS};
use crate::session::{BLOCK_OCTETS, HALF_OCTETS, Nonce, PADDING, unpad};
use crate::{Certificate, RESOLVER_MAGIC, Wrong};

/// Octets in front of what is sealed in a query.
pub const QUERY_HEAD_OCTETS: usize = 8 + KEY_OCTETS + HALF_OCTETS;
/// Octets in front of the message in a response: magic, nonce and proof.
pub const RESPONSE_HEAD_OCTETS: usize = RESOLVER_MAGIC.len() + NONCE_OCTETS + TAG_OCTETS;

/// What a query says in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryHead {
    /// Which certificate it was sealed for.
    pub magic: [u8; 8],
    /// The client's key.
    pub key: [u8; KEY_OCTETS],
    /// Its half of the nonce.
    pub nonce: Nonce,
}

impl QueryHead {
    /// Splits a query into its head and what is sealed; `None` if it is too short to be one.
    pub fn split(query: &mut [u8]) -> Option<(Self, &mut [u8])> {
        let (magic, rest) = query.split_first_chunk_mut::<8>()?;
        let (key, rest) = rest.split_first_chunk_mut::<KEY_OCTETS>()?;
        let (nonce, sealed) = rest.split_first_chunk_mut::<HALF_OCTETS>()?;
        (sealed.len() > TAG_OCTETS).then_some((Self { magic: *magic, key: *key, nonce: *nonce }, sealed))
    }

    /// Decrypts the query where it stands; returns the message in it.
    pub fn open<'s>(&self, shared: &SharedKey, sealed: &'s mut [u8]) -> Result<&'s [u8], Wrong> {
        let mut nonce = [0; NONCE_OCTETS];
        if let Some(half) = nonce.first_chunk_mut() {
            *half = self.nonce;
        }
        unpad(shared.open_in_place(&nonce, sealed)?)
    }
}

/// A certificate of one's own, with its key.
pub struct ResolverKey {
    certificate: Certificate,
    private: PrivateKey,
}

impl fmt::Debug for ResolverKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolverKey").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Makes a new key of a resolver; returns it and its public half.
// Once per command.
pub fn generate() -> Result<([u8; KEY_OCTETS], [u8; KEY_OCTETS]), Wrong> {
    let mut secret = [0; KEY_OCTETS];
    rand::fill(&mut secret).map_err(|_| Wrong::Machine)?;
    Ok((secret, public_key(&secret)?))
}

/// Returns the public half of a key.
pub fn public_key(secret: &[u8; KEY_OCTETS]) -> Result<[u8; KEY_OCTETS], Wrong> {
    let private = PrivateKey::from_private_key(&X25519, secret).map_err(|_| Wrong::Key)?;
    let public = private.compute_public_key().map_err(|_| Wrong::Key)?;
    public.as_ref().try_into().map_err(|_| Wrong::Key)
}

impl ResolverKey {
    /// Puts a certificate and its key together; the error is [`Wrong::Key`] if the key is another.
    // Once per configuration.
    pub fn new(certificate: Certificate, secret: &[u8; KEY_OCTETS]) -> Result<Self, Wrong> {
        if public_key(secret)? != certificate.key {
            return Err(Wrong::Key);
        }
        let private = PrivateKey::from_private_key(&X25519, secret).map_err(|_| Wrong::Key)?;
        Ok(Self { certificate, private })
    }

    /// Returns the certificate.
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Agrees on a key with a client: takes as long as thousands of look-ups.
    pub fn agree(&self, client: &[u8; KEY_OCTETS]) -> Result<SharedKey, Wrong> {
        SharedKey::agree(self.certificate.system, &self.private, client)
    }
}

/// What the response to one query is sealed with.
#[derive(Clone, Copy, Debug)]
pub struct ResponseKey {
    shared: SharedKey,
    nonce: Nonce,
}

/// Returns how many octets a message may have whose response has at most `octets`.
pub const fn datagram_limit(octets: usize) -> usize {
    // At least one octet of what is sealed is padding.
    (octets.saturating_sub(RESPONSE_HEAD_OCTETS) / BLOCK_OCTETS * BLOCK_OCTETS).saturating_sub(1)
}

/// Returns how many octets the response to a message of `octets` octets has.
pub const fn response_octets(octets: usize) -> usize {
    RESPONSE_HEAD_OCTETS + (octets + 1).next_multiple_of(BLOCK_OCTETS)
}

impl ResponseKey {
    /// Returns what the response to a query is sealed with.
    pub const fn new(shared: SharedKey, head: &QueryHead) -> Self {
        Self { shared, nonce: head.nonce }
    }

    /// Seals the message of `octets` octets that stands behind [`RESPONSE_HEAD_OCTETS`] of `room`;
    /// returns how many octets of the room are the response.
    pub fn seal(&self, room: &mut [u8], octets: usize) -> Result<usize, Wrong> {
        let len = response_octets(octets);
        let response = room.get_mut(..len).ok_or(Wrong::Malformed)?;
        let (magic, rest) =
            response.split_first_chunk_mut::<{ RESOLVER_MAGIC.len() }>().ok_or(Wrong::Malformed)?;
        let (nonce, sealed) = rest.split_first_chunk_mut::<NONCE_OCTETS>().ok_or(Wrong::Malformed)?;
        *magic = RESOLVER_MAGIC;
        let (theirs, ours) = nonce.split_at_mut(HALF_OCTETS);
        theirs.copy_from_slice(&self.nonce);
        // Half of it is ours, so that a nonce that a client uses twice is not used twice by us.
        rand::fill(ours).map_err(|_| Wrong::Machine)?;
        let padding = sealed.get_mut(TAG_OCTETS + octets..).ok_or(Wrong::Malformed)?;
        padding.fill(0);
        if let Some(first) = padding.first_mut() {
            *first = PADDING;
        }
        self.shared.seal_in_place(nonce, sealed);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProviderKey, Session, System, Travel};
    use proptest::prelude::*;

    fn resolver(system: System) -> ResolverKey {
        let (secret, key) = generate().expect("a key");
        let certificate = Certificate { system, key, magic: *b"magic678", serial: 1, valid: (1, 9) };
        let (provider, _) = ProviderKey::generate().expect("a key");
        let read = Certificate::parse(&certificate.sign(&provider), &provider.public().expect("a key"));
        assert_eq!(read.as_ref(), Ok(&certificate));
        ResolverKey::new(certificate, &secret).expect("its key")
    }

    #[test]
    fn a_query_is_opened_and_its_response_can_be_opened_by_the_client() {
        for system in [System::XSalsa20, System::XChaCha20] {
            let resolver = resolver(system);
            let client = Session::new(resolver.certificate()).expect("a session");
            for travel in [Travel::Datagram(256), Travel::Connection] {
                let (mut query, nonce) = client.seal(b"a question", travel).expect("room");
                let (head, sealed) = QueryHead::split(&mut query).expect("a query");
                assert_eq!((head.magic, head.nonce), (*b"magic678", nonce));
                let shared = resolver.agree(&head.key).expect("a key");
                assert_eq!(head.open(&shared, sealed), Ok(&b"a question"[..]));
                for octets in [0, 62, 63, 64, 200] {
                    let mut room = [7; RESPONSE_HEAD_OCTETS + 256];
                    let message: Vec<u8> = (1..=octets as u8).collect();
                    room[RESPONSE_HEAD_OCTETS..][..octets].copy_from_slice(&message);
                    let len = ResponseKey::new(shared, &head).seal(&mut room, octets).expect("room");
                    assert_eq!((len - RESPONSE_HEAD_OCTETS) % 64, 0);
                    assert!(datagram_limit(len) >= octets && datagram_limit(len - 1) < octets + 64);
                    assert_eq!(client.open(&room[..len]), Ok((nonce, message)));
                }
            }
        }
    }

    #[test]
    fn equal_responses_look_different() {
        let resolver = resolver(System::XChaCha20);
        let client = Session::new(resolver.certificate()).expect("a session");
        let (mut query, _) = client.seal(b"q", Travel::Datagram(256)).expect("room");
        let (head, _) = QueryHead::split(&mut query).expect("a query");
        let key = ResponseKey::new(resolver.agree(&head.key).expect("a key"), &head);
        let seal = || {
            let mut room = [1; 256];
            let len = key.seal(&mut room, 20).expect("room");
            room[..len].to_vec()
        };
        assert_ne!(seal(), seal());
    }

    #[test]
    fn a_message_within_the_limit_makes_no_response_beyond_it() {
        for octets in 0..1500 {
            let limit = datagram_limit(octets);
            if limit > 0 {
                assert!(response_octets(limit) <= octets);
            }
        }
        assert_eq!((datagram_limit(256), datagram_limit(512), datagram_limit(0)), (191, 447, 0));
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (secret, _) = generate().expect("a key");
        let other = resolver(System::XSalsa20).certificate().clone();
        assert_eq!(ResolverKey::new(other, &secret).err(), Some(Wrong::Key));
    }

    #[test]
    fn a_response_without_room_is_not_sealed() {
        let resolver = resolver(System::XSalsa20);
        let client = Session::new(resolver.certificate()).expect("a session");
        let (mut query, _) = client.seal(b"q", Travel::Datagram(256)).expect("room");
        let (head, _) = QueryHead::split(&mut query).expect("a query");
        let key = ResponseKey::new(resolver.agree(&head.key).expect("a key"), &head);
        assert_eq!(key.seal(&mut [0; RESPONSE_HEAD_OCTETS + 63], 0), Err(Wrong::Malformed));
    }

    proptest! {
        #[test]
        fn no_octets_are_taken_for_a_query(mut octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            let resolver = resolver(System::XChaCha20);
            if let Some((head, sealed)) = QueryHead::split(&mut octets)
                && let Ok(shared) = resolver.agree(&head.key)
            {
                prop_assert!(head.open(&shared, sealed).is_err());
            }
            prop_assert!(Certificate::parse_own(&octets).is_err());
        }
    }
}
