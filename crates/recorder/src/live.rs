//! Watching queries as they are recorded.
//!
//! What is new is read from the files, so that a reader costs the recorder nothing, and one that
//! was away goes on where it was.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::days::Day;
use crate::read::{Reader, Recorded};
use crate::search::Wanted;

/// How often new records are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long there may be nothing to say.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The most that a reader may be behind: of more, the oldest are passed over.
const BEHIND_MAX: u32 = 4096;
/// How long one look goes on.
const LOOK_TIME: Duration = Duration::from_millis(250);
/// How long after a change of day rows of the day before are looked for: workers hand over theirs
/// in batches.
const LATE_MAX: Duration = Duration::from_secs(10);

/// What a reader hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A query was recorded.
    Query(Box<Recorded>),
    /// So many records were passed over.
    Missed(u64),
    /// Nothing has come for some seconds.
    Nothing,
}

/// One reader of the live log. Each turn waits until there is something, or for some seconds.
pub struct Live {
    reader: Reader,
    wanted: Wanted,
    told: VecDeque<Told>,
    /// What was recorded until here was looked at.
    last: i64,
    /// The same of the day before, as long as late rows may come.
    before: Option<Before>,
}

/// The day before.
struct Before {
    last: i64,
    until: Instant,
}

impl Live {
    /// Returns what is recorded from now on, or behind `after`.
    ///
    /// # Errors
    ///
    /// The newest file cannot be read.
    pub fn new(reader: Reader, wanted: Wanted, after: Option<i64>) -> Result<Self, String> {
        let last = match after {
            Some(after) => after,
            None => reader.last_id()?,
        };
        let before = Before::of(&reader, Day::split(last).0);
        Ok(Self { reader, wanted, told: VecDeque::new(), last, before })
    }

    /// Returns what was taken, one after the other.
    #[cfg(test)]
    pub(super) fn told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Takes what is new.
    pub(super) fn look(&mut self) {
        // What cannot be read now can perhaps be the next time.
        let Ok(newest) = self.reader.last_id() else { return };
        let day = Day::split(newest).0;
        if day > Day::split(self.last).0 {
            self.before = Before::of(&self.reader, day);
            if let Some(last) = self.before.as_ref().map(|before| before.last) {
                if !self.look_between(self.last, last) {
                    return;
                }
                self.last = day.global(0);
            }
        } else if self.before.as_ref().is_some_and(|before| before.until <= Instant::now()) {
            self.before = None;
        } else if let Some(last) = self.before.as_ref().map(|before| before.last)
            && let Some(late) = self.reader.last_id_on(Day::split(last).0)
            && self.look_between(last, late)
            && let Some(before) = &mut self.before
        {
            before.last = late;
        }
        if self.look_between(self.last, newest) {
            // Also back: the file was removed, and perhaps begun anew.
            self.last = newest;
        }
    }

    /// Takes what was recorded behind one record, up to another; returns whether it could be read.
    fn look_between(&mut self, last: i64, newest: i64) -> bool {
        if newest <= last {
            return true;
        }
        let wanted = Wanted {
            count: BEHIND_MAX,
            after_id: Some(last),
            before_id: Some(newest.saturating_add(1)),
            time: Some(LOOK_TIME),
            ..self.wanted.clone()
        };
        let Ok(page) = self.reader.search(&wanted) else { return false };
        if let Some(cursor) = page.cursor {
            let missed = self.reader.count_between(last, cursor);
            self.told.extend((missed > 0).then_some(Told::Missed(missed)));
        }
        let mut queries = page.queries;
        queries.sort_by_key(|query| query.id);
        self.told.extend(queries.into_iter().map(|query| Told::Query(Box::new(query))));
        true
    }
}

impl Before {
    /// Returns what is to be looked at from now on before a day.
    fn of(reader: &Reader, day: Day) -> Option<Self> {
        let last = reader.last_id_on(Day(day.0 - 1)).filter(|_| day.0 > 1)?;
        Some(Self { last, until: Instant::now() + LATE_MAX })
    }
}

impl Iterator for Live {
    type Item = Told;

    fn next(&mut self) -> Option<Told> {
        let begin = Instant::now();
        loop {
            if self.told.is_empty() {
                self.look();
            }
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            if begin.elapsed() >= SILENCE_MAX {
                return Some(Told::Nothing);
            }
            // tidy: allow(sleep): a reader waits for what others have recorded
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
