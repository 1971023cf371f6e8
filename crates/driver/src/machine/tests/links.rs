//! When connections are opened, doubted and given up.

use wire::Rcode;

use super::sim::{Over, Sim, pool, server};
use exchange::network::LinkKey;
use plan::upstreams::{Connections, Pick, PoolPlan, Protocol, ServerPlan, Way};

/// A pool of one server that is asked over TCP.
fn connected(connections: Connections) -> PoolPlan {
    let mut plan = pool(Pick::Ordered, &[]);
    let way = Way { protocol: Protocol::Tcp, connections, ..Way::default() };
    plan.servers = vec![ServerPlan::new(server(1), way)];
    plan
}

fn links(sim: &Sim) -> Vec<LinkKey> {
    sim.machine.network().links.keys().copied().map(LinkKey).collect()
}

#[test]
fn what_is_outstanding_on_a_silent_connection_is_asked_over_another() {
    let mut sim = Sim::new(vec![connected(Connections::default())]);
    let asker = sim.ask("www.example.org");
    let first = sim.sent();
    sim.open_link(&first);
    sim.pass(1400);
    assert!(sim.sent_nothing(), "a slow name is no reason to ask again");
    sim.pass(200);
    let again = sim.sent();
    assert_ne!(first.over, again.over);
    sim.open_link(&again);
    sim.reply(&again, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    let next = sim.ask("next.example.org");
    let sent = sim.sent();
    assert_eq!(sent.over, again.over, "the silent one is not used any more");
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&next], Ok(Rcode::NOERROR));
}

#[test]
fn a_connection_that_stays_silent_is_closed() {
    let mut sim = Sim::new(vec![connected(Connections::default())]);
    let asker = sim.ask("www.example.org");
    let first = sim.sent();
    sim.open_link(&first);
    sim.pass(2100);
    let again = sim.sent();
    sim.open_link(&again);
    let Over::Tcp(silent) = first.over else { panic!("a connection") };
    sim.pass(1500);
    assert!(links(&sim).contains(&silent));
    sim.pass(500);
    assert!(!links(&sim).contains(&silent), "four seconds of silence");
    sim.pass(1000);
    assert!(sim.ended[&asker].is_err());
}

#[test]
fn a_connection_on_which_others_are_answered_is_not_silent() {
    let mut sim = Sim::new(vec![connected(Connections::default())]);
    let slow = sim.ask("slow.example.org");
    let first = sim.sent();
    sim.open_link(&first);
    for round in 0..8 {
        sim.pass(500);
        let quick = sim.ask(&format!("n{round}.example.org"));
        let sent = sim.sent();
        assert_eq!(sent.over, first.over);
        sim.reply(&sent, Rcode::NOERROR);
        assert_eq!(sim.ended[&quick], Ok(Rcode::NOERROR));
    }
    assert!(!sim.ended.contains_key(&slow));
    sim.reply(&first, Rcode::NOERROR);
    assert_eq!(sim.ended[&slow], Ok(Rcode::NOERROR));
}

#[test]
fn the_only_connection_there_may_be_is_replaced_when_it_is_silent() {
    let mut sim = Sim::new(vec![connected(Connections { max: 1, ..Connections::default() })]);
    let asker = sim.ask("www.example.org");
    let first = sim.sent();
    sim.open_link(&first);
    sim.pass(2100);
    assert_eq!(links(&sim).len(), 1);
    let again = sim.sent();
    sim.open_link(&again);
    sim.reply(&again, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn connections_that_are_kept_are_opened_before_anybody_asks_and_again_when_they_end() {
    let mut sim = Sim::new(vec![connected(Connections { min: 2, ..Connections::default() })]);
    assert_eq!(links(&sim).len(), 2);
    for link in links(&sim) {
        sim.machine.link_opened(link, sim.now);
    }
    sim.pass(60_000);
    assert_eq!(links(&sim).len(), 2, "they may idle");
    let ended = links(&sim)[0];
    sim.machine.link_closed(ended, None, sim.now);
    sim.settle();
    assert_eq!(links(&sim).len(), 1);
    sim.pass(1000);
    assert_eq!(links(&sim).len(), 2);
}

#[test]
fn a_server_that_takes_no_connections_is_not_pestered() {
    let mut sim = Sim::new(vec![connected(Connections { min: 2, ..Connections::default() })]);
    let mut attempts = 0;
    for _ in 0..600 {
        for link in links(&sim) {
            attempts += 1;
            sim.machine.link_closed(link, Some("refused".to_owned()), sim.now);
            sim.settle();
        }
        sim.machine.network_mut().queued.clear();
        sim.pass(100);
    }
    assert!((20..200).contains(&attempts), "{attempts} attempts in a minute");
    let status = sim.machine.status(sim.now);
    assert_eq!(status.upstreams[0].trouble.as_deref(), Some("refused"));
}

#[test]
fn a_connection_without_work_is_closed_after_its_time() {
    let mut sim = Sim::new(vec![connected(Connections { idle_ms: 3000, ..Connections::default() })]);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    sim.open_link(&sent);
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    sim.pass(2900);
    assert_eq!(links(&sim).len(), 1);
    sim.pass(1000);
    assert_eq!(links(&sim).len(), 0);
}

#[test]
fn many_queries_open_more_connections_and_never_more_than_there_may_be() {
    for max in [1, 2, 3] {
        let mut sim = Sim::new(vec![connected(Connections { max, ..Connections::default() })]);
        for number in 0..250 {
            sim.ask(&format!("n{number}.example.org"));
            assert!(links(&sim).len() <= usize::from(max), "{number} queries");
        }
        assert_eq!(links(&sim).len(), usize::from(max), "each carries 64 before another is opened");
    }
}
