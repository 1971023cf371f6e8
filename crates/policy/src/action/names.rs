//! Names that an action compares with: patterns, and sets.

use diagnostic::At;
use lists::{NamePattern, name_pattern};
use values::Read;

use super::{Noun, Reference};
use crate::arguments::label;

/// Some names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// Patterns written in the action.
    pub patterns: Vec<NamePattern>,
    /// Sets.
    pub sets: Vec<At<String>>,
}

/// One term of a list of names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Pattern(NamePattern),
    Set(String),
}

impl Names {
    /// Returns the names of all terms.
    pub(super) fn new(terms: Vec<At<Term>>) -> Self {
        let mut all = Self::default();
        for term in terms {
            match term.value {
                Term::Pattern(pattern) => all.patterns.push(pattern),
                Term::Set(name) => all.sets.push(At { value: name, span: term.span }),
            }
        }
        all
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.sets.is_empty()
    }

    pub(super) fn references(&self) -> impl Iterator<Item = Reference<'_>> {
        self.sets.iter().map(|name| Reference { noun: Noun::Set, name })
    }
}

/// Reads a pattern, such as `suffix:example.org`, or the name of a set.
pub(super) fn term(text: &str) -> Read<Term> {
    if text.contains(':') {
        return name_pattern(text).map(Term::Pattern);
    }
    label(text).map(Term::Set)
}
