//! How many connections of clients go with the descriptors that the process may have.
//!
//! Whoever takes the last descriptor takes it from the sockets to upstreams: then nothing is looked
//! up any more, for nobody.

use config::Listening;
use plan::listeners::Plan;
use tracing::warn;

/// Descriptors of the process besides those that are counted here: log, control socket, metrics,
/// files.
const OTHERS: u64 = 64;
/// Descriptors of a worker besides its sockets.
const OF_A_WORKER: u64 = 4;

/// Descriptors of a worker for upstreams that a reload may bring.
const UPSTREAM_MIN: usize = 64;

/// The workers, and what each needs for its upstreams.
#[derive(Clone, Copy)]
pub(super) struct Workers {
    count: u64,
    upstream_max: u64,
    /// Descriptors for connections of operators.
    operators: u64,
}

impl Workers {
    /// Returns so many workers, each with so many descriptors for upstreams.
    pub(super) fn new(count: usize, upstream_descriptors: usize) -> Self {
        Self {
            count: count as u64,
            upstream_max: upstream_descriptors.max(UPSTREAM_MIN) as u64,
            operators: 0,
        }
    }

    /// Returns them beside so many connections of operators.
    pub(super) const fn beside(mut self, operators: usize) -> Self {
        self.operators = operators as u64;
        self
    }

    /// Returns the most descriptors that all of them use for upstreams.
    const fn upstream_max(self) -> u64 {
        self.count * self.upstream_max
    }
}

/// Returns how many descriptors `plan` would like to have.
pub(super) fn wanted(listening: &Listening, workers: Workers) -> u64 {
    let plan = &listening.plan;
    own(plan, workers) + workers.upstream_max() + plan.tcp.connections_max as u64
}

/// Lowers the bound on connections to what goes with `limit` descriptors, and says so.
pub(super) fn fit(listening: &mut Listening, limit: u64, workers: Workers) {
    let wanted = listening.plan.tcp.connections_max;
    for plan in [Some(&mut listening.plan), listening.otherwise.as_mut()].into_iter().flatten() {
        plan.tcp.connections_max = connections(plan, limit, workers);
    }
    let connections = listening.plan.tcp.connections_max;
    if connections < wanted {
        warn!(
            descriptors = limit,
            wanted,
            connections,
            "limits.tcp.connections is lowered: the process may open too few files; raise the limit (ulimit -n, LimitNOFILE=)"
        );
    }
}

/// Returns how many connections there may be with `limit` descriptors: upstreams have theirs first,
/// or half of what is left when there are few.
fn connections(plan: &Plan, limit: u64, workers: Workers) -> usize {
    let left = limit.saturating_sub(own(plan, workers));
    let left = left - workers.upstream_max().min(left / 2);
    plan.tcp.connections_max.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1)
}

/// Returns the descriptors that are not for connections, neither to clients nor to upstreams.
fn own(plan: &Plan, workers: Workers) -> u64 {
    // At most two sockets for each address and worker.
    let of_a_worker = OF_A_WORKER + 2 * plan.listeners.len() as u64;
    OTHERS + workers.operators + workers.count * of_a_worker
}

#[cfg(test)]
mod tests {
    use plan::listeners::ListenerPlan;

    use super::*;

    #[test]
    fn connections_leave_descriptors_to_upstreams() {
        let listener = ListenerPlan::new("127.0.0.1:53".parse().expect("an address"));
        let plan = Plan { listeners: vec![listener; 2], ..Plan::default() };
        // 64 + 2 * (4 + 4) are the server's own, 2 * 768 for upstreams.
        for (limit, expect) in
            [(65_536, 10_000), (4096, 2480), (1024, 472), (200, 60), (80, 1), (10, 1), (u64::MAX, 10_000)]
        {
            assert_eq!(connections(&plan, limit, Workers::new(2, 768)), expect, "with {limit}");
        }
        // Those of few upstreams leave more: 2 * 100.
        for (limit, expect) in [(65_536, 10_000), (4096, 3816), (1024, 744), (400, 160), (200, 60)] {
            assert_eq!(connections(&plan, limit, Workers::new(2, 100)), expect, "with {limit}");
        }
        assert_eq!(connections(&plan, 1024, Workers::new(2, 1)), 816, "a reload may bring more");
        assert_eq!(connections(&plan, 1024, Workers::new(2, 1).beside(64)), 752, "operators come in");
    }
}
