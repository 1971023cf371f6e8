//! Actions that change the answer there is.

use std::time::Duration;

use super::{Action, Meaning, Reference, Row};
use crate::policy::arguments::{Arguments, Reported};
use crate::source::At;
use crate::values::{self, Misread, Read};

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Change the TTLs of the answer.
    Ttl(TtlChange),
}

/// What becomes of TTLs. One variant per meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlChange {
    /// All become this.
    Fixed(Duration),
    /// They are kept between these.
    Clamped {
        /// At least.
        min: Option<Duration>,
        /// At most.
        max: Option<Duration>,
    },
}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[Row {
    word: "ttl",
    arguments: "fixed TIME | min TIME, max TIME",
    text: "Changes the TTLs of the answer that the client gets: `ttl(fixed 60s)`, `ttl(min 10s, max 1h)`, `ttl(max 1h)`.",
    read: |arguments| ttl(arguments).map(|change| Action::Edit(Edit::Ttl(change))),
}];

impl Edit {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match self {
            Self::Ttl(_) => Meaning::Passes,
        }
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Ttl(_) => Vec::new(),
        }
    }
}

/// Seconds of the longest TTL (RFC 2181 §8).
const TTL_SECONDS_MAX: u64 = i32::MAX as u64;

/// Reads a time that fits into a TTL.
pub(super) fn ttl_time(text: &str) -> Read<Duration> {
    let duration = values::duration(text)?;
    if duration > Duration::from_secs(TTL_SECONDS_MAX) {
        return Err(Misread {
            at: 0..text.len(),
            message: format!("\"{text}\" is too long for a TTL"),
            expected: Some("at most 68 years (RFC 2181 §8)".to_owned()),
            hint: None,
        });
    }
    Ok(duration)
}

fn ttl(arguments: &mut Arguments<'_>) -> Result<TtlChange, Reported> {
    let fixed = arguments.keyed("fixed", ttl_time)?;
    let min = arguments.keyed("min", ttl_time)?;
    let max = arguments.keyed("max", ttl_time)?;
    match (fixed, min, max) {
        (None, None, None) => Err(arguments.missing()),
        (Some(fixed), None, None) => Ok(TtlChange::Fixed(fixed.value)),
        (Some(_), Some(other), _) | (Some(_), None, Some(other)) => Err(arguments.wrong(
            other.span,
            "a fixed TTL has no bounds",
            "either \"fixed\" or \"min\" and \"max\"",
        )),
        (None, Some(min), Some(max)) if min.value > max.value => {
            Err(arguments.wrong(min.span, "the smallest TTL is larger than the largest", ""))
        }
        (None, min, max) => {
            let value = |at: Option<At<Duration>>| at.map(|at| at.value);
            Ok(TtlChange::Clamped { min: value(min), max: value(max) })
        }
    }
}
