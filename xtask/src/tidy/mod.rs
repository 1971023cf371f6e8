//! The rules of this repository that no compiler knows, each with its own tests.
//!
//! A rule that is wrong in one place is switched off there, with the reason:
//! `// tidy: allow(clone): the list is short and this runs once per reload`
//! on the line before or on the line itself.

mod code;
mod columns;
mod crates;
mod documents;
mod hot;
mod imports;
mod layers;
mod lengths;
mod licences;
mod source;
mod text;
mod theirs;
mod words;

use source::Source;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// A mistake that a rule found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from one.
    line: usize,
    message: String,
}

impl Finding {
    fn error(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_string(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: error: {}", self.path, self.line, self.message)
    }
}

/// A file of the repository: its path from the root, with `/`, and its text.
pub(crate) struct File {
    path: String,
    text: String,
}

impl File {
    #[cfg(test)]
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_string(), text: text.to_string() }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    fn has_extension(&self, extension: &str) -> bool {
        self.name().rsplit_once('.').is_some_and(|(_, found)| found == extension)
    }
}

/// What the rules make of the repository.
pub(crate) struct Report {
    /// Sorted by path and line.
    pub(crate) findings: Vec<Finding>,
    /// The largest crates and their lines of source.
    pub(crate) largest: Vec<(String, usize)>,
}

/// Crates whose size is told.
const LARGEST: usize = 5;

/// Checks everything that git knows, or would with `git add`.
pub(crate) fn check_repository(root: &Path) -> Result<Report, String> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listing = crate::run::output(&mut git)?;
    let mut files = Vec::new();
    for path in listing.split('\0').filter(|path| !path.is_empty()) {
        // A deleted file is still listed, a captured packet is not text: neither is for us.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            files.push(File { path: path.to_string(), text });
        }
    }
    let mut findings = check(&files);
    licences::check(&files, &mut findings)?;
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    let mut crates: Vec<_> = lengths::crates(&files).into_iter().collect();
    crates.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    let largest = crates.into_iter().take(LARGEST).map(|(name, lines)| (name.to_string(), lines)).collect();
    Ok(Report { findings, largest })
}

/// Checks a set of files.
fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    text::project(files, &mut findings);
    crates::members(files, &mut findings);
    crates::examples(files, &mut findings);
    documents::project(files, &mut findings);
    imports::project(files, &mut findings);
    let rust = files.iter().filter(|file| file.has_extension("rs"));
    let sources: Vec<_> = rust.map(|file| Source::read(&file.path, &file.text)).collect();
    columns::project(files, &mut findings);
    lengths::all(files, &sources, &mut findings);
    theirs::project(files, &sources, &mut findings);
    for source in &sources {
        crates::root(source, &mut findings);
        crates::unsafe_code(source, &mut findings);
        code::file(source, &mut findings);
        hot::file(source, &mut findings);
        layers::source(source, &mut findings);
        words::names(source, &mut findings);
    }
    for file in files {
        text::file(file, &mut findings);
        words::prose(file, &mut findings);
        if file.name() == "Cargo.toml" {
            layers::manifest(file, &mut findings);
        }
    }
    findings
}

/// Asserts what a rule finds: lines, and how each message begins.
#[cfg(test)]
fn expect(findings: &[Finding], expected: &[(usize, &str)]) {
    let found: Vec<_> = findings.iter().map(|finding| (finding.line, finding.message.as_str())).collect();
    let fits = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, expected)| found.0 == expected.0 && found.1.starts_with(expected.1));
    assert!(fits, "found {found:#?}, expected {expected:#?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_points_at_its_line() {
        let finding = Finding::error("crates/wire/src/name.rs", 7, "something");
        assert_eq!(finding.to_string(), "crates/wire/src/name.rs:7: error: something");
    }
}
