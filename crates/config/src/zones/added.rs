//! Zones that are added while the server runs: what is said of one, with what the configuration has for all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use diagnostic::suggest::nearest;
use diagnostic::{At, Diagnostic, FileId, Problem, Sources, diagnostics};
use lists::Sets;
use wire::{HashKey, Name, NameBuf};
use zone::Pool;

use super::files::{Kept, Wanted, load};
use super::own_keys::OwnKeys;
use super::plan::{failure, plan, written};
use super::specials::{Pattern, check_signed, is_proven};
use super::{SignedHere, ZonePlan};
use crate::load::Loaded;
use crate::lower::{Known, Lowering, check_chosen, named_file};
use crate::settings::{CatalogWord, KeySettings, SigningSettings, ZoneSettings};
use crate::yaml::{self, Entry, Value};
use environment::Environment;
use plan::checks::Check;
use plan::signing::SigningPolicy;

/// Plans zones that are added while the server runs, by what the configuration says.
pub struct Planner {
    /// Templates of zones, as they are written.
    root: Vec<Entry>,
    keys: Vec<KeySettings>,
    signing: Vec<SigningSettings>,
    checks: Vec<Arc<Check>>,
    sets: Sets,
    /// Catalogs that are made here.
    catalogs: Vec<NameBuf>,
    sources: Sources,
    /// Relative paths begin where the configuration is.
    folder: PathBuf,
    key: HashKey,
    /// What is remembered of signatures that are made while clients wait.
    pool: Arc<Pool>,
    /// What was said before, and what it means: of many zones the same is said.
    meanings: Mutex<BTreeMap<String, Arc<Meaning>>>,
}

/// Texts of which it is remembered what they mean.
const MEANINGS_MAX: usize = 64;

/// What was said of a zone, for whatever zone it is said.
struct Meaning {
    zone: ZoneSettings,
    beside: Option<Pattern>,
}

/// A zone that may be added.
pub struct Addition {
    /// What is to become of it.
    pub plan: Arc<ZonePlan>,
    /// How it is signed.
    pub policy: Option<Arc<SigningPolicy>>,
    /// What is probably not as it was meant.
    pub warnings: Vec<Diagnostic>,
    /// Its file.
    read: Option<Kept>,
}

/// Says what is wrong with what was said of a zone, in one line.
pub fn explain(found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for Diagnostic { message, expected, hint, .. } in found {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(message);
        for (word, more) in [(" (expected ", expected), (" (", hint)] {
            if let Some(more) = more {
                text.push_str(word);
                text.push_str(more);
                text.push(')');
            }
        }
    }
    text
}

impl Planner {
    /// Takes what concerns zones from a configuration. Their names are hashed with `key`, and what is signed while clients wait
    /// is remembered in `pool`.
    pub(crate) fn new(loaded: &Loaded, sets: &Sets, (key, pool): (HashKey, Arc<Pool>)) -> Self {
        let root = match &loaded.tree.value {
            Value::Map(entries) => {
                entries.iter().filter(|entry| entry.key == "zone-templates").cloned().collect()
            }
            Value::Null | Value::Scalar(_) | Value::List(_) => Vec::new(),
        };
        let settings = &loaded.settings;
        let made = settings.zones.iter().filter(|zone| zone.catalog_role == Some(CatalogWord::Producer));
        let main = loaded.sources.files().next().and_then(|source| source.path.parent());
        Self {
            root,
            keys: settings.keys.clone(),
            signing: settings.signing.clone(),
            checks: settings.checks.clone(),
            sets: sets.clone(),
            catalogs: made.map(|zone| zone.name.value).collect(),
            sources: loaded.sources.clone(),
            folder: main.unwrap_or(Path::new("")).to_owned(),
            key,
            pool,
            meanings: Mutex::default(),
        }
    }

    /// Plans a zone of which `said` is said, as it would be at an item of `zones` but for the name. `old` is what it was planned
    /// as before: its file is read again only if that has changed.
    pub fn plan(
        &self,
        apex: Name<'_>,
        said: &str,
        old: Option<&Addition>,
        environment: &dyn Environment,
    ) -> Result<Addition, Vec<Diagnostic>> {
        let apex = apex.to_buf();
        let mut problems = Vec::new();
        let failed = |problems: &[Problem]| problems.iter().any(Problem::is_error);
        let Some(meaning) = self.meaning(&apex, said, environment, &mut problems) else {
            return Err(diagnostics(problems, &self.sources_with(&apex, said).0));
        };
        let zone = meaning.zone.clone();
        let file = zone.file.map(|file| At { value: named_file(&file.value, &apex), ..file });
        let zone = ZoneSettings { name: At { value: apex, ..zone.name }, file, ..zone };
        check_chosen(&zone, &mut problems);
        let mut found = Vec::new();
        let read = zone.file.as_ref().map(|file| {
            let wanted = Wanted {
                file: file.value.clone(),
                apex: Some(apex),
                set: None,
                contexts: None,
                sign: None,
                common: None,
                allow_query: None,
                own_keys: OwnKeys::of(&zone),
                span: file.span,
            };
            let old = old.and_then(|old| old.read.as_ref());
            match old.filter(|old| old.is_current(&wanted, environment)) {
                Some(old) => Kept { wanted, ..old.clone() },
                None => load(wanted, (self.key, &self.pool), old, environment, &mut problems, &mut found),
            }
        });
        let signed = match zone.sign {
            Some(_) => SignedHere::Versions { last: None },
            None => SignedHere::Nothing,
        };
        let current = (written(&zone, read.as_ref()), signed);
        let is_proven = current.0.0.as_deref().is_some_and(is_proven);
        let plan = plan(&zone, &self.keys, current, (environment, &mut problems));
        let beside = meaning.beside.as_ref().map(|pattern| {
            if pattern.answers() {
                check_signed(&zone, is_proven, &mut problems);
            }
            pattern.beside(apex, self.key, old.and_then(|old| old.plan.beside.as_deref()))
        });
        let reason = read.as_ref().and_then(|read| failure(read, &apex));
        let plan = ZonePlan { beside, failed: reason, ..plan };
        if failed(&problems) {
            return Err(diagnostics(problems, &self.sources_with(&apex, said).0));
        }
        let mut warnings = match problems.is_empty() {
            true => Vec::new(),
            false => diagnostics(problems, &self.sources_with(&apex, said).0),
        };
        warnings.extend(found);
        Ok(Addition { plan: Arc::new(plan), policy: zone.sign, warnings, read })
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
        let beside = Pattern::new(&zone, &self.sets);
        let meaning = Arc::new(Meaning { zone, beside });
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
        let read_file = |path: &Path| environment.read(path);
        let known = Known { signing: &self.signing, keys: &self.keys, checks: &self.checks };
        let mut lowering = Lowering {
            sources: &sources,
            problems,
            read_file: &read_file,
            is_open_to_all: &|path| environment.is_open_to_all(path),
            #[cfg(test)]
            touched: std::cell::RefCell::default(),
        };
        let zone = lowering.added_zone(apex, &parsed.root, &self.root, known);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use environment::Memory;

    const ZONE: &str = "@ SOA ns.example.net. h.example.net. 7 1 1 1 1\n NS ns.example.net.\n";
    const MAIN: &str = "zone-templates:\n  customers:\n    file: \"customers/{name}.zone\"\n    transfer: [key k]\n  listed: {catalog-role: consumer, primaries: 192.0.2.1}\n\
                        keys: [{name: k, secret: AAAA}]\nsigning: {s: {}}\nchecks: {web: {port: 80}}\n\
                        sets: {europe: {addresses: 192.0.2.0/24}}\n";

    fn planner(memory: &Memory) -> Arc<Planner> {
        let loaded = load_text(Path::new("/etc/gannet.yaml"), MAIN, memory);
        let loaded = loaded.unwrap_or_else(|found| panic!("{}", found[0].human()));
        let plans = crate::compile(&loaded, &[], None, memory);
        let plans = plans.unwrap_or_else(|found| panic!("{}", found[0].human()));
        plans.zones.planner.expect("a planner")
    }

    fn check(said: &str, expect: &str) {
        let memory = Memory::new(&[
            ("/etc/customers/a.example.zone", ZONE),
            ("/etc/other", ZONE),
            ("/etc/bad", "@ SOA\n"),
            ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
        ]);
        let apex = NameBuf::from_text("A.example").expect("a name");
        let planned = planner(&memory).plan(apex.as_name(), said, None, &memory);
        let text = match planned {
            Ok(Addition { plan, policy, warnings, .. }) => format!(
                "{:?} serial {:?} transfer {} signed {} warnings {} watched {:?}",
                plan.file.as_ref().map(|file| file.display().to_string()),
                plan.zone.as_ref().map(|zone| zone.facts().serial),
                plan.rights.transfer.len(),
                policy.is_some() && plan.signed.has_versions(),
                warnings.len(),
                plan.beside.as_ref().map(|beside| {
                    let show = |it: &Arc<plan::checks::Watched>| {
                        format!("{} {} {}", it.name, it.address, it.check.name)
                    };
                    beside.checks.watched.iter().map(show).collect::<Vec<_>>()
                }),
            ),
            Err(found) => explain(&found),
        };
        assert!(text.contains(expect), "{said}: {text}");
    }

    #[test]
    fn a_zone_is_planned_from_what_is_said_and_its_template() {
        check(
            "like: customers",
            "Some(\"/etc/customers/a.example.zone\") serial Some(7) transfer 1 signed false",
        );
        check(
            "{like: customers, file: other, transfer: []}",
            "Some(\"/etc/other\") serial Some(7) transfer 0",
        );
        check("file: other\nsign: s", "transfer 0 signed true");
        check("primaries: 192.0.2.1", "None serial None");
        check("", "None serial None transfer 0 signed false warnings 0");
        // Mistakes in a zone's data keep it from being served, not from being added: the file can be mended.
        check("file: bad", "Some(\"/etc/bad\") serial None");
    }

    #[test]
    fn mistakes_are_those_of_the_configuration() {
        check("like: customrs", "unknown template \"customrs\" (did you mean \"customers\"?)");
        check(
            "{like: customers, primaries: 192.0.2.1}",
            "a zone that comes from primaries has no file of its own",
        );
        check("fil: other", "unknown setting \"fil\" (did you mean \"file\"?)");
        check("transfer: [key q]", "unknown key \"q.\"");
        check("name: b.example", "a zone that is added has no \"name\"");
        check("set: x", "a zone that is added has no \"set\"");
        check("like: listed", "a zone that is added has no \"catalog-role\"");
        check("catalog: c.example", "is not a catalog that is made here");
        check("[", "expected");
    }

    #[test]
    fn what_is_chosen_is_checked_as_in_the_configuration() {
        let choose = |name: &str, more: &str| {
            format!(
                "{{file: other, choose: [{{name: \"{name}\", type: A, check: web, from: [{{data: 192.0.2.1}}{more}]}}]}}"
            )
        };
        let watched = "watched Some([\"www.A.example. 192.0.2.1 web\"])";
        check(&choose("www.{name}", ""), watched);
        check(&choose("www.A.example", ", {data: 192.0.2.9, sets: europe}"), "www.A.example. 192.0.2.1 web");
        check(&choose("www.b.example", ""), "\"www.b.example.\" is not in this zone");
        check(&choose("www.{name}", "").replace("web", "wed"), "there is no check \"wed\"");
        check(&choose("www.{name}", ", {data: 192.0.2.2, sets: asia}"), "unknown set \"asia\"");
        check(
            &choose("www.{name}", ", {data: 192.0.2.2, sets: europa}"),
            "unknown set \"europa\" (did you mean \"europe\"?)",
        );
        let long = ["a"; 125].join(".");
        check(&choose(&format!("{long}.{{name}}"), ""), "is not a domain name");
        check("{file: other, make: [{networks: 192.0.2.0/24}]}", "watched Some([])");
        // The same may be said of another zone: its names are its own.
        let memory = Memory::new(&[("/etc/other", ZONE), ("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let planner = planner(&memory);
        let mut places = Vec::new();
        let names = ["a.example", "b.example"].map(|apex| {
            let apex = NameBuf::from_text(apex).expect("a name");
            let planned = planner.plan(apex.as_name(), &choose("www.{name}", ""), None, &memory);
            let planned = planned.unwrap_or_else(|found| panic!("{}", explain(&found)));
            let again = planner.plan(apex.as_name(), &choose("www.{name}", ""), Some(&planned), &memory);
            let again = again.unwrap_or_else(|found| panic!("{}", explain(&found)));
            let watched = |it: &Addition| it.plan.beside.as_ref().expect("answers").checks.watched[0].clone();
            // How it stands is not forgotten when it is planned anew, nor is it that of another zone.
            assert!(Arc::ptr_eq(&watched(&planned).down, &watched(&again).down));
            places.push(watched(&again).down.clone());
            watched(&planned).name.to_string()
        });
        assert_eq!(names, ["www.a.example.", "www.b.example."]);
        assert!(!Arc::ptr_eq(&places[0], &places[1]));
        // What was said for one zone is not right for another because of that.
        let fixed = choose("www.a.example", "");
        for (apex, is_right) in [("a.example", true), ("b.example", false), ("a.example", true)] {
            let apex = NameBuf::from_text(apex).expect("a name");
            assert_eq!(planner.plan(apex.as_name(), &fixed, None, &memory).is_ok(), is_right);
        }
    }

    #[test]
    fn a_file_is_read_again_only_if_it_has_changed() {
        let mut memory = Memory::new(&[("/etc/other", ZONE), ("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        let apex = NameBuf::from_text("a.example").expect("a name");
        let planner = planner(&memory);
        let plan = |memory: &Memory, old: Option<&Addition>| {
            planner.plan(apex.as_name(), "file: other", old, memory).unwrap_or_else(|_| panic!("a plan"))
        };
        let first = plan(&memory, None);
        let again = plan(&memory, Some(&first));
        let zone = |addition: &Addition| addition.plan.zone.clone().expect("a zone");
        assert!(Arc::ptr_eq(&zone(&first), &zone(&again)) && first.plan.source == again.plan.source);
        memory.files.insert(PathBuf::from("/etc/other"), ZONE.replace(" 7 ", " 8 ").into_bytes());
        let changed = plan(&memory, Some(&again));
        assert_eq!((zone(&changed).facts().serial, changed.plan.source == again.plan.source), (8, false));
    }
}
