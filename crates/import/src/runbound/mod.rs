//! Runbound's configuration: a dialect of Unbound's with keywords of its own, and stores beside it
//! that its API changes.
//!
//! Each keyword is taken at what Runbound does with it, which often is not what Unbound does; what
//! it reads without an effect has none here either.

mod names;
mod server;
mod stores;
mod text;

use std::collections::BTreeSet;
use std::path::Path;

use diagnostic::{At, Diagnostic, Problem, diagnostics};
use environment::Environment;

use crate::Imported;
use crate::authority::Files;
use crate::verify::verify;
use crate::write::{Map, Noted, Out, document};

use self::stores::Object;
use self::text::Part;

/// Keywords of `server:` that need no place here, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("api-key", "there is no HTTP API: \"gannet\" gives commands over a Unix socket"),
    ("api-port", "there is no HTTP API: \"gannet\" gives commands over a Unix socket"),
    ("api-socket", "the control socket is said by \"gannet run --control\""),
    ("audit-log", "changes are in the log"),
    ("audit-log-path", "changes are in the log"),
    ("audit-log-hmac-key", "changes are in the log"),
    ("audit-checkpoint-every", "changes are in the log"),
    ("mode", "settings are copied by who manages them"),
    ("sync-port", "settings are copied by who manages them"),
    ("sync-master", "settings are copied by who manages them"),
    ("sync-key", "settings are copied by who manages them"),
    ("sync-interval", "settings are copied by who manages them"),
    ("node-id", "settings are copied by who manages them"),
    ("acme-email", "certificates are fetched by a program beside; new files come into use by themselves"),
    ("acme-domain", "certificates are fetched by a program beside; new files come into use by themselves"),
    ("acme-cache-dir", "certificates are fetched by a program beside; new files come into use by themselves"),
    ("acme-staging", "certificates are fetched by a program beside; new files come into use by themselves"),
    ("ui-enabled", "there is no web interface"),
    ("ui-port", "there is no web interface"),
    ("ui-bind", "there is no web interface"),
    ("ui-tls", "there is no web interface"),
    ("webhook", "effects of the policy can send requests"),
    ("webhook-url", "effects of the policy can send requests"),
    ("webhook-format", "effects of the policy can send requests"),
    ("webhook-events", "effects of the policy can send requests"),
    ("webhook-token", "effects of the policy can send requests"),
    ("log-format", "\"log.format\" is found out"),
    ("log-retention", "queries are kept by \"recorder\""),
    ("log-client-ip", "queries are kept by \"recorder\""),
    ("firewall-manage", "rules of a firewall are not touched"),
    ("pidfile", "the service manager knows the process"),
    ("bot-honeypot-enabled", "there is no web interface"),
    ("upstream-racing", "it has no effect there"),
    ("prefetch-threshold", "it has no effect there"),
    ("udp-busy-poll", "it has no effect there"),
    (
        "cache-size",
        "a number of entries becomes no size: \"cache.main.size\" is what it is without being said",
    ),
    ("cache-min-entries", "\"cache.main.size\" says it"),
    ("hsm-pkcs11-lib", "keys of a token are said by \"signing.*.token\""),
    ("local-zone-dnssec", "local data is not signed"),
    ("block-page-title", "there is no web server for a page"),
    ("block-page-port", "there is no web server for a page"),
];

/// Keywords that this module and its parts read.
const READ: &[&str] = &[
    "interface",
    "port",
    "access-control",
    "local-zone",
    "local-data",
    "private-address",
    "cache-max-ttl",
    "cache-min-ttl",
    "verbosity",
    "logfile",
    "do-ip4",
    "do-ip6",
    "do-udp",
    "do-tcp",
    "tls-service-pem",
    "tls-service-key",
    "tls-port",
    "https-port",
    "quic-port",
    "hide-version",
    "hide-identity",
    "identity",
    "version",
    "qname-minimisation",
    "prefetch",
    "dot-client-auth-ca",
    "rate-limit",
    "rate-limit-burst",
    "rate-limit-prefix-v4",
    "rate-limit-prefix-v6",
    "rrl-slip",
    "dns-cookies",
    "serve-stale",
    "stale-answer-ttl",
    "stale-max-age",
    "resolution",
    "dnssec-validation",
    "resolv-fallback",
    "ddr",
    "proxy-protocol",
    "block-page",
    "block-page-redirect-ip",
    "tls-cert-hostname",
    "server-hostname",
    "block-https-record",
    "xdp",
    "xdp-interface",
];

/// Turns the configuration that begins in the file `path`, and the stores beside it, into ours;
/// errors are all places that cannot be expressed.
pub fn runbound(path: &Path, environment: &dyn Environment) -> Result<Imported, Vec<Diagnostic>> {
    let mut files = Files::new(path, environment);
    let mut parts = Vec::new();
    if let Some((file, text)) = files.open(path, None) {
        text::read(&mut files, file, &text, 0, &mut parts);
    }
    let mut import =
        Import { server: server_of(&parts), parts, files, sections: Map::default(), policy: Vec::new() };
    import.run();
    let head = [
        format!("Made from {} (Runbound) and the stores beside it by \"gannet import\".", path.display()),
        "\"gannet check\" checks it.".to_owned(),
    ];
    // A variable of the environment means nothing there.
    let text = document(&head, std::mem::take(&mut import.sections)).replace("${", "$${");
    let mut files = import.files;
    if !files.problems.iter().any(Problem::is_error) {
        let refused = verify(path, &text, environment, &files.sources, &|_, _| None);
        files.problems.extend(refused);
    }
    let failed = files.problems.iter().any(Problem::is_error);
    let found = diagnostics(files.problems, &files.sources);
    if failed { Err(found) } else { Ok(Imported { text, warnings: found }) }
}

/// Returns all of `server:` together.
fn server_of(parts: &[Part]) -> Part {
    let name = At { value: "server".to_owned(), span: diagnostic::Span::BUILT_IN };
    let mut lines = Vec::new();
    for part in parts.iter().filter(|part| part.name.value == "server") {
        lines.extend(part.lines.iter().cloned());
    }
    Part { name, lines }
}

/// The new file under way.
struct Import<'f> {
    server: Part,
    parts: Vec<Part>,
    files: Files<'f>,
    sections: Map,
    /// The steps of the policy.
    policy: Vec<Noted>,
}

/// Returns a rule of the policy.
fn rule(condition: String, actions: &[&str]) -> Noted {
    let mut map = Map::default();
    map.put("if", condition);
    match actions {
        [one] => map.put("do", *one),
        _ => map.put("do", Out::Row(actions.iter().map(|&action| action.to_owned()).collect())),
    }
    map.into()
}

impl Import<'_> {
    fn run(&mut self) {
        self.unread();
        self.presentation();
        self.listening();
        self.access();
        self.limits();
        self.caches();
        self.split_horizons();
        self.local_zones();
        self.blocked();
        self.subnet_policies();
        self.found();
        self.log();
        let policy = std::mem::take(&mut self.policy);
        let mut main = Map::default();
        main.put("main", Out::List(policy));
        self.sections.put("policy", main);
    }

    /// Speaks of what has no place in the new file.
    fn unread(&mut self) {
        let mut said: BTreeSet<String> = BTreeSet::new();
        for line in &self.server.lines {
            let key = line.key.value.as_str();
            if READ.contains(&key) || !said.insert(key.to_owned()) {
                continue;
            }
            let why = match LEFT_OUT.iter().find(|(known, _)| *known == key) {
                Some((_, why)) => *why,
                None if key == "allow-update" || key == "tsig-key" => {
                    "updates are for zones here: \"zones[].update\""
                }
                None => "Runbound reads it without an effect",
            };
            self.files.warn(line.key.span, format!("\"{key}\" is left out: {why}"));
        }
        for part in &self.parts {
            let why = match part.name.value.as_str() {
                "server" | "forward-zone" | "split-horizon" => continue,
                "api-key-extra" => {
                    "there is no HTTP API: who may use the control socket is a matter of its file"
                }
                "axfr" => "local data is no zone that can be transferred: \"zones\" with a file can",
                "alert" => "\"limits.rate\" bounds clients; conditions with \"rate(…)\" can have effects",
                "icmp" | "io-uring" | "anycast" => "it is no matter of a DNS server",
                _ => "Runbound reads it without an effect",
            };
            let message = format!("the section \"{}\" is left out: {why}", part.name.value);
            self.files.warn(part.name.span, message);
        }
        for (name, why) in [
            ("users.json", "accounts are for an HTTP API, which is not there"),
            ("api.key", "it is for an HTTP API, which is not there"),
            ("slaves.json", "settings are copied by who manages them"),
        ] {
            let path = std::path::PathBuf::from(self.files.beside(name));
            if self.files.environment.read(&path).is_ok() {
                let first = diagnostic::Span { file: diagnostic::FileId(0), start: 0, end: 0 };
                self.files.warn(first, format!("\"{name}\" is left out: {why}"));
            }
        }
    }

    fn store(&mut self, name: &str, key: Option<&str>) -> Vec<Object> {
        stores::read(&mut self.files, name, key)
    }
}

#[cfg(test)]
mod tests;
