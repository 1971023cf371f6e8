//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Noting the way of a query through its policy.

use super::explain::Recorder;
use super::trace::{Note, StepOutcome, Tracer};
use crate::answer::Security;
use crate::matchers::{Facts, Matcher};
use crate::program::shortlist::{Seek, Shortlist};
use events::{Listed, Mark, Path, list_number};

impl Tracer for Path {
    fn step(&mut self, at: u16, outcome: StepOutcome) {
        let mark = match outcome {
            StepOutcome::Done => Mark::Done,
            StepOutcome::Looked(Some(true)) => Mark::Hit,
            StepOutcome::Looked(Some(false)) => Mark::Stale,
            StepOutcome::Looked(None) => Mark::Missed,
            StepOutcome::Answered => Mark::Answered,
            StepOutcome::Ended => Mark::Ended,
            StepOutcome::Waits(_) => Mark::Waited,
        };
        self.push(at, mark);
    }

    fn test(&mut self, at: u16, matcher: &Matcher, facts: Facts<'_>, holds: bool) {
        self.push(at, if holds { Mark::Held } else { Mark::Failed });
        if holds {
            note_list(self, at, matcher, facts);
        }
    }

    /// One step for all the rules that it leaves out.
    fn skipped(&mut self, at: u16, _: (&Shortlist, Seek, u16), _: Facts<'_>) {
        self.push(at, Mark::Failed);
    }

    fn note(&mut self, _: Note) {}

    fn answered(&mut self, security: Security) {
        self.note_validation(security);
    }

    fn keep(&self) -> Option<Recorder> {
        None
    }

    fn path(&self) -> Option<&Path> {
        Some(self)
    }
}

/// Notes the line of a list that made a condition hold: most do not look at lists.
fn note_list(path: &mut Path, step: u16, matcher: &Matcher, facts: Facts<'_>) {
    let place = match matcher {
        Matcher::Qname(set) => set.find(&facts.request.sought).map(|found| found.place()),
        Matcher::Listed(list) | Matcher::Ruled(list) => {
            list.rule(&facts.asking()).map(|ruling| (ruling.source, ruling.line))
        }
        _ => None,
    };
    // What stands in the condition itself has no list.
    if let Some((label, line)) = place.filter(|(label, _)| *label != "condition") {
        path.note_listed(Listed { step, list: list_number(label), line });
    }
}
