//! `unbound-checkconf`: what is wrong with a configuration, and what its options are.

use std::path::Path;
use std::process::ExitCode;

use diagnostic::{Diagnostic, Severity, io_text};
use environment::System;
use unbound::{Facts, OptionValue};

use super::arguments::Arguments;
use super::{CONFIGURATION, complain, file, log, say, values};

const NAME: &str = "unbound-checkconf";
/// Options whose values are paths, which a `chroot` stands before.
const PATHS: [&str; 12] = [
    "auto-trust-anchor-file",
    "control-cert-file",
    "control-key-file",
    "directory",
    "logfile",
    "pidfile",
    "root-hints",
    "server-cert-file",
    "server-key-file",
    "tls-service-key",
    "tls-service-pem",
    "trust-anchor-file",
];

pub(super) fn run(arguments: Vec<String>) -> ExitCode {
    let arguments = match Arguments::read(arguments, "o", "fqh") {
        Ok(arguments) if !arguments.has('h') && arguments.rest.len() <= 1 => arguments,
        _ => return usage(),
    };
    let path = arguments.rest.first().map_or(CONFIGURATION, String::as_str);
    let facts = match Facts::open_without_lists(Path::new(path), &System) {
        Ok(facts) => facts,
        Err(error) => {
            log(NAME, "error", format_args!("Could not open {path}: {}", io_text(&error)));
            return ExitCode::FAILURE;
        }
    };
    let (mistakes, warnings) = match arguments.has('o') {
        // Who installs asks where files are to be before there are any.
        true => (lines(facts.unreadable(), Severity::Error), Vec::new()),
        false => found(Path::new(path), &facts),
    };
    if !arguments.has('q') {
        warnings.iter().for_each(complain);
    }
    if !mistakes.is_empty() {
        for mistake in &mistakes {
            complain(mistake);
        }
        let count = mistakes.len();
        complain(format_args!("read {path} failed: {count} errors in configuration file"));
        return ExitCode::FAILURE;
    }
    match arguments.value('o') {
        Some(option) => print(&facts, option, arguments.has('f')),
        None => {
            if !arguments.has('q') {
                say(format_args!("unbound-checkconf: no errors in {path}"));
            }
            ExitCode::SUCCESS
        }
    }
}

fn usage() -> ExitCode {
    say("Usage:\tunbound-checkconf [file]");
    say("Says what is wrong with a configuration (default /etc/unbound/unbound.conf).");
    say("  -o OPTION\tprint the values of an option, one a line");
    say("  -f\t\tprint paths with the chroot before them");
    say("  -q\t\tprint nothing if all is well");
    say("  -h\t\tprint this");
    say(super::version());
    ExitCode::FAILURE
}

/// Returns the lines of errors, or of warnings.
fn lines(found: &[Diagnostic], severity: Severity) -> Vec<String> {
    let word = if severity == Severity::Error { "error" } else { "warning" };
    let line = |found: &Diagnostic| {
        let Diagnostic { file, line, message, expected, .. } = found;
        let expected =
            expected.as_ref().map_or_else(String::new, |expected| format!(": expected {expected}"));
        format!("{}:{line}: {word}: {message}{expected}", file.display())
    };
    found.iter().filter(|found| found.severity == severity).map(line).collect()
}

/// Returns everything that keeps a server from starting with the file, and the warnings that the
/// log has at a start with it.
fn found(path: &Path, facts: &Facts) -> (Vec<String>, Vec<String>) {
    let compiled = settings::check_unbound(path)
        .and_then(|mut loaded| devices::interfaces::look_up(&mut loaded).map(|()| loaded))
        .and_then(|loaded| devices::interfaces::check_channel(&loaded).map(|()| loaded))
        .and_then(|loaded| {
            let compiled = server::compile(&loaded, &[], None, &System)?;
            Ok([&loaded.warnings[..], &compiled.plans.warnings[..]].concat())
        });
    let found = compiled.unwrap_or_else(|found| found);
    let (mut mistakes, warnings) = (lines(&found, Severity::Error), lines(&found, Severity::Warning));
    let others = missing_keys(facts).into_iter().chain(refused(facts));
    mistakes.extend(others.map(|why| format!("{}: error: {why}", path.display())));
    (mistakes, warnings)
}

/// Returns what the other checker refuses although its server would start, or would start somewhere
/// else.
fn refused(facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(unbound::module_order_mistake(&facts.value("module-config")));
    let user = facts.value("username");
    if facts.says("username") && !user.is_empty() && !server::sys::has_user(&user) {
        found.push(format!("user \"{user}\" does not exist"));
    }
    let chroot = facts.value("chroot");
    if chroot.len() > 1 && chroot.ends_with('/') {
        found.push(format!("chroot \"{chroot}\" has a \"/\" at its end"));
    } else if !chroot.is_empty() && !Path::new(&chroot).is_dir() {
        found.push(format!("chroot \"{chroot}\" is no directory"));
    }
    if facts.says("directory") && !is_there(facts, facts.directory()) {
        found.push(format!("directory \"{}\" does not exist", facts.directory().display()));
    }
    for option in ["auto-trust-anchor-file", "trust-anchor-file", "root-hints"] {
        let OptionValue::Values(files) = facts.option(option) else { continue };
        let files = files.iter().filter(|file| !file.is_empty()).map(|file| facts.directory().join(file));
        let missing = files.filter(|file| !is_there(facts, file));
        found.extend(missing.map(|file| format!("{option}: \"{}\" does not exist", file.display())));
    }
    for option in ["pidfile", "logfile"] {
        let path = facts.directory().join(facts.value(option));
        let folder = path.parent().filter(|_| facts.says(option) && !facts.value(option).is_empty());
        if let Some(folder) = folder.filter(|folder| !is_there(facts, folder)) {
            found.push(format!("the directory of {option}, \"{}\", does not exist", folder.display()));
        }
    }
    found
}

/// Returns whether a path is there, perhaps within the chroot.
fn is_there(facts: &Facts, path: &Path) -> bool {
    let chroot = facts.value("chroot");
    let inside = || Path::new(&chroot).join(path.strip_prefix("/").unwrap_or(path));
    // Nothing is the directory where we are.
    path.as_os_str().is_empty() || path.exists() || !chroot.is_empty() && inside().exists()
}

/// Returns the files of the control channel that are needed and not there.
fn missing_keys(facts: &Facts) -> Vec<String> {
    if !facts.is("control-enable") || !facts.is("control-use-cert") {
        return Vec::new();
    }
    let only_paths = match facts.option("control-interface") {
        OptionValue::Values(values) => !values.is_empty() && values.iter().all(|it| it.starts_with('/')),
        OptionValue::Unknown => false,
    };
    if only_paths {
        return Vec::new();
    }
    let options = ["server-key-file", "server-cert-file", "control-key-file", "control-cert-file"];
    let missing = options.into_iter().filter_map(|option| {
        let path = file(facts, option);
        (!path.is_file()).then(|| format!("{option}: \"{}\" does not exist", path.display()))
    });
    missing.collect()
}

fn print(facts: &Facts, option: &str, with_chroot: bool) -> ExitCode {
    let option = option.strip_suffix(':').unwrap_or(option);
    let Some(found) = values(facts, option) else {
        log(NAME, "fatal error", format_args!("cannot print option '{option}'"));
        return ExitCode::FAILURE;
    };
    let chroot = facts.value("chroot");
    for value in &found {
        if with_chroot && PATHS.contains(&option) && !chroot.is_empty() && !value.is_empty() {
            let inside = facts.directory().join(value);
            let inside = inside.strip_prefix(&chroot).unwrap_or(&inside);
            say(Path::new(&chroot).join(inside.strip_prefix("/").unwrap_or(inside)).display());
        } else {
            say(value);
        }
    }
    ExitCode::SUCCESS
}
