//! Named conditions, policies, and who begins in which.

use super::{Apply, Kind, RoleWord, Row, Value, row, unset};

pub(super) const CONDITIONS: &[Row] = &[
    Row {
        path: "conditions",
        kind: Kind::Named("condition"),
        default: Some("{}"),
        reason: "none is known",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Conditions with a name, to be used in others: `bedtime: now in hours(\"21:00-07:00\")`, then `if: bedtime and \
               client in kids`.",
        unbound: &[],
    },
    unset("conditions.*", Kind::One(Value::Condition), "The condition."),
];

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "split",
        kind: Kind::Named("name"),
        default: Some("{}"),
        reason: "all names are asked for in the same way",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Servers for a name and everything below it: `corp.example: 10.0.0.53`. They apply \
               before any other policy, in every view; the longest matching name applies (see \
               `docs/manual/policy.md`).",
        unbound: &[],
    },
    unset(
        "split.*",
        Kind::List(Value::Server),
        "The servers to ask, as in `upstreams.*.servers`, or the name of an upstream group.",
    ),
    Row {
        path: "policy",
        kind: Kind::Named("policy"),
        default: Some("{main: [{do: [hosts, local, \"cache(main)\", \"forward(default)\"]}]}"),
        reason: "own names first, then memory, then the upstreams",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "How the server answers a query: rules that apply from top to bottom until one ends \
               the query. Every query begins in `main`; `call(name)` runs another policy.",
        unbound: &[],
    },
    Row {
        path: "policy.*",
        kind: Kind::Items,
        default: None,
        reason: "",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "The rules. An action alone stands for a rule without a condition.",
        unbound: &[],
    },
    unset("policy.*[].do", Kind::List(Value::Action), "One action or a list of actions, in order."),
    unset("policy.*[].if", Kind::One(Value::Condition), "When to do it; without it, always."),
    unset("policy.*[].name", Kind::One(Value::Label), "The name of the rule."),
    Row {
        path: "views",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "everybody is served by `main`",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Clients whose queries begin in another policy than `main`. The first view of which everything holds that it \
               says is taken. Caches keep the answers of views with different policies apart.",
        unbound: &[],
    },
    unset("views[].policy", Kind::One(Value::Label), "The policy in which queries begin."),
    row("views[].clients", Kind::List(Value::Prefix), "[]", "any client", "Clients, as in `allow`."),
    row("views[].listeners", Kind::List(Value::Label), "[]", "any listener", "Listeners, by name."),
    row(
        "views[].server-names",
        Kind::List(Value::Text { word: None }),
        "[]",
        "any name",
        "Server names that the client sends in TLS; `*.example.org` stands for what lies below.",
    ),
    row("views[].paths", Kind::List(Value::Text { word: None }), "[]", "any path", "Paths of HTTP requests."),
    unset("views[].if", Kind::One(Value::Condition), "A condition that must hold too."),
];
