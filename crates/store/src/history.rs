//! What was changed when: reading revisions again, and forgetting old ones.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{OptionalExtension as _, params};

use crate::database::Standing;
use crate::{Held, Store, StoreError};

/// One revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub revision: u64,
    /// Who made it.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Why; may be empty.
    pub why: String,
    /// What became of entries.
    pub edits: Vec<Edit>,
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The space.
    pub space: String,
    /// The name in it.
    pub name: String,
    /// What it said before; `None` if it was not there.
    pub before: Option<String>,
    /// What it says since; `None` if it is not there any more.
    pub after: Option<String>,
    /// When it ends, in seconds since 1970.
    pub until: Option<u64>,
}

/// An entry as a revision had it: its text, and when it ends.
pub type Was = (String, Option<u64>);

impl Store {
    /// Returns the oldest revision whose entries can be read again: all changes after it are known
    /// of the space that [`Store::compact`] keeps the history of.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn oldest(&self) -> Result<u64, StoreError> {
        Ok(self.sound()?.standing.oldest)
    }

    /// Returns an error unless a revision can be read again.
    fn check_revision(&self, wanted: u64) -> Result<(), StoreError> {
        let (oldest, newest) = (self.oldest()?, self.position()?.revision);
        if (oldest..=newest).contains(&wanted) {
            return Ok(());
        }
        Err(StoreError::NoRevision { wanted, oldest, newest })
    }

    /// Returns the changes after revision `after`, the oldest first, at most `count`; of one space
    /// alone if one is given.
    ///
    /// # Errors
    ///
    /// Some of them are forgotten already, or the file cannot be read.
    pub fn since(&self, after: u64, space: Option<&str>, count: usize) -> Result<Vec<Step>, StoreError> {
        self.check_revision(after)?;
        self.steps("changes.revision > ?1", "changes.revision", (after, (space, None), count))
    }

    /// Returns the revision that changed a space last, as far as changes are known; 0 if none did.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn last_of(&self, space: &str) -> Result<u64, StoreError> {
        let state = self.sound()?;
        let query = "SELECT revision FROM edits WHERE space = ?1 ORDER BY revision DESC LIMIT 1";
        let found = state.database.query_row(query, [space], |row| row.get::<_, i64>(0)).optional();
        Ok(found.map_err(|error| self.trouble(&error))?.unwrap_or(0) as u64)
    }

    /// Returns the newest changes before a revision, or of all, the newest first, at most `count`;
    /// of one space alone if one is given.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn newest(
        &self,
        space: Option<&str>,
        before: Option<u64>,
        count: usize,
    ) -> Result<Vec<Step>, StoreError> {
        let before = before.unwrap_or(u64::MAX).min(i64::MAX as u64);
        self.steps("changes.revision < ?1", "changes.revision DESC", (before, (space, None), count))
    }

    /// Returns the newest changes of one entry, the newest first, at most `count`; each says
    /// nothing of other entries.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn newest_of(&self, space: &str, name: &str, count: usize) -> Result<Vec<Step>, StoreError> {
        let which = (i64::MAX as u64, (Some(space), Some(name)), count);
        self.steps("changes.revision < ?1", "changes.revision DESC", which)
    }

    fn steps(
        &self,
        which: &str,
        order: &str,
        (revision, (space, name), count): (u64, (Option<&str>, Option<&str>), usize),
    ) -> Result<Vec<Step>, StoreError> {
        let state = self.sound()?;
        let look = || -> rusqlite::Result<Vec<Step>> {
            let mut query = state.database.prepare_cached(&format!(
                "SELECT revision, by, at, why FROM changes WHERE {which}
                   AND EXISTS (
                        SELECT 1 FROM edits WHERE edits.revision = changes.revision
                        AND (?2 IS NULL OR space = ?2) AND (?4 IS NULL OR name = ?4))
                 ORDER BY {order} LIMIT ?3"
            ))?;
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let steps = query.query_map(params![revision as i64, space, count, name], |row| {
                Ok(Step {
                    revision: row.get::<_, i64>(0)? as u64,
                    by: row.get(1)?,
                    at: row.get::<_, i64>(2)? as u64,
                    why: row.get(3)?,
                    edits: Vec::new(),
                })
            })?;
            steps.collect()
        };
        let mut steps = look().map_err(|error| self.trouble(&error))?;
        drop(state);
        for step in &mut steps {
            for (space_of, name_of, before, after) in self.edits(step.revision)? {
                let is_its = space.is_none_or(|space| space == space_of);
                if is_its && name.is_none_or(|name| name == name_of) {
                    let until = after.until.map(|until| until as u64);
                    let (before, after) = (self.read(before)?, self.read(after)?);
                    step.edits.push(Edit { space: space_of, name: name_of, before, after, until });
                }
            }
        }
        Ok(steps)
    }

    /// Returns the edits of a revision.
    fn edits(&self, revision: u64) -> Result<Vec<(String, String, Held, Held)>, StoreError> {
        let state = self.sound()?;
        let look = || -> rusqlite::Result<Vec<_>> {
            let mut query = state.database.prepare_cached(
                "SELECT space, name, before_text, before_blob, before_until, after_text, after_blob, after_until
                 FROM edits WHERE revision = ?1 ORDER BY number",
            )?;
            let edits = query.query_map([revision as i64], |row| {
                let before = Held { text: row.get(2)?, blob: row.get(3)?, until: row.get(4)? };
                let after = Held { text: row.get(5)?, blob: row.get(6)?, until: row.get(7)? };
                Ok((row.get(0)?, row.get(1)?, before, after))
            })?;
            edits.collect()
        };
        look().map_err(|error| self.trouble(&error))
    }

    /// Returns the entries of a space as a revision had them.
    ///
    /// # Errors
    ///
    /// The revision is forgotten or was never there, or the file cannot be read.
    pub fn entries_at(&self, space: &str, revision: u64) -> Result<BTreeMap<String, Was>, StoreError> {
        self.check_revision(revision)?;
        let entries = self.entries(space)?.into_iter();
        let mut then: BTreeMap<String, Was> =
            entries.map(|entry| (entry.name, (entry.text, entry.until))).collect();
        for undone in self.revisions_after(space, revision)? {
            for (space_of, name, before, _) in self.edits(undone)?.into_iter().rev() {
                if space_of != space {
                    continue;
                }
                let until = before.until.map(|until| until as u64);
                match self.read(before)? {
                    Some(text) => drop(then.insert(name, (text, until))),
                    None => drop(then.remove(&name)),
                }
            }
        }
        Ok(then)
    }

    /// Forgets the entries of a space up to a name: what they say is kept elsewhere. It is no
    /// change of anything, and what made them stays in the history. Returns how many there were.
    ///
    /// # Errors
    ///
    /// It cannot be written; then nothing is forgotten.
    pub fn forget(&self, space: &str, up_to: &str) -> Result<u64, StoreError> {
        let mut state = self.sound()?;
        let count = |database: &rusqlite::Connection| {
            let query = "SELECT count(*), coalesce(sum(sum), 0) FROM entries WHERE space = ?1 AND name <= ?2";
            database
                .query_row(query, [space, up_to], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
        };
        let (entries, total) = count(&state.database).map_err(|error| self.trouble(&error))?;
        if entries == 0 {
            return Ok(0);
        }
        let before = state.standing;
        let next = Standing { entries: before.entries - entries, total: before.total - total, ..before };
        self.stand(&mut state, next, |transaction| {
            let query = "DELETE FROM entries WHERE space = ?1 AND name <= ?2";
            transaction.execute(query, [space, up_to]).map(drop)
        })?;
        Ok(entries as u64)
    }

    /// Returns the revisions after one that changed a space, the newest first.
    fn revisions_after(&self, space: &str, revision: u64) -> Result<Vec<u64>, StoreError> {
        let state = self.sound()?;
        let look = || -> rusqlite::Result<Vec<u64>> {
            let mut query = state.database.prepare_cached(
                "SELECT DISTINCT revision FROM edits WHERE space = ?1 AND revision > ?2 ORDER BY revision DESC",
            )?;
            let all = query.query_map(params![space, revision as i64], |row| row.get::<_, i64>(0))?;
            all.map(|revision| revision.map(|revision| revision as u64)).collect()
        };
        look().map_err(|error| self.trouble(&error))
    }

    /// Forgets what was changed by all but the newest `keep` changes of a space, and by all but the
    /// newest `keep` changes of the others together: none of them pushes out its history. Returns
    /// how many changes that were. Entries stay, with who made them what they are.
    ///
    /// # Errors
    ///
    /// It cannot be written; then nothing is forgotten.
    pub fn compact(&self, space: &str, keep: u64) -> Result<u64, StoreError> {
        let mut state = self.sound()?;
        let before = state.standing;
        let last_forgotten = |which: &str| -> rusqlite::Result<u64> {
            let mut query = state.database.prepare_cached(&format!(
                "SELECT DISTINCT revision FROM edits WHERE {which} ORDER BY revision DESC LIMIT 1 OFFSET ?2"
            ))?;
            let keep = i64::try_from(keep).unwrap_or(i64::MAX);
            let found = query.query_row(params![space, keep], |row| row.get::<_, i64>(0)).optional()?;
            Ok(found.map_or(0, |revision| revision as u64))
        };
        let both = last_forgotten("space = ?1").and_then(|its| Ok((its, last_forgotten("space <> ?1")?)));
        let (its, others) = both.map_err(|error| self.trouble(&error))?;
        if its == 0 && others == 0 {
            return Ok(0);
        }
        let next = Standing { oldest: before.oldest.max(its), ..before };
        let mut forgotten = 0;
        let count = |database: &rusqlite::Connection| {
            let query = "SELECT count(DISTINCT revision) FROM edits";
            database.query_row(query, [], |row| row.get::<_, i64>(0))
        };
        self.stand(&mut state, next, |transaction| {
            let edited = count(transaction)?;
            transaction.execute(
                "DELETE FROM edits WHERE revision <= ?1 AND space = ?2",
                params![its as i64, space],
            )?;
            transaction.execute(
                "DELETE FROM edits WHERE revision <= ?1 AND space <> ?2",
                params![others as i64, space],
            )?;
            let query = "DELETE FROM changes WHERE revision <= ?1
                AND revision NOT IN (SELECT revision FROM edits)
                AND revision NOT IN (SELECT revision FROM entries)";
            transaction.execute(query, [its.max(others) as i64])?;
            forgotten = edited - count(transaction)?;
            Ok(())
        })?;
        let named = || -> rusqlite::Result<BTreeSet<String>> {
            let mut query = state.database.prepare_cached(
                "SELECT blob FROM entries WHERE blob IS NOT NULL
                 UNION SELECT before_blob FROM edits WHERE before_blob IS NOT NULL
                 UNION SELECT after_blob FROM edits WHERE after_blob IS NOT NULL",
            )?;
            let all = query.query_map([], |row| row.get(0))?;
            all.collect()
        };
        // Under the lock: a text that is being kept is named before anybody looks again.
        let named = named().map_err(|error| self.trouble(&error))?;
        self.blobs.retain(|name| named.contains(name));
        Ok(forgotten as u64)
    }
}
