//! `gannet ban`, `gannet unban` and `gannet bans`.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request, Response};

use super::{LOOK_PATIENCE, RemoteArgs, ask, ask_once, show};
use crate::cli::{BanArgs, BansArgs, UnbanArgs};
use crate::out;

/// Bans that are asked for at a time.
const PART: u64 = 10_000;

/// Runs `gannet ban`.
pub(super) fn ban(args: &BanArgs) -> ExitCode {
    // What somebody else does meanwhile is not replaced.
    let tag = Some(tag_of(&args.remote, &args.prefix).unwrap_or_default());
    let asked = api::BanAdd {
        prefix: args.prefix.clone(),
        for_s: args.time.map(|time| time.as_secs().max(1)),
        why: args.why.clone(),
        tag,
        is_dry_run: args.dry_run,
    };
    ask(&args.remote, &Request::Ban(asked), LOOK_PATIENCE)
}

/// Runs `gannet unban`.
pub(super) fn unban(args: &UnbanArgs) -> ExitCode {
    let tag = tag_of(&args.remote, &args.prefix);
    let asked = api::BanRemove { prefix: args.prefix.clone(), tag, is_dry_run: args.dry_run };
    ask(&args.remote, &Request::Unban(asked), LOOK_PATIENCE)
}

/// Returns the ETag of the bans of a prefix; `None` if no operator has banned it.
fn tag_of(args: &RemoteArgs, prefix: &str) -> Option<String> {
    let wanted = values::prefix(prefix).ok()?.to_string();
    let of = api::BansOf { prefix: Some(prefix.to_owned()), ..api::BansOf::default() };
    let Ok(Response::Bans(bans)) = ask_once(args, &Request::Bans(of), LOOK_PATIENCE) else { return None };
    let own: Vec<&api::Ban> = bans.iter().filter(|ban| ban.prefix == wanted).collect();
    let is_by_operator = own.iter().any(|ban| ban.source == api::BanSource::Operator);
    is_by_operator.then(|| api::Ban::tag(own))
}

/// Runs `gannet bans`.
pub(super) fn list(args: &BansArgs) -> ExitCode {
    let mut all: Vec<api::Ban> = Vec::new();
    loop {
        let after = all.last().map(|ban| ban.id.clone());
        let of = api::BansOf { prefix: args.prefix.clone(), after, count: Some(PART) };
        match ask_once(&args.remote, &Request::Bans(of), LOOK_PATIENCE) {
            Ok(Response::Bans(part)) => {
                let is_last = (part.len() as u64) < PART;
                all.extend(part);
                if is_last {
                    break;
                }
            }
            Ok(other) => return show(&other, args.remote.output),
            Err(why) => return out::failed(&why, args.remote.output),
        }
    }
    show(&Response::Bans(all), args.remote.output)
}

/// Returns bans, one on a line.
pub(super) fn text(bans: &[api::Ban]) -> String {
    let mut text = String::new();
    for ban in bans {
        let _ = write!(text, "{} ({}", ban.prefix, ban.source.word());
        if let Some(set) = &ban.set {
            let _ = write!(text, " {}", out::escaped(set));
        }
        text.push(')');
        if let (Some(by), Some(at)) = (&ban.by, &ban.at) {
            let _ = write!(text, ", by {} {at}", out::escaped(by));
        }
        if let Some(seconds) = ban.ends_in_s {
            let _ = write!(text, ", ends in {seconds} s");
        }
        if let Some(why) = &ban.why {
            let _ = write!(text, ": {}", out::escaped(why));
        }
        text.push('\n');
    }
    if bans.is_empty() {
        text.push_str("nobody is banned\n");
    }
    text
}

/// Returns what became of a change.
pub(super) fn changed_text(changed: &api::BanChanged) -> String {
    let would = if changed.is_dry_run { " would be" } else { "" };
    let mut text = format!("{}{would} changed\n", super::counted(changed.changed, "ban"));
    if !changed.bans.is_empty() {
        text.push_str(&self::text(&changed.bans));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_is_a_line_with_where_it_is_from() {
        let mine = api::Ban {
            prefix: "192.0.2.0/24".to_owned(),
            ends_in_s: Some(60),
            by: Some("root".to_owned()),
            at: Some("2026-01-01T00:00:00Z".to_owned()),
            why: Some("noise\u{1b}".to_owned()),
            ..api::Ban::default()
        };
        let set = api::Ban {
            prefix: "198.51.100.1/32".to_owned(),
            source: api::BanSource::Set,
            set: Some("bad".to_owned()),
            ..api::Ban::default()
        };
        let text = text(&[mine, set]);
        let mut lines = text.lines();
        let first = lines.next().expect("a line");
        assert!(
            first.starts_with("192.0.2.0/24 (operator), by root 2026-01-01T00:00:00Z, ends in 60 s: noise"),
            "{first}"
        );
        assert!(!first.contains('\u{1b}'));
        assert_eq!(lines.next(), Some("198.51.100.1/32 (set bad)"));
        assert_eq!(self::text(&[]), "nobody is banned\n");
    }
}
