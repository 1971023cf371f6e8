//! Addresses that an action compares with: prefixes, words for some, and sets.

use diagnostic::At;
use values::{PREFIX_WORDS, Read};
use wire::Prefix;

use super::{Noun, Reference};
use crate::arguments::label;

/// Some addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Addresses {
    /// Prefixes written in the action.
    pub prefixes: Vec<Prefix>,
    /// Sets.
    pub sets: Vec<At<String>>,
}

/// One term of a list of addresses.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// Prefixes, one or those a word stands for.
    Prefixes(Vec<Prefix>),
    /// A set.
    Set(String),
}

impl Addresses {
    /// Returns the addresses of all terms.
    pub fn new(terms: Vec<At<Term>>) -> Self {
        let mut all = Self::default();
        for term in terms {
            match term.value {
                Term::Prefixes(prefixes) => all.prefixes.extend(prefixes),
                Term::Set(name) => all.sets.push(At { value: name, span: term.span }),
            }
        }
        all
    }

    pub(super) fn references(&self) -> impl Iterator<Item = Reference<'_>> {
        self.sets.iter().map(|name| Reference { noun: Noun::Set, name })
    }
}

/// Reads a prefix, one of [`PREFIX_WORDS`], or the name of a set.
pub(super) fn term(text: &str) -> Read<Term> {
    if PREFIX_WORDS.contains(&text) {
        return Ok(Term::Prefixes(values::prefix_word(text)));
    }
    if text.contains([':', '/']) || text.parse::<std::net::IpAddr>().is_ok() {
        return values::prefix(text).map(|prefix| Term::Prefixes(vec![prefix]));
    }
    label(text).map(Term::Set)
}
