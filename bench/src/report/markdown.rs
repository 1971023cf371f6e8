//! The report as Markdown, for where only text is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::beside::{Beside, COMPARED};
use super::cross_check::CrossCheck;
use super::metric::{YARDSTICKS, Yardstick};
use super::model::{Model, Note, OURS, ScenarioFacts, ServerFacts};
use super::series::SeriesTable;
use super::statistics::Verdict;
use super::text::{digits, figure, rate, ratio};

/// Writes the page.
pub(super) fn page(model: &Model) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# Benchmark of {}\n", model.date);
    for command in &model.commands {
        let _ = writeln!(out, "    {}", command.trim_end());
    }
    out.push('\n');
    for sentence in model.method.iter().map(String::as_str).chain(super::RULES) {
        let _ = writeln!(out, "{sentence}");
    }
    out.push_str("\n| Server | Version | Set up |\n| --- | --- | --- |\n");
    for server in &model.servers {
        let variant = server.variant_of.as_ref().map_or_else(String::new, |of| format!("variant of {of}: "));
        let _ = writeln!(
            out,
            "| {} | {} | {variant}{} |",
            server.name,
            cell(&server.version),
            cell(&server.about)
        );
    }
    for (name, reason) in &model.skipped {
        let _ = writeln!(out, "| {name} | skipped | {} |", cell(reason));
    }
    for table in SeriesTable::all(model) {
        series(&mut out, &table);
    }
    for yardstick in &YARDSTICKS {
        summary(&mut out, model, yardstick);
    }
    for facts in &model.scenarios {
        scenario(&mut out, model, facts);
    }
    if !model.pending.is_empty() {
        out.push_str("\n## Pending\n\n");
    }
    for (name, needs) in &model.pending {
        let _ = writeln!(out, "- `{name}` waits for {needs}.");
    }
    let _ = writeln!(out, "\n## Machine\n\n```text\n{}\n```", model.environment.trim_end());
    out
}

/// Keeps a text from ending its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ahead => "🟢",
        Verdict::Behind => "🔴",
        Verdict::Neutral => "⚪",
    }
}

/// Gannet by each rival, scenario by scenario.
fn summary(out: &mut String, model: &Model, yardstick: &Yardstick) {
    let rivals: Vec<&ServerFacts> = model.columns().collect();
    let _ = writeln!(out, "\n## {}: Gannet by the others\n", yardstick.title);
    let names: Vec<&str> = rivals.iter().map(|rival| rival.name.as_str()).collect();
    let _ = writeln!(out, "| Scenario | Gannet | by echo | {} |", names.join(" | "));
    let _ = writeln!(out, "|{}", " --- |".repeat(rivals.len() + 3));
    for facts in &model.scenarios {
        let ours = model.spread(&facts.name, OURS, yardstick.column);
        let echo = model.share_of_echo(&facts.name, OURS, yardstick.column);
        let _ = write!(
            out,
            "| {} | {} | {} |",
            facts.name,
            ours.map_or_else(|| "–".to_owned(), |spread| figure(spread.median, yardstick.unit)),
            echo.map_or_else(|| "–".to_owned(), ratio)
        );
        for rival in &rivals {
            let text = match model.comparison(&facts.name, &rival.name, yardstick) {
                Some(comparison) => {
                    format!("{} {}", sign(comparison.verdict), digits(comparison.ratio.median))
                }
                None if model.records(&facts.name, &rival.name).next().is_some() && ours.is_some() => {
                    "g".to_owned()
                }
                None => "–".to_owned(),
            };
            let _ = write!(out, " {text} |");
        }
        out.push('\n');
    }
}

/// Share of a core and latency at each rate, server by server.
fn series(out: &mut String, table: &SeriesTable<'_>) {
    let _ = writeln!(out, "\n## {}\n\n{}\n", table.title, table.about);
    let stopped = if table.has_quota { " / stopped" } else { "" };
    let _ = write!(out, "Each cell: share of a core / p50 µs / p99 µs{stopped}.\n\n| Queries a second |");
    for server in &table.servers {
        let _ = write!(out, " {} |", server.name);
    }
    let _ = writeln!(out, "\n|{}", " --- |".repeat(table.servers.len() + 1));
    for row in &table.rows {
        let _ = write!(out, "| {} |", rate(row.rate));
        for cell in &row.cells {
            let Some(cell) = cell else {
                out.push_str(" – |");
                continue;
            };
            let (p50, p99) = (digits(cell.p50_us), digits(cell.p99_us));
            let _ = write!(out, " {} / {p50} / {p99}", figure(cell.busy_percent, "%"));
            if let Some(share) = cell.throttled_percent {
                let _ = write!(out, " / {}", figure(share, "%"));
            }
            if cell.loss_percent > 0.0 {
                let _ = write!(out, ", {} lost", figure(cell.loss_percent, "%"));
            }
            out.push_str(" |");
        }
        out.push('\n');
    }
}

fn scenario(out: &mut String, model: &Model, facts: &ScenarioFacts) {
    let _ = writeln!(out, "\n## {}\n\n{}. {}.\n", facts.name, facts.about, facts.load);
    out.push_str(
        "| Server | CPU µs/query | × echo | user µs | busy | queries/s | × echo | lost % | in system µs | mean µs | sd µs | p50 | p95 | p99 | p99.9 | max | RSS MiB | grown MiB | start ms |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for server in model.timed(&facts.name) {
        server_row(out, model, &facts.name, &server.name);
    }
    beside(out, model, facts);
    courses(out, model, &facts.name);
    cross_check(out, model, &facts.name);
    bottleneck(out, model, &facts.name);
    notes(out, "Not timed", &model.failures, &facts.name);
    notes(out, "Remarks", &model.remarks, &facts.name);
}

fn server_row(out: &mut String, model: &Model, scenario: &str, server: &str) {
    let Some(cpu) = model.spread(scenario, server, "cpu_us_per_query") else { return };
    let median = |column: &str| model.spread(scenario, server, column).map_or(0.0, |spread| spread.median);
    let echo = |column: &str| {
        model
            .share_of_echo(scenario, server, column)
            .map_or_else(|| "–".to_owned(), |share| format!("{share:.2}"))
    };
    let in_system = model.spread(scenario, server, "in_system_us");
    let in_system = in_system.map_or_else(|| "–".to_owned(), |spread| format!("{:.1}", spread.median));
    let _ = writeln!(
        out,
        "| {server} | **{:.2}** ({:.2}–{:.2}) | {} | {:.2} | {:.0} % | {:.0} | {} | {:.3} | {in_system} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.1} | {:.1} | {:.0} |",
        cpu.median,
        cpu.low,
        cpu.high,
        echo("cpu_us_per_query"),
        median("cpu_user_us_per_query"),
        100.0 * median("busy_share"),
        median("queries_per_second"),
        echo("queries_per_second"),
        median("loss_percent"),
        median("latency_mean_us"),
        median("latency_sd_us"),
        median("latency_p50_us"),
        median("latency_p95_us"),
        median("latency_p99_us"),
        median("latency_p999_us"),
        median("latency_max_us"),
        median("resident_mib"),
        median("resident_growth_mib"),
        median("start_ms"),
    );
}

/// What the scenario takes by what the one beside it takes.
fn beside(out: &mut String, model: &Model, facts: &ScenarioFacts) {
    let Some(beside) = Beside::of(model, facts) else { return };
    let _ = writeln!(out, "\nBy `{}`, which was run in turn with it:\n", beside.other);
    let titles = COMPARED.map(|yardstick| yardstick.title).join(" | ");
    let _ = writeln!(out, "| Server | {titles} |\n|{}", " --- |".repeat(COMPARED.len() + 1));
    for (server, ratios) in &beside.servers {
        let ratios = ratios.map(|value| value.map_or_else(|| "g".to_owned(), ratio));
        let _ = writeln!(out, "| {server} | {} |", ratios.join(" | "));
    }
}

/// What came after the incidents, run by run.
fn courses(out: &mut String, model: &Model, scenario: &str) {
    let mut courses = model.courses.iter().filter(|course| course.scenario == scenario).peekable();
    if courses.peek().is_none() {
        return;
    }
    out.push_str("\n| Server | run | what happened | recovered after | lost or wrong | slowest answer |\n| --- | --- | --- | --- | --- | --- |\n");
    for course in courses {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {:.0} | {} |",
            course.server,
            course.round + 1,
            course.told(),
            course.recovery_s().map_or_else(|| "never".to_owned(), |seconds| format!("{seconds:.1} s")),
            course.harmed(),
            figure(course.slowest_us(), "µs")
        );
    }
}

fn cross_check(out: &mut String, model: &Model, scenario: &str) {
    let Some(check) = CrossCheck::of(model, scenario) else { return };
    let _ = writeln!(out, "\n{}\n", check.verdict());
    out.push_str(
        "| Server | queries/s | by dnsperf | mean µs | by dnsperf | CPU µs/query | by dnsperf |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (server, [qps, mean, cpu]) in &check.servers {
        let _ = writeln!(
            out,
            "| {server} | {:.0} | {:.0} | {:.1} | {:.1} | {:.2} | {:.2} |",
            qps[0], qps[1], mean[0], mean[1], cpu[0], cpu[1]
        );
    }
}

fn bottleneck(out: &mut String, model: &Model, scenario: &str) {
    let idle: Vec<String> = model
        .timed(scenario)
        .filter(|server| model.is_generator_bound(scenario, &server.name))
        .filter_map(|server| {
            let busy = model.spread(scenario, &server.name, "busy_share")?;
            Some(format!("{} ({:.0} %)", server.name, 100.0 * busy.median))
        })
        .collect();
    if !idle.is_empty() {
        let _ = writeln!(
            out,
            "\nGenerator-bound: the load generator and not the server limits the queries per second of {}. Compare CPU per query there.",
            idle.join(", ")
        );
    }
}

fn notes(out: &mut String, title: &str, notes: &[Note], scenario: &str) {
    let mut by_server: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for note in notes.iter().filter(|note| note.scenario == scenario) {
        by_server.entry(&note.server).or_default().push(&note.text);
    }
    if by_server.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}:\n");
    for (server, texts) in by_server {
        let _ = writeln!(out, "- {server}: {}", texts.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{beside as beside_example, course, example};
    use super::super::series::tests::at_rates;
    use super::*;

    #[test]
    fn the_summary_compares_and_the_scenario_explains() {
        let mut model = example();
        model.courses.push(course(&[50.0, 100.0, 100.0, 0.0, 0.0, 0.0, 40.0, 100.0, 95.0, 10.0]));
        let page = page(&model);
        for line in [
            "| cache-warm | 4.08 µs | 2.00 × | 🟢 0.50 |",
            "| gannet | **4.08** (4.00–4.16) | 2.00 |",
            "| gannet | 1 | stub stops at 0.3 s, stub starts at 0.5 s | recovered",
            "- rival: does not copy RD",
            "| mosdns | skipped | no program \"mosdns\" in PATH |",
            "- `zones` waits for authoritative zones.",
        ] {
            let line = line.replace("| recovered", "| 0.2 s | 0 | ");
            assert!(page.contains(&line), "{line}\n{page}");
        }
    }

    #[test]
    fn rates_are_one_table() {
        let page = page(&at_rates("rates"));
        let head = "| Queries a second | echo | gannet | rival |";
        assert!(page.contains(head) && page.contains("| 20,000 | 20.0 % / "), "{page}");
    }

    #[test]
    fn a_scenario_shows_what_it_takes_by_the_one_beside_it() {
        let page = page(&beside_example());
        for line in
            ["By `cache-warm`, which was run in turn with it:", "| gannet | 1.10 × | 1.00 × | 1.00 × |"]
        {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }
}
