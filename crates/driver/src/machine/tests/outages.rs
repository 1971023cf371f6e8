//! Outages: who is served how while every server of a group is down, and what is known when one
//! comes back.

use super::sim::*;

use engine::Failure;
use wire::{Query, Rcode, Rtype};

use plan::upstreams::{Patience, Pick, PoolPlan};

/// Returns a simulation in which both servers of the group have been silent for long enough to
/// count as down.
fn silent() -> Sim {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    sim.warm_up(20, 5);
    for round in 0..10 {
        sim.ask(&format!("n{round}.example.org"));
        sim.run(300, |_| None);
    }
    sim.run(5000, |_| None);
    assert!(!sim.is_up(1) && !sim.is_up(2));
    sim
}

#[test]
fn while_every_server_is_down_stale_answers_are_given_at_once() {
    let mut sim = silent();
    let tried = sim.ask_from("first.example.org", Some(CLIENT), Some(1800));
    assert_eq!(sim.impatient, [tried], "served at once, and asked all the same");
    assert!(!sim.sent_nothing());
    for round in 0..1000 {
        let asker = sim.ask_from(&format!("s{round}.example.org"), Some(CLIENT), Some(1800));
        assert_eq!(sim.ended[&asker], Err(Failure::Down), "served at once, and nobody is asked");
    }
    // Work of our own ends as well; a client without a stale answer still has its chance.
    let refresh = sim.ask_from("refresh.example.org", None, Some(1800));
    assert_eq!(sim.ended[&refresh], Err(Failure::Down));
    let without = sim.ask("without.example.org");
    assert!(!sim.ended.contains_key(&without));
    // One query of each half second is sent, however many come.
    let before = sim.counters.exchange.sent_udp.read() - sim.counters.forward.probes.read();
    for round in 0..2000 {
        sim.ask_from(&format!("t{round}.example.org"), Some(CLIENT), Some(1800));
        sim.run(5, |_| None);
    }
    let tries = sim.counters.exchange.sent_udp.read() - sim.counters.forward.probes.read() - before;
    assert!((10..=20).contains(&tries), "{tries} tries in ten seconds");
    assert_eq!(sim.impatient.len() as u64, tries + 1, "each of them is served at once, too");
}

#[test]
fn a_server_that_ignores_probes_comes_back_by_a_clients_question() {
    let mut sim = silent();
    // Nothing but stale data is asked for.
    for round in 0..200 {
        sim.ask_from(&format!("t{round}.example.org"), Some(CLIENT), Some(1800));
        sim.run(5, |sent| {
            let query = Query::parse(&sent.bytes).expect("we send queries");
            (query.question.qtype != Rtype::NS).then_some(Rcode::NOERROR)
        });
    }
    assert!(sim.is_up(1) || sim.is_up(2));
}

#[test]
fn clients_with_a_stale_answer_wait_a_third_of_a_second_for_silent_servers() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.warm_up(20, 5);
    let waiting: Vec<_> =
        (0..50).map(|n| sim.ask_from(&format!("n{n}.example.org"), Some(CLIENT), Some(1800))).collect();
    sim.run(450, |_| None);
    assert!(sim.is_up(1), "it may only pause");
    assert_eq!(sim.impatient.len(), waiting.len(), "nobody waits for longer");
    let next = sim.ask_from("another.example.org", Some(CLIENT), Some(1800));
    let after = sim.ask_from("one-more.example.org", Some(CLIENT), Some(1800));
    assert!(sim.impatient.contains(&next), "served at once, and asked");
    assert_eq!(sim.ended[&after], Err(Failure::Down), "served at once");
    // Whoever has nothing else still waits, and its answer ends the silence.
    let without = sim.ask("without.example.org");
    sim.run(50, |_| Some(Rcode::NOERROR));
    assert!(sim.ended[&without].is_ok());
    let patient = sim.ask_from("patient.example.org", Some(CLIENT), Some(1800));
    assert!(!sim.impatient.contains(&patient) && !sim.ended.contains_key(&patient));
}

#[test]
fn whoever_waits_when_the_last_server_goes_down_is_served() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.warm_up(20, 5);
    let mut asked = Vec::new();
    while sim.is_up(1) {
        asked.push(sim.ask_from(&format!("n{}.example.org", asked.len()), Some(CLIENT), Some(60_000)));
        sim.run(20, |_| None);
    }
    let waiting =
        asked.iter().filter(|asker| !sim.ended.contains_key(asker) && !sim.impatient.contains(asker));
    assert_eq!(waiting.count(), 0);
    assert!(!sim.impatient.is_empty());
}

#[test]
fn a_group_recovers_when_one_of_its_servers_answers_again_and_within_a_second() {
    let mut sim = silent();
    assert_eq!(sim.recovered, []);
    let mut waited = 0;
    while sim.recovered.is_empty() {
        sim.run(1, |sent| (sent.to == server(2)).then_some(Rcode::NOERROR));
        waited += 1;
    }
    assert!(waited <= 750, "{waited} ms");
    assert_eq!((sim.recovered.as_slice(), sim.is_up(1), sim.is_up(2)), (&[POOL][..], false, true));
    // From now on it is asked.
    let asker = sim.ask_from("www.example.org", Some(CLIENT), Some(1800));
    sim.run(5, |sent| (sent.to == server(2)).then_some(Rcode::NOERROR));
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_silent_server_is_asked_as_often_and_waited_for_as_long_as_its_group_says() {
    let patience = Patience { unknown_ms: 376, max_ms: 6016, attempts: 5 };
    let group = PoolPlan { patience, timeout_ms: 15_000, ..pool(Pick::Ordered, &[1]) };
    let mut sim = Sim::new(vec![group]);
    let asker = sim.ask("www.example.org");
    let (mut asked_ms, mut elapsed_ms) = (Vec::new(), 0);
    while !sim.ended.contains_key(&asker) {
        sim.run(1, |sent| {
            // Health checks ask for something else.
            let query = Query::parse(&sent.bytes).expect("we send queries");
            if query.question.qtype == Rtype::A {
                asked_ms.push(elapsed_ms);
            }
            None
        });
        elapsed_ms += 1;
        assert!(elapsed_ms < 14_000, "asked at {asked_ms:?}");
    }
    assert_eq!(asked_ms.len(), 5, "asked at {asked_ms:?}");
    let waits = asked_ms.iter().zip(&asked_ms[1..]).map(|(from, to)| to - from);
    for (wait, expect) in waits.zip([376, 752, 1504, 3008]) {
        assert!((expect - 2..=expect + 2).contains(&wait), "asked at {asked_ms:?}");
    }
    assert!((11_650..11_670).contains(&elapsed_ms), "{elapsed_ms} ms, like Unbound");
    assert_eq!(sim.ended[&asker], Err(Failure::Timeout));
}
