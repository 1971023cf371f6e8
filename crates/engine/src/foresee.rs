//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Looking ahead: a batch's waits for memory overlap when all its look-ups are announced before the first is made.

use wire::Query;

use crate::Engine;
use crate::ops::cache::{Asked, CacheStep};
use crate::program::Op;

/// Queries that are looked at ahead; a batch of more is announced in parts.
pub const FORESEEN_MAX: usize = 64;
/// Octets in use from which on a cache does not fit the processor's, so that looking ahead pays for itself.
const LARGE_OCTETS_MIN: usize = 8 << 20;

impl Engine {
    /// Announces queries that are about to be answered; at most [`FORESEEN_MAX`] of them count.
    ///
    /// Changes nothing but the time that answering takes, and does nothing while the cache is small.
    pub fn foresee<'q>(&self, queries: impl Iterator<Item = &'q [u8]>) {
        let Some(cache) = self.large_cache() else { return };
        let mut hashes = [0; FORESEEN_MAX];
        let mut count = 0;
        let mut folded = wire::Folded::root();
        for query in queries.take(FORESEEN_MAX) {
            let Ok(query) = Query::parse(query) else { continue };
            let Some(slot) = hashes.get_mut(count) else { break };
            let name_hash = self.snapshot.key.fold(query.question.qname, &mut folded);
            let bits = Asked::own_bits(&query);
            *slot = cache.hash(&Asked { query: &query, folded: &folded, name_hash, subnet: None, bits });
            cache.cache.foresee_bucket(*slot);
            count += 1;
        }
        for &hash in hashes.iter().take(count) {
            cache.cache.foresee_entry(hash);
        }
    }

    /// Returns the first cache step if its cache is large.
    fn large_cache(&self) -> Option<&CacheStep> {
        let step = self.large_cache_step?;
        match self.snapshot.program.ops().get(step) {
            Some(Op::Cache(cache)) => Some(cache),
            _ => None,
        }
    }

    /// Looks anew, once a second, whether the program's first cache is large.
    #[cold]
    pub(crate) fn measure_cache(&mut self) {
        let ops = self.snapshot.program.ops().iter().enumerate();
        self.large_cache_step = ops
            .filter_map(|(step, op)| match op {
                Op::Cache(cache) => Some((step, cache)),
                _ => None,
            })
            .next()
            .filter(|(_, cache)| cache.cache.stats().octets >= LARGE_OCTETS_MIN)
            .map(|(step, _)| step);
    }
}
