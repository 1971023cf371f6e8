//! Several workers with the same tables.

use cache::Security;
use wire::{Rcode, Rtype};

use crate::referrals::small;
use crate::signed::{Internet, Signing};
use crate::world::{Behaviour, World, plain_settings};

/// Has all of some names wanted by so many workers at about the same time; returns the queries.
fn queries(world: &mut World, workers: usize, names: usize) -> usize {
    (1..workers).for_each(|_| world.add_worker());
    let sent = world.sent.len();
    for number in 0..names {
        for worker in 0..workers {
            let waiter = (number * workers + worker) as u32;
            // The others come a little later, or at once.
            world.pass_ms((number as u32 * 7) % 5);
            world.want_of(worker, &format!("n{number}.example.org"), Rtype::A, waiter);
        }
        world.settle();
        for worker in 0..workers {
            let waiter = resolver::Waiter((number * workers + worker) as u32);
            let resolution = world.done.remove(&waiter).expect("it is done");
            assert_eq!((resolution.rcode, &resolution.failure), (Rcode::NXDOMAIN, &None));
        }
        world.pass_ms(100);
    }
    world.sent.len() - sent
}

fn plain() -> World {
    let mut world = World::new();
    small(&mut world);
    world
}

fn signed() -> World {
    let settings = resolver::Settings { aggressive_nsec: false, ..plain_settings() };
    let internet = Internet::default()
        .with(settings)
        .zone(".", &["192.0.2.1"], Signing::Nsec, "")
        .zone("org", &["192.0.2.2"], Signing::Nsec, "")
        .zone("example.org", &["192.0.2.3"], Signing::Nsec, "");
    internet.build().world
}

#[test]
fn two_workers_ask_for_the_same_things_once() {
    for world in [plain, signed] {
        let one = queries(&mut world(), 1, 200);
        for workers in [2, 4] {
            let all = queries(&mut world(), workers, 200);
            assert!(all * 100 <= one * 102, "{all} queries of {workers} workers, {one} of one");
        }
    }
}

/// Has four names of each of a hundred zones wanted, of which nothing is known, by four clients at
/// once, whom the kernel gives to so many workers in turn; returns the queries.
fn queries_of_four_clients(workers: usize) -> usize {
    let minimisation = resolver::Settings::default().minimisation;
    let mut world = World::with(resolver::Settings { minimisation, ..plain_settings() });
    world.zone(".", &["192.0.2.1"], "org NS ns.org\n ns.org A 192.0.2.2");
    let host = |zone: usize| format!("203.0.113.{}", zone + 1);
    let cuts =
        (0..100).map(|zone| format!("z{zone}.org NS ns.z{zone}.org\n ns.z{zone}.org A {}", host(zone)));
    world.zone("org", &["192.0.2.2"], &cuts.collect::<Vec<_>>().join("\n"));
    for zone in 0..100 {
        let names = (0..4).map(|client| format!("h{client}.z{zone}.org A 198.51.100.{client}"));
        world.zone(&format!("z{zone}.org"), &[&host(zone)], &names.collect::<Vec<_>>().join("\n"));
    }
    (1..workers).for_each(|_| world.add_worker());
    for zone in 0..100 {
        let waiter = |client: usize| (zone * 4 + client) as u32;
        for client in 0..4 {
            let name = format!("h{client}.z{zone}.org");
            world.want_of(client % workers, &name, Rtype::A, waiter(client));
        }
        world.settle();
        for client in 0..4 {
            let resolution = world.done.remove(&resolver::Waiter(waiter(client))).expect("it is done");
            assert_eq!((resolution.rcode, &resolution.failure), (Rcode::NOERROR, &None));
        }
    }
    world.sent.len()
}

#[test]
fn four_clients_of_several_workers_cost_no_more_queries_than_those_of_one() {
    let one = queries_of_four_clients(1);
    // A referral and four answers for each zone; besides, the root's referral.
    assert_eq!(one, 501);
    for workers in [2, 4] {
        let all = queries_of_four_clients(workers);
        assert!(all * 100 <= one * 102, "{all} queries of {workers} workers, {one} of one");
    }
}

#[test]
fn who_waits_for_another_worker_loses_no_more_than_half_a_round_trip() {
    let mut world = plain();
    world.add_worker();
    world.resolve("www.example.org", Rtype::A);
    world.want_of(0, "n1.example.org", Rtype::A, 1);
    world.want_of(1, "n1.example.org", Rtype::A, 2);
    let began = world.now;
    while !world.done.contains_key(&resolver::Waiter(2)) {
        assert!(world.step());
    }
    assert_eq!(world.now.since_us(began), 15_000, "a round trip is 10 ms");
    world.settle();
}

#[test]
fn who_waits_for_a_worker_that_does_not_come_back_goes_by_itself() {
    let mut world = plain();
    world.add_worker();
    world.resolve("www.example.org", Rtype::A);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Dead;
    }
    world.want_of(0, "n1.example.org", Rtype::A, 1);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Honest;
    }
    world.want_of(1, "n1.example.org", Rtype::A, 2);
    let began = world.now;
    while !world.done.contains_key(&resolver::Waiter(2)) {
        assert!(world.step());
    }
    assert_eq!(world.now.since_us(began), 25_000);
    world.settle();
    assert_eq!(world.done[&resolver::Waiter(2)].rcode, Rcode::NXDOMAIN);
}

#[test]
fn what_another_worker_brought_is_as_secure_as_it_was() {
    let mut world = signed();
    world.add_worker();
    for (number, worker) in [(1, 0), (2, 1)] {
        world.want_of(worker, "example.org", Rtype::SOA, number);
    }
    world.settle();
    for waiter in [1, 2] {
        let resolution = &world.done[&resolver::Waiter(waiter)];
        assert_eq!((resolution.security, resolution.rcode), (Security::Secure, Rcode::NOERROR));
    }
}

#[test]
fn what_failed_for_one_worker_is_not_tried_by_another() {
    let mut world = plain();
    world.add_worker();
    world.add_worker();
    world.resolve("www.example.org", Rtype::A);
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Rcode(Rcode::REFUSED);
    }
    assert_eq!(world.resolve("n1.example.org", Rtype::A).rcode, Rcode::SERVFAIL);
    let sent = world.sent.len();
    for worker in [1, 2] {
        world.want_of(worker, "n1.example.org", Rtype::A, worker as u32);
        world.settle();
        let resolution = &world.done[&resolver::Waiter(worker as u32)];
        assert_eq!(resolution.failure.as_ref().map(|failure| failure.reason), Some(resolver::Reason::Lame));
    }
    assert_eq!(world.sent.len(), sent);
    // Nor do they hide from each other that the servers are back.
    for address in ["192.0.2.3", "192.0.2.4"] {
        world.server(address).behaviour = Behaviour::Honest;
    }
    world.want_of(1, "n2.example.org", Rtype::A, 3);
    world.settle();
    for worker in [0, 2] {
        world.want_of(worker, "n1.example.org", Rtype::A, 4 + worker as u32);
        world.settle();
        assert_eq!(world.done[&resolver::Waiter(4 + worker as u32)].rcode, Rcode::NXDOMAIN);
    }
}
