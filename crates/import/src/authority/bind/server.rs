//! `options` of BIND: listeners, limits, who may query.

use std::net::IpAddr;

use diagnostic::At;

use super::super::super::write::Out;
use super::super::made;
use super::text::Statement;
use super::{Bind, OPTIONS, Scope, find, is_yes};

impl<'s> Bind<'_, '_, 's> {
    pub(super) fn server(&mut self) {
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
    pub(super) fn queriers(&mut self, statement: &Statement) -> Option<Vec<String>> {
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
}
