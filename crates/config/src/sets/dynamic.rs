//! The dynamic parts of sets: what keeps them over reloads and restarts.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use environment::Environment;
use sets::{DynamicAddresses, DynamicNames};
use values::Misread;
use wire::NameBuf;

use super::Workshop;
use super::store::{Change, Store};
use plan::jobs::Learned;
use settings::{DynamicKind, DynamicSet};

/// Octets of a file that keeps a dynamic set: enough for ten million names.
const FILE_OCTETS_MAX: u64 = 1 << 30;

/// When something leaves that stays.
const FOREVER: u64 = u64::MAX;

/// What becomes of items of a dynamic set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// They are added.
    Add,
    /// They are removed.
    Remove,
}

/// What becomes of an item, as it is written.
pub type Edit<'a> = (Form, &'a str);

/// What is wrong with edits, each with its index among them.
pub(super) type Mistakes = Vec<(usize, DynamicError)>;

fn edits(form: Form, items: &[String]) -> Vec<Edit<'_>> {
    items.iter().map(|item| (form, item.as_str())).collect()
}

/// Returns the first mistake of several.
fn first(wrong: Mistakes) -> DynamicError {
    let none = || DynamicError::Store(io::Error::other("nothing was asked for"));
    wrong.into_iter().next().map_or_else(none, |(_, error)| error)
}

/// Something that a set may hold.
enum Item {
    /// A name with those below it.
    Suffix(NameBuf),
    /// A name alone.
    Exact(NameBuf),
    /// An address or a prefix.
    Prefix(IpAddr, u8),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suffix(name) => write!(f, "{name}"),
            Self::Exact(name) => write!(f, "exact:{name}"),
            Self::Prefix(address, length) => write!(f, "{address}/{length}"),
        }
    }
}

/// Why a dynamic set stays as it is.
#[derive(Debug)]
pub enum DynamicError {
    /// A text is not what the set holds.
    Misread(Misread),
    /// A name has a form that there is not.
    Form(String),
    /// The change cannot be kept.
    Store(io::Error),
}

impl fmt::Display for DynamicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misread(misread) => f.write_str(&misread.message),
            Self::Form(form) => {
                write!(f, "unknown form of name \"{form}:\" (expected suffix: or exact:)")
            }
            Self::Store(error) => write!(f, "nothing is changed, because it cannot be kept: {error}"),
        }
    }
}

impl std::error::Error for DynamicError {}

/// The dynamic part of a set.
#[derive(Clone)]
pub struct Dynamic {
    /// What it holds.
    pub handle: DynamicHandle,
    /// What keeps it over restarts.
    store: Option<Arc<Store>>,
    limit: u32,
    ttl: Option<u32>,
    /// Every handle of the set: that of the configuration in use and, while a reload with another
    /// limit or time is under way, the one that replaces it. A change is made to all of them, so
    /// that none is lost between the copy and its use.
    handles: Arc<Handles>,
}

/// The handles of one set. Locked while the set is changed or copied.
#[derive(Default)]
struct Handles(Mutex<Vec<WeakHandle>>);

impl Handles {
    fn lock(&self) -> MutexGuard<'_, Vec<WeakHandle>> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle that is forgotten with its last user: a configuration that was refused, or replaced.
enum WeakHandle {
    Names(Weak<DynamicNames>),
    Addresses(Weak<DynamicAddresses>),
}

impl WeakHandle {
    fn upgrade(&self) -> Option<DynamicHandle> {
        match self {
            Self::Names(names) => names.upgrade().map(DynamicHandle::Names),
            Self::Addresses(addresses) => addresses.upgrade().map(DynamicHandle::Addresses),
        }
    }
}

/// What a dynamic set holds.
#[derive(Clone)]
pub enum DynamicHandle {
    /// Names, each with those below it.
    Names(Arc<DynamicNames>),
    /// Addresses and prefixes.
    Addresses(Arc<DynamicAddresses>),
}

impl DynamicHandle {
    fn downgrade(&self) -> WeakHandle {
        match self {
            Self::Names(names) => WeakHandle::Names(Arc::downgrade(names)),
            Self::Addresses(addresses) => WeakHandle::Addresses(Arc::downgrade(addresses)),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Names(one), Self::Names(other)) => Arc::ptr_eq(one, other),
            (Self::Addresses(one), Self::Addresses(other)) => Arc::ptr_eq(one, other),
            (Self::Names(_), Self::Addresses(_)) | (Self::Addresses(_), Self::Names(_)) => false,
        }
    }

    fn put(&self, item: &Item, now: u64, leaves: u64) -> sets::Added {
        match (self, item) {
            (Self::Names(names), Item::Suffix(name)) => names.add(name.as_name(), now, Some(leaves)),
            (Self::Names(names), Item::Exact(name)) => names.add_alone(name.as_name(), now, Some(leaves)),
            (Self::Addresses(addresses), Item::Prefix(address, length)) => {
                addresses.add(*address, *length, now, Some(leaves))
            }
            // What was parsed for the other kind.
            (Self::Names(_), Item::Prefix(..)) | (Self::Addresses(_), _) => sets::Added::Renewed,
        }
    }

    fn remove(&self, item: &Item) -> bool {
        match (self, item) {
            (Self::Names(names), Item::Suffix(name) | Item::Exact(name)) => names.remove(name.as_name()),
            (Self::Addresses(addresses), Item::Prefix(address, length)) => {
                addresses.remove(*address, *length)
            }
            (Self::Names(_), Item::Prefix(..)) | (Self::Addresses(_), _) => false,
        }
    }

    fn learn(&self, what: Learned, qname: &str, addresses: &[IpAddr], now: u64) {
        match self {
            Self::Names(names) => {
                let qname = if qname.is_empty() { "." } else { qname };
                let Ok(name) = values::name(qname) else { return };
                match what {
                    Learned::Suffix => drop(names.add(name.as_name(), now, None)),
                    Learned::Name => drop(names.add_alone(name.as_name(), now, None)),
                    // Refused when the configuration was compiled.
                    Learned::Addresses | Learned::Client => {}
                }
            }
            Self::Addresses(set) => {
                for &address in addresses {
                    set.add(address, if address.is_ipv4() { 32 } else { 128 }, now, None);
                }
            }
        }
    }
}

/// Reads the file of a set.
fn text_of(file: &Path, environment: &dyn Environment) -> io::Result<String> {
    let octets = environment.read_list(file, FILE_OCTETS_MAX)?;
    if octets.len() as u64 > FILE_OCTETS_MAX {
        return Err(io::Error::other(format!("it is larger than {} MiB", FILE_OCTETS_MAX >> 20)));
    }
    String::from_utf8(octets).map_err(|_| io::Error::other("it is no text"))
}

impl Dynamic {
    /// Takes over what is known of the set, or reads what was kept.
    pub(super) fn new(
        name: &str,
        wanted: &DynamicSet,
        known: Option<&Self>,
        workshop: &Workshop<'_>,
    ) -> Self {
        let ttl = wanted.ttl.map(|ttl| ttl.as_secs().clamp(1, u32::MAX.into()) as u32);
        let file =
            wanted.persist.then(|| workshop.state_directory.join("sets").join(format!("{name}.dynamic")));
        let kind = |handle: &DynamicHandle| match handle {
            DynamicHandle::Names(_) => DynamicKind::Names,
            DynamicHandle::Addresses(_) => DynamicKind::Addresses,
        };
        // A set of another kind has a store of its own: it is read below, and who changes the one
        // before holds that one's lock until the change of settings that has this read is over.
        let same = known.filter(|known| kind(&known.handle) == wanted.holds);
        let store = file.map(|file| match same.and_then(|known| known.store.as_ref()) {
            Some(store) if store.file() == file => Arc::clone(store),
            _ => Arc::new(Store::new(name, file, workshop.environment.keeper())),
        });
        if let Some(known) = same
            && (known.limit, known.ttl) == (wanted.limit, ttl)
        {
            return Self { store, ..known.clone() };
        }
        let limit = wanted.limit as usize;
        let handle = match wanted.holds {
            DynamicKind::Names => {
                DynamicHandle::Names(Arc::new(DynamicNames::new(&workshop.key, limit, ttl)))
            }
            DynamicKind::Addresses => {
                DynamicHandle::Addresses(Arc::new(DynamicAddresses::new(&workshop.key, limit, ttl)))
            }
        };
        let handles = same.map_or_else(Arc::default, |known| Arc::clone(&known.handles));
        let new = Self { handle, store, limit: wanted.limit, ttl, handles };
        let handles = Arc::clone(&new.handles);
        let mut handles = handles.lock();
        handles.retain(|handle| handle.upgrade().is_some());
        handles.push(new.handle.downgrade());
        match same {
            // Another limit or time: what there is stays, and what comes meanwhile goes to both.
            Some(known) => new.put(&known.text()),
            None => {
                if let Some(store) = &new.store {
                    let (text, changes) = store.read(|file| text_of(file, workshop.environment));
                    new.put(&text);
                    for change in changes {
                        new.put_change(&change);
                    }
                }
            }
        }
        new
    }

    /// Reads again what was kept of its members, if it could not be read; returns whether it could
    /// now. What it has learned since stays.
    pub fn read_again(&self, environment: &dyn Environment) -> bool {
        let Some(store) = &self.store else { return false };
        store.read_again(
            |file| text_of(file, environment),
            |text, changes| {
                self.on_all(|handle| {
                    let other = Self { handle: handle.clone(), ..self.clone() };
                    other.put(text);
                    changes.iter().for_each(|change| other.put_change(change));
                });
            },
        )
    }

    /// Adds names, addresses or prefixes at the second `now`, for `ttl` seconds or as long as the
    /// set says: all of them, or none if one is not understood or cannot be kept. They are on disk
    /// when this returns, with who added them. Returns how many were not there.
    pub fn add(&self, items: &[String], times: (u64, Option<u64>), by: &str) -> Result<usize, DynamicError> {
        self.edit(&edits(Form::Add, items), times, by).map_err(first)
    }

    /// Removes names, addresses or prefixes, as [`Dynamic::add`] adds them; returns how many were
    /// there.
    pub fn remove(&self, items: &[String], by: &str) -> Result<usize, DynamicError> {
        self.edit(&edits(Form::Remove, items), (0, None), by).map_err(first)
    }

    /// Adds and removes items in their order, as one change: all of it, or nothing. Returns how
    /// many items were not there before they were added, or were there and removed.
    ///
    /// # Errors
    ///
    /// Each edit that is not understood, by its place, or why none can be kept.
    pub fn edit(
        &self,
        edits: &[Edit<'_>],
        (now, ttl): (u64, Option<u64>),
        by: &str,
    ) -> Result<usize, Mistakes> {
        let edits = self.parse_all(edits)?;
        let ttl = ttl.or(self.ttl.map(u64::from));
        let leaves = ttl.map_or(FOREVER, |ttl| now.saturating_add(ttl));
        let change = |(form, item): &(Form, Item)| match form {
            Form::Add => Change::Add(item.to_string(), leaves),
            Form::Remove => Change::Remove(item.to_string()),
        };
        let changes: Vec<Change> = edits.iter().map(change).collect();
        let changed = self.change((&changes, by), || {
            let make = |handle: &DynamicHandle, (form, item): &(Form, Item)| match form {
                Form::Add => {
                    !matches!(handle.put(item, now, leaves), sets::Added::Renewed | sets::Added::NoRoom)
                }
                Form::Remove => handle.remove(item),
            };
            self.on_all(|handle| edits.iter().filter(|edit| make(handle, edit)).count())
        });
        changed.map_err(|error| vec![(0, error)])
    }

    /// Returns how many items [`Dynamic::edit`] would add or remove, and how many there would be.
    ///
    /// # Errors
    ///
    /// Each edit that is not understood, by its place.
    pub fn would_change(&self, edits: &[Edit<'_>]) -> Result<(usize, usize), Mistakes> {
        let edits = self.parse_all(edits)?;
        let mut held: HashSet<String> = self.list().into_iter().map(|(item, _)| item).collect();
        let mut changed = 0;
        for (form, item) in &edits {
            let is_other = match (form, item) {
                (Form::Add, item) => held.insert(item.to_string()),
                // A name is removed in both forms.
                (Form::Remove, Item::Suffix(name) | Item::Exact(name)) => {
                    held.remove(&name.to_string()) | held.remove(&format!("exact:{name}"))
                }
                (Form::Remove, item) => held.remove(&item.to_string()),
            };
            changed += usize::from(is_other);
        }
        Ok((changed, held.len().min(self.limit as usize)))
    }

    /// Returns what its members are known by: others, and when they leave, are known by something
    /// else.
    pub fn tag(&self) -> String {
        // FNV-1a: it is compared with itself, and nobody gains by a collision.
        let step = |sum: u64, octet: u8| (sum ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        format!("{:016x}", self.text().bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }

    /// Returns why its members stay as they are, if so: what was kept of them cannot be read.
    pub fn trouble(&self) -> Option<String> {
        self.store.as_ref()?.trouble()
    }

    /// Returns whether changes of it are kept over restarts.
    pub const fn is_kept(&self) -> bool {
        self.store.is_some()
    }

    /// Does the same to all handles of the set; returns what came of it for this one.
    fn on_all<T>(&self, change: impl Fn(&DynamicHandle) -> T) -> T {
        let handles = self.handles.lock();
        for other in handles.iter().filter_map(WeakHandle::upgrade) {
            if !other.is(&self.handle) {
                change(&other);
            }
        }
        change(&self.handle)
    }

    /// Makes a change that is on disk first.
    fn change(
        &self,
        (changes, by): (&[Change], &str),
        make: impl FnOnce() -> usize,
    ) -> Result<usize, DynamicError> {
        match &self.store {
            Some(store) => store.change(changes, by, || self.text(), make).map_err(DynamicError::Store),
            None => Ok(make()),
        }
    }

    fn parse_all(&self, edits: &[Edit<'_>]) -> Result<Vec<(Form, Item)>, Mistakes> {
        let (mut parsed, mut wrong) = (Vec::with_capacity(edits.len()), Vec::new());
        for (at, (form, text)) in edits.iter().enumerate() {
            match self.parse(text) {
                Ok(item) => parsed.push((*form, item)),
                Err(error) => wrong.push((at, error)),
            }
        }
        if wrong.is_empty() { Ok(parsed) } else { Err(wrong) }
    }

    fn parse(&self, text: &str) -> Result<Item, DynamicError> {
        match &self.handle {
            DynamicHandle::Names(_) => {
                let (form, rest) = text.split_once(':').unwrap_or(("suffix", text));
                let name = values::name(rest).map_err(DynamicError::Misread)?;
                match form {
                    "suffix" => Ok(Item::Suffix(name)),
                    "exact" => Ok(Item::Exact(name)),
                    other => Err(DynamicError::Form(other.to_owned())),
                }
            }
            DynamicHandle::Addresses(_) => {
                let prefix = values::prefix(text).map_err(DynamicError::Misread)?;
                Ok(Item::Prefix(prefix.address(), prefix.bits()))
            }
        }
    }

    /// Makes a change that was kept before the last start.
    fn put_change(&self, change: &Change) {
        let (Change::Add(text, _) | Change::Remove(text)) = change;
        let Ok(item) = self.parse(text) else { return };
        match change {
            Change::Add(_, leaves) => drop(self.handle.put(&item, 0, *leaves)),
            Change::Remove(_) => drop(self.handle.remove(&item)),
        }
    }

    /// Takes what the policy learns: the name asked for, without a dot at its end, or addresses.
    pub fn learn(&self, what: Learned, qname: &str, addresses: &[IpAddr], now: u64) {
        self.on_all(|handle| handle.learn(what, qname, addresses, now));
    }

    /// Returns whether it holds what is learned.
    pub(crate) const fn takes(&self, what: Learned) -> bool {
        matches!(
            (&self.handle, what),
            (DynamicHandle::Names(_), Learned::Suffix | Learned::Name)
                | (DynamicHandle::Addresses(_), Learned::Addresses | Learned::Client)
        )
    }

    /// Returns what it holds and the second each leaves at, those that leave first before the
    /// others.
    pub fn list(&self) -> Vec<(String, Option<u64>)> {
        match &self.handle {
            DynamicHandle::Names(names) => {
                let show = |(name, is_alone, leaves): (NameBuf, bool, _)| {
                    (if is_alone { format!("exact:{name}") } else { name.to_string() }, leaves)
                };
                names.list().into_iter().map(show).collect()
            }
            DynamicHandle::Addresses(addresses) => {
                let list = addresses.list().into_iter();
                list.map(|((address, length), leaves)| (format!("{address}/{length}"), leaves)).collect()
            }
        }
    }

    /// Forgets what has left by the second `now`.
    pub fn sweep(&self, now: u64) -> usize {
        match &self.handle {
            DynamicHandle::Names(names) => names.sweep(now),
            DynamicHandle::Addresses(addresses) => addresses.sweep(now),
        }
    }

    /// Writes everything anew if something changed since it was last written.
    pub fn keep(&self) -> io::Result<bool> {
        let Some(store) = &self.store else { return Ok(false) };
        let is_changed = match &self.handle {
            DynamicHandle::Names(names) => names.take_changed(),
            DynamicHandle::Addresses(addresses) => addresses.take_changed(),
        };
        store.keep(is_changed, || self.text())
    }

    /// Writes one line for each, with the second it leaves at if it does.
    fn text(&self) -> String {
        let lines = self.list().into_iter().map(|(item, leaves)| match leaves {
            Some(leaves) => format!("{item} {leaves}\n"),
            None => format!("{item} forever\n"),
        });
        lines.collect()
    }

    /// Reads what [`Dynamic::text`] wrote. A line that is none is left out: a file that was cut
    /// keeps the rest.
    fn put(&self, text: &str) {
        for line in text.lines() {
            if let Some((item, leaves)) = line.split_once(' ')
                && let Some(leaves) = if leaves == "forever" { Some(FOREVER) } else { leaves.parse().ok() }
            {
                // What has left since is swept away before long.
                if let Ok(item) = self.parse(item) {
                    self.handle.put(&item, 0, leaves);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
