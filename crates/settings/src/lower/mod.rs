//! The tree of a configuration to settings, by the table of settings. Each group of settings has a
//! module.
//!
//! Nothing stops at a mistake: it is noted, the default takes its place, and reading goes on.

mod authority;
mod cache;
mod certificates;
mod checks;
mod control;
mod dnscrypt;
mod dnstap;
mod jobs;
mod limits;
mod listeners;
mod local;
mod log;
mod notation;
mod oidc;
mod policy;
mod read;
mod records;
mod resolvers;
mod second_level;
mod sets;
mod signing;
mod sockets;
mod stamp;
mod upstreams;
mod webhooks;
mod xdp;
mod zones;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::Path;

use crate::groups::{
    CacheSettings, Cookies, Limits, LogLevel, Presentation, Settings, Startup, StayAwake, UnboundStatistics,
};
use diagnostic::{At, Problem, Sources, Span, io_text};
pub use notation::server;
use plan::Secret;
use read::unreachable_kind;
use schema::{DaemonizeWord, Kind, Value, default_node};
use yaml::{Entry, Node};
pub use zones::{Known, added_zone, check_chosen, named_file};

/// What lowering needs besides the tree.
pub(crate) struct Lowering<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) problems: &'a mut Vec<Problem>,
    /// Reads a file, such as one that holds a secret.
    pub(crate) read_file: &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    /// Says whether every user of the machine may read a file.
    pub(crate) is_open_to_all: &'a dyn Fn(&Path) -> bool,
    /// The rows that were looked at: a test checks that every row is.
    #[cfg(test)]
    pub(crate) touched: std::cell::RefCell<std::collections::BTreeSet<&'static str>>,
}

/// A mapping whose keys are rows of the schema.
struct Section<'n> {
    path: String,
    entries: Cow<'n, [Entry]>,
    /// Defaults of what the entries do not say, written out; in place of entries that are empty.
    defaults: &'n [Entry],
    span: Span,
}

impl<'n> Section<'n> {
    /// Returns all that a tree says, and defaults beside it.
    fn of_top(tree: &'n Node, defaults: &'n [Entry]) -> Self {
        let (path, entries) = (String::new(), Cow::Borrowed(entries_of(tree)));
        Self { path, entries, defaults, span: tree.span }
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.defaults.iter().chain(self.entries.iter()).find(|entry| entry.key == key)
    }

    fn child(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Returns what a tree says.
fn entries_of(root: &Node) -> &[Entry] {
    match &root.value {
        yaml::Value::Map(entries) => entries,
        yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::List(_) => &[],
    }
}

/// Returns the rows of which a file that says nothing has the default, written out.
fn defaults_beside(entries: &[Entry]) -> Vec<Entry> {
    let mut defaults = Vec::new();
    for row in schema::children("") {
        let has_default = matches!(row.kind, Kind::Named(_) | Kind::Items);
        let is_absent = entries
            .iter()
            .find(|entry| entry.key == row.key())
            .is_none_or(|entry| matches!(entry.node.value, yaml::Value::Null));
        if let (true, true, Some(default)) = (has_default, is_absent, row.default) {
            defaults.push(Entry {
                key: row.key().to_owned(),
                key_span: Span::BUILT_IN,
                node: default_node(default),
            });
        }
    }
    defaults
}

/// Returns whether nobody has said how queries are answered: not at all, or in other policies than
/// the one that they begin in.
fn is_built_in(policies: &Node) -> bool {
    match &policies.value {
        yaml::Value::Null => true,
        yaml::Value::Map(entries) => {
            entries.iter().any(|entry| entry.key == ::policy::ENTRY && entry.key_span == Span::BUILT_IN)
        }
        yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::List(_) => false,
    }
}

impl Lowering<'_> {
    /// Returns the settings of a whole tree.
    pub(crate) fn settings(&mut self, root: &Node) -> Settings {
        let policy_is_given = self.is_policy_given(root);
        let defaults = defaults_beside(entries_of(root));
        let root = Section::of_top(root, &defaults);
        self.check_keys(&root, "setting");
        // Read and put in place before this; only the row is noted.
        self.row(&root, "include");

        let server = self.section(&root, "server");
        let caches = self.caches(&root);
        let (startup, limits, unbound_statistics) = self.startup(&root, &server, &caches);
        let presentation = self.presentation(&server);
        let tls = self.tls(&root);
        let dnscrypt = self.dnscrypt(&root, startup.listen.as_deref());
        let keys = self.keys(&root);
        let certificates = self.certificates(&root, (&startup, &tls), &keys);
        let allow_at = root.entry("allow").map_or(Span::BUILT_IN, |entry| entry.node.span);
        let allow = At { value: self.prefixes(&root, "allow"), span: allow_at };
        let deny_set = self.deny_set(&root);
        let server_resolvers = self.server_resolvers(&server);
        let outgoing = self.outgoing(&root);
        let upstreams = self.groups(&root);
        let resolvers = self.resolvers(&root);
        let hosts = self.hosts(&root);
        let local = self.local(&root);
        let signing = self.signing(&root, &keys);
        let checks = self.checks(&root);
        let (zones, template_sets) = self.zones(&root, (&signing, &checks), &keys, &resolvers);
        let zone_directories = self.zone_directories(&root, &signing, &keys, &zones);
        let rotate = self.boolean(&server, "rotate");
        let (transfers, records) = (self.transfers(&root), self.records(&root));
        let cookies = self.cookies(&root);
        let (udp_size, announced_size, padding, [extended_errors, takes_dnssec_ok]) = self.edns(&root);
        let log_level = self.log_level(&root);
        let sets = self.sets(&root);
        let conditions = self.conditions(&root);
        let effects = self.effects(&root);
        let recorder = self.recorder(&root);
        let dnstap = self.dnstap(&root);
        let schedules = self.schedules(&root);
        let policies = self.policies(&root);
        let views = self.views(&root);
        let split = self.split(&root, &caches);
        Settings {
            startup,
            presentation,
            allow,
            deny: self.prefixes(&root, "deny"),
            deny_set,
            trusted_peers: self.prefixes(&root, "trusted-peers"),
            server_resolvers,
            outgoing,
            upstreams,
            resolvers,
            caches,
            hosts,
            local,
            zones,
            has_added_zones: false,
            checks,
            template_sets,
            signing,
            zone_directories,
            rotate,
            minimal_any: self.boolean(&server, "minimal-any"),
            fills_truncated: self.boolean(&server, "fill-truncated"),
            alias: self.alias(&root),
            keys,
            transfers,
            records,
            relay_to: self.relay_to(&root),
            tls,
            certificates,
            dnscrypt,
            limits,
            cookies,
            udp_size,
            announced_size,
            padding,
            extended_errors,
            takes_dnssec_ok,
            log_level,
            unbound_statistics,
            changes: self.changes_allowed(&root),
            api: self.api_settings(&root),
            audit_sinks: self.audit_sinks(&root),
            webhooks: self.webhooks(&root),
            sets,
            effects,
            recorder,
            dnstap,
            schedules,
            conditions,
            views,
            split,
            split_at: None,
            policies,
            policy_is_given,
        }
    }

    /// Reads the set of those who are denied.
    fn deny_set(&mut self, root: &Section<'_>) -> Option<At<String>> {
        self.optional(root, "deny-set", |lowering, _, node| {
            lowering.read(node, "the name of a set", |text| values::identifier(text).map(str::to_owned))
        })
    }

    /// Reads how many transfers there may be at a time.
    fn transfers(&mut self, root: &Section<'_>) -> plan::zones::TransferLimits {
        let section = self.section(root, "transfers");
        plan::zones::TransferLimits {
            outgoing_max: self.whole(&section, "outgoing") as u16,
            outgoing_client_max: self.whole(&section, "outgoing-client") as u16,
            incoming_max: self.whole(&section, "incoming") as u16,
            octets_max: self.size(&section, "size"),
        }
    }

    /// Returns whether a tree has a policy, and reports one that has nothing to do with settings.
    fn is_policy_given(&mut self, root: &Node) -> bool {
        match &root.value {
            yaml::Value::Map(entries) => {
                entries.iter().any(|entry| entry.key == "policy" && !is_built_in(&entry.node))
            }
            yaml::Value::Null => false,
            yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::List(_) => {
                self.problems.push(
                    Problem::error(root.head(), "this file holds no settings")
                        .expected("\"key: value\" lines"),
                );
                false
            }
        }
    }

    /// Reads what the server says of itself.
    fn presentation(&mut self, server: &Section<'_>) -> Presentation {
        Presentation {
            version: self.text_or(server, "version"),
            hostname: self.text_or(server, "hostname").map(|text| self.or_host(text)),
            identity: self.text_or(server, "identity").map(|text| self.or_host(text)),
            trust_anchors: self.boolean(server, "trust-anchors"),
            nsid: self.nsid(server),
        }
    }

    /// Returns a text, or the name of this machine where that is wanted.
    fn or_host(&self, text: String) -> String {
        if text != "host" {
            return text;
        }
        let name = (self.read_file)(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
        String::from_utf8_lossy(&name).trim().to_owned()
    }

    /// Reads the NSID: a text, or octets in hexadecimal.
    fn nsid(&mut self, server: &Section<'_>) -> Option<Vec<u8>> {
        let text = self.text_or(server, "nsid")?;
        if text == "hidden" {
            return Some(Vec::new());
        }
        let Some(digits) = text.strip_prefix("hex:") else { return Some(text.into_bytes()) };
        let octets = values::hex(digits);
        if octets.is_none() {
            let span = server.entry("nsid").map_or(server.span, |entry| entry.node.span);
            let problem = Problem::error(span, format!("\"{digits}\" is not hexadecimal"));
            self.problems.push(problem.expected("two digits for each octet, such as \"hex:c0ffee\""));
        }
        octets
    }

    /// Reads what only a new start changes, and the limits, some of which are of that kind.
    fn startup(
        &mut self,
        root: &Section<'_>,
        server: &Section<'_>,
        caches: &[CacheSettings],
    ) -> (Startup, Limits, UnboundStatistics) {
        let (limits, tcp, handshakes, signatures_memory) = self.limits(root);
        self.stale_in_time(root, caches, limits.discard_timeout);
        let xdp = self.xdp(root);
        let (unbound_channel, unbound_statistics) = self.control(root);
        let (socket_group, socket_role) = self.socket_users(root);
        let startup = Startup {
            workers: self.whole_or(server, "workers").map(|number| number as u16),
            stay_awake: self.word(server, "stay-awake", StayAwake::parse),
            user: self.text_or(server, "user"),
            state_directory: self.path(server, "state-directory").map(|at| at.value).unwrap_or_default(),
            shutdown_timeout: self.duration(server, "shutdown-timeout"),
            listen: self.listeners(root),
            local_sockets: self.local_sockets(root),
            oblivious_target: self.oblivious(root),
            sockets: self.sockets(root),
            xdp,
            metrics: self.metrics(root),
            socket_group,
            socket_role,
            control: self.api(root),
            audit_key: self.audit_key(root),
            log: self.log(root),
            daemonize: match self.word(server, "daemonize", DaemonizeWord::parse) {
                DaemonizeWord::Auto => None,
                DaemonizeWord::Yes => Some(true),
                DaemonizeWord::No => Some(false),
            },
            pid_file: self.path(server, "pid-file").map(|at| self.beside(at.span.file, &at.value)),
            unbound_channel,
            tcp,
            tls: handshakes,
            signatures_memory,
            cache_sizes: caches.iter().map(|cache| (cache.name.value.clone(), cache.size)).collect(),
        };
        (startup, limits, unbound_statistics)
    }

    fn cookies(&mut self, root: &Section<'_>) -> Cookies {
        let section = self.section(root, "cookies");
        let mut cookies = Cookies {
            enabled: self.boolean(&section, "enabled"),
            secret: self.secret(&section, "secret"),
            other_secret: self.secret(&section, "other-secret"),
            file: None,
            required: self.prefixes(&section, "required"),
            required_on: self
                .texts(&section, "required-on", |text| values::identifier(text).map(str::to_owned)),
            not_required: self.prefixes(&section, "not-required"),
        };
        let demands = ["required", "required-on"].into_iter().find_map(|key| self.said(&section, key));
        if let Some(entry) = demands.filter(|_| !cookies.enabled) {
            let message =
                "no client gets a cookie that it could show: these are only answered over connections";
            self.problems.push(Problem::warning(entry.key_span, message).hint("set \"enabled\" beside it"));
        }
        if let Some(at) = self.path(&section, "secrets-file") {
            let path = self.beside(at.span.file, &at.value);
            if let [first, others @ ..] = &self.secrets_of(&path, at.span)[..] {
                cookies.secret = Some(first.clone());
                cookies.other_secret = others.first().cloned();
            }
            cookies.file = Some(path);
        }
        cookies
    }

    /// Reads the keys of cookies in a file; none if there is no such file yet.
    fn secrets_of(&mut self, path: &Path, span: Span) -> Vec<Secret> {
        let octets = match (self.read_file)(path) {
            Ok(octets) => octets,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                let message = format!("cannot read \"{}\": {}", path.display(), io_text(&error));
                self.problems.push(Problem::error(span, message));
                return Vec::new();
            }
        };
        self.warn_of_open_file(path, span);
        let text = String::from_utf8_lossy(&octets);
        let keys = text.split_whitespace().map(|word| values::hex(word).filter(|key| key.len() == 16));
        let keys: Option<Vec<Secret>> = keys.map(|key| key.map(Secret::new)).collect();
        match keys {
            Some(keys) if keys.len() <= 2 => keys,
            // What is there is not quoted: it may be most of a secret.
            _ => {
                let message = format!("\"{}\" has something else than keys of cookies", path.display());
                let problem = Problem::error(span, message);
                self.problems.push(problem.expected("one or two lines of 32 hexadecimal digits"));
                Vec::new()
            }
        }
    }

    /// Reads the least important messages to log.
    fn log_level(&mut self, root: &Section<'_>) -> LogLevel {
        let log = self.section(root, "log");
        self.word(&log, "level", LogLevel::parse)
    }

    /// Reads the sizes of messages: of UDP, those that are sent and those that others are told, and
    /// what the length of padded replies is a multiple of; and whether replies have Extended DNS
    /// Errors, and EDNS for clients that set DO.
    fn edns(&mut self, root: &Section<'_>) -> (u16, u16, u16, [bool; 2]) {
        let section = self.section(root, "edns");
        let padding = self.whole_or(&section, "padding").unwrap_or(0);
        let flags = ["extended-errors", "dnssec"].map(|key| self.boolean(&section, key));
        let udp_size = self.whole(&section, "udp-size");
        let announced_size = self.whole_or(&section, "announced-size").unwrap_or(udp_size);
        (udp_size as u16, announced_size as u16, padding as u16, flags)
    }

    /// Reads who resolves names for the server itself; nobody is the machine.
    fn server_resolvers(&mut self, server: &Section<'_>) -> Vec<SocketAddr> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::rows;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// Lowers `text`; returns the rows that were read and how many problems there were.
    fn lower(text: &str) -> (BTreeSet<&'static str>, usize) {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), text.to_owned());
        let mut problems = Vec::new();
        let parsed = yaml::parse(file, text, &|_| None, &mut problems);
        let read_file = |_: &Path| Ok(Vec::new());
        let mut lowering = Lowering {
            sources: &sources,
            problems: &mut problems,
            read_file: &read_file,
            is_open_to_all: &|_| false,
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
             control: {oidc: {issuer: https://id.example.org, client-id: a, url: https://a.example, groups: {a: admin}}, webhooks: {w: {url: https://a.example, secret: whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz}}}\n\
             local: {a.example: 192.0.2.1}\nrecords: {a: {text: www A 192.0.2.1}}\nconditions: {a: rd}\nviews: [{policy: main, if: a}]\nresolvers: {default: {zones: {a.example: {stub: 192.0.2.1}}, zone-rate: {zones: {a.example: {below: 5}}}}}\nsets: {a: {names: a.example, lists: [\"names:x\"], tags: {tv: 192.0.2.1}}}\nupstreams: {a: {servers: [{address: 192.0.2.1}]}}\n\
             effects:\n  a: {type: nftset, table: t, set: a}\n  b: {type: ipset, set4: b}\n\
             \x20 c: {type: mikrotik-list, address: 192.0.2.1, user: u, password: p, list4: c}\n\
             \x20 d: {type: mikrotik-route, address: 192.0.2.1, user: u, password: p, gateway4: 192.0.2.2}\n\
             \x20 e: {type: http, url: http://192.0.2.1}\n  f: {type: script, command: /bin/true}\n\
             schedules: [{at: 0 4 * * *, do: dump(caches)}]\nzone-directories: [{path: z}]\nzone-templates: {t: {file: \"{name}\"}}\nzones: [{name: example.net, like: t}, {name: example.org, file: org.zone, sign: s, \
             make: [{networks: 192.0.2.0/24}], choose: [{name: www.example.org, type: A, from: [{data: 192.0.2.1}]}], \
             catalog: c.example, group: g}, {name: c.example, catalog-role: producer}]\nsigning: {s: {}}\ncertificates: {c: {names: c.example.org, authorities: https://ca.example.org/, challenge: tls-alpn-01}}\nchecks: {c: {port: 80}}\nkeys: [{name: k, secret: AAAA}]\n\
             outgoing: {options: {servers: 192.0.2.1, text: a}}\nlimits: {wait-networks: {prefix: 192.0.2.0/24, replies: 5}, tcp: {networks: {prefix: 192.0.2.0/24, connections: 5}}}\nsplit: {b.example: 192.0.2.1}\nlocal-sockets: dns.sock\noblivious: {relay-to: odoh.example.net}\n",
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
}
