//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which servers of a group get a query.

use std::net::{IpAddr, SocketAddr};

use rand::{Rng, RngExt};
use timers::Moment;
use wire::{HashKey, Name};

use exchange::ServerKey;
use plan::upstreams::Pick;

/// Servers one query goes to at once, whatever `race(n)` says.
pub(crate) const RACE_MAX: usize = 8;
/// One query in this many also goes to a server that would not have been asked, to measure it.
const EXPLORE_EVERY: u32 = 32;

/// One server that may be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) server: ServerKey,
    pub(crate) weight: u16,
    pub(crate) is_up: bool,
    /// Expected time to an answer, or with [`Pick::Hashed`] the [`distance`] from the name; lower
    /// is better, zero is unknown.
    pub(crate) score: u64,
    /// When it was last heard.
    pub(crate) heard: Moment,
}

/// The servers that get a query at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    list: [ServerKey; RACE_MAX],
    len: usize,
    /// Asked besides, only to measure it.
    pub(crate) explored: Option<ServerKey>,
    /// Whether all are down: one attempt, then the query fails.
    pub(crate) is_last_resort: bool,
}

impl Chosen {
    fn push(&mut self, server: ServerKey) {
        if let Some(room) = self.list.get_mut(self.len) {
            *room = server;
            self.len += 1;
        }
    }

    /// Returns the chosen servers, the best first.
    pub(crate) fn as_slice(&self) -> &[ServerKey] {
        self.list.get(..self.len).unwrap_or(&[])
    }
}

/// Returns how far a server is from a name: of a group, the nearest one is asked (rendezvous
/// hashing). The share of the names that a server is nearest to is its share of the weights, and no
/// name moves between two servers when a third comes or goes. Nothing about it is secret: every
/// worker, and every server of ours with the same group, comes to the same end.
pub(crate) fn distance(name: Name<'_>, server: SocketAddr, weight: u16) -> u64 {
    let address = match server.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    // Each server hashes names with a key of its own.
    let key = HashKey::new([address as u64, (address >> 64) as u64 ^ u64::from(server.port())]);
    let hash = key.hash_name(name);
    // The first of exponentially distributed times, whose rates are the weights.
    let share = ((hash >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    (-share.ln() / f64::from(weight.max(1)) * (1_u64 << 32) as f64) as u64
}

/// Chooses whom to ask first. Empty only if there are no candidates.
pub(crate) fn first(pick: Pick, candidates: &[Candidate], rng: &mut impl Rng) -> Chosen {
    let mut chosen = Chosen::default();
    let up = || candidates.iter().filter(|candidate| candidate.is_up);
    if up().next().is_none() {
        chosen.is_last_resort = true;
        if let Some(server) = least_bad(candidates) {
            chosen.push(server);
        }
        return chosen;
    }
    match pick {
        Pick::Ordered => up().take(1).for_each(|candidate| chosen.push(candidate.server)),
        Pick::Fastest | Pick::Hashed => {
            if let Some(best) = up().min_by_key(|candidate| candidate.score) {
                chosen.push(best.server);
            }
            if pick == Pick::Fastest {
                explore(&mut chosen, candidates, rng);
            }
        }
        Pick::Balanced => {
            let total: u32 = up().map(weight).sum();
            let mut left = rng.random_range(0..total.max(1));
            for candidate in up() {
                if left < weight(candidate) {
                    chosen.push(candidate.server);
                    break;
                }
                left -= weight(candidate);
            }
        }
        Pick::Race(width) | Pick::PreferPositive { width, .. } | Pick::Consensus { width, .. } => {
            let width = usize::from(width).clamp(1, RACE_MAX);
            // Selection by repeated minimum: width and groups are small.
            while chosen.len < width {
                let next = up()
                    .filter(|candidate| !chosen.as_slice().contains(&candidate.server))
                    .min_by_key(|candidate| candidate.score);
                match next {
                    Some(next) => chosen.push(next.server),
                    None => break,
                }
            }
            explore(&mut chosen, candidates, rng);
        }
    }
    chosen
}

/// Chooses whom to ask next among those that were not asked yet; servers that are down only if
/// `down_too`.
pub(crate) fn next(pick: Pick, untried: &[Candidate], down_too: bool) -> Option<ServerKey> {
    let mut up = untried.iter().filter(|candidate| candidate.is_up);
    let best = match pick {
        Pick::Ordered => up.next(),
        Pick::Fastest
        | Pick::Balanced
        | Pick::Hashed
        | Pick::Race(_)
        | Pick::PreferPositive { .. }
        | Pick::Consensus { .. } => up.min_by_key(|candidate| candidate.score),
    };
    match best {
        Some(best) => Some(best.server),
        None if down_too => least_bad(untried),
        None => None,
    }
}

/// Returns the server that was heard most recently; among those never heard, the first.
fn least_bad(candidates: &[Candidate]) -> Option<ServerKey> {
    let mut best: Option<&Candidate> = None;
    for candidate in candidates {
        if best.is_none_or(|best| candidate.heard > best.heard) {
            best = Some(candidate);
        }
    }
    best.map(|best| best.server)
}

fn weight(candidate: &Candidate) -> u32 {
    u32::from(candidate.weight.max(1))
}

/// Now and then adds a server that was not chosen.
fn explore(chosen: &mut Chosen, candidates: &[Candidate], rng: &mut impl Rng) {
    if candidates.len() <= chosen.len || !rng.next_u32().is_multiple_of(EXPLORE_EVERY) {
        return;
    }
    let others =
        || candidates.iter().filter(|other| other.is_up && !chosen.as_slice().contains(&other.server));
    let count = others().count();
    if count > 0 {
        chosen.explored = others().nth(rng.random_range(0..count)).map(|other| other.server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn candidate(upstream: u32, is_up: bool, score: u64) -> Candidate {
        Candidate { server: ServerKey(upstream), weight: 1, is_up, score, heard: Moment(u64::from(upstream)) }
    }

    fn rng() -> StdRng {
        StdRng::seed_from_u64(7)
    }

    #[test]
    fn ordered_takes_the_first_that_is_up() {
        let group = [candidate(1, false, 1), candidate(2, true, 900), candidate(3, true, 1)];
        assert_eq!(first(Pick::Ordered, &group, &mut rng()).as_slice(), [ServerKey(2)]);
        assert_eq!(next(Pick::Ordered, &group[2..], false), Some(ServerKey(3)));
        assert_eq!(next(Pick::Ordered, &group[..1], false), None);
        assert_eq!(next(Pick::Ordered, &group[..1], true), Some(ServerKey(1)));
    }

    #[test]
    fn a_race_takes_the_fastest_ones_that_are_up() {
        let group =
            [candidate(1, true, 30), candidate(2, true, 10), candidate(3, false, 0), candidate(4, true, 20)];
        assert_eq!(first(Pick::Race(2), &group, &mut rng()).as_slice(), [2, 4].map(ServerKey));
        assert_eq!(first(Pick::Race(9), &group, &mut rng()).as_slice(), [2, 4, 1].map(ServerKey));
        assert_eq!(first(Pick::Race(0), &group, &mut rng()).as_slice(), [ServerKey(2)]);
    }

    #[test]
    fn fastest_also_measures_the_others_now_and_then() {
        let group = [candidate(1, true, 30), candidate(2, true, 10), candidate(3, true, 20)];
        let mut rng = rng();
        let mut explored = [0; 4];
        for _ in 0..3200 {
            let chosen = first(Pick::Fastest, &group, &mut rng);
            assert_eq!(chosen.as_slice(), [ServerKey(2)], "measuring never replaces the best");
            if let Some(other) = chosen.explored {
                explored[other.0 as usize] += 1;
            }
        }
        assert_eq!(explored[2], 0);
        assert!(explored[1] > 20 && explored[3] > 20 && explored[1] + explored[3] < 200, "{explored:?}");
    }

    #[test]
    fn balance_follows_the_weights() {
        let mut group = [candidate(0, true, 1), candidate(1, true, 1), candidate(2, false, 1)];
        group[1].weight = 3;
        let mut rng = rng();
        let mut seen = [0; 3];
        for _ in 0..4000 {
            seen[first(Pick::Balanced, &group, &mut rng).as_slice()[0].0 as usize] += 1;
        }
        assert!(seen[0] > 800 && seen[0] < 1200 && seen[2] == 0, "{seen:?}");
    }

    #[test]
    fn a_name_belongs_to_one_server_and_few_names_move() {
        let name = |number: u32| wire::NameBuf::from_text(&format!("www{number}.example")).expect("a name");
        let at = |server: u32| SocketAddr::from(([192, 0, 2, server as u8], 53));
        let nearest = |name: &wire::NameBuf, servers: &[(u32, u16)], down: u32| {
            let group: Vec<Candidate> = servers
                .iter()
                .map(|&(server, weight)| Candidate {
                    weight,
                    ..candidate(server, server != down, distance(name.as_name(), at(server), weight))
                })
                .collect();
            first(Pick::Hashed, &group, &mut rng()).as_slice()[0].0
        };
        let (all, fewer) = ([(1, 1), (2, 2), (3, 1)], [(1, 1), (2, 2)]);
        let mut seen = [0; 4];
        for number in 0..4000 {
            let name = name(number);
            let at = nearest(&name, &all, 0);
            seen[at as usize] += 1;
            assert_eq!(at, nearest(&name, &[all[2], all[0], all[1]], 0), "the order does not count");
            if at != 3 {
                assert_eq!(at, nearest(&name, &fewer, 0), "only the names of the one that goes move");
                assert_eq!(at, nearest(&name, &all, 3), "nor does another that is down count");
            }
        }
        assert!(seen[1] > 850 && seen[1] < 1150 && seen[2] > 1850 && seen[2] < 2150, "{seen:?}");
        let (lower, upper) = (wire::NameBuf::from_text("a.example"), wire::NameBuf::from_text("A.EXAMPLE"));
        let of = |name: wire::NameBuf| distance(name.as_name(), at(1), 1);
        assert_eq!(of(lower.expect("a name")), of(upper.expect("a name")));
    }

    #[test]
    fn when_all_are_down_the_one_heard_last_gets_one_attempt() {
        let group = [candidate(1, false, 5), candidate(9, false, 50), candidate(4, false, 1)];
        for pick in [Pick::Ordered, Pick::Race(3), Pick::Fastest, Pick::Balanced] {
            let chosen = first(pick, &group, &mut rng());
            assert_eq!((chosen.as_slice(), chosen.is_last_resort), (&[ServerKey(9)][..], true));
        }
        assert_eq!(first(Pick::Ordered, &[], &mut rng()).as_slice(), []);
    }
}
