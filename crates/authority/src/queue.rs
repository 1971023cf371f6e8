//! Requests that come while one is carried out are carried out together.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Requests that wait, and what came of those that were carried out.
#[derive(Debug)]
pub struct Queue<Q, A> {
    state: Mutex<State<Q, A>>,
    done: Condvar,
}

#[derive(Debug)]
struct State<Q, A> {
    next: u64,
    waiting: Vec<(u64, Q)>,
    answers: BTreeMap<u64, A>,
    is_at_work: bool,
}

impl<Q, A> Default for Queue<Q, A> {
    fn default() -> Self {
        let state = State { next: 0, waiting: Vec::new(), answers: BTreeMap::new(), is_at_work: false };
        Self { state: Mutex::new(state), done: Condvar::new() }
    }
}

impl<Q, A> Queue<Q, A> {
    fn state(&self) -> MutexGuard<'_, State<Q, A>> {
        // A panic ends the process, so a poisoned lock is never seen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a request carried out by `work`, which returns an answer to each of those it is given,
    /// or by that of another caller, together with theirs.
    pub fn carry_out(&self, request: Q, work: impl Fn(Vec<Q>) -> Vec<A>) -> A {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.waiting.push((number, request));
        loop {
            if let Some(answer) = state.answers.remove(&number) {
                return answer;
            }
            if state.is_at_work {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_at_work = true;
            let (numbers, requests): (Vec<u64>, Vec<Q>) =
                std::mem::take(&mut state.waiting).into_iter().unzip();
            drop(state);
            let answers = work(requests);
            state = self.state();
            state.answers.extend(numbers.into_iter().zip(answers));
            state.is_at_work = false;
            self.done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn what_comes_during_work_is_carried_out_together() {
        let queue = Arc::new(Queue::<u32, u32>::default());
        let batches = Arc::new(Mutex::new(Vec::new()));
        let (begun, has_begun) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                queue.carry_out(1, |requests| {
                    if requests.contains(&1) {
                        begun.send(()).expect("heard");
                        may_go_on.lock().expect("sound").recv().expect("told");
                    }
                    batches.lock().expect("sound").push(requests.clone());
                    requests.iter().map(|request| request * 10).collect()
                })
            });
            has_begun.recv().expect("it began");
            let others: Vec<_> = (2..6)
                .map(|request| {
                    let (queue, batches) = (&queue, &batches);
                    scope.spawn(move || {
                        queue.carry_out(request, |requests| {
                            batches.lock().expect("sound").push(requests.clone());
                            requests.iter().map(|request| request * 10).collect()
                        })
                    })
                })
                .collect();
            while queue.state().waiting.len() < 4 {
                std::thread::yield_now();
            }
            go_on.send(()).expect("heard");
            assert_eq!(first.join().expect("it ended"), 10);
            let answers: Vec<u32> = others.into_iter().map(|other| other.join().expect("it ended")).collect();
            assert_eq!(answers, [20, 30, 40, 50]);
        });
        let batches = batches.lock().expect("sound");
        assert_eq!(batches.len(), 2, "{batches:?}");
        assert_eq!((batches[0].len(), batches[1].len()), (1, 4));
    }
}
