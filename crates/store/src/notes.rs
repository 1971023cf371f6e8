//! What is noted for a time, beside changes: it is part of no revision, and cannot be undone.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension as _, params};

use crate::{INLINE_OCTETS_MAX, Store, StoreError};

/// Notes of one space; those that end first make way.
const NOTES_MAX: i64 = 10_000;

impl Store {
    /// Notes a text under a name until `until`, in seconds since 1970; it is on disk when this
    /// returns. What has ended at `now` is forgotten.
    ///
    /// # Errors
    ///
    /// It is too long, or cannot be written; then nothing is noted.
    pub fn note(
        &self,
        (space, name): (&str, &str),
        text: &str,
        (now, until): (u64, u64),
    ) -> Result<(), StoreError> {
        if text.len() > INLINE_OCTETS_MAX {
            return Err(StoreError::TooLarge { name: name.to_owned() });
        }
        let mut state = self.sound()?;
        let seconds = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        let mut write = || {
            let transaction = state.database.transaction()?;
            transaction.execute("DELETE FROM notes WHERE until <= ?1", [seconds(now)])?;
            transaction.execute(
                "INSERT OR REPLACE INTO notes (space, name, text, until) VALUES (?1, ?2, ?3, ?4)",
                params![space, name, text, seconds(until)],
            )?;
            transaction.execute(
                "DELETE FROM notes WHERE space = ?1 AND name IN
                   (SELECT name FROM notes WHERE space = ?1 ORDER BY until DESC, name LIMIT -1 OFFSET ?2)",
                params![space, NOTES_MAX],
            )?;
            transaction.commit()
        };
        if let Err(error) = write() {
            state.is_doubtful = true;
            return Err(self.trouble(&error));
        }
        Ok(())
    }

    /// Returns what is noted under a name, unless it has ended at `now`.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn noted(&self, (space, name): (&str, &str), now: u64) -> Result<Option<String>, StoreError> {
        let state = self.sound()?;
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let found = state
            .database
            .query_row(
                "SELECT text FROM notes WHERE space = ?1 AND name = ?2 AND until > ?3",
                params![space, name, now],
                |row| row.get(0),
            )
            .optional();
        found.map_err(|error| self.trouble(&error))
    }

    /// Returns what is noted in a space and has not ended at `now`, by name.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn notes(&self, space: &str, now: u64) -> Result<BTreeMap<String, String>, StoreError> {
        let state = self.sound()?;
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let look = || -> rusqlite::Result<BTreeMap<String, String>> {
            let mut query = state
                .database
                .prepare_cached("SELECT name, text FROM notes WHERE space = ?1 AND until > ?2")?;
            query.query_map(params![space, now], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        look().map_err(|error| self.trouble(&error))
    }

    /// Forgets notes of a space; they are gone from the disk when this returns.
    ///
    /// # Errors
    ///
    /// It cannot be written; then all of them are still there.
    pub fn forget_notes<'n>(
        &self,
        space: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), StoreError> {
        let mut state = self.sound()?;
        let write = || {
            let transaction = state.database.transaction()?;
            for name in names {
                transaction.execute("DELETE FROM notes WHERE space = ?1 AND name = ?2", [space, name])?;
            }
            transaction.commit()
        };
        if let Err(error) = write() {
            state.is_doubtful = true;
            return Err(self.trouble(&error));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_lasts_until_its_end_and_makes_no_revision() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(folder.path()).expect("a store");
        let noted = |store: &Store, name: &str, now| store.noted(("answers", name), now).expect("readable");
        store.note(("answers", "a"), "1", (10, 20)).expect("written");
        store.note(("answers", "a"), "2", (10, 20)).expect("written");
        store.note(("others", "a"), "3", (10, 30)).expect("written");
        assert_eq!(noted(&store, "a", 19).as_deref(), Some("2"));
        assert_eq!((noted(&store, "a", 20), noted(&store, "b", 10)), (None, None));
        assert_eq!(store.position().expect("readable").revision, 0);
        drop(store);
        let store = Store::open(folder.path()).expect("a store");
        assert_eq!(noted(&store, "a", 19).as_deref(), Some("2"), "it is on disk");
        store.note(("answers", "b"), "4", (20, 40)).expect("written");
        assert_eq!(noted(&store, "a", 0), None, "what has ended is forgotten");
        store.note(("answers", "c"), "5", (20, 50)).expect("written");
        let names = |now| store.notes("answers", now).expect("readable").into_keys().collect::<Vec<_>>();
        assert_eq!((names(20), names(45)), (vec!["b".to_owned(), "c".to_owned()], vec!["c".to_owned()]));
        store.forget_notes("answers", ["b", "none"]).expect("written");
        assert_eq!(names(20), ["c"]);
        assert_eq!(store.noted(("others", "a"), 10).expect("readable").as_deref(), Some("3"));
        let long = "x".repeat(INLINE_OCTETS_MAX + 1);
        assert!(store.note(("answers", "c"), &long, (20, 40)).is_err());
    }
}
