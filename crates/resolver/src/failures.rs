//! Questions that had no answer a short time ago (RFC 9520).
//!
//! For a while nobody is asked and nothing is checked again; it doubles each time (RFC 9520 §3.2,
//! RFC 4035 §4.7). That a zone's servers were silent or broken must not hide that they are back.
//! While nothing good is heard of them, one question is let through every two seconds, and the
//! first good reply makes all of these failures forgotten.
//!
//! All workers share what failed, in parts with a lock each, so that a question costs its failure
//! once and not once for each worker. While nothing has failed, no lock is taken.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::budget::Limit;
use crate::failure::{Failure, Reason};
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;

/// Parts that have a lock each.
const PARTS: usize = 16;
/// Questions that each of them remembers.
const QUESTIONS_MAX: usize = 256;
/// Zones of theirs whose state each of them does.
const ZONES_MAX: usize = 64;
/// Seconds for which a question is not asked again that failed for the first time.
const FIRST_SECONDS: u32 = 1;
/// The same if the answer was bogus: that is rarely mended at once, and costs more to find out.
const FIRST_SECONDS_BOGUS: u32 = 5;
/// Microseconds between two questions that find out whether the servers of a zone are back.
const TRIAL_US: u64 = 2_000_000;

#[derive(Clone)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Nothing that counts any more.
    Nothing,
    /// It failed, and whether that still is so is to be found out with it.
    Trial,
    /// It failed.
    Failed(Failure),
}

/// Questions that failed a short time ago, for all workers.
pub struct Failures {
    questions: Box<[Mutex<Bounded<HeapQuestion, Known>>]>,
    zones: Box<[Mutex<Bounded<HeapName, ZoneState>>]>,
    /// Whether anything may be in there.
    has_any: AtomicBool,
    hasher: RandomState,
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            questions: (0..PARTS).map(|_| Mutex::default()).collect(),
            zones: (0..PARTS).map(|_| Mutex::default()).collect(),
            has_any: AtomicBool::new(false),
            hasher: RandomState::new(),
        }
    }
}

impl Failures {
    /// Returns what is remembered of a question. What is done within a trial (`is_trial`) finds
    /// out for itself what it needs.
    pub(crate) fn look(&self, question: &HeapQuestion, is_trial: bool, now: Moment) -> Memory {
        if !self.has_any() {
            return Memory::Nothing;
        }
        let known = self.part(&self.questions, question).get(question).cloned();
        let Some(known) = known.filter(|known| known.seconds > 0 && now < known.ends_at) else {
            return Memory::Nothing;
        };
        if !may_recover(known.failure.reason) {
            return Memory::Failed(known.failure);
        }
        if is_trial {
            return Memory::Nothing;
        }
        if known.is_own {
            return Memory::Failed(known.failure);
        }
        let mut part = known.failure.zone.as_ref().map(|zone| self.part(&self.zones, zone));
        let zone = part.as_mut().zip(known.failure.zone.as_ref()).and_then(|(part, zone)| part.get_mut(zone));
        match zone {
            Some(zone) if zone.good_at.is_some_and(|at| at >= known.noted_at) => Memory::Nothing,
            Some(zone) if zone.is_due(known.noted_at, now) => {
                zone.tried_at = Some(now);
                Memory::Trial
            }
            // Others have taken its place: the question finds out for itself.
            None if now.since_us(known.noted_at) >= TRIAL_US => Memory::Trial,
            Some(_) | None => Memory::Failed(known.failure.clone()),
        }
    }

    /// Notes that a question failed, which is then remembered for `seconds_max` at most. Workers
    /// that find out the same at the same time count as one; a trial counts again.
    pub(crate) fn note(
        &self,
        question: &HeapQuestion,
        failure: &Failure,
        seconds_max: u32,
        is_trial: bool,
        now: Moment,
    ) {
        let (first, most) = match failure.reason {
            Reason::Bogus(_) => (FIRST_SECONDS_BOGUS.min(seconds_max), seconds_max),
            _ => (FIRST_SECONDS.min(seconds_max), seconds_max),
        };
        self.has_any.store(true, Ordering::Relaxed);
        let good_at = failure
            .zone
            .as_ref()
            .and_then(|zone| self.part(&self.zones, zone).get_or_default(zone, ZONES_MAX).good_at);
        let mut questions = self.part(&self.questions, question);
        let before = questions.get(question).filter(|known| known.seconds > 0);
        let has_recovered =
            |known: &Known| failure.zone.is_some() && good_at.is_some_and(|at| at > known.noted_at);
        let is_own = failure.zone.is_none() || before.is_some_and(has_recovered);
        // What was right for as long as it may be wrong begins anew.
        let recent = before.filter(|known| now < known.ends_at.after_ms(most.saturating_mul(1000)));
        let seconds = recent.map_or(first, |known| {
            let is_another = is_trial || now >= known.ends_at || has_recovered(known);
            let seconds = if is_another { known.seconds.saturating_mul(2) } else { known.seconds };
            seconds.min(most)
        });
        let ends_at = now.after_ms(seconds.saturating_mul(1000));
        let known = Known { failure: failure.clone(), seconds, noted_at: now, ends_at, is_own };
        questions.insert(question, known, QUESTIONS_MAX);
    }

    /// Notes that the servers of a zone gave a good reply.
    pub(crate) fn heard_good(&self, zone: &HeapName, now: Moment) {
        if self.has_any()
            && let Some(state) = self.part(&self.zones, zone).get_mut(zone)
        {
            state.good_at = Some(now);
        }
    }

    /// Notes that a question has an answer: its next failure is the first.
    pub(crate) fn answered(&self, question: &HeapQuestion) {
        if self.has_any()
            && let Some(known) = self.part(&self.questions, question).get_mut(question)
        {
            known.seconds = 0;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        if self.has_any() {
            self.questions.iter().for_each(|part| *locked(part) = Bounded::default());
            self.zones.iter().for_each(|part| *locked(part) = Bounded::default());
        }
    }

    fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Relaxed)
    }

    /// Returns the part that a key is in. Nobody holds two of a kind.
    fn part<'p, K: Hash, V>(
        &self,
        parts: &'p [Mutex<Bounded<K, V>>],
        key: &K,
    ) -> MutexGuard<'p, Bounded<K, V>> {
        locked(&parts[self.hasher.hash_one(key) as usize % PARTS])
    }
}

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
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
        | Reason::NotLoaded
        | Reason::Unsupported
        | Reason::Bogus(_)
        | Reason::Sentinel
        | Reason::Stopped => false,
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
        HeapQuestion { name: name(text), rtype: Rtype::A, unchecked: false, subnet: None }
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
        let (failures, mut now) = (Failures::default(), Moment(0));
        for seconds in [5, 10, 20, 40, 60, 60] {
            failures.note(&question("example.org"), &failure, 60, false, now);
            let known = failures.look(&question("example.org"), false, now);
            assert_eq!(known, Memory::Failed(failure.clone()));
            now = now.after_ms(seconds * 1000);
            assert_eq!(failures.look(&question("example.org"), false, now), Memory::Nothing, "{seconds}");
        }
        now = now.after_ms(60_000);
        failures.note(&question("example.org"), &failure, 30, false, now);
        let known = failures.look(&question("example.org"), false, now.after_ms(5000));
        assert_eq!(known, Memory::Nothing);
    }

    #[test]
    fn the_time_doubles_up_to_what_is_set_for_what_the_zone_answers_beside() {
        let (failures, mut now) = (Failures::default(), Moment(0));
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            failures.heard_good(&name("org"), now);
            now = now.after_us(1);
            failures.note(&question("example.org"), &silent(), 30, false, now);
            failures.heard_good(&name("org"), now.after_us(1));
            now = now.after_ms(seconds * 1000).after_us(2);
            let before = failures.look(&question("example.org"), false, Moment(now.0 - 1000));
            // The first time it may have been that of all questions to the zone.
            assert_eq!(before, if seconds == 1 { Memory::Nothing } else { Memory::Failed(silent()) });
            assert_eq!(failures.look(&question("example.org"), false, now), Memory::Nothing, "{seconds}");
        }
        failures.answered(&question("example.org"));
        failures.note(&question("example.org"), &silent(), 30, false, now);
        assert_eq!(failures.look(&question("example.org"), false, now.after_ms(1000)), Memory::Nothing);
    }

    #[test]
    fn one_question_in_two_seconds_finds_out_whether_a_zone_is_back() {
        let failures = Failures::default();
        for (at, text) in (0..).zip(["a.org", "b.org", "c.org"]) {
            for _ in 0..6 {
                failures.note(&question(text), &silent(), 30, true, Moment(at));
            }
        }
        let mut trials = Vec::new();
        for tenth in 0..100 {
            let now = Moment(10).after_ms(tenth * 100);
            for text in ["a.org", "b.org", "c.org"] {
                if failures.look(&question(text), false, now) == Memory::Trial {
                    assert_eq!(failures.look(&question("b.org"), true, now), Memory::Nothing, "within it");
                    failures.note(&question(text), &silent(), 30, true, now);
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
        let failures = Failures::default();
        for _ in 0..6 {
            failures.note(&question("a.org"), &failure, 30, true, Moment(0));
        }
        assert_eq!(failures.look(&question("a.org"), false, second(29)), Memory::Failed(failure.clone()));
        assert_eq!(failures.look(&question("a.org"), true, second(29)), Memory::Failed(failure.clone()));
        assert_eq!(failures.look(&question("a.org"), false, second(30)), Memory::Nothing);
    }

    #[test]
    fn workers_that_find_out_the_same_at_once_count_as_one() {
        let failures = Failures::default();
        for at in 0..8 {
            failures.note(&question("a.org"), &silent(), 30, false, Moment(at));
        }
        let look = |ms| failures.look(&question("a.org"), false, Moment(7).after_ms(ms));
        assert_eq!((look(999), look(1000)), (Memory::Failed(silent()), Memory::Nothing));
    }

    #[test]
    fn the_oldest_go_first() {
        let failures = Failures::default();
        let numbers = || (0..3 * PARTS * QUESTIONS_MAX).map(|number| format!("n{number}.example.org"));
        for text in numbers() {
            let failure = Failure::of_zone(Reason::Silent, name(&text));
            failures.note(&question(&text), &failure, 30, false, Moment(0));
        }
        let questions = failures.questions.iter().map(|part| locked(part).known.len());
        assert!(questions.into_iter().all(|count| count == QUESTIONS_MAX));
        let zones = failures.zones.iter().map(|part| locked(part).known.len());
        assert!(zones.into_iter().all(|count| count == ZONES_MAX));
        let is_known = |text: &String| failures.look(&question(text), false, Moment(0)) != Memory::Nothing;
        assert!(!numbers().take(PARTS * QUESTIONS_MAX).any(|text| is_known(&text)));
        assert!(numbers().next_back().is_some_and(|text| is_known(&text)));
        // A zone that is not remembered hides no recovery either.
        for _ in 0..3 {
            let failure = Failure::of_zone(Reason::Silent, name("zone.org"));
            failures.note(&question("late.zone.org"), &failure, 30, true, Moment(0));
        }
        (0..3 * PARTS * ZONES_MAX).for_each(|number| {
            let failure = Failure::of_zone(Reason::Silent, name(&format!("z{number}.example.org")));
            failures.note(&question("other.example.org"), &failure, 30, false, Moment(0));
        });
        assert_eq!(failures.look(&question("late.zone.org"), false, second(2)), Memory::Trial);
    }
}
