//! The section `server` of NSD: identity, listeners, limits.

use super::super::super::write::Out;
use super::super::fields::{Entry, Fields, Known};
use super::super::made::seconds;
use super::super::prefixes;
use super::Nsd;
use diagnostic::At;

const TUNING: &str = "it tunes NSD's own processes and sockets";
const KEPT: &str = "what is kept is in \"server.state-directory\"";
const LOGS: &str = "messages go where the service manager puts them";

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

/// Returns a text that is given away, or that nothing is: an empty one says so.
fn shown(text: &At<String>) -> &str {
    if text.value.is_empty() { "hidden" } else { &text.value }
}

impl Nsd<'_, '_> {
    pub(super) fn server(&mut self, entries: &[Entry]) {
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
}
