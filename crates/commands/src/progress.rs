//! What a terminal says while large sets and zones are made, about once a second.

use std::cell::Cell;

use environment::{Loading, Pace, SetProgress, Telling};

use crate::out;

/// Runs `f` with the machine, for a command: a line of the terminal says how far sets are, and is
/// taken away at the end.
pub fn shown<T>(f: impl FnOnce(&dyn environment::Environment) -> T) -> T {
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
}
