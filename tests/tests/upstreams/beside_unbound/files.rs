//! Files of Unbound, drawn from a seed: local zones of each type with data, tags, views, access
//! control, response-ip, response policy zones, authority zones, stub and forward zones, bounds.
//!
//! What the Unbound beside us does not know yet is left out, and so is what takes time to pass.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use testkit::world::{World, Zone};

use super::Dice;
use super::theirs::Theirs;

/// Top-level domains of the internet, and zones below them.
pub(super) const TLDS: u32 = 3;
pub(super) const ZONES: u32 = 9;

/// Types of local zones that answer every query.
const ANSWERING: [&str; 14] = [
    "refuse",
    "static",
    "static",
    "transparent",
    "typetransparent",
    "redirect",
    "inform",
    "inform_redirect",
    "noview",
    "always_transparent",
    "always_refuse",
    "always_nxdomain",
    "always_nodata",
    "always_null",
];
/// Those that drop queries, which takes time to be heard.
const DROPPING: [&str; 3] = ["deny", "inform_deny", "always_deny"];
/// Those of later versions.
const BLOCKING: [&str; 4] = ["block_a", "block_aaaa", "block_a_wdata", "block_aaaa_wdata"];
/// Zones that are built in.
const BUILT_IN: [&str; 5] = ["localhost", "10.in-addr.arpa", "127.in-addr.arpa", "test", "onion"];
/// Zones that are in no internet.
const OWN_ZONES: [&str; 5] = ["lan.test", "corp.example", "a.lan.test", "10.in-addr.arpa", "localhost"];

/// What all files begin with.
const BEGIN: &str = "server:\n directory: \"@DIRECTORY@\"\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n \
    use-syslog: no\n logfile: \"\"\n interface: 127.0.0.1@@PORT@\n do-ip6: no\n \
    do-not-query-localhost: no\n rrset-roundrobin: no\n ede: yes\n version: \"1\"\n identity: \"me\"\n \
    module-config: \"respip validator iterator\"\n trust-anchor-signaling: no\n";

/// A file and those that it names.
#[derive(Debug)]
pub(super) struct File {
    pub(super) files: Vec<(String, String)>,
    /// Names that it says something about.
    pub(super) names: Vec<String>,
    pub(super) denies_any: bool,
    /// Zones that another server has, for which the file has `@PRIMARY@`.
    pub(super) transferred: Vec<Transferred>,
    /// Names that are asked of a server first that refuses.
    detours: Vec<String>,
}

/// A zone that is transferred.
#[derive(Debug)]
pub(super) struct Transferred {
    pub(super) zone: String,
    pub(super) text: String,
    /// A name that has an address once the zone is there.
    pub(super) marker: String,
}

/// Where the servers are that files are about.
pub(super) struct Around<'w> {
    pub(super) world: &'w World,
    /// The port of all servers of the internet.
    pub(super) port: u16,
    /// The port of a server that refuses all questions.
    pub(super) refusing: u16,
    pub(super) theirs: &'w Theirs,
}

/// A file under way.
struct Draft<'w> {
    dice: Dice,
    world: &'w World,
    theirs: &'w Theirs,
    transferred: Vec<Transferred>,
    detours: Vec<String>,
    names: Vec<String>,
    files: Vec<(String, String)>,
    /// Zones that are asked of forwarders.
    forwarded: Vec<Zone>,
}

impl File {
    /// Draws a file.
    pub(super) fn new(seed: u64, around: &Around<'_>) -> Self {
        let mut draft = Draft::new(seed, around);
        let (leaves, count) = ((0..ZONES).map(Zone::Leaf).collect::<Vec<_>>(), draft.dice.below(3));
        draft.forwarded = draft.dice.some(&leaves, count);
        let mut text = BEGIN.to_owned();
        let has_ipset = around.theirs.has_ipset() && draft.dice.percent(20);
        if has_ipset {
            text = text.replace("\"respip validator", "\"respip ipset validator");
        }
        let denies_any = draft.dice.percent(30);
        draft.bounds(&mut text, denies_any);
        let has_tags = draft.clients(&mut text);
        let zones = draft.dice.below(6);
        draft.local_zones(&mut text, zones, has_tags, true);
        if has_ipset {
            let _ = writeln!(text, " local-zone: \"{}.\" ipset", draft.host());
        }
        draft.addresses(&mut text, has_tags);
        draft.views(&mut text);
        draft.policy_zones(&mut text, has_tags);
        draft.authority_zone(&mut text);
        draft.elsewhere(&mut text, around.port);
        draft.detour(&mut text, around);
        if has_ipset {
            text.push_str("ipset:\n name-v4: four\n name-v6: six\n");
        }
        draft.end(text, denies_any)
    }

    /// Draws a file whose answers are given after they have expired.
    pub(super) fn stale(seed: u64, around: &Around<'_>) -> Self {
        let mut draft = Draft::new(seed, around);
        let mut text = format!("{BEGIN} serve-expired: yes\n");
        for (key, values) in [
            ("serve-expired-client-timeout", &["0", "100"][..]),
            ("serve-expired-reply-ttl", &["30", "5", "700"]),
            ("serve-expired-ttl", &["0", "86400", "200000"]),
            ("serve-expired-ttl-reset", &["no", "yes"]),
            ("ede-serve-expired", &["yes"]),
            ("prefetch", &["no", "yes"]),
            ("cache-max-ttl", &["86400", "1000"]),
            ("minimal-responses", &["yes", "no"]),
        ] {
            let _ = writeln!(text, " {key}: {}", draft.dice.pick(values));
        }
        draft.anchor(&mut text);
        draft.elsewhere(&mut text, around.port);
        draft.end(text, false)
    }

    /// Returns whether this is the TTL of records that have expired.
    pub(super) fn has_stale_ttl(&self, ttl: u32) -> bool {
        let line = format!(" serve-expired-reply-ttl: {ttl}\n");
        self.files.last().is_some_and(|(_, text)| text.contains(&line))
    }

    /// Returns whether this is the TTL that answers are kept for at least.
    pub(super) fn has_cache_min_ttl(&self, ttl: u32) -> bool {
        let line = format!(" cache-min-ttl: {ttl}\n");
        self.files.last().is_some_and(|(_, text)| text.contains(&line))
    }

    /// Returns for how many seconds after its end an answer may be given.
    pub(super) fn stale_seconds_max(&self) -> u64 {
        let line = |(_, text): &(String, String)| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(" serve-expired-ttl: "))?.parse().ok()
        };
        self.files.last().and_then(line).filter(|seconds| *seconds > 0).unwrap_or(u64::MAX)
    }

    /// Returns the files and the zones that are transferred, by name.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        files.chain(self.transferred.iter().map(|it| (it.zone.as_str(), it.text.as_str())))
    }

    /// Returns whether a response policy zone has rules on name servers.
    pub(super) fn has_rules_on_servers(&self) -> bool {
        self.texts().any(|(_, text)| text.contains(".rpz-ns"))
    }

    /// Returns whether a response policy zone has a rule on this address.
    pub(super) fn has_rule_on_address(&self, address: Ipv4Addr) -> bool {
        let is_within = |line: &str| -> Option<bool> {
            let (trigger, _) = line.split_once(".rpz-ip ")?;
            let mut numbers = trigger.split('.').map_while(|number| number.parse::<u32>().ok());
            let bits = numbers.next()?;
            let prefix = numbers.enumerate().map(|(at, octet)| octet << (8 * at)).sum::<u32>();
            Some((prefix ^ address.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0)
        };
        self.texts().flat_map(|(_, text)| text.lines()).any(|line| is_within(line) == Some(true))
    }

    /// Returns whether a response policy zone has a rule on this name, in lower case, and a local
    /// zone redirects it to an alias.
    pub(super) fn redirects_what_a_policy_names(&self, name: &str) -> bool {
        let conf = self.files.last().map_or("", |(_, text)| text.as_str());
        let is_redirected = conf.lines().any(|line| {
            let zone = line.strip_prefix(" local-zone: \"").and_then(|line| line.split_once(".\" "));
            let Some((zone, kind)) = zone else { return false };
            let alias =
                |line: &str| line.starts_with(&format!(" local-data: '{zone}. ")) && line.contains("CNAME ");
            kind.contains("redirect") && is_at_or_below(name, zone) && conf.lines().any(alias)
        });
        let is_of = |line: &str| {
            let owner = line.split(' ').next().unwrap_or_default();
            let below = owner.strip_prefix("*.").is_some_and(|zone| name.ends_with(&format!(".{zone}")));
            owner == name || below
        };
        let mut policies = self.texts().filter(|(file, _)| file.starts_with("rpz"));
        is_redirected && policies.any(|(_, text)| text.lines().any(is_of))
    }

    /// Returns whether two rules of response policy zones are about addresses of name servers.
    pub(super) fn has_two_rules_on_server_addresses(&self) -> bool {
        let lines = self.texts().flat_map(|(_, text)| text.lines());
        lines.filter(|line| line.contains(".rpz-nsip ")).count() > 1
    }

    /// Returns whether some names are asked of a server first that refuses.
    pub(super) fn has_detour(&self) -> bool {
        !self.detours.is_empty()
    }

    /// Returns whether a name, in lower case, is asked of a server first that refuses.
    pub(super) fn is_detour(&self, name: &str) -> bool {
        self.detours.iter().any(|host| is_at_or_below(name, host))
    }

    /// Returns whether a response policy zone is for clients with tags alone.
    pub(super) fn has_tagged_policy(&self) -> bool {
        self.files.iter().any(|(_, text)| text.contains("\n tags: "))
    }

    /// Returns whether a response policy zone has an exception for a client.
    pub(super) fn passes_client(&self, client: u8) -> bool {
        let line = format!("32.{client}.0.0.127.rpz-client-ip 300 CNAME rpz-passthru.");
        self.texts().any(|(_, text)| text.contains(&line))
    }

    /// Returns whether addresses are taken out of answers.
    pub(super) fn filters_addresses(&self) -> bool {
        self.files.last().is_some_and(|(_, text)| text.contains("private-address"))
    }

    /// Returns whether answers with some addresses are denied by `response-ip`.
    pub(super) fn denies_addresses(&self) -> bool {
        let is_denial = |line: &str| line.starts_with(" response-ip: ") && line.ends_with("deny");
        self.files.last().is_some_and(|(_, text)| text.lines().any(is_denial))
    }

    /// Returns whether a view leaves to other zones what it has no zones for.
    pub(super) fn has_view_first(&self) -> bool {
        self.files.last().is_some_and(|(_, text)| text.contains(" view-first: yes"))
    }

    /// Returns whether answers are dropped by their addresses.
    pub(super) fn drops_addresses(&self) -> bool {
        let is_drop = |line: &str| line.contains(".rpz-ip ") && line.ends_with("rpz-drop.");
        self.texts().any(|(_, text)| text.lines().any(is_drop))
    }

    /// Returns whether a response policy zone has aliases.
    pub(super) fn has_policy_alias(&self) -> bool {
        let target = |line: &str| line.split_once(" CNAME ").map_or(0, |(_, target)| target.len());
        let is_alias = |line: &str| target(line) > "*.".len() && !line.contains(" CNAME rpz-");
        self.texts().any(|(name, text)| name.starts_with("rpz") && text.lines().any(is_alias))
    }

    /// Returns whether addresses are rewritten to an alias.
    pub(super) fn has_response_alias(&self) -> bool {
        let is_alias = |line: &str| line.contains(" response-ip-data:") && line.contains("\"CNAME ");
        self.files.iter().any(|(_, text)| text.lines().any(is_alias))
    }

    /// Returns whether this is what a client may, by the last octet of its address.
    pub(super) fn has_right(&self, client: u8, right: &str) -> bool {
        let line = format!(" access-control: 127.0.0.{client}/32 {right}\n");
        self.files.last().is_some_and(|(_, text)| text.contains(&line))
    }
}

/// Takes data out that would be in a zone which is redirected, below its top: they refuse that.
fn without_data_in_redirected(text: &str) -> String {
    let zones: Vec<(&str, bool)> = text
        .lines()
        .filter_map(|line| line.strip_prefix(" local-zone: \"")?.split_once(".\" "))
        .map(|(zone, kind)| (zone, kind.contains("redirect")))
        .collect();
    let is_fine = |line: &&str| {
        let data = line.strip_prefix(" local-data: '").and_then(|data| data.split_once(". "));
        let Some((owner, _)) = data else { return true };
        let around = zones.iter().filter(|(zone, _)| is_at_or_below(owner, zone));
        let closest = around.max_by_key(|(zone, _)| zone.len());
        closest.is_none_or(|(zone, is_redirected)| owner == *zone || !is_redirected)
    };
    let mut kept = String::with_capacity(text.len());
    text.lines().filter(is_fine).for_each(|line| kept.extend([line, "\n"]));
    kept
}

/// Returns whether a name is another one, or below it.
fn is_at_or_below(name: &str, other: &str) -> bool {
    name.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

impl<'w> Draft<'w> {
    fn new(seed: u64, around: &Around<'w>) -> Self {
        Self {
            dice: Dice::new(seed),
            world: around.world,
            theirs: around.theirs,
            transferred: Vec::new(),
            detours: Vec::new(),
            names: Vec::new(),
            files: Vec::new(),
            forwarded: Vec::new(),
        }
    }

    fn end(self, text: String, denies_any: bool) -> File {
        let Self { names, mut files, transferred, detours, .. } = self;
        files.push(("unbound.conf".to_owned(), text));
        File { files, names, denies_any, transferred, detours }
    }

    /// Has answers validated, or not.
    fn anchor(&mut self, text: &mut String) {
        if let Some(anchor) = self.world.anchor().filter(|_| self.dice.percent(50)) {
            let _ = writeln!(text, " trust-anchor: \"{}\"", anchor.trim().replace('\t', " "));
        }
    }

    fn zone(&mut self) -> String {
        self.world.zone_text(self.dice.below(ZONES as usize) as u32)
    }

    fn host(&mut self) -> String {
        let host = *self.dice.pick(&["www", "mail", "api", "alias", "chain", "no", "text"]);
        format!("{host}.{}", self.zone())
    }

    /// Says how long answers are kept, and the like.
    fn bounds(&mut self, text: &mut String, denies_any: bool) {
        self.anchor(text);
        for (line, percent) in [
            (" minimal-responses: no", 25),
            (" cache-max-ttl: 1000", 15),
            (" cache-min-ttl: 400", 15),
            (" cache-max-negative-ttl: 300", 25),
            (" serve-expired: yes", 30),
            (" serve-original-ttl: yes", 5),
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
        let has_cookies = self.theirs.is_since(1, 18) && self.dice.percent(40);
        if has_cookies {
            text.push_str(" answer-cookie: yes\n cookie-secret: 000102030405060708090a0b0c0d0e0f\n");
        }
        for client in [2, 7, 8] {
            let right = *self.dice.pick(&[
                "allow",
                "refuse",
                "refuse_non_local",
                "allow",
                "deny_non_local",
                "deny",
                "allow_setrd",
                "allow_snoop",
                if has_cookies { "allow_cookie" } else { "allow" },
            ]);
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
        let begin = text.len();
        let mut zones: Vec<String> = (0..ZONES).map(|zone| self.world.zone_text(zone)).collect();
        zones.extend([self.host(), "t001".to_owned()]);
        zones.extend(OWN_ZONES.map(str::to_owned));
        for zone in self.dice.some(&zones, count) {
            let kinds = match self.dice.below(100) {
                // Silence takes time to be heard.
                0..4 => &DROPPING[..],
                // Not in views.
                4..20 if is_of_server && self.theirs.is_since(1, 26) => &BLOCKING[..],
                _ => &ANSWERING[..],
            };
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
        let own = text.split_off(begin);
        text.push_str(&without_data_in_redirected(&own));
        if self.dice.percent(20) {
            let zone = *self.dice.pick(&BUILT_IN);
            if !text.contains(&format!("\"{zone}.\"")) {
                let _ = writeln!(text, " local-zone: \"{zone}.\" nodefault");
                self.names.extend(["", "a.", "1.0.0."].map(|label| format!("{label}{zone}")));
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
        let mut target = self.host();
        while target.ends_with(owner) {
            // An alias for itself is none.
            target = self.host();
        }
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
    fn addresses(&mut self, text: &mut String, has_tags: bool) {
        let prefixes = ["198.18.0.0/15", "198.18.0.0/17", "198.19.0.0/16"];
        let count = self.dice.below(3);
        for prefix in self.dice.some(&prefixes, count) {
            let action = *self.dice.pick(&[
                "redirect",
                "always_nxdomain",
                "always_refuse",
                "inform",
                "always_transparent",
                "deny",
                "inform_deny",
            ]);
            self.response(text, prefix, action);
            if has_tags && self.dice.percent(40) {
                let _ = writeln!(text, " response-ip-tag: {prefix} \"blue\"");
            }
        }
    }

    fn response(&mut self, text: &mut String, prefix: &str, action: &str) {
        let _ = writeln!(text, " response-ip: {prefix} {action}");
        if action != "redirect" {
            return;
        }
        if self.dice.percent(70) {
            let _ = writeln!(text, " response-ip-data: {prefix} \"A 192.0.2.55\"");
        } else {
            let target = self.host();
            let _ = writeln!(text, " response-ip-data: {prefix} \"CNAME {target}.\"");
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
        if self.dice.percent(30) {
            text.push_str(" local-data-ptr: \"192.0.2.8 host.lan.test\"\n");
            self.names.push("8.2.0.192.in-addr.arpa".to_owned());
        }
        if self.dice.percent(25) {
            let action = *self.dice.pick(&["redirect", "always_nxdomain", "always_refuse"]);
            self.response(text, "198.18.0.0/16", action);
        }
    }

    fn policy_zones(&mut self, text: &mut String, has_tags: bool) {
        for number in 0..*self.dice.pick(&[0, 0, 1, 1, 2]) {
            let mut zone = format!(
                "$ORIGIN rpz{number}.example.\n@ 300 SOA ns. root. 1 3600 600 86400 60\n@ 300 NS ns.\n"
            );
            let has_override = self.dice.percent(25);
            let has_own_tags = has_tags && self.dice.percent(30);
            let mut owners = Vec::new();
            for _ in 0..self.dice.below(6) + 2 {
                let owner = self.trigger();
                // Unbound 1.17 looks at no override for the former, and at no tags for the latter.
                let is_odd = has_override && owner.contains(".rpz-client-ip")
                    || has_own_tags && owner.contains(".rpz-ns");
                if owners.contains(&owner) || is_odd {
                    continue;
                }
                let target = format!("CNAME {}.", self.host());
                let action = match self.dice.below(12) {
                    0 | 1 => "CNAME .",
                    2 | 3 => "CNAME *.",
                    4 | 5 => "CNAME rpz-passthru.",
                    6 | 7 => "A 192.0.2.77",
                    8 => "TXT new",
                    9 => "CNAME rpz-tcp-only.",
                    10 if !owner.contains("rpz-") => &target,
                    // Silence takes time to be heard.
                    _ if self.dice.percent(80) => "CNAME .",
                    _ => "CNAME rpz-drop.",
                };
                let _ = writeln!(zone, "{owner} 300 {action}");
                if !owner.contains("rpz-") {
                    self.names.push(owner.replace('*', "any"));
                }
                owners.push(owner);
            }
            let _ = write!(text, "rpz:\n name: \"rpz{number}.example.\"\n zonefile: \"rpz{number}.zone\"\n");
            if !has_override && !has_own_tags && self.dice.percent(40) {
                let marker = format!("marker{number}.example");
                let _ = writeln!(zone, "{marker} 300 A 192.0.2.200");
                text.push_str(" primary: @PRIMARY@\n");
                self.transferred.push(Transferred {
                    zone: format!("rpz{number}.example"),
                    text: zone,
                    marker,
                });
            } else {
                self.files.push((format!("rpz{number}.zone"), zone));
            }
            if has_override {
                let action = *self.dice.pick(&["nxdomain", "nodata", "passthru", "disabled"]);
                let _ = writeln!(text, " rpz-action-override: {action}");
            }
            if has_own_tags {
                text.push_str(" tags: \"red\"\n");
            }
        }
    }

    /// Draws what a rule of a response policy zone looks at.
    fn trigger(&mut self) -> String {
        match self.dice.below(12) {
            0 | 1 => format!("*.{}", self.zone()),
            2 | 3 => self.zone(),
            4 => format!("32.{}.0.0.127.rpz-client-ip", self.dice.below(8) + 1),
            5 => (*self.dice.pick(&["15.0.0.18.198.rpz-ip", "17.0.0.18.198.rpz-ip", "16.0.0.19.198.rpz-ip"]))
                .to_owned(),
            6 => {
                let server = *self.dice.pick(&["ns1", "*"]);
                format!("{server}.{}.rpz-nsdname", self.zone())
            }
            7 => {
                let zone = Zone::Leaf(self.dice.below(ZONES as usize) as u32);
                if self.forwarded.contains(&zone) {
                    // Rules on name servers do not look at forwarders.
                    return self.host();
                }
                let servers = self.world.servers(zone);
                let [a, b, c, d] = self.dice.pick(&servers).octets();
                format!("32.{d}.{c}.{b}.{a}.rpz-nsip")
            }
            _ => self.host(),
        }
    }

    fn authority_zone(&mut self, text: &mut String) {
        if self.dice.percent(60) {
            return;
        }
        let mut zone =
            "$ORIGIN auth.example.\n@ 300 SOA ns host 1 3600 600 86400 60\n@ 300 NS ns\nns 300 A 192.0.2.3\n\
             www 300 A 192.0.2.4\n*.w 300 A 192.0.2.5\nal 300 CNAME www\n"
                .to_owned();
        let host = self.host();
        let _ = writeln!(zone, "out 300 CNAME {host}.\ndn 300 DNAME w\nnone 300 CNAME no");
        let downstream = *self.dice.pick(&["yes", "no"]);
        let _ = write!(
            text,
            "auth-zone:\n name: \"auth.example.\"\n zonefile: \"auth.zone\"\n for-downstream: {downstream}\n for-upstream: yes\n"
        );
        let fallback = *self.dice.pick(&["yes", "no"]);
        let _ = writeln!(text, " fallback-enabled: {fallback}");
        if self.dice.percent(50) {
            text.push_str(" primary: @PRIMARY@\n");
            zone.push_str("marker 300 A 192.0.2.201\n");
            let marker = "marker.auth.example".to_owned();
            self.transferred.push(Transferred { zone: "auth.example".to_owned(), text: zone, marker });
        } else {
            self.files.push(("auth.zone".to_owned(), zone));
        }
        let labels = ["", "www.", "al.", "no.", "q.w.", "out.", "x.dn.", "none."];
        self.names.extend(labels.map(|label| format!("{label}auth.example")));
    }

    /// Says who is asked for the zones of the internet: their own servers, or these as forwarders.
    fn elsewhere(&mut self, text: &mut String, port: u16) {
        let tlds = (0..TLDS).map(Zone::Tld);
        let leaves = (0..ZONES).map(Zone::Leaf);
        for zone in std::iter::once(Zone::Root).chain(tlds).chain(leaves) {
            let is_forwarded = self.forwarded.contains(&zone);
            let (section, key) =
                if is_forwarded { ("forward-zone", "forward-addr") } else { ("stub-zone", "stub-addr") };
            let _ = write!(text, "{section}:\n name: \"{}\"\n", self.world.zone_name(zone));
            for address in self.world.servers(zone) {
                let _ = writeln!(text, " {key}: {address}@{port}");
            }
        }
    }

    /// Has a server asked first for some names that refuses to answer.
    fn detour(&mut self, text: &mut String, around: &Around<'_>) {
        for word in ["forward", "stub"] {
            if self.dice.percent(70) {
                continue;
            }
            let host = self.host();
            let port = around.refusing;
            let _ = write!(text, "{word}-zone:\n name: \"{host}.\"\n {word}-addr: 127.0.0.1@{port}\n");
            if self.dice.percent(80) {
                let _ = writeln!(text, " {word}-first: yes");
            }
            self.names.extend([host.clone(), format!("a.{host}")]);
            self.detours.push(host);
        }
    }
}
