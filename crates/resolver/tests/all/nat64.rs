//! Servers of IPv4 that are reached through a translator.

use resolver::{AddressPolicy, Route, Settings, Stub, Way};
use wire::{Prefix, Prefix64, Rcode, Rtype};

use crate::referrals::small;
use crate::world::{World, ip, name, plain_settings};

/// Settings of a host without IPv4, behind a translator.
fn settings() -> Settings {
    let nat64 = Prefix64::of(Prefix::new(ip("2001:db8:64::"), 96));
    let addresses = AddressPolicy { v4: false, nat64, ..AddressPolicy::default() };
    Settings { addresses, ..plain_settings() }
}

/// Returns an internet whose servers of IPv4 are there at the translator's addresses alone.
fn translated(settings: Settings) -> World {
    let mut world = World::with(settings);
    small(&mut world);
    let servers = std::mem::take(&mut world.servers);
    for (address, server) in servers {
        let std::net::IpAddr::V4(address) = address else { panic!("all have IPv4") };
        let behind = Prefix64::of(Prefix::new(ip("2001:db8:64::"), 96)).expect("a prefix");
        let reached = std::net::Ipv6Addr::from_bits(behind.embed(address.to_bits()));
        world.servers.insert(reached.into(), server);
    }
    world
}

#[test]
fn servers_of_ipv4_are_asked_through_the_translator() {
    let mut world = translated(settings());
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.answer.len(), seen.sends), (Rcode::NOERROR, 2, 3));
    assert!(world.sent.iter().all(|sent| sent.to.is_ipv6()), "{:?}", world.sent);
}

#[test]
fn servers_of_ipv4_that_are_never_asked_are_not_asked_through_the_translator() {
    let mut all = settings();
    // Whoever refuses IPv6 alone refuses no translated address.
    all.addresses.refused = vec![Prefix::new(ip("::"), 0)];
    assert_eq!(translated(all.clone()).resolve("www.example.org", Rtype::A).rcode, Rcode::NOERROR);
    all.addresses.refused.push(Prefix::new(ip("192.0.2.3"), 32));
    all.addresses.refused.push(Prefix::new(ip("192.0.2.4"), 32));
    let mut world = translated(all);
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.sends), (Rcode::SERVFAIL, 2));
}

#[test]
fn servers_that_settings_name_are_asked_through_the_translator_too() {
    let addresses = vec![(ip("192.0.2.3"), 5353).into()];
    let way = Way::Stub(Stub { addresses, ..Stub::default() });
    let zone = resolver::HeapName::new(name("example.org").as_name());
    let routes = vec![Route { zone, way, first: false, keeps: true }];
    let mut world = translated(Settings { routes, ..settings() });
    assert_eq!(world.resolve("www.example.org", Rtype::A).sends, 1);
    assert_eq!((world.sent[0].to, world.sent[0].port), (ip("2001:db8:64::c000:203"), 5353));
}
