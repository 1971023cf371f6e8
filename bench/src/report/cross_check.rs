//! What our load generator found beside what dnsperf found.

use super::model::Model;

/// The columns that both generators fill: ours, and dnsperf's.
const COLUMNS: [[&str; 2]; 3] = [
    ["queries_per_second", "dnsperf_queries_per_second"],
    ["latency_mean_us", "dnsperf_latency_mean_us"],
    ["cpu_us_per_query", "dnsperf_cpu_us_per_query"],
];

/// One scenario under both generators.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CrossCheck {
    /// Each server with the medians of throughput, mean latency and CPU per query, ours and
    /// dnsperf's.
    pub(super) servers: Vec<(String, [[f64; 2]; 3])>,
}

impl CrossCheck {
    /// Puts both side by side; `None` if dnsperf was not asked.
    pub(super) fn of(model: &Model, scenario: &str) -> Option<Self> {
        let median = |server: &str, column: &str| Some(model.spread(scenario, server, column)?.median);
        let servers: Vec<(String, [[f64; 2]; 3])> = model
            .timed(scenario)
            .filter_map(|server| {
                let mut pairs = [[0.0; 2]; 3];
                for (pair, [own, other]) in pairs.iter_mut().zip(COLUMNS) {
                    *pair = [median(&server.name, own)?, median(&server.name, other)?];
                }
                Some((server.name.clone(), pairs))
            })
            .collect();
        (!servers.is_empty()).then_some(Self { servers })
    }

    /// Returns how many pairs of servers both generators put in the same order by CPU per query,
    /// and how many pairs there are.
    pub(super) fn agreement(&self) -> (usize, usize) {
        let (mut same, mut all) = (0, 0);
        for (at, (_, one)) in self.servers.iter().enumerate() {
            for (_, other) in &self.servers[at + 1..] {
                let [[own, check], [other_own, other_check]] = [one[2], other[2]];
                all += 1;
                same += usize::from((own < other_own) == (check < other_check));
            }
        }
        (same, all)
    }

    /// Says how far both agree.
    pub(super) fn verdict(&self) -> String {
        let (same, all) = self.agreement();
        format!(
            "dnsperf asked the same process right after our generator, with as many clients and queries in flight. Both put \
             {same} of {all} pairs of servers in the same order by CPU per query. dnsperf sends one datagram at a time and \
             costs more itself: on a core of its own it finds lower throughput, and servers find shorter batches."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::metric;
    use crate::report::model::tests::example;

    #[test]
    fn pairs_in_the_same_order_are_counted() {
        let mut model = example();
        for record in &mut model.records {
            for (own, other) in COLUMNS.map(|[own, other]| (own, other)) {
                let [own, other] = [own, other].map(|name| metric::place(name).expect("a column"));
                record.figures[other] = 2.0 * record.figures[own];
            }
        }
        let cpu = metric::place("dnsperf_cpu_us_per_query").expect("a column");
        let check = CrossCheck::of(&model, "cache-warm").expect("asked");
        assert_eq!(check.agreement(), (3, 3));
        for record in model.records.iter_mut().filter(|record| record.server == "echo") {
            record.figures[cpu] = 1e6;
        }
        assert_eq!(CrossCheck::of(&model, "cache-warm").expect("asked").agreement(), (1, 3));
    }

    #[test]
    fn without_dnsperf_there_is_no_cross_check() {
        let mut model = example();
        let place = metric::place("dnsperf_queries_per_second").expect("a column");
        for record in &mut model.records {
            record.figures[place] = f64::NAN;
        }
        assert_eq!(CrossCheck::of(&model, "cache-warm"), None);
    }
}
