//! Upstreams that are given by name: looked up, refreshed, and asked at whatever address they have.

use std::net::SocketAddr;

use engine::Failure;
use plan::upstreams::{Pick, PoolPlan, ServerPlan, Target};
use wire::{Class, Flags, Query, Rcode, Rtype, Section, Ttl, Writer};

use super::sim::{Sim, name, pool, server};

fn named_pool() -> PoolPlan {
    let target = Target::Name { name: name("dns.example.net"), port: 53 };
    let servers = vec![ServerPlan { target, ..ServerPlan::udp(server(0)) }];
    PoolPlan { servers, bootstrap: vec![server(200)], ..pool(Pick::Ordered, &[]) }
}

/// Answers look-ups of the upstream's name with `addresses`, other queries with NOERROR.
fn answer_names(sim: &mut Sim, ms: u64, addresses: &[u8], ttl: u32) {
    for _ in 0..ms {
        sim.pass(1);
        while let Some(sent) = sim.machine.network_mut().queued.pop_front() {
            if sent.to != server(200) {
                sim.reply(&sent, Rcode::NOERROR);
                continue;
            }
            let query = Query::parse(&sent.bytes).expect("well formed");
            let mut out = vec![0; 512];
            let mut writer = Writer::new(&mut out, 512, query.header.id, Flags::QR.with(Flags::RA));
            writer.question(&query.question).expect("fits");
            if query.question.qtype == Rtype::A {
                for &last in addresses {
                    let SocketAddr::V4(address) = server(last) else { panic!("IPv4") };
                    let rdata = |w: &mut Writer<'_>| w.bytes(&address.ip().octets());
                    writer
                        .record(
                            Section::Answer,
                            query.question.qname,
                            Rtype::A,
                            Class::IN,
                            Ttl::new(ttl),
                            rdata,
                        )
                        .expect("fits");
                }
            }
            let len = writer.finish();
            sim.hear(sent.over, &out[..len]);
        }
    }
}

#[test]
fn a_named_upstream_is_looked_up_without_blocking_and_queries_wait_for_it() {
    let mut sim = Sim::new(vec![named_pool()]);
    let asker = sim.ask("www.example.org");
    assert!(!sim.ended.contains_key(&asker));
    answer_names(&mut sim, 10, &[1, 2], 60);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    let status = sim.machine.status(sim.now);
    let addresses: Vec<SocketAddr> =
        status.upstreams.iter().filter(|it| it.pool == "test").map(|it| it.address).collect();
    assert_eq!(addresses, [server(1), server(2)], "all addresses are used");
}

#[test]
fn addresses_are_refreshed_and_kept_while_that_fails() {
    let mut sim = Sim::new(vec![named_pool()]);
    answer_names(&mut sim, 10, &[1], 60);
    sim.run(300_000, |_| None);
    let asker = sim.ask("www.example.org");
    let sent = sim.sent();
    assert_eq!(sent.to, server(1), "the old address is used while the bootstrap resolver is away");
    sim.reply(&sent, Rcode::NOERROR);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    answer_names(&mut sim, 15_000, &[3], 60);
    sim.ask("new.example.org");
    assert_eq!(sim.sent().to, server(3));
}

#[test]
fn an_upstream_without_address_fails_in_time_and_recovers() {
    let mut sim = Sim::new(vec![named_pool()]);
    let asker = sim.ask("www.example.org");
    sim.run(3000, |_| None);
    assert_eq!(sim.ended[&asker], Err(Failure::NoUpstream));
    sim.run(600_000, |_| None);
    let asker = sim.ask("back.example.org");
    answer_names(&mut sim, 3000, &[1], 60);
    assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
}
