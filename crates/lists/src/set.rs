//! Building a set from lists and inline rules, and the compiled set.

use std::borrow::Cow;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use sets::{
    AddressSet, AddressSetBuilder, Blocklist, BlocklistBuilder, ChangingNames, DynamicAddresses,
    DynamicNames, NameSet, NameSetBuilder, PolicyZone,
};
use wire::{HashKey, Prefix};

use crate::reading::{Mistakes, Progress, Reading};
use crate::{ListFormat, NamePattern, adguard, mmdb, rpz, text, v2ray};

/// How a list is to be read.
#[derive(Clone, Debug)]
pub struct List<'a> {
    /// Its format.
    pub format: ListFormat,
    /// Selected parts of it; none means all.
    pub select: Vec<&'a str>,
    /// Whether it is the operator's own list, in which host bits of a prefix are a mistake.
    pub is_own: bool,
}

impl List<'_> {
    /// Adds the rules that the list disables with `badfilter`, in all lists of the set.
    pub fn revoked(&self, octets: &[u8], all: &mut HashSet<String>) {
        if self.format == ListFormat::Adguard {
            adguard::revoked(octets, all);
        }
    }

    /// Checks whether octets are such a list; returns the number of its rules, or why it is
    /// refused.
    ///
    /// A download that is refused here never takes the place of a good copy.
    pub fn check(&self, octets: Vec<u8>) -> Result<usize, String> {
        let mut builder = SetBuilder::new(HashKey::new([1, 1]));
        let mistakes = builder.read(self, "download", octets.into(), &HashSet::new(), Progress::default());
        let rules = builder.rules();
        let wrong = mistakes.describe().map_or(String::new(), |text| format!(": {text}"));
        if rules == 0 {
            return Err(format!("it has no rule{wrong}"));
        }
        // A page that says "not found" has lines that happen to be names.
        if mistakes.count > rules {
            return Err(format!("more of it is wrong than right{wrong}"));
        }
        Ok(rules)
    }
}

/// A compiled set.
pub struct CompiledSet {
    /// The names it holds, without rules that depend on more than the name.
    pub(crate) names: Arc<NameSet>,
    pub(crate) addresses: Arc<AddressSet>,
    /// The block list, if there are exceptions, or rules with an action of their own.
    pub(crate) list: Option<Arc<Blocklist>>,
    /// Number of rules and address ranges.
    pub rules: usize,
    /// Octets of memory.
    pub octets: usize,
}

/// Builds a set.
pub struct SetBuilder<'a> {
    key: HashKey,
    tags: Vec<(&'a str, &'a [Prefix])>,
    pub(crate) names: NameSetBuilder,
    pub(crate) addresses: AddressSetBuilder,
    pub(crate) without: AddressSetBuilder,
    pub(crate) list: BlocklistBuilder,
}

impl<'a> SetBuilder<'a> {
    /// Returns a builder of an empty set.
    pub fn new(key: HashKey) -> Self {
        Self {
            key,
            tags: Vec::new(),
            names: NameSetBuilder::new(&key),
            addresses: AddressSetBuilder::new(),
            without: AddressSetBuilder::new(),
            list: BlocklistBuilder::new(&key),
        }
    }

    /// Adds names of clients, as AdGuard lists use them, and their networks.
    pub fn tags(&mut self, tags: impl IntoIterator<Item = (&'a str, &'a [Prefix])>) {
        self.tags.extend(tags);
    }

    /// Adds rules on names from the configuration; `label` names their source where a rule is
    /// shown.
    pub fn patterns<'p>(&mut self, label: String, patterns: impl IntoIterator<Item = &'p NamePattern>) {
        self.names.source(label);
        for (line, pattern) in (1..).zip(patterns) {
            pattern.add_to(&mut self.names, line);
        }
    }

    /// Adds a range of addresses.
    pub fn range(&mut self, (first, last): (IpAddr, IpAddr)) {
        let is_right = self.addresses.range(first, last);
        debug_assert!(is_right, "checked when it was read");
    }

    /// Reads one list without the rules that are `revoked`; `label` names it where a rule is shown.
    pub fn read(
        &mut self,
        list: &List<'_>,
        label: &str,
        octets: Cow<'_, [u8]>,
        revoked: &HashSet<String>,
        progress: Progress<'_>,
    ) -> Mistakes {
        self.names.source(label);
        self.list.source(label);
        if list.format.has_names() {
            // An estimate that avoids most reallocations.
            self.names.reserve(octets.len() / 24);
        }
        let mut reading = self.reading(list, revoked, progress);
        read(&mut reading, list.format, octets);
        reading.mistakes
    }

    /// Reads a list of names that is in pieces, each of whole lines; `label` names it where a rule
    /// is shown.
    pub fn read_names<'p>(
        &mut self,
        list: &List<'_>,
        label: &str,
        pieces: impl Iterator<Item = &'p [u8]>,
        progress: Progress<'_>,
    ) -> Mistakes {
        self.names.source(label);
        let mut mistakes = Mistakes::of(list.is_own);
        let revoked = HashSet::new();
        let mut line = 1;
        for piece in pieces {
            self.names.reserve(piece.len() / 24);
            let begun = self.reading(list, &revoked, progress);
            let mut reading = Reading { select: Vec::new(), mistakes, ..begun };
            line += text::names(&mut reading, piece, line);
            mistakes = reading.mistakes;
        }
        mistakes
    }

    /// Returns what a list is read into.
    fn reading<'r>(
        &'r mut self,
        list: &List<'r>,
        revoked: &'r HashSet<String>,
        progress: Progress<'r>,
    ) -> Reading<'r> {
        Reading {
            progress,
            key: &self.key,
            names: &mut self.names,
            addresses: &mut self.addresses,
            without: &mut self.without,
            list: &mut self.list,
            tags: &self.tags,
            select: list.select.clone(),
            revoked,
            is_own: list.is_own,
            mistakes: Mistakes::of(list.is_own),
        }
    }

    /// Adds the names of a list that changes by single rules.
    pub fn changing(&mut self, names: Arc<ChangingNames>) {
        self.names.changing(names);
    }

    /// Adds a response policy zone.
    pub fn policy_zone(&mut self, zone: PolicyZone) {
        let (addresses, without) = (&mut self.addresses, &mut self.without);
        zone.each_answer(|address, bits, is_exception| {
            let list = if is_exception { &mut *without } else { &mut *addresses };
            let is_right = list.prefix(address, bits);
            debug_assert!(is_right, "it was a prefix before");
        });
        self.list.add_zone(zone);
    }

    /// Returns the approximate number of rules.
    pub fn rules(&self) -> usize {
        self.names.len() + self.addresses.len() + self.without.len() + self.list.len()
    }

    /// Adds names that change while the server runs.
    pub fn live_names(&mut self, live: Arc<DynamicNames>) {
        self.names.live(live);
    }

    /// Adds addresses that change while the server runs.
    pub fn live_addresses(&mut self, live: Arc<DynamicAddresses>) {
        self.addresses.live(live);
    }

    /// Compiles the set: the union with the sets of `include`, without those of `except`.
    pub fn compile(self, include: &[Arc<CompiledSet>], except: &[Arc<CompiledSet>]) -> CompiledSet {
        let Self { key, mut names, mut addresses, without, list, .. } = self;
        let is_list = !list.is_empty() || include.iter().any(|part| part.list.is_some());
        let mut lists = Vec::new();
        for part in include {
            match &part.list {
                Some(list) => lists.push(Arc::clone(list)),
                None => names.include(Arc::clone(&part.names)),
            }
            addresses.include(&part.addresses);
        }
        for part in except {
            names.except(Arc::clone(&part.names));
            addresses.except(&part.addresses);
        }
        addresses.except(&without.compile());
        let addresses = Arc::new(addresses.compile());
        let names = Arc::new(names.compile());
        let mut octets = names.octets() + addresses.octets();
        let mut rules = names.len() + addresses.len();
        let (names, list) = if is_list {
            let out = except.iter().map(|part| Arc::clone(&part.names)).collect();
            let list = list.compile(names, lists, out);
            octets = list.octets() + addresses.octets();
            rules = list.len() + addresses.len();
            (Arc::new(list.names(&key)), Some(Arc::new(list)))
        } else {
            (names, None)
        };
        CompiledSet { names, addresses, list, rules, octets }
    }
}

/// Reads a list in its format.
fn read(to: &mut Reading<'_>, format: ListFormat, octets: Cow<'_, [u8]>) {
    match format {
        ListFormat::Names => drop(text::names(to, &octets, 1)),
        ListFormat::Addresses => text::addresses(to, &octets),
        ListFormat::Hosts => text::hosts(to, &octets),
        ListFormat::Dnsmasq => text::dnsmasq(to, &octets),
        ListFormat::Geosite => v2ray::geosite(to, &octets),
        ListFormat::Geoip => v2ray::geoip(to, &octets),
        ListFormat::Adguard => adguard::read(to, &octets),
        ListFormat::Rpz => rpz::read(to, &octets),
        ListFormat::Mmdb => mmdb::read(to, octets.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_that_is_no_list_is_refused() {
        let list = |format| List { format, select: Vec::new(), is_own: false };
        assert_eq!(list(ListFormat::Names).check(b"a.example\nb.example\n".to_vec()), Ok(2));
        let page = b"<html>\n<body>\n404 not found\n</body>\n".to_vec();
        assert!(list(ListFormat::Names).check(page.clone()).is_err());
        assert!(list(ListFormat::Geosite).check(page.clone()).is_err());
        assert!(list(ListFormat::Hosts).check(page).is_err());
        assert!(list(ListFormat::Adguard).check(b"! nothing\n".to_vec()).is_err());
    }
}
