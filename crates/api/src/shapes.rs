//! What resources look like, in JSON Schema.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::ToSchema;

/// Types that are described, by name.
pub(crate) type Schemas = BTreeMap<String, Value>;

/// Describes what comes or goes, and adds the types that it is made of.
pub(crate) type Shape = fn(&mut Schemas) -> Value;

/// Describes a type.
pub(crate) fn one<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let mut found = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut found);
    for (name, schema) in found {
        schemas.entry(name).or_insert_with(|| serde_json::to_value(schema).unwrap_or(Value::Null));
    }
    json!({"$ref": format!("#/components/schemas/{}", T::name())})
}

/// Describes many of a type.
pub(crate) fn many<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let item = match T::name().as_ref() {
        "String" => json!({"type": "string"}),
        _ => one::<T>(schemas),
    };
    json!({"type": "array", "items": item})
}

/// Describes some of a type by name.
pub(crate) fn map<T: ToSchema>(schemas: &mut Schemas) -> Value {
    json!({"type": "object", "additionalProperties": one::<T>(schemas)})
}

/// Describes numbers for Prometheus.
pub(crate) fn metrics(_: &mut Schemas) -> Value {
    json!("text/plain")
}

/// Describes settings in YAML.
pub(crate) fn yaml(_: &mut Schemas) -> Value {
    json!("application/yaml")
}

/// Describes plain text.
pub(crate) fn text(_: &mut Schemas) -> Value {
    json!("text/plain")
}

/// Describes records of a master file.
pub(crate) fn records(_: &mut Schemas) -> Value {
    json!("text/dns")
}

/// Describes an archive.
pub(crate) fn archive(_: &mut Schemas) -> Value {
    json!("application/x-tar")
}

/// What events are, as browsers read them.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Describes events whose data are of a type.
pub(crate) fn events<T: ToSchema>(schemas: &mut Schemas) -> Value {
    json!({EVENT_STREAM: {"schema": one::<T>(schemas)}})
}

/// Describes JSON of the control socket.
pub(crate) fn nothing(_: &mut Schemas) -> Value {
    json!({"type": "object"})
}
