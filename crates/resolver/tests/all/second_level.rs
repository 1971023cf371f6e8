//! A second-level cache before the servers: what it has is judged like anything else.

use cache::Security;
use resolver::{Moment, SecondLevel, Settings, Validation, Waiter, Wish};
use wire::{Class, Message, Question, Rcode, Rtype};

use crate::forwards::forward;
use crate::referrals::small;
use crate::signed::Signing;
use crate::validation::internet;
use crate::world::{Behaviour, World, ip, name, plain_settings};

const USED: SecondLevel = SecondLevel { stores: true, when_stale: true };

fn plain(second_level: Option<SecondLevel>) -> World {
    let mut world = World::with(Settings { second_level, ..plain_settings() });
    small(&mut world);
    world
}

#[test]
fn what_servers_answer_is_stored_and_asks_nobody_the_next_time() {
    let mut world = plain(Some(USED));
    let first = world.resolve("www.example.org", Rtype::A);
    assert_eq!(first.answer.len(), 2, "{first:?}");
    assert_eq!(world.second_level.asked, ["www.example.org. A"], "nothing else was looked up");
    assert_eq!(world.second_level.has.keys().collect::<Vec<_>>(), ["www.example.org. A"]);
    let denied = world.resolve("none.example.org", Rtype::A);
    assert_eq!(denied.rcode, Rcode::NXDOMAIN);
    // What the tables know is not looked up.
    world.resolve("www.example.org", Rtype::A);
    assert_eq!(world.second_level.asked.len(), 2);

    world.forget();
    let from = world.sent.len();
    let again = world.resolve("www.example.org", Rtype::A);
    assert_eq!((again.answer, again.sends), (first.answer, 0));
    assert_eq!(world.resolve("none.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
    assert_eq!(world.sent.len(), from);
    // What was found there is in the tables now.
    let asked = world.second_level.asked.len();
    world.resolve("www.example.org", Rtype::A);
    assert_eq!(world.second_level.asked.len(), asked);
}

#[test]
fn nothing_is_stored_where_that_is_not_wanted_and_nothing_looked_up_without_such_a_cache() {
    let mut world = plain(Some(SecondLevel { stores: false, ..USED }));
    world.resolve("www.example.org", Rtype::A);
    assert_eq!((world.second_level.asked.len(), world.second_level.has.len()), (1, 0));
    let mut world = plain(None);
    world.resolve("www.example.org", Rtype::A);
    assert_eq!((world.second_level.asked.len(), world.second_level.has.len()), (0, 0));
}

#[test]
fn failures_are_not_stored() {
    let mut world = plain(Some(USED));
    for server in ["192.0.2.3", "192.0.2.4"] {
        world.server(server).behaviour = Behaviour::Dead;
    }
    assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::SERVFAIL);
    assert!(world.second_level.has.is_empty());
}

#[test]
fn answers_of_a_route_that_keeps_nothing_are_neither_looked_up_nor_stored() {
    let route = resolver::Route { keeps: false, ..forward("example.org", 1) };
    let mut world =
        World::with(Settings { second_level: Some(USED), routes: vec![route], ..plain_settings() });
    small(&mut world);
    world.server("203.0.113.1").zones = world.zones.keys().cloned().collect();
    world.forwarders.insert(1, vec![ip("203.0.113.1")]);
    assert_eq!(world.resolve("www.example.org", Rtype::A).answer.len(), 2);
    assert_eq!((world.second_level.asked.len(), world.second_level.has.len()), (0, 0));
}

#[test]
fn an_expired_answer_at_hand_leaves_the_cache_out_if_settings_say_so() {
    for when_stale in [true, false] {
        let mut world = plain(Some(SecondLevel { when_stale, ..USED }));
        let qname = name("www.example.org");
        let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
        let wish = Wish { has_stale: true, ..Wish::default() };
        let now: Moment = world.now;
        world.resolver.want_so(&question, wish, Waiter(900), now);
        world.settle_effects();
        assert_eq!(world.second_level.asked.len(), usize::from(when_stale), "{when_stale}");
        assert!(world.done.contains_key(&Waiter(900)));
    }
}

#[test]
fn what_is_stored_has_its_proofs_and_is_validated_again() {
    let used = |settings: Settings| Settings { second_level: Some(USED), ..settings };
    let mut signed = internet(Signing::Nsec, Signing::Nsec).with(used(plain_settings())).build();
    for (qname, rcode) in [("www.example.org", Rcode::NOERROR), ("none.example.org", Rcode::NXDOMAIN)] {
        let seen = signed.world.resolve(qname, Rtype::A);
        assert_eq!((seen.rcode, seen.security), (rcode, Security::Secure), "{seen:?}");
    }
    // Answers need no servers now. DS records came with referrals and are asked for, once.
    signed.world.forget();
    signed.world.resolve("www.example.org", Rtype::A);
    assert!(signed.world.sent.iter().rev().take(3).all(|sent| sent.question.ends_with(" DS")));
    signed.world.forget();
    for (qname, rcode) in [("www.example.org", Rcode::NOERROR), ("none.example.org", Rcode::NXDOMAIN)] {
        let seen = signed.world.resolve(qname, Rtype::A);
        assert_eq!((seen.rcode, seen.security), (rcode, Security::Secure), "{seen:?}");
        assert_eq!(seen.sends, 0, "{qname}");
    }
}

#[test]
fn an_entry_that_somebody_changed_is_bogus_and_servers_are_asked() {
    for validation in [Validation::On, Validation::Permissive] {
        forge(validation);
    }
}

fn forge(validation: Validation) {
    let settings = Settings { second_level: Some(USED), validation, ..plain_settings() };
    let mut signed = internet(Signing::Nsec, Signing::Nsec).with(settings).build();
    let honest = signed.world.resolve("www.example.org", Rtype::A);
    let key = "www.example.org. A";
    let good = signed.world.second_level.has[key].clone();
    let address = wire_address(&good).expect("an address");
    let mut forged = good.clone();
    forged[address] ^= 0xff;
    signed.world.second_level.has.insert(key.to_owned(), forged);
    signed.world.forget();
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    assert_eq!((&seen.answer, seen.security), (&honest.answer, Security::Secure));
    assert!(seen.sends > 0);
    assert_eq!(signed.world.second_level.has[key], good, "the right answer has taken its place");
    // Without signatures it is no better.
    let mut stripped = plain(Some(USED));
    stripped.resolve("www.example.org", Rtype::A);
    let unsigned = stripped.second_level.has[key].clone();
    signed.world.second_level.has.insert(key.to_owned(), unsigned);
    signed.world.forget();
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    assert_eq!((seen.answer, seen.security), (honest.answer, Security::Secure));
}

#[test]
fn an_answer_for_another_question_is_no_answer() {
    let mut world = plain(Some(USED));
    world.resolve("www.example.org", Rtype::A);
    let other = world.second_level.has["www.example.org. A"].clone();
    world.second_level.has.insert("www.example.org. AAAA".to_owned(), other);
    world.forget();
    let seen = world.resolve("www.example.org", Rtype::AAAA);
    assert!(seen.answer.iter().all(|line| line.contains(" AAAA ")), "{seen:?}");
}

/// Returns where the last octet of the first address of a message stands.
fn wire_address(octets: &[u8]) -> Option<usize> {
    let message = Message::parse(octets).ok()?;
    let record = message.records().find(|record| record.rtype == Rtype::A)?;
    Some(record.end() - 1)
}
