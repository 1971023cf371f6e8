//! Several at once: the same work for each of a batch, on a few threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` for each of `items`, at most `concurrency` at a time; returns when all are done.
pub(crate) fn each<T: Sync>(items: &[T], concurrency: usize, work: impl Fn(&T) + Sync) {
    let threads = concurrency.min(items.len());
    if threads <= 1 {
        return items.iter().for_each(work);
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        for concurrency in [1, 3, 50] {
            let counts: Vec<AtomicUsize> = (0..20).map(|_| AtomicUsize::new(0)).collect();
            each(&counts, concurrency, |count| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}
