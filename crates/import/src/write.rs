//! What is written: YAML in our own words, with comments.

use std::fmt::Write as _;

/// Columns of a comment.
const WIDTH: usize = 110;

/// A value of the new file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Out {
    /// One value; quoted when it has to be.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// Several lines, kept as they are.
    Block(String),
    /// One below the other.
    List(Vec<Noted>),
    /// On one line, in brackets.
    Row(Vec<String>),
    /// `key: value`, one below the other.
    Map(Vec<(String, Noted)>),
}

/// A value with its comment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Noted {
    pub(super) notes: Vec<String>,
    pub(super) value: Out,
}

impl Noted {
    pub(super) fn bare(value: Out) -> Self {
        Self { notes: Vec::new(), value }
    }
}

impl From<Out> for Noted {
    fn from(value: Out) -> Self {
        Self::bare(value)
    }
}

impl From<String> for Noted {
    fn from(text: String) -> Self {
        Self::bare(Out::Text(text))
    }
}

impl From<&str> for Noted {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A mapping under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Map(Vec<(String, Noted)>);

impl Map {
    pub(super) fn put(&mut self, key: impl Into<String>, value: impl Into<Noted>) {
        self.0.push((key.into(), value.into()));
    }

    pub(super) fn put_some(&mut self, key: &str, value: Option<impl Into<Noted>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    pub(super) fn note(&mut self, key: impl Into<String>, notes: Vec<String>, value: impl Into<Noted>) {
        let mut value = value.into();
        value.notes = notes;
        self.0.push((key.into(), value));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns what is there under a key.
    pub(super) fn get(&self, key: &str) -> Option<&Noted> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, noted)| noted)
    }

    /// Returns a mapping of these entries.
    pub(super) const fn of(entries: Vec<(String, Noted)>) -> Self {
        Self(entries)
    }

    /// Takes out what is there under a key.
    pub(super) fn take(&mut self, key: &str) -> Option<Noted> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(at).1)
    }

    /// Adds what another one has.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl From<Map> for Out {
    fn from(map: Map) -> Self {
        Self::Map(map.0)
    }
}

impl From<Map> for Noted {
    fn from(map: Map) -> Self {
        Self::bare(map.into())
    }
}

/// Prints the top level: sections with an empty line between them.
pub(super) fn document(head: &[String], sections: Map) -> String {
    let mut out = String::new();
    for note in head {
        comment(&mut out, note, 0);
    }
    for (key, noted) in sections.0 {
        out.push('\n');
        entry(&mut out, &key, &noted, 0);
    }
    out
}

fn entry(out: &mut String, key: &str, noted: &Noted, indent: usize) {
    for note in &noted.notes {
        comment(out, note, indent);
    }
    let _ = write!(out, "{:indent$}{}:", "", quoted(key));
    after(out, &noted.value, indent);
}

/// Prints a value after `key:` or `-`.
fn after(out: &mut String, value: &Out, indent: usize) {
    match value {
        Out::Text(text) => {
            let _ = writeln!(out, " {}", quoted(text));
        }
        Out::Flag(flag) => {
            let _ = writeln!(out, " {flag}");
        }
        Out::Block(text) => {
            out.push_str(" |\n");
            for line in text.lines() {
                let _ = writeln!(out, "{:1$}{line}", "", indent + 2);
            }
        }
        Out::Row(items) => {
            let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
            let _ = writeln!(out, " [{}]", items.join(", "));
        }
        Out::List(items) if items.is_empty() => out.push_str(" []\n"),
        Out::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
        Out::List(items) => {
            out.push('\n');
            for item in items {
                list_item(out, item, indent + 2);
            }
        }
        Out::Map(entries) => {
            out.push('\n');
            for (key, noted) in entries {
                entry(out, key, noted, indent + 2);
            }
        }
    }
}

fn list_item(out: &mut String, item: &Noted, indent: usize) {
    for note in &item.notes {
        comment(out, note, indent);
    }
    match &item.value {
        // The first key stands on the line of the dash.
        Out::Map(entries) if !entries.is_empty() => {
            for (at, (key, noted)) in entries.iter().enumerate() {
                if at == 0 {
                    let _ = write!(out, "{:indent$}- {}:", "", quoted(key));
                    after(out, &noted.value, indent + 2);
                } else {
                    entry(out, key, noted, indent + 2);
                }
            }
        }
        value => {
            let _ = write!(out, "{:indent$}-", "");
            after(out, value, indent);
        }
    }
}

fn comment(out: &mut String, text: &str, indent: usize) {
    let mut line = String::new();
    let mut put = |line: &mut String| {
        let _ = writeln!(out, "{:indent$}# {line}", "");
        line.clear();
    };
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + 2 + line.len() + 1 + word.len() > WIDTH {
            put(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    put(&mut line);
}

/// Returns `text` as YAML reads it back: bare when that is safe, otherwise in quotation marks.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./()<>=+".contains(c) || c == ' ' || c == ':';
    let safe = !text.is_empty()
        && text.chars().all(is_plain)
        && text
            .starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '(' || c == '.' || c == '_')
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !matches!(text, "true" | "false" | "null" | "~");
    if safe {
        return text.to_owned();
    }
    if text.chars().any(char::is_control) {
        let mut escaped = String::from("\"");
        for c in text.chars() {
            match c {
                '"' => escaped.push_str("\\\""),
                '\\' => escaped.push_str("\\\\"),
                '\n' => escaped.push_str("\\n"),
                '\t' => escaped.push_str("\\t"),
                c if c.is_control() => {
                    let _ = write!(escaped, "\\x{:02x}", c as u32 & 0xff);
                }
                c => escaped.push(c),
            }
        }
        escaped.push('"');
        return escaped;
    }
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_when_they_have_to_be() {
        for bare in ["main", "192.0.2.1", "cache(main)", "10s", "a: b".split(':').next().unwrap_or("")] {
            assert_eq!(quoted(bare), bare);
        }
        for (text, expect) in [
            ("", "''"),
            ("true", "'true'"),
            ("a: b", "'a: b'"),
            ("it's", "'it''s'"),
            ("fallback(a, b)", "'fallback(a, b)'"),
            ("::1", "'::1'"),
            ("*.a", "'*.a'"),
            ("a\nb", "\"a\\nb\""),
            ("$x", "'$x'"),
        ] {
            assert_eq!(quoted(text), expect, "{text}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut rule = Map::default();
        rule.put("if", "qname in ads");
        rule.note("do", vec!["first".to_owned()], Out::Row(vec!["hosts".to_owned(), "a(b, c)".to_owned()]));
        let mut policy = Map::default();
        policy.put(
            "main",
            Out::List(vec![
                Noted { notes: vec!["here".to_owned()], value: rule.into() },
                Noted::bare(Out::Text("accept".to_owned())),
            ]),
        );
        let mut sections = Map::default();
        sections.put("listen", Out::Row(vec!["127.0.0.1:53".to_owned()]));
        sections.note("policy", vec!["all".to_owned()], policy);
        let text = document(&["Written by a test.".to_owned()], sections);
        assert_eq!(
            text,
            "# Written by a test.\n\nlisten: [127.0.0.1:53]\n\n# all\npolicy:\n  main:\n    # here\n    - if: qname in ads\n      # first\n      do: [hosts, 'a(b, c)']\n    - accept\n"
        );
    }
}
