//! One scenario on the page: cards with its figures, what is to be said of it, and all figures in a
//! table.

use std::fmt::Write as _;

use super::super::beside::{Beside, COMPARED};
use super::super::cross_check::CrossCheck;
use super::super::metric::{YARDSTICKS, Yardstick};
use super::super::model::{Course, ECHO, Model, OURS, ScenarioFacts, ServerFacts};
use super::super::plot::{self, Latencies, Logarithmic, escape};
use super::super::statistics::{Better, Spread};
use super::super::text::{digits, figure, ratio};
use super::range;

/// Columns of a scenario's full table: title, column, unit.
const COLUMNS: [(&str, &str, &str); 20] = [
    ("CPU per query", "cpu_us_per_query", "µs"),
    ("in user space", "cpu_user_us_per_query", "µs"),
    ("busy", "busy_share", "share"),
    ("throughput", "queries_per_second", "q/s"),
    ("lost", "loss_percent", "%"),
    ("in system", "in_system_us", "µs"),
    ("mean", "latency_mean_us", "µs"),
    ("deviation", "latency_sd_us", "µs"),
    ("p50", "latency_p50_us", "µs"),
    ("p95", "latency_p95_us", "µs"),
    ("p99", "latency_p99_us", "µs"),
    ("p99.9", "latency_p999_us", "µs"),
    ("max", "latency_max_us", "µs"),
    ("throttled", "throttled_percent", "%"),
    ("memory", "resident_mib", "MiB"),
    ("grown by", "resident_growth_mib", "MiB"),
    ("start", "start_ms", "ms"),
    ("threads", "threads", ""),
    ("upstream per answer", "upstream_queries_per_answer", ""),
    ("generator CPU", "generator_us_per_query", "µs"),
];

/// Queries without an answer in time.
const LOSS: Yardstick = Yardstick {
    column: "loss_percent",
    title: "Loss",
    unit: "%",
    better: Better::Lower,
    needs_saturation: false,
};

/// How long a query holds its place, lost ones included.
const IN_SYSTEM: Yardstick = Yardstick {
    column: "in_system_us",
    title: "Time in the system",
    unit: "µs",
    better: Better::Lower,
    needs_saturation: false,
};

/// Writes the section of a scenario.
pub(super) fn write(out: &mut String, model: &Model, facts: &ScenarioFacts) {
    let (name, about) = (escape(&facts.name), escape(&facts.about));
    let _ = writeln!(
        out,
        "<section class=\"scenario\" data-scenario=\"{name}\" data-about=\"{about}\">\n\
         <h3 id=\"{name}\"><a href=\"#{name}\">{name}</a></h3>\n<p class=\"about\">{about}. {}.</p>",
        escape(&facts.load)
    );
    let servers: Vec<&ServerFacts> = model.timed(&facts.name).collect();
    if !servers.is_empty() {
        out.push_str("<div class=\"cards\">\n");
        for yardstick in YARDSTICKS.iter().filter(|y| !y.column.starts_with("latency")) {
            if yardstick.column == "resident_mib" {
                latency_card(out, model, facts, &servers);
            }
            bar_card(out, model, facts, &servers, yardstick);
        }
        loss_card(out, model, facts, &servers);
        course_card(out, model, facts, &servers);
        out.push_str("</div>\n");
    }
    bound_note(out, model, facts, &servers);
    notes(out, model, &facts.name);
    if !servers.is_empty() {
        beside(out, model, facts);
        full_table(out, model, &facts.name, &servers);
        cross_check(out, model, &facts.name);
    }
    out.push_str("</section>\n");
}

fn class_of(server: &ServerFacts) -> &'static str {
    if server.name == OURS {
        "ours"
    } else if server.is_echo {
        "echo"
    } else {
        "rival"
    }
}

fn row(out: &mut String, server: &ServerFacts, classes: &str, strip: &str, value: &str, title: &str) {
    let us = if server.name == OURS { " us" } else { "" };
    let _ = writeln!(
        out,
        "<div class=\"row{us}{classes}\" title=\"{}\"><span class=\"name\">{}</span>{strip}<span class=\"value\">{value}</span></div>",
        escape(title),
        escape(&server.name),
    );
}

/// Bars of one figure, the best server first.
fn bar_card(
    out: &mut String,
    model: &Model,
    facts: &ScenarioFacts,
    servers: &[&ServerFacts],
    yardstick: &Yardstick,
) {
    let mut rows: Vec<(&ServerFacts, Spread)> = servers
        .iter()
        .filter_map(|server| Some((*server, model.spread(&facts.name, &server.name, yardstick.column)?)))
        .collect();
    rows.sort_by(|(_, a), (_, b)| match yardstick.better {
        Better::Lower => a.median.total_cmp(&b.median),
        Better::Higher => b.median.total_cmp(&a.median),
    });
    let max = rows.iter().map(|(_, spread)| spread.high).fold(0.0, f64::max);
    let limit = rows.iter().find(|(server, _)| server.name == ECHO).map(|(_, spread)| spread.median);
    let hint = match yardstick.better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    };
    let _ = writeln!(out, "<div class=\"card\"><h4>{} <small>{hint}</small></h4>", yardstick.title);
    for (server, spread) in rows {
        let value = figure(spread.median, yardstick.unit);
        let echo = model.share_of_echo(&facts.name, &server.name, yardstick.column);
        let share = echo.map_or_else(String::new, |share| format!(", {} the echo", ratio(share)));
        let title = format!("{}: {value} ({}){share}", server.name, range(&spread, yardstick.unit));
        let is_bound = yardstick.needs_saturation && model.is_generator_bound(&facts.name, &server.name);
        let strip = plot::bar(&spread, max, limit, class_of(server), &title);
        let value = if is_bound { format!("{value} g") } else { value };
        row(out, server, if is_bound { " bound" } else { "" }, &strip, &value, &title);
    }
    out.push_str("</div>\n");
}

/// Bars of lost queries, and of the time in which these count, if any server lost some.
fn loss_card(out: &mut String, model: &Model, facts: &ScenarioFacts, servers: &[&ServerFacts]) {
    let lost = |server: &&ServerFacts| model.spread(&facts.name, &server.name, "loss_percent");
    if servers.iter().filter_map(lost).any(|spread| spread.high > 0.0) {
        bar_card(out, model, facts, servers, &LOSS);
        bar_card(out, model, facts, servers, &IN_SYSTEM);
    }
}

/// Strips from the median to the slowest answer.
fn latency_card(out: &mut String, model: &Model, facts: &ScenarioFacts, servers: &[&ServerFacts]) {
    let median = |server: &ServerFacts, column: &str| {
        model.spread(&facts.name, &server.name, column).map(|spread| spread.median)
    };
    let mut rows: Vec<(&ServerFacts, Latencies)> = servers
        .iter()
        .filter_map(|server| {
            let of = Latencies {
                p50: median(server, "latency_p50_us")?,
                p95: median(server, "latency_p95_us")?,
                p99: median(server, "latency_p99_us")?,
                max: median(server, "latency_max_us")?,
            };
            Some((*server, of))
        })
        .collect();
    rows.sort_by(|(_, a), (_, b)| a.p50.total_cmp(&b.p50));
    let Some(scale) = Logarithmic::over(rows.iter().flat_map(|(_, of)| [of.p50, of.max])) else { return };
    out.push_str(
        "<div class=\"card\"><h4>Latency <small>mark: p50, bars: to p95 and p99, line: slowest; logarithmic</small></h4>\n",
    );
    for (server, of) in rows {
        let [p50, p95, p99, max] = [of.p50, of.p95, of.p99, of.max].map(|value| figure(value, "µs"));
        let title = format!("{}: p50 {p50}, p95 {p95}, p99 {p99}, slowest {max}", server.name);
        row(out, server, "", &plot::latencies(&of, scale, class_of(server), &title), &p50, &title);
    }
    out.push_str("<div class=\"row\"><span></span><div class=\"axis\">");
    for mark in scale.marks() {
        let _ = write!(out, "<span style=\"left:{:.1}%\">{}</span>", 100.0 * scale.share(mark), round(mark));
    }
    out.push_str("</div><span></span></div></div>\n");
}

/// Writes a mark of a scale, which is a round number of microseconds.
fn round(mark: f64) -> String {
    let text = figure(mark, "µs");
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// The course of each server's run with the median recovery.
fn course_card(out: &mut String, model: &Model, facts: &ScenarioFacts, servers: &[&ServerFacts]) {
    let courses: Vec<&Course> = model.courses.iter().filter(|course| course.scenario == facts.name).collect();
    let Some(first) = courses.first() else { return };
    let slices = courses.iter().map(|course| course.moments.len()).max().unwrap_or(1);
    let max =
        courses.iter().flat_map(|course| &course.moments).map(|moment| moment.answered).fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "<div class=\"card\"><h4>Course of a run <small>answers a tenth of a second; red: lost or wrong; {}</small></h4>",
        escape(&first.told())
    );
    for server in servers {
        let mut own: Vec<&&Course> = courses.iter().filter(|course| course.server == server.name).collect();
        // The run whose harm is in the middle stands for all.
        own.sort_by(|a, b| a.harmed().total_cmp(&b.harmed()));
        let Some(shown) = own.get(own.len() / 2) else { continue };
        let recoveries: Vec<f64> = own.iter().filter_map(|course| course.recovery_s()).collect();
        let value = match Spread::of(recoveries.iter().copied()) {
            Some(spread) if recoveries.len() == own.len() => format!("{:.1} s", spread.median),
            _ => "never".to_owned(),
        };
        let title = format!(
            "{}: recovered {value} after the last event, {} queries lost or answered wrongly, slowest answer {}",
            server.name,
            digits(shown.harmed()),
            figure(shown.slowest_us(), "µs")
        );
        row(out, server, "", &plot::course(shown, max, slices, class_of(server), &title), &value, &title);
    }
    let _ = writeln!(
        out,
        "<div class=\"row\"><span></span><div class=\"axis\">{}</div><span></span></div></div>",
        (0..=slices / 10).fold(String::new(), |mut marks, second| {
            let left = 1000.0 * second as f64 / slices as f64;
            let _ = write!(marks, "<span style=\"left:{left:.1}%\">{second} s</span>");
            marks
        })
    );
}

fn bound_note(out: &mut String, model: &Model, facts: &ScenarioFacts, servers: &[&ServerFacts]) {
    let bound: Vec<String> = servers
        .iter()
        .filter(|server| model.is_generator_bound(&facts.name, &server.name))
        .filter_map(|server| {
            let busy = model.spread(&facts.name, &server.name, "busy_share")?;
            Some(format!("{} ({:.0} %)", escape(&server.name), 100.0 * busy.median))
        })
        .collect();
    if !bound.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"bound-note\">Generator-bound (g): the load generator, not the server, limited the throughput of {}; the \
             number is how busy the server's core was. CPU per query is to be compared there.</p>",
            bound.join(", ")
        );
    }
}

fn notes(out: &mut String, model: &Model, scenario: &str) {
    let failures = model.failures.iter().map(|note| ("not timed: ", note));
    let remarks = model.remarks.iter().map(|note| ("", note));
    let notes: Vec<String> = failures
        .chain(remarks)
        .filter(|(_, note)| note.scenario == scenario)
        .map(|(prefix, note)| format!("<li>{}: {prefix}{}</li>", escape(&note.server), escape(&note.text)))
        .collect();
    if !notes.is_empty() {
        let _ = writeln!(
            out,
            "<details><summary>Remarks ({})</summary><ul class=\"notes\">{}</ul></details>",
            notes.len(),
            notes.concat()
        );
    }
}

/// What the scenario takes by what the one beside it takes.
fn beside(out: &mut String, model: &Model, facts: &ScenarioFacts) {
    let Some(beside) = Beside::of(model, facts) else { return };
    let _ = write!(
        out,
        "<details open><summary>By {}, run in turn with it</summary><div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>server</th>",
        escape(beside.other)
    );
    for yardstick in COMPARED {
        let _ = write!(out, "<th>{}</th>", yardstick.title);
    }
    out.push_str("</tr></thead><tbody>\n");
    for (server, ratios) in &beside.servers {
        let _ = write!(out, "<tr><td>{}</td>", escape(server));
        for value in ratios {
            let _ = match value {
                Some(value) => write!(out, "<td data-value=\"{value}\">{}</td>", ratio(*value)),
                None => write!(out, "<td class=\"none\" data-value=\"-1\">g</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div></details>\n");
}

fn full_table(out: &mut String, model: &Model, scenario: &str, servers: &[&ServerFacts]) {
    out.push_str("<details><summary>All figures</summary><div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>server</th>");
    for (title, ..) in COLUMNS {
        let _ = write!(out, "<th>{title}</th>");
        if title == "CPU per query" {
            out.push_str("<th>Gannet by it</th>");
        }
    }
    out.push_str("</tr></thead><tbody>\n");
    for server in servers {
        let _ = write!(out, "<tr><td>{}</td>", escape(&server.name));
        for (title, column, unit) in COLUMNS {
            match model.spread(scenario, &server.name, column) {
                Some(spread) => {
                    let shown = |value: f64| match unit {
                        "share" => format!("{:.0} %", 100.0 * value),
                        "" => digits(value),
                        unit => figure(value, unit),
                    };
                    let share = YARDSTICKS.iter().find(|yardstick| yardstick.column == column);
                    let share = share.and_then(|_| model.share_of_echo(scenario, &server.name, column));
                    let share = share
                        .map_or_else(String::new, |share| format!("<small>{} echo</small>", ratio(share)));
                    let _ = write!(
                        out,
                        "<td data-value=\"{}\">{}<small>{}–{}</small>{share}</td>",
                        spread.median,
                        shown(spread.median),
                        shown(spread.low),
                        shown(spread.high)
                    );
                }
                None => out.push_str("<td class=\"none\" data-value=\"-1\">–</td>"),
            }
            if title == "CPU per query" {
                let comparison = model.comparison(scenario, &server.name, &YARDSTICKS[0]);
                match comparison.filter(|_| server.name != OURS) {
                    Some(comparison) => {
                        let verdict = comparison.verdict;
                        let _ = write!(
                            out,
                            "<td class=\"{}\" data-value=\"{}\">{} {}<small>{}–{}</small></td>",
                            verdict.class(),
                            comparison.ratio.median,
                            verdict.sign(),
                            ratio(comparison.ratio.median),
                            digits(comparison.ratio.low),
                            digits(comparison.ratio.high)
                        );
                    }
                    None => out.push_str("<td class=\"none\" data-value=\"-1\">–</td>"),
                }
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div></details>\n");
}

/// What dnsperf found beside our own generator, if it was asked.
fn cross_check(out: &mut String, model: &Model, scenario: &str) {
    let Some(check) = CrossCheck::of(model, scenario) else { return };
    out.push_str(
        "<details><summary>Cross-check by dnsperf</summary><div class=\"scroll\"><table class=\"sortable\"><thead><tr>\
         <th>server</th><th>throughput</th><th>by dnsperf</th><th>ratio</th><th>mean latency</th><th>by dnsperf</th>\
         <th>ratio</th><th>CPU per query</th><th>by dnsperf</th><th>ratio</th></tr></thead><tbody>\n",
    );
    for (server, pairs) in &check.servers {
        let _ = write!(out, "<tr><td>{}</td>", escape(server));
        for ([own, other], unit) in pairs.iter().zip(["q/s", "µs", "µs"]) {
            let _ = write!(
                out,
                "<td data-value=\"{own}\">{}</td><td data-value=\"{other}\">{}</td><td>{}</td>",
                figure(*own, unit),
                figure(*other, unit),
                digits(own / other)
            );
        }
        out.push_str("</tr>\n");
    }
    let _ =
        writeln!(out, "</tbody></table></div><p class=\"about\">{}</p></details>", escape(&check.verdict()));
}
