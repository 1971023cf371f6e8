//! Reads YAML text into a tree in which everything knows where it was written.
//!
//! A strict subset of YAML 1.2: one document, no anchors, aliases, tags or directives, no key
//! twice, keys are plain words, nesting and size are limited. Every node keeps its place, and every
//! octet of a scalar can be traced back to the octet of the file that wrote it, through quotes,
//! escapes and folding.
//!
//! Never knows what a key means, never opens a file.

#![forbid(unsafe_code)]

mod node;

use std::collections::HashMap;

use diagnostic::{FileId, Problem, Scalar, Span};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, options};

pub use node::{Entry, Node, Value, in_mapping};

/// How deep lists and mappings may nest: protects the stack of everything that walks the tree.
pub const DEPTH_MAX: usize = 24;
/// Octets of a key; YAML allows 1024 characters for a key on one line.
const KEY_OCTETS_MAX: usize = 1024;

/// Replaces `${NAME}` and `${NAME:-otherwise}`; `$${` stands for `${`.
///
/// The replaced octets point at the whole `${…}`, which is all that the file shows of them.
fn interpolate(
    scalar: Scalar,
    variables: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> Scalar {
    if !scalar.text.contains("${") {
        return scalar;
    }
    let mut text = String::new();
    let mut table = Vec::new();
    let before = problems.len();
    let mut put = |text: &mut String, piece: &str, span: &dyn Fn(usize) -> Span| {
        for (at, byte) in piece.bytes().enumerate() {
            let _ = byte;
            let place = span(at);
            table.push((place.start, place.end));
        }
        text.push_str(piece);
    };
    let mut at = 0;
    while let Some(found) = scalar.text[at..].find("${") {
        let open = at + found;
        if open > at && scalar.text.as_bytes()[open - 1] == b'$' {
            put(&mut text, &scalar.text[at..open - 1], &|i| scalar.span(at + i, at + i + 1));
            put(&mut text, "${", &|i| scalar.span(open + i, open + i + 1));
            at = open + 2;
            continue;
        }
        put(&mut text, &scalar.text[at..open], &|i| scalar.span(at + i, at + i + 1));
        let Some(length) = scalar.text[open..].find('}') else {
            problems.push(
                Problem::error(scalar.span(open, scalar.text.len()), "this \"${\" is not closed")
                    .expected("\"${NAME}\" or \"${NAME:-otherwise}\"")
                    .hint("a literal \"${\" is written \"$${\""),
            );
            at = scalar.text.len();
            break;
        };
        let close = open + length + 1;
        let whole = scalar.span(open, close);
        let inside = &scalar.text[open + 2..close - 1];
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        let legal = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if legal {
            match variables(name).filter(|value| !value.is_empty() || otherwise.is_none()) {
                Some(value) => {
                    put(&mut text, &value, &|_| whole);
                }
                None => match otherwise {
                    Some(otherwise) => put(&mut text, otherwise, &|_| whole),
                    None => problems.push(
                        Problem::error(whole, format!("environment variable \"{name}\" is not set"))
                            .hint(format!("set it, or write \"${{{name}:-otherwise}}\"")),
                    ),
                },
            }
        } else {
            problems.push(
                Problem::error(whole, format!("\"{name}\" is not the name of an environment variable"))
                    .expected("letters, digits and \"_\", not starting with a digit"),
            );
        }
        at = close;
    }
    put(&mut text, &scalar.text[at..], &|i| scalar.span(at + i, at + i + 1));
    let mut replaced = Scalar::traced(text, scalar.place(), table);
    replaced.is_refused = problems.len() > before;
    replaced
}

/// A file's tree.
#[derive(Debug)]
pub struct Parsed {
    /// What was read; up to the first error of syntax if there is one.
    pub root: Node,
    /// Whether reading stopped at an error of syntax.
    pub broken: bool,
}

/// A list or mapping whose end has not been seen.
struct Open {
    node: Node,
    /// The key whose value comes next.
    key: Option<(String, Span)>,
    /// The keys seen so far and where.
    keys: HashMap<String, Span>,
}

/// Reads one file.
pub fn parse(
    file: FileId,
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> Parsed {
    // Most changes are an address or a few: to start the parser takes longer than to read them.
    if let Some(root) = Node::of_words(file, text) {
        return Parsed { root, broken: false };
    }
    parse_events(file, text, variables, problems)
}

/// Reads one file, whatever it holds.
fn parse_events(
    file: FileId,
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> Parsed {
    let mut builder = Builder {
        file,
        text,
        variables,
        problems,
        open: Vec::new(),
        root: None,
        refused_depth: 0,
        documents: 0,
    };
    let options = options! {
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
        emit_comments: false,
        disallow_directives: true,
        simple_key_max_lookahead: KEY_OCTETS_MAX,
    };
    let mut broken = false;
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => {
                let start = span.start.byte_offset().unwrap_or(0) as u32;
                let end = span.end.byte_offset().unwrap_or(0) as u32;
                if let Some(tag) = span.tag_span() {
                    builder.refuse_tag(tag.start.byte_offset(), tag.end.byte_offset());
                }
                if builder.event(event, Span { file, start, end: end.max(start) }).is_err() {
                    broken = true;
                    break;
                }
            }
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len()) as u32;
                builder.problems.push(syntax_problem(error.kind(), file, text, at));
                broken = true;
                break;
            }
        }
    }
    // After an error of syntax the setting in which it lies is not complete; the ones before it
    // are.
    if let (true, Some(first)) = (broken, builder.open.into_iter().next()) {
        builder.root.get_or_insert(first.node);
    }
    let nothing = Node { span: Span { file, start: 0, end: 0 }, value: Value::Null };
    Parsed { root: builder.root.unwrap_or(nothing), broken }
}

/// Reading stops here.
struct Stop;

struct Builder<'a> {
    file: FileId,
    text: &'a str,
    variables: &'a dyn Fn(&str) -> Option<String>,
    problems: &'a mut Vec<Problem>,
    open: Vec<Open>,
    root: Option<Node>,
    /// How many levels below a refused node (too deep, or a key that is not a word) we are.
    refused_depth: usize,
    documents: usize,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        if self.refused_depth > 0 {
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => self.refused_depth += 1,
                Event::SequenceEnd | Event::MappingEnd => {
                    self.refused_depth -= 1;
                    if self.refused_depth == 0 {
                        self.put_refused(span);
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.problems.push(
                        Problem::error(span, "a second document starts here")
                            .expected("one document in a file")
                            .hint("put it into a file of its own and name that under \"include\""),
                    );
                    return Err(Stop);
                }
            }
            Event::Anchor(..) => self.refuse(span, "anchor"),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.refuse(span, "alias");
                self.put(Node { span, value: Value::Null });
            }
            Event::Scalar(text, style, ..) => self.scalar(&text, style, span),
            Event::SequenceStart(..) => self.start(span, Value::List(Vec::new())),
            Event::MappingStart(..) => self.start(span, Value::Map(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(mut open) = self.open.pop() {
                    // A block ends where the next token starts; the last thing in it is a better
                    // end.
                    let last = match &open.node.value {
                        Value::List(items) => items.last().map(|item| item.span.end),
                        Value::Map(entries) => entries.last().map(|entry| entry.node.span.end),
                        Value::Null | Value::Scalar(_) | Value::Long(_) => None,
                    };
                    let flow = self.text[span.start as usize..span.end as usize].ends_with([']', '}']);
                    open.node.span.end = if flow { span.end } else { last.unwrap_or(open.node.span.end) };
                    self.put(open.node);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn refuse(&mut self, span: Span, what: &str) {
        let name = &self.text[span.start as usize..span.end as usize];
        self.problems.push(
            Problem::error(span, format!("the {what} \"{name}\": anchors and aliases are not supported"))
                .hint("write the value out where it is needed, or quote it if it is text"),
        );
    }

    fn refuse_tag(&mut self, start: Option<usize>, end: Option<usize>) {
        if let (Some(start), Some(end)) = (start, end) {
            let span = Span { file: self.file, start: start as u32, end: end as u32 };
            let name = self.text.get(start..end).unwrap_or("");
            self.problems.push(
                Problem::error(span, format!("the tag \"{name}\": tags are not supported"))
                    .hint("leave it out, or quote the value if it is text"),
            );
        }
    }

    fn start(&mut self, span: Span, value: Value) {
        if let Some(Open { node: Node { value: Value::Map(_), .. }, key: None, .. }) = self.open.last() {
            self.problems.push(
                Problem::error(span, "a list or mapping cannot be a key").expected("a word before \":\""),
            );
            self.refused_depth = 1;
        } else if self.open.len() >= DEPTH_MAX {
            self.problems.push(Problem::error(span, format!("nested more than {DEPTH_MAX} levels deep")));
            self.refused_depth = 1;
        } else {
            self.open.push(Open { node: Node { span, value }, key: None, keys: HashMap::new() });
        }
    }

    /// Takes the place of a node that was refused, as a key or as a value.
    fn put_refused(&mut self, span: Span) {
        match self.open.last_mut() {
            Some(open @ Open { node: Node { value: Value::Map(_), .. }, key: None, .. }) => {
                open.key = Some((String::new(), span));
            }
            _ => self.put(Node { span, value: Value::Null }),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: Span) {
        if let Some(open @ Open { node: Node { value: Value::Map(_), .. }, key: None, .. }) =
            self.open.last_mut()
        {
            open.key = Some((text.to_owned(), span));
            return;
        }
        let raw = &self.text[span.start as usize..span.end as usize];
        let plain = matches!(style, ScalarStyle::Plain);
        if plain && (raw.is_empty() || matches!(raw, "~" | "null" | "Null" | "NULL")) {
            self.put(Node { span, value: Value::Null });
            return;
        }
        let quotes = u32::from(matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted));
        let inner =
            Span { file: span.file, start: span.start + quotes, end: (span.end - quotes).max(span.start) };
        let scalar = match self.text.get(inner.start as usize..inner.end as usize) {
            Some(inside) if inside == text => Scalar::straight(text.to_owned(), inner),
            Some(inside) => Scalar::traced(text.to_owned(), inner, trace(text, inside, inner.start)),
            None => Scalar::straight(text.to_owned(), span),
        };

        let scalar = interpolate(scalar, self.variables, self.problems);
        let end = span.start + raw.trim_end().len() as u32;
        self.put(Node { span: Span { end, ..span }, value: Value::Scalar(scalar) });
    }

    /// Puts a finished node where it belongs.
    fn put(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return;
        };
        match &mut open.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => {
                let Some((key, key_span)) = open.key.take() else { return };
                // The empty key stands for one that was refused.
                if key.is_empty() {
                    return;
                }
                match open.keys.get(&key) {
                    Some(&first) => self.problems.push(
                        Problem::error(key_span, format!("\"{key}\" is set twice")).hint_at(
                            "the first time is on ",
                            first,
                            "",
                        ),
                    ),
                    None => {
                        open.keys.insert(key.clone(), key_span);
                        entries.push(Entry { key, key_span, node });
                    }
                }
            }
            Value::Null | Value::Scalar(_) | Value::Long(_) => {}
        }
    }
}

/// Finds for each octet of `text` the octets of `raw`, starting at `start` of the file, that wrote
/// it.
///
/// `raw` is the inside of a quoted or block scalar. Follows escapes and folded lines; where it
/// loses the thread, the rest points at the end of what it could follow.
fn trace(text: &str, raw: &str, start: u32) -> Vec<(u32, u32)> {
    let mut table = Vec::with_capacity(text.len());
    let mut at = 0;
    for c in text.chars() {
        let white = matches!(c, ' ' | '\n' | '\t');
        if !white {
            // Indentation, folded line ends, and line ends escaped by a backslash.
            loop {
                let rest = &raw[at..];
                let skipped = rest.len() - rest.trim_start_matches([' ', '\n', '\t', '\r']).len();
                let rest = &rest[skipped..];
                if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
                    at += skipped + 2;
                } else {
                    at += skipped;
                    break;
                }
            }
        }
        let rest = &raw[at..];
        let taken = match rest.chars().next() {
            None => 0,
            Some('\\') if c != '\\' || rest.starts_with("\\\\") => {
                let escape = match rest.as_bytes().get(1) {
                    Some(b'x') => 4,
                    Some(b'u') => 6,
                    Some(b'U') => 10,
                    _ => 2,
                };
                rest.char_indices()
                    .map(|(at, _)| at)
                    .chain([rest.len()])
                    .find(|&at| at >= escape)
                    .unwrap_or(rest.len())
            }
            Some('\'') if rest.starts_with("''") && c == '\'' => 2,
            Some('\r') if rest.starts_with("\r\n") => 2,
            Some(found) => found.len_utf8(),
        };
        let place = (start + at as u32, start + (at + taken) as u32);
        table.extend(std::iter::repeat_n(place, c.len_utf8()));
        at += taken;
    }
    table
}

/// Says in our words what the parser could not read.
fn syntax_problem(kind: &ErrorKind, file: FileId, text: &str, at: u32) -> Problem {
    use ErrorKind as E;
    let end =
        text[at as usize..].chars().next().filter(|&c| c != '\n').map_or(at, |c| at + c.len_utf8() as u32);
    // A tab is noticed after it was read, or before, where the value of the line above ends.
    let after_tab = text[..at as usize].ends_with('\t');
    let is_of_tab = matches!(
        kind,
        E::TabNotAllowed
            | E::TabInBlockIndentation
            | E::TabInIndentation
            | E::TabAtBlockScalarStart
            | E::TabInPlainScalar
    );
    let span = match text[at as usize..].find('\t') {
        _ if after_tab => Span { file, start: at - 1, end },
        Some(ahead) if is_of_tab => {
            let start = at + ahead as u32;
            Span { file, start, end: start + 1 }
        }
        _ => Span { file, start: at, end },
    };
    let error = |message: &str| Problem::error(span, message);
    match kind {
        E::TabNotAllowed
        | E::TabInBlockIndentation
        | E::TabInIndentation
        | E::TabAtBlockScalarStart
        | E::TabInPlainScalar => error("a tab cannot be used here").expected("spaces"),
        E::InvalidQuotedScalarIndent => {
            error("a quoted text from above goes on in this line, which is not indented")
                .hint("is the quotation mark at its end missing?")
        }
        E::UnclosedQuotedScalar => {
            error("a quoted text that starts above is not closed").expected("the quotation mark at its end")
        }
        E::UnclosedFlowCollection { open } => error(&format!("this \"{open}\" is not closed"))
            .expected(if *open == '[' { "a \"]\"" } else { "a \"}\"" }),
        E::MismatchedFlowCollectionEnd { open, close } => {
            error(&format!("a list or mapping that starts with \"{open}\" ends with \"{close}\""))
        }
        E::MisplacedFlowCollectionEnd => error("this bracket closes nothing"),
        E::ExpectedFlowMappingSeparator | E::ExpectedFlowSequenceSeparator
            if text[..end as usize].ends_with("${") =>
        {
            error("inside brackets or braces, YAML takes this \"{\" for the start of a mapping")
                .hint("put the \"${…}\" into quotation marks")
        }
        E::UnexpectedEofFlowSequence | E::ExpectedFlowSequenceSeparator => {
            error("a list in brackets is not finished").expected("\",\" or \"]\"")
        }
        E::UnexpectedEofFlowMapping
        | E::UnexpectedEofImplicitFlowMapping
        | E::ExpectedFlowMappingSeparator => {
            error("a mapping in braces is not finished").expected("\",\" or \"}\"")
        }
        E::SimpleKeyExpected | E::InvalidSimpleKey => {
            error("this line is not a setting").expected("\"key: value\" (a colon and a space after the key)")
        }
        E::ExpectedBlockMappingKey => error("this does not belong to the mapping around it")
            .expected("\"key: value\", indented like the lines above"),
        E::ExpectedBlockSequenceEntry => error("this does not belong to the list around it")
            .expected("\"- item\", indented like the lines above"),
        E::InvalidIndentation | E::InvalidFlowScalarIndent | E::InvalidBlockScalarIndent => {
            error("this line is indented differently from the ones it belongs to")
        }
        E::MappingValueNotAllowed | E::InvalidColonPlacement => {
            error("a colon with a space after it cannot stand here")
                .hint("quote the text if the colon is part of it; otherwise check the indentation")
        }
        E::MappingKeyNotAllowed => error("a key cannot stand here").hint("check the indentation"),
        E::BlockEntryInFlowCollection | E::BlockSequenceEntryNotAllowed | E::InvalidBlockEntryWhitespace => {
            error("a \"-\" cannot stand here").hint("quote it if it is text; otherwise check the indentation")
        }
        E::UnexpectedCharacter { character } => {
            error(&format!("a text cannot start with \"{}\"", character.escape_default()))
                .hint("put the text into quotation marks")
        }
        E::UnknownQuotedScalarEscape => error("unknown escape after \"\\\"")
            .hint("write \"\\\\\" for a backslash, or use single quotation marks"),
        E::InvalidTrailingSingleQuotedScalar | E::InvalidTrailingDoubleQuotedScalar => {
            error("there is more text after the closing quotation mark")
        }
        E::DirectiveDisallowed | E::MissingDirectiveName | E::InvalidDirectiveName => {
            error("a line cannot start with \"%\"").hint("YAML directives are not supported")
        }
        E::CommentNotSeparated => error("a comment needs a space before \"#\""),
        E::CommentInterceptedScalar => error("a comment cannot stand inside a text of several lines"),
        E::RecursionLimitExceeded => error(&format!("nested more than {DEPTH_MAX} levels deep")),
        E::MissingAnchorOrAliasName => {
            error("a text cannot start with \"&\" or \"*\"").hint("put it into quotation marks")
        }
        E::BomInsideDocument => error("a byte order mark in the middle of the file"),
        other => error(&format!("not readable as YAML ({other})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostic::{Diagnostic, Sources, diagnostics};
    use std::path::Path;

    fn read(text: &str) -> (Node, Vec<String>) {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), text.to_owned());
        let mut problems = Vec::new();
        let variables = |name: &str| (name == "HOME").then(|| "/root".to_owned());
        let parsed = parse(file, text, &variables, &mut problems);
        (parsed.root, diagnostics(problems, &sources).iter().map(Diagnostic::line).collect())
    }

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(read(text).1, expect, "{text}");
    }

    #[test]
    fn the_subset_is_strict() {
        check("a: 1\nb: [x, {y: z}]\n", &[]);
        check("a: 1\na: 2\n", &["x:2:1: error: \"a\" is set twice"]);
        check(
            "a: &x 1\nb: *x\n",
            &[
                "x:1:4: error: the anchor \"&x\": anchors and aliases are not supported",
                "x:2:4: error: the alias \"*x\": anchors and aliases are not supported",
            ],
        );
        check("a: !!str 1\n", &["x:1:4: error: the tag \"!!str\": tags are not supported"]);
        check(
            "a: 1\n---\nb: 1\n",
            &["x:2:1: error: a second document starts here: expected one document in a file"],
        );
        check(
            "[a]: 1\nb: 2\n",
            &["x:1:1: error: a list or mapping cannot be a key: expected a word before \":\""],
        );
        check("%YAML 1.2\n---\na: 1\n", &["x:1:1: error: a line cannot start with \"%\""]);
    }

    #[test]
    fn syntax_errors_are_in_our_words() {
        check("a:\n\tb: 1\n", &["x:2:1: error: a tab cannot be used here: expected spaces"]);
        check("a: value\n\tb: 1\n", &["x:2:1: error: a tab cannot be used here: expected spaces"]);
        check("a:\n  b: 1\n\tc: 1\n", &["x:3:1: error: a tab cannot be used here: expected spaces"]);
        check(
            "a: \"x\nb: 1\n",
            &["x:2:1: error: a quoted text from above goes on in this line, which is not indented"],
        );
        check("a: [1, 2\n", &["x:1:4: error: this \"[\" is not closed: expected a \"]\""]);
        check(
            "a: [${B}]\n",
            &["x:1:6: error: inside brackets or braces, YAML takes this \"{\" for the start of a mapping"],
        );
        check(
            "a: {b: ${B}}\n",
            &["x:1:9: error: inside brackets or braces, YAML takes this \"{\" for the start of a mapping"],
        );
        check("a: b: c\n", &["x:1:5: error: a colon with a space after it cannot stand here"]);
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("a: {}1{}\n", "[".repeat(40), "]".repeat(40));
        check(&deep, &["x:1:27: error: nested more than 24 levels deep"]);
        let deeper = "[".repeat(100_000);
        assert_eq!(read(&deeper).1.len(), 1);
    }

    fn value(text: &str) -> Scalar {
        match read(text).0.value {
            Value::Map(mut entries) => match entries.remove(0).node.value {
                Value::Scalar(scalar) => scalar,
                other => panic!("not a scalar: {other:?}"),
            },
            other => panic!("not a mapping: {other:?}"),
        }
    }

    /// Finds `word` in the value and checks that it points at the same word in the file.
    fn check_trace(text: &str, word: &str) {
        let scalar = value(text);
        let at = scalar.text.find(word).expect("the value holds the word");
        let span = scalar.span(at, at + word.len());
        assert_eq!(&text[span.start as usize..span.end as usize], word, "{text}");
    }

    #[test]
    fn every_octet_knows_where_it_was_written() {
        check_trace("a: one two three\n", "two");
        check_trace("a: 'it''s two three'\n", "two");
        check_trace("a: \"\\u00e4 \\t\\\\ two\"\n", "two");
        check_trace("a: >\n  one\n  two three\n", "two three");
        check_trace("a: |\n  one\n    two\n", "two");
        check_trace("a: \"one \\\n  two\"\n", "two");
        check_trace("a: one\n  two\n  three\n", "three");
        check_trace("a: x${HOME}y two\n", "two");
        check_trace("a: ${NONE:-x} two\n", "two");
    }

    #[test]
    fn variables_are_replaced_and_point_at_themselves() {
        let text = "a: x${HOME}/y\n";
        let scalar = value(text);
        assert_eq!(scalar.text, "x/root/y");
        let span = scalar.span(2, 4);
        assert_eq!(&text[span.start as usize..span.end as usize], "${HOME}");
        assert_eq!(value("a: ${NONE:-d}\n").text, "d");
        assert_eq!(value("a: $${HOME}\n").text, "${HOME}");
        check("a: ${NONE}\n", &["x:1:4: error: environment variable \"NONE\" is not set"]);
        check(
            "a: ${NONE\n",
            &["x:1:4: error: this \"${\" is not closed: expected \"${NAME}\" or \"${NAME:-otherwise}\""],
        );
        check(
            "a: ${}\n",
            &[
                "x:1:4: error: \"\" is not the name of an environment variable: expected letters, digits and \"_\", not starting with a digit",
            ],
        );
    }
}
