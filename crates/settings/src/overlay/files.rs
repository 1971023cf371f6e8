//! Whether a change names files of the machine, wherever in what it says they stand.

use diagnostic::FileId;
use schema::{Kind, Row};
use yaml::{Node, Value};

use super::path::{SettingPath, row_of};

impl SettingPath {
    /// Returns whether a text that is set there names a file or a directory of the machine. Of a
    /// text with a mistake in it, what stands before the mistake counts: nobody takes it.
    pub fn names_file(&self, text: &str) -> bool {
        names_file(&row_of(self.keys()), &parsed(text))
    }
}

/// Returns whether the settings of one zone, as in an item of `zones`, name a file or a directory
/// of the machine.
pub fn zone_names_file(options: &str) -> bool {
    item_names_file("zones", &parsed(options))
}

fn parsed(text: &str) -> Node {
    // Whoever may not read files may not read variables either.
    yaml::parse(FileId::BUILT_IN, text, &|_| None, &mut Vec::new()).root
}

/// Looks at what stands at a row of the table of settings.
fn names_file(at: &str, node: &Node) -> bool {
    let row = schema::find(at);
    match row.map(|row| (row, row.kind)) {
        Some((row, Kind::One(_) | Kind::List(_))) => value_names_file(row, node),
        Some((_, Kind::Items)) => match &node.value {
            Value::List(items) => items.iter().any(|item| item_names_file(at, item)),
            _ => item_names_file(at, node),
        },
        Some((_, Kind::Named(_))) => {
            let below = format!("{at}.*");
            entries(node).any(|(_, node)| names_file(&below, node))
        }
        Some((_, Kind::Section)) | None => section_names_file(at, node),
    }
}

/// Looks at an item of a list of mappings; a value alone is that of the first row.
fn item_names_file(at: &str, item: &Node) -> bool {
    let below = format!("{at}[]");
    match &item.value {
        Value::Map(_) => section_names_file(&below, item),
        _ => schema::children(&below).next().is_some_and(|row| value_names_file(row, item)),
    }
}

fn section_names_file(at: &str, node: &Node) -> bool {
    entries(node).any(|(key, node)| schema::find_in(at, key).is_some_and(|row| names_file(row.path, node)))
}

fn entries(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let entries = match &node.value {
        Value::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|entry| (entry.key.as_str(), &entry.node))
}

fn value_names_file(row: &Row, node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => row.names_file(&scalar.text),
        Value::Long(text) => row.names_file(&text.to_string()),
        Value::List(items) => items.iter().any(|item| value_names_file(row, item)),
        Value::Map(entries) => entries.iter().any(|entry| value_names_file(row, &entry.node)),
        Value::Null => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expect: bool) {
        let found = SettingPath::parse(path).expect("a path").names_file(text);
        assert_eq!(found, expect, "{path}: {text}");
    }

    #[test]
    fn a_file_is_found_wherever_it_stands_in_what_is_set() {
        let file = "names:/etc/gannet/tls.key";
        for (path, text) in [
            ("sets.x.lists", format!("[{{list: \"{file}\"}}]")),
            ("sets.x.lists", format!("[\"{file}\"]")),
            ("sets.x.lists", format!("\"{file}\"")),
            ("sets.x.lists", format!("{{list: \"{file}\"}}")),
            ("sets.x", format!("lists:\n- list: >-\n    {file}")),
            ("sets", format!("a: {{names: [b.example]}}\nx: {{lists: \"{file}\"}}")),
            ("sets.x.lists", "[\"names:\\x2fetc\\x2fshadow\"]".to_owned()),
            ("hosts", "{ttl: 1h, files: /etc/shadow}".to_owned()),
            ("hosts.files", "[/etc/shadow]".to_owned()),
            ("records.mine", "{text: \"$INCLUDE /etc/shadow\"}".to_owned()),
            ("records.mine.text", "[\"a A 192.0.2.1\", \"$INCLUDE /etc/shadow\"]".to_owned()),
            ("records.mine", "{files: /etc/shadow}".to_owned()),
            ("records", "{mine: {hosts: [/etc/shadow]}}".to_owned()),
            ("zones", "[{name: example.org, file: /etc/shadow}]".to_owned()),
            ("zones", "{name: example.org, write-to: /etc/shadow}".to_owned()),
            ("zones", "[{name: example.org, primaries: \"tls://192.0.2.1 private-key /k\"}]".to_owned()),
            ("zone-directories", "[/etc]".to_owned()),
            ("zone-directories", "/etc".to_owned()),
            ("zone-directories", "[{path: /etc}]".to_owned()),
        ] {
            check(path, &text, true);
        }
        for (path, text) in [
            ("sets.x.lists", "[{list: \"adguard:https://example.org/list.txt\"}, {own: mine}]"),
            ("sets.x", "{names: [a.example], text: \"a.example\"}"),
            ("hosts", "{ttl: 1h, system: true}"),
            ("records.mine.text", "[\"a A 192.0.2.1\"]"),
            ("zones", "[{name: example.org, primaries: [192.0.2.1], keep: true}]"),
            ("local.files", "192.0.2.1"),
            ("sets", "{}"),
        ] {
            check(path, text, false);
        }
        assert!(zone_names_file("{file: /etc/shadow}") && zone_names_file("key-sets: /etc/shadow"));
        assert!(!zone_names_file("like: mine") && !zone_names_file(""));
    }
}
