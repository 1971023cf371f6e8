//! How a number of octets is divided.

use super::ghost::WORDS_PER_GHOST;
use super::slots::{BUCKET_OCTETS, BUCKET_SLOTS, Index};

/// Shards of a large cache, so that two writers rarely want the same one.
const SHARDS_MAX: usize = 64;
/// Octets of the smallest shard, so that the largest message fits each one's main ring.
const SHARD_OCTETS_MIN: usize = 256 * 1024;
/// Words of arena for each slot: entries take eleven and more.
const WORDS_PER_SLOT: usize = 8;
/// Words of arena for each bucket.
const WORDS_PER_BUCKET: usize = WORDS_PER_SLOT * BUCKET_SLOTS;
/// Words of a shard below which it holds nothing.
const SHARD_WORDS_MIN: usize = 96;

/// The sizes of a cache's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// A power of two.
    pub(crate) shards: usize,
    pub(crate) buckets_per_shard: usize,
    pub(crate) ghosts_per_shard: usize,
    pub(crate) small_words: usize,
    pub(crate) main_words: usize,
    /// Octets that are taken however full the cache is.
    pub(crate) octets_fixed: usize,
}

impl Plan {
    /// Divides `octets_max`; `octets_base` goes for the cache itself, `octets_per_shard` for each
    /// shard's bookkeeping.
    pub(crate) fn new(octets_max: usize, octets_base: usize, octets_per_shard: usize) -> Self {
        let shards = (octets_max / SHARD_OCTETS_MIN).clamp(1, SHARDS_MAX);
        let shards = 1 << shards.ilog2();
        let octets_base = octets_base + Index::octets(0);
        let budget = (octets_max.saturating_sub(octets_base) / shards).saturating_sub(octets_per_shard);
        // A bucket, its words of arena and their ghosts, over and over.
        let unit = BUCKET_OCTETS + 8 * WORDS_PER_BUCKET + 2 * (WORDS_PER_BUCKET / WORDS_PER_GHOST);
        let mut words = budget / unit * WORDS_PER_BUCKET
            + (budget % unit).saturating_sub(unit - 8 * WORDS_PER_BUCKET) / 8;
        if words < SHARD_WORDS_MIN {
            words = 0;
        }
        let small_words = words / 10;
        let plan = Self {
            shards,
            buckets_per_shard: words.div_ceil(WORDS_PER_BUCKET),
            ghosts_per_shard: words / WORDS_PER_GHOST,
            small_words,
            main_words: words - small_words,
            octets_fixed: 0,
        };
        let octets_fixed = octets_base
            + shards
                * (octets_per_shard + plan.buckets_per_shard * BUCKET_OCTETS + plan.ghosts_per_shard * 2);
        Self { octets_fixed, ..plan }
    }

    /// Returns a plan with one shard of so many words and one bucket, for loom.
    #[cfg(loom)]
    pub(crate) const fn tiny(words: usize) -> Self {
        let small_words = words / 10;
        let main_words = words - small_words;
        Self {
            shards: 1,
            buckets_per_shard: 1,
            ghosts_per_shard: 4,
            small_words,
            main_words,
            octets_fixed: 0,
        }
    }

    /// Words of arena for one shard.
    pub(crate) const fn words_per_shard(&self) -> usize {
        self.small_words + self.main_words
    }

    /// Octets taken when every ring is full.
    #[cfg(test)]
    pub(crate) const fn octets(&self) -> usize {
        self.octets_fixed + self.shards * self.words_per_shard() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_to_its_octets_and_wastes_few() {
        for octets_max in (0..200_000)
            .step_by(if cfg!(miri) { 7001 } else { 7 })
            .chain((200_000..1 << 32).step_by(99_999_989))
        {
            let plan = Plan::new(octets_max, 1000, 300);
            assert!(plan.octets() <= octets_max.max(1300 + BUCKET_OCTETS), "{octets_max}: {plan:?}");
            assert!(plan.shards.is_power_of_two());
            if octets_max >= 256 * 1024 {
                assert!(plan.octets() > octets_max / 100 * 98, "{octets_max}: {plan:?}");
                assert!(plan.main_words > 2 * 9000);
            }
        }
        assert_eq!(Plan::new(64 << 20, 1000, 300).shards, 64);
    }
}
