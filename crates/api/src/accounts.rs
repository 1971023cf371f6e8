//! Users and tokens, as resources.

use control::api::{self, Request};
use server::Role;

use crate::call::Call;
use crate::problem::Problem;
use crate::resources as of;
use crate::route::{Parameter, Route, Wanted, get, parameter, post, route};
use crate::shapes::{many, one};

const DRY_RUN: Parameter = parameter("dry-run", "boolean", "Only checks it, and says what would be.");
const IF_MATCH: Parameter =
    parameter("If-Match", "string", "The ETag of what the change is made for, or `*`. Needed.");

/// Returns what the client says that a change is made for. Who may not make it does not hear
/// whether there is such a thing.
pub(crate) fn needed_tag(call: &Call) -> Result<Option<String>, Problem> {
    let tag = of::known_tag(call)?;
    if tag.is_some() || call.caller.role < Role::Admin {
        return Ok(tag);
    }
    let name = call.part(0);
    let is_there = match call.path.starts_with("/api/v1/tokens/") {
        true => call.operator.token_list().iter().any(|token| token.name == name),
        false => call.operator.user_list().iter().any(|user| user.name == name),
    };
    match is_there {
        true => Err(Problem::new(428, "this needs If-Match with the ETag of what it changes, or *")),
        false => Ok(None),
    }
}

/// Rows of the table.
pub(crate) const ROUTES: &[Route] = &[
    get("/tokens", "The tokens, without their texts.", many::<api::Token>, |_| Ok(Request::TokenList))
        .role(Role::Admin),
    post(
        ("/tokens", Role::Admin),
        "Makes a token. The reply has its text, and nothing else ever has.",
        one::<api::TokenAdded>,
        |call| Ok(Request::TokenAdd(crate::json::parse(&call.body)?)),
    )
    .query(&[DRY_RUN])
    .body(Wanted::Json(one::<api::TokenAdd>)),
    get("/tokens/{token}", "A token, without its text.", one::<api::Token>, |_| Ok(Request::TokenList))
        .role(Role::Admin)
        .gives(&["ETag"])
        .replies(of::one_token),
    route("DELETE", "/tokens/{token}", "Revokes a token.", many::<api::Token>, |call| {
        Ok(Request::TokenRevoke(api::TokenName { name: call.part(0), tag: needed_tag(call)? }))
    })
    .role(Role::Admin)
    .query(&[DRY_RUN])
    .headers(&[IF_MATCH]),
    get("/users", "The users, without their passwords.", many::<api::User>, |_| Ok(Request::UserList))
        .role(Role::Admin),
    post(("/users", Role::Admin), "Adds a user.", one::<api::User>, |call| {
        Ok(Request::UserAdd(crate::json::parse(&call.body)?))
    })
    .query(&[DRY_RUN])
    .body(Wanted::Json(one::<api::UserAdd>))
    .with_secrets()
    .replies(of::one_user),
    get("/users/{user}", "A user.", one::<api::User>, |_| Ok(Request::UserList))
        .role(Role::Admin)
        .gives(&["ETag"])
        .replies(of::one_user),
    route("DELETE", "/users/{user}", "Removes a user, and ends their sessions.", many::<api::User>, |call| {
        Ok(Request::UserRemove(api::UserName { name: call.part(0), tag: needed_tag(call)? }))
    })
    .role(Role::Admin)
    .query(&[DRY_RUN])
    .headers(&[IF_MATCH]),
    route(
        "PUT",
        "/users/{user}/password",
        "Gives a user another password, and ends their sessions.",
        one::<api::User>,
        of::user_password,
    )
    .role(Role::Admin)
    .query(&[DRY_RUN])
    .body(Wanted::Json(one::<of::NewPassword>))
    .headers(&[IF_MATCH])
    .with_secrets()
    .replies(of::one_user),
    route(
        "PUT",
        "/users/{user}/role",
        "Gives a user another role, and ends their sessions.",
        one::<api::User>,
        of::user_role,
    )
    .role(Role::Admin)
    .body(Wanted::Json(one::<of::NewRole>))
    .query(&[DRY_RUN])
    .headers(&[IF_MATCH])
    .gives(&["ETag"])
    .replies(of::one_user),
    post(
        ("/users/{user}/totp", Role::Viewer),
        "Makes what a user's device is to make one-time codes of: for oneself, and as an admin for others.",
        one::<api::TotpBegun>,
        |call| Ok(Request::TotpBegin(api::UserName { name: call.part(0), tag: None })),
    )
    .with_secrets(),
    route(
        "PUT",
        "/users/{user}/totp",
        "Has a user need one-time codes from now on, as their device shows one. The reply has recovery codes.",
        one::<api::TotpConfirmed>,
        of::totp_confirm,
    )
    .body(Wanted::Json(one::<of::FirstCode>))
    .with_secrets(),
    route(
        "DELETE",
        "/users/{user}/totp",
        "Has a user need no one-time codes any more, and ends their sessions.",
        one::<api::User>,
        |call| Ok(Request::TotpRemove(api::UserName { name: call.part(0), tag: needed_tag(call)? })),
    )
    .role(Role::Admin)
    .headers(&[IF_MATCH])
    .replies(of::one_user),
];
