//! A load generator: keeps a number of queries outstanding, or sends at a rate, and checks every
//! answer.
//!
//! Never sends a query without a way to know its reply: ID, question and response code are
//! compared.

mod carrier;
pub mod frames;
mod https;
pub mod quiet;
mod tcp;
mod udp;
mod window;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use self::window::Books;
use crate::certificate::Secure;
use crate::histogram::Histogram;
use crate::queries::Packets;
use crate::sys;

/// The time that one [`Slice`] of a run covers.
pub const SLICE: Duration = Duration::from_millis(100);
/// The longest a run waits for an answer before it looks at the clock again.
const PATIENCE_MAX: Duration = Duration::from_millis(100);

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// When each query has been answered once (lost ones are asked again), or this time is over.
    EachAnswered(Duration),
    /// When each query has been asked once, answered or not, or this time is over.
    EachOnce(Duration),
}

impl Until {
    const fn time(self) -> Duration {
        match self {
            Self::Elapsed(time) | Self::EachAnswered(time) | Self::EachOnce(time) => time,
        }
    }
}

/// What carries the queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// UDP, a socket per client.
    #[default]
    Udp,
    /// TCP, a lasting connection per client, which carries many queries at once (RFC 7766
    /// §6.2.1.1).
    Tcp,
    /// TCP, a new connection for each query; as many at once as queries may be in flight.
    TcpEach,
    /// TLS (RFC 7858), a lasting connection per client.
    Tls,
    /// TLS, a new connection with a full handshake for each query.
    TlsEach,
    /// HTTP/2 over TLS (RFC 8484), a lasting connection per client.
    Https,
}

impl Transport {
    /// Returns whether a server needs a certificate for it.
    pub const fn is_encrypted(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::TcpEach => false,
            Self::Tls | Self::TlsEach | Self::Https => true,
        }
    }
}

/// What a right answer looks like, beside ID and question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// What each query says, its response code (below 16) translated.
    AsAsked([u8; 16]),
    /// The query itself with QR set.
    Echo,
}

impl Expect {
    /// What each query says.
    pub const AS_ASKED: Self = Self::AsAsked([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whom to ask.
    pub server: SocketAddr,
    /// What carries the queries.
    pub transport: Transport,
    /// How TLS is spoken, if it is.
    pub secure: Option<Secure>,
    /// Sockets or lasting connections, each with its own port.
    pub clients: usize,
    /// Loopback addresses the clients are spread over (127.0.0.1, .2, …).
    pub client_addresses: usize,
    /// Queries in flight at most, over all clients.
    pub outstanding: usize,
    /// Queries per second; as many as the answers allow without it.
    pub rate: Option<f64>,
    /// Send at even distances, each from the next socket, and look for answers in between without
    /// ever sleeping; over UDP, at a rate.
    pub is_even: bool,
    /// The place in the order of the first query.
    pub begin_at: usize,
    /// When to stop.
    pub until: Until,
    /// How long an answer may take before its query counts as lost.
    pub timeout: Duration,
    /// What a right answer looks like.
    pub expect: Expect,
    /// Ask in an order shuffled by this seed instead of front to back.
    pub shuffle: Option<u64>,
}

impl Plan {
    /// Returns the address that `client` asks from.
    fn local(&self, client: usize) -> IpAddr {
        let host = (client % self.client_addresses.clamp(1, 250)) as u8;
        match self.server.ip() {
            IpAddr::V4(address) if address.is_loopback() => IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + host)),
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }
}

/// What happened in one [`SLICE`] of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Right answers that came in it.
    pub answered: u64,
    /// Replies with an unexpected response code or without records that came in it.
    pub wrong: u64,
    /// Queries that were sent in it and never answered.
    pub lost: u64,
    /// The longest that a right answer of it took.
    pub latency_max_ns: u64,
}

/// What came of it.
#[derive(Clone, Default)]
pub struct Tally {
    /// Queries sent, repetitions included.
    pub sent: u64,
    /// Right answers in time.
    pub answered: u64,
    /// Queries without an answer in time.
    pub lost: u64,
    /// Replies with an unexpected response code or without records.
    pub wrong_content: u64,
    /// How many of these had each response code.
    pub wrong_rcodes: [u64; 16],
    /// Replies to the right ID with another question.
    pub wrong_question: u64,
    /// Datagrams that match no query in flight.
    pub unexpected: u64,
    /// From the first query to the last answer.
    pub elapsed: Duration,
    /// CPU time of the generator.
    pub own_cpu: Duration,
    /// How long right answers took.
    pub latency: Histogram,
    /// The time that all queries were in flight, added up: until an answer came, right or wrong, or
    /// they were given up. Zero if the generator does not know it.
    pub in_flight: Duration,
    /// What else there is to say.
    pub remark: Option<String>,
    /// The course of the run, slice by slice; empty if the generator does not know it.
    pub slices: Vec<Slice>,
}

impl Tally {
    /// Returns right answers per second.
    pub fn qps(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the queries in flight by the right answers a second (Little's law): the time that
    /// one takes in which lost ones hold their place too. `None` if the generator does not know how
    /// many were in flight.
    pub fn time_in_system(&self) -> Option<Duration> {
        let is_known = !self.in_flight.is_zero() && self.answered > 0;
        is_known.then(|| self.in_flight.div_f64(self.answered as f64))
    }

    /// Returns the share of queries lost, in per cent.
    pub fn loss_percent(&self) -> f64 {
        100.0 * self.lost as f64 / (self.sent as f64).max(1.0)
    }

    /// Describes the replies that were not right, if there were any.
    pub fn complaint(&self) -> Option<String> {
        if self.wrong() == 0 {
            return None;
        }
        let rcodes = self.wrong_rcodes.iter().enumerate().filter(|(_, count)| **count > 0);
        let rcodes: Vec<String> =
            rcodes.map(|(rcode, count)| format!("{count} with rcode {rcode}")).collect();
        Some(format!(
            "{} of {} answers were wrong ({}; {} to another question)",
            self.wrong(),
            self.wrong() + self.answered,
            rcodes.join(", "),
            self.wrong_question
        ))
    }

    /// Returns replies that were not right.
    pub const fn wrong(&self) -> u64 {
        self.wrong_content + self.wrong_question
    }
}

/// Runs `plan` over `packets`, on the calling thread.
pub fn run(plan: &Plan, packets: &Packets) -> io::Result<Tally> {
    let cpu_before = sys::thread_cpu();
    let mut tally = match plan.transport {
        Transport::Udp => udp::run(plan, packets),
        Transport::Tcp | Transport::TcpEach | Transport::Tls | Transport::TlsEach => tcp::run(plan, packets),
        Transport::Https => https::run(plan, packets),
    }?;
    tally.own_cpu = sys::thread_cpu() - cpu_before;
    Ok(tally)
}

/// When a run sends, looks for lost queries, and ends.
struct Pace {
    timeout_ns: u64,
    sweep_ns: u64,
    next_sweep_ns: u64,
    end_ns: u64,
    is_sending: bool,
}

impl Pace {
    fn new(plan: &Plan) -> Self {
        let timeout_ns = plan.timeout.as_nanos() as u64;
        let sweep_ns = (timeout_ns / 10).clamp(1_000_000, PATIENCE_MAX.as_nanos() as u64);
        let end_ns = plan.until.time().as_nanos() as u64;
        Self { timeout_ns, sweep_ns, next_sweep_ns: sweep_ns, end_ns, is_sending: true }
    }

    /// Returns, when it is time to look, the moment before which sent queries are lost.
    fn sweep(&mut self, now_ns: u64) -> Option<u64> {
        (now_ns >= self.next_sweep_ns).then(|| {
            self.next_sweep_ns = now_ns + self.sweep_ns;
            now_ns.saturating_sub(self.timeout_ns)
        })
    }

    /// Notices the end.
    fn look(&mut self, now_ns: u64, books: &Books<'_>) {
        self.is_sending = self.is_sending && now_ns < self.end_ns && !books.gave_up();
    }

    /// Counts what is lost by now, and notices the end; returns whether the run is over.
    fn is_over(&mut self, now_ns: u64, books: &mut Books<'_>) -> bool {
        if let Some(before) = self.sweep(now_ns) {
            books.sweep(before);
        }
        self.look(now_ns, books);
        books.is_done(self.is_sending)
    }

    /// Returns how long to wait for answers.
    fn patience(&self, now_ns: u64, books: &Books<'_>) -> Duration {
        let until = if self.is_sending { self.next_sweep_ns.min(self.end_ns) } else { self.next_sweep_ns };
        let wait = Duration::from_nanos(until.saturating_sub(now_ns));
        match books.until_due(now_ns) {
            Some(due) if self.is_sending => wait.min(due),
            _ => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::Certificate;
    use crate::echo;
    use crate::queries::{Ask, Extras};
    use crate::stub;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, UdpSocket};
    use wire::Rtype;

    fn plan(server: SocketAddr, expect: Expect) -> Plan {
        Plan {
            server,
            transport: Transport::Udp,
            secure: None,
            clients: 3,
            client_addresses: 1,
            outstanding: 10,
            rate: None,
            is_even: false,
            begin_at: 0,
            until: Until::EachAnswered(Duration::from_secs(20)),
            timeout: Duration::from_millis(200),
            expect,
            shuffle: Some(1),
        }
    }

    fn packets() -> Packets {
        let asks: Vec<Ask> = (0..100).map(|i| Ask::new(format!("host{i}.example.org"), Rtype::A)).collect();
        Packets::new(&asks, Extras::default()).expect("encodes")
    }

    fn in_background(serve: impl FnOnce(UdpSocket) + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = socket.local_addr().expect("bound");
        std::thread::spawn(move || serve(socket));
        address
    }

    #[test]
    fn both_echoes_return_every_query() {
        for mode in [echo::Mode::Plain, echo::Mode::Segmented] {
            let server = in_background(move |socket| drop(echo::serve(&socket, mode)));
            let tally = run(&plan(server, Expect::Echo), &packets()).expect("runs");
            assert_eq!((tally.answered, tally.wrong(), tally.unexpected), (100, 0, 0));
        }
    }

    #[test]
    fn a_stub_that_loses_every_third_query_is_asked_again() {
        let behaviour = stub::Behaviour { loss_percent: 33.0, ..stub::Behaviour::default() };
        let server = in_background(move |socket| drop(stub::serve(&socket, &behaviour)));
        let expect = Expect::AS_ASKED;
        let tally = run(&plan(server, expect), &packets()).expect("runs");
        assert_eq!((tally.answered, tally.wrong()), (100, 0));
        assert_eq!(tally.sent - tally.lost, 100);
        assert!(tally.lost > 0);
    }

    #[test]
    fn a_wrong_rcode_is_not_an_answer() {
        let behaviour = stub::Behaviour { rcode: 2, ..stub::Behaviour::default() };
        let server = in_background(move |socket| drop(stub::serve(&socket, &behaviour)));
        let expect = Expect::AS_ASKED;
        let tally = run(&plan(server, expect), &packets()).expect("runs");
        assert_eq!(tally.answered, 0);
        assert!(tally.wrong_content > 100);
    }

    fn echo_over_tcp() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || echo::serve_stream(&listener));
        address
    }

    #[test]
    fn the_echo_returns_every_query_over_tcp() {
        let server = echo_over_tcp();
        for transport in [Transport::Tcp, Transport::TcpEach] {
            let plan = Plan { transport, ..plan(server, Expect::Echo) };
            let tally = run(&plan, &packets()).expect("runs");
            assert_eq!((tally.answered, tally.wrong(), tally.unexpected), (100, 0, 0), "{transport:?}");
        }
    }

    /// An echo behind TLS, each connection on a thread of its own.
    fn echo_over_tls(certificate: &Certificate) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let config = certificate.server(&[b"dot"]).expect("a certificate");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let session = rustls::ServerConnection::new(config.clone()).expect("a session");
                std::thread::spawn(move || converse(rustls::StreamOwned::new(session, stream)));
            }
        });
        address
    }

    fn converse(mut stream: rustls::StreamOwned<rustls::ServerConnection, std::net::TcpStream>) {
        let mut length = [0; 2];
        while stream.read_exact(&mut length).is_ok() {
            let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut message).expect("a whole query");
            message[2] |= 0x80;
            let sent = stream.write_all(&[&length[..], &message].concat());
            if sent.is_err() {
                return;
            }
        }
    }

    #[test]
    fn an_echo_behind_tls_returns_every_query() {
        let directory = std::env::temp_dir().join(format!("gannet-bench-tls-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a writable directory");
        let certificate = Certificate::make(&directory).expect("a certificate");
        std::fs::remove_dir_all(&directory).expect("was made");
        let server = echo_over_tls(&certificate);
        let secure = Some(certificate.client().expect("a certificate"));
        for transport in [Transport::Tls, Transport::TlsEach] {
            let plan = Plan {
                transport,
                secure: secure.clone(),
                timeout: Duration::from_secs(5),
                ..plan(server, Expect::Echo)
            };
            let tally = run(&plan, &packets()).expect("runs");
            assert_eq!((tally.answered, tally.wrong(), tally.unexpected), (100, 0, 0), "{transport:?}");
        }
        let plan = Plan {
            transport: Transport::Tls,
            secure,
            clients: 5,
            outstanding: 5,
            ..plan(server, Expect::Echo)
        };
        let (tally, mut quiet) = quiet::open(&plan, &packets()).expect("opened");
        assert_eq!((tally.answered, quiet.open()), (5, 5));
    }

    #[test]
    fn a_server_that_closes_each_connection_loses_what_is_in_flight() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let server = listener.local_addr().expect("bound");
        std::thread::spawn(move || listener.incoming().for_each(drop));
        let until = Until::EachOnce(Duration::from_secs(20));
        let plan = Plan { transport: Transport::Tcp, until, ..plan(server, Expect::Echo) };
        let tally = run(&plan, &packets()).expect("runs");
        assert_eq!((tally.answered, tally.lost, tally.sent), (0, 100, 100));
    }

    #[test]
    fn asking_once_does_not_ask_again() {
        let behaviour = stub::Behaviour { loss_percent: 100.0, ..stub::Behaviour::default() };
        let server = in_background(move |socket| drop(stub::serve(&socket, &behaviour)));
        let until = Until::EachOnce(Duration::from_secs(20));
        let expect = Expect::AS_ASKED;
        let tally = run(&Plan { until, ..plan(server, expect) }, &packets()).expect("runs");
        assert_eq!((tally.answered, tally.lost, tally.sent), (0, 100, 100));
    }

    #[test]
    fn queries_at_even_distances_come_from_each_socket_in_turn() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let server = socket.local_addr().expect("bound");
        let behind = std::thread::spawn(move || {
            let (mut senders, mut buffer) = (Vec::new(), [0; 512]);
            while senders.len() < 100 {
                let (len, sender) = socket.recv_from(&mut buffer).expect("loopback");
                buffer[2] |= 0x80;
                socket.send_to(&buffer[..len], sender).expect("loopback");
                senders.push(sender);
            }
            senders
        });
        let until = Until::EachOnce(Duration::from_secs(20));
        let even = Plan { rate: Some(2_000.0), is_even: true, until, ..plan(server, Expect::Echo) };
        let tally = run(&even, &packets()).expect("runs");
        let senders = behind.join().expect("ended well");
        assert_eq!((tally.sent, tally.answered, tally.lost), (100, 100, 0));
        // Two that were sent from different processors can arrive in the other order.
        let each = senders.iter().collect::<std::collections::HashSet<_>>();
        for part in senders.windows(9) {
            let least = each.iter().map(|sender| part.iter().filter(|other| *other == *sender).count()).min();
            assert!(each.len() == 3 && least >= Some(2), "{part:?}");
        }
        // The last is due 99 distances after the first: sooner than that they were not at the rate.
        assert!(tally.elapsed >= Duration::from_micros(99 * 500));
    }

    #[test]
    fn a_run_begins_where_the_one_before_it_ended() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let server = socket.local_addr().expect("bound");
        let behind = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            let (len, sender) = socket.recv_from(&mut buffer).expect("loopback");
            let first = buffer[..len].to_vec();
            buffer[2] |= 0x80;
            socket.send_to(&buffer[..len], sender).expect("loopback");
            first
        });
        let packets = packets();
        let until = Until::Elapsed(Duration::from_millis(1));
        let timeout = Duration::from_millis(1);
        let plan = Plan {
            clients: 1,
            outstanding: 1,
            shuffle: None,
            begin_at: 107,
            until,
            timeout,
            ..plan(server, Expect::Echo)
        };
        run(&plan, &packets).expect("runs");
        let first = behind.join().expect("ended well");
        assert_eq!(first[2..], packets.packet(7)[2..]);
    }

    #[test]
    fn a_lost_query_is_in_flight_until_it_is_given_up() {
        let behaviour = stub::Behaviour { loss_percent: 50.0, ..stub::Behaviour::default() };
        let server = in_background(move |socket| drop(stub::serve(&socket, &behaviour)));
        let tally = run(&plan(server, Expect::AS_ASKED), &packets()).expect("runs");
        let lost = Duration::from_millis(200) * tally.lost as u32;
        assert!(tally.lost > 0 && tally.in_flight >= lost, "{:?} for {}", tally.in_flight, tally.lost);
        let answered = tally.latency.mean_us() * tally.answered as f64 / 1e6;
        assert!(tally.in_flight.as_secs_f64() >= 0.99 * (answered + lost.as_secs_f64()));
        assert!(tally.time_in_system() > Some(Duration::from_secs_f64(tally.latency.mean_us() / 1e6)));
        assert_eq!(Tally::default().time_in_system(), None);
    }

    #[test]
    fn the_slices_add_up_to_the_whole() {
        let behaviour = stub::Behaviour { loss_percent: 33.0, ..stub::Behaviour::default() };
        let server = in_background(move |socket| drop(stub::serve(&socket, &behaviour)));
        let tally = run(&plan(server, Expect::AS_ASKED), &packets()).expect("runs");
        let sum = |of: fn(&Slice) -> u64| tally.slices.iter().map(of).sum::<u64>();
        assert_eq!((sum(|s| s.answered), sum(|s| s.lost)), (tally.answered, tally.lost));
        let longest = tally.slices.iter().map(|slice| slice.latency_max_ns).max().expect("not empty");
        assert!((longest as f64 / 1e3 - tally.latency.max_us()).abs() < 1e-9);
    }
}
