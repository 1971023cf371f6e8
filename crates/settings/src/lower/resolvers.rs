//! Resolvers: the tree to settings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use diagnostic::{At, Problem, Span};
use dnssec::anchors::{HoldDown, read_anchors};
use dnssec::{Algorithm, Algorithms, Skew};
use plan::anchors::{NegativeEnd, NegativePlan};
use resolver::{
    AddressPolicy, Family, HeapName, Limits, Minimisation, Opportunistic, SignatureTime, Stub, Subnets,
    Trust, TrustAnchor, Validation, ZoneRateRules,
};
use schema::{FamilyWord, MinimisationWord, OpportunisticWord, ValidationWord};
use values::{Misread, Read};
use wire::{Name, NameBuf, Prefix64};

use super::notation::{path, url};
use super::read::Values as _;
use super::{Lowering, Section};
use crate::groups::{LocalRootSettings, ResolverSettings, RouteSettings, RouteWay};

/// A server of a stub zone.
enum StubServer {
    Address(SocketAddr),
    Host(HeapName, u16),
}

/// The port of servers of stub zones if none is written.
const DNS_PORT: u16 = 53;

/// Reads an address or a host name, perhaps with a port.
fn server(text: &str) -> Read<StubServer> {
    let not_an_address = match values::socket_address(text, DNS_PORT) {
        Ok(address) => return Ok(StubServer::Address(address)),
        Err(misread) => misread,
    };
    let (host, port) = match text.rsplit_once([':', '@']) {
        Some((host, port)) => (host, port.parse().ok().filter(|&port| port != 0)),
        None => (text, Some(DNS_PORT)),
    };
    let is_numeric =
        host.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'[' | b']'));
    let Some(port) = port.filter(|_| !is_numeric && !host.contains([':', '/'])) else {
        return Err(not_an_address.expected(SERVER));
    };
    let host = values::name(host).map_err(|misread| misread.expected(SERVER))?;
    Ok(StubServer::Host(HeapName::new(host.as_name()), port))
}

/// Reads a name.
fn heap_name(text: &str) -> Read<HeapName> {
    Ok(HeapName::new(values::name(text)?.as_name()))
}

/// What is expected of a server of a stub zone.
const SERVER: &str =
    "an address or a host name, perhaps with a port, such as 10.1.0.53, [2001:db8::1]:5353 or ns1.example";

/// The resolver that is there without being written.
const DEFAULT: &str = "default";

impl Lowering<'_> {
    pub(super) fn resolvers(&mut self, root: &Section<'_>) -> Vec<ResolverSettings> {
        let sections = self.named_sections(root, "resolvers");
        let mut resolvers: Vec<ResolverSettings> = sections
            .into_iter()
            .map(|(name, section)| {
                let resolver = self.resolver(name, &section);
                self.check_minimisation(&section, &resolver.rules);
                resolver
            })
            .collect();
        let name = At { value: DEFAULT.to_owned(), span: Span::BUILT_IN };
        let path = "resolvers.*".to_owned();
        let nothing = Section { path, entries: Cow::Borrowed(&[]), defaults: &[], span: Span::BUILT_IN };
        let built_in = self.resolver(name, &nothing);
        match resolvers.iter_mut().find(|resolver| resolver.name.value == DEFAULT) {
            // What says only what holds anyway need not be used by anybody.
            Some(written) if *written == built_in => *written = built_in,
            Some(_) => {}
            None => resolvers.push(built_in),
        }
        resolvers
    }

    /// Warns of what does nothing while whole names are shown.
    fn check_minimisation(&mut self, section: &Section<'_>, rules: &resolver::Settings) {
        let is_vain = rules.hides_type && rules.minimisation == Minimisation::Off;
        if let Some(entry) = section.entry("qname-minimisation-type").filter(|_| is_vain) {
            let message = "\"qname-minimisation-type\" does nothing: \"qname-minimisation\" is \"off\"";
            self.problems.push(Problem::warning(entry.key_span, message));
        }
    }

    fn resolver(&mut self, name: At<String>, section: &Section<'_>) -> ResolverSettings {
        let patience = self.section(section, "patience");
        let (patience_min, patience_max) = (self.duration(&patience, "min"), self.duration(&patience, "max"));
        self.in_order(&patience, ("min", patience_min), ("max", patience_max));
        let root_hints = self.path(section, "root-hints");
        let root_hints =
            root_hints.map(|at| At { value: self.beside(at.span.file, &at.value), span: at.span });
        let priming = self.boolean(section, "priming");
        let trust_anchors = self.list(section, "trust-anchors", |_, _, scalar| path(&scalar.text));
        let place = |at: At<PathBuf>| At { value: self.beside(at.span.file, &at.value), span: at.span };
        let trust_anchors = trust_anchors.into_iter().map(place).collect();
        let trust_anchor_state = self.path(section, "trust-anchor-state");
        let trust_anchor_state =
            trust_anchor_state.map(|at| At { value: self.beside(at.span.file, &at.value), span: at.span });
        let hold_down = HoldDown {
            add: self.duration(section, "add-hold-down").as_secs(),
            remove: self.duration(section, "remove-hold-down").as_secs(),
            keep_missing: self.duration_or(section, "keep-missing").map(|time| time.as_secs()),
        };
        let local_root = self.local_root(section);
        let (used, second_level) = self.second_level(section).unzip();
        let mut zones = self.routes(section);
        zones.extend(self.local_route(local_root.as_ref(), &zones));
        ResolverSettings {
            zones,
            local_root,
            second_level,
            anchor_records: self.anchor_records(section),
            cache_size: self.size(section, "cache-size"),
            rules: resolver::Settings {
                validation: match self.word(section, "validation", ValidationWord::parse) {
                    ValidationWord::Off => Validation::Off,
                    ValidationWord::Relay => Validation::Relay,
                    ValidationWord::Permissive => Validation::Permissive,
                    ValidationWord::On => Validation::On,
                },
                trust: self.trust(section),
                aggressive_nsec: self.boolean(section, "aggressive-nsec"),
                limits: self.resolver_limits(section),
                minimisation: match self.word(section, "qname-minimisation", MinimisationWord::parse) {
                    MinimisationWord::Off => Minimisation::Off,
                    MinimisationWord::Relaxed => Minimisation::Relaxed,
                    MinimisationWord::Strict => Minimisation::Strict,
                },
                minimised_max: self.whole(section, "qname-minimisation-steps") as u8,
                minimal_expansions: self.boolean(section, "minimal-expansions"),
                minimal_denials: self.boolean(section, "minimal-denials"),
                own_ns_ttl: self.boolean(section, "own-ns-ttl"),
                takes_referrals: self.boolean(section, "accept-referrals"),
                hides_type: self.boolean(section, "qname-minimisation-type"),
                checks_dnames: self.boolean(section, "check-dnames"),
                addresses: self.asked(&name, section),
                subnets: self.told(section),
                servers_max: self.whole(section, "name-servers") as usize,
                priming,
                reads_own_zones: self.boolean(section, "own-zones"),
                port: self.whole(section, "port") as u16,
                cookies: self.boolean(section, "cookies"),
                opportunistic: self.opportunistic(section),
                udp_octets: self.whole(section, "udp-size") as u16,
                tcp_only: self.boolean(section, "tcp-only"),
                requires_authority: self.boolean(section, "require-authority"),
                service_addresses: self.boolean(section, "service-addresses"),
                minimal_responses: self.boolean(section, "minimal-responses"),
                minimal_additional: self.boolean(section, "minimal-additional"),
                ttl_max: self.duration(section, "max-ttl").as_secs() as u32,
                negative_ttl_max: self.duration(section, "max-negative-ttl").as_secs() as u32,
                error_reports: self.boolean(section, "error-reports"),
                failure_seconds_max: self.duration(section, "failure-ttl").as_secs() as u32,
                lame_seconds: self.duration(section, "lame-time").as_secs() as u32,
                patience_unknown_ms: self.duration(&patience, "unknown").as_millis() as u32,
                patience_ms_min: patience_min.as_millis() as u32,
                patience_ms_max: patience_max.as_millis() as u32,
                attempts: self.whole(section, "attempts") as u8,
                zone_rates: self.zone_rates(section),
                exact_case: self.list(section, "exact-case", |_, _, scalar| heap_name(&scalar.text)).values(),
                ignores_cd: self.boolean(section, "ignore-cd"),
                ns_labels_min: self.whole(section, "min-ns-labels") as u8,
                bogus_seconds_max: self.duration(section, "bogus-ttl").as_secs() as u32,
                second_level: used,
                ..resolver::Settings::default()
            },
            name,
            root_hints,
            trust_anchors,
            trust_anchor_state,
            negative: self.negative(section),
            refers: self.boolean(section, "refer-without-rd"),
            signals: self.boolean(section, "trust-anchor-signaling"),
            hold_down,
        }
    }

    /// Reads zones that are not found from the root down.
    fn routes(&mut self, section: &Section<'_>) -> Vec<RouteSettings> {
        let zones = self.names(section, "zones");
        let mut seen: BTreeMap<HeapName, Span> = BTreeMap::new();
        let mut routes = Vec::new();
        for entry in zones.entries.iter() {
            let zone = match values::name(&entry.key) {
                Ok(name) => HeapName::new(name.as_name()),
                Err(misread) => {
                    self.problems.push(misread.into_problem(entry.key_span));
                    continue;
                }
            };
            if let Some(first) = seen.insert(zone.clone(), entry.key_span) {
                let problem = Problem::error(entry.key_span, format!("\"{}\" is set twice", entry.key));
                self.problems.push(problem.hint_at("the first time is on ", first, ""));
                continue;
            }
            let section = self.section_of(zones.child("*"), &entry.node, entry.key_span);
            self.check_keys(&section, "setting");
            self.route(zone, &section, &mut routes);
        }
        routes
    }

    /// Reads where the root zone comes from that is read, if one is.
    fn local_root(&mut self, section: &Section<'_>) -> Option<LocalRootSettings> {
        let primaries = self.remotes(section, "local-root-primaries");
        let urls = self.texts(section, "local-root-urls", url);
        if !self.boolean(section, "local-root") {
            for key in ["local-root-primaries", "local-root-urls"] {
                let Some(entry) = self.said(section, key) else { continue };
                let problem = Problem::warning(entry.key_span, "nothing comes from these servers");
                self.problems.push(problem.hint("\"local-root: true\" reads the root zone"));
            }
            return None;
        }
        let at = section.entry("local-root").map_or(section.span, |entry| entry.key_span);
        if primaries.is_empty() && urls.is_empty() {
            self.problems.push(Problem::error(at, "the root zone comes from nowhere"));
            return None;
        }
        Some(LocalRootSettings { at: At { value: (), span: at }, primaries, urls })
    }

    /// Returns the route to the root zone that is read.
    fn local_route(
        &mut self,
        local: Option<&LocalRootSettings>,
        zones: &[RouteSettings],
    ) -> Option<RouteSettings> {
        let at = local?.at.span;
        if zones.iter().any(|zone| zone.zone.as_name().is_root()) {
            let problem = Problem::error(at, "the zone \".\" of this resolver is found in another way");
            self.problems.push(problem.expected("\"local-root\", or \".\" in \"zones\""));
            return None;
        }
        let zone = HeapName::new(Name::ROOT);
        Some(RouteSettings { zone, way: RouteWay::Own(At { value: (), span: at }), first: true, keeps: true })
    }

    fn route(&mut self, zone: HeapName, section: &Section<'_>, routes: &mut Vec<RouteSettings>) {
        let (first, keeps) = (self.boolean(section, "first"), self.boolean(section, "keep"));
        let known = self.problems.len();
        let servers = self.list(section, "stub", |_, _, scalar| server(&scalar.text));
        let group = self.optional(section, "forward", |lowering, row, node| {
            lowering.read(node, &row.kind.expected(), |text| Ok(text.to_owned()))
        });
        let is_own = self.boolean(section, "own");
        if is_own {
            for key in ["stub", "prime", "tcp-only", "forward"] {
                if let Some(entry) = section.entry(key) {
                    let message =
                        format!("zone \"{zone}\" is one of this server: \"{key}\" has nobody to ask");
                    self.problems.push(Problem::error(entry.key_span, message));
                }
            }
            let at = section.entry("own").map_or(section.span, |entry| entry.key_span);
            let way = RouteWay::Own(At { value: (), span: at });
            return routes.push(RouteSettings { zone, way, first, keeps });
        }
        if let Some(group) = group {
            for key in ["stub", "prime", "tcp-only"] {
                if let (false, Some(entry)) = (first, section.entry(key)) {
                    let message = format!("zone \"{zone}\" is forwarded: \"{key}\" is for stub zones");
                    let problem = Problem::error(entry.key_span, message);
                    self.problems
                        .push(problem.hint("with \"first: true\", its servers are asked if the group fails"));
                }
            }
            routes.push(RouteSettings { zone: zone.clone(), way: RouteWay::Forward(group), first, keeps });
            if servers.is_empty() {
                return;
            }
        }
        let (primes, tcp_only) = (self.boolean(section, "prime"), self.boolean(section, "tcp-only"));
        // Its servers are the last that are asked if a group is asked before.
        let first = first && routes.last().is_none_or(|route| route.zone != zone);
        let stub = self.stub(&zone, servers);
        if stub == Stub::default() && self.problems.len() == known {
            let problem = Problem::error(section.span, format!("zone \"{zone}\" has no servers"));
            let expected =
                "\"stub\" with addresses or host names, \"forward\" with an upstream group, or \"own\"";
            self.problems.push(problem.expected(expected));
        }
        routes.push(RouteSettings {
            zone,
            way: RouteWay::Stub(Stub { primes, tcp_only, ..stub }),
            first,
            keeps,
        });
    }

    /// Returns the servers of a stub zone.
    fn stub(&mut self, zone: &HeapName, servers: Vec<At<StubServer>>) -> Stub {
        let mut stub = Stub::default();
        for At { value, span } in servers {
            match value {
                StubServer::Address(address) => stub.addresses.push(address),
                StubServer::Host(host, _) if host.as_name().is_at_or_below(zone.as_name()) => {
                    let message = format!("\"{host}\" is in the zone that it is to be asked for");
                    let problem = Problem::error(span, message);
                    self.problems.push(problem.hint("write its address"));
                }
                StubServer::Host(host, port) => stub.hosts.push((host, port)),
            }
        }
        stub
    }

    /// Reads what is trusted; the anchors are those that the program comes with.
    fn trust(&mut self, section: &Section<'_>) -> Trust {
        let algorithms = match self.boolean(section, "accept-sha1") {
            true => Algorithms::SUPPORTED.with(Algorithm::RSASHA1).with(Algorithm::RSASHA1_NSEC3_SHA1),
            false => Algorithms::SUPPORTED,
        };
        let believed = self.list(section, "believed-algorithms", |_, value, scalar| {
            let number = values::whole(&scalar.text)?;
            let wrong = || Misread::whole(&scalar.text, format!("{number} is no algorithm"));
            match u8::try_from(number) {
                Ok(number @ 1..=31) => Ok(Algorithm(number)),
                _ => Err(wrong().expected(value.expected())),
            }
        });
        if let Some(first) = believed.first() {
            let message =
                "signatures of these algorithms are not checked, so that anybody can forge them: for tests";
            self.problems.push(Problem::warning(first.span, message));
        }
        let algorithms = believed.iter().fold(algorithms, |all, at| all.believing(at.value));
        let algorithms = match self.boolean(section, "require-all-algorithms") {
            true => algorithms.demanding_all(),
            false => algorithms,
        };
        Trust {
            algorithms,
            iterations_max: self.whole(section, "nsec3-iterations") as u16,
            time: self.signature_time(section),
            skew: self.signature_skew(section),
            root_key_sentinel: self.boolean(section, "root-key-sentinel"),
            requires_anchor_keys: self.boolean(section, "require-anchor-keys"),
            ..Trust::default()
        }
    }

    /// Reads trust anchors that are written as records.
    fn anchor_records(&mut self, section: &Section<'_>) -> Vec<TrustAnchor> {
        let rows = self.list(section, "trust-anchor-records", |_, _, scalar| {
            let text = &scalar.text;
            let rows = read_anchors(text).map_err(|fault| Misread::whole(text, fault.what))?;
            let none = || Misread::whole(text, format!("\"{text}\" is no trust anchor"));
            rows.into_iter().next().ok_or_else(|| none().expected("a DS or DNSKEY record"))
        });
        let mut anchors = Vec::new();
        for At { value: row, .. } in rows {
            TrustAnchor::add(&mut anchors, row.owner.as_name(), row.rtype, row.rdata);
        }
        anchors
    }

    /// Reads the time at which signatures have to be valid.
    fn signature_time(&mut self, section: &Section<'_>) -> SignatureTime {
        let time = self.optional(section, "signature-time", |lowering, row, node| {
            lowering.read(node, &row.kind.expected(), |text| {
                if text == "any" {
                    return Ok(SignatureTime::Any);
                }
                let seconds = match text.len() {
                    14 => dnssec::parse_compact(text),
                    _ => text.parse().ok(),
                };
                let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
                seconds.map(SignatureTime::At).ok_or_else(|| {
                    Misread::whole(text, format!("\"{text}\" is no time"))
                        .expected("14 digits such as 20260131120000, seconds since 1970, or any")
                })
            })
        });
        let Some(time) = time else { return SignatureTime::Present };
        let message = match time.value {
            SignatureTime::Any => "signatures count whenever they begin and end, which is for tests",
            _ => "signatures have to be valid at this time and not at the present one, which is for tests",
        };
        self.problems.push(Problem::warning(time.span, message));
        time.value
    }

    /// Reads how far clocks of signers may be wrong.
    fn signature_skew(&mut self, section: &Section<'_>) -> Skew {
        let section = self.section(section, "signature-skew");
        let (min, max) = (self.duration(&section, "min"), self.duration(&section, "max"));
        self.in_order(&section, ("min", min), ("max", max));
        Skew { min: min.as_secs() as u32, max: max.as_secs() as u32 }
    }

    /// Reads how often the servers of one zone are asked.
    fn zone_rates(&mut self, section: &Section<'_>) -> ZoneRateRules {
        let section = self.section(section, "zone-rate");
        let mut rules = ZoneRateRules {
            per_second: self.whole_or(&section, "per-second").map_or(0, |number| number as u32),
            factor: self.whole(&section, "pass") as u32,
            backoff: self.boolean(&section, "backoff"),
            ..ZoneRateRules::default()
        };
        let zones = self.names(&section, "zones");
        for entry in zones.entries.iter() {
            let zone = match heap_name(&entry.key) {
                Ok(zone) => zone,
                Err(misread) => {
                    self.problems.push(misread.into_problem(entry.key_span));
                    continue;
                }
            };
            let section = self.section_of(zones.child("*"), &entry.node, entry.key_span);
            self.check_keys(&section, "setting");
            let mut limit = |key| {
                let read = self.optional(&section, key, Self::read_whole);
                read.map(|at| at.value.map_or(0, |number| number as u32))
            };
            let (own, below) = (limit("per-second"), limit("below"));
            rules.zones.extend(own.map(|limit| (zone.clone(), limit)));
            rules.below.extend(below.map(|limit| (zone.clone(), limit)));
        }
        rules
    }

    /// Reads which zones count as unsigned: those of the settings have no end.
    fn negative(&mut self, section: &Section<'_>) -> Vec<NegativePlan> {
        let zones = self.list(section, "negative-trust-anchors", |_, _, scalar| {
            scalar.text.parse::<NameBuf>().map_err(|error| Misread::whole(&scalar.text, error.to_string()))
        });
        let plan = |at: At<NameBuf>| NegativePlan { zone: at.value, end: NegativeEnd::Never, reason: None };
        zones.into_iter().map(plan).collect()
    }

    fn resolver_limits(&mut self, section: &Section<'_>) -> Limits {
        let limits = self.section(section, "limits");
        Limits {
            sends: self.whole(&limits, "queries") as u8,
            sends_per_zone: self.whole(&limits, "queries-per-zone") as u8,
            glueless: self.whole(&limits, "glueless") as u8,
            glueless_at_once: self.whole(&limits, "glueless-at-once") as u8,
            depth: self.whole(&limits, "depth") as u8,
            aliases: self.whole(&limits, "aliases") as u8,
            question_ms: self.duration(&limits, "time").as_millis() as u32,
            octets: self.size(&limits, "reply-size") as u32,
            checks: self.whole(&limits, "signatures") as u32,
            failing_checks: self.whole(&limits, "failing-signatures") as u32,
            hashes: self.whole(&limits, "hashes") as u32,
        }
    }

    /// Reads which servers are asked.
    fn asked(&mut self, name: &At<String>, section: &Section<'_>) -> AddressPolicy {
        let (v4, v6) = (self.boolean(section, "ipv4"), self.boolean(section, "ipv6"));
        let nat64 = self.optional(section, "nat64", |lowering, row, node| {
            lowering.read(node, &row.kind.expected(), |text| {
                let wrong = || Misread::whole(text, format!("\"{text}\" cannot hold IPv4 addresses"));
                let expected = "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, such as 64:ff9b::/96";
                Prefix64::of(values::prefix(text)?).ok_or_else(|| wrong().expected(expected))
            })
        });
        if let Some(at) = nat64.as_ref().filter(|_| !v6) {
            let problem = Problem::error(at.span, "this translator is reached over IPv6, which is not used");
            self.problems.push(problem.hint("leave \"ipv6: false\" out"));
        } else if !v4 && !v6 {
            let message =
                format!("resolver \"{}\" can ask nobody: neither over IPv4 nor over IPv6", name.value);
            self.problems.push(Problem::error(name.span, message));
        }
        AddressPolicy {
            v4,
            v6,
            loopback: self.boolean(section, "ask-loopback"),
            private: self.boolean(section, "ask-private"),
            refused: self.prefixes(section, "never-ask"),
            private_addresses: self.prefixes(section, "private-addresses"),
            private_domains: self
                .list(section, "private-domains", |_, _, scalar| heap_name(&scalar.text))
                .values(),
            nat64: nat64.map(|at| at.value),
            preferred: match self.word(section, "prefer", FamilyWord::parse) {
                FamilyWord::Any => None,
                FamilyWord::V4 => Some(Family::V4),
                FamilyWord::V6 => Some(Family::V6),
            },
        }
    }

    /// Reads which encryption is used.
    fn opportunistic(&mut self, section: &Section<'_>) -> Opportunistic {
        let word = self.word(section, "opportunistic-encryption", OpportunisticWord::parse);
        Opportunistic {
            tls: matches!(word, OpportunisticWord::Tls | OpportunisticWord::Both),
            quic: matches!(word, OpportunisticWord::Quic | OpportunisticWord::Both),
            port: self.whole(section, "encrypted-port") as u16,
        }
    }

    /// Reads which servers hear of clients' subnets.
    fn told(&mut self, section: &Section<'_>) -> Subnets {
        let section = self.section(section, "client-subnet");
        let zones = self
            .list(&section, "zones", |_, _, scalar| Ok(HeapName::new(values::name(&scalar.text)?.as_name())));
        Subnets {
            zones: zones.into_iter().map(|at| at.value).collect(),
            servers: self.prefixes(&section, "servers"),
            // Which groups are told is said by their servers' addresses.
            forwarders: Vec::new(),
        }
    }

    /// Reports two times of which the smaller one is larger.
    fn in_order(&mut self, section: &Section<'_>, min: (&str, Duration), max: (&str, Duration)) {
        if min.1 > max.1 {
            let span = section.entry(min.0).or(section.entry(max.0)).map_or(section.span, |at| at.node.span);
            let text = |(key, time): (&str, Duration)| format!("{key} ({})", values::duration_text(time));
            let problem = Problem::error(span, format!("{} is larger than {}", text(min), text(max)));
            self.problems.push(problem.expected(format!("{} to be at most {}", min.0, max.0)));
        }
    }
}
