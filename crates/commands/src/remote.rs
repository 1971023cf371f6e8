//! The commands that talk to the running server.

mod audit;
mod backup;
mod bans;
mod caches;
mod certificates;
mod check;
mod config;
mod events;
mod explained;
mod lists;
mod network;
mod own_lists;
mod probe;
mod resolvers;
pub(crate) mod rrsets;
mod stats;
mod status;
mod tokens;
mod users;
mod zones;

pub use backup::shown as shown_restored;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;
use control::More;
use control::api::{self, CacheFlush, Flush, Request, Response};
use control::metrics::Descriptions;

use crate::cli::{
    CacheCommand, CacheLookupArgs, DsSeenArgs, FlushArgs, JobsArgs, KeyStatusArgs, ListsArgs, ListsCommand,
    LocalArgs, LogLevelArgs, OutputArgs, ReloadArgs, RemoteArgs, RollArgs, ServerCommand, SetAddArgs,
    SetArgs, SetCommand, SetNameArgs, SocketArgs, ZoneAddArgs, ZoneLoadArgs, ZoneReloadArgs, ZoneRemoveArgs,
};
use crate::{out, record};

/// How long a look at the server may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);
/// How long work may take: a reload reads every list, a dump writes the whole cache.
const WORK_PATIENCE: Duration = Duration::from_secs(300);

/// Where the control socket of a server may be, in the order in which the server tries and a client
/// looks.
pub fn socket_paths(args: &SocketArgs) -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = args.socket.clone().or_else(|| variable("GANNET_SOCKET").map(PathBuf::from)) {
        return vec![path];
    }
    let mut paths = Vec::new();
    // systemd names its runtime folders with colons between them (systemd.exec(5)).
    if let Some(folders) = variable("RUNTIME_DIRECTORY")
        && let Some(first) = std::env::split_paths(&folders).next()
    {
        paths.push(first.join("control.sock"));
    }
    paths.push("/run/gannet/control.sock".into());
    if let Some(folder) = variable("XDG_RUNTIME_DIR") {
        paths.push(PathBuf::from(folder).join("gannet/control.sock"));
    }
    paths.push("/var/lib/gannet/control.sock".into());
    paths.dedup();
    paths
}

/// Runs a command for the running server; `descriptions` say what its counters count.
pub fn run(command: &ServerCommand, descriptions: Descriptions<'_>) -> ExitCode {
    match command {
        ServerCommand::Reload(args) => reload(args),
        ServerCommand::Status(args) => ask(args, &Request::Status, LOOK_PATIENCE),
        ServerCommand::Stats(args) => stats::run(args, descriptions),
        ServerCommand::Cache(CacheCommand::Flush(args)) => cache_flush(args),
        ServerCommand::Cache(CacheCommand::Dump(args)) => ask(args, &Request::CacheDump, WORK_PATIENCE),
        ServerCommand::Cache(CacheCommand::Stats(args)) => ask(args, &Request::CacheStats, LOOK_PATIENCE),
        ServerCommand::Cache(CacheCommand::Lookup(args)) => cache_lookup(args),
        ServerCommand::Resolver(command) => resolvers::run(command),
        ServerCommand::Lists(args) => lists(args),
        ServerCommand::List(command) => own_lists::run(command),
        ServerCommand::Set(SetCommand::Add(args)) => set_add(args),
        ServerCommand::Set(SetCommand::Del(args)) => set_remove(args),
        ServerCommand::Set(SetCommand::List(args)) => set_list(args),
        ServerCommand::Set(SetCommand::History(args)) => {
            let (set, count) = (Some(args.name.clone()), Some(args.count));
            let asked = api::DataHistory { set, list: None, count };
            ask(&args.remote, &Request::DataHistory(asked), LOOK_PATIENCE)
        }
        ServerCommand::Ban(args) => bans::ban(args),
        ServerCommand::Unban(args) => bans::unban(args),
        ServerCommand::Bans(args) => bans::list(args),
        ServerCommand::Log(args) => record::show(args),
        ServerCommand::Events(args) => events::run(args),
        ServerCommand::LogLevel(args) => log_level(args),
        ServerCommand::Jobs(args) => jobs(args),
        ServerCommand::Certificates(args) => certificates::run(args),
        ServerCommand::Audit(command) => audit::run(command),
        ServerCommand::Token(command) => tokens::run(command),
        ServerCommand::Backup(args) => backup::back_up(args),
        ServerCommand::Restore(args) => backup::restore(args),
        ServerCommand::Login(args) => users::log_in_link(args),
        ServerCommand::Users(command) => users::run(command),
    }
}

/// Has the running server follow a query through its policy, and prints what it says.
pub fn explain(args: &RemoteArgs, asked: api::Explain) -> ExitCode {
    ask(args, &Request::Explain(asked), WORK_PATIENCE)
}

/// Asks the running server how it is; `None` when there is none.
pub fn status(socket: &SocketArgs) -> Option<api::Status> {
    match control::ask(&socket_paths(socket), &Request::Status, LOOK_PATIENCE) {
        Ok(Response::Status(status)) => Some(status),
        Ok(_) | Err(_) => None,
    }
}

/// Has the running server remove a client from the record of queries.
pub(crate) fn forget_client(args: &LocalArgs, client: &str) -> ExitCode {
    let request = Request::QueriesForget(api::QueriesOf { client: client.to_owned() });
    match control::ask(&socket_paths(&args.socket), &request, WORK_PATIENCE) {
        Ok(response) => show(&response, args.output),
        Err(error) => out::failed(&error.to_string(), args.output),
    }
}

/// Runs those of `gannet config …` that are for the running server.
pub(crate) use config::{run as config, show as config_show};

pub use check::check;
pub use probe::probe;

/// Runs `gannet reload`.
fn reload(args: &ReloadArgs) -> ExitCode {
    let request = match &args.set {
        Some(name) => Request::SetReload(api::SetName { name: name.clone() }),
        None => Request::Reload,
    };
    ask(&args.remote, &request, WORK_PATIENCE)
}

/// Runs `gannet set add`.
fn set_add(args: &SetAddArgs) -> ExitCode {
    let SetArgs { name, items, remote } = &args.set;
    let change = api::SetChange { name: name.clone(), items: items.clone(), ttl_s: args.ttl, tag: None };
    ask(remote, &Request::SetAdd(change), WORK_PATIENCE)
}

/// Runs `gannet set del`.
fn set_remove(args: &SetArgs) -> ExitCode {
    let change =
        api::SetChange { name: args.name.clone(), items: args.items.clone(), ttl_s: None, tag: None };
    ask(&args.remote, &Request::SetRemove(change), WORK_PATIENCE)
}

/// Runs `gannet set list`.
fn set_list(args: &SetNameArgs) -> ExitCode {
    ask(&args.remote, &Request::SetList(api::SetName { name: args.name.clone() }), WORK_PATIENCE)
}

/// Runs `gannet zone keys status`.
pub(crate) fn zone_keys(args: &KeyStatusArgs) -> ExitCode {
    let request = Request::ZoneKeys(api::ZoneName { zone: args.zone.to_string() });
    ask(&args.remote, &request, LOOK_PATIENCE)
}

/// Runs `gannet zone keys ds-seen`.
pub(crate) fn zone_ds_seen(args: &DsSeenArgs) -> ExitCode {
    let request = Request::ZoneDsSeen(api::DsSeen { zone: args.zone.to_string(), tag: args.tag });
    ask(&args.remote, &request, LOOK_PATIENCE)
}

/// Runs `gannet zone keys roll`.
pub(crate) fn zone_roll(args: &RollArgs) -> ExitCode {
    let role = args.role.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let request = Request::ZoneRoll(api::ZoneRoll { zone: args.zone.to_string(), role });
    ask(&args.remote, &request, LOOK_PATIENCE)
}

/// Runs those of `gannet zone …` that are for the running server.
pub(crate) fn zone(args: &RemoteArgs, what: api::ZoneWhat, name: Option<&str>) -> ExitCode {
    let order = api::ZoneOrder { what, name: name.map(str::to_owned), file_change: None };
    ask(args, &Request::Zone(order), WORK_PATIENCE)
}

/// Runs `gannet zone reload`.
pub(crate) fn zone_reload(args: &ZoneReloadArgs) -> ExitCode {
    let file_change = match (args.merge, args.replace) {
        (true, _) => Some(api::FileChange::Merge),
        (_, true) => Some(api::FileChange::Replace),
        _ => None,
    };
    let order = api::ZoneOrder { what: api::ZoneWhat::Reload, name: args.name.clone(), file_change };
    ask(&args.remote, &Request::Zone(order), WORK_PATIENCE)
}

/// Runs `gannet zone print` for the running server.
pub(crate) fn zone_print(args: &RemoteArgs, name: &str) -> ExitCode {
    let order = api::ZoneOrder { what: api::ZoneWhat::Print, name: Some(name.to_owned()), file_change: None };
    let mut outcome = out::FINE;
    let take = |response: Response| {
        outcome = show(&response, args.output);
        match response {
            Response::ZoneRecords(part) if !part.is_last => More::Yes,
            _ => More::No,
        }
    };
    match ask_for_all(args, &Request::Zone(order), WORK_PATIENCE, take) {
        Ok(()) => outcome,
        Err(why) => out::failed(&why, args.output),
    }
}

/// Runs `gannet lists`.
fn lists(args: &ListsArgs) -> ExitCode {
    match &args.command {
        None => ask(&args.remote, &Request::Lists(api::ListsOf { set: args.set.clone() }), LOOK_PATIENCE),
        Some(ListsCommand::Update(args)) => {
            let wanted = api::ListsOf { set: args.set.clone() };
            ask(&args.remote, &Request::ListsFetch(wanted), WORK_PATIENCE)
        }
    }
}

/// Runs `gannet cache lookup`.
fn cache_lookup(args: &CacheLookupArgs) -> ExitCode {
    let name = match wire::idn::to_ascii(&args.name) {
        Ok(name) => name.into_owned(),
        Err(error) => return out::wrong(&error.to_string(), args.remote.output),
    };
    let lookup = api::CacheLookup {
        cache: args.cache.clone(),
        name,
        rtype: args.rtype.clone(),
        covers_below: args.below,
    };
    ask(&args.remote, &Request::CacheLookup(lookup), WORK_PATIENCE)
}

/// Runs `gannet log-level`.
fn log_level(args: &LogLevelArgs) -> ExitCode {
    let level =
        args.level.and_then(|level| level.to_possible_value()).map(|value| value.get_name().to_owned());
    ask(&args.remote, &Request::LogLevel(api::LogLevel { level }), LOOK_PATIENCE)
}

/// Runs `gannet jobs`.
fn jobs(args: &JobsArgs) -> ExitCode {
    let request = match &args.run {
        Some(name) => Request::JobRun(api::JobRun { name: name.clone() }),
        None => Request::Jobs,
    };
    ask(&args.remote, &request, LOOK_PATIENCE)
}

/// Runs `gannet cache flush`.
fn cache_flush(args: &FlushArgs) -> ExitCode {
    let what = match (&args.what.name, &args.what.suffix, &args.rtype) {
        (Some(name), _, Some(rtype)) => Flush::Type { name: name.clone(), rtype: rtype.clone() },
        (Some(name), _, None) => Flush::Name(name.clone()),
        (None, Some(suffix), _) => Flush::Suffix(suffix.clone()),
        (None, None, _) => Flush::All,
    };
    ask(&args.remote, &Request::CacheFlush(CacheFlush { cache: args.cache.clone(), what }), WORK_PATIENCE)
}

fn ask(args: &RemoteArgs, request: &Request, patience: Duration) -> ExitCode {
    match ask_once(args, request, patience) {
        Ok(response) => show(&response, args.output),
        Err(why) => out::failed(&why, args.output),
    }
}

/// Asks the server that is named, or the one of this machine.
fn ask_once(args: &RemoteArgs, request: &Request, patience: Duration) -> Result<Response, String> {
    let mut response = None;
    ask_for_all(args, request, patience, |first| {
        response = Some(first);
        More::No
    })?;
    response.ok_or_else(|| "the server's response is empty".to_owned())
}

/// Asks the server that is named, or the one of this machine, for something that has several
/// responses; `take` says whether there is another one.
fn ask_for_all(
    args: &RemoteArgs,
    request: &Request,
    patience: Duration,
    take: impl FnMut(Response) -> More,
) -> Result<(), String> {
    match &args.server.server {
        Some(url) => network::ask_for_all((url, &args.server), request, patience, take),
        None => {
            let paths = socket_paths(&args.socket);
            control::ask_for_all(&paths, request, patience, take).map_err(|error| error.to_string())
        }
    }
}

/// Prints a response and returns what it means for scripts.
pub fn show(response: &Response, output: OutputArgs) -> ExitCode {
    let (text, is_fine) = match response {
        Response::Error(failure) => return out::failed(&failure.message, output),
        Response::Reload(reload) => (reload_text(reload), reload.is_adopted && reload.refused.is_empty()),
        Response::Status(status) => (status::text(status), true),
        // `stats::run` also has the sentences.
        Response::Stats(stats) => (stats::text(stats, &[]), true),
        Response::Metrics(text) => (text.clone(), true),
        Response::CacheFlush(flushed) => (format!("{} answers forgotten\n", flushed.removed), true),
        Response::CacheDump(dumped) => {
            (caches::dump_text(dumped), dumped.iter().all(|dump| dump.error.is_none()))
        }
        Response::CacheStats(caches) => (caches::text(caches, "answers"), true),
        Response::CacheEntries(held) => (caches::entries_text(held), !held.entries.is_empty()),
        Response::ResolverStats(tables) => (caches::text(tables, "entries"), true),
        Response::ResolverServers(known) => (resolvers::servers_text(known), true),
        Response::ResolverZones(zones) => (resolvers::zones_text(zones), true),
        Response::ResolverAnchors(anchors) => (resolvers::anchors_text(anchors), true),
        Response::ResolverNegative(all) => (resolvers::negative_text(all), true),
        Response::Lists(sets) => (lists::text(sets), true),
        Response::DataSteps(steps) => (own_lists::steps_text(steps), true),
        Response::OwnLists(all) => (own_lists::text(all), true),
        Response::OwnListText(part) => (part.text.clone(), true),
        Response::OwnListChanged(changed) => (own_lists::changed_text(changed), true),
        Response::ListsFetched(it) => (lists::fetched_text(it), it.failed == 0),
        Response::Jobs(jobs) => (jobs_text(jobs), true),
        Response::Certificates(it) => (certificates::text(it), true),
        Response::LogLevel(log) => (level_text(log), true),
        Response::SetList(items) => (items_text(items), true),
        Response::Zones(zones) => (zones::text(zones), true),
        Response::ZoneDiff(lines) => (lines.iter().map(|line| format!("{line}\n")).collect(), true),
        Response::ZoneRecords(part) => (part.text.clone(), true),
        Response::ZoneDone(done) => (format!("{}\n", done.message), true),
        Response::ZonesChanged(changed) => (zones::changed_text(changed), changed.refused.is_empty()),
        Response::Rrsets(found) => (rrsets::text(found), !found.rrsets.is_empty()),
        Response::RrsetsChanged(changed) => (rrsets::changed_text(changed), true),
        Response::SetChanged(it) => (format!("{} changed, {} in the set\n", it.changed, it.holds), true),
        Response::Bans(all) => (bans::text(all), true),
        Response::BanChanged(changed) => (bans::changed_text(changed), true),
        Response::ZoneKeys(keys) => (zones::keys_text(keys), keys.trouble.is_none()),
        Response::Explained(explained) => (explained::text(explained), true),
        Response::Checked(found) => (check::human(found), !check::has_errors(found)),
        Response::Probed(report) => (probe::text(report), report.trouble.is_none()),
        Response::ConfigChanged(changed) => (config::changed_text(changed), true),
        Response::ConfigShown(shown) => (shown.text.clone(), true),
        Response::ConfigDifferences(all) => (config::differences_text(all), true),
        Response::ConfigSteps(steps) => (config::steps_text(steps), true),
        Response::Settings(settings) => (config::settings_text(settings), true),
        Response::Audited(rows) => (audit::text(rows), true),
        Response::Event(part) => (events::text(part), true),
        Response::Queries(found) => (found.queries.iter().map(record::shown_line).collect(), true),
        Response::QueryEvent(event) => (event.query.iter().map(record::shown_line).collect(), true),
        Response::QueriesTop(all) => (record::top_text(all), true),
        Response::QueriesOverTime(all) => {
            (all.iter().map(|sum| format!("{} {} {}\n", sum.start_ms, sum.what, sum.queries)).collect(), true)
        }
        // No command asks for these.
        Response::Clients(_) | Response::Client(_) | Response::ListStates(_) | Response::ListRules(_) => {
            (response.to_json(), true)
        }
        Response::QueriesRemoved(removed) => (format!("{} queries removed\n", removed.removed), true),
        Response::TokenAdded(added) => (format!("{}\n", added.secret), true),
        Response::Tokens(all) => (tokens::text(all), true),
        Response::Users(all) => (users::text(all), true),
        Response::LogInLink(link) => (format!("{}\n", link.url), true),
        Response::TotpBegun(begun) => (format!("{}\n", begun.uri.0), true),
        Response::TotpConfirmed(confirmed) => (users::codes_text(confirmed), true),
        Response::Sessions(all) => (users::sessions_text(all), true),
    };
    out::print(&if output.json { response.to_json() } else { text });
    if is_fine { out::FINE } else { out::negative() }
}

/// Names that one request has at most, in octets, so that none of them takes long.
const NAMES_OCTETS_MAX: usize = 8 << 10;

/// Adds or removes zones, in as many requests as it takes; what came of each is added up.
fn change_zones(args: &RemoteArgs, names: &[String], request: impl Fn(Vec<String>) -> Request) -> ExitCode {
    let mut all = api::ZonesChanged::default();
    let mut rest = names;
    while !rest.is_empty() {
        let mut octets = 0;
        let fits = |name: &&String| {
            // Quotation marks and a comma.
            octets += name.len() + 3;
            octets <= NAMES_OCTETS_MAX
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (now, later) = rest.split_at(count);
        rest = later;
        match ask_once(args, &request(now.to_vec()), WORK_PATIENCE) {
            Ok(Response::ZonesChanged(changed)) => {
                all.done += changed.done;
                all.notes.extend(changed.notes);
                all.refused.extend(changed.refused);
            }
            Ok(other) => return show(&other, args.output),
            Err(why) => return out::failed(&why, args.output),
        }
    }
    show(&Response::ZonesChanged(all), args.output)
}

/// Reads a list of zones: one on each line, perhaps with a template behind it.
fn read_list(file: &Path) -> Result<Vec<(String, Option<String>)>, String> {
    let text = match file.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| format!("cannot read \"{}\": {error}", file.display()))?;
    let mut list = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split('#').next().unwrap_or("").split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let like = words.next().map(str::to_owned);
        if let Some(word) = words.next() {
            let line = number + 1;
            return Err(format!(
                "{}:{line}: \"{word}\" cannot stand here (expected NAME, or NAME TEMPLATE)",
                file.display()
            ));
        }
        list.push((name.to_owned(), like));
    }
    Ok(list)
}

/// Returns the settings of zones, with their template.
fn settings_text(like: Option<&str>, with: Option<&str>) -> String {
    let with = with.map_or("", str::trim);
    match (like, with.strip_prefix('{')) {
        (None, _) => with.to_owned(),
        (Some(like), Some(rest)) => format!("{{like: {like}, {rest}"),
        (Some(like), None) => format!("like: {like}\n{with}"),
    }
}

/// Runs `gannet zone add`.
pub(crate) fn zone_add(args: &ZoneAddArgs) -> ExitCode {
    let mut groups: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    groups.entry(args.like.clone()).or_default().extend(args.names.iter().cloned());
    if let Some(file) = &args.from {
        let list = match read_list(file) {
            Ok(list) => list,
            Err(why) => return out::failed(&why, args.remote.output),
        };
        for (name, like) in list {
            groups.entry(like.or_else(|| args.like.clone())).or_default().push(name);
        }
    }
    let mut outcome = out::FINE;
    for (like, names) in groups.iter().filter(|(_, names)| !names.is_empty()) {
        let options = settings_text(like.as_deref(), args.with.as_deref());
        let done = change_zones(&args.remote, names, |zones| {
            Request::ZoneAdd(api::ZoneAdd { zones, options: options.clone(), ..api::ZoneAdd::default() })
        });
        if done != out::FINE {
            outcome = done;
        }
    }
    outcome
}

/// Runs `gannet zone remove`.
pub(crate) fn zone_remove(args: &ZoneRemoveArgs) -> ExitCode {
    let mut names = args.names.clone();
    if let Some(file) = &args.from {
        match read_list(file) {
            Ok(list) => names.extend(list.into_iter().map(|(name, _)| name)),
            Err(why) => return out::failed(&why, args.remote.output),
        }
    }
    let tag = match names.as_slice() {
        [name] => zone_tag(&args.remote, name),
        // Who takes out many does not look at each.
        _ => None,
    };
    let request = |zones| Request::ZoneRemove(api::ZoneNames { zones, tag: tag.clone() });
    change_zones(&args.remote, &names, request)
}

/// Returns the ETag of a zone; `None` if it cannot be read, which a change of the zone is told,
/// too.
fn zone_tag(args: &RemoteArgs, name: &str) -> Option<String> {
    let order =
        api::ZoneOrder { what: api::ZoneWhat::Status, name: Some(name.to_owned()), file_change: None };
    match ask_once(args, &Request::Zone(order), LOOK_PATIENCE) {
        Ok(Response::Zones(zones)) => zones.first().map(api::Zone::tag),
        _ => None,
    }
}

/// Runs `gannet zone load`.
pub(crate) fn zone_load(args: &ZoneLoadArgs) -> ExitCode {
    // The server has another working directory.
    let file = std::path::absolute(&args.file).unwrap_or_else(|_| args.file.clone());
    let Some(file) = file.to_str() else {
        let why = format!("\"{}\" is no path that can be sent", file.display());
        return out::failed(&why, args.remote.output);
    };
    let load = api::ZoneLoad { zone: args.name.clone(), file: file.to_owned() };
    ask(&args.remote, &Request::ZoneLoad(load), WORK_PATIENCE)
}

fn level_text(log: &api::LogLevelIs) -> String {
    if log.level == log.configured {
        return format!("{}\n", log.level);
    }
    format!("{} until the next reload or restart; log.level is {}\n", log.level, log.configured)
}

fn items_text(items: &[api::SetItem]) -> String {
    let lines = items.iter().map(|it| match it.leaves_in_s {
        Some(seconds) => format!("{}  {seconds}s\n", it.item),
        None => format!("{}  stays\n", it.item),
    });
    lines.collect()
}

fn reload_text(reload: &api::Reload) -> String {
    let mut text = String::new();
    for diagnostic in &reload.diagnostics {
        let _ = writeln!(text, "{}", diagnostic.text);
    }
    if reload.is_adopted {
        let _ = writeln!(text, "revision {} in use after {} ms", reload.revision, reload.took_ms);
    } else {
        let _ = writeln!(text, "not reloaded; revision {} stays in use", reload.revision);
    }
    for refused in &reload.refused {
        let _ = writeln!(text, "not taken: {}: {}", out::escaped(&refused.zone), out::escaped(&refused.text));
    }
    if !reload.needs_restart.is_empty() {
        let _ = writeln!(text, "changed, but read only at the start: {}", reload.needs_restart.join(", "));
    }
    text
}

fn jobs_text(jobs: &[api::Job]) -> String {
    let mut text = String::new();
    for job in jobs {
        let _ = writeln!(text, "{}: {} ({}): {}", job.name, job.at, job.time_zone, job.tasks.join(", "));
        let state = match (&job.last, job.is_running, &job.outcome) {
            (_, true, _) => "at work".to_owned(),
            (None, ..) => "did not run yet".to_owned(),
            (Some(last), false, outcome) => {
                let how = if job.is_failed { "failed" } else { "done" };
                format!("{how} {last}: {}", out::escaped(outcome.as_deref().unwrap_or("")))
            }
        };
        let left_out = match job.skipped {
            0 => String::new(),
            1 => "; left out once, still at work".to_owned(),
            times => format!("; left out {times} times, still at work"),
        };
        let _ = writeln!(text, "    {state}{left_out}; next {}", job.next.as_deref().unwrap_or("never"));
    }
    if jobs.is_empty() {
        text.push_str("nothing is scheduled (setting schedules)\n");
    }
    text
}

/// Returns a count with its noun.
fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a span of time in its two largest units.
fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Returns a number of octets in a unit a person reads.
fn size(octets: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    match octets {
        0..KIB => format!("{octets} B"),
        KIB..MIB => format!("{:.1} KiB", octets as f64 / KIB as f64),
        MIB..GIB => format!("{:.1} MiB", octets as f64 / MIB as f64),
        _ => format!("{:.1} GiB", octets as f64 / GIB as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_show_two_units() {
        assert_eq!([span(7), span(61), span(3_661), span(90_000)], ["7s", "1m1s", "1h1m", "1d1h"]);
    }

    #[test]
    fn a_refused_reload_says_what_stays() {
        let reload = api::Reload { revision: 3, ..api::Reload::default() };
        assert_eq!(reload_text(&reload), "not reloaded; revision 3 stays in use\n");
    }
}
