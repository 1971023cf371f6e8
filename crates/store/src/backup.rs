//! Copies of the store for backups: as it is between two changes, while it is in use.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::{Connection, params};

use crate::audit::{self, Fault};
use crate::database::{self, Standing};
use crate::{FILE, Held, Position, Store, StoreError};

/// The files of the audit log's keys that stay as they are, in the folder of a store.
pub const OTHER_KEYS: [&str; 3] = ["audit-first.key", "audit-secrets.key", "audit-sign.key"];

/// Says whether the text of an entry, by space and name, holds a secret.
pub type IsSecret<'s> = &'s dyn Fn(&str, &str, &str) -> bool;

/// What a copy of a store has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The revision that it shows.
    pub revision: u64,
    /// Entries that are left out because they are or were secrets: the space and the name.
    pub left_out: Vec<(String, String)>,
    /// The hashes of large texts that it needs.
    pub blobs: Vec<String>,
}

impl Store {
    /// Writes a copy of the database to a file that is not there yet. With `is_secret`, it has no
    /// notes, no entry with a secret and no history of such an entry; nothing of them is left in
    /// the file.
    ///
    /// Changes wait until the copy is made.
    ///
    /// # Errors
    ///
    /// It cannot be read or written; what was written is to be removed.
    pub fn copy(&self, file: &Path, is_secret: Option<IsSecret<'_>>) -> Result<Copied, StoreError> {
        let trouble = |error: rusqlite::Error| StoreError::of(file, &error);
        let io = |error: std::io::Error| StoreError::io(file, &error);
        // SQLite takes a file that is empty for none.
        drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(io)?);
        {
            let state = self.sound()?;
            state.database.execute("VACUUM INTO ?1", [file.to_string_lossy()]).map_err(trouble)?;
        }
        let mut copy = Connection::open(file).map_err(trouble)?;
        copy.execute_batch(
            "PRAGMA journal_mode = DELETE; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY",
        )
        .map_err(trouble)?;
        let left_out = match is_secret {
            Some(is_secret) => {
                let secrets = self.secrets(&copy, is_secret)?;
                strip(&mut copy, &secrets).map_err(trouble)?;
                copy.execute_batch("VACUUM").map_err(trouble)?;
                secrets.into_iter().collect()
            }
            None => Vec::new(),
        };
        let revision = Standing::read(&copy).map_err(trouble)?.map_or(0, |it| it.position.revision);
        let mut blobs = BTreeSet::new();
        each_text(&copy, |_, _, held| {
            blobs.extend(held.blob);
            Ok(())
        })
        .map_err(|error| error.of(file))?;
        Ok(Copied { revision, left_out, blobs: blobs.into_iter().collect() })
    }

    /// Returns the entries that are secrets, or were.
    fn secrets(
        &self,
        copy: &Connection,
        is_secret: IsSecret<'_>,
    ) -> Result<BTreeSet<(String, String)>, StoreError> {
        let mut found = BTreeSet::new();
        let looked = each_text(copy, |space, name, held| {
            if self.read(held)?.is_some_and(|text| is_secret(&space, &name, &text)) {
                found.insert((space, name));
            }
            Ok(())
        });
        looked.map_err(|error| error.of(&self.folder.join(FILE)))?;
        Ok(found)
    }

    /// Checks a copy of a store in a folder: its entries, that its large texts are there, and that
    /// no row of its audit log was changed or removed. Returns where it stands.
    ///
    /// # Errors
    ///
    /// It cannot be read, is of a later version, or is not as it was written.
    pub fn check_copy(folder: &Path) -> Result<Position, CopyError> {
        let file = folder.join(FILE);
        let trouble = |error: rusqlite::Error| CopyError::Store(StoreError::of(&file, &error));
        let (database, standing) = database::open(&file, None).map_err(CopyError::Store)?;
        let blobs = crate::Blobs::new(folder.join("blobs"));
        let looked = each_text(&database, |_, _, held| match &held.blob {
            Some(hash) => blobs.get(hash).map(drop),
            None => Ok(()),
        });
        looked.map_err(|error| CopyError::Store(error.of(&file)))?;
        let mut query =
            database.prepare("SELECT number, text, hash, mac FROM audit ORDER BY number").map_err(trouble)?;
        let rows = query
            .query_map([], |row| {
                let number = row.get::<_, i64>(0)? as u64;
                Ok(audit::Row { number, text: row.get(1)?, hash: row.get(2)?, mac: row.get(3)? })
            })
            .map_err(trouble)?;
        // One after the other: there may be millions.
        let mut unread = None;
        let rows = rows.map_while(|row| row.map_err(|error| unread = Some(error)).ok());
        let verified = audit::verify(rows, None, &[]);
        if let Some(error) = unread {
            return Err(trouble(error));
        }
        verified.map_err(CopyError::Audit)?;
        Ok(standing.position)
    }
}

/// Why a copy is of no use.
#[derive(Debug)]
pub enum CopyError {
    /// The store.
    Store(StoreError),
    /// A row of the audit log.
    Audit(Fault),
}

impl std::fmt::Display for CopyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Audit(fault) => write!(f, "row {} of the audit log is not as it was written", fault.number),
        }
    }
}

/// Why not all texts were looked at.
enum Unread {
    Database(rusqlite::Error),
    Text(StoreError),
}

impl From<rusqlite::Error> for Unread {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl Unread {
    /// Returns the error of a database in `file`.
    fn of(self, file: &Path) -> StoreError {
        match self {
            Self::Database(error) => StoreError::of(file, &error),
            Self::Text(error) => error,
        }
    }
}

/// Looks at every text that entries have and had, with the space and the name: at one after the
/// other, for there may be more than the memory holds.
fn each_text(
    database: &Connection,
    mut look: impl FnMut(String, String, Held) -> Result<(), StoreError>,
) -> Result<(), Unread> {
    let mut query = database.prepare(
        "SELECT space, name, text, blob FROM entries
         UNION ALL SELECT space, name, before_text, before_blob FROM edits
         UNION ALL SELECT space, name, after_text, after_blob FROM edits",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let held = Held { text: row.get(2)?, blob: row.get(3)?, until: None };
        look(row.get(0)?, row.get(1)?, held).map_err(Unread::Text)?;
    }
    Ok(())
}

/// Takes entries and their history out, and all notes.
fn strip(database: &mut Connection, secrets: &BTreeSet<(String, String)>) -> rusqlite::Result<()> {
    let standing = Standing::read(database)?;
    let transaction = database.transaction()?;
    transaction.execute("DELETE FROM notes", [])?;
    for (space, name) in secrets {
        transaction.execute("DELETE FROM entries WHERE space = ?1 AND name = ?2", params![space, name])?;
        transaction.execute("DELETE FROM edits WHERE space = ?1 AND name = ?2", params![space, name])?;
    }
    let query = "SELECT count(*), coalesce(sum(sum), 0) FROM entries";
    let (entries, total) = transaction.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let Some(standing) = standing {
        Standing { entries, total, ..standing }.write(&transaction)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Expected, Put};

    fn put(store: &Store, space: &str, name: &str, text: &str) {
        let put = Put {
            space: space.to_owned(),
            name: name.to_owned(),
            text: Some(text.to_owned()),
            until: None,
            expected: Expected::Any,
        };
        let (by, why) = ("anna".to_owned(), String::new());
        let (differences, differences_more) = (Vec::new(), 0);
        let change =
            Change { by, why, at: 1, expected: None, puts: vec![put], differences, differences_more };
        store.commit(&change).expect("kept");
    }

    #[test]
    fn a_copy_is_a_store_and_has_no_secret_unless_it_is_to_have_them() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(&folder.path().join("of")).expect("a store");
        let long = "x".repeat(100 << 10);
        put(&store, "settings", "local.a", "192.0.2.1");
        put(&store, "settings", "cookies.secret", "hunter2-secret");
        // What was a secret once is one in the history.
        put(&store, "settings", "keys.a", "hunter3-secret");
        put(&store, "settings", "keys.a", "none");
        put(&store, "lists", "long", &long);
        store.note(("credentials", "anna"), "hunter4-secret", (1, u64::MAX)).expect("noted");
        let is_secret = |_: &str, _: &str, text: &str| text.contains("hunter");
        for (with_secrets, revision) in [(true, 5), (false, 5)] {
            let to = folder.path().join(format!("copy-{with_secrets}"));
            std::fs::create_dir(&to).expect("a folder");
            let copied = store.copy(&to.join(FILE), (!with_secrets).then_some(&is_secret)).expect("a copy");
            assert_eq!((copied.revision, copied.blobs.len()), (revision, 1), "{copied:?}");
            assert_eq!(copied.left_out.len(), if with_secrets { 0 } else { 2 });
            let octets = std::fs::read(to.join(FILE)).expect("a file");
            let has = |text: &str| octets.windows(text.len()).any(|part| part == text.as_bytes());
            for secret in ["hunter2", "hunter3", "hunter4"] {
                assert_eq!(has(secret), with_secrets, "{secret}");
            }
            assert!(has("192.0.2.1"));
            Store::check_copy(&to).expect_err("a large text is missing");
            std::fs::create_dir(to.join("blobs")).expect("a folder");
            for blob in &copied.blobs {
                let from = folder.path().join("of/blobs").join(blob);
                std::fs::copy(from, to.join("blobs").join(blob)).expect("copied");
            }
            assert_eq!(Store::check_copy(&to).expect("it is whole").revision, 5);
            let store = Store::open(&to).expect("a store");
            let names: Vec<String> =
                store.entries("settings").expect("readable").into_iter().map(|entry| entry.name).collect();
            let expected: &[&str] =
                if with_secrets { &["cookies.secret", "keys.a", "local.a"] } else { &["local.a"] };
            assert_eq!(names, expected);
            assert_eq!(store.entries("lists").expect("readable")[0].text, long);
        }
        put(&store, "settings", "local.b", "192.0.2.2");
        assert_eq!(store.position().expect("readable").revision, 6, "it goes on");
    }

    #[test]
    fn a_copy_with_a_changed_row_of_the_audit_log_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(&folder.path().join("of")).expect("a store");
        put(&store, "settings", "local.a", "192.0.2.1");
        let to = folder.path().join("to");
        std::fs::create_dir(&to).expect("a folder");
        store.copy(&to.join(FILE), None).expect("a copy");
        let database = Connection::open(to.join(FILE)).expect("a database");
        database.execute("UPDATE audit SET text = replace(text, 'anna', 'otto')", []).expect("written");
        drop(database);
        assert!(matches!(Store::check_copy(&to), Err(CopyError::Audit(_))));
    }
}
