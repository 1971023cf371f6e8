//! Transfers, notifications and updates: the reply to each message, and what the listener has to
//! see to.

use std::net::IpAddr;
use std::sync::Arc;

use tsig::Signer;
use wire::message::Message;
use wire::serial::is_newer;
use wire::{Class, EdeCode, Flags, Header, Name, NameBuf, Opcode, OptionCode, Query, Rcode, Rtype, Writer};
use zone::Outgoing;
use zone::difference::serial_of;
use zone::outgoing::Kind;

use super::rights::{Grant, Scope};
pub(crate) use super::transfer::sign;
use super::transfer::{Opt, Transfer, fill};
use super::{Authority, Done, Forward, ManagedZones, Update, expire_s};
use crate::query::counters::Counters;
use clients::client::{Client, Transport};

/// Octets that a reply without records has at most: header, question, OPT, a short text.
const SHORT_OCTETS: usize = 512;

/// What the listener has to see to, because it takes several messages or time.
pub enum Streamed {
    /// A zone on its way: messages, as many as there are, each when the client has taken the one
    /// before.
    Transfer(Transfer),
    /// An update: hand it over, and complete the reply when it is done.
    Update(Pending),
}

/// An update whose reply comes later.
pub struct Pending {
    keeper: Arc<dyn ManagedZones>,
    apex: NameBuf,
    task: Task,
    request: Vec<u8>,
    signer: Option<Signer>,
}

/// What is to become of an update.
enum Task {
    /// It is carried out, as far as these let it.
    Update(Vec<Arc<Scope>>),
    /// It is passed on as it came.
    Forward(Vec<u8>, (IpAddr, u16)),
}

/// The reply to an update, but for what came of it.
pub struct LateReply {
    request: Vec<u8>,
    signer: Option<Signer>,
}

impl Pending {
    /// Hands the update over; `done` gets its outcome. Returns the reply in the making.
    pub fn begin(self, done: Box<dyn FnOnce(Done) + Send>) -> Result<LateReply, LateReply> {
        let Self { keeper, apex, task, request, signer } = self;
        let is_taken = match task {
            Task::Update(scopes) => {
                let signed_by = signer.as_ref().map(|signer| signer.key().name().to_buf());
                keeper.update(Update { apex, message: request.clone(), scopes, signed_by, done })
            }
            Task::Forward(message, from) => keeper.forward(Forward { apex, message, from, done }),
        };
        let reply = LateReply { request, signer };
        if is_taken { Ok(reply) } else { Err(reply) }
    }
}

impl LateReply {
    /// Returns the reply. What a primary says is signed by it, if at all.
    pub fn finish(mut self, done: Done, unix_seconds: u32) -> Vec<u8> {
        let rcode = match done {
            Done::Reply(reply) => return reply,
            Done::Rcode(rcode) => rcode,
        };
        sign(self.signer.as_mut(), short_reply(&self.request, rcode, Flags(0), None), unix_seconds)
    }
}

/// Makes a reply of a header, the question, and an OPT if the request has one.
pub(crate) fn short_reply(
    request: &[u8],
    rcode: Rcode,
    flags: Flags,
    ede: Option<(EdeCode, &str)>,
) -> Vec<u8> {
    let Ok(parsed) = Message::parse(request) else { return Vec::new() };
    let mut reply = vec![0; SHORT_OCTETS];
    let own = Flags::QR.with_opcode(parsed.header.flags.opcode()).with_rcode(rcode);
    let limit = reply.len();
    let own = own.with(flags).with(parsed.header.flags.only(Flags::RD));
    let mut writer = Writer::new(&mut reply, limit, parsed.header.id, own);
    if let Some(question) = &parsed.question {
        // 271 octets at most.
        let _ = writer.question(question);
    }
    if parsed.edns.is_some() {
        let _ = writer.opt(1232, rcode, false, |writer| {
            let Some((code, text)) = ede else { return Ok(()) };
            let data = [&code.0.to_be_bytes(), text.as_bytes()].concat();
            writer.option(OptionCode::EDE, &data)
        });
    }
    let len = writer.finish();
    reply.truncate(len);
    reply
}

/// Returns the serial that a message says its sender has (IXFR), or that there is (NOTIFY).
fn serial_in(message: &[u8], section: wire::Section, apex: Name<'_>) -> Option<u32> {
    let parsed = Message::parse(message).ok()?;
    let soa = parsed.records().find(|record| {
        record.section == section
            && record.rtype == Rtype::SOA
            && record.owner.expand().is_ok_and(|owner| owner.as_name() == apex)
    })?;
    serial_of(soa.rdata)
}

/// The reply to a message of the kinds that are handled here.
pub(crate) enum Outcome {
    Reply(Vec<u8>),
    Stream(Box<Streamed>),
}

/// A message between servers, and who sent it.
pub(crate) struct Sent<'m> {
    /// Without signature.
    pub(crate) message: &'m [u8],
    /// As it came.
    pub(crate) whole: &'m [u8],
    pub(crate) client: &'m Client,
    pub(crate) signer: Option<Signer>,
    pub(crate) counters: &'m Counters,
    pub(crate) now_s: u32,
}

impl Sent<'_> {
    fn holds(&self, grants: &[Grant]) -> bool {
        let key = self.signer.as_ref().map(|signer| signer.key().name());
        grants.iter().any(|grant| grant.holds(self.client, key))
    }

    fn refuse(&self, rcode: Rcode, ede: Option<(EdeCode, &str)>) -> Outcome {
        Outcome::Reply(short_reply(self.message, rcode, Flags(0), ede))
    }
}

/// Not allowed: the words for it (RFC 8914 §4.19).
const PROHIBITED: Option<(EdeCode, &str)> = Some((EdeCode::PROHIBITED, "no zone transfer to this client"));

/// RFC 5936 §4, RFC 1995 §2.
pub(crate) fn transfer(authority: &Authority, sent: &mut Sent<'_>, udp_octets_max: usize) -> Outcome {
    let Ok(query) = Query::parse(sent.message) else { return sent.refuse(Rcode::FORMERR, None) };
    let question = query.question;
    let is_datagram = sent.client.transport == Transport::Udp;
    let is_stream = matches!(sent.client.transport, Transport::Tcp | Transport::Tls);
    if !(is_stream || (is_datagram && question.qtype == Rtype::IXFR)) {
        // RFC 5936 §4.2: over a datagram it is not defined; the other transports carry one reply to
        // a query.
        return sent.refuse(Rcode::NOTIMP, Some((EdeCode::NOT_SUPPORTED, "transfers need TCP or TLS")));
    }
    let Some(served) = authority.zones.at(question.qname).filter(|_| question.qclass == Class::IN) else {
        return sent.refuse(Rcode::NOTAUTH, Some((EdeCode::NOT_AUTHORITATIVE, "not a zone of this server")));
    };
    let rights = authority.keeper.rights(question.qname);
    if !rights.is_some_and(|rights| sent.holds(&rights.transfer)) {
        return sent.refuse(Rcode::REFUSED, PROHIBITED);
    }
    let Some(zone) = served else {
        return sent.refuse(Rcode::SERVFAIL, Some((EdeCode::NOT_READY, "the zone is not loaded")));
    };
    let serial = zone.facts().serial;
    let mut outgoing = if question.qtype == Rtype::IXFR {
        let Some(have) = serial_in(sent.message, wire::Section::Authority, question.qname) else {
            return sent.refuse(Rcode::FORMERR, None);
        };
        let steps = if is_newer(serial, have) {
            authority.keeper.history(question.qname, have, serial)
        } else {
            Some(Vec::new())
        };
        match steps {
            Some(steps) => Outgoing::steps(Arc::clone(zone), steps),
            None => Outgoing::whole(Arc::clone(zone)),
        }
    } else {
        Outgoing::whole(Arc::clone(zone))
    };
    let counter = match outgoing.kind() {
        Kind::Whole => Some(&sent.counters.transfers_whole),
        Kind::Steps => Some(&sent.counters.transfers_steps),
        Kind::SoaAlone => None,
    };
    let flags = Flags::QR.with(Flags::AA).with(query.header.flags.only(Flags::RD));
    let header = Header { id: query.header.id, flags, ..Header::default() };
    let question_bytes = query.question_bytes();
    let opt = match (query.edns, expire_s(authority, &query, sent.now_s)) {
        (None, _) => Opt::None,
        (Some(_), None) => Opt::Plain,
        (Some(_), Some(left_s)) => Opt::Expire(left_s),
    };
    if is_datagram {
        let limit = query.edns.map_or(512, |edns| usize::from(edns.udp_size.max(512)));
        let limit = limit.min(udp_octets_max).min(usize::from(sent.client.reply_octets_max));
        let shape = (header, question_bytes, opt);
        // RFC 1995 §2: what does not fit is asked for again over TCP; the SOA alone says so.
        let is_small = outgoing.octets() <= 2 * limit;
        let whole = is_small.then(|| fill(&mut outgoing, shape, sent.signer.as_ref(), limit)).flatten();
        let whole = whole.filter(|_| outgoing.is_done());
        if let (Some(counter), true) = (counter, whole.is_some()) {
            counter.bump();
        }
        let message = whole.or_else(|| {
            let mut soa = Outgoing::steps(Arc::clone(zone), Vec::new());
            fill(&mut soa, shape, sent.signer.as_ref(), limit)
        });
        return message.map_or_else(|| sent.refuse(Rcode::SERVFAIL, None), Outcome::Reply);
    }
    let Some(place) = authority.places.take(sent.client.address) else {
        let ede = Some((EdeCode::OTHER, "too many transfers at a time"));
        return sent.refuse(Rcode::SERVFAIL, ede);
    };
    if let Some(counter) = counter {
        counter.bump();
    }
    Outcome::Stream(Box::new(Streamed::Transfer(Transfer {
        outgoing,
        header,
        question: question_bytes.into(),
        opt,
        signer: sent.signer.take(),
        _place: place,
    })))
}

/// RFC 1996 §3.
pub(crate) fn notify(authority: &Authority, sent: &Sent<'_>) -> Outcome {
    let parsed = Message::parse(sent.message).ok().filter(|parsed| !parsed.header.flags.has(Flags::QR));
    let Some(question) = parsed.and_then(|parsed| parsed.question) else {
        return sent.refuse(Rcode::FORMERR, None);
    };
    if question.qtype != Rtype::SOA {
        return sent.refuse(Rcode::NOTIMP, None);
    }
    let rights = authority.keeper.rights(question.qname).filter(|_| question.qclass == Class::IN);
    let (Some(rights), true) = (rights, authority.has(question.qname)) else {
        return sent.refuse(Rcode::NOTAUTH, None);
    };
    if !sent.holds(&rights.notify) {
        return sent.refuse(Rcode::REFUSED, Some((EdeCode::PROHIBITED, "not a primary of this zone")));
    }
    let serial = serial_in(sent.message, wire::Section::Answer, question.qname);
    sent.counters.notifications.bump();
    authority.keeper.notified(question.qname, sent.client.address, serial);
    Outcome::Reply(short_reply(sent.message, Rcode::NOERROR, Flags::AA, None))
}

/// RFC 2136 §3.
pub(crate) fn update(authority: &Authority, sent: &mut Sent<'_>) -> Outcome {
    let parsed = Message::parse(sent.message).ok().filter(|parsed| !parsed.header.flags.has(Flags::QR));
    let Some(question) = parsed.and_then(|parsed| parsed.question) else {
        return sent.refuse(Rcode::FORMERR, None);
    };
    if question.qtype != Rtype::SOA {
        return sent.refuse(Rcode::FORMERR, None);
    }
    let rights = authority.keeper.rights(question.qname).filter(|_| question.qclass == Class::IN);
    let (Some(rights), Some(served)) = (rights, authority.zones.at(question.qname)) else {
        return sent.refuse(Rcode::NOTAUTH, None);
    };
    if sent.holds(&rights.forward) {
        sent.counters.updates.bump();
        return Outcome::Stream(Box::new(Streamed::Update(Pending {
            keeper: Arc::clone(&authority.keeper),
            apex: question.qname.to_buf(),
            task: Task::Forward(sent.whole.to_vec(), (sent.client.address, sent.client.port)),
            request: sent.message.to_vec(),
            signer: sent.signer.take(),
        })));
    }
    let key = sent.signer.as_ref().map(|signer| signer.key().name());
    let held = rights.update.iter().filter(|(grant, _)| grant.holds(sent.client, key));
    let scopes: Vec<Arc<Scope>> = held.map(|(_, scope)| Arc::clone(scope)).collect();
    if scopes.is_empty() {
        return sent.refuse(Rcode::REFUSED, Some((EdeCode::PROHIBITED, "no updates from this client")));
    }
    if served.is_none() {
        return sent.refuse(Rcode::SERVFAIL, Some((EdeCode::NOT_READY, "the zone is not loaded")));
    }
    sent.counters.updates.bump();
    Outcome::Stream(Box::new(Streamed::Update(Pending {
        keeper: Arc::clone(&authority.keeper),
        apex: question.qname.to_buf(),
        task: Task::Update(scopes),
        request: sent.message.to_vec(),
        signer: sent.signer.take(),
    })))
}

/// Returns what passes an update on whose key is not known here; nothing if it is none, or nobody
/// may have it passed on.
pub(crate) fn forward(
    authority: &Authority,
    (message, whole): (&[u8], &[u8]),
    client: &Client,
) -> Option<Box<Streamed>> {
    let parsed = Message::parse(message).ok()?;
    let flags = parsed.header.flags;
    let question = parsed.question.filter(|it| it.qtype == Rtype::SOA && it.qclass == Class::IN)?;
    if flags.opcode() != Opcode::UPDATE || flags.has(Flags::QR) {
        return None;
    }
    let rights = authority.keeper.rights(question.qname)?;
    authority.zones.at(question.qname)?;
    if !rights.forward.iter().any(|grant| grant.holds(client, None)) {
        return None;
    }
    Some(Box::new(Streamed::Update(Pending {
        keeper: Arc::clone(&authority.keeper),
        apex: question.qname.to_buf(),
        task: Task::Forward(whole.to_vec(), (client.address, client.port)),
        request: message.to_vec(),
        signer: None,
    })))
}
