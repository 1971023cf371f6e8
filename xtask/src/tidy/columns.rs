//! How wide comments and documents may be.
//!
//! What cannot be broken may be wider: tables, code, drawings, and a word that is longer than a
//! line.

use super::{File, Finding};

/// Wider text is hard to read, and two versions of it do not fit beside each other.
const COLUMNS_MAX: usize = 100;

/// Documents that programs write, and the changelog, whose lines have a limit of their own.
const NOT_PROSE: [&str; 5] = [
    "docs/manual/settings.md",
    "docs/manual/unbound-keywords.md",
    "docs/manual/commands.md",
    "/report.md",
    "CHANGELOG.md",
];

/// Checks the comments of all sources, and all documents.
pub(crate) fn project(files: &[File], findings: &mut Vec<Finding>) {
    for file in files {
        let wide = if file.has_extension("rs") {
            comments(&file.text)
        } else if file.has_extension("md") && is_prose(&file.path) {
            prose(&file.text)
        } else {
            continue;
        };
        for line in wide {
            let message = format!("wider than {COLUMNS_MAX} columns: wrap it");
            findings.push(Finding::error(&file.path, line, message));
        }
    }
}

fn is_prose(path: &str) -> bool {
    !NOT_PROSE.iter().any(|end| path.ends_with(end))
}

/// Returns the lines of a source whose comments are too wide.
fn comments(text: &str) -> Vec<usize> {
    let marks = ["///", "//!", "//"];
    let words = text.lines().map(|line| {
        let comment = line.trim_start();
        (line, marks.iter().find_map(|mark| comment.strip_prefix(mark)))
    });
    let mut is_code = false;
    let mut wide = Vec::new();
    for (at, (line, comment)) in words.enumerate() {
        let Some(comment) = comment else {
            is_code = false;
            continue;
        };
        is_code ^= comment.trim_start().starts_with("```");
        if !is_code && is_too_wide(line, comment) {
            wide.push(at + 1);
        }
    }
    wide
}

/// Returns the lines of a document whose prose is too wide.
fn prose(text: &str) -> Vec<usize> {
    let mut is_code = false;
    let mut wide = Vec::new();
    for (at, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && is_too_wide(line, &format!(" {line}")) {
            wide.push(at + 1);
        }
    }
    wide
}

/// Returns whether a line is too wide although its text, a space in front of it, could be broken.
fn is_too_wide(line: &str, text: &str) -> bool {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let words = text.trim_start();
    let is_set = text.starts_with("    ") || words.starts_with(['|', '#', '<']) || words.contains("  ");
    let is_exception = words.starts_with("tidy: ");
    let columns = line.chars().count();
    let first = words.split_whitespace().next().unwrap_or("").chars().count();
    columns > COLUMNS_MAX && !is_set && !is_exception && first < COLUMNS_MAX / 2
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn find(path: &str, text: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        project(&[File::new(path, text)], &mut findings);
        findings
    }

    #[test]
    fn wide_comments_are_found() {
        let words = "word ".repeat(20);
        let fits = format!("// {}\n", &words[..97]);
        expect(&find("crates/wire/src/a.rs", &fits), &[]);
        for mark in ["//", "///", "//!", "    //"] {
            let text = format!("\n{mark} {words}word\n");
            expect(&find("crates/wire/src/a.rs", &text), &[(2, "wider than 100 columns")]);
        }
        let code = format!("let x = \"{words}{words}\";\n");
        expect(&find("crates/wire/src/a.rs", &code), &[]);
    }

    #[test]
    fn what_cannot_be_broken_may_be_wide() {
        let words = "word ".repeat(30);
        for text in [
            format!("//! ```text\n//! {words}\n//! ```\n"),
            format!("//! | a | {words} |\n"),
            format!("//!     {words}\n"),
            format!("//! header   {words}\n"),
            format!("// {}\n", "-".repeat(120)),
            format!("// tidy: allow(clone): {words}\n"),
        ] {
            expect(&find("crates/wire/src/a.rs", &text), &[]);
        }
    }

    #[test]
    fn documents_are_wrapped_but_for_those_of_programs() {
        let words = "word ".repeat(30);
        let text = format!("# {words}\n\n| {words} |\n\n```sh\n{words}\n```\n{words}\n- {words}\n");
        let expected = [(8, "wider than 100"), (9, "wider than 100")];
        expect(&find("docs/manual/zones.md", &text), &expected);
        expect(&find("docs/manual/settings.md", &text), &[]);
        expect(&find("docs/benchmarks/0.1.0/report.md", &text), &[]);
    }
}
