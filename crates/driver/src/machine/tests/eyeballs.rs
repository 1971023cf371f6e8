//! Happy eyeballs (RFC 8305): one server with addresses of both families, of which some may not
//! work.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use plan::upstreams::{Pick, PoolPlan, ServerPlan, Target};
use wire::{Class, Flags, Query, Rcode, Rtype, Section, Ttl, Writer};

use super::sim::{Over, Sent, Sim, name, pool, server};

fn six(last: u16) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last), 53))
}

/// Returns a machine that asks one server by its name, over connections; its addresses are known.
fn sim(four: &[u8], sixes: &[u16], lacks_ipv6: bool) -> Sim {
    let mut sim = unresolved(lacks_ipv6);
    for _ in 0..2 {
        let sent = sim.sent();
        resolve(&mut sim, &sent, four, sixes);
    }
    sim
}

/// Returns one that has just asked for them.
fn unresolved(lacks_ipv6: bool) -> Sim {
    let target = Target::Name { name: name("dns.example.net"), port: 53 };
    let servers = vec![ServerPlan { target, ..ServerPlan::tcp(server(0)) }];
    let plan = PoolPlan { servers, bootstrap: vec![server(200)], ..pool(Pick::Ordered, &[]) };
    let mut sim = Sim::new(vec![plan]);
    sim.machine.network_mut().lacks_ipv6 = lacks_ipv6;
    sim
}

/// Answers a question for addresses.
fn resolve(sim: &mut Sim, sent: &Sent, four: &[u8], sixes: &[u16]) {
    let query = Query::parse(&sent.bytes).expect("well formed");
    let mut out = vec![0; 512];
    let mut writer = Writer::new(&mut out, 512, query.header.id, Flags::QR.with(Flags::RA));
    writer.question(&query.question).expect("fits");
    let rtype = query.question.qtype;
    let addresses: Vec<Vec<u8>> = if rtype == Rtype::A {
        four.iter().map(|&last| octets(server(last).ip())).collect()
    } else {
        sixes.iter().map(|&last| octets(six(last).ip())).collect()
    };
    for address in addresses {
        let rdata = |w: &mut Writer<'_>| w.bytes(&address);
        writer
            .record(Section::Answer, query.question.qname, rtype, Class::IN, Ttl::new(3600), rdata)
            .expect("fits");
    }
    let len = writer.finish();
    sim.hear(sent.over, &out[..len]);
}

/// Returns the questions for addresses that were sent, that for IPv4 first.
fn questions(sim: &mut Sim) -> [Sent; 2] {
    let (first, second) = (sim.sent(), sim.sent());
    let asks_four = Query::parse(&first.bytes).expect("well formed").question.qtype == Rtype::A;
    if asks_four { [first, second] } else { [second, first] }
}

#[test]
fn ipv4_waits_a_moment_for_ipv6_and_no_longer() {
    let mut sim = unresolved(false);
    let asker = sim.ask("www.example.org");
    let [of_four, of_six] = questions(&mut sim);
    resolve(&mut sim, &of_four, &[1], &[]);
    sim.pass(49);
    assert!(sim.sent_nothing(), "RFC 8305 §3");
    sim.pass(1);
    let first = sim.sent();
    assert_eq!(first.to, server(1), "there is no IPv6 address yet");
    resolve(&mut sim, &of_six, &[], &[1]);
    assert_eq!(order(&sim), [six(1), server(1)], "the next connection begins with it");
    sim.open_link(&first);
    sim.reply(&first, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn ipv6_waits_for_nothing_and_ends_the_wait_even_if_there_is_none() {
    for sixes in [&[1][..], &[]] {
        let mut sim = unresolved(false);
        sim.ask("www.example.org");
        let [of_four, of_six] = questions(&mut sim);
        resolve(&mut sim, &of_four, &[1], &[]);
        sim.pass(10);
        resolve(&mut sim, &of_six, &[], sixes);
        assert_eq!(sim.sent().to, if sixes.is_empty() { server(1) } else { six(1) });
        sim.pass(100);
    }
    let mut sim = unresolved(false);
    sim.ask("www.example.org");
    let [_, of_six] = questions(&mut sim);
    resolve(&mut sim, &of_six, &[], &[1]);
    assert_eq!(sim.sent().to, six(1));
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn order(sim: &Sim) -> Vec<SocketAddr> {
    let status = sim.machine.status(sim.now);
    status.upstreams.iter().filter(|it| it.pool == "test").map(|it| it.address).collect()
}

#[test]
fn the_families_take_turns_and_ipv6_begins() {
    let found = order(&sim(&[1, 2, 3], &[1, 2], false));
    assert_eq!(found, [six(1), server(1), six(2), server(2), server(3)]);
}

#[test]
fn what_cannot_be_reached_comes_last() {
    assert_eq!(order(&sim(&[1, 2], &[1], true)), [server(1), server(2), six(1)]);
}

#[test]
fn the_next_address_is_tried_after_a_quarter_of_a_second() {
    let mut sim = sim(&[1], &[1], false);
    let asker = sim.ask("www.example.org");
    assert_eq!(sim.sent().to, six(1));
    sim.pass(249);
    assert!(sim.sent_nothing());
    sim.pass(1);
    let second = sim.sent();
    assert_eq!(second.to, server(1));
    sim.open_link(&second);
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    assert!(sim.is_up(1), "to be slow to connect is not to be down");
}

#[test]
fn an_address_that_connects_in_time_has_time_to_answer() {
    let mut sim = sim(&[1], &[1], false);
    let asker = sim.ask("www.example.org");
    let first = sim.sent();
    sim.pass(200);
    sim.open_link(&first);
    sim.pass(200);
    assert!(sim.sent_nothing(), "no other address is asked meanwhile");
    sim.reply(&first, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}

#[test]
fn the_address_that_worked_is_tried_first_from_then_on() {
    let mut sim = sim(&[1], &[1], false);
    sim.ask("www.example.org");
    let _slow = sim.sent();
    sim.pass(250);
    let second = sim.sent();
    sim.open_link(&second);
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(order(&sim), [server(1), six(1)]);
    sim.ask("other.example.org");
    assert_eq!(sim.sent().to, server(1));
}

#[test]
fn an_address_that_refuses_costs_no_time() {
    let mut sim = sim(&[1], &[1], false);
    let asker = sim.ask("www.example.org");
    let first = sim.sent();
    let Over::Tcp(key) = first.over else { panic!("a connection") };
    sim.machine.link_closed(key, None, sim.now);
    sim.settle();
    let second = sim.sent();
    assert_eq!(second.to, server(1));
    sim.open_link(&second);
    sim.reply(&second, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}
