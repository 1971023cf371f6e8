//! Files of Unbound, drawn from a seed: local zones of each type with data, tags, views, access
//! control, response-ip, response policy zones, authority zones, stub and forward zones, bounds.
//!
//! What is left out is what Unbound 1.17 does not know yet, and what takes time to pass.

use std::fmt::Write as _;

use testkit::world::{World, Zone};

use super::Dice;

/// Top-level domains of the internet, and zones below them.
pub(super) const TLDS: u32 = 3;
pub(super) const ZONES: u32 = 9;

/// Types of local zones.
const KINDS: [&str; 16] = [
    "refuse",
    "static",
    "static",
    "transparent",
    "typetransparent",
    "redirect",
    "inform",
    "inform_redirect",
    "always_transparent",
    "always_refuse",
    "always_nxdomain",
    "always_nodata",
    "always_null",
    "deny",
    "inform_deny",
    "always_deny",
];
/// Those of them that answer every query.
const ANSWERING: usize = 13;
/// Zones that are in no internet.
const OWN_ZONES: [&str; 5] = ["lan.test", "corp.example", "a.lan.test", "10.in-addr.arpa", "localhost"];

/// A file and those that it names.
#[derive(Debug)]
pub(super) struct File {
    pub(super) files: Vec<(String, String)>,
    /// Names that it says something about.
    pub(super) names: Vec<String>,
    pub(super) denies_any: bool,
}

/// A file under way.
struct Draft<'w> {
    dice: Dice,
    world: &'w World,
    names: Vec<String>,
    files: Vec<(String, String)>,
}

impl File {
    /// Draws a file whose servers are at `port`.
    pub(super) fn new(seed: u64, world: &World, port: u16) -> Self {
        let mut draft = Draft { dice: Dice::new(seed), world, names: Vec::new(), files: Vec::new() };
        let mut text = "server:\n directory: \"@DIRECTORY@\"\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n \
            use-syslog: no\n logfile: \"\"\n interface: 127.0.0.1@@PORT@\n do-ip6: no\n \
            do-not-query-localhost: no\n rrset-roundrobin: no\n ede: yes\n version: \"1\"\n identity: \"me\"\n \
            module-config: \"respip validator iterator\"\n trust-anchor-signaling: no\n"
            .to_owned();
        let denies_any = draft.dice.percent(30);
        draft.bounds(&mut text, denies_any);
        let has_tags = draft.clients(&mut text);
        let zones = draft.dice.below(6);
        draft.local_zones(&mut text, zones, has_tags, true);
        draft.addresses(&mut text);
        draft.views(&mut text);
        draft.policy_zones(&mut text, has_tags);
        draft.authority_zone(&mut text);
        draft.elsewhere(&mut text, port);
        let Draft { names, mut files, .. } = draft;
        files.push(("unbound.conf".to_owned(), text));
        Self { files, names, denies_any }
    }
}

impl Draft<'_> {
    fn zone(&mut self) -> String {
        self.world.zone_text(self.dice.below(ZONES as usize) as u32)
    }

    fn host(&mut self) -> String {
        let host = *self.dice.pick(&["www", "mail", "api", "alias", "chain", "no", "text"]);
        format!("{host}.{}", self.zone())
    }

    /// Says how long answers are kept, and the like.
    fn bounds(&mut self, text: &mut String, denies_any: bool) {
        if let Some(anchor) = self.world.anchor().filter(|_| self.dice.percent(50)) {
            let _ = writeln!(text, " trust-anchor: \"{}\"", anchor.trim().replace('\t', " "));
        }
        for (line, percent) in [
            (" minimal-responses: no", 25),
            (" cache-max-ttl: 1000", 15),
            (" cache-min-ttl: 400", 15),
            (" cache-max-negative-ttl: 300", 25),
            (" serve-expired: yes", 30),
            (" private-address: 198.18.0.0/16", 15),
            (" hide-version: yes", 30),
        ] {
            if self.dice.percent(percent) {
                let _ = writeln!(text, "{line}");
            }
        }
        if denies_any {
            text.push_str(" deny-any: yes\n");
        }
        if text.contains("private-address") && self.dice.percent(50) {
            let _ = writeln!(text, " private-domain: {}", self.zone());
        }
    }

    /// Says what clients may, and which tags they have; returns whether any has one.
    fn clients(&mut self, text: &mut String) -> bool {
        text.push_str(" access-control: 127.0.0.0/8 allow\n");
        for client in [2, 7, 8] {
            let right =
                *self.dice.pick(&["allow", "refuse", "refuse_non_local", "allow", "deny_non_local", "deny"]);
            if self.dice.percent(if right.starts_with("deny") { 15 } else { 50 }) {
                let _ = writeln!(text, " access-control: 127.0.0.{client}/32 {right}");
            }
        }
        let has_tags = self.dice.percent(50);
        if has_tags {
            text.push_str(
                " define-tag: \"red blue\"\n access-control-tag: 127.0.0.5/32 \"red\"\n \
                 access-control-tag: 127.0.0.6/32 \"blue red\"\n",
            );
            if self.dice.percent(50) {
                let action =
                    *self.dice.pick(&["refuse", "always_nxdomain", "redirect", "static", "always_null"]);
                let _ = writeln!(text, " access-control-tag-action: 127.0.0.6/32 blue {action}");
            }
            if self.dice.percent(50) {
                text.push_str(" access-control-tag-data: 127.0.0.6/32 blue \"A 192.0.2.99\"\n");
            }
        }
        has_tags
    }

    /// Adds local zones with their data: those of `server:`, or of a view.
    fn local_zones(&mut self, text: &mut String, count: usize, has_tags: bool, is_of_server: bool) {
        let mut zones: Vec<String> = (0..ZONES).map(|zone| self.world.zone_text(zone)).collect();
        zones.extend([self.host(), "t001".to_owned()]);
        zones.extend(OWN_ZONES.map(str::to_owned));
        for zone in self.dice.some(&zones, count) {
            // Silence takes time to be heard.
            let kinds = if self.dice.percent(90) { &KINDS[..ANSWERING] } else { &KINDS[..] };
            let kind = *self.dice.pick(kinds);
            let _ = writeln!(text, " local-zone: \"{zone}.\" {kind}");
            self.names.extend(["", "a.", "no.", "www.", "b.a."].map(|label| format!("{label}{zone}")));
            let is_redirected = kind.contains("redirect");
            let owners: &[&str] = if is_redirected { &[""] } else { &["", "a.", "www.", "b.a."] };
            for label in owners {
                if self.dice.percent(if is_redirected { 80 } else { 45 }) {
                    self.data(text, &format!("{label}{zone}"), is_redirected);
                }
            }
            // Those that are built in are there for who has no tag.
            if has_tags && !OWN_ZONES[3..].contains(&zone.as_str()) && self.dice.percent(35) {
                let tags = *self.dice.pick(&["red", "blue", "red blue"]);
                let _ = writeln!(text, " local-zone-tag: \"{zone}.\" \"{tags}\"");
            }
            if is_of_server && self.dice.percent(20) {
                let kind = *self.dice.pick(&["static", "always_refuse", "always_nxdomain", "transparent"]);
                let _ = writeln!(text, " local-zone-override: \"{zone}.\" 127.0.0.3/32 {kind}");
            }
        }
        if is_of_server && self.dice.percent(40) {
            text.push_str(" local-data-ptr: \"192.0.2.7 host.lan.test\"\n");
            self.names.push("7.2.0.192.in-addr.arpa".to_owned());
        }
        if is_of_server && self.dice.percent(40) {
            self.data(text, "lonely.example", false);
            self.names.extend(["lonely.example", "sub.lonely.example"].map(str::to_owned));
        }
    }

    /// Adds a record, or two of one type.
    fn data(&mut self, text: &mut String, owner: &str, may_be_alias: bool) {
        let last = self.dice.below(200) + 1;
        let ttl = *self.dice.pick(&["", "60 ", "3600 IN "]);
        let target = self.host();
        let records = match self.dice.below(8) {
            0 | 1 => vec![format!("A 192.0.2.{last}")],
            2 => vec![format!("A 192.0.2.{last}"), "A 192.0.2.250".to_owned()],
            3 => vec![format!("AAAA 2001:db8:1::{last}")],
            4 => vec![format!("TXT text{last}")],
            5 => vec![format!("MX 10 mail.{owner}.")],
            6 if may_be_alias => vec![format!("CNAME {target}.")],
            _ => vec![format!("PTR www.{owner}.")],
        };
        for record in records {
            let _ = writeln!(text, " local-data: '{owner}. {ttl}{record}'");
        }
    }

    /// Says what becomes of answers with some addresses.
    fn addresses(&mut self, text: &mut String) {
        let prefixes = ["198.18.0.0/15", "198.18.0.0/17", "198.19.0.0/16"];
        let count = self.dice.below(3);
        for prefix in self.dice.some(&prefixes, count) {
            let action = *self.dice.pick(&[
                "redirect",
                "always_nxdomain",
                "always_refuse",
                "inform",
                "always_transparent",
            ]);
            let _ = writeln!(text, " response-ip: {prefix} {action}");
            if action == "redirect" {
                let _ = writeln!(text, " response-ip-data: {prefix} \"A 192.0.2.55\"");
            }
        }
    }

    fn views(&mut self, text: &mut String) {
        if self.dice.percent(60) {
            return;
        }
        text.push_str(" access-control-view: 127.0.0.4/32 \"own\"\nview:\n name: \"own\"\n");
        let count = self.dice.below(4);
        self.local_zones(text, count, false, false);
        if self.dice.percent(50) {
            text.push_str(" view-first: yes\n");
        }
    }

    fn policy_zones(&mut self, text: &mut String, has_tags: bool) {
        for number in 0..*self.dice.pick(&[0, 0, 1, 1, 2]) {
            let mut zone = format!(
                "$ORIGIN rpz{number}.example.\n@ 300 SOA ns. root. 1 3600 600 86400 60\n@ 300 NS ns.\n"
            );
            let mut owners = Vec::new();
            for _ in 0..self.dice.below(6) + 2 {
                let owner = match self.dice.below(4) {
                    0 => format!("*.{}", self.zone()),
                    1 => self.zone(),
                    _ => self.host(),
                };
                if owners.contains(&owner) {
                    continue;
                }
                let action = *self.dice.pick(&[
                    "CNAME .",
                    "CNAME *.",
                    "CNAME rpz-passthru.",
                    "A 192.0.2.77",
                    "TXT new",
                ]);
                let _ = writeln!(zone, "{owner} 300 {action}");
                self.names.push(owner.replace('*', "any"));
                owners.push(owner);
            }
            self.files.push((format!("rpz{number}.zone"), zone));
            let _ = write!(text, "rpz:\n name: \"rpz{number}.example.\"\n zonefile: \"rpz{number}.zone\"\n");
            if self.dice.percent(25) {
                let action = *self.dice.pick(&["nxdomain", "nodata", "passthru", "disabled"]);
                let _ = writeln!(text, " rpz-action-override: {action}");
            }
            if has_tags && self.dice.percent(30) {
                text.push_str(" tags: \"red\"\n");
            }
        }
    }

    fn authority_zone(&mut self, text: &mut String) {
        if self.dice.percent(70) {
            return;
        }
        let zone = "$ORIGIN auth.example.\n@ 300 SOA ns host 1 3600 600 86400 60\n@ 300 NS ns\nns 300 A 192.0.2.3\n\
                    www 300 A 192.0.2.4\n*.w 300 A 192.0.2.5\nal 300 CNAME www\n";
        self.files.push(("auth.zone".to_owned(), zone.to_owned()));
        let downstream = *self.dice.pick(&["yes", "no"]);
        let _ = write!(
            text,
            "auth-zone:\n name: \"auth.example.\"\n zonefile: \"auth.zone\"\n for-downstream: {downstream}\n for-upstream: yes\n"
        );
        self.names.extend(["", "www.", "al.", "no.", "q.w."].map(|label| format!("{label}auth.example")));
    }

    /// Says who is asked for the zones of the internet: their own servers, or these as forwarders.
    fn elsewhere(&mut self, text: &mut String, port: u16) {
        let tlds = (0..TLDS).map(Zone::Tld);
        let leaves: Vec<Zone> = (0..ZONES).map(Zone::Leaf).collect();
        let count = self.dice.below(3);
        let forwarded = self.dice.some(&leaves, count);
        for zone in std::iter::once(Zone::Root).chain(tlds).chain(leaves) {
            let is_forwarded = forwarded.contains(&zone);
            let (section, key) =
                if is_forwarded { ("forward-zone", "forward-addr") } else { ("stub-zone", "stub-addr") };
            let _ = write!(text, "{section}:\n name: \"{}\"\n", self.world.zone_name(zone));
            for address in self.world.servers(zone) {
                let _ = writeln!(text, " {key}: {address}@{port}");
            }
        }
    }
}
