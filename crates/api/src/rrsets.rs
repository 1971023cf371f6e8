//! RRsets of zones as resources.

use control::api::{self, Request, Response};
use hyper::header::{IF_MATCH, IF_NONE_MATCH};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::call::Call;
use crate::json;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::resources::{PART_ITEMS, PART_ITEMS_MAX, as_json, unexpected};

/// RRsets to change: all of them, or none.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Edits {
    /// What becomes of which RRset; of each at most once.
    changes: Vec<api::RrsetEdit>,
}

/// What an RRset is to be.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Contents {
    /// The TTL, in seconds; that of the RRset as it is when absent.
    ttl: Option<u32>,
    /// The data of each record, as a master file has it, names in full.
    records: Vec<String>,
}

/// Asks for a part of the RRsets of a zone.
pub(crate) fn list(call: &Call) -> Result<Request, Problem> {
    Ok(Request::Rrsets(api::RrsetsOf {
        zone: call.part(0),
        name: call.asked("name").map(str::to_owned),
        rtype: call.asked("type").map(str::to_owned),
        skip: call.number("after")?.unwrap_or(0),
        count: Some(call.number("count")?.unwrap_or(PART_ITEMS).clamp(1, PART_ITEMS_MAX)),
    }))
}

/// Answers with a part of the RRsets, and where the next one is.
pub(crate) fn listed(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Rrsets(found) = response else { return unexpected(&response) };
    let after = call.number("after")?.unwrap_or(0).saturating_add(found.rrsets.len() as u64);
    let mut next = format!("{}?after={after}", call.path);
    for (key, value) in call.query.iter().filter(|(key, _)| key != "after") {
        next += &format!("&{key}={}", crate::resources::percent_encoded(value));
    }
    Ok(as_json(&found).linked(found.is_cut.then_some(next)))
}

/// Asks for one RRset.
pub(crate) fn get(call: &Call) -> Result<Request, Problem> {
    Ok(Request::Rrsets(one(call)))
}

fn one(call: &Call) -> api::RrsetsOf {
    let (name, rtype) = (Some(call.part(1)), Some(call.part(2)));
    api::RrsetsOf { zone: call.part(0), name, rtype, skip: 0, count: None }
}

/// Answers with one RRset.
pub(crate) fn got(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Rrsets(found) = response else { return unexpected(&response) };
    let none = || Problem::new(404, format!("{} has no {} records", call.part(1), call.part(2)));
    let rrset = found.rrsets.into_iter().next().ok_or_else(none)?;
    let tag = format!("\"{}\"", rrset.tag);
    if call.header(&IF_NONE_MATCH)?.is_some_and(|known| known == tag || known == "*") {
        return Ok(Reply::nothing(304).with("etag", tag));
    }
    Ok(as_json(&rrset).with("etag", tag))
}

/// Asks to replace an RRset.
pub(crate) fn put(call: &Call) -> Result<Request, Problem> {
    let Contents { ttl, records } = json::parse(&call.body)?;
    if records.is_empty() {
        return Err(Problem::new(422, "an RRset has records; DELETE takes it away"));
    }
    change(call, ttl, records)
}

/// Asks to take an RRset away.
pub(crate) fn delete(call: &Call) -> Result<Request, Problem> {
    change(call, None, Vec::new())
}

fn change(call: &Call, ttl: Option<u32>, records: Vec<String>) -> Result<Request, Problem> {
    let tag = expected(call)?;
    let action = api::RrsetAction::Replace;
    let edit = api::RrsetEdit { name: call.part(1), rtype: call.part(2), action, ttl, records, tag };
    Ok(Request::RrsetsChange(api::RrsetsChange { zone: call.part(0), changes: vec![edit] }))
}

/// Returns the tag of the RRset that the client changes.
fn expected(call: &Call) -> Result<Option<String>, Problem> {
    let present = || {
        let found = call.operator.rrsets(&one(call))?;
        Ok::<_, Problem>(found.rrsets.into_iter().next())
    };
    match (call.header(&IF_MATCH)?, call.header(&IF_NONE_MATCH)?) {
        (Some(_), Some(_)) => Err(Problem::new(400, "If-Match and If-None-Match exclude each other")),
        (None, Some("*")) => Ok(Some(String::new())),
        (None, Some(_)) => Err(Problem::new(400, "If-None-Match has to be * here")),
        (Some("*"), None) => match present()? {
            Some(rrset) => Ok(Some(rrset.tag)),
            None => Err(Problem::new(412, "there is no such RRset")),
        },
        (Some(tag), None) => Ok(Some(tag.trim_matches('"').to_owned())),
        (None, None) => Err(Problem::new(
            428,
            "this needs If-Match with the ETag of the RRset, or If-None-Match: * for a new one",
        )),
    }
}

/// Asks to change several RRsets.
pub(crate) fn patch(call: &Call) -> Result<Request, Problem> {
    let Edits { changes } = json::parse(&call.body)?;
    Ok(Request::RrsetsChange(api::RrsetsChange { zone: call.part(0), changes }))
}
