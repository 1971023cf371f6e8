//! The log: where it goes and how it looks.

use std::path::PathBuf;

use schema::{LogFormat, LogTime};

/// Where the log goes and how it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How lines look.
    pub format: LogFormat,
    /// Where they go.
    pub place: LogPlace,
    /// The name of the program in them.
    pub identity: String,
    /// How they say when something was, in the form of Unbound.
    pub time: LogTime,
    /// Whether lines about queries say so in the place of their level, in that form.
    pub tags_queries: bool,
}

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// Standard error.
    Stderr,
    /// The system's log.
    Syslog,
    /// A file.
    File(PathBuf),
}

impl LogPlace {
    /// Returns it as it is written.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Stderr => "stderr".to_owned(),
            Self::Syslog => "syslog".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}
