//! What is measured: which names are asked, of a server set up how, under which load.

mod internet;
mod questions;
mod table;

use std::collections::BTreeSet;
use std::fmt;

pub use internet::{Asked, Internet};
pub use questions::{ADDRESS_SET, LOCAL, MIX, Questions};
pub use table::{PAGES, PENDING, SCENARIOS};

use crate::load::Transport;
use crate::queries::Extras;
use crate::rules::Shape;
use crate::session::{Change, Event, What};

/// What the upstream may hear while a scenario is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// Every answer comes from memory: the stub must hear nothing.
    Silent,
    /// Every query goes to the stub at least once.
    Asked,
    /// Some do.
    Sometimes,
}

/// How much is asked at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The session's clients and queries in flight.
    Full,
    /// This many clients with one query each in flight.
    Single(usize),
    /// This many connections that ask one question each and then stay: what they cost is memory.
    Quiet(usize),
    /// Queries at even distances, at the scenario's rate, from this many sockets in turn. The
    /// generator never sleeps, so that neither the distances nor the latencies hold its own waking.
    Even(usize),
    /// As much as another publication's command line says.
    Fixed {
        /// Sockets.
        clients: usize,
        /// Loopback addresses they are spread over.
        addresses: usize,
        /// Queries in flight, over all clients.
        outstanding: usize,
    },
}

/// Queries that [`Load::Even`] may have in flight: more than are due while a server is stopped for
/// a tenth of a second.
const EVEN_OUTSTANDING: usize = 16_384;

/// How an upstream is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Its port is closed, which its host says (ICMP).
    Refusing,
    /// Packets to it are lost, as with a broken path.
    Silent,
}

impl Outage {
    /// Returns what happens to the stub when it begins.
    pub const fn begins(self) -> Change {
        match self {
            Self::Refusing => Change::Stop,
            Self::Silent => Change::Loss(1_000_000),
        }
    }

    /// Returns what happens to the stub when it ends.
    pub const fn ends(self) -> Change {
        match self {
            Self::Refusing => Change::Start,
            Self::Silent => Change::Loss(0),
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Refusing => "the upstream's port is closed",
            Self::Silent => "the upstream is silent",
        })
    }
}

/// A group of scenarios that differ in their rate alone, which the report shows in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// The server has its core for itself.
    Rates,
    /// The server is held to a part of a processor.
    Quota,
}

impl Series {
    /// Returns what the tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rates => "rates",
            Self::Quota => "quota",
        }
    }
}

/// Where servers and clients are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// On this machine's loopback.
    #[default]
    Loopback,
    /// In a network namespace each, with a pair of virtual interfaces between them.
    Pair,
    /// In a network namespace in which a simulated internet is served.
    Internet,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The session's generator.
    Session,
    /// dnsperf, with this many threads.
    Dnsperf(usize),
    /// kxdpgun, at the scenario's rate.
    Kxdpgun,
    /// Ours over AF_XDP, at the scenario's rate.
    Steady,
    /// The same, and in between as many as the interface takes.
    Overload,
    /// A client that has the zone transferred to it, whole, again and again. What counts are
    /// records.
    Receiver,
    /// The zone's primary, which makes a version and tells the server of it, again and again. What
    /// counts are records.
    Primary,
    /// An operator who adds a zone by the server's own command, again and again. What counts are
    /// zones.
    Operator,
    /// A client that asks each of a few names every 50 ms through an outage of the upstream, until
    /// it has been answered. What counts are names.
    Recovery(Outage),
    /// The session's generator, and beside it one that asks for so many names a second that have to
    /// be found.
    Beside(u32),
}

impl Maker {
    /// Returns whether what is timed is something else than queries and their answers: one thing
    /// after the other, each by itself.
    pub const fn is_of_zones(self) -> bool {
        match self {
            Self::Receiver | Self::Primary | Self::Operator => true,
            Self::Session
            | Self::Dnsperf(_)
            | Self::Kxdpgun
            | Self::Steady
            | Self::Overload
            | Self::Recovery(_)
            | Self::Beside(_) => false,
        }
    }
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
    pub questions: Questions,
    /// Whether every name is asked before the timed part.
    pub warm: bool,
    /// What the upstream may hear.
    pub upstream: Upstream,
    /// How the stub called `stub` differs from one that answers all at once.
    pub upstream_is: &'static [Change],
    /// How much is asked at a time.
    pub load: Load,
    /// How often each name is asked, front to back, before the run is over; until time is up
    /// without it.
    pub passes: Option<usize>,
    /// What carries the queries.
    pub transport: Transport,
    /// What queries carry, besides what the session wants.
    pub extras: Extras,
    /// Queries per second; as many as are answered without it.
    pub rate: Option<f64>,
    /// The table of the report that it is a line of.
    pub series: Option<Series>,
    /// Processors that a control group grants the server; as many as it has cores without it.
    pub quota: Option<f64>,
    /// Whether server, load and stubs have all cores together, as most published pages do.
    pub shares_cores: bool,
    /// An outage that begins before it is timed, when all that was asked to warm the server has
    /// expired.
    pub expired: Option<Outage>,
    /// What happens while it is timed, in order of time.
    pub events: &'static [Event],
    /// The rule set that the server loads.
    pub rules: Option<Shape>,
    /// The row before this one, if the two differ in one thing only: they are run in turn, and the
    /// report compares them.
    pub beside: Option<&'static str>,
    /// Where servers and clients are.
    pub network: Network,
    /// Who asks.
    pub maker: Maker,
    /// What Gannet has yet to learn for it; the rivals can be measured already.
    pub needs: Option<&'static str>,
}

/// Returns the settings that scenarios use.
pub fn settings() -> BTreeSet<&'static str> {
    SCENARIOS.iter().map(|scenario| scenario.setting).collect()
}

/// Selects scenarios by name (`=local`), by family (`latency`), by page (`runbound`), `all` that
/// Gannet can do, or `pending`.
pub fn select(wanted: &[String]) -> Result<Vec<&'static Scenario>, String> {
    let mut chosen: Vec<&'static Scenario> = Vec::new();
    for want in wanted {
        let found = match PAGES.iter().find(|(page, ..)| page == want) {
            Some((_, _, names)) => {
                names.iter().flat_map(|name| named(name)).filter(|s| s.needs.is_none()).collect()
            }
            None => named(want),
        };
        if found.is_empty() {
            return Err(match PENDING.iter().find(|(name, _)| name == want) {
                Some((name, what)) => format!("scenario \"{name}\" is pending: it needs {what}"),
                None if PAGES.iter().any(|(page, ..)| page == want) => {
                    format!("all of \"{want}\" is pending: `list` says what it needs")
                }
                None => {
                    let names: Vec<_> = SCENARIOS.iter().map(|s| s.name).collect();
                    format!("unknown scenario \"{want}\"; there are: {}", names.join(", "))
                }
            });
        }
        for scenario in found {
            if !chosen.iter().any(|c| c.name == scenario.name) {
                chosen.push(scenario);
            }
        }
    }
    Ok(chosen)
}

/// Returns the scenario of this name, whether or not it is pending, and those of this family that
/// are not; after `=` the scenario alone.
fn named(want: &str) -> Vec<&'static Scenario> {
    let is_meant = |s: &&Scenario| match want {
        _ if want.starts_with('=') => s.name == &want[1..],
        "all" => s.needs.is_none(),
        "pending" => s.needs.is_some(),
        _ => {
            let rest = s.name.strip_prefix(want);
            rest == Some("") || (s.needs.is_none() && rest.is_some_and(|rest| rest.starts_with('-')))
        }
    };
    SCENARIOS.iter().filter(is_meant).collect()
}

impl Scenario {
    /// Returns whether the server reads its configuration again while it is timed.
    pub fn reloads(&self) -> bool {
        self.events.iter().any(|event| event.what == What::Reload)
    }

    /// Returns whether its rules change while it is timed.
    pub fn changes_rules(&self) -> bool {
        self.events.iter().any(|event| event.what == What::Rules)
    }

    /// Returns whether it changes a stub that other servers may be asking.
    pub const fn disturbs_stubs(&self) -> bool {
        self.expired.is_some() || matches!(self.maker, Maker::Recovery(_))
    }

    /// Returns what is asked of a simulated internet, if it is one that is asked.
    pub const fn asked(&self) -> Option<Asked> {
        match self.questions {
            Questions::Internet(asked) => Some(asked),
            _ => None,
        }
    }

    /// Returns what is asked of it beside what is known, if anything.
    pub const fn unknown(&self) -> Option<Asked> {
        match (self.asked(), self.maker) {
            (Some(asked), Maker::Beside(_)) => Some(asked.others()),
            _ => None,
        }
    }

    /// Returns whether somebody attacks beside it.
    pub const fn is_attacked(&self) -> bool {
        matches!(self.asked(), Some(Asked { attack: Some(_), .. }))
    }

    /// Returns the seed of the order, if it is random.
    pub fn shuffle(&self) -> Option<u64> {
        (self.passes.is_none() && self.questions.is_shuffled()).then_some(20_260_801)
    }

    /// Returns clients, loopback addresses and queries in flight, given those of the session.
    pub const fn clients(&self, session: (usize, usize, usize)) -> (usize, usize, usize) {
        match self.load {
            Load::Full => session,
            Load::Single(clients) | Load::Quiet(clients) => (clients, session.1, clients),
            Load::Even(clients) => (clients, session.1, EVEN_OUTSTANDING),
            Load::Fixed { clients, addresses, outstanding } => (clients, addresses, outstanding),
        }
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
        assert_eq!(names(&["local", "local"]), ["local", "local-tcp", "local-mix"]);
        assert_eq!(names(&["=local", "local-tcp"]), ["local", "local-tcp"]);
        assert_eq!(names(&["=cache-tcp"]), ["cache-tcp"]);
        assert!(select(&["=cache".to_owned()]).unwrap_err().contains("unknown"));
        assert_eq!(names(&["latency-cache"]), ["latency-cache-1", "latency-cache-2", "latency-cache-4"]);
        assert_eq!(names(&["all"]).len(), SCENARIOS.iter().filter(|s| s.needs.is_none()).count());
        assert!(names(&["zone"]).starts_with(&["zone-1k", "zone-100k", "zone-1m"]));
        assert!(select(&["pools".to_owned()]).unwrap_err().contains("pending"));
        assert!(names(&["xdp"]).iter().all(|name| name.starts_with("xdp-")));
        assert!(select(&["lokal".to_owned()]).unwrap_err().contains("unknown"));
    }

    #[test]
    fn pages_name_scenarios() {
        assert!(names(&["runbound"]).starts_with(&["runbound-1", "runbound-8"]));
        assert!(names(&["forgedns"]).contains(&"domain-set"));
        assert_eq!(names(&["erldns"]), ["erldns-mix", "erldns-resolvable", "erldns-guide"]);
        for (page, _, wanted) in PAGES {
            for name in *wanted {
                let is_family = !named(name).is_empty() || SCENARIOS.iter().any(|s| s.name.starts_with(name));
                assert!(is_family || PENDING.iter().any(|(p, _)| p == name), "{page}: {name}");
            }
        }
    }

    #[test]
    fn names_are_given_once() {
        let mut names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        names.extend(PENDING.iter().map(|(name, _)| *name));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_scenario_beside_another_follows_it_and_needs_the_same_upstreams() {
        let besides: Vec<_> = SCENARIOS.windows(2).filter(|rows| rows[1].beside.is_some()).collect();
        assert_eq!(besides.len(), SCENARIOS.iter().filter(|scenario| scenario.beside.is_some()).count());
        for rows in besides {
            assert_eq!(rows[1].beside, Some(rows[0].name));
            assert!(rows.iter().all(|row| row.upstream_is.is_empty()), "{}", rows[1].name);
        }
    }

    #[test]
    fn other_makers_ask_between_namespaces_only() {
        for scenario in SCENARIOS {
            assert_eq!(
                scenario.network == Network::Pair,
                scenario.name.starts_with("xdp-"),
                "{}",
                scenario.name
            );
            assert!(
                scenario.maker == Maker::Session
                    || scenario.maker.is_of_zones()
                    || matches!(scenario.maker, Maker::Recovery(_) | Maker::Beside(_))
                    || (scenario.shares_cores && matches!(scenario.maker, Maker::Dnsperf(_)))
                    || scenario.network == Network::Pair,
                "{}",
                scenario.name
            );
            assert!(scenario.maker != Maker::Kxdpgun || scenario.rate.is_some(), "{}", scenario.name);
        }
    }

    #[test]
    fn an_internet_is_asked_where_there_is_one() {
        for scenario in SCENARIOS {
            assert_eq!(
                scenario.asked().is_some(),
                scenario.network == Network::Internet,
                "{}",
                scenario.name
            );
            assert_eq!(
                scenario.asked().is_some(),
                scenario.name.starts_with("resolve-"),
                "{}",
                scenario.name
            );
        }
    }

    #[test]
    fn a_series_differs_in_its_rate_alone() {
        for scenario in SCENARIOS {
            let is_even = matches!(scenario.load, Load::Even(_));
            assert_eq!(scenario.series.is_some(), is_even, "{}", scenario.name);
            assert!(!is_even || scenario.rate.is_some(), "{}", scenario.name);
            assert!(!is_even || scenario.transport == Transport::Udp, "{}", scenario.name);
            assert_eq!(scenario.quota.is_some(), scenario.series == Some(Series::Quota), "{}", scenario.name);
        }
        let rates: Vec<_> = SCENARIOS.iter().filter(|s| s.series == Some(Series::Rates)).collect();
        assert!(rates.iter().all(|s| (s.setting, s.questions) == (rates[0].setting, rates[0].questions)));
        assert!(rates.is_sorted_by_key(|s| s.rate.map(|rate| rate as u64)));
    }

    #[test]
    fn a_scenario_of_memory_leaves_the_upstream_alone() {
        for scenario in SCENARIOS {
            assert!(!scenario.warm || scenario.upstream != Upstream::Asked, "{}", scenario.name);
        }
    }
}
