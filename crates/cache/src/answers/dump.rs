//! Keeping answers across a restart.
//!
//! A file is a header and blocks, numbers in little-endian order:
//!
//! ```text
//! header   "GANNETAC" version:32 clock:32 meaning:64 sync:64 written at:32 boot:64 crc32 of all before:32
//! block    sync:64 kind:32 octets:32 entries:32 crc32 of the octets:32 crc32 of all before:32, then the octets
//! ```
//!
//! Kind 1 holds entries, kind 2 is the last and holds their number. `sync` is drawn for each file,
//! so that nobody can send us an answer that looks like a block once the block around it is
//! damaged.
//!
//! Times are those of the wall, because the clock that caches go by begins anew when the machine
//! does; *clock* is what that one said, and *boot* which run of the machine it counts in. Read
//! within the same run, a file has aged by that clock, however often somebody has set the other
//! one. In version 1, *clock* was zero and there was no *boot*.

use super::entry::{Entry, Refusal, Stored};
use super::key::{Key, KeyBits, Now, Scope};
use super::security::Security;
use super::walk::EntryView;
use super::{Cache, Origin};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use wire::{Class, EdeCode, Flags, HashKey, Name, Rcode, Rtype};

const MAGIC: &[u8; 8] = b"GANNETAC";
const VERSION: u32 = 2;
/// Bits of a response code in an entry's field of it; above it is the security state.
const RCODE_BITS: u32 = 12;
const HEADER_OCTETS: usize = 48;
const HEADER_OCTETS_1: usize = 40;
const BLOCK_HEADER_OCTETS: usize = 28;
const KIND_ENTRIES: u32 = 1;
const KIND_LAST: u32 = 2;
/// A block is written once it has this many octets.
const BLOCK_OCTETS: usize = 256 * 1024;
/// More than this a block never has: the above and the largest entry.
const BLOCK_OCTETS_MAX: usize = 1024 * 1024;

/// A wall clock that says less was never set: the first second of 2026.
const WALL_MIN: u32 = 1_767_225_600;

/// What the clocks say when a file is written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The clock that the cache goes by.
    pub now: Now,
    /// The one on the wall, in seconds since 1970.
    pub unix_seconds: u32,
    /// A number of this run of the machine, which no other run has, if there is one.
    pub boot: Option<NonZeroU64>,
}

/// A number for what views and settings mean. A file is loaded only under the meaning it was
/// written with: its views are numbers, and one view's answers must not become another's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meaning(pub u64);

/// How far a dump or a load has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries written or read.
    pub entries: u64,
    /// Octets of the file written or read.
    pub octets: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dumped {
    /// Entries in the file.
    pub entries: u64,
    /// Entries past their stale window, left out.
    pub expired: u64,
    /// Octets of the file.
    pub octets: u64,
}

/// What was read, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Entries in the cache now (unless others took their place since).
    pub entries: u64,
    /// Entries past their stale window.
    pub expired: u64,
    /// Entries older than what the cache had.
    pub superseded: u64,
    /// Entries in good blocks that could not be understood or do not fit this cache.
    pub refused: u64,
    /// Blocks found good.
    pub blocks: u64,
    /// Octets of the file that belong to no good block.
    pub octets_dropped: u64,
    /// Whether the file has its end, and as many entries as that says.
    pub is_complete: bool,
}

/// Why nothing was written or read.
#[derive(Debug)]
pub enum DumpError {
    /// The machine refused.
    Io {
        /// What we were doing, "create" for example.
        doing: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// What the machine said.
        error: io::Error,
    },
    /// Not a file of ours, or its header is damaged.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by another version.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Written under other views or settings.
    Meaning {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, error } => write!(f, "cannot {doing} {}: {error}", path.display()),
            Self::Foreign { path } => {
                write!(f, "{} is not a cache dump, or its header is damaged", path.display())
            }
            Self::Version { path, version } => {
                write!(f, "{} is a cache dump of version {version}, expected {VERSION}", path.display())
            }
            Self::Meaning { path } => {
                write!(f, "{} was written under other views or settings", path.display())
            }
        }
    }
}

impl std::error::Error for DumpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Foreign { .. } | Self::Version { .. } | Self::Meaning { .. } => None,
        }
    }
}

fn refused<'p>(doing: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> DumpError + 'p {
    move |error| DumpError::Io { doing, path: path.to_path_buf(), error }
}

impl Cache {
    /// Writes all entries to a file, which takes the place of `to` only when it is whole and on the
    /// disk.
    ///
    /// Blocks neither readers nor writers. The file is readable by its owner only: it tells who
    /// asked for what. It is built beside `to`, under that name with a dot before and `.new` after;
    /// two dumps to one name must not overlap.
    pub fn dump(
        &self,
        to: &Path,
        clocks: Clocks,
        meaning: Meaning,
        progress: impl FnMut(Progress),
    ) -> Result<Dumped, DumpError> {
        let directory = match to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut beside = std::ffi::OsString::from(".");
        beside.push(to.file_name().unwrap_or_default());
        beside.push(".new");
        let beside = directory.join(beside);
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused("remove", &beside)(error));
            }
            _ => {}
        }
        let dumped = self.dump_beside(&beside, clocks, meaning, progress).and_then(|dumped| {
            std::fs::rename(&beside, to).map_err(refused("replace", to))?;
            // The rename is on the disk when the directory is.
            File::open(directory).and_then(|dir| dir.sync_all()).map_err(refused("sync", directory))?;
            Ok(dumped)
        });
        if dumped.is_err() {
            // The first error is the one to report; what is left is overwritten next time.
            let _ = std::fs::remove_file(&beside);
        }
        dumped
    }

    fn dump_beside(
        &self,
        path: &Path,
        clocks: Clocks,
        meaning: Meaning,
        mut progress: impl FnMut(Progress),
    ) -> Result<Dumped, DumpError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(refused("create", path))?;
        let mut out = Blocks::start(file, sync_for(self.hash_key(), clocks), clocks, meaning)
            .map_err(refused("write", path))?;
        let mut failed = None;
        let mut expired = 0;
        self.for_each(|entry| {
            if failed.is_some() {
                return;
            }
            if entry.freshness(clocks.now).is_none() {
                expired += 1;
                return;
            }
            let written = out.add(entry);
            match written {
                Ok(true) => progress(out.progress),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        });
        if let Some(error) = failed {
            return Err(refused("write", path)(error));
        }
        let (file, done) = out.finish().map_err(refused("write", path))?;
        file.sync_all().map_err(refused("sync", path))?;
        progress(done);
        Ok(Dumped { entries: done.entries, expired, octets: done.octets })
    }

    /// Reads entries from a file and stores what is still worth it: at most as old as its stale
    /// window, and no older than what the cache has. Damaged parts are left out and counted.
    pub fn load(
        &self,
        from: &Path,
        clocks: Clocks,
        meaning: Meaning,
        mut progress: impl FnMut(Progress),
    ) -> Result<Loaded, DumpError> {
        let file = File::open(from).map_err(refused("open", from))?;
        let mut window = Window { file, octets: Vec::new(), at: 0, consumed: 0, is_end: false };
        let foreign = || DumpError::Foreign { path: from.to_path_buf() };
        let len = FileHeader::octets(window.peek(HEADER_OCTETS).map_err(refused("read", from))?);
        let header = window.take(len).map_err(refused("read", from))?.ok_or_else(foreign)?;
        let header = FileHeader::parse(header).ok_or_else(foreign)?;
        if !matches!(header.version, 1 | VERSION) {
            return Err(DumpError::Version { path: from.to_path_buf(), version: header.version });
        }
        if header.meaning != meaning {
            return Err(DumpError::Meaning { path: from.to_path_buf() });
        }
        let times = Times { written: header.clocks, read: clocks };
        let mut loaded = Loaded::default();
        let mut read = 0;
        let mut in_file = None;
        while in_file.is_none() {
            match window.next_block(header.sync).map_err(refused("read", from))? {
                Found::Block { kind: KIND_ENTRIES, entries, octets } => {
                    loaded.blocks += 1;
                    read += self.load_block(octets, entries, times, &mut loaded);
                    progress(Progress { entries: read, octets: window.consumed });
                }
                Found::Block { octets, .. } => {
                    in_file = octets.as_array().map(|count| u64::from_le_bytes(*count));
                }
                Found::Damage { octets } => loaded.octets_dropped += octets,
                Found::End => break,
            }
        }
        loaded.octets_dropped += window.rest().map_err(refused("read", from))?;
        loaded.is_complete = in_file == Some(read) && loaded.octets_dropped == 0;
        Ok(loaded)
    }

    /// Stores the entries of a good block; returns how many there were.
    fn load_block(&self, octets: &[u8], entries: u32, times: Times, loaded: &mut Loaded) -> u64 {
        let mut fields = Fields(octets);
        let mut ttl_offsets = Vec::new();
        for i in 0..entries {
            let Some(mut view) = fields.entry(&mut ttl_offsets) else {
                // The frame is good and its content is not: another program wrote it. Lengths mean
                // nothing then.
                loaded.refused += u64::from(entries - i);
                break;
            };
            view.stored_at = times.stored_at(&view);
            match self.load_entry(&view, times.read.now) {
                Some(Stored::New | Stored::Replaced) => loaded.entries += 1,
                Some(Stored::Refused(Refusal::Older)) => loaded.superseded += 1,
                Some(Stored::Refused(_)) => loaded.refused += 1,
                None => loaded.expired += 1,
            }
        }
        u64::from(entries)
    }

    fn load_entry(&self, view: &EntryView<'_>, now: Now) -> Option<Stored> {
        view.freshness(now)?;
        let name = view.name.to_folded();
        let mut key = Key::new(self.hash_key(), &name, view.qtype, view.qclass, view.bits, view.view);
        if let Some(scope) = view.scope {
            key = key.with_scope(self.hash_key(), scope);
        }
        let entry = Entry {
            body: view.body,
            ttl_offsets: view.ttl_offsets,
            rcode: view.rcode,
            flags: view.flags,
            security: view.security,
            answers: view.answers,
            authorities: view.authorities,
            additionals: view.additionals,
            ttl: view.ttl,
            stale: view.stale,
            ede: view.ede,
        };
        let origin = Origin::File { stored_at: view.stored_at, is_proven: view.is_proven || view.uses > 0 };
        Some(self.insert_from(&key, &entry, now, origin))
    }
}

/// Returns a number that nobody outside this process can predict.
fn sync_for(hash_key: &HashKey, clocks: Clocks) -> u64 {
    hash_key.hash(Name::ROOT, u64::from(clocks.unix_seconds ^ clocks.now.0) | 0x5f_64_75_6d << 32)
}

fn crc32(octets: &[u8]) -> u32 {
    crc32fast::hash(octets)
}

/// The clocks when a file was written, and now.
#[derive(Clone, Copy)]
struct Times {
    /// `boot` is missing if the file has none.
    written: Clocks,
    read: Clocks,
}

impl Times {
    /// Returns when an entry was stored, by the cache's clock now; so far the entry says it as the
    /// file does.
    fn stored_at(&self, view: &EntryView<'_>) -> Now {
        // Modulo 2^32: the wall's clock may say less than the entry's age. What came while the file
        // was written has none.
        let age =
            self.written.unix_seconds.wrapping_sub(view.stored_at.0).cast_signed().max(0).cast_unsigned();
        let age = match self.between() {
            Some(between) => age.saturating_add(between),
            // It may have been any time: not fresh any more, but as good as any stale answer.
            None => age.max(view.ttl),
        };
        Now(self.read.now.0.saturating_sub(age))
    }

    /// Returns the seconds between, if that can be known.
    fn between(&self) -> Option<u32> {
        let (written, read) = (&self.written, &self.read);
        if written.boot.is_some() && written.boot == read.boot && read.now >= written.now {
            return Some(read.now.0 - written.now.0);
        }
        let is_set = written.unix_seconds >= WALL_MIN;
        read.unix_seconds.checked_sub(written.unix_seconds).filter(|_| is_set)
    }
}

/// Writes a file block by block.
struct Blocks {
    file: File,
    clocks: Clocks,
    sync: u64,
    block: Vec<u8>,
    entries: u32,
    progress: Progress,
}

impl Blocks {
    fn start(mut file: File, sync: u64, clocks: Clocks, meaning: Meaning) -> io::Result<Self> {
        let mut header = Vec::with_capacity(HEADER_OCTETS);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(clocks.now.0.to_le_bytes());
        header.extend(meaning.0.to_le_bytes());
        header.extend(sync.to_le_bytes());
        header.extend(clocks.unix_seconds.to_le_bytes());
        header.extend(clocks.boot.map_or(0, NonZeroU64::get).to_le_bytes());
        header.extend(crc32(&header).to_le_bytes());
        file.write_all(&header)?;
        let progress = Progress { entries: 0, octets: header.len() as u64 };
        Ok(Self { file, clocks, sync, block: Vec::with_capacity(BLOCK_OCTETS), entries: 0, progress })
    }

    /// Adds an entry; returns whether that completed a block.
    fn add(&mut self, entry: &EntryView<'_>) -> io::Result<bool> {
        let block = &mut self.block;
        let name = entry.name.as_bytes();
        for word in [entry.qtype.0, entry.qclass.0, entry.view] {
            block.extend(word.to_le_bytes());
        }
        let has_scope = if entry.scope.is_some() { HAS_SCOPE } else { 0 };
        let has_ede = if entry.ede.is_some() { HAS_EDE } else { 0 };
        let is_proven = if entry.is_proven { IS_PROVEN } else { 0 };
        block.extend([entry.bits.0, has_scope | has_ede | is_proven, entry.uses, name.len() as u8]);
        let age = self.clocks.now.0.saturating_sub(entry.stored_at.0);
        for number in [self.clocks.unix_seconds.wrapping_sub(age), entry.ttl, entry.stale] {
            block.extend(number.to_le_bytes());
        }
        let counts = [entry.answers, entry.authorities, entry.additionals];
        let rcode = entry.rcode.0 | entry.security.to_bits() << RCODE_BITS;
        let codes = [rcode, entry.flags.0, entry.ede.map_or(0, |ede| ede.0)];
        let lengths = [entry.ttl_offsets.len() as u16, entry.body.len() as u16];
        for word in counts.into_iter().chain(codes).chain(lengths) {
            block.extend(word.to_le_bytes());
        }
        if let Some(scope) = entry.scope {
            block.extend(scope.address);
            block.extend([scope.family, scope.prefix]);
        }
        block.extend(name);
        for offset in entry.ttl_offsets {
            block.extend(offset.to_le_bytes());
        }
        block.extend(entry.body);
        self.entries += 1;
        self.progress.entries += 1;
        if self.block.len() < BLOCK_OCTETS {
            return Ok(false);
        }
        self.write(KIND_ENTRIES)?;
        Ok(true)
    }

    fn write(&mut self, kind: u32) -> io::Result<()> {
        let mut header = [0; BLOCK_HEADER_OCTETS];
        let mut fields = Vec::with_capacity(BLOCK_HEADER_OCTETS);
        fields.extend(self.sync.to_le_bytes());
        for number in [kind, self.block.len() as u32, self.entries, crc32(&self.block)] {
            fields.extend(number.to_le_bytes());
        }
        fields.extend(crc32(&fields).to_le_bytes());
        header.copy_from_slice(&fields);
        self.file.write_all(&header)?;
        self.file.write_all(&self.block)?;
        self.progress.octets += (BLOCK_HEADER_OCTETS + self.block.len()) as u64;
        self.block.clear();
        self.entries = 0;
        Ok(())
    }

    fn finish(mut self) -> io::Result<(File, Progress)> {
        if self.entries > 0 {
            self.write(KIND_ENTRIES)?;
        }
        self.block.extend(self.progress.entries.to_le_bytes());
        self.write(KIND_LAST)?;
        Ok((self.file, self.progress))
    }
}

const HAS_SCOPE: u8 = 1;
const HAS_EDE: u8 = 2;
const IS_PROVEN: u8 = 4;

/// The header of a file, its checksum right.
struct FileHeader {
    version: u32,
    meaning: Meaning,
    sync: u64,
    clocks: Clocks,
}

impl FileHeader {
    /// Returns how long the header at the front of a file is, if it is one.
    fn octets(front: &[u8]) -> usize {
        let mut fields = Fields(front);
        match (fields.take(MAGIC.len()), fields.u32()) {
            (_, Some(1)) => HEADER_OCTETS_1,
            _ => HEADER_OCTETS,
        }
    }

    fn parse(octets: &[u8]) -> Option<Self> {
        let (checked, crc) = octets.split_last_chunk::<4>()?;
        let mut fields = Fields(checked);
        if fields.take(8)? != MAGIC || crc32(checked) != u32::from_le_bytes(*crc) {
            return None;
        }
        let (version, now) = (fields.u32()?, Now(fields.u32()?));
        let (meaning, sync, unix_seconds) = (Meaning(fields.u64()?), fields.u64()?, fields.u32()?);
        let boot = NonZeroU64::new(fields.u64().unwrap_or(0));
        Some(Self { version, meaning, sync, clocks: Clocks { now, unix_seconds, boot } })
    }
}

/// What stands at the front of the unread part of a file.
enum Found<'w> {
    /// A block, checksums right.
    Block { kind: u32, entries: u32, octets: &'w [u8] },
    /// Octets that are no part of a good block; they are skipped.
    Damage { octets: u64 },
    /// Nothing.
    End,
}

/// A file, read front to back through a bounded buffer.
struct Window {
    file: File,
    octets: Vec<u8>,
    at: usize,
    consumed: u64,
    is_end: bool,
}

impl Window {
    /// Returns the unread octets, at least `wanted` of them unless the file ends before.
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.octets.len() - self.at < wanted && !self.is_end {
            self.octets.drain(..self.at);
            self.at = 0;
            let missing = wanted.max(BLOCK_OCTETS) - self.octets.len();
            let got = (&mut self.file).take(missing as u64).read_to_end(&mut self.octets)?;
            self.is_end = got < missing;
        }
        Ok(self.octets.get(self.at..).unwrap_or(&[]))
    }

    fn skip(&mut self, octets: usize) {
        self.at += octets;
        self.consumed += octets as u64;
    }

    fn take(&mut self, octets: usize) -> io::Result<Option<&[u8]>> {
        if self.peek(octets)?.len() < octets {
            return Ok(None);
        }
        self.skip(octets);
        Ok(self.octets.get(self.at - octets..self.at))
    }

    /// Skips what is left and returns how much that was.
    fn rest(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            let here = self.peek(1)?.len();
            if here == 0 {
                return Ok(skipped);
            }
            self.skip(here);
            skipped += here as u64;
        }
    }

    fn next_block(&mut self, sync: u64) -> io::Result<Found<'_>> {
        let ahead = self.peek(BLOCK_HEADER_OCTETS)?;
        if ahead.is_empty() {
            return Ok(Found::End);
        }
        let Some((kind, len, entries, crc)) = block_header(ahead, sync) else {
            // Look for the next `sync`, at the earliest one octet on.
            let marker = sync.to_le_bytes();
            let skip = ahead
                .windows(marker.len())
                .skip(1)
                .position(|window| window == marker)
                .map_or_else(|| (ahead.len() + 1).saturating_sub(marker.len()).max(1), |found| found + 1);
            let skip = if self.is_end && self.octets.len() - self.at <= marker.len() {
                self.octets.len() - self.at
            } else {
                skip
            };
            self.skip(skip);
            return Ok(Found::Damage { octets: skip as u64 });
        };
        let whole = BLOCK_HEADER_OCTETS + len;
        let here = self.peek(whole)?.len();
        if here < whole {
            self.skip(here);
            return Ok(Found::Damage { octets: here as u64 });
        }
        self.skip(whole);
        let octets = self.octets.get(self.at - len..self.at).unwrap_or(&[]);
        if crc32(octets) != crc {
            return Ok(Found::Damage { octets: whole as u64 });
        }
        Ok(Found::Block { kind, entries, octets })
    }
}

/// Reads the header of a block: kind, octets, entries, checksum of the octets.
fn block_header(octets: &[u8], sync: u64) -> Option<(u32, usize, u32, u32)> {
    let (checked, crc) = octets.get(..BLOCK_HEADER_OCTETS)?.split_last_chunk::<4>()?;
    let mut fields = Fields(checked);
    if fields.u64()? != sync || crc32(checked) != u32::from_le_bytes(*crc) {
        return None;
    }
    let (kind, len, entries, crc) = (fields.u32()?, fields.u32()? as usize, fields.u32()?, fields.u32()?);
    (matches!(kind, KIND_ENTRIES | KIND_LAST) && len <= BLOCK_OCTETS_MAX).then_some((kind, len, entries, crc))
}

/// Octets read from the front, never beyond the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, octets: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(octets)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads what [`Blocks::add`] wrote.
    fn entry<'e>(&mut self, ttl_offsets: &'e mut Vec<u16>) -> Option<EntryView<'e>>
    where
        'a: 'e,
    {
        let (qtype, qclass, view) = (self.u16()?, self.u16()?, self.u16()?);
        let (bits, marks, uses, name_octets) = (self.u8()?, self.u8()?, self.u8()?, self.u8()?);
        let (stored_at, ttl, stale) = (self.u32()?, self.u32()?, self.u32()?);
        let (answers, authorities, additionals) = (self.u16()?, self.u16()?, self.u16()?);
        let (rcode, flags, ede) = (self.u16()?, self.u16()?, self.u16()?);
        let security = match Security::from_bits(rcode >> RCODE_BITS) {
            // Dumps of programs that knew no states have AD where they believed it.
            Security::Unchecked if Flags(flags).has(Flags::AD) => Security::Secure,
            security => security,
        };
        let (ttls, body_octets) = (self.u16()?, self.u16()?);
        let scope = match marks & HAS_SCOPE {
            0 => None,
            _ => Some(Scope { address: self.array()?, family: self.u8()?, prefix: self.u8()? }),
        };
        let (name, rest) = Name::parse(self.take(usize::from(name_octets))?).ok()?;
        if !rest.is_empty() {
            return None;
        }
        ttl_offsets.clear();
        for _ in 0..ttls {
            ttl_offsets.push(self.u16()?);
        }
        Some(EntryView {
            name,
            qtype: Rtype(qtype),
            qclass: Class(qclass),
            bits: KeyBits(bits),
            view,
            scope,
            rcode: Rcode(rcode & ((1 << RCODE_BITS) - 1)),
            flags: Flags(flags),
            security,
            answers,
            authorities,
            additionals,
            ede: (marks & HAS_EDE != 0).then_some(EdeCode(ede)),
            stored_at: Now(stored_at),
            ttl,
            stale,
            uses,
            is_proven: marks & IS_PROVEN != 0,
            body: self.take(usize::from(body_octets))?,
            ttl_offsets,
        })
    }
}
