//! Lists that clients send behind a command: how many at once, and how much of them is kept.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Lists that are read at once. Other commands have the other places of
/// [`connections`](crate::connections): a list may take minutes.
pub(crate) const LISTS_MAX: usize = 12;
/// Octets of all lists that are read, as they are kept.
const KEPT_OCTETS_MAX: usize = 256 << 20;
/// Octets of each list that no other list can take.
const SHARE_OCTETS: usize = 1 << 20;
/// Octets that lists have beyond their share, all together.
const COMMON_OCTETS: usize = KEPT_OCTETS_MAX - LISTS_MAX * SHARE_OCTETS;
/// What a line takes besides its octets, at most: 16 octets of where it is, in a vector that is
/// copied when it doubles.
const LINE_OCTETS: usize = 64;

/// Why there is no room for more of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// It alone is longer than all lists together may be.
    TooLong,
    /// Other lists have what is left.
    Taken,
}

impl NoRoom {
    /// What the client hears.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::TooLong => "the list is too long",
            Self::Taken => "other lists have the memory for lists: try again when they are done",
        }
    }
}

/// The lists that are read now.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    count: AtomicUsize,
    /// Octets beyond the share of each.
    common: AtomicUsize,
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
    /// Takes a line of so many octets.
    ///
    /// # Errors
    ///
    /// There is no room for it; it is not taken.
    pub(crate) fn take(&mut self, octets: usize) -> Result<(), NoRoom> {
        let octets = self.octets + octets + LINE_OCTETS;
        let common = |octets: usize| octets.saturating_sub(SHARE_OCTETS);
        if common(octets) > COMMON_OCTETS {
            return Err(NoRoom::TooLong);
        }
        let added = common(octets) - common(self.octets);
        let more = |taken: usize| (taken + added <= COMMON_OCTETS).then_some(taken + added);
        let taken = self.lists.common.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map_err(|_| NoRoom::Taken)?;
        self.octets = octets;
        Ok(())
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        self.lists.common.fetch_sub(self.octets.saturating_sub(SHARE_OCTETS), Ordering::Relaxed);
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
        let part = KEPT_OCTETS_MAX / LISTS_MAX - LINE_OCTETS;
        assert!(all.iter_mut().all(|list| list.take(part) == Ok(())));
        assert_eq!(all[0].take(part), Err(NoRoom::Taken));
        // An empty line is not free.
        assert!((0..=part / LINE_OCTETS).any(|_| all[1].take(0).is_err()));
        all.clear();
        let mut list = lists.begin().expect("all have ended");
        assert_eq!(list.take(COMMON_OCTETS), Ok(()));
        assert_eq!(list.take(SHARE_OCTETS), Err(NoRoom::TooLong));
    }

    #[test]
    fn a_list_has_its_share_whatever_others_have_taken() {
        let lists = Lists::default();
        let mut long = lists.begin().expect("the first");
        assert_eq!(long.take(SHARE_OCTETS - LINE_OCTETS), Ok(()));
        while long.take(60_000).is_ok() {}
        while long.take(0).is_ok() {}
        let mut short = lists.begin().expect("the second");
        assert_eq!(short.take(SHARE_OCTETS - LINE_OCTETS), Ok(()));
        assert_eq!(short.take(0), Err(NoRoom::Taken));
        assert_eq!(long.take(0), Err(NoRoom::TooLong));
        drop(long);
        assert_eq!(short.take(60_000), Ok(()));
    }
}
