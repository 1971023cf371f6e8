//! The rules of fetching on a simulated clock and a scripted network.

mod eyeballs;
mod forwards;
mod limits;
mod links;
mod names;
mod outages;
mod picks;
mod races;
mod resolutions;
mod sim;
mod splits;
mod spoofing;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};

use engine::{Failure, FetchWant, Want};
use timers::Span;
use wire::{Flags, Header, Query, Rcode};

use exchange::network::{LinkKey, SocketKey};
use identity::Registry;
use plan::upstreams::{Hedge, Limits, Pick, Plan, ServerPlan};
use sim::{Asker, CLIENT, Over, POOL, Sent, Sim, pool, question, reply_to, server};

#[test]
fn an_answer_ends_the_fetch() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    assert_eq!(sent.to, server(1));
    let query = Query::parse(&sent.bytes).expect("well formed");
    assert!(query.header.flags.has(Flags::RD));
    assert_eq!(query.edns.map(|edns| edns.udp_size), Some(1232));
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    assert_eq!(sim.machine.active(), 0);
    sim.pass(10_000);
    assert!(sim.sent_nothing());
}

#[test]
fn the_same_question_is_asked_once() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let askers = [sim.ask("www.example.org"), sim.ask("WWW.example.ORG"), sim.ask("www.example.org")];
    let other = sim.ask("other.example.org");
    let sent = sim.sent();
    let _other = sim.sent();
    assert!(sim.sent_nothing());
    sim.reply(&sent, Rcode::NXDOMAIN);
    for asker in askers {
        assert_eq!(sim.ended[&asker], Ok(Rcode::NXDOMAIN));
    }
    assert!(!sim.ended.contains_key(&other));
}

#[test]
fn a_lost_packet_costs_less_than_a_third_of_a_second() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let first = sim.sent();
    sim.pass(300);
    let second = sim.sent();
    assert_ne!(first.bytes[..2], second.bytes[..2], "a retransmission has an ID of its own");
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn retransmission_follows_the_round_trip_time() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.warm_up(50, 5);
    sim.ask("www.example.org");
    let _lost = sim.sent();
    sim.pass(19);
    assert!(sim.sent_nothing());
    sim.pass(12);
    sim.sent();
}

#[test]
fn a_retransmission_goes_to_the_next_server() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    let asker = sim.ask("www.example.org");
    assert_eq!(sim.sent().to, server(1));
    sim.pass(300);
    let second = sim.sent();
    assert_eq!(second.to, server(2));
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_late_answer_to_the_first_packet_is_taken() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    let asker = sim.ask("www.example.org");
    let first = sim.sent();
    sim.pass(350);
    sim.reply(&first, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn five_percent_loss_fails_nobody() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let mut count = 0u32;
    for round in 0..2000 {
        sim.ask(&format!("n{round}.example.org"));
        sim.run(1, |_| {
            count += 1;
            (!count.wrapping_mul(2_654_435_761).is_multiple_of(20)).then_some(Rcode::NOERROR)
        });
    }
    sim.run(5000, |_| Some(Rcode::NOERROR));
    assert_eq!(sim.ended.len(), 2000);
    assert!(sim.ended.values().all(|brought| *brought == Ok(Rcode::NOERROR)));
}

#[test]
fn silence_ends_before_the_client_gives_up() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let packets = sim.run(4999, |_| None);
    assert_eq!(sim.ended[&asker], Err(Failure::Timeout));
    assert!(packets <= 16, "{packets} packets for one query, probes included");
    assert_eq!(sim.machine.active(), 0);
}

#[test]
fn a_bad_rcode_makes_us_ask_the_next_server() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2, 3])]);
    let asker = sim.ask("www.example.org");
    for (last, rcode) in [(1, Rcode::REFUSED), (2, Rcode::SERVFAIL)] {
        let sent = sim.sent();
        assert_eq!(sent.to, server(last));
        sim.reply(&sent, rcode);
    }
    let third = sim.sent();
    sim.reply(&third, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn when_all_answers_are_bad_the_most_telling_one_is_passed_on() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2, 3])]);
    let asker = sim.ask("www.example.org");
    for rcode in [Rcode::REFUSED, Rcode::SERVFAIL, Rcode::NOTIMP] {
        let sent = sim.sent();
        sim.reply(&sent, rcode);
    }
    assert_eq!(sim.ended[&asker], Ok(Rcode::SERVFAIL));
}

#[test]
fn a_dead_server_is_left_out_and_found_again_within_a_second() {
    for outage_ms in [3_000, 60_000, 600_000] {
        let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
        sim.warm_up(20, 5);
        for round in 0..12 {
            sim.ask(&format!("n{round}.example.org"));
            sim.run(100, |sent| (sent.to == server(2)).then_some(Rcode::NOERROR));
        }
        assert!(!sim.is_up(1));
        sim.ask("direct.example.org");
        assert_eq!(sim.sent().to, server(2), "nobody waits for a server that is down");
        sim.run(outage_ms, |sent| (sent.to == server(2)).then_some(Rcode::NOERROR));
        assert!(!sim.is_up(1));
        sim.run(1000, |_| Some(Rcode::NOERROR));
        assert!(sim.is_up(1), "back after an outage of {outage_ms} ms");
        assert!(sim.ended.values().all(|brought| *brought == Ok(Rcode::NOERROR)));
    }
}

#[test]
fn until_a_server_is_known_to_be_dead_its_queries_are_soon_asked_elsewhere() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    sim.warm_up(20, 5);
    let mut rounds = 0;
    while sim.is_up(1) {
        let asker = sim.ask(&format!("n{rounds}.example.org"));
        sim.run(45, |sent| (sent.to == server(2)).then_some(Rcode::NOERROR));
        assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR), "query {rounds}");
        rounds += 1;
    }
    assert!((1000 / 45..=1200 / 45).contains(&rounds), "dead after {rounds} rounds");
}

#[test]
fn half_a_second_of_silence_under_load_fails_nobody_and_opens_no_circuit() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.warm_up(20, 1);
    for tick in 0..50 {
        for i in 0..20 {
            sim.ask(&format!("n{tick}-{i}.example.org"));
        }
        sim.run(10, |_| None);
        assert!(sim.is_up(1));
    }
    sim.run(2000, |_| Some(Rcode::NOERROR));
    assert_eq!(sim.ended.len(), 1000);
    assert!(sim.ended.values().all(|brought| *brought == Ok(Rcode::NOERROR)));
    assert_eq!(sim.counters.forward.upstreams_down.read(), 0);
}

#[test]
fn probing_a_dead_server_is_cheap() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    for round in 0..10 {
        sim.ask(&format!("n{round}.example.org"));
        sim.run(500, |_| None);
    }
    assert!(!sim.is_up(1));
    let probes = sim.run(60_000, |_| None);
    assert!((80..=134).contains(&probes), "{probes} probes a minute");
}

#[test]
fn when_all_are_down_queries_fail_fast_with_one_attempt() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    for round in 0..10 {
        sim.ask(&format!("n{round}.example.org"));
        sim.run(300, |_| None);
    }
    sim.run(5000, |_| None);
    assert!(!sim.is_up(1) && !sim.is_up(2));
    let before = sim.counters.exchange.sent_udp.read() - sim.counters.forward.probes.read();
    let asker = sim.ask("www.example.org");
    sim.run(800, |_| None);
    assert_eq!(sim.ended[&asker], Err(Failure::Timeout));
    assert_eq!(sim.counters.exchange.sent_udp.read() - sim.counters.forward.probes.read(), before + 1);
    // The attempt itself can show that the server is back.
    let asker = sim.ask("back.example.org");
    let sent = sim.sent();
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_refusal_by_the_network_fails_the_attempt_at_once() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    let Over::Udp(key) = sent.over else { panic!("a datagram") };
    sim.machine.socket_failed(key, ErrorKind::ConnectionRefused, sim.now);
    sim.settle();
    assert!(!sim.is_up(1));
    let second = sim.sent();
    assert_eq!(second.to, server(2));
    let Over::Udp(key) = second.over else { panic!("a datagram") };
    sim.machine.socket_failed(key, ErrorKind::ConnectionRefused, sim.now);
    sim.settle();
    assert_eq!(sim.ended[&asker], Err(Failure::Network));
}

#[test]
fn an_unreachable_network_fails_at_once_and_recovers() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    sim.machine.network_mut().unreachable = vec![server(1), server(2)];
    let asker = sim.ask("www.example.org");
    assert_eq!(sim.ended[&asker], Err(Failure::Network));
    sim.run(300_000, |_| None);
    sim.machine.network_mut().unreachable.clear();
    sim.run(2000, |_| Some(Rcode::NOERROR));
    assert!(sim.is_up(1) && sim.is_up(2));
    let asker = sim.ask("www.example.org");
    sim.run(1, |_| Some(Rcode::NOERROR));
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn sockets_are_made_anew_after_an_outage() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.warm_up(50, 1);
    let before: Vec<u32> = sim.machine.network().sockets.keys().copied().collect();
    let opened = sim.machine.network().opened;
    for round in 0..10 {
        sim.ask(&format!("n{round}.example.org"));
        sim.run(500, |_| None);
    }
    assert!(!before.is_empty() && sim.machine.network().opened > opened);
    let opened = sim.machine.network().opened;
    sim.run(10_000, |_| None);
    assert!(sim.machine.network().opened >= opened + 5, "every probe leaves through a new socket");
    assert!(sim.machine.network().sockets.len() <= 2, "the old ones are closed");
}

#[test]
fn truncation_means_the_same_question_over_tcp_to_the_same_server() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    let mut cut = reply_to(&sent.bytes, Rcode::NOERROR);
    cut[2] |= 2;
    sim.hear(sent.over, &cut);
    let over_tcp = sim.sent();
    assert_eq!(over_tcp.to, server(1));
    assert!(matches!(over_tcp.over, Over::Tcp(_)));
    assert_eq!(over_tcp.bytes[12..], sent.bytes[12..]);
    sim.open_link(&over_tcp);
    sim.reply(&over_tcp, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_tcp_server_gets_its_queries_over_one_connection_and_answers_in_any_order() {
    let mut plan = pool(Pick::Ordered, &[]);
    plan.servers = vec![ServerPlan::tcp(server(1))];
    let mut sim = Sim::new(vec![plan]);
    let askers: Vec<u32> = (0..10).map(|i| sim.ask(&format!("n{i}.example.org"))).collect();
    let sent: Vec<Sent> = (0..10).map(|_| sim.sent()).collect();
    assert_eq!(sim.machine.network().links.len(), 1);
    sim.open_link(&sent[0]);
    for sent in sent.iter().rev() {
        sim.reply(sent, Rcode::NOERROR);
    }
    assert!(askers.iter().all(|asker| sim.ended[asker] == Ok(Rcode::NOERROR)));
    sim.pass(25_000);
    assert!(sim.machine.network().links.is_empty(), "idle connections are closed");
}

#[test]
fn queries_on_a_dying_connection_are_asked_again() {
    let mut plan = pool(Pick::Ordered, &[]);
    plan.servers = vec![ServerPlan::tcp(server(1))];
    let mut sim = Sim::new(vec![plan]);
    let askers: Vec<u32> = (0..3).map(|i| sim.ask(&format!("n{i}.example.org"))).collect();
    let first = sim.sent();
    sim.machine.network_mut().queued.clear();
    sim.open_link(&first);
    let Over::Tcp(key) = first.over else { panic!("a connection") };
    sim.machine.link_closed(key, None, sim.now);
    sim.settle();
    let again = sim.sent();
    sim.open_link(&again);
    sim.reply(&again, Rcode::NOERROR);
    sim.run(10, |_| Some(Rcode::NOERROR));
    assert!(askers.iter().all(|asker| sim.ended[asker] == Ok(Rcode::NOERROR)));
}

#[test]
fn connecting_backs_off_and_recovers() {
    let mut plan = pool(Pick::Ordered, &[]);
    plan.servers = vec![ServerPlan::tcp(server(1))];
    let mut sim = Sim::new(vec![plan]);
    let mut connects = 0;
    for round in 0..600 {
        sim.ask(&format!("n{round}.example.org"));
        sim.pass(100);
        sim.machine.network_mut().queued.clear();
        let links: Vec<u32> = sim.machine.network().links.keys().copied().collect();
        for link in links {
            connects += 1;
            sim.machine.link_closed(LinkKey(link), None, sim.now);
            sim.settle();
        }
    }
    assert!((20..200).contains(&connects), "{connects} attempts to connect in a minute");
    assert!(sim.ended.values().all(|brought| *brought == Err(Failure::Network)));
    let mut recovered = false;
    for _ in 0..30 {
        sim.pass(100);
        let links: Vec<u32> = sim.machine.network().links.keys().copied().collect();
        for link in links {
            sim.machine.link_opened(LinkKey(link), sim.now);
        }
        sim.run(1, |_| Some(Rcode::NOERROR));
        recovered |= sim.is_up(1);
    }
    assert!(recovered);
}

#[test]
fn a_wrong_id_or_question_is_not_believed() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    let good = reply_to(&sent.bytes, Rcode::NOERROR);
    let mut wrong_id = good.clone();
    wrong_id[0] ^= 1;
    sim.hear(sent.over, &wrong_id);
    let mut wrong_question = good.clone();
    wrong_question[13] = b'x';
    sim.hear(sent.over, &wrong_question);
    let mut a_query = good.clone();
    a_query[2] &= 0x7f;
    sim.hear(sent.over, &a_query);
    sim.hear(sent.over, &good[..5]);
    assert!(sim.ended.is_empty());
    assert_eq!(sim.counters.exchange.mismatched.read(), 4);
    sim.hear(sent.over, &good);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_reply_counts_on_its_own_socket_only() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.warm_up(100, 1);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    let Over::Udp(own) = sent.over else { panic!("a datagram") };
    let good = reply_to(&sent.bytes, Rcode::NOERROR);
    let others: Vec<u32> =
        sim.machine.network().sockets.keys().copied().filter(|&key| key != own.0).collect();
    assert!(!others.is_empty());
    for other in others {
        sim.hear(Over::Udp(SocketKey(other)), &good);
    }
    assert!(!sim.ended.contains_key(&asker));
}

#[test]
fn guessing_at_a_fetch_moves_it_to_tcp() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let bystander = sim.ask("other.example.org");
    let (sent, other) = (sim.sent(), sim.sent());
    let good = reply_to(&sent.bytes, Rcode::NOERROR);
    for guess in 1..=4u8 {
        let mut forged = good.clone();
        forged[0] ^= guess;
        sim.hear(sent.over, &forged);
    }
    let over_tcp = sim.sent();
    assert!(matches!(over_tcp.over, Over::Tcp(_)));
    sim.hear(sent.over, &good);
    assert!(sim.ended.is_empty(), "datagrams for it are no longer taken, not even good ones");
    sim.open_link(&over_tcp);
    sim.reply(&over_tcp, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    sim.reply(&other, Rcode::NOERROR);
    assert_eq!(sim.ended[&bystander], Ok(Rcode::NOERROR));
}

#[test]
fn a_flood_of_stray_datagrams_costs_the_port_and_nothing_else() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    let good = reply_to(&sent.bytes, Rcode::NOERROR);
    let mut stray = good.clone();
    stray[0] ^= 0x80;
    stray[13] = b'q';
    for _ in 0..1000 {
        sim.hear(sent.over, &stray);
    }
    sim.hear(sent.over, &good);
    assert!(sim.machine.network().sockets.is_empty(), "its port is given up");
    assert!(!sim.ended.contains_key(&asker), "nothing is taken on a port that is given up");
    let over_tcp = sim.sent();
    assert!(matches!(over_tcp.over, Over::Tcp(_)));
    sim.reply(&over_tcp, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn a_server_without_edns_is_asked_without_and_remembered() {
    for rcode in [Rcode::FORMERR, Rcode::NOTIMP] {
        let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
        let asker = sim.ask("www.example.org");
        let sent = sim.sent();
        // Such servers often send the bare header back.
        let header = Header {
            flags: Flags::QR.with_rcode(rcode),
            questions: 0,
            additionals: 0,
            ..Header::parse(&sent.bytes).expect("a header")
        };
        sim.hear(sent.over, &header.to_bytes());
        let plain = sim.sent();
        assert!(Query::parse(&plain.bytes).expect("well formed").edns.is_none());
        sim.reply(&plain, Rcode::NOERROR);
        assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
        sim.ask("next.example.org");
        assert!(Query::parse(&sim.sent().bytes).expect("well formed").edns.is_none());
        sim.pass(16 * 60 * 1000);
        sim.machine.network_mut().queued.clear();
        sim.ask("later.example.org");
        sim.run(1, |_| Some(Rcode::NOERROR));
        sim.ask("much.later.example.org");
        assert!(Query::parse(&sim.sent().bytes).expect("well formed").edns.is_some(), "not for ever");
    }
}

#[test]
fn a_name_that_is_malformed_everywhere_is_asked_for_twice_only() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask("www.example.org");
    let packets = sim.run(100, |sent| {
        let _ = sent;
        Some(Rcode::FORMERR)
    });
    assert_eq!(sim.ended[&asker], Ok(Rcode::FORMERR));
    assert!(packets <= 2);
}

#[test]
fn letter_case_is_random_and_checked_with_tcp_as_the_judge() {
    let mut plan = pool(Pick::Ordered, &[1]);
    plan.case_randomisation = true;
    let mut sim = Sim::new(vec![plan]);
    let asker = sim.ask("a-rather-long-name-with-letters.example.org");
    let sent = sim.sent();
    assert!(sent.bytes[12..50].iter().any(u8::is_ascii_uppercase));
    let folded = reply_to(&sent.bytes.to_ascii_lowercase(), Rcode::NOERROR);
    let mut folded = folded;
    folded[..2].copy_from_slice(&sent.bytes[..2]);
    sim.hear(sent.over, &folded);
    assert!(!sim.ended.contains_key(&asker));
    let over_tcp = sim.sent();
    sim.open_link(&over_tcp);
    assert!(
        over_tcp.bytes[12..50].iter().any(u8::is_ascii_uppercase),
        "TCP is the judge of letter case, too"
    );
    let mut folded = reply_to(&over_tcp.bytes.to_ascii_lowercase(), Rcode::NOERROR);
    folded[..2].copy_from_slice(&over_tcp.bytes[..2]);
    sim.hear(over_tcp.over, &folded);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    sim.ask("another-long-name-with-letters.example.org");
    assert!(!sim.sent().bytes[12..50].iter().any(u8::is_ascii_uppercase), "spared from now on");
}

#[test]
fn a_slow_answer_is_hedged_within_the_budget() {
    let mut plan = pool(Pick::Ordered, &[1, 2]);
    plan.hedge = Hedge::Auto;
    let mut sim = Sim::new(vec![plan]);
    sim.warm_up(40, 40);
    let asker = sim.ask("www.example.org");
    assert_eq!(sim.sent().to, server(1));
    sim.pass(60);
    let hedge = sim.sent();
    assert_eq!(hedge.to, server(2));
    assert_eq!(sim.counters.forward.hedged.read(), 1);
    sim.reply(&hedge, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    // A server that is slow for everybody must not double the load.
    let before = sim.counters.forward.hedged.read();
    let mut waiting = VecDeque::new();
    for round in 0..1000 {
        sim.ask(&format!("slow{round}.example.org"));
        sim.pass(20);
        waiting.extend(sim.machine.network_mut().queued.drain(..).map(|sent| (sim.now, sent)));
        while waiting.front().is_some_and(|(at, _)| sim.now.since(*at) >= Span::from_ms(60)) {
            let (_, sent) = waiting.pop_front().expect("it is there");
            sim.reply(&sent, Rcode::NOERROR);
        }
    }
    assert!(sim.counters.forward.hedged.read() - before <= 120, "{}", sim.counters.forward.hedged.read());
}

#[test]
fn a_client_with_stale_data_does_not_wait_and_the_fetch_goes_on() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let asker = sim.ask_from("www.example.org", Some(CLIENT), Some(200));
    let sent = sim.sent();
    sim.pass(199);
    assert!(sim.impatient.is_empty());
    sim.pass(1);
    assert_eq!(sim.impatient, [asker]);
    assert!(!sim.ended.contains_key(&asker));
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR), "it still fills the cache");
    // In time: the patience never ends.
    sim.ask_from("quick.example.org", Some(CLIENT), Some(200));
    let sent = sim.sent();
    sim.reply(&sent, Rcode::NOERROR);
    sim.pass(1000);
    assert_eq!(sim.impatient.len(), 1);
}

#[test]
fn a_prefetch_joins_nothing_and_is_made_once() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    let prefetch = sim.ask_from("www.example.org", None, None);
    let second = sim.ask_from("www.example.org", None, None);
    let sent = sim.sent();
    assert!(sim.sent_nothing());
    sim.reply(&sent, Rcode::NOERROR);
    assert!(sim.ended.contains_key(&prefetch) && !sim.ended.contains_key(&second));
}

#[test]
fn a_flood_of_names_is_shed_at_the_bound() {
    let limits = Limits { fetching_max: 100, ..Limits::default() };
    let mut sim = Sim::with_limits(vec![pool(Pick::Ordered, &[1])], limits);
    for i in 0..1000 {
        sim.ask(&format!("flood{i}.example.org"));
    }
    assert_eq!(sim.machine.active(), 100);
    let shed = sim.ended.values().filter(|brought| **brought == Err(Failure::Overloaded)).count();
    assert_eq!(shed, 900);
    assert_eq!(sim.counters.driver.shed_fetching.read(), 900);
    // The old ones are still answered, and then there is room again.
    sim.run(5, |_| Some(Rcode::NOERROR));
    let asker = sim.ask("www.example.org");
    sim.run(5, |_| Some(Rcode::NOERROR));
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn one_client_cannot_take_all_the_room() {
    let limits = Limits { waiting_max: 100, waiting_per_client_max: 10, ..Limits::default() };
    let mut sim = Sim::with_limits(vec![pool(Pick::Ordered, &[1])], limits);
    for i in 0..1000 {
        sim.ask(&format!("flood{i}.example.org"));
    }
    assert_eq!(sim.machine.waiting(), 50, "half is for anybody");
    let neighbour = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 78));
    let asker = sim.ask_from("www.example.org", Some(neighbour), None);
    assert!(!sim.ended.contains_key(&asker));
    sim.run(5, |_| Some(Rcode::NOERROR));
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    assert_eq!(sim.machine.waiting(), 0);
}

#[test]
fn an_unknown_pool_fails_at_once() {
    let mut sim = Sim::new(vec![]);
    let asker = sim.ask("www.example.org");
    assert_eq!(sim.ended[&asker], Err(Failure::NoUpstream));
}

#[test]
fn stopping_ends_everything() {
    let mut sim = Sim::new(vec![pool(Pick::Race(2), &[1, 2])]);
    let asker = sim.ask("www.example.org");
    sim.machine.stop(sim.now);
    sim.settle();
    assert_eq!(sim.ended[&asker], Err(Failure::Stopping));
    let late = sim.ask("late.example.org");
    assert_eq!(sim.ended[&late], Err(Failure::Stopping));
}

#[test]
fn a_reload_keeps_what_is_the_same_and_lets_fetches_end() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1, 2])]);
    sim.warm_up(10, 7);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    let plan = Plan { pools: vec![pool(Pick::Ordered, &[3, 2])], ..Plan::default() };
    sim.machine.adopt((&plan, &Default::default()), &Registry::default(), sim.now);
    sim.settle();
    sim.ask("new.example.org");
    assert_eq!(sim.sent().to, server(3));
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    sim.pass(10_000);
    let status = sim.machine.status(sim.now);
    assert_eq!(status.upstreams.len(), 2);
    assert!(
        !sim.machine.network().sockets.values().any(|&to| to == server(1)),
        "the old server's sockets are closed"
    );
    assert_eq!(sim.machine.forward().exchange().servers().count(), 2);
    // Adopting the same again changes nothing.
    let before = sim.machine.network().opened;
    sim.machine.adopt((&plan, &Default::default()), &Registry::default(), sim.now);
    sim.settle();
    assert_eq!((sim.machine.network().opened, sim.machine.forward().pool_count()), (before, 1));
}

#[test]
fn a_port_is_used_for_a_bounded_number_of_queries_and_time() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    sim.warm_up(200, 1);
    let first = sim.machine.network().opened;
    assert!(first > 50 && first <= 64, "{first} ports for 200 bursts");
    sim.pass(5000);
    assert!(sim.machine.network().sockets.is_empty(), "an idle upstream holds no descriptors");
    sim.warm_up(200, 1);
    assert!(sim.machine.network().opened > 2 * 50, "old ports are not used again");
    assert!(sim.machine.network().sockets.len() <= 64);
    take_burst(&mut sim, 4 * 512);
    let mut used = std::collections::HashMap::new();
    for sent in sim.machine.network_mut().queued.drain(..) {
        let Over::Udp(key) = sent.over else { panic!("a datagram") };
        *used.entry(key.0).or_insert(0) += 1;
    }
    assert!(used.values().all(|&count| count <= 512), "a port is worn after 512 queries");
}

/// Asks so many questions without a flush between them.
fn take_burst(sim: &mut Sim, count: u32) {
    for i in 0..count {
        let query = question(&format!("n{i}.example.org"));
        let want = Want::Fetch(FetchWant { pool: POOL, query, trusts_ad: false, stale_after_ms: None });
        sim.machine.take(
            Asker { number: i, want, client: Some(CLIENT), split: None, parent: None, text: String::new() },
            sim.now,
        );
    }
    sim.settle();
}

#[test]
fn all_queries_of_a_burst_leave_through_one_socket() {
    let mut sim = Sim::new(vec![pool(Pick::Ordered, &[1])]);
    take_burst(&mut sim, 64);
    let overs: Vec<Over> = sim.machine.network().queued.iter().map(|sent| sent.over).collect();
    assert_eq!(overs.len(), 64);
    assert!(overs.iter().all(|over| *over == overs[0]));
}

mod chaos {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever upstreams do, every query ends exactly once and nothing is left behind.
        #[test]
        fn every_query_ends_once_and_nothing_leaks(
            seed: u64,
            pick in prop::sample::select(vec![Pick::Ordered, Pick::Race(2), Pick::Fastest, Pick::Balanced]),
            moods in prop::collection::vec(0u8..10, 20..200),
        ) {
            let mut plan = pool(pick, &[1, 2, 3]);
            plan.hedge = Hedge::Auto;
            plan.case_randomisation = seed.is_multiple_of(2);
            plan.servers.push(ServerPlan::tcp(server(4)));
            let mut sim = Sim::new(vec![plan]);
            let mut mood = moods.iter().copied().cycle();
            for round in 0..100u32 {
                sim.ask(&format!("n{}.example.org", round % 37));
                sim.pass(u64::from(round % 13) * 7);
                let links: Vec<u32> = sim.machine.network().links.keys().copied().collect();
                for link in links {
                    match mood.next() {
                        Some(0) => { sim.machine.link_closed(LinkKey(link), None, sim.now); sim.settle(); }
                        _ => sim.machine.link_opened(LinkKey(link), sim.now),
                    }
                }
                for _ in 0..4 {
                    let Some(sent) = sim.machine.network_mut().queued.pop_front() else { break };
                    let is_open = match sent.over {
                        Over::Udp(key) => sim.machine.network().sockets.contains_key(&key.0),
                        Over::Tcp(key) => sim.machine.network().links.contains_key(&key.0),
                    };
                    if !is_open { continue }
                    let mut bytes = reply_to(&sent.bytes, Rcode::NOERROR);
                    match mood.next() {
                        Some(0) => continue,
                        Some(1) => bytes[2] |= 2,
                        Some(2) => bytes[0] ^= 0x55,
                        Some(3) => bytes = reply_to(&sent.bytes, Rcode::SERVFAIL),
                        Some(4) => bytes = reply_to(&sent.bytes, Rcode::FORMERR),
                        Some(5) => bytes.truncate(30),
                        Some(6) => {
                            if let Over::Udp(key) = sent.over {
                                sim.machine.socket_failed(key, ErrorKind::ConnectionRefused, sim.now);
                                sim.settle();
                            }
                            continue;
                        }
                        _ => (),
                    }
                    sim.hear(sent.over, &bytes);
                }
            }
            sim.machine.network_mut().queued.clear();
            sim.pass(60_000);
            prop_assert_eq!(sim.ended.len(), 100);
            prop_assert_eq!(sim.machine.active(), 0);
            prop_assert_eq!(sim.machine.waiting(), 0);
            prop_assert_eq!(sim.machine.index.len(), 0);
            // The next probe leaves before the one before it has had its time.
            let exchange = sim.machine.forward().exchange();
            let probing = 2 * exchange.servers().filter(|it| !it.health.is_up()).count();
            prop_assert!(exchange.request_count() <= probing);
            prop_assert_eq!(sim.machine.forward().fetch_count(), 0);
            let outstanding: u64 =
                exchange.servers().map(|it| it.meters.outstanding.read()).sum();
            prop_assert!(outstanding as usize <= probing);
        }
    }

    #[test]
    fn protocols_differ_in_the_same_pool() {
        let mut plan = pool(Pick::Ordered, &[1]);
        plan.servers.insert(0, ServerPlan::tcp(server(9)));
        let mut sim = Sim::new(vec![plan]);
        sim.ask("www.example.org");
        assert!(matches!(sim.sent().over, Over::Tcp(_)));
        sim.pass(1100);
        assert!(matches!(sim.sent().over, Over::Udp(_)));
    }
}
