//! The tree of a configuration to settings, by the table of settings.
//!
//! Nothing stops at a mistake: it is noted, the default takes its place, and reading goes on.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::Problem;
use crate::policy::{Condition, Rule, action, condition};
use crate::print::flow;
use crate::schema::{self, Kind, PREFIX_WORDS, Row, Value};
use crate::settings::{
    Bootstrap, CacheSettings, ClientSubnetUse, Cookies, Group, GroupServer, Hedge, Host, Hosts, Limits,
    Listener, LocalName, LogFormat, LogLevel, NamePattern, Pick, PickWord, Policy, Presentation, Rate,
    RcodeTerm, Server, Set, Settings, Startup, Tcp, TransportWord,
};
use crate::source::{At, FileId, Sources, Span};
use crate::suggest::{nearest, one_of};
use crate::values::{self, Misread, Prefix, Read, Secret};
use crate::yaml::{self, Entry, Node, Scalar};

/// What lowering needs besides the tree.
pub(crate) struct Lowering<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) problems: &'a mut Vec<Problem>,
    /// Reads a file that holds a secret.
    pub(crate) read_file: &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    /// The rows that were looked at: a test checks that every row is.
    pub(crate) touched: RefCell<BTreeSet<&'static str>>,
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
        let (limits, tcp) = self.limits(&root);
        let startup = Startup {
            workers: self.whole_or(&server, "workers").map(|number| number as u16),
            user: self.text_or(&server, "user"),
            state_directory: self.path(&server, "state-directory").map(|at| at.value).unwrap_or_default(),
            listen: self.listeners(&root),
            log_format: LogFormat::Auto,
            tcp,
            cache_sizes: caches.iter().map(|cache| (cache.name.value.clone(), cache.size)).collect(),
        };
        let shutdown_timeout = self.duration(&server, "shutdown-timeout");
        let presentation = Presentation {
            version: self.text_or(&server, "version"),
            hostname: self.text_or(&server, "hostname"),
            identity: self.text_or(&server, "identity"),
        };
        let allow = self.prefixes(&root, "allow");
        let upstreams = self.groups(&root);
        let hosts = self.hosts(&root);
        let local = self.local(&root);
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
        let policies = self.policies(&root);
        Settings {
            startup: Startup { log_format, ..startup },
            shutdown_timeout,
            presentation,
            allow,
            upstreams,
            caches,
            hosts,
            local,
            limits,
            cookies,
            udp_size,
            log_level,
            sets,
            policies,
            policy_is_given,
        }
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
            match self.socket_or(&item, "at") {
                Some(At { value: Some(address), span }) => {
                    let listener = Listener {
                        at: At { value: address, span },
                        udp: transports.iter().any(|at| at.value == TransportWord::Udp),
                        tcp: transports.iter().any(|at| at.value == TransportWord::Tcp),
                        proxy_protocol_from: from,
                    };
                    if transports.is_empty() {
                        let span = item.entry("transport").map_or(item.span, |entry| entry.node.head());
                        self.problems.push(
                            Problem::error(span, "this address is to speak nothing")
                                .expected("udp, tcp or both"),
                        );
                    }
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
                let mark = self.optional(&item, "mark", |lowering, row, node| {
                    lowering
                        .read_whole(row, node)
                        .map(|at| At { value: at.value.unwrap_or_default() as u32, span: at.span })
                });
                let row = self.row(&item, "address");
                if item.entry("address").is_none() {
                    self.problems.push(
                        Problem::error(item.span, "\"address\" is missing").expected(expected_kind(row.kind)),
                    );
                }
                let server = self.optional(&item, "address", |lowering, _, node| {
                    lowering.read(node, "an upstream server", server)
                });
                servers.extend(server.map(|server| GroupServer {
                    server,
                    weight,
                    source: source.map(|at| at.value),
                    interface: interface.map(|at| at.value),
                    mark: mark.map(|at| at.value),
                }));
            }
            let pick = self
                .required(&section, "pick", |lowering, _, node| lowering.read(node, "a way to choose", pick));
            let has_system = servers.iter().any(|server: &GroupServer| server.server.value == Server::System);
            if let Pick::Race(number) = pick.value
                && usize::from(number) > count
                && !has_system
            {
                self.problems.push(
                    Problem::error(pick.span, format!("a race of {number} in a group of {count}"))
                        .expected(format!("at most {count}")),
                );
            }
            groups.push(Group {
                name,
                servers,
                pick: pick.value,
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

    fn limits(&mut self, root: &Section<'_>) -> (Limits, Tcp) {
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
        let tcp = self.section(&limits, "tcp");
        let tcp = Tcp {
            connections: self.whole(&tcp, "connections") as u32,
            connections_per_client: self.whole(&tcp, "connections-per-client") as u32,
            idle_timeout: self.duration(&tcp, "idle-timeout"),
            first_query_timeout: self.duration(&tcp, "first-query-timeout"),
            pipeline: self.whole(&tcp, "pipeline") as u32,
        };
        let rate = Rate {
            per_second,
            burst: self.whole(&rate, "burst") as u32,
            slip: self.whole(&rate, "slip") as u32,
            ipv4_prefix: self.whole(&rate, "ipv4-prefix") as u8,
            ipv6_prefix: self.whole(&rate, "ipv6-prefix") as u8,
            exempt: self.prefixes(&rate, "exempt"),
        };
        (Limits { rate, waiting: self.whole(&limits, "waiting") as u32 }, tcp)
    }

    fn sets(&mut self, root: &Section<'_>) -> Vec<Set> {
        let mut sets = Vec::new();
        for (name, section) in self.named_sections(root, "sets") {
            let names: Vec<NamePattern> =
                self.list(&section, "names", |_, _, scalar| condition::name_pattern(&scalar.text)).values();
            let clients = self.prefixes(&section, "clients");
            if names.is_empty() && clients.is_empty() && section.entries.is_empty() {
                self.problems.push(
                    Problem::error(name.span, format!("set \"{}\" is empty", name.value))
                        .expected("\"names:\" or \"clients:\""),
                );
            }
            sets.push(Set { name, names, clients });
        }
        sets
    }

    fn policies(&mut self, root: &Section<'_>) -> Vec<Policy> {
        let section = self.names(root, "policy");
        let mut policies = Vec::new();
        for entry in section.entries.iter() {
            let Some(name) = self.label(entry) else { continue };
            let row = self.row(&section, "*");
            let items = self.items_of(row, &entry.node);
            let rules = items.iter().map(|item| self.rule(item)).collect();
            policies.push(Policy { name, rules });
        }
        policies
    }

    fn rule(&mut self, item: &Section<'_>) -> Rule {
        let name = self.optional(item, "name", |lowering, _, node| {
            lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
        });
        let condition = self.optional(item, "if", |lowering, _, node| {
            let scalar = lowering.scalar(node, "a condition");
            let read = scalar.and_then(|scalar| condition::parse(scalar, lowering.problems));
            // One that cannot be read holds never, so that nothing is said about what comes after the rule.
            Some(At { value: read.unwrap_or(Condition::Any(Vec::new())), span: node.span })
        });
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
            if let Some(count) = split_by_commas(node, after) {
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
                    .hint(format!("quote it: \"{}\"", parts.join(", "))),
                );
                rest = &after[count..];
                continue;
            }
            if let Some(value) = action::parse(scalar, self.problems) {
                actions.push(At { value, span: node.span });
            }
        }
        actions
    }

    // What follows reads one setting by its row.

    /// Returns the entry of `key` if it says something else than the default.
    fn said<'s>(&self, section: &'s Section<'_>, key: &str) -> Option<&'s Entry> {
        let default = self.row(section, key).default.map(|default| flow(&default_node(default)));
        section.entry(key).filter(|entry| Some(flow(&entry.node)) != default)
    }

    /// Returns the row of `key` in `section`.
    fn row(&self, section: &Section<'_>, key: &str) -> &'static Row {
        let path = section.child(key);
        let row =
            schema::find(&path).unwrap_or_else(|| unreachable!("the table of settings has a row {path}"));
        self.touched.borrow_mut().insert(row.path);
        row
    }

    /// Reports keys that no row describes.
    fn check_keys(&mut self, section: &Section<'_>, noun: &str) {
        let known: Vec<&str> = schema::children(&section.path).map(Row::key).collect();
        for entry in section.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let mut problem = Problem::error(entry.key_span, format!("unknown {noun} \"{}\"", entry.key));
            if let Some(key) = nearest(&entry.key, known.iter().copied()) {
                problem = match section.entry(key) {
                    Some(other) if other.key_span != Span::BUILT_IN => problem.hint_at(
                        format!("did you mean \"{key}\", which is set on "),
                        other.key_span,
                        "?",
                    ),
                    _ => problem.hint(format!("did you mean \"{key}\"?")),
                };
            } else if let Some(place) = elsewhere(&entry.key) {
                problem = problem.hint(format!("did you mean \"{place}\"?"));
            } else if entry.key == "<<" {
                problem = problem
                    .hint("merging mappings is not supported; write the settings out, or use \"include\"");
            } else {
                problem = problem.expected(one_of(&known));
            }
            self.problems.push(problem);
        }
    }

    /// Returns the mapping below `key`; empty if there is none.
    fn section<'n>(&mut self, parent: &'n Section<'_>, key: &str) -> Section<'n> {
        let row = self.row(parent, key);
        let path = parent.child(key);
        match parent.entry(key) {
            Some(entry) => {
                let section = self.section_of(path, &entry.node, entry.key_span);
                if matches!(row.kind, Kind::Section) {
                    self.check_keys(&section, "setting");
                }
                section
            }
            None => Section { path, entries: Cow::Borrowed(&[]), span: parent.span },
        }
    }

    fn section_of<'n>(&mut self, path: String, node: &'n Node, key_span: Span) -> Section<'n> {
        let entries = match &node.value {
            yaml::Value::Map(entries) => entries.as_slice(),
            // `cache:` with everything below it commented out.
            yaml::Value::Null => &[],
            yaml::Value::Scalar(_) | yaml::Value::List(_) => {
                self.wrong_shape(node, "a mapping (\"key: value\" lines, indented)");
                &[]
            }
        };
        Section { path, entries: Cow::Borrowed(entries), span: key_span }
    }

    /// Returns the mapping below `key`, whose keys the user chose.
    fn names<'n>(&mut self, parent: &'n Section<'_>, key: &str) -> Section<'n> {
        self.section(parent, key)
    }

    /// Checks a name that the user chose.
    fn label(&mut self, entry: &Entry) -> Option<At<String>> {
        match values::identifier(&entry.key) {
            Ok(name) => Some(At { value: name.to_owned(), span: entry.key_span }),
            Err(misread) => {
                self.problems.push(misread.into_problem(entry.key_span));
                None
            }
        }
    }

    /// Returns the mappings below the names that the user chose below `key`.
    fn named_sections<'n>(&mut self, parent: &'n Section<'n>, key: &str) -> Vec<(At<String>, Section<'n>)> {
        let row = self.row(parent, key);
        let Some(entry) = parent.entry(key) else { return Vec::new() };
        let all = self.section_of(parent.child(key), &entry.node, entry.key_span);
        let Cow::Borrowed(entries) = all.entries else { return Vec::new() };
        let mut sections = Vec::new();
        for entry in entries {
            let Some(name) = self.label(entry) else { continue };
            let section = self.section_of(format!("{}.*", row.path), &entry.node, entry.key_span);
            self.check_keys(&section, "setting");
            sections.push((name, section));
        }
        sections
    }

    /// Returns the items below `key`, each as a mapping.
    fn items<'n>(&mut self, parent: &'n Section<'_>, key: &str) -> Vec<Section<'n>> {
        let row = self.row(parent, key);
        match parent.entry(key) {
            Some(entry) => self.items_of(row, &entry.node),
            None => Vec::new(),
        }
    }

    fn items_of<'n>(&mut self, row: &'static Row, node: &'n Node) -> Vec<Section<'n>> {
        let nodes = match &node.value {
            yaml::Value::List(nodes) => nodes.as_slice(),
            yaml::Value::Null => {
                self.wrong_shape(node, "a list");
                &[]
            }
            yaml::Value::Scalar(_) | yaml::Value::Map(_) => std::slice::from_ref(node),
        };
        let path = format!("{}[]", row.path);
        let mut sections = Vec::new();
        for node in nodes {
            let entries = match &node.value {
                yaml::Value::Map(entries) => Cow::Borrowed(entries.as_slice()),
                yaml::Value::Null => {
                    self.wrong_shape(node, "something after \"-\"");
                    continue;
                }
                yaml::Value::Scalar(_) | yaml::Value::List(_) => {
                    let first = schema::children(&path).next();
                    let key = first.map_or("", Row::key).to_owned();
                    Cow::Owned(vec![Entry { key, key_span: node.span, node: node.clone() }])
                }
            };
            let section = Section { path: path.clone(), entries, span: node.head() };
            self.check_keys(&section, "setting");
            sections.push(section);
        }
        sections
    }

    /// Reads a setting that may be absent.
    fn optional<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&mut Self, &'static Row, &Node) -> Option<At<T>>,
    ) -> Option<At<T>> {
        let row = self.row(section, key);
        if let Some(entry) = section.entry(key) {
            match entry.node.value {
                yaml::Value::Null => self.problems.push(
                    Problem::error(entry.key_span, format!("\"{key}\" has no value"))
                        .expected(expected_kind(row.kind)),
                ),
                _ => {
                    if let Some(value) = read(self, row, &entry.node) {
                        return Some(value);
                    }
                }
            }
        }
        read(self, row, &default_node(row.default?))
    }

    /// Reads a setting that has a default.
    fn required<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&mut Self, &'static Row, &Node) -> Option<At<T>>,
    ) -> At<T> {
        self.optional(section, key, read)
            .unwrap_or_else(|| unreachable!("the default of {} is within its range", section.child(key)))
    }

    fn wrong_shape(&mut self, node: &Node, expected: &str) {
        let found = match node.value {
            yaml::Value::Null => "nothing",
            yaml::Value::Scalar(_) => "a single value",
            yaml::Value::List(_) => "a list",
            yaml::Value::Map(_) => "a mapping",
        };
        self.problems
            .push(Problem::error(node.head(), format!("{found} cannot stand here")).expected(expected));
    }

    fn scalar<'n>(&mut self, node: &'n Node, expected: &str) -> Option<&'n Scalar> {
        match &node.value {
            yaml::Value::Scalar(scalar) => (!scalar.is_refused).then_some(scalar),
            yaml::Value::Null | yaml::Value::List(_) | yaml::Value::Map(_) => {
                self.wrong_shape(node, expected);
                None
            }
        }
    }

    /// Reads a single value.
    fn read<T>(&mut self, node: &Node, expected: &str, read: impl Fn(&str) -> Read<T>) -> Option<At<T>> {
        let scalar = self.scalar(node, expected)?;
        match read(&scalar.text) {
            Ok(value) => Some(At { value, span: node.span }),
            Err(misread) => {
                let span = place(scalar, node, &misread);
                self.problems.push(misread.into_problem(span));
                None
            }
        }
    }

    fn boolean(&mut self, section: &Section<'_>, key: &str) -> bool {
        self.required(section, key, |lowering, _, node| lowering.read(node, "true or false", values::boolean))
            .value
    }

    fn whole_or(&mut self, section: &Section<'_>, key: &str) -> Option<u64> {
        self.required(section, key, Self::read_whole).value
    }

    fn read_whole(&mut self, row: &'static Row, node: &Node) -> Option<At<Option<u64>>> {
        let expected = expected_kind(row.kind);
        self.read(node, &expected, |text| match row.kind {
            Kind::One(Value::Whole { word, .. }) if word == Some(text) => Ok(None),
            Kind::One(Value::Whole { min, max, word }) => {
                let number = values::whole(text).map_err(|misread| or_word(misread, word, &expected))?;
                in_range(text, number, min, max, &expected).map(Some)
            }
            other => unreachable_kind(&other),
        })
    }

    fn whole(&mut self, section: &Section<'_>, key: &str) -> u64 {
        self.whole_or(section, key).unwrap_or_default()
    }

    fn duration_or(&mut self, section: &Section<'_>, key: &str) -> Option<Duration> {
        self.required(section, key, |lowering, row, node| {
            let expected = expected_kind(row.kind);
            lowering.read(node, &expected, |text| match row.kind {
                Kind::One(Value::Duration { word, .. }) if word == Some(text) => Ok(None),
                Kind::One(Value::Duration { min, max, word }) => {
                    let duration =
                        values::duration(text).map_err(|misread| or_word(misread, word, &expected))?;
                    in_range(text, duration.as_millis() as u64, min, max, &expected)?;
                    Ok(Some(duration))
                }
                other => unreachable_kind(&other),
            })
        })
        .value
    }

    fn duration(&mut self, section: &Section<'_>, key: &str) -> Duration {
        self.duration_or(section, key).unwrap_or_default()
    }

    fn hedge(&mut self, section: &Section<'_>, key: &str) -> Hedge {
        self.required(section, key, |lowering, row, node| {
            let expected = expected_kind(row.kind);
            lowering.read(node, &expected, |text| match (row.kind, text) {
                (_, "auto") => Ok(Hedge::Auto),
                (_, "off") => Ok(Hedge::Off),
                (Kind::One(Value::Hedge { min, max }), text) => {
                    let duration =
                        values::duration(text).map_err(|misread| or_word(misread, Some("off"), &expected))?;
                    in_range(text, duration.as_millis() as u64, min, max, &expected)?;
                    Ok(Hedge::After(duration))
                }
                (other, _) => unreachable_kind(&other),
            })
        })
        .value
    }

    fn size(&mut self, section: &Section<'_>, key: &str) -> u64 {
        self.required(section, key, |lowering, row, node| {
            let expected = expected_kind(row.kind);
            lowering.read(node, &expected, |text| match row.kind {
                Kind::One(Value::Size { min, max }) => {
                    in_range(text, values::size(text)?, min, max, &expected)
                }
                other => unreachable_kind(&other),
            })
        })
        .value
    }

    fn percent_or(&mut self, section: &Section<'_>, key: &str) -> Option<u8> {
        self.required(section, key, |lowering, row, node| {
            let expected = expected_kind(row.kind);
            lowering.read(node, &expected, |text| match row.kind {
                Kind::One(Value::Percent { word, .. }) if word == Some(text) => Ok(None),
                Kind::One(Value::Percent { min, max, word }) => {
                    let percent =
                        values::percent(text).map_err(|misread| or_word(misread, word, &expected))?;
                    in_range(text, percent.into(), min.into(), max.into(), &expected)?;
                    Ok(Some(percent))
                }
                other => unreachable_kind(&other),
            })
        })
        .value
    }

    fn one_word<T>(words: &[&str], text: &str, parse: impl Fn(&str) -> Option<T>) -> Read<T> {
        parse(text).ok_or_else(|| {
            let misread = values::unknown_word(text, "word", words);
            Misread { message: format!("\"{text}\" cannot stand here"), ..misread }
        })
    }

    fn word<T>(&mut self, section: &Section<'_>, key: &str, parse: fn(&str) -> Option<T>) -> T {
        self.required(section, key, |lowering, row, node| {
            let Kind::One(Value::Word(words)) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &one_of(words), |text| Self::one_word(words, text, parse))
        })
        .value
    }

    fn text_or(&mut self, section: &Section<'_>, key: &str) -> Option<String> {
        self.required(section, key, |lowering, row, node| {
            let Kind::One(Value::Text { word }) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &expected_kind(row.kind), |text| match word {
                Some(word) if word == text => Ok(None),
                _ if text.len() > TEXT_OCTETS_MAX || text.is_empty() => Err(Misread {
                    at: 0..text.len(),
                    message: if text.is_empty() {
                        "the text is empty".to_owned()
                    } else {
                        "the text is too long".to_owned()
                    },
                    expected: Some(format!("1 to {TEXT_OCTETS_MAX} octets")),
                    hint: None,
                }),
                _ => Ok(Some(text.to_owned())),
            })
        })
        .value
    }

    fn path(&mut self, section: &Section<'_>, key: &str) -> Option<At<PathBuf>> {
        self.optional(section, key, |lowering, _, node| lowering.read(node, "a path", path))
    }

    /// Returns a path relative to the directory of the file that says it.
    fn beside(&self, file: FileId, path: &Path) -> PathBuf {
        match self.sources.file(file).and_then(|source| source.path.parent()) {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        }
    }

    fn socket_or(&mut self, section: &Section<'_>, key: &str) -> Option<At<Option<SocketAddr>>> {
        let row = self.row(section, key);
        if section.entry(key).is_none() {
            self.problems.push(
                Problem::error(section.span, format!("\"{key}\" is missing"))
                    .expected(expected_kind(row.kind)),
            );
        }
        self.optional(section, key, |lowering, row, node| {
            let Kind::One(Value::Socket { port, word }) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &expected_kind(row.kind), |text| match word {
                Some(word) if word == text => Ok(None),
                _ => values::socket_address(text, port).map(Some),
            })
        })
    }

    fn secret(&mut self, section: &Section<'_>, key: &str) -> Option<Secret> {
        let row = self.row(section, key);
        let Kind::One(Value::Secret { word }) = row.kind else { unreachable_kind(&row.kind) };
        let entry = section.entry(key)?;
        let expected = "32 hexadecimal digits, or \"file:\" and a path";
        if matches!(entry.node.value, yaml::Value::Null) {
            self.problems.push(
                Problem::error(entry.key_span, format!("\"{key}\" has no value"))
                    .expected(expected_kind(row.kind)),
            );
            return None;
        }
        let scalar = self.scalar(&entry.node, expected)?;
        if word == Some(scalar.text.as_str()) {
            return None;
        }
        let span = entry.node.span;
        let text = match scalar.text.strip_prefix("file:") {
            None => scalar.text.clone(),
            Some(path) => {
                let path = self.beside(span.file, Path::new(path));
                match (self.read_file)(&path) {
                    Ok(octets) => String::from_utf8_lossy(&octets).trim().to_owned(),
                    Err(error) => {
                        let message = format!("cannot read \"{}\": {}", path.display(), io_text(&error));
                        self.problems.push(Problem::error(span, message));
                        return None;
                    }
                }
            }
        };
        // The text itself is not quoted: it may be most of a secret.
        match values::hex(&text).filter(|octets| octets.len() == SECRET_OCTETS) {
            Some(octets) => Some(Secret::new(octets)),
            None => {
                self.problems.push(
                    Problem::error(span, "this is not a key")
                        .expected(expected)
                        .hint("\"openssl rand -hex 16\" prints one"),
                );
                None
            }
        }
    }

    /// Reads a list of values, of which one may stand alone.
    fn list<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&mut Self, &Value, &Scalar) -> Read<T>,
    ) -> Vec<At<T>> {
        let row = self.row(section, key);
        match section.entry(key) {
            Some(entry) if matches!(entry.node.value, yaml::Value::Null) => {
                self.problems.push(
                    Problem::error(entry.key_span, format!("\"{key}\" has no value"))
                        .expected(expected_kind(row.kind))
                        .hint("an empty list is written \"[]\""),
                );
                Vec::new()
            }
            Some(entry) => self.list_of(row, &entry.node, read),
            None => row.default.map_or_else(Vec::new, |text| self.list_of(row, &default_node(text), read)),
        }
    }

    fn list_of<T>(
        &mut self,
        row: &'static Row,
        node: &Node,
        read: impl Fn(&mut Self, &Value, &Scalar) -> Read<T>,
    ) -> Vec<At<T>> {
        let Kind::List(value) = row.kind else { unreachable_kind(&row.kind) };
        let nodes = match &node.value {
            yaml::Value::List(nodes) => nodes.as_slice(),
            yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Map(_) => std::slice::from_ref(node),
        };
        let expected = expected_value(value);
        let mut all = Vec::new();
        for node in nodes {
            let Some(scalar) = self.scalar(node, &expected) else { continue };
            match read(self, &value, scalar) {
                Ok(value) => all.push(At { value, span: node.span }),
                Err(misread) => {
                    let span = place(scalar, node, &misread);
                    self.problems.push(misread.into_problem(span));
                }
            }
        }
        all
    }

    fn prefixes(&mut self, section: &Section<'_>, key: &str) -> Vec<Prefix> {
        let lists = self.list(section, key, |_, _, scalar| prefixes(&scalar.text));
        lists.into_iter().flat_map(|at| at.value).collect()
    }
}

/// Octets of a text, so that it fits a TXT string (RFC 1035 §3.3).
const TEXT_OCTETS_MAX: usize = 255;
/// Octets of a cookie key (RFC 9018 §4.4: SipHash-2-4).
const SECRET_OCTETS: usize = 16;

/// Drops the places.
trait Values<T> {
    fn values(self) -> Vec<T>;
}

impl<T> Values<T> for Vec<At<T>> {
    fn values(self) -> Vec<T> {
        self.into_iter().map(|at| at.value).collect()
    }
}

/// A row's kind and the way it is read do not belong together: found by the first test that lowers anything.
fn unreachable_kind(found: &dyn std::fmt::Debug) -> ! {
    unreachable!("the row is read in the way of another kind than {found:?}")
}

/// Returns the place of what is wrong: the part of the text, or the whole value with its quotation marks.
fn place(scalar: &Scalar, node: &Node, misread: &Misread) -> Span {
    if misread.at == (0..scalar.text.len()) {
        node.span
    } else {
        scalar.span(misread.at.start, misread.at.end)
    }
}

fn in_range(text: &str, value: u64, min: u64, max: u64, expected: &str) -> Read<u64> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let message = format!("\"{text}\" is too {}", if value < min { "small" } else { "large" });
    Err(Misread { at: 0..text.len(), message, expected: Some(expected.to_owned()), hint: None })
}

/// Names the word that could have stood in place of the value, and suggests it when it was nearly written.
fn or_word(misread: Misread, word: Option<&str>, expected: &str) -> Misread {
    let Some(word) = word else { return misread };
    let near = misread.message.split('"').nth(1).and_then(|found| nearest(found, [word])).is_some();
    let hint = if near { Some(format!("did you mean \"{word}\"?")) } else { misread.hint };
    let expected = if misread.at.start == 0 { Some(expected.to_owned()) } else { misread.expected };
    Misread { expected, hint, ..misread }
}

/// Finds a setting of the same name somewhere else.
fn elsewhere(key: &str) -> Option<&'static str> {
    schema::ROWS.iter().find(|row| row.key() == key).map(|row| row.path)
}

/// Says what a setting takes.
pub(crate) fn expected_kind(kind: Kind) -> String {
    match kind {
        Kind::Section | Kind::Named(_) => "a mapping".to_owned(),
        Kind::Items => "a list".to_owned(),
        Kind::List(value) => format!("a list, each {}", expected_value(value)),
        Kind::One(value) => expected_value(value),
    }
}

/// Says what a value may be.
pub(crate) fn expected_value(value: Value) -> String {
    let or = |text: String, word: Option<&str>| match word {
        Some(word) => format!("{text}, or \"{word}\""),
        None => text,
    };
    let time = |ms: u64| values::duration_text(Duration::from_millis(ms));
    match value {
        Value::Bool => "true or false".to_owned(),
        Value::Whole { min, max, word } => or(format!("a number from {min} to {max}"), word),
        Value::Duration { min, max, word } => {
            or(format!("a duration from {} to {}", time(min), time(max)), word)
        }
        Value::Hedge { min, max } => {
            format!("\"auto\", \"off\", or a duration from {} to {}", time(min), time(max))
        }
        Value::Size { min, max } => {
            format!("a size from {} to {}", values::size_text(min), values::size_text(max))
        }
        Value::Percent { min, max, word } => or(format!("a percentage from {min}% to {max}%"), word),
        Value::Word(words) => one_of(words),
        Value::Text { word } => or("a text".to_owned(), word),
        Value::Path => "a path".to_owned(),
        Value::Glob => "a path, which may hold \"*\" and \"?\"".to_owned(),
        Value::Address => "an IP address".to_owned(),
        Value::Socket { word, .. } => or("an address, with a port if it is not 53".to_owned(), word),
        Value::Prefix => format!("an address prefix, or one of {}", PREFIX_WORDS.join(", ")),
        Value::Server => {
            "\"system\", an address, a host name, or either after \"udp://\" or \"tcp://\"".to_owned()
        }
        Value::Pick => "ordered, fastest, balanced or race(2)".to_owned(),
        Value::RcodeTerm => format!("\"unusable\", or {}", one_of(&values::RCODES.map(|(word, _)| word))),
        Value::Secret { word } => or("32 hexadecimal digits, or \"file:\" and a path".to_owned(), word),
        Value::NamePattern => "\"suffix:example.org\" or \"exact:example.org\"".to_owned(),
        Value::Condition => "a condition".to_owned(),
        Value::Action => "an action such as \"cache(main)\"".to_owned(),
        Value::Label => "a name".to_owned(),
    }
}

fn path(text: &str) -> Read<PathBuf> {
    if text.is_empty() || text.contains('\0') {
        let message = format!("\"{}\" is not a path", text.escape_default());
        return Err(Misread { at: 0..text.len(), message, expected: None, hint: None });
    }
    Ok(PathBuf::from(text))
}

/// Octets of the name of an interface (`IFNAMSIZ`, less the octet at its end).
const INTERFACE_OCTETS_MAX: usize = 15;

fn interface(text: &str) -> Read<String> {
    let is_one = (1..=INTERFACE_OCTETS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    if is_one {
        return Ok(text.to_owned());
    }
    Err(Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not the name of an interface"),
        expected: Some("a name such as eth0".to_owned()),
        hint: None,
    })
}

/// Reads a response code, or the word for all that are no answer.
fn rcode_term(text: &str) -> Read<RcodeTerm> {
    if text == "unusable" {
        return Ok(RcodeTerm::Unusable);
    }
    values::rcode(text).map(RcodeTerm::One).map_err(|misread| {
        let expected = Some(expected_value(Value::RcodeTerm));
        match nearest(text, ["unusable"]) {
            Some(word) => Misread { expected, hint: Some(format!("did you mean \"{word}\"?")), ..misread },
            None => Misread { expected, ..misread },
        }
    })
}

/// Reads a prefix or one of the words for several.
fn prefixes(text: &str) -> Read<Vec<Prefix>> {
    if PREFIX_WORDS.contains(&text) {
        return Ok(values::prefix_word(text));
    }
    values::prefix(text).map(|prefix| vec![prefix]).map_err(|misread| match nearest(text, PREFIX_WORDS) {
        Some(word) => Misread { hint: Some(format!("did you mean \"{word}\"?")), ..misread },
        None if text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.contains(':') => {
            Misread { expected: Some(expected_value(Value::Prefix)), ..misread }
        }
        None => misread,
    })
}

/// URL schemes that name an encrypted transport.
const LATER_SCHEMES: [&str; 7] = ["tls", "dot", "https", "doh", "h3", "quic", "sdns"];

/// Reads an upstream server.
fn server(text: &str) -> Read<Server> {
    let wrong = |at: std::ops::Range<usize>, message: String| Misread {
        at,
        message,
        expected: Some(expected_value(Value::Server)),
        hint: None,
    };
    if text == "system" {
        return Ok(Server::System);
    }
    let (tcp_only, rest) = match text.split_once("://") {
        None => (false, text),
        Some(("udp", rest)) => (false, rest),
        Some(("tcp", rest)) => (true, rest),
        Some((scheme, _)) if LATER_SCHEMES.contains(&scheme) => {
            return Err(wrong(
                0..scheme.len() + 3,
                format!("\"{scheme}://\" is not supported by this version yet"),
            ));
        }
        Some((scheme, _)) => {
            return Err(wrong(0..scheme.len() + 3, format!("unknown transport \"{scheme}://\"")));
        }
    };
    let start = text.len() - rest.len();
    if let Some(at) = rest.find('#') {
        let message = format!("\"{}\" is for TLS, which is not supported by this version yet", &rest[at..]);
        return Err(wrong(start + at..text.len(), message));
    }
    let misread = match values::socket_address(rest, 53) {
        Ok(address) if address.port() == 0 => {
            return Err(wrong(start..text.len(), format!("\"{rest}\" has port 0")));
        }
        Ok(address) => return Ok(Server::One { tcp_only, host: Host::Address(address) }),
        Err(misread) => misread,
    };
    let (name, port) = match rest.rsplit_once([':', '@']) {
        Some((name, port)) => (name, Some(port)),
        None => (rest, None),
    };
    // What has no letter was meant to be an address; what has a colon left, too.
    let is_name = name.contains(|c: char| c.is_ascii_alphabetic()) && !name.contains([':', '/', '[', '%']);
    if !is_name {
        let at = start + misread.at.start..start + misread.at.end;
        return Err(Misread { at, expected: Some(expected_value(Value::Server)), ..misread });
    }
    if name == "system" || nearest(name, ["system"]).is_some() && !name.contains('.') {
        return Err(Misread {
            hint: Some("did you mean \"system\"?".to_owned()),
            ..wrong(0..text.len(), format!("\"{text}\" is not a server"))
        });
    }
    let port = match port {
        None => 53,
        Some(part) => part.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(|| Misread {
            expected: Some("1 to 65535".to_owned()),
            ..wrong(text.len() - part.len()..text.len(), format!("\"{part}\" is not a port"))
        })?,
    };
    match values::name(name) {
        Ok(name) => Ok(Server::One { tcp_only, host: Host::Name { name, port } }),
        Err(misread) => Err(Misread { at: start + misread.at.start..start + misread.at.end, ..misread }),
    }
}

/// The most servers of one race: each costs a packet for every query.
const RACE_MAX: u8 = 8;

/// Reads `ordered` or `race(2)`.
fn pick(text: &str) -> Read<Pick> {
    let wrong = |message: String, hint: Option<String>| Misread {
        at: 0..text.len(),
        message,
        expected: Some(expected_value(Value::Pick)),
        hint,
    };
    let (word, argument) = match text.split_once('(') {
        Some((word, argument)) => (word.trim_end(), argument.strip_suffix(')').map(str::trim)),
        None => (text, None),
    };
    match (PickWord::parse(word), argument) {
        (Some(PickWord::Ordered), None) => Ok(Pick::Ordered),
        (Some(PickWord::Fastest), None) => Ok(Pick::Fastest),
        (Some(PickWord::Balanced), None) => Ok(Pick::Balanced),
        (Some(PickWord::Race), Some(number)) => number
            .parse::<u8>()
            .ok()
            .filter(|number| (2..=RACE_MAX).contains(number))
            .map(Pick::Race)
            .ok_or_else(|| {
                wrong(
                    format!("\"{number}\" is not a number of servers for a race"),
                    Some(format!("2 to {RACE_MAX}")),
                )
            }),
        (Some(PickWord::Race), None) => {
            Err(wrong("a race needs the number of servers".to_owned(), Some("\"race(2)\"?".to_owned())))
        }
        (Some(_), Some(_)) => Err(wrong(format!("\"{word}\" takes nothing in parentheses"), None)),
        (None, _) => {
            let hint = nearest(word, PickWord::WORDS.iter().copied())
                .map(|word| format!("did you mean \"{word}\"?"));
            Err(wrong(format!("unknown way to choose \"{word}\""), hint))
        }
    }
}

/// Returns how many of the nodes after `node` belong to it, if it is an action that YAML split at its commas.
fn split_by_commas(node: &Node, after: &[Node]) -> Option<usize> {
    let depth = |node: &Node| match &node.value {
        yaml::Value::Scalar(scalar) => {
            Some(scalar.text.matches('(').count() as i64 - scalar.text.matches(')').count() as i64)
        }
        yaml::Value::Null | yaml::Value::List(_) | yaml::Value::Map(_) => None,
    };
    let mut open = depth(node)?;
    if open <= 0 {
        return None;
    }
    for (count, next) in after.iter().enumerate() {
        open += depth(next)?;
        if open <= 0 {
            return Some(count + 1);
        }
    }
    None
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
    use crate::schema::ROWS;

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
            "local: {a.example: 192.0.2.1}\nsets: {a: {names: a.example}}\nupstreams: {a: {servers: [{address: 192.0.2.1}]}}\n",
        );
        assert_eq!(problems, 0);
        let all: BTreeSet<&str> = ROWS.iter().map(|row| row.path).collect();
        assert_eq!(touched.into_iter().collect::<BTreeSet<&str>>(), all);
    }

    #[test]
    fn every_default_is_within_its_range() {
        // Each is read by the code that reads files, which reports what is not.
        assert_eq!(lower("").1, 0);
        for row in ROWS {
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
        let all: BTreeSet<&str> = ROWS.iter().map(|row| row.path).collect();
        assert_eq!(all.len(), ROWS.len());
    }

    fn check_server(text: &str, expect: Result<Server, &str>) {
        match (server(text), expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{text}"),
            (Err(misread), Err(part)) => {
                assert!(misread.message.contains(part), "{text}: {}", misread.message);
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn upstream_servers_are_read_in_each_notation() {
        let at = |tcp_only: bool, address: &str| {
            Ok(Server::One { tcp_only, host: Host::Address(address.parse().expect("an address")) })
        };
        check_server("system", Ok(Server::System));
        check_server("9.9.9.9", at(false, "9.9.9.9:53"));
        check_server("9.9.9.9@5353", at(false, "9.9.9.9:5353"));
        check_server("udp://9.9.9.9:5353", at(false, "9.9.9.9:5353"));
        check_server("tcp://[2620:fe::fe]", at(true, "[2620:fe::fe]:53"));
        check_server("2620:fe::fe", at(false, "[2620:fe::fe]:53"));
        let name = values::name("dns.quad9.net").expect("a name");
        check_server(
            "dns.quad9.net",
            Ok(Server::One { tcp_only: false, host: Host::Name { name, port: 53 } }),
        );
        check_server(
            "tcp://dns.quad9.net:54",
            Ok(Server::One { tcp_only: true, host: Host::Name { name, port: 54 } }),
        );
        for scheme in ["tls", "https", "quic", "sdns"] {
            check_server(&format!("{scheme}://dns.quad9.net"), Err("is not supported by this version yet"));
        }
        check_server("9.9.9.9@853#dns.quad9.net", Err("is for TLS"));
        check_server("ftp://9.9.9.9", Err("unknown transport"));
        check_server("9.9.9", Err("is not an address"));
        check_server("9.9.9.9/24", Err("is not an address"));
        check_server("9.9.9.9:0", Err("has port 0"));
        check_server("dns.quad9.net:0", Err("is not a port"));
        check_server("sytem", Err("is not a server"));
        check_server("", Err("is not an address"));
    }

    #[test]
    fn ways_to_choose_are_read() {
        assert_eq!(pick("race(2)"), Ok(Pick::Race(2)));
        assert_eq!(pick("ordered"), Ok(Pick::Ordered));
        for wrong in ["race", "race(1)", "race(9)", "race(2", "ordered(2)", "", "random"] {
            assert!(pick(wrong).is_err(), "{wrong}");
        }
    }

    fn any_text() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        // Pieces of configurations, so that more than the first reader sees them.
        let keys: Vec<&'static str> = ROWS.iter().map(Row::key).collect();
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
