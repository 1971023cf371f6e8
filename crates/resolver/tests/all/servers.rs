//! Which name servers are said to lead to a name.

use resolver::{Forwarders, KnownServer, Route, ServersKnown, Settings, Stub, Way};
use wire::{Rcode, Rtype};

use crate::world::{World, ip, name, plain_settings, record};

/// Returns an internet in which `shop.example.org` is served from elsewhere.
fn internet(settings: Settings) -> World {
    let mut world = World::with(settings);
    world.zone(".", &["192.0.2.1"], "org NS ns.org\nns.org A 192.0.2.2");
    world.zone(
        "org",
        &["192.0.2.2"],
        "example.org 600 NS NS1.example.org
         ns1.example.org A 192.0.2.3
         example.net.org 600 NS ns.hosting.org
         hosting.org NS ns.hosting.org
         ns.hosting.org A 192.0.2.9",
    );
    world.zone(
        "example.org",
        &["192.0.2.3"],
        "www.example.org 86400 A 198.51.100.1
         shop.example.org 60 NS ns.hosting.org
         brief.example.org 0 NS ns.brief.example.org
         ns.brief.example.org A 192.0.2.5
         alias.example.org CNAME www.shop.example.org",
    );
    world.zone("brief.example.org", &["192.0.2.5"], "www.brief.example.org 86400 A 198.51.100.3");
    world.zone("hosting.org", &["192.0.2.9"], "ns.hosting.org 900 A 192.0.2.9");
    world.zone("shop.example.org", &["192.0.2.9"], "www.shop.example.org 86400 A 198.51.100.2");
    world
}

/// Returns the names and addresses of the servers that lead to a name.
fn led_by(world: &World, settings: &Settings, text: &str) -> Vec<String> {
    let known = ServersKnown::new(settings, &world.tables.rrsets);
    let mut found = Vec::new();
    known.each(name(text).as_name(), world.now.seconds(), &mut |server| {
        found.push(match server {
            KnownServer::Name(name) => name.to_string(),
            KnownServer::Address(address) => address.to_string(),
        });
        false
    });
    found
}

#[test]
fn the_servers_of_a_name_are_those_of_its_zone_and_of_those_above_it() {
    let mut world = internet(plain_settings());
    assert_eq!(led_by(&world, &plain_settings(), "www.shop.example.org"), [""; 0]);
    world.resolve("www.shop.example.org", Rtype::A);
    world.resolve("ns.hosting.org", Rtype::A);
    let all = ["ns.hosting.org.", "192.0.2.9", "ns1.example.org.", "192.0.2.3"];
    assert_eq!(led_by(&world, &plain_settings(), "WWW.shop.example.org"), all);
    assert_eq!(led_by(&world, &plain_settings(), "www.example.org"), ["ns1.example.org.", "192.0.2.3"]);
    // Who serves a top-level domain says nothing about who is behind a name.
    assert_eq!(led_by(&world, &plain_settings(), "no.org"), [""; 0]);
    let first = ServersKnown::new(&plain_settings(), &world.tables.rrsets);
    let mut count = 0;
    first.each(name("www.shop.example.org").as_name(), world.now.seconds(), &mut |_| {
        count += 1;
        true
    });
    assert_eq!(count, 1, "it ends when it is told to");
}

#[test]
fn servers_of_top_level_domains_and_of_the_root_count_where_settings_say_so() {
    for (ns_labels_min, more) in [(1, &["ns.org.", "192.0.2.2"][..]), (2, &[])] {
        let settings = Settings { ns_labels_min, ..plain_settings() };
        let mut world = internet(settings.clone());
        world.resolve("www.example.org", Rtype::A);
        let expected = [&["ns1.example.org.", "192.0.2.3"], more].concat();
        assert_eq!(led_by(&world, &settings, "www.example.org"), expected);
        assert_eq!(led_by(&world, &settings, "no.org"), more);
    }
}

#[test]
fn the_servers_of_a_stub_zone_are_those_that_settings_name() {
    let stub = Stub { addresses: vec![(ip("192.0.2.3"), 53).into()], ..Stub::default() };
    let zone = resolver::HeapName::new(name("example.org").as_name());
    let route = Route { zone, way: Way::Stub(stub), first: false, keeps: true };
    let settings = Settings { routes: vec![route], ..plain_settings() };
    let mut world = internet(settings.clone());
    // The delegation that others may have found counts for nothing.
    world.resolve("www.example.org", Rtype::A);
    world.resolve("www.shop.example.org", Rtype::A);
    assert_eq!(led_by(&world, &settings, "www.example.org"), ["192.0.2.3"]);
    let below = led_by(&world, &settings, "www.shop.example.org");
    assert_eq!((&*below[0], &*below[below.len() - 1]), ("ns.hosting.org.", "192.0.2.3"));
    // Who serves a top-level domain says nothing about who is behind a name.
    let mut above = settings;
    above.routes[0].zone = resolver::HeapName::new(name("org").as_name());
    assert_eq!(led_by(&world, &above, "no.org"), [""; 0]);
}

#[test]
fn where_forwarders_come_first_the_servers_that_are_asked_in_their_place_count() {
    let mut world = internet(plain_settings());
    world.resolve("www.example.org", Rtype::A);
    let stub = Stub { addresses: vec![(ip("192.0.2.7"), 53).into()], ..Stub::default() };
    let led_by = |way: Way, first: bool| {
        let zone = resolver::HeapName::new(name("example.org").as_name());
        let routes = vec![Route { zone, way, first, keeps: true }];
        led_by(&world, &Settings { routes, ..plain_settings() }, "www.example.org")
    };
    assert_eq!(led_by(Way::Forward(Forwarders(0)), false), [""; 0]);
    assert_eq!(led_by(Way::Forward(Forwarders(0)), true), ["ns1.example.org.", "192.0.2.3"]);
    assert_eq!(led_by(Way::Stub(stub.clone()), false), ["192.0.2.7"]);
    assert_eq!(led_by(Way::Stub(stub), true), ["ns1.example.org.", "192.0.2.3", "192.0.2.7"]);
}

#[test]
fn no_answer_outlives_the_delegation_that_led_to_it_where_policies_look_at_servers() {
    for (keeps_servers, ttl, sends) in [(false, "86400", 0), (true, "60", 2)] {
        let mut world = internet(plain_settings());
        if keeps_servers {
            world.resolver.keep_servers();
        }
        let seen = world.resolve("www.shop.example.org", Rtype::A);
        assert_eq!(seen.answer, [format!("www.shop.example.org. {ttl} A 198.51.100.2")]);
        world.pass_ms(61_000);
        assert_eq!(led_by(&world, &plain_settings(), "www.shop.example.org").len(), 2, "of example.org");
        // The answer is asked for again, by its delegation.
        assert_eq!(world.resolve("www.shop.example.org", Rtype::A).sends, sends);
        let found = led_by(&world, &plain_settings(), "www.shop.example.org");
        assert_eq!(found.contains(&"ns.hosting.org.".to_owned()), keeps_servers);
    }
}

#[test]
fn a_delegation_that_nobody_may_keep_does_not_hide_its_servers() {
    let mut world = internet(plain_settings());
    world.resolver.keep_servers();
    let seen = world.resolve("www.brief.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.answer.len()), (Rcode::NOERROR, 1));
    let found = led_by(&world, &plain_settings(), "www.brief.example.org");
    assert_eq!(found[..2], ["ns.brief.example.org.", "192.0.2.5"]);
    let ttl = record(&seen.answer[0]).ttl;
    assert!(ttl <= 5, "it is not kept for longer either: {ttl}");
}
