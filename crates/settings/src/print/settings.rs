//! Settings as YAML: all defaults with comments, or what is in force and where it was said.

use diagnostic::{FileId, Sources, Span, json_text};
use policy::action::{Action, Core};

use super::wrap;
use crate::groups::Settings;
use crate::load::Loaded;
use crate::secrets;
use schema::{Kind, Row, default_node};
use yaml::{Entry, Node};

/// The setting that is made to fit if nobody says it.
const POLICY: &str = "policy";
/// Columns of a comment.
const WIDTH: usize = 100;
/// The column at which the origin of a value stands.
const ORIGIN_COLUMN: usize = 48;

/// Returns a file that says every default, with what each setting does.
pub fn defaults() -> String {
    let mut printer = Printer { out: String::new(), sources: None };
    printer.out.push_str(
        "# Gannet: every setting and its default. What you leave out stays as it is here.\n# \
         Values may hold ${VARIABLES} of the environment. `gannet check` says what is wrong with a file.\n",
    );
    printer.mapping("", &[], 0);
    printer.out
}

/// Returns the settings in force: each value, and the file and line that says it. Secrets are left
/// out.
pub fn show(loaded: &Loaded) -> String {
    let mut printer = Printer { out: String::new(), sources: Some(&loaded.sources) };
    let mut tree = loaded.tree.clone();
    secrets::mask(&mut tree);
    let entries = match &tree.value {
        yaml::Value::Map(entries) => entries.as_slice(),
        yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::List(_) => &[],
    };
    if loaded.settings.policy_is_given {
        printer.mapping("", entries, 0);
    } else {
        let mut entries: Vec<Entry> = entries.iter().filter(|entry| entry.key != POLICY).cloned().collect();
        let mut node = built_in_policy(&loaded.settings);
        // A change may have added policies beside the built-in one.
        let others = entries_of(&tree, POLICY).iter().filter(|entry| entry.key != policy::ENTRY);
        if let yaml::Value::Map(all) = &mut node.value {
            all.extend(others.cloned());
        }
        entries.push(Entry { key: POLICY.to_owned(), key_span: Span::BUILT_IN, node });
        printer.mapping("", &entries, 0);
    }
    printer.out
}

/// Returns what stands in an entry of the top level.
fn entries_of<'n>(tree: &'n Node, key: &str) -> &'n [Entry] {
    below(tree).iter().find(|entry| entry.key == key).map_or(&[], |entry| below(&entry.node))
}

/// Returns what [`show`] prints as JSON, without origins: texts, `true` and `false`, and whole
/// numbers as such.
pub fn show_json(loaded: &Loaded) -> String {
    let shown = show(loaded);
    // What was put in for variables is there already; what looks like one now is text.
    let text = |name: &str| Some(format!("${{{name}}}"));
    let parsed = yaml::parse(FileId::BUILT_IN, &shown, &text, &mut Vec::new());
    let mut out = String::new();
    write_json(&parsed.root.value, 0, &mut out);
    out.push('\n');
    out
}

fn write_json(value: &yaml::Value, indent: usize, out: &mut String) {
    let rows = |out: &mut String,
                [open, close]: [char; 2],
                count: usize,
                row: &mut dyn FnMut(usize, &mut String)| {
        out.push(open);
        for at in 0..count {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
            out.push_str(&" ".repeat(indent + 2));
            row(at, out);
        }
        if count > 0 {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
        }
        out.push(close);
    };
    match value {
        yaml::Value::Null => out.push_str("null"),
        yaml::Value::Scalar(scalar) => {
            let text = scalar.text.as_str();
            let is_number = text.len() <= 15
                && (text == "0"
                    || (!text.starts_with('0') && text.bytes().all(|octet| octet.is_ascii_digit())));
            match text {
                "true" | "false" => out.push_str(text),
                text if is_number && !text.is_empty() => out.push_str(text),
                text => out.push_str(&json_text(text)),
            }
        }
        yaml::Value::Long(text) => out.push_str(&json_text(&text.to_string())),
        yaml::Value::List(items) => rows(out, ['[', ']'], items.len(), &mut |at, out| {
            if let Some(item) = items.get(at) {
                write_json(&item.value, indent + 2, out);
            }
        }),
        yaml::Value::Map(entries) => rows(out, ['{', '}'], entries.len(), &mut |at, out| {
            if let Some(entry) = entries.get(at) {
                out.push_str(&json_text(&entry.key));
                out.push_str(": ");
                write_json(&entry.node.value, indent + 2, out);
            }
        }),
    }
}

/// Returns the policy of a configuration that gives none, with the cache and the group that it was
/// fitted to, or with what takes the place of the group.
fn built_in_policy(settings: &Settings) -> Node {
    let entry = settings.policies.iter().filter(|policy| policy.name.value == policy::ENTRY);
    let rules = entry.flat_map(|policy| &policy.rules);
    let (mut cache, mut group) = (None, None);
    for action in rules.flat_map(|rule| &rule.actions) {
        match &action.value {
            Action::Core(Core::Cache(name)) => cache = Some(format!("cache({})", name.value)),
            Action::Core(Core::Forward(name)) => group = Some(format!("forward({})", name.value)),
            Action::Core(Core::Recurse(_)) => group = Some("recurse".to_owned()),
            _ => {}
        }
    }
    let mut node = default_node(schema::find(POLICY).and_then(|row| row.default).unwrap_or("{}"));
    rename(&mut node, &|step| match step {
        "cache(main)" => cache.clone(),
        "forward(default)" => group.clone(),
        other => Some(other.to_owned()),
    });
    node
}

/// Gives every text in a tree another one, or takes it out of its list.
fn rename(node: &mut Node, name: &dyn Fn(&str) -> Option<String>) {
    match &mut node.value {
        yaml::Value::Scalar(scalar) => scalar.text = name(&scalar.text).unwrap_or_default(),
        yaml::Value::List(items) => {
            items.retain(|item| match &item.value {
                yaml::Value::Scalar(scalar) => name(&scalar.text).is_some(),
                yaml::Value::Null | yaml::Value::Long(_) | yaml::Value::List(_) | yaml::Value::Map(_) => true,
            });
            items.iter_mut().for_each(|item| rename(item, name));
        }
        yaml::Value::Map(entries) => entries.iter_mut().for_each(|entry| rename(&mut entry.node, name)),
        yaml::Value::Null | yaml::Value::Long(_) => {}
    }
}

struct Printer<'a> {
    out: String,
    /// The files, if origins are wanted; otherwise comments explain.
    sources: Option<&'a Sources>,
}

impl Printer<'_> {
    /// Prints the settings below `parent`: what `entries` says, otherwise the defaults.
    fn mapping(&mut self, parent: &str, entries: &[Entry], indent: usize) {
        for row in schema::children(parent).filter(|row| row.path != "include") {
            let entry = entries.iter().find(|entry| entry.key == row.key());
            let entry = entry.filter(|entry| !matches!(entry.node.value, yaml::Value::Null));
            self.explain(row, indent);
            match row.kind {
                Kind::Section => {
                    self.line(indent, &format!("{}:", row.key()), None);
                    self.mapping(row.path, entry.map_or(&[], |entry| below(&entry.node)), indent + 2);
                }
                Kind::Named(_) => self.named(row, entry, indent),
                Kind::Items => match entry {
                    Some(entry) => self.items(row.key(), entry, indent),
                    None => self.leaf(row, None, indent),
                },
                Kind::List(_) | Kind::One(_) => self.leaf(row, entry, indent),
            }
        }
    }

    /// Says what a setting is for.
    fn explain(&mut self, row: &Row, indent: usize) {
        if self.sources.is_some() {
            return;
        }
        if indent == 0 {
            self.out.push('\n');
        }
        let mut text = row.text.to_owned();
        match row.kind {
            Kind::Section | Kind::Named(_) => {}
            Kind::Items | Kind::List(_) | Kind::One(_) => {
                if !matches!(row.kind, Kind::Items) {
                    text.push_str(&format!(" Takes {}.", row.kind.expected()));
                }
                if !row.reason.is_empty() {
                    text.push_str(&format!(" Default: {}.", row.reason));
                }
            }
        }
        for line in wrap(&text, WIDTH - indent) {
            self.line(indent, &format!("# {line}"), None);
        }
        if matches!(row.kind, Kind::Items) {
            // The settings of an item are not defaults of anything: they are shown, not said.
            for child in schema::children(&format!("{}[]", row.path)) {
                let default = child.default.map_or(String::new(), |default| format!(" [{default}]"));
                for (number, line) in
                    wrap(&format!("{}{default}: {}", child.key(), child.text), WIDTH - indent - 4)
                        .iter()
                        .enumerate()
                {
                    self.line(indent, &format!("#   {}{line}", if number == 0 { "" } else { "  " }), None);
                }
            }
        }
    }

    fn named(&mut self, row: &Row, entry: Option<&Entry>, indent: usize) {
        let default = default_node(row.default.unwrap_or("{}"));
        let names = entry.map_or(below(&default), |entry| below(&entry.node));
        let Some(first) = names.first() else {
            self.line(indent, &format!("{}: {{}}", row.key()), None);
            return;
        };
        let _ = first;
        self.line(indent, &format!("{}:", row.key()), None);
        let path = format!("{}.*", row.path);
        let leaf = schema::find(&path);
        for name in names {
            match leaf {
                Some(leaf) if matches!(leaf.kind, Kind::Items) => self.items(&name.key, name, indent + 2),
                Some(_) => {
                    let text = format!("{}: {}", key_text(&name.key), flow(&name.node));
                    self.line(indent + 2, &text, Some(name));
                }
                None => {
                    self.line(indent + 2, &format!("{}:", key_text(&name.key)), None);
                    self.mapping(&path, below(&name.node), indent + 4);
                }
            }
        }
    }

    fn items(&mut self, key: &str, entry: &Entry, indent: usize) {
        match &entry.node.value {
            yaml::Value::List(items) if !items.is_empty() => {
                self.line(indent, &format!("{}:", key_text(key)), Some(entry));
                for item in items {
                    self.line(indent + 2, &format!("- {}", flow(item)), None);
                }
            }
            _ => self.line(indent, &format!("{}: {}", key_text(key), flow(&entry.node)), Some(entry)),
        }
    }

    fn leaf(&mut self, row: &Row, entry: Option<&Entry>, indent: usize) {
        let key = row.key();
        let is_secret = row.is_secret();
        match (entry, row.default) {
            (Some(entry), default) => {
                let text = flow(&entry.node);
                if is_secret && Some(text.as_str()) != default && !text.starts_with("file:") {
                    self.line(indent, &format!("# {key}: not shown"), Some(entry));
                } else {
                    self.line(indent, &format!("{key}: {text}"), Some(entry));
                }
            }
            (None, Some(default)) => self.line(indent, &format!("{key}: {default}"), None),
            (None, None) => self.line(indent, &format!("# {key}: not set"), None),
        }
    }

    fn line(&mut self, indent: usize, text: &str, origin: Option<&Entry>) {
        let mut line = format!("{:indent$}{text}", "");
        if let (Some(sources), Some(entry)) = (self.sources, origin)
            && let Some(source) = sources.file(entry.key_span.file)
        {
            let place = source.place(entry.key_span.start);
            let pad = ORIGIN_COLUMN.saturating_sub(line.chars().count()).max(2);
            line.push_str(&format!("{:pad$}# {}:{}", "", source.path.display(), place.line));
        }
        self.out.push_str(&line);
        self.out.push('\n');
    }
}

/// Returns the entries of a mapping.
fn below(node: &Node) -> &[Entry] {
    match &node.value {
        yaml::Value::Map(entries) => entries,
        yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::List(_) => &[],
    }
}

/// Writes a node on one line.
pub(crate) fn flow(node: &Node) -> String {
    match &node.value {
        yaml::Value::Null => "null".to_owned(),
        yaml::Value::Scalar(scalar) => quoted(&diagnostic::without_secrets(&scalar.text)),
        yaml::Value::Long(text) => quoted(&text.to_string()),
        yaml::Value::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        yaml::Value::Map(entries) => {
            let entries =
                entries.iter().map(|entry| format!("{}: {}", key_text(&entry.key), flow(&entry.node)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Writes a value so that it is read as the same text.
fn quoted(text: &str) -> String {
    key_text(&text.replace("${", "$${"))
}

/// Writes a key so that it is read as the same text; variables are not looked for in keys.
pub(crate) fn key_text(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_'))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:%@()+=".contains(c))
        && !text.ends_with(':')
        && !matches!(text, "null" | "Null" | "NULL");
    if is_plain {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\U{:08x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use diagnostic::FileId;
    use environment::Memory;
    use proptest::prelude::*;
    use std::path::Path;

    fn load(text: &str) -> Loaded {
        match load_text(Path::new("x"), text, &Memory::default()) {
            Ok(loaded) => loaded,
            Err(found) => panic!("{}", found[0].human()),
        }
    }

    #[test]
    fn the_file_of_defaults_says_the_defaults() {
        let nothing = load("");
        let loaded = load(&defaults());
        assert_eq!(loaded.settings, Settings { policy_is_given: true, ..nothing.settings });
        assert_eq!(loaded.warnings, []);
    }

    #[test]
    fn what_is_shown_says_the_same() {
        let text = "cache: {main: {size: 1GiB, dump: {file: x.dump, every: 1h}}}\nlisten: [{at: \"[::1]:5300\", transport: udp}]\n\
            local: {nas.home.arpa: [192.0.2.1, \"2001:db8::1\"], \"${a}.example\": 192.0.2.1}\nserver: {version: \"x: \\\"y\\\" #z $${A}\"}\n\
            sets: {kids: {addresses: 192.0.2.0/24}}\nlimits: {rate: {per-second: 20}}\n\
            policy: {main: [{if: \"client in kids and mark(1)\", do: drop}, [cache(main), forward(default)]]}\n";
        let loaded = load(text);
        assert_eq!(load(&show(&loaded)).settings, loaded.settings);
        for fitted in [
            "",
            "upstreams: {only: {servers: [192.0.2.1]}}\n",
            "cache: {only: {size: 1MiB}}\n",
            "cache: {}\n",
        ] {
            let loaded = load(fitted);
            let settings = Settings { policy_is_given: true, ..loaded.settings.clone() };
            assert_eq!(load(&show(&loaded)).settings, settings, "{fitted}");
        }
        assert_eq!(load(&show(&load(""))).settings.allow, load("").settings.allow);
    }

    #[test]
    fn what_is_shown_names_the_line_and_no_secret() {
        let loaded = load("edns:\n  udp-size: 1400\ncookies: {secret: 000102030405060708090a0b0c0d0e0f}\n");
        let shown = show(&loaded);
        assert!(shown.contains("  udp-size: 1400                                # x:2\n"), "{shown}");
        assert!(shown.contains("  # secret: not shown"), "{shown}");
        assert!(!shown.contains("000102"), "{shown}");
        assert!(!format!("{:?}", loaded.settings).contains("000102"));
    }

    proptest! {
        #[test]
        fn quoted_text_is_read_as_it_was(text in "\\PC*|[\\x00-\\x7f]{0,12}|[$]\\{A\\}.*") {
            // YAML has no notation for these in a file.
            prop_assume!(!text.contains(['\0', '\u{feff}', '\u{fffe}', '\u{ffff}']));
            let file = format!("a: {}\n", quoted(&text));
            let mut problems = Vec::new();
            let parsed = yaml::parse(FileId(0), &file, &|_| None, &mut problems);
            prop_assert!(problems.is_empty(), "{} {:?}", file, problems);
            match &below(&parsed.root)[0].node.value {
                yaml::Value::Scalar(scalar) => prop_assert_eq!(&scalar.text, &text),
                yaml::Value::Null => prop_assert!(text.is_empty()),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
