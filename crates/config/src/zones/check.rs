//! One file with zones: what is wrong with it, with its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wire::{HashKey, Name, NameBuf};
use zone::json::Contexts;
use zone::master::{Include, Included, Mistake, Place};
use zone::{Finding, Level, Zone};

use crate::diagnostic::{Diagnostic, Severity};
use crate::load::Surroundings;
use crate::lower::io_text;
use crate::sets::{Loading, SetProgress};

/// Octets of a zone's file: places in it are numbers of 32 bits.
const FILE_OCTETS_MAX: u64 = u32::MAX as u64;

pub(super) fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
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

/// Zones that were read, and what is wrong with them.
pub(super) struct Read {
    pub(super) zones: Vec<(NameBuf, Option<Zone>)>,
    pub(super) files: Vec<PathBuf>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Reads the zones of a file in JSON.
pub(super) fn read_json(
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
