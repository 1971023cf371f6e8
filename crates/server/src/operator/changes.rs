//! Changes that are laid over the configuration while the server runs, until it is read again.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use diagnostic::Diagnostic;
use engine::details::DetailValues;
use environment::System;
use settings::{Changes, Loaded, UnboundStatistics};
use timers::Counted;
use tracing::info;

use super::configuration::apart;
use super::{Operator, OperatorError, Rejected};
use crate::compile::{Compiled, compile};
use crate::reload::{Candidate, Cause, Revision};
use crate::{lock, progress};

/// What one worker has counted.
#[derive(Clone, Debug, Default)]
pub struct WorkerNumbers {
    /// Counters by group and name.
    pub counters: BTreeMap<(&'static str, &'static str), u64>,
    /// What was counted of queries and replies in detail, if it is wanted.
    pub details: DetailValues,
    /// How long clients waited for other servers.
    pub waits: Counted,
    /// Queries that wait now.
    pub waiting: u64,
    /// How many waited already when one began to, added up for all of them.
    pub found_waiting: u64,
    /// The most of these since [`Operator::reset_peaks`].
    pub most_waiting: u64,
    /// The longest that a datagram waited to be read since then, in microseconds, where
    /// `sockets.queue-timeout` is set.
    pub queued_us_max: u64,
    /// Zones of which it is noted which keys they have, or that they have none; expired notes
    /// included.
    pub zones_known: u64,
}

impl Operator {
    /// Returns the configuration in use.
    pub fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&lock(&self.current).loaded)
    }

    /// Lays changes over the configuration in use: `change` gets those that there are, and adds its
    /// own. All that it adds comes into use together; what is on disk is not looked at. A reload
    /// forgets them.
    ///
    /// # Errors
    ///
    /// The configuration cannot have any, `change` does not want it, or the changes make no sense;
    /// then nothing has changed.
    pub fn lay_over<T>(
        &self,
        change: impl FnOnce(&mut Changes) -> Result<T, OperatorError>,
    ) -> Result<T, OperatorError> {
        let mut current = lock(&self.current);
        let Some(known) = &current.loaded.changes else {
            let why = "the configuration is no unbound.conf, and only over one can changes be laid";
            return Err(OperatorError::Refused(why.to_owned()));
        };
        let mut changes = (**known).clone();
        let changed = change(&mut changes)?;
        if changes != **known {
            self.lay(&mut current, changes)?;
            drop(current);
            self.follow_zones();
        }
        Ok(changed)
    }

    /// Reads the files with secrets again; what else is on disk is not looked at, unless the
    /// configuration is one of ours.
    ///
    /// # Errors
    ///
    /// They make no sense; then nothing has changed.
    pub fn read_secrets_again(&self) -> Result<(), OperatorError> {
        let mut current = lock(&self.current);
        let Some(changes) = current.loaded.changes.as_ref().map(|known| (**known).clone()) else {
            drop(current);
            return self.reload().map(drop);
        };
        self.lay(&mut current, changes)
    }

    /// Lays changes over what the files said when they were read.
    fn lay(&self, current: &mut Revision, changes: Changes) -> Result<(), OperatorError> {
        let outcome = self.compiled_with(current, changes);
        let revision = outcome.and_then(|revision| {
            let candidate = Candidate::with_last_signed(&self.components.signing, revision, Cause::Changes);
            self.change(current, candidate)
        });
        if let Err(diagnostics) = revision {
            let stays = control::api::Reload { revision: current.number, ..Default::default() };
            return Err(OperatorError::Invalid(Box::new(Rejected { diagnostics, stays })));
        }
        lock(&self.view).show(current);
        info!(revision = current.number, "changes laid over the configuration");
        let (by, what) = ("unbound-control".to_owned(), "settings".to_owned());
        let told = control::api::ChangeEvent { by, what, ..Default::default() };
        self.tell(control::api::EventOf::Change(told));
        Ok(())
    }

    fn compiled_with(&self, current: &Revision, changes: Changes) -> Result<Revision, Vec<Diagnostic>> {
        let previous = current.as_previous();
        let (loaded, compiled) = apart(|| {
            let mut loaded = current.loaded.changed(changes, &System)?;
            loaded.settings.has_added_zones = self.components.manager.has_added();
            let compiled = compile(
                &loaded,
                &self.facts.addresses,
                Some(previous),
                &progress::serving(&self.components.manager, &self.components.own_lists),
            )?;
            Ok::<_, Vec<Diagnostic>>((Arc::new(loaded), compiled))
        })?;
        let Compiled { plans, zones } = compiled;
        Ok(Revision { number: current.number + 1, loaded, plans, zones })
    }

    /// Returns the servers that the first resolver begins with, and their addresses.
    pub fn root_hints(&self) -> Vec<(String, Vec<IpAddr>)> {
        let current = lock(&self.current);
        let Some(first) = current.plans.resolvers.resolvers.first() else { return Vec::new() };
        let hints = first.settings.hints.iter();
        hints.map(|hint| (hint.name.to_string(), hint.addresses.clone())).collect()
    }

    /// Returns what the statistics of `unbound-control` are to show.
    pub fn statistics_settings(&self) -> UnboundStatistics {
        // Not from what is in use, which is held for as long as another revision is made.
        lock(&self.view).statistics
    }

    /// Returns how long the server runs.
    pub fn uptime(&self) -> Duration {
        self.facts.clock.since_start()
    }

    /// Returns how many servers resolvers know something of.
    pub fn servers_known(&self) -> u64 {
        self.components.resolver_tables.servers().stats().entries
    }

    /// Returns what each worker has counted.
    pub fn numbers_of_workers(&self) -> Vec<WorkerNumbers> {
        let of_one = |worker: &crate::worker::WorkerHandle| {
            let mut counters = BTreeMap::new();
            let mut add = |group: &'static str, name: &'static str, value: u64| {
                *counters.entry((group, name)).or_default() += value;
            };
            worker.engine.read(|name, value| add("engine", name, value));
            worker.listen.read(|name, value| add("listen", name, value));
            worker.board.counts.read(&mut add);
            let mut waits = Counted::default();
            worker.board.counts.waits.read(|_, _, histogram| histogram.read(&mut waits));
            let waiting = u64::from(worker.board.status().waiting);
            let (found_waiting, most_waiting) = worker.board.counts.waits.read_found();
            let details = worker.details.read();
            let zones_known = worker.board.zones_known.load(Ordering::Relaxed).into();
            let queued_us_max = worker.listen.udp_queued_us_max.read();
            WorkerNumbers {
                counters,
                details,
                waits,
                waiting,
                found_waiting,
                most_waiting,
                queued_us_max,
                zones_known,
            }
        };
        self.facts.worker_handles.iter().map(of_one).collect()
    }

    /// Has what is the most of something begin from zero: of queries that wait, and of the time
    /// that datagrams waited to be read.
    pub fn reset_peaks(&self) {
        for worker in &self.facts.worker_handles {
            worker.board.counts.waits.forget_most();
            worker.listen.udp_queued_us_max.reset();
        }
    }

    /// Returns how many queries policies have counted under each label.
    pub fn label_counts(&self) -> BTreeMap<String, u64> {
        self.components.jobs.labels()
    }
}
