//! Why something cannot be done with a zone.

use std::fmt;
use std::io;
use std::path::PathBuf;

use diagnostic::Diagnostic;
use wire::NameBuf;

/// Why something cannot be done with a zone.
#[derive(Debug)]
pub enum ZoneError {
    /// There is no such zone.
    NotFound(Box<NameBuf>),
    /// None of this name was added while the server ran.
    NotAdded(Box<NameBuf>),
    /// It does not go with what the zone is, or how it stands now, as this sentence says.
    Refused(String),
    /// It is not as whoever wants to change it expects, as this sentence says.
    Conflict(String),
    /// No zone may have such records, as this says.
    Unfit(String),
    /// The zone's settings have these mistakes.
    Invalid(Vec<Diagnostic>),
    /// A file with the zone has these mistakes.
    InvalidFile(PathBuf, Vec<Diagnostic>),
    /// A file with the zone cannot be read, as this says.
    Unreadable(PathBuf, String),
    /// It would not outlive a restart, and so was not done.
    NotKept(io::Error),
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(zone) => write!(f, "there is no zone \"{zone}\""),
            Self::NotAdded(zone) => write!(f, "there is no zone \"{zone}\" that was added"),
            Self::Refused(why) | Self::Conflict(why) | Self::Unfit(why) => f.write_str(why),
            Self::Invalid(found) => f.write_str(&explain(found)),
            Self::InvalidFile(file, found) => {
                let lines: Vec<String> = found.iter().map(Diagnostic::line).collect();
                write!(f, "\"{}\" has mistakes:\n{}", file.display(), lines.join("\n"))
            }
            Self::Unreadable(file, why) => write!(f, "cannot read \"{}\": {why}", file.display()),
            Self::NotKept(error) => write!(f, "it cannot be kept: {error}"),
        }
    }
}

impl std::error::Error for ZoneError {}

/// Returns what is wrong with the settings of a zone, in one line.
pub(crate) fn explain(found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for Diagnostic { message, expected, hint, .. } in found {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(message);
        for (word, more) in [(" (expected ", expected), (" (", hint)] {
            if let Some(more) = more {
                text.push_str(word);
                text.push_str(more);
                text.push(')');
            }
        }
    }
    text
}
