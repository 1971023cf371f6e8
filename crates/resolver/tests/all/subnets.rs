//! Who hears of clients' subnets (RFC 7871), and for whom the answers are.

use std::net::IpAddr;

use resolver::{HeapName, Settings, Subnets, Waiter, Wish};
use wire::{Class, ClientSubnet, Prefix, Question, Rcode, Rtype};

use crate::referrals::small;
use crate::world::{Behaviour, World, ip, name, plain_settings};

/// Returns the subnet of 24 bits that an address is in.
fn subnet(text: &str) -> ClientSubnet {
    ClientSubnet::of(text.parse().expect("an address"), 24)
}

/// Servers of `example.org` hear of subnets.
fn by_zone() -> Settings {
    let zones = vec![HeapName::new(name("example.org").as_name())];
    Settings { subnets: Subnets { zones, ..Subnets::default() }, ..plain_settings() }
}

/// Those in this network do.
fn by_address(text: &str) -> Settings {
    let servers = vec![Prefix::new(ip(text), 32)];
    Settings { subnets: Subnets { servers, ..Subnets::default() }, ..plain_settings() }
}

/// Returns an internet in which servers of `example.org` have an answer for each network of so many
/// bits: its address. `None`: they do not look at subnets.
fn internet(settings: Settings, scope: Option<u8>) -> World {
    let mut world = World::with(settings);
    small(&mut world);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).scope = scope;
    }
    world
}

/// Begins to resolve a name for a client.
fn want(world: &mut World, text: &str, of: Option<ClientSubnet>, waiter: u32) {
    let qname = name(text);
    let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
    let wish = Wish { subnet: of, ..Wish::default() };
    world.resolver.want_so(&question, wish, Waiter(waiter), world.now);
    world.carry_out();
}

/// Returns the first address of an answer, and for how many bits it is.
fn told(world: &mut World, waiter: u32) -> (Rcode, Option<IpAddr>, Option<u8>) {
    let resolution = world.done.remove(&Waiter(waiter)).expect("it is done");
    let address = resolution.records().find(|record| record.rtype == Rtype::A);
    let address = address.and_then(|record| <[u8; 4]>::try_from(record.rdata).ok());
    (resolution.rcode, address.map(IpAddr::from), resolution.scope)
}

fn ask(world: &mut World, text: &str, of: Option<&str>) -> (Rcode, Option<IpAddr>, Option<u8>) {
    want(world, text, of.map(subnet), 1);
    world.settle();
    told(world, 1)
}

/// Returns who heard of a subnet, and of which.
fn heard(world: &World) -> Vec<String> {
    let all = world.sent.iter().filter_map(|sent| Some(format!("{} {}", sent.to, sent.subnet.as_ref()?)));
    all.collect()
}

#[test]
fn only_servers_that_are_named_hear_of_a_subnet() {
    for settings in [by_zone(), by_address("192.0.2.3"), plain_settings()] {
        let is_told = !settings.subnets.is_empty();
        let mut world = internet(settings, Some(24));
        world.server("192.0.2.4").behaviour = Behaviour::Dead;
        let (rcode, address, scope) = ask(&mut world, "www.example.org", Some("203.0.113.7"));
        let all = heard(&world);
        assert!(all.iter().all(|it| it.starts_with("192.0.2.3 ") || it.starts_with("192.0.2.4 ")), "{all:?}");
        if is_told {
            assert_eq!((rcode, address, scope), (Rcode::NOERROR, Some(ip("203.0.113.0")), Some(24)));
            assert!(all.contains(&"192.0.2.3 203.0.113.0/24".to_owned()), "{all:?}");
        } else {
            assert_eq!((address, scope, all.len()), (Some(ip("198.51.100.1")), None, 0));
        }
        // Who tells nothing of his client has nothing told.
        let before = all.len();
        assert_eq!(ask(&mut world, "deep.example.org", None).2, None);
        assert_eq!(heard(&world).len(), before);
    }
}

#[test]
fn what_is_for_one_subnet_is_given_to_no_other() {
    for settings in [by_zone(), by_address("192.0.2.3")] {
        let mut world = internet(settings, Some(24));
        world.server("192.0.2.4").behaviour = Behaviour::Dead;
        for (client, expected) in [("203.0.113.7", "203.0.113.0"), ("198.51.100.7", "198.51.100.0")] {
            assert_eq!(ask(&mut world, "www.example.org", Some(client)).1, Some(ip(expected)));
        }
        // The tables are for everybody: nothing of it is there.
        let sent = world.sent.len();
        assert_eq!(ask(&mut world, "www.example.org", None).1, Some(ip("198.51.100.1")));
        assert!(world.sent.len() > sent);
    }
}

#[test]
fn what_is_for_everybody_is_kept_for_everybody() {
    for scope in [None, Some(0)] {
        let mut world = internet(by_address("192.0.2.3"), scope);
        world.server("192.0.2.4").behaviour = Behaviour::Dead;
        let (_, _, found) = ask(&mut world, "www.example.org", Some("203.0.113.7"));
        assert_eq!(found.unwrap_or(0), 0);
        let sent = world.sent.len();
        ask(&mut world, "www.example.org", None);
        ask(&mut world, "www.example.org", Some("198.51.100.7"));
        assert_eq!(world.sent.len(), sent, "from the tables");
    }
}

#[test]
fn what_who_told_nothing_was_answered_is_not_for_those_who_tell() {
    for settings in [by_zone(), by_address("192.0.2.3")] {
        let mut world = internet(settings, Some(24));
        world.server("192.0.2.4").behaviour = Behaviour::Dead;
        assert_eq!(ask(&mut world, "www.example.org", None).1, Some(ip("198.51.100.1")));
        let (_, address, _) = ask(&mut world, "www.example.org", Some("203.0.113.7"));
        assert_eq!(address, Some(ip("203.0.113.0")));
    }
}

#[test]
fn few_questions_for_one_name_are_outstanding_whatever_the_subnets() {
    let mut world = internet(by_zone(), Some(24));
    ask(&mut world, "www.example.org", Some("203.0.113.7"));
    let sent = world.sent.len();
    for client in 0..200_u32 {
        want(&mut world, "www.example.org", Some(subnet(&format!("10.0.{client}.1"))), client);
    }
    // Two for subnets, and one for all those who would have to wait for too long.
    assert_eq!(world.sent.len() - sent, 3);
    let of_subnets = world.sent[sent..].iter().filter(|sent| sent.subnet.is_some()).count();
    assert_eq!(of_subnets, 2);
    world.settle();
    let mut own = 0;
    for client in 0..200_u32 {
        let (rcode, address, scope) = told(&mut world, client);
        assert_eq!(rcode, Rcode::NOERROR);
        let is_own = address == Some(ip(&format!("10.0.{client}.0")));
        assert!(is_own || address == Some(ip("198.51.100.1")), "{address:?}");
        // What is nobody's own is kept by nobody else.
        assert_eq!(scope, Some(24));
        own += usize::from(is_own);
    }
    assert!(own >= 30, "{own} had an answer of their own");
}

#[test]
fn who_waits_takes_an_answer_that_is_for_a_larger_network() {
    let mut world = internet(by_zone(), Some(8));
    ask(&mut world, "deep.example.org", Some("203.0.113.7"));
    let sent = world.sent.len();
    for client in 0..20_u32 {
        want(&mut world, "www.example.org", Some(subnet(&format!("10.0.{client}.1"))), client);
    }
    world.settle();
    for client in 0..20 {
        assert_eq!(told(&mut world, client), (Rcode::NOERROR, Some(ip("10.0.0.0")), Some(8)));
    }
    assert_eq!(world.sent.len() - sent, 2);
}

#[test]
fn a_failure_for_one_subnet_is_no_failure_for_others() {
    let mut world = internet(by_zone(), Some(24));
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Rcode(Rcode::SERVFAIL);
    }
    assert_eq!(ask(&mut world, "www.example.org", Some("203.0.113.7")).0, Rcode::SERVFAIL);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Honest;
    }
    let (rcode, address, _) = ask(&mut world, "www.example.org", Some("198.51.100.7"));
    assert_eq!((rcode, address), (Rcode::NOERROR, Some(ip("198.51.100.0"))));
}
