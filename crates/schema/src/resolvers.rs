//! Resolvers: how answers are found by asking the servers of zones.
//!
//! Long because it has a row for each setting of resolvers.

use super::{
    Apply, DAY, HOUR, Kind, MINUTE, RoleWord, Row, SECOND, Value, duration, row, section, unset, whole,
    whole_or, word,
};

values::words! {
    /// How much of a name the servers above its zone see.
    MinimisationWord {
        /// All of it.
        Off = "off",
        /// No more than they need; servers that cannot handle that see all of it.
        Relaxed = "relaxed",
        /// No more than they need, even if a name is lost by it.
        Strict = "strict",
    }
}

values::words! {
    /// Which encryption is used with servers that have it.
    OpportunisticWord {
        /// None.
        Off = "off",
        /// TLS.
        Tls = "tls",
        /// QUIC.
        Quic = "quic",
        /// Both.
        Both = "both",
    }
}

values::words! {
    /// Over which family servers are asked rather than over the other one.
    FamilyWord {
        /// Over the one that is quicker.
        Any = "any",
        /// IPv4.
        V4 = "ipv4",
        /// IPv6.
        V6 = "ipv6",
    }
}

values::words! {
    /// What is made of signatures.
    ValidationWord {
        /// Nothing.
        Off = "off",
        /// Nothing; clients get them.
        Relay = "relay",
        /// What is bogus is given to clients all the same.
        Permissive = "permissive",
        /// What is bogus is given to nobody who does not ask for it with CD.
        On = "on",
    }
}

// A table.
pub(super) const ROWS: &[Row] = &[
    Row {
        path: "resolvers",
        kind: Kind::Named("resolver"),
        default: Some("{default: {}}"),
        reason: "one is enough for nearly everybody",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Resolvers, by name: each finds answers by asking the servers of zones, from the root down. A policy step \
               `recurse(name)` uses one; `recurse` alone means `default`, which is there without being written.",
        unbound: &[],
    },
    row(
        "resolvers.*.cache-size",
        Kind::One(Value::Size { min: 1 << 20, max: 1 << 42 }),
        "64MiB",
        "room for the delegations and name servers of some 100,000 zones",
        "Memory for what is learned on the way to answers: RRsets, negative answers and delegations. Answers for clients are \
         in `cache`.",
    )
    .unbound(&["rrset-cache-size"]),
    unset(
        "resolvers.*.root-hints",
        Kind::One(Value::Path),
        "A file with the root's name servers and their addresses, in the master format, such as `named.root` of IANA. \
         Without it, those that the program comes with are used.",
    )
    .unbound(&["root-hints"]),
    row(
        "resolvers.*.priming",
        Kind::One(Value::Bool),
        "true",
        "RFC 9609 §3: hints grow old",
        "Whether the root's servers are asked which they are.",
    ),
    Row {
        path: "resolvers.*.zones",
        kind: Kind::Named("zone"),
        default: Some("{}"),
        reason: "all public zones are found from the root down",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Zones that are not found from the root down, with what is below them, by name: `corp.example: {stub: 10.1.0.53}` \
               has servers of its own, `corp.example: {forward: office}` is forwarded to an upstream group. A name goes by the zone closest to it; `.` is all others. What is found is validated like any other answer.",
        unbound: &["stub-zone"],
    },
    row(
        "resolvers.*.zones.*.stub",
        Kind::List(Value::Text { word: None }),
        "[]",
        "nobody else knows them",
        "Authoritative servers of the zone, which are asked in place of those that its parent names: addresses or host names, \
         each with a port if it is not 53: `10.1.0.53`, `10.1.0.53:5353`, `ns1.example.net`. Their addresses may be private ones. \
         Zones below it are found by their delegations.",
    )
    .unbound(&["stub-addr", "stub-host"]),
    unset(
        "resolvers.*.zones.*.forward",
        Kind::One(Value::Text { word: None }),
        "The upstream group that finds answers for names of the zone, in place of the zone's servers: the zone is forwarded, over \
         any transport. The answers are validated here, so the group's servers must pass signatures on, and be able to find the \
         DS and DNSKEY records of all zones on the way.",
    )
    .unbound(&["forward-zone"]),
    row(
        "resolvers.*.zones.*.own",
        Kind::One(Value::Bool),
        "false",
        "a zone is another server's unless it is in `zones`",
        "Whether the zone is one of `zones`, and read in memory: nobody is asked for it. Whoever may use the resolver gets what is in \
         it, also of a zone with `allow-query`.",
    )
    .unbound(&["for-upstream"]),
    row(
        "resolvers.*.zones.*.prime",
        Kind::One(Value::Bool),
        "false",
        "the servers that are written are meant",
        "Whether the servers of `stub` are only asked which servers the zone has, and those are asked then.",
    )
    .unbound(&["stub-prime"]),
    row(
        "resolvers.*.zones.*.tcp-only",
        Kind::One(Value::Bool),
        "false",
        "UDP takes one round trip less",
        "Whether the servers of `stub` are asked over TCP alone.",
    )
    .unbound(&["stub-tcp-upstream"]),
    row(
        "resolvers.*.zones.*.first",
        Kind::One(Value::Bool),
        "false",
        "names of a zone of one's own are nobody else's business",
        "Whether names are found as if this zone were not written here, if its servers or its group fail, or if the zone with `own` is not \
         loaded or has expired. A zone with `forward` may have `stub`, too, then: its servers are asked if the group fails.",
    )
    .unbound(&["stub-first", "forward-first", "fallback-enabled"]),
    row(
        "resolvers.*.zones.*.keep",
        Kind::One(Value::Bool),
        "true",
        "the same is asked often",
        "Whether answers of these servers, of this group, or from the zone with `own`, are kept in the resolver's tables. With `false` they \
         are asked again for each query that `cache` does not answer.",
    )
    .unbound(&["stub-no-cache", "forward-no-cache"]),
    row(
        "resolvers.*.own-zones",
        Kind::One(Value::Bool),
        "true",
        "asking itself over the network would be a detour, or not work at all",
        "Whether names of the zones that this server answers everybody from (`zones` without `allow-query`) are read in memory, in \
         place of asking the zones' servers. What is found is validated like any other answer, and not kept. While such a zone is not \
         loaded, its servers are asked. `zones.*.own` names other zones.",
    ),
    row(
        "resolvers.*.local-root",
        Kind::One(Value::Bool),
        "false",
        "it takes a transfer of some 2 MB every day or two",
        "Whether the resolver reads the root zone in memory (RFC 8806), in place of asking the root's servers. The zone is \
         transferred, and taken if its digest (ZONEMD) is right and signed by a trust anchor. While there is none, the root's \
         servers are asked. Clients are not answered from it with authority.",
    )
    .unbound(&["auth-zone"]),
    row(
        "resolvers.*.local-root-primaries",
        Kind::List(Value::Text { word: None }),
        "[170.247.170.2, 192.33.4.12, 199.7.91.13, 192.5.5.241, 192.112.36.4, 193.0.14.129, 192.0.32.132, 192.0.47.132, \
         \"2801:1b8:10::b\", \"2001:500:2::c\", \"2001:500:2d::d\", \"2001:500:2f::f\", \"2001:500:12::d0d\", \"2001:7fd::1\", \
         \"2620:0:2d0:202::132\", \"2620:0:2830:202::132\"]",
        "those that RFC 8806 appendix A names: b, c, d, f, g and k of the root, and ICANN's servers for transfers",
        "Servers that the root zone is transferred from, in the order of queries, written like `zones[].primaries`.",
    ),
    row(
        "resolvers.*.local-root-urls",
        Kind::List(Value::Text { word: None }),
        "[]",
        "transfers have what changed, and nothing else",
        "Where the root zone is as a master file on web servers, written like `zones[].urls`; they are asked when none of \
         `local-root-primaries` has answered.",
    ),
    row(
        "resolvers.*.port",
        whole(1, 65_535),
        "53",
        "the port of DNS",
        "The port of the servers of zones; another one is for networks of their own.",
    ),
    row("resolvers.*.ipv4", Kind::One(Value::Bool), "true", "most servers have IPv4", "Whether servers are asked over IPv4.")
        .unbound(&["do-ip4"]),
    row("resolvers.*.ipv6", Kind::One(Value::Bool), "true", "where there is no IPv6, that is found out", "Whether servers are asked over IPv6.")
        .unbound(&["do-ip6"]),
    row(
        "resolvers.*.prefer",
        word(FamilyWord::WORDS),
        "any",
        "the server that answers soonest is asked, over whichever family",
        "The family over which a server is asked rather than over the other one, however slow it is: `ipv4` or `ipv6`. The other one          is asked where there is no such address, and when those have been asked in vain.",
    )
    .unbound(&["prefer-ip4", "prefer-ip6"]),
    row(
        "resolvers.*.tcp-only",
        Kind::One(Value::Bool),
        "false",
        "connections cost both sides more",
        "Whether servers of zones are asked over TCP alone, where nothing else passes. Groups that names are forwarded to have          transports of their own.",
    )
    .unbound(&["tcp-upstream"]),
    row(
        "resolvers.*.cookies",
        Kind::One(Value::Bool),
        "true",
        "who cannot see a query cannot forge the reply of a server that has cookies",
        "Whether queries to servers of zones have cookies (RFC 7873). Without them, more has to be guessed right by chance alone: \
         leave them out only if something on the way drops queries with options that it does not know.",
    ),
    row(
        "resolvers.*.opportunistic-encryption",
        word(OpportunisticWord::WORDS),
        "off",
        "a server that is asked for encryption and has none costs packets, and one that has it is asked over connections",
        "Whether servers of zones are asked over TLS, QUIC or `both`, if they have that (RFC 9539). Whether they have it is found out beside \
         the queries in plain text, once a day for each address at most; a server that has it is asked so for three days, and in \
         plain text again if it does not answer. Nobody proves who he is: it keeps those out who only listen.",
    ),
    row(
        "resolvers.*.encrypted-port",
        whole(1, 65_535),
        "853",
        "the port of DNS over TLS and over QUIC",
        "The port of servers of zones for `opportunistic-encryption`; another one is for networks of their own.",
    ),
    section("resolvers.*.client-subnet", "Which servers hear where clients are (EDNS client subnet, RFC 7871)."),
    row(
        "resolvers.*.client-subnet.zones",
        Kind::List(Value::Text { word: None }),
        "[]",
        "RFC 7871 §11.1: where the client lives is its own affair",
        "Zones whose servers are told of the subnet that the policy chose (`ecs`), with those of the zones below them. For names in \
         them, each subnet is asked for apart unless the server's answer is for a larger network.",
    )
    .unbound(&["client-subnet-zone"]),
    row(
        "resolvers.*.client-subnet.servers",
        Kind::List(Value::Prefix),
        "[]",
        "RFC 7871 §11.1: where the client lives is its own affair",
        "Networks whose servers are told, of whatever zone. Of a forward zone's group, all servers must be in them; a group with \
         `client-subnet: forward` is told in any case.",
    )
    .unbound(&["send-client-subnet"]),
    unset(
        "resolvers.*.nat64",
        Kind::One(Value::Prefix),
        "The prefix of a translator (NAT64) through which this machine reaches IPv4, which it does not have itself, such as \
         `64:ff9b::/96`: servers with IPv4 addresses are asked through it and no more over IPv4, whatever `ipv4` says. It has \
         32, 40, 48, 56, 64 or 96 bits (RFC 6052 §2.2). `never-ask`, `ask-private` and `ask-loopback` look at the IPv4 \
         addresses behind it.",
    )
    .unbound(&["do-nat64", "nat64-prefix"]),
    row(
        "resolvers.*.ask-private",
        Kind::One(Value::Bool),
        "false",
        "a stranger's zone could have the server ask machines of its own network",
        "Whether servers with private or link-local addresses are asked. Set it where zones of your own network have such \
         servers.",
    ),
    row(
        "resolvers.*.ask-loopback",
        Kind::One(Value::Bool),
        "false",
        "a stranger's zone could have the server ask itself",
        "Whether servers with addresses of the machine itself (127.0.0.0/8, ::1) are asked.",
    )
    .unbound(&["do-not-query-localhost"]),
    row(
        "resolvers.*.never-ask",
        Kind::List(Value::Prefix),
        "[]",
        "addresses that nobody can have are never asked, nor those that this server listens on",
        "Networks whose servers are not asked.",
    )
    .unbound(&["do-not-query-address"]),
    row(
        "resolvers.*.private-addresses",
        Kind::List(Value::Prefix),
        "[]",
        "`ask-private` refuses those of private networks already",
        "Addresses that name servers must not have, whatever their zones and the zones above say: such servers are not asked. \
         The action `rebind` takes addresses out of what clients are told.",
    )
    .unbound(&["private-address"]),
    row(
        "resolvers.*.private-domains",
        Kind::List(Value::Text { word: None }),
        "[]",
        "names of your own network",
        "Domains whose names may have `private-addresses`.",
    )
    .unbound(&["private-domain"]),
    row(
        "resolvers.*.qname-minimisation",
        word(MinimisationWord::WORDS),
        "relaxed",
        "RFC 9156: servers of the root and of top-level domains need not see whole names; some servers cannot handle it",
        "How much of a name is shown to the servers above its zone: all of it (`off`), no more than they need (`strict`), or the \
         same but for servers that answer such a query with an error (`relaxed`).",
    )
    .unbound(&["qname-minimisation", "qname-minimisation-strict"]),
    row(
        "resolvers.*.qname-minimisation-steps",
        whole(1, 64),
        "10",
        "RFC 9156 §2.3",
        "Queries for parts of one name, at most; a name with more labels is shown in larger parts.",
    ),
    row(
        "resolvers.*.qname-minimisation-type",
        Kind::One(Value::Bool),
        "false",
        "a query more for each name of which something else than an address is wanted",
        "Whether the servers of a zone are asked for the address of the full name first, and then for what is wanted: those of a \
         zone cut that nobody knew of do not see the type. It needs `qname-minimisation`.",
    ),
    row(
        "resolvers.*.own-ns-ttl",
        Kind::One(Value::Bool),
        "false",
        "parents are asked less often",
        "Whether a zone's servers are found anew when its own NS records end, as they come along with its answers, or only when \
         those of its parent do.",
    ),
    row(
        "resolvers.*.accept-referrals",
        Kind::One(Value::Bool),
        "false",
        "RFC 2308 §2.2: who refers to others has no answer",
        "Whether a forwarder that refers to other servers says that there is no data. If not, the next one is asked.",
    ),
    row(
        "resolvers.*.check-dnames",
        Kind::One(Value::Bool),
        "true",
        "a forged one redirects all names below it",
        "Whether a DNAME without a valid signature is asked for again over TCP, unless the reply with it was hard to forge.",
    ),
    row(
        "resolvers.*.min-ns-labels",
        whole(0, 127),
        "2",
        "who serves a top-level domain says nothing about who is behind a name in it",
        "Labels that a zone has at least whose name servers count for rules and conditions on name servers: 1 has those of \
         top-level domains count, 0 those of the root, too.",
    ),
    row(
        "resolvers.*.exact-case",
        Kind::List(Value::Text { word: None }),
        "[]",
        "a server that changes letter case is found out, and asked in another way",
        "Zones whose servers are asked without random letter case, with those below them: some do not answer such a question at \
         all.",
    )
    .unbound(&["caps-exempt", "caps-whitelist"]),
    section(
        "resolvers.*.zone-rate",
        "Queries that are sent to the servers of one zone in a second, of all clients and workers together. A zone that is asked for \
         ever other names (a water torture attack) is asked no more than this: its names that are not known fail then, those of other \
         zones do not. Forward zones have no limit.",
    ),
    row(
        "resolvers.*.zone-rate.per-second",
        whole_or(1, 1_000_000, "off"),
        "off",
        "top-level domains are asked often, and by right",
        "Queries a second to the servers of each zone. `gannet stats` counts those that were not sent.",
    )
    .unbound(&["ratelimit"]),
    Row {
        path: "resolvers.*.zone-rate.zones",
        kind: Kind::Named("zone"),
        default: Some("{}"),
        reason: "one limit is enough for nearly everybody",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "Zones with limits of their own, by name: `com: {per-second: 5000}`, `example.org: {below: 50}`.",
        unbound: &[],
    },
    unset(
        "resolvers.*.zone-rate.zones.*.per-second",
        whole_or(1, 1_000_000, "off"),
        "Queries a second to the servers of this zone; `off`: any number. Without it, the zone has the limit of the others.",
    )
    .unbound(&["ratelimit-for-domain"]),
    unset(
        "resolvers.*.zone-rate.zones.*.below",
        whole_or(1, 1_000_000, "off"),
        "Queries a second to the servers of each zone below this one; `off`: any number. Of several, the closest counts.",
    )
    .unbound(&["ratelimit-below-domain"]),
    row(
        "resolvers.*.zone-rate.pass",
        whole(0, 1000),
        "10",
        "honest names among many others are found sooner or later",
        "Of how many queries over the limit one is sent all the same. 0: none.",
    )
    .unbound(&["ratelimit-factor"]),
    row(
        "resolvers.*.zone-rate.backoff",
        Kind::One(Value::Bool),
        "false",
        "a zone is asked as often as it may be, however often it is wanted",
        "Whether queries that are not sent count, too: a zone is not asked again until it is wanted less, for two seconds.",
    )
    .unbound(&["ratelimit-backoff"]),
    row(
        "resolvers.*.ignore-cd",
        Kind::One(Value::Bool),
        "false",
        "RFC 4035 §3.2.2: who sets CD validates itself",
        "Whether clients that set CD get validated answers all the same, and SERVFAIL in place of one that is bogus.",
    )
    .unbound(&["ignore-cd-flag"]),
    row(
        "resolvers.*.bogus-ttl",
        duration(SECOND, DAY),
        "60s",
        "zones mend such mistakes soon, and attackers go on",
        "For how long an answer that is bogus is not asked for again, at most: five seconds at first, and twice as long each time.",
    )
    .unbound(&["val-bogus-ttl"]),
    section(
        "resolvers.*.signature-skew",
        "How far clocks of signers may be wrong: signatures count a tenth of their time before it begins and after it ends, within \
         these bounds.",
    ),
    row(
        "resolvers.*.signature-skew.min",
        duration(0, 365 * DAY),
        "0s",
        "RFC 4034 §3.1.5: the time is that of the signature",
        "At least so long.",
    )
    .unbound(&["val-sig-skew-min"]),
    row(
        "resolvers.*.signature-skew.max",
        duration(0, 365 * DAY),
        "0s",
        "RFC 4034 §3.1.5: the time is that of the signature",
        "At most so long.",
    )
    .unbound(&["val-sig-skew-max"]),
    row(
        "resolvers.*.validation",
        word(ValidationWord::WORDS),
        "on",
        "nobody can forge answers of signed zones then",
        "Whether signatures are checked (DNSSEC, RFC 4035). With `on`, a client gets SERVFAIL in place of an answer that is \
         bogus, with an Extended DNS Error that says why, unless it sets CD. With `permissive` it gets the answer, without AD. \
         With `relay` nothing is checked, and clients that validate by themselves get the signatures. With `off` no signatures are asked for.",
    ),
    row(
        "resolvers.*.trust-anchors",
        Kind::List(Value::Path),
        "[]",
        "the root's keys, which the program comes with and follows, are enough",
        "Files with DS or DNSKEY records of the zones that are trusted, in the master format, or in statements of BIND such as \
         `trust-anchors { ... };`; a state file of Unbound (RFC 5011) is one as well. `*` and `?` in a name stand for anything. The \
         anchors stay as they are unless `trust-anchor-state` is set, too. Without any, the keys of the root that the program comes \
         with are trusted, and followed.",
    )
    .unbound(&["trust-anchor-file", "trusted-keys-file"]),
    unset(
        "resolvers.*.trust-anchor-state",
        Kind::One(Value::Path),
        "The file in which the state of the trust anchors is kept, as they follow the keys of their zones (RFC 5011), in the form \
         of Unbound; the server writes it. Zones that it does not have begin with the anchors of `trust-anchors`. Without either, it is \
         `anchors/NAME.keys` in the state directory, NAME being the resolver's.",
    )
    .unbound(&["auto-trust-anchor-file"]),
    row(
        "resolvers.*.add-hold-down",
        duration(SECOND, 3650 * DAY),
        "30d",
        "RFC 5011 §2.4.1: so long the owner of a stolen key may notice",
        "How long a new key of an anchored zone must be seen before it is trusted.",
    )
    .unbound(&["add-holddown"]),
    row(
        "resolvers.*.remove-hold-down",
        duration(SECOND, 3650 * DAY),
        "30d",
        "RFC 5011 §2.4.2",
        "How long a revoked key is remembered.",
    )
    .unbound(&["del-holddown"]),
    row(
        "resolvers.*.keep-missing",
        Kind::One(Value::Duration { min: SECOND, max: 3650 * DAY, word: Some("forever") }),
        "366d",
        "a key that was never revoked may come back",
        "How long a trusted key of an anchored zone is kept that is no longer published.",
    )
    .unbound(&["keep-missing"]),
    row(
        "resolvers.*.trust-anchor-records",
        Kind::List(Value::Text { word: None }),
        "[]",
        "keys change, and a file can be replaced without touching the configuration",
        "DS or DNSKEY records of zones that are trusted, in the master format, beside those of `trust-anchors`. If there are \
         any, the root's keys that the program comes with are not trusted.",
    )
    .unbound(&["trust-anchor"]),
    unset(
        "resolvers.*.signature-time",
        Kind::One(Value::Text { word: None }),
        "The time at which signatures have to be valid in place of the present one, for tests: `20260131120000` (UTC), or \
         seconds since 1970; with `any`, no signature is too old or too new. The checker warns, because expired signatures count then.",
    )
    .unbound(&["val-override-date"]),
    row(
        "resolvers.*.trust-anchor-signaling",
        Kind::One(Value::Bool),
        "true",
        "the operators of the root learn whether a new key is trusted before they use it",
        "Whether the servers of anchored zones are told once a day which keys are trusted, by a query for a name such as \
         `_ta-4f66.` (RFC 8145).",
    )
    .unbound(&["trust-anchor-signaling"]),
    row(
        "resolvers.*.root-key-sentinel",
        Kind::One(Value::Bool),
        "true",
        "clients can find out whether their resolver trusts a new key of the root",
        "Whether secure answers for names that begin with `root-key-sentinel-is-ta-` or `root-key-sentinel-not-ta-` and a key \
         tag become SERVFAIL when the root's key is not, or is, trusted (RFC 8509).",
    )
    .unbound(&["root-key-sentinel"]),
    row(
        "resolvers.*.negative-trust-anchors",
        Kind::List(Value::Text { word: None }),
        "[]",
        "each is a hole in the chain of trust",
        "Zones whose signatures do not count, with all that is below them: their operators have made a mistake, or they are \
         signed for another world (RFC 7646). The server tests each zone once a day, and the log says when it validates again. \
         `gannet resolver negative` adds some for a time.",
    )
    .unbound(&["domain-insecure"]),
    row(
        "resolvers.*.aggressive-nsec",
        Kind::One(Value::Bool),
        "true",
        "RFC 8198: made-up names below a signed zone cost its servers nothing, and are denied at once",
        "Whether what a zone proved for one name answers questions about others: that names between two others do not exist, that a \
         wildcard stands in for them, that a name has no records of a type, that a DNAME makes a whole tree an alias. Proofs are used \
         that are validated, and not those that opt out or were made for one question.",
    )
    .unbound(&["aggressive-nsec"]),
    row(
        "resolvers.*.accept-sha1",
        Kind::One(Value::Bool),
        "false",
        "RFC 8624: signatures with SHA-1 can be forged",
        "Whether the algorithms RSASHA1 and RSASHA1-NSEC3-SHA1 count. Zones that are signed with nothing else are insecure \
         otherwise.",
    ),
    row(
        "resolvers.*.require-all-algorithms",
        Kind::One(Value::Bool),
        "false",
        "RFC 6840 §5.11: one good signature suffices, and zones that change their algorithm have no others at times",
        "Whether each algorithm of a zone's DS records, as far as it counts, has to sign everything in the zone. DS records with \
         weaker digests than the strongest do not count then.",
    )
    .unbound(&["harden-algo-downgrade"]),
    row(
        "resolvers.*.require-anchor-keys",
        Kind::One(Value::Bool),
        "true",
        "RFC 4035 §4.3: the zone is bogus; else whoever takes the DNSKEY records away has everything in it believed",
        "Whether a zone with a trust anchor is bogus while its DNSKEY RRset is not to be had, or no trust anchor proves it. If \
         not, it is insecure then, for a minute at a time: behind a forwarder that leaves signatures out.",
    )
    .unbound(&["harden-dnssec-stripped"]),
    row(
        "resolvers.*.believed-algorithms",
        Kind::List(Value::Whole { min: 1, max: 31, word: None }),
        "[]",
        "anybody can forge such answers",
        "Numbers of DNSSEC algorithms whose signatures count without being checked, for tests with zones that were signed long \
         ago, such as 3 (DSA). The checker warns.",
    )
    .unbound(&["fake-dsa", "fake-sha1"]),
    row(
        "resolvers.*.nsec3-iterations",
        whole(0, 2500),
        "50",
        "RFC 9276 §3.2: more only costs",
        "Iterations of NSEC3 above which a proof is not looked at; the answer is insecure then.",
    )
    .unbound(&["val-nsec3-keysize-iterations"]),
    row(
        "resolvers.*.udp-size",
        whole(512, 4096),
        "1232",
        "RFC 9715 §3: what passes nearly everywhere without fragments",
        "Octets of the largest UDP message that servers may send; what is larger comes over TCP.",
    )
    .unbound(&["edns-buffer-size"]),
    row(
        "resolvers.*.require-authority",
        Kind::One(Value::Bool),
        "true",
        "RFC 1035 §4.1.1: a server of the zone sets AA",
        "Whether a server whose answer lacks the flag AA counts as one that does not serve the zone. With `false`, the answer of one \
         that offers recursion (RA) besides counts only if no other server of the zone has a better one.",
    ),
    row(
        "resolvers.*.service-addresses",
        Kind::One(Value::Bool),
        "true",
        "RFC 9460 §4.2: it spares clients a round trip",
        "Whether SVCB and HTTPS records come with what is known of their targets: the records of those that they are an alias for, and \
         addresses. Nobody is asked for it.",
    ),
    row(
        "resolvers.*.max-ttl",
        duration(SECOND, 30 * DAY),
        "1d",
        "a mistake of a zone's owner ends within a day",
        "RRsets and delegations are kept at most this long.",
    )
    .unbound(&["cache-max-ttl"]),
    row(
        "resolvers.*.max-negative-ttl",
        duration(SECOND, 7 * DAY),
        "1h",
        "RFC 2308 §5 suggests one to three hours",
        "Negative answers are kept at most this long.",
    )
    .unbound(&["cache-max-negative-ttl"]),
    row(
        "resolvers.*.failure-ttl",
        duration(SECOND, 5 * MINUTE),
        "30s",
        "RFC 9520 §3.2 asks for at least one second and at most five minutes",
        "How long a question that had no answer is not asked again at most: one second at first, twice as long with each further \
         failure in a row. While nothing is heard of the servers of a zone, one question is asked every two seconds all the same, \
         and their first answer ends it for all. An answer that is bogus is not asked for again for 5 seconds up to a minute.",
    ),
    row(
        "resolvers.*.error-reports",
        Kind::One(Value::Bool),
        "false",
        "the agent of a zone learns which of its names the clients of this server ask for",
        "Whether a failure is reported to the agent that the zone's servers name in their replies (RFC 9567): by a query for \
         `_er.1.www.example.org.7._er.agent.example`, say, of type TXT. Once an hour for each failure, some five a second for each worker, \
         and with the queries that the client's question has left.",
    )
    .unbound(&["dns-error-reporting"]),
    row(
        "resolvers.*.name-servers",
        whole(2, 64),
        "13",
        "as many as the root has",
        "Name servers of a zone that are used; of a zone with more, the others are not asked.",
    ),
    row(
        "resolvers.*.lame-time",
        duration(SECOND, DAY),
        "15m",
        "a zone that was just set up is not missed for long",
        "How long a server that does not serve a zone is asked for it only if no other one answers.",
    )
    .unbound(&["infra-lame-ttl"]),
    section("resolvers.*.patience", "How long a server has before another one is asked beside it."),
    row(
        "resolvers.*.patience.unknown",
        duration(1, MINUTE),
        "150ms",
        "most servers on other continents answer within that",
        "A server that was not asked before, at most: where the first replies of others came sooner, it has their usual time and \
         four times its usual variation.",
    )
    .unbound(&["unknown-server-time-limit"]),
    row(
        "resolvers.*.patience.min",
        duration(1, MINUTE),
        "30ms",
        "the next one would hardly be quicker",
        "Any server, at least. One that is known has its usual time and four times its usual variation.",
    ),
    row(
        "resolvers.*.patience.max",
        duration(1, MINUTE),
        "2s",
        "clients ask again after that",
        "Any server, at most.",
    ),
    row(
        "resolvers.*.attempts",
        whole(1, 16),
        "4",
        "one lost packet of fifty is lost four times in a row once in six million",
        "How often one address is asked one question.",
    )
    .unbound(&["outbound-msg-retry"]),
    section(
        "resolvers.*.limits",
        "What one question of a client may cost with all that it causes, so that a hostile zone cannot make many packets out of \
         one. A question that reaches a limit gets SERVFAIL, and an Extended DNS Error that names the limit.",
    ),
    row(
        "resolvers.*.limits.queries",
        whole(4, 255),
        "64",
        "from an empty cache a name takes some twelve",
        "Queries sent.",
    )
    .unbound(&["max-global-quota"]),
    row(
        "resolvers.*.limits.queries-per-zone",
        whole(1, 255),
        "16",
        "each of a zone's servers once, and some of them again",
        "Queries sent to the servers of one zone for one question.",
    )
    .unbound(&["max-sent-count"]),
    row(
        "resolvers.*.limits.glueless",
        whole(0, 255),
        "8",
        "NXNSAttack (CVE-2020-12662) lives on them",
        "Name servers without glue whose addresses are looked for.",
    )
    .unbound(&["target-fetch-policy"]),
    row(
        "resolvers.*.limits.glueless-at-once",
        whole(1, 255),
        "4",
        "two would do for nearly all zones",
        "The same, at once.",
    ),
    row(
        "resolvers.*.limits.depth",
        whole(1, 16),
        "4",
        "servers in zones whose servers are in other zones",
        "Questions for addresses of name servers, one within the other.",
    ),
    row(
        "resolvers.*.limits.aliases",
        whole(1, 64),
        "11",
        "longer chains are mistakes or attacks",
        "CNAME and DNAME records that are followed.",
    )
    .unbound(&["max-query-restarts"]),
    row(
        "resolvers.*.limits.signatures",
        whole(8, 10_000),
        "48",
        "from an empty cache a name takes some eight",
        "Signatures checked.",
    ),
    row(
        "resolvers.*.limits.failing-signatures",
        whole(1, 10_000),
        "16",
        "KeyTrap (CVE-2023-50387) lives on them",
        "Signatures checked that are wrong.",
    ),
    row(
        "resolvers.*.limits.hashes",
        whole(8, 10_000),
        "64",
        "one proof takes eight for each of its searches (CVE-2023-50868)",
        "Names hashed for proofs by NSEC3.",
    ),
    row(
        "resolvers.*.limits.reply-size",
        Kind::One(Value::Size { min: 1 << 16, max: 1 << 28 }),
        "256KiB",
        "four of the largest replies, each of which takes milliseconds to read; an honest name takes some 16 KiB",
        "Octets of all replies that are read.",
    ),
    row(
        "resolvers.*.limits.time",
        duration(SECOND, HOUR),
        "10s",
        "clients have given up long before",
        "Time after which nothing more is sent.",
    ),
];
