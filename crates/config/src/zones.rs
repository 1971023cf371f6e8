//! Zones from their files: what is wrong with each, with its place, and what is served when a file cannot be used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf};
use zone::master::{Include, Included, Mistake, Place};
use zone::{Finding, Level, Zone, Zones};

use crate::diagnostic::{Diagnostic, Problem, Severity};
use crate::load::Surroundings;
use crate::lower::io_text;
use crate::settings::{Settings, ZoneSettings};

/// Octets of a zone's file: places in it are numbers of 32 bits.
const FILE_OCTETS_MAX: u64 = u32::MAX as u64;

/// A zone and the files it came from.
#[derive(Clone)]
struct Kept {
    apex: NameBuf,
    file: PathBuf,
    /// Every file that was read, and its stamp. Empty when the zone is older than its file.
    files: Vec<(PathBuf, u64)>,
    zone: Option<Arc<Zone>>,
}

/// The zones that are served.
#[derive(Clone, Default)]
pub struct ZonePlans {
    kept: Vec<Kept>,
    /// What the engine answers from; `None` when no zone is configured.
    pub served: Option<Arc<Zones>>,
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
    let text = read(file, surroundings)?;
    let mut shelf = Shelf(surroundings);
    let loaded = zone::load(apex, &file.display().to_string(), &text, &mut shelf, key);
    let files: Vec<PathBuf> = loaded.files.iter().map(PathBuf::from).collect();
    let mut excerpts = Excerpts { files: &files, surroundings, texts: BTreeMap::new() };
    let mut diagnostics: Vec<Diagnostic> =
        loaded.mistakes.iter().map(|mistake| excerpts.mistake(mistake)).collect();
    diagnostics.extend(loaded.findings.iter().map(|finding| excerpts.finding(finding, file)));
    if loaded.more > 0 {
        diagnostics.push(Diagnostic {
            message: format!("{} more findings are not told", loaded.more),
            ..excerpts.at(None, file, Severity::Warning)
        });
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
struct Shelf<'s>(&'s dyn Surroundings);

impl Include for Shelf<'_> {
    fn include(&mut self, name: &str, from: &str) -> Result<Included, String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = read(&path, self.0)?;
        Ok(Included { name: path.display().to_string(), text })
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

/// Loads the zones, or takes over those whose files have not changed; with `stays`, all that there are.
pub(crate) fn compile(
    settings: &Settings,
    key: HashKey,
    previous: Option<&ZonePlans>,
    stays: bool,
    surroundings: &dyn Surroundings,
    problems: &mut Vec<Problem>,
    found: &mut Vec<Diagnostic>,
) -> ZonePlans {
    let mut kept = Vec::with_capacity(settings.zones.len());
    let mut is_same = previous.is_some_and(|previous| previous.kept.len() == settings.zones.len());
    let folded = |apex: &NameBuf| apex.as_name().to_folded().as_bytes().to_vec();
    let before: BTreeMap<Vec<u8>, &Kept> = previous
        .into_iter()
        .flat_map(|previous| &previous.kept)
        .map(|old| (folded(&old.apex), old))
        .collect();
    for zone in &settings.zones {
        let old = before.get(&folded(&zone.name.value)).copied();
        let is_current = |old: &&Kept| {
            let is_unchanged = !old.files.is_empty()
                && old.file == zone.file.value
                && old
                    .files
                    .iter()
                    .all(|(path, stamp)| surroundings.stamp(path).is_ok_and(|now| now == *stamp));
            stays || is_unchanged
        };
        if let Some(old) = old.filter(is_current) {
            kept.push(old.clone());
            continue;
        }
        is_same = false;
        kept.push(load(zone, key, old, surroundings, problems, found));
    }
    if let Some(previous) = previous.filter(|_| is_same) {
        return previous.clone();
    }
    let loaded = kept.iter().filter_map(|kept| kept.zone.clone()).collect();
    let missing: Vec<NameBuf> =
        kept.iter().filter(|kept| kept.zone.is_none()).map(|kept| kept.apex).collect();
    let served = (!kept.is_empty()).then(|| Arc::new(Zones::with_missing(key, loaded, &missing)));
    ZonePlans { kept, served }
}

fn load(
    zone: &ZoneSettings,
    key: HashKey,
    old: Option<&Kept>,
    surroundings: &dyn Surroundings,
    problems: &mut Vec<Problem>,
    found: &mut Vec<Diagnostic>,
) -> Kept {
    let apex = zone.name.value;
    let file = zone.file.value.clone();
    // Taken before reading: a file that changes meanwhile is read again.
    let stamp = surroundings.stamp(&file);
    let why = match check(apex.as_name(), &file, key, surroundings) {
        Ok(checked) => {
            found.extend(checked.diagnostics);
            if let Some(loaded) = checked.zone {
                let others = checked.files.into_iter().skip(1);
                let others = others.map(|path| surroundings.stamp(&path).map(|stamp| (path, stamp)));
                let files: Result<Vec<_>, _> =
                    std::iter::once(stamp.map(|stamp| (file.clone(), stamp))).chain(others).collect();
                return Kept { apex, file, files: files.unwrap_or_default(), zone: Some(Arc::new(loaded)) };
            }
            format!("\"{}\" has mistakes", file.display())
        }
        Err(why) => format!("cannot read \"{}\": {why}", file.display()),
    };
    let old = old.and_then(|old| old.zone.clone());
    let instead = match &old {
        Some(old) => format!("serial {} is still served", old.facts().serial),
        None => "questions about it get SERVFAIL".to_owned(),
    };
    problems
        .push(Problem::warning(zone.file.span, format!("zone \"{apex}\" is not loaded: {why}; {instead}")));
    Kept { apex, file, files: Vec::new(), zone: old }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Plans;
    use crate::load::load_text;
    use crate::load::tests::Memory;

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
}
