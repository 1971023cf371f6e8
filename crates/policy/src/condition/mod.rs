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
//! A fact is a field that stands alone, such as `rd`; which comparisons a field takes, its row
//! says.

mod fields;
mod hours;
mod implies;
mod operand;
mod parser;

use diagnostic::At;
use engine::matchers::rate::Subject;
use lists::NamePattern;
use wire::Prefix;

pub use fields::{FIELDS, Field, Test, is_taken};
pub use hours::Hours;
pub use implies::implies;
pub use operand::mark;
pub use parser::parse;

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

impl Condition {
    /// Returns whether a test is part of it; those of named conditions are not looked at.
    pub fn has(&self, test: &Test) -> bool {
        match self {
            Self::All(all) | Self::Any(all) => all.iter().any(|one| one.has(test)),
            Self::Not(one) => one.has(test),
            Self::Test(own) => own == test,
            Self::Constant(_) | Self::Named(_) => false,
        }
    }
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
    /// A prefix or what one of [`PREFIX_WORDS`](values::PREFIX_WORDS) stands for.
    Prefixes(Vec<Prefix>),
    /// The addresses of a set.
    Set(String),
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
    /// Something that the client's certificate says.
    Certificate(CertificatePart),
    /// An environment variable, as it is when the file is loaded.
    Env(String),
}

/// What of a client's certificate is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificatePart {
    /// Whom it is for, as RFC 4514 writes it.
    Subject,
    /// The names in it; any of them.
    Name,
    /// The SHA-256 of it, in hexadecimal digits.
    Fingerprint,
}

impl CertificatePart {
    /// The words for them.
    pub const WORDS: [(&'static str, Self); 3] =
        [("subject", Self::Subject), ("name", Self::Name), ("fingerprint", Self::Fingerprint)];
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
