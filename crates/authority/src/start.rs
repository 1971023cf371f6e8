//! At the start: the files together with the changes that were made of them.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use diagnostic::{Diagnostic, Severity};
use environment::System;
use settings::overlay::Layer;
use settings::{Loaded, Origin};
use store::{Store, StoreError, Trouble};

use crate::entries::{Entries, layers};
use crate::last_good::LastGood;
use crate::{Authority, FOLDER, kept, last_good};

/// What a server begins with.
#[derive(Debug)]
pub struct Begun {
    /// What it is to run on.
    pub loaded: Loaded,
    /// Who decides about changes from now on.
    pub authority: Authority,
    /// Why that is not what the files and the changes say now.
    pub wrong: Option<WrongPair>,
}

/// Files and changes that do not go together, although the files are right alone.
#[derive(Debug)]
pub struct WrongPair {
    /// What the files say alone.
    pub files: Loaded,
    /// All mistakes.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a configuration and the changes of it. If these do not go together, what ran last does.
///
/// # Errors
///
/// All mistakes of the files, or of both together if nothing is known that ran last.
pub fn begin(origin: &Origin) -> Result<Begun, Vec<Diagnostic>> {
    let files = origin.load()?;
    if let Origin::Unbound(_) = origin {
        return Ok(Begun { loaded: files, authority: Authority::of_nobody(), wrong: None });
    }
    let state = &files.settings.startup.state_directory;
    let lock = take_up(state)?;
    let folder = state.join(FOLDER);
    let key = files.settings.startup.audit_key.as_ref();
    let key: Option<store::audit::Octets> = key.and_then(|it| it.key.reveal().try_into().ok());
    let (entries, revision, trouble, found_whole) = known(&folder, key);
    let authority = Authority::new(Some(folder), entries, revision, key);
    if let Some(lock) = lock {
        authority.lock.get_or_init(|| lock);
    }
    {
        let mut state = authority.state();
        (state.trouble, state.found_whole) = (trouble, found_whole);
    }
    let layers = authority.layers();
    if layers.is_empty() {
        return Ok(Begun { loaded: files, authority, wrong: None });
    }
    match files.with_changes(&layers, &System) {
        Ok(loaded) => Ok(Begun { loaded, authority, wrong: None }),
        Err(diagnostics) => match authority.last_good() {
            Some(loaded) => {
                let wrong = Some(WrongPair { files, diagnostics });
                Ok(Begun { loaded, authority, wrong })
            }
            None => Err(without_last_good(diagnostics, &authority)),
        },
    }
}

/// Takes up a backup that was laid down. Returns what says, for as long as it is there, that the
/// state directory is in use; `None` if there is none, or nothing can be locked there.
fn take_up(state: &Path) -> Result<Option<File>, Vec<Diagnostic>> {
    let wrong = |why: String, hint: &str| vec![wrong_backup(state, why, hint)];
    let lock = File::open(state).ok().map(|folder| (folder.try_lock(), folder));
    let lock = match lock {
        Some((Ok(()), folder)) => Some(folder),
        // Its files are not to move away under it.
        Some((Err(TryLockError::WouldBlock), _)) if store::restore::ready(state).exists() => {
            return Err(wrong(
                "there is a backup to restore, and another server uses the state directory".to_owned(),
                "end that server first, or restart it: it takes up the backup then",
            ));
        }
        _ => None,
    };
    // A part of it may be in its place when that fails: neither is what anybody wants.
    store::restore::take_up(state).map_err(|error| {
        wrong(
            format!("the backup to restore cannot be put in its place: {error}"),
            "make the state directory writable, and start again: it goes on where it was",
        )
    })?;
    Ok(lock)
}

/// Returns that a backup cannot be taken up.
fn wrong_backup(state: &Path, message: String, hint: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        file: store::restore::ready(state),
        line: 0,
        column: 0,
        width: 0,
        excerpt: String::new(),
        message,
        expected: None,
        hint: Some(hint.to_owned()),
    }
}

/// Returns mistakes of files and changes together, and how to start without the changes.
fn without_last_good(mut diagnostics: Vec<Diagnostic>, authority: &Authority) -> Vec<Diagnostic> {
    let folder = authority.folder.as_deref().unwrap_or(Path::new(FOLDER));
    diagnostics.push(Diagnostic {
        severity: Severity::Warning,
        file: folder.to_owned(),
        line: 0,
        column: 0,
        width: 0,
        excerpt: String::new(),
        message: "the file and the changes of it do not go together".to_owned(),
        expected: None,
        hint: Some("mend the file, or move this folder away to start without the changes".to_owned()),
    });
    diagnostics
}

/// Returns the changes that there are, the revision, and why the store cannot be used: then they
/// are those that ran last.
fn known(
    folder: &Path,
    key: Option<store::audit::Octets>,
) -> (Entries, u64, Option<StoreError>, Option<store::Whole>) {
    let noted = last_good::read(folder);
    let read = match Store::is_in(folder) {
        true => Store::open_with(folder, key).and_then(|store| {
            let (entries, revision) = kept::read(&store)?;
            Ok((entries, revision, Some(store.whole()?)))
        }),
        false => Ok((Entries::new(), 0, None)),
    };
    // What ran last, if it can be read.
    let noted_entries = |noted: &LastGood| Some((noted.entries()?, noted.revision));
    match (read, noted) {
        (Ok((entries, revision, _)), Some(noted)) if revision < noted.revision => {
            let in_use = noted.revision;
            let what =
                format!("it has lost changes: it stands at revision {revision}, and {in_use} ran last");
            let error = StoreError::Trouble(Trouble::Damaged(Store::file(folder), what));
            match noted_entries(&noted) {
                Some((entries, revision)) => (entries, revision, Some(error), None),
                None => (entries, revision, None, None),
            }
        }
        (Ok((entries, revision, whole)), _) => (entries, revision, None, whole),
        (Err(error), noted) => {
            let (entries, revision) = noted.as_ref().and_then(noted_entries).unwrap_or_default();
            (entries, revision, Some(error), None)
        }
    }
}

/// Takes a state directory that no server uses, for as long as what is returned is there; `None` if
/// nothing can be locked there.
///
/// # Errors
///
/// It is not there, or a server uses it ([`io::ErrorKind::WouldBlock`]).
pub fn hold(state: &Path) -> io::Result<Option<File>> {
    let folder = File::open(state)?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Returns the changes that a start finds in a folder with a copy of the store, and with this first
/// key of the audit log.
///
/// # Errors
///
/// As those of [`Authority::layers_in_copy`].
pub fn layers_in_copy(folder: &Path, key: Option<store::audit::Octets>) -> Result<Vec<Layer>, StoreError> {
    let (entries, _, trouble, _) = known(folder, key);
    trouble.map_or_else(|| Ok(layers(&entries)), Err)
}

impl Authority {
    /// Returns the changes that a start finds in a folder with a copy of the store.
    ///
    /// # Errors
    ///
    /// They cannot be read, or are of an earlier moment than what lies beside them: it would stay
    /// as it is for ever.
    pub fn layers_in_copy(&self, folder: &Path) -> Result<Vec<Layer>, StoreError> {
        layers_in_copy(folder, self.state().audit_key)
    }

    /// Returns the files and changes that ran last, if they are still right.
    pub fn last_good(&self) -> Option<Loaded> {
        last_good::read(self.folder.as_deref()?)?.load()
    }

    /// Returns the folder with everything about changes.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}

impl WrongPair {
    /// Returns the files with changes over them.
    ///
    /// # Errors
    ///
    /// All mistakes.
    pub fn with(&self, authority: &Authority) -> Result<Loaded, Vec<Diagnostic>> {
        self.files.with_changes(&layers(&authority.state().in_use), &System)
    }
}
