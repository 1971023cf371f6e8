//! `gannet import`: another program's configuration becomes one of ours.

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use environment::System;
use import::{Dialect, NameServer};
use settings::Origin;

use crate::cli::{ImportArgs, Program};
use crate::configuration::human;
use crate::out;

/// Runs `gannet import`.
pub fn run(args: &ImportArgs) -> ExitCode {
    let origin = Origin::File(args.file.clone());
    let made = match args.program {
        Program::Mosdns => import::forwarder(Dialect::Mosdns, &args.file, &System),
        Program::Oxidns => import::forwarder(Dialect::Oxidns, &args.file, &System),
        Program::Knot => import::name_server(NameServer::Knot, &args.file, &System),
        Program::Nsd => import::name_server(NameServer::Nsd, &args.file, &System),
        Program::Bind => import::name_server(NameServer::Bind, &args.file, &System),
        Program::Runbound => import::runbound(&args.file, &System),
        Program::Unbound => import::unbound(&args.file, &System),
        Program::Erldns => import::name_server(NameServer::Erldns, &args.file, &System),
    };
    let imported = match made {
        Ok(imported) => imported,
        Err(found) => {
            out::complain(human(&origin, &found).trim_end());
            return out::negative();
        }
    };
    if !imported.warnings.is_empty() {
        out::complain(human(&origin, &imported.warnings).trim_end());
    }
    match &args.to {
        None => out::print(&imported.text),
        Some(to) => {
            // Never over a file that somebody may have worked on.
            let written = File::create_new(to).and_then(|mut file| file.write_all(imported.text.as_bytes()));
            if let Err(error) = written {
                out::complain(&format!("{} could not be written: {error}", to.display()));
                return out::negative();
            }
        }
    }
    out::FINE
}
