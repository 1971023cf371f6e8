//! Who changed what is kept beside the settings.

use std::collections::BTreeMap;

use control::api;

use super::overlay::rfc3339;
use super::{Operator, OperatorError};

/// Changes that the history shows unless somebody wants another number, and the most.
const STEPS_SHOWN: u64 = 20;
const STEPS_MAX: usize = 10_000;
/// What was added and removed by one of them that it shows.
const CHANGES_SHOWN_MAX: usize = 100;

impl Operator {
    /// Says who changed a dynamic set or a list that is kept beside the settings, the newest change
    /// first.
    ///
    /// # Errors
    ///
    /// Neither is named, or the store cannot be read.
    pub fn data_history(&self, asked: &api::DataHistory) -> Result<Vec<api::DataStep>, OperatorError> {
        let count = usize::try_from(asked.count.unwrap_or(STEPS_SHOWN)).unwrap_or(usize::MAX);
        let spaces = match (&asked.set, &asked.list) {
            (Some(set), None) => vec![(format!("set {set}"), None)],
            (None, Some(list)) => vec![(format!("list {list}"), None), ("lists".to_owned(), Some(list))],
            _ => return Err(OperatorError::Argument("expected a set or a list".to_owned())),
        };
        let mut all: BTreeMap<u64, api::DataStep> = BTreeMap::new();
        for (space, only) in &spaces {
            let steps = self.changing.authority().steps(space, count.min(STEPS_MAX));
            for step in steps.map_err(|error| OperatorError::Refused(error.to_string()))? {
                let edits = step.edits.iter().filter(|edit| only.is_none_or(|name| *name == edit.name));
                let texts = edits.filter_map(|edit| edit.after.as_deref());
                let changes: Vec<String> = texts.flat_map(|text| shown(space, text)).collect();
                if changes.is_empty() {
                    continue;
                }
                let known = all.entry(step.revision).or_insert_with(|| api::DataStep {
                    revision: step.revision,
                    by: step.by.clone(),
                    at: rfc3339(step.at),
                    ..api::DataStep::default()
                });
                known.count += changes.len() as u64;
                known.changes.extend(changes.into_iter().take(CHANGES_SHOWN_MAX));
            }
        }
        Ok(all.into_values().rev().take(count).collect())
    }
}

/// Returns what was added and removed, as the text of a change says it.
fn shown(space: &str, text: &str) -> Vec<String> {
    // A set's lines have a checksum, and when what was added leaves.
    let of_set = |line: &str| {
        let (_, line) = line.split_once(' ')?;
        match line.split_once(' ')? {
            ("+", rest) => Some(format!("+{}", rest.split_once(' ')?.1)),
            ("-", item) => Some(format!("-{item}")),
            _ => None,
        }
    };
    match space.split_once(' ') {
        Some(("set", _)) => text.lines().filter_map(of_set).collect(),
        Some(("list", _)) => text.lines().map(str::to_owned).collect(),
        _ => vec![match text.split(' ').nth(1) {
            Some(octets) => format!("written as a whole, {octets} octets"),
            None => "made".to_owned(),
        }],
    }
}
