//! Licences of what we depend on: each package's expression must hold with nothing but licences
//! that `deny.toml` allows.
//!
//! The same list as cargo-deny's, checked whether that is installed or not. `cargo tree` says what
//! every package declares; whether its files agree is for cargo-deny.

use super::{File, Finding};
use crate::run::{cargo, output};
use std::collections::BTreeSet;

/// Checks the packages that the workspace is built from, as the lock file pins them.
pub(crate) fn check(files: &[File], findings: &mut Vec<Finding>) -> Result<(), String> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
    let deny = text("deny.toml");
    let mut command =
        cargo(["tree", "--locked", "--workspace", "--all-features", "--edges", "normal,build,dev"]);
    for target in strings(deny, "graph", "targets") {
        command.args(["--target", target]);
    }
    command.args(["--prefix", "none", "--format", "{p}|{l}"]);
    packages(&output(&mut command)?, deny, text("Cargo.lock"), findings);
    Ok(())
}

/// Checks what `cargo tree` printed: a package with its version, a bar, and its licences, on each
/// line.
fn packages(tree: &str, deny: &str, lock: &str, findings: &mut Vec<Finding>) {
    let allowed = strings(deny, "licenses", "allow");
    // A package that was shown before is shown again with a mark behind it.
    let lines: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    for line in lines {
        let Some((package, licences)) = line.split_once('|') else { continue };
        let mut words = package.split(' ');
        let name = words.next().unwrap_or("");
        let version = words.next().unwrap_or("").trim_start_matches('v');
        let at = lock_line(lock, name, version);
        let message = match holds(licences, &allowed) {
            Ok(true) => continue,
            Ok(false) => {
                format!("`{name}` is under `{licences}`, which the list in deny.toml does not allow")
            }
            Err(why) => format!("`{name}` says `{licences}` of its licence: {why}"),
        };
        findings.push(Finding::error("Cargo.lock", at, message));
    }
}

/// Returns the line of a package in the lock file, or the first.
fn lock_line(lock: &str, name: &str, version: &str) -> usize {
    let (name, version) = (format!("name = \"{name}\""), format!("version = \"{version}\""));
    let mut lines = lock.lines().zip(lock.lines().skip(1));
    lines.position(|pair| pair == (name.as_str(), version.as_str())).map_or(1, |index| index + 1)
}

/// Returns the strings of a list in a TOML file of ours: `key = [` with one string or more on each
/// line, up to `]`.
fn strings<'a>(toml: &'a str, section: &str, key: &str) -> Vec<&'a str> {
    let section = format!("[{section}]");
    let lines = toml.lines().skip_while(|line| *line != section).skip(1);
    let own = lines.take_while(|line| !line.starts_with('['));
    let is_key = |line: &&str| line.split_once('=').is_some_and(|(found, _)| found.trim() == key);
    let mut found = Vec::new();
    for line in own.skip_while(|line| !is_key(line)) {
        found.extend(line.split('"').skip(1).step_by(2));
        if line.trim_end().ends_with(']') {
            break;
        }
    }
    found
}

/// Returns whether a licence expression of SPDX holds with these licences alone.
///
/// `OR` needs one side, `AND` both; `WITH` binds a licence and its exception to one entry of the
/// list. A slash between licences is how `OR` was written before SPDX expressions were.
fn holds(expression: &str, allowed: &[&str]) -> Result<bool, &'static str> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut reader = Reader { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let holds = reader.any()?;
    if reader.at == reader.words.len() { Ok(holds) } else { Err("expected AND, OR or the end") }
}

/// Reads an expression word by word.
struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [&'a str],
}

impl Reader<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Result<bool, &'static str> {
        let mut holds = self.all()?;
        while self.takes("OR") {
            holds |= self.all()?;
        }
        Ok(holds)
    }

    fn all(&mut self) -> Result<bool, &'static str> {
        let mut holds = self.one()?;
        while self.takes("AND") {
            holds &= self.one()?;
        }
        Ok(holds)
    }

    fn one(&mut self) -> Result<bool, &'static str> {
        if self.takes("(") {
            let holds = self.any()?;
            return if self.takes(")") { Ok(holds) } else { Err("expected `)`") };
        }
        let mut licence = self.name()?.to_string();
        if self.takes("WITH") {
            licence = format!("{licence} WITH {}", self.name()?);
        }
        Ok(self.allowed.contains(&licence.as_str()))
    }

    fn name(&mut self) -> Result<&str, &'static str> {
        let word =
            self.words.get(self.at).copied().filter(|word| !["AND", "OR", "WITH", "(", ")"].contains(word));
        self.at += 1;
        word.ok_or("expected the name of a licence")
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const ALLOWED: [&str; 4] = ["Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC", "MIT"];

    fn check(expression: &str, expected: Result<bool, &str>) {
        assert_eq!(holds(expression, &ALLOWED), expected, "{expression}");
    }

    #[test]
    fn one_side_of_or_is_enough_and_of_and_it_is_not() {
        check("MIT", Ok(true));
        check("MIT OR GPL-3.0-only", Ok(true));
        check("GPL-3.0-only OR MIT", Ok(true));
        check("MIT AND GPL-3.0-only", Ok(false));
        check("ISC AND MIT", Ok(true));
        check("GPL-3.0-only", Ok(false));
    }

    #[test]
    fn and_binds_more_than_or_and_parentheses_more_than_both() {
        check("MIT OR ISC AND GPL-3.0-only", Ok(true));
        check("(MIT OR ISC) AND GPL-3.0-only", Ok(false));
        check("ISC AND (Apache-2.0 OR GPL-3.0-only) AND (MIT OR (GPL-3.0-only AND ISC))", Ok(true));
    }

    #[test]
    fn an_exception_is_a_part_of_its_licence() {
        check("Apache-2.0 WITH LLVM-exception", Ok(true));
        check("MIT WITH LLVM-exception", Ok(false));
    }

    #[test]
    fn a_slash_is_an_old_or() {
        check("GPL-3.0-only/MIT", Ok(true));
        check("GPL-3.0-only / LGPL-3.0-only", Ok(false));
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        check("", Err("expected the name of a licence"));
        check("MIT OR", Err("expected the name of a licence"));
        check("MIT AND OR ISC", Err("expected the name of a licence"));
        check("(MIT OR ISC", Err("expected `)`"));
        check("MIT ISC", Err("expected AND, OR or the end"));
        check("MIT)", Err("expected AND, OR or the end"));
    }

    #[test]
    fn a_package_that_is_not_allowed_is_pointed_at_in_the_lock_file() {
        let deny = "[graph]\ntargets = [\"a\", \"b\"]\n\n[licenses]\nversion = 2\n# allow = none\nallow = [\n    \"ISC\",\n    \"MIT\",\n]\n\n[bans]\nallow = [\"GPL-3.0-only\"]\n";
        assert_eq!(strings(deny, "graph", "targets"), ["a", "b"]);
        assert_eq!(strings(deny, "licenses", "allow"), ["ISC", "MIT"]);
        let lock = "version = 4\n\n[[package]]\nname = \"b\"\nversion = \"0.9.0\"\n\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";
        let tree = "a v1.0.0|MIT\nb v1.0.0|GPL-3.0-only\nb v1.0.0|GPL-3.0-only (*)\n\nc v2.0.0 (/here)|\n";
        let mut findings = Vec::new();
        packages(tree, deny, lock, &mut findings);
        expect(&findings, &[(8, "`b` is under `GPL-3.0-only`"), (1, "`c` says `` of its licence")]);
    }
}
