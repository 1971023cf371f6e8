//! Which address of a zone's servers is asked.

use cache::servers::Facts;
use rand::{Rng, RngExt};

use crate::addresses::Family;
use crate::moment::Moment;

/// One query in so many goes to an address that would not have been asked, to measure it, if a
/// better one than that which would be asked were worth it.
const EXPLORE_EVERY: u32 = 32;
/// One in so many of these goes to an address that was measured before: it may have become better.
const MEASURE_AGAIN_EVERY: u32 = 8;
/// Microseconds within which two servers are as good as each other.
const SLACK_US: u32 = 5000;
/// Microseconds within which a server answers that nobody has to be better than.
const QUICK_US: u32 = 10_000;
/// Microseconds for which a family may be silent before it counts as down.
const FAMILY_DOWN_US: u64 = 5_000_000;
/// Microseconds between attempts with a family that is down.
const FAMILY_PROBE_US: u64 = 1_000_000;

/// An address that may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its place in the caller's list.
    pub(crate) at: usize,
    /// What is known of it.
    pub(crate) facts: Option<Facts>,
    /// What asking it is expected to take, its silence weighed in.
    pub(crate) score_us: u32,
    /// How often it was asked this question already.
    pub(crate) asked: u8,
    /// Whether it is known not to serve the zone.
    pub(crate) is_lame: bool,
    /// Whether it was silent a short time ago.
    pub(crate) is_barred: bool,
    pub(crate) family: Family,
}

impl Candidate {
    /// Returns whether it is known how long it takes to answer.
    fn is_measured(&self) -> bool {
        self.facts.is_some_and(|facts| facts.round_trip.is_some())
    }

    /// Returns how far down the list it stands whatever its score. One that was silent a moment ago
    /// comes after a second attempt with one that was not, and before a third.
    const fn rank(&self) -> u16 {
        let lame = if self.is_lame { 1 << 10 } else { 0 };
        lame + 2 * self.asked as u16 + if self.is_barred { 3 } else { 0 }
    }
}

/// Who is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Place of the address that is asked.
    pub(crate) at: usize,
    /// What is known of it.
    pub(crate) facts: Option<Facts>,
    /// The same of one that is asked in its place, to measure it.
    pub(crate) explored: Option<(usize, Option<Facts>)>,
}

/// Chooses among those that are about as good as the best. At random, so that who wants to forge a
/// reply has to guess the address, too.
///
/// `late` is the family of an address that was asked and is late: the other one is preferred then,
/// since a network may have lost one family and not the other. Otherwise `usual` is.
pub(crate) fn choose(
    candidates: &[Candidate],
    late: Option<Family>,
    usual: Option<Family>,
    rng: &mut impl Rng,
) -> Option<Choice> {
    let rank = candidates.iter().map(Candidate::rank).min()?;
    let ranked = |family: Option<Family>| {
        candidates.iter().filter(move |candidate| {
            candidate.rank() == rank && family.is_none_or(|family| candidate.family == family)
        })
    };
    let preferred = late.map(Family::other).or(usual);
    let preferred = preferred.filter(|&family| ranked(Some(family)).next().is_some());
    let best_us = ranked(preferred).map(|candidate| candidate.score_us).min()?;
    let enough_us = best_us.saturating_add(best_us / 10 * 3).saturating_add(SLACK_US);
    let good = ranked(preferred).filter(|candidate| candidate.score_us <= enough_us);
    let &chosen = pick(good, rng)?;
    // Nobody is much better than who answers at once, and of a zone that is asked for the first
    // time one server is measured anyway.
    let is_worth_it = chosen.is_measured() && chosen.score_us > QUICK_US;
    let is_exploring = is_worth_it && late.is_none() && rng.random_range(0..EXPLORE_EVERY) == 0;
    let measures_again = is_exploring && rng.random_range(0..MEASURE_AGAIN_EVERY) == 0;
    let others = candidates.iter().filter(|other| {
        // Who was silent is asked again when that weighs less, not in the place of others.
        let was_silent = other.facts.is_some_and(|facts| facts.silences > 0);
        let is_good = other.asked == 0 && !other.is_lame && !other.is_barred && !was_silent;
        let is_preferred = preferred.is_none_or(|family| other.family == family);
        other.at != chosen.at && is_good && is_preferred && (measures_again || !other.is_measured())
    });
    let explored = if is_exploring { pick(others, rng) } else { None };
    Some(Choice {
        at: chosen.at,
        facts: chosen.facts,
        explored: explored.map(|other| (other.at, other.facts)),
    })
}

/// Returns one of them, each as likely as the others.
fn pick<'c>(candidates: impl Iterator<Item = &'c Candidate>, rng: &mut impl Rng) -> Option<&'c Candidate> {
    let mut picked = None;
    for (count, candidate) in (1_u32..).zip(candidates) {
        if rng.random_range(0..count) == 0 {
            picked = Some(candidate);
        }
    }
    picked
}

/// Whether the network carries each family.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Families([FamilyState; 2]);

#[derive(Clone, Copy, Debug, Default)]
struct FamilyState {
    heard_at: Option<Moment>,
    /// When the first query left since anybody was heard.
    silent_since: Option<Moment>,
    probed_at: Option<Moment>,
}

impl Families {
    const fn state(&self, family: Family) -> &FamilyState {
        let [v4, v6] = &self.0;
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    const fn state_mut(&mut self, family: Family) -> &mut FamilyState {
        let [v4, v6] = &mut self.0;
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    /// A query left.
    pub(crate) fn sent(&mut self, family: Family, now: Moment) {
        let is_down = self.is_down(family, now);
        let state = self.state_mut(family);
        state.silent_since.get_or_insert(now);
        if is_down {
            state.probed_at = Some(now);
        }
    }

    /// Somebody answered.
    pub(crate) fn heard(&mut self, family: Family, now: Moment) {
        *self.state_mut(family) = FamilyState { heard_at: Some(now), ..FamilyState::default() };
    }

    /// Returns whether nobody of this family has answered for seconds although some were asked,
    /// while the other family works.
    pub(crate) fn is_down(&self, family: Family, now: Moment) -> bool {
        self.state(family).silent_since.is_some_and(|since| {
            let other = self.state(family.other()).heard_at;
            now.since_us(since) >= FAMILY_DOWN_US && other.is_some_and(|heard_at| heard_at > since)
        })
    }

    /// Returns whether a family that is down should be tried again.
    pub(crate) fn wants_probe(&self, family: Family, now: Moment) -> bool {
        self.is_down(family, now)
            && self.state(family).probed_at.is_none_or(|at| now.since_us(at) >= FAMILY_PROBE_US)
    }

    /// Returns whether anybody was heard after a moment: if not, the silence may be our own
    /// network's.
    pub(crate) fn heard_after(&self, moment: Moment) -> bool {
        self.0.iter().any(|state| state.heard_at.is_some_and(|heard_at| heard_at > moment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::NowMs;
    use cache::servers::{ServerLimits, Servers};
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use wire::HashKey;

    fn candidate(at: usize, score_ms: u32) -> Candidate {
        let family = if at.is_multiple_of(2) { Family::V4 } else { Family::V6 };
        let score_us = score_ms * 1000;
        Candidate { at, facts: None, score_us, asked: 0, is_lame: false, is_barred: false, family }
    }

    /// Returns one of which it is known how long it takes.
    fn measured(at: usize, score_ms: u32) -> Candidate {
        let servers = Servers::new(ServerLimits { lines: 8, cookies: 0 }, HashKey::new([1, 2]));
        let address = ([192, 0, 2, 1], 53).into();
        servers.record_round_trip(address, score_ms * 1000);
        Candidate { facts: servers.look(address, NowMs(0)), ..candidate(at, score_ms) }
    }

    /// Returns how often each place was chosen, and how often explored, of 3,200 times.
    fn counts(candidates: &[Candidate], late: Option<Family>) -> (Vec<u32>, Vec<u32>) {
        let mut rng = StdRng::seed_from_u64(7);
        let (mut chosen, mut explored) = (vec![0; candidates.len()], vec![0; candidates.len()]);
        for _ in 0..3200 {
            let choice = choose(candidates, late, None, &mut rng).expect("there are candidates");
            chosen[choice.at] += 1;
            if let Some((at, _)) = choice.explored {
                assert_ne!(at, choice.at);
                explored[at] += 1;
            }
        }
        (chosen, explored)
    }

    #[test]
    fn all_that_are_nearly_the_best_are_asked_alike() {
        let candidates = [measured(0, 20), measured(1, 31), measured(2, 30), candidate(3, 200)];
        let (chosen, explored) = counts(&candidates, None);
        assert!(chosen[..3].iter().all(|&count| (960..1170).contains(&count)), "{chosen:?}");
        assert_eq!(chosen[3], 0);
        assert!((60..140).contains(&explored[3]), "3 % go to who was never measured, too: {explored:?}");
        let again: u32 = explored[..3].iter().sum();
        assert!((1..40).contains(&again), "few go to others: {explored:?}");
    }

    #[test]
    fn nobody_is_measured_beside_who_is_quick_or_new() {
        for first in [measured(0, 4), candidate(0, 20)] {
            let (chosen, explored) = counts(&[first, candidate(1, 200)], None);
            assert_eq!((chosen, explored), (vec![3200, 0], vec![0, 0]));
        }
    }

    #[test]
    fn who_was_not_asked_yet_goes_first_and_who_is_lame_last() {
        let first = |candidates: &[Candidate]| {
            choose(candidates, None, None, &mut StdRng::seed_from_u64(1)).map(|choice| choice.at)
        };
        let [a, b] = [candidate(0, 10), candidate(1, 500)];
        assert_eq!(first(&[a, b]), Some(0));
        assert_eq!(first(&[Candidate { asked: 1, ..a }, b]), Some(1));
        assert_eq!(first(&[Candidate { is_lame: true, ..a }, Candidate { asked: 9, ..b }]), Some(1));
        assert_eq!(first(&[Candidate { is_barred: true, ..a }, b]), Some(1));
        assert_eq!(first(&[Candidate { is_barred: true, ..a }, Candidate { asked: 1, ..b }]), Some(1));
        assert_eq!(first(&[Candidate { is_barred: true, ..a }, Candidate { asked: 2, ..b }]), Some(0));
        assert_eq!(first(&[]), None);
    }

    #[test]
    fn silence_of_all_keeps_nobody_from_being_asked() {
        let all = [0, 1, 2].map(|at| Candidate { is_barred: true, ..candidate(at, 400) });
        let (chosen, explored) = counts(&all, None);
        assert!(chosen.iter().all(|&count| count > 900) && explored.iter().all(|&count| count == 0));
    }

    #[test]
    fn after_a_late_family_the_other_one_is_asked() {
        let both = [candidate(0, 10), candidate(1, 300)];
        assert_eq!(counts(&both, Some(Family::V4)).0, [0, 3200]);
        assert_eq!(counts(&both, Some(Family::V6)).0, [3200, 0]);
        assert_eq!(counts(&both[..1], Some(Family::V4)).0, [3200], "if it can be");
    }

    #[test]
    fn a_preferred_family_is_asked_before_a_quicker_one_until_it_is_late() {
        let first = |candidates: &[Candidate], late| {
            let mut rng = StdRng::seed_from_u64(1);
            choose(candidates, late, Some(Family::V4), &mut rng).map(|choice| choice.at)
        };
        let [v4, v6] = [candidate(0, 300), candidate(1, 10)];
        assert_eq!(first(&[v4, v6], None), Some(0));
        assert_eq!(first(&[v4, v6], Some(Family::V4)), Some(1), "it is late");
        assert_eq!(first(&[Candidate { asked: 1, ..v4 }, v6], None), Some(1), "it was asked");
        assert_eq!(first(&[v6], None), Some(1), "there is no other");
    }

    #[test]
    fn a_family_is_down_when_only_the_other_one_answers() {
        let mut families = Families::default();
        let second = |seconds: u64| Moment(seconds * 1_000_000);
        for at in 1..=5 {
            families.sent(Family::V4, second(at));
            families.sent(Family::V6, second(at));
            assert!(!families.is_down(Family::V6, second(at)));
        }
        assert!(!families.is_down(Family::V6, second(60)), "silence of everybody is our own");
        families.heard(Family::V4, second(6));
        assert!(families.is_down(Family::V6, second(6)) && !families.is_down(Family::V4, second(60)));
        assert!(families.wants_probe(Family::V6, second(6)));
        families.sent(Family::V6, second(6));
        assert!(!families.wants_probe(Family::V6, Moment(6_999_999)));
        assert!(families.wants_probe(Family::V6, second(7)));
        families.heard(Family::V6, second(8));
        assert!(!families.is_down(Family::V6, second(60)));
        assert!(families.heard_after(second(7)) && !families.heard_after(second(8)));
    }
}
