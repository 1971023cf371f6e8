//! A configuration comes into use: at a reload, when a file has changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use control::api;
use diagnostic::{Diagnostic, Severity};
use tracing::{error, info, warn};
use zone::Zone;

use super::files::Watched;
use super::zones::refused;
use super::{Operator, OperatorError, Rejected, What};
use crate::compile::{Compiled, ZonePlanner, compile, compile_for_set};
use crate::reload::{Candidate, Cause, Revision, bring_into_use};
use crate::{lock, progress, sys, systemd};

/// The source of what a reload changes.
const BY_FILES: &str = "the files of the configuration";

/// A candidate with what was found besides, and the files that it was read from.
struct Read {
    candidate: Candidate,
    warnings: Vec<Diagnostic>,
    watched: Arc<Watched>,
    /// The changes of settings in it.
    on_disk: Option<authority::OnDisk>,
}

impl Operator {
    /// Reads the configuration again.
    ///
    /// # Errors
    ///
    /// Every mistake in it, and everything else that is in its way; then nothing has changed.
    pub fn reload(&self) -> Result<api::Reload, OperatorError> {
        let mut current = lock(&self.current);
        systemd::reloading();
        let begin = Instant::now();
        let outcome = self.read_again(&current).and_then(|read| {
            let Read { candidate, warnings, watched, on_disk } = read;
            let before = Arc::clone(&current.loaded);
            self.change(&mut current, candidate)?;
            self.audit_files(&before, &current.loaded);
            self.changes_taken(on_disk, &current.loaded);
            Ok((warnings, watched))
        });
        let mut view = lock(&self.view);
        let outcome = match outcome {
            Ok((warnings, watched)) => {
                let exempt_before = Arc::clone(&view.bans.exempt);
                view.show(&current);
                view.show_settings(&current.loaded.settings);
                view.watched = watched;
                self.warn_of_bans(&exempt_before, &view.bans.exempt);
                report(&warnings);
                let changed = settings::diff(&self.facts.startup, &current.loaded.settings.startup);
                let needs_restart: Vec<String> = changed.into_iter().map(|setting| setting.path).collect();
                if !needs_restart.is_empty() {
                    warn!(settings = %needs_restart.join(", "), "changed, but read only at the start");
                }
                info!(revision = view.revision, file = %self.facts.origin.name(), "configuration in use");
                let diagnostics = warnings.iter().map(api::Diagnostic::from).collect();
                let stands = self.stands(view.revision, begin);
                Ok(api::Reload { is_adopted: true, needs_restart, diagnostics, ..stands })
            }
            Err(diagnostics) => {
                view.is_last_reload_refused = true;
                report(&diagnostics);
                error!(revision = view.revision, "not reloaded; the running configuration stays in use");
                let stays = self.stands(view.revision, begin);
                Err(OperatorError::Invalid(Box::new(Rejected { diagnostics, stays })))
            }
        };
        drop((view, current));
        self.follow_zones();
        self.tell_reload(("configuration", None), &outcome);
        systemd::ready(&self.summary());
        outcome
    }

    /// Says what is in use, after work that began at `begin`.
    pub(super) fn stands(&self, revision: u64, begin: Instant) -> api::Reload {
        api::Reload {
            revision,
            refused: refused(&self.components.manager),
            took_ms: begin.elapsed().as_millis() as u64,
            ..api::Reload::default()
        }
    }

    /// Reads and compiles the configuration; an error is every mistake in it.
    fn read_again(&self, current: &Revision) -> Result<Read, Vec<Diagnostic>> {
        let previous = current.as_previous();
        let (loaded, watched, compiled, on_disk) = apart(|| -> Result<_, Vec<Diagnostic>> {
            let files = self.facts.origin.load()?;
            if let Some(mistake) = files.emptied(&current.loaded) {
                return Err(vec![mistake]);
            }
            let (mut loaded, on_disk) = self.with_changes_of_disk(files)?;
            loaded.settings.has_added_zones = self.components.manager.has_added();
            let watched = Watched::of(&loaded.settings);
            let compiled = compile(
                &loaded,
                &self.facts.addresses,
                Some(previous),
                &progress::serving(&self.components.manager, &self.components.own_lists),
            )?;
            Ok((Arc::new(loaded), watched, compiled, on_disk))
        })?;
        let Compiled { plans, zones } = compiled;
        let revision = Revision { number: current.number + 1, loaded, plans, zones };
        let candidate = Candidate::with_last_signed(&self.components.signing, revision, Cause::Reload);
        let candidate = candidate.by(BY_FILES);
        let warnings = [&*candidate.revision.loaded.warnings, &candidate.revision.plans.warnings].concat();
        Ok(Read { candidate, warnings, watched, on_disk })
    }

    /// Brings a candidate into use, or returns everything that is in its way; then nothing has
    /// changed.
    pub(super) fn change(&self, current: &mut Revision, candidate: Candidate) -> Result<(), Vec<Diagnostic>> {
        *current = bring_into_use(&self.components, candidate, Some(current))?;
        Ok(())
    }

    /// Starts what signs zones, if there is anything to sign.
    pub(crate) fn start_signing(&self) {
        if let Err(error) = self.components.signing.start(None, Arc::clone(&self.components.orders) as _) {
            error!(%error, "zones cannot be signed: no thread for it");
        }
    }

    /// Serves versions of zones that were just signed. They concern nobody but the manager of
    /// zones: the configuration stays as it was compiled.
    pub(crate) fn serve_signed(&self, zones: Vec<Arc<Zone>>) {
        // Those that change while the server runs are looked after elsewhere.
        let written: Vec<_> =
            zones.into_iter().filter_map(|zone| self.components.manager.take_signed(zone).err()).collect();
        if written.is_empty() {
            return;
        }
        let mut current = lock(&self.current);
        if current.zones.take_signed(written) {
            let planner = ZonePlanner::of(&current.plans);
            self.components.manager.adopt(&current.zones, &planner, None);
        }
    }

    /// Answers from zones that were added to a server without any: until then no policy had
    /// anything to answer from.
    pub(super) fn serve_added(&self) -> Result<(), Vec<Diagnostic>> {
        let mut current = lock(&self.current);
        if current.zones.served().is_some() {
            return Ok(());
        }
        let mut loaded = (*current.loaded).clone();
        loaded.settings.has_added_zones = true;
        let (addresses, progress) =
            (&self.facts.addresses, progress::serving(&self.components.manager, &self.components.own_lists));
        // There is no set without a name, so all sets stay as they are.
        let compiled = compile_for_set(&loaded, addresses, current.as_previous(), &progress, "")?;
        let Compiled { plans, zones } = compiled;
        let revision = Revision { number: current.number, loaded: Arc::new(loaded), plans, zones };
        self.change(&mut current, Candidate { revision, cause: Cause::Zones, signing: None, by: None })
    }

    /// Reads the lists of one set again.
    ///
    /// # Errors
    ///
    /// There is no such set, or its lists have mistakes; then nothing has changed.
    pub fn set_reload(&self, name: &str) -> Result<api::Reload, OperatorError> {
        self.read_files(Some(name))
    }

    /// Reads every file besides the configuration's own again.
    ///
    /// # Errors
    ///
    /// They have mistakes; then nothing has changed.
    pub fn refresh(&self) -> Result<api::Reload, OperatorError> {
        self.read_files(None)
    }

    fn read_files(&self, only: Option<&str>) -> Result<api::Reload, OperatorError> {
        let outcome = self.try_read_files(only);
        self.tell_reload((if only.is_some() { "set" } else { "files" }, only), &outcome);
        outcome
    }

    fn try_read_files(&self, only: Option<&str>) -> Result<api::Reload, OperatorError> {
        let mut current = lock(&self.current);
        if let Some(name) = only
            && current.plans.sets.iter().all(|(other, _)| other != name)
        {
            return Err(OperatorError::not_found(What::Set, name));
        }
        let begin = Instant::now();
        let loaded = Arc::clone(&current.loaded);
        let previous = current.as_previous();
        let (watched, compiled) = apart(|| {
            let watched = Watched::of(&loaded.settings);
            let progress = progress::serving(&self.components.manager, &self.components.own_lists);
            let addresses = &self.facts.addresses;
            let compiled = match only {
                Some(set) => compile_for_set(&loaded, addresses, previous, &progress, set),
                None => compile(&loaded, addresses, Some(previous), &progress),
            };
            (watched, compiled)
        });
        let changed = compiled.and_then(|Compiled { plans, zones }| {
            let revision = Revision { number: current.number + 1, loaded: Arc::clone(&loaded), plans, zones };
            let candidate = match only {
                // Zones are not read again for a set.
                Some(_) => Candidate { revision, cause: Cause::Files, signing: None, by: None },
                None => Candidate::with_last_signed(&self.components.signing, revision, Cause::Files),
            };
            self.change(&mut current, candidate)
        });
        if let Err(diagnostics) = changed {
            error!("changed files were not taken into use; what they held before stays in use");
            report(&diagnostics);
            let stays = self.stands(lock(&self.view).revision, begin);
            return Err(OperatorError::Invalid(Box::new(Rejected { diagnostics, stays })));
        }
        if let Some(set) = only {
            self.note_read(&config::files_of_set(&loaded.settings, set), &watched);
        }
        let warnings = &current.plans.warnings;
        report(warnings);
        let mut view = lock(&self.view);
        view.show(&current);
        if only.is_none() {
            // They may include other files than before.
            view.watched = watched;
        }
        let diagnostics = warnings.iter().map(api::Diagnostic::from).collect();
        Ok(api::Reload { is_adopted: true, diagnostics, ..self.stands(view.revision, begin) })
    }
}

/// Does work that may take seconds on a thread that steps back behind those that answer queries.
pub(super) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            sys::step_back();
            work()
        });
        // A panic ends the process before anybody waits for its outcome.
        thread.join().expect("the thread returned")
    })
}

/// Logs what the checker found.
pub(super) fn report(found: &[Diagnostic]) {
    found.iter().for_each(report_one);
}

/// Logs what the checker found and had not found before: thousands of changes may each have a
/// warning, and the next change is no reason to log them all again.
pub(super) fn report_new(found: &[Diagnostic], before: &[Diagnostic]) {
    let before: HashSet<String> = before.iter().map(Diagnostic::line).collect();
    found.iter().filter(|diagnostic| !before.contains(&diagnostic.line())).for_each(report_one);
}

fn report_one(diagnostic: &Diagnostic) {
    match diagnostic.severity {
        Severity::Error => error!("{}", diagnostic.line()),
        Severity::Warning => warn!("{}", diagnostic.line()),
    }
}
