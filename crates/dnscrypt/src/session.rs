//! Queries for one resolver, and the responses to them.

use aws_lc_rs::agreement::{PrivateKey, X25519};
use aws_lc_rs::rand;

use crate::sealing::{KEY_OCTETS, NONCE_OCTETS, SharedKey, TAG_OCTETS};
use crate::{Certificate, RESOLVER_MAGIC, Wrong};

/// Octets of the half of a nonce that the client chooses.
pub(crate) const HALF_OCTETS: usize = NONCE_OCTETS / 2;
/// Octets of a query besides what is encrypted and its proof.
const HEAD_OCTETS: usize = 8 + KEY_OCTETS + HALF_OCTETS;
/// What is encrypted is filled up to a multiple of this.
pub(crate) const BLOCK_OCTETS: usize = 64;
/// What a padding begins with (ISO/IEC 7816-4).
pub(crate) const PADDING: u8 = 0x80;
/// Octets of the largest query that resolvers take.
const QUERY_OCTETS_MAX: usize = 4096;

/// The half of a nonce that tells whose response comes.
pub type Nonce = [u8; HALF_OCTETS];

/// How a query travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// In a datagram of at least so many octets, since the response must not be larger.
    Datagram(usize),
    /// Over a connection, filled up at random.
    Connection,
}

/// A key of ours and what it has in common with a resolver's.
pub struct Session {
    magic: [u8; 8],
    public: [u8; KEY_OCTETS],
    shared: SharedKey,
}

impl Session {
    /// Begins with a new key of ours.
    pub fn new(certificate: &Certificate) -> Result<Self, Wrong> {
        Self::with_key(certificate, &PrivateKey::generate(&X25519).map_err(|_| Wrong::Machine)?)
    }

    fn with_key(certificate: &Certificate, own: &PrivateKey) -> Result<Self, Wrong> {
        let public = own.compute_public_key().map_err(|_| Wrong::Machine)?;
        let public = public.as_ref().try_into().map_err(|_| Wrong::Machine)?;
        let shared = SharedKey::agree(certificate.system, own, &certificate.key)?;
        Ok(Self { magic: certificate.magic, public, shared })
    }

    /// Encrypts a query; returns also what its response begins with.
    pub fn seal(&self, query: &[u8], travel: Travel) -> Result<(Vec<u8>, Nonce), Wrong> {
        let mut nonce = [0; HALF_OCTETS];
        let mut chance = [0];
        rand::fill(&mut nonce).and_then(|()| rand::fill(&mut chance)).map_err(|_| Wrong::Machine)?;
        let overhead = HEAD_OCTETS + TAG_OCTETS;
        let least = match travel {
            Travel::Datagram(octets) => octets.saturating_sub(overhead),
            // Up to four blocks more than are needed.
            Travel::Connection => query.len() + 1 + BLOCK_OCTETS * usize::from(chance[0] & 3),
        };
        let size = least.max(query.len() + 1).next_multiple_of(BLOCK_OCTETS);
        if size + overhead > QUERY_OCTETS_MAX {
            return Err(Wrong::Malformed);
        }
        Ok((self.seal_with(nonce, &pad(query, size)), nonce))
    }

    fn seal_with(&self, nonce: Nonce, padded: &[u8]) -> Vec<u8> {
        let mut whole = [0; NONCE_OCTETS];
        if let Some(half) = whole.first_chunk_mut() {
            *half = nonce;
        }
        [&self.magic[..], &self.public, &nonce, &self.shared.seal(&whole, padded)].concat()
    }

    /// Decrypts a response; returns the half of the nonce that says which query it is for, and the
    /// reply.
    pub fn open(&self, response: &[u8]) -> Result<(Nonce, Vec<u8>), Wrong> {
        let rest = response.strip_prefix(&RESOLVER_MAGIC).ok_or(Wrong::Malformed)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_OCTETS>().ok_or(Wrong::Malformed)?;
        let half = *nonce.first_chunk().ok_or(Wrong::Malformed)?;
        let mut plain = self.shared.open(nonce, sealed)?;
        let octets = unpad(&plain)?.len();
        plain.truncate(octets);
        Ok((half, plain))
    }
}

/// Returns whether octets look like a response, and to which query, before any of them is
/// decrypted.
pub fn is_response(octets: &[u8]) -> Option<Nonce> {
    octets.strip_prefix(&RESOLVER_MAGIC)?.first_chunk().copied()
}

/// Fills a message up to so many octets, or by one if it has as many.
pub fn pad(message: &[u8], octets: usize) -> Vec<u8> {
    let mut padded = Vec::with_capacity(octets.max(message.len() + 1));
    padded.extend_from_slice(message);
    padded.push(PADDING);
    padded.resize(octets.max(padded.len()), 0);
    padded
}

/// Returns a message without what fills it up.
pub fn unpad(padded: &[u8]) -> Result<&[u8], Wrong> {
    let end = padded.iter().rposition(|&octet| octet != 0).ok_or(Wrong::Padding)?;
    match padded.split_at_checked(end) {
        Some((message, [PADDING, ..])) => Ok(message),
        _ => Err(Wrong::Padding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::System;
    use crate::sealing::tests::{array, octets, private};
    use proptest::prelude::*;

    // draft-denis-dprive-dnscrypt-11, sections 14.1, 14.2, 14.5 and 14.6.
    const QUERY: &str = "12340100000100000000000003777777076578616d706c6503636f6d0000010001";
    const QUERY_ON_THE_WIRE: &str = "b1b2b3b4b5b6b7b879a631eede1bf9c98f12032cdeadd0e7a079398fc786b88c\
         c846ec89af85a51aa0a1a2a3a4a5a6a7a8a9aaab2dae527c26386d5cd4e61152\
         db6dd1812ff6aaf7644fc122afc70b1b580b18f10fbc26577abc759152cde31c\
         d0afc5c5f452f8654815469723300819bed5a12015c044b94d63ec1f79e48a23\
         968e437feb8bb8720cf4e60a0499746190c8b3eb83aeb0d858df77794270b861\
         f86644502be0d22d6f0b2b132e9ca68538300c8d68b8e3c48190cbbf96d602f3\
         8dfc3b4d642016ceeaf4bc2c2ded9483b9f9d4eed703a0bebc252add8822d4b9\
         152e30670bcde9ea75a0e3e67ea576e9b1262bb2b25b4f9432311b75a2238b34\
         bf4f868da182b85dccb1762a703bba31d04d77b4c57ec9039663959793677588\
         b3a74ae409b0f16374dd64cbd6d47d801725b014ce9ddaf6f1aa30688c8efcbf\
         de1d5d1d";
    const REPLY: &str = "12348180000100010000000003777777076578616d706c6503636f6d00000100\
         01c00c0001000100000e1000045db8d822";
    const RESPONSE_ON_THE_WIRE: &str = "7236666e76576a38a0a1a2a3a4a5a6a7a8a9aaabc0c1c2c3c4c5c6c7c8c9cacb\
         f2670995c6d37c2f8d2016029dd5970b893de83c02815ece9b48d9fd0b0dca87\
         41674142fbd8e12c1120b111f366326aa71c89823a2931ac5c860dad49685ed6\
         cc22cc13e829d2e51d1c00ea64d1d39d";

    fn certificate(system: System, key: [u8; 32]) -> Certificate {
        Certificate { system, key, magic: array("b1b2b3b4b5b6b7b8"), serial: 1, valid: (1, 2) }
    }

    fn session() -> Session {
        let resolver = array("358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254");
        let own: Vec<u8> = (0x40..0x60).collect();
        Session::with_key(&certificate(System::XChaCha20, resolver), &private(&own)).expect("a session")
    }

    #[test]
    fn the_query_of_the_draft_is_sealed() {
        let nonce = array("a0a1a2a3a4a5a6a7a8a9aaab");
        assert_eq!(session().seal_with(nonce, &pad(&octets(QUERY), 256)), octets(QUERY_ON_THE_WIRE));
    }

    #[test]
    fn the_response_of_the_draft_is_opened() {
        let response = octets(RESPONSE_ON_THE_WIRE);
        let nonce = array("a0a1a2a3a4a5a6a7a8a9aaab");
        assert_eq!(is_response(&response), Some(nonce));
        assert_eq!(session().open(&response), Ok((nonce, octets(REPLY))));
        for at in 0..response.len() {
            let mut bad = response.clone();
            bad[at] ^= 1;
            assert!(session().open(&bad).is_err(), "octet {at}");
        }
    }

    #[test]
    fn a_resolver_reads_what_was_sealed_for_it() {
        for system in [System::XSalsa20, System::XChaCha20] {
            let theirs = PrivateKey::generate(&X25519).expect("a key");
            let public = theirs.compute_public_key().expect("a key").as_ref().try_into().expect("32 octets");
            let session = Session::new(&certificate(system, public)).expect("a session");
            for travel in [Travel::Datagram(512), Travel::Datagram(256), Travel::Connection] {
                let (packet, half) = session.seal(b"a question", travel).expect("room");
                if let Travel::Datagram(least) = travel {
                    assert!(packet.len() >= least, "{} octets", packet.len());
                }
                assert_eq!((packet.len() - HEAD_OCTETS - TAG_OCTETS) % BLOCK_OCTETS, 0);
                let key = packet[8..40].try_into().expect("32 octets");
                let shared = SharedKey::agree(system, &theirs, &key).expect("a key");
                let mut nonce = [0; NONCE_OCTETS];
                nonce[..12].copy_from_slice(&half);
                let plain = shared.open(&nonce, &packet[HEAD_OCTETS..]).expect("a query");
                assert_eq!(unpad(&plain), Ok(&b"a question"[..]));
                nonce[12..].fill(3);
                let sealed = shared.seal(&nonce, &pad(b"an answer", 64));
                let response = [&RESOLVER_MAGIC[..], &nonce, &sealed].concat();
                assert_eq!(session.open(&response), Ok((half, b"an answer".to_vec())));
            }
        }
    }

    #[test]
    fn equal_queries_look_different() {
        let [one, two] = [(); 2].map(|()| session().seal(b"q", Travel::Datagram(256)).expect("room").0);
        assert_ne!(one, two);
    }

    #[test]
    fn padding_is_one_octet_and_zeros() {
        assert_eq!(pad(b"abc", 4), b"abc\x80");
        assert_eq!(pad(b"abc", 3), b"abc\x80");
        assert_eq!(unpad(b"abc\x80\0\0"), Ok(&b"abc"[..]));
        assert_eq!(unpad(b"abc\x81\0"), Err(Wrong::Padding));
        assert_eq!(unpad(b"\0\0"), Err(Wrong::Padding));
        assert_eq!(unpad(b""), Err(Wrong::Padding));
    }

    #[test]
    fn what_resolvers_would_not_take_is_not_sealed() {
        assert_eq!(session().seal(&[0; 4096], Travel::Connection).err(), Some(Wrong::Malformed));
    }

    proptest! {
        #[test]
        fn padding_comes_off_again(message in proptest::collection::vec(any::<u8>(), 0..300), size in 0usize..600) {
            let padded = pad(&message, size);
            prop_assert_eq!(unpad(&padded), Ok(&message[..]));
        }

        #[test]
        fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(session().open(&octets).is_err());
            prop_assert!(Certificate::parse(&octets, &[1; 32]).is_err());
            drop(crate::text(&octets));
        }
    }
}
