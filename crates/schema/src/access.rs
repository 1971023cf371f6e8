//! Who may ask.

use super::{Kind, Row, Value, row, unset};

pub(super) const ROWS: &[Row] = &[
    row(
        "allow",
        Kind::List(Value::Prefix),
        "[loopback, private]",
        "a resolver that answers everybody is used to attack others",
        "Clients that may use forwarding, caches and local names. All other clients get answers \
         from authoritative zones only (see `zones[].allow-query`), and REFUSED for everything \
         else. Prefixes, or `loopback`, `private` (RFC 1918, RFC 4193, RFC 6598, link-local), \
         `lan` (both) and `any`.",
    )
    .unbound(&["access-control"]),
    row(
        "deny",
        Kind::List(Value::Prefix),
        "[]",
        "nobody is suspected",
        "Clients that get no reply over any transport; `deny` takes precedence over `allow`. Meant \
         for the sources of a flood: on the interfaces of `xdp` the kernel program drops their \
         queries and counts them for each prefix.",
    ),
    unset(
        "deny-set",
        Kind::One(Value::Label),
        "A dynamic set of addresses whose clients get no reply either. `gannet set add`, or an \
         action such as `learn(SET, client)`, bans a client at once, for as long as the set keeps \
         it.",
    ),
    row(
        "trusted-peers",
        Kind::List(Value::Prefix),
        "[]",
        "a client could claim to be anybody",
        "Forwarders in front of this server whose EDNS options name the client: a client subnet of \
         a single address sets `client` and `rate`, and other options set `client-mac` and \
         `client-id`.",
    ),
];
