//! Queries to authoritative servers, over a network that remembers what was sent.

mod bounds;
mod capabilities;
mod encryption;
mod forged;
mod links;
mod plain;
mod random;

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use authorities::{
    Arrival, Authorities, AuthorityQuery, Carrier, CookieSecret, Counters, Encrypt, Event, Family,
    PoolLimits, PoolLinkKey, PoolNetwork, PoolSocketKey, QueryKey, Unanswered, Unsent,
};
use cache::NowMs;
use cache::servers::{Edns, Facts, LetterCase, ServerLimits, Servers};
use rand::SeedableRng;
use rand::rngs::StdRng;
use timers::{Moment, Span};
use wire::{ClientSubnet, Flags, HashKey, NameBuf, OptionCode, Query, Rcode, Rtype, Writer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Udp(PoolSocketKey),
    Tcp(PoolLinkKey),
}

struct Sent {
    over: Over,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Sent {
    fn id(&self) -> u16 {
        u16::from_be_bytes([self.bytes[0], self.bytes[1]])
    }

    fn has_edns(&self) -> bool {
        Query::parse(&self.bytes).expect("we send queries").edns.is_some()
    }

    /// Returns the data of the COOKIE option.
    fn cookie(&self) -> Vec<u8> {
        let query = Query::parse(&self.bytes).expect("we send queries");
        query.edns.and_then(|edns| edns.option(OptionCode::COOKIE)).expect("a cookie").to_vec()
    }
}

/// A network that remembers what was sent and sends nothing.
#[derive(Default)]
struct Wire {
    sockets: HashMap<u32, Family>,
    /// How many were ever opened.
    opened: usize,
    links: HashMap<u32, (SocketAddr, Carrier)>,
    sent: VecDeque<Sent>,
    /// What the next flush fails with.
    unsent: Vec<Unsent>,
    /// Whether no further socket can be opened.
    is_short: bool,
}

impl PoolNetwork for Wire {
    fn open(&mut self, key: PoolSocketKey, family: Family) -> io::Result<()> {
        if self.is_short {
            return Err(ErrorKind::Other.into());
        }
        self.opened += 1;
        assert!(self.sockets.insert(key.0, family).is_none(), "a key has one socket at a time");
        Ok(())
    }

    fn close(&mut self, key: PoolSocketKey) {
        self.sockets.remove(&key.0).expect("it was open");
    }

    fn queue(&mut self, key: PoolSocketKey, to: SocketAddr, packet: &[u8]) {
        assert_eq!(self.sockets[&key.0], Family::of(to.ip()));
        self.sent.push_back(Sent { over: Over::Udp(key), to, bytes: packet.to_vec() });
    }

    fn flush(&mut self, unsent: &mut Vec<Unsent>) {
        unsent.append(&mut self.unsent);
    }

    fn connect(&mut self, key: PoolLinkKey, to: SocketAddr, carrier: Carrier) {
        assert!(self.links.insert(key.0, (to, carrier)).is_none(), "a key has one connection at a time");
    }

    fn write(&mut self, key: PoolLinkKey, packet: &[u8]) {
        let (to, _) = self.links[&key.0];
        self.sent.push_back(Sent { over: Over::Tcp(key), to, bytes: packet.to_vec() });
    }

    fn disconnect(&mut self, key: PoolLinkKey) {
        self.links.remove(&key.0);
    }
}

struct Bench {
    authorities: Authorities<Wire>,
    servers: Arc<Servers>,
    counters: Arc<Counters>,
    now: Moment,
    tag: u32,
}

/// What a reply has besides the question.
struct Says<'c> {
    rcode: Rcode,
    flags: Flags,
    /// Whether it has an OPT; a cookie takes one.
    edns: bool,
    cookie: Option<&'c [u8]>,
}

const OK: Says<'static> = Says { rcode: Rcode::NOERROR, flags: Flags::AA, edns: false, cookie: None };

/// Writes a reply to a query.
fn reply_to(query: &[u8], says: &Says<'_>) -> Vec<u8> {
    let query = Query::parse(query).expect("we send queries");
    let mut out = vec![0; 1232];
    let flags = Flags(says.flags.0 | Flags::QR.0).with_rcode(Rcode(says.rcode.0 & 0xf));
    let mut writer = Writer::new(&mut out, 1232, query.header.id, flags);
    writer.question(&query.question).expect("it fits");
    if says.edns || says.cookie.is_some() || says.rcode.0 > 15 {
        writer
            .opt(1232, says.rcode, false, |writer| match says.cookie {
                Some(cookie) => writer.option(OptionCode::COOKIE, cookie),
                None => Ok(()),
            })
            .expect("it fits");
    }
    let len = writer.finish();
    out.truncate(len);
    out
}

fn address(number: u32) -> SocketAddr {
    let [_, second, third, last] = number.to_be_bytes();
    SocketAddr::from(([10, second, third, last], 53))
}

fn www() -> NameBuf {
    NameBuf::from_text("www.example.org").expect("a name")
}

impl Bench {
    fn new(limits: PoolLimits) -> Self {
        let (counters, now) = (Arc::new(Counters::default()), Moment(1_000_000));
        let servers = Arc::new(Servers::new(ServerLimits { lines: 64, cookies: 64 }, HashKey::new([1, 2])));
        let mut rng = StdRng::seed_from_u64(3);
        let secret = CookieSecret::draw(&mut rng);
        let mut authorities =
            Authorities::new(Wire::default(), Arc::clone(&servers), secret, rng, Arc::clone(&counters), now);
        authorities.adopt(limits);
        Self { authorities, servers, counters, now, tag: 0 }
    }

    /// Asks with what is known of the server; tags count up from one.
    fn ask_with(&mut self, number: u32, change: impl FnOnce(&mut AuthorityQuery<'_>)) -> QueryKey {
        let (qname, facts) = (www(), self.facts(number));
        let mut query = AuthorityQuery {
            address: address(number),
            qname: qname.as_name(),
            qtype: Rtype::A,
            over_tcp: false,
            udp_octets: 1232,
            edns: facts.map_or(Edns::Unknown, |facts| facts.edns),
            case: facts.map_or(LetterCase::Unknown, |facts| facts.case),
            dnssec_ok: true,
            recursion_desired: false,
            checking_disabled: false,
            cookies: true,
            encrypt: Encrypt::default(),
            subnet: None,
        };
        change(&mut query);
        self.tag += 1;
        self.authorities.ask(&query, self.tag, self.now)
    }

    fn ask(&mut self, number: u32) -> QueryKey {
        self.ask_with(number, |_| ())
    }

    fn facts(&self, number: u32) -> Option<Facts> {
        self.servers.look(address(number), NowMs(self.now.0 / 1000))
    }

    fn sent(&mut self) -> Sent {
        self.authorities.network_mut().sent.pop_front().expect("something was sent")
    }

    fn has_sent(&mut self) -> bool {
        !self.authorities.network_mut().sent.is_empty()
    }

    /// Hands in a message; returns the tag and the rcode, and how it came, if it is a reply.
    fn hear(&mut self, sent: &Sent, bytes: &[u8]) -> Option<(u32, Rcode, Arrival)> {
        let heard = match sent.over {
            Over::Udp(key) => self.authorities.datagram(key, sent.to, bytes, false, self.now),
            Over::Tcp(key) => self.authorities.message(key, bytes, self.now),
        };
        heard.map(|heard| (heard.tag, heard.message.rcode(), heard.arrival))
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now + Span::from_ms(ms);
        self.authorities.due(self.now);
        self.authorities.flush();
    }

    /// Returns what went unanswered.
    fn unanswered(&mut self) -> Vec<(u32, Unanswered)> {
        std::iter::from_fn(|| self.authorities.next_event())
            .map(|Event::Unanswered { tag, why }| (tag, why))
            .collect()
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new(PoolLimits::default())
    }
}
