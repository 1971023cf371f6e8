//! Rules to a list with exceptions.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use wire::{HashKey, Name};

use crate::blocklist::{Blocklist, Class, Condition, Special, Specials, Treatment};
use crate::builder::NameSetBuilder;
use crate::names::NameSet;
use crate::patterns::PatternError;
use crate::policy_zone::{NO_RULE, NameRules, PolicyZone, Prefixes, ZoneRules};
use crate::prefixes::PrefixRules;
use crate::table::Reach;

/// Which names a rule is about.
#[derive(Clone, Copy, Debug)]
pub enum Pattern<'a> {
    /// A name, what lies below it, or both.
    Name(Name<'a>, Reach),
    /// Names that contain this.
    Keyword(&'a str),
    /// Names that a part of fits this.
    Regex(&'a str),
}

impl Pattern<'_> {
    /// Adds the rule to a set.
    pub fn add(self, to: &mut NameSetBuilder, line: u32) -> Result<(), PatternError> {
        match self {
            Self::Name(name, reach) => {
                to.name(name, reach, line);
                Ok(())
            }
            Self::Keyword(keyword) => to.keyword(keyword, line),
            Self::Regex(regex) => to.regex(regex, line),
        }
    }

    /// Returns what tells the pattern from others.
    fn key(self) -> Vec<u8> {
        let (mark, text) = match self {
            Self::Name(name, reach) => {
                return [&[reach as u8], name.to_folded().as_bytes()].concat();
            }
            Self::Keyword(text) => (8, text),
            Self::Regex(text) => (9, text),
        };
        [&[mark], text.as_bytes()].concat()
    }
}

/// A list with exceptions in the making.
pub struct BlocklistBuilder {
    key: HashKey,
    source: Arc<str>,
    /// Rules on the name alone but for [`Class::Block`], which the set itself holds.
    plain: [NameSetBuilder; 3],
    specials: HashMap<Vec<u8>, u32>,
    special_names: NameSetBuilder,
    groups: Vec<Vec<Special>>,
    zones: Vec<PolicyZone>,
}

impl BlocklistBuilder {
    /// Returns an empty list; `key` is what names are hashed with everywhere in this process.
    pub fn new(key: &HashKey) -> Self {
        let new = || NameSetBuilder::new(key);
        Self {
            key: *key,
            source: Arc::from(""),
            plain: [new(), new(), new()],
            specials: HashMap::new(),
            special_names: new(),
            groups: Vec::new(),
            zones: Vec::new(),
        }
    }

    /// Says where the rules that follow come from, for people; their lines are counted anew.
    pub fn source(&mut self, label: &str) {
        self.source = Arc::from(label);
        for plain in &mut self.plain {
            plain.source(label);
        }
    }

    /// Adds a rule on the name alone that is an exception, or important; others belong into the set
    /// of names.
    pub fn plain(&mut self, class: Class, pattern: Pattern<'_>, line: u32) -> Result<(), PatternError> {
        match class.index().checked_sub(1).and_then(|at| self.plain.get_mut(at)) {
            Some(names) => pattern.add(names, line),
            None => Ok(()),
        }
    }

    /// Adds a rule that says more.
    pub fn special(
        &mut self,
        class: Class,
        pattern: Pattern<'_>,
        (condition, treatment): (Condition, Treatment),
        line: u32,
    ) -> Result<(), PatternError> {
        let next = self.groups.len() as u32 + 1;
        let key = pattern.key();
        let group = match self.specials.get(&key) {
            Some(&group) => group,
            None => {
                pattern.add(&mut self.special_names, next)?;
                self.specials.insert(key, next);
                self.groups.push(Vec::new());
                next
            }
        };
        let special = Special { class, condition, treatment, source: Arc::clone(&self.source), line };
        if let Some(group) = self.groups.get_mut(group as usize - 1) {
            group.push(special);
        }
        Ok(())
    }

    /// Begins a response policy zone, which is asked before everything else, after those that came
    /// before.
    pub fn zone(&self) -> ZoneBuilder {
        ZoneBuilder::new(&self.key, &self.source)
    }

    /// Adds a zone that is complete.
    pub fn add_zone(&mut self, zone: PolicyZone) {
        self.zones.push(zone);
    }

    /// Returns how many rules were added.
    pub fn len(&self) -> usize {
        self.groups.iter().map(Vec::len).sum::<usize>()
            + self.plain.iter().map(NameSetBuilder::len).sum::<usize>()
            + self.zones.iter().map(PolicyZone::len).sum::<usize>()
    }

    /// Returns whether there is nothing that a set of names cannot say.
    pub fn is_empty(&self) -> bool {
        self.zones.is_empty() && self.groups.is_empty() && self.plain.iter().all(NameSetBuilder::is_empty)
    }

    /// Builds the list. `block` are the rules that block by the name alone.
    pub fn compile(
        self,
        block: Arc<NameSet>,
        include: Vec<Arc<Blocklist>>,
        except: Vec<Arc<NameSet>>,
    ) -> Blocklist {
        let [allow, important_block, important_allow] = self.plain.map(|names| Arc::new(names.compile()));
        let mut rules = Vec::new();
        let mut groups = Vec::new();
        for mut group in self.groups {
            let first = rules.len() as u32;
            rules.append(&mut group);
            groups.push((first, rules.len() as u32));
        }
        let specials = (!rules.is_empty()).then(|| {
            Box::new(Specials {
                names: self.special_names.compile(),
                groups: groups.into(),
                rules: rules.into(),
            })
        });
        Blocklist {
            zones: self.zones.into(),
            plain: [block, allow, important_block, important_allow],
            specials,
            include: include.into(),
            except: except.into(),
        }
    }
}

/// Different treatments that one zone can have.
const TREATMENTS_MAX: usize = NO_RULE as usize;

/// A prefix, which treatment its rule has, and the rule's line.
type PrefixOf = (IpAddr, u8, u16, u32);

/// A response policy zone in the making.
pub struct ZoneBuilder {
    source: Arc<str>,
    clients: Vec<PrefixOf>,
    names: NameRulesBuilder,
    answers: Vec<PrefixOf>,
    server_names: NameRulesBuilder,
    server_addresses: Vec<PrefixOf>,
    treatments: Vec<Option<Treatment>>,
    known: HashMap<Option<Treatment>, u16>,
}

/// The rules on names of a response policy zone in the making.
struct NameRulesBuilder {
    itself: NameSetBuilder,
    below: NameSetBuilder,
    of_itself: Vec<u16>,
    of_below: Vec<u16>,
    /// Names with rules of their own, in lower case, and their lines.
    owners: Vec<(Box<[u8]>, u32)>,
    /// Names that have rules for what is below them, in lower case.
    wildcards: HashSet<Box<[u8]>>,
}

/// What a rule of a response policy zone looks at.
#[derive(Clone, Copy, Debug)]
pub enum Trigger<'a> {
    /// The name asked for.
    Name(Name<'a>),
    /// Names below this one.
    Below(Name<'a>),
    /// Clients with this prefix.
    Client(IpAddr, u8),
    /// Answers that have an address with this prefix.
    Answer(IpAddr, u8),
    /// Answers that a name server of this name led to.
    ServerName(Name<'a>),
    /// Answers that a name server below this name led to.
    ServerBelow(Name<'a>),
    /// Answers that a name server led to that has an address with this prefix.
    ServerAddress(IpAddr, u8),
}

impl ZoneBuilder {
    /// Returns an empty zone; `source` is what it is called where a rule is shown.
    pub fn new(key: &HashKey, source: &Arc<str>) -> Self {
        Self {
            source: Arc::clone(source),
            clients: Vec::new(),
            names: NameRulesBuilder::new(key, source),
            answers: Vec::new(),
            server_names: NameRulesBuilder::new(key, source),
            server_addresses: Vec::new(),
            treatments: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Adds a rule; without a treatment it is an exception. Returns false if there are too many
    /// different treatments.
    #[must_use]
    pub fn rule(&mut self, trigger: Trigger<'_>, treatment: Option<Treatment>, line: u32) -> bool {
        let index = match self.known.get(&treatment) {
            Some(&index) => index,
            None if self.treatments.len() >= TREATMENTS_MAX => return false,
            None => {
                let index = self.treatments.len() as u16;
                self.treatments.push(treatment.clone());
                self.known.insert(treatment, index);
                index
            }
        };
        let Self { names, server_names, clients, answers, server_addresses, .. } = self;
        match trigger {
            Trigger::Name(name) => names.rule(name, Reach::Itself, index, line),
            Trigger::Below(name) => names.rule(name, Reach::Below, index, line),
            Trigger::ServerName(name) => server_names.rule(name, Reach::Itself, index, line),
            Trigger::ServerBelow(name) => server_names.rule(name, Reach::Below, index, line),
            Trigger::Client(address, bits) => clients.push((address, bits, index, line)),
            Trigger::Answer(address, bits) => answers.push((address, bits, index, line)),
            Trigger::ServerAddress(address, bits) => server_addresses.push((address, bits, index, line)),
        }
        true
    }

    /// Builds the zone.
    pub fn compile(self) -> PolicyZone {
        let rules = ZoneRules {
            source: self.source,
            names: self.names.compile(),
            server_names: self.server_names.compile(),
            prefixes: Some(Prefixes {
                clients: PrefixRules::new(self.clients),
                answers: PrefixRules::new(self.answers),
                servers: PrefixRules::new(self.server_addresses),
            }),
            treatments: self.treatments.into(),
        };
        PolicyZone { len: rules.len(), rules: Arc::new(rules), changes: None }
    }
}

impl NameRulesBuilder {
    fn new(key: &HashKey, source: &str) -> Self {
        let names = || {
            let mut names = NameSetBuilder::new(key);
            names.source(source);
            names
        };
        Self {
            itself: names(),
            below: names(),
            of_itself: Vec::new(),
            of_below: Vec::new(),
            owners: Vec::new(),
            wildcards: HashSet::new(),
        }
    }

    fn rule(&mut self, name: Name<'_>, reach: Reach, index: u16, line: u32) {
        let folded = name.to_folded().as_bytes().into();
        let (names, of) = match reach {
            Reach::Below => {
                self.wildcards.insert(folded);
                (&mut self.below, &mut self.of_below)
            }
            _ => {
                self.owners.push((folded, line));
                (&mut self.itself, &mut self.of_itself)
            }
        };
        names.name(name, reach, line);
        put(of, line, index);
    }

    /// Says that wildcards are not for names below those that the zone has, which are closer to
    /// them (RFC 4592 §3.3.1); returns how often.
    fn hide_wildcards(&mut self) -> usize {
        let Self { owners, wildcards, below, of_below, .. } = self;
        let mut hidden: HashSet<Box<[u8]>> = HashSet::new();
        let mut hide = |name: Name<'_>, reach: Reach, line: u32| {
            if hidden.insert(name.as_bytes().into()) {
                below.name(name, reach, line);
                put(of_below, line, NO_RULE);
            }
        };
        for (folded, line) in owners.iter() {
            let Ok((owner, _)) = Name::parse(folded) else { continue };
            let is_wildcard = |labels: &usize| wildcards.contains(owner.suffix(*labels).as_bytes());
            let Some(above) = (0..=owner.label_count()).rev().find(is_wildcard) else { continue };
            for labels in above + 1..=owner.label_count() {
                // Names that only have others below them exist as well.
                let is_owner = labels == owner.label_count();
                hide(
                    owner.suffix(labels),
                    if is_owner { Reach::Below } else { Reach::ItselfAndBelow },
                    *line,
                );
            }
        }
        for folded in wildcards.iter() {
            let Ok((name, _)) = Name::parse(folded) else { continue };
            let is_wildcard = |labels: &usize| wildcards.contains(name.suffix(*labels).as_bytes());
            let Some(above) = (0..name.label_count()).rev().find(is_wildcard) else { continue };
            for labels in above + 1..=name.label_count() {
                // What is below the name itself has the rule of its wildcard.
                let is_own = labels == name.label_count();
                // No record has this line: the one of the wildcard is that of its own rule.
                hide(name.suffix(labels), if is_own { Reach::Itself } else { Reach::ItselfAndBelow }, 0);
            }
        }
        hidden.len()
    }

    fn compile(mut self) -> NameRules {
        let hidden = self.hide_wildcards();
        NameRules {
            hidden,
            itself: Arc::new(self.itself.compile()),
            below: Arc::new(self.below.compile()),
            of_itself: self.of_itself.into(),
            of_below: self.of_below.into(),
        }
    }
}

/// Notes the treatment of the rule in a line.
fn put(of: &mut Vec<u16>, line: u32, index: u16) {
    let at = line as usize;
    if of.len() <= at {
        of.resize(at + 1, 0);
    }
    if let Some(place) = of.get_mut(at) {
        *place = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocklist::{Asking, NameText};
    use crate::policy_zone::ServerRule;
    use crate::servers::{KnownServers, NameServer, NameServers};
    use crate::sought::Sought;
    use std::net::IpAddr;
    use wire::{Folded, NameBuf, Rcode, Rtype};

    const KEY: HashKey = HashKey::new([5, 6]);

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    fn anything() -> Condition {
        Condition {
            qtypes: Box::default(),
            not_qtypes: Box::default(),
            clients: None,
            not_clients: None,
            not_names: None,
        }
    }

    /// Returns the line of the rule that decides, negative if it is an exception.
    fn ask(list: &Blocklist, text: &str, qtype: Rtype, client: &str) -> Option<i64> {
        let name = name(text);
        let mut folded = Folded::root();
        let hash = KEY.fold(name.as_name(), &mut folded);
        let sought = Sought::new(&folded, hash);
        let client: IpAddr = client.parse().expect("an address");
        let ruling = list.rule(&Asking {
            sought: &sought,
            qtype,
            client,
            by_client: true,
            addresses: &[],
            servers: None,
        })?;
        Some(if ruling.is_allowed { -i64::from(ruling.line) } else { i64::from(ruling.line) })
    }

    /// Name servers of all names.
    struct Servers {
        names: Vec<NameBuf>,
        addresses: Vec<IpAddr>,
    }

    impl NameServers for Servers {
        fn each(&self, _: Name<'_>, now: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
            assert_eq!(now, 7);
            let names = self.names.iter().map(|name| NameServer::Name(name.as_name()));
            names.chain(self.addresses.iter().copied().map(NameServer::Address)).any(f);
        }
    }

    fn below(text: &str) -> NameBuf {
        name(text)
    }

    #[test]
    fn exceptions_come_before_rules_and_important_ones_before_those() {
        let mut block = NameSetBuilder::new(&KEY);
        block.name(name("example.org").as_name(), Reach::ItselfAndBelow, 1);
        let mut list = BlocklistBuilder::new(&KEY);
        list.source("list");
        for (class, text, line) in [
            (Class::Allow, "good.example.org", 2),
            (Class::ImportantBlock, "bad.good.example.org", 3),
            (Class::ImportantAllow, "best.bad.good.example.org", 4),
            (Class::Allow, "example.net", 5),
        ] {
            let name = below(text);
            list.plain(class, Pattern::Name(name.as_name(), Reach::ItselfAndBelow), line).expect("a name");
        }
        let list = list.compile(Arc::new(block.compile()), Vec::new(), Vec::new());
        let ask = |text: &str| ask(&list, text, Rtype::A, "192.0.2.1");
        assert_eq!(ask("x.example.org"), Some(1));
        assert_eq!(ask("good.example.org"), Some(-2));
        assert_eq!(ask("a.bad.good.example.org"), Some(3));
        assert_eq!(ask("best.bad.good.example.org"), Some(-4));
        assert_eq!(ask("example.net"), None, "an exception from nothing");
        assert_eq!(ask("example.com"), None);
    }

    #[test]
    fn rules_can_look_at_type_client_and_other_names() {
        let mut list = BlocklistBuilder::new(&KEY);
        let mut clients = crate::AddressSetBuilder::new();
        assert!(clients.prefix("192.0.2.0".parse().expect("an address"), 24));
        let mut not_names = NameSetBuilder::new(&KEY);
        not_names.name(name("a.example").as_name(), Reach::ItselfAndBelow, 1);
        let pattern = name("example");
        let pattern = Pattern::Name(pattern.as_name(), Reach::ItselfAndBelow);
        let only_a = Condition { qtypes: [Rtype::A].into(), ..anything() };
        list.special(Class::Block, pattern, (only_a, Treatment::Block), 1).expect("a name");
        let clients = Condition { clients: Some(clients.compile()), ..anything() };
        list.special(Class::Block, pattern, (clients, Treatment::Rcode(Rcode::REFUSED)), 2).expect("a name");
        let names = Condition { not_names: Some(not_names.compile()), ..anything() };
        list.special(Class::Allow, pattern, (names, Treatment::Block), 3).expect("a name");
        let list = list.compile(Arc::new(NameSetBuilder::new(&KEY).compile()), Vec::new(), Vec::new());
        assert_eq!(ask(&list, "a.example", Rtype::A, "198.51.100.1"), Some(1));
        assert_eq!(ask(&list, "a.example", Rtype::TXT, "198.51.100.1"), None);
        assert_eq!(ask(&list, "a.example", Rtype::TXT, "192.0.2.200"), Some(2));
        assert_eq!(ask(&list, "b.example", Rtype::A, "192.0.2.200"), Some(-3));
    }

    #[test]
    fn in_a_policy_zone_the_closest_rule_counts() {
        let mut list = BlocklistBuilder::new(&KEY);
        list.source("zone");
        let mut zone = list.zone();
        for (text, is_below, treatment, line) in [
            ("example", true, Some(Treatment::Rcode(Rcode::NXDOMAIN)), 1),
            ("good.example", true, None, 2),
            ("bad.good.example", false, Some(Treatment::Drop), 3),
            ("good.example", false, Some(Treatment::Drop), 4),
        ] {
            let name = name(text);
            let trigger =
                if is_below { Trigger::Below(name.as_name()) } else { Trigger::Name(name.as_name()) };
            assert!(zone.rule(trigger, treatment, line));
        }
        list.add_zone(zone.compile());
        let list = list.compile(Arc::new(NameSetBuilder::new(&KEY).compile()), Vec::new(), Vec::new());
        let ask = |text: &str| ask(&list, text, Rtype::A, "192.0.2.1");
        assert_eq!(ask("example"), None);
        assert_eq!(ask("a.example"), Some(1));
        assert_eq!(ask("a.good.example"), Some(-2));
        assert_eq!(ask("good.example"), Some(4));
        assert_eq!(ask("bad.good.example"), Some(3));
        // A name that is there is closer than any wildcard above it (RFC 4592 §3.3.1).
        assert_eq!(ask("a.bad.good.example"), None);
        assert_eq!(list.zones[0].len(), 4);
    }

    #[test]
    fn in_a_policy_zone_an_empty_name_hides_wildcards_too() {
        let mut list = BlocklistBuilder::new(&KEY);
        list.source("zone");
        let mut zone = list.zone();
        let (all, own) = (name("example"), name("a.b.example"));
        assert!(zone.rule(Trigger::Below(all.as_name()), Some(Treatment::Drop), 1));
        assert!(zone.rule(Trigger::Name(own.as_name()), None, 2));
        list.add_zone(zone.compile());
        let list = list.compile(Arc::new(NameSetBuilder::new(&KEY).compile()), Vec::new(), Vec::new());
        let ask = |text: &str| ask(&list, text, Rtype::A, "192.0.2.1");
        assert_eq!(ask("x.example"), Some(1));
        assert_eq!(["b.example", "x.b.example", "x.a.b.example"].map(ask), [None; 3]);
        assert_eq!(ask("a.b.example"), Some(-2));
    }

    #[test]
    fn in_a_policy_zone_the_client_comes_first_and_the_answer_last() {
        let mut list = BlocklistBuilder::new(&KEY);
        list.source("zone");
        let mut zone = list.zone();
        let ip = |text: &str| -> IpAddr { text.parse().expect("an address") };
        let (bad, nx) = (name("bad.example"), Some(Treatment::Rcode(Rcode::NXDOMAIN)));
        for (trigger, treatment, line) in [
            (Trigger::Client(ip("192.0.2.0"), 24), nx.clone(), 1),
            (Trigger::Client(ip("192.0.2.7"), 32), None, 2),
            (Trigger::Name(bad.as_name()), nx.clone(), 3),
            (Trigger::Answer(ip("203.0.113.0"), 24), nx.clone(), 4),
            (Trigger::Answer(ip("203.0.113.7"), 32), None, 5),
            (Trigger::Answer(ip("2001:db8::"), 32), nx, 6),
        ] {
            assert!(zone.rule(trigger, treatment, line));
        }
        list.add_zone(zone.compile());
        assert_eq!(list.len(), 6);
        let list = list.compile(Arc::new(NameSetBuilder::new(&KEY).compile()), Vec::new(), Vec::new());
        let check = |qname: &str, client: &str, addresses: &[&str], expect: Option<(bool, u32)>| {
            let name = name(qname);
            let mut folded = Folded::root();
            let hash = KEY.fold(name.as_name(), &mut folded);
            let sought = Sought::new(&folded, hash);
            let addresses: Vec<IpAddr> = addresses.iter().map(|text| ip(text)).collect();
            let (qtype, client_address, addresses) = (Rtype::A, ip(client), &*addresses);
            let asking = Asking {
                sought: &sought,
                qtype,
                client: client_address,
                by_client: true,
                addresses,
                servers: None,
            };
            let found = list.rule(&asking).map(|ruling| (ruling.is_allowed, ruling.line));
            assert_eq!(found, expect, "{qname} {client} {addresses:?}");
        };
        check("www.example", "192.0.2.1", &[], Some((false, 1)));
        check("bad.example", "192.0.2.7", &["203.0.113.1"], Some((true, 2)));
        check("bad.example", "198.51.100.1", &["203.0.113.7"], Some((false, 3)));
        check("www.example", "198.51.100.1", &["203.0.113.1"], Some((false, 4)));
        check("www.example", "198.51.100.1", &["203.0.113.1", "203.0.113.7"], Some((true, 5)));
        check("www.example", "198.51.100.1", &["2001:db8::1"], Some((false, 6)));
        check("www.example", "198.51.100.1", &[], None);
    }

    #[test]
    fn in_a_policy_zone_name_servers_come_last_and_their_names_before_their_addresses() {
        let mut list = BlocklistBuilder::new(&KEY);
        list.source("zone");
        let mut zone = list.zone();
        let ip = |text: &str| -> IpAddr { text.parse().expect("an address") };
        let (bad, ns, good) = (name("bad.example"), name("ns.example.net"), name("good.ns.example.net"));
        let nx = Some(Treatment::Rcode(Rcode::NXDOMAIN));
        for (trigger, treatment, line) in [
            (Trigger::ServerAddress(ip("203.0.113.0"), 24), nx.clone(), 1),
            (Trigger::ServerAddress(ip("203.0.113.7"), 32), None, 2),
            (Trigger::ServerName(ns.as_name()), nx.clone(), 3),
            (Trigger::ServerBelow(ns.as_name()), nx.clone(), 4),
            (Trigger::ServerName(good.as_name()), None, 5),
            (Trigger::Answer(ip("192.0.2.0"), 24), nx.clone(), 6),
            (Trigger::Name(bad.as_name()), nx, 7),
        ] {
            assert!(zone.rule(trigger, treatment, line));
        }
        list.add_zone(zone.compile());
        assert_eq!(list.len(), 7);
        let list = list.compile(Arc::new(NameSetBuilder::new(&KEY).compile()), Vec::new(), Vec::new());
        assert!(list.looks_at_servers());
        let check = |qname: &str, answer: &[&str], names: &[&str], addresses: &[&str], expect| {
            let qname = name(qname);
            let mut folded = Folded::root();
            let hash = KEY.fold(qname.as_name(), &mut folded);
            let servers = Servers {
                names: names.iter().map(|text| name(text)).collect(),
                addresses: addresses.iter().map(|text| ip(text)).collect(),
            };
            let answer: Vec<IpAddr> = answer.iter().map(|text| ip(text)).collect();
            let asking = Asking {
                sought: &Sought::new(&folded, hash),
                qtype: Rtype::A,
                client: ip("198.51.100.1"),
                by_client: true,
                addresses: &answer,
                servers: Some(KnownServers { source: &servers, key: &KEY, now: 7 }),
            };
            let found = list.rule(&asking).map(|ruling| (ruling.is_allowed, ruling.line));
            assert_eq!(found, expect, "{names:?} {addresses:?}");
            let is_name_blocked = list.blocks_servers(&asking, ServerRule::Name);
            assert_eq!(is_name_blocked, matches!(found, Some((false, 3 | 4))), "{names:?}");
        };
        check("a.example", &[], &["ns.example.org"], &["203.0.114.1"], None);
        check("a.example", &[], &["ns.example.org"], &["203.0.113.1"], Some((false, 1)));
        check("a.example", &[], &[], &["203.0.113.1", "203.0.113.7"], Some((true, 2)));
        check("a.example", &[], &["ns.example.org", "NS.example.net"], &["203.0.113.7"], Some((false, 3)));
        check("a.example", &[], &["b.ns.example.net"], &[], Some((false, 4)));
        check("a.example", &[], &["good.ns.example.net"], &["203.0.113.1"], Some((true, 5)));
        check("a.example", &["192.0.2.1"], &["good.ns.example.net"], &[], Some((false, 6)));
        check("bad.example", &["192.0.2.1"], &[], &["203.0.113.1"], Some((false, 7)));
    }

    #[test]
    fn an_alias_may_keep_what_was_asked_for_in_front() {
        let to =
            |target: &Treatment| target.target(name("www.example").as_name()).map(|name| name.to_string());
        let garden = || NameText::from(&name("garden.example"));
        assert_eq!(to(&Treatment::Alias(garden())).as_deref(), Some("garden.example."));
        assert_eq!(to(&Treatment::AliasBelow(garden())).as_deref(), Some("www.example.garden.example."));
        assert_eq!(to(&Treatment::Drop), None);
        // A rule for all names does not go on for ever.
        let inside = name("www.example.garden.example");
        assert_eq!(Treatment::AliasBelow(garden()).target(inside.as_name()), None);
    }
}
