//! Every keyword: which section has it, what stands behind it, and what becomes of it.

mod sections;
mod server;

/// A section of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Section {
    Server,
    RemoteControl,
    StubZone,
    ForwardZone,
    AuthZone,
    View,
    Python,
    Dynlib,
    Dnscrypt,
    Cachedb,
    Dnstap,
    Ipset,
    Rpz,
}

impl Section {
    /// Returns whether all sections of the kind are one, whose keywords add up.
    pub(crate) const fn is_one(self) -> bool {
        matches!(self, Self::Server | Self::RemoteControl | Self::Cachedb | Self::Dnstap | Self::Dnscrypt)
    }
}

/// All sections, with their names and keywords.
const SECTIONS: [(Section, &str, &[Row]); 13] = [
    (Section::Server, "server", server::ROWS),
    (Section::RemoteControl, "remote-control", sections::REMOTE_CONTROL),
    (Section::StubZone, "stub-zone", sections::STUB_ZONE),
    (Section::ForwardZone, "forward-zone", sections::FORWARD_ZONE),
    (Section::AuthZone, "auth-zone", sections::AUTH_ZONE),
    (Section::View, "view", sections::VIEW),
    (Section::Python, "python", sections::PYTHON),
    (Section::Dynlib, "dynlib", sections::DYNLIB),
    (Section::Dnscrypt, "dnscrypt", sections::DNSCRYPT),
    (Section::Cachedb, "cachedb", sections::CACHEDB),
    (Section::Dnstap, "dnstap", sections::DNSTAP),
    (Section::Ipset, "ipset", sections::IPSET),
    (Section::Rpz, "rpz", sections::RPZ),
];

/// What stands behind a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `yes` or `no`.
    Flag,
    /// A whole number.
    Number,
    /// Octets, perhaps with `k`, `m` or `g`.
    Size,
    /// Any one word.
    Text,
    /// Two words.
    Pair,
    /// Three words.
    Triple,
}

impl Form {
    /// Returns how many words that are.
    pub(crate) const fn words(self) -> usize {
        match self {
            Self::Flag | Self::Number | Self::Size | Self::Text => 1,
            Self::Pair => 2,
            Self::Triple => 3,
        }
    }

    /// Returns what is wrong with a value, as what was expected.
    pub(crate) fn expected(self, text: &str) -> Option<&'static str> {
        match self {
            Self::Flag if !matches!(text, "yes" | "no") => Some("\"yes\" or \"no\""),
            Self::Number if text.parse::<u64>().is_err() => Some("a whole number"),
            Self::Size if size(text).is_none() => Some("octets, such as 4194304, 4096k, 4m or 1g"),
            _ => None,
        }
    }
}

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// Settings of ours.
    Setting,
    /// Nothing, for this reason: nobody misses it.
    Nothing(&'static str),
    /// Settings of ours, but not all that it does there: this is different.
    Partly(&'static str),
    /// What "yes" asks for is done always, for this reason; "no" has no effect.
    Always(&'static str),
    /// Nothing for the server, and nothing is said about it: a program beside it reads it.
    Silent(&'static str),
}

impl Becomes {
    /// Returns whether it becomes settings of ours.
    pub(crate) const fn is_setting(self) -> bool {
        matches!(self, Self::Setting | Self::Partly(_))
    }
}

/// One keyword.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The word, without the colon.
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// What it is if it is not written; empty if it then is not there.
    pub(crate) default: &'static str,
    pub(crate) becomes: Becomes,
}

/// Keywords whose number cannot be zero.
const NOT_ZERO: [&str; 13] = [
    "edns-buffer-size",
    "fast-server-num",
    "https-port",
    "infra-cache-numhosts",
    "iter-scrub-ns",
    "num-queries-per-thread",
    "num-threads",
    "outgoing-range",
    "pad-queries-block-size",
    "pad-responses-block-size",
    "port",
    "ssl-port",
    "tls-port",
];
/// The end of keywords whose number is a power of two.
const SLABS: &str = "-slabs";
/// Octets that `msg-buffer-size` has at least.
const MESSAGE_OCTETS_MIN: u64 = 4096;

impl Row {
    /// Returns what is wrong with a value, as what was expected.
    pub(crate) fn expected(&self, text: &str) -> Option<&'static str> {
        let number = || size(text).unwrap_or(0);
        match self.form.expected(text) {
            None if NOT_ZERO.contains(&self.name) && number() == 0 => Some("a number above 0"),
            None if self.name == "edns-client-string-opcode" && number() > 65_535 => Some("at most 65535"),
            None if self.name == "ip-dscp" && number() > 63 => Some("at most 63"),
            None if self.name.ends_with(SLABS) && !number().is_power_of_two() => Some("a power of two"),
            None if self.name == "msg-buffer-size" && number() < MESSAGE_OCTETS_MIN => Some("4096 or more"),
            found => found,
        }
    }
}

const fn row(name: &'static str, form: Form, default: &'static str, becomes: Becomes) -> Row {
    Row { name, form, default, becomes }
}

/// Keywords of `server:` that can have another value while the server runs: one value, and nothing
/// that only a new start changes.
pub(crate) const RUN_TIME: &[&str] = &[
    "add-holddown",
    "aggressive-nsec",
    "answer-cookie",
    "cache-max-negative-ttl",
    "cache-max-ttl",
    "cache-min-negative-ttl",
    "cache-min-ttl",
    "del-holddown",
    "deny-any",
    "discard-timeout",
    "do-not-query-localhost",
    "edns-buffer-size",
    "ede",
    "extended-statistics",
    "hide-identity",
    "hide-version",
    "identity",
    "ignore-cd-flag",
    "infra-host-ttl",
    "ip-ratelimit",
    "ip-ratelimit-backoff",
    "ip-ratelimit-cookie",
    "ip-ratelimit-factor",
    "keep-missing",
    "log-destaddr",
    "log-local-actions",
    "log-queries",
    "log-replies",
    "log-servfail",
    "max-global-quota",
    "max-query-restarts",
    "max-sent-count",
    "max-udp-size",
    "minimal-responses",
    "nsid",
    "outbound-msg-retry",
    "pad-responses",
    "pad-responses-block-size",
    "prefetch",
    "qname-minimisation",
    "qname-minimisation-strict",
    "ratelimit",
    "ratelimit-backoff",
    "ratelimit-factor",
    "root-key-sentinel",
    "rrset-roundrobin",
    "serve-expired",
    "serve-expired-client-timeout",
    "serve-expired-reply-ttl",
    "serve-expired-ttl",
    "serve-expired-ttl-reset",
    "ssl-upstream",
    "statistics-cumulative",
    "statistics-inhibit-zero",
    "statistics-interval",
    "tls-upstream",
    "trust-anchor-signaling",
    "unknown-server-time-limit",
    "use-caps-for-id",
    "val-bogus-ttl",
    "val-log-level",
    "val-permissive-mode",
    "val-sig-skew-max",
    "val-sig-skew-min",
    "verbosity",
    "version",
    "wait-limit",
    "wait-limit-cookie",
];

/// Returns the section of that name.
pub(crate) fn section(name: &str) -> Option<Section> {
    SECTIONS.iter().find(|(_, known, _)| *known == name).map(|&(section, ..)| section)
}

/// Returns all sections.
#[cfg(test)]
pub(crate) fn all_sections() -> impl Iterator<Item = Section> {
    SECTIONS.iter().map(|&(section, ..)| section)
}

/// Returns all keywords with the names of their sections.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static Row)> {
    SECTIONS.iter().flat_map(|&(_, section, rows)| rows.iter().map(move |row| (section, row)))
}

/// Returns a section's name.
pub(crate) fn section_name(section: Section) -> &'static str {
    SECTIONS.iter().find(|(known, ..)| *known == section).map_or("", |&(_, name, _)| name)
}

/// Returns the keywords of a section.
pub(crate) fn rows(section: Section) -> &'static [Row] {
    SECTIONS.iter().find(|(known, ..)| *known == section).map_or(&[], |&(_, _, rows)| rows)
}

/// Returns the sections that have a keyword.
pub(crate) fn sections_with(name: &str) -> Vec<&'static str> {
    let has = |rows: &[Row]| rows.iter().any(|row| row.name == name);
    SECTIONS.iter().filter(|(_, _, rows)| has(rows)).map(|&(_, name, _)| name).collect()
}

/// Returns the words that begin a line, for who looks for a misspelt one.
pub(crate) fn words(section: Option<Section>) -> impl Iterator<Item = &'static str> {
    let own = section.map_or(&[][..], rows).iter().map(|row| row.name);
    SECTIONS.iter().map(|&(_, name, _)| name).chain(own)
}

/// Reads octets: a number, perhaps with `k`, `m` or `g` (powers of 1024).
pub(crate) fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 10),
        'm' | 'M' => (&text[..text.len() - 1], 20),
        'g' | 'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_keyword_is_there_once_and_its_default_has_its_form() {
        let mut count = 0;
        for (_, name, rows) in SECTIONS {
            let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
            assert_eq!(names.len(), rows.len(), "{name}");
            count += rows.len();
            for row in rows {
                assert!(row.default.is_empty() || row.form.expected(row.default).is_none(), "{row:?}");
            }
        }
        // 374 that its manual documents, 17 of its grammar besides.
        assert_eq!(count, 391);
    }

    #[test]
    fn sizes_have_powers_of_1024() {
        for (text, expect) in [
            ("4m", Some(4 << 20)),
            ("10", Some(10)),
            ("1g", Some(1 << 30)),
            ("2k", Some(2048)),
            ("m", None),
            ("", None),
        ] {
            assert_eq!(size(text), expect, "{text}");
        }
    }
}
