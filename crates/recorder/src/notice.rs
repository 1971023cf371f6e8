//! The warning that queries come faster than they are recorded: once a minute at most.

use std::time::{Duration, Instant};

/// How often the warning is logged at most.
const EVERY: Duration = Duration::from_secs(60);

/// What the log has of dropped records.
#[derive(Default)]
pub(super) struct Notice {
    /// Of all that were dropped, those that the log has.
    told: u64,
    next: Option<Instant>,
}

impl Notice {
    /// Returns how many were dropped since the last line in the log, if the next one is due:
    /// `dropped` is how many there are in all.
    pub(super) fn due(&mut self, now: Instant, dropped: u64) -> Option<u64> {
        let since = dropped.saturating_sub(self.told);
        if since == 0 || self.next.is_some_and(|next| now < next) {
            return None;
        }
        (self.told, self.next) = (dropped, Some(now + EVERY));
        Some(since)
    }

    /// Leaves out `records` that another line of the log accounts for.
    pub(super) const fn leave_out(&mut self, records: u64) {
        self.told += records;
    }

    /// Returns when there will be something to say, if nothing else happens.
    pub(super) fn at(&self, dropped: u64) -> Option<Instant> {
        self.next.filter(|_| dropped > self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_at_once_and_then_once_a_minute_with_all_since() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut notice = Notice::default();
        assert_eq!((notice.due(at(0), 0), notice.at(0)), (None, None));
        assert_eq!(notice.due(at(1), 10), Some(10));
        assert_eq!((notice.due(at(2), 500), notice.due(at(60), 900)), (None, None));
        assert_eq!(notice.at(900), Some(at(61)));
        assert_eq!(notice.due(at(61), 900), Some(890));
        assert_eq!((notice.due(at(200), 900), notice.at(900)), (None, None), "nothing since");
        notice.leave_out(50);
        assert_eq!((notice.due(at(300), 950), notice.due(at(300), 951)), (None, Some(1)));
    }
}
