//! Who waits for whom, who pays, and who wants to know.

use std::net::SocketAddr;

use super::{FetchKey, Node, Resolver, TaskKey};
use crate::budget::{Budget, Limit};
use crate::moment::Moment;
use crate::trace::{TraceEvent, TraceLine};

/// Nodes of a walk. Several clients' questions may make a chain longer than one may pay for; it has
/// an end all the same.
const WALK_MAX: usize = 256;

impl Resolver {
    /// Returns whether `from` waits for `to`, or is it: then `to` must not wait for `from`. Of what
    /// is too long to be walked it is assumed.
    pub(super) fn waits_for(&self, from: Node, to: Node) -> bool {
        self.any_from(from, &mut |node| node == to, Self::awaited)
    }

    /// Has the budget pay that has most left of those for which a task works.
    ///
    /// What nobody wants any more has nobody who pays: it takes what still comes in, and asks for
    /// nothing.
    pub(super) fn pay_for_task(
        &mut self,
        key: TaskKey,
        pay: impl FnOnce(&mut Budget) -> Result<(), Limit>,
    ) -> Result<(), Limit> {
        self.pay(Node::Task(key), pay)
    }

    /// The same for a fetch.
    pub(super) fn pay_for_fetch(
        &mut self,
        key: FetchKey,
        pay: impl FnOnce(&mut Budget) -> Result<(), Limit>,
    ) -> Result<(), Limit> {
        self.pay(Node::Fetch(key), pay)
    }

    fn pay(&mut self, node: Node, pay: impl FnOnce(&mut Budget) -> Result<(), Limit>) -> Result<(), Limit> {
        let mut payer: Option<(u8, TaskKey)> = None;
        self.any_from(
            node,
            &mut |node| {
                if let Node::Task(key) = node
                    && let Some(budget) = self.task(key).and_then(|task| task.budget)
                    && payer.is_none_or(|(most, _)| budget.sends_left() > most)
                {
                    payer = Some((budget.sends_left(), key));
                }
                false
            },
            Self::waiting,
        );
        let budget = payer.and_then(|(_, key)| self.task_mut(key)).and_then(|task| task.budget.as_mut());
        budget.map_or(Err(Limit::Sends), pay)
    }

    /// Writes down what happened for all who want to know of a fetch.
    pub(super) fn note(&mut self, key: FetchKey, address: SocketAddr, event: &TraceEvent, now: Moment) {
        if self.traces == 0 {
            return;
        }
        let Some(fetch) = self.fetch(key) else { return };
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
                    address,
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
                let tasks = self.fetch(key).map_or(&[][..], |fetch| &fetch.tasks);
                out.extend(tasks.iter().map(|&key| Node::Task(key)));
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
