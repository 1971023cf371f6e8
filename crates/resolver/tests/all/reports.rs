//! Failures that the agents of zones are told of (RFC 9567).

use std::sync::Arc;

use resolver::{Limits, Settings, TrustAnchor, Validation};
use wire::{Class, Flags, OptionCode, Question, Rcode, Rtype, Section, Ttl, Writer};

use crate::referrals::small;
use crate::world::{Behaviour, World, name, plain_settings};

/// The servers of example.org fail, and name an agent.
fn world(settings: Settings, agent: &'static str) -> World {
    let mut world = World::with(settings);
    small(&mut world);
    world.zone(
        "org",
        &[],
        "example.org NS ns1.example.org
         example.org NS ns2.example.org
         ns1.example.org A 192.0.2.3
         ns2.example.org A 192.0.2.4
         agent.org NS ns.agent.org
         ns.agent.org A 192.0.2.9
         alias.org CNAME www.example.org",
    );
    world.zone("agent.org", &["192.0.2.9"], "*.agent.org TXT \"thank you\"");
    let fails = Arc::new(move |question: &Question<'_>| {
        let mut out = vec![0; 512];
        let mut writer = Writer::new(&mut out, 512, 0, Flags::QR.with_rcode(Rcode::SERVFAIL));
        writer.question(question).ok()?;
        let agent = name(agent);
        let option =
            |writer: &mut Writer<'_>| writer.option(OptionCode::REPORT_CHANNEL, agent.as_name().as_bytes());
        writer.opt(1232, Rcode::SERVFAIL, false, option).ok()?;
        let len = writer.finish();
        out.truncate(len);
        Some(out)
    });
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Crafted(fails.clone());
    }
    world
}

fn reporting() -> Settings {
    Settings { error_reports: true, ..plain_settings() }
}

/// The reports that were sent to the agent.
fn reports(world: &World) -> Vec<String> {
    let of_agent = world.sent.iter().filter(|sent| sent.to.to_string() == "192.0.2.9");
    of_agent.map(|sent| sent.question.clone()).collect()
}

#[test]
fn the_agent_of_a_zone_hears_once_what_failed() {
    let mut world = world(reporting(), "agent.org");
    for _ in 0..3 {
        assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::SERVFAIL);
        world.pass_ms(40_000);
    }
    assert_eq!(reports(&world), ["_er.1.www.example.org.23._er.agent.org. TXT"]);
    assert_eq!(world.resolver.counts().reports, 1);
    // An alias leads to what fails, which has its own name.
    world.resolve("alias.org", Rtype::AAAA);
    assert_eq!(reports(&world)[1..], ["_er.28.www.example.org.23._er.agent.org. TXT"]);
}

#[test]
fn nobody_hears_anything_unless_that_is_wanted() {
    let mut world = world(plain_settings(), "agent.org");
    world.resolve("www.example.org", Rtype::A);
    assert!(reports(&world).is_empty());
}

#[test]
fn the_root_is_no_agent() {
    let mut world = world(reporting(), ".");
    world.resolve("www.example.org", Rtype::A);
    assert_eq!(world.resolver.counts().reports, 0);
}

/// The name of a report has the name that failed in it and the agent's behind it (RFC 9567 §6.1.1;
/// CVE-2026-55973): what does not fit into a name is not reported, and fails as it does.
#[test]
fn a_report_whose_name_would_be_too_long_is_not_sent() {
    const LABEL: &str = "a23456789012345678901234567890123456789";
    let agent = "a23456789012345678901234567890123456789.a23456789012345678901234567890123456789.agent.org";
    let mut world = world(reporting(), agent);
    // `_er.1.` and `.23._er.` come to it, and the octets of lengths.
    for (labels, last, reports_sent) in [(3, 18, 1), (3, 19, 1), (5, 39, 1)] {
        let qname = [&vec![LABEL; labels][..], &[&LABEL[..last], "example.org"]].concat().join(".");
        assert_eq!(world.resolve(&qname, Rtype::A).rcode, Rcode::SERVFAIL, "{qname}");
        assert_eq!(world.resolver.counts().reports, reports_sent, "{qname}");
        world.pass_ms(600_000);
    }
}

#[test]
fn a_report_that_fails_is_not_reported() {
    // The agent is in the zone that fails.
    let mut world = world(reporting(), "agent.example.org");
    let seen = world.resolve("www.example.org", Rtype::A);
    assert_eq!(seen.rcode, Rcode::SERVFAIL);
    assert_eq!(world.resolver.counts().reports, 1);
    assert!(world.sent.len() <= 24, "{}", world.sent.len());
    let asked = world.sent.iter().filter(|sent| sent.question.starts_with("_er._er"));
    assert_eq!(asked.count(), 0);
}

#[test]
fn a_zone_that_fails_makes_nobody_send_a_flood_to_its_agent() {
    let mut world = world(reporting(), "agent.org");
    for number in 0..1000 {
        world.want(&format!("n{number}.example.org"), Rtype::A, number);
    }
    world.settle();
    assert!((5..=8).contains(&reports(&world).len()), "{:?}", reports(&world));
}

#[test]
fn a_report_costs_what_its_question_has_left() {
    let limits = Limits { sends: 5, ..Limits::default() };
    let mut world = world(Settings { limits, ..reporting() }, "agent.org");
    world.resolve("www.example.org", Rtype::A);
    assert!(world.sent.len() <= 5, "{}", world.sent.len());
}

/// The zone's servers say nothing of its keys, and of the agent only with other data.
#[test]
fn an_agent_that_a_reply_without_keys_does_not_name_hears_of_them_all_the_same() {
    let mut world = world(Settings { validation: Validation::On, ..reporting() }, "agent.org");
    let half = Arc::new(move |question: &Question<'_>| {
        let mut out = vec![0; 512];
        let is_of_keys = question.qtype == Rtype::DNSKEY;
        let flags = if is_of_keys { Flags::QR } else { Flags(Flags::QR.0 | Flags::AA.0) };
        let mut writer = Writer::new(&mut out, 512, 0, flags);
        writer.question(question).ok()?;
        if !is_of_keys {
            let address = |writer: &mut Writer<'_>| writer.bytes(&[192, 0, 2, 80]);
            let ttl = Ttl::new(60);
            writer.record(Section::Answer, question.qname, Rtype::A, Class::IN, ttl, address).ok()?;
            let agent = name("agent.org");
            let option = |writer: &mut Writer<'_>| {
                writer.option(OptionCode::REPORT_CHANNEL, agent.as_name().as_bytes())
            };
            writer.opt(1232, Rcode::NOERROR, false, option).ok()?;
        }
        let len = writer.finish();
        out.truncate(len);
        Some(out)
    });
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Crafted(half.clone());
    }
    let mut anchors = Vec::new();
    let ds = [[0, 1, 13, 2].as_slice(), &[7; 32]].concat();
    TrustAnchor::add(&mut anchors, name("example.org").as_name(), Rtype::DS, ds);
    world.resolver.trust(&anchors, &[]);
    assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::SERVFAIL);
    assert_eq!(reports(&world), ["_er.1.www.example.org.9._er.agent.org. TXT"]);
}
