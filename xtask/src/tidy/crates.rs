//! How a crate begins, and that each is where the workspace expects it.

use super::layers::crate_of;
use super::source::Source;
use super::{File, Finding};

/// Modules that may hold unsafe code: the crate, and the module's file or folder in it.
pub(crate) const UNSAFE_MAY: [(&str, &str); 8] = [
    ("xdp", "sys"),
    ("cache", "store::slots"),
    ("sets", "memory"),
    ("listen", "sys"),
    ("exchange", "sys"),
    ("server", "sys"),
    ("daemon", "sys"),
    ("daemon", "privileges"),
];

/// Checks the root file of a crate under `crates/`.
pub(crate) fn root(source: &Source<'_>, findings: &mut Vec<Finding>) {
    let Some(name) = crate_of(source.path) else { return };
    if !source.path.ends_with("/src/lib.rs") && !source.path.ends_with("/src/main.rs") {
        return;
    }
    if UNSAFE_MAY.iter().any(|(known, _)| *known == name) {
        if !source.code.contains("#![deny(unsafe_code)]") && !source.code.contains("#![forbid(unsafe_code)]")
        {
            let message = "begin the crate with `#![deny(unsafe_code)]`; the one module that needs it says `#![expect(unsafe_code, …)]`";
            findings.push(Finding::error(source.path, 1, message));
        }
    } else if !source.code.contains("#![forbid(unsafe_code)]") {
        findings.push(Finding::error(source.path, 1, "begin the crate with `#![forbid(unsafe_code)]`"));
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

/// Checks that unsafe code stays in the modules that are for it.
pub(crate) fn unsafe_code(source: &Source<'_>, findings: &mut Vec<Finding>) {
    let Some(name) = crate_of(source.path) else { return };
    let may = UNSAFE_MAY.iter().any(|(known, module)| {
        let inside = source.path.strip_prefix(&format!("crates/{known}/src/")).unwrap_or("");
        let module = module.replace("::", "/");
        inside == format!("{module}.rs") || inside.starts_with(&format!("{module}/"))
    });
    if may {
        return;
    }
    for at in source.find("unsafe") {
        let modules = UNSAFE_MAY.map(|(name, module)| format!("{name}::{module}")).join(", ");
        let message =
            format!("`unsafe` in `{name}`: unsafe code is in {modules}, wrapped there in safe types");
        findings.push(Finding::error(source.path, source.line(at), message));
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
        check("crates/cache/src/lib.rs", &text, &[(1, "begin the crate with `#![deny(unsafe_code)]`")]);
        let text = GOOD.replace("forbid", "deny");
        check("crates/cache/src/lib.rs", &text, &[]);
    }

    #[test]
    fn unsafe_code_stays_in_its_modules() {
        let check = |path: &str, expected: &[(usize, &str)]| {
            let mut findings = Vec::new();
            unsafe_code(&Source::read(path, "// unsafe\nfn f() { unsafe { g() } }\n"), &mut findings);
            expect(&findings, expected);
        };
        check("crates/cache/src/store/slots.rs", &[]);
        check("crates/listen/src/sys/linux/outbox.rs", &[]);
        check("crates/cache/src/ring.rs", &[(2, "`unsafe` in `cache`")]);
        check("crates/wire/src/sys.rs", &[(2, "`unsafe` in `wire`")]);
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
