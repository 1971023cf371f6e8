//! A queue with a bound: what finds no room is dropped, and counted by whoever put it there.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between one or several that put in and one that takes out.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    capacity: usize,
}

struct State<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

/// What a look into a queue brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Something.
    Some,
    /// Nothing in that time.
    Nothing,
    /// Nothing, and nothing will come.
    Closed,
}

impl<T> Queue<T> {
    /// Returns an empty queue for so many items.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { items: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an item in; false if there is no room, or nobody who takes.
    pub(crate) fn put(&self, item: T) -> bool {
        let mut state = self.lock();
        if state.is_closed || state.items.len() >= self.capacity {
            return false;
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Moves up to `most` items to the end of `into`; waits for the first of them.
    pub(crate) fn take(&self, into: &mut Vec<T>, most: usize, patience: Duration) -> Taken {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if !state.items.is_empty() {
                let count = state.items.len().min(most);
                into.extend(state.items.drain(..count));
                return Taken::Some;
            }
            if state.is_closed {
                return Taken::Closed;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Taken::Nothing;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns how many items wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Takes no more items; what is in there can still be taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Returns whether it takes no more items.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_refused() {
        let queue = Queue::new(2);
        assert!(queue.put(1) && queue.put(2) && !queue.put(3));
        let mut taken = Vec::new();
        assert_eq!(queue.take(&mut taken, 1, Duration::ZERO), Taken::Some);
        assert!(queue.put(4));
        queue.close();
        assert!(!queue.put(5) && queue.is_closed());
        assert_eq!(queue.take(&mut taken, 9, Duration::MAX / 4), Taken::Some);
        assert_eq!((taken, queue.len()), (vec![1, 2, 4], 0));
        assert_eq!(queue.take(&mut Vec::new(), 1, Duration::MAX / 4), Taken::Closed);
    }

    #[test]
    fn who_waits_is_woken() {
        let queue = Queue::new(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.take(&mut Vec::new(), 1, Duration::from_secs(60)));
            assert!(queue.put(1));
            assert_eq!(waiting.join().expect("no panic"), Taken::Some);
        });
    }
}
