//! Hosts files, names of one's own.

use super::{Apply, DAY, Kind, RoleWord, Row, Value, duration, row, section, unset};

pub(super) const ROWS: &[Row] = &[
    section("hosts", "Names from files in the form of /etc/hosts.").for_operators(),
    row(
        "hosts.system",
        Kind::One(Value::Bool),
        "false",
        "what is in there is often meant for this machine alone",
        "Whether to answer from the system's own hosts file.",
    )
    .for_operators(),
    row("hosts.files", Kind::List(Value::Path), "[]", "none is known", "Other hosts files."),
    row(
        "hosts.ttl",
        duration(0, 7 * DAY),
        "1h",
        "a change in the file is seen within the hour",
        "The TTL of names from hosts files and from `local`.",
    )
    .for_operators(),
    Row {
        path: "local",
        kind: Kind::Named("name"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
        role: RoleWord::Operator,
        text: "Names of your own and their addresses: `nas.home.arpa: 192.168.1.10`. Reverse names follow by themselves.",
        unbound: &["local-data", "local-data-ptr"],
    },
    unset("local.*", Kind::List(Value::Address), "The addresses of the name.").for_operators(),
];
