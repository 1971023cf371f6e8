//! Zones of configurations, loaded.

mod added;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Plans;
use config::zones::Outcome;
use diagnostic::Diagnostic;
use engine::{Caches, SnapshotCell};
use environment::Memory;
use plan::checks::Watched;
use plan::signing::SigningPolicy;
use settings::load_text;
use wire::Name;
use zone::Zone;

use super::*;
use crate::{Dependencies, Planned, Planner, Register, ZoneManager};

/// A configuration with its zones.
struct Loaded {
    plans: Plans,
    zones: LoadedZones,
}

fn load(text: &str, memory: &Memory, previous: Option<&Loaded>) -> Loaded {
    let loaded = load_text(Path::new("/z/g.yaml"), text, memory);
    let loaded = loaded.unwrap_or_else(|found| panic!("{}", found[0].human()));
    let prepared = config::prepare(&loaded, &[], previous.map(|previous| &previous.plans), memory, None);
    let before = previous.map(|previous| &previous.zones);
    let (zones, found) = LoadedZones::load(prepared.zones(), prepared.key(), before, memory);
    let outcome = Outcome {
        zones: zones.served().map(Arc::clone),
        sets: zones.sets().clone(),
        findings: found.findings,
        diagnostics: found.diagnostics,
    };
    let wanted = prepared.caches().iter().map(|plan| (plan.name.as_str(), plan.octets_max));
    let caches = Caches::new(prepared.key()).adopt(wanted);
    let plans = prepared.finish(caches, outcome).unwrap_or_else(|found| panic!("{}", found[0].human()));
    Loaded { plans, zones }
}

#[test]
fn files_are_named_after_their_zones() {
    for (file, name) in [
        ("/etc/zones/example.org.zone", "example.org"),
        ("db.example.org", "example.org"),
        ("example.org.db", "example.org"),
        ("example.org.json", "example.org"),
        ("example.org", "example.org"),
    ] {
        assert_eq!(name_of(Path::new(file)), name);
    }
}

const ORG: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n$INCLUDE more\n";
const NET: &str = "$TTL 60\n@ SOA ns a 7 2 3 4 5\n@ NS ns\nns A 192.0.2.2\n";

fn machine(org: &str, more: &str, net: &str) -> Memory {
    Memory::new(&[
        ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
        ("/z/org", org),
        ("/z/more", more),
        ("/z/net", net),
    ])
}

fn plans(memory: &Memory, previous: Option<&Loaded>) -> Loaded {
    let text = "zones: [{name: example.org, file: org}, {name: example.net, file: net}]\n";
    load(text, memory, previous)
}

/// Returns the serial of each zone that is served, and whether it is the one served before.
fn serials(plans: &Loaded, previous: Option<&Loaded>) -> Vec<(u32, bool)> {
    let all = |plans: &Loaded| -> Vec<Arc<Zone>> {
        plans.zones.served().map_or_else(Vec::new, |zones| zones.all().cloned().collect())
    };
    let before = previous.map_or_else(Vec::new, all);
    let mut found: Vec<(u32, bool)> = all(plans)
        .iter()
        .map(|zone| (zone.facts().serial, before.iter().any(|other| Arc::ptr_eq(other, zone))))
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn zones_whose_files_did_not_change_are_kept() {
    let first = plans(&machine(ORG, "x A 192.0.2.9\n", NET), None);
    assert_eq!(serials(&first, None), [(1, false), (7, false)]);
    assert!(first.plans.warnings.is_empty(), "{:?}", first.plans.warnings);
    let same = plans(&machine(ORG, "x A 192.0.2.9\n", NET), Some(&first));
    assert_eq!(serials(&same, Some(&first)), [(1, true), (7, true)]);
    // An included file is part of its zone.
    let second = plans(&machine(ORG, "y A 192.0.2.9\n", NET), Some(&first));
    assert_eq!(serials(&second, Some(&first)), [(1, false), (7, true)]);
}

#[test]
fn a_zone_with_mistakes_leaves_the_one_before_in_place() {
    let first = plans(&machine(ORG, "", NET), None);
    let second =
        plans(&machine(&ORG.replace(" 1 2 ", " 2 2 "), "", &NET.replace("192.0.2.2", "x")), Some(&first));
    assert_eq!(serials(&second, Some(&first)), [(2, false), (7, true)]);
    let lines: Vec<String> = second.plans.warnings.iter().map(Diagnostic::line).collect();
    assert_eq!(
        lines,
        [
            "/z/g.yaml:1:67: warning: zone \"example.net.\" is not loaded: \"/z/net\" has mistakes; serial 7 is still served",
            "/z/net:4:6: error: \"x\" cannot stand here: expected an IPv4 address",
        ]
    );
    assert_eq!(second.plans.warnings[1].excerpt, "ns A x");
}

#[test]
fn a_zone_that_was_never_loaded_is_told_and_the_others_are_served() {
    let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n"), ("/z/net", NET)]);
    let plans = plans(&memory, None);
    assert_eq!(serials(&plans, None), [(7, false)]);
    assert!(
        plans.plans.warnings[0].message.ends_with("questions about it get SERVFAIL"),
        "{:?}",
        plans.plans.warnings
    );
}

/// A zone in JSON.
fn json(apex: &str, serial: u32, address: &str) -> String {
    format!(
        r#"{{"name": "{apex}", "records": [
          {{"name": "{apex}", "type": "SOA", "ttl": 60, "data": {{"mname": "ns.{apex}", "rname": "a.{apex}", "serial": {serial}, "refresh": 2, "retry": 3, "expire": 4, "minimum": 5}}}},
          {{"name": "{apex}", "type": "NS", "ttl": 60, "data": {{"dname": "ns.example.net"}}}},
          {{"name": "a.{apex}", "type": "A", "ttl": 60, "context": ["ams"], "data": {{"ip": "{address}"}}}}]}}"#
    )
}

fn in_directory(files: &[(&str, &str)], more: &str, previous: Option<&Loaded>) -> Loaded {
    let mut all = vec![("/etc/resolv.conf", "nameserver 192.0.2.1\n")];
    all.extend(files);
    let memory = Memory::new(&all);
    let text = format!("zone-directories: [{{path: all{more}}}]\n");
    load(&text, &memory, previous)
}

#[test]
fn every_file_of_a_directory_is_a_zone_or_many() {
    let two = format!("[{},{}]", json("example.com", 3, "192.0.2.1"), json("example.org", 4, "192.0.2.1"));
    let files = [("/z/all/two.json", two.as_str()), ("/z/all/example.net.zone", NET), ("/z/all/readme", "x")];
    let first = in_directory(&files, "", None);
    assert_eq!(serials(&first, None), [(3, false), (4, false), (7, false)]);
    assert_eq!(serials(&in_directory(&files[..2], ", format: json", None), None), [(3, false), (4, false)]);
    assert_eq!(serials(&in_directory(&files[..2], ", format: master", None), None), [(7, false)]);
    // A zone that is gone from its file is gone; what cannot be read stays.
    let one = format!("[{}]", json("example.com", 5, "192.0.2.1"));
    let changed = [("/z/all/two.json", one.as_str()), files[1]];
    let second = in_directory(&changed, "", Some(&first));
    assert_eq!(serials(&second, Some(&first)), [(5, false), (7, true)]);
    let broken = [("/z/all/two.json", &one[..40]), files[1]];
    let third = in_directory(&broken, "", Some(&second));
    assert_eq!(serials(&third, Some(&second)), [(5, true), (7, true)]);
    assert!(
        third.plans.warnings.iter().any(|found| found.message.contains("no zone in")),
        "{:?}",
        third.plans.warnings
    );
    let bad = json("example.com", 6, "192.0.2.300");
    let bad = format!("[{bad},{}]", json("example.org", 7, "192.0.2.1"));
    let fourth = in_directory(&[("/z/all/two.json", &bad)], "", Some(&second));
    assert_eq!(serials(&fourth, Some(&second)), [(5, true), (7, false)]);
}

#[test]
fn how_far_a_large_zone_is_can_be_heard() {
    let text = format!("{NET}$GENERATE 1-140000 h$ A 192.0.2.1\n");
    let mut memory = machine(ORG, "", &text);
    memory.heard = Some(RefCell::default());
    let plans = plans(&memory, None);
    assert_eq!(serials(&plans, None), [(1, false), (7, false)]);
    let heard = memory.heard.expect("somebody hears").into_inner();
    assert_eq!(heard, ["example.net.: 65536 of /z/net", "example.net.: 131072 of /z/net"]);
}

#[test]
fn contexts_choose_records() {
    let text = format!("[{}]", json("example.com", 3, "192.0.2.1"));
    let records = |more: &str| {
        let plans = in_directory(&[("/z/all/a.json", &text)], more, None);
        let zones = plans.zones.served().expect("zones");
        zones.all().map(|zone| zone.facts().records).sum::<usize>()
    };
    assert_eq!((records(""), records(", contexts: ams"), records(", contexts: [fra, sjc]")), (3, 3, 2));
}

#[test]
fn sets_of_zones_are_apart() {
    let memory = machine(ORG, "", NET);
    let text = "zones: [{name: example.org, file: org}, {name: example.org, file: org, set: inside}, {name: example.net, file: net, set: inside}]\n\
        policy: {main: [{if: rd, do: zones(inside)}, zones]}\n";
    let plans = load(text, &memory, None);
    assert_eq!(serials(&plans, None), [(1, false)]);
    assert_eq!(plans.zones.sets().get("inside").map(|zones| zones.len()), Some(2));
}

#[test]
fn other_servers_have_rights_only_to_zones_that_say_so() {
    let memory = Memory::new(&[
        ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
        ("/z/org", ORG),
        ("/z/more", ""),
        ("/z/all/example.net.zone", NET),
    ]);
    let text = "zones: [{name: example.org, file: org, transfer: any}, {name: example.org, file: org, set: inside}, {name: example.com, primaries: 192.0.2.1}]\n\
        zone-directories: [{path: all}]\npolicy: {main: [{if: rd, do: zones(inside)}, zones]}\n";
    let plans = load(text, &memory, None);
    let all: Vec<(String, usize, usize, bool)> = plans
        .zones
        .zones()
        .iter()
        .map(|loaded| {
            let rights = &loaded.plan.rights;
            let (transfer, notify) = (rights.transfer.len(), rights.notify.len());
            (loaded.plan.apex.to_string(), transfer, notify, loaded.zone.is_some())
        })
        .collect();
    assert_eq!(all, [("example.org.".to_owned(), 1, 0, true), ("example.com.".to_owned(), 0, 1, false)]);
    let served = plans.zones.served().expect("zones");
    // One in a file, one in a directory, and one that has not come yet.
    assert_eq!((served.all().count(), served.unloaded().count()), (2, 1));
}

#[test]
fn a_zone_that_is_to_be_signed_is_given_away_only_signed() {
    let memory = machine(ORG, "", NET);
    let text = "zones: [{name: example.org, file: org, sign: s, transfer: any}]\nsigning: {s: {}}\n";
    let mut plans = load(text, &memory, None);
    let zone = &plans.zones.zones()[0];
    assert!(zone.signed.is_file() && zone.zone.is_none() && zone.source == 0);
    assert_eq!(plans.zones.served().map(|zones| zones.all().count()), Some(0));
    // What it is signed as does not matter here.
    let signed = plans.zones.to_sign()[0].source.clone().expect("what is written");
    assert!(plans.zones.take_signed([Arc::clone(&signed)]));
    let zone = &plans.zones.zones()[0];
    assert!(zone.zone.as_ref().is_some_and(|zone| Arc::ptr_eq(zone, &signed)) && zone.source != 0);
    assert_eq!(plans.zones.served().map(|zones| zones.all().count()), Some(1));
    assert!(!plans.zones.take_signed([signed]), "it is the same");
    // A reload goes on with it.
    let again = load(text, &memory, Some(&plans));
    assert_eq!(again.zones.served().map(|zones| zones.all().count()), Some(1));
}

#[test]
fn zones_that_make_and_choose_are_for_clients() {
    let memory = machine(ORG, "", NET);
    let text = "zones: [{name: example.org, file: org, make: [{networks: 192.0.2.0/24}], choose: [{name: www.example.org, type: A, from: [{data: [192.0.2.1, 192.0.2.2], clients: lan}, {data: 192.0.2.3}]}]}]\n";
    let plans = load(text, &memory, None);
    assert!(plans.zones.served().is_some_and(|zones| zones.are_for_clients()));
}

#[test]
fn of_many_files_it_is_heard_how_many_were_read() {
    let mut memory = Memory { heard: Some(RefCell::default()), ..Memory::default() };
    for number in 0..300 {
        let text = b"@ SOA ns.example.net. h.example.net. 1 1 1 1 1\n NS ns.example.net.\n".to_vec();
        memory.files.insert(PathBuf::from(format!("/z/z{number}.example.zone")), text);
    }
    let plans = load("zone-directories: [{path: /z}]\n", &memory, None);
    assert!(plans.zones.served().is_some_and(|zones| zones.len() == 300));
    let heard = memory.heard.map(RefCell::into_inner).unwrap_or_default();
    assert_eq!(heard, ["zones: 256 of all"]);
}

#[test]
fn what_is_said_at_a_catalog_is_for_each_of_its_members() {
    let long = ["a"; 100].join(".");
    let text = format!(
        "checks: {{web: {{port: 80}}}}\nsets: {{europe: {{addresses: 192.0.2.0/24}}}}\n\
             zones: [{{name: catalog.example, catalog-role: consumer, primaries: 192.0.2.1, \
             make: [{{networks: 192.0.2.0/24, origin: \"{{name}}.net\"}}], choose: [\
             {{name: \"www.{{name}}\", type: A, check: web, from: [{{data: 192.0.2.1}}, {{data: 192.0.2.2, sets: europe}}]}}, \
             {{name: \"{long}.{{name}}\", type: A, from: [{{data: 192.0.2.1}}]}}]}}]\n"
    );
    let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
    let Loaded { zones, .. } = load(&text, &memory, None);
    // The catalog itself answers nothing of it.
    assert!(zones.served().is_some_and(|zones| !zones.are_for_clients()));
    assert!(zones.checks().watched.is_empty());
    let catalog = &zones.zones()[0];
    let member = |text: &str, old: Option<&Synthesized>| {
        let plan = ZonePlan {
            apex: NameBuf::from_text(text).expect("a name"),
            catalog_role: None,
            ..ZonePlan::clone(&catalog.plan)
        };
        synthesized(&plan, zones.key, old).expect("something for members")
    };
    let one = member("a.example", None);
    let watched = one.checks.watched.iter();
    let shown: Vec<String> =
        watched.map(|it| format!("{} {} {} {}", it.zone, it.name, it.address, it.check.name)).collect();
    let expected = ["a.example. www.a.example. 192.0.2.1 web", "a.example. www.a.example. 192.0.2.2 web"];
    assert_eq!(shown, expected);
    assert!(one.too_long.is_empty());
    // What stays as it was keeps its place; another member has its own.
    let again = member("a.example", Some(&one));
    let two = member("b.example", Some(&one));
    let place = |synthesized: &Synthesized| Arc::as_ptr(&synthesized.checks.watched[0].down);
    assert_eq!(place(&one), place(&again));
    assert_ne!(place(&one), place(&two));
    // Of a member with a long name, only what does not fit is left out.
    let long = member(&["b"; 50].join("."), None);
    assert_eq!((long.too_long.len(), long.checks.watched.len()), (1, 2));
}

/// Nothing is signed or checked, and no zone is added.
struct Nobody;

impl crate::Watcher for Nobody {
    fn watch(&self, _: Name<'_>, _: &[Arc<Watched>]) {}
}

impl crate::Trust for Nobody {
    fn of(&self, _: Name<'_>, _: &plan::zones::ZonemdPlan) -> Result<plan::zones::ZoneTrust, String> {
        Ok(plan::zones::ZoneTrust::default())
    }
}

impl crate::News for Nobody {
    fn transfer(&self, _: Name<'_>, _: &crate::TransferOutcome<'_>) {}

    fn changed(&self, _: Name<'_>) {}
}

impl crate::Elsewhere for Nobody {
    fn addresses(&self, _: Name<'_>) -> Result<Vec<std::net::IpAddr>, String> {
        Ok(Vec::new())
    }

    fn fetch(&self, _: &crate::WebFile<'_>) -> Result<crate::WebReply, String> {
        Err("nobody is there".to_owned())
    }
}

impl crate::Signer for Nobody {
    fn sign(&self, _: Name<'_>, _: &Arc<Zone>) {}

    fn begin(&self, _: Name<'_>, _: &Arc<SigningPolicy>) -> Option<Arc<Zone>> {
        None
    }

    fn end(&self, _: Name<'_>) {}
}

impl Planner for Nobody {
    fn plan(&self, _: Name<'_>, _: &str) -> Result<Planned, Vec<Diagnostic>> {
        Err(Vec::new())
    }

    fn place(&self, _: Name<'_>, _: &str, _: Vec<Finding>) -> Vec<Diagnostic> {
        Vec::new()
    }
}

#[test]
fn a_zone_that_is_signed_anew_is_served_without_another_configuration() {
    let memory = machine(ORG, "", NET);
    let text = "zones: [{name: example.org, file: org, sign: s}, {name: example.net, file: net}]\nsigning: {s: {}}\n";
    let Loaded { plans, mut zones } = load(text, &memory, None);
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let (reclaim, _freed) = std::sync::mpsc::channel();
    let (reclaim_zones, _freed_zones) = std::sync::mpsc::channel();
    let cell = SnapshotCell::new(Arc::clone(&plans.snapshot), reclaim).reclaiming_zones(reclaim_zones);
    let cell = Arc::new(cell);
    let manager = ZoneManager::start(Dependencies {
        cell: Arc::clone(&cell),
        signer: Arc::new(Nobody),
        watcher: Arc::new(Nobody),
        trust: Arc::new(Nobody),
        elsewhere: Arc::new(Nobody),
        news: Arc::new(Nobody),
        key: plans.snapshot.key,
        transfers: transfer::Client::new(Arc::default()),
        folder: directory.path(),
        register: Register::open(directory.path()),
    });
    let manager = manager.expect("a thread");
    let planner: Arc<dyn Planner> = Arc::new(Nobody);
    manager.adopt(&zones, &planner, None);
    let served = || -> Vec<u32> {
        let (snapshot, authority, _) = cell.load();
        assert!(Arc::ptr_eq(&snapshot, &plans.snapshot), "the configuration is the one there was");
        let authority = authority.expect("zones");
        let mut serials: Vec<u32> = authority.zones.all().map(|zone| zone.facts().serial).collect();
        serials.sort_unstable();
        serials
    };
    assert_eq!(served(), [7]);
    let signed = zones.to_sign()[0].source.clone().expect("what is written");
    assert!(zones.take_signed([signed]));
    manager.adopt(&zones, &planner, None);
    assert_eq!(served(), [1, 7]);
    manager.stop();
}
