//! Actions that tell somebody about the query, and go on.

use super::{Meaning, Reference, Row};

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[];

impl Event {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match *self {}
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match *self {}
    }
}
