//! Session tickets (RFC 8446 §4.6.1, RFC 5077).

use std::fmt;
use std::sync::Arc;

use ::aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use ::aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use plan::Secret;
use plan::tls::TICKET_KEY_OCTETS;
use rustls::crypto::aws_lc_rs;
use rustls::server::ProducesTickets;

/// Octets of the name of a key, which stand before each ticket.
const NAME_OCTETS: usize = 16;
/// Octets of a key for AES-256.
const KEY_OCTETS: usize = 32;
/// How long a ticket is good for, in seconds: as long as those of keys that are made here.
const LIFETIME_SECONDS: u32 = 12 * 3600;

/// The keys of session tickets, which all workers and configurations share, so that a client can
/// resume on any of them. A new key is made every six hours, and the one before is still read,
/// unless keys are given.
///
/// Who resumes is not asked for a certificate again: a ticket is worth nothing where more is
/// demanded than where it was given, because there the keys are others.
#[derive(Clone)]
pub(super) struct TicketKeys(pub(super) [Arc<dyn ProducesTickets>; 4]);

impl TicketKeys {
    /// Makes keys.
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let new = aws_lc_rs::Ticketer::new;
        Ok(Self([new()?, new()?, new()?, new()?]))
    }

    /// Takes keys that other servers have, too: tickets are made with the first, and those of all
    /// are read.
    pub(super) fn given(keys: &[Secret]) -> Result<Self, rustls::Error> {
        let of = |demand: u8| -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
            let keys: Option<Vec<GivenKey>> = keys.iter().map(|key| GivenKey::new(key, demand)).collect();
            let keys = keys.filter(|keys| !keys.is_empty());
            let wrong = || rustls::Error::General("a key of session tickets cannot be used".to_owned());
            Ok(Arc::new(Given(keys.ok_or_else(wrong)?)))
        };
        Ok(Self([of(0)?, of(1)?, of(2)?, of(3)?]))
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys(…)")
    }
}

/// Keys that were given; the first makes tickets.
struct Given(Vec<GivenKey>);

struct GivenKey {
    name: [u8; NAME_OCTETS],
    key: RandomizedNonceKey,
}

/// Asks HKDF for a key.
struct Wanted;

impl KeyType for Wanted {
    fn len(&self) -> usize {
        KEY_OCTETS
    }
}

impl GivenKey {
    /// Derives a key for tickets of clients of whom so much is demanded.
    fn new(secret: &Secret, demand: u8) -> Option<Self> {
        let secret: &[u8; TICKET_KEY_OCTETS] = secret.reveal().try_into().ok()?;
        let (name, rest) = secret.split_first_chunk::<NAME_OCTETS>()?;
        let salt = Salt::new(HKDF_SHA256, b"gannet session tickets");
        let mut key = [0; KEY_OCTETS];
        let info: [&[u8]; 1] = [&[demand]];
        salt.extract(rest).expand(&info, Wanted).ok()?.fill(&mut key).ok()?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key).ok()?;
        Some(Self { name: *name, key })
    }

    /// Returns name, nonce and sealed session.
    fn seal(&self, session: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = session.to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(self.name), &mut sealed).ok()?;
        Some([&self.name[..], nonce.as_ref(), &sealed].concat())
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME_OCTETS>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        if *name != self.name {
            return None;
        }
        let mut session = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let len = self.key.open_in_place(nonce, Aad::from(self.name), &mut session).ok()?.len();
        session.truncate(len);
        Some(session)
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given(…)")
    }
}

impl ProducesTickets for Given {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_SECONDS
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.first()?.seal(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.iter().find_map(|key| key.open(cipher))
    }
}
