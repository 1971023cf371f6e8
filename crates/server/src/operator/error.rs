//! Why something is not done for an operator.

use std::fmt;
use std::io;

use authority::Refusal;
use control::api;
use diagnostic::{Diagnostic, Severity};
use jobs::ScheduleError;
use jobs::signing::SigningError;
use lists::Mistakes;
use store::StoreError;
use zones::ZoneError;

/// Why something is not done for an operator. Printed, it is one sentence for a person.
#[derive(Debug)]
pub enum OperatorError {
    /// There is nothing of this kind and name.
    NotFound {
        /// What was looked for.
        what: What,
        /// Its name.
        name: String,
    },
    /// What was given makes no sense.
    Argument(String),
    /// A configuration, or a file that it names, has mistakes; what was in use stays in use.
    Invalid(Box<Rejected>),
    /// Lines of a list have mistakes: all of them. The list stays as it was.
    Lines(Vec<Diagnostic>),
    /// It would not be a zone that can be served.
    Unfit(String),
    /// Somebody else has changed what it was made for.
    Conflict(String),
    /// Who asks may not have it done.
    Forbidden(String),
    /// It may not be changed.
    Locked(String),
    /// It cannot be kept on the disk.
    NotKept(String),
    /// It is not known: what is kept cannot be read.
    NotKnown(String),
    /// It can be done, but not at present.
    Busy(String),
    /// It does not go with how the server is configured, or how it stands.
    Refused(String),
    /// It has begun and is not done in time.
    TimedOut(String),
    /// The machine refuses it.
    Io {
        /// What was to be done.
        what: &'static str,
        /// What the machine said.
        error: io::Error,
    },
}

/// What operators name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A prefix that is banned.
    Ban,
    /// A cache.
    Cache,
    /// A certificate that is ordered.
    Certificate,
    /// A client in the record of queries.
    Client,
    /// A list that is kept beside the settings.
    List,
    /// A listener.
    Listener,
    /// A resolver.
    Resolver,
    /// A schedule.
    Schedule,
    /// A session of a user.
    Session,
    /// A setting.
    Setting,
    /// A set of names or addresses.
    Set,
    /// A token of the API.
    Token,
    /// A user of the API.
    User,
    /// A zone.
    Zone,
}

impl What {
    const fn word(self) -> &'static str {
        match self {
            Self::Ban => "ban of",
            Self::Cache => "cache",
            Self::Certificate => "certificate",
            Self::Client => "query of the client",
            Self::List => "list",
            Self::Listener => "listener",
            Self::Resolver => "resolver",
            Self::Schedule => "schedule",
            Self::Session => "session",
            Self::Set => "set",
            Self::Token => "token",
            Self::User => "user",
            Self::Setting => "setting",
            Self::Zone => "zone",
        }
    }
}

/// A configuration that did not come into use.
#[derive(Debug)]
pub struct Rejected {
    /// Everything that is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
    /// How things stay: what is in use, and zones that are not as their files say.
    pub stays: api::Reload,
}

impl OperatorError {
    /// Returns the error of a change that cannot be kept.
    pub(super) fn not_kept(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Store(StoreError::Trouble(_)) => Self::NotKept(refusal.to_string()),
            _ => Self::Refused(refusal.to_string()),
        }
    }

    /// Returns the error of lines of something with mistakes; `lines` returns the text of a line.
    pub(super) fn of_lines(of: &str, mistakes: &Mistakes, lines: &dyn Fn(u32) -> String) -> Self {
        let diagnostic = |line: u32, message: String, excerpt: String| Diagnostic {
            severity: Severity::Error,
            file: of.into(),
            line,
            column: u32::from(line > 0),
            width: u32::from(line > 0),
            excerpt,
            message,
            expected: None,
            hint: None,
        };
        let told = mistakes.told.iter().map(|(line, what)| diagnostic(*line, what.clone(), lines(*line)));
        let more = mistakes.count.saturating_sub(mistakes.told.len());
        let rest = (more > 0).then(|| diagnostic(0, format!("and {more} more"), String::new()));
        Self::Lines(told.chain(rest).collect())
    }

    pub(crate) fn not_found(what: What, name: &str) -> Self {
        Self::NotFound { what, name: name.to_owned() }
    }
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { what, name } => write!(f, "there is no {} \"{name}\"", what.word()),
            Self::Argument(why)
            | Self::Unfit(why)
            | Self::Conflict(why)
            | Self::Forbidden(why)
            | Self::Locked(why)
            | Self::NotKept(why)
            | Self::NotKnown(why)
            | Self::Busy(why)
            | Self::Refused(why)
            | Self::TimedOut(why) => f.write_str(why),
            Self::Invalid(rejected) => {
                let lines: Vec<String> = rejected.diagnostics.iter().map(Diagnostic::line).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::Lines(diagnostics) => {
                let lines: Vec<String> = diagnostics.iter().map(Diagnostic::line).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::Io { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for OperatorError {}

impl From<ZoneError> for OperatorError {
    fn from(error: ZoneError) -> Self {
        match error {
            ZoneError::NotFound(zone) => Self::NotFound { what: What::Zone, name: zone.to_string() },
            ZoneError::NotKept(error) => Self::Io { what: "it cannot be kept", error },
            ZoneError::Conflict(why) => Self::Conflict(why),
            ZoneError::Unfit(why) => Self::Unfit(why),
            ZoneError::NotAdded(_)
            | ZoneError::Refused(_)
            | ZoneError::Invalid(_)
            | ZoneError::InvalidFile(..)
            | ZoneError::Unreadable(..) => Self::Refused(error.to_string()),
        }
    }
}

impl From<SigningError> for OperatorError {
    fn from(error: SigningError) -> Self {
        match error {
            SigningError::AtWork(_) => Self::Busy(error.to_string()),
            SigningError::NotSigned(_) | SigningError::Refused(_) | SigningError::NotKept(_) => {
                Self::Refused(error.to_string())
            }
        }
    }
}

impl From<ScheduleError> for OperatorError {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::NotFound(name) => Self::NotFound { what: What::Schedule, name },
            ScheduleError::AtWork(_) => Self::Busy(error.to_string()),
            ScheduleError::NoThread(error) => Self::Io { what: "no thread for it", error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_part_keeps_its_kind_and_its_words() {
        let zone: wire::NameBuf = "example.org".parse().expect("a name");
        let missing = OperatorError::from(ZoneError::NotFound(Box::new(zone)));
        assert!(matches!(missing, OperatorError::NotFound { what: What::Zone, .. }));
        assert_eq!(missing.to_string(), ZoneError::NotFound(Box::new(zone)).to_string());
        let busy = OperatorError::from(ScheduleError::AtWork("nightly".to_owned()));
        assert!(matches!(busy, OperatorError::Busy(_)));
        assert_eq!(busy.to_string(), "\"nightly\" is still at work");
    }
}
