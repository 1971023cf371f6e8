//! What a condition can look at: one row for each field, how what follows it is read, and the tests
//! that this gives.

use diagnostic::{At, Problem};
use engine::matchers::identity::Mac;
use engine::matchers::number::Number;
use engine::matchers::rate::Subject;
use engine::{Security, Transport};
use lists::NamePattern;
use sets::Reach;
use values::Read;
use wire::{Class, Flags, Opcode, OptionCode, Rcode, Rtype};

use super::hours::{self, Hours};
use super::operand::{self, mark};
use super::parser::{Operator, Parser, plain, with_sign};
use super::{AddressTerm, CertificatePart, Condition, NameTerm, Rate, TextOperator, TextSource, TextTest};
use crate::tokens::Token;

/// One thing that a condition can look at.
pub struct Field {
    /// Its word.
    pub word: &'static str,
    /// What it is, for the manual.
    pub text: &'static str,
    /// Reads what follows the word.
    pub(super) read: fn(&mut Parser<'_>, &'static str) -> Option<Condition>,
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
    /// A number of the query is in the range from the first to the second.
    Number(Number, u16, u16),
    /// The client is one of these.
    Client(Vec<At<AddressTerm>>),
    /// The client's hardware address is one of these.
    ClientMac(Vec<Mac>),
    /// The query came to one of these listeners.
    Listener(Vec<At<String>>),
    /// The query came over one of these transports.
    Transport(Vec<At<Transport>>),
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
    /// What is known of the answer's signatures is one of these.
    Security(Vec<Security>),
    /// The answer has a record of one of these types.
    AnswerType(Vec<At<Rtype>>),
    /// An address in the answer is one of these.
    AnswerAddress(Vec<At<AddressTerm>>),
    /// The target of an alias in the answer is one of these.
    AnswerCname(Vec<At<NameTerm>>),
    /// A name server that led to the answer has one of these names.
    ServerName(Vec<At<NameTerm>>),
    /// One has one of these addresses.
    ServerAddress(Vec<At<AddressTerm>>),
    /// One of these sets has a rule, or an exception, for the query or the answer there is.
    Listed(Vec<At<String>>),
    /// The name asked for stands for one of these addresses.
    PtrAddress(Vec<At<AddressTerm>>),
    /// A text compares so.
    Text(At<TextSource>, TextTest),
    /// An environment variable is set.
    Env(String),
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
        word: Number::QnameLabels.word(),
        text: "The number of labels of the name asked for: `qname-labels > 8`; `www.example.org` has 3.",
        read: |parser, field| parser.number(field, Number::QnameLabels),
    },
    Field {
        word: Number::QnameLength.word(),
        text: "The length of the name asked for in octets, as it is sent: `qname-length > 120`; `www.example.org` has 17. \
               Long names with many labels may carry data past a firewall.",
        read: |parser, field| parser.number(field, Number::QnameLength),
    },
    Field {
        word: Number::SubnetIpv4Bits.word(),
        text: "The bits of the IPv4 network that the query names as its client's (EDNS client subnet): \
               `subnet-ipv4-bits > 24`; 0 if it names none.",
        read: |parser, field| parser.number(field, Number::SubnetIpv4Bits),
    },
    Field {
        word: Number::SubnetIpv6Bits.word(),
        text: "The same of an IPv6 network: `subnet-ipv6-bits > 56`.",
        read: |parser, field| parser.number(field, Number::SubnetIpv6Bits),
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
        word: Number::EdnsSize.word(),
        text: "The largest UDP message that the client takes, 512 without EDNS: `edns-size < 1232`.",
        read: |parser, field| parser.number(field, Number::EdnsSize),
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
        read: |parser, field| parser.listed(field, operand::mac, |all| Test::ClientMac(plain(all))),
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
        read: |parser, field| parser.listed(field, operand::label, Test::Listener),
    },
    Field {
        word: "transport",
        text: "What the query came over: `transport == udp`; `udp`, `tcp`, `tls`, `https`, `quic` or `h3`.",
        read: |parser, field| parser.listed(field, operand::transport, Test::Transport),
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
        word: "client-certificate",
        text: "The client has shown a certificate (see `tls.client-ca`). In parentheses stands what of it is compared: `subject`, \
               as `client-certificate(subject) ends-with \"O=Example\"`; `name`, any of its alternative names, as \
               `client-certificate(name) == laptop.example.org`; `fingerprint`, its SHA-256 in hexadecimal digits.",
        read: |parser, field| parser.certificate(field),
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
        word: "security",
        text: "What is known of the answer's signatures: `security == secure`, `security in [insecure, indeterminate]`. Answers \
               found by `recurse` are `secure`, `insecure` (nothing above vouches for the zone), `indeterminate` (nothing above \
               it is trusted) or, with `validation: permissive`, `bogus`; what nobody has checked is `unchecked`.",
        read: |parser, field| parser.listed(field, operand::security, |all| Test::Security(plain(all))),
    },
    Field {
        word: "answer-address",
        text: "The addresses in the answer: `answer-address in 10.0.0.0/8|intranet`.",
        read: |parser, field| parser.address(field, TextSource::AnswerAddress, Test::AnswerAddress),
    },
    Field {
        word: "answer-cname",
        text: "The names that aliases in the answer lead to: `answer-cname in suffix:cdn.example`.",
        read: |parser, field| parser.listed(field, operand::name_term, Test::AnswerCname),
    },
    Field {
        word: "ns-name",
        text: "The names of the name servers that led to an answer of `recurse`: those of the zones of the name and of the \
               aliases after it, up to the zones below a top-level domain: `ns-name in suffix:dns.example.net`, or a set, of \
               whose response policy zones the `rpz-nsdname` rules count.",
        read: |parser, field| parser.listed(field, operand::name_term, Test::ServerName),
    },
    Field {
        word: "ns-address",
        text: "The addresses of these name servers, as far as they are known: `ns-address in 192.0.2.0/24`, or a set, of \
               whose response policy zones the `rpz-nsip` rules count.",
        read: |parser, field| parser.listed(field, operand::address_term, Test::ServerAddress),
    },
    Field {
        word: "listed",
        text: "A set has something to say: a rule or an exception for the name asked for or the client, or behind a step that \
               brings an answer for its addresses, the names that its aliases lead to or its name servers: `listed in ads`. \
               `qname in ads` holds only if the set would block the name.",
        read: |parser, field| parser.listed(field, operand::label, Test::Listed),
    },
    Field {
        word: "ptr-address",
        text: "The address that a question for PTR asks about: `ptr-address in lan`.",
        read: |parser, field| parser.listed(field, operand::address_term, Test::PtrAddress),
    },
    Field {
        word: "env",
        text: "An environment variable, as it is when the file is loaded: `env(SITE)` if it is set, `env(SITE) == berlin`.",
        read: |parser, field| parser.env(field),
    },
];

impl Parser<'_> {
    fn qname(&mut self, field: &'static str) -> Option<Condition> {
        let read = |text: &str, operator| match operator {
            Operator::Member => operand::name_term(text),
            _ => values::name(text).map(|name| NameTerm::Pattern(NamePattern::Name(name, Reach::Itself))),
        };
        self.listed_or_text(field, TextSource::Qname, read, Test::Qname)
    }

    fn qtype(&mut self, field: &'static str) -> Option<Condition> {
        self.listed_or_text(field, TextSource::Qtype, |text, _| values::rtype(text), Test::Qtype)
    }

    fn rcode(&mut self, field: &'static str) -> Option<Condition> {
        let read = |text: &str, _| operand::rcode(text);
        self.listed_or_text(field, TextSource::Rcode, read, |all| Test::Rcode(plain(all)))
    }

    fn address(
        &mut self,
        field: &'static str,
        source: TextSource,
        test: fn(Vec<At<AddressTerm>>) -> Test,
    ) -> Option<Condition> {
        self.listed_or_text(field, source, |text, _| operand::address_term(text), test)
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
        Some(with_sign(Test::AnswerType(self.each(&values, values::rtype)?), negated))
    }

    fn number(&mut self, field: &'static str, of: Number) -> Option<Condition> {
        let (operator, negated) = self.operator(field, Operator::NUMBER)?;
        let values = self.values(field, operator)?;
        let size = self.each(&values, operand::number)?.first()?.value;
        let nothing = || Condition::Constant(false);
        let test = |min, max| Condition::Test(Test::Number(of, min, max));
        let condition = match operator {
            Operator::Less => size.checked_sub(1).map_or_else(nothing, |max| test(0, max)),
            Operator::LessOrEqual => test(0, size),
            Operator::Greater => size.checked_add(1).map_or_else(nothing, |min| test(min, u16::MAX)),
            Operator::GreaterOrEqual => test(size, u16::MAX),
            _ => test(size, size),
        };
        Some(if negated { Condition::Not(Box::new(condition)) } else { condition })
    }

    fn certificate(&mut self, field: &'static str) -> Option<Condition> {
        if !self.next_is("(") {
            // Whatever it says: every certificate has a fingerprint.
            let source = TextSource::Certificate(CertificatePart::Fingerprint);
            let at = self.field_range();
            let test = self.text(&[], Operator::Text(TextOperator::Empty), source, at)?;
            return Some(with_sign(test, true));
        }
        let word = self.one_in_parentheses(field)?;
        let part = CertificatePart::WORDS.iter().find(|(name, _)| word.is(name));
        let Some((_, part)) = part else {
            let range = word.range();
            let message = format!("\"{}\" is nothing that a certificate has", word.text);
            self.wrong(range, message, "subject, name or fingerprint");
            return None;
        };
        self.text_field(field, TextSource::Certificate(*part))
    }

    fn random(&mut self, field: &'static str) -> Option<Condition> {
        let (operator, _) = self.operator(field, &[Operator::Less])?;
        let values = self.values(field, operator)?;
        let share = self.each(&values, operand::share)?.first()?.value;
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
            self.each(&[token], |text| operand::subject(text, subject))
                .and_then(|read| read.into_iter().next())
                .map(|read| subject = read.value)?;
        }
        let (operator, _) = self.operator(field, &[Operator::Greater, Operator::LessOrEqual])?;
        let values = self.values(field, operator)?;
        let (count, period_ms) = self.each(&values, operand::frequency)?.first()?.value;
        let burst = if self.take_if("burst") {
            let burst = self.value()?;
            self.each(&[burst], operand::count)?.first()?.value
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
}

/// Returns whether a word means something in conditions, so that no condition can be called so.
pub fn is_taken(word: &str) -> bool {
    ["true", "false", "and", "or", "not", "in", "is", "has"].contains(&word)
        || FIELDS.iter().any(|field| field.word == word)
}

/// Returns a reader of numbers that have names.
fn value_of<T: std::str::FromStr>(
    what: &'static str,
    words: &'static [&'static str],
) -> impl Fn(&str) -> Read<T> {
    move |text| text.parse().map_err(|_| values::unknown_word(text, what, words))
}
