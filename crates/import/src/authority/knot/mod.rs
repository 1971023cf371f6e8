//! Knot's configuration.

mod geo;
mod modules;
mod policies;
mod rights;
mod server;
mod text;
mod zones;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use diagnostic::{At, FileId};

use super::Files;
use super::fields::{Entry, Fields, Known};
use super::made::{self, Made};

use super::super::write::Out;

use self::rights::{ACL, REMOTE};
use self::text::Section;
use self::zones::ZONE;

const TUNING: &str = "it tunes Knot's own threads and sockets";
const KEPT: &str = "what is kept is in \"server.state-directory\"";

const KEY: Known = Known { used: &["id", "algorithm", "secret"], left_out: &[], refused: &[] };

/// A whole configuration under way.
struct Knot<'a, 'f, 's> {
    files: &'a mut Files<'f>,
    made: &'a mut Made,
    sections: &'s [Section],
    /// Signing policies that were written, by what they came from.
    policies: BTreeMap<policies::Variant, String>,
    /// Whether remote servers have rights by being remote servers.
    has_automatic_acl: bool,
    /// Whether there are authorities that vouch for clients.
    has_authorities: bool,
}

pub(super) fn import(files: &mut Files<'_>, made: &mut Made, file: FileId, text: &str) {
    let path = files.sources.file(file).map(|source| source.path.clone()).unwrap_or_default();
    let sections = text::read(files, file, text, &path, 0);
    made.head.push(
        "Zone files are never written here: what changes by updates and transfers is kept in the state directory.".to_owned(),
    );
    let mut knot = Knot {
        files,
        made,
        sections: &sections,
        policies: BTreeMap::new(),
        has_automatic_acl: false,
        has_authorities: false,
    };
    knot.sections();
    knot.server();
    knot.keys();
    knot.unused();
    knot.global_modules();
    knot.zones();
}

impl<'s> Knot<'_, '_, 's> {
    /// Returns the items of all sections of a name.
    fn items(&self, section: &str) -> Vec<&'s [Entry]> {
        let all = self.sections.iter().filter(|found| found.name.value == section);
        all.flat_map(|found| &found.items).map(|item| item.entries.as_slice()).collect()
    }

    /// Returns the item of an identifier.
    fn item(&self, section: &str, id: &str) -> Option<&'s [Entry]> {
        self.items(section).into_iter().find(|entries| {
            entries.first().and_then(|entry| entry.values.first()).is_some_and(|found| found.value == id)
        })
    }

    /// Speaks of sections that mean nothing here.
    fn sections(&mut self) {
        const USED: [&str; 11] = [
            "server",
            "key",
            "remote",
            "remotes",
            "acl",
            "submission",
            "policy",
            "template",
            "zone",
            "keystore",
            "log",
        ];
        for section in self.sections {
            let name = section.name.value.as_str();
            let why = match name {
                _ if USED.contains(&name) || name.starts_with("mod-") => continue,
                "control" => "the control socket is said by \"gannet run --control\"",
                "statistics" => "\"gannet stats\" and \"metrics\" show numbers",
                "database" => KEPT,
                "xdp" => {
                    let message =
                        "\"xdp\" cannot be carried over: interfaces are named in \"xdp.interfaces\" here";
                    self.files.wrong(section.name.span, message);
                    continue;
                }
                "dnskey-sync" => {
                    let message =
                        "\"dnskey-sync\" cannot be carried over: keys of other signers are not taken over";
                    self.files.wrong(section.name.span, message);
                    continue;
                }
                other => {
                    self.files.wrong(
                        section.name.span,
                        format!("Knot has no section \"{other}\" that is known here"),
                    );
                    continue;
                }
            };
            self.files.warn(section.name.span, format!("\"{name}\" is left out: {why}"));
        }
    }

    fn keys(&mut self) {
        for entries in self.items("key") {
            KEY.check("a key of Knot's", entries, self.files);
            let fields = Fields(vec![entries]);
            let (Some(id), Some(secret)) = (fields.one("id"), fields.one("secret")) else {
                if let Some(first) = entries.first() {
                    self.files.wrong(first.key.span, "this key has no secret");
                }
                continue;
            };
            let algorithm = fields.one("algorithm").and_then(|word| {
                let known = made::algorithm(&word.value);
                if known.is_none() {
                    self.files.wrong(word.span, format!("\"{}\" is no algorithm of keys", word.value));
                }
                known
            });
            self.made.key(&id.value, algorithm, &secret.value);
        }
    }

    /// Speaks of what items of sections have that nothing needs.
    fn unused(&mut self) {
        for (section, known, owner) in [
            ("remote", &REMOTE, "a remote of Knot's"),
            ("acl", &ACL, "an ACL of Knot's"),
            ("template", &ZONE, "a template of Knot's"),
        ] {
            for entries in self.items(section) {
                known.check(owner, entries, self.files);
            }
        }
        for entries in self.items("keystore") {
            // Policies say what is in hardware.
            let is_token =
                Fields(vec![entries]).one("backend").is_some_and(|backend| backend.value == "pkcs11");
            if let Some(first) = entries.first().filter(|_| !is_token) {
                let why = "\"gannet zone keys import\" takes keys over from files";
                self.files.warn(first.key.span, format!("\"keystore\" is left out: {why}"));
            }
        }
    }

    /// Returns a time in seconds.
    fn time(&mut self, fields: &Fields<'_>, key: &str) -> Option<At<u64>> {
        let At { value, span } = fields.one(key)?;
        match units(
            value,
            &[
                ("s", 1),
                ("m", 60),
                ("h", 3600),
                ("d", 86400),
                ("w", 604_800),
                ("M", 2_592_000),
                ("y", 31_536_000),
            ],
        ) {
            Some(value) => Some(At { value, span: *span }),
            None => {
                self.files.wrong(*span, format!("\"{value}\" is no time"));
                None
            }
        }
    }

    fn size(&mut self, fields: &Fields<'_>, key: &str) -> Option<At<u64>> {
        let At { value, span } = fields.one(key)?;
        match units(value, &[("B", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)]) {
            Some(value) => Some(At { value, span: *span }),
            None => {
                self.files.wrong(*span, format!("\"{value}\" is no size"));
                None
            }
        }
    }
}

/// Reads a number with a unit behind it, or without one.
fn units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let scale = if unit.is_empty() { 1 } else { units.iter().find(|(word, _)| *word == unit)?.1 };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// Returns addresses as lists of ours have them.
fn row(addresses: impl IntoIterator<Item = SocketAddr>) -> Out {
    let one = |address: SocketAddr| match address.port() {
        53 => address.ip().to_string(),
        _ => address.to_string(),
    };
    Out::Row(addresses.into_iter().map(one).collect())
}
