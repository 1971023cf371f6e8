//! How long files, functions and crates may be.
//!
//! What is long for a reason says so where it stands: a file in its first lines
//! (`//! Long because …`), a function in a comment above it (`// A table: …`). What is too long
//! today and has no such reason is in the lists here. They only get shorter: an entry that is no
//! longer needed is an error.

use super::layers::crate_of;
use super::source::Source;
use super::{File, Finding};
use std::collections::BTreeMap;

/// A longer file is read by nobody from top to bottom.
const FILE_LINES_MAX: usize = 800;

/// A longer function is more than one thought, unless it is a table.
const FUNCTION_LINES_MAX: usize = 100;

/// A larger crate holds more than one subject, and each change of it compiles all of them.
const CRATE_LINES_MAX: usize = 16_000;

/// How a file says in its opening comment why it is long.
const LONG: &str = "//! Long because ";

/// How a function says that its length is that of a table: the rows are alike, and a cut would only
/// hide one.
const TABLE: &str = "// A table: ";

/// What is longer than it may be, without a reason.
struct Exceptions<'a> {
    /// How their paths end, so that a file may move.
    files: &'a [&'a str],
    /// How their files' paths end, and their names.
    functions: &'a [(&'a str, &'a str)],
    crates: &'a [&'a str],
}

const EXCEPTIONS: Exceptions<'_> = Exceptions { files: &[], functions: &[], crates: &[] };

/// Checks the whole repository.
pub(crate) fn all(files: &[File], sources: &[Source<'_>], findings: &mut Vec<Finding>) {
    check(files, sources, &EXCEPTIONS, findings);
}

fn check(files: &[File], sources: &[Source<'_>], exceptions: &Exceptions<'_>, findings: &mut Vec<Finding>) {
    let mut unused_files = exceptions.files.to_vec();
    let mut unused_functions = exceptions.functions.to_vec();
    for source in sources {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX && !source.text.lines().take(20).any(|line| line.starts_with(LONG)) {
            let message = format!(
                "{lines} lines; above {FILE_LINES_MAX} look for the second subject in it, or say `{LONG}…` at the top"
            );
            let finding = Finding::error(source.path, lines, message);
            excuse(&mut unused_files, |file| is_at(source.path, file), finding, findings);
        }
        for function in functions(source).filter(|function| function.lines > FUNCTION_LINES_MAX) {
            let message = format!(
                "`{}` has {} lines; above {FUNCTION_LINES_MAX} cut it, or say `{TABLE}…` above it if it is one",
                function.name, function.lines
            );
            let finding = Finding::error(source.path, function.line, message);
            let is_it = |(file, name): (&str, &str)| name == function.name && is_at(source.path, file);
            excuse(&mut unused_functions, is_it, finding, findings);
        }
    }
    let mut unused_crates = exceptions.crates.to_vec();
    for (name, lines) in crates(files).into_iter().filter(|(_, lines)| *lines > CRATE_LINES_MAX) {
        let message = format!("{lines} lines of source; above {CRATE_LINES_MAX} it is more than one crate");
        let finding = Finding::error(&format!("crates/{name}/Cargo.toml"), 1, message);
        excuse(&mut unused_crates, |exception| exception == name, finding, findings);
    }
    let unused = unused_files.iter().map(ToString::to_string);
    let unused = unused.chain(unused_functions.iter().map(|(path, name)| format!("{name} in {path}")));
    for what in unused.chain(unused_crates.iter().map(|name| format!("the crate {name}"))) {
        let message = format!("{what} is not too long any more: take it out of the list");
        findings.push(Finding::error("xtask/src/tidy/lengths.rs", 1, message));
    }
}

/// Returns whether a path ends with these names.
fn is_at(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Reports a finding unless it is one of the exceptions, which then is used.
fn excuse<T: Copy>(
    unused: &mut Vec<T>,
    is_it: impl Fn(T) -> bool,
    finding: Finding,
    findings: &mut Vec<Finding>,
) {
    match unused.iter().position(|exception| is_it(*exception)) {
        Some(at) => drop(unused.swap_remove(at)),
        None => findings.push(finding),
    }
}

/// Returns the lines of source of each crate, its unit tests among them.
pub(crate) fn crates(files: &[File]) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for file in files.iter().filter(|file| file.has_extension("rs") && file.path.contains("/src/")) {
        if let Some(name) = crate_of(&file.path) {
            *lines.entry(name).or_default() += file.text.lines().count();
        }
    }
    lines
}

struct Function<'a> {
    name: &'a str,
    /// Of its signature.
    line: usize,
    lines: usize,
}

/// Returns the functions of a file that are neither tests nor marked as tables.
fn functions<'a>(source: &'a Source<'_>) -> impl Iterator<Item = Function<'a>> {
    source.find("fn").into_iter().filter_map(move |at| {
        let rest = source.code[at..].strip_prefix("fn ")?;
        let name =
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())?;
        let line = source.line(at);
        let lines = source.line(source.item_end(at) - 1) + 1 - line;
        (lines <= FUNCTION_LINES_MAX || !is_table(source.text, line)).then_some(Function {
            name,
            line,
            lines,
        })
    })
}

/// Returns whether the comments and attributes right above a line say that it begins a table.
fn is_table(text: &str, line: usize) -> bool {
    let above: Vec<&str> = text.lines().take(line - 1).map(str::trim).collect();
    let belongs = |line: &&&str| line.starts_with("//") || line.starts_with("#[") || line.ends_with(")]");
    above.iter().rev().take_while(belongs).any(|line| line.len() > TABLE.len() && line.starts_with(TABLE))
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const NONE: Exceptions<'_> = Exceptions { files: &[], functions: &[], crates: &[] };

    fn find(path: &str, text: &str, exceptions: &Exceptions<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        check(&[File::new(path, text)], &[Source::read(path, text)], exceptions, &mut findings);
        findings
    }

    fn function(lines: usize) -> String {
        format!("fn long(x: u8) -> [u8; 2] {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    #[test]
    fn long_files_say_why() {
        let text = "x();\n".repeat(FILE_LINES_MAX);
        expect(&find("a.rs", &text, &NONE), &[]);
        let text = format!("//! A.\n{text}");
        expect(&find("a.rs", &text, &NONE), &[(801, "801 lines; above 800")]);
        expect(&find("a.rs", &format!("//! A.\n//!\n//! Long because of rows.\n{text}"), &NONE), &[]);
    }

    #[test]
    fn long_functions_are_tables() {
        expect(&find("a.rs", &function(100), &NONE), &[]);
        let text = function(101);
        expect(&find("a.rs", &text, &NONE), &[(1, "`long` has 101 lines; above 100")]);
        expect(&find("a.rs", &format!("// A table: rows.\n#[must_use]\n{text}"), &NONE), &[]);
        expect(&find("a.rs", &format!("// A table: rows.\n\n{text}"), &NONE), &[(3, "`long` has")]);
        expect(&find("crates/wire/tests/all/a.rs", &text, &NONE), &[]);
    }

    #[test]
    fn types_of_functions_are_no_functions() {
        expect(&find("a.rs", &format!("struct A {{ b: fn(u8) }}\n{}", function(100)), &NONE), &[]);
    }

    #[test]
    fn large_crates_are_more_than_one() {
        let lines = "x();\n".repeat(CRATE_LINES_MAX);
        let count = |name: &str| {
            let file = |path: &str, text: &str| File::new(&format!("crates/{name}/{path}"), text);
            let mut findings = Vec::new();
            let files =
                [file("src/a.rs", &lines), file("src/b/c.rs", "x();\n"), file("tests/all/a.rs", &lines)];
            check(&files, &[], &Exceptions { crates: &["wire"], ..NONE }, &mut findings);
            findings
        };
        expect(&count("wire"), &[]);
        expect(
            &count("zone"),
            &[(1, "16001 lines of source"), (1, "the crate wire is not too long any more")],
        );
    }

    #[test]
    fn an_exception_that_is_not_needed_is_an_error() {
        let exceptions = Exceptions { files: &["a.rs"], functions: &[("x/a.rs", "long")], crates: &[] };
        let text = format!("{}{}", function(101), "x();\n".repeat(FILE_LINES_MAX));
        expect(&find("crates/x/a.rs", &text, &exceptions), &[]);
        expect(
            &find("crates/x/a.rs", "fn long() {}\n", &exceptions),
            &[(1, "a.rs is not too long any more"), (1, "long in x/a.rs is not too long any more")],
        );
    }
}
