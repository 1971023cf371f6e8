//! The `gannet` binary: command line, wiring, privileges, signals.
//!
//! Never decides anything about DNS.

#![deny(unsafe_code)]

mod certificate;
mod cli;
mod explain;
mod import;
mod inspect;
mod log;
mod lookup;
mod mobileconfig;
mod out;
mod port_taken;
mod privileges;
mod probe;
mod progress;
mod record;
mod remote;
mod run;
#[expect(unsafe_code, reason = "calls that only the operating system can do")]
mod sys;
mod xdp_check;
mod zone;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use cli::{
    CacheCommand, Cli, Command, CompletionsArgs, ConfigCommand, ManArgs, ManPage, OutputArgs, SetCommand,
    XdpCommand,
};

fn main() -> ExitCode {
    let cli = Cli::parse_from(cli::arranged(std::env::args_os()));
    match cli.command {
        None => run::run(&cli.run),
        Some(command) => carry_out(&command),
    }
}

fn carry_out(command: &Command) -> ExitCode {
    match command {
        Command::Reload(args) => remote::reload(args),
        Command::Set(SetCommand::Add(args)) => remote::set_add(args),
        Command::Set(SetCommand::Del(args)) => remote::set_remove(args),
        Command::Set(SetCommand::List(args)) => remote::set_list(args),
        Command::Status(args) => remote::show_status(args),
        Command::Stats(args) => remote::stats(args),
        Command::Cache(CacheCommand::Flush(args)) => remote::cache_flush(args),
        Command::Cache(CacheCommand::Dump(args)) => remote::cache_dump(args),
        Command::Cache(CacheCommand::Stats(args)) => remote::cache_stats(args),
        Command::Cache(CacheCommand::Lookup(args)) => remote::cache_lookup(args),
        Command::Lists(args) => remote::lists(args),
        Command::Certificate(args) => certificate::run(args),
        Command::Mobileconfig(args) => mobileconfig::run(args),
        Command::Completions(args) => completions(args),
        Command::Man(args) => manual(args),
        Command::Version(args) => version(*args),
        Command::LogLevel(args) => remote::log_level(args),
        Command::Log(args) => record::show(args),
        Command::Jobs(args) => remote::jobs(args),
        Command::Zone(command) => zone::run(command),
        Command::Import(args) => import::run(args),
        Command::Xdp(XdpCommand::Check(args)) => xdp_check::run(args),
        Command::Query(args) => lookup::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Run(args) => run::run(args),
        Command::Check(args) => inspect::check(args),
        Command::Config(ConfigCommand::Show(args)) => inspect::show(args),
        Command::Config(ConfigCommand::Starter(args)) => inspect::starter(args),
        Command::Config(ConfigCommand::Default) => inspect::default(),
        Command::Config(ConfigCommand::Schema(args)) => inspect::schema(*args),
    }
}

fn completions(args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut cli::definition(), "gannet", &mut text);
    out::print(&String::from_utf8_lossy(&text));
    out::FINE
}

fn manual(args: &ManArgs) -> ExitCode {
    let written = match &args.to {
        Some(folder) => write_manuals(folder),
        None => print_manual(args.page),
    };
    match written {
        Ok(()) => out::FINE,
        Err(error) => {
            out::complain(&format!("the manual could not be written: {error}"));
            out::negative()
        }
    }
}

fn print_manual(page: ManPage) -> io::Result<()> {
    match page {
        ManPage::Gannet => {
            let mut text = Vec::new();
            clap_mangen::Man::new(cli::definition()).render(&mut text)?;
            out::print(&String::from_utf8_lossy(&text));
        }
        ManPage::GannetYaml => out::print(&config::print::man_page()),
    }
    Ok(())
}

fn write_manuals(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(cli::definition(), folder)
}

fn version(args: OutputArgs) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    out::print(&if args.json {
        format!("{{\"version\":\"{version}\"}}\n")
    } else {
        format!("gannet {version}\n")
    });
    out::FINE
}
