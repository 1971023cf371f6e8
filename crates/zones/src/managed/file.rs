//! A zone's file changes: what becomes of that, and of what was changed while the server ran.

use std::sync::Arc;

use plan::zones::FileChange;
use tracing::info;
use wire::serial::is_newer;
use wire::{HashKey, NameBuf};
use zone::difference::with_serial;
use zone::{Difference, Zone};

use super::{Current, ManagedZone, Pending, Taken, is_tied_to_file};
use crate::error::ZoneError;
use crate::journal::FileMark;
use crate::load::LoadedZone;
use crate::lock::lock;

/// A change of a file, beside what was changed here.
struct Changes {
    /// What has changed in the file, if it is known what it said before.
    in_file: Option<Difference>,
    /// Records that were changed here and are not in the file.
    lost: usize,
    /// Whether the zone is, or was, signed with keys of its file.
    has_own_keys: bool,
    /// The serial of the version there is.
    before: u32,
    /// The serial in the file.
    after: u32,
    /// The serial of the next version.
    serial: u32,
}

impl Changes {
    /// Returns what becomes of the changes that were made here: where nothing would be lost, nobody
    /// has to decide.
    fn resolve(&self, how: FileChange) -> FileChange {
        let is_serial_alone = self.in_file.as_ref().is_some_and(|it| it.is_empty() && !it.has_new_soa());
        match how {
            FileChange::Merge | FileChange::Refuse if is_serial_alone && !self.has_own_keys => {
                FileChange::Merge
            }
            FileChange::Refuse if self.lost == 0 => FileChange::Replace,
            how => how,
        }
    }

    /// Returns the step to the next version; `None` if there is nothing to do, an error that says
    /// why the file is not taken.
    fn step(
        &self,
        apex: &NameBuf,
        how: FileChange,
        (old, new): (&Zone, &Zone),
        key: HashKey,
    ) -> Result<Option<Difference>, String> {
        let Self { in_file, lost, has_own_keys, before, after, serial } = self;
        let is_newer = is_newer(*after, *before);
        let merged = match (how, in_file) {
            (FileChange::Replace, _) => return self.replacing((old, new), key),
            (FileChange::Refuse, _) => {
                let both = if in_file.is_some() && !has_own_keys { "--merge keeps both, " } else { "" };
                return Err(format!(
                    "the zone's file has changed and is not taken, because {lost} records were changed here since: \
                     \"gannet zone reload {apex}\" with {both}--replace drops those"
                ));
            }
            (FileChange::Merge, _) if *has_own_keys => Err("nobody could sign what comes of it"),
            (FileChange::Merge, None) => Err("it is not known what it said before"),
            (FileChange::Merge, Some(in_file)) => Ok(in_file),
        };
        let in_file = merged.map_err(|why| {
            format!(
                "the zone's file has changed and cannot be merged: {why}; \
                 \"gannet zone reload {apex} --replace\" drops the {lost} records that were changed here since"
            )
        })?;
        let step = in_file.onto(old, &key, *serial);
        // Nothing is left to do, and a serial that was passed here is no reason for another one.
        let is_same = step.is_empty() && !in_file.has_new_soa() && !is_newer;
        Ok((!is_same).then_some(step))
    }

    /// Returns the step to what the file says.
    fn replacing(&self, (old, new): (&Zone, &Zone), key: HashKey) -> Result<Option<Difference>, String> {
        let Self { has_own_keys, before, after, serial, .. } = self;
        let is_newer = is_newer(*after, *before);
        if *has_own_keys && !is_newer {
            return Err(format!(
                "the zone's file is not taken: it is signed as it is, and its serial {after} is not newer than {before}"
            ));
        }
        let step = Difference::between(old, new, &key);
        let new_soa = (step.new_soa.0, with_serial(&step.new_soa.1, *serial));
        let is_same = step.is_empty() && !step.has_new_soa() && !is_newer;
        Ok((!is_same).then_some(Difference { new_soa, ..step }))
    }
}

impl ManagedZone {
    /// Takes a new version from the zone's file, if there is one.
    pub(crate) fn take_file(
        &self,
        current: &mut Current,
        loaded: &LoadedZone,
        key: HashKey,
        now: u64,
    ) -> Taken {
        if loaded.signed.is_file() {
            // It is kept by whoever signs it. Until it is signed it is not served: who saw it
            // unsigned would remember that.
            current.has_base = false;
            if loaded.zone.is_none() {
                current.zone = None;
                current.file = None;
                return Taken::Same;
            }
        }
        let Some(new) = loaded.zone.as_ref().filter(|_| loaded.source != 0 || current.zone.is_none()) else {
            return Taken::Same;
        };
        let Some(old) = current.zone.clone() else {
            current.zone = Some(Arc::clone(new));
            current.file = Some(Arc::clone(new));
            return Taken::New;
        };
        if current.file.as_ref().is_some_and(|file| Arc::ptr_eq(file, new)) || Arc::ptr_eq(&old, new) {
            return Taken::Same;
        }
        if !current.has_base {
            return self.follow_file(current, (&old, new), loaded, key, now);
        }
        let is_as_before = match current.mark {
            FileMark::Contents(contents) => contents == new.contents(),
            FileMark::Stamp(stamp) => stamp == loaded.source,
            FileMark::Unknown => false,
        };
        if is_as_before {
            self.know_file(current, &old, new, loaded);
            return Taken::Same;
        }
        let mut how = loaded.plan.on_file_change;
        if current.mark == FileMark::Unknown && current.refreshed_at != 0 {
            // It came from a primary and has a file now: nobody has changed anything here.
            current.refreshed_at = 0;
            how = FileChange::Replace;
        }
        match self.decide(current, (&old, new), loaded, how, (key, now)) {
            Ok(taken) => taken,
            Err(why) => {
                self.refuse_file(current, new, why);
                Taken::Same
            }
        }
    }

    /// Takes a new version from the file of a zone that is nothing else.
    fn follow_file(
        &self,
        current: &mut Current,
        (old, new): (&Arc<Zone>, &Arc<Zone>),
        loaded: &LoadedZone,
        key: HashKey,
        now: u64,
    ) -> Taken {
        let difference = Difference::between(old, new, &key);
        let (before, after) = (old.facts().serial, new.facts().serial);
        current.file = Some(Arc::clone(new));
        if difference.is_empty() && !is_newer(after, before) {
            return Taken::Same;
        }
        if is_newer(after, before) {
            self.commit(current, vec![difference], Arc::clone(new), loaded, now);
            return Taken::New;
        }
        if after == before {
            tracing::warn!(zone = %self.apex, serial = after, "the zone has changed and its serial has not: secondaries will not notice");
        }
        lock(&self.history).clear();
        current.zone = Some(Arc::clone(new));
        Taken::New
    }

    /// Notes that the file says what it said when it was last taken.
    fn know_file(&self, current: &mut Current, zone: &Arc<Zone>, file: &Arc<Zone>, loaded: &LoadedZone) {
        current.file = Some(Arc::clone(file));
        if current.pending.take().is_some() {
            tracing::info!(zone = %self.apex, "the zone's file is again as it was when it was taken");
        }
        // As releases up to 0.2 kept it: from now on its contents count.
        if matches!(current.mark, FileMark::Stamp(_))
            && let Err(error) = self.rewrite(current, zone, &[], loaded)
        {
            tracing::warn!(zone = %self.apex, %error, "what the zone's file says cannot be kept");
        }
    }

    /// Goes on with the version there is, and says so once for each change of the file.
    fn refuse_file(&self, current: &mut Current, file: &Arc<Zone>, why: String) {
        let contents = file.contents();
        if current.pending.as_ref().is_none_or(|pending| pending.contents != contents) {
            tracing::warn!(zone = %self.apex, "{why}");
        }
        current.pending = Some(Pending { file: Arc::clone(file), contents, why });
    }

    /// Brings a change of the file and changes that were made here together. An error says why the
    /// file is not taken.
    fn decide(
        &self,
        current: &mut Current,
        (old, new): (&Arc<Zone>, &Arc<Zone>),
        loaded: &LoadedZone,
        how: FileChange,
        (key, now): (HashKey, u64),
    ) -> Result<Taken, String> {
        let apex = &self.apex;
        let changes = self.compare(current, (old, new), loaded, (key, now))?;
        let how = changes.resolve(how);
        let step = changes.step(apex, how, (old, new), key)?;
        let lost = changes.lost;
        if how == FileChange::Replace && lost > 0 {
            // First the copy: what is dropped can be had back from it.
            let to = current.journal.set_aside();
            let to = to.map_err(|error| {
                format!("the zone's file is not taken: its journal cannot be set aside: {error}")
            })?;
            tracing::warn!(zone = %apex, records = lost, "the zone's file replaces what was kept here; the journal is set aside as {to}");
        }
        let (steps, zone) = match step {
            None => (Vec::new(), Arc::clone(old)),
            // As it is written, with what it was signed with.
            Some(step) if how == FileChange::Replace && changes.serial == changes.after => {
                (vec![step], Arc::clone(new))
            }
            Some(step) => {
                let zone = step.apply_sharing(old, &key).map_err(|misfit| {
                    format!(
                        "the zone's file has changed and does not fit what was changed here: {misfit}; \
                         \"gannet zone reload {apex} --replace\" drops the {lost} records that were changed here since"
                    )
                })?;
                (vec![step], zone)
            }
        };
        let is_new = !steps.is_empty();
        let steps: Vec<Arc<Difference>> = steps.into_iter().map(Arc::new).collect();
        current.file = Some(Arc::clone(new));
        current.pending = None;
        let written = match is_tied_to_file(&zone) {
            true => self.unkeep(current),
            false => self.rewrite(current, &zone, &steps, loaded),
        };
        if let Err(error) = written {
            // The file is there at the next start, too.
            tracing::error!(zone = %apex, %error, "a new version is served and could not be kept");
        }
        if is_new {
            info!(zone = %apex, serial = zone.facts().serial, "a change of the zone's file is taken");
            self.accept(current, steps, zone, loaded, now);
        }
        Ok(if is_new { Taken::New } else { Taken::Same })
    }

    /// Finds out what has changed in the file and what was changed here.
    fn compare(
        &self,
        current: &Current,
        (old, new): (&Arc<Zone>, &Arc<Zone>),
        loaded: &LoadedZone,
        (key, now): (HashKey, u64),
    ) -> Result<Changes, String> {
        let (before, after) = (old.facts().serial, new.facts().serial);
        let base = match (&current.file, current.mark) {
            (Some(file), _) => Some(Arc::clone(file)),
            (None, FileMark::Contents(_)) => {
                let file = current.journal.file(key);
                file.map_err(|error| format!("what the zone's file said before cannot be read: {error}"))?
                    .map(Arc::new)
            }
            (None, _) => None,
        };
        // Where nobody knows what the file said, all that differs may have been changed here.
        let here = Difference::between(base.as_ref().unwrap_or(new), old, &key);
        Ok(Changes {
            in_file: base.as_ref().map(|base| Difference::between(base, new, &key)),
            lost: here.onto(new, &key, after).records(),
            has_own_keys: new.facts().has_own_keys || old.facts().has_own_keys,
            before,
            after,
            // The file's serial may be that of a version that was changed here since: then the next
            // one is ours to choose.
            serial: match is_newer(after, before) {
                true => after,
                false => loaded.plan.rights.serial.next(before, now),
            },
        })
    }
    /// Has a change of the file that was refused merged, or replace what was changed here, by order
    /// of the operator. Returns whether there is a new version, and the finding to report.
    pub(crate) fn decide_now(
        &self,
        how: FileChange,
        key: HashKey,
        (by, now): (&str, u64),
    ) -> Result<(Taken, String), ZoneError> {
        let loaded = self.loaded();
        let apex = &self.apex;
        let mut current = lock(&self.current);
        let Some(pending) = current.pending.take() else {
            return Ok((Taken::Same, format!("zone \"{apex}\": its file is taken already")));
        };
        let Some(old) = current.zone.clone() else {
            return Err(ZoneError::Refused(format!("zone \"{apex}\" is not loaded")));
        };
        match self.decide(&mut current, (&old, &pending.file), &loaded, how, (key, now)) {
            Ok(taken) => {
                if taken == Taken::New {
                    current.note_change(by, now);
                }
                self.show(&current, now);
                drop(current);
                Ok((taken, format!("zone \"{apex}\": its file is taken, serial {}", self.serial())))
            }
            Err(why) => {
                current.pending = Some(pending);
                Err(ZoneError::Refused(format!("zone \"{apex}\": {why}")))
            }
        }
    }
}
