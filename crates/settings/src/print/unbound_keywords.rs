//! The page of the manual on the keywords of `unbound.conf`: what becomes of each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use unbound::Effect;

const OPENING: &str = "<!-- Printed from the table of keywords by `cargo xtask docs`. Do not edit. -->

# Keywords of unbound.conf

What becomes of each keyword; how files are read is on the page [Unbound](unbound.md). Settings are
on the page [Settings](settings.md); where none is named, the keyword becomes part of `policy`,
`sets`, `listen` or `local`.
";

/// Returns the page.
fn page() -> String {
    let mut settings: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in schema::rows() {
        for keyword in row.unbound {
            settings.entry(keyword).or_default().push(row.path);
        }
    }
    let mut text = OPENING.to_owned();
    let mut current = "";
    for (section, name, default, effect) in unbound::keywords() {
        if section != current {
            current = section;
            let _ = write!(text, "\n## `{section}:`\n\n| keyword | default there | here |\n|---|---|---|\n");
        }
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        let here = match effect {
            Effect::Settings => match settings.get(name) {
                Some(paths) => paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", "),
                None => "works".to_owned(),
            },
            Effect::Partly(difference) => code(difference),
            Effect::None(reason) => format!("no effect: {}", code(reason)),
            Effect::Always(reason) => format!("`yes` always: {}", code(reason)),
        };
        let _ = writeln!(text, "| `{name}` | {default} | {here} |");
    }
    text
}

/// Returns a reason with what it quotes as code.
fn code(reason: &str) -> String {
    reason.replace('"', "`")
}

const PAGE: &str = "../../docs/manual/unbound-keywords.md";

/// Set `GANNET_UPDATE_MANUAL=1` to write the page.
#[test]
fn the_page_of_the_manual_is_up_to_date() {
    let text = page();
    if std::env::var_os("GANNET_UPDATE_MANUAL").is_some() {
        std::fs::write(PAGE, &text).expect("the page can be written");
    }
    let found = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(found == text, "{PAGE} is stale: run cargo xtask docs");
}

#[test]
fn what_settings_come_from_are_keywords() {
    // Besides, sections and what includes files.
    let sections = unbound::keywords().map(|(section, ..)| section);
    let others = sections.chain(["include", "include-toplevel"]);
    let known: Vec<&str> = unbound::keywords().map(|(_, name, ..)| name).chain(others).collect();
    for row in schema::rows() {
        for keyword in row.unbound {
            assert!(known.contains(keyword), "{} comes from \"{keyword}\"", row.path);
        }
    }
}
