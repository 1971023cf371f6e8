//! The structure of conditions: how tests are joined, and what may follow a field.

use std::ops::Range;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{At, Problem, Scalar};
use values::{Misread, Read};

use super::fields::FIELDS;
use super::operand;
use super::{Condition, DEPTH_MAX, Test, TextOperator, TextSource, TextTest};
use crate::tokens::{Dialect, Token, TokenKind, tokens};

/// What may follow a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Member,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Has,
    Text(TextOperator),
}

impl Operator {
    /// The operators that values are listed after.
    pub(super) const LISTED: &'static [Self] = &[Self::Equal, Self::Member];
    /// What text can be compared by.
    pub(super) const TEXT: &'static [Self] = &[
        Self::Equal,
        Self::Member,
        Self::Text(TextOperator::Prefix),
        Self::Text(TextOperator::Suffix),
        Self::Text(TextOperator::Contains),
        Self::Text(TextOperator::Matches),
        Self::Text(TextOperator::Empty),
    ];
    /// What numbers can be compared by.
    pub(super) const NUMBER: &'static [Self] =
        &[Self::Equal, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    /// Returns how it is written, and negated.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Equal => ["==", "!="],
            Self::Member => ["in", "not in"],
            Self::Less => ["<", ""],
            Self::LessOrEqual => ["<=", ""],
            Self::Greater => [">", ""],
            Self::GreaterOrEqual => [">=", ""],
            Self::Has => ["has", ""],
            Self::Text(TextOperator::Prefix) => ["starts-with", ""],
            Self::Text(TextOperator::Suffix) => ["ends-with", ""],
            Self::Text(TextOperator::Contains) => ["contains", ""],
            Self::Text(TextOperator::Matches) => ["matches", ""],
            Self::Text(TextOperator::Empty) => ["is empty", ""],
            Self::Text(TextOperator::Equal) => ["", ""],
        }
    }
}

/// Reads a condition. All mistakes in values are reported; a mistake in the structure ends the
/// reading.
pub fn parse(scalar: &Scalar, problems: &mut Vec<Problem>) -> Option<Condition> {
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

/// A condition that is being read.
pub(super) struct Parser<'t> {
    scalar: &'t Scalar,
    tokens: &'t [Token<'t>],
    at: usize,
    depth: usize,
    pub(super) problems: &'t mut Vec<Problem>,
}

impl<'t> Parser<'t> {
    pub(super) fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn next_is(&self, text: &str) -> bool {
        self.peek().is_some_and(|token| token.is(text))
    }

    pub(super) fn take_if(&mut self, text: &str) -> bool {
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

    pub(super) fn wrong(&mut self, at: Range<usize>, message: impl Into<String>, expected: &str) {
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
        let Some(token) = self.peek() else {
            self.wrong(
                self.end(),
                "the condition ends too early",
                "a test such as qname, qtype, client or mark",
            );
            return None;
        };
        self.at += 1;
        if let Some(holds) = ["false", "true"].iter().position(|word| token.is(word)) {
            return Some(Condition::Constant(holds == 1));
        }
        if let Some(field) = FIELDS.iter().find(|field| token.is(field.word)) {
            return (field.read)(self, field.word);
        }
        // What stands alone is the name of a condition.
        let stands_alone = match self.peek() {
            None => true,
            Some(next) => next.is("and") || next.is("or") || next.is(")"),
        };
        if token.kind == TokenKind::Word && stands_alone && values::identifier(token.text).is_ok() {
            let span = self.scalar.span(token.start, token.end);
            return Some(Condition::Named(At { value: token.text.to_owned(), span }));
        }
        let words: Vec<&str> = FIELDS.iter().map(|field| field.word).collect();
        let problem = Problem::error(
            self.scalar.span(token.start, token.end),
            format!("a condition cannot look at \"{}\"", token.text),
        );
        self.problems.push(if let Some(word) = nearest(token.text, words.iter().copied()) {
            problem.hint(format!("did you mean \"{word}\"?"))
        } else if matches!(token.text, "!" | "&&" | "||" | "|") {
            problem.hint("write \"not\", \"and\" and \"or\"")
        } else {
            problem.expected(one_of(&words))
        });
        None
    }

    /// Reads a comparison and returns whether it is negated.
    pub(super) fn operator(&mut self, field: &str, allowed: &[Operator]) -> Option<(Operator, bool)> {
        let before = self.at;
        let is = self.take_if("is");
        let mut negated = self.take_if("not");
        let token = self.peek();
        self.at += 1;
        let found = token.and_then(|token| {
            allowed.iter().copied().find_map(|operator| {
                let [word, opposite] = operator.words();
                match operator {
                    Operator::Text(TextOperator::Empty) => {
                        (is && token.is("empty")).then_some((operator, false))
                    }
                    _ if is => None,
                    _ if token.is(word) => {
                        // `not ==` is no word.
                        (!negated || token.kind == TokenKind::Word).then_some((operator, false))
                    }
                    Operator::Equal if !negated && token.is(opposite) => Some((operator, true)),
                    _ => None,
                }
            })
        });
        if let Some((operator, is_opposite)) = found {
            negated |= is_opposite;
            return Some((operator, negated));
        }
        let mut words: Vec<String> = Vec::new();
        for operator in allowed {
            let both = operator.words().into_iter().filter(|word| !word.is_empty());
            words.extend(both.map(|word| format!("\"{word}\"")));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(token) = token else {
            self.wrong(self.end(), "the condition ends too early", &one_of(&words));
            return None;
        };
        let first = self.tokens[before];
        let text = &self.scalar.text[first.start..token.end];
        let mut problem = Problem::error(
            self.scalar.span(first.start, token.end),
            format!("\"{text}\" cannot stand after \"{field}\""),
        )
        .expected(one_of(&words));
        if token.is("=") {
            problem = problem.hint("a comparison is written \"==\"");
        } else if token.is("~") || token.is("=~") {
            problem = problem.hint("a regular expression is written `matches \"…\"`");
        }
        self.problems.push(problem);
        None
    }

    /// Reads the values after a comparison; only some take several.
    pub(super) fn values(&mut self, field: &str, operator: Operator) -> Option<Vec<Token<'t>>> {
        if operator == Operator::Text(TextOperator::Empty) {
            return Some(Vec::new());
        }
        let values = self.set()?;
        let takes_one = !matches!(operator, Operator::Member | Operator::Has | Operator::Text(_));
        if takes_one && values.len() > 1 {
            let at = values[0].start..values[values.len() - 1].end;
            self.wrong(at, format!("\"{field}\" is compared with several values"), "\"in\" before a list");
            return None;
        }
        Some(values)
    }

    /// Reads `== a` or `in a|b`.
    pub(super) fn listed<T>(
        &mut self,
        field: &str,
        read: impl Fn(&str) -> Read<T>,
        test: impl FnOnce(Vec<At<T>>) -> Test,
    ) -> Option<Condition> {
        let (operator, negated) = self.operator(field, Operator::LISTED)?;
        let values = self.values(field, operator)?;
        Some(with_sign(test(self.each(&values, read)?), negated))
    }

    /// Reads what compares text.
    pub(super) fn text(
        &mut self,
        values: &[Token<'_>],
        operator: Operator,
        source: TextSource,
        at: Range<usize>,
    ) -> Option<Test> {
        let operator = match operator {
            Operator::Text(operator) => operator,
            _ => TextOperator::Equal,
        };
        let values = self.each(values, |text| match operator {
            TextOperator::Matches => operand::regex(text),
            _ => Ok(text.to_owned()),
        })?;
        let source = At { value: source, span: self.scalar.span(at.start, at.end) };
        Some(Test::Text(source, TextTest { operator, values: plain(values) }))
    }

    /// Reads the comparison of a field that is text.
    pub(super) fn text_field(&mut self, field: &str, source: TextSource) -> Option<Condition> {
        let at = self.field_range();
        let (operator, negated) = self.operator(field, Operator::TEXT)?;
        let values = self.values(field, operator)?;
        Some(with_sign(self.text(&values, operator, source, at)?, negated))
    }

    /// Returns the place of the field that was just read.
    pub(super) fn field_range(&self) -> Range<usize> {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0..0, Token::range)
    }

    /// Reads a field that is compared by values of its own, or as text.
    pub(super) fn listed_or_text<T>(
        &mut self,
        field: &str,
        source: TextSource,
        read: impl Fn(&str, Operator) -> Read<T>,
        test: impl FnOnce(Vec<At<T>>) -> Test,
    ) -> Option<Condition> {
        let at = self.field_range();
        let (operator, negated) = self.operator(field, Operator::TEXT)?;
        let values = self.values(field, operator)?;
        let test = match operator {
            Operator::Text(_) => self.text(&values, operator, source, at)?,
            _ => test(self.each(&values, |text| read(text, operator))?),
        };
        Some(with_sign(test, negated))
    }

    pub(super) fn one_in_parentheses(&mut self, field: &str) -> Option<Token<'t>> {
        if self.next_is("(")
            && let [only] = self.set_inside("(", ")")?.as_slice()
        {
            return Some(*only);
        }
        self.wrong(
            self.field_range(),
            format!("\"{field}\" needs one name in parentheses"),
            &format!("{field}(NAME)"),
        );
        None
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
    pub(super) fn set_inside(&mut self, open: &str, close: &str) -> Option<Vec<Token<'t>>> {
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

    pub(super) fn value(&mut self) -> Option<Token<'t>> {
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
    pub(super) fn each<T>(
        &mut self,
        values: &[Token<'_>],
        read: impl Fn(&str) -> Read<T>,
    ) -> Option<Vec<At<T>>> {
        let mut all = Vec::new();
        for token in values {
            // A quoted value begins after its quotation mark.
            let start = token.text_start();
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
}

pub(super) fn with_sign(test: Test, negated: bool) -> Condition {
    let test = Condition::Test(test);
    if negated { Condition::Not(Box::new(test)) } else { test }
}

pub(super) fn plain<T>(values: Vec<At<T>>) -> Vec<T> {
    values.into_iter().map(|at| at.value).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use diagnostic::{Diagnostic, FileId, Sources, Span, diagnostics};
    use std::path::Path;
    use wire::Rtype;

    pub(in crate::condition) fn read(text: &str) -> Result<Condition, Vec<String>> {
        let mut sources = Sources::new(&[]);
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
            Condition::Constant(holds) => holds.to_string(),
            Condition::Named(name) => format!("<{}>", name.value),
            Condition::Test(Test::Qname(terms)) => format!("qname[{}]", terms.len()),
            Condition::Test(Test::Qtype(types)) => format!("qtype[{}]", types.len()),
            Condition::Test(Test::Client(terms)) => format!("client[{}]", terms.len()),
            Condition::Test(Test::Mark(marks)) => format!("mark{marks:?}"),
            Condition::Test(Test::Text(source, test)) => {
                format!("{:?} {:?} {:?}", source.value, test.operator, test.values)
            }
            Condition::Test(Test::Now(hours)) => format!("now[{}]@{:?}", hours.windows.len(), hours.zone),
            Condition::Test(test) => format!("{test:?}"),
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
    fn every_field_is_read() {
        check("rd and not cd or ad", "((Flag(Flags(256)) and not Flag(Flags(16))) or Flag(Flags(32)))");
        check("do", "WantsDnssec");
        check(
            "edns and edns-option in cookie|65001",
            "(Edns and EdnsOption([OptionCode(10), OptionCode(65001)]))",
        );
        check("edns-size < 1232", "Number(EdnsSize, 0, 1231)");
        check("edns-size != 512", "not Number(EdnsSize, 512, 512)");
        check("edns-size < 0", "false");
        check("qname-labels > 8", "Number(QnameLabels, 9, 65535)");
        check("subnet-ipv4-bits > 24", "Number(SubnetIpv4Bits, 25, 65535)");
        check("qname-length == 17", "Number(QnameLength, 17, 17)");
        check("edns-size >= 4096", "Number(EdnsSize, 4096, 65535)");
        check("client-mac == 00:00:5e:00:53:01", "ClientMac([[0, 0, 94, 0, 83, 1]])");
        check("client-id in [anna, ben]", "ClientId Equal [\"anna\", \"ben\"]");
        check("sni ends-with \".example.org\"", "ServerName Suffix [\".example.org\"]");
        check("client-certificate", "not Certificate(Fingerprint) Empty []");
        check(
            "not client-certificate and rd",
            "(not not Certificate(Fingerprint) Empty [] and Flag(Flags(256)))",
        );
        check("client-certificate(name) == a.example", "Certificate(Name) Equal [\"a.example\"]");
        check("header(User-Agent) is not empty", "not Header(\"user-agent\") Empty []");
        check("qname in keyword:ads|regex:^a.*z$", "qname[2]");
        check("qname not starts-with \"ads.\"", "not Qname Prefix [\"ads.\"]");
        check("qtype matches \"^A\"", "Qtype Matches [\"^A\"]");
        check("random < 50%", "Random(2147483648)");
        check("random < 100%", "true");
        check(
            "now in hours(\"mon-fri 21:00-07:00\", \"sat,sun\", \"Europe/Berlin\")",
            "now[2]@Some(\"Europe/Berlin\")",
        );
        check(
            "rate(client/24) > 100/s",
            "Rate(Rate { subject: Subject { client: Some((24, 64)), qname: None, qtype: false, listener: false }, count: 100, period_ms: 1000, burst: 100 })",
        );
        check(
            "rate(client/32/48, qname/2) <= 5/m burst 20",
            "not Rate(Rate { subject: Subject { client: Some((32, 48)), qname: Some(2), qtype: false, listener: false }, count: 5, period_ms: 60000, burst: 20 })",
        );
        check("answer and answered and not answer has AAAA", &shown_answer());
        check("security != secure", "not Security([Secure])");
        check("security in [bogus, unchecked]", "Security([Bogus, Unchecked])");
        check("rcode in [nxdomain, 23]", "Rcode([Rcode(3), Rcode(23)])");
        check("env(SITE) or env(SITE) == berlin", "(Env(\"SITE\") or Env(\"SITE\") Equal [\"berlin\"])");
        check("true and bedtime or (false)", "((true and <bedtime>) or false)");
    }

    /// How `answer and answered and not answer has AAAA` is written with places.
    fn shown_answer() -> String {
        let span = Span { file: FileId(0), start: 39, end: 43 };
        let types = Test::AnswerType(vec![At { value: Rtype::AAAA, span }]);
        format!("(Answer and Answered and not {types:?})")
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong("qnam == a.", &["x:1:1: error: a condition cannot look at \"qnam\""]);
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
            "opcode = query",
            &[
                "x:1:8: error: \"=\" cannot stand after \"opcode\": expected \"==\", \"!=\", \"in\" or \"not in\"",
            ],
        );
        check_wrong(
            "sni not == a",
            &[
                "x:1:5: error: \"not ==\" cannot stand after \"sni\": expected \"==\", \"!=\", \"in\", \"not in\", \"starts-with\", \"ends-with\", \"contains\", \"matches\" or \"is empty\"",
            ],
        );
        check_wrong("qtype ==", &["x:1:8: error: the condition ends too early: expected a value"]);
        check_wrong(
            "",
            &[
                "x:1:1: error: the condition ends too early: expected a test such as qname, qtype, client or mark",
            ],
        );
        check_wrong("(mark(1)", &["x:1:1: error: this \"(\" is not closed: expected a \")\""]);
        check_wrong("qtype in [A", &["x:1:10: error: this \"[\" is not closed: expected \",\" or \"]\""]);
        check_wrong(
            "mark(1) mark(2)",
            &["x:1:9: error: \"mark\" cannot stand here: expected \"and\", \"or\" or the end"],
        );
        check_wrong("mark(64)", &["x:1:6: error: there is no mark 64: expected 0 to 63"]);
        check_wrong(
            "qname in rex:x",
            &["x:1:10: error: unknown form of name \"rex:\": expected suffix:, exact:, keyword: or regex:"],
        );
        check_wrong("qname == \"a..b\"", &["x:1:13: error: \"a..b\" is not a domain name: a label is empty"]);
        check_wrong("qtype == \"A", &["x:1:10: error: a quoted text is not closed: expected \" at its end"]);
        check_wrong(
            "qtype == [A, NS]",
            &["x:1:11: error: \"qtype\" is compared with several values: expected \"in\" before a list"],
        );
        check_wrong(
            "random < 101%",
            &["x:1:10: error: \"101%\" is not a percentage: expected 0% to 100%, such as 5% or 0.01%"],
        );
        check_wrong(
            "rate > 1/s",
            &["x:1:1: error: \"rate\" needs something in parentheses: expected rate(client/24)"],
        );
        check_wrong(
            "rate(client, all) > 1/s",
            &["x:1:14: error: \"all\" cannot stand beside the others: expected each once"],
        );
        check_wrong(
            "rate(client/33) > 1/s",
            &["x:1:6: error: \"33\" is out of range in \"client/33\": expected 0 to 32"],
        );
        check_wrong(
            "rate(all) > 100",
            &["x:1:13: error: \"100\" is not a rate: expected a rate such as 100/s, 5/m or 1000/h"],
        );
        check_wrong(
            "now in 9-17",
            &["x:1:8: error: \"9-17\" is not a time: expected hours(\"mon-fri 21:00-07:00\")"],
        );
        check_wrong(
            "now in hours(\"mon-fry\", \"Europe/Berlim\")",
            &[
                "x:1:15: error: \"mon-fry\" is not a day or a range of days: expected hours such as \"mon-fri 21:00-07:00\", \"sat,sun\" or \"day 1-7 09:00-18:00\"",
            ],
        );
        check_wrong("env == a", &["x:1:1: error: \"env\" needs one name in parentheses: expected env(NAME)"]);
        check_wrong(
            "client-mac == 00:00:5e",
            &[
                "x:1:15: error: \"00:00:5e\" is not a hardware address: expected six octets such as 00:00:5e:00:53:01",
            ],
        );
    }

    #[test]
    fn an_expression_that_cannot_be_searched_for_is_refused() {
        let found = read("qname matches \"a(\"").map(|found| text(&found)).expect_err("it is refused");
        assert!(
            found[0].starts_with("x:1:16: error: \"a(\" cannot be used as a regular expression: "),
            "{found:?}"
        );
        assert!(read("qname in regex:(a|b){1000}{1000}").is_err());
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
