//! The field's terms: private words that once stood for them do not come back.

use super::source::Source;
use super::{File, Finding};
use std::collections::HashMap;

/// Words that no name and no sentence has, and the term to use (see docs/glossary.md).
const REPLACED: [(&str, &str); 11] = [
    ("butler", "task runner"),
    ("chores", "tasks"),
    ("doorman", "TLS acceptor"),
    ("entrance", "listener"),
    ("errand", "prefetch"),
    ("foresee", "prefetch lines"),
    ("knob", "log level"),
    ("librarian", "list store"),
    ("steward", "server link"),
    ("teller", "event sink"),
    ("vigil", "busy polling"),
];

/// Words that are common English and are refused in names only.
const REPLACED_IN_NAMES: [(&str, &str); 3] =
    [("desk", "driver"), ("doctor", "watchdog"), ("tells", "events")];

/// Checks the names of Rust code.
pub(crate) fn names(source: &Source<'_>, findings: &mut Vec<Finding>) {
    // Most names stand in a file many times.
    let mut terms = HashMap::new();
    let mut at = 0;
    for name in source.code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let term = if name.is_empty() { &None } else { terms.entry(name).or_insert_with(|| term(name)) };
        if let Some(term) = term
            && !source.allows("word", at)
        {
            let message = format!("`{name}`: the term is \"{term}\"");
            findings.push(Finding::error(source.path, source.line(at), message));
        }
        at += name.len() + 1;
    }
}

/// Returns the term for a name that has a replaced word in it.
fn term(name: &str) -> Option<&'static str> {
    let all = || REPLACED.iter().chain(&REPLACED_IN_NAMES);
    segments(name).find_map(|segment| all().find(|(word, _)| is_word(segment, word))).map(|(_, term)| *term)
}

/// Checks the sentences of comments and documents.
pub(crate) fn prose(file: &File, findings: &mut Vec<Finding>) {
    let is_history = file.path.starts_with("docs/benchmarks/") || file.name() == "CHANGELOG.md";
    if file.path == "xtask/src/tidy/words.rs" || is_history {
        return;
    }
    let is_rust = file.has_extension("rs");
    if !is_rust && !file.has_extension("md") {
        return;
    }
    for (line, text) in (1..).zip(file.text.lines()) {
        let text = match text.split_once("//") {
            Some((_, comment)) if is_rust => comment,
            None if is_rust => continue,
            _ => text,
        };
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if let Some((_, term)) = REPLACED.iter().find(|(refused, _)| is_word(word, refused)) {
                let message = format!("\"{word}\": the term is \"{term}\"");
                findings.push(Finding::error(&file.path, line, message));
            }
        }
    }
}

/// Splits `begin_errand` and `BeginErrand` into their words.
fn segments(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split('_').filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let bytes = part.as_bytes();
        let starts = (1..bytes.len()).filter(|&at| {
            let (before, here) = (bytes.get(at - 1), bytes.get(at));
            before.is_some_and(u8::is_ascii_lowercase) && here.is_some_and(u8::is_ascii_uppercase)
        });
        let starts: Vec<usize> = std::iter::once(0).chain(starts).chain([part.len()]).collect();
        starts.windows(2).filter_map(|pair| part.get(pair[0]..pair[1])).collect::<Vec<_>>()
    })
}

/// Returns whether a text is a word, in whatever letter case, or its plural.
fn is_word(text: &str, word: &str) -> bool {
    let singular = text.strip_suffix(['s', 'S']).unwrap_or(text);
    text.eq_ignore_ascii_case(word) || singular.eq_ignore_ascii_case(word)
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn check(text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        names(&Source::read("crates/engine/src/lib.rs", text), &mut findings);
        prose(&File::new("crates/engine/src/lib.rs", text), &mut findings);
        expect(&findings, expected);
    }

    #[test]
    fn replaced_words_are_refused_in_names_and_sentences() {
        check("fn begin_errand() {}\nstruct LastDoorman;\n", &[(1, "`begin_errand`"), (2, "`LastDoorman`")]);
        check("// Errands wait.\nfn prefetch() {}\n", &[(1, "\"Errands\"")]);
        check("fn desktop() { let text = \"an errand\"; } // at the desk\n", &[]);
    }
}
