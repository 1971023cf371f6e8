//! What changes nothing: settings are checked, upstream servers measured.

use control::api::{self, Request, SettingsLanguage};
use server::Role;

use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Route, Wanted, parameter, post};
use crate::shapes::{many, one};

/// `POST /check`.
pub(crate) const CHECK: Route = post(
    ("/check", Role::Operator),
    "Checks settings without using them. Files that they name are read for admins alone.",
    many::<api::Diagnostic>,
    check,
)
.query(&[
    parameter("language", "string", "`yaml` (when absent) or `unbound`."),
    parameter("name", "string", "What diagnostics call the text."),
])
.body(Wanted::Setting);

/// `POST /probe`.
pub(crate) const PROBE: Route = post(
    ("/probe", Role::Operator),
    "Measures an upstream server of the configuration, and for admins any other. Takes 30 seconds at most.",
    one::<api::Probe>,
    |call| Ok(Request::Probe(crate::json::parse(&call.body)?)),
)
.body(Wanted::Json(one::<api::ProbeAsked>));

fn check(call: &Call) -> Result<Request, Problem> {
    let language = match call.asked("language") {
        None | Some("yaml") => SettingsLanguage::Yaml,
        Some("unbound") => SettingsLanguage::Unbound,
        Some(other) => {
            return Err(Problem::new(400, format!("language={other}: expected yaml or unbound")));
        }
    };
    let text = crate::resources::setting_text(call)?;
    Ok(Request::Check(api::Check { text, language, name: call.asked("name").map(str::to_owned) }))
}
