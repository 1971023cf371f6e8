//! Queries that wait for branches.

use std::rc::Rc;

use engine::ops::split::{Fallback, Rule, SplitStep, Standby, Unusable};
use engine::{Failure, PoolId, Want};
use wire::Rcode;

use super::sim::{Asker, CLIENT, Sent, Sim, pool, server};
use plan::upstreams::{Limits, Pick, PoolPlan};

/// One server each: `.1` is the first branch's, `.2` the second's.
fn pools() -> Vec<PoolPlan> {
    (0..3).map(|i| PoolPlan { id: PoolId(i), ..pool(Pick::Ordered, &[i as u8 + 1]) }).collect()
}

fn fallback(after_ms: u32, standby: Standby) -> Rc<SplitStep> {
    let unusable = Unusable::default();
    let rule = Fallback { after_ms, on_slow: true, standby, unusable };
    Rc::new(SplitStep::of_policies(Rule::Fallback(rule), &[0, 0]))
}

fn is_to(sent: &Sent, last: u8) -> bool {
    sent.to == server(last)
}

#[test]
fn the_standby_is_asked_when_the_first_is_slow_and_only_then() {
    let mut sim = Sim::new(pools());
    let asker = sim.ask_split("www.example.org", &fallback(100, Standby::Late), false);
    let first = sim.sent();
    assert!(is_to(&first, 1));
    sim.pass(99);
    assert!(sim.sent_nothing());
    sim.pass(1);
    let second = sim.sent();
    assert!(is_to(&second, 2));
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!((sim.ended.get(&asker), sim.winners.as_slice()), (Some(&Ok(Rcode::NOERROR)), &[1][..]));
    // The late answer of the first reaches its own fetch, and nobody else.
    sim.reply(&first, Rcode::NOERROR);
    assert_eq!(sim.ended.len(), 3, "the query and its branches");
    assert_eq!(sim.machine.waiting(), 0);
}

#[test]
fn the_first_wins_if_it_is_quick() {
    let mut sim = Sim::new(pools());
    let asker = sim.ask_split("www.example.org", &fallback(100, Standby::Late), false);
    let first = sim.sent();
    sim.pass(50);
    sim.reply(&first, Rcode::NXDOMAIN);
    assert_eq!((sim.ended.get(&asker), sim.winners.as_slice()), (Some(&Ok(Rcode::NXDOMAIN)), &[0][..]));
    sim.pass(5000);
    assert!(sim.sent_nothing(), "nobody asks the standby");
    assert_eq!(sim.branches.len(), 1);
}

#[test]
fn a_failure_starts_the_standby_at_once_and_never_beats_an_answer() {
    let mut sim = Sim::new(pools());
    let asker = sim.ask_split("www.example.org", &fallback(1000, Standby::Late), false);
    let first = sim.sent();
    sim.reply(&first, Rcode::SERVFAIL);
    let second = sim.sent();
    assert!(is_to(&second, 2));
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NOERROR)));
    // When both fail the more telling failure is passed on: an rcode says more than silence.
    let asker = sim.ask_split("two.example.org", &fallback(1000, Standby::Late), false);
    let first = sim.sent();
    sim.reply(&first, Rcode::SERVFAIL);
    sim.run(10_000, |_| None);
    assert_eq!((sim.ended.get(&asker), sim.winners.last()), (Some(&Ok(Rcode::SERVFAIL)), Some(&0)));
}

#[test]
fn an_answer_kept_ready_waits_for_the_first_to_fail_or_to_be_slow() {
    let mut sim = Sim::new(pools());
    let always = fallback(100, Standby::Always);
    let asker = sim.ask_split("www.example.org", &always, false);
    let (first, second) = (sim.sent(), sim.sent());
    assert!(is_to(&first, 1) && is_to(&second, 2));
    sim.reply(&second, Rcode::NOERROR);
    assert!(!sim.ended.contains_key(&asker), "the first may still be quick");
    sim.reply(&first, Rcode::NOERROR);
    assert_eq!(sim.winners, [0]);

    let mut sim = Sim::new(pools());
    let asker = sim.ask_split("slow.example.org", &always, false);
    let (_, second) = (sim.sent(), sim.sent());
    sim.reply(&second, Rcode::NOERROR);
    sim.pass(100);
    assert_eq!((sim.ended.get(&asker), sim.winners.as_slice()), (Some(&Ok(Rcode::NOERROR)), &[1][..]));

    let mut sim = Sim::new(pools());
    let asker = sim.ask_split("bad.example.org", &always, false);
    let (first, second) = (sim.sent(), sim.sent());
    sim.reply(&second, Rcode::NOERROR);
    sim.reply(&first, Rcode::REFUSED);
    assert_eq!((sim.ended.get(&asker), sim.winners.last()), (Some(&Ok(Rcode::NOERROR)), Some(&1)));
}

#[test]
fn being_slow_is_no_reason_unless_it_is_said_to_be_one() {
    let mut sim = Sim::new(pools());
    let rule =
        Fallback { after_ms: 10, on_slow: false, standby: Standby::Late, unusable: Unusable::default() };
    let split = Rc::new(SplitStep::of_policies(Rule::Fallback(rule), &[0, 0]));
    let asker = sim.ask_split("www.example.org", &split, false);
    let first = sim.sent();
    sim.pass(200);
    assert_eq!(sim.branches.len(), 1);
    sim.reply(&first, Rcode::SERVFAIL);
    assert_eq!(sim.branches.len(), 2, "but an unusable answer is");
    assert!(!sim.ended.contains_key(&asker));
}

#[test]
fn the_first_usable_answer_wins_a_race() {
    let mut sim = Sim::new(pools());
    let race = Rc::new(SplitStep::of_policies(Rule::Race(Unusable::default()), &[0, 0, 0]));
    let asker = sim.ask_split("www.example.org", &race, false);
    let (first, second, third) = (sim.sent(), sim.sent(), sim.sent());
    sim.reply(&second, Rcode::SERVFAIL);
    assert!(!sim.ended.contains_key(&asker));
    sim.reply(&third, Rcode::NXDOMAIN);
    assert_eq!((sim.ended.get(&asker), sim.winners.as_slice()), (Some(&Ok(Rcode::NXDOMAIN)), &[2][..]));
    sim.reply(&first, Rcode::NOERROR);
    assert_eq!(sim.machine.waiting(), 0);
}

#[test]
fn equal_queries_share_the_branches_and_different_ones_do_not() {
    let mut sim = Sim::new(pools());
    let split = fallback(100, Standby::Late);
    let askers: Vec<u32> = (0..10).map(|_| sim.ask_split("www.example.org", &split, true)).collect();
    let other = sim.ask_split("other.example.org", &split, true);
    assert_eq!(sim.branches.len(), 2);
    let (first, second) = (sim.sent(), sim.sent());
    sim.reply(&first, Rcode::NOERROR);
    assert!(askers.iter().all(|asker| sim.ended.get(asker) == Some(&Ok(Rcode::NOERROR))));
    assert!(!sim.ended.contains_key(&other));
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(sim.ended.get(&other), Some(&Ok(Rcode::NOERROR)));
    // Decided ones are not joined.
    let again = sim.ask_split("www.example.org", &split, true);
    assert!(!sim.ended.contains_key(&again));
}

#[test]
fn branches_count_as_waiting_and_what_is_too_much_is_shed() {
    let limits = Limits { waiting_max: 4, ..Limits::default() };
    let mut sim = Sim::with_limits(pools(), limits);
    let split = fallback(100, Standby::Always);
    let first = sim.ask_split("a.example.org", &split, false);
    // Query and branches are three; the second query has room for itself alone, so that its
    // branches are shed.
    let second = sim.ask_split("b.example.org", &split, false);
    assert_eq!(sim.ended.get(&second), Some(&Ok(Rcode::SERVFAIL)));
    assert!(!sim.ended.contains_key(&first));
    assert_eq!(sim.machine.waiting(), 3);
}

#[test]
fn sleep_ends_in_time_and_costs_no_packet() {
    let mut sim = Sim::new(pools());
    let sleeper = |number, ms| Asker {
        number,
        want: Want::Sleep(ms),
        client: Some(CLIENT),
        split: None,
        parent: None,
        text: String::new(),
    };
    sim.machine.take(sleeper(1000, 50), sim.now);
    sim.machine.take(sleeper(1001, 0), sim.now);
    sim.settle();
    assert!(sim.ended.contains_key(&1001) && !sim.ended.contains_key(&1000));
    sim.pass(49);
    assert!(!sim.ended.contains_key(&1000));
    sim.pass(1);
    assert_eq!(sim.ended.get(&1000), Some(&Ok(Rcode::NOERROR)));
    assert!(sim.sent_nothing());
}

#[test]
fn who_yields_waits_for_a_turn_and_not_for_time() {
    let mut sim = Sim::new(pools());
    let yielder = |number| Asker {
        number,
        want: Want::Yield,
        client: Some(CLIENT),
        split: None,
        parent: None,
        text: String::new(),
    };
    for number in 1000..1100 {
        sim.machine.take(yielder(number), sim.now);
    }
    sim.settle();
    let ended = |sim: &Sim| (1000..1100).filter(|number| sim.ended.contains_key(number)).count();
    assert_eq!((ended(&sim), sim.machine.has_yielded()), (0, true), "whoever is served now comes first");
    let mut turns = 0;
    while sim.machine.has_yielded() {
        assert!(sim.machine.next_due().is_some_and(|due| due <= sim.now));
        let before = ended(&sim);
        sim.machine.due(sim.now);
        sim.settle();
        turns += 1;
        assert!((1..=16).contains(&(ended(&sim) - before)), "clients wait for a few of them only");
    }
    assert_eq!((ended(&sim), turns, sim.machine.waiting()), (100, 7, 0));
    assert!(sim.sent_nothing());
}

#[test]
fn who_yields_ends_when_the_server_stops() {
    let mut sim = Sim::new(pools());
    let (want, split, parent, text) = (Want::Yield, None, None, String::new());
    sim.machine.take(Asker { number: 1000, want, client: Some(CLIENT), split, parent, text }, sim.now);
    sim.machine.stop(sim.now);
    sim.settle();
    assert_eq!(sim.ended.get(&1000), Some(&Err(Failure::Stopping)));
    assert!(!sim.machine.has_yielded());
}

#[test]
fn a_server_that_stops_lets_nobody_wait() {
    let mut sim = Sim::new(pools());
    let split = fallback(100, Standby::Late);
    let asker = sim.ask_split("a.example.org", &split, false);
    let want = Want::Sleep(60_000);
    let (split, parent, text) = (None, None, String::new());
    sim.machine.take(Asker { number: 1000, want, client: Some(CLIENT), split, parent, text }, sim.now);
    sim.machine.stop(sim.now);
    sim.settle();
    assert_eq!(sim.ended.get(&1000), Some(&Err(Failure::Stopping)));
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::SERVFAIL)));
    assert_eq!(sim.machine.waiting(), 0);
}
