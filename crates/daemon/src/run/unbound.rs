//! What Unbound says, for programs that wait for it.

use commands::cli::UnboundArgs;
use environment::System;
use settings::{Log, LogLevel, LogPlace, Origin, Settings, Startup};
use unbound_control::programs::Facts;

/// What it does to a query, by the names of its modules.
const MODULES: &str = "respip dns64 validator iterator";

/// Returns what `-V` prints.
pub(super) fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("Version {version} (gannet, in the place of unbound)\n\nLinked modules: {MODULES}\n")
}

/// Returns what `-h` prints.
pub(super) fn usage() -> String {
    "usage:  unbound [options]\n\
     Runs a DNS server on an unbound.conf.\n\
     -c FILE\tthe configuration (default /etc/unbound/unbound.conf)\n\
     -d\tstay in the foreground; twice, log to standard error\n\
     -p\twrite no file with the number of the process\n\
     -v\tlog more; more often, still more\n\
     -V\tprint the version\n\
     -h\tprint this\n"
        .to_owned()
        + &version()
}

/// Returns whether the server goes into the background: as `configured`, or else as the program
/// called `unbound` does. Never when it is told to stay, or a service manager waits for this
/// process or gave it sockets: these are for the process with that number alone.
pub(super) fn detaches(args: Option<&UnboundArgs>, configured: Option<bool>) -> bool {
    let is_told_to_stay = args.is_some_and(|args| args.foreground > 0);
    let is_watched = std::env::var_os("NOTIFY_SOCKET").is_some();
    let own = std::process::id().to_string();
    let has_sockets = std::env::var_os("LISTEN_PID").is_some_and(|process| process == *own);
    !is_told_to_stay && !is_watched && !has_sockets && configured.unwrap_or(args.is_some())
}

/// Returns whether the configuration names the user to become: that of an `unbound.conf` which says
/// nothing is as usual there, and need not exist.
pub(super) fn names_user(origin: &Origin, startup: &Startup) -> bool {
    match origin {
        Origin::Unbound(path) => {
            Facts::open_without_lists(path, &System).is_ok_and(|facts| facts.says("username"))
        }
        Origin::BuiltIn | Origin::File(_) => startup.user.is_some(),
    }
}

/// Checks that the file of `auto-trust-anchor-file` is there: whatever zone it was for would count
/// as unsigned, or other keys of the root as the ones to follow. `unbound-anchor` writes it.
pub(super) fn check_anchors(origin: &Origin, settings: &Settings) -> Result<(), String> {
    let Origin::Unbound(_) = origin else { return Ok(()) };
    let validating = settings.resolvers.iter().filter(|resolver| resolver.rules.validation.judges());
    let mut files = validating.filter_map(|resolver| resolver.trust_anchor_state.as_ref());
    match files.find_map(|file| Some((&file.value, std::fs::metadata(&file.value).err()?))) {
        Some((file, error)) => Err(format!(
            "trust anchors: unable to open {file} for reading: {error}\n  \
             hint: \"unbound-anchor -a {file}\" writes the keys of the root there",
            file = file.display()
        )),
        None => Ok(()),
    }
}

/// Returns where the log goes and how it looks.
pub(super) fn log(args: Option<&UnboundArgs>, configured: &Log) -> Log {
    let mut log = configured.clone();
    if args.is_some_and(|args| args.foreground > 1) {
        log.place = LogPlace::Stderr;
    }
    log
}

/// Returns the least important messages to log: each `-v` makes the log one step more talkative.
pub(super) fn log_level(args: Option<&UnboundArgs>, configured: LogLevel) -> LogLevel {
    let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
    let steps = args.map_or(0, |args| usize::from(args.verbose));
    let at = levels.iter().position(|level| *level == configured).unwrap_or(0);
    levels.get((at + steps).min(levels.len() - 1)).copied().unwrap_or(configured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_makes_the_log_more_talkative() {
        let level = |verbose: u8| {
            let (config, program) = (std::path::PathBuf::new(), Vec::new());
            let args = UnboundArgs {
                config,
                foreground: 0,
                no_pid_file: false,
                verbose,
                version: false,
                usage: false,
                help: None,
                program,
            };
            log_level(Some(&args), LogLevel::Info)
        };
        assert_eq!(
            [0, 1, 2, 9].map(level),
            [LogLevel::Info, LogLevel::Debug, LogLevel::Trace, LogLevel::Trace]
        );
        assert_eq!(log_level(None, LogLevel::Warn), LogLevel::Warn);
    }
}
