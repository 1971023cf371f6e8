//! Who wants no recursion is told whom to ask.

use cache::Security;
use resolver::{Settings, Waiter, Wish};
use wire::{Class, Message, Question, Rcode, Rtype, Section};

use crate::odd_servers::island;
use crate::referrals::small;
use crate::signed::{Internet, Signed, Signing};
use crate::world::{Behaviour, World, name, plain_settings, show};

/// What a client is told: how much was asked, the response code, and records by section.
struct Told {
    sends: usize,
    rcode: Rcode,
    security: Security,
    sections: [Vec<String>; 3],
}

fn refer(world: &mut World, text: &str, unchecked: bool) -> Told {
    let qname = name(text);
    let question = Question { qname: qname.as_name(), qtype: Rtype::A, qclass: Class::IN };
    let before = world.sent.len();
    let wish = Wish { refers: true, unchecked, ..Wish::default() };
    world.resolver.want_so(&question, wish, Waiter(7), world.now);
    world.settle_effects();
    let resolution = world.done.remove(&Waiter(7)).expect("it is done");
    let mut out = vec![0; 65_535];
    let len = resolution.write(&question, true, &mut out).expect("it fits");
    let message = Message::parse(&out[..len]).expect("well formed");
    let section = |wanted: Section| {
        let records = message.records().filter(move |record| record.section == wanted);
        records.map(|record| show(&message, &record)).collect()
    };
    let sections = [Section::Answer, Section::Authority, Section::Additional].map(section);
    let (rcode, security) = (resolution.rcode, resolution.security);
    Told { sends: world.sent.len() - before, rcode, security, sections }
}

#[test]
fn a_referral_is_to_the_closest_zone_that_is_known() {
    let mut world = World::with(plain_settings());
    small(&mut world);
    world.resolve("www.example.org", Rtype::A);
    let told = refer(&mut world, "new.example.org", false);
    assert_eq!((told.sends, told.rcode, told.security), (0, Rcode::NOERROR, Security::Indeterminate));
    let [answer, authority, additional] = told.sections;
    assert!(answer.is_empty() && !authority.is_empty() && !additional.is_empty());
    assert!(authority.iter().all(|line| line.starts_with("example.org. 600 NS ns")), "{authority:?}");
    assert!(additional.iter().all(|line| line.contains(".example.org. 600 A 192.0.2.")), "{additional:?}");
    let told = refer(&mut world, "example.net", false);
    assert!(told.sections[1].iter().all(|line| line.starts_with(". ")), "{:?}", told.sections);
}

#[test]
fn a_referral_to_a_signed_zone_is_what_the_zone_itself_says() {
    let build = |example| {
        Internet::default()
            .zone(".", &["192.0.2.1"], Signing::Nsec, "")
            .zone("org", &["192.0.2.2"], Signing::Nsec, "")
            .zone("example.org", &["192.0.2.3"], example, "www.example.org. A 198.51.100.1")
            .build()
    };
    let Signed { mut world, .. } = build(Signing::Nsec);
    world.resolve("www.example.org", Rtype::A);
    for sends in [1, 0] {
        let told = refer(&mut world, "new.example.org", false);
        assert_eq!((told.sends, told.rcode, told.security), (sends, Rcode::NOERROR, Security::Secure));
        let [answer, authority, _] = told.sections;
        let has = |start: &str, text: &str| {
            authority.iter().any(|line| line.starts_with(start) && line.contains(text))
        };
        assert!(answer.is_empty() && has("example.org. ", " NS ns."), "{authority:?}");
        assert!(has("example.org. ", " RRSIG NS ") && has("example.org. ", " DS "), "{authority:?}");
    }
    // Of a zone that is not signed, it is what the parent says, and nobody is asked.
    let Signed { mut world, .. } = build(Signing::No);
    world.resolve("www.example.org", Rtype::A);
    let told = refer(&mut world, "new.example.org", false);
    assert_eq!((told.sends, told.security), (0, Security::Indeterminate));
    assert_eq!(told.sections[1].len(), 1, "{:?}", told.sections);
}

#[test]
fn a_referral_is_no_more_secure_than_the_ds_records_in_it() {
    let mut world = island();
    world.resolve("www.example", Rtype::A);
    for (has_ds, security) in [(false, Security::Secure), (true, Security::Indeterminate)] {
        let told = refer(&mut world, "new.example", false);
        let ds = told.sections[1].iter().filter(|line| line.contains(" DS ")).count();
        assert_eq!((ds > 0, told.security), (has_ds, security), "{:?}", told.sections);
        world.resolve("example", Rtype::DS);
    }
}

#[test]
fn name_servers_that_a_signed_zone_does_not_vouch_for_are_no_referral() {
    let Signed { mut world, .. } = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "www.org. A 198.51.100.1")
        .build();
    world.resolve("www.org", Rtype::A);
    let lie = vec![(Section::Answer, crate::world::record("org. NS ns.evil.org."))];
    world.server("192.0.2.2").behaviour = Behaviour::Liar(lie);
    let told = refer(&mut world, "new.org", false);
    assert_eq!((told.rcode, told.security), (Rcode::SERVFAIL, Security::Bogus));
    assert!(told.sections.iter().all(Vec::is_empty), "{:?}", told.sections);
}

#[test]
fn who_wants_recursion_for_the_same_at_the_same_time_gets_an_answer() {
    let Signed { mut world, .. } = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "www.org. A 198.51.100.1")
        .with(Settings { minimal_responses: true, ..plain_settings() })
        .build();
    world.resolve("www.org", Rtype::A);
    world.want("org", Rtype::NS, 1);
    let told = refer(&mut world, "org", false);
    assert!(told.sections[0].is_empty() && !told.sections[1].is_empty());
    let answered = &world.done[&Waiter(1)];
    let first = answered.records().next().expect("records");
    assert_eq!((first.section, first.rtype), (Section::Answer, Rtype::NS));
}
