//! Each keyword has a test named after it: what is set, and what is said, once it is written.

mod resolution;
mod sections;
mod server;

use std::collections::BTreeMap;

use super::*;
use crate::keywords::{all_sections, rows, section_name};

/// Returns what reading a text says, and what it sets by path.
fn outcome(text: &str) -> (Vec<String>, BTreeMap<String, String>) {
    let memory = Memory::new(&[("/u.conf", text)]);
    let mut sources = Sources::new(&SECRET_KEYS);
    let mut problems = Vec::new();
    let entries = read(Path::new("/u.conf"), &mut sources, &memory, &Changes::default(), &mut problems);
    let said = diagnostics(problems, &sources).iter().map(Diagnostic::line).collect();
    let mut leaves = BTreeMap::new();
    flatten("", &entries.unwrap_or_default(), &mut leaves);
    (said, leaves)
}

fn flatten(above: &str, entries: &[Entry], leaves: &mut BTreeMap<String, String>) {
    for entry in entries {
        let path = if above.is_empty() { entry.key.to_string() } else { format!("{above}/{}", entry.key) };
        match &entry.node.value {
            Value::Map(inside) if !inside.is_empty() => flatten(&path, inside, leaves),
            _ => {
                leaves.insert(path, flow(&entry.node));
            }
        }
    }
}

/// Returns what the rest of a text adds to what its beginning says and sets.
fn effect(before: &str, text: &str) -> String {
    let ((said_before, before), (said, after)) = (outcome(before), outcome(text));
    let mut effect: Vec<String> = said
        .into_iter()
        .filter(|line| !said_before.contains(line))
        .map(|line| line.split_once(": ").map_or(line.clone(), |(_, rest)| rest.to_owned()))
        .collect();
    for (path, value) in &after {
        if before.get(path) != Some(value) {
            effect.push(format!("{path}: {value}"));
        }
    }
    effect.extend(before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("no {path}")));
    effect.join("; ")
}

/// Checks what a keyword does behind `before` in its section: all of it, or its beginning before
/// "…".
fn check_effect(section: &str, keyword: &str, (before, value): (&str, &str), expect: &str) {
    let before = format!("{section}: {before} ");
    let effect = effect(&before, &format!("{before}{keyword}: {value}"));
    match expect.strip_suffix('…') {
        Some(beginning) => assert!(effect.starts_with(beginning), "{keyword}: {effect}"),
        None => assert_eq!(effect, expect, "{keyword}"),
    }
}

/// Makes the tests of one section: the keyword, what stands before it, its value, and its effect.
macro_rules! keywords {
    ($list:ident: $section:literal; $($keyword:ident: $before:literal, $value:literal => $effect:literal;)*) => {
        /// Keywords that have a test here.
        pub(in crate::tests::keywords) const $list: &[&str] = &[$(stringify!($keyword)),*];
        $(
            #[test]
            fn $keyword() {
                let keyword = stringify!($keyword).replace('_', "-");
                check_effect($section, &keyword, ($before, $value), $effect);
            }
        )*
    };
}
use keywords;

/// Returns the keywords of a section that have a test.
fn tested(section: &str) -> Vec<&'static str> {
    let lists: &[&[&str]] = match section {
        "server" => &[server::TESTED, resolution::TESTED],
        "remote-control" => &[sections::remote_control::TESTED],
        "stub-zone" => &[sections::stub_zone::TESTED],
        "forward-zone" => &[sections::forward_zone::TESTED],
        "auth-zone" => &[sections::auth_zone::TESTED],
        "view" => &[sections::view::TESTED],
        "python" => &[sections::python::TESTED],
        "dynlib" => &[sections::dynlib::TESTED],
        "dnscrypt" => &[sections::dnscrypt::TESTED],
        "cachedb" => &[sections::cachedb::TESTED],
        "dnstap" => &[sections::dnstap::TESTED],
        "ipset" => &[sections::ipset::TESTED],
        "rpz" => &[sections::rpz::TESTED],
        _ => &[],
    };
    lists.concat()
}

#[test]
fn every_keyword_has_a_test_named_after_it() {
    for section in all_sections() {
        let keywords: Vec<_> = rows(section).iter().map(|row| row.name.replace('-', "_")).collect();
        assert_eq!(tested(section_name(section)), keywords, "{}", section_name(section));
    }
}
