//! A zone on disk: a version of it, and the steps that came after.
//!
//! Two files for each zone. `NAME.base` holds one version; it is only ever replaced as a whole. `NAME.log` holds steps in
//! the order in which they were made; it only grows, but for being replaced when it is too large. Both are rows of entries:
//!
//! ```text
//! octets  0..8   length of what follows the checksum
//!         8..12  CRC-32 of the length and of what follows
//!         12     what it is
//!         13..   what it says
//! ```
//!
//! A log is read up to the first entry that is not whole: what follows was never acknowledged. Its first entry says which
//! base it belongs to, by a number that no other base has: if the power is lost between the two being replaced, the steps in
//! the old log are in the new base already. It says, too, how many of the steps after it the base has already: they are history.

use std::io;
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Ttl};
use zone::Zone;
use zone::difference::{self, Difference};
use zone::rows::Rows;

use crate::disk::Disk;

/// Octets of an entry before what it says.
const HEAD: usize = 13;
/// An entry with a version.
const WHOLE: u8 = 1;
/// An entry with a step.
const STEP: u8 = 2;
/// An entry with the time at which the zone's origin was heard of.
const HEARD: u8 = 3;
/// An entry with the number of the base that the log belongs to, and how many steps after it are history.
const BASE: u8 = 4;

/// An entry with a version that was signed with keys it brought, which are not kept. The steps that follow lead to others like
/// it.
const WHOLE_WITH_KEYS: u8 = 5;

/// Where a version came from, as far as files go: a number that stands for the file's contents. 0: from no file.
pub type Source = u64;

/// What there is on disk.
#[derive(Default)]
pub struct Found {
    /// The newest version.
    pub zone: Option<Arc<Zone>>,
    /// Steps that lead to it, oldest first, without a gap.
    pub history: Vec<Arc<Difference>>,
    /// When the zone's origin was last heard of, in seconds since 1970.
    pub heard: u64,
    /// The file that it came from.
    pub source: Source,
    /// Octets of the log.
    pub log_octets: u64,
}

impl Found {
    /// Adds a step to the history; one that does not follow the last one begins it anew.
    fn remember(&mut self, step: Difference) {
        if self.history.last().is_some_and(|last| last.new_serial() != step.old_serial()) {
            self.history.clear();
        }
        self.history.push(Arc::new(step));
    }
}

/// The files of one zone.
pub struct Journal {
    disk: Arc<dyn Disk>,
    apex: NameBuf,
    base: String,
    log: String,
    /// The number of the base; 0: there is none. Random, so that no log of an earlier life belongs to it.
    number: u64,
    /// Whether the base was signed with keys that it brought.
    has_own_keys: bool,
}

/// Returns what a zone's files are called: its name in lower case, with `%` and two digits for what file names should not
/// have.
pub fn file_name(apex: Name<'_>) -> String {
    let mut name = String::new();
    for label in apex.to_folded().as_name().labels() {
        for &octet in label {
            match octet {
                b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(octet)),
                _ => name.push_str(&format!("%{octet:02x}")),
            }
        }
        name.push('.');
    }
    if name.is_empty() {
        name.push('.');
    }
    // A long name is cut short; its hash keeps it apart from others.
    if name.len() > 200 {
        let sum = crc32fast::hash(apex.to_folded().as_bytes());
        name.truncate(200);
        name.push_str(&format!("%{sum:08x}."));
    }
    // A folder lists files that begin with a dot last, if at all.
    if name == "." { "%root.".to_owned() } else { name }
}

/// Returns an entry.
pub(crate) fn entry(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut entry = Vec::with_capacity(HEAD + len);
    entry.extend_from_slice(&(len as u64).to_be_bytes());
    entry.extend_from_slice(&[0; 4]);
    entry.push(kind);
    for part in parts {
        entry.extend_from_slice(part);
    }
    let sum = checksum(&entry[..8], &entry[12..]);
    entry[8..12].copy_from_slice(&sum.to_be_bytes());
    entry
}

fn checksum(length: &[u8], rest: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(length);
    sum.update(rest);
    sum.finalize()
}

/// Splits the first entry off; `None` if it is not whole.
pub(crate) fn split(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let len = usize::try_from(u64::from_be_bytes(*length)).ok()?;
    let (body, after) = rest.split_at_checked(len)?;
    if checksum(length, body) != u32::from_be_bytes(*sum) {
        return None;
    }
    let (&kind, said) = body.split_first()?;
    Some((kind, said, after))
}

/// Takes what an entry says apart.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*number))
    }

    /// Octets behind their length.
    fn octets(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (octets, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(octets)
    }

    fn soa(&mut self) -> Option<(Ttl, Box<[u8]>)> {
        let ttl = u32::try_from(self.number()?).ok()?;
        Some((Ttl::new(ttl), self.octets()?.into()))
    }
}

/// Returns a number that is not 0.
fn random() -> io::Result<u64> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).map_err(io::Error::other)?;
    Ok(u64::from_be_bytes(octets) | 1)
}

fn with_length(octets: &[u8]) -> Vec<u8> {
    [&(octets.len() as u64).to_be_bytes(), octets].concat()
}

fn soa(soa: &(Ttl, Box<[u8]>)) -> Vec<u8> {
    [&u64::from(soa.0.seconds()).to_be_bytes()[..], &with_length(&soa.1)].concat()
}

pub(crate) fn step_entry(step: &Difference, source: Source) -> Vec<u8> {
    entry(
        STEP,
        &[
            &source.to_be_bytes(),
            &soa(&step.old_soa),
            &soa(&step.new_soa),
            &with_length(step.removed.as_bytes()),
            &with_length(step.added.as_bytes()),
        ],
    )
}

fn read_step(said: &[u8], apex: &NameBuf) -> Option<(Difference, Source)> {
    let mut reader = Reader(said);
    let source = reader.number()?;
    let (old_soa, new_soa) = (reader.soa()?, reader.soa()?);
    let (removed, added) = (Rows::parse(reader.octets()?)?, Rows::parse(reader.octets()?)?);
    Some((Difference { apex: *apex, old_soa, new_soa, removed, added }, source))
}

/// Reads steps up to the first entry that is not whole, and returns where that begins.
pub(crate) fn read_steps(octets: &[u8], apex: &NameBuf) -> (Vec<Difference>, usize) {
    let mut rest = octets;
    let mut steps = Vec::new();
    while let Some((kind, said, after)) = split(rest) {
        rest = after;
        if kind == STEP
            && let Some((step, _)) = read_step(said, apex)
        {
            steps.push(step);
        }
    }
    (steps, octets.len() - rest.len())
}

impl Journal {
    /// Names the files of a zone.
    pub fn new(disk: Arc<dyn Disk>, apex: Name<'_>) -> Self {
        let name = file_name(apex);
        let (base, log) = (format!("{name}base"), format!("{name}log"));
        Self { disk, apex: apex.to_buf(), base, log, number: 0, has_own_keys: false }
    }

    /// Reads what there is. What is broken is reported and does not count; the zone is what it was before.
    pub fn open(&mut self, key: HashKey) -> io::Result<Found> {
        let mut found = Found::default();
        if let Some(octets) = self.disk.read(&self.base)? {
            self.read_base(&octets, key, &mut found);
        }
        let octets = match self.disk.read(&self.log)? {
            Some(octets) => octets,
            None if found.zone.is_none() => return Ok(found),
            // The power was lost between the two.
            None => Vec::new(),
        };
        let mut rest = octets.as_slice();
        let mut belongs = false;
        let mut history_left = 0;
        let mut is_first = true;
        while let Some((kind, said, after)) = split(rest) {
            rest = after;
            match kind {
                // Further on it says nothing: a log begins anew as a whole.
                BASE if is_first => {
                    let mut reader = Reader(said);
                    belongs = reader.number() == Some(self.number);
                    history_left = reader.number().unwrap_or(0);
                }
                STEP if belongs => {
                    let Some((step, source)) = read_step(said, &self.apex) else { continue };
                    if history_left == 0 {
                        self.take_step(step, source, key, &mut found);
                    } else {
                        history_left -= 1;
                        found.remember(step);
                    }
                }
                // The last word counts: a primary that has the zone from elsewhere may know less than one before.
                HEARD if belongs => found.heard = Reader(said).number().unwrap_or(found.heard),
                _ => {}
            }
            is_first = false;
        }
        if self.has_own_keys {
            // Nobody else has it yet.
            found.zone = found.zone.and_then(Arc::into_inner).map(|zone| Arc::new(zone.with_own_keys()));
        }
        let serial = found.zone.as_ref().map(|zone| zone.facts().serial);
        if found.history.last().is_some_and(|last| Some(last.new_serial()) != serial) {
            // It leads elsewhere: secondaries get the whole zone.
            found.history.clear();
        }
        found.log_octets = (octets.len() - rest.len()) as u64;
        if !belongs && found.zone.is_some() {
            // What comes next must follow the base.
            self.begin_log(&[])?;
            found.log_octets = 0;
            return Ok(found);
        }
        if !rest.is_empty() {
            // Half an entry: whoever asked for it was told nothing.
            self.disk.cut(&self.log, found.log_octets)?;
            self.disk.sync(&self.log)?;
        }
        Ok(found)
    }

    fn read_base(&mut self, octets: &[u8], key: HashKey, found: &mut Found) -> Option<()> {
        let (kind, said, _) = split(octets)?;
        if !matches!(kind, WHOLE | WHOLE_WITH_KEYS) {
            return None;
        }
        let mut reader = Reader(said);
        let (number, source, heard) = (reader.number()?, reader.number()?, reader.number()?);
        let soa = reader.soa()?;
        let rows = Rows::parse(reader.octets()?)?;
        let zone = difference::build(self.apex.as_name(), key, (soa.0, &soa.1), &rows).ok()?;
        self.number = number;
        self.has_own_keys = kind == WHOLE_WITH_KEYS;
        *found = Found { zone: Some(Arc::new(zone)), heard, source, ..Found::default() };
        Some(())
    }

    fn take_step(&self, step: Difference, source: Source, key: HashKey, found: &mut Found) {
        let Some(zone) = &found.zone else { return };
        match step.apply_sharing(zone, &key) {
            Ok(new) => {
                found.zone = Some(new);
                if source != 0 {
                    found.source = source;
                }
                found.remember(step);
            }
            Err(misfit) => {
                tracing::error!(zone = %self.apex, %misfit, "a step of the journal does not fit and is left out");
                found.history.clear();
            }
        }
    }

    /// Returns whether steps to such a version may follow what there is: keys that a zone brings are a matter of its base.
    pub(crate) fn takes_steps_to(&self, zone: &Zone) -> bool {
        self.has_own_keys == zone.facts().has_own_keys
    }

    /// Writes steps; they are there for good when this returns.
    pub fn append(&self, steps: &[Arc<Difference>], source: Source) -> io::Result<u64> {
        let entries: Vec<u8> = steps.iter().flat_map(|step| step_entry(step, source)).collect();
        // All steps of a change become one write; a cut in the middle leaves whole versions.
        self.disk.append(&self.log, &entries)?;
        self.disk.sync(&self.log)?;
        Ok(entries.len() as u64)
    }

    /// Notes when the zone's origin was heard of. If the power is lost, that may be forgotten.
    pub fn note_heard(&self, now: u64) -> io::Result<u64> {
        let entry = entry(HEARD, &[&now.to_be_bytes()]);
        self.disk.append(&self.log, &entry)?;
        Ok(entry.len() as u64)
    }

    /// Writes a whole version and begins the log anew with the steps that led to it.
    pub fn rewrite(
        &mut self,
        zone: &Zone,
        history: &[Arc<Difference>],
        (source, heard): (Source, u64),
    ) -> io::Result<u64> {
        let mut rows = Rows::default();
        zone.for_each_row(|row| rows.push(row));
        let (ttl, data) = zone.soa();
        let number = random()?;
        let has_own_keys = zone.facts().has_own_keys;
        let base = entry(
            if has_own_keys { WHOLE_WITH_KEYS } else { WHOLE },
            &[
                &number.to_be_bytes(),
                &source.to_be_bytes(),
                &heard.to_be_bytes(),
                &soa(&(ttl, data.into())),
                &with_length(rows.as_bytes()),
            ],
        );
        // First the base: the steps in the log are in it already.
        replace(&*self.disk, &self.base, &base)?;
        (self.number, self.has_own_keys) = (number, has_own_keys);
        self.begin_log(history)
    }

    fn begin_log(&self, history: &[Arc<Difference>]) -> io::Result<u64> {
        let mut log = entry(BASE, &[&self.number.to_be_bytes(), &(history.len() as u64).to_be_bytes()]);
        log.extend(history.iter().flat_map(|step| step_entry(step, 0)));
        replace(&*self.disk, &self.log, &log)?;
        Ok(log.len() as u64)
    }

    /// Forgets the zone.
    pub fn remove(&self) -> io::Result<()> {
        self.unlink()?;
        self.disk.sync_names()
    }

    /// Forgets the zone, for sure only after the next [`Disk::sync_names`].
    pub(crate) fn unlink(&self) -> io::Result<()> {
        self.disk.remove(&self.base)?;
        self.disk.remove(&self.log)
    }
}

/// Puts a file in place of another: after a loss of power there is one or the other.
pub(crate) fn replace(disk: &dyn Disk, name: &str, octets: &[u8]) -> io::Result<()> {
    let new = format!("{name}.new");
    disk.create(&new, octets)?;
    disk.sync(&new)?;
    disk.rename(&new, name)?;
    disk.sync_names()
}
