//! Questions that had no answer a short time ago (RFC 9520).
//!
//! For a while nobody is asked and nothing is checked again; it doubles each time (RFC 9520 §3.2,
//! RFC 4035 §4.7). That a zone's servers were silent or broken must not hide that they are back.
//! While nothing good is heard of them, one question is let through every two seconds, and the
//! first good reply makes all of these failures forgotten.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::budget::Limit;
use crate::failure::{Failure, Reason};
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;

/// Questions that are remembered.
const QUESTIONS_MAX: usize = 4096;
/// Zones of theirs whose state is.
const ZONES_MAX: usize = 1024;
/// Seconds for which a question is not asked again that failed for the first time.
const FIRST_SECONDS: u32 = 1;
/// The same if the answer was bogus: that is rarely mended at once, and costs more to find out.
const FIRST_SECONDS_BOGUS: u32 = 5;
/// The most for these.
const MOST_SECONDS_BOGUS: u32 = 60;
/// Microseconds between two questions that find out whether the servers of a zone are back.
const TRIAL_US: u64 = 2_000_000;

struct Known {
    failure: Failure,
    /// None since it had an answer.
    seconds: u32,
    noted_at: Moment,
    ends_at: Moment,
    /// Whether the zone answered other questions between this failure and the one before.
    is_own: bool,
}

/// A zone that something failed in.
#[derive(Default)]
struct ZoneState {
    /// When a good reply came last.
    good_at: Option<Moment>,
    /// When a question was let through last.
    tried_at: Option<Moment>,
}

/// What is remembered of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory<'a> {
    /// Nothing that counts any more.
    Nothing,
    /// It failed, and whether that still is so is to be found out with it.
    Trial,
    /// It failed.
    Failed(&'a Failure),
}

/// What one worker found to fail.
#[derive(Default)]
pub(crate) struct Failures {
    questions: Bounded<HeapQuestion, Known>,
    zones: Bounded<HeapName, ZoneState>,
}

impl Failures {
    /// Returns what is remembered of a question. What is done within a trial (`is_trial`) finds
    /// out for itself what it needs.
    pub(crate) fn look(&mut self, question: &HeapQuestion, is_trial: bool, now: Moment) -> Memory<'_> {
        let Self { questions, zones } = self;
        if questions.known.is_empty() {
            return Memory::Nothing;
        }
        let known = questions.get(question).filter(|known| known.seconds > 0 && now < known.ends_at);
        let Some(known) = known else { return Memory::Nothing };
        if !may_recover(known.failure.reason) {
            return Memory::Failed(&known.failure);
        }
        if is_trial {
            return Memory::Nothing;
        }
        let zone = known.failure.zone.as_ref().and_then(|zone| zones.get_mut(zone));
        match zone {
            _ if known.is_own => Memory::Failed(&known.failure),
            Some(zone) if zone.good_at.is_some_and(|at| at >= known.noted_at) => Memory::Nothing,
            Some(zone) if zone.is_due(known.noted_at, now) => {
                zone.tried_at = Some(now);
                Memory::Trial
            }
            // Others have taken its place: the question finds out for itself.
            None if now.since_us(known.noted_at) >= TRIAL_US => Memory::Trial,
            Some(_) | None => Memory::Failed(&known.failure),
        }
    }

    /// Notes that a question failed, which is then remembered for `seconds_max` at most.
    pub(crate) fn note(&mut self, question: &HeapQuestion, failure: &Failure, seconds_max: u32, now: Moment) {
        let (first, most) = match failure.reason {
            Reason::Bogus(_) => (FIRST_SECONDS_BOGUS, MOST_SECONDS_BOGUS),
            _ => (FIRST_SECONDS.min(seconds_max), seconds_max),
        };
        let before = self.questions.get(question).filter(|known| known.seconds > 0);
        let is_own = match &failure.zone {
            Some(zone) => {
                let good_at = self.zones.get_or_default(zone, ZONES_MAX).good_at;
                before.is_some_and(|known| good_at.is_some_and(|at| at > known.noted_at))
            }
            None => true,
        };
        // What was right for as long as it may be wrong begins anew.
        let recent = before.filter(|known| now < known.ends_at.after_ms(most.saturating_mul(1000)));
        let seconds = recent.map_or(first, |known| known.seconds.saturating_mul(2).min(most));
        let ends_at = now.after_ms(seconds.saturating_mul(1000));
        let known = Known { failure: failure.clone(), seconds, noted_at: now, ends_at, is_own };
        self.questions.insert(question, known, QUESTIONS_MAX);
    }

    /// Notes that the servers of a zone gave a good reply.
    pub(crate) fn heard_good(&mut self, zone: &HeapName, now: Moment) {
        if let Some(state) = self.zones.get_mut(zone) {
            state.good_at = Some(now);
        }
    }

    /// Notes that a question has an answer: its next failure is the first.
    pub(crate) fn answered(&mut self, question: &HeapQuestion) {
        if !self.questions.known.is_empty()
            && let Some(known) = self.questions.get_mut(question)
        {
            known.seconds = 0;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl ZoneState {
    fn is_due(&self, noted_at: Moment, now: Moment) -> bool {
        let since = self.tried_at.map_or(noted_at, |at| at.max(noted_at));
        now.since_us(since) >= TRIAL_US
    }
}

/// Returns whether such a failure may be over as soon as servers answer again.
const fn may_recover(reason: Reason) -> bool {
    match reason {
        Reason::Silent
        | Reason::Lame
        | Reason::Faulty
        | Reason::NoAddress
        | Reason::Limit(Limit::Time | Limit::Sends) => true,
        Reason::Circle
        | Reason::AliasLoop
        | Reason::Limit(_)
        | Reason::Unsupported
        | Reason::Bogus(_)
        | Reason::Sentinel => false,
    }
}

/// A map of so many entries at most, from which the oldest go first.
struct Bounded<K, V> {
    known: HashMap<K, V>,
    /// In the order in which they were first noted.
    order: VecDeque<K>,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash, V> Bounded<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.known.get(key)
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.known.get_mut(key)
    }

    fn insert(&mut self, key: &K, value: V, most: usize) {
        if self.known.insert(key.clone(), value).is_none() {
            self.order.push_back(key.clone());
        }
        while self.order.len() > most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn get_or_default(&mut self, key: &K, most: usize) -> &mut V
    where
        V: Default,
    {
        if !self.known.contains_key(key) {
            self.insert(key, V::default(), most);
        }
        self.known.entry(key.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Defect;
    use wire::{NameBuf, Rtype};

    fn name(text: &str) -> HeapName {
        HeapName::new(NameBuf::from_text(text).expect("a name").as_name())
    }

    fn question(text: &str) -> HeapQuestion {
        HeapQuestion { name: name(text), rtype: Rtype::A, unchecked: false }
    }

    fn silent() -> Failure {
        Failure::of_zone(Reason::Silent, name("org"))
    }

    fn second(seconds: u32) -> Moment {
        Moment(0).after_ms(seconds * 1000)
    }

    #[test]
    fn the_time_doubles_up_to_a_minute_for_what_is_bogus() {
        let failure = Failure::without_zone(Reason::Bogus(Defect::NoKeys));
        let (mut failures, mut now) = (Failures::default(), Moment(0));
        for seconds in [5, 10, 20, 40, 60, 60] {
            failures.note(&question("example.org"), &failure, 30, now);
            let known = failures.look(&question("example.org"), false, now);
            assert_eq!(known, Memory::Failed(&failure));
            now = now.after_ms(seconds * 1000);
            assert_eq!(failures.look(&question("example.org"), false, now), Memory::Nothing, "{seconds}");
        }
        now = now.after_ms(60_000);
        failures.note(&question("example.org"), &failure, 30, now);
        let known = failures.look(&question("example.org"), false, now.after_ms(5000));
        assert_eq!(known, Memory::Nothing);
    }

    #[test]
    fn the_time_doubles_up_to_what_is_set_for_what_the_zone_answers_beside() {
        let (mut failures, mut now) = (Failures::default(), Moment(0));
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            failures.heard_good(&name("org"), now);
            now = now.after_us(1);
            failures.note(&question("example.org"), &silent(), 30, now);
            failures.heard_good(&name("org"), now.after_us(1));
            now = now.after_ms(seconds * 1000).after_us(2);
            let before = failures.look(&question("example.org"), false, Moment(now.0 - 1000));
            // The first time it may have been that of all questions to the zone.
            let expected = silent();
            assert_eq!(before, if seconds == 1 { Memory::Nothing } else { Memory::Failed(&expected) });
            assert_eq!(failures.look(&question("example.org"), false, now), Memory::Nothing, "{seconds}");
        }
        failures.answered(&question("example.org"));
        failures.note(&question("example.org"), &silent(), 30, now);
        assert_eq!(failures.look(&question("example.org"), false, now.after_ms(1000)), Memory::Nothing);
    }

    #[test]
    fn one_question_in_two_seconds_finds_out_whether_a_zone_is_back() {
        let mut failures = Failures::default();
        for (at, text) in (0..).zip(["a.org", "b.org", "c.org"]) {
            for _ in 0..6 {
                failures.note(&question(text), &silent(), 30, Moment(at));
            }
        }
        let mut trials = Vec::new();
        for tenth in 0..100 {
            let now = Moment(10).after_ms(tenth * 100);
            for text in ["a.org", "b.org", "c.org"] {
                if failures.look(&question(text), false, now) == Memory::Trial {
                    assert_eq!(failures.look(&question("b.org"), true, now), Memory::Nothing, "within it");
                    failures.note(&question(text), &silent(), 30, now);
                    trials.push(tenth);
                }
            }
        }
        assert_eq!(trials, [20, 40, 60, 80]);
        failures.heard_good(&name("org"), second(11));
        for text in ["a.org", "b.org", "c.org"] {
            assert_eq!(failures.look(&question(text), false, second(11)), Memory::Nothing, "{text}");
        }
    }

    #[test]
    fn limits_that_time_does_not_heal_are_not_tried() {
        let failure = Failure { reason: Reason::Limit(Limit::Glueless), ..silent() };
        let mut failures = Failures::default();
        for _ in 0..6 {
            failures.note(&question("a.org"), &failure, 30, Moment(0));
        }
        assert_eq!(failures.look(&question("a.org"), false, second(29)), Memory::Failed(&failure));
        assert_eq!(failures.look(&question("a.org"), true, second(29)), Memory::Failed(&failure));
        assert_eq!(failures.look(&question("a.org"), false, second(30)), Memory::Nothing);
    }

    #[test]
    fn the_oldest_go_first() {
        let mut failures = Failures::default();
        for number in 0..=QUESTIONS_MAX {
            let zone = name(&format!("n{number}.example.org"));
            let failure = Failure::of_zone(Reason::Silent, zone);
            failures.note(&question(&format!("n{number}.example.org")), &failure, 30, Moment(0));
        }
        assert_eq!(failures.questions.known.len(), QUESTIONS_MAX);
        assert_eq!(failures.zones.known.len(), ZONES_MAX);
        let mut look = |text: &str| failures.look(&question(text), false, Moment(0)) == Memory::Nothing;
        assert!(look("n0.example.org") && !look("n1.example.org"));
        // A zone that is not remembered hides no recovery either.
        for _ in 0..3 {
            let failure = Failure::of_zone(Reason::Silent, name("zone.org"));
            failures.note(&question("late.zone.org"), &failure, 30, Moment(0));
        }
        (0..ZONES_MAX).for_each(|number| {
            let failure = Failure::of_zone(Reason::Silent, name(&format!("z{number}.example.org")));
            failures.note(&question("other.example.org"), &failure, 30, Moment(0));
        });
        assert_eq!(failures.look(&question("late.zone.org"), false, second(2)), Memory::Trial);
    }
}
