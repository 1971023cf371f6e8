//! The zones of a plan: read from their files, kept over reloads, put together as what is served.

mod check;
mod files;
mod health_checks;
mod own_keys;
mod signed;
mod synthesis;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::Diagnostic;
use environment::{Environment, Loading, SetProgress};
use plan::signing::ToSign;
use plan::zones::{Finding, Part, Subject, ZonePlan, ZonesPlan};
use wire::{HashKey, Name, NameBuf};
use zone::{Aliases, Pool, Zone, Zones};

use files::{Source, folded, sources};
use signed::{SignedZones, Wanted};
use synthesis::{GuardedZones, check_signed, is_proven};

pub use check::{Checked, check};
pub(crate) use files::LoadedFile;
pub use files::name_of;
pub use health_checks::Checks;
pub(crate) use synthesis::{Synthesized, synthesized};

/// After so many files, progress is reported.
const HEAR_EVERY: usize = 256;

/// Octets for what is known of names that ALIAS records lead to: some 100,000 of them.
const ALIASES_OCTETS_MAX: usize = 16 << 20;

/// What is worth a warning about zones that were loaded.
#[derive(Default)]
pub struct Found {
    /// What does not fit the plan, for whoever knows where that was written.
    pub findings: Vec<Finding>,
    /// What is wrong in the files, with its places.
    pub diagnostics: Vec<Diagnostic>,
}

/// What of a zone the server signs.
#[derive(Clone)]
pub(crate) enum SignedHere {
    /// Nothing.
    Nothing,
    /// Its file: only versions that come from here are served.
    File,
    /// Whatever version there is, by transfers and updates: served is what was signed of it.
    Versions {
        /// The one that was signed last, before the server was started.
        last: Option<Arc<Zone>>,
    },
}

impl SignedHere {
    /// Returns whether versions that come while the server runs are signed before they are served.
    pub(crate) const fn has_versions(&self) -> bool {
        matches!(self, Self::Versions { .. })
    }

    /// Returns whether only what is signed of a file is served.
    pub(crate) const fn is_file(&self) -> bool {
        matches!(self, Self::File)
    }
}

/// A zone as its plan and its file have it.
#[derive(Clone)]
pub(crate) struct LoadedZone {
    pub(crate) plan: Arc<ZonePlan>,
    /// The version in its file, if it has one that can be served; of a zone whose file the server
    /// signs, the one signed last.
    pub(crate) zone: Option<Arc<Zone>>,
    /// What of it the server signs.
    pub(crate) signed: SignedHere,
    /// Why the zone is not as its file says.
    pub(crate) failed: Option<Arc<str>>,
    /// A number that stands for what is in its files, or for what was signed; 0 if that is not what
    /// `zone` is.
    pub(crate) source: u64,
    /// What it has besides its records, if it came while the server runs; that of the plan is
    /// served with it.
    pub(crate) synthesized: Option<Arc<Synthesized>>,
}

impl LoadedZone {
    /// Returns a zone of which nothing is there.
    pub(crate) fn without_file(plan: Arc<ZonePlan>) -> Self {
        Self { plan, zone: None, signed: SignedHere::Nothing, failed: None, source: 0, synthesized: None }
    }
}

/// A zone that is not as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The zone; `None`: it is not known which zones the file has.
    pub apex: Option<NameBuf>,
    /// Its file.
    pub file: PathBuf,
    /// The set that it is in.
    pub set: Option<String>,
    /// What is wrong.
    pub why: Arc<str>,
}

/// The zones of a plan, as they are served.
#[derive(Clone)]
pub struct LoadedZones {
    plan: Arc<ZonesPlan>,
    key: HashKey,
    files: Vec<LoadedFile>,
    /// Each zone that is planned by its name and in no set, in the order of the plan, and those of
    /// directories that other servers may do something with.
    zones: Arc<[Arc<LoadedZone>]>,
    /// The zones as they are written; `None` if there are none.
    written: Option<Arc<Zones>>,
    /// Those that the server signs, and what is served: `written`, and what was signed in place of
    /// what is written.
    signed: SignedZones,
    sets: BTreeMap<String, Arc<Zones>>,
    checks: Checks,
    /// Stays over reloads, as `pool` does.
    aliases: Arc<Aliases>,
    pool: Arc<Pool>,
}

/// Zones of one set that are loaded, the names of those that are not, and those of directories that
/// not everybody may query.
#[derive(Default)]
struct Group {
    loaded: Vec<Arc<Zone>>,
    missing: Vec<NameBuf>,
    guarded: GuardedZones,
}

impl LoadedZones {
    /// Loads the zones of a plan, or takes over those of `previous` whose files have not changed.
    /// Names are hashed with `key`, which stays the same while the server runs.
    pub fn load(
        plan: &Arc<ZonesPlan>,
        key: HashKey,
        previous: Option<&Self>,
        environment: &dyn Environment,
    ) -> (Self, Found) {
        let mut found = Found::default();
        let sources = sources(plan, environment, &mut found.findings);
        let pool = previous.map_or_else(|| new_pool(plan, key), |previous| Arc::clone(&previous.pool));
        let aliases = previous.map(|previous| Arc::clone(&previous.aliases));
        let mut files = Vec::with_capacity(sources.len());
        let mut is_same = previous.is_some_and(|previous| {
            previous.files.len() == sources.len() && without_file(&previous.plan).eq(without_file(plan))
        });
        let before = previous.into_iter().flat_map(|previous| &previous.files);
        let before: BTreeMap<_, &LoadedFile> = before.map(|old| (old.source.key(), old)).collect();
        for (number, source) in sources.into_iter().enumerate() {
            if number > 0 && number.is_multiple_of(HEAR_EVERY) {
                let (set, list) = ("zones", None);
                environment.hear(&SetProgress { what: Loading::Zone, set, list, count: number });
            }
            let old = before.get(&source.key()).copied();
            if let Some(old) = old.filter(|old| old.is_current(&source, environment)) {
                files.push(LoadedFile { source, ..old.clone() });
                continue;
            }
            is_same = false;
            files.push(files::load(source, (key, &pool), old, environment, &mut found));
        }
        let mut zones = Self {
            plan: Arc::clone(plan),
            key,
            files,
            zones: Arc::from([]),
            written: previous.filter(|_| is_same).and_then(|previous| previous.written.clone()),
            signed: previous.map(|previous| previous.signed.clone()).unwrap_or_default(),
            sets: previous.filter(|_| is_same).map(|previous| previous.sets.clone()).unwrap_or_default(),
            checks: previous.map(|previous| previous.checks.clone()).unwrap_or_default(),
            aliases: aliases.unwrap_or_else(|| Arc::new(Aliases::new(ALIASES_OCTETS_MAX, key))),
            pool,
        };
        zones.put_together(is_same, &mut found.findings);
        (zones, found)
    }

    /// Serves what is loaded as another plan of the same zones says; no file is looked at.
    pub fn replan(&self, plan: &Arc<ZonesPlan>) -> (Self, Found) {
        let mut found = Found::default();
        let mut zones = Self { plan: Arc::clone(plan), ..self.clone() };
        for source in zones.files.iter_mut().map(|file| &mut file.source) {
            let Subject::Directory(number) = source.subject else { continue };
            if let Some(directory) = plan.directories.get(number) {
                source.clients.clone_from(&directory.clients);
                source.common.clone_from(&directory.common);
            }
        }
        zones.put_together(true, &mut found.findings);
        (zones, found)
    }

    /// Takes versions that the server signed; they are served from now on. Returns whether any is
    /// another one than before.
    pub fn take_signed(&mut self, zones: impl IntoIterator<Item = Arc<Zone>>) -> bool {
        let mut is_new = false;
        for zone in zones {
            is_new |= self.signed.take(zone);
        }
        if is_new {
            self.sign();
            // Their findings were reported when they were loaded.
            self.zones = self.listed(&mut Vec::new());
        }
        is_new
    }

    /// Returns what they were loaded for.
    pub const fn plan(&self) -> &Arc<ZonesPlan> {
        &self.plan
    }

    /// Returns what is answered from; `None` if no zone is planned.
    pub const fn served(&self) -> Option<&Arc<Zones>> {
        self.signed.served()
    }

    /// Returns what policies answer from, by name.
    pub const fn sets(&self) -> &BTreeMap<String, Arc<Zones>> {
        &self.sets
    }

    /// Returns the zones that the server signs, in the order of the plan.
    pub fn to_sign(&self) -> &[ToSign] {
        self.signed.to_sign()
    }

    /// Returns what is watched of what records lead to.
    pub const fn checks(&self) -> &Checks {
        &self.checks
    }

    /// Returns what is known of names that ALIAS records lead to.
    pub const fn aliases(&self) -> &Arc<Aliases> {
        &self.aliases
    }

    /// Returns the memory for signatures that are made while clients wait, which those of all zones
    /// share.
    pub const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns each zone that changes while the server runs, or that other servers may do something
    /// with.
    pub(crate) const fn zones(&self) -> &Arc<[Arc<LoadedZone>]> {
        &self.zones
    }

    /// Returns the zones that are not as their files say: what was served of them before still is,
    /// or nothing.
    pub fn failing(&self) -> Vec<Failing> {
        let all = self.files.iter().flat_map(|file| {
            file.failed.iter().map(|(apex, why)| Failing {
                apex: *apex,
                file: file.source.file.clone(),
                set: file.source.set.clone(),
                why: Arc::clone(why),
            })
        });
        all.collect()
    }

    fn put_together(&mut self, is_same: bool, findings: &mut Vec<Finding>) {
        self.serve(is_same, findings);
        self.sign();
        self.zones = self.listed(findings);
    }

    fn sign(&mut self) {
        self.signed = SignedZones::compile(self.wanted_signed(), self.written.as_ref(), &self.signed);
    }

    /// Puts together what is served, with what zones answer besides their records. If `is_same`,
    /// that may be there.
    fn serve(&mut self, is_same: bool, findings: &mut Vec<Finding>) {
        let plan = Arc::clone(&self.plan);
        // What zones share that have nothing else in common.
        let aliases = Arc::clone(&self.aliases);
        let with_shared = |zones: Zones| {
            let zones = zones.with_aliases(Arc::clone(&aliases));
            if plan.rotates { zones.rotating() } else { zones }
        };
        let none = || Arc::new(with_shared(Zones::new(self.key, Vec::new())));
        if plan.has_added && self.written.is_none() && is_same {
            self.written = Some(none());
        }
        let is_plain = |zones: &Arc<Zones>| !zones.are_for_clients() && zones.rotates() == plan.rotates;
        let is_special = |zone: &Arc<ZonePlan>| zone.synthesis.is_some() || zone.clients.is_some();
        let are_special = plan.zones.iter().any(is_special)
            || plan.directories.iter().any(|directory| directory.clients.is_some());
        let mut loaded = self.files.iter().flat_map(|file| &file.zones).filter_map(|(_, zone)| zone.as_ref());
        let has_aliases = loaded.any(|zone| zone.facts().aliases > 0);
        if is_same
            && !are_special
            && !has_aliases
            && self.written.iter().chain(self.sets.values()).all(is_plain)
        {
            return;
        }
        let mut all: BTreeMap<Option<String>, Arc<Zones>> = BTreeMap::new();
        let mut checks = Checks::default();
        for (set, Group { loaded, missing, guarded }) in self.groups(findings) {
            let checks = (&self.checks, &mut checks);
            let specials = self.specials(set.as_deref(), (&loaded, &guarded), checks, findings);
            let zones = Zones::with_missing(self.key, loaded, &missing).with_specials(specials);
            self.check_aliases(&zones, set.as_deref(), findings);
            all.insert(set, Arc::new(with_shared(zones)));
        }
        let written = all.remove(&None).or_else(|| plan.has_added.then(none));
        let mut sets: BTreeMap<String, Arc<Zones>> =
            all.into_iter().filter_map(|(set, zones)| Some((set?, zones))).collect();
        // A directory may have no zone yet; policies name its set all the same.
        for set in plan.directories.iter().filter_map(|directory| directory.set.as_ref()) {
            sets.entry(set.clone()).or_insert_with(|| Arc::new(Zones::new(self.key, Vec::new())));
        }
        self.checks = checks;
        self.written = written;
        self.sets = sets;
    }

    /// Returns the zones of each set. Of two with one name, the first is served.
    fn groups(&self, findings: &mut Vec<Finding>) -> BTreeMap<Option<String>, Group> {
        let mut seen: BTreeSet<(Option<&str>, Vec<u8>)> = BTreeSet::new();
        let mut groups: BTreeMap<Option<String>, Group> = BTreeMap::new();
        // Before those of directories: what the plan names counts. They are served when they have
        // come.
        for apex in without_file(&self.plan).filter(|apex| !self.is_for_resolvers(apex)) {
            seen.insert((None, folded(apex)));
            groups.entry(None).or_default().missing.push(*apex);
        }
        for file in &self.files {
            let Source { set, clients, subject, .. } = &file.source;
            if file.source.is_for_resolvers {
                continue;
            }
            let group = groups.entry(set.clone()).or_default();
            for (apex, zone) in &file.zones {
                if !seen.insert((set.as_deref(), folded(apex))) {
                    let path = file.source.file.display();
                    let message = format!("zone \"{apex}\" is there twice; that of \"{path}\" is not served");
                    findings.push(Finding { subject: *subject, part: Part::File, message, expected: None });
                    continue;
                }
                match zone {
                    Some(zone) => group.loaded.push(Arc::clone(zone)),
                    None => group.missing.push(*apex),
                }
                group.guarded.extend(clients.as_ref().map(|clients| (*apex, Arc::clone(clients))));
            }
        }
        groups
    }

    /// Returns whether a zone that the plan names is for resolvers alone.
    fn is_for_resolvers(&self, apex: &NameBuf) -> bool {
        let mut named = self.plan.zones.iter().filter(|zone| zone.is_for_resolvers);
        named.any(|zone| zone.set.is_none() && zone.apex == *apex)
    }

    /// Returns the zones that are to be signed: those that the plan names, then those of
    /// directories.
    fn wanted_signed(&self) -> Vec<Wanted> {
        let named = self.plan.zones.iter().filter(|zone| zone.set.is_none());
        let mut seen: BTreeSet<Vec<u8>> = named.clone().map(|zone| folded(&zone.apex)).collect();
        let wanted = named.filter_map(|zone| {
            let policy = Arc::clone(zone.sign.as_ref()?);
            Some(Wanted { apex: zone.apex, policy, changes: zone.changes() })
        });
        let mut all: Vec<Wanted> = wanted.collect();
        for file in self.files.iter().filter(|file| file.source.set.is_none()) {
            let Some(policy) = &file.source.sign else { continue };
            for (apex, _) in &file.zones {
                if seen.insert(folded(apex)) {
                    let changes = file.source.common.as_ref().is_some_and(|common| common.changes());
                    all.push(Wanted { apex: *apex, policy: Arc::clone(policy), changes });
                }
            }
        }
        all
    }

    /// Returns each zone that has a plan of its own. Zones of sets have none, nor have those of
    /// directories without settings for other servers, so that these have no rights to them.
    fn listed(&self, findings: &mut Vec<Finding>) -> Arc<[Arc<LoadedZone>]> {
        let mut files: BTreeMap<Vec<u8>, &LoadedFile> = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.source.set.is_none()) {
            if let Some(apex) = &file.source.apex {
                // Those that the plan names are the first.
                files.entry(folded(apex)).or_insert(file);
            }
        }
        let mut all = Vec::new();
        let named = self.plan.zones.iter().enumerate().filter(|(_, zone)| zone.set.is_none());
        for (number, plan) in named {
            let file = files.get(&folded(&plan.apex)).copied().filter(|_| plan.file.is_some());
            let signed = self.signed_here(plan, plan.apex.as_name());
            let (zone, source) = match signed.is_file() {
                true => self.signed_last(plan.apex.as_name()),
                false => file.map_or((None, 0), |file| file.version(&plan.apex)),
            };
            findings
                .extend(zone.as_deref().and_then(|zone| refused_updates(plan, zone, Subject::Zone(number))));
            let failed = file.and_then(|file| file.failure(&plan.apex));
            let plan = Arc::clone(plan);
            all.push(Arc::new(LoadedZone { plan, zone, signed, failed, source, synthesized: None }));
        }
        self.list_directories(&mut all, findings);
        all.into()
    }

    /// Lists the zones of directories that other servers may do something with. A zone that is
    /// there twice is that of what the plan names, or of the first directory.
    fn list_directories(&self, all: &mut Vec<Arc<LoadedZone>>, findings: &mut Vec<Finding>) {
        if self.files.iter().all(|file| file.source.common.is_none()) {
            return;
        }
        let named = self.plan.zones.iter().filter(|zone| zone.set.is_none());
        let mut seen: BTreeSet<Vec<u8>> = named.map(|zone| folded(&zone.apex)).collect();
        for file in self.files.iter().filter(|file| file.source.set.is_none()) {
            for (apex, zone) in &file.zones {
                let is_first = seen.insert(folded(apex));
                let Some(common) = file.source.common.as_ref().filter(|_| is_first) else { continue };
                let signed = self.signed_here(common, apex.as_name());
                let (zone, source) = match signed.is_file() {
                    true => self.signed_last(apex.as_name()),
                    false => (zone.clone(), file.number()),
                };
                let path = Some(file.source.file.clone());
                let plan = Arc::new(ZonePlan { apex: *apex, file: path, ..ZonePlan::clone(common) });
                let subject = file.source.subject;
                findings.extend(zone.as_deref().and_then(|zone| refused_updates(&plan, zone, subject)));
                let failed = file.failure(apex);
                all.push(Arc::new(LoadedZone { plan, zone, signed, failed, source, synthesized: None }));
            }
        }
    }

    /// Returns what of a zone the server signs.
    fn signed_here(&self, plan: &ZonePlan, apex: Name<'_>) -> SignedHere {
        match plan.sign {
            None => SignedHere::Nothing,
            Some(_) if plan.changes() => {
                SignedHere::Versions { last: self.signed.last(apex).map(Arc::clone) }
            }
            Some(_) => SignedHere::File,
        }
    }

    /// Returns the version of a zone that the server signed last, and its number.
    fn signed_last(&self, apex: Name<'_>) -> (Option<Arc<Zone>>, u64) {
        let found = self.served().and_then(|zones| zones.get(apex)).map(Arc::clone);
        // Whoever serves a version keeps it: another one is somewhere else.
        let number = found.as_ref().map_or(0, |zone| Arc::as_ptr(zone).addr() as u64 | 1);
        (found, number)
    }
}

/// Loads a zone that comes while the server runs. `file` and `synthesized` are what it had before,
/// if it was there.
pub(crate) fn load_one(
    plan: Arc<ZonePlan>,
    (key, pool): (HashKey, &Arc<Pool>),
    (file, synthesized): (Option<&LoadedFile>, Option<&Synthesized>),
    environment: &dyn Environment,
) -> (LoadedZone, Option<LoadedFile>, Found) {
    let mut found = Found::default();
    // It is the only one of its plan.
    let subject = Subject::Zone(0);
    let file = Source::of(&plan, subject).map(|source| {
        match file.filter(|old| old.is_current(&source, environment)) {
            Some(old) => LoadedFile { source, ..old.clone() },
            None => files::load(source, (key, pool), file, environment, &mut found),
        }
    });
    let (zone, source) = file.as_ref().map_or((None, 0), |file| file.version(&plan.apex));
    found.findings.extend(zone.as_deref().and_then(|zone| refused_updates(&plan, zone, subject)));
    if plan.synthesis.is_some() {
        let is_proven = zone.as_deref().is_some_and(is_proven);
        found.findings.extend(check_signed(&plan, subject, is_proven));
    }
    let failed = file.as_ref().and_then(|file| file.failure(&plan.apex));
    let synthesized = synthesis::synthesized(&plan, key, synthesized);
    let zone = LoadedZone { zone, failed, source, synthesized, ..LoadedZone::without_file(plan) };
    (zone, file, found)
}

/// Returns an empty memory for signatures that are made while clients wait.
fn new_pool(plan: &ZonesPlan, key: HashKey) -> Arc<Pool> {
    Arc::new(Pool::new(plan.signatures_octets_max, plan.signatures_per_second, key))
}

/// Returns the zones that are planned by their names and have no file.
fn without_file(plan: &ZonesPlan) -> impl Iterator<Item = &NameBuf> {
    plan.zones.iter().filter(|zone| zone.file.is_none()).map(|zone| &zone.apex)
}

/// Finds updates of a zone that is signed with keys of its file: nobody could sign what changes.
fn refused_updates(plan: &ZonePlan, current: &Zone, subject: Subject) -> Option<Finding> {
    if plan.rights.update.is_empty() || !current.facts().has_own_keys {
        return None;
    }
    let message =
        format!("zone \"{}\" is signed with the keys of its file: updates are refused", current.apex());
    Some(Finding {
        subject,
        part: Part::Update,
        message,
        expected: Some("\"sign\" with a policy, or no \"update\""),
    })
}
