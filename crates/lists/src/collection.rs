//! All sets of a server by name, and the sets that conditions are compiled to.

use std::collections::BTreeMap;
use std::sync::Arc;

use sets::{AddressSet, AddressSetBuilder, Blocklist, BlocklistBuilder, NameSet, NameSetBuilder};
use wire::{HashKey, Prefix};

use crate::NamePattern;
use crate::reading::add_prefixes;
use crate::set::CompiledSet;

/// An operand of a condition: inline, or the name of a set.
#[derive(Clone, Copy, Debug)]
pub enum Term<'a, T> {
    /// Written in the condition.
    Inline(T),
    /// The set of that name.
    Set(&'a str),
}

/// Compiled sets by their names.
#[derive(Clone)]
pub struct Sets {
    key: HashKey,
    all: BTreeMap<String, Arc<CompiledSet>>,
}

impl Sets {
    /// Returns an empty collection.
    pub const fn new(key: HashKey) -> Self {
        Self { key, all: BTreeMap::new() }
    }

    /// Adds a set.
    pub fn insert(&mut self, name: String, set: Arc<CompiledSet>) {
        self.all.insert(name, set);
    }

    /// Iterates over all sets.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CompiledSet)> {
        self.all.iter().map(|(name, set)| (name.as_str(), &**set))
    }

    /// Returns the block list of a set, if it has exceptions or rules with an action of their own.
    pub fn list(&self, name: &str) -> Option<Arc<Blocklist>> {
        self.all.get(name)?.list.clone()
    }

    /// Returns the block list of any set: without exceptions, it blocks the names of the set.
    pub fn any_list(&self, name: &str) -> Option<Arc<Blocklist>> {
        let set = self.all.get(name)?;
        Some(match &set.list {
            Some(list) => Arc::clone(list),
            None => {
                let list = BlocklistBuilder::new(&self.key);
                Arc::new(list.compile(Arc::clone(&set.names), Vec::new(), Vec::new()))
            }
        })
    }

    /// Compiles the names of a condition; a single set is shared, not copied.
    pub fn names<'a>(&self, terms: impl Iterator<Item = Term<'a, &'a NamePattern>>) -> Arc<NameSet> {
        let terms: Vec<Term<'a, &'a NamePattern>> = terms.collect();
        if let [Term::Set(name)] = terms.as_slice()
            && let Some(set) = self.all.get(*name)
        {
            return Arc::clone(&set.names);
        }
        let mut builder = NameSetBuilder::new(&self.key);
        builder.source("condition");
        for (line, term) in (1..).zip(terms) {
            match term {
                Term::Inline(pattern) => pattern.add_to(&mut builder, line),
                Term::Set(name) => {
                    if let Some(set) = self.all.get(name) {
                        builder.include(Arc::clone(&set.names));
                    }
                }
            }
        }
        Arc::new(builder.compile())
    }

    /// Compiles the addresses of a condition; a single set is shared, not copied.
    pub fn addresses<'a>(&self, terms: impl Iterator<Item = Term<'a, &'a [Prefix]>>) -> Arc<AddressSet> {
        let terms: Vec<Term<'a, &'a [Prefix]>> = terms.collect();
        if let [Term::Set(name)] = terms.as_slice()
            && let Some(set) = self.all.get(*name)
        {
            return Arc::clone(&set.addresses);
        }
        let mut builder = AddressSetBuilder::new();
        for term in terms {
            match term {
                Term::Inline(prefixes) => add_prefixes(&mut builder, prefixes),
                Term::Set(name) => {
                    if let Some(set) = self.all.get(name) {
                        builder.include(&set.addresses);
                    }
                }
            }
        }
        Arc::new(builder.compile())
    }
}
