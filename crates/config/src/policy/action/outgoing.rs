//! Actions that change the query that is sent to upstreams.

use super::{Meaning, Reference, Row};

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outgoing {}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[];

impl Outgoing {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match *self {}
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match *self {}
    }
}
