//! Which address of a zone's servers is asked.

use rand::{Rng, RngExt};

use crate::addresses::Family;
use crate::moment::Moment;

/// One query in so many also goes to an address that would not have been asked, to measure it.
const EXPLORE_EVERY: u32 = 32;
/// Microseconds within which two servers are as good as each other.
const SLACK_US: u32 = 5000;
/// Microseconds for which a family may be silent before it counts as down.
const FAMILY_DOWN_US: u64 = 5_000_000;
/// Microseconds between attempts with a family that is down.
const FAMILY_PROBE_US: u64 = 1_000_000;

/// An address that may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its place in the caller's list.
    pub(crate) at: usize,
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
    /// Place of one that is asked besides, only to measure it.
    pub(crate) explored: Option<usize>,
}

/// Chooses among those that are about as good as the best. At random, so that who wants to forge a
/// reply has to guess the address, too.
///
/// `late` is the family of an address that was asked and is late: the other one is preferred then,
/// since a network may have lost one family and not the other.
pub(crate) fn choose(candidates: &[Candidate], late: Option<Family>, rng: &mut impl Rng) -> Option<Choice> {
    let rank = candidates.iter().map(Candidate::rank).min()?;
    let ranked = |family: Option<Family>| {
        candidates.iter().filter(move |candidate| {
            candidate.rank() == rank && family.is_none_or(|family| candidate.family == family)
        })
    };
    let preferred = late.map(Family::other).filter(|&family| ranked(Some(family)).next().is_some());
    let best_us = ranked(preferred).map(|candidate| candidate.score_us).min()?;
    let enough_us = best_us.saturating_add(best_us / 10 * 3).saturating_add(SLACK_US);
    let good = ranked(preferred).filter(|candidate| candidate.score_us <= enough_us);
    let at = pick(good, rng)?.at;
    let is_exploring = late.is_none() && rng.random_range(0..EXPLORE_EVERY) == 0;
    let others = candidates
        .iter()
        .filter(|other| other.at != at && other.asked == 0 && !other.is_lame && !other.is_barred);
    Some(Choice { at, explored: if is_exploring { pick(others, rng).map(|other| other.at) } else { None } })
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
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn candidate(at: usize, score_ms: u32) -> Candidate {
        let family = if at.is_multiple_of(2) { Family::V4 } else { Family::V6 };
        Candidate { at, score_us: score_ms * 1000, asked: 0, is_lame: false, is_barred: false, family }
    }

    /// Returns how often each place was chosen, and how often explored, of 3,200 times.
    fn counts(candidates: &[Candidate], late: Option<Family>) -> (Vec<u32>, Vec<u32>) {
        let mut rng = StdRng::seed_from_u64(7);
        let (mut chosen, mut explored) = (vec![0; candidates.len()], vec![0; candidates.len()]);
        for _ in 0..3200 {
            let choice = choose(candidates, late, &mut rng).expect("there are candidates");
            chosen[choice.at] += 1;
            if let Some(at) = choice.explored {
                assert_ne!(at, choice.at);
                explored[at] += 1;
            }
        }
        (chosen, explored)
    }

    #[test]
    fn all_that_are_nearly_the_best_are_asked_alike() {
        let candidates = [candidate(0, 20), candidate(1, 31), candidate(2, 30), candidate(3, 200)];
        let (chosen, explored) = counts(&candidates, None);
        assert!(chosen[..3].iter().all(|&count| (960..1170).contains(&count)), "{chosen:?}");
        assert_eq!(chosen[3], 0);
        assert!((60..140).contains(&explored.iter().sum::<u32>()), "3 % are explored besides: {explored:?}");
        assert!(explored[3] > 10);
    }

    #[test]
    fn who_was_not_asked_yet_goes_first_and_who_is_lame_last() {
        let first = |candidates: &[Candidate]| {
            choose(candidates, None, &mut StdRng::seed_from_u64(1)).map(|choice| choice.at)
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
