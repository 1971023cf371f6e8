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
    mask_with(tree, &|_| HIDDEN.to_owned());
}

/// Like [`mask`], with what stands for each secret.
pub(crate) fn mask_with(tree: &mut Node, stand_in: &dyn Fn(&str) -> String) {
    walk_mut(tree, "", &mut |node| cover(node, stand_in));
}

/// Like [`mask`], of one entry of what `row` of the schema describes, with what stands for each
/// secret.
pub(crate) fn mask_entry(entry: &mut Entry, row: &str, stand_in: &dyn Fn(&str) -> String) {
    let mut cover = |node: &mut Node| cover(node, stand_in);
    match schema::find(row).map(|row| row.kind) {
        // The key is a name.
        Some(Kind::Named(_)) => walk_mut(&mut entry.node, &format!("{row}.*"), &mut cover),
        _ => mask_said(entry, row, &mut cover),
    }
}

fn hide(node: &Node, found: &mut Vec<Secret>) {
    match &node.value {
        // No secret is that long.
        Value::Null | Value::Long(_) => {}
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
        // A key has something behind it then; most texts are one word.
        if text.contains([' ', '=']) {
            found.extend(after_keys(text, keys).map(|at| Secret::new(place, &text[at])));
        }
    };
    match &node.value {
        Value::Null | Value::Long(_) => {}
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

fn cover(node: &mut Node, stand_in: &dyn Fn(&str) -> String) {
    match &mut node.value {
        Value::Null | Value::Long(_) => {}
        Value::Scalar(scalar) if scalar.text.starts_with(FILE) => {}
        Value::Scalar(scalar) => scalar.text = stand_in(&scalar.text),
        Value::List(items) => items.iter_mut().for_each(|item| cover(item, stand_in)),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| cover(&mut entry.node, stand_in)),
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
    match schema::find_in(parent, key) {
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
            let meant = nearest(key, schema::children(parent).map(schema::Row::key));
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
        Value::Null | Value::Scalar(_) | Value::Long(_) => {}
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
        Value::Null | Value::Scalar(_) | Value::Long(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| walk_mut(item, parent, f)),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| mask_said(entry, parent, f)),
    }
}

fn mask_said(entry: &mut Entry, parent: &str, f: &mut dyn FnMut(&mut Node)) {
    match judge(entry, parent) {
        Is::Secret => {
            let default = schema::find_in(parent, &entry.key).and_then(|row| row.default);
            let says_default =
                matches!(&entry.node.value, Value::Scalar(scalar) if default == Some(scalar.text.as_str()));
            if !says_default {
                f(&mut entry.node);
            }
        }
        Is::Holder(path) => walk_mut(&mut entry.node, &path, f),
        Is::Names(path) => match &mut entry.node.value {
            Value::Map(named) => named.iter_mut().for_each(|named| walk_mut(&mut named.node, &path, f)),
            _ => walk_mut(&mut entry.node, &path, f),
        },
        Is::Plain => {}
    }
}
