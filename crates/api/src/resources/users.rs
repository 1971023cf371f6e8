//! Users: what rows of the table ask for, and what they answer with.

use control::api::{self, Request, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{as_json, only, unexpected};
use crate::accounts::needed_tag;
use crate::call::Call;
use crate::json;
use crate::problem::Problem;
use crate::reply::Reply;

/// Another password.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NewPassword {
    /// The password: at least 12 characters.
    password: api::Secret,
}

/// Another role.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NewRole {
    /// What they may do: `viewer`, `helper`, `operator` or `admin`.
    role: String,
}

/// The first code of a device.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct FirstCode {
    /// What it shows.
    code: api::Secret,
}

/// Answers with one user: the one that the path names, or that it was about.
pub(crate) fn one_user(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Users(mut all) = response else { return unexpected(&response) };
    if let Some(name) = call.parts.first() {
        all.retain(|user| user.name == *name);
    }
    let user = only(all)?;
    Ok(as_json(&user).with("etag", format!("\"{}\"", user.tag())))
}

/// Answers with one token: the one that the path names.
pub(crate) fn one_token(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Tokens(mut all) = response else { return unexpected(&response) };
    all.retain(|token| token.name == call.part(0));
    let token = only(all)?;
    Ok(as_json(&token).with("etag", format!("\"{}\"", token.tag())))
}

/// Asks to give a user another password.
pub(crate) fn user_password(call: &Call) -> Result<Request, Problem> {
    let NewPassword { password } = json::parse(&call.body)?;
    Ok(Request::UserPassword(api::UserPassword { name: call.part(0), password, tag: needed_tag(call)? }))
}

/// Asks to give a user another role.
pub(crate) fn user_role(call: &Call) -> Result<Request, Problem> {
    let NewRole { role } = json::parse(&call.body)?;
    Ok(Request::UserRole(api::UserRole { name: call.part(0), role, tag: needed_tag(call)? }))
}

/// Asks to have a user need one-time codes.
pub(crate) fn totp_confirm(call: &Call) -> Result<Request, Problem> {
    let FirstCode { code } = json::parse(&call.body)?;
    Ok(Request::TotpConfirm(api::TotpConfirm { name: call.part(0), code }))
}
