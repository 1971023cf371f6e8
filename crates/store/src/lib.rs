//! Keeps what was changed while the server ran: entries by name, and every change by revision.
//!
//! Never says that a change is done before it is on disk; never knows what an entry means.
//!
//! An entry is a text under a name in a *space* (`settings`, the members of one set). A change
//! edits entries in one transaction and makes one revision, whose edits say what each entry was
//! before, so that any revision that is not compacted yet can be read again. Large texts are files
//! of their own, named by their SHA-256 ([`Blobs`]).
//!
//! One process has the database at a time. If it cannot be opened or written, the error says why;
//! readers of what was read before need it no more.

#![forbid(unsafe_code)]

pub mod audit;
mod backup;
mod blobs;
pub mod checkpoint;
mod database;
mod error;
mod files;
mod history;
mod notes;
pub mod restore;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use database::{Known, Standing, Writer};
use rusqlite::{Connection, OptionalExtension as _, Transaction};

pub use audit::KEY_FILE as AUDIT_KEY;
pub use backup::{Copied, CopyError, IsSecret, OTHER_KEYS};
pub use blobs::{Blobs, Hash};
pub use error::{Conflict, StoreError, Trouble};
pub use files::{Draft, Files};
pub use history::{Edit, Step, Was};

/// The database, in the folder of the store.
const FILE: &str = "changes.db";
/// Octets of a text that stands in the database itself; a longer one is a file.
const INLINE_OCTETS_MAX: usize = 64 << 10;
/// Characters of the reason of a change that the audit log has.
const WHY_AUDITED_CHARS_MAX: usize = 1_000;
/// Entries of a change that the audit log names.
const NAMES_AUDITED_MAX: usize = 200;
/// Edits from which on a transaction leaves so many pages in memory that they are given back.
const LARGE: usize = 1_000;
/// How many entries there may be for each one of a change if all are to be looked up at once.
const MANY: i64 = 4;
/// Octets of one text.
pub const TEXT_OCTETS_MAX: usize = 64 << 20;

/// Where a store stands. Positions of one store are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Raised when somebody else than before decides about changes.
    pub epoch: u64,
    /// One more with each change; 0 before the first.
    pub revision: u64,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in its space.
    pub name: String,
    /// What it says.
    pub text: String,
    /// The second since 1970 at which it ends; it stays without one.
    pub until: Option<u64>,
    /// The change that made it what it is.
    pub revision: u64,
    /// Who made that change.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Why; may be empty.
    pub why: String,
}

/// What is to become of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The space.
    pub space: String,
    /// The name in it.
    pub name: String,
    /// What it is to say; `None` takes it away.
    pub text: Option<String>,
    /// The second since 1970 at which it ends.
    pub until: Option<u64>,
    /// What must hold of it before.
    pub expected: Expected,
}

/// What must hold of an entry for a change of it to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Anything.
    Any,
    /// There is none of this name.
    Absent,
    /// It is as this revision made it.
    Revision(u64),
}

/// A change: all of it is carried out, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Who makes it.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The revision that it was made for, if that matters.
    pub expected: Option<u64>,
    /// The entries; of several with one name the last counts.
    pub puts: Vec<Put>,
    /// What it makes different, as the audit log says it.
    pub differences: Vec<audit::Difference>,
    /// How many more there are of these.
    pub differences_more: usize,
}

/// How a store stood that was whole.
#[derive(Clone, Copy, Debug)]
pub struct Whole(Standing);

/// The store.
pub struct Store {
    folder: PathBuf,
    blobs: Blobs,
    /// The first key of the audit log, if it comes from elsewhere.
    first_key: Option<audit::Octets>,
    /// The key of digests of secrets, once it was read.
    secrets_key: OnceLock<audit::Octets>,
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    database: Connection,
    standing: Standing,
    /// The key of the audit log.
    key: audit::Key,
    /// Whether a commit has failed: what is on disk is read again before anything else.
    is_doubtful: bool,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.folder.display())
    }
}

impl Store {
    /// Returns whether there is a store in a folder.
    pub fn is_in(folder: &Path) -> bool {
        // One that cannot be looked at is there, and opening it says why not.
        !matches!(folder.join(FILE).try_exists(), Ok(false))
    }

    /// Returns the file with the entries.
    pub fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Opens the store in a folder, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// Another process has it, it is of a later version, damaged, or cannot be read.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_with(folder, None)
    }

    /// Like [`Store::open`], with a first key for the audit log if it has no rows yet.
    ///
    /// # Errors
    ///
    /// As those.
    pub fn open_with(folder: &Path, first_key: Option<audit::Octets>) -> Result<Self, StoreError> {
        Self::open_again(folder, first_key, None)
    }

    /// Like [`Store::open_with`], of a store that was found whole a moment ago: if it stands where
    /// it stood then, it is not looked through again.
    ///
    /// # Errors
    ///
    /// As those.
    pub fn open_again(
        folder: &Path,
        first_key: Option<audit::Octets>,
        found_whole: Option<Whole>,
    ) -> Result<Self, StoreError> {
        let found_whole = found_whole.map(|Whole(standing)| standing);
        let (database, standing) = database::open(&folder.join(FILE), found_whole)?;
        let key = audit::Key::open(folder, &database, first_key.as_ref())?;
        Ok(Self {
            folder: folder.to_owned(),
            blobs: Blobs::new(folder.join("blobs")),
            first_key,
            secrets_key: OnceLock::new(),
            state: Mutex::new(State { database, standing, key, is_doubtful: false }),
            moved: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state, read anew from the disk if it is not certain.
    fn sound(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state();
        if state.is_doubtful {
            // The lock of the old connection goes first.
            state.database = Connection::open_in_memory().map_err(|error| self.trouble(&error))?;
            let (database, standing) = database::open(&self.folder.join(FILE), None)?;
            let key = audit::Key::open(&self.folder, &database, self.first_key.as_ref())?;
            *state = State { database, standing, key, is_doubtful: false };
            self.moved.notify_all();
        }
        Ok(state)
    }

    fn trouble(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::of(&self.folder.join(FILE), error)
    }

    /// Returns where it stands.
    ///
    /// # Errors
    ///
    /// A commit has failed, and the file cannot be read since.
    pub fn position(&self) -> Result<Position, StoreError> {
        Ok(self.sound()?.standing.position)
    }

    /// Returns how it was found, for [`Store::open_again`].
    ///
    /// # Errors
    ///
    /// As those of [`Store::position`].
    pub fn whole(&self) -> Result<Whole, StoreError> {
        Ok(Whole(self.sound()?.standing))
    }

    /// Returns the files with large texts.
    pub const fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Returns the entries of a space, by name.
    ///
    /// # Errors
    ///
    /// One of them cannot be read: then none is returned.
    pub fn entries(&self, space: &str) -> Result<Vec<Entry>, StoreError> {
        let state = self.sound()?;
        let mut query = state
            .database
            .prepare_cached(
                "SELECT name, text, blob, until, entries.revision, sum, by, at, why
                 FROM entries LEFT JOIN changes ON changes.revision = entries.revision
                 WHERE space = ?1 ORDER BY name",
            )
            .map_err(|error| self.trouble(&error))?;
        let rows = query.query_map([space], |row| {
            let held = Held { text: row.get(1)?, blob: row.get(2)?, until: row.get(3)? };
            let entry = Entry {
                name: row.get(0)?,
                text: String::new(),
                until: held.until.map(|until| until as u64),
                revision: row.get::<_, i64>(4)? as u64,
                by: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
                at: row.get::<_, Option<i64>>(7)?.unwrap_or(0) as u64,
                why: row.get::<_, Option<String>>(8)?.unwrap_or_default(),
            };
            Ok((entry, held, row.get::<_, i64>(5)?))
        });
        let rows = rows.map_err(|error| self.trouble(&error))?;
        let mut entries = Vec::new();
        for row in rows {
            let (mut entry, held, sum) = row.map_err(|error| self.trouble(&error))?;
            if sum != held.sum(space, &entry.name) {
                let what = format!("the entry \"{}\" in \"{space}\" is not as it was written", entry.name);
                return Err(StoreError::Trouble(Trouble::Damaged(self.folder.join(FILE), what)));
            }
            entry.text = self.read(held)?.unwrap_or_default();
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Returns the spaces that begin with `prefix`, in order.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn spaces(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let state = self.sound()?;
        let look = || -> rusqlite::Result<Vec<String>> {
            let mut query =
                state.database.prepare_cached("SELECT DISTINCT space FROM entries ORDER BY space")?;
            let all = query.query_map([], |row| row.get::<_, String>(0))?;
            all.filter(|space| space.as_ref().map_or(true, |space| space.starts_with(prefix))).collect()
        };
        look().map_err(|error| self.trouble(&error))
    }

    /// Carries out a change; it is on disk when this returns. Without an edit that changes
    /// something there is no new revision.
    ///
    /// # Errors
    ///
    /// What the change expects does not hold, or it cannot be written; then nothing has changed.
    pub fn commit(&self, change: &Change) -> Result<Position, StoreError> {
        let positions = self.commit_all(std::slice::from_ref(change))?;
        positions.last().copied().map_or_else(|| self.position(), Ok)
    }

    /// Carries out changes in one transaction, each as a revision of its own; returns where the
    /// store stands after each.
    ///
    /// # Errors
    ///
    /// As with one; then none of them is carried out.
    pub fn commit_all(&self, changes: &[Change]) -> Result<Vec<Position>, StoreError> {
        for put in changes.iter().flat_map(|change| &change.puts) {
            if put.text.as_ref().is_some_and(|text| text.len() > TEXT_OCTETS_MAX) {
                return Err(StoreError::TooLarge { name: put.name.clone() });
            }
        }
        let mut state = self.sound()?;
        let State { database, standing, key, .. } = &mut *state;
        let mut positions = Vec::with_capacity(changes.len());
        let written = (|| {
            let transaction = database.transaction().map_err(|error| self.trouble(&error))?;
            let mut last = *standing;
            let mut events = Vec::new();
            for change in changes {
                let found = last.position.revision;
                if let Some(expected) = change.expected.filter(|expected| *expected != found) {
                    return Err(StoreError::Conflict(Conflict::Moved { expected, found }));
                }
                let mut next = last;
                next.position.revision += 1;
                if self.edit(&transaction, change, &mut next)? > 0 {
                    database::note(&transaction, change, &next).map_err(|error| self.trouble(&error))?;
                    events.push(audited(change, next.position.revision));
                    last = next;
                }
                positions.push(last.position);
            }
            if last == *standing {
                return Ok((last, Ok(key.clone())));
            }
            let next_key = audit::append(&transaction, key, &events).map_err(|error| self.trouble(&error))?;
            Ok((last, transaction.commit().map(|()| next_key)))
        })();
        match written {
            Ok((last, Ok(next_key))) => {
                *standing = last;
                self.move_key(key, next_key);
                if changes.iter().map(|change| change.puts.len()).sum::<usize>() > LARGE {
                    // Its pages would stay in memory until others take their place. That they do
                    // not is no reason to say that anything has failed.
                    drop(database.execute_batch("PRAGMA shrink_memory"));
                }
                drop(state);
                self.moved.notify_all();
                Ok(positions)
            }
            Ok((_, Err(error))) => {
                // Whether it is on disk is known when it was read again.
                state.is_doubtful = true;
                Err(self.trouble(&error))
            }
            Err(error) => Err(error),
        }
    }

    /// Edits the entries of a change, and what the store holds with it; returns how many were
    /// changed.
    fn edit(
        &self,
        transaction: &Transaction<'_>,
        change: &Change,
        next: &mut Standing,
    ) -> Result<usize, StoreError> {
        let revision = next.position.revision;
        let trouble = |error: rusqlite::Error| self.trouble(&error);
        let mut writer = Writer::new(transaction).map_err(trouble)?;
        // Of many, all are looked up at once.
        let mut all: Option<(&str, HashMap<String, Known>)> = None;
        if let Some(put) = change.puts.first().filter(|_| change.puts.len() as i64 > next.entries / MANY) {
            all = Some((&put.space, writer.all(&put.space).map_err(trouble)?));
        }
        let mut number = 0;
        let last: HashMap<(&str, &str), usize> =
            change.puts.iter().enumerate().map(|(at, put)| ((&*put.space, &*put.name), at)).collect();
        for (at, put) in change.puts.iter().enumerate() {
            let is_last = last.get(&(&*put.space, &*put.name)) == Some(&at);
            let known = match &mut all {
                // What is written below is not asked for again: of one name the last counts.
                Some((space, all)) if *space == put.space && is_last => all.remove(&put.name),
                Some((space, all)) if *space == put.space => all.get(&put.name).cloned(),
                _ => writer.find(&put.space, &put.name).map_err(trouble)?,
            };
            let (before, known_revision) =
                known.map_or((Held::default(), None), |(held, at)| (held, Some(at)));
            let is_expected = match put.expected {
                Expected::Any => true,
                Expected::Absent => known_revision.is_none(),
                Expected::Revision(expected) => known_revision == Some(expected),
            };
            if !is_expected {
                let conflict = Conflict::Entry { name: put.name.clone(), found: known_revision };
                return Err(StoreError::Conflict(conflict));
            }
            if !is_last {
                continue;
            }
            let after = match &put.text {
                Some(text) => self.hold(text, put.until)?,
                None => Held::default(),
            };
            if after == before {
                continue;
            }
            let [was, is] = [&before, &after].map(|held| match held.is_nothing() {
                true => 0,
                false => held.sum(&put.space, &put.name),
            });
            let name = (put.space.as_str(), put.name.as_str());
            writer.put(name, &after, (revision, is)).map_err(trouble)?;
            writer.edit((revision, number), name, [&before, &after]).map_err(trouble)?;
            number += 1;
            next.entries += i64::from(!after.is_nothing()) - i64::from(!before.is_nothing());
            next.total += is - was;
        }
        Ok(number as usize)
    }

    /// Puts a text where it belongs by its length.
    fn hold(&self, text: &str, until: Option<u64>) -> Result<Held, StoreError> {
        let until = until.map(|until| until.min(i64::MAX as u64) as i64);
        if text.len() <= INLINE_OCTETS_MAX {
            return Ok(Held { text: Some(text.to_owned()), blob: None, until });
        }
        let hash = self.blobs.put(text.as_bytes())?;
        Ok(Held { text: None, blob: Some(hash.to_string()), until })
    }

    /// Returns the text that is held; `None` if there is no entry.
    fn read(&self, held: Held) -> Result<Option<String>, StoreError> {
        let Some(blob) = held.blob else { return Ok(held.text) };
        let octets = self.blobs.get(&blob)?;
        String::from_utf8(octets).map(Some).map_err(|_| {
            let what = format!("the file of the text {blob} is no text");
            StoreError::Trouble(Trouble::Damaged(self.folder.join(FILE), what))
        })
    }

    /// Returns the first moment, in seconds since 1970, at which an entry of the space ends.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn next_end(&self, space: &str) -> Result<Option<u64>, StoreError> {
        let state = self.sound()?;
        let found = state
            .database
            .query_row("SELECT min(until) FROM entries WHERE space = ?1", [space], |row| {
                row.get::<_, Option<i64>>(0)
            })
            .optional();
        Ok(found.map_err(|error| self.trouble(&error))?.flatten().map(|until| until as u64))
    }

    /// Waits until there is a revision beyond this one, at most for `patience`; returns where the
    /// store stands then.
    pub fn wait_beyond(&self, revision: u64, patience: Duration) -> Position {
        let state = self.state();
        let waits = |state: &mut State| state.standing.position.revision <= revision;
        let waited = self.moved.wait_timeout_while(state, patience, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.standing.position
    }

    /// Begins a new epoch: somebody else than before decides about changes.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn raise_epoch(&self) -> Result<Position, StoreError> {
        let mut state = self.sound()?;
        let mut next = state.standing;
        next.position.epoch += 1;
        self.stand(&mut state, next, |_| Ok(()))?;
        Ok(next.position)
    }
}

impl Store {
    /// Has the store stand elsewhere, with what `also` does in the same transaction.
    fn stand(
        &self,
        state: &mut State,
        next: Standing,
        also: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let write = || {
            let transaction = state.database.transaction()?;
            also(&transaction)?;
            next.write(&transaction)?;
            transaction.commit()
        };
        if let Err(error) = write() {
            state.is_doubtful = true;
            return Err(self.trouble(&error));
        }
        state.standing = next;
        Ok(())
    }
}

/// Returns what the audit log says of a change.
fn audited(change: &Change, revision: u64) -> audit::Event {
    // Neighbours of one name are one.
    let name = |put: &Put| format!("{} {}", put.space, put.name);
    let repeats = |(at, put): &(usize, &Put)| {
        let before = at.checked_sub(1).and_then(|before| change.puts.get(before));
        before.is_some_and(|before| (&before.space, &before.name) == (&put.space, &put.name))
    };
    let mut named = change.puts.iter().enumerate().filter(|put| !repeats(put)).map(|(_, put)| put);
    let mut names: Vec<String> = named.by_ref().take(NAMES_AUDITED_MAX).map(name).collect();
    let more = named.count();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    audit::Event {
        at: change.at,
        by: change.by.clone(),
        what: "change".to_owned(),
        on: match change.why.as_str() {
            "" => names.join(", "),
            why => {
                let why: String = why.chars().take(WHY_AUDITED_CHARS_MAX).collect();
                format!("{}: {why}", names.join(", "))
            }
        },
        outcome: "done".to_owned(),
        revision: Some(revision),
        differences: change.differences.iter().take(audit::DIFFERENCES_MAX).cloned().collect(),
        differences_more: change.differences.len().saturating_sub(audit::DIFFERENCES_MAX)
            + change.differences_more,
        source: None,
    }
}

/// What is held of an entry; nothing of one that is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    text: Option<String>,
    /// The SHA-256 of a text that is a file.
    blob: Option<String>,
    until: Option<i64>,
}

impl Held {
    const fn is_nothing(&self) -> bool {
        self.text.is_none() && self.blob.is_none()
    }

    /// Returns a checksum: SQLite does not notice when octets of a text are others.
    fn sum(&self, space: &str, name: &str) -> i64 {
        let mut hasher = crc32fast::Hasher::new();
        for part in [space, name, self.text.as_deref().unwrap_or(""), self.blob.as_deref().unwrap_or("")] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update(&self.until.unwrap_or(-1).to_le_bytes());
        i64::from(hasher.finalize())
    }
}

#[cfg(test)]
mod tests;
