//! A mistake that is complete in itself, and its three printers: for people, for editors, for
//! programs.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// What would have been right, if it is known.
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Characters of a source line that an excerpt shows, so that a line of a megabyte does not fill
/// the terminal.
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
pub fn json_text(text: &str) -> String {
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

/// Says what went wrong with a file, without the number that Rust adds.
pub fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}
