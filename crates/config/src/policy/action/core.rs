//! Which way a query goes, and whom it asks.

use super::{Action, Meaning, Noun, Reference, Row};
use crate::policy::condition;
use crate::source::At;

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Core {
    /// Answer from a cache; fill it with what the steps after it bring.
    Cache(At<String>),
    /// Ask an upstream group.
    Forward(At<String>),
    /// End: send what there is.
    Accept,
    /// Put a mark on the query.
    Mark(u8),
    /// Run another policy, then go on here.
    Call(At<String>),
    /// Go back to where this policy was called.
    Return,
}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        word: "cache",
        arguments: "NAME",
        text: "Answers from the cache of that name, and ends; otherwise what the steps after it bring is kept there.",
        read: |arguments| Ok(Action::Core(Core::Cache(arguments.label()?))),
    },
    Row {
        word: "forward",
        arguments: "NAME",
        text: "Asks the upstream group of that name.",
        read: |arguments| Ok(Action::Core(Core::Forward(arguments.label()?))),
    },
    Row {
        word: "accept",
        arguments: "",
        text: "Ends: the answer so far is sent.",
        read: |_| Ok(Action::Core(Core::Accept)),
    },
    Row {
        word: "mark",
        arguments: "NUMBER",
        text: "Puts a mark, 0 to 63, on the query; conditions can look at it.",
        read: |arguments| Ok(Action::Core(Core::Mark(arguments.positional(condition::mark)?.value))),
    },
    Row {
        word: "call",
        arguments: "NAME",
        text: "Runs the policy of that name and goes on here, unless it ended the query.",
        read: |arguments| Ok(Action::Core(Core::Call(arguments.label()?))),
    },
    Row {
        word: "return",
        arguments: "",
        text: "Goes back to where this policy was called; in `main`, ends.",
        read: |_| Ok(Action::Core(Core::Return)),
    },
];

impl Core {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match self {
            Self::Cache(name) => Meaning::Keeps(&name.value),
            Self::Forward(name) => Meaning::Asks(&name.value),
            Self::Accept => Meaning::Ends,
            Self::Mark(_) => Meaning::Passes,
            Self::Call(name) => Meaning::Calls(name),
            Self::Return => Meaning::Returns,
        }
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Cache(name) => vec![Reference { noun: Noun::Cache, name }],
            Self::Forward(name) => vec![Reference { noun: Noun::Group, name }],
            Self::Call(name) => vec![Reference { noun: Noun::Policy, name }],
            Self::Accept | Self::Mark(_) | Self::Return => Vec::new(),
        }
    }
}
