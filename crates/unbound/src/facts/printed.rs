//! Values of keywords as the other program prints them, when a script asks for one.

use super::{Facts, LISTS};
use crate::keywords::{self, Form, Section, size};
use crate::read::Statement;

/// Sections of which keywords are printed.
const SECTIONS: [Section; 3] = [Section::Server, Section::RemoteControl, Section::Cachedb];
/// Keywords that it cannot print.
const HIDDEN: [&str; 36] = [
    "caps-exempt",
    "client-subnet-always-forward",
    "client-subnet-opcode",
    "control-use-cert",
    "cookie-secret",
    "dlv-anchor",
    "dlv-anchor-file",
    "dns64-ignore-aaaa",
    "dns64-prefix",
    "dns64-synthall",
    "do-nat64",
    "edns-client-string",
    "edns-client-string-opcode",
    "fake-dsa",
    "fake-sha1",
    "infra-cache-lame-size",
    "infra-lame-ttl",
    "ip-address",
    "ipsecmod-allow",
    "ipsecmod-enabled",
    "ipsecmod-hook",
    "ipsecmod-ignore-bogus",
    "ipsecmod-max-ttl",
    "ipsecmod-strict",
    "ipsecmod-whitelist",
    "local-data",
    "local-data-ptr",
    "local-zone",
    "low-rtt",
    "low-rtt-pct",
    "low-rtt-permil",
    "nat64-prefix",
    "outgoing-port-avoid",
    "outgoing-port-permit",
    "response-ip",
    "response-ip-data",
];
/// Several words for one keyword; the first has the default.
const SAME: [&[&str]; 8] = [
    &["tls-upstream", "ssl-upstream"],
    &["tls-service-key", "ssl-service-key"],
    &["tls-service-pem", "ssl-service-pem"],
    &["tls-port", "ssl-port"],
    &["tls-cert-bundle", "ssl-cert-bundle"],
    &["tls-additional-port", "additional-tls-port", "additional-ssl-port", "ssl-additional-port"],
    &["caps-whitelist", "caps-exempt"],
    &["interface", "ip-address"],
];
/// Lists besides those that add up in any case.
const MORE_LISTS: [&str; 3] = ["additional-ssl-port", "additional-tls-port", "trusted-keys-file"];
/// Lists that are printed from the first to the last; others are printed from the last to the
/// first, as they are kept there.
const IN_ORDER: [&str; 5] =
    ["control-interface", "define-tag", "interface", "outgoing-interface", "tls-session-ticket-keys"];
/// Defaults that are none here.
const DEFAULTS: [(&str, &str); 5] = [
    ("ip-dscp", "0"),
    ("outgoing-tcp-mss", "0"),
    ("shm-key", "11777"),
    ("tcp-mss", "0"),
    ("tls-system-cert", "no"),
];
/// How many parts tables have there.
const SLABS: &str = "4";

impl Facts {
    /// Returns the values of a keyword as the other program prints them, one a line: octets as
    /// numbers, tags one by one, lists in its order, and its default if the keyword is not written.
    /// `None`: it prints no such keyword.
    pub fn printed(&self, name: &str) -> Option<Vec<String>> {
        if HIDDEN.contains(&name) {
            return None;
        }
        let find = |section: &Section| {
            let row = keywords::rows(*section).iter().find(|row| row.name == name)?;
            Some((*section, row))
        };
        let (section, row) = SECTIONS.iter().find_map(find)?;
        let same = SAME.iter().find(|names| names.contains(&name)).copied();
        let is_it =
            |it: &&Statement| it.row.name == name || same.is_some_and(|names| names.contains(&it.row.name));
        let statements = self.blocks(section).flat_map(|block| &block.statements).filter(is_it);
        let words = |it: &Statement| it.words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ");
        let mut values: Vec<String> = statements.map(words).collect();
        let is_list = row.form.words() > 1 || LISTS.contains(&name) || MORE_LISTS.contains(&name);
        if !is_list {
            let main = same.and_then(|names| names.first()).unwrap_or(&name);
            let value = values.pop().unwrap_or_else(|| default(section, main));
            return Some(vec![match row.form {
                Form::Size => size(&value).map_or(value, |octets| octets.to_string()),
                _ => value,
            }]);
        }
        if name == "define-tag" {
            values = values.iter().flat_map(|it| it.split_whitespace()).map(str::to_owned).collect();
        }
        if !IN_ORDER.contains(&name) {
            values.reverse();
        }
        Some(values)
    }
}

fn default(section: Section, name: &str) -> String {
    let other = DEFAULTS.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
    let row = || keywords::rows(section).iter().find(|row| row.name == name).map_or("", |row| row.default);
    let slabs = name.ends_with("-slabs").then_some(SLABS);
    other.or(slabs).unwrap_or_else(row).to_owned()
}
