//! Forward zones: answers of servers that have them from elsewhere.

use cache::Security;
use proptest::prelude::*;
use resolver::{Forwarders, HeapName, Limits, NegativeAnchor, Route, Settings, Stub, Validation, Way};
use wire::{EdeCode, Rcode, Rtype, Section};

use crate::referrals::small;
use crate::signed::{Internet, Signed, Signing};
use crate::validation::{NSEC3, check, check_bogus, internet, resolve_unchecked, without_ttl};
use crate::world::{Behaviour, Seen, World, ip, name, plain_settings, record};

/// The only forwarder of group 1, and the second one of group 2.
const ONE: &str = "203.0.113.1";
/// The first forwarder of group 2.
const TWO: &str = "203.0.113.2";

/// Returns a zone that this group is asked for.
pub(crate) fn forward(zone: &str, group: u16) -> Route {
    let zone = HeapName::new(name(zone).as_name());
    Route { zone, way: Way::Forward(Forwarders(group)), first: false, keeps: true }
}

/// A zone is forwarded first, and has servers of its own for when that fails.
#[test]
fn servers_of_a_zone_are_asked_if_its_forwarders_fail() {
    let zone = HeapName::new(name("corp.example.org").as_name());
    let stub = Stub { addresses: vec!["192.0.2.8:53".parse().expect("an address")], ..Stub::default() };
    let routes = vec![
        Route { first: true, ..forward("corp.example.org", 1) },
        Route { zone, way: Way::Stub(stub), first: false, keeps: true },
    ];
    let mut world = plain(routes);
    world.server(ONE).behaviour = Behaviour::Dead;
    // What the parent says of the zone does not count.
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    let seen = world.resolve("www.corp.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.answer.len()), (Rcode::NOERROR, 1), "{seen:?}");
    assert!(world.sent.iter().all(|sent| [ip(ONE), ip("192.0.2.8")].contains(&sent.to)));
}

fn as_is(line: &str) -> Option<String> {
    Some(line.to_owned())
}

fn without_signatures(line: &str) -> Option<String> {
    (!line.contains(" RRSIG ")).then(|| line.to_owned())
}

fn groups(world: &mut World) {
    world.forwarders.insert(1, vec![ip(ONE)]);
    world.forwarders.insert(2, vec![ip(TWO), ip(ONE)]);
}

/// An internet without signatures. The forwarder knows all of it.
fn plain(routes: Vec<Route>) -> World {
    plain_with(Settings { routes, ..plain_settings() })
}

fn plain_with(settings: Settings) -> World {
    let mut world = World::with(settings);
    small(&mut world);
    world.zone(
        "corp.example.org",
        &["192.0.2.8"],
        "www.corp.example.org A 10.1.0.1
         alias.corp.example.org CNAME www.example.org
         lab.corp.example.org NS ns.lab.corp.example.org",
    );
    world.zone("lab.corp.example.org", &["192.0.2.9"], "www.lab.corp.example.org A 10.1.0.9");
    let zones: Vec<String> = world.zones.keys().cloned().collect();
    for address in [ONE, TWO] {
        world.server(address).zones.clone_from(&zones);
    }
    groups(&mut world);
    world
}

/// An internet with signatures, whose names go by these routes.
fn signed(internet: Internet, routes: Vec<Route>) -> Signed {
    let mut signed = internet.with(Settings { routes, ..plain_settings() }).build();
    for address in [ONE, TWO] {
        signed.forwarder(address, as_is);
    }
    groups(&mut signed.world);
    signed
}

/// Returns whom questions went to from one on, as `SERVER NAME TYPE`.
fn asked(world: &World, from: usize) -> Vec<String> {
    world.sent[from..].iter().map(|sent| format!("{} {}", sent.to, sent.question)).collect()
}

#[test]
fn forwarders_are_asked_for_whole_names_and_their_answers_are_kept() {
    let mut world = plain(vec![forward("corp.example.org", 1)]);
    let seen = world.resolve("www.corp.example.org", Rtype::A);
    assert_eq!(seen.answer, ["www.corp.example.org. 3600 A 10.1.0.1"]);
    assert_eq!(asked(&world, 0), [format!("{ONE} www.corp.example.org. A")]);
    assert_eq!(world.resolve("www.corp.example.org", Rtype::A).sends, 0);
    assert_eq!(world.resolve("www.lab.corp.example.org", Rtype::A).answer.len(), 1);
    for _ in 0..2 {
        assert_eq!(world.resolve("none.corp.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
        assert_eq!(world.resolve("www.corp.example.org", Rtype::TXT).authority.len(), 1);
    }
    assert_eq!(world.sent.len(), 4);
    assert!(world.sent.iter().all(|sent| sent.to == ip(ONE)));
    // Names above it are found from the root down.
    let from = world.sent.len();
    assert_eq!(world.resolve("www.example.org", Rtype::A).failure, None);
    assert!(asked(&world, from).iter().all(|line| !line.starts_with(ONE)));
}

#[test]
fn forwarders_are_asked_once_where_clients_see_the_servers_beside_answers() {
    let routes = vec![forward(".", 1)];
    let mut world = plain_with(Settings { routes, minimal_responses: false, ..plain_settings() });
    for (qname, records, sends) in [
        ("alias.corp.example.org", 3, 1),
        ("alias.corp.example.org", 3, 0),
        ("www.corp.example.org", 1, 1),
        ("www.corp.example.org", 1, 0),
    ] {
        let seen = world.resolve(qname, Rtype::A);
        assert_eq!((seen.answer.len(), seen.sends), (records, sends), "{qname}: {seen:?}");
    }
}

#[test]
fn each_name_goes_by_the_closest_of_stub_and_forward_zones() {
    let stub = Stub { addresses: vec!["192.0.2.9:53".parse().expect("an address")], ..Stub::default() };
    let zone = HeapName::new(name("lab.corp.example.org").as_name());
    let lab = Route { zone, way: Way::Stub(stub), first: false, keeps: true };
    let mut world = plain(vec![forward(".", 2), forward("corp.example.org", 1), lab]);
    for (qname, server) in [
        ("www.example.org", TWO),
        ("none", TWO),
        ("www.corp.example.org", ONE),
        ("www.lab.corp.example.org", "192.0.2.9"),
    ] {
        let from = world.sent.len();
        assert_eq!(world.resolve(qname, Rtype::A).failure, None, "{qname}");
        assert_eq!(asked(&world, from), [format!("{server} {qname}. A")]);
    }
}

#[test]
fn an_alias_out_of_the_zone_goes_by_the_targets_own_route() {
    let mut world = plain(vec![forward("corp.example.org", 1)]);
    // What the forwarder says of the target is not believed.
    let lies = ["alias.corp.example.org CNAME www.example.org", "www.example.org A 192.0.2.66"];
    let lies = lies.map(|line| (Section::Answer, record(line)));
    world.server(ONE).behaviour = Behaviour::Liar(lies.to_vec());
    let seen = world.resolve("alias.corp.example.org", Rtype::A);
    assert_eq!(seen.answer[0], "alias.corp.example.org. 3600 CNAME www.example.org.");
    assert!(seen.answer.iter().all(|line| !line.contains("192.0.2.66")), "{seen:?}");
    assert_eq!(asked(&world, 1)[0], "192.0.2.1 www.example.org. A");
    // Of a target in the zone it is: nothing more is asked.
    let mut world = plain(vec![forward(".", 1)]);
    let seen = world.resolve("alias.corp.example.org", Rtype::A);
    assert_eq!((seen.answer.len(), seen.sends), (3, 1), "{seen:?}");
}

#[test]
fn what_a_forwarder_says_beside_the_chain_is_dropped() {
    let mut world = plain(vec![forward("corp.example.org", 1)]);
    let besides = [
        (Section::Answer, "other.corp.example.org A 192.0.2.66"),
        (Section::Authority, "example.org NS ns.evil.org"),
        (Section::Authority, "corp.example.org NS ns.evil.org"),
        (Section::Additional, "ns.evil.org A 192.0.2.66"),
        (Section::Additional, "www.example.org A 192.0.2.66"),
    ];
    let besides = besides.map(|(section, line)| (section, record(line)));
    world.server(ONE).behaviour = Behaviour::Poisoner(besides.to_vec());
    assert_eq!(world.resolve("www.corp.example.org", Rtype::A).answer.len(), 1);
    world.server(ONE).behaviour = Behaviour::Honest;
    assert_eq!(world.resolve("other.corp.example.org", Rtype::A).rcode, Rcode::NXDOMAIN);
    assert!(world.resolve("www.example.org", Rtype::A).answer.iter().all(|line| !line.contains(".66")));
    assert!(world.sent.iter().all(|sent| sent.to != ip("192.0.2.66")));
}

#[test]
fn forwarders_refer_to_nobody() {
    let mut world = plain(vec![forward("corp.example.org", 1)]);
    for (host, line) in
        [("a", "lab.corp.example.org NS ns.lab.corp.example.org"), ("b", "example.org NS ns.example.org")]
    {
        let referral = vec![(Section::Authority, record(line))];
        world.server(ONE).behaviour = Behaviour::Liar(referral);
        let seen = world.resolve(&format!("{host}.lab.corp.example.org"), Rtype::A);
        assert_eq!((seen.failure.as_deref(), seen.sends), (Some("lame"), 1));
    }
}

#[test]
fn a_forwarder_that_refers_to_others_has_no_data_where_settings_say_so() {
    let routes = vec![forward("corp.example.org", 1)];
    let mut world = World::with(Settings { routes, takes_referrals: true, ..plain_settings() });
    small(&mut world);
    groups(&mut world);
    let referral = vec![(Section::Authority, record("lab.corp.example.org NS ns.lab.corp.example.org"))];
    world.server(ONE).behaviour = Behaviour::Liar(referral);
    let seen = world.resolve("a.lab.corp.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.answer.len(), seen.failure, seen.sends), (Rcode::NOERROR, 0, None, 1));
}

#[test]
fn a_denial_without_soa_is_good_once() {
    let mut world = plain(vec![forward("corp.example.org", 1)]);
    world.server(ONE).behaviour = Behaviour::Liar(Vec::new());
    for _ in 0..2 {
        let seen = world.resolve("www.corp.example.org", Rtype::A);
        assert_eq!((seen.rcode, seen.answer.len(), seen.sends), (Rcode::NOERROR, 0, 1));
    }
    // Nor does one count that leans on a zone above, if nobody proves it.
    let soa = record("example.org SOA ns.example.org admin.example.org 1 2 3 4 300");
    world.server(ONE).behaviour = Behaviour::Liar(vec![(Section::Authority, soa)]);
    let seen = world.resolve("next.corp.example.org", Rtype::A);
    assert_eq!((seen.rcode, seen.authority.len()), (Rcode::NOERROR, 0), "{seen:?}");
    let from = world.sent.len();
    assert_eq!(world.resolve("example.org", Rtype::SOA).answer.len(), 1);
    assert!(world.sent.len() > from, "it is not remembered");
}

#[test]
fn forwarders_that_fail_are_asked_once_and_say_why() {
    for (behaviour, reason) in [
        (Behaviour::Dead, "silent"),
        (Behaviour::Rcode(Rcode::SERVFAIL), "faulty"),
        (Behaviour::Rcode(Rcode::REFUSED), "lame"),
    ] {
        let mut world = plain(vec![forward("corp.example.org", 1)]);
        world.server(ONE).behaviour = behaviour.clone();
        let seen = world.resolve("www.corp.example.org", Rtype::A);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some(reason)));
        assert_eq!(seen.sends, 1);
        // With another way, that one is gone.
        let first = Route { first: true, ..forward("corp.example.org", 1) };
        let mut world = plain(vec![first]);
        world.server(ONE).behaviour = behaviour;
        // The parent does not delegate it.
        let seen = world.resolve("www.corp.example.org", Rtype::A);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::NXDOMAIN, None), "{reason}");
    }
}

#[test]
fn questions_for_forwarders_are_paid_for() {
    let limits = Limits { aliases: 200, sends: 5, ..Limits::default() };
    let settings = Settings { limits, routes: vec![forward("corp.example.org", 1)], ..plain_settings() };
    let mut world = World::with(settings);
    groups(&mut world);
    let links: String =
        (0..20).map(|at| format!("c{at}.corp.example.org 0 CNAME c{}.corp.example.org\n", at + 1)).collect();
    world.zone("corp.example.org", &[ONE], &links);
    // One link at a time: only what was asked for is answered.
    world.server(ONE).behaviour = Behaviour::Crafted(std::sync::Arc::new(|question| {
        let text = question.qname.to_string();
        let at: u32 = text.strip_prefix('c')?.split('.').next()?.parse().ok()?;
        let line = format!("{text} 0 CNAME c{}.corp.example.org", at + 1);
        Some(crate::world::reply_of(question, &[(Section::Answer, record(&line))]))
    }));
    let seen = world.resolve("c0.corp.example.org", Rtype::A);
    assert_eq!((seen.failure.as_deref(), seen.sends), (Some("limit"), 5));
}

#[test]
fn what_is_not_to_be_kept_is_asked_for_again() {
    let mut world = plain(vec![Route { keeps: false, ..forward("corp.example.org", 1) }]);
    for qname in ["www.corp.example.org", "none.corp.example.org"] {
        for _ in 0..3 {
            assert_eq!(world.resolve(qname, Rtype::A).sends, 1);
        }
    }
}

#[test]
fn forwarded_answers_are_validated() {
    for signing in [Signing::Nsec, NSEC3] {
        let Signed { mut world, .. } = signed(internet(signing, signing), vec![forward(".", 1)]);
        for (qname, rtype, rcode, security) in [
            ("www.example.org", Rtype::A, Rcode::NOERROR, Security::Secure),
            ("x.wild.example.org", Rtype::A, Rcode::NOERROR, Security::Secure),
            ("alias.example.org", Rtype::A, Rcode::NOERROR, Security::Secure),
            ("www.tree.example.org", Rtype::A, Rcode::NOERROR, Security::Secure),
            ("none.example.org", Rtype::A, Rcode::NXDOMAIN, Security::Secure),
            ("www.example.org", Rtype::TXT, Rcode::NOERROR, Security::Secure),
            ("b.example.org", Rtype::A, Rcode::NOERROR, Security::Secure),
            ("none", Rtype::A, Rcode::NXDOMAIN, Security::Secure),
            ("example.org", Rtype::DS, Rcode::NOERROR, Security::Secure),
            ("unsigned.org", Rtype::DS, Rcode::NOERROR, Security::Secure),
            ("example.org", Rtype::DNSKEY, Rcode::NOERROR, Security::Secure),
            (".", Rtype::DNSKEY, Rcode::NOERROR, Security::Secure),
            ("out.example.org", Rtype::A, Rcode::NOERROR, Security::Insecure),
            ("www.unsigned.org", Rtype::A, Rcode::NOERROR, Security::Insecure),
            ("none.unsigned.org", Rtype::A, Rcode::NXDOMAIN, Security::Insecure),
        ] {
            let seen = world.resolve(qname, rtype);
            assert_eq!((seen.rcode, seen.security), (rcode, security), "{qname} {rtype}: {seen:?}");
        }
        assert!(world.sent.iter().all(|sent| sent.to == ip(ONE)), "nobody else is asked");
        // Keys and DS records are known by now.
        let seen = world.resolve("many.example.org", Rtype::TXT);
        assert_eq!((seen.security, seen.sends), (Security::Secure, 1));
        world.change_worker();
        let seen = world.resolve("a.b.example.org", Rtype::TXT);
        assert_eq!(seen.security, Security::Secure);
        let keys = seen.sends - 1;
        assert!(keys <= 2, "DS records and keys are shared by all workers: {keys}");
    }
}

#[test]
fn the_links_of_a_chain_are_asked_for_at_once() {
    for (qname, rcode, security) in [
        ("www.example.org", Rcode::NOERROR, Security::Secure),
        ("none.example.org", Rcode::NXDOMAIN, Security::Secure),
        ("www.unsigned.org", Rcode::NOERROR, Security::Insecure),
    ] {
        let Signed { mut world, .. } = signed(internet(Signing::Nsec, NSEC3), vec![forward(".", 1)]);
        let seen = world.resolve(qname, Rtype::A);
        check(&seen, rcode, security);
        assert_eq!(seen.took_ms, 20, "one round trip for the name, and one for all keys: {seen:?}");
        let asked = asked(&world, 0);
        assert!(asked.len() <= 6, "nothing is asked for that is not needed: {asked:?}");
    }
}

#[test]
fn what_is_asked_for_ahead_and_fails_is_no_fault_of_the_answer() {
    let internet = Internet::default()
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "")
        .zone("sub.deep.org", &["192.0.2.3"], Signing::Nsec, "www.sub.deep.org. A 198.51.100.1");
    let mut signed = signed(internet, vec![forward(".", 1)]);
    let all = signed.all(as_is);
    // There is no zone between, but that is not known before somebody says so.
    signed.world.server(ONE).behaviour = Behaviour::Crafted(std::sync::Arc::new(move |question| {
        let is_between = question.qname == name("deep.org").as_name();
        (!is_between).then(|| crate::world::signed_reply(&all, question, true))
    }));
    let seen = signed.world.resolve("www.sub.deep.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    assert_eq!(seen.took_ms, 20);
    let between = asked(&signed.world, 0).into_iter().filter(|line| line.contains(" deep.org. ")).count();
    assert_eq!(between, 2, "its keys and DS records are asked for");
}

#[test]
fn a_chain_is_asked_for_once() {
    let Signed { mut world, .. } = signed(internet(Signing::Nsec, Signing::Nsec), vec![forward(".", 1)]);
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    let mut asked = asked(&world, 0);
    asked.sort();
    let expected = [
        ". DNSKEY",
        "example.org. DNSKEY",
        "example.org. DS",
        "org. DNSKEY",
        "org. DS",
        "www.example.org. A",
    ];
    assert_eq!(asked, expected.map(|question| format!("{ONE} {question}")));
}

#[test]
fn a_forward_zone_below_is_validated_from_the_root_down() {
    let routes = vec![forward("example.org", 1)];
    let Signed { mut world, .. } = signed(internet(Signing::Nsec, NSEC3), routes);
    world.server("192.0.2.3").behaviour = Behaviour::Dead;
    world.server("192.0.2.4").behaviour = Behaviour::Dead;
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    check(&world.resolve("none.example.org", Rtype::A), Rcode::NXDOMAIN, Security::Secure);
    let of = |question: &str| {
        let sent = world.sent.iter().rfind(|sent| sent.question == question);
        sent.unwrap_or_else(|| panic!("{question} is asked for")).to
    };
    assert_eq!(of("example.org. DNSKEY"), ip(ONE));
    assert_eq!(of("example.org. DS"), ip("192.0.2.2"), "its parent has them");
}

#[test]
fn a_forward_zone_need_not_be_a_zone() {
    for signing in [Signing::Nsec, NSEC3] {
        let routes = vec![forward("b.example.org", 1)];
        let Signed { mut world, .. } = signed(internet(Signing::Nsec, signing), routes);
        check(&world.resolve("a.b.example.org", Rtype::TXT), Rcode::NOERROR, Security::Secure);
        for _ in 0..2 {
            let seen = world.resolve("none.b.example.org", Rtype::A);
            check(&seen, Rcode::NXDOMAIN, Security::Secure);
            assert_eq!(seen.authority.len(), 1, "the proof is good for the zone above: {seen:?}");
        }
        assert_eq!(world.resolve("none.b.example.org", Rtype::A).sends, 0);
    }
}

#[test]
fn stripped_signatures_are_bogus_and_cd_gives_the_answer() {
    let routes = vec![forward(".", 1)];
    let mut signed = signed(internet(Signing::Nsec, Signing::Nsec), routes);
    let is_stripped = |line: &str| line.starts_with("www.example.org.") && line.contains(" RRSIG A ");
    signed.forwarder(ONE, |line| (!is_stripped(line)).then(|| line.to_owned()));
    let seen = signed.world.resolve("www.example.org", Rtype::A);
    check_bogus(&seen, EdeCode::RRSIGS_MISSING);
    let unchecked = resolve_unchecked(&mut signed, "www.example.org");
    assert_eq!((unchecked.rcode, unchecked.records().count()), (Rcode::NOERROR, 1));
    assert_eq!(unchecked.security, Security::Bogus);
    check(&signed.world.resolve("alias.example.org", Rtype::CNAME), Rcode::NOERROR, Security::Secure);
}

#[test]
fn a_forwarder_that_knows_nothing_of_dnssec_is_not_believed() {
    let mut signed = signed(internet(Signing::Nsec, Signing::Nsec), vec![forward(".", 1)]);
    signed.forwarder(ONE, |line| {
        let is_dnssec = ["RRSIG", "DNSKEY", "NSEC", "DS"].iter().any(|it| line.contains(&format!(" {it} ")));
        (!is_dnssec).then(|| line.to_owned())
    });
    for (qname, rcode) in [("www.example.org", "bogus"), ("www.unsigned.org", "bogus")] {
        let seen = signed.world.resolve(qname, Rtype::A);
        assert_eq!((seen.rcode, seen.failure.as_deref()), (Rcode::SERVFAIL, Some(rcode)), "{qname}");
    }
}

#[test]
fn a_bogus_reply_has_another_forwarder_asked_before_it_counts() {
    let forged = |line: &str| Some(line.replace("198.51.100.1", "198.51.100.66"));
    let mut both = signed(internet(Signing::Nsec, Signing::Nsec), vec![forward(".", 2)]);
    both.forwarder(TWO, forged);
    let seen = both.world.resolve("www.example.org", Rtype::A);
    check(&seen, Rcode::NOERROR, Security::Secure);
    assert_eq!(seen.answer, ["www.example.org. 300 A 198.51.100.1"]);
    let questions = both.world.sent.iter().filter(|sent| sent.question == "www.example.org. A");
    assert_eq!(questions.map(|sent| sent.to).collect::<Vec<_>>(), [ip(TWO), ip(ONE)]);
    // The only one is asked again, but not for ever.
    let mut one = signed(internet(Signing::Nsec, Signing::Nsec), vec![forward(".", 1)]);
    one.forwarder(ONE, forged);
    check_bogus(&one.world.resolve("www.example.org", Rtype::A), EdeCode::DNSSEC_BOGUS);
    let questions = one.world.sent.iter().filter(|sent| sent.question == "www.example.org. A");
    assert_eq!(questions.count(), 3);
    assert_eq!(one.world.resolve("www.example.org", Rtype::A).sends, 0, "that is remembered");
}

#[test]
fn negative_trust_anchors_count_for_forward_zones() {
    let told = NegativeAnchor { zone: HeapName::new(name("example.org").as_name()), ends_at: None };
    let internet = internet(Signing::Nsec, Signing::Nsec).trusting(|trust| trust.negative = vec![told]);
    let mut signed = signed(internet, vec![forward("example.org", 1)]);
    signed.forwarder(ONE, without_signatures);
    // Nobody is asked for keys, whether the world outside can be reached or not.
    signed.world.server("192.0.2.1").behaviour = Behaviour::Dead;
    for (qname, rcode) in [("www.example.org", Rcode::NOERROR), ("none.example.org", Rcode::NXDOMAIN)] {
        let seen = signed.world.resolve(qname, Rtype::A);
        check(&seen, rcode, Security::Insecure);
        assert_eq!(seen.sends, 1);
    }
}

#[test]
fn an_island_of_trust_is_validated_behind_forwarders() {
    let island = Internet::default()
        .zone("example.org", &["192.0.2.3"], Signing::Nsec, "www.example.org. A 198.51.100.1")
        .zone("net", &["192.0.2.4"], Signing::No, "www.net. A 198.51.100.2");
    let Signed { mut world, .. } = signed(island, vec![forward(".", 1)]);
    check(&world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    check(&world.resolve("none.example.org", Rtype::A), Rcode::NXDOMAIN, Security::Secure);
    check(&world.resolve("www.net", Rtype::A), Rcode::NOERROR, Security::Indeterminate);
}

#[test]
fn permissive_validation_gives_what_is_bogus() {
    let settings =
        Settings { routes: vec![forward(".", 1)], validation: Validation::Permissive, ..plain_settings() };
    let mut signed = internet(Signing::Nsec, Signing::Nsec).with(settings).build();
    signed.forwarder(ONE, without_signatures);
    groups(&mut signed.world);
    check(&signed.world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Bogus);
}

#[test]
fn a_zone_whose_keys_a_forwarder_leaves_out_is_insecure_where_settings_say_so() {
    let bare = |line: &str| {
        let is_of_dnssec = [" RRSIG ", " DNSKEY ", " NSEC ", " DS "].iter().any(|it| line.contains(it));
        (!is_of_dnssec).then(|| line.to_owned())
    };
    let as_signed = |line: &str| Some(line.to_owned());
    for requires_anchor_keys in [true, false] {
        let internet = internet(Signing::Nsec, Signing::Nsec)
            .trusting(|trust| trust.requires_anchor_keys = requires_anchor_keys);
        let mut signed = signed(internet, vec![forward(".", 1)]);
        signed.forwarder(ONE, bare);
        for (qname, rtype, rcode) in [
            (".", Rtype::DNSKEY, Rcode::NOERROR),
            ("www.example.org", Rtype::A, Rcode::NOERROR),
            ("none.example.org", Rtype::A, Rcode::NXDOMAIN),
            ("www.unsigned.org", Rtype::A, Rcode::NOERROR),
        ] {
            let seen = signed.world.resolve(qname, rtype);
            match requires_anchor_keys {
                true => check_bogus(&seen, EdeCode::DNSKEY_MISSING),
                false => check(&seen, rcode, Security::Insecure),
            }
        }
        // A minute later the keys are asked for again.
        signed.forwarder(ONE, as_signed);
        signed.world.pass_ms(61_000);
        check(&signed.world.resolve("alias.example.org", Rtype::A), Rcode::NOERROR, Security::Secure);
    }
    // Without any reply to the question for the keys.
    let internet =
        internet(Signing::Nsec, Signing::Nsec).trusting(|trust| trust.requires_anchor_keys = false);
    let mut signed = signed(internet, vec![forward(".", 1)]);
    let zones = signed.all(bare);
    signed.world.server(ONE).behaviour = Behaviour::Crafted(std::sync::Arc::new(move |question| {
        let is_for_keys = matches!(question.qtype, Rtype::DNSKEY | Rtype::DS);
        (!is_for_keys).then(|| crate::world::signed_reply(&zones, question, true))
    }));
    check(&signed.world.resolve("www.example.org", Rtype::A), Rcode::NOERROR, Security::Insecure);
}

#[test]
fn a_trace_says_who_was_asked_and_who_answered() {
    let mut world = plain(vec![forward("corp.example.org", 1)]);
    let lines = world.trace("www.corp.example.org", Rtype::A);
    let expected = [
        "0.0 ms  forwarders of corp.example.org.  www.corp.example.org. A: asked".to_owned(),
        format!("10.0 ms  {ONE}:53 for corp.example.org.  www.corp.example.org. A: answer"),
    ];
    assert_eq!(lines, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_forwarders_say_what_is_secure_is_true(seed: u64) {
        let questions = [
            ("www.example.org", Rtype::A),
            ("none.example.org", Rtype::A),
            ("x.wild.example.org", Rtype::A),
            ("alias.example.org", Rtype::A),
            ("www.tree.example.org", Rtype::A),
            ("b.example.org", Rtype::TXT),
            ("example.org", Rtype::DNSKEY),
            ("unsigned.org", Rtype::DS),
            ("none", Rtype::A),
        ];
        let signing = if seed.is_multiple_of(2) { Signing::Nsec } else { NSEC3 };
        let first = seed.is_multiple_of(3);
        let route = Route { first, ..forward(".", 2) };
        let mut signed = signed(internet(signing, signing), vec![route]);
        let truth: Vec<Seen> =
            questions.iter().map(|&(name, rtype)| signed.world.resolve(name, rtype)).collect();
        prop_assert!(truth.iter().all(|seen| seen.security == Security::Secure));
        signed.world.reseed(seed);
        let lies = ["www.example.org A 192.0.2.66", "example.org NS ns.evil.org", "example.org DNSKEY 257 3 13 AAAA"];
        let lies = lies.map(|line| (Section::Answer, record(line))).to_vec();
        let behaviours = [Behaviour::Honest, Behaviour::Garbled, Behaviour::Liar(lies), Behaviour::Dead];
        let mut secure = 0;
        for (one, other) in (0..4).flat_map(|one| (0..4).map(move |other| (one, other))) {
            for (address, behaviour) in [(ONE, one), (TWO, other)] {
                signed.world.server(address).behaviour = behaviours[behaviour].clone();
            }
            // Nothing is known any more.
            signed.world.pass_ms(20_000_000);
            for (&(name, rtype), truth) in questions.iter().zip(&truth) {
                let seen = signed.world.resolve(name, rtype);
                prop_assert!(seen.sends <= 64 && seen.took_ms <= 20_000, "{:?}", seen);
                if seen.security == Security::Secure {
                    prop_assert_eq!(seen.rcode, truth.rcode);
                    prop_assert_eq!(without_ttl(&seen.answer), without_ttl(&truth.answer));
                    secure += 1;
                } else {
                    prop_assert!(seen.rcode == Rcode::SERVFAIL, "{} {:?}", name, seen);
                }
            }
        }
        prop_assert!(secure >= 9, "honest forwarders are believed: {}", secure);
    }
}
