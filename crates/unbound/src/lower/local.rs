//! Local zones: names that are answered here, or not at all.

use std::collections::BTreeMap;
use std::net::IpAddr;

use diagnostic::{Problem, Span};
use yaml::Node;

use super::names::heights;
use super::{Lowering, bare};
use crate::read::{Statement, Word};
use crate::tree;

/// The policy that local zones are in.
const POLICY: &str = "local-zones";
/// The set of records that local data is in.
const RECORDS: &str = "local-data";

/// What a zone does with names that have no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Deny,
    Refuse,
    Static,
    Transparent,
    TypeTransparent,
    Redirect,
    AlwaysTransparent,
    AlwaysRefuse,
    AlwaysNxdomain,
    AlwaysNodata,
    AlwaysDeny,
    AlwaysNull,
}

const KINDS: [(&str, Kind); 14] = [
    ("deny", Kind::Deny),
    ("refuse", Kind::Refuse),
    ("static", Kind::Static),
    ("transparent", Kind::Transparent),
    ("nodefault", Kind::AlwaysTransparent),
    ("typetransparent", Kind::TypeTransparent),
    ("redirect", Kind::Redirect),
    ("inform", Kind::Transparent),
    ("always_transparent", Kind::AlwaysTransparent),
    ("always_refuse", Kind::AlwaysRefuse),
    ("always_nxdomain", Kind::AlwaysNxdomain),
    ("always_nodata", Kind::AlwaysNodata),
    ("always_deny", Kind::AlwaysDeny),
    ("always_null", Kind::AlwaysNull),
];

/// A local zone.
struct Zone {
    name: String,
    kind: Kind,
    at: Span,
}

/// A record of local data.
struct Record<'a> {
    owner: String,
    ttl: String,
    rtype: String,
    data: String,
    word: &'a Word,
}

impl<'a> Lowering<'a> {
    pub(super) fn local_zones(&mut self) {
        let zones = self.declared_zones();
        let records = self.local_data();
        let is_redirected = |owner: &str| {
            zones.values().any(|zone| zone.kind == Kind::Redirect && is_below(owner, &zone.name))
        };
        for record in records.iter().filter(|record| !is_redirected(&record.owner)) {
            self.tree.push(&["records", RECORDS, "text"], tree::as_written(record.word));
        }
        for statement in self.all("local-data-ptr") {
            if let Some(record) = self.reverse(statement) {
                self.tree.push(&["records", RECORDS, "text"], record);
            }
        }
        let has_data = self.tree.has(&["records", RECORDS, "text"]);
        let mut rules: Vec<Node> = Vec::new();
        let heights = heights(zones.keys().map(String::as_str));
        // Zones alike stand together, so that a hundred thousand of them are one look-up.
        let mut groups: BTreeMap<(usize, Kind), Vec<&Zone>> = BTreeMap::new();
        for zone in zones.values() {
            let height = heights.get(zone.name.as_str()).copied().unwrap_or(0);
            groups.entry((height, zone.kind)).or_default().push(zone);
        }
        for ((height, kind), zones) in groups {
            match kind {
                Kind::Redirect => {
                    for zone in zones {
                        self.redirect(zone, &records, &mut rules);
                    }
                }
                Kind::TypeTransparent => self.type_transparent(&zones, &records, &mut rules),
                _ => {
                    let at = zones.first().map_or(self.tree.whole(), |zone| zone.at);
                    let condition = self.is_in(&zones, height, kind);
                    let actions = kind.actions().iter().copied();
                    let actions: Vec<&str> =
                        actions.filter(|it| has_data || !it.starts_with("records(")).collect();
                    rules.push(rule(condition, &actions, at));
                }
            }
        }
        let whole = self.tree.whole();
        if has_data {
            rules.push(tree::text(format!("records({RECORDS})"), whole));
        }
        // Names that never leave a server: localhost and the like.
        rules.push(tree::text("local", whole));
        self.set(&["policy", POLICY], tree::list(rules));
        self.steps.local.push(tree::text(format!("call({POLICY})"), whole));
        for keyword in ["unblock-lan-zones", "insecure-lan-zones"] {
            if let (true, at) = self.flag(keyword) {
                self.warn(at, format!("\"{keyword}\" has no effect yet: reverse zones of private addresses are answered here"));
            }
        }
    }

    /// Returns the zones by their names: of several with one name the last counts.
    fn declared_zones(&mut self) -> BTreeMap<String, Zone> {
        let mut zones: BTreeMap<String, Zone> = BTreeMap::new();
        for statement in self.all("local-zone") {
            let [name, kind] = [statement.word(0), statement.word(1)];
            let Some(&(_, known)) = KINDS.iter().find(|(word, _)| *word == kind.text) else {
                let is_theirs = [
                    "inform_deny",
                    "inform_redirect",
                    "block_a",
                    "block_aaaa",
                    "block_a_wdata",
                    "block_aaaa_wdata",
                    "noview",
                    "ipset",
                    "truncate",
                ];
                let message = if is_theirs.contains(&kind.text.as_str()) {
                    format!("local zones of the type \"{}\" are not supported yet", kind.text)
                } else {
                    format!("\"{}\" is no type of local zones", kind.text)
                };
                self.error(kind.span, message);
                continue;
            };
            let zone = Zone { name: bare(&name.text), kind: known, at: statement.span() };
            if let Some(other) = zones.insert(zone.name.clone(), zone) {
                let message =
                    format!("the local zone \"{}\" is there twice: the last one counts", other.name);
                self.warn(other.at, message);
            }
        }
        zones
    }

    /// Reads local data as far as it takes to know whose it is.
    fn local_data(&mut self) -> Vec<Record<'a>> {
        let mut records = Vec::new();
        for statement in self.all("local-data") {
            let word = statement.word(0);
            match Record::read(word) {
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

    /// Answers all names of a zone with the data of its own name.
    fn redirect(&self, zone: &Zone, records: &[Record<'_>], rules: &mut Vec<Node>) {
        let own: Vec<&Record<'_>> = records.iter().filter(|record| record.owner == zone.name).collect();
        let is_in = format!("qname in suffix:{}", zone.name);
        if let Some(alias) = own.iter().find(|record| record.rtype == "CNAME") {
            // The alias is followed.
            let target = bare(&alias.data);
            rules.push(rule(is_in, &[&format!("redirect({target})"), "return"], alias.word.span));
            return;
        }
        let mut by_type: BTreeMap<&str, Vec<&Record<'_>>> = BTreeMap::new();
        for record in own {
            by_type.entry(&record.rtype).or_default().push(record);
        }
        for (rtype, records) in by_type {
            let texts: Vec<String> = records
                .iter()
                .map(|it| {
                    format!(
                        "\"{}\"",
                        format!("@ {} {rtype} {}", it.ttl, it.data)
                            .replace('\\', "\\\\")
                            .replace('"', "\\\"")
                    )
                })
                .collect();
            let action = format!("respond(answer {}, authoritative)", texts.join("|"));
            let at = records.first().map_or(zone.at, |record| record.word.span);
            rules.push(rule(format!("{is_in} and qtype == {rtype}"), &[&action], at));
        }
        rules.push(rule(is_in, &["respond(noerror, authoritative)"], zone.at));
    }

    /// Answers the types that names have; all others are found as usual.
    fn type_transparent(&self, zones: &[&Zone], records: &[Record<'_>], rules: &mut Vec<Node>) {
        for zone in zones {
            let own = records.iter().filter(|record| is_below(&record.owner, &zone.name));
            let mut by_type: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for record in own {
                by_type.entry(&record.rtype).or_default().push(&record.owner);
            }
            for (rtype, mut owners) in by_type {
                owners.dedup();
                let owners: Vec<String> = owners.iter().map(|owner| format!("exact:{owner}")).collect();
                let condition = format!("qtype == {rtype} and qname in {}", owners.join("|"));
                rules.push(rule(condition, &[&format!("records({RECORDS})")], zone.at));
            }
            rules.push(rule(format!("qname in suffix:{}", zone.name), &["return"], zone.at));
        }
    }

    /// Returns the condition for names in some zones: a set if there are many.
    fn is_in(&mut self, zones: &[&Zone], height: usize, kind: Kind) -> String {
        if let [one] = zones {
            return format!("qname in suffix:{}", one.name);
        }
        let set = format!("local-{}-{height}", kind.word());
        for zone in zones {
            let item = tree::text(format!("suffix:{}", zone.name), zone.at);
            self.tree.push(&["sets", &set, "names"], item);
        }
        format!("qname in {set}")
    }

    /// Returns the PTR record of an address: the address, perhaps a TTL, and a name.
    fn reverse(&mut self, statement: &Statement) -> Option<Node> {
        let word = statement.word(0);
        let parts: Vec<&str> = word.text.split_whitespace().collect();
        let (address, ttl, name) = match *parts.as_slice() {
            [address, name] => (address, "3600", name),
            [address, ttl, name] => (address, ttl, name),
            _ => ("", "", ""),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            let problem = Problem::error(word.span, format!("\"{}\" is no address with a name", word.text));
            self.problems.push(problem.expected("such as \"192.0.2.1 www.example.org\""));
            return None;
        };
        let owner = match address {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
            }
            IpAddr::V6(address) => {
                let nibbles = address.octets().into_iter().rev().flat_map(|octet| [octet & 15, octet >> 4]);
                let labels: String = nibbles.map(|nibble| format!("{nibble:x}.")).collect();
                format!("{labels}ip6.arpa.")
            }
        };
        Some(tree::text(format!("{owner} {ttl} IN PTR {}.", bare(name)), word.span))
    }
}

impl Kind {
    /// Returns what is done with names of such a zone.
    const fn actions(self) -> &'static [&'static str] {
        const DATA: &str = "records(local-data)";
        match self {
            Self::Deny => &[DATA, "drop"],
            Self::Refuse => &[DATA, "reject(refused)"],
            Self::Static => &[DATA, "respond(nxdomain, authoritative)"],
            Self::Transparent => &[DATA, "return"],
            Self::TypeTransparent | Self::Redirect | Self::AlwaysTransparent => &["return"],
            Self::AlwaysRefuse => &["reject(refused)"],
            Self::AlwaysNxdomain => &["respond(nxdomain, authoritative)"],
            Self::AlwaysNodata => &["respond(noerror, authoritative)"],
            Self::AlwaysDeny => &["drop"],
            Self::AlwaysNull => &["block(null, ttl 1h, ede none)"],
        }
    }

    /// Returns its name.
    fn word(self) -> String {
        let word = KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |&(word, _)| word);
        word.replace('_', "-")
    }
}

impl<'a> Record<'a> {
    fn read(word: &'a Word) -> Option<Self> {
        let (owner, mut rest) = word.text.trim().split_once([' ', '\t'])?;
        let mut ttl = "3600";
        loop {
            let (part, behind) = rest.trim_start().split_once([' ', '\t'])?;
            rest = behind.trim();
            if part.bytes().all(|byte| byte.is_ascii_digit()) {
                ttl = part;
            } else if !part.eq_ignore_ascii_case("IN") {
                let rtype = part.to_ascii_uppercase();
                return Some(Self {
                    owner: bare(owner),
                    ttl: ttl.to_owned(),
                    rtype,
                    data: rest.to_owned(),
                    word,
                });
            }
        }
    }
}

/// Returns whether a name is a zone's own, or below it.
fn is_below(name: &str, zone: &str) -> bool {
    zone == "." || name == zone || name.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns a rule.
fn rule(condition: String, actions: &[&str], at: Span) -> Node {
    let actions = actions.iter().map(|action| tree::text(*action, at)).collect();
    tree::map(vec![("if", tree::text(condition, at)), ("do", tree::list(actions))], at)
}
