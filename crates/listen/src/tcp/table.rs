//! One worker's open connections, and which of them has been quiet for longest.

use slab::Slab;

/// Open connections; the quiet ones are chained from the longest quiet to the latest.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Slab<Entry<T>>,
    longest: Option<usize>,
    latest: Option<usize>,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    is_quiet: bool,
    before: Option<usize>,
    after: Option<usize>,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Slab::new(), longest: None, latest: None }
    }

    /// Adds a connection that has not said anything yet; returns its key.
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let key = self.entries.insert(Entry { value, is_quiet: false, before: None, after: None });
        self.quiet(key);
        key
    }

    /// Takes a connection out; `None` if it is no longer there.
    pub(crate) fn remove(&mut self, key: usize) -> Option<T> {
        self.busy(key);
        self.entries.try_remove(key).map(|entry| entry.value)
    }

    /// Notes that a connection was active just now and is quiet from here on.
    pub(crate) fn quiet(&mut self, key: usize) {
        self.busy(key);
        let latest = self.latest;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.is_quiet = true;
        entry.before = latest;
        match latest.and_then(|latest| self.entries.get_mut(latest)) {
            Some(latest) => latest.after = Some(key),
            None => self.longest = Some(key),
        }
        self.latest = Some(key);
    }

    /// Notes that a connection has something to do.
    pub(crate) fn busy(&mut self, key: usize) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !entry.is_quiet {
            return;
        }
        entry.is_quiet = false;
        let (before, after) = (entry.before.take(), entry.after.take());
        match before.and_then(|before| self.entries.get_mut(before)) {
            Some(entry) => entry.after = after,
            None => self.longest = after,
        }
        match after.and_then(|after| self.entries.get_mut(after)) {
            Some(entry) => entry.before = before,
            None => self.latest = before,
        }
    }

    /// Returns the connection that has been quiet for longest; `None` when all have something to
    /// do.
    pub(crate) fn longest_quiet(&self) -> Option<(usize, &T)> {
        let key = self.longest?;
        Some((key, &self.entries.get(key)?.value))
    }

    /// Returns all connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| &entry.value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_quiet_comes_first() {
        let mut table = Table::new();
        let (a, b, c) = (table.insert('a'), table.insert('b'), table.insert('c'));
        table.quiet(a);
        assert_eq!(table.longest_quiet(), Some((b, &'b')));
        table.busy(b);
        assert_eq!(table.longest_quiet(), Some((c, &'c')));
        assert_eq!(table.remove(c), Some('c'));
        assert_eq!(table.remove(c), None);
        assert_eq!(table.longest_quiet(), Some((a, &'a')));
        table.busy(a);
        assert_eq!(table.longest_quiet(), None);
        assert_eq!(table.iter().count(), 2);
    }

    proptest! {
        #[test]
        fn the_chain_agrees_with_a_plain_list(steps in prop::collection::vec((0..4u8, 0..8usize), 0..200)) {
            let (mut table, mut keys, mut list) = (Table::new(), Vec::new(), Vec::new());
            for (step, which) in steps {
                if step == 0 || keys.is_empty() {
                    let key = table.insert(());
                    keys.push(key);
                    list.push(key);
                    continue;
                }
                let at = which % keys.len();
                let key = keys[at];
                list.retain(|&other| other != key);
                match step {
                    1 => {
                        table.quiet(key);
                        list.push(key);
                    }
                    2 => table.busy(key),
                    _ => {
                        table.remove(key);
                        keys.swap_remove(at);
                    }
                }
                prop_assert_eq!(table.longest_quiet().map(|(key, ())| key), list.first().copied());
            }
            for key in list {
                prop_assert_eq!(table.longest_quiet().map(|(key, ())| key), Some(key));
                table.busy(key);
            }
        }
    }
}
