//! Zones that the operator adds and removes while the server runs.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diagnostic::Diagnostic;
use environment::System;
use plan::zones::{Finding, ZonePlan};
use tracing::{info, warn};
use wire::{Name, NameBuf};
use zone::{Change, Pool, Zones};

use crate::error::{ZoneError, explain};
use crate::load::{self, LoadedFile, LoadedZone, SignedHere};
use crate::lock::lock;
use crate::managed::{ManagedZone, Origin};
use crate::report::{ZoneReport, report_of};
use crate::shared::{ByName, Shared, folded, unix_seconds};
use crate::{Register, journal};

/// How often the log says how far the zones that were added are.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What became of a zone that was to be added or removed: perhaps with a finding to report;
/// else why not.
pub type Changed = Result<Option<String>, ZoneError>;

/// Looks at a zone that is to be added or removed, as it is then, and says why it is not the one
/// that was meant.
pub type ExpectZone<'a> = dyn Fn(Option<&ZoneReport>) -> Result<(), String> + 'a;

/// Plans zones that are added while the server runs.
pub trait Planner: Send + Sync {
    /// Plans a zone with the settings `said`, as it would be planned if it was there from the
    /// start.
    ///
    /// # Errors
    ///
    /// What is wrong with these settings.
    fn plan(&self, apex: Name<'_>, said: &str) -> Result<Planned, Vec<Diagnostic>>;

    /// Returns where in the settings of a zone these findings are; the zone is the only one of its
    /// plan.
    fn place(&self, apex: Name<'_>, said: &str, findings: Vec<Finding>) -> Vec<Diagnostic>;
}

/// A zone that may be added, before its file is read.
pub struct Planned {
    /// Its plan.
    pub plan: Arc<ZonePlan>,
    /// What is probably not as it was meant.
    pub warnings: Vec<Diagnostic>,
}

/// A zone that may be added.
pub(crate) struct Addition {
    pub(crate) zone: Arc<LoadedZone>,
    /// What is probably not as it was meant.
    warnings: Vec<Diagnostic>,
    /// Its file.
    file: Option<LoadedFile>,
}

/// Zones that the operator added while the server ran.
pub(crate) struct Added {
    pub(crate) register: Register,
    /// Plans them; absent before anything is adopted, as `pool` is.
    pub(crate) planner: Option<Arc<dyn Planner>>,
    /// What is remembered of signatures that are made while clients wait.
    pub(crate) pool: Option<Arc<Pool>>,
    /// What they were planned as, by their names in lower case.
    pub(crate) planned: BTreeMap<Vec<u8>, Addition>,
}

impl Shared {
    /// Puts the zones in that the operator added; what the configuration has counts.
    pub(crate) fn put_added(
        &self,
        added: &mut Added,
        (before, zones): (&ByName, &mut ByName),
        (base, by): (Option<&Zones>, Option<&str>),
        (begun, changed): (&mut Vec<Arc<ManagedZone>>, &mut Vec<Arc<ManagedZone>>),
    ) {
        let now = unix_seconds();
        let count = added.register.zones().len();
        let mut told = Instant::now();
        let mut planned = BTreeMap::new();
        for (number, (name, said)) in added.register.zones().iter().enumerate() {
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                info!(zones = number, of = count, "opening zones that were added");
            }
            let Ok((apex, _)) = Name::parse(name) else { continue };
            let other = match zones.get(name) {
                Some(_) => Some("the configuration"),
                None if base.is_some_and(|base| base.at(apex).is_some()) => Some("a directory of zones"),
                None => None,
            };
            if let Some(other) = other {
                warn!(zone = %apex, "was added and is in {other}, which counts");
                continue;
            }
            let was_signed = added.planned.get(name).is_some_and(|old| old.zone.plan.sign.is_some());
            let loaded = match self.load_added(added, apex, said) {
                Ok(addition) => {
                    let loaded = Arc::clone(&addition.zone);
                    planned.insert(name.clone(), addition);
                    loaded
                }
                Err(why) => {
                    tracing::error!(zone = %apex, "was added and cannot be served as it was: {why}");
                    match before.get(name).filter(|old| old.origin == Origin::Added) {
                        Some(old) => {
                            zones.insert(name.clone(), Arc::clone(old));
                            continue;
                        }
                        // It is ours, so it gets SERVFAIL.
                        None => Arc::new(LoadedZone::without_file(Arc::new(ZonePlan::nothing(apex)))),
                    }
                }
            };
            if was_signed && !loaded.signed.has_versions() {
                self.signer.end(apex);
            }
            let old = before.get(name).filter(|old| old.origin == Origin::Added);
            let managed = self.keep(old, (&loaded, Origin::Added), (by, now), (&mut *begun, &mut *changed));
            zones.insert(name.clone(), managed);
        }
        added.planned = planned;
    }

    /// Plans a zone that the operator added, and reads its file unless that is as it was.
    fn load_added(&self, added: &Added, apex: Name<'_>, said: &str) -> Result<Addition, ZoneError> {
        let none = || ZoneError::Refused("there is no configuration yet".to_owned());
        let (planner, pool) = added.planner.as_ref().zip(added.pool.as_ref()).ok_or_else(none)?;
        let old = added.planned.get(apex.to_folded().as_bytes());
        let Planned { plan, mut warnings } = planner.plan(apex, said).map_err(ZoneError::Invalid)?;
        let file = old.and_then(|old| old.file.as_ref());
        let synthesized = old.and_then(|old| old.zone.synthesized.as_deref());
        let (zone, file, found) = load::load_one(plan, (self.key, pool), (file, synthesized), &System);
        warnings.extend(planner.place(apex, said, found.findings));
        warnings.extend(found.diagnostics);
        for warning in &warnings {
            warn!(zone = %apex, "{}", warning.line());
        }
        let signed = match &zone.plan.sign {
            Some(policy) => SignedHere::Versions { last: self.signer.begin(apex, policy) },
            None => SignedHere::Nothing,
        };
        Ok(Addition { zone: Arc::new(LoadedZone { signed, ..zone }), warnings, file })
    }

    /// Refuses a zone that is there already.
    fn check_free(&self, apex: NameBuf, base: Option<&Zones>) -> Result<(), ZoneError> {
        let taken = match self.managed(apex.as_name()) {
            Some(other) => match &other.origin {
                Origin::Configured => format!("zone \"{apex}\" is in the configuration"),
                Origin::Added => format!("zone \"{apex}\" was added before"),
                Origin::Member { catalog, .. } => {
                    format!("zone \"{apex}\" is a member of the catalog \"{catalog}\"")
                }
            },
            None if base.is_some_and(|base| base.at(apex.as_name()).is_some()) => {
                format!("zone \"{apex}\" is in a directory of zones")
            }
            None => return Ok(()),
        };
        Err(ZoneError::Refused(taken))
    }

    /// Says what would become of zones that [`Shared::add`] is to add: nothing is kept or signed.
    pub(crate) fn check_add(
        &self,
        apexes: &[NameBuf],
        said: &str,
        expect: Option<&ExpectZone<'_>>,
    ) -> Vec<Changed> {
        let added = lock(&self.adopting);
        let base = lock(&self.common).base.clone();
        let none = || ZoneError::Refused("there is no configuration yet".to_owned());
        let check = |apex: &NameBuf| -> Changed {
            self.check_expected(*apex, expect)?;
            self.check_free(*apex, base.as_deref())?;
            let (planner, pool) = added.planner.as_ref().zip(added.pool.as_ref()).ok_or_else(none)?;
            let Planned { plan, mut warnings } =
                planner.plan(apex.as_name(), said).map_err(ZoneError::Invalid)?;
            let (_, _, found) = load::load_one(plan, (self.key, pool), (None, None), &System);
            warnings.extend(planner.place(apex.as_name(), said, found.findings));
            warnings.extend(found.diagnostics);
            Ok((!warnings.is_empty()).then(|| explain(&warnings)))
        };
        apexes.iter().map(check).collect()
    }

    pub(crate) fn add(
        self: &Arc<Self>,
        apexes: &[NameBuf],
        said: &str,
        (expect, by): (Option<&ExpectZone<'_>>, &str),
    ) -> Vec<Changed> {
        let mut added = lock(&self.adopting);
        let base = lock(&self.common).base.clone();
        let now = unix_seconds();
        let mut outcomes: Vec<Changed> = Vec::with_capacity(apexes.len());
        let mut planned: BTreeMap<Vec<u8>, Addition> = BTreeMap::new();
        for apex in apexes {
            let name = folded(apex.as_name());
            let is_free = match planned.contains_key(&name) {
                true => Err(ZoneError::Refused(format!("zone \"{apex}\" is there twice"))),
                false => {
                    self.check_expected(*apex, expect).and_then(|()| self.check_free(*apex, base.as_deref()))
                }
            };
            let addition = is_free.and_then(|()| self.load_added(&added, apex.as_name(), said));
            outcomes.push(addition.map(|addition| {
                let note = (!addition.warnings.is_empty()).then(|| explain(&addition.warnings));
                planned.insert(name, addition);
                note
            }));
        }
        let new: Vec<NameBuf> = planned.values().map(|addition| addition.zone.plan.apex).collect();
        if new.is_empty() {
            return outcomes;
        }
        // What was kept of an earlier zone of the name is not this one's.
        let stale = new
            .iter()
            .try_for_each(|apex| journal::Journal::new(Arc::clone(&self.disk), apex.as_name()).unlink());
        let managed =
            stale.and_then(|()| self.disk.sync_names()).and_then(|()| added.register.add(&new, said));
        if let Err(error) = managed {
            tracing::error!(%error, "no zone is added: that cannot be kept");
            new.iter().for_each(|apex| self.signer.end(apex.as_name()));
            let refused = || ZoneError::NotKept(io::Error::new(error.kind(), error.to_string()));
            return outcomes.into_iter().map(|outcome| outcome.and_then(|_| Err(refused()))).collect();
        }
        let mut begun = Vec::with_capacity(new.len());
        for (name, addition) in planned {
            let managed =
                Arc::new(ManagedZone::open(&addition.zone, Origin::Added, self.key, &self.disk, now));
            lock(&managed.current).note_change(by, now);
            added.planned.insert(name.clone(), addition);
            self.change(|zones| zones.insert(name, Arc::clone(&managed)));
            begun.push(managed);
        }
        info!(zones = begun.len(), first = %new[0], "added by order of the operator");
        self.watch(begun.iter());
        self.publish_changes(begun.iter().flat_map(|managed| managed.changes()).collect());
        self.follow(&begun);
        for managed in &begun {
            self.have_signed(managed);
        }
        self.produce_for(begun.iter());
        outcomes
    }

    /// Refuses a change of a zone that is another than the one that it is made for.
    fn check_expected(&self, apex: NameBuf, expect: Option<&ExpectZone<'_>>) -> Result<(), ZoneError> {
        let Some(expect) = expect else { return Ok(()) };
        let reports = self.report(Some(apex.as_name()), unix_seconds());
        expect(reports.first()).map_err(ZoneError::Conflict)
    }

    /// Lets an added zone take no change any more, unless it is another than the one that is to be
    /// removed. What changes it meanwhile comes before that or is refused.
    fn retire(&self, apex: NameBuf, expect: Option<&ExpectZone<'_>>) -> Result<(), ZoneError> {
        let managed = self.managed(apex.as_name()).filter(|managed| managed.origin == Origin::Added);
        let Some(managed) = managed else { return self.check_expected(apex, expect) };
        let mut current = lock(&managed.current);
        if let Some(expect) = expect {
            expect(Some(&report_of(&managed, &current, unix_seconds()))).map_err(ZoneError::Conflict)?;
        }
        current.is_removed = true;
        Ok(())
    }

    /// Lets zones be changed again that are not removed.
    fn reinstate(&self, apexes: &[NameBuf]) {
        for managed in apexes.iter().filter_map(|apex| self.managed(apex.as_name())) {
            lock(&managed.current).is_removed = false;
        }
    }

    /// Refuses a zone that was not added.
    fn check_added(&self, added: &Added, apex: NameBuf) -> Result<(), ZoneError> {
        match self.managed(apex.as_name()) {
            _ if added.register.zones().contains_key(&folded(apex.as_name())) => Ok(()),
            Some(other) => Err(ZoneError::Refused(match &other.origin {
                Origin::Member { catalog, .. } => {
                    format!("zone \"{apex}\" is a member of the catalog \"{catalog}\"")
                }
                Origin::Configured | Origin::Added => {
                    format!("zone \"{apex}\" is in the configuration: take it out there")
                }
            })),
            None => Err(ZoneError::NotAdded(Box::new(apex))),
        }
    }

    /// Says what would become of zones that [`Shared::remove`] is to take out.
    pub(crate) fn check_remove(&self, apexes: &[NameBuf], expect: Option<&ExpectZone<'_>>) -> Vec<Changed> {
        let added = lock(&self.adopting);
        let check = |apex: &NameBuf| {
            self.check_expected(*apex, expect)?;
            self.check_added(&added, *apex).map(|()| None)
        };
        apexes.iter().map(check).collect()
    }

    pub(crate) fn remove(
        self: &Arc<Self>,
        apexes: &[NameBuf],
        expect: Option<&ExpectZone<'_>>,
    ) -> Vec<Changed> {
        let mut added = lock(&self.adopting);
        let mut gone: BTreeMap<Vec<u8>, NameBuf> = BTreeMap::new();
        let mut outcomes: Vec<Changed> = Vec::with_capacity(apexes.len());
        for apex in apexes {
            let name = folded(apex.as_name());
            // Who expects something else is told that first.
            let is_there = match self.check_added(&added, *apex) {
                Ok(()) => self.retire(*apex, expect),
                Err(why) => self.check_expected(*apex, expect).and(Err(why)),
            };
            outcomes.push(is_there.map(|()| {
                gone.insert(name, *apex);
                None
            }));
        }
        let names: Vec<NameBuf> = gone.values().copied().collect();
        if names.is_empty() {
            return outcomes;
        }
        if let Err(error) = added.register.remove(&names) {
            tracing::error!(%error, "no zone is removed: that cannot be kept");
            self.reinstate(&names);
            let refused = || ZoneError::NotKept(io::Error::new(error.kind(), error.to_string()));
            return outcomes.into_iter().map(|outcome| outcome.and_then(|_| Err(refused()))).collect();
        }
        let mut ended = Vec::with_capacity(gone.len());
        for name in gone.keys() {
            added.planned.remove(name);
            let managed = self.change(|zones| match zones.get(name) {
                // The configuration has one of the name, too.
                Some(managed) if managed.origin != Origin::Added => None,
                _ => zones.remove(name),
            });
            ended.extend(managed);
        }
        for managed in &ended {
            managed.end();
        }
        info!(zones = ended.len(), first = %names[0], "removed by order of the operator");
        self.publish_changes(ended.iter().map(|managed| Change::Remove(managed.apex)).collect());
        self.unwatch(ended.iter());
        for managed in &ended {
            self.signer.end(managed.apex.as_name());
            managed.unlink_files();
        }
        if let Err(error) = self.disk.sync_names() {
            warn!(%error, "files of removed zones may come back after a loss of power");
        }
        self.produce_for(ended.iter());
        outcomes
    }
}
