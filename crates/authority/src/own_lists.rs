//! Lists of the operator that are kept beside the settings: what is known of each.
//!
//! The text of a list is a file. Single rules that were changed since are in the store, a text for
//! each change, until they are merged into the next file. While it serves, a set has the file
//! compiled, and what is different from it in a live table.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use environment::{Keeper, KeptList};
use lists::ListFormat;
use lists::own::{OwnList, RuleChange, differences_max, rewrite};
use store::{Expected, Files, Put, StoreError};
use tracing::warn;

use crate::Authority;
use crate::keeper::StoreKeeper;

/// The space of the store with the file of each list.
const SPACE: &str = "lists";
/// The folder with these files.
const FOLDER: &str = "lists";

/// All of them.
#[derive(Default)]
pub struct OwnLists {
    /// Held while one of them is changed, from before it is kept until queries meet it.
    changing: Mutex<()>,
    /// Held for a moment only.
    all: Mutex<BTreeMap<String, Own>>,
    files: OnceLock<Files>,
    /// The number of the next text.
    next: AtomicU64,
    /// Keeps changes of other data.
    keeper: Option<Arc<dyn Keeper>>,
    /// Why it is not known which lists there are: nothing may be written over them. Held for
    /// moments.
    trouble: Mutex<Option<String>>,
    /// Whether lists are being written as a whole again.
    is_merging: AtomicBool,
}

/// Locks a mutex. A panic ends the process, so that a poisoned one is never seen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shortest and the longest time before a list that could not be written as a whole is tried
/// again.
const RETRY_FIRST: Duration = Duration::from_secs(10);
const RETRY_LAST: Duration = Duration::from_secs(3600);

/// When a list is tried again that could not be written as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    at: Instant,
    pause: Duration,
}

impl Retry {
    /// Returns when to try again after it went wrong now, the pause each time twice as long.
    fn after(before: Option<Self>, now: Instant) -> Self {
        let pause = before.map_or(RETRY_FIRST, |before| (before.pause * 2).min(RETRY_LAST));
        Self { at: now + pause, pause }
    }
}

/// The text of a list as it was at one time.
pub struct Text {
    /// Its file.
    pub file: Option<File>,
    /// What was changed since.
    pub changes: Vec<RuleChange>,
}

impl Text {
    /// Reads all of it.
    pub fn read(self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        if let Some(mut file) = self.file {
            file.read_to_end(&mut text)?;
        }
        match self.changes.is_empty() {
            true => Ok(text),
            false => Ok(rewrite(&text, ListFormat::Names, &self.changes).text),
        }
    }
}

/// What is known of a list.
#[derive(Clone, Debug)]
pub struct Own {
    /// Whether anybody has made it; otherwise a set names it, and it is empty.
    pub is_made: bool,
    /// The SHA-256 of its file, and its octets.
    pub file: Option<(String, u64)>,
    /// Changes of single rules since, by their numbers: how many rules each is about.
    pub patches: BTreeMap<u64, usize>,
    /// What sets are compiled from.
    pub list: Arc<OwnList>,
    /// What sets may be compiled from still, or were.
    pub others: Vec<Weak<OwnList>>,
    /// What they are being compiled from.
    next: Option<KeptList>,
    /// Whether some of its changes are met only when it is compiled anew, which went wrong.
    pub is_late: bool,
    /// When it is tried again to write it as a whole, if that went wrong.
    retry: Option<Retry>,
    /// The change that made it what it is.
    pub revision: u64,
}

impl Own {
    fn empty(number: u64) -> Self {
        Self {
            is_made: false,
            file: None,
            patches: BTreeMap::new(),
            list: Arc::new(OwnList::new(number, Vec::new())),
            others: Vec::new(),
            next: None,
            is_late: false,
            retry: None,
            revision: 0,
        }
    }

    /// Returns whether it should be written as a whole again, and compiled.
    pub fn is_to_be_written(&self) -> bool {
        self.is_late || self.is_much_changed()
    }

    /// Returns whether so much of it was changed that it should be.
    fn is_much_changed(&self) -> bool {
        /// Octets of a line, roughly.
        const LINE_OCTETS: u64 = 20;
        let rules = self.file.as_ref().map_or(0, |(_, octets)| octets / LINE_OCTETS) as usize;
        self.list.is_much_changed() || self.patches.values().sum::<usize>() > differences_max(rules)
    }
}

/// Returns the space of the store with changes of single rules of a list.
fn space_of(name: &str) -> String {
    format!("list {name}")
}

/// Writes changes as a text for the store.
fn text_of(changes: &[RuleChange]) -> String {
    let line = |change: &RuleChange| {
        let sign = if change.is_added { '+' } else { '-' };
        format!("{sign}{}\n", change.rule.trim())
    };
    changes.iter().map(line).collect()
}

/// Reads what [`text_of`] wrote.
fn changes_of(text: &str) -> impl Iterator<Item = RuleChange> + '_ {
    text.lines().filter_map(|line| {
        let (is_added, rule) = match line.split_at_checked(1)? {
            ("+", rule) => (true, rule),
            ("-", rule) => (false, rule),
            _ => return None,
        };
        Some(RuleChange { is_added, rule: rule.to_owned() })
    })
}

impl OwnLists {
    /// Reads which lists there are.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn read(authority: &Arc<Authority>) -> Result<Self, StoreError> {
        let lists = Self { keeper: StoreKeeper::of(authority), ..Self::default() };
        *lock(&lists.all) = lists.read_all(authority)?;
        Ok(lists)
    }

    /// Reads which lists there are, if that could not be read; returns the names of those that
    /// there are then. Sets are compiled without them until they are compiled again.
    ///
    /// # Errors
    ///
    /// The store still cannot be read.
    pub fn read_again(&self, authority: &Authority) -> Result<Vec<String>, StoreError> {
        let _changing = self.change();
        if self.trouble().is_none() {
            return Ok(Vec::new());
        }
        let read = self.read_all(authority)?;
        let mut all = lock(&self.all);
        let names = read.keys().cloned().collect();
        for (name, mut own) in read {
            if let Some(before) = all.remove(&name) {
                own.others = before.others;
                own.others.push(Arc::downgrade(&before.list));
            }
            all.insert(name, own);
        }
        *lock(&self.trouble) = None;
        Ok(names)
    }

    /// Reads all lists that somebody has made.
    fn read_all(&self, authority: &Authority) -> Result<BTreeMap<String, Own>, StoreError> {
        let files = authority.files(FOLDER);
        let mut all = BTreeMap::new();
        for entry in authority.entries(SPACE)? {
            let number = self.number();
            let mut own = Own { is_made: true, revision: entry.revision, ..Own::empty(number) };
            let mut words = entry.text.split(' ').filter(|word| !word.is_empty());
            if let Some(hash) = words.next() {
                let mut number = || words.next().and_then(|word| word.parse().ok());
                own.file = Some((hash.to_owned(), number().unwrap_or(0)));
                own.revision = number().unwrap_or(entry.revision);
            }
            let mut changes = Vec::new();
            for patch in authority.entries(&space_of(&entry.name))? {
                let before = changes.len();
                changes.extend(changes_of(&patch.text));
                own.patches.insert(patch.name.parse().unwrap_or(0), changes.len() - before);
                own.revision = own.revision.max(patch.revision);
            }
            own.list = Arc::new(OwnList::new(number, changes));
            all.insert(entry.name, own);
        }
        if let Some(files) = &files {
            // Files of a store that is not there any more may be all that is left of the lists.
            let is_held = !authority.is_whole() && files.hold();
            let is_wanted =
                |name: &str| all.values().any(|own| own.file.as_ref().is_some_and(|(hash, _)| hash == name));
            if is_held || !files.retain(is_wanted) {
                let folder = files.path("");
                warn!(folder = %folder.display(), "there are texts of lists of which the store knows nothing; they stay");
            }
        }
        if let Some(files) = files {
            self.files.get_or_init(|| files);
        }
        Ok(all)
    }

    /// Returns what there is where the store cannot be read: changes of lists and of other data are
    /// refused, so that nothing is written over what was kept before, until they can be
    /// [read](Self::read_again).
    pub fn unread(authority: &Arc<Authority>, error: &StoreError) -> Self {
        let trouble = Some(format!("what was kept before could not be read at the start: {error}"));
        Self { keeper: StoreKeeper::of(authority), trouble: Mutex::new(trouble), ..Self::default() }
    }

    /// Returns why lists may not be changed, if so.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Returns a text of a list that is empty, or read later.
    pub fn text_of_list(&self) -> Arc<OwnList> {
        Arc::new(OwnList::new(self.number(), Vec::new()))
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Has nobody else change a list until this is dropped.
    pub fn change(&self) -> MutexGuard<'_, ()> {
        lock(&self.changing)
    }

    /// Returns what keeps changes of other data.
    pub fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        self.keeper.clone()
    }

    /// Returns the folder of their files; `None` if nothing is kept.
    pub fn files(&self) -> Option<&Files> {
        self.files.get()
    }

    /// Returns what is known of a list.
    pub fn get(&self, name: &str) -> Option<Own> {
        lock(&self.all).get(name).cloned()
    }

    /// Returns what is known of a list, or that it is empty.
    pub fn look_up(&self, name: &str) -> Own {
        self.get(name).unwrap_or_else(|| Own::empty(self.number()))
    }

    /// Returns all that anybody has made.
    pub fn made(&self) -> Vec<(String, Own)> {
        let all = lock(&self.all);
        all.iter().filter(|(_, own)| own.is_made).map(|(name, own)| (name.clone(), own.clone())).collect()
    }

    /// Edits what is known of a list.
    pub fn edit<T>(&self, name: &str, edit: impl FnOnce(&mut Own) -> T) -> T {
        let empty = || Own::empty(self.number());
        edit(lock(&self.all).entry(name.to_owned()).or_insert_with(empty))
    }

    /// Returns what a set with this list is compiled from.
    pub fn find(&self, name: &str) -> KeptList {
        self.edit(name, |own| match &own.next {
            Some(next) => next.clone(),
            None => KeptList { list: Arc::clone(&own.list), file: self.file(own) },
        })
    }

    fn file(&self, own: &Own) -> Option<PathBuf> {
        let (hash, _) = own.file.as_ref()?;
        Some(self.files()?.path(hash))
    }

    /// Has sets that are compiled from now on have this text of a list, or what they had before.
    pub fn compile_next(&self, name: &str, next: Option<KeptList>) {
        self.edit(name, |own| own.next = next);
    }

    /// Returns the text of a list as it is, to be read later: its file stays there for whoever has
    /// opened it.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn text(&self, name: &str, authority: &Authority) -> io::Result<Text> {
        let Some(own) = self.get(name) else { return Ok(Text { file: None, changes: Vec::new() }) };
        let file = self.file(&own).map(File::open).transpose()?;
        let mut changes = Vec::new();
        if !own.patches.is_empty() {
            let entries = authority.entries(&space_of(name));
            let entries = entries.map_err(|error| io::Error::other(error.to_string()))?;
            changes.extend(entries.iter().flat_map(|entry| changes_of(&entry.text)));
        }
        Ok(Text { file, changes })
    }

    /// Returns the lists that are to be written as a whole again now.
    pub fn much_changed(&self, now: Instant) -> Vec<String> {
        let all = lock(&self.all);
        let is_due = |own: &Own| own.retry.is_none_or(|retry| retry.at <= now);
        let due = all.iter().filter(|(_, own)| own.is_made && own.is_to_be_written() && is_due(own));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Notes whether a list could be written as a whole; returns whether it is the first time that
    /// it could not.
    pub fn note_merged(&self, name: &str, is_done: bool, now: Instant) -> bool {
        self.edit(name, |own| {
            let before = own.retry;
            own.is_late &= !is_done;
            own.retry = (!is_done).then(|| Retry::after(before, now));
            !is_done && before.is_none()
        })
    }

    /// Notes whether changes wait for the list to be compiled: it is tried again like one of which
    /// much was changed.
    pub fn note_late(&self, name: &str, is_late: bool, now: Instant) {
        self.edit(name, |own| {
            own.is_late = is_late;
            own.retry = is_late.then(|| Retry::after(own.retry, now));
        });
    }

    /// Returns whether lists are being written as a whole again.
    pub fn is_merging(&self) -> bool {
        self.is_merging.load(Ordering::Relaxed)
    }

    /// Does this unless it is being done.
    pub fn merging(&self, merge: impl FnOnce()) {
        if !self.is_merging.swap(true, Ordering::AcqRel) {
            merge();
            self.is_merging.store(false, Ordering::Release);
        }
    }
}

/// Returns what the store is to have of a list whose text is a file, without the changes up to
/// `merged`. With a revision, the file says what that revision has said already.
pub fn puts_of_file(
    name: &str,
    own: &Own,
    file: Option<&(String, u64)>,
    (merged, revision): (u64, u64),
) -> Vec<Put> {
    let text = file.map(|(hash, octets)| match revision {
        0 => format!("{hash} {octets}"),
        revision => format!("{hash} {octets} {revision}"),
    });
    let patches = own.patches.range(..=merged).map(|(&number, _)| put(space_of(name), patch(number), None));
    std::iter::once(put(SPACE.to_owned(), name.to_owned(), text)).chain(patches).collect()
}

/// Returns what the store is to have of changes of single rules.
pub fn puts_of_changes(name: &str, own: &Own, changes: &[RuleChange]) -> (u64, Vec<Put>) {
    let number = own.patches.last_key_value().map_or(0, |(number, _)| *number) + 1;
    let mut puts = vec![put(space_of(name), patch(number), Some(text_of(changes)))];
    if !own.is_made {
        puts.push(put(SPACE.to_owned(), name.to_owned(), Some(String::new())));
    }
    (number, puts)
}

/// Returns the name of an entry: in the order of numbers.
fn patch(number: u64) -> String {
    format!("{number:012}")
}

const fn put(space: String, name: String, text: Option<String>) -> Put {
    Put { space, name, text, until: None, expected: Expected::Any }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is known after a start in a folder, as after a power cut.
    fn start(folder: &std::path::Path) -> (Arc<Authority>, OwnLists) {
        let file = folder.join("g.yaml");
        let text = format!("server: {{state-directory: {}}}\n", folder.display());
        std::fs::write(&file, text).expect("a writable folder");
        let begun = crate::begin(&settings::Origin::File(file)).expect("it is right");
        let authority = Arc::new(begun.authority);
        let lists = OwnLists::read(&authority).expect("readable");
        (authority, lists)
    }

    fn keep(authority: &Authority, puts: Vec<Put>) {
        let (by, why) = ("anna".to_owned(), String::new());
        authority
            .keep(&store::Change { by, why, at: 1_000, puts, ..store::Change::default() })
            .expect("kept");
    }

    fn text(lists: &OwnLists, authority: &Authority) -> String {
        let text = lists.text("mine", authority).and_then(Text::read).expect("readable");
        String::from_utf8(text).expect("text")
    }

    fn draft(lists: &OwnLists, text: &str) -> (String, u64) {
        let mut draft = lists.files().expect("a folder").draft().expect("a draft");
        io::Write::write_all(&mut draft, text.as_bytes()).expect("written");
        let octets = draft.octets();
        (draft.keep().expect("kept").to_string(), octets)
    }

    fn names(folder: &std::path::Path) -> usize {
        std::fs::read_dir(folder.join("changes/lists")).map_or(0, Iterator::count)
    }

    #[test]
    fn a_power_cut_between_any_two_steps_leaves_the_list_as_it_was_or_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (authority, lists) = start(folder.path());
        let change = |rule: &str| RuleChange { is_added: true, rule: rule.to_owned() };
        let (_, puts) =
            puts_of_changes("mine", &lists.edit("mine", |own| own.clone()), &[change("a.example")]);
        keep(&authority, puts);
        drop((authority, lists));
        // A draft that was begun, and a file that was kept: nobody was told of either.
        let (authority, lists) = start(folder.path());
        assert_eq!(text(&lists, &authority), "a.example\n");
        std::fs::create_dir_all(folder.path().join("changes/lists")).expect("a writable folder");
        std::fs::write(folder.path().join("changes/lists/1-1.new"), "x").expect("a writable folder");
        draft(&lists, "other.example\n");
        assert_eq!(names(folder.path()), 2);
        drop((authority, lists));
        let (authority, lists) = start(folder.path());
        assert_eq!((text(&lists, &authority).as_str(), names(folder.path())), ("a.example\n", 0));
        // The list is written as a whole, and what it was made of is still there.
        let own = lists.get("mine").expect("it is there");
        let file = draft(&lists, "a.example\n");
        draft(&lists, "old.example\n");
        keep(&authority, puts_of_file("mine", &own, Some(&file), (1, own.revision)));
        drop((authority, lists));
        let (authority, lists) = start(folder.path());
        assert_eq!((text(&lists, &authority).as_str(), names(folder.path())), ("a.example\n", 1));
        let then = lists.get("mine").expect("it is there");
        assert_eq!((then.patches.len(), then.revision), (0, own.revision), "it says what it said");
        // Rules that are changed after that have numbers of their own.
        let (_, puts) = puts_of_changes("mine", &then, &[change("b.example")]);
        keep(&authority, puts);
        drop((authority, lists));
        let (authority, lists) = start(folder.path());
        assert_eq!(text(&lists, &authority), "a.example\nb.example\n");
        // It is gone, and its file is not yet.
        let own = lists.get("mine").expect("it is there");
        keep(&authority, puts_of_file("mine", &own, None, (u64::MAX, 0)));
        drop((authority, lists));
        let (_, lists) = start(folder.path());
        assert_eq!((lists.made().len(), names(folder.path())), (0, 0));
    }

    #[test]
    fn texts_of_lists_outlive_the_store_that_names_them() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let changes = folder.path().join("changes");
        let (authority, lists) = start(folder.path());
        let file = draft(&lists, "a.example\n");
        keep(&authority, puts_of_file("mine", &lists.look_up("mine"), Some(&file), (0, 0)));
        drop((authority, lists));
        let is_there = || changes.join("lists").join(&file.0).exists();
        std::fs::rename(changes.join("changes.db"), folder.path().join("away")).expect("a writable folder");
        let (authority, lists) = start(folder.path());
        assert!(is_there() && lists.made().is_empty());
        // Another store is begun, and is no reason to remove them either.
        let change = [RuleChange { is_added: true, rule: "b.example".to_owned() }];
        keep(&authority, puts_of_changes("other", &lists.look_up("other"), &change).1);
        drop((authority, lists));
        let (authority, lists) = start(folder.path());
        assert!(is_there() && lists.made().len() == 1);
        drop((authority, lists));
        std::fs::rename(folder.path().join("away"), changes.join("changes.db")).expect("a writable folder");
        let (authority, lists) = start(folder.path());
        assert_eq!(text(&lists, &authority), "a.example\n");
        // From now on what nobody names is removed again.
        draft(&lists, "old.example\n");
        drop((authority, lists));
        drop(start(folder.path()));
        assert_eq!(names(folder.path()), 1);
    }

    #[test]
    fn without_the_store_nothing_is_written_over_what_was_kept() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (authority, lists) = start(folder.path());
        let keeper = lists.keeper().expect("changes are kept");
        keeper.keep("set s", 1, "x", ("anna", "+x")).expect("kept");
        drop((keeper, authority, lists));
        let file = folder.path().join("changes/changes.db");
        let octets = std::fs::read(&file).expect("there");
        std::fs::write(&file, "x".repeat(5000)).expect("a writable folder");
        let begun = crate::begin(&settings::Origin::File(folder.path().join("g.yaml")));
        let authority = Arc::new(begun.expect("it is right").authority);
        let lists = match OwnLists::read(&authority) {
            Ok(_) => panic!("that is no store"),
            Err(error) => OwnLists::unread(&authority, &error),
        };
        assert!(lists.trouble().is_some());
        // The set is told, and does not go back to files.
        let keeper = lists.keeper().expect("changes would be kept");
        assert!(keeper.texts("set s").is_err());
        assert!(keeper.keep("set s", 1, "y", ("anna", "+y")).is_err());
        drop((keeper, authority, lists));
        std::fs::write(&file, octets).expect("a writable folder");
        let (_, lists) = start(folder.path());
        let texts = lists.keeper().expect("changes are kept").texts("set s").expect("readable");
        assert_eq!(texts, [(1, "x".to_owned())]);
    }

    #[test]
    fn asking_for_a_list_makes_none() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (_, lists) = start(folder.path());
        assert!(!lists.look_up("nobody").is_made);
        assert!(lists.get("nobody").is_none());
    }

    #[test]
    fn a_text_is_that_of_its_time_also_when_its_file_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (authority, lists) = start(folder.path());
        let file = draft(&lists, "a.example\n");
        lists.edit("mine", |own| (own.is_made, own.file) = (true, Some(file.clone())));
        let text = lists.text("mine", &authority).expect("readable");
        lists.files().expect("a folder").remove(&file.0);
        assert_eq!(text.read().expect("readable"), b"a.example\n");
        assert!(lists.text("mine", &authority).is_err());
    }

    #[test]
    fn a_list_that_cannot_be_written_is_tried_again_later_and_later_and_told_once() {
        let lists = OwnLists::default();
        let many = |own: &mut Own| {
            own.is_made = true;
            own.patches.insert(1, 1_000);
        };
        lists.edit("bad", many);
        lists.edit("good", many);
        let mut now = Instant::now();
        assert_eq!(lists.much_changed(now), ["bad", "good"]);
        assert!(lists.note_merged("bad", false, now));
        for pause in [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600] {
            let pause = Duration::from_secs(pause);
            assert_eq!(lists.much_changed(now + pause - Duration::from_secs(1)), ["good"]);
            now += pause;
            assert_eq!(lists.much_changed(now), ["bad", "good"], "after {pause:?}");
            assert!(!lists.note_merged("bad", false, now), "it is told once");
        }
        assert!(!lists.note_merged("bad", true, now));
        assert_eq!(lists.much_changed(now), ["bad", "good"]);
        let mut times = 0;
        lists.merging(|| {
            assert!(lists.is_merging());
            lists.merging(|| unreachable!("one at a time"));
            times += 1;
        });
        lists.merging(|| times += 1);
        assert_eq!((times, lists.is_merging()), (2, false));
    }

    #[test]
    fn changes_that_wait_for_a_list_to_be_compiled_are_tried_again() {
        let lists = OwnLists::default();
        lists.edit("mine", |own| own.is_made = true);
        let now = Instant::now();
        assert!(lists.much_changed(now).is_empty());
        lists.note_late("mine", true, now);
        assert!(lists.much_changed(now).is_empty(), "not at once");
        assert_eq!(lists.much_changed(now + RETRY_FIRST), ["mine"]);
        assert!(lists.get("mine").is_some_and(|own| own.is_to_be_written()));
        assert!(!lists.note_merged("mine", false, now + RETRY_FIRST), "whoever changed it was told");
        assert!(lists.much_changed(now + RETRY_FIRST * 2).is_empty(), "later each time");
        assert_eq!(lists.much_changed(now + RETRY_FIRST * 3), ["mine"]);
        assert!(!lists.note_merged("mine", true, now));
        assert!(lists.much_changed(now + RETRY_LAST).is_empty(), "they are in use");
    }

    #[test]
    fn changes_are_read_as_they_were_written() {
        let changes = [("a.example", true), ("regexp:^x y$", false), ("+", true)]
            .map(|(rule, is_added)| RuleChange { is_added, rule: rule.to_owned() });
        assert_eq!(changes_of(&text_of(&changes)).collect::<Vec<_>>(), changes);
        assert_eq!(changes_of("").count(), 0);
    }
}
