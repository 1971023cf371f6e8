//! What protects the server: limits, cookies, sizes.

use super::{
    Apply, DAY, HOUR, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, duration_or, row, section, unset,
    whole, whole_or, word,
};
use plan::listeners::AnnounceWord;
use plan::upstreams::Shed;

pub(super) const ROWS: &[Row] = &[
    section("limits", "Limits that protect the server from overload."),
    section("limits.rate", "Queries a client may send when nothing proves its address (UDP without a cookie)."),
    row(
        "limits.rate.per-second",
        whole_or(1, 1_000_000, "off"),
        "off",
        "clients are limited by `allow` already",
        "Queries a second for each client prefix, in the long run.",
    )
    .unbound(&["ip-ratelimit"]),
    row(
        "limits.rate.burst",
        whole(1, 10_000_000),
        "100",
        "a browser opening a page asks for dozens of names at once",
        "Queries that may come at once.",
    ),
    row(
        "limits.rate.slip",
        whole(0, 100),
        "2",
        "as other servers do",
        "Every how many queries over the limit one gets a truncated reply, so that an honest client can turn to TCP. 0: \
         never.",
    ),
    row(
        "limits.rate.pass",
        whole(0, 100),
        "0",
        "a limit is a limit; `slip` costs less, and leads honest clients to TCP",
        "Every how many queries over the limit one is answered all the same, unless its client is over `with-cookie`. 0: never.",
    )
    .unbound(&["ip-ratelimit-factor"]),
    row(
        "limits.rate.ipv4-prefix",
        whole(8, 32),
        "24",
        "the smallest network that is routed",
        "Leading bits of an IPv4 address that share one allowance.",
    ),
    row(
        "limits.rate.ipv6-prefix",
        whole(16, 128),
        "56",
        "what a household gets",
        "Leading bits of an IPv6 address that share one allowance.",
    ),
    row(
        "limits.rate.exempt",
        Kind::List(Value::Prefix),
        "[loopback]",
        "this machine can do worse than ask",
        "Clients without a limit.",
    ),
    row(
        "limits.rate.with-cookie",
        whole_or(1, 1_000_000, "off"),
        "off",
        "who has a cookie of this server has its own address",
        "Queries a second, and at once, of a client whose cookie proves its address (RFC 7873). It has this allowance for itself: \
         who forges the address uses up the other one. `off`: any number.",
    )
    .unbound(&["ip-ratelimit-cookie"]),
    row(
        "limits.rate.backoff",
        Kind::One(Value::Bool),
        "false",
        "a client gets what it may have, however much it asks",
        "Whether queries over the limit count, too: a client that asks too much gets nothing until it asks less, two seconds later \
         at most.",
    )
    .unbound(&["ip-ratelimit-backoff"]),
    row(
        "limits.rate.ban-for",
        duration_or(1_000, 86_400_000, "off"),
        "off",
        "whoever forges a client's address could have it banned",
        "How long a client prefix is banned that keeps on being over the limit. Its queries over UDP are dropped then, by the \
         program on the interfaces of `xdp` before they cost anything; what proves its address, such as TCP, is still \
         answered. At most 1024 prefixes are banned at a time, beside those of `deny`.",
    ),
    row(
        "limits.rate.ban-after",
        whole(1, 10_000_000),
        "1000",
        "a client that hears nothing asks a few times more, not a thousand times",
        "Queries over the limit within ten seconds after which a prefix is banned.",
    ),
    section("limits.tcp", "Connections of clients."),
    row(
        "limits.tcp.connections",
        whole(1, 1_000_000),
        "10000",
        "about 17 MB while they are quiet, 53 MB with TLS",
        "Connections in all. The nearer this is, the sooner quiet ones are closed.",
    )
    .restart()
    .unbound(&["incoming-num-tcp"]),
    row(
        "limits.tcp.connections-per-client",
        whole(1, 1_000_000),
        "1000",
        "enough for an office behind one address, and a tenth of all",
        "Connections of one client (an IPv4 address, or an IPv6 prefix of 56 bits).",
    )
    .restart(),
    Row {
        path: "limits.tcp.networks",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "each client has a limit of its own",
        apply: Apply::Restart,
        role: RoleWord::Admin,
        text: "Networks whose clients have so many connections together: `[{prefix: 192.0.2.0/24, connections: 20}]`. Of several, the \
               longest prefix counts.",
        unbound: &["tcp-connection-limit"],
    },
    unset("limits.tcp.networks[].prefix", Kind::One(Value::Prefix), "The network.").restart(),
    row(
        "limits.tcp.networks[].connections",
        whole(0, 1_000_000),
        "0",
        "a network without a number is one that is to have none",
        "Connections of all its clients together. A further one is closed at once.",
    )
    .restart(),
    row(
        "limits.tcp.idle-timeout",
        duration(SECOND, HOUR),
        "10s",
        "RFC 7766 §6.2.3: in the order of seconds",
        "How long a connection may be quiet; announced with edns-tcp-keepalive (RFC 7828).",
    )
    .restart()
    .unbound(&["tcp-idle-timeout"]),
    row(
        "limits.tcp.announce",
        word(AnnounceWord::WORDS),
        "\"asked\"",
        "old clients have no use for it",
        "Who is told of `idle-timeout`: clients that send edns-tcp-keepalive (`asked`), all that send EDNS (`all`), or `nobody`.",
    )
    .restart()
    .unbound(&["edns-tcp-keepalive"]),
    row(
        "limits.tcp.first-query-timeout",
        duration(100, MINUTE),
        "5s",
        "a client connects because it has a query",
        "How long after connecting the first query must begin.",
    )
    .restart(),
    row(
        "limits.tcp.pipeline",
        whole(1, 10_000),
        "256",
        "more than a client needs, and no client can fill the table of waiting queries",
        "Queries of one connection that may wait for replies at once; more are read later.",
    )
    .restart(),
    row(
        "limits.tcp.buffers",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 40 }),
        "64MiB",
        "clients take their replies at once, so it is hardly ever in use",
        "Memory for incomplete queries and for replies that clients have not read: so much over \
         TCP and TLS, and as much over HTTP and QUIC. The server reads no further queries from a \
         connection with 128 KiB of unread replies, and ends one that reads less than 4 KiB in \
         five seconds. When all of this memory is in use, it ends the connections that hold most.",
    )
    .restart(),
    row(
        "limits.tcp.age",
        duration_or(SECOND, 7 * DAY, "off"),
        "off",
        "a connection that is used may stay",
        "The largest age of a connection, over any transport, even if it is busy. The server \
         closes it when its waiting queries are answered.",
    )
    .restart(),
    section("limits.tls", "TLS handshakes, the most expensive requests that strangers can make."),
    row(
        "limits.tls.handshakes-per-second",
        whole(1, 16_000),
        "1000",
        "about as many as one processor can do; established connections and other transports go on meanwhile",
        "TLS connections that may begin in a second, of all clients together. Further ones are closed at once. New \
         keys of DNSCrypt, which are counted apart, may be sixteen times as many.",
    )
    .restart(),
    row(
        "limits.tls.handshakes-per-client",
        whole(1, 16_000),
        "200",
        "an office behind one address",
        "TLS connections that one client (as under `limits.tcp`) may begin in a second, in the long run; as \
         many new keys of DNSCrypt.",
    )
    .restart(),
    row(
        "limits.tls.handshakes-burst",
        whole(1, 1_000_000),
        "1000",
        "everybody in an office connects anew after a restart",
        "TLS connections that one client may begin at once; as many new keys of DNSCrypt.",
    )
    .restart(),
    row(
        "limits.tls.handshake-timeout",
        duration(100, MINUTE),
        "5s",
        "three slow round trips",
        "How long after connecting the handshake must be done.",
    )
    .restart(),
    row(
        "limits.waiting",
        whole(64, 10_000_000),
        "65536",
        "about 64 MB when all are in use",
        "Queries that may wait for upstreams at once, divided among the workers. When half of the \
         places are in use, a client with more than a sixteenth loses its oldest query for each \
         new one; when all are, the client with the most waiting queries does. A lost query gets \
         SERVFAIL.",
    )
    .unbound(&["num-queries-per-thread"]),
    row(
        "limits.shed",
        word(Shed::WORDS),
        "servfail",
        "a client that knows asks another server at once",
        "The reply to a UDP query that the server drops because too many wait, unless it has an expired answer. `servfail`: \
         SERVFAIL with an Extended DNS Error. `drop`: none, so that a forged address gets no packet, and a client tries again \
         after its own timeout. `drop-overload`: none if too many of all clients wait, and SERVFAIL for what a client asks \
         beyond `limits.wait-limit`. Over connections it is always SERVFAIL.",
    ),
    row(
        "limits.query-size",
        whole_or(512, 65_535, "off"),
        "off",
        "a query of any size costs the same to read",
        "Queries with more octets get no reply, nor do NOTIFY and UPDATE, but for messages with TSIG. Ordinary ones have less than 512; EDNS padding makes them larger.",
    )
    .unbound(&["harden-large-queries"]),
    row(
        "limits.wait-limit",
        whole_or(1, 10_000_000, "off"),
        "1000",
        "far more than a client has waiting, and a bound for the pulse that replies to a forged address can make (CVE-2024-33655)",
        "Replies that the server holds at once for one client (an IPv4 address, or an IPv6 prefix \
         of 56 bits) whose address may be forged, because it uses UDP without a cookie. Divided \
         among the workers, at least 100 each. A further query replaces the client's oldest, or \
         gets SERVFAIL, or what `limits.shed` says.",
    )
    .unbound(&["wait-limit"]),
    row(
        "limits.wait-limit-with-cookie",
        whole_or(1, 10_000_000, "off"),
        "10000",
        "nobody can forge these, so the bound is only for a client out of control",
        "The same for one client whose address is proven, by a cookie or because it uses a connection.",
    )
    .unbound(&["wait-limit-cookie"]),
    Row {
        path: "limits.wait-networks",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "the limits are the same for everybody",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Networks for each of whose clients other limits hold: `[{prefix: 192.0.2.0/24, replies: 5000}]`. Of several, the \
               longest prefix counts that says something about such a client. IPv6 clients are counted by prefixes of 56 bits.",
        unbound: &["wait-limit-netblock", "wait-limit-cookie-netblock"],
    },
    unset("limits.wait-networks[].prefix", Kind::One(Value::Prefix), "The network."),
    unset(
        "limits.wait-networks[].replies",
        whole_or(0, 10_000_000, "off"),
        "Replies held for one client whose address may be forged, in the place of `limits.wait-limit`.",
    ),
    unset(
        "limits.wait-networks[].with-cookie",
        whole_or(0, 10_000_000, "off"),
        "Replies held for one client whose address is proven, in the place of `limits.wait-limit-with-cookie`.",
    ),
    row(
        "limits.discard-timeout",
        duration_or(100, MINUTE, "off"),
        "1900ms",
        "stub resolvers have asked again by then, and the cache has the answer",
        "Age of a UDP query without a cookie after which its answer only fills the cache and is \
         not sent, so that an attacker cannot collect answers and release them together onto a \
         forged address. Failures are always sent.",
    )
    .unbound(&["discard-timeout"]),
    section("limits.signatures", "Online signing (`signing.*.denial: compact`)."),
    row(
        "limits.signatures.per-second",
        whole(1, 1_000_000),
        "5000",
        "about a tenth of one processor",
        "Signatures in a second, of all zones together; those of P-384 count eightfold. Cached \
         signatures do not count. Answers that need more get SERVFAIL; the last quarter is for \
         existing names.",
    ),
    row(
        "limits.signatures.memory",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 34 }),
        "16MiB",
        "some 70,000 signatures",
        "Memory for cached signatures.",
    )
    .restart(),
    section("cookies", "DNS cookies (RFC 7873): proof that a client's address is its own."),
    row(
        "cookies.enabled",
        Kind::One(Value::Bool),
        "true",
        "it costs nothing and spares honest clients the rate limit",
        "Whether to use them.",
    )
    .unbound(&["answer-cookie"]),
    row(
        "cookies.secret",
        Kind::One(Value::Secret { word: Some("random") }),
        "random",
        "nobody has to keep it",
        "The key they are made with: `random`, 32 hexadecimal digits, or `file:` and a path. Servers that share an address \
         share the key.",
    )
    .unbound(&["cookie-secret"]),
    unset(
        "cookies.other-secret",
        Kind::One(Value::Secret { word: None }),
        "A second key whose cookies are accepted too, while a set of servers goes from one key to the next (RFC 9018 §5).",
    ),
    unset(
        "cookies.secrets-file",
        Kind::One(Value::Path),
        "A file with one or two keys, each on a line of its own: the one that cookies are made with, and one that is accepted \
         besides. If it is there and not empty, `secret` and `other-secret` do not count. `add_cookie_secret` of `unbound-control` \
         and its relatives change it.",
    )
    .unbound(&["cookie-secret-file"]),
    row(
        "cookies.required",
        Kind::List(Value::Prefix),
        "[]",
        "clients that know no cookies are many",
        "Clients that must show a cookie of this server, or use a connection. A UDP query that brings a client cookie gets \
         BADCOOKIE and a cookie to come back with; one that brings none gets REFUSED with TC, so that the client can turn to TCP.",
    ),
    row(
        "cookies.required-on",
        Kind::List(Value::Text { word: None }),
        "[]",
        "clients that know no cookies are many",
        "Names of listeners (`listen[].name`) whose clients must show a cookie, as those of `required`.",
    )
    .unbound(&["interface-action"]),
    row(
        "cookies.not-required",
        Kind::List(Value::Prefix),
        "[]",
        "whoever comes to such a listener may have a forged address",
        "Clients that need no cookie at the listeners of `required-on`.",
    ),
    section("edns", "Sizes of messages."),
    row(
        "edns.padding",
        whole_or(16, 4096, "off"),
        "468",
        "what RFC 8467 recommends",
        "Octets that the length of a reply over an encrypted transport is a multiple of, if the client's query has the EDNS \
         option Padding.",
    )
    .unbound(&["pad-responses", "pad-responses-block-size"]),
    row(
        "edns.extended-errors",
        Kind::One(Value::Bool),
        "true",
        "who looks for the cause of a failure finds it in the reply",
        "Whether replies say what went wrong (Extended DNS Errors, RFC 8914).",
    )
    .unbound(&["ede"]),
    row(
        "edns.dnssec",
        Kind::One(Value::Bool),
        "true",
        "clients that validate by themselves ask for signatures",
        "Whether clients may ask for signatures (DO). With `false` their replies have no EDNS, which tells them that there are \
         none to be had here: where no server that is asked has any.",
    )
    .unbound(&["disable-edns-do"]),
    row(
        "edns.udp-size",
        whole(512, 4096),
        "1232",
        "fits the smallest IPv6 packet: never fragmented",
        "Octets of the largest UDP message that the server sends to clients.",
    )
    .unbound(&["max-udp-size"]),
    row(
        "edns.announced-size",
        whole_or(512, 4096, "udp-size"),
        "udp-size",
        "a path that carries replies of a size carries queries of that size",
        "Octets of the largest UDP message that clients and upstreams are told they may send; `udp-size`: as many as that.",
    )
    .unbound(&["edns-buffer-size"]),
];
