//! What was changed over the API: JSON files beside the configuration. JSON is YAML, too.

use std::io::ErrorKind;
use std::path::PathBuf;

use diagnostic::{FileId, Span};
use yaml::{Node, Value};

use crate::authority::Files;

/// An object of a store.
pub(super) struct Object {
    pub(super) at: Span,
    fields: Vec<(String, Node)>,
}

impl Object {
    /// Returns a field that is one value.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match &self.node(key)?.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            Value::Null | Value::Long(_) | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Returns the items of a field that is a list.
    pub(super) fn list(&self, key: &str) -> Vec<String> {
        match self.node(key).map(|node| &node.value) {
            Some(Value::List(items)) => items.iter().filter_map(text).collect(),
            Some(_) | None => Vec::new(),
        }
    }

    /// Returns a field that is an object.
    pub(super) fn object(&self, key: &str) -> Option<Self> {
        object(self.node(key)?)
    }

    fn node(&self, key: &str) -> Option<&Node> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, node)| node)
    }
}

fn text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Scalar(scalar) => Some(scalar.text.clone()),
        Value::Null | Value::Long(_) | Value::List(_) | Value::Map(_) => None,
    }
}

fn object(node: &Node) -> Option<Object> {
    match &node.value {
        Value::Map(entries) => {
            let fields = entries.iter().map(|entry| (entry.key.clone(), entry.node.clone())).collect();
            Some(Object { at: node.head(), fields })
        }
        Value::Null | Value::Long(_) | Value::Scalar(_) | Value::List(_) => None,
    }
}

/// Returns the objects of a store: those of the list under `key`, or of the list that it is. None
/// if there is no such file.
pub(super) fn read(files: &mut Files<'_>, name: &str, key: Option<&str>) -> Vec<Object> {
    let path = PathBuf::from(files.beside(name));
    if files.environment.read(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Vec::new();
    }
    let first = Span { file: FileId(0), start: 0, end: 0 };
    let Some((file, text)) = files.open(&path, Some(first)) else { return Vec::new() };
    // A variable of the environment means nothing in JSON.
    let root = yaml::parse(file, &text.replace("${", "$${"), &|_| None, &mut files.problems).root;
    let list = match (key, root.value) {
        (None, value) => Some(value),
        (Some(key), Value::Map(entries)) => {
            entries.into_iter().find(|entry| entry.key == key).map(|entry| entry.node.value)
        }
        (Some(_), Value::Null | Value::Long(_) | Value::Scalar(_) | Value::List(_)) => None,
    };
    match list {
        Some(Value::List(items)) => items.iter().filter_map(object).collect(),
        Some(_) | None => Vec::new(),
    }
}
