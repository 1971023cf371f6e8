//! Zones from and to other servers: transfers, notifications, updates.
//!
//! Asks whether there is a newer version of a zone, and takes it over (RFC 5936, RFC 1995, RFC
//! 9103). Tells other servers of new versions of ours (RFC 1996), and those of a parent which DS a
//! zone has ([`push_ds`]).
//!
//! Never on a worker: what keeps zones runs these functions on a thread of its own. Never believes
//! a server that has not proved what was demanded of it.

#![forbid(unsafe_code)]

mod parent;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plan::tls::ClientTls;
use plan::transfers::Remote;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, UdpSocket};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tsig::{Broken, Verifier};
use wire::serial::is_newer;
use wire::{
    Class, Flags, Header, Message, Name, Opcode, OptionCode, Question, Rcode, Rtype, Section, Ttl, Writer,
};
use zone::difference::serial_of;
use zone::incoming::{Fault, Incoming, Received};

use identity::Registry;
use identity::tls;

pub use parent::{Delegation, push_ds};

/// TLS sessions that are kept although nobody is connected: the next transfer from the same server
/// begins faster.
const SESSIONS_MAX: usize = 64;

/// Asks other servers of zones; remembers TLS sessions with those that it asked last.
#[derive(Clone)]
pub struct Client {
    registry: Arc<Registry>,
    recent: Arc<Mutex<VecDeque<Arc<tls::Client>>>>,
}

impl Client {
    /// Returns one that shares with others what is known of servers.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, recent: Arc::default() }
    }

    fn tls(&self, plan: &ClientTls) -> Arc<tls::Client> {
        let client = self.registry.tls(plan);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|other| !Arc::ptr_eq(other, &client));
        recent.truncate(SESSIONS_MAX - 1);
        recent.push_front(Arc::clone(&client));
        client
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To connect, handshake included.
    pub connect: Duration,
    /// Until the next octets come.
    pub read: Duration,
    /// A whole transfer.
    pub whole: Duration,
    /// Times a notification is sent over UDP before nobody is believed to be there.
    pub notify_tries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            read: Duration::from_secs(30),
            whole: Duration::from_secs(2 * 3600),
            notify_tries: NOTIFY_TRIES,
        }
    }
}

/// Why another server is of no use now.
#[derive(Debug)]
pub enum PeerError {
    /// It cannot be reached, or the connection broke.
    Io(String),
    /// It took too long.
    Slow,
    /// What it says is not believed.
    Unsigned(Broken),
    /// What it says makes no zone.
    Fault(Fault),
    /// It does not do what it is asked for.
    Refused(Rcode),
    /// It does not serve the parent of a zone.
    NoParent,
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(error),
            Self::Slow => f.write_str("no answer in time"),
            Self::Unsigned(broken) => write!(f, "{broken}"),
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::Refused(rcode) => write!(f, "it answers {rcode}"),
            Self::NoParent => f.write_str("it does not serve the parent zone"),
        }
    }
}

impl From<io::Error> for PeerError {
    fn from(error: io::Error) -> Self {
        Self::Io(tls::explain(&error))
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A connection to another server.
struct Connection {
    stream: Pin<Box<dyn Stream + Send>>,
    patience: Patience,
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whether a query asks for how long the zone may still be served (RFC 7314).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expire {
    Asked,
    /// Whoever is asked knows nothing of EDNS, or it makes no sense.
    Unasked,
}

/// Makes a query of one question; `soa` adds a SOA.
fn query(
    apex: Name<'_>,
    (qtype, opcode): (Rtype, Opcode),
    soa: Option<(Section, Ttl, &[u8])>,
    expire: Expire,
) -> (u16, Vec<u8>) {
    let id = rand::random();
    let mut message = vec![0; 1024];
    let limit = message.len();
    let flags = if opcode == Opcode::NOTIFY { Flags::AA } else { Flags(0) };
    let mut writer = Writer::new(&mut message, limit, id, flags.with_opcode(opcode));
    // A name, a SOA of two names and a few numbers, an OPT: it fits.
    let _ = writer.question(&Question { qname: apex, qtype, qclass: Class::IN });
    if let Some((section, ttl, soa)) = soa {
        let _ = writer.record(section, apex, Rtype::SOA, Class::IN, ttl, |writer| writer.bytes(soa));
    }
    if expire == Expire::Asked {
        let ask = |writer: &mut Writer<'_>| writer.option(OptionCode::EXPIRE, &[]);
        let _ = writer.opt(UDP_OCTETS, Rcode::NOERROR, false, ask);
    }
    let len = writer.finish();
    message.truncate(len);
    (id, message)
}

fn signed(remote: &Remote, message: &mut Vec<u8>) -> Option<Verifier> {
    remote.key.as_ref().map(|key| tsig::sign_request(key, message, unix_seconds()))
}

/// Checks whose reply a message is, and takes its signature off.
fn believed(
    message: &[u8],
    (id, opcode): (u16, Opcode),
    verifier: Option<&mut Verifier>,
) -> Result<Vec<u8>, PeerError> {
    let malformed = PeerError::Fault(Fault::Malformed);
    let Some(header) = Header::parse(message) else { return Err(malformed) };
    if header.id != id || !header.flags.has(Flags::QR) || header.flags.opcode() != opcode {
        return Err(malformed);
    }
    match verifier {
        Some(verifier) => verifier.take(message, unix_seconds()).map_err(PeerError::Unsigned),
        None => Ok(message.to_vec()),
    }
}

impl Connection {
    async fn open(client: &Client, remote: &Remote, patience: Patience) -> Result<Self, PeerError> {
        let opening = async {
            let socket = if remote.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            let stream = socket.connect(remote.address).await?;
            stream.set_nodelay(true)?;
            let Some(plan) = &remote.tls else {
                return Ok::<_, PeerError>(Self { stream: Box::pin(stream), patience });
            };
            let name: ServerName<'static> = plan.name.clone();
            let stream = TlsConnector::from(client.tls(plan).config()).connect(name, stream).await?;
            // RFC 9103 §7.1: both sides have agreed that this is DNS.
            if stream.get_ref().1.alpn_protocol() != Some(&b"dot"[..]) {
                let why = "the server does not speak DNS over TLS (ALPN \"dot\")";
                return Err(io::Error::other(why).into());
            }
            Ok(Self { stream: Box::pin(stream), patience })
        };
        timeout(patience.connect, opening).await.unwrap_or(Err(PeerError::Slow))
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), PeerError> {
        let framed = [&(message.len() as u16).to_be_bytes(), message].concat();
        let sending = async {
            self.stream.write_all(&framed).await?;
            self.stream.flush().await
        };
        Ok(timeout(self.patience.read, sending).await.map_err(|_| PeerError::Slow)??)
    }

    async fn receive(&mut self, buffer: &mut Vec<u8>) -> Result<(), PeerError> {
        let receiving = async {
            let mut length = [0; 2];
            self.stream.read_exact(&mut length).await?;
            buffer.resize(usize::from(u16::from_be_bytes(length)), 0);
            self.stream.read_exact(buffer).await
        };
        timeout(self.patience.read, receiving).await.map_err(|_| PeerError::Slow)??;
        Ok(())
    }

    /// Asks for the SOA and returns the reply.
    async fn ask_soa(
        &mut self,
        remote: &Remote,
        apex: Name<'_>,
        expire: Expire,
    ) -> Result<Vec<u8>, PeerError> {
        let (id, mut message) = query(apex, (Rtype::SOA, Opcode::QUERY), None, expire);
        let mut verifier = signed(remote, &mut message);
        self.send(&message).await?;
        let mut buffer = Vec::new();
        self.receive(&mut buffer).await?;
        believed(&buffer, (id, Opcode::QUERY), verifier.as_mut())
    }
}

/// The octets of a datagram that queries say are taken; they go over connections all the same.
const UDP_OCTETS: u16 = 1232;

/// What a zone's primary had to say.
pub struct Word {
    /// Whether there is something newer, and what.
    pub heard: Heard,
    /// For how many seconds the primary may still serve that version itself, if it says so (RFC
    /// 7314).
    pub expire_s: Option<u32>,
}

/// Whether a zone's primary has something newer.
pub enum Heard {
    /// It has this serial, which is not newer than ours.
    UpToDate(u32),
    /// Something newer.
    New(Received),
}

/// The version that there is here.
#[derive(Clone)]
pub struct Have {
    /// Its serial.
    pub serial: u32,
    /// The TTL and the data of its SOA.
    pub soa: (Ttl, Box<[u8]>),
}

/// How a transfer is to go.
#[derive(Clone, Copy)]
pub struct Wish {
    /// Names are hashed with this key.
    pub key: wire::HashKey,
    /// Octets of messages that a transfer may have.
    pub octets_max: u64,
    /// How long things may take.
    pub patience: Patience,
}

/// Asks a primary for a version newer than `have`; for a whole zone if there is none.
pub async fn refresh(
    client: &Client,
    remote: &Remote,
    apex: Name<'_>,
    have: Option<&Have>,
    wish: &Wish,
) -> Result<Word, PeerError> {
    let work = async {
        match ask(client, remote, apex, (have, Expire::Asked), wish).await {
            // RFC 6891 §7: that is what they say who do not know EDNS.
            Err(PeerError::Fault(Fault::Rcode(Rcode::FORMERR | Rcode::NOTIMP))) => {
                ask(client, remote, apex, (have, Expire::Unasked), wish).await
            }
            other => other,
        }
    };
    timeout(wish.patience.whole, work).await.unwrap_or(Err(PeerError::Slow))
}

async fn ask(
    client: &Client,
    remote: &Remote,
    apex: Name<'_>,
    (have, expire): (Option<&Have>, Expire),
    wish: &Wish,
) -> Result<Word, PeerError> {
    let mut connection = Connection::open(client, remote, wish.patience).await?;
    let Some(have) = have else {
        return transfer(&mut connection, remote, apex, (None, expire), wish).await;
    };
    let reply = connection.ask_soa(remote, apex, expire).await?;
    let serial = serial_in(&reply, apex)?;
    if serial == have.serial {
        return Ok(Word { heard: Heard::UpToDate(serial), expire_s: expire_in(&reply) });
    }
    if !is_newer(serial, have.serial) {
        return Err(PeerError::Fault(Fault::Older(serial)));
    }
    match transfer(&mut connection, remote, apex, (Some(have), expire), wish).await {
        // Who has no steps for us may say so in many ways; the whole zone is always there.
        Err(PeerError::Fault(
            Fault::Rcode(Rcode::NOTIMP | Rcode::FORMERR | Rcode::REFUSED | Rcode::SERVFAIL)
            | Fault::Disordered
            | Fault::NoSoa
            | Fault::Malformed,
        )) => {
            let mut connection = Connection::open(client, remote, wish.patience).await?;
            transfer(&mut connection, remote, apex, (None, expire), wish).await
        }
        other => other,
    }
}

/// Returns for how many seconds the sender of a reply may still serve the zone, if it says so.
fn expire_in(reply: &[u8]) -> Option<u32> {
    let told = Message::parse(reply).ok()?.edns?.option(OptionCode::EXPIRE)?;
    told.try_into().ok().map(u32::from_be_bytes)
}

/// Returns the serial in the reply to a question for the SOA.
fn serial_in(reply: &[u8], apex: Name<'_>) -> Result<u32, PeerError> {
    let parsed = Message::parse(reply).map_err(|_| PeerError::Fault(Fault::Malformed))?;
    if parsed.rcode() != Rcode::NOERROR {
        return Err(PeerError::Fault(Fault::Rcode(parsed.rcode())));
    }
    let soa = parsed.records().find(|record| {
        record.section == Section::Answer
            && record.rtype == Rtype::SOA
            && record.owner.expand().is_ok_and(|owner| owner.as_name() == apex)
    });
    // Who serves a zone says so: anything else is a guess of a resolver.
    let soa = soa.filter(|_| parsed.header.flags.has(Flags::AA));
    soa.and_then(|soa| serial_of(soa.rdata)).ok_or(PeerError::Fault(Fault::NoSoa))
}

async fn transfer(
    connection: &mut Connection,
    remote: &Remote,
    apex: Name<'_>,
    (have, expire): (Option<&Have>, Expire),
    wish: &Wish,
) -> Result<Word, PeerError> {
    let qtype = if have.is_some() { Rtype::IXFR } else { Rtype::AXFR };
    let soa = have.map(|have| (Section::Authority, have.soa.0, &*have.soa.1));
    let (id, mut message) = query(apex, (qtype, Opcode::QUERY), soa, expire);
    let mut verifier = signed(remote, &mut message);
    connection.send(&message).await?;
    let mut incoming = Incoming::new(apex, wish.key, have.map(|have| have.serial), wish.octets_max);
    let mut buffer = Vec::new();
    let mut expire_s = None;
    let mut is_first = true;
    loop {
        connection.receive(&mut buffer).await?;
        let message = believed(&buffer, (id, Opcode::QUERY), verifier.as_mut())?;
        if std::mem::take(&mut is_first) {
            expire_s = expire_in(&message);
        }
        if let Some(received) = incoming.take(&message).map_err(PeerError::Fault)? {
            if verifier.as_ref().is_some_and(|verifier| !verifier.is_complete()) {
                return Err(PeerError::Unsigned(Broken::Unsigned));
            }
            let heard = match (received, have) {
                (Received::UpToDate, Some(have)) => Heard::UpToDate(have.serial),
                (received, _) => Heard::New(received),
            };
            return Ok(Word { heard, expire_s });
        }
    }
}

/// Times a notification is sent over UDP, usually.
const NOTIFY_TRIES: u32 = 5;
/// How long the first of them waits for its reply; each after it waits twice as long.
const NOTIFY_WAIT: Duration = Duration::from_secs(3);

/// Tells another server that there is a new version.
pub async fn notify(
    client: &Client,
    remote: &Remote,
    apex: Name<'_>,
    (ttl, soa): (Ttl, &[u8]),
    patience: Patience,
) -> Result<(), PeerError> {
    let soa = Some((Section::Answer, ttl, soa));
    let (id, mut message) = query(apex, (Rtype::SOA, Opcode::NOTIFY), soa, Expire::Unasked);
    let mut verifier = signed(remote, &mut message);
    let reply = if remote.tls.is_some() {
        let mut connection = Connection::open(client, remote, patience).await?;
        connection.send(&message).await?;
        let mut buffer = Vec::new();
        connection.receive(&mut buffer).await?;
        believed(&buffer, (id, Opcode::NOTIFY), verifier.as_mut())?
    } else {
        let own: IpAddr = if remote.address.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((own, 0)).await?;
        socket.connect(remote.address).await?;
        told(&socket, &message, id, (verifier.as_mut(), patience.notify_tries)).await?
    };
    match Message::parse(&reply).map(|parsed| parsed.rcode()) {
        // RFC 1996 §3.12: whoever does not know what this is will not know it the next time.
        Ok(Rcode::NOERROR | Rcode::NOTIMP) => Ok(()),
        Ok(rcode) => Err(PeerError::Refused(rcode)),
        Err(_) => Err(PeerError::Fault(Fault::Malformed)),
    }
}

/// Passes an update on as it came and returns the reply as it came, with their ID and signatures
/// (RFC 2136 §6): nobody else sends anything over the connection that is made for it.
pub async fn pass_on(
    client: &Client,
    remote: &Remote,
    message: &[u8],
    patience: Patience,
) -> Result<Vec<u8>, PeerError> {
    let work = async {
        let id = Header::parse(message).ok_or(PeerError::Fault(Fault::Malformed))?.id;
        let mut connection = Connection::open(client, remote, patience).await?;
        connection.send(message).await?;
        let mut reply = Vec::new();
        connection.receive(&mut reply).await?;
        believed(&reply, (id, Opcode::UPDATE), None)
    };
    timeout(patience.whole, work).await.unwrap_or(Err(PeerError::Slow))
}

async fn told(
    socket: &UdpSocket,
    message: &[u8],
    id: u16,
    (mut verifier, tries): (Option<&mut Verifier>, u32),
) -> Result<Vec<u8>, PeerError> {
    let mut wait = NOTIFY_WAIT;
    let mut buffer = vec![0; 4096];
    for _ in 0..tries {
        // An address that nobody listens at says so here.
        let _ = socket.send(message).await;
        let deadline = tokio::time::Instant::now() + wait;
        while let Ok(Ok(len)) = tokio::time::timeout_at(deadline, socket.recv(&mut buffer)).await {
            let reply = buffer.get(..len).unwrap_or(&[]);
            match believed(reply, (id, Opcode::NOTIFY), verifier.as_deref_mut()) {
                // Anybody could have sent what is not a reply to this; the right one may still
                // come.
                Err(PeerError::Fault(Fault::Malformed)) => {}
                other => return other,
            }
        }
        tokio::time::sleep_until(deadline).await;
        wait *= 2;
    }
    Err(PeerError::Slow)
}
