//! What ALIAS records lead to.

use super::{DAY, Kind, Row, Value, duration, row, section, whole};

pub(super) const ROWS: &[Row] = &[
    section("alias", "Targets of ALIAS records in zones: other names whose addresses answer for the owner."),
    row(
        "alias.resolvers",
        Kind::List(Value::Socket { port: 53, word: None }),
        "[]",
        "only names of zones that are served here are followed",
        "DNS servers that resolve those names, asked in this order. They are asked again shortly before each TTL is over, not when a \
         client asks.",
    ),
    row(
        "alias.stale",
        duration(0, 30 * DAY),
        "1d",
        "old addresses are better than none for a while",
        "For how long addresses are used that could not be asked for again; afterwards the answer is SERVFAIL.",
    ),
    row(
        "alias.targets",
        whole(1, 1_000_000),
        "10000",
        "a few questions a second, if TTLs are an hour",
        "How many different targets the server resolves; further ones get SERVFAIL, with a warning \
         in the log.",
    ),
];
