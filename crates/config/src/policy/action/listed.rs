//! The action that does what a list says: `blocklist(ads)`.

use super::{Action, Meaning, Noun, Reference, Row};
use crate::policy::arguments;
use crate::source::At;

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The set.
    pub set: At<String>,
    /// What becomes of queries that the list blocks without saying how.
    pub otherwise: Otherwise,
}

/// How a query is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// `0.0.0.0` and `::`, and no data for other types.
    Null,
    /// The name does not exist.
    Nxdomain,
    /// No data.
    Nodata,
    /// REFUSED.
    Refused,
}

/// The words for it.
const OTHERWISE: &[(&str, Otherwise)] = &[
    ("null", Otherwise::Null),
    ("nxdomain", Otherwise::Nxdomain),
    ("nodata", Otherwise::Nodata),
    ("refused", Otherwise::Refused),
];

/// Its row of the table.
pub(super) const ROWS: &[Row] = &[Row {
    word: "blocklist",
    arguments: "SET, [null | nxdomain | nodata | refused]",
    text: "Does what a set says about the query, and ends: rules of AdGuard lists and response policy zones with an \
           answer, a code, silence or truncation of their own are followed; what the set holds without saying more gets \
           `null` (`0.0.0.0` and `::`), or what is written here. An alias is answered as such, not followed. Queries \
           that the set says nothing about, and exceptions, go on.",
    read: |arguments| {
        let set = arguments.label()?;
        let otherwise =
            arguments.optional(arguments::word(OTHERWISE))?.map_or(Otherwise::Null, |at| at.value);
        Ok(Action::Listed(Listed { set, otherwise }))
    },
}];

impl Listed {
    #[expect(clippy::unused_self, reason = "as the other kinds of actions do")]
    pub(super) const fn meaning(&self) -> Meaning<'_> {
        Meaning::Looks("blocklist")
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        vec![Reference { noun: Noun::Set, name: &self.set }]
    }
}
