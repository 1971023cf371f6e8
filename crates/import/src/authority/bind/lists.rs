//! BIND's lists: of addresses and keys that may do something, of servers.

use std::net::{IpAddr, SocketAddr};

use diagnostic::{At, Span};
use wire::Prefix;

use super::super::{Peer, PeerTls, Who, prefixes};
use super::Bind;
use super::text::{Part, Statement};

/// How deep lists may name lists.
const LISTS_MAX: usize = 16;

/// What holds for servers of a list that say nothing else.
struct Usual {
    port: Option<At<String>>,
    tls: Option<At<String>>,
    key: Option<At<String>>,
}

impl Bind<'_, '_, '_> {
    /// Returns whom a list lets in; BIND takes the first item that fits.
    pub(super) fn who(&mut self, list: &[Statement]) -> Vec<Who> {
        let mut allowed = Vec::new();
        let mut denied: Vec<Prefix> = Vec::new();
        self.matches(list, &mut allowed, &mut denied, 0);
        allowed
    }

    fn matches(
        &mut self,
        list: &[Statement],
        allowed: &mut Vec<Who>,
        denied: &mut Vec<Prefix>,
        depth: usize,
    ) {
        for item in list {
            let mut parts = item.parts.as_slice();
            let is_negated = matches!(parts.first(), Some(Part::Word(word)) if word.value == "!");
            if is_negated {
                parts = &parts[1..];
            }
            let found = self.one(parts, item.span, depth);
            if is_negated {
                if found.iter().any(|who| who.key.is_some() || who.needs_tls) {
                    self.files.wrong(
                        item.span,
                        "who denies by key cannot be carried over: nobody may anything unless it is said",
                    );
                }
                for who in found {
                    denied.extend(if who.from.is_empty() { prefixes::everything() } else { who.from });
                }
                continue;
            }
            for mut who in found {
                if !denied.is_empty() {
                    let from = if who.from.is_empty() { prefixes::everything() } else { who.from };
                    who.from = prefixes::subtract(&from, denied);
                    if who.from.is_empty() {
                        continue;
                    }
                }
                allowed.push(who);
            }
        }
    }

    fn one(&mut self, parts: &[Part], span: Span, depth: usize) -> Vec<Who> {
        let from = |from: Vec<Prefix>| vec![Who { from, ..Who::default() }];
        match parts {
            [Part::Block(nested), ..] if depth < LISTS_MAX => {
                let mut allowed = Vec::new();
                self.matches(nested, &mut allowed, &mut Vec::new(), depth + 1);
                allowed
            }
            [Part::Word(word), Part::Word(key)] if word.value == "key" => {
                vec![Who { key: Some(key.value.clone()), ..Who::default() }]
            }
            [Part::Word(word)] => match word.value.as_str() {
                "any" => vec![Who::default()],
                "none" => Vec::new(),
                "localhost" => from(values::prefix_word("loopback")),
                "localnets" => {
                    self.files.warn(word.span, "\"localnets\" is taken to be private networks and this machine: the networks of its interfaces are not known here");
                    from([values::prefix_word("loopback"), values::prefix_word("private")].concat())
                }
                text => {
                    if let Some(prefixes) = prefixes::read(text) {
                        return from(prefixes);
                    }
                    let named = self.acls.iter().rev().find(|(name, _)| name == text).map(|(_, list)| *list);
                    match named {
                        Some(list) if depth < LISTS_MAX => {
                            let mut allowed = Vec::new();
                            self.matches(list, &mut allowed, &mut Vec::new(), depth + 1);
                            allowed
                        }
                        _ => {
                            self.files.wrong(word.span, format!("there is no list of addresses \"{text}\""));
                            Vec::new()
                        }
                    }
                }
            },
            _ => {
                self.files.wrong(span, "this is no address, no key and no list that is known here");
                Vec::new()
            }
        }
    }

    /// Returns whom `allow-transfer` and the like let in; they may name a transport.
    pub(super) fn allowed(&mut self, statement: &Statement) -> Vec<Who> {
        let mut who = self.who(statement.block().unwrap_or(&[]));
        if let Some(transport) = statement.after("transport") {
            match transport.value.as_str() {
                "tls" => who.iter_mut().for_each(|who| who.needs_tls = true),
                other => {
                    self.files.wrong(
                        transport.span,
                        format!("\"transport {other}\" cannot be carried over: \"tls\" can be demanded here"),
                    );
                }
            }
        }
        if let Some(port) = statement.after("port") {
            self.files.warn(port.span, "\"port\" is left out: a transfer is given at every listener");
        }
        who
    }

    /// Returns prefixes alone; a key among them is an error.
    pub(super) fn clients(&mut self, statement: &Statement) -> Option<Vec<String>> {
        let who = self.who(statement.block().unwrap_or(&[]));
        if who.iter().any(|who| who.key.is_some()) {
            self.files.wrong(statement.span, "clients are known by their addresses here, not by keys");
        }
        if who.iter().any(|who| who.from.is_empty() && who.key.is_none()) {
            return None;
        }
        Some(who.iter().flat_map(|who| &who.from).map(|prefix| prefixes::text(*prefix)).collect())
    }

    /// Returns the servers of `primaries`, `also-notify` or `forwarders`.
    pub(super) fn peers(&mut self, statement: &Statement) -> Vec<Peer> {
        let usual =
            Usual { port: statement.after("port").cloned(), tls: statement.after("tls").cloned(), key: None };
        self.listed(statement.block().unwrap_or(&[]), &usual, 0)
    }

    fn listed(&mut self, list: &[Statement], usual: &Usual, depth: usize) -> Vec<Peer> {
        let mut peers = Vec::new();
        for item in list {
            let Some(first) = item.words().first().copied().cloned() else { continue };
            let key = item.after("key").or(usual.key.as_ref()).cloned();
            let tls = item.after("tls").or(usual.tls.as_ref()).cloned();
            let port = item.after("port").or(usual.port.as_ref()).cloned();
            let Ok(ip) = first.value.parse::<IpAddr>() else {
                let named =
                    self.lists.iter().rev().find(|(name, _)| *name == first.value).map(|(_, list)| *list);
                match named {
                    Some(list) if depth < LISTS_MAX => {
                        let port = list.after("port").cloned().or(port);
                        let usual = Usual { port, tls, key };
                        peers.extend(self.listed(list.block().unwrap_or(&[]), &usual, depth + 1));
                    }
                    _ => self.files.wrong(
                        first.span,
                        format!("\"{}\" is neither an address nor a list of servers", first.value),
                    ),
                }
                continue;
            };
            let standard = if tls.is_some() { 853 } else { 53 };
            let number = match &port {
                Some(at) => at.value.parse().unwrap_or_else(|_| {
                    self.files.wrong(at.span, format!("\"{}\" is no port", at.value));
                    standard
                }),
                None => standard,
            };
            let tls = match tls {
                Some(name) => match self.proof(&name) {
                    Some(proof) => Some(proof),
                    None => continue,
                },
                None => None,
            };
            let key = key.map(|key| key.value).or_else(|| self.servers.get(&ip).cloned());
            peers.push(Peer { address: SocketAddr::new(ip, number), key, tls });
        }
        peers
    }

    /// Returns what a server has to prove that is spoken to as `tls NAME` says.
    fn proof(&mut self, name: &At<String>) -> Option<PeerTls> {
        let Some(found) = self.top.iter().find(|statement| {
            statement.key() == "tls" && statement.value().is_some_and(|other| other.value == name.value)
        }) else {
            self.files.wrong(
                name.span,
                format!("\"tls {}\" proves nothing: whoever answers would be believed", name.value),
            );
            return None;
        };
        let block = found.block().unwrap_or(&[]);
        let text =
            |key: &str| block.iter().find(|statement| statement.key() == key).and_then(Statement::value);
        let roots = text("ca-file").map(|path| self.files.beside(&path.value));
        let host = text("remote-hostname").map(|name| name.value.clone());
        if roots.is_none() && host.is_none() {
            self.files.wrong(
                name.span,
                format!("\"tls {}\" proves nothing: whoever answers would be believed", name.value),
            );
            return None;
        }
        let file = |key: &str| text(key).map(|path| self.files.beside(&path.value));
        let certificate = file("cert-file").zip(file("key-file"));
        Some(PeerTls { name: host, pins: Vec::new(), roots, certificate })
    }
}
