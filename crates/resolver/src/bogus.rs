//! Questions whose answers were bogus a short time ago.
//!
//! For a while nobody is asked and nothing is checked again; it doubles each time (RFC 4035 §4.7,
//! RFC 9520 §3.2).

use std::collections::{HashMap, VecDeque};

use crate::failure::Failure;
use crate::heap_name::HeapQuestion;
use crate::moment::Moment;

/// Questions that are remembered.
const QUESTIONS_MAX: usize = 4096;
/// Seconds for which an answer is not asked for again that was bogus for the first time.
const FIRST_SECONDS: u32 = 5;
/// The same at most.
const MOST_SECONDS: u32 = 60;

struct Known {
    failure: Failure,
    seconds: u32,
    ends_at: Moment,
}

/// What one worker found bogus.
#[derive(Default)]
pub(crate) struct BogusAnswers {
    known: HashMap<HeapQuestion, Known>,
    /// Questions in the order in which they were first noted.
    order: VecDeque<HeapQuestion>,
}

impl BogusAnswers {
    /// Returns what is wrong with the answer, if that was found a short time ago.
    pub(crate) fn look(&self, question: &HeapQuestion, now: Moment) -> Option<&Failure> {
        let known = self.known.get(question).filter(|known| now < known.ends_at)?;
        Some(&known.failure)
    }

    /// Notes that an answer is bogus.
    pub(crate) fn note(&mut self, question: &HeapQuestion, failure: &Failure, now: Moment) {
        let before = self.known.get(question);
        // What was right for as long as it may be wrong begins anew.
        let recent = before.filter(|known| now < known.ends_at.after_ms(MOST_SECONDS * 1000));
        let seconds = recent.map_or(FIRST_SECONDS, |known| (known.seconds * 2).min(MOST_SECONDS));
        let ends_at = now.after_ms(seconds * 1000);
        let known = Known { failure: failure.clone(), seconds, ends_at };
        if self.known.insert(question.clone(), known).is_none() {
            self.order.push_back(question.clone());
        }
        while self.order.len() > QUESTIONS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Defect, Reason};
    use crate::heap_name::HeapName;
    use wire::{NameBuf, Rtype};

    fn question(text: &str) -> HeapQuestion {
        let name = NameBuf::from_text(text).expect("a name");
        HeapQuestion { name: HeapName::new(name.as_name()), rtype: Rtype::A, unchecked: false }
    }

    #[test]
    fn the_time_doubles_up_to_a_minute() {
        let failure = Failure::without_zone(Reason::Bogus(Defect::NoKeys));
        let (mut bogus, mut now) = (BogusAnswers::default(), Moment(0));
        for seconds in [5, 10, 20, 40, 60, 60] {
            bogus.note(&question("example.org"), &failure, now);
            assert_eq!(bogus.look(&question("example.org"), now), Some(&failure));
            now = now.after_ms(seconds * 1000);
            assert_eq!(bogus.look(&question("example.org"), now), None, "{seconds}");
        }
        now = now.after_ms(60_000);
        bogus.note(&question("example.org"), &failure, now);
        assert_eq!(bogus.look(&question("example.org"), now.after_ms(5000)), None);
    }

    #[test]
    fn the_oldest_go_first() {
        let failure = Failure::without_zone(Reason::Bogus(Defect::NoKeys));
        let mut bogus = BogusAnswers::default();
        for number in 0..=QUESTIONS_MAX {
            bogus.note(&question(&format!("n{number}.example.org")), &failure, Moment(0));
        }
        assert_eq!(bogus.known.len(), QUESTIONS_MAX);
        assert_eq!(bogus.look(&question("n0.example.org"), Moment(0)), None);
        assert!(bogus.look(&question("n1.example.org"), Moment(0)).is_some());
    }
}
