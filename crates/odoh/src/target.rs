//! The side that answers.

use aws_lc_rs::agreement::PrivateKey;
use aws_lc_rs::rand;

use crate::Wrong;
use crate::hpke::{self, Context, HASH_OCTETS, KEY_OCTETS, NONCE_OCTETS, PUBLIC_OCTETS, Public};
use crate::message::{self, Kind, Message};

/// What queries are encrypted for (RFC 9230 §6.2).
pub(crate) const PURPOSE: &[u8] = b"odoh query";
/// And responses.
const RESPONSE_PURPOSE: &[u8] = b"odoh response";
/// Octets that are drawn for each response: as many as the larger of key and nonce has.
const RESPONSE_NONCE_OCTETS: usize = KEY_OCTETS;
/// Responses are filled up to a multiple of this (RFC 8467 §4.1).
const RESPONSE_BLOCK_OCTETS: usize = 468;
/// Octets of the shortest secret that a key can be made of.
const SECRET_OCTETS_MIN: usize = 32;

/// A key pair, and what clients must know of it.
pub struct Target {
    key: PrivateKey,
    public: Public,
    contents: Vec<u8>,
    key_id: [u8; HASH_OCTETS],
}

impl Target {
    /// Makes a target with a new key.
    pub fn generate() -> Result<Self, Wrong> {
        Self::with_key(hpke::random_key()?)
    }

    /// Makes a target whose key follows from at least 32 secret octets, so that several can share
    /// it.
    pub fn from_secret(secret: &[u8]) -> Result<Self, Wrong> {
        if secret.len() < SECRET_OCTETS_MIN {
            return Err(Wrong::Machine);
        }
        Self::with_key(hpke::derive_key(secret)?)
    }

    fn with_key(key: PrivateKey) -> Result<Self, Wrong> {
        let public = hpke::public(&key)?;
        let contents = message::contents(&public);
        let key_id = message::key_id(&contents);
        Ok(Self { key, public, contents, key_id })
    }

    /// Returns what clients are told: `ObliviousDoHConfigs` with this one key.
    pub fn configs(&self) -> Vec<u8> {
        Self::configs_of([self])
    }

    /// Returns the same for several keys, the one that clients should use first.
    pub fn configs_of<'t>(targets: impl IntoIterator<Item = &'t Self>) -> Vec<u8> {
        let contents = targets.into_iter().map(|target| target.contents.as_slice());
        // Some 40 octets each: thousands fit.
        message::write_configs(contents).unwrap_or_default()
    }

    /// Returns what the key is called in messages.
    pub fn key_id(&self) -> &[u8; HASH_OCTETS] {
        &self.key_id
    }

    /// Decrypts a query; returns the DNS message, and what the response to it is encrypted with.
    ///
    /// [`Wrong::Key`] is for the client to ask for the configuration again (status 401), everything
    /// else is its mistake (400).
    pub fn open(&self, query: &[u8]) -> Result<(Vec<u8>, ResponseContext), Wrong> {
        let message = Message::parse(query, Kind::Query)?;
        if message.key != self.key_id {
            return Err(Wrong::Key);
        }
        let (encapsulated, sealed) =
            message.sealed.split_first_chunk::<PUBLIC_OCTETS>().ok_or(Wrong::Malformed)?;
        let context = Context::from(encapsulated, &self.key, &self.public, PURPOSE)?;
        let plain = context.open(&message::associated(Kind::Query, message.key)?, sealed)?;
        let dns = message::unpad(&plain)?.to_vec();
        Ok((dns, ResponseContext { secret: context.export(RESPONSE_PURPOSE), plain }))
    }
}

/// What the response to one query is encrypted with.
pub struct ResponseContext {
    secret: [u8; KEY_OCTETS],
    /// The query, with what filled it up.
    plain: Vec<u8>,
}

impl ResponseContext {
    pub(crate) fn new(context: &Context, plain: Vec<u8>) -> Self {
        Self { secret: context.export(RESPONSE_PURPOSE), plain }
    }

    /// Encrypts the reply, filled up to a multiple of 468 octets.
    pub fn seal(&self, reply: &[u8]) -> Result<Vec<u8>, Wrong> {
        let mut nonce = [0; RESPONSE_NONCE_OCTETS];
        rand::fill(&mut nonce).map_err(|_| Wrong::Machine)?;
        // The longest messages cannot be filled up further.
        let block = if reply.len() + RESPONSE_BLOCK_OCTETS < usize::from(u16::MAX) - 64 {
            RESPONSE_BLOCK_OCTETS
        } else {
            1
        };
        self.seal_with(&nonce, &message::pad(reply, block)?)
    }

    fn seal_with(&self, nonce: &[u8], plain: &[u8]) -> Result<Vec<u8>, Wrong> {
        let (key, iv) = self.secrets(nonce)?;
        let sealed = hpke::seal(&key, iv, &message::associated(Kind::Response, nonce)?, plain.to_vec())?;
        Message::write(Kind::Response, nonce, &sealed)
    }

    /// Decrypts the response.
    pub(crate) fn open(&self, response: &[u8]) -> Result<Vec<u8>, Wrong> {
        let message = Message::parse(response, Kind::Response)?;
        let (key, iv) = self.secrets(message.key)?;
        let plain = hpke::open(&key, iv, &message::associated(Kind::Response, message.key)?, message.sealed)?;
        message::unpad(&plain).map(<[u8]>::to_vec)
    }

    /// RFC 9230 §6.2, `derive_secrets`.
    fn secrets(&self, nonce: &[u8]) -> Result<([u8; KEY_OCTETS], [u8; NONCE_OCTETS]), Wrong> {
        let length = u16::try_from(nonce.len()).map_err(|_| Wrong::Malformed)?.to_be_bytes();
        let salt = [&self.plain[..], &length, nonce].concat();
        let key = hpke::extract(&salt, &[&self.secret]);
        Ok((hpke::expand(&key, &[b"odoh key"]), hpke::expand(&key, &[b"odoh nonce"])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::octets;

    // Published with the implementation of one of the RFC's authors (github.com/cloudflare/odoh-go,
    // test-vectors.json); the key's configuration stands there under the number of a draft, with
    // the same content.
    const SEED: &str = "5e32c845d3453f73f4d899662ef64dc45c4b1d207944ccf1bcdefd04a232ee2c";
    const CONFIGS: &str = "002c000100280020000100010020\
         3c7769245980d261c2189e4ed0e05e61d560263a88d6c6c5858187fe75392877";
    const KEY_ID: &str = "2e8b2b5f69a41e7d019361cbf4319a29cf3bb5b694ac126b86c5e9bb86e0216f";
    const QUERY: &str = "be1cb197cc51c233520882f88989231f710bf79c016d02dad43b9a354b284414";
    const OBLIVIOUS_QUERY: &str = "0100202e8b2b5f69a41e7d019361cbf4319a29cf3bb5b694ac126b86c5e9bb86e0216f0054dc7733a1156a46\
         19f0ed910e0ba7b037891c0557a220f57942afcecb13e45e2608c744c97258a146210a4567ed4b8122ddeaa0\
         cacd0fef0a5d63d4a101ff3c7892df36fa702c7e7188ebf4bfd4b299b3bd93746c";
    const RESPONSE_PADDING: usize = 64;
    const OBLIVIOUS_RESPONSE: &str = "0200107d535c70d90aba153ed34bb7a40c26bd0094bef8bcc4f94a85b4e0f38b9b82a77710ca6491cb65d149\
         9eff7c2a5fffe0215ece62ed1e08c1ceb61336bd0bb41c47260e1263e77d9079d3e6ec09fca1c6c939b63892\
         7e5a1513d71d3ac29eb4c1b8b18a0e513e7e73085d13b50447ae92d908d065c0db4a326c971af54979c43776\
         3fad76f97c14b92de595e8afe9bdbd7e8c03c407e71aa639e6855e890fc1f5ed609d016458";

    fn target() -> Target {
        Target::from_secret(&octets(SEED)).expect("a key")
    }

    #[test]
    fn a_key_is_announced_as_in_the_vectors() {
        assert_eq!(target().configs(), octets(CONFIGS));
        assert_eq!(target().key_id().to_vec(), octets(KEY_ID));
    }

    #[test]
    fn the_query_of_the_vectors_is_opened_and_its_response_sealed() {
        let (query, context) = target().open(&octets(OBLIVIOUS_QUERY)).expect("a query");
        assert_eq!(query, octets(QUERY));
        let expect = octets(OBLIVIOUS_RESPONSE);
        let reply = octets(&QUERY.repeat(2));
        let mut plain = (reply.len() as u16).to_be_bytes().to_vec();
        plain.extend(&reply);
        plain.extend((RESPONSE_PADDING as u16).to_be_bytes());
        plain.extend([0; RESPONSE_PADDING]);
        assert_eq!(context.seal_with(&expect[3..19], &plain), Ok(expect.clone()));
        assert_eq!(context.open(&expect), Ok(reply));
    }

    #[test]
    fn what_was_changed_on_the_way_is_refused() {
        let good = octets(OBLIVIOUS_QUERY);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x80;
            let expect = match at {
                0..3 | 35..37 => Wrong::Malformed,
                3..35 => Wrong::Key,
                _ => Wrong::Sealed,
            };
            // The topmost bit of an X25519 key is not part of it (RFC 7748 §5), but of what is
            // authenticated.
            assert_eq!(target().open(&bad).map(|(query, _)| query), Err(expect), "octet {at}");
        }
    }

    #[test]
    fn responses_are_filled_up() {
        let (_, context) = target().open(&octets(OBLIVIOUS_QUERY)).expect("a query");
        for len in [12, 400, 468, 469, 65_000] {
            let reply = vec![1; len];
            let sealed = context.seal(&reply).expect("room");
            let overhead = 1 + 2 + RESPONSE_NONCE_OCTETS + 2 + 4 + hpke::TAG_OCTETS;
            assert!(len > 60_000 || (sealed.len() - overhead).is_multiple_of(RESPONSE_BLOCK_OCTETS));
            assert_eq!(context.open(&sealed), Ok(reply));
        }
    }
}
