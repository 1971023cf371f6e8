//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Comparing text: names, addresses and what a connection began with.

use std::fmt::Write as _;
use std::net::IpAddr;

use regex_automata::Input;
use regex_automata::dfa::{Automaton, dense};
use regex_automata::util::syntax;

use super::{Facts, answer};

/// Octets of the automaton of one regular expression; larger ones are refused.
pub const REGEX_OCTETS_MAX: usize = 4 << 20;
/// Octets of a name as text: four for each octet that needs an escape.
const TEXT_OCTETS_MAX: usize = 1024;

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// The name asked for, in lower case, without its final dot.
    Qname,
    /// The client's address.
    Client,
    /// Each address in the answer section.
    AnswerAddress,
}

/// How a text is compared; several values: with any of them. Letters of ASCII are compared in any
/// case.
pub enum TextTest {
    /// It is one of these.
    Equal(Box<[Box<[u8]>]>),
    /// It begins with one of these.
    Prefix(Box<[Box<[u8]>]>),
    /// It ends with one of these.
    Suffix(Box<[Box<[u8]>]>),
    /// One of these is in it.
    Contains(Box<[Box<[u8]>]>),
    /// It fits one of these.
    Matches(Box<[Regex]>),
    /// There is nothing in it.
    Empty,
}

/// A regular expression as a finished automaton: searching needs no memory.
pub struct Regex(dense::DFA<Vec<u32>>);

impl Regex {
    /// Reads an expression; says what is wrong with it.
    // Once per configuration.
    pub fn parse(text: &str) -> Result<Self, String> {
        let syntax = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
        let config = dense::Config::new()
            .dfa_size_limit(Some(REGEX_OCTETS_MAX))
            .determinize_size_limit(Some(REGEX_OCTETS_MAX));
        let built = dense::Builder::new().configure(config).syntax(syntax).build(text);
        built.map(Self).map_err(|error| {
            use std::error::Error;
            let mut innermost: &dyn Error = &error;
            while let Some(cause) = innermost.source() {
                innermost = cause;
            }
            innermost.to_string()
        })
    }

    /// Returns whether the text has a piece that fits.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let input = Input::new(text).earliest(true);
        // No octet makes such an automaton give up; if one did, that would be no match.
        matches!(self.0.try_search_fwd(&input), Ok(Some(_)))
    }
}

impl TextTest {
    /// Returns whether a text fits.
    pub fn holds(&self, text: &[u8]) -> bool {
        match self {
            Self::Equal(all) => all.iter().any(|one| text.eq_ignore_ascii_case(one)),
            Self::Prefix(all) => all.iter().any(|one| begins(text, one)),
            Self::Suffix(all) => all.iter().any(|one| {
                text.len().checked_sub(one.len()).is_some_and(|at| begins(text.get(at..).unwrap_or(&[]), one))
            }),
            Self::Contains(all) => all.iter().any(|one| contains(text, one)),
            Self::Matches(all) => all.iter().any(|one| one.is_match(text)),
            Self::Empty => text.is_empty(),
        }
    }

    pub(super) fn holds_for(&self, source: &TextSource, facts: &Facts<'_>) -> bool {
        let mut text = Text::new();
        match source {
            TextSource::Qname => {
                text.put_name(facts.request.sought.name());
                self.holds(text.octets())
            }
            TextSource::Client => {
                text.put_address(facts.client_address());
                self.holds(text.octets())
            }
            // Without an address there is nothing, which is empty.
            TextSource::AnswerAddress => {
                let is_any = answer::address(facts, |_| true).is_some();
                let found = answer::address(facts, |address| {
                    let mut text = Text::new();
                    text.put_address(address);
                    self.holds(text.octets())
                });
                found.is_some() || (!is_any && self.holds(&[]))
            }
        }
    }
}

fn begins(text: &[u8], with: &[u8]) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

fn contains(text: &[u8], piece: &[u8]) -> bool {
    piece.is_empty() || text.windows(piece.len()).any(|window| window.eq_ignore_ascii_case(piece))
}

/// A text in the making, on the stack.
struct Text {
    octets: [u8; TEXT_OCTETS_MAX],
    len: usize,
}

impl Text {
    const fn new() -> Self {
        Self { octets: [0; TEXT_OCTETS_MAX], len: 0 }
    }

    fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or(&[])
    }

    fn put(&mut self, octets: &[u8]) {
        if let Some(room) = self.octets.get_mut(self.len..self.len + octets.len()) {
            room.copy_from_slice(octets);
            self.len += octets.len();
        }
    }

    /// Writes a name without its final dot; the root is ".".
    fn put_name(&mut self, name: wire::Name<'_>) {
        for label in name.labels() {
            if self.len > 0 {
                self.put(b".");
            }
            for &octet in label {
                match octet {
                    b'.' | b'\\' => self.put(&[b'\\', octet]),
                    b'!'..=b'~' => self.put(&[octet]),
                    other => {
                        let digits = [other / 100, other / 10 % 10, other % 10].map(|digit| b'0' + digit);
                        self.put(b"\\");
                        self.put(&digits);
                    }
                }
            }
        }
        if self.len == 0 {
            self.put(b".");
        }
    }

    fn put_address(&mut self, address: IpAddr) {
        // Cannot fail: `write_str` below does not.
        let _ = write!(self, "{address}");
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Box<[Box<[u8]>]> {
        texts.iter().map(|text| text.as_bytes().into()).collect()
    }

    #[test]
    fn any_of_several_values_is_enough() {
        let regexes =
            |texts: &[&str]| texts.iter().map(|text| Regex::parse(text).expect("an expression")).collect();
        for (test, holding, failing) in [
            (TextTest::Equal(list(&["a.b", "c"])), ["A.b", "c"], ["a.b.", "xc"]),
            (TextTest::Prefix(list(&["ad", "x"])), ["Ads", "x"], ["bad", ""]),
            (TextTest::Suffix(list(&["ad", "x"])), ["bAd", "x"], ["ads", ""]),
            (TextTest::Contains(list(&["ad", "xx"])), ["bAds", "axxa"], ["axa", ""]),
            (TextTest::Matches(regexes(&["^a[0-9]+$", "b{2}"])), ["A17", "abba"], ["a17x", "aba"]),
            (TextTest::Empty, ["", ""], ["a", " "]),
        ] {
            for text in holding {
                assert!(test.holds(text.as_bytes()), "{text}");
            }
            for text in failing {
                assert!(!test.holds(text.as_bytes()), "{text}");
            }
        }
        assert!(TextTest::Contains(list(&[""])).holds(b""));
    }

    #[test]
    fn expressions_that_are_none_or_too_large_are_refused() {
        assert!(Regex::parse("a(").is_err());
        assert!(Regex::parse("(a|b){1000}{1000}").is_err());
        assert!(Regex::parse("[0-9]{1,200}.{1,200}x").is_err());
    }

    #[test]
    fn names_are_written_without_the_final_dot() {
        let cases: [(&[&[u8]], &str); 3] = [
            (&[b"www", b"example", b"org"], "www.example.org"),
            (&[], "."),
            (&[b"a.b ", b"org"], "a\\.b\\032.org"),
        ];
        for (labels, expect) in cases {
            let mut name = wire::NameBuf::root();
            for label in labels {
                name.push_label(label).expect("short");
            }
            let mut out = Text::new();
            out.put_name(name.as_name());
            assert_eq!(out.octets(), expect.as_bytes());
        }
    }
}
