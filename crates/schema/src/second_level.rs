//! Second-level caches of resolvers: a cache in Redis behind their own.

use super::{Kind, MINUTE, Row, Value, duration, row, section, unset, whole};

// A table.
pub(super) const ROWS: &[Row] = &[
    section(
        "resolvers.*.second-level-cache",
        "A cache in Redis behind the resolver's own: it outlives a restart, and several servers can share it. A question that neither \
         `cache` nor the resolver's tables answer is looked up there before any server is asked, and what servers answer is stored. \
         Nobody waits for a Redis that is gone. What it has is validated like the reply of a server, so it can say no more than one; \
         whoever can write to it can forge answers for zones that are not signed. Entries have the form of Unbound's, and both can \
         share a Redis. Left out are questions with CD, names whose servers may hear of clients' subnets, zones without `keep`, and \
         all names while a policy looks at name servers.",
    ),
    unset(
        "resolvers.*.second-level-cache.server",
        Kind::One(Value::Text { word: None }),
        "The Redis server: `redis://192.0.2.1:6379`, `redis://redis.example:6379` or `unix:/run/redis/redis.sock`. The system looks \
         up the address of a host name. What is sent is not encrypted.",
    )
    .unbound(&["backend", "redis-server-host", "redis-server-port", "redis-server-path"]),
    unset(
        "resolvers.*.second-level-cache.password",
        Kind::One(Value::Password),
        "The password of the server (AUTH), or `file:` and a path.",
    )
    .unbound(&["redis-server-password"]),
    row(
        "resolvers.*.second-level-cache.database",
        whole(0, 1_000_000),
        "0",
        "the first one of a server",
        "The number of the server's database.",
    )
    .unbound(&["redis-logical-db"]),
    row(
        "resolvers.*.second-level-cache.command-timeout",
        duration(1, MINUTE),
        "100ms",
        "a cache that takes longer than servers do is none",
        "How long a question waits for the cache. If a reply takes longer, the connection ends, and the cache is left out until it \
         answers again.",
    )
    .unbound(&["redis-timeout", "redis-command-timeout"]),
    row(
        "resolvers.*.second-level-cache.connect-timeout",
        duration(1, MINUTE),
        "1s",
        "nobody waits for it",
        "How long a connection may take until it can be used.",
    )
    .unbound(&["redis-connect-timeout"]),
    row(
        "resolvers.*.second-level-cache.expire",
        Kind::One(Value::Bool),
        "true",
        "Redis keeps all for ever otherwise, or drops what it likes",
        "Whether Redis is told to forget an answer when its TTL has passed (`SET … EX`).",
    )
    .unbound(&["redis-expire-records"]),
    row(
        "resolvers.*.second-level-cache.store",
        Kind::One(Value::Bool),
        "true",
        "a cache that nobody fills is empty",
        "Whether answers are stored. With `false` the cache is only read, and others fill it.",
    )
    .unbound(&["cachedb-no-store"]),
    row(
        "resolvers.*.second-level-cache.when-stale",
        Kind::One(Value::Bool),
        "true",
        "it may have what another server has found meanwhile",
        "Whether a question is looked up there although the client can have an expired answer (`stale`).",
    )
    .unbound(&["cachedb-check-when-serve-expired"]),
    unset(
        "resolvers.*.second-level-cache.secret",
        Kind::One(Value::Password),
        "A text that is part of all keys, or `file:` and a path: servers that share entries have the same one. Without it, that is \
         the word `default`.",
    )
    .unbound(&["secret-seed"]),
    section(
        "resolvers.*.second-level-cache.replica",
        "Another Redis server that is asked in place of `server`, which then only stores: a copy nearby.",
    ),
    unset(
        "resolvers.*.second-level-cache.replica.server",
        Kind::One(Value::Text { word: None }),
        "The replica, written like `server`.",
    )
    .unbound(&["redis-replica-server-host", "redis-replica-server-port", "redis-replica-server-path"]),
    unset("resolvers.*.second-level-cache.replica.password", Kind::One(Value::Password), "Its password, or `file:` and a path.")
        .unbound(&["redis-replica-server-password"]),
    row(
        "resolvers.*.second-level-cache.replica.database",
        whole(0, 1_000_000),
        "0",
        "the first one of a server",
        "The number of its database.",
    )
    .unbound(&["redis-replica-logical-db"]),
    row(
        "resolvers.*.second-level-cache.replica.command-timeout",
        duration(1, MINUTE),
        "100ms",
        "a cache that takes longer than servers do is none",
        "How long a question waits for it.",
    )
    .unbound(&["redis-replica-timeout", "redis-replica-command-timeout"]),
    row(
        "resolvers.*.second-level-cache.replica.connect-timeout",
        duration(1, MINUTE),
        "1s",
        "nobody waits for it",
        "How long a connection may take until it can be used.",
    )
    .unbound(&["redis-replica-connect-timeout"]),
];
