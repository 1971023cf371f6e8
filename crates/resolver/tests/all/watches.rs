//! Policies that are asked before servers are.

use std::net::IpAddr;
use std::sync::Arc;

use cache::{Now, Security};
use resolver::{KnownServer, Resolution, ServersKnown, Waiter, Watch};
use wire::message::Section;
use wire::{Name, NameBuf, Rcode, Rtype};

use crate::signed::{Internet, Signing};
use crate::world::{World, ip, name, plain_settings};

const WATCHED: u32 = 1;
const OTHER: u32 = 2;

/// A rule on a name, and one on the address of a server.
struct Rules {
    name: NameBuf,
    server: Option<IpAddr>,
}

impl Watch for Rules {
    fn looks_at_servers(&self) -> bool {
        self.server.is_some()
    }

    fn speaks_of(&self, name: Name<'_>, servers: Option<&ServersKnown>, now: Now) -> bool {
        let mut is_found = self.name.as_name() == name;
        if let (Some(known), Some(address)) = (servers, self.server) {
            known.each(name, now, &mut |server| {
                is_found |= server == KnownServer::Address(address);
                is_found
            });
        }
        is_found
    }
}

fn on_name(text: &str) -> Arc<Rules> {
    Arc::new(Rules { name: name(text), server: None })
}

fn on_server(address: &str) -> Arc<Rules> {
    Arc::new(Rules { name: name("no.rule"), server: Some(ip(address)) })
}

fn internet() -> World {
    let mut world = World::with(plain_settings());
    world.zone(".", &["192.0.2.1"], "org NS ns.org\nns.org A 192.0.2.2");
    world.zone(
        "org",
        &["192.0.2.2"],
        "example.org NS ns.example.org
         ns.example.org A 192.0.2.3
         shop.org NS ns.hosting.org
         hosting.org NS ns.hosting.org
         ns.hosting.org A 192.0.2.9",
    );
    world.zone(
        "example.org",
        &["192.0.2.3"],
        "first.example.org CNAME second.example.org
         second.example.org CNAME www.shop.org",
    );
    world.zone("hosting.org", &["192.0.2.9"], "ns.hosting.org A 192.0.2.9");
    world.zone("shop.org", &["192.0.2.9"], "www.shop.org A 198.51.100.2");
    world
}

/// Has somebody want a name for whom policies are asked.
fn watched(world: &mut World, text: &str, rules: Arc<Rules>) {
    world.resolver.watch(Waiter(WATCHED), rules);
    world.want(text, Rtype::A, WATCHED);
}

fn is_asked(world: &World, address: &str) -> bool {
    world.sent.iter().any(|sent| sent.to == ip(address))
}

/// Returns whether it is what is known so far, and the types of its answer section.
fn told(world: &World, waiter: u32) -> (bool, Vec<Rtype>) {
    let found: &Resolution = &world.done[&Waiter(waiter)];
    assert_eq!((found.rcode, found.failure.is_none()), (Rcode::NOERROR, true));
    let answer = found.records().filter(|record| record.section == Section::Answer);
    (found.is_interim, answer.map(|record| record.rtype).collect())
}

#[test]
fn policies_are_asked_about_the_target_of_an_alias_before_its_servers() {
    for (rule, aliases) in [("www.shop.org", 2), ("second.example.org", 1)] {
        let mut world = internet();
        watched(&mut world, "first.example.org", on_name(rule));
        world.settle();
        assert_eq!(told(&world, WATCHED), (true, vec![Rtype::CNAME; aliases]), "{rule}");
        assert!(!is_asked(&world, "192.0.2.9"));
        assert_eq!(world.resolver.active(), 0);
    }
}

#[test]
fn servers_are_not_asked_of_which_policies_have_a_rule() {
    let mut world = internet();
    watched(&mut world, "www.shop.org", on_server("192.0.2.9"));
    world.settle();
    assert_eq!(told(&world, WATCHED), (true, vec![]));
    assert!(!is_asked(&world, "192.0.2.9"));
    // Nothing is remembered of it.
    assert_eq!(world.resolve("www.shop.org", Rtype::A).answer, ["www.shop.org. 3600 A 198.51.100.2"]);
}

#[test]
fn a_rule_on_servers_of_an_aliass_target_leaves_the_aliases() {
    let mut world = internet();
    watched(&mut world, "first.example.org", on_server("192.0.2.9"));
    world.settle();
    assert_eq!(told(&world, WATCHED), (true, vec![Rtype::CNAME; 2]));
    assert!(!is_asked(&world, "192.0.2.9"));
}

#[test]
fn who_waits_for_the_same_without_policies_gets_the_whole_answer() {
    for rules in [on_name("www.shop.org"), on_server("192.0.2.9")] {
        let mut world = internet();
        watched(&mut world, "first.example.org", rules);
        world.want("first.example.org", Rtype::A, OTHER);
        world.settle();
        assert_eq!(told(&world, WATCHED), (true, vec![Rtype::CNAME; 2]));
        assert_eq!(told(&world, OTHER), (false, vec![Rtype::CNAME, Rtype::CNAME, Rtype::A]));
    }
}

#[test]
fn what_no_policy_speaks_of_is_found_as_ever() {
    let mut world = internet();
    watched(&mut world, "first.example.org", on_server("192.0.2.77"));
    world.settle();
    assert_eq!(told(&world, WATCHED), (false, vec![Rtype::CNAME, Rtype::CNAME, Rtype::A]));
}

#[test]
fn an_alias_that_is_bogus_fails_whatever_policies_say_of_its_target() {
    for (target, failure) in [("www.example.net.", None), ("other.example.net.", Some("bogus"))] {
        let mut signed = Internet::default()
            .zone(".", &["192.0.2.1"], Signing::Nsec, "")
            .zone("org", &["192.0.2.2"], Signing::Nsec, "")
            .zone("example.org", &["192.0.2.3"], Signing::Nsec, "alias.example.org. CNAME www.example.net.")
            .build();
        signed.tamper_all(|line| Some(line.replace("CNAME www.example.net.", &format!("CNAME {target}"))));
        let world = &mut signed.world;
        watched(world, "alias.example.org", on_name(target));
        world.settle();
        let found = &world.done[&Waiter(WATCHED)];
        assert_eq!(found.failure.as_ref().map(|failure| failure.reason.name()), failure);
        assert_eq!(
            (found.is_interim, found.security == Security::Secure),
            (failure.is_none(), failure.is_none())
        );
    }
}
