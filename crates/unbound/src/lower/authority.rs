//! Zones that are here: response policy zones, and zones with authority.

use diagnostic::{Problem, Span};
use yaml::Node;

use super::local::rule;
use super::policy::{FIND, PolicyZone};
use super::served::{self, ServedZone, Serving};
use super::{Lowering, RESOLVER, clients};
use crate::keywords::Section;
use crate::names::bare;
use crate::read::{Block, Word};
use crate::tree;

/// How answers of response policy zones are written there.
const PLAIN: &str = "authoritative, without-soa";

/// What is done in place of what a response policy zone says.
enum Override {
    None,
    /// It is blocked like this.
    Block(&'static str),
    /// It is an alias for this name.
    Alias(String),
    /// What the zone is about is left alone, by the zones after it as well.
    Pass,
    /// Nothing is done: the log and the statistics say what would be.
    Disabled,
}

/// Marks that a query can have: one for each set that has something of the question, so that the
/// log does not say it again once there is an answer; and as many for the statistics.
const MARKS: usize = 32;
/// Octets of the name of a set.
const SET_NAME_OCTETS_MAX: usize = 64;
/// What labels of the statistics begin with.
const LABEL: &str = "rpz";

impl Lowering<'_> {
    pub(super) fn authority(&mut self) {
        // Zones for everybody that do what they say are one set: of these the first that says
        // something of a query decides.
        let (mut number, mut is_open) = (0, false);
        let mut sets: Vec<(usize, &Block)> = Vec::new();
        // Extended DNS Errors name the set: each zone is one that has its name.
        let (are_told, _) = self.flag("ede");
        for block in self.blocks(Section::Rpz) {
            let is_plain =
                !are_told && block.last("tags").is_none() && block.last("rpz-action-override").is_none();
            number += usize::from(!(is_plain && is_open));
            is_open = is_plain;
            sets.push((number, block));
        }
        for &(number, block) in &sets {
            let logged = sets.iter().filter(|(other, it)| *other == number && it.flag("rpz-log").0);
            let logged: Vec<String> = logged.map(|(_, block)| log_name(block)).collect();
            self.response_policy(number, block, &logged);
        }
        let zones: Vec<&Block> = self.blocks(Section::AuthZone).collect();
        if let Some(first) = zones.first() {
            // Which zones the resolver reads is said at each of them.
            let [a, b] = RESOLVER;
            self.set(&[a, b, "own-zones"], tree::flag(false, first.at));
        }
        let mut served: Vec<ServedZone> = Vec::new();
        for block in zones {
            served.extend(self.zone(block));
        }
        // Local zones and response policy zones say first what they have to say.
        self.steps.zones = served::steps(&served, self.flag("minimal-responses").0);
    }

    /// Adds a response policy zone to a set, and steps for the set if it has none yet: of what the
    /// zone has a rule or an exception for, the zones after it hear nothing. `logged` are the names
    /// under which queries are logged that the set has something of.
    fn response_policy(&mut self, number: usize, block: &Block, logged: &[String]) {
        let Some(name) = block.last("name") else {
            self.problems.push(Problem::error(block.at, "this zone has no name").expected("\"name:\""));
            return;
        };
        let Some(action) = self.override_of(block) else { return };
        if comes_from_nowhere(block) {
            self.warn(block.at, "this response policy zone comes from nowhere: it has no rules");
            return;
        }
        let set = self.policy_set(number, name);
        let (is_downstream, _) = block.flag("for-downstream");
        let (counts, _) = self.flag("extended-statistics");
        if is_downstream || is_transferred(block) {
            // Unless clients may read it, the zone is for this set alone.
            let mut entries = vec![("name", tree::as_written(name))];
            entries.push(match is_downstream {
                true => ("allow-query", tree::list(self.allowed())),
                false => ("for-clients", tree::flag(false, block.at)),
            });
            entries.extend(self.source(block));
            self.tree.push(&["zones"], tree::map(entries, name.span));
        }
        if matches!(action, Override::Disabled) && logged.is_empty() && !counts {
            return;
        }
        let item = if is_transferred(block) {
            tree::map(vec![("zone", tree::as_written(name))], name.span)
        } else {
            let Some(file) = zone_file(block) else { return };
            let Node { value: yaml::Value::Scalar(path), .. } = self.file(file) else { return };
            let list = ("list", tree::text(format!("rpz:{}", path.text), file.span));
            tree::map(vec![list, ("optional", tree::flag(true, file.span))], file.span)
        };
        let is_known = self.tree.has(&["sets", &set, "lists"]);
        self.tree.push(&["sets", &set, "lists"], item);
        if is_known {
            return;
        }
        let mut who = None;
        if let Some(tags) = block.last("tags") {
            let wanted: Vec<&str> = clients::tags(tags).collect();
            who = clients::condition(&self.clients(), |it| it.tag_among(&wanted).is_some());
            if who.is_none() {
                return;
            }
        }
        let is_listed = who.iter().cloned().chain([format!("listed in {set}")]);
        let is_listed = is_listed.collect::<Vec<_>>().join(" and ");
        let blocks = |how: &str| {
            // Rules on addresses come after those of "response-ip", and these after all others.
            let counted = if counts { format!(", count {LABEL}") } else { String::new() };
            ["", ", without-addresses", ""].map(|which| {
                let action = format!("blocklist({set}, {how}{PLAIN}{which}{counted})");
                Some(match &who {
                    None => tree::text(action, block.at),
                    Some(who) => rule(who.clone(), &[&action], block.at),
                })
            })
        };
        // Once for each query: of the question, or else of the answer.
        let once = |action: &str, mark: usize| {
            let first = rule(is_listed.clone(), &[&format!("mark({mark})"), action], block.at);
            let later = rule(format!("not mark({mark}) and {is_listed}"), &[action], block.at);
            [Some(first), None, Some(later)]
        };
        // What a zone leaves alone is logged, too.
        let line = format!("query-lines(zone \"rpz: applied [{}]\")", logged.join(" "));
        let mark = number % MARKS;
        let lines = if logged.is_empty() { [None, None, None] } else { once(&line, mark) };
        let left_alone = match action {
            Override::None | Override::Pass if counts => {
                once(&format!("label({LABEL}-passthru)"), MARKS + mark)
            }
            Override::Disabled if counts => once(&format!("label({LABEL}-disabled)"), MARKS + mark),
            _ => [None, None, None],
        };
        let passed = || Some(rule(is_listed.clone(), &["return"], block.at));
        self.steps.response_policy.push(match action {
            Override::None => PolicyZone { lines, steps: blocks(""), left_alone, passed: passed() },
            Override::Block(how) => {
                let steps = blocks(&format!("{how}, override, "));
                PolicyZone { lines, steps, left_alone, passed: None }
            }
            Override::Alias(target) => {
                let alias = format!("redirect({target}, authoritative)");
                let counted = format!("label({LABEL}-cname-override)");
                let counted: &[&str] = if counts { &[&counted] } else { &[] };
                // What the alias leads to is found, and nothing more is done about it. An answer
                // that changes what servers said has no authority.
                let again = ["forget", &format!("redirect({target})"), &format!("ask({FIND})"), "accept"];
                let before = rule(is_listed.clone(), &[counted, &[&alias]].concat(), block.at);
                let after = rule(is_listed.clone(), &[counted, &again].concat(), block.at);
                PolicyZone { lines, steps: [Some(before), None, Some(after)], left_alone, passed: None }
            }
            Override::Pass => PolicyZone { lines, steps: [None, None, None], left_alone, passed: passed() },
            Override::Disabled => PolicyZone { lines, steps: [None, None, None], left_alone, passed: None },
        });
    }

    /// Returns the name of the set of a response policy zone: the zone's own if errors tell it to
    /// clients.
    fn policy_set(&self, number: usize, zone: &Word) -> String {
        let named = format!("rpz-{}", super::label(&bare(&zone.text)));
        let is_free = named.len() <= SET_NAME_OCTETS_MAX && !self.tree.has(&["sets", &named]);
        if self.flag("ede").0 && is_free { named } else { format!("rpz-{number}") }
    }

    /// Returns what is done in place of what a zone says; `None` if that makes no sense.
    fn override_of(&mut self, block: &Block) -> Option<Override> {
        let Some(word) = block.last("rpz-action-override") else { return Some(Override::None) };
        let action = match word.text.as_str() {
            "nxdomain" => Override::Block("nxdomain"),
            "nodata" => Override::Block("nodata"),
            "drop" => Override::Block("drop"),
            "passthru" => Override::Pass,
            "disabled" => Override::Disabled,
            "cname" => match block.last("rpz-cname-override") {
                Some(target) => Override::Alias(bare(&target.text)),
                None => {
                    self.error(word.span, "\"cname\" needs \"rpz-cname-override:\"");
                    return None;
                }
            },
            other => {
                let problem = Problem::error(word.span, format!("\"{other}\" is no action"));
                self.problems.push(problem.expected("nxdomain, nodata, passthru, drop, disabled or cname"));
                return None;
            }
        };
        Some(action)
    }

    /// Adds a zone with authority; returns what it is to clients, if it has a name.
    fn zone(&mut self, block: &Block) -> Option<ServedZone> {
        let Some(name) = block.last("name") else {
            self.problems.push(Problem::error(block.at, "this zone has no name").expected("\"name:\""));
            return None;
        };
        let (is_downstream, downstream_at) = block.flag("for-downstream");
        let (is_upstream, upstream_at) = block.flag("for-upstream");
        let serving = match (is_downstream, block.flag("fallback-enabled").0) {
            (true, false) => Serving::Answers,
            (true, true) => Serving::Falls,
            (false, _) => Serving::Passes,
        };
        let served = ServedZone { name: bare(&name.text), serving, at: block.at };
        if !is_downstream && !is_upstream {
            self.warn(downstream_at, "nobody is answered from this zone, and the resolver does not read it");
            return Some(served);
        }
        if comes_from_nowhere(block) {
            self.zone_from_nowhere(name, block);
            return None;
        }
        if is_upstream {
            self.read_by_resolver(name, block, upstream_at);
        }
        let mut entries = vec![("name", tree::as_written(name))];
        if is_downstream {
            entries.push(("allow-query", tree::list(self.allowed())));
        } else {
            entries.push(("for-clients", tree::flag(false, downstream_at)));
        }
        entries.extend(self.source(block));
        entries.extend(self.digest(block).map(|rule| ("zonemd", rule)));
        let item = tree::map(entries, name.span);
        self.tree.push(&["zones"], item);
        Some(served)
    }

    /// Has names of a zone that comes from nowhere fail, unless others are asked then.
    fn zone_from_nowhere(&mut self, name: &Word, block: &Block) {
        let zone = bare(&name.text);
        let falls_back = block.flag("fallback-enabled").0;
        let outcome = if falls_back { "it changes nothing" } else { "queries for it fail" };
        self.warn(block.at, format!("the zone \"{zone}\" comes from nowhere: {outcome}"));
        if !falls_back {
            self.fail_for(&zone, block.at);
        }
    }

    /// Returns where a zone comes from, and who may say that there is more.
    fn source(&mut self, block: &Block) -> Vec<(&'static str, Node)> {
        let mut entries = Vec::new();
        let file = zone_file(block);
        if is_transferred(block) {
            for (key, names) in [("primaries", &["primary", "master"][..]), ("urls", &["url"])] {
                let all = block.statements.iter().filter(|it| names.contains(&it.row.name));
                let all: Vec<Node> = all.map(|it| tree::as_written(it.word(0))).collect();
                entries.extend((!all.is_empty()).then(|| (key, tree::list(all))));
            }
            entries.extend(file.map(|file| ("write-to", self.file(file))));
            // What is not in a file of the zone's own is fetched anew after a start.
            entries.push(("keep", tree::flag(false, block.at)));
            entries.extend(self.transfer_limits(block));
        } else if let Some(file) = file {
            entries.push(("file", self.file(file)));
        }
        let notified: Vec<Node> = block.all("allow-notify").map(|it| tree::as_written(it.word(0))).collect();
        if !notified.is_empty() {
            entries.push(("notify-from", tree::list(notified)));
        }
        entries
    }

    /// Returns what one transfer of a zone may cost; zero there: any number.
    fn transfer_limits(&mut self, block: &Block) -> Vec<(&'static str, Node)> {
        let mut entries = Vec::new();
        let limits = [
            ("max-transfer-size", "transfer-size", 1 << 10, 1_u64 << 40, "B"),
            ("max-transfer-time", "transfer-time", 1000, 7 * 86_400_000, "ms"),
        ];
        for (keyword, ours, min, max, unit) in limits {
            let Some(word) = block.last(keyword) else { continue };
            let number = crate::keywords::size(&word.text).unwrap_or(0);
            if number == 0 {
                continue;
            }
            let bounded = number.clamp(min, max);
            if bounded != number {
                let message = format!("\"{keyword}\" is {bounded} here, not {number}");
                let problem = Problem::warning(word.span, message);
                self.problems.push(problem.expected(format!("{min} to {max}")));
            }
            entries.push((ours, tree::text(format!("{bounded}{unit}"), word.span)));
        }
        entries
    }

    /// Has the resolver read a zone, unless it is told to ask others for it.
    fn read_by_resolver(&mut self, name: &Word, block: &Block, at: Span) {
        let [a, b] = RESOLVER;
        let zone = bare(&name.text);
        let path = [a, b, "zones", &*zone];
        if self.tree.has(&path) {
            self.warn(
                at,
                format!("the zone \"{zone}\" is a stub or forward zone, too: that counts for the resolver"),
            );
            return;
        }
        let path = |key| [a, b, "zones", &*zone, key];
        self.set(&path("own"), tree::flag(true, at));
        if let (true, at) = block.flag("fallback-enabled") {
            self.set(&path("first"), tree::flag(true, at));
        }
    }

    /// Returns what becomes of versions of a zone by their digest, if somebody looks at it.
    fn digest(&self, block: &Block) -> Option<Node> {
        let (is_checked, at) = block.flag("zonemd-check");
        let (is_permissive, permissive_at) = self.flag("zonemd-permissive-mode");
        let (is_required, required_at) = block.flag("zonemd-reject-absence");
        match (is_checked, is_permissive, is_required) {
            (false, ..) => None,
            (true, true, _) => Some(tree::text("log", permissive_at)),
            (true, false, true) => Some(tree::text("require", required_at)),
            (true, false, false) => Some(tree::text("verify", at)),
        }
    }

    /// Returns who may ask: zones have a list of their own.
    fn allowed(&self) -> Vec<Node> {
        self.tree.items(&["allow"])
    }
}

/// Returns what a response policy zone is called in the log.
fn log_name(block: &Block) -> String {
    let name = block.last("rpz-log-name").or_else(|| block.last("name"));
    let text = name.map_or("", |name| &name.text);
    text.replace(|c: char| c.is_control() || matches!(c, '"' | '\\' | '{' | '}'), "?")
}

/// Returns the file of a zone, if it has one.
fn zone_file(block: &Block) -> Option<&Word> {
    block.last("zonefile").filter(|file| !file.text.is_empty())
}

/// Returns whether a zone has neither a file nor a server.
fn comes_from_nowhere(block: &Block) -> bool {
    zone_file(block).is_none() && !is_transferred(block)
}

/// Returns whether a zone comes from other servers.
fn is_transferred(block: &Block) -> bool {
    ["primary", "master", "url"].iter().any(|key| block.last(key).is_some())
}
