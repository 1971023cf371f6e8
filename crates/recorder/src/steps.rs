//! What the steps of policies are called.

use std::sync::Arc;

/// A policy's number and what its steps are called.
#[derive(Clone)]
pub struct StepNames {
    /// The number of its snapshot.
    pub snapshot: u32,
    /// The steps in order.
    pub names: Arc<[String]>,
    /// What the record says of them.
    pub facts: Arc<plan::jobs::StepFacts>,
}
