//! Caches, as their operator sees them.

use std::collections::BTreeMap;

use cache::Flush;
use control::api::{self, CacheFlush, Response};
use wire::{NameBuf, Rtype};

use super::{Running, lock};
use crate::run::caches::{Caches, Kept};

/// Which caches to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// Every one that has a file.
    All,
    /// Those that the configuration wants written now.
    Due,
    /// This one.
    Named(&'a str),
}

impl Running {
    /// Writes the caches that have files; with `Which::Due`, those whose turn it is.
    pub(crate) fn dump(&self, which: Which<'_>) -> Vec<api::Dumped> {
        let mut work = lock(&self.work);
        let due = work.kept.iter_mut().filter(|kept| match which {
            Which::All => true,
            Which::Due => kept.is_due(),
            Which::Named(name) => kept.name() == name,
        });
        due.map(Kept::write).collect()
    }

    pub(super) fn cache_stats(&self) -> BTreeMap<String, api::CacheStats> {
        let caches = lock(&self.view).caches.clone();
        let stats = caches.into_iter().map(|(name, cache)| {
            let stats = cache.stats();
            let stats = api::CacheStats {
                entries: stats.entries,
                octets: stats.octets as u64,
                octets_max: stats.octets_max as u64,
                inserts: stats.inserts,
                evictions: stats.evictions,
            };
            (name, stats)
        });
        stats.collect()
    }

    pub(super) fn cache_flush(&self, flush: &CacheFlush) -> Response {
        let mut caches = lock(&self.view).caches.clone();
        if let Some(wanted) = &flush.cache {
            caches.retain(|name, _| name == wanted);
            if caches.is_empty() {
                return Response::error(format!("there is no cache \"{wanted}\""));
            }
        }
        match forget(&caches, &flush.what) {
            Ok(removed) => Response::CacheFlush(api::Flushed { removed }),
            Err(why) => Response::error(why),
        }
    }
}

/// Forgets in every one of `caches`; an error says what cannot be understood.
fn forget(caches: &Caches, what: &api::Flush) -> Result<u64, String> {
    let name_of = |text: &str| text.parse::<NameBuf>().map_err(|error| format!("\"{text}\": {error}"));
    let flush = |flush: Flush<'_>| caches.values().map(|cache| cache.flush(flush) as u64).sum();
    Ok(match what {
        api::Flush::All => flush(Flush::All),
        api::Flush::Name(name) => flush(Flush::Name(name_of(name)?.as_name())),
        api::Flush::Suffix(name) => flush(Flush::Suffix(name_of(name)?.as_name())),
        api::Flush::Type { name, rtype } => {
            let rtype: Rtype = rtype.parse().map_err(|_| format!("\"{rtype}\" is not a record type"))?;
            flush(Flush::Type(name_of(name)?.as_name(), rtype))
        }
    })
}
