//! Zones whose names are found in ways of their own: stub and forward zones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use diagnostic::{Problem, Span};

use super::access::prefix;
use super::{Lowering, RESOLVER};
use crate::keywords::Section;
use crate::names::{bare, is_below};
use crate::read::{Block, Word};
use crate::tree;

/// The port of DNS.
const PORT: u16 = 53;
/// The port of DNS over TLS.
const TLS_PORT: u16 = 853;

impl Lowering<'_> {
    pub(super) fn zones(&mut self) {
        let mut last: BTreeMap<String, &Block> = BTreeMap::new();
        let mut fallbacks: BTreeMap<String, &Block> = BTreeMap::new();
        for section in [Section::StubZone, Section::ForwardZone] {
            for block in self.blocks(section) {
                let Some(name) = block.last("name") else {
                    self.problems
                        .push(Problem::error(block.at, "this zone has no name").expected("\"name:\""));
                    continue;
                };
                // Of several zones with one name, the last one counts.
                if let Some(other) = last.insert(bare(&name.text), block) {
                    if other.section != section && block.flag("forward-first").0 {
                        fallbacks.insert(bare(&name.text), other);
                        continue;
                    }
                    let message = format!("the zone \"{}\" is there twice: the last one counts", name.text);
                    self.problems.push(Problem::warning(other.at, message));
                }
            }
        }
        for (zone, block) in &last {
            match block.section {
                Section::StubZone
                    if ["stub-tls-upstream", "stub-ssl-upstream"].iter().any(|key| block.flag(key).0) =>
                {
                    self.stub_over_tls(zone, block);
                }
                Section::StubZone => self.stub(zone, block),
                _ => self.forward(zone, block),
            }
        }
        for (zone, block) in &fallbacks {
            self.stub_servers(zone, block);
        }
        self.unanswered(&last);
        self.uncached(&last);
        // Who is told where the root is does not ask for it there.
        let [a, b] = RESOLVER;
        if let Some(root) = last.get(".").filter(|block| block.section == Section::StubZone) {
            self.set(&[a, b, "priming"], tree::flag(false, root.at));
        }
    }

    fn stub(&mut self, zone: &str, block: &Block) {
        let [a, b] = RESOLVER;
        self.stub_servers(zone, block);
        if !self.tree.has(&[a, b, "zones", zone, "stub"]) {
            return;
        }
        let (primes, at) = block.flag("stub-prime");
        // The servers of a stub zone for the root are its hints there, unless they are at other
        // ports than those that the root's own are at.
        let has_ports = block.all("stub-addr").any(|it| it.word(0).text.contains('@'));
        if primes || zone == "." && !has_ports {
            self.set(&[a, b, "zones", zone, "prime"], tree::flag(true, at));
        }
        self.terms(zone, block, ("stub-first", "stub-no-cache"));
    }

    /// Has the servers of a stub zone asked over TLS, as a group of upstreams is.
    fn stub_over_tls(&mut self, zone: &str, block: &Block) {
        let group = format!("stub-{}", super::label(zone));
        let servers = self.servers_to_ask(zone, block, ["stub-addr", "stub-host"]);
        if !self.group(&group, servers, "tls://") {
            return;
        }
        self.warn(
            block.at,
            format!("the servers of \"{zone}\" are asked over TLS as forwarders are: they have to answer for all names of the zone themselves"),
        );
        let [a, b] = RESOLVER;
        self.set(&[a, b, "zones", zone, "forward"], tree::text(group, block.at));
        self.terms(zone, block, ("stub-first", "stub-no-cache"));
    }

    /// Has the servers of a stub zone asked for it.
    fn stub_servers(&mut self, zone: &str, block: &Block) {
        let [a, b] = RESOLVER;
        if let (true, at) = block.flag("stub-tcp-upstream") {
            self.set(&[a, b, "zones", zone, "tcp-only"], tree::flag(true, at));
        }
        let addresses = block.all("stub-addr").map(|it| it.word(0));
        let hosts = block.all("stub-host").map(|it| it.word(0));
        for word in addresses.chain(hosts) {
            let server = self.server_of_zone(word);
            self.tree.push(&[a, b, "zones", zone, "stub"], server);
        }
    }

    /// Says what happens if the servers of a zone fail, and whether their answers are kept.
    fn terms(&mut self, zone: &str, block: &Block, (first, no_cache): (&'static str, &'static str)) {
        let [a, b] = RESOLVER;
        if let (true, at) = block.flag(first) {
            self.set(&[a, b, "zones", zone, "first"], tree::flag(true, at));
        }
        if let (true, at) = block.flag(no_cache) {
            self.set(&[a, b, "zones", zone, "keep"], tree::flag(false, at));
        }
    }

    fn server_of_zone(&mut self, word: &Word) -> yaml::Node {
        if let Some((host, port, _)) = self.link_local(word) {
            return tree::text(format!("[{host}]:{}", port.unwrap_or_else(|| PORT.to_string())), word.span);
        }
        match word.text.split_once('#') {
            Some((address, _)) => tree::text(address, word.span),
            None => tree::as_written(word),
        }
    }

    /// Returns an address that is one at a network device, with the number of the device, and the
    /// port and name behind it. A device that is not there has the number 0: nothing is sent.
    fn link_local(&mut self, word: &Word) -> Option<(String, Option<String>, Option<String>)> {
        let (place, name) = match word.text.split_once('#') {
            Some((place, name)) => (place, Some(name.to_owned())),
            None => (word.text.as_str(), None),
        };
        let (host, port) = match place.split_once('@') {
            Some((host, port)) => (host, Some(port.to_owned())),
            None => (place, None),
        };
        let (address, device) = host.split_once('%')?;
        let number = device.parse().ok().or_else(|| environment::device_number(device));
        if number.is_none() {
            let message = format!("there is no network device \"{device}\" now: \"{host}\" is not reached");
            self.warn(word.span, message);
        }
        Some((format!("{address}%{}", number.unwrap_or(0_u32)), port, name))
    }

    /// Returns a server as upstreams are written, see [`server_text`].
    fn server_text_of(&mut self, word: &Word, scheme: &str) -> String {
        match self.link_local(word) {
            Some((host, port, name)) => {
                let port = port.map_or_else(String::new, |port| format!("@{port}"));
                let name = name.map_or_else(String::new, |name| format!("#{name}"));
                server_text(&format!("{host}{port}{name}"), scheme)
            }
            None => server_text(&word.text, scheme),
        }
    }

    fn forward(&mut self, zone: &str, block: &Block) {
        let group = group_name(zone);
        let is = |name: &'static str| block.flag(name).0;
        let is_tls = is("forward-tls-upstream")
            || is("forward-ssl-upstream")
            || self.flag("tls-upstream").0
            || self.last("ssl-upstream").is_some_and(|word| word.text == "yes");
        let scheme = if is_tls {
            "tls://"
        } else if is("forward-tcp-upstream") || self.flag("tcp-upstream").0 {
            "tcp://"
        } else {
            ""
        };
        let servers = self.servers_to_ask(zone, block, ["forward-addr", "forward-host"]);
        if !self.group(&group, servers, scheme) {
            return;
        }
        let whole = self.tree.whole();
        let (mixes_case, at) = self.flag("use-caps-for-id");
        self.set(&["upstreams", &group, "case-randomisation"], tree::flag(mixes_case, at));
        for keyword in ["caps-exempt", "caps-whitelist"] {
            for statement in self.all(keyword) {
                let name = tree::as_written(statement.word(0));
                self.tree.push(&["upstreams", &group, "exact-case"], name);
            }
        }
        self.silence(&group);
        // Any of them, the quicker ones.
        self.set(&["upstreams", &group, "pick"], tree::text("balanced", whole));
        let [a, b] = RESOLVER;
        self.set(&[a, b, "zones", zone, "forward"], tree::text(group, block.at));
        self.terms(zone, block, ("forward-first", "forward-no-cache"));
    }

    /// Makes a group of servers that are asked in this way; returns whether there are any.
    fn group(&mut self, group: &str, servers: Option<Vec<&Word>>, scheme: &str) -> bool {
        let Some(servers) = servers else { return false };
        for word in servers {
            let server = self.server_text_of(word, scheme);
            let node = self.upstream(server, word.span, scheme == "tls://");
            self.tree.push(&["upstreams", group, "servers"], node);
        }
        true
    }

    /// Returns the servers of a zone that may be asked. If none may, queries for the zone fail,
    /// unless others are asked then; `None` if the zone changes nothing.
    fn servers_to_ask<'b>(
        &mut self,
        zone: &str,
        block: &'b Block,
        keywords: [&'static str; 2],
    ) -> Option<Vec<&'b Word>> {
        let mut all = Vec::new();
        let mut asked = Vec::new();
        for word in keywords.into_iter().flat_map(|keyword| block.all(keyword)).map(|it| it.word(0)) {
            all.push(word);
            match self.never_asked(&word.text) {
                Some(why) => {
                    self.warn(word.span, format!("\"{}\" is never asked: \"{why}\"", word.text));
                }
                None => asked.push(word),
            }
        }
        if all.is_empty() || !asked.is_empty() {
            return (!all.is_empty()).then_some(asked);
        }
        let first = if block.section == Section::StubZone { "stub-first" } else { "forward-first" };
        if block.flag(first).0 {
            return None;
        }
        self.fail_for(zone, block.at);
        Some(all)
    }

    /// Returns which statement keeps a server from being asked, if one does.
    fn never_asked(&self, server: &str) -> Option<String> {
        let address = server.split(['@', '#']).next().and_then(|text| text.parse::<IpAddr>().ok())?;
        if address.is_loopback() && self.flag("do-not-query-localhost").0 {
            return Some("do-not-query-localhost: yes".to_owned());
        }
        let mut named = self.all("do-not-query-address").map(|statement| &statement.word(0).text);
        let named = named.find(|text| prefix(text).is_some_and(|prefix| prefix.contains(address)))?;
        Some(format!("do-not-query-address: {named}"))
    }

    /// Says how long a silent forwarder is waited for, and how often it is asked.
    fn silence(&mut self, group: &str) {
        let of_group = |key: &'static str| ["upstreams", group, "patience", key];
        let (attempts, attempts_at) = self.bounded("outbound-msg-retry", 1, 8);
        let (unknown, unknown_at) = self.bounded("unknown-server-time-limit", 1, 60_000);
        // Each time it doubles there, up to minutes.
        let longest = (unknown << (attempts - 1)).min(60_000);
        let waits = (0..attempts).map(|doublings| (unknown << doublings).min(60_000)).sum::<u64>();
        self.set_ms(&of_group("unknown"), (unknown, unknown_at));
        self.set_ms(&of_group("max"), (longest, unknown_at));
        self.set_number(&["upstreams", group, "attempts"], (attempts, attempts_at));
        // What is tried altogether ends at nine tenths of it.
        let timeout = (waits * 10 / 9 + 1000).clamp(5000, 60_000);
        self.set_ms(&["upstreams", group, "timeout"], (timeout, attempts_at));
    }

    /// Has names of zones that have no servers fail, unless others are asked if servers fail.
    fn unanswered(&mut self, last: &BTreeMap<String, &Block>) {
        for (zone, block) in last {
            let (first, servers) = match block.section {
                Section::StubZone => ("stub-first", ["stub-addr", "stub-host"]),
                _ => ("forward-first", ["forward-addr", "forward-host"]),
            };
            if servers.iter().any(|key| block.all(key).next().is_some()) {
                continue;
            }
            if block.flag(first).0 {
                self.warn(block.at, format!("the zone \"{zone}\" has no server: it changes nothing"));
                continue;
            }
            self.warn(block.at, format!("the zone \"{zone}\" has no server: queries for it fail"));
            self.fail_for(zone, block.at);
        }
    }

    /// Has names of a zone fail, but for those of zones below that are found in ways of their own.
    pub(super) fn fail_for(&mut self, zone: &str, at: Span) {
        let sections = [Section::StubZone, Section::ForwardZone, Section::AuthZone];
        let blocks = sections.into_iter().flat_map(|section| self.blocks(section));
        let names = blocks.filter_map(|block| block.last("name")).map(|name| bare(&name.text));
        let below: BTreeSet<String> = names
            .filter(|name| name != zone && is_below(name, zone))
            .map(|name| format!("suffix:{name}"))
            .collect();
        let below: Vec<String> = below.into_iter().collect();
        let parts = [
            (zone != ".").then(|| format!("qname in suffix:{zone}")),
            (!below.is_empty()).then(|| format!("not qname in {}", below.join("|"))),
        ];
        let mut condition = parts.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        if condition.is_empty() {
            // A step without a condition would end all queries, and the steps behind it be
            // mistakes.
            "true".clone_into(&mut condition);
        }
        let rule = vec![("if", tree::text(condition, at)), ("do", tree::text("respond(servfail)", at))];
        self.steps.unanswered.push(tree::map(rule, at));
    }

    /// Has names of zones that are not to be cached go round the cache.
    fn uncached(&mut self, last: &BTreeMap<String, &Block>) {
        for (zone, block) in last {
            let is_stub = block.section == Section::StubZone;
            if !block.flag(if is_stub { "stub-no-cache" } else { "forward-no-cache" }).0 {
                continue;
            }
            let actions = vec![tree::text("recurse", block.at), tree::text("accept", block.at)];
            let condition = match zone.as_str() {
                "." => "true".to_owned(),
                _ => format!("qname in suffix:{zone}"),
            };
            let rule = vec![("if", tree::text(condition, block.at)), ("do", tree::list(actions))];
            self.steps.uncached.push(tree::map(rule, block.at));
        }
    }

    /// Returns a server of a group. Over TLS, one with a name must prove it, one without must have
    /// a certificate of the authorities that are named, if any are.
    fn upstream(&mut self, server: String, at: Span, is_tls: bool) -> yaml::Node {
        if !is_tls {
            return tree::text(server, at);
        }
        let bundle = self.last("tls-cert-bundle").or(self.last("ssl-cert-bundle"));
        let is_system = self.last("tls-system-cert").is_some_and(|word| word.text == "yes");
        let has_name = server.contains('#');
        let mut is_checked = true;
        let mut entries = vec![("address", tree::text(server, at))];
        match bundle.filter(|word| !word.text.is_empty()) {
            Some(word) => entries.push(("roots", self.file(word))),
            None if is_system || has_name => {}
            None => is_checked = false,
        }
        match (has_name, is_checked) {
            (true, _) => {}
            (false, true) => entries.push(("verify", tree::text("chain".to_owned(), at))),
            (false, false) => entries.push(("verify", tree::flag(false, at))),
        }
        if let (false, at) = self.flag("tls-use-sni") {
            entries.push(("sni", tree::flag(false, at)));
        }
        tree::map(entries, at)
    }
}

/// Returns a server as upstreams are written: `tls://192.0.2.1:853#name`.
fn server_text(text: &str, scheme: &str) -> String {
    let (place, name) = text.split_once('#').map_or((text, None), |(place, name)| (place, Some(name)));
    let usual = if scheme == "tls://" { TLS_PORT } else { PORT };
    let (host, port) =
        place.split_once('@').map_or((place, usual.to_string()), |(host, port)| (host, port.to_owned()));
    let host = host.strip_suffix('.').unwrap_or(host);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    match name {
        Some(name) if scheme == "tls://" => format!("{scheme}{host}:{port}#{name}"),
        _ => format!("{scheme}{host}:{port}"),
    }
}

/// Returns the name of the group of servers of a zone.
fn group_name(zone: &str) -> String {
    match zone {
        "." => "root-forward".to_owned(),
        _ => format!("forward-{}", super::label(zone)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_as_upstreams_are() {
        for (theirs, scheme, ours) in [
            ("192.0.2.1", "", "192.0.2.1:53"),
            ("192.0.2.1@5353", "tcp://", "tcp://192.0.2.1:5353"),
            ("2001:db8::1", "", "[2001:db8::1]:53"),
            ("192.0.2.1@853#dns.example", "tls://", "tls://192.0.2.1:853#dns.example"),
            ("192.0.2.1#dns.example", "tls://", "tls://192.0.2.1:853#dns.example"),
            ("dns.example.", "", "dns.example:53"),
        ] {
            assert_eq!(server_text(theirs, scheme), ours);
        }
    }
}
