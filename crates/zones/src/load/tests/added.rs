//! Zones that are added to a configuration while the server runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::zones::Planner;
use diagnostic::Diagnostic;
use environment::Memory;
use plan::checks::Watched;
use settings::load_text;
use wire::{HashKey, NameBuf};
use zone::Pool;

use super::super::{LoadedFile, LoadedZone, load_one};
use crate::error::explain;

const KEY: HashKey = HashKey::new([1, 2]);

/// A zone that may be added.
struct Addition {
    zone: LoadedZone,
    file: Option<LoadedFile>,
    warnings: Vec<Diagnostic>,
}

/// Plans and loads a zone. `old` is what it was loaded as before.
fn add(
    planner: &Planner,
    apex: &NameBuf,
    said: &str,
    old: Option<&Addition>,
    memory: &Memory,
) -> Result<Addition, Vec<Diagnostic>> {
    let planned = planner.plan(apex.as_name(), said, memory)?;
    let before = (old.and_then(|old| old.file.as_ref()), old.and_then(|old| old.zone.synthesized.as_deref()));
    let pool = Arc::new(Pool::new(1 << 16, 100, KEY));
    let (zone, file, found) = load_one(planned.plan, (KEY, &pool), before, memory);
    let mut warnings = planned.warnings;
    warnings.extend(planner.place(apex.as_name(), said, found.findings, memory));
    warnings.extend(found.diagnostics);
    Ok(Addition { zone, file, warnings })
}

const ZONE: &str = "@ SOA ns.example.net. h.example.net. 7 1 1 1 1\n NS ns.example.net.\n";
const MAIN: &str = "zone-templates:\n  customers:\n    file: \"customers/{name}.zone\"\n    transfer: [key k]\n  listed: {catalog-role: consumer, primaries: 192.0.2.1}\n\
                    keys: [{name: k, secret: AAAA}]\nsigning: {s: {}}\nchecks: {web: {port: 80}}\n\
                    sets: {europe: {addresses: 192.0.2.0/24}}\n";

fn planner(memory: &Memory) -> Arc<Planner> {
    let loaded = load_text(Path::new("/etc/gannet.yaml"), MAIN, memory);
    let loaded = loaded.unwrap_or_else(|found| panic!("{}", found[0].human()));
    let plans = config::compile(&loaded, &[], None, memory);
    let plans = plans.unwrap_or_else(|found| panic!("{}", found[0].human()));
    plans.planner
}

fn check(said: &str, expect: &str) {
    let memory = Memory::new(&[
        ("/etc/customers/a.example.zone", ZONE),
        ("/etc/other", ZONE),
        ("/etc/bad", "@ SOA\n"),
        ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
    ]);
    let apex = NameBuf::from_text("A.example").expect("a name");
    let text = match add(&planner(&memory), &apex, said, None, &memory) {
        Ok(Addition { zone, warnings, .. }) => format!(
            "{:?} serial {:?} transfer {} signed {} warnings {} watched {:?}",
            zone.plan.file.as_ref().map(|file| file.display().to_string()),
            zone.zone.as_ref().map(|zone| zone.facts().serial),
            zone.plan.rights.transfer.len(),
            zone.plan.sign.is_some(),
            warnings.len(),
            zone.synthesized.as_ref().map(|synthesized| {
                let show = |it: &Arc<Watched>| format!("{} {} {}", it.name, it.address, it.check.name);
                synthesized.checks.watched.iter().map(show).collect::<Vec<_>>()
            }),
        ),
        Err(found) => explain(&found),
    };
    assert!(text.contains(expect), "{said}: {text}");
}

#[test]
fn a_zone_is_planned_from_what_is_said_and_its_template() {
    check(
        "like: customers",
        "Some(\"/etc/customers/a.example.zone\") serial Some(7) transfer 1 signed false",
    );
    check("{like: customers, file: other, transfer: []}", "Some(\"/etc/other\") serial Some(7) transfer 0");
    check("file: other\nsign: s", "transfer 0 signed true");
    check("primaries: 192.0.2.1", "None serial None");
    check("", "None serial None transfer 0 signed false warnings 0");
    // Mistakes in a zone's data keep it from being served, not from being added: the file can be
    // mended.
    check("file: bad", "Some(\"/etc/bad\") serial None");
}

#[test]
fn mistakes_are_those_of_the_configuration() {
    check("like: customrs", "unknown template \"customrs\" (did you mean \"customers\"?)");
    check(
        "{like: customers, primaries: 192.0.2.1}",
        "a zone that comes from other servers has no file of its own",
    );
    check("fil: other", "unknown setting \"fil\" (did you mean \"file\"?)");
    check("transfer: [key q]", "unknown key \"q.\"");
    check("name: b.example", "a zone that is added has no \"name\"");
    check("set: x", "a zone that is added has no \"set\"");
    check("like: listed", "a zone that is added has no \"catalog-role\"");
    check("catalog: c.example", "is not a catalog that is made here");
    check("[", "expected");
}

#[test]
fn what_is_chosen_is_checked_as_in_the_configuration() {
    let choose = |name: &str, more: &str| {
        format!(
            "{{file: other, choose: [{{name: \"{name}\", type: A, check: web, from: [{{data: 192.0.2.1}}{more}]}}]}}"
        )
    };
    let watched = "watched Some([\"www.A.example. 192.0.2.1 web\"])";
    check(&choose("www.{name}", ""), watched);
    check(&choose("www.A.example", ", {data: 192.0.2.9, sets: europe}"), "www.A.example. 192.0.2.1 web");
    check(&choose("www.b.example", ""), "\"www.b.example.\" is not in this zone");
    check(&choose("www.{name}", "").replace("web", "wed"), "there is no check \"wed\"");
    check(&choose("www.{name}", ", {data: 192.0.2.2, sets: asia}"), "unknown set \"asia\"");
    check(
        &choose("www.{name}", ", {data: 192.0.2.2, sets: europa}"),
        "unknown set \"europa\" (did you mean \"europe\"?)",
    );
    let long = ["a"; 125].join(".");
    check(&choose(&format!("{long}.{{name}}"), ""), "is not a domain name");
    check("{file: other, make: [{networks: 192.0.2.0/24}]}", "watched Some([])");
    // Another zone may have the same settings: its names are its own.
    let memory = Memory::new(&[("/etc/other", ZONE), ("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
    let planner = planner(&memory);
    let mut places = Vec::new();
    let names = ["a.example", "b.example"].map(|apex| {
        let apex = NameBuf::from_text(apex).expect("a name");
        let planned = add(&planner, &apex, &choose("www.{name}", ""), None, &memory);
        let planned = planned.unwrap_or_else(|found| panic!("{}", explain(&found)));
        let again = add(&planner, &apex, &choose("www.{name}", ""), Some(&planned), &memory);
        let again = again.unwrap_or_else(|found| panic!("{}", explain(&found)));
        let watched =
            |it: &Addition| it.zone.synthesized.as_ref().expect("answers").checks.watched[0].clone();
        // How it stands is not forgotten when it is planned anew, nor is it that of another zone.
        assert!(Arc::ptr_eq(&watched(&planned).down, &watched(&again).down));
        places.push(watched(&again).down.clone());
        watched(&planned).name.to_string()
    });
    assert_eq!(names, ["www.a.example.", "www.b.example."]);
    assert!(!Arc::ptr_eq(&places[0], &places[1]));
    // What is right for one zone is not right for another because of that.
    let fixed = choose("www.a.example", "");
    for (apex, is_right) in [("a.example", true), ("b.example", false), ("a.example", true)] {
        let apex = NameBuf::from_text(apex).expect("a name");
        assert_eq!(add(&planner, &apex, &fixed, None, &memory).is_ok(), is_right);
    }
}

#[test]
fn a_file_is_read_again_only_if_it_has_changed() {
    let mut memory = Memory::new(&[("/etc/other", ZONE), ("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
    let apex = NameBuf::from_text("a.example").expect("a name");
    let planner = planner(&memory);
    let plan = |memory: &Memory, old: Option<&Addition>| {
        add(&planner, &apex, "file: other", old, memory).unwrap_or_else(|_| panic!("a plan"))
    };
    let first = plan(&memory, None);
    let again = plan(&memory, Some(&first));
    let zone = |addition: &Addition| addition.zone.zone.clone().expect("a zone");
    assert!(Arc::ptr_eq(&zone(&first), &zone(&again)) && first.zone.source == again.zone.source);
    memory.files.insert(PathBuf::from("/etc/other"), ZONE.replace(" 7 ", " 8 ").into_bytes());
    let changed = plan(&memory, Some(&again));
    assert_eq!((zone(&changed).facts().serial, changed.zone.source == again.zone.source), (8, false));
}
