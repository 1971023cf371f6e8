//! Conditions: `qname in suffix:example.org and not client in 10.0.0.0/8`.
//!
//! ```text
//! condition = all { "or" all }
//! all       = one { "and" one }
//! one       = "not" one | "(" condition ")" | "mark" "(" number ")" | test
//! test      = field ( "==" | "!=" ) value | field [ "not" ] "in" set
//! set       = ( value | "[" value { "," value } "]" ) { "|" … }
//! ```

use std::ops::Range;

use sets::Reach;
use wire::Rtype;

use super::tokens::{Dialect, Token, TokenKind, tokens};
use crate::diagnostic::Problem;
use crate::schema::PREFIX_WORDS;
use crate::sets::name_pattern;
use crate::settings::NamePattern;
use crate::source::At;
use crate::suggest::{nearest, one_of};
use crate::values::{self, Misread, Prefix, Read};
use crate::yaml::Scalar;

/// How deep parentheses and `not` may nest: protects the stack.
pub const DEPTH_MAX: usize = 32;
/// The marks that a query can carry.
pub const MARKS: u64 = 64;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Every one of them holds; never empty.
    All(Vec<Condition>),
    /// At least one of them holds; never empty.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// A single test.
    Test(Test),
}

/// A single test of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The name asked for is one of these.
    Qname(Vec<At<NameTerm>>),
    /// The type asked for is one of these.
    Qtype(Vec<Rtype>),
    /// The client is one of these.
    Client(Vec<At<ClientTerm>>),
    /// The query carries one of these marks.
    Mark(Vec<u8>),
}

/// Names to compare with.
#[derive(Clone, Debug, PartialEq)]
pub enum NameTerm {
    /// A name, alone or with what lies below it.
    Pattern(NamePattern),
    /// The names of a set.
    Set(String),
}

/// Clients to compare with.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientTerm {
    /// A prefix or what one of [`PREFIX_WORDS`] stands for.
    Prefixes(Vec<Prefix>),
    /// The clients of a set.
    Set(String),
}

/// One thing that a condition can look at.
pub struct Field {
    /// Its word.
    pub word: &'static str,
    /// What it is, for the manual.
    pub text: &'static str,
    /// Reads the values it is compared with.
    read: fn(&mut Parser<'_>, &[Token<'_>], Equality) -> Option<Test>,
}

/// Everything that a condition can look at.
pub const FIELDS: &[Field] = &[
    Field {
        word: "qname",
        text: "The name asked for: `qname == \"www.example.org\"`, `qname in suffix:example.org|exact:example.net`, \
               `qname in video` with a set of that name.",
        read: |parser, values, equality| parser.qname(values, equality),
    },
    Field {
        word: "qtype",
        text: "The type asked for: `qtype == AAAA`, `qtype in [A, AAAA]`.",
        read: |parser, values, equality| parser.qtype(values, equality),
    },
    Field {
        word: "client",
        text: "The client's address: `client in 10.0.0.0/8|2001:db8::/32`, `client in lan`, `client in kids` with a set \
               of that name.",
        read: |parser, values, equality| parser.client(values, equality),
    },
    Field {
        word: "mark",
        text: "The marks that rules have put on the query: `mark == 3`, `mark(3)`, `mark in [3, 4]`.",
        read: |parser, values, equality| parser.mark(values, equality),
    },
];

/// Whether values follow `==` or `in`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equality {
    Equal,
    Member,
}

/// Reads a condition. All mistakes in values are reported; a mistake in the structure ends the reading.
pub(crate) fn parse(scalar: &Scalar, problems: &mut Vec<Problem>) -> Option<Condition> {
    let before = problems.len();
    let tokens = tokens(scalar, 0, Dialect::Condition, problems)?;
    let mut parser = Parser { scalar, tokens: &tokens, at: 0, depth: 0, problems };
    let condition = parser.any()?;
    if let Some(token) = parser.peek() {
        parser.wrong(
            token.range(),
            format!("\"{}\" cannot stand here", token.text),
            "\"and\", \"or\" or the end",
        );
        return None;
    }
    (problems.len() == before).then_some(condition)
}

struct Parser<'t> {
    scalar: &'t Scalar,
    tokens: &'t [Token<'t>],
    at: usize,
    depth: usize,
    problems: &'t mut Vec<Problem>,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    fn next_is(&self, text: &str) -> bool {
        self.peek().is_some_and(|token| token.is(text))
    }

    fn take_if(&mut self, text: &str) -> bool {
        let found = self.next_is(text);
        self.at += usize::from(found);
        found
    }

    fn end(&self) -> Range<usize> {
        let end = self.scalar.text.trim_end().len();
        // The caret stands under the last character: what is missing comes after it.
        let last = self.scalar.text[..end].chars().next_back().map_or(0, char::len_utf8);
        end - last..end
    }

    fn wrong(&mut self, at: Range<usize>, message: impl Into<String>, expected: &str) {
        let problem = Problem::error(self.scalar.span(at.start, at.end), message).expected(expected);
        self.problems.push(problem);
    }

    fn misread(&mut self, start: usize, misread: Misread) {
        let span = self.scalar.span(start + misread.at.start, start + misread.at.end);
        self.problems.push(misread.into_problem(span));
    }

    fn any(&mut self) -> Option<Condition> {
        let mut parts = vec![self.all()?];
        while self.take_if("or") {
            parts.push(self.all()?);
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Condition::Any(parts) })
    }

    fn all(&mut self) -> Option<Condition> {
        let mut parts = vec![self.one()?];
        while self.take_if("and") {
            parts.push(self.one()?);
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    fn one(&mut self) -> Option<Condition> {
        if self.depth >= DEPTH_MAX {
            let at = self.peek().map_or(self.end(), |token| token.range());
            self.wrong(
                at,
                format!("nested more than {DEPTH_MAX} levels deep"),
                "a simpler condition, or several rules",
            );
            return None;
        }
        self.depth += 1;
        let found = self.one_inside();
        self.depth -= 1;
        found
    }

    fn one_inside(&mut self) -> Option<Condition> {
        if self.take_if("not") {
            return self.one().map(|inside| Condition::Not(Box::new(inside)));
        }
        if let Some(open) = self.peek()
            && self.take_if("(")
        {
            let inside = self.any()?;
            if !self.take_if(")") {
                self.wrong(open.range(), "this \"(\" is not closed", "a \")\"");
                return None;
            }
            return Some(inside);
        }
        self.test()
    }

    fn test(&mut self) -> Option<Condition> {
        let words: Vec<&str> = FIELDS.iter().map(|field| field.word).collect();
        let Some(token) = self.peek() else {
            self.wrong(self.end(), "the condition ends too early", &one_of(&words));
            return None;
        };
        self.at += 1;
        let Some(field) = FIELDS.iter().find(|field| token.is(field.word)) else {
            let mut problem = Problem::error(
                self.scalar.span(token.start, token.end),
                format!("a condition cannot look at \"{}\"", token.text),
            )
            .expected(one_of(&words));
            if let Some(word) = nearest(token.text, words.iter().copied()) {
                problem = problem.hint(format!("did you mean \"{word}\"?"));
            } else if matches!(token.text, "!" | "&&" | "||" | "|") {
                problem = problem.hint("write \"not\", \"and\" and \"or\"");
            }
            self.problems.push(problem);
            return None;
        };
        if field.word == "mark" && self.next_is("(") {
            let values = self.set_inside("(", ")")?;
            return (field.read)(self, &values, Equality::Equal).map(Condition::Test);
        }
        let negated = self.take_if("not");
        let operator = self.peek();
        self.at += 1;
        let (negated, equality) = match operator {
            Some(token) if token.is("in") => (negated, Equality::Member),
            Some(token) if token.is("==") && !negated => (false, Equality::Equal),
            Some(token) if token.is("!=") && !negated => (true, Equality::Equal),
            Some(token) => {
                let mut problem = Problem::error(
                    self.scalar.span(token.start, token.end),
                    format!("\"{}\" cannot stand after \"{}\"", token.text, field.word),
                )
                .expected("\"==\", \"!=\", \"in\" or \"not in\"");
                if token.is("=") {
                    problem = problem.hint("a comparison is written \"==\"");
                }
                self.problems.push(problem);
                return None;
            }
            None => {
                self.wrong(
                    self.end(),
                    "the condition ends too early",
                    "\"==\", \"!=\", \"in\" or \"not in\"",
                );
                return None;
            }
        };
        let values = self.set()?;
        if equality == Equality::Equal && values.len() > 1 {
            let at = values[0].start..values[values.len() - 1].end;
            self.wrong(
                at,
                format!("\"{}\" is compared with several values", field.word),
                "\"in\" before a list",
            );
            return None;
        }
        let test = Condition::Test((field.read)(self, &values, equality)?);
        Some(if negated { Condition::Not(Box::new(test)) } else { test })
    }

    /// Reads `a|b|[c, d]`.
    fn set(&mut self) -> Option<Vec<Token<'t>>> {
        let mut values = Vec::new();
        loop {
            if self.next_is("[") {
                values.extend(self.set_inside("[", "]")?);
            } else {
                values.push(self.value()?);
            }
            if !self.take_if("|") {
                return Some(values);
            }
        }
    }

    /// Reads `[a, b]` with the given brackets.
    fn set_inside(&mut self, open: &str, close: &str) -> Option<Vec<Token<'t>>> {
        let opened = self.peek()?;
        self.at += 1;
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            if self.take_if(close) {
                return Some(values);
            }
            if !self.take_if(",") {
                self.wrong(
                    opened.range(),
                    format!("this \"{open}\" is not closed"),
                    &format!("\",\" or \"{close}\""),
                );
                return None;
            }
        }
    }

    fn value(&mut self) -> Option<Token<'t>> {
        match self.peek() {
            Some(token) if token.kind != TokenKind::Sign => {
                self.at += 1;
                Some(token)
            }
            Some(token) => {
                self.wrong(token.range(), format!("\"{}\" is not a value", token.text), "a value");
                None
            }
            None => {
                self.wrong(self.end(), "the condition ends too early", "a value");
                None
            }
        }
    }

    /// Reads each value; `None` when one of them is wrong, after all were read.
    fn each<T>(&mut self, values: &[Token<'_>], read: impl Fn(&str) -> Read<T>) -> Option<Vec<At<T>>> {
        let mut all = Vec::new();
        for token in values {
            // A quoted value begins after its quotation mark.
            let start = token.start + usize::from(token.kind == TokenKind::Quoted);
            match read(token.text) {
                Ok(value) => {
                    let span = self.scalar.span(start, start + token.text.len());
                    all.push(At { value, span });
                }
                Err(misread) => self.misread(start, misread),
            }
        }
        (all.len() == values.len()).then_some(all)
    }

    fn qname(&mut self, values: &[Token<'_>], equality: Equality) -> Option<Test> {
        let terms = self.each(values, |text| match equality {
            Equality::Equal => {
                values::name(text).map(|name| NameTerm::Pattern(NamePattern::Name(name, Reach::Itself)))
            }
            Equality::Member => name_term(text),
        })?;
        Some(Test::Qname(terms))
    }

    fn qtype(&mut self, values: &[Token<'_>], _: Equality) -> Option<Test> {
        Some(Test::Qtype(self.each(values, values::rtype)?.into_iter().map(|at| at.value).collect()))
    }

    fn client(&mut self, values: &[Token<'_>], _: Equality) -> Option<Test> {
        Some(Test::Client(self.each(values, client_term)?))
    }

    fn mark(&mut self, values: &[Token<'_>], _: Equality) -> Option<Test> {
        Some(Test::Mark(self.each(values, mark)?.into_iter().map(|at| at.value).collect()))
    }
}

/// Reads `suffix:example.org`, `exact:example.org` or the name of a set.
fn name_term(text: &str) -> Read<NameTerm> {
    if text.contains(':') {
        return name_pattern(text).map(NameTerm::Pattern);
    }
    values::identifier(text).map(|name| NameTerm::Set(name.to_owned()))
}

/// Reads a prefix, one of [`PREFIX_WORDS`], or the name of a set.
fn client_term(text: &str) -> Read<ClientTerm> {
    if PREFIX_WORDS.contains(&text) {
        return Ok(ClientTerm::Prefixes(values::prefix_word(text)));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.contains([':', '/']) {
        return values::prefix(text).map(|prefix| ClientTerm::Prefixes(vec![prefix]));
    }
    values::identifier(text).map(|name| ClientTerm::Set(name.to_owned()))
}

/// Reads the number of a mark.
pub(crate) fn mark(text: &str) -> Read<u8> {
    let number = values::whole(text)?;
    if number >= MARKS {
        return Err(Misread {
            at: 0..text.len(),
            message: format!("there is no mark {text}"),
            expected: Some(format!("0 to {}", MARKS - 1)),
            hint: None,
        });
    }
    Ok(number as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Diagnostic, diagnostics};
    use crate::source::{FileId, Sources, Span};
    use std::path::Path;

    fn read(text: &str) -> Result<Condition, Vec<String>> {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("x"), text.to_owned());
        let span = Span { file, start: 0, end: text.len() as u32 };
        let mut problems = Vec::new();
        let found = parse(&Scalar::straight(text.to_owned(), span), &mut problems);
        let lines: Vec<String> = diagnostics(problems, &sources).iter().map(Diagnostic::line).collect();
        found.filter(|_| lines.is_empty()).ok_or(lines)
    }

    /// Writes a condition with every parenthesis.
    fn text(condition: &Condition) -> String {
        let join = |parts: &[Condition], word: &str| {
            format!("({})", parts.iter().map(text).collect::<Vec<_>>().join(word))
        };
        match condition {
            Condition::All(parts) => join(parts, " and "),
            Condition::Any(parts) => join(parts, " or "),
            Condition::Not(inside) => format!("not {}", text(inside)),
            Condition::Test(Test::Qname(terms)) => format!("qname[{}]", terms.len()),
            Condition::Test(Test::Qtype(types)) => format!("qtype[{}]", types.len()),
            Condition::Test(Test::Client(terms)) => format!("client[{}]", terms.len()),
            Condition::Test(Test::Mark(marks)) => format!("mark{marks:?}"),
        }
    }

    fn check(input: &str, expect: &str) {
        assert_eq!(read(input).as_ref().map(text), Ok(expect.to_owned()), "{input}");
    }

    fn check_wrong(input: &str, expect: &[&str]) {
        assert_eq!(
            read(input).map(|found| text(&found)),
            Err(expect.iter().map(|&line| line.to_owned()).collect())
        );
    }

    #[test]
    fn and_binds_closer_than_or() {
        check("mark == 1 or mark == 2 and mark == 3", "(mark[1] or (mark[2] and mark[3]))");
        check("(mark(1) or mark(2)) and not mark(3)", "((mark[1] or mark[2]) and not mark[3])");
        check("not not mark(1)", "not not mark[1]");
        check("qtype != A", "not qtype[1]");
        check("client not in lan", "not client[1]");
    }

    #[test]
    fn sets_are_written_with_bars_or_brackets() {
        check("qname in suffix:example.org|exact:example.net|video", "qname[3]");
        check("qname in [suffix:example.org, video]|ads", "qname[3]");
        check("qtype in [A, AAAA, TYPE65280]", "qtype[3]");
        check("client in 10.0.0.0/8|2001:db8::/32|kids|lan", "client[4]");
        check("qname == \"www.example.org.\"", "qname[1]");
        check("mark in [1, 2]", "mark[1, 2]");
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong(
            "qnam == a.",
            &["x:1:1: error: a condition cannot look at \"qnam\": expected qname, qtype, client or mark"],
        );
        check_wrong(
            "qtype == AAAB and client in 10.0.0.1/8",
            &[
                "x:1:10: error: \"AAAB\" is not a record type: expected a type such as A, AAAA, HTTPS or TYPE65280",
            ],
        );
        check_wrong(
            "qtype in [AAAB, AAAC]",
            &[
                "x:1:11: error: \"AAAB\" is not a record type: expected a type such as A, AAAA, HTTPS or TYPE65280",
                "x:1:17: error: \"AAAC\" is not a record type: expected a type such as A, AAAA, HTTPS or TYPE65280",
            ],
        );
        check_wrong(
            "qtype = A",
            &[
                "x:1:7: error: \"=\" cannot stand after \"qtype\": expected \"==\", \"!=\", \"in\" or \"not in\"",
            ],
        );
        check_wrong("qtype ==", &["x:1:8: error: the condition ends too early: expected a value"]);
        check_wrong(
            "",
            &["x:1:1: error: the condition ends too early: expected qname, qtype, client or mark"],
        );
        check_wrong("(mark(1)", &["x:1:1: error: this \"(\" is not closed: expected a \")\""]);
        check_wrong("qtype in [A", &["x:1:10: error: this \"[\" is not closed: expected \",\" or \"]\""]);
        check_wrong(
            "mark(1) mark(2)",
            &["x:1:9: error: \"mark\" cannot stand here: expected \"and\", \"or\" or the end"],
        );
        check_wrong("mark(64)", &["x:1:6: error: there is no mark 64: expected 0 to 63"]);
        check_wrong("qname in \"regex:(x\"", &["x:1:17: error: not a regular expression: unclosed group"]);
        check_wrong("qname == \"a..b\"", &["x:1:13: error: \"a..b\" is not a domain name: a label is empty"]);
        check_wrong("qtype == \"A", &["x:1:10: error: a quoted text is not closed: expected \" at its end"]);
        check_wrong(
            "qtype == [A, NS]",
            &["x:1:11: error: \"qtype\" is compared with several values: expected \"in\" before a list"],
        );
    }

    #[test]
    fn nesting_is_bounded() {
        assert!(read(&"(".repeat(100_000)).is_err());
        assert!(read(&"not ".repeat(100_000)).is_err());
    }

    #[test]
    fn the_place_of_a_value_is_kept() {
        let Ok(Condition::Test(Test::Client(terms))) = read("client in kids") else {
            panic!("a test of the client")
        };
        assert_eq!(terms[0].span, Span { file: FileId(0), start: 10, end: 14 });
    }
}
