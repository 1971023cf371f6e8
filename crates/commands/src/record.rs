//! `gannet log`: shows recorded queries.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::api;
use recorder::{Kind, NameTest, Names, Outcome, Page, Reader, Recorded, TopOf, Wanted};

use crate::cli::{LogArgs, Top};
use crate::{configuration, out, remote};

/// What `--top` counts, in milliseconds.
const TOP_MS: i64 = 24 * 60 * 60 * 1000;

/// How long a search with a cursor goes on.
const SEARCH_TIME: Duration = Duration::from_millis(250);

/// How often new records are looked for.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

/// Runs `gannet log`.
pub(crate) fn show(args: &LogArgs) -> ExitCode {
    if let Some(client) = &args.forget {
        return remote::forget_client(&args.remote, client);
    }
    match try_show(args) {
        Ok(()) => out::FINE,
        Err(why) => out::failed(&why, args.remote.output),
    }
}

fn try_show(args: &LogArgs) -> Result<(), String> {
    let is_json = args.remote.output.json;
    let file = database(args)?;
    let reader = Reader::open(&file)?;
    if let Some(top) = args.top {
        let since = args.since.unwrap_or_else(|| unix_ms().saturating_sub(TOP_MS));
        let of = match top {
            Top::Names => TopOf::Names,
            Top::Blocked => TopOf::Blocked,
            Top::Clients => TopOf::By(Kind::Client),
            Top::Outcomes => TopOf::By(Kind::Outcome),
            Top::Types => TopOf::By(Kind::Type),
            Top::Transports => TopOf::By(Kind::Transport),
            Top::Upstreams => TopOf::By(Kind::Upstream),
            Top::Lists => TopOf::By(Kind::List),
        };
        let found = reader.top(of, since, args.lines)?.into_iter();
        let tallies: Vec<api::Tally> = found
            .map(|tally| api::Tally { what: tally.what, queries: tally.queries, error: tally.error })
            .collect();
        out::print(&if is_json { api::to_json(&tallies) } else { top_text(&tallies) });
        return Ok(());
    }
    let wanted = wanted(args)?;
    if args.follow {
        return follow(&reader, wanted, args);
    }
    let page = reader.search(&wanted)?;
    page.unreadable.iter().for_each(|why| out::complain(why));
    let has_cursor = args.cursor.is_some();
    out::print(&match (is_json, has_cursor) {
        (true, false) => api::to_json(&page.queries.iter().map(api::Recorded::from).collect::<Vec<_>>()),
        (true, true) => api::to_json(&api::QueriesFound {
            queries: page.queries.iter().map(api::Recorded::from).collect(),
            cursor: page.cursor,
            searched_to_ms: page.searched_to_ms,
            unreadable: page.unreadable.clone(),
        }),
        (false, _) => {
            let mut text: String = page.queries.iter().map(|query| line(query, args.path)).collect();
            if has_cursor {
                text.push_str(&rest(&page));
            }
            text
        }
    });
    Ok(())
}

/// Says where the rest is.
fn rest(page: &Page) -> String {
    match (page.cursor, page.searched_to_ms) {
        (None, _) => "no more\n".to_owned(),
        (Some(cursor), None) => format!("more with --cursor {cursor}\n"),
        (Some(cursor), Some(to_ms)) => {
            format!("searched back to {}, goes on with --cursor {cursor}\n", moment(to_ms))
        }
    }
}

/// Returns what the arguments ask for.
fn wanted(args: &LogArgs) -> Result<Wanted, String> {
    Ok(Wanted {
        count: args.lines,
        clients: args.client,
        names: names(args)?,
        qtype: args.qtype.map(|qtype| qtype.0),
        transport: args.transport.clone(),
        answer: args.answer,
        waited_us: args.slower.map(|slower| u64::try_from(slower.as_micros()).unwrap_or(u64::MAX)),
        since_ms: args.since,
        until_ms: args.until,
        rcode: args.rcode.map(|word| word.0),
        outcomes: match args.blocked {
            true => vec![Outcome::Blocked, Outcome::Refused, Outcome::Dropped],
            false => args.outcome.clone(),
        },
        list: args.list.clone(),
        upstream: args.upstream.clone(),
        before_id: args.cursor.and_then(|cursor| cursor.0),
        after_id: None,
        time: args.cursor.map(|_| SEARCH_TIME),
    })
}

/// Returns the names that the arguments ask for.
fn names(args: &LogArgs) -> Result<Names, String> {
    let whole = NameTest::whole;
    let part = |text: &String| NameTest::part(&text.to_ascii_lowercase());
    let mut names = Names::default();
    if let Some(name) = &args.name {
        names.are(if args.below { NameTest::Suffix(whole(name)) } else { NameTest::Exact(whole(name)) });
    }
    if let Some(suffix) = &args.suffix {
        names.are(NameTest::Suffix(whole(suffix)));
    }
    if let Some(regex) = &args.regex {
        names.are(NameTest::regex(regex)?);
    }
    args.contains.iter().for_each(|text| names.are(part(text)));
    args.without.iter().for_each(|text| names.are_not(part(text)));
    args.without_suffix.iter().for_each(|suffix| names.are_not(NameTest::Suffix(whole(suffix))));
    for regex in &args.without_regex {
        names.are_not(NameTest::regex(regex)?);
    }
    Ok(names)
}

/// Prints the newest, the oldest of them first, and then what comes; in JSON, each on a line of its
/// own.
fn follow(reader: &Reader, mut wanted: Wanted, args: &LogArgs) -> Result<(), String> {
    let mut last = reader.last_id()?;
    let mut found = reader.newest(&wanted)?;
    // What was recorded between the two comes with what is new.
    found.retain(|query| query.id <= last);
    found.reverse();
    wanted.count = u32::MAX;
    loop {
        let text: String = found
            .iter()
            .map(|query| match args.remote.output.json {
                true => api::to_json_line(&api::Recorded::from(query)),
                false => line(query, args.path),
            })
            .collect();
        if !out::still_read(&text) {
            return Ok(());
        }
        // tidy: allow(sleep): the command looks again until the operator ends it
        std::thread::sleep(FOLLOW_EVERY);
        // Looked at first: what is recorded meanwhile comes next time.
        let newest = reader.last_id()?;
        wanted.after_id = Some(last);
        found = if newest > last { reader.following(&wanted)? } else { Vec::new() };
        last = found.last().map_or(newest, |query| query.id).max(newest);
    }
}

/// Returns where the database is: the argument's, the running server's, or the configuration's.
fn database(args: &LogArgs) -> Result<PathBuf, String> {
    if let Some(file) = &args.file {
        return Ok(file.clone());
    }
    if args.config.config.is_none()
        && let Some(status) = remote::status(&args.remote.socket)
    {
        let none = "the running server records no queries: its setting recorder.file is not set";
        return status.recorder.map(PathBuf::from).ok_or_else(|| none.to_owned());
    }
    let origin = configuration::find(&args.config);
    let loaded =
        origin.load().map_err(|found| configuration::human(&origin, &found).trim_end().to_owned())?;
    let settings = &loaded.settings;
    let recorder =
        settings.recorder.as_ref().ok_or("no queries are recorded: the setting recorder.file is not set")?;
    Ok(settings.startup.state_directory.join(&recorder.file))
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn line(query: &Recorded, has_path: bool) -> String {
    let mut text = shown_line(&query.into());
    if has_path {
        let list = match query.list.as_str() {
            "" => String::new(),
            list => format!(", by line {} of {list}", query.line),
        };
        let by = [&query.upstream, &query.rule].into_iter().filter(|word| !word.is_empty());
        let by: Vec<&str> = by.map(String::as_str).collect();
        let _ =
            writeln!(text, "    {}: {}{}", query.outcome, out::escaped(&by.join(", ")), out::escaped(&list));
        for step in query.path.split("; ").filter(|step| !step.is_empty()) {
            let _ = writeln!(text, "    {}", out::escaped(step));
        }
    }
    text
}

/// Writes a query on one line.
pub(crate) fn shown_line(query: &api::Recorded) -> String {
    let status = query.status.as_deref().unwrap_or("no reply");
    let waited = milliseconds((query.waited_ms * 1000.0).round() as u64);
    let mut text = format!(
        "{} {} {} {} {status} {waited} ms",
        moment(query.at_ms),
        query.client,
        out::escaped(&query.name),
        query.rtype,
    );
    if !query.addresses.is_empty() {
        let _ = write!(text, " {}", query.addresses.join(" "));
    }
    text.push('\n');
    text
}

/// Writes a time in milliseconds, with as many digits as matter; 0 is what waited for nobody.
fn milliseconds(us: u64) -> String {
    let ms = us as f64 / 1000.0;
    match us {
        0 => "0".to_owned(),
        1..10 => format!("{ms:.3}"),
        10..10_000 => format!("{ms:.2}"),
        10_000..100_000 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

/// Writes a moment in the local time zone, without the date if it is of the last day.
pub(crate) fn moment(at_ms: i64) -> String {
    let is_recent = unix_ms().saturating_sub(at_ms) < TOP_MS;
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    let form = if is_recent { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    format!("{}.{:03}", local.strftime(form), at_ms.rem_euclid(1000))
}

/// Writes counted things, one a line.
pub(crate) fn top_text(tallies: &[api::Tally]) -> String {
    let mut text = String::new();
    for tally in tallies {
        let error = if tally.error > 0 { format!("  ±{}", tally.error) } else { String::new() };
        let _ = writeln!(text, "{:>9}  {}{error}", tally.queries, out::escaped(&tally.what));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_below_a_millisecond_are_shown() {
        let check = |us, expect: &str| assert_eq!(milliseconds(us), expect);
        check(0, "0");
        check(7, "0.007");
        check(40, "0.04");
        check(1_234, "1.23");
        check(12_345, "12.3");
        check(1_234_567, "1235");
    }
}
