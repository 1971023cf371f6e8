//! The simulated internets that resolvers are measured on, and what is asked there.

use std::net::Ipv4Addr;

use dnssec::Algorithm;
use testkit::world::{Attack, Denial, HOSTS, Options, Truth, World, deepest_below};
use wire::{Rcode, Rtype};

use super::questions::zipf;
use super::table::{EDNS, VERDICT, local};
use super::{Load, Maker, Network, Outage, Questions, Scenario, Upstream};
use crate::queries::{Ask, Dice, Expected, parse_name};

/// What seed all are made from.
const SEED: u64 = 20_261_123;
/// Zones of each internet.
const ALL_ZONES: u32 = 100_000;
/// Top-level domains of each.
const TLDS: u32 = 200;
/// Zones that are asked one by one before anything is timed: the last ones, which nobody else asks.
const PROBED: u32 = 4;

/// A simulated internet, and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Internet {
    /// Whether it is signed: all zones with P-256 and NSEC, unless it is mixed.
    pub is_signed: bool,
    /// Milliseconds that servers take, drawn for each address between both.
    pub delay_ms: (u32, u32),
    /// Of a million datagrams, how many are lost.
    pub loss_ppm: u32,
    /// Whether zones differ as they do out there: name servers in other zones, dead and lame ones
    /// and some without EDNS, several algorithms, NSEC and NSEC3, half of the zones signed.
    pub is_mixed: bool,
    /// Whether two top-level domains have hostile names.
    pub is_hostile: bool,
}

impl Internet {
    /// Unsigned, and everything is at once there.
    pub const PLAIN: Self =
        Self { is_signed: false, delay_ms: (0, 0), loss_ppm: 0, is_mixed: false, is_hostile: false };
    /// Signed, and everything is at once there.
    pub const SIGNED: Self = Self { is_signed: true, ..Self::PLAIN };

    fn options(self) -> Options {
        let plain = Options {
            seed: SEED,
            tlds: TLDS,
            zones: ALL_ZONES,
            signed: if self.is_signed { 1_000 } else { 0 },
            delay_ms: self.delay_ms.0..=self.delay_ms.1,
            is_hostile: self.is_hostile,
            ..Options::default()
        };
        if !self.is_mixed {
            return plain;
        }
        Options {
            signed: plain.signed / 2,
            // RSA is in the minority, also because its signatures take a millisecond each to make.
            algorithms: vec![
                Algorithm::ECDSAP256SHA256,
                Algorithm::ECDSAP256SHA256,
                Algorithm::RSASHA256,
                Algorithm::ED25519,
            ],
            denial: Denial::Mixed,
            out_of_zone: 300,
            dead: 30,
            lame: 10,
            without_edns: 20,
            ..plain
        }
    }

    /// Returns it as those see it who know all answers.
    pub fn world(self) -> World {
        World::new(self.options())
    }

    /// Returns the arguments of the command that serves it: so many zones are signed in advance, as
    /// far as questions for so many hosts need it.
    pub fn arguments(self, signed: u32, hosts: usize) -> Vec<String> {
        let options = self.options();
        let denial = match options.denial {
            Denial::Nsec => "nsec",
            Denial::Nsec3 => "nsec3",
            Denial::Mixed => "mixed",
        };
        let algorithms: Vec<String> = options.algorithms.iter().map(|number| number.0.to_string()).collect();
        let hosts = hosts.to_string();
        let flags = self.is_hostile.then(|| "--hostile".to_owned());
        let values = [
            ("--seed", options.seed.to_string()),
            ("--tlds", options.tlds.to_string()),
            ("--zones", options.zones.to_string()),
            ("--signed", options.signed.to_string()),
            ("--algorithms", algorithms.join(",")),
            ("--denial", denial.to_owned()),
            ("--out-of-zone", options.out_of_zone.to_string()),
            ("--dead", options.dead.to_string()),
            ("--lame", options.lame.to_string()),
            ("--without-edns", options.without_edns.to_string()),
            ("--delay-min-ms", self.delay_ms.0.to_string()),
            ("--delay-max-ms", self.delay_ms.1.to_string()),
            ("--loss", (f64::from(self.loss_ppm) / 10_000.0).to_string()),
            ("--prepare", if self.is_signed { hosts } else { "0".to_owned() }),
            ("--prepare-zones", signed.to_string()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value]);
        values.chain(flags).collect()
    }
}

/// Zones that are asked for beside others.
const OTHERS: u32 = 20_000;
/// Names a second where all are known.
const HITS: f64 = 5_000.0;

/// What is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The internet.
    pub internet: Internet,
    /// The first zone that is asked for.
    pub first: u32,
    /// How many are.
    pub zones: u32,
    /// Names in each: the first of all zones, then the second of all, and so on.
    pub hosts: usize,
    /// Instead, so many names, each zone in proportion to the inverse of its rank (Zipf), one in
    /// five of them an alias.
    pub popular: Option<usize>,
    /// What an attacker does beside it.
    pub attack: Option<Attack>,
    /// Whether these are the attacker's questions.
    pub is_attacker: bool,
}

impl Asked {
    /// Returns the first zone after those that are asked for.
    pub fn zones_end(self) -> u32 {
        (self.first + self.zones).min(ALL_ZONES - PROBED)
    }

    /// Returns the same of other zones, and many of them; or what an attacker asks.
    pub const fn others(self) -> Self {
        if self.attack.is_some() {
            return Self { is_attacker: true, ..self };
        }
        Self { first: self.first + self.zones, zones: OTHERS, ..self }
    }

    /// Returns the questions with their answers.
    pub fn asks(self) -> Vec<Ask> {
        let world = self.internet.world();
        if let Some(attack) = self.attack.filter(|_| self.is_attacker) {
            let below = world.attack_text(attack).unwrap_or_default();
            return (0..OTHERS).map(|number| hostile(attack, &below, number)).collect();
        }
        let is_honest = |zone: &u32| !world.is_hostile(zone % TLDS);
        let mut zones: Vec<u32> = (self.first..self.zones_end()).filter(is_honest).collect();
        let mut dice = Dice::new(SEED);
        dice.shuffle(&mut zones);
        if let Some(count) = self.popular {
            let names = ["www", "mail", "api", "alias", "shop", "img", "www", "www", "chain", "mail"];
            let ranks = zipf(count, zones.len());
            return ranks.map(|rank| self.ask(&world, names[dice.below(names.len())], zones[rank])).collect();
        }
        let hosts = HOSTS.get(..self.hosts).unwrap_or(&HOSTS);
        hosts.iter().flat_map(|host| zones.iter().map(|zone| self.ask(&world, host, *zone))).collect()
    }

    /// Returns questions that are none of [`Asked::asks`].
    pub fn probes(self) -> Vec<Ask> {
        let world = self.internet.world();
        (ALL_ZONES - PROBED..ALL_ZONES).map(|zone| self.ask(&world, HOSTS[0], zone)).collect()
    }

    fn ask(self, world: &World, host: &str, zone: u32) -> Ask {
        let name = format!("{host}.{}", world.zone_text(zone));
        // A name of few letters and digits.
        let parsed = parse_name(&name).unwrap_or_else(|_| wire::NameBuf::root());
        let truth = world.truth(parsed.as_name(), Rtype::A);
        Ask { name, rtype: Rtype::A, expected: expected(&truth, self.internet.is_signed) }
    }
}

/// Returns one of an attacker's questions, for which he expects no answer.
fn hostile(attack: Attack, below: &str, number: u32) -> Ask {
    let name = match attack {
        Attack::Camp => format!("a.b.c.d.e{}.{below}", 1_000 * (number + 1)),
        Attack::Long | Attack::Hashes => deepest_below(&format!("x{number}.{below}")),
        _ => format!("www.x{number}.{below}"),
    };
    let expected =
        Expected { rcode: Rcode::SERVFAIL.0 as u8, records: false, address: None, is_secure: None };
    Ask { name, rtype: Rtype::A, expected }
}

/// Returns what a right answer looks like.
fn expected(truth: &Truth, is_validated: bool) -> Expected {
    let address = truth.records.iter().rev().find(|(_, rtype, _)| *rtype == Rtype::A);
    let address = address.and_then(|(.., data)| <[u8; 4]>::try_from(data.as_slice()).ok());
    Expected {
        rcode: truth.rcode.0 as u8,
        records: !truth.records.is_empty(),
        address: address.map(Ipv4Addr::from),
        is_secure: is_validated.then_some(truth.is_secure),
    }
}

/// Zones of an internet that are asked for where memory counts.
pub(super) const ZONES: u32 = 80_000;
/// Queries in flight where names are resolved.
const RESOLVED: Load = Load::Fixed { clients: 8, addresses: 1, outstanding: 200 };
/// An internet as it is out there, on a fast network.
pub(super) const MIXED_INTERNET: Internet = Internet { is_mixed: true, ..Internet::SIGNED };

/// A signed internet in which two top-level domains are hostile.
pub(super) const HOSTILE_INTERNET: Internet = Internet { is_hostile: true, ..Internet::SIGNED };

/// A signed internet 20 ms away.
pub(super) const fn far(loss_ppm: u32) -> Internet {
    Internet { delay_ms: (20, 20), loss_ppm, ..Internet::SIGNED }
}

/// Asks names of an internet, each once.
pub(super) const fn resolve(
    name: &'static str,
    about: &'static str,
    internet: Internet,
    zones: u32,
    hosts: usize,
) -> Scenario {
    let asked = Asked { internet, first: 0, zones, hosts, popular: None, attack: None, is_attacker: false };
    Scenario {
        setting: if internet.is_signed { "resolve-signed" } else { "resolve" },
        upstream: Upstream::Sometimes,
        load: RESOLVED,
        network: Network::Internet,
        ..local(name, about, Questions::Internet(asked))
    }
    .with(if internet.is_signed { VERDICT } else { EDNS })
    .passes(1)
}

impl Scenario {
    /// Asks for names again that were found before.
    pub(super) const fn again(self) -> Self {
        Self { warm: true, passes: None, upstream: Upstream::Silent, ..self }
    }

    /// Asks so at a rate, perhaps beside so many names a second that have to be found.
    pub(super) const fn found(self, misses: Option<u32>) -> Self {
        let (upstream, maker) = match misses {
            Some(misses) => (Upstream::Sometimes, Maker::Beside(misses)),
            None => (Upstream::Silent, Maker::Session),
        };
        Self { upstream, maker, rate: Some(HITS), ..self.again() }
    }

    /// Asks so at a rate while an attacker asks so many hostile names a second.
    pub(super) const fn attacked(self, attack: Attack, rate: u32) -> Self {
        let Questions::Internet(asked) = self.questions else { return self };
        let asked = Asked { attack: Some(attack), ..asked };
        self.found(Some(rate)).asks(Questions::Internet(asked))
    }

    /// Asks while all servers are silent, and until answers come again.
    pub(super) const fn outlasting(self) -> Self {
        Self { passes: None, maker: Maker::Recovery(Outage::Silent), ..self }
    }

    /// Asks so many names instead, some often.
    pub(super) const fn popular(self, count: usize) -> Self {
        match self.questions {
            Questions::Internet(asked) => {
                self.asks(Questions::Internet(Asked { popular: Some(count), ..asked }))
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed_zones(zones: u32) -> Asked {
        let internet = Internet::SIGNED;
        Asked { internet, first: 0, zones, hosts: 5, popular: None, attack: None, is_attacker: false }
    }

    #[test]
    fn an_attacker_asks_hostile_names_and_others_do_not() {
        let asked = Asked { internet: HOSTILE_INTERNET, attack: Some(Attack::Nxns), ..signed_zones(1_000) };
        let (asks, hostile) = (asked.asks(), asked.others().asks());
        assert!(asks.iter().all(|ask| !ask.name.ends_with(".t199") && !ask.name.ends_with(".t198")));
        assert!(asks.len() > 900 * 5 && hostile.len() == OTHERS as usize);
        assert!(hostile.iter().all(|ask| ask.name.ends_with(".nxns.t199")));
    }

    #[test]
    fn every_answer_is_known() {
        let signed = signed_zones(100);
        let asks = signed.asks();
        assert_eq!(asks.len(), 500);
        assert!(
            asks.iter().all(|ask| ask.expected.address.is_some() && ask.expected.is_secure == Some(true))
        );
        assert!(asks[..100].iter().all(|ask| ask.name.starts_with("www.")));
        assert!(signed.probes().iter().all(|probe| !asks.contains(probe)));
        let plain = Asked { internet: Internet::PLAIN, ..signed };
        assert!(plain.asks().iter().all(|ask| ask.expected.is_secure.is_none()));
        assert_eq!(plain.asks()[7].expected.address, asks[7].expected.address);
    }

    #[test]
    fn a_mixed_internet_has_aliases_and_unsigned_zones() {
        let internet = Internet { is_mixed: true, ..Internet::SIGNED };
        let asks = Asked { internet, hosts: 1, popular: Some(2_000), ..signed_zones(1_000) }.asks();
        assert_eq!(asks.len(), 2_000);
        let secure = asks.iter().filter(|ask| ask.expected.is_secure == Some(true)).count();
        assert!((500..=1_300).contains(&secure), "{secure}");
        assert!(asks.iter().filter(|ask| ask.name.starts_with("alias.")).count() > 100);
        assert!(asks.iter().all(|ask| ask.expected.address.is_some()));
    }
}
