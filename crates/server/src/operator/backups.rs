//! Backups of what the server keeps, for who operates it.

use std::fs::{self, File};
use std::path::Path;

use control::api;
use environment::System;
use store::{Draft, Files};
use tracing::{info, warn};

use super::configuration::apart;
use super::{Operator, OperatorError, Rejected, tokens, unix_seconds};
use crate::backup::{self, BackupError};
use crate::compile::compile;
use crate::{lock, progress};

/// Where an archive stands while it is received, in the state directory.
const RECEIVED: &str = "restore.received";

impl Operator {
    fn state_directory(&self) -> Result<&Path, OperatorError> {
        match self.changing.authority().keeps_changes() {
            true => Ok(&self.facts.startup.state_directory),
            false => Err(OperatorError::Refused("this configuration keeps nothing beside it".to_owned())),
        }
    }

    /// Makes a backup of what is kept in the state directory and cannot be made again, as it is at
    /// one moment: an archive that is gone when the file is closed. Without secrets it has no
    /// token, password, key, nor a setting that says one.
    ///
    /// # Errors
    ///
    /// Nothing is kept, another backup is being made, or it cannot be read or written.
    pub fn back_up(&self, with_secrets: bool) -> Result<File, OperatorError> {
        let state = self.state_directory()?.to_owned();
        let _one = self.backups.try_lock().map_err(|_| busy())?;
        // What is in memory alone goes first.
        self.keep_sets();
        // Texts of lists go with the entries that name them.
        let order = self.own_lists().change();
        let authority = self.changing.authority();
        let made = backup::make(&state, (with_secrets, unix_seconds()), |folder| {
            let copied = authority.copy(&folder.join("changes.db"), with_secrets, tokens::SPACE);
            let copied = copied.map_err(|error| error.to_string())?;
            let from = authority.store_folder().unwrap_or(folder);
            copy_hashes(&from.join("lists"), &folder.join("lists"), &|_| true)?;
            let is_wanted = |name: &str| copied.blobs.iter().any(|blob| blob == name);
            copy_hashes(&from.join("blobs"), &folder.join("blobs"), &is_wanted)?;
            let left_out = copied.left_out.into_iter().map(|(space, name)| match space.as_str() {
                "settings" => name,
                space => format!("{space} {name}"),
            });
            drop(order);
            Ok((copied.revision, left_out.collect()))
        });
        made.map_err(|error| refused(error, OperatorError::Refused))
    }

    /// Begins an archive that is to be restored.
    ///
    /// # Errors
    ///
    /// Nothing is kept, or it cannot be written.
    pub fn restore_draft(&self) -> Result<Draft, OperatorError> {
        let files = Files::new(self.state_directory()?.join(RECEIVED));
        files.draft().map_err(|error| OperatorError::NotKept(error.to_string()))
    }

    /// Checks an archive and, unless it is only to be checked, lays it down so that the next start
    /// takes it up: all of it, or nothing.
    ///
    /// # Errors
    ///
    /// It is no backup, not as it was written, or cannot be laid down.
    pub fn restore(&self, draft: &Draft, is_dry_run: bool, by: &str) -> Result<api::Restored, OperatorError> {
        let state = self.state_directory()?.to_owned();
        let _one = self.backups.try_lock().map_err(|_| busy())?;
        let check = |changes: &Path| self.check_copy(changes);
        let laid = backup::lay_down(&state, draft.path(), (unix_seconds(), by, is_dry_run), check);
        let laid = laid.map_err(|error| refused(error, OperatorError::Unfit))?;
        if laid.is_ready {
            warn!(of = laid.at, revision = laid.revision, "a backup is taken up at the next start");
        }
        Ok(laid)
    }

    /// Checks that the files of this server go with the changes in a copy of a store: without
    /// something that was left out, the next start might find nothing that it can run on.
    fn check_copy(&self, changes: &Path) -> Result<(), BackupError> {
        let layers = self.changing.authority().layers_in_copy(changes);
        let layers = layers.map_err(|error| BackupError::Wrong(error.to_string()))?;
        let current = lock(&self.current);
        let previous = current.as_previous();
        let checked = apart(|| {
            let mut loaded = self.facts.origin.load()?.with_changes(&layers, &System)?;
            // They come with it.
            loaded.settings.has_added_zones = true;
            let environment = progress::serving(&self.components.manager, &self.components.own_lists);
            compile(&loaded, &self.facts.addresses, Some(previous), &environment).map(drop)
        });
        checked.map_err(BackupError::Unfit)
    }

    /// Tells of a backup that this start has taken up, and removes what was left of others.
    pub(crate) fn tell_restored(&self) {
        let state = &self.facts.startup.state_directory;
        if self.changing.authority().holds_state_directory() {
            backup::clear(state);
            drop(fs::remove_dir_all(state.join(RECEIVED)));
        }
        let Some((text, by)) = store::restore::taken_up(state) else { return };
        let manifest = api::BackupManifest::parse(&text).unwrap_or_default();
        info!(of = manifest.at, revision = manifest.revision, "a backup was restored");
        let on = format!("the backup of {}, revision {}", manifest.at, manifest.revision);
        // The log that was restored does not have who wanted it: that was in the other one.
        let by = by.as_deref().unwrap_or("the start");
        if self.audit_words(by, ("restore", &on), "done").is_ok() {
            store::restore::told(state);
        }
    }
}

fn busy() -> OperatorError {
    OperatorError::Busy("another backup is being made or restored".to_owned())
}

fn refused(error: BackupError, wrong: fn(String) -> OperatorError) -> OperatorError {
    match error {
        BackupError::Io(what, error) => OperatorError::NotKept(format!("{what}: {error}")),
        BackupError::Wrong(why) => wrong(why),
        BackupError::Unfit(diagnostics) => {
            OperatorError::Invalid(Box::new(Rejected { diagnostics, stays: api::Reload::default() }))
        }
    }
}

/// Copies files that are named by their hashes.
fn copy_hashes(from: &Path, to: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let is_hash = |name: &str| name.len() == 64 && name.bytes().all(|octet| octet.is_ascii_hexdigit());
    backup::copy_files(from, to, &|name| is_hash(name) && is_wanted(name)).map_err(|error| error.to_string())
}
