//! Rules for every text file, and for the set of files as a whole.

use super::{File, Finding};

/// Marks of unfinished work; written in two halves so that this file does not find itself.
const UNFINISHED: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("HA", "CK:")];

/// Paths and names of the machines we work on, and how we work there: they mean nothing to a
/// reader.
const PRIVATE: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("CONTRACTS", ".md"), concat!("/tmp/bash", "_jobs")];

/// Files that a visitor looks for.
const EXPECTED: [&str; 10] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "rustfmt.toml",
];

/// The one command that runs all tests: in the README for people, in `.ci/run` for machines.
const TEST_COMMAND: &str = "cargo xtask test";

/// The one command that starts the server from a clone.
const RUN_COMMAND: &str = "cargo run --release";

/// Checks that the files a project needs are there and agree.
pub(crate) fn project(files: &[File], findings: &mut Vec<Finding>) {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    for path in EXPECTED {
        if find(path).is_none() {
            findings.push(Finding::error(path, 1, "this file is missing"));
        }
    }
    for (path, commands) in [("README.md", &[RUN_COMMAND, TEST_COMMAND][..]), (".ci/run", &[TEST_COMMAND])] {
        for command in commands {
            if find(path).is_some_and(|file| !file.text.contains(command)) {
                findings.push(Finding::error(path, 1, format!("does not name `{command}`")));
            }
        }
    }
    if let Some(changelog) = find("CHANGELOG.md")
        && !changelog.text.contains("## Unreleased")
    {
        findings.push(Finding::error("CHANGELOG.md", 1, "lacks the section `## Unreleased`"));
    }
}

/// Checks one file.
pub(crate) fn file(file: &File, findings: &mut Vec<Finding>) {
    // What others wrote (licences) and what programs wrote (lock files, captures) stays as it is.
    let is_ours = !matches!(file.name(), "Cargo.lock" | "LICENSE-APACHE")
        && !["/vectors/", "/seeds/"].iter().any(|data| file.path.contains(data));
    if !is_ours {
        return;
    }
    for (index, line) in file.text.lines().enumerate() {
        let mut found = |message: String| findings.push(Finding::error(&file.path, index + 1, message));
        // In a table of tab-separated values, a tab is the point and an empty last column ends in
        // one.
        let is_table = file.has_extension("tsv");
        // gofmt indents with tabs, and so does what writes go.mod.
        let is_go = file.has_extension("go") || file.name() == "go.mod";
        if line.ends_with([' ', '\t']) && !is_table {
            found("trailing white space".to_string());
        }
        if line.contains('\t') && file.name() != "Makefile" && !is_table && !is_go {
            found("a tab; indent with spaces, write `\\t` in literals".to_string());
        }
        if is_go && line.trim_start_matches('\t').starts_with("  ") {
            found("indented with spaces; gofmt indents with tabs".to_string());
        }
        for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
            found(format!(
                "`{word}`: finish it, or say it in an issue; a known gap goes under `# Limitations`"
            ));
        }
        for word in PRIVATE.iter().filter(|word| line.contains(**word)) {
            found(format!("`{word}` is private to one machine"));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        let lines = file.text.lines().count();
        findings.push(Finding::error(&file.path, lines, "the last line has no end"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn check(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        file(&File::new(path, text), &mut findings);
        expect(&findings, expected);
    }

    #[test]
    fn white_space_is_clean() {
        check("a.rs", "a\n\nb\n", &[]);
        check("a.rs", "a \n", &[(1, "trailing white space")]);
        check("a.md", "a\n\tb\n", &[(2, "a tab")]);
        check("a.go", "a\n\tb\n", &[]);
        check("go.mod", "a\n    b\n", &[(2, "indented with spaces")]);
        check("a.tsv", "a\tb\n1\t\n", &[]);
        check("a.md", "a", &[(1, "the last line has no end")]);
    }

    #[test]
    fn unfinished_work_is_not_left_in_the_code() {
        check("a.rs", concat!("// TO", "DO: more\n"), &[(1, concat!("`TO", "DO`"))]);
        check("a.md", concat!("a\nFIX", "ME\n"), &[(2, concat!("`FIX", "ME`"))]);
    }

    #[test]
    fn private_paths_stay_private() {
        check("a.md", concat!("see /wo", "rk/x\n"), &[(1, concat!("`/wo", "rk/` is private"))]);
    }

    #[test]
    fn what_others_wrote_stays_as_it_is() {
        check("Cargo.lock", "a \n", &[]);
        check("tests/vectors/rfc1035/a.txt", "a \n", &[]);
        check("fuzz/seeds/name/a", "a", &[]);
    }

    #[test]
    fn the_readme_and_ci_name_the_same_command() {
        let mut files: Vec<_> = EXPECTED.iter().map(|path| File::new(path, "")).collect();
        files.push(File::new(".ci/run", "cargo test\n"));
        files.push(File::new("x", ""));
        let mut findings = Vec::new();
        project(&files, &mut findings);
        expect(
            &findings,
            &[
                (1, "does not name `cargo run --release`"),
                (1, "does not name `cargo xtask test`"),
                (1, "does not name `cargo xtask test`"),
                (1, "lacks the section"),
            ],
        );
    }

    #[test]
    fn missing_files_are_named() {
        let mut findings = Vec::new();
        project(&[], &mut findings);
        assert_eq!(findings.len(), EXPECTED.len());
    }
}
