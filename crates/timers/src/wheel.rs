//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Many deadlines on one clock: a hashed timer wheel (Varghese and Lauck).
//!
//! Setting and cancelling cost a few list links. One tick is a millisecond and the wheel has
//! 2,048 of them; a deadline further away stays in its slot for another turn. Memory grows to the
//! most deadlines that were ever set at once and is used again after that.

use crate::time::{Moment, Span};

/// Ticks in one turn of the wheel.
const SLOTS: usize = 2048;
const WORDS: usize = SLOTS / 64;
/// The list of deadlines that have come but were not handed out yet.
const DUE: u32 = SLOTS as u32;
const NIL: u32 = u32::MAX;

/// Names a deadline that was set, until it was handed out or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerKey(u32);

impl TimerKey {
    /// Names no deadline; cancelling it does nothing.
    pub const NONE: Self = Self(NIL);
}

struct Node<T> {
    at_ms: u64,
    previous: u32,
    next: u32,
    /// Which list it is in; `NIL` when free.
    list: u32,
    what: T,
}

/// Deadlines in milliseconds, each with a `T` that says what for.
pub struct Wheel<T> {
    nodes: Vec<Node<T>>,
    free: u32,
    heads: Box<[u32; SLOTS + 1]>,
    filled: [u64; WORDS],
    /// Everything before this tick was handed out or is in the due list.
    cursor_ms: u64,
    len: usize,
}

impl<T: Copy> Wheel<T> {
    /// Returns a wheel without deadlines that stands at `now`.
    pub fn new(now: Moment) -> Self {
        Self {
            nodes: Vec::default(),
            free: NIL,
            heads: Box::new([NIL; SLOTS + 1]),
            filled: [0; WORDS],
            cursor_ms: now.0 / 1000,
            len: 0,
        }
    }

    /// Returns how many deadlines are set.
    #[cfg(test)]
    const fn len(&self) -> usize {
        self.len
    }

    /// Sets a deadline. It is handed out at the first whole millisecond not before `at`.
    pub fn set(&mut self, at: Moment, what: T) -> TimerKey {
        let at_ms = at.0.div_ceil(1000);
        let list = if at_ms < self.cursor_ms { DUE } else { slot_of(at_ms) };
        let node = Node { at_ms, previous: NIL, next: NIL, list: NIL, what };
        let index = match self.nodes.get_mut(self.free as usize) {
            Some(free) => {
                let index = self.free;
                self.free = free.next;
                *free = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.link(index, list);
        self.len += 1;
        TimerKey(index)
    }

    /// Takes back a deadline that was set and not handed out since.
    pub fn cancel(&mut self, key: TimerKey) {
        if self.nodes.get(key.0 as usize).is_some_and(|node| node.list != NIL) {
            self.unlink(key.0);
            self.release(key.0);
        }
    }

    /// Returns what one deadline that has come by `now` was for; `None` when there are no more.
    pub fn pop(&mut self, now: Moment) -> Option<T> {
        if self.head(DUE) == NIL {
            self.advance(now.0 / 1000);
        }
        let index = self.head(DUE);
        let what = self.nodes.get(index as usize)?.what;
        self.unlink(index);
        self.release(index);
        Some(what)
    }

    /// Returns when to call [`Wheel::pop`] next; `None` if no deadline is set.
    ///
    /// May be early by whole turns of the wheel, never late.
    pub fn next(&self) -> Option<Moment> {
        if self.head(DUE) != NIL {
            return Some(Moment(self.cursor_ms.saturating_sub(1) * 1000));
        }
        let ahead = self.next_filled(self.cursor_ms)?;
        Some(Moment(0) + Span::from_ms(self.cursor_ms + ahead))
    }

    /// Moves the deadlines of all ticks up to and including `now_ms` to the due list.
    fn advance(&mut self, now_ms: u64) {
        // Ends: each round either empties the distance to `now_ms` or passes one filled slot of at
        // most one turn.
        let last = now_ms.min(self.cursor_ms.saturating_add(SLOTS as u64 - 1));
        while self.cursor_ms <= last {
            let Some(ahead) = self.next_filled(self.cursor_ms) else { break };
            if self.cursor_ms + ahead > last {
                break;
            }
            self.cursor_ms += ahead;
            let mut index = self.head(slot_of(self.cursor_ms));
            while let Some(node) = self.nodes.get(index as usize) {
                let next = node.next;
                if node.at_ms <= now_ms {
                    self.unlink(index);
                    self.link(index, DUE);
                }
                index = next;
            }
            self.cursor_ms += 1;
        }
        self.cursor_ms = self.cursor_ms.max(now_ms + 1);
    }

    /// Returns how many ticks after `from_ms` the next slot with deadlines comes, at most one turn.
    fn next_filled(&self, from_ms: u64) -> Option<u64> {
        let start = slot_of(from_ms) as usize;
        for step in 0..=WORDS {
            let word_at = (start / 64 + step) % WORDS;
            let mut word = self.filled.get(word_at).copied().unwrap_or(0);
            if step == 0 {
                word &= u64::MAX << (start % 64);
            }
            if step == WORDS {
                word &= !(u64::MAX << (start % 64));
            }
            if word != 0 {
                let slot = word_at * 64 + word.trailing_zeros() as usize;
                return Some(((slot + SLOTS - start) % SLOTS) as u64);
            }
        }
        None
    }

    fn head(&self, list: u32) -> u32 {
        self.heads.get(list as usize).copied().unwrap_or(NIL)
    }

    fn link(&mut self, index: u32, list: u32) {
        let head = self.head(list);
        if let Some(node) = self.nodes.get_mut(index as usize) {
            (node.previous, node.next, node.list) = (NIL, head, list);
        }
        if let Some(old) = self.nodes.get_mut(head as usize) {
            old.previous = index;
        }
        self.set_head(list, index);
    }

    fn unlink(&mut self, index: u32) {
        let Some(node) = self.nodes.get(index as usize) else { return };
        let (previous, next, list) = (node.previous, node.next, node.list);
        match self.nodes.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.set_head(list, next),
        }
        if let Some(after) = self.nodes.get_mut(next as usize) {
            after.previous = previous;
        }
    }

    fn set_head(&mut self, list: u32, index: u32) {
        if let Some(head) = self.heads.get_mut(list as usize) {
            *head = index;
        }
        if let Some(word) = self.filled.get_mut(list as usize / 64) {
            let bit = 1 << (list % 64);
            *word = if index == NIL { *word & !bit } else { *word | bit };
        }
    }

    fn release(&mut self, index: u32) {
        let free = self.free;
        if let Some(node) = self.nodes.get_mut(index as usize) {
            node.list = NIL;
            node.next = free;
            self.free = index;
            self.len -= 1;
        }
    }
}

const fn slot_of(at_ms: u64) -> u32 {
    (at_ms % SLOTS as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(wheel: &mut Wheel<u32>, now_ms: u64) -> Vec<u32> {
        let mut out: Vec<u32> = std::iter::from_fn(|| wheel.pop(Moment(now_ms * 1000))).collect();
        out.sort_unstable();
        out
    }

    #[test]
    fn deadlines_come_when_due_and_not_before() {
        let mut wheel = Wheel::new(Moment(0));
        wheel.set(Moment(5000), 1);
        wheel.set(Moment(5001), 2);
        wheel.set(Moment(9_000_000), 3);
        assert_eq!(drain(&mut wheel, 4), []);
        assert_eq!(drain(&mut wheel, 5), [1]);
        assert_eq!(drain(&mut wheel, 6), [2]);
        assert_eq!(drain(&mut wheel, 8999), []);
        assert_eq!(drain(&mut wheel, 9000), [3]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_cancelled_deadline_never_comes() {
        let mut wheel = Wheel::new(Moment(0));
        let key = wheel.set(Moment(5000), 1);
        wheel.set(Moment(5000), 2);
        wheel.cancel(key);
        wheel.cancel(TimerKey::NONE);
        assert_eq!(drain(&mut wheel, 100), [2]);
        assert_eq!(wheel.len(), 0);
    }

    #[test]
    fn a_deadline_in_the_past_is_due_at_once() {
        let mut wheel = Wheel::new(Moment(1_000_000));
        wheel.set(Moment(0), 7);
        assert!(wheel.next().is_some_and(|next| next < Moment(1_000_000)));
        assert_eq!(drain(&mut wheel, 1000), [7]);
    }

    proptest! {
        /// The wheel hands out exactly what a sorted list would, however sets, cancels and time
        /// mix.
        #[test]
        fn the_wheel_equals_a_sorted_list(steps in prop::collection::vec((0u8..4, 0u64..9000), 1..300)) {
            let mut wheel = Wheel::new(Moment(0));
            let mut model: Vec<(u64, u32, TimerKey)> = Vec::new();
            let mut now = 0;
            let mut count = 0;
            for (what, value) in steps {
                match what {
                    0 | 1 => {
                        let at = (now + value).saturating_sub(20);
                        model.push((at, count, wheel.set(Moment(at * 1000), count)));
                        count += 1;
                    }
                    2 if !model.is_empty() => {
                        let (_, _, key) = model.swap_remove(value as usize % model.len());
                        wheel.cancel(key);
                    }
                    _ => {
                        now += value % 5000;
                        let earliest = model.iter().map(|entry| entry.0).min();
                        prop_assert_eq!(wheel.next().is_some(), earliest.is_some());
                        if let (Some(next), Some(earliest)) = (wheel.next(), earliest) {
                            prop_assert!(next.0 / 1000 <= earliest.max(now), "{} {}", next.0, earliest);
                        }
                        let mut expect: Vec<u32> =
                            model.iter().filter(|entry| entry.0 <= now).map(|entry| entry.1).collect();
                        expect.sort_unstable();
                        model.retain(|entry| entry.0 > now);
                        prop_assert_eq!(drain(&mut wheel, now), expect);
                    }
                }
                prop_assert_eq!(wheel.len(), model.len());
            }
        }
    }
}
