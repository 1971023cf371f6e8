//! A timer wheel: what has to wait, in slots of a quarter of a millisecond.

use std::time::{Duration, Instant};

/// How long a slot lasts.
const SLOT: Duration = Duration::from_micros(250);
/// Slots: as far ahead as anything may be put.
const SLOTS: usize = 4096;
/// Slots of a word of the map.
const WORD: usize = u64::BITS as usize;

/// What waits, by the slot in which its time comes.
pub(super) struct Wheel<T> {
    begun: Instant,
    slots: Vec<Vec<T>>,
    /// Which slots hold something.
    map: [u64; SLOTS / WORD],
    /// The slot that is taken next; slots are numbered without end.
    next: u64,
    len: usize,
}

impl<T> Wheel<T> {
    /// Begins an empty wheel.
    pub(super) fn new(now: Instant) -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Self { begun: now, slots, map: [0; SLOTS / WORD], next: 0, len: 0 }
    }

    /// Returns how many things wait.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    fn slot_at(&self, when: Instant) -> u64 {
        (when.saturating_duration_since(self.begun).as_nanos() / SLOT.as_nanos()) as u64
    }

    /// Puts something in; what is too far ahead comes as late as is possible.
    pub(super) fn push(&mut self, due: Instant, what: T) {
        let slot = (self.slot_at(due) + 1).clamp(self.next, self.next + SLOTS as u64 - 1);
        let at = slot as usize % SLOTS;
        self.slots[at].push(what);
        self.map[at / WORD] |= 1 << (at % WORD);
        self.len += 1;
    }

    /// Returns how long it is until something is due; `None` if nothing waits.
    pub(super) fn until_next(&self, now: Instant) -> Option<Duration> {
        if self.len == 0 {
            return None;
        }
        let first = self.next as usize % SLOTS;
        // The word of the first slot comes once more at the end, for those before it.
        let ahead = (0..=self.map.len()).find_map(|turn| {
            let word = (first / WORD + turn) % self.map.len();
            let mask = match turn {
                0 => u64::MAX << (first % WORD),
                _ => u64::MAX,
            };
            let bits = self.map[word] & mask;
            (bits != 0).then(|| (word * WORD + bits.trailing_zeros() as usize + SLOTS - first) % SLOTS)
        })?;
        let due = self.begun + SLOT * (self.next + ahead as u64) as u32;
        Some(due.saturating_duration_since(now))
    }

    /// Takes out what is due.
    pub(super) fn take_due(&mut self, now: Instant, due: &mut Vec<T>) {
        let last = self.slot_at(now);
        if self.len == 0 {
            self.next = self.next.max(last);
            return;
        }
        // Ends: each slot is looked at once.
        for slot in self.next..=last.min(self.next + SLOTS as u64 - 1) {
            let at = slot as usize % SLOTS;
            if self.map[at / WORD] & 1 << (at % WORD) != 0 {
                self.map[at / WORD] &= !(1 << (at % WORD));
                self.len -= self.slots[at].len();
                due.append(&mut self.slots[at]);
            }
        }
        self.next = self.next.max(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn taken(wheel: &mut Wheel<u32>, now: Instant) -> Vec<u32> {
        let mut due = Vec::new();
        wheel.take_due(now, &mut due);
        due
    }

    #[test]
    fn things_come_in_order_and_not_too_early() {
        let begun = Instant::now();
        let mut wheel = Wheel::new(begun);
        for (ms, what) in [(300, 3), (5, 1), (20, 2), (5, 1), (2_000, 4)] {
            wheel.push(begun + ms * MS, what);
        }
        assert_eq!(wheel.len(), 5);
        assert_eq!(taken(&mut wheel, begun + 4 * MS), []);
        assert!(wheel.until_next(begun + 4 * MS).is_some_and(|wait| wait >= MS && wait <= 2 * MS));
        assert_eq!(taken(&mut wheel, begun + 6 * MS), [1, 1]);
        assert_eq!(taken(&mut wheel, begun + 21 * MS), [2]);
        assert_eq!(taken(&mut wheel, begun + 299 * MS), []);
        assert_eq!(taken(&mut wheel, begun + 301 * MS), [3]);
        // What is too far ahead comes after a turn of the wheel.
        assert_eq!(taken(&mut wheel, begun + 1_000 * MS), []);
        assert_eq!(taken(&mut wheel, begun + 1_100 * MS), [4]);
        assert_eq!((wheel.len(), wheel.until_next(begun)), (0, None));
    }

    #[test]
    fn a_wheel_that_stood_still_goes_on() {
        let begun = Instant::now();
        let mut wheel = Wheel::new(begun);
        let mut now = begun;
        for turn in 0..1_000 {
            now += 700 * MS;
            assert_eq!(taken(&mut wheel, now), []);
            wheel.push(now + 300 * MS, turn);
            assert!(wheel.until_next(now).is_some_and(|wait| wait <= 301 * MS));
            now += 301 * MS;
            assert_eq!(taken(&mut wheel, now), [turn]);
        }
    }
}
