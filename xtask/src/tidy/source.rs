//! A Rust file as the rules see it: code without comments and literals, and which lines are tests.

use std::ops::Range;

/// How the comment begins that stands before a function or `impl` that does not run per query:
/// `// Once per configuration.`, `// Once per worker.`, `// Once per connection.`
pub(crate) const ONCE: &str = "// Once per ";

/// One Rust file.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    /// The text as written.
    pub(crate) text: &'a str,
    /// As long as `text`, with comments, strings and character literals blanked out.
    pub(crate) code: String,
    line_starts: Vec<usize>,
    tests: Vec<Range<usize>>,
    cold: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    pub(crate) fn read(path: &'a str, text: &'a str) -> Self {
        let code = blank(text);
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect::<Vec<_>>();
        let mut tests = items_after(
            &code,
            &["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test", "#[test]", "#[cfg(loom)]"],
        );
        let is_test_file = path.ends_with("/tests.rs")
            || path
                .split('/')
                .rev()
                .skip(1)
                .any(|directory| ["tests", "benches", "examples"].contains(&directory));
        if is_test_file {
            tests.push(0..text.len());
        }
        let mut cold = items_after(&code, &["#[cold]"]);
        for (start, _) in text.match_indices(ONCE) {
            cold.push(start..item_end(&code, start));
        }
        Self { path, text, code, line_starts, tests, cold }
    }

    /// Returns the line, counted from one, that holds the octet at `at`.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    /// Returns whether the code at `at` is only built for tests.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Returns whether the code at `at` is in a function marked `#[cold]`, or in an item marked
    /// [`ONCE`].
    pub(crate) fn is_cold(&self, at: usize) -> bool {
        self.cold.iter().any(|range| range.contains(&at))
    }

    /// Returns whether the file says that this rule does not hold at `at`, with a reason.
    pub(crate) fn allows(&self, rule: &str, at: usize) -> bool {
        let line = self.line(at);
        let mark = format!("tidy: allow({rule}): ");
        let has_mark = |line: usize| {
            let text = line.checked_sub(1).and_then(|index| self.text.lines().nth(index)).unwrap_or("");
            text.split_once(&mark).is_some_and(|(_, reason)| !reason.trim().is_empty())
        };
        has_mark(line) || has_mark(line - 1)
    }

    /// Returns where the item that starts at `start` ends.
    pub(crate) fn item_end(&self, start: usize) -> usize {
        item_end(&self.code, start)
    }

    /// Returns where `word` stands in the code, tests left out.
    pub(crate) fn find(&self, word: &str) -> Vec<usize> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let bytes = self.code.as_bytes();
        let begins_as_word = word.bytes().next().is_some_and(is_word);
        let ends_as_word = word.bytes().last().is_some_and(is_word);
        let matches = self.code.match_indices(word).map(|(at, _)| at);
        matches
            .filter(|&at| !self.is_test(at))
            .filter(|&at| !begins_as_word || at == 0 || !is_word(bytes[at - 1]))
            .filter(|&at| !ends_as_word || !bytes.get(at + word.len()).copied().is_some_and(is_word))
            .collect()
    }

    /// Returns the comment that opens the file (`//!`), without its marks.
    pub(crate) fn opening(&self) -> String {
        let lines = self.text.lines().take_while(|line| line.starts_with("//!"));
        lines.map(|line| line.trim_start_matches("//!").trim()).collect::<Vec<_>>().join("\n")
    }
}

/// Blanks comments and literals out; offsets and line ends stay.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
        let starts_word = !(before.is_ascii_alphanumeric() || before == b'_');
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + block_comment(rest)
        } else if let Some(length) = if starts_word { raw_string(rest) } else { None } {
            at + length
        } else if rest[0] == b'"' {
            at + quoted(rest, b'"')
        } else if rest[0] == b'\'' && is_character(rest) {
            at + quoted(rest, b'\'')
        } else {
            at += 1;
            continue;
        };
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // What was not blanked is whole characters, so this cannot lose anything.
    String::from_utf8_lossy(&code).into_owned()
}

fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Returns the length of a raw string that begins here (`r"`, `r#"`, `br"`…).
fn raw_string(bytes: &[u8]) -> Option<usize> {
    let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|&prefix| bytes.starts_with(prefix))?;
    let rest = &bytes[prefix.len()..];
    let hashes = rest.iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let body = &rest[hashes + 1..];
    let mut closing = vec![b'"'];
    closing.resize(hashes + 1, b'#');
    let length = body.windows(closing.len()).position(|window| window == closing).unwrap_or(body.len());
    Some((prefix.len() + hashes + 1 + length + closing.len()).min(bytes.len()))
}

fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns whether a quote begins a character and not a lifetime.
fn is_character(bytes: &[u8]) -> bool {
    match std::str::from_utf8(&bytes[1..bytes.len().min(6)]) {
        Ok(text) => is_character_text(text),
        Err(error) => std::str::from_utf8(&bytes[1..1 + error.valid_up_to()]).is_ok_and(is_character_text),
    }
}

fn is_character_text(text: &str) -> bool {
    let mut characters = text.chars();
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Returns the items that follow one of these attributes, attribute included.
fn items_after(code: &str, attributes: &[&str]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for attribute in attributes {
        for (start, _) in code.match_indices(attribute) {
            ranges.push(start..item_end(code, start));
        }
    }
    ranges
}

/// Returns where the item that starts at `start` (with its attributes) ends: its closing brace or
/// semicolon.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    let mut braces = 0_usize;
    for (offset, byte) in code.as_bytes()[start..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && depth == 0 {
                    return start + offset + 1;
                }
            }
            b';' if depth == 0 && braces == 0 => return start + offset + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str) {
        assert_eq!(blank(text), code);
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("x\"y", 1)"#, "f(      , 1)");
        check("r#\"a\"b\"# c", "         c");
        check("br\"\\\" c", "      c");
        check("['a', '\\'', 'ä', x]", "[   ,     ,     , x]");
    }

    #[test]
    fn lifetimes_and_identifiers_are_code() {
        check("fn f<'a>(x: &'a str, r: u8)", "fn f<'a>(x: &'a str, r: u8)");
        check("for_each(r)", "for_each(r)");
    }

    #[test]
    fn tests_and_cold_functions_are_known() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cold]\nfn d() {\n    e();\n}\n";
        let source = Source::read("crates/wire/src/x.rs", text);
        let at = |what: &str| source.code.find(what).unwrap_or(usize::MAX);
        assert!(!source.is_test(at("fn a")) && source.is_test(at("fn b")) && !source.is_test(at("fn c")));
        assert!(source.is_cold(at("e()")) && !source.is_cold(at("fn c")));
    }

    #[test]
    fn what_runs_once_per_configuration_is_cold() {
        let text =
            "fn a() {}\n/// Compiles.\n// Once per configuration.\nimpl B {\n    fn c() {}\n}\nfn d() {}\n";
        let source = Source::read("crates/engine/src/x.rs", text);
        let at = |what: &str| source.code.find(what).unwrap_or(usize::MAX);
        assert!(!source.is_cold(at("fn a")) && source.is_cold(at("fn c")) && !source.is_cold(at("fn d")));
    }

    #[test]
    fn whole_test_directories_are_tests() {
        for path in ["crates/wire/tests/x.rs", "crates/wire/benches/x.rs", "crates/wire/src/name/tests.rs"] {
            assert!(Source::read(path, "fn a() {}").is_test(0), "{path}");
        }
        assert!(!Source::read("crates/wire/src/x.rs", "fn a() {}").is_test(0));
    }

    #[test]
    fn words_are_found_whole() {
        let source = Source::read("x.rs", "unwrap(); unwrapped(); x.unwrap()");
        assert_eq!(source.find("unwrap"), [0, 25]);
    }

    #[test]
    fn an_exception_needs_a_reason() {
        let text = "// tidy: allow(clone): once per reload\na.clone();\n// tidy: allow(clone):\nb.clone();\n";
        let source = Source::read("x.rs", text);
        assert!(source.allows("clone", 41));
        assert!(!source.allows("clone", text.find("b.clone").unwrap_or(0)));
        assert!(!source.allows("unwrap", 41));
    }
}
