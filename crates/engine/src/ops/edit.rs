//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that change the records of the answer there is.

use crate::finish::Answer;
use crate::run::{Desktop, Run, Workspace};

/// What to change.
pub enum Edit {}

impl Edit {
    /// Changes `answer`, whose records stand after the question in `work.message`; `work.spare` may be used freely.
    pub(crate) const fn apply(&self, _: &Run<'_>, _: Desktop<'_>, _: &mut Answer, _: &mut Workspace<'_>) {
        match *self {}
    }
}
