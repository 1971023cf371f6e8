//! Upstream groups as fetchers see them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use diagnostic::{At, Problem, Span, io_text};
use engine::PoolId;
use plan::relay::{RelayPlan, RelayTarget};
use plan::tls::{Authorities, ClientTls, Proof, Roots};
use plan::upstreams::{
    Bind, Connections, DnscryptPlan, Hedge, HttpPlan, Limits, Login, OdohPlan, Pick, Plan, PoolPlan,
    Protocol, Proxy, RcodeSet, ServerPlan, Shed, Target, Way,
};

use wire::Rcode;

use super::resolv;
use crate::settings::{
    self, Bootstrap, Group, GroupServer, Host, RcodeTerm, Scheme, Server, Settings, ShedWord, Stamp,
    TrustedRoots,
};
use environment::Environment;

/// Returns the plan for all groups.
pub(super) fn plan(
    settings: &Settings,
    pools: &BTreeMap<String, u16>,
    own: &[SocketAddr],
    workers: usize,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Plan {
    let limits = limits(&settings.limits, workers);
    let mut machine = Machine { own, environment, resolv_conf: None };
    let pools = settings.upstreams.iter().filter_map(|group| {
        let id = PoolId(*pools.get(&group.name.value)?);
        Some(PoolPlan {
            udp_size: settings.udp_size,
            fetching_max: limits.fetching_max,
            ..pool(id, group, &mut machine, problems)
        })
    });
    Plan { pools: pools.collect(), limits }
}

/// Returns the most descriptors that one of so many workers uses for upstreams.
pub(super) fn descriptors_max(settings: &Settings, workers: usize, environment: &dyn Environment) -> usize {
    let numbers =
        settings.upstreams.iter().zip(0..).map(|(group, number)| (group.name.value.clone(), number));
    // What is wrong with them is said when the configuration is compiled.
    plan(settings, &numbers.collect(), &[], workers, environment, &mut Vec::new()).descriptors_max()
}

/// Replies that one worker may hold for a client, however many workers there are: a client that asks from one port is
/// served by one of them.
const WAIT_LIMIT_MIN: u32 = 100;

/// Divides the bound on waiting queries among the workers; the other bounds keep their proportion to it.
fn limits(settings: &settings::Limits, workers: usize) -> Limits {
    let usual = Limits::default();
    let workers = u32::try_from(workers).unwrap_or(u32::MAX).max(1);
    let share = (settings.waiting / workers).max(1);
    let wait_limit =
        settings.wait_limit.map_or(u32::MAX, |limit| limit.div_ceil(workers).max(limit.min(WAIT_LIMIT_MIN)));
    let discard_after = settings.discard_timeout.map_or(u128::MAX, |after| after.as_millis());
    let scaled = |bound: u32| {
        let scaled = u64::from(bound) * u64::from(share) / u64::from(usual.waiting_max);
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    };
    Limits {
        fetching_max: scaled(usual.fetching_max),
        waiting_max: share,
        waiting_per_fetch_max: scaled(usual.waiting_per_fetch_max),
        waiting_per_client_max: scaled(usual.waiting_per_client_max),
        unproven_per_client_max: wait_limit,
        shed: match settings.shed {
            ShedWord::Servfail => Shed::Servfail,
            ShedWord::Drop => Shed::Drop,
        },
        discard_after_ms: u32::try_from(discard_after).unwrap_or(u32::MAX),
        ..usual
    }
}

fn pool(id: PoolId, group: &Group, machine: &mut Machine<'_>, problems: &mut Vec<Problem>) -> PoolPlan {
    let name = &group.name.value;
    let mut servers = Vec::new();
    let mut has_names = false;
    for (number, entry) in group.servers.iter().enumerate() {
        let span = entry.server.span;
        let bind = Bind { source: entry.source, mark: entry.mark, device: entry.interface.clone() };
        let connections = Connections {
            min: entry.connections_min,
            max: entry.connections_max,
            idle_ms: u32::try_from(entry.idle.as_millis()).unwrap_or(u32::MAX),
        };
        let proxy = entry.proxy.as_ref().map(|proxy| Proxy {
            address: proxy.value,
            login: entry
                .proxy_login
                .as_ref()
                .map(|(user, password)| Login { user: user.clone(), password: password.clone() }),
        });
        let plan = |target: Target, way: Way| ServerPlan {
            target,
            way: Arc::new(Way { bind: bind.clone(), connections, proxy: proxy.clone(), ..way }),
            weight: entry.weight,
            member: u8::try_from(number).unwrap_or(u8::MAX),
        };
        match &entry.server.value {
            Server::System => {
                // resolv.conf may be written later than we are started: the group has no servers until a reload.
                let found = machine.system(name, span, problems);
                servers
                    .extend(found.into_iter().map(|address| plan(Target::Address(address), Way::default())));
            }
            Server::One { scheme, host, tls_name, path, stamp } => {
                let protocol = match scheme {
                    Scheme::Udp => Protocol::Udp,
                    Scheme::Tcp => Protocol::Tcp,
                    Scheme::Tls => Protocol::Tls,
                    Scheme::Https => Protocol::Https,
                    Scheme::Quic => Protocol::Quic,
                    Scheme::Https3 => Protocol::Https3,
                    Scheme::Dnscrypt => Protocol::Dnscrypt,
                    Scheme::Odoh => Protocol::Odoh,
                };
                let odoh = if *scheme == Scheme::Odoh {
                    let proves = (host, tls_name.as_deref().filter(|_| entry.relay.is_some()), None);
                    let Some(tls) =
                        client_tls(entry, Proves::Target(proves), protocol, machine.environment, problems)
                    else {
                        continue;
                    };
                    // Where there is a relay, `dial` is for that.
                    let dial = entry.dial.as_ref().filter(|_| entry.relay.is_none());
                    let target = match (host, dial) {
                        (Host::Address(address), _) => Target::Address(*address),
                        (Host::Name { port, .. }, Some(dial)) => {
                            Target::Address(SocketAddr::new(dial.value, *port))
                        }
                        (Host::Name { name, port }, None) => Target::Name { name: *name, port: *port },
                    };
                    let http = HttpPlan { authority: authority(host, *scheme), path: path.clone() };
                    Some((target, tls, http))
                } else {
                    None
                };
                // Messages go to the relay if there is one: it is connected to, and proves who it is.
                let (host, tls_name, path, stamp) = match entry.relay.as_ref().map(|relay| &relay.value) {
                    Some(Server::One { host, tls_name, path, stamp, .. }) if odoh.is_some() => {
                        (host, tls_name, path, stamp)
                    }
                    _ => (host, tls_name, path, stamp),
                };
                let tls = if scheme.is_secured() {
                    let name = tls_name.as_deref();
                    let proves = Proves::Server((host, name, stamp.as_deref()));
                    let Some(tls) = client_tls(entry, proves, protocol, machine.environment, problems) else {
                        continue;
                    };
                    Some(tls)
                } else {
                    None
                };
                let dnscrypt = stamp
                    .as_ref()
                    .and_then(|stamp| stamp.provider)
                    .map(|(name, key)| DnscryptPlan { name, key });
                let stamped = stamp.as_ref().and_then(|stamp| stamp.dial);
                let target = match (host, stamped.or(entry.dial.as_ref().map(|dial| dial.value))) {
                    (Host::Name { port, .. }, Some(dial)) => Target::Address(SocketAddr::new(dial, *port)),
                    (Host::Address(address), _) => Target::Address(*address),
                    (Host::Name { name, port }, None) => Target::Name { name: *name, port: *port },
                };
                if let Target::Address(address) = &target
                    && machine.is_own(*address)
                {
                    problems.push(
                        Problem::error(
                            span,
                            format!("\"{address}\" is an address that this server listens on"),
                        )
                        .hint("queries would come back to it"),
                    );
                }
                let mut http = scheme
                    .path()
                    .map(|_| HttpPlan { authority: authority(host, *scheme), path: path.clone() });
                let odoh = odoh.map(|(target, tls, at)| {
                    if let (Some(http), Some(_)) = (&mut http, &entry.relay) {
                        // RFC 9230 §4.1.
                        let (host, path) = (escaped(&at.authority), escaped(&at.path));
                        let sign = if http.path.contains('?') { '&' } else { '?' };
                        http.path = format!("{}{sign}targethost={host}&targetpath={path}", http.path);
                    }
                    let authority = at.authority;
                    let is_name = matches!(target, Target::Name { .. });
                    has_names |= is_name;
                    let bootstrap = if is_name { bootstrap(group, machine, problems) } else { Vec::new() };
                    OdohPlan { target, authority, tls, bootstrap }
                });
                servers.push(plan(target, Way { protocol, tls, http, dnscrypt, odoh, ..Way::default() }));
            }
        }
    }
    has_names |= servers.iter().any(|server| matches!(server.target, Target::Name { .. }));
    let bootstrap = if has_names { bootstrap(group, machine, problems) } else { Vec::new() };
    if has_names && bootstrap.is_empty() {
        let message = format!("nobody can be asked for the addresses of the servers of \"{name}\"");
        problems.push(
            Problem::warning(group.name.span, message).hint("set \"bootstrap\" to the address of a resolver"),
        );
    }
    PoolPlan {
        pick: match group.pick {
            settings::Pick::Ordered => Pick::Ordered,
            settings::Pick::Fastest => Pick::Fastest,
            settings::Pick::Balanced => Pick::Balanced,
            settings::Pick::Race(number) => Pick::Race(number),
            settings::Pick::PreferPositive(width) => {
                Pick::PreferPositive { width, wait_ms: group.negative_wait.as_millis() as u32 }
            }
            settings::Pick::Consensus { agreeing, of } => Pick::Consensus { width: of, agreeing },
        },
        timeout_ms: group.timeout.as_millis() as u32,
        hedge: match group.hedge {
            settings::Hedge::Off => Hedge::Off,
            settings::Hedge::Auto => Hedge::Auto,
            settings::Hedge::After(time) => Hedge::AfterMs(time.as_millis() as u32),
        },
        fallback_on: group.fallback_on.iter().fold(RcodeSet::EMPTY, |set, term| match term {
            RcodeTerm::Unusable => {
                (0..32).map(Rcode).filter(|rcode| RcodeSet::UNUSABLE.has(*rcode)).fold(set, RcodeSet::with)
            }
            RcodeTerm::One(rcode) => set.with(*rcode),
        }),
        bootstrap,
        case_randomisation: group.case_randomisation,
        ..PoolPlan::new(id, name, servers)
    }
}

/// Returns who is asked for the addresses of a group's servers.
fn bootstrap(group: &Group, machine: &mut Machine<'_>, problems: &mut Vec<Problem>) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for entry in &group.bootstrap {
        match entry.value {
            Bootstrap::System => addresses.extend(machine.system(&group.name.value, entry.span, problems)),
            Bootstrap::Address(address) => addresses.push(address),
        }
    }
    addresses
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

/// Returns what requests to a web server are for: its name or address, and its port if it is unusual.
fn authority(host: &Host, scheme: Scheme) -> String {
    let with = |host: String, port: u16| if port == scheme.port() { host } else { format!("{host}:{port}") };
    match host {
        Host::Address(SocketAddr::V6(address)) => with(format!("[{}]", address.ip()), address.port()),
        Host::Address(address) => with(address.ip().to_string(), address.port()),
        Host::Name { name, port } => with(name.to_string().trim_end_matches('.').to_owned(), *port),
    }
}

/// Where a server is, what its certificate is for if something else, and what its stamp says.
type Claim<'s> = (&'s Host, Option<&'s str>, Option<&'s Stamp>);

/// Who proves what.
#[derive(Clone, Copy)]
enum Proves<'s> {
    /// The server that is connected to, for queries.
    Server(Claim<'s>),
    /// The target of oblivious messages, when it is asked for its key. What is said of names and keys is for the server that
    /// is connected to, if that is another.
    Target(Claim<'s>),
}

/// Returns what a server must prove, and how connections to it begin.
fn client_tls(
    entry: &GroupServer,
    proves: Proves<'_>,
    protocol: Protocol,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<ClientTls> {
    let tls = &entry.tls;
    let (is_other, (host, tls_name, stamp)) = match proves {
        Proves::Server(claim) => (false, claim),
        Proves::Target(claim) => (entry.relay.is_some(), claim),
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
        problems.push(Problem::error(entry.server.span, message).hint(hint));
        return None;
    };
    let proof = if !tls.pins.is_empty() && !is_other {
        Proof::Keys(tls.pins.clone())
    } else if tls.verify {
        Proof::Authorities(roots(&tls.roots, environment, problems)?)
    } else {
        Proof::None
    };
    let certificates = stamp.map(|stamp| stamp.certificates.clone()).unwrap_or_default();
    Some(ClientTls {
        name,
        proof,
        certificates,
        identity: None,
        protocols: protocol.alpn(),
        early_data: tls.early_data,
    })
}

/// Reads the authorities that are trusted.
fn roots(
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

/// Returns the oblivious targets that messages are carried to.
pub(super) fn relay(
    settings: &Settings,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> RelayPlan {
    let mut targets = Vec::new();
    for target in &settings.relay_to {
        let Some(name) = plan::tls::tls_name(&target.host.value) else {
            let message = format!("\"{}\" is not a name that a certificate can be for", target.host.value);
            problems.push(Problem::error(target.host.span, message));
            continue;
        };
        let Some(roots) = roots(&target.roots, environment, problems) else { continue };
        let tls = ClientTls {
            name,
            proof: Proof::Authorities(roots),
            certificates: Vec::new(),
            identity: None,
            protocols: vec![b"h2".to_vec()],
            early_data: false,
        };
        let host = target.host.value.clone();
        let authority = match target.port {
            443 => host.clone(),
            port => format!("{host}:{port}"),
        };
        targets.push(RelayTarget { authority, host, port: target.port, dial: target.dial, tls });
    }
    RelayPlan { targets }
}

/// What groups need to know about this machine.
struct Machine<'a> {
    own: &'a [SocketAddr],
    environment: &'a dyn Environment,
    /// The servers of `resolv.conf`, once somebody asked; an error is its text.
    resolv_conf: Option<Result<Vec<SocketAddr>, String>>,
}

impl Machine<'_> {
    /// Returns the servers of `resolv.conf` except ourselves.
    fn system(&mut self, group: &str, span: Span, problems: &mut Vec<Problem>) -> Vec<SocketAddr> {
        let path = self.environment.resolv_conf();
        if self.resolv_conf.is_none() {
            let read = self.environment.read(&path).map_err(|error| io_text(&error));
            let found =
                read.map(|octets| resolv::servers(&String::from_utf8_lossy(&octets), self.environment));
            self.resolv_conf = Some(found);
        }
        let path = path.display();
        let problem = match &self.resolv_conf {
            Some(Ok(servers)) => {
                let others: Vec<SocketAddr> =
                    servers.iter().copied().filter(|address| !self.is_own(*address)).collect();
                if !others.is_empty() {
                    return others;
                }
                if servers.is_empty() {
                    format!("{path} names no server")
                } else {
                    format!("{path} names only this server")
                }
            }
            Some(Err(error)) => format!("cannot read {path}: {error}"),
            None => return Vec::new(),
        };
        problems.push(
            Problem::warning(span, format!("\"system\" stands for no server: {problem}"))
                .hint(format!("name servers: \"upstreams: {{{group}: {{servers: [9.9.9.9]}}}}\"")),
        );
        Vec::new()
    }

    /// Returns whether a query to `address` would come to us.
    fn is_own(&self, address: SocketAddr) -> bool {
        self.own.iter().any(|own| {
            let is_any = own.ip().is_unspecified() && own.is_ipv4() == address.is_ipv4();
            // Which addresses this machine has besides is not known here.
            let is_local = is_loopback(address.ip()) || address.ip().is_unspecified();
            own.port() == address.port() && (own.ip() == address.ip() || (is_any && is_local))
        })
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use environment::Memory;
    use std::path::Path;

    /// Checks the targets of the only group, and the warnings.
    fn check(servers: &str, resolv_conf: &str, own: &[&str], expect: &[&str], warnings: &[&str]) {
        let memory = Memory::new(&[("/etc/resolv.conf", resolv_conf)]);
        let text = format!("upstreams: {{default: {{servers: [{servers}]}}}}\n");
        let loaded = load_text(Path::new("x"), &text, &memory).expect("no mistakes");
        let own: Vec<SocketAddr> = own.iter().map(|text| text.parse().expect("an address")).collect();
        let (found, said) = match super::super::compile(&loaded, &own, None, &memory) {
            Ok(plans) => (plans.fetch.pools[0].servers.clone(), plans.warnings),
            Err(found) => (Vec::new(), found),
        };
        let found: Vec<String> = found
            .iter()
            .map(|server| match &server.target {
                Target::Address(address) => address.to_string(),
                Target::Name { name, port } => format!("{name}:{port}"),
            })
            .collect();
        assert_eq!(found, expect);
        assert_eq!(said.iter().map(|found| found.message.as_str()).collect::<Vec<_>>(), warnings);
    }

    #[test]
    fn the_system_s_servers_are_used_but_never_ourselves() {
        let conf = "nameserver 127.0.0.1\nnameserver 192.0.2.1\n";
        check("system", conf, &["127.0.0.1:53"], &["192.0.2.1:53"], &[]);
        check("system", conf, &["127.0.0.1:5300"], &["127.0.0.1:53", "192.0.2.1:53"], &[]);
        check("system", conf, &["0.0.0.0:53"], &["192.0.2.1:53"], &[]);
        check("system", "nameserver 127.0.0.53\n", &["127.0.0.1:53"], &["127.0.0.53:53"], &[]);
        check(
            "system",
            "nameserver 127.0.0.1\n",
            &["127.0.0.1:53"],
            &[],
            &["\"system\" stands for no server: /etc/resolv.conf names only this server"],
        );
        check("system", "", &[], &[], &["\"system\" stands for no server: /etc/resolv.conf names no server"]);
    }

    #[test]
    fn a_server_that_is_ourselves_is_an_error() {
        check(
            "127.0.0.1",
            "",
            &["0.0.0.0:53"],
            &[],
            &["\"127.0.0.1:53\" is an address that this server listens on"],
        );
    }

    #[test]
    fn names_need_somebody_who_knows_them() {
        check("dns.example", "nameserver 192.0.2.1\n", &[], &["dns.example.:53"], &[]);
        check(
            "dns.example",
            "",
            &[],
            &["dns.example.:53"],
            &[
                "nobody can be asked for the addresses of the servers of \"default\"",
                "\"system\" stands for no server: /etc/resolv.conf names no server",
            ],
        );
    }

    /// Returns how the only server of a group is asked.
    fn way(server: &str) -> (Target, Way) {
        let memory = Memory::new(&[]);
        let text = format!("upstreams: {{default: {{bootstrap: 192.0.2.9, servers: [{server}]}}}}\n");
        let loaded = load_text(Path::new("x"), &text, &memory).expect("no mistakes");
        let plans = super::super::compile(&loaded, &[], None, &memory).expect("no mistakes");
        let server = plans.fetch.pools[0].servers[0].clone();
        (server.target, (*server.way).clone())
    }

    #[test]
    fn messages_for_a_target_go_to_its_relay() {
        let (target, way) = way(
            "{address: \"odoh://t.example:8443/d\", relay: \"https://r.example/p{?targethost,targetpath}\", dial: 192.0.2.1}",
        );
        assert!(target == Target::Address("192.0.2.1:443".parse().expect("an address")));
        let http = way.http.expect("a path");
        assert_eq!(
            (http.authority.as_str(), http.path.as_str()),
            ("r.example", "/p?targethost=t.example:8443&targetpath=/d",)
        );
        assert_eq!(way.tls.expect("a name").name.to_str(), "r.example");
        let odoh = way.odoh.expect("a target");
        assert_eq!(odoh.authority, "t.example:8443");
        assert_eq!(odoh.bootstrap.len(), 1);
    }

    #[test]
    fn without_a_relay_the_target_is_asked_itself() {
        let (target, found) = way("\"odoh://192.0.2.1\"");
        assert!(target == Target::Address("192.0.2.1:443".parse().expect("an address")));
        assert_eq!(found.http.expect("a path").path, "/dns-query");
        let (target, found) = way("{address: \"odoh://t.example\", dial: 192.0.2.1}");
        let dialled = Target::Address("192.0.2.1:443".parse().expect("an address"));
        let odoh = found.odoh.expect("a target");
        assert!(target == dialled && odoh.target == dialled, "messages and keys come from there");
        assert_eq!(odoh.tls.name.to_str(), "t.example");
    }

    #[test]
    fn what_a_proxy_relays_stays_as_it_is() {
        for server in ["9.9.9.9", "tcp://9.9.9.9", "quic://9.9.9.9"] {
            let (_, found) = way(&format!("{{address: \"{server}\", proxy: 192.0.2.7}}"));
            assert!(found.is_connected() && found.proxy.is_some(), "{server}");
        }
        assert!(!way("9.9.9.9").1.is_connected());
    }

    fn settings(wait_limit: u32) -> settings::Limits {
        let memory = Memory::new(&[]);
        let loaded = load_text(Path::new("x"), "", &memory).expect("no mistakes");
        settings::Limits { wait_limit: Some(wait_limit), ..loaded.settings.limits }
    }

    #[test]
    fn descriptors_follow_the_upstreams_of_the_configuration() {
        let memory = Memory::new(&[]);
        let count = |upstreams: &str| {
            let loaded = load_text(
                Path::new("x"),
                &format!("upstreams: {{default: {{servers: [{upstreams}]}}}}"),
                &memory,
            );
            descriptors_max(&loaded.expect("no mistakes").settings, 2, &memory)
        };
        let (tcp, one, two) = (count("\"tcp://9.9.9.1\""), count("9.9.9.9"), count("9.9.9.9, 9.9.9.10"));
        assert!(tcp < one && one < two, "{tcp}, {one}, {two}");
        let many = (1..=250).map(|last| format!("9.9.9.{last}")).collect::<Vec<_>>().join(", ");
        let Limits { sockets_max, connections_max, .. } = Limits::default();
        let bound = (sockets_max + 250 + 2 * (connections_max + 250)) as usize;
        assert!((two + 1..=bound + 64).contains(&count(&many)), "{} for 250 servers", count(&many));
    }

    #[test]
    fn the_bounds_on_waiting_queries_are_divided() {
        let limits = limits(&settings(1000), 4);
        assert_eq!((limits.waiting_max, limits.fetching_max), (16_384, 8192));
        assert_eq!(super::limits(&settings(1000), 2), Limits::default());
        assert_eq!(super::limits(&settings(1000), 16).unproven_per_client_max, 100, "enough for one client");
        assert_eq!(super::limits(&settings(10), 16).unproven_per_client_max, 10);
    }
}
