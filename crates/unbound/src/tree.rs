//! The tree under way: settings by their paths.

use std::sync::Arc;

use diagnostic::{FileId, LongText, Scalar, Span};
use yaml::{Entry, Node, Value};

use crate::read::Word;

/// Settings of ours; all points at what was read.
#[derive(Debug)]
pub(crate) struct Tree {
    entries: Vec<Entry>,
    /// Stands for what the file does not say, but the other program does without being told.
    whole: Span,
}

impl Tree {
    pub(crate) fn new(main: FileId) -> Self {
        Self { entries: Vec::new(), whole: Span { file: main, start: 0, end: 0 } }
    }

    /// Returns the place of what nothing in the file says.
    pub(crate) const fn whole(&self) -> Span {
        self.whole
    }

    /// Returns the settings.
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// Puts a value; one that is there already is replaced.
    pub(crate) fn set(&mut self, path: &[&str], node: Node) {
        let (span, slot) = (node.span, self.slot(path, node.span));
        slot.node = node;
        slot.key_span = span;
    }

    /// Adds an item to a list.
    pub(crate) fn push(&mut self, path: &[&str], node: Node) {
        let slot = self.slot(path, node.span);
        match &mut slot.node.value {
            Value::List(items) => items.push(node),
            _ => slot.node = list(vec![node]),
        }
    }

    /// Returns whether there is something.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        let mut entries = &self.entries;
        for (at, key) in path.iter().enumerate() {
            let Some(entry) = entries.iter().find(|entry| entry.key == *key) else { return false };
            match &entry.node.value {
                Value::Map(inside) => entries = inside,
                _ => return at + 1 == path.len(),
            }
        }
        true
    }

    /// Returns the items of a list of the first level.
    pub(crate) fn items(&self, path: &[&str]) -> Vec<Node> {
        let entry = self.entries.iter().find(|entry| path == [entry.key.as_str()]);
        match entry.map(|entry| &entry.node.value) {
            Some(Value::List(items)) => items.clone(),
            _ => Vec::new(),
        }
    }

    fn slot(&mut self, path: &[&str], span: Span) -> &mut Entry {
        let nothing = Node { span, value: Value::Map(Vec::new()) };
        let (last, above) = path.split_last().expect("a path has a last part");
        let mut entries = &mut self.entries;
        for key in above {
            let entry = find(entries, key, &nothing);
            if !matches!(entry.node.value, Value::Map(_)) {
                entry.node = nothing.clone();
            }
            let Value::Map(inside) = &mut entry.node.value else {
                unreachable!("it was just made a mapping")
            };
            entries = inside;
        }
        find(entries, last, &nothing)
    }
}

fn find<'e>(entries: &'e mut Vec<Entry>, key: &str, nothing: &Node) -> &'e mut Entry {
    let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
        entries.push(Entry { key: key.to_owned(), key_span: nothing.span, node: nothing.clone() });
        entries.len() - 1
    });
    &mut entries[at]
}

/// Returns a text as it stands in the file.
pub(crate) fn as_written(word: &Word) -> Node {
    Node { span: word.span, value: Value::Scalar(Scalar::straight(word.text.clone(), word.span)) }
}

/// Returns a text that something at `at` stands for.
pub(crate) fn text(text: impl Into<String>, at: Span) -> Node {
    let text = text.into();
    // Every octet of it was written by all of what stands there.
    let table = vec![(at.start, at.end); text.len()];
    Node { span: at, value: Value::Scalar(Scalar::traced(text, at, table)) }
}

/// Returns a text of megabytes, of which nobody remembers where each octet is from.
pub(crate) fn long_text(pieces: Vec<Arc<str>>, at: Span) -> Node {
    Node { span: at, value: Value::Long(LongText::new(pieces)) }
}

/// Returns yes or no.
pub(crate) fn flag(is: bool, at: Span) -> Node {
    text(if is { "true" } else { "false" }, at)
}

/// Returns a list, which begins where its first item does.
pub(crate) fn list(items: Vec<Node>) -> Node {
    let span = items.first().map_or(Span::BUILT_IN, |item| item.span);
    Node { span, value: Value::List(items) }
}

/// Returns a mapping that stands at `at`.
pub(crate) fn map(entries: Vec<(&str, Node)>, at: Span) -> Node {
    let entry = |(key, node): (&str, Node)| Entry { key: key.to_owned(), key_span: node.span, node };
    Node { span: at, value: Value::Map(entries.into_iter().map(entry).collect()) }
}
