//! The audit log, which is kept beside the changes.

use std::path::{Path, PathBuf};

use store::{Store, StoreError};

use crate::Authority;

impl Authority {
    /// Writes to the audit log that somebody has something done; it is on disk when this returns.
    /// Changes of settings are there without it.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn audit(&self, event: store::audit::Event) -> Result<(), StoreError> {
        // What keeps no changes, or has no folder for state at all, has no audit log either.
        self.with_opened(|store| store.audit(&[event])).map(|_| ())
    }

    /// Returns what stands for a secret in the audit log.
    pub fn digest(&self, secret: &str) -> String {
        let digest = self.with_opened(|store| store.digest(secret));
        // Nothing is better than the secret.
        digest.ok().flatten().unwrap_or_else(|| "(secret)".to_owned())
    }

    /// Returns whether the audit log was begun with another first key than the one that is set.
    pub fn has_other_audit_key(&self) -> bool {
        self.with_store(false, |store| Ok(store.has_other_audit_key())).unwrap_or(false)
    }

    /// Does something with the store, which is made if there is none; `None` if nothing is kept.
    fn with_opened<T>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let is_there = |folder: &&Path| folder.parent().is_some_and(Path::is_dir);
        let Some(folder) = self.folder.as_deref().filter(is_there) else { return Ok(None) };
        work(self.state().opened(folder)?).map(Some)
    }

    /// Returns where the first key of the audit log is, if nobody has taken it away yet.
    pub fn first_audit_key(&self) -> Option<PathBuf> {
        Store::first_audit_key(self.folder.as_deref()?)
    }

    /// Returns the public key of the audit log's checkpoints; `None` if there is no log.
    ///
    /// # Errors
    ///
    /// It cannot be read or made.
    pub fn checkpoint_key(&self) -> Result<Option<String>, StoreError> {
        self.with_store(None, |store| store.checkpoint_key().map(Some))
    }

    /// Returns a signed checkpoint of the audit log as it is now, and its last row's number; `None`
    /// if it has no rows.
    ///
    /// # Errors
    ///
    /// The store or the key cannot be read.
    pub fn checkpoint(&self, at: u64) -> Result<Option<(u64, String)>, StoreError> {
        self.with_store(None, |store| store.checkpoint(at))
    }

    /// Returns the number of the audit log's newest row; 0 without any.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn last_audited(&self) -> Result<u64, StoreError> {
        self.with_store(0, |store| store.last_audited())
    }

    /// Returns rows of the audit log after `after`, or the newest, at most `count`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn audited(&self, after: Option<u64>, count: usize) -> Result<Vec<store::audit::Row>, StoreError> {
        self.with_store(Vec::new(), |store| {
            let after = match after {
                Some(after) => after,
                None => store.last_audited()?.saturating_sub(count as u64),
            };
            store.audited(after, count)
        })
    }
}
