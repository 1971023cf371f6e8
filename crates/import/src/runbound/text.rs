//! The text of the configuration: one `key: value` a line, with sections.

use diagnostic::{At, FileId, Span};

use crate::authority::Files;

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) key: At<String>,
    pub(super) value: At<String>,
}

/// A section with its lines.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: At<String>,
    pub(super) lines: Vec<Line>,
}

impl Part {
    /// Returns the values of a key.
    pub(super) fn all<'p>(&'p self, key: &'p str) -> impl Iterator<Item = &'p At<String>> {
        self.lines.iter().filter(move |line| line.key.value == key).map(|line| &line.value)
    }

    /// Returns the value of a key: of several the last counts.
    pub(super) fn last<'p>(&'p self, key: &'p str) -> Option<&'p At<String>> {
        self.all(key).last()
    }

    /// Returns whether a key is `yes`.
    pub(super) fn flag(&self, key: &str, otherwise: bool) -> bool {
        self.last(key).map_or(otherwise, |value| value.value == "yes")
    }
}

/// Reads a file and those that it includes.
pub(super) fn read(files: &mut Files<'_>, file: FileId, text: &str, depth: usize, parts: &mut Vec<Part>) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = uncommented(line.trim_end_matches(['\n', '\r']));
        let Some(colon) = line.find(':') else {
            if !line.trim().is_empty() {
                let span = span(file, start, line);
                files.wrong(span, format!("\"{}\" is no \"key: value\"", line.trim()));
            }
            continue;
        };
        let (key, value) = (&line[..colon], &line[colon + 1..]);
        let key = At { value: key.trim().to_owned(), span: span(file, start, key) };
        let value_span = span(file, start + colon + 1, value);
        let value = value.trim().trim_matches('"').to_owned();
        match key.value.as_str() {
            "include" | "include-toplevel" => {
                let pattern = At { value, span: value_span };
                let directory = files.directory.clone();
                for path in files.included(&pattern, &directory, depth) {
                    if let Some((file, text)) = files.open(&path, Some(value_span)) {
                        read(files, file, &text, depth + 1, parts);
                    }
                }
            }
            _ if value.is_empty() => parts.push(Part { name: key, lines: Vec::new() }),
            _ => {
                if parts.is_empty() {
                    let name = At { value: "server".to_owned(), span: key.span };
                    parts.push(Part { name, lines: Vec::new() });
                }
                let line = Line { key, value: At { value, span: value_span } };
                if let Some(part) = parts.last_mut() {
                    part.lines.push(line);
                }
            }
        }
    }
}

/// Returns a line without its comment: `#` begins one wherever it stands outside of quotation
/// marks.
fn uncommented(line: &str) -> &str {
    let mut is_quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' if !is_quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Returns where a part of a line stands, without the blanks around it.
fn span(file: FileId, start: usize, part: &str) -> Span {
    let begin = start + part.len() - part.trim_start().len();
    Span { file, start: begin as u32, end: (begin + part.trim().len()) as u32 }
}
