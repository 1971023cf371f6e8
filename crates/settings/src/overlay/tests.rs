//! Changes over files, from memory.

use std::path::Path;

use environment::Memory;

use super::*;
use crate::print;

fn memory(files: &[(&str, &str)]) -> Memory {
    let mut memory = Memory::default();
    memory.files.extend(files.iter().map(|(path, text)| ((*path).into(), text.as_bytes().to_vec())));
    memory
}

fn load(text: &str) -> Loaded {
    let memory = memory(&[("/etc/g.yaml", text)]);
    match crate::load_in(Path::new("/etc/g.yaml"), &memory) {
        Ok(loaded) => loaded,
        Err(found) => panic!("{}", found[0].human()),
    }
}

/// Changes by path, numbered from 1; what is taken away has no text.
fn layers(changes: &[(&str, Option<&str>)]) -> Vec<Layer> {
    let layer = |(number, (path, text)): (usize, &(&str, Option<&str>))| {
        let path = SettingPath::parse(path).expect("a path");
        Layer::new(path, text.map(Arc::from), format!("change {} by anna", number + 1))
    };
    changes.iter().enumerate().map(layer).collect()
}

fn changed(file: &str, changes: &[(&str, Option<&str>)]) -> Result<Loaded, Vec<String>> {
    let found = load(file).with_changes(&layers(changes), &memory(&[]));
    found.map_err(|found| found.iter().map(Diagnostic::line).collect())
}

fn ok(file: &str, changes: &[(&str, Option<&str>)]) -> Loaded {
    changed(file, changes).expect("no mistakes")
}

#[test]
fn a_path_is_followed_in_the_schema() {
    let check = |text: &str, keys: &[&str]| {
        let path = SettingPath::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(path.keys(), keys, "{text}");
        assert_eq!(SettingPath::parse(&path.to_string()), Ok(path), "{text}: it is read as it is written");
    };
    check("cache.main.size", &["cache", "main", "size"]);
    check("upstreams.fast", &["upstreams", "fast"]);
    check("listen", &["listen"]);
    check("policy.main", &["policy", "main"]);
    check("local.nas.home.arpa", &["local", "nas.home.arpa"]);
    check("local.\"nas.home.arpa\"", &["local", "nas.home.arpa"]);
    check("resolvers.default.zones.corp.example", &["resolvers", "default", "zones", "corp.example"]);
    check(
        "resolvers.default.zones.corp.example.stub",
        &["resolvers", "default", "zones", "corp.example", "stub"],
    );
    check("resolvers.default.zones.\"a.stub\".stub", &["resolvers", "default", "zones", "a.stub", "stub"]);
    let refused = |text: &str, expect: &str| {
        let why = SettingPath::parse(text).expect_err("no path");
        assert!(why.contains(expect), "{text}: {why}");
    };
    refused("", "empty");
    refused("cahce.main.size", "did you mean \"cache\"");
    refused("cache.main.sizes", "did you mean \"size\"");
    refused("listen.at", "it is set as a whole");
    refused("cache.main.", "ends in a dot");
    refused("cache..size", "empty part");
    refused("local.\"a", "not closed");
    for text in ["include", "server.state-directory", "server.user", "control.changes", "control.locked"] {
        refused(text, "in the file alone");
    }
    refused("server", "one by one");
    refused("control", "one by one");
}

#[test]
fn a_change_replaces_what_the_file_says_and_nothing_beside_it() {
    let file = "cache: {main: {size: 64MiB, max-ttl: 1h}, other: {size: 32MiB}}\npolicy: {main: [cache(main), cache(other), forward(default)]}\n";
    let loaded = ok(file, &[("cache.main.size", Some("128MiB"))]);
    let sizes: Vec<u64> = loaded.settings.caches.iter().map(|cache| cache.size >> 20).collect();
    assert_eq!(sizes, [128, 32]);
    assert!(print::show(&loaded).contains("max-ttl: 1h"));
    // The whole cache: what the file said of it beside is gone.
    let loaded = ok(file, &[("cache.main", Some("{size: 16MiB}"))]);
    assert!(!print::show(&loaded).contains("max-ttl: 1h"));
    // A list is replaced as a whole.
    let loaded = ok("allow: [192.0.2.0/24, 198.51.100.0/24]\n", &[("allow", Some("203.0.113.0/24"))]);
    assert_eq!(loaded.settings.allow.value.len(), 1);
}

#[test]
fn of_two_changes_the_one_to_the_part_counts_there() {
    let changes = [("cache.main.size", Some("128MiB")), ("cache.main", Some("{size: 16MiB, max-ttl: 2h}"))];
    let loaded = ok("", &changes);
    assert_eq!(loaded.settings.caches[0].size, 128 << 20);
    assert!(print::show(&loaded).contains("max-ttl: 2h"));
}

#[test]
fn what_is_taken_away_is_not_there_whatever_the_file_says() {
    let file = "local: {a.example: 192.0.2.1, b.example: 192.0.2.2}\n";
    let loaded = ok(file, &[("local.a.example", None)]);
    assert_eq!(loaded.settings.local.len(), 1);
    assert_eq!(ok(file, &[("local.c.example", None)]).settings.local.len(), 2);
    assert_eq!(ok(file, &[("local", None)]).settings.local.len(), 0);
}

#[test]
fn a_change_to_what_the_file_does_not_say_adds_to_the_default() {
    let loaded = ok("", &[("upstreams.fast", Some("192.0.2.1")), ("cache.small", Some("{size: 1MiB}"))]);
    let groups: Vec<&str> = loaded.settings.upstreams.iter().map(|group| group.name.value.as_str()).collect();
    assert_eq!(groups, ["default", "fast"]);
    assert_eq!(loaded.settings.caches.len(), 2);
    // The built-in policy still fits, and has another one beside it.
    let loaded = ok("upstreams: {only: 192.0.2.1}\n", &[("policy.other", Some("[drop]"))]);
    assert!(!loaded.settings.policy_is_given);
    let shown = print::show(&loaded);
    assert!(shown.contains("forward(only)") && shown.contains("drop"), "{shown}");
    let again = load(&shown);
    assert_eq!(again.settings.policies, loaded.settings.policies);
}

#[test]
fn short_forms_of_the_file_have_room_for_changes() {
    let loaded = ok("upstreams: [192.0.2.1]\n", &[("upstreams.fast", Some("[192.0.2.2, 192.0.2.3]"))]);
    let servers: Vec<usize> = loaded.settings.upstreams.iter().map(|group| group.servers.len()).collect();
    assert_eq!(servers, [1, 2]);
    let loaded = ok("upstreams: {fast: 192.0.2.1}\n", &[("upstreams.fast.pick", Some("balanced"))]);
    assert_eq!(loaded.settings.upstreams[0].servers.len(), 1);
}

#[test]
fn a_mistake_is_reported_at_its_place_in_the_change() {
    let found = changed("", &[("cache.main", Some("size: 1GiB\nmax-tl: 5"))]).expect_err("a mistake");
    assert!(found[0].starts_with("change 1 by anna:2:1: error: unknown setting \"max-tl\""), "{found:?}");
    let found = changed("", &[("cache.main.size", Some("12"))]).expect_err("a mistake");
    assert!(found[0].starts_with("change 1 by anna:1:1: error: "), "{found:?}");
    let found =
        changed("", &[("policy.main", Some("[forward(fsat)]")), ("upstreams.fast", Some("192.0.2.1"))]);
    let found = found.expect_err("a mistake");
    assert!(
        found[0].starts_with("change 1 by anna:1:") && found[0].contains("unknown upstream group \"fsat\""),
        "{found:?}"
    );
    let found = changed("", &[("allow", Some("[a, "))]).expect_err("a mistake");
    assert!(found[0].starts_with("change 1 by anna:1:"), "{found:?}");
    let found = changed("", &[("allow", Some(" "))]).expect_err("a mistake");
    assert!(found[0].contains("nothing is said at \"allow\""), "{found:?}");
    // What the file says of the same kind is still wrong where it is.
    let file = "upstreams: {fast: 192.0.2.1}\npolicy: {main: [forward(fast)]}\n";
    let found = changed(file, &[("upstreams.fast", None), ("upstreams.slow", Some("192.0.2.2"))]);
    assert!(found.expect_err("a mistake")[0].starts_with("/etc/g.yaml:2:"));
}

#[test]
fn what_says_the_same_as_the_file_is_a_warning_with_both_places() {
    let loaded = ok("edns:\n  udp-size: 1400\n", &[("edns.udp-size", Some("1400"))]);
    let warning = loaded.warnings[0].human();
    assert!(warning.contains("change 1 by anna:1:1") && warning.contains("/etc/g.yaml line 2"), "{warning}");
    assert_eq!(ok("edns:\n  udp-size: 1400\n", &[("edns.udp-size", Some("1232"))]).warnings, []);
    // Another text for the same is another one.
    assert_eq!(ok("", &[("edns.udp-size", Some("1232"))]).warnings, []);
}

#[test]
fn what_is_shown_says_which_change_set_it() {
    let loaded = ok("edns:\n  udp-size: 1400\n", &[("edns.udp-size", Some("1232"))]);
    let shown = print::show(&loaded);
    assert!(
        shown.lines().any(|line| line.contains("udp-size: 1232") && line.ends_with("# change 1 by anna:1"))
    );
}

#[test]
fn paths_in_a_change_are_relative_to_the_file() {
    let memory = memory(&[("/etc/gannet/g.yaml", "")]);
    let loaded = crate::load_in(Path::new("/etc/gannet/g.yaml"), &memory).expect("no mistakes");
    let loaded =
        loaded.with_changes(&layers(&[("hosts.files", Some("[own]"))]), &memory).expect("no mistakes");
    assert!(format!("{:?}", loaded.settings.hosts).contains("/etc/gannet/own"));
}

#[test]
fn other_changes_take_the_place_of_those_before() {
    let first = ok("allow: lan\n", &[("edns.udp-size", Some("1232"))]);
    let second = first.with_changes(&layers(&[("edns.padding", Some("128"))]), &memory(&[])).expect("fine");
    assert_eq!((second.settings.udp_size, second.settings.padding), (1232, 128));
    let alone = second.without_changes(&memory(&[])).expect("fine");
    assert_eq!(alone.settings, load("allow: lan\n").settings);
    assert!(alone.layers().is_empty() && second.layers().len() == 1);
}

#[test]
fn no_secret_of_a_change_is_shown() {
    const SECRET: &str = "000102030405060708090a0b0c0d0e0f";
    let changes = [("cookies.secret", Some(SECRET))];
    let loaded = ok("", &changes);
    assert!(!print::show(&loaded).contains("000102"));
    assert!(!export(&loaded, false).contains("000102"));
    assert!(export(&loaded, true).contains(SECRET));
    let all = difference(&loaded, [&[], loaded.layers()], &memory(&[]));
    assert!(all.len() == 1 && !format!("{all:?}").contains("000102"), "{all:?}");
    let found = changed("", &[("cookies.secret", Some("00010203040506070809zz"))]).expect_err("a mistake");
    assert!(!found.join("\n").contains("0001020304"), "{found:?}");
    // What is no YAML either is shown in no part.
    for text in ["\"0001020304050607", "[0001020304050607", "&x 0001020304050607: }"] {
        let found = changed("", &[("cookies.secret", Some(text))]).expect_err("a mistake");
        let said = found.join("\n");
        assert!(!said.contains("00010203") && said.contains("cookies.secret"), "{said}");
    }
}

#[test]
fn a_difference_names_each_setting_that_is_another() {
    let loaded = load("cache: {main: {size: 64MiB}}\nlocal: {a.example: 192.0.2.1}\n");
    let before = layers(&[("cache.main.size", Some("128MiB"))]);
    let after = layers(&[("local.a.example", None), ("allow", Some("lan"))]);
    let all = difference(&loaded, [&before, &after], &memory(&[]));
    let lines: Vec<String> = all
        .iter()
        .map(|it| {
            format!(
                "{} {} {}",
                it.path,
                it.before.as_deref().unwrap_or("-"),
                it.after.as_deref().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(lines, ["cache.main.size 128MiB 64MiB", "local.a.example 192.0.2.1 -", "allow - lan"]);
    assert!(difference(&loaded, [&before, &before], &memory(&[])).is_empty());
}

#[test]
fn of_many_differences_the_first_are_shown_and_the_others_counted() {
    let file = "local: {a.example: 192.0.2.1}\nedns: {padding: 128}\n";
    let names: Vec<String> = (0..20).map(|number| format!("local.n{number:02}.example")).collect();
    let changes: Vec<(&str, Option<&str>)> =
        names.iter().map(|name| (name.as_str(), Some("192.0.2.2"))).collect();
    let (loaded, layers, memory) = (load(file), layers(&changes), memory(&[]));
    let first = |max| first_differences(&loaded, [&[], &layers], &memory, &|_| String::new(), max);
    let (all, more) = first(usize::MAX);
    assert_eq!((all.len(), more), (20, 0), "{all:?}");
    let (some, more) = first(3);
    assert_eq!((some.as_slice(), more), (&all[..3], 17));
    // What a change says is read once, and means the same each time.
    let twice = [(); 2].map(|()| loaded.with_changes(&layers, &memory).expect("no mistakes").settings);
    assert!(twice[0] == twice[1] && twice[0].local.len() == 21);
}

#[test]
fn what_is_exported_is_a_file_that_says_the_same() {
    let changes = [
        ("cache.main.size", Some("128MiB")),
        ("upstreams.fast", Some("[192.0.2.2, {address: 192.0.2.3, weight: 2}]")),
        ("policy.main", Some("- {if: qname in x, do: drop}\n- [cache(main), forward(fast)]")),
        ("sets.x.names", Some("[\"suffix:ads.example\"]")),
        ("server.version", Some("\"a: b $${X}\"")),
        ("server.hostname", Some("${NONE:-here}")),
        ("local", None),
    ];
    let loaded = ok("", &changes);
    let exported = export(&loaded, false);
    assert!(exported.starts_with("# taken away, remove it from the file: local\n"), "{exported}");
    assert_eq!(load(&exported).settings, loaded.settings, "{exported}");
}

#[test]
fn a_setting_says_what_it_says_and_where() {
    const SECRET: &str = "000102030405060708090a0b0c0d0e0f";
    let file = "cache: {other: {size: 2MiB}}\nlocal: {a.home.arpa: 192.0.2.1}\n";
    let loaded = ok(file, &[("local.b.home.arpa", Some("[192.0.2.2]"))]);
    let check = |path: &str, expect: Option<(&str, Option<&str>)>| {
        let said = said(&loaded, &SettingPath::parse(path).expect("a path"));
        let found = said.as_ref().map(|said| (said.text.as_str(), said.origin.as_deref()));
        assert_eq!(found, expect, "{path}");
    };
    check("local.a.home.arpa", Some(("192.0.2.1", Some("/etc/g.yaml:2"))));
    check("local.b.home.arpa", Some(("[192.0.2.2]", Some("change 1 by anna:1"))));
    check("local.c.home.arpa", None);
    check("cache.other.size", Some(("2MiB", Some("/etc/g.yaml:1"))));
    check("cache.main.size", None);
    check("edns.udp-size", Some(("1232", None)));
    check("upstreams.default.servers", Some(("[system]", None)));
    check("upstreams.fast.pick", None);
    let paths: Vec<String> = all_said(&loaded).into_iter().map(|said| said.path).collect();
    assert_eq!(paths, ["cache.other.size", "local.a.home.arpa", "local.b.home.arpa"]);
    let secret = ok(&format!("cookies: {{secret: {SECRET}}}\n"), &[]);
    let cookies = said(&secret, &SettingPath::parse("cookies").expect("a path"));
    for said in all_said(&secret).into_iter().chain(cookies) {
        assert!(!said.text.contains(SECRET), "{said:?}");
    }
}

#[test]
fn what_is_locked_or_no_data_is_not_changed() {
    let allowed = |file: &str, path: &str| {
        let path = SettingPath::parse(path).expect("a path");
        load(file).settings.changes.refusal(&path)
    };
    assert_eq!(allowed("", "policy.main"), None);
    let locked = "control: {locked: [policy.main, cache.main.size]}\n";
    for path in ["policy.main", "policy", "cache.main", "cache.main.size"] {
        assert!(allowed(locked, path).is_some_and(|why| why.contains("control.locked")), "{path}");
    }
    assert_eq!(allowed(locked, "policy.other"), None);
    assert_eq!(allowed(locked, "cache.main.max-ttl"), None);
    let data = "control: {changes: data}\n";
    assert_eq!(allowed(data, "local.nas.home.arpa"), None);
    assert_eq!(allowed(data, "sets.ads"), None);
    assert!(allowed(data, "upstreams.fast").is_some_and(|why| why.contains("control.changes: data")));
    assert!(allowed("control: {changes: never}\n", "sets.ads").is_some_and(|why| why.contains("never")));
    let memory = memory(&[("/etc/g.yaml", "control: {locked: [polcy]}\n")]);
    let found = crate::load_in(Path::new("/etc/g.yaml"), &memory).expect_err("a mistake");
    assert!(
        found[0].line().starts_with("/etc/g.yaml:1:20: error: unknown setting \"polcy\""),
        "{}",
        found[0].line()
    );
}

#[test]
fn changes_to_one_mapping_count_in_any_order_beside_what_is_taken_away() {
    let file = "local: {a.example: 192.0.2.1, b.example: 192.0.2.2, c.example: 192.0.2.3}\n";
    let changes = [
        ("local.a.example", None),
        ("local.n1.example", Some("192.0.2.11")),
        ("edns.udp-size", Some("1400")),
        ("local.c.example", Some("192.0.2.13")),
        ("cache.main.size", Some("128MiB")),
        ("local.n2.example", Some("192.0.2.12")),
        ("local.d.example", None),
    ];
    for turn in 0..changes.len() {
        let mut changes = changes;
        changes.rotate_left(turn);
        let loaded = ok(file, &changes);
        let mut shown: Vec<String> = print::show(&loaded)
            .lines()
            .filter(|line| line.contains(".example"))
            .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned())
            .collect();
        shown.sort();
        let expected = [
            "b.example: 192.0.2.2",
            "c.example: 192.0.2.13",
            "n1.example: 192.0.2.11",
            "n2.example: 192.0.2.12",
        ];
        assert_eq!(shown, expected, "{turn}");
        assert_eq!((loaded.settings.udp_size, loaded.settings.caches[0].size >> 20), (1400, 128));
    }
}
