//! The README's tables of what works and what does not, held against the program.

use std::path::Path;

use crate::harness::{Place, text};

/// Rows of "works", with settings and commands that each of them stands on.
const WORKS: &[(&str, &[&str], &[&str])] = &[
    (
        "forwarding",
        &["upstreams.*.pick", "upstreams.*.servers", "cache.*.stale", "cache.*.dump.file"],
        &["cache stats", "probe"],
    ),
    (
        "recursion",
        &[
            "resolvers.*.root-hints",
            "resolvers.*.zones.*.forward",
            "resolvers.*.qname-minimisation",
            "resolvers.*.limits.queries",
        ],
        &["explain"],
    ),
    ("policy", &["policy.*[].if", "sets.*.lists", "views", "conditions"], &["explain", "lists update"]),
    (
        "encrypted transports",
        &["listen[].transport", "tls.certificates", "oblivious", "upstreams.*.servers[].relay"],
        &["certificate"],
    ),
    (
        "authoritative zones",
        &["zones[].file", "zones[].primaries", "zones[].update", "zones[].catalog-role", "keys"],
        &["zone check", "zone add", "zone retransfer"],
    ),
    (
        "DNSSEC signing",
        &["zones[].sign", "signing.*.token", "signing.*.denial", "signing.*.zsk-lifetime"],
        &["zone keys roll", "zone sign"],
    ),
    ("AF_XDP", &["xdp"], &["xdp check"]),
    (
        "operation",
        &["recorder.file", "metrics.listen", "control.listen"],
        &["reload", "explain", "log", "stats", "token add", "audit verify"],
    ),
    ("import", &[], &["import"]),
];

/// Rows of "does not work yet", with words that no setting and no command has until it does.
const MISSING: &[(&str, &[&str])] =
    &[("dashboard", &["dashboard"]), ("load balancing of clients", &["balanc", "affinity"])];

/// Returns the first cells of the table below `head`.
fn rows<'a>(readme: &'a str, head: &str) -> Vec<&'a str> {
    let (_, table) = readme.split_once(&format!("| {head} | |\n|---|---|\n")).expect("the table");
    table.lines().map_while(|line| line.strip_prefix("| ")?.split(" |").next()).collect()
}

/// Returns the paths of all settings.
fn settings() -> Vec<String> {
    let (_, manual, _) = text(&Place::new().run(&["config", "schema"]));
    let path = |line: &str| {
        let path = line.trim_start_matches('#').strip_prefix(" `")?.strip_suffix('`')?;
        line.starts_with("##").then(|| path.to_owned())
    };
    manual.lines().filter_map(path).collect()
}

#[test]
fn what_the_readme_says_works_has_its_settings_and_commands() {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let known: Vec<&str> = WORKS.iter().map(|(row, ..)| *row).collect();
    assert_eq!(rows(&readme, "works"), known);
    let (settings, place) = (settings(), Place::new());
    for (row, paths, commands) in WORKS {
        for path in *paths {
            assert!(settings.iter().any(|known| known == path), "{row}: there is no setting {path}");
        }
        for command in *commands {
            let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
            let (code, stdout, stderr) = text(&place.run(&words));
            assert!(
                code == 0 && stdout.contains(&format!("Usage: gannet {command}")),
                "{row}: {stdout}{stderr}"
            );
        }
    }
    let (_, stdout, _) = text(&place.run(&["import", "--help"]));
    for program in ["mosdns", "oxidns", "knot", "nsd", "bind", "erldns"] {
        assert!(stdout.contains(program), "no import from {program}");
    }
}

#[test]
fn what_the_readme_says_is_missing_is_missing() {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let known: Vec<&str> = MISSING.iter().map(|(row, _)| *row).collect();
    assert_eq!(rows(&readme, "does not work yet"), known);
    let (_, help, _) = text(&Place::new().run(&["help"]));
    let command = |line: &str| Some(line.strip_prefix("  ")?.split(' ').next()?.to_owned());
    let mut words: Vec<String> = help.lines().filter_map(command).collect();
    words.extend(settings());
    for (row, missing) in MISSING {
        for word in words.iter().flat_map(|word| word.split(['.', '-', '[', ']', '*'])) {
            let is_there = missing.iter().any(|missing| word.starts_with(missing));
            assert!(!is_there, "{row}: {word} exists; the README must say so");
        }
    }
}
