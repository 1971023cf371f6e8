//! Changes that are made while the server runs, laid over what files say.
//!
//! A change is settings text at a path, such as `1GiB` at `cache.main.size`. It replaces what the
//! files say there, or takes it away, and is lowered and checked with them: a mistake is reported
//! at its line and column in the change.

mod files;
mod path;
mod show;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use diagnostic::{Diagnostic, FileId, Problem, Source, Span};
use environment::Environment;
use schema::{Kind, default_node};
use yaml::{Entry, Node, Value};

use crate::load::{Base, Loaded, Loader, short_forms};
pub use files::zone_names_file;
pub use path::SettingPath;
pub use show::{
    Difference, Said, all_said, difference, difference_of, difference_of_said, export, first_differences,
    holds_secret, is_said, said, said_in_files,
};

/// A change as it is laid over files. Copies are one: what its text was found to say is known to
/// all of them, so that a change beside thousands does not have these read again.
#[derive(Clone)]
pub struct Layer(Arc<Laid>);

/// What [`Layer`] is, field by field.
pub struct Laid {
    /// Where.
    pub path: SettingPath,
    /// What is said there; `None`: nothing, whatever the files say.
    pub text: Option<Arc<str>>,
    /// What messages call it, such as "change 42 by anna".
    pub name: String,
    /// Its text as messages show it, and the folder that paths in it are relative to.
    source: OnceLock<(Arc<Source>, Arc<Path>)>,
    /// What the text was found to say, if that is the same each time.
    node: OnceLock<Node>,
}

impl Layer {
    /// Returns a change.
    pub fn new(path: SettingPath, text: Option<Arc<str>>, name: String) -> Self {
        Self(Arc::new(Laid { path, text, name, source: OnceLock::new(), node: OnceLock::new() }))
    }
}

impl Deref for Layer {
    type Target = Laid;

    fn deref(&self) -> &Laid {
        &self.0
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text may be a secret.
        write!(f, "Layer({} at {})", self.name, self.path)
    }
}

impl PartialEq for Layer {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |one: &Laid, other: &Laid| {
            (&one.path, &one.text, &one.name) == (&other.path, &other.text, &other.name)
        };
        Arc::ptr_eq(&self.0, &other.0) || is_same(self, other)
    }
}
impl Eq for Layer {}

impl Laid {
    /// Returns its text as messages show it.
    fn source(&self, directory: &Arc<Path>) -> Arc<Source> {
        let make = || {
            let text = self.text.as_deref().unwrap_or_default().to_owned();
            Arc::new(Source::beside(self.name.as_ref(), text, Arc::clone(directory)))
        };
        let (source, known) = self.source.get_or_init(|| (make(), Arc::clone(directory)));
        // Under another file, as the last good configuration may be.
        if known == directory { Arc::clone(source) } else { make() }
    }
}

impl Loaded {
    /// Returns what the files say alone, without changes.
    ///
    /// # Errors
    ///
    /// As when they were read: none.
    pub fn without_changes(&self, environment: &dyn Environment) -> Result<Self, Vec<Diagnostic>> {
        self.with_changes(&[], environment)
    }

    /// Lays changes over what the files said when they were read, whatever they hold by now; those
    /// that were laid over them before are gone.
    ///
    /// # Errors
    ///
    /// All mistakes that there are with the changes.
    pub fn with_changes(
        &self,
        layers: &[Layer],
        environment: &dyn Environment,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut loader = Loader::of(&self.base, environment);
        let mut entries = self.base.entries.clone();
        loader.lay(layers, &mut entries);
        let (base, changes) = (Arc::clone(&self.base), self.changes.clone());
        Ok(Self { layers: layers.into(), changes, base, ..loader.finish_tree(None, entries)? })
    }

    /// Returns the tree of the files with other changes over them, of these settings of the top
    /// level alone; mistakes are not looked for.
    fn tree_with(&self, layers: &[Layer], tops: &BTreeSet<&str>, environment: &dyn Environment) -> Node {
        let mut loader = Loader::of(&self.base, environment);
        let is_wanted = |entry: &&Entry| tops.contains(entry.key.as_str());
        let mut entries: Vec<Entry> = self.base.entries.iter().filter(is_wanted).cloned().collect();
        loader.lay(layers, &mut entries);
        Node { span: self.tree.span, value: Value::Map(entries) }
    }

    /// Returns the files that it was read from, the main one first, and their texts; changes are
    /// none of them.
    pub fn files(&self) -> Vec<(&Path, &str)> {
        self.base.sources.files().map(|source| (source.path.as_path(), source.text())).collect()
    }

    /// Returns the changes that are laid over the files.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

impl Loader<'_> {
    /// Goes on from files that were read.
    fn of<'e>(base: &Base, environment: &'e dyn Environment) -> Loader<'e> {
        let mut loader = Loader::new(environment);
        loader.sources = base.sources.clone();
        loader.problems.clone_from(&base.problems);
        loader.seen.clone_from(&base.seen);
        loader
    }

    /// Lays changes over `entries`: those of what holds others first.
    fn lay(&mut self, layers: &[Layer], entries: &mut Vec<Entry>) {
        if layers.is_empty() {
            return;
        }
        short_forms(entries);
        let directory = self.sources.files().next().and_then(|source| source.path.parent());
        let directory: Arc<Path> = directory.unwrap_or(Path::new("")).into();
        let secret_keys: Vec<&'static str> = self.sources.secret_keys().to_vec();
        let mut ordered: Vec<&Layer> = layers.iter().collect();
        // Neighbours are found by one look at what holds them; what is taken away comes last, as it
        // moves them.
        ordered.sort_by_key(|layer| {
            let above = layer.path.keys().split_last().map(|(_, above)| above);
            (layer.path.keys().len(), above, layer.text.is_none())
        });
        let mut places = Places::default();
        for layer in ordered {
            let file = self.sources.add_shared(layer.source(&directory));
            let text = layer.text.as_deref().unwrap_or_default();
            let whole = Span { file, start: 0, end: text.len() as u32 };
            let node = layer.text.is_some().then(|| self.node_of(layer, (file, text), &secret_keys));
            if node.as_ref().is_some_and(|node| matches!(node.value, Value::Null)) && !self.broken {
                let problem = Problem::of_file(file, format!("nothing is said at \"{}\"", layer.path));
                self.problems
                    .push(problem.hint("to have nothing there, whatever the files say, take it away"));
                continue;
            }
            put(entries, &mut places, &layer.path, node, whole, &mut self.problems);
        }
        // A change may say a group of upstreams in short, too.
        short_forms(entries);
    }

    /// Returns what a change says, which is `text` in `file`.
    fn node_of(&mut self, layer: &Layer, (file, text): (FileId, &str), secret_keys: &[&str]) -> Node {
        if let Some(known) = layer.node.get() {
            return known.moved_to(file);
        }
        let environment = self.environment;
        let variable = |name: &str| environment.variable(name);
        let known = self.problems.len();
        let parsed = yaml::parse(file, text, &variable, &mut self.problems);
        if parsed.broken && layer.path.keys().iter().any(|key| secret_keys.contains(&key.as_str())) {
            self.problems.truncate(known);
            let message = format!("this is no YAML: expected text for \"{}\"", layer.path);
            let problem = Problem::of_file(file, message);
            self.problems.push(problem.hint("it is a secret: the mistake in it is not shown"));
        }
        self.broken |= parsed.broken;
        // What has mistakes is read again to tell them, and variables may be others by then.
        if self.problems.len() == known && !parsed.broken && !text.contains("${") {
            return layer.node.get_or_init(|| parsed.root).moved_to(file);
        }
        parsed.root
    }
}

/// Where the entries of one mapping are, so that many changes to it do not look through it each.
#[derive(Default)]
struct Places {
    /// The keys that lead to the mapping.
    above: Vec<String>,
    at: HashMap<String, usize>,
    is_known: bool,
}

impl Places {
    /// Returns where the mapping that `above` leads to has a key.
    fn find(&mut self, above: &[String], entries: &[Entry], key: &str) -> Option<usize> {
        if !self.is_known || self.above != above {
            above.clone_into(&mut self.above);
            self.at = entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
            self.is_known = true;
        }
        self.at.get(key).copied()
    }

    /// Notes an entry that was added.
    fn add(&mut self, key: &str, at: usize) {
        self.at.insert(key.to_owned(), at);
    }
}

/// Puts a node in place of what stands at a path; without one it is taken away.
fn put(
    entries: &mut Vec<Entry>,
    places: &mut Places,
    path: &SettingPath,
    node: Option<Node>,
    whole: Span,
    problems: &mut Vec<Problem>,
) {
    let key_span = node.as_ref().map_or(whole, Node::head);
    let Some((last, above)) = path.keys().split_last() else { return };
    let mut entries = entries;
    for (depth, key) in above.iter().enumerate() {
        let at = match entries.iter().position(|entry| entry.key == *key) {
            Some(at) => at,
            None => {
                let node = missing(if depth == 0 { key } else { "" }, whole);
                entries.push(Entry { key: key.clone(), key_span, node });
                entries.len() - 1
            }
        };
        let Some(entry) = entries.get_mut(at) else { return };
        if matches!(entry.node.value, Value::Null) {
            entry.node.value = missing(if depth == 0 { key } else { "" }, whole).value;
        }
        let head = entry.node.head();
        let Value::Map(below) = &mut entry.node.value else {
            let message = format!("\"{path}\" is to be set in it, and it is no mapping");
            problems.push(Problem::error(head, message));
            return;
        };
        entries = below;
    }
    let known = match node {
        Some(_) => places.find(above, entries, last),
        None => entries.iter().position(|entry| entry.key == *last),
    };
    match (known, node) {
        (Some(at), Some(node)) => {
            let Some(entry) = entries.get_mut(at) else { return };
            let is_of_file = entry.key_span != Span::BUILT_IN;
            if is_of_file && crate::print::flow(&entry.node) == crate::print::flow(&node) {
                let problem = Problem::warning(node.head(), "this change says what the file says");
                problems.push(problem.hint_at("it can be taken back; see ", entry.key_span, ""));
            }
            // Places of what is changed are those of the change.
            *entry = Entry { key: last.clone(), key_span, node };
        }
        (None, Some(node)) => {
            places.add(last, entries.len());
            entries.push(Entry { key: last.clone(), key_span, node });
        }
        (Some(at), None) => {
            entries.remove(at);
            places.is_known = false;
        }
        (None, None) => {}
    }
}

/// Returns what stands at a setting of the top level that no file says: its default, if it holds
/// names, so that a change adds to it.
fn missing(key: &str, whole: Span) -> Node {
    let row = schema::find(key).filter(|row| matches!(row.kind, Kind::Named(_)));
    match row.and_then(|row| row.default) {
        Some(default) => default_node(default),
        None => Node { span: whole, value: Value::Map(Vec::new()) },
    }
}

#[cfg(test)]
mod tests;
