//! What the log says while large sets and zones are made: about once a second, and at every
//! millionth entry of a list.

use environment::{Loading, Pace, SetProgress, Telling};
use tracing::info;

/// After so many entries of a list the log has a line, however quickly they were read.
const TELL_ENTRIES: usize = 1 << 20;

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
