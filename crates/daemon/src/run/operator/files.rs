//! Files besides the configuration's own, looked at once a second, and what else changes by itself.

use std::path::PathBuf;
use std::sync::Arc;

use config::settings::Settings;
use config::{Surroundings as _, System};
use tracing::info;

use super::sets::keep;
use super::{Running, lock, unix_seconds};

/// Looks, one a second, between two writings of dynamic sets.
const LOOKS_PER_WRITE: u64 = 30;

/// The files besides the configuration's own that it is made of: a change of one is a reason to compile it again.
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

impl Running {
    /// Looks after what changes by itself: what leaves dynamic sets, and files that somebody wrote. Called once a second.
    pub(crate) fn look(&self) {
        self.devices.look();
        self.look_at_pace();
        let (sets, watched, bans) = {
            let view = lock(&self.view);
            (view.sets.clone(), Arc::clone(&view.watched), view.bans.clone())
        };
        let now = unix_seconds();
        for (_, dynamic) in sets.dynamics() {
            dynamic.sweep(now);
        }
        self.devices.ban_live(self.banned(&bans));
        let stamps = stamps(&watched.files);
        let mut seen = lock(&self.seen);
        seen.looks += 1;
        if seen.looks.is_multiple_of(LOOKS_PER_WRITE) {
            keep(&sets);
        }
        if !seen.watched.as_ref().is_some_and(|known| Arc::ptr_eq(known, &watched)) {
            let read = watched.before.clone();
            *seen = Seen { looks: seen.looks, watched: Some(watched), last: stamps, read };
            return;
        }
        // Not while it is being written: only when two looks see the same.
        let is_settled = stamps == seen.last;
        seen.last = stamps;
        if is_settled && seen.last != seen.read {
            seen.read = seen.last.clone();
            drop(seen);
            info!("a file that the configuration is made of has changed");
            drop(self.refresh(None));
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<u64>> {
    files.iter().map(|file| System.stamp(file).ok()).collect()
}
