//! Policies that are asked before servers are.

use std::sync::Arc;

use super::{FetchKey, Node, Resolver, TaskKey};
use crate::effect::{Effect, Waiter};
use crate::heap_name::HeapName;
use crate::moment::Moment;
use crate::resolution::Resolution;
use crate::watch::Watch;

/// Tasks of a chain of aliases that are walked up; no client pays for more aliases.
const WALK_MAX: usize = 256;

impl Resolver {
    /// Has these policies asked before servers are, for this waiter alone. To be called before
    /// [`Resolver::want_so`].
    pub fn watch(&mut self, waiter: Waiter, watch: Arc<dyn Watch>) {
        self.watches.insert(waiter, watch);
    }

    /// Has policies asked about the name that a task's is an alias for. Returns whether nobody
    /// waits for it any more.
    pub(super) fn is_stopped_by_name(&mut self, key: TaskKey, target: &HeapName) -> bool {
        if self.watches.is_empty() {
            return false;
        }
        let now = self.ran_at.seconds();
        self.hand_out(key, &|watch| watch.speaks_of(target.as_name(), None, now))
    }

    /// Has policies asked about the servers that a fetch would ask. Returns whether nobody waits
    /// for it any more.
    pub(super) fn is_stopped_by_servers(&mut self, key: FetchKey, now: Moment) -> bool {
        if self.watches.is_empty() || !self.watches.values().any(|watch| watch.looks_at_servers()) {
            return false;
        }
        let Some(fetch) = self.fetch(key) else { return false };
        let tasks: Vec<TaskKey> = fetch.tasks.iter().copied().collect();
        let known = self.servers_known();
        let mut is_stopped = !tasks.is_empty();
        for task in tasks {
            let Some(name) = self.task(task).map(|task| task.question.name.clone()) else { continue };
            let speaks = |watch: &dyn Watch| {
                watch.looks_at_servers() && watch.speaks_of(name.as_name(), Some(&known), now.seconds())
            };
            is_stopped &= self.hand_out(task, &speaks);
        }
        is_stopped
    }

    /// Gives what is known so far to those who wait for a task, also by way of aliases, and whose
    /// policies may have something to say. Returns whether there were such, and nobody else is.
    fn hand_out(&mut self, key: TaskKey, speaks: &dyn Fn(&dyn Watch) -> bool) -> bool {
        let Some(task) = self.task(key) else { return false };
        let mut chain = vec![(key, Resolution::interim(task.rows().clone(), task.security()))];
        let (mut is_given, mut is_wanted) = (false, false);
        let mut at = 0;
        while let Some((key, known)) = chain.get(at) {
            let (key, mut known) = (*key, known.clone());
            at += 1;
            let Some(task) = self.task(key) else { continue };
            let all: Vec<Waiter> = task.waiters.iter().copied().collect();
            let trace = task.trace.as_ref().map(|trace| trace.lines.clone()).unwrap_or_default();
            for parent in &task.parents {
                match parent {
                    Node::Task(above) if chain.len() < WALK_MAX => {
                        if let Some(alias) = self.task(*above) {
                            let rows = alias.rows().clone();
                            chain.push((*above, Resolution::of_alias(rows, alias.security(), &known, None)));
                        }
                    }
                    Node::Task(_) | Node::Fetch(_) => is_wanted = true,
                }
            }
            known.trace = trace;
            let resolution = Arc::new(known);
            for waiter in all {
                if !self.watches.get(&waiter).is_some_and(|watch| speaks(&**watch)) {
                    is_wanted = true;
                    continue;
                }
                is_given = true;
                self.forget(waiter);
                self.effects.push_back(Effect::Done { waiter, resolution: Arc::clone(&resolution) });
            }
        }
        is_given && !is_wanted
    }
}
