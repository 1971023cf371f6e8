//! What a zone was before: steps from version to version, as far as there is room for them.

use std::collections::VecDeque;
use std::sync::Arc;

use zone::Difference;

/// The last steps of a zone, without a gap.
#[derive(Default)]
pub(crate) struct History {
    steps: VecDeque<Arc<Difference>>,
    octets: u64,
}

impl History {
    /// Puts steps in place of all there are.
    pub(crate) fn set(&mut self, steps: impl IntoIterator<Item = Arc<Difference>>, octets_max: u64) {
        self.clear();
        for step in steps {
            self.push(step, octets_max);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.octets = 0;
    }

    /// Adds a step; the oldest go if there is no room for it.
    pub(crate) fn push(&mut self, step: Arc<Difference>, octets_max: u64) {
        if self.steps.back().is_some_and(|last| last.new_serial() != step.old_serial()) {
            self.clear();
        }
        self.octets += step.octets() as u64;
        self.steps.push_back(step);
        while self.octets > octets_max
            && let Some(oldest) = self.steps.pop_front()
        {
            self.octets -= oldest.octets() as u64;
        }
    }

    /// Returns the steps from one version to another; nothing if they do not reach that far back.
    pub(crate) fn between(&self, from: u32, to: u32) -> Option<Vec<Arc<Difference>>> {
        let first = self.steps.iter().rposition(|step| step.old_serial() == from)?;
        let steps: Vec<_> = self.steps.iter().skip(first).cloned().collect();
        let end = steps.iter().position(|step| step.new_serial() == to)?;
        Some(steps.into_iter().take(end + 1).collect())
    }

    /// Returns all steps, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Difference>> {
        self.steps.iter().cloned().collect()
    }

    pub(crate) fn last(&self) -> Option<&Arc<Difference>> {
        self.steps.back()
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }
}
