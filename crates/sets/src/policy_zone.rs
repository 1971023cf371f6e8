//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Response policy zones: the rules of one version, and what is different in a later one, so that a
//! change of a few rules among a million costs in proportion to them.

use std::net::IpAddr;
use std::sync::Arc;

use crate::blocklist::{Asking, Ruling, Treatment};
use crate::changes::Changes;
use crate::names::NameSet;
use crate::prefixes::{PrefixRule, PrefixRules};
use crate::sought::Sought;

/// In place of a treatment: a name of the zone that is closer than a wildcard, which is not for the
/// names below it; of what is different, a rule that is gone.
pub(crate) const NO_RULE: u16 = u16::MAX;

/// Rules on names in a response policy zone. Of those that fit the one closest to the name counts,
/// and one on the name itself comes first.
pub(crate) struct NameRules {
    pub(crate) itself: Arc<NameSet>,
    pub(crate) below: Arc<NameSet>,
    /// Of `below`, those that are no rules.
    pub(crate) hidden: usize,
    /// The treatment of each rule by its number. None is an exception.
    pub(crate) of_itself: Box<[u16]>,
    pub(crate) of_below: Box<[u16]>,
}

/// Rules on prefixes of addresses in a response policy zone.
#[derive(Default)]
pub(crate) struct Prefixes {
    pub(crate) clients: PrefixRules,
    pub(crate) answers: PrefixRules,
    pub(crate) servers: PrefixRules,
}

/// The rules of a version of a response policy zone, or those that are different in a later one.
pub(crate) struct ZoneRules {
    pub(crate) source: Arc<str>,
    pub(crate) names: NameRules,
    pub(crate) server_names: NameRules,
    /// Of what is different: all rules on prefixes, or `None` if these are the same.
    pub(crate) prefixes: Option<Prefixes>,
    pub(crate) treatments: Box<[Option<Treatment>]>,
}

/// A version of a response policy zone. Rules on the client come before those on the name, those
/// before the ones on addresses of the answer, and those before the ones on name servers: first on
/// their names, then on their addresses.
#[derive(Clone)]
pub struct PolicyZone {
    pub(crate) rules: Arc<ZoneRules>,
    /// What is different from `rules`.
    pub(crate) changes: Option<Arc<ZoneRules>>,
    /// How many rules there are.
    pub(crate) len: usize,
}

/// Which rules on name servers are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRule {
    /// Those on their names (`rpz-nsdname`).
    Name,
    /// Those on their addresses (`rpz-nsip`).
    Address,
}

/// A rule on a name: its treatment, and where the rule stands.
type Hit<'z> = (u16, &'z str, u32);

impl NameRules {
    pub(crate) fn len(&self) -> usize {
        self.itself.len() + self.below.len() - self.hidden
    }

    fn is_empty(&self) -> bool {
        self.itself.is_empty() && self.below.is_empty()
    }

    fn each_changes(&self, f: &mut dyn FnMut(&Changes)) {
        let Self { itself, below, hidden: _, of_itself: _, of_below: _ } = self;
        itself.each_changes(f);
        below.each_changes(f);
    }

    fn octets(&self) -> usize {
        self.itself.octets()
            + self.below.octets()
            + size_of_val(&*self.of_itself)
            + size_of_val(&*self.of_below)
    }

    /// Finds the rule on a name itself.
    fn on_itself(&self, sought: &Sought<'_>) -> Option<Hit<'_>> {
        let found = self.itself.find(sought)?;
        let index = *self.of_itself.get(found.rule.number() as usize)?;
        let (source, line) = found.place();
        Some((index, source, line))
    }

    /// Finds the closest rule on names below one, and how many labels that has.
    fn on_below(&self, sought: &Sought<'_>) -> Option<(u32, Hit<'_>)> {
        let (found, labels) = self.below.closest(sought)?;
        let index = *self.of_below.get(found.rule.number() as usize)?;
        let (source, line) = found.place();
        Some((labels, (index, source, line)))
    }

    /// Finds the rule that counts.
    fn find(&self, sought: &Sought<'_>) -> Option<Hit<'_>> {
        let hit = self.on_itself(sought).or_else(|| self.on_below(sought).map(|(_, hit)| hit))?;
        (hit.0 != NO_RULE).then_some(hit)
    }
}

impl Prefixes {
    pub(crate) const fn len(&self) -> usize {
        self.clients.len() + self.answers.len() + self.servers.len()
    }
}

impl ZoneRules {
    /// Returns how many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len() + self.server_names.len() + self.prefixes.as_ref().map_or(0, Prefixes::len)
    }

    fn octets(&self) -> usize {
        let prefixes = self.prefixes.as_ref();
        self.names.octets()
            + self.server_names.octets()
            + prefixes.map_or(0, |all| all.clients.octets() + all.answers.octets() + all.servers.octets())
            + size_of_val(&*self.treatments)
    }

    /// Returns what a rule says.
    fn ruling<'z>(&'z self, (index, source, line): Hit<'z>) -> Option<Ruling<'z>> {
        let treatment = self.treatments.get(usize::from(index))?;
        let is_allowed = treatment.is_none();
        let treatment = treatment.as_ref().unwrap_or(&Treatment::Block);
        Some(Ruling { is_allowed, treatment, is_by_address: false, source, line })
    }
}

impl PolicyZone {
    /// Returns how many rules there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no rule.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many octets of memory the rules take.
    pub(crate) fn octets(&self) -> usize {
        self.rules.octets() + self.changes.as_ref().map_or(0, |changes| changes.octets())
    }

    /// Returns the rules on prefixes, and the rules that have their treatments.
    fn prefixes(&self) -> Option<(&Prefixes, &ZoneRules)> {
        let changed = self.changes.as_deref().and_then(|rules| Some((rules.prefixes.as_ref()?, rules)));
        changed.or_else(|| Some((self.rules.prefixes.as_ref()?, &*self.rules)))
    }

    /// Finds the rule on a name, and the rules that it is one of.
    fn find<'z>(
        &'z self,
        of: impl Fn(&'z ZoneRules) -> &'z NameRules,
        sought: &Sought<'_>,
    ) -> Option<(&'z ZoneRules, Hit<'z>)> {
        let base = &*self.rules;
        let Some(changes) = self.changes.as_deref() else {
            return of(base).find(sought).map(|hit| (base, hit));
        };
        let on_itself = match of(changes).on_itself(sought) {
            Some((NO_RULE, ..)) => None,
            Some(hit) => Some((changes, hit)),
            None => of(base).on_itself(sought).map(|hit| (base, hit)),
        };
        if on_itself.is_some() {
            return on_itself;
        }
        let (rules, (_, hit)) = match (of(changes).on_below(sought), of(base).on_below(sought)) {
            // The closest counts; of equals the one that is different.
            (Some(own), Some(other)) if other.0 > own.0 => (base, other),
            (Some(own), _) => (changes, own),
            (None, other) => (base, other?),
        };
        (hit.0 != NO_RULE).then_some((rules, hit))
    }

    /// Returns what the zone says of a query.
    pub(crate) fn rule(&self, asking: &Asking<'_>) -> Option<Ruling<'_>> {
        let prefixes = self.prefixes();
        if let Some((all, rules)) = prefixes
            && asking.by_client
            && let Some(rule) = all.clients.find(asking.client)
        {
            return by_prefix(rules, rule);
        }
        if let Some((rules, hit)) = self.find(|rules| &rules.names, asking.sought) {
            return rules.ruling(hit);
        }
        if let Some((all, rules)) = prefixes {
            let found = asking.addresses.iter().filter_map(|&address| all.answers.find(address));
            let longest = found.max_by_key(|rule| rule.bits);
            if let Some(ruling) = longest.and_then(|rule| by_prefix(rules, rule)) {
                return Some(Ruling { is_by_address: true, ..ruling });
            }
        }
        self.by_server(asking, ServerRule::Name).or_else(|| self.by_server(asking, ServerRule::Address))
    }

    /// Returns what the zone says of the name servers that led to the answer.
    pub(crate) fn by_server(&self, asking: &Asking<'_>, which: ServerRule) -> Option<Ruling<'_>> {
        let known = asking.servers?;
        let name = asking.sought.name();
        match which {
            ServerRule::Name => {
                if !self.has_server_names() {
                    return None;
                }
                let (rules, hit) =
                    known.find_name(name, |sought| self.find(|rules| &rules.server_names, sought))?;
                rules.ruling(hit)
            }
            ServerRule::Address => {
                let (all, rules) = self.prefixes()?;
                let mut best: Option<&PrefixRule> = None;
                if all.servers.len() > 0 {
                    known.any_address(name, |address| {
                        let found = all.servers.find(address);
                        if let Some(rule) = found.filter(|rule| best.is_none_or(|best| rule.bits > best.bits))
                        {
                            best = Some(rule);
                        }
                        false
                    });
                }
                by_prefix(rules, best?)
            }
        }
    }

    /// Returns whether a rule is on the client's address.
    pub(crate) fn is_about_client(&self, client: IpAddr) -> bool {
        self.prefixes().is_some_and(|(all, _)| all.clients.find(client).is_some())
    }

    /// Returns whether there are rules on clients' addresses.
    // Once per configuration.
    pub(crate) fn looks_at_clients(&self) -> bool {
        self.prefixes().is_some_and(|(all, _)| all.clients.len() > 0)
    }

    /// Returns whether there are rules on the addresses of name servers.
    // Once per configuration.
    pub(crate) fn looks_at_server_addresses(&self) -> bool {
        self.prefixes().is_some_and(|(all, _)| all.servers.len() > 0)
    }

    /// Calls `f` with the number of changes of each set that is changed while the server runs.
    // Once per configuration.
    pub(crate) fn each_changes(&self, f: &mut dyn FnMut(&Changes)) {
        for rules in std::iter::once(&self.rules).chain(&self.changes) {
            let ZoneRules { source: _, names, server_names, prefixes: _, treatments: _ } = &**rules;
            names.each_changes(f);
            server_names.each_changes(f);
        }
    }

    fn has_server_names(&self) -> bool {
        let changes = self.changes.as_ref();
        !self.rules.server_names.is_empty() || changes.is_some_and(|rules| !rules.server_names.is_empty())
    }

    /// Returns whether there are rules on name servers.
    // Once per configuration.
    pub(crate) fn looks_at_servers(&self) -> bool {
        self.has_server_names() || self.prefixes().is_some_and(|(all, _)| all.servers.len() > 0)
    }

    /// Returns whether any rule answers with an alias.
    // Once per configuration.
    pub(crate) fn has_aliases(&self) -> bool {
        let all = std::iter::once(&self.rules).chain(&self.changes);
        all.flat_map(|rules| rules.treatments.iter().flatten()).any(Treatment::is_alias)
    }

    /// Calls `f` with the sets whose rules no processor keeps in its own memory.
    // Once per configuration.
    pub(crate) fn each_large(&self, f: &mut impl FnMut(&Arc<NameSet>)) {
        self.rules.names.itself.each_large(f);
        self.rules.names.below.each_large(f);
    }

    /// Calls `f` with the prefix of each rule on addresses of the answer, and whether the rule is
    /// an exception.
    // Once per configuration.
    pub fn each_answer(&self, mut f: impl FnMut(IpAddr, u8, bool)) {
        let Some((all, rules)) = self.prefixes() else { return };
        for (address, bits, rule) in all.answers.iter() {
            let treatment = rules.treatments.get(usize::from(rule.treatment));
            f(address, bits, treatment.is_some_and(Option::is_none));
        }
    }
}

/// Returns what a rule on a prefix says.
fn by_prefix<'z>(rules: &'z ZoneRules, rule: &PrefixRule) -> Option<Ruling<'z>> {
    rules.ruling((rule.treatment, &rules.source, rule.line))
}
