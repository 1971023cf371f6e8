//! The programs that come with Unbound, under their names: `unbound-control`,
//! `unbound-control-setup`, `unbound-checkconf`, `unbound-host`, `unbound-anchor`.

mod anchor;
mod arguments;
mod checkconf;
mod control;
mod host;
mod setup;

use std::ffi::OsString;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use server::Operator;
use settings::Loaded;
pub use unbound::Facts;

/// The usual configuration.
const CONFIGURATION: &str = "/etc/unbound/unbound.conf";
/// The usual directory.
const DIRECTORY: &str = "/etc/unbound";
/// What the packages of distributions build in.
const BUILT_IN: [(&str, &str); 7] = [
    ("control-cert-file", "/etc/unbound/unbound_control.pem"),
    ("control-key-file", "/etc/unbound/unbound_control.key"),
    ("directory", DIRECTORY),
    ("pidfile", "/run/unbound.pid"),
    ("server-cert-file", "/etc/unbound/unbound_server.pem"),
    ("server-key-file", "/etc/unbound/unbound_server.key"),
    ("username", "unbound"),
];

/// Starts a server in this process that listens to nobody but us.
pub type Start = fn(Loaded) -> Result<Arc<Operator>, String>;

/// A program.
#[derive(Clone, Copy)]
enum Program {
    /// It needs nothing.
    Plain(fn(Vec<String>) -> ExitCode),
    /// It finds answers.
    Asking(fn(Vec<String>, Start) -> ExitCode),
}

/// All of them, by their names without `unbound-`.
const PROGRAMS: [(&str, Program); 5] = [
    ("control", Program::Plain(control::run)),
    ("control-setup", Program::Plain(setup::run)),
    ("checkconf", Program::Plain(checkconf::run)),
    ("host", Program::Asking(host::run)),
    ("anchor", Program::Asking(anchor::run)),
];

/// Runs a program, if there is one of this name: `unbound-control`, or `control`.
pub fn run(name: &str, arguments: impl IntoIterator<Item = OsString>, start: Start) -> Option<ExitCode> {
    let bare = name.strip_prefix("unbound-").unwrap_or(name);
    let &(_, program) = PROGRAMS.iter().find(|(known, _)| *known == bare)?;
    let arguments = arguments.into_iter().map(|it| it.to_string_lossy().into_owned()).collect();
    Some(match program {
        Program::Plain(run) => run(arguments),
        Program::Asking(run) => run(arguments, start),
    })
}

/// Returns the names of the programs, as they are called.
pub fn names() -> impl Iterator<Item = String> {
    PROGRAMS.iter().map(|(name, _)| format!("unbound-{name}"))
}

/// Prints a line.
fn say(text: impl fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints a line to standard error.
fn complain(text: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints a line to standard error, in the form of the other program's log.
fn log(program: &str, level: &str, text: impl fmt::Display) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let process = std::process::id();
    let _ = writeln!(std::io::stderr().lock(), "[{since}] {program}[{process}:0] {level}: {text}");
}

/// Returns an option's values as they are printed, or what is built in; `None` if it cannot be
/// printed.
fn values(facts: &Facts, name: &str) -> Option<Vec<String>> {
    let built_in = BUILT_IN.iter().find(|(known, _)| *known == name && !facts.says(name));
    match built_in {
        Some((_, value)) => Some(vec![(*value).to_owned()]),
        None => facts.printed(name),
    }
}

/// Returns a file that an option of the control channel names.
fn file(facts: &Facts, option: &str) -> PathBuf {
    let value = facts.value(option);
    if facts.says(option) { facts.directory().join(value) } else { Path::new(DIRECTORY).join(value) }
}

/// What help ends with.
fn version() -> String {
    format!("Version {} (gannet, in the place of unbound)", env!("CARGO_PKG_VERSION"))
}
