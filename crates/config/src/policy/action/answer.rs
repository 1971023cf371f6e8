//! Actions that make an answer.

use wire::Rcode;

use super::{Action, Meaning, Reference, Row};
use crate::values;

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Answer from hosts files.
    Hosts,
    /// Answer from `local` and the special-use names.
    Local,
    /// End: answer with this code.
    Reject(Rcode),
    /// End: say nothing.
    Drop,
}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        word: "hosts",
        arguments: "",
        text: "Answers from hosts files, if they hold the name.",
        read: |_| Ok(Action::Answer(Answer::Hosts)),
    },
    Row {
        word: "local",
        arguments: "",
        text: "Answers from `local`, and names that never leave a server (`localhost`, reverse zones of private \
               addresses, `invalid`, …).",
        read: |_| Ok(Action::Answer(Answer::Local)),
    },
    Row {
        word: "reject",
        arguments: "RCODE",
        text: "Ends with this response code: `noerror`, `nxdomain`, `refused`, `servfail`, `notimp` or `formerr`.",
        read: |arguments| Ok(Action::Answer(Answer::Reject(arguments.positional(values::rcode)?.value))),
    },
    Row {
        word: "drop",
        arguments: "",
        text: "Ends without a reply.",
        read: |_| Ok(Action::Answer(Answer::Drop)),
    },
];

impl Answer {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match self {
            Self::Hosts => Meaning::Looks("hosts"),
            Self::Local => Meaning::Looks("local"),
            Self::Reject(_) | Self::Drop => Meaning::Ends,
        }
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Hosts | Self::Local | Self::Reject(_) | Self::Drop => Vec::new(),
        }
    }
}
