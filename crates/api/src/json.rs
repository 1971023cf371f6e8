//! JSON of clients, read strictly: what two readers could understand differently is refused.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::problem::Problem;

/// Reads a body; it may be no deeper than 128.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    check(body)?;
    serde_json::from_slice(body).map_err(|error| not_json(&error))
}

/// Returns an error unless the body is JSON that nobody can misunderstand.
pub(crate) fn check(body: &[u8]) -> Result<(), Problem> {
    serde_json::from_slice::<Strict>(body).map(drop).map_err(|error| not_json(&error))
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(400, format!("the body cannot be understood: {error}"))
}

/// JSON without a key twice in an object, and without numbers that a `f64` does not hold.
struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_unit<E: Error>(self) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
        while items.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Strict, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("the key \"{key}\" stands there twice")));
            }
            keys.insert(key);
            entries.next_value::<Strict>()?;
        }
        Ok(Strict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, why: &str) {
        let problem = check(text.as_bytes()).expect_err(text);
        let detail = problem.detail();
        assert!(problem.status() == 400 && detail.contains(why), "{text}: {detail}");
    }

    #[test]
    fn what_could_be_misunderstood_is_refused_with_the_reason() {
        refused(r#"{"a": 1, "b": {"c": 1, "c": 2}}"#, "the key \"c\" stands there twice");
        refused(r#"{"a": 1, "\u0061": 2}"#, "the key \"a\" stands there twice");
        refused(&format!("{}{}", "[".repeat(200), "]".repeat(200)), "recursion limit exceeded");
        refused("[1e999]", "number out of range");
        refused("{} {}", "trailing characters");
        refused("{\"a\":", "EOF");
        refused("nothing", "expected");
        refused("\"\\ud800\"", "hex escape");
        assert!(check(b"{\"a\": [null, true, -1, 1.5, \"x\", {}]}").is_ok());
        assert!(check(&[b'"', 0xff, b'"']).is_err());
    }
}
