//! What configurations and zones are read in: the file system, variables and the machine.
//!
//! Never knows what a file holds: whoever reads it says what is wrong with it.

#![forbid(unsafe_code)]

mod devices;
pub mod glob;
mod pace;

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use lists::own::OwnList;
use wire::Name;
use zone::Zone;

pub use devices::device_number;
pub use pace::Pace;

/// Octets of one file, so that a device or a log given by mistake does not fill the memory.
pub const FILE_OCTETS_MAX: usize = 16 << 20;

/// What takes long to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// A set.
    Set,
    /// A zone.
    Zone,
}

/// How far a large set or zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetProgress<'a> {
    /// What it is.
    pub what: Loading,
    /// Its name.
    pub set: &'a str,
    /// The list or file that is read; none when all are, and the set is put together, or of many
    /// files with zones.
    pub list: Option<&'a str>,
    /// Lines, entries or records that are read, or rules of the set.
    pub count: usize,
}

/// A list of the operator that is kept beside the settings.
#[derive(Clone, Debug)]
pub struct KeptList {
    /// What is known of it, and changed while it is in use.
    pub list: Arc<OwnList>,
    /// The file with its text; without one it is empty.
    pub file: Option<PathBuf>,
}

/// Keeps what is changed of data beside the settings: texts in the order of their numbers, each
/// with who made it so, and on disk with its row of the audit log when it is kept.
pub trait Keeper: Send + Sync {
    /// Returns the texts of a space and their numbers, in order.
    fn texts(&self, space: &str) -> io::Result<Vec<(u64, String)>>;

    /// Keeps one more text, or nothing; with who it is from, and what the audit log says of it.
    fn keep(&self, space: &str, number: u64, text: &str, said: (&str, &str)) -> io::Result<()>;

    /// Forgets the texts up to a number: what they say is kept elsewhere.
    fn forget(&self, space: &str, up_to: u64) -> io::Result<()>;
}

/// What a configuration and zones are read in.
pub trait Environment {
    /// Returns the value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Reads a file; may stop after 16 MiB and one octet, which is too large.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Reads a list of a set; may stop after `octets_max` octets and one, which is too large.
    fn read_list(&self, path: &Path, octets_max: u64) -> io::Result<Vec<u8>> {
        let _ = octets_max;
        self.read(path)
    }

    /// Opens a file to be read piece by piece; it may end after `octets_max` octets and one, which
    /// is too large.
    fn open(&self, path: &Path, octets_max: u64) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(io::Cursor::new(self.read_list(path, octets_max)?)))
    }

    /// Returns a number that changes when a file does: two readings with the same number between
    /// them are the same.
    fn stamp(&self, path: &Path) -> io::Result<u64> {
        let mut hasher = DefaultHasher::new();
        self.read(path)?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    /// Returns the version in use of a zone that comes from other servers; `None` if none has come
    /// yet.
    fn zone(&self, apex: Name<'_>) -> Option<Arc<Zone>> {
        let _ = apex;
        None
    }

    /// Returns a list that is kept beside the settings; `None` where nobody knows.
    fn own_list(&self, name: &str) -> Option<KeptList> {
        let _ = name;
        None
    }

    /// Returns what keeps changes of data beside the settings; `None` where nothing does.
    fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        None
    }

    /// Hears how far a large set or zone is: again and again while it is made.
    fn hear(&self, progress: &SetProgress<'_>) {
        let _ = progress;
    }

    /// Returns the names in a directory, in any order.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Returns whether a configuration may include files: one that somebody sends may not.
    fn may_include(&self) -> bool {
        true
    }

    /// Returns where the system's resolver configuration is.
    fn resolv_conf(&self) -> PathBuf;

    /// Returns where the system's hosts file is.
    fn hosts_file(&self) -> PathBuf;

    /// Returns how many processors the process may use.
    fn processors(&self) -> usize;

    /// Fills `octets` with what nobody can guess.
    fn random(&self, octets: &mut [u8]);

    /// Returns whether every user of the machine may read a file.
    fn is_open_to_all(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Returns the seconds since 1970.
    fn unix_seconds(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0)
    }
}

/// The machine we run on.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Environment for System {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut octets = Vec::new();
        open(path)?.take(FILE_OCTETS_MAX as u64 + 1).read_to_end(&mut octets)?;
        Ok(octets)
    }

    fn read_list(&self, path: &Path, octets_max: u64) -> io::Result<Vec<u8>> {
        let file = open(path)?;
        let len = file.metadata().map_or(0, |metadata| metadata.len()).min(octets_max);
        let mut octets = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
        file.take(octets_max.saturating_add(1)).read_to_end(&mut octets)?;
        Ok(octets)
    }

    fn open(&self, path: &Path, octets_max: u64) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(open(path)?.take(octets_max.saturating_add(1))))
    }

    fn stamp(&self, path: &Path) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path)?;
        let mut hasher = DefaultHasher::new();
        let changed = [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())];
        (metadata.dev(), metadata.ino(), metadata.len(), changed).hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        // A name that is not UTF-8 cannot be asked for in a configuration.
        std::fs::read_dir(directory)?
            .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
            .collect()
    }

    fn resolv_conf(&self) -> PathBuf {
        PathBuf::from("/etc/resolv.conf")
    }

    fn hosts_file(&self) -> PathBuf {
        PathBuf::from("/etc/hosts")
    }

    fn is_open_to_all(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        /// "Others may read."
        const OTHERS_READ: u32 = 0o004;
        std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & OTHERS_READ != 0)
    }

    fn processors(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn random(&self, octets: &mut [u8]) {
        getrandom::fill(octets).expect("the kernel has a random number generator");
    }
}

/// Opens a file for reading. What else can be opened may keep whoever reads it for ever: a pipe
/// until somebody writes, a device without an end.
fn open(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = std::fs::metadata(path)?.file_type();
    let what = if kind.is_file() {
        return std::fs::File::open(path);
    } else if kind.is_dir() {
        "it is a directory, not a file"
    } else if kind.is_fifo() {
        "it is a pipe, not a file"
    } else if kind.is_socket() {
        "it is a socket, not a file"
    } else {
        "it is a device, not a file"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The machine we run on, for somebody who wants to hear how far large sets are.
pub struct Telling<F>(pub F);

/// Like [`Telling`], on a server whose zones from other servers and own lists are at hand.
pub struct Serving<F, Z, L> {
    /// Hears how far large sets are.
    pub hear: F,
    /// Finds a zone.
    pub zone: Z,
    /// Finds a list that is kept beside the settings.
    pub own_list: L,
    /// Keeps changes of data beside the settings.
    pub keeper: Option<Arc<dyn Keeper>>,
}

impl<F, Z, L> Environment for Serving<F, Z, L>
where
    F: Fn(&SetProgress<'_>),
    Z: Fn(Name<'_>) -> Option<Arc<Zone>>,
    L: Fn(&str) -> Option<KeptList>,
{
    fn own_list(&self, name: &str) -> Option<KeptList> {
        (self.own_list)(name)
    }

    fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        self.keeper.clone()
    }

    fn zone(&self, apex: Name<'_>) -> Option<Arc<Zone>> {
        (self.zone)(apex)
    }

    fn hear(&self, progress: &SetProgress<'_>) {
        (self.hear)(progress);
    }

    fn variable(&self, name: &str) -> Option<String> {
        System.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        System.read(path)
    }

    fn read_list(&self, path: &Path, octets_max: u64) -> io::Result<Vec<u8>> {
        System.read_list(path, octets_max)
    }

    fn open(&self, path: &Path, octets_max: u64) -> io::Result<Box<dyn io::Read + '_>> {
        System.open(path, octets_max)
    }

    fn stamp(&self, path: &Path) -> io::Result<u64> {
        System.stamp(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        System.list(directory)
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

impl<F: Fn(&SetProgress<'_>)> Environment for Telling<F> {
    fn hear(&self, progress: &SetProgress<'_>) {
        self.0(progress);
    }

    fn variable(&self, name: &str) -> Option<String> {
        System.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        System.read(path)
    }

    fn read_list(&self, path: &Path, octets_max: u64) -> io::Result<Vec<u8>> {
        System.read_list(path, octets_max)
    }

    fn open(&self, path: &Path, octets_max: u64) -> io::Result<Box<dyn io::Read + '_>> {
        System.open(path, octets_max)
    }

    fn stamp(&self, path: &Path) -> io::Result<u64> {
        System.stamp(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        System.list(directory)
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

/// A machine of files and variables that are all in memory: the one that tests run on.
#[derive(Default)]
pub struct Memory {
    /// The files by their paths.
    pub files: HashMap<PathBuf, Vec<u8>>,
    /// The environment.
    pub variables: HashMap<String, String>,
    /// What was heard about large sets, if anybody listens.
    pub heard: Option<RefCell<Vec<String>>>,
    /// The zones from other servers.
    pub zones: Vec<Arc<Zone>>,
    /// Lists that are kept beside the settings.
    pub own_lists: HashMap<String, KeptList>,
}

impl Memory {
    /// Returns a machine that has these files: path and text.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let files =
            files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect();
        Self { files, ..Self::default() }
    }
}

impl Environment for Memory {
    fn own_list(&self, name: &str) -> Option<KeptList> {
        self.own_lists.get(name).cloned()
    }

    fn zone(&self, apex: Name<'_>) -> Option<Arc<Zone>> {
        self.zones.iter().find(|zone| zone.apex() == apex).map(Arc::clone)
    }

    fn hear(&self, progress: &SetProgress<'_>) {
        let SetProgress { set, list, count, .. } = progress;
        if let Some(heard) = &self.heard {
            heard.borrow_mut().push(format!("{set}: {count} of {}", list.unwrap_or("all")));
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::Error::from_raw_os_error(2))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let names = self.files.keys().filter(|path| path.parent() == Some(directory));
        Ok(names.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect())
    }

    fn resolv_conf(&self) -> PathBuf {
        PathBuf::from("/etc/resolv.conf")
    }

    fn hosts_file(&self) -> PathBuf {
        PathBuf::from("/etc/hosts")
    }

    fn processors(&self) -> usize {
        2
    }

    fn random(&self, octets: &mut [u8]) {
        octets.fill(7);
    }
}
