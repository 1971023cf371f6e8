//! The figures of a run: what they are called, how they are read from a sample, and what is better.

use super::statistics::Better;
use crate::session::Sample;

/// A figure of a run.
pub struct Metric {
    /// Its column in the tables.
    pub name: &'static str,
    /// Reads it.
    of: fn(&Sample) -> f64,
}

const fn metric(name: &'static str, of: fn(&Sample) -> f64) -> Metric {
    Metric { name, of }
}

fn mib(octets: u64) -> f64 {
    octets as f64 / (1 << 20) as f64
}

fn per_answer(sample: &Sample, what: f64) -> f64 {
    what / sample.tally.answered.max(1) as f64
}

/// All figures, in the order of the columns.
pub const METRICS: [Metric; 38] = [
    metric("sent", |s| s.tally.sent as f64),
    metric("answered", |s| s.tally.answered as f64),
    metric("lost", |s| s.tally.lost as f64),
    metric("wrong", |s| s.tally.wrong() as f64),
    metric("unexpected", |s| s.tally.unexpected as f64),
    metric("elapsed_s", |s| s.tally.elapsed.as_secs_f64()),
    metric("cpu_us_per_query", |s| s.cpu_us),
    metric("cpu_user_us_per_query", |s| s.cpu_us * s.user_share),
    metric("busy_share", |s| s.busy),
    metric("queries_per_second", |s| s.tally.qps()),
    metric("loss_percent", |s| s.tally.loss_percent()),
    metric("latency_mean_us", |s| s.tally.latency.mean_us()),
    metric("latency_sd_us", |s| s.tally.latency.deviation_us()),
    metric("latency_min_us", |s| s.tally.latency.quantile_us(0.0)),
    metric("latency_p10_us", |s| s.tally.latency.quantile_us(0.10)),
    metric("latency_p25_us", |s| s.tally.latency.quantile_us(0.25)),
    metric("latency_p50_us", |s| s.tally.latency.quantile_us(0.50)),
    metric("latency_p75_us", |s| s.tally.latency.quantile_us(0.75)),
    metric("latency_p90_us", |s| s.tally.latency.quantile_us(0.90)),
    metric("latency_p95_us", |s| s.tally.latency.quantile_us(0.95)),
    metric("latency_p99_us", |s| s.tally.latency.quantile_us(0.99)),
    metric("latency_p999_us", |s| s.tally.latency.quantile_us(0.999)),
    metric("latency_max_us", |s| s.tally.latency.max_us()),
    metric("in_system_us", |s| s.tally.time_in_system().map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)),
    metric("quota_periods", |s| s.throttling.map_or(f64::NAN, |throttling| throttling.periods as f64)),
    metric("throttled_percent", |s| s.throttling.map_or(f64::NAN, |throttling| throttling.percent())),
    metric("throttled_ms", |s| {
        s.throttling.map_or(f64::NAN, |throttling| throttling.stopped.as_secs_f64() * 1e3)
    }),
    metric("resident_mib", |s| mib(s.resident_octets)),
    metric("resident_at_start_mib", |s| mib(s.resident_octets_at_start)),
    metric("resident_growth_mib", |s| mib(s.resident_octets.saturating_sub(s.resident_octets_at_start))),
    metric("start_ms", |s| s.start.as_secs_f64() * 1e3),
    metric("threads", |s| s.threads as f64),
    metric("upstream_queries_per_answer", |s| {
        s.upstream_queries.map_or(f64::NAN, |queries| per_answer(s, queries as f64))
    }),
    metric("generator_us_per_query", |s| per_answer(s, s.tally.own_cpu.as_secs_f64() * 1e6)),
    metric("generator_busy_share", |s| {
        s.tally.own_cpu.as_secs_f64() / s.tally.elapsed.as_secs_f64().max(1e-9)
    }),
    metric("dnsperf_queries_per_second", |s| s.check.as_ref().map_or(f64::NAN, |check| check.tally.qps())),
    metric("dnsperf_latency_mean_us", |s| {
        s.check.as_ref().map_or(f64::NAN, |check| check.tally.latency.mean_us())
    }),
    metric("dnsperf_cpu_us_per_query", |s| s.check.as_ref().map_or(f64::NAN, |check| check.cpu_us)),
];

/// Returns all figures of `sample`, in the order of [`METRICS`].
pub fn figures(sample: &Sample) -> Vec<f64> {
    METRICS.iter().map(|metric| (metric.of)(sample)).collect()
}

/// Returns the place of the column called `name`.
pub fn place(name: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.name == name)
}

/// A figure by which servers are compared in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yardstick {
    /// Its column.
    pub column: &'static str,
    /// What the report calls it.
    pub title: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What is better.
    pub better: Better,
    /// Whether it says nothing when the load generator and not the server was the bottleneck.
    pub needs_saturation: bool,
}

const fn yardstick(column: &'static str, title: &'static str, unit: &'static str) -> Yardstick {
    Yardstick { column, title, unit, better: Better::Lower, needs_saturation: false }
}

/// What servers are compared by, most telling first.
pub const YARDSTICKS: [Yardstick; 7] = [
    yardstick("cpu_us_per_query", "CPU per query", "µs"),
    Yardstick {
        better: Better::Higher,
        needs_saturation: true,
        ..yardstick("queries_per_second", "Throughput", "q/s")
    },
    Yardstick { needs_saturation: true, ..yardstick("latency_mean_us", "Mean latency", "µs") },
    Yardstick { needs_saturation: true, ..yardstick("latency_p99_us", "99th percentile", "µs") },
    Yardstick { needs_saturation: true, ..yardstick("latency_sd_us", "Latency deviation", "µs") },
    yardstick("resident_mib", "Memory", "MiB"),
    yardstick("start_ms", "Start", "ms"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_yardstick_is_a_column_and_no_column_is_twice() {
        for yardstick in YARDSTICKS {
            assert!(place(yardstick.column).is_some(), "{}", yardstick.column);
        }
        for (at, metric) in METRICS.iter().enumerate() {
            assert_eq!(place(metric.name), Some(at));
        }
    }
}
