//! The table of settings as JSON Schema (draft 2020-12), for editors that complete and check as one
//! types.
//!
//! # Limitations
//!
//! It knows shapes, words and numbers, not what names refer to, nor the range of a duration: the
//! checker does.

use diagnostic::json_text;
use values::RCODES;

use schema::{Kind, PLAIN_PICKS, Row, Value, default_node};
use yaml::Node;

/// Returns the schema.
pub fn json_schema() -> String {
    let body = object("");
    format!(
        "{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n\"title\": \"Gannet configuration\",\n{}\n",
        body.trim_start_matches('{')
    )
}

/// Returns the schema of a mapping whose keys are the rows below `parent`.
fn object(parent: &str) -> String {
    let rows: Vec<String> =
        schema::children(parent).map(|row| format!("{}: {}", json_text(row.key()), described(row))).collect();
    format!(
        "{{\"type\": [\"object\", \"null\"], \"additionalProperties\": false, \"properties\": {{\n{}}}}}",
        rows.join(",\n")
    )
}

/// Returns the schema of a row with its text and default.
fn described(row: &Row) -> String {
    let shape = shape(row);
    let mut out = format!("{{\"description\": {}, ", json_text(row.text));
    if let Some(default) = row.default {
        out.push_str(&format!("\"default\": {}, ", json(&default_node(default))));
    }
    out.push_str(shape.trim_start_matches('{'));
    out
}

fn shape(row: &Row) -> String {
    match row.kind {
        Kind::Section => object(row.path),
        Kind::Named(_) => {
            let path = format!("{}.*", row.path);
            let below = schema::find(&path).map_or_else(|| object(&path), described);
            format!("{{\"type\": [\"object\", \"null\"], \"additionalProperties\": {below}}}")
        }
        Kind::Items => {
            let path = format!("{}[]", row.path);
            let first = schema::children(&path).next().map_or_else(|| "true".to_owned(), shape);
            one_or_many(&format!("{{\"anyOf\": [{first}, {}]}}", object(&path)))
        }
        Kind::List(item) => one_or_many(&value(item)),
        Kind::One(item) => value(item),
    }
}

fn one_or_many(item: &str) -> String {
    format!("{{\"anyOf\": [{item}, {{\"type\": \"array\", \"items\": {item}}}]}}")
}

/// A value that takes something from the environment: only the running server knows what.
const VARIABLE: &str = r#"{"type": "string", "pattern": "\\$\\{"}"#;

fn value(value: Value) -> String {
    let any_of = |shapes: &[String]| format!("{{\"anyOf\": [{}, {VARIABLE}]}}", shapes.join(", "));
    let text = |pattern: &str| format!("{{\"type\": \"string\", \"pattern\": {}}}", json_text(pattern));
    let words = |words: &[&str]| {
        let mut words: Vec<String> = words.iter().map(|word| json_text(word)).collect();
        // To editors, these words are booleans, unless somebody quotes them.
        let booleans: Vec<String> =
            words.iter().filter(|word| matches!(word.as_str(), "\"true\"" | "\"false\"")).cloned().collect();
        words.extend(booleans.iter().map(|word| word.trim_matches('"').to_owned()));
        format!("{{\"enum\": [{}]}}", words.join(", "))
    };
    let or = |shape: String, word: Option<&str>| match word {
        Some(word) => any_of(&[words(&[word]), shape]),
        None => any_of(&[shape]),
    };
    let time = || text("^([0-9]+(w|d|h|m|s|ms))+$");
    // Numbers and booleans that stand where any text may are texts to us.
    let free = || "{\"type\": [\"string\", \"number\", \"boolean\"]}".to_owned();
    match value {
        Value::Bool => any_of(&["{\"type\": \"boolean\"}".to_owned()]),
        Value::Whole { min, max, word } => {
            or(format!("{{\"type\": \"integer\", \"minimum\": {min}, \"maximum\": {max}}}"), word)
        }
        Value::Duration { word, .. } => or(time(), word),
        Value::Hedge { .. } => any_of(&[words(&["auto", "off"]), time()]),
        Value::Size { .. } => any_of(&[text("^[0-9]+ ?([KkMmGgTt]i?)?[Bb]$")]),
        Value::Percent { word, .. } => or(text("^[0-9]+%$"), word),
        Value::Word(list) => any_of(&[words(list)]),
        Value::RcodeTerm => {
            let list: Vec<&str> = std::iter::once("unusable").chain(RCODES.map(|(word, _)| word)).collect();
            any_of(&[words(&list)])
        }
        Value::Pick => any_of(&[
            words(&PLAIN_PICKS.map(|(word, _)| word)),
            text("^(race|prefer-positive)\\([0-9]\\)$|^consensus\\([0-9] of [0-9]\\)$"),
        ]),
        Value::Text { .. }
        | Value::Path
        | Value::Glob
        | Value::Address
        | Value::Socket { .. }
        | Value::Prefix
        | Value::Server
        | Value::Pin
        | Value::Secret { .. }
        | Value::Password
        | Value::NamePattern
        | Value::AddressRange
        | Value::SetList
        | Value::Condition
        | Value::Action
        | Value::Label => free(),
    }
}

/// Writes a node as JSON: what editors take for numbers and booleans as those.
fn json(node: &Node) -> String {
    match &node.value {
        yaml::Value::Null => "null".to_owned(),
        yaml::Value::Scalar(scalar) => {
            let text = scalar.text.as_str();
            if matches!(text, "true" | "false") || text.parse::<u64>().is_ok() {
                text.to_owned()
            } else {
                json_text(text)
            }
        }
        yaml::Value::Long(text) => json_text(&text.to_string()),
        yaml::Value::List(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", ")),
        yaml::Value::Map(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|entry| format!("{}: {}", json_text(&entry.key), json(&entry.node)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_json_and_has_every_setting() {
        let schema: serde_json::Value = serde_json::from_str(&json_schema()).expect("it is JSON");
        assert_eq!(schema["additionalProperties"], false);
        let cache = &schema["properties"]["cache"]["additionalProperties"]["properties"];
        assert_eq!(cache["size"]["default"], "64MiB");
        let text = json_schema();
        for row in schema::rows().filter(|row| row.key() != "*") {
            assert!(text.contains(&format!(
                "{}: {{\"description\": {}",
                json_text(row.key()),
                json_text(row.text)
            )));
        }
    }
}
