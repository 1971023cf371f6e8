//! RRsets that an operator changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use wire::serial::SerialPolicy;
use wire::{HashKey, NameBuf, Rtype, Ttl};
use zone::master::NoIncludes;
use zone::update::{RrsetAction, RrsetChange, RrsetMistake, change_rrsets, read_data};
use zone::{Zone, load};

const KEY: HashKey = HashKey::new([5, 6]);
const ZONE: &str = "@ SOA ns admin 7 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\nwww A 192.0.2.3\n\
                    alias CNAME www\nmail MX 10 www\n";

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

fn zone(text: &str) -> Arc<Zone> {
    let text = format!("$TTL 60\n{text}");
    let loaded = load(name("example.org").as_name(), "text", text.as_bytes(), &mut NoIncludes, KEY);
    Arc::new(loaded.zone.unwrap_or_else(|| panic!("{:?} {:?}", loaded.mistakes, loaded.findings)))
}

/// Returns every record but the SOA as text, sorted.
fn text(zone: &Zone) -> Vec<String> {
    let mut lines: Vec<String> = zone
        .records()
        .filter(|record| record.rtype != Rtype::SOA)
        .map(|record| {
            let data = wire::rdata::display(record.rtype, record.rdata, 0..record.rdata.len());
            format!("{} {} {} {data}", record.owner(), record.ttl, record.rtype).to_ascii_lowercase()
        })
        .collect();
    lines.sort();
    lines
}

fn change(action: RrsetAction, owner: &str, rtype: &str, ttl: u32, data: &[&str]) -> RrsetChange {
    let rtype: Rtype = rtype.parse().expect("a type");
    let records = data.iter().map(|data| read_data(rtype, data).expect("data")).collect();
    RrsetChange { owner: name(owner), rtype, action, ttl: Ttl::new(ttl), records }
}

fn replace(owner: &str, rtype: &str, data: &[&str]) -> RrsetChange {
    change(RrsetAction::Replace, owner, rtype, 60, data)
}

fn changed(changes: &[RrsetChange]) -> Result<Option<Arc<Zone>>, RrsetMistake> {
    let changed = change_rrsets(&zone(ZONE), &KEY, changes, (SerialPolicy::Increment, 0))?;
    Ok(changed.map(|updated| updated.zone))
}

#[track_caller]
fn check(changes: &[RrsetChange], serial: u32, expect: &str) {
    let made = changed(changes).expect("they may be made").expect("something changes");
    assert_eq!(made.facts().serial, serial);
    assert_eq!(text(&made), text(&zone(expect)));
}

#[test]
fn an_rrset_is_replaced_extended_pruned_and_taken_away() {
    let rest = "@ SOA ns admin 8 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nalias CNAME www\nmail MX 10 www\n";
    check(&[replace("www.example.org", "A", &["192.0.2.9"])], 8, &format!("{rest}www A 192.0.2.9\n"));
    check(&[replace("www.example.org", "A", &[])], 8, rest);
    let more = change(RrsetAction::Extend, "WWW.example.org", "A", 30, &["192.0.2.3", "192.0.2.4"]);
    let expect = format!("{rest}www 30 A 192.0.2.2\nwww 30 A 192.0.2.3\nwww 30 A 192.0.2.4\n");
    check(&[more], 8, &expect);
    let less = change(RrsetAction::Prune, "www.example.org", "A", 0, &["192.0.2.3", "192.0.2.4"]);
    check(&[less], 8, &format!("{rest}www A 192.0.2.2\n"));
}

#[test]
fn what_is_so_already_makes_no_new_version() {
    let same = replace("www.example.org", "A", &["192.0.2.3", "192.0.2.2"]);
    assert!(changed(&[same]).expect("it may be made").is_none());
    let gone = replace("other.example.org", "A", &[]);
    assert!(changed(&[gone]).expect("it may be made").is_none());
    let soa = "ns.example.org admin.example.org 7 2 3 4 5";
    assert!(changed(&[replace("example.org", "SOA", &[soa])]).expect("it may be made").is_none());
}

#[test]
fn a_new_soa_never_has_an_older_serial() {
    for (serial, expect) in [(6, 8), (7, 8), (8, 8), (2026, 2026)] {
        let soa = format!("ns.example.org admin.example.org {serial} 2 3 4 99");
        let changes = [replace("example.org", "SOA", &[&soa]), replace("new.example.org", "TXT", &["x"])];
        let made = changed(&changes).expect("they may be made").expect("something changes");
        assert_eq!(made.facts().serial, expect, "{serial}");
    }
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_changed() {
    let good = || replace("a.example.org", "A", &["192.0.2.9"]);
    let wrong = |change: RrsetChange| changed(&[good(), change]).err();
    assert_eq!(wrong(replace("example.net", "A", &["192.0.2.9"])), Some(RrsetMistake::OutOfZone(1)));
    assert_eq!(wrong(good()), Some(RrsetMistake::Twice(1)));
    assert_eq!(wrong(replace("example.org", "NS", &[])), Some(RrsetMistake::Needed(1)));
    assert_eq!(wrong(replace("example.org", "SOA", &[])), Some(RrsetMistake::Needed(1)));
    let soa = "ns.example.org admin.example.org 9 2 3 4 5";
    assert_eq!(wrong(replace("www.example.org", "SOA", &[soa])), Some(RrsetMistake::Soa(1)));
    let nsec = RrsetChange { rtype: Rtype::NSEC, records: Vec::new(), ..good() };
    assert_eq!(wrong(nsec), Some(RrsetMistake::Type(1)));
    let said = |change| wrong(change).map(|mistake| mistake.to_string()).unwrap_or_default();
    let alias = said(replace("www.example.org", "CNAME", &["example.net"]));
    assert!(alias.contains("www.example.org") && alias.contains("CNAME"), "{alias}");
    let beside = said(replace("alias.example.org", "TXT", &["x"]));
    assert!(beside.contains("alias.example.org"), "{beside}");
    // What two changes come to together counts.
    let both = [replace("alias.example.org", "TXT", &["x"]), replace("alias.example.org", "CNAME", &[])];
    assert!(changed(&both).is_ok_and(|made| made.is_some()));
}

#[test]
fn data_is_read_as_in_a_master_file_and_mistakes_have_their_place() {
    assert_eq!(read_data(Rtype::A, "192.0.2.1"), Ok(vec![192, 0, 2, 1]));
    assert_eq!(read_data(Rtype::MX, "10 mail.example.org"), read_data(Rtype::MX, "10 mail.example.org."));
    assert_eq!(read_data(Rtype::TXT, "\"a;b\" c"), Ok(b"\x03a;b\x01c".to_vec()));
    assert_eq!(read_data(Rtype(65_280), "\\# 2 abcd"), Ok(vec![0xab, 0xcd]));
    let at = |rtype, text| read_data(rtype, text).map_err(|(at, _)| at);
    assert_eq!(at(Rtype::MX, "10 a..b"), Err(3));
    assert_eq!(at(Rtype::A, "192.0.2.1 more"), Err(10));
    assert_eq!(at(Rtype::A, ""), Err(0));
    assert_eq!(at(Rtype::TXT, "a\n. 0 IN TXT b"), Err(1));
    assert!(at(Rtype::TXT, "( a").is_err());
}

proptest! {
    /// Changes one after the other give what their sum, written as a master file, gives.
    #[test]
    fn changes_give_the_zone_that_a_file_with_them_gives(
        steps in prop::collection::vec((0..4_usize, 0..3_usize, 0..3_usize, 0..8_u8, 1..3_u32), 1..30)
    ) {
        const NAMES: [&str; 4] = ["a", "b.a", "*.w", "c"];
        const TYPES: [&str; 3] = ["A", "TXT", "CAA"];
        const ACTIONS: [RrsetAction; 3] = [RrsetAction::Replace, RrsetAction::Extend, RrsetAction::Prune];
        let apex = "@ 60 SOA ns admin 7 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n";
        let mut made = zone(apex);
        let mut model: BTreeMap<(usize, usize), (u32, Vec<u8>)> = BTreeMap::new();
        for (owner, rtype, action, members, ttl) in steps {
            let members: Vec<u8> = (0..3).filter(|bit| members >> bit & 1 != 0).collect();
            let data = |member: u8| match TYPES[rtype] {
                "A" => format!("192.0.2.{member}"),
                "CAA" => format!("0 issue ca{member}.example"),
                _ => format!("t{member}"),
            };
            let texts: Vec<String> = members.iter().copied().map(data).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let full = format!("{}.example.org", NAMES[owner]);
            let change = change(ACTIONS[action], &full, TYPES[rtype], ttl, &texts);
            if let Some(updated) =
                change_rrsets(&made, &KEY, &[change], (SerialPolicy::Increment, 0)).expect("it may be made")
            {
                prop_assert_eq!(updated.zone.facts().serial, made.facts().serial + 1);
                made = updated.zone;
            }
            let (known_ttl, known) = model.entry((owner, rtype)).or_default();
            match ACTIONS[action] {
                RrsetAction::Replace => *known = members,
                RrsetAction::Extend => known.extend(members),
                RrsetAction::Prune => known.retain(|member| !members.contains(member)),
            }
            if ACTIONS[action] != RrsetAction::Prune {
                *known_ttl = ttl;
            }
            known.sort_unstable();
            known.dedup();
        }
        let mut file = apex.to_owned();
        for ((owner, rtype), (ttl, members)) in &model {
            for member in members {
                let data = match TYPES[*rtype] {
                    "A" => format!("192.0.2.{member}"),
                    "CAA" => format!("0 issue ca{member}.example"),
                    _ => format!("t{member}"),
                };
                file += &format!("{} {ttl} {} {data}\n", NAMES[*owner], TYPES[*rtype]);
            }
        }
        prop_assert_eq!(text(&made), text(&zone(&file)));
    }
}
