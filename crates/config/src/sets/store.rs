//! What keeps a dynamic set over restarts: a file with all that it held, and the changes since.
//!
//! A change is on disk before it is acknowledged. Changes are kept beside the settings, by number;
//! the file begins with the number of the last one that is in it. Where nothing is kept there they
//! are in a log beside the file, as they were before: the log begins with the number of the file
//! that it follows. When everything is written anew, the file is replaced first, and what the log
//! of the one before says is in it already.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use environment::Keeper;

/// Octets of a log; then everything is written anew.
const LOG_OCTETS_MAX: u64 = 1 << 20;
/// Members of one change that the audit log names.
const SAID_MAX: usize = 20;
/// What the first line of both files begins with.
const NUMBER: &str = "#number ";
/// Octets of that line, and more.
const NUMBER_OCTETS_MAX: u64 = 64;

/// Something that was added, and the second it leaves at, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Add(String, u64),
    Remove(String),
}

impl Change {
    fn line(&self) -> String {
        let text = match self {
            Self::Add(item, leaves) => format!("+ {leaves} {item}"),
            Self::Remove(item) => format!("- {item}"),
        };
        format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
    }

    #[cfg(test)]
    pub(super) fn line_for_tests(&self) -> String {
        self.line()
    }

    /// Reads a line; `None` if it is not whole.
    fn parse(line: &str) -> Option<Self> {
        let (sum, text) = line.split_once(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(text.as_bytes()) {
            return None;
        }
        match text.split_once(' ')? {
            ("+", rest) => {
                let (leaves, item) = rest.split_once(' ')?;
                Some(Self::Add(item.to_owned(), leaves.parse().ok()?))
            }
            ("-", item) => Some(Self::Remove(item.to_owned())),
            _ => None,
        }
    }
}

/// The files of one set.
pub(super) struct Store {
    file: PathBuf,
    /// Keeps changes, in the space of the set.
    keeper: Option<(Arc<dyn Keeper>, String)>,
    state: Mutex<State>,
    /// Why nothing may be written, found when the files were read: there may be changes that are
    /// not known here. Held for moments: whoever compiles asks for it, while a change that holds
    /// `state` may wait for who compiles.
    broken: Mutex<Option<String>>,
    /// Whether that is a file, which somebody has to mend before the next start.
    is_file_broken: AtomicBool,
}

/// What is known of the files. Held while they are written, and while the set is changed.
#[derive(Default)]
struct State {
    number: u64,
    log_octets: u64,
    /// Whether it is known what the files say, the log is that of the file, and nothing but what
    /// was acknowledged is in it.
    is_sound: bool,
    /// Whether the file should have been written and was not.
    is_behind: bool,
}

impl Store {
    /// Names the file of a set; without a keeper, the log is beside it.
    pub(super) fn new(set: &str, file: PathBuf, keeper: Option<Arc<dyn Keeper>>) -> Self {
        let keeper = keeper.map(|keeper| (keeper, format!("set {set}")));
        Self {
            file,
            keeper,
            state: Mutex::default(),
            broken: Mutex::default(),
            is_file_broken: AtomicBool::new(false),
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    fn log(&self) -> PathBuf {
        self.file.with_extension("dynamic.log")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broken(&self) -> MutexGuard<'_, Option<String>> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what there is: the text of the file, and the changes since. A file that cannot be read
    /// is not empty: the set has what can be read, and nothing is changed or written until all of
    /// it can be [read again](Self::read_again).
    pub(super) fn read(&self, read: impl Fn(&Path) -> io::Result<String>) -> (String, Vec<Change>) {
        self.read_with(&mut self.state(), read)
    }

    /// Reads again what was kept beside the settings and could not be read; `take` gets it if it
    /// can be now, before anything is changed. Returns whether it could.
    pub(super) fn read_again(
        &self,
        read: impl Fn(&Path) -> io::Result<String>,
        take: impl FnOnce(&str, &[Change]),
    ) -> bool {
        let Some((keeper, space)) = &self.keeper else { return false };
        if self.is_file_broken.load(Ordering::Relaxed) || keeper.texts(space).is_err() {
            return false;
        }
        let mut state = self.state();
        let Some(before) = self.broken().take() else { return false };
        let kept = std::mem::take(&mut *state);
        let (text, changes) = self.read_with(&mut state, read);
        if self.trouble().is_some() {
            // The first reason is the one that is known.
            *self.broken() = Some(before);
            *state = kept;
            return false;
        }
        take(&text, &changes);
        true
    }

    fn read_with(
        &self,
        state: &mut State,
        read: impl Fn(&Path) -> io::Result<String>,
    ) -> (String, Vec<Change>) {
        let text_of = |file: &Path| match read(file) {
            Ok(text) => text,
            // There is none, or not even a folder for it.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                String::new()
            }
            Err(error) => {
                let why = format!("the members that were kept cannot be read: {}", named(file, &error));
                self.is_file_broken.store(true, Ordering::Relaxed);
                self.broken().get_or_insert(why);
                String::new()
            }
        };
        let text = text_of(&self.file);
        let log = text_of(&self.log());
        let number = number_in(text.lines().next());
        let mut lines = log.lines();
        state.number = number.unwrap_or(0);
        let is_its = number.is_some() && number_in(lines.next()) == number;
        let mut changes: Vec<Change> = lines.filter(|_| is_its).map_while(Change::parse).collect();
        if let Some((keeper, space)) = &self.keeper {
            let texts = keeper.texts(space).unwrap_or_else(|error| {
                let why = format!("what was changed before cannot be read: {error}");
                self.broken().get_or_insert(why);
                Vec::new()
            });
            for (kept, text) in texts {
                // What the file has already is about to be forgotten.
                if number.is_none_or(|number| kept > number) {
                    changes.extend(text.lines().filter_map(Change::parse));
                    state.log_octets += text.len() as u64;
                }
                state.number = state.number.max(kept);
            }
            state.is_sound = self.broken().is_none();
        }
        let text = match number {
            Some(_) => text.split_once('\n').map_or("", |(_, rest)| rest).to_owned(),
            None => text,
        };
        (text, changes)
    }

    /// Returns why nothing may be changed or written, if so.
    pub(super) fn trouble(&self) -> Option<String> {
        self.broken().clone()
    }

    fn check(&self) -> io::Result<()> {
        self.trouble().map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    /// Keeps changes, and makes them when they are on disk; `whole` is what the set holds before.
    pub(super) fn change<T>(
        &self,
        changes: &[Change],
        by: &str,
        whole: impl FnOnce() -> String,
        make: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let lines: String = changes.iter().map(Change::line).collect();
        let mut state = self.state();
        self.check()?;
        if let Some((keeper, space)) = &self.keeper {
            if !state.is_sound {
                self.rewrite(&mut state, &whole())?;
            }
            keeper.keep(space, state.number + 1, &lines, (by, &summary(changes)))?;
            state.number += 1;
            state.log_octets += lines.len() as u64;
            // Written anew before long.
            state.is_behind |= state.log_octets > LOG_OCTETS_MAX;
            return Ok(make());
        }
        if !state.is_sound || state.log_octets > LOG_OCTETS_MAX {
            self.rewrite(&mut state, &whole())?;
        }
        let log = self.log();
        let written = OpenOptions::new().append(true).open(&log).and_then(|mut file| {
            let written = file.write_all(lines.as_bytes()).and_then(|()| file.sync_data());
            written.inspect_err(|_| {
                // It is not acknowledged, so it must not be there after a restart.
                let cut = file.set_len(state.log_octets).and_then(|()| file.sync_data());
                state.is_sound = cut.is_ok();
            })
        });
        written.map_err(|error| named(&log, &error))?;
        state.log_octets += lines.len() as u64;
        Ok(make())
    }

    /// Writes everything anew if something changed; returns whether it was written.
    pub(super) fn keep(&self, is_changed: bool, whole: impl FnOnce() -> String) -> io::Result<bool> {
        let mut state = self.state();
        if !is_changed && !state.is_behind {
            return Ok(false);
        }
        self.check()?;
        state.is_behind = true;
        self.rewrite(&mut state, &whole())?;
        Ok(true)
    }

    /// Returns the number of the last change that is anywhere on disk: what is written next has to
    /// come after it.
    fn last_number(&self) -> io::Result<u64> {
        let mut first = Vec::new();
        match File::open(&self.file) {
            Ok(file) => {
                let mut start = BufReader::new(file.take(NUMBER_OCTETS_MAX));
                start.read_until(b'\n', &mut first).map_err(|error| named(&self.file, &error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(named(&self.file, &error)),
        }
        let in_file = number_in(str::from_utf8(&first).ok().map(str::trim_end)).unwrap_or(0);
        let Some((keeper, space)) = &self.keeper else { return Ok(in_file) };
        let kept = keeper.texts(space)?.last().map_or(0, |(number, _)| *number);
        Ok(in_file.max(kept))
    }

    fn rewrite(&self, state: &mut State, text: &str) -> io::Result<()> {
        if !state.is_sound {
            state.number = state.number.max(self.last_number()?);
        }
        let (file, log) = (&self.file, self.log());
        let directory = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(|error| named(directory, &error))?;
        let number = state.number + 1;
        let first = format!("{NUMBER}{number}\n");
        let (new_file, new_log) = (file.with_extension("dynamic.new"), file.with_extension("log.new"));
        // Whatever needs room is done before anything is replaced.
        write(&new_file, &[first.as_bytes(), text.as_bytes()].concat())?;
        let sync = || File::open(directory)?.sync_all();
        if let Some((keeper, space)) = &self.keeper {
            fs::rename(&new_file, file).map_err(|error| named(file, &error))?;
            (state.number, state.is_behind) = (number, true);
            sync().map_err(|error| named(directory, &error))?;
            // That of a time before changes were kept elsewhere: all of it is in the file.
            drop(fs::remove_file(&log));
            keeper.forget(space, number)?;
            *state = State { number, log_octets: 0, is_sound: true, ..State::default() };
            return Ok(());
        }
        write(&new_log, first.as_bytes())?;
        fs::rename(&new_file, file).map_err(|error| named(file, &error))?;
        (state.number, state.is_sound) = (number, false);
        sync()
            .and_then(|()| fs::rename(&new_log, &log))
            .and_then(|()| sync())
            .map_err(|error| named(&log, &error))?;
        *state = State { number, log_octets: first.len() as u64, is_sound: true, ..State::default() };
        Ok(())
    }
}

/// Returns the number that a file begins with.
fn number_in(line: Option<&str>) -> Option<u64> {
    line?.strip_prefix(NUMBER)?.parse().ok()
}

/// Returns what the audit log says of changes.
fn summary(changes: &[Change]) -> String {
    let said = changes.iter().take(SAID_MAX).map(|change| match change {
        Change::Add(item, _) => format!("+{item}"),
        Change::Remove(item) => format!("-{item}"),
    });
    let more = changes.len().saturating_sub(SAID_MAX);
    let more = (more > 0).then(|| format!("{more} more"));
    said.chain(more).collect::<Vec<_>>().join(", ")
}

/// Writes a file that nobody knows yet. If that fails, it takes no room.
fn write(path: &Path, octets: &[u8]) -> io::Result<()> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(octets)?;
        file.sync_all()
    });
    written.map_err(|error| {
        drop(fs::remove_file(path));
        named(path, &error)
    })
}

/// Returns an error that names a file.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("\"{}\": {error}", path.display()))
}
