//! What is kept of a zone: its versions and their steps are on disk before, or soon after, they are
//! served.

use std::sync::Arc;

use zone::{Difference, Zone};

use super::{Current, ManagedZone, is_kept, is_tied_to_file};
use crate::history::History;
use crate::journal::{FileMark, Keeps};
use crate::load::LoadedZone;
use crate::lock::lock;

impl ManagedZone {
    /// Makes steps part of the history and `zone` the current version; what has to be on disk is
    /// there then, or it is logged.
    pub(crate) fn commit(
        &self,
        current: &mut Current,
        steps: Vec<Difference>,
        zone: Arc<Zone>,
        loaded: &LoadedZone,
        now: u64,
    ) {
        if let Err(error) = self.try_commit(current, steps, zone, loaded, now) {
            // It can be had again from where it came.
            tracing::error!(zone = %self.apex, %error, "a new version is served and could not be kept");
        }
    }

    /// Like [`ManagedZone::commit`]; an error says what was not kept of a version that is current
    /// all the same.
    fn try_commit(
        &self,
        current: &mut Current,
        steps: Vec<Difference>,
        zone: Arc<Zone>,
        loaded: &LoadedZone,
        now: u64,
    ) -> std::io::Result<()> {
        let steps: Vec<Arc<Difference>> = steps.into_iter().map(Arc::new).collect();
        // A zone that is only a file is kept by its file.
        let is_kept = is_kept(loaded) && (current.has_base || loaded.plan.file.is_none());
        let written = match is_kept {
            // Proofs are made with keys that only the file has: what is kept would lack them.
            true if is_tied_to_file(&zone) => self.unkeep(current),
            true => self.write(current, &steps, &zone, loaded),
            false => Ok(()),
        };
        self.accept(current, steps, zone, loaded, now);
        written
    }

    /// Makes steps part of the history, and `zone` the current version.
    pub(super) fn accept(
        &self,
        current: &mut Current,
        steps: Vec<Arc<Difference>>,
        zone: Arc<Zone>,
        loaded: &LoadedZone,
        now: u64,
    ) {
        if !loaded.signed.has_versions() {
            let mut history = lock(&self.history);
            if steps.is_empty() {
                history.clear();
            }
            for step in steps {
                history.push(step, loaded.plan.journal_octets_max);
            }
            let all = loaded.signed.is_file().then(|| history.all());
            drop(history);
            if let Some(all) = all {
                self.keep_signed_steps(current, &all, loaded.plan.journal_octets_max);
            }
        }
        current.zone = Some(zone);
        self.show(current, now);
    }

    /// Removes what is on disk of a zone that is in memory alone: it would grow old there, and
    /// steps to later versions would not fit it.
    pub(super) fn forget_kept(&self, current: &mut Current, loaded: &LoadedZone) {
        if is_kept(loaded) || loaded.signed.is_file() || loaded.signed.has_versions() {
            return;
        }
        if let Err(error) = self.unkeep(current) {
            // Nothing is written there any more: it does not look newer than it is.
            tracing::warn!(zone = %self.apex, %error, "what was kept of the zone cannot be removed");
        }
    }

    /// Removes what was kept of the zone, and begins anew with the next version that is kept.
    pub(super) fn unkeep(&self, current: &mut Current) -> std::io::Result<()> {
        current.has_base = false;
        current.log_octets = 0;
        current.mark = FileMark::Unknown;
        current.journal.unlink()
    }

    /// Makes sure of a version; if this fails, it is not there after a restart.
    pub(super) fn write(
        &self,
        current: &mut Current,
        steps: &[Arc<Difference>],
        zone: &Zone,
        loaded: &LoadedZone,
    ) -> std::io::Result<()> {
        if let Some(why) = &current.unreadable {
            return Err(std::io::Error::other(why.clone()));
        }
        let before = current.zone.clone().filter(|_| !steps.is_empty());
        let before = before.filter(|before| before.facts().has_own_keys == zone.facts().has_own_keys);
        let Some(before) = before else { return self.rewrite(current, zone, steps, loaded) };
        let is_ready = current.has_base
            && current.journal.takes_steps_to(zone)
            && current.log_octets <= loaded.plan.journal_octets_max;
        if !is_ready {
            // Only what was acknowledged: whether there is more is for the log to say.
            self.rewrite(current, &before, &[], loaded)?;
        }
        current.log_octets += current.journal.append(steps, current.log_octets)?;
        Ok(())
    }

    /// Writes a whole version, with the history that leads to it, and what the zone's file says.
    pub(super) fn rewrite(
        &self,
        current: &mut Current,
        zone: &Zone,
        steps: &[Arc<Difference>],
        loaded: &LoadedZone,
    ) -> std::io::Result<()> {
        let mut history = History::default();
        // Of a zone that is served signed, nobody was given these.
        if !loaded.signed.has_versions() {
            history.set(lock(&self.history).all(), loaded.plan.journal_octets_max / 2);
            for step in steps {
                history.push(Arc::clone(step), loaded.plan.journal_octets_max / 2);
            }
            if history.last().is_some_and(|last| last.new_serial() != zone.facts().serial) {
                history.clear();
            }
        }
        let keeps = match (&current.file, current.mark) {
            _ if loaded.plan.file.is_none() => Keeps::Nothing,
            (Some(file), _) => Keeps::File(file),
            (None, FileMark::Stamp(stamp)) => Keeps::Stamp(stamp),
            (None, _) => Keeps::Same,
        };
        current.log_octets = current.journal.rewrite(zone, &history.all(), (keeps, current.refreshed_at))?;
        if let Keeps::File(file) = keeps {
            current.mark = FileMark::Contents(file.contents());
        }
        current.has_base = true;
        Ok(())
    }

    /// Writes the last step between versions that were signed.
    pub(super) fn keep_signed_steps(
        &self,
        current: &mut Current,
        history: &[Arc<Difference>],
        octets_max: u64,
    ) {
        let managed = match history {
            [] => current.signed_journal.remove(),
            history => current.signed_journal.follow(history, octets_max),
        };
        if let Err(error) = managed {
            // Secondaries get the whole zone after a restart.
            tracing::warn!(zone = %self.apex, %error, "what led to the signed version cannot be kept");
        }
    }

    /// Writes down when the zone was last refreshed.
    pub(super) fn keep_refreshed_at(&self, current: &mut Current) {
        if !current.has_base {
            return;
        }
        match current.journal.note_refreshed_at(current.refreshed_at, current.log_octets) {
            Ok(octets) => current.log_octets += octets,
            Err(error) => {
                tracing::warn!(zone = %self.apex, %error, "when a primary was heard of cannot be kept");
            }
        }
    }

    /// Forgets the zone; durable only after the folder's `fsync`.
    pub(crate) fn unlink_files(&self) {
        let mut current = lock(&self.current);
        if let Err(error) = current.journal.unlink().and_then(|()| current.signed_journal.unlink()) {
            tracing::warn!(zone = %self.apex, %error, "what was kept of the zone cannot be removed");
        }
    }

    /// Forgets the zone for good.
    pub(crate) fn remove_files(&self) {
        let mut current = lock(&self.current);
        if let Err(error) = current.journal.remove().and_then(|()| current.signed_journal.remove()) {
            tracing::warn!(zone = %self.apex, %error, "what was kept of the zone cannot be removed");
        }
    }
}
