//! What is measured: which names are asked, of a server set up how, under which load.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Rtype;

use crate::load::Transport;
use crate::probe::Probe;
use crate::queries::{self, Ask};
use crate::session::Event;
use crate::stub;

/// Names in the large sets.
const MANY: usize = 100_000;
/// Names in the set whose memory is measured.
const MILLION: usize = 1_000_000;
/// Names in the small cache.
const FEW: usize = 16;
/// Names that are asked one by one before a large set is timed.
const PROBES: usize = 4;
/// Time to live of local answers; a server that fixes a lower one may.
const LOCAL_TTL_MAX: u32 = 3600;

/// The local names: host, IPv4, IPv6 (documentation addresses). Rivals' files list the same.
pub const LOCAL: [(&str, Ipv4Addr, Ipv6Addr); 5] = [
    (
        "nas.bench.example.org",
        Ipv4Addr::new(192, 0, 2, 11),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x11),
    ),
    (
        "printer.bench.example.org",
        Ipv4Addr::new(192, 0, 2, 12),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x12),
    ),
    (
        "router.bench.example.org",
        Ipv4Addr::new(192, 0, 2, 13),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x13),
    ),
    (
        "media.bench.example.org",
        Ipv4Addr::new(192, 0, 2, 14),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x14),
    ),
    (
        "camera.bench.example.org",
        Ipv4Addr::new(192, 0, 2, 15),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x15),
    ),
];

/// Which queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// The five local names, A and AAAA each.
    Local,
    /// Sixteen names, A.
    Few,
    /// 100,000 names of 25 octets in wire form, A, in random order.
    Many,
    /// A million names of 25 octets in wire form, A, in random order.
    Million,
}

/// What else a scenario does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// Every answer comes from memory: the stub must hear nothing while it is timed.
    Silent,
    /// Every query goes to the stub at least once.
    Asked,
}

/// A row of the scenario table.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What a reader should know.
    pub about: &'static str,
    /// How the server is set up: a key of `settings` in a rival's file.
    pub setting: &'static str,
    /// What is asked.
    pub names: Names,
    /// Whether every name is asked once before the timed part.
    pub warm: bool,
    /// What the upstream may hear.
    pub upstream: Upstream,
    /// Fixed number of clients with one query each in flight; the session's load without it.
    pub clients: Option<usize>,
    /// What carries the queries.
    pub transport: Transport,
    /// Queries per second; as many as are answered without it.
    pub rate: Option<f64>,
    /// What happens while it is timed, in order of time.
    pub events: &'static [Event],
}

/// Everything that can be measured today.
pub const SCENARIOS: [Scenario; 15] = [
    row("local", "hosts answers, five names, A and AAAA", "local", Names::Local, None),
    row("cache-warm", "cache hits, 16 names", "cache", Names::Few, None),
    row("cache-100k", "cache hits, 100,000 names in random order", "cache", Names::Many, None),
    row(
        "forward",
        "forwarding over UDP to one stub, no cache, 100,000 names in random order",
        "forward",
        Names::Many,
        None,
    ),
    row(
        "race3",
        "race of three upstreams, one of which answers after 20 ms, no cache",
        "race3",
        Names::Many,
        None,
    ),
    row(
        "memory-1m",
        "memory of a million cached A answers, and hits on them in random order",
        "cache-1m",
        Names::Million,
        None,
    ),
    row("latency-local-1", "hosts answers, one client", "local", Names::Local, Some(1)),
    row("latency-local-2", "hosts answers, two clients", "local", Names::Local, Some(2)),
    row("latency-local-4", "hosts answers, four clients", "local", Names::Local, Some(4)),
    row("latency-cache-1", "cache hits, one client", "cache", Names::Few, Some(1)),
    row("latency-cache-2", "cache hits, two clients", "cache", Names::Few, Some(2)),
    row("latency-cache-4", "cache hits, four clients", "cache", Names::Few, Some(4)),
    row("latency-forward-1", "forwarding, one client", "forward", Names::Many, Some(1)),
    row("latency-forward-2", "forwarding, two clients", "forward", Names::Many, Some(2)),
    row("latency-forward-4", "forwarding, four clients", "forward", Names::Many, Some(4)),
];

/// Scenarios that wait for a capability, with its name.
pub const PENDING: [(&str, &str); 4] = [
    ("zones", "authoritative zones"),
    ("recursion", "recursion"),
    ("xdp", "AF_XDP"),
    ("pools", "pools and balancing"),
];

const fn row(
    name: &'static str,
    about: &'static str,
    setting: &'static str,
    names: Names,
    clients: Option<usize>,
) -> Scenario {
    let is_forwarded = matches!(setting.as_bytes(), b"forward" | b"race3");
    Scenario {
        name,
        about,
        setting,
        names,
        warm: matches!(setting.as_bytes(), b"cache" | b"cache-1m"),
        upstream: if is_forwarded { Upstream::Asked } else { Upstream::Silent },
        clients,
        transport: Transport::Udp,
        rate: None,
        events: &[],
    }
}

/// Returns the settings that scenarios use.
pub fn settings() -> BTreeSet<&'static str> {
    SCENARIOS.iter().map(|scenario| scenario.setting).collect()
}

/// Selects scenarios by name, by prefix (`latency`), or all.
pub fn select(wanted: &[String]) -> Result<Vec<&'static Scenario>, String> {
    let mut chosen: Vec<&'static Scenario> = Vec::new();
    for want in wanted {
        let found: Vec<_> = SCENARIOS
            .iter()
            .filter(|s| want == "all" || s.name == want || s.name.starts_with(&format!("{want}-")))
            .filter(|s| !chosen.iter().any(|c| c.name == s.name))
            .collect();
        if found.is_empty() && !chosen.iter().any(|c| c.name.starts_with(want.as_str())) {
            return Err(match PENDING.iter().find(|(name, _)| name == want) {
                Some((name, what)) => format!("scenario \"{name}\" is pending: it needs {what}"),
                None => {
                    let names: Vec<_> = SCENARIOS.iter().map(|s| s.name).collect();
                    format!("unknown scenario \"{want}\"; there are: {}", names.join(", "))
                }
            });
        }
        chosen.extend(found);
    }
    Ok(chosen)
}

impl Scenario {
    /// Returns the queries.
    pub fn asks(&self) -> Vec<Ask> {
        match self.names {
            Names::Local => LOCAL
                .iter()
                .flat_map(|(name, ..)| [Ask::new(*name, Rtype::A), Ask::new(*name, Rtype::AAAA)])
                .collect(),
            Names::Few => {
                (0..FEW).map(|i| Ask::new(format!("popular{i:02}.example.org"), Rtype::A)).collect()
            }
            Names::Many => {
                (0..MANY).map(|i| Ask::new(format!("w{i:05}.shop.example.org"), Rtype::A)).collect()
            }
            Names::Million => {
                (0..MILLION).map(|i| Ask::new(format!("w{i:06}.sea.example.org"), Rtype::A)).collect()
            }
        }
    }

    /// Returns questions with their right answers.
    pub fn probes(&self) -> Result<Vec<Probe>, String> {
        if self.names == Names::Local {
            let probe = |name: &str, rtype, address| Probe {
                ask: Ask::new(name, rtype),
                rcode: 0,
                addresses: vec![address],
                ttl_max: LOCAL_TTL_MAX,
            };
            return Ok(LOCAL
                .iter()
                .flat_map(|(name, v4, v6)| {
                    [probe(name, Rtype::A, IpAddr::V4(*v4)), probe(name, Rtype::AAAA, IpAddr::V6(*v6))]
                })
                .collect());
        }
        let asks = self.asks();
        let step = (asks.len() / PROBES).max(1);
        asks.into_iter()
            .step_by(step)
            .map(|ask| {
                let name = queries::parse_name(&ask.name)?;
                let addresses = vec![IpAddr::V4(stub::ipv4_of(name.as_name()))];
                Ok(Probe { ask, rcode: 0, addresses, ttl_max: stub::TTL_SECONDS })
            })
            .collect()
    }

    /// Returns the seed of the order, if it is random.
    pub fn shuffle(&self) -> Option<u64> {
        matches!(self.names, Names::Many | Names::Million).then_some(20_260_801)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wanted: &[&str]) -> Vec<&'static str> {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        select(&wanted).expect("known").iter().map(|scenario| scenario.name).collect()
    }

    #[test]
    fn scenarios_are_chosen_by_name_or_family() {
        assert_eq!(names(&["local", "local"]), ["local"]);
        assert_eq!(names(&["latency-cache"]), ["latency-cache-1", "latency-cache-2", "latency-cache-4"]);
        assert_eq!(names(&["cache"]), ["cache-warm", "cache-100k"]);
        assert_eq!(names(&["all"]).len(), SCENARIOS.len());
        assert!(select(&["zones".to_owned()]).unwrap_err().contains("pending"));
        assert!(select(&["lokal".to_owned()]).unwrap_err().contains("unknown"));
    }

    #[test]
    fn the_large_sets_have_names_of_25_octets() {
        for large in SCENARIOS.iter().filter(|s| matches!(s.names, Names::Many | Names::Million)) {
            for ask in large.asks().iter().step_by(9_999) {
                assert_eq!(queries::parse_name(&ask.name).expect("a name").as_name().len(), 25);
            }
        }
    }
}
