//! Tokens of the API.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request};

use super::{LOOK_PATIENCE, ask};
use crate::cli::TokenCommand;
use crate::out;

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Runs `gannet token`.
pub(super) fn run(command: &TokenCommand) -> ExitCode {
    match command {
        TokenCommand::Add(args) => {
            let asked = api::TokenAdd {
                name: args.name.clone(),
                role: args.role.clone(),
                paths: args.paths.clone(),
                zones: args.zones.clone(),
                addresses: args.addresses.clone(),
                for_s: args.days.map(|days| days * DAY_S),
            };
            ask(&args.remote, &Request::TokenAdd(asked), LOOK_PATIENCE)
        }
        TokenCommand::List(args) => ask(args, &Request::TokenList, LOOK_PATIENCE),
        TokenCommand::Revoke(args) => {
            let name = api::TokenName { name: args.name.clone(), tag: None };
            ask(&args.remote, &Request::TokenRevoke(name), LOOK_PATIENCE)
        }
    }
}

/// Returns the tokens, each with what it may do.
pub(super) fn text(all: &[api::Token]) -> String {
    let mut text = String::new();
    for token in all {
        let _ = write!(text, "{}: {}", out::escaped(&token.name), out::escaped(&token.role));
        for (what, list) in [("settings", &token.paths), ("zones", &token.zones), ("from", &token.addresses)]
        {
            if !list.is_empty() {
                let _ = write!(text, "; {what} {}", out::escaped(&list.join(", ")));
            }
        }
        let _ = write!(text, "; made {} by {}", token.at, out::escaped(&token.by));
        if let Some(until) = &token.until {
            let _ = write!(text, "; {} {until}", if token.is_over { "ended" } else { "ends" });
        }
        let _ = match &token.last_used {
            Some(used) => writeln!(text, "; used {used}"),
            None => writeln!(text, "; not used since the start"),
        };
    }
    if all.is_empty() {
        text.push_str("no tokens (\"gannet token add\" makes one)\n");
    }
    text
}
