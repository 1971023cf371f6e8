//! Stale answers for clients that have waited long enough (RFC 8767 §5).

use engine::ops::split::{BranchReport, Worth};
use engine::{Reply, Verdict};
use timers::Moment;

use super::{Driver, To, room};
use crate::counters::WaitedFor;

impl Driver {
    /// Gives a client that waited long enough the stale answer at hand, or the query that waits for
    /// it as a branch; what is refreshed goes on as a prefetch.
    pub(super) fn give_stale(&self, waiter: u32, now: Moment) {
        let mut machine = self.machine.borrow_mut();
        let Some(asker) = machine.waiter(waiter) else { return };
        let is_late = self.is_late(asker, now);
        let mut parent = if let To::Split(key, _) = asker.to { Some(key) } else { None };
        // Ends: queries are inside of at most SPLITS_MAX splits. Whoever compares answers must not
        // get old ones, and the fetch still fills the cache.
        while let Some(key) = parent {
            let Some(asker) = machine.split_waiter(key).filter(|it| !it.suspended.compares_branches()) else {
                return;
            };
            parent = if let To::Split(key, _) = asker.to { Some(key) } else { None };
        }
        let Some(asker) = machine.waiter(waiter).filter(|_| !is_late) else { return };
        let mut buffer = self.reply.borrow_mut();
        let mut reply = Reply::new(room(&mut buffer, &asker.to));
        // If there is nothing stale after all, it goes on waiting.
        let verdict = self.worker.engine.borrow_mut().answer_stale(&mut asker.suspended, &mut reply);
        if !matches!(verdict, Verdict::Answered) {
            return;
        }
        self.board.counts.driver.impatient.bump();
        match std::mem::replace(&mut asker.to, To::Nobody) {
            To::Client(to) => {
                let transport = asker.suspended.client().transport;
                self.board.counts.waits.note(WaitedFor::Stale, transport, now.since(asker.since));
                machine.replied(waiter);
                drop(machine);
                self.deliver(&to, reply.bytes());
            }
            To::Split(key, branch) => {
                let report = reply.report().unwrap_or(BranchReport::empty(Worth::Nothing));
                machine.branch_ended(key, branch, report, reply.bytes(), now);
            }
            To::Nobody => {}
        }
    }
}
