//! The audit log: who had what done.

use std::path::Path;
use std::process::ExitCode;

use control::api::{self, AuditRow, Request, Response, to_json_line};
use store::audit::{FaultKind, Octets, Row, unhex, verify};

use super::{LOOK_PATIENCE, ask, ask_once, show};
use crate::cli::{AuditCommand, AuditVerifyArgs, RemoteArgs};
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
        if !out::still_read(&rows.iter().map(to_json_line).collect::<String>()) {
            return out::FINE;
        }
    }
}

fn checked(args: &AuditVerifyArgs) -> Result<String, String> {
    let rows = read(&args.file)?;
    let key = args.key.as_deref().map(key).transpose()?;
    let noted = args.noted.as_deref().map(noted).transpose()?;
    match verify(rows, key.as_ref(), noted) {
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
    let text = text_of(file)?;
    let row = |(at, line): (usize, &str)| {
        let wrong = |why: &str| format!("{}:{}: {why}", file.display(), at + 1);
        let row = AuditRow::parse(line).map_err(|why| wrong(&why))?;
        let octets = |text: &str| unhex(text).ok_or_else(|| wrong("expected 64 hexadecimal digits"));
        let (hash, mac) = (octets(&row.hash)?, octets(&row.mac)?);
        Ok(Row { number: row.number, text: row.row, hash, mac })
    };
    text.lines().enumerate().map(row).collect()
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
