//! Watching queries as they are recorded.
//!
//! What is new is read from the files, so that a reader costs the recorder nothing, and one that
//! was away goes on where it was.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

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
        Ok(Self { reader, wanted, told: VecDeque::new(), last })
    }

    /// Takes what is new.
    pub(super) fn look(&mut self) {
        // What cannot be read now can perhaps be the next time.
        let Ok(newest) = self.reader.last_id() else { return };
        if newest <= self.last {
            return;
        }
        let wanted = Wanted {
            count: BEHIND_MAX,
            after_id: Some(self.last),
            before_id: Some(newest.saturating_add(1)),
            time: Some(LOOK_TIME),
            ..self.wanted.clone()
        };
        let Ok(page) = self.reader.search(&wanted) else { return };
        if let Some(cursor) = page.cursor {
            let missed = self.reader.count_between(self.last, cursor);
            self.told.extend((missed > 0).then_some(Told::Missed(missed)));
        }
        let mut queries = page.queries;
        queries.sort_by_key(|query| query.id);
        self.told.extend(queries.into_iter().map(|query| Told::Query(Box::new(query))));
        self.last = newest;
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
