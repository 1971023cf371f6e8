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

/// Checks that a library has `rustdoc` look for examples in its comments where there are some, and
/// only there: reading a crate for nothing takes a second or two, for each of them.
pub(crate) fn examples(files: &[File], findings: &mut Vec<Finding>) {
    for manifest in files.iter().filter(|file| file.name() == "Cargo.toml") {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let Some(library) = manifest.text.lines().position(|line| line == "[lib]") else { continue };
        let is_off = section(&manifest.text, library).any(|line| line == "doctest = false");
        let sources = format!("{folder}src/");
        let mut sources = files.iter().filter(|file| file.path.starts_with(&sources));
        let example = sources.find_map(|file| Some((file, example(&file.text)?)));
        match example {
            Some((file, line)) if is_off => {
                let message = "nobody runs this example: take `doctest = false` out of the crate's manifest";
                findings.push(Finding::error(&file.path, line, message));
            }
            None if !is_off => {
                let message = "no comment has an example: say `doctest = false` under `[lib]`";
                findings.push(Finding::error(&manifest.path, library + 1, message));
            }
            _ => {}
        }
    }
}

/// Returns the lines of a manifest's section, whose headline is at this line, counted from zero.
fn section(manifest: &str, headline: usize) -> impl Iterator<Item = &str> {
    manifest.lines().skip(headline + 1).take_while(|line| !line.starts_with('['))
}

/// Returns the line of the first example that `rustdoc` would compile.
fn example(text: &str) -> Option<usize> {
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_inside = false;
            continue;
        };
        let Some(language) = comment.trim_start().strip_prefix("```") else { continue };
        if !is_inside && language != "text" {
            return Some(number + 1);
        }
        is_inside = !is_inside;
    }
    None
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

    #[test]
    fn examples_in_comments_are_run_where_there_are_some() {
        let check = |manifest: &str, source: &str, expected: &[(usize, &str)]| {
            let mut findings = Vec::new();
            let manifest = File::new("crates/a/Cargo.toml", manifest);
            let source = File::new("crates/a/src/lib.rs", source);
            examples(&[manifest, source, File::new("crates/b/src/lib.rs", "/// ```\n")], &mut findings);
            expect(&findings, expected);
        };
        let (off, on) = ("[lib]\nname = \"a\"\ndoctest = false\n", "[package]\n[lib]\nname = \"a\"\n");
        check(off, "/// ```text\n/// a\n/// ```\n", &[]);
        check(on, "/// ```text\n/// ```\n\n    /// ```\n    /// let a = 1;\n    /// ```\n", &[]);
        check(off, "/// A.\n/// ```compile_fail\n", &[(2, "nobody runs this example")]);
        check(on, "/// A.\n", &[(2, "no comment has an example")]);
        check("[package]\n", "/// A.\n", &[]);
    }
}
