//! Conditions: `qname in suffix:example.org and not client in 10.0.0.0/8`.
//!
//! ```text
//! condition = all { "or" all }
//! all       = one { "and" one }
//! one       = "not" one | "(" condition ")" | "true" | "false" | name of a condition | test
//! test      = fact | field comparison
//! comparison= ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value | [ "not" ] "in" set
//!           | [ "not" ] ( "starts-with" | "ends-with" | "contains" | "matches" | "has" ) set | "is" [ "not" ] "empty"
//! set       = ( value | "[" value { "," value } "]" ) { "|" … }
//! ```
//!
//! A fact is a field that stands alone, such as `rd`; which comparisons a field takes, its row says.

mod hours;
mod implies;
mod values;

use std::ops::Range;

use engine::matchers::identity::Mac;
use engine::matchers::rate::Subject;
use sets::Reach;
use wire::{Class, Flags, Opcode, OptionCode, Rcode, Rtype};

use super::tokens::{Dialect, Token, TokenKind, tokens};
use crate::diagnostic::Problem;
use crate::settings::NamePattern;
use crate::source::At;
use crate::suggest::{nearest, one_of};
use crate::values::{self as value, Misread, Prefix, Read};
use crate::yaml::Scalar;

pub use hours::Hours;
pub(crate) use implies::implies;
pub(crate) use values::mark;

/// How deep parentheses and `not` may nest: protects the stack.
pub const DEPTH_MAX: usize = 32;
/// The marks that a query can carry.
pub const MARKS: u64 = 64;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Every one of them holds; never empty.
    All(Vec<Condition>),
    /// At least one of them holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// Always so.
    Constant(bool),
    /// What the file calls so under `conditions`.
    Named(At<String>),
    /// A single test.
    Test(Test),
}

/// A single test of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The name asked for is one of these.
    Qname(Vec<At<NameTerm>>),
    /// The type asked for is one of these.
    Qtype(Vec<At<Rtype>>),
    /// The class asked for is one of these.
    Qclass(Vec<At<Class>>),
    /// The operation is one of these.
    Opcode(Vec<At<Opcode>>),
    /// The query has this flag.
    Flag(Flags),
    /// The query asks for DNSSEC records.
    WantsDnssec,
    /// The query has EDNS.
    Edns,
    /// The query has one of these EDNS options.
    EdnsOption(Vec<OptionCode>),
    /// The client takes UDP messages of so many octets, from the first to the second.
    EdnsSize(u16, u16),
    /// The client is one of these.
    Client(Vec<At<AddressTerm>>),
    /// The client's hardware address is one of these.
    ClientMac(Vec<Mac>),
    /// The query came to one of these listeners.
    Listener(Vec<At<String>>),
    /// The query came over one of these transports.
    Transport(Vec<At<TransportTerm>>),
    /// The time is within these hours.
    Now(Hours),
    /// One of so many: a share of 2³².
    Random(u32),
    /// More queries come than this allows.
    Rate(Rate),
    /// The query carries one of these marks.
    Mark(Vec<u8>),
    /// There is an answer.
    Answer,
    /// The answer has a record of the type asked for.
    Answered,
    /// The answer's response code is one of these.
    Rcode(Vec<Rcode>),
    /// The answer has a record of one of these types.
    AnswerType(Vec<At<Rtype>>),
    /// An address in the answer is one of these.
    AnswerAddress(Vec<At<AddressTerm>>),
    /// The target of an alias in the answer is one of these.
    AnswerCname(Vec<At<NameTerm>>),
    /// The name asked for stands for one of these addresses.
    PtrAddress(Vec<At<AddressTerm>>),
    /// A text compares so.
    Text(At<TextSource>, TextTest),
    /// An environment variable is set.
    Env(String),
}

/// Names to compare with.
#[derive(Clone, Debug, PartialEq)]
pub enum NameTerm {
    /// A rule on names.
    Pattern(NamePattern),
    /// The names of a set.
    Set(String),
}

/// Addresses to compare with.
#[derive(Clone, Debug, PartialEq)]
pub enum AddressTerm {
    /// A prefix or what one of [`PREFIX_WORDS`](crate::schema::PREFIX_WORDS) stands for.
    Prefixes(Vec<Prefix>),
    /// The addresses of a set.
    Set(String),
}

/// A transport, also one that this version does not listen on yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportTerm {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
    /// TLS, HTTPS, QUIC or HTTP/3.
    Encrypted,
}

/// Where a text comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum TextSource {
    /// The name asked for.
    Qname,
    /// The type asked for.
    Qtype,
    /// The client's address.
    Client,
    /// The client's identity, as a trusted peer tells it.
    ClientId,
    /// The answer's response code.
    Rcode,
    /// An address in the answer.
    AnswerAddress,
    /// A mark.
    Mark,
    /// The name that the client sends in TLS.
    ServerName,
    /// The path of an HTTP request.
    Path,
    /// A header of an HTTP request.
    Header(String),
    /// An environment variable, as it is when the file is loaded.
    Env(String),
}

/// How a text is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct TextTest {
    /// The comparison.
    pub operator: TextOperator,
    /// The values; any of them.
    pub values: Vec<String>,
}

/// A comparison of texts; letter case is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOperator {
    /// The same.
    Equal,
    /// It begins with the value.
    Prefix,
    /// It ends with the value.
    Suffix,
    /// The value is in it.
    Contains,
    /// It fits the regular expression.
    Matches,
    /// There is nothing in it.
    Empty,
}

/// A rate that is not to be exceeded.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// What is counted.
    pub subject: Subject,
    /// How many.
    pub count: u32,
    /// In how many milliseconds.
    pub period_ms: u64,
    /// How many at once.
    pub burst: u32,
}

/// One thing that a condition can look at.
pub struct Field {
    /// Its word.
    pub word: &'static str,
    /// What it is, for the manual.
    pub text: &'static str,
    /// Reads what follows the word.
    read: fn(&mut Parser<'_>, &'static str) -> Option<Condition>,
}

/// Everything that a condition can look at.
pub const FIELDS: &[Field] = &[
    Field {
        word: "qname",
        text: "The name asked for: `qname == \"www.example.org\"`, `qname in suffix:example.org|exact:example.net`, \
               `qname in keyword:ads|regex:^ads?[0-9]`, `qname in video` with a set of that name, `qname starts-with \"ads.\"`.",
        read: |parser, field| parser.qname(field),
    },
    Field {
        word: "qtype",
        text: "The type asked for: `qtype == AAAA`, `qtype in [A, AAAA]`.",
        read: |parser, field| parser.qtype(field),
    },
    Field {
        word: "qclass",
        text: "The class asked for. Only `IN` comes to policies: the server answers the others itself.",
        read: |parser, field| {
            parser.listed(field, value_of::<Class>("class", &["IN", "CH", "HS", "ANY"]), Test::Qclass)
        },
    },
    Field {
        word: "opcode",
        text: "The operation. Only `query` comes to policies: the server answers the others itself.",
        read: |parser, field| {
            parser.listed(
                field,
                value_of::<Opcode>("operation", &["query", "notify", "update"]),
                Test::Opcode,
            )
        },
    },
    Field {
        word: "rd",
        text: "The client asks for recursion (the flag RD).",
        read: |_, _| Some(Condition::Test(Test::Flag(Flags::RD))),
    },
    Field {
        word: "cd",
        text: "The client wants no validation (the flag CD).",
        read: |_, _| Some(Condition::Test(Test::Flag(Flags::CD))),
    },
    Field {
        word: "ad",
        text: "The client understands the flag AD (RFC 6840 §5.7).",
        read: |_, _| Some(Condition::Test(Test::Flag(Flags::AD))),
    },
    Field {
        word: "do",
        text: "The client asks for DNSSEC records (the flag DO).",
        read: |_, _| Some(Condition::Test(Test::WantsDnssec)),
    },
    Field { word: "edns", text: "The query has EDNS.", read: |_, _| Some(Condition::Test(Test::Edns)) },
    Field {
        word: "edns-option",
        text: "The EDNS options of the query, by number or name: `edns-option == 65001`, `edns-option in cookie|client-subnet`.",
        read: |parser, field| {
            let read = value_of::<OptionCode>("EDNS option", &["client-subnet", "cookie", "nsid", "65001"]);
            parser.listed(field, read, |all| Test::EdnsOption(plain(all)))
        },
    },
    Field {
        word: "edns-size",
        text: "The largest UDP message that the client takes, 512 without EDNS: `edns-size < 1232`.",
        read: |parser, field| parser.edns_size(field),
    },
    Field {
        word: "client",
        text: "The client's address: `client in 10.0.0.0/8|2001:db8::/32`, `client in lan`, `client in kids` with a set \
               of that name. Of peers in `trusted-peers`: the single address in the EDNS client subnet, if there is one.",
        read: |parser, field| parser.address(field, TextSource::Client, Test::Client),
    },
    Field {
        word: "client-mac",
        text: "The client's hardware address, which `trusted-peers` tell in EDNS option 65001 (dnsmasq `add-mac`) or 65073 \
               (as text): `client-mac == 00:00:5e:00:53:01`.",
        read: |parser, field| parser.listed(field, values::mac, |all| Test::ClientMac(plain(all))),
    },
    Field {
        word: "client-id",
        text: "The client's identity, which `trusted-peers` tell in EDNS option 65074 (dnsmasq `add-cpe-id`): \
               `client-id in [anna, ben]`.",
        read: |parser, field| parser.text_field(field, TextSource::ClientId),
    },
    Field {
        word: "listener",
        text: "The listener that the query came to, by its name: `listener == guests`.",
        read: |parser, field| parser.listed(field, values::label, Test::Listener),
    },
    Field {
        word: "transport",
        text: "What the query came over: `transport == udp`; `udp`, `tcp`, `tls`, `https`, `quic` or `h3`.",
        read: |parser, field| parser.listed(field, values::transport, Test::Transport),
    },
    Field {
        word: "sni",
        text: "The server name that the client sends in TLS: `sni == dns.example.org`, `sni ends-with \".example.org\"`.",
        read: |parser, field| parser.text_field(field, TextSource::ServerName),
    },
    Field {
        word: "path",
        text: "The path of an HTTP request: `path == \"/dns-query\"`.",
        read: |parser, field| parser.text_field(field, TextSource::Path),
    },
    Field {
        word: "header",
        text: "A header of an HTTP request: `header(user-agent) contains curl`.",
        read: |parser, field| {
            let name = parser.one_in_parentheses(field)?;
            let source = TextSource::Header(name.text.to_ascii_lowercase());
            parser.text_field(field, source)
        },
    },
    Field {
        word: "now",
        text: "The time of day and the day: `now in hours(\"mon-fri 21:00-07:00\", \"Europe/Berlin\")`. Several windows \
               may be given; days are `mon` to `sun`, days of the month `day 1-7,15`. Without a time zone, that of the machine. \
               A window over midnight belongs to the day on which it begins.",
        read: |parser, field| parser.now(field),
    },
    Field {
        word: "random",
        text: "A random share of the queries: `random < 5%`.",
        read: |parser, field| parser.random(field),
    },
    Field {
        word: "rate",
        text: "How often something comes: `rate(client/24) > 100/s`, `rate(client/32/64, qname) > 5/m burst 20`, \
               `rate(all) > 50000/s`. Counted together are `client` with prefix lengths for IPv4 and IPv6 (default 32 and 64), \
               `qname` or its last labels `qname/2`, `qtype`, `listener`; `all` is everything. Looking counts the query.",
        read: |parser, field| parser.rate(field),
    },
    Field {
        word: "mark",
        text: "The marks that rules have put on the query: `mark == 3`, `mark(3)`, `mark in [3, 4]`.",
        read: |parser, field| parser.mark(field),
    },
    Field {
        word: "answer",
        text: "There is an answer; with `has`, one that has a record of a type: `answer has AAAA`.",
        read: |parser, field| parser.answer(field),
    },
    Field {
        word: "answered",
        text: "The answer has a record of the type asked for.",
        read: |_, _| Some(Condition::Test(Test::Answered)),
    },
    Field {
        word: "rcode",
        text: "The response code of the answer there is: `rcode == nxdomain`, `rcode in [servfail, refused]`.",
        read: |parser, field| parser.rcode(field),
    },
    Field {
        word: "answer-address",
        text: "The addresses in the answer: `answer-address in 10.0.0.0/8|intranet`.",
        read: |parser, field| parser.address(field, TextSource::AnswerAddress, Test::AnswerAddress),
    },
    Field {
        word: "answer-cname",
        text: "The names that aliases in the answer lead to: `answer-cname in suffix:cdn.example`.",
        read: |parser, field| parser.listed(field, values::name_term, Test::AnswerCname),
    },
    Field {
        word: "ptr-address",
        text: "The address that a question for PTR asks about: `ptr-address in lan`.",
        read: |parser, field| parser.listed(field, values::address_term, Test::PtrAddress),
    },
    Field {
        word: "env",
        text: "An environment variable, as it is when the file is loaded: `env(SITE)` if it is set, `env(SITE) == berlin`.",
        read: |parser, field| parser.env(field),
    },
];

/// What may follow a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
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
    const LISTED: &'static [Self] = &[Self::Equal, Self::Member];
    /// What text can be compared by.
    const TEXT: &'static [Self] = &[
        Self::Equal,
        Self::Member,
        Self::Text(TextOperator::Prefix),
        Self::Text(TextOperator::Suffix),
        Self::Text(TextOperator::Contains),
        Self::Text(TextOperator::Matches),
        Self::Text(TextOperator::Empty),
    ];
    /// What numbers can be compared by.
    const NUMBER: &'static [Self] =
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
        if token.kind == TokenKind::Word && stands_alone && value::identifier(token.text).is_ok() {
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
    fn operator(&mut self, field: &str, allowed: &[Operator]) -> Option<(Operator, bool)> {
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
    fn values(&mut self, field: &str, operator: Operator) -> Option<Vec<Token<'t>>> {
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
    fn listed<T>(
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
    fn text(
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
            TextOperator::Matches => values::regex(text),
            _ => Ok(text.to_owned()),
        })?;
        let source = At { value: source, span: self.scalar.span(at.start, at.end) };
        Some(Test::Text(source, TextTest { operator, values: plain(values) }))
    }

    /// Reads the comparison of a field that is text.
    fn text_field(&mut self, field: &str, source: TextSource) -> Option<Condition> {
        let at = self.field_range();
        let (operator, negated) = self.operator(field, Operator::TEXT)?;
        let values = self.values(field, operator)?;
        Some(with_sign(self.text(&values, operator, source, at)?, negated))
    }

    /// Returns the place of the field that was just read.
    fn field_range(&self) -> Range<usize> {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0..0, Token::range)
    }

    /// Reads a field that is compared by values of its own, or as text.
    fn listed_or_text<T>(
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

    fn qname(&mut self, field: &'static str) -> Option<Condition> {
        let read = |text: &str, operator| match operator {
            Operator::Member => values::name_term(text),
            _ => value::name(text).map(|name| NameTerm::Pattern(NamePattern::Name(name, Reach::Itself))),
        };
        self.listed_or_text(field, TextSource::Qname, read, Test::Qname)
    }

    fn qtype(&mut self, field: &'static str) -> Option<Condition> {
        self.listed_or_text(field, TextSource::Qtype, |text, _| value::rtype(text), Test::Qtype)
    }

    fn rcode(&mut self, field: &'static str) -> Option<Condition> {
        let read = |text: &str, _| values::rcode(text);
        self.listed_or_text(field, TextSource::Rcode, read, |all| Test::Rcode(plain(all)))
    }

    fn address(
        &mut self,
        field: &'static str,
        source: TextSource,
        test: fn(Vec<At<AddressTerm>>) -> Test,
    ) -> Option<Condition> {
        self.listed_or_text(field, source, |text, _| values::address_term(text), test)
    }

    fn mark(&mut self, field: &'static str) -> Option<Condition> {
        if self.next_is("(") {
            let values = self.set_inside("(", ")")?;
            return Some(Condition::Test(Test::Mark(plain(self.each(&values, mark)?))));
        }
        self.listed_or_text(field, TextSource::Mark, |text, _| mark(text), |all| Test::Mark(plain(all)))
    }

    fn answer(&mut self, field: &'static str) -> Option<Condition> {
        let goes_on = match self.peek() {
            None => false,
            Some(next) => !(next.is("and") || next.is("or") || next.is(")")),
        };
        if !goes_on {
            return Some(Condition::Test(Test::Answer));
        }
        let (operator, negated) = self.operator(field, &[Operator::Has])?;
        let values = self.values(field, operator)?;
        Some(with_sign(Test::AnswerType(self.each(&values, value::rtype)?), negated))
    }

    fn edns_size(&mut self, field: &'static str) -> Option<Condition> {
        let (operator, negated) = self.operator(field, Operator::NUMBER)?;
        let values = self.values(field, operator)?;
        let size = self.each(&values, values::octets)?.first()?.value;
        let nothing = || Condition::Constant(false);
        let test = |min, max| Condition::Test(Test::EdnsSize(min, max));
        let condition = match operator {
            Operator::Less => size.checked_sub(1).map_or_else(nothing, |max| test(0, max)),
            Operator::LessOrEqual => test(0, size),
            Operator::Greater => size.checked_add(1).map_or_else(nothing, |min| test(min, u16::MAX)),
            Operator::GreaterOrEqual => test(size, u16::MAX),
            _ => test(size, size),
        };
        Some(if negated { Condition::Not(Box::new(condition)) } else { condition })
    }

    fn random(&mut self, field: &'static str) -> Option<Condition> {
        let (operator, _) = self.operator(field, &[Operator::Less])?;
        let values = self.values(field, operator)?;
        let share = self.each(&values, values::share)?.first()?.value;
        Some(match u32::try_from(share) {
            Ok(share) => Condition::Test(Test::Random(share)),
            Err(_) => Condition::Constant(true),
        })
    }

    fn rate(&mut self, field: &'static str) -> Option<Condition> {
        if !self.next_is("(") {
            self.wrong(self.field_range(), "\"rate\" needs something in parentheses", "rate(client/24)");
            return None;
        }
        let subjects = self.set_inside("(", ")")?;
        let mut subject = Subject::default();
        let mut seen: Vec<&str> = Vec::new();
        for part in self.each(&subjects, |text| Ok(text.to_owned()))?.iter().zip(&subjects) {
            let (_, token) = part;
            let word = token.text.split('/').next().unwrap_or("");
            if seen.contains(&word) || (word == "all" && subjects.len() > 1) {
                self.wrong(
                    token.range(),
                    format!("\"{}\" cannot stand beside the others", token.text),
                    "each once",
                );
                return None;
            }
            seen.push(word);
            let token = *token;
            self.each(&[token], |text| values::subject(text, subject))
                .and_then(|read| read.into_iter().next())
                .map(|read| subject = read.value)?;
        }
        let (operator, _) = self.operator(field, &[Operator::Greater, Operator::LessOrEqual])?;
        let values = self.values(field, operator)?;
        let (count, period_ms) = self.each(&values, values::frequency)?.first()?.value;
        let burst = if self.take_if("burst") {
            let burst = self.value()?;
            self.each(&[burst], values::count)?.first()?.value
        } else {
            count
        };
        let test = Test::Rate(Rate { subject, count, period_ms, burst });
        Some(with_sign(test, operator == Operator::LessOrEqual))
    }

    fn now(&mut self, field: &'static str) -> Option<Condition> {
        let (_, negated) = self.operator(field, &[Operator::Member])?;
        let word = self.value()?;
        if !word.is("hours") || !self.next_is("(") {
            self.wrong(
                word.range(),
                format!("\"{}\" is not a time", word.text),
                "hours(\"mon-fri 21:00-07:00\")",
            );
            return None;
        }
        let arguments = self.set_inside("(", ")")?;
        let (zones, windows): (Vec<Token<'_>>, Vec<Token<'_>>) =
            arguments.iter().partition(|token| hours::is_zone(token.text));
        let windows = self.each(&windows, hours::window)?;
        let zones = self.each(&zones, hours::zone)?;
        if windows.is_empty() {
            self.wrong(word.range(), "there are no hours", "hours(\"mon-fri 21:00-07:00\")");
            return None;
        }
        if let Some(second) = zones.get(1) {
            self.problems.push(Problem::error(second.span, "there are two time zones").expected("one"));
            return None;
        }
        let zone = zones.into_iter().next().map(|zone| zone.value);
        Some(with_sign(Test::Now(Hours { windows: plain(windows), zone }), negated))
    }

    fn env(&mut self, field: &'static str) -> Option<Condition> {
        let name = self.one_in_parentheses(field)?.text.to_owned();
        match self.peek() {
            Some(next) if !(next.is("and") || next.is("or") || next.is(")")) => {
                self.text_field(field, TextSource::Env(name))
            }
            _ => Some(Condition::Test(Test::Env(name))),
        }
    }

    fn one_in_parentheses(&mut self, field: &str) -> Option<Token<'t>> {
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

/// Returns whether a word means something in conditions, so that no condition can be called so.
pub(crate) fn is_taken(word: &str) -> bool {
    ["true", "false", "and", "or", "not", "in", "is", "has"].contains(&word)
        || FIELDS.iter().any(|field| field.word == word)
}

fn with_sign(test: Test, negated: bool) -> Condition {
    let test = Condition::Test(test);
    if negated { Condition::Not(Box::new(test)) } else { test }
}

fn plain<T>(values: Vec<At<T>>) -> Vec<T> {
    values.into_iter().map(|at| at.value).collect()
}

/// Returns a reader of numbers that have names.
fn value_of<T: std::str::FromStr>(
    what: &'static str,
    words: &'static [&'static str],
) -> impl Fn(&str) -> Read<T> {
    move |text| text.parse().map_err(|_| value::unknown_word(text, what, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Diagnostic, diagnostics};
    use crate::source::{FileId, Sources, Span};
    use std::path::Path;

    pub(super) fn read(text: &str) -> Result<Condition, Vec<String>> {
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
        check("edns-size < 1232", "EdnsSize(0, 1231)");
        check("edns-size != 512", "not EdnsSize(512, 512)");
        check("edns-size < 0", "false");
        check("edns-size >= 4096", "EdnsSize(4096, 65535)");
        check("client-mac == 00:00:5e:00:53:01", "ClientMac([[0, 0, 94, 0, 83, 1]])");
        check("client-id in [anna, ben]", "ClientId Equal [\"anna\", \"ben\"]");
        check("sni ends-with \".example.org\"", "ServerName Suffix [\".example.org\"]");
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
