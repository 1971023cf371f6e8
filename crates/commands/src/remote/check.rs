//! `gannet check --running`: a configuration that the running server checks.

use std::process::ExitCode;

use control::api::{self, Request, Response};
use settings::Origin;

use crate::cli::{CheckArgs, CheckFormat, OutputArgs, RemoteArgs};
use crate::{configuration, out};

/// Has the running server check a configuration.
pub fn check(args: &CheckArgs) -> ExitCode {
    let format = if args.json { CheckFormat::Json } else { args.format };
    let output = OutputArgs { json: format == CheckFormat::Json };
    let origin = match &args.file {
        Some(file) if args.unbound => Origin::Unbound(file.clone()),
        Some(file) => Origin::File(file.clone()),
        None => configuration::find(&args.config),
    };
    let (Origin::File(file) | Origin::Unbound(file)) = &origin else {
        return out::wrong("which file? there is none at the usual place", output);
    };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return out::failed(&format!("{}: {error}", file.display()), output),
    };
    let language = if args.unbound { api::SettingsLanguage::Unbound } else { api::SettingsLanguage::Yaml };
    let name = file.display().to_string();
    let request = Request::Check(api::Check { text, language, name: Some(name.clone()) });
    let remote = RemoteArgs { socket: args.socket.clone(), server: args.server.clone(), output };
    let found = match super::ask_once(&remote, &request, super::WORK_PATIENCE) {
        Ok(Response::Checked(found)) => found,
        Ok(other) => return super::show(&other, output),
        Err(why) => return out::failed(&why, output),
    };
    out::print(&match format {
        CheckFormat::Human => human(&found) + &configuration::summary(&name, count(&found)),
        CheckFormat::Line => {
            // The first line of a finding says where, how bad, and what.
            found
                .iter()
                .filter_map(|found| found.text.lines().next())
                .map(|line| format!("{line}\n"))
                .collect()
        }
        CheckFormat::Json => api::to_json(&found),
    });
    if has_errors(&found) { out::negative() } else { out::FINE }
}

/// Returns how many errors and warnings there are.
fn count(found: &[api::Diagnostic]) -> (usize, usize) {
    let errors = found.iter().filter(|found| found.severity == "error").count();
    (errors, found.len() - errors)
}

/// Returns whether there are errors among findings.
pub(super) fn has_errors(found: &[api::Diagnostic]) -> bool {
    count(found).0 > 0
}

/// Returns every finding with its source line.
pub(super) fn human(found: &[api::Diagnostic]) -> String {
    found.iter().map(|found| format!("{}\n", found.text)).collect()
}
