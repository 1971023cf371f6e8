//! Upstream groups as fetchers see them.

mod servers;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use diagnostic::{Problem, Span, io_text};
use engine::PoolId;
use plan::relay::{RelayPlan, RelayTarget};
use plan::tls::{ClientTls, Proof};
use plan::upstreams::{Limits, Outgoing, Plan, PoolPlan, RcodeSet, ServerPlan, Target, WaitNetwork};
use wire::Rcode;

use super::resolv;
use environment::Environment;
pub(super) use servers::roots;
use settings::{self, Bootstrap, Group, RcodeTerm, Settings};

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
    let outgoing = Arc::clone(&settings.outgoing.bound);
    let mut machine = Machine { own, outgoing, environment, resolv_conf: None };
    let pools = settings.upstreams.iter().filter_map(|group| {
        let id = PoolId(*pools.get(&group.name.value)?);
        Some(PoolPlan {
            udp_size: settings.announced_size,
            fetching_max: limits.fetching_max,
            ..pool(id, group, &mut machine, problems)
        })
    });
    let wait_networks = wait_networks(&settings.limits.wait_networks, workers);
    Plan { pools: pools.collect(), limits, wait_networks }
}

/// Returns how many replies one of so many workers holds for a client that may have so many;
/// `None`: any number.
fn wait_limit(limit: Option<u32>, workers: u32) -> u32 {
    limit.map_or(u32::MAX, |limit| limit.div_ceil(workers).max(limit.min(WAIT_LIMIT_MIN)))
}

/// Returns networks with limits of their own, the longest prefix first.
fn wait_networks(networks: &[settings::WaitNetwork], workers: usize) -> Arc<[WaitNetwork]> {
    let workers = u32::try_from(workers).unwrap_or(u32::MAX).max(1);
    let share = |limit: Option<Option<u32>>| limit.map(|limit| wait_limit(limit, workers));
    let mut networks: Vec<WaitNetwork> = networks
        .iter()
        .map(|network| WaitNetwork {
            prefix: network.prefix,
            unproven_max: share(network.replies),
            proven_max: share(network.with_cookie),
        })
        .collect();
    networks.sort_by_key(|network| std::cmp::Reverse(network.prefix.bits()));
    networks.into()
}

/// Returns whether the machine has a resolver besides this server.
pub(super) fn has_system(own: &[SocketAddr], environment: &dyn Environment) -> bool {
    let mut machine = Machine { own, outgoing: Arc::default(), environment, resolv_conf: None };
    !machine.system("", Span::BUILT_IN, &mut Vec::new()).is_empty()
}

/// Returns the most descriptors that one of so many workers uses for upstreams.
pub(super) fn descriptors_max(settings: &Settings, workers: usize, environment: &dyn Environment) -> usize {
    let numbers =
        settings.upstreams.iter().zip(0..).map(|(group, number)| (group.name.value.clone(), number));
    // What is wrong with them is said when the configuration is compiled.
    plan(settings, &numbers.collect(), &[], workers, environment, &mut Vec::new()).descriptors_max()
}

/// Replies that one worker may hold for a client, however many workers there are: a client that
/// asks from one port is served by one of them.
const WAIT_LIMIT_MIN: u32 = 100;

/// Divides the bound on waiting queries among the workers; the other bounds keep their proportion
/// to it.
fn limits(settings: &settings::Limits, workers: usize) -> Limits {
    let usual = Limits::default();
    let workers = u32::try_from(workers).unwrap_or(u32::MAX).max(1);
    let share = (settings.waiting / workers).max(1);
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
        unproven_per_client_max: wait_limit(settings.wait_limit, workers),
        proven_per_client_max: wait_limit(settings.wait_limit_with_cookie, workers),
        shed: settings.shed,
        discard_after_ms: u32::try_from(discard_after).unwrap_or(u32::MAX),
        ..usual
    }
}

fn pool(id: PoolId, group: &Group, machine: &mut Machine<'_>, problems: &mut Vec<Problem>) -> PoolPlan {
    let name = &group.name.value;
    let servers: Vec<ServerPlan> = group
        .servers
        .iter()
        .enumerate()
        .flat_map(|numbered| servers::servers(group, numbered, machine, problems))
        .collect();
    let is_name = |target: &Target| matches!(target, Target::Name { .. });
    let has_names = servers.iter().any(|server| {
        is_name(&server.target) || server.way.protocol.odoh().is_some_and(|odoh| is_name(&odoh.target))
    });
    let bootstrap = if has_names { bootstrap(group, machine, problems) } else { Vec::new() };
    if has_names && bootstrap.is_empty() {
        let message = format!("nobody can be asked for the addresses of the servers of \"{name}\"");
        problems.push(
            Problem::warning(group.name.span, message).hint("set \"bootstrap\" to the address of a resolver"),
        );
    }
    PoolPlan {
        pick: group.pick,
        timeout_ms: group.timeout.as_millis() as u32,
        patience: group.patience,
        hedge: group.hedge,
        fallback_on: group.fallback_on.iter().fold(RcodeSet::EMPTY, |set, term| match term {
            RcodeTerm::Unusable => {
                (0..32).map(Rcode).filter(|rcode| RcodeSet::UNUSABLE.has(*rcode)).fold(set, RcodeSet::with)
            }
            RcodeTerm::One(rcode) => set.with(*rcode),
        }),
        bootstrap,
        case_randomisation: group.case_randomisation,
        exact_case: group.exact_case.as_slice().into(),
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
            sends_name: true,
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
    /// What sockets are bound to.
    outgoing: Arc<Outgoing>,
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
    use environment::Memory;
    use plan::upstreams::{Protocol, Way};
    use settings::load::load_text;
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
        let Protocol::Odoh { tls, http, target: odoh } = way.protocol else { panic!("a target") };
        assert_eq!(
            (http.authority.as_str(), http.path.as_str()),
            ("r.example", "/p?targethost=t.example:8443&targetpath=/d",)
        );
        assert_eq!(tls.name.to_str(), "r.example");
        assert_eq!(odoh.authority, "t.example:8443");
        assert_eq!(odoh.bootstrap.len(), 1);
    }

    #[test]
    fn without_a_relay_the_target_is_asked_itself() {
        let (target, found) = way("\"odoh://192.0.2.1\"");
        assert!(target == Target::Address("192.0.2.1:443".parse().expect("an address")));
        let Protocol::Odoh { http, .. } = found.protocol else { panic!("a target") };
        assert_eq!(http.path, "/dns-query");
        let (target, found) = way("{address: \"odoh://t.example\", dial: 192.0.2.1}");
        let dialled = Target::Address("192.0.2.1:443".parse().expect("an address"));
        let odoh = found.protocol.odoh().expect("a target");
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
