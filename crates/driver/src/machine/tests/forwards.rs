//! Questions of resolvers that groups answer.

use std::net::IpAddr;

use engine::{Failure, ResolveWant, ResolverId, Want};
use plan::resolvers::{Plan, ResolverPlan};
use plan::upstreams::{Limits, Pick, PoolPlan};
use resolver::{Forwarders, HeapName, Route, Settings, Validation, Way};
use wire::{Flags, Name, Query, Rcode};

use super::sim::{CLIENT, POOL, Sim, pool, question, server};

const RESOLVER: ResolverId = ResolverId(3);

fn forwarding(first: bool, validation: Validation) -> ResolverPlan {
    let zone = HeapName::new(Name::ROOT);
    let route = Route { zone, way: Way::Forward(Forwarders(POOL.0)), first, keeps: true };
    let settings = Settings { routes: vec![route], priming: false, validation, ..Settings::default() };
    ResolverPlan {
        id: RESOLVER,
        name: "default".to_owned(),
        octets_max: 1 << 20,
        settings,
        second_level: None,
    }
}

fn start(pools: Vec<PoolPlan>, plan: ResolverPlan) -> Sim {
    Sim::with_plans(pools, Limits::default(), &Plan { resolvers: vec![plan], ..Plan::default() })
}

fn resolve(sim: &mut Sim, text: &str, client: Option<IpAddr>) -> u32 {
    let query = question(text);
    let want = Want::Resolve(ResolveWant {
        resolver: RESOLVER,
        query,
        wants_servers: false,
        watch: None,
        stale_after_ms: None,
    });
    sim.ask_want(text, want, client)
}

#[test]
fn a_group_is_asked_to_recurse_and_its_answer_is_kept() {
    let mut sim = start(vec![pool(Pick::Ordered, &[1, 2])], forwarding(false, Validation::Off));
    let first = resolve(&mut sim, "www.example.org", Some(CLIENT));
    let second = resolve(&mut sim, "www.example.org", Some(CLIENT));
    assert_eq!((sim.machine.active(), sim.machine.waiting()), (1, 2), "what a client waits for counts once");
    let sent = sim.sent();
    let query = Query::parse(&sent.bytes).expect("well formed");
    assert_eq!(sent.to, server(1));
    assert!(query.header.flags.has(Flags::RD) && !query.header.flags.has(Flags::CD));
    assert!(sim.sent_nothing());
    sim.reply(&sent, Rcode::NOERROR);
    for asker in [first, second] {
        assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    }
    let again = resolve(&mut sim, "www.example.org", Some(CLIENT));
    assert_eq!(sim.ended[&again], Ok(Rcode::NOERROR));
    assert!(sim.sent_nothing());
    assert_eq!((sim.machine.active(), sim.machine.waiting()), (0, 0));
}

#[test]
fn a_validator_sets_do_and_cd_and_asks_for_keys() {
    let mut sim = start(vec![pool(Pick::Ordered, &[1])], forwarding(false, Validation::On));
    resolve(&mut sim, "www.example.org", Some(CLIENT));
    let mut asked = Vec::new();
    while !sim.sent_nothing() {
        let sent = sim.sent();
        let query = Query::parse(&sent.bytes).expect("well formed");
        assert!(query.header.flags.has(Flags::CD) && query.wants_dnssec());
        asked.push(format!("{} {}", query.question.qname, query.question.qtype));
    }
    asked.sort();
    assert_eq!(asked, [". DNSKEY", "www.example.org. A"]);
}

#[test]
fn a_group_goes_on_to_its_next_server_by_itself() {
    let mut sim = start(vec![pool(Pick::Ordered, &[1, 2])], forwarding(false, Validation::Off));
    let asker = resolve(&mut sim, "www.example.org", Some(CLIENT));
    let sent = sim.sent();
    sim.reply(&sent, Rcode::SERVFAIL);
    let sent = sim.sent();
    assert_eq!(sent.to, server(2));
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    // What all of them say is passed on as a failure.
    let asker = resolve(&mut sim, "bad.example.org", Some(CLIENT));
    assert!(sim.run(20, |_| Some(Rcode::SERVFAIL)) >= 2);
    assert_eq!(sim.ended[&asker], Ok(Rcode::SERVFAIL));
}

#[test]
fn a_silent_group_is_a_failure_in_time() {
    let mut sim = start(vec![pool(Pick::Ordered, &[1, 2])], forwarding(false, Validation::Off));
    let asker = resolve(&mut sim, "www.example.org", Some(CLIENT));
    sim.pass(20_000);
    assert_eq!(sim.ended[&asker], Ok(Rcode::SERVFAIL));
    assert_eq!((sim.machine.active(), sim.machine.waiting()), (0, 0));
}

#[test]
fn a_group_that_is_down_keeps_nobody_who_has_another_way() {
    let mut sim = start(vec![pool(Pick::Ordered, &[1])], forwarding(true, Validation::Off));
    for number in 0..20 {
        resolve(&mut sim, &format!("n{number}.example.org"), Some(CLIENT));
        sim.pass(1000);
    }
    assert!(!sim.is_up(1));
    sim.pass(20_000);
    sim.machine.network_mut().queued.clear();
    sim.machine.pool_network_mut().queued.clear();
    let mut round = 0;
    // One question now and then tries the group all the same.
    while sim.machine.pool_network_mut().queued.is_empty() {
        resolve(&mut sim, &format!("w{round}.example.org"), Some(CLIENT));
        round += 1;
        assert!(round < 5, "the root is asked at once");
    }
}

#[test]
fn a_stop_ends_what_groups_were_asked() {
    let mut sim = start(vec![pool(Pick::Ordered, &[1])], forwarding(true, Validation::On));
    let asker = resolve(&mut sim, "www.example.org", Some(CLIENT));
    sim.machine.stop(sim.now);
    sim.settle();
    assert_eq!(sim.ended[&asker], Err(Failure::Stopping));
    sim.pass(20_000);
    assert_eq!((sim.machine.active(), sim.machine.waiting()), (0, 0));
}

#[test]
fn a_group_that_is_gone_is_a_failure() {
    let mut sim = start(Vec::new(), forwarding(false, Validation::Off));
    let asker = resolve(&mut sim, "www.example.org", Some(CLIENT));
    assert_eq!(sim.ended[&asker], Ok(Rcode::SERVFAIL));
}
