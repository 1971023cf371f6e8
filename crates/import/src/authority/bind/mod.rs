//! BIND's configuration.

mod lists;
mod policies;
mod text;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use diagnostic::{At, FileId, Problem, Span};

use super::made::{self, Made, Seen, ZoneMade, is_new, zone_name};
use super::{Files, Peer, Who, prefixes};

use super::super::write::{Map, Noted, Out};

use self::text::Statement;

/// What is carried over of `options` and `view`.
const OPTIONS: [&str; 38] = [
    "directory",
    "listen-on",
    "listen-on-v6",
    "port",
    "tls-port",
    "version",
    "hostname",
    "server-id",
    "recursion",
    "forwarders",
    "forward",
    "allow-query",
    "allow-recursion",
    "allow-query-cache",
    "allow-transfer",
    "allow-update",
    "allow-update-forwarding",
    "allow-notify",
    "also-notify",
    "notify",
    "dnssec-policy",
    "rate-limit",
    "tcp-clients",
    "tcp-idle-timeout",
    "edns-udp-size",
    "max-udp-size",
    "answer-cookie",
    "cookie-secret",
    "max-journal-size",
    "serial-update-method",
    "key-directory",
    "rrset-order",
    "match-clients",
    "zone",
    "catalog-zones",
    "match-destinations",
    "match-recursive-only",
    "update-policy",
];

/// What protects or changes answers and cannot be had.
const REFUSED: [(&str, &str); 11] = [
    ("response-policy", "\"sets\" read response policy zones from files"),
    ("dns64", "the action \"dns64\" stands in a policy"),
    ("blackhole", "\"deny\" names clients that hear nothing"),
    ("sortlist", "the action \"sort\" stands in a policy"),
    ("deny-answer-addresses", "the action \"rebind\" stands in a policy"),
    ("deny-answer-aliases", "the action \"rebind\" stands in a policy"),
    ("dlz", "zones come from files and other servers"),
    ("dyndb", "zones come from files and other servers"),
    ("plugin", "there are no plugins"),
    ("allow-proxy", "\"listen[].proxy-protocol-from\" names the proxies that are believed"),
    ("attach-cache", "views have what their policies say"),
];

/// What is carried over of a zone.
const ZONE: [&str; 24] = [
    "type",
    "file",
    "primaries",
    "masters",
    "also-notify",
    "allow-transfer",
    "allow-update",
    "allow-update-forwarding",
    "update-policy",
    "allow-notify",
    "notify",
    "dnssec-policy",
    "max-journal-size",
    "serial-update-method",
    "forwarders",
    "forward",
    "allow-query",
    "inline-signing",
    "masterfile-format",
    "in-view",
    "journal",
    "key-directory",
    "zone-statistics",
    "check-names",
];

/// A whole configuration under way.
struct Bind<'a, 'f, 's> {
    files: &'a mut Files<'f>,
    made: &'a mut Made,
    top: &'s [Statement],
    options: &'s [Statement],
    /// Lists of addresses.
    acls: Vec<(String, &'s [Statement])>,
    /// Lists of servers.
    lists: Vec<(String, &'s Statement)>,
    /// The key for each server.
    servers: BTreeMap<IpAddr, String>,
    /// Policies of signing that were written.
    policies: Vec<String>,
    /// Seconds that an old key stays, added up.
    parent_delay: u64,
    /// Whether it was said that zones are given to nobody where nothing is said.
    has_said_transfer: bool,
    has_said_notify: bool,
    has_said_recursion: bool,
    /// Who may query, by the place of each `allow-query`: that of the options is looked at for every zone.
    queriers: Vec<(Span, Option<Vec<String>>)>,
}

/// Where something is looked for: in the zone, the view, the options.
type Scope<'s> = Vec<&'s [Statement]>;

fn find<'s>(scope: &Scope<'s>, key: &str) -> Option<&'s Statement> {
    scope.iter().find_map(|block| block.iter().rev().find(|statement| statement.key() == key))
}

fn is_yes(statement: Option<&Statement>) -> Option<bool> {
    let word = statement?.value()?;
    Some(matches!(word.value.as_str(), "yes" | "true" | "1"))
}

pub(super) fn import(files: &mut Files<'_>, made: &mut Made, file: FileId, text: &str) {
    let top = text::read(files, file, text);
    let options = top.iter().find(|statement| statement.key() == "options");
    made.head.push(
        "Zone files are never written here: what changes by updates and transfers is kept in the state directory.".to_owned(),
    );
    let mut bind = Bind {
        files,
        made,
        top: &top,
        options: options.and_then(Statement::block).unwrap_or(&[]),
        acls: Vec::new(),
        lists: Vec::new(),
        servers: BTreeMap::new(),
        policies: Vec::new(),
        parent_delay: 0,
        has_said_transfer: false,
        has_said_notify: false,
        has_said_recursion: false,
        queriers: Vec::new(),
    };
    bind.top_level();
    bind.server();
    bind.views();
}

impl<'s> Bind<'_, '_, 's> {
    /// Takes up what is named, and speaks of what means nothing here.
    fn top_level(&mut self) {
        for statement in self.top {
            let name = statement.value();
            let block = statement.block().unwrap_or(&[]);
            match (statement.key(), name) {
                ("options" | "zone" | "view" | "tls" | "dnssec-policy" | "key-store" | "http", _) => {}
                ("acl", Some(name)) => self.acls.push((name.value.clone(), block)),
                ("primaries" | "masters" | "remote-servers", Some(name)) => {
                    self.lists.push((name.value.clone(), statement));
                }
                ("server", Some(name)) => {
                    let key = block.iter().find(|inner| inner.key() == "keys").and_then(|keys| {
                        keys.value()
                            .cloned()
                            .or_else(|| keys.block()?.first()?.words().first().map(|&word| word.clone()))
                    });
                    match (name.value.parse::<IpAddr>(), key) {
                        (Ok(ip), Some(key)) => {
                            self.servers.insert(ip, key.value);
                        }
                        _ => self.files.warn(
                            statement.span,
                            format!("\"server {}\" is left out: nothing of it is needed here", name.value),
                        ),
                    }
                }
                ("key", Some(name)) => self.key(name, block),
                ("controls", _) => {
                    self.left_out(statement, "the control socket is said by \"gannet run --control\"");
                }
                ("logging", _) => self.left_out(statement, "messages go where the service manager puts them"),
                ("statistics-channels", _) => {
                    self.left_out(statement, "\"gannet stats\" and \"metrics\" show numbers");
                }
                ("trust-anchors" | "managed-keys" | "trusted-keys", _) => {
                    self.left_out(statement, "answers of other servers are not validated");
                }
                (other, _) => self.files.wrong(statement.span, format!("\"{other}\" cannot be carried over")),
            }
        }
    }

    fn left_out(&mut self, statement: &Statement, why: &str) {
        let span = statement.words().first().map_or(statement.span, |word| word.span);
        self.files.warn(span, format!("\"{}\" is left out: {why}", statement.key()));
    }

    fn key(&mut self, name: &At<String>, block: &[Statement]) {
        let text = |key: &str| block.iter().find(|inner| inner.key() == key).and_then(Statement::value);
        let Some(secret) = text("secret") else {
            self.files.wrong(name.span, "this key has no secret");
            return;
        };
        let mut algorithm = None;
        if let Some(word) = text("algorithm") {
            algorithm = made::algorithm(&word.value);
            if algorithm.is_none() {
                self.files.wrong(
                    word.span,
                    format!("\"{}\" is no algorithm of keys that is known here", word.value),
                );
            }
        }
        self.made.key(&name.value, algorithm, &secret.value);
    }

    /// Speaks of statements of a block that are not carried over.
    fn check(&mut self, block: &[Statement], used: &[&str]) {
        for statement in block {
            let key = statement.key();
            if used.contains(&key) {
                continue;
            }
            let span = statement.words().first().map_or(statement.span, |word| word.span);
            match REFUSED.iter().find(|(known, _)| *known == key) {
                Some((_, why)) => self.files.wrong(span, format!("\"{key}\" cannot be carried over: {why}")),
                None => {
                    self.files.warn(span, format!("\"{key}\" is left out: nothing here corresponds to it"));
                }
            }
        }
    }

    fn server(&mut self) {
        let options = self.options;
        self.check(options, &OPTIONS);
        let scope = vec![options];
        for (key, ours) in [("version", "version"), ("hostname", "hostname"), ("server-id", "identity")] {
            if let Some(text) = find(&scope, key).and_then(Statement::value) {
                let is_hidden = text.value == "none" || text.value.is_empty();
                let text = if is_hidden { "hidden" } else { &text.value };
                self.made.server.put(ours, text);
            }
        }
        self.listeners(&scope);
        if let Some(most) = find(&scope, "tcp-clients").and_then(Statement::value) {
            self.made.tcp.put("connections", most.value.as_str());
        }
        if let Some(tenths) = find(&scope, "tcp-idle-timeout").and_then(Statement::value) {
            match tenths.value.parse::<u64>() {
                Ok(tenths) => self.made.tcp.put("idle-timeout", made::seconds((tenths / 10).clamp(1, 3600))),
                Err(_) => self.files.wrong(tenths.span, format!("\"{}\" is no whole number", tenths.value)),
            }
        }
        let size = find(&scope, "max-udp-size").or_else(|| find(&scope, "edns-udp-size"));
        if let Some(size) = size.and_then(Statement::value) {
            self.made.edns.put("udp-size", size.value.as_str());
        }
        if is_yes(find(&scope, "answer-cookie")) == Some(false) {
            self.made.cookies.put("enabled", Out::Flag(false));
        }
        let secrets = options.iter().filter(|statement| statement.key() == "cookie-secret");
        for (key, secret) in ["secret", "other-secret"].iter().zip(secrets) {
            self.made.cookies.put_some(key, secret.value().map(|text| text.value.clone()));
        }
        if let Some(order) = find(&scope, "rrset-order") {
            let text = self.files.sources.text(order.span).unwrap_or_default();
            if text.contains("cyclic") || text.contains("random") {
                self.made.server.put("rotate", Out::Flag(true));
            }
        }
        if let Some(limit) = find(&scope, "rate-limit") {
            self.rate(limit);
        }
        if let Some(allow) = find(&scope, "allow-query") {
            self.made.allow = self.queriers(allow);
        }
    }

    /// Returns who may query by an `allow-query`; `None` means anybody.
    fn queriers(&mut self, statement: &Statement) -> Option<Vec<String>> {
        if let Some((_, known)) = self.queriers.iter().find(|(span, _)| *span == statement.span) {
            return known.clone();
        }
        let clients = self.clients(statement);
        self.queriers.push((statement.span, clients.clone()));
        clients
    }

    fn rate(&mut self, limit: &Statement) {
        let names = [
            ("responses-per-second", "per-second"),
            ("slip", "slip"),
            ("ipv4-prefix-length", "ipv4-prefix"),
            ("ipv6-prefix-length", "ipv6-prefix"),
        ];
        for statement in limit.block().unwrap_or(&[]) {
            let known = names.iter().find(|(theirs, _)| *theirs == statement.key());
            match (known, statement.value()) {
                (Some((_, "per-second")), Some(value)) => {
                    let note =
                        "BIND counts equal answers to a network; here all answers to it count.".to_owned();
                    self.made.rate.note("per-second", vec![note], value.value.as_str());
                }
                (Some((_, ours)), Some(value)) => self.made.rate.put(*ours, value.value.as_str()),
                _ if statement.key() == "exempt-clients" => {
                    let clients = self.clients(statement).unwrap_or_else(|| vec!["any".to_owned()]);
                    self.made.rate.put("exempt", Out::Row(clients));
                }
                _ => self.left_out(statement, "limits are counted by client, not by kind of answer"),
            }
        }
    }

    fn listeners(&mut self, scope: &Scope<'s>) {
        let options = self.options;
        let port_of = |key: &str, usual: u16| {
            find(scope, key)
                .and_then(Statement::value)
                .and_then(|port| port.value.parse().ok())
                .unwrap_or(usual)
        };
        let (plain, tls_port) = (port_of("port", 53), port_of("tls-port", 853));
        for (key, any) in [("listen-on", "0.0.0.0"), ("listen-on-v6", "[::]")] {
            let mut is_said = false;
            for statement in options.iter().filter(|statement| statement.key() == key) {
                is_said = true;
                let tls = statement.after("tls").filter(|tls| tls.value != "none");
                let http = statement.after("http");
                let usual = match (tls, http) {
                    (Some(_), None) => tls_port,
                    (Some(_), Some(_)) => 443,
                    (None, Some(_)) => 80,
                    (None, None) => plain,
                };
                let port = statement.after("port").and_then(|port| port.value.parse().ok()).unwrap_or(usual);
                let transports: &[&str] = match (tls, http) {
                    (None, None) => &[],
                    (Some(_), None) => &["tls"],
                    (Some(_), Some(_)) => &["https"],
                    (None, Some(_)) => &["http"],
                };
                if let Some(tls) = tls {
                    self.identity(tls);
                }
                for item in statement.block().unwrap_or(&[]) {
                    let words = item.words();
                    match words.as_slice() {
                        [word] if word.value == "none" => {}
                        [word] if word.value == "any" => {
                            self.made.listens(&format!("{any}:{port}"), transports, &[]);
                        }
                        [word] => match word.value.parse::<IpAddr>() {
                            Ok(ip) => {
                                let at = std::net::SocketAddr::new(ip, port).to_string();
                                self.made.listens(&at, transports, &[]);
                            }
                            Err(_) => {
                                self.files.wrong(item.span, "listeners are addresses here, not networks");
                            }
                        },
                        _ => self.files.wrong(item.span, "listeners are addresses here, not networks"),
                    }
                }
            }
            if !is_said {
                self.made.listens(&format!("{any}:{plain}"), &[], &[]);
            }
        }
    }

    /// Takes up the certificate of a `tls` that a listener names.
    fn identity(&mut self, name: &At<String>) {
        let found = self.top.iter().find(|statement| {
            statement.key() == "tls" && statement.value().is_some_and(|other| other.value == name.value)
        });
        let block = found.and_then(Statement::block).unwrap_or(&[]);
        let text = |key: &str| block.iter().find(|inner| inner.key() == key).and_then(Statement::value);
        match (text("cert-file"), text("key-file")) {
            (Some(certificate), Some(key)) => {
                let (certificate, key) =
                    (self.files.beside(&certificate.value), self.files.beside(&key.value));
                self.made.shows(certificate, key);
            }
            _ => self.files.wrong(
                name.span,
                format!("\"tls {}\" has no certificate: \"gannet certificate\" makes one", name.value),
            ),
        }
    }

    fn views(&mut self) {
        let views: Vec<&'s Statement> =
            self.top.iter().filter(|statement| statement.key() == "view").collect();
        if views.is_empty() {
            let rules = self.zones(self.top, &vec![self.options], None);
            self.made.main = rules;
            return;
        }
        for zone in self.top.iter().filter(|statement| statement.key() == "zone") {
            self.files.wrong(zone.span, "where there are views, every zone is in one");
        }
        let mut is_open = false;
        for view in views {
            let Some(name) = view.value() else {
                self.files.wrong(view.span, "this view has no name");
                continue;
            };
            let block = view.block().unwrap_or(&[]);
            self.check(block, &OPTIONS);
            for key in ["match-destinations", "match-recursive-only"] {
                if let Some(statement) = find(&vec![block], key) {
                    self.files.wrong(statement.span, format!("\"{key}\" cannot be carried over: views tell clients apart by address, listener and name"));
                }
            }
            let clients = match find(&vec![block], "match-clients") {
                Some(statement) => self.clients(statement),
                None => None,
            };
            if is_open {
                self.files.warn(
                    name.span,
                    format!("view \"{}\" is left out: the one before it takes everybody", name.value),
                );
                continue;
            }
            let legal =
                |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
            let own = format!("view-{}", name.value.chars().map(legal).collect::<String>());
            let scope = vec![block, self.options];
            match clients {
                // Everybody who is in none of the views before.
                None => {
                    is_open = true;
                    let rules = self.zones(block, &scope, None);
                    self.made.main = rules;
                }
                Some(clients) => {
                    let rules = self.zones(block, &scope, Some(&own));
                    self.made.policies.push((own.clone(), rules));
                    let mut map = Map::default();
                    map.put("policy", own);
                    map.put("clients", Out::Row(clients));
                    self.made.views.push(map.into());
                }
            }
        }
        if !is_open {
            // BIND refuses whoever is in no view.
            self.made.main = vec![Noted::from("reject(refused)")];
        }
    }

    /// Carries over the zones of a view, and returns the rules for its clients.
    fn zones(&mut self, block: &'s [Statement], scope: &Scope<'s>, set: Option<&str>) -> Vec<Noted> {
        let mut rules = vec![Noted::from(set.map_or("zones".to_owned(), |set| format!("zones({set})")))];
        let mut seen = Seen::default();
        for statement in block.iter().filter(|statement| statement.key() == "zone") {
            let Some(name) = statement.value() else {
                self.files.wrong(statement.span, "this zone has no name");
                continue;
            };
            let own = statement.block().unwrap_or(&[]);
            self.check(own, &ZONE);
            if let Err(first) = is_new(&mut seen, name) {
                let problem = Problem::error(name.span, format!("zone \"{}\" is there twice", name.value));
                self.files.problems.push(problem.hint_at("the first time is on ", first, ""));
                continue;
            }
            let mut scope = scope.clone();
            scope.insert(0, own);
            self.zone(name, own, &scope, set, &mut rules);
        }
        self.catalogs(scope);
        self.recursion(scope, set, &mut rules);
        rules
    }

    fn zone(
        &mut self,
        name: &At<String>,
        own: &'s [Statement],
        scope: &Scope<'s>,
        set: Option<&str>,
        rules: &mut Vec<Noted>,
    ) {
        let mine = vec![own];
        let Some(kind) = find(&mine, "type").and_then(Statement::value) else {
            match find(&mine, "in-view") {
                Some(view) => self.files.wrong(
                    view.span,
                    "a zone of another view cannot be carried over: each view has zones of its own",
                ),
                None => self.files.wrong(name.span, format!("zone \"{}\" has no type", name.value)),
            }
            return;
        };
        match kind.value.as_str() {
            "hint" => {
                return self.files.warn(
                    name.span,
                    format!("zone \"{}\" is left out: nothing here asks the root servers", name.value),
                );
            }
            "forward" => return self.forwarded(name, own, set, rules),
            "primary" | "master" | "secondary" | "slave" => {}
            other => {
                return self
                    .files
                    .wrong(kind.span, format!("a zone of type \"{other}\" cannot be carried over"));
            }
        }
        let is_secondary = matches!(kind.value.as_str(), "secondary" | "slave");
        let mut made = ZoneMade {
            name: zone_name(&name.value),
            // There are no templates there; of a kind, many zones are alike.
            template: Some(if is_secondary { "secondary" } else { "primary" }.to_owned()),
            set: set.map(str::to_owned),
            ..ZoneMade::default()
        };
        if is_secondary {
            match find(&mine, "primaries").or_else(|| find(&mine, "masters")) {
                Some(list) => made.primaries = made::texts(&self.peers(list)),
                None => self.files.wrong(name.span, format!("zone \"{}\" has no primaries", name.value)),
            }
        } else {
            match find(&mine, "file").and_then(Statement::value) {
                Some(file) => {
                    let directory = find(&vec![self.options], "directory").and_then(Statement::value);
                    let directory = directory.map_or("", |at| at.value.as_str());
                    made.file = Some(
                        self.files.beside(&Path::new(directory).join(&file.value).display().to_string()),
                    );
                }
                None => self.files.wrong(name.span, format!("zone \"{}\" has no file", name.value)),
            }
            if let Some(format) = find(&mine, "masterfile-format")
                .and_then(Statement::value)
                .filter(|word| word.value != "text")
            {
                self.files.wrong(format.span, "zone files are text here: \"named-compilezone\" makes one");
            }
        }
        self.given(scope, &mut made);
        // "allow" does not guard zones here: what the options and the view say holds for each.
        made.allow_query = find(scope, "allow-query").and_then(|allow| self.queriers(allow));
        if is_secondary {
            let from =
                find(scope, "allow-notify").map(|statement| self.allowed(statement)).unwrap_or_default();
            made.notify_from = from.iter().map(Who::text).collect();
            if let Some(statement) = find(scope, "allow-update-forwarding") {
                made.forward_updates = self.allowed(statement).iter().map(Who::text).collect();
            }
        } else {
            self.updates(scope, &mut made);
        }
        if let Some(policy) = find(scope, "dnssec-policy").and_then(Statement::value) {
            made.sign = self.signed_by(policy);
        }
        if let Some(size) = find(scope, "max-journal-size").and_then(Statement::value) {
            let digits = size.value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let scale = match size.value[digits.len()..].to_ascii_lowercase().as_str() {
                "k" => 1 << 10,
                "m" => 1 << 20,
                "g" => 1 << 30,
                _ => 1_u64,
            };
            if let Ok(number) = digits.parse::<u64>() {
                made.journal_size = Some(number.saturating_mul(scale).clamp(4 << 10, 1 << 34));
            }
        }
        if made.set.is_some() {
            let speaks = !made.primaries.is_empty()
                || !made.transfer.is_empty()
                || !made.notify.is_empty()
                || !made.update.is_empty()
                || !made.forward_updates.is_empty();
            if speaks || made.sign.is_some() {
                self.files.wrong(name.span, format!("zone \"{}\" is in a view that not everybody has: other servers do not hear of it, and it is not signed", name.value));
            }
        }
        self.made.zones.push(made);
    }

    /// Says who gets a zone and who is told of it.
    fn given(&mut self, scope: &Scope<'s>, made: &mut ZoneMade) {
        match find(scope, "allow-transfer") {
            Some(statement) => {
                made.transfer = self.allowed(statement).iter().map(Who::text).collect();
            }
            None if !self.has_said_transfer => {
                self.has_said_transfer = true;
                self.made.head.push("Zones without \"allow-transfer\": BIND before 9.20 gives them to everybody, here nobody gets them.".to_owned());
            }
            None => {}
        }
        let told = find(scope, "notify").and_then(Statement::value).map_or("yes", |word| word.value.as_str());
        if let Some(statement) = find(scope, "also-notify").filter(|_| !matches!(told, "no" | "false")) {
            made.notify = made::texts(&self.peers(statement));
        }
        if !matches!(told, "no" | "false" | "explicit") && !self.has_said_notify {
            self.has_said_notify = true;
            self.made.head.push("BIND tells the servers that a zone's NS records name of its versions; here only those under \"notify\" are told.".to_owned());
        }
    }

    fn updates(&mut self, scope: &Scope<'s>, made: &mut ZoneMade) {
        if let Some(statement) = find(scope, "allow-update") {
            made.update = self.allowed(statement).iter().map(Who::text).collect();
        }
        if let Some(statement) = find(scope, "update-policy") {
            if let Some(word) = statement.value() {
                self.files.wrong(
                    word.span,
                    "\"update-policy local\" cannot be carried over: name a key in \"update\"",
                );
            }
            for rule in statement.block().unwrap_or(&[]) {
                made.update.extend(self.update_rule(rule, &made.name));
            }
        }
        made.serial = match find(scope, "serial-update-method")
            .and_then(Statement::value)
            .map(|word| word.value.as_str())
        {
            Some("unixtime") if !made.update.is_empty() => Some("unixtime".to_owned()),
            Some("date") if !made.update.is_empty() => Some("dateserial".to_owned()),
            _ => None,
        };
    }

    /// Returns what a rule of `update-policy` allows.
    fn update_rule(&mut self, rule: &Statement, apex: &str) -> Option<String> {
        let words = rule.words();
        let [verb, identity, kind, rest @ ..] = words.as_slice() else {
            self.files.wrong(rule.span, "this is no rule of an update policy");
            return None;
        };
        if verb.value != "grant" {
            self.files.wrong(
                verb.span,
                format!(
                    "\"{}\" cannot be carried over: nobody may anything unless it is granted",
                    verb.value
                ),
            );
            return None;
        }
        let key = identity.value.trim_end_matches('.');
        let plain = |at: &At<String>| match at.value.as_str() {
            "." | "@" => apex.to_owned(),
            name => name.trim_end_matches('.').to_owned(),
        };
        let (reach, types) = match (kind.value.as_str(), rest) {
            ("zonesub", types) => (String::new(), types),
            ("name", [name, types @ ..]) => (format!(" name {}", plain(name)), types),
            ("subdomain", [name, types @ ..]) => (format!(" name {0} below {0}", plain(name)), types),
            ("wildcard", [name, types @ ..]) if name.value.starts_with("*.") => {
                (format!(" below {}", name.value[2..].trim_end_matches('.')), types)
            }
            ("self", [_, types @ ..]) => (format!(" name {key}"), types),
            ("selfsub", [_, types @ ..]) => (format!(" name {key} below {key}"), types),
            ("selfwild", [_, types @ ..]) => (format!(" below {key}"), types),
            ("self" | "selfsub", []) => (format!(" name {key}"), &[][..]),
            (other, _) => {
                self.files.wrong(kind.span, format!("the rule \"{other}\" cannot be carried over"));
                return None;
            }
        };
        let mut text = format!("key {key}{reach}");
        let mut wanted = Vec::new();
        for word in types {
            match word.value.as_str() {
                "ANY" => {}
                other if other.contains('(') => {
                    self.files.wrong(word.span, "how many records there may be cannot be said");
                }
                other => wanted.push(other.to_ascii_uppercase()),
            }
        }
        if !wanted.is_empty() {
            text += &format!(" types {}", wanted.join(","));
        }
        Some(text)
    }

    fn catalogs(&mut self, scope: &Scope<'s>) {
        let Some(statement) = find(scope, "catalog-zones") else { return };
        for catalog in statement.block().unwrap_or(&[]) {
            // `zone "catalog.example" default-primaries { … } …`
            let words = catalog.words();
            let [_, name, ..] = words.as_slice() else { continue };
            let wanted = zone_name(&name.value);
            match self.made.zones.iter_mut().find(|zone| zone.name == wanted) {
                Some(zone) => zone.catalog_role = Some("consumer"),
                None => self.files.wrong(name.span, format!("there is no zone \"{}\"", name.value)),
            }
            if words.iter().any(|word| matches!(word.value.as_str(), "default-primaries" | "default-masters"))
            {
                self.files.warn(name.span, "\"default-primaries\" is left out: members of a catalog come from the catalog's own primaries");
            }
        }
    }

    /// Returns servers in the words of upstream groups.
    fn upstreams(&mut self, statement: &Statement) -> Vec<String> {
        let peers = self.peers(statement);
        peers
            .iter()
            .map(|Peer { address, tls, .. }| match (tls, address.port()) {
                (Some(tls), _) => format!(
                    "tls://{address}{}",
                    tls.name.as_ref().map_or(String::new(), |name| format!("#{name}"))
                ),
                (None, 53) => address.ip().to_string(),
                (None, _) => address.to_string(),
            })
            .collect()
    }

    fn forwarded(
        &mut self,
        name: &At<String>,
        own: &'s [Statement],
        set: Option<&str>,
        rules: &mut Vec<Noted>,
    ) {
        let Some(list) = find(&vec![own], "forwarders") else {
            return self.files.wrong(name.span, format!("zone \"{}\" has no forwarders", name.value));
        };
        let servers = self.upstreams(list);
        if servers.is_empty() {
            return self.files.wrong(list.span, "a zone that is forwarded to nobody cannot be carried over");
        }
        let plain = zone_name(&name.value);
        let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let group = format!(
            "{}{}",
            set.map_or(String::new(), |set| format!("{set}-")),
            plain.chars().map(legal).collect::<String>()
        );
        let group = format!("to-{group}");
        // What stands behind it asks other servers.
        let mut steps = self.made.forwards(&group, servers);
        steps.push("accept".to_owned());
        let mut rule = Map::default();
        rule.put("if", format!("qname in suffix:{plain}"));
        rule.put("do", Out::Row(steps));
        rules.push(rule.into());
    }

    /// Carries over whom the server asks for the rest.
    fn recursion(&mut self, scope: &Scope<'s>, set: Option<&str>, rules: &mut Vec<Noted>) {
        let said = find(scope, "recursion");
        if is_yes(said) == Some(false) {
            return;
        }
        let servers = match find(scope, "forwarders") {
            Some(list) => self.upstreams(list),
            None => Vec::new(),
        };
        if servers.is_empty() {
            const RESOLVES: &str = "cannot be carried over: nothing here asks the root servers";
            let problem = match said {
                Some(said) => {
                    Problem::error(said.span, format!("\"recursion\" without \"forwarders\" {RESOLVES}"))
                }
                // Said once, where it would have to be said that it is not so.
                None if self.has_said_recursion => return,
                None => {
                    self.has_said_recursion = true;
                    let message = format!(
                        "BIND resolves for its own networks unless it is told not to, which {RESOLVES}"
                    );
                    match self.top.iter().find(|statement| statement.key() == "options") {
                        Some(options) => {
                            let span = options.words().first().map_or(options.span, |word| word.span);
                            Problem::error(span, message)
                        }
                        None => Problem::of_file(FileId(0), message),
                    }
                }
            };
            self.files.problems.push(problem.hint("\"recursion no;\", or name forwarders"));
            return;
        }
        let group = set.map_or("forwarders".to_owned(), |set| format!("{set}-forwarders"));
        let steps = Out::Row(self.made.forwards(&group, servers));
        let who = find(scope, "allow-recursion").or_else(|| find(scope, "allow-query-cache"));
        let clients = match who {
            Some(statement) => self.clients(statement),
            None => {
                // What BIND says itself: localhost and localnets.
                Some(
                    ["loopback", "private"]
                        .iter()
                        .flat_map(|word| values::prefix_word(word))
                        .map(prefixes::text)
                        .collect(),
                )
            }
        };
        let mut rule = Map::default();
        match clients {
            Some(clients) if clients.is_empty() => return,
            Some(clients) => rule.put("if", format!("client in {}", clients.join("|"))),
            None => {}
        }
        rule.put("do", steps);
        rules.push(rule.into());
    }
}
