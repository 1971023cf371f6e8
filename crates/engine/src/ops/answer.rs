//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that make an answer out of nothing but the question.

use crate::finish::Answer;
use crate::run::{Desktop, Run, Workspace};

/// What to answer.
pub enum Build {}

/// What such a step did.
#[allow(dead_code, reason = "filled in with the kinds of `Build`")]
pub(crate) enum Built {
    /// The query ends with this answer.
    End(Answer),
    /// This answer goes on through the program.
    GoOn(Answer),
    /// The step has nothing to say to this question.
    Nothing,
}

impl Build {
    /// Writes the answer's records after the question's place in `work.message`.
    #[expect(clippy::unused_self, reason = "there is no kind yet")]
    pub(crate) const fn build(&self, _: &Run<'_>, _: Desktop<'_>, _: &mut Workspace<'_>) -> Built {
        match *self {}
    }
}
