//! What rows of the table ask for, and what they answer with.

mod users;

use control::api::{self, ConfigEdit, ConfigExpected, ConfigOf, Request, Response};
use hyper::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::call::Call;
use crate::json;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::shapes::{Schemas, one};

pub(crate) use users::{
    FirstCode, NewPassword, NewRole, one_token, one_user, totp_confirm, user_password, user_role,
};

/// Items of one part of what is long, unless another number is asked for.
pub(crate) const PART_ITEMS: u64 = 1_000;
/// The most that may be asked for.
pub(crate) const PART_ITEMS_MAX: u64 = 10_000;

/// Which revision to go back to.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RollBack {
    /// A revision of the changes; 0 reverts all of them.
    revision: u64,
    /// The revision that is in use; refused if it is another.
    expected: Option<u64>,
}

pub(crate) fn unexpected<T>(response: &Response) -> Result<T, Problem> {
    // No row asks for one thing and gets another.
    debug_assert!(false, "{response:?}");
    Err(Problem::new(500, "the server answered something else"))
}

pub(crate) fn as_json(value: &impl Serialize) -> Reply {
    Reply::json(api::to_json(value))
}

/// Returns the only one of a list.
fn only<T: Serialize>(all: Vec<T>) -> Result<T, Problem> {
    all.into_iter().next().ok_or_else(|| Problem::new(404, "there is no such thing"))
}

/// What rows ask for whose paths `session` answers.
pub(crate) fn elsewhere(_: &Call) -> Result<Request, Problem> {
    Err(Problem::new(500, "this is no request of the control socket"))
}

// Settings.

/// Returns what a setting is known by: who changed it last, and what it says, as a reload of files
/// changes it, too.
fn tag(setting: &api::Setting) -> String {
    format!("\"{}-{:016x}\"", setting.revision, fnv(&setting.text))
}

/// FNV-1a: it is compared with itself, and nobody gains by a collision.
fn fnv(text: &str) -> u64 {
    let step = |sum: u64, octet: u8| (sum ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Answers with a setting.
pub(crate) fn setting(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Settings(all) = response else { return unexpected(&response) };
    let setting = only(all)?;
    let tag = tag(&setting);
    if call.header(&IF_NONE_MATCH)?.is_some_and(|known| known == tag || known == "*") {
        return Ok(Reply::nothing(304).with("etag", tag));
    }
    Ok(as_json(&setting).with("etag", tag))
}

/// Returns the setting of a path as it is; `None` if nothing is there.
pub(crate) fn current(call: &Call) -> Result<Option<api::Setting>, Problem> {
    match call.operator.config_get(&api::ConfigGet { path: Some(call.part(0)) }) {
        Ok(found) => Ok(found.into_iter().next()),
        Err(server::OperatorError::NotFound { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Returns what the client expects of the setting that it changes.
fn expected(call: &Call) -> Result<Vec<ConfigExpected>, Problem> {
    let path = call.part(0);
    let current = current(call)?;
    match (call.header(&IF_MATCH)?, call.header(&IF_NONE_MATCH)?) {
        (Some(_), Some(_)) => Err(Problem::new(400, "If-Match and If-None-Match exclude each other")),
        (None, Some("*")) => Ok(vec![ConfigExpected { path, revision: None }]),
        (None, Some(_)) => Err(Problem::new(400, "If-None-Match has to be * here")),
        (Some("*"), None) => match current {
            Some(_) => Ok(Vec::new()),
            None => Err(Problem::new(412, "nothing is said there")),
        },
        (Some(known), None) => match current {
            Some(found) if tag(&found) == known => {
                Ok(vec![ConfigExpected { path, revision: Some(found.revision) }])
            }
            current => {
                let why = format!("\"{path}\" is another by now: it was changed since it was looked at");
                Err(Problem::new(412, why).with_current(current))
            }
        },
        (None, None) => {
            let why = "this needs If-Match with the ETag of the setting, or If-None-Match: * to say what nobody says yet";
            Err(Problem::new(428, why).with_current(current))
        }
    }
}

fn change(call: &Call, edit: ConfigEdit) -> Result<Request, Problem> {
    Ok(Request::ConfigChange(api::ConfigChange {
        edits: vec![edit],
        why: call.asked("why").map(str::to_owned),
        for_s: call.number("for-s")?,
        expected_at: expected(call)?,
        is_dry_run: call.flag("dry-run")?,
        ..api::ConfigChange::default()
    }))
}

/// Returns the text of a setting that a body holds.
pub(crate) fn setting_text(call: &Call) -> Result<String, Problem> {
    let kind = call.header(&CONTENT_TYPE)?.unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    if kind.eq_ignore_ascii_case("application/json") {
        json::check(&call.body)?;
    } else if !["application/yaml", "text/plain"].iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        let why = format!(
            "the Content-Type is \"{kind}\": expected application/yaml, text/plain or application/json"
        );
        return Err(Problem::new(415, why));
    }
    String::from_utf8(call.body.clone()).map_err(|_| Problem::new(400, "the body is not UTF-8"))
}

/// Makes the change of `PUT /settings/{path}`.
pub(crate) fn put_setting(call: &Call) -> Result<Request, Problem> {
    change(call, ConfigEdit::Set { path: call.part(0), text: setting_text(call)? })
}

/// Makes the change of `DELETE /settings/{path}`.
pub(crate) fn delete_setting(call: &Call) -> Result<Request, Problem> {
    let path = call.part(0);
    let edit = match call.flag("nothing")? {
        true => ConfigEdit::TakeAway { path },
        false => ConfigEdit::Unset { path },
    };
    change(call, edit)
}

/// Answers with what came of the change of one setting.
pub(crate) fn changed(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::ConfigChanged(changed) = response else { return unexpected(&response) };
    let reply = as_json(&changed);
    Ok(match current(call)? {
        Some(setting) => reply.with("etag", tag(&setting)),
        None => reply,
    })
}

/// Makes the change of `POST /changes`.
pub(crate) fn change_settings(call: &Call) -> Result<Request, Problem> {
    let mut change: api::ConfigChange = json::parse(&call.body)?;
    change.is_dry_run |= call.flag("dry-run")?;
    if change.edits.is_empty() {
        return Err(Problem::new(400, "there are no edits"));
    }
    Ok(Request::ConfigChange(change))
}

/// Makes the change of `POST /rollback`.
pub(crate) fn roll_back(call: &Call) -> Result<Request, Problem> {
    let RollBack { revision, expected } = json::parse(&call.body)?;
    Ok(Request::ConfigChange(api::ConfigChange {
        edits: vec![ConfigEdit::RollBack { revision }],
        why: call.asked("why").map(str::to_owned),
        expected,
        is_dry_run: call.flag("dry-run")?,
        ..api::ConfigChange::default()
    }))
}

/// Asks for a part of the history.
pub(crate) fn history(call: &Call) -> Result<Request, Problem> {
    let count = call.number("count")?.map(|count| count.min(PART_ITEMS_MAX));
    Ok(Request::ConfigHistory(api::ConfigHistory { count, before: call.number("before")? }))
}

/// Answers with a part of the history, and where the next one is.
pub(crate) fn history_part(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::ConfigSteps(steps) = response else { return unexpected(&response) };
    let wanted = call.asked("count").map_or_else(String::new, |count| format!("&count={count}"));
    let next = steps.last().filter(|last| last.revision > 1);
    let next = next.map(|last| format!("/api/v1/history?before={}{wanted}", last.revision));
    Ok(as_json(&steps).linked(next))
}

/// Asks for the difference of two revisions.
pub(crate) fn diff(call: &Call) -> Result<Request, Problem> {
    let of = |name: &str, otherwise: ConfigOf| match call.asked(name) {
        None => Ok(otherwise),
        Some("file") => Ok(ConfigOf::File),
        Some("now") => Ok(ConfigOf::Now),
        Some(number) => number
            .parse()
            .map(ConfigOf::Revision)
            .map_err(|_| Problem::new(400, format!("{name}={number}: expected a revision, file or now"))),
    };
    let (from, to) = (of("from", ConfigOf::File)?, of("to", ConfigOf::Now)?);
    Ok(Request::ConfigDiff(api::ConfigDiff { from, to }))
}

// Sets.

/// Answers with one set.
pub(crate) fn one_set(_: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Lists(all) = response else { return unexpected(&response) };
    Ok(as_json(&only(all)?))
}

/// Returns what the client says that a change is made for.
pub(crate) fn known_tag(call: &Call) -> Result<Option<String>, Problem> {
    Ok(call.header(&IF_MATCH)?.map(|tag| tag.trim_matches('"').to_owned()))
}

/// Asks for what a dynamic set holds.
pub(crate) fn ask_members(call: &Call) -> Result<Request, Problem> {
    let name = call.part(0);
    // If there is none, what is asked for says so.
    if let Ok(tag) = call.operator.set_tag(&name) {
        call.tag.get_or_init(|| format!("\"{tag}\""));
    }
    Ok(Request::SetList(api::SetName { name }))
}

/// Answers with a part of what a dynamic set holds.
pub(crate) fn members(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::SetList(items) = response else { return unexpected(&response) };
    let reply = part_of(call, items, |item| item.item.clone())?;
    Ok(match call.tag.get() {
        Some(tag) => reply.with("etag", tag.clone()),
        None => reply,
    })
}

/// Answers with a part of a list in the order of its keys, and where the next one is.
fn part_of<T: Serialize>(call: &Call, mut all: Vec<T>, key: fn(&T) -> String) -> Result<Reply, Problem> {
    let count = call.number("count")?.unwrap_or(PART_ITEMS).clamp(1, PART_ITEMS_MAX) as usize;
    all.sort_by_cached_key(key);
    if let Some(after) = call.asked("after") {
        all.retain(|item| key(item).as_str() > after);
    }
    let is_more = all.len() > count;
    all.truncate(count);
    let next = all.last().filter(|_| is_more).map(|last| linked_after(call, &key(last), count as u64));
    Ok(as_json(&all).linked(next))
}

/// Returns the URL of the part behind a key.
pub(crate) fn linked_after(call: &Call, key: &str, count: u64) -> String {
    format!("{}?after={}&count={count}", call.path, percent_encoded(key))
}

/// Writes text so that it can stand in a query.
pub(crate) fn percent_encoded(text: &str) -> String {
    let octet = |octet: u8| match octet {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(octet).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(octet).collect()
}

// Caches, upstreams, resolvers.

/// Asks for what caches hold for a name.
pub(crate) fn answers(call: &Call) -> Result<Request, Problem> {
    let name = call.asked("name").ok_or_else(|| Problem::new(400, "which name? (?name=example.org)"))?;
    Ok(Request::CacheLookup(api::CacheLookup {
        cache: call.asked("cache").map(str::to_owned),
        name: name.to_owned(),
        rtype: call.asked("type").map(str::to_owned),
        covers_below: call.flag("below")?,
    }))
}

/// Answers with the upstream servers.
pub(crate) fn upstreams(_: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Status(status) = response else { return unexpected(&response) };
    Ok(as_json(&status.upstreams))
}

/// Asks something about resolvers.
pub(crate) fn resolver(call: &Call, what: api::ResolverWhat) -> Result<Request, Problem> {
    Ok(Request::Resolver(api::ResolverOrder { what, resolver: call.asked("resolver").map(str::to_owned) }))
}

// Zones.

/// Asks something about zones.
pub(crate) fn zone(what: api::ZoneWhat, name: Option<String>) -> Result<Request, Problem> {
    Ok(Request::Zone(api::ZoneOrder { what, name, file_change: None }))
}

/// Answers with a part of the zones.
pub(crate) fn zones(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Zones(zones) = response else { return unexpected(&response) };
    part_of(call, zones, |zone| zone.name.clone())
}

/// Answers with one zone.
pub(crate) fn one_zone(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Zones(zones) = response else { return unexpected(&response) };
    let zone = only(zones)?;
    let tag = format!("\"{}\"", zone.tag());
    if call.header(&IF_NONE_MATCH)?.is_some_and(|known| known == tag || known == "*") {
        return Ok(Reply::nothing(304).with("etag", tag));
    }
    Ok(as_json(&zone).with("etag", tag))
}

/// Returns the ETag of what a client changes: `*` is any. Nothing stands for what is not there, as
/// `If-None-Match: *` says it; so a change without both is refused if that is there.
pub(crate) fn expected_tag(call: &Call) -> Result<Option<String>, Problem> {
    match (known_tag(call)?, call.header(&IF_NONE_MATCH)?) {
        (Some(tag), None) => Ok(Some(tag)),
        (None, None | Some("*")) => Ok(Some(String::new())),
        _ => Err(Problem::new(400, "expected If-Match, or If-None-Match: *")),
    }
}

/// Asks to take a zone out.
pub(crate) fn remove_zone(call: &Call) -> Result<Request, Problem> {
    Ok(Request::ZoneRemove(api::ZoneNames { zones: vec![call.part(0)], tag: expected_tag(call)? }))
}

/// Asks to serve a zone.
pub(crate) fn add_zone(call: &Call) -> Result<Request, Problem> {
    Ok(Request::ZoneAdd(api::ZoneAdd {
        zones: vec![call.part(0)],
        options: setting_text(call)?,
        records: None,
        tag: expected_tag(call)?,
    }))
}

/// Answers with what became of one zone.
pub(crate) fn zones_changed(_: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::ZonesChanged(changed) = response else { return unexpected(&response) };
    match changed.refused.first() {
        Some(refused) => Err(Problem::new(409, refused.text.clone())),
        None => Ok(as_json(&changed)),
    }
}

// Shapes that are no type of their own.

/// Describes counters by group.
pub(crate) fn stats_shape(_: &mut Schemas) -> Value {
    let numbers = json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}});
    json!({"type": "object", "additionalProperties": numbers})
}

/// Describes upstream servers by group.
pub(crate) fn upstreams_shape(schemas: &mut Schemas) -> Value {
    let servers = json!({"type": "array", "items": one::<api::Upstream>(schemas)});
    json!({"type": "object", "additionalProperties": servers})
}
