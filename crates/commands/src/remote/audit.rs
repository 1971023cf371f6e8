//! The audit log: who had what done.

use std::path::Path;
use std::process::ExitCode;

use control::api::{self, AuditRow, Request, Response, to_json_line};
use store::audit::{FaultKind, Octets, Row, hex, unhex, verify};
use store::checkpoint::Checkpoint;

use super::{LOOK_PATIENCE, ask, ask_once, show};
use crate::cli::{AuditCommand, AuditSearchArgs, AuditVerifyArgs, RemoteArgs};
use crate::out;

/// Rows that are asked for at once.
const PART_ROWS: u64 = 1_000;

/// Runs `gannet audit`.
pub(super) fn run(command: &AuditCommand) -> ExitCode {
    match command {
        AuditCommand::Tail(args) => {
            let asked = api::AuditRows { after: None, count: Some(args.lines) };
            ask(&args.remote, &Request::Audit(asked), LOOK_PATIENCE)
        }
        AuditCommand::Export(args) => export(args),
        AuditCommand::Search(args) => match search(args) {
            Ok(code) => code,
            Err(why) => out::failed(&why, args.remote.output),
        },
        AuditCommand::Verify(args) => match checked(args) {
            Ok(text) => {
                out::print(&text);
                out::FINE
            }
            Err(why) => out::failed(&why, args.output),
        },
    }
}

/// Returns rows as a person reads them.
pub(super) fn text(rows: &[AuditRow]) -> String {
    let mut text: String = rows.iter().map(|row| format!("{}\n", out::escaped(&row.line()))).collect();
    if let Some(last) = rows.last() {
        text.push_str(&format!("to note elsewhere: {}:{}\n", last.number, last.hash));
    } else {
        text.push_str("nobody has had anything done\n");
    }
    text
}

fn export(args: &RemoteArgs) -> ExitCode {
    each_part(args, |rows| out::still_read(&rows.iter().map(to_json_line).collect::<String>()))
}

/// Asks the server for all rows, part by part, for as long as somebody wants them.
fn each_part(args: &RemoteArgs, mut take: impl FnMut(&[AuditRow]) -> bool) -> ExitCode {
    let mut after = 0;
    loop {
        let asked = api::AuditRows { after: Some(after), count: Some(PART_ROWS) };
        let rows = match ask_once(args, &Request::Audit(asked), LOOK_PATIENCE) {
            Ok(Response::Audited(rows)) => rows,
            Ok(other) => return show(&other, args.output),
            Err(why) => return out::failed(&why, args.output),
        };
        let Some(last) = rows.last() else { return out::FINE };
        after = last.number;
        if !take(&rows) {
            return out::FINE;
        }
    }
}

/// Prints the rows that fit.
fn search(args: &AuditSearchArgs) -> Result<ExitCode, String> {
    let print = |rows: &[AuditRow]| {
        let found = rows.iter().filter(|row| fits(args, row));
        let text: String = if args.remote.output.json {
            found.map(to_json_line).collect()
        } else {
            found.map(|row| format!("{}\n", out::escaped(&row.line()))).collect()
        };
        text.is_empty() || out::still_read(&text)
    };
    match &args.file {
        None => Ok(each_part(&args.remote, print)),
        Some(file) => {
            let text = text_of(file)?;
            for (at, line) in text.lines().enumerate() {
                let row =
                    AuditRow::parse(line).map_err(|why| format!("{}:{}: {why}", file.display(), at + 1))?;
                if !print(std::slice::from_ref(&row)) {
                    break;
                }
            }
            Ok(out::FINE)
        }
    }
}

/// Returns whether a row is one that is looked for.
fn fits(args: &AuditSearchArgs, row: &AuditRow) -> bool {
    let AuditSearchArgs { by, what, on, outcome, since, until, .. } = args;
    let fields = row.fields();
    let has = |wanted: &Option<String>, of: &str| wanted.as_ref().is_none_or(|text| of.contains(text));
    let begins = |wanted: &Option<String>, of: &str| wanted.as_ref().is_none_or(|it| of.starts_with(it));
    let at_ms = i64::try_from(fields.at).unwrap_or(i64::MAX).saturating_mul(1000);
    has(by, &fields.by)
        && begins(what, &fields.what)
        && has(on, &fields.on)
        && begins(outcome, &fields.outcome)
        && since.is_none_or(|since| at_ms >= since)
        && until.is_none_or(|until| at_ms < until)
}

fn checked(args: &AuditVerifyArgs) -> Result<String, String> {
    let rows = read(&args.file)?;
    let key = args.key.as_deref().map(key).transpose()?;
    let mut noted: Vec<(u64, Octets)> = args.noted.as_deref().map(noted).transpose()?.into_iter().collect();
    for file in &args.checkpoint {
        noted.extend(checkpoints(file, args.public_key.as_deref().unwrap_or_default())?);
    }
    match verify(rows, key.as_ref(), &noted) {
        Ok(count) => Ok(format!("{count} rows are as they were written\n")),
        Err(fault) => {
            let what = match fault.kind {
                FaultKind::Changed => "was changed",
                FaultKind::Removed => "is not there, although later ones are",
                FaultKind::Cut => "and all after it are not there, although one of them was noted",
                FaultKind::Forged => "was not written by the server",
            };
            Err(format!("row {} {what}", fault.number))
        }
    }
}

fn text_of(file: &Path) -> Result<String, String> {
    let text = match file.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(file),
    };
    text.map_err(|error| format!("cannot read \"{}\": {error}", file.display()))
}

fn read(file: &Path) -> Result<Vec<Row>, String> {
    parse(&text_of(file)?, &file.display().to_string())
}

/// Reads an export. Each line has to be as it was exported, to the octet: what means the same in
/// JSON is something else all the same.
fn parse(text: &str, name: &str) -> Result<Vec<Row>, String> {
    let row = |(at, line): (usize, &str)| {
        let wrong = |why: &str| format!("{name}:{}: {why}", at + 1);
        let row = AuditRow::parse(line).map_err(|why| wrong(&why))?;
        let octets = |text: &str| unhex(text).ok_or_else(|| wrong("expected 64 hexadecimal digits"));
        let (hash, mac) = (octets(&row.hash)?, octets(&row.mac)?);
        let exported = AuditRow { hash: hex(&hash), mac: hex(&mac), ..row.clone() };
        if to_json_line(&exported) != line {
            return Err(wrong(&format!("row {} was changed: its line is not as it is exported", row.number)));
        }
        Ok(Row { number: row.number, text: row.row, hash, mac })
    };
    text.split_inclusive('\n').enumerate().map(row).collect()
}

fn key(file: &Path) -> Result<Octets, String> {
    let text = text_of(file)?;
    let key = text.trim().strip_prefix("0 ").and_then(unhex);
    key.ok_or_else(|| format!("\"{}\" is not the first key of an audit log", file.display()))
}

fn noted(text: &str) -> Result<(u64, Octets), String> {
    let read = || {
        let (number, hash) = text.split_once(':')?;
        Some((number.parse().ok()?, unhex(hash)?))
    };
    read().ok_or_else(|| format!("\"{text}\" is not NUMBER:HASH as \"gannet audit tail\" prints it"))
}

/// Reads the checkpoints in a file, which have to be signed.
fn checkpoints(file: &Path, public_key: &str) -> Result<Vec<(u64, Octets)>, String> {
    let key = match unhex(public_key) {
        Some(key) => key,
        None => unhex(text_of(Path::new(public_key))?.trim())
            .ok_or_else(|| format!("\"{public_key}\" is not the public key of an audit log"))?,
    };
    match Checkpoint::find(&text_of(file)?, &key) {
        Ok(found) if found.is_empty() => Err(format!("\"{}\" has no checkpoints", file.display())),
        Ok(found) => Ok(found.iter().map(|it| (it.number, it.hash)).collect()),
        Err(number) => Err(format!(
            "\"{}\": the checkpoint of row {number} was not signed with this key",
            file.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an export of some rows, and the first key.
    fn exported() -> (String, Octets) {
        let folder = std::env::temp_dir().join(format!("gannet-audit-{}", std::process::id()));
        let store = store::Store::open(&folder).expect("a store");
        for number in 0..3_u64 {
            let event = store::audit::Event {
                by: "anna".to_owned(),
                what: "reload".to_owned(),
                on: format!("\u{e4}\n\"{number}\""),
                outcome: "accepted".to_owned(),
                at: number,
                ..store::audit::Event::default()
            };
            store.audit(&[event]).expect("written");
        }
        let first = key(&folder.join("audit-first.key")).expect("a key");
        let rows = store.audited(0, 10).expect("readable");
        std::fs::remove_dir_all(&folder).expect("removed");
        let line = |row: Row| {
            let (hash, mac) = (hex(&row.hash), hex(&row.mac));
            to_json_line(&AuditRow { number: row.number, row: row.text, hash, mac })
        };
        (rows.into_iter().map(line).collect(), first)
    }

    #[test]
    fn every_octet_of_an_export_that_is_changed_removed_added_or_swapped_is_found() {
        let (export, first) = exported();
        let last = parse(&export, "export").expect("rows").pop().expect("a row");
        let is_right = |octets: &[u8], noted: &[(u64, Octets)]| {
            let rows = std::str::from_utf8(octets).ok().and_then(|text| parse(text, "export").ok());
            rows.is_some_and(|rows| verify(rows, Some(&first), noted).is_ok())
        };
        let noted = [(last.number, last.hash)];
        assert!(is_right(export.as_bytes(), &noted));
        let octets = export.as_bytes();
        for at in 0..octets.len() {
            for flipped in [1, 0x20, 0x80] {
                let mut changed = octets.to_vec();
                changed[at] ^= flipped;
                assert!(!is_right(&changed, &noted), "octet {at} is changed by {flipped:#x}");
            }
            let mut without = octets.to_vec();
            without.remove(at);
            assert!(!is_right(&without, &noted), "octet {at} is removed");
            let mut with = octets.to_vec();
            with.insert(at, b' ');
            assert!(!is_right(&with, &noted), "an octet is added at {at}");
            let mut swapped = octets.to_vec();
            swapped.swap(at, (at + 1) % octets.len());
            assert!(swapped == octets || !is_right(&swapped, &noted), "octet {at} is swapped");
        }
    }
}
