//! Local zones: names that are answered here, or not at all; and views, which have their own.

mod denials;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use diagnostic::{Problem, Span};
use wire::Prefix;
use yaml::Node;

use super::access::prefix;
use super::built_in::{self, BuiltIn};
use super::bulk::{self, InBulk};
use super::clients::{self, Clients};
use super::records::Record;
use super::zone_table::{Bulk, Special, Zone, Zones};
use super::{Lowering, RESOLVE};
use crate::keywords::Section;
use crate::kind::{KINDS, Kind, kind_of};
use crate::names::bare;
use crate::names::{above, is_below, is_plain, is_strictly_below, lan_zones, lower_case};
use crate::read::{Block, Statement, Word, ZoneStatement};
use crate::tree;
use denials::{blocked, by_type, denials_with_soa};

/// The policy that local zones are in; those of views have their name behind it.
const POLICY: &str = "local-zones";
/// The set of records that local data is in.
const RECORDS: &str = "local-data";
/// The set of records that local data in zones that are built in is in.
const BUILT_IN: &str = "built-in-data";
/// The zone that is built in and redirected.
const LOCALHOST: &str = "localhost";

/// Zones that are one text in place of a list of names.
const TEXT_ZONES_MIN: usize = 1000;
/// Zones of which the log can have what they do: each takes a rule of its own.
const LOGGED_ZONES_MAX: usize = 1000;

/// What local zones are made of: those of `server:`, or of a view.
struct Source<'a> {
    /// What stands behind the names of what is made; empty for those of `server:`.
    suffix: String,
    zones: Zones<'a>,
    records: Vec<Record<'a>>,
    reverse: Vec<&'a Statement>,
    /// The names of the records that these stand for.
    reverse_owners: Vec<String>,
    /// Zones that are for clients with tags alone.
    tagged: Vec<String>,
    /// Whether names that never leave a server are answered, too.
    has_defaults: bool,
    /// The zones of these names, where one of `zones` lies above some.
    built_in: BuiltIn,
}

impl Source<'_> {
    /// Returns whether an SOA is among the data: a set of records denies names below it.
    fn has_soa(&self) -> bool {
        self.records.iter().any(|record| record.rtype == "SOA")
    }

    /// Returns the names with data of these zones, each of which belongs to the closest zone.
    fn owned(&self, zones: &[&Zone<'_>]) -> BTreeSet<&str> {
        // They are in the order of the list that they are from.
        let is_one = |zone: &Zone<'_>| {
            zones.binary_search_by_key(&std::ptr::from_ref(zone), |&zone| std::ptr::from_ref(zone)).is_ok()
        };
        let owners = self.data().map(|(owner, _)| owner);
        owners.filter(|owner| self.zone_of(owner).is_some_and(is_one)).collect()
    }

    /// Walks names with data, and the types of that.
    fn data(&self) -> impl Iterator<Item = (&str, &str)> {
        let records = self.records.iter().map(|record| (record.owner.as_str(), record.rtype.as_str()));
        records.chain(self.reverse_owners.iter().map(|owner| (owner.as_str(), "PTR")))
    }

    /// Returns the closest zone at or above a name; none if one that is built in is closer.
    fn zone_of(&self, name: &str) -> Option<&Zone<'_>> {
        self.zones.closest(name).filter(|zone| self.built_in.closer(name, &zone.name).is_none())
    }

    /// Returns the name of that zone.
    fn closest(&self, name: &str) -> Option<&str> {
        self.zone_of(name).map(|zone| &*zone.name)
    }

    /// Returns the zone that is built in, if it is the closest one above a name.
    fn built_in_of(&self, name: &str) -> Option<&str> {
        self.built_in.around(name).filter(|_| self.zone_of(name).is_none())
    }

    /// Returns the names with data that are in no zone.
    fn outside(&self) -> BTreeSet<&str> {
        let is_outside = |owner: &&str| self.closest(owner).is_none() && self.built_in_of(owner).is_none();
        self.data().map(|(owner, _)| owner).filter(is_outside).collect()
    }

    /// Returns whether only names with data are looked for in the set of records: else it would
    /// give data of zones below that are for others, and deny names below an SOA, which is right
    /// for static zones with their own one alone.
    fn confines_data(&self, kind: Kind, zones: &[&Zone<'_>]) -> bool {
        let has_below = |zone: &&Zone<'_>| self.tagged.iter().any(|name| is_strictly_below(name, &zone.name));
        if !self.tagged.is_empty() && zones.iter().any(has_below) {
            return true;
        }
        let mut soas = self.records.iter().filter(|record| record.rtype == "SOA");
        match kind {
            Kind::Static => soas.any(|soa| {
                !zones.iter().any(|zone| zone.name == soa.owner)
                    && zones
                        .iter()
                        .any(|zone| is_below(&soa.owner, &zone.name) || is_below(&zone.name, &soa.owner))
            }),
            _ => soas.next().is_some(),
        }
    }
}

/// Returns the names of the records that addresses with names stand for.
fn owners_of_pointers(statements: &[&Statement]) -> Vec<String> {
    statements.iter().filter_map(|it| crate::names::reverse_owner(&it.word(0).text)).collect()
}

/// Returns the condition that the name asked for is one of these; `None` if there are none.
fn one_of<'n>(names: impl Iterator<Item = &'n str>) -> Option<String> {
    let names: Vec<String> = names.map(|name| format!("exact:{name}")).collect();
    (!names.is_empty()).then(|| format!("qname in {}", names.join("|")))
}

/// Returns the names between zones and names with data of theirs.
fn between(owned: &BTreeSet<&str>, source: &Source<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for owner in owned {
        let Some(zone) = source.closest(owner) else { continue };
        let between = above(owner).skip(1).take_while(|name| is_below(name, zone));
        found.extend(between.filter(|name| !owned.contains(name)).map(str::to_owned));
    }
    found
}

/// Zones alike.
struct Group<'z, 'a> {
    zones: Vec<&'z Zone<'a>>,
    /// More of them.
    bulk: Option<&'z Bulk>,
    height: u8,
    kind: Kind,
}

impl Group<'_, '_> {
    /// Returns where the first zone stands.
    fn at(&self) -> Option<Span> {
        self.zones.first().map(|zone| zone.at).or_else(|| self.bulk.map(|bulk| bulk.at))
    }
}

/// What zones have to have in common to be alike, in the order in which they are asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    height: u8,
    kind: Kind,
    is_alone: bool,
    /// Of a zone that is alone, its place in the list.
    number: usize,
}

/// Returns zones alike together: those that lie below others first.
fn groups<'z, 'a>(zones: &'z Zones<'a>, built_in: &BuiltIn) -> BTreeMap<GroupKey, Group<'z, 'a>> {
    let bulk = zones.bulk.as_ref();
    let heights = zones.heights();
    let mut groups: BTreeMap<GroupKey, Group<'z, 'a>> = BTreeMap::new();
    let new = |key: GroupKey| Group { zones: Vec::new(), bulk: None, height: key.height, kind: key.kind };
    if let Some(bulk) = bulk {
        let key = GroupKey { height: 0, kind: bulk.kind, is_alone: false, number: 0 };
        groups.insert(key, Group { bulk: Some(bulk), ..new(key) });
    }
    for (number, zone) in zones.iter().enumerate() {
        let is_alone = zone.special.is_some();
        let mut height = heights.get(number).copied().unwrap_or(0);
        // No zone in bulk lies above one of the list, but it may lie below.
        let is_above_built_in = built_in.has_below(&zone.name);
        let is_like_bulk =
            |bulk: &Bulk| bulk.kind == zone.kind && !is_alone && height == 0 && !is_above_built_in;
        if zones.differ() && bulk.is_some_and(|bulk| !is_like_bulk(bulk)) {
            height = height.saturating_add(1);
        }
        // Behind all that lies below one that is built in, also in a list that is in no order.
        height = height.saturating_add(is_above_built_in.into());
        let number = if is_alone { number } else { 0 };
        let key = GroupKey { height, kind: zone.kind, is_alone, number };
        groups.entry(key).or_insert_with(|| new(key)).zones.push(zone);
    }
    groups
}

/// Local zones on their way to a policy.
struct Making<'s, 'a> {
    source: &'s Source<'a>,
    /// The set of records that data is in.
    records: String,
    has_data: bool,
    /// The set of records with the data in zones that are built in, if there is any.
    built_in: Option<String>,
    rules: Vec<Node>,
    /// Sets of records that were made for single zones.
    own_sets: usize,
}

impl<'a> Lowering<'a> {
    pub(super) fn local_zones(&mut self) {
        self.check_clients();
        let clients = self.clients();
        let server = self.blocks(Section::Server).next();
        let mut zones = server.map_or_else(Zones::default, |block| self.declared_zones(block));
        self.tag(&mut zones);
        self.note_actions(&mut zones);
        let has_lan = !self.flag("unblock-lan-zones").0;
        let built_in = BuiltIn::beside(&zones, has_lan);
        let records = self.local_data(self.all("local-data"));
        let reverse: Vec<&Statement> = self.all("local-data-ptr").collect();
        let reverse_owners = owners_of_pointers(&reverse);
        let tagged = zones.iter().filter(|zone| zone.has_tags()).map(|zone| zone.name.to_string()).collect();
        let source = Source {
            suffix: String::new(),
            zones,
            records,
            reverse,
            reverse_owners,
            tagged,
            has_defaults: true,
            built_in,
        };
        self.local_policy(&source, &clients);
        let mut own_alone: Vec<&str> = Vec::new();
        for block in self.blocks(Section::View) {
            let Some(name) = block.last("name") else {
                self.problems.push(Problem::error(block.at, "this view has no name").expected("\"name:\""));
                continue;
            };
            let zones = self.declared_zones(block);
            let records = self.local_data(block.all("local-data"));
            let reverse: Vec<&Statement> = block.all("local-data-ptr").collect();
            if zones.is_empty() && records.is_empty() && reverse.is_empty() {
                continue;
            }
            let suffix = format!("-{}", super::label(&name.text));
            let policy = format!("{POLICY}{suffix}");
            // Who gets nothing but the view's own still must not ask others for localhost.
            let has_defaults = !block.flag("view-first").0;
            let reverse_owners = owners_of_pointers(&reverse);
            // Tags are for the zones of "server:" alone.
            let tagged = Vec::new();
            let built_in = if has_defaults { BuiltIn::beside(&zones, has_lan) } else { BuiltIn::default() };
            let source =
                Source { suffix, zones, records, reverse, reverse_owners, tagged, has_defaults, built_in };
            self.local_policy(&source, &clients);
            let is_of = |it: &Clients<'_>| it.view.is_some_and(|view| view.text == name.text);
            if let Some(condition) = clients::condition(&clients, is_of) {
                self.steps.local.push(rule(condition, &[&format!("call({policy})")], name.span));
            }
            if !block.flag("view-first").0 {
                own_alone.push(&name.text);
            }
        }
        let whole = self.tree.whole();
        let has_own = |it: &Clients<'_>| it.view.is_some_and(|view| own_alone.contains(&&*view.text));
        let call = format!("call({POLICY})");
        self.steps.local.push(match clients::condition(&clients, has_own) {
            Some(condition) => rule(format!("not {condition}"), &[&call], whole),
            None => tree::text(call, whole),
        });
    }

    /// Makes a policy of local zones.
    fn local_policy(&mut self, source: &Source<'a>, clients: &[Clients<'a>]) {
        let Source { zones, records, suffix, .. } = source;
        let set = format!("{RECORDS}{suffix}");
        // Data belongs to the closest zone. That of one which is redirected is in sets of its own;
        // where it is another one for some clients, these may need it as it is.
        let is_redirected = |owner: &str| {
            source.zone_of(owner).map_or_else(
                || owner != LOCALHOST && source.built_in_of(owner) == Some(LOCALHOST),
                |zone| zone.kind == Kind::Redirect && !zone.is_other_for_some(),
            )
        };
        for record in records.iter().filter(|record| is_redirected(&record.owner)) {
            let has_alias = |it: &Record<'_>| it.rtype == "CNAME" && it.owner == record.owner;
            let reason = match source.closest(&record.owner).or_else(|| source.built_in_of(&record.owner)) {
                Some(zone) if zone != record.owner => format!("\"{zone}\" is redirected as a whole"),
                _ if record.rtype != "CNAME" && records.iter().any(has_alias) => {
                    format!("\"{}\" has an alias, and nothing beside it", record.owner)
                }
                _ => continue,
            };
            self.warn(record.word.span, format!("\"{}\" has no effect: {reason}", record.word.text));
        }
        let built_in = format!("{BUILT_IN}{suffix}");
        let set_of = |owner: &str| if source.built_in_of(owner).is_some() { &built_in } else { &set };
        for record in records.iter().filter(|record| !is_redirected(&record.owner)) {
            self.tree.push(&["records", set_of(&record.owner), "text"], tree::as_written(record.word));
            if record.owner == LOCALHOST && source.built_in_of(LOCALHOST).is_some() {
                // What the zone is redirected to.
                let Record { owner, ttl, rtype, data, word } = record;
                let below = tree::text(format!("*.{owner}. {ttl} IN {rtype} {data}"), word.span);
                self.tree.push(&["records", &built_in, "text"], below);
            }
        }
        for statement in &source.reverse {
            if let Some(record) = self.reverse(statement) {
                let owner = crate::names::reverse_owner(&statement.word(0).text).unwrap_or_default();
                self.tree.push(&["records", set_of(&owner), "text"], record);
            }
        }
        let has_data = self.tree.has(&["records", &set, "text"]);
        self.leave_out_soa(&set);
        let built_in = self.data_of_built_in(source, built_in);
        let mut making = Making { source, records: set, has_data, built_in, rules: Vec::new(), own_sets: 0 };
        // Zones alike stand together, so that a hundred thousand of them are one look-up.
        for (key, group) in groups(zones, &source.built_in) {
            built_in_first(&mut making, &group);
            if key.is_alone {
                group.zones.iter().for_each(|zone| self.special_zone(&mut making, zone, clients));
            } else {
                self.zones_of_kind(&mut making, &group, None);
            }
        }
        let whole = self.tree.whole();
        let Making { mut rules, records, has_data, built_in, .. } = making;
        if has_data {
            let action = format!("records({records})");
            let is_for_all = zones.iter().all(|zone| !zone.has_tags()) && !source.has_soa();
            if is_for_all {
                rules.push(tree::text(action, whole));
            } else if let Some(owners) = one_of(source.outside().into_iter()) {
                rules.push(rule(owners, &[&action], whole));
            }
        }
        rules.extend(built_in.map(|set| tree::text(format!("records({set})"), whole)));
        if source.has_defaults {
            if let (true, at) = self.flag("unblock-lan-zones") {
                let zones: Vec<String> = lan_zones().map(|zone| format!("suffix:{zone}")).collect();
                rules.push(rule(format!("qname in {}", zones.join("|")), &["return"], at));
            }
            // Names that never leave a server: localhost and the like.
            rules.push(tree::text("local", whole));
        }
        self.set(&["policy", &format!("{POLICY}{suffix}")], tree::list(rules));
    }

    /// Has a set of records answer without an SOA where it has none, if it has records.
    fn leave_out_soa(&mut self, set: &str) {
        if self.tree.has(&["records", set, "text"]) {
            let whole = self.tree.whole();
            self.set(&["records", set, "synthesized-soa"], tree::flag(false, whole));
        }
    }

    /// Adds to the data in zones that are built in what these zones have themselves, so that it is
    /// denied like all of theirs; returns the set if there is any data.
    fn data_of_built_in(&mut self, source: &Source<'a>, set: String) -> Option<String> {
        if !self.tree.has(&["records", &set, "text"]) {
            return None;
        }
        let zones: BTreeSet<&str> =
            source.data().filter_map(|(owner, _)| source.built_in_of(owner)).collect();
        let is_written = |owner: &str, rtype: &str| source.data().any(|data| data == (owner, rtype));
        let whole = self.tree.whole();
        for zone in zones {
            for record in built_in::records_of(zone, is_written) {
                self.tree.push(&["records", &set, "text"], tree::text(record, whole));
            }
        }
        self.leave_out_soa(&set);
        Some(set)
    }

    /// Makes rules of a zone that is another one for some clients.
    fn special_zone(&mut self, making: &mut Making<'_, 'a>, zone: &Zone<'a>, clients: &[Clients<'a>]) {
        let as_kind = |kind| Group { zones: vec![zone], bulk: None, height: 0, kind };
        let Some(special) = &zone.special else { return };
        // Who lacks the tags of a zone does not meet it in another type either.
        let tagged = clients::condition(clients, |it| tag_of_any(it, &special.tags));
        let has_tags = !special.tags.is_empty();
        for &(netblock, kind) in special.overrides.iter().filter(|_| !has_tags || tagged.is_some()) {
            let parts = [Some(format!("client in {}", netblock.text)), tagged.clone().filter(|_| has_tags)];
            let who = parts.into_iter().flatten().collect::<Vec<_>>().join(" and ");
            self.zones_of_kind(making, &as_kind(kind), Some((&who, None)));
        }
        if !has_tags {
            return self.zones_of_kind(making, &as_kind(zone.kind), None);
        }
        let tag_of = |it: &Clients<'a>| it.tag_among(&special.tags);
        let of_tag = |list: &[(&'a str, &'a Word)], tag: &str| {
            list.iter().find(|(known, _)| *known == tag).map(|&(_, word)| word)
        };
        for (at, it) in clients.iter().enumerate() {
            let Some(tag) = tag_of(it) else { continue };
            let (action, data) = (of_tag(&it.actions, tag), of_tag(&it.data, tag));
            let kind = match action.map(|word| (word, kind_of(&word.text))) {
                Some((word, None)) => {
                    self.error(word.span, format!("\"{}\" is no type of local zones", word.text));
                    continue;
                }
                Some((_, Some(kind))) => kind,
                None if data.is_none() => continue,
                None => zone.kind,
            };
            let is_it = |other: &Clients<'_>| clients.get(at).is_some_and(|it| std::ptr::eq(it, other));
            if let Some(who) = clients::condition(clients, is_it) {
                self.zones_of_kind(making, &as_kind(kind), Some((&who, data)));
            }
        }
        if let Some(who) = tagged {
            self.zones_of_kind(making, &as_kind(zone.kind), Some((&who, None)));
        }
    }

    /// Makes rules of zones alike; perhaps for some clients alone, and with data of their own.
    fn zones_of_kind(
        &mut self,
        making: &mut Making<'_, 'a>,
        group: &Group<'_, '_>,
        who: Option<(&str, Option<&Word>)>,
    ) {
        let (zones, kind) = (group.zones.as_slice(), group.kind);
        let with_who = |condition: String| match who {
            Some((who, _)) => format!("{who} and {condition}"),
            None => condition,
        };
        let own_data = who.and_then(|(_, data)| data);
        if let [zone] = zones
            && let Some(logged) = zone.special.as_ref().and_then(|special| special.logged.as_ref())
        {
            let condition = with_who(format!("qname in suffix:{}", zone.name));
            making.rules.push(rule(condition, &[&format!("query-lines(zone \"{logged}\")")], zone.at));
        }
        match kind {
            Kind::Redirect => {
                for zone in zones {
                    let is_in = with_who(format!("qname in suffix:{}", zone.name));
                    self.redirect(making, zone, is_in, own_data);
                }
            }
            kind if kind.is_by_type() => {
                let at = group.at().unwrap_or(self.tree.whole());
                by_type(making, zones, at, &with_who);
                let condition = with_who(self.is_in(making.source, group));
                making.rules.extend(blocked(kind, &condition, at));
                making.rules.push(rule(condition, &[kind.action()], at));
            }
            _ => {
                let at = group.at().unwrap_or(self.tree.whole());
                let condition = with_who(self.is_in(making.source, group));
                if kind == Kind::Truncate {
                    // Over connections, such names are found like others.
                    let over_udp = format!("transport == udp and {condition}");
                    making.rules.push(rule(
                        over_udp,
                        &["respond(noerror, continue)", "truncate", "accept"],
                        at,
                    ));
                }
                if kind == Kind::Ipset
                    && let Some(action) = self.ipset(at)
                {
                    making.rules.push(rule(condition.clone(), &[&action], at));
                }
                let owned = making.source.owned(zones);
                let data = format!("records({})", making.records);
                if matches!(kind, Kind::Deny | Kind::Refuse | Kind::AlwaysNull) {
                    // Other types of the same names are denied, or have no address.
                    let theirs: BTreeSet<&str> =
                        owned.iter().filter_map(|owner| making.source.closest(owner)).collect();
                    let have_data = zones.iter().copied().filter(|zone| theirs.contains(&*zone.name));
                    by_type(making, &have_data.collect::<Vec<_>>(), at, &with_who);
                } else if kind.has_data() && making.has_data {
                    let has_data = match making.source.confines_data(kind, zones) {
                        false => Some(condition.clone()),
                        true => one_of(owned.iter().copied()).map(&with_who),
                    };
                    making.rules.extend(has_data.map(|condition| rule(condition, &[&data], at)));
                }
                if kind == Kind::Static
                    && let Some(exist) = one_of(between(&owned, making.source).iter().map(String::as_str))
                {
                    // Names with others below them exist, without data.
                    making.rules.push(rule(with_who(exist), &["respond(noerror, authoritative)"], at));
                }
                making.rules.extend(blocked(kind, &condition, at));
                denials_with_soa(making, kind, zones, &with_who);
                making.rules.push(rule(condition, &[kind.action()], at));
            }
        }
    }

    /// Returns the action that puts the addresses of an answer into the sets of the kernel.
    fn ipset(&mut self, at: Span) -> Option<String> {
        let block = self.blocks(Section::Ipset).last();
        let set = |ours: &str, theirs: &'static str| {
            let name = block.and_then(|block| block.last(theirs)).filter(|name| !name.text.is_empty())?;
            Some(format!("{ours} {}", name.text))
        };
        let sets: Vec<String> =
            [set("set4", "name-v4"), set("set6", "name-v6")].into_iter().flatten().collect();
        if sets.is_empty() {
            let problem = Problem::error(at, "the section \"ipset\" names no set for this zone");
            self.problems.push(problem.expected("\"name-v4:\" or \"name-v6:\""));
            return None;
        }
        Some(format!("ipset({})", sets.join(", ")))
    }

    /// Returns the zones that a section declares: of several with one name the last counts.
    fn declared_zones(&mut self, block: &'a Block) -> Zones<'a> {
        let sources: &'a [Arc<diagnostic::Source>] = &self.statements.sources;
        let mut in_bulk = InBulk::of(block, sources);
        let mut zones = Vec::new();
        // Most are of the type of the one before.
        let mut last = ("", None);
        for lines in &block.zones {
            let statements: Box<dyn Iterator<Item = ZoneStatement<'a>> + 'a> = match &mut in_bulk {
                Some(bulk) => Box::new(bulk.take(lines, sources).into_iter()),
                None => Box::new(lines.statements(sources)),
            };
            for statement in statements {
                if last.1.is_none() || last.0 != statement.kind {
                    last = (statement.kind, self.kind(statement.kind, statement.kind_span));
                }
                let Some(mut kind) = last.1 else { continue };
                if kind == Kind::NoView && block.section == Section::Server {
                    // There is no view to leave.
                    kind = Kind::Transparent;
                }
                let (name, at) = (lower_case(statement.name), statement.span);
                if statement.name.is_empty() {
                    self.warn(statement.name_span, "a local zone without a name is that of the root: \".\"");
                }
                if statement.kind == "nodefault" && !crate::names::is_built_in(&name) {
                    let message = format!("\"{name}\" is no zone that is built in: nothing changes");
                    self.warn(statement.name_span, message);
                    continue;
                }
                let special = statement.kind.starts_with("inform").then(|| {
                    let logged = Some(format!("{}. {}", name.trim_end_matches('.'), statement.kind));
                    Box::new(Special { logged, ..Special::default() })
                });
                zones.push(Zone { name, kind, at, special });
            }
        }
        let is_asked = block.statements.iter().any(bulk::names_zones);
        let is_logged = self.flag("log-local-actions").0;
        let (mut zones, replaced) = Zones::new(zones, is_asked || is_logged, in_bulk.is_some());
        for other in replaced {
            let message = format!("the local zone \"{}\" is there twice: the last one counts", other.name);
            self.warn(other.at, message);
        }
        zones.bulk = in_bulk.and_then(|bulk| bulk.finish(sources));
        zones
    }

    /// Has the log tell what zones do that do not leave queries to others.
    fn note_actions(&mut self, zones: &mut Zones<'a>) {
        let (true, at) = self.flag("log-local-actions") else { return };
        if zones.len() > LOGGED_ZONES_MAX {
            let message =
                format!("\"log-local-actions\" has no effect with more than {LOGGED_ZONES_MAX} local zones");
            return self.warn(at, message);
        }
        for zone in zones.iter_mut() {
            let passes = [Kind::Transparent, Kind::TypeTransparent, Kind::AlwaysTransparent];
            if !passes.contains(&zone.kind) {
                let word = KINDS.iter().find(|(_, kind)| *kind == zone.kind).map_or("", |&(word, _)| word);
                let logged = format!("{}. {word}", zone.name.trim_end_matches('.'));
                zone.special.get_or_insert_default().logged.get_or_insert(logged);
            }
        }
    }

    fn kind(&mut self, word: &str, at: Span) -> Option<Kind> {
        let kind = kind_of(word);
        if kind.is_none() {
            self.error(at, format!("\"{word}\" is no type of local zones"));
        }
        kind
    }

    /// Notes which zones are only for clients with a tag, and which are others for some clients.
    fn tag(&mut self, zones: &mut Zones<'a>) {
        for statement in self.all("local-zone-tag") {
            match zones.get_mut(&bare(&statement.word(0).text)) {
                Some(zone) => {
                    let special = zone.special.get_or_insert_default();
                    special.tags.extend(clients::tags(statement.word(1)));
                }
                None => self.no_zone(statement.word(0)),
            }
        }
        for statement in self.all("local-zone-override") {
            let [name, netblock, kind] = [statement.word(0), statement.word(1), statement.word(2)];
            let kind = self.kind(&kind.text, kind.span);
            if prefix(&netblock.text).is_none() {
                self.error(netblock.span, format!("\"{}\" is not a prefix", netblock.text));
                continue;
            }
            match (zones.get_mut(&bare(&name.text)), kind) {
                (Some(zone), Some(kind)) => {
                    zone.special.get_or_insert_default().overrides.push((netblock, kind));
                }
                (Some(_), None) => {}
                (None, _) => self.no_zone(name),
            }
        }
        // Of several prefixes the longest one counts.
        for special in zones.iter_mut().filter_map(|zone| zone.special.as_mut()) {
            let bits = |word: &Word| prefix(&word.text).map_or(0, Prefix::bits);
            special.overrides.sort_by_key(|(netblock, _)| std::cmp::Reverse(bits(netblock)));
        }
    }

    fn no_zone(&mut self, name: &Word) {
        self.error(name.span, format!("there is no local zone \"{}\"", name.text));
    }

    /// Answers all names of a zone with the data of its own name, or with data for some clients.
    fn redirect(
        &mut self,
        making: &mut Making<'_, 'a>,
        zone: &Zone<'_>,
        is_in: String,
        own_data: Option<&Word>,
    ) {
        let of_zone = making.source.records.iter().filter(|record| record.owner == zone.name);
        let data: Vec<(String, String, String, Span)> = match own_data {
            Some(word) => {
                let (rtype, data) = word.text.trim().split_once([' ', '\t']).unwrap_or((&word.text, ""));
                vec![("3600".to_owned(), rtype.to_ascii_uppercase(), data.trim().to_owned(), word.span)]
            }
            None => {
                of_zone.map(|it| (it.ttl.clone(), it.rtype.clone(), it.data.clone(), it.word.span)).collect()
            }
        };
        if let Some((ttl, _, target, at)) = data.iter().find(|(_, rtype, ..)| rtype == "CNAME") {
            let target = bare(target);
            let text = format!("@ {ttl} CNAME {}.", target.trim_end_matches('.')).replace('\\', "\\\\");
            let alone = format!("respond(answer \"{text}\", authoritative)");
            making.rules.push(rule(format!("{is_in} and qtype == CNAME"), &[&alone], *at));
            // The alias is followed, and local zones say nothing of what it leads to.
            // The target `*.x` is the name asked for with x behind it.
            let all = if target.starts_with("*.") { "suffix:., " } else { "" };
            let action = format!("redirect({all}{target}, ttl {ttl}s, authoritative)");
            making.rules.push(rule(is_in, &[&action, &format!("goto({RESOLVE})")], *at));
            self.steps.follows_aliases = true;
            return;
        }
        if !data.is_empty() {
            making.own_sets += 1;
            let set = format!("{}-{}", making.records, making.own_sets);
            let below = if zone.name == "." { ".".to_owned() } else { format!(".{}.", zone.name) };
            for (ttl, rtype, data, at) in &data {
                for owner in [format!("{}.", zone.name.trim_end_matches('.')), format!("*{below}")] {
                    let record = tree::text(format!("{owner} {ttl} IN {rtype} {data}"), *at);
                    self.tree.push(&["records", &set, "text"], record);
                }
            }
            self.leave_out_soa(&set);
            making.rules.push(rule(is_in.clone(), &[&format!("records({set})")], zone.at));
        }
        making.rules.push(rule(is_in, &["respond(noerror, authoritative)"], zone.at));
    }

    /// Returns the condition for names in some zones: a set if there are many.
    fn is_in(&mut self, source: &Source<'_>, group: &Group<'_, '_>) -> String {
        let Group { zones, bulk, height, kind } = group;
        if let ([one], None) = (zones.as_slice(), bulk) {
            return format!("qname in suffix:{}", one.name);
        }
        let set = format!("local{}-{}-{height}", source.suffix, kind.word());
        let has_text = zones.len() >= TEXT_ZONES_MIN || bulk.is_some();
        let line = |zone: &&Zone<'_>| zone.name.len() + "\n".len();
        let mut text = String::with_capacity(if has_text { zones.iter().map(line).sum() } else { 0 });
        for zone in zones {
            // Of a text, a mistake has no place in the file.
            if has_text && is_plain(&zone.name) {
                text.extend([&zone.name, "\n"]);
            } else {
                let item = tree::text(format!("suffix:{}", zone.name), zone.at);
                self.tree.push(&["sets", &set, "names"], item);
            }
        }
        let first = (!text.is_empty()).then(|| text.into());
        let others = bulk.iter().flat_map(|bulk| bulk.names.iter().cloned());
        let pieces: Vec<Arc<str>> = first.into_iter().chain(others).collect();
        // The set is there even if nobody wants its names.
        if !pieces.is_empty() || bulk.is_some() {
            let at = group.at().unwrap_or(self.tree.whole());
            self.set(&["sets", &set, "text"], tree::long_text(pieces, at));
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

/// Answers names of zones that are built in, and data in these, before the zones above them.
fn built_in_first(making: &mut Making<'_, '_>, group: &Group<'_, '_>) {
    let source = making.source;
    let Some(condition) = source.built_in.condition(&group.zones) else { return };
    let Some(at) = group.at() else { return };
    let data = making.built_in.as_ref().map(|set| format!("records({set})"));
    let actions: Vec<&str> = data.iter().map(String::as_str).chain(["local"]).collect();
    making.rules.push(rule(condition, &actions, at));
}

fn tag_of_any(clients: &Clients<'_>, tags: &[&str]) -> bool {
    clients.tag_among(tags).is_some()
}

/// Returns a rule.
pub(super) fn rule(condition: String, actions: &[&str], at: Span) -> Node {
    let actions = actions.iter().map(|action| tree::text(*action, at)).collect();
    tree::map(vec![("if", tree::text(condition, at)), ("do", tree::list(actions))], at)
}
