//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The end of every reply: header, question, the client's own OPT, and what fits.

use wire::{EdeCode, Edns, Flags, Header, OptionCode, Query, Rcode, Rtype};

use super::cut::{Kept, what_fits};
use super::errors::Errors;
use super::put::put;
use super::reply::Reply;
use super::texts::{REASON_OCTETS_MAX, Text, TextId};
use super::{Answer, DO, Security};
use crate::query::counters::Counters;
use clients::client::{Announce, Client, Transport};
use clients::gate::cookie::{self, Proof};

/// What of the server goes into its replies.
pub(crate) trait Server {
    /// Returns what counts them.
    fn counters(&self) -> &Counters;

    /// Returns the seconds since 1970.
    fn unix_seconds(&self) -> u32;

    /// Returns what cookies are made with.
    fn cookies(&self) -> Option<&cookie::Secrets>;

    /// Returns the NSID (RFC 5001); nothing if it is hidden.
    fn nsid(&self) -> &[u8];

    /// Returns the most octets of a datagram.
    fn udp_octets_max(&self) -> u16;

    /// Returns the most octets of a datagram that clients are told they may send.
    fn udp_octets_announced(&self) -> u16;

    /// Returns what the length of a padded reply is a multiple of, in octets; zero: replies are not
    /// padded.
    fn padding_octets(&self) -> u16;

    /// Returns whether replies have Extended DNS Errors.
    fn extended_errors(&self) -> bool;

    /// Returns whether clients that set DO get replies with EDNS.
    fn takes_dnssec_ok(&self) -> bool;

    /// Returns whether a reply that is too large has as many RRsets as fit.
    fn fills_truncated(&self) -> bool;

    /// Returns whether replies say RA.
    fn recursion_available(&self) -> bool;

    /// Returns the Extended DNS Error that a step configures.
    fn ede(&self, step: u16) -> Option<(EdeCode, &str)>;

    /// Returns what a resolver said of a failure, if that is still known.
    fn text(&self, id: TextId) -> Option<Text>;

    /// Returns for how many seconds the zone that a query for SOA is about may still be served, if
    /// it asks (RFC 7314).
    fn expire_s(&self, query: &Query<'_>) -> Option<u32>;
}

/// Whom a reply is for.
pub(crate) struct To<'a> {
    pub(crate) query: &'a Query<'a>,
    pub(crate) client: &'a Client,
    pub(crate) proof: Proof,
    /// Options of an upstream's reply that go on to the client, in wire form.
    pub(crate) options: &'a [u8],
}

/// The most octets of fixed parts and options in an OPT of ours: OPT 11, cookie 28, keepalive 6,
/// NSID 4 + 64, client subnet 24, EXPIRE 8, EDE 6 + 64, and as many and as long ones as there is
/// room for.
const OPT_OCTETS_MAX: usize = 224;
/// Octets of an OPT without options.
const OPT_FIXED_OCTETS: usize = 11;
/// Octets of the code and the length of an option.
const OPTION_HEAD_OCTETS: usize = 4;
/// Octets of an NSID.
const NSID_OCTETS_MAX: usize = 64;

/// Completes the reply whose answer already stands after the question's place, and counts it.
/// Returns whether there is one.
#[inline(never)]
pub(crate) fn complete<S: Server>(server: &S, to: &To<'_>, answer: &Answer, reply: &mut Reply<'_>) -> bool {
    complete_inlined(server, to, answer, reply)
}

/// Does what [`complete`] does, as a part of its caller: for the one place that nearly all replies
/// come through.
#[inline(always)]
pub(crate) fn complete_inlined<S: Server>(
    server: &S,
    to: &To<'_>,
    answer: &Answer,
    reply: &mut Reply<'_>,
) -> bool {
    let is_cut = finish(server, to, answer, reply);
    server.counters().count(answer.rcode, is_cut);
    !reply.is_empty()
}

/// Completes the reply. Returns whether it was cut (TC).
#[inline(always)]
fn finish<S: Server>(server: &S, to: &To<'_>, answer: &Answer, reply: &mut Reply<'_>) -> bool {
    let question = to.query.question_bytes();
    let body_at = Header::LEN + question.len();
    let limit = reply_limit(server, to).min(reply.buffer().len());
    // Only a client that speaks EDNS pays for the room.
    let mut room;
    let (opt, carried): (&[u8], &[u8]) = match to.query.edns {
        None => (&[], &[]),
        // RFC 6891 §7: who answers without EDNS has nothing that takes it.
        Some(edns) if !server.takes_dnssec_ok() && edns.wants_dnssec() => (&[], &[]),
        Some(edns) => {
            room = [0; OPT_OCTETS_MAX];
            let mut parts = OptParts {
                edns,
                client: to.client,
                proof: to.proof,
                rcode: answer.rcode,
                errors: answer.errors,
                // RFC 7871 §7.2.2: what we keep answers apart by.
                scope: answer.subnet_bits.map(|bits| answer.scope.bits().unwrap_or(bits)),
                flags: answer.edns_flags,
                expire_s: if to.query.question.qtype == Rtype::SOA && answer.authoritative {
                    server.expire_s(to.query)
                } else {
                    None
                },
            };
            if answer.security == Security::Bogus {
                parts.errors = answer.errors_of_bogus();
            }
            let len = write_opt(server, server.unix_seconds(), &parts, &mut room);
            let carried = carried(to.options, &mut room, len, limit.saturating_sub(body_at + answer.octets));
            (room.get(..len).unwrap_or(&[]), carried)
        }
    };
    let opt_len = opt.len();
    let Kept { octets, counts: [answers, authorities, additionals], is_cut } =
        if answer.is_too_large || body_at + answer.octets + opt_len > limit {
            let fills = server.fills_truncated() && !answer.is_too_large;
            what_fits(reply.buffer(), question, answer.counts, fills.then(|| limit.saturating_sub(opt_len)))
        } else {
            Kept { octets: answer.octets, counts: answer.counts, is_cut: false }
        };
    let asked = to.query.header.flags;
    // The opcode is QUERY, as that of every `Query`: zero.
    let mut flags = Flags::QR.with(asked.only(Flags::RD.with(Flags::CD))).with_rcode(answer.rcode);
    if server.recursion_available() {
        flags = flags.with(Flags::RA);
    }
    if answer.authoritative {
        // RFC 4035 §3.1.6: CD is cleared where we speak with authority.
        flags = flags.with(Flags::AA).without(Flags::CD);
    }
    // RFC 6840 §5.7–5.8: AD is for clients that say they understand it.
    if answer.security == Security::Secure && (asked.has(Flags::AD) || to.query.wants_dnssec()) {
        flags = flags.with(Flags::AD);
    }
    if is_cut {
        flags = flags.with(Flags::TC);
    }
    let header = Header {
        id: to.query.header.id,
        flags,
        questions: 1,
        answers,
        authorities,
        additionals: additionals + u16::from(opt_len > 0),
    };
    let end = body_at + octets;
    let len = end + opt_len + carried.len();
    let mut placed = put_head(reply.buffer(), &header, question);
    if opt_len > 0 {
        let buffer = reply.buffer();
        placed =
            placed.and_then(|()| put(buffer, end, opt)).and_then(|()| put(buffer, end + opt_len, carried));
    }
    // A buffer too small for a question and an OPT is a mistake of the caller's; it gets no reply.
    reply.set_len(if placed.is_some() { len } else { 0 });
    if to.client.transport.is_padded()
        && let Some(edns) = to.query.edns
        && edns.option(OptionCode::PADDING).is_some()
    {
        pad(reply, end, limit, usize::from(server.padding_octets()));
    }
    is_cut
}

/// Fills a reply up to a multiple of `block_octets`, if that is not zero, so that its length tells
/// little about what was asked (RFC 8467 §4.1). Its OPT begins at `opt_at` and is the last record.
#[inline(never)]
fn pad(reply: &mut Reply<'_>, opt_at: usize, limit: usize, block_octets: usize) {
    let len = reply.len();
    let start = len + OPTION_HEAD_OCTETS;
    let Some(padded) = start.checked_next_multiple_of(block_octets) else { return };
    let padded = padded.min(limit);
    let Some(padding) = padded.checked_sub(start) else { return };
    let opt_octets = padded.saturating_sub(opt_at + OPT_FIXED_OCTETS);
    let buffer = reply.buffer();
    let Some(room) = buffer.get_mut(len..padded) else { return };
    let Some((head, zeros)) = room.split_at_mut_checked(OPTION_HEAD_OCTETS) else { return };
    let ([c0, c1], [l0, l1]) = (OptionCode::PADDING.0.to_be_bytes(), (padding as u16).to_be_bytes());
    head.copy_from_slice(&[c0, c1, l0, l1]);
    zeros.fill(0);
    let length_at = opt_at + OPT_FIXED_OCTETS - 2;
    // An OPT without options and with a root owner begins with eleven fixed octets, of which the
    // last two are its length.
    if put(buffer, length_at, &(opt_octets as u16).to_be_bytes()).is_some() {
        reply.set_len(padded);
    }
}

/// Returns the options of an upstream that still fit behind our own, and counts them in the OPT's
/// length.
fn carried<'o>(options: &'o [u8], opt: &mut [u8; OPT_OCTETS_MAX], opt_len: usize, room: usize) -> &'o [u8] {
    if options.is_empty() || opt_len == 0 || opt_len + options.len() > room {
        return &[];
    }
    set_opt_length(opt, opt_len + options.len());
    options
}

/// Answers a query that only asks for a cookie (RFC 7873 §5.4): no question, and an OPT with the
/// cookie.
#[cold]
pub(crate) fn cookie_alone<S: Server>(
    server: &S,
    (header, edns): (Header, Edns<'_>),
    (client, proof): (&Client, Proof),
    reply: &mut Reply<'_>,
) {
    header_only(header, Rcode::NOERROR, reply);
    let mut opt = [0; OPT_OCTETS_MAX];
    let rcode = Rcode::NOERROR;
    let parts =
        OptParts { edns, client, proof, rcode, errors: Errors::None, scope: None, flags: DO, expire_s: None };
    let len = write_opt(server, server.unix_seconds(), &parts, &mut opt);
    let placed = put(reply.buffer(), Header::LEN, opt.get(..len).unwrap_or(&[]))
        .and_then(|()| put(reply.buffer(), Header::LEN - 2, &1_u16.to_be_bytes()));
    reply.set_len(if placed.is_some() { Header::LEN + len } else { 0 });
}

/// Writes a reply of a header alone: for queries whose question cannot be used.
pub(crate) fn header_only(header: Header, rcode: Rcode, reply: &mut Reply<'_>) {
    let flags =
        Flags::QR.with(header.flags.only(Flags::RD)).with_opcode(header.flags.opcode()).with_rcode(rcode);
    let header = Header { id: header.id, flags, ..Header::default() };
    let placed = put(reply.buffer(), 0, &header.to_bytes());
    reply.set_len(if placed.is_some() { Header::LEN } else { 0 });
}

/// Returns how many octets an OPT without Extended DNS Error takes in a reply to this query, at
/// most.
pub(crate) fn opt_octets_max<S: Server>(server: &S, to: &To<'_>) -> usize {
    let Some(edns) = to.query.edns else { return 0 };
    let keepalive = to.client.keepalive;
    let is_announced = keepalive.is_some_and(|keepalive| keepalive.announced_to == Announce::All);
    if edns.options_bytes().is_empty() && !is_announced {
        return OPT_FIXED_OCTETS;
    }
    let mut room = [0; OPT_OCTETS_MAX];
    let parts = OptParts {
        edns,
        client: to.client,
        proof: to.proof,
        rcode: Rcode::NOERROR,
        errors: Errors::None,
        scope: None,
        flags: DO,
        // The room for it is what counts here.
        expire_s: edns.option(OptionCode::EXPIRE).map(|_| 0),
    };
    write_opt(server, 0, &parts, &mut room)
}

/// The most octets this client takes: RFC 6891 §6.2.3–6.2.5 for datagrams, else what the transport
/// carries.
pub(crate) fn reply_limit<S: Server>(server: &S, to: &To<'_>) -> usize {
    let transport_limit = usize::from(to.client.reply_octets_max);
    if to.client.transport != Transport::Udp {
        return transport_limit;
    }
    let told = to.query.edns.map_or(512, |edns| edns.udp_size.max(512).min(server.udp_octets_max()));
    transport_limit.min(usize::from(told))
}

/// What an OPT of ours depends on.
struct OptParts<'a> {
    edns: Edns<'a>,
    client: &'a Client,
    proof: Proof,
    rcode: Rcode,
    errors: Errors,
    /// For how many bits of the client's subnet the answer holds.
    scope: Option<u8>,
    /// Which of the client's flags are repeated, of the upper eight.
    flags: u8,
    /// For how many seconds the zone may still be served.
    expire_s: Option<u32>,
}

fn write_opt<S: Server>(
    server: &S,
    unix_seconds: u32,
    parts: &OptParts<'_>,
    out: &mut [u8; OPT_OCTETS_MAX],
) -> usize {
    let OptParts { edns, client, proof, rcode, errors, scope, flags, expire_s } = parts;
    let [s0, s1] = server.udp_octets_announced().to_be_bytes();
    let flags = (edns.flags >> 8) as u8 & flags;
    let fixed = [0, 0, Rtype::OPT.0 as u8, s0, s1, (rcode.0 >> 4) as u8, 0, flags, 0, 0, 0];
    let mut opt = Opt { out, len: 0 };
    opt.put(&fixed);
    if let (Some(secrets), Some(client_cookie)) = (server.cookies(), proof.client_cookie()) {
        let data: [u8; cookie::FULL_OCTETS] = secrets.make(client_cookie, client.address, unix_seconds);
        opt.option(OptionCode::COOKIE, &[&data]);
    }
    // RFC 7828 §3.3.2: only on a connection.
    if let Some(keepalive) = client.keepalive
        && match keepalive.announced_to {
            Announce::Asked => edns.option(OptionCode::TCP_KEEPALIVE).is_some(),
            Announce::All => true,
            Announce::Nobody => false,
        }
    {
        opt.option(OptionCode::TCP_KEEPALIVE, &[&keepalive.timeout.to_be_bytes()]);
    }
    let nsid = server.nsid();
    if !nsid.is_empty() && edns.option(OptionCode::NSID).is_some() {
        let nsid = nsid.get(..NSID_OCTETS_MAX).unwrap_or(nsid);
        opt.option(OptionCode::NSID, &[nsid]);
    }
    if let Some(scope) = scope
        && let Some([f0, f1, source, _, address @ ..]) = edns.option(OptionCode::CLIENT_SUBNET)
        && address.len() <= 16
    {
        opt.option(OptionCode::CLIENT_SUBNET, &[&[*f0, *f1, *source, *scope][..], address]);
    }
    if let Some(expire_s) = expire_s {
        opt.option(OptionCode::EXPIRE, &[&expire_s.to_be_bytes()]);
    }
    // The last, because there may be several: those that there is no room for are left out.
    errors.each(
        |step| server.ede(step),
        |text| server.text(text),
        |code, text| {
            if !server.extended_errors() {
                return;
            }
            let text = text.as_bytes();
            // A code without its text is better than none.
            let text = text.get(..REASON_OCTETS_MAX).unwrap_or(text);
            let text = if opt.has_room(2 + text.len()) { text } else { &[] };
            opt.option(OptionCode::EDE, &[&code.0.to_be_bytes(), text]);
        },
    );
    let len = opt.len;
    set_opt_length(out, len);
    len
}

/// Says that an OPT has so many octets in all.
fn set_opt_length(opt: &mut [u8; OPT_OCTETS_MAX], len: usize) {
    let [hi, lo] = (len.saturating_sub(OPT_FIXED_OCTETS) as u16).to_be_bytes();
    if let Some(field) = opt.get_mut(OPT_FIXED_OCTETS - 2..OPT_FIXED_OCTETS) {
        field.copy_from_slice(&[hi, lo]);
    }
}

struct Opt<'a> {
    out: &'a mut [u8; OPT_OCTETS_MAX],
    len: usize,
}

impl Opt<'_> {
    fn put(&mut self, bytes: &[u8]) {
        // The buffer holds every option at its largest.
        if put(self.out.as_mut_slice(), self.len, bytes).is_some() {
            self.len += bytes.len();
        }
    }

    const fn has_room(&self, octets: usize) -> bool {
        self.len + OPTION_HEAD_OCTETS + octets <= OPT_OCTETS_MAX
    }

    fn option(&mut self, code: OptionCode, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if !self.has_room(len) {
            return;
        }
        self.put(&code.0.to_be_bytes());
        self.put(&(len as u16).to_be_bytes());
        for part in parts {
            self.put(part);
        }
    }
}

/// Writes the header and the question in front of the answer.
#[inline]
fn put_head(buffer: &mut [u8], header: &Header, question: &[u8]) -> Option<()> {
    let (head, rest) = buffer.split_first_chunk_mut()?;
    *head = header.to_bytes();
    rest.get_mut(..question.len())?.copy_from_slice(question);
    Some(())
}
