//! Groups of servers that queries are forwarded to: the tree to settings.

use std::net::SocketAddr;

use diagnostic::{At, Problem};
use plan::Secret;
use plan::upstreams::{Patience, Pick, Scheme};

use super::notation::{interface, path, pick, pin, rcode_term, relay, server, tls_name};
use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};
use crate::groups::{Bootstrap, ClientSubnetUse, Group, GroupServer, Host, Server, ServerTls, TrustedRoots};
use schema::{Kind, Value, VerifyWord};

impl Lowering<'_> {
    pub(super) fn groups(&mut self, root: &Section<'_>) -> Vec<Group> {
        let sections = self.named_sections(root, "upstreams");
        sections.into_iter().map(|(name, section)| self.group(name, &section)).collect()
    }

    fn group(&mut self, name: At<String>, section: &Section<'_>) -> Group {
        let items = self.items(section, "servers");
        if items.is_empty() {
            self.problems.push(
                Problem::error(name.span, format!("upstream group \"{}\" has no servers", name.value))
                    .expected("\"servers:\" with at least one address, or \"system\""),
            );
        }
        let count = items.len();
        let mut servers = Vec::new();
        for item in items {
            servers.extend(self.group_server(&item, &servers));
        }
        Group {
            name,
            pick: self.pick(section, &servers, count),
            servers,
            timeout: self.duration(section, "timeout"),
            patience: self.patience(section),
            hedge: self.hedge(section, "hedge"),
            fallback_on: self
                .list(section, "fallback-on", |_, value, scalar| match value {
                    Value::RcodeTerm => rcode_term(&scalar.text),
                    other => unreachable_kind(other),
                })
                .values(),
            bootstrap: self.list(section, "bootstrap", |_, value, scalar| match value {
                Value::Socket { word, .. } if Some(scalar.text.as_str()) == *word => Ok(Bootstrap::System),
                Value::Socket { port, .. } => {
                    values::socket_address(&scalar.text, *port).map(Bootstrap::Address)
                }
                other => unreachable_kind(other),
            }),
            client_subnet: self.word(section, "client-subnet", ClientSubnetUse::parse),
            trust_ad: self.boolean(section, "trust-ad"),
            case_randomisation: self.boolean(section, "case-randomisation"),
            exact_case: self.list(section, "exact-case", |_, _, scalar| values::name(&scalar.text)).values(),
        }
    }

    fn patience(&mut self, section: &Section<'_>) -> Patience {
        let attempts = self.whole(section, "attempts") as u8;
        let waits = self.section(section, "patience");
        let mut ms = |key| self.duration(&waits, key).as_millis() as u32;
        Patience { unknown_ms: ms("unknown"), max_ms: ms("max"), attempts }
    }

    /// Reads how servers are chosen, of which so many are written.
    fn pick(&mut self, section: &Section<'_>, servers: &[GroupServer], count: usize) -> Pick {
        let wait_ms = self.duration(section, "negative-wait").as_millis() as u32;
        let pick = self.required(section, "pick", |lowering, _, node| {
            lowering.read(node, "a way to choose", |text| pick(text, wait_ms))
        });
        let has_system = servers.iter().any(|server| server.server.value == Server::System);
        if let Some(number) = pick.value.width().filter(|number| usize::from(*number) > count.max(1))
            && !has_system
        {
            self.problems.push(
                Problem::error(pick.span, format!("{number} servers at once in a group of {count}"))
                    .expected(format!("at most {count}")),
            );
        }
        pick.value
    }

    /// Reads a server of a group that has these already.
    fn group_server(&mut self, item: &Section<'_>, others: &[GroupServer]) -> Option<GroupServer> {
        let weight = self.whole(item, "weight") as u16;
        let source = self.optional(item, "source", |lowering, _, node| {
            lowering.read(node, "an IP address", values::address)
        });
        let interface = self.optional(item, "interface", |lowering, _, node| {
            lowering.read(node, "the name of an interface", interface)
        });
        let name = self.optional(item, "name", |lowering, _, node| {
            lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
        });
        if let Some(name) = &name
            && others.iter().any(|other| other.name.as_ref() == Some(&name.value))
        {
            self.problems.push(
                Problem::error(name.span, format!("two servers are named \"{}\"", name.value))
                    .expected("a name for each"),
            );
        }
        let mark = self.optional(item, "mark", |lowering, row, node| {
            lowering
                .read_whole(row, node)
                .map(|at| At { value: at.value.unwrap_or_default() as u32, span: at.span })
        });
        let dial = self.optional(item, "dial", |lowering, _, node| {
            lowering.read(node, "an IP address", values::address)
        });
        let relay = self.optional(item, "relay", |lowering, _, node| lowering.read(node, "a relay", relay));
        let (proxy, proxy_login) = self.proxy(item);
        let tls = self.server_tls(item);
        let connections_min = self.whole(item, "connections-min") as u8;
        let connections_max = self.whole(item, "connections-max") as u8;
        if connections_min > connections_max {
            let message = format!(
                "connections-min ({connections_min}) is larger than connections-max ({connections_max})"
            );
            self.problems.push(
                Problem::error(item.span, message).expected("connections-min to be at most connections-max"),
            );
        }
        let idle = self.duration(item, "idle");
        let server = self.server(item)?;
        Some(GroupServer {
            name: name.map(|at| at.value),
            server,
            weight,
            source: source.map(|at| at.value),
            interface: interface.map(|at| at.value),
            mark: mark.map(|at| at.value),
            dial,
            relay,
            proxy,
            proxy_login,
            tls,
            connections_min,
            connections_max,
            idle,
        })
    }

    /// Reads where a server is, and says which other settings mean nothing for it.
    fn server(&mut self, item: &Section<'_>) -> Option<At<Server>> {
        let row = self.row(item, "address");
        if item.entry("address").is_none() {
            self.problems
                .push(Problem::error(item.span, "\"address\" is missing").expected(row.kind.expected()));
        }
        let server = self.optional(item, "address", |lowering, _, node| {
            lowering.read(node, "an upstream server", server)
        })?;
        self.ignored_by(&server, item);
        Some(server)
    }

    /// Reads through whom one server is asked, and what he is told.
    fn proxy(&mut self, item: &Section<'_>) -> (Option<At<SocketAddr>>, Option<(String, Secret)>) {
        let address = self.optional(item, "proxy", |lowering, row, node| {
            let Kind::One(Value::Socket { port, .. }) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &row.kind.expected(), |text| values::socket_address(text, port))
        });
        let user = self.some_text(item, "proxy-user");
        let password = self.password(item, "proxy-password");
        for key in ["proxy-user", "proxy-password"] {
            if let (None, Some(entry)) = (item.entry("proxy"), item.entry(key)) {
                let message = format!("\"{key}\" is ignored: there is no proxy");
                self.problems.push(Problem::warning(entry.key_span, message).hint("set \"proxy\" beside it"));
            }
        }
        let has_both = item.entry("proxy-user").is_some() == item.entry("proxy-password").is_some();
        if let (false, Some(entry)) = (has_both, item.entry("proxy")) {
            let problem = Problem::error(entry.key_span, "a proxy takes a user and a password, or neither");
            self.problems.push(problem.expected("\"proxy-user\" and \"proxy-password\""));
        }
        (address, user.zip(password))
    }

    /// Reads which authorities are trusted.
    pub(super) fn roots(&mut self, item: &Section<'_>) -> At<TrustedRoots> {
        let roots = self.required(item, "roots", |lowering, _, node| {
            lowering.read(node, "\"mozilla\" or a path", |text| match text {
                "mozilla" => Ok(TrustedRoots::Mozilla),
                other => path(other).map(TrustedRoots::File),
            })
        });
        match roots.value {
            TrustedRoots::File(file) => {
                At { value: TrustedRoots::File(self.beside(roots.span.file, &file)), span: roots.span }
            }
            TrustedRoots::Mozilla => roots,
        }
    }

    /// Reads what one server must prove.
    fn server_tls(&mut self, item: &Section<'_>) -> ServerTls {
        let roots = self.roots(item);
        ServerTls {
            name: self.optional(item, "tls-name", |lowering, _, node| {
                lowering.read(node, "a host name or an address", tls_name)
            }),
            pins: self
                .list(item, "pins", |_, value, scalar| match value {
                    Value::Pin => pin(&scalar.text),
                    other => unreachable_kind(other),
                })
                .values(),
            roots,
            verify: self.word(item, "verify", VerifyWord::parse),
            sends_name: self.boolean(item, "sni"),
            early_data: self.boolean(item, "early-data"),
        }
    }

    /// Says what has no meaning for a server that is asked in this way.
    fn ignored_by(&mut self, server: &At<Server>, item: &Section<'_>) {
        let (is_secured, is_connected, has_name) = match &server.value {
            Server::System => (false, false, false),
            Server::One { scheme, host, tls_name, stamp, .. } => {
                if let (Some(_), Some(entry)) = (tls_name, item.entry("tls-name")) {
                    self.problems.push(
                        Problem::error(entry.key_span, "the name in the certificate is given twice")
                            .hint("it stands after \"#\" in \"address\" already"),
                    );
                }
                let is_elsewhere = stamp.as_ref().is_some_and(|stamp| stamp.dial.is_some());
                let has_name = matches!(host, Host::Name { .. }) && !is_elsewhere;
                (scheme.is_secured(), *scheme != Scheme::Udp, has_name)
            }
        };
        let proves_nothing = self.word(item, "verify", VerifyWord::parse) == VerifyWord::Nothing;
        let mut ignored = Vec::new();
        let mut relayless = false;
        let mut say = |keys: &[&str], why: &str| {
            for key in keys {
                if let Some(entry) = self.said(item, key) {
                    ignored.push(Problem::warning(entry.key_span, format!("\"{key}\" is ignored: {why}")));
                }
            }
        };
        let scheme = match &server.value {
            Server::System => Scheme::Udp,
            Server::One { scheme, .. } => *scheme,
        };
        if scheme != Scheme::Odoh {
            say(&["relay"], "only messages of \"odoh://\" can be relayed");
        } else if item.entry("relay").is_none() {
            relayless = true;
        }
        if scheme == Scheme::Dnscrypt {
            say(
                &["tls-name", "pins", "roots", "verify", "sni", "early-data"],
                "the stamp says what the resolver must prove",
            );
        } else if !is_secured {
            say(
                &["tls-name", "pins", "roots", "verify", "sni", "early-data"],
                "nothing is encrypted without \"tls://\", \"https://\" or \"quic://\"",
            );
        } else if item.entry("pins").is_some() {
            say(&["roots", "verify"], "\"pins\" says which keys count");
        } else if proves_nothing {
            say(&["roots"], "nothing is verified");
        }
        if !is_connected {
            say(&["connections-min"], "no connection is needed over UDP");
        }
        if !has_name {
            say(&["dial"], "\"address\" has no host name that would have to be looked up");
        }
        if relayless {
            let message = "without a relay the server knows who asks, as over \"https://\"";
            ignored.push(Problem::warning(server.span, message).hint("set \"relay\" beside \"address\""));
        }
        self.problems.append(&mut ignored);
    }
}
