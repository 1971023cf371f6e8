//! Knot's `mod-geoip`: records that depend on the client.

use std::collections::BTreeMap;
use std::path::Path;

use diagnostic::At;
use yaml::{Node, Value};

use super::super::super::write::{Map, Noted, Out};
use super::super::fields::{Fields, Known};
use super::super::made::{ZoneMade, seconds};
use super::Knot;

const GEOIP: Known = Known {
    used: &["id", "config-file", "ttl", "mode", "geodb-file", "geodb-key"],
    left_out: &[],
    refused: &[("policy", "what is chosen is not signed here")],
};

/// Who gets records.
enum To {
    Net(String),
    Weight(String),
    Place(String),
}

/// Reads the module's file and adds what it says.
pub(super) fn choose(
    knot: &mut Knot<'_, '_, '_>,
    module: &At<String>,
    fields: &Fields<'_>,
    made: &mut ZoneMade,
) {
    for entries in &fields.0 {
        GEOIP.check("\"mod-geoip\"", entries, knot.files);
    }
    let Some(config) = fields.one("config-file") else {
        knot.files.wrong(module.span, "\"mod-geoip\" has no \"config-file\"");
        return;
    };
    let mode = fields.one("mode").map_or("subnet", |word| word.value.as_str()).to_owned();
    let ttl = knot.time(fields, "ttl").map_or(60, |ttl| ttl.value);
    let keys: Vec<String> = fields.all("geodb-key").iter().map(|at| at.value.clone()).collect();
    let database = fields.one("geodb-file").map(|at| knot.files.beside(&at.value));
    if mode == "geodb" && (database.is_none() || keys.iter().any(|key| key != "country/iso_code")) {
        knot.files.wrong(
            module.span,
            "only countries of a database can be carried over: \"geodb-key: country/iso_code\"",
        );
        return;
    }
    let path = knot.files.directory.join(&config.value);
    let Some((file, text)) = knot.files.open(Path::new(&path), Some(config.span)) else { return };
    let literal = |name: &str| Some(format!("${{{name}}}"));
    let parsed = yaml::parse(file, &text, &literal, &mut knot.files.problems);
    let Value::Map(names) = parsed.root.value else {
        knot.files.wrong(parsed.root.span, "this file names no records");
        return;
    };
    for entry in names {
        let Value::List(items) = &entry.node.value else {
            knot.files.wrong(entry.key_span, "this name has no records");
            continue;
        };
        // For each type, what there is to choose from.
        let mut types: BTreeMap<String, Vec<(To, Vec<String>)>> = BTreeMap::new();
        for item in items {
            let Value::Map(item_entries) = &item.value else { continue };
            let one = |key: &str| {
                item_entries.iter().find(|entry| entry.key == key).and_then(|entry| scalar(&entry.node))
            };
            let to = match mode.as_str() {
                "subnet" => one("net").map(To::Net),
                "weighted" => one("weight").map(To::Weight),
                _ => one("geo").map(To::Place),
            };
            let Some(_) = &to else {
                knot.files.wrong(item.head(), format!("this does not say for whom it is (\"mode: {mode}\")"));
                continue;
            };
            for record in
                item_entries.iter().filter(|entry| !matches!(entry.key.as_str(), "net" | "weight" | "geo"))
            {
                let to = match mode.as_str() {
                    "subnet" => one("net").map(To::Net),
                    "weighted" => one("weight").map(To::Weight),
                    _ => one("geo").map(To::Place),
                };
                let Some(to) = to else { continue };
                let data: Vec<String> = match &record.node.value {
                    Value::List(list) => list.iter().filter_map(scalar).collect(),
                    _ => scalar(&record.node).into_iter().collect(),
                };
                types.entry(record.key.to_ascii_uppercase()).or_default().push((to, data));
            }
        }
        for (rtype, from) in types {
            let has_rest = mode == "weighted"
                || from.iter().any(|(to, _)| {
                    matches!(to, To::Net(net) if net.ends_with("/0"))
                        || matches!(to, To::Place(place) if place == "*")
                });
            if !has_rest {
                let message = format!(
                    "a client that none of these name gets the zone's own {rtype} there and would get nothing here"
                );
                let problem = diagnostic::Problem::warning(entry.key_span, message);
                knot.files.problems.push(
                    problem.hint("the last of them is taken for everybody else: change it if that is wrong"),
                );
            }
            let choice = Choice { name: &entry.key, rtype: &rtype, ttl, has_rest, from };
            made.choose.push(written(knot, choice, database.as_deref()));
        }
    }
}

/// An RRset that is chosen for each client.
struct Choice<'a> {
    name: &'a str,
    rtype: &'a str,
    ttl: u64,
    /// Whether everybody gets one.
    has_rest: bool,
    /// Who gets which data.
    from: Vec<(To, Vec<String>)>,
}

fn written(knot: &mut Knot<'_, '_, '_>, choice: Choice<'_>, database: Option<&str>) -> Noted {
    let Choice { name, rtype, ttl, has_rest, from } = choice;
    let mut list: Vec<Noted> = Vec::new();
    let last = from.last().map(|(_, data)| data.clone());
    for (to, data) in from {
        let mut map = Map::default();
        map.put("data", Out::Row(data));
        match to {
            To::Net(net) if net.ends_with("/0") => {}
            To::Net(net) => map.put("clients", Out::Row(vec![net])),
            To::Weight(weight) => map.put("weight", weight),
            To::Place(place) if place == "*" => {}
            To::Place(place) => {
                let country: String = place.split(';').next().unwrap_or("").to_owned();
                let set = format!("country-{}", country.to_ascii_lowercase());
                if knot.made.sets.get(&set).is_none() {
                    let mut of = Map::default();
                    let list = format!("mmdb:{}:country={country}", database.unwrap_or(""));
                    of.put("lists", Out::List(vec![Noted::from(list)]));
                    knot.made.sets.put(set.clone(), of);
                }
                map.put("sets", Out::Row(vec![set]));
            }
        }
        list.push(map.into());
    }
    if let Some(data) = last.filter(|_| !has_rest) {
        let mut map = Map::default();
        map.put("data", Out::Row(data));
        let note = "Knot answers everybody else from the zone.".to_owned();
        list.push(Noted { notes: vec![note], value: map.into() });
    }
    let mut map = Map::default();
    map.put("name", name.trim_end_matches('.'));
    map.put("type", rtype);
    map.put("ttl", seconds(ttl));
    map.put("from", Out::List(list));
    map.into()
}

fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Scalar(scalar) => Some(scalar.text.clone()),
        _ => None,
    }
}
