//! Zones from their files: what is wrong with each, with its place, and what is served when a file cannot be used.

mod added;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dnssec::Denial;
use tsig::Keys;
use wire::{HashKey, Name, NameBuf};
use zone::json::Contexts;
use zone::master::{Include, Included, Mistake, Place};
use zone::{Aliases, Alternative, Choice, Finding, Level, Maker, Proof, Specials, Zone, Zones};

use crate::checks::Checks;
use crate::compile::ttl;
use crate::diagnostic::{Diagnostic, Problem, Severity};
use crate::load::Surroundings;
use crate::lower::io_text;
use crate::sets::{Loading, SetProgress, Sets, Term};
use crate::settings::{Settings, Transfers, ZoneFormat, ZoneSettings};
use crate::signing::SigningPolicy;
use crate::source::Span;

pub use added::{Addition, Planner, explain};
pub use plan::{SignedHere, ZonePlan};

/// After so many files, whoever listens hears how many were read.
const HEAR_EVERY: usize = 256;
/// Octets of a zone's file: places in it are numbers of 32 bits.
const FILE_OCTETS_MAX: u64 = u32::MAX as u64;

/// Octets for what is known of names that ALIAS records lead to: some 100,000 of them.
const ALIASES_OCTETS_MAX: usize = 16 << 20;

/// A file, the files that it includes, and the zones that came from them.
#[derive(Clone)]
struct Kept {
    wanted: Wanted,
    /// Every file that was read, and its stamp. Empty when the zones are older than their file.
    files: Vec<(PathBuf, u64)>,
    zones: Vec<(NameBuf, Option<Arc<Zone>>)>,
}

impl Kept {
    /// Returns whether this is what is wanted, and its files are as they were.
    fn is_current(&self, wanted: &Wanted, surroundings: &dyn Surroundings) -> bool {
        let is_same =
            |(path, stamp): &(PathBuf, u64)| surroundings.stamp(path).is_ok_and(|now| now == *stamp);
        !self.files.is_empty()
            && (&self.wanted.file, &self.wanted.contexts) == (&wanted.file, &wanted.contexts)
            && self.files.iter().all(is_same)
    }
}

/// What the configuration wants of a file.
#[derive(Clone, PartialEq)]
struct Wanted {
    file: PathBuf,
    /// The zone; none if it wants all that there are.
    apex: Option<NameBuf>,
    /// The set of zones that they are in.
    set: Option<String>,
    /// Which records are taken.
    contexts: Option<Contexts>,
    /// How the zones of a directory are signed.
    sign: Option<Arc<SigningPolicy>>,
    /// What other servers may do with the zones of a directory.
    common: Option<Arc<ZoneSettings>>,
    /// Where it says so.
    span: Span,
}

impl Wanted {
    /// Returns what is the same before and after a reload.
    fn key(&self) -> (Option<String>, Option<Vec<u8>>, Option<PathBuf>) {
        let apex = self.apex.as_ref().map(folded);
        // A zone may move to another file.
        let file = apex.is_none().then(|| self.file.clone());
        (self.set.clone(), apex, file)
    }

    fn is_json(&self) -> bool {
        is_json(&self.file)
    }
}

/// Returns a zone's name as it is looked for.
fn folded(apex: &NameBuf) -> Vec<u8> {
    apex.as_name().to_folded().as_bytes().to_vec()
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

/// The zones that are served.
#[derive(Clone, Default)]
pub struct ZonePlans {
    kept: Vec<Kept>,
    /// Zones of the configuration that have no file.
    others: Vec<NameBuf>,
    /// What is to become of each zone that is configured by its name and in no set, in the order of the configuration.
    pub plans: Arc<[ZonePlan]>,
    /// Plans zones that are added while the server runs; absent before anything is compiled.
    pub planner: Option<Arc<Planner>>,
    /// Keys that sign messages between servers.
    pub keys: Keys,
    /// How many transfers there may be.
    pub transfers: Option<Transfers>,
    /// The zones as they are written; `None` when no zone is configured.
    pub served: Option<Arc<Zones>>,
    /// What the engine answers from: `served`, and what the server signed in place of what is written.
    pub signed: Option<Arc<Zones>>,
    /// What policies answer from, by name.
    pub sets: BTreeMap<String, Arc<Zones>>,
    /// What is watched of what records lead to.
    pub checks: Checks,
    /// What is known of names that ALIAS records lead to; stays over reloads.
    pub aliases: Option<Arc<Aliases>>,
    /// Whether `served` and `sets` are those of `kept`.
    is_same: bool,
}

/// What came of reading a zone.
pub struct Checked {
    /// The zone; `None` if its file has errors.
    pub zone: Option<Zone>,
    /// What is wrong, errors and warnings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// Reads a zone from a file and those it includes.
pub fn check(
    apex: Name<'_>,
    file: &Path,
    key: HashKey,
    surroundings: &dyn Surroundings,
) -> Result<Checked, String> {
    if is_json(file) {
        let mut read = read_json(file, key, None, surroundings)?;
        let zone = read.zones.iter_mut().find(|(other, _)| other.as_name() == apex);
        if zone.is_none() && read.diagnostics.is_empty() {
            return Err(format!("there is no zone \"{apex}\" in it"));
        }
        let zone = zone.and_then(|(_, zone)| zone.take());
        return Ok(Checked { zone, diagnostics: read.diagnostics, files: read.files });
    }
    let text = read(file, surroundings)?;
    let shown = file.display().to_string();
    let mut shelf = Shelf { surroundings, zone: apex.to_string(), file: &shown };
    let loaded = zone::load(apex, &shown, &text, &mut shelf, key);
    let files: Vec<PathBuf> = loaded.files.iter().map(PathBuf::from).collect();
    let mut excerpts = Excerpts { files: &files, surroundings, texts: BTreeMap::new() };
    let mut diagnostics: Vec<Diagnostic> =
        loaded.mistakes.iter().map(|mistake| excerpts.mistake(mistake)).collect();
    diagnostics.extend(loaded.findings.iter().map(|finding| excerpts.finding(finding, file)));
    if loaded.more > 0 {
        diagnostics.push(excerpts.untold(loaded.more, file));
    }
    Ok(Checked { zone: loaded.zone, diagnostics, files })
}

fn read(file: &Path, surroundings: &dyn Surroundings) -> Result<Vec<u8>, String> {
    match surroundings.read_list(file, FILE_OCTETS_MAX) {
        Ok(text) if text.len() as u64 > FILE_OCTETS_MAX => Err("larger than 4 GiB".to_owned()),
        Ok(text) => Ok(text),
        Err(error) => Err(io_text(&error)),
    }
}

/// Opens what files include, relative to the directory of the file that includes it.
struct Shelf<'s> {
    surroundings: &'s dyn Surroundings,
    zone: String,
    file: &'s str,
}

impl Include for Shelf<'_> {
    fn include(&mut self, name: &str, from: &str) -> Result<Included, String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = read(&path, self.surroundings)?;
        Ok(Included { name: path.display().to_string(), text })
    }

    fn hear(&mut self, records: usize) {
        let Self { surroundings, zone, file } = self;
        let (what, list) = (Loading::Zone, Some(*file));
        surroundings.hear(&SetProgress { what, set: zone, list, count: records });
    }
}

/// The lines of files that something is wrong with.
struct Excerpts<'a> {
    files: &'a [PathBuf],
    surroundings: &'a dyn Surroundings,
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
        Diagnostic { column: mistake.column, width, message, expected: Some(mistake.expected.clone()), ..at }
    }

    fn finding(&mut self, finding: &Finding, file: &Path) -> Diagnostic {
        let severity = match finding.problem.level() {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
        };
        let message = format!("{}: {}", finding.owner, finding.problem);
        Diagnostic { message, ..self.at(finding.place, file, severity) }
    }

    fn line(&mut self, place: Place) -> String {
        let (files, surroundings) = (self.files, self.surroundings);
        let text = self.texts.entry(place.file).or_insert_with(|| {
            let octets = files.get(usize::from(place.file)).and_then(|path| read(path, surroundings).ok());
            Text { octets: octets.unwrap_or_default(), at: 0, line: 1 }
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
        String::from_utf8_lossy(line).trim_end_matches('\r').to_owned()
    }
}

/// Loads the zones, or takes over those whose files have not changed; with `stays`, all that there are. What is served
/// of them is put together by [`ZonePlans::serve`].
pub(crate) fn compile(
    settings: &Settings,
    key: HashKey,
    previous: Option<&ZonePlans>,
    stays: bool,
    surroundings: &dyn Surroundings,
    problems: &mut Vec<Problem>,
    found: &mut Vec<Diagnostic>,
) -> ZonePlans {
    if let Some(previous) = previous.filter(|_| stays) {
        return ZonePlans { is_same: true, ..previous.clone() };
    }
    let wanted = wanted(settings, surroundings, problems);
    let others = settings.zones.iter().filter(|zone| zone.file.is_none()).map(|zone| zone.name.value);
    let others: Vec<NameBuf> = others.collect();
    let mut kept = Vec::with_capacity(wanted.len());
    let mut is_same =
        previous.is_some_and(|previous| previous.kept.len() == wanted.len() && previous.others == others);
    let before: BTreeMap<_, &Kept> =
        previous.into_iter().flat_map(|previous| &previous.kept).map(|old| (old.wanted.key(), old)).collect();
    for (number, wanted) in wanted.into_iter().enumerate() {
        if number > 0 && number.is_multiple_of(HEAR_EVERY) {
            let (set, list) = ("zones", None);
            surroundings.hear(&SetProgress { what: Loading::Zone, set, list, count: number });
        }
        let old = before.get(&wanted.key()).copied();
        if let Some(old) = old.filter(|old| old.is_current(&wanted, surroundings)) {
            kept.push(Kept { wanted, ..old.clone() });
            continue;
        }
        is_same = false;
        kept.push(load(wanted, key, old, surroundings, problems, found));
    }
    let (served, sets) = match previous.filter(|_| is_same) {
        Some(previous) => (previous.served.clone(), previous.sets.clone()),
        None => (None, BTreeMap::new()),
    };
    let aliases = previous.and_then(|previous| previous.aliases.clone());
    let aliases = Some(aliases.unwrap_or_else(|| Arc::new(Aliases::new(ALIASES_OCTETS_MAX, key))));
    let checks = previous.map(|previous| previous.checks.clone()).unwrap_or_default();
    ZonePlans { kept, others, served, sets, checks, aliases, is_same, ..ZonePlans::default() }
}

/// Returns every file that zones are wanted of.
fn wanted(settings: &Settings, surroundings: &dyn Surroundings, problems: &mut Vec<Problem>) -> Vec<Wanted> {
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
                span: file.span,
            })
        })
        .collect();
    for directory in &settings.zone_directories {
        let mut files = Vec::new();
        if let Err(error) = walk(&directory.path.value, directory.format, 0, surroundings, &mut files) {
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
            all.push(Wanted { file, apex, set, contexts, sign, common, span: directory.path.span });
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
    surroundings: &dyn Surroundings,
    files: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for name in surroundings.list(directory)? {
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
                let _ = walk(&path, format, depth + 1, surroundings, files);
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

/// Zones that were read, and what is wrong with them.
struct Read {
    zones: Vec<(NameBuf, Option<Zone>)>,
    files: Vec<PathBuf>,
    diagnostics: Vec<Diagnostic>,
}

fn read_zones(wanted: &Wanted, key: HashKey, surroundings: &dyn Surroundings) -> Result<Read, String> {
    match &wanted.apex {
        Some(apex) if !wanted.is_json() => {
            let Checked { zone, diagnostics, files } =
                check(apex.as_name(), &wanted.file, key, surroundings)?;
            Ok(Read { zones: vec![(*apex, zone)], files, diagnostics })
        }
        apex => {
            let mut read = read_json(&wanted.file, key, wanted.contexts.as_ref(), surroundings)?;
            if let Some(apex) = apex {
                read.zones.retain(|(other, _)| other == apex);
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

/// Reads the zones of a file in JSON.
fn read_json(
    file: &Path,
    key: HashKey,
    contexts: Option<&Contexts>,
    surroundings: &dyn Surroundings,
) -> Result<Read, String> {
    let text = read(file, surroundings)?;
    let loaded = zone::json::read(&text, key, contexts);
    let files = vec![file.to_owned()];
    let mut excerpts = Excerpts { files: &files, surroundings, texts: BTreeMap::new() };
    let mut diagnostics: Vec<Diagnostic> =
        loaded.mistakes.iter().map(|mistake| excerpts.mistake(mistake)).collect();
    let mut more = loaded.more;
    let mut zones = Vec::with_capacity(loaded.zones.len());
    for zone in loaded.zones {
        diagnostics.extend(zone.built.findings.iter().map(|finding| excerpts.finding(finding, file)));
        more += zone.built.more_findings;
        if !zone.keys.is_empty() {
            diagnostics.push(Diagnostic {
                message: format!("{}: its keys are not used: it is served without signatures", zone.apex),
                ..excerpts.at(None, file, Severity::Warning)
            });
        }
        zones.push((zone.apex, zone.built.zone));
    }
    if more > 0 {
        diagnostics.push(excerpts.untold(more, file));
    }
    Ok(Read { zones, files, diagnostics })
}

fn load(
    wanted: Wanted,
    key: HashKey,
    old: Option<&Kept>,
    surroundings: &dyn Surroundings,
    problems: &mut Vec<Problem>,
    found: &mut Vec<Diagnostic>,
) -> Kept {
    // Taken before reading: a file that changes meanwhile is read again.
    let stamp = surroundings.stamp(&wanted.file);
    let file = wanted.file.display();
    let mut zones = Vec::new();
    let mut files = Vec::new();
    let mut failed: Vec<(NameBuf, String)> = Vec::new();
    match read_zones(&wanted, key, surroundings) {
        Ok(read) => {
            found.extend(read.diagnostics);
            let others = read.files.into_iter().skip(1);
            let others = others.map(|path| surroundings.stamp(&path).map(|stamp| (path, stamp)));
            let all: Result<Vec<_>, _> =
                std::iter::once(stamp.map(|stamp| (wanted.file.clone(), stamp))).chain(others).collect();
            files = all.unwrap_or_default();
            for (apex, zone) in read.zones {
                match zone {
                    Some(zone) => zones.push((apex, Some(Arc::new(zone)))),
                    None => failed.push((apex, format!("\"{file}\" has mistakes"))),
                }
            }
            if zones.is_empty() && failed.is_empty() {
                let message = format!("there is no zone in \"{file}\", or none that can be read");
                problems.push(Problem::warning(wanted.span, message));
                files = Vec::new();
            }
        }
        Err(why) => {
            let why = format!("cannot read \"{file}\": {why}");
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
    Kept { wanted, files: if is_whole { files } else { Vec::new() }, zones }
}

/// Zones of one set that are loaded, and the names of those that are not.
type Group = (Vec<Arc<Zone>>, Vec<NameBuf>);

impl ZonePlans {
    /// Puts together what is served, with what zones answer beside their records.
    pub(crate) fn serve(
        &mut self,
        settings: &Settings,
        key: HashKey,
        sets: &Sets,
        problems: &mut Vec<Problem>,
    ) {
        if settings.has_added_zones && self.served.is_none() && self.is_same {
            self.served = Some(Arc::new(Zones::new(key, Vec::new())));
        }
        let is_plain = |zones: &Arc<Zones>| !zones.are_for_clients() && zones.rotates() == settings.rotate;
        let has_specials = settings.zones.iter().any(|zone| !zone.make.is_empty() || !zone.choose.is_empty());
        let loaded = self.kept.iter().flat_map(|kept| &kept.zones).filter_map(|(_, zone)| zone.as_ref());
        let has_aliases = loaded.clone().any(|zone| zone.facts().aliases > 0);
        if self.is_same
            && !has_specials
            && !has_aliases
            && self.served.iter().chain(self.sets.values()).all(is_plain)
        {
            return;
        }
        let mut seen: BTreeSet<(Option<&str>, Vec<u8>)> = BTreeSet::new();
        let mut groups: BTreeMap<Option<String>, Group> = BTreeMap::new();
        // Before those of directories: what the configuration names counts. They are served when they have come.
        for apex in &self.others {
            seen.insert((None, folded(apex)));
            groups.entry(None).or_default().1.push(*apex);
        }
        for kept in &self.kept {
            let set = &kept.wanted.set;
            let (loaded, missing) = groups.entry(set.clone()).or_default();
            for (apex, zone) in &kept.zones {
                if !seen.insert((set.as_deref(), folded(apex))) {
                    let file = kept.wanted.file.display();
                    let message = format!("zone \"{apex}\" is there twice; that of \"{file}\" is not served");
                    problems.push(Problem::warning(kept.wanted.span, message));
                    continue;
                }
                match zone {
                    Some(zone) => loaded.push(Arc::clone(zone)),
                    None => missing.push(*apex),
                }
            }
        }
        let mut all: BTreeMap<Option<String>, Arc<Zones>> = BTreeMap::new();
        let before = std::mem::take(&mut self.checks);
        for (set, (loaded, missing)) in groups {
            let checks = (&before, &mut self.checks);
            let specials = specials((settings, set.as_deref()), key, sets, checks, &loaded, problems);
            let zones = Zones::with_missing(key, loaded, &missing).with_specials(specials);
            let zones = match &self.aliases {
                Some(aliases) => zones.with_aliases(Arc::clone(aliases)),
                None => zones,
            };
            self.check_aliases(&zones, set.as_deref(), settings, problems);
            all.insert(set, Arc::new(if settings.rotate { zones.rotating() } else { zones }));
        }
        self.served = all.remove(&None);
        if settings.has_added_zones && self.served.is_none() {
            let none = Zones::new(key, Vec::new());
            self.served = Some(Arc::new(if settings.rotate { none.rotating() } else { none }));
        }
        self.sets = all.into_iter().filter_map(|(set, zones)| Some((set?, zones))).collect();
        // A directory may have no zone yet; policies name its set all the same.
        for directory in settings.zone_directories.iter().filter_map(|directory| directory.set.as_ref()) {
            self.sets.entry(directory.value.clone()).or_insert_with(|| Arc::new(Zones::new(key, Vec::new())));
        }
    }
}

impl ZonePlans {
    /// Complains of ALIAS records that lead where nobody asks, and of those whose addresses are not signed.
    fn check_aliases(
        &self,
        zones: &Zones,
        set: Option<&str>,
        settings: &Settings,
        problems: &mut Vec<Problem>,
    ) {
        let has_aliases = |kept: &&Kept| {
            let zones = kept.zones.iter().filter_map(|(_, zone)| zone.as_ref());
            kept.wanted.set.as_deref() == set && zones.clone().any(|zone| zone.facts().aliases > 0)
        };
        let with_aliases: Vec<&Kept> = self.kept.iter().filter(has_aliases).collect();
        if with_aliases.is_empty() {
            return;
        }
        let mut named: BTreeMap<Vec<u8>, &ZoneSettings> = BTreeMap::new();
        for zone in &settings.zones {
            named.entry(folded(&zone.name.value)).or_insert(zone);
        }
        for kept in with_aliases {
            let zones_of_file = kept.zones.iter().filter_map(|(_, zone)| zone.as_ref());
            for zone in zones_of_file.filter(|zone| zone.facts().aliases > 0) {
                let apex = zone.apex();
                let targets = zone.alias_targets();
                let ends = targets.iter().filter_map(|target| zones.end_of_alias(target.as_name()));
                let first = ends.map(|end| end.as_name().to_folded().to_string()).min();
                if let Some(end) = first.filter(|_| settings.alias.resolvers.is_empty()) {
                    let message = format!(
                        "zone \"{apex}\" has an ALIAS that leads to \"{end}\", which nobody resolves"
                    );
                    let problem = Problem::warning(kept.wanted.span, message);
                    problems.push(
                        problem.expected("\"alias.resolvers\", or the name of a zone that is served here"),
                    );
                }
                let named = named.get(apex.to_folded().as_bytes());
                let policy = named.and_then(|zone| zone.sign.as_ref()).or(kept.wanted.sign.as_ref());
                if policy.is_some_and(|policy| policy.denial != Denial::Compact) {
                    let message =
                        format!("zone \"{apex}\" is signed, but the addresses of ALIAS records are not");
                    let problem = Problem::warning(kept.wanted.span, message);
                    problems.push(problem.expected("a signing policy with \"denial: compact\""));
                }
            }
        }
    }
}

/// Returns what the zones of a set answer beside their records.
fn specials(
    (settings, set): (&Settings, Option<&str>),
    key: HashKey,
    sets: &Sets,
    (before, checks): (&Checks, &mut Checks),
    loaded: &[Arc<Zone>],
    problems: &mut Vec<Problem>,
) -> Vec<(NameBuf, Specials)> {
    let is_ours = |zone: &&ZoneSettings| {
        zone.set.as_ref().map(|set| set.value.as_str()) == set
            && !(zone.make.is_empty() && zone.choose.is_empty())
    };
    let ours: Vec<&ZoneSettings> = settings.zones.iter().filter(is_ours).collect();
    if ours.is_empty() {
        return Vec::new();
    }
    let signed = loaded.iter().filter(|zone| zone.facts().proof != Proof::None);
    let signed: BTreeSet<Vec<u8>> = signed.map(|zone| zone.apex().to_folded().as_bytes().to_vec()).collect();
    let mut all = Vec::with_capacity(ours.len());
    for zone in ours {
        let apex = zone.name.value;
        let is_signed = signed.contains(&folded(&apex));
        let is_signed =
            is_signed || zone.sign.as_ref().is_some_and(|policy| policy.denial != Denial::Compact);
        if is_signed {
            let message =
                format!("zone \"{apex}\" is signed, but what \"make\" and \"choose\" answer is not");
            let expected = "a zone without signatures, or one that the server signs with \"denial: compact\"";
            problems.push(Problem::warning(zone.name.span, message).expected(expected));
        }
        let makers = zone.make.iter().map(|make| Maker {
            prefix: make.prefix.as_str().into(),
            networks: sets.addresses(std::iter::once(Term::Inline(make.networks.as_slice()))),
            origin: make.origin,
            ttl: ttl(make.ttl),
        });
        let choices = zone.choose.iter().map(|choice| {
            let rtype = choice.rtype.value;
            let alternatives = choice.alternatives.iter().map(|it| {
                let named = it.sets.iter().map(|set| Term::Set(set.value.as_str()));
                let inline = (!it.clients.is_empty()).then_some(Term::Inline(it.clients.as_slice()));
                let has_clients = inline.is_some() || !it.sets.is_empty();
                let clients = has_clients.then(|| sets.addresses(inline.into_iter().chain(named)));
                let alternative = Alternative::new(rtype, ttl(choice.ttl), &it.data);
                let health = choice.check.as_ref().map(|check| {
                    checks.watch(before, (set, apex, choice.name.value, rtype), &it.data, check)
                });
                Alternative { clients, weight: it.weight, health, ..alternative }
            });
            let alternatives: Vec<Alternative> = alternatives.collect();
            Choice::new(choice.name.value, rtype, alternatives)
        });
        let choices: Vec<Choice> = choices.collect();
        all.push((apex, Specials::new(&key, makers.collect(), choices)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Plans;
    use crate::load::load_text;
    use crate::load::tests::Memory;

    #[test]
    fn files_are_named_after_their_zones() {
        for (file, name) in [
            ("/etc/zones/example.org.zone", "example.org"),
            ("db.example.org", "example.org"),
            ("example.org.db", "example.org"),
            ("example.org.json", "example.org"),
            ("example.org", "example.org"),
        ] {
            assert_eq!(name_of(Path::new(file)), name);
        }
    }

    const ORG: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n$INCLUDE more\n";
    const NET: &str = "$TTL 60\n@ SOA ns a 7 2 3 4 5\n@ NS ns\nns A 192.0.2.2\n";

    fn machine(org: &str, more: &str, net: &str) -> Memory {
        Memory::new(&[
            ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
            ("/z/org", org),
            ("/z/more", more),
            ("/z/net", net),
        ])
    }

    fn plans(memory: &Memory, previous: Option<&Plans>) -> Plans {
        let text = "zones: [{name: example.org, file: org}, {name: example.net, file: net}]\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, memory).expect("no mistakes");
        crate::compile(&loaded, &[], previous, memory).map_err(|found| found[0].human()).expect("it compiles")
    }

    /// Returns the serial of each zone that is served, and whether it is the one served before.
    fn serials(plans: &Plans, previous: Option<&Plans>) -> Vec<(u32, bool)> {
        let all = |plans: &Plans| -> Vec<Arc<Zone>> {
            plans.zones.served.as_ref().map_or_else(Vec::new, |zones| zones.all().cloned().collect())
        };
        let before = previous.map_or_else(Vec::new, all);
        let mut found: Vec<(u32, bool)> = all(plans)
            .iter()
            .map(|zone| (zone.facts().serial, before.iter().any(|other| Arc::ptr_eq(other, zone))))
            .collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn zones_whose_files_did_not_change_are_kept() {
        let first = plans(&machine(ORG, "x A 192.0.2.9\n", NET), None);
        assert_eq!(serials(&first, None), [(1, false), (7, false)]);
        assert!(first.warnings.is_empty(), "{:?}", first.warnings);
        let same = plans(&machine(ORG, "x A 192.0.2.9\n", NET), Some(&first));
        assert_eq!(serials(&same, Some(&first)), [(1, true), (7, true)]);
        // An included file is part of its zone.
        let second = plans(&machine(ORG, "y A 192.0.2.9\n", NET), Some(&first));
        assert_eq!(serials(&second, Some(&first)), [(1, false), (7, true)]);
    }

    #[test]
    fn a_zone_with_mistakes_leaves_the_one_before_in_place() {
        let first = plans(&machine(ORG, "", NET), None);
        let second =
            plans(&machine(&ORG.replace(" 1 2 ", " 2 2 "), "", &NET.replace("192.0.2.2", "x")), Some(&first));
        assert_eq!(serials(&second, Some(&first)), [(2, false), (7, true)]);
        let lines: Vec<String> = second.warnings.iter().map(Diagnostic::line).collect();
        assert_eq!(
            lines,
            [
                "/z/g.yaml:1:67: warning: zone \"example.net.\" is not loaded: \"/z/net\" has mistakes; serial 7 is still served",
                "/z/net:4:6: error: \"x\" cannot stand here: expected an IPv4 address",
                "/z/net:2:1: warning: example.net.: no address of the server ns.example.net., which lies in this zone",
            ]
        );
        assert_eq!(second.warnings[1].excerpt, "ns A x");
    }

    #[test]
    fn a_zone_that_was_never_loaded_is_told_and_the_others_are_served() {
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n"), ("/z/net", NET)]);
        let plans = plans(&memory, None);
        assert_eq!(serials(&plans, None), [(7, false)]);
        assert!(
            plans.warnings[0].message.ends_with("questions about it get SERVFAIL"),
            "{:?}",
            plans.warnings
        );
    }

    /// A zone in JSON.
    fn json(apex: &str, serial: u32, address: &str) -> String {
        format!(
            r#"{{"name": "{apex}", "records": [
              {{"name": "{apex}", "type": "SOA", "ttl": 60, "data": {{"mname": "ns.{apex}", "rname": "a.{apex}", "serial": {serial}, "refresh": 2, "retry": 3, "expire": 4, "minimum": 5}}}},
              {{"name": "{apex}", "type": "NS", "ttl": 60, "data": {{"dname": "ns.example.net"}}}},
              {{"name": "a.{apex}", "type": "A", "ttl": 60, "context": ["ams"], "data": {{"ip": "{address}"}}}}]}}"#
        )
    }

    fn in_directory(files: &[(&str, &str)], more: &str, previous: Option<&Plans>) -> Plans {
        let mut all = vec![("/etc/resolv.conf", "nameserver 192.0.2.1\n")];
        all.extend(files);
        let memory = Memory::new(&all);
        let text = format!("zone-directories: [{{path: all{more}}}]\n");
        let loaded = load_text(Path::new("/z/g.yaml"), &text, &memory).expect("no mistakes");
        crate::compile(&loaded, &[], previous, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles")
    }

    #[test]
    fn every_file_of_a_directory_is_a_zone_or_many() {
        let two =
            format!("[{},{}]", json("example.com", 3, "192.0.2.1"), json("example.org", 4, "192.0.2.1"));
        let files =
            [("/z/all/two.json", two.as_str()), ("/z/all/example.net.zone", NET), ("/z/all/readme", "x")];
        let first = in_directory(&files, "", None);
        assert_eq!(serials(&first, None), [(3, false), (4, false), (7, false)]);
        assert_eq!(
            serials(&in_directory(&files[..2], ", format: json", None), None),
            [(3, false), (4, false)]
        );
        assert_eq!(serials(&in_directory(&files[..2], ", format: master", None), None), [(7, false)]);
        // A zone that is gone from its file is gone; what cannot be read stays.
        let one = format!("[{}]", json("example.com", 5, "192.0.2.1"));
        let changed = [("/z/all/two.json", one.as_str()), files[1]];
        let second = in_directory(&changed, "", Some(&first));
        assert_eq!(serials(&second, Some(&first)), [(5, false), (7, true)]);
        let broken = [("/z/all/two.json", &one[..40]), files[1]];
        let third = in_directory(&broken, "", Some(&second));
        assert_eq!(serials(&third, Some(&second)), [(5, true), (7, true)]);
        assert!(
            third.warnings.iter().any(|found| found.message.contains("no zone in")),
            "{:?}",
            third.warnings
        );
        let bad = json("example.com", 6, "192.0.2.300");
        let bad = format!("[{bad},{}]", json("example.org", 7, "192.0.2.1"));
        let fourth = in_directory(&[("/z/all/two.json", &bad)], "", Some(&second));
        assert_eq!(serials(&fourth, Some(&second)), [(5, true), (7, false)]);
    }

    #[test]
    fn how_far_a_large_zone_is_can_be_heard() {
        let text = format!("{NET}$GENERATE 1-140000 h$ A 192.0.2.1\n");
        let mut memory = machine(ORG, "", &text);
        memory.heard = Some(std::cell::RefCell::default());
        let plans = plans(&memory, None);
        assert_eq!(serials(&plans, None), [(1, false), (7, false)]);
        let heard = memory.heard.expect("somebody hears").into_inner();
        assert_eq!(heard, ["example.net.: 65536 of /z/net", "example.net.: 131072 of /z/net"]);
    }

    #[test]
    fn contexts_choose_records() {
        let text = format!("[{}]", json("example.com", 3, "192.0.2.1"));
        let records = |more: &str| {
            let plans = in_directory(&[("/z/all/a.json", &text)], more, None);
            let zones = plans.zones.served.as_ref().expect("zones");
            zones.all().map(|zone| zone.facts().records).sum::<usize>()
        };
        assert_eq!((records(""), records(", contexts: ams"), records(", contexts: [fra, sjc]")), (3, 3, 2));
    }

    #[test]
    fn sets_of_zones_are_apart() {
        let memory = machine(ORG, "", NET);
        let text = "zones: [{name: example.org, file: org}, {name: example.org, file: org, set: inside}, {name: example.net, file: net, set: inside}]\n\
            policy: {main: [{if: rd, do: zones(inside)}, zones]}\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        assert_eq!(serials(&plans, None), [(1, false)]);
        assert_eq!(plans.zones.sets.get("inside").map(|zones| zones.len()), Some(2));
        for (wrong, message) in [
            (text.replace("zones(inside)", "zones(insider)"), "unknown set of zones \"insider\""),
            (text.replace("name: example.net", "name: example.org"), "zone \"example.org.\" is there twice"),
        ] {
            let Err(found) = load_text(Path::new("/z/g.yaml"), &wrong, &memory) else {
                panic!("no mistake in {wrong}")
            };
            assert!(found.iter().any(|found| found.message == message), "{found:?}");
        }
    }

    #[test]
    fn other_servers_have_rights_only_to_zones_that_say_so() {
        let memory = Memory::new(&[
            ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
            ("/z/org", ORG),
            ("/z/more", ""),
            ("/z/all/example.net.zone", NET),
        ]);
        let text = "zones: [{name: example.org, file: org, transfer: any}, {name: example.org, file: org, set: inside}, {name: example.com, primaries: 192.0.2.1}]\n\
            zone-directories: [{path: all}]\npolicy: {main: [{if: rd, do: zones(inside)}, zones]}\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        let all: Vec<(String, usize, usize, bool)> = plans
            .zones
            .plans
            .iter()
            .map(|plan| {
                let (transfer, notify) = (plan.rights.transfer.len(), plan.rights.notify.len());
                (plan.apex.to_string(), transfer, notify, plan.zone.is_some())
            })
            .collect();
        assert_eq!(all, [("example.org.".to_owned(), 1, 0, true), ("example.com.".to_owned(), 0, 1, false)]);
        let served = plans.zones.served.expect("zones");
        // One in a file, one in a directory, and one that has not come yet.
        assert_eq!((served.all().count(), served.unloaded().count()), (2, 1));
        for (special, message) in [
            ("set: inside, transfer: any", "other servers do not hear of a zone of a set"),
            ("set: inside, catalog-role: consumer", "other servers do not hear of a zone of a set"),
            ("sign: s, catalog-role: producer", "the server signs no catalog"),
        ] {
            let text =
                format!("zones: [{{name: example.org, file: org, {special}}}]\nsigning: {{s: {{}}}}\n");
            let Err(found) = load_text(Path::new("/z/g.yaml"), &text, &memory) else {
                panic!("no mistake in {text}")
            };
            assert!(found.iter().any(|found| found.message == message), "{special}: {found:?}");
        }
    }

    #[test]
    fn a_zone_that_is_to_be_signed_is_given_away_only_signed() {
        let memory = machine(ORG, "", NET);
        let text = "zones: [{name: example.org, file: org, sign: s, transfer: any}]\nsigning: {s: {}}\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let mut plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        let plan = &plans.zones.plans[0];
        assert!(plan.signed.is_file() && plan.zone.is_none() && plan.source == 0);
        assert_eq!(plans.zones.signed.as_ref().map(|zones| zones.all().count()), Some(0));
        // What it is signed as does not matter here.
        let signed = plans.signing.zones[0].source.clone().expect("what is written");
        assert!(plans.signing.take(Arc::clone(&signed)));
        let again = crate::compile_again(&loaded, &[], Some(&plans), &memory, Some(""))
            .map_err(|found| found[0].human())
            .expect("it compiles");
        let plan = &again.zones.plans[0];
        assert!(plan.zone.as_ref().is_some_and(|zone| Arc::ptr_eq(zone, &signed)) && plan.source != 0);
    }

    #[test]
    fn what_zones_make_and_choose_is_checked() {
        let memory = machine(ORG, "", NET);
        for (special, message) in [
            ("make: [{prefix: a.b, networks: 192.0.2.0/24}]", "\"a.b\" cannot begin a label"),
            ("make: [{prefix: a}]", "\"networks\" is missing"),
            (
                "choose: [{name: www.example.net, type: A, from: [{data: 192.0.2.1}]}]",
                "\"www.example.net.\" is not in this zone",
            ),
            (
                "choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.300}]}]",
                "\"192.0.2.300\" is no data of type A",
            ),
            (
                "choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1, clients: lan}]}]",
                "a client that none of these name would get nothing",
            ),
            (
                "choose: [{name: www.example.org, type: NS, from: [{data: a.}]}]",
                "NS cannot depend on who asks",
            ),
            (
                "choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1, sets: de}, {data: 192.0.2.2}]}]",
                "unknown set \"de\"",
            ),
        ] {
            let text = format!("zones: [{{name: example.org, file: org, {special}}}]\n");
            let Err(found) = load_text(Path::new("/z/g.yaml"), &text, &memory) else {
                panic!("no mistake in {text}")
            };
            assert!(found.iter().any(|found| found.message == message), "{special}: {found:?}");
        }
        let text = "zones: [{name: example.org, file: org, make: [{networks: 192.0.2.0/24}], choose: [{name: www.example.org, type: A, from: [{data: [192.0.2.1, 192.0.2.2], clients: lan}, {data: 192.0.2.3}]}]}]\n";
        let loaded = load_text(Path::new("/z/g.yaml"), text, &memory).expect("no mistakes");
        let plans = crate::compile(&loaded, &[], None, &memory)
            .map_err(|found| found[0].human())
            .expect("it compiles");
        assert!(plans.zones.served.is_some_and(|zones| zones.are_for_clients()));
    }

    #[test]
    fn of_many_files_it_is_heard_how_many_were_read() {
        let mut memory = Memory { heard: Some(std::cell::RefCell::default()), ..Memory::default() };
        for number in 0..300 {
            let text = b"@ SOA ns.example.net. h.example.net. 1 1 1 1 1\n NS ns.example.net.\n".to_vec();
            memory.files.insert(PathBuf::from(format!("/z/z{number}.example.zone")), text);
        }
        let loaded = load_text(Path::new("/c.yaml"), "zone-directories: [{path: /z}]\n", &memory);
        let loaded = loaded.unwrap_or_else(|found| panic!("{}", found[0].human()));
        let plans = crate::compile(&loaded, &[], None, &memory);
        assert!(plans.is_ok_and(|plans| plans.zones.served.is_some_and(|zones| zones.len() == 300)));
        let heard = memory.heard.map(std::cell::RefCell::into_inner).unwrap_or_default();
        assert_eq!(heard, ["zones: 256 of all"]);
    }
}
