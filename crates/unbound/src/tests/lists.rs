//! Block lists: lines that are kept apart, and zones that are not looked at one by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;

/// Lines of one form, more than are looked at one by one.
const MANY: usize = 12_000;

/// Returns a list of zones of one type.
fn list(kind: &str) -> String {
    (0..MANY).map(|number| format!(" local-zone: \"n{number}.example\" {kind}\n")).collect()
}

/// Returns the pieces of the text at a path.
fn pieces(entries: &[Entry], set: &str) -> Vec<String> {
    let sets = entries.iter().find(|entry| entry.key == "sets").expect("there are sets");
    let Value::Map(sets) = &sets.node.value else { panic!("{sets:?}") };
    let set = sets.iter().find(|entry| entry.key == set).expect("the set is there");
    let Value::Map(set) = &set.node.value else { panic!("{set:?}") };
    let text = set.iter().find(|entry| entry.key == "text").expect("the set has a text");
    let Value::Long(text) = &text.node.value else { panic!("{text:?}") };
    text.pieces().map(str::to_owned).collect()
}

#[test]
fn a_block_list_is_one_set_whose_text_is_the_names_of_its_lines() {
    let text = format!("server:\n{}", list("always_null"));
    let (entries, found) = read_files(&[("u.conf", &text)]);
    assert!(found.is_empty(), "{found:?}");
    let pieces = pieces(&entries, "local-always-null-0");
    assert_eq!(pieces.len(), 2, "what stays in the text, and what is kept apart");
    let names: String = (0..MANY).map(|number| format!("n{number}.example\n")).collect();
    assert_eq!(pieces.concat(), names);
    assert!(at(&entries, "policy/local-zones").starts_with("[{if: qname in local-always-null-0, do: [block"));
}

#[test]
fn zones_whose_names_have_their_data_by_type_are_one_set_and_a_rule_for_each_type() {
    for (kind, blocked, count) in
        [("typetransparent", 0, MANY), ("block_a_wdata", 1, MANY), ("block_aaaa_wdata", 1, 100_000)]
    {
        let zones: String =
            (0..count).map(|number| format!(" local-zone: n{number}.example {kind}\n")).collect();
        let without = format!("server:\n{zones}");
        let data = |number: usize| {
            format!(
                " local-data: \"n{number}.example A 192.0.2.1\"\n local-data: \"b.n{number}.example TXT b\"\n"
            )
        };
        let with = format!("{without}{}", (0..count).map(data).collect::<String>());
        for (text, types) in [(&without, 0), (&with, 2)] {
            let (entries, found) = read_files(&[("u.conf", text)]);
            assert!(found.is_empty(), "{found:?}");
            let names = pieces(&entries, &format!("local-{}-0", kind.replace('_', "-"))).concat();
            assert_eq!(names.lines().count(), count, "{kind}");
            let policy = entries.iter().find(|entry| entry.key == "policy").expect("there is a policy");
            let Value::Map(policies) = &policy.node.value else { panic!("{policy:?}") };
            let zones = policies.iter().find(|entry| entry.key == "local-zones").expect("it has zones");
            let Value::List(rules) = &zones.node.value else { panic!("{kind}") };
            // Each type of data, what is blocked, the zones themselves, other data, built-in zones.
            assert_eq!(rules.len(), types + blocked + 1 + usize::from(types > 0) + 1, "{kind}");
        }
    }
}

#[test]
fn lists_of_several_files_are_one_set() {
    let half = |begin: usize| -> String {
        (begin..begin + MANY).map(|it| format!("local-zone: n{it}.example. refuse\r\n")).collect()
    };
    let files = [
        ("/u.conf", "server: include: /l/*.conf\n port: 5353\n"),
        ("/l/a.conf", &half(0)),
        ("/l/b.conf", &half(MANY)),
    ];
    let (entries, found) = read_files(&files);
    assert!(found.is_empty(), "{found:?}");
    let names: String = (0..2 * MANY).map(|number| format!("n{number}.example\n")).collect();
    let mut lines: Vec<String> =
        pieces(&entries, "local-refuse-0").concat().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    let mut expect: Vec<&str> = names.lines().collect();
    expect.sort_unstable();
    assert_eq!(lines, expect);
}

#[test]
fn mistakes_behind_lines_that_are_kept_apart_have_their_own_lines() {
    let text = format!("server:\n{}  nonsense: 1\n{} port: fifty", list("always_null"), list("always_null"));
    let (_, found) = read_files(&[("u.conf", &text)]);
    let line = MANY + 2;
    assert_eq!(
        found,
        [
            format!("u.conf:{line}:3: error: unknown keyword \"nonsense\""),
            format!(
                "u.conf:{}:8: error: \"fifty\" is no value of \"port\": expected a whole number",
                line + MANY + 1
            ),
        ]
    );
}

#[test]
fn of_a_zone_in_a_list_and_another_one_of_its_name_the_last_counts() {
    let text = format!("server:\n{} local-zone: n5000.example. static\n", list("always_null"));
    let (entries, found) = read_files(&[("u.conf", &text)]);
    let twice = "the local zone \"n5000.example\" is there twice: the last one counts";
    assert_eq!(found, [format!("u.conf:5002:2: warning: {twice}")]);
    let names = pieces(&entries, "local-always-null-0").concat();
    assert!(!names.contains("n5000.example\n") && names.contains("n5001.example\n"));
    assert!(at(&entries, "policy/local-zones").contains("qname in suffix:n5000.example"));
}

/// Returns what the rules of local zones do with a name: the first one that fits.
fn answer(entries: &[Entry], name: &str) -> String {
    let Some(Value::Map(policies)) = entries.iter().find(|it| it.key == "policy").map(|it| &it.node.value)
    else {
        panic!("there is a policy")
    };
    let Some(Value::List(rules)) =
        policies.iter().find(|it| it.key == "local-zones").map(|it| &it.node.value)
    else {
        panic!("there are local zones")
    };
    let is_in = |zone: &str| name == zone || name.ends_with(&format!(".{zone}"));
    for rule in rules {
        let Value::Map(rule) = &rule.value else { continue };
        let part = |key: &str| rule.iter().find(|it| it.key == key).map(|it| flow(&it.node));
        let (condition, action) = (part("if").unwrap_or_default(), part("do").unwrap_or_default());
        let wanted = condition.strip_prefix("qname in ").expect("conditions are about names");
        let fits = match wanted.strip_prefix("suffix:") {
            Some(zone) => is_in(zone),
            None => {
                let names = at(entries, &format!("sets/{wanted}/names"));
                let text = at(entries, &format!("sets/{wanted}/text"));
                let names =
                    names.trim_matches(['[', ']']).split(", ").filter_map(|it| it.strip_prefix("suffix:"));
                names.chain(text.lines()).any(is_in)
            }
        };
        if fits {
            return action;
        }
    }
    "none".to_owned()
}

#[test]
fn the_closest_zone_counts_whatever_lists_are_above_and_below() {
    // Names of one to four labels out of few, so that most lie below others.
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut name = || -> String {
        let labels: Vec<String> = (0..=next(4)).map(|_| format!("l{}", next(40))).collect();
        labels.join(".")
    };
    let kinds = [
        ("always_nxdomain", "[respond(nxdomain, authoritative)]"),
        ("always_refuse", "[respond(refused, authoritative)]"),
        ("always_transparent", "[return]"),
    ];
    let mut zones: BTreeMap<String, usize> = BTreeMap::new();
    let mut text = "server:\n".to_owned();
    for number in 0..40_000 {
        // One in fifty is an exception, half of these from a second list.
        let kind = if number % 50 != 0 { 0 } else { 1 + number / 50 % 2 };
        let zone = name();
        text.push_str(&format!("local-zone: {zone} {}\n", kinds[kind].0));
        zones.insert(zone, kind);
    }
    let (entries, _) = read_files(&[("u.conf", &text)]);
    let in_bulk = pieces(&entries, "local-always-nxdomain-0").concat().lines().count();
    assert!(in_bulk > 20_000, "most are not looked at one by one: {in_bulk}");
    for _ in 0..200 {
        let asked = name();
        let above = std::iter::successors(Some(&*asked), |name| name.split_once('.').map(|(_, rest)| rest));
        let expect = above.into_iter().find_map(|name| zones.get(name)).map_or("none", |&kind| kinds[kind].1);
        assert_eq!(answer(&entries, &asked), expect, "{asked}");
    }
}

#[test]
fn data_in_a_zone_of_a_list_is_answered_by_its_type() {
    let data = " local-data: \"www.n5000.example A 192.0.2.1\"\n local-data-ptr: \"192.0.2.9 p.example\"\n";
    for (kind, expect) in [
        ("refuse", "qtype == A and qname in exact:www.n5000.example"),
        ("static", "{if: qname in local-static-1, do: [records(local-data)]}"),
    ] {
        let text = format!("server:\n{}{data}", list(kind));
        let (entries, found) = read_files(&[("u.conf", &text)]);
        assert!(found.is_empty(), "{found:?}");
        let policy = at(&entries, "policy/local-zones");
        let whole = policy.replace("local-static-0", "local-static-1");
        assert!(whole.contains(expect), "{kind}: {policy}");
    }
}

#[test]
fn a_zone_of_a_list_with_an_soa_has_it_in_denials() {
    let soa = "n5000.example SOA ns.example h.example 1 2 3 4 5";
    let text = format!("server:\n{} local-data: \"{soa}\"\n", list("always_nxdomain"));
    let (entries, found) = read_files(&[("u.conf", &text)]);
    assert_eq!(found, [""; 0]);
    let policy = at(&entries, "policy/local-zones");
    let places = ["authority \"n5000.example. 5 SOA", "qname in local-always-nxdomain-0"];
    let places = places.map(|it| policy.find(it));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {policy}");
}

#[test]
fn changes_take_zones_out_of_lists() {
    let text = format!("server:\n{}", list("always_null"));
    let before = {
        let mut sources = Sources::new(&SECRET_KEYS);
        let memory = Memory::new(&[("u.conf", &text)]);
        let none = Changes::default();
        read(Path::new("u.conf"), &mut sources, &memory, &none, &mut Vec::new()).expect("it is there");
        sources
    };
    let mut changes = Changes::default();
    changes.remove_local_zone(None, "n10.example").expect("changed");
    changes.remove_local_zone(None, "n7000.example.").expect("changed");
    changes.local_zone(None, "N8000.example", "always_refuse").expect("changed");
    let (mut sources, mut problems) = (Sources::new(&SECRET_KEYS), Vec::new());
    let entries = read_again(&before, &mut sources, &changes, &mut problems).expect("it is in memory");
    assert!(diagnostics(problems, &sources).is_empty());
    let names = pieces(&entries, "local-always-null-0").concat();
    assert_eq!(names.lines().count(), MANY - 3);
    for gone in ["n10.example\n", "n7000.example\n", "n8000.example\n"] {
        assert!(!names.contains(gone), "{gone}");
    }
    assert!(names.starts_with("n0.example\n") && names.contains("\nn7001.example\n"));
    assert!(at(&entries, "policy/local-zones").contains("qname in suffix:n8000.example"));
    let words =
        |sources: &Sources| Arc::clone(&sources.file(FileId(0)).expect("it is there").forms()[0].words);
    assert!(Arc::ptr_eq(&words(&before), &words(&sources)), "the names are there once");
    let facts = Facts::of(&before, &changes);
    let zones = facts.local_zones(None);
    assert_eq!(zones.len(), MANY - 2);
    assert!(zones.contains(&("n8000.example".to_owned(), "always_refuse".to_owned())));
}

#[test]
fn whoever_only_looks_for_mistakes_finds_all_of_them_and_keeps_no_names() {
    let lines = list("always_null");
    for tail in [
        " port: fifty\n local-data: nonsense\n",
        " local-zone-tag: n11000.example t\n define-tag: t\n local-zone-tag: m.example t\n",
        " local-zone-override: n11000.example 192.0.2.0/24 deny\n local-zone: m.example nonsense\n",
    ] {
        let text = format!("server:\n{lines}{tail}");
        let memory = Memory::new(&[("u.conf", &text)]);
        let (mut sources, mut problems) = (Sources::new(&SECRET_KEYS), Vec::new());
        check_file(&memory, &mut sources, &mut problems);
        let found: Vec<String> = diagnostics(problems, &sources).iter().map(Diagnostic::line).collect();
        assert_eq!(found, read_files(&[("u.conf", &text)]).1);
        assert!(!found.is_empty(), "{tail}");
    }
    let text = format!("server:\n{lines}");
    let memory = Memory::new(&[("u.conf", &text)]);
    let (mut sources, mut problems) = (Sources::new(&SECRET_KEYS), Vec::new());
    let entries = check_file(&memory, &mut sources, &mut problems);
    assert!(problems.is_empty());
    let kept: usize = sources.files().map(|file| file.text().len()).sum();
    assert!(kept < lines.len() / 10, "{kept} octets of text");
    assert_eq!(pieces(&entries, "local-always-null-0").concat().lines().count(), 1000);
}

fn check_file(memory: &Memory, sources: &mut Sources, problems: &mut Vec<Problem>) -> Vec<Entry> {
    super::super::check(Path::new("u.conf"), sources, memory, problems).expect("it can be read")
}

#[test]
fn a_file_that_is_no_text_is_named_with_the_line() {
    let mut memory = Memory::new(&[("u.conf", "server: include: /bad.conf\n port: fifty\n")]);
    memory.files.insert("/bad.conf".into(), b"port: 53\n# \xff\n".to_vec());
    let found = |memory: &Memory| {
        let (mut sources, mut problems) = (Sources::new(&SECRET_KEYS), Vec::new());
        let none = Changes::default();
        let entries = read(Path::new("u.conf"), &mut sources, memory, &none, &mut problems);
        let lines: Vec<String> = diagnostics(problems, &sources).iter().map(Diagnostic::line).collect();
        (entries.is_some(), lines)
    };
    assert_eq!(
        found(&memory),
        (
            true,
            vec![
                "u.conf:1:18: error: \"/bad.conf\": not UTF-8 text (line 2)".to_owned(),
                "u.conf:2:8: error: \"fifty\" is no value of \"port\": expected a whole number".to_owned()
            ]
        )
    );
    memory.files.insert("u.conf".into(), b"server:\n\n# \xff\n".to_vec());
    assert_eq!(found(&memory), (false, vec!["u.conf: error: not UTF-8 text (line 3)".to_owned()]));
    memory.files.clear();
    assert_eq!(
        found(&memory),
        (false, vec!["u.conf: error: cannot read it: no such file or directory".to_owned()])
    );
}
