//! Serves a simulated internet: every server of it, over UDP and TCP, from one process.
//!
//! Needs a network of its own (see [`namespace`]): all addresses of the servers lead here, and each
//! reply leaves from the address that was asked. What the servers say is the test kit's
//! ([`testkit::world`]); how long they take and what is lost on the way is decided here.

pub mod namespace;
mod wheel;

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use testkit::world::{Carrier, HOSTS, KINDS, Manner, World, Zone, noise};
use wire::{Class, Flags, Query, Rtype, Section, Ttl, Writer};

use self::wheel::Wheel;
use crate::queries::Dice;
use crate::sys::{self, Batch, Poller, Sender};

/// Datagrams per system call.
const BATCH: usize = 64;
/// Octets of a datagram buffer: larger than any query, and than any reply over UDP.
const DATAGRAM_OCTETS: usize = 2048;
/// Messages that are no reply before one that is.
const STRAYS: usize = 3;
/// Time between two octets of a reply that drips.
const DRIP: Duration = Duration::from_millis(500);
/// Octets of the largest message.
const MESSAGE_OCTETS: usize = 65_535;
/// Octets of socket buffer asked for.
const SOCKET_OCTETS: i32 = 8 << 20;
/// Replies kept back at most while their delay runs; more are lost.
const DELAYED_MAX: usize = 1 << 18;
/// Connections at most; more are closed at once.
const CONNECTIONS_MAX: usize = 256;
/// How long a connection may be quiet.
const QUIET_MAX: Duration = Duration::from_secs(20);
/// How often free ports are looked for.
const BINDS_MAX: usize = 32;
/// How long is waited for queries when no reply is kept back.
const PATIENCE: Duration = Duration::from_secs(1);
/// The name (class CH, type TXT) whose answer says what was asked so far, in the order of
/// [`KINDS`]. `count.stub`, `loss.PPM.set.stub` and `delay.MS.set.stub` are obeyed as by a stub.
pub const KINDS_NAME: &str = "kinds.stub";

/// The way between resolvers and servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Of a million datagrams, how many are lost, those of either direction together.
    pub loss_ppm: u32,
    /// Whether everything over IPv6 is lost.
    pub loses_ipv6: bool,
}

/// An internet that is served.
#[derive(Debug)]
pub struct Service {
    world: World,
    loses_ipv6: bool,
    loss_ppm: AtomicU32,
    more_delay_ms: AtomicU32,
    connections: AtomicUsize,
}

/// Where an internet is served: a socket of each kind for each family.
#[derive(Debug)]
pub struct Sockets {
    datagrams: Vec<UdpSocket>,
    streams: Vec<TcpListener>,
}

impl Sockets {
    /// Binds `port` at all addresses of both families.
    pub fn bind(port: u16) -> io::Result<Self> {
        let addresses = [
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        ];
        let (mut datagrams, mut streams) = (Vec::new(), Vec::new());
        // All have the port that the first was given.
        let mut given = port;
        for mut address in addresses {
            address.set_port(given);
            let bound = |address: SocketAddr, kind: Type, protocol: Protocol| -> io::Result<Socket> {
                let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
                if address.is_ipv6() {
                    socket.set_only_v6(true)?;
                }
                if kind == Type::STREAM {
                    socket.set_reuse_address(true)?;
                }
                socket.bind(&SockAddr::from(address))?;
                Ok(socket)
            };
            let socket: UdpSocket = bound(address, Type::DGRAM, Protocol::UDP)?.into();
            given = socket.local_addr()?.port();
            address.set_port(given);
            sys::set_buffers(&socket, SOCKET_OCTETS)?;
            sys::tell_destinations(&socket)?;
            datagrams.push(socket);
            let listener = bound(address, Type::STREAM, Protocol::TCP)?;
            listener.listen(CONNECTIONS_MAX as i32)?;
            streams.push(listener.into());
        }
        Ok(Self { datagrams, streams })
    }

    /// Returns the port.
    pub fn port(&self) -> io::Result<u16> {
        let first = self.datagrams.first().ok_or(io::ErrorKind::NotFound)?;
        Ok(first.local_addr()?.port())
    }
}

/// A reply whose time has not come.
struct Delayed {
    /// The number of the socket it leaves by.
    socket: usize,
    to: Sender,
    from: IpAddr,
    bytes: Vec<u8>,
}

impl Service {
    /// Makes a service of an internet.
    pub const fn new(world: World, way: Way) -> Self {
        Self {
            world,
            loses_ipv6: way.loses_ipv6,
            loss_ppm: AtomicU32::new(way.loss_ppm),
            more_delay_ms: AtomicU32::new(0),
            connections: AtomicUsize::new(0),
        }
    }

    /// Starts a service on threads that end with this process, at a free port; returns the port.
    pub fn start(world: World, way: Way) -> io::Result<(Arc<Self>, u16)> {
        // Another socket may have one of the four ports: often, on a machine that runs many tests.
        let found = (1..BINDS_MAX).find_map(|_| Sockets::bind(0).ok());
        let sockets = found.map_or_else(|| Sockets::bind(0), Ok)?;
        let port = sockets.port()?;
        let service = Arc::new(Self::new(world, way));
        let serving = Arc::clone(&service);
        thread::spawn(move || serving.serve(sockets));
        Ok((service, port))
    }

    /// Returns the internet.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Loses so many of a million datagrams from now on.
    pub fn lose(&self, loss_ppm: u32) {
        self.loss_ppm.store(loss_ppm, Ordering::Relaxed);
    }

    /// Has every reply take so many milliseconds more from now on.
    pub fn delay_by(&self, more_delay_ms: u32) {
        self.more_delay_ms.store(more_delay_ms, Ordering::Relaxed);
    }

    /// Serves until an error. Connections are served until this process ends.
    pub fn serve(self: &Arc<Self>, sockets: Sockets) -> io::Result<()> {
        for listener in sockets.streams {
            let service = Arc::clone(self);
            thread::spawn(move || service.serve_streams(&listener));
        }
        self.serve_datagrams(&sockets.datagrams)
    }

    fn serve_datagrams(&self, sockets: &[UdpSocket]) -> io::Result<()> {
        let mut poller = Poller::new(sockets)?;
        let mut input = Batch::new(BATCH, DATAGRAM_OCTETS);
        let mut out = Batch::new(BATCH, DATAGRAM_OCTETS);
        let mut strays = Batch::new(STRAYS, DATAGRAM_OCTETS);
        let mut delayed = Wheel::new(Instant::now());
        let mut due = Vec::new();
        let mut dice = Dice::new(self.world.options().seed);
        loop {
            let patience = delayed.until_next(Instant::now()).unwrap_or(PATIENCE);
            let ready = poller.wait(patience)?;
            for i in 0..ready {
                let at = poller.ready(i);
                let count = input.receive_with_destinations(&sockets[at], BATCH)?;
                let now = Instant::now();
                let mut replies = 0;
                for query in 0..count {
                    let Some(to) = input.destination(query) else { continue };
                    let (len, delay) = self.answer(input.received(query), to, &mut dice, out.buffer(replies));
                    if len == 0 {
                        continue;
                    }
                    if self.world.manner(input.received(query), Carrier::Udp) == Manner::Noisy {
                        let reply = out.buffer(replies).get(..len).unwrap_or(&[]);
                        for (i, octets) in noise(reply).iter().enumerate() {
                            strays.buffer(i)[..octets.len()].copy_from_slice(octets);
                            strays.address_back(i, octets.len(), &input, query);
                            strays.send_from(i, to);
                        }
                        strays.send(&sockets[at], STRAYS)?;
                    }
                    if delay.is_zero() {
                        out.address_back(replies, len, &input, query);
                        out.send_from(replies, to);
                        replies += 1;
                    } else if delayed.len() < DELAYED_MAX {
                        let bytes = out.buffer(replies).get(..len).unwrap_or(&[]).to_vec();
                        delayed.push(
                            now + delay,
                            Delayed { socket: at, to: input.sender(query), from: to, bytes },
                        );
                    }
                }
                out.send(&sockets[at], replies)?;
            }
            delayed.take_due(Instant::now(), &mut due);
            release(sockets, &mut due, &mut out)?;
        }
    }

    /// Answers a datagram; returns the octets of the reply, 0 to stay silent, and how long it is
    /// kept back.
    fn answer(&self, query: &[u8], to: IpAddr, dice: &mut Dice, out: &mut [u8]) -> (usize, Duration) {
        if query.ends_with(&[0, 16, 0, 3]) {
            return (self.obey(query, out), Duration::ZERO);
        }
        let loss_ppm = self.loss_ppm.load(Ordering::Relaxed);
        let is_lost = loss_ppm > 0 && dice.below(1_000_000) < loss_ppm as usize;
        if is_lost || (self.loses_ipv6 && to.is_ipv6()) {
            return (0, Duration::ZERO);
        }
        (self.world.answer(query, to, Carrier::Udp, out), self.delay(to))
    }

    fn delay(&self, to: IpAddr) -> Duration {
        let more = Duration::from_millis(self.more_delay_ms.load(Ordering::Relaxed).into());
        self.world.role(to).map_or(Duration::ZERO, |role| self.world.delay(role)) + more
    }

    /// Does what a query of class CH says, and writes the number or numbers it asks for.
    fn obey(&self, query: &[u8], out: &mut [u8]) -> usize {
        let Ok(query) = Query::parse(query) else { return 0 };
        let labels: Vec<&[u8]> = query.question.qname.labels().collect();
        let counts = self.world.counts.read();
        let texts: Vec<String> = match labels[..] {
            [b"kinds", b"stub"] => counts.iter().map(ToString::to_string).collect(),
            [key, value, b"set", b"stub"] => {
                let value = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u32>().ok());
                match (key, value) {
                    (b"loss", Some(ppm)) => self.lose(ppm),
                    (b"delay", Some(delay)) => self.delay_by(delay),
                    _ => {}
                }
                vec![counts[0].to_string()]
            }
            [b"count", b"stub"] => vec![counts[0].to_string()],
            _ => return 0,
        };
        let mut writer = Writer::new(out, DATAGRAM_OCTETS, query.header.id, Flags::QR);
        let written = writer.question(&query.question).and_then(|()| {
            writer.record(Section::Answer, query.question.qname, Rtype::TXT, Class::CH, Ttl::ZERO, |w| {
                texts.iter().try_for_each(|text| {
                    w.bytes(&[text.len() as u8])?;
                    w.bytes(text.as_bytes())
                })
            })
        });
        if written.is_ok() { writer.finish() } else { 0 }
    }

    fn serve_streams(self: &Arc<Self>, listener: &TcpListener) {
        // One that cannot be taken is its peer's affair, and so is one that breaks.
        for stream in listener.incoming().flatten() {
            if self.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let service = Arc::clone(self);
            thread::spawn(move || {
                let _ = service.converse(stream);
                service.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    /// Answers what one connection brings, one query after the other.
    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(QUIET_MAX))?;
        let to = stream.local_addr()?.ip();
        if self.loses_ipv6 && to.is_ipv6() {
            return Ok(());
        }
        let mut query = vec![0; MESSAGE_OCTETS];
        let mut out = vec![0; 2 + MESSAGE_OCTETS];
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let query = &mut query[..usize::from(u16::from_be_bytes(length))];
            stream.read_exact(query)?;
            let (head, body) = out.split_at_mut(2);
            let len = self.world.answer(query, to, Carrier::Tcp, body);
            thread::sleep(self.delay(to));
            if len > 0 {
                head.copy_from_slice(&(len as u16).to_be_bytes());
                match self.world.manner(query, Carrier::Tcp) {
                    Manner::Dripping => drip(&mut stream, &out[..2 + len])?,
                    Manner::Whole | Manner::Noisy => stream.write_all(&out[..2 + len])?,
                }
            }
        }
    }
}

/// Writes octet by octet, until the other side has enough of it.
fn drip(stream: &mut TcpStream, octets: &[u8]) -> io::Result<()> {
    for octet in octets {
        stream.write_all(&[*octet])?;
        thread::sleep(DRIP);
    }
    Ok(())
}

/// Sends the replies whose time has come.
fn release(sockets: &[UdpSocket], due: &mut Vec<Delayed>, out: &mut Batch) -> io::Result<()> {
    for (at, socket) in sockets.iter().enumerate() {
        let mut count = 0;
        for reply in due.iter().filter(|reply| reply.socket == at) {
            out.buffer(count)[..reply.bytes.len()].copy_from_slice(&reply.bytes);
            out.address_to(count, reply.bytes.len(), &reply.to);
            out.send_from(count, reply.from);
            count += 1;
            if count == BATCH {
                out.send(socket, count)?;
                count = 0;
            }
        }
        out.send(socket, count)?;
    }
    due.clear();
    Ok(())
}

/// Signs what the first questions for some hosts of the first zones need, on all cores.
pub fn sign_in_advance(world: &World, zones: u32, hosts: usize) {
    let hosts = HOSTS.get(..hosts.min(HOSTS.len())).unwrap_or(&[]);
    if hosts.is_empty() || !world.is_signed(Zone::Root) {
        return;
    }
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for worker in 0..workers as u32 {
            scope.spawn(move || {
                (worker..zones).step_by(workers).for_each(|leaf| world.prepare(leaf, hosts));
            });
        }
    });
}

/// Returns what the answer for [`KINDS_NAME`] holds, with the names of the kinds.
pub fn kinds_of(texts: &[String]) -> Option<Vec<(&'static str, u64)>> {
    let numbers: Option<Vec<u64>> = texts.iter().map(|text| text.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == KINDS.len())?;
    Some(KINDS.into_iter().zip(numbers).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;
    use crate::queries::{Ask, Extras, Packets};
    use testkit::world::Options;

    /// Serves a small internet on loopback, whose servers are addresses of 127.0.0.0/8.
    fn served(options: Options, way: Way) -> (Arc<Service>, u16) {
        let options = Options { network: 127, tlds: 3, zones: 30, ..options };
        Service::start(World::new(options), way).expect("loopback has ports")
    }

    fn heard(server: SocketAddr, name: &str) -> Option<Vec<u8>> {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        // A connected socket hears nobody but whom it has asked.
        socket.connect(server).expect("loopback");
        let packets = Packets::new(&[Ask::new(name, Rtype::A)], Extras::default()).expect("encodes");
        socket.send(packets.packet(0)).expect("loopback");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
        let mut reply = vec![0; DATAGRAM_OCTETS];
        let len = socket.recv(&mut reply).ok()?;
        reply.truncate(len);
        Some(reply)
    }

    #[test]
    fn replies_leave_from_the_address_that_was_asked() {
        let (service, port) = served(Options::default(), Way::default());
        for server in [[127, 0, 0, 1], [127, 0, 0, 4], [127, 1, 0, 0], [127, 16, 0, 1]] {
            let reply = heard(SocketAddr::from((server, port)), "www.z000000.t000").expect("a reply");
            assert_eq!(reply[3] & 0xf, 0, "{server:?}");
        }
        assert!(heard(SocketAddr::from(([127, 0, 0, 9], port)), "www.z000000.t000").is_none());
        let control = SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(probe::stub_count(control), Ok(4));
        let kinds = probe::world_kinds(control).expect("an answer");
        assert_eq!((kinds[0], kinds[1]), (("all", 4), ("root", 2)));
        assert_eq!(service.world().counts.read()[0], 4);
    }

    #[test]
    fn what_is_lost_is_chosen_and_can_be_changed() {
        let (_, port) = served(Options::default(), Way { loss_ppm: 1_000_000, loses_ipv6: true });
        let server = SocketAddr::from(([127, 0, 0, 1], port));
        assert!(heard(server, "t000").is_none());
        probe::stub_set(server, "loss", 0).expect("an answer");
        assert!(heard(server, "t000").is_some());
    }

    #[test]
    fn replies_are_kept_back() {
        let (_, port) = served(Options { delay_ms: 40..=40, ..Options::default() }, Way::default());
        let begun = Instant::now();
        assert!(heard(SocketAddr::from(([127, 0, 0, 2], port)), "t000").is_some());
        assert!(begun.elapsed() >= Duration::from_millis(40));
    }

    #[test]
    fn a_connection_answers_query_after_query() {
        let (_, port) = served(Options::default(), Way::default());
        let mut stream = TcpStream::connect(SocketAddr::from(([127, 16, 0, 0], port))).expect("listens");
        let packets =
            Packets::new(&[Ask::new("big.z000000.t000", Rtype::TXT)], Extras::default()).expect("encodes");
        for id in 0..3 {
            let mut query = Vec::new();
            packets.frame(0, id, &mut query);
            stream.write_all(&query).expect("open");
            let mut length = [0; 2];
            stream.read_exact(&mut length).expect("a reply");
            let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut reply).expect("a whole reply");
            assert!(reply.len() > 1_232 && reply.starts_with(&id.to_be_bytes()));
        }
    }
}
