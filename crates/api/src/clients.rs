//! Clients, as resources: what the record of queries has of them.

use control::api::{self, Request, Response};
use server::Role;

use crate::call::Call;
use crate::problem::Problem;
use crate::queries::number;
use crate::reply::Reply;
use crate::resources::{as_json, linked_after, unexpected};
use crate::route::{Parameter, Route, get, parameter};
use crate::shapes::{many, one};

const SINCE: Parameter = parameter(
    "since-ms",
    "integer",
    "Not before this time, in milliseconds since 1970; one day ago when absent.",
);

/// Clients of one part.
const PART: u64 = 100;
const PART_MAX: u64 = 1_000;

/// Rows of the table.
pub(crate) const ROUTES: &[Route] = &[
    get("/clients", "Who asked lately, as far as it is recorded.", many::<api::ClientSeen>, |call| {
        let (since_ms, after) = (number(call, "since-ms")?, call.asked("after").map(str::to_owned));
        Ok(Request::Clients(api::ClientsOf { since_ms, after, count: call.number("count")? }))
    })
    .role(Role::Helper)
    .query(&[
        parameter("count", "integer", "At most so many; 100 when absent, and at most 1,000."),
        parameter("after", "string", "Those after this one. The header `Link` has the URL of the next part."),
        SINCE,
    ])
    .gives(&["Link"])
    .replies(listed),
    get(
        "/clients/{client}",
        "What became of the queries of a client. `DELETE /queries?client=` removes them from the record.",
        one::<api::ClientShown>,
        |call| {
            let (client, since_ms) = (call.part(0), number(call, "since-ms")?);
            Ok(Request::Client(api::ClientOf { client, since_ms }))
        },
    )
    .role(Role::Helper)
    .query(&[SINCE]),
];

/// Answers with a part of the clients, and where the next one is.
fn listed(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Clients(clients) = response else { return unexpected(&response) };
    let count = call.number("count")?.unwrap_or(PART).min(PART_MAX);
    let last = clients.last().filter(|_| clients.len() as u64 >= count);
    let since = call.asked("since-ms").map_or_else(String::new, |since| format!("&since-ms={since}"));
    let next = last.map(|last| linked_after(call, &last.client, count) + &since);
    Ok(as_json(&clients).linked(next))
}
