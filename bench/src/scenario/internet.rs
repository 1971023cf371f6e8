//! The simulated internets that resolvers are measured on, and what is asked there.

use std::net::Ipv4Addr;

use dnssec::Algorithm;
use testkit::world::{Denial, HOSTS, Options, Truth, World};
use wire::Rtype;

use super::questions::zipf;
use crate::queries::{Ask, Dice, Expected, parse_name};

/// What seed all are made from.
const SEED: u64 = 20_261_123;
/// Zones of each internet.
const ZONES: u32 = 100_000;
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
}

impl Internet {
    /// Unsigned, and everything is at once there.
    pub const PLAIN: Self = Self { is_signed: false, delay_ms: (0, 0), loss_ppm: 0, is_mixed: false };
    /// Signed, and everything is at once there.
    pub const SIGNED: Self = Self { is_signed: true, ..Self::PLAIN };

    fn options(self) -> Options {
        let plain = Options {
            seed: SEED,
            tlds: TLDS,
            zones: ZONES,
            signed: if self.is_signed { 1_000 } else { 0 },
            delay_ms: self.delay_ms.0..=self.delay_ms.1,
            ..Options::default()
        };
        if !self.is_mixed {
            return plain;
        }
        Options {
            signed: plain.signed / 2,
            algorithms: vec![Algorithm::ECDSAP256SHA256, Algorithm::RSASHA256, Algorithm::ED25519],
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

    /// Returns the arguments of the command that serves it, with what questions need signed in
    /// advance.
    pub fn arguments(self, asked: Asked) -> Vec<String> {
        let options = self.options();
        let denial = match options.denial {
            Denial::Nsec => "nsec",
            Denial::Nsec3 => "nsec3",
            Denial::Mixed => "mixed",
        };
        let algorithms: Vec<String> = options.algorithms.iter().map(|number| number.0.to_string()).collect();
        let hosts = asked.hosts.to_string();
        [
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
            ("--prepare-zones", asked.zones.to_string()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }
}

/// What is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The internet.
    pub internet: Internet,
    /// Zones that are asked for.
    pub zones: u32,
    /// Names in each: the first of all zones, then the second of all, and so on.
    pub hosts: usize,
    /// Instead, so many names, each zone in proportion to the inverse of its rank (Zipf), one in
    /// five of them an alias.
    pub popular: Option<usize>,
}

impl Asked {
    /// Returns the questions with their answers.
    pub fn asks(self) -> Vec<Ask> {
        let world = self.internet.world();
        let mut zones: Vec<u32> = (0..self.zones.min(ZONES - PROBED)).collect();
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
        (ZONES - PROBED..ZONES).map(|zone| self.ask(&world, HOSTS[0], zone)).collect()
    }

    fn ask(self, world: &World, host: &str, zone: u32) -> Ask {
        let name = format!("{host}.{}", world.zone_text(zone));
        // A name of few letters and digits.
        let parsed = parse_name(&name).unwrap_or_else(|_| wire::NameBuf::root());
        let truth = world.truth(parsed.as_name(), Rtype::A);
        Ask { name, rtype: Rtype::A, expected: expected(&truth, self.internet.is_signed) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_known() {
        let signed = Asked { internet: Internet::SIGNED, zones: 100, hosts: 5, popular: None };
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
        let asks = Asked { internet, zones: 1_000, hosts: 1, popular: Some(2_000) }.asks();
        assert_eq!(asks.len(), 2_000);
        let secure = asks.iter().filter(|ask| ask.expected.is_secure == Some(true)).count();
        assert!((500..=1_300).contains(&secure), "{secure}");
        assert!(asks.iter().filter(|ask| ask.name.starts_with("alias.")).count() > 100);
        assert!(asks.iter().all(|ask| ask.expected.address.is_some()));
    }
}
