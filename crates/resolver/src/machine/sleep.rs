//! Questions that were under way when the machine fell asleep.

use super::Resolver;
use crate::budget::Budget;
use crate::moment::Moment;

impl Resolver {
    /// The machine has slept: no server was asked in that time, and none was silent. Questions that
    /// are under way begin anew, with as much time and as many attempts as others have.
    pub fn wake(&mut self, now: Moment) {
        let Self { tasks, fetches, settings, .. } = self;
        for budget in tasks.iter_mut().filter_map(|(_, task)| task.budget.as_mut()) {
            *budget = Budget::new(&settings.limits, now);
        }
        for (_, fetch) in fetches {
            (fetch.sends_left, fetch.spent) = (settings.limits.sends_per_zone, None);
            fetch.servers.iter_mut().for_each(|server| server.asked = 0);
        }
    }
}
