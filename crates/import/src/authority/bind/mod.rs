//! BIND's configuration.

mod forwarding;
mod lists;
mod policies;
mod server;
mod text;
mod zones;

use std::collections::BTreeMap;
use std::net::IpAddr;

use diagnostic::{At, FileId, Problem, Span};

use super::Files;
use super::made::{self, Made, Seen, is_new};

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
    /// Whether the finding is made that zones without `allow-transfer` are given to nobody.
    has_said_transfer: bool,
    has_said_notify: bool,
    has_said_recursion: bool,
    /// Who may query, by the place of each `allow-query`: that of the options is looked at for
    /// every zone.
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
}
