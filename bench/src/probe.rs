//! Asks single questions and judges the answers, before and after anything is timed.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Flags, Message, Rcode, Rtype, Section};

use crate::process::Server;
use crate::queries::{Ask, Extras, Packets};
use crate::stub;
use crate::transfer::serial_in;
use crate::world;

/// How long a single answer may take.
const PATIENCE: Duration = Duration::from_millis(300);
/// Times a question is asked before silence counts.
const ATTEMPTS: usize = 10;

/// A question and its right answer.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The question.
    pub ask: Ask,
    /// The addresses, in any order.
    pub addresses: Vec<IpAddr>,
    /// The largest TTL that is right.
    pub ttl_max: u32,
    /// NSEC3 records that an answer with signatures must have at least.
    pub hashes_min: usize,
}

/// How answers are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As DNS.
    Dns,
    /// The query itself with QR set.
    Echo,
}

/// What a reply said.
#[derive(Debug)]
pub struct Heard {
    /// The response code.
    pub rcode: u16,
    /// Addresses in the answer section.
    pub addresses: Vec<IpAddr>,
    /// The lowest TTL in the answer section; none without records there.
    pub ttl: Option<u32>,
    /// NSEC3 records in the authority section.
    hashes: usize,
    has_edns: bool,
    echoes_question: bool,
    flags: Flags,
}

/// Why a single question brought nothing.
#[derive(Debug)]
pub enum Silence {
    /// No datagram in time.
    Timeout,
    /// The port is closed, or the network failed.
    Network(io::Error),
    /// Not a reply to what was asked.
    Nonsense(String),
}

impl fmt::Display for Silence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => write!(out, "no reply"),
            Self::Network(error) => write!(out, "{error}"),
            Self::Nonsense(what) => write!(out, "{what}"),
        }
    }
}

impl Heard {
    /// Returns the flags of the reply.
    pub const fn flags(&self) -> Flags {
        self.flags
    }
}

/// Asks once.
pub fn ask(server: SocketAddr, ask: &Ask, extras: Extras) -> Result<Heard, Silence> {
    let packets = Packets::new(std::slice::from_ref(ask), extras).map_err(Silence::Nonsense)?;
    let query = packets.packet(0);
    let bytes = exchange(server, query, PATIENCE)?;
    let message =
        Message::parse(&bytes).map_err(|error| Silence::Nonsense(format!("malformed reply: {error:?}")))?;
    if !message.header.flags.has(Flags::QR) {
        return Err(Silence::Nonsense("a reply without QR".to_owned()));
    }
    let answers = || message.records().filter(|record| record.section == Section::Answer);
    let addresses = answers().filter_map(|record| match record.rtype {
        Rtype::A => <[u8; 4]>::try_from(record.rdata).ok().map(|octets| IpAddr::V4(Ipv4Addr::from(octets))),
        Rtype::AAAA => {
            <[u8; 16]>::try_from(record.rdata).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
        }
        _ => None,
    });
    Ok(Heard {
        rcode: message.rcode().0,
        addresses: addresses.collect(),
        ttl: answers().map(|record| record.ttl().seconds()).min(),
        hashes: message
            .records()
            .filter(|record| record.section == Section::Authority && record.rtype == Rtype::NSEC3)
            .count(),
        has_edns: message.edns.is_some(),
        echoes_question: bytes.get(12..12 + packets.question(0).len()) == Some(packets.question(0)),
        flags: message.header.flags,
    })
}

/// Sends `query` with an ID of its own and returns the datagram that comes back with it.
fn exchange(server: SocketAddr, query: &[u8], patience: Duration) -> Result<Vec<u8>, Silence> {
    let local = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let open = || -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(local)?;
        socket.connect(server)?;
        Ok(socket)
    };
    let socket = open().map_err(Silence::Network)?;
    let id = socket.local_addr().map_err(Silence::Network)?.port().to_be_bytes();
    let mut query = query.to_vec();
    query[..2].copy_from_slice(&id);
    socket.send(&query).map_err(Silence::Network)?;
    let deadline = Instant::now() + patience;
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Silence::Timeout);
        }
        socket.set_read_timeout(Some(left)).map_err(Silence::Network)?;
        match socket.recv(&mut buffer) {
            Ok(len) if buffer.get(..2) == Some(&id) => return Ok(buffer[..len].to_vec()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(Silence::Timeout);
            }
            Err(error) => return Err(Silence::Network(error)),
        }
    }
}

/// Asks until there is a reply, a few times.
fn ask_patiently(server: SocketAddr, question: &Ask, extras: Extras) -> Result<Heard, Silence> {
    let mut last = Silence::Timeout;
    for _ in 0..ATTEMPTS {
        match ask(server, question, extras) {
            Ok(heard) => return Ok(heard),
            Err(silence) => last = silence,
        }
    }
    Err(last)
}

impl Probe {
    /// Returns what is wrong with `heard`, if anything.
    fn fault(&self, heard: &Heard) -> Option<String> {
        let mut expected = self.addresses.clone();
        let mut found = heard.addresses.clone();
        expected.sort();
        found.sort();
        if heard.rcode != u16::from(self.ask.expected.rcode) {
            Some(format!("{}: rcode {} instead of {}", self.ask, heard.rcode, self.ask.expected.rcode))
        } else if self.ask.expected.records && heard.ttl.is_none() {
            Some(format!("{}: no records", self.ask))
        } else if found != expected {
            Some(format!("{}: {found:?} instead of {expected:?}", self.ask))
        } else if heard.ttl.is_some_and(|ttl| ttl > self.ttl_max) {
            Some(format!("{}: TTL {:?} above {}", self.ask, heard.ttl, self.ttl_max))
        } else {
            None
        }
    }
}

/// Waits for the first right answer, `patience` long at most; returns the time since `started`.
pub fn until_ready(
    server: SocketAddr,
    kind: Kind,
    probe: &Probe,
    process: &mut Server,
    started: Instant,
    patience: Duration,
) -> Result<Duration, String> {
    let mut last = "not asked yet".to_owned();
    while started.elapsed() < patience {
        if let Some(obituary) = process.obituary() {
            return Err(obituary);
        }
        let verdict = match kind {
            Kind::Dns => match ask(server, &probe.ask, Extras::default()) {
                Ok(heard) => probe.fault(&heard).map_or(Ok(()), Err),
                Err(silence) => Err(silence.to_string()),
            },
            Kind::Echo => check_echo(server, probe),
        };
        match verdict {
            Ok(()) => return Ok(started.elapsed()),
            Err(fault) => last = fault,
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    Err(format!("not ready after {} s ({last}): {}", patience.as_secs(), process.last_words()))
}

fn check_echo(server: SocketAddr, probe: &Probe) -> Result<(), String> {
    let packets = Packets::new(std::slice::from_ref(&probe.ask), Extras::default())?;
    let reply = exchange(server, packets.packet(0), PATIENCE).map_err(|silence| silence.to_string())?;
    let mut expected = packets.packet(0).to_vec();
    expected[2] |= 0x80;
    if reply.get(2..) == expected.get(2..) { Ok(()) } else { Err("not an echo".to_owned()) }
}

/// What the probes found.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Wrong content: what is timed would not be the same work.
    pub faults: Vec<String>,
    /// Deviations that cost or save little: named in the report.
    pub remarks: Vec<String>,
    /// TTL of the first answer.
    pub ttl: Option<u32>,
}

/// Asks every probe plainly, and the first also in mixed case and with EDNS.
pub fn judge(server: SocketAddr, kind: Kind, probes: &[Probe]) -> Judgement {
    let mut judgement = Judgement::default();
    let Some(first) = probes.first() else { return judgement };
    if kind == Kind::Echo {
        judgement.faults.extend(check_echo(server, first).err());
        return judgement;
    }
    for probe in probes {
        match ask_patiently(server, &probe.ask, Extras::default()) {
            Ok(heard) => {
                judgement.ttl = judgement.ttl.or(heard.ttl);
                judgement.faults.extend(probe.fault(&heard));
                if !heard.echoes_question {
                    judgement.faults.push(format!("{}: another question in the reply", probe.ask));
                }
                if heard.has_edns {
                    judgement.remarks.push("sends an OPT record to a client without EDNS".to_owned());
                }
                if !heard.flags.has(Flags::RD) {
                    judgement.remarks.push("does not copy RD".to_owned());
                }
            }
            Err(silence) => judgement.faults.push(format!("{}: {silence}", probe.ask)),
        }
        judgement.faults.extend(proof_fault(server, probe));
    }
    match ask_patiently(server, &first.ask, Extras { mixed_case: true, ..Extras::default() }) {
        Ok(heard) => {
            judgement.faults.extend(first.fault(&heard).map(|fault| format!("in mixed case, {fault}")));
            if !heard.echoes_question {
                judgement.remarks.push("does not echo the question's letter case".to_owned());
            }
        }
        Err(silence) => judgement.faults.push(format!("in mixed case: {silence}")),
    }
    match ask_patiently(server, &first.ask, Extras { edns_size: Some(1232), ..Extras::default() }) {
        Ok(heard) => {
            judgement.faults.extend(first.fault(&heard).map(|fault| format!("with EDNS, {fault}")));
            if !heard.has_edns {
                judgement.remarks.push("sends no OPT record to a client with EDNS".to_owned());
            }
        }
        Err(silence) => judgement.faults.push(format!("with EDNS: {silence}")),
    }
    judgement.remarks.sort();
    judgement.remarks.dedup();
    judgement
}

/// Asks for the proof that `probe` wants, if it wants one; returns what is wrong with it.
fn proof_fault(server: SocketAddr, probe: &Probe) -> Option<String> {
    if probe.hashes_min == 0 {
        return None;
    }
    let extras = Extras { edns_size: Some(1232), wants_dnssec: true, ..Extras::default() };
    match ask_patiently(server, &probe.ask, extras) {
        Ok(heard) if heard.hashes < probe.hashes_min => Some(format!(
            "{}: {} NSEC3 records where a proof has {}",
            probe.ask, heard.hashes, probe.hashes_min
        )),
        Ok(heard) => probe.fault(&heard).map(|fault| format!("with signatures, {fault}")),
        Err(silence) => Some(format!("{}: with signatures: {silence}", probe.ask)),
    }
}

/// Returns the serial of `zone` that `server` gives now; `None` if it gives none.
pub fn serial_now(server: SocketAddr, zone: &str) -> Option<u32> {
    let packets = Packets::new(&[Ask::new(zone, Rtype::SOA)], Extras::default()).ok()?;
    let bytes = exchange(server, packets.packet(0), PATIENCE).ok()?;
    let message = Message::parse(&bytes).ok().filter(|message| message.rcode() == Rcode::NOERROR)?;
    serial_in(&message)
}

/// Returns whether `server` answers `question` with this address now.
pub fn has_address(server: SocketAddr, question: &Ask, address: IpAddr) -> bool {
    ask(server, question, Extras::default()).is_ok_and(|heard| heard.addresses.contains(&address))
}

/// Returns the TTL that `server` gives for `question` now.
pub fn ttl_now(server: SocketAddr, question: &Ask) -> Option<u32> {
    ask_patiently(server, question, Extras::default()).ok().and_then(|heard| heard.ttl)
}

/// Asks a stub how many queries it has had.
pub fn stub_count(server: SocketAddr) -> Result<u64, String> {
    ask_stub(server, stub::COUNTER_NAME)
}

/// Tells a stub to change `what` (loss, delay or rcode) to `value` while it runs.
pub fn stub_set(server: SocketAddr, what: &str, value: u32) -> Result<(), String> {
    ask_stub(server, &format!("{what}.{value}.{}", stub::SET_NAME)).map(|_| ())
}

/// Asks a simulated internet what it was asked so far: numbers by kind.
pub fn world_kinds(server: SocketAddr) -> Result<Vec<(&'static str, u64)>, String> {
    let texts = ask_texts(server, world::KINDS_NAME)?;
    world::kinds_of(&texts).ok_or_else(|| format!("the internet at {server} says {texts:?}"))
}

/// Asks a stub for a name of class CH and returns the number it answers.
fn ask_stub(server: SocketAddr, name: &str) -> Result<u64, String> {
    let texts = ask_texts(server, name)?;
    let count = texts.first().and_then(|text| text.parse().ok());
    count.ok_or_else(|| format!("the stub at {server} says {texts:?}"))
}

/// Asks for a TXT record of class CH; returns its texts.
fn ask_texts(server: SocketAddr, name: &str) -> Result<Vec<String>, String> {
    let packets = Packets::new(&[Ask::new(name, Rtype::TXT)], Extras::default())?;
    let mut query = packets.packet(0).to_vec();
    if let Some(class) = query.last_mut() {
        *class = 3;
    }
    for _ in 0..ATTEMPTS {
        let Ok(bytes) = exchange(server, &query, PATIENCE) else { continue };
        let Ok(message) = Message::parse(&bytes) else { continue };
        let Some(record) = message.records().next() else { continue };
        let mut texts = Vec::new();
        let mut rest = record.rdata;
        while let Some((&len, after)) = rest.split_first()
            && let Some((text, after)) = after.split_at_checked(usize::from(len))
        {
            texts.push(String::from_utf8_lossy(text).into_owned());
            rest = after;
        }
        return Ok(texts);
    }
    Err(format!("the stub at {server} does not answer"))
}
