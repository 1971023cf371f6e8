//! How long things took, as Prometheus reads it: histograms of all workers, added up.
//!
//! Workers measure queries that wait and replies of upstreams, and nothing else: an answer from
//! memory reads no clock. How many queries of a transport did not wait is worked out here, of those
//! that came and those that began to wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use control::metrics::Buckets;
use engine::Transport;
use timers::{BUCKETS, Counted};

use super::Operator;
use crate::lock;

/// The bounds that are shown, as binary logarithms of microseconds: 0.1 ms to 17 s.
const ALL_BOUNDS: [u32; 18] = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24];
/// Those of histograms that there are many of: 0.1, 0.5, 2, 4, 8, 16, 33, 66, 131, 524 ms, 2 and
/// 8 s.
const FEW_BOUNDS: [u32; 12] = [7, 9, 11, 12, 13, 14, 15, 16, 17, 19, 21, 23];

/// Queries that did not wait, by transport, as they were shown last.
#[derive(Default)]
pub(super) struct Instant(Mutex<[u64; Transport::ALL.len()]>);

impl Instant {
    /// Returns how many there are, and never fewer than before: what is read while queries come
    /// does not fit together exactly.
    fn count(&self, transport: Transport, queries: u64, begun: u64) -> u64 {
        let mut known = lock(&self.0);
        let Some(known) = known.get_mut(transport as usize) else { return 0 };
        *known = (*known).max(queries.saturating_sub(begun));
        *known
    }
}

/// Returns a histogram as it is shown, in which so many more took no time.
fn buckets(counted: &Counted, instant: u64, bounds: &[u32]) -> Buckets {
    let mut below = instant;
    let mut shown = Vec::new();
    for (power, count) in (0_u32..).zip(counted.counts) {
        below += count;
        if bounds.contains(&power) {
            shown.push((1 << power, below));
        }
    }
    Buckets { below: shown, count: below, sum_us: counted.sum_us }
}

/// Adds up histograms by a key, in the order in which keys come first.
struct Sums<K> {
    all: Vec<(K, Counted)>,
    places: HashMap<K, usize>,
}

impl<K: Clone + Eq + Hash> Sums<K> {
    fn new() -> Self {
        Self { all: Vec::new(), places: HashMap::new() }
    }

    fn of(&mut self, key: K) -> &mut Counted {
        let at = *self.places.entry(key).or_insert_with_key(|key| {
            self.all.push((key.clone(), Counted::default()));
            self.all.len() - 1
        });
        &mut self.all[at].1
    }
}

const _: () = assert!(BUCKETS > 24);

impl Operator {
    /// Returns how long clients waited, by what for.
    pub(super) fn waits(&self) -> Vec<(&'static str, Buckets)> {
        let mut sums = Sums::new();
        for worker in &self.facts.worker_handles {
            worker.board.counts.waits.read(|source, _, times| times.read(sums.of(source)));
        }
        sums.all.into_iter().map(|(source, counted)| (source, buckets(&counted, 0, &ALL_BOUNDS))).collect()
    }

    /// Returns how long clients had to wait for replies, by transport; of transports over which
    /// there was no query, nothing.
    pub(super) fn reply_times(&self) -> Vec<(&'static str, Buckets)> {
        let mut queries = [0; Transport::ALL.len()];
        for worker in &self.facts.worker_handles {
            for (transport, sum) in Transport::ALL.into_iter().zip(&mut queries) {
                *sum += worker.engine.queries_over(transport).read();
            }
        }
        let (mut begun, mut sums) = ([0; Transport::ALL.len()], Sums::new());
        for worker in &self.facts.worker_handles {
            let waits = &worker.board.counts.waits;
            waits.read_begun(|transport, count| begun[transport as usize] += count);
            waits.read(|_, transport, times| times.read(sums.of(transport)));
        }
        let of_transport = |(transport, counted): (Transport, Counted)| {
            let at = transport as usize;
            let instant = self.instant.count(transport, queries[at], begun[at]);
            (queries[at] > 0).then(|| (transport.word(), buckets(&counted, instant, &FEW_BOUNDS)))
        };
        sums.all.into_iter().filter_map(of_transport).collect()
    }

    /// Returns how long replies of upstreams took, by group and server.
    pub(super) fn upstream_times(&self) -> Vec<([String; 2], Buckets)> {
        let mut sums = Sums::new();
        for worker in &self.facts.worker_handles {
            worker.board.read_reply_times(|upstream, times| {
                let server = format!("{}{}", upstream.protocol.prefix(), upstream.address);
                times.read(sums.of([upstream.pool.clone(), server]));
            });
        }
        sums.all.into_iter().map(|(key, counted)| (key, buckets(&counted, 0, &FEW_BOUNDS))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_all_that_is_shorter() {
        let mut counted = Counted { sum_us: 77, ..Counted::default() };
        (counted.counts[0], counted.counts[7], counted.counts[10], counted.counts[39]) = (2, 3, 4, 5);
        let shown = buckets(&counted, 0, &ALL_BOUNDS);
        assert_eq!((shown.count, shown.sum_us), (14, 77));
        assert_eq!((shown.below[0], shown.below[3], shown.below[17]), ((128, 5), (1024, 9), (1 << 24, 9)));
    }

    #[test]
    fn sums_are_in_the_order_in_which_keys_come() {
        let mut sums = Sums::new();
        for (key, us) in [("b", 1), ("a", 2), ("b", 4)] {
            sums.of(key).sum_us += us;
        }
        let all: Vec<(&str, u64)> = sums.all.iter().map(|(key, counted)| (*key, counted.sum_us)).collect();
        assert_eq!(all, [("b", 5), ("a", 2)]);
    }

    #[test]
    fn those_that_took_no_time_are_below_every_bound() {
        let mut counted = Counted { sum_us: 5_000, ..Counted::default() };
        // Below 4.096 ms and not below 2.048 ms; and more than all bounds.
        (counted.counts[12], counted.counts[BUCKETS - 1]) = (3, 1);
        let shown = buckets(&counted, 10, &FEW_BOUNDS);
        assert_eq!(shown.below[..4], [(128, 10), (512, 10), (2_048, 10), (4_096, 13)]);
        assert_eq!((shown.below.len(), shown.count, shown.sum_us), (12, 14, 5_000));
        assert!(shown.below.is_sorted());
    }

    #[test]
    fn what_is_counted_never_becomes_less() {
        let instant = Instant::default();
        assert_eq!(instant.count(Transport::Udp, 10, 4), 6);
        // One of them was on its way to wait when the two numbers were read.
        assert_eq!(instant.count(Transport::Udp, 10, 5), 6);
        assert_eq!(instant.count(Transport::Udp, 12, 5), 7);
        assert_eq!(instant.count(Transport::Tls, 1, 1), 0);
    }
}
