//! What comes back, as the description has it: statuses, headers and problems.

use serde_json::{Map, Value, json};

use crate::route::{IF_MATCH_NAME, Route, Wanted};
use crate::shapes::{EVENT_STREAM, Schemas};

/// A status of a problem, and what it means.
const PROBLEMS: [(u16, &str); 20] = [
    (400, "It makes no sense: a wrong parameter, or a body that cannot be understood."),
    (401, "A token or a session is needed, or what is shown is none."),
    (403, "The role does not suffice, it is locked, or a page of somebody else asks."),
    (404, "There is no such thing."),
    (405, "Not with this method; the header `Allow` has those that there are."),
    (408, "The body took too long."),
    (409, "It does not go with how the server is configured, or not at present."),
    (411, "A body needs a Content-Length, and no Transfer-Encoding."),
    (412, "Somebody else has changed it: what it is by now, and who changed it when."),
    (413, "The body is too long."),
    (415, "The Content-Type is another than what is expected."),
    (421, "It is for another host."),
    (422, "Settings, records or rules with mistakes: `diagnostics` has them."),
    (428, "It needs If-Match or If-None-Match."),
    (429, "Too many requests; the header `Retry-After` has the seconds to wait."),
    (431, "The head of the request is too long."),
    (500, "The machine refuses it, such as a file that cannot be read."),
    (503, "Another long body is being read, or the store cannot be read."),
    (504, "It has begun, and is not done in time."),
    (507, "It cannot be kept on disk, or the audit log cannot have a row of it."),
];

/// What every request may come to.
const OF_ALL: [u16; 8] = [400, 401, 403, 405, 421, 429, 431, 500];
/// What a request may come to besides that looks at something, and that changes something.
const OF_LOOKS: [u16; 4] = [404, 409, 503, 504];
const OF_CHANGES: [u16; 6] = [404, 409, 422, 503, 504, 507];
/// What a request with a body may come to besides.
const OF_BODIES: [u16; 5] = [408, 411, 413, 415, 422];

/// A header of responses, and what it says.
const HEADERS: [(&str, &str); 8] = [
    ("Allow", "The methods that there are."),
    ("ETag", "What it is known by until it changes: for `If-Match` and `If-None-Match`."),
    ("Idempotent-Replayed", "`true` if the request was carried out before, and is answered again."),
    ("Link", "Where the next part is (`rel=\"next\"`), if there is one."),
    ("Location", "Where to go on."),
    ("Retry-After", "Seconds to wait."),
    ("Set-Cookie", "What shows the session from now on."),
    ("WWW-Authenticate", "How to prove who asks."),
];

fn problem_name(status: u16) -> String {
    format!("problem-{status}")
}

fn header(name: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{name}")})
}

/// Returns the headers that descriptions of responses refer to.
pub(crate) fn headers() -> Value {
    let all = HEADERS.iter().map(|(name, about)| {
        let kind = if *name == "Retry-After" { "integer" } else { "string" };
        ((*name).to_owned(), json!({"description": about, "schema": {"type": kind}}))
    });
    Value::Object(all.collect())
}

/// Returns the problems that descriptions of operations refer to.
pub(crate) fn problems(schema: &Value) -> Value {
    let all = PROBLEMS.iter().map(|(status, about)| {
        let mut response = json!({"description": about});
        // Whoever reads heads says no more.
        if *status != 431 {
            response["content"] = json!({"application/problem+json": {"schema": schema}});
        }
        let name = match status {
            401 => Some("WWW-Authenticate"),
            405 => Some("Allow"),
            429 => Some("Retry-After"),
            _ => None,
        };
        if let Some(name) = name {
            response["headers"] = json!({name: header(name)});
        }
        (problem_name(*status), response)
    });
    Value::Object(all.collect())
}

/// Returns what an operation may come to.
pub(crate) fn responses(route: &Route, schemas: &mut Schemas) -> Value {
    let mut all = Map::new();
    for status in route.statuses {
        all.insert(status.to_string(), done(route, *status, schemas));
    }
    let is_look = route.method == "GET";
    let mut problems: Vec<u16> = OF_ALL.to_vec();
    problems.extend(if is_look { &OF_LOOKS[..] } else { &OF_CHANGES });
    if !matches!(route.body, Wanted::Nothing) {
        problems.extend(OF_BODIES);
    }
    let tags = route.headers.iter().filter(|header| header.name.starts_with("If-")).count();
    if !is_look && tags > 0 {
        problems.push(412);
    }
    if !is_look && route.needs_tag() {
        problems.push(428);
    }
    for status in problems {
        let reference = json!({"$ref": format!("#/components/responses/{}", problem_name(status))});
        all.insert(status.to_string(), reference);
    }
    Value::Object(all)
}

fn done(route: &Route, status: u16, schemas: &mut Schemas) -> Value {
    let about = match status {
        201 => "It is made.",
        204 => "It is done, and there is nothing to say.",
        304 => "It is what the client knows (`If-None-Match`).",
        _ => "It is done.",
    };
    let mut response = json!({"description": about});
    if status != 204 && status != 304 {
        response["content"] = content(route, schemas);
    }
    let repeated = route.takes_key().then_some("Idempotent-Replayed");
    let names = route.gives.iter().copied().chain(repeated);
    let headers: Map<String, Value> = names.map(|name| (name.to_owned(), header(name))).collect();
    if !headers.is_empty() {
        response["headers"] = Value::Object(headers);
    }
    response
}

fn content(route: &Route, schemas: &mut Schemas) -> Value {
    match (route.shape)(schemas) {
        // YAML is read like JSON, and what it holds is as free as settings are.
        Value::String(kind) if kind == "application/yaml" => json!({kind: {"schema": {}}}),
        // Text that is no JSON.
        Value::String(kind) => json!({kind: {"schema": {"type": "string"}}}),
        stream if stream.get(EVENT_STREAM).is_some() => stream,
        shape => {
            let mut content = json!({"application/json": {"schema": shape}});
            if route.path == crate::route::TUNNEL {
                content["application/x-ndjson"] = json!({"schema": {"type": "string"}});
            }
            content
        }
    }
}

impl Route {
    /// Returns whether a change has to say what it is made for.
    fn needs_tag(&self) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.name == IF_MATCH_NAME && header.about.contains("Needed"))
    }
}
