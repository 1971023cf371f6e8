//! The caches of a server, by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::HashKey;

use crate::{Cache, Limits};

/// The caches that the programs of a server use. Whoever runs the server keeps them over
/// reloads.
#[derive(Clone)]
pub struct Caches {
    key: HashKey,
    by_name: BTreeMap<String, Arc<Cache>>,
}

impl Caches {
    /// Returns no caches yet. Names are hashed with `key`, as in every snapshot that uses them.
    pub const fn new(key: HashKey) -> Self {
        Self { key, by_name: BTreeMap::new() }
    }

    /// Returns caches of these names: those that are here already stay as they are, the others
    /// get as many octets as stand beside their names.
    #[must_use]
    pub fn adopt<'n>(&self, wanted: impl IntoIterator<Item = (&'n str, usize)>) -> Self {
        let made = |octets_max| Arc::new(Cache::new(Limits { octets_max }, self.key));
        let wanted = wanted.into_iter().map(|(name, octets_max)| {
            let known = self.by_name.get(name).map(Arc::clone);
            (name.to_owned(), known.unwrap_or_else(|| made(octets_max)))
        });
        Self { key: self.key, by_name: wanted.collect() }
    }

    /// Returns the cache of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Cache>> {
        self.by_name.get(name)
    }

    /// Returns the cache of this name alone.
    pub fn only(&self, name: &str) -> Option<Self> {
        let (name, cache) = self.by_name.get_key_value(name)?;
        let by_name = BTreeMap::from([(name.clone(), Arc::clone(cache))]);
        Some(Self { key: self.key, by_name })
    }

    /// Returns all caches with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Cache>)> {
        self.by_name.iter().map(|(name, cache)| (name.as_str(), cache))
    }

    /// Returns what a cache is called.
    pub fn name_of(&self, cache: &Arc<Cache>) -> Option<&str> {
        self.iter().find(|(_, known)| Arc::ptr_eq(known, cache)).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_is_there_stays_whatever_size_is_wanted_now() {
        let first = Caches::new(HashKey::new([1, 2])).adopt([("main", 1 << 20)]);
        let second = first.adopt([("main", 1 << 21), ("other", 1 << 20)]);
        let main = first.get("main").expect("it was made");
        assert!(second.get("main").is_some_and(|kept| Arc::ptr_eq(kept, main)));
        assert_eq!(second.name_of(main), Some("main"));
        let third = second.adopt([("other", 1 << 20)]);
        assert!(third.get("main").is_none());
        assert_eq!(third.name_of(main), None);
        assert_eq!(third.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["other"]);
    }
}
