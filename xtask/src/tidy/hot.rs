//! What files of the hot path must not do: allocate, lock, wait, panic.
//!
//! What such a file does once per configuration, worker or connection says so
//! (`// Once per worker.` before the function or `impl`); that, and functions marked `#[cold]`, may
//! allocate. Neither may panic.

use super::Finding;
use super::source::Source;

/// How a file says that it runs per query.
pub(crate) const MARK: &str = "//! Hot path: no allocation, no locks, no waiting, no panics.";

/// Something refused: what is looked for, the rule's name, what to use instead, and whether a
/// `#[cold]` function may.
struct Refused {
    word: &'static str,
    rule: &'static str,
    instead: &'static str,
    cold_may: bool,
}

const fn refused(word: &'static str, rule: &'static str, instead: &'static str) -> Refused {
    Refused { word, rule, instead, cold_may: false }
}

const fn refused_unless_cold(word: &'static str, rule: &'static str, instead: &'static str) -> Refused {
    Refused { word, rule, instead, cold_may: true }
}

const REFUSED: [Refused; 21] = [
    refused_unless_cold("format!", "format", "write into the buffer the caller gave"),
    refused_unless_cold("vec!", "vec", "an array, or a buffer the worker keeps for life"),
    refused_unless_cold("Vec::new", "vec", "an array, or a buffer the worker keeps for life"),
    refused_unless_cold("Vec::with_capacity", "vec", "an array, or a buffer the worker keeps for life"),
    refused_unless_cold("String::new", "string", "bytes in the buffer the caller gave"),
    refused_unless_cold(".to_string()", "string", "a borrow, or `write!` into the caller's buffer"),
    refused_unless_cold(".to_owned()", "to_owned", "a borrow, or a fixed-size copy such as `NameBuf`"),
    refused_unless_cold(".to_vec()", "to_vec", "a borrow, or `copy_from_slice` into the caller's buffer"),
    refused_unless_cold(".collect()", "collect", "the iterator itself, or an array"),
    refused_unless_cold(
        ".clone()",
        "clone",
        "a borrow; a `Copy` type; `Arc::clone` where a query is put aside",
    ),
    refused("Mutex", "lock", "what the worker owns, or atomics in a fixed array"),
    refused("RwLock", "lock", "what the worker owns, or atomics in a fixed array"),
    refused(".lock()", "lock", "what the worker owns, or atomics in a fixed array"),
    refused(".await", "await", "`Verdict::Defer`: the worker waits, the engine does not"),
    refused(".unwrap()", "unwrap", "`?`, `let … else` or `unwrap_or`"),
    refused(".expect(", "expect", "`?`, `let … else` or `unwrap_or`"),
    refused("panic!", "panic", "a small error enum"),
    refused("unreachable!", "panic", "a type that cannot be wrong, or a small error enum"),
    refused("assert!", "assert", "`debug_assert!`, or a type that cannot be wrong"),
    refused("assert_eq!", "assert", "`debug_assert_eq!`, or a type that cannot be wrong"),
    refused("println!", "print", "a counter or an event; the control plane prints"),
];

/// Checks one file, if it is marked.
pub(crate) fn file(source: &Source<'_>, findings: &mut Vec<Finding>) {
    let first = source.text.lines().next().unwrap_or("");
    if !first.starts_with("//! Hot path") {
        return;
    }
    if first != MARK {
        findings.push(Finding::error(source.path, 1, format!("the mark of the hot path reads `{MARK}`")));
    }
    for refused in &REFUSED {
        for at in source.find(refused.word) {
            let excused = (refused.cold_may && source.is_cold(at)) || source.allows(refused.rule, at);
            // An assertion that the compiler evaluates costs nothing and cannot fail at run time.
            let is_const = refused.rule == "assert" && is_const_item(source, at);
            if !excused && !is_const {
                let message = format!("`{}` on the hot path; use {}", refused.word, refused.instead);
                findings.push(Finding::error(source.path, source.line(at), message));
            }
        }
    }
    for at in indexings(&source.code) {
        if !source.is_test(at) && !source.allows("index", at) {
            let message = "`[index]` on the hot path can panic; use `get`, `split_first_chunk`, `split_at_checked` or a pattern";
            findings.push(Finding::error(source.path, source.line(at), message));
        }
    }
}

fn is_const_item(source: &Source<'_>, at: usize) -> bool {
    let before = source.code.get(..at).unwrap_or("");
    let statement = before.rsplit([';', '}']).next().unwrap_or("").trim_start();
    statement.starts_with("const _") || statement.starts_with("const {") || statement.ends_with("const { ")
}

/// Returns where an expression is indexed: an opening bracket right behind a name, a call or
/// another index.
fn indexings(code: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, pair) in bytes.windows(2).enumerate() {
        let &[before, b'['] = pair else { continue };
        if !(before.is_ascii_alphanumeric() || matches!(before, b'_' | b')' | b']' | b'?')) {
            continue;
        }
        // `&'a [u8]` is written with a space, so what is left is a name: `table[…]`; `[..]` cannot
        // fail.
        if code.get(at + 1..).is_some_and(|rest| rest.starts_with("[..]")) {
            continue;
        }
        found.push(at + 1);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn check(body: &str, expected: &[(usize, &str)]) {
        let text = format!("{MARK}\n{body}");
        let mut findings = Vec::new();
        file(&Source::read("crates/engine/src/x.rs", &text), &mut findings);
        expect(&findings, expected);
    }

    #[test]
    fn what_allocates_is_refused() {
        check("fn f() { format!(\"{x}\"); }", &[(2, "`format!` on the hot path; use write into")]);
        check("let a = Vec::new();\nlet b = c.clone();", &[(2, "`Vec::new`"), (3, "`.clone()`")]);
        check("a.to_string();\nb.to_owned();", &[(2, "`.to_string()`"), (3, "`.to_owned()`")]);
    }

    #[test]
    fn what_locks_waits_or_panics_is_refused() {
        check("use std::sync::Mutex;", &[(2, "`Mutex` on the hot path")]);
        check("f().await;", &[(2, "`.await` on the hot path; use `Verdict::Defer`")]);
        check("a.unwrap();\nb.expect(\"c\");", &[(2, "`.unwrap()`"), (3, "`.expect(`")]);
        check("a.unwrap_or(0);\nb.expect_err(0);\ndebug_assert!(c);", &[]);
    }

    #[test]
    fn indexing_is_refused_and_types_are_not() {
        check("let a = table[i];", &[(2, "`[index]` on the hot path can panic")]);
        check("let a = f()[0];\nlet b = &x[1..];", &[(2, "`[index]`"), (3, "`[index]`")]);
        check(
            "fn f<'a>(x: &'a [u8], y: [u8; 2]) -> &'a [u8] { &x[..] }\n#[inline]\nconst A: [u8; 1] = [0];",
            &[],
        );
        check("let [a, b] = x;\nfor i in [1, 2] {}\nmatches!(x, Some([0, ..]));", &[]);
    }

    #[test]
    fn tests_comments_and_strings_are_not_the_hot_path() {
        check(
            "// a.unwrap()\nlet a = \".unwrap()\";\n#[cfg(test)]\nmod tests { fn f() { a.unwrap(); b[0]; } }",
            &[],
        );
    }

    #[test]
    fn cold_functions_may_allocate_but_not_panic() {
        check("#[cold]\nfn f() {\n    a.clone();\n    b.unwrap();\n}", &[(5, "`.unwrap()`")]);
    }

    #[test]
    fn compiling_a_configuration_may_allocate() {
        check(
            "// Once per configuration.\nfn compile() {\n    vec![0];\n}\nfn f() {\n    vec![0];\n}",
            &[(7, "`vec!`")],
        );
    }

    #[test]
    fn exceptions_carry_a_reason() {
        check("// tidy: allow(index): the mask keeps it below the length\nlet a = table[i & MASK];", &[]);
    }

    #[test]
    fn assertions_on_layout_are_free() {
        check("const _: () = assert!(size_of::<Entry>() == 64);", &[]);
        check("fn f() { assert!(a); }", &[(2, "`assert!` on the hot path")]);
    }

    #[test]
    fn the_mark_is_spelled_one_way() {
        let mut findings = Vec::new();
        file(&Source::read("x.rs", "//! Hot path: fast.\nfn f() {}\n"), &mut findings);
        expect(&findings, &[(1, "the mark of the hot path reads")]);
    }

    #[test]
    fn other_files_are_free() {
        let mut findings = Vec::new();
        file(&Source::read("x.rs", "//! Cold.\nfn f() { a.unwrap(); }\n"), &mut findings);
        expect(&findings, &[]);
    }
}
