//! An upstream server that does as it is told, badly if need be.

use crate::ask::{name, name_text, octets};
use crate::dnscrypt::Provider;
use crate::identity::Identity;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::{Class, Flags, Header, Query, Rcode, Rtype, Section};

/// How often a thread that waits for packets looks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// One record of an answer.
#[derive(Clone, Debug)]
struct StubRecord {
    owner: Vec<u8>,
    rtype: Rtype,
    ttl: u32,
    rdata: Vec<u8>,
}

/// What the stub says to one question.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    rcode: u16,
    aliases: Vec<StubRecord>,
    answers: Vec<(Rtype, u32, Vec<u8>)>,
    authorities: Vec<StubRecord>,
    options: Vec<(u16, Vec<u8>)>,
    /// Records that have nothing to do with the question, and in which section.
    strays: Vec<(Section, StubRecord)>,
    is_silence: bool,
    is_cut: bool,
}

impl Answer {
    /// Says nothing.
    pub fn silence() -> Self {
        Self { is_silence: true, ..Self::default() }
    }

    /// Says TC, over TCP, too.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { is_cut: true, ..self }
    }

    /// Adds a record of any name to any section.
    #[must_use]
    pub fn with_stray(mut self, section: Section, owner: &str, rtype: Rtype, rdata: &[u8]) -> Self {
        let owner = name(owner).as_name().as_bytes().to_vec();
        self.strays.push((section, StubRecord { owner, rtype, ttl: 300, rdata: rdata.to_vec() }));
        self
    }

    /// Says `rcode` and nothing else.
    pub fn rcode(rcode: Rcode) -> Self {
        Self { rcode: rcode.0, ..Self::default() }
    }

    /// Answers with one address.
    pub fn a(ttl: u32, address: Ipv4Addr) -> Self {
        Self::default().and(Rtype::A, ttl, &address.octets())
    }

    /// Answers with one IPv6 address.
    pub fn aaaa(ttl: u32, address: Ipv6Addr) -> Self {
        Self::default().and(Rtype::AAAA, ttl, &address.octets())
    }

    /// Answers with text records that together have about `size` octets.
    pub fn long_text(ttl: u32, size: usize) -> Self {
        let mut answer = Self::default();
        for number in 0..size.div_ceil(250) {
            let text = format!("{number:04}{}", "x".repeat(230));
            let mut rdata = vec![text.len() as u8];
            rdata.extend(text.as_bytes());
            answer = answer.and(Rtype::TXT, ttl, &rdata);
        }
        answer
    }

    /// Says that the name does not exist, or with `NOERROR` that the type does not: with an SOA of `example.org`.
    pub fn negative(rcode: Rcode, soa_ttl: u32, minimum: u32) -> Self {
        let zone = name("example.org");
        let mut rdata = name("ns.example.org").as_name().as_bytes().to_vec();
        rdata.extend(name("hostmaster.example.org").as_name().as_bytes());
        for number in [1, 7200, 3600, 1_209_600, minimum] {
            rdata.extend(u32::to_be_bytes(number));
        }
        let soa =
            StubRecord { owner: zone.as_name().as_bytes().to_vec(), rtype: Rtype::SOA, ttl: soa_ttl, rdata };
        Self { rcode: rcode.0, authorities: vec![soa], ..Self::default() }
    }

    /// Adds a record; its owner is the question's name, or the last alias.
    #[must_use]
    pub fn and(mut self, rtype: Rtype, ttl: u32, rdata: &[u8]) -> Self {
        self.answers.push((rtype, ttl, rdata.to_vec()));
        self
    }

    /// Puts a CNAME from `owner` to `target` in front of the records.
    #[must_use]
    pub fn alias(mut self, ttl: u32, owner: &str, target: &str) -> Self {
        let owner = name(owner).as_name().as_bytes().to_vec();
        let rdata = name(target).as_name().as_bytes().to_vec();
        self.aliases.push(StubRecord { owner, rtype: Rtype::CNAME, ttl, rdata });
        self
    }

    /// Returns the reply to a query, as it would come over TCP.
    ///
    /// # Panics
    ///
    /// When `query` is not a query.
    pub fn to(&self, query: &[u8]) -> Vec<u8> {
        write(&Query::parse(query).expect("a query"), self, true, false)
    }

    /// Adds an Extended DNS Error, if the query has EDNS.
    #[must_use]
    pub fn with_ede(self, code: u16) -> Self {
        self.with_option(15, &code.to_be_bytes())
    }

    /// Adds an EDNS option, if the query has EDNS.
    #[must_use]
    pub fn with_option(mut self, code: u16, data: &[u8]) -> Self {
        self.options.push((code, data.to_vec()));
        self
    }
}

/// An untruth in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Another ID than the query's.
    Id,
    /// Another name in the question.
    Question,
    /// No question at all.
    NoQuestion,
    /// A query (QR clear) instead of a reply.
    NotAReply,
    /// Octets that are not a message.
    Garbage,
}

/// What a function of a script sees of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The name as it came, letter case kept, with a dot at its end.
    pub qname: String,
    /// The type.
    pub qtype: Rtype,
    /// Whether it came over TCP.
    pub over_tcp: bool,
    /// Where it came from.
    pub from: SocketAddr,
    /// Its ID.
    pub id: u16,
    /// The whole query.
    pub bytes: Vec<u8>,
}

type AnswerTo = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// How the stub behaves. The default answers every A, AAAA and TXT at once and has nothing else.
#[derive(Clone)]
pub struct Script {
    answer: AnswerTo,
    delay: Duration,
    loss_percent: u8,
    truncates: bool,
    silent: bool,
    lie: Option<Lie>,
    lie_then_truth: bool,
    closes_after: Option<usize>,
}

impl Default for Script {
    fn default() -> Self {
        Self::answering(|asked| match asked.qtype {
            Rtype::A => Answer::a(300, Ipv4Addr::new(192, 0, 2, 1)),
            Rtype::AAAA => Answer::aaaa(300, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
            Rtype::TXT => Answer::long_text(300, 100),
            _ => Answer::negative(Rcode::NOERROR, 300, 300),
        })
    }
}

impl Script {
    /// Answers by a function.
    pub fn answering(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            answer: Arc::new(answer),
            delay: Duration::ZERO,
            loss_percent: 0,
            truncates: false,
            silent: false,
            lie: None,
            lie_then_truth: false,
            closes_after: None,
        }
    }

    /// Says the same to everybody.
    pub fn always(answer: Answer) -> Self {
        Self::answering(move |_| answer.clone())
    }

    /// Hears and counts, but never replies.
    pub fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    /// Replies so much later.
    #[must_use]
    pub fn delayed(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Loses this share of UDP replies, by a generator with a fixed seed.
    #[must_use]
    pub fn losing(self, percent: u8) -> Self {
        Self { loss_percent: percent, ..self }
    }

    /// Truncates every UDP reply to its question.
    #[must_use]
    pub fn truncating(self) -> Self {
        Self { truncates: true, ..self }
    }

    /// Lies in every reply.
    #[must_use]
    pub fn lying(self, lie: Lie) -> Self {
        Self { lie: Some(lie), ..self }
    }

    /// Sends a lie and then the truth.
    #[must_use]
    pub fn lying_first(self, lie: Lie) -> Self {
        Self { lie: Some(lie), lie_then_truth: true, ..self }
    }

    /// Closes each TCP connection after so many replies.
    #[must_use]
    pub fn closing_after(self, replies: usize) -> Self {
        Self { closes_after: Some(replies), ..self }
    }
}

/// What the stub shares with its threads.
struct Shared {
    script: Mutex<Script>,
    seen: Mutex<Vec<Asked>>,
    heard_more: Condvar,
    connections: Mutex<usize>,
    /// What it shows who it is with, over TCP; without, nothing is encrypted.
    tls: Mutex<Option<Arc<ServerConfig>>>,
    /// Whether UDP carries QUIC.
    has_quic: bool,
    /// Who vouches for it, if what comes is sealed.
    provider: Option<Arc<Provider>>,
    /// Handshakes that went on with a session from before.
    resumed: Mutex<usize>,
    random: Mutex<u64>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Returns a number below `bound`, the same ones in the same order every time (splitmix64).
    fn random(&self, bound: u64) -> u64 {
        let mut state = locked(&self.random);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Returns what to send to what came, in order, and when.
    fn respond(&self, bytes: &[u8], from: SocketAddr, over_tcp: bool) -> (Duration, Vec<Vec<u8>>) {
        let Some(provider) = &self.provider else { return self.replies(bytes, from, over_tcp) };
        let mut delay = Duration::ZERO;
        let replies = provider.serve(bytes, over_tcp, |query| {
            let (when, replies) = self.replies(query, from, over_tcp);
            delay = when;
            replies
        });
        (delay, replies)
    }

    /// Notes a query and returns the replies to send, in order, and when.
    fn replies(&self, bytes: &[u8], from: SocketAddr, over_tcp: bool) -> (Duration, Vec<Vec<u8>>) {
        let Ok(query) = Query::parse(bytes) else { return (Duration::ZERO, Vec::new()) };
        let asked = Asked {
            qname: name_text(query.question.qname.as_bytes()),
            qtype: query.question.qtype,
            over_tcp,
            from,
            id: query.header.id,
            bytes: bytes.to_vec(),
        };
        // First: whoever sees that this query is here may change the script for the next one.
        let script = locked(&self.script).clone();
        locked(&self.seen).push(asked.clone());
        self.heard_more.notify_all();
        let is_lost =
            !over_tcp && script.loss_percent > 0 && self.random(100) < u64::from(script.loss_percent);
        if script.silent || is_lost {
            return (Duration::ZERO, Vec::new());
        }
        let answer = (script.answer)(&asked);
        if answer.is_silence {
            return (Duration::ZERO, Vec::new());
        }
        let truth = write(&query, &answer, over_tcp, script.truncates);
        let replies = match script.lie {
            None => vec![truth],
            Some(lie) if script.lie_then_truth => vec![lied(&truth, lie), truth],
            Some(lie) => vec![lied(&truth, lie)],
        };
        (script.delay, replies)
    }
}

/// A running stub. Stops when it is dropped.
pub struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
    running: Option<Running>,
}

struct Running {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Stub {
    /// Starts a stub on a free loopback port, the same number for UDP and TCP.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn start(script: Script) -> Self {
        Self::start_as(None, script, false, None)
    }

    /// Starts a stub whose TCP is TLS, and who shows this identity.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn start_secured(identity: &Identity, script: Script) -> Self {
        Self::start_as(Some(identity), script, false, None)
    }

    /// The same whose UDP is QUIC, too; what comes so counts as if it had come over TCP.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn start_quic(identity: &Identity, script: Script) -> Self {
        Self::start_as(Some(identity), script, true, None)
    }

    /// Starts a stub that speaks DNSCrypt.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn start_dnscrypt(provider: &Arc<Provider>, script: Script) -> Self {
        Self::start_as(None, script, false, Some(Arc::clone(provider)))
    }

    fn start_as(
        identity: Option<&Identity>,
        script: Script,
        has_quic: bool,
        provider: Option<Arc<Provider>>,
    ) -> Self {
        let (udp, tcp) = bind_both();
        let address = udp.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            seen: Mutex::new(Vec::new()),
            heard_more: Condvar::new(),
            connections: Mutex::new(0),
            tls: Mutex::new(identity.map(Identity::server)),
            has_quic,
            provider,
            resumed: Mutex::new(0),
            random: Mutex::new(1),
        });
        let running = Some(run(udp, tcp, &shared));
        Self { address, shared, running }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Behaves like this from now on.
    pub fn behave(&self, script: Script) {
        *locked(&self.shared.script) = script;
    }

    /// Returns everything it was asked so far, in order.
    pub fn seen(&self) -> Vec<Asked> {
        locked(&self.shared.seen).clone()
    }

    /// Returns how many questions for `qname` (with its final dot, any letter case) it saw.
    pub fn count(&self, qname: &str) -> usize {
        locked(&self.shared.seen).iter().filter(|asked| asked.qname.eq_ignore_ascii_case(qname)).count()
    }

    /// Returns how many TCP connections were opened so far.
    pub fn connections(&self) -> usize {
        *locked(&self.shared.connections)
    }

    /// Returns how many TLS handshakes went on with a session from before.
    pub fn resumptions(&self) -> usize {
        *locked(&self.shared.resumed)
    }

    /// Shows another identity from the next connection on.
    pub fn become_another(&self, identity: &Identity) {
        *locked(&self.shared.tls) = Some(identity.server());
    }

    /// Forgets what it saw.
    pub fn forget(&self) {
        locked(&self.shared.seen).clear();
    }

    /// Waits until it was asked `count` times for `qname`.
    ///
    /// # Panics
    ///
    /// When that does not happen before the deadline.
    pub fn wait_for(&self, qname: &str, count: usize) {
        let deadline = Instant::now() + crate::DEADLINE;
        let mut seen = locked(&self.shared.seen);
        loop {
            let found = seen.iter().filter(|asked| asked.qname.eq_ignore_ascii_case(qname)).count();
            if found >= count {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "asked {found} times for {qname}, expected {count}");
            seen = self.shared.heard_more.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Dies: the sockets close, and the port says so.
    pub fn die(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
        for thread in running.threads {
            drop(thread.join());
        }
    }

    /// Comes back on the same port.
    ///
    /// # Panics
    ///
    /// When somebody took the port.
    pub fn revive(&mut self) {
        if self.running.is_none() {
            let udp = UdpSocket::bind(self.address).expect("the port we had");
            let tcp = TcpListener::bind(self.address).expect("the port we had");
            self.running = Some(run(udp, tcp, &self.shared));
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.die();
    }
}

/// Binds UDP and TCP to one free port.
///
/// # Panics
///
/// When there is none.
fn bind_both() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let address = tcp.local_addr().expect("a bound socket");
        if let Ok(udp) = UdpSocket::bind(address) {
            return (udp, tcp);
        }
    }
    panic!("no port that is free for both UDP and TCP");
}

fn run(udp: UdpSocket, tcp: TcpListener, shared: &Arc<Shared>) -> Running {
    let stop = Arc::new(AtomicBool::new(false));
    let (udp_shared, udp_stop) = (Arc::clone(shared), Arc::clone(&stop));
    let (tcp_shared, tcp_stop) = (Arc::clone(shared), Arc::clone(&stop));
    let threads = vec![
        std::thread::spawn(move || {
            let tls = locked(&udp_shared.tls).clone().filter(|_| udp_shared.has_quic);
            let Some(tls) = tls else { return serve_udp(&udp, &udp_shared, &udp_stop) };
            let shared = Arc::clone(&udp_shared);
            let reply: crate::quic::Reply = Arc::new(move |query, from| shared.replies(query, from, true));
            crate::quic::serve(udp, &tls, &reply, &udp_stop);
        }),
        std::thread::spawn(move || accept_tcp(&tcp, &tcp_shared, &tcp_stop)),
    ];
    Running { stop, threads }
}

/// A reply that is not due yet; the earliest is the greatest.
struct Pending<T> {
    due: Instant,
    number: u64,
    what: T,
}

impl<T> PartialEq for Pending<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl<T> Eq for Pending<T> {}
impl<T> PartialOrd for Pending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Pending<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

/// Replies that wait for their time.
struct Later<T> {
    heap: BinaryHeap<Pending<T>>,
    number: u64,
}

impl<T> Later<T> {
    fn new() -> Self {
        Self { heap: BinaryHeap::new(), number: 0 }
    }

    fn push(&mut self, delay: Duration, what: T) {
        self.number += 1;
        self.heap.push(Pending { due: Instant::now() + delay, number: self.number, what });
    }

    fn pop_due(&mut self) -> Option<T> {
        if self.heap.peek()?.due > Instant::now() {
            return None;
        }
        self.heap.pop().map(|pending| pending.what)
    }

    /// Returns how long to wait for packets; never zero, which sockets read as "for ever".
    fn patience(&self) -> Duration {
        let next = self
            .heap
            .peek()
            .map_or(LOOK_EVERY, |pending| pending.due.saturating_duration_since(Instant::now()));
        next.clamp(Duration::from_micros(100), LOOK_EVERY)
    }
}

fn serve_udp(socket: &UdpSocket, shared: &Shared, stop: &AtomicBool) {
    let mut later = Later::new();
    let mut buffer = [0; 65536];
    let mut patience = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        while let Some((reply, to)) = later.pop_due() {
            let reply: Vec<u8> = reply;
            drop(socket.send_to(&reply, to));
        }
        if later.patience() != patience {
            patience = later.patience();
            drop(socket.set_read_timeout(Some(patience)));
        }
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let (delay, replies) = shared.respond(&buffer[..length], from, false);
        for reply in replies {
            if delay.is_zero() {
                drop(socket.send_to(&reply, from));
            } else {
                later.push(delay, (reply, from));
            }
        }
    }
}

fn accept_tcp(listener: &TcpListener, shared: &Arc<Shared>, stop: &Arc<AtomicBool>) {
    let mut threads = Vec::new();
    while let Ok((stream, from)) = listener.accept() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        *locked(&shared.connections) += 1;
        let (shared, stop) = (Arc::clone(shared), Arc::clone(stop));
        threads.push(std::thread::spawn(move || drop(serve_tcp(stream, from, &shared, &stop))));
    }
    for thread in threads {
        drop(thread.join());
    }
}

/// A connection whose reads can time out.
trait Timed: io::Read + io::Write {
    fn patience(&self, patience: Duration) -> io::Result<()>;
}

impl Timed for TcpStream {
    fn patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))
    }
}

impl Timed for StreamOwned<ServerConnection, TcpStream> {
    fn patience(&self, patience: Duration) -> io::Result<()> {
        self.sock.set_read_timeout(Some(patience))
    }
}

fn serve_tcp(stream: TcpStream, from: SocketAddr, shared: &Shared, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let tls = locked(&shared.tls).clone();
    let Some(config) = tls else { return converse(stream, from, shared, stop) };
    stream.set_read_timeout(Some(crate::DEADLINE))?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    if stream.conn.handshake_kind() == Some(HandshakeKind::Resumed) {
        *locked(&shared.resumed) += 1;
    }
    converse(stream, from, shared, stop)
}

fn converse(mut stream: impl Timed, from: SocketAddr, shared: &Shared, stop: &AtomicBool) -> io::Result<()> {
    let mut later: Later<Vec<u8>> = Later::new();
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        while let Some(reply) = later.pop_due() {
            let mut framed = octets(reply.len()).to_vec();
            framed.extend(reply);
            stream.write_all(&framed)?;
            sent += 1;
            if locked(&shared.script).closes_after.is_some_and(|most| sent >= most) {
                return Ok(());
            }
        }
        stream.patience(later.patience())?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => received.extend(&buffer[..length]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        while let Some((&length, rest)) = received.split_first_chunk::<2>() {
            let Some(query) = rest.get(..usize::from(u16::from_be_bytes(length))) else { break };
            let (delay, replies) = shared.respond(query, from, true);
            let used = 2 + query.len();
            for reply in replies {
                later.push(delay, reply);
            }
            received.drain(..used);
        }
    }
    Ok(())
}

/// Writes a reply. The owner of the answers is the question's name, or where the aliases lead.
fn write(query: &Query<'_>, answer: &Answer, over_tcp: bool, truncates: bool) -> Vec<u8> {
    let mut flags = Flags::QR.with(Flags::RA).with(query.header.flags.only(Flags::RD.with(Flags::CD)));
    flags = flags.with_rcode(Rcode(answer.rcode & 15));
    if answer.is_cut {
        flags = flags.with(Flags::TC);
    }
    let strays = |section| answer.strays.iter().filter(move |(place, _)| *place == section);
    let additionals = strays(Section::Additional).count() as u16;
    let header = |flags: Flags, answers: usize, authorities: usize| Header {
        id: query.header.id,
        flags,
        questions: 1,
        answers: answers as u16,
        authorities: authorities as u16,
        additionals: additionals + u16::from(query.edns.is_some()),
    };
    let mut body = query.question_bytes().to_vec();
    let question_end = body.len();
    let mut put = |owner: &[u8], rtype: Rtype, ttl: u32, rdata: &[u8]| {
        body.extend(owner);
        body.extend(rtype.0.to_be_bytes());
        body.extend(Class::IN.0.to_be_bytes());
        body.extend(ttl.to_be_bytes());
        body.extend(octets(rdata.len()));
        body.extend(rdata);
    };
    for alias in &answer.aliases {
        put(&alias.owner, alias.rtype, alias.ttl, &alias.rdata);
    }
    let owner = answer.aliases.last().map_or(&[0xc0, 12][..], |alias| &alias.rdata);
    for (rtype, ttl, rdata) in &answer.answers {
        put(owner, *rtype, *ttl, rdata);
    }
    for (_, stray) in strays(Section::Answer) {
        put(&stray.owner, stray.rtype, stray.ttl, &stray.rdata);
    }
    for authority in &answer.authorities {
        put(&authority.owner, authority.rtype, authority.ttl, &authority.rdata);
    }
    for (_, stray) in strays(Section::Authority).chain(strays(Section::Additional)) {
        put(&stray.owner, stray.rtype, stray.ttl, &stray.rdata);
    }
    let opt = query.edns.map(|_| {
        let mut opt = vec![0, 0, 41, 4, 208, (answer.rcode >> 4) as u8, 0, 0, 0];
        let mut options = Vec::new();
        for (code, data) in &answer.options {
            options.extend(code.to_be_bytes());
            options.extend(octets(data.len()));
            options.extend(data);
        }
        opt.extend(octets(options.len()));
        opt.extend(options);
        opt
    });
    let opt = opt.unwrap_or_default();
    let limit = match (over_tcp, query.edns) {
        (true, _) => usize::from(u16::MAX),
        (false, Some(edns)) => usize::from(edns.udp_size.max(512)),
        (false, None) => 512,
    };
    let is_cut = (truncates && !over_tcp) || Header::LEN + body.len() + opt.len() > limit;
    let header = if is_cut {
        body.truncate(question_end);
        Header { additionals: u16::from(query.edns.is_some()), ..header(flags.with(Flags::TC), 0, 0) }
    } else {
        let answers = answer.aliases.len() + answer.answers.len() + strays(Section::Answer).count();
        header(flags, answers, answer.authorities.len() + strays(Section::Authority).count())
    };
    [&header.to_bytes()[..], &body, &opt].concat()
}

fn lied(truth: &[u8], lie: Lie) -> Vec<u8> {
    let mut bytes = truth.to_vec();
    match lie {
        Lie::Id => bytes[0] ^= 0x55,
        // The first letter of the name.
        Lie::Question => bytes[Header::LEN + 1] ^= 1,
        Lie::NoQuestion => {
            bytes.truncate(Header::LEN);
            bytes[4..].fill(0);
        }
        Lie::NotAReply => bytes[2] &= 0x7f,
        Lie::Garbage => bytes.truncate(Header::LEN + 3),
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, TcpClient, UdpClient};

    #[test]
    fn it_answers_over_udp_and_tcp_and_remembers() {
        let stub = Stub::start(Script::default());
        let ask = Ask::new("a.example.org", Rtype::A);
        let heard = UdpClient::connect(stub.address()).ask(&ask);
        assert_eq!(heard.answers(), ["a.example.org. 300 A 192.0.2.1"]);
        let mut tcp = TcpClient::connect(stub.address());
        assert_eq!(tcp.ask(&ask), heard);
        assert_eq!(
            tcp.ask(&Ask::new("B.example.org", Rtype::AAAA)).answers(),
            ["B.example.org. 300 AAAA 2001:db8::1"]
        );
        assert_eq!(
            (stub.count("a.example.org."), stub.count("b.example.org."), stub.connections()),
            (2, 1, 1)
        );
        let transports: Vec<_> = stub.seen().iter().map(|asked| asked.over_tcp).collect();
        assert_eq!(transports, [false, true, true]);
    }

    #[test]
    fn it_truncates_what_is_too_long_or_everything() {
        let stub = Stub::start(Script::always(Answer::long_text(60, 2000)));
        let ask = Ask::new("t.example.org", Rtype::TXT);
        let client = UdpClient::connect(stub.address());
        assert!(client.ask(&ask).has(Flags::TC));
        assert!(!client.ask(&ask.clone().edns(4096)).has(Flags::TC));
        assert_eq!(TcpClient::connect(stub.address()).ask(&ask).answers().len(), 8);
        stub.behave(Script::default().truncating());
        assert!(client.ask(&Ask::new("a.example.org", Rtype::A)).has(Flags::TC));
    }

    #[test]
    fn it_lies_on_demand() {
        let stub = Stub::start(Script::default().lying_first(Lie::Id));
        let client = UdpClient::connect(stub.address());
        client.send(&Ask::new("a.example.org", Rtype::A).id(1).bytes());
        assert_ne!(client.receive().id(), 1);
        assert_eq!(client.receive().id(), 1);
        stub.behave(Script::default().lying(Lie::Question));
        let heard = client.ask(&Ask::new("a.example.org", Rtype::A));
        assert!(
            heard
                .message()
                .question
                .is_some_and(|question| question.qname != name("a.example.org").as_name())
        );
    }

    #[test]
    fn it_loses_about_as_much_as_it_is_told() {
        let stub = Stub::start(Script::default().losing(30));
        let client = UdpClient::connect(stub.address());
        for id in 0..200 {
            client.send(&Ask::new("a.example.org", Rtype::A).id(id).bytes());
        }
        stub.wait_for("a.example.org.", 200);
        stub.behave(Script::default());
        client.send(&Ask::new("a.example.org", Rtype::A).id(200).bytes());
        let mut heard = 0;
        while client.receive().id() != 200 {
            heard += 1;
        }
        assert!((110..170).contains(&heard), "{heard} of 200");
    }

    #[test]
    fn later_replies_come_later_and_do_not_hold_up_others() {
        // Long enough for a machine that is busy with other things.
        let stub = Stub::start(Script::default().delayed(Duration::from_secs(2)));
        let mut tcp = TcpClient::connect(stub.address());
        tcp.send([Ask::new("a.example.org", Rtype::A).id(1).bytes().as_slice()]);
        stub.wait_for("a.example.org.", 1);
        stub.behave(Script::default());
        assert_eq!(tcp.ask(&Ask::new("b.example.org", Rtype::A).id(2)).id(), 2);
        assert_eq!(tcp.receive().map(|heard| heard.id()), Some(1));
    }

    #[test]
    fn it_dies_and_comes_back_on_its_port() {
        let mut stub = Stub::start(Script::default());
        let ask = Ask::new("a.example.org", Rtype::A);
        let client = UdpClient::connect(stub.address());
        client.ask(&ask);
        stub.die();
        client.send(&ask.bytes());
        assert!(client.try_receive().is_err());
        assert!(TcpStream::connect(stub.address()).is_err());
        stub.revive();
        assert_eq!(client.ask(&ask).answers().len(), 1);
    }
}
