//! One server is asked one question, over a network that remembers what was sent: replies, silence,
//! refusals, and what is forgotten about servers.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use engine::Failure;
use exchange::network::{LinkKey, Network, Remote, SocketKey};
use exchange::{Ask, Counters, Event, Exchange, RequestKey, SERVERS_MAX, SendError, Terms, question};
use identity::Transport;
use plan::upstreams::{Protocol, Way};
use rand::SeedableRng;
use rand::rngs::StdRng;
use timers::{Moment, Span};
use wire::{Flags, Message, NameBuf, Query, Rcode, Rtype, Writer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Udp(SocketKey),
    Tcp(LinkKey),
}

struct Sent {
    over: Over,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// A network that remembers what was sent and sends nothing.
#[derive(Default)]
struct Wire {
    sockets: HashMap<u32, SocketAddr>,
    links: HashMap<u32, SocketAddr>,
    sent: VecDeque<Sent>,
    is_unreachable: bool,
}

impl Network for Wire {
    fn open(&mut self, key: SocketKey, remote: &Remote) -> io::Result<()> {
        if self.is_unreachable {
            return Err(ErrorKind::NetworkUnreachable.into());
        }
        self.sockets.insert(key.0, remote.address);
        Ok(())
    }

    fn close(&mut self, key: SocketKey) {
        self.sockets.remove(&key.0);
    }

    fn queue(&mut self, key: SocketKey, packet: &[u8]) {
        let to = self.sockets[&key.0];
        self.sent.push_back(Sent { over: Over::Udp(key), to, bytes: packet.to_vec() });
    }

    fn flush(&mut self, _: &mut Vec<(SocketKey, ErrorKind)>) {}

    fn reaches(&self, _: IpAddr) -> bool {
        true
    }

    fn connect(&mut self, key: LinkKey, remote: &Remote) {
        self.links.insert(key.0, remote.address);
    }

    fn write(&mut self, key: LinkKey, packet: &[u8]) {
        let to = self.links[&key.0];
        self.sent.push_back(Sent { over: Over::Tcp(key), to, bytes: packet.to_vec() });
    }

    fn disconnect(&mut self, key: LinkKey) {
        self.links.remove(&key.0);
    }
}

struct Bench {
    exchange: Exchange<Wire>,
    counters: Arc<Counters>,
    now: Moment,
}

fn remote(number: u32) -> Remote {
    let [_, second, third, last] = number.to_be_bytes();
    Remote { address: SocketAddr::from(([10, second, third, last], 53)), transport: Arc::default() }
}

fn www() -> NameBuf {
    let mut name = NameBuf::root();
    for label in ["www", "example", "org"] {
        name.push_label(label.as_bytes()).expect("a label");
    }
    name
}

fn ask(remote: Remote) -> Ask {
    let terms = Terms { recursion_desired: false, udp_size: 1232, case_randomisation: true };
    Ask { remote, query: question(www(), Rtype::A), terms, tag: 7 }
}

/// Writes a reply with this rcode and these flags besides.
fn reply_to(query: &[u8], rcode: Rcode, more: Flags) -> Vec<u8> {
    let query = Query::parse(query).expect("we send queries");
    let mut out = vec![0; 512];
    let flags = Flags(more.0 | Flags::QR.0).with_rcode(rcode);
    let mut writer = Writer::new(&mut out, 512, query.header.id, flags);
    writer.question(&query.question).expect("fits");
    let len = writer.finish();
    out.truncate(len);
    out
}

impl Bench {
    fn new() -> Self {
        let (counters, now) = (Arc::new(Counters::default()), Moment(1_000_000));
        let rng = StdRng::seed_from_u64(3);
        Self { exchange: Exchange::new(Wire::default(), rng, Arc::clone(&counters), now), counters, now }
    }

    fn ask(&mut self, number: u32) -> RequestKey {
        self.exchange.ask(ask(remote(number)), self.now).expect("it leaves")
    }

    fn sent(&mut self) -> Sent {
        self.exchange.network_mut().sent.pop_front().expect("something was sent")
    }

    /// Hands in a message; returns the rcode of the reply if it is one, and who asked.
    fn hear(&mut self, over: Over, bytes: &[u8]) -> Option<(u32, RequestKey, Rcode)> {
        let heard = match over {
            Over::Udp(key) => self.exchange.datagram(key, bytes, false, self.now),
            Over::Tcp(key) => self.exchange.message(key, bytes, self.now),
        };
        heard.map(|heard| (heard.tag, heard.request, heard.message.rcode()))
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now + Span::from_ms(ms);
        self.exchange.due(self.now);
        while self.exchange.flush(self.now) {}
    }

    /// Returns how the only request failed.
    fn failure(&mut self) -> Option<(u32, RequestKey, Failure)> {
        std::iter::from_fn(|| self.exchange.next_event()).find_map(|event| match event {
            Event::Unanswered { tag, request, failure } => Some((tag, request, failure)),
            _ => None,
        })
    }
}

#[test]
fn a_reply_ends_the_request() {
    let mut bench = Bench::new();
    let request = bench.ask(1);
    let sent = bench.sent();
    assert_eq!(sent.to, remote(1).address);
    let query = Query::parse(&sent.bytes).expect("well formed");
    assert!(!query.header.flags.has(Flags::RD), "authoritative servers are not asked to recurse");
    bench.now = bench.now + Span::from_ms(12);
    let reply = reply_to(&sent.bytes, Rcode::NXDOMAIN, Flags::AA);
    assert_eq!(bench.hear(sent.over, &reply), Some((7, request, Rcode::NXDOMAIN)));
    assert_eq!(bench.hear(sent.over, &reply), None, "once");
    bench.pass(10_000);
    assert_eq!((bench.failure(), bench.exchange.request_count()), (None, 0));
    let server = bench.exchange.find(&remote(1)).expect("it is remembered");
    let server = bench.exchange.server(server).expect("it is remembered");
    assert_eq!(server.rtt.smoothed(), Some(Span::from_ms(12)));
}

#[test]
fn a_truncated_reply_is_asked_for_over_tcp() {
    let mut bench = Bench::new();
    let request = bench.ask(1);
    let sent = bench.sent();
    assert_eq!(bench.hear(sent.over, &reply_to(&sent.bytes, Rcode::NOERROR, Flags::TC)), None);
    let over_tcp = bench.sent();
    let Over::Tcp(link) = over_tcp.over else { panic!("sent over a datagram") };
    bench.exchange.link_opened(link, bench.now);
    let reply = reply_to(&over_tcp.bytes, Rcode::NOERROR, Flags::AA);
    assert_eq!(bench.hear(over_tcp.over, &reply), Some((7, request, Rcode::NOERROR)));
}

#[test]
fn a_server_without_edns_is_asked_without_and_remembered() {
    let mut bench = Bench::new();
    let request = bench.ask(1);
    let sent = bench.sent();
    assert_eq!(bench.hear(sent.over, &reply_to(&sent.bytes, Rcode::FORMERR, Flags::default())), None);
    let plain = bench.sent();
    assert_eq!(Query::parse(&plain.bytes).expect("well formed").edns, None);
    let reply = reply_to(&plain.bytes, Rcode::NOERROR, Flags::AA);
    let Over::Udp(key) = plain.over else { panic!("a datagram") };
    let heard = bench.exchange.datagram(key, &reply, false, bench.now).expect("the reply");
    assert_eq!(heard.request, request);
    bench.exchange.was_usable(&heard, bench.now);
    bench.ask(1);
    assert_eq!(Query::parse(&bench.sent().bytes).expect("well formed").edns, None);
}

#[test]
fn guesses_move_the_question_to_tcp_and_are_not_believed() {
    let mut bench = Bench::new();
    let request = bench.ask(1);
    let sent = bench.sent();
    let mut guess = reply_to(&sent.bytes, Rcode::NOERROR, Flags::AA);
    for number in 1..=4 {
        guess[1] = sent.bytes[1] ^ number;
        assert_eq!(bench.hear(sent.over, &guess), None);
    }
    guess[1] = sent.bytes[1];
    assert_eq!(bench.hear(sent.over, &guess), None, "too late for datagrams");
    assert_eq!(bench.counters.spoofs_suspected.read(), 1);
    let over_tcp = bench.sent();
    let Over::Tcp(link) = over_tcp.over else { panic!("sent over a datagram") };
    bench.exchange.link_opened(link, bench.now);
    let reply = reply_to(&over_tcp.bytes, Rcode::NOERROR, Flags::AA);
    assert_eq!(bench.hear(over_tcp.over, &reply), Some((7, request, Rcode::NOERROR)));
}

#[test]
fn silence_and_refusals_are_told() {
    let mut bench = Bench::new();
    let request = bench.ask(1);
    bench.pass(299);
    assert_eq!(bench.failure(), None, "an unknown server has 300 ms");
    bench.pass(2);
    assert_eq!(bench.failure(), Some((7, request, Failure::Timeout)));
    bench.sent();

    let request = bench.ask(2);
    let Over::Udp(key) = bench.sent().over else { panic!("a datagram") };
    bench.exchange.socket_failed(key, ErrorKind::ConnectionRefused, bench.now);
    assert_eq!(bench.failure(), Some((7, request, Failure::Network)));

    bench.exchange.network_mut().is_unreachable = true;
    assert_eq!(bench.exchange.ask(ask(remote(3)), bench.now).err(), Some(SendError::Network));
    assert_eq!(bench.exchange.request_count(), 0);
}

#[test]
fn one_address_over_two_transports_is_two_servers() {
    let mut bench = Bench::new();
    bench.ask(1);
    let way = Way { protocol: Protocol::Tcp, ..Way::default() };
    let over_tcp = Remote { transport: Arc::new(Transport::plain(way)), ..remote(1) };
    bench.exchange.ask(ask(over_tcp), bench.now).expect("it leaves");
    assert_eq!(bench.exchange.servers().count(), 2);
}

#[test]
fn as_many_servers_are_remembered_as_there_is_room_for_and_idle_ones_are_evicted() {
    let mut bench = Bench::new();
    let held = bench.exchange.hold(remote(0xff_ffff), bench.now);
    let busy = bench.ask(0);
    let busy_sent = bench.sent();
    for number in 1..3 * SERVERS_MAX as u32 {
        bench.ask(number);
        let sent = bench.sent();
        let reply = reply_to(&sent.bytes, Rcode::NOERROR, Flags::AA);
        assert!(bench.hear(sent.over, &reply).is_some());
        while bench.exchange.flush(bench.now) {}
        assert!(bench.exchange.servers().count() <= SERVERS_MAX);
        assert!(bench.exchange.socket_count() <= SERVERS_MAX + 1);
    }
    assert!(bench.exchange.find(&remote(1)).is_none(), "one of the first gave way");
    assert!(bench.exchange.find(&remote(3 * SERVERS_MAX as u32 - 1)).is_some());
    assert_eq!(bench.exchange.find(&remote(0xff_ffff)), Some(held), "one that is held stays");
    let reply = reply_to(&busy_sent.bytes, Rcode::NOERROR, Flags::AA);
    let heard = bench.hear(busy_sent.over, &reply);
    assert_eq!(heard, Some((7, busy, Rcode::NOERROR)), "one that has something outstanding stays");
}

#[test]
fn a_reply_is_read_where_it_stands() {
    let mut bench = Bench::new();
    bench.ask(1);
    let sent = bench.sent();
    let reply = reply_to(&sent.bytes, Rcode::NOERROR, Flags::AA);
    let Over::Udp(key) = sent.over else { panic!("a datagram") };
    let heard = bench.exchange.datagram(key, &reply, false, bench.now).expect("the reply");
    assert_eq!(heard.message.as_bytes().as_ptr(), reply.as_ptr());
    assert!(Message::parse(&reply).is_ok());
}
