//! The servers of upstream groups: where each is, how it is asked, and what it must prove.

use std::net::SocketAddr;
use std::sync::Arc;

use diagnostic::{At, Problem, io_text};
use plan::tls::{Authorities, ClientTls, Proof, Roots};
use plan::upstreams::{
    Bind, Connections, DnscryptPlan, HttpPlan, Login, OdohPlan, Outgoing, Protocol, Proxy, Scheme,
    ServerPlan, Target, Way,
};

use super::{Machine, bootstrap};
use environment::Environment;
use settings::{Group, GroupServer, Host, Server, Stamp, TrustedRoots, VerifyWord};

/// Returns the servers that an item of a group stands for, the one with this number: none if there
/// is a mistake in it.
pub(super) fn servers(
    group: &Group,
    (number, entry): (usize, &GroupServer),
    machine: &mut Machine<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<ServerPlan> {
    match &entry.server.value {
        Server::System => {
            // resolv.conf may be written later than we are started: the group has no servers until
            // a reload.
            let found = machine.system(&group.name.value, entry.server.span, problems);
            let outgoing = &machine.outgoing;
            let plan = |address| server(entry, number, (Target::Address(address), Protocol::Udp), outgoing);
            found.into_iter().map(plan).collect()
        }
        Server::One { scheme, host, tls_name, path, stamp } => {
            let scheme = *scheme;
            let written = Written { host, tls_name: tls_name.as_deref(), path, stamp: stamp.as_deref() };
            let relay = match entry.relay.as_ref().map(|relay| &relay.value) {
                Some(Server::One { host, tls_name, path, stamp, .. }) if scheme == Scheme::Odoh => {
                    Some(Written { host, tls_name: tls_name.as_deref(), path, stamp: stamp.as_deref() })
                }
                _ => None,
            };
            let one = One { group, entry, scheme, written, relay };
            let Some(protocol) = one.protocol(machine, problems) else { return Vec::new() };
            let target = one.target();
            if let Target::Address(address) = &target
                && machine.is_own(*address)
            {
                let message = format!("\"{address}\" is an address that this server listens on");
                let problem = Problem::error(entry.server.span, message);
                problems.push(problem.hint("queries would come back to it"));
            }
            if let Target::Address(address) = &target
                && entry.source.is_none()
                && !machine.outgoing.has_family(address.is_ipv4())
            {
                let message = format!("\"{address}\" cannot be asked: no source address has its family");
                let problem = Problem::warning(entry.server.span, message);
                problems.push(problem.hint("add one to \"outgoing.sources\""));
            }
            vec![server(entry, number, (target, protocol), &machine.outgoing)]
        }
    }
}

/// Returns one server with what its item says however it is asked.
fn server(
    entry: &GroupServer,
    number: usize,
    (target, protocol): (Target, Protocol),
    outgoing: &Arc<Outgoing>,
) -> ServerPlan {
    let login = entry.proxy_login.as_ref();
    let way = Way {
        protocol,
        bind: Bind {
            outgoing: Arc::clone(outgoing),
            source: entry.source,
            mark: entry.mark,
            device: entry.interface.clone(),
        },
        proxy: entry.proxy.as_ref().map(|proxy| Proxy {
            address: proxy.value,
            login: login.map(|(user, password)| Login { user: user.clone(), password: password.clone() }),
        }),
        connections: Connections {
            min: entry.connections_min,
            max: entry.connections_max,
            idle_ms: u32::try_from(entry.idle.as_millis()).unwrap_or(u32::MAX),
        },
    };
    ServerPlan {
        target,
        way: Arc::new(way),
        weight: entry.weight,
        member: u8::try_from(number).unwrap_or(u8::MAX),
    }
}

/// A server as it is written.
#[derive(Clone, Copy)]
struct Written<'s> {
    host: &'s Host,
    /// What its certificate is for, if that stands beside the host.
    tls_name: Option<&'s str>,
    path: &'s str,
    stamp: Option<&'s Stamp>,
}

impl Written<'_> {
    /// Returns where the server is; `dial` is where its name leads to, whatever others say.
    fn target(&self, dial: Option<std::net::IpAddr>) -> Target {
        match (self.host, dial) {
            (Host::Address(address), _) => Target::Address(*address),
            (Host::Name { port, .. }, Some(dial)) => Target::Address(SocketAddr::new(dial, *port)),
            (Host::Name { name, port }, None) => Target::Name { name: *name, port: *port },
        }
    }

    /// Returns what is asked for over HTTP.
    fn http(&self, scheme: Scheme) -> HttpPlan {
        let with =
            |host: String, port: u16| if port == scheme.port() { host } else { format!("{host}:{port}") };
        let authority = match self.host {
            Host::Address(SocketAddr::V6(address)) => with(format!("[{}]", address.ip()), address.port()),
            Host::Address(address) => with(address.ip().to_string(), address.port()),
            Host::Name { name, port } => with(name.to_string().trim_end_matches('.').to_owned(), *port),
        };
        HttpPlan { authority, path: self.path.to_owned() }
    }
}

/// Who proves what.
#[derive(Clone, Copy)]
enum Proves<'s> {
    /// The server that is connected to, for queries.
    Server(Written<'s>),
    /// The target of oblivious messages, when it is asked for its key. What is said of names and
    /// keys is for the server that is connected to, if that is another.
    Target(Written<'s>),
}

/// An item of a group that stands for one server.
struct One<'s> {
    group: &'s Group,
    entry: &'s GroupServer,
    scheme: Scheme,
    written: Written<'s>,
    /// Where oblivious messages go first.
    relay: Option<Written<'s>>,
}

impl<'s> One<'s> {
    /// Returns the server that is connected to: messages go to the relay if there is one, and it
    /// proves who it is.
    fn connected(&self) -> Written<'s> {
        self.relay.unwrap_or(self.written)
    }

    /// Returns where the server is that is connected to.
    fn target(&self) -> Target {
        let connected = self.connected();
        let stamped = connected.stamp.and_then(|stamp| stamp.dial);
        connected.target(stamped.or(self.entry.dial.as_ref().map(|dial| dial.value)))
    }

    /// Returns how the server is asked.
    fn protocol(&self, machine: &mut Machine<'_>, problems: &mut Vec<Problem>) -> Option<Protocol> {
        let http = || self.written.http(self.scheme);
        let mut tls = || self.client_tls(Proves::Server(self.written), machine.environment, problems);
        Some(match self.scheme {
            Scheme::Udp => Protocol::Udp,
            Scheme::Tcp => Protocol::Tcp,
            Scheme::Tls => Protocol::Tls(tls()?),
            Scheme::Https => Protocol::Https(tls()?, http()),
            Scheme::Quic => Protocol::Quic(tls()?),
            Scheme::Https3 => Protocol::Https3(tls()?, http()),
            Scheme::Dnscrypt => {
                let (name, key) = self.written.stamp?.provider?;
                Protocol::Dnscrypt(DnscryptPlan { name, key })
            }
            Scheme::Odoh => return self.oblivious(machine, problems),
        })
    }

    /// Returns how a target of oblivious messages is asked, perhaps through a relay.
    fn oblivious(&self, machine: &mut Machine<'_>, problems: &mut Vec<Problem>) -> Option<Protocol> {
        let is_relayed = self.relay.is_some();
        let asked = self.written.http(self.scheme);
        let claim =
            Written { tls_name: self.written.tls_name.filter(|_| is_relayed), stamp: None, ..self.written };
        let target_tls = self.client_tls(Proves::Target(claim), machine.environment, problems)?;
        let tls = self.client_tls(Proves::Server(self.connected()), machine.environment, problems)?;
        // Where there is a relay, `dial` is for that.
        let dial = self.entry.dial.as_ref().filter(|_| !is_relayed);
        let target = self.written.target(dial.map(|dial| dial.value));
        let mut http = self.connected().http(self.scheme);
        if is_relayed {
            // RFC 9230 §4.1.
            let (host, path) = (escaped(&asked.authority), escaped(&asked.path));
            let sign = if http.path.contains('?') { '&' } else { '?' };
            http.path = format!("{}{sign}targethost={host}&targetpath={path}", http.path);
        }
        let bootstrap = match target {
            Target::Name { .. } => bootstrap(self.group, machine, problems),
            Target::Address(_) => Vec::new(),
        };
        let target = OdohPlan { target, authority: asked.authority, tls: target_tls, bootstrap };
        Some(Protocol::Odoh { tls, http, target: Box::new(target) })
    }

    /// Returns what a server must prove, and how connections to it begin.
    fn client_tls(
        &self,
        proves: Proves<'_>,
        environment: &dyn Environment,
        problems: &mut Vec<Problem>,
    ) -> Option<ClientTls> {
        let tls = &self.entry.tls;
        let (is_other, Written { host, tls_name, stamp, .. }) = match proves {
            Proves::Server(written) => (false, written),
            Proves::Target(written) => (self.relay.is_some(), written),
        };
        let text = match (tls.name.as_ref().filter(|_| !is_other), tls_name, host) {
            (Some(name), _, _) => name.value.clone(),
            (None, Some(name), _) => name.to_owned(),
            (None, None, Host::Address(address)) => address.ip().to_string(),
            (None, None, Host::Name { name, .. }) => name.to_string(),
        };
        let Some(name) = plan::tls::tls_name(&text) else {
            let message = format!("\"{text}\" is not a name that a certificate can be for");
            let hint = "set \"tls-name\" to the name that the server's certificate has";
            problems.push(Problem::error(self.entry.server.span, message).hint(hint));
            return None;
        };
        let proof = if !tls.pins.is_empty() && !is_other {
            Proof::Keys(tls.pins.clone())
        } else {
            match tls.verify {
                VerifyWord::Name => Proof::Authorities(roots(&tls.roots, environment, problems)?),
                VerifyWord::Chain => Proof::Chain(roots(&tls.roots, environment, problems)?),
                VerifyWord::Nothing => Proof::None,
            }
        };
        let certificates = stamp.map(|stamp| stamp.certificates.clone()).unwrap_or_default();
        Some(ClientTls {
            name,
            proof,
            certificates,
            identity: None,
            protocols: self.scheme.alpn(),
            sends_name: tls.sends_name,
            early_data: tls.early_data,
        })
    }
}

/// Reads the authorities that are trusted.
pub(in crate::compile) fn roots(
    roots: &At<TrustedRoots>,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Roots> {
    let path = match &roots.value {
        TrustedRoots::Mozilla => return Some(Roots::Mozilla),
        TrustedRoots::File(path) => path,
    };
    let read = environment.read(path).map_err(|error| format!("cannot be read: {}", io_text(&error)));
    let found = read.map(|octets| plan::tls::certificates(&octets)).and_then(|certificates| {
        if certificates.is_empty() { Err("has no certificates".to_owned()) } else { Ok(certificates) }
    });
    match found {
        Ok(certificates) => Authorities::new(certificates)
            .map_err(|none| problems.push(Problem::error(roots.span, none.to_string())))
            .map(Roots::Own)
            .ok(),
        Err(why) => {
            let message = format!("\"{}\" {why}", path.display());
            problems.push(Problem::error(roots.span, message).expected("a file of certificates (PEM)"));
            None
        }
    }
}

/// Writes a text as a part of a URL's query (RFC 3986 §3.4).
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~/:".contains(&octet) {
            escaped.push(char::from(octet));
        } else {
            escaped.push_str(&format!("%{octet:02X}"));
        }
    }
    escaped
}
