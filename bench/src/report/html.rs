//! The report as one page of HTML that needs nothing else: style, plots and script are inside.

use std::fmt::Write as _;

use super::beside::{Beside, COMPARED};
use super::cross_check::CrossCheck;
use super::environment;
use super::metric::{YARDSTICKS, Yardstick};
use super::model::{Course, ECHO, Model, OURS, ScenarioFacts, ServerFacts};
use super::plot::{self, Latencies, Logarithmic, escape};
use super::series::{SeriesCell, SeriesTable};
use super::statistics::{Better, Comparison, Spread, Verdict};
use super::text::{digits, figure, rate, ratio};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

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

impl Verdict {
    const fn class(self) -> &'static str {
        match self {
            Self::Ahead => "good",
            Self::Behind => "bad",
            Self::Neutral => "neutral",
        }
    }

    /// A sign beside the colour, for those who cannot tell the colours apart.
    const fn sign(self) -> &'static str {
        match self {
            Self::Ahead => "▲",
            Self::Behind => "▼",
            Self::Neutral => "≈",
        }
    }
}

/// Writes the page.
pub(super) fn page(model: &Model) -> String {
    let mut out = String::with_capacity(1 << 20);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Gannet benchmark, {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escape(&model.date)
    );
    header(&mut out, model);
    summary(&mut out, model);
    for table in SeriesTable::all(model) {
        series(&mut out, &table);
    }
    out.push_str("<h2 id=\"scenarios\">Scenarios</h2>\n");
    out.push_str("<input id=\"filter\" type=\"search\" placeholder=\"filter scenarios\" aria-label=\"filter scenarios\" hidden>\n");
    for facts in &model.scenarios {
        scenario(&mut out, model, facts);
    }
    method(&mut out, model);
    let _ = write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

fn header(out: &mut String, model: &Model) {
    let rivals = model.rival_programs();
    let kernel = fact(model, "kernel").split(' ').take(2).collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        out,
        "<header>\n<h1>Gannet beside {rivals} other DNS {}</h1>\n<p class=\"sub\">{}</p>",
        if rivals == 1 { "server" } else { "servers" },
        [model.date.as_str(), fact(model, "processor"), kernel.as_str()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(escape)
            .collect::<Vec<_>>()
            .join(" · ")
    );
    versions(out, model);
    commits(out, model);
    out.push_str("<div class=\"cards tallies\">\n");
    for yardstick in YARDSTICKS.iter().filter(|yardstick| yardstick.column != "latency_sd_us") {
        tally(out, model, yardstick);
    }
    out.push_str("</div>\n</header>\n");
}

/// Names the programs with their releases, ours first; a variant is not one of them.
fn versions(out: &mut String, model: &Model) {
    let is_ours = |server: &&ServerFacts| server.name == OURS;
    let ours = model.servers.iter().filter(is_ours);
    let mut seen: Vec<&str> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for server in ours.chain(model.rivals()) {
        if seen.contains(&server.program()) {
            continue;
        }
        seen.push(server.program());
        names.push(match server.release() {
            Some(release) => format!("{} <b>{}</b>", escape(&server.name), escape(release)),
            None => escape(&server.name),
        });
    }
    let variants: Vec<String> =
        model.servers.iter().filter(|it| it.variant_of.is_some()).map(|it| escape(&it.name)).collect();
    let _ = write!(out, "<p class=\"versions\">{}", names.join(" · "));
    if !variants.is_empty() {
        let _ = write!(out, "<br><span class=\"sub\">set up in another way: {}</span>", variants.join(", "));
    }
    out.push_str("</p>\n");
}

/// Names the commit that was measured, or says that there were several.
fn commits(out: &mut String, model: &Model) {
    let mut commits: Vec<&str> = environment::commits_of(&model.environment).collect();
    commits.sort_unstable();
    commits.dedup();
    let _ = match commits[..] {
        [] => Ok(()),
        [only] => writeln!(out, "<p class=\"sub\">Gannet at commit {}</p>", escape(only)),
        [..] => writeln!(
            out,
            "<p class=\"bound-note\">Put together from sessions of several commits of Gannet: {}. Figures of different sessions are \
             not figures of one program.</p>",
            escape(&commits.join(", "))
        ),
    };
}

/// Returns a line of the environment.
fn fact<'a>(model: &'a Model, name: &str) -> &'a str {
    let mut lines = model.environment.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(label, _)| *label == name).map_or("", |(_, text)| text)
}

/// A card that counts the comparisons by one yardstick.
fn tally(out: &mut String, model: &Model, yardstick: &Yardstick) {
    let mut counts = [0_usize; 3];
    for facts in &model.scenarios {
        for rival in model.rivals() {
            if let Some(comparison) = model.comparison(&facts.name, &rival.name, yardstick) {
                counts[match comparison.verdict {
                    Verdict::Ahead => 0,
                    Verdict::Neutral => 1,
                    Verdict::Behind => 2,
                }] += 1;
            }
        }
    }
    let [ahead, neutral, behind] = counts;
    let all = ahead + neutral + behind;
    if all == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "<div class=\"card tally\"><h4>{}</h4><b>{ahead}</b> <span class=\"of\">of {all} ahead</span>\
         <div class=\"share\" aria-hidden=\"true\">{}{}{}</div>\
         <span class=\"of\">{neutral} within the noise, {behind} behind</span></div>",
        yardstick.title,
        share("good", ahead),
        share("neutral", neutral),
        share("bad", behind)
    );
}

fn share(class: &str, count: usize) -> String {
    if count == 0 { String::new() } else { format!("<i class=\"{class}\" style=\"flex:{count}\"></i>") }
}

fn summary(out: &mut String, model: &Model) {
    out.push_str(
        "<h2 id=\"summary\">Summary</h2>\n<p>Each cell is Gannet's figure by the other server's, the median of the ratios of \
         runs that followed each other. Of throughput more is better, of everything else less.</p>\n\
         <div class=\"legend\"><span class=\"chip good\">▲ Gannet is better</span><span class=\"chip bad\">▼ Gannet is \
         worse</span><span class=\"chip neutral\">≈ within the noise</span><span>g: the load generator was the limit</span>\
         <span>–: not run, with the reason below</span></div>\n<div class=\"tabs\">\n",
    );
    for (at, yardstick) in YARDSTICKS.iter().enumerate() {
        let checked = if at == 0 { " checked" } else { "" };
        let _ = writeln!(
            out,
            "<input type=\"radio\" name=\"yardstick\" id=\"y{at}\"{checked}><label for=\"y{at}\">{}</label>",
            yardstick.title
        );
    }
    out.push_str("<style>");
    for at in 0..YARDSTICKS.len() {
        let _ = write!(out, "#y{at}:checked~.pane{at}{{display:block}}");
    }
    out.push_str("</style>\n");
    for (at, yardstick) in YARDSTICKS.iter().enumerate() {
        let _ = writeln!(out, "<div class=\"pane pane{at}\"><div class=\"scroll\">");
        matrix(out, model, yardstick);
        out.push_str("</div></div>\n");
    }
    out.push_str("</div>\n");
}

/// Share of a core and latency at each rate, server by server.
fn series(out: &mut String, table: &SeriesTable<'_>) {
    let titles: &[&str] =
        if table.has_quota { &["CPU", "p50", "p99", "stopped"] } else { &["CPU", "p50", "p99"] };
    let _ = write!(
        out,
        "<h2 id=\"{}\">{}</h2>\n<p class=\"about\">{}</p>\n<div class=\"scroll\"><table class=\"series\"><thead><tr><th>queries a second</th>",
        table.name,
        table.title,
        escape(table.about)
    );
    for server in &table.servers {
        let class = if server.program() == OURS { " class=\"ours\"" } else { "" };
        let _ = write!(
            out,
            "<th colspan=\"{}\"{class} title=\"{}\">{}</th>",
            titles.len(),
            escape(&server.about),
            escape(&server.name)
        );
    }
    out.push_str("</tr><tr><th></th>");
    for _ in &table.servers {
        for title in titles {
            let _ = write!(out, "<th>{title}</th>");
        }
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        let name = escape(row.scenario);
        let _ = write!(out, "<tr><th><a href=\"#{name}\">{}</a></th>", rate(row.rate));
        for cell in &row.cells {
            match cell {
                Some(cell) => series_cell(out, cell, table.has_quota),
                None => out.push_str(&"<td class=\"none\">–</td>".repeat(titles.len())),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn series_cell(out: &mut String, cell: &SeriesCell, has_quota: bool) {
    // Who loses queries has short latencies.
    let lost = if cell.loss_percent > 0.0 {
        format!("<small>{} lost</small>", figure(cell.loss_percent, "%"))
    } else {
        String::new()
    };
    let _ = write!(
        out,
        "<td>{}</td><td>{}</td><td>{}{lost}</td>",
        figure(cell.busy_percent, "%"),
        figure(cell.p50_us, "µs"),
        figure(cell.p99_us, "µs")
    );
    if has_quota {
        let stopped = cell.throttled_percent.map_or_else(|| "–".to_owned(), |share| figure(share, "%"));
        let _ = write!(out, "<td>{stopped}</td>");
    }
}

/// A table of all scenarios and rivals by one yardstick.
fn matrix(out: &mut String, model: &Model, yardstick: &Yardstick) {
    let rivals: Vec<&ServerFacts> = model.columns().collect();
    let _ = write!(
        out,
        "<table class=\"matrix\"><thead><tr><th>{}</th><th>Gannet</th><th>by echo</th>",
        yardstick.title
    );
    for rival in &rivals {
        let variant = match &rival.variant_of {
            Some(of) => format!("<small>variant of {}</small>", escape(of)),
            None => String::new(),
        };
        let _ = write!(out, "<th title=\"{}\">{}{variant}</th>", escape(&rival.about), escape(&rival.name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for facts in &model.scenarios {
        let (name, about) = (escape(&facts.name), escape(&facts.about));
        let _ = write!(
            out,
            "<tr data-scenario=\"{name}\" data-about=\"{about}\"><th title=\"{about}\"><a href=\"#{name}\">{name}</a></th>"
        );
        match model.spread(&facts.name, OURS, yardstick.column) {
            Some(spread) => {
                let _ = write!(
                    out,
                    "<td title=\"{}\">{}</td>",
                    range(&spread, yardstick.unit),
                    figure(spread.median, yardstick.unit)
                );
            }
            None => out.push_str("<td class=\"none\">–</td>"),
        }
        match model.share_of_echo(&facts.name, OURS, yardstick.column) {
            Some(share) => {
                let _ = write!(out, "<td>{}</td>", ratio(share));
            }
            None => out.push_str("<td class=\"none\">–</td>"),
        }
        for rival in &rivals {
            cell(out, model, &facts.name, &rival.name, yardstick);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>");
}

fn cell(out: &mut String, model: &Model, scenario: &str, rival: &str, yardstick: &Yardstick) {
    if let Some(comparison) = model.comparison(scenario, rival, yardstick) {
        let verdict = comparison.verdict;
        let _ = write!(
            out,
            "<td class=\"{}\" title=\"{}\">{} {}</td>",
            verdict.class(),
            escape(&told(model, scenario, rival, yardstick, &comparison)),
            verdict.sign(),
            ratio(comparison.ratio.median)
        );
    } else if model.records(scenario, rival).next().is_some()
        && model.records(scenario, OURS).next().is_some()
    {
        out.push_str("<td class=\"none\" title=\"the load generator was the limit\">g</td>");
    } else {
        let all = model.failures.iter().chain(&model.remarks);
        let why = all.filter(|note| note.scenario == scenario && note.server == rival);
        let why: Vec<&str> = why.map(|note| note.text.as_str()).collect();
        let _ = write!(out, "<td class=\"none\" title=\"{}\">–</td>", escape(&why.join("; ")));
    }
}

/// Says a comparison in words.
fn told(
    model: &Model,
    scenario: &str,
    rival: &str,
    yardstick: &Yardstick,
    comparison: &Comparison,
) -> String {
    let median = |server: &str| {
        let spread = model.spread(scenario, server, yardstick.column);
        spread.map_or_else(|| "–".to_owned(), |spread| figure(spread.median, yardstick.unit))
    };
    format!(
        "{scenario}: Gannet {}, {rival} {}; ratio {} ({}–{}, interval {}–{}, {} rounds)",
        median(OURS),
        median(rival),
        digits(comparison.ratio.median),
        digits(comparison.ratio.low),
        digits(comparison.ratio.high),
        digits(comparison.interval.0),
        digits(comparison.interval.1),
        comparison.ratio.count
    )
}

fn range(spread: &Spread, unit: &str) -> String {
    format!("{} to {}, {} runs", figure(spread.low, unit), figure(spread.high, unit), spread.count)
}

fn scenario(out: &mut String, model: &Model, facts: &ScenarioFacts) {
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

fn method(out: &mut String, model: &Model) {
    out.push_str("<h2 id=\"method\">How it was measured</h2>\n");
    for sentence in model.method.iter().map(String::as_str).chain(super::RULES) {
        let _ = writeln!(out, "<p>{}</p>", escape(sentence));
    }
    for command in &model.commands {
        let _ = writeln!(out, "<pre>{}</pre>", escape(command));
    }
    out.push_str("<h2 id=\"servers\">Servers</h2>\n<div class=\"scroll\"><table><thead><tr><th>server</th><th class=\"left\">version</th><th class=\"left\">set up</th></tr></thead><tbody>\n");
    for server in &model.servers {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"left\">{}</td><td class=\"left\">{}</td></tr>",
            escape(&server.name),
            escape(&server.version),
            escape(&server.about)
        );
    }
    for (name, reason) in &model.skipped {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"left bad\">skipped</td><td class=\"left\">{}</td></tr>",
            escape(name),
            escape(reason)
        );
    }
    out.push_str("</tbody></table></div>\n");
    if !model.pending.is_empty() {
        out.push_str("<h2 id=\"pending\">Pending scenarios</h2>\n<ul class=\"notes\">\n");
        for (name, needs) in &model.pending {
            let _ = writeln!(out, "<li><code>{}</code> waits for {}.</li>", escape(name), escape(needs));
        }
        out.push_str("</ul>\n");
    }
    let _ = writeln!(
        out,
        "<h2 id=\"machine\">Machine</h2>\n<pre>{}</pre>\n<p class=\"sub\">The raw data lie beside this page: <code>raw.tsv</code>, \
         <code>aggregate.tsv</code>, <code>session.tsv</code>, <code>environment.txt</code>.</p>",
        escape(model.environment.trim_end())
    );
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{beside as beside_example, course, example};
    use super::super::series::tests::at_rates;
    use super::*;

    #[test]
    fn the_summary_shows_ratios_with_their_verdict() {
        let page = page(&example());
        assert!(page.contains("<td class=\"good\" title=\"cache-warm: Gannet 4.08 µs, rival 8.16 µs; ratio 0.50 (0.50–0.50, interval 0.50–0.50, 5 rounds)\">▲ 0.50 ×</td>"), "no cell");
        assert!(page.contains("<b>1</b> <span class=\"of\">of 1 ahead</span>"));
    }

    #[test]
    fn what_was_not_run_is_named_with_its_reason() {
        let mut model = example();
        model.records.retain(|record| record.server != "rival");
        let page = page(&model);
        assert!(page.contains("<td class=\"none\" title=\"does not copy RD\">–</td>"));
        assert!(page.contains("<td>mosdns</td><td class=\"left bad\">skipped</td>"));
        assert!(page.contains("<li><code>zones</code> waits for authoritative zones.</li>"));
    }

    #[test]
    fn a_generator_that_was_the_limit_is_marked() {
        let mut model = example();
        let busy = super::super::metric::place("busy_share").expect("a column");
        for record in model.records.iter_mut().filter(|record| record.server == "rival") {
            record.figures[busy] = 0.5;
        }
        let page = page(&model);
        assert!(page.contains("<td class=\"none\" title=\"the load generator was the limit\">g</td>"));
        assert!(page.contains("limited the throughput of rival (50 %)"));
    }

    #[test]
    fn text_of_others_cannot_break_the_page() {
        let page = page(&example());
        assert!(page.contains("one &lt;thread&gt;") && !page.contains("one <thread>"));
    }

    #[test]
    fn the_header_names_programs_with_their_releases_and_counts_no_variant() {
        let mut model = example();
        model.servers[2].version = "rivald, Rival DNS 3.5.8".to_owned();
        let variant = ServerFacts {
            name: "rival-xdp".to_owned(),
            variant_of: Some("rival".to_owned()),
            ..model.servers[2].clone()
        };
        model.servers.push(variant);
        model.environment.push_str("commit: 0123abcd\n");
        let page = page(&model);
        let header = page.split("</header>").next().expect("a header");
        for text in [
            "Gannet beside 1 other DNS server<",
            "gannet <b>1.0</b> · rival <b>3.5.8</b><br>",
            "set up in another way: rival-xdp<",
            "Gannet at commit 0123abcd<",
        ] {
            assert!(header.contains(text), "{text}\n{header}");
        }
        model.environment.push_str("\n\nkernel: Linux 6.1\ncommit: 4567\n");
        assert!(super::page(&model).contains("sessions of several commits of Gannet: 0123abcd, 4567."));
    }

    #[test]
    fn time_in_the_system_stands_beside_latency_where_queries_are_lost() {
        let mut model = example();
        assert!(page(&model).contains("<h4>Time in the system <small>"));
        let loss = super::super::metric::place("loss_percent").expect("a column");
        for record in &mut model.records {
            record.figures[loss] = 0.0;
        }
        assert!(!page(&model).contains("<h4>Time in the system <small>"));
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = page(&example());
        for reference in ["src=", "url(", "@import", "http://", "https://", "<link"] {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    #[test]
    fn every_element_that_is_opened_is_closed() {
        let mut model = at_rates("rates");
        model.merge(beside_example());
        model.courses.push(course(&[100.0, 100.0, 100.0, 0.0, 0.0, 0.0, 100.0, 100.0]));
        let page = page(&model);
        assert!(page.contains("By cache-warm") && page.contains(">1.10 ×<"), "{page}");
        assert!(page.contains("<a href=\"#rate-20k\">20,000</a></th><td>20.0 %</td>"), "{page}");
        for element in
            ["div", "section", "table", "tr", "td", "svg", "details", "ul", "li", "span", "p", "h3"]
        {
            let opened =
                page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
            assert!(opened > 0, "{element}");
        }
    }
}
