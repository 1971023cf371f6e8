//! The caches as files: read at the start, written at the end and now and then.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::Cache;
use config::Plans;
use control::api;
use tracing::warn;

/// The caches by their names in the configuration.
pub(crate) type Caches = BTreeMap<String, Arc<Cache>>;

/// A cache that is kept in a file.
pub(crate) struct Kept {
    name: String,
    file: PathBuf,
    every: Option<Duration>,
    written: Instant,
}

/// Returns the caches of `plans` by name.
pub(crate) fn by_name(plans: &Plans) -> Caches {
    plans.caches.iter().map(|plan| (plan.name.clone(), Arc::clone(&plan.cache))).collect()
}

/// Returns the caches of `plans` that are kept in files.
pub(crate) fn kept(plans: &Plans) -> Vec<Kept> {
    let kept = plans.caches.iter().filter_map(|plan| {
        Some(Kept {
            name: plan.name.clone(),
            file: plan.dump_file.clone()?,
            every: plan.dump_every,
            written: Instant::now(),
        })
    });
    kept.collect()
}

impl Kept {
    /// Returns whether it has not been written for as long as the configuration allows.
    pub(crate) fn is_due(&self) -> bool {
        self.every.is_some_and(|every| self.written.elapsed() >= every)
    }

    /// Takes over from the same cache of an older configuration, so that a reload does not put off its turn.
    pub(crate) fn inherit(&mut self, older: &[Self]) {
        if let Some(older) = older.iter().find(|older| older.name == self.name && older.file == self.file) {
            self.written = older.written;
        }
    }

    /// Says that its file is not used: the cache cannot write itself in this build.
    pub(crate) fn read(&self) {
        warn!(cache = %self.name, file = %self.file.display(), "caches are not kept in files by this build");
    }

    /// Says the same.
    pub(crate) fn write(&mut self) -> api::Dumped {
        self.written = Instant::now();
        let error = Some("caches are not kept in files by this build".to_owned());
        api::Dumped { cache: self.name.clone(), file: self.file.display().to_string(), entries: 0, error }
    }
}
