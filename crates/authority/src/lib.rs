//! Decides about changes of settings while the server runs.
//!
//! Never on a query's path, and never applies what is not on disk. What may be changed, whether it
//! is right, and when it counts is decided here. Who asks for a change (the
//! control socket) and what a configuration becomes (the server) are others' business: see
//! [`Runner`].

#![forbid(unsafe_code)]

mod audit;
mod bans;
mod data;
mod entries;
mod files;
mod keeper;
mod kept;
mod last_good;
pub mod own_lists;
mod queue;
mod start;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use diagnostic::Diagnostic;
use settings::ChangesAllowed;
use settings::overlay::{Layer, SettingPath};
use store::{Expected, Put, Step, Store, StoreError};

pub use bans::{BANS, Ban, Bans, Spared, overlap, plain, spared, too_wide, unusual_length};
use entries::{Entries, layers};
pub use files::{FilesSaid, Meanwhile};
pub use kept::{Kept, WhatBecame};
pub use last_good::FILE as LAST_GOOD;
pub use queue::Queue;
pub use start::{Begun, WrongPair, begin, hold, layers_in_copy};

/// The space of the store that changed settings are in.
const SPACE: &str = "settings";
/// The folder for all that, in the folder for state.
const FOLDER: &str = "changes";
/// Changes of settings that can be undone, and changes of all else whose history is known; older
/// ones are forgotten.
const HISTORY_MAX: u64 = 10_000;
/// So many changes later the history is looked at again.
const COMPACT_EVERY: u64 = 100;

/// What somebody wants of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// This is said there.
    Set(SettingPath, String),
    /// Nothing is said there, whatever the files say.
    TakeAway(SettingPath),
    /// What the files say counts again.
    Unset(SettingPath),
    /// All settings are as this revision had them.
    RollBack(u64),
}

/// What somebody wants: all of it is carried out, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The edits, in order.
    pub edits: Vec<Edit>,
    /// Who wants it.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The second since 1970 at which what is set ends.
    pub until: Option<u64>,
    /// The revision that it was made for, if that matters: no settings may have changed after it.
    pub expected: Option<u64>,
    /// What must hold of single settings.
    pub expected_at: Vec<(SettingPath, Expectation)>,
    /// Whether it is only checked.
    pub is_dry_run: bool,
}

/// What must hold of a setting for a request to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// This revision changed it last, or something that it holds or is part of; 0: none did.
    Revision(u64),
    /// Neither the files nor a change say anything there.
    Nothing,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The revision of the changes that is in use then.
    pub revision: u64,
    /// Settings whose earlier changes are gone with it, being part of what was set.
    pub replaced: Vec<SettingPath>,
    /// The changes then, as they are laid over files.
    pub layers: Vec<Layer>,
    /// What was found, and settings that need a restart.
    pub outcome: Outcome,
}

/// What was found when a configuration came into use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
    /// Settings that differ but are read at the start only.
    pub needs_restart: Vec<String>,
}

/// Why a request is not carried out; then nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may not be, in one sentence.
    NotAllowed(String),
    /// There is no change at this path.
    NotChanged(SettingPath),
    /// A setting is not as the request expects.
    NotExpected {
        /// Which.
        path: SettingPath,
        /// The revision that changed it last; 0 if none did.
        found: u64,
    },
    /// The configuration with it has mistakes: all of them.
    Invalid(Vec<Diagnostic>),
    /// It cannot be kept.
    Store(StoreError),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAllowed(why) => f.write_str(why),
            Self::NotChanged(path) => {
                write!(f, "\"{path}\" is as the file says: there is no change to take back")
            }
            Self::NotExpected { path, found: 0 } => write!(f, "\"{path}\" is as the file says"),
            Self::NotExpected { path, found } => {
                write!(f, "\"{path}\" is another: revision {found} changed it last")
            }
            Self::Invalid(found) => {
                let lines: Vec<String> = found.iter().map(Diagnostic::line).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::Store(error @ StoreError::Trouble(_)) => {
                write!(f, "nothing is changed, because it cannot be kept: {error}")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

/// Who makes configurations and brings them into use.
pub trait Runner {
    /// A configuration that is right, and not in use yet.
    type Candidate;

    /// Returns what may be changed, as the files say.
    fn allowed(&self) -> ChangesAllowed;

    /// Returns whether the files say something at this path.
    fn is_said(&self, path: &SettingPath) -> bool;

    /// Returns what other changes over the files make different, with `digest` of each secret: as
    /// many as the audit log shows, and how many more there are.
    fn differences(
        &self,
        layers: [&[Layer]; 2],
        digest: &dyn Fn(&str) -> String,
    ) -> (Vec<store::audit::Difference>, usize);

    /// Makes a configuration of the files with changes over them.
    ///
    /// # Errors
    ///
    /// All its mistakes.
    fn check(&mut self, layers: &[Layer]) -> Result<(Self::Candidate, Outcome), Vec<Diagnostic>>;

    /// Brings a configuration into use: everything is prepared, then `keep` puts the changes on the
    /// disk, and then every query that comes meets it.
    ///
    /// # Errors
    ///
    /// What is in the way, or `keep`'s; then nothing has changed.
    fn adopt(
        &mut self,
        candidate: Self::Candidate,
        keep: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), Refusal>;
}

/// How changes stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The revision that is in use.
    pub revision: u64,
    /// Changed settings.
    pub changed: usize,
    /// Why nothing can be changed, if so.
    pub trouble: Option<String>,
    /// Changes that came into use since the start, those that were refused, and how often some were
    /// compiled together.
    pub counts: Counts,
}

/// What became of changes since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Came into use.
    pub made: u64,
    /// Were refused.
    pub refused: u64,
    /// Configurations that were compiled for them.
    pub compiled: u64,
    /// Could not be kept.
    pub not_kept: u64,
}

/// Who decides about changes.
#[derive(Debug)]
pub struct Authority {
    /// The folder for all that; `None`: nothing is kept, and nothing changed.
    folder: Option<PathBuf>,
    state: Mutex<State>,
    /// Held while settings are decided about: their changes have promised numbers. Nothing else
    /// is kept meanwhile.
    deciding: Mutex<()>,
    /// When the first of the changes in use ends, in seconds since 1970; `u64::MAX`: none does.
    next_end: AtomicU64,
    watcher: Watcher,
    /// The state directory, locked while this server uses it.
    lock: OnceLock<File>,
}

/// Is told of a change and its revision.
type Told = dyn Fn(&store::Change, u64) + Send + Sync;

/// Who hears of changes of what is no setting, when they are kept.
#[derive(Default)]
struct Watcher(OnceLock<Box<Told>>);

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

#[derive(Debug)]
struct State {
    /// The store, once it was opened.
    store: Option<Arc<Store>>,
    /// Why it is not open.
    trouble: Option<StoreError>,
    in_use: Entries,
    revision: u64,
    /// The revision that changed settings last, if it is known: others changed what is none.
    last_of_settings: Option<u64>,
    counts: Counts,
    /// The first key of the audit log, if it comes from elsewhere.
    audit_key: Option<store::audit::Octets>,
    /// How the store was found at the start, until it is opened to be written.
    found_whole: Option<store::Whole>,
}

impl Authority {
    /// Returns who decides about changes of a server that has none.
    pub fn of_nobody() -> Self {
        Self::new(None, Entries::new(), 0, None)
    }

    fn new(
        folder: Option<PathBuf>,
        in_use: Entries,
        revision: u64,
        audit_key: Option<store::audit::Octets>,
    ) -> Self {
        let counts = Counts::default();
        let (store, trouble, last_of_settings) = (None, None, None);
        let found_whole = None;
        let state =
            State { store, trouble, in_use, revision, last_of_settings, counts, audit_key, found_whole };
        let (deciding, watcher) = (Mutex::default(), Watcher::default());
        let next_end = AtomicU64::new(entries::next_end(&state.in_use));
        Self { folder, state: Mutex::new(state), deciding, next_end, watcher, lock: OnceLock::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deciding(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the store if there is one, as the user who serves; returns why it cannot be.
    ///
    /// # Errors
    ///
    /// It is there and cannot be used: what is in use stays in use.
    pub fn open(&self) -> Result<(), StoreError> {
        self.hold_state_directory();
        let Some(folder) = self.folder.as_deref().filter(|folder| Store::is_in(folder)) else {
            return Ok(());
        };
        self.state().opened(folder).map(drop)
    }

    /// Holds the state directory for as long as this is there, if nobody else does: at the first
    /// start, it is made after the configuration was read.
    fn hold_state_directory(&self) {
        let state = self.folder.as_deref().and_then(Path::parent);
        if let (None, Some(state)) = (self.lock.get(), state)
            && let Ok(folder) = File::open(state)
            && folder.try_lock().is_ok()
        {
            self.lock.get_or_init(|| folder);
        }
    }

    /// Returns whether no other server has the state directory.
    pub fn holds_state_directory(&self) -> bool {
        self.lock.get().is_some()
    }

    /// Returns whether changes can be kept at all.
    pub fn keeps_changes(&self) -> bool {
        self.folder.as_deref().and_then(Path::parent).is_some_and(Path::is_dir)
    }

    /// Returns the changes in use as they are laid over files.
    pub fn layers(&self) -> Vec<Layer> {
        layers(&self.state().in_use)
    }

    /// Returns the changes in use, by path.
    pub fn changes(&self) -> Vec<(SettingPath, Kept)> {
        self.state().in_use.iter().map(|(path, entry)| (path.clone(), entry.kept.clone())).collect()
    }

    /// Returns the change that made a setting what it is, or something that it holds or is part of,
    /// last.
    pub fn last_change(&self, path: &SettingPath) -> Option<Kept> {
        let state = self.state();
        let near = entries::near(&state.in_use, path).map(|(_, entry)| &entry.kept);
        near.max_by_key(|kept| kept.revision).cloned()
    }

    /// Returns the change that was made last of all that are in use.
    pub fn newest_change(&self) -> Option<Kept> {
        let state = self.state();
        state.in_use.values().map(|entry| &entry.kept).max_by_key(|kept| kept.revision).cloned()
    }

    /// Notes a text under a name for a time; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Nothing is kept, or it cannot be written.
    pub fn note(&self, name: (&str, &str), text: &str, times: (u64, u64)) -> Result<(), Refusal> {
        let folder = self.folder.as_deref().ok_or_else(|| {
            Refusal::NotAllowed(
                "this configuration keeps no changes: nothing can be kept beside it".to_owned(),
            )
        })?;
        let mut state = self.state();
        state.opened(folder).and_then(|store| store.note(name, text, times)).map_err(Refusal::Store)
    }

    /// Returns what is noted under a name.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn noted(&self, name: (&str, &str), now: u64) -> Result<Option<String>, StoreError> {
        self.with_store(None, |store| store.noted(name, now))
    }

    /// Returns what is noted in a space, by name.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn notes(&self, space: &str, now: u64) -> Result<BTreeMap<String, String>, StoreError> {
        self.with_store(BTreeMap::new(), |store| store.notes(space, now))
    }

    /// Forgets notes of a space; they are gone from the disk when this returns.
    ///
    /// # Errors
    ///
    /// It cannot be written; then all of them are still there.
    pub fn forget_notes<'n>(
        &self,
        space: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), StoreError> {
        self.with_store((), |store| store.forget_notes(space, names))
    }

    /// Returns how changes stand.
    pub fn standing(&self) -> Standing {
        let state = self.state();
        Standing {
            revision: state.revision,
            changed: state.in_use.len(),
            trouble: state.trouble.as_ref().map(ToString::to_string),
            counts: state.counts,
        }
    }

    /// Returns the changes that the disk has, if they are others than those in use: after a
    /// failure, or when somebody has replaced the files. They are to be brought into use, and then
    /// to be [taken](Self::take).
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn on_disk(&self) -> Result<OnDisk, StoreError> {
        let mut state = self.state();
        let folder = self.folder.as_deref().filter(|folder| state.store.is_some() || Store::is_in(folder));
        let Some(folder) = folder else {
            return Ok(OnDisk { entries: state.in_use.clone(), revision: state.revision });
        };
        let store = state.opened(folder)?;
        let (entries, revision) = kept::read(store)?;
        Ok(OnDisk { entries, revision })
    }

    /// Takes over changes that have come into use.
    pub fn take(&self, on_disk: OnDisk) {
        let mut state = self.state();
        self.use_entries(&mut state, on_disk.entries, on_disk.revision);
        state.last_of_settings = None;
    }

    fn use_entries(&self, state: &mut State, entries: Entries, revision: u64) {
        self.next_end.store(entries::next_end(&entries), Ordering::Relaxed);
        (state.in_use, state.revision) = (entries, revision);
    }

    /// Notes which files and changes are in use, for a start at which others are wrong.
    pub fn note_good(&self, loaded: &settings::Loaded) {
        let Some(folder) = &self.folder else { return };
        let state = self.state();
        if let Err(error) = last_good::write(folder, loaded, &state.in_use, state.revision) {
            tracing::warn!(%error, "the configuration in use cannot be noted for a start at which a later one is wrong");
        }
    }

    /// Returns the newest changes before a revision, or of all, the newest first.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn history(&self, before: Option<u64>, count: usize) -> Result<Vec<Step>, StoreError> {
        self.with_store(Vec::new(), |store| store.newest(Some(SPACE), before, count))
    }

    /// Returns the changes as a revision had them.
    ///
    /// # Errors
    ///
    /// There is no such revision, or the store cannot be read.
    pub fn layers_at(&self, revision: u64) -> Result<Vec<Layer>, StoreError> {
        let none = (revision == 0).then(Entries::new);
        let entries = match none {
            Some(none) if !self.has_store() => none,
            _ => {
                let wanted = StoreError::NoRevision { wanted: revision, oldest: 0, newest: 0 };
                self.with_store(Err(wanted), |store| Ok(kept::read_at(store, revision)))??
            }
        };
        Ok(layers(&entries))
    }

    /// Does something with the store; returns `none` if there is none.
    fn with_store<T>(
        &self,
        none: T,
        work: impl FnOnce(&Arc<Store>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut state = self.state();
        let Some(folder) =
            self.folder.as_deref().filter(|folder| state.store.is_some() || Store::is_in(folder))
        else {
            return Ok(none);
        };
        work(state.opened(folder)?)
    }

    /// Returns whether settings have ended by now. It waits for nobody, whatever is being done with
    /// the store.
    pub fn has_ended(&self, now: u64) -> bool {
        self.next_end.load(Ordering::Relaxed) <= now
    }

    /// Returns the settings that have ended by now, if there are any.
    pub fn ended(&self, now: u64) -> Option<Request> {
        let state = self.state();
        let is_over = |entry: &entries::Entry| entry.kept.until.is_some_and(|until| until <= now);
        let ended = state.in_use.iter().filter(|(_, entry)| is_over(entry));
        let edits: Vec<Edit> = ended.map(|(path, _)| Edit::Unset(path.clone())).collect();
        let by = "the server".to_owned();
        let why = "its time is over".to_owned();
        let (expected, expected_at) = (None, Vec::new());
        let request =
            Request { by, why, at: now, until: None, expected, expected_at, is_dry_run: false, edits };
        (!request.edits.is_empty()).then_some(request)
    }

    /// Carries out requests: all that are right, compiled together if they can be.
    pub fn decide<R: Runner>(&self, runner: &mut R, requests: &[Request]) -> Vec<Result<Done, Refusal>> {
        let outcomes = match self.carry_out(runner, requests) {
            Ok(done) => done.into_iter().map(Ok).collect(),
            Err(refusal) if requests.len() == 1 => vec![Err(refusal)],
            // One of them is wrong: each hears its own mistake, and the others count.
            Err(_) => requests
                .iter()
                .map(|request| {
                    let done = self.carry_out(runner, std::slice::from_ref(request))?;
                    done.into_iter()
                        .next()
                        .ok_or_else(|| Refusal::NotAllowed("nothing was asked for".to_owned()))
                })
                .collect::<Vec<_>>(),
        };
        let mut state = self.state();
        for (outcome, request) in outcomes.iter().zip(requests) {
            match outcome {
                Ok(_) if request.is_dry_run => {}
                Ok(_) => state.counts.made += 1,
                Err(Refusal::Store(StoreError::Trouble(_))) => state.counts.not_kept += 1,
                Err(_) => state.counts.refused += 1,
            }
        }
        outcomes
    }

    /// Carries out all requests together, or none.
    fn carry_out<R: Runner>(&self, runner: &mut R, requests: &[Request]) -> Result<Vec<Done>, Refusal> {
        let folder = self.folder.as_deref();
        let folder = folder.ok_or_else(|| {
            Refusal::NotAllowed(
                "changes are laid over a configuration of gannet's own: \"gannet import unbound\" makes one"
                    .to_owned(),
            )
        })?;
        if requests.iter().any(|request| request.is_dry_run) && requests.len() > 1 {
            return Err(Refusal::NotAllowed("what is only checked is checked alone".to_owned()));
        }
        let is_dry_run = requests.iter().any(|request| request.is_dry_run);
        let allowed = runner.allowed();
        let _deciding = self.deciding();
        let (mut entries, mut revision, mut last_of_settings) = self.standing_for(folder)?;
        let before_all = revision;
        let (mut changes, mut done) = (Vec::new(), Vec::new());
        for request in requests {
            // Changes of other data have revisions, too, and are no reason to refuse it.
            let is_expected = |expected: &u64| (last_of_settings..=revision).contains(expected);
            if let Some(expected) = request.expected.filter(|expected| !is_expected(expected)) {
                let moved = store::Conflict::Moved { expected, found: revision };
                return Err(Refusal::Store(StoreError::Conflict(moved)));
            }
            for (path, expectation) in &request.expected_at {
                let found = entries::last_revision(&entries, path);
                let holds = match expectation {
                    Expectation::Revision(expected) => found == *expected,
                    Expectation::Nothing => found == 0 && !runner.is_said(path),
                };
                if !holds {
                    return Err(Refusal::NotExpected { path: path.clone(), found });
                }
            }
            let numbered = (request, revision + 1);
            let (touched, replaced) =
                entries::edit(&mut entries, numbered, &allowed, |revision| self.entries_at(revision))?;
            let puts = touched.puts(&entries);
            if !puts.is_empty() {
                revision += 1;
                last_of_settings = revision;
                let (differences, differences_more) = match is_dry_run {
                    true => (Vec::new(), 0),
                    false => {
                        let [before, after] = touched.near(&entries);
                        runner.differences([&before, &after], &|secret| self.digest(secret))
                    }
                };
                let (by, why) = (request.by.clone(), request.why.clone());
                let (at, expected) = (request.at, None);
                changes.push(store::Change { by, why, at, expected, puts, differences, differences_more });
            }
            done.push((revision, replaced));
        }
        let laid = layers(&entries);
        let (candidate, outcome) = runner.check(&laid).map_err(Refusal::Invalid)?;
        self.state().counts.compiled += 1;
        let finish = |outcome: &Outcome| {
            let done = done.iter().cloned();
            let of_one = |(revision, replaced)| {
                let (layers, outcome) = (laid.clone(), outcome.clone());
                Done { revision, replaced, layers, outcome }
            };
            done.map(of_one).collect()
        };
        if is_dry_run || changes.is_empty() {
            return Ok(finish(&outcome));
        }
        let mut keep = || {
            let mut state = self.state();
            let store = state.opened(folder)?;
            // The numbers were promised: changes are named by them.
            if let Some(first) = changes.first_mut() {
                first.expected = Some(before_all);
            }
            store.commit_all(&changes).map(drop)
        };
        runner.adopt(candidate, &mut keep)?;
        let mut state = self.state();
        self.use_entries(&mut state, entries, revision);
        state.last_of_settings = Some(last_of_settings);
        state.compact();
        Ok(finish(&outcome))
    }

    /// Returns the changes that others are to be made of, the revision, and the one that changed
    /// settings last.
    fn standing_for(&self, folder: &Path) -> Result<(Entries, u64, u64), Refusal> {
        let mut state = self.state();
        let (mut entries, mut revision) = (state.in_use.clone(), state.revision);
        let mut last = state.last_of_settings;
        // What cannot be kept is not compiled first.
        let store = state.opened(folder).map_err(Refusal::Store)?;
        if store.position().map_err(Refusal::Store)?.revision != revision {
            // A change that was refused because it could not be written, and was all the same.
            (entries, revision) = kept::read(store).map_err(Refusal::Store)?;
            last = None;
        }
        let last = last.map_or_else(|| store.last_of(SPACE), Ok).map_err(Refusal::Store)?;
        state.last_of_settings = Some(last);
        Ok((entries, revision, last))
    }

    /// Returns the changes as a revision had them; none if nothing was ever kept.
    fn entries_at(&self, revision: u64) -> Result<Entries, Refusal> {
        match self.has_store() {
            true => self.with_store(Entries::new(), |store| kept::read_at(store, revision)),
            false => Ok(Entries::new()),
        }
        .map_err(Refusal::Store)
    }
}

/// Changes that the disk has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    entries: Entries,
    revision: u64,
}

impl OnDisk {
    /// Returns them as they are laid over files.
    pub fn layers(&self) -> Vec<Layer> {
        layers(&self.entries)
    }
}

impl State {
    /// Forgets what is too old to be undone, now and then.
    fn compact(&self) {
        if let Some(store) = self.store.as_ref().filter(|_| self.revision.is_multiple_of(COMPACT_EVERY))
            && let Err(error) = store.compact(SPACE, HISTORY_MAX)
        {
            tracing::warn!(%error, "old changes cannot be forgotten");
        }
    }

    /// Returns the store, opened if it is not.
    fn opened(&mut self, folder: &Path) -> Result<&Arc<Store>, StoreError> {
        if self.store.is_none() {
            match Store::open_again(folder, self.audit_key, self.found_whole.take()) {
                Ok(store) => self.store = Some(Arc::new(store)),
                Err(error) => {
                    self.trouble = Some(error.clone());
                    return Err(error);
                }
            }
        }
        let store = self.store.as_ref().expect("it was opened");
        match store.position() {
            // A start without the store went on with what was noted: nothing is written over what
            // may be better.
            Ok(position) if position.revision < self.revision => {
                let (found, in_use) = (position.revision, self.revision);
                let what =
                    format!("it has lost changes: it stands at revision {found}, and {in_use} is in use");
                let file = Store::file(folder);
                let error = StoreError::Trouble(store::Trouble::Damaged(file, what));
                self.trouble = Some(error.clone());
                Err(error)
            }
            Ok(_) => {
                self.trouble = None;
                Ok(store)
            }
            Err(error) => {
                self.trouble = Some(error.clone());
                Err(error)
            }
        }
    }
}

/// Returns the edit of one entry of the store.
fn put_of(path: &SettingPath, kept: Option<&Kept>) -> Put {
    Put {
        space: SPACE.to_owned(),
        name: path.to_string(),
        text: kept.map(|kept| kept.what.encoded()),
        until: kept.and_then(|kept| kept.until),
        expected: Expected::Any,
    }
}

#[cfg(test)]
mod tests;
