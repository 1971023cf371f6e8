//! What the operator got wrong, where, and what to write instead; three printers.

use std::fmt;
use std::path::PathBuf;

use crate::secrets;
use crate::source::{FileId, Sources, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used, but probably does not do what was meant.
    Warning,
}

impl Severity {
    /// Returns the word that the printers use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One mistake, complete in itself: printing it needs neither the files nor the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file; empty when no file is to blame.
    pub file: PathBuf,
    /// The line from one; zero when the whole file is meant.
    pub line: u32,
    /// The column from one, in characters; zero when the whole file is meant.
    pub column: u32,
    /// How many characters of the line are meant; at least one unless `line` is zero.
    pub width: u32,
    /// The whole line, for the excerpt.
    pub excerpt: String,
    /// What is wrong: lower case, names the text found.
    pub message: String,
    /// What would have been right, if that can be said.
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Characters of a source line that an excerpt shows, so that a line of a megabyte does not fill the terminal.
const EXCERPT_CHARACTERS_MAX: usize = 140;

impl Diagnostic {
    /// Prints the position and the message on one line, the source line, a caret and the hint.
    pub fn human(&self) -> String {
        let mut out = self.line();
        if self.line > 0 && !self.excerpt.is_empty() {
            // A long line is shown from shortly before the place that is meant.
            let column = self.column as usize - 1;
            let skip = if column + 20 > EXCERPT_CHARACTERS_MAX { column - 20 } else { 0 };
            let shown: Vec<char> = self.excerpt.chars().skip(skip).take(EXCERPT_CHARACTERS_MAX).collect();
            // Control characters of a hostile file must not reach the terminal.
            let text: String =
                shown.iter().map(|&c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect();
            let before: String =
                shown.iter().take(column - skip).map(|&c| if c == '\t' { '\t' } else { ' ' }).collect();
            let width = (self.width as usize).min(shown.len().saturating_sub(column - skip)).max(1);
            out.push_str(&format!("\n{:>5} | {text}\n      | {before}{}", self.line, "^".repeat(width)));
        }
        if let Some(hint) = &self.hint {
            out.push_str(&format!("\n   hint: {hint}"));
        }
        out
    }

    /// Prints `file:line:column: error: …` for editors.
    pub fn line(&self) -> String {
        let mut out = String::new();
        if !self.file.as_os_str().is_empty() {
            out.push_str(&format!("{}:", self.file.display()));
            if self.line > 0 {
                out.push_str(&format!("{}:{}:", self.line, self.column));
            }
            out.push(' ');
        }
        out.push_str(&format!("{}: {}", self.severity.word(), self.message));
        if let Some(expected) = &self.expected {
            out.push_str(&format!(": expected {expected}"));
        }
        out
    }

    /// Prints one line of JSON for programs.
    pub fn json(&self) -> String {
        let mut out = format!(
            "{{\"severity\":\"{}\",\"file\":{},\"line\":{},\"column\":{},\"width\":{},\"message\":{}",
            self.severity.word(),
            json_text(&self.file.display().to_string()),
            self.line,
            self.column,
            self.width,
            json_text(&self.message)
        );
        for (key, value) in [("expected", &self.expected), ("hint", &self.hint)] {
            if let Some(value) = value {
                out.push_str(&format!(",\"{key}\":{}", json_text(value)));
            }
        }
        out.push('}');
        out
    }
}

impl fmt::Display for Diagnostic {
    /// Prints the human form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.human())
    }
}

/// Writes `text` as a JSON string (RFC 8259 §7).
pub(crate) fn json_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A mistake as the readers report it; becomes a [`Diagnostic`] when all are known.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    severity: Severity,
    place: Meant,
    message: String,
    expected: Option<String>,
    hint: Option<(String, Option<Span>, String)>,
}

/// What a problem points at.
#[derive(Clone, Copy, Debug)]
enum Meant {
    Text(Span),
    File(FileId),
}

impl Problem {
    pub(crate) fn error(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            place: Meant::Text(span),
            message: message.into(),
            expected: None,
            hint: None,
        }
    }

    pub(crate) fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// An error of a whole file, such as one that cannot be read.
    pub(crate) fn of_file(file: FileId, message: impl Into<String>) -> Self {
        Self { place: Meant::File(file), ..Self::error(Span::BUILT_IN, message) }
    }

    /// A warning of a whole file.
    pub(crate) fn warning_of_file(file: FileId, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::of_file(file, message) }
    }

    #[must_use]
    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some((hint.into(), None, String::new()));
        self
    }

    /// Adds a hint that names a place between `before` and `after`.
    #[must_use]
    pub(crate) fn hint_at(mut self, before: impl Into<String>, at: Span, after: &str) -> Self {
        self.hint = Some((before.into(), Some(at), after.to_owned()));
        self
    }

    /// Returns whether it points at this place.
    pub(crate) fn is_at(&self, span: Span) -> bool {
        matches!(self.place, Meant::Text(at) if at == span)
    }

    /// Returns whether it says the same of the same place.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.order() == other.order() && self.message == other.message
    }

    pub(crate) fn is_error(&self) -> bool {
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
            let text = source.text.get(span.start as usize..span.end as usize).unwrap_or("");
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
                // A file that cannot be read to its end: the message may quote what seems to be a secret.
                let said = [&mut diagnostic.message].into_iter();
                for said in said.chain(&mut diagnostic.expected).chain(&mut diagnostic.hint) {
                    *said = said.replace(meant, secrets::HIDDEN);
                }
            }
        }
        diagnostic
    }
}

/// Puts problems into file order and makes them printable.
pub(crate) fn diagnostics(mut problems: Vec<Problem>, sources: &Sources) -> Vec<Diagnostic> {
    problems.sort_by_key(Problem::order);
    problems.into_iter().map(|problem| problem.into_diagnostic(sources)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn check(text: &str, meant: &str, message: &str, human: &str) {
        let mut sources = Sources::default();
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
        let mut sources = Sources::default();
        let file = sources.add(Path::new("x"), "\u{1b}[2J: 1".to_owned());
        let found = diagnostics(vec![Problem::error(Span { file, start: 0, end: 4 }, "bad")], &sources);
        assert!(!found[0].human().contains('\u{1b}'));
    }

    #[test]
    fn json_is_one_line_and_escaped() {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("a\"b"), "x\n".to_owned());
        let problem = Problem::error(Span { file, start: 0, end: 1 }, "line\nbreak").expected("y");
        let found = diagnostics(vec![problem], &sources);
        assert_eq!(
            found[0].json(),
            r#"{"severity":"error","file":"a\"b","line":1,"column":1,"width":1,"message":"line\nbreak","expected":"y"}"#
        );
    }
}
