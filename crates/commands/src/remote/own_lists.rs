//! `gannet list`: lists that are kept beside the settings.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use control::More;
use control::api::{self, Request, Response, RuleEdit};

use super::{
    LOOK_PATIENCE, WORK_PATIENCE, ask, ask_for_all, ask_once, counted, network, show, size, socket_paths,
};
use crate::cli::{ListCommand, ListEditArgs, ListNameArgs, ListPutArgs, RemoteArgs};
use crate::out;

/// Octets of rules that go into one request of the control socket; more are sent as a body.
const SHORT_OCTETS_MAX: usize = 256 << 10;
/// Octets of a file that is read.
const FILE_OCTETS_MAX: u64 = 256 << 20;

/// Runs `gannet list`.
pub(super) fn run(command: &ListCommand) -> ExitCode {
    match command {
        ListCommand::Add(args) => edit(args, RuleEdit::Add),
        ListCommand::Remove(args) => edit(args, RuleEdit::Remove),
        ListCommand::Put(args) => put(args),
        ListCommand::Print(args) => print(args),
        ListCommand::History(args) => {
            let (list, count) = (Some(args.name.clone()), Some(args.count));
            let asked = api::DataHistory { set: None, list, count };
            ask(&args.remote, &Request::DataHistory(asked), LOOK_PATIENCE)
        }
        ListCommand::Delete(args) => {
            let remove = api::OwnListRemove { name: args.name.clone(), tag: None };
            ask(&args.remote, &Request::OwnListRemove(remove), WORK_PATIENCE)
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let wrong = |error: std::io::Error| format!("cannot read {}: {error}", file.display());
    let mut octets = Vec::new();
    let taken = match file == Path::new("-") {
        true => std::io::stdin().lock().take(FILE_OCTETS_MAX + 1).read_to_end(&mut octets),
        false => {
            std::fs::File::open(file).and_then(|file| file.take(FILE_OCTETS_MAX + 1).read_to_end(&mut octets))
        }
    };
    taken.map_err(wrong)?;
    match octets.len() as u64 > FILE_OCTETS_MAX {
        true => Err(format!("{} is larger than {}", file.display(), size(FILE_OCTETS_MAX))),
        false => Ok(octets),
    }
}

/// Returns the rules of a file: its lines that are neither empty nor a comment.
fn rules(octets: &[u8]) -> Result<Vec<String>, String> {
    let text = std::str::from_utf8(octets).map_err(|_| "the rules are not UTF-8".to_owned())?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

fn edit(args: &ListEditArgs, form: fn(String) -> RuleEdit) -> ExitCode {
    let output = args.remote.output;
    let mut all = args.rules.clone();
    if let Some(file) = &args.file {
        match read(file).and_then(|octets| rules(&octets)) {
            Ok(rules) => all.extend(rules),
            Err(why) => return out::failed(&why, output),
        }
    }
    let octets: usize = all.iter().map(String::len).sum();
    let edits: Vec<RuleEdit> = all.into_iter().map(form).collect();
    if octets <= SHORT_OCTETS_MAX {
        let (name, is_dry_run) = (args.name.clone(), args.dry_run);
        let change = api::OwnListChange { name, edits, tag: None, is_dry_run };
        return ask(&args.remote, &Request::OwnListChange(change), WORK_PATIENCE);
    }
    let lines: String = edits.iter().map(api::to_json_line).collect();
    let sent = Sent { method: "PATCH", kind: "application/x-ndjson", header: None, is_dry_run: args.dry_run };
    send(&args.remote, &args.name, &sent, lines.as_bytes())
}

fn put(args: &ListPutArgs) -> ExitCode {
    let output = args.remote.output;
    let octets = match read(&args.file) {
        Ok(octets) => octets,
        Err(why) => return out::failed(&why, output),
    };
    let is_there = match ask_once(&args.remote, &Request::OwnLists, LOOK_PATIENCE) {
        Ok(Response::OwnLists(all)) => all.iter().any(|list| list.name == args.name),
        Ok(other) => return show(&other, output),
        Err(why) => return out::failed(&why, output),
    };
    let header = Some((if is_there { "If-Match" } else { "If-None-Match" }, "*"));
    let sent = Sent { method: "PUT", kind: "text/plain", header, is_dry_run: args.dry_run };
    send(&args.remote, &args.name, &sent, &octets)
}

/// How a body is sent.
struct Sent {
    method: &'static str,
    kind: &'static str,
    header: Option<(&'static str, &'static str)>,
    is_dry_run: bool,
}

/// Sends a body that is too long for a request of the control socket.
fn send(args: &RemoteArgs, name: &str, sent: &Sent, body: &[u8]) -> ExitCode {
    let target = format!(
        "/api/v1/lists/{}/content{}",
        percent_encoded(name),
        if sent.is_dry_run { "?dry-run" } else { "" }
    );
    let headers: Vec<(&str, &str)> =
        std::iter::once(("Content-Type", sent.kind)).chain(sent.header).collect();
    let answered = match &args.server.server {
        Some(url) => {
            network::send((url, &args.server), (sent.method, &target), &headers, body, WORK_PATIENCE)
        }
        None => {
            let paths = socket_paths(&args.socket);
            control::client::send(&paths, (sent.method, &target), &headers, body, WORK_PATIENCE)
                .map_err(|error| error.to_string())
        }
    };
    let (status, text) = match answered {
        Ok(answered) => answered,
        Err(why) => return out::failed(&why, args.output),
    };
    if status == 200
        && let Ok(changed) = control::client::parse::<api::OwnListChanged>(&text)
    {
        return show(&Response::OwnListChanged(changed), args.output);
    }
    let why = control::client::problem(&text).unwrap_or_else(|| format!("the server answers {status}"));
    out::failed(&why, args.output)
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for octet in text.bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(octet));
            }
            other => {
                let _ = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}

fn print(args: &ListNameArgs) -> ExitCode {
    let Some(name) = &args.name else { return ask(&args.remote, &Request::OwnLists, LOOK_PATIENCE) };
    let request = Request::OwnListContent(api::OwnListName { name: name.clone() });
    let mut outcome = out::FINE;
    let take = |response: Response| {
        outcome = show(&response, args.remote.output);
        match response {
            Response::OwnListText(part) if !part.is_last => More::Yes,
            _ => More::No,
        }
    };
    match ask_for_all(&args.remote, &request, WORK_PATIENCE, take) {
        Ok(()) => outcome,
        Err(why) => out::failed(&why, args.remote.output),
    }
}

/// Lays out which lists there are.
pub(super) fn text(lists: &[api::OwnList]) -> String {
    let mut text = String::new();
    for list in lists {
        let sets = match list.sets.as_slice() {
            [] => "in no set".to_owned(),
            sets => format!("in {}", sets.join(", ")),
        };
        let changes = match list.changes {
            0 => String::new(),
            changes => format!(", {} since", counted(changes, "change")),
        };
        let _ = writeln!(text, "{}: {}{changes}, {sets}", out::escaped(&list.name), size(list.octets));
    }
    if lists.is_empty() {
        text.push_str("there are no lists beside the settings\n");
    }
    text
}

/// Lays out who changed a set or a list.
pub(super) fn steps_text(steps: &[api::DataStep]) -> String {
    let mut text = String::new();
    for step in steps {
        let more = match step.count.saturating_sub(step.changes.len() as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let changes = step.changes.join(", ");
        let _ = writeln!(
            text,
            "{} {} {}: {}{more}",
            step.revision,
            step.at,
            out::escaped(&step.by),
            out::escaped(&changes)
        );
    }
    text
}

/// Says what became of a list.
pub(super) fn changed_text(changed: &api::OwnListChanged) -> String {
    let rules = counted(changed.changed, "rule");
    let compiled = if changed.is_compiled { ", with the sets compiled anew" } else { "" };
    match changed.is_dry_run {
        true => format!("{rules} would be changed\n"),
        false => {
            let warning = changed.warning.as_deref();
            let warning = warning.map_or_else(String::new, |why| format!("warning: {}\n", out::escaped(why)));
            format!("{rules} changed, revision {}{compiled}\n{warning}", changed.revision)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_rules_may_have_comments() {
        let expect = Ok(vec!["a.example".to_owned(), "full:b.example".to_owned()]);
        assert_eq!(rules(b"# mine\na.example\r\n\n full:b.example \n"), expect);
        assert!(rules(b"\xff\n").is_err());
        assert_eq!(percent_encoded("a/b c"), "a%2Fb%20c");
    }
}
