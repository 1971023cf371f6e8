//! Limits of queries to the servers of one zone.

use resolver::{Settings, ZoneRateRules};
use wire::{Rcode, Rtype};

use crate::referrals::small;
use crate::world::{World, plain_settings};

fn world(zone_rates: ZoneRateRules) -> World {
    let mut world = World::with(Settings { zone_rates, ..plain_settings() });
    small(&mut world);
    world.zone("net", &["192.0.2.7"], "www.net 300 A 198.51.100.7");
    world.zone(".", &["192.0.2.1"], "org NS ns.org\nns.org A 192.0.2.2\nnet NS ns.net\nns.net A 192.0.2.7");
    world
}

/// Asks for so many names of a zone at once; returns how many had an answer.
fn answered(world: &mut World, zone: &str, count: u32) -> usize {
    let sent = world.sent.len();
    for number in 0..count {
        world.want(&format!("n{number}.{zone}"), Rtype::A, 1000 + number);
    }
    world.settle();
    let of_zone = world.sent[sent..].iter().filter(|sent| sent.question.contains(&format!(".{zone}.")));
    of_zone.count()
}

#[test]
fn ratelimit_of_one_zone_leaves_the_names_of_others_and_what_is_known() {
    let mut world = world(ZoneRateRules { per_second: 10, ..ZoneRateRules::default() });
    assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::NOERROR);
    world.pass_ms(2000);
    assert_eq!(answered(&mut world, "example.org", 100), 10, "queries that were sent");
    let refused = world.resolve_now("other.example.org", Rtype::A);
    assert_eq!((refused.rcode, refused.failure.as_deref()), (Rcode::SERVFAIL, Some("limit")));
    assert_eq!(world.resolve("www.example.org", Rtype::A).rcode, Rcode::NOERROR, "it is known");
    assert_eq!(world.resolve("www.net", Rtype::A).rcode, Rcode::NOERROR, "another zone");
    world.pass_ms(2000);
    let again = world.resolve("other.example.org", Rtype::A);
    assert_eq!(again.rcode, Rcode::NXDOMAIN, "the failure is not remembered");
}
