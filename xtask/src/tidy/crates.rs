//! How a crate begins, and that each is where the workspace expects it.

use super::layers::crate_of;
use super::source::Source;
use super::{File, Finding};

/// Crates that may hold unsafe code, and what for.
const UNSAFE_MAY: [(&str, &str); 5] = [
    ("xdp", "rings shared with the kernel"),
    ("cache", "`slots`"),
    ("listen", "`sys`"),
    ("fetch", "`sys`"),
    ("daemon", "privileges"),
];

/// Checks the root file of a crate under `crates/`.
pub(crate) fn root(source: &Source<'_>, findings: &mut Vec<Finding>) {
    let Some(name) = crate_of(source.path) else { return };
    if !source.path.ends_with("/src/lib.rs") && !source.path.ends_with("/src/main.rs") {
        return;
    }
    let may = UNSAFE_MAY.iter().any(|(known, _)| *known == name);
    if !may && !source.code.contains("#![forbid(unsafe_code)]") {
        let names = UNSAFE_MAY.map(|(name, what)| format!("{name} ({what})")).join(", ");
        let message =
            format!("begin the crate with `#![forbid(unsafe_code)]`; only these go without: {names}");
        findings.push(Finding::error(source.path, 1, message));
    }
    let opening = source.opening();
    let opening = opening
        .strip_prefix("Hot path: no allocation, no locks, no waiting, no panics.\n\n")
        .unwrap_or(&opening);
    let identity = opening.lines().next().unwrap_or("");
    if identity.is_empty() || !identity.ends_with(['.', ':']) {
        findings.push(Finding::error(
            source.path,
            1,
            "open the crate with one sentence of what it is (`//! …`)",
        ));
    }
    let has_never =
        opening.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("never"));
    if !has_never {
        findings.push(Finding::error(
            source.path,
            1,
            "the crate's opening comment lacks its `Never …` sentence",
        ));
    }
}

/// Checks that every crate takes the workspace's lints.
pub(crate) fn members(files: &[File], findings: &mut Vec<Finding>) {
    for file in files {
        let is_member =
            file.name() == "Cargo.toml" && file.path.contains('/') && !file.path.starts_with("fuzz/");
        if is_member && !file.text.contains("[lints]\nworkspace = true") {
            let message = "take the one lint table: `[lints]` with `workspace = true`";
            findings.push(Finding::error(&file.path, 1, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn check(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        root(&Source::read(path, text), &mut findings);
        expect(&findings, expected);
    }

    const GOOD: &str = "//! Reads DNS bytes.\n//!\n//! Never allocates.\n\n#![forbid(unsafe_code)]\n";

    #[test]
    fn a_crate_opens_with_what_it_is_and_what_it_never_does() {
        check("crates/wire/src/lib.rs", GOOD, &[]);
        check(
            "crates/wire/src/lib.rs",
            "#![forbid(unsafe_code)]\n",
            &[(1, "open the crate with one sentence"), (1, "the crate's opening comment lacks")],
        );
        check("crates/wire/src/name.rs", "fn f() {}\n", &[]);
    }

    #[test]
    fn unsafe_code_is_forbidden_but_in_a_few_crates() {
        let text = GOOD.replace("#![forbid(unsafe_code)]", "// #![forbid(unsafe_code)]");
        check("crates/wire/src/lib.rs", &text, &[(1, "begin the crate with `#![forbid(unsafe_code)]`")]);
        check("crates/cache/src/lib.rs", &text, &[]);
    }

    #[test]
    fn every_member_takes_the_lints() {
        let mut findings = Vec::new();
        let with = File::new("crates/a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n");
        let without = File::new("crates/b/Cargo.toml", "[package]\n");
        members(&[with, without, File::new("Cargo.toml", "[workspace]\n")], &mut findings);
        expect(&findings, &[(1, "take the one lint table")]);
        assert_eq!(findings[0].path, "crates/b/Cargo.toml");
    }
}
