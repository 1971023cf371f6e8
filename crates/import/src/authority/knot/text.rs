//! Knot's configuration as it is written: sections, items, `key: value`. It looks like YAML and is
//! not: a section may come again, and so may a key, which then has several values.

use std::path::Path;

use diagnostic::{At, FileId, Span};

use super::super::Files;
use super::super::fields::Entry;

/// One item of a section, or all there is of a section without items.
pub(super) struct Item {
    pub(super) entries: Vec<Entry>,
}

/// A section, as often as it is there.
pub(super) struct Section {
    pub(super) name: At<String>,
    pub(super) items: Vec<Item>,
}

/// Reads a file and all that it includes.
pub(super) fn read(
    files: &mut Files<'_>,
    file: FileId,
    text: &str,
    path: &Path,
    depth: usize,
) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut scanner = Scanner { text, file, at: 0 };
    while let Some(line) = scanner.line(files) {
        let Some(key) = line.key else {
            // `- value`: one more value of the key above.
            let last = sections.last_mut().and_then(|section| section.items.last_mut());
            match last.and_then(|item| item.entries.last_mut()) {
                Some(entry) => entry.values.extend(line.values),
                None => files.wrong(line.place, "this belongs to no setting"),
            }
            continue;
        };
        if line.indent == 0 && !line.has_dash {
            match key.value.as_str() {
                "include" => {
                    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
                    for pattern in &line.values {
                        for path in files.included(pattern, &directory, depth) {
                            let Some((file, text)) = files.open(&path, Some(pattern.span)) else { continue };
                            sections.extend(read(files, file, &text, &path, depth + 1));
                        }
                    }
                }
                "clear" => {
                    files.wrong(key.span, "\"clear\" cannot be carried over: it undoes what was said before");
                }
                _ => sections.push(Section { name: key, items: Vec::new() }),
            }
            continue;
        }
        let Some(section) = sections.last_mut() else {
            files.wrong(key.span, format!("\"{}\" is in no section", key.value));
            continue;
        };
        if line.has_dash || section.items.is_empty() {
            section.items.push(Item { entries: Vec::new() });
        }
        if let Some(item) = section.items.last_mut() {
            item.entries.push(Entry { key, values: line.values });
        }
    }
    sections
}

/// One line, or several if it has a list in brackets.
struct Line {
    indent: usize,
    has_dash: bool,
    key: Option<At<String>>,
    values: Vec<At<String>>,
    place: Span,
}

struct Scanner<'a> {
    text: &'a str,
    file: FileId,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while let Some(c) = self.next().filter(|&c| is_skipped(c)) {
            self.at += c.len_utf8();
        }
    }

    fn skip_line(&mut self) {
        self.skip(|c| c != '\n');
        self.skip(|c| c == '\n');
    }

    fn line(&mut self, files: &mut Files<'_>) -> Option<Line> {
        loop {
            let begins = self.at;
            self.skip(|c| matches!(c, ' ' | '\t'));
            match self.next()? {
                '\n' | '\r' => self.at += 1,
                '#' => self.skip_line(),
                _ => {
                    let indent = self.at - begins;
                    let line = self.content(indent, files);
                    self.skip_line();
                    return Some(line);
                }
            }
        }
    }

    fn content(&mut self, indent: usize, files: &mut Files<'_>) -> Line {
        let start = self.at;
        let rest = self.rest();
        let has_dash = rest.starts_with('-') && rest[1..].starts_with([' ', '\t']);
        if has_dash {
            self.at += 1;
            self.skip(|c| matches!(c, ' ' | '\t'));
        }
        let key = self.key();
        if key.is_none() && !has_dash {
            self.skip(|c| c != '\n');
            files.wrong(self.span(start), "this line is no setting");
        }
        let mut line = Line { indent, has_dash, key, values: Vec::new(), place: self.span(start) };
        self.skip(|c| matches!(c, ' ' | '\t'));
        if self.next() == Some('[') {
            let open = self.at;
            self.at += 1;
            loop {
                self.skip(|c| c.is_whitespace() || c == ',');
                match self.next() {
                    Some(']') => {
                        self.at += 1;
                        break;
                    }
                    Some('#') => self.skip(|c| c != '\n'),
                    Some(_) => {
                        let value = self.value(&[',', ']', '\n']);
                        line.values.push(value);
                    }
                    None => {
                        self.at = open + 1;
                        files.wrong(self.span(open), "this \"[\" is not closed");
                        self.at = self.text.len();
                        break;
                    }
                }
            }
        } else if !matches!(self.next(), None | Some('\n' | '\r' | '#')) {
            let value = self.value(&['\n']);
            line.values.push(value);
        }
        line.place = self.span(start);
        line
    }

    /// Reads `key:`.
    fn key(&mut self) -> Option<At<String>> {
        let rest = self.rest();
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let len = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        let after = rest[len..].strip_prefix(':')?;
        let is_key = len > 0 && (after.is_empty() || after.starts_with([' ', '\t', '\r', '\n', '[', '"']));
        if !is_key {
            return None;
        }
        let value = rest[..len].to_owned();
        let start = self.at;
        self.at += len;
        let span = self.span(start);
        self.at += 1;
        Some(At { value, span })
    }

    fn value(&mut self, ends: &[char]) -> At<String> {
        let start = self.at;
        let mut value = String::new();
        if self.next() == Some('"') {
            self.at += 1;
            while let Some(c) = self.next() {
                self.at += c.len_utf8();
                match c {
                    '"' => break,
                    '\\' => {
                        if let Some(escaped) = self.next() {
                            self.at += escaped.len_utf8();
                            value.push(escaped);
                        }
                    }
                    c => value.push(c),
                }
            }
            return At { value, span: self.span(start) };
        }
        let mut was_space = false;
        while let Some(c) = self.next() {
            if ends.contains(&c) || (c == '#' && was_space) {
                break;
            }
            was_space = c.is_whitespace();
            value.push(c);
            self.at += c.len_utf8();
        }
        let len = value.trim_end().len();
        value.truncate(len);
        let span = Span { end: (start + len) as u32, ..self.span(start) };
        At { value, span }
    }
}
