//! A mistake as the readers report it, and how it becomes one that can be printed.

use std::collections::HashSet;

use crate::redact;
use crate::report::{Diagnostic, Severity};
use crate::source::{FileId, Sources, Span};

/// A mistake as the readers report it; becomes a [`Diagnostic`] when all are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    severity: Severity,
    place: Meant,
    message: String,
    expected: Option<String>,
    hint: Option<(String, Option<Span>, String)>,
}

/// What a problem points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Meant {
    Text(Span),
    File(FileId),
}

impl Problem {
    /// An error at this place.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            place: Meant::Text(span),
            message: message.into(),
            expected: None,
            hint: None,
        }
    }

    /// A warning at this place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// An error of a whole file, such as one that cannot be read.
    pub fn of_file(file: FileId, message: impl Into<String>) -> Self {
        Self { place: Meant::File(file), ..Self::error(Span::BUILT_IN, message) }
    }

    /// A warning of a whole file.
    pub fn warning_of_file(file: FileId, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::of_file(file, message) }
    }

    /// Adds what would have been right.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some((hint.into(), None, String::new()));
        self
    }

    /// Adds a hint that names a place between `before` and `after`.
    #[must_use]
    pub fn hint_at(mut self, before: impl Into<String>, at: Span, after: &str) -> Self {
        self.hint = Some((before.into(), Some(at), after.to_owned()));
        self
    }

    /// Returns whether it points at this place.
    pub fn is_at(&self, span: Span) -> bool {
        matches!(self.place, Meant::Text(at) if at == span)
    }

    /// Returns whether it says the same of the same place.
    pub fn is_like(&self, other: &Self) -> bool {
        self.order() == other.order() && self.message == other.message
    }

    /// Returns whether the configuration cannot be used because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    fn order(&self) -> (FileId, u32) {
        match self.place {
            Meant::Text(span) => (span.file, span.start),
            Meant::File(file) => (file, 0),
        }
    }

    fn into_diagnostic(self, sources: &Sources) -> Diagnostic {
        let file = self.order().0;
        let source = sources.file(file);
        let hint = self.hint.map(|(before, at, after)| match at {
            Some(at) => format!("{before}{}{after}", sources.describe(at, file)),
            None => before,
        });
        let mut diagnostic = Diagnostic {
            severity: self.severity,
            file: source.map(|source| source.path.clone()).unwrap_or_default(),
            line: 0,
            column: 0,
            width: 0,
            excerpt: String::new(),
            message: sources.shown_sentence(self.message),
            expected: self.expected.map(|text| sources.shown_sentence(text)),
            hint: hint.map(|text| sources.shown_sentence(text)),
        };
        if let (Meant::Text(span), Some(source)) = (self.place, source) {
            let place = source.place(span.start);
            let text = source.part(span).unwrap_or_default();
            let width = text.lines().next().unwrap_or("").trim_end().chars().count();
            diagnostic.line = place.line;
            diagnostic.column = place.column;
            diagnostic.width = width.max(1) as u32;
            // What is printed here is logged.
            diagnostic.excerpt = sources.shown_line(file, place.line);
            let meant = text.lines().next().unwrap_or("").trim();
            let at = place.column as usize - 1;
            let is_covered = source.line(place.line).chars().nth(at) != diagnostic.excerpt.chars().nth(at);
            if is_covered && !meant.is_empty() {
                // A file that cannot be read to its end: the message may quote what seems to be a
                // secret.
                let said = [&mut diagnostic.message].into_iter();
                for said in said.chain(&mut diagnostic.expected).chain(&mut diagnostic.hint) {
                    *said = said.replace(meant, redact::HIDDEN);
                }
            }
        }
        let said = [&mut diagnostic.message].into_iter();
        for said in said.chain(&mut diagnostic.expected).chain(&mut diagnostic.hint) {
            make_fit(said);
        }
        diagnostic
    }
}

/// Octets of a sentence that are kept of its beginning and of its end, if it is longer than both.
const BEGINNING_OCTETS: usize = 1500;
const END_OCTETS: usize = 500;

/// Makes a sentence that quotes a file fit for a terminal and a log, whatever the file has: a word
/// may have a hundred megabytes, and control characters.
fn make_fit(said: &mut String) {
    if said.len() > BEGINNING_OCTETS + END_OCTETS {
        let beginning = said.floor_char_boundary(BEGINNING_OCTETS);
        let end = said.ceil_char_boundary(said.len() - END_OCTETS);
        *said = format!("{} … {}", &said[..beginning], &said[end..]);
    }
    let is_wrong = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if said.contains(is_wrong) {
        *said = said.replace(is_wrong, "\u{fffd}");
    }
}

/// Puts problems into file order and makes them printable.
pub fn diagnostics(mut problems: Vec<Problem>, sources: &Sources) -> Vec<Diagnostic> {
    problems.sort_by_key(Problem::order);
    // A part of a file that several readers look at has its mistakes once.
    let mut known = HashSet::new();
    problems.retain(|problem| known.insert(problem.clone()));
    problems.into_iter().map(|problem| problem.into_diagnostic(sources)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn check(text: &str, meant: &str, message: &str, human: &str) {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("/etc/gannet/gannet.yaml"), text.to_owned());
        let start = text.find(meant).expect("the text holds what is meant") as u32;
        let span = Span { file, start, end: start + meant.len() as u32 };
        let first = Span { file, start: 0, end: 1 };
        let problem = Problem::error(span, message).hint_at("did you mean \"cloudflare\" (", first, ")?");
        let found = diagnostics(vec![problem], &sources);
        assert_eq!(found[0].human(), human);
    }

    #[test]
    fn the_human_form_shows_the_line_and_a_caret() {
        check(
            "a: 1\n  forward: \"clodflare\"\n",
            "\"clodflare\"",
            "unknown upstream group \"clodflare\"",
            "/etc/gannet/gannet.yaml:2:12: error: unknown upstream group \"clodflare\"\n    2 |   forward: \"clodflare\"\n      |            ^^^^^^^^^^^\n   hint: did you mean \"cloudflare\" (line 1)?",
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), "\u{1b}[2J: 1".to_owned());
        let message = "unknown key \"\u{1b}[2J\"";
        let found = diagnostics(vec![Problem::error(Span { file, start: 0, end: 4 }, message)], &sources);
        assert!(!found[0].human().contains('\u{1b}'), "{:?}", found[0].human());
        assert!(!found[0].line().contains('\u{1b}'));
    }

    #[test]
    fn of_a_long_sentence_the_beginning_and_the_end_are_printed() {
        let mut sources = Sources::new(&[]);
        let text = "ä".repeat(1_000_000);
        let file = sources.add(Path::new("x"), text.clone());
        let problem =
            Problem::error(Span { file, start: 0, end: 4 }, format!("unknown word \"{text}\" here"));
        let found = diagnostics(vec![problem], &sources);
        let line = found[0].line();
        assert!(line.len() < 3000, "{}", line.len());
        assert!(line.starts_with("x:1:1: error: unknown word \"ää") && line.ends_with("ää\" here"), "{line}");
    }

    #[test]
    fn json_is_one_line_and_escaped() {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("a\"b"), "x\n".to_owned());
        let problem = Problem::error(Span { file, start: 0, end: 1 }, "line\nbreak").expected("y");
        let found = diagnostics(vec![problem], &sources);
        assert_eq!(
            found[0].json(),
            r#"{"severity":"error","file":"a\"b","line":1,"column":1,"width":1,"message":"line\nbreak","expected":"y"}"#
        );
    }

    #[test]
    fn a_mistake_that_two_readers_find_is_told_once() {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("gannet.yaml"), "a: b\n".to_owned());
        let problem = |message| Problem::error(Span { file, start: 0, end: 1 }, message);
        let found = diagnostics(vec![problem("one"), problem("two"), problem("one")], &sources);
        assert_eq!(found.iter().map(|found| found.message.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    }
}
