//! The most frequent of many things, counted in bounded memory: Space-Saving (Metwally, Agrawal and
//! El Abbadi, 2005).
//!
//! What is not among the counters takes the place of the rarest, with its count: so a count is
//! never too small, and too large by what stands beside it at most. Whatever makes up more than one
//! of [`Sketch::max`] is among them.

use std::collections::HashMap;
use std::hash::Hash;

/// One thing that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter<K> {
    pub(super) key: K,
    /// At most so often.
    pub(super) count: u64,
    /// By so much the count may be too large.
    pub(super) error: u64,
}

/// Counters.
pub(super) struct Sketch<K> {
    max: usize,
    /// A heap: none is smaller than the one at half its place.
    heap: Vec<Counter<K>>,
    places: HashMap<K, usize>,
}

impl<K: Copy + Eq + Hash> Sketch<K> {
    /// Returns one of at most `max` counters.
    pub(super) fn new(max: usize) -> Self {
        Self { max: max.max(1), heap: Vec::new(), places: HashMap::new() }
    }

    /// Counts.
    pub(super) fn add(&mut self, key: K, count: u64) {
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None if self.heap.len() < self.max => {
                let place = self.heap.len();
                self.heap.push(Counter { key, count: 0, error: 0 });
                self.places.insert(key, place);
                self.rise(place)
            }
            None => {
                if let Some(rarest) = self.heap.first_mut() {
                    self.places.remove(&rarest.key);
                    *rarest = Counter { key, count: rarest.count, error: rarest.count };
                    self.places.insert(key, 0);
                }
                0
            }
        };
        if let Some(counter) = self.heap.get_mut(place) {
            counter.count += count;
        }
        self.sink(place);
    }

    /// Returns how often what is not among the counters was counted at most.
    pub(super) fn floor(&self) -> u64 {
        if self.heap.len() < self.max { 0 } else { self.heap.first().map_or(0, |rarest| rarest.count) }
    }

    /// Returns the counters, in no order.
    pub(super) fn counters(&self) -> &[Counter<K>] {
        &self.heap
    }

    fn count_at(&self, place: usize) -> Option<u64> {
        self.heap.get(place).map(|counter| counter.count)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            if let Some(counter) = self.heap.get(place) {
                self.places.insert(counter.key, place);
            }
        }
    }

    /// Moves a counter of zero up to where it belongs; returns its place.
    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.count_at(above) <= self.count_at(place) {
                break;
            }
            self.swap(above, place);
            place = above;
        }
        place
    }

    /// Moves a counter that has grown down to where it belongs.
    fn sink(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let Some(of_left) = self.count_at(left) else { break };
            let smaller = match self.count_at(right) {
                Some(of_right) if of_right < of_left => right,
                _ => left,
            };
            if self.count_at(place) <= self.count_at(smaller) {
                break;
            }
            self.swap(place, smaller);
            place = smaller;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_small_and_too_large_by_their_error_at_most() {
        for (max, kinds) in [(1, 5), (50, 40), (50, 2_000)] {
            let mut sketch = Sketch::new(max);
            let mut right: HashMap<u64, u64> = HashMap::new();
            let mut chance = 88_172_645_463_325_252_u64;
            let mut total = 0;
            for _ in 0..20_000 {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                // Few make up most of it.
                let share = (chance >> 11) as f64 / (1_u64 << 53) as f64;
                let key = (f64::from(kinds)).powf(share) as u64;
                let count = 1 << (chance & 3);
                sketch.add(key, count);
                *right.entry(key).or_default() += count;
                total += count;
            }
            assert!(sketch.counters().len() <= max);
            for counter in sketch.counters() {
                let exact = right[&counter.key];
                assert!(
                    counter.count - counter.error <= exact && exact <= counter.count,
                    "{counter:?} {exact}"
                );
            }
            let is_known = |key: &u64| sketch.counters().iter().any(|counter| counter.key == *key);
            for (key, exact) in &right {
                assert!(is_known(key) || *exact <= sketch.floor(), "{key}: {exact}");
                assert!(is_known(key) || *exact <= total / max as u64, "{key}: {exact}");
            }
        }
    }
}
