//! The files that zones are wanted of: which there are, what is kept of them over a reload, and what is served when one cannot
//! be used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::{Diagnostic, Problem, Severity, Span, io_text};
use wire::{HashKey, NameBuf, Prefix};
use zone::json::Contexts;
use zone::{Pool, Zone};

use super::check::{Checked, Read, check_with, is_json, read_json};
use super::own_keys::{Needed, OwnKeys};
use crate::settings::{Settings, ZoneFormat, ZoneSettings};
use environment::Environment;
use plan::signing::SigningPolicy;

/// A file, the files that it includes, and the zones that came from them.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) wanted: Wanted,
    /// Every file that was read, and its stamp. Empty when the zones are older than their file.
    pub(super) files: Vec<(PathBuf, u64)>,
    pub(super) zones: Vec<(NameBuf, Option<Arc<Zone>>)>,
    /// Zones of the file that are not as it says, and why; the file itself if it is not known which zones it has.
    pub(super) failed: Vec<(Option<NameBuf>, Arc<str>)>,
}

impl Kept {
    /// Returns whether this is what is wanted, and its files are as they were.
    pub(super) fn is_current(&self, wanted: &Wanted, environment: &dyn Environment) -> bool {
        let is_same = |(path, stamp): &(PathBuf, u64)| environment.stamp(path).is_ok_and(|now| now == *stamp);
        // Keys may have come for a zone that had none.
        let has_new_keys = wanted.own_keys.file.as_ref().is_some_and(|(file, _)| {
            self.files.iter().all(|(known, _)| known != file) && environment.stamp(file).is_ok()
        });
        !self.files.is_empty()
            && (&self.wanted.file, &self.wanted.contexts) == (&wanted.file, &wanted.contexts)
            && self.wanted.own_keys == wanted.own_keys
            && !has_new_keys
            && self.files.iter().all(is_same)
    }
}

/// What the configuration wants of a file.
#[derive(Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) file: PathBuf,
    /// The zone; none if it wants all that there are.
    pub(super) apex: Option<NameBuf>,
    /// The set of zones that they are in.
    pub(super) set: Option<String>,
    /// Which records are taken.
    pub(super) contexts: Option<Contexts>,
    /// How the zones of a directory are signed.
    pub(super) sign: Option<Arc<SigningPolicy>>,
    /// What other servers may do with the zones of a directory.
    pub(super) common: Option<Arc<ZoneSettings>>,
    /// Who may query the zones of a directory; everybody if nothing is said.
    pub(super) allow_query: Option<Vec<Prefix>>,
    /// How zones are signed that bring keys.
    pub(super) own_keys: OwnKeys,
    /// Where it says so.
    pub(super) span: Span,
}

impl Wanted {
    /// Returns what is the same before and after a reload.
    pub(super) fn key(&self) -> (Option<String>, Option<Vec<u8>>, Option<PathBuf>) {
        let apex = self.apex.as_ref().map(folded);
        // A zone may move to another file.
        let file = apex.is_none().then(|| self.file.clone());
        (self.set.clone(), apex, file)
    }

    pub(super) fn is_json(&self) -> bool {
        is_json(&self.file)
    }
}

/// Returns a zone's name as it is looked for.
pub(super) fn folded(apex: &NameBuf) -> Vec<u8> {
    apex.as_name().to_folded().as_bytes().to_vec()
}

/// Returns every file that zones are wanted of.
pub(super) fn wanted(
    settings: &Settings,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = settings
        .zones
        .iter()
        .filter_map(|zone| {
            let file = zone.file.as_ref()?;
            Some(Wanted {
                file: file.value.clone(),
                apex: Some(zone.name.value),
                set: zone.set.as_ref().map(|set| set.value.clone()),
                contexts: None,
                // The configuration says so at the zone.
                sign: None,
                common: None,
                allow_query: None,
                own_keys: OwnKeys::of(zone),
                span: file.span,
            })
        })
        .collect();
    for directory in &settings.zone_directories {
        let mut files = Vec::new();
        if let Err(error) = walk(&directory.path.value, directory.format, 0, environment, &mut files) {
            let why = io_text(&error);
            let message = format!("cannot read \"{}\": {why}", directory.path.value.display());
            problems.push(Problem::warning(directory.path.span, message));
        }
        files.sort();
        for file in files {
            let is_json = is_json(&file);
            let apex = if is_json { None } else { Some(NameBuf::from_text(&name_of(&file))) };
            let apex = match apex.transpose() {
                Ok(apex) => apex,
                Err(error) => {
                    let message = format!("\"{}\" is not called like a zone: {error}", file.display());
                    problems.push(Problem::warning(directory.path.span, message));
                    continue;
                }
            };
            let contexts = directory
                .contexts
                .as_ref()
                .filter(|_| is_json)
                .map(|allow| Contexts { allow: allow.clone(), matches_empty: directory.matches_empty });
            let set = directory.set.as_ref().map(|set| set.value.clone());
            let sign = directory.sign.as_ref().map(Arc::clone);
            let common = directory.common.as_ref().map(Arc::clone);
            let keys_of = |apex: &NameBuf| {
                let name = apex.to_string();
                let name = name.trim_end_matches('.').replace('/', "%2F");
                Some((directory.key_sets.as_ref()?.join(format!("{name}.private")), Needed::No))
            };
            let own_keys = OwnKeys {
                file: apex.as_ref().and_then(keys_of),
                denial: directory.own_denial,
                has_policy: sign.is_some(),
                is_given_away: common.as_ref().is_some_and(|common| OwnKeys::of(common).is_given_away),
            };
            let span = directory.path.span;
            let allow_query = directory.allow_query.clone();
            all.push(Wanted { file, apex, set, contexts, sign, common, allow_query, own_keys, span });
        }
    }
    all
}

/// Directories that may be inside of one another: links can make a circle.
const DEPTH_MAX: usize = 16;

/// Finds the files of a directory and of those in it.
fn walk(
    directory: &Path,
    format: ZoneFormat,
    depth: usize,
    environment: &dyn Environment,
    files: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for name in environment.list(directory)? {
        let path = directory.join(&name);
        let is_meant = match path.extension().and_then(|extension| extension.to_str()) {
            Some("zone") => Some(format != ZoneFormat::Json),
            Some("json") => Some(format != ZoneFormat::Master),
            _ => None,
        };
        match is_meant {
            Some(true) => files.push(path),
            Some(false) => {}
            None if depth < DEPTH_MAX && !name.starts_with('.') => {
                // What is no directory has nothing in it.
                let _ = walk(&path, format, depth + 1, environment, files);
            }
            None => {}
        }
    }
    Ok(())
}

/// Returns the zone that a file is named after: `example.org.zone`, `db.example.org` and `example.org` are one's.
pub fn name_of(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_prefix("db.").unwrap_or(&name);
    let name =
        [".zone", ".json", ".db", ".txt"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    name.to_owned()
}

fn read_zones(
    wanted: &Wanted,
    key: HashKey,
    pool: &Arc<Pool>,
    environment: &dyn Environment,
) -> Result<Read, String> {
    match &wanted.apex {
        Some(apex) if !wanted.is_json() => {
            let Checked { zone, diagnostics, files } =
                check_with(apex.as_name(), &wanted.file, (key, Some(pool)), &wanted.own_keys, environment)?;
            Ok(Read { zones: vec![(*apex, zone)], files, diagnostics })
        }
        apex => {
            let only = (apex.as_ref().map(NameBuf::as_name), wanted.contexts.as_ref());
            let mut read = read_json(&wanted.file, (key, Some(pool)), only, &wanted.own_keys, environment)?;
            if let Some(apex) = apex {
                match (read.zones.is_empty(), read.diagnostics.is_empty()) {
                    (true, true) => return Err("there is no such zone in it".to_owned()),
                    (true, false) => read.zones.push((*apex, None)),
                    (false, _) => {}
                }
            }
            Ok(read)
        }
    }
}

pub(super) fn load(
    wanted: Wanted,
    (key, pool): (HashKey, &Arc<Pool>),
    old: Option<&Kept>,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
    found: &mut Vec<Diagnostic>,
) -> Kept {
    // Taken before reading: a file that changes meanwhile is read again.
    let stamp = environment.stamp(&wanted.file);
    let file = wanted.file.display();
    let mut zones = Vec::new();
    let mut files = Vec::new();
    let mut failed: Vec<(NameBuf, String)> = Vec::new();
    let mut reasons: Vec<(Option<NameBuf>, Arc<str>)> = Vec::new();
    match read_zones(&wanted, key, pool, environment) {
        Ok(read) => {
            let first = read.diagnostics.iter().find(|found| found.severity == Severity::Error);
            let first = first.map_or_else(|| format!("\"{file}\" has mistakes"), Diagnostic::line);
            found.extend(read.diagnostics);
            let others = read.files.into_iter().skip(1);
            let others = others.map(|path| environment.stamp(&path).map(|stamp| (path, stamp)));
            let all: Result<Vec<_>, _> =
                std::iter::once(stamp.map(|stamp| (wanted.file.clone(), stamp))).chain(others).collect();
            files = all.unwrap_or_default();
            for (apex, zone) in read.zones {
                match zone {
                    Some(zone) => zones.push((apex, Some(Arc::new(zone)))),
                    None => {
                        failed.push((apex, format!("\"{file}\" has mistakes")));
                        reasons.push((Some(apex), first.as_str().into()));
                    }
                }
            }
            if zones.is_empty() && failed.is_empty() {
                let message = format!("there is no zone in \"{file}\", or none that can be read");
                reasons.push((None, message.as_str().into()));
                problems.push(Problem::warning(wanted.span, message));
                files = Vec::new();
            }
        }
        Err(why) => {
            let why = format!("cannot read \"{file}\": {why}");
            reasons.push((wanted.apex, why.as_str().into()));
            match &wanted.apex {
                Some(apex) => failed.push((*apex, why)),
                None => problems.push(Problem::warning(wanted.span, why)),
            }
        }
    }
    // What was served stays: zones that cannot be read, and all of a file that cannot.
    let before = |apex: &NameBuf| {
        let zones = old.map_or(&[][..], |old| &old.zones);
        zones.iter().find(|(other, _)| other == apex).and_then(|(_, zone)| zone.clone())
    };
    let is_whole = failed.is_empty();
    for (apex, why) in failed {
        let old = before(&apex);
        let instead = match &old {
            Some(old) => format!("serial {} is still served", old.facts().serial),
            None => "questions about it get SERVFAIL".to_owned(),
        };
        let message = format!("zone \"{apex}\" is not loaded: {why}; {instead}");
        problems.push(Problem::warning(wanted.span, message));
        zones.push((apex, old));
    }
    if files.is_empty()
        && wanted.apex.is_none()
        && let Some(old) = old
    {
        zones.extend(old.zones.iter().cloned());
    }
    Kept { wanted, files: if is_whole { files } else { Vec::new() }, zones, failed: reasons }
}
