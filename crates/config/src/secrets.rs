//! Which texts of a configuration are secrets, by the schema. How a text looks without them:
//! [`diagnostic::redact`].

use diagnostic::redact::{FILE, HIDDEN, Secret, after_keys};
use diagnostic::suggest::nearest;
use diagnostic::{Sources, Span};

use schema::Kind;
use yaml::{Entry, Node, Value};

/// Returns the keys whose values are secrets.
pub fn keys() -> Vec<&'static str> {
    let mut keys: Vec<&str> = schema::rows().filter(|row| row.is_secret()).map(schema::Row::key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Notes the secrets of a tree, so that nothing that points at its files shows them.
pub(crate) fn note(tree: &Node, sources: &mut Sources) {
    let mut found = Vec::new();
    walk(tree, "", &mut |_, node| hide(node, &mut found));
    hide_slips(tree, sources.secret_keys(), &mut found);
    sources.hide(found);
}

/// Replaces the secrets of a tree, but for those that say their default.
pub(crate) fn mask(tree: &mut Node) {
    walk_mut(tree, "", &mut |node| cover(node));
}

fn hide(node: &Node, found: &mut Vec<Secret>) {
    match &node.value {
        Value::Null => {}
        Value::Scalar(scalar) if scalar.text.starts_with(FILE) => {}
        Value::Scalar(scalar) => found.push(Secret::new(node.span, &scalar.text)),
        Value::List(items) => items.iter().for_each(|item| hide(item, found)),
        Value::Map(entries) => entries.iter().for_each(|entry| hide(&entry.node, found)),
    }
}

/// Notes secrets behind their keys where the colon is missing: YAML takes both for a key, or for
/// part of the text above.
fn hide_slips(node: &Node, keys: &[&str], found: &mut Vec<Secret>) {
    let mut look = |text: &str, place: Span| {
        found.extend(after_keys(text, keys).map(|at| Secret::new(place, &text[at])));
    };
    match &node.value {
        Value::Null => {}
        Value::Scalar(scalar) => look(&scalar.text, node.span),
        Value::List(items) => items.iter().for_each(|item| hide_slips(item, keys, found)),
        Value::Map(entries) => {
            for entry in entries {
                look(&entry.key, entry.key_span);
            }
            entries.iter().for_each(|entry| hide_slips(&entry.node, keys, found));
        }
    }
}

fn cover(node: &mut Node) {
    match &mut node.value {
        Value::Null => {}
        Value::Scalar(scalar) if scalar.text.starts_with(FILE) => {}
        Value::Scalar(scalar) => HIDDEN.clone_into(&mut scalar.text),
        Value::List(items) => items.iter_mut().for_each(cover),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| cover(&mut entry.node)),
    }
}

/// What an entry below `parent` is.
enum Is {
    Secret,
    /// It holds entries below this path.
    Holder(String),
    /// It holds names, each of which holds entries below this path.
    Names(String),
    Plain,
}

fn judge(entry: &Entry, parent: &str) -> Is {
    let key = entry.key.as_str();
    let rows = || schema::children(parent);
    match rows().find(|row| row.key() == key) {
        Some(row) if row.is_secret() => Is::Secret,
        Some(row) => match row.kind {
            Kind::Section => Is::Holder(row.path.to_owned()),
            Kind::Named(_) => Is::Names(format!("{}.*", row.path)),
            Kind::Items => Is::Holder(format!("{}[]", row.path)),
            Kind::List(_) | Kind::One(_) => Is::Plain,
        },
        // Misspelt, or in a place where nothing is known: it may be meant for a secret all the
        // same.
        None => {
            let meant = nearest(key, rows().map(schema::Row::key));
            let is_secret = |key: &str| schema::rows().any(|row| row.is_secret() && row.key() == key);
            if is_secret(key) || meant.is_some_and(is_secret) {
                Is::Secret
            } else {
                Is::Holder(format!("{parent}.?"))
            }
        }
    }
}

fn walk(node: &Node, parent: &str, f: &mut dyn FnMut(&Entry, &Node)) {
    match &node.value {
        Value::Null | Value::Scalar(_) => {}
        Value::List(items) => items.iter().for_each(|item| walk(item, parent, f)),
        Value::Map(entries) => {
            for entry in entries {
                match judge(entry, parent) {
                    Is::Secret => f(entry, &entry.node),
                    Is::Holder(path) => walk(&entry.node, &path, f),
                    Is::Names(path) => match &entry.node.value {
                        Value::Map(named) => named.iter().for_each(|named| walk(&named.node, &path, f)),
                        _ => walk(&entry.node, &path, f),
                    },
                    Is::Plain => {}
                }
            }
        }
    }
}

fn walk_mut(node: &mut Node, parent: &str, f: &mut dyn FnMut(&mut Node)) {
    match &mut node.value {
        Value::Null | Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| walk_mut(item, parent, f)),
        Value::Map(entries) => {
            for entry in entries {
                match judge(entry, parent) {
                    Is::Secret => {
                        let default = schema::children(parent).find(|row| row.key() == entry.key);
                        let says_default = matches!(&entry.node.value, Value::Scalar(scalar)
                            if default.and_then(|row| row.default) == Some(scalar.text.as_str()));
                        if !says_default {
                            f(&mut entry.node);
                        }
                    }
                    Is::Holder(path) => walk_mut(&mut entry.node, &path, f),
                    Is::Names(path) => match &mut entry.node.value {
                        Value::Map(named) => {
                            named.iter_mut().for_each(|named| walk_mut(&mut named.node, &path, f));
                        }
                        _ => walk_mut(&mut entry.node, &path, f),
                    },
                    Is::Plain => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use environment::Memory;
    use std::path::Path;

    /// A configuration in which every secret has the word in it.
    const MARKED: &str = "cookies:\n  secret: 0123456789abcdef5ec4e70000000001\n  other-secret: \"0123456789abcdef5ec4e70000000002\"\n\
        keys: [{name: k, secret: 5ec4e7AA}, {name: l, algorithm: hmac-sha512, secret: '5ec4e7BB'}]\n\
        upstreams:\n  default:\n    servers:\n      - {address: 192.0.2.1, proxy: 192.0.2.9, proxy-user: u, proxy-password: \"5ec4e7 C\"}\n\
        effects:\n  m: {type: mikrotik-list, address: 192.0.2.1, user: u, password: 5ec4e7D, list4: c}\n\
        \x20 h: {type: http, url: \"http://u:5ec4e7E@192.0.2.1/\", headers: [\"Authorization: Bearer 5ec4e7F\"]}\n\
        \x20 s:\n    type: script\n    command: /bin/true\n    environment:\n      - TOKEN=5ec4e7G\n\
        policy: {main: [\"effect(m)\", \"effect(h)\", \"effect(s)\", forward(default)]}\n";

    fn memory() -> Memory {
        Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")])
    }

    fn load(text: &str) -> Result<crate::Loaded, Vec<diagnostic::Diagnostic>> {
        load_text(Path::new("/c.yaml"), text, &memory())
    }

    fn check(shown: &str, why: &str) {
        let line = shown.lines().find(|line| line.contains("5ec4e7"));
        assert_eq!(line, None, "in what is said of: {why}");
    }

    #[test]
    fn settings_that_are_shown_have_no_secret() {
        let loaded = load(MARKED).map_err(|found| found[0].human()).expect("no mistakes");
        let shown = crate::print::show(&loaded);
        check(&shown, "config show");
        assert!(shown.contains("proxy-user: u") && shown.contains(HIDDEN), "{shown}");
        let kept = load("keys: [{name: k, secret: \"file:/k\"}]\n");
        let found = kept.expect_err("there is no such file");
        assert!(found[0].human().contains("file:/k"), "{}", found[0].human());
    }

    #[test]
    fn messages_have_no_secret() {
        // A mistake in every line, in turn; and the file cut everywhere.
        let lines: Vec<&str> = MARKED.lines().collect();
        let mut seen = 0;
        for (at, line) in lines.iter().enumerate() {
            for wrong in [
                format!("{line} ]"),
                format!("{line}: x"),
                line.replacen("secret", "secrett", 1),
                line.replacen("password", "pasword", 1),
                line.replacen(": ", ": [", 1),
                line.replacen("5ec4e7", "!5ec4e7", 1),
                line.replacen("type:", "tpe:", 1),
                line.replacen("name:", "nam:", 1),
                line.replacen("address:", "adress:", 1),
                format!("unknown: {{{}}}", line.trim()),
                format!("{line}\n{line}"),
            ] {
                let mut all = lines.clone();
                all[at] = &wrong;
                seen += usize::from(examine(&all.join("\n")));
            }
        }
        for end in (0..MARKED.len()).filter(|&end| MARKED.is_char_boundary(end)) {
            seen += usize::from(examine(&MARKED[..end]));
        }
        assert!(seen > 100, "{seen} mistakes were told");
    }

    /// Looks at everything that is said of a text; returns whether something is.
    fn examine(text: &str) -> bool {
        let found = match load(text) {
            Ok(loaded) => {
                check(&crate::print::show(&loaded), text);
                let compiled = crate::compile(&loaded, &[], None, &memory());
                let more = compiled.map_or_else(|found| found, |plans| plans.warnings);
                [loaded.warnings, more].concat()
            }
            Err(found) => found,
        };
        for found in &found {
            check(&found.human(), text);
            check(&found.json(), text);
        }
        !found.is_empty()
    }
}
