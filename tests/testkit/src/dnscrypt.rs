//! A resolver of DNSCrypt version 2, as the protocol's draft describes it, in front of what a stub
//! answers.

use crate::ask::{name, name_text};
use aws_lc_rs::agreement::{PrivateKey, X25519};
use aws_lc_rs::rand;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use dnscrypt::{NONCE_OCTETS, RESOLVER_MAGIC, SharedKey, System, pad, unpad};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::{Flags, Header, Query, Rtype};

/// The name that certificates are asked for under.
const PROVIDER: &str = "2.dnscrypt-cert.example.org";
/// Seconds of a day.
const DAY: u64 = 86_400;

/// Who vouches for a resolver, and the resolver's keys.
pub struct Provider {
    signing: Ed25519KeyPair,
    system: System,
    keys: Mutex<Keys>,
}

struct Keys {
    own: PrivateKey,
    magic: [u8; 8],
    serial: u32,
    certificate: Vec<u8>,
}

impl Provider {
    /// Makes a provider and a key that is valid for a day.
    ///
    /// # Panics
    ///
    /// When the machine has no randomness.
    pub fn new(system: System) -> Self {
        let signing = Ed25519KeyPair::generate().expect("a key");
        let keys = Mutex::new(make(&signing, system, 1, now() - DAY / 2, now() + DAY / 2));
        Self { signing, system, keys }
    }

    /// Lets the resolver have another key from now on; it forgets the one before.
    ///
    /// # Panics
    ///
    /// When the machine has no randomness.
    pub fn rotate(&self) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        *keys = make(&self.signing, self.system, keys.serial + 1, now() - 1, now() + DAY);
    }

    /// Lets the resolver show a certificate that ended a day ago.
    ///
    /// # Panics
    ///
    /// When the machine has no randomness.
    pub fn expire(&self) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        *keys = make(&self.signing, self.system, keys.serial + 1, now() - 3 * DAY, now() - DAY);
    }

    /// Returns the DNS stamp of a resolver at this address; with another key than the provider's if
    /// it is to be wrong.
    pub fn stamp(&self, address: SocketAddr, is_right: bool) -> String {
        let mut key = self.signing.public_key().as_ref().to_vec();
        key[0] ^= u8::from(!is_right);
        stamp(address, &key, PROVIDER)
    }

    /// Answers what came: the certificate, or what `answer` says to what is inside. Nothing is said
    /// to what cannot be read.
    pub(crate) fn serve(
        &self,
        packet: &[u8],
        over_tcp: bool,
        answer: impl FnOnce(&[u8]) -> Vec<Vec<u8>>,
    ) -> Vec<Vec<u8>> {
        if let Ok(query) = Query::parse(packet) {
            return self.certificate_for(&query).into_iter().collect();
        }
        let Some((shared, half, plain)) = self.open(packet) else { return Vec::new() };
        let seal = |reply: &[u8]| {
            let mut nonce = [0; NONCE_OCTETS];
            rand::fill(&mut nonce[12..]).expect("randomness");
            nonce[..12].copy_from_slice(&half);
            let padded = pad(reply, (reply.len() + 1).next_multiple_of(64));
            [&RESOLVER_MAGIC[..], &nonce, &shared.seal(&nonce, &padded)].concat()
        };
        let replies = answer(&plain).into_iter().map(|reply| {
            let sealed = seal(&reply);
            if over_tcp || sealed.len() <= packet.len() {
                return sealed;
            }
            // Over UDP an answer is never larger than its query: header and question, and TC.
            seal(&cut(&reply, &plain))
        });
        replies.collect()
    }

    fn open(&self, packet: &[u8]) -> Option<(SharedKey, [u8; 12], Vec<u8>)> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = packet.strip_prefix(&keys.magic)?;
        let (client, rest) = rest.split_first_chunk::<32>()?;
        let (half, sealed) = rest.split_first_chunk::<12>()?;
        let shared = SharedKey::agree(self.system, &keys.own, client).ok()?;
        let mut nonce = [0; NONCE_OCTETS];
        nonce[..12].copy_from_slice(half);
        let plain = shared.open(&nonce, sealed).ok()?;
        Some((shared, *half, unpad(&plain).ok()?.to_vec()))
    }

    fn certificate_for(&self, query: &Query<'_>) -> Option<Vec<u8>> {
        let asked = name_text(query.question.qname.as_bytes());
        if query.question.qtype != Rtype::TXT || asked != name_text(name(PROVIDER).as_name().as_bytes()) {
            return None;
        }
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let header =
            Header { id: query.header.id, flags: Flags::QR, questions: 1, answers: 1, ..Header::default() };
        let mut reply = [&header.to_bytes()[..], query.question_bytes()].concat();
        reply.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60]);
        reply.extend((keys.certificate.len() as u16 + 1).to_be_bytes());
        reply.push(keys.certificate.len() as u8);
        reply.extend(&keys.certificate);
        Some(reply)
    }
}

/// Returns the DNS stamp of a resolver at this address whose provider has this key and name.
pub fn stamp(address: SocketAddr, key: &[u8], provider: &str) -> String {
    let mut bytes = vec![1, 0, 0, 0, 0, 0, 0, 0, 0];
    for part in [address.to_string().as_bytes(), key, provider.as_bytes()] {
        bytes.push(part.len() as u8);
        bytes.extend(part);
    }
    let text = crate::identity::base64(&bytes).replace('+', "-").replace('/', "_");
    format!("sdns://{}", text.trim_end_matches('='))
}

/// Returns the header of a reply with TC, and the question.
fn cut(reply: &[u8], query: &[u8]) -> Vec<u8> {
    let mut header = Header::parse(reply).expect("a reply");
    header.flags = header.flags.with(Flags::TC);
    let header = Header { answers: 0, authorities: 0, additionals: 0, ..header };
    let query = Query::parse(query).expect("a query");
    [&header.to_bytes()[..], query.question_bytes()].concat()
}

fn make(signing: &Ed25519KeyPair, system: System, serial: u32, from: u64, until: u64) -> Keys {
    let own = PrivateKey::generate(&X25519).expect("a key");
    let public = own.compute_public_key().expect("a key");
    let magic: [u8; 8] = public.as_ref()[..8].try_into().expect("8 octets");
    let body = [
        public.as_ref(),
        &magic,
        &serial.to_be_bytes(),
        &(from as u32).to_be_bytes(),
        &(until as u32).to_be_bytes(),
    ]
    .concat();
    let head = [&b"DNSC"[..], &system.number().to_be_bytes(), &[0, 0]].concat();
    let certificate = [&head[..], signing.sign(&body).as_ref(), &body].concat();
    Keys { own, magic, serial, certificate }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
