//! Why something is not read or kept.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::blobs::PRIVATE;

/// Octets that are written to find out whether there is room: more than the end of a page.
const PROBE_OCTETS: usize = 8192;

/// Why a change is not carried out, or something is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// What the change expects does not hold.
    Conflict(Conflict),
    /// A text is longer than may be.
    TooLarge {
        /// The name of its entry.
        name: String,
    },
    /// There is no such revision.
    NoRevision {
        /// What was asked for.
        wanted: u64,
        /// The oldest that there is.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
    /// The file cannot be used.
    Trouble(Trouble),
}

/// What a change expects and does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The store stands at another revision.
    Moved {
        /// What the change was made for.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// An entry is another than expected.
    Entry {
        /// Its name.
        name: String,
        /// The revision that made it what it is; `None` if it is not there.
        found: Option<u64>,
    },
}

/// What is the matter with a file, each with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another process has it.
    Locked(PathBuf),
    /// There is no room.
    Full(PathBuf),
    /// It can be read only.
    ReadOnly(PathBuf),
    /// It is not what was written, with what is wrong.
    Damaged(PathBuf, String),
    /// It was made by a later version.
    Newer {
        /// The file.
        file: PathBuf,
        /// Its version.
        found: i64,
        /// The latest that is known here.
        known: i64,
    },
    /// It is a database of something else.
    Foreign(PathBuf),
    /// The machine refuses it, with what it said.
    Io(PathBuf, String),
}

impl StoreError {
    /// Returns the error of a database in `file`.
    pub(crate) fn of(file: &Path, error: &rusqlite::Error) -> Self {
        let file = file.to_owned();
        let text = error.to_string();
        Self::Trouble(match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Trouble::Locked(file),
            Some(ErrorCode::DiskFull) => Trouble::Full(file),
            Some(ErrorCode::ReadOnly) => Trouble::ReadOnly(file),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Trouble::Damaged(file, text),
            // A column of another type than was written, or a table that is gone.
            None => Trouble::Damaged(file, text),
            Some(ErrorCode::Unknown) if text.contains("no such") => Trouble::Damaged(file, text),
            // Not in all of its calls does SQLite say what the system has said.
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => obstacle(&file, text),
            Some(_) => Trouble::Io(file, text),
        })
    }

    /// Returns the error of a file that the machine refuses.
    pub fn io(file: &Path, error: &io::Error) -> Self {
        let file = file.to_owned();
        Self::Trouble(match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Trouble::Full(file),
            io::ErrorKind::ReadOnlyFilesystem => Trouble::ReadOnly(file),
            _ => Trouble::Io(file, error.to_string()),
        })
    }
}

/// Returns what is in the way of a file that SQLite cannot write: whether there is no room beside
/// it, or nothing can be written there at all.
fn obstacle(file: &Path, text: String) -> Trouble {
    let probe = file.with_extension("probe.new");
    drop(fs::remove_file(&probe));
    let made = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&probe);
    let written = made.and_then(|mut made| made.write_all(&[0; PROBE_OCTETS]));
    // What is left of it takes room, and nothing else.
    drop(fs::remove_file(&probe));
    match written.map_err(|error| StoreError::io(file, &error)) {
        Err(StoreError::Trouble(trouble @ (Trouble::Full(_) | Trouble::ReadOnly(_)))) => trouble,
        _ => Trouble::Io(file.to_owned(), text),
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked(file) => write!(f, "another process has \"{}\" open", file.display()),
            Self::Full(file) => write!(f, "no room is left for \"{}\"", file.display()),
            Self::ReadOnly(file) => write!(f, "\"{}\" can be read only", file.display()),
            Self::Damaged(file, what) => write!(f, "\"{}\" is damaged: {what}", file.display()),
            Self::Newer { file, found, known } => write!(
                f,
                "\"{}\" was written by a later version of gannet (its schema is {found}, and {known} is the latest known here)",
                file.display()
            ),
            Self::Foreign(file) => write!(f, "\"{}\" is a database of another program", file.display()),
            Self::Io(file, what) => write!(f, "\"{}\": {what}", file.display()),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(Conflict::Moved { expected, found }) => {
                write!(f, "the changes stand at revision {found}, not {expected}: somebody was faster")
            }
            Self::Conflict(Conflict::Entry { name, found: Some(found) }) => {
                write!(f, "\"{name}\" was changed by revision {found}: somebody was faster")
            }
            Self::Conflict(Conflict::Entry { name, found: None }) => {
                write!(f, "\"{name}\" is not there any more: somebody was faster")
            }
            Self::TooLarge { name } => {
                write!(f, "\"{name}\" is too long: at most {} MiB", crate::TEXT_OCTETS_MAX >> 20)
            }
            Self::NoRevision { wanted, oldest, newest } => {
                write!(f, "there is no revision {wanted} (the oldest is {oldest}, the newest {newest})")
            }
            Self::Trouble(trouble) => trouble.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}
