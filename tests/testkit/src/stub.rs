//! An upstream server that does as it is told, badly if need be.

mod answer;
mod serve;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use wire::{Query, Rcode, Rtype};

pub use self::answer::{Answer, Lie};
use self::answer::{lied, write};
use self::serve::{accept_tcp, serve_udp};
use crate::ask::name_text;
use crate::dnscrypt::Provider;
use crate::identity::Identity;

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
    /// The name that the latest TLS connection was for.
    told_name: Mutex<Option<String>>,
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

    /// Starts a stub at an address and port, such as one of a zone's servers, which all have the
    /// same port.
    ///
    /// # Panics
    ///
    /// When the port is taken.
    pub fn start_at(address: SocketAddr, script: Script) -> Self {
        let tcp = TcpListener::bind(address).expect("a free port");
        let udp = UdpSocket::bind(address).expect("a free port");
        Self::start_on((udp, tcp), None, script, false, None)
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
        Self::start_on(bind_both(), identity, script, has_quic, provider)
    }

    fn start_on(
        (udp, tcp): (UdpSocket, TcpListener),
        identity: Option<&Identity>,
        script: Script,
        has_quic: bool,
        provider: Option<Arc<Provider>>,
    ) -> Self {
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
            told_name: Mutex::default(),
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

    /// Returns the name that the latest TLS connection was for, if its client said one.
    pub fn told_name(&self) -> Option<String> {
        locked(&self.shared.told_name).clone()
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

#[cfg(test)]
mod tests {
    use wire::Flags;

    use super::*;
    use crate::{Ask, TcpClient, UdpClient, name};

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
