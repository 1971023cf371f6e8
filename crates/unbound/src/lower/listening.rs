//! Where clients' queries are taken.

use std::net::SocketAddr;

use diagnostic::{Problem, Span};
use yaml::Node;

use super::Lowering;
use super::clients::{Place, listener_name};
use crate::read::Word;
use crate::tree;

/// Cipher suites of TLS 1.3, as OpenSSL and IANA call them.
const TLS13: [(&str, &str); 3] = [
    ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
    ("TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
];
/// The same of TLS 1.2.
const TLS12: [(&str, &str); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];

/// Where queries come to, as the file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interface {
    /// An address and port.
    Address(SocketAddr),
    /// All addresses of a network device, and the port.
    Device(String, u16),
}

impl Interface {
    /// Reads one; `port` is for those that name none.
    pub(super) fn read(text: &str, port: u16) -> Option<Self> {
        if let Ok(address) = values::socket_address(text, port) {
            return Some(Self::Address(address));
        }
        values::device(text, port).map(|(name, port)| Self::Device(name.to_owned(), port))
    }

    pub(super) const fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Device(_, port) => *port,
        }
    }

    /// Returns the address or name, and the port.
    pub(super) fn parts(&self) -> (String, u16) {
        match self {
            Self::Address(address) => (address.ip().to_string(), address.port()),
            Self::Device(name, port) => (name.clone(), *port),
        }
    }

    /// Returns it as settings have it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Device(name, port) => format!("{name}@{port}"),
        }
    }
}

impl Lowering<'_> {
    pub(super) fn listening(&mut self) {
        let (port, _) = self.number("port");
        let whole = self.tree.whole();
        let written: Vec<&Word> = self
            .server()
            .iter()
            .filter(|statement| matches!(statement.row.name, "interface" | "ip-address"))
            .map(|statement| statement.word(0))
            .collect();
        let (is_automatic, at) = self.flag("interface-automatic");
        let mut places: Vec<(Interface, Span)> = Vec::new();
        if is_automatic || written.is_empty() {
            let (v4, v6) = if is_automatic { ("0.0.0.0", "::") } else { ("127.0.0.1", "::1") };
            let at = if is_automatic { at } else { whole };
            let known = [("do-ip4", v4), ("do-ip6", v6)];
            let more = if is_automatic { self.automatic_ports() } else { Vec::new() };
            for (_, address) in known.into_iter().filter(|(family, _)| self.flag(family).0) {
                let address = address.parse().expect("an address");
                let place = |port| Interface::Address(SocketAddr::new(address, port));
                places.push((place(port as u16), at));
                places.extend(more.iter().map(|&(port, at)| (place(port), at)));
            }
        } else {
            for word in written {
                match Interface::read(&word.text, port as u16) {
                    Some(place) => places.push((place, word.span)),
                    None => {
                        let problem = Problem::error(word.span, format!("\"{}\" is no interface", word.text));
                        self.problems.push(problem.expected(
                            "an address or a device, such as 192.0.2.1, 192.0.2.1@53, ::1 or eth0",
                        ));
                    }
                }
            }
        }
        let named: Vec<Interface> = self
            .clients()
            .into_iter()
            .filter_map(|clients| match clients.place {
                Place::Interface(interface) => Some(interface),
                Place::Prefix(_) => None,
            })
            .collect();
        for (place, at) in places {
            let item = self.listener(&place, &named, at);
            self.tree.push(&["listen"], item);
        }
        self.tls();
    }

    /// Returns further ports of all interfaces.
    fn automatic_ports(&mut self) -> Vec<(u16, Span)> {
        let Some(word) = self.last("interface-automatic-ports") else { return Vec::new() };
        let mut ports = Vec::new();
        for text in word.text.split_whitespace() {
            match text.parse() {
                Ok(port @ 1..) => ports.push((port, word.span)),
                _ => self.error(word.span, format!("\"{text}\" is not a port")),
            }
        }
        ports.retain(|(port, _)| u64::from(*port) != self.number("port").0);
        ports
    }

    /// Returns the address of an interface that a keyword names, if it is listened on.
    pub(super) fn interface(&self, word: &Word) -> Option<Interface> {
        let port = self.number("port").0 as u16;
        let wanted = Interface::read(&word.text, port)?;
        let names = |name: &str| matches!(name, "interface" | "ip-address");
        let mut listened = self.server().iter().filter(|statement| names(statement.row.name));
        let is_it = |text: &str| Interface::read(text, port).is_some_and(|place| place == wanted);
        listened.any(|statement| is_it(&statement.word(0).text)).then_some(wanted)
    }

    fn listener(&self, place: &Interface, named: &[Interface], at: Span) -> Node {
        let (udp, tcp) = (self.flag("do-udp").0, self.flag("do-tcp").0);
        let transports: Vec<&str> = match self.encrypted(place.port()) {
            Some(transports) => transports,
            None => {
                [(udp, "udp"), (tcp, "tcp")].into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect()
            }
        };
        let socket = tree::text(place.text(), at);
        let port = place.port().to_string();
        let proxied = self.all("proxy-protocol-port").map(|it| it.word(0)).find(|word| word.text == port);
        let name = named.contains(place).then(|| listener_name(place));
        let family = match (place, self.flag("do-ip4").0, self.flag("do-ip6").0) {
            (Interface::Device(..), true, false) => Some("ipv4"),
            (Interface::Device(..), false, true) => Some("ipv6"),
            _ => None,
        };
        if transports == ["udp", "tcp"] && proxied.is_none() && name.is_none() && family.is_none() {
            return socket;
        }
        let words = transports.into_iter().map(|word| tree::text(word, at)).collect();
        let mut entries = vec![("at", socket), ("transport", tree::list(words))];
        if let Some(family) = family {
            entries.push(("family", tree::text(family, at)));
        }
        if let Some(name) = name {
            entries.push(("name", tree::text(name, at)));
        }
        if let Some(word) = proxied {
            let proxies = self.proxies().into_iter().map(|proxy| tree::text(proxy, word.span));
            entries.push(("proxy-protocol-from", tree::list(proxies.collect())));
        }
        if let (Some(path), true) = (self.last("http-endpoint"), self.is_https(place.port())) {
            entries.push(("paths", tree::list(vec![tree::as_written(path)])));
        }
        tree::map(entries, at)
    }

    /// Returns the encrypted transports of a port, if it has some.
    fn encrypted(&self, port: u16) -> Option<Vec<&'static str>> {
        if self.dnscrypt_port().is_some_and(|(dnscrypt, _)| dnscrypt == port) {
            return Some(vec!["dnscrypt"]);
        }
        if self.is_https(port) && self.is_http_plain() {
            return Some(vec!["http"]);
        }
        self.certificate()?;
        let is = |name: &'static str| self.number(name).0 == u64::from(port);
        let more =
            ["tls-additional-port", "tls-additional-ports", "additional-tls-port", "additional-ssl-port"];
        let is_more = more.iter().any(|name| self.all(name).any(|it| it.word(0).text == port.to_string()));
        let is_tls =
            is("tls-port") || is_more || self.last("ssl-port").is_some_and(|it| it.text == port.to_string());
        let is_quic = self.last("quic-port").is_some() && is("quic-port");
        match (self.is_https(port), is_tls, is_quic) {
            (true, ..) => Some(vec!["https"]),
            (_, true, true) => Some(vec!["tls", "quic"]),
            (_, true, false) => Some(vec!["tls"]),
            (_, false, true) => Some(vec!["quic"]),
            _ => None,
        }
    }

    fn is_https(&self, port: u16) -> bool {
        let is_spoken = self.certificate().is_some() || self.is_http_plain();
        is_spoken && self.number("https-port").0 == u64::from(port)
    }

    /// Returns whether HTTP is spoken without TLS.
    fn is_http_plain(&self) -> bool {
        self.flag("http-notls-downstream").0
    }

    /// Returns the files of the certificate and its key.
    fn certificate(&self) -> Option<(&Word, &Word)> {
        let key = self.last("tls-service-key").or(self.last("ssl-service-key"))?;
        let certificate = self.last("tls-service-pem").or(self.last("ssl-service-pem"))?;
        (!key.text.is_empty() && !certificate.text.is_empty()).then_some((certificate, key))
    }

    /// Keys of session tickets.
    fn ticket_keys(&mut self) {
        for statement in self.all("tls-session-ticket-keys").filter(|it| !it.word(0).text.is_empty()) {
            let file = self.file(statement.word(0));
            self.tree.push(&["tls", "ticket-keys"], file);
        }
    }

    /// Cipher suites: one list for each version, in the names of OpenSSL.
    fn ciphers(&mut self, is_v1_2_alone: bool) {
        let lists = [("tls-ciphersuites", &TLS13[..]), ("tls-ciphers", &TLS12[..])];
        let lists =
            lists.map(|(keyword, known)| (self.last(keyword).filter(|it| !it.text.is_empty()), known));
        if lists.iter().all(|(word, _)| word.is_none()) && !is_v1_2_alone {
            return;
        }
        for (word, known) in lists.into_iter().skip(usize::from(is_v1_2_alone)) {
            let Some(word) = word else {
                // Of this version all are offered.
                for (_, ours) in known {
                    let at = self.tree.whole();
                    self.tree.push(&["tls", "ciphers"], tree::text(*ours, at));
                }
                continue;
            };
            let suites = || word.text.split([':', ',', ' ']).filter(|text| !text.is_empty());
            let ours_of = |text: &str| known.iter().find(|(theirs, _)| *theirs == text);
            if !suites().any(|text| ours_of(text).is_some()) {
                // Words such as "HIGH" and "PROFILE=SYSTEM" are lists that OpenSSL has.
                let message = format!("\"{}\" names no cipher suite that is offered", word.text);
                let names: Vec<&str> = known.iter().map(|(theirs, _)| *theirs).collect();
                let hint = format!("all of this version are offered: {}", names.join(", "));
                self.problems.push(Problem::warning(word.span, message).hint(hint));
                for (_, ours) in known {
                    self.tree.push(&["tls", "ciphers"], tree::text(*ours, word.span));
                }
                continue;
            }
            for text in suites() {
                match ours_of(text) {
                    Some((_, ours)) => {
                        self.tree.push(&["tls", "ciphers"], tree::text(*ours, word.span));
                    }
                    None => self.warn(word.span, format!("the cipher suite \"{text}\" is not offered")),
                }
            }
        }
    }

    fn tls(&mut self) {
        if let Some((certificate, key)) = self.certificate() {
            let entries =
                vec![("certificate", self.file_outside(certificate)), ("key", self.file_outside(key))];
            let item = tree::map(entries, certificate.span);
            self.tree.push(&["tls", "certificates"], item);
        }
        let mut is_v1_2_alone = false;
        if let Some(word) = self.last("tls-protocols") {
            let (mut has_v1_2, mut has_v1_3) = (false, false);
            for protocol in word.text.split([' ', ',']).filter(|text| !text.is_empty()) {
                match protocol {
                    "TLSv1.2" => has_v1_2 = true,
                    "TLSv1.3" => has_v1_3 = true,
                    other => self.warn(word.span, format!("\"{other}\" is not offered: TLS 1.2 and 1.3 are")),
                }
            }
            let least = if has_v1_2 { "1.2" } else { "1.3" };
            self.set(&["tls", "min-version"], tree::text(least, word.span));
            // A version that has no cipher suites is not offered.
            is_v1_2_alone = has_v1_2 && !has_v1_3;
        }
        self.ciphers(is_v1_2_alone);
        self.ticket_keys();
        // The other program does not know of this.
        let at = self.tree.whole();
        self.set(&["tls", "discovery"], tree::flag(false, at));
    }
}
