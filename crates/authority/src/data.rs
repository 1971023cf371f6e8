//! What is kept in the store beside settings.

use std::path::Path;
use std::sync::Arc;

use settings::overlay::{SettingPath, holds_secret};
use store::{Step, StoreError};

use crate::kept::WhatBecame;
use crate::{Authority, Refusal};

impl Authority {
    /// Returns the entries of a space that holds no settings.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn entries(&self, space: &str) -> Result<Vec<store::Entry>, StoreError> {
        self.with_store(Vec::new(), |store| store.entries(space))
    }

    /// Keeps a change of what is no setting, when no settings are being decided about; it is on
    /// disk when this returns. Returns the revision then.
    ///
    /// # Errors
    ///
    /// It cannot be kept; then nothing has changed.
    pub fn keep(&self, change: &store::Change) -> Result<u64, Refusal> {
        let folder = self.folder.as_deref().ok_or_else(|| {
            Refusal::NotAllowed(
                "this configuration keeps no changes: nothing can be kept beside it".to_owned(),
            )
        })?;
        let _deciding = self.deciding();
        let mut state = self.state();
        let before = state.revision;
        let position = state.opened(folder).and_then(|store| store.commit(change)).map_err(Refusal::Store)?;
        state.revision = position.revision;
        state.compact();
        drop(state);
        if let Some(told) = self.watcher.0.get().filter(|_| position.revision != before) {
            told(change, position.revision);
        }
        Ok(position.revision)
    }

    /// Has somebody hear of each change of what is no setting from now on, in their order: when it
    /// is on disk, with its revision. Called once.
    pub fn watch(&self, told: impl Fn(&store::Change, u64) + Send + Sync + 'static) {
        drop(self.watcher.0.set(Box::new(told)));
    }

    /// Forgets the entries of a space up to a name: what they say is kept elsewhere.
    ///
    /// # Errors
    ///
    /// It cannot be written; then nothing is forgotten.
    pub fn forget(&self, space: &str, up_to: &str) -> Result<(), StoreError> {
        self.with_store((), |store| store.forget(space, up_to).map(drop))
    }

    /// Returns who changed a space, or one entry of it, when and how, the newest change first.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn steps(&self, space: &str, name: Option<&str>, count: usize) -> Result<Vec<Step>, StoreError> {
        self.with_store(Vec::new(), |store| match name {
            Some(name) => store.newest_of(space, name, count),
            None => store.newest(Some(space), None, count),
        })
    }

    /// Returns whether the store is there, and what it says is what was kept: not if it was made
    /// anew, or cannot be read.
    pub fn is_whole(&self) -> bool {
        let position = self.with_store(None, |store| store.position().map(Some));
        matches!(position, Ok(Some(position)) if position.revision > 0)
    }

    /// Writes a copy of the store to a file that is not there yet; without secrets, it has no
    /// setting that says one or did, nothing of `secret_space`, and no notes. There is none if
    /// nothing was kept yet.
    ///
    /// # Errors
    ///
    /// It cannot be read or written.
    pub fn copy(
        &self,
        file: &Path,
        with_secrets: bool,
        secret_space: &str,
    ) -> Result<store::Copied, StoreError> {
        let is_secret = |space: &str, name: &str, text: &str| match space {
            crate::SPACE => match (SettingPath::parse(name), WhatBecame::decode(text)) {
                (Ok(path), Some(WhatBecame::Text(text))) => holds_secret(&path, &text),
                (Ok(_), Some(WhatBecame::Nothing)) => false,
                // Nobody knows what that says.
                _ => true,
            },
            other => other == secret_space,
        };
        let is_secret: Option<store::IsSecret<'_>> = if with_secrets { None } else { Some(&is_secret) };
        // Whoever only asks how changes stand does not wait for the copy.
        match self.with_store(None, |store| Ok(Some(Arc::clone(store))))? {
            Some(store) => store.copy(file, is_secret),
            None => Ok(store::Copied::default()),
        }
    }

    /// Returns the folder of the store.
    pub fn store_folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the folder of long texts of a kind that are kept beside settings.
    pub fn files(&self, kind: &str) -> Option<store::Files> {
        Some(store::Files::new(self.folder.as_deref()?.join(kind)))
    }
}
