//! A disk that holds what a process has written, and what of it may be left when the power is gone.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

/// Octets that come to the disk together.
const PAGE: usize = 4096;

/// A call that changes something. Paths are below the folder of the process.
pub(super) enum Op {
    /// A file is opened for writing, made if it is not there, and perhaps emptied.
    Open { path: PathBuf, is_emptied: bool },
    /// Octets are written at a place.
    Write(PathBuf, usize, Vec<u8>),
    /// A file gets another length.
    Cut(PathBuf, usize),
    /// A file, or a folder, is to be on the disk.
    SyncFile(PathBuf),
    /// A name becomes another.
    Rename(PathBuf, PathBuf),
    /// A name goes.
    Unlink(PathBuf),
    /// A folder is made.
    MakeFolder(PathBuf),
    /// A step is acknowledged.
    Acknowledge,
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, .. } => write!(f, "open {}", path.display()),
            Self::Write(path, at, octets) => {
                write!(f, "write {} to {} at {at}", octets.len(), path.display())
            }
            Self::Cut(path, len) => write!(f, "cut {} to {len}", path.display()),
            Self::SyncFile(path) => write!(f, "sync {}", path.display()),
            Self::Rename(from, to) => write!(f, "rename {} to {}", from.display(), to.display()),
            Self::Unlink(path) => write!(f, "unlink {}", path.display()),
            Self::MakeFolder(path) => write!(f, "make {}", path.display()),
            Self::Acknowledge => write!(f, "acknowledge"),
        }
    }
}

/// What is lost of what was not synced.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    /// Nothing, and a half of the next call is done.
    Nothing,
    /// All.
    All,
    /// Octets of files; names stay.
    Octets,
    /// Names; octets of files stay.
    Names,
    /// Of pages and names some, by chance with this seed.
    Some(u64),
}

/// Every way to lose something.
pub(super) const LOSSES: [Loss; 6] =
    [Loss::Nothing, Loss::All, Loss::Octets, Loss::Names, Loss::Some(1), Loss::Some(2)];

/// What is left: files with their octets, folders without.
pub(super) type Left = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A file, or a folder.
#[derive(Clone, Default)]
struct Node {
    is_folder: bool,
    now: Vec<u8>,
    /// What is on the disk for certain.
    synced: Vec<u8>,
}

/// What was written, and what of it is there for certain.
#[derive(Default)]
pub(super) struct Disk {
    nodes: Vec<Node>,
    now: BTreeMap<PathBuf, usize>,
    synced: BTreeMap<PathBuf, usize>,
}

impl Disk {
    fn node(&mut self, path: &Path) -> &mut Node {
        let number = *self.now.get(path).unwrap_or_else(|| panic!("{} was never made", path.display()));
        &mut self.nodes[number]
    }

    pub(super) fn carry_out(&mut self, op: &Op) {
        match op {
            Op::Open { path, is_emptied } => {
                if !self.now.contains_key(path) {
                    self.nodes.push(Node::default());
                    self.now.insert(path.clone(), self.nodes.len() - 1);
                }
                if *is_emptied {
                    self.node(path).now.clear();
                }
            }
            Op::Write(path, at, octets) => write(&mut self.node(path).now, *at, octets),
            Op::Cut(path, len) => self.node(path).now.resize(*len, 0),
            Op::SyncFile(path) => {
                // The names in a folder are there when it is synced, not when the files are.
                if path.as_os_str().is_empty() || self.node(path).is_folder {
                    let is_in = |name: &PathBuf| name.parent() == Some(path);
                    self.synced.retain(|name, _| !is_in(name));
                    let names = self.now.iter().filter(|(name, _)| is_in(name));
                    self.synced.extend(names.map(|(name, number)| (name.clone(), *number)));
                } else {
                    let node = self.node(path);
                    node.synced.clone_from(&node.now);
                }
            }
            Op::Rename(from, to) => {
                let number = self.now.remove(from).expect("it is there");
                self.now.insert(to.clone(), number);
            }
            Op::Unlink(path) => drop(self.now.remove(path)),
            Op::MakeFolder(path) => {
                self.nodes.push(Node { is_folder: true, ..Node::default() });
                self.now.insert(path.clone(), self.nodes.len() - 1);
            }
            Op::Acknowledge => {}
        }
    }

    /// Returns what is left if the power goes during the next call.
    pub(super) fn after(&self, loss: Loss, next: Option<&Op>) -> Left {
        let chance = |what: &dyn Fn(&mut DefaultHasher)| {
            let Loss::Some(seed) = loss else { return false };
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            what(&mut hasher);
            hasher.finish().is_multiple_of(2)
        };
        let all: BTreeSet<&PathBuf> = self.now.keys().chain(self.synced.keys()).collect();
        let named = |path: &PathBuf| match loss {
            Loss::Nothing | Loss::Octets => self.now.get(path),
            Loss::All | Loss::Names => self.synced.get(path),
            Loss::Some(_) if chance(&|hasher| path.hash(hasher)) => self.now.get(path),
            Loss::Some(_) => self.synced.get(path),
        };
        let mut left = Left::new();
        for path in all {
            // What is in a folder that is gone is gone with it; parents come first.
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let Some(&number) = named(path).filter(|_| parent.is_none_or(|parent| left.contains_key(parent)))
            else {
                continue;
            };
            let node = &self.nodes[number];
            let octets = match loss {
                _ if node.is_folder => None,
                Loss::Nothing | Loss::Names => Some(node.now.clone()),
                Loss::All | Loss::Octets => Some(node.synced.clone()),
                Loss::Some(_) => {
                    let is_new_length = chance(&|hasher| (path, "length", node.now.len()).hash(hasher));
                    let len = if is_new_length { node.now.len() } else { node.synced.len() };
                    let page = |at: usize| {
                        let is_new = chance(&|hasher| (path, at, node.now.len()).hash(hasher));
                        let from = if is_new { &node.now } else { &node.synced };
                        let end = (at + PAGE).min(from.len()).min(len);
                        let mut page = from.get(at..end).unwrap_or_default().to_vec();
                        page.resize(PAGE.min(len - at), 0);
                        page
                    };
                    Some((0..len).step_by(PAGE).flat_map(page).collect())
                }
            };
            left.insert(path.clone(), octets);
        }
        if let (Loss::Nothing, Some(Op::Write(path, at, octets))) = (loss, next)
            && let Some(Some(file)) = left.get_mut(path)
        {
            write(file, *at, &octets[..octets.len() / 2]);
        }
        left
    }
}

fn write(file: &mut Vec<u8>, at: usize, octets: &[u8]) {
    let end = at + octets.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(octets);
}

/// Returns a number for what is left, the same for the same.
pub(super) fn digest(left: &Left) -> u64 {
    let mut hasher = DefaultHasher::new();
    left.hash(&mut hasher);
    hasher.finish()
}

/// Lays down what is left.
pub(super) fn lay_down(left: &Left, folder: &Path) {
    for (path, octets) in left {
        let path = folder.join(path);
        match octets {
            Some(octets) => fs::write(path, octets).expect("a writable directory"),
            None => fs::create_dir(path).expect("a writable directory"),
        }
    }
}

/// Reads the calls of a process below a folder, as strace has written them with `-xx -y`.
pub(super) fn ops(log: &[u8], folder: &Path, acknowledged: &str) -> Vec<Op> {
    let mut ops = Vec::new();
    // Where each descriptor stands.
    let mut places = BTreeMap::<String, usize>::new();
    for line in String::from_utf8_lossy(log).lines() {
        assert!(!line.contains("unfinished"), "two threads at once: {line}");
        let Some((call, result)) = line.rsplit_once(" = ") else { continue };
        let Some((call, arguments)) = call.split_once('(') else { continue };
        let name = call.split_whitespace().last().unwrap_or_default();
        if result.starts_with('-') {
            continue;
        }
        let arguments: Vec<&str> = arguments.trim_end_matches(')').split(", ").collect();
        let below = |path: Vec<u8>| {
            let path = PathBuf::from(String::from_utf8(path).expect("a path of ours"));
            path.strip_prefix(folder).map(Path::to_owned).ok()
        };
        let named = |at: usize| below(quoted(arguments[at]));
        let opened = |at: usize| {
            let (_, path) = arguments[at].split_once('<')?;
            below(unescaped(path.trim_end_matches('>')))
        };
        let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
        let descriptor = |text: &str| text.split('<').next().unwrap_or_default().to_owned();
        let op = match name {
            "openat" => {
                places.insert(descriptor(result), 0);
                let is_made = arguments[2].contains("O_CREAT");
                let is_emptied = arguments[2].contains("O_TRUNC");
                named(1).filter(|_| is_made || is_emptied).map(|path| Op::Open { path, is_emptied })
            }
            "lseek" => {
                places.insert(descriptor(arguments[0]), result.parse().expect("a place"));
                None
            }
            "write" | "pwrite64" => {
                let octets = quoted(arguments[1]);
                assert_eq!(result.parse::<usize>().expect("a length"), octets.len(), "all of it: {name}");
                let place = places.entry(descriptor(arguments[0])).or_default();
                let at = if name == "write" { *place } else { number(3) };
                if name == "write" {
                    *place += octets.len();
                }
                opened(0).map(|path| match path == Path::new(acknowledged) {
                    true => Op::Acknowledge,
                    false => Op::Write(path, at, octets),
                })
            }
            "ftruncate" => opened(0).map(|path| Op::Cut(path, number(1))),
            "fsync" | "fdatasync" => opened(0).map(Op::SyncFile),
            "rename" => named(0).zip(named(1)).map(|(from, to)| Op::Rename(from, to)),
            "unlink" => named(0).map(Op::Unlink),
            "mkdir" => named(0).map(Op::MakeFolder),
            other => panic!("what is \"{other}\"?"),
        };
        let is_note = |op: &Op| matches!(op, Op::Open { path, .. } if path == Path::new(acknowledged));
        ops.extend(op.filter(|op| !is_note(op)));
    }
    ops
}

fn quoted(text: &str) -> Vec<u8> {
    unescaped(text.trim_matches('"'))
}

/// Reads `\x2f\x74`.
fn unescaped(text: &str) -> Vec<u8> {
    let digits = text.split("\\x").skip(1);
    digits.map(|digits| u8::from_str_radix(&digits[..2], 16).expect("hexadecimal digits")).collect()
}
