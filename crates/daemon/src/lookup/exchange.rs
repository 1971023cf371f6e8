//! Messages to a server and back: datagrams, TCP, and what an upstream is asked over.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use commands::query::{PADDING_OCTETS, Padding, Reply, Words};
use exchange::probe::Watched;
use identity::Transport;
use socket2::{Domain, Socket, Type};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tsig::{Key, Verifier};
use wire::{Flags, Header, OptionCode, Question, Rcode, Rtype, Section, Ttl, Writer};

use super::target::{Line, Target};

/// Times a question is sent over UDP before the server counts as silent.
const ATTEMPTS: u32 = 3;
/// The largest UDP reply we ask for (DNS flag day 2020).
const UDP_OCTETS_MAX: u16 = 1232;
/// Octets of the largest query: no option is longer.
const QUERY_OCTETS_MAX: usize = 65_535;
/// How long a handshake may take beside an attempt.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);

/// A question in wire form.
#[derive(Clone)]
pub(super) struct Packet {
    id: u16,
    bytes: Vec<u8>,
    question_len: usize,
    key: Option<Arc<Key>>,
}

/// Writes the question; an error says what does not fit.
pub(super) fn write_query(
    words: &Words,
    is_encrypted: bool,
    key: Option<Arc<Key>>,
) -> Result<Packet, String> {
    let wishes = &words.wishes;
    let id = rand::random();
    let mut flags = Flags::default();
    for (flag, is_set) in [
        // Whole zones are asked of who has them.
        (Flags::RD, !wishes.no_recursion && !words.is_transfer()),
        (Flags::CD, wishes.unchecked),
        (Flags::AD, wishes.authentic),
    ] {
        if is_set {
            flags = flags.with(flag);
        }
    }
    let mut bytes = vec![0; QUERY_OCTETS_MAX];
    let limit = bytes.len();
    let mut writer = Writer::new(&mut bytes, limit, id, flags);
    let question = Question { qname: words.name.as_name(), qtype: words.rtype, qclass: words.class };
    writer.question(&question).expect("a name of 255 octets fits");
    let question_len = writer.len() - Header::LEN;
    if words.rtype == Rtype::IXFR {
        // RFC 1995 §3: of the SOA only the serial counts.
        let soa = [&[0, 0], &words.serial.to_be_bytes()[..], &[0; 16]].concat();
        let owner = words.name.as_name();
        let written =
            writer.record(Section::Authority, owner, Rtype::SOA, words.class, Ttl::ZERO, |w| w.bytes(&soa));
        written.expect("a SOA fits");
    }
    if !wishes.no_edns {
        let block = match wishes.padding {
            Padding::Usual if is_encrypted => Some(PADDING_OCTETS),
            Padding::Usual | Padding::Off => None,
            Padding::Block(block) => Some(block),
        };
        // The OPT itself has 11 octets, the head of an option 4.
        let options: usize = wishes.options.iter().map(|(_, data)| 4 + data.len()).sum();
        let bare = writer.len() + 11 + options;
        let padding = block.map(|block| vec![0; (bare + 4).next_multiple_of(block.into()) - bare - 4]);
        let put = |writer: &mut Writer<'_>| {
            for (code, data) in &wishes.options {
                writer.option(*code, data)?;
            }
            padding.as_ref().map_or(Ok(()), |padding| writer.option(OptionCode::PADDING, padding))
        };
        let octets = wishes.udp_octets.unwrap_or(UDP_OCTETS_MAX);
        writer
            .opt(octets, Rcode::NOERROR, wishes.dnssec, put)
            .map_err(|_| "the options are too long for a message")?;
    }
    let len = writer.finish();
    bytes.truncate(len);
    Ok(Packet { id, bytes, question_len, key })
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Packet {
    /// Returns what is sent, and what verifies the replies if it is signed.
    fn signed(&self) -> (Vec<u8>, Option<Verifier>) {
        let mut bytes = self.bytes.clone();
        let verifier = self.key.as_ref().map(|key| tsig::sign_request(key, &mut bytes, unix_seconds()));
        (bytes, verifier)
    }

    /// Returns whether `reply` answers this question and not another (RFC 5452 §9).
    fn is_answered_by(&self, reply: &[u8]) -> bool {
        let Some(header) = Header::parse(reply) else { return false };
        let question =
            |bytes: &[u8]| bytes.get(Header::LEN..Header::LEN + self.question_len).map(<[u8]>::to_vec);
        let is_same_question = match (question(reply), question(&self.bytes)) {
            (Some(theirs), Some(ours)) => theirs.eq_ignore_ascii_case(&ours),
            _ => false,
        };
        // A server that could not read the question, or a web server that refused it, need not
        // repeat it.
        let is_complaint = header.questions == 0
            && matches!(header.flags.rcode(), Rcode::FORMERR | Rcode::SERVFAIL | Rcode::NOTIMP);
        header.id == self.id && header.flags.has(Flags::QR) && (is_same_question || is_complaint)
    }

    /// Returns whether a message goes on with a transfer: only the first has to repeat the question
    /// (RFC 5936 §2.2.1).
    fn is_continued_by(&self, message: &[u8]) -> bool {
        Header::parse(message).is_some_and(|header| header.id == self.id && header.flags.has(Flags::QR))
    }
}

/// How long to wait, and how often to ask.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    pub(super) reply: Duration,
    pub(super) tries: Option<u32>,
}

/// Asks one server; the text of an error says in what way it was silent.
pub(super) fn ask(
    target: &Target,
    packet: &Packet,
    (keeps_truncated, source): (bool, Option<IpAddr>),
    patience: Patience,
) -> Result<Reply, String> {
    let begin = Instant::now();
    let end = |(reply, octets): (Vec<u8>, usize), line: &Line| Reply {
        server: target.address.to_string(),
        transport: word(line),
        time: begin.elapsed(),
        signed_by: packet.key.as_ref().map(|key| key.name().to_string()),
        message: reply,
        octets,
    };
    let mut line = target.line.clone();
    if matches!(line, Line::Udp) {
        let reply = ask_by(&target.clone(), packet, source, patience)?;
        let is_whole = Header::parse(&reply.0).is_none_or(|header| !header.flags.has(Flags::TC));
        if is_whole || keeps_truncated {
            return Ok(end(reply, &line));
        }
        line = Line::Tcp;
    }
    let target = Target { line: line.clone(), ..target.clone() };
    // What a connection carries is not lost: it is sent once, unless somebody wants otherwise.
    let patience = Patience { tries: Some(patience.tries.unwrap_or(1)), ..patience };
    ask_by(&target, packet, source, patience).map(|reply| end(reply, &line))
}

pub(super) fn word(line: &Line) -> &'static str {
    use plan::upstreams::Scheme;
    match line {
        Line::Udp => "udp",
        Line::Tcp => "tcp",
        Line::Secure(transport) => match transport.way().protocol.scheme() {
            Scheme::Udp => "udp",
            Scheme::Tcp => "tcp",
            Scheme::Tls => "tls",
            Scheme::Https => "https",
            Scheme::Quic => "quic",
            Scheme::Https3 => "h3",
            Scheme::Dnscrypt => "dnscrypt",
            Scheme::Odoh => "odoh",
        },
    }
}

/// Asks over one line, as often as it takes. Returns the reply without its signature, and how long
/// it was with it.
fn ask_by(
    target: &Target,
    packet: &Packet,
    source: Option<IpAddr>,
    patience: Patience,
) -> Result<(Vec<u8>, usize), String> {
    let mut kept = None;
    for _ in 0..patience.tries.unwrap_or(ATTEMPTS) {
        let mut channel = match kept.take() {
            Some(channel) => channel,
            None => Channel::open(target, source, patience.reply)?,
        };
        let (bytes, verifier) = packet.signed();
        channel.send(&bytes)?;
        let until = Instant::now() + patience.reply;
        // Ends: the deadline stands, whatever a stranger sends in the meantime.
        while let Some(reply) = channel.receive(until)? {
            if packet.is_answered_by(&reply) {
                return Ok((believed(&reply, verifier)?, reply.len()));
            }
        }
        // A late reply to a datagram still counts; a connection may have stopped in the middle of a
        // message.
        kept = Some(channel).filter(|channel| matches!(channel, Channel::Udp(_)));
    }
    Err("no reply in time".to_owned())
}

/// Checks who signed a reply, if the query was signed.
fn believed(reply: &[u8], verifier: Option<Verifier>) -> Result<Vec<u8>, String> {
    match verifier {
        None => Ok(reply.to_vec()),
        Some(mut verifier) => verifier
            .take(reply, unix_seconds())
            .map_err(|broken| format!("its reply is not believed: {broken}")),
    }
}

/// The messages of a transfer, one after the other.
pub(super) struct Stream {
    channel: Channel,
    packet: Packet,
    verifier: Option<Verifier>,
    is_first: bool,
    patience: Duration,
    whole: Instant,
}

impl Stream {
    /// Connects and asks; the transfer must have ended by `whole`.
    pub(super) fn open(
        target: &Target,
        packet: Packet,
        source: Option<IpAddr>,
        patience: Duration,
        whole: Instant,
    ) -> Result<Self, String> {
        let mut channel = Channel::open(target, source, patience)?;
        let (bytes, verifier) = packet.signed();
        channel.send(&bytes)?;
        Ok(Self { channel, packet, verifier, is_first: true, patience, whole })
    }

    /// Waits for the next message; returns it without its signature, and how long it was with it.
    pub(super) fn next(&mut self) -> Result<(Vec<u8>, usize), String> {
        let until = self.whole.min(Instant::now() + self.patience);
        let message = self.channel.receive(until)?.ok_or("no message in time")?;
        let is_ours = match std::mem::take(&mut self.is_first) {
            true => self.packet.is_answered_by(&message),
            false => self.packet.is_continued_by(&message),
        };
        if !is_ours {
            return Err("it sent a message that belongs to nothing we asked".to_owned());
        }
        let len = message.len();
        let Some(verifier) = &mut self.verifier else { return Ok((message, len)) };
        let taken = verifier.take(&message, unix_seconds());
        taken.map(|message| (message, len)).map_err(|broken| format!("it is not believed: {broken}"))
    }

    /// Returns the key that signs the messages, if any does.
    pub(super) fn signed_by(&self) -> Option<String> {
        self.packet.key.as_ref().map(|key| key.name().to_string())
    }

    /// Returns whether the last message was signed, if any had to be.
    pub(super) fn is_believed(&self) -> bool {
        self.verifier.as_ref().is_none_or(Verifier::is_complete)
    }
}

/// A way to a server.
enum Channel {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Secure(Box<Secure>),
}

/// A connection as upstreams are asked over, and what drives it. Dropped in this order.
struct Secure {
    watched: Watched,
    local: LocalSet,
    runtime: Runtime,
}

impl Channel {
    fn open(target: &Target, source: Option<IpAddr>, patience: Duration) -> Result<Self, String> {
        match &target.line {
            Line::Udp => udp(target.address, source).map(Self::Udp).map_err(|error| silence(&error)),
            Line::Tcp => {
                tcp(target.address, source, patience).map(Self::Tcp).map_err(|error| silence(&error))
            }
            Line::Secure(transport) => {
                Secure::open(target.address, transport, patience).map(|it| Self::Secure(Box::new(it)))
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        match self {
            Self::Udp(socket) => socket.send(message).map(drop).map_err(|error| silence(&error)),
            Self::Tcp(stream) => {
                let length = u16::try_from(message.len()).map_err(|_| "the query is too long")?;
                let framed = [&length.to_be_bytes(), message].concat();
                stream.write_all(&framed).map_err(|error| silence(&error))
            }
            Self::Secure(secure) => {
                secure.watched.send(message);
                Ok(())
            }
        }
    }

    /// Waits for the next message; `None` when none came until then.
    fn receive(&mut self, until: Instant) -> Result<Option<Vec<u8>>, String> {
        let received = match self {
            Self::Udp(socket) => datagram(socket, until),
            Self::Tcp(stream) => message(stream, until),
            Self::Secure(secure) => {
                let left = until.saturating_duration_since(Instant::now());
                let next = async { timeout(left, secure.watched.next()).await };
                return match secure.local.block_on(&secure.runtime, next) {
                    Ok(Some((_, message))) => Ok(Some(message)),
                    Ok(None) => Err("hung up without a reply".to_owned()),
                    Err(_) => Ok(None),
                };
            }
        };
        match received {
            Ok(message) => Ok(Some(message)),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(silence(&error)),
        }
    }
}

impl Secure {
    fn open(address: SocketAddr, transport: &Arc<Transport>, patience: Duration) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let local = LocalSet::new();
        let opening = async {
            let watched = Watched::open(address, Arc::clone(transport));
            match timeout(patience + HANDSHAKE_PATIENCE, watched.opened()).await {
                Ok(Ok(_)) => Ok(watched),
                Ok(Err(why)) => Err(why),
                Err(_) => Err("no connection in time".to_owned()),
            }
        };
        let watched = local.block_on(&runtime, opening)?;
        Ok(Self { watched, local, runtime })
    }
}

/// Says in what way a server was silent.
fn silence(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens there".into(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no reply in time".into(),
        io::ErrorKind::UnexpectedEof => "hung up without a reply".into(),
        _ => error.to_string(),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn udp(server: SocketAddr, source: Option<IpAddr>) -> io::Result<UdpSocket> {
    let any = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((source.unwrap_or(any), 0))?;
    socket.connect(server)?;
    Ok(socket)
}

fn tcp(server: SocketAddr, source: Option<IpAddr>, patience: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
    if let Some(source) = source {
        socket.bind(&SocketAddr::from((source, 0)).into())?;
    }
    socket.connect_timeout(&server.into(), patience)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Returns the time left; an error when it is over.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn datagram(socket: &UdpSocket, until: Instant) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    socket.set_read_timeout(Some(left(until)?))?;
    let len = socket.recv(&mut buffer)?;
    buffer.truncate(len);
    Ok(buffer)
}

/// Reads one message after its length, all of it until then.
fn message(stream: &mut TcpStream, until: Instant) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    fill(stream, &mut length, until)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    fill(stream, &mut message, until)?;
    Ok(message)
}

fn fill(stream: &mut TcpStream, mut room: &mut [u8], until: Instant) -> io::Result<()> {
    // Ends: each turn fills some of it, and the deadline stands.
    while !room.is_empty() {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => room = room.split_at_mut(len).1,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
