//! Updates that are refused for a reason that concerns many: the log has the
//! first at once, and once a minute the number of the others.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use wire::NameBuf;

use crate::lock::lock;

/// How often the log has their number.
pub(crate) const REPORT_EVERY: Duration = Duration::from_secs(60);

/// What is known of them.
pub(crate) struct Refused {
    /// What became of each.
    what: &'static str,
    untold: Mutex<Untold>,
}

#[derive(Default)]
struct Untold {
    /// One was reported since the last [`Refused::report`] that had nothing to say.
    is_told: bool,
    count: u64,
    /// Zone and reason of the last one.
    last: Option<(NameBuf, String)>,
}

impl Refused {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, untold: Mutex::default() }
    }

    /// Notes an update, and why it was refused.
    pub(crate) fn note(&self, apex: &NameBuf, error: &dyn fmt::Display) {
        let mut untold = lock(&self.untold);
        if !std::mem::replace(&mut untold.is_told, true) {
            tracing::error!(zone = %apex, %error, "{}", self.what);
            return;
        }
        untold.count += 1;
        untold.last = Some((*apex, error.to_string()));
    }

    /// Logs how many there were. Called once every [`REPORT_EVERY`]; returns how many it logged.
    pub(crate) fn report(&self) -> u64 {
        let mut untold = lock(&self.untold);
        let count = std::mem::take(&mut untold.count);
        untold.is_told = count > 0;
        let Some((apex, error)) = untold.last.take() else { return 0 };
        drop(untold);
        tracing::warn!(count, zone = %apex, error, "within a minute, so many times more: {}", self.what);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refused_update_is_told_at_once_and_the_others_by_their_number() {
        let apex = NameBuf::from_text("example.org").expect("a name");
        let refused = Refused::new("an update is refused: it cannot be kept");
        assert_eq!(refused.report(), 0);
        for _ in 0..490 {
            refused.note(&apex, &"no space left");
        }
        assert_eq!(refused.report(), 489);
        // The next minute: none is reported at once.
        refused.note(&apex, &"no space left");
        assert_eq!((refused.report(), refused.report()), (1, 0));
        // After a minute without any, the first is reported at once again.
        refused.note(&apex, &"no space left");
        assert_eq!(refused.report(), 0);
    }
}
