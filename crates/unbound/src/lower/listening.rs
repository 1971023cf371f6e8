//! Where clients' queries are taken.

use std::net::SocketAddr;

use diagnostic::{Problem, Span};
use yaml::Node;

use super::Lowering;
use crate::read::Word;
use crate::tree;

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
        let mut addresses: Vec<(SocketAddr, Span)> = Vec::new();
        if is_automatic || written.is_empty() {
            let (v4, v6) = if is_automatic { ("0.0.0.0", "::") } else { ("127.0.0.1", "::1") };
            let at = if is_automatic { at } else { whole };
            let known = [("do-ip4", v4), ("do-ip6", v6)];
            for (_, address) in known.into_iter().filter(|(family, _)| self.flag(family).0) {
                let address = address.parse().expect("an address");
                addresses.push((SocketAddr::new(address, port as u16), at));
            }
        } else {
            for word in written {
                match values::socket_address(&word.text, port as u16) {
                    Ok(address) => addresses.push((address, word.span)),
                    Err(_) => {
                        let problem =
                            Problem::error(word.span, format!("\"{}\" is not an address", word.text));
                        self.problems.push(problem.expected(
                            "one such as 192.0.2.1, 192.0.2.1@53 or ::1; names of devices are not looked up",
                        ));
                    }
                }
            }
        }
        for (address, at) in addresses {
            let item = self.listener(address, at);
            self.tree.push(&["listen"], item);
        }
        self.tls();
    }

    fn listener(&self, address: SocketAddr, at: Span) -> Node {
        let (udp, tcp) = (self.flag("do-udp").0, self.flag("do-tcp").0);
        let transports: Vec<&str> = match self.encrypted(address.port()) {
            Some(transports) => transports,
            None => {
                [(udp, "udp"), (tcp, "tcp")].into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect()
            }
        };
        let socket = tree::text(address.to_string(), at);
        if transports == ["udp", "tcp"] {
            return socket;
        }
        let words = transports.into_iter().map(|word| tree::text(word, at)).collect();
        let mut entries = vec![("at", socket), ("transport", tree::list(words))];
        if let (Some(path), true) = (self.last("http-endpoint"), self.is_https(address.port())) {
            entries.push(("paths", tree::list(vec![tree::as_written(path)])));
        }
        tree::map(entries, at)
    }

    /// Returns the encrypted transports of a port, if it has some.
    fn encrypted(&self, port: u16) -> Option<Vec<&'static str>> {
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
        self.certificate().is_some() && self.number("https-port").0 == u64::from(port)
    }

    /// Returns the files of the certificate and its key.
    fn certificate(&self) -> Option<(&Word, &Word)> {
        let key = self.last("tls-service-key").or(self.last("ssl-service-key"))?;
        let certificate = self.last("tls-service-pem").or(self.last("ssl-service-pem"))?;
        (!key.text.is_empty() && !certificate.text.is_empty()).then_some((certificate, key))
    }

    fn tls(&mut self) {
        if let Some((certificate, key)) = self.certificate() {
            let entries =
                vec![("certificate", self.file_outside(certificate)), ("key", self.file_outside(key))];
            let item = tree::map(entries, certificate.span);
            self.tree.push(&["tls", "certificates"], item);
        }
        if let Some(word) = self.last("tls-protocols") {
            let mut has_v1_2 = false;
            for protocol in word.text.split([' ', ',']).filter(|text| !text.is_empty()) {
                match protocol {
                    "TLSv1.2" => has_v1_2 = true,
                    "TLSv1.3" => {}
                    other => self.warn(word.span, format!("\"{other}\" is not offered: TLS 1.2 and 1.3 are")),
                }
            }
            let least = if has_v1_2 { "1.2" } else { "1.3" };
            self.set(&["tls", "min-version"], tree::text(least, word.span));
        }
        // The other program does not know of this.
        let at = self.tree.whole();
        self.set(&["tls", "discovery"], tree::flag(false, at));
    }
}
