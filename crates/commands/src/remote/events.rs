//! `gannet events`: what happens to the running server.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use control::More;
use control::api::{self, EventOf, Request, Response};

use super::{LOOK_PATIENCE, WORK_PATIENCE, ask_for_all};
use crate::cli::EventsArgs;
use crate::{out, record};

/// How long a server that is away is waited for, and how often it is looked for.
const AWAY_MAX: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs `gannet events`.
pub(super) fn run(args: &EventsArgs) -> ExitCode {
    match try_run(args) {
        Ok(()) => out::FINE,
        Err(why) => out::failed(&why, args.remote.output),
    }
}

/// How a stream of events has ended.
enum End {
    /// Nobody reads it any more, or all was said.
    Done,
    /// The server has refused.
    Refused(String),
}

fn try_run(args: &EventsArgs) -> Result<(), String> {
    let mut after = None;
    let mut heard_at = None;
    // Over the network it is how long all responses may take, not the next one.
    let patience = if args.remote.server.server.is_some() { WORK_PATIENCE } else { LOOK_PATIENCE };
    loop {
        let asked = api::EventsAsked {
            kinds: args.kind.clone(),
            after: after.clone(),
            kept: true,
            ends: !args.follow,
        };
        let mut end = None;
        let broke = ask_for_all(&args.remote, &Request::Events(asked), patience, |response| {
            heard_at = Some(Instant::now());
            let text = match &response {
                Response::Event(part) => {
                    after = part.event.as_ref().map(|event| event.id.clone()).or_else(|| after.take());
                    if part.is_last {
                        end = Some(End::Done);
                    }
                    if args.remote.output.json { json(part) } else { text(part) }
                }
                Response::Error(failure) => {
                    end = Some(End::Refused(failure.message.clone()));
                    String::new()
                }
                other => {
                    end =
                        Some(End::Refused(format!("the server answers something else: {}", other.to_json())));
                    String::new()
                }
            };
            if !out::still_read(&text) {
                end = Some(End::Done);
            }
            if end.is_some() { More::No } else { More::Yes }
        });
        match (end, broke) {
            (Some(End::Done), _) => return Ok(()),
            (Some(End::Refused(why)), _) => return Err(why),
            // It ends connections after a time, and may be started again.
            (None, broke) => match heard_at {
                Some(at) if args.follow && at.elapsed() < AWAY_MAX => {}
                _ => return broke,
            },
        }
        // tidy: allow(sleep): the command waits until the server is there again
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Writes a part of a stream as JSON on a line of its own, if there is something in it.
fn json(part: &api::EventPart) -> String {
    match (&part.event, &part.lost) {
        (Some(event), _) => api::to_json_line(event),
        (None, Some(_)) => api::to_json_line(part),
        (None, None) => String::new(),
    }
}

/// Writes a part of a stream on a line, if there is something in it.
pub(super) fn text(part: &api::EventPart) -> String {
    match (&part.event, &part.lost) {
        (Some(event), _) => {
            let what = out::escaped(&sentence(&event.what));
            format!("{} {} {what}\n", record::moment(event.at_ms), event.what.kind())
        }
        (None, Some(api::EventsLost { events: Some(count) })) => {
            format!("{count} events are not kept any more\n")
        }
        (None, Some(api::EventsLost { events: None })) => {
            "the server was started again; what happened meanwhile is not known\n".to_owned()
        }
        (None, None) => String::new(),
    }
}

fn sentence(what: &EventOf) -> String {
    let because = |why: &Option<String>| why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    match what {
        EventOf::Change(it) => {
            let mut text = match it.rolled_back_to {
                Some(revision) => format!("{} rolled back to revision {revision}", it.by),
                None if it.paths.is_empty() => format!("{} changed settings", it.by),
                None => format!("{} changed {}", it.by, it.paths.join(", ")),
            };
            if let Some(revision) = it.revision {
                let _ = write!(text, " (revision {revision})");
            }
            text + &because(&it.why)
        }
        EventOf::Reload(it) => {
            let what = it.set.as_ref().map_or_else(|| it.what.clone(), |set| format!("set {set}"));
            match it.is_adopted {
                true => format!("{what} read again, revision {} in use", it.revision),
                false => {
                    let (stays, mistakes) = (it.revision, it.mistakes);
                    format!(
                        "{what} not taken, revision {stays} stays in use; mistakes: {mistakes}{}",
                        because(&it.why)
                    )
                }
            }
        }
        EventOf::Upstream(it) => {
            let groups = it.groups.join(", ");
            let who = match &it.server {
                Some(server) if groups.is_empty() => server.clone(),
                Some(server) => format!("{server} ({groups})"),
                None => format!("group {groups}"),
            };
            let left_out = match it.left_out {
                0 => String::new(),
                count => format!("; {count} changes before this one were not told"),
            };
            format!("{who} {}{}{left_out}", if it.is_up { "is up" } else { "is down" }, because(&it.why))
        }
        EventOf::List(it) => match it.octets {
            Some(octets) => format!("{} {}: {octets} octets fetched", it.set, it.url),
            None => format!("{} {}: not fetched{}", it.set, it.url, because(&it.why)),
        },
        EventOf::Certificate(it) => {
            let by = it.authority.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            format!("{} ({}) {}{by}{}", it.name, it.names.join(", "), it.what, because(&it.why))
        }
        EventOf::Login(it) => {
            format!("{} {} from {}", it.count, if it.is_accepted { "accepted" } else { "refused" }, it.from)
        }
        EventOf::Zone(it) => {
            let serial = it.serial.map_or_else(String::new, |serial| format!(", serial {serial}"));
            format!("{} {}{serial}{}", it.zone, it.what, because(&it.why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::api::{Event, EventPart, EventsLost, UpstreamEvent};

    #[test]
    fn an_event_is_a_line_without_control_characters() {
        let what = EventOf::Upstream(UpstreamEvent {
            server: Some("192.0.2.1:53".to_owned()),
            groups: vec!["main".to_owned()],
            why: Some("it says \u{1b}[2J".to_owned()),
            ..UpstreamEvent::default()
        });
        let event = Event { id: "a-1".to_owned(), at_ms: 0, what };
        let line = text(&EventPart { event: Some(event), ..EventPart::default() });
        assert!(line.contains(" upstream 192.0.2.1:53 (main) is down: it says "), "{line}");
        assert!(line.ends_with('\n') && !line.contains('\u{1b}'), "{line:?}");
        let lost = EventPart { lost: Some(EventsLost { events: Some(3) }), ..EventPart::default() };
        assert_eq!(text(&lost), "3 events are not kept any more\n");
        assert_eq!(json(&lost), "{\"lost\":{\"events\":3}}\n");
        assert_eq!(text(&EventPart::default()), "");
    }
}
