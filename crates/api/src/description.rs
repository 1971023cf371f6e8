//! The description of the API in OpenAPI 3.1, printed from the table and from the types.

use serde_json::{Map, Value, json};

use crate::problem::Problem;
use crate::responses;
use crate::route::{IDEMPOTENCY_KEY, Parameter, Route, Wanted};
use crate::routes::all;
use crate::shapes::{Schemas, one};

/// Returns the whole description, as indented JSON.
pub fn description() -> String {
    let mut schemas = Schemas::new();
    let problem = one::<Problem>(&mut schemas);
    let mut paths = Map::new();
    for route in all() {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation(route, &mut schemas);
    }
    paths.insert("/health".to_owned(), json!({"get": health(&mut schemas)}));
    let description = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Gannet",
            "version": "v1",
            "description": "The API of the DNS server Gannet (docs/manual/api.md).",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This server."}],
        "security": [{"token": []}, {"key": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses::problems(&problem),
            "headers": responses::headers(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `gannet token add`. On the control socket the system says who asks.",
                },
                "key": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "A token, as programs show it that speak PowerDNS's API.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-gannet",
                    "description": "A session (`POST /session`); over HTTP the cookie is `gannet`. Changes need the header `X-Gannet`, too.",
                },
            },
        },
    });
    control::api::to_json(&description)
}

/// Describes what is outside of the table.
fn health(schemas: &mut Schemas) -> Value {
    let health = one::<control::api::Health>(schemas);
    let said =
        |about: &str| json!({"description": about, "content": {"application/json": {"schema": health}}});
    json!({
        "operationId": "get-health",
        "summary": "Whether the server does its work.",
        "description": "Needs no role.",
        "security": [],
        "responses": {
            "200": said("Clients are answered, though something may be wrong."),
            "503": said("Clients are not answered."),
            "400": {"$ref": "#/components/responses/problem-400"},
            "403": {"$ref": "#/components/responses/problem-403"},
            "405": {"$ref": "#/components/responses/problem-405"},
            "421": {"$ref": "#/components/responses/problem-421"},
            "429": {"$ref": "#/components/responses/problem-429"},
            "431": {"$ref": "#/components/responses/problem-431"},
        },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut operation = json!({
        "operationId": identifier(route),
        "summary": route.summary,
        "description": match route.is_for_strangers {
            true => "Needs no role.".to_owned(),
            false => format!("Needs the role `{}`.", route.role.word()),
        },
        "responses": responses::responses(route, schemas),
    });
    if route.is_for_strangers {
        operation["security"] = json!([]);
    }
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    match route.body {
        Wanted::Nothing => {}
        Wanted::Json(shape) => {
            let content = json!({"application/json": {"schema": shape(schemas)}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        Wanted::Lines => {
            // What a line is has no place of its own before OpenAPI 3.2.
            let line = one::<control::api::RuleEdit>(schemas);
            let schema = json!({"type": "string", "description": "A line for each: see `x-line`."});
            let content = json!({"application/x-ndjson": {"schema": schema, "x-line": line}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        Wanted::Members => {
            let line = one::<control::api::RuleEdit>(schemas);
            let schema = json!({"type": "string", "description": "A line for each: see `x-line`."});
            let content = json!({
                "application/json": {"schema": one::<crate::members::Members>(schemas)},
                "application/x-ndjson": {"schema": schema, "x-line": line},
            });
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        Wanted::Upload => {
            let content = json!({"text/plain": {"schema": {"type": "string"}}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        Wanted::Archive => {
            let content = json!({"application/x-tar": {"schema": {"type": "string", "format": "binary"}}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        Wanted::Setting => {
            let yaml = json!({"schema": {"type": "string"}});
            let content = json!({"application/yaml": yaml, "application/json": {"schema": {}}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let chosen =
        names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let said = |place: &'static str| {
        move |parameter: &Parameter| {
            let Parameter { name, kind, about } = parameter;
            let mut said = json!({"name": name, "in": place, "description": about, "schema": {"type": kind}});
            match *kind {
                "integer" => said["schema"]["minimum"] = json!(0),
                // `?dry-run` is enough.
                "boolean" => said["allowEmptyValue"] = json!(true),
                _ => {}
            }
            said
        }
    };
    let repeated = route.takes_key().then_some(&IDEMPOTENCY_KEY);
    let headers = route.headers.iter().chain(repeated);
    chosen.chain(route.query.iter().map(said("query"))).chain(headers.map(said("header"))).collect()
}

/// Returns what programs that are made from the description call an operation.
fn identifier(route: &Route) -> String {
    let words = route.path.split(['/', '-']).filter(|word| !word.is_empty());
    let words = words.map(|word| word.trim_matches(['{', '}']));
    std::iter::once(route.method.to_lowercase().as_str()).chain(words).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of the manual that programs read; `cargo xtask docs` writes it.
    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

    #[test]
    fn the_manual_has_the_description_as_it_is() {
        let text = description();
        if std::env::var_os("GANNET_UPDATE_MANUAL").is_some() {
            std::fs::write(FILE, &text).expect("written");
        }
        let known = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(known == text, "docs/openapi.json is stale: run `cargo xtask docs`");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(entries) => {
                    for (key, value) in entries {
                        match value {
                            Value::String(text) if key == "$ref" => found.push(text.clone()),
                            other => references(other, found),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let description: Value = serde_json::from_str(&description()).expect("JSON");
        let mut found = Vec::new();
        references(&description, &mut found);
        assert!(found.len() > 50, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').expect("a reference in the file");
            assert!(description.pointer(pointer).is_some_and(Value::is_object), "{reference}");
        }
    }
}
