//! How much of a name the servers above its zone see (RFC 9156).

use resolver::{HeapName, Hint, Minimisation, Settings};
use wire::{Rcode, Rtype};

use crate::referrals::small;
use crate::world::{Behaviour, World, ip, name, plain_settings};

fn world(minimisation: Minimisation) -> World {
    let mut world = World::with(Settings { minimisation, ..plain_settings() });
    small(&mut world);
    world
}

fn questions(world: &World) -> Vec<&str> {
    world.sent.iter().map(|sent| &*sent.question).collect()
}

#[test]
fn servers_see_one_label_more_than_their_zone_has() {
    for minimisation in [Minimisation::Relaxed, Minimisation::Strict] {
        let mut world = world(minimisation);
        let seen = world.resolve("www.example.org", Rtype::AAAA);
        assert_eq!(seen.rcode, Rcode::NOERROR);
        assert_eq!(questions(&world), ["org. A", "example.org. A", "www.example.org. AAAA"]);
        world.sent.clear();
        let seen = world.resolve("deep.below.example.org", Rtype::TXT);
        assert_eq!(seen.answer, ["deep.below.example.org. 3600 TXT \"here\""]);
        assert_eq!(questions(&world), ["below.example.org. A", "deep.below.example.org. TXT"]);
        world.sent.clear();
        world.resolve("other.below.example.org", Rtype::TXT);
        assert_eq!(questions(&world), ["other.below.example.org. TXT"], "what is above is known by now");
    }
}

#[test]
fn the_type_is_hidden_until_the_whole_name_is_known_to_the_servers_of_its_zone() {
    let settings = Settings { minimisation: Minimisation::Relaxed, hides_type: true, ..plain_settings() };
    let mut world = World::with(settings);
    small(&mut world);
    world.resolve("www.example.org", Rtype::AAAA);
    let expected = ["org. A", "example.org. A", "www.example.org. A", "www.example.org. AAAA"];
    assert_eq!(questions(&world), expected);
    world.sent.clear();
    // The address is known by now; of another name it is what is asked for.
    world.resolve("www.example.org", Rtype::TXT);
    world.resolve("ns1.example.org", Rtype::A);
    world.resolve("ns2.example.org", Rtype::DS);
    let expected = ["www.example.org. TXT", "ns1.example.org. A", "ns2.example.org. DS"];
    assert_eq!(questions(&world), expected);
}

#[test]
fn two_types_of_one_name_share_the_way_down() {
    let mut world = world(Minimisation::Relaxed);
    world.want("www.example.org", Rtype::A, 1);
    world.want("www.example.org", Rtype::AAAA, 2);
    world.settle();
    assert_eq!(world.sent.len(), 4, "{:?}", questions(&world));
}

#[test]
fn servers_that_deny_or_refuse_what_is_between_are_asked_for_all() {
    for rcode in [Rcode::NXDOMAIN, Rcode::REFUSED, Rcode::SERVFAIL, Rcode::FORMERR] {
        let broken = |minimisation| {
            let mut world = world(minimisation);
            for address in ["192.0.2.3", "192.0.2.4"] {
                world.server(address).behaviour = Behaviour::OnEmptyNonTerminals(rcode);
            }
            world
        };
        let seen = broken(Minimisation::Relaxed).resolve("deep.below.example.org", Rtype::TXT);
        assert_eq!(seen.answer, ["deep.below.example.org. 3600 TXT \"here\""], "{rcode}");
        let seen = broken(Minimisation::Strict).resolve("deep.below.example.org", Rtype::TXT);
        let expected = if rcode == Rcode::NXDOMAIN { Rcode::NXDOMAIN } else { Rcode::SERVFAIL };
        assert_eq!((seen.rcode, seen.answer.len()), (expected, 0), "{rcode}");
    }
}

#[test]
fn a_name_with_many_labels_is_shown_in_few_steps() {
    let mut world = world(Minimisation::Relaxed);
    let long = ["a."; 60].concat();
    world.zone("example.org", &[], &format!("{long}example.org A 198.51.100.1"));
    let seen = world.resolve(&format!("{long}example.org"), Rtype::A);
    assert_eq!(seen.answer.len(), 1);
    assert!(seen.sends <= 12, "{}", seen.sends);
}

#[test]
fn an_alias_or_a_dname_between_does_not_stop_the_way_down() {
    let mut world = world(Minimisation::Relaxed);
    world.zone(
        "example.org",
        &[],
        "alias.example.org CNAME elsewhere.org
         www.alias.example.org A 198.51.100.1
         old.example.org DNAME new.example.org
         www.b.new.example.org A 198.51.100.2",
    );
    assert_eq!(world.resolve("www.alias.example.org", Rtype::A).answer.len(), 1);
    let seen = world.resolve("www.b.old.example.org", Rtype::A);
    assert_eq!(seen.answer.last().expect("an address"), "www.b.new.example.org. 3600 A 198.51.100.2");
}

#[test]
fn the_roots_servers_are_asked_which_they_are() {
    let hint = Hint { name: HeapName::new(name("a.root").as_name()), addresses: vec![ip("192.0.2.1")] };
    let mut world = World::with(Settings { hints: vec![hint], ..Settings::default() });
    small(&mut world);
    world.zone(
        ".",
        &["192.0.2.10"],
        ". 7200 NS b.root
         b.root A 192.0.2.10
         org 60 NS ns.org
         ns.org A 192.0.2.2",
    );
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.answer.len(), seen.took_ms), (2, 30), "nobody waits for it");
    assert_eq!(world.sent.iter().filter(|sent| sent.question == ". NS").count(), 1);
    world.pass_ms(100_000);
    world.sent.clear();
    world.resolve("www.other.org", Rtype::A);
    assert_eq!(world.sent[0].to, ip("192.0.2.10"), "the hints are not needed any more");
    world.pass_ms(7_200_000);
    world.sent.clear();
    world.resolve("www.other.org", Rtype::A);
    assert_eq!(world.sent.iter().filter(|sent| sent.question == ". NS").count(), 1);
}

#[test]
fn without_an_answer_about_the_root_its_hints_do() {
    let mut world = World::with(Settings { priming: true, ..plain_settings() });
    small(&mut world);
    for (name, count) in [("www.example.org", 1), ("www.none", 1), ("www.none2", 1)] {
        assert_eq!(world.resolve(name, Rtype::A).failure, None);
        let asked = world.sent.iter().filter(|sent| sent.question == ". NS").count();
        assert_eq!(asked, count, "{name}");
        world.pass_ms(6000);
    }
    world.pass_ms(300_000);
    world.resolve("www.none3", Rtype::A);
    let asked = world.sent.iter().filter(|sent| sent.question == ". NS").count();
    assert_eq!(asked, 2, "that there is no answer is known for a while, too");
}
