//! Whatever comes in whatever order: each query ends once, and no bound is exceeded.

use std::collections::HashSet;

use rand::{Rng, RngExt};

use super::*;

const LIMITS: PoolLimits = PoolLimits {
    sockets: 4,
    port_queries: 20,
    port_life: Span::from_ms(700),
    draw_queries: 2,
    queries: 50,
    server_queries: 8,
    links: 4,
    udp_timeout: Span::from_ms(200),
    tcp_timeout: Span::from_ms(400),
    link_idle: Span::from_ms(300),
};

struct World {
    bench: Bench,
    rng: StdRng,
    open: HashMap<u32, QueryKey>,
    /// All that was sent, and where to.
    sent: Vec<Sent>,
    heard: usize,
    unanswered: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            bench: Bench::new(LIMITS),
            rng: StdRng::seed_from_u64(seed),
            open: HashMap::new(),
            sent: Vec::new(),
            heard: 0,
            unanswered: 0,
        }
    }

    fn ask(&mut self) {
        let (number, over_tcp) = (self.rng.random_range(1..20), self.rng.random_bool(0.1));
        let key = self.bench.ask_with(number, |query| query.over_tcp = over_tcp);
        self.open.insert(self.bench.tag, key);
    }

    /// Has somebody say something about one of the last queries, true or not.
    fn reply(&mut self) {
        let recent = self.sent.len().saturating_sub(60);
        let Some(at) = (recent < self.sent.len()).then(|| self.rng.random_range(recent..self.sent.len()))
        else {
            return;
        };
        let sent = Sent { bytes: self.sent[at].bytes.clone(), ..self.sent[at] };
        let query = Query::parse(&sent.bytes).expect("we send queries");
        let cookie = query.edns.and_then(|edns| edns.option(OptionCode::COOKIE));
        let client = cookie.and_then(|cookie| cookie.get(..8)).unwrap_or(&[0; 8]);
        let both = [client, &[self.rng.next_u32() as u8; 16]].concat();
        let flags = if self.rng.random_bool(0.1) { Flags::TC } else { Flags::AA };
        let rcodes = [Rcode::NOERROR, Rcode::NXDOMAIN, Rcode::FORMERR, Rcode::BADCOOKIE, Rcode::SERVFAIL];
        let rcode = rcodes[self.rng.random_range(0..rcodes.len())];
        let cookie = self.rng.random_bool(0.5).then_some(&both[..]);
        let mut reply = reply_to(&sent.bytes, &Says { rcode, flags, edns: self.rng.random(), cookie });
        match self.rng.random_range(0..8) {
            0 => {
                let at = self.rng.random_range(0..reply.len());
                reply[at] ^= 1 << self.rng.random_range(0..8);
            }
            1 => reply.truncate(self.rng.random_range(0..reply.len())),
            2 => reply[12..29].make_ascii_lowercase(),
            _ => (),
        }
        if let Some((tag, ..)) = self.bench.hear(&sent, &reply) {
            self.heard += 1;
            assert!(self.open.remove(&tag).is_some(), "{tag} has ended already");
        }
    }

    fn disturb(&mut self) {
        let links: Vec<u32> = self.bench.authorities.network().links.keys().copied().collect();
        if let Some(&link) = links.first() {
            let (link, now) = (PoolLinkKey(link), self.bench.now);
            match self.rng.random_range(0..4) {
                0 => self.bench.authorities.link_closed(link, now),
                1 => self.bench.authorities.link_lacked(link, self.bench.now),
                2 => self.bench.authorities.link_stalled(link, self.bench.now),
                _ => self.bench.authorities.link_opened(link, now),
            }
        }
        if let Some(&Sent { over: Over::Udp(socket), to, ref bytes }) = self.sent.last() {
            let id = u16::from_be_bytes([bytes[0], bytes[1]]);
            let unsent = Unsent { socket, to, id, is_ours: self.rng.random() };
            self.bench.authorities.network_mut().unsent.push(unsent);
            if self.rng.random_bool(0.1) {
                self.bench.authorities.socket_failed(socket);
            }
        }
        self.settle();
        let first = self.open.keys().next().copied();
        if let Some(key) = first.and_then(|tag| self.open.remove(&tag)) {
            self.bench.authorities.cancel(key);
        }
    }

    /// Takes note of what was sent and what has ended.
    fn settle(&mut self) {
        if self.rng.random_bool(0.5) {
            self.bench.authorities.flush();
        }
        self.sent.extend(self.bench.authorities.network_mut().sent.drain(..));
        for (tag, _) in self.bench.unanswered() {
            self.unanswered += 1;
            assert!(self.open.remove(&tag).is_some(), "{tag} has ended already");
        }
        let authorities = &self.bench.authorities;
        assert_eq!(authorities.query_count(), self.open.len());
        assert!(authorities.query_count() <= 50 && authorities.link_count() <= 4);
        assert_eq!(authorities.link_count(), authorities.network().links.len());
        assert_eq!(authorities.socket_count(), authorities.network().sockets.len());
    }
}

#[test]
fn each_query_ends_once_whatever_comes() {
    let (mut heard, mut unanswered) = (0, 0);
    for seed in 0..40 {
        let mut world = World::new(seed);
        for _ in 0..1500 {
            match world.rng.random_range(0..100) {
                0..40 => world.ask(),
                40..85 => world.reply(),
                85..88 => world.disturb(),
                _ => {
                    let ms = world.rng.random_range(0..60);
                    world.bench.pass(ms);
                }
            }
            world.settle();
        }
        let ids: HashSet<(u16, SocketAddr)> = world.sent.iter().map(|sent| (sent.id(), sent.to)).collect();
        assert!(ids.len() > world.sent.len() * 9 / 10, "IDs are random");
        for _ in 0..50 {
            world.bench.pass(100);
            world.settle();
        }
        let authorities = &world.bench.authorities;
        let left = (world.open.len(), authorities.link_count(), authorities.socket_count());
        assert_eq!(left, (0, 0, 0), "seed {seed}");
        assert_eq!(authorities.next_due(), None, "no deadline is left behind");
        (heard, unanswered) = (heard + world.heard, unanswered + world.unanswered);
    }
    assert!(heard > 1000 && unanswered > 1000, "{heard} {unanswered}: both happen");
}
