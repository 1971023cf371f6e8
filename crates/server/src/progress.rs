//! What the log says while large sets and zones are made: about once a second, and at every
//! millionth entry of a list.

use std::cell::Cell;
use std::time::{Duration, Instant};

use environment::Telling;
use environment::{Loading, SetProgress};
use tracing::info;

/// Time before the first line of progress, and then between two lines.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// After so many entries of a list the log has a line, however quickly they were read.
const TELL_ENTRIES: usize = 1 << 20;

/// Says something at most so often.
pub struct Pace(Cell<Instant>);

impl Pace {
    /// Begins now.
    pub fn begin() -> Self {
        Self(Cell::new(Instant::now()))
    }

    /// Returns whether a line is due.
    pub fn is_time(&self) -> bool {
        let is_time = self.0.get().elapsed() >= TELL_EVERY;
        if is_time {
            self.0.set(Instant::now());
        }
        is_time
    }
}

/// Returns the machine, for a server: the log says how far sets are.
pub(crate) fn logged() -> Telling<impl Fn(&SetProgress<'_>)> {
    let pace = Pace::begin();
    Telling(move |progress: &SetProgress<'_>| {
        let is_milestone = progress.list.is_some() && progress.count.is_multiple_of(TELL_ENTRIES);
        if pace.is_time() || is_milestone {
            match progress.list {
                Some(file) if progress.what == Loading::Zone => {
                    info!(zone = progress.set, file, records = progress.count, "reading a zone");
                }
                Some(list) => info!(set = progress.set, list, entries = progress.count, "reading a list"),
                None if progress.what == Loading::Zone => info!(files = progress.count, "reading zones"),
                None => info!(set = progress.set, rules = progress.count, "putting a set together"),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_before_a_second_is_over() {
        assert!(!Pace::begin().is_time());
        let Some(earlier) = Instant::now().checked_sub(TELL_EVERY) else { return };
        let pace = Pace(Cell::new(earlier));
        assert!(pace.is_time() && !pace.is_time());
    }
}
