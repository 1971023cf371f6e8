//! Who may ask.

use super::{Kind, Row, Value, row, unset};

pub(super) const ROWS: &[Row] = &[
    row(
        "allow",
        Kind::List(Value::Prefix),
        "[loopback, private]",
        "a resolver that answers everybody is used to attack others",
        "Clients that may ask for anything: what is forwarded, cached or answered from local names. Others get answers from the zones \
         that are served (see `zones[].allow-query`), and are refused everything else. Prefixes, or `loopback`, `private` (RFC 1918, RFC 4193, RFC 6598, \
         link-local), `lan` (both) and `any`.",
    )
    .unbound(&["access-control"]),
    row(
        "deny",
        Kind::List(Value::Prefix),
        "[]",
        "nobody is suspected",
        "Clients that hear nothing, whatever they ask and by whatever transport; `allow` does not help them. Meant for the \
         sources of a flood: on the interfaces of `xdp` their queries are dropped by the program, before they cost anything, \
         and counted for each prefix.",
    ),
    unset(
        "deny-set",
        Kind::One(Value::Label),
        "A dynamic set of addresses whose clients hear nothing either: what `gannet set add` puts there, or an action such as \
         `learn(SET, client)`, is banned at once, and for as long as the set keeps it.",
    ),
    row(
        "trusted-peers",
        Kind::List(Value::Prefix),
        "[]",
        "a client could claim to be anybody",
        "Forwarders in front of this server that are believed when they say for whom they ask: the single address in the \
         EDNS client subnet is the client's for `client` and `rate`, and `client-mac` and `client-id` are read.",
    ),
];
