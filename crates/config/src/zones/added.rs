//! Zones that are added while the server runs: what is said of one, with what the configuration has for all.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use wire::{HashKey, Name, NameBuf};
use zone::Pool;

use super::files::{Kept, Wanted, load};
use super::own_keys::OwnKeys;
use super::plan::{plan, written};
use super::{SignedHere, ZonePlan};
use crate::diagnostic::{Diagnostic, Problem, diagnostics};
use crate::load::{Loaded, Surroundings};
use crate::lower::{Known, Lowering, named_file};
use crate::settings::{CatalogWord, KeySettings, ZoneSettings};
use crate::signing::SigningPolicy;
use crate::source::{At, FileId, Sources};
use crate::yaml::{self, Entry, Value};

/// Plans zones that are added while the server runs, by what the configuration says.
pub struct Planner {
    /// Templates of zones, as they are written.
    root: Vec<Entry>,
    keys: Vec<KeySettings>,
    signing: Vec<Arc<SigningPolicy>>,
    /// Catalogs that are made here.
    catalogs: Vec<NameBuf>,
    sources: Sources,
    /// Relative paths begin where the configuration is.
    folder: PathBuf,
    key: HashKey,
    /// What is remembered of signatures that are made while clients wait.
    pool: Arc<Pool>,
    /// What was said last, and what it means: of many zones the same is said.
    last: Mutex<Option<(String, ZoneSettings)>>,
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
    pub(crate) fn new(loaded: &Loaded, (key, pool): (HashKey, Arc<Pool>)) -> Self {
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
            catalogs: made.map(|zone| zone.name.value).collect(),
            sources: loaded.sources.clone(),
            folder: main.unwrap_or(Path::new("")).to_owned(),
            key,
            pool,
            last: Mutex::default(),
        }
    }

    /// Plans a zone of which `said` is said, as it would be at an item of `zones` but for the name. `old` is what it was planned
    /// as before: its file is read again only if that has changed.
    pub fn plan(
        &self,
        apex: Name<'_>,
        said: &str,
        old: Option<&Addition>,
        surroundings: &dyn Surroundings,
    ) -> Result<Addition, Vec<Diagnostic>> {
        let apex = apex.to_buf();
        let mut problems = Vec::new();
        let known = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.as_ref().filter(|(text, _)| text == said).map(|(_, zone)| zone.clone())
        };
        let zone = known.or_else(|| self.lower(&apex, said, surroundings, &mut problems));
        let failed = |problems: &[Problem]| problems.iter().any(Problem::is_error);
        let Some(zone) = zone.filter(|_| !failed(&problems)) else {
            return Err(diagnostics(problems, &self.sources_with(&apex, said).0));
        };
        if problems.is_empty() {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some((said.to_owned(), zone.clone()));
        }
        let file = zone.file.map(|file| At { value: named_file(&file.value, &apex), ..file });
        let zone = ZoneSettings { name: At { value: apex, ..zone.name }, file, ..zone };
        let mut found = Vec::new();
        let read = zone.file.as_ref().map(|file| {
            let wanted = Wanted {
                file: file.value.clone(),
                apex: Some(apex),
                set: None,
                contexts: None,
                sign: None,
                common: None,
                own_keys: OwnKeys::of(&zone),
                span: file.span,
            };
            let old = old.and_then(|old| old.read.as_ref());
            match old.filter(|old| old.is_current(&wanted, surroundings)) {
                Some(old) => Kept { wanted, ..old.clone() },
                None => load(wanted, (self.key, &self.pool), old, surroundings, &mut problems, &mut found),
            }
        });
        let signed = match zone.sign {
            Some(_) => SignedHere::Versions { last: None },
            None => SignedHere::Nothing,
        };
        let current = (written(&zone, read.as_ref()), signed);
        let plan = plan(&zone, &self.keys, current, (surroundings, &mut problems));
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

    fn lower(
        &self,
        apex: &NameBuf,
        said: &str,
        surroundings: &dyn Surroundings,
        problems: &mut Vec<Problem>,
    ) -> Option<ZoneSettings> {
        let (sources, file) = self.sources_with(apex, said);
        let parsed = yaml::parse(file, said, &|_| None, problems);
        let read_file = |path: &Path| surroundings.read(path);
        // What is chosen for clients is part of the configuration, and so are its checks.
        let known = Known { signing: &self.signing, keys: &self.keys, checks: &[] };
        let mut lowering = Lowering {
            sources: &sources,
            problems,
            read_file: &read_file,
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
        zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use crate::load::tests::Memory;

    const ZONE: &str = "@ SOA ns.example.net. h.example.net. 7 1 1 1 1\n NS ns.example.net.\n";
    const MAIN: &str = "zone-templates:\n  customers:\n    file: \"customers/{name}.zone\"\n    transfer: [key k]\n\
                        keys: [{name: k, secret: AAAA}]\nsigning: {s: {}}\n";

    fn planner(memory: &Memory) -> Planner {
        let loaded = load_text(Path::new("/etc/gannet.yaml"), MAIN, memory);
        let key = HashKey::new([1, 2]);
        let pool = Arc::new(Pool::new(1 << 16, 100, key));
        Planner::new(&loaded.unwrap_or_else(|found| panic!("{}", found[0].human())), (key, pool))
    }

    fn check(said: &str, expect: &str) {
        let memory = Memory::new(&[
            ("/etc/customers/a.example.zone", ZONE),
            ("/etc/other", ZONE),
            ("/etc/bad", "@ SOA\n"),
        ]);
        let apex = NameBuf::from_text("A.example").expect("a name");
        let planned = planner(&memory).plan(apex.as_name(), said, None, &memory);
        let text = match planned {
            Ok(Addition { plan, policy, warnings, .. }) => format!(
                "{:?} serial {:?} transfer {} signed {} warnings {}",
                plan.file.as_ref().map(|file| file.display().to_string()),
                plan.zone.as_ref().map(|zone| zone.facts().serial),
                plan.rights.transfer.len(),
                policy.is_some() && plan.signed.has_versions(),
                warnings.len(),
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
        check("catalog: c.example", "is not a catalog that is made here");
        check("[", "expected");
    }

    #[test]
    fn a_file_is_read_again_only_if_it_has_changed() {
        let mut memory = Memory::new(&[("/etc/other", ZONE)]);
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
