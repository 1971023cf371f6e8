//! An upstream on loopback whose answers follow from the name, and whose faults are chosen.
//!
//! Never resolves anything: A and AAAA are hashes of the name, so that anybody can tell a right
//! answer.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Class, Flags, Full, Name, Query, Rcode, Rtype, Section, Ttl, Writer};

use crate::queries::Dice;
use crate::sys::{self, Batch, Sender, Wait};

/// Datagrams per system call.
const BATCH: usize = 64;
/// Octets of a datagram buffer.
const DATAGRAM_OCTETS: usize = 2048;
/// Octets held of a connection: at least one message of any size.
const STREAM_OCTETS: usize = 128 << 10;
/// Octets of a reply at most.
const REPLY_OCTETS_MAX: usize = 1232;
/// Octets of socket buffer asked for.
const SOCKET_OCTETS: i32 = 4 << 20;
/// Replies kept back at most while their delay runs; more are lost.
const DELAYED_MAX: usize = 1 << 18;
/// The name (class CH, type TXT) whose answer says how many other queries have come.
pub const COUNTER_NAME: &str = "count.stub";
/// What changes the stub while it runs: `loss.PPM.set.stub`, `delay.MS.set.stub`,
/// `rcode.CODE.set.stub` or `ttl.SECONDS.set.stub` (class CH, type TXT). The answer is the
/// counter's.
pub const SET_NAME: &str = "set.stub";
/// Names whose first label begins so do not exist.
pub const DENIED_PREFIX: &str = "absent";
/// Time to live of everything the stub says, unless it is told another.
pub const TTL_SECONDS: u32 = 3600;

/// How the stub behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behaviour {
    /// How long a reply is kept back.
    pub delay: Duration,
    /// The share of queries that get no reply.
    pub loss_percent: f64,
    /// The response code of every reply; 0 gives answers.
    pub rcode: u16,
    /// Set TC and leave the answer out.
    pub truncates: bool,
    /// Reply with another ID than the query's.
    pub lies_about_id: bool,
    /// Time to live of what it says.
    pub ttl_seconds: u32,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            loss_percent: 0.0,
            rcode: 0,
            truncates: false,
            lies_about_id: false,
            ttl_seconds: TTL_SECONDS,
        }
    }
}

impl Behaviour {
    /// Returns whether the next query gets no reply.
    fn loses(&self, dice: &mut Dice) -> bool {
        dice.below(1_000_000) < (self.loss_percent * 10_000.0) as usize
    }

    /// Changes as a query below [`SET_NAME`] says; any other query changes nothing.
    fn obey(&mut self, query: &[u8]) {
        let Ok(query) = Query::parse(query) else { return };
        let labels: Vec<&[u8]> = query.question.qname.labels().collect();
        let [key, value, b"set", b"stub"] = labels[..] else { return };
        let value = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u32>().ok());
        match (key, value) {
            (b"loss", Some(ppm)) => self.loss_percent = f64::from(ppm) / 10_000.0,
            (b"delay", Some(delay_ms)) => self.delay = Duration::from_millis(u64::from(delay_ms)),
            (b"rcode", Some(rcode)) => self.rcode = rcode as u16,
            (b"ttl", Some(ttl_seconds)) => self.ttl_seconds = ttl_seconds,
            _ => {}
        }
    }
}

/// Returns the address that an A query for `name` yields, letter case ignored: one of
/// 198.18.0.0/15.
pub fn ipv4_of(name: Name<'_>) -> Ipv4Addr {
    let [_, b, c, d] = (hash(name) as u32).to_be_bytes();
    Ipv4Addr::new(198, 18 | (b & 1), c, d)
}

/// Returns the address that an AAAA query for `name` yields: one of 2001:db8::/64.
pub fn ipv6_of(name: Name<'_>) -> Ipv6Addr {
    Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(hash(name)))
}

/// FNV-1a of the lower-case name.
fn hash(name: Name<'_>) -> u64 {
    name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(octet.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A reply whose time has not come.
struct Delayed {
    due: Instant,
    to: Sender,
    bytes: Vec<u8>,
}

/// A stub: what it was told, and what it has heard, over UDP and TCP.
#[derive(Debug, Default)]
pub struct Stub {
    behaviour: Mutex<Behaviour>,
    received: AtomicU64,
}

impl Stub {
    /// Makes a stub that behaves so until it is told otherwise.
    pub fn new(behaviour: Behaviour) -> Self {
        Self { behaviour: Mutex::new(behaviour), received: AtomicU64::new(0) }
    }

    /// Answers over UDP until an error.
    pub fn serve(&self, socket: &UdpSocket) -> io::Result<()> {
        serve_datagrams(self, socket)
    }

    /// Answers over TCP until an error, each connection on a thread of its own: a server keeps few
    /// to its upstream.
    pub fn serve_stream(&self, listener: &TcpListener) -> io::Result<()> {
        thread::scope(|scope| {
            loop {
                let (stream, _) = listener.accept()?;
                // A connection that breaks is its peer's affair.
                scope.spawn(move || drop(self.converse(stream)));
            }
        })
    }

    /// Returns how long a reply is to be kept back now.
    pub fn delay(&self) -> Duration {
        self.behaviour().delay
    }

    /// Answers one query at once, whatever the delay; `None` if it gets no reply.
    pub fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        self.received.fetch_add(1, Ordering::Relaxed);
        let behaviour = self.behaviour();
        // As often as its share, at regular distances: there is no state for dice here.
        let turn = self.received.load(Ordering::Relaxed) % 1_000_000;
        if (turn as f64 * behaviour.loss_percent / 100.0).fract() < behaviour.loss_percent / 100.0 {
            return None;
        }
        let mut reply = [0; DATAGRAM_OCTETS];
        let len = answer(query, &behaviour, &mut reply);
        reply.get(..len).filter(|reply| !reply.is_empty()).map(<[u8]>::to_vec)
    }

    fn behaviour(&self) -> Behaviour {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers what one connection brings. A delay holds for all that was read together.
    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut dice = Dice::new(u64::from(std::process::id()));
        let mut input = vec![0; STREAM_OCTETS];
        let (mut held, mut out) = (0, Vec::new());
        let mut reply = [0; DATAGRAM_OCTETS];
        loop {
            let read = stream.read(&mut input[held..])?;
            if read == 0 {
                return Ok(());
            }
            held += read;
            let behaviour = self.behaviour();
            let mut at = 0;
            while let Some((len, rest)) = input[at..held].split_first_chunk::<2>()
                && let Some(query) = rest.get(..usize::from(u16::from_be_bytes(*len)))
            {
                at += 2 + query.len();
                self.received.fetch_add(1, Ordering::Relaxed);
                if behaviour.loses(&mut dice) {
                    continue;
                }
                let len = answer(query, &behaviour, &mut reply);
                if len > 0 {
                    out.extend((len as u16).to_be_bytes());
                    out.extend(&reply[..len]);
                }
            }
            input.copy_within(at..held, 0);
            held -= at;
            thread::sleep(behaviour.delay);
            stream.write_all(&out)?;
            out.clear();
        }
    }
}

/// Answers over UDP until an error.
pub fn serve(socket: &UdpSocket, behaviour: &Behaviour) -> io::Result<()> {
    Stub::new(*behaviour).serve(socket)
}

fn serve_datagrams(stub: &Stub, socket: &UdpSocket) -> io::Result<()> {
    sys::set_buffers(socket, SOCKET_OCTETS)?;
    let mut input = Batch::new(BATCH, DATAGRAM_OCTETS);
    let mut out = Batch::new(BATCH, DATAGRAM_OCTETS);
    let mut delayed: VecDeque<Delayed> = VecDeque::new();
    let mut dice = Dice::new(u64::from(std::process::id()));
    loop {
        if let Some(first) = delayed.front() {
            let left = first.due.saturating_duration_since(Instant::now());
            sys::wait_readable(socket, left)?;
        }
        let wait = if delayed.is_empty() { Wait::ForOne } else { Wait::Not };
        let count = input.receive(socket, BATCH, wait)?;
        let mut replies = 0;
        let mut behaviour = stub.behaviour();
        let due = Instant::now() + behaviour.delay;
        for i in 0..count {
            let query = input.received(i);
            let is_counter = is_counter(query);
            let is_lost = behaviour.loses(&mut dice);
            let len = if is_counter {
                behaviour.obey(query);
                *stub.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
                answer_counter(query, stub.received.load(Ordering::Relaxed), out.buffer(replies))
            } else {
                stub.received.fetch_add(1, Ordering::Relaxed);
                if is_lost { 0 } else { answer(query, &behaviour, out.buffer(replies)) }
            };
            if len == 0 {
                continue;
            }
            if behaviour.delay.is_zero() || is_counter {
                out.address_back(replies, len, &input, i);
                replies += 1;
            } else if delayed.len() < DELAYED_MAX {
                let bytes = out.buffer(replies).get(..len).unwrap_or(&[]).to_vec();
                delayed.push_back(Delayed { due, to: input.sender(i), bytes });
            }
        }
        out.send(socket, replies)?;
        release(socket, &mut delayed, &mut out)?;
    }
}

/// Sends the replies whose time has come.
fn release(socket: &UdpSocket, delayed: &mut VecDeque<Delayed>, out: &mut Batch) -> io::Result<()> {
    let now = Instant::now();
    loop {
        let mut count = 0;
        while count < BATCH
            && let Some(reply) = delayed.pop_front_if(|reply| reply.due <= now)
        {
            out.buffer(count)[..reply.bytes.len()].copy_from_slice(&reply.bytes);
            out.address_to(count, reply.bytes.len(), &reply.to);
            count += 1;
        }
        out.send(socket, count)?;
        if count < BATCH {
            return Ok(());
        }
    }
}

/// Writes the reply to `query` into `out`; returns its octets, 0 to stay silent.
fn answer(query: &[u8], behaviour: &Behaviour, out: &mut [u8]) -> usize {
    let Ok(query) = Query::parse(query) else { return 0 };
    let id = query.header.id ^ u16::from(behaviour.lies_about_id);
    let mut flags = Flags::QR.with(query.header.flags.only(Flags::RD.with(Flags::CD))).with(Flags::RA);
    let is_denied = is_denied(query.question.qname);
    let rcode = if is_denied && behaviour.rcode == 0 { Rcode::NXDOMAIN } else { Rcode(behaviour.rcode) };
    flags = flags.with_rcode(rcode);
    if behaviour.truncates {
        flags = flags.with(Flags::TC);
    }
    let mut writer = Writer::new(out, REPLY_OCTETS_MAX, id, flags);
    let question = &query.question;
    // A reply of ours is far below the limit: one question, at most one record, an OPT.
    if writer.question(question).is_err() {
        return 0;
    }
    if behaviour.rcode == 0 && !behaviour.truncates {
        let ttl = Ttl::new(behaviour.ttl_seconds);
        let written = match question.qtype {
            _ if is_denied => soa(&mut writer, ttl),
            Rtype::A => writer.record(Section::Answer, question.qname, Rtype::A, Class::IN, ttl, |w| {
                w.bytes(&ipv4_of(question.qname).octets())
            }),
            Rtype::AAAA => writer.record(Section::Answer, question.qname, Rtype::AAAA, Class::IN, ttl, |w| {
                w.bytes(&ipv6_of(question.qname).octets())
            }),
            _ => soa(&mut writer, ttl),
        };
        if written.is_err() {
            return 0;
        }
    }
    if query.edns.is_some() && writer.opt(1232, Rcode::NOERROR, query.wants_dnssec(), |_| Ok(())).is_err() {
        return 0;
    }
    writer.finish()
}

/// Writes the root's SOA into the authority section.
fn soa(writer: &mut Writer<'_>, ttl: Ttl) -> Result<(), Full> {
    writer.record(Section::Authority, Name::ROOT, Rtype::SOA, Class::IN, ttl, |w| {
        w.bytes(&[0, 0])?;
        for number in [1, 3600, 600, 86_400, ttl.seconds()] {
            w.bytes(&number.to_be_bytes())?;
        }
        Ok(())
    })
}

fn is_denied(name: Name<'_>) -> bool {
    let label = name.as_bytes().get(1..=DENIED_PREFIX.len());
    label.is_some_and(|label| label.eq_ignore_ascii_case(DENIED_PREFIX.as_bytes()))
}

fn is_counter(query: &[u8]) -> bool {
    // Class CH in the last octets of a query without EDNS; everything else is checked when it is
    // answered.
    query.ends_with(&[0, 16, 0, 3])
}

fn answer_counter(query: &[u8], received: u64, out: &mut [u8]) -> usize {
    let Ok(query) = Query::parse(query) else { return 0 };
    let mut writer = Writer::new(out, REPLY_OCTETS_MAX, query.header.id, Flags::QR);
    let text = received.to_string();
    let written = writer.question(&query.question).and_then(|()| {
        writer.record(Section::Answer, query.question.qname, Rtype::TXT, Class::CH, Ttl::ZERO, |w| {
            w.bytes(&[text.len() as u8])?;
            w.bytes(text.as_bytes())
        })
    });
    if written.is_ok() { writer.finish() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::{Ask, Extras, Packets};
    use wire::Message;

    fn check(rtype: Rtype, behaviour: &Behaviour, expect: impl FnOnce(&Message<'_>, Name<'_>)) {
        let extras = Extras { edns_size: Some(1232), mixed_case: true, ..Extras::default() };
        let packets = Packets::new(&[Ask::new("www.example.org", rtype)], extras).expect("encodes");
        let mut out = [0; DATAGRAM_OCTETS];
        let len = answer(packets.packet(0), behaviour, &mut out);
        let message = Message::parse(&out[..len]).expect("a well-formed reply");
        let name = message.question.expect("a question").qname;
        expect(&message, name);
    }

    #[test]
    fn answers_follow_from_the_name() {
        check(Rtype::A, &Behaviour::default(), |message, name| {
            let record = message.records().next().expect("an answer");
            assert_eq!(record.rdata, ipv4_of(name.to_folded().as_name()).octets());
            assert_eq!(record.ttl().seconds(), TTL_SECONDS);
        });
        check(Rtype::AAAA, &Behaviour::default(), |message, name| {
            assert_eq!(message.records().next().expect("an answer").rdata, ipv6_of(name).octets());
        });
    }

    #[test]
    fn faults_change_while_it_runs() {
        let told = |name: &str| {
            let ask = Ask::new(name, Rtype::TXT);
            let packets = Packets::new(&[ask], Extras::default());
            let mut behaviour = Behaviour::default();
            behaviour.obey(packets.expect("encodes").packet(0));
            (behaviour.loss_percent, behaviour.delay.as_millis(), behaviour.rcode, behaviour.ttl_seconds)
        };
        assert_eq!(told("loss.10000.set.stub"), (1.0, 0, 0, TTL_SECONDS));
        assert_eq!(told("delay.20.set.stub"), (0.0, 20, 0, TTL_SECONDS));
        assert_eq!(told("rcode.2.set.stub"), (0.0, 0, 2, TTL_SECONDS));
        assert_eq!(told("ttl.1.set.stub"), (0.0, 0, 0, 1));
        for other in ["loss.x.set.stub", "loss.1.get.stub", "set.stub", "count.stub"] {
            assert_eq!(told(other), (0.0, 0, 0, TTL_SECONDS), "{other}");
        }
    }

    #[test]
    fn some_names_do_not_exist() {
        let packets =
            Packets::new(&[Ask::new("Absent07.example.org", Rtype::A)], Extras::default()).expect("encodes");
        let mut out = [0; DATAGRAM_OCTETS];
        let len = answer(packets.packet(0), &Behaviour::default(), &mut out);
        let message = Message::parse(&out[..len]).expect("a well-formed reply");
        assert_eq!(message.rcode(), Rcode::NXDOMAIN);
        assert_eq!((message.header.answers, message.header.authorities), (0, 1));
    }

    #[test]
    fn faults_are_chosen() {
        check(Rtype::A, &Behaviour { lies_about_id: true, ..Behaviour::default() }, |message, _| {
            assert_eq!(message.header.id, 1);
        });
        check(Rtype::A, &Behaviour { truncates: true, ..Behaviour::default() }, |message, _| {
            assert!(message.header.flags.has(Flags::TC));
            assert_eq!(message.header.answers, 0);
        });
        check(Rtype::A, &Behaviour { rcode: 2, ..Behaviour::default() }, |message, _| {
            assert_eq!(message.rcode(), Rcode::SERVFAIL);
        });
    }
}
