//! Files besides the configuration's own, looked at once a second, and what else changes by itself.

use std::path::PathBuf;
use std::sync::Arc;

use environment::{Environment as _, System};
use settings::Settings;
use tracing::info;

use super::sets::keep;
use super::{Operator, unix_seconds};
use crate::lock;

/// Looks, one a second, between two writings of dynamic sets.
const LOOKS_PER_WRITE: u64 = 30;
/// Looks for each attempt to read what could not be read at the start.
const LOOKS_PER_ATTEMPT: u64 = 5;

/// The files besides the configuration's own that it is made of: a change of one is a reason to
/// compile it again.
pub(crate) struct Watched {
    files: Vec<PathBuf>,
    /// What they looked like before they were read: what changes meanwhile is read once more.
    before: Vec<Option<u64>>,
}

impl Watched {
    /// Looks at the files of a configuration that is about to be compiled.
    pub(crate) fn of(settings: &Settings) -> Arc<Self> {
        let files = config::watched(settings, &System);
        let before = stamps(&files);
        Arc::new(Self { files, before })
    }

    /// Returns whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// What the files looked like lately.
#[derive(Default)]
pub(super) struct Seen {
    looks: u64,
    watched: Option<Arc<Watched>>,
    /// At the last look.
    last: Vec<Option<u64>>,
    /// When they were last read.
    read: Vec<Option<u64>>,
}

impl Seen {
    /// Takes what the files look like now; returns whether one of them has changed since it was
    /// read, and stays so.
    fn look(&mut self, watched: Arc<Watched>, stamps: Vec<Option<u64>>) -> bool {
        if self.follow(watched) {
            self.last = stamps;
            return false;
        }
        // Not while it is being written: only when two looks see the same.
        let is_settled = stamps == self.last;
        self.last = stamps;
        let has_changed = is_settled && self.last != self.read;
        if has_changed {
            self.read.clone_from(&self.last);
        }
        has_changed
    }

    /// Notes that files were read, as they are in `now`: that they have changed is no news.
    fn read(&mut self, files: &[PathBuf], watched: Arc<Watched>, now: &Watched) {
        self.follow(watched);
        let Some(watched) = &self.watched else { return };
        for (slot, file) in self.read.iter_mut().zip(&watched.files) {
            let known = now.files.iter().position(|other| other == file);
            if let Some(stamp) = known.filter(|_| files.contains(file)).and_then(|at| now.before.get(at)) {
                *slot = *stamp;
            }
        }
    }

    /// Begins with other files, if they are others; returns whether they are.
    fn follow(&mut self, watched: Arc<Watched>) -> bool {
        if self.watched.as_ref().is_some_and(|known| Arc::ptr_eq(known, &watched)) {
            return false;
        }
        (self.last, self.read) = (watched.before.clone(), watched.before.clone());
        self.watched = Some(watched);
        true
    }
}

impl Operator {
    /// Notes that the lists of a set were read, as they are in `now`.
    pub(super) fn note_read(&self, lists: &[PathBuf], now: &Watched) {
        let watched = Arc::clone(&lock(&self.view).watched);
        lock(&self.seen).read(lists, watched, now);
    }

    /// Looks after what changes by itself: what leaves dynamic sets, and files that somebody wrote.
    /// Called once a second.
    pub(crate) fn look(&self) {
        self.components.devices.look();
        self.look_at_pace();
        let (sets, watched, bans) = {
            let view = lock(&self.view);
            (view.sets.clone(), Arc::clone(&view.watched), view.bans.clone())
        };
        let now = unix_seconds();
        for (_, dynamic) in sets.dynamics() {
            dynamic.sweep(now);
        }
        let is_due = lock(&self.seen).looks.is_multiple_of(LOOKS_PER_ATTEMPT);
        if is_due && self.has_unread(&sets) {
            self.read_late(&sets);
        }
        self.components.devices.ban_live(self.banned(&bans));
        let stamps = stamps(&watched.files);
        let mut seen = lock(&self.seen);
        seen.looks += 1;
        if seen.looks.is_multiple_of(LOOKS_PER_WRITE) {
            keep(&sets);
        }
        if seen.look(watched, stamps) {
            drop(seen);
            info!("a file that the configuration is made of has changed");
            // What became of it is in the log.
            drop(self.refresh());
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<u64>> {
    files.iter().map(|file| System.stamp(file).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(before: &[u64]) -> Arc<Watched> {
        let files = (0..before.len()).map(|number| PathBuf::from(format!("f{number}"))).collect();
        Arc::new(Watched { files, before: stamps(before) })
    }

    fn stamps(numbers: &[u64]) -> Vec<Option<u64>> {
        numbers.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_list_that_was_fetched_and_read_is_no_news() {
        let files = watched(&[1, 1]);
        let mut seen = Seen::default();
        assert!(!seen.look(Arc::clone(&files), stamps(&[1, 1])));
        // The second is fetched, and read for that.
        seen.read(&["f1".into()], Arc::clone(&files), &watched(&[1, 2]));
        for _ in 0..3 {
            assert!(!seen.look(Arc::clone(&files), stamps(&[1, 2])));
        }
        // Also before anybody has looked.
        let mut seen = Seen::default();
        seen.read(&["f1".into()], Arc::clone(&files), &watched(&[1, 2]));
        assert!(!seen.look(Arc::clone(&files), stamps(&[1, 2])));
        assert!(!seen.look(Arc::clone(&files), stamps(&[1, 2])));
        // What somebody else writes is, once it stays.
        assert!(!seen.look(Arc::clone(&files), stamps(&[3, 2])));
        assert!(seen.look(Arc::clone(&files), stamps(&[3, 2])));
        assert!(!seen.look(files, stamps(&[3, 2])));
    }
}
