//! What is said while large sets and zones are made: about once a second, and by a server at every millionth entry of a
//! list.

use std::cell::Cell;
use std::time::{Duration, Instant};

use config::Telling;
use config::sets::{Loading, SetProgress};
use tracing::info;

use crate::out;

/// How long nothing is said at first, and then between two lines.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// After so many entries of a list the log has a line, however quickly they were read.
const TELL_ENTRIES: usize = 1 << 20;

/// Says something at most so often.
struct Pace(Cell<Instant>);

impl Pace {
    fn begin() -> Self {
        Self(Cell::new(Instant::now()))
    }

    /// Returns whether something may be said now.
    fn is_time(&self) -> bool {
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

/// Runs `f` with the machine, for a command: a line of the terminal says how far sets are, and is taken away at the end.
pub(crate) fn shown<T>(f: impl FnOnce(&dyn config::Surroundings) -> T) -> T {
    let pace = Pace::begin();
    let is_shown = Cell::new(false);
    let outcome = f(&Telling(|progress: &SetProgress<'_>| {
        if pace.is_time() {
            is_shown.set(true);
            out::overwrite(&out::escaped(&line(progress)));
        }
    }));
    if is_shown.get() {
        out::overwrite("");
    }
    outcome
}

fn line(progress: &SetProgress<'_>) -> String {
    let SetProgress { what, set, list, count } = *progress;
    match list {
        Some(file) if what == Loading::Zone => format!("zone {set}: {count} records of {file} read"),
        Some(list) => format!("set {set}: {count} entries of {list} read"),
        None if what == Loading::Zone => format!("{count} files of zones read"),
        None => format!("set {set}: {count} rules to put together"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_read_and_how_far_it_is() {
        let reading =
            SetProgress { what: Loading::Set, set: "ads", list: Some("/etc/ads.txt"), count: 65_536 };
        assert_eq!(line(&reading), "set ads: 65536 entries of /etc/ads.txt read");
        let zone = SetProgress { what: Loading::Zone, ..reading };
        assert_eq!(line(&zone), "zone ads: 65536 records of /etc/ads.txt read");
        assert_eq!(line(&SetProgress { list: None, ..zone }), "65536 files of zones read");
        let together = SetProgress { list: None, ..reading };
        assert_eq!(line(&together), "set ads: 65536 rules to put together");
    }

    #[test]
    fn nothing_is_said_before_a_second_is_over() {
        assert!(!Pace::begin().is_time());
        let Some(earlier) = Instant::now().checked_sub(TELL_EVERY) else { return };
        let pace = Pace(Cell::new(earlier));
        assert!(pace.is_time() && !pace.is_time());
    }
}
