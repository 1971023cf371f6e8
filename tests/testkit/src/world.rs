//! A simulated internet: a root, top-level domains and zones below them, all computed from a seed.
//!
//! No zone is stored. What a name has, who serves it and how a server behaves follow from the seed
//! and the name, so that 100,000 zones cost as much as ten, and the right answer to every question
//! is known ([`World::truth`]). Only signatures and the proofs of large zones are kept once they
//! are made.
//!
//! Every address of a server is one of a network ([`Options::network`]); the same 24 bits below
//! `fd00::/96` are its IPv6 address. [`World::answer`] does no I/O: who calls it says which address
//! a query was sent to.

mod answer;
mod chain;
mod contents;
mod counts;
mod hostile;
mod keys;
mod places;
mod rolling;
mod truth;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use dnssec::Algorithm;
use wire::NameBuf;

pub use self::answer::Carrier;
pub use self::contents::HOSTS;
pub use self::counts::{Counts, KINDS};
pub use self::hostile::{ATTACKS, Attack, Manner, deepest_below, noise};
pub use self::places::{Role, Zone};
pub use self::rolling::RootKeys;
pub use self::truth::Truth;

use self::chain::Chains;
use self::keys::Keys;
use self::places::server_label;

/// Servers of the root, and of each top-level domain.
const SERVERS_ABOVE: u8 = 4;
/// Zones whose servers serve other zones, too, for each hundred zones; one at least.
const PROVIDERS_PERCENT: u32 = 1;
/// The most there are of these.
const PROVIDERS_MAX: u32 = 500;

/// How zones deny what they do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// All with NSEC (RFC 4034 §4).
    Nsec,
    /// All but the root with NSEC3 (RFC 5155), no iterations and no salt; top-level domains leave
    /// unsigned delegations out.
    Nsec3,
    /// Half of them so, half otherwise.
    Mixed,
}

/// What an internet is like. Shares are out of a thousand.
#[derive(Clone, Debug)]
pub struct Options {
    /// Everything follows from it.
    pub seed: u64,
    /// Top-level domains, 1 to 1,000.
    pub tlds: u32,
    /// Zones below them, 1 to 1,000,000.
    pub zones: u32,
    /// The network of all servers, whose last three octets say which it is.
    pub network: u8,
    /// Zones that are signed. If none is, the root and top-level domains are not either.
    pub signed: u32,
    /// Algorithms of the keys, drawn for each zone. The root and top-level domains have the first.
    pub algorithms: Vec<Algorithm>,
    /// How signed zones deny.
    pub denial: Denial,
    /// Zones whose name servers are in other zones, so that a referral has no addresses.
    pub out_of_zone: u32,
    /// Zones one of whose servers never answers.
    pub dead: u32,
    /// Zones one of whose servers does not serve the zone.
    pub lame: u32,
    /// Zones one of whose servers does not know EDNS.
    pub without_edns: u32,
    /// Whether the last two top-level domains have hostile names ([`Attack`]). The last one is not
    /// signed then; nobody should ask for honest names below these two.
    pub is_hostile: bool,
    /// Whether servers have IPv6 addresses, too.
    pub has_ipv6: bool,
    /// Milliseconds that a server takes, drawn for each address.
    pub delay_ms: RangeInclusive<u32>,
    /// The time that signatures are made for, in seconds since 1970.
    pub unix_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            tlds: 200,
            zones: 100_000,
            network: 10,
            signed: 0,
            algorithms: vec![Algorithm::ECDSAP256SHA256],
            denial: Denial::Nsec,
            out_of_zone: 0,
            dead: 0,
            lame: 0,
            without_edns: 0,
            is_hostile: false,
            has_ipv6: true,
            delay_ms: 0..=0,
            unix_seconds: 0,
        }
    }
}

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It never answers.
    Dead,
    /// It refuses every question.
    Lame,
    /// It answers FORMERR to queries with EDNS.
    WithoutEdns,
}

/// A simulated internet.
#[derive(Debug)]
pub struct World {
    options: Options,
    keys: Mutex<Keys>,
    chains: Chains,
    root_keys: Mutex<RootKeys>,
    anchor: OnceLock<String>,
    /// What its servers were asked.
    pub counts: Counts,
}

/// What a number is drawn for: the same zone draws another one for each purpose.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Draw {
    Signed = 1,
    Algorithm,
    Denial,
    OutOfZone,
    Provider,
    Fault,
    FaultyServer,
    Delay,
    Address,
    Target,
    Ttl,
    Key,
    Servers,
}

/// Stirs a seed and two numbers (SplitMix64).
fn stir(seed: u64, one: u64, other: u64) -> u64 {
    let mut stirred = seed;
    for number in [one, other] {
        stirred = (stirred ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        stirred = (stirred ^ (stirred >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        stirred = (stirred ^ (stirred >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        stirred ^= stirred >> 31;
    }
    stirred
}

impl World {
    /// Makes an internet; nothing is signed before it is asked for.
    ///
    /// # Panics
    ///
    /// When the options have no zones, or more than there are names for.
    pub fn new(options: Options) -> Self {
        assert!((1..=1_000).contains(&options.tlds), "1 to 1,000 top-level domains");
        assert!((1..=1_000_000).contains(&options.zones), "1 to 1,000,000 zones");
        assert!(!options.algorithms.is_empty(), "an algorithm at least");
        Self {
            keys: Mutex::default(),
            chains: Chains::new(options.tlds),
            root_keys: Mutex::default(),
            anchor: OnceLock::new(),
            counts: Counts::default(),
            options,
        }
    }

    /// Returns what it was made of.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    fn draw(&self, what: Draw, of: u64) -> u64 {
        stir(self.options.seed, what as u64, of)
    }

    /// Draws whether something holds that holds for `share` of a thousand.
    fn holds(&self, what: Draw, of: u64, share: u32) -> bool {
        self.draw(what, of) % 1_000 < u64::from(share)
    }

    /// Returns whether a zone is signed. The root and top-level domains are if any zone is.
    pub fn is_signed(&self, zone: Zone) -> bool {
        match zone {
            Zone::Tld(tld) if self.options.is_hostile && tld + 1 == self.options.tlds => false,
            Zone::Root | Zone::Tld(_) => self.options.signed > 0,
            Zone::Leaf(number) => self.holds(Draw::Signed, u64::from(number), self.options.signed),
        }
    }

    fn algorithm(&self, zone: Zone) -> Algorithm {
        let all = &self.options.algorithms;
        let at = match zone {
            Zone::Root | Zone::Tld(_) => 0,
            Zone::Leaf(number) => self.draw(Draw::Algorithm, u64::from(number)) as usize % all.len(),
        };
        all.get(at).copied().unwrap_or(Algorithm::ECDSAP256SHA256)
    }

    /// Returns whether a zone denies with NSEC3.
    fn is_hashed(&self, zone: Zone) -> bool {
        match (zone, self.options.denial) {
            (Zone::Root, _) | (_, Denial::Nsec) => false,
            (_, Denial::Nsec3) => true,
            (zone, Denial::Mixed) => self.draw(Draw::Denial, zone.number()) & 1 == 1,
        }
    }

    fn providers(&self) -> u32 {
        (self.options.zones * PROVIDERS_PERCENT / 100).clamp(1, PROVIDERS_MAX)
    }

    /// Returns the zones whose servers serve a zone of which no server is within, in the order of
    /// its servers.
    fn providers_of(&self, leaf: u32) -> Option<[u32; 2]> {
        let providers = self.providers();
        let is_outside =
            leaf >= providers && self.holds(Draw::OutOfZone, leaf.into(), self.options.out_of_zone);
        is_outside.then(|| {
            let drawn = self.draw(Draw::Provider, leaf.into());
            [(drawn as u32) % providers, (drawn >> 32) as u32 % providers]
        })
    }

    /// Returns how many servers a zone has.
    fn server_count(&self, zone: Zone) -> u8 {
        match zone {
            Zone::Root | Zone::Tld(_) => SERVERS_ABOVE,
            Zone::Leaf(leaf) if self.providers_of(leaf).is_some() => 2,
            Zone::Leaf(leaf) => 2 + (self.draw(Draw::Servers, leaf.into()) & 1) as u8,
        }
    }

    /// Returns the name of a zone's server.
    fn server_name(&self, zone: Zone, server: u8) -> NameBuf {
        match zone {
            Zone::Leaf(leaf) => match self.providers_of(leaf) {
                Some(providers) => {
                    let provider = providers[usize::from(server) % 2];
                    self.below(&server_label(server), Zone::Leaf(provider))
                }
                None => self.below(&server_label(server), zone),
            },
            Zone::Root | Zone::Tld(_) => self.below(&server_label(server), zone),
        }
    }

    /// Returns where a server is that has its name in its own zone.
    fn server_address(&self, zone: Zone, server: u8) -> Ipv4Addr {
        Role { zone, server }.address(self.options.network)
    }

    /// Returns the IPv6 address of the same server.
    pub fn ipv6_of(address: Ipv4Addr) -> Ipv6Addr {
        let [.., b, c, d] = address.octets();
        Ipv6Addr::from(0xfd00_u128 << 112 | u128::from(u32::from_be_bytes([0, b, c, d])))
    }

    /// Returns which server an address is that of; `None` if nobody has it.
    pub fn role(&self, address: IpAddr) -> Option<Role> {
        let octets = match address {
            IpAddr::V4(address) => address.octets(),
            IpAddr::V6(address) => {
                let [.., b, c, d] = address.octets();
                [self.options.network, b, c, d]
            }
        };
        let role = Role::of(octets)?;
        let exists = match role.zone {
            Zone::Root => true,
            Zone::Tld(tld) => tld < self.options.tlds,
            Zone::Leaf(leaf) => leaf < self.options.zones && self.providers_of(leaf).is_none(),
        };
        (octets[0] == self.options.network && exists && role.server < self.server_count(role.zone))
            .then_some(role)
    }

    /// Returns what is wrong with a server. At most one server of a zone has a fault, and none of
    /// the root and of top-level domains.
    pub fn fault(&self, role: Role) -> Option<Fault> {
        let Zone::Leaf(leaf) = role.zone else { return None };
        let Options { dead, lame, without_edns, .. } = self.options;
        if dead + lame + without_edns == 0 {
            return None;
        }
        let drawn = (self.draw(Draw::Fault, leaf.into()) % 1_000) as u32;
        let faulty = self.draw(Draw::FaultyServer, leaf.into()) % u64::from(self.server_count(role.zone));
        if faulty != u64::from(role.server) {
            return None;
        }
        match drawn {
            _ if drawn < dead => Some(Fault::Dead),
            _ if drawn < dead + lame => Some(Fault::Lame),
            _ if drawn < dead + lame + without_edns => Some(Fault::WithoutEdns),
            _ => None,
        }
    }

    /// Returns how long a server takes to answer: as long over both families.
    pub fn delay(&self, role: Role) -> Duration {
        let (least, most) = (*self.options.delay_ms.start(), *self.options.delay_ms.end());
        if most == 0 {
            return Duration::ZERO;
        }
        let place = role.zone.number() << 8 | u64::from(role.server);
        let span = u64::from(most.saturating_sub(least)) + 1;
        Duration::from_millis(u64::from(least) + self.draw(Draw::Delay, place) % span)
    }

    /// Returns the name of a zone as text, without the final dot.
    pub fn zone_text(&self, leaf: u32) -> String {
        let apex = self.apex(Zone::Leaf(leaf));
        let labels = apex.as_name().labels().map(|label| String::from_utf8_lossy(label).into_owned());
        labels.collect::<Vec<_>>().join(".")
    }

    /// Returns the name of a zone as text.
    pub fn zone_name(&self, zone: Zone) -> String {
        self.apex(zone).to_string()
    }

    /// Returns where the servers of a zone are that have their names in it.
    pub fn servers(&self, zone: Zone) -> Vec<Ipv4Addr> {
        (0..self.server_count(zone)).map(|server| self.server_address(zone, server)).collect()
    }

    /// Returns the servers of the root, in the form of a hints file.
    pub fn hints(&self) -> String {
        let mut text = String::new();
        for server in 0..SERVERS_ABOVE {
            let address = self.server_address(Zone::Root, server);
            let name = String::from_utf8_lossy(&server_label(server)).into_owned();
            // Writing to a string cannot fail.
            let _ = writeln!(text, ".\t3600000\tIN\tNS\t{name}.");
            let _ = writeln!(text, "{name}.\t3600000\tIN\tA\t{address}");
            if self.options.has_ipv6 {
                let _ = writeln!(text, "{name}.\t3600000\tIN\tAAAA\t{}", Self::ipv6_of(address));
            }
        }
        text
    }

    /// Returns the root's DS in a line; `None` if the root is not signed.
    pub fn anchor(&self) -> Option<&str> {
        self.is_signed(Zone::Root).then(|| {
            self.anchor
                .get_or_init(|| {
                    let ds = self.ds(Zone::Root);
                    let digest = ds.get(4..).unwrap_or(&[]).iter().fold(String::new(), |mut text, octet| {
                        let _ = write!(text, "{octet:02X}");
                        text
                    });
                    let tag = u16::from_be_bytes(*ds.first_chunk().unwrap_or(&[0; 2]));
                    format!(".\t3600\tIN\tDS\t{tag} {} 2 {digest}\n", self.algorithm(Zone::Root).0)
                })
                .as_str()
        })
    }
}

#[cfg(test)]
mod tests;
