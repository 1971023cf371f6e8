//! Names that are answered here: local zones and data, what is blocked, and for whom.

use std::collections::BTreeSet;

use crate::write::{Map, Noted, Out};

use super::stores::Object;
use super::{Import, rule};

/// What a blocked name gets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Refused,
    Nxdomain,
    Page,
}

impl Answer {
    /// Returns what an action of the API or of a feed means.
    fn of_action(text: &str) -> Self {
        match text.to_ascii_lowercase().replace('_', "").as_str() {
            "nxdomain" => Self::Nxdomain,
            "blockpage" => Self::Page,
            _ => Self::Refused,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Nxdomain => "nxdomain",
            Self::Page => "page",
        }
    }
}

/// Returns a name without the dot at its end, in lower case.
fn bare(name: &str) -> String {
    let bare = name.trim().trim_end_matches('.').to_ascii_lowercase();
    if bare.is_empty() { ".".to_owned() } else { bare }
}

impl Import<'_> {
    /// Returns what is done with names that are blocked so.
    fn action(&self, answer: Answer) -> String {
        match (answer, self.server.last("block-page-redirect-ip")) {
            (Answer::Refused, _) | (Answer::Page, None) => "block(refused)".to_owned(),
            (Answer::Nxdomain, _) => "block(nxdomain)".to_owned(),
            (Answer::Page, Some(address)) => format!("block({})", address.value),
        }
    }

    /// Adds a set of names with everything below them.
    fn set(&mut self, name: &str, set: Map) {
        let mut sets = match self.sections.take("sets") {
            Some(Noted { value: Out::Map(entries), .. }) => Map::of(entries),
            _ => Map::default(),
        };
        sets.put(name, set);
        self.sections.put("sets", sets);
    }

    /// Sections `split-horizon`: the first whose network has the client counts.
    pub(super) fn split_horizons(&mut self) {
        let parts: Vec<_> =
            self.parts.iter().filter(|part| part.name.value == "split-horizon").cloned().collect();
        for (number, part) in parts.iter().enumerate() {
            let networks: Vec<&str> = part
                .all("subnet")
                .flat_map(|at| at.value.split([' ', ',']))
                .filter(|it| !it.is_empty())
                .collect();
            let data: Vec<String> = part.all("local-data").map(|at| at.value.clone()).collect();
            if networks.is_empty() || data.is_empty() {
                self.files.warn(part.name.span, "this section is left out: it has no network, or no data");
                continue;
            }
            let name = format!("split-{}", number + 1);
            self.records(&name, &data);
            let condition = format!("client in {}", networks.join("|"));
            self.policy.push(rule(condition, &[&format!("records({name})")]));
        }
    }

    fn records(&mut self, name: &str, lines: &[String]) {
        let mut records = match self.sections.take("records") {
            Some(Noted { value: Out::Map(entries), .. }) => Map::of(entries),
            _ => Map::default(),
        };
        let mut text = lines.join("\n");
        text.push('\n');
        let mut map = Map::default();
        map.put("text", Out::Block(text));
        records.put(name, map);
        self.sections.put("records", records);
    }

    /// Local zones and local data, those of the API among them: each owner is a zone of its own.
    pub(super) fn local_zones(&mut self) {
        let mut data: Vec<String> = self.server.all("local-data").map(|at| at.value.clone()).collect();
        for entry in self.store("dns_entries.json", Some("entries")) {
            match record(&entry) {
                Some(line) => data.push(line),
                None => self.files.wrong(entry.at, "this record cannot be read"),
            }
        }
        let owners: BTreeSet<String> =
            data.iter().filter_map(|line| line.split_whitespace().next()).map(bare).collect();
        if !data.is_empty() {
            self.records("local", &data);
            self.policy.push("records(local)".into());
            let exact = owners.iter().map(|owner| format!("exact:{owner}")).collect();
            let mut set = Map::default();
            set.put("names", Out::Row(exact));
            self.set("local-owners", set);
            self.policy.push(rule("qname in local-owners".to_owned(), &["respond(noerror)"]));
        }
        let mut refused: Vec<String> = Vec::new();
        let mut absent: Vec<String> = owners.into_iter().collect();
        let mut paged: Vec<String> = Vec::new();
        for zone in self.server.clone().all("local-zone") {
            let mut words = zone.value.split_whitespace();
            let (name, kind) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let name = bare(name.trim_matches('"'));
            match kind {
                "static" | "redirect" | "always_nxdomain" | "nxdomain" => absent.push(name),
                "block_page" => paged.push(name),
                "refuse" | "inform_deny" => refused.push(name),
                other => {
                    self.files.warn(
                        zone.span,
                        format!(
                            "\"{other}\" is refused, as Runbound does with every type that it does not know"
                        ),
                    );
                    refused.push(name);
                }
            }
        }
        for (what, names, action) in [
            ("local-absent", absent, "respond(nxdomain)".to_owned()),
            ("local-refused", refused, "respond(refused)".to_owned()),
            ("local-paged", paged, self.action(Answer::Page)),
        ] {
            if names.is_empty() {
                continue;
            }
            let names = names.iter().map(|name| format!("suffix:{name}")).collect();
            let mut set = Map::default();
            set.put("names", Out::Row(names));
            self.set(what, set);
            self.policy.push(rule(format!("qname in {what}"), &[&action]));
        }
    }

    /// What the API blocks: single names, and lists from web servers.
    pub(super) fn blocked(&mut self) {
        let mut by_answer: Vec<(Answer, Vec<String>, Vec<Noted>)> = Vec::new();
        let place = |by_answer: &mut Vec<(Answer, Vec<String>, Vec<Noted>)>, answer| {
            by_answer.iter().position(|(known, ..)| *known == answer).unwrap_or_else(|| {
                by_answer.push((answer, Vec::new(), Vec::new()));
                by_answer.len() - 1
            })
        };
        for entry in self.store("blacklist.json", Some("entries")) {
            let Some(domain) = entry.text("domain") else {
                self.files.wrong(entry.at, "this entry has no \"domain\"");
                continue;
            };
            let answer = Answer::of_action(entry.text("action").unwrap_or(""));
            if let Some(schedule) = entry.object("schedule") {
                let Some(hours) = hours(&schedule) else {
                    self.files.wrong(entry.at, "the times of this entry cannot be read");
                    continue;
                };
                let condition =
                    format!("qname in suffix:{} and now in hours(\"{hours}\", \"UTC\")", bare(domain));
                let action = self.action(answer);
                self.policy.push(rule(condition, &[&action]));
                continue;
            }
            let at = place(&mut by_answer, answer);
            by_answer[at].1.push(format!("suffix:{}", bare(domain)));
        }
        for feed in self.store("feeds.json", Some("feeds")) {
            let Some(url) = feed.text("url") else {
                self.files.wrong(feed.at, "this feed has no \"url\"");
                continue;
            };
            if feed.text("enabled") == Some("false") {
                continue;
            }
            let format = match feed.text("format") {
                Some("adblock") => "adguard",
                Some("domains") => "names",
                _ => "hosts",
            };
            let mut list = Map::default();
            list.put("list", format!("{format}:{url}"));
            list.put("refresh", "24h");
            list.put("strict", Out::Flag(false));
            let at = place(&mut by_answer, Answer::of_action(feed.text("action").unwrap_or("")));
            let notes = feed.text("name").map(|name| name.replace(['\n', '\r'], " ")).into_iter().collect();
            by_answer[at].2.push(Noted { notes, value: list.into() });
        }
        for (answer, names, lists) in by_answer {
            let name = format!("blocked-{}", answer.word());
            let mut set = Map::default();
            if !names.is_empty() {
                set.put("names", Out::Row(names));
            }
            if !lists.is_empty() {
                set.put("lists", Out::List(lists));
            }
            self.set(&name, set);
            let action = self.action(answer);
            self.policy.push(rule(format!("qname in {name}"), &[&action]));
        }
    }

    /// Names that are blocked for some networks alone.
    pub(super) fn subnet_policies(&mut self) {
        for policy in self.store("subnet-policies.json", None) {
            let names: Vec<String> =
                policy.list("blacklist_extra").iter().map(|name| format!("suffix:{}", bare(name))).collect();
            let (Some(network), false) = (policy.text("subnet"), names.is_empty()) else { continue };
            let condition = format!("client in {network} and qname in {}", names.join("|"));
            self.policy.push(rule(condition, &["block(refused)"]));
        }
    }
}

/// Returns the times of an entry as a window of ours: days, and from when to when.
fn hours(schedule: &Object) -> Option<String> {
    let (start, end) = (schedule.text("start")?, schedule.text("end")?);
    let days: Vec<String> = schedule
        .list("days")
        .iter()
        .map(|day| day.chars().take(3).collect::<String>().to_ascii_lowercase())
        .collect();
    let days = if days.is_empty() { String::new() } else { format!("{} ", days.join(",")) };
    Some(format!("{days}{start}-{end}"))
}

/// Returns a record of the API as a line.
fn record(entry: &Object) -> Option<String> {
    let name = entry.text("name")?;
    let dotted = if name.ends_with('.') { name.to_owned() } else { format!("{name}.") };
    let (rtype, ttl) = (entry.text("type")?, entry.text("ttl").unwrap_or("3600"));
    let number = |key| entry.text(key).unwrap_or("0");
    let host = |text: &str| if text.ends_with('.') { text.to_owned() } else { format!("{text}.") };
    let data = match rtype {
        "A" | "AAAA" => entry.text("value")?.to_owned(),
        "CNAME" | "PTR" | "NS" => host(entry.text("value")?),
        "TXT" => {
            let text = entry.text("value")?;
            if text.starts_with('"') { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\\\"")) }
        }
        "MX" => format!("{} {}", number("priority"), host(entry.text("value")?)),
        "SRV" => {
            let target = host(entry.text("value")?);
            format!("{} {} {} {target}", number("priority"), number("weight"), number("port"))
        }
        "CAA" => format!("{} {} \"{}\"", number("flags"), entry.text("tag")?, entry.text("value")?),
        "NAPTR" => {
            let text = |key| entry.text(key).unwrap_or("");
            let (flags, services, regexp) = (text("flags_naptr"), text("services"), text("regexp"));
            let replacement = host(entry.text("replacement").unwrap_or("."));
            let (order, preference) = (entry.text("order")?, entry.text("preference_naptr")?);
            format!("{order} {preference} \"{flags}\" \"{services}\" \"{regexp}\" {replacement}")
        }
        "SSHFP" => {
            format!("{} {} {}", entry.text("algorithm")?, entry.text("fp_type")?, entry.text("fingerprint")?)
        }
        "TLSA" => {
            let (usage, selector) = (entry.text("cert_usage")?, entry.text("selector")?);
            format!("{usage} {selector} {} {}", entry.text("matching_type")?, entry.text("cert_data")?)
        }
        _ => return None,
    };
    Some(format!("{dotted} {ttl} {rtype} {data}"))
}
