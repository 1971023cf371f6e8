//! What was made is looked at as `gannet check` would, before anybody sees it: a mistake there is
//! one of the source.

use std::path::Path;

use diagnostic::{FileId, Problem, Severity, Sources, Span};
use environment::Environment;

use super::Diagnostic;

/// A place in the new file.
struct Made<'t> {
    /// The section, such as `upstreams`.
    section: &'t str,
    /// What it is about there, if sections of this kind name things.
    name: Option<&'t str>,
    /// What is marked.
    marked: String,
}

/// Returns what `gannet check` would refuse of `text`, each at its place in what it was made of.
/// `owner` returns the place in the source of a thing by its section and name in the new file.
///
/// Files that are not there, and mistakes in them, are warnings: the new file may be meant for
/// another machine.
pub(super) fn verify(
    path: &Path,
    text: &str,
    environment: &dyn Environment,
    sources: &Sources,
    owner: &dyn Fn(&str, &str) -> Option<Span>,
) -> Vec<Problem> {
    let path = path.with_file_name("gannet.yaml");
    let found = match settings::load::load_text(&path, text, environment) {
        Ok(loaded) => config::compile(&loaded, &[], None, environment).err().unwrap_or_default(),
        Err(found) => found,
    };
    let errors = found.into_iter().filter(|found| found.severity == Severity::Error);
    let problems = errors.map(|found| {
        let is_of_file = found.file != path || found.message.contains("cannot read ");
        let made = made_at(text, &found);
        let span = place(&made, sources, owner);
        if is_of_file {
            return Problem::warning(
                span,
                format!("as it stands, \"gannet check\" refuses this: {}", found.message),
            );
        }
        let message = format!("what this becomes, \"{}\", is refused: {}", made.marked, found.message);
        let problem = Problem::error(span, message);
        let problem = match found.expected {
            Some(expected) => problem.expected(expected),
            None => problem,
        };
        match found.hint {
            // Hints may speak of lines of the new file, which nobody has.
            Some(hint) if !hint.contains("line ") => problem.hint(hint),
            _ => problem,
        }
    });
    problems.collect()
}

/// Returns what stands where a mistake was found.
fn made_at<'t>(text: &'t str, found: &Diagnostic) -> Made<'t> {
    let lines: Vec<&str> = text.lines().take(found.line as usize).collect();
    let key = |indent: usize| {
        let is_there = |line: &&&str| {
            let rest = line.trim_start();
            line.len() - rest.len() == indent && !rest.starts_with(['#', '-']) && rest.contains(':')
        };
        let line = lines.iter().rev().find(is_there)?;
        line.trim().split(':').next().map(|key| key.trim_matches(['"', '\'']))
    };
    let line = lines.last().copied().unwrap_or("");
    let skip = (found.column as usize).saturating_sub(1);
    let marked: String = line.chars().skip(skip).take(found.width as usize).collect();
    let marked = marked.trim_matches(['"', '\'', ' ']).to_owned();
    Made { section: key(0).unwrap_or(""), name: key(2), marked }
}

/// Returns the place of the source that a place of the new file was most likely made of.
fn place(made: &Made<'_>, sources: &Sources, owner: &dyn Fn(&str, &str) -> Option<Span>) -> Span {
    let owner = made.name.and_then(|name| owner(made.section, name));
    let first = Span { file: FileId(0), start: 0, end: 0 };
    let from = owner.unwrap_or(first);
    // Times and sizes have units that were not there.
    let digits = made.marked.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    for word in [made.marked.as_str(), digits] {
        let files = sources.files().enumerate();
        let order = files.map(|(number, source)| (FileId(number as u16), source));
        for (file, source) in order {
            let start = if file == from.file { from.start as usize } else { 0 };
            if let Some(at) = find_word(source.text(), start, word) {
                return Span { file, start: at as u32, end: (at + word.len()) as u32 };
            }
            if file == from.file && owner.is_some() {
                return from;
            }
        }
    }
    from
}

/// Returns where `word` stands by itself in `text`, at or after `start`.
fn find_word(text: &str, start: usize, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if word.is_empty() {
        return None;
    }
    let rest = text.get(start..)?;
    let alone = |&(at, _): &(usize, &str)| {
        let before = rest[..at].chars().next_back().is_some_and(is_part);
        let after = rest[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    };
    rest.match_indices(word).find(alone).map(|(at, _)| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_where_it_stands_by_itself() {
        assert_eq!(find_word("a10 10s 10", 0, "10"), Some(8));
        assert_eq!(find_word("10 10", 1, "10"), Some(3));
        assert_eq!(find_word("ü 10", 0, "10"), Some(3));
        assert_eq!(find_word("10", 5, "10"), None);
        assert_eq!(find_word("x", 0, ""), None);
    }
}
