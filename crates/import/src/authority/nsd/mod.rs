//! NSD's configuration, and the list of zones that it keeps beside.

use std::path::Path;

use diagnostic::{At, FileId, Problem, Span};

use super::fields::{Entry, Fields, Known};
use super::made::{self, Made, Seen, ZoneMade, is_new, seconds, zone_name};
use super::{Files, Peer, PeerTls, Who, prefixes};

use super::super::write::Out;

/// Where NSD keeps its list of zones unless it is told otherwise.
const ZONE_LIST: &str = "/var/lib/nsd/zone.list";

const TUNING: &str = "it tunes NSD's own processes and sockets";
const KEPT: &str = "what is kept is in \"server.state-directory\"";
const LOGS: &str = "messages go where the service manager puts them";

const SECTIONS: [&str; 9] =
    ["server", "remote-control", "key", "pattern", "zone", "tls-auth", "verify", "dnstap", "xdp"];

/// Returns a text that is given away, or that nothing is: an empty one says so.
fn shown(text: &At<String>) -> &str {
    if text.value.is_empty() { "hidden" } else { &text.value }
}

const SERVER: Known = Known {
    used: &[
        "ip-address",
        "interface",
        "port",
        "server-count",
        "identity",
        "nsid",
        "version",
        "hide-version",
        "hide-identity",
        "zonesdir",
        "zonelistfile",
        "username",
        "tcp-count",
        "tcp-timeout",
        "ipv4-edns-size",
        "ipv6-edns-size",
        "rrl-ratelimit",
        "rrl-slip",
        "rrl-ipv4-prefix-length",
        "rrl-ipv6-prefix-length",
        "tls-service-key",
        "tls-service-pem",
        "tls-port",
        "tls-auth-port",
        "tls-cert-bundle",
        "answer-cookie",
        "cookie-secret",
        "round-robin",
        "verbosity",
        "proxy-protocol-port",
        "metrics-enable",
        "metrics-interface",
        "metrics-port",
        "do-ip4",
        "do-ip6",
        "ip4-only",
        "ip6-only",
        "tls-auth-xfr-only",
        "rrl-whitelist-ratelimit",
    ],
    left_out: &[
        ("database", KEPT),
        ("xfrdfile", KEPT),
        ("xfrdir", KEPT),
        ("difffile", KEPT),
        ("zonefiles-write", KEPT),
        ("pidfile", "the service manager knows the process"),
        ("logfile", LOGS),
        ("log-only-syslog", LOGS),
        ("log-time-ascii", LOGS),
        ("log-time-iso", LOGS),
        ("debug-mode", "\"gannet run\" stays in the foreground"),
        ("chroot", "the service manager confines the process"),
        ("ip-transparent", TUNING),
        ("ip-freebind", TUNING),
        ("reuseport", "workers have sockets of their own here"),
        ("send-buffer-size", TUNING),
        ("receive-buffer-size", TUNING),
        ("cpu-affinity", TUNING),
        ("xfrd-cpu-affinity", TUNING),
        ("tcp-reject-overflow", TUNING),
        ("tcp-query-count", TUNING),
        ("tcp-mss", TUNING),
        ("outgoing-tcp-mss", TUNING),
        ("xfrd-tcp-max", TUNING),
        ("xfrd-tcp-pipeline", TUNING),
        ("xfrd-reload-timeout", "a new version is served at once"),
        ("reload-config", "\"gannet reload\" reads everything"),
        ("zonefiles-check", "files that have changed are read with a reload"),
        ("rrl-size", "the table has room for what it needs"),
        ("statistics", "\"gannet stats\" shows numbers"),
        ("zone-stats-file", "\"gannet stats\" shows numbers"),
        ("tls-service-ocsp", "certificates are not stapled"),
        ("minimal-responses", "answers are minimal always"),
        ("confine-to-zone", "chains of aliases are followed through all zones"),
        ("refuse-any", "ANY gets one RRset (RFC 8482)"),
        ("drop-updates", "updates that nobody may make are refused"),
        ("cookie-secret-file", "write the secret into \"cookies.secret\""),
        ("cookie-staging-secret", "\"cookies.other-secret\" is the second one"),
        ("metrics-path", "the path is /metrics"),
    ],
    refused: &[],
};

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

/// An item of a section.
struct Item {
    section: At<String>,
    entries: Vec<Entry>,
}

struct Nsd<'a, 'f> {
    files: &'a mut Files<'f>,
    made: &'a mut Made,
    items: Vec<Item>,
}

pub(super) fn import(files: &mut Files<'_>, made: &mut Made, file: FileId, text: &str) {
    let mut items = Vec::new();
    read(files, file, text, 0, &mut items);
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

/// A word of the text: quoted or not.
struct Token {
    word: At<String>,
    is_quoted: bool,
}

fn tokens(file: FileId, text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        let span = |end: usize| Span { file, start: start as u32, end: end as u32 };
        match c {
            c if c.is_whitespace() => {}
            '#' => while rest.next_if(|&(_, c)| c != '\n').is_some() {},
            '"' | '\'' => {
                let mut value = String::new();
                let mut end = text.len();
                for (at, inner) in rest.by_ref() {
                    if inner == c {
                        end = at + 1;
                        break;
                    }
                    value.push(inner);
                }
                found.push(Token { word: At { value, span: span(end) }, is_quoted: true });
            }
            c => {
                let mut value = String::from(c);
                while let Some((_, c)) = rest.next_if(|&(_, c)| !c.is_whitespace()) {
                    value.push(c);
                    // `name:"value"` needs no space.
                    if c == ':' && is_key(&value) && rest.peek().is_some_and(|&(_, next)| next == '"') {
                        break;
                    }
                }
                let end = start + value.len();
                found.push(Token { word: At { value, span: span(end) }, is_quoted: false });
            }
        }
    }
    found
}

/// Returns whether a word is one that says what follows.
fn is_key(word: &str) -> bool {
    let Some(key) = word.strip_suffix(':') else { return false };
    key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-')
}

fn read(files: &mut Files<'_>, file: FileId, text: &str, depth: usize, items: &mut Vec<Item>) {
    let mut tokens = tokens(file, text).into_iter().peekable();
    while let Some(token) = tokens.next() {
        if token.is_quoted || !is_key(&token.word.value) {
            files.wrong(token.word.span, format!("\"{}\" belongs to no setting", token.word.value));
            continue;
        }
        let mut values = Vec::new();
        while let Some(value) = tokens.next_if(|next| next.is_quoted || !is_key(&next.word.value)) {
            values.push(value.word);
        }
        let mut key = token.word;
        key.value.pop();
        key.span.end -= 1;
        if key.value == "include" {
            for pattern in &values {
                let directory = files.directory.clone();
                for path in files.included(pattern, &directory, depth) {
                    let Some((file, text)) = files.open(&path, Some(pattern.span)) else { continue };
                    read(files, file, &text, depth + 1, items);
                }
            }
            continue;
        }
        let is_section = values.is_empty()
            && (SECTIONS.contains(&key.value.as_str())
                || (key.value == "remote-control" && values.is_empty()));
        if is_section {
            items.push(Item { section: key, entries: Vec::new() });
            continue;
        }
        match items.last_mut() {
            Some(item) => item.entries.push(Entry { key, values }),
            None => files.wrong(key.span, format!("\"{}\" is in no section", key.value)),
        }
    }
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

    fn server(&mut self, entries: &[Entry]) {
        SERVER.check("NSD's server", entries, self.files);
        let fields = Fields(vec![entries]);
        let is_on = |nsd: &mut Self, key: &str| fields.flag(key, nsd.files).map(|flag| flag.value);
        if is_on(self, "hide-version") != Some(true)
            && let Some(version) = fields.one("version")
        {
            self.made.server.put("version", shown(version));
        }
        if is_on(self, "hide-identity") != Some(true)
            && let Some(identity) = fields.one("identity")
        {
            self.made.server.put("hostname", shown(identity));
        }
        if let Some(nsid) = fields.one("nsid").filter(|nsid| !nsid.value.is_empty()) {
            let text = match nsid.value.strip_prefix("ascii_") {
                Some(text) => Some(text.to_owned()),
                None => values::hex(&nsid.value).and_then(|octets| String::from_utf8(octets).ok()),
            };
            match text {
                Some(text) => self.made.server.put("identity", text),
                None => self.files.wrong(nsid.span, "an NSID that is no text cannot be carried over"),
            }
        }
        if let Some(workers) = fields.number("server-count", self.files) {
            self.made.server.put("workers", workers.value.max(1).to_string());
        }
        if let Some(user) = fields.one("username").filter(|user| !user.value.is_empty()) {
            self.made.server.put("user", user.value.split(['.', ':']).next().unwrap_or(""));
        }
        if is_on(self, "round-robin") == Some(true) {
            self.made.server.put("rotate", Out::Flag(true));
        }
        if let Some(level) = fields.number("verbosity", self.files) {
            let word = ["warn", "info", "info"].get(level.value as usize).unwrap_or(&"debug");
            self.made.log.put("level", *word);
        }
        self.listeners(&fields);
        if let Some(count) = fields.number("tcp-count", self.files) {
            self.made.tcp.put("connections", count.value.max(1).to_string());
        }
        if let Some(idle) = fields.number("tcp-timeout", self.files) {
            self.made.tcp.put("idle-timeout", seconds(idle.value.clamp(1, 3600)));
        }
        let sizes = ["ipv4-edns-size", "ipv6-edns-size"];
        let size = sizes.iter().filter_map(|key| fields.number(key, self.files)).map(|size| size.value).min();
        if let Some(size) = size {
            self.made.edns.put("udp-size", size.clamp(512, 4096).to_string());
        }
        if let Some(rate) = fields.number("rrl-ratelimit", self.files).filter(|rate| rate.value > 0) {
            let note = "NSD counts equal answers to a network; here all answers to it count.".to_owned();
            self.made.rate.note("per-second", vec![note], rate.value.to_string());
            for (key, ours) in [
                ("rrl-slip", "slip"),
                ("rrl-ipv4-prefix-length", "ipv4-prefix"),
                ("rrl-ipv6-prefix-length", "ipv6-prefix"),
            ] {
                if let Some(number) = fields.number(key, self.files) {
                    self.made.rate.put(ours, number.value.to_string());
                }
            }
        }
        if let Some(rate) = fields.one("rrl-whitelist-ratelimit") {
            self.files.warn(rate.span, "\"rrl-whitelist-ratelimit\" is left out: limits are counted by client, not by kind of answer");
        }
        match is_on(self, "answer-cookie") {
            Some(true) => self.made.cookies.put("enabled", Out::Flag(true)),
            _ => self.made.cookies.note(
                "enabled",
                vec!["NSD uses none unless it is told to.".to_owned()],
                Out::Flag(false),
            ),
        }
        if let Some(secret) = fields.one("cookie-secret") {
            self.made.cookies.put("secret", secret.value.as_str());
        }
        if is_on(self, "metrics-enable") == Some(true) {
            let port = fields.number("metrics-port", self.files).map_or(9100, |port| port.value);
            let at: Vec<String> = fields.all("metrics-interface").iter().map(|at| at.value.clone()).collect();
            let at = if at.is_empty() { vec!["127.0.0.1".to_owned()] } else { at };
            let at = at.iter().filter_map(|at| prefixes::with_port(at, port as u16)).map(|at| at.to_string());
            self.made.metrics.put("listen", Out::Row(at.collect()));
        }
    }

    fn listeners(&mut self, fields: &Fields<'_>) {
        let port = fields.number("port", self.files).map_or(53, |port| port.value as u16);
        let tls_port = fields.number("tls-port", self.files).map_or(853, |port| port.value as u16);
        let auth_port = fields.number("tls-auth-port", self.files).map(|port| port.value as u16);
        let proxied = fields.number("proxy-protocol-port", self.files);
        if let Some(proxied) = proxied {
            self.files.wrong(proxied.span, "\"proxy-protocol-port\" cannot be carried over: \"listen[].proxy-protocol-from\" names the proxies that are believed");
        }
        let has_tls = fields.one("tls-service-pem").is_some();
        if let (Some(key), Some(pem)) = (fields.one("tls-service-key"), fields.one("tls-service-pem")) {
            let (certificate, key) = (self.files.beside(&pem.value), self.files.beside(&key.value));
            self.made.shows(certificate, key);
        }
        let entries = fields.entries("ip-address").into_iter().chain(fields.entries("interface"));
        let mut at: Vec<String> = Vec::new();
        for entry in entries {
            let Some(first) = entry.values.first() else { continue };
            match prefixes::with_port(&first.value, port) {
                Some(address) => at.push(address.to_string()),
                None => {
                    self.files.wrong(first.span, format!("\"{}\" is no address to listen at", first.value));
                }
            }
            if let Some(more) = entry.values.get(1) {
                self.files.warn(
                    more.span,
                    format!("\"{}\" is left out: every worker serves every address", more.value),
                );
            }
        }
        if at.is_empty() {
            // Either family can be switched off, or the other one be the only one.
            let families = [("do-ip4", "ip6-only", "0.0.0.0"), ("do-ip6", "ip4-only", "[::]")];
            for (key, other, any) in families {
                let is_on = fields.flag(key, self.files).is_none_or(|flag| flag.value);
                if is_on && fields.flag(other, self.files).is_none_or(|flag| !flag.value) {
                    at.push(format!("{any}:{port}"));
                }
            }
        }
        let demands_name = self.demands_name();
        for at in at {
            let is_tls = at.ends_with(&format!(":{tls_port}")) && has_tls;
            let is_auth = auth_port.is_some_and(|port| at.ends_with(&format!(":{port}"))) && has_tls;
            if is_auth {
                self.made.listens_for(&at, "tls", "required");
            } else if is_tls && demands_name.is_some() {
                self.made.listens_for(&at, "tls", "optional");
            } else {
                self.made.listens(&at, if is_tls { &["tls"] } else { &[] }, &[]);
            }
        }
        match (fields.one("tls-cert-bundle"), demands_name) {
            (Some(bundle), demanded) if auth_port.is_some() || demanded.is_some() => {
                let bundle = self.files.beside(&bundle.value);
                self.made.tls.put("client-ca", Out::Row(vec![bundle]));
            }
            (None, Some(demanded)) => {
                let message = "a name in a certificate cannot be carried over without \"tls-cert-bundle\": nobody is known who vouches for names";
                self.files.wrong(demanded, message);
            }
            (Some(_) | None, _) => {}
        }
        if let Some(flag) = fields.flag("tls-auth-xfr-only", self.files).filter(|flag| flag.value) {
            self.files.wrong(flag.span, "\"tls-auth-xfr-only\" cannot be carried over: a listener with \"client-certificates: required\" turns everybody else away");
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

    fn zones(&mut self, server: &[Entry]) {
        let mut seen = Seen::default();
        for entries in self.of("zone") {
            let Some(name) = Fields(vec![&entries]).one("name").cloned() else {
                if let Some(first) = entries.first() {
                    self.files.wrong(first.key.span, "this zone has no name");
                }
                continue;
            };
            if self.is_new(&mut seen, &name) {
                let pattern = Fields(vec![&entries]).one("include-pattern").map(|at| at.value.clone());
                self.zone(server, &name, &entries, pattern);
            }
        }
        let list = Fields(vec![server]).one("zonelistfile").cloned();
        let path = list.as_ref().map_or(ZONE_LIST, |list| list.value.as_str());
        let path = self.files.directory.join(path);
        // NSD makes the file when there is something to list.
        if self.files.environment.read(&path).is_err() {
            return;
        }
        let asked = list.map_or(Span::BUILT_IN, |list| list.span);
        let Some((file, text)) = self.files.open(&path, Some(asked)) else { return };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let words: Vec<At<String>> = words(file, start, line);
            start += line.len();
            match words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().as_slice() {
                [] | ["del", ..] => {}
                [first, ..] if first.starts_with('#') => {}
                ["add", _, pattern] => {
                    let Some(found) = self.named("pattern", pattern) else {
                        self.files.wrong(words[2].span, format!("there is no pattern \"{pattern}\""));
                        continue;
                    };
                    let name = &words[1];
                    if self.is_new(&mut seen, name) {
                        self.zone(server, name, &found, Some((*pattern).to_owned()));
                    }
                }
                [first, ..] => {
                    self.files.wrong(words[0].span, format!("\"{first}\" is no line of a list of zones"));
                }
            }
        }
    }

    fn is_new(&mut self, seen: &mut Seen, name: &At<String>) -> bool {
        match is_new(seen, name) {
            Ok(()) => true,
            Err(first) => {
                let problem = Problem::error(name.span, format!("zone \"{}\" is there twice", name.value));
                self.files.problems.push(problem.hint_at("the first time is on ", first, ""));
                false
            }
        }
    }

    /// Returns what a zone or a pattern says, with the patterns that it includes in their places.
    fn expanded(&mut self, entries: &[Entry], depth: usize) -> Vec<Entry> {
        let mut all = Vec::new();
        for entry in entries {
            if entry.key.value != "include-pattern" {
                all.push(entry.clone());
                continue;
            }
            for name in &entry.values {
                match self.named("pattern", &name.value) {
                    Some(pattern) if depth < super::DEPTH_MAX => {
                        let pattern: Vec<Entry> =
                            pattern.into_iter().filter(|entry| entry.key.value != "name").collect();
                        all.extend(self.expanded(&pattern, depth + 1));
                    }
                    Some(_) => self.files.wrong(name.span, "patterns include each other in a circle"),
                    None => self.files.wrong(name.span, format!("there is no pattern \"{}\"", name.value)),
                }
            }
        }
        all
    }

    fn zone(&mut self, server: &[Entry], name: &At<String>, entries: &[Entry], template: Option<String>) {
        let entries = self.expanded(entries, 0);
        let fields = Fields(vec![&entries]);
        let server = Fields(vec![server]);
        let mut made = ZoneMade { name: zone_name(&name.value), template, ..ZoneMade::default() };
        let roots = server.one("tls-cert-bundle").map(|at| self.files.beside(&at.value));
        let mut primaries = Vec::new();
        for entry in fields.entries("request-xfr") {
            let values: Vec<&At<String>> =
                entry.values.iter().filter(|value| !matches!(value.value.as_str(), "AXFR" | "UDP")).collect();
            primaries.extend(self.peer(&values, entry, roots.as_deref()));
        }
        made.primaries = made::texts(&primaries);
        let mut notify = Vec::new();
        for entry in fields.entries("notify") {
            notify.extend(self.peer(&entry.values.iter().collect::<Vec<_>>(), entry, None));
        }
        made.notify = made::texts(&notify);
        made.transfer = self.list(&fields, "provide-xfr");
        made.notify_from = self.list(&fields, "allow-notify");
        if !made.notify_from.is_empty() && primaries.is_empty() {
            // A zone of its own takes no notice.
            made.notify_from.clear();
        }
        if !fields.entries("allow-query").is_empty() {
            made.allow_query = self.clients(&fields);
        }
        for entry in fields.entries("verify-zone") {
            if entry.values.first().is_some_and(|value| value.value == "yes") {
                self.files.wrong(
                    entry.key.span,
                    "\"verify-zone\" cannot be carried over: versions are not shown to other programs",
                );
            }
        }
        for entry in fields.entries("size-limit-xfr") {
            self.files.warn(
                entry.key.span,
                "\"size-limit-xfr\" is left out: \"transfers.size\" bounds what comes, for all zones",
            );
        }
        if let Some(flag) = fields.flag("allow-axfr-fallback", self.files).filter(|flag| !flag.value) {
            self.files.warn(
                flag.span,
                "\"allow-axfr-fallback\" is left out: if differences do not fit, the whole zone is asked for",
            );
        }
        made.journal_size =
            fields.number("ixfr-size", self.files).map(|size| size.value.clamp(4 << 10, 1 << 34));
        if let Some(word) = fields.one("catalog") {
            match word.value.as_str() {
                "consumer" => {
                    made.catalog_role = Some("consumer");
                    if let Some(pattern) = fields.one("catalog-member-pattern").cloned() {
                        self.members(&pattern, &entries);
                    }
                }
                "producer" => made.catalog_role = Some("producer"),
                other => self.files.wrong(word.span, format!("a catalog is no \"{other}\"")),
            }
        }
        made.catalog = fields.one("catalog-producer-zone").map(|name| zone_name(&name.value));
        if primaries.is_empty() && made.catalog_role != Some("producer") {
            match fields.one("zonefile") {
                Some(file) => made.file = Some(self.zone_file(&server, &file.value, &made.name)),
                None => self
                    .files
                    .wrong(name.span, format!("zone \"{}\" has neither a file nor a primary", name.value)),
            }
        }
        self.made.zones.push(made);
    }

    /// Speaks of members of a catalog that would not be what they are there.
    fn members(&mut self, pattern: &At<String>, catalog: &[Entry]) {
        let Some(found) = self.named("pattern", &pattern.value) else {
            self.files.wrong(pattern.span, format!("there is no pattern \"{}\"", pattern.value));
            return;
        };
        let found = self.expanded(&found, 0);
        let said = |entries: &[Entry], key: &str| -> Vec<String> {
            let of = entries.iter().filter(|entry| entry.key.value == key);
            of.flat_map(|entry| entry.values.iter().map(|value| value.value.clone())).collect()
        };
        if said(&found, "request-xfr") != said(catalog, "request-xfr") {
            let message = format!(
                "members of a catalog come from the catalog's own primaries here, not from those of pattern \"{}\"",
                pattern.value
            );
            self.files.wrong(pattern.span, message);
        }
        if said(&found, "provide-xfr") != said(catalog, "provide-xfr") {
            let message = "whoever may take over the catalog may take over its members";
            self.files.warn(
                pattern.span,
                format!("\"provide-xfr\" of pattern \"{}\" is left out: {message}", pattern.value),
            );
        }
    }

    fn peer(&mut self, values: &[&At<String>], entry: &Entry, roots: Option<&str>) -> Option<Peer> {
        let [address, key, rest @ ..] = values else {
            self.files.wrong(
                entry.key.span,
                format!("\"{}\" takes an address and a key, or NOKEY", entry.key.value),
            );
            return None;
        };
        let tls = match rest.first() {
            None => None,
            Some(auth) => {
                let Some(found) = self.named("tls-auth", &auth.value) else {
                    self.files.wrong(auth.span, format!("there is no \"tls-auth\" \"{}\"", auth.value));
                    return None;
                };
                let fields = Fields(vec![&found]);
                let file = |key: &str| fields.one(key).map(|at| self.files.beside(&at.value));
                Some(PeerTls {
                    name: fields.one("auth-domain-name").map(|at| at.value.clone()),
                    pins: Vec::new(),
                    roots: roots.map(str::to_owned),
                    certificate: file("client-cert").zip(file("client-key")),
                })
            }
        };
        let port = if tls.is_some() { 853 } else { 53 };
        let Some(at) = prefixes::with_port(&address.value, port) else {
            self.files.wrong(address.span, format!("\"{}\" is no address of a server", address.value));
            return None;
        };
        let key = (key.value != "NOKEY").then(|| key.value.clone());
        Some(Peer { address: at, key, tls })
    }

    /// Returns the name that a client's certificate has to be for.
    fn shown_name(&mut self, auth: &At<String>) -> Vec<String> {
        let Some(found) = self.named("tls-auth", &auth.value) else {
            self.files.wrong(auth.span, format!("there is no \"tls-auth\" \"{}\"", auth.value));
            return Vec::new();
        };
        match Fields(vec![&found]).one("auth-domain-name") {
            Some(name) => vec![name.value.clone()],
            None => {
                let message = format!("\"tls-auth\" \"{}\" has no \"auth-domain-name\"", auth.value);
                self.files.wrong(auth.span, message);
                Vec::new()
            }
        }
    }

    /// Returns the first place where a client has to show a certificate for a zone.
    fn demands_name(&self) -> Option<Span> {
        let all = [self.of("pattern"), self.of("zone")].concat();
        let mut lists = all.iter().flatten().filter(|entry| entry.key.value == "provide-xfr");
        lists.find_map(|entry| entry.values.get(2)).map(|auth| auth.span)
    }

    /// Returns who may query a zone; `None` means anybody.
    fn clients(&mut self, fields: &Fields<'_>) -> Option<Vec<String>> {
        let who = self.who(fields, "allow-query");
        if who.iter().any(|who| who.key.is_some() || who.needs_tls) {
            let span = fields.entries("allow-query").first().map_or(Span::BUILT_IN, |entry| entry.key.span);
            let message = "clients are known by their addresses here, not by keys or certificates";
            self.files.wrong(span, message);
        }
        if who.iter().any(|who| who.from.is_empty()) {
            return None;
        }
        Some(who.iter().flat_map(|who| &who.from).map(|prefix| prefixes::text(*prefix)).collect())
    }

    /// Says whom a list of addresses and keys lets do something.
    fn list(&mut self, fields: &Fields<'_>, key: &str) -> Vec<String> {
        self.who(fields, key).iter().map(Who::text).collect()
    }

    /// Returns whom a list of addresses and keys lets do something; no address means any.
    fn who(&mut self, fields: &Fields<'_>, key: &str) -> Vec<Who> {
        let mut allowed: Vec<Who> = Vec::new();
        let mut blocked = Vec::new();
        for entry in fields.entries(key) {
            let (Some(at), Some(by)) = (entry.values.first(), entry.values.get(1)) else {
                self.files
                    .wrong(entry.key.span, format!("\"{key}\" takes addresses and a key, NOKEY or BLOCKED"));
                continue;
            };
            // A port says from where it comes, which says nothing.
            let address = at.value.split('@').next().unwrap_or("");
            let Some(from) = prefixes::read(address) else {
                self.files.wrong(at.span, format!("\"{}\" is no address", at.value));
                continue;
            };
            let hosts = entry.values.get(2).map(|auth| self.shown_name(auth)).unwrap_or_default();
            let who = Who { from, needs_tls: !hosts.is_empty(), hosts, ..Who::default() };
            match by.value.as_str() {
                "BLOCKED" => blocked.extend(who.from),
                "NOKEY" => allowed.push(who),
                key => allowed.push(Who { key: Some(key.to_owned()), ..who }),
            }
        }
        // Whoever is blocked may nothing, wherever it stands.
        for who in &mut allowed {
            who.from = prefixes::subtract(&who.from, &blocked);
        }
        let everything = prefixes::everything();
        allowed.retain(|who| !who.from.is_empty());
        for who in &mut allowed {
            if who.from == everything {
                who.from.clear();
            }
        }
        allowed
    }

    /// Returns the path of a zone's file.
    fn zone_file(&self, server: &Fields<'_>, pattern: &str, name: &str) -> String {
        let labels: Vec<&str> = name.split('.').collect();
        let from_end = |at: usize| labels.iter().rev().nth(at).copied().unwrap_or(".");
        let mut file = String::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                file.push(c);
                continue;
            }
            match rest.next() {
                Some('s') => file += name,
                Some(digit @ '1'..='3') => {
                    let at = digit as usize - '1' as usize;
                    file.push(name.chars().nth(at).unwrap_or('.'));
                }
                Some('z') => file += from_end(0),
                Some('y') => file += from_end(1),
                Some('x') => file += from_end(2),
                Some('%') => file.push('%'),
                other => {
                    file.push('%');
                    file.extend(other);
                }
            }
        }
        let folder = server.one("zonesdir").map_or("/etc/nsd", |at| at.value.as_str());
        self.files.beside(&Path::new(folder).join(file).display().to_string())
    }
}

/// Splits a line at spaces.
fn words(file: FileId, start: usize, line: &str) -> Vec<At<String>> {
    line.split_whitespace()
        .map(|word| {
            let at = start + (word.as_ptr().addr() - line.as_ptr().addr());
            let span = Span { file, start: at as u32, end: (at + word.len()) as u32 };
            At { value: word.to_owned(), span }
        })
        .collect()
}
