//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! A ring of words: entries are appended at the head, forgotten at the tail.
//!
//! A position is a lap and an offset: `lap << bits | offset`, with `capacity < 1 << bits`.
//! Positions only grow, also from one lap to the next. An entry never spans two laps; what is left
//! at the end of a lap is skipped.

use crate::sync::{AtomicU64, Ordering, fence};

/// The part of a ring that readers see.
pub(crate) struct Ring {
    /// Where the ring begins in the arena.
    start: usize,
    capacity: u64,
    offset_mask: u64,
    /// Entries below this position are forgotten, and may be overwritten.
    tail: AtomicU64,
}

impl Ring {
    /// Returns an empty ring and the writer's part of it.
    pub(crate) fn new(start: usize, capacity: usize) -> (Self, Ends) {
        let capacity = capacity as u64;
        let offset_mask = (capacity + 1).next_power_of_two() - 1;
        // The first lap is number one, so that no entry is at position zero.
        let first = offset_mask + 1;
        let ring = Self { start, capacity, offset_mask, tail: AtomicU64::new(first) };
        (ring, Ends { capacity, offset_mask, head: first, tail: first, lap_end: None })
    }

    /// Returns the words from `position` to the end of the ring.
    pub(crate) fn words<'a>(&self, arena: &'a [AtomicU64], position: u64) -> &'a [AtomicU64] {
        let end = self.start + self.capacity as usize;
        arena.get(self.start + (position & self.offset_mask) as usize..end).unwrap_or(&[])
    }

    /// Returns whether nothing that was read so far from the entry at `position` had been
    /// overwritten.
    pub(crate) fn is_intact(&self, position: u64) -> bool {
        // Pairs with the fence in `forget_below`: whoever read an overwriting word sees the tail
        // that allowed it.
        fence(Ordering::Acquire);
        let intact = position >= self.tail.load(Ordering::Relaxed);
        if !intact {
            // Pairs with the tail's release: a look at the slot after this sees where the entry
            // went.
            fence(Ordering::Acquire);
        }
        intact
    }

    /// Makes readers take everything below `tail` as gone. Words may be overwritten afterwards.
    pub(crate) fn forget_below(&self, tail: u64) {
        self.tail.store(tail, Ordering::Release);
        fence(Ordering::Release);
    }
}

/// The writer's part of a ring: where it begins and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    capacity: u64,
    offset_mask: u64,
    head: u64,
    tail: u64,
    /// Where the lap before the head's ended, while the tail is still in it.
    lap_end: Option<u64>,
}

impl Ends {
    /// Returns the position of the oldest entry; `None` when there is none.
    pub(crate) fn oldest(&self) -> Option<u64> {
        (self.tail != self.head).then_some(self.tail)
    }

    pub(crate) const fn tail(&self) -> u64 {
        self.tail
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns where `words` fit without forgetting anything.
    pub(crate) fn fit(&self, words: u64) -> Option<u64> {
        let offset = self.head & self.offset_mask;
        if self.lap_end.is_some() {
            return (offset + words <= self.tail & self.offset_mask).then_some(self.head);
        }
        if offset + words <= self.capacity {
            return Some(self.head);
        }
        let room = if self.head == self.tail { self.capacity } else { self.tail & self.offset_mask };
        (words <= room).then_some(self.next_lap(self.head))
    }

    /// Takes `words` at a position that [`Ends::fit`] returned.
    pub(crate) fn take(&mut self, position: u64, words: u64) {
        if position != self.head {
            if self.head == self.tail {
                self.tail = position;
            } else {
                self.lap_end = Some(self.head);
            }
        }
        self.head = position + words;
    }

    /// Forgets the oldest entry, `words` long.
    pub(crate) fn forget(&mut self, words: u64) {
        self.tail += words;
        if self.lap_end == Some(self.tail) {
            self.tail = self.next_lap(self.tail);
            self.lap_end = None;
        }
    }

    /// Forgets everything.
    pub(crate) fn forget_all(&mut self) {
        self.tail = self.head;
        self.lap_end = None;
    }

    /// Returns the words between tail and head.
    pub(crate) fn used(&self) -> u64 {
        match self.lap_end {
            Some(end) => end - self.tail + (self.head & self.offset_mask),
            None => self.head - self.tail,
        }
    }

    const fn next_lap(&self, position: u64) -> u64 {
        (position | self.offset_mask) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Appends entries of the given sizes, forgetting the oldest as needed, and checks that no two
    /// ever overlap.
    fn check(capacity: usize, sizes: impl IntoIterator<Item = u64>) {
        let (_, mut ends) = Ring::new(0, capacity);
        let mut held: VecDeque<(u64, u64)> = VecDeque::new();
        let mut last = 0;
        for size in sizes {
            let position = loop {
                if let Some(position) = ends.fit(size) {
                    break position;
                }
                let (oldest, words) = held.pop_front().expect("an empty ring has room");
                assert_eq!(ends.oldest(), Some(oldest));
                ends.forget(words);
            };
            ends.take(position, size);
            assert!(position > last, "positions grow");
            last = position;
            held.push_back((position, size));
            let mut ranges: Vec<_> = held
                .iter()
                .map(|&(position, words)| {
                    assert!(position >= ends.tail());
                    let offset = position & ends.offset_mask;
                    (offset, offset + words)
                })
                .collect();
            ranges.sort_unstable();
            assert!(ranges.iter().all(|&(_, end)| end <= capacity as u64));
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:?}");
            assert!(ends.used() >= held.iter().map(|&(_, words)| words).sum());
            assert!(ends.used() <= capacity as u64);
        }
        ends.forget_all();
        assert_eq!((ends.used(), ends.oldest()), (0, None));
    }

    #[test]
    fn entries_in_a_ring_never_overlap() {
        // Miri is slow, and there is nothing unsafe here.
        let many = if cfg!(miri) { 30 } else { 1000 };
        check(64, std::iter::repeat_n(7, 100));
        check(64, std::iter::repeat_n(8, 100));
        check(64, std::iter::repeat_n(64, 10));
        check(63, std::iter::repeat_n(21, 30));
        check(100, (0..many).map(|i| 1 + i * 37 % 50));
        check(127, (0..many).map(|i| 1 + i * 61 % 127));
        check(128, (0..many).map(|i| 1 + i * 61 % 128));
    }
}
