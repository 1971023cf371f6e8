//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! One message of a client: opened, answered, and the answer sealed.
//!
//! What is not right gets no answer, and is counted: whoever cannot seal a query could not open an
//! answer, and is perhaps somebody else than the one whose address it bears.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use dnscrypt::{QueryHead, RESPONSE_HEAD_OCTETS, ResponseKey, SharedKey, datagram_limit, response_octets};
use engine::{Address, Client, Now, Outlet};
use plan::dnscrypt::{ProviderPlan, ResolverKeyPlan};
use wire::{MESSAGE_OCTETS_MAX, Query};

use super::agreed::AgreedKeys;
use super::replays::Replays;
use super::{Dnscrypt, DnscryptCell, certificates};
use crate::allowances::{Allowances, Allowed};
use crate::counters::Counters;
use crate::service::{Answer, Answered};

/// The shortest datagram that is a query. No answer is longer than its question, so nobody gains
/// from asking in somebody else's name.
const DATAGRAM_OCTETS_MIN: usize = 256;

/// What carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Datagram,
    Connection,
}

/// What became of a message.
#[must_use]
pub(crate) enum Sealed<D> {
    /// So many octets of the room are what the client gets.
    Reply(usize),
    /// Say nothing.
    Nothing,
    /// The reply comes later, and is sealed with this.
    Deferred(D, ReplyKey),
    /// It is not of DNSCrypt.
    Malformed,
}

/// What a late reply is sealed with, and how large it may be.
#[derive(Debug)]
pub(crate) struct ReplyKey {
    key: ResponseKey,
    octets_max: usize,
}

/// One worker's part.
pub(crate) struct Opener {
    cell: Arc<DnscryptCell>,
    /// Of the content in use.
    generation: Option<u64>,
    dnscrypt: Option<Arc<Dnscrypt>>,
    agreed: AgreedKeys,
    /// How many more there may be, of all workers together.
    key_agreements: Arc<Allowances>,
    workers: usize,
    /// Where messages are decrypted.
    scratch: Box<[u8]>,
    counters: Arc<Counters>,
}

impl Opener {
    /// Returns one of so many workers' parts.
    // Once per worker.
    pub(crate) fn new(
        cell: Arc<DnscryptCell>,
        key_agreements: Arc<Allowances>,
        workers: usize,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            cell,
            generation: None,
            dnscrypt: None,
            agreed: AgreedKeys::new(0),
            key_agreements,
            workers: workers.max(1),
            scratch: vec![0; MESSAGE_OCTETS_MAX].into_boxed_slice(),
            counters,
        }
    }

    /// Begins a batch.
    pub(crate) fn begin(&mut self) {
        if self.generation != Some(self.cell.generation()) {
            self.adopt();
        }
    }

    #[cold]
    fn adopt(&mut self) {
        let (content, generation) = self.cell.load();
        let octets = |content: &Option<Arc<Dnscrypt>>| content.as_ref().map_or(0, |it| it.plan.agreed_octets);
        if octets(&content) != octets(&self.dnscrypt) || self.generation.is_none() {
            self.agreed = AgreedKeys::new(octets(&content) / self.workers);
        }
        (self.dnscrypt, self.generation) = (content, Some(generation));
    }

    /// Answers a message into `room`.
    pub(crate) fn answer<E: Answer>(
        &mut self,
        engine: &mut E,
        message: &[u8],
        (client, now): (&Client, Now),
        (carrier, room): (Carrier, &mut [u8]),
    ) -> Sealed<E::Deferred> {
        let Self { dnscrypt: Some(dnscrypt), agreed, key_agreements, scratch, counters, .. } = self else {
            return Sealed::Nothing;
        };
        let Dnscrypt { plan, replays } = &**dnscrypt;
        let unix_seconds = u64::from(now.unix_seconds);
        let Some(ours) = key_of(plan, message, unix_seconds) else {
            return in_clear(engine, plan, message, (client, unix_seconds), (carrier, room), counters);
        };
        let opened = match scratch.get_mut(..message.len()) {
            Some(copy) if carrier == Carrier::Connection || message.len() >= DATAGRAM_OCTETS_MIN => {
                copy.copy_from_slice(message);
                let may_agree = || key_agreements.take(client.address, now.monotonic_ms) == Allowed::Yes;
                open(ours, copy, (agreed, replays), may_agree, counters)
            }
            Some(_) | None => Opened::Malformed,
        };
        let (query, key) = match opened {
            Opened::Query(query, key) => (query, key),
            Opened::Malformed => {
                counters.dnscrypt_malformed.bump();
                return Sealed::Malformed;
            }
            Opened::Again => {
                counters.dnscrypt_replayed.bump();
                return Sealed::Nothing;
            }
            Opened::Limited => {
                counters.dnscrypt_limited.bump();
                return Sealed::Nothing;
            }
        };
        counters.dnscrypt_queries.bump();
        let octets_max = match carrier {
            Carrier::Datagram => datagram_limit(room.len().min(message.len())),
            Carrier::Connection => datagram_limit(room.len()),
        };
        let reply_octets_max = u16::try_from(octets_max).unwrap_or(u16::MAX);
        // Nobody shows certificates here.
        let client = Client { reply_octets_max, certificate: None, ..*client };
        let Some(place) = room.get_mut(RESPONSE_HEAD_OCTETS..).and_then(|room| room.get_mut(..octets_max))
        else {
            return Sealed::Nothing;
        };
        match engine.answer(query, &client, place) {
            Answered::Reply(len) => key.seal(room, len).map_or(Sealed::Nothing, Sealed::Reply),
            Answered::Nothing => Sealed::Nothing,
            Answered::Deferred(deferred) => Sealed::Deferred(deferred, ReplyKey { key, octets_max }),
        }
    }
}

/// Returns which of our keys a message is sealed for.
fn key_of<'p>(plan: &'p ProviderPlan, message: &[u8], unix_seconds: u64) -> Option<&'p ResolverKeyPlan> {
    let magic = message.first_chunk::<8>()?;
    plan.keys.iter().find(|it| {
        let certificate = it.key.certificate();
        certificate.magic == *magic && certificate.is_valid_at(unix_seconds)
    })
}

/// What a message turned out to be.
enum Opened<'s> {
    /// A query, and what its response is sealed with.
    Query(&'s [u8], ResponseKey),
    /// A query that came before.
    Again,
    /// Its key is new, and there were too many new keys.
    Limited,
    /// Nobody sealed it for us.
    Malformed,
}

/// Opens a message where it stands. `may_agree` is asked before a key is agreed on: whose key is
/// known is served however many strangers come with new ones.
fn open<'s>(
    ours: &ResolverKeyPlan,
    message: &'s mut [u8],
    (agreed, replays): (&mut AgreedKeys, &Replays),
    may_agree: impl FnOnce() -> bool,
    counters: &Counters,
) -> Opened<'s> {
    let Some((head, sealed)) = QueryHead::split(message) else { return Opened::Malformed };
    let of = (head.key, head.magic);
    let (shared, is_new): (SharedKey, bool) = match agreed.find(&of) {
        Some(shared) => (*shared, false),
        None if !may_agree() => return Opened::Limited,
        None => {
            counters.dnscrypt_agreed.bump();
            match ours.key.agree(&head.key) {
                Ok(shared) => (shared, true),
                Err(_) => return Opened::Malformed,
            }
        }
    };
    let Ok(query) = head.open(&shared, sealed) else { return Opened::Malformed };
    if is_new {
        // Only a client that has its key: others would push out those that do.
        agreed.keep(of, shared);
    }
    match replays.is_known(&head) {
        true => Opened::Again,
        false => Opened::Query(query, ResponseKey::new(shared, &head)),
    }
}

/// Answers a message that is not sealed for a key of ours: if it asks for the certificates.
#[cold]
fn in_clear<E: Answer>(
    engine: &E,
    plan: &ProviderPlan,
    message: &[u8],
    (client, unix_seconds): (&Client, u64),
    (carrier, room): (Carrier, &mut [u8]),
    counters: &Counters,
) -> Sealed<E::Deferred> {
    let Some(query) = Query::parse(message).ok().filter(|query| certificates::is_asked_for(query, plan))
    else {
        counters.dnscrypt_cleartext.bump();
        return Sealed::Malformed;
    };
    if !engine.admits(&query, client) {
        return Sealed::Nothing;
    }
    counters.dnscrypt_certificates.bump();
    let limit = match carrier {
        Carrier::Datagram => certificates::datagram_limit(&query),
        Carrier::Connection => MESSAGE_OCTETS_MAX,
    };
    match certificates::write(&query, plan, unix_seconds, limit, room) {
        0 => Sealed::Nothing,
        len => Sealed::Reply(len),
    }
}

/// Returns the outlet for a late reply: `outlet` itself, or one that seals before it.
pub(crate) fn sealing(outlet: Rc<dyn Outlet>, reply_key: Option<ReplyKey>) -> Rc<dyn Outlet> {
    match reply_key {
        Some(reply_key) => Rc::new(SealingOutlet { outlet, reply_key }),
        None => outlet,
    }
}

/// Seals what is delivered.
struct SealingOutlet {
    outlet: Rc<dyn Outlet>,
    reply_key: ReplyKey,
}

impl SealingOutlet {
    /// Returns a sealed reply; `None` if it is too large.
    // Whoever waited for an upstream does not mind that this allocates.
    #[cold]
    fn seal(&self, reply: &[u8]) -> Option<Vec<u8>> {
        let ReplyKey { key, octets_max } = &self.reply_key;
        if reply.len() > *octets_max {
            return None;
        }
        let mut room = vec![0; response_octets(reply.len())];
        room.get_mut(RESPONSE_HEAD_OCTETS..)?.get_mut(..reply.len())?.copy_from_slice(reply);
        let len = key.seal(&mut room, reply.len()).ok()?;
        room.truncate(len);
        Some(room)
    }
}

impl Outlet for SealingOutlet {
    fn deliver(&self, address: &Address, reply: &[u8]) {
        if let Some(sealed) = self.seal(reply) {
            self.outlet.deliver(address, &sealed);
        }
    }

    fn flush(&self) {
        self.outlet.flush();
    }

    fn reply_octets_max(&self) -> usize {
        self.reply_key.octets_max
    }

    fn poll_room(&self, context: &mut Context<'_>) -> Poll<bool> {
        self.outlet.poll_room(context)
    }
}
