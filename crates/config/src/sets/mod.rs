//! Sets of names and addresses: what the configuration says about them, and what that becomes.

mod pattern;

use std::collections::BTreeMap;
use std::sync::Arc;

use sets::{AddressSet, AddressSetBuilder, NameSet, NameSetBuilder};
use wire::HashKey;

pub(crate) use pattern::name_pattern;

use crate::settings::{NamePattern, Settings};
use crate::values::Prefix;

/// Part of what a condition compares with: something written there, or the name of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term<'a, T> {
    /// As it is written.
    Inline(T),
    /// What the set of that name holds.
    Set(&'a str),
}

/// Every set of a configuration, compiled.
pub(crate) struct Sets {
    key: HashKey,
    names: BTreeMap<String, Arc<NameSet>>,
    addresses: BTreeMap<String, Arc<AddressSet>>,
}

impl Sets {
    /// Compiles every set.
    pub(crate) fn compile(settings: &Settings, key: HashKey) -> Self {
        let mut all = Self { key, names: BTreeMap::new(), addresses: BTreeMap::new() };
        for set in &settings.sets {
            let name = &set.name.value;
            let mut names = NameSetBuilder::new(&key);
            names.source(format!("set {name}"));
            for (line, pattern) in (1..).zip(&set.names) {
                add(&mut names, pattern, line);
            }
            all.names.insert(name.clone(), Arc::new(names.compile()));
            let mut addresses = AddressSetBuilder::new();
            add_prefixes(&mut addresses, &set.clients);
            all.addresses.insert(name.clone(), Arc::new(addresses.compile()));
        }
        all
    }

    /// Returns the set of the names that a condition compares with; a set that stands alone is shared.
    pub(crate) fn names<'a>(&self, terms: impl Iterator<Item = Term<'a, &'a NamePattern>>) -> Arc<NameSet> {
        let terms: Vec<Term<'a, &'a NamePattern>> = terms.collect();
        if let [Term::Set(name)] = terms.as_slice()
            && let Some(set) = self.names.get(*name)
        {
            return Arc::clone(set);
        }
        let mut builder = NameSetBuilder::new(&self.key);
        builder.source("condition");
        for (line, term) in (1..).zip(terms) {
            match term {
                Term::Inline(pattern) => add(&mut builder, pattern, line),
                Term::Set(name) => {
                    if let Some(set) = self.names.get(name) {
                        builder.include(Arc::clone(set));
                    }
                }
            }
        }
        Arc::new(builder.compile())
    }

    /// Returns the set of the addresses that a condition compares with; a set that stands alone is shared.
    pub(crate) fn addresses<'a>(
        &self,
        terms: impl Iterator<Item = Term<'a, &'a [Prefix]>>,
    ) -> Arc<AddressSet> {
        let terms: Vec<Term<'a, &'a [Prefix]>> = terms.collect();
        if let [Term::Set(name)] = terms.as_slice()
            && let Some(set) = self.addresses.get(*name)
        {
            return Arc::clone(set);
        }
        let mut builder = AddressSetBuilder::new();
        for term in terms {
            match term {
                Term::Inline(prefixes) => add_prefixes(&mut builder, prefixes),
                Term::Set(name) => {
                    if let Some(set) = self.addresses.get(name) {
                        builder.include(set);
                    }
                }
            }
        }
        Arc::new(builder.compile())
    }
}

fn add(builder: &mut NameSetBuilder, pattern: &NamePattern, line: u32) {
    match pattern {
        NamePattern::Name(name, reach) => builder.name(name.as_name(), *reach, line),
        // Both were tried when they were read.
        NamePattern::Keyword(keyword) => drop(builder.keyword(keyword, line)),
        NamePattern::Regex(regex) => drop(builder.regex(regex, line)),
    }
}

fn add_prefixes(builder: &mut AddressSetBuilder, prefixes: &[Prefix]) {
    for prefix in prefixes {
        let is_right = builder.prefix(prefix.address(), prefix.bits());
        debug_assert!(is_right, "a prefix is never longer than an address");
    }
}
