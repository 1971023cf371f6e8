//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How long things took: counts in buckets whose bounds double, written by one thread and read by
//! any.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Span;

/// Buckets of a histogram. The first is for less than a microsecond, the last for everything from
/// 2³⁸ microseconds (three days) on.
pub const BUCKETS: usize = 40;

/// Counts of spans by their length. 328 octets.
#[derive(Debug)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

/// What one or several histograms had counted at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How many spans were in each bucket; that of number *n* has those below 2ⁿ microseconds that
    /// are in no bucket before it.
    pub counts: [u64; BUCKETS],
    /// All spans together, in microseconds.
    pub sum_us: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS], sum_us: AtomicU64::new(0) }
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum_us: 0 }
    }
}

impl Histogram {
    /// Counts a span. Only one thread may: what another one counts at the same moment is lost.
    pub fn note(&self, span: Span) {
        let bucket = (u64::BITS - span.0.leading_zeros()) as usize;
        if let Some(count) = self.counts.get(bucket.min(BUCKETS - 1)) {
            add(count, 1);
        }
        add(&self.sum_us, span.0);
    }

    /// Adds what was counted so far to `counted`.
    pub fn read(&self, counted: &mut Counted) {
        for (sum, count) in counted.counts.iter_mut().zip(&self.counts) {
            *sum += count.load(Ordering::Relaxed);
        }
        counted.sum_us = counted.sum_us.wrapping_add(self.sum_us.load(Ordering::Relaxed));
    }
}

/// Adds without a locked instruction: nobody else writes.
fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_in_the_bucket_below_whose_bound_it_is() {
        let histogram = Histogram::default();
        let spans = [0, 1, 2, 3, 4, 1000, 1023, 1024, u64::MAX];
        for us in spans {
            histogram.note(Span(us));
        }
        let mut counted = Counted::default();
        histogram.read(&mut counted);
        let expected = [(0, 1), (1, 1), (2, 2), (3, 1), (10, 2), (11, 1), (BUCKETS - 1, 1)];
        let filled: Vec<(usize, u64)> =
            counted.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, expected);
        let sum = spans.iter().fold(0_u64, |sum, us| sum.wrapping_add(*us));
        assert_eq!(counted.sum_us, sum);
    }

    #[test]
    fn histograms_add_up() {
        let (one, other) = (Histogram::default(), Histogram::default());
        one.note(Span(5));
        other.note(Span(6));
        let mut counted = Counted::default();
        one.read(&mut counted);
        other.read(&mut counted);
        assert_eq!((counted.counts[3], counted.sum_us), (2, 11));
    }
}
