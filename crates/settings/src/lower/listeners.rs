//! Where clients' queries are taken, and who the server is to them: the tree to settings.

use std::path::PathBuf;
use std::time::Duration;

use diagnostic::suggest::one_of;
use diagnostic::{At, Problem};
use plan::listeners::{ClientCertificates, LocalKind, LocalPlan, TransportWord};
use plan::tls::SuiteWord;
use values::Misread;

use super::notation::{SOCKET_PATH_OCTETS_MAX, account, http_path, mode, path, tls_name};
use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};
use crate::groups::{
    Certificate, ListenDevice, Listener, LocalSocket, OrderedCertificate, RelayTarget, Startup, Tls,
    TlsVersionWord,
};
use schema::{DeviceFamilyWord, Kind, Value};

impl Lowering<'_> {
    pub(super) fn listeners(&mut self, root: &Section<'_>) -> Option<Vec<Listener>> {
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
                lowering.read(node, &expected, |text| Self::one_word(words, text, ClientCertificates::parse))
            });
            let port = transports.first().map_or(53, |at| at.value.port());
            match self.place_or(&item, "at", port) {
                Some(At { value: Some((address, device)), span }) => {
                    let family = self.word(&item, "family", DeviceFamilyWord::parse);
                    if device.is_none()
                        && let Some(entry) = self.said(&item, "family")
                    {
                        self.problems.push(Problem::warning(
                            entry.key_span,
                            "\"family\" is ignored: this listener has an address, not a device",
                        ));
                    }
                    self.check_transports(&item, &transports);
                    let speaks_http = transports.iter().any(|at| at.value.is_http());
                    if !speaks_http {
                        self.ignored_without_http(&item, &["paths", "forwarded-from"], "listener");
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
                        device: device.map(|name| ListenDevice { name, family, is_found: false }),
                        name,
                        speaks: transports.values(),
                        proxy_protocol_from: from,
                        paths,
                        forwarded_from: forwarded,
                        client_certificates,
                    };
                    match listeners.iter().find(|other| listener.clashes(other)) {
                        Some(first) => self.problems.push(
                            Problem::error(span, format!("\"{}\" is listened on twice", listener.place()))
                                .hint_at("the first time is on ", first.at.span, ""),
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

    /// Warns of settings that are of use to HTTP only.
    fn ignored_without_http(&mut self, item: &Section<'_>, keys: &[&str], what: &str) {
        for key in keys {
            if let Some(entry) = self.said(item, key) {
                self.problems.push(Problem::warning(
                    entry.key_span,
                    format!("\"{key}\" is ignored: this {what} does not speak HTTP"),
                ));
            }
        }
    }

    pub(super) fn local_sockets(&mut self, root: &Section<'_>) -> Vec<LocalSocket> {
        let mut sockets = Vec::new();
        let mut opened: Vec<At<PathBuf>> = Vec::new();
        for item in self.items(root, "local-sockets") {
            let path = self.path(&item, "path");
            let kind = self.word(&item, "kind", LocalKind::parse);
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
            let paths = self.list(&item, "paths", |_, _, scalar| http_path(&scalar.text)).values();
            let is_forwarded = self.boolean(&item, "forwarded");
            if kind != LocalKind::Http {
                self.ignored_without_http(&item, &["paths", "forwarded"], "socket");
            }
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
            if let Some(first) = opened.iter().find(|other| other.value == path.value) {
                let twice = Problem::error(path.span, "this socket is opened twice");
                self.problems.push(twice.hint_at("the first time is on ", first.span, ""));
            }
            let plan = LocalPlan { path: path.value.clone(), kind, mode, owner, group, paths, is_forwarded };
            opened.push(path);
            sockets.push(LocalSocket { plan, name });
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

    pub(super) fn tls(&mut self, root: &Section<'_>) -> Tls {
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
            let place = |at: At<PathBuf>| At { value: self.beside(at.span.file, &at.value), span: at.span };
            let chain = place(chain);
            let key = key.map_or_else(|| chain.clone(), place);
            certificates.push(Certificate { chain, key });
        }
        let mut files = |key| -> Vec<At<PathBuf>> {
            let files = self.list(&section, key, |_, _, scalar| path(&scalar.text));
            let place = |at: At<PathBuf>| At { value: self.beside(at.span.file, &at.value), span: at.span };
            files.into_iter().map(place).collect()
        };
        let (client_ca, ticket_keys) = (files("client-ca"), files("ticket-keys"));
        let ciphers = self.list(&section, "ciphers", |_, value, scalar| match value {
            Value::Word(words) => Self::one_word(words, &scalar.text, SuiteWord::parse),
            other => unreachable_kind(other),
        });
        let min_version = self.word(&section, "min-version", TlsVersionWord::parse);
        let lacks_tls13 = !ciphers.iter().any(|at| at.value.is_tls13());
        if let Some(first) = ciphers.first().filter(|_| lacks_tls13 && min_version != TlsVersionWord::V12) {
            let problem = Problem::error(first.span, "no cipher suite of TLS 1.3 is offered");
            self.problems.push(problem.expected("one such as TLS_AES_128_GCM_SHA256 among them"));
        }
        Tls {
            ciphers: ciphers.values(),
            certificates,
            min_version,
            discovery: self.boolean(&section, "discovery"),
            client_ca,
            ticket_keys,
        }
    }

    /// Checks that listeners that take a certificate have one.
    pub(super) fn check_secure(&mut self, startup: &Startup, tls: &Tls, ordered: &[OrderedCertificate]) {
        let listeners = startup.listen.as_deref();
        let secure = |listener: &&Listener| listener.speaks.iter().any(|word| word.is_secure());
        let all = || listeners.into_iter().flatten();
        for listener in all() {
            let Some(asked) = &listener.client_certificates else { continue };
            let is_vouched = !matches!(asked.value, ClientCertificates::Never | ClientCertificates::Any);
            if is_vouched && tls.client_ca.is_empty() {
                self.problems.push(
                    Problem::error(asked.span, "nobody is known who signs certificates of clients")
                        .expected("a file with an authority's certificate under \"tls: client-ca:\""),
                );
            }
        }
        for listener in all() {
            let asked = listener.client_certificates.as_ref();
            if let Some(asked) = asked.filter(|asked| asked.value == ClientCertificates::Any)
                && listener.speaks.iter().any(|word| word.is_secure() && *word != TransportWord::Tls)
            {
                let message = "what nobody vouches for is taken over TLS alone";
                let expected = "\"transport: tls\", or \"optional\" or \"required\"";
                self.problems.push(Problem::error(asked.span, message).expected(expected));
            }
        }
        let lacks_tls13 = !tls.ciphers.is_empty() && !tls.ciphers.iter().any(|suite| suite.is_tls13());
        let is_quic = |word: &TransportWord| matches!(word, TransportWord::Quic | TransportWord::H3);
        if let Some(listener) = all().find(|it| lacks_tls13 && it.speaks.iter().any(is_quic)) {
            // RFC 9001 §4.2.
            let message = "QUIC needs TLS 1.3, of which \"tls: ciphers:\" has no suite";
            self.problems.push(Problem::error(listener.at.span, message));
        }
        let first = all().find(secure);
        match first {
            Some(listener) if tls.certificates.is_empty() && ordered.is_empty() => self.problems.push(
                Problem::error(listener.at.span, "there is no certificate for this listener")
                    .expected(
                        "one under \"tls: certificates:\", or one that is ordered, under \"certificates:\"",
                    )
                    .hint("\"gannet certificate\" makes one to try things with"),
            ),
            Some(_) => {}
            // The API speaks HTTPS.
            None if startup.control.is_said && !startup.control.at.is_empty() => {}
            None => {
                let first = tls.certificates.first().map(|certificate| certificate.chain.span);
                if let Some(span) = first.or_else(|| Some(ordered.first()?.span)) {
                    self.problems.push(
                        Problem::warning(span, "certificates are not used: no listener speaks TLS")
                            .hint("see \"transport\" under \"listen\""),
                    );
                }
            }
        }
    }

    /// Reads for how long a key of the oblivious target lasts, if there is a target.
    pub(super) fn oblivious(&mut self, root: &Section<'_>) -> Option<Duration> {
        let section = self.section(root, "oblivious");
        let lifetime = self.duration(&section, "key-lifetime");
        let is_target = self.boolean(&section, "target");
        if let (false, Some(entry)) = (is_target, self.said(&section, "key-lifetime")) {
            let message = "\"key-lifetime\" is ignored: there is no oblivious target";
            self.problems.push(Problem::warning(entry.key_span, message));
        }
        is_target.then_some(lifetime)
    }

    /// Reads the oblivious targets that messages are carried to.
    pub(super) fn relay_to(&mut self, root: &Section<'_>) -> Vec<RelayTarget> {
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
}
