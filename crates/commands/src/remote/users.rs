//! Users of the API.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request, Response};

use super::{LOOK_PATIENCE, ask, ask_once, show};
use crate::cli::{LoginArgs, UsersCommand, UsersTotpArgs};
use crate::{out, password};

/// Runs `gannet users`.
pub(super) fn run(command: &UsersCommand) -> ExitCode {
    match command {
        UsersCommand::Add(args) => {
            let password = match args.no_password {
                true => None,
                false => match password::read(args.password_file.as_deref()) {
                    Ok(password) => Some(password),
                    Err(why) => return out::failed(&why, args.remote.output),
                },
            };
            let asked = api::UserAdd { name: args.name.clone(), role: args.role.clone(), password };
            ask(&args.remote, &Request::UserAdd(asked), LOOK_PATIENCE)
        }
        UsersCommand::List(args) => ask(args, &Request::UserList, LOOK_PATIENCE),
        UsersCommand::Remove(args) => {
            let name = api::UserName { name: args.name.clone(), tag: None };
            ask(&args.remote, &Request::UserRemove(name), LOOK_PATIENCE)
        }
        UsersCommand::Password(args) => match password::read(args.password_file.as_deref()) {
            Ok(password) => {
                let asked = api::UserPassword { name: args.name.clone(), password, tag: None };
                ask(&args.remote, &Request::UserPassword(asked), LOOK_PATIENCE)
            }
            Err(why) => out::failed(&why, args.remote.output),
        },
        UsersCommand::Totp(args) => totp(args),
        UsersCommand::Sessions(args) => ask(args, &Request::SessionList, LOOK_PATIENCE),
        UsersCommand::Revoke(args) => {
            let id = api::SessionId { id: args.id.clone() };
            ask(&args.remote, &Request::SessionRevoke(id), LOOK_PATIENCE)
        }
        UsersCommand::Role(args) => {
            let asked = api::UserRole { name: args.name.clone(), role: args.role.clone(), tag: None };
            ask(&args.remote, &Request::UserRole(asked), LOOK_PATIENCE)
        }
    }
}

/// Runs `gannet login`.
pub(super) fn log_in_link(args: &LoginArgs) -> ExitCode {
    let whom = api::LogInLinkFor { user: args.name.clone() };
    ask(&args.remote, &Request::LogInLink(whom), LOOK_PATIENCE)
}

/// Runs `gannet users totp`.
fn totp(args: &UsersTotpArgs) -> ExitCode {
    let name = api::UserName { name: args.name.clone(), tag: None };
    if args.remove {
        return ask(&args.remote, &Request::TotpRemove(name), LOOK_PATIENCE);
    }
    let code = match &args.code {
        Some(code) => api::Secret(code.clone()),
        None => {
            match ask_once(&args.remote, &Request::TotpBegin(name), LOOK_PATIENCE) {
                Ok(response @ Response::TotpBegun(_)) => drop(show(&response, args.remote.output)),
                Ok(other) => return show(&other, args.remote.output),
                Err(why) => return out::failed(&why, args.remote.output),
            }
            if !password::can_ask() {
                out::complain(&format!(
                    "the device shows a code: \"gannet users totp {} --code CODE\" within 15 minutes",
                    args.name
                ));
                return out::FINE;
            }
            match password::ask("The code that the device shows: ") {
                Ok(code) => code,
                Err(why) => return out::failed(&why, args.remote.output),
            }
        }
    };
    let asked = api::TotpConfirm { name: args.name.clone(), code };
    ask(&args.remote, &Request::TotpConfirm(asked), LOOK_PATIENCE)
}

/// Returns recovery codes, for somebody to keep.
pub(super) fn codes_text(confirmed: &api::TotpConfirmed) -> String {
    let mut text = "Recovery codes, for when the device is lost; each is good once:\n".to_owned();
    for code in &confirmed.recovery_codes {
        let _ = writeln!(text, "{}", out::escaped(&code.0));
    }
    text
}

/// Returns the users, each with what they may do.
pub(super) fn text(all: &[api::User]) -> String {
    let mut text = String::new();
    for user in all {
        let _ = write!(text, "{}: {}", out::escaped(&user.name), out::escaped(&user.role));
        if !user.has_password {
            text.push_str("; no password");
        }
        if let Some(left) = user.recovery_codes {
            let _ = write!(text, "; one-time codes, {left} recovery codes");
        }
        match user.sessions {
            0 => {}
            1 => text.push_str("; 1 session"),
            more => drop(write!(text, "; {more} sessions")),
        }
        let _ = writeln!(text, "; since {} by {}", user.at, out::escaped(&user.by));
    }
    if all.is_empty() {
        text.push_str("no users (\"gannet users add\" adds one)\n");
    }
    text
}

/// Returns the sessions, the one that began last first.
pub(super) fn sessions_text(all: &[api::Session]) -> String {
    let mut text = String::new();
    for session in all {
        let api::Session { id, user, from, at, last_used, until } = session;
        let [id, user, from] = [id, user, from].map(|part| out::escaped(part));
        let _ = writeln!(text, "{id}: {user} from {from}; began {at}, used {last_used}, ends {until}");
    }
    if all.is_empty() {
        text.push_str("no sessions\n");
    }
    text
}
