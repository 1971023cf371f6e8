//! Names that must never leave this server, or that it answers by definition.
//!
//! Never overrides what the operator says about a name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{Name, NameBuf, Rtype, Ttl};

use super::local::{Below, LocalBuilder};
use super::put::SOA_BEHIND_PRIMARY;

/// The TTL of what is true by definition (RFC 6303 §3 gives three hours).
pub const SPECIAL_TTL: Ttl = Ttl::new(10_800);

/// Top-level names that do not exist: RFC 6761 (`invalid`, `test`), RFC 7686 (`onion`).
const NEVER: [&str; 3] = ["invalid", "test", "onion"];

/// Locally served zones beyond those counted below: RFC 6303 §4.2–4.6, RFC 8375, RFC 9462 §8.
const ZONES: [&str; 20] = [
    "10.in-addr.arpa",
    "168.192.in-addr.arpa",
    "0.in-addr.arpa",
    "127.in-addr.arpa",
    "254.169.in-addr.arpa",
    "2.0.192.in-addr.arpa",
    "100.51.198.in-addr.arpa",
    "113.0.203.in-addr.arpa",
    "255.255.255.255.in-addr.arpa",
    "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
    "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
    "d.f.ip6.arpa",
    "8.e.f.ip6.arpa",
    "9.e.f.ip6.arpa",
    "a.e.f.ip6.arpa",
    "b.e.f.ip6.arpa",
    "8.b.d.0.1.0.0.2.ip6.arpa",
    "home.arpa",
    "resolver.arpa",
    "service.arpa",
];

/// Adds every special-use name that the operator has not spoken about.
pub fn add(local: &mut LocalBuilder) {
    for zone in NEVER.into_iter().chain(ZONES) {
        empty_zone(local, zone);
    }
    // RFC 1918 §3: 172.16/12. RFC 7793: 100.64/10.
    for octet in 16..32 {
        empty_zone(local, &std::format!("{octet}.172.in-addr.arpa"));
    }
    for octet in 64..128 {
        empty_zone(local, &std::format!("{octet}.100.in-addr.arpa"));
    }
    // RFC 9462 §6.4: designated resolvers are asked for here; we have none to name.
    local.exists(name("_dns.resolver.arpa").as_name());
    let localhost = name("localhost");
    // RFC 6761 §6.3: localhost and everything below it is this machine.
    if !local.knows(localhost.as_name()) {
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            local.address(localhost.as_name(), address, SPECIAL_TTL);
        }
        local.below(localhost.as_name(), Below::Same, SPECIAL_TTL);
        apex(local, localhost.as_name());
    }
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        local.pointer(address, localhost.as_name(), SPECIAL_TTL);
    }
    // RFC 8880 §7.1: the answer without NAT64; nothing below exists.
    let ipv4only = name("ipv4only.arpa");
    if !local.knows(ipv4only.as_name()) {
        for last in [170, 171] {
            local.record(ipv4only.as_name(), Rtype::A, SPECIAL_TTL, &[192, 0, 0, last]);
        }
        local.below(ipv4only.as_name(), Below::Nothing, SPECIAL_TTL);
        for last in [170, 171] {
            local.pointer(IpAddr::V4(Ipv4Addr::new(192, 0, 0, last)), ipv4only.as_name(), SPECIAL_TTL);
        }
    }
}

fn empty_zone(local: &mut LocalBuilder, text: &str) {
    let zone = name(text);
    local.below(zone.as_name(), Below::Nothing, SPECIAL_TTL);
    apex(local, zone.as_name());
}

/// Adds the records at the apex of a zone (RFC 6303 §3): the SOA of its denials, and itself as its
/// name server.
fn apex(local: &mut LocalBuilder, zone: Name<'_>) {
    let mut soa = zone.as_bytes().to_vec();
    soa.extend_from_slice(&SOA_BEHIND_PRIMARY);
    soa.extend_from_slice(&SPECIAL_TTL.seconds().to_be_bytes());
    local.record(zone, Rtype::SOA, SPECIAL_TTL, &soa);
    local.record(zone, Rtype::NS, SPECIAL_TTL, zone.as_bytes());
}

/// Returns one of the names above.
fn name(text: &str) -> NameBuf {
    let mut name = NameBuf::root();
    for label in text.split('.') {
        name.push_label(label.as_bytes()).expect("the names of this module fit");
    }
    name
}

#[cfg(test)]
mod tests {
    use wire::{HashKey, Rcode};

    use super::*;
    use crate::answer::local::{LocalAnswer, LocalData};
    use crate::query::testing;

    const KEY: HashKey = HashKey::new([5, 6]);

    fn compiled() -> LocalData {
        let mut local = LocalBuilder::new();
        local.address(
            testing::name("nas.home.arpa").as_name(),
            IpAddr::V4(Ipv4Addr::new(192, 168, 1, 10)),
            SPECIAL_TTL,
        );
        local.pointer(
            IpAddr::V4(Ipv4Addr::new(192, 168, 1, 10)),
            testing::name("nas.home.arpa").as_name(),
            SPECIAL_TTL,
        );
        add(&mut local);
        local.compile(KEY, SPECIAL_TTL)
    }

    fn check(text: &str, qtype: Rtype, expected: Option<(Rcode, u16)>) {
        let qname = testing::name(text);
        let mut folded = wire::Folded::root();
        let hash = KEY.fold(qname.as_name(), &mut folded);
        let local = compiled();
        let got =
            local.answer(&crate::query::names::Sought::new(&folded, hash), qtype).map(
                |answer| match answer {
                    LocalAnswer::Records { count, .. } => (Rcode::NOERROR, count),
                    LocalAnswer::Negative { rcode, .. } => (rcode, 0),
                },
            );
        assert_eq!(got, expected, "{text} {qtype:?}");
    }

    #[test]
    fn special_names_are_answered_here() {
        check("localhost", Rtype::A, Some((Rcode::NOERROR, 1)));
        check("www.localhost", Rtype::AAAA, Some((Rcode::NOERROR, 1)));
        check("foo.invalid", Rtype::A, Some((Rcode::NXDOMAIN, 0)));
        check("foo.test", Rtype::A, Some((Rcode::NXDOMAIN, 0)));
        check("abcdef.onion", Rtype::A, Some((Rcode::NXDOMAIN, 0)));
        check("foo.home.arpa", Rtype::A, Some((Rcode::NXDOMAIN, 0)));
        check("1.1.168.192.in-addr.arpa", Rtype::PTR, Some((Rcode::NXDOMAIN, 0)));
        check("1.0.0.127.in-addr.arpa", Rtype::PTR, Some((Rcode::NOERROR, 1)));
        check("1.1.31.172.in-addr.arpa", Rtype::PTR, Some((Rcode::NXDOMAIN, 0)));
        check("1.1.127.100.in-addr.arpa", Rtype::PTR, Some((Rcode::NXDOMAIN, 0)));
        check("ipv4only.arpa", Rtype::A, Some((Rcode::NOERROR, 2)));
        check("ipv4only.arpa", Rtype::AAAA, Some((Rcode::NOERROR, 0)));
        check("_dns.resolver.arpa", Rtype::SVCB, Some((Rcode::NOERROR, 0)));
        check("x.resolver.arpa", Rtype::SVCB, Some((Rcode::NXDOMAIN, 0)));
        check("home.arpa", Rtype::NS, Some((Rcode::NOERROR, 1)));
        check("127.in-addr.arpa", Rtype::SOA, Some((Rcode::NOERROR, 1)));
        check("localhost", Rtype::SOA, Some((Rcode::NOERROR, 1)));
        check("www.localhost", Rtype::NS, Some((Rcode::NOERROR, 1)));
        check("home.arpa", Rtype::A, Some((Rcode::NOERROR, 0)));
        check("example.org", Rtype::A, None);
        check("32.172.in-addr.arpa", Rtype::PTR, None);
        check("8.8.8.8.in-addr.arpa", Rtype::PTR, None);
        check("in-addr.arpa", Rtype::NS, None);
    }

    #[test]
    fn the_soa_that_is_asked_for_is_that_of_denials() {
        let local = compiled();
        let qname = testing::name("onion");
        let mut folded = wire::Folded::root();
        let hash = KEY.fold(qname.as_name(), &mut folded);
        let sought = crate::query::names::Sought::new(&folded, hash);
        let Some(LocalAnswer::Records { count: 1, body }) = local.answer(&sought, Rtype::SOA) else {
            panic!("one SOA")
        };
        let denial = crate::answer::put::local_soa(wire::Header::LEN, SPECIAL_TTL);
        assert_eq!(
            body.get(12..),
            Some(&denial[..]),
            "the primary server's name is a pointer to the question"
        );
    }

    #[test]
    fn what_the_operator_says_goes_first() {
        check("nas.home.arpa", Rtype::A, Some((Rcode::NOERROR, 1)));
        check("10.1.168.192.in-addr.arpa", Rtype::PTR, Some((Rcode::NOERROR, 1)));
    }
}
