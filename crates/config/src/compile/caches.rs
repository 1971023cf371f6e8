//! Caches: the settings to plans.

use std::path::Path;

use engine::ops::cache::{CacheRules, Early};
use plan::caches::{CachePlan, DumpPlan};
use values::ttl;

use settings::{CacheSettings, Settings};

/// Returns the caches, in the order of the file.
pub(super) fn plans(settings: &Settings, state_directory: &Path) -> Vec<CachePlan> {
    let plan = |cache: &CacheSettings| CachePlan {
        name: cache.name.value.clone(),
        octets_max: usize::try_from(cache.size).unwrap_or(usize::MAX),
        rules: rules(cache),
        dump: cache
            .dump_file
            .as_ref()
            .map(|file| DumpPlan { file: state_directory.join(file), every: cache.dump_every }),
    };
    settings.caches.iter().map(plan).collect()
}

/// Returns how answers are kept.
fn rules(settings: &CacheSettings) -> CacheRules {
    CacheRules {
        min_ttl: ttl(settings.min_ttl),
        max_ttl: ttl(settings.max_ttl),
        max_negative_ttl: ttl(settings.max_negative_ttl),
        min_negative_ttl: ttl(settings.min_negative_ttl),
        failure_ttl: ttl(settings.failure_ttl),
        stale_seconds: settings.stale.map_or(0, |stale| stale.as_secs() as u32),
        restarts_stale: settings.stale_restarts,
        stale_ttl: ttl(settings.stale_ttl),
        stale_client_timeout_ms: settings.stale_client_timeout.as_millis() as u32,
        prefetch_percent: settings.prefetch.unwrap_or(0),
        keeps_subnets_apart: false,
        keeps_do_apart: false,
        keeps_ttls: settings.original_ttl,
        early: Early::No,
        keeps_stamps: false,
        answers_without_rd: false,
    }
}
