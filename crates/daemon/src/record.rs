//! `gannet log`: shows recorded queries.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use control::api;
use jobs::recorder::{Reader, Recorded, Wanted};
use wire::{Rcode, Rtype};

use crate::cli::{LogArgs, Top};
use crate::inspect::{self, Origin};
use crate::{out, sys};

/// What `--top` counts, in milliseconds.
const TOP_MS: i64 = 24 * 60 * 60 * 1000;

/// Runs `gannet log`.
pub(crate) fn show(args: &LogArgs) -> ExitCode {
    match try_show(args) {
        Ok(text) => {
            out::print(&text);
            out::FINE
        }
        Err(why) => {
            out::complain(&why);
            out::negative()
        }
    }
}

fn try_show(args: &LogArgs) -> Result<String, String> {
    let reader = Reader::open(&database(args)?)?;
    if let Some(top) = args.top {
        let since = unix_ms().saturating_sub(TOP_MS);
        let found = match top {
            Top::Names => reader.top_names(since, args.lines)?,
            Top::Clients => reader.top_clients(since, args.lines)?,
        };
        let tallies: Vec<api::Tally> =
            found.into_iter().map(|(what, queries)| api::Tally { what, queries }).collect();
        return Ok(if args.output.json { api::to_json(&tallies) } else { top_text(&tallies) });
    }
    let name = args.name.as_deref().map(|name| {
        let name = name.to_ascii_lowercase();
        if name == "." { name } else { name.trim_end_matches('.').to_owned() }
    });
    let wanted = Wanted { count: args.lines, client: args.client, name, covers_below: args.below };
    let found = reader.newest(&wanted)?;
    Ok(if args.output.json {
        api::to_json(&found.iter().map(shown).collect::<Vec<_>>())
    } else {
        found.iter().map(|query| line(query, args.path)).collect()
    })
}

/// Returns where the database is.
fn database(args: &LogArgs) -> Result<PathBuf, String> {
    if let Some(file) = &args.file {
        return Ok(file.clone());
    }
    let origin = Origin::find(&args.config);
    let loaded = origin.load().map_err(|found| inspect::human(&origin, &found).trim_end().to_owned())?;
    let settings = &loaded.settings;
    let recorder =
        settings.recorder.as_ref().ok_or("no queries are recorded: the setting recorder.file is not set")?;
    Ok(settings.startup.state_directory.join(&recorder.file))
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn shown(query: &Recorded) -> api::Recorded {
    let words = |text: &str, separator: &str| {
        text.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    api::Recorded {
        at_ms: query.at_ms,
        waited_ms: query.waited_ms,
        client: query.client.to_string(),
        transport: query.transport.clone(),
        name: query.name.clone(),
        rtype: Rtype(query.qtype).to_string(),
        status: query.rcode.map(|rcode| Rcode(rcode).to_string()),
        answers: query.answers,
        addresses: words(&query.addresses, " "),
        path: words(&query.path, "; "),
    }
}

fn line(query: &Recorded, has_path: bool) -> String {
    let seconds = u64::try_from(query.at_ms / 1000).unwrap_or(0);
    let (hour, minute, second) = sys::local_time_of_day(seconds);
    let status = query.rcode.map_or_else(|| "no reply".to_owned(), |rcode| Rcode(rcode).to_string());
    let mut text = format!(
        "{hour:02}:{minute:02}:{second:02}.{:03} {} {} {} {} {} ms",
        query.at_ms.rem_euclid(1000),
        query.client,
        out::escaped(&query.name),
        Rtype(query.qtype),
        status,
        query.waited_ms,
    );
    if !query.addresses.is_empty() {
        let _ = write!(text, " {}", query.addresses);
    }
    text.push('\n');
    if has_path {
        for step in query.path.split("; ").filter(|step| !step.is_empty()) {
            let _ = writeln!(text, "    {}", out::escaped(step));
        }
    }
    text
}

fn top_text(tallies: &[api::Tally]) -> String {
    let mut text = String::new();
    for tally in tallies {
        let _ = writeln!(text, "{:>9}  {}", tally.queries, out::escaped(&tally.what));
    }
    text
}
