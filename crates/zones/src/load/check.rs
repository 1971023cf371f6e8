//! One file with zones: what is wrong with it, with its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::{Diagnostic, Severity, io_text};
use environment::{Environment, Loading, SetProgress};
use plan::zones::is_json;
use wire::{HashKey, Name, NameBuf};
use zone::json::{Contexts, KeySet, Remark, concealed, holds_keys};
use zone::master::{Include, Included, Mistake, Place};
use zone::{Finding, Level, Pool, Zone};

use super::own_keys::{self, OwnKeys, ReadKeys};

/// Octets of a zone's file: places in it are numbers of 32 bits.
const FILE_OCTETS_MAX: u64 = u32::MAX as u64;

/// What came of reading a zone.
pub struct Checked {
    /// The zone; `None` if its file has errors.
    pub zone: Option<Zone>,
    /// What is wrong, errors and warnings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// Reads a zone from a file and those it includes. One that brings the keys it is signed with is
/// signed, and proves absence with NSEC.
pub fn check(
    apex: Name<'_>,
    file: &Path,
    key: HashKey,
    environment: &dyn Environment,
) -> Result<Checked, String> {
    // What is kept of it must prove absence without its keys.
    let own_keys = OwnKeys { is_given_away: true, ..OwnKeys::default() };
    check_with(apex, file, (key, None), &own_keys, environment)
}

/// Reads a zone from a file and those it includes, and signs it if it has keys of its own.
pub(super) fn check_with(
    apex: Name<'_>,
    file: &Path,
    (key, pool): (HashKey, Option<&Arc<Pool>>),
    own_keys: &OwnKeys,
    environment: &dyn Environment,
) -> Result<Checked, String> {
    if is_json(file) {
        let wanted = (Some(apex), None);
        let mut read = read_json(file, (key, pool), wanted, own_keys, environment)?;
        let zone = read.zones.iter_mut().find(|(other, _)| other.as_name() == apex);
        if zone.is_none() && read.diagnostics.is_empty() {
            return Err(format!("there is no zone \"{apex}\" in it"));
        }
        let zone = zone.and_then(|(_, zone)| zone.take());
        return Ok(Checked { zone, diagnostics: read.diagnostics, files: read.files });
    }
    let text = read(file, environment)?;
    let shown = file.display().to_string();
    let mut shelf = Shelf { environment, zone: apex.to_string(), file: &shown };
    let loaded = zone::load(apex, &shown, &text, &mut shelf, key);
    let mut files: Vec<PathBuf> = loaded.files.iter().map(PathBuf::from).collect();
    let sets = own_keys.read(apex, &mut files, environment);
    let mut excerpts = Excerpts { files: &files, environment, texts: BTreeMap::new() };
    let mut diagnostics: Vec<Diagnostic> =
        loaded.mistakes.iter().map(|mistake| excerpts.mistake(mistake)).collect();
    diagnostics.extend(loaded.findings.iter().map(|finding| excerpts.finding(finding, file)));
    if loaded.more > 0 {
        diagnostics.push(excerpts.untold(loaded.more, file));
    }
    let zone = match (loaded.zone, sets) {
        (None, _) => None,
        (zone, Ok(None)) => zone,
        (Some(zone), Ok(Some(ReadKeys { sets, remarks, place }))) => {
            for remark in remarks {
                let at = excerpts.at(Some(place), file, Severity::Warning);
                diagnostics.push(Diagnostic {
                    message: format!("{apex}: {remark}"),
                    excerpt: String::new(),
                    ..at
                });
            }
            if sets.is_empty() {
                let message =
                    format!("{apex}: no key set can be used: the zone is served without signatures");
                let at = excerpts.at(Some(place), file, Severity::Warning);
                diagnostics.push(Diagnostic { message, excerpt: String::new(), ..at });
                Some(zone)
            } else {
                excerpts.sign(&zone, &sets, (key, pool), own_keys, file, &mut diagnostics)
            }
        }
        (Some(_), Err((path, why))) => {
            let message = format!("{apex}: key sets: {why}");
            diagnostics.push(Diagnostic { message, ..excerpts.at(None, &path, Severity::Error) });
            None
        }
    };
    Ok(Checked { zone, diagnostics, files })
}

fn read(file: &Path, environment: &dyn Environment) -> Result<Vec<u8>, String> {
    match environment.read_list(file, FILE_OCTETS_MAX) {
        Ok(text) if text.len() as u64 > FILE_OCTETS_MAX => Err("larger than 4 GiB".to_owned()),
        Ok(text) => Ok(text),
        Err(error) => Err(io_text(&error)),
    }
}

/// Opens what files include, relative to the directory of the file that includes it.
struct Shelf<'s> {
    environment: &'s dyn Environment,
    zone: String,
    file: &'s str,
}

impl Include for Shelf<'_> {
    fn include(&mut self, name: &str, from: &str) -> Result<Included, String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = read(&path, self.environment)?;
        Ok(Included { name: path.display().to_string(), text })
    }

    fn hear(&mut self, records: usize) {
        let Self { environment, zone, file } = self;
        let (what, list) = (Loading::Zone, Some(*file));
        environment.hear(&SetProgress { what, set: zone, list, count: records });
    }
}

/// The lines of files that something is wrong with.
struct Excerpts<'a> {
    files: &'a [PathBuf],
    environment: &'a dyn Environment,
    texts: BTreeMap<u16, Text>,
}

impl Excerpts<'_> {
    fn at(&mut self, place: Option<Place>, file: &Path, severity: Severity) -> Diagnostic {
        let path = place.and_then(|place| self.files.get(usize::from(place.file)));
        Diagnostic {
            severity,
            file: path.map_or(file, PathBuf::as_path).to_owned(),
            line: place.map_or(0, |place| place.line),
            column: place.map_or(0, |_| 1),
            width: place.map_or(0, |_| 1),
            excerpt: place.map_or_else(String::new, |place| self.line(place)),
            message: String::new(),
            expected: None,
            hint: None,
        }
    }

    fn untold(&mut self, more: usize, file: &Path) -> Diagnostic {
        let message = format!("{more} more findings are not told");
        Diagnostic { message, ..self.at(None, file, Severity::Warning) }
    }

    fn mistake(&mut self, mistake: &Mistake) -> Diagnostic {
        let message = match mistake.found.as_str() {
            "" => "the entry ends too early".to_owned(),
            found => format!("\"{found}\" cannot stand here"),
        };
        let width = u32::try_from(mistake.found.chars().count()).unwrap_or(1).max(1);
        let at = self.at(Some(mistake.place), Path::new(""), Severity::Error);
        let expected = match &mistake.why {
            Some(why) => format!("{} ({why})", mistake.expected),
            None => mistake.expected.clone(),
        };
        Diagnostic { column: mistake.column, width, message, expected: Some(expected), ..at }
    }

    fn remark(&mut self, remark: &Remark) -> Diagnostic {
        let Remark { place, column, width, ref message } = *remark;
        let at = self.at(Some(place), Path::new(""), Severity::Warning);
        Diagnostic { column, width, message: message.clone(), ..at }
    }

    fn finding(&mut self, finding: &Finding, file: &Path) -> Diagnostic {
        let severity = match finding.problem.level() {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
        };
        let message = format!("{}: {}", finding.owner, finding.problem);
        Diagnostic { message, ..self.at(finding.place, file, severity) }
    }

    /// Signs a zone with its own keys, and adds what there is to say about it. Without its
    /// signatures it is not served: who saw it so would remember that.
    fn sign(
        &mut self,
        zone: &Zone,
        sets: &[KeySet],
        (key, pool): (HashKey, Option<&Arc<Pool>>),
        own_keys: &OwnKeys,
        file: &Path,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Zone> {
        let apex = zone.apex();
        let now = u64::try_from(self.environment.unix_seconds()).unwrap_or(0);
        for set in sets {
            for what in own_keys::odd_time(set, now).into_iter().chain(own_keys::small_keys(set)) {
                let at = self.at(Some(set.place), file, Severity::Warning);
                diagnostics.push(Diagnostic { message: format!("{apex}: {what}"), ..at });
            }
        }
        match own_keys.sign(zone, sets, key, pool) {
            Ok(zone) => Some(zone),
            Err(why) => {
                let message = format!("{apex}: it cannot be signed with its keys: {why}");
                let at = self.at(sets.first().map(|set| set.place), file, Severity::Error);
                diagnostics.push(Diagnostic { message, ..at });
                None
            }
        }
    }

    fn line(&mut self, place: Place) -> String {
        let (files, environment) = (self.files, self.environment);
        let text = self.texts.entry(place.file).or_insert_with(|| {
            let path = files.get(usize::from(place.file));
            let octets = path.and_then(|path| read(path, environment).ok()).unwrap_or_default();
            let has_keys = holds_keys(&octets);
            Text { octets, at: 0, line: 1, has_keys }
        });
        text.line(place.line)
    }
}

/// The text of a file, read line by line.
struct Text {
    octets: Vec<u8>,
    /// Where the line begins that was asked for last.
    at: usize,
    line: u32,
    /// Whether private keys are in it, which nobody must see.
    has_keys: bool,
}

impl Text {
    /// Returns a line; what is asked for mostly comes after what was asked for before.
    fn line(&mut self, line: u32) -> String {
        if line < self.line {
            (self.at, self.line) = (0, 1);
        }
        let len_of = |rest: &[u8]| rest.iter().position(|&octet| octet == b'\n');
        while self.line < line {
            let Some(len) = len_of(&self.octets[self.at..]) else { return String::new() };
            self.at += len + 1;
            self.line += 1;
        }
        let rest = &self.octets[self.at..];
        let line = &rest[..len_of(rest).unwrap_or(rest.len())];
        let shown = String::from_utf8_lossy(line);
        let shown = shown.trim_end_matches('\r');
        if self.has_keys { concealed(shown) } else { shown.to_owned() }
    }
}

/// Zones that were read, and what is wrong with them.
pub(super) struct Read {
    pub(super) zones: Vec<(NameBuf, Option<Zone>)>,
    pub(super) files: Vec<PathBuf>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Reads the zones of a file in JSON, or `only` one of them, and signs those that bring their keys;
/// what is signed later is remembered in a pool.
pub(super) fn read_json(
    file: &Path,
    (key, pool): (HashKey, Option<&Arc<Pool>>),
    (only, contexts): (Option<Name<'_>>, Option<&Contexts>),
    own_keys: &OwnKeys,
    environment: &dyn Environment,
) -> Result<Read, String> {
    let text = read(file, environment)?;
    let loaded = zone::json::read(&text, key, contexts);
    let files = vec![file.to_owned()];
    let mut excerpts = Excerpts { files: &files, environment, texts: BTreeMap::new() };
    let mut diagnostics: Vec<Diagnostic> =
        loaded.mistakes.iter().map(|mistake| excerpts.mistake(mistake)).collect();
    diagnostics.extend(loaded.remarks.iter().map(|remark| excerpts.remark(remark)));
    let mut more = loaded.more;
    let mut zones = Vec::with_capacity(loaded.zones.len());
    for zone in loaded.zones {
        diagnostics.extend(zone.built.findings.iter().map(|finding| excerpts.finding(finding, file)));
        more += zone.built.more_findings;
        let apex = zone.apex;
        if only.is_some_and(|only| only != apex.as_name()) {
            continue;
        }
        let first = zone.keys.first().map(|set| set.place);
        if own_keys.has_policy && first.is_some() {
            let message = format!("{apex}: its own keys are not used: it is signed by a policy");
            diagnostics.push(Diagnostic { message, ..excerpts.at(first, file, Severity::Warning) });
        }
        let zone = match zone.built.zone {
            Some(written) if first.is_some() && !own_keys.has_policy => {
                let sets = zone.keys.as_slice();
                excerpts.sign(&written, sets, (key, pool), own_keys, file, &mut diagnostics)
            }
            other => other,
        };
        zones.push((apex, zone));
    }
    if more > 0 {
        diagnostics.push(excerpts.untold(more, file));
    }
    Ok(Read { zones, files, diagnostics })
}
