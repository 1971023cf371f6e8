//! What happens to the server, as browsers and scripts watch it.

use control::api::{self, Request, Response};

use crate::body::Body;
use crate::queries::LAST_EVENT_ID;
use crate::reply::Reply;
use crate::route::{Route, get, parameter};
use crate::shapes::{EVENT_STREAM, events};

/// `GET /events`.
pub(crate) const LIVE: Route = get(
    "/events",
    "What happens to the server, as it happens: an event of each kind, and `lost` events (SSE). `login` is for admins.",
    events::<api::Event>,
    |call| {
        let kinds = call.asked("kind").unwrap_or("").split(',').map(str::trim);
        let kinds = kinds.filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
        let after = match call.header(&LAST_EVENT_ID)? {
            Some("") => None,
            after => after.map(str::to_owned),
        };
        Ok(Request::Events(api::EventsAsked { kinds, after, kept: call.flag("kept")?, ends: false }))
    },
)
.query(&[
    parameter(
        "kind",
        "string",
        "Of these kinds alone, separated by commas: `change`, `reload`, `upstream`, `list`, `certificate`, `login`, `zone`.",
    ),
    parameter("kept", "boolean", "Begins with those that are kept: the last 1,024."),
])
.headers(&[parameter("Last-Event-ID", "string", "Goes on behind the event with this id.")]);

/// Answers with events, one after the other, as they come (SSE).
pub(crate) fn live(parts: control::Parts) -> Reply {
    let events = parts.map(|part| match part {
        Response::Event(part) => part_text(&part),
        // Nothing else comes.
        _ => String::new(),
    });
    Reply::stream(EVENT_STREAM, Body::of_events(events))
}

fn part_text(part: &api::EventPart) -> String {
    match (&part.event, part.lost) {
        (Some(event), _) => {
            let (id, kind) = (&event.id, event.what.kind());
            format!("id: {id}\nevent: {kind}\ndata: {}\n", api::to_json_line(event))
        }
        // Without an id: the client stays behind the last event that it has got.
        (None, Some(lost)) => format!("event: lost\ndata: {}\n", api::to_json_line(&lost)),
        // Whoever is between us and the client sees that the connection lives.
        (None, None) => ":\n\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::api::{EventOf, EventsLost, ZoneEvent};

    #[test]
    fn a_part_is_an_event_with_an_id_a_number_or_a_comment() {
        let what = EventOf::Zone(ZoneEvent {
            zone: "example.org.".to_owned(),
            what: "expired".to_owned(),
            ..ZoneEvent::default()
        });
        let event = api::Event { id: "ab-7".to_owned(), at_ms: 5, what };
        let part = api::EventPart { event: Some(event), ..api::EventPart::default() };
        assert_eq!(
            part_text(&part),
            "id: ab-7\nevent: zone\ndata: {\"id\":\"ab-7\",\"at-ms\":5,\"kind\":\"zone\",\
             \"zone\":\"example.org.\",\"what\":\"expired\"}\n\n"
        );
        let lost = |events| api::EventPart { lost: Some(EventsLost { events }), ..api::EventPart::default() };
        assert_eq!(part_text(&lost(Some(9))), "event: lost\ndata: {\"events\":9}\n\n");
        assert_eq!(part_text(&lost(None)), "event: lost\ndata: {}\n\n");
        assert_eq!(part_text(&api::EventPart::default()), ":\n\n");
    }
}
