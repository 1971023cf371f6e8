//! What servers say to each other about zones: transfers, notifications, updates, and signatures with shared keys.
//!
//! None of this is on a query's path. What takes one message is answered here; a transfer is a row of messages that the
//! listener takes as its client does; an update goes to the [`Keeper`], which has journals and threads.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tsig::{Keys, Signer, TsigError};
use wire::message::Message;
use wire::serial::{SerialPolicy, is_newer};
use wire::{Class, EdeCode, Flags, Header, Name, NameBuf, Opcode, OptionCode, Query, Rcode, Rtype, Writer};
use zone::difference::serial_of;
use zone::outgoing::Kind;
use zone::{Difference, Outgoing, Zones};

pub use crate::client::KeyHash;
use crate::client::{Client, ClientCertificate, Transport};
use crate::counters::Counters;
use crate::finish::{Answer, To, header_only};
use crate::gate::cookie::Proof;
use crate::gate::prefixes::PrefixSet;
use crate::reply::Reply;
use crate::{Engine, Verdict};

/// Octets of an OPT record without options.
const OPT_OCTETS: usize = 11;
/// Octets of the EXPIRE option.
const EXPIRE_OCTETS: usize = 8;
/// Octets that a reply without records has at most: header, question, OPT, a short text.
const SHORT_OCTETS: usize = 512;
/// Octets of the largest message.
const MESSAGE_OCTETS_MAX: usize = 65_535;

/// Looks after zones: has their history, hears of news, carries out updates. Never blocks.
pub trait Keeper: Send + Sync {
    /// Returns who may do what with a zone; nobody anything where there is nothing.
    fn rights(&self, apex: Name<'_>) -> Option<Arc<Rights>>;

    /// Returns the steps from one version to another, oldest first; nothing if not all of them are there.
    fn history(&self, apex: Name<'_>, from: u32, to: u32) -> Option<Vec<Arc<Difference>>>;

    /// Returns for how many seconds a zone from elsewhere may still be served if nobody is heard of; nothing if it is from here.
    fn left_s(&self, apex: Name<'_>, unix_seconds: u32) -> Option<u32>;

    /// Hears that `from` may have a newer version.
    fn notified(&self, apex: Name<'_>, from: IpAddr, serial: Option<u32>);

    /// Takes an update; `false` if there is no room for another.
    fn update(&self, update: Update) -> bool;

    /// Takes an update that is for the primaries of a zone to decide; `false` if there is no room for another.
    fn forward(&self, forward: Forward) -> bool;
}

/// What came of an update.
pub enum Done {
    /// This.
    Rcode(Rcode),
    /// What the primary says, as it said it.
    Reply(Vec<u8>),
}

/// An update that who sent it may make.
pub struct Update {
    /// The zone.
    pub apex: NameBuf,
    /// The message, without signature.
    pub message: Vec<u8>,
    /// What may be changed.
    pub scopes: Vec<Arc<Scope>>,
    /// Hears what came of it, once.
    pub done: Box<dyn FnOnce(Done) + Send>,
}

/// An update that is passed on to where a zone comes from (RFC 2136 §6).
pub struct Forward {
    /// The zone.
    pub apex: NameBuf,
    /// The message as it came, with its signature.
    pub message: Vec<u8>,
    /// Who sent it, and from which port.
    pub from: (IpAddr, u16),
    /// Hears what came of it, once.
    pub done: Box<dyn FnOnce(Done) + Send>,
}

/// What makes a message one that may do something. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// It comes from one of these; from anywhere if nothing is said.
    pub from: Option<PrefixSet>,
    /// It is signed with this key.
    pub key: Option<NameBuf>,
    /// It comes over TLS.
    pub needs_tls: bool,
    /// Who sends it has shown a certificate that is for one of these hosts, in lower case; any or none if there are none.
    pub hosts: Box<[Box<str>]>,
    /// Who sends it has shown a certificate with one of these keys; any or none if there are none.
    pub pins: Box<[KeyHash]>,
}

impl Grant {
    fn holds(&self, client: &Client, key: Option<Name<'_>>) -> bool {
        let certificate = client.certificate.as_deref();
        self.from.as_ref().is_none_or(|from| from.contains(client.address))
            && self.key.as_ref().is_none_or(|wanted| key == Some(wanted.as_name()))
            && (!self.needs_tls || client.transport == Transport::Tls)
            && (self.hosts.is_empty() || certificate.is_some_and(|shown| self.names(shown)))
            && (self.pins.is_empty() || certificate.is_some_and(|shown| self.pins.contains(&shown.key)))
    }

    fn names(&self, shown: &ClientCertificate) -> bool {
        let is_wanted = |host: &String| self.hosts.iter().any(|wanted| wanted.eq_ignore_ascii_case(host));
        shown.hosts.iter().any(is_wanted)
    }
}

/// What updates may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Records at these names; at all if nothing is said.
    pub names: Option<Box<[Reach]>>,
    /// Records of these types; of all if nothing is said.
    pub types: Option<Box<[Rtype]>>,
}

/// Names that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This name.
    Name(NameBuf),
    /// All names below this one, and not itself.
    Below(NameBuf),
}

impl Scope {
    /// Returns whether a record of a type may be changed at a name; ANY stands for all types.
    pub fn covers(&self, owner: Name<'_>, rtype: Rtype) -> bool {
        let is_named = self.names.as_ref().is_none_or(|names| {
            names.iter().any(|reach| match reach {
                Reach::Name(name) => owner == name.as_name(),
                Reach::Below(name) => owner.is_at_or_below(name.as_name()) && owner != name.as_name(),
            })
        });
        is_named && self.types.as_ref().is_none_or(|types| types.contains(&rtype))
    }
}

/// Who may do what with a zone.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Take it over.
    pub transfer: Vec<Grant>,
    /// Say that there is a newer version.
    pub notify: Vec<Grant>,
    /// Change it, and what of it.
    pub update: Vec<(Grant, Arc<Scope>)>,
    /// Have updates passed on to where the zone comes from.
    pub forward: Vec<Grant>,
    /// How serials grow.
    pub serial: SerialPolicy,
}

/// What a server is to other servers: replaced whole whenever a zone changes.
pub struct Authority {
    /// The zones as they are now.
    pub zones: Arc<Zones>,
    /// Keys by name.
    pub keys: Keys,
    /// Looks after the zones.
    pub keeper: Arc<dyn Keeper>,
    /// Bounds transfers.
    pub places: Arc<Places>,
}

/// Counts transfers under way, so that they cannot take all of a server.
pub struct Places {
    taken: Mutex<HashMap<IpAddr, u32>>,
    max: usize,
    client_max: u32,
}

impl Places {
    /// Allows so many transfers at a time, and so many to each address.
    pub fn new(max: usize, client_max: u32) -> Self {
        Self { taken: Mutex::default(), max, client_max }
    }

    fn take(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: u32 = taken.values().sum();
        let own = taken.get(&client).copied().unwrap_or(0);
        if all as usize >= self.max || own >= self.client_max {
            return None;
        }
        taken.insert(client, own + 1);
        Some(Place { places: Arc::clone(self), client })
    }
}

/// The place of one transfer.
struct Place {
    places: Arc<Places>,
    client: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.client) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.remove(&self.client);
            }
        }
    }
}

/// What the listener has to see to, because it takes several messages or time.
pub enum Handed {
    /// A zone on its way: messages, as many as there are, each when the client has taken the one before.
    Transfer(Transfer),
    /// An update: hand it over, and complete the reply when it is done.
    Update(Pending),
}

/// Which OPT record the first message of a transfer has.
#[derive(Clone, Copy)]
enum Opt {
    /// None: who asks does not speak EDNS.
    None,
    /// One without options.
    Plain,
    /// One that says for how many seconds we may serve the zone (RFC 7314).
    Expire(u32),
}

impl Opt {
    const fn octets(self) -> usize {
        match self {
            Self::None => 0,
            Self::Plain => OPT_OCTETS,
            Self::Expire(_) => OPT_OCTETS + EXPIRE_OCTETS,
        }
    }
}

/// A zone on its way to a client.
pub struct Transfer {
    outgoing: Outgoing,
    header: Header,
    question: Box<[u8]>,
    opt: Opt,
    signer: Option<Signer>,
    _place: Place,
}

impl Transfer {
    /// Returns the next message; nothing after the last, or if a record fits no message.
    pub fn next(&mut self, unix_seconds: u32) -> Option<Vec<u8>> {
        if self.outgoing.is_done() {
            return None;
        }
        let is_first = self.outgoing.written().0 == 0;
        let question: &[u8] = if is_first { &self.question } else { &[] };
        let shape = (self.header, question, if is_first { self.opt } else { Opt::None });
        let message = fill(&mut self.outgoing, shape, self.signer.as_ref(), MESSAGE_OCTETS_MAX)?;
        Some(sign(self.signer.as_mut(), message, unix_seconds))
    }
}

/// Makes one message of a transfer, with room left for a signature.
fn fill(
    outgoing: &mut Outgoing,
    (header, question, opt): (Header, &[u8], Opt),
    signer: Option<&Signer>,
    limit: usize,
) -> Option<Vec<u8>> {
    let mut message = vec![0; limit];
    let limit = limit.checked_sub(signer.map_or(0, Signer::record_octets) + opt.octets())?;
    let mut writer = Writer::new(&mut message, limit, header.id, header.flags);
    if let Some(question) = parse_question(question) {
        writer.question(&question).ok()?;
    }
    outgoing.fill(&mut writer).ok()?;
    writer.set_limit(limit + opt.octets());
    let written = match opt {
        Opt::None => Ok(()),
        Opt::Plain => writer.opt(1232, Rcode::NOERROR, false, |_| Ok(())),
        Opt::Expire(left_s) => writer.opt(1232, Rcode::NOERROR, false, |writer| {
            writer.option(OptionCode::EXPIRE, &left_s.to_be_bytes())
        }),
    };
    written.ok()?;
    let len = writer.finish();
    message.truncate(len);
    Some(message)
}

fn parse_question(bytes: &[u8]) -> Option<wire::Question<'_>> {
    let (qname, rest) = Name::parse(bytes).ok()?;
    let &[t0, t1, c0, c1] = rest.first_chunk::<4>()?;
    Some(wire::Question {
        qname,
        qtype: Rtype(u16::from_be_bytes([t0, t1])),
        qclass: Class(u16::from_be_bytes([c0, c1])),
    })
}

fn sign(signer: Option<&mut Signer>, mut message: Vec<u8>, unix_seconds: u32) -> Vec<u8> {
    if let Some(signer) = signer {
        signer.sign(&mut message, u64::from(unix_seconds));
    }
    message
}

/// An update whose reply comes later.
pub struct Pending {
    keeper: Arc<dyn Keeper>,
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
    /// Hands the update over; `done` hears what came of it. Returns the reply in the making.
    pub fn begin(self, done: Box<dyn FnOnce(Done) + Send>) -> Result<LateReply, LateReply> {
        let Self { keeper, apex, task, request, signer } = self;
        let is_taken = match task {
            Task::Update(scopes) => keeper.update(Update { apex, message: request.clone(), scopes, done }),
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
fn short_reply(request: &[u8], rcode: Rcode, flags: Flags, ede: Option<(EdeCode, &str)>) -> Vec<u8> {
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

/// What is said to a message of the kinds that are handled here.
enum Outcome {
    Reply(Vec<u8>),
    Hand(Box<Handed>),
}

/// A message between servers, and who sent it.
struct Sent<'m> {
    /// Without signature.
    message: &'m [u8],
    /// As it came.
    whole: &'m [u8],
    client: &'m Client,
    signer: Option<Signer>,
    counters: &'m Counters,
    now_s: u32,
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

impl Engine {
    /// Answers what another server, or somebody with a key, asks; nothing if that is a question like any other.
    #[cold]
    #[inline(never)]
    pub(crate) fn of_another_server(
        &mut self,
        query: &Query<'_>,
        client: &Client,
        reply: &mut Reply<'_>,
    ) -> Option<Verdict> {
        if query.is_signed {
            return Some(self.signed(query.as_bytes(), client, reply));
        }
        // Zones say themselves who may take them over.
        let bytes = query.as_bytes();
        self.authority.is_some().then(|| self.between_servers((bytes, bytes), client, None, reply))
    }

    /// Verifies a signed message and goes on with what it says; the reply is signed, too.
    #[cold]
    #[inline(never)]
    pub(crate) fn signed(&mut self, bytes: &[u8], client: &Client, reply: &mut Reply<'_>) -> Verdict {
        if self.snapshot.gate.bans(client) {
            return self.stay_silent();
        }
        let none = Keys::default();
        let authority = self.authority.clone();
        let keys = authority.as_ref().map_or(&none, |authority| &authority.keys);
        let signed = match tsig::split(bytes) {
            Ok(Some(signed)) => signed,
            // RFC 8945 §5.1.
            Ok(None) | Err(tsig::Malformed) => {
                let Some(header) = Header::parse(bytes) else { return self.stay_silent() };
                header_only(header, Rcode::FORMERR, reply);
                return Verdict::Answered;
            }
        };
        match tsig::verify(&signed, keys, u64::from(self.now.unix_seconds)) {
            Ok(signer) => {
                let message = signed.message();
                if is_between_servers(&message) {
                    return self.between_servers((&message, bytes), client, Some(signer), reply);
                }
                self.answer_and_sign(&message, client, signer, reply)
            }
            Err(refusal) => {
                if !self.snapshot.gate.admits_server(client, self.now) {
                    return self.stay_silent();
                }
                // RFC 2136 §6: whoever decides on an update may know the key.
                if refusal.error == TsigError::BADKEY
                    && let Some(pending) = authority
                        .and_then(|authority| forward(&authority, (&signed.message(), bytes), client))
                {
                    self.counters.count(Rcode::NOERROR, false);
                    return Verdict::Hand(pending);
                }
                self.counters.count(Rcode::NOTAUTH, false);
                put(reply, &refusal.reply)
            }
        }
    }

    /// Answers an ordinary query that was signed.
    fn answer_and_sign(
        &mut self,
        message: &[u8],
        client: &Client,
        mut signer: Signer,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        let Ok(query) = Query::parse(message) else { return self.stay_silent() };
        let to = To { query: &query, client, proof: Proof::None, options: &[] };
        let limit = crate::finish::reply_limit(&self.snapshot, &to).min(reply.buffer().len());
        let limit = limit.saturating_sub(signer.record_octets());
        let within = Client { reply_octets_max: limit as u16, ..client.clone() };
        let mut room = vec![0; limit];
        let mut unsigned = Reply::new(&mut room);
        // It is counted once more there.
        self.transport_counter(client).take_back();
        let mut message = match self.answer(message, &within, &mut unsigned) {
            Verdict::Answered => unsigned.bytes().to_vec(),
            Verdict::Drop => return Verdict::Drop,
            // Replies that come later are not signed; who signs asks for what is served here.
            Verdict::Defer(_) | Verdict::Hand(_) => short_reply(
                message,
                Rcode::REFUSED,
                Flags(0),
                Some((EdeCode::NOT_AUTHORITATIVE, "not served here")),
            ),
        };
        signer.sign(&mut message, u64::from(self.now.unix_seconds));
        put(reply, &message)
    }

    /// Handles a transfer, a notification or an update: a message without its signature, and as it came.
    #[cold]
    #[inline(never)]
    pub(crate) fn between_servers(
        &mut self,
        (message, whole): (&[u8], &[u8]),
        client: &Client,
        signer: Option<Signer>,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        let Some(authority) = self.authority.clone() else { return self.stay_silent() };
        // Who signs has a key, and is not somebody else.
        if signer.is_none() && !self.snapshot.gate.admits_server(client, self.now) {
            return self.stay_silent();
        }
        let counters = Arc::clone(&self.counters);
        let now_s = self.now.unix_seconds;
        let mut sent = Sent { message, whole, client, signer, counters: &counters, now_s };
        let opcode = Header::parse(message).map_or(Opcode::QUERY, |header| header.flags.opcode());
        let outcome = match opcode {
            Opcode::NOTIFY => notify(&authority, &sent),
            Opcode::UPDATE => update(&authority, &mut sent),
            _ => transfer(&authority, &mut sent, usize::from(self.snapshot.udp_octets_max)),
        };
        match outcome {
            Outcome::Reply(message) => {
                let message = sign(sent.signer.as_mut(), message, self.now.unix_seconds);
                if let Some(header) = Header::parse(&message) {
                    self.counters.count(header.flags.rcode(), false);
                }
                put(reply, &message)
            }
            Outcome::Hand(handed) => {
                self.counters.count(Rcode::NOERROR, false);
                Verdict::Hand(handed)
            }
        }
    }
}

/// Returns for how many seconds we may serve the zone that a query is about, if that is what it asks, too (RFC 7314 §3).
#[cold]
pub(crate) fn left_s(authority: &Authority, query: &Query<'_>, unix_seconds: u32) -> Option<u32> {
    query.edns?.option(OptionCode::EXPIRE)?;
    let apex = query.question.qname;
    let zone = authority.zones.at(apex)??;
    Some(authority.keeper.left_s(apex, unix_seconds).unwrap_or(zone.soa_times().expire))
}

/// Returns whether a message is one that is handled here.
pub(crate) fn is_between_servers(message: &[u8]) -> bool {
    let Some(header) = Header::parse(message) else { return false };
    match header.flags.opcode() {
        Opcode::NOTIFY | Opcode::UPDATE => true,
        Opcode::QUERY => Query::parse(message).is_ok_and(|query| is_transfer(query.question.qtype)),
        _ => false,
    }
}

/// Returns whether a type asks for a transfer.
pub(crate) const fn is_transfer(qtype: Rtype) -> bool {
    matches!(qtype, Rtype::AXFR | Rtype::IXFR)
}

fn put(reply: &mut Reply<'_>, message: &[u8]) -> Verdict {
    match reply.buffer().get_mut(..message.len()) {
        Some(room) if !message.is_empty() => {
            room.copy_from_slice(message);
            reply.set_len(message.len());
            Verdict::Answered
        }
        _ => Verdict::Drop,
    }
}

/// Not allowed: the words for it (RFC 8914 §4.19).
const PROHIBITED: Option<(EdeCode, &str)> = Some((EdeCode::PROHIBITED, "no zone transfer to this client"));

/// RFC 5936 §4, RFC 1995 §2.
fn transfer(authority: &Authority, sent: &mut Sent<'_>, udp_octets_max: usize) -> Outcome {
    let Ok(query) = Query::parse(sent.message) else { return sent.refuse(Rcode::FORMERR, None) };
    let question = query.question;
    let is_datagram = sent.client.transport == Transport::Udp;
    let is_stream = matches!(sent.client.transport, Transport::Tcp | Transport::Tls);
    if !(is_stream || (is_datagram && question.qtype == Rtype::IXFR)) {
        // RFC 5936 §4.2: over a datagram it is not defined; the other transports carry one reply to a query.
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
    let opt = match (query.edns, left_s(authority, &query, sent.now_s)) {
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
    Outcome::Hand(Box::new(Handed::Transfer(Transfer {
        outgoing,
        header,
        question: question_bytes.into(),
        opt,
        signer: sent.signer.take(),
        _place: place,
    })))
}

/// RFC 1996 §3.
fn notify(authority: &Authority, sent: &Sent<'_>) -> Outcome {
    let parsed = Message::parse(sent.message).ok().filter(|parsed| !parsed.header.flags.has(Flags::QR));
    let Some(question) = parsed.and_then(|parsed| parsed.question) else {
        return sent.refuse(Rcode::FORMERR, None);
    };
    if question.qtype != Rtype::SOA {
        return sent.refuse(Rcode::NOTIMP, None);
    }
    let rights = authority.keeper.rights(question.qname).filter(|_| question.qclass == Class::IN);
    let (Some(rights), true) = (rights, authority.zones.at(question.qname).is_some()) else {
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
fn update(authority: &Authority, sent: &mut Sent<'_>) -> Outcome {
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
        return Outcome::Hand(Box::new(Handed::Update(Pending {
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
    Outcome::Hand(Box::new(Handed::Update(Pending {
        keeper: Arc::clone(&authority.keeper),
        apex: question.qname.to_buf(),
        task: Task::Update(scopes),
        request: sent.message.to_vec(),
        signer: sent.signer.take(),
    })))
}

/// Returns what passes an update on whose key is not known here; nothing if it is none, or nobody may have it passed on.
fn forward(authority: &Authority, (message, whole): (&[u8], &[u8]), client: &Client) -> Option<Box<Handed>> {
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
    Some(Box::new(Handed::Update(Pending {
        keeper: Arc::clone(&authority.keeper),
        apex: question.qname.to_buf(),
        task: Task::Forward(whole.to_vec(), (client.address, client.port)),
        request: message.to_vec(),
        signer: None,
    })))
}

/// What a query that nobody handles here is told, where there is no authority.
pub(crate) fn no_transfers() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::NOT_SUPPORTED, "no zone transfers here")))
}
