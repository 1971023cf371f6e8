//! Who is banned, as resources.

use control::api::{self, Request, Response};
use server::Role;

use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::resources::{as_json, expected_tag, linked_after, unexpected};
use crate::route::{Parameter, Route, Wanted, get, parameter, post, route};
use crate::shapes::{many, one};

const DRY_RUN: Parameter = parameter("dry-run", "boolean", "Only checks it, and says what would be banned.");
const MATCH: Parameter = parameter(
    "If-Match",
    "string",
    "The ETag of `/bans/{prefix}`, or `*`. Needed for what is banned already.",
);
const NONE_MATCH: Parameter = parameter("If-None-Match", "string", "`*`: only if no operator has banned it.");

pub(crate) const ROUTES: &[Route] = &[
    get("/bans", "Who is banned: by the configuration, a set, the rate limit, and operators.", many::<api::Ban>, |call| {
        let (after, count) = (call.asked("after").map(str::to_owned), call.number("count")?);
        Ok(Request::Bans(api::BansOf { prefix: None, after, count }))
    })
    .query(&[
        parameter("count", "integer", "At most so many; 1,000 when absent, and at most 10,000."),
        parameter("after", "string", "Those after this one, by `id`. The header `Link` has the URL of the next part."),
    ])
    .gives(&["Link"])
    .replies(listed),
    get("/bans/{prefix}", "The bans that hold for an address or a prefix.", many::<api::Ban>, |call| {
        let prefix = call.part(0);
        // What is no prefix is refused when it is asked for.
        if let Ok(tag) = call.operator.ban_tag(&prefix) {
            call.tag.get_or_init(|| format!("\"{tag}\""));
        }
        Ok(Request::Bans(api::BansOf { prefix: Some(prefix), after: None, count: None }))
    })
    .gives(&["ETag"])
    .replies(of_prefix),
    post(
        ("/bans", Role::Helper),
        "Bans an address or a prefix, from now on and after a restart. One that is banned already is banned anew.",
        one::<api::BanChanged>,
        |call| {
            let mut asked: api::BanAdd = crate::json::parse(&call.body)?;
            asked.is_dry_run |= call.flag("dry-run")?;
            if asked.tag.is_some() {
                return Err(Problem::new(400, "\"tag\": the ETag is in If-Match"));
            }
            asked.tag = expected_tag(call)?;
            Ok(Request::Ban(asked))
        },
    )
    .query(&[DRY_RUN])
    .headers(&[MATCH, NONE_MATCH])
    .body(Wanted::Json(one::<api::BanAdd>)),
    route(
        "DELETE",
        "/bans/{prefix}",
        "Ends the ban of an operator, and those of the rate limit within the prefix.",
        one::<api::BanChanged>,
        |call| {
            let (prefix, tag) = (call.part(0), expected_tag(call)?);
            Ok(Request::Unban(api::BanRemove { prefix, tag, is_dry_run: call.flag("dry-run")? }))
        },
    )
    .role(Role::Helper)
    .query(&[DRY_RUN])
    .headers(&[MATCH]),
];

fn bans(response: Response) -> Result<Vec<api::Ban>, Problem> {
    match response {
        Response::Bans(bans) => Ok(bans),
        other => unexpected(&other),
    }
}

/// Answers with a part of the bans, and where the next one is.
fn listed(call: &Call, response: Response) -> Result<Reply, Problem> {
    let bans = bans(response)?;
    let count = call.number("count")?.unwrap_or(1_000).min(10_000);
    let last = bans.last().filter(|_| bans.len() as u64 >= count && count > 0);
    Ok(as_json(&bans).linked(last.map(|last| linked_after(call, &last.id, count))))
}

/// Answers with the bans that hold for a prefix.
fn of_prefix(call: &Call, response: Response) -> Result<Reply, Problem> {
    let bans = bans(response)?;
    if bans.is_empty() {
        return Err(Problem::new(404, format!("{} is not banned", call.part(0))));
    }
    Ok(match call.tag.get() {
        Some(tag) => as_json(&bans).with("etag", tag.clone()),
        None => as_json(&bans),
    })
}
