//! `gannet backup` and `gannet restore`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use control::api;

use super::{WORK_PATIENCE, network, socket_paths};
use crate::cli::{BackupArgs, RestoreArgs};
use crate::out;

/// Runs `gannet backup`.
pub(super) fn back_up(args: &BackupArgs) -> ExitCode {
    let output = args.remote.output;
    match try_back_up(args) {
        Ok(()) => out::FINE,
        Err(why) => out::failed(&why, output),
    }
}

fn try_back_up(args: &BackupArgs) -> Result<(), String> {
    let target = if args.secrets { "/api/v1/backup?secrets" } else { "/api/v1/backup" };
    let is_output = args.file == Path::new("-");
    let wrong = |error: io::Error| format!("{}: {error}", args.file.display());
    let mut file: Box<dyn Write> = match is_output {
        true => Box::new(io::stdout().lock()),
        // It may hold secrets, and what was there is not written over.
        false => {
            let mut options = OpenOptions::new();
            Box::new(options.write(true).create_new(true).mode(0o600).open(&args.file).map_err(wrong)?)
        }
    };
    let remote = &args.remote;
    let fetched = match &remote.server.server {
        Some(url) => network::fetch((url, &remote.server), target, &mut file, WORK_PATIENCE),
        None => control::client::fetch(&socket_paths(&remote.socket), target, &mut file, WORK_PATIENCE)
            .map_err(|error| error.to_string()),
    };
    let (status, text) =
        fetched.and_then(|fetched| file.flush().map(|()| fetched).map_err(wrong)).inspect_err(
            // A part of a backup is none.
            |_| drop((!is_output).then(|| std::fs::remove_file(&args.file))),
        )?;
    drop(file);
    if status == 200 {
        return match is_output {
            true => Ok(()),
            false => File::open(&args.file).and_then(|file| file.sync_all()).map_err(wrong),
        };
    }
    if !is_output {
        drop(std::fs::remove_file(&args.file));
    }
    Err(control::client::problem(&text).unwrap_or_else(|| format!("the server answers {status}")))
}

/// Runs `gannet restore`.
pub(super) fn restore(args: &RestoreArgs) -> ExitCode {
    let output = args.remote.output;
    let opened = File::open(&args.file).and_then(|file| file.metadata().map(|known| (file, known.len())));
    let (mut file, octets) = match opened {
        Ok(opened) => opened,
        Err(error) => return out::failed(&format!("{}: {error}", args.file.display()), output),
    };
    let target = if args.dry_run { "/api/v1/restore?dry-run" } else { "/api/v1/restore" };
    let (asked, headers) = (("POST", target), [("Content-Type", "application/x-tar")]);
    let remote = &args.remote;
    let answered = match &remote.server.server {
        Some(url) => network::send_file((url, &remote.server), asked, &headers, &file, WORK_PATIENCE),
        None => {
            let (paths, body) = (socket_paths(&remote.socket), (&mut file as &mut dyn Read, octets));
            control::client::send_from(&paths, asked, &headers, body, WORK_PATIENCE)
                .map_err(|error| error.to_string())
        }
    };
    let (status, text) = match answered {
        Ok(answered) => answered,
        Err(why) => return out::failed(&why, output),
    };
    match control::client::parse::<api::Restored>(&text) {
        Ok(restored) if status == 200 => {
            match output.json {
                true => out::print(&text),
                false => out::print(&shown(&restored)),
            }
            out::FINE
        }
        _ => {
            let why = control::client::problem(&text);
            out::failed(&why.unwrap_or_else(|| format!("the server answers {status}")), output)
        }
    }
}

/// Returns what is said of a backup that is restored, or can be.
pub fn shown(restored: &api::Restored) -> String {
    let api::Restored { at, revision, files, has_secrets, is_ready } = restored;
    let secrets = if *has_secrets { "with" } else { "without" };
    let end = match is_ready {
        true => "the next start of the server takes it up",
        false => "it can be restored",
    };
    format!("a backup of {at}, revision {revision}, {files} files, {secrets} secrets: {end}\n")
}
