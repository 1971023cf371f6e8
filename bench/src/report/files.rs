//! A session's findings as tables of tab-separated values, and back.
//!
//! `raw.tsv` has a line per run, `courses.tsv` a line per tenth of a second of the runs during
//! which something happened, `session.tsv` a line per fact, and `aggregate.tsv`, which is not read
//! back, a line per figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::metric::METRICS;
use super::model::{Course, ECHO, Incident, Model, Moment, Note, Record, ScenarioFacts, ServerFacts};

/// Columns of `raw.tsv` before the figures.
const RAW_KEYS: &str = "scenario\tserver\tround";
/// Columns of `courses.tsv`.
const COURSE_COLUMNS: &str = "scenario\tserver\tround\tslice\tanswered\twrong\tlost\tlatency_max_us";

/// Writes all tables of `model` into `directory`.
pub(super) fn write(directory: &Path, model: &Model) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    put(directory, "raw.tsv", &raw(model))?;
    put(directory, "aggregate.tsv", &aggregate(model))?;
    put(directory, "session.tsv", &session(model))?;
    put(directory, "environment.txt", &model.environment)?;
    if model.courses.is_empty() { Ok(()) } else { put(directory, "courses.tsv", &courses(model)) }
}

/// Writes one file.
pub(super) fn put(directory: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads what [`write`] wrote.
pub(super) fn read(directory: &Path) -> Result<Model, String> {
    let text = |name: &str| {
        let path = directory.join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut model = Model { environment: text("environment.txt")?, ..Model::default() };
    let at = |name: &str, error: String| format!("{}:{error}", directory.join(name).display());
    parse_session(&text("session.tsv")?, &mut model).map_err(|error| at("session.tsv", error))?;
    model.records = parse_raw(&text("raw.tsv")?).map_err(|error| at("raw.tsv", error))?;
    if directory.join("courses.tsv").exists() {
        parse_courses(&text("courses.tsv")?, &mut model).map_err(|error| at("courses.tsv", error))?;
    }
    Ok(model)
}

fn raw(model: &Model) -> String {
    let mut out = RAW_KEYS.to_owned();
    for metric in &METRICS {
        let _ = write!(out, "\t{}", metric.name);
    }
    out.push('\n');
    for record in &model.records {
        let _ = write!(out, "{}\t{}\t{}", record.scenario, record.server, record.round + 1);
        for figure in &record.figures {
            let _ = write!(out, "\t{}", plain(*figure));
        }
        out.push('\n');
    }
    out
}

/// Writes a figure with at most four decimals.
fn plain(figure: f64) -> String {
    let text = format!("{figure:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn parse_raw(text: &str) -> Result<Vec<Record>, String> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let columns: Vec<&str> = header.split('\t').collect();
    if !header.starts_with(RAW_KEYS) {
        return Err(format!("1: expected columns that begin with {RAW_KEYS:?}"));
    }
    let places: Vec<Option<usize>> =
        METRICS.iter().map(|metric| columns.iter().position(|column| *column == metric.name)).collect();
    let mut records = Vec::new();
    for (at, line) in lines.enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let fault = |what: &str| format!("{}: {what}", at + 2);
        let [scenario, server, round, ..] = fields[..] else { return Err(fault("too few fields")) };
        let figures: Result<Vec<f64>, String> = places
            .iter()
            .map(|place| match place {
                Some(place) => fields
                    .get(*place)
                    .and_then(|field| field.parse().ok())
                    .ok_or_else(|| fault(&format!("no figure in field {}", place + 1))),
                // A table of an older version lacks it.
                None => Ok(f64::NAN),
            })
            .collect();
        let round: usize = round.parse().map_err(|_| fault("no round"))?;
        let round = round.checked_sub(1).ok_or_else(|| fault("rounds count from 1"))?;
        let (scenario, server) = (scenario.to_owned(), server.to_owned());
        records.push(Record { scenario, server, round, figures: figures? });
    }
    Ok(records)
}

fn aggregate(model: &Model) -> String {
    let mut out =
        "scenario\tserver\tmetric\tmedian\tlow\tfirst_quartile\tthird_quartile\thigh\truns\tmedian_ratio_to_echo\n"
            .to_owned();
    for scenario in &model.scenarios {
        for server in model.timed(&scenario.name) {
            for metric in &METRICS {
                let Some(spread) = model.spread(&scenario.name, &server.name, metric.name) else { continue };
                let ratio = model.share_of_echo(&scenario.name, &server.name, metric.name);
                let _ = writeln!(
                    out,
                    "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                    scenario.name,
                    server.name,
                    metric.name,
                    plain(spread.median),
                    plain(spread.low),
                    plain(spread.first_quartile),
                    plain(spread.third_quartile),
                    plain(spread.high),
                    spread.count,
                    ratio.filter(|_| server.name != ECHO).map_or_else(|| "-".to_owned(), plain),
                );
            }
        }
    }
    out
}

/// Makes a text fit into one field.
fn field(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

fn session(model: &Model) -> String {
    let mut out = String::new();
    let mut line = |fields: &[&str]| {
        let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
        let _ = writeln!(out, "{}", fields.join("\t"));
    };
    line(&["date", &model.date]);
    for command in &model.commands {
        line(&["command", command]);
    }
    for sentence in &model.method {
        line(&["method", sentence]);
    }
    for server in &model.servers {
        let kind = if server.is_echo { "echo" } else { "dns" };
        line(&["server", &server.name, kind, &server.version, &server.about]);
        if let Some(of) = &server.variant_of {
            line(&["variant", &server.name, of]);
        }
    }
    for (name, reason) in &model.skipped {
        line(&["skipped", name, reason]);
    }
    for scenario in &model.scenarios {
        let kind = if scenario.saturates { "saturating" } else { "light" };
        line(&["scenario", &scenario.name, kind, &scenario.load, &scenario.about]);
        if let Some(other) = &scenario.beside {
            line(&["beside", &scenario.name, other]);
        }
        if let Some((series, rate)) = &scenario.series {
            line(&["series", &scenario.name, series, &plain(*rate)]);
        }
    }
    for (name, needs) in &model.pending {
        line(&["pending", name, needs]);
    }
    for note in &model.failures {
        line(&["failure", &note.scenario, &note.server, &note.text]);
    }
    for note in &model.remarks {
        line(&["remark", &note.scenario, &note.server, &note.text]);
    }
    for course in &model.courses {
        for incident in &course.incidents {
            let (round, at, took) =
                ((course.round + 1).to_string(), plain(incident.at_s), plain(incident.took_ms));
            line(&["incident", &course.scenario, &course.server, &round, &at, &took, &incident.what]);
        }
    }
    out
}

fn parse_session(text: &str, model: &mut Model) -> Result<(), String> {
    let note = |scenario: &str, server: &str, text: &str| Note {
        scenario: scenario.to_owned(),
        server: server.to_owned(),
        text: text.to_owned(),
    };
    let mut courses: BTreeMap<(String, String, usize), Vec<Incident>> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let fault = || format!("{}: not understood: {line:?}", at + 1);
        match fields[..] {
            ["date", date] => date.clone_into(&mut model.date),
            ["command", command] => model.commands.push(command.to_owned()),
            ["method", sentence] => model.method.push(sentence.to_owned()),
            ["server", name, kind @ ("echo" | "dns"), version, about] => model.servers.push(ServerFacts {
                name: name.to_owned(),
                version: version.to_owned(),
                about: about.to_owned(),
                is_echo: kind == "echo",
                variant_of: None,
            }),
            ["variant", name, of] => {
                let server = model.servers.iter_mut().find(|server| server.name == name);
                server.ok_or_else(fault)?.variant_of = Some(of.to_owned());
            }
            ["skipped", name, reason] => model.skipped.push((name.to_owned(), reason.to_owned())),
            ["scenario", name, kind @ ("saturating" | "light"), load, about] => {
                model.scenarios.push(ScenarioFacts {
                    name: name.to_owned(),
                    about: about.to_owned(),
                    load: load.to_owned(),
                    saturates: kind == "saturating",
                    beside: None,
                    series: None,
                });
            }
            ["series", name, series, rate] => {
                let rate = rate.parse().map_err(|_| fault())?;
                let scenario = model.scenarios.iter_mut().find(|scenario| scenario.name == name);
                scenario.ok_or_else(fault)?.series = Some((series.to_owned(), rate));
            }
            ["beside", name, other] => {
                let scenario = model.scenarios.iter_mut().find(|scenario| scenario.name == name);
                scenario.ok_or_else(fault)?.beside = Some(other.to_owned());
            }
            ["pending", name, needs] => model.pending.push((name.to_owned(), needs.to_owned())),
            ["failure", scenario, server, text] => model.failures.push(note(scenario, server, text)),
            ["remark", scenario, server, text] => model.remarks.push(note(scenario, server, text)),
            ["incident", scenario, server, round, at_s, took_ms, what] => {
                let round: usize = round.parse().map_err(|_| fault())?;
                let round = round.checked_sub(1).ok_or_else(fault)?;
                let at_s = at_s.parse().map_err(|_| fault())?;
                let took_ms = took_ms.parse().map_err(|_| fault())?;
                let key = (scenario.to_owned(), server.to_owned(), round);
                courses.entry(key).or_default().push(Incident { at_s, took_ms, what: what.to_owned() });
            }
            _ => return Err(fault()),
        }
    }
    model.courses = courses
        .into_iter()
        .map(|((scenario, server, round), incidents)| Course {
            scenario,
            server,
            round,
            incidents,
            moments: Vec::new(),
        })
        .collect();
    Ok(())
}

fn courses(model: &Model) -> String {
    let mut out = format!("{COURSE_COLUMNS}\n");
    for course in &model.courses {
        for (at, moment) in course.moments.iter().enumerate() {
            let _ = writeln!(
                out,
                "{}\t{}\t{}\t{at}\t{}\t{}\t{}\t{}",
                course.scenario,
                course.server,
                course.round + 1,
                moment.answered,
                moment.wrong,
                moment.lost,
                plain(moment.latency_max_us)
            );
        }
    }
    out
}

fn parse_courses(text: &str, model: &mut Model) -> Result<(), String> {
    for (at, line) in text.lines().enumerate().skip(1) {
        let fault = || format!("{}: not understood: {line:?}", at + 1);
        let fields: Vec<&str> = line.split('\t').collect();
        let [scenario, server, round, _, answered, wrong, lost, latency] = fields[..] else {
            return Err(fault());
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| fault());
        let moment = Moment {
            answered: number(answered)?,
            wrong: number(wrong)?,
            lost: number(lost)?,
            latency_max_us: number(latency)?,
        };
        let round: usize = round.parse().map_err(|_| fault())?;
        let course = model.courses.iter_mut().find(|course| {
            course.scenario == scenario && course.server == server && course.round + 1 == round
        });
        course.ok_or_else(fault)?.moments.push(moment);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{beside, course};
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let directory = std::env::temp_dir().join(format!("gannet-bench-files-{}", std::process::id()));
        let mut model = beside();
        model.servers[2].variant_of = Some("other".to_owned());
        model.scenarios[1].series = Some(("rates".to_owned(), 500.0));
        model.courses.push(course(&[1.0, 2.0, 3.0]));
        for figure in model.records.iter_mut().flat_map(|record| &mut record.figures) {
            // The tables hold four decimals.
            *figure = plain(*figure).parse().expect("a figure");
        }
        write(&directory, &model).expect("writes");
        let back = read(&directory);
        fs::remove_dir_all(&directory).expect("is ours");
        assert!(back == Ok(model));
    }

    #[test]
    fn a_table_without_a_column_reads_as_unknown() {
        let records =
            parse_raw("scenario\tserver\tround\tcpu_us_per_query\na\tb\t1\t2.5\n").expect("well-formed");
        let place = super::super::metric::place("cpu_us_per_query").expect("a column");
        assert_eq!(records[0].figures[place], 2.5);
        assert_eq!(records[0].figures.iter().filter(|figure| figure.is_nan()).count(), METRICS.len() - 1);
    }

    #[test]
    fn a_damaged_table_is_named_with_its_line() {
        assert!(parse_raw("scenario\tserver\tround\tsent\na\tb\t1\tmany\n").unwrap_err().starts_with("2:"));
        assert!(parse_raw("server\n").unwrap_err().starts_with("1:"));
        let fault = parse_session("date\tx\nwhat\n", &mut Model::default()).unwrap_err();
        assert!(fault.starts_with("2:"), "{fault}");
    }

    #[test]
    fn figures_have_no_more_digits_than_they_need() {
        assert_eq!([plain(2.0), plain(0.25), plain(1.23456), plain(100.0)], ["2", "0.25", "1.2346", "100"]);
    }
}
