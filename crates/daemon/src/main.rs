//! The `gannet` binary: wiring, privileges, signals, and the commands that need parts of a server.
//!
//! Never decides anything about DNS.

#![deny(unsafe_code)]

mod check;
mod explain;
mod log;
mod lookup;
mod port_taken;
mod privileges;
mod probe;
mod restore;
mod run;
#[expect(unsafe_code, reason = "calls that only the operating system can do")]
mod sys;

use std::process::ExitCode;

use commands::cli::{self, Command, ServerCommand, XdpCommand};
use commands::{
    certificate, configuration, dnscrypt, import, mobileconfig, program, remote, xdp_check, zone,
};

fn main() -> ExitCode {
    let cli = cli::parse(std::env::args_os());
    match cli.command {
        None => run::run(&cli.run),
        Some(command) => carry_out(&command),
    }
}

fn carry_out(command: &Command) -> ExitCode {
    match command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Server(ServerCommand::Restore(args)) if args.offline => restore::run(args),
        Command::Server(command) => remote::run(command, server::DESCRIPTIONS),
        Command::Query(args) => lookup::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Config(command) => {
            configuration::run(command, |loaded| config::as_run(loaded, &environment::System))
        }
        Command::Zone(command) => zone::run(command),
        Command::Import(args) => import::run(args),
        Command::Unbound(args) => run::unbound(args),
        Command::Xdp(XdpCommand::Check(args)) => xdp_check::run(args),
        Command::Certificate(args) => certificate::run(args),
        Command::Dnscrypt(command) => dnscrypt::run(command),
        Command::Mobileconfig(args) => mobileconfig::run(args),
        Command::Completions(args) => program::completions(args),
        Command::Man(args) => program::manual(args),
        Command::Version(args) => program::version(*args),
    }
}
