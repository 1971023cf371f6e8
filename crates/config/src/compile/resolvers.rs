//! Resolvers: the settings to plans.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use cache::rrsets::Partition;
use diagnostic::{At, Problem, io_text};
use engine::ResolverId;
use environment::Environment;
use plan::resolvers::{Plan, ResolverPlan};
use policy::Action;
use policy::action::Core;
use resolver::{Family, Forwarders, HeapName, Hint, NegativeAnchor, Route, Trust, TrustAnchor, Way};
use wire::{Name, NameBuf, Prefix, Rtype};

use super::anchors;
use crate::zones::Trusts;
use settings::{
    ClientSubnetUse, GroupServer, Host, ResolverSettings, RouteSettings, RouteWay, Server, Settings,
};

/// Returns the plan for the resolvers that policies use; both they and groups have numbers by their
/// names.
pub(super) fn plan(
    settings: &Settings,
    (numbers, groups): (&BTreeMap<String, u16>, &BTreeMap<String, u16>),
    own: &[SocketAddr],
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Plan {
    let used = used(settings);
    let used = settings.resolvers.iter().filter(|resolver| used.contains(resolver.name.value.as_str()));
    let outgoing = &settings.outgoing.bound;
    let plans = used.filter_map(|resolver| {
        let number = *numbers.get(&resolver.name.value)?;
        let mut rules = resolver.rules.clone();
        rules.partition = Partition(number);
        rules.trust = trust(resolver, environment, problems);
        // Whoever names one of our addresses for a server has us ask ourselves.
        let ours = own.iter().filter(|own| own.port() == rules.port && !own.ip().is_unspecified());
        rules.addresses.refused.extend(ours.map(|own| host(own.ip())));
        let reaches = |family| rules.addresses.has(family) && outgoing.has_family(family == Family::V4);
        if !reaches(Family::V4) && !reaches(Family::V6) {
            let name = &resolver.name.value;
            let message = format!("resolver \"{name}\" can ask nobody: no family that it uses has a source");
            let problem = Problem::error(resolver.name.span, message);
            problems.push(problem.hint("\"outgoing.sources\" has addresses of the other family alone"));
        }
        rules.addresses.v4 &= outgoing.has_family(true);
        rules.addresses.v6 &= outgoing.has_family(false);
        if let Some(file) = &resolver.root_hints {
            rules.hints = hints(file, environment, problems);
        }
        rules.routes = resolver.zones.iter().filter_map(|zone| route(zone, groups)).collect();
        let told = told_groups(settings, resolver).filter_map(|group| groups.get(group));
        rules.subnets.forwarders = told.copied().map(Forwarders).collect();
        Some(ResolverPlan {
            id: ResolverId(number),
            name: resolver.name.value.clone(),
            octets_max: usize::try_from(resolver.cache_size).unwrap_or(usize::MAX),
            settings: rules,
            second_level: resolver.second_level.clone().map(Arc::new),
        })
    });
    let mut resolvers: Vec<ResolverPlan> = plans.collect();
    resolvers.sort_by_key(|resolver| resolver.id.0);
    Plan {
        outgoing: Arc::clone(&settings.outgoing.bound),
        connections_max: settings.outgoing.connections,
        resolvers,
    }
}

/// Returns what a resolver trusts.
fn trust(resolver: &ResolverSettings, environment: &dyn Environment, problems: &mut Vec<Problem>) -> Trust {
    let mut trust = resolver.rules.trust.clone();
    if !resolver.trust_anchors.is_empty() {
        trust.anchors = anchors::read(&resolver.trust_anchors, environment, problems);
    }
    if !resolver.anchor_records.is_empty() {
        if resolver.trust_anchors.is_empty() {
            trust.anchors.clear();
        }
        TrustAnchor::extend(&mut trust.anchors, &resolver.anchor_records);
    }
    trust
}

/// Returns what resolvers trust, by their names, and whether policies use them, if zones look at
/// that. A resolver that does not validate trusts nothing that would have to be checked.
pub(crate) fn trusts(settings: &Settings, environment: &dyn Environment) -> Trusts {
    let used = used(settings);
    let of = |resolver: &ResolverSettings| {
        // What is wrong with the files is said of the resolver.
        let mut trust = trust(resolver, environment, &mut Vec::new());
        if !resolver.rules.validation.judges() {
            trust.anchors.clear();
        }
        let negative = resolver
            .negative
            .iter()
            .map(|plan| NegativeAnchor { zone: HeapName::new(plan.zone.as_name()), ends_at: None });
        trust.negative.extend(negative);
        (resolver.name.value.clone(), (trust, used.contains(resolver.name.value.as_str())))
    };
    settings.resolvers.iter().map(of).collect()
}

/// Walks the groups that a resolver tells of clients' subnets: those whose settings say so, and
/// those all of whose servers are in networks that are told.
fn told_groups<'s>(settings: &'s Settings, resolver: &'s ResolverSettings) -> impl Iterator<Item = &'s str> {
    let networks = &resolver.rules.subnets.servers;
    let is_in = |server: &GroupServer| match &server.server.value {
        Server::One { host: Host::Address(address), .. } => {
            networks.iter().any(|network| network.contains(address.ip()))
        }
        Server::One { host: Host::Name { .. }, .. } | Server::System => false,
    };
    let groups = resolver.zones.iter().filter_map(|zone| match &zone.way {
        RouteWay::Forward(name) => settings.upstreams.iter().find(|group| group.name.value == name.value),
        RouteWay::Stub(_) | RouteWay::Own(_) => None,
    });
    let told = groups.filter(move |group| {
        group.client_subnet == ClientSubnetUse::Forward || group.servers.iter().all(is_in)
    });
    told.map(|group| group.name.value.as_str())
}

/// Returns a route; `None` if it leads to a group that there is not, which is a mistake that was
/// reported.
fn route(zone: &RouteSettings, groups: &BTreeMap<String, u16>) -> Option<Route> {
    let RouteSettings { zone, way, first, keeps } = zone.clone();
    let way = match way {
        RouteWay::Stub(stub) => Way::Stub(stub),
        RouteWay::Forward(group) => Way::Forward(Forwarders(*groups.get(&group.value)?)),
        RouteWay::Own(_) => Way::Own,
    };
    Some(Route { zone, way, first, keeps })
}

/// Returns the number of each resolver, by its name.
pub(super) fn ids<'a>(
    settings: &'a Settings,
    numbers: &BTreeMap<String, u16>,
) -> BTreeMap<&'a str, policy::compile::Resolver> {
    let id = |resolver: &'a ResolverSettings| {
        let name = resolver.name.value.as_str();
        let sends_subnets =
            !resolver.rules.subnets.is_empty() || told_groups(settings, resolver).next().is_some();
        let (id, refers) = (ResolverId(*numbers.get(name)?), resolver.refers);
        Some((name, policy::compile::Resolver { id, sends_subnets, refers }))
    };
    settings.resolvers.iter().filter_map(id).collect()
}

/// Returns the most descriptors that one worker uses for resolvers.
pub(super) fn descriptors_max(settings: &Settings, environment: &dyn Environment) -> usize {
    let numbers = settings.resolvers.iter().zip(0..).map(|(it, number)| (it.name.value.clone(), number));
    // What is wrong with them is said when the configuration is compiled.
    let numbers = (&numbers.collect(), &BTreeMap::new());
    plan(settings, numbers, &[], environment, &mut Vec::new()).descriptors_max()
}

/// Returns the names of the resolvers that policies use.
fn used(settings: &Settings) -> BTreeSet<&str> {
    let rules = settings.policies.iter().flat_map(|policy| &policy.rules);
    let actions = rules.flat_map(|rule| &rule.actions);
    actions
        .filter_map(|action| match &action.value {
            Action::Core(Core::Recurse(name)) => Some(name.value.as_str()),
            _ => None,
        })
        .collect()
}

/// Returns the prefix of one address.
fn host(address: IpAddr) -> Prefix {
    Prefix::new(address, if address.is_ipv4() { 32 } else { 128 })
}

/// Reads the servers of the root.
fn hints(file: &At<PathBuf>, environment: &dyn Environment, problems: &mut Vec<Problem>) -> Vec<Hint> {
    let shown = file.value.display();
    let text = match environment.read(&file.value) {
        Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
        Err(error) => {
            let message = format!("cannot read \"{shown}\": {}", io_text(&error));
            problems.push(Problem::error(file.span, message));
            return Vec::new();
        }
    };
    let records = match policy::records::parse(&text, Name::ROOT) {
        Ok(records) => records,
        Err(mistake) => {
            let line = text.get(..mistake.at.start).unwrap_or(&text).matches('\n').count() + 1;
            let message = format!("\"{shown}\", line {line}: {}", mistake.message);
            problems.push(Problem::error(file.span, message).expected(mistake.expected));
            return Vec::new();
        }
    };
    let of_root =
        records.iter().filter(|record| record.rtype == Rtype::NS && record.owner == NameBuf::root());
    let hints = of_root.filter_map(|record| {
        let (server, _) = Name::parse(&record.rdata).ok()?;
        let addresses = records.iter().filter(|other| other.owner.as_name() == server);
        let addresses: Vec<IpAddr> =
            addresses.filter_map(|other| address(other.rtype, &other.rdata)).collect();
        (!addresses.is_empty()).then(|| Hint { name: HeapName::new(server), addresses })
    });
    let hints: Vec<Hint> = hints.collect();
    if hints.is_empty() {
        let message = format!("\"{shown}\" names no server of the root that has an address");
        let problem = Problem::error(file.span, message);
        problems.push(problem.expected("NS records of \".\", and A or AAAA records of their names"));
    }
    hints
}

/// Reads the data of an A or AAAA record.
fn address(rtype: Rtype, rdata: &[u8]) -> Option<IpAddr> {
    match rtype {
        Rtype::A => rdata.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        Rtype::AAAA => rdata.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use dnssec::Algorithm;
    use environment::Memory;
    use plan::resolvers::ResolverPlan;
    use resolver::Validation;
    use settings::load::load_text;
    use std::net::SocketAddr;
    use std::path::Path;

    const RECURSE: &str = "policy: {main: [recurse]}\n";
    const HINTS: &str = ". 3600000 NS a.root.example.\n.\tIN NS b.root.example.\na.root.example. A 192.0.2.1\n\
                         A.root.example. AAAA 2001:db8::1\nb.root.example. MX 1 a.\n";

    fn compile(text: &str, hints: &str, own: &[SocketAddr]) -> Result<Vec<ResolverPlan>, String> {
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n"), ("/hints", hints)]);
        let loaded = load_text(Path::new("/x"), text, &memory).map_err(|found| found[0].line())?;
        let plans = super::super::compile(&loaded, own, None, &memory).map_err(|found| found[0].line())?;
        Ok(plans.resolvers.resolvers.clone())
    }

    #[test]
    fn the_defaults_are_those_of_the_resolver() {
        let plans = compile(RECURSE, "", &[]).expect("no mistakes");
        let [plan] = &plans[..] else { panic!("one resolver") };
        assert_eq!((plan.name.as_str(), plan.octets_max), ("default", 64 << 20));
        let validating = resolver::Settings { validation: Validation::On, ..Default::default() };
        assert_eq!(plan.settings, validating);
    }

    #[test]
    fn resolvers_that_nobody_uses_are_not_planned() {
        assert_eq!(compile("", "", &[]).expect("no mistakes"), []);
        let text = "resolvers: {own: {port: 5353}}\npolicy: {main: [{if: rd, do: recurse(own)}, recurse]}\n";
        let plans = compile(text, "", &[]).expect("no mistakes");
        let found: Vec<_> = plans.iter().map(|plan| (plan.name.as_str(), plan.settings.port)).collect();
        assert_eq!(found, [("own", 5353), ("default", 53)]);
    }

    #[test]
    fn hints_come_from_a_file() {
        let text = format!("resolvers: {{default: {{root-hints: /hints}}}}\n{RECURSE}");
        let plans = compile(&text, HINTS, &[]).expect("no mistakes");
        let [hint] = &plans[0].settings.hints[..] else { panic!("one server with addresses") };
        assert_eq!(hint.name.to_string(), "a.root.example.");
        let addresses: Vec<String> = hint.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.0.2.1", "2001:db8::1"]);
        let mistake = |hints: &str| compile(&text, hints, &[]).expect_err("a mistake");
        assert!(
            mistake("a. A 192.0.2.1\n")
                .contains("\"/hints\" names no server of the root that has an address")
        );
        let wrong = mistake("; one\n. NS a.\na. A 192.0.2.300\n");
        assert!(wrong.contains("\"/hints\", line 3: "), "{wrong}");
    }

    #[test]
    fn zones_are_found_elsewhere() {
        let zones = "lab.example: {stub: [192.0.2.1, \"[2001:db8::1]:5353\", NS.example.net, \"ns2.example.net:54\"]}, \
                     \".\": {stub: 192.0.2.2@5354, prime: true, first: true}";
        let text = format!("resolvers: {{default: {{zones: {{{zones}}}}}}}\n{RECURSE}");
        let routes = &compile(&text, "", &[]).expect("no mistakes")[0].settings.routes;
        let shown: Vec<String> = routes.iter().map(|route| format!("{route:?}")).collect();
        let [lab, root] = &shown[..] else { panic!("two zones: {shown:?}") };
        assert_eq!(
            lab,
            "Route { zone: lab.example., way: Stub(Stub { addresses: [192.0.2.1:53, [2001:db8::1]:5353], \
             hosts: [(ns.example.net., 53), (ns2.example.net., 54)], primes: false, tcp_only: false }), first: false, keeps: true }"
        );
        let expected = "way: Stub(Stub { addresses: [192.0.2.2:5354], hosts: [], primes: true, tcp_only: false }), first: true, keeps: true }";
        assert_eq!(*root, format!("Route {{ zone: ., {expected}"));
        let mistake = |zones: &str| {
            let text = format!("resolvers: {{default: {{zones: {{{zones}}}}}}}\n{RECURSE}");
            compile(&text, "", &[]).expect_err("a mistake")
        };
        assert!(mistake("lab.example: {}").contains("zone \"lab.example.\" has no servers"));
        assert!(mistake("a..b: {stub: 192.0.2.1}").contains("\"a..b\" is not a domain name"));
        assert!(mistake("a: {stub: 192.0.2.1}, A: {stub: 192.0.2.1}").contains("\"A\" is set twice"));
        for wrong in ["192.0.2.300", "tls://ns.example", "ns.example:0", "192.0.2.1:99999"] {
            let found = mistake(&format!("a: {{stub: \"{wrong}\"}}"));
            assert!(
                found.contains(&format!("\"{wrong}\" is not ")) || found.contains("is not a port"),
                "{found}"
            );
        }
        let found = mistake("a.example: {stub: ns.a.example}");
        assert!(found.contains("\"ns.a.example.\" is in the zone that it is to be asked for"), "{found}");
    }

    #[test]
    fn zones_are_forwarded_to_groups() {
        let load = |groups: &str, zones: &str| {
            let text =
                format!("upstreams: {{{groups}}}\nresolvers: {{default: {{zones: {{{zones}}}}}}}\n{RECURSE}");
            let memory = Memory::new(&[]);
            let loaded = load_text(Path::new("/x"), &text, &memory).map_err(|found| found[0].line())?;
            super::super::compile(&loaded, &[], None, &memory).map_err(|found| found[0].line())
        };
        let groups = "office: 10.1.0.53, net: \"tls://9.9.9.9#dns.quad9.net\"";
        let zones = "corp.example: {forward: office, first: true, keep: false}, \".\": {forward: net}";
        let plans = load(groups, zones).expect("no mistakes");
        let number = |name: &str| {
            let pool = plans.fetch.pools.iter().find(|pool| pool.name == name);
            pool.expect("a group").id.0
        };
        let routes = &plans.resolvers.resolvers[0].settings.routes;
        let shown: Vec<String> = routes.iter().map(|route| format!("{route:?}")).collect();
        let expected = [("corp.example.", "office", true, false), (".", "net", false, true)];
        let expected = expected.map(|(zone, group, first, keeps)| {
            let group = number(group);
            format!(
                "Route {{ zone: {zone}, way: Forward(Forwarders({group})), first: {first}, keeps: {keeps} }}"
            )
        });
        assert_eq!(shown, expected);
        assert!(plans.warnings.is_empty(), "{:?}", plans.warnings);
        let mistake = |zones: &str| load(groups, zones).err().expect("a mistake");
        assert!(mistake("a: {forward: offise}").contains("unknown upstream group \"offise\""));
        assert!(
            mistake("a: {forward: office, stub: 192.0.2.1}")
                .contains("zone \"a.\" is forwarded: \"stub\" is for stub zones")
        );
        assert!(mistake("a: {forward: office, prime: true}").contains("\"prime\" is for stub zones"));
    }

    #[test]
    fn zones_of_this_server_are_read() {
        let load = |zones: &str, routes: &str| {
            let text =
                format!("zones: [{zones}]\nresolvers: {{default: {{zones: {{{routes}}}}}}}\n{RECURSE}");
            let memory = Memory::new(&[("/etc/corp.zone", "")]);
            let loaded = load_text(Path::new("/x"), &text, &memory).map_err(|found| found[0].line())?;
            let warnings = loaded.warnings.iter().map(diagnostic::Diagnostic::line).collect::<String>();
            let plans =
                super::super::compile(&loaded, &[], None, &memory).map_err(|found| found[0].line())?;
            let routes = &plans.resolvers.resolvers[0].settings.routes;
            Ok::<_, String>((format!("{routes:?}"), warnings))
        };
        let corp = "{name: corp.example, file: /etc/corp.zone}";
        let (routes, warnings) = load(corp, "corp.example: {own: true, first: true}").expect("no mistakes");
        assert_eq!(routes, "[Route { zone: corp.example., way: Own, first: true, keeps: true }]");
        assert!(!warnings.contains("corp.example"), "{warnings}");
        let (_, warnings) = load(corp, "lab.example: {own: true}").expect("it may be added");
        assert!(warnings.contains("there is no zone \"lab.example.\" in \"zones\""), "{warnings}");
        let mistake = load(corp, "corp.example: {own: true, stub: 192.0.2.1}").expect_err("a mistake");
        assert!(mistake.contains("is one of this server: \"stub\" has nobody to ask"), "{mistake}");
    }

    #[test]
    fn what_counts_is_said() {
        let text = "accept-sha1: true, nsec3-iterations: 10, root-key-sentinel: false";
        let text = format!("resolvers: {{default: {{{text}}}}}\n{RECURSE}");
        let trust = &compile(&text, "", &[]).expect("no mistakes")[0].settings.trust;
        assert_eq!((trust.iterations_max, trust.root_key_sentinel), (10, false));
        assert!(trust.algorithms.contains(Algorithm(5)) && trust.algorithms.contains(Algorithm(7)));
        let text = format!(
            "resolvers: {{default: {{aggressive-nsec: false, failure-ttl: 5s, error-reports: true}}}}\n{RECURSE}"
        );
        let settings = &compile(&text, "", &[]).expect("no mistakes")[0].settings;
        assert_eq!((settings.aggressive_nsec, settings.failure_seconds_max), (false, 5));
        assert!(settings.error_reports);
    }

    #[test]
    fn families_without_a_source_are_not_used() {
        let text = format!("outgoing: {{sources: [192.0.2.1], connections: 5}}\n{RECURSE}");
        let addresses = &compile(&text, "", &[]).expect("no mistakes")[0].settings.addresses;
        assert_eq!((addresses.v4, addresses.v6), (true, false));
        let text = format!(
            "outgoing: {{sources: \"2001:db8::/64\"}}\nresolvers: {{default: {{ipv6: false}}}}\n{RECURSE}"
        );
        let found = compile(&text, "", &[]).expect_err("a mistake");
        assert!(found.contains("can ask nobody: no family that it uses has a source"), "{found}");
        let text = "outgoing: {sources: [\"2001:db8::1\"]}\nupstreams: {default: 192.0.2.9}\n";
        let loaded = load_text(Path::new("/x"), text, &Memory::new(&[])).expect("no mistakes");
        let plans = super::super::compile(&loaded, &[], None, &Memory::new(&[])).expect("no mistakes");
        assert_eq!(plans.warnings.len(), 1);
        assert!(plans.warnings[0].message.contains("\"192.0.2.9:53\" cannot be asked"));
    }

    #[test]
    fn a_server_is_not_led_to_itself() {
        let own = ["192.0.2.1:53", "0.0.0.0:53", "192.0.2.2:5353", "[2001:db8::1]:53"];
        let own: Vec<SocketAddr> = own.iter().map(|text| text.parse().expect("an address")).collect();
        let plans = compile(RECURSE, "", &own).expect("no mistakes");
        let refused: Vec<String> =
            plans[0].settings.addresses.refused.iter().map(ToString::to_string).collect();
        assert_eq!(refused, ["192.0.2.1/32", "2001:db8::1/128"]);
    }

    #[test]
    fn what_contradicts_itself_is_a_mistake() {
        let check = |settings: &str, expect: &str| {
            let text = format!("resolvers: {{default: {{{settings}}}}}\n{RECURSE}");
            let found = compile(&text, "", &[]).expect_err("a mistake");
            assert!(found.contains(expect), "{found}");
        };
        check(
            "ipv4: false, ipv6: false",
            "resolver \"default\" can ask nobody: neither over IPv4 nor over IPv6",
        );
        check(
            "nat64: \"64:ff9b::/95\"",
            "\"64:ff9b::/95\" cannot hold IPv4 addresses: expected an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits",
        );
        check("nat64: 192.0.2.0/24", "\"192.0.2.0/24\" cannot hold IPv4 addresses");
        check(
            "ipv6: false, nat64: \"64:ff9b::/96\"",
            "this translator is reached over IPv6, which is not used",
        );
        check("patience: {min: 3s}", "min (3s) is larger than max (2s)");
        check("root-hints: none", "cannot read \"/none\": ");
        assert!(
            compile("policy: {main: [recurse(defualt)]}\n", "", &[])
                .is_err_and(|found| found.contains("unknown resolver \"defualt\""))
        );
    }
}
