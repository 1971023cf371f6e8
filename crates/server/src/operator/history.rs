//! Who changed what is kept beside the settings.

use std::collections::BTreeMap;

use control::api;
use control::{About, names_rrset, of_zone, rrsets_of};

use super::overlay::rfc3339;
use super::{Operator, OperatorError, unix_seconds};

/// Changes that the history shows unless somebody wants another number, and the most.
const STEPS_SHOWN: u64 = 20;
const STEPS_MAX: usize = 10_000;
/// Rows of the audit log that are searched for who changed something.
const ROWS_SEARCHED: usize = 2_000;
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
            (None, Some(list)) => {
                vec![(format!("list {list}"), None), ("lists".to_owned(), Some(list.as_str()))]
            }
            _ => return Err(OperatorError::Argument("expected a set or a list".to_owned())),
        };
        let mut all: BTreeMap<u64, api::DataStep> = BTreeMap::new();
        for (space, only) in &spaces {
            let steps = self.changing.authority().steps(space, *only, count.min(STEPS_MAX));
            for step in steps.map_err(|error| OperatorError::Refused(error.to_string()))? {
                let changes: Vec<String> =
                    step.edits.iter().flat_map(|edit| shown(space, edit.after.as_deref())).collect();
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

impl Operator {
    /// Returns who changed a dynamic set last; `None` if its changes are not kept.
    pub fn last_change_of_set(&self, set: &str) -> Option<api::LastChange> {
        let space = format!("set {set}");
        self.last_step(&[(space.as_str(), None)])
    }

    /// Returns who changed a list that is kept beside the settings last.
    pub fn last_change_of_list(&self, list: &str) -> Option<api::LastChange> {
        let space = format!("list {list}");
        self.last_step(&[(space.as_str(), None), ("lists", Some(list))])
    }

    pub(super) fn last_step(&self, spaces: &[(&str, Option<&str>)]) -> Option<api::LastChange> {
        let authority = self.changing.authority();
        let steps = spaces.iter().filter_map(|(space, name)| authority.steps(space, *name, 1).ok());
        let last = steps.flatten().max_by_key(|step| step.revision)?;
        Some(api::LastChange { by: last.by, at: rfc3339(last.at) })
    }

    /// Returns who changed a zone last: its own last change since the start, whatever made it; else
    /// what the audit log has of it. `None` if that is not certain: neither an UPDATE nor a
    /// transfer before the start is in the audit log.
    pub fn last_change_of_zone(&self, zone: &str) -> Option<api::LastChange> {
        let apex = super::zones::parse(zone).ok()?;
        let reports = self.components.manager.report(Some(apex.as_name()));
        if let Some(report) = reports.first() {
            if let Some(::zones::ZoneChange { by, at }) = &report.change {
                return Some(api::LastChange { by: by.clone(), at: rfc3339(*at) });
            }
            if report.takes_updates || report.role == ::zones::Role::Secondary {
                return None;
            }
        }
        self.last_done(|row| of_zone(row, zone))
    }

    /// Returns who had something done last that was not refused, as the audit log has it; `None` if
    /// another row hides who that was.
    fn last_done(&self, about: impl Fn(&api::AuditFields) -> About) -> Option<api::LastChange> {
        let rows = self.changing.authority().audited(None, ROWS_SEARCHED).ok()?;
        // What was refused was accepted before.
        let mut refused: Vec<(String, String)> = Vec::new();
        for row in rows.into_iter().rev() {
            let row = api::AuditRow { row: row.text, ..api::AuditRow::default() }.fields();
            match about(&row) {
                About::It => {}
                About::Perhaps => return None,
                About::Other => continue,
            }
            let of = (row.by, row.on);
            match refused.iter().position(|known| *known == of) {
                _ if row.outcome != "accepted" => refused.push(of),
                Some(at) => drop(refused.swap_remove(at)),
                None => return Some(api::LastChange { by: of.0, at: rfc3339(row.at) }),
            }
        }
        None
    }

    /// Returns who changed RRsets of a zone last over the API or by command, as the audit log has
    /// it; of one RRset if its name and type are said. `None` if something else, such as an UPDATE,
    /// has changed the zone since.
    pub fn last_change_of_rrsets(&self, zone: &str, rrset: Option<(&str, &str)>) -> Option<api::LastChange> {
        let apex = super::zones::parse(zone).ok()?;
        let report = self.components.manager.report(Some(apex.as_name())).into_iter().next();
        // Nobody knows which UPDATEs there were before the start.
        let begun = unix_seconds().saturating_sub(self.facts.clock.since_start().as_secs());
        let others_at = report.and_then(|report| match report.takes_updates {
            true => report.changed_by_others_at.max(Some(begun)),
            false => report.changed_by_others_at,
        });
        self.last_done(|row| match rrsets_of(row, zone) {
            Some(_) if others_at.is_some_and(|at| at >= row.at) => About::Perhaps,
            Some(rrsets) if rrset.is_none_or(|rrset| names_rrset(rrsets, rrset)) => About::It,
            Some(_) | None => About::Other,
        })
    }
}

/// Returns what was added and removed, as the text of a change says it; without one, the entry is
/// gone.
fn shown(space: &str, text: Option<&str>) -> Vec<String> {
    // A set's lines have a checksum, and when what was added leaves.
    let of_set = |line: &str| {
        let (_, line) = line.split_once(' ')?;
        match line.split_once(' ')? {
            ("+", rest) => Some(format!("+{}", rest.split_once(' ')?.1)),
            ("-", item) => Some(format!("-{item}")),
            _ => None,
        }
    };
    match (space.split_once(' '), text) {
        (Some(("set", _)), Some(text)) => text.lines().filter_map(of_set).collect(),
        (Some(("list", _)), Some(text)) => text.lines().map(str::to_owned).collect(),
        // It is in the text of the list now, or the list is gone, which its own entry says.
        (Some(_), None) => Vec::new(),
        (_, Some(text)) => vec![match text.split(' ').nth(1) {
            Some(octets) => format!("written as a whole, {octets} octets"),
            None => "made".to_owned(),
        }],
        (None, None) => vec!["removed".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn changes_are_shown_as_they_were_asked_for_and_a_list_that_is_gone_as_removed() {
        assert_eq!(shown("set s", Some("0 + 7 a.example\n0 - b.example\n")), ["+a.example", "-b.example"]);
        assert_eq!(shown("list mine", Some("+a.example\n-b.example\n")), ["+a.example", "-b.example"]);
        assert_eq!(shown("lists", Some("")), ["made"]);
        assert_eq!(shown("lists", Some("abc 12 3")), ["written as a whole, 12 octets"]);
        assert_eq!(shown("lists", None), ["removed"]);
        assert!(shown("list mine", None).is_empty() && shown("set s", None).is_empty());
    }
}
