//! What a name costs of which nothing is known but the servers of its top-level domain.
//!
//! It takes two queries, a referral with glue and an answer, in a network that is a function. The
//! time is that of this thread, without what the network takes to write the replies. Names come one
//! after the other, so nothing is shared; the tables are as full as they get.

#![expect(clippy::print_stdout, reason = "what was measured is what it is for")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::claims::Worker;
use cache::proofs::Proofs;
use cache::rrsets::{RrsetLimits, Rrsets};
use cache::servers::{ServerLimits, Servers};
use rand::SeedableRng;
use rand::rngs::StdRng;
use resolver::{Arrival, Ask, Effect, HeapName, Hint, Moment, Resolver, Settings, Tables, Waiter};
use wire::{Class, Flags, HashKey, Message, Name, NameBuf, Question, Rcode, Rtype, Section, Ttl, Writer};

/// Names of a round.
const NAMES: u32 = 20_000;
const ROUNDS: usize = 11;
const TLD: &str = "test";
const TTL: Ttl = Ttl::new(3600);

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

/// Writes what the servers of the root, of the domain and of its zones say: the root refers to the
/// domain, the domain to the zone, and the zone has an address.
fn reply(ask: &Ask, room: &mut [u8]) -> usize {
    let qname = ask.qname.as_name();
    let labels = qname.label_count();
    let (is_root, is_domain) = (ask.address.ip() == ROOT, ask.address.ip() == DOMAIN);
    let limit = room.len();
    let flags = Flags(0).with(Flags::QR).with(if is_root || is_domain { Flags(0) } else { Flags::AA });
    let mut writer = Writer::new(room, limit, 1, flags.with_rcode(Rcode::NOERROR));
    let question = Question { qname, qtype: ask.qtype, qclass: Class::IN };
    writer.question(&question).expect("room");
    let class = Class::IN;
    if is_root || is_domain {
        let cut = qname.suffix(labels.min(if is_root { 1 } else { 2 }));
        let server = NameBuf::from_text(&format!("ns1.{cut}")).expect("a name");
        let data = server.as_name().as_bytes();
        let sum = data.iter().fold(0_u32, |sum, &octet| sum.wrapping_mul(31).wrapping_add(octet.into()));
        let [_, _, high, low] = sum.to_be_bytes();
        let address = if is_root { [10, 0, 0, 2] } else { [10, 1, high, low] };
        let ns = writer.record(Section::Authority, cut, Rtype::NS, class, TTL, |writer| writer.bytes(data));
        ns.expect("room");
        let owner = server.as_name();
        let glue = |writer: &mut Writer<'_>| writer.bytes(&address);
        writer.record(Section::Additional, owner, Rtype::A, class, TTL, glue).expect("room");
    } else {
        let address = |writer: &mut Writer<'_>| writer.bytes(&[192, 0, 2, 1]);
        writer.record(Section::Answer, qname, Rtype::A, class, TTL, address).expect("room");
    }
    writer.finish()
}

const ROOT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const DOMAIN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Returns a resolver that knows nothing.
fn resolver() -> Resolver {
    let hash_key = HashKey::new([1, 2]);
    let tables = Tables {
        rrsets: Arc::new(Rrsets::new(RrsetLimits::with_octets(64 << 20), hash_key)),
        servers: Arc::new(Servers::new(ServerLimits { lines: 65_536, cookies: 1024 }, hash_key)),
        proofs: Arc::new(Proofs::new(4 << 20, hash_key)),
        claims: Arc::default(),
        worker: Worker(0),
    };
    let hint = Hint { name: HeapName::new(Name::ROOT), addresses: vec![ROOT] };
    let mut settings = Settings { hints: vec![hint], priming: false, ..Settings::default() };
    settings.addresses.private = true;
    Resolver::new(settings, tables, StdRng::seed_from_u64(1))
}

/// Resolves a name to its end; returns the queries that it took and what the network took.
fn resolve(resolver: &mut Resolver, qname: Name<'_>, clock: &mut Moment) -> (u32, Duration) {
    let question = Question { qname, qtype: Rtype::A, qclass: Class::IN };
    resolver.want(&question, Waiter(1), *clock);
    let mut room = [0; 512];
    let (mut queries, mut network) = (0, Duration::ZERO);
    while let Some(effect) = resolver.next_effect() {
        match effect {
            Effect::Ask(ask) => {
                let began = Instant::now();
                let len = reply(&ask, &mut room);
                let message = Message::parse(room.get(..len).expect("its length")).expect("a message");
                network += began.elapsed();
                queries += 1;
                *clock = clock.after_ms(1);
                resolver.heard(ask.key, &message, Arrival::Udp, *clock);
            }
            Effect::Done { resolution, .. } => {
                assert!(resolution.failure.is_none(), "{:?}", resolution.failure);
                black_box(resolution);
            }
        }
    }
    (queries, network)
}

fn main() {
    let mut costs = Vec::new();
    for round in 0..ROUNDS {
        let mut resolver = resolver();
        let mut clock = Moment::default().after_ms(1000);
        let names: Vec<NameBuf> =
            (0..NAMES).map(|number| name(&format!("www.z{number}r{round}.{TLD}"))).collect();
        resolve(&mut resolver, name(&format!("www.first.{TLD}")).as_name(), &mut clock);
        let (mut queries, mut network) = (0, Duration::ZERO);
        let began = Instant::now();
        for name in &names {
            let (asked, took) = resolve(&mut resolver, name.as_name(), &mut clock);
            queries += asked;
            network += took;
        }
        costs.push((began.elapsed().saturating_sub(network) / NAMES, queries));
    }
    costs.sort_unstable();
    let (each, queries) = costs[ROUNDS / 2];
    println!(
        "{:.2} us a cold name, {:.2} queries",
        each.as_secs_f64() * 1e6,
        f64::from(queries) / f64::from(NAMES)
    );
}
