//! Backups as resources: an archive goes out, and one comes in for the next start.

use std::time::Duration;

use control::api;
use hyper::header::CONTENT_TYPE;
use server::{Draft, Role};

use crate::body::Body;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::{Rate, Reply};
use crate::resources::as_json;
use crate::route::{Parameter, Route, Wanted, get, parameter, post};
use crate::shapes::{archive, one};

/// Where a backup is.
pub(crate) const BACKUP: &str = "/backup";
/// Where one is restored.
pub(crate) const RESTORE: &str = "/restore";
/// What an archive is.
const KIND: &str = "application/x-tar";
/// How fast an archive that is restored comes at least: the largest takes three days over a slow
/// line, and whoever sends an octet now and then keeps nobody else out.
pub(crate) const ARCHIVE_RATE: Rate = Rate { silence: Duration::from_secs(60), octets_per_s: 16 << 10 };

const SECRETS: Parameter =
    parameter("secrets", "boolean", "With tokens, passwords, keys and settings that say secrets.");
const DRY_RUN: Parameter = parameter("dry-run", "boolean", "Only checks it.");

/// Rows of the table.
pub(crate) const ROUTES: &[Route] = &[
    get(
        BACKUP,
        "An archive (tar) of what is kept in the state directory and cannot be made again, as it is at one moment.",
        archive,
        |_| Err(Problem::new(500, "this is no request of the control socket")),
    )
    .role(Role::Admin)
    .query(&[SECRETS]),
    post(
        (RESTORE, Role::Admin),
        "Checks such an archive, and has the next start take it up: all of it, or nothing. At most 4 GiB.",
        one::<api::Restored>,
        |_| Err(Problem::new(500, "this is no request of the control socket")),
    )
    .query(&[DRY_RUN])
    .body(Wanted::Archive)
    // Sent again, it is checked again.
    .with_secrets(),
];

/// Answers with a backup.
pub(crate) fn get_archive(call: &Call) -> Result<Reply, Problem> {
    let failed = |error: std::io::Error| Problem::new(500, format!("the backup cannot be read: {error}"));
    let file = server::back_up(&call.operator, call.flag("secrets")?, &call.caller)?;
    let octets = file.metadata().map_err(failed)?.len();
    let reply = Reply::new(200, KIND, Body::of_file(file, octets));
    Ok(reply.with("content-disposition", "attachment; filename=\"gannet-backup.tar\"".to_owned()))
}

/// Has a backup taken up at the next start.
pub(crate) fn restore(call: &Call, draft: &Draft) -> Result<Reply, Problem> {
    let kind = call.header(&CONTENT_TYPE)?.unwrap_or("");
    if ![KIND, "application/octet-stream"].contains(&kind) {
        return Err(Problem::new(415, format!("the Content-Type is \"{kind}\": expected {KIND}")));
    }
    let restored = server::restore(&call.operator, draft, call.flag("dry-run")?, &call.caller)?;
    Ok(as_json(&restored))
}
