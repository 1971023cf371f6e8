//! Several servers that are asked at once.

use plan::upstreams::Pick;
use wire::Rcode;

use super::sim::{Sim, pool, server};

#[test]
fn in_a_race_a_bad_answer_never_beats_a_good_one() {
    let mut sim = Sim::new(vec![pool(Pick::Race(3), &[1, 2, 3])]);
    let asker = sim.ask("www.example.org");
    let sent = [sim.sent(), sim.sent(), sim.sent()];
    assert!(sim.sent_nothing());
    sim.reply(&sent[0], Rcode::SERVFAIL);
    sim.reply(&sent[1], Rcode::REFUSED);
    assert!(!sim.ended.contains_key(&asker), "one may still answer well");
    sim.reply(&sent[2], Rcode::NXDOMAIN);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NXDOMAIN));
}

#[test]
fn in_a_race_a_late_server_adds_nothing() {
    let mut sim = Sim::new(vec![pool(Pick::Race(3), &[1, 2, 3])]);
    let asker = sim.ask("www.example.org");
    let sent = [sim.sent(), sim.sent(), sim.sent()];
    sim.reply(&sent[1], Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    // The late ones are measured and do no harm.
    sim.pass(20);
    sim.reply(&sent[0], Rcode::NOERROR);
    let status = sim.machine.status(sim.now);
    assert_eq!(status.upstreams[0].srtt_us, Some(20_000));
    sim.pass(2000);
    assert_eq!(sim.machine.forward().exchange().request_count(), 0);
    assert_eq!(sim.machine.status(sim.now).upstreams[2].outstanding, 0);
}

#[test]
fn a_race_outlives_a_short_silence_of_all_its_servers() {
    let mut sim = Sim::new(vec![pool(Pick::Race(3), &[1, 2, 3])]);
    sim.warm_up(20, 1);
    sim.pass(1);
    let askers: Vec<_> = (0..8).map(|i| sim.ask(&format!("www{i}.example.org"))).collect();
    sim.pass(100);
    for asker in &askers {
        assert!(!sim.ended.contains_key(asker), "given up after 100 ms");
    }
    while let Some(sent) = sim.machine.network_mut().queued.pop_front() {
        sim.reply(&sent, Rcode::NOERROR);
    }
    for asker in &askers {
        assert_eq!(sim.ended[asker], Ok(Rcode::NOERROR));
    }
}

#[test]
fn in_a_race_a_silent_server_is_asked_again_before_a_bad_answer_wins() {
    let mut sim = Sim::new(vec![pool(Pick::Race(2), &[1, 2])]);
    let asker = sim.ask("www.example.org");
    let (bad, _lost) = (sim.sent(), sim.sent());
    sim.reply(&bad, Rcode::SERVFAIL);
    sim.pass(300);
    let again = sim.sent();
    assert_eq!(again.to, server(2));
    assert!(!sim.ended.contains_key(&asker), "the good answer may have been lost");
    sim.reply(&again, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_lost_race_with_only_bad_answers_ends_when_the_others_stay_silent() {
    let mut sim = Sim::new(vec![pool(Pick::Race(2), &[1, 2])]);
    let asker = sim.ask("www.example.org");
    let bad = sim.sent();
    sim.reply(&bad, Rcode::SERVFAIL);
    assert!(!sim.ended.contains_key(&asker));
    sim.run(4_000, |_| None);
    assert_eq!(sim.ended[&asker], Ok(Rcode::SERVFAIL));
}
