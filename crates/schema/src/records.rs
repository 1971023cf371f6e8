//! Sets of records that actions answer from.

use super::{Apply, Kind, RoleWord, Row, Value, row};

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "records",
        kind: Kind::Named("set of records"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
        role: RoleWord::Operator,
        text: "Sets of records of any type, written as in a zone file, that the action `records(NAME)` answers from.",
        unbound: &[],
    },
    row(
        "records.*.text",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a set may come from files only",
        "Records: `www 60 IN A 192.0.2.1`, one a line, with `$ORIGIN`, `$TTL`, `$INCLUDE` and `$GENERATE`; `\\#` writes data of any \
         type (RFC 3597). Without a TTL they have an hour.",
    ).for_operators(),
    row(
        "records.*.files",
        Kind::List(Value::Path),
        "[]",
        "a set may be written here",
        "Files with records, likewise.",
    ),
    row(
        "records.*.hosts",
        Kind::List(Value::Path),
        "[]",
        "most records are more than addresses",
        "Files with names and addresses: `192.0.2.1 www.example.org` as in a hosts file, or the name first, as mosdns has it \
         (`www.example.org 192.0.2.1 2001:db8::1`, `domain:example.org 192.0.2.1` with everything below it; the last line about a \
         name counts). Their TTL is `hosts.ttl`; lines that cannot be read are counted and shown.",
    ),
    row(
        "records.*.origin",
        Kind::One(Value::Text { word: None }),
        ".",
        "a name needs no dot at its end then",
        "The name that names without a dot at their end are below.",
    ).for_operators(),
    row(
        "records.*.synthesized-soa",
        Kind::One(Value::Bool),
        "true",
        "clients know for how long a name has no such record",
        "Whether an answer without data has an SOA where the set has none for the name: one that the server makes up, at the name. Without \
         it clients ask again each time. `unbound.conf` leaves it out.",
    ).for_operators(),
];
