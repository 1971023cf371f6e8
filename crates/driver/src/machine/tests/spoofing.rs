//! Forged replies: what somebody who is not on the way can send.

use engine::ClientSubnet;
use wire::Rcode;

use super::sim::{CLIENT, Over, Sent, Sim, pool, question, reply_to, reply_with, server};
use plan::upstreams::{Pick, PoolPlan};

/// A reply to a query that says something else.
fn forged(sent: &Sent) -> Vec<u8> {
    reply_with(&sent.bytes, Rcode::NOERROR, &[66])
}

#[test]
fn no_forged_answer_is_taken_on_a_port_that_was_sent_junk() {
    for junk_count in [0, 100, 200, 256, 257, 300, 1000] {
        let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
        let asker = sim.ask("www.example.org");
        let sent = sim.sent();
        let id = u16::from_be_bytes([sent.bytes[0], sent.bytes[1]]);
        let mut datagram = reply_to(&sent.bytes, Rcode::NOERROR);
        datagram[13] = b'q';
        for number in 1..=junk_count {
            datagram[..2].copy_from_slice(&id.wrapping_add(number).to_be_bytes());
            sim.hear(sent.over, &datagram);
        }
        let mut guess = forged(&sent);
        for number in 1..=400_u16 {
            guess[..2].copy_from_slice(&id.wrapping_sub(number).to_be_bytes());
            sim.hear(sent.over, &guess);
        }
        sim.hear(sent.over, &forged(&sent));
        assert!(!sim.ended.contains_key(&asker), "believed after {junk_count} datagrams of junk");
        assert_eq!(sim.counters.exchange.spoofs_suspected.read(), 1);
        let over_tcp = sim.sent();
        assert!(matches!(over_tcp.over, Over::Tcp(_)));
        sim.reply(&over_tcp, Rcode::NXDOMAIN);
        assert_eq!(sim.ended[&asker], Ok(Rcode::NXDOMAIN));
    }
}

#[test]
fn a_worn_port_goes_on_counting_wrong_replies() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    let Over::Udp(key) = sent.over else { panic!("a datagram") };
    sim.machine.forward.exchange_mut().retire_socket(key);
    let mut guess = forged(&sent);
    for number in 1..=4 {
        guess[1] = sent.bytes[1] ^ number;
        sim.hear(sent.over, &guess);
    }
    sim.hear(sent.over, &forged(&sent));
    assert!(!sim.ended.contains_key(&asker));
    assert_eq!(sim.counters.exchange.spoofs_suspected.read(), 1);
}

#[test]
fn late_replies_do_not_cost_the_port() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    for i in 0..500 {
        sim.ask(&format!("n{i}.example.org"));
    }
    let mut late: Vec<Sent> = sim.machine.network_mut().queued.drain(..).collect();
    for round in 0..48 {
        sim.ask(&format!("live{round}.example.org"));
        let live = sim.machine.network_mut().queued.pop_back().expect("something was sent");
        sim.reply(&live, Rcode::NOERROR);
        sim.pass(100);
        late.extend(sim.machine.network_mut().queued.drain(..));
    }
    assert!(sim.is_up(1) && late.len() > 1000);
    for sent in &late {
        sim.reply(sent, Rcode::NOERROR);
    }
    assert_eq!(sim.counters.exchange.ports_abandoned.read(), 0);
}

#[test]
fn one_question_is_on_the_wire_fifty_times_at_most_whatever_subnets_it_is_asked_for() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let mut askers = Vec::new();
    for last in 0..250_u8 {
        let mut query = question("www.example.org");
        let mut address = [0; 16];
        address[..3].copy_from_slice(&[10, 0, last]);
        query.client_subnet = Some(ClientSubnet { family: 1, prefix: 24, address });
        query.hash ^= u64::from(last) << 32;
        askers.push(sim.ask_query("www.example.org", query, Some(CLIENT), None));
    }
    assert_eq!(sim.outstanding(), 50);
    for _ in 0..2000 {
        sim.pass(1);
        assert!(sim.outstanding() <= 50, "{} datagrams", sim.outstanding());
    }
    let other = sim.ask("other.example.org");
    let last = sim.machine.network().queued.back().expect("something was sent").clone();
    assert!(matches!(last.over, Over::Udp(_)), "other questions are not concerned");
    let sent: Vec<Sent> = sim.machine.network_mut().queued.drain(..).collect();
    for sent in sent {
        sim.reply(&sent, Rcode::NOERROR);
    }
    sim.run(3000, |_| Some(Rcode::NOERROR));
    assert_eq!(sim.ended[&other], Ok(Rcode::NOERROR));
    assert!(askers.iter().all(|asker| sim.ended[asker] == Ok(Rcode::NOERROR)));
    assert_eq!(sim.outstanding(), 0);
}

fn mixing() -> PoolPlan {
    PoolPlan { case_randomisation: true, ..pool(Pick::Ordered, &[1]) }
}

#[test]
fn forgeries_in_another_letter_case_never_switch_checking_off() {
    let mut sim = Sim::new(vec![mixing()]);
    for round in 0..20 {
        let asker = sim.ask(&format!("n{round}-a-rather-long-name-with-letters.example.org"));
        let sent = sim.sent();
        assert!(matches!(sent.over, Over::Udp(_)));
        assert!(sent.bytes[12..50].iter().any(u8::is_ascii_uppercase), "checked in round {round}");
        let mut lie = forged(&sent);
        // The server's letters are not known to who is not on the way.
        for octet in &mut lie[13..60] {
            if octet.is_ascii_alphabetic() {
                *octet ^= 0x20;
            }
        }
        sim.hear(sent.over, &lie);
        assert!(!sim.ended.contains_key(&asker));
        let over_tcp = sim.sent();
        sim.reply(&over_tcp, Rcode::NXDOMAIN);
        assert_eq!(sim.ended[&asker], Ok(Rcode::NXDOMAIN), "the truth of round {round}");
    }
}

#[test]
fn an_answer_over_tcp_that_is_truncated_is_none() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    let asker = sim.ask("www.example.org");
    for number in [1, 2] {
        let sent = sim.sent();
        assert_eq!(sent.to, server(number));
        let mut cut = reply_to(&sent.bytes, Rcode::NOERROR);
        cut[2] |= 2;
        sim.hear(sent.over, &cut);
        let over_tcp = sim.sent();
        let mut cut = reply_to(&over_tcp.bytes, Rcode::NOERROR);
        cut[2] |= 2;
        sim.hear(over_tcp.over, &cut);
    }
    assert_eq!(sim.ended[&asker], Err(engine::Failure::BadReply(Rcode::SERVFAIL)));
}

#[test]
fn an_upstream_that_goes_down_and_comes_back_is_told_once_with_the_reason() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    for round in 0..10 {
        sim.ask(&format!("n{round}.example.org"));
        sim.run(300, |_| None);
    }
    assert!(!sim.is_up(1));
    sim.run(60_000, |_| None);
    sim.run(3000, |_| Some(Rcode::NOERROR));
    let [down, up] = sim.state_changes.as_slice() else { panic!("{:?}", sim.state_changes) };
    assert_eq!(
        (down.is_up, down.address, down.why.to_string()),
        (false, server(1), "it does not answer".into())
    );
    assert_eq!((&down.groups, &down.dead_groups), (&vec!["test".to_owned()], &vec!["test".to_owned()]));
    assert!(up.is_up && up.dead_groups.is_empty());
}

#[test]
fn letter_case_of_names_that_are_left_out_stays() {
    let mut sim = Sim::new(vec![PoolPlan {
        case_randomisation: true,
        exact_case: [wire::NameBuf::from_text("example.org").expect("a name")].into(),
        ..pool(Pick::Ordered, &[1])
    }]);
    sim.ask("a-rather-long-name-with-letters.example.org");
    assert!(!sim.sent().bytes[12..50].iter().any(u8::is_ascii_uppercase));
    sim.ask("a-rather-long-name-with-letters.example.net");
    assert!(sim.sent().bytes[12..50].iter().any(u8::is_ascii_uppercase));
}
