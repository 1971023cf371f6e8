//! What one client can take from others, and what a lack of something on our side does to
//! upstreams: nothing.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use engine::Failure;
use engine::ops::split::{Rule, SplitStep, Unusable};
use identity::Registry;
use timers::Span;
use wire::{Prefix, Rcode};

use super::sim::{CLIENT, Over, Sent, Sim, pool, server};
use crate::clients::Held;
use plan::upstreams::{Limits, Pick, Plan, ServerPlan, WaitNetwork};

fn client(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

/// A client whose address may be forged.
const FORGED: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

fn is_dead(sent: &Sent) -> bool {
    sent.bytes.windows(4).any(|part| part == b"dead")
}

#[test]
fn a_name_without_an_answer_holds_two_ids_however_often_it_is_asked() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("dead.example.org");
    let mut most = 0;
    for round in 0..44 {
        // The server is there, and has nothing to say about that name.
        let live = sim.ask(&format!("live{round}.example.org"));
        sim.run(100, |sent| (!is_dead(sent)).then_some(Rcode::NOERROR));
        assert_eq!(sim.ended[&live], Ok(Rcode::NOERROR));
        most = most.max(sim.outstanding());
    }
    assert!(!sim.ended.contains_key(&asker));
    assert_eq!((most, sim.counters.exchange.sent_udp.read() > 44 + 4), (2, true), "asked again and again");
    sim.pass(200);
    assert_eq!(sim.ended[&asker], Err(Failure::Timeout));
}

#[test]
fn the_answer_to_the_packet_before_the_last_is_taken() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let _first = sim.sent();
    sim.pass(1200);
    let second = sim.sent();
    let _third = sim.sent();
    assert!(sim.sent_nothing());
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_lack_of_descriptors_fails_the_query_and_not_the_upstream() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.machine.network_mut().lacks_descriptors = true;
    let asker = sim.ask("www.example.org");
    assert_eq!(sim.ended[&asker], Err(Failure::Overloaded));
    assert!(sim.is_up(1));
    assert_eq!((sim.counters.forward.upstreams_down.read(), sim.counters.exchange.shortages.read()), (0, 1));
    sim.machine.network_mut().lacks_descriptors = false;
    sim.warm_up(1, 1);
    // What is open serves on.
    sim.machine.network_mut().lacks_descriptors = true;
    sim.warm_up(100, 1);
}

#[test]
fn a_connection_that_cannot_be_tried_is_no_failure_of_the_upstream() {
    let mut plan = pool(Pick::Ordered, &[]);
    plan.servers = vec![ServerPlan::tcp(server(1))];
    let mut sim = Sim::new(vec![plan]);
    let asker = sim.ask("www.example.org");
    let Over::Tcp(key) = sim.sent().over else { panic!("a connection") };
    sim.machine.link_lacked(key, sim.now);
    sim.settle();
    assert_eq!(sim.ended[&asker], Err(Failure::Overloaded));
    assert!(sim.is_up(1));
    assert_eq!((sim.counters.forward.upstreams_down.read(), sim.counters.exchange.shortages.read()), (0, 1));
}

#[test]
fn a_busy_upstream_leaves_sockets_to_the_others() {
    let limits = Limits { sockets_max: 8, ..Limits::default() };
    let first = pool(Pick::Ordered, &[1]);
    let mut second = pool(Pick::Ordered, &[2]);
    (second.id, second.name) = (engine::PoolId(1), "other".into());
    let mut sim = Sim::with_limits(vec![first, second], limits);
    sim.warm_up(200, 1);
    assert_eq!(sim.machine.network().sockets.len(), 8);
    let split = Rc::new(SplitStep::of_policies(Rule::Race(Unusable::default()), &[0, 0]));
    let asker = sim.ask_split("www.example.org", &split, false);
    sim.run(5, |sent| (sent.to == server(2)).then_some(Rcode::NOERROR));
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn thirty_thousand_dead_names_a_second_of_one_client_cost_others_nothing() {
    let limits =
        Limits { fetching_max: 1024, waiting_max: 2048, waiting_per_client_max: 128, ..Limits::default() };
    let mut sim = Sim::with_limits(vec![pool(Pick::Ordered, &[1])], limits);
    sim.warm_up(20, 5);
    let greedy = client(66);
    let mut others = Vec::new();
    for ms in 0..2000 {
        for i in 0..30 {
            sim.ask_from(&format!("{ms}-{i}.dead.example.org"), Some(greedy), None);
        }
        if ms % 33 == 0 {
            others.push(sim.ask_from(&format!("n{ms}.example.org"), Some(client((ms / 33 % 5) as u8)), None));
        }
        sim.run(1, |sent| (!is_dead(sent)).then_some(Rcode::NOERROR));
        assert!(sim.machine.active() <= 512 + 1, "{} fetches", sim.machine.active());
    }
    sim.run(5, |sent| (!is_dead(sent)).then_some(Rcode::NOERROR));
    assert_eq!(others.len(), 61);
    for other in &others {
        assert_eq!(sim.ended.get(other), Some(&Ok(Rcode::NOERROR)));
    }
    let counters = &sim.counters;
    assert_eq!(
        (counters.driver.shed_fetching.read(), counters.driver.shed_waiting.read()),
        (0, 0),
        "nobody else's"
    );
    assert!(counters.driver.shed_client.read() > 0 && counters.driver.shed_oldest.read() > 0);
    assert_eq!((counters.forward.upstreams_down.read(), counters.exchange.shortages.read()), (0, 0));
}

#[test]
fn the_same_over_connections_to_the_upstream() {
    let limits =
        Limits { fetching_max: 1024, waiting_max: 2048, waiting_per_client_max: 128, ..Limits::default() };
    let mut plan = pool(Pick::Ordered, &[]);
    plan.servers = vec![ServerPlan::tcp(server(1))];
    let mut sim = Sim::with_limits(vec![plan], limits);
    let mut others = Vec::new();
    let answer = |sim: &mut Sim| {
        let links: Vec<u32> = sim.machine.network().links.keys().copied().collect();
        for link in links {
            sim.machine.link_opened(exchange::network::LinkKey(link), sim.now);
        }
        sim.run(1, |sent| (!is_dead(sent)).then_some(Rcode::NOERROR));
    };
    for ms in 0..1000 {
        for i in 0..10 {
            sim.ask_from(&format!("{ms}-{i}.dead.example.org"), Some(client(66)), None);
        }
        if ms % 10 == 0 {
            others.push(sim.ask_from(&format!("n{ms}.example.org"), Some(client(1)), None));
        }
        answer(&mut sim);
    }
    answer(&mut sim);
    for other in &others {
        assert_eq!(sim.ended.get(other), Some(&Ok(Rcode::NOERROR)));
    }
    assert_eq!(sim.counters.forward.upstreams_down.read(), 0);
}

#[test]
fn when_all_room_is_taken_the_oldest_query_of_the_client_with_the_most_goes() {
    let limits = Limits { fetching_max: 100, waiting_per_client_max: 1000, ..Limits::default() };
    let mut sim = Sim::with_limits(vec![pool(Pick::Ordered, &[1])], limits);
    let few: Vec<u32> =
        (0..10).map(|i| sim.ask_from(&format!("few{i}.example.org"), Some(client(1)), None)).collect();
    let many: Vec<u32> =
        (0..90).map(|i| sim.ask_from(&format!("many{i}.example.org"), Some(client(2)), None)).collect();
    let third = sim.ask_from("third.example.org", Some(client(3)), None);
    assert_eq!((sim.ended.len(), sim.ended.get(&many[0])), (1, Some(&Err(Failure::Overloaded))));
    assert_eq!(sim.machine.active(), 100);
    // The one with the most gets a place for a new query only when an old one of its own has had
    // its chance.
    let more = sim.ask_from("more.example.org", Some(client(2)), None);
    assert_eq!(sim.ended.get(&more), Some(&Err(Failure::Overloaded)));
    sim.pass(200);
    let again = sim.ask_from("again.example.org", Some(client(2)), None);
    assert!(!sim.ended.contains_key(&again));
    assert_eq!(sim.ended.get(&many[1]), Some(&Err(Failure::Overloaded)));
    sim.run(400, |_| Some(Rcode::NOERROR));
    for asker in few.iter().chain(&many[2..]).chain([&third, &again]) {
        assert_eq!(sim.ended.get(asker), Some(&Ok(Rcode::NOERROR)));
    }
    assert_eq!((sim.machine.waiting(), sim.machine.active()), (0, 0));
}

#[test]
fn a_query_may_take_the_place_of_the_only_one_that_waits_for_the_same() {
    let limits = Limits { waiting_max: 2, waiting_per_client_max: 1, ..Limits::default() };
    let mut sim = Sim::with_limits(vec![pool(Pick::Ordered, &[1])], limits);
    let first = sim.ask("www.example.org");
    sim.pass(250);
    let second = sim.ask("www.example.org");
    assert_eq!(sim.ended.get(&first), Some(&Err(Failure::Overloaded)));
    assert!(!sim.ended.contains_key(&second));
    sim.run(5, |_| Some(Rcode::NOERROR));
    assert_eq!(sim.ended[&second], Ok(Rcode::NOERROR));
    assert_eq!((sim.machine.waiting(), sim.machine.active(), sim.machine.index.len()), (0, 0, 0));
}

#[test]
fn of_those_who_wait_for_one_fetch_any_can_go() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let askers: Vec<u32> =
        (1..=5).map(|last| sim.ask_from("www.example.org", Some(client(last)), None)).collect();
    for (last, index) in [(3, 2), (1, 0), (5, 4)] {
        let cell = sim.machine.clients.cell(client(last));
        assert!(sim.machine.shed_oldest(cell, Span(0), Failure::Overloaded, sim.now));
        sim.settle();
        assert_eq!(sim.ended[&askers[index]], Err(Failure::Overloaded));
    }
    let sent = sim.sent();
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!((sim.ended[&askers[1]], sim.ended[&askers[3]]), (Ok(Rcode::NOERROR), Ok(Rcode::NOERROR)));
    assert_eq!(sim.machine.waiting(), 0);
}

#[test]
fn a_query_that_waits_for_branches_can_go_and_leaves_nothing() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let split = Rc::new(SplitStep::of_policies(Rule::Race(Unusable::default()), &[0]));
    let asker = sim.ask_split("www.example.org", &split, true);
    let cell = sim.machine.clients.cell(CLIENT);
    // It came before its branches.
    assert!(sim.machine.shed_oldest(cell, Span(0), Failure::Overloaded, sim.now));
    sim.settle();
    assert_eq!(sim.ended[&asker], Err(Failure::Overloaded));
    assert_eq!((sim.machine.splits.len(), sim.machine.split_index.len()), (0, 0));
    sim.run(10_000, |_| Some(Rcode::NOERROR));
    assert_eq!((sim.machine.waiting(), sim.machine.active()), (0, 0));
}

#[test]
fn so_many_replies_are_held_for_an_address_that_may_be_forged() {
    let limits = Limits { unproven_per_client_max: 1000, ..Limits::default() };
    let mut sim = Sim::with_limits(vec![pool(Pick::Ordered, &[1])], limits);
    let forged: Vec<u32> = (0..4000).map(|_| sim.ask_from("www.example.org", Some(FORGED), None)).collect();
    let proven: Vec<u32> = (0..50).map(|_| sim.ask("www.example.org")).collect();
    let too_many = sim.ended.values().filter(|brought| **brought == Err(Failure::ClientLimit));
    assert_eq!(too_many.count(), 3000);
    let (first, over_udp) = (sim.sent(), sim.sent_nothing());
    assert!(over_udp && matches!(first.over, Over::Udp(_)));
    sim.reply(&first, Rcode::NOERROR);
    let held = forged.iter().filter(|asker| sim.ended[asker] == Ok(Rcode::NOERROR)).count();
    assert_eq!(held, 1000, "of all that is let loose at once");
    assert!(proven.iter().all(|asker| sim.ended[asker] == Ok(Rcode::NOERROR)));
    let cell = sim.machine.clients.cell(FORGED);
    assert_eq!((sim.machine.clients.held(cell, Held::Unproven), sim.machine.clients.waiting(cell)), (0, 0));
}

/// Returns how many of so many queries of a client may wait.
fn held(sim: &mut Sim, client: IpAddr, count: usize) -> usize {
    let asked: Vec<u32> = (0..count).map(|_| sim.ask_from("www.example.org", Some(client), None)).collect();
    let refused: Vec<_> = asked.iter().filter_map(|asker| sim.ended.get(asker)).collect();
    assert!(refused.iter().all(|brought| **brought == Err(Failure::ClientLimit)), "{refused:?}");
    count - refused.len()
}

#[test]
fn wait_limit_netblock_says_how_many_replies_are_held_for_clients_of_a_network() {
    let limits = Limits { unproven_per_client_max: 20, proven_per_client_max: 40, ..Limits::default() };
    let network = |prefix: &str, unproven_max, proven_max| {
        let (address, bits) = prefix.split_once('/').expect("a prefix");
        let prefix = Prefix::new(address.parse().expect("an address"), bits.parse().expect("bits"));
        WaitNetwork { prefix, unproven_max, proven_max }
    };
    let mut sim = Sim::with_limits(vec![pool(Pick::Ordered, &[1])], limits);
    // The longest prefix first, as plans have them.
    let wait_networks = [
        network("203.0.113.64/32", Some(u32::MAX), None),
        network("203.0.113.64/26", Some(5), None),
        network("198.51.100.0/24", None, Some(3)),
    ];
    let plan =
        Plan { pools: vec![pool(Pick::Ordered, &[1])], limits, wait_networks: Arc::new(wait_networks) };
    let resolvers = plan::resolvers::Plan::default();
    sim.machine.adopt((&plan, &resolvers), &Registry::default(), sim.now);
    for (client, expect) in [
        ("203.0.113.1", 20),
        ("203.0.113.65", 5),
        ("203.0.113.64", 100),
        ("192.0.2.1", 40),
        ("198.51.100.1", 3),
    ] {
        let address = client.parse().expect("an address");
        assert_eq!(held(&mut sim, address, 100), expect, "{client}");
    }
}
