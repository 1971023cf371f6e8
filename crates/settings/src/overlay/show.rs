//! How changes are shown: the difference that they make, and as settings for a file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use environment::Environment;
use schema::{Kind, default_node};
use yaml::{Entry, Node, Value};

use super::path::row_of;
use super::{Layer, Places, SettingPath, put};
use crate::Loaded;
use crate::print::{flow, key_text};
use crate::secrets;
use diagnostic::redact::HIDDEN;
use diagnostic::{FileId, Sources, Span};

/// A setting that two configurations say differently. Secrets are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which setting.
    pub path: String,
    /// What the one says, on one line; `None`: nothing.
    pub before: Option<String>,
    /// What the other says.
    pub after: Option<String>,
}

/// Returns the settings that differ when these changes are laid over the files of `loaded`, and
/// when those are, in the order of the schema.
pub fn difference(
    loaded: &Loaded,
    [before, after]: [&[Layer]; 2],
    environment: &dyn Environment,
) -> Vec<Difference> {
    first_differences(loaded, [before, after], environment, &|_| HIDDEN.to_owned(), usize::MAX).0
}

/// Like [`difference`], with what stands for each secret, and at most `max`; returns also how many
/// more there are.
pub fn first_differences(
    loaded: &Loaded,
    layers: [&[Layer]; 2],
    environment: &dyn Environment,
    stand_in: &dyn Fn(&str) -> String,
    max: usize,
) -> (Vec<Difference>, usize) {
    let tops: BTreeSet<&str> = layers
        .iter()
        .copied()
        .flatten()
        .filter_map(|layer| Some(layer.path.keys().first()?.as_str()))
        .collect();
    // Everything else is the same in both.
    let trees = layers.map(|layers| loaded.tree_with(layers, &tops, environment));
    between([&trees[0], &trees[1]], stand_in, max)
}

/// Returns the settings that two configurations say differently, with what stands for each secret.
pub fn difference_of(both: [&Loaded; 2], stand_in: &dyn Fn(&str) -> String) -> Vec<Difference> {
    between(both.map(|loaded| &loaded.tree), stand_in, usize::MAX).0
}

/// Returns what files say, setting by setting, whatever changes are laid over them; with what
/// stands for each secret.
pub fn said_in_files(loaded: &Loaded, stand_in: &dyn Fn(&str) -> String) -> BTreeMap<String, String> {
    let value = Value::Map(loaded.base.entries.clone());
    let tree = Node { span: loaded.tree.span, value };
    leaves(&tree).iter().map(|leaf| (leaf.path.clone(), leaf.shown(stand_in))).collect()
}

/// Returns the settings that [`said_in_files`] returned differently, by their paths.
pub fn difference_of_said(both: [&BTreeMap<String, String>; 2]) -> Vec<Difference> {
    let [before, after] = both;
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let difference = |path: &&String| Difference {
        path: (*path).clone(),
        before: before.get(*path).cloned(),
        after: after.get(*path).cloned(),
    };
    let is_other = |difference: &Difference| difference.before != difference.after;
    paths.iter().map(difference).filter(is_other).collect()
}

fn between(trees: [&Node; 2], stand_in: &dyn Fn(&str) -> String, max: usize) -> (Vec<Difference>, usize) {
    let [before, after] = trees.map(leaves);
    let by_path = |leaves: &'_ [Leaf<'_>]| -> HashMap<String, usize> {
        leaves.iter().enumerate().rev().map(|(at, leaf)| (leaf.path.clone(), at)).collect()
    };
    let (then, now) = (by_path(&before), by_path(&after));
    let (mut all, mut more) = (Vec::new(), 0);
    let mut add = |path: &str, before: Option<&Leaf<'_>>, after: Option<&Leaf<'_>>| {
        if all.len() >= max {
            more += 1;
            return;
        }
        let [before, after] = [before, after].map(|leaf| leaf.map(|leaf| leaf.shown(stand_in)));
        all.push(Difference { path: path.to_owned(), before, after });
    };
    for leaf in &before {
        let other = now.get(&leaf.path).and_then(|at| after.get(*at));
        if other.is_none_or(|other| !other.entry.node.is_same_as(&leaf.entry.node)) {
            add(&leaf.path, Some(leaf), other);
        }
    }
    for leaf in after.iter().filter(|leaf| !then.contains_key(&leaf.path)) {
        add(&leaf.path, None, Some(leaf));
    }
    (all, more)
}

/// A setting that holds no others.
struct Leaf<'t> {
    path: String,
    /// Where in the schema what holds it is.
    row: String,
    entry: &'t Entry,
}

impl Leaf<'_> {
    /// Returns what it says on one line, without secrets.
    fn shown(&self, stand_in: &dyn Fn(&str) -> String) -> String {
        let mut entry = self.entry.clone();
        secrets::mask_entry(&mut entry, &self.row, stand_in);
        flow(&entry.node)
    }
}

/// Returns all settings of a tree.
fn leaves(tree: &Node) -> Vec<Leaf<'_>> {
    let mut leaves = Vec::new();
    collect(tree, "", "", &mut leaves);
    leaves
}

fn collect<'t>(node: &'t Node, row: &str, path: &str, leaves: &mut Vec<Leaf<'t>>) {
    let Value::Map(entries) = &node.value else { return };
    for entry in entries {
        let key = key_text(&entry.key);
        let path = if path.is_empty() { key } else { format!("{path}.{key}") };
        match below(row, &entry.key).filter(|_| matches!(entry.node.value, Value::Map(_))) {
            Some(row) => collect(&entry.node, &row, &path, leaves),
            None => leaves.push(Leaf { path, row: row.to_owned(), entry }),
        }
    }
}

/// Returns where in the schema the settings in an entry below `row` are; `None` if it holds none.
///
/// Rows that hold names are `path`, what a name holds is `path.*`.
fn below(row: &str, key: &str) -> Option<String> {
    if let Some(names) = schema::find(row).filter(|row| matches!(row.kind, Kind::Named(_))) {
        let path = format!("{}.*", names.path);
        return schema::find(&path).is_none().then_some(path);
    }
    let child = schema::find_in(row, key)?;
    matches!(child.kind, Kind::Section | Kind::Named(_)).then(|| child.path.to_owned())
}

/// What is said at a setting. Secrets are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Which setting.
    pub path: String,
    /// What is said, on one line.
    pub text: String,
    /// The file or the change that says it, and the line; `None`: it is the default.
    pub origin: Option<String>,
}

/// Returns what is said at a path, or the default; `None` if neither is there.
pub fn said(loaded: &Loaded, path: &SettingPath) -> Option<Said> {
    let (first, _) = path.keys().split_first()?;
    let mut tree = &loaded.tree;
    let defaults;
    // What holds names may have some of its own: `cache.main`.
    if child(tree, first).is_none()
        && let Some(default) = schema::find(first).and_then(|row| row.default)
    {
        let (key, key_span) = (first.clone(), Span::BUILT_IN);
        defaults = Node {
            span: Span::BUILT_IN,
            value: Value::Map(vec![Entry { key, key_span, node: default_node(default) }]),
        };
        tree = &defaults;
    }
    let (mut node, mut found) = (tree, None);
    for (depth, key) in path.keys().iter().enumerate() {
        let Some(entry) = child(node, key) else {
            // Names that nobody has given have no settings.
            let (above, _) = path.keys().split_at(depth);
            let holds_names =
                schema::find(&row_of(above)).is_some_and(|row| matches!(row.kind, Kind::Named(_)));
            return if holds_names { None } else { default_of(path) };
        };
        (node, found) = (&entry.node, Some(entry));
    }
    let mut entry = found?.clone();
    let (_, above) = path.keys().split_last()?;
    secrets::mask_entry(&mut entry, &row_of(above), &|_| HIDDEN.to_owned());
    let (text, origin) = (flow(&entry.node), place(loaded, &entry.node, entry.key_span));
    Some(Said { path: path.to_string(), text, origin })
}

fn child<'n>(node: &'n Node, key: &str) -> Option<&'n Entry> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.key == *key)
}

/// Returns whether files or changes say something at a path.
pub fn is_said(loaded: &Loaded, path: &SettingPath) -> bool {
    let mut node = &loaded.tree;
    let mut is_of_file = false;
    for key in path.keys() {
        let Some(entry) = child(node, key) else { return false };
        node = &entry.node;
        is_of_file = place(loaded, node, entry.key_span).is_some();
    }
    is_of_file
}

/// Returns what files and changes say, setting by setting.
pub fn all_said(loaded: &Loaded) -> Vec<Said> {
    let mut masked = loaded.tree.clone();
    secrets::mask(&mut masked);
    let mut all = Vec::new();
    collect_said(loaded, &masked, ("", ""), &mut all);
    all
}

fn collect_said(loaded: &Loaded, node: &Node, (row, path): (&str, &str), all: &mut Vec<Said>) {
    let Value::Map(entries) = &node.value else { return };
    for entry in entries {
        let quoted = |key: &str| format!("\"{key}\"");
        let below_it = below(row, &entry.key).filter(|_| matches!(entry.node.value, Value::Map(_)));
        // As a path is written: a name with dots in quotation marks where settings follow.
        let key = match below_it.is_some() && entry.key.contains('.') {
            true => quoted(&entry.key),
            false => entry.key.clone(),
        };
        let path = if path.is_empty() { key } else { format!("{path}.{key}") };
        match below_it {
            Some(row) => collect_said(loaded, &entry.node, (&row, &path), all),
            None => {
                let origin = place(loaded, &entry.node, entry.key_span);
                all.push(Said { path, text: flow(&entry.node), origin });
            }
        }
    }
}

/// Returns the default of a setting that nobody says.
fn default_of(path: &SettingPath) -> Option<Said> {
    let row = schema::find(&row_of(path.keys()))?;
    let text = flow(&default_node(row.default?));
    Some(Said { path: path.to_string(), text, origin: None })
}

/// Returns where a setting is said.
fn place(loaded: &Loaded, node: &Node, key_span: Span) -> Option<String> {
    let of = |span: Span| {
        let source = loaded.sources.file(span.file).filter(|_| span.file != FileId::BUILT_IN)?;
        Some(format!("{}:{}", source.path.display(), source.place(span.start).line))
    };
    of(node.head()).or_else(|| of(key_span))
}

/// Returns the changes that are laid over files as settings for a file beside them, and what they
/// take away as comments. Secrets are left out unless they are wanted.
///
/// Names that are there as long as no file says any, such as the upstream group `default`, are
/// written, too.
pub fn export(loaded: &Loaded, with_secrets: bool) -> String {
    let layers = loaded.layers();
    let mut entries = Vec::new();
    let mut sources = Sources::new(&secrets::keys());
    let mut out = String::new();
    let mut ordered: Vec<&Layer> = layers.iter().collect();
    ordered.sort_by_key(|layer| (layer.path.keys().len(), layer.path.clone()));
    let mut places = Places::default();
    for layer in ordered {
        let Some(text) = &layer.text else {
            out.push_str(&format!("# taken away, remove it from the file: {}\n", layer.path));
            continue;
        };
        let file = sources.add(layer.name.as_ref(), text.to_string());
        // Variables are written as they were.
        let parsed = yaml::parse(file, text, &|_| Some("-".to_owned()), &mut Vec::new());
        put_alone(&mut entries, &mut places, (loaded, layer), parsed.root);
    }
    let mut tree = Node { span: Span { file: FileId(0), start: 0, end: 0 }, value: Value::Map(entries) };
    if !with_secrets {
        secrets::mask(&mut tree);
    }
    write(&tree, &sources, ("", 0), &mut out);
    out
}

/// Returns whether what a change says at a path has a secret in it.
pub fn holds_secret(path: &SettingPath, text: &str) -> bool {
    let mut sources = Sources::new(&secrets::keys());
    let file = sources.add(std::path::Path::new("a change"), text.to_owned());
    let parsed = yaml::parse(file, text, &|_| Some("-".to_owned()), &mut Vec::new());
    let span = Span { file, start: 0, end: 0 };
    let mut tree = path.keys().iter().rev().fold(parsed.root, |node, key| {
        let entry = Entry { key: key.clone(), key_span: span, node };
        Node { span, value: Value::Map(vec![entry]) }
    });
    let found = std::cell::Cell::new(false);
    secrets::mask_with(&mut tree, &|text| {
        found.set(true);
        text.to_owned()
    });
    found.get()
}

/// Puts a node at its path, beside other changes.
fn put_alone(entries: &mut Vec<Entry>, places: &mut Places, (loaded, layer): (&Loaded, &Layer), node: Node) {
    let (key_span, span) = (node.span, node.span);
    if let [first, _, ..] = layer.path.keys()
        && entries.iter().all(|entry| entry.key != *first)
        && loaded.base.entries.iter().any(|entry| entry.key == *first)
    {
        // The file says some itself: no default beside the change.
        let value = Value::Map(Vec::new());
        entries.push(Entry { key: first.clone(), key_span, node: Node { span, value } });
    }
    put(entries, places, &layer.path, Some(node), span, &mut Vec::new());
}

/// Writes settings as a block.
fn write(node: &Node, sources: &Sources, (row, indent): (&str, usize), out: &mut String) {
    let Value::Map(entries) = &node.value else { return };
    for entry in entries {
        let key = key_text(&entry.key);
        match (below(row, &entry.key), &entry.node.value) {
            (Some(row), Value::Map(held)) if !held.is_empty() => {
                out.push_str(&format!("{:indent$}{key}:\n", ""));
                write(&entry.node, sources, (&row, indent + 2), out);
            }
            (_, Value::List(items)) if items.iter().any(|item| matches!(item.value, Value::Map(_))) => {
                out.push_str(&format!("{:indent$}{key}:\n", ""));
                for item in items {
                    out.push_str(&format!("{:indent$}  - {}\n", "", as_written(item, sources)));
                }
            }
            _ => out.push_str(&format!("{:indent$}{key}: {}\n", "", as_written(&entry.node, sources))),
        }
    }
}

/// Writes a node on one line, with its variables as they were written.
fn as_written(node: &Node, sources: &Sources) -> String {
    let one = |node: &Node| as_written(node, sources);
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Scalar(scalar) if scalar.text == HIDDEN => key_text(HIDDEN),
        Value::Scalar(scalar) => match sources.text(node.span).filter(|text| text.contains("${")) {
            Some(text) if text.starts_with(['"', '\'']) => text,
            Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            None => key_text(&scalar.text),
        },
        Value::Long(text) => key_text(&text.to_string()),
        Value::List(items) => format!("[{}]", items.iter().map(one).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entries =
                entries.iter().map(|entry| format!("{}: {}", key_text(&entry.key), one(&entry.node)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
