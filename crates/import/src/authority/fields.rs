//! Settings of one item as Knot and NSD have them: words with values, some of them several times.

use diagnostic::suggest::nearest;
use diagnostic::{At, Problem};

use super::Files;

/// `key: value` or `key: [value, value]`.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: At<String>,
    pub(super) values: Vec<At<String>>,
}

/// What there is about settings of one kind of item.
pub(super) struct Known {
    /// What is carried over.
    pub(super) used: &'static [&'static str],
    /// What is not needed here, and why.
    pub(super) left_out: &'static [(&'static str, &'static str)],
    /// What cannot be had here, and why.
    pub(super) refused: &'static [(&'static str, &'static str)],
}

impl Known {
    /// Speaks of all entries that are not carried over; `owner` is what has them, such as "Knot's
    /// server".
    pub(super) fn check(&self, owner: &str, entries: &[Entry], files: &mut Files<'_>) {
        for Entry { key, .. } in entries {
            let word = key.value.as_str();
            let find = |all: &[(&'static str, &'static str)]| {
                all.iter().find(|(known, _)| *known == word).map(|(_, why)| *why)
            };
            if self.used.contains(&word) {
                continue;
            }
            if let Some(why) = find(self.left_out) {
                files.warn(key.span, format!("\"{word}\" is left out: {why}"));
            } else if let Some(why) = find(self.refused) {
                files.wrong(key.span, format!("\"{word}\" cannot be carried over: {why}"));
            } else {
                let all = self.left_out.iter().chain(self.refused).map(|(known, _)| *known);
                let problem =
                    Problem::error(key.span, format!("{owner} has no setting \"{word}\" that is known here"));
                files.problems.push(match nearest(word, self.used.iter().copied().chain(all)) {
                    Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                    None => problem,
                });
            }
        }
    }
}

/// Settings of an item, and of what stands behind it where it says nothing.
pub(super) struct Fields<'a>(pub(super) Vec<&'a [Entry]>);

impl<'a> Fields<'a> {
    /// Returns every occurrence of a key, in the first section that has it at all.
    pub(super) fn entries(&self, key: &str) -> Vec<&'a Entry> {
        let of = |entries: &&'a [Entry]| -> Vec<&'a Entry> {
            entries.iter().filter(|entry| entry.key.value == key).collect()
        };
        self.0.iter().map(of).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Returns all values of a key.
    pub(super) fn all(&self, key: &str) -> Vec<&'a At<String>> {
        self.entries(key).into_iter().flat_map(|entry| &entry.values).collect()
    }

    /// Returns the value of a key, the last if there are several.
    pub(super) fn one(&self, key: &str) -> Option<&'a At<String>> {
        self.all(key).pop()
    }

    /// Returns a yes or no.
    pub(super) fn flag(&self, key: &str, files: &mut Files<'_>) -> Option<At<bool>> {
        let At { value, span } = self.one(key)?;
        let value = match value.as_str() {
            "on" | "yes" | "true" => true,
            "off" | "no" | "false" => false,
            other => {
                files.wrong(*span, format!("\"{other}\" is neither yes nor no"));
                return None;
            }
        };
        Some(At { value, span: *span })
    }

    /// Returns a whole number.
    pub(super) fn number(&self, key: &str, files: &mut Files<'_>) -> Option<At<u64>> {
        let At { value, span } = self.one(key)?;
        match value.parse() {
            Ok(value) => Some(At { value, span: *span }),
            Err(_) => {
                files.wrong(*span, format!("\"{value}\" is no whole number"));
                None
            }
        }
    }
}
