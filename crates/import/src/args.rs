//! The settings of a plugin, read with the loose types that both programs accept: `"1"` is a
//! number, a lone value a list. What nobody asked for is reported at the end.

use std::cell::RefCell;

use diagnostic::suggest::nearest;
use diagnostic::{At, Problem, Scalar, Span};
use yaml::{Entry, Node, Value};

use super::Dialect;
use super::plugins::items;

/// The settings of one plugin, or of one item in them.
pub(super) struct Args<'a> {
    dialect: Dialect,
    /// What they belong to, for messages.
    owner: String,
    entries: &'a [Entry],
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Args<'a> {
    /// Takes up the mapping in `node`; anything else is reported.
    pub(super) fn new(
        dialect: Dialect,
        owner: impl Into<String>,
        node: &'a Node,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let owner = owner.into();
        let entries = match &node.value {
            Value::Map(entries) => entries.as_slice(),
            Value::Null => &[],
            Value::Long(_) | Value::Scalar(_) | Value::List(_) => {
                let problem = Problem::error(node.head(), format!("{owner} takes \"key: value\" lines here"));
                problems.push(problem);
                &[]
            }
        };
        Self { dialect, owner, entries, asked: RefCell::default() }
    }

    /// Returns what the key has, if it has anything.
    pub(super) fn node(&self, key: &'static str) -> Option<&'a Node> {
        self.asked.borrow_mut().push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (!matches!(entry.node.value, Value::Null)).then_some(&entry.node)
    }

    /// Returns the place of a key.
    pub(super) fn place(&self, key: &str) -> Option<Span> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_span)
    }

    /// Returns a text.
    pub(super) fn text(&self, key: &'static str, problems: &mut Vec<Problem>) -> Option<At<String>> {
        let node = self.node(key)?;
        match &node.value {
            Value::Scalar(scalar) => Some(at(node, scalar)),
            Value::Null | Value::Long(_) | Value::List(_) | Value::Map(_) => {
                problems.push(Problem::error(node.head(), format!("\"{key}\" is one value")));
                None
            }
        }
    }

    /// Returns a list of texts; a lone text is a list of one.
    pub(super) fn texts(&self, key: &'static str, problems: &mut Vec<Problem>) -> Vec<At<String>> {
        self.node(key).map_or_else(Vec::new, |node| texts(node, problems))
    }

    /// Returns the items of a list.
    pub(super) fn items(&self, key: &'static str) -> &'a [Node] {
        self.node(key).map_or(&[], items)
    }

    /// Returns a whole number.
    pub(super) fn number(&self, key: &'static str, problems: &mut Vec<Problem>) -> Option<At<u64>> {
        let text = self.text(key, problems)?;
        match text.value.trim().parse() {
            Ok(value) => Some(At { value, span: text.span }),
            Err(_) => {
                let problem = Problem::error(text.span, format!("\"{}\" is no whole number", text.value));
                problems.push(problem.expected("digits"));
                None
            }
        }
    }

    /// Returns a yes or no.
    pub(super) fn flag(&self, key: &'static str, problems: &mut Vec<Problem>) -> Option<At<bool>> {
        let text = self.text(key, problems)?;
        let value = match text.value.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "t" | "yes" => true,
            "false" | "0" | "f" | "no" | "" => false,
            _ => {
                let problem =
                    Problem::error(text.span, format!("\"{}\" is neither true nor false", text.value));
                problems.push(problem);
                return None;
            }
        };
        Some(At { value, span: text.span })
    }

    /// Says of keys that they are read and mean nothing here.
    pub(super) fn ignore(&self, keys: &[&'static str], why: &str, problems: &mut Vec<Problem>) {
        for key in keys {
            if self.node(key).is_some()
                && let Some(place) = self.place(key)
            {
                problems.push(Problem::warning(place, format!("\"{key}\" is left out: {why}")));
            }
        }
    }

    /// Reports keys that nobody asked for: one program stops at them, the other does not look.
    pub(super) fn finish(self, problems: &mut Vec<Problem>) {
        let asked = self.asked.into_inner();
        for entry in self.entries.iter().filter(|entry| !asked.contains(&entry.key.as_str())) {
            let message = format!("{} has no setting \"{}\"", self.owner, entry.key);
            let problem = match self.dialect {
                Dialect::Mosdns => Problem::error(entry.key_span, message),
                Dialect::Oxidns => {
                    Problem::warning(entry.key_span, format!("{message}; OxiDNS does not look at it either"))
                }
            };
            problems.push(match nearest(&entry.key, asked.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                None => problem,
            });
        }
    }
}

/// Returns the texts of a list or of a lone text.
pub(super) fn texts(node: &Node, problems: &mut Vec<Problem>) -> Vec<At<String>> {
    let mut found = Vec::new();
    for item in items(node) {
        match &item.value {
            Value::Scalar(scalar) => found.push(at(item, scalar)),
            Value::Null => {}
            Value::Long(_) | Value::List(_) | Value::Map(_) => {
                problems.push(Problem::error(item.head(), "a list or mapping cannot stand here"));
            }
        }
    }
    found
}

/// Returns the text and its place without quotation marks.
fn at(node: &Node, scalar: &Scalar) -> At<String> {
    let span = if scalar.text.is_empty() { node.span } else { scalar.span(0, scalar.text.len()) };
    At { value: scalar.text.clone(), span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostic::Sources;
    use std::path::Path;

    fn check(dialect: Dialect, text: &str, expect: &[&str]) {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), text.to_owned());
        let mut problems = Vec::new();
        let node = yaml::parse(file, text, &|_| None, &mut problems).root;
        let args = Args::new(dialect, "\"cache\"", &node, &mut problems);
        let _ = (args.number("size", &mut problems), args.flag("lazy", &mut problems));
        let _ = args.texts("files", &mut problems);
        args.finish(&mut problems);
        let found = diagnostic::diagnostics(problems, &sources);
        assert_eq!(found.iter().map(diagnostic::Diagnostic::line).collect::<Vec<_>>(), expect, "{text}");
    }

    #[test]
    fn types_are_loose_but_not_arbitrary() {
        check(Dialect::Mosdns, "size: \"12\"\nlazy: 1\nfiles: a\n", &[]);
        check(Dialect::Mosdns, "size: 1k\n", &["x:1:7: error: \"1k\" is no whole number: expected digits"]);
        check(Dialect::Mosdns, "lazy: [a]\n", &["x:1:7: error: \"lazy\" is one value"]);
        check(
            Dialect::Mosdns,
            "files: [a, {b: c}]\n",
            &["x:1:13: error: a list or mapping cannot stand here"],
        );
    }

    #[test]
    fn what_nobody_asked_for_is_reported() {
        check(Dialect::Mosdns, "sise: 1\n", &["x:1:1: error: \"cache\" has no setting \"sise\""]);
        check(
            Dialect::Oxidns,
            "sise: 1\n",
            &["x:1:1: warning: \"cache\" has no setting \"sise\"; OxiDNS does not look at it either"],
        );
    }
}
