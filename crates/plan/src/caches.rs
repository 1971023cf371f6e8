//! Caches: how much each may hold, how it keeps answers, and the file that keeps it over restarts.

use std::path::PathBuf;
use std::time::Duration;

use engine::ops::cache::CacheRules;

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// Its name.
    pub name: String,
    /// The most octets that it holds; those of a cache that is there already stay as they are.
    pub octets_max: usize,
    /// How answers are kept.
    pub rules: CacheRules,
    /// The file that keeps its content over restarts.
    pub dump: Option<DumpPlan>,
}

/// The file of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpPlan {
    /// Where it is.
    pub file: PathBuf,
    /// How often it is written while the server runs.
    pub every: Option<Duration>,
}
