//! The record of queries: found, watched as it comes, and shortened.

use control::api::{self, Request, Response};
use server::Role;

use crate::body::Body;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::route::{Parameter, Route, get, parameter, route};
use crate::shapes::{EVENT_STREAM, events, many, one};

/// What a search may have as its conditions.
const CONDITIONS: &[Parameter] = &[
    parameter("count", "integer", "At most so many; 100 when absent."),
    parameter("cursor", "integer", "Those before this one: `cursor` of the page before."),
    parameter("name", "string", "For this name."),
    parameter("contains", "string", "For names that have this text in them."),
    parameter("suffix", "string", "For this name and names below it."),
    parameter("regex", "string", "For names that fit this regular expression somewhere."),
    parameter("without", "string", "For names that do not have this text in them."),
    parameter("without-suffix", "string", "Not for this name and names below it."),
    parameter("without-regex", "string", "Not for names that fit this regular expression."),
    parameter("client", "string", "Of this client: an address, a prefix, or a pseudonym."),
    parameter("type", "string", "For this type."),
    parameter("rcode", "string", "With this response code; `none`: without a reply."),
    parameter("transport", "string", "Over this transport."),
    parameter("address", "string", "With this address in the answer."),
    parameter("list", "string", "That a line of this list decided."),
    parameter("upstream", "string", "That this upstream answered: a group, or the address of a server."),
    parameter("outcome", "string", "Of which one of these became, separated by commas."),
    parameter("longer-than-ms", "integer", "That waited at least so many milliseconds for other servers."),
    parameter("since-ms", "integer", "Not before this time, in milliseconds since 1970."),
    parameter("until-ms", "integer", "Before this time."),
];

/// `GET /queries`.
pub(crate) const SEARCH: Route = get(
    "/queries",
    "Recorded queries, the newest first. Searches for a quarter of a second at most.",
    one::<api::QueriesFound>,
    |call| asked(call).map(Request::Queries),
)
.role(Role::Helper)
.query(CONDITIONS)
.gives(&["Link"])
.replies(page);

/// `GET /queries/live`.
pub(crate) const LIVE: Route = get(
    "/queries/live",
    "Queries as they are recorded: `query` and `missed` events (SSE).",
    events::<api::Recorded>,
    |call| {
        let mut asked = asked(call)?;
        if let Some(last) = call.header(&LAST_EVENT_ID)? {
            let wrong = |_| Problem::new(400, format!("Last-Event-ID: {last}: expected the id of an event"));
            asked.cursor = Some(last.parse().map_err(wrong)?);
        }
        Ok(Request::QueriesLive(asked))
    },
)
.role(Role::Helper)
.query(CONDITIONS)
.headers(&[parameter("Last-Event-ID", "string", "Goes on behind the event with this id.")]);

/// `DELETE /queries`.
pub(crate) const FORGET: Route = route(
    "DELETE",
    "/queries",
    "Removes a client's queries from the record.",
    one::<api::QueriesRemoved>,
    |call| {
        let client = call.asked("client").ok_or_else(|| Problem::new(400, "whose? (?client=192.0.2.1)"))?;
        Ok(Request::QueriesForget(api::QueriesOf { client: client.to_owned() }))
    },
)
.role(Role::Operator)
.query(&[parameter("client", "string", "An address, a prefix, or a pseudonym as it is shown. Needed.")]);

const SINCE: Parameter = parameter(
    "since-ms",
    "integer",
    "Not before this time, in milliseconds since 1970; one day ago when absent.",
);

/// `GET /statistics/top/{what}`.
pub(crate) const TOP: Route = get(
    "/statistics/top/{what}",
    "The most frequent `names`, `blocked`, `clients`, `outcomes`, `types`, `transports`, `upstreams` or `lists`.",
    many::<api::Tally>,
    |call| {
        let count = call.number("count")?.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Ok(Request::QueriesTop(api::QuerySums { count, ..sums(call)? }))
    },
)
.role(Role::Helper)
.query(&[parameter("count", "integer", "At most so many; 20 when absent."), SINCE]);

/// `GET /statistics/over-time/{what}`.
pub(crate) const OVER_TIME: Route = get(
    "/statistics/over-time/{what}",
    "Queries of each minute, hour or day by `outcomes`, `types`, `transports`, `upstreams`, `lists` or `clients` (for helpers).",
    many::<api::QuerySum>,
    |call| Ok(Request::QueriesOverTime(sums(call)?)),
)
.query(&[
    parameter("period-s", "integer", "Seconds of a period: 60, 3600 (when absent) or 86400."),
    SINCE,
    parameter("until-ms", "integer", "Before this time."),
]);

fn sums(call: &Call) -> Result<api::QuerySums, Problem> {
    let what = call.part(0);
    let (since_ms, until_ms) = (number(call, "since-ms")?, number(call, "until-ms")?);
    Ok(api::QuerySums { what, since_ms, until_ms, count: None, period_s: number(call, "period-s")? })
}

pub(crate) fn number(call: &Call, name: &str) -> Result<Option<i64>, Problem> {
    let Some(text) = call.asked(name) else { return Ok(None) };
    let wrong = |_| Problem::new(400, format!("{name}={text}: expected a whole number"));
    text.parse().map(Some).map_err(wrong)
}

pub(crate) const LAST_EVENT_ID: hyper::header::HeaderName =
    hyper::header::HeaderName::from_static("last-event-id");

fn asked(call: &Call) -> Result<api::QueriesAsked, Problem> {
    let text = |name: &str| call.asked(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let number = |name: &str| number(call, name);
    Ok(api::QueriesAsked {
        count: call.number("count")?.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        cursor: number("cursor")?,
        name: text("name"),
        contains: text("contains"),
        suffix: text("suffix"),
        regex: text("regex"),
        without: text("without"),
        without_suffix: text("without-suffix"),
        without_regex: text("without-regex"),
        client: text("client"),
        rtype: text("type"),
        rcode: text("rcode"),
        transport: text("transport"),
        address: text("address"),
        list: text("list"),
        upstream: text("upstream"),
        outcome: text("outcome"),
        longer_than_ms: call.number("longer-than-ms")?,
        since_ms: number("since-ms")?,
        until_ms: number("until-ms")?,
    })
}

/// Answers with a page, and where the next one is.
fn page(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Queries(found) = response else { return crate::resources::unexpected(&response) };
    let next = found.cursor.map(|cursor| {
        let others = call
            .query
            .iter()
            .filter(|(name, _)| name != "cursor")
            .map(|(name, value)| format!("&{name}={}", crate::resources::percent_encoded(value)));
        format!("{}?cursor={cursor}{}", call.path, others.collect::<String>())
    });
    Ok(Reply::json(api::to_json(&found)).linked(next))
}

/// Answers with events, one after the other, as they come (SSE).
pub(crate) fn live(parts: control::Parts) -> Reply {
    let events = parts.map(|part| match part {
        Response::QueryEvent(event) => event_text(&event),
        // Nothing else comes.
        _ => String::new(),
    });
    Reply::stream(EVENT_STREAM, Body::of_events(events))
}

fn event_text(event: &api::QueryEvent) -> String {
    match (&event.query, event.missed) {
        (Some(query), _) => format!("id: {}\nevent: query\ndata: {}\n", query.id, api::to_json_line(query)),
        (None, Some(missed)) => format!("event: missed\ndata: {{\"records\": {missed}}}\n\n"),
        // Whoever is between us and the client sees that the connection lives.
        (None, None) => ":\n\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_few_lines_and_an_empty_one() {
        let query = api::Recorded { id: 77, name: "www.example.org".to_owned(), ..api::Recorded::default() };
        let text = event_text(&api::QueryEvent { query: Some(query), missed: None });
        assert!(text.starts_with("id: 77\nevent: query\ndata: {\"at-ms\":0,"), "{text}");
        assert!(text.ends_with("}\n\n") && text.lines().count() == 4, "{text}");
        let missed = event_text(&api::QueryEvent { query: None, missed: Some(5) });
        assert_eq!(missed, "event: missed\ndata: {\"records\": 5}\n\n");
        assert_eq!(event_text(&api::QueryEvent::default()), ":\n\n");
    }
}
