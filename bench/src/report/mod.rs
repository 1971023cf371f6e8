//! What a session found, as tables for machines and as pages for people.
//!
//! Never shows a figure without its spread, nor a difference within the noise as one.

mod beside;
mod cross_check;
mod environment;
mod files;
mod html;
mod markdown;
pub mod metric;
pub mod model;
mod plot;
mod series;
pub mod statistics;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub use self::environment::{describe as environment, load_average};
pub use self::model::Model;

use self::model::{Course, Incident, Moment, Note, Record, ScenarioFacts, ServerFacts};
use crate::load::Slice;
use crate::probe::Kind;
use crate::scenario::{self, Network};
use crate::session::{Done, Findings, Generator, Plans, Remark};

/// How the figures are to be read, in sentences.
const RULES: [&str; 7] = [
    "CPU per query is the CPU time of the server's whole process tree, kernel and user, while it was timed, by right \
     answers received: the figure that moves least with the noise of a machine and with the load.",
    "The echo receives and sends datagrams in batches, or messages over TCP, and does nothing else: what the machine \
     allows at best. It is marked in the plots, and every figure is also given by the echo's.",
    "Figures are medians of the runs, spreads are from the lowest to the highest. Ratios are formed between runs of \
     one round, which followed each other, and their median is shown.",
    "A difference counts when the 95 % bootstrap interval of the median ratio leaves out 1 and the median is off by \
     more than 1 % (5 % with three or four rounds; fewer prove nothing); everything else is within the noise.",
    "A server is generator-bound when the load was to saturate it but it used less than 90 % of its cores: throughput \
     and latency are not compared then, CPU per query is.",
    "With many queries in flight latency is the length of the queue; scenarios with one query per client tell how fast \
     a server reacts.",
    "Time in the system is the queries in flight by the right answers a second (Little's law): a query that is lost holds its \
     place until it is given up, which latency, of answers alone, does not show.",
];

/// What does not come from the samples.
pub struct Facts {
    /// The environment snapshot.
    pub environment: String,
    /// Load average before and after.
    pub load_averages: [String; 2],
    /// The command line.
    pub command: String,
    /// Servers that could not be had, with the reason.
    pub skipped: Vec<(String, String)>,
    /// Versions by server.
    pub versions: Vec<(String, String)>,
    /// When it began, for people.
    pub date: String,
}

/// Writes all tables and pages of a session into `directory`.
pub fn write(directory: &Path, model: &Model) -> Result<(), String> {
    files::write(directory, model)?;
    files::put(directory, "report.md", &markdown::page(model))?;
    files::put(directory, "index.html", &html::page(model))
}

/// Reads the tables of one or more sessions as one.
pub fn read(directories: &[impl AsRef<Path>]) -> Result<Model, String> {
    let mut model = Model::default();
    for directory in directories {
        model.merge(files::read(directory.as_ref())?);
    }
    Ok(model)
}

/// Writes a session as `part` of the snapshot of `version` below `snapshots`, and the snapshot's
/// pages from all its parts; returns the snapshot's directory.
pub fn add_to_snapshot(
    snapshots: &Path,
    version: &str,
    part: &str,
    model: &Model,
) -> Result<PathBuf, String> {
    check_snapshot(snapshots, version, part, &model.environment)?;
    let directory = snapshots.join(version);
    let parts = directory.join("parts");
    files::write(&parts.join(part), model)?;
    let entries = fs::read_dir(&parts).map_err(|error| format!("{}: {error}", parts.display()))?;
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.sort();
    let whole = read(&all)?;
    write(&directory, &whole)?;
    if !directory.join("README.md").exists() {
        files::put(&directory, "README.md", &introduction(version, &whole))?;
    }
    Ok(directory)
}

/// Refuses a `part` of the snapshot of `version` that would stand beside parts of another commit,
/// or that is of none, because what it was built from was changed: figures of different programs
/// are not one snapshot.
pub fn check_snapshot(snapshots: &Path, version: &str, part: &str, environment: &str) -> Result<(), String> {
    let own = environment::commit_of(environment);
    if own.ends_with(environment::CHANGED) {
        return Err(format!(
            "a snapshot is of a commit, but there are changes outside of docs/ that are not committed ({own})"
        ));
    }
    let parts = snapshots.join(version).join("parts");
    let mut others: Vec<String> = fs::read_dir(&parts)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name() != part)
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("environment.txt")).ok()?;
            let commit = environment::commit_of(&text);
            (commit != own).then(|| format!("{} of {commit}", entry.file_name().display()))
        })
        .collect();
    others.sort();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the snapshot of {version} has parts of other commits than {own}: {}; remove them from {}, or give another version",
        others.join(", "),
        parts.display()
    ))
}

/// Writes what stands before a snapshot until somebody writes more.
fn introduction(version: &str, model: &Model) -> String {
    let versions = model.servers.iter().filter(|server| !server.version.is_empty());
    let versions: String =
        versions.map(|server| format!("| {} | {} |\n", server.name, server.version)).collect();
    format!(
        "# Benchmarks of {version}\n\n[index.html](index.html) is the report with plots; [report.md](report.md) says the same in \
         text. The tables are the raw data: [raw.tsv](raw.tsv), a line per run, [aggregate.tsv](aggregate.tsv), a line per \
         figure, [session.tsv](session.tsv), what was run and what was odd, [environment.txt](environment.txt), the \
         machine; `parts/` has them session by session. How to read them is said in [the index](../README.md).\n\n\
         | Server | Version |\n| --- | --- |\n{versions}\nRun with:\n\n```sh\n{}\n```\n",
        model.commands.join("\n")
    )
}

/// Puts together what there is to report.
pub fn model(plans: &Plans, findings: &Findings, facts: &Facts) -> Model {
    let servers = plans.servers.iter().map(|(rival, _)| ServerFacts {
        name: rival.name.clone(),
        version: facts
            .versions
            .iter()
            .find(|(name, _)| *name == rival.name)
            .map_or_else(String::new, |(_, version)| version.clone()),
        about: rival.about.clone(),
        is_echo: rival.kind() == Kind::Echo,
        variant_of: rival.variant_of.clone(),
    });
    let scenarios = plans.scenarios.iter().map(|scenario| ScenarioFacts {
        name: scenario.name.to_owned(),
        about: scenario.about.to_owned(),
        load: plans.load_text(scenario),
        saturates: plans.saturates(scenario),
        beside: scenario.beside.map(str::to_owned),
        series: scenario.series.zip(scenario.rate).map(|(series, rate)| (series.name().to_owned(), rate)),
    });
    let records = findings.samples.iter().map(|sample| Record {
        scenario: sample.scenario.to_owned(),
        server: sample.server.clone(),
        round: sample.round,
        figures: metric::figures(sample),
    });
    let notes = |remarks: &[Remark]| -> Vec<Note> {
        let note = |remark: &Remark| Note {
            scenario: remark.scenario.to_owned(),
            server: remark.server.clone(),
            text: remark.text.clone(),
        };
        remarks.iter().map(note).collect()
    };
    let courses = findings.samples.iter().filter(|sample| !sample.events.is_empty()).map(|sample| Course {
        scenario: sample.scenario.to_owned(),
        server: sample.server.clone(),
        round: sample.round,
        incidents: sample.events.iter().map(incident).collect(),
        moments: sample.tally.slices.iter().map(moment).collect(),
    });
    // What was run after all, with the rivals alone, is not pending.
    let waits = scenario::SCENARIOS
        .iter()
        .filter(|scenario| plans.scenarios.iter().all(|run| run.name != scenario.name))
        .filter_map(|scenario| Some((scenario.name, scenario.needs?)));
    let pending = waits.chain(scenario::PENDING.iter().copied());
    let pending = pending.map(|(name, needs)| (name.to_owned(), needs.to_owned()));
    Model {
        date: facts.date.clone(),
        commands: vec![facts.command.clone()],
        method: method(plans, facts),
        environment: facts.environment.clone(),
        servers: servers.collect(),
        skipped: facts.skipped.clone(),
        pending: pending.collect(),
        scenarios: scenarios.collect(),
        records: records.collect(),
        failures: notes(&findings.failures),
        remarks: notes(&findings.remarks),
        courses: courses.collect(),
    }
}

fn incident(done: &Done) -> Incident {
    Incident {
        at_s: done.at.as_secs_f64(),
        took_ms: done.took.as_secs_f64() * 1e3,
        what: done.what.to_string(),
    }
}

fn moment(slice: &Slice) -> Moment {
    Moment {
        answered: slice.answered as f64,
        wrong: slice.wrong as f64,
        lost: slice.lost as f64,
        latency_max_us: slice.latency_max_ns as f64 / 1e3,
    }
}

/// Says how it was done.
fn method(plans: &Plans, facts: &Facts) -> Vec<String> {
    let generator = match plans.generator {
        Generator::Own => "gannet-bench",
        Generator::Dnsperf => "dnsperf",
    };
    let cores = |cores: &[usize]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let [before, after] = &facts.load_averages;
    let mut sentences = vec![
        format!(
            "{} runs of {} s per server and scenario, a fresh process each time, in an order that turns round from \
             run to run.",
            plans.runs,
            plans.time.as_secs_f64()
        ),
        format!(
            "Servers on core {}, load ({generator}) and stub upstreams on core {}.",
            cores(&plans.server_cores),
            cores(&plans.load_cores)
        ),
        format!("Load average {before} at the start, {after} at the end."),
    ];
    if plans.scenarios.iter().any(|scenario| scenario.network == Network::Pair) {
        sentences.push(
            "Between network namespaces, CPU per query includes the kernel's thread that receives for the server's interface."
                .to_owned(),
        );
    }
    sentences
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

/// Turns days since 1970-01-01 into year, month and day (Gregorian; years begin in March while
/// counting).
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
    fn a_snapshot_grows_part_by_part() {
        let snapshots = std::env::temp_dir().join(format!("gannet-bench-snapshots-{}", std::process::id()));
        let example = model::tests::example();
        let add = |part| add_to_snapshot(&snapshots, "1.2.3", part, &example).expect("writes");
        let directory = add("core");
        add("core");
        add("latency");
        let whole = files::read(&directory).expect("was written");
        let files =
            ["index.html", "report.md", "README.md", "parts/core/raw.tsv", "parts/latency/session.tsv"];
        let lacks: Vec<_> = files.iter().filter(|file| !directory.join(file).exists()).collect();
        fs::remove_dir_all(&snapshots).expect("is ours");
        assert_eq!(whole.records.len(), 2 * example.records.len());
        assert!(lacks.is_empty(), "{lacks:?}");
    }

    #[test]
    fn a_snapshot_has_parts_of_one_commit() {
        let snapshots = std::env::temp_dir().join(format!("gannet-bench-commits-{}", std::process::id()));
        let of = |commit: &str| Model {
            environment: format!("kernel: Linux 6.1\ncommit: {commit}\n"),
            ..model::tests::example()
        };
        let add = |part, commit| add_to_snapshot(&snapshots, "1.2.3", part, &of(commit)).map(drop);
        let results = [
            add("core", "aaaa"),
            add("latency", "aaaa"),
            add("memory", "bbbb"),
            add("memory", "aaaa-dirty"),
            add("latency", "aaaa"),
        ];
        fs::remove_dir_all(&snapshots).expect("is ours");
        let [first, second, other, changed, again] = results;
        assert_eq!((first, second, again), (Ok(()), Ok(()), Ok(())));
        let fault = other.expect_err("another commit");
        assert!(fault.contains("core of aaaa, latency of aaaa") && fault.contains("than bbbb"), "{fault}");
        assert!(changed.expect_err("no commit").contains("not committed"));
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
    }
}
