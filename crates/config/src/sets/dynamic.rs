//! The dynamic parts of sets: what keeps them over reloads and restarts.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
                let read = |file: &std::path::Path| {
                    let octets = workshop.environment.read_list(file, FILE_OCTETS_MAX)?;
                    if octets.len() as u64 > FILE_OCTETS_MAX {
                        let why = format!("it is larger than {} MiB", FILE_OCTETS_MAX >> 20);
                        return Err(io::Error::other(why));
                    }
                    String::from_utf8(octets).map_err(|_| io::Error::other("it is no text"))
                };
                if let Some(store) = &new.store {
                    let (text, changes) = store.read(read);
                    new.put(&text);
                    for change in changes {
                        new.put_change(&change);
                    }
                }
            }
        }
        new
    }

    /// Adds names, addresses or prefixes at the second `now`, for `ttl` seconds or as long as the
    /// set says: all of them, or none if one is not understood or cannot be kept. They are on disk
    /// when this returns, with who added them. Returns how many were not there.
    pub fn add(
        &self,
        items: &[String],
        (now, ttl): (u64, Option<u64>),
        by: &str,
    ) -> Result<usize, DynamicError> {
        let items = self.parse_all(items)?;
        let ttl = ttl.or(self.ttl.map(u64::from));
        let leaves = ttl.map_or(FOREVER, |ttl| now.saturating_add(ttl));
        let changes: Vec<Change> = items.iter().map(|item| Change::Add(item.to_string(), leaves)).collect();
        self.change((&changes, by), || {
            let added = |handle: &DynamicHandle| {
                let added = items.iter().map(|item| handle.put(item, now, leaves));
                added.filter(|added| *added != sets::Added::Renewed).count()
            };
            self.on_all(added)
        })
    }

    /// Removes names, addresses or prefixes, as [`Dynamic::add`] adds them; returns how many were
    /// there.
    pub fn remove(&self, items: &[String], by: &str) -> Result<usize, DynamicError> {
        let items = self.parse_all(items)?;
        let changes: Vec<Change> = items.iter().map(|item| Change::Remove(item.to_string())).collect();
        self.change((&changes, by), || {
            self.on_all(|handle| items.iter().filter(|item| handle.remove(item)).count())
        })
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

    fn parse_all(&self, items: &[String]) -> Result<Vec<Item>, DynamicError> {
        items.iter().map(|text| self.parse(text)).collect()
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
mod tests {
    use super::*;
    use environment::Keeper;
    use std::path::Path;
    use std::time::Duration;
    use wire::HashKey;

    fn new(wanted: &DynamicSet, known: Option<&Dynamic>, directory: &Path) -> Dynamic {
        let memory = environment::System;
        let workshop = Workshop {
            key: HashKey::new([1, 2]),
            state_directory: directory,
            environment: &memory,
            previous: None,
            only: None,
        };
        Dynamic::new("learned", wanted, known, &workshop)
    }

    fn wanted(holds: DynamicKind) -> DynamicSet {
        DynamicSet { holds, limit: 100, ttl: Some(Duration::from_secs(60)), persist: true }
    }

    fn add(set: &Dynamic, item: &str, now: u64, ttl: Option<u64>) {
        assert_eq!(set.add(&[item.to_owned()], (now, ttl), "anna").ok(), Some(1), "{item}");
    }

    fn removed(set: &Dynamic, item: &str) -> Option<usize> {
        set.remove(&[item.to_owned()], "anna").ok()
    }

    #[test]
    fn what_was_changed_is_there_although_nothing_was_written_since() {
        let directory = tempfile::tempdir().expect("a directory");
        let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
        let first = new(&forever, None, directory.path());
        add(&first, "example.org", 1000, Some(77));
        add(&first, "exact:a\\032b.example.net", 1000, None);
        add(&first, "example.com", 1000, None);
        assert_eq!(removed(&first, "example.com"), Some(1));
        // A kill: nobody calls `keep`.
        let second = new(&forever, None, directory.path());
        assert_eq!(second.list(), first.list());
        assert_eq!(second.list().len(), 2);
        assert_eq!(second.list()[0], ("example.org.".to_owned(), Some(1077)));
        // One life more, without a change in between, and with one.
        drop(new(&forever, None, directory.path()));
        add(&second, "example.com", 2000, None);
        assert_eq!(new(&forever, None, directory.path()).list(), second.list());
        // Half a line at the end was never acknowledged; what is before it counts.
        let log = directory.path().join("sets/learned.dynamic.log");
        let text = std::fs::read(&log).expect("a log");
        std::fs::write(&log, &text[..text.len() - 3]).expect("a writable directory");
        assert_eq!(new(&forever, None, directory.path()).list(), first.list());
        // What everything was written without is not taken from an older log.
        std::fs::write(&log, &text).expect("a writable directory");
        assert_eq!(removed(&second, "example.org"), Some(1));
        second.keep().expect("the directory is writable");
        std::fs::write(&log, &text).expect("a writable directory");
        assert_eq!(new(&forever, None, directory.path()).list(), second.list());
    }

    /// Keeps texts in memory; refuses them when it is told to.
    #[derive(Default)]
    struct Kept {
        texts: Mutex<Vec<(String, u64, String)>>,
        is_full: std::sync::atomic::AtomicBool,
    }

    impl Keeper for Kept {
        fn texts(&self, space: &str) -> io::Result<Vec<(u64, String)>> {
            let texts = self.texts.lock().expect("no panic");
            let of_space = texts.iter().filter(|(known, _, _)| known == space);
            Ok(of_space.map(|(_, number, text)| (*number, text.clone())).collect())
        }

        fn keep(&self, space: &str, number: u64, text: &str, said: (&str, &str)) -> io::Result<()> {
            if self.is_full.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(io::Error::other("no room"));
            }
            assert!(said.0 == "anna" && said.1.starts_with(['+', '-']), "{said:?}");
            let mut texts = self.texts.lock().expect("no panic");
            assert!(texts.iter().all(|(_, known, _)| *known < number), "numbers grow");
            texts.push((space.to_owned(), number, text.to_owned()));
            Ok(())
        }

        fn forget(&self, space: &str, up_to: u64) -> io::Result<()> {
            let mut texts = self.texts.lock().expect("no panic");
            texts.retain(|(known, number, _)| known != space || *number > up_to);
            Ok(())
        }
    }

    /// Returns the set as a server has it that keeps changes.
    fn new_kept(directory: &Path, kept: &Arc<Kept>) -> Dynamic {
        let wanted = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
        new_kept_with(&wanted, None, directory, kept)
    }

    fn new_kept_with(
        wanted: &DynamicSet,
        known: Option<&Dynamic>,
        directory: &Path,
        kept: &Arc<Kept>,
    ) -> Dynamic {
        let environment = environment::Serving {
            hear: |_: &environment::SetProgress<'_>| {},
            zone: |_: wire::Name<'_>| None,
            own_list: |_: &str| None,
            keeper: Some(Arc::clone(kept) as Arc<dyn Keeper>),
        };
        let workshop = Workshop {
            key: HashKey::new([1, 2]),
            state_directory: directory,
            environment: &environment,
            previous: None,
            only: None,
        };
        Dynamic::new("learned", wanted, known, &workshop)
    }

    #[test]
    fn changes_after_a_time_in_which_nothing_was_kept_follow_those_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = Arc::<Kept>::default();
        let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
        let passing = DynamicSet { persist: false, ..forever.clone() };
        let first = new_kept(directory.path(), &kept);
        first.learn(Learned::Suffix, "learned.example", &[], 1000);
        for item in ["a.example", "b.example", "c.example"] {
            add(&first, item, 1000, None);
        }
        assert!(first.keep().expect("the directory is writable"));
        add(&first, "d.example", 1000, None);
        let off = new_kept_with(&passing, Some(&first), directory.path(), &kept);
        assert_eq!(removed(&off, "d.example"), Some(1));
        assert_eq!(removed(&off, "a.example"), Some(1));
        let on = new_kept_with(&forever, Some(&off), directory.path(), &kept);
        add(&on, "e.example", 1000, None);
        assert_eq!(removed(&on, "b.example"), Some(1));
        // A kill: nobody calls `keep`.
        let names = |set: &Dynamic| {
            let mut names: Vec<String> = set.list().into_iter().map(|(name, _)| name).collect();
            names.sort();
            names
        };
        let after = new_kept(directory.path(), &kept);
        assert_eq!(names(&after), names(&on));
        assert_eq!(names(&after), ["c.example.", "e.example.", "learned.example."]);
        // The same where it is written anew before it is changed.
        let off = new_kept_with(&passing, Some(&after), directory.path(), &kept);
        assert_eq!(removed(&off, "c.example"), Some(1));
        let on = new_kept_with(&forever, Some(&off), directory.path(), &kept);
        on.learn(Learned::Suffix, "more.example", &[], 1000);
        assert!(on.keep().expect("the directory is writable"));
        add(&on, "f.example", 1000, None);
        assert_eq!(names(&new_kept(directory.path(), &kept)), names(&on));
    }

    #[test]
    fn a_set_of_another_kind_is_not_read_under_the_lock_of_the_one_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = new(&wanted(DynamicKind::Names), None, directory.path());
        let is_same = |one: &Dynamic, other: &Dynamic| match (&one.store, &other.store) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let longer = DynamicSet { limit: 200, ..wanted(DynamicKind::Names) };
        assert!(is_same(&first, &new(&longer, Some(&first), directory.path())));
        let other = new(&wanted(DynamicKind::Addresses), Some(&first), directory.path());
        assert!(!is_same(&first, &other));
    }

    #[test]
    fn changes_are_kept_beside_the_settings_until_everything_is_written_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = Arc::<Kept>::default();
        let first = new_kept(directory.path(), &kept);
        add(&first, "example.org", 1000, Some(77));
        add(&first, "example.com", 1000, None);
        assert_eq!(removed(&first, "example.com"), Some(1));
        assert_eq!(kept.texts("set learned").expect("kept").len(), 3);
        // A kill: nobody calls `keep`.
        let second = new_kept(directory.path(), &kept);
        assert_eq!(second.list(), [("example.org.".to_owned(), Some(1077))]);
        second.learn(Learned::Suffix, "example.net", &[], 1000);
        assert!(second.keep().expect("the directory is writable"));
        assert_eq!(kept.texts("set learned").expect("kept"), []);
        add(&second, "example.com", 1000, None);
        assert_eq!(removed(&second, "example.net"), Some(1));
        let third = new_kept(directory.path(), &kept);
        assert_eq!(third.list(), second.list());
        // What the file has already does not count again.
        let old = Change::Add("example.net.".to_owned(), FOREVER).line_for_tests();
        kept.texts.lock().expect("no panic").insert(0, ("set learned".to_owned(), 1, old));
        assert_eq!(new_kept(directory.path(), &kept).list(), second.list());
        kept.is_full.store(true, std::sync::atomic::Ordering::Relaxed);
        let why = third.add(&["full.example".to_owned()], (1, None), "anna").expect_err("no room");
        assert!(matches!(why, DynamicError::Store(_)) && why.to_string().contains("nothing is changed"));
        assert_eq!(third.list(), second.list());
        let tag = third.tag();
        assert_eq!(tag, second.tag());
        third.learn(Learned::Name, "a.example", &[], 1000);
        assert_ne!(third.tag(), tag);
    }

    #[test]
    fn a_file_that_cannot_be_read_keeps_its_members_and_no_change_is_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
        let kept = Arc::<Kept>::default();
        let before = new_kept_with(&forever, None, directory.path(), &kept);
        add(&before, "a.example", 1000, None);
        before.learn(Learned::Suffix, "b.example", &[], 1000);
        assert!(before.keep().expect("the directory is writable"));
        let file = directory.path().join("sets/learned.dynamic");
        let whole = std::fs::read(&file).expect("a file");
        let check = |set: &Dynamic| {
            let why = set.trouble().unwrap_or_default();
            assert!(why.contains("learned.dynamic\"") && why.contains("cannot be read"), "{why}");
            let refused = set.add(&["c.example".to_owned()], (1, None), "anna").expect_err("refused");
            assert!(refused.to_string().contains("cannot be read"), "{refused}");
            assert!(set.remove(&["a.example".to_owned()], "anna").is_err());
            set.learn(Learned::Suffix, "d.example", &[], 1000);
            assert!(set.keep().is_err(), "nothing is written over it");
        };
        // No text; something that is no file.
        std::fs::write(&file, b"\xff\xfe\n").expect("writable");
        check(&new_kept_with(&forever, None, directory.path(), &kept));
        std::fs::remove_file(&file).expect("there");
        std::fs::create_dir(&file).expect("writable");
        check(&new_kept_with(&forever, None, directory.path(), &kept));
        std::fs::remove_dir(&file).expect("there");
        std::fs::write(&file, &whole).expect("writable");
        let after = new_kept_with(&forever, None, directory.path(), &kept);
        assert_eq!((after.trouble(), after.list()), (None, before.list()));
    }

    #[test]
    fn files_of_before_changes_were_kept_there_are_read_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let forever = DynamicSet { ttl: None, ..wanted(DynamicKind::Names) };
        let before = new(&forever, None, directory.path());
        before.learn(Learned::Suffix, "learned.example", &[], 1000);
        before.keep().expect("the directory is writable");
        add(&before, "example.org", 1000, None);
        assert_eq!(removed(&before, "learned.example"), Some(1));
        let log = directory.path().join("sets/learned.dynamic.log");
        assert!(log.exists());
        let kept = Arc::<Kept>::default();
        let after = new_kept(directory.path(), &kept);
        assert_eq!(after.list(), before.list());
        add(&after, "example.com", 2000, None);
        // A kill before anything is written anew.
        let after = new_kept(directory.path(), &kept);
        assert_eq!(after.list().len(), 2);
        after.learn(Learned::Suffix, "more.example", &[], 1000);
        assert!(after.keep().expect("the directory is writable"));
        assert!(!log.exists(), "it is in the file");
        assert_eq!(new_kept(directory.path(), &kept).list(), after.list());
    }

    #[test]
    fn what_cannot_be_kept_is_not_added() {
        let directory = tempfile::tempdir().expect("a directory");
        // A file where the directory should be.
        std::fs::write(directory.path().join("sets"), "").expect("a writable directory");
        let set = new(&wanted(DynamicKind::Names), None, directory.path());
        let why = set.add(&["example.org".to_owned()], (1, None), "anna").expect_err("it cannot be kept");
        assert!(matches!(why, DynamicError::Store(_)));
        let why = why.to_string();
        assert!(why.contains("nothing is changed") && why.contains("sets"), "{why}");
        assert!(set.list().is_empty());
        std::fs::remove_file(directory.path().join("sets")).expect("our file");
        add(&set, "example.org", 1, None);
        assert_eq!(new(&wanted(DynamicKind::Names), None, directory.path()).list(), set.list());
    }

    #[test]
    fn what_was_added_survives_reloads_and_restarts() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = new(&wanted(DynamicKind::Names), None, directory.path());
        add(&first, "example.org", 1000, None);
        add(&first, "example.net", 1000, Some(500));
        let some = ["example.com".to_owned(), "a..b".to_owned()];
        let why = first.add(&some, (1000, None), "anna");
        assert!(matches!(why, Err(DynamicError::Misread(_))), "all or nothing");
        let why = first.add(&["regex:a".to_owned()], (1000, None), "anna");
        assert!(matches!(why, Err(DynamicError::Form(form)) if form == "regex"));
        let expected = [("example.org.".to_owned(), Some(1060)), ("example.net.".to_owned(), Some(1500))];
        assert_eq!(first.list(), expected);
        // A reload with another limit.
        let second =
            new(&DynamicSet { limit: 50, ..wanted(DynamicKind::Names) }, Some(&first), directory.path());
        assert_eq!(second.list(), expected);
        assert!(second.keep().expect("the directory is writable"));
        assert!(!second.keep().expect("nothing to write"), "nothing changed since");
        // A restart.
        let third = new(&wanted(DynamicKind::Names), None, directory.path());
        assert_eq!(third.list(), expected);
        assert_eq!(third.sweep(1060), 1);
        assert_eq!(third.list(), expected[1..]);
    }

    #[test]
    fn what_changes_during_a_reload_with_another_limit_is_not_lost() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = new(&wanted(DynamicKind::Names), None, directory.path());
        add(&first, "early.example.org", 1000, None);
        add(&first, "gone.example.org", 1000, None);
        let other = |limit| DynamicSet { limit, ..wanted(DynamicKind::Names) };
        // The new configuration is compiled, and not in use yet.
        let second = new(&other(50), Some(&first), directory.path());
        add(&first, "late.example.org", 1001, None);
        assert_eq!(removed(&first, "gone.example.org"), Some(1));
        first.learn(Learned::Suffix, "learned.example.org", &[], 1002);
        let names = |set: &Dynamic| set.list().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&second), ["early.example.org.", "late.example.org.", "learned.example.org."]);
        // Queries that are still answered with the old one see what is added to the new one.
        add(&second, "later.example.org", 1003, None);
        assert!(names(&first).contains(&"later.example.org.".to_owned()));
        second.keep().expect("the directory is writable");
        assert_eq!(new(&other(50), None, directory.path()).list(), second.list(), "nor by a restart");
        // Reloads that were refused leave nothing behind.
        for limit in 51..60 {
            drop(new(&other(limit), Some(&second), directory.path()));
        }
        assert!(second.handles.lock().len() <= 3);
    }

    #[test]
    fn addresses_are_kept_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = new(&wanted(DynamicKind::Addresses), None, directory.path());
        add(&first, "192.0.2.1", 1, None);
        add(&first, "2001:db8::/32", 2, None);
        assert_eq!(removed(&first, "192.0.2.9"), Some(0));
        first.keep().expect("the directory is writable");
        let second = new(&wanted(DynamicKind::Addresses), None, directory.path());
        assert_eq!(
            second.list(),
            [("192.0.2.1/32".to_owned(), Some(61)), ("2001:db8::/32".to_owned(), Some(62))]
        );
    }
}
