//! Who waits for whom, who pays, and who wants to know.

use super::{FetchKey, Node, Resolver, TaskKey};
use crate::budget::{Budget, Limit};
use crate::moment::Moment;
use crate::trace::{TraceEvent, TraceLine, TraceServer};

/// Nodes of a walk. Several clients' questions may make a chain longer than one may pay for; it has
/// an end all the same.
const WALK_MAX: usize = 256;

impl Resolver {
    /// Returns whether `from` waits for `to`, or is it: then `to` must not wait for `from`. Of what
    /// is too long to be walked it is assumed.
    pub(super) fn waits_for(&self, from: Node, to: Node) -> bool {
        self.any_from(from, &mut |node| node == to, Self::awaited)
    }

    /// Has one of the budgets pay for which a task works: of those that can, the one from which
    /// most was not sent yet. What one client has used up is not missing to another one who waits
    /// for the same.
    ///
    /// What nobody wants any more has nobody who pays: it takes what still comes in, and asks for
    /// nothing.
    pub(super) fn pay_for_task(
        &mut self,
        key: TaskKey,
        pay: impl Fn(&mut Budget) -> Result<(), Limit>,
    ) -> Result<(), Limit> {
        self.pay(Node::Task(key), pay)
    }

    /// The same for a fetch.
    pub(super) fn pay_for_fetch(
        &mut self,
        key: FetchKey,
        pay: impl Fn(&mut Budget) -> Result<(), Limit>,
    ) -> Result<(), Limit> {
        self.pay(Node::Fetch(key), pay)
    }

    fn pay(&mut self, node: Node, pay: impl Fn(&mut Budget) -> Result<(), Limit>) -> Result<(), Limit> {
        let rank = |budget: &Budget| (pay(&mut budget.clone()).is_ok(), budget.sends_left());
        let payer = self.payer(node, rank).and_then(|key| self.task_mut(key));
        payer.and_then(|task| task.budget.as_mut()).map_or(Err(Limit::Sends), pay)
    }

    /// Returns whose budget has most left of what judging a reply costs, of those for which a fetch
    /// works.
    pub(super) fn payer_of_judgement(&self, key: FetchKey) -> Option<TaskKey> {
        let limits = &self.settings.limits;
        self.payer(Node::Fetch(key), |budget| budget.judgement_left(limits))
    }

    /// Returns whose budget has most queries left, of those for which a node works.
    pub(super) fn payer_of_sends(&self, node: Node) -> Option<TaskKey> {
        self.payer(node, Budget::sends_left)
    }

    /// Returns whose budget has most hashes left, of those for which a node works.
    pub(super) fn payer_of_hashes(&self, node: Node) -> Option<TaskKey> {
        self.payer(node, |budget| budget.hashes)
    }

    /// Returns the task whose budget ranks highest, of those that wait for a node.
    fn payer<R: Ord>(&self, node: Node, rank: impl Fn(&Budget) -> R) -> Option<TaskKey> {
        if let Some(only) = self.only_waiting(node) {
            return self.task(only).and_then(|task| task.budget.as_ref()).map(|_| only);
        }
        let mut payer: Option<(R, TaskKey)> = None;
        self.any_from(
            node,
            &mut |node| {
                if let Node::Task(key) = node
                    && let Some(budget) = self.task(key).and_then(|task| task.budget.as_ref())
                {
                    let found = rank(budget);
                    if payer.as_ref().is_none_or(|(most, _)| found > *most) {
                        payer = Some((found, key));
                    }
                }
                false
            },
            Self::waiting,
        );
        payer.map(|(_, key)| key)
    }

    /// Returns the only task that waits for a node, if that is easily told: it is a client's, as
    /// nearly all are.
    fn only_waiting(&self, node: Node) -> Option<TaskKey> {
        let key = match node {
            Node::Task(key) => key,
            Node::Fetch(key) => *self.fetch(key)?.tasks.only()?,
        };
        self.task(key)?.parents.is_empty().then_some(key)
    }

    /// Writes down what happened for all who want to know of a fetch.
    pub(super) fn note(
        &mut self,
        key: FetchKey,
        server: impl Into<TraceServer>,
        event: &TraceEvent,
        now: Moment,
    ) {
        if self.traces == 0 {
            return;
        }
        let Some(fetch) = self.fetch(key) else { return };
        let server = server.into();
        let (zone, question) = (fetch.delegation.zone.clone(), fetch.question.clone());
        let mut tracing = Vec::new();
        self.any_from(
            Node::Fetch(key),
            &mut |node| {
                if let Node::Task(key) = node {
                    tracing.push(key);
                }
                false
            },
            Self::waiting,
        );
        for key in tracing {
            if let Some(trace) = self.task_mut(key).and_then(|task| task.trace.as_mut()) {
                trace.push(TraceLine {
                    after_us: now.since_us(trace.began_at),
                    server,
                    zone: zone.clone(),
                    qname: question.name.clone(),
                    qtype: question.rtype,
                    event: event.clone(),
                });
            }
        }
    }

    /// Returns what a node waits for.
    fn awaited(&self, node: Node, out: &mut Vec<Node>) {
        match node {
            Node::Task(key) => out.extend(self.task(key).and_then(|task| task.awaits)),
            Node::Fetch(key) => {
                if let Some(fetch) = self.fetch(key) {
                    let tasks = fetch.lookups.iter().chain(&fetch.proofs);
                    out.extend(tasks.map(|&key| Node::Task(key)));
                }
            }
        }
    }

    /// Returns what waits for a node.
    fn waiting(&self, node: Node, out: &mut Vec<Node>) {
        match node {
            Node::Task(key) => out.extend(self.task(key).map_or(&[][..], |task| &task.parents)),
            Node::Fetch(key) => {
                let tasks = self.fetch(key).into_iter().flat_map(|fetch| fetch.tasks.iter());
                out.extend(tasks.map(|&key| Node::Task(key)));
            }
        }
    }

    /// Walks from a node over its neighbours, each once, until one is what is looked for or it has
    /// gone too far.
    fn any_from(
        &self,
        from: Node,
        is_it: &mut dyn FnMut(Node) -> bool,
        neighbours: fn(&Self, Node, &mut Vec<Node>),
    ) -> bool {
        // Nearly all walks are of one or two nodes.
        let mut seen = vec![from];
        let mut at = 0;
        while let Some(&node) = seen.get(at) {
            if is_it(node) || at == WALK_MAX {
                return true;
            }
            let known = seen.len();
            neighbours(self, node, &mut seen);
            let mut kept = known;
            for next in known..seen.len() {
                if let Some(&node) = seen.get(next)
                    && !seen.iter().take(kept).any(|&other| other == node)
                {
                    seen.swap(kept, next);
                    kept += 1;
                }
            }
            seen.truncate(kept);
            at += 1;
        }
        false
    }
}
