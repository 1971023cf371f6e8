//! What is different in a later version of a response policy zone.
//!
//! A rule that is there anew, or says something else, counts before the one below; of one that is
//! gone, an entry says so. Names below others need more: a wildcard reaches the names that have
//! nothing closer, so that with a name that comes or goes, what its neighbours are answered changes
//! too. Whoever builds this says for each such name which rule it has now.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use wire::{HashKey, Name};

use crate::blocklist::Treatment;
use crate::builder::NameSetBuilder;
use crate::policy_zone::{NO_RULE, NameRules, PolicyZone, Prefixes, ZoneRules};
use crate::prefixes::PrefixRules;
use crate::table::Reach;

/// The names that a rule can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// Names that are asked for.
    Asked,
    /// Names of name servers.
    Server,
}

/// What rules on prefixes look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixKind {
    /// The client.
    Client,
    /// The addresses of the answer.
    Answer,
    /// The addresses of name servers.
    Server,
}

/// A prefix, which treatment its rule has, and the rule's number.
type PrefixOf = (IpAddr, u8, u16, u32);

/// What is different, in the making.
pub struct ZoneChanges {
    source: Arc<str>,
    names: Names,
    server_names: Names,
    prefixes: Option<[Vec<PrefixOf>; 3]>,
    treatments: Vec<Option<Treatment>>,
    known: HashMap<Option<Treatment>, u16>,
    /// Rules that have come, and rules that are gone.
    come: usize,
    gone: usize,
}

/// Different rules on names.
struct Names {
    itself: NameSetBuilder,
    below: NameSetBuilder,
    of_itself: Vec<u16>,
    of_below: Vec<u16>,
    hidden: usize,
}

impl Names {
    fn new(key: &HashKey, source: &str) -> Self {
        let names = || {
            let mut names = NameSetBuilder::new(key);
            names.source(source);
            names
        };
        // Rules are counted from 1.
        let of = || std::vec![NO_RULE];
        Self { itself: names(), below: names(), of_itself: of(), of_below: of(), hidden: 0 }
    }

    fn compile(self) -> NameRules {
        NameRules {
            itself: Arc::new(self.itself.compile()),
            below: Arc::new(self.below.compile()),
            hidden: self.hidden,
            of_itself: self.of_itself.into(),
            of_below: self.of_below.into(),
        }
    }
}

impl ZoneChanges {
    /// Returns no differences; `key` is what names are hashed with, `source` where the rules come
    /// from.
    pub fn new(key: &HashKey, source: &str) -> Self {
        Self {
            source: Arc::from(source),
            names: Names::new(key, source),
            server_names: Names::new(key, source),
            prefixes: None,
            treatments: Vec::new(),
            known: HashMap::new(),
            come: 0,
            gone: 0,
        }
    }

    /// Returns the number of a treatment; `None` if there are too many.
    fn index(&mut self, treatment: Option<Treatment>) -> Option<u16> {
        if let Some(&index) = self.known.get(&treatment) {
            return Some(index);
        }
        let index = u16::try_from(self.treatments.len()).ok().filter(|&index| index != NO_RULE)?;
        self.treatments.push(treatment.clone());
        self.known.insert(treatment, index);
        Some(index)
    }

    fn names(&mut self, kind: NameKind) -> &mut Names {
        match kind {
            NameKind::Asked => &mut self.names,
            NameKind::Server => &mut self.server_names,
        }
    }

    /// Says which rule a name itself has now; without a treatment, the rule is an exception. None:
    /// it has none any more. Returns false if there are too many different treatments.
    #[must_use]
    pub fn itself(&mut self, kind: NameKind, name: Name<'_>, rule: Option<Option<Treatment>>) -> bool {
        let index = match rule {
            Some(treatment) => self.index(treatment),
            None => Some(NO_RULE),
        };
        let Some(index) = index else { return false };
        let names = self.names(kind);
        let line = names.of_itself.len() as u32;
        names.itself.name(name, Reach::Itself, line);
        names.of_itself.push(index);
        true
    }

    /// Says which rule names below one have now that have nothing closer; `reach` says whether the
    /// name itself is among them. Returns false if there are too many different treatments.
    #[must_use]
    pub fn below(
        &mut self,
        kind: NameKind,
        (name, reach): (Name<'_>, Reach),
        rule: Option<Option<Treatment>>,
    ) -> bool {
        let index = match rule {
            Some(treatment) => self.index(treatment),
            None => Some(NO_RULE),
        };
        let Some(index) = index else { return false };
        let names = self.names(kind);
        let line = names.of_below.len() as u32;
        names.below.name(name, reach, line);
        names.of_below.push(index);
        names.hidden += 1;
        true
    }

    /// Says that all rules on prefixes are those that are added from now on.
    pub fn replace_prefixes(&mut self) {
        self.prefixes.get_or_insert_default();
    }

    /// Adds a rule on a prefix. Returns false if there are too many different treatments.
    #[must_use]
    pub fn prefix(
        &mut self,
        kind: PrefixKind,
        (address, bits): (IpAddr, u8),
        treatment: Option<Treatment>,
    ) -> bool {
        let Some(index) = self.index(treatment) else { return false };
        let all = &mut self.prefixes.get_or_insert_default()[kind as usize];
        let line = all.len() as u32 + 1;
        all.push((address, bits, index, line));
        true
    }

    /// Counts rules that have come and that are gone, those on prefixes apart.
    pub const fn count(&mut self, come: usize, gone: usize) {
        self.come += come;
        self.gone += gone;
    }
}

impl PolicyZone {
    /// Calls `f` with every rule on a prefix, and its treatment.
    pub fn each_prefix(&self, mut f: impl FnMut(PrefixKind, IpAddr, u8, Option<&Treatment>)) {
        let rules = &self.rules;
        let Some(all) = &rules.prefixes else { return };
        let kinds = [
            (PrefixKind::Client, &all.clients),
            (PrefixKind::Answer, &all.answers),
            (PrefixKind::Server, &all.servers),
        ];
        for (kind, prefixes) in kinds {
            for (address, bits, rule) in prefixes.iter() {
                let treatment = rules.treatments.get(usize::from(rule.treatment));
                f(kind, address, bits, treatment.and_then(Option::as_ref));
            }
        }
    }

    /// Returns a later version, which shares all rules that are the same. The differences are from
    /// the version that this one, perhaps with other differences, is made of.
    #[must_use]
    pub fn later(&self, changes: ZoneChanges) -> Self {
        let ZoneChanges { source, names, server_names, prefixes, treatments, come, gone, .. } = changes;
        let before = self.rules.prefixes.as_ref().map_or(0, Prefixes::len);
        let prefixes = prefixes.map(|[clients, answers, servers]| Prefixes {
            clients: PrefixRules::new(clients),
            answers: PrefixRules::new(answers),
            servers: PrefixRules::new(servers),
        });
        let now = prefixes.as_ref().map_or(before, Prefixes::len);
        let changes = ZoneRules {
            source,
            names: names.compile(),
            server_names: server_names.compile(),
            prefixes,
            treatments: treatments.into(),
        };
        let len = (self.rules.len() + come + now).saturating_sub(gone + before);
        Self { rules: Arc::clone(&self.rules), changes: Some(Arc::new(changes)), len }
    }

    /// Returns the version without differences.
    #[must_use]
    pub fn first(&self) -> Self {
        Self { rules: Arc::clone(&self.rules), changes: None, len: self.rules.len() }
    }
}
