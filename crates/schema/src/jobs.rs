//! What happens beside answering: effects, the record of queries, schedules.

use super::{
    Apply, DAY, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, row, section, text, unset, whole, word,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "effects",
        kind: Kind::Named("effect"),
        default: Some("{}"),
        reason: "nothing outside is to be touched",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Effects outside the server, by name. The action `effect(NAME)` requests one for a \
               query. The server carries it out when the reply is complete, and never delays the \
               reply.",
        unbound: &["ipset"],
    },
    unset(
        "effects.*.type",
        word(&["nftset", "ipset", "mikrotik-list", "mikrotik-route", "http", "script"]),
        "The kind of effect: `nftset` and `ipset` put the addresses of the reply into sets, \
         `mikrotik-list` and `mikrotik-route` into lists or routes of a MikroTik router; `http` \
         sends a request; `script` runs a program.",
    ),
    row(
        "effects.*.queue",
        whole(1, 65_536),
        "1024",
        "a second's worth on a busy day",
        "Queries that may wait for it. One more is dropped and counted.",
    ),
    row(
        "effects.*.family",
        word(&["ip", "ip6", "inet", "bridge", "netdev"]),
        "inet",
        "most tables are for both families",
        "nftset: the family of the table.",
    ),
    unset("effects.*.table", text(), "nftset: the table."),
    unset("effects.*.set", text(), "nftset: the set for whatever addresses it holds."),
    unset("effects.*.set4", text(), "nftset, ipset: the set for IPv4 addresses."),
    unset("effects.*.set6", text(), "nftset, ipset: the set for IPv6 addresses."),
    row(
        "effects.*.prefix4",
        whole(1, 32),
        "32",
        "only what was asked for",
        "nftset, ipset: how many leading bits of an IPv4 address go into the set; fewer than 32 need a set of networks.",
    ),
    row(
        "effects.*.prefix6",
        whole(1, 128),
        "128",
        "only what was asked for",
        "nftset, ipset: how many leading bits of an IPv6 address go into the set.",
    ),
    unset(
        "effects.*.timeout",
        text(),
        "How long an address stays: a duration, `ttl` (as long as its record may be kept), or `none` (as the set says; on a \
         router, for ever). A repeated answer begins the time anew. If not set: `none` for nftset and ipset, `ttl` for MikroTik.",
    ),
    unset(
        "effects.*.timeout-min",
        duration(SECOND, 30 * DAY),
        "The shortest time that `timeout: ttl` gives; one minute if not set.",
    ),
    unset(
        "effects.*.timeout-max",
        duration(SECOND, 30 * DAY),
        "The longest time that `timeout: ttl` gives; one hour if not set.",
    ),
    unset(
        "effects.*.address",
        Kind::One(Value::Socket { port: 8728, word: None }),
        "MikroTik: where the router's API listens (service `api`; with `tls` the service `api-ssl`, whose port is 8729).",
    ),
    row(
        "effects.*.tls",
        Kind::One(Value::Bool),
        "false",
        "a router has no certificate until it is given one",
        "MikroTik: whether the API is encrypted.",
    ),
    unset(
        "effects.*.server-name",
        text(),
        "MikroTik with `tls`: the name that the router's certificate is for; if not set, it must be for its address.",
    ),
    unset("effects.*.user", text(), "MikroTik: the user, with the policies `api`, `read` and `write`."),
    unset("effects.*.password", Kind::One(Value::Password), "MikroTik: the password, or `file:` and a path."),
    unset("effects.*.list4", text(), "MikroTik: the address list for IPv4 addresses."),
    unset("effects.*.list6", text(), "MikroTik: the address list for IPv6 addresses."),
    row(
        "effects.*.always",
        Kind::List(Value::Prefix),
        "[]",
        "what is in the lists comes from answers",
        "MikroTik: addresses and networks that are in the lists all the time, without a timeout. They are there seconds after the \
         start, are looked after every three minutes, and are taken out when another start or a reload names others.",
    ),
    unset("effects.*.gateway4", text(), "MikroTik: the gateway of routes to IPv4 addresses."),
    unset("effects.*.gateway6", text(), "MikroTik: the gateway of routes to IPv6 addresses."),
    unset("effects.*.routing-table", text(), "MikroTik: the routing table; `main` if not set."),
    row(
        "effects.*.distance",
        whole(1, 255),
        "100",
        "routes of others win",
        "MikroTik: the distance of the routes.",
    ),
    unset(
        "effects.*.comment",
        text(),
        "MikroTik: the comment that marks entries of this effect; the server never changes others. \
         `gannet:` and the effect's name if not set.",
    ),
    unset(
        "effects.*.url",
        text(),
        "http: where the request goes; `{name}` and other fields of the query are filled in.",
    ),
    unset(
        "effects.*.method",
        word(&["get", "post", "put", "patch", "delete"]),
        "http: the method; `post` if there is a body, `get` if not.",
    ),
    row(
        "effects.*.headers",
        Kind::List(Value::Text { word: None }),
        "[]",
        "none is needed",
        "http: header lines, `Name: value`; fields are filled in.",
    ),
    unset(
        "effects.*.body",
        text(),
        "http: the body; fields are filled in, escaped for JSON unless a `Content-Type` says that it is something else.",
    ),
    unset(
        "effects.*.ca",
        Kind::One(Value::Path),
        "http, and MikroTik with `tls`: a file of certificates (PEM) that may sign the server's, instead of the usual ones.",
    ),
    row(
        "effects.*.verify",
        Kind::One(Value::Bool),
        "true",
        "anybody on the way could read and change it",
        "http, and MikroTik with `tls`: whether the server's certificate is checked.",
    ),
    unset(
        "effects.*.command",
        Kind::One(Value::Path),
        "script: the program; a name without a slash is looked for in `PATH`.",
    ),
    row(
        "effects.*.arguments",
        Kind::List(Value::Text { word: None }),
        "[]",
        "none is needed",
        "script: its arguments, each as it is: no shell reads them. Fields are filled in.",
    ),
    row(
        "effects.*.environment",
        Kind::List(Value::Text { word: None }),
        "[]",
        "none is needed",
        "script: environment variables, `NAME=value`, besides `PATH`; fields are filled in.",
    ),
    unset(
        "effects.*.directory",
        Kind::One(Value::Path),
        "script: where it runs; the state directory if not set.",
    ),
    row(
        "effects.*.patience",
        duration(100, 10 * MINUTE),
        "5s",
        "what takes longer holds up the next",
        "MikroTik, http, script: how long it may take. A script is killed then.",
    ),
    row(
        "effects.*.concurrency",
        whole(1, 64),
        "4",
        "enough to hide a slow answer",
        "http, script: how many at once.",
    ),
    section("recorder", "Records queries in a database (SQLite), for `gannet log` and whatever reads it."),
    unset(
        "recorder.file",
        Kind::One(Value::Path),
        "How the databases are named: `queries.db` stands for `queries-2026-11-27.db` and so on, one for each day (UTC). Without it nothing is recorded.",
    ),
    row(
        "recorder.queries",
        word(&["all", "chosen"]),
        "all",
        "what one looks for is what one did not choose",
        "Whether every query that policies see is recorded, or those that reach the action `record`.",
    ),
    row(
        "recorder.share",
        Kind::One(Value::Percent { min: 1, max: 100, word: None }),
        "100%",
        "a gap in the record is hard to tell from silence",
        "How many of them, chosen at random.",
    ),
    row(
        "recorder.path",
        Kind::One(Value::Bool),
        "true",
        "it says why a query went where it went",
        "Whether the way through the policy is recorded: each rule tried and each step taken.",
    ),
    row(
        "recorder.keep",
        duration(MINUTE, 3650 * DAY),
        "7d",
        "clients' habits are their own affair after that",
        "How long records are kept: a day's file goes when all of it is older; below one day, row after row.",
    ),
    row(
        "recorder.size",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 42 }),
        "256MiB",
        "some two million queries",
        "How large the databases may grow together; the oldest go first.",
    ),
    row(
        "recorder.clients",
        word(&["full", "prefix", "pseudonym", "none"]),
        "full",
        "one looks for the client that asked",
        "What of clients is recorded: addresses, networks (/24 and /56), a pseudonym that changes each day \
         and leads nobody back to an address, or nothing.",
    ),
    row(
        "recorder.except-clients",
        Kind::List(Value::Prefix),
        "[]",
        "a gap in the record is hard to tell from silence",
        "Clients of which nothing is recorded or counted.",
    ),
    Row {
        path: "schedules",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "nothing has to be done",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Tasks at certain times. A task that is still running does not start again; a time \
               that passes while the server does not run is not made up for.",
        unbound: &[],
    },
    unset(
        "schedules[].at",
        text(),
        "The time in the syntax of cron: minute, hour, day of the month, month, day of the week, \
         such as `0 4 * * *`.",
    ),
    row(
        "schedules[].time-zone",
        text(),
        "local",
        "what the clock on the wall says",
        "The time zone, such as `Europe/Berlin`; `local` is that of the machine.",
    ),
    unset(
        "schedules[].do",
        Kind::List(Value::Text { word: None }),
        "The task: `refresh(sets)` or `refresh(NAME)`, `dump(caches)` or `dump(NAME)`, \
         `effect(NAME)`; one or a list, in order.",
    ),
    unset(
        "schedules[].name",
        Kind::One(Value::Label),
        "The name of the schedule; by default its first task.",
    ),
];
