//! Knot's configuration.

mod geo;
mod modules;
mod policies;
mod text;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use diagnostic::{At, FileId};

use super::fields::{Entry, Fields, Known};
use super::made::{self, Made, Seen, ZoneMade, is_new, seconds, zone_name};
use super::{Files, Peer, PeerTls, Who, prefixes};

use super::super::write::Out;

use self::text::Section;

/// Where Knot keeps zone files unless it is told otherwise.
const STORAGE: &str = "/var/lib/knot";

const TUNING: &str = "it tunes Knot's own threads and sockets";
const KEPT: &str = "what is kept is in \"server.state-directory\"";

const SERVER: Known = Known {
    used: &[
        "identity",
        "version",
        "nsid",
        "user",
        "udp-workers",
        "tcp-idle-timeout",
        "tcp-max-clients",
        "udp-max-payload",
        "udp-max-payload-ipv4",
        "udp-max-payload-ipv6",
        "answer-rotation",
        "automatic-acl",
        "proxy-allowlist",
        "cert-file",
        "key-file",
        "ca-file",
        "listen",
        "listen-tls",
        "listen-quic",
    ],
    left_out: &[
        ("rundir", KEPT),
        ("pidfile", "the service manager knows the process"),
        ("dbus-event", "messages are in the log"),
        ("dbus-init-delay", "messages are in the log"),
        ("tcp-workers", "each worker does everything for its queries"),
        ("background-workers", TUNING),
        ("async-start", "a zone that is not loaded yet gets SERVFAIL here, too"),
        ("tcp-io-timeout", TUNING),
        ("tcp-remote-io-timeout", TUNING),
        ("tcp-fastopen", TUNING),
        ("tcp-reuseport", "workers have sockets of their own here"),
        ("socket-affinity", TUNING),
        ("quic-max-clients", "\"limits.tcp\" is for all connections"),
        ("quic-outbuf-max-size", TUNING),
        ("quic-idle-close-timeout", TUNING),
        ("remote-pool-limit", TUNING),
        ("remote-pool-timeout", TUNING),
        ("remote-retry-delay", TUNING),
        ("edns-client-subnet", "\"choose\" looks at it always"),
    ],
    refused: &[],
};

const KEY: Known = Known { used: &["id", "algorithm", "secret"], left_out: &[], refused: &[] };

const REMOTE: Known = Known {
    used: &["id", "address", "key", "tls", "cert-key", "cert-hostname", "automatic-acl"],
    left_out: &[
        (
            "block-notify-after-transfer",
            "a secondary that has just transferred from here is told all the same",
        ),
        ("no-edns", "a server that does not know EDNS is asked again without"),
        ("via", "the kernel chooses the address"),
    ],
    refused: &[("quic", "transfers go over TCP and TLS")],
};

const ACL: Known = Known {
    used: &[
        "id",
        "address",
        "key",
        "remote",
        "action",
        "deny",
        "protocol",
        "update-type",
        "update-owner",
        "update-owner-match",
        "update-owner-name",
        "cert-key",
        "cert-hostname",
    ],
    left_out: &[],
    refused: &[],
};

const LIMITED: &str = "the SOA's times count";

/// Settings of zones and of templates.
const ZONE: Known = Known {
    used: &[
        "id",
        "domain",
        "template",
        "storage",
        "file",
        "master",
        "notify",
        "acl",
        "semantic-checks",
        "journal-max-usage",
        "journal-content",
        "zonefile-load",
        "zonefile-sync",
        "zone-max-size",
        "dnssec-signing",
        "dnssec-policy",
        "zonemd-generate",
        "serial-policy",
        "catalog-role",
        "catalog-template",
        "catalog-zone",
        "catalog-group",
        "module",
        "global-module",
        "ddns-master",
        "ds-push",
        "provide-ixfr",
        "dnssec-validation",
        "zonemd-verify",
    ],
    left_out: &[
        ("journal-max-depth", "\"journal-size\" bounds the history"),
        ("ixfr-benevolent", "if differences do not fit, the whole zone is asked for"),
        ("ixfr-by-one", "every step is kept"),
        ("ixfr-from-axfr", "the difference to the version before is worked out always"),
        ("adjust-threads", TUNING),
        ("notify-delay", "secondaries are told at once"),
        ("refresh-min-interval", LIMITED),
        ("refresh-max-interval", LIMITED),
        ("retry-min-interval", LIMITED),
        ("retry-max-interval", LIMITED),
        ("expire-min-interval", LIMITED),
        ("expire-max-interval", LIMITED),
        ("zonefile-skip", "zone files are never written"),
        ("master-pin-tolerance", "primaries are asked in their order"),
        (
            "default-ttl",
            "a record without a TTL has that of $TTL, of the record before it, or the SOA's MINIMUM",
        ),
    ],
    refused: &[
        ("serial-modulo", "serials grow by one, by time or by date"),
        ("reverse-generate", "\"make\" makes names of addresses by rule"),
        ("include-from", "a zone has one file, which may say $INCLUDE"),
        ("external-validation", "versions are not shown to other programs"),
        ("expire-timer", "the SOA's times count"),
    ],
};

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

    /// Returns how listeners ask clients for certificates, if there are any by which other servers are known.
    fn asks(&mut self, server: &Fields<'_>) -> Option<&'static str> {
        let authorities = server.one("ca-file").filter(|file| !file.value.is_empty());
        let looked_at: Vec<&[Entry]> = [self.items("acl"), self.items("remote")].concat();
        let has = |key: &str| looked_at.iter().any(|item| Fields(vec![item]).one(key).is_some());
        match (authorities, has("cert-hostname"), has("cert-key")) {
            (Some(file), true, has_pins) => {
                if has_pins {
                    let message = "a certificate that \"cert-key\" names has to be signed by an authority of \"ca-file\", too";
                    self.files.warn(file.span, message);
                }
                let file = self.files.beside(&file.value);
                self.made.tls.put("client-ca", Out::Row(vec![file]));
                self.has_authorities = true;
                Some("optional")
            }
            (_, false, true) | (None, true, true) => Some("any"),
            (_, false, false) | (None, true, false) => None,
        }
    }

    /// Complains of names that nobody would vouch for.
    fn check_names(&mut self, fields: &Fields<'_>) {
        if let Some(name) = fields.one("cert-hostname").filter(|_| !self.has_authorities) {
            let message = "\"cert-hostname\" of a client cannot be carried over without \"ca-file\": nobody is known who vouches for names";
            self.files.wrong(name.span, message);
        }
    }

    fn server(&mut self) {
        let entries: Vec<Entry> = self.items("server").concat();
        SERVER.check("Knot's server", &entries, self.files);
        let fields = Fields(vec![&entries]);
        for (key, ours) in [("identity", "hostname"), ("version", "version"), ("nsid", "identity")] {
            if let Some(text) = fields.one(key) {
                let text = if text.value.is_empty() { "hidden" } else { &text.value };
                self.made.server.put(ours, text);
            }
        }
        if let Some(user) = fields.one("user") {
            let name = user.value.split(':').next().unwrap_or("");
            self.made.server.put("user", name);
        }
        if let Some(workers) = fields.number("udp-workers", self.files) {
            self.made.server.put("workers", workers.value.to_string());
        }
        if let Some(true) = fields.flag("answer-rotation", self.files).map(|flag| flag.value) {
            self.made.server.put("rotate", Out::Flag(true));
        }
        if let Some(flag) = fields.flag("automatic-acl", self.files) {
            self.has_automatic_acl = flag.value;
        }
        if let Some(most) = fields.number("tcp-max-clients", self.files) {
            self.made.tcp.put("connections", most.value.to_string());
        }
        if let Some(idle) = self.time(&fields, "tcp-idle-timeout") {
            self.made.tcp.put("idle-timeout", seconds(idle.value.max(1)));
        }
        let sizes = ["udp-max-payload", "udp-max-payload-ipv4", "udp-max-payload-ipv6"];
        let size = sizes.iter().filter_map(|key| fields.number(key, self.files)).map(|size| size.value).min();
        if let Some(size) = size {
            self.made.edns.put("udp-size", size.clamp(512, 4096).to_string());
        }
        if let (Some(certificate), Some(key)) = (fields.one("cert-file"), fields.one("key-file")) {
            let (certificate, key) = (self.files.beside(&certificate.value), self.files.beside(&key.value));
            self.made.shows(certificate, key);
        }
        let trusted: Vec<String> = fields.all("proxy-allowlist").iter().map(|at| at.value.clone()).collect();
        let asks = self.asks(&fields);
        let kinds: [(&str, &[&str], u16); 3] =
            [("listen", &[], 53), ("listen-tls", &["tls"], 853), ("listen-quic", &["quic"], 853)];
        for (key, transports, port) in kinds {
            for at in fields.all(key) {
                if at.value.starts_with('/') {
                    self.files.wrong(at.span, "a Unix socket is one of \"local-sockets\" here");
                } else if let Some(address) = prefixes::with_port(&at.value, port) {
                    let trusted = if key == "listen" { trusted.as_slice() } else { &[] };
                    match asks.filter(|_| key == "listen-tls") {
                        Some(asks) => self.made.listens_for(&address.to_string(), "tls", asks),
                        None => self.made.listens(&address.to_string(), transports, trusted),
                    }
                } else {
                    self.files.wrong(at.span, format!("\"{}\" is no address to listen at", at.value));
                }
            }
        }
        if self.made.listen.is_empty() {
            self.made.head.push(
                "Knot's file names no addresses: this server listens on all of the machine.".to_owned(),
            );
            self.made.listens("0.0.0.0:53", &[], &[]);
            self.made.listens("[::]:53", &[], &[]);
        }
        for log in self.items("log") {
            let fields = Fields(vec![log]);
            if let Some(level) =
                fields.one("any").or_else(|| fields.one("server")).or_else(|| fields.one("zone"))
            {
                let word = match level.value.as_str() {
                    "critical" | "error" => "error",
                    "warning" | "notice" => "warn",
                    "debug" => "debug",
                    _ => "info",
                };
                // One log has one level here: the first.
                if self.made.log.is_empty() {
                    self.made.log.put("level", word);
                }
            }
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

    /// Returns the servers of a name: a remote, or a group of them.
    fn peers(&mut self, id: &At<String>) -> Vec<Peer> {
        if let Some(group) = self.item("remotes", &id.value) {
            let fields = Fields(vec![group]);
            return fields.all("remote").into_iter().flat_map(|id| self.peers(id)).collect();
        }
        let Some(remote) = self.item("remote", &id.value) else {
            self.files.wrong(id.span, format!("there is no remote \"{}\"", id.value));
            return Vec::new();
        };
        let fields = Fields(vec![remote]);
        let over_tls = fields.flag("tls", self.files).is_some_and(|flag| flag.value);
        let tls = over_tls.then(|| PeerTls {
            name: fields.one("cert-hostname").map(|at| at.value.clone()),
            pins: fields.all("cert-key").iter().map(|at| at.value.clone()).collect(),
            ..PeerTls::default()
        });
        if let Some(tls) = &tls
            && tls.pins.is_empty()
            && tls.name.is_none()
        {
            // Knot then believes any certificate.
            let message = format!("\"{}\" is spoken to over TLS and proves nothing", id.value);
            self.files.wrong(id.span, message + ": say \"cert-key\" or \"cert-hostname\"");
        }
        let key = fields.one("key").map(|key| key.value.clone());
        let port = if over_tls { 853 } else { 53 };
        let mut peers = Vec::new();
        for at in fields.all("address") {
            match prefixes::with_port(&at.value, port) {
                Some(address) => peers.push(Peer { address, key: key.clone(), tls: tls.clone() }),
                None => self.files.wrong(at.span, format!("\"{}\" is no address of a server", at.value)),
            }
        }
        peers
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

    /// Complains of a server that is known by a name which nobody would vouch for.
    fn check_remote(&mut self, id: &At<String>) {
        if let Some(group) = self.item("remotes", &id.value) {
            for id in Fields(vec![group]).all("remote") {
                self.check_remote(id);
            }
        } else if let Some(remote) = self.item("remote", &id.value) {
            let fields = Fields(vec![remote]);
            if fields.flag("tls", self.files).is_some_and(|flag| flag.value) {
                self.check_names(&fields);
            }
        }
    }

    /// Returns who an ACL is about.
    fn who(&mut self, acl: &Fields<'_>) -> Vec<Who> {
        let mut who = Vec::new();
        for id in acl.all("remote") {
            self.check_remote(id);
            who.extend(self.peers(id).iter().map(Who::of_peer));
        }
        if !who.is_empty() {
            return who;
        }
        self.check_names(acl);
        let texts = |key: &str| acl.all(key).iter().map(|at| at.value.clone()).collect::<Vec<_>>();
        let (hosts, pins) = (texts("cert-hostname"), texts("cert-key"));
        let needs_tls = match acl.all("protocol").as_slice() {
            [] => !hosts.is_empty() || !pins.is_empty(),
            all => {
                for other in all.iter().filter(|word| word.value != "tls") {
                    let message = format!(
                        "\"protocol: {}\" cannot be carried over: \"tls\" can be demanded here",
                        other.value
                    );
                    self.files.wrong(other.span, message);
                }
                true
            }
        };
        let mut from = Vec::new();
        for at in acl.all("address") {
            match prefixes::read(&at.value) {
                Some(prefixes) => from.extend(prefixes),
                None => self.files.wrong(at.span, format!("\"{}\" is no address", at.value)),
            }
        }
        let keys = acl.all("key");
        let one = |key: Option<String>| {
            let (from, hosts, pins) = (from.clone(), hosts.clone(), pins.clone());
            Who { from, key, needs_tls, hosts, pins }
        };
        match keys.as_slice() {
            [] => vec![one(None)],
            keys => keys.iter().map(|key| one(Some(key.value.clone()))).collect(),
        }
    }

    /// Says what the ACLs of a zone allow.
    fn rights(&mut self, zone: &Fields<'_>, made: &mut ZoneMade) {
        // What was denied so far, by action.
        let mut denied: BTreeMap<&str, Vec<wire::Prefix>> = BTreeMap::new();
        for id in zone.all("acl") {
            let Some(entries) = self.item("acl", &id.value) else {
                self.files.wrong(id.span, format!("there is no ACL \"{}\"", id.value));
                continue;
            };
            let acl = Fields(vec![entries]);
            let is_denied = acl.flag("deny", self.files).is_some_and(|flag| flag.value);
            let actions = acl.all("action");
            let whos = self.who(&acl);
            if is_denied {
                let mut from: Vec<_> = whos.iter().flat_map(|who| who.from.clone()).collect();
                if whos.iter().any(|who| who.key.is_some() || who.needs_tls) {
                    self.files.wrong(id.span, "an ACL that denies by key or protocol cannot be carried over: nobody may anything unless it is said");
                    continue;
                }
                if from.is_empty() {
                    from = prefixes::everything();
                }
                // Queries are everybody's unless they are named.
                if actions.iter().any(|word| word.value == "query") {
                    denied.entry("query").or_default().extend(from.iter().copied());
                }
                for action in ["transfer", "notify", "update"] {
                    if actions.is_empty() || actions.iter().any(|word| word.value == action) {
                        denied.entry(action).or_default().extend(from.iter().copied());
                    }
                }
                continue;
            }
            for action in actions {
                let without = denied.get(action.value.as_str()).cloned().unwrap_or_default();
                let left: Vec<Who> = whos.iter().filter_map(|who| remaining(who, &without)).collect();
                let texts: Vec<String> = left.iter().map(Who::text).collect();
                match action.value.as_str() {
                    "transfer" => made.transfer.extend(texts),
                    "notify" => made.notify_from.extend(texts),
                    "update" if zone.one("master").is_some() => {
                        if !self.reach(&acl, &made.name).is_empty() {
                            let message = "the primary says which records may be changed: what \"update-owner\" and \"update-type\" say is left out where updates are passed on";
                            self.files.warn(action.span, message);
                        }
                        made.forward_updates.extend(texts);
                    }
                    "update" => {
                        let reach = self.reach(&acl, &made.name);
                        made.update.extend(texts.into_iter().map(|text| text + &reach));
                    }
                    "query" => {
                        let message =
                            "\"action: query\" is left out: everybody may query, with a key or without";
                        self.files.warn(action.span, message);
                    }
                    other => {
                        self.files.wrong(action.span, format!("\"{other}\" is no action that is known here"));
                    }
                }
            }
        }
        if let Some(denied) = denied.get("query") {
            let left = prefixes::subtract(&prefixes::everything(), denied);
            made.allow_query = Some(left.into_iter().map(prefixes::text).collect());
        }
    }

    /// Speaks of updates of a zone that comes from other servers.
    fn passes_on(&mut self, zone: &Fields<'_>, primaries: &[Peer], made: &mut ZoneMade) {
        let Some(to) = zone.one("ddns-master") else { return };
        if to.value.is_empty() {
            made.forward_updates.clear();
            return;
        }
        let to_peers = self.peers(to);
        if primaries.is_empty() || to_peers.iter().any(|peer| !primaries.contains(peer)) {
            let message =
                "\"ddns-master\" cannot be carried over: updates are passed on to the zone's primaries";
            self.files.wrong(to.span, message);
        }
    }

    /// Speaks of what becomes of a zone's file and its journal.
    fn file_and_journal(&mut self, zone: &Fields<'_>, made: &mut ZoneMade) {
        if let Some(word) = zone.one("journal-content").filter(|word| word.value == "none") {
            self.files.warn(word.span, "\"journal-content: none\" is left out: history is kept always, as far as \"journal-size\" goes");
        }
        if let Some(word) = zone.one("zonefile-sync").filter(|word| word.value != "-1") {
            self.files.warn(word.span, "\"zonefile-sync\" is left out: zone files are never written, \"gannet zone print\" prints a zone");
        }
        // What comes from a primary is kept in the state directory alone, whatever Knot does with a file.
        let Some(word) = zone.one("zonefile-load").filter(|_| made.file.is_some()) else { return };
        match word.value.as_str() {
            "none" => self.files.warn(
                word.span,
                "\"zonefile-load: none\" is left out: the zone is read from its file, which Knot does not look at; \"knotc zone-flush\" writes what the journal has",
            ),
            // In Knot the zone becomes what its file says.
            "difference" | "difference-no-serial" if !made.update.is_empty() => {
                made.on_file_change = Some("replace");
                if word.value == "difference" {
                    made.notes.push("Knot takes a changed file only with a newer serial; here any change of its records counts.".to_owned());
                }
            }
            "whole" if !made.update.is_empty() => made.notes.push(
                "Where updates changed the zone, a changed file waits here for \"gannet zone reload\" (on-file-change: refuse).".to_owned(),
            ),
            "difference" | "difference-no-serial" | "whole" => {}
            other => self.files.wrong(word.span, format!("\"zonefile-load\" is no \"{other}\"")),
        }
    }

    /// Says at which names and of which types an ACL lets records be changed.
    fn reach(&mut self, acl: &Fields<'_>, apex: &str) -> String {
        let mut text = String::new();
        let names: Vec<String> = match acl.one("update-owner").map(|word| word.value.as_str()) {
            None | Some("none") => Vec::new(),
            Some("key") => acl.all("key").iter().map(|key| key.value.clone()).collect(),
            Some("zone") => vec![apex.to_owned()],
            Some(_) => acl
                .all("update-owner-name")
                .iter()
                .map(|name| match name.value.strip_suffix('.') {
                    Some(whole) => whole.to_owned(),
                    None if name.value == "@" => apex.to_owned(),
                    None => format!("{}.{apex}", name.value),
                })
                .collect(),
        };
        let word = acl.one("update-owner-match");
        for name in names {
            match word.map_or("sub-or-equal", |word| word.value.as_str()) {
                "equal" => text += &format!(" name {name}"),
                "sub" => text += &format!(" below {name}"),
                "sub-or-equal" => text += &format!(" name {name} below {name}"),
                other => {
                    let span = word.map_or(diagnostic::Span::BUILT_IN, |word| word.span);
                    self.files.wrong(span, format!("\"update-owner-match: {other}\" cannot be carried over"));
                }
            }
        }
        let types: Vec<&str> = acl.all("update-type").iter().map(|at| at.value.as_str()).collect();
        if !types.is_empty() {
            text += &format!(" types {}", types.join(","));
        }
        text
    }

    fn zones(&mut self) {
        let mut seen = Seen::default();
        for entries in self.items("zone") {
            ZONE.check("a zone of Knot's", entries, self.files);
            let own = Fields(vec![entries]);
            let Some(domain) = own.one("domain").cloned() else {
                if let Some(first) = entries.first() {
                    self.files.wrong(first.key.span, "this zone has no \"domain\"");
                }
                continue;
            };
            if let Err(first) = is_new(&mut seen, &domain) {
                let problem = diagnostic::Problem::error(
                    domain.span,
                    format!("zone \"{}\" is there twice", domain.value),
                );
                self.files.problems.push(problem.hint_at("the first time is on ", first, ""));
                continue;
            }
            let template = match own.one("template") {
                Some(id) => {
                    let found = self.item("template", &id.value);
                    if found.is_none() {
                        self.files.wrong(id.span, format!("there is no template \"{}\"", id.value));
                    }
                    found
                }
                None => self.item("template", "default"),
            };
            let mut layers = vec![entries];
            layers.extend(template);
            let mut zone = self.zone(&domain, &Fields(layers));
            zone.template = template
                .map(|_| own.one("template").map_or_else(|| "default".to_owned(), |id| id.value.clone()));
            self.made.zones.push(zone);
        }
    }

    fn zone(&mut self, domain: &At<String>, zone: &Fields<'_>) -> ZoneMade {
        let mut made = ZoneMade { name: zone_name(&domain.value), ..ZoneMade::default() };
        let role = zone.one("catalog-role").map_or("none", |word| word.value.as_str());
        let primaries: Vec<Peer> = zone.all("master").into_iter().flat_map(|id| self.peers(id)).collect();
        made.primaries = made::texts(&primaries);
        match role {
            "interpret" => {
                made.catalog_role = Some("consumer");
                self.members(domain, zone);
            }
            "generate" => made.catalog_role = Some("producer"),
            _ => {}
        }
        if made.primaries.is_empty() && role != "generate" {
            made.file = Some(self.zone_file(zone, &made.name));
        }
        let notify: Vec<Peer> = zone.all("notify").into_iter().flat_map(|id| self.peers(id)).collect();
        made.notify = made::texts(&notify);
        if self.has_automatic_acl {
            for id in zone.all("notify") {
                self.check_remote(id);
            }
            made.transfer.extend(notify.iter().map(|peer| Who::of_peer(peer).text()));
        }
        self.rights(zone, &mut made);
        if let Some(size) = self.size(zone, "journal-max-usage") {
            made.journal_size = Some(size.value.clamp(4 << 10, 1 << 34));
        }
        self.passes_on(zone, &primaries, &mut made);
        self.file_and_journal(zone, &mut made);
        if let Some(flag) = zone.flag("provide-ixfr", self.files).filter(|flag| !flag.value) {
            self.files.warn(
                flag.span,
                "\"provide-ixfr\" is left out: whoever may have the zone may have the differences",
            );
        }
        if let Some(word) =
            zone.one("semantic-checks").filter(|word| !matches!(word.value.as_str(), "on" | "true"))
        {
            let message = format!(
                "\"semantic-checks: {}\" is left out: every zone is checked, and errors keep it from being served",
                word.value
            );
            self.files.warn(word.span, message);
        }
        if let Some(size) = zone.one("zone-max-size") {
            self.files.warn(
                size.span,
                "\"zone-max-size\" is left out: \"transfers.size\" bounds what comes, for all zones",
            );
        }
        for key in ["dnssec-validation", "zonemd-verify"] {
            if let Some(flag) = zone.flag(key, self.files).filter(|flag| flag.value) {
                self.files.wrong(flag.span, format!("\"{key}\" cannot be carried over: what comes from a primary is believed as it is signed by key or TLS"));
            }
        }
        let serial = match zone.one("serial-policy").map_or("increment", |word| word.value.as_str()) {
            word @ ("unixtime" | "dateserial") => Some(word.to_owned()),
            _ => None,
        };
        self.sign(zone, serial.clone(), &mut made);
        if !made.update.is_empty() {
            made.serial = serial;
        }
        if role == "member" {
            made.catalog = zone.one("catalog-zone").map(|name| zone_name(&name.value));
            made.group = zone.one("catalog-group").map(|name| name.value.clone());
        }
        for module in zone.all("module") {
            self.module(module, &mut made);
        }
        made
    }

    /// Speaks of members of a catalog that would not be what they are there.
    fn members(&mut self, catalog: &At<String>, zone: &Fields<'_>) {
        let masters = |fields: &Fields<'_>| -> Vec<String> {
            fields.all("master").iter().map(|id| id.value.clone()).collect()
        };
        let own = masters(zone);
        for id in zone.all("catalog-template") {
            let Some(template) = self.item("template", &id.value) else {
                self.files.wrong(id.span, format!("there is no template \"{}\"", id.value));
                continue;
            };
            let fields = Fields(vec![template]);
            if masters(&fields) != own {
                let message = format!(
                    "members of \"{}\" come from the catalog's own primaries here, not from those of template \"{}\"",
                    catalog.value, id.value
                );
                self.files.wrong(id.span, message);
            }
            let said = |fields: &Fields<'_>, key: &str| -> Vec<String> {
                fields.all(key).iter().map(|at| at.value.clone()).collect()
            };
            let same = |key: &str| said(&fields, key) == said(zone, key);
            if !same("acl") || !same("notify") {
                let message = format!(
                    "whoever may take over the catalog may take over its members: \"acl\" and \"notify\" of template \"{}\" are left out",
                    id.value
                );
                self.files.warn(id.span, message);
            }
            if fields.flag("dnssec-signing", self.files).is_some_and(|flag| flag.value) {
                self.files.wrong(id.span, "members of a catalog are not signed here");
            }
        }
    }

    /// Returns the path of a zone's file.
    fn zone_file(&mut self, zone: &Fields<'_>, name: &str) -> String {
        let storage = zone.one("storage").map_or(STORAGE, |at| at.value.as_str());
        let pattern = zone.one("file").map_or("%s.zone", |at| at.value.as_str());
        let mut file = String::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                file.push(c);
                continue;
            }
            let labels: Vec<&str> = name.split('.').collect();
            match rest.next() {
                Some('s') => file += &if name == "." { "root".to_owned() } else { name.replace('/', "_") },
                Some('c') => {
                    // `%c[0]` or `%c[0-2]`: characters of the name.
                    let (from, to) = bracket(&mut rest).unwrap_or((0, 0));
                    file.extend(name.chars().skip(from).take(to - from + 1));
                }
                Some('l') => {
                    let (at, _) = bracket(&mut rest).unwrap_or((0, 0));
                    // Counted from the root, which is number 0.
                    if let Some(label) = at.checked_sub(1).and_then(|at| labels.iter().rev().nth(at)) {
                        file += label;
                    }
                }
                Some('%') => file.push('%'),
                other => {
                    file.push('%');
                    file.extend(other);
                }
            }
        }
        self.files.beside(&std::path::Path::new(storage).join(file).display().to_string())
    }
}

/// Reads `[n]` or `[n-m]`.
fn bracket(rest: &mut std::str::Chars<'_>) -> Option<(usize, usize)> {
    let text = rest.as_str().strip_prefix('[')?;
    let (inside, after) = text.split_once(']')?;
    let (from, to) = inside.split_once('-').unwrap_or((inside, inside));
    let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
    *rest = after.chars();
    (from <= to).then_some((from, to))
}

/// Returns who is left of those who may when some are denied.
fn remaining(who: &Who, denied: &[wire::Prefix]) -> Option<Who> {
    if denied.is_empty() {
        return Some(who.clone());
    }
    let from = if who.from.is_empty() { prefixes::everything() } else { who.from.clone() };
    let left = prefixes::subtract(&from, denied);
    (!left.is_empty()).then(|| Who { from: left, ..who.clone() })
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
