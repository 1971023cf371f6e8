//! The action that does what a list says: `blocklist(ads)`.

use diagnostic::At;

use super::answer::{Block, block};
use super::{Action, Meaning, Noun, Reference, Row};
use crate::arguments::label;

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The set.
    pub set: At<String>,
    /// What becomes of queries that the list blocks without saying how.
    pub block: Block,
    /// Whether the same becomes of everything that the list has a rule or an exception for.
    pub overrides: bool,
    /// Whether rules on addresses of the answer there is count.
    pub by_address: bool,
    /// What the labels begin with under which queries are counted, by what becomes of them.
    pub counted: Option<String>,
}

/// What these labels go on with, by [`Fate`](engine::ops::answer::Fate).
const FATES: [&str; engine::ops::answer::FATES] =
    ["nxdomain", "nodata", "local-data", "drop", "tcp-only", "other-code"];

/// Its row of the table.
pub(super) const ROWS: &[Row] = &[Row {
    word: "blocklist",
    arguments: "SET, [as for block, but for continue, override, without-addresses, count NAME]",
    text: "Does what a set says about the query, and ends: rules of AdGuard lists and response policy zones with an \
           answer, a code, silence or truncation of their own are followed; what the set holds without saying more is \
           blocked in the way that is written here, as `block` does: `blocklist(ads)`, `blocklist(ads, nxdomain, ttl 5m)`. An alias is followed, as `redirect` does. Queries that \
           the set says nothing about, and exceptions, go on. Behind a step that brings an answer, rules on its addresses \
           (`rpz-ip`) count, too. With `override`, what the set says does not matter: everything that it has a rule or an \
           exception for is blocked as it is written here. With `without-addresses`, rules on addresses do not count. `count NAME` \
           counts queries under labels of the metrics, as `label` does, by what becomes of them: NAME-nxdomain, \
           NAME-nodata, NAME-local-data (addresses, records, an alias), NAME-drop, NAME-tcp-only, NAME-other-code.",
    read: |arguments| {
        let set = arguments.label()?;
        let place = arguments.place();
        let overrides = arguments.flag("override")?;
        let by_address = !arguments.flag("without-addresses")?;
        let counted = arguments.keyed("count", label)?.map(|at| at.value);
        let block = block(arguments)?;
        if block.continues {
            let message = "what a list says is the end; where it says nothing, the query goes on by itself";
            return Err(arguments.wrong(place, message, "no \"continue\""));
        }
        Ok(Action::Listed(Listed { set, block, overrides, by_address, counted }))
    },
}];

impl Listed {
    #[expect(clippy::unused_self, reason = "as the other kinds of actions do")]
    pub(super) const fn meaning(&self) -> Meaning<'_> {
        Meaning::Looks("blocklist")
    }

    /// Returns the labels under which queries are counted, by what becomes of them.
    pub(crate) fn labels(&self) -> Option<[String; FATES.len()]> {
        let name = self.counted.as_ref()?;
        Some(FATES.map(|fate| format!("{name}-{fate}")))
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        vec![Reference { noun: Noun::Set, name: &self.set }]
    }
}
