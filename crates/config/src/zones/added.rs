//! Zones that are added while the server runs: the settings of one, with what the configuration has
//! for all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::plan::checks::Check;
use ::plan::zones::{CatalogRole, Finding, Synthesis, ZonePlan};
use diagnostic::suggest::nearest;
use diagnostic::{At, Diagnostic, FileId, Problem, Sources, diagnostics};
use environment::Environment;
use lists::Sets;
use sets::AddressSet;
use wire::{Name, NameBuf};

use super::placed;
use super::plan::{Compiler, Trusts};
use crate::compile::trusts;
use settings::load::Loaded;
use settings::{KeySettings, Known, SigningSettings, ZoneSettings, added_zone, check_chosen, named_file};
use yaml::{Entry, Value};

/// Plans zones that are added while the server runs, by what the configuration says.
pub struct Planner {
    /// Templates of zones, as they are written.
    root: Vec<Entry>,
    keys: Vec<KeySettings>,
    signing: Vec<SigningSettings>,
    checks: Vec<Arc<Check>>,
    sets: Sets,
    trusts: Trusts,
    /// Catalogs that are made here.
    catalogs: Vec<NameBuf>,
    sources: Sources,
    /// Relative paths begin where the configuration is.
    folder: PathBuf,
    /// What was said before, and what it means: many zones have the same settings.
    meanings: Mutex<BTreeMap<String, Arc<Meaning>>>,
}

/// A zone that may be added while the server runs.
pub struct Planned {
    /// Its plan.
    pub plan: Arc<ZonePlan>,
    /// What is probably not as it was meant.
    pub warnings: Vec<Diagnostic>,
}

/// Texts of which it is remembered what they mean.
const MEANINGS_MAX: usize = 64;

/// The settings of a zone, for whatever zone they are written.
struct Meaning {
    zone: ZoneSettings,
    clients: Option<Arc<AddressSet>>,
    synthesis: Option<Arc<Synthesis>>,
}

impl Planner {
    /// Takes what concerns zones from a configuration.
    pub(crate) fn new(loaded: &Loaded, sets: &Sets, environment: &dyn Environment) -> Self {
        let root = match &loaded.tree().value {
            Value::Map(entries) => {
                entries.iter().filter(|entry| entry.key == "zone-templates").cloned().collect()
            }
            Value::Null | Value::Scalar(_) | Value::Long(_) | Value::List(_) => Vec::new(),
        };
        let settings = &loaded.settings;
        let made = settings.zones.iter().filter(|zone| zone.catalog_role == Some(CatalogRole::Producer));
        let main = loaded.sources.files().next().and_then(|source| source.path.parent());
        Self {
            root,
            keys: settings.keys.clone(),
            signing: settings.signing.clone(),
            checks: settings.checks.clone(),
            sets: sets.clone(),
            trusts: trusts(settings, environment),
            catalogs: made.map(|zone| zone.name.value).collect(),
            sources: loaded.sources.clone(),
            folder: main.unwrap_or(Path::new("")).to_owned(),
            meanings: Mutex::default(),
        }
    }

    /// Plans a zone with the settings `said`, as it would be at an item of `zones` but for the
    /// name.
    pub fn plan(
        &self,
        apex: Name<'_>,
        said: &str,
        environment: &dyn Environment,
    ) -> Result<Planned, Vec<Diagnostic>> {
        let apex = apex.to_buf();
        let mut problems = Vec::new();
        let Some(meaning) = self.meaning(&apex, said, environment, &mut problems) else {
            return Err(diagnostics(problems, &self.sources_with(&apex, said).0));
        };
        let zone = meaning.zone.clone();
        let file = zone.file.map(|file| At { value: named_file(&file.value, &apex), ..file });
        let zone = ZoneSettings { name: At { value: apex, ..zone.name }, file, ..zone };
        check_chosen(&zone, &mut problems);
        let plan = self.compiler(environment).zone(&zone, &mut problems);
        let (clients, synthesis) = (meaning.clients.clone(), meaning.synthesis.clone());
        let plan = ZonePlan { clients, synthesis, ..plan };
        let failed = problems.iter().any(Problem::is_error);
        let found = match problems.is_empty() {
            true => Vec::new(),
            false => diagnostics(problems, &self.sources_with(&apex, said).0),
        };
        if failed { Err(found) } else { Ok(Planned { plan: Arc::new(plan), warnings: found }) }
    }

    /// Returns where in what was said of a zone these findings are; the zone is the only one of its
    /// plan.
    pub fn place(
        &self,
        apex: Name<'_>,
        said: &str,
        findings: Vec<Finding>,
        environment: &dyn Environment,
    ) -> Vec<Diagnostic> {
        if findings.is_empty() {
            return Vec::new();
        }
        let apex = apex.to_buf();
        // What was planned is known; if it was forgotten since, it is the same again.
        let meaning = self.meaning(&apex, said, environment, &mut Vec::new());
        let zones = meaning.as_ref().map_or(&[][..], |meaning| std::slice::from_ref(&meaning.zone));
        let problems = placed(zones, &[], findings).collect();
        diagnostics(problems, &self.sources_with(&apex, said).0)
    }

    fn compiler<'a>(&'a self, environment: &'a dyn Environment) -> Compiler<'a> {
        Compiler { keys: &self.keys, sets: &self.sets, trusts: &self.trusts, environment }
    }

    /// Returns the configuration's texts, and what was said of a zone as one more of them.
    fn sources_with(&self, apex: &NameBuf, said: &str) -> (Sources, FileId) {
        let mut sources = self.sources.clone();
        // Relative paths begin beside it.
        let file = sources.add(&self.folder.join(format!("zone {apex}")), said.to_owned());
        (sources, file)
    }

    /// Returns what a text means that is said of a zone; `None` if it has mistakes.
    fn meaning(
        &self,
        apex: &NameBuf,
        said: &str,
        environment: &dyn Environment,
        problems: &mut Vec<Problem>,
    ) -> Option<Arc<Meaning>> {
        let meanings = || self.meanings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = meanings().get(said) {
            return Some(Arc::clone(known));
        }
        let zone = self.lower(apex, said, environment, problems);
        let zone = zone.filter(|_| !problems.iter().any(Problem::is_error))?;
        let compiler = self.compiler(environment);
        let (clients, synthesis) = (compiler.clients_of(&zone), compiler.synthesis(&zone).map(Arc::new));
        let meaning = Arc::new(Meaning { zone, clients, synthesis });
        // What is worth a warning is told of each zone.
        if problems.is_empty() {
            let mut meanings = meanings();
            if meanings.len() >= MEANINGS_MAX {
                meanings.clear();
            }
            meanings.insert(said.to_owned(), Arc::clone(&meaning));
        }
        Some(meaning)
    }

    fn lower(
        &self,
        apex: &NameBuf,
        said: &str,
        environment: &dyn Environment,
        problems: &mut Vec<Problem>,
    ) -> Option<ZoneSettings> {
        let (sources, file) = self.sources_with(apex, said);
        let parsed = yaml::parse(file, said, &|_| None, problems);
        let known = Known { signing: &self.signing, keys: &self.keys, checks: &self.checks };
        let zone = added_zone(apex, &parsed.root, &self.root, known, &sources, environment, problems);
        if let Some(catalog) = zone.as_ref().and_then(|zone| zone.catalog.as_ref())
            && !self.catalogs.contains(&catalog.value)
        {
            let message = format!("\"{}\" is not a catalog that is made here", catalog.value);
            let problem = Problem::error(catalog.span, message);
            problems.push(problem.expected("the name of a zone with \"catalog-role: producer\""));
        }
        let chosen = zone.iter().flat_map(|zone| &zone.choose).flat_map(|choice| &choice.alternatives);
        for set in chosen.flat_map(|it| &it.sets) {
            if self.sets.iter().any(|(known, _)| known == set.value) {
                continue;
            }
            let problem = Problem::error(set.span, format!("unknown set \"{}\"", set.value));
            problems.push(match nearest(&set.value, self.sets.iter().map(|(known, _)| known)) {
                Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                None => problem,
            });
        }
        zone
    }
}
