//! Members of dynamic sets, as resources.

use control::api::{self, Request};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use server::{MEMBERS_MAX, Role};
use utoipa::ToSchema;

use crate::call::Call;
use crate::own_lists::{KIND, edits};
use crate::problem::Problem;
use crate::resources::{ask_members, known_tag, members};
use crate::route::{Parameter, Route, Wanted, get, parameter, post, route};
use crate::shapes::{many, one};

/// Octets of a body of lines: 160 for each that there may be.
pub(crate) const LINES_OCTETS_MAX: u64 = 16 << 20;

const DRY_RUN: Parameter = parameter("dry-run", "boolean", "Only checks it, and says what it would change.");
const MATCH: Parameter =
    parameter("If-Match", "string", "The ETag of the members that the change is made for, or `*`.");

/// What to add to a dynamic set.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Members {
    /// Names, addresses or prefixes.
    items: Vec<String>,
    /// How long they stay; as long as the set says when absent.
    ttl_s: Option<u64>,
}

/// Rows of the table.
pub(crate) const ROUTES: &[Route] = &[
    get("/sets/{set}/members", "What a dynamic set holds.", many::<api::SetItem>, ask_members)
        .query(&[
            parameter("count", "integer", "At most so many; 1,000 when absent."),
            parameter("after", "string", "Those after this one. The header `Link` has the URL of the next part."),
        ])
        .gives(&["ETag", "Link"])
        .replies(members),
    post(
        ("/sets/{set}/members", Role::Helper),
        "Adds to a dynamic set; as NDJSON, adds and removes, all of it or nothing. Each line is `{\"add\": \"…\"}` or `{\"remove\": \"…\"}`, of at most 100,000.",
        one::<api::SetChanged>,
        change,
    )
    .query(&[
        DRY_RUN,
        parameter("ttl-s", "integer", "How long those stay that lines add; as long as the set says when absent."),
    ])
    .headers(&[MATCH])
    .body(Wanted::Members),
    route(
        "DELETE",
        "/sets/{set}/members/{member}",
        "Removes from a dynamic set.",
        one::<api::SetChanged>,
        |call| {
            let (name, items) = (call.part(0), vec![call.part(1)]);
            Ok(Request::SetRemove(api::SetChange { name, items, ttl_s: None, tag: known_tag(call)? }))
        },
    )
    .role(Role::Helper)
    .query(&[DRY_RUN])
    .headers(&[MATCH]),
];

/// Returns whether a body is lines of JSON.
pub(crate) fn are_lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    kind.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(KIND)
}

/// Asks to add to a dynamic set, and to remove from it.
fn change(call: &Call) -> Result<Request, Problem> {
    let (name, tag) = (call.part(0), known_tag(call)?);
    let ttl_s = call.number("ttl-s")?;
    if are_lines(&call.headers) {
        let edits = edits(&call.body, MEMBERS_MAX)?;
        return Ok(Request::SetEdit(api::SetEdits { name, edits, ttl_s, tag }));
    }
    let Members { items, ttl_s: said } = crate::json::parse(&call.body)?;
    Ok(Request::SetAdd(api::SetChange { name, items, ttl_s: said.or(ttl_s), tag }))
}
