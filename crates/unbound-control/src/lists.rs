//! Lists that clients send behind a command: how many at once, and how much of them is kept.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Lists that are read at once. Other commands have the other places of
/// [`connections`](crate::connections): a list may take minutes.
pub(crate) const LISTS_MAX: usize = 12;
/// Octets of all lists that are read, as they are kept.
const KEPT_OCTETS_MAX: usize = 256 << 20;
/// What a line takes besides its octets: a `String`, and what the allocator adds.
const LINE_OCTETS: usize = 64;

/// The lists that are read now.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    count: AtomicUsize,
    octets: AtomicUsize,
}

/// A list that is read. What it takes is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct List<'a> {
    lists: &'a Lists,
    octets: usize,
}

impl Lists {
    /// Begins a list; none if there are as many as there may be.
    pub(crate) fn begin(&self) -> Option<List<'_>> {
        let more = |count| (count < LISTS_MAX).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(List { lists: self, octets: 0 })
    }
}

impl List<'_> {
    /// Takes a line of so many octets; returns whether there is room for it.
    pub(crate) fn take(&mut self, octets: usize) -> bool {
        let octets = octets + LINE_OCTETS;
        self.octets += octets;
        self.lists.octets.fetch_add(octets, Ordering::Relaxed) + octets <= KEPT_OCTETS_MAX
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        self.lists.octets.fetch_sub(self.octets, Ordering::Relaxed);
        self.lists.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_all_clients_have_one_bound_and_give_back_what_they_took() {
        let lists = Lists::default();
        let mut all: Vec<List<'_>> = (0..LISTS_MAX).filter_map(|_| lists.begin()).collect();
        assert_eq!(all.len(), LISTS_MAX);
        assert!(lists.begin().is_none());
        let share = KEPT_OCTETS_MAX / LISTS_MAX - LINE_OCTETS;
        assert!(all.iter_mut().all(|list| list.take(share)));
        assert!(!all[0].take(share));
        // An empty line is not free.
        assert!((0..=share / LINE_OCTETS).any(|_| !all[1].take(0)));
        all.clear();
        let mut list = lists.begin().expect("all have ended");
        assert!(list.take(share));
    }
}
