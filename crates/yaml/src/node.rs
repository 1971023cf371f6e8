//! The tree: nodes, what they hold, and where they stand.

use diagnostic::{FileId, LongText, Scalar, Span};

/// One node of the tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub span: Span,
    /// What it holds.
    pub value: Value,
}

impl Node {
    /// Returns the place to point at when the whole node is meant: its text, or the first key of a
    /// mapping.
    pub fn head(&self) -> Span {
        match &self.value {
            Value::Map(entries) => entries.first().map_or(self.span, |entry| entry.key_span),
            Value::List(items) if self.span.start == self.span.end => {
                items.first().map_or(self.span, Self::head)
            }
            Value::Null | Value::Scalar(_) | Value::Long(_) | Value::List(_) => self.span,
        }
    }

    /// Reads a text that is a word, a list of words or an empty mapping as the parser would; `None`
    /// if it takes the parser.
    pub(crate) fn of_words(file: FileId, text: &str) -> Option<Self> {
        let whole = Span { file, start: 0, end: u32::try_from(text.len()).ok()? };
        if text == "{}" {
            return Some(Self { span: whole, value: Value::Map(Vec::new()) });
        }
        let Some(words) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
            return Self::of_word(whole, text);
        };
        let mut start = 1;
        let mut items = Vec::new();
        for word in words.split(", ").filter(|_| !words.is_empty()) {
            let end = start + word.len() as u32;
            items.push(Self::of_word(Span { file, start, end }, word)?);
            start = end + 2;
        }
        Some(Self { span: whole, value: Value::List(items) })
    }

    /// Reads a text that is one word, such as an address; `None` if it takes a parser.
    fn of_word(span: Span, text: &str) -> Option<Self> {
        // A colon with something behind it is part of the word, as in 2001:db8::1.
        let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./%:".contains(&byte))
            && !text.ends_with(':')
            && !text.eq_ignore_ascii_case("null");
        is_plain.then(|| Self { span, value: Value::Scalar(Scalar::straight(text.to_owned(), span)) })
    }

    /// Returns whether it says the same as another, wherever the two stand.
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Null, Value::Null) => true,
            (Value::Scalar(one), Value::Scalar(other)) => one.text == other.text,
            (Value::Long(one), Value::Long(other)) => one == other,
            (Value::List(one), Value::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_same_as(other))
            }
            (Value::Map(one), Value::Map(other)) => {
                let is_same =
                    |(one, other): (&Entry, &Entry)| one.key == other.key && one.node.is_same_as(&other.node);
                one.len() == other.len() && one.iter().zip(other).all(is_same)
            }
            _ => false,
        }
    }

    /// Returns the same as part of another file, at the same places.
    pub fn moved_to(&self, file: FileId) -> Self {
        let mut node = self.clone();
        node.move_to(file);
        node
    }

    fn move_to(&mut self, file: FileId) {
        self.span.file = file;
        match &mut self.value {
            Value::Null | Value::Long(_) => {}
            Value::Scalar(scalar) => scalar.move_to(file),
            Value::List(items) => items.iter_mut().for_each(|item| item.move_to(file)),
            Value::Map(entries) => {
                for entry in entries {
                    entry.key_span.file = file;
                    entry.node.move_to(file);
                }
            }
        }
    }

    /// Returns the same with every place replaced by the mark of built-in text.
    pub fn built_in(mut self) -> Self {
        self.span = Span::BUILT_IN;
        match &mut self.value {
            Value::Null => {}
            Value::Long(_) => {}
            Value::Scalar(scalar) => scalar.forget_place(),
            Value::List(items) => {
                for item in items {
                    let taken = std::mem::replace(item, Self { span: Span::BUILT_IN, value: Value::Null });
                    *item = taken.built_in();
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    entry.key_span = Span::BUILT_IN;
                    let nothing = Self { span: Span::BUILT_IN, value: Value::Null };
                    entry.node = std::mem::replace(&mut entry.node, nothing).built_in();
                }
            }
        }
        self
    }
}

/// Returns a mapping that says nothing but `key`, where something stands that means it.
pub fn in_mapping(key: &str, key_span: Span, node: Node) -> Node {
    let span = node.span;
    Node { span, value: Value::Map(vec![Entry { key: key.to_owned(), key_span, node }]) }
}

/// What a node holds.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing was written, or `null` or `~`.
    Null,
    /// A text.
    Scalar(Scalar),
    /// A text of megabytes that no YAML was read from, and that its readers share.
    Long(LongText),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<Entry>),
}

/// One `key: value` of a mapping.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// What stands behind it.
    pub node: Node,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_the_parser_reads_them() {
        let check = |text: &str, is_quick: bool| {
            let file = FileId(7);
            let quick = Node::of_words(file, text);
            assert_eq!(quick.is_some(), is_quick, "{text}");
            let mut problems = Vec::new();
            let parsed = crate::parse_events(file, text, &|_| None, &mut problems);
            if let Some(quick) = quick {
                assert!(!parsed.broken && problems.is_empty(), "{text}");
                assert_eq!(format!("{quick:?}"), format!("{:?}", parsed.root), "{text}");
                assert_eq!(format!("{quick:?}"), format!("{:?}", quick.moved_to(FileId(3)).moved_to(file)));
            }
        };
        for text in [
            "192.0.2.1",
            "2001:db8::1",
            "a:b",
            "/etc/hosts",
            "5%",
            "true",
            "1GiB",
            "a-b_c.d",
            "null.example",
            "a--",
            "a...",
            "[]",
            "{}",
            "[192.0.2.1]",
            "[192.0.2.1, 2001:db8::1, fe80::1%eth0]",
        ] {
            check(text, true);
        }
        for text in [
            "",
            " ",
            "a ",
            "a\n",
            "null",
            "NULL",
            "~",
            "a:",
            "a: b",
            "::1",
            "-a",
            ".a",
            "a #b",
            "a,b",
            "[a,b]",
            "[a, ]",
            "[a, b:]",
            "[[a]]",
            "{a: b}",
            "\"a\"",
            "a\tb",
            "${A}",
            "&a",
            "ä",
            "[a, null]",
            "[",
            "]",
        ] {
            check(text, false);
        }
        // All texts of four signs.
        let signs: Vec<char> = "a0-_./%:[], {}".chars().collect();
        for number in 0..signs.len().pow(4) {
            let text: String =
                (0..4).map(|place| signs[number / signs.len().pow(place) % signs.len()]).collect();
            if Node::of_words(FileId(0), &text).is_some() {
                check(&text, true);
            }
        }
    }
}
