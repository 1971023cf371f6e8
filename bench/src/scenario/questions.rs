//! What scenarios ask, and the right answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Rtype;

use super::Asked;
use crate::probe::Probe;
use crate::queries::{self, Ask, Dice};
use crate::rules::{self, Shape};
use crate::stub;

/// Names that are asked one by one before a large set is timed.
const PROBES: usize = 4;
/// Names asked at most one by one before a small set is timed.
const PROBES_MAX: usize = 32;
/// Time to live of local answers; a server that fixes a lower one may.
const LOCAL_TTL_MAX: u32 = 3600;
/// Time to live of a simulated internet's records at most.
const INTERNET_TTL_MAX: u32 = 86_400;
/// Names that ask a large rule set.
const RULES_ASKED: usize = 20_000;

/// The local names: host, IPv4, IPv6 (documentation addresses). Rivals' files list the same.
pub const LOCAL: [(&str, Ipv4Addr, Ipv6Addr); 5] = [
    host("nas.bench.example.org", 11),
    host("printer.bench.example.org", 12),
    host("router.bench.example.org", 13),
    host("media.bench.example.org", 14),
    host("camera.bench.example.org", 15),
];

/// Records beside the local names in `local-mix`. Rivals' files list the same.
pub const MIX: [(&str, Rtype, Option<Ipv4Addr>); 4] = [
    ("about.bench.example.org", Rtype::TXT, None),
    ("contact.bench.example.org", Rtype::TXT, None),
    ("gate.bench.example.org", Rtype::A, Some(Ipv4Addr::new(192, 0, 2, 16))),
    ("alias.bench.example.org", Rtype::CNAME, None),
];

/// Names with an address each, half of them in the set of networks. Rivals' files list the same.
pub const ADDRESS_SET: [(&str, Ipv4Addr); 8] = [
    ("in1.addr.example.org", Ipv4Addr::new(10, 1, 2, 3)),
    ("in2.addr.example.org", Ipv4Addr::new(10, 5, 0, 1)),
    ("in3.addr.example.org", Ipv4Addr::new(10, 63, 7, 7)),
    ("in4.addr.example.org", Ipv4Addr::new(198, 51, 100, 9)),
    ("out1.addr.example.org", Ipv4Addr::new(192, 0, 2, 21)),
    ("out2.addr.example.org", Ipv4Addr::new(192, 0, 2, 22)),
    ("out3.addr.example.org", Ipv4Addr::new(203, 0, 113, 23)),
    ("out4.addr.example.org", Ipv4Addr::new(10, 64, 0, 1)),
];

/// Addresses of the first names of the domain set in the chain; the last is in no network of the
/// set.
const CHAIN: [(&str, Ipv4Addr); 4] = [
    ("hit01.set.example.org", Ipv4Addr::new(10, 5, 0, 1)),
    ("hit02.set.example.org", Ipv4Addr::new(10, 63, 7, 7)),
    ("hit03.set.example.org", Ipv4Addr::new(198, 51, 100, 9)),
    ("hit04.set.example.org", Ipv4Addr::new(192, 0, 2, 99)),
];

/// The zones of erldns's page, for the answers that are addresses.
const ERLDNS: [(&str, Ipv4Addr); 1] = [("ns2.test.com", Ipv4Addr::new(2, 2, 2, 2))];

const fn host(name: &'static str, last: u8) -> (&'static str, Ipv4Addr, Ipv6Addr) {
    // The last octet of the IPv4 address, its digits read as hexadecimal ones.
    let last_v6 = (last / 10 * 16 + last % 10) as u16;
    (name, Ipv4Addr::new(192, 0, 2, last), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last_v6))
}

/// Which queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    /// The five local names, A and AAAA each.
    Local,
    /// The five local names, A.
    LocalA,
    /// One local name, A.
    One,
    /// This many well-known names, A.
    Popular(usize),
    /// This many names that do not exist, A.
    Denied(usize),
    /// This many names of 25 octets in wire form, A, in random order.
    Many(usize),
    /// One name, A, to be answered with a response code.
    Coded(u8),
    /// The local names and the records beside them.
    Mix,
    /// Ten names of the domain set and eight others.
    DomainSet,
    /// 24 names of the domain set.
    DomainHits,
    /// The same names and others, each with an address.
    DomainAnswers,
    /// 20,000 names, half of which the million rules match.
    RulesMany,
    /// Eight names with an address, four of them in the set.
    AddressSet,
    /// The four in the set.
    AddressHits,
    /// Four names of the domain set, three of them with an address in the set, and four others.
    Chain,
    /// erldns's first query file.
    ErldnsMix,
    /// erldns's second query file.
    ErldnsOurs,
    /// Each of so many names of the large zone, and one in ten that it does not have.
    Zone(usize),
    /// A name in each of so many small zones.
    ManyZones(usize),
    /// So many names that the large zone does not have, with the proof that it has not.
    Denial(usize),
    /// A type that so many names of the large zone do not have, with the proof that they have not.
    NoData(usize),
    /// Names of which there are so many, each asked in proportion to the inverse of its rank
    /// (Zipf), drawn from a seed.
    Zipf(usize),
    /// Names of a simulated internet.
    Internet(Asked),
}

const REFUSED: u8 = 5;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
const NOERROR: u8 = 0;

impl Questions {
    /// Returns whether they are asked in random order.
    pub const fn is_shuffled(self) -> bool {
        matches!(
            self,
            Self::Many(_)
                | Self::RulesMany
                | Self::Zone(_)
                | Self::ManyZones(_)
                | Self::Denial(_)
                | Self::NoData(_)
        )
    }

    /// Returns whether what is asked to settle is followed by other queries than before it.
    pub const fn goes_on(self) -> bool {
        matches!(self, Self::Zipf(_))
    }

    /// Returns whether a run does not come to their end, so that none is asked twice.
    pub const fn is_endless(self) -> bool {
        matches!(self, Self::Many(count) if count > 100_000)
    }

    /// Returns the queries, each with its response code.
    pub fn asks(self) -> Vec<Ask> {
        let a = |name: &str| Ask::new(name, Rtype::A);
        match self {
            Self::Local => {
                LOCAL.iter().flat_map(|(name, ..)| [a(name), Ask::new(*name, Rtype::AAAA)]).collect()
            }
            Self::LocalA => LOCAL.iter().map(|(name, ..)| a(name)).collect(),
            Self::One => vec![a(LOCAL[0].0)],
            Self::Popular(count) => (0..count).map(|i| a(&format!("popular{i:02}.example.org"))).collect(),
            Self::Denied(count) => {
                let name = |i| format!("{}{i:02}.example.org", stub::DENIED_PREFIX);
                (0..count).map(|i| a(&name(i)).coded(NXDOMAIN)).collect()
            }
            Self::Many(count) if count <= 100_000 => {
                (0..count).map(|i| a(&format!("w{i:05}.shop.example.org"))).collect()
            }
            Self::Many(count) => (0..count).map(|i| a(&format!("w{i:06}.sea.example.org"))).collect(),
            Self::Coded(rcode) => vec![a("bench.test").coded(rcode)],
            Self::Mix => {
                let own = MIX.iter().map(|(name, rtype, _)| Ask::new(*name, *rtype));
                Self::Local.asks().into_iter().chain(own).collect()
            }
            Self::DomainSet => {
                let hits = rules::hits().into_iter().take(10).map(|name| a(&name).coded(REFUSED));
                hits.chain(rules::misses(8).into_iter().map(|name| a(&name).coded(SERVFAIL))).collect()
            }
            Self::DomainHits => rules::hits().iter().map(|name| a(name).coded(REFUSED)).collect(),
            Self::DomainAnswers => {
                rules::hits().into_iter().take(16).chain(rules::misses(8)).map(|name| a(&name)).collect()
            }
            Self::RulesMany => {
                let (hits, misses) = Shape::Million.questions(RULES_ASKED);
                let hits = hits.iter().map(|name| a(name).coded(REFUSED));
                hits.chain(misses.iter().map(|name| a(name).coded(SERVFAIL))).collect()
            }
            Self::AddressSet => {
                let out = |at: usize| if at < 4 { NOERROR } else { SERVFAIL };
                ADDRESS_SET.iter().enumerate().map(|(at, (name, _))| a(name).coded(out(at))).collect()
            }
            Self::AddressHits => ADDRESS_SET[..4].iter().map(|(name, _)| a(name)).collect(),
            Self::Chain => {
                let hits = CHAIN.iter().map(|(name, _)| a(name));
                let mut hits: Vec<Ask> = hits.collect();
                if let Some(last) = hits.pop() {
                    hits.push(last.coded(SERVFAIL));
                }
                hits.extend(rules::misses(4).iter().map(|name| a(name).coded(SERVFAIL)));
                hits
            }
            Self::ErldnsMix => vec![
                Ask::new("thumbs2.ebaystatic.com", Rtype::AAAA).coded(REFUSED),
                a("sip.hotmail.com").coded(REFUSED),
                a("google.com").coded(REFUSED),
                a("cache.defamer.com").coded(REFUSED),
                a("example.com").empty(),
                Ask::new("www.example.com", Rtype::CNAME),
            ],
            Self::ErldnsOurs => vec![
                a("example.com").empty(),
                Ask::new("example.com", Rtype::NS),
                Ask::new("example.com", Rtype::AAAA).empty(),
                Ask::new("example.com", Rtype(257)).empty(),
                Ask::new("example.com", Rtype::CNAME).empty(),
                a("ldap.example.com").coded(NXDOMAIN),
                a("ns2.test.com"),
                Ask::new("www.test.com", Rtype::CNAME),
            ],
            Self::Zone(count) => {
                let hits = (0..count).map(|i| a(&rules::zone_name(i).0));
                // One in ten of all.
                let misses = (0..count / 9).map(|i| a(&rules::zone_miss(i * 9)).coded(NXDOMAIN));
                hits.chain(misses).collect()
            }
            Self::Denial(count) => (0..count).map(|i| a(&rules::zone_miss(i)).coded(NXDOMAIN)).collect(),
            Self::NoData(count) => {
                (0..count).map(|i| Ask::new(rules::zone_name(i).0, Rtype::AAAA).empty()).collect()
            }
            Self::Internet(asked) => asked.asks(),
            Self::Zipf(count) => {
                zipf(count, count).map(|rank| a(&format!("w{rank:06}.sea.example.org"))).collect()
            }
            Self::ManyZones(count) => {
                (0..count).map(|i| a(&rules::in_small_zone(&rules::small_zone(i)))).collect()
            }
        }
    }

    /// Returns which of its queries, `asks`, are asked one by one, with their right answers: all of
    /// a small set, some of a large one.
    pub fn probes(self, asks: &[Ask]) -> Result<Vec<Probe>, String> {
        if let Self::Internet(asked) = self {
            return asked.probes().into_iter().map(|ask| self.probe(ask)).collect();
        }
        let step = if asks.len() <= PROBES_MAX { 1 } else { (asks.len() / PROBES).max(1) };
        asks.iter().step_by(step).map(|ask| self.probe(ask.clone())).collect()
    }

    fn probe(self, ask: Ask) -> Result<Probe, String> {
        let mut addresses = Vec::new();
        let mut ttl_max = LOCAL_TTL_MAX;
        if ask.expected.rcode == NOERROR {
            match self {
                Self::Local | Self::LocalA | Self::One | Self::Mix => {
                    for (_, v4, v6) in LOCAL.iter().filter(|(name, ..)| *name == ask.name) {
                        addresses.push(if ask.rtype == Rtype::A { IpAddr::V4(*v4) } else { IpAddr::V6(*v6) });
                    }
                    for (name, _, v4) in MIX {
                        addresses.extend(v4.filter(|_| name == ask.name).map(IpAddr::V4));
                    }
                }
                Self::Popular(_) | Self::Many(_) | Self::Zipf(_) => {
                    let name = queries::parse_name(&ask.name)?;
                    addresses.push(IpAddr::V4(stub::ipv4_of(name.as_name())));
                    ttl_max = stub::TTL_SECONDS;
                }
                Self::DomainAnswers => {
                    let is_hit = rules::hits().contains(&ask.name);
                    addresses.push(IpAddr::V4(Ipv4Addr::new(192, 0, 2, if is_hit { 53 } else { 54 })));
                }
                Self::AddressSet | Self::AddressHits | Self::Chain => {
                    let known = ADDRESS_SET.iter().chain(&CHAIN).filter(|(name, _)| *name == ask.name);
                    addresses.extend(known.map(|(_, v4)| IpAddr::V4(*v4)));
                }
                Self::ErldnsMix | Self::ErldnsOurs => {
                    let known = ERLDNS.iter().filter(|(name, _)| *name == ask.name);
                    addresses.extend(known.map(|(_, v4)| IpAddr::V4(*v4)));
                }
                Self::Zone(_) => {
                    let number = rules::zone_number(&ask.name).unwrap_or(0);
                    addresses.push(IpAddr::V4(rules::zone_name(number).1));
                }
                Self::Internet(_) => {
                    addresses.extend(ask.expected.address.map(IpAddr::V4));
                    ttl_max = INTERNET_TTL_MAX;
                }
                Self::ManyZones(_) => addresses.push(IpAddr::V4(rules::SMALL_ZONE_ADDRESS)),
                Self::Denied(_)
                | Self::Coded(_)
                | Self::DomainSet
                | Self::DomainHits
                | Self::RulesMany
                | Self::Denial(_)
                | Self::NoData(_) => {}
            }
        }
        // A name is proven absent by two hashes or three: the closest encloser's, and those that
        // cover the next closer name and the wildcard, which may be one. That a name lacks a type
        // is proven by its own.
        let hashes_min = match self {
            Self::Denial(_) => 2,
            Self::NoData(_) => 1,
            _ => 0,
        };
        Ok(Probe { ask, addresses, ttl_max, hashes_min })
    }
}

/// Draws `count` ranks below `places`, each in proportion to the inverse of its place.
pub(super) fn zipf(count: usize, places: usize) -> impl Iterator<Item = usize> {
    let sums: Vec<f64> = (1..=places)
        .scan(0.0, |sum, place| {
            *sum += 1.0 / place as f64;
            Some(*sum)
        })
        .collect();
    let whole = sums.last().copied().unwrap_or(0.0);
    let mut dice = Dice::new(20_261_122);
    (0..count).map(move |_| {
        let at = dice.roll() as f64 / 2_f64.powi(64) * whole;
        sums.partition_point(|sum| *sum <= at).min(places - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_sets_have_names_of_25_octets() {
        for large in [Questions::Many(100_000), Questions::Many(1_000_000)] {
            for ask in large.asks().iter().step_by(9_999) {
                assert_eq!(queries::parse_name(&ask.name).expect("a name").as_name().len(), 25);
            }
        }
    }

    #[test]
    fn local_names_have_documentation_addresses() {
        let (name, v4, v6) = LOCAL[4];
        assert_eq!(
            (name, v4.to_string(), v6.to_string()),
            ("camera.bench.example.org", "192.0.2.15".to_owned(), "2001:db8::15".to_owned())
        );
    }

    #[test]
    fn every_right_answer_with_an_address_names_it() {
        for questions in [
            Questions::Local,
            Questions::One,
            Questions::Popular(16),
            Questions::DomainAnswers,
            Questions::AddressSet,
            Questions::Chain,
            Questions::Zone(1_000),
            Questions::ManyZones(100),
        ] {
            for probe in questions.probes(&questions.asks()).expect("names") {
                assert_eq!(
                    probe.addresses.len(),
                    usize::from(probe.ask.expected.rcode == 0),
                    "{}",
                    probe.ask
                );
            }
        }
    }

    #[test]
    fn the_first_of_a_zipf_distribution_is_asked_twice_as_often_as_the_second() {
        let mut counts = vec![0_usize; 10_000];
        zipf(10_000, 10_000).for_each(|rank| counts[rank] += 1);
        // One in 9.79, the sum of the inverses of all places.
        assert!((920..=1_120).contains(&counts[0]), "{}", counts[0]);
        assert!((450..=570).contains(&counts[1]), "{}", counts[1]);
        assert!(counts[5_000..].iter().sum::<usize>() < 1_000);
        assert!(zipf(100, 100).eq(zipf(100, 100)));
    }

    #[test]
    fn the_published_mixes_have_their_shares() {
        let count = |questions: Questions, rcode: u8| {
            questions.asks().iter().filter(|ask| ask.expected.rcode == rcode).count()
        };
        assert_eq!((count(Questions::DomainSet, REFUSED), count(Questions::DomainSet, SERVFAIL)), (10, 8));
        assert_eq!((count(Questions::Chain, NOERROR), count(Questions::Chain, SERVFAIL)), (3, 5));
        assert_eq!((count(Questions::AddressSet, NOERROR), count(Questions::AddressSet, SERVFAIL)), (4, 4));
        assert_eq!(
            (count(Questions::Zone(9_000), NOERROR), count(Questions::Zone(9_000), NXDOMAIN)),
            (9_000, 1_000)
        );
        assert_eq!((count(Questions::ErldnsMix, REFUSED), count(Questions::ErldnsOurs, NXDOMAIN)), (4, 1));
        // A million rules are drawn for these.
        let asks = Questions::RulesMany.asks();
        let refused = asks.iter().filter(|ask| ask.expected.rcode == REFUSED).count();
        let failed = asks.iter().filter(|ask| ask.expected.rcode == SERVFAIL).count();
        assert_eq!((refused, failed), (10_000, 10_000));
    }
}
