//! A zone on disk: a version of it, and the steps that came after.
//!
//! Two files for each zone. `NAME.base` holds one version; it is only ever replaced as a whole.
//! `NAME.log` holds steps in the order in which they were made; it only grows, but for being
//! replaced when it is too large. Both are rows of entries:
//!
//! ```text
//! octets  0..8   length of what follows the checksum
//!         8..12  CRC-32 of the length and of what follows
//!         12     what it is
//!         13..   what it says
//! ```
//!
//! A log is read up to the first entry that is not whole: what follows was never acknowledged. Its
//! first entry says which base it belongs to, by a number that no other base has: if the power is
//! lost between the two being replaced, the steps in the old log are in the new base already. It
//! says, too, how many of the steps after it the base has already: they are history.
//!
//! A step becomes part of the zone by being appended to the log, and in no other way: a base that
//! is written because the log is too large has only what was acknowledged before. So an update that
//! does not fit on the disk is not there after a restart.
//!
//! The base of a zone that has a file holds what the file said when it was last taken, too. A
//! change of the file is found by its contents, and can be applied to what the zone has become.

use std::io;
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Ttl};
use zone::Origin;
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
/// An entry with the time at which the zone was last refreshed from its origin.
const HEARD: u8 = 3;
/// An entry with the number of the base that the log belongs to, and how many steps after it are
/// history.
const BASE: u8 = 4;

/// An entry with a version that was signed with keys it brought, which are not kept. The steps that
/// follow lead to others like it.
const WHOLE_WITH_KEYS: u8 = 5;

/// An entry with what the zone's file said when it was last taken.
const FILE: u8 = 6;

/// Versions that are set aside of a zone at most.
const ASIDE_MAX: usize = 3;

/// What is known of the zone's file as it was when it was last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileMark {
    /// Nothing.
    #[default]
    Unknown,
    /// The stamps of the files, as releases up to 0.2 kept them.
    Stamp(u64),
    /// A number that stands for the records in it, which the base has.
    Contents(u64),
}

/// What a new base has of the zone's file.
#[derive(Clone, Copy)]
pub enum Keeps<'z> {
    /// Nothing: it has none.
    Nothing,
    /// What the base has that is there.
    Same,
    /// Its stamps, as releases up to 0.2 kept them.
    Stamp(u64),
    /// This is what it says.
    File(&'z Zone),
}

/// What there is on disk.
#[derive(Default)]
pub struct Found {
    /// The newest version.
    pub zone: Option<Arc<Zone>>,
    /// Steps that lead to it, oldest first, without a gap.
    pub history: Vec<Arc<Difference>>,
    /// When the zone was last refreshed from its origin, in seconds since 1970.
    pub refreshed_at: u64,
    /// The zone's file when it was last taken.
    pub file: FileMark,
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
    /// The number of the base; 0: there is none. Random, so that no log of an earlier life belongs
    /// to it.
    number: u64,
    /// Whether the base was signed with keys that it brought.
    has_own_keys: bool,
    /// Whether nothing may be appended: the log may have a step at its end that was refused, or
    /// belong to another base.
    is_broken: bool,
}

/// Returns what a zone's files are called: its name in lower case, with `%` and two digits for what
/// file names should not have.
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
pub(crate) fn entry(kind: u8, dependencies: &[&[u8]]) -> Vec<u8> {
    let len = 1 + dependencies.iter().map(|part| part.len()).sum::<usize>();
    let mut entry = Vec::with_capacity(HEAD + len);
    entry.extend_from_slice(&(len as u64).to_be_bytes());
    entry.extend_from_slice(&[0; 4]);
    entry.push(kind);
    for part in dependencies {
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

pub(crate) fn step_entry(step: &Difference) -> Vec<u8> {
    entry(
        STEP,
        &[
            // Releases up to 0.2 said here which file it came from.
            &[0; 8],
            &soa(&step.old_soa),
            &soa(&step.new_soa),
            &with_length(step.removed.as_bytes()),
            &with_length(step.added.as_bytes()),
        ],
    )
}

/// Returns a step, and the stamps of the file that it came from; 0 for none.
fn read_step(said: &[u8], apex: &NameBuf) -> Option<(Difference, u64)> {
    let mut reader = Reader(said);
    let stamp = reader.number()?;
    let (old_soa, new_soa) = (reader.soa()?, reader.soa()?);
    let (removed, added) = (Rows::parse(reader.octets()?)?, Rows::parse(reader.octets()?)?);
    Some((Difference { apex: *apex, old_soa, new_soa, removed, added }, stamp))
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
        Self { disk, apex: apex.to_buf(), base, log, number: 0, has_own_keys: false, is_broken: false }
    }

    /// Reads what there is. What is broken is reported and does not count; the zone is what it was
    /// before. A base that cannot be understood is set aside.
    pub fn open(&mut self, key: HashKey) -> io::Result<Found> {
        let mut found = Found::default();
        if let Some(octets) = self.disk.read(&self.base)? {
            let is_read = self.read_base(&octets, key, &mut found).is_some();
            if !is_read && !octets.is_empty() {
                let to = self.set_aside()?;
                self.unlink()?;
                tracing::error!(zone = %self.apex, "what was kept of the zone is damaged and does not count; it is set aside as {to}");
            }
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
                    let Some((step, stamp)) = read_step(said, &self.apex) else { continue };
                    if history_left == 0 {
                        self.take_step(step, stamp, key, &mut found);
                    } else {
                        history_left -= 1;
                        found.remember(step);
                    }
                }
                // The last word counts: a primary that has the zone from elsewhere may know less
                // than one before.
                HEARD if belongs => found.refreshed_at = Reader(said).number().unwrap_or(found.refreshed_at),
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
            let log = self.log_with(&[]);
            match replace(&*self.disk, &self.log, &log) {
                Ok(()) => found.log_octets = log.len() as u64,
                // What there is is served; the next change tries again.
                Err(error) => self.break_log(&error),
            }
            return Ok(found);
        }
        if !rest.is_empty() {
            // Half an entry: whoever asked for it has no reply.
            let cut = self.disk.cut(&self.log, found.log_octets).and_then(|()| self.disk.sync(&self.log));
            if let Err(error) = cut {
                self.break_log(&error);
            }
        }
        Ok(found)
    }

    /// Appends nothing any more before all is written anew.
    fn break_log(&mut self, error: &io::Error) {
        tracing::warn!(zone = %self.apex, %error, "the zone's journal cannot be mended now");
        self.is_broken = true;
    }

    fn read_base(&mut self, octets: &[u8], key: HashKey, found: &mut Found) -> Option<()> {
        let (kind, said, rest) = split(octets)?;
        if !matches!(kind, WHOLE | WHOLE_WITH_KEYS) {
            return None;
        }
        let mut reader = Reader(said);
        let (number, stamp, refreshed_at) = (reader.number()?, reader.number()?, reader.number()?);
        let soa = reader.soa()?;
        let rows = Rows::parse(reader.octets()?)?;
        // It was served once: nothing that is wrong with it has come since.
        let apex = self.apex.as_name();
        let zone = difference::build_from(Origin::Received, apex, key, (soa.0, &soa.1), &rows).ok()?;
        self.number = number;
        self.has_own_keys = kind == WHOLE_WITH_KEYS;
        let file = match file_entry(rest).and_then(|said| Reader(said).number()) {
            Some(contents) => FileMark::Contents(contents),
            None if stamp != 0 => FileMark::Stamp(stamp),
            None => FileMark::Unknown,
        };
        *found = Found { zone: Some(Arc::new(zone)), refreshed_at, file, ..Found::default() };
        Some(())
    }

    /// Returns the zone's file as it was when it was last taken, if the base has it.
    pub fn file(&self, key: HashKey) -> io::Result<Option<Zone>> {
        let octets = self.disk.read(&self.base)?.unwrap_or_default();
        let said = split(&octets).and_then(|(_, _, rest)| file_entry(rest));
        Ok(said.and_then(|said| {
            let mut reader = Reader(said);
            reader.number()?;
            let soa = reader.soa()?;
            let rows = Rows::parse(reader.octets()?)?;
            difference::build(self.apex.as_name(), key, (soa.0, &soa.1), &rows).ok()
        }))
    }

    /// Copies what there is to names of its own, in place of the oldest of [`ASIDE_MAX`] such
    /// copies. Returns what they are called.
    pub fn set_aside(&self) -> io::Result<String> {
        for file in [&self.base, &self.log] {
            let Some(octets) = self.disk.read(file)? else { continue };
            // Written first: if there is no room for it, the older ones stay.
            let new = format!("{file}.new");
            write_new(&*self.disk, &new, &octets)?;
            for number in (1..ASIDE_MAX).rev() {
                let (from, to) = (format!("{file}.{number}"), format!("{file}.{}", number + 1));
                match self.disk.rename(&from, &to) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            self.disk.rename(&new, &format!("{file}.1"))?;
        }
        self.disk.sync_names()?;
        let path = |file: &str| self.disk.path(&format!("{file}.1")).display().to_string();
        Ok(format!("\"{}\" and \"{}\"", path(&self.base), path(&self.log)))
    }

    fn take_step(&self, step: Difference, stamp: u64, key: HashKey, found: &mut Found) {
        let Some(zone) = &found.zone else { return };
        match step.apply_from(Origin::Received, zone, &key) {
            Ok(new) => {
                found.zone = Some(new);
                if stamp != 0 && !matches!(found.file, FileMark::Contents(_)) {
                    found.file = FileMark::Stamp(stamp);
                }
                found.remember(step);
            }
            Err(misfit) => {
                tracing::error!(zone = %self.apex, %misfit, "a step of the journal does not fit and is left out");
                found.history.clear();
            }
        }
    }

    /// Returns whether steps to such a version may follow what there is: keys that a zone brings
    /// are a matter of its base.
    pub(crate) fn takes_steps_to(&self, zone: &Zone) -> bool {
        !self.is_broken && self.has_own_keys == zone.facts().has_own_keys
    }

    /// Writes steps to a log of so many octets; they are there for good when this returns, or not
    /// at all.
    pub fn append(&mut self, steps: &[Arc<Difference>], log_octets: u64) -> io::Result<u64> {
        let entries: Vec<u8> = steps.iter().flat_map(|step| step_entry(step)).collect();
        // All steps of a change become one write; a cut in the middle leaves whole versions.
        let written = self.disk.append(&self.log, &entries).and_then(|()| self.disk.sync(&self.log));
        self.or_cut(written, log_octets)?;
        Ok(entries.len() as u64)
    }

    /// Notes when the zone was last refreshed from its origin, in a log of so many octets. If the
    /// power is lost, that may be forgotten.
    pub fn note_refreshed_at(&mut self, now: u64, log_octets: u64) -> io::Result<u64> {
        let entry = entry(HEARD, &[&now.to_be_bytes()]);
        let written = self.disk.append(&self.log, &entry);
        self.or_cut(written, log_octets)?;
        Ok(entry.len() as u64)
    }

    /// Takes back what was not written, or not for good: whoever asked for it hears that it was not
    /// done.
    fn or_cut(&mut self, written: io::Result<()>, log_octets: u64) -> io::Result<()> {
        written.inspect_err(|_| {
            let cut = self.disk.cut(&self.log, log_octets).and_then(|()| self.disk.sync(&self.log));
            self.is_broken |= cut.is_err();
        })
    }

    /// Writes a whole version and begins the log anew with the steps that led to it. What there is
    /// stays if there is no room.
    pub fn rewrite(
        &mut self,
        zone: &Zone,
        history: &[Arc<Difference>],
        (keeps, refreshed_at): (Keeps<'_>, u64),
    ) -> io::Result<u64> {
        let mut rows = Rows::default();
        zone.for_each_row(|row| rows.push(row));
        let (ttl, data) = zone.soa();
        let number = random()?;
        let has_own_keys = zone.facts().has_own_keys;
        let (stamp, file) = match keeps {
            Keeps::Nothing => (0, Vec::new()),
            Keeps::Same => (0, self.kept_of_file()?),
            Keeps::Stamp(stamp) => (stamp, Vec::new()),
            Keeps::File(file) => (0, entry_of_file(file)),
        };
        let mut base = entry(
            if has_own_keys { WHOLE_WITH_KEYS } else { WHOLE },
            &[
                &number.to_be_bytes(),
                &stamp.to_be_bytes(),
                &refreshed_at.to_be_bytes(),
                &soa(&(ttl, data.into())),
                &with_length(rows.as_bytes()),
            ],
        );
        base.extend(file);
        let before = std::mem::replace(&mut self.number, number);
        let log = self.log_with(history);
        let disk = Arc::clone(&self.disk);
        let (new_base, new_log) = (format!("{}.new", self.base), format!("{}.new", self.log));
        // Whatever needs room is done before anything is replaced. Then the base goes first: the
        // steps in the log are in it already.
        let begun = write_new(&*disk, &new_log, &log)
            .and_then(|()| write_new(&*disk, &new_base, &base))
            .and_then(|()| disk.rename(&new_base, &self.base));
        if let Err(error) = begun {
            self.number = before;
            drop(disk.remove(&new_log));
            drop(disk.remove(&new_base));
            return Err(error);
        }
        (self.has_own_keys, self.is_broken) = (has_own_keys, true);
        disk.sync_names()?;
        disk.rename(&new_log, &self.log)?;
        disk.sync_names()?;
        self.is_broken = false;
        Ok(log.len() as u64)
    }

    fn log_with(&self, history: &[Arc<Difference>]) -> Vec<u8> {
        let mut log = entry(BASE, &[&self.number.to_be_bytes(), &(history.len() as u64).to_be_bytes()]);
        log.extend(history.iter().flat_map(|step| step_entry(step)));
        log
    }

    /// Returns the entry of the base with what the zone's file says.
    fn kept_of_file(&self) -> io::Result<Vec<u8>> {
        let octets = self.disk.read(&self.base)?.unwrap_or_default();
        let said = split(&octets).and_then(|(_, _, rest)| file_entry(rest));
        Ok(said.map_or_else(Vec::new, |said| entry(FILE, &[said])))
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

fn entry_of_file(file: &Zone) -> Vec<u8> {
    let mut rows = Rows::default();
    file.for_each_row(|row| rows.push(row));
    let (ttl, data) = file.soa();
    let contents = file.contents().to_be_bytes();
    entry(FILE, &[&contents, &soa(&(ttl, data.into())), &with_length(rows.as_bytes())])
}

/// Returns what an entry with the zone's file says, if that comes next.
fn file_entry(octets: &[u8]) -> Option<&[u8]> {
    split(octets).filter(|(kind, ..)| *kind == FILE).map(|(_, said, _)| said)
}

/// Writes a file that nobody knows yet. If that fails, it takes no room.
fn write_new(disk: &dyn Disk, name: &str, octets: &[u8]) -> io::Result<()> {
    let written = disk.create(name, octets).and_then(|()| disk.sync(name));
    written.inspect_err(|_| drop(disk.remove(name)))
}

/// Puts a file in place of another: after a loss of power there is one or the other.
pub(crate) fn replace(disk: &dyn Disk, name: &str, octets: &[u8]) -> io::Result<()> {
    let new = format!("{name}.new");
    write_new(disk, &new, octets)?;
    disk.rename(&new, name).inspect_err(|_| drop(disk.remove(&new)))?;
    disk.sync_names()
}
