//! How many handshakes there may be: each costs as much as a hundred answers.

use std::net::IpAddr;
use std::sync::Arc;

use crate::allowances::{Allowances, Allowed};
use crate::refusals::{Refusal, Refusals};
use plan::listeners::TcpPlan;

/// Counts handshakes, for all workers.
#[derive(Debug)]
pub(crate) struct Handshakes {
    allowances: Allowances,
    plan: TcpPlan,
    refusals: Arc<Refusals>,
}

impl Handshakes {
    pub(crate) fn new(plan: &TcpPlan, refusals: &Arc<Refusals>) -> Self {
        let allowances = Allowances::new(plan, plan.handshakes_per_second);
        Self { allowances, plan: *plan, refusals: Arc::clone(refusals) }
    }

    /// Takes one; false when the client, or all together, had as many as they may.
    pub(crate) fn admit(&self, client: IpAddr, now_ms: u64) -> bool {
        match self.allowances.take(client, now_ms) {
            Allowed::Yes => true,
            Allowed::Nobody => false,
            Allowed::NotThisClient => {
                self.refusals.note(self.plan.client(client), Refusal::Handshake);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_are_limited_per_client_and_in_all() {
        let plan = TcpPlan {
            handshakes_per_second: 30,
            handshakes_per_client: 20,
            handshakes_burst: 20,
            ..TcpPlan::default()
        };
        let refusals = Arc::new(Refusals::default());
        let handshakes = Handshakes::new(&plan, &refusals);
        let admitted = |last: u8, now_ms| {
            let client = IpAddr::from([192, 0, 2, last]);
            (0..100).filter(|_| handshakes.admit(client, now_ms)).count()
        };
        assert_eq!(admitted(1, 5000), 20);
        let report = refusals.take().expect("some were refused because of the client's own limit");
        assert_eq!(report.client, plan.client([192, 0, 2, 1].into()));
        assert_eq!((report.refused.handshakes, report.refused.connections), (80, 0));
        assert_eq!(admitted(2, 5000), 10, "what is left of all");
        assert_eq!(admitted(3, 5000), 0);
        assert!(admitted(3, 6000) >= 20, "a second later");
    }

    #[test]
    fn everybody_in_an_office_connects_at_once_and_then_at_the_usual_rate() {
        let plan = TcpPlan { handshakes_per_second: 16_000, ..TcpPlan::default() };
        let handshakes = Handshakes::new(&plan, &Arc::default());
        let admitted = |now_ms| (0..2000).filter(|_| handshakes.admit([192, 0, 2, 1].into(), now_ms)).count();
        assert_eq!(admitted(5000), 1000);
        assert_eq!(admitted(6000), 200);
    }
}
