//! Collects a zone's records in one row of octets; nothing is allocated for each of them.

use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Rtype};

use crate::check::{Finding, Level, Origin, Problem};
use crate::compile::Compiler;
use crate::master::{Entry, Place};
use crate::records::Record;
use crate::zone::Zone;

/// Findings that are kept; of those after them, only the number.
pub const FINDINGS_MAX: usize = 1000;
/// Octets of a collected record before its data: type, TTL, length, line.
pub(crate) const COLLECTED_HEAD: usize = 12;

/// Records of one owner that came one after the other; without records, a name that exists because
/// others do.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) hash: u64,
    /// Where the labels are; the records follow them.
    pub(crate) name_at: u32,
    pub(crate) records_at: u32,
    pub(crate) end: u32,
    pub(crate) file: u16,
    pub(crate) name_len: u8,
    /// The name is not there, although the version that this one lies over has it.
    pub(crate) is_gone: bool,
}

impl Run {
    /// Returns whether the name is there without records, because others are.
    pub(crate) const fn is_bare(&self) -> bool {
        self.end <= self.records_at
    }
}

/// A zone in the making.
pub struct Builder {
    pub(crate) apex: NameBuf,
    pub(crate) key: HashKey,
    octets: Vec<u8>,
    runs: Vec<Run>,
    /// The run that records are being added to; none while they are not in the zone.
    open: Option<usize>,
    /// Whether it has a record that makes its owner a name of the zone: a hash is none (RFC 5155
    /// §7.2.8).
    has_data: bool,
    /// The owner of the record that was added last, of those that stand in no file.
    last_added: Option<NameBuf>,
    /// The last run whose owner is not directly below the apex.
    last_deep: Option<usize>,
    findings: Vec<Finding>,
    more_findings: usize,
    pub(crate) labels_max: u8,
    pub(crate) has_nsec3: bool,
    is_too_large: bool,
    /// The version that has all names that are not added here.
    pub(crate) base: Option<Arc<Zone>>,
    origin: Origin,
}

/// What came of compiling.
pub struct Built {
    /// The zone, unless a finding forbids it.
    pub zone: Option<Zone>,
    /// What is wrong, in the order of the file; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Findings after those.
    pub more_findings: usize,
}

impl Builder {
    /// Begins a zone. The key hashes its names: zones that are served together share one.
    pub fn new(apex: Name<'_>, key: HashKey) -> Self {
        Self {
            apex: apex.to_buf(),
            key,
            octets: Vec::new(),
            runs: Vec::new(),
            open: None,
            has_data: false,
            last_added: None,
            last_deep: None,
            findings: Vec::new(),
            more_findings: 0,
            labels_max: 0,
            has_nsec3: false,
            is_too_large: false,
            base: None,
            origin: Origin::Own,
        }
    }

    /// Judges the records as those of another server, or as our own.
    #[must_use]
    pub fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Begins a version that has all names from another one but those that are added, the apex
    /// among them. Names between these and the apex do not come by themselves.
    pub(crate) fn over(base: &Arc<Zone>, key: HashKey) -> Self {
        Self { base: Some(Arc::clone(base)), ..Self::new(base.apex(), key) }
    }

    /// Adds a name without records: one that exists because others do, or one that is gone.
    pub(crate) fn push_bare(&mut self, owner: Name<'_>, is_gone: bool) {
        self.last_added = None;
        self.begin_run(owner, 0);
        if let Some(run) = self.open.and_then(|open| self.runs.get_mut(open)) {
            run.is_gone = is_gone;
        }
    }

    /// Makes room for as many octets of text as will be read.
    pub fn reserve(&mut self, text_octets: usize) {
        // A short line has some 25 octets; what is kept of it is about as long.
        self.octets.reserve(text_octets);
        self.runs.reserve(text_octets / 32);
        sets::ask_for_huge_pages(self.octets.spare_capacity_mut());
        sets::ask_for_huge_pages(self.runs.spare_capacity_mut());
    }

    /// Adds a record.
    pub fn push(&mut self, entry: &Entry<'_>) {
        self.last_added = None;
        if !entry.has_same_owner {
            self.begin_run(entry.owner, entry.place.file);
        }
        if self.open.is_none() {
            self.find(Some(entry.place), entry.owner, Problem::OutOfZone);
            return;
        }
        if self.octets.len() > u32::MAX as usize - (1 << 18) {
            self.is_too_large = true;
            return;
        }
        if entry.is_split {
            self.find(Some(entry.place), entry.owner, Problem::Split(entry.rtype));
        }
        if let Some(why) = wire::rdata::contradiction(entry.rtype, entry.rdata) {
            self.find(Some(entry.place), entry.owner, Problem::Data(entry.rtype, why));
        }
        let is_nsec3 = entry.rtype == Rtype::NSEC3;
        self.has_nsec3 |= is_nsec3;
        let covers_nsec3 =
            entry.rtype == Rtype::RRSIG && entry.rdata.starts_with(&Rtype::NSEC3.0.to_be_bytes());
        self.has_data |= !is_nsec3 && !covers_nsec3;
        let mut head = [0; COLLECTED_HEAD];
        head[0..2].copy_from_slice(&entry.rtype.0.to_le_bytes());
        head[2..6].copy_from_slice(&entry.ttl.seconds().to_le_bytes());
        head[6..8].copy_from_slice(&(entry.rdata.len() as u16).to_le_bytes());
        head[8..12].copy_from_slice(&entry.place.line.to_le_bytes());
        self.octets.extend_from_slice(&head);
        self.octets.extend_from_slice(entry.rdata);
    }

    /// Adds a record that stands in no file: of a transfer, an update, another zone. Cheapest if
    /// records of one owner come one after the other. Names in the data are in full; the caller has
    /// checked the data.
    pub fn add(&mut self, record: &Record<'_>) {
        let owner = record.owner();
        let has_same_owner = self.last_added.is_some_and(|last| {
            last.as_name().as_bytes() == owner.as_name().as_bytes() && self.open.is_some()
        });
        let &Record { rtype, ttl, rdata, .. } = record;
        self.push(&Entry {
            owner: owner.as_name(),
            has_same_owner,
            rtype,
            ttl,
            rdata,
            place: Place::NOWHERE,
            is_split: false,
        });
        self.last_added = Some(owner);
    }

    pub(crate) fn find(&mut self, place: Option<Place>, owner: Name<'_>, problem: Problem) {
        let place = place.filter(|place| *place != Place::NOWHERE);
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { place, owner: owner.to_buf(), problem });
        } else if problem.level_in(self.origin) == Level::Error {
            // An error is never among those that are not kept: it decides.
            self.more_findings += 1;
            let origin = self.origin;
            self.findings.retain(|finding| finding.problem.level_in(origin) == Level::Error);
            self.findings.truncate(FINDINGS_MAX - 1);
            self.findings.push(Finding { place, owner: owner.to_buf(), problem });
        } else {
            self.more_findings += 1;
        }
    }

    fn close_run(&mut self) {
        let end = self.octets.len() as u32;
        let Some(open) = self.open.take() else { return };
        let Some(run) = self.runs.get_mut(open) else { return };
        run.end = end;
        if self.has_data && self.base.is_none() {
            let run = *run;
            self.add_names_between(open, &run);
        }
    }

    fn begin_run(&mut self, owner: Name<'_>, file: u16) {
        self.close_run();
        self.has_data = false;
        if self.is_too_large || !owner.is_at_or_below(self.apex.as_name()) {
            return;
        }
        let labels_len = owner.len() - self.apex.as_name().len();
        let name_at = self.octets.len() as u32;
        self.octets.extend_from_slice(&owner.as_bytes()[..labels_len]);
        let records_at = self.octets.len() as u32;
        self.open = Some(self.runs.len());
        self.runs.push(Run {
            hash: self.key.hash_name(owner),
            name_at,
            records_at,
            end: records_at,
            file,
            name_len: labels_len as u8,
            is_gone: false,
        });
        self.labels_max = self.labels_max.max(owner.label_count() as u8);
    }

    /// Adds the names between the apex and an owner, unless an owner before had them added.
    fn add_names_between(&mut self, number: usize, run: &Run) {
        let (at, len) = (run.name_at as usize, usize::from(run.name_len));
        let labels = &self.octets[at..at + len];
        if labels.first().is_none_or(|&first| usize::from(first) + 1 >= len) {
            return;
        }
        let last = self.last_deep.replace(number).and_then(|last| self.runs.get(last)).copied();
        let Ok(owner) = NameBuf::below(labels, self.apex.as_name()) else { return };
        let mut name = owner.as_name();
        let mut skipped = 0;
        while let Some(parent) = name.parent() {
            skipped += name.len() - parent.len();
            name = parent;
            if skipped >= len {
                return;
            }
            if last.is_some_and(|last| {
                ends_in_labels(labels_of(&last, &self.octets), &self.octets[at + skipped..at + len])
            }) {
                return;
            }
            self.runs.push(Run {
                hash: self.key.hash_name(name),
                name_at: (at + skipped) as u32,
                records_at: 0,
                end: 0,
                file: 0,
                name_len: (len - skipped) as u8,
                is_gone: false,
            });
        }
    }

    /// Compiles the zone.
    pub fn compile(mut self) -> Built {
        self.close_run();
        if self.is_too_large {
            let apex = self.apex;
            self.find(None, apex.as_name(), Problem::ZoneTooLarge);
            return self.built(None);
        }
        let mut runs = std::mem::take(&mut self.runs);
        let octets = std::mem::take(&mut self.octets);
        // Runs of one owner stay in the order of the file.
        runs.sort_unstable_by_key(|run| (run.hash, run.name_at));
        part_collisions(&mut runs, &octets);
        let mut compiler = Compiler::new(&mut self, &octets, runs.len());
        let mut rest = runs.as_slice();
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|run| is_same_owner(run, first, &octets)).count();
            let (owner, others) = rest.split_at(count);
            compiler.name(owner);
            rest = others;
        }
        compiler.index_names();
        compiler.mark_names();
        compiler.check_targets();
        let zone = compiler.finish();
        self.built(zone)
    }

    fn built(mut self, zone: Option<Zone>) -> Built {
        self.findings.sort_by_key(|finding| {
            finding.place.map_or((u16::MAX, u32::MAX), |place| (place.file, place.line))
        });
        let origin = self.origin;
        let is_served =
            self.findings.iter().all(|finding| finding.problem.level_in(origin) == Level::Warning);
        let zone = zone.filter(|_| is_served).map(|mut zone| {
            // Of our own, nothing is left that would forbid it.
            let flaws = self.findings.iter().filter(|finding| finding.problem.level() == Level::Error);
            zone.flaws = flaws.cloned().collect();
            zone
        });
        Built { zone, findings: self.findings, more_findings: self.more_findings }
    }
}

/// Returns whether `labels` are the last labels of `other`, or all of them.
pub(crate) fn ends_in_labels(other: &[u8], labels: &[u8]) -> bool {
    let Some(start) = other.len().checked_sub(labels.len()) else { return false };
    if !other[start..].eq_ignore_ascii_case(labels) {
        return false;
    }
    // The octets agree; they must also begin where a label does.
    let mut at = 0;
    while at < start {
        at += 1 + usize::from(other[at]);
    }
    at == start
}

pub(crate) fn labels_of<'o>(run: &Run, octets: &'o [u8]) -> &'o [u8] {
    let at = run.name_at as usize;
    &octets[at..at + usize::from(run.name_len)]
}

fn is_same_owner(run: &Run, other: &Run, octets: &[u8]) -> bool {
    run.hash == other.hash && labels_of(run, octets).eq_ignore_ascii_case(labels_of(other, octets))
}

/// Brings runs of one owner together where two owners have the same hash.
fn part_collisions(runs: &mut [Run], octets: &[u8]) {
    for same_hash in runs.chunk_by_mut(|a, b| a.hash == b.hash) {
        if let Some(first) = same_hash.first().copied()
            && !same_hash.iter().all(|run| is_same_owner(run, &first, octets))
        {
            same_hash.sort_by_key(|run| labels_of(run, octets).to_ascii_lowercase());
        }
    }
}
