//! The last files and changes that went together, for a start at which later ones do not.
//!
//! Texts, not what they mean: another version of the program may read them. Written after each
//! configuration with changes that came into use; a server without changes has no such file.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use environment::{Environment, System};
use settings::overlay::SettingPath;
use settings::{Loaded, load_in};
use store::Hash;

use crate::entries::{Entries, Entry, layers};
use crate::kept::{Kept, WhatBecame};

/// The file, in the folder for changes. It is written after the store.
pub const FILE: &str = "last-good";
/// Its first block.
const MAGIC: &str = "gannet configuration 1";
/// Read and written by the server alone: settings may hold secrets.
const PRIVATE: u32 = 0o600;

/// Files and changes that went together.
#[derive(Debug)]
pub(crate) struct LastGood {
    pub(crate) revision: u64,
    /// Everything behind the revision.
    rest: String,
}

/// What the texts say.
type Texts = (Vec<(PathBuf, String)>, Entries);

/// Writes what is in use. Without changes there is nothing to go back to: files alone are right or
/// wrong by themselves.
pub(crate) fn write(folder: &Path, loaded: &Loaded, entries: &Entries, revision: u64) -> io::Result<()> {
    let path = folder.join(FILE);
    if revision == 0 {
        return Ok(());
    }
    let mut octets = String::new();
    let mut put = |text: &str| put(&mut octets, text);
    let files = loaded.files();
    for text in [MAGIC, &revision.to_string(), &files.len().to_string()] {
        put(text);
    }
    for (file, text) in files {
        put(&file.display().to_string());
        put(text);
    }
    put(&entries.len().to_string());
    for (path, entry) in entries {
        let kept = &entry.kept;
        let until = kept.until.map_or_else(String::new, |until| until.to_string());
        let numbers = [kept.revision.to_string(), kept.at.to_string(), until];
        let texts = [path.as_str(), &kept.what.encoded(), &kept.by, &kept.why];
        texts.into_iter().chain(numbers.iter().map(String::as_str)).for_each(&mut put);
    }
    let sum = Hash::of(octets.as_bytes()).to_string();
    octets.push_str(&sum);
    // At a start it mostly says what is to be written.
    if fs::read(&path).is_ok_and(|known| known == octets.as_bytes()) {
        return Ok(());
    }
    write_file(&path, octets.as_bytes())
}

/// Writes a file in place of the one before: after a power cut there is one of the two.
pub(crate) fn write_file(path: &Path, octets: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&draft)?;
    file.write_all(octets)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    File::open(folder)?.sync_all()
}

/// Adds a text, with its length before it.
pub(crate) fn put(octets: &mut String, text: &str) {
    // It cannot fail: there is memory, or the process ends.
    let _ = write!(octets, "{}\n{text}\n", text.len());
}

/// Reads what was written; `None` if there is none, or not the whole of it.
pub(crate) fn read(folder: &Path) -> Option<LastGood> {
    let octets = fs::read(folder.join(FILE)).ok()?;
    let (rest, sum) = octets.split_at_checked(octets.len().checked_sub(64)?)?;
    if Hash::of(rest).to_string().as_bytes() != sum {
        return None;
    }
    let mut rest = std::str::from_utf8(rest).ok()?;
    if next(&mut rest)? != MAGIC {
        return None;
    }
    let revision = next(&mut rest)?.parse().ok()?;
    Some(LastGood { revision, rest: rest.to_owned() })
}

/// Returns the next text, and what is behind it.
pub(crate) fn next<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let (length, after) = rest.split_once('\n')?;
    let (text, after) = after.split_at_checked(length.parse().ok()?)?;
    *rest = after.strip_prefix('\n')?;
    Some(text)
}

impl LastGood {
    /// Returns the changes; `None` if this version does not know what they say.
    pub(crate) fn entries(&self) -> Option<Entries> {
        Some(self.texts()?.1)
    }

    /// Reads the files and the changes: mostly nobody asks, as the store has them.
    fn texts(&self) -> Option<Texts> {
        let mut rest = self.rest.as_str();
        let mut next = || next(&mut rest);
        let mut files = Vec::new();
        for _ in 0..next()?.parse::<usize>().ok()? {
            files.push((PathBuf::from(next()?), next()?.to_owned()));
        }
        let mut entries = Entries::new();
        for _ in 0..next()?.parse::<usize>().ok()? {
            let path = SettingPath::parse(next()?).ok()?;
            let what = WhatBecame::decode(next()?)?;
            let (by, why) = (next()?.to_owned(), next()?.to_owned());
            let (revision, at) = (next()?.parse().ok()?, next()?.parse().ok()?);
            let until = match next()? {
                "" => None,
                until => Some(until.parse().ok()?),
            };
            let entry = Entry::new(&path, Kept { what, revision, by, at, why, until });
            entries.insert(path, entry);
        }
        Some((files, entries))
    }

    /// Makes settings of it, with what else is on the machine now; `None` if it is not right any
    /// more.
    pub(crate) fn load(&self) -> Option<Loaded> {
        let (files, entries) = self.texts()?;
        let files = KeptFiles(&files);
        let (main, _) = files.0.first()?;
        let alone = load_in(main, &files).ok()?;
        alone.with_changes(&layers(&entries), &files).ok()
    }
}

/// The machine we run on, but with files as they were.
struct KeptFiles<'f>(&'f [(PathBuf, String)]);

impl Environment for KeptFiles<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        System.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.0.iter().find(|(file, _)| file == path) {
            Some((_, text)) => Ok(text.clone().into_bytes()),
            None => System.read(path),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        // Patterns of includes: those that there were.
        let inside = self.0.iter().filter(|(file, _)| file.parent() == Some(directory));
        Ok(inside.filter_map(|(file, _)| Some(file.file_name()?.to_str()?.to_owned())).collect())
    }

    fn resolv_conf(&self) -> PathBuf {
        System.resolv_conf()
    }

    fn hosts_file(&self) -> PathBuf {
        System.hosts_file()
    }

    fn is_open_to_all(&self, path: &Path) -> bool {
        System.is_open_to_all(path)
    }

    fn processors(&self) -> usize {
        System.processors()
    }

    fn random(&self, octets: &mut [u8]) {
        System.random(octets);
    }
}
