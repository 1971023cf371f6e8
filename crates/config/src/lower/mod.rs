//! The tree of a configuration to settings, by the table of settings.
//!
//! Nothing stops at a mistake: it is noted, the default takes its place, and reading goes on.

mod authority;
mod checks;
mod devices;
mod jobs;
mod notation;
mod read;
mod sets;
mod signing;
mod stamp;
mod zones;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::diagnostic::Problem;
use crate::policy::condition::{AddressTerm, TextOperator, TextSource, TextTest};
use crate::policy::{Condition, Rule, Test, action, condition};
use crate::records::{Includes, Record, parse_all};
use crate::schema::{self, Kind, Row, Value};
use crate::settings::{
    AliasSettings, Bootstrap, CacheSettings, Certificate, ClientCertificateWord, ClientSubnetUse, Cookies,
    Group, GroupServer, Handshakes, Host, Hosts, IncludingText, Limits, Listener, LocalName, LocalSocket,
    LocalSocketWord, LogFormat, LogLevel, NamedCondition, Policy, Presentation, Rate, RecordSet, RelayTarget,
    Scheme, Server, ServerTls, Settings, Startup, Tcp, Tls, TlsVersionWord, Transfers, TransportWord,
    TrustedRoots, View,
};
use crate::source::{At, FileId, Sources, Span};
use crate::suggest::one_of;
use crate::values::{self, Misread, Secret};
use crate::yaml::{self, Entry, Node};
use notation::{
    SOCKET_PATH_OCTETS_MAX, account, http_path, interface, mode, path, pick, pin, rcode_term, relay, server,
    split_by_commas, tls_name,
};
use read::{Values as _, unreachable_kind};
pub(crate) use read::{expected_kind, expected_value};
pub(crate) use sets::range_of;
pub(crate) use zones::{Known, named_file};

/// What lowering needs besides the tree.
pub(crate) struct Lowering<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) problems: &'a mut Vec<Problem>,
    /// Reads a file that holds a secret.
    pub(crate) read_file: &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    /// The rows that were looked at: a test checks that every row is.
    #[cfg(test)]
    pub(crate) touched: std::cell::RefCell<std::collections::BTreeSet<&'static str>>,
}

/// A mapping whose keys are rows of the schema.
struct Section<'n> {
    path: String,
    entries: Cow<'n, [Entry]>,
    span: Span,
}

impl Section<'_> {
    fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn child(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Parses a default of the schema.
pub(crate) fn default_node(text: &str) -> Node {
    Node::of_words(text).unwrap_or_else(|| parsed_default(text))
}

fn parsed_default(text: &str) -> Node {
    // No default names a variable.
    yaml::parse(FileId::BUILT_IN, text, &|_| None, &mut Vec::new()).root.built_in()
}

/// Returns the rows of which a file that says nothing has the default, written out.
fn with_defaults(root: &Node) -> Vec<Entry> {
    let mut entries = match &root.value {
        yaml::Value::Map(entries) => entries.clone(),
        yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::List(_) => Vec::new(),
    };
    for row in schema::children("") {
        let has_default = matches!(row.kind, Kind::Named(_) | Kind::Items);
        let is_absent = entries
            .iter()
            .find(|entry| entry.key == row.key())
            .is_none_or(|entry| matches!(entry.node.value, yaml::Value::Null));
        if let (true, true, Some(default)) = (has_default, is_absent, row.default) {
            entries.retain(|entry| entry.key != row.key());
            entries.push(Entry {
                key: row.key().to_owned(),
                key_span: Span::BUILT_IN,
                node: default_node(default),
            });
        }
    }
    entries
}

impl Lowering<'_> {
    /// Returns the settings of a whole tree.
    pub(crate) fn settings(&mut self, root: &Node) -> Settings {
        let policy_is_given = match &root.value {
            yaml::Value::Map(entries) => entries
                .iter()
                .any(|entry| entry.key == "policy" && !matches!(entry.node.value, yaml::Value::Null)),
            yaml::Value::Null => false,
            yaml::Value::Scalar(_) | yaml::Value::List(_) => {
                self.problems.push(
                    Problem::error(root.head(), "this file holds no settings")
                        .expected("\"key: value\" lines"),
                );
                false
            }
        };
        let entries = with_defaults(root);
        let root = Section { path: String::new(), entries: Cow::Borrowed(&entries), span: root.span };
        self.check_keys(&root, "setting");
        // Read and put in place before this; only the row is noted.
        self.row(&root, "include");

        let server = self.section(&root, "server");
        let caches = self.caches(&root);
        let (limits, tcp, handshakes, signatures_memory) = self.limits(&root);
        let xdp = self.xdp(&root);
        let startup = Startup {
            workers: self.whole_or(&server, "workers").map(|number| number as u16),
            stay_awake: self.boolean(&server, "stay-awake"),
            user: self.text_or(&server, "user"),
            state_directory: self.path(&server, "state-directory").map(|at| at.value).unwrap_or_default(),
            shutdown_timeout: self.duration(&server, "shutdown-timeout"),
            listen: self.listeners(&root),
            local_sockets: self.local_sockets(&root),
            oblivious_target: self.oblivious(&root),
            xdp,
            metrics: self.metrics(&root),
            log_format: LogFormat::Auto,
            tcp,
            tls: handshakes,
            signatures_memory,
            cache_sizes: caches.iter().map(|cache| (cache.name.value.clone(), cache.size)).collect(),
        };
        let presentation = Presentation {
            version: self.text_or(&server, "version"),
            hostname: self.text_or(&server, "hostname"),
            identity: self.text_or(&server, "identity"),
        };
        let relay_to = self.relay_to(&root);
        let tls = self.tls(&root);
        self.check_secure(startup.listen.as_deref(), &tls);
        let allow = self.prefixes(&root, "allow");
        let deny = self.prefixes(&root, "deny");
        let deny_set = self.optional(&root, "deny-set", |lowering, _, node| {
            lowering.read(node, "the name of a set", |text| values::identifier(text).map(str::to_owned))
        });
        let trusted_peers = self.prefixes(&root, "trusted-peers");
        let resolvers = self.resolvers(&server);
        let upstreams = self.groups(&root);
        let hosts = self.hosts(&root);
        let local = self.local(&root);
        let signing = self.signing(&root);
        let keys = self.keys(&root);
        let checks = self.checks(&root);
        let zones = self.zones(&root, (&signing, &checks), &keys);
        let zone_directories = self.zone_directories(&root, &signing, &keys, &zones);
        let rotate = self.boolean(&server, "rotate");
        let alias = self.alias(&root);
        let transfers = self.section(&root, "transfers");
        let transfers = Transfers {
            outgoing_max: self.whole(&transfers, "outgoing") as u16,
            outgoing_client_max: self.whole(&transfers, "outgoing-client") as u16,
            incoming_max: self.whole(&transfers, "incoming") as u16,
            octets_max: self.size(&transfers, "size"),
        };
        let records = self.records(&root);
        let cookies = self.section(&root, "cookies");
        let cookies = Cookies {
            enabled: self.boolean(&cookies, "enabled"),
            secret: self.secret(&cookies, "secret"),
            other_secret: self.secret(&cookies, "other-secret"),
        };
        let edns = self.section(&root, "edns");
        let udp_size = self.whole(&edns, "udp-size") as u16;
        let log = self.section(&root, "log");
        let log_format = self.word(&log, "format", LogFormat::parse);
        let log_level = self.word(&log, "level", LogLevel::parse);
        let sets = self.sets(&root);
        let conditions = self.conditions(&root);
        let effects = self.effects(&root);
        let recorder = self.recorder(&root);
        let schedules = self.schedules(&root);
        let policies = self.policies(&root);
        let views = self.views(&root);
        Settings {
            startup: Startup { log_format, ..startup },
            presentation,
            allow,
            deny,
            deny_set,
            trusted_peers,
            resolvers,
            upstreams,
            caches,
            hosts,
            local,
            zones,
            has_added_zones: false,
            signing,
            zone_directories,
            rotate,
            alias,
            keys,
            transfers,
            records,
            relay_to,
            tls,
            limits,
            cookies,
            udp_size,
            log_level,
            sets,
            effects,
            recorder,
            schedules,
            conditions,
            views,
            policies,
            policy_is_given,
        }
    }

    /// Reads who resolves what ALIAS records lead to.
    fn alias(&mut self, root: &Section<'_>) -> AliasSettings {
        let section = self.section(root, "alias");
        let resolvers = self.list(&section, "resolvers", |_, value, scalar| match *value {
            Value::Socket { port, .. } => values::socket_address(&scalar.text, port),
            ref other => unreachable_kind(other),
        });
        AliasSettings {
            resolvers: resolvers.into_iter().map(|at| at.value).collect(),
            stale: self.duration(&section, "stale"),
            targets: self.whole(&section, "targets") as u32,
        }
    }

    /// Reads who resolves names for the server itself; nobody is the machine.
    fn resolvers(&mut self, server: &Section<'_>) -> Vec<SocketAddr> {
        let found = self.list(server, "resolvers", |_, value, scalar| match value {
            Value::Socket { word, .. } if Some(scalar.text.as_str()) == *word => Ok(None),
            Value::Socket { port, .. } => values::socket_address(&scalar.text, *port).map(Some),
            other => unreachable_kind(other),
        });
        if let Some(system) = found.iter().find(|at| at.value.is_none())
            && found.len() > 1
        {
            let problem = Problem::error(system.span, "\"system\" cannot stand beside servers");
            self.problems.push(problem.expected("\"system\" alone, or addresses"));
        }
        found.into_iter().filter_map(|at| at.value).collect()
    }

    fn listeners(&mut self, root: &Section<'_>) -> Option<Vec<Listener>> {
        let items = self.items(root, "listen");
        let is_empty = items.is_empty();
        let mut listeners: Vec<Listener> = Vec::new();
        let mut is_auto = false;
        for item in items {
            let transports = self.list(&item, "transport", |_, value, scalar| match value {
                Value::Word(words) => Self::one_word(words, &scalar.text, TransportWord::parse),
                other => unreachable_kind(other),
            });
            let from = self.prefixes(&item, "proxy-protocol-from");
            let forwarded = self.prefixes(&item, "forwarded-from");
            let paths = self.list(&item, "paths", |_, _, scalar| http_path(&scalar.text)).values();
            let name = self.optional(&item, "name", |lowering, _, node| {
                lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
            });
            let client_certificates = self.optional(&item, "client-certificates", |lowering, row, node| {
                let Kind::One(Value::Word(words)) = row.kind else { unreachable_kind(&row.kind) };
                let expected = one_of(words);
                lowering
                    .read(node, &expected, |text| Self::one_word(words, text, ClientCertificateWord::parse))
            });
            let port = transports.first().map_or(53, |at| at.value.port());
            match self.socket_or(&item, "at", port) {
                Some(At { value: Some(address), span }) => {
                    self.check_transports(&item, &transports);
                    let speaks_http = transports.iter().any(|at| at.value.is_http());
                    for key in ["paths", "forwarded-from"] {
                        if let (false, Some(entry)) = (speaks_http, self.said(&item, key)) {
                            self.problems.push(Problem::warning(
                                entry.key_span,
                                format!("\"{key}\" is ignored: this listener does not speak HTTP"),
                            ));
                        }
                    }
                    if !transports.iter().any(|at| at.value.is_secure())
                        && let Some(entry) = self.said(&item, "client-certificates")
                    {
                        self.problems.push(Problem::warning(
                            entry.key_span,
                            "\"client-certificates\" is ignored: this listener does not speak TLS",
                        ));
                    }
                    let listener = Listener {
                        at: At { value: address, span },
                        name,
                        speaks: transports.values(),
                        proxy_protocol_from: from,
                        paths,
                        forwarded_from: forwarded,
                        client_certificates,
                    };
                    // Port 0 asks the system for any free port: two of those are two sockets.
                    match listeners.iter().find(|other| other.at == listener.at && address.port() != 0) {
                        Some(first) => self.problems.push(
                            Problem::error(span, format!("\"{address}\" is listened on twice")).hint_at(
                                "the first time is on ",
                                first.at.span,
                                "",
                            ),
                        ),
                        None => listeners.push(listener),
                    }
                }
                Some(At { value: None, .. }) => is_auto = true,
                None => {}
            }
        }
        if let (true, Some(first)) = (is_auto, listeners.first()) {
            self.problems.push(
                Problem::error(first.at.span, "\"auto\" and an address")
                    .expected("either \"auto\" alone or addresses"),
            );
        }
        if is_empty {
            let span = root.entry("listen").map_or(root.span, |entry| entry.node.head());
            self.problems
                .push(Problem::error(span, "nothing is listened on").expected("at least one address"));
        }
        (!is_auto).then_some(listeners)
    }

    /// Reads where metrics can be fetched.
    fn metrics(&mut self, root: &Section<'_>) -> Vec<SocketAddr> {
        let section = self.section(root, "metrics");
        let listen = self.list(&section, "listen", |_, value, scalar| match value {
            Value::Socket { port, .. } => values::socket_address(&scalar.text, *port),
            other => unreachable_kind(other),
        });
        for (index, at) in listen.iter().enumerate() {
            if at.value.port() != 0 && listen.iter().take(index).any(|other| other.value == at.value) {
                let message = format!("\"{}\" is listened on twice", at.value);
                self.problems.push(Problem::error(at.span, message));
            } else if !at.value.ip().to_canonical().is_loopback() {
                let message = format!("everybody who reaches {} may read the metrics", at.value);
                self.problems.push(
                    Problem::warning(at.span, message)
                        .hint("an address of this machine alone, or a packet filter"),
                );
            }
        }
        listen.values()
    }

    /// Reads for how long a key of the oblivious target lasts, if there is a target.
    fn oblivious(&mut self, root: &Section<'_>) -> Option<Duration> {
        let section = self.section(root, "oblivious");
        let lifetime = self.duration(&section, "key-lifetime");
        let is_target = self.boolean(&section, "target");
        if let (false, Some(entry)) = (is_target, self.said(&section, "key-lifetime")) {
            let message = "\"key-lifetime\" is ignored: there is no oblivious target";
            self.problems.push(Problem::warning(entry.key_span, message));
        }
        is_target.then_some(lifetime)
    }

    fn local_sockets(&mut self, root: &Section<'_>) -> Vec<LocalSocket> {
        let mut sockets: Vec<LocalSocket> = Vec::new();
        for item in self.items(root, "local-sockets") {
            let path = self.path(&item, "path");
            let kind = self.word(&item, "kind", LocalSocketWord::parse);
            let mode = self
                .required(&item, "mode", |lowering, _, node| lowering.read(node, "octal digits", mode))
                .value;
            let mut text = |key| {
                self.optional(&item, key, |lowering, _, node| lowering.read(node, "a name", account))
                    .map(|at| at.value)
            };
            let (owner, group) = (text("owner"), text("group"));
            let name = self.optional(&item, "name", |lowering, _, node| {
                lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
            });
            let Some(path) = path else {
                if item.entry("path").is_none() {
                    self.problems.push(Problem::error(item.span, "\"path\" is missing").expected("a file"));
                }
                continue;
            };
            let path = At { value: self.beside(path.span.file, &path.value), span: path.span };
            if path.value.as_os_str().len() > SOCKET_PATH_OCTETS_MAX {
                let message = format!("the path has more than {SOCKET_PATH_OCTETS_MAX} octets");
                self.problems.push(Problem::error(path.span, message).expected("a shorter one (unix(7))"));
            }
            if let Some(first) = sockets.iter().find(|other| other.path.value == path.value) {
                let twice = Problem::error(path.span, "this socket is opened twice");
                self.problems.push(twice.hint_at("the first time is on ", first.path.span, ""));
            }
            sockets.push(LocalSocket { path, kind, mode, owner, group, name });
        }
        sockets
    }

    /// Checks that what is to be spoken at an address goes together.
    fn check_transports(&mut self, item: &Section<'_>, transports: &[At<TransportWord>]) {
        if transports.is_empty() {
            let span = item.entry("transport").map_or(item.span, |entry| entry.node.head());
            self.problems.push(
                Problem::error(span, "this address is to speak nothing")
                    .expected(format!("one or more of {}", one_of(TransportWord::WORDS))),
            );
        }
        for (number, one) in transports.iter().enumerate() {
            let before = transports.get(..number).unwrap_or(&[]);
            let Some(other) = before.iter().find(|other| !other.value.goes_with(one.value)) else { continue };
            let (one_word, other_word) = (one.value.word(), other.value.word());
            let message = if one_word == other_word {
                format!("\"{one_word}\" stands here twice")
            } else {
                format!("\"{one_word}\" and \"{other_word}\" cannot share a port")
            };
            self.problems.push(Problem::error(one.span, message).expected("a listener of its own for each"));
        }
    }

    fn tls(&mut self, root: &Section<'_>) -> Tls {
        let section = self.section(root, "tls");
        let mut certificates = Vec::new();
        for item in self.items(&section, "certificates") {
            let chain = self.path(&item, "certificate");
            let key = self.path(&item, "key");
            let Some(chain) = chain else {
                if item.entry("certificate").is_none() {
                    self.problems
                        .push(Problem::error(item.span, "\"certificate\" is missing").expected("a file"));
                }
                continue;
            };
            let place = |at: At<std::path::PathBuf>| At {
                value: self.beside(at.span.file, &at.value),
                span: at.span,
            };
            let chain = place(chain);
            let key = key.map_or_else(|| chain.clone(), place);
            certificates.push(Certificate { chain, key });
        }
        let client_ca = self.list(&section, "client-ca", |_, _, scalar| path(&scalar.text));
        let client_ca = client_ca
            .into_iter()
            .map(|at| At { value: self.beside(at.span.file, &at.value), span: at.span })
            .collect();
        Tls {
            certificates,
            min_version: self.word(&section, "min-version", TlsVersionWord::parse),
            discovery: self.boolean(&section, "discovery"),
            client_ca,
        }
    }

    /// Checks that listeners that take a certificate have one.
    fn check_secure(&mut self, listeners: Option<&[Listener]>, tls: &Tls) {
        let secure = |listener: &&Listener| listener.speaks.iter().any(|word| word.is_secure());
        let all = || listeners.into_iter().flatten();
        for listener in all() {
            let Some(asked) = &listener.client_certificates else { continue };
            if asked.value != ClientCertificateWord::Never && tls.client_ca.is_empty() {
                self.problems.push(
                    Problem::error(asked.span, "nobody is known who signs certificates of clients")
                        .expected("a file with an authority's certificate under \"tls: client-ca:\""),
                );
            }
        }
        let first = all().find(secure);
        match first {
            Some(listener) if tls.certificates.is_empty() => self.problems.push(
                Problem::error(listener.at.span, "there is no certificate for this listener")
                    .expected("one under \"tls: certificates:\"")
                    .hint("\"gannet certificate\" makes one to try things with"),
            ),
            Some(_) => {}
            None => {
                if let Some(certificate) = tls.certificates.first() {
                    self.problems.push(
                        Problem::warning(
                            certificate.chain.span,
                            "certificates are not used: no listener speaks TLS",
                        )
                        .hint("see \"transport\" under \"listen\""),
                    );
                }
            }
        }
    }

    fn groups(&mut self, root: &Section<'_>) -> Vec<Group> {
        let mut groups = Vec::new();
        for (name, section) in self.named_sections(root, "upstreams") {
            let mut servers = Vec::new();
            let items = self.items(&section, "servers");
            if items.is_empty() {
                self.problems.push(
                    Problem::error(name.span, format!("upstream group \"{}\" has no servers", name.value))
                        .expected("\"servers:\" with at least one address, or \"system\""),
                );
            }
            let count = items.len();
            for item in items {
                let weight = self.whole(&item, "weight") as u16;
                let source = self.optional(&item, "source", |lowering, _, node| {
                    lowering.read(node, "an IP address", values::address)
                });
                let interface = self.optional(&item, "interface", |lowering, _, node| {
                    lowering.read(node, "the name of an interface", interface)
                });
                let name = self.optional(&item, "name", |lowering, _, node| {
                    lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
                });
                let known = servers.iter().any(|other: &GroupServer| {
                    other.name.is_some() && other.name.as_ref() == name.as_ref().map(|name| &name.value)
                });
                if let (true, Some(name)) = (known, &name) {
                    self.problems.push(
                        Problem::error(name.span, format!("two servers are named \"{}\"", name.value))
                            .expected("a name for each"),
                    );
                }
                let mark = self.optional(&item, "mark", |lowering, row, node| {
                    lowering
                        .read_whole(row, node)
                        .map(|at| At { value: at.value.unwrap_or_default() as u32, span: at.span })
                });
                let dial = self.optional(&item, "dial", |lowering, _, node| {
                    lowering.read(node, "an IP address", values::address)
                });
                let relay =
                    self.optional(&item, "relay", |lowering, _, node| lowering.read(node, "a relay", relay));
                let (proxy, proxy_login) = self.proxy(&item);
                let tls = self.server_tls(&item);
                let connections_min = self.whole(&item, "connections-min") as u8;
                let connections_max = self.whole(&item, "connections-max") as u8;
                if connections_min > connections_max {
                    self.problems.push(
                        Problem::error(
                            item.span,
                            format!(
                                "connections-min ({connections_min}) is larger than connections-max ({connections_max})"
                            ),
                        )
                        .expected("connections-min to be at most connections-max"),
                    );
                }
                let idle = self.duration(&item, "idle");
                let row = self.row(&item, "address");
                if item.entry("address").is_none() {
                    self.problems.push(
                        Problem::error(item.span, "\"address\" is missing").expected(expected_kind(row.kind)),
                    );
                }
                let server = self.optional(&item, "address", |lowering, _, node| {
                    lowering.read(node, "an upstream server", server)
                });
                if let Some(server) = &server {
                    self.ignored_by(server, &item);
                }
                servers.extend(server.map(|server| GroupServer {
                    name: name.map(|at| at.value),
                    server,
                    weight,
                    source: source.map(|at| at.value),
                    interface: interface.map(|at| at.value),
                    mark: mark.map(|at| at.value),
                    dial,
                    relay,
                    proxy,
                    proxy_login,
                    tls,
                    connections_min,
                    connections_max,
                    idle,
                }));
            }
            let pick = self
                .required(&section, "pick", |lowering, _, node| lowering.read(node, "a way to choose", pick));
            let has_system = servers.iter().any(|server: &GroupServer| server.server.value == Server::System);
            let number = pick.value.width();
            if usize::from(number) > count.max(1) && !has_system {
                self.problems.push(
                    Problem::error(pick.span, format!("{number} servers at once in a group of {count}"))
                        .expected(format!("at most {count}")),
                );
            }
            groups.push(Group {
                name,
                servers,
                pick: pick.value,
                negative_wait: self.duration(&section, "negative-wait"),
                timeout: self.duration(&section, "timeout"),
                hedge: self.hedge(&section, "hedge"),
                fallback_on: self
                    .list(&section, "fallback-on", |_, value, scalar| match value {
                        Value::RcodeTerm => rcode_term(&scalar.text),
                        other => unreachable_kind(other),
                    })
                    .values(),
                bootstrap: self.list(&section, "bootstrap", |_, value, scalar| match value {
                    Value::Socket { word, .. } if Some(scalar.text.as_str()) == *word => {
                        Ok(Bootstrap::System)
                    }
                    Value::Socket { port, .. } => {
                        values::socket_address(&scalar.text, *port).map(Bootstrap::Address)
                    }
                    other => unreachable_kind(other),
                }),
                client_subnet: self.word(&section, "client-subnet", ClientSubnetUse::parse),
                trust_ad: self.boolean(&section, "trust-ad"),
                case_randomisation: self.boolean(&section, "case-randomisation"),
            });
        }
        groups
    }

    /// Reads through whom one server is asked, and what he is told.
    fn proxy(&mut self, item: &Section<'_>) -> (Option<At<SocketAddr>>, Option<(String, Secret)>) {
        let address = self.optional(item, "proxy", |lowering, row, node| {
            let Kind::One(Value::Socket { port, .. }) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &expected_kind(row.kind), |text| values::socket_address(text, port))
        });
        let user = self.some_text(item, "proxy-user");
        let password = self.password(item, "proxy-password");
        for key in ["proxy-user", "proxy-password"] {
            if let (None, Some(entry)) = (item.entry("proxy"), item.entry(key)) {
                let message = format!("\"{key}\" is ignored: there is no proxy");
                self.problems.push(Problem::warning(entry.key_span, message).hint("set \"proxy\" beside it"));
            }
        }
        let has_both = item.entry("proxy-user").is_some() == item.entry("proxy-password").is_some();
        if let (false, Some(entry)) = (has_both, item.entry("proxy")) {
            let problem = Problem::error(entry.key_span, "a proxy takes a user and a password, or neither");
            self.problems.push(problem.expected("\"proxy-user\" and \"proxy-password\""));
        }
        (address, user.zip(password))
    }

    /// Reads which authorities are trusted.
    fn roots(&mut self, item: &Section<'_>) -> At<TrustedRoots> {
        let roots = self.required(item, "roots", |lowering, _, node| {
            lowering.read(node, "\"mozilla\" or a path", |text| match text {
                "mozilla" => Ok(TrustedRoots::Mozilla),
                other => path(other).map(TrustedRoots::File),
            })
        });
        match roots.value {
            TrustedRoots::File(file) => {
                At { value: TrustedRoots::File(self.beside(roots.span.file, &file)), span: roots.span }
            }
            TrustedRoots::Mozilla => roots,
        }
    }

    /// Reads the oblivious targets that messages are carried to.
    fn relay_to(&mut self, root: &Section<'_>) -> Vec<RelayTarget> {
        let section = self.section(root, "oblivious");
        let mut targets = Vec::new();
        for item in self.items(&section, "relay-to") {
            let target = self.optional(&item, "target", |lowering, _, node| {
                lowering.read(node, "a name such as odoh.example.net", |text| {
                    let (host, port) = text.rsplit_once(':').unwrap_or((text, "443"));
                    let port = port.parse::<u16>().ok().filter(|port| *port > 0);
                    let port =
                        port.ok_or_else(|| Misread::whole(text, format!("\"{text}\" has no port in it")))?;
                    tls_name(host).map(|host| (host, port))
                })
            });
            let dial = self.optional(&item, "dial", |lowering, _, node| {
                lowering.read(node, "an IP address", values::address)
            });
            let roots = self.roots(&item);
            let Some(At { value: (host, port), span }) = target else {
                if item.entry("target").is_none() {
                    self.problems.push(Problem::error(item.span, "\"target\" is missing").expected("a name"));
                }
                continue;
            };
            let dial = dial.map(|at| at.value);
            targets.push(RelayTarget { host: At { value: host, span }, port, dial, roots });
        }
        targets
    }

    /// Reads what one server must prove.
    fn server_tls(&mut self, item: &Section<'_>) -> ServerTls {
        let roots = self.roots(item);
        ServerTls {
            name: self.optional(item, "tls-name", |lowering, _, node| {
                lowering.read(node, "a host name or an address", tls_name)
            }),
            pins: self
                .list(item, "pins", |_, value, scalar| match value {
                    Value::Pin => pin(&scalar.text),
                    other => unreachable_kind(other),
                })
                .values(),
            roots,
            verify: self.boolean(item, "verify"),
            early_data: self.boolean(item, "early-data"),
        }
    }

    /// Says what has no meaning for a server that is asked in this way.
    fn ignored_by(&mut self, server: &At<Server>, item: &Section<'_>) {
        let (is_secured, is_connected, has_name) = match &server.value {
            Server::System => (false, false, false),
            Server::One { scheme, host, tls_name, stamp, .. } => {
                if let (Some(_), Some(entry)) = (tls_name, item.entry("tls-name")) {
                    self.problems.push(
                        Problem::error(entry.key_span, "the name in the certificate is given twice")
                            .hint("it stands after \"#\" in \"address\" already"),
                    );
                }
                let is_elsewhere = stamp.as_ref().is_some_and(|stamp| stamp.dial.is_some());
                let has_name = matches!(host, Host::Name { .. }) && !is_elsewhere;
                (scheme.is_secured(), *scheme != Scheme::Udp, has_name)
            }
        };
        let mut ignored = Vec::new();
        let mut relayless = false;
        let mut say = |keys: &[&str], why: &str| {
            for key in keys {
                if let Some(entry) = self.said(item, key) {
                    ignored.push(Problem::warning(entry.key_span, format!("\"{key}\" is ignored: {why}")));
                }
            }
        };
        let scheme = match &server.value {
            Server::System => Scheme::Udp,
            Server::One { scheme, .. } => *scheme,
        };
        if scheme != Scheme::Odoh {
            say(&["relay"], "only messages of \"odoh://\" can be relayed");
        } else if item.entry("relay").is_none() {
            relayless = true;
        }
        if scheme == Scheme::Dnscrypt {
            say(
                &["tls-name", "pins", "roots", "verify", "early-data"],
                "the stamp says what the resolver must prove",
            );
        } else if !is_secured {
            say(
                &["tls-name", "pins", "roots", "verify", "early-data"],
                "nothing is encrypted without \"tls://\", \"https://\" or \"quic://\"",
            );
        } else if item.entry("pins").is_some() {
            say(&["roots", "verify"], "\"pins\" says which keys count");
        } else if self.said(item, "verify").is_some() {
            say(&["roots"], "nothing is verified");
        }
        if !is_connected {
            say(&["connections-min"], "no connection is needed over UDP");
        }
        if !has_name {
            say(&["dial"], "\"address\" has no host name that would have to be looked up");
        }
        if relayless {
            let message = "without a relay the server knows who asks, as over \"https://\"";
            ignored.push(Problem::warning(server.span, message).hint("set \"relay\" beside \"address\""));
        }
        self.problems.append(&mut ignored);
    }

    fn caches(&mut self, root: &Section<'_>) -> Vec<CacheSettings> {
        let mut caches = Vec::new();
        for (name, section) in self.named_sections(root, "cache") {
            let dump = self.section(&section, "dump");
            let min_ttl = self.duration(&section, "min-ttl");
            let max_ttl = self.duration(&section, "max-ttl");
            if min_ttl > max_ttl {
                let span =
                    section.entry("min-ttl").or(section.entry("max-ttl")).map_or(name.span, |e| e.node.span);
                let (min, max) = (values::duration_text(min_ttl), values::duration_text(max_ttl));
                self.problems.push(
                    Problem::error(span, format!("min-ttl ({min}) is larger than max-ttl ({max})"))
                        .expected("min-ttl to be at most max-ttl"),
                );
            }
            let dump_file = self.path(&dump, "file").map(|at| at.value);
            let dump_every = self.duration_or(&dump, "every");
            if let (None, Some(entry)) = (&dump_file, self.said(&dump, "every")) {
                self.problems.push(
                    Problem::warning(entry.key_span, "\"every\" is ignored: there is no file to write")
                        .hint("set \"file\" beside it"),
                );
            }
            let stale = self.duration_or(&section, "stale");
            for key in ["stale-client-timeout", "stale-ttl"] {
                if let (None, Some(entry)) = (stale, self.said(&section, key)) {
                    self.problems.push(Problem::warning(
                        entry.key_span,
                        format!("\"{key}\" is ignored: \"stale\" is off"),
                    ));
                }
            }
            caches.push(CacheSettings {
                size: self.size(&section, "size"),
                min_ttl,
                max_ttl,
                max_negative_ttl: self.duration(&section, "max-negative-ttl"),
                failure_ttl: self.duration(&section, "failure-ttl"),
                stale,
                stale_client_timeout: self.duration(&section, "stale-client-timeout"),
                stale_ttl: self.duration(&section, "stale-ttl"),
                prefetch: self.percent_or(&section, "prefetch"),
                dump_file,
                dump_every,
                name,
            });
        }
        caches
    }

    fn hosts(&mut self, root: &Section<'_>) -> Hosts {
        let hosts = self.section(root, "hosts");
        let files = self.list(&hosts, "files", |_, _, scalar| path(&scalar.text));
        let files =
            files.into_iter().map(|at| At { value: self.beside(at.span.file, &at.value), span: at.span });
        Hosts {
            files: files.collect(),
            system: self.boolean(&hosts, "system"),
            ttl: self.duration(&hosts, "ttl"),
        }
    }

    fn local(&mut self, root: &Section<'_>) -> Vec<LocalName> {
        let mut names: Vec<LocalName> = Vec::new();
        let mut seen: BTreeMap<Vec<u8>, Span> = BTreeMap::new();
        let section = self.section(root, "local");
        for entry in section.entries.iter() {
            let row = self.row(&section, "*");
            let addresses =
                self.list_of(row, &entry.node, |_, _, scalar| values::address(&scalar.text)).values();
            match values::name(&entry.key) {
                Ok(name) => {
                    let folded = name.as_name().to_folded().as_bytes().to_vec();
                    match seen.get(&folded) {
                        Some(&first) => self.problems.push(
                            Problem::error(entry.key_span, format!("\"{}\" is set twice", entry.key))
                                .hint_at(
                                    "the first time is on ",
                                    first,
                                    "; letter case and a final dot do not count",
                                ),
                        ),
                        None => {
                            seen.insert(folded, entry.key_span);
                            names.push(LocalName {
                                name: At { value: name, span: entry.key_span },
                                addresses,
                            });
                        }
                    }
                }
                Err(misread) => self.problems.push(misread.into_problem(entry.key_span)),
            }
        }
        names
    }

    fn records(&mut self, root: &Section<'_>) -> Vec<RecordSet> {
        let mut sets = Vec::new();
        for (name, section) in self.named_sections(root, "records") {
            let origin = self.required(&section, "origin", |lowering, _, node| {
                lowering.read(node, "a name", values::name)
            });
            let origin = origin.value;
            let texts = self.list(&section, "text", |lowering, _, scalar| {
                let directory = lowering.beside(scalar.span(0, 0).file, Path::new(""));
                let includes_any = Cell::new(false);
                let read = |path: &Path| {
                    includes_any.set(true);
                    (lowering.read_file)(path)
                };
                let includes = Includes { directory: directory.clone(), read: &read };
                let (records, mistakes) = parse_all(&scalar.text, origin.as_name(), &includes);
                for mistake in mistakes {
                    let misread = Misread::from(mistake);
                    let span = scalar.span(misread.at.start, misread.at.end);
                    lowering.problems.push(misread.into_problem(span));
                }
                // What is in files is read when the records are compiled, again whenever one of them changes.
                let text = || At { value: scalar.text.clone(), span: scalar.span(0, scalar.text.len()) };
                Ok(match includes_any.get() {
                    true => (Vec::new(), Some(IncludingText { text: text(), directory })),
                    false => (records, None),
                })
            });
            let (records, including): (Vec<Vec<Record>>, Vec<Option<IncludingText>>) =
                texts.into_iter().map(|at| at.value).unzip();
            let records = records.concat();
            let including = including.into_iter().flatten().collect();
            let files = self.list(&section, "files", |_, _, scalar| path(&scalar.text));
            let files: Vec<_> = files
                .into_iter()
                .map(|at| At { value: self.beside(at.span.file, &at.value), span: at.span })
                .collect();
            if section.entries.is_empty() {
                self.problems.push(
                    Problem::error(name.span, format!("set of records \"{}\" is empty", name.value))
                        .expected("\"text:\" or \"files:\""),
                );
            }
            sets.push(RecordSet { name, records, including, files, origin });
        }
        sets
    }

    fn limits(&mut self, root: &Section<'_>) -> (Limits, Tcp, Handshakes, u64) {
        let limits = self.section(root, "limits");
        let rate = self.section(&limits, "rate");
        let per_second = self.whole_or(&rate, "per-second").map(|number| number as u32);
        if per_second.is_none() {
            for entry in rate.entries.iter().filter(|entry| entry.key != "per-second") {
                if schema::find(&rate.child(&entry.key)).is_none() || self.said(&rate, &entry.key).is_none() {
                    continue;
                }
                self.problems.push(
                    Problem::warning(
                        entry.key_span,
                        format!("\"{}\" is ignored: there is no rate limit", entry.key),
                    )
                    .hint("set \"per-second\" beside it"),
                );
            }
        }
        let ban_for = self.duration_or(&rate, "ban-for");
        if let (Some(_), None, Some(entry)) = (per_second, ban_for, self.said(&rate, "ban-after")) {
            let message = "\"ban-after\" is ignored: nobody is banned for being over the limit";
            self.problems.push(Problem::warning(entry.key_span, message).hint("set \"ban-for\" beside it"));
        }
        let tcp = self.section(&limits, "tcp");
        let tcp = Tcp {
            connections: self.whole(&tcp, "connections") as u32,
            connections_per_client: self.whole(&tcp, "connections-per-client") as u32,
            idle_timeout: self.duration(&tcp, "idle-timeout"),
            first_query_timeout: self.duration(&tcp, "first-query-timeout"),
            age: self.duration_or(&tcp, "age"),
            pipeline: self.whole(&tcp, "pipeline") as u32,
        };
        let rate = Rate {
            per_second,
            burst: self.whole(&rate, "burst") as u32,
            slip: self.whole(&rate, "slip") as u32,
            ipv4_prefix: self.whole(&rate, "ipv4-prefix") as u8,
            ipv6_prefix: self.whole(&rate, "ipv6-prefix") as u8,
            exempt: self.prefixes(&rate, "exempt"),
            ban_for,
            ban_after: self.whole(&rate, "ban-after") as u32,
        };
        let tls = self.section(&limits, "tls");
        let handshakes = Handshakes {
            handshakes_per_second: self.whole(&tls, "handshakes-per-second") as u32,
            handshakes_per_client: self.whole(&tls, "handshakes-per-client") as u32,
            handshake_timeout: self.duration(&tls, "handshake-timeout"),
        };
        let signatures = self.section(&limits, "signatures");
        let limits = Limits {
            rate,
            waiting: self.whole(&limits, "waiting") as u32,
            signatures_per_second: self.whole(&signatures, "per-second") as u32,
        };
        (limits, tcp, handshakes, self.size(&signatures, "memory"))
    }

    fn conditions(&mut self, root: &Section<'_>) -> Vec<NamedCondition> {
        let section = self.names(root, "conditions");
        let mut conditions = Vec::new();
        for entry in section.entries.iter() {
            self.row(&section, "*");
            let condition = self.condition(&entry.node);
            let Some(name) = self.label(entry) else { continue };
            if condition::is_taken(&name.value) {
                self.problems.push(
                    Problem::error(
                        name.span,
                        format!("\"{}\" means something in conditions already", name.value),
                    )
                    .expected("another name"),
                );
                continue;
            }
            conditions.push(NamedCondition { name, condition });
        }
        conditions
    }

    fn views(&mut self, root: &Section<'_>) -> Vec<View> {
        let mut views = Vec::new();
        for item in self.items(root, "views") {
            let policy = self.optional(&item, "policy", |lowering, _, node| {
                lowering
                    .read(node, "the name of a policy", |text| values::identifier(text).map(str::to_owned))
            });
            let mut parts = Vec::new();
            let clients = self.prefixes(&item, "clients");
            if let (Some(entry), false) = (item.entry("clients"), clients.is_empty()) {
                let value = AddressTerm::Prefixes(clients);
                parts.push(Condition::Test(Test::Client(vec![At { value, span: entry.node.span }])));
            }
            let listeners = self
                .list(&item, "listeners", |_, _, scalar| values::identifier(&scalar.text).map(str::to_owned));
            if !listeners.is_empty() {
                parts.push(Condition::Test(Test::Listener(listeners)));
            }
            for (key, source) in [("server-names", TextSource::ServerName), ("paths", TextSource::Path)] {
                let texts = self.list(&item, key, |_, _, scalar| Ok(scalar.text.clone()));
                if let Some(first) = texts.first() {
                    let source = At { value: source, span: first.span };
                    parts.push(one_of_texts(&source, texts.values()));
                }
            }
            parts.extend(
                self.optional(&item, "if", |lowering, _, node| Some(lowering.condition(node)))
                    .map(|at| at.value),
            );
            let Some(policy) = policy else {
                if item.entry("policy").is_none() {
                    self.problems.push(
                        Problem::error(item.span, "this view has no policy")
                            .expected("\"policy:\" and its name"),
                    );
                }
                continue;
            };
            if parts.is_empty() {
                self.problems.push(
                    Problem::error(item.span, "this view says for whom it is by nothing")
                        .expected("\"clients\", \"listeners\", \"server-names\", \"paths\" or \"if\""),
                );
            }
            let condition = At { value: Condition::All(parts), span: item.span };
            views.push(View { span: item.span, condition, policy });
        }
        views
    }

    /// Reads a condition. One that cannot be read holds never, so that nothing is said about what comes after it.
    fn condition(&mut self, node: &Node) -> At<Condition> {
        let scalar = self.scalar(node, "a condition");
        let read = scalar.and_then(|scalar| condition::parse(scalar, self.problems));
        At { value: read.unwrap_or(Condition::Any(Vec::new())), span: node.span }
    }

    fn policies(&mut self, root: &Section<'_>) -> Vec<Policy> {
        let section = self.names(root, "policy");
        let mut policies = Vec::new();
        for entry in section.entries.iter() {
            let Some(name) = self.label(entry) else { continue };
            let row = self.row(&section, "*");
            let whole = self.without_split(&entry.node);
            let items = self.items_of(row, &whole);
            let rules = items.iter().map(|item| self.rule(item)).collect();
            policies.push(Policy { name, rules });
        }
        policies
    }

    /// Returns a list of rules without those that are pieces of an action, which are reported.
    fn without_split<'n>(&mut self, node: &'n Node) -> Cow<'n, Node> {
        let yaml::Value::List(nodes) = &node.value else { return Cow::Borrowed(node) };
        let mut kept = Vec::new();
        let mut rest = nodes.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = match self.report_split(first, after) {
                Some(count) => &after[count..],
                None => {
                    kept.push(first);
                    after
                }
            };
        }
        if kept.len() == nodes.len() {
            return Cow::Borrowed(node);
        }
        Cow::Owned(Node { span: node.span, value: yaml::Value::List(kept.into_iter().cloned().collect()) })
    }

    fn rule(&mut self, item: &Section<'_>) -> Rule {
        let name = self.optional(item, "name", |lowering, _, node| {
            lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
        });
        let condition = self.optional(item, "if", |lowering, _, node| Some(lowering.condition(node)));
        let row = self.row(item, "do");
        let actions = match item.entry("do") {
            Some(entry) => self.actions(row, &entry.node),
            None => {
                self.problems.push(
                    Problem::error(item.span, "this rule does nothing")
                        .expected("\"do:\" and one or more actions"),
                );
                Vec::new()
            }
        };
        Rule { span: item.span, name, condition, actions }
    }

    /// Reports an action that YAML split at its commas; returns how many of the nodes after it belong to it.
    fn report_split(&mut self, node: &Node, after: &[Node]) -> Option<usize> {
        let count = split_by_commas(node, after)?;
        let parts: Vec<&str> = std::iter::once(node)
            .chain(&after[..count])
            .filter_map(|node| match &node.value {
                yaml::Value::Scalar(scalar) => Some(scalar.text.as_str()),
                _ => None,
            })
            .collect();
        let end = after.get(count - 1).map_or(node.span, |last| last.span);
        self.problems.push(
            Problem::error(
                node.span.to(end),
                format!(
                    "inside \"[ ]\" the comma ends an item, so this action was split into {} parts",
                    parts.len()
                ),
            )
            .hint(if parts.iter().any(|part| part.contains('"')) {
                format!("quote it: '{}'", parts.join(", "))
            } else {
                format!("quote it: \"{}\"", parts.join(", "))
            }),
        );
        Some(count)
    }

    fn actions(&mut self, row: &'static Row, node: &Node) -> Vec<At<action::Action>> {
        let single = std::slice::from_ref(node);
        let nodes = match &node.value {
            yaml::Value::List(nodes) => nodes.as_slice(),
            yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Map(_) => single,
        };
        if nodes.is_empty() {
            self.problems
                .push(Problem::error(node.head(), "there is no action").expected(expected_kind(row.kind)));
        }
        let mut actions = Vec::new();
        let mut rest = nodes;
        while let Some((node, after)) = rest.split_first() {
            rest = after;
            let Some(scalar) = self.scalar(node, "an action") else { continue };
            if let Some(count) = self.report_split(node, after) {
                rest = &after[count..];
                continue;
            }
            if let Some(value) = action::parse(scalar, self.problems) {
                actions.push(At { value, span: node.span });
            }
        }
        actions
    }
}

/// Returns the condition that a text is one of these, `*.` before a name standing for anything.
fn one_of_texts(source: &At<TextSource>, texts: Vec<String>) -> Condition {
    let (below, equal): (Vec<String>, Vec<String>) =
        texts.into_iter().partition(|text| text.starts_with("*."));
    let test = |operator, values| Condition::Test(Test::Text(source.clone(), TextTest { operator, values }));
    let below: Vec<String> = below.iter().map(|text| text.trim_start_matches('*').to_owned()).collect();
    match (equal.is_empty(), below.is_empty()) {
        (false, true) => test(TextOperator::Equal, equal),
        (true, false) => test(TextOperator::Suffix, below),
        _ => Condition::Any(vec![test(TextOperator::Equal, equal), test(TextOperator::Suffix, below)]),
    }
}

/// Says what went wrong with a file, without the number that Rust adds.
pub(crate) fn io_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use crate::load::tests::Memory;
    use crate::schema::rows;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    #[test]
    fn a_default_in_words_is_what_the_parser_makes_of_it() {
        let mut words = 0;
        for default in rows().filter_map(|row| row.default) {
            if let Some(node) = Node::of_words(default) {
                assert_eq!(format!("{node:?}"), format!("{:?}", parsed_default(default)));
                words += 1;
            }
        }
        assert!(words > 50, "{words} defaults need no parser");
        for text in ["null", "a: b", "[a,b]", "[a, {b: c}]", "- a", "\"a\"", "~", ""] {
            assert!(Node::of_words(text).is_none(), "{text}");
        }
    }

    /// Lowers `text`; returns the rows that were read and how many problems there were.
    fn lower(text: &str) -> (BTreeSet<&'static str>, usize) {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("x"), text.to_owned());
        let mut problems = Vec::new();
        let parsed = yaml::parse(file, text, &|_| None, &mut problems);
        let read_file = |_: &Path| Ok(Vec::new());
        let mut lowering = Lowering {
            sources: &sources,
            problems: &mut problems,
            read_file: &read_file,
            touched: RefCell::default(),
        };
        lowering.settings(&parsed.root);
        let touched = lowering.touched.into_inner();
        (touched, problems.len())
    }

    #[test]
    fn no_setting_is_accepted_and_ignored() {
        let (touched, problems) = lower(
            "listen: [{at: 192.0.2.1, transport: tls}]\ntls: {certificates: [{certificate: a.pem}]}\n\
             local: {a.example: 192.0.2.1}\nrecords: {a: {text: www A 192.0.2.1}}\nconditions: {a: rd}\nviews: [{policy: main, if: a}]\nsets: {a: {names: a.example, lists: [\"names:x\"], tags: {tv: 192.0.2.1}}}\nupstreams: {a: {servers: [{address: 192.0.2.1}]}}\n\
             effects:\n  a: {type: nftset, table: t, set: a}\n  b: {type: ipset, set4: b}\n\
             \x20 c: {type: mikrotik-list, address: 192.0.2.1, user: u, password: p, list4: c}\n\
             \x20 d: {type: mikrotik-route, address: 192.0.2.1, user: u, password: p, gateway4: 192.0.2.2}\n\
             \x20 e: {type: http, url: http://192.0.2.1}\n  f: {type: script, command: /bin/true}\n\
             schedules: [{at: 0 4 * * *, do: dump(caches)}]\nzone-directories: [{path: z}]\nzone-templates: {t: {file: \"{name}\"}}\nzones: [{name: example.net, like: t}, {name: example.org, file: org.zone, sign: s, \
             make: [{networks: 192.0.2.0/24}], choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1}]}], \
             catalog: c.example, group: g}, {name: c.example, catalog-role: producer}]\nsigning: {s: {}}\nchecks: {c: {port: 80}}\nkeys: [{name: k, secret: AAAA}]\n\
             local-sockets: dns.sock\noblivious: {relay-to: odoh.example.net}\n",
        );
        assert_eq!(problems, 0);
        let all: BTreeSet<&str> = rows().map(|row| row.path).collect();
        assert_eq!(touched.into_iter().collect::<BTreeSet<&str>>(), all);
    }

    #[test]
    fn every_default_is_within_its_range() {
        // Each is read by the code that reads files, which reports what is not.
        assert_eq!(lower("").1, 0);
        for row in rows() {
            assert!(
                row.default.is_none() || !row.reason.is_empty(),
                "{} has no reason for its default",
                row.path
            );
            assert!(row.text.ends_with(['.', '`']), "{} has no sentence for the manual", row.path);
        }
    }

    #[test]
    fn paths_are_said_once() {
        let all: BTreeSet<&str> = rows().map(|row| row.path).collect();
        assert_eq!(all.len(), rows().count());
    }

    fn any_text() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        // Pieces of configurations, so that more than the first reader sees them.
        let keys: Vec<&'static str> = rows().map(Row::key).collect();
        let pieces = vec![
            ": ",
            ":\n",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "\"",
            "'",
            "|\n",
            ">\n",
            "#",
            "&a ",
            "*a",
            "!t ",
            "${",
            "}",
            "$${A}",
            "10s",
            "64MiB",
            "10%",
            "true",
            "auto",
            "off",
            "main",
            "default",
            "system",
            "::1",
            "[::1]:53",
            "9.9.9.9@53",
            "10.0.0.0/8",
            "udp://",
            "cache(main)",
            "forward(default)",
            "call(main)",
            "ttl(min 1s max ",
            "qname in suffix:a|",
            "mark(1) and not (",
            "client == ",
            "ä",
            "\u{0}",
            "\t",
            "---\n",
            "%YAML",
            "? ",
            "~",
        ];
        prop_oneof![
            "\\PC*",
            proptest::collection::vec(
                prop_oneof![
                    proptest::sample::select(keys).prop_map(str::to_owned),
                    proptest::sample::select(pieces).prop_map(str::to_owned),
                    "[a-z.:/$(){}0-9\"' -]{0,6}",
                ],
                0..60
            )
            .prop_map(|pieces| pieces.concat()),
        ]
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

        #[test]
        fn no_text_panics(text in any_text()) {
            let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
            match load_text(Path::new("x"), &text, &memory) {
                Ok(loaded) => {
                    let _ = crate::compile(&loaded, &[], None, &memory);
                    // What is shown can be read again.
                    let shown = crate::print::show(&loaded);
                    proptest::prop_assert!(load_text(Path::new("y"), &shown, &memory).is_ok(), "{}", shown);
                }
                Err(found) => {
                    proptest::prop_assert!(!found.is_empty());
                    for found in found {
                        let _ = (found.human(), found.json());
                        proptest::prop_assert!(!found.message.is_empty());
                    }
                }
            }
        }

        #[test]
        fn a_damaged_file_of_defaults_does_not_panic(at in 0_usize..8000, with in "[ -~\n]{0,3}", len in 0_usize..12) {
            let mut text = crate::print::defaults();
            let start = at.min(text.len());
            let end = (start + len).min(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                text.replace_range(start..end, &with);
            }
            let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
            if let Ok(loaded) = load_text(Path::new("x"), &text, &memory) {
                let _ = crate::compile(&loaded, &[], None, &memory);
            }
        }
    }
}
