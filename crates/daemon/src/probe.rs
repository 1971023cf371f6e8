//! `gannet probe`: measures an upstream server, from here or from the running server.

use std::process::ExitCode;

use commands::cli::ProbeArgs;
use commands::{out, remote};
use environment::System;
use server::probe::{self, Measuring};

/// Runs `gannet probe`.
pub(crate) fn run(args: &ProbeArgs) -> ExitCode {
    if args.running || args.remote.server.is_given() || args.remote.socket.socket.is_some() {
        return remote::probe(args);
    }
    let output = args.remote.output;
    let server = match probe::server(&args.upstream, &System) {
        Ok(server) => server,
        Err(why) => return out::wrong(&why, output),
    };
    let asked = Measuring {
        written: args.upstream.clone(),
        name: args.name,
        signed: args.signed,
        bogus: args.bogus,
        count: args.count.unwrap_or(20),
        timeout: args.timeout,
        idle: Some(args.idle.unwrap_or(std::time::Duration::from_secs(15))),
        tries_others: true,
        patience: None,
    };
    match probe::measure(&asked, &server) {
        Ok(report) => remote::show(&control::api::Response::Probed(Box::new(report)), output),
        Err(why) => out::failed(&why, output),
    }
}
