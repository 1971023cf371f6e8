//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Lists that say more of a name than that they hold it: what is to become of the query, and
//! exceptions from that.

use std::net::IpAddr;
use std::sync::Arc;

use wire::{HashKey, Name, NameBuf, Rcode, Rtype, Ttl};

use crate::addresses::AddressSet;
use crate::builder::NameSetBuilder;
use crate::changes::Changes;
use crate::names::{NameSet, RuleRef};
use crate::policy_zone::{PolicyZone, ServerRule};
use crate::servers::KnownServers;
use crate::sought::Sought;

/// What is asked, as far as lists look at it.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The name.
    pub sought: &'a Sought<'a>,
    /// The type.
    pub qtype: Rtype,
    /// Who asks.
    pub client: IpAddr,
    /// Whether rules of response policy zones on the client count: not for what an alias leads to
    /// that such a zone has given. The client's question had none of these.
    pub by_client: bool,
    /// The addresses of the answer, if there is one.
    pub addresses: &'a [IpAddr],
    /// Who knows the name servers that led to the answer, if there is one.
    pub servers: Option<KnownServers<'a>>,
}

/// A record that a list answers with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListedRecord {
    /// Its type.
    pub rtype: Rtype,
    /// Its TTL; without one, that of blocked names.
    pub ttl: Option<Ttl>,
    /// Its data.
    pub data: Box<[u8]>,
}

/// What a list wants to become of a query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// It is blocked, in the way that the policy blocks.
    Block,
    /// It is answered with this code alone; with NOERROR there is no data.
    Rcode(Rcode),
    /// It gets no answer.
    Drop,
    /// Over UDP it gets a truncated answer, so that the client comes back over TCP; there it goes
    /// on.
    Truncate,
    /// It is answered with those of these records that have its type.
    Records(Box<[ListedRecord]>),
    /// It is answered with an alias for this name, and what that has.
    Alias(NameText),
    /// It is answered with an alias for the name asked for with this one behind it, and what that
    /// has.
    AliasBelow(NameText),
}

impl Treatment {
    /// Returns the name that is asked for in place of `qname`; `None` if there is none, or it would
    /// be too long.
    pub fn target(&self, qname: Name<'_>) -> Option<NameBuf> {
        let (own, name) = match self {
            Self::Alias(name) => (0, name),
            Self::AliasBelow(name) => (qname.label_count(), name),
            _ => return None,
        };
        let (end, _) = Name::parse(name.as_bytes()).ok()?;
        // A rule for all names would go on for ever.
        if own > 0 && qname.is_at_or_below(end) {
            return None;
        }
        let mut target = NameBuf::root();
        for label in qname.labels().take(own).chain(end.labels()) {
            target.push_label(label).ok()?;
        }
        Some(target)
    }

    pub(crate) const fn is_alias(&self) -> bool {
        matches!(self, Self::Alias(_) | Self::AliasBelow(_))
    }
}

/// A name that can be compared and hashed as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NameText(Box<[u8]>);

impl From<&NameBuf> for NameText {
    fn from(name: &NameBuf) -> Self {
        Self(name.as_name().to_folded().as_bytes().into())
    }
}

impl NameText {
    /// Returns the wire form, in lower case.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Which rules come before which. Exceptions come before what they are exceptions from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Blocks.
    Block,
    /// Is an exception.
    Allow,
    /// Blocks in spite of exceptions.
    ImportantBlock,
    /// Is an exception in spite of everything.
    ImportantAllow,
}

impl Class {
    /// Returns whether it lets the query go on.
    pub const fn allows(self) -> bool {
        matches!(self, Self::Allow | Self::ImportantAllow)
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling<'s> {
    /// Whether an exception did, so that the query goes on.
    pub is_allowed: bool,
    /// What is to become of the query otherwise.
    pub treatment: &'s Treatment,
    /// Whether an address of the answer decided.
    pub is_by_address: bool,
    /// What the rule's source is called.
    pub source: &'s str,
    /// The rule's line there, from 1.
    pub line: u32,
}

/// A rule that does not look at the name alone.
pub struct Condition {
    /// Only queries for these types; for any if there are none.
    pub qtypes: Box<[Rtype]>,
    /// Not queries for these types.
    pub not_qtypes: Box<[Rtype]>,
    /// Only these clients.
    pub clients: Option<AddressSet>,
    /// Not these clients.
    pub not_clients: Option<AddressSet>,
    /// Not these names.
    pub not_names: Option<NameSet>,
}

impl Condition {
    fn holds(&self, asking: &Asking<'_>) -> bool {
        (self.qtypes.is_empty() || self.qtypes.contains(&asking.qtype))
            && !self.not_qtypes.contains(&asking.qtype)
            && self.clients.as_ref().is_none_or(|clients| clients.contains(asking.client))
            && !self.not_clients.as_ref().is_some_and(|clients| clients.contains(asking.client))
            && !self.not_names.as_ref().is_some_and(|names| names.contains(asking.sought))
    }
}

/// A rule with more than a name.
pub(crate) struct Special {
    pub(crate) class: Class,
    pub(crate) condition: Condition,
    pub(crate) treatment: Treatment,
    pub(crate) source: Arc<str>,
    pub(crate) line: u32,
}

/// The rules with more than a name: each number in `names` stands for some of `rules`.
pub(crate) struct Specials {
    pub(crate) names: NameSet,
    /// From 1, as the lines of `names`: the first rule, and the one after the last.
    pub(crate) groups: Box<[(u32, u32)]>,
    pub(crate) rules: Box<[Special]>,
}

/// A list of rules with exceptions.
pub struct Blocklist {
    pub(crate) zones: Box<[PolicyZone]>,
    /// Rules on the name alone, by [`Class`].
    pub(crate) plain: [Arc<NameSet>; 4],
    pub(crate) specials: Option<Box<Specials>>,
    pub(crate) include: Box<[Arc<Blocklist>]>,
    pub(crate) except: Box<[Arc<NameSet>]>,
}

impl Blocklist {
    /// Returns whether the list wants something else to become of the query than what would.
    pub fn blocks(&self, asking: &Asking<'_>) -> bool {
        self.rule(asking).is_some_and(|ruling| !ruling.is_allowed)
    }

    /// Returns what the list says about a query.
    pub fn rule(&self, asking: &Asking<'_>) -> Option<Ruling<'_>> {
        if self.except.iter().any(|names| names.contains(asking.sought)) {
            return None;
        }
        self.zones
            .iter()
            .find_map(|zone| zone.rule(asking))
            .or_else(|| self.by_class(asking))
            .or_else(|| self.include.iter().find_map(|list| list.rule(asking)))
    }

    /// Returns whether rules on name servers want something else to become of the query. Rules of
    /// other kinds are not looked at.
    pub fn blocks_servers(&self, asking: &Asking<'_>, which: ServerRule) -> bool {
        let own = self.zones.iter().find_map(|zone| zone.by_server(asking, which));
        match own {
            Some(ruling) => !ruling.is_allowed,
            None => self.include.iter().any(|list| list.blocks_servers(asking, which)),
        }
    }

    /// Returns whether there are response policy zones in it.
    // Once per configuration.
    pub fn has_zones(&self) -> bool {
        !self.zones.is_empty() || self.include.iter().any(|list| list.has_zones())
    }

    /// Returns what the sources of its rules are called, those of response policy zones left out:
    /// they change while the server runs.
    // Once per configuration.
    pub fn labels(&self) -> Vec<&str> {
        let plain = self.plain.iter().flat_map(|names| names.labels());
        let special = self.specials.iter().flat_map(|specials| &specials.rules).map(|rule| &*rule.source);
        let mut labels: Vec<&str> = plain.chain(special).collect();
        labels.extend(self.include.iter().flat_map(|list| list.labels()));
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// Returns whether there are rules on name servers.
    // Once per configuration.
    pub fn looks_at_servers(&self) -> bool {
        self.zones.iter().any(PolicyZone::looks_at_servers)
            || self.include.iter().any(|list| list.looks_at_servers())
    }

    /// Returns whether any rule, or condition of one, is about a client's address. What the list
    /// says is the same for all clients of which that is not so.
    pub fn is_about_client(&self, client: IpAddr) -> bool {
        self.zones.iter().any(|zone| zone.is_about_client(client))
            || self.specials.as_ref().is_some_and(|specials| {
                let names = |set: &Option<AddressSet>| set.as_ref().is_some_and(|set| set.contains(client));
                let conditions = specials.rules.iter().map(|rule| &rule.condition);
                conditions.into_iter().any(|of| names(&of.clients) || names(&of.not_clients))
            })
            || self.include.iter().any(|list| list.is_about_client(client))
    }

    /// Returns whether there are such rules.
    // Once per configuration.
    pub fn looks_at_clients(&self) -> bool {
        let looks = |rule: &Special| rule.condition.clients.is_some() || rule.condition.not_clients.is_some();
        self.zones.iter().any(PolicyZone::looks_at_clients)
            || self.specials.as_ref().is_some_and(|specials| specials.rules.iter().any(looks))
            || self.include.iter().any(|list| list.looks_at_clients())
    }

    /// Returns whether there are rules on the addresses of name servers.
    // Once per configuration.
    pub fn looks_at_server_addresses(&self) -> bool {
        self.zones.iter().any(PolicyZone::looks_at_server_addresses)
            || self.include.iter().any(|list| list.looks_at_server_addresses())
    }

    /// Calls `f` with the number of changes of each set that the list looks into and that is
    /// changed while the server runs.
    // Once per configuration.
    pub fn each_changes(&self, f: &mut dyn FnMut(&Changes)) {
        let Self { zones, plain, specials, include, except } = self;
        zones.iter().for_each(|zone| zone.each_changes(f));
        plain.iter().chain(except).for_each(|names| names.each_changes(f));
        if let Some(specials) = specials {
            let Specials { names, groups: _, rules } = &**specials;
            names.each_changes(f);
            for rule in rules {
                let Condition { qtypes: _, not_qtypes: _, clients, not_clients, not_names } = &rule.condition;
                clients.iter().chain(not_clients).for_each(|set| set.each_changes(f));
                not_names.iter().for_each(|names| names.each_changes(f));
            }
        }
        include.iter().for_each(|list| list.each_changes(f));
    }

    fn by_class(&self, asking: &Asking<'_>) -> Option<Ruling<'_>> {
        let plain = |class: Class| self.plain.get(class.index());
        let holds = |class: Class| plain(class).is_some_and(|names| names.contains(asking.sought));
        let special = self.specials.as_ref().and_then(|specials| specials.best(asking));
        let blocks = holds(Class::ImportantBlock);
        // The common case ends here: nothing would be blocked, so that no exception matters.
        if special.is_none() && !blocks && !holds(Class::Block) {
            return None;
        }
        let top = if holds(Class::ImportantAllow) {
            Class::ImportantAllow
        } else if blocks {
            Class::ImportantBlock
        } else if holds(Class::Allow) {
            Class::Allow
        } else {
            Class::Block
        };
        // A rule that says more comes before one that does not, in the same class.
        if let Some(special) = special
            && special.class >= top
        {
            return Some(Ruling {
                is_allowed: special.class.allows(),
                treatment: &special.treatment,
                is_by_address: false,
                source: &special.source,
                line: special.line,
            });
        }
        let (source, line) = plain(top)?.find(asking.sought)?.place();
        let is_allowed = top.allows();
        Some(Ruling { is_allowed, treatment: &Treatment::Block, is_by_address: false, source, line })
    }

    /// Returns the set of the names that are blocked whatever the type and whoever asks. Response
    /// policy zones are not part of it: which of their rules counts is not a matter of sets.
    // Once per configuration.
    pub fn names(&self, key: &HashKey) -> NameSet {
        let [block, allow, important_block, important_allow] = &self.plain;
        let mut usual = NameSetBuilder::new(key);
        usual.include(Arc::clone(block));
        for list in &self.include {
            usual.include(Arc::new(list.names(key)));
        }
        usual.except(Arc::clone(allow));
        let mut all = NameSetBuilder::new(key);
        all.include(Arc::new(usual.compile()));
        all.include(Arc::clone(important_block));
        all.except(Arc::clone(important_allow));
        for names in &self.except {
            all.except(Arc::clone(names));
        }
        all.compile()
    }

    /// Returns whether any rule answers with an alias.
    // Once per configuration.
    pub fn has_aliases(&self) -> bool {
        self.zones.iter().any(PolicyZone::has_aliases)
            || self
                .specials
                .as_ref()
                .is_some_and(|all| all.rules.iter().any(|rule| rule.treatment.is_alias()))
            || self.include.iter().any(|list| list.has_aliases())
    }

    /// Calls `f` with the sets behind the list whose rules no processor keeps in its own memory.
    // Once per configuration.
    pub fn each_large(&self, f: &mut impl FnMut(&Arc<NameSet>)) {
        for zone in &self.zones {
            zone.each_large(f);
        }
        for names in self.plain.iter().chain(&self.except) {
            names.each_large(f);
        }
        for list in &self.include {
            list.each_large(f);
        }
    }

    /// Returns how many rules there are.
    pub fn len(&self) -> usize {
        self.zones.iter().map(PolicyZone::len).sum::<usize>()
            + self.plain.iter().map(|names| names.len()).sum::<usize>()
            + self.specials.as_ref().map_or(0, |specials| specials.rules.len())
    }

    /// Returns whether the list has no rule of its own.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many octets of memory the list takes, roughly.
    pub fn octets(&self) -> usize {
        let zones = self.zones.iter().map(PolicyZone::octets);
        zones.sum::<usize>()
            + self.plain.iter().map(|names| names.octets()).sum::<usize>()
            + self.specials.as_ref().map_or(0, |specials| {
                specials.names.octets() + size_of_val(&*specials.groups) + size_of_val(&*specials.rules)
            })
    }
}

impl Specials {
    /// Finds the rule of the highest class that fits; of equals the first.
    fn best(&self, asking: &Asking<'_>) -> Option<&Special> {
        let mut best: Option<&Special> = None;
        self.names.each(asking.sought, |rule| {
            for special in self.group(rule) {
                if best.is_none_or(|best| special.class > best.class) && special.condition.holds(asking) {
                    best = Some(special);
                }
            }
        });
        best
    }

    fn group(&self, rule: RuleRef) -> &[Special] {
        let group = (rule.number() as usize).checked_sub(1).and_then(|at| self.groups.get(at));
        group.and_then(|&(first, end)| self.rules.get(first as usize..end as usize)).unwrap_or(&[])
    }
}
