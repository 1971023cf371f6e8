//! ALIAS records: what is answered in their place, and for how long.

use crate::support;

use std::sync::Arc;

use support::{KEY, name, zones};
use wire::{Class, Flags, Message, Question, Rcode, Rtype, Writer};
use zone::{Aliases, Answered, Asked, Failure, Zones};

const ORG: &str = "$TTL 300\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n@ ALIAS far.example.net.\nown 60 ALIAS www\n\
    www 600 A 192.0.2.2\nshort 30 A 192.0.2.3\nto 90 ALIAS short\nchain 200 ALIAS own\nhop 100 CNAME far.example.net.\n\
    over ALIAS hop\n*.wild ALIAS www\nloop ALIAS loop\nempty ALIAS mail\nmail MX 10 www\nabsent ALIAS nothing\nsub NS ns.sub\n\
    ns.sub A 192.0.2.4\nbelow ALIAS ns.sub\ntwice ALIAS www\ntwice A 192.0.2.9\n";
const NOW: u32 = 1_795_000_000;

fn served() -> (Zones, Arc<Aliases>) {
    let aliases = Arc::new(Aliases::new(1 << 20, KEY));
    (zones(&[("example.org", ORG)]).with_aliases(Arc::clone(&aliases)), aliases)
}

fn ask_at(zones: &Zones, qname: &str, qtype: Rtype, now: u32) -> (Answered, Vec<String>) {
    let qname = name(qname);
    let mut buffer = vec![0; 65_535];
    let mut writer = Writer::new(&mut buffer, 65_535, 1, Flags::QR);
    writer.question(&Question { qname: qname.as_name(), qtype, qclass: Class::IN }).expect("room");
    let asked = Asked { age_at: cache::Now(now), ..Asked::new(qname.as_name(), qtype, false) };
    let answered = zones.answer(&asked, &mut writer).expect("a zone of ours");
    let len = writer.finish();
    let message = Message::parse(&buffer[..len]).expect("a message");
    let lines = message.records().filter(|record| record.section == wire::Section::Answer).map(|record| {
        let data = wire::rdata::display(record.rtype, &buffer[..len], record.rdata_at..record.end());
        format!("{} {} {} {data}", record.owner, record.ttl(), record.rtype)
    });
    (answered, lines.collect())
}

#[track_caller]
fn check(zones: &Zones, qname: &str, lines: &[&str]) {
    let (answered, found) = ask_at(zones, qname, Rtype::A, NOW);
    assert_eq!(
        (answered.rcode, answered.failure, found),
        (Rcode::NOERROR, None, lines.iter().map(|it| (*it).to_owned()).collect())
    );
}

#[track_caller]
fn check_failure(zones: &Zones, qname: &str, now: u32) {
    let (answered, found) = ask_at(zones, qname, Rtype::A, now);
    assert_eq!((answered.rcode, answered.failure), (Rcode::SERVFAIL, Some(Failure::Unfollowed)));
    assert!(found.is_empty());
}

#[test]
fn targets_of_our_own_are_followed_with_the_smallest_ttl() {
    let (zones, _) = served();
    check(&zones, "own.example.org", &["own.example.org. 60 A 192.0.2.2"]);
    check(&zones, "to.example.org", &["to.example.org. 30 A 192.0.2.3"]);
    check(&zones, "chain.example.org", &["chain.example.org. 60 A 192.0.2.2"]);
    check(&zones, "a.b.wild.example.org", &["a.b.wild.example.org. 300 A 192.0.2.2"]);
    // What the owner has itself comes first; what the target lacks is not there.
    check(&zones, "twice.example.org", &["twice.example.org. 300 A 192.0.2.9"]);
    check(&zones, "empty.example.org", &[]);
    check(&zones, "absent.example.org", &[]);
    // A loop, and a name that is somebody else's because it lies below a zone cut.
    check_failure(&zones, "loop.example.org", NOW);
    check_failure(&zones, "below.example.org", NOW);
}

#[test]
fn targets_elsewhere_are_those_that_were_put() {
    let (zones, aliases) = served();
    check_failure(&zones, "example.org", NOW);
    let far = name("FAR.example.net");
    let put = |address: [u8; 4], now| {
        aliases.put((far.as_name(), Rtype::A), [&address[..]], (120, 1000), now);
    };
    put([192, 0, 2, 77], NOW);
    check(&zones, "example.org", &["example.org. 120 A 192.0.2.77"]);
    check(&zones, "over.example.org", &["over.example.org. 100 A 192.0.2.77"]);
    // It ages, is old for a while, and then is none.
    let at = |seconds: u32| ask_at(&zones, "example.org", Rtype::A, NOW + seconds).1;
    assert_eq!(at(100), ["example.org. 20 A 192.0.2.77"]);
    assert_eq!(at(1000), ["example.org. 30 A 192.0.2.77"]);
    check_failure(&zones, "example.org", NOW + 1200);
    put([192, 0, 2, 78], NOW + 50);
    assert_eq!(at(60), ["example.org. 110 A 192.0.2.78"]);
    assert_eq!(aliases.fresh_for((far.as_name(), Rtype::A), NOW + 60), Some(110));
    // Nothing is an answer, too.
    aliases.put((far.as_name(), Rtype::AAAA), std::iter::empty(), (60, 0), NOW);
    let (answered, found) = ask_at(&zones, "example.org", Rtype::AAAA, NOW);
    assert_eq!((answered.rcode, found.len()), (Rcode::NOERROR, 0));
}

#[test]
fn a_target_with_too_many_addresses_has_as_many_as_fit() {
    let (zones, aliases) = served();
    let all: Vec<[u8; 4]> = (0..1000_u32).map(u32::to_be_bytes).collect();
    let far = name("far.example.net");
    aliases.put((far.as_name(), Rtype::A), all.iter().map(|it| &it[..]), (60, 0), NOW);
    let (answered, found) = ask_at(&zones, "example.org", Rtype::A, NOW);
    assert_eq!((answered.rcode, found.len()), (Rcode::NOERROR, zone::ADDRESSES_OCTETS_MAX / 16));
}

#[test]
fn who_is_to_be_asked_for_is_known() {
    let (zones, _) = served();
    let org = zones.get(name("example.org").as_name()).expect("a zone").clone();
    assert_eq!(org.alias_targets().len(), org.facts().aliases);
    let mut ends: Vec<String> = org
        .alias_targets()
        .iter()
        .filter_map(|target| zones.end_of_alias(target.as_name()))
        .map(|end| end.to_string())
        .collect();
    ends.sort();
    assert_eq!(ends, ["far.example.net.", "far.example.net.", "ns.sub.example.org."]);
}
