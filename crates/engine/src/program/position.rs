//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Where a query is in its program.

use super::check::CALLS_MAX;

/// Where a query is in a program. Small and copyable: this is all that a waiting query keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    next: u16,
    depth: u8,
    returns: [u16; CALLS_MAX],
}

impl Position {
    /// Returns the position before step `next`.
    pub const fn at(next: u16) -> Self {
        Self { next, depth: 0, returns: [0; CALLS_MAX] }
    }

    /// Returns the number of the next step.
    pub const fn next(self) -> u16 {
        self.next
    }

    /// Takes the next step's number and moves past it.
    pub(crate) fn advance(&mut self) -> usize {
        let at = self.next;
        self.next = at.saturating_add(1);
        usize::from(at)
    }

    pub(crate) fn skip(&mut self, steps: u16) {
        self.next = self.next.saturating_add(steps);
    }

    /// Returns the position so many steps before, in the same routine.
    pub(crate) const fn back(self, steps: u16) -> Self {
        Self { next: self.next.saturating_sub(steps), ..self }
    }

    /// Goes on at a step of the same routine.
    pub(crate) const fn go_to(&mut self, step: u16) {
        self.next = step;
    }

    /// Goes on at a step and forgets the open calls.
    pub(crate) const fn jump(&mut self, target: u16) {
        self.next = target;
        self.depth = 0;
    }

    pub(crate) fn call(&mut self, target: u16) {
        // Programs that nest deeper are refused by `Program::new`.
        if let Some(slot) = self.returns.get_mut(usize::from(self.depth)) {
            *slot = self.next;
            self.depth += 1;
            self.next = target;
        }
    }

    /// Returns false outside of any call.
    pub(crate) fn pop(&mut self) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else { return false };
        self.depth = depth;
        self.next = self.returns.get(usize::from(depth)).copied().unwrap_or(u16::MAX);
        true
    }

    /// Folds the whole position into one number: equal positions give equal numbers.
    pub(crate) fn fingerprint(&self) -> u32 {
        let mut hash = u32::from(self.next);
        for target in self.returns.iter().take(usize::from(self.depth)) {
            hash = hash.rotate_left(7).wrapping_mul(0x9e37_79b1) ^ u32::from(*target);
        }
        hash
    }
}
