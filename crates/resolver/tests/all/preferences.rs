//! Over what servers are asked, if it is said.

use resolver::{AddressPolicy, Family, Settings};
use wire::{Rcode, Rtype};

use crate::referrals::small;
use crate::world::{Behaviour, World, plain_settings};

/// The root and org, whose server has both families: IPv6 is quicker.
fn both_families(preferred: Option<Family>) -> World {
    let addresses = AddressPolicy { preferred, ..AddressPolicy::default() };
    let mut world = World::with(Settings { addresses, ..plain_settings() });
    let zone = "org NS ns.org
         ns.org A 192.0.2.2
         ns.org AAAA 2001:db8::2";
    world.zone(".", &["192.0.2.1"], zone);
    world.zone("org", &["192.0.2.2"], "www.org A 198.51.100.1");
    world.server("2001:db8::2").zones.push("org".to_string());
    world.server("2001:db8::2").latency_us = 1000;
    world.server("192.0.2.2").latency_us = 80_000;
    world
}

/// Returns how many of 200 questions were asked over IPv6 first.
fn asked_over_v6(world: &mut World) -> usize {
    world.resolve("first.org", Rtype::A);
    let asked = |number: i32| {
        let sent = world.sent.len();
        assert_eq!(world.resolve(&format!("n{number}.org"), Rtype::A).rcode, Rcode::NXDOMAIN);
        world.sent[sent].to.is_ipv6()
    };
    (0..200).map(asked).filter(|is_v6| *is_v6).count()
}

#[test]
fn prefer_ip4_asks_over_ipv4_however_slow_it_is() {
    assert!(asked_over_v6(&mut both_families(None)) > 100, "the quicker one is asked");
    assert_eq!(asked_over_v6(&mut both_families(Some(Family::V4))), 0);
}

#[test]
fn prefer_ip6_asks_over_ipv6_however_slow_it_is() {
    let mut world = both_families(Some(Family::V6));
    world.server("2001:db8::2").latency_us = 90_000;
    world.server("192.0.2.2").latency_us = 1000;
    assert_eq!(asked_over_v6(&mut world), 200);
}

#[test]
fn a_preferred_family_that_is_silent_keeps_nobody_from_an_answer() {
    let mut world = both_families(Some(Family::V4));
    world.server("192.0.2.2").behaviour = Behaviour::Dead;
    assert_eq!(world.resolve("www.org", Rtype::A).rcode, Rcode::NOERROR);
}

#[test]
fn tcp_upstream_asks_every_server_over_tcp() {
    let mut world = World::with(Settings { tcp_only: true, ..plain_settings() });
    small(&mut world);
    assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::NOERROR);
    assert!(world.sent.len() >= 3 && world.sent.iter().all(|sent| sent.over_tcp), "{:?}", world.sent);
}
