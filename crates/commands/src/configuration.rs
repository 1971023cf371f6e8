//! Configurations: which one is meant, what is wrong with it, and `gannet config`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use control::api;
use diagnostic::{Diagnostic, Severity};
use settings::{Loaded, Origin};

use crate::cli::{CheckFormat, ConfigArgs, ConfigCommand, ConfigShowArgs, OutputArgs, Purpose, StarterArgs};
use crate::{out, remote};

/// Where the configuration is if nobody says otherwise.
const DEFAULT_FILE: &str = "/etc/gannet/gannet.yaml";

/// Decides where the configuration comes from: what is given, then `$GANNET_CONFIG`, then the usual
/// file if it is there.
pub fn find(args: &ConfigArgs) -> Origin {
    let variable = std::env::var_os("GANNET_CONFIG").filter(|value| !value.is_empty());
    if let Some(path) = args.config.clone().or_else(|| variable.map(PathBuf::from)) {
        return Origin::File(path);
    }
    // A file that is there but cannot be read must not be taken for none.
    match Path::new(DEFAULT_FILE).symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Origin::BuiltIn,
        Ok(_) | Err(_) => Origin::File(DEFAULT_FILE.into()),
    }
}

/// Prints findings about a configuration; the code is negative if one of them is an error.
pub fn report(origin: &Origin, found: &[Diagnostic], format: CheckFormat) -> ExitCode {
    out::print(&match format {
        CheckFormat::Human if out::is_coloured() => coloured(&human(origin, found), found),
        CheckFormat::Human => human(origin, found),
        CheckFormat::Line => found.iter().map(|found| format!("{}\n", found.line())).collect(),
        CheckFormat::Json => api::to_json(&found.iter().map(api::Diagnostic::from).collect::<Vec<_>>()),
    });
    if found.iter().any(|found| found.severity == Severity::Error) { out::negative() } else { out::FINE }
}

/// Returns every finding with its source line, and a summary.
pub fn human(origin: &Origin, found: &[Diagnostic]) -> String {
    human_of(&origin.name(), found)
}

/// Returns every finding about what is called `name` with its source line, and a summary.
pub(crate) fn human_of(name: &str, found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in found {
        let _ = writeln!(text, "{}", diagnostic.human());
    }
    let count = |severity| found.iter().filter(|found| found.severity == severity).count();
    text + &summary(name, (count(Severity::Error), count(Severity::Warning)))
}

/// Returns a line that says how many errors and warnings were found.
pub(crate) fn summary(name: &str, counts: (usize, usize)) -> String {
    let found = match counts {
        (0, 0) => "no mistakes found".into(),
        (0, warnings) => number_of(warnings, "warning"),
        (errors, 0) => number_of(errors, "error"),
        (errors, warnings) => format!("{}, {}", number_of(errors, "error"), number_of(warnings, "warning")),
    };
    format!("{name}: {found}\n")
}

/// Colours what [`human`] printed: severities, marks under places, and hints.
fn coloured(text: &str, found: &[Diagnostic]) -> String {
    const RED: &str = "31";
    const YELLOW: &str = "33";
    const CYAN: &str = "36";
    let paint = |text: &str, colour: &str| format!("\x1b[1;{colour}m{text}\x1b[0m");
    let mut colour = RED;
    let line = |line: &str| {
        // The first line of a finding says where, how bad, and what.
        if let Some(known) = found.iter().find(|known| known.line() == line) {
            let word = format!("{}:", known.severity.word());
            colour = if known.severity == Severity::Error { RED } else { YELLOW };
            // Before the message there is only the place.
            if let Some(at) = line.find(&format!("{word} {}", known.message)) {
                let (place, rest) = line.split_at(at);
                let rest = rest.strip_prefix(&word).unwrap_or(rest);
                return format!("{place}{}{rest}\n", paint(&word, colour));
            }
        }
        let bare = line.trim_start();
        let is_mark = line.starts_with("      | ") && line.ends_with('^');
        if let (true, Some(at)) = (is_mark, line.find('^')) {
            let (before, mark) = line.split_at(at);
            return format!("{before}{}\n", paint(mark, colour));
        }
        match bare.strip_prefix("hint:") {
            Some(rest) if line.starts_with("   hint:") => format!("   {}{rest}\n", paint("hint:", CYAN)),
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

fn number_of(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Runs `gannet config …`. What is shown is what `as_run` makes of what was read.
pub fn run(command: &ConfigCommand, as_run: impl FnOnce(Loaded) -> Loaded) -> ExitCode {
    match command {
        ConfigCommand::Show(args) => show(args, as_run),
        ConfigCommand::Starter(args) => starter(args),
        ConfigCommand::Change(command) => remote::config(command),
        ConfigCommand::Default => default(),
        ConfigCommand::Schema(args) => schema(*args),
    }
}

fn show(args: &ConfigShowArgs, as_run: impl FnOnce(Loaded) -> Loaded) -> ExitCode {
    if args.running {
        return remote::config_show(&args.remote, args.origin);
    }
    if args.remote.server.is_given() {
        return out::wrong("--server needs --running", args.remote.output);
    }
    let origin = find(&args.config);
    match origin.load().map(as_run) {
        Ok(loaded) if args.remote.output.json => {
            out::print(&settings::print::show_json(&loaded));
            out::FINE
        }
        Ok(loaded) => {
            let text = settings::print::show(&loaded);
            out::print(&if args.origin { text } else { without_origins(&text, &loaded) });
            out::FINE
        }
        Err(found) => out::failed(human(&origin, &found).trim_end(), args.remote.output),
    }
}

fn default() -> ExitCode {
    out::print(&settings::print::defaults());
    out::FINE
}

fn starter(args: &StarterArgs) -> ExitCode {
    out::print(match args.purpose {
        Purpose::Home => include_str!("../starters/home.yaml"),
        Purpose::Office => include_str!("../starters/office.yaml"),
        Purpose::Authoritative => include_str!("../starters/authoritative.yaml"),
        Purpose::Forwarder => include_str!("../starters/forwarder.yaml"),
    });
    out::FINE
}

fn schema(args: OutputArgs) -> ExitCode {
    out::print(&if args.json { settings::print::json_schema() } else { settings::print::manual() });
    out::FINE
}

/// Takes away the comment that says where a setting comes from: ` # file:line` at the end of its
/// line.
fn without_origins(text: &str, loaded: &Loaded) -> String {
    let files: Vec<String> =
        loaded.sources.files().map(|source| format!("# {}:", source.path.display())).collect();
    let bare = |line: &str| {
        let digits = line.trim_end_matches(|c: char| c.is_ascii_digit());
        let origin = files.iter().find_map(|file| digits.strip_suffix(file.as_str()));
        format!("{}\n", origin.unwrap_or(line).trim_end())
    };
    text.lines().map(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_nothing_but_the_colour() {
        let found =
            settings::load_text(Path::new("g.yaml"), "lisen: 127.0.0.1\n", &environment::System).err();
        let found = found.expect("a mistake");
        let plain = human_of("g.yaml", &found);
        let painted = coloured(&plain, &found);
        for part in
            ["g.yaml:1:1: \x1b[1;31merror:\x1b[0m ", "\x1b[1;31m^^^^^\x1b[0m\n", "\x1b[1;36mhint:\x1b[0m "]
        {
            assert!(painted.contains(part), "{painted:?}");
        }
        let mut bare = painted;
        for code in ["\x1b[1;31m", "\x1b[1;33m", "\x1b[1;36m", "\x1b[0m"] {
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, plain);
    }
}
