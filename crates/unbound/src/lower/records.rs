//! Local data: records as the file has them.

use std::collections::BTreeSet;

use diagnostic::Problem;

use super::Lowering;
use crate::names::bare;
use crate::read::{Statement, Word};

/// A record of local data.
pub(super) struct Record<'a> {
    pub(super) owner: String,
    pub(super) ttl: String,
    pub(super) rtype: String,
    pub(super) data: String,
    pub(super) word: &'a Word,
}

impl<'a> Lowering<'a> {
    /// Reads local data as far as it takes to know whose it is.
    pub(super) fn local_data(&mut self, statements: impl Iterator<Item = &'a Statement>) -> Vec<Record<'a>> {
        let mut records: Vec<Record<'a>> = Vec::new();
        let mut aliases = BTreeSet::new();
        for statement in statements {
            let word = statement.word(0);
            match Record::read(word) {
                Some(record) if is_other_class(&record.rtype) => {
                    let message = format!("\"{}\" is left out: local data is of class IN alone", word.text);
                    self.warn(word.span, message);
                }
                Some(record) if record.rtype == "CNAME" && !aliases.insert(record.owner.clone()) => {
                    let message = format!(
                        "\"{}\" is left out: a name has one alias (RFC 2181), and the first one counts",
                        word.text
                    );
                    self.warn(word.span, message);
                }
                Some(record) if record.owner.starts_with("*.") => {
                    let message =
                        format!("\"{}\" is left out: it stands for no other names there", record.owner);
                    self.warn(word.span, message);
                }
                Some(record) => records.push(record),
                None => {
                    let problem = Problem::error(word.span, format!("\"{}\" is no record", word.text));
                    self.problems.push(
                        problem.expected("a name, a type and data, such as \"www.example.org. A 192.0.2.1\""),
                    );
                }
            }
        }
        records
    }
}

impl<'a> Record<'a> {
    fn read(word: &'a Word) -> Option<Self> {
        let (owner, ttl, rtype, data) = record_parts(&word.text)?;
        Some(Self { owner, ttl, rtype, data, word })
    }

    /// Returns an SOA as it stands in denials; `None` if it is no SOA.
    pub(super) fn negative(&self) -> Option<String> {
        let parts: Vec<&str> = self.data.split_whitespace().collect();
        let &[primary, mailbox, ref numbers @ ..] = parts.as_slice() else { return None };
        let minimum: u64 = numbers.get(4)?.parse().ok()?;
        let ttl = self.ttl.parse().map_or(minimum, |ttl: u64| ttl.min(minimum));
        let absolute = |name: &str| format!("{}.", name.trim_end_matches('.'));
        let [owner, primary, mailbox] = [&*self.owner, primary, mailbox].map(absolute);
        Some(format!("{owner} {ttl} SOA {primary} {mailbox} {}", numbers.join(" ")))
    }
}

/// Returns owner, TTL, type and data of a record; none if it is none.
pub fn record_parts(text: &str) -> Option<(String, String, String, String)> {
    let (owner, mut rest) = text.trim().split_once([' ', '\t'])?;
    let mut ttl = "3600";
    loop {
        let (part, behind) = rest.trim_start().split_once([' ', '\t'])?;
        rest = behind.trim();
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            ttl = part;
        } else if !part.eq_ignore_ascii_case("IN") {
            return Some((bare(owner), ttl.to_owned(), part.to_ascii_uppercase(), rest.to_owned()));
        }
    }
}

/// Returns whether a word that stands where a type does is a class: one that is not IN.
pub(crate) fn is_other_class(word: &str) -> bool {
    matches!(word, "CH" | "CHAOS" | "HS" | "HESIOD")
}
