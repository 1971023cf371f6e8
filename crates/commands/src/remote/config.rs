//! Settings of the running server that are changed while it runs.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request, Response};

use super::{LOOK_PATIENCE, WORK_PATIENCE, ask, ask_once};
use crate::cli::{ChangeArgs, ConfigChangeCommand, RemoteArgs};
use crate::out;

/// Runs those of `gannet config …` that are for the running server.
pub(crate) fn run(command: &ConfigChangeCommand) -> ExitCode {
    match command {
        ConfigChangeCommand::Set(args) => {
            let path = args.path.clone();
            let edit = if args.nothing {
                api::ConfigEdit::TakeAway { path }
            } else {
                let text = match args.text.as_deref() {
                    Some("-") | None => std::io::read_to_string(std::io::stdin()),
                    Some(text) => Ok(text.to_owned()),
                };
                match text {
                    Ok(text) => api::ConfigEdit::Set { path, text },
                    Err(error) => {
                        let why = format!("cannot read standard input: {error}");
                        return out::failed(&why, args.change.remote.output);
                    }
                }
            };
            change(&args.change, vec![edit], args.for_s)
        }
        ConfigChangeCommand::Unset(args) => {
            let unset = |path: &String| api::ConfigEdit::Unset { path: path.clone() };
            change(&args.change, args.paths.iter().map(unset).collect(), None)
        }
        ConfigChangeCommand::Rollback(args) => {
            change(&args.change, vec![api::ConfigEdit::RollBack { revision: args.revision }], None)
        }
        ConfigChangeCommand::History(args) => {
            let asked = api::ConfigHistory { count: args.count, before: None };
            ask(&args.remote, &Request::ConfigHistory(asked), LOOK_PATIENCE)
        }
        ConfigChangeCommand::Diff(args) => {
            let asked = api::ConfigDiff { from: args.from, to: args.to };
            ask(&args.remote, &Request::ConfigDiff(asked), LOOK_PATIENCE)
        }
        ConfigChangeCommand::Export(args) => {
            let asked = api::ConfigExport { with_secrets: args.secrets };
            ask(&args.remote, &Request::ConfigExport(asked), LOOK_PATIENCE)
        }
    }
}

fn change(args: &ChangeArgs, edits: Vec<api::ConfigEdit>, for_s: Option<u64>) -> ExitCode {
    let change = api::ConfigChange {
        edits,
        by: who(),
        why: args.why.clone(),
        for_s,
        expected: args.if_revision,
        expected_at: Vec::new(),
        is_dry_run: args.dry_run,
    };
    ask(&args.remote, &Request::ConfigChange(change), WORK_PATIENCE)
}

/// Returns the name of whoever calls, also through sudo(8): for the history, beside the user that
/// the server sees.
fn who() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable("SUDO_USER").or_else(|| variable("USER")).or_else(|| variable("LOGNAME"))
}

/// Prints the settings of the running server.
pub(crate) fn show(args: &RemoteArgs, with_origin: bool) -> ExitCode {
    match ask_once(args, &Request::ConfigShow, LOOK_PATIENCE) {
        Ok(Response::ConfigShown(shown)) if with_origin || args.output.json => {
            super::show(&Response::ConfigShown(shown), args.output)
        }
        Ok(Response::ConfigShown(shown)) => {
            out::print(&without_origins(&shown.text));
            out::FINE
        }
        Ok(other) => super::show(&other, args.output),
        Err(why) => out::failed(&why, args.output),
    }
}

/// Takes away what stands behind values: ` # file:line` at the end of a line.
fn without_origins(text: &str) -> String {
    let bare = |line: &str| {
        let digits = line.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_origin = digits.len() < line.len() && digits.ends_with(':');
        let origin = digits.rfind("  # ").filter(|_| is_origin);
        format!("{}\n", origin.map_or(line, |at| &line[..at]).trim_end())
    };
    text.lines().map(bare).collect()
}

/// Returns what came of a change.
pub(super) fn changed_text(changed: &api::ConfigChanged) -> String {
    let mut text = String::new();
    for diagnostic in &changed.diagnostics {
        let _ = writeln!(text, "{}", diagnostic.text);
    }
    for path in &changed.replaced {
        let _ = writeln!(text, "the change of {} is gone: it is part of what was set", out::escaped(path));
    }
    let _ = match changed.is_adopted {
        true => writeln!(text, "revision {} of the changes is in use", changed.revision),
        false => writeln!(text, "no mistakes found; nothing is changed"),
    };
    if !changed.needs_restart.is_empty() {
        let _ = writeln!(text, "changed, but read only at the start: {}", changed.needs_restart.join(", "));
    }
    text
}

/// Returns what two configurations say differently.
pub(super) fn differences_text(all: &[api::ConfigDifference]) -> String {
    let mut text = String::new();
    for it in all {
        for (sign, said) in [('-', &it.before), ('+', &it.after)] {
            if let Some(said) = said {
                let _ = writeln!(text, "{sign} {}: {}", out::escaped(&it.path), out::escaped(said));
            }
        }
    }
    if all.is_empty() {
        text.push_str("no difference\n");
    }
    text
}

/// Returns what settings say, and where.
pub(super) fn settings_text(settings: &[api::Setting]) -> String {
    let line = |it: &api::Setting| {
        let origin = it.origin.as_deref().map_or_else(String::new, |origin| format!("  # {origin}"));
        format!("{}: {}{}\n", out::escaped(&it.path), out::escaped(&it.text), out::escaped(&origin))
    };
    settings.iter().map(line).collect()
}

/// Returns who changed what.
pub(super) fn steps_text(steps: &[api::ConfigStep]) -> String {
    let mut text = String::new();
    for step in steps {
        let why = if step.why.is_empty() { String::new() } else { format!(": {}", out::escaped(&step.why)) };
        let _ = writeln!(text, "{} {} by {}{why}", step.revision, step.at, out::escaped(&step.by));
        for edit in &step.edits {
            let after = edit.after.as_deref().unwrap_or("as the file says");
            let _ = writeln!(text, "    {}: {}", out::escaped(&edit.path), out::escaped(after));
        }
    }
    if steps.is_empty() {
        text.push_str("no setting was changed while the server ran\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_a_line_for_each_side() {
        let all = [api::ConfigDifference {
            path: "cache.main.size".to_owned(),
            before: Some("64MiB".to_owned()),
            after: Some("1GiB".to_owned()),
        }];
        assert_eq!(differences_text(&all), "- cache.main.size: 64MiB\n+ cache.main.size: 1GiB\n");
        assert_eq!(differences_text(&[]), "no difference\n");
    }

    #[test]
    fn places_are_left_out_unless_they_are_wanted() {
        let text = "edns:\n  udp-size: 1232      # change 1 by anna:1\n  x: \"a  # b:c\"\n";
        assert_eq!(without_origins(text), "edns:\n  udp-size: 1232\n  x: \"a  # b:c\"\n");
    }
}
