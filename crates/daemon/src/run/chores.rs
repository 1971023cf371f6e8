//! What schedules ask of the running server.

use std::sync::{Arc, OnceLock, Weak};

use config::Plans;
use config::jobs::Task;
use jobs::{Chores, Download, Jobs, Librarian, StepNames};

use super::operator::{Running, Which};

/// Carries schedules' orders to the server, once it runs.
#[derive(Default)]
pub(crate) struct Steward(pub(crate) Arc<Orders>);

/// Whom the orders go to.
#[derive(Default)]
pub(crate) struct Orders(OnceLock<Weak<Running>>);

impl Steward {
    /// Says who carries the orders out.
    pub(crate) fn serves(&self, running: &Arc<Running>) {
        drop(self.0.0.set(Arc::downgrade(running)));
    }
}

impl Chores for Orders {
    fn carry_out(&self, task: &Task) -> Result<String, String> {
        let Some(running) = self.0.get().and_then(Weak::upgrade) else {
            return Err("the server does not run yet".to_owned());
        };
        match task {
            Task::Dump(name) => {
                let dumped = running.dump(name.as_deref().map_or(Which::All, Which::Named));
                let failed: Vec<String> = dumped
                    .iter()
                    .filter_map(|dump| Some(format!("{}: {}", dump.cache, dump.error.as_ref()?)))
                    .collect();
                match (dumped.as_slice(), failed.is_empty()) {
                    ([], _) => Err("no such cache has a file to be written to".to_owned()),
                    (dumped, true) => {
                        Ok(format!("{} answers written", dumped.iter().map(|dump| dump.entries).sum::<u64>()))
                    }
                    (_, false) => Err(failed.join("; ")),
                }
            }
            // These are the jobs' own.
            Task::Refresh(_) | Task::Effect(_) => Err("not known here".to_owned()),
        }
    }
}

impl Librarian for Orders {
    fn check(&self, _: &Download, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn adopt(&self, _: &[String]) {
        if let Some(running) = self.0.get().and_then(Weak::upgrade) {
            drop(running.reload());
        }
    }
}

/// Makes the jobs run on a configuration.
pub(crate) fn adopt(jobs: &Jobs, plans: &Plans) {
    let steps = StepNames { snapshot: plans.snapshot.number, names: Arc::clone(&plans.steps) };
    jobs.adopt(&plans.jobs, &[], steps);
}
