//! A configuration comes into use: at a reload, when a file has changed, when a zone was signed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use control::api;
use diagnostic::{Diagnostic, Severity};
use tracing::{error, info, warn};
use zone::Zone;

use super::bans::LiveBans;
use super::files::Watched;
use super::sets::report_sets;
use super::{Running, Work, begin_checks, lock};
use crate::worker::Upstreams;
use crate::{caches, signing, zones};
use crate::{log_level, progress, sys, systemd};

/// How long the workers may take to adopt new upstreams before the policy that uses them is published anyway.
const ADOPTION_PATIENCE: Duration = Duration::from_secs(2);

/// Warnings, settings that need a restart, and the files that were read.
type Reloaded = (Vec<Diagnostic>, Vec<String>, Arc<Watched>);

impl Running {
    /// Reads the configuration again; with mistakes in it, nothing changes.
    pub(crate) fn reload(&self) -> api::Reload {
        let mut work = lock(&self.work);
        systemd::reloading();
        let begin = Instant::now();
        let outcome = self.try_reload(&mut work);
        let mut view = lock(&self.view);
        let reload = match outcome {
            Ok((warnings, needs_restart, watched)) => {
                view.generation += 1;
                view.adopted = Instant::now();
                view.is_last_reload_refused = false;
                view.caches = caches::by_name(&work.plans);
                view.sets = work.plans.sets.clone();
                view.bans = LiveBans::of(&work.plans, &work.loaded);
                view.watched = watched;
                view.listed = super::lists::listed(&work.loaded.settings);
                view.certificates = work.plans.certificates().to_vec();
                view.recorder = super::recorder_file(&work.plans);
                report(&warnings);
                if !needs_restart.is_empty() {
                    warn!(settings = %needs_restart.join(", "), "changed, but read only at the start");
                }
                info!(generation = view.generation, file = %self.origin.name(), "configuration in use");
                let diagnostics = warnings.iter().map(api::Diagnostic::from).collect();
                api::Reload { is_adopted: true, needs_restart, diagnostics, ..api::Reload::default() }
            }
            Err(mistakes) => {
                view.is_last_reload_refused = true;
                report(&mistakes);
                error!(generation = view.generation, "not reloaded; the running configuration stays in use");
                let diagnostics = mistakes.iter().map(api::Diagnostic::from).collect();
                api::Reload { diagnostics, ..api::Reload::default() }
            }
        };
        let reload = api::Reload {
            generation: view.generation,
            refused: zones::refused(&self.manager),
            took_ms: begin.elapsed().as_millis() as u64,
            ..reload
        };
        drop(view);
        systemd::ready(&self.summary());
        reload
    }

    /// Returns the warnings, the settings that need a restart, and the files, or every mistake.
    fn try_reload(&self, work: &mut Work) -> Result<Reloaded, Vec<Diagnostic>> {
        let previous = &work.plans;
        let (loaded, watched, plans) = apart(|| -> Result<_, Vec<Diagnostic>> {
            let mut loaded = self.origin.load()?;
            if let Some(mistake) = loaded.emptied(&work.loaded) {
                return Err(vec![mistake]);
            }
            loaded.settings.has_added_zones = self.manager.has_added();
            let watched = Watched::of(&loaded.settings);
            let plans = config::compile(&loaded, &self.addresses, Some(previous), &progress::logged())?;
            Ok((loaded, watched, plans))
        })?;
        let plans = signing::with_last(&self.signing, &loaded, &self.addresses, plans)?;
        self.put(work, plans);
        self.start_signing();
        self.follower.adopt(signing::alias_plan(&loaded.settings));
        self.log_level.set(log_level::filter(loaded.settings.log_level));
        self.devices.ban(&loaded.settings.deny);
        self.devices.check_routes(config::routes(&loaded.settings.startup));
        let needs_restart = config::settings::diff(&self.startup, &loaded.settings.startup);
        let warnings = [loaded.warnings.clone(), work.plans.warnings.clone()].concat();
        work.loaded = loaded;
        Ok((warnings, needs_restart.into_iter().map(|setting| setting.path).collect(), watched))
    }

    /// Brings a configuration into use.
    pub(super) fn put(&self, work: &mut Work, plans: config::Plans) {
        let mut kept = caches::kept(&plans);
        for kept in &mut kept {
            kept.inherit(&work.kept);
        }
        report_sets(&plans.sets);
        // First the workers know the new upstreams beside the old ones, then the policy that asks the new ones comes
        // into use, then the old ones go: no query meets an upstream that its worker does not know.
        // Before the first query that tells by the new numbers.
        self.orders.adopt(&self.jobs, &plans);
        self.adopt(Arc::new(both(&plans.fetch, &work.plans.fetch)), &plans.relay);
        // What is known to be down is left out from the first answer on.
        begin_checks(&self.checker, &plans);
        self.cell.publish(Arc::clone(&plans.snapshot));
        self.manager.adopt(&plans.zones);
        if let Err(error) = self.tls.adopt(plans.tls.as_ref()) {
            error!(%error, "the TLS library refuses the certificates: those before stay in use");
        }
        self.adopt(Arc::clone(&plans.fetch), &plans.relay);
        work.plans = plans;
        self.has_dumps.store(kept.iter().any(caches::Kept::is_periodic), Ordering::Relaxed);
        work.kept = kept;
    }

    /// Starts what signs zones, if there is anything to sign.
    pub(crate) fn start_signing(&self) {
        if let Err(error) = self.signing.start(Arc::clone(&self.orders) as _) {
            error!(%error, "zones cannot be signed: no thread for it");
        }
    }

    /// Serves versions of zones that were just signed.
    pub(crate) fn serve_signed(&self, zones: Vec<Arc<Zone>>) {
        // Those that change while the server runs are looked after elsewhere.
        let written: Vec<_> =
            zones.into_iter().filter_map(|zone| self.manager.take_signed(zone).err()).collect();
        if written.is_empty() {
            return;
        }
        let mut work = lock(&self.work);
        let taken = written.into_iter().filter(|zone| work.plans.signing.take(Arc::clone(zone))).count();
        if taken == 0 {
            return;
        }
        let compiled = signing::again(&work.loaded, &self.addresses, &work.plans);
        match compiled {
            Ok(plans) => self.put(&mut work, plans),
            Err(mistakes) => {
                report(&mistakes);
                error!("a signed zone was not taken into use");
            }
        }
    }

    /// Reads the lists of one set again, or every file besides the configuration's own; with mistakes in them, nothing
    /// changes.
    pub(crate) fn refresh(&self, only: Option<&str>) -> Result<api::Reload, String> {
        let mut work = lock(&self.work);
        if let Some(name) = only
            && work.plans.sets.iter().all(|(other, _)| other != name)
        {
            return Err(format!("there is no set \"{name}\""));
        }
        let begin = Instant::now();
        let (loaded, previous) = (&work.loaded, &work.plans);
        let (watched, compiled) = apart(|| {
            let watched = Watched::of(&loaded.settings);
            let progress = progress::logged();
            (watched, config::compile_again(loaded, &self.addresses, Some(previous), &progress, only))
        });
        let is_adopted = compiled.is_ok();
        let found = match compiled {
            Ok(plans) => {
                let warnings = plans.warnings.clone();
                if let Some(set) = only {
                    self.note_read(&config::files_of_set(&work.loaded.settings, set), &watched);
                }
                self.put(&mut work, plans);
                warnings
            }
            Err(mistakes) => {
                error!("changed files were not taken into use; what they held before stays in use");
                mistakes
            }
        };
        report(&found);
        let mut view = lock(&self.view);
        if is_adopted {
            view.generation += 1;
            view.caches = caches::by_name(&work.plans);
            view.sets = work.plans.sets.clone();
            view.bans = LiveBans::of(&work.plans, &work.loaded);
            view.certificates = work.plans.certificates().to_vec();
            if only.is_none() {
                // They may include other files than before.
                view.watched = watched;
            }
        }
        let diagnostics = found.iter().map(api::Diagnostic::from).collect();
        let took_ms = begin.elapsed().as_millis() as u64;
        Ok(api::Reload {
            is_adopted,
            generation: view.generation,
            refused: zones::refused(&self.manager),
            diagnostics,
            took_ms,
            ..api::Reload::default()
        })
    }

    /// Gives the workers a plan and waits until they have it.
    fn adopt(&self, plan: Arc<exchange::Plan>, relay: &Arc<exchange::RelayPlan>) {
        let (adopted, heard) = sync_channel(self.worker_handles.len());
        self.upstreams.send_replace(Upstreams { plan, relay: Arc::clone(relay), adopted });
        let deadline = Instant::now() + ADOPTION_PATIENCE;
        for _ in &self.worker_handles {
            let left = deadline.saturating_duration_since(Instant::now());
            if heard.recv_timeout(left).is_err() {
                warn!("a worker is slow to adopt the new upstreams");
                return;
            }
        }
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
    for diagnostic in found {
        match diagnostic.severity {
            Severity::Error => error!("{}", diagnostic.line()),
            Severity::Warning => warn!("{}", diagnostic.line()),
        }
    }
}

/// Returns a plan with the groups of `new` and those of `old` that are gone.
fn both(new: &exchange::Plan, old: &exchange::Plan) -> exchange::Plan {
    let mut both = new.clone();
    both.pools.extend(old.pools.iter().filter(|old| new.pools.iter().all(|new| new.id != old.id)).cloned());
    both
}
