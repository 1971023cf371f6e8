//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Looking ahead: a batch's waits for memory overlap when all its look-ups are announced before the
//! first is made.

use std::sync::Arc;

use sets::{Lookahead, NameSet};
use wire::{Folded, Header, Name, Query};
use zone::Zones;

use crate::Engine;
use crate::ops::cache::{Asked, CacheStep};
use crate::program::{LOOKAHEAD_SETS_MAX, Op};
use crate::query::names::Sought;

/// Queries that are looked at ahead; a batch of more is announced in parts.
pub const LOOKAHEAD_MAX: usize = 64;
/// Names whose rules are asked for together: about as many lines as a processor waits for at once.
const NAMES_TOGETHER: usize = 16;
/// Octets in use from which on a cache does not fit the processor's, so that looking ahead pays for
/// itself.
const LARGE_OCTETS_MIN: usize = 8 << 20;

impl Engine {
    /// Announces queries that are about to be answered; at most [`LOOKAHEAD_MAX`] of them count.
    ///
    /// Changes nothing but the time that answering takes, and does nothing while zones, the cache
    /// and all sets are small.
    pub fn prefetch_lines<'q>(&self, queries: impl Iterator<Item = &'q [u8]>) {
        if let Some(zones) = self.large_zones() {
            let names = queries.filter_map(|query| Name::parse(query.get(Header::LEN..)?).ok());
            return zones.prefetch_lines(names.map(|(name, _)| name));
        }
        match (self.large_cache(), self.snapshot.program.large_sets()) {
            (None, []) => {}
            (cache, []) => self.prefetch_with::<0>(cache, &[], queries),
            (cache, sets @ [_]) => self.prefetch_with::<1>(cache, sets, queries),
            (cache, sets) => self.prefetch_with::<LOOKAHEAD_SETS_MAX>(cache, sets, queries),
        }
    }

    /// Announces queries to the cache and to as many sets.
    fn prefetch_with<'q, const SETS: usize>(
        &self,
        cache: Option<&CacheStep>,
        sets: &[Arc<NameSet>],
        queries: impl Iterator<Item = &'q [u8]>,
    ) {
        let mut hashes = [0; LOOKAHEAD_MAX];
        let mut ahead = [const { Lookahead::new() }; SETS];
        let mut folded = Folded::root();
        let (mut count, mut noted) = (0, 0);
        for query in queries.take(LOOKAHEAD_MAX) {
            let Ok(query) = Query::parse(query) else { continue };
            let name_hash = self.snapshot.key.fold(query.question.qname, &mut folded);
            if let (Some(cache), Some(hash)) = (cache, hashes.get_mut(count)) {
                let bits = Asked::own_bits(&query);
                let asked = Asked { query: &query, folded: &folded, name_hash, subnet: None, bits };
                *hash = cache.hash(&asked);
                cache.cache.prefetch_bucket(*hash);
                count += 1;
            }
            if SETS > 0 {
                let sought = Sought::new(&folded, name_hash);
                for (set, ahead) in sets.iter().zip(&mut ahead) {
                    set.prefetch_filter(&sought, ahead);
                }
                noted += 1;
                if noted % NAMES_TOGETHER == 0 {
                    ask_for_rules(sets, &mut ahead);
                }
            }
        }
        ask_for_rules(sets, &mut ahead);
        if let Some(cache) = cache {
            for &hash in hashes.iter().take(count) {
                cache.cache.prefetch_entry(hash);
            }
        }
    }

    /// Returns the zones that are asked before anything else, if they are large.
    fn large_zones(&self) -> Option<&Zones> {
        // Only a note for the recorder may come before them.
        let mut first = self.snapshot.program.ops().iter().take(2);
        let zones = &*self.state.authority.as_ref()?.zones;
        (first.any(|op| matches!(op, Op::Zone(_))) && zones.are_large()).then_some(zones)
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
            .filter(|(_, cache)| cache.cache.octets_used() >= LARGE_OCTETS_MIN)
            .map(|(step, _)| step);
    }
}

/// Asks for what was noted of each set, and begins anew.
fn ask_for_rules(sets: &[Arc<NameSet>], ahead: &mut [Lookahead]) {
    for (set, ahead) in sets.iter().zip(ahead) {
        set.prefetch_rules(ahead);
        ahead.clear();
    }
}
