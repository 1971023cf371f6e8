//! The sections `server` and `log` of Knot: identity, listeners, limits.

use super::super::super::write::Out;
use super::super::fields::{Entry, Fields, Known};
use super::super::made::seconds;
use super::super::prefixes;
use super::{KEPT, Knot, TUNING};

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

impl Knot<'_, '_, '_> {
    /// Returns how listeners ask clients for certificates, if there are any by which other servers
    /// are known.
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

    pub(super) fn server(&mut self) {
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
}
