//! `gannet lists`: sets, and the lists they are made of.

use std::fmt::Write as _;

use control::api;

use super::{counted, size, span};
use crate::out;

/// Lays out how sets and their lists stand.
pub(super) fn text(sets: &[api::Set]) -> String {
    let mut text = String::new();
    for set in sets {
        let dynamic = match set.dynamic_items {
            Some(count) => format!(", dynamic: {} ({})", counted(count, "item"), "gannet set list"),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "{}: {}, {}{dynamic}",
            out::escaped(&set.name),
            counted(set.rules, "rule"),
            size(set.octets)
        );
        for list in &set.lists {
            let source = list.source.as_deref().unwrap_or("rules in the configuration");
            let _ = writeln!(text, "    {} {}: {}", list.format, out::escaped(source), state(list));
            if let Some(trouble) = &list.trouble {
                let when =
                    list.failed_s_ago.map_or_else(String::new, |since| format!(" {} ago", span(since)));
                let _ = writeln!(text, "        failed{when}: {}", out::escaped(trouble));
            }
        }
    }
    if sets.is_empty() {
        text.push_str("there are no sets (setting sets)\n");
    }
    text
}

/// Says how old a list is, and when it is asked for next.
fn state(list: &api::List) -> String {
    let mut parts = Vec::new();
    match (list.octets, list.is_fetched) {
        (Some(octets), _) => parts.push(size(octets)),
        (None, true) => parts.push("not fetched yet".to_owned()),
        (None, false) => {}
    }
    if let Some(age_s) = list.age_s {
        let verb = if list.is_fetched { "fetched" } else { "changed" };
        parts.push(format!("{verb} {} ago", span(age_s)));
    }
    match (list.next_in_s, list.is_fetched) {
        (Some(0), _) => parts.push("is asked for now".to_owned()),
        (Some(seconds), _) => parts.push(format!("next in {}", span(seconds))),
        (None, true) => parts.push("not asked for again".to_owned()),
        (None, false) => {}
    }
    if list.failures > 0 {
        parts.push(counted(list.failures, "failure"));
    }
    if parts.is_empty() { "in use".to_owned() } else { parts.join(", ") }
}

/// Says what became of lists that were fetched.
pub(super) fn fetched_text(fetched: &api::ListsFetched) -> String {
    let failed = match fetched.failed {
        0 => String::new(),
        failed => format!(", {failed} not"),
    };
    format!("{} fetched{failed}\n{}", counted(fetched.fetched, "list"), text(&fetched.sets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_how_old_it_is_what_failed_and_when_it_is_asked_for() {
        let failing = api::List {
            format: "hosts".into(),
            source: Some("https://lists.example.org/a".into()),
            is_fetched: true,
            next_in_s: Some(5),
            failures: 2,
            trouble: Some("the server answers 503".into()),
            failed_s_ago: Some(7),
            ..api::List::default()
        };
        let good = api::List {
            octets: Some(2048),
            age_s: Some(3_700),
            next_in_s: Some(90_000),
            trouble: None,
            failures: 0,
            ..failing.clone()
        };
        let set = api::Set {
            name: "ads".into(),
            rules: 1,
            octets: 17,
            lists: vec![failing, good],
            ..api::Set::default()
        };
        assert_eq!(
            text(&[set]),
            "ads: 1 rule, 17 B\n    \
             hosts https://lists.example.org/a: not fetched yet, next in 5s, 2 failures\n        \
             failed 7s ago: the server answers 503\n    \
             hosts https://lists.example.org/a: 2.0 KiB, fetched 1h1m ago, next in 1d1h\n"
        );
    }
}
