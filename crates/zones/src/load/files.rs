//! The files of zones: which there are, what is kept of them over a reload, and what is served when
//! one cannot be used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::{Diagnostic, Severity, io_text};
use environment::Environment;
use plan::signing::SigningPolicy;
use plan::zones::{
    DirectoryPlan, FileFormat, Finding, Part, Subject, ZonePlan, ZonemdPlan, ZonesPlan, is_json,
};
use sets::AddressSet;
use wire::{HashKey, NameBuf};
use zone::json::Contexts;
use zone::{Pool, Zone};

use super::Found;
use super::check::{Checked, Read, check_with, read_json};
use super::own_keys::{Needed, OwnKeys};
use crate::digest::DigestCheck;

/// A file, the files that it includes, and the zones that came from them.
#[derive(Clone)]
pub(crate) struct LoadedFile {
    pub(super) source: Source,
    /// Every file that was read, and its stamp. Empty when the zones are older than their file.
    pub(super) files: Vec<(PathBuf, u64)>,
    pub(super) zones: Vec<(NameBuf, Option<Arc<Zone>>)>,
    /// Zones of the file that are not as it says, and why; the file itself if it is not known which
    /// zones it has.
    pub(super) failed: Vec<(Option<NameBuf>, Arc<str>)>,
}

impl LoadedFile {
    /// Returns whether this is of the same source, and its files are as they were.
    pub(super) fn is_current(&self, source: &Source, environment: &dyn Environment) -> bool {
        let is_same = |(path, stamp): &(PathBuf, u64)| environment.stamp(path).is_ok_and(|now| now == *stamp);
        // Keys may have come for a zone that had none.
        let has_new_keys = source.own_keys.file.as_ref().is_some_and(|(file, _)| {
            self.files.iter().all(|(known, _)| known != file) && environment.stamp(file).is_ok()
        });
        !self.files.is_empty()
            && (&self.source.file, &self.source.contexts) == (&source.file, &source.contexts)
            && (&self.source.own_keys, &self.source.zonemd) == (&source.own_keys, &source.zonemd)
            && !has_new_keys
            && self.files.iter().all(is_same)
    }

    /// Returns the version of a zone in the file, and the file's number.
    pub(super) fn version(&self, apex: &NameBuf) -> (Option<Arc<Zone>>, u64) {
        let found = self.zones.iter().find(|(other, _)| other == apex);
        (found.and_then(|(_, zone)| zone.clone()), self.number())
    }

    /// Returns why a zone is not as its file says.
    pub(super) fn failure(&self, apex: &NameBuf) -> Option<Arc<str>> {
        let found = self.failed.iter().find(|(of, _)| of.is_none_or(|of| of == *apex));
        found.map(|(_, why)| Arc::clone(why))
    }

    /// Returns a number that stands for what is in a zone's files: FNV-1a over their stamps.
    pub(super) fn number(&self) -> u64 {
        let stamps = self.files.iter().flat_map(|(_, stamp)| stamp.to_be_bytes());
        if self.files.is_empty() {
            return 0;
        }
        stamps.fold(0xcbf2_9ce4_8422_2325, |sum: u64, octet| {
            (sum ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3)
        }) | 1
    }
}

/// A file that zones are read from, as the plan has it.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) file: PathBuf,
    /// The zone; none if all that there are in the file are read.
    pub(super) apex: Option<NameBuf>,
    /// The set of zones that they are in.
    pub(super) set: Option<String>,
    /// Which records are taken.
    pub(super) contexts: Option<Contexts>,
    /// How the zones of a directory are signed.
    pub(super) sign: Option<Arc<SigningPolicy>>,
    /// What other servers may do with the zones of a directory.
    pub(super) common: Option<Arc<ZonePlan>>,
    /// Who may query the zones of a directory; everybody by default.
    pub(super) clients: Option<Arc<AddressSet>>,
    /// How zones are signed that bring keys.
    pub(super) own_keys: OwnKeys,
    /// Whether the zone is for resolvers alone.
    pub(super) is_for_resolvers: bool,
    /// How its digest is checked.
    pub(super) zonemd: Option<Arc<ZonemdPlan>>,
    /// What of the plan it is.
    pub(super) subject: Subject,
}

impl Source {
    /// Returns the file of a zone that is planned by its name.
    pub(super) fn of(zone: &ZonePlan, subject: Subject) -> Option<Self> {
        Some(Self {
            file: zone.file.clone()?,
            apex: Some(zone.apex),
            set: zone.set.clone(),
            contexts: None,
            // The plan says so at the zone.
            sign: None,
            common: None,
            clients: None,
            own_keys: OwnKeys::of(zone),
            is_for_resolvers: zone.is_for_resolvers,
            zonemd: zone.zonemd.clone(),
            subject,
        })
    }

    /// Returns what is the same before and after a reload.
    pub(super) fn key(&self) -> (Option<String>, Option<Vec<u8>>, Option<PathBuf>) {
        let apex = self.apex.as_ref().map(folded);
        // A zone may move to another file.
        let file = apex.is_none().then(|| self.file.clone());
        (self.set.clone(), apex, file)
    }

    fn warning(&self, message: String) -> Finding {
        Finding { subject: self.subject, part: Part::File, message, expected: None }
    }
}

/// Returns a zone's name as it is looked for.
pub(super) fn folded(apex: &NameBuf) -> Vec<u8> {
    apex.as_name().to_folded().as_bytes().to_vec()
}

/// Returns every file that zones are read from.
pub(super) fn sources(
    plan: &ZonesPlan,
    environment: &dyn Environment,
    findings: &mut Vec<Finding>,
) -> Vec<Source> {
    let named = plan.zones.iter().enumerate();
    let mut all: Vec<Source> =
        named.filter_map(|(number, zone)| Source::of(zone, Subject::Zone(number))).collect();
    for (number, directory) in plan.directories.iter().enumerate() {
        let subject = Subject::Directory(number);
        let warning = |message| Finding { subject, part: Part::File, message, expected: None };
        let mut files = Vec::new();
        if let Err(error) = walk(&directory.path, directory.format, 0, environment, &mut files) {
            let why = io_text(&error);
            findings.push(warning(format!("cannot read \"{}\": {why}", directory.path.display())));
        }
        files.sort();
        for file in files {
            match source_in(directory, file, subject) {
                Ok(source) => all.push(source),
                Err(message) => findings.push(warning(message)),
            }
        }
    }
    all
}

/// Returns a file of a directory; an error says why it has no zone.
fn source_in(directory: &DirectoryPlan, file: PathBuf, subject: Subject) -> Result<Source, String> {
    let is_json = is_json(&file);
    let apex = if is_json { None } else { Some(NameBuf::from_text(&name_of(&file))) };
    let apex = apex
        .transpose()
        .map_err(|error| format!("\"{}\" is not called like a zone: {error}", file.display()))?;
    let keys_of = |apex: &NameBuf| {
        let name = apex.to_string();
        let name = name.trim_end_matches('.').replace('/', "%2F");
        Some((directory.key_sets.as_ref()?.join(format!("{name}.private")), Needed::No))
    };
    let own_keys = OwnKeys {
        file: apex.as_ref().and_then(keys_of),
        denial: directory.own_denial,
        has_policy: directory.sign.is_some(),
        is_given_away: directory.common.as_ref().is_some_and(|common| common.is_given_away()),
    };
    Ok(Source {
        file,
        apex,
        set: directory.set.clone(),
        contexts: directory.contexts.clone().filter(|_| is_json),
        sign: directory.sign.clone(),
        common: directory.common.clone(),
        clients: directory.clients.clone(),
        own_keys,
        is_for_resolvers: false,
        zonemd: None,
        subject,
    })
}

/// Directories that may be inside of one another: links can make a circle.
const DEPTH_MAX: usize = 16;

/// Finds the files of a directory and of those in it.
fn walk(
    directory: &Path,
    format: FileFormat,
    depth: usize,
    environment: &dyn Environment,
    files: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for name in environment.list(directory)? {
        let path = directory.join(&name);
        let is_meant = match path.extension().and_then(|extension| extension.to_str()) {
            Some("zone") => Some(format != FileFormat::Json),
            Some("json") => Some(format != FileFormat::Master),
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

/// Returns the zone that a file is named after: `example.org.zone`, `db.example.org` and
/// `example.org` are one's.
pub fn name_of(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_prefix("db.").unwrap_or(&name);
    let name =
        [".zone", ".json", ".db", ".txt"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    name.to_owned()
}

fn read_zones(
    source: &Source,
    key: HashKey,
    pool: &Arc<Pool>,
    environment: &dyn Environment,
) -> Result<Read, String> {
    match &source.apex {
        Some(apex) if !is_json(&source.file) => {
            let Checked { zone, diagnostics, files } =
                check_with(apex.as_name(), &source.file, (key, Some(pool)), &source.own_keys, environment)?;
            Ok(Read { zones: vec![(*apex, zone)], files, diagnostics })
        }
        apex => {
            let only = (apex.as_ref().map(NameBuf::as_name), source.contexts.as_ref());
            let mut read = read_json(&source.file, (key, Some(pool)), only, &source.own_keys, environment)?;
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

/// Reads the zones of a file. What was served of it before is `old`.
pub(super) fn load(
    source: Source,
    (key, pool): (HashKey, &Arc<Pool>),
    old: Option<&LoadedFile>,
    environment: &dyn Environment,
    found: &mut Found,
) -> LoadedFile {
    // Taken before reading: a file that changes meanwhile is read again.
    let stamp = environment.stamp(&source.file);
    let file = source.file.display();
    let mut zones = Vec::new();
    let mut files = Vec::new();
    let mut failed: Vec<(NameBuf, String)> = Vec::new();
    let mut reasons: Vec<(Option<NameBuf>, Arc<str>)> = Vec::new();
    match read_zones(&source, key, pool, environment) {
        Ok(read) => {
            let first = read.diagnostics.iter().find(|other| other.severity == Severity::Error);
            let first = first.map_or_else(|| format!("\"{file}\" has mistakes"), Diagnostic::line);
            found.diagnostics.extend(read.diagnostics);
            let others = read.files.into_iter().skip(1);
            let others = others.map(|path| environment.stamp(&path).map(|stamp| (path, stamp)));
            let all: Result<Vec<_>, _> =
                std::iter::once(stamp.map(|stamp| (source.file.clone(), stamp))).chain(others).collect();
            files = all.unwrap_or_default();
            for (apex, zone) in read.zones {
                let digest = DigestCheck::by_settings(source.zonemd.as_ref(), apex.as_name());
                match zone.map(|zone| digest.check(&zone).map(|()| zone)) {
                    Some(Ok(zone)) => zones.push((apex, Some(Arc::new(zone)))),
                    Some(Err(why)) => {
                        let why = format!("the digest of the zone in \"{file}\" is wrong: {why}");
                        reasons.push((Some(apex), why.as_str().into()));
                        failed.push((apex, why));
                    }
                    None => {
                        failed.push((apex, format!("\"{file}\" has mistakes")));
                        reasons.push((Some(apex), first.as_str().into()));
                    }
                }
            }
            if zones.is_empty() && failed.is_empty() {
                let message = format!("there is no zone in \"{file}\", or none that can be read");
                reasons.push((None, message.as_str().into()));
                found.findings.push(source.warning(message));
                files = Vec::new();
            }
        }
        Err(why) => {
            let why = format!("cannot read \"{file}\": {why}");
            reasons.push((source.apex, why.as_str().into()));
            match &source.apex {
                Some(apex) => failed.push((*apex, why)),
                None => found.findings.push(source.warning(why)),
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
        found.findings.push(source.warning(message));
        zones.push((apex, old));
    }
    if files.is_empty()
        && source.apex.is_none()
        && let Some(old) = old
    {
        zones.extend(old.zones.iter().cloned());
    }
    LoadedFile { source, files: if is_whole { files } else { Vec::new() }, zones, failed: reasons }
}
