//! The report as one page of HTML that needs nothing else: style, plots and script are inside.

mod scenario;

use std::fmt::Write as _;

use super::environment;
use super::metric::{YARDSTICKS, Yardstick};
use super::model::{Model, OURS, ServerFacts};
use super::plot::escape;
use super::series::{SeriesCell, SeriesTable};
use super::statistics::{Comparison, Spread, Verdict};
use super::text::{digits, figure, rate, ratio};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

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
        scenario::write(&mut out, model, facts);
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
