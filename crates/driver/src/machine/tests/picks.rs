//! Groups that ask several servers and weigh what they say.

use engine::{Failure, FetchWant, Want};
use wire::Rcode;

use super::sim::{Asker, CLIENT, POOL, Sent, Sim, pool, question, reply_with, server};
use plan::upstreams::Pick;

fn sim(pick: Pick, servers: &[u8]) -> Sim {
    Sim::new(vec![pool(pick, servers)])
}

/// Returns what was sent, in the order of the servers.
fn sent(sim: &mut Sim, count: usize) -> Vec<Sent> {
    let mut sent: Vec<Sent> = (0..count).map(|_| sim.sent()).collect();
    sent.sort_by_key(|sent| sent.to);
    sent
}

#[test]
fn an_answer_without_records_waits_for_one_with() {
    let pick = Pick::PreferPositive { width: 2, wait_ms: 100 };
    let mut sim = sim(pick, &[1, 2]);
    let asker = sim.ask("www.example.org");
    let both = sent(&mut sim, 2);
    sim.reply(&both[0], Rcode::NXDOMAIN);
    assert!(!sim.ended.contains_key(&asker));
    sim.pass(99);
    sim.reply(&both[1], Rcode::NOERROR);
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NOERROR)));

    let mut sim = self::sim(pick, &[1, 2]);
    let asker = sim.ask("two.example.org");
    let both = sent(&mut sim, 2);
    sim.hear(both[0].over, &reply_with(&both[0].bytes, Rcode::NOERROR, &[]));
    sim.pass(100);
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NOERROR)), "NODATA, when its time is over");
    // The one that was slower than that is none the worse for it.
    assert!(sim.is_up(2));
    sim.reply(&both[1], Rcode::NOERROR);

    let mut sim = self::sim(pick, &[1, 2]);
    let asker = sim.ask("three.example.org");
    let both = sent(&mut sim, 2);
    sim.reply(&both[0], Rcode::NXDOMAIN);
    sim.reply(&both[1], Rcode::NXDOMAIN);
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NXDOMAIN)), "all say so");

    let asker = sim.ask("four.example.org");
    let both = sent(&mut sim, 2);
    sim.reply(&both[0], Rcode::NXDOMAIN);
    sim.reply(&both[1], Rcode::SERVFAIL);
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NXDOMAIN)), "a failure is no better answer");
}

#[test]
fn what_enough_servers_agree_on_is_the_answer() {
    let pick = Pick::Consensus { width: 3, agreeing: 2 };
    let mut sim = sim(pick, &[1, 2, 3]);
    let asker = sim.ask("www.example.org");
    let all = sent(&mut sim, 3);
    sim.hear(all[0].over, &reply_with(&all[0].bytes, Rcode::NOERROR, &[66]));
    sim.hear(all[1].over, &reply_with(&all[1].bytes, Rcode::NOERROR, &[1, 2]));
    assert!(!sim.ended.contains_key(&asker));
    // One address in common is enough: large names have many.
    sim.hear(all[2].over, &reply_with(&all[2].bytes, Rcode::NOERROR, &[2, 3]));
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NOERROR)));

    let asker = sim.ask("two.example.org");
    let all = sent(&mut sim, 3);
    sim.hear(all[0].over, &reply_with(&all[0].bytes, Rcode::NOERROR, &[66]));
    sim.reply(&all[1], Rcode::NXDOMAIN);
    sim.reply(&all[2], Rcode::NXDOMAIN);
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NXDOMAIN)));

    // NODATA is not NXDOMAIN, and a server that fails has no vote: the first of equally good ones
    // is taken.
    let asker = sim.ask("three.example.org");
    let all = sent(&mut sim, 3);
    sim.reply(&all[0], Rcode::NXDOMAIN);
    sim.hear(all[1].over, &reply_with(&all[1].bytes, Rcode::NOERROR, &[]));
    sim.reply(&all[2], Rcode::SERVFAIL);
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NXDOMAIN)));
}

#[test]
fn a_single_vote_counts_when_the_others_are_silent() {
    let pick = Pick::Consensus { width: 3, agreeing: 2 };
    let mut sim = sim(pick, &[1, 2, 3]);
    let asker = sim.ask("www.example.org");
    sim.run(10_000, |sent| (sent.to == server(1)).then_some(Rcode::NOERROR));
    assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NOERROR)));
}

#[test]
fn only_members_that_are_named_are_asked() {
    let mut plan = pool(Pick::Ordered, &[1, 2, 3]);
    for (server, member) in plan.servers.iter_mut().zip(0..) {
        server.member = member;
    }
    let mut sim = Sim::new(vec![plan]);
    let ask = |sim: &mut Sim, number, members| {
        let query = engine::OutQuery { members, ..question("www.example.org") };
        let want = Want::Fetch(FetchWant { pool: POOL, query, trusts_ad: false, stale_after_ms: None });
        let text = String::new();
        let asker = Asker { number, want, client: Some(CLIENT), split: None, parent: None, text };
        sim.machine.take(asker, sim.now);
        sim.settle();
    };
    ask(&mut sim, 0, 0b110);
    let first = sim.sent();
    assert_eq!(first.to, server(2));
    sim.reply(&first, Rcode::SERVFAIL);
    let second = sim.sent();
    assert_eq!(second.to, server(3));
    sim.reply(&second, Rcode::SERVFAIL);
    assert_eq!(sim.ended.get(&0), Some(&Ok(Rcode::SERVFAIL)), "the first is never asked");
    // Other members, another fetch; none at all, none.
    ask(&mut sim, 1, 0b001);
    assert_eq!(sim.sent().to, server(1));
    ask(&mut sim, 2, 0b1000);
    assert_eq!(sim.ended.get(&2), Some(&Err(Failure::NoUpstream)));
}
