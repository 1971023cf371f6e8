//! What a session found, as raw and aggregated tables and as a page for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::scenario;
use crate::session::{Findings, Generator, Plans, Remark, Sample};

/// The server all others are given as a multiple of.
const ECHO: &str = "echo";
/// The server the others are compared with.
const OURS: &str = "gannet";
/// A server busier than this is what limits the throughput.
const SATURATED: f64 = 0.9;
/// Differences below this share are neutral even when every round agrees.
const RELEVANT: f64 = 0.01;

/// A figure of a sample.
struct Metric {
    name: &'static str,
    of: fn(&Sample) -> f64,
}

const METRICS: [Metric; 18] = [
    Metric { name: "cpu_us_per_query", of: |s| s.cpu_us },
    Metric { name: "cpu_user_us_per_query", of: |s| s.cpu_us * s.user_share },
    Metric { name: "busy_share", of: |s| s.busy },
    Metric { name: "queries_per_second", of: |s| s.tally.qps() },
    Metric { name: "loss_percent", of: |s| s.tally.loss_percent() },
    Metric { name: "wrong", of: |s| s.tally.wrong() as f64 },
    Metric { name: "latency_mean_us", of: |s| s.tally.latency.mean_us() },
    Metric { name: "latency_sd_us", of: |s| s.tally.latency.deviation_us() },
    Metric { name: "latency_p50_us", of: |s| s.tally.latency.quantile_us(0.5) },
    Metric { name: "latency_p95_us", of: |s| s.tally.latency.quantile_us(0.95) },
    Metric { name: "latency_p99_us", of: |s| s.tally.latency.quantile_us(0.99) },
    Metric { name: "latency_max_us", of: |s| s.tally.latency.max_us() },
    Metric { name: "resident_mib", of: |s| s.resident_octets as f64 / (1 << 20) as f64 },
    Metric { name: "resident_growth_mib", of: growth_mib },
    Metric { name: "start_ms", of: |s| s.start.as_secs_f64() * 1e3 },
    Metric { name: "threads", of: |s| s.threads as f64 },
    Metric {
        name: "upstream_queries_per_answer",
        of: |s| s.upstream_queries as f64 / s.tally.answered.max(1) as f64,
    },
    Metric {
        name: "generator_us_per_query",
        of: |s| s.tally.own_cpu.as_secs_f64() * 1e6 / s.tally.answered.max(1) as f64,
    },
];

fn growth_mib(sample: &Sample) -> f64 {
    sample.resident_octets.saturating_sub(sample.resident_octets_at_start) as f64 / (1 << 20) as f64
}

/// Middle, lowest and highest of several figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many.
    pub count: usize,
}

impl Spread {
    /// Summarises `figures`; `None` if there are none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
        figures.sort_by(f64::total_cmp);
        let (&low, &high) = (figures.first()?, figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            f64::midpoint(figures[middle - 1], figures[middle])
        };
        Some(Self { median, low, high, count: figures.len() })
    }
}

/// Whether a difference is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ours is lower.
    Ahead,
    /// Ours is higher.
    Behind,
    /// The rounds disagree, or the difference is too small to matter.
    Neutral,
}

impl Verdict {
    /// Judges the ratios of ours to another's, one per round; lower is better.
    ///
    /// A difference counts when the median is off by more than 1 % and at most one round in five
    /// points the other way.
    pub fn of(ratios: &[f64]) -> Self {
        let Some(spread) = Spread::of(ratios.iter().copied()) else { return Self::Neutral };
        let lower = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        let higher = ratios.len() - lower;
        let may_disagree = ratios.len() / 5;
        if spread.median < 1.0 - RELEVANT && higher <= may_disagree {
            Self::Ahead
        } else if spread.median > 1.0 + RELEVANT && lower <= may_disagree {
            Self::Behind
        } else {
            Self::Neutral
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Ahead => "🟢 ahead",
            Self::Behind => "🔴 behind",
            Self::Neutral => "⚪ neutral",
        }
    }
}

/// The samples of a session, by scenario and server.
struct Table<'a> {
    samples: &'a [Sample],
}

impl<'a> Table<'a> {
    fn of(&self, scenario: &str, server: &str) -> Vec<&'a Sample> {
        self.samples.iter().filter(|s| s.scenario == scenario && s.server == server).collect()
    }

    /// Returns the ratio of `of` between two servers, for each round that has both.
    fn ratios(&self, scenario: &str, server: &str, base: &str, of: fn(&Sample) -> f64) -> Vec<f64> {
        let base = self.of(scenario, base);
        self.of(scenario, server)
            .into_iter()
            .filter_map(|sample| {
                let other = base.iter().find(|other| other.round == sample.round)?;
                let below = of(other);
                (below > 0.0).then(|| of(sample) / below)
            })
            .collect()
    }
}

/// Writes all files of a session into `directory`.
pub fn write(directory: &Path, plans: &Plans, findings: &Findings, facts: &Facts) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let put = |name: &str, text: String| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    put("raw.tsv", raw(findings))?;
    put("aggregate.tsv", aggregate(findings))?;
    put("environment.txt", facts.environment.clone())?;
    put("report.md", page(plans, findings, facts))
}

/// What does not come from the samples.
pub struct Facts {
    /// The environment snapshot.
    pub environment: String,
    /// The command line.
    pub command: String,
    /// Servers that could not be had, with the reason.
    pub skipped: Vec<(String, String)>,
    /// Versions by server.
    pub versions: Vec<(String, String)>,
    /// When it began, for people.
    pub date: String,
}

fn raw(findings: &Findings) -> String {
    let mut out =
        "scenario\tserver\tround\tsent\tanswered\tlost\twrong_content\twrong_question\tunexpected\telapsed_s"
            .to_owned();
    for metric in &METRICS {
        let _ = write!(out, "\t{}", metric.name);
    }
    out.push('\n');
    for sample in &findings.samples {
        let tally = &sample.tally;
        let _ = write!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.6}",
            sample.scenario,
            sample.server,
            sample.round + 1,
            tally.sent,
            tally.answered,
            tally.lost,
            tally.wrong_content,
            tally.wrong_question,
            tally.unexpected,
            tally.elapsed.as_secs_f64()
        );
        for metric in &METRICS {
            let _ = write!(out, "\t{:.4}", (metric.of)(sample));
        }
        out.push('\n');
    }
    out
}

/// Returns the pairs of scenario and server that have samples, in the order they came.
fn pairs(samples: &[Sample]) -> Vec<(&'static str, &str)> {
    let mut pairs = Vec::new();
    for sample in samples {
        let pair = (sample.scenario, sample.server.as_str());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

fn aggregate(findings: &Findings) -> String {
    let table = Table { samples: &findings.samples };
    let mut out = "scenario\tserver\tmetric\tmedian\tlow\thigh\truns\tmedian_ratio_to_echo\n".to_owned();
    for (scenario, server) in pairs(&findings.samples) {
        for metric in &METRICS {
            let samples = table.of(scenario, server);
            let Some(spread) = Spread::of(samples.iter().map(|s| (metric.of)(s))) else { continue };
            let ratio = Spread::of(table.ratios(scenario, server, ECHO, metric.of));
            let ratio = ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.4}", ratio.median));
            let Spread { median, low, high, count } = spread;
            let name = metric.name;
            let _ = writeln!(
                out,
                "{scenario}\t{server}\t{name}\t{median:.4}\t{low:.4}\t{high:.4}\t{count}\t{ratio}"
            );
        }
    }
    out
}

fn page(plans: &Plans, findings: &Findings, facts: &Facts) -> String {
    let table = Table { samples: &findings.samples };
    let mut out = String::new();
    let generator = match plans.generator {
        Generator::Own => "gannet-bench",
        Generator::Dnsperf => "dnsperf",
    };
    let _ = writeln!(out, "# Benchmark of {}\n", facts.date);
    let _ = writeln!(out, "    {}\n", facts.command);
    let _ = writeln!(
        out,
        "{} runs of {:.0} s each per server and scenario, order alternating from run to run, a fresh process each time. \
         Server on core {:?}, load ({generator}) and stub upstreams on core {:?}; {} queries in flight over {} clients \
         in the throughput scenarios. Figures are medians, (lowest–highest) beside them. *× echo* is the median of the \
         ratios to the bare echo server in the same round. CPU is that of the server's whole process tree, user and \
         system, by right answers.\n",
        plans.runs,
        plans.time.as_secs_f64(),
        plans.server_cores,
        plans.load_cores,
        plans.outstanding,
        plans.clients,
    );
    out.push_str("| Server | Version | Set up |\n| --- | --- | --- |\n");
    for (rival, _) in &plans.servers {
        let version =
            facts.versions.iter().find(|(name, _)| *name == rival.name).map_or("", |(_, text)| text);
        let _ = writeln!(out, "| {} | {version} | {} |", rival.name, rival.about);
    }
    for (name, reason) in &facts.skipped {
        let _ = writeln!(out, "| {name} | skipped | {reason} |");
    }
    for scenario in &plans.scenarios {
        let _ = writeln!(out, "\n## {}\n\n{}\n", scenario.name, scenario.about);
        out.push_str(
            "| Server | CPU µs/query | × echo | user µs | busy | queries/s | × echo | lost % | mean µs | sd µs | p50 | p95 | p99 | max | RSS MiB | grown MiB | start ms |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for (rival, _) in &plans.servers {
            server_row(&mut out, &table, scenario.name, &rival.name);
        }
        comparison(&mut out, &table, plans, scenario.name);
        bottleneck(&mut out, &table, plans, scenario);
        remarks(&mut out, "Not timed", &findings.failures, scenario.name);
        remarks(&mut out, "Remarks", &findings.remarks, scenario.name);
    }
    out.push_str("\n## Pending\n\n");
    for (name, needs) in scenario::PENDING {
        let _ = writeln!(out, "- `{name}` waits for {needs}.");
    }
    let _ = writeln!(out, "\n## Environment\n\n```text\n{}```", facts.environment);
    out
}

fn server_row(out: &mut String, table: &Table<'_>, scenario: &str, server: &str) {
    let samples = table.of(scenario, server);
    let spread = |of: fn(&Sample) -> f64| Spread::of(samples.iter().map(|s| of(s)));
    let Some(cpu) = spread(|s| s.cpu_us) else { return };
    let median = |of: fn(&Sample) -> f64| spread(of).map_or(0.0, |spread| spread.median);
    let ratio = |of: fn(&Sample) -> f64| {
        let ratio = Spread::of(table.ratios(scenario, server, ECHO, of));
        ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{:.2}", ratio.median))
    };
    let _ = writeln!(
        out,
        "| {server} | **{:.2}** ({:.2}–{:.2}) | {} | {:.2} | {:.0} % | {:.0} | {} | {:.3} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.1} | {:.1} | {:.0} |",
        cpu.median,
        cpu.low,
        cpu.high,
        ratio(|s| s.cpu_us),
        median(|s| s.cpu_us * s.user_share),
        100.0 * median(|s| s.busy),
        median(|s| s.tally.qps()),
        ratio(|s| s.tally.qps()),
        median(|s| s.tally.loss_percent()),
        median(|s| s.tally.latency.mean_us()),
        median(|s| s.tally.latency.deviation_us()),
        median(|s| s.tally.latency.quantile_us(0.5)),
        median(|s| s.tally.latency.quantile_us(0.95)),
        median(|s| s.tally.latency.quantile_us(0.99)),
        median(|s| s.tally.latency.max_us()),
        median(|s| s.resident_octets as f64 / (1 << 20) as f64),
        median(growth_mib),
        median(|s| s.start.as_secs_f64() * 1e3),
    );
}

fn comparison(out: &mut String, table: &Table<'_>, plans: &Plans, scenario: &str) {
    if table.of(scenario, OURS).is_empty() {
        return;
    }
    out.push_str("\n| Gannet by | CPU | | mean latency | | latency sd | |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    let figures: [fn(&Sample) -> f64; 3] =
        [|s| s.cpu_us, |s| s.tally.latency.mean_us(), |s| s.tally.latency.deviation_us()];
    for (rival, _) in plans.servers.iter().filter(|(rival, _)| rival.name != OURS) {
        let mut line = format!("| {} |", rival.name);
        for figure in figures {
            let ratios = table.ratios(scenario, OURS, &rival.name, figure);
            let Some(spread) = Spread::of(ratios.iter().copied()) else {
                line.push_str(" – | |");
                continue;
            };
            let verdict = Verdict::of(&ratios).text();
            let _ =
                write!(line, " {:.2} ({:.2}–{:.2}) | {verdict} |", spread.median, spread.low, spread.high);
        }
        if !table.of(scenario, &rival.name).is_empty() {
            let _ = writeln!(out, "{line}");
        }
    }
}

fn bottleneck(out: &mut String, table: &Table<'_>, plans: &Plans, scenario: &scenario::Scenario) {
    if scenario.clients.is_some() {
        return;
    }
    let idle: Vec<String> = plans
        .servers
        .iter()
        .filter_map(|(rival, _)| {
            let busy = Spread::of(table.of(scenario.name, &rival.name).iter().map(|s| s.busy))?;
            (busy.median < SATURATED).then(|| format!("{} ({:.0} %)", rival.name, 100.0 * busy.median))
        })
        .collect();
    if !idle.is_empty() {
        let _ = writeln!(
            out,
            "\nThe load generator and not the server limits the queries per second of: {}. Compare CPU per query there.",
            idle.join(", ")
        );
    }
}

fn remarks(out: &mut String, title: &str, remarks: &[Remark], scenario: &str) {
    let mut by_server: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for remark in remarks.iter().filter(|remark| remark.scenario == scenario) {
        by_server.entry(&remark.server).or_default().push(&remark.text);
    }
    if by_server.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}:\n");
    for (server, texts) in by_server {
        let _ = writeln!(out, "- {server}: {}", texts.join("; "));
    }
}

/// Describes the machine, as text.
pub fn environment() -> String {
    let mut out = String::new();
    let mut add = |label: &str, text: String| {
        let _ = writeln!(out, "{label}: {}", text.trim());
    };
    add("kernel", output("uname", &["-srvm"]));
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    add("processor", model.trim_start_matches([' ', '\t', ':']).to_owned());
    add("processors", cpu.lines().filter(|line| line.starts_with("processor")).count().to_string());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    add("memory", memory.lines().next().unwrap_or_default().replace("MemTotal:", ""));
    add("load average", fs::read_to_string("/proc/loadavg").unwrap_or_default());
    for name in
        ["net/core/rmem_max", "net/core/wmem_max", "net/core/rmem_default", "kernel/perf_event_paranoid"]
    {
        add(name, fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default());
    }
    add(
        "governor",
        fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .unwrap_or_else(|_| "unknown".to_owned()),
    );
    add("commit", output("git", &["describe", "--always", "--dirty"]));
    out
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Returns date and time in UTC, for people and for a directory's name.
pub fn date_now() -> (String, String) {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    (
        format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC"),
        format!("{year}-{month:02}-{day:02}-{hour:02}{minute:02}{second:02}"),
    )
}

/// Turns days since 1970-01-01 into year, month and day (Gregorian; years begin in March while counting).
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = year_of_era + era * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_when_the_rounds_agree() {
        assert_eq!(Verdict::of(&[0.9, 0.8, 0.95, 0.9, 0.97]), Verdict::Ahead);
        assert_eq!(Verdict::of(&[0.9, 0.8, 1.02, 0.9, 0.97]), Verdict::Ahead);
        assert_eq!(Verdict::of(&[0.9, 1.1, 1.02, 0.9, 0.97]), Verdict::Neutral);
        assert_eq!(Verdict::of(&[0.995, 0.993, 0.992]), Verdict::Neutral);
        assert_eq!(Verdict::of(&[1.2, 1.3, 1.1]), Verdict::Behind);
        assert_eq!(Verdict::of(&[]), Verdict::Neutral);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).expect("not empty");
        assert_eq!((spread.median, spread.low, spread.high), (2.5, 1.0, 4.0));
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
    }
}
