//! NSD's configuration, and the list of zones that it keeps beside.

mod peers;
mod server;
mod text;
mod zones;

use diagnostic::FileId;

use super::Files;
use super::fields::{Entry, Fields, Known};
use super::made::{self, Made};

use self::text::Item;

const KEY: Known = Known { used: &["name", "algorithm", "secret"], left_out: &[], refused: &[] };

const TLS_AUTH: Known = Known {
    used: &["name", "auth-domain-name", "client-cert", "client-key"],
    left_out: &[],
    refused: &[("client-key-pw", "keys of certificates have no password here")],
};

const LIMITED: &str = "the SOA's times count";

const ZONE: Known = Known {
    used: &[
        "name",
        "zonefile",
        "include-pattern",
        "allow-notify",
        "request-xfr",
        "provide-xfr",
        "notify",
        "ixfr-size",
        "catalog",
        "catalog-member-pattern",
        "catalog-producer-zone",
        "allow-query",
        "allow-axfr-fallback",
        "verify-zone",
        "size-limit-xfr",
    ],
    left_out: &[
        ("zonestats", "\"gannet stats\" shows numbers"),
        ("notify-retry", "five times over UDP"),
        ("outgoing-interface", "the kernel chooses the address"),
        ("store-ixfr", "history is kept always"),
        ("create-ixfr", "the difference to the version before is worked out always"),
        ("ixfr-number", "\"journal-size\" bounds the history"),
        ("max-refresh-time", LIMITED),
        ("min-refresh-time", LIMITED),
        ("max-retry-time", LIMITED),
        ("min-retry-time", LIMITED),
        ("min-expire-time", LIMITED),
        ("multi-master-check", "primaries are asked in their order until one has something new"),
        ("multi-primary-check", "primaries are asked in their order until one has something new"),
        ("rrl-whitelist", "limits are counted by client, not by kind of answer"),
    ],
    refused: &[
        ("verifier", "versions are not shown to other programs"),
        ("verifier-feed-zone", "versions are not shown to other programs"),
        ("verifier-timeout", "versions are not shown to other programs"),
    ],
};

struct Nsd<'a, 'f> {
    files: &'a mut Files<'f>,
    made: &'a mut Made,
    items: Vec<Item>,
}

pub(super) fn import(files: &mut Files<'_>, made: &mut Made, file: FileId, text: &str) {
    let mut items = Vec::new();
    text::read(files, file, text, 0, &mut items);
    made.head.push(
        "Zone files are never written here: what changes by transfers is kept in the state directory."
            .to_owned(),
    );
    let mut nsd = Nsd { files, made, items };
    let server: Vec<Entry> = nsd.of("server").concat();
    nsd.sections();
    nsd.server(&server);
    nsd.keys();
    nsd.zones(&server);
}

impl Nsd<'_, '_> {
    fn of(&self, section: &str) -> Vec<Vec<Entry>> {
        let all = self.items.iter().filter(|item| item.section.value == section);
        all.map(|item| item.entries.clone()).collect()
    }

    fn named(&self, section: &str, name: &str) -> Option<Vec<Entry>> {
        let is_it = |entries: &Vec<Entry>| {
            Fields(vec![entries]).one("name").is_some_and(|found| found.value.eq_ignore_ascii_case(name))
        };
        self.of(section).into_iter().find(is_it)
    }

    fn sections(&mut self) {
        for item in &self.items {
            let why = match item.section.value.as_str() {
                "remote-control" => "the control socket is said by \"gannet run --control\"",
                "dnstap" | "verify" | "xdp" if !item.entries.is_empty() => {
                    let is_off = item.entries.iter().any(|entry| {
                        entry.key.value.ends_with("enable")
                            && entry.values.first().is_some_and(|value| value.value == "no")
                    });
                    if !is_off {
                        let message = format!("\"{}\" cannot be carried over", item.section.value);
                        self.files.wrong(item.section.span, message);
                    }
                    continue;
                }
                _ => continue,
            };
            self.files.warn(item.section.span, format!("\"{}\" is left out: {why}", item.section.value));
        }
        for (section, known, owner) in [
            ("key", &KEY, "a key of NSD's"),
            ("tls-auth", &TLS_AUTH, "NSD's \"tls-auth\""),
            ("pattern", &ZONE, "a pattern of NSD's"),
            ("zone", &ZONE, "a zone of NSD's"),
        ] {
            for entries in self.of(section) {
                known.check(owner, &entries, self.files);
            }
        }
    }

    fn keys(&mut self) {
        for entries in self.of("key") {
            let fields = Fields(vec![&entries]);
            let (Some(name), Some(secret)) = (fields.one("name"), fields.one("secret")) else {
                if let Some(first) = entries.first() {
                    self.files.wrong(first.key.span, "this key has no name or no secret");
                }
                continue;
            };
            let algorithm = fields.one("algorithm").and_then(|word| {
                let known =
                    made::algorithm(&word.value).or_else(|| made::algorithm(&format!("hmac-{}", word.value)));
                if known.is_none() {
                    self.files.wrong(word.span, format!("\"{}\" is no algorithm of keys", word.value));
                }
                known
            });
            self.made.key(&name.value, algorithm, &secret.value);
        }
    }
}
