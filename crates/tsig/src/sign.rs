//! Requests and replies: one message each way, and replies of many messages as their sender makes
//! them.

use std::sync::Arc;

use wire::{Class, Name, Rcode};

use crate::FUDGE_S;
use crate::key::{Key, Keys};
use crate::mac::{Digest, Mac};
use crate::record::{Parts, Signed, TsigError, append, bare_reply};

/// Why a request is not believed.
pub struct Refusal {
    /// What is wrong.
    pub error: TsigError,
    /// The reply that says so (RFC 8945 §5.2): NOTAUTH, or FORMERR for a MAC that no server would
    /// send.
    pub reply: Vec<u8>,
}

/// Signs the replies to one request: the first message with all of TSIG's variables, those after it
/// with the timers only (RFC 8945 §5.3.1).
pub struct Signer {
    key: Arc<Key>,
    /// The MAC of the message before: the request's, then that of each reply.
    prior: Mac,
    is_first: bool,
}

/// Feeds what stands in front of a message in a digest: the MAC before it, with its length.
pub(crate) fn feed_prior(digest: &mut Digest, prior: &[u8]) {
    digest.feed(&(prior.len() as u16).to_be_bytes());
    digest.feed(prior);
}

/// Feeds the variables (RFC 8945 §4.3.3).
pub(crate) fn feed_variables(
    digest: &mut Digest,
    key: Name<'_>,
    algorithm: &[u8],
    (time, fudge): (u64, u16),
    error: TsigError,
    other: &[u8],
) {
    digest.feed(key.as_bytes());
    digest.feed(&Class::ANY.0.to_be_bytes());
    digest.feed(&[0; 4]);
    digest.feed(algorithm);
    feed_timers(digest, time, fudge);
    digest.feed(&error.0.to_be_bytes());
    digest.feed(&(other.len() as u16).to_be_bytes());
    digest.feed(other);
}

/// Feeds the timers alone (RFC 8945 §5.3.1).
pub(crate) fn feed_timers(digest: &mut Digest, time: u64, fudge: u16) {
    digest.feed(&time.to_be_bytes()[2..]);
    digest.feed(&fudge.to_be_bytes());
}

/// Verifies a request at `now` (seconds since 1970).
pub fn verify(signed: &Signed<'_>, keys: &Keys, now: u64) -> Result<Signer, Box<Refusal>> {
    let request = signed.message();
    let unsigned = |error: TsigError| {
        let mut reply = bare_reply(&request, Rcode::NOTAUTH);
        append(
            &mut reply,
            &Parts {
                key: signed.key.as_name(),
                algorithm: signed.algorithm.as_name().as_bytes(),
                time: signed.time,
                fudge: signed.fudge,
                mac: &[],
                original_id: signed.original_id,
                error,
                other: &[],
            },
        );
        Box::new(Refusal { error, reply })
    };
    let key = keys.find(signed.key.as_name());
    let of_algorithm =
        |key: &&Arc<Key>| signed.algorithm.as_name().as_bytes().eq_ignore_ascii_case(key.algorithm().name());
    let Some(key) = key.filter(of_algorithm) else { return Err(unsigned(TsigError::BADKEY)) };
    let algorithm = key.algorithm();
    // RFC 8945 §5.2.2.1: no algorithm has such MACs.
    if !(algorithm.octets_min()..=algorithm.octets()).contains(&signed.mac.len()) {
        return Err(Box::new(Refusal {
            error: TsigError::BADSIG,
            reply: bare_reply(&request, Rcode::FORMERR),
        }));
    }
    let mut digest = key.prepared.begin();
    digest.feed(&signed.digested());
    let timers = (signed.time, signed.fudge);
    feed_variables(&mut digest, key.name(), algorithm.name(), timers, signed.error, signed.other);
    if !digest.finish().begins_with(signed.mac) {
        return Err(unsigned(TsigError::BADSIG));
    }
    let signer = Signer { key: Arc::clone(key), prior: Mac::new(signed.mac), is_first: true };
    if now.abs_diff(signed.time) > u64::from(signed.fudge) {
        // RFC 8945 §5.2.3: with the client's time, so that it can verify this, and ours beside it.
        let reply = bare_reply(&request, Rcode::NOTAUTH);
        let other = now.to_be_bytes();
        let reply = signer.with_error(reply, signed.time, TsigError::BADTIME, &other[2..]);
        return Err(Box::new(Refusal { error: TsigError::BADTIME, reply }));
    }
    if signed.mac.len() < key.mac_octets {
        let reply = signer.with_error(bare_reply(&request, Rcode::NOTAUTH), now, TsigError::BADTRUNC, &[]);
        return Err(Box::new(Refusal { error: TsigError::BADTRUNC, reply }));
    }
    Ok(signer)
}

/// Signs a request and returns what verifies its replies.
pub fn sign_request(key: &Arc<Key>, message: &mut Vec<u8>, now: u64) -> crate::Verifier {
    let algorithm = key.algorithm();
    let mut digest = key.prepared.begin();
    digest.feed(message);
    feed_variables(&mut digest, key.name(), algorithm.name(), (now, FUDGE_S), TsigError::NONE, &[]);
    let mac = digest.finish().cut_to(key.mac_octets);
    append(message, &parts(key, message, now, &mac, TsigError::NONE, &[]));
    crate::Verifier::new(Arc::clone(key), mac)
}

fn parts<'a>(
    key: &'a Key,
    message: &[u8],
    time: u64,
    mac: &'a Mac,
    error: TsigError,
    other: &'a [u8],
) -> Parts<'a> {
    let original_id = message.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
    Parts {
        key: key.name(),
        algorithm: key.algorithm().name(),
        time,
        fudge: FUDGE_S,
        mac: mac.as_bytes(),
        original_id,
        error,
        other,
    }
}

impl Signer {
    /// Returns the key.
    pub const fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// Returns how many octets a signature takes.
    pub fn record_octets(&self) -> usize {
        self.key.record_octets()
    }

    /// Signs the next message of the reply at `now`.
    pub fn sign(&mut self, message: &mut Vec<u8>, now: u64) {
        let key = Arc::clone(&self.key);
        let mut digest = key.prepared.begin();
        feed_prior(&mut digest, self.prior.as_bytes());
        digest.feed(message);
        if self.is_first {
            let timers = (now, FUDGE_S);
            feed_variables(&mut digest, key.name(), key.algorithm().name(), timers, TsigError::NONE, &[]);
        } else {
            feed_timers(&mut digest, now, FUDGE_S);
        }
        let mac = digest.finish().cut_to(key.mac_octets);
        let parts = parts(&key, message, now, &mac, TsigError::NONE, &[]);
        append(message, &parts);
        self.prior = mac;
        self.is_first = false;
    }

    /// Signs a reply that says what is wrong with the request.
    fn with_error(&self, mut reply: Vec<u8>, time: u64, error: TsigError, other: &[u8]) -> Vec<u8> {
        let mut digest = self.key.prepared.begin();
        feed_prior(&mut digest, self.prior.as_bytes());
        digest.feed(&reply);
        let (name, algorithm) = (self.key.name(), self.key.algorithm().name());
        feed_variables(&mut digest, name, algorithm, (time, FUDGE_S), error, other);
        let mac = digest.finish().cut_to(self.key.mac_octets);
        let parts = parts(&self.key, &reply, time, &mac, error, other);
        append(&mut reply, &parts);
        reply
    }
}
