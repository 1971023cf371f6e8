//! Settings that are changed while the server runs: decided by `authority`, compiled and published
//! here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use authority::{
    Authority, Done, Edit, Expectation, Kept, Meanwhile, Outcome, Queue, Refusal, Request, Runner,
    WhatBecame, WrongPair,
};
use control::{Role, api};
use diagnostic::Diagnostic;
use environment::System;
use settings::overlay::{
    Layer, Said, SettingPath, all_said, difference, difference_of, difference_of_said, export,
    first_differences, is_said, said, said_in_files,
};
use settings::{ChangesAllowed, Loaded};
use store::StoreError;
use tracing::{error, info, warn};

use super::configuration::{apart, report, report_new};
use super::events::told;
use super::files::Watched;
pub(super) use super::when::rfc3339;
use super::{Operator, OperatorError, Rejected, SERVER, What, unix_seconds};
use crate::compile::{Compiled, compile};
use crate::reload::{Candidate, Cause, NotCarriedOut, Revision, bring_into_use_kept};
use crate::{lock, progress};

/// Changes that history shows unless somebody wants another number.
const HISTORY_SHOWN: usize = 20;
/// Characters of what a setting says that the audit log has.
const AUDITED_CHARS_MAX: usize = 1_000;

/// What decides about changes, and what waits for it.
pub(crate) struct Changing {
    authority: Arc<Authority>,
    queue: Queue<Request, Result<Done, Refusal>>,
    /// Held while members of dynamic sets are changed by hand.
    pub(super) members: Mutex<()>,
    /// Files and changes that do not go together: something else runs.
    wrong: Mutex<Option<Arc<WrongPair>>>,
    /// Whether it is noted what the files say.
    is_noted: AtomicBool,
}

impl Changing {
    pub(crate) fn new(authority: Arc<Authority>, wrong: Option<WrongPair>, running: &Loaded) -> Self {
        match &wrong {
            Some(wrong) => {
                report(&wrong.diagnostics);
                error!(
                    "the file and the changes of it do not go together: what ran last is in use, and no change is \
                     taken but one that mends it"
                );
            }
            None => authority.note_good(running),
        }
        let wrong = Mutex::new(wrong.map(Arc::new));
        let (queue, members, is_noted) = (Queue::default(), Mutex::default(), AtomicBool::new(false));
        Self { authority, queue, members, wrong, is_noted }
    }

    /// Returns whether the files and the changes of them do not go together.
    pub(super) fn is_pair_wrong(&self) -> bool {
        lock(&self.wrong).is_some()
    }

    /// Returns what decides.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }
}

/// A server whose configuration is being changed.
struct Running<'s> {
    operator: &'s Operator,
    current: &'s mut Revision,
    /// What the files say, if it is not what runs.
    files: Option<&'s Loaded>,
    /// Who asks for the changes.
    by: String,
}

impl Running<'_> {
    fn files(&self) -> &Loaded {
        self.files.unwrap_or(&self.current.loaded)
    }
}

impl Runner for Running<'_> {
    type Candidate = (Candidate, Arc<Watched>);

    fn allowed(&self) -> ChangesAllowed {
        self.files().settings.changes.clone()
    }

    fn is_said(&self, path: &SettingPath) -> bool {
        is_said(self.files(), path)
    }

    fn differences(
        &self,
        layers: [&[Layer]; 2],
        digest: &dyn Fn(&str) -> String,
    ) -> (Vec<store::audit::Difference>, usize) {
        let max = store::audit::DIFFERENCES_MAX;
        let (first, more) = first_differences(self.files(), layers, &System, digest, max);
        (audited(first), more)
    }

    fn check(&mut self, layers: &[Layer]) -> Result<(Self::Candidate, Outcome), Vec<Diagnostic>> {
        let Operator { facts, components, .. } = self.operator;
        let previous = self.current.as_previous();
        let files = self.files();
        let (loaded, watched, compiled) = apart(|| {
            let mut loaded = files.with_changes(layers, &System)?;
            loaded.settings.has_added_zones = components.manager.has_added();
            let watched = Watched::of(&loaded.settings);
            let environment = progress::serving(&components.manager, &components.own_lists);
            let compiled = compile(&loaded, &facts.addresses, Some(previous), &environment)?;
            Ok::<_, Vec<Diagnostic>>((Arc::new(loaded), watched, compiled))
        })?;
        let Compiled { plans, zones } = compiled;
        let warnings = [&*loaded.warnings, &plans.warnings].concat();
        let changed = settings::diff(&facts.startup, &loaded.settings.startup);
        let needs_restart = changed.into_iter().map(|setting| setting.path).collect();
        let revision = Revision { number: self.current.number + 1, loaded, plans, zones };
        let candidate = Candidate::with_last_signed(&components.signing, revision, Cause::Reload);
        let candidate = candidate.by(&self.by);
        Ok(((candidate, watched), Outcome { warnings, needs_restart }))
    }

    fn adopt(
        &mut self,
        (candidate, watched): Self::Candidate,
        keep: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), Refusal> {
        let kept = bring_into_use_kept(&self.operator.components, candidate, Some(self.current), keep);
        let revision = kept.map_err(|why| match why {
            NotCarriedOut::Found(found) => Refusal::Invalid(found),
            NotCarriedOut::NotKept(error) => Refusal::Store(error),
        })?;
        let before = std::mem::replace(self.current, revision);
        for (now, before) in [
            (&self.current.loaded.warnings[..], &before.loaded.warnings[..]),
            (&self.current.plans.warnings[..], &before.plans.warnings[..]),
        ] {
            report_new(now, before);
        }
        let mut view = lock(&self.operator.view);
        let exempt_before = Arc::clone(&view.bans.exempt);
        view.show(self.current);
        view.show_settings(&self.current.loaded.settings);
        view.watched = watched;
        self.operator.warn_of_bans(&exempt_before, &view.bans.exempt);
        Ok(())
    }
}

impl Operator {
    /// Changes settings. Those that are wanted while others are compiled are compiled together.
    /// When this returns, they are on disk, and every query that is sent meets them.
    ///
    /// # Errors
    ///
    /// They make no sense, may not be changed, or cannot be kept; then nothing has changed.
    pub fn config_change(&self, change: &api::ConfigChange) -> Result<api::ConfigChanged, OperatorError> {
        let now = unix_seconds();
        let path = |text: &str| SettingPath::parse(text).map_err(OperatorError::Argument);
        let edit = |edit: &api::ConfigEdit| match edit {
            api::ConfigEdit::Set { path: at, text } => Ok(Edit::Set(path(at)?, text.clone())),
            api::ConfigEdit::TakeAway { path: at } => Ok(Edit::TakeAway(path(at)?)),
            api::ConfigEdit::Unset { path: at } => Ok(Edit::Unset(path(at)?)),
            api::ConfigEdit::RollBack { revision } => Ok(Edit::RollBack(*revision)),
        };
        let edits = change.edits.iter().map(edit).collect::<Result<Vec<_>, OperatorError>>()?;
        let expected_at = change.expected_at.iter().map(|it| {
            let expectation = it.revision.map_or(Expectation::Nothing, Expectation::Revision);
            Ok((path(&it.path)?, expectation))
        });
        let expected_at = expected_at.collect::<Result<Vec<_>, OperatorError>>()?;
        self.decide(Request {
            edits,
            by: change.by.clone().unwrap_or_else(|| SERVER.to_owned()),
            why: change.why.clone().unwrap_or_default(),
            at: now,
            until: change.for_s.map(|seconds| now.saturating_add(seconds)),
            expected: change.expected,
            expected_at,
            is_dry_run: change.is_dry_run,
        })
    }

    fn decide(&self, request: Request) -> Result<api::ConfigChanged, OperatorError> {
        let begin = Instant::now();
        let (by, is_dry_run) = (request.by.clone(), request.is_dry_run);
        let told = told(&request);
        let outcome = self.changing.queue.carry_out(request, |requests| self.decide_all(&requests));
        let done = outcome.map_err(|refusal| {
            warn!(by, why = %refusal, "settings stay as they are");
            self.refused(refusal, begin)
        })?;
        if !is_dry_run {
            let needs_restart = done.outcome.needs_restart.join(", ");
            info!(revision = done.revision, by, needs_restart, "settings changed");
            self.follow_zones();
            self.tell(api::EventOf::Change(api::ChangeEvent { revision: Some(done.revision), ..told }));
        }
        Ok(api::ConfigChanged {
            revision: done.revision,
            is_adopted: !is_dry_run,
            replaced: done.replaced.iter().map(ToString::to_string).collect(),
            needs_restart: done.outcome.needs_restart,
            diagnostics: done.outcome.warnings.iter().map(api::Diagnostic::from).collect(),
            differences: if is_dry_run { self.differences_to(&done.layers) } else { Vec::new() },
            took_ms: begin.elapsed().as_millis() as u64,
        })
    }

    /// Says what other changes would make different from what is in use.
    fn differences_to(&self, layers: &[Layer]) -> Vec<api::ConfigDifference> {
        shown(difference(&self.loaded(), [&self.changing.authority.layers(), layers], &System))
    }

    /// Returns the error of a change that is refused.
    fn refused(&self, refusal: Refusal, begin: Instant) -> OperatorError {
        match refusal {
            Refusal::Invalid(diagnostics) => {
                let stays = self.stands(lock(&self.view).revision, begin);
                OperatorError::Invalid(Box::new(Rejected { diagnostics, stays }))
            }
            Refusal::NotAllowed(why) => OperatorError::Locked(why),
            Refusal::NotChanged(_) => OperatorError::Refused(refusal.to_string()),
            Refusal::NotExpected { .. } | Refusal::Store(StoreError::Conflict(_)) => {
                OperatorError::Conflict(refusal.to_string())
            }
            other => OperatorError::not_kept(&other),
        }
    }

    fn decide_all(&self, requests: &[Request]) -> Vec<Result<Done, Refusal>> {
        let mut current = lock(&self.current);
        // Not held while it is compiled: the status says of it.
        let wrong = lock(&self.changing.wrong).clone();
        let files = wrong.as_ref().map(|wrong| &wrong.files);
        let by: BTreeSet<&str> =
            requests.iter().filter(|it| !it.is_dry_run).map(|it| it.by.as_str()).collect();
        let by = by.into_iter().collect::<Vec<_>>().join(" and ");
        let mut runner = Running { operator: self, current: &mut current, files, by };
        let outcomes = self.changing.authority.decide(&mut runner, requests);
        let is_changed = outcomes.iter().zip(requests).any(|(outcome, it)| outcome.is_ok() && !it.is_dry_run);
        if is_changed {
            if lock(&self.changing.wrong).take().is_some() {
                info!("the file and the changes of it go together again");
                self.audit_files_since_noted(&current.loaded);
            }
            self.changing.authority.note_good(&current.loaded);
        }
        outcomes
    }

    /// Takes back settings, and ends bans, whose time is over.
    pub(crate) fn end_changes(&self) {
        if self.has_ended_bans() {
            self.end_bans();
        }
        if let Some(request) = self.changing.authority.ended(unix_seconds()) {
            // What becomes of it is in the log.
            drop(self.decide(request));
        }
    }

    /// Returns whether the time of a changed setting or a ban is over; it waits for nobody.
    pub(crate) fn has_ended_changes(&self) -> bool {
        self.changing.authority.has_ended(unix_seconds()) || self.has_ended_bans()
    }

    /// Says which settings were changed, by whom.
    ///
    /// # Errors
    ///
    /// None, at present.
    pub fn config_show(&self) -> Result<api::ConfigShown, OperatorError> {
        let loaded = self.loaded();
        Ok(api::ConfigShown { text: settings::print::show(&loaded) })
    }

    /// Returns the changes as settings for the file.
    pub fn config_export(&self, with_secrets: bool) -> api::ConfigShown {
        let loaded = self.loaded();
        api::ConfigShown { text: export(&loaded, with_secrets) }
    }

    /// Says which settings two revisions of the changes say differently; of none, the files alone
    /// or what is in use.
    ///
    /// # Errors
    ///
    /// There is no such revision, or the store cannot be read.
    pub fn config_diff(&self, asked: &api::ConfigDiff) -> Result<Vec<api::ConfigDifference>, OperatorError> {
        let authority = &self.changing.authority;
        let layers = |of: &api::ConfigOf| match of {
            api::ConfigOf::File => Ok(Vec::new()),
            api::ConfigOf::Now => Ok(authority.layers()),
            api::ConfigOf::Revision(revision) => {
                authority.layers_at(*revision).map_err(|error| not_read(&error))
            }
        };
        let (before, after) = (layers(&asked.from)?, layers(&asked.to)?);
        Ok(shown(difference(&self.loaded(), [&before, &after], &System)))
    }

    /// Says who changed what, the newest change first.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn config_history(&self, asked: &api::ConfigHistory) -> Result<Vec<api::ConfigStep>, OperatorError> {
        let count = asked.count.map_or(HISTORY_SHOWN, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let steps = self.changing.authority.history(asked.before, count).map_err(|error| not_read(&error))?;
        let loaded = self.loaded();
        let shown = |name: &str, text: Option<&String>| -> Option<String> {
            match WhatBecame::decode(text?)? {
                WhatBecame::Nothing => Some("(taken away)".to_owned()),
                WhatBecame::Text(text) => {
                    let path = SettingPath::parse(name).ok()?;
                    let layer = Layer::new(path, Some(text), String::new());
                    // On one line, without secrets.
                    let all = difference(&loaded, [&[], &[layer]], &System);
                    let parts: Vec<String> = all
                        .into_iter()
                        .filter_map(|it| {
                            let rest = it
                                .path
                                .strip_prefix(name)
                                .unwrap_or(&it.path)
                                .trim_start_matches('.')
                                .to_owned();
                            let after = it.after?;
                            Some(if rest.is_empty() { after } else { format!("{rest}: {after}") })
                        })
                        .collect();
                    Some(if parts.is_empty() { "as the file says".to_owned() } else { parts.join(", ") })
                }
            }
        };
        let steps = steps.into_iter().map(|step| api::ConfigStep {
            revision: step.revision,
            by: step.by,
            at: rfc3339(step.at),
            why: step.why,
            edits: step
                .edits
                .iter()
                .map(|edit| api::ConfigDifference {
                    path: edit.name.clone(),
                    before: shown(&edit.name, edit.before.as_ref()),
                    after: shown(&edit.name, edit.after.as_ref()),
                })
                .collect(),
        });
        Ok(steps.collect())
    }

    /// Says what a setting says, or all that files and changes say.
    ///
    /// # Errors
    ///
    /// There is no such setting, or nothing is said there and there is no default.
    pub fn config_get(&self, asked: &api::ConfigGet) -> Result<Vec<api::Setting>, OperatorError> {
        let loaded = self.loaded();
        let shown = |said: Said, path: &SettingPath| setting(said, self.changing.authority.last_change(path));
        match &asked.path {
            Some(text) => {
                let path = SettingPath::parse(text).map_err(OperatorError::Argument)?;
                let said = said(&loaded, &path);
                let said = said.ok_or_else(|| OperatorError::not_found(What::Setting, text))?;
                Ok(vec![shown(said, &path)])
            }
            None => {
                let all = all_said(&loaded).into_iter();
                Ok(all
                    .map(|said| match SettingPath::parse(&said.path) {
                        Ok(path) => shown(said, &path),
                        // One that is set in the file alone.
                        Err(_) => setting(said, None),
                    })
                    .collect())
            }
        }
    }

    /// Lays the changes that the disk has over what the files say; returns what is to be taken over
    /// when that has come into use.
    pub(super) fn with_changes_of_disk(
        &self,
        files: Loaded,
    ) -> Result<(Loaded, Option<authority::OnDisk>), Vec<Diagnostic>> {
        if files.changes.is_some() {
            return Ok((files, None));
        }
        let on_disk = match self.changing.authority.on_disk() {
            Ok(on_disk) => Some(on_disk),
            Err(error) => {
                error!(%error, "changed settings cannot be read again: those in use stay");
                None
            }
        };
        let layers =
            on_disk.as_ref().map_or_else(|| self.changing.authority.layers(), authority::OnDisk::layers);
        let loaded = if layers.is_empty() { files } else { files.with_changes(&layers, &System)? };
        Ok((loaded, on_disk))
    }

    /// Writes to the audit log what files say differently from before.
    pub(super) fn audit_files(&self, before: &Loaded, after: &Loaded) {
        let authority = self.changing.authority();
        if !authority.keeps_changes() {
            return;
        }
        // What became of them before that comes first. Without its row it stays to be told of.
        if !self.changing.is_noted.load(Ordering::Relaxed) && !self.audit_files_since_noted(before) {
            return;
        }
        let differences = difference_of([before, after], &|secret| authority.digest(secret));
        if differences.is_empty() || self.audit_differences(differences) {
            self.note_files(after);
        } else {
            self.changing.is_noted.store(false, Ordering::Relaxed);
        }
    }

    /// Writes a row of what files say differently; returns whether it is on disk.
    fn audit_differences(&self, differences: Vec<settings::overlay::Difference>) -> bool {
        let written = self.try_audit(store::audit::Event {
            by: "the file".to_owned(),
            what: "change".to_owned(),
            on: self.facts.origin.name(),
            outcome: "done".to_owned(),
            differences: audited(differences),
            source: Some("file"),
            ..store::audit::Event::default()
        });
        written.is_ok()
    }

    /// Writes to the audit log what files say differently from when the server ran last, unless
    /// that was done: the store may have been locked at the start, or made since.
    pub(super) fn audit_files_once(&self) {
        if self.changing.is_noted.load(Ordering::Relaxed) {
            return;
        }
        // Held, so that no reload comes between the row and the note.
        let current = lock(&self.current);
        // What is not in use has its row when it is.
        if !self.changing.is_pair_wrong() {
            self.audit_files_since_noted(&current.loaded);
        }
    }

    /// Writes to the audit log what files say differently from when that was noted last, and notes
    /// it; returns whether all rows of that are on disk.
    fn audit_files_since_noted(&self, loaded: &Loaded) -> bool {
        let authority = self.changing.authority();
        // Without a store nothing was ever noted.
        if !authority.has_store() {
            return true;
        }
        let said = said_in_files(loaded, &|secret| authority.digest(secret));
        match authority.files_since(&said, unix_seconds()) {
            Ok(Meanwhile::Same) => {}
            Ok(Meanwhile::Unknown) => {
                self.note_files(loaded);
                return true;
            }
            Ok(Meanwhile::Changed(before)) => {
                // What they said before is not known any more: that they are others, is.
                let before = before.as_ref();
                if !self.audit_differences(before.map_or_else(Vec::new, |it| difference_of_said([it, &said])))
                {
                    return false;
                }
                self.note_files(loaded);
            }
            // The status has it.
            Err(_) => return false,
        }
        // One row is enough, even if it could not be noted.
        self.changing.is_noted.store(true, Ordering::Relaxed);
        true
    }

    /// Notes what files say, for the next start.
    fn note_files(&self, loaded: &Loaded) {
        let authority = self.changing.authority();
        if !authority.has_store() {
            return;
        }
        let said = said_in_files(loaded, &|secret| authority.digest(secret));
        match authority.note_files(&said, unix_seconds()) {
            Ok(()) => self.changing.is_noted.store(true, Ordering::Relaxed),
            Err(why) => {
                warn!(%why, "what the files say is not noted: the next start cannot tell what changed of them");
            }
        }
    }

    /// Notes that files with these changes have come into use.
    pub(super) fn changes_taken(&self, on_disk: Option<authority::OnDisk>, loaded: &Loaded) {
        if let Some(on_disk) = on_disk {
            self.changing.authority.take(on_disk);
        }
        lock(&self.changing.wrong).take();
        self.changing.authority.note_good(loaded);
    }

    /// Adds how changes stand to the numbers.
    pub(super) fn change_stats(&self, stats: &mut api::Stats) {
        let standing = self.changing.authority.standing();
        let numbers = [
            ("revision", standing.revision),
            ("settings", standing.changed as u64),
            ("made", standing.counts.made),
            ("refused", standing.counts.refused),
            ("not-kept", standing.counts.not_kept),
            ("compiled", standing.counts.compiled),
            ("store-failed", u64::from(standing.trouble.is_some() || self.bans.trouble().is_some())),
            ("pair-wrong", u64::from(self.changing.is_pair_wrong())),
        ];
        stats.insert("changes".to_owned(), numbers.map(|(name, value)| (name.to_owned(), value)).into());
    }

    /// Says how changes stand.
    pub(super) fn changes_summary(&self) -> api::ChangesSummary {
        let authority = self.changing.authority();
        let standing = authority.standing();
        api::ChangesSummary {
            revision: standing.revision,
            settings: standing.changed as u64,
            last_by: authority.newest_change().map(|kept| kept.by),
            trouble: standing.trouble.or_else(|| self.bans.trouble()),
            wrong: lock(&self.changing.wrong)
                .as_ref()
                .map(|wrong| wrong.diagnostics.iter().map(Diagnostic::line).collect())
                .unwrap_or_default(),
        }
    }
}

/// Returns differences as the audit log has them: what is long is a digest.
pub(super) fn audited(all: Vec<settings::overlay::Difference>) -> Vec<store::audit::Difference> {
    let short = |text: String| match text.chars().count() {
        0..=AUDITED_CHARS_MAX => text,
        _ => format!("sha256:{} of {} octets", store::Hash::of(text.as_bytes()), text.len()),
    };
    let all = all.into_iter();
    all.map(|it| store::audit::Difference {
        path: it.path,
        before: it.before.map(short),
        after: it.after.map(short),
    })
    .collect()
}

fn setting(said: Said, kept: Option<Kept>) -> api::Setting {
    let Said { path, text, origin } = said;
    let role = SettingPath::parse(&path).map_or(Role::Admin.word(), |path| path.role().word()).to_owned();
    let setting = api::Setting { path, text, origin, role, ..api::Setting::default() };
    let Some(kept) = kept else { return setting };
    api::Setting {
        revision: kept.revision,
        by: Some(kept.by),
        at: Some(rfc3339(kept.at)),
        why: Some(kept.why).filter(|why| !why.is_empty()),
        until: kept.until.map(rfc3339),
        ..setting
    }
}

fn shown(all: Vec<settings::overlay::Difference>) -> Vec<api::ConfigDifference> {
    let all = all.into_iter();
    all.map(|it| api::ConfigDifference { path: it.path, before: it.before, after: it.after }).collect()
}

/// Returns the error of a store that cannot be read.
fn not_read(error: &StoreError) -> OperatorError {
    OperatorError::Refused(error.to_string())
}
