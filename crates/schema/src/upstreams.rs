//! Groups of servers that queries are forwarded to.

use plan::upstreams::Pick;

use super::{
    Apply, HOUR, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, row, section, text, text_or, unset,
    whole, word,
};

values::words! {
    /// What becomes of a client's EDNS client subnet.
    ClientSubnetUse {
        /// Upstreams do not see it.
        Strip = "strip",
        /// Upstreams see it, and the cache keeps answers apart by it.
        Forward = "forward",
    }
}

values::words! {
    /// What a server must prove.
    VerifyWord {
        /// Who it is.
        Name = "true",
        /// That an authority has given it a certificate, for whatever name.
        Chain = "chain",
        /// Nothing.
        Nothing = "false",
    }
}

/// Ways to choose a server that take no number, and what they stand for.
pub const PLAIN_PICKS: [(&str, Pick); 4] = [
    ("ordered", Pick::Ordered),
    ("fastest", Pick::Fastest),
    ("balanced", Pick::Balanced),
    ("hashed", Pick::Hashed),
];
/// Those that take one, and how they are written.
pub const NUMBERED_PICKS: [(&str, &str); 3] =
    [("race", "race(2)"), ("prefer-positive", "prefer-positive(2)"), ("consensus", "consensus(2 of 3)")];

pub(super) const ROWS: &[Row] = &[
    Row {
        path: "upstreams",
        kind: Kind::Named("upstream group"),
        default: Some("{default: {servers: [system]}}"),
        reason: "the resolvers that this machine already uses",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Groups of servers that queries can be forwarded to, by name. Without groups and without a `policy`, on a machine \
               that has no resolver but this server, answers are found by `recurse`.",
        unbound: &[],
    },
    unset(
        "upstreams.*.servers",
        Kind::Items,
        "The servers: `system` (those of /etc/resolv.conf), addresses or host names, perhaps after `udp://`, `tcp://`, \
         `tls://` or `quic://`, `https://` or `h3://` URLs, or DNS stamps (`sdns://`).",
    )
    .unbound(&["forward-addr", "forward-host"]),
    unset(
        "upstreams.*.servers[].address",
        Kind::One(Value::Server),
        "One server: `9.9.9.9`, `9.9.9.9:53`, `[2620:fe::fe]:53`, `tcp://9.9.9.9`, `tls://dns.quad9.net`, \
         `tls://9.9.9.9#dns.quad9.net`, `https://dns.quad9.net/dns-query`, `quic://dns.example`, `h3://dns.example/dns-query`, a DNS stamp (`sdns://…`), `dns.quad9.net` or `system`. Without a transport, UDP is used, and TCP for answers \
         that do not fit. With `tls://` and `quic://` (port 853 if none is written), `https://` (HTTP/2, port 443) and `h3://` (HTTP/3) the server must have a certificate for the name or the \
         address written, or for the name after `#`; without one it is not asked anything. `odoh://` is oblivious DNS over HTTPS \
         (see `relay`), and a DNS stamp (`sdns://`) stands for any of these and for DNSCrypt.",
    ),
    unset(
        "upstreams.*.servers[].name",
        Kind::One(Value::Label),
        "The name of the server in policies, for queries to some servers of a group: \
         `forward(group, members a|b)`.",
    ),
    row(
        "upstreams.*.servers[].weight",
        whole(1, 1000),
        "1",
        "each gets the same share",
        "The server's share of the queries under `pick: balanced`, of the names under `pick: hashed`.",
    ),
    unset(
        "upstreams.*.servers[].source",
        Kind::One(Value::Address),
        "The address of this machine to ask from; chosen by the system if not set.",
    )
    .unbound(&["outgoing-interface"]),
    unset(
        "upstreams.*.servers[].interface",
        Kind::One(Value::Label),
        "The network interface to ask through.",
    ),
    unset(
        "upstreams.*.servers[].mark",
        whole(0, 0xffff_ffff),
        "The routing mark of packets to the server (`SO_MARK`; takes the capability CAP_NET_ADMIN).",
    ),
    unset(
        "upstreams.*.servers[].dial",
        Kind::One(Value::Address),
        "The address to connect to for a server given as a host name; `bootstrap` is not asked then. Its certificate must be \
         for the name all the same.",
    ),
    unset(
        "upstreams.*.servers[].relay",
        text(),
        "The relay that passes oblivious messages on to an `odoh://` server (RFC 9230), so that neither knows both who asks \
         and what: `https://relay.example.org/proxy`, or its DNS stamp. `dial`, `tls-name` and `pins` are for the relay then.",
    ),
    unset(
        "upstreams.*.servers[].proxy",
        Kind::One(Value::Socket { port: 1080, word: None }),
        "A SOCKS5 proxy (RFC 1928) through which the server is asked. A proxy that relays datagrams (UDP ASSOCIATE) does so \
         for UDP, DNSCrypt, `quic://` and `h3://`; through another, UDP and DNSCrypt become TCP, and QUIC cannot pass.",
    ),
    unset("upstreams.*.servers[].proxy-user", text(), "The user name for the proxy (RFC 1929)."),
    unset(
        "upstreams.*.servers[].proxy-password",
        Kind::One(Value::Password),
        "The user's password, or `file:` and a path.",
    ),
    unset(
        "upstreams.*.servers[].tls-name",
        text(),
        "The name in the server's certificate, where it is another than in `address`; the same as after `#`.",
    ),
    row(
        "upstreams.*.servers[].pins",
        Kind::List(Value::Pin),
        "[]",
        "certificates are renewed, and keys with them",
        "The keys that the server may have: `sha256/` and the Base64 of the SHA-256 of their SubjectPublicKeyInfo (RFC 7858 \
         §4.2). If there are any, only they count: neither who issued the certificate, nor for whom, nor until when.",
    ),
    row(
        "upstreams.*.servers[].roots",
        text_or("mozilla"),
        "mozilla",
        "the same everywhere, and it works in a container without any file",
        "The authorities that may vouch for the server: `mozilla` (those that Mozilla trusted when this version was built), or \
         a file of certificates (PEM), such as /etc/ssl/certs/ca-certificates.crt or your own authority's.",
    ),
    row(
        "upstreams.*.servers[].verify",
        Kind::One(Value::Word(VerifyWord::WORDS)),
        "true",
        "whoever is on the way could pretend to be the server",
        "Whether the server must prove who it is. Without, encryption keeps out those who only listen. `chain`: any valid \
         certificate of these authorities will do, whatever name it is for; for an authority of your own that certifies \
         your servers alone.",
    ),
    row(
        "upstreams.*.servers[].sni",
        Kind::One(Value::Bool),
        "true",
        "servers with several certificates need it",
        "Whether the server is told its name when a connection begins (SNI), which whoever is on the way can read. Without, it \
         must show the right certificate all the same.",
    )
    .unbound(&["tls-use-sni"]),
    row(
        "upstreams.*.servers[].early-data",
        Kind::One(Value::Bool),
        "false",
        "whoever is on the way could have the server do it twice (RFC 8446 §8)",
        "Whether queries may leave with the first packet of a resumed session (TLS 1.3 early data), which saves one round \
         trip when a connection is made.",
    ),
    row(
        "upstreams.*.servers[].connections-min",
        whole(0, 8),
        "0",
        "an idle server needs none",
        "Connections that each worker opens before anybody asks, and opens again when they end.",
    ),
    row(
        "upstreams.*.servers[].connections-max",
        whole(1, 8),
        "4",
        "each carries hundreds of queries at once",
        "Connections that each worker has to the server at most. Another is opened when one has 64 queries in flight.",
    ),
    row(
        "upstreams.*.servers[].idle",
        duration(100, HOUR),
        "10s",
        "RFC 7766 §6.2.3: servers have better things to do with them",
        "How long a connection may have nothing to do before it is closed.",
    ),
    row(
        "upstreams.*.pick",
        Kind::One(Value::Pick),
        "ordered",
        "as every system does with the servers of resolv.conf; they may know different names",
        "Which server to ask: `ordered` (the first that works), `fastest` (one query in 32 measures the others), \
         `balanced` (at random, by weight), `hashed` (the one that the name asked for belongs to, by weight, so that each \
         server's cache has names of its own; when it is down, its names spread over the others), `race(2)` (that many at once; the first usable answer counts), `prefer-positive(2)` \
         (that many at once; an answer without the records asked for waits for one that has them), or `consensus(2 of 3)` \
         (three at once; the first answer that two agree on, because they have a record in common or both say that there is \
         none; without agreement the one that most agree on).",
    ),
    row(
        "upstreams.*.negative-wait",
        duration(1, MINUTE),
        "100ms",
        "another server is seldom that much slower",
        "How long, under `pick: prefer-positive`, an answer without the records asked for waits for one that has them.",
    ),
    row(
        "upstreams.*.timeout",
        duration(100, MINUTE),
        "5s",
        "as long as a client waits for a reply",
        "How long to try altogether before the client gets SERVFAIL.",
    ),
    section(
        "upstreams.*.patience",
        "How long a server that stays silent is waited for before the question is sent again, to another server or to the same \
         one. Each time doubles the wait.",
    ),
    row(
        "upstreams.*.patience.unknown",
        duration(1, MINUTE),
        "300ms",
        "forwarders are near",
        "The first wait for a server that was never heard from. One that is known has its usual time and four times its usual \
         variation.",
    )
    .unbound(&["unknown-server-time-limit"]),
    row(
        "upstreams.*.patience.max",
        duration(1, MINUTE),
        "800ms",
        "a lost packet never costs more than this",
        "The longest wait.",
    ),
    row(
        "upstreams.*.attempts",
        whole(1, 8),
        "3",
        "clients learn of a failure while they still wait",
        "How often a question is sent, when nobody answers, before it fails because no server of the group works; at most until \
         `timeout`.",
    )
    .unbound(&["outbound-msg-retry"]),
    row(
        "upstreams.*.hedge",
        Kind::One(Value::Hedge { min: 1, max: 10 * SECOND }),
        "auto",
        "a lost packet then costs milliseconds",
        "When to ask a second server although the first has not failed: `auto` (when it takes longer than it usually \
         does), a duration, or `off`. At most one query in ten is asked twice.",
    ),
    row(
        "upstreams.*.fallback-on",
        Kind::List(Value::RcodeTerm),
        "[unusable]",
        "another server may know better",
        "Response codes after which the next server is asked; `unusable` is every one that is not an answer \
         (`noerror`, `nxdomain`, `yxdomain`).",
    ),
    row(
        "upstreams.*.bootstrap",
        Kind::List(Value::Socket { port: 53, word: Some("system") }),
        "[system]",
        "whoever the machine itself would ask",
        "Who is asked for the addresses of servers given as host names.",
    ),
    row(
        "upstreams.*.client-subnet",
        word(ClientSubnetUse::WORDS),
        "strip",
        "RFC 7871 §11.1: where the client lives is its own affair",
        "Whether to `strip` or `forward` the EDNS client subnet of a query.",
    )
    .unbound(&["send-client-subnet"]),
    row(
        "upstreams.*.trust-ad",
        Kind::One(Value::Bool),
        "false",
        "RFC 6840 §5.8: anybody on the way could have set it",
        "Whether to believe and pass on the AD bit (\"this was validated\"). Only for servers that validate and are \
         reached over a path that nobody can forge on.",
    ),
    row(
        "upstreams.*.case-randomisation",
        Kind::One(Value::Bool),
        "false",
        "some servers do not give the letters back as they came",
        "Whether to mix upper and lower case in names at random and compare on return, which makes answers harder to \
         forge.",
    )
    .unbound(&["use-caps-for-id"]),
    row(
        "upstreams.*.exact-case",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a server that changes letter case is found out, and asked in another way",
        "Names that `case-randomisation` leaves as they are, with those below them: where no server that is asked for them keeps \
         the letters.",
    )
    .unbound(&["caps-exempt", "caps-whitelist"]),
];
