//! Rules for all Rust code: no mutable statics, no sleeping, names that say something.

use super::Finding;
use super::layers::crate_of;
use super::source::Source;

/// Types that make a `static` mutable.
const MUTABLE: [&str; 8] =
    ["Atomic", "Mutex", "RwLock", "OnceLock", "LazyLock", "OnceCell", "LazyCell", "RefCell"];

/// Module names that say nothing.
const NAMELESS: [&str; 5] = ["util", "utils", "helpers", "misc", "common"];

/// Checks one file.
pub(crate) fn file(source: &Source<'_>, findings: &mut Vec<Finding>) {
    let name = source.path.rsplit('/').next().unwrap_or("").trim_end_matches(".rs");
    if NAMELESS.contains(&name) {
        let message = format!("a module called `{name}` says nothing about what is in it; name the concept");
        findings.push(Finding::error(source.path, 1, message));
    }
    for at in source.code.match_indices("static mut ").map(|(at, _)| at) {
        let message = "`static mut`: what is shared is created in `server` and passed";
        findings.push(Finding::error(source.path, source.line(at), message));
    }
    if crate_of(source.path).is_some() {
        statics(source, findings);
    }
    // xtask and the benchmarks measure and wait; nothing else has a reason to.
    if !source.path.starts_with("bench/") {
        let sleep = concat!("thread::", "sleep");
        for at in source.code.match_indices(sleep).map(|(at, _)| at) {
            if !source.allows("sleep", at) {
                let message = format!("`{sleep}`: wait for what you expect, with a deadline");
                findings.push(Finding::error(source.path, source.line(at), message));
            }
        }
    }
}

fn statics(source: &Source<'_>, findings: &mut Vec<Finding>) {
    for at in source.find("static") {
        let declaration = source.code.get(at..).unwrap_or("");
        let before = source.code.get(..at).unwrap_or("");
        // `&'static str` is a lifetime.
        if before.ends_with('\'') {
            continue;
        }
        let typed = declaration.split(['=', ';']).next().unwrap_or("");
        let is_mutable = MUTABLE.iter().any(|mutable| typed.contains(mutable));
        if is_mutable && !source.allows("static", at) {
            let message = "a `static` that changes: what is shared is created in `server` and passed";
            findings.push(Finding::error(source.path, source.line(at), message));
        }
    }
    for at in source.find("thread_local!") {
        if !source.allows("static", at) {
            let message = "`thread_local!` is a hidden argument: let the worker own it";
            findings.push(Finding::error(source.path, source.line(at), message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn check(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        file(&Source::read(path, text), &mut findings);
        expect(&findings, expected);
    }

    #[test]
    fn nothing_shared_is_a_mutable_static() {
        check("crates/wire/src/x.rs", "static A: &str = \"a\";\nfn f(x: &'static str) {}\n", &[]);
        check("crates/wire/src/x.rs", "static mut A: u8 = 0;\n", &[(1, "`static mut`")]);
        check(
            "crates/wire/src/x.rs",
            "\nstatic A: AtomicU64 = AtomicU64::new(0);\n",
            &[(2, "a `static` that changes")],
        );
        check(
            "crates/wire/src/x.rs",
            "static A: std::sync::OnceLock<u8> = f();\n",
            &[(1, "a `static` that changes")],
        );
        check("crates/wire/src/x.rs", "thread_local! { }\n", &[(1, "`thread_local!` is a hidden argument")]);
    }

    #[test]
    fn tests_may_count_in_a_static() {
        check("crates/wire/tests/x.rs", "static A: AtomicU64 = AtomicU64::new(0);\n", &[]);
        check("tests/tests/x.rs", "static A: AtomicU64 = AtomicU64::new(0);\n", &[]);
    }

    #[test]
    fn nobody_sleeps_not_even_tests() {
        let text = concat!("fn f() { thread::", "sleep(d); }\n");
        check("crates/wire/tests/x.rs", text, &[(1, "`thread::")]);
        check("bench/src/x.rs", text, &[]);
    }

    #[test]
    fn modules_have_names_that_say_something() {
        check("crates/wire/src/util.rs", "", &[(1, "a module called `util`")]);
        check("crates/wire/src/name.rs", "", &[]);
    }
}
