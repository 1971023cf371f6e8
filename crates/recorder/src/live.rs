//! Watching queries as they are recorded.
//!
//! What is new is read from the files, so that a reader costs the recorder nothing, and one that
//! was away goes on where it was.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::days::Day;
use crate::read::{Reader, Recorded};
use crate::search::Wanted;

/// How often new records are looked for, at most.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long there may be nothing to say.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The most that all readers together take in one look; of more, the oldest are passed over. So
/// many readers cost no more than one does.
const TAKEN_MAX: usize = 4096;
/// What one takes at least, however many there are.
const TAKEN_MIN: usize = 64;
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
    /// Held by each reader; how many hold it is how many there are.
    readers: Arc<()>,
    /// When it looked last.
    looked: Option<Instant>,
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
    /// Returns what is recorded from now on, or behind `after`. Those who hold `readers`, beside
    /// its owner, share what may be taken in a look.
    ///
    /// # Errors
    ///
    /// The newest file cannot be read.
    pub fn new(reader: Reader, wanted: Wanted, after: Option<i64>, readers: Arc<()>) -> Result<Self, String> {
        let last = match after {
            Some(after) => after,
            None => reader.last_id()?,
        };
        let before = Before::of(&reader, Day::split(last).0);
        Ok(Self { reader, wanted, told: VecDeque::new(), readers, looked: None, last, before })
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

    /// Returns how many records it may take in a look.
    fn share(&self) -> u32 {
        let readers = Arc::strong_count(&self.readers).saturating_sub(1).max(1);
        (TAKEN_MAX / readers).max(TAKEN_MIN) as u32
    }

    /// Takes what was recorded behind one record, up to another; returns whether it could be read.
    fn look_between(&mut self, last: i64, newest: i64) -> bool {
        if newest <= last {
            return true;
        }
        let wanted = Wanted {
            count: self.share(),
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
            let is_time = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
            if self.told.is_empty() && is_time {
                self.look();
                self.looked = Some(Instant::now());
            }
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            if begin.elapsed() >= SILENCE_MAX {
                return Some(Told::Nothing);
            }
            let since = self.looked.map_or(Duration::ZERO, |looked| looked.elapsed());
            // tidy: allow(sleep): a reader waits for what others have recorded
            std::thread::sleep(LOOK_EVERY.saturating_sub(since));
        }
    }
}
