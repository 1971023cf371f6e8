//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that tell somebody outside about a query: effects, records, logs, labels.

use crate::run::{Desktop, Run, Workspace};

/// What to tell.
pub enum EventStep {}

impl EventStep {
    /// Writes the event into `work.events`, or counts it as lost.
    pub(crate) const fn emit(&self, _: &Run<'_>, _: Desktop<'_>, _: &mut Workspace<'_>) {
        match *self {}
    }
}
