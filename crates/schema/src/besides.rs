//! What resolvers give to clients besides the data that they ask for.

use super::{Kind, Row, Value, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "resolvers.*.minimal-responses",
        Kind::One(Value::Bool),
        "true",
        "clients do not look at more, and small replies travel better",
        "Whether clients get what they asked for and nothing besides. With `false` they also get the zone's name servers and \
         their addresses, if these stood beside the answer. An answer is kept no longer than these then, and what the tables \
         have is asked for again where they are not known. NS records come with the addresses that are known in any case.",
    )
    .unbound(&["minimal-responses", "iter-scrub-promiscuous"]),
    row(
        "resolvers.*.minimal-additional",
        Kind::One(Value::Bool),
        "true",
        "clients ask for these addresses anyway, and small replies travel better",
        "Whether MX and SRV records come without the addresses of the hosts that they name, as they stand in the additional \
         section of the reply.",
    )
    .unbound(&["minimal-responses"]),
    row(
        "resolvers.*.minimal-expansions",
        Kind::One(Value::Bool),
        "true",
        "such answers are large already, and clients have no use for more",
        "Whether an answer that was made from a wildcard, and comes with the proof of that, comes without the name servers that \
         stand beside it in the reply.",
    )
    .unbound(&["iter-scrub-promiscuous"]),
    row(
        "resolvers.*.minimal-denials",
        Kind::One(Value::Bool),
        "true",
        "clients have no use for them",
        "Whether an answer that there is no data or no name comes without the name servers that stand beside it in the reply.",
    ),
    row(
        "resolvers.*.refer-without-rd",
        Kind::One(Value::Bool),
        "false",
        "it shows which zones others asked for, and few can use it",
        "Whether `recurse` answers a query without RD with a referral to the closest zone whose servers are known (RFC 1034 §4.3.2). \
         If not, it is REFUSED. The name servers of a signed zone come with signatures, for which its servers may be asked. Those of \
         others are what the parent said.",
    ),
];
