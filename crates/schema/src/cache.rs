//! Caches.

use super::{
    Apply, DAY, HOUR, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, duration_or, row, section, unset,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "cache",
        kind: Kind::Named("cache"),
        default: Some("{main: {}}"),
        reason: "one cache for everything",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Caches, by name. A policy step `cache(name)` answers from one and fills it.",
        unbound: &[],
    },
    row(
        "cache.*.size",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 42 }),
        "64MiB",
        "room for some 300,000 answers",
        "Memory that the cache may use. It never uses more.",
    )
    .restart()
    .unbound(&["msg-cache-size", "rrset-cache-size"]),
    row(
        "cache.*.min-ttl",
        duration(0, DAY),
        "0s",
        "the owner of a name decides how long it may be kept",
        "Answers are kept at least this long.",
    )
    .unbound(&["cache-min-ttl"]),
    row(
        "cache.*.max-ttl",
        duration(SECOND, 30 * DAY),
        "1d",
        "RFC 8767 §4 suggests days; a mistake of the owner ends within one",
        "Answers are kept at most this long.",
    )
    .unbound(&["cache-max-ttl"]),
    row(
        "cache.*.max-negative-ttl",
        duration(0, 7 * DAY),
        "1h",
        "RFC 2308 §5 suggests one to three hours",
        "The longest TTL of negative answers.",
    )
    .unbound(&["cache-max-negative-ttl"]),
    row(
        "cache.*.min-negative-ttl",
        duration(0, DAY),
        "0s",
        "a name that is new is found as soon as its zone says",
        "The shortest TTL of negative answers, whatever the zone says (RFC 2308 §5) and `max-negative-ttl`.",
    )
    .unbound(&["cache-min-negative-ttl"]),
    row(
        "cache.*.failure-ttl",
        duration(SECOND, 5 * MINUTE),
        "5s",
        "RFC 9520 §3.2 asks for at least one second and at most five minutes",
        "How long a failure to get an answer is remembered at most: one second at first, twice as long with each further one in a \
         row for the same question. It is forgotten when a server of the group that failed answers again after having been down. \
         Resolvers remember failures themselves (`resolvers.*.failure-ttl`), so theirs are remembered for a second here.",
    ),
    row(
        "cache.*.stale",
        duration_or(SECOND, 30 * DAY, "off"),
        "1d",
        "RFC 8767 §5 suggests one to three days",
        "How long after its end an answer may still be given while no fresh one can be had; `off` for never.",
    )
    .unbound(&["serve-expired", "serve-expired-ttl"]),
    row(
        "cache.*.stale-restarts",
        Kind::One(Value::Bool),
        "false",
        "RFC 8767 §5: an answer that nobody can renew ends at some time",
        "Whether the time of `stale` begins anew whenever the answer could not be fetched: then it is given for as long as it is \
         asked for.",
    )
    .unbound(&["serve-expired-ttl-reset"]),
    row(
        "cache.*.stale-client-timeout",
        duration(0, MINUTE),
        "1800ms",
        "RFC 8767 §5: just below the two seconds after which clients ask again",
        "How long a client waits for a fresh answer when a stale one is at hand. `0s` gives the stale one at once. While every \
         server of the group is down or silent, clients do not wait either.",
    )
    .unbound(&["serve-expired-client-timeout"]),
    row(
        "cache.*.stale-ttl",
        duration(SECOND, HOUR),
        "30s",
        "RFC 8767 §4",
        "The TTL of expired records in a stale answer, but no more than they came with; the others have what they have left.",
    )
    .unbound(&["serve-expired-reply-ttl"]),
    row(
        "cache.*.original-ttl",
        Kind::One(Value::Bool),
        "false",
        "clients would keep an answer for its whole time, however long it was kept here already",
        "Whether the records of an answer from the cache have the TTLs that they came with, those of stale answers as well, for \
         a server that stands in front of one that nobody else can ask. How long answers are kept here stays the same. What is \
         put together from answers to other questions has the time that was left then.",
    )
    .unbound(&["serve-original-ttl"]),
    row(
        "cache.*.prefetch",
        Kind::One(Value::Percent { min: 1, max: 50, word: Some("off") }),
        "10%",
        "popular names are then always answered from memory",
        "An answer that is asked for when less than this part of its time is left is fetched anew in the background.",
    )
    .unbound(&["prefetch"]),
    section("cache.*.dump", "Keeps the cache's content over restarts."),
    unset(
        "cache.*.dump.file",
        Kind::One(Value::Path),
        "The file. It is written when the server stops and read when it starts; without it nothing is kept.",
    ),
    row(
        "cache.*.dump.every",
        duration_or(MINUTE, 7 * DAY, "off"),
        "off",
        "a stopping server writes it anyway",
        "How often to write it in between, in case the machine loses power.",
    ),
];
