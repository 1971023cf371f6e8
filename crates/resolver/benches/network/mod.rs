//! A network that is a function: a root, a domain, and zones below it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use cache::claims::Worker;
use cache::proofs::Proofs;
use cache::rrsets::{RrsetLimits, Rrsets};
use cache::servers::{ServerLimits, Servers};
use rand::SeedableRng;
use rand::rngs::StdRng;
use resolver::{Ask, HeapName, Hint, Resolver, Settings, Tables};
use wire::{Class, Flags, HashKey, Name, NameBuf, Question, Rcode, Rtype, Section, Ttl, Writer};

/// The domain.
pub(crate) const TLD: &str = "test";
const TTL: Ttl = Ttl::new(3600);

/// Reads a name.
pub(crate) fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

/// Writes what the servers of the root, of the domain and of its zones say: the root refers to the
/// domain, the domain to the zone, and the zone has an address.
pub(crate) fn reply(ask: &Ask, room: &mut [u8]) -> usize {
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
/// Where the server of the domain is.
pub(crate) const DOMAIN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Returns a resolver that knows nothing.
pub(crate) fn resolver() -> Resolver {
    let hash_key = HashKey::new([1, 2]);
    let tables = Tables {
        rrsets: Arc::new(Rrsets::new(RrsetLimits::with_octets(64 << 20), hash_key)),
        servers: Arc::new(Servers::new(ServerLimits { lines: 65_536, cookies: 1024 }, hash_key)),
        proofs: Arc::new(Proofs::new(4 << 20, hash_key)),
        failures: Arc::default(),
        rates: Arc::default(),
        claims: Arc::default(),
        worker: Worker(0),
    };
    let hint = Hint { name: HeapName::new(Name::ROOT), addresses: vec![ROOT] };
    let mut settings = Settings { hints: vec![hint], priming: false, ..Settings::default() };
    settings.addresses.private = true;
    Resolver::new(settings, tables, StdRng::seed_from_u64(1))
}
