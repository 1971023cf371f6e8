//! Lists that are kept beside the settings, as resources: their texts, and changes of single rules.

use control::api::{self, Request, Response, RuleEdit};
use hyper::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use server::{EDITS_MAX, OperatorError, Role};

use crate::body::Body;
use crate::call::Call;
use crate::json;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::resources::{as_json, unexpected};
use crate::route::{Parameter, Route, Wanted, get, parameter, route};
use crate::shapes::{many, one, text};

/// Octets of a line of a body of changes: more than the longest rule that makes sense.
const LINE_OCTETS_MAX: usize = 64 << 10;
/// Mistakes that are told; the rest is counted.
const MISTAKES_TOLD_MAX: usize = 100;
/// What a body of changes is.
pub(crate) const KIND: &str = "application/x-ndjson";

const DRY_RUN: Parameter = parameter("dry-run", "boolean", "Only checks it, and says what it would change.");
const STEPS: Parameter = parameter("count", "integer", "At most so many; 20 when absent.");
const TAG: Parameter =
    parameter("If-Match", "string", "The ETag of the list that the change is made for, or `*`.");
const NEEDED_TAG: Parameter = parameter(
    "If-Match",
    "string",
    "The ETag of the list that the change is made for, or `*`. Needed for a list that is there.",
);
const NO_TAG: Parameter = parameter("If-None-Match", "string", "`*`: only if there is no such list.");

/// Rows of the table.
pub(crate) const ROUTES: &[Route] = &[
    get(
        "/lists",
        "Lists of one's own, and those that sets are read from: how they stand.",
        many::<api::ListShown>,
        |_| Ok(Request::ListStates),
    ),
    get("/lists/{list}", "One of them.", one::<api::ListShown>, |_| Ok(Request::ListStates))
        .gives(&["ETag"])
        .replies(one_list),
    get(
        "/lists/{list}/rules",
        "Rules of a list, line by line. Searches for a quarter of a second at most.",
        one::<api::ListRules>,
        |call| {
            let contains = call.asked("contains").filter(|text| !text.is_empty()).map(str::to_owned);
            let (after, count) = (call.number("after")?, call.number("count")?);
            Ok(Request::ListRules(api::ListRulesOf { name: call.part(0), after, count, contains }))
        },
    )
    .role(Role::Helper)
    .query(&[
        parameter("count", "integer", "At most so many; 1,000 when absent, and at most 10,000."),
        parameter("after", "integer", "Those behind: `next` of the part before."),
        parameter("contains", "string", "Those that have this text in them, whatever its letter case."),
    ])
    .gives(&["Link"])
    .replies(rules),
    route("DELETE", "/lists/{list}", "Removes one of them.", one::<api::OwnListChanged>, |call| {
        let tag = tag(call)?.ok_or_else(|| needs_tag("If-Match with the ETag of the list"))?;
        Ok(Request::OwnListRemove(api::OwnListRemove { name: call.part(0), tag: Some(tag) }))
    })
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .headers(&[NEEDED_TAG])
    .gives(&["ETag"]).replies(changed),
    get("/lists/{list}/content", "The text of a list.", text, |call| {
        if let Some(list) = find(call)? {
            call.tag.get_or_init(|| tag_of(list.revision));
        }
        Ok(Request::OwnListContent(api::OwnListName { name: call.part(0) }))
    }),
    get("/lists/{list}/history", "Who changed a list, the newest change first.", many::<api::DataStep>, |call| {
        let (list, count) = (Some(call.part(0)), call.number("count")?);
        Ok(Request::DataHistory(api::DataHistory { set: None, list, count }))
    })
    .query(&[STEPS]),
    get("/sets/{set}/history", "Who changed a dynamic set, the newest change first.", many::<api::DataStep>, |call| {
        let (set, count) = (Some(call.part(0)), call.number("count")?);
        Ok(Request::DataHistory(api::DataHistory { set, list: None, count }))
    })
    .query(&[STEPS]),
    route(
        "PUT",
        "/lists/{list}/content",
        "Makes this text a list: one rule on a line, as the sets read it that name the list. At most 256 MiB.",
        one::<api::OwnListChanged>,
        |_| Err(Problem::new(500, "this is no request of the control socket")),
    )
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .headers(&[NEEDED_TAG, NO_TAG])
    .body(Wanted::Upload)
    .gives(&["ETag"]).replies(changed),
    route(
        "PATCH",
        "/lists/{list}/content",
        "Adds and removes rules: all of it, or nothing. Each line is `{\"add\": \"…\"}` or `{\"remove\": \"…\"}`.",
        one::<api::OwnListChanged>,
        patch,
    )
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .headers(&[TAG, NO_TAG])
    .body(Wanted::Lines)
    .gives(&["ETag"]).replies(changed),
];

/// Octets of a body of changes of single rules.
pub(crate) const LINES_OCTETS_MAX: u64 = 64 << 20;
/// Octets of a text that goes to a file.
pub(crate) const UPLOAD_OCTETS_MAX: u64 = 256 << 20;

/// Returns how many octets a body may have, if it may be longer than others.
pub(crate) fn body_octets_max(method: &str, path: &str) -> Option<u64> {
    let is_content = path.starts_with("/api/v1/lists/") && path.ends_with("/content");
    match method {
        "POST" if path == "/api/v1/restore" => Some(server::ARCHIVE_OCTETS_MAX),
        "PUT" if is_content => Some(UPLOAD_OCTETS_MAX),
        "PATCH" if is_content => Some(LINES_OCTETS_MAX),
        "POST" if path.starts_with("/api/v1/sets/") && path.ends_with("/members") => {
            Some(crate::members::LINES_OCTETS_MAX)
        }
        _ => None,
    }
}

fn needs_tag(what: &str) -> Problem {
    Problem::new(428, format!("this needs {what}"))
}

/// Returns what the client says the list is known by; nothing stands for a list that is not there.
fn tag(call: &Call) -> Result<Option<String>, Problem> {
    match (call.header(&IF_MATCH)?, call.header(&IF_NONE_MATCH)?) {
        (Some(_), Some(_)) => Err(Problem::new(400, "If-Match and If-None-Match exclude each other")),
        (None, Some("*")) => Ok(Some(String::new())),
        (None, Some(_)) => Err(Problem::new(400, "If-None-Match has to be * here")),
        (Some(tag), None) => Ok(Some(tag.trim_matches('"').to_owned())),
        (None, None) => Ok(None),
    }
}

fn tag_of(revision: u64) -> String {
    format!("\"{revision}\"")
}

fn find(call: &Call) -> Result<Option<api::OwnList>, Problem> {
    let name = call.part(0);
    Ok(call.operator.own_list_states()?.into_iter().find(|list| list.name == name))
}

fn one_list(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::ListStates(all) = response else { return unexpected(&response) };
    let name = call.part(0);
    let list = all.into_iter().find(|list| list.name == name);
    let list = list.ok_or_else(|| Problem::new(404, format!("there is no list \"{name}\"")))?;
    Ok(match list.revision {
        Some(revision) => as_json(&list).with("etag", tag_of(revision)),
        None => as_json(&list),
    })
}

/// Answers with a part of the rules, and where the next one is.
fn rules(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::ListRules(part) = response else { return unexpected(&response) };
    let others = |(key, value): &(String, String)| match key.as_str() {
        "after" => String::new(),
        _ => format!("&{key}={}", crate::resources::percent_encoded(value)),
    };
    let others: String = call.query.iter().map(others).collect();
    let next = part.next.map(|next| format!("{}?after={next}{others}", call.path));
    Ok(as_json(&part).linked(next))
}

fn changed(_: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::OwnListChanged(changed) = response else { return unexpected(&response) };
    let tag = tag_of(changed.revision);
    Ok(as_json(&changed).with("etag", tag))
}

/// Answers with the text of a list.
pub(crate) fn content(call: &Call, parts: control::Parts) -> Reply {
    let text = parts.map(|part| match part {
        Response::OwnListText(part) => part.text,
        other => other.to_json(),
    });
    let reply = Reply::new(200, "text/plain; charset=utf-8", Body::in_parts(text));
    match call.tag.get() {
        Some(tag) => reply.with("etag", tag.clone()),
        None => reply,
    }
}

/// Makes what was uploaded the text of a list.
pub(crate) fn put(call: &Call, draft: server::Draft) -> Result<Response, Problem> {
    let is_dry_run = call.flag("dry-run")?;
    let tag = match tag(call)? {
        None if find(call)?.is_some() => {
            return Err(needs_tag("If-Match with the ETag of the list, or *: it is there already"));
        }
        // Nobody may have made it meanwhile.
        None => String::new(),
        Some(tag) => tag,
    };
    let name = call.part(0);
    let put = server::own_list_put(&call.operator, (&name, &tag), draft, is_dry_run, &call.caller);
    let put = put.map_err(|error| match error {
        OperatorError::Conflict(why) => {
            Problem::new(412, why).with_change(call.operator.last_change_of_list(&name))
        }
        other => other.into(),
    })?;
    Ok(Response::OwnListChanged(put))
}

/// Asks to change rules.
fn patch(call: &Call) -> Result<Request, Problem> {
    let kind = call.header(&CONTENT_TYPE)?.unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    if !kind.eq_ignore_ascii_case(KIND) {
        return Err(Problem::new(415, format!("expected a Content-Type of {KIND}")));
    }
    let edits = edits(&call.body, EDITS_MAX)?;
    let (name, tag, is_dry_run) = (call.part(0), tag(call)?, call.flag("dry-run")?);
    Ok(Request::OwnListChange(api::OwnListChange { name, edits, tag, is_dry_run }))
}

/// Reads the lines of a body, or says all that is wrong with them.
pub(crate) fn edits(body: &[u8], max: usize) -> Result<Vec<RuleEdit>, Problem> {
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    let mut edits = Vec::new();
    let (mut told, mut count) = (Vec::new(), 0_usize);
    for (number, line) in (1..).zip(body.split(|&octet| octet == b'\n')) {
        if edits.len() > max {
            break;
        }
        let read = match line.len() > LINE_OCTETS_MAX {
            true => Err(format!("a line has at most {LINE_OCTETS_MAX} octets")),
            false => edit(line),
        };
        match read {
            Ok(edit) => edits.push(edit),
            Err(message) => {
                count += 1;
                if told.len() < MISTAKES_TOLD_MAX {
                    told.push(mistake(number, message));
                }
            }
        }
    }
    if count > 0 {
        let what = match count {
            1 => "a line of the body is wrong".to_owned(),
            count => format!("{count} lines of the body are wrong"),
        };
        return Err(Problem::new(422, format!("{what}; nothing was changed")).with_diagnostics(told));
    }
    Ok(edits)
}

fn edit(line: &[u8]) -> Result<RuleEdit, String> {
    let wrong = |error: &dyn std::fmt::Display| {
        format!("{error} (expected {{\"add\": \"…\"}} or {{\"remove\": \"…\"}})")
    };
    // A key that stands there twice is a mistake, too.
    json::check(line).map_err(Problem::into_detail)?;
    serde_json::from_slice(line).map_err(|error| wrong(&error))
}

fn mistake(line: u32, message: String) -> api::Diagnostic {
    let text = format!("line {line}: {message}");
    api::Diagnostic {
        severity: "error".to_owned(),
        line: Some(line),
        message,
        text,
        ..api::Diagnostic::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_wrong_is_told_and_nothing_else_counts() {
        let deep = "[".repeat(200);
        let long = format!("{{\"add\": \"{}\"}}", "a".repeat(LINE_OCTETS_MAX));
        let body = format!(
            "{{\"add\": \"a\"}}\n\n{{\"add\": 1}}\n{{\"add\": \"a\", \"remove\": \"b\"}}\n{{\"add\": \"a\", \"add\": \"b\"}}\n\
             {deep}\n{long}\n{{\"put\": \"a\"}}\nnull\n{{\"add\": \"a\"\n"
        );
        let problem = edits(body.as_bytes(), EDITS_MAX).expect_err("wrong");
        let lines: Vec<u32> = problem.diagnostics().iter().filter_map(|found| found.line).collect();
        assert_eq!((problem.status(), lines), (422, (2..=10).collect()));
        let many = "x\n".repeat(1_000);
        assert_eq!(
            edits(many.as_bytes(), EDITS_MAX).expect_err("wrong").diagnostics().len(),
            MISTAKES_TOLD_MAX
        );
        assert_eq!(edits(b"{\"add\": \"a\"}\n{\"remove\":\"b\"}", EDITS_MAX).expect("right").len(), 2);
    }
}
