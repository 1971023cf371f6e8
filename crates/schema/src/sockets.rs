//! Sockets: what clients' are told besides their addresses, and what those to other servers are
//! bound to.

use super::{
    Apply, HOUR, Kind, RoleWord, Row, SECOND, Value, duration_or, row, section, text, unset, whole, whole_or,
};

/// What Linux takes for a size of segments.
const SEGMENTS: Kind = whole_or(88, 32_767, "auto");

pub(super) const ROWS: &[Row] = &[
    section("sockets", "Sockets that clients' queries come to; the addresses are in `listen`."),
    row(
        "sockets.receive-buffer",
        Kind::One(Value::Size { min: 4 << 10, max: 1 << 30 }),
        "2MiB",
        "a burst of some 2,000 queries; at full load they wait as long as 10 ms",
        "Octets of queries over UDP that the kernel may hold for each socket of each worker (`SO_RCVBUF`). The kernel grants no \
         more than `net.core.rmem_max` unless the server is started with `CAP_NET_ADMIN`.",
    )
    .restart()
    .unbound(&["so-rcvbuf"]),
    row(
        "sockets.queue-timeout",
        duration_or(SECOND, HOUR, "off"),
        "off",
        "queries wait for milliseconds, unless the machine stands still",
        "How long a query over UDP may have waited to be read, in whole seconds: one that waited for longer is dropped, as its \
         client has asked again or given up. So a server that was stopped or overloaded does not begin with old queries.",
    )
    .restart()
    .unbound(&["sock-queue-timeout"]),
    row(
        "sockets.send-buffer",
        Kind::One(Value::Size { min: 4 << 10, max: 1 << 30 }),
        "1MiB",
        "replies leave at once",
        "Octets of replies over UDP that the kernel may hold for each socket of each worker (`SO_SNDBUF`).",
    )
    .restart()
    .unbound(&["so-sndbuf"]),
    row(
        "sockets.dscp",
        whole(0, 63),
        "0",
        "best effort, as all other packets",
        "The DSCP of replies (RFC 2474), such as 46 (EF). Replies that `xdp` sends have none.",
    )
    .restart()
    .unbound(&["ip-dscp"]),
    row(
        "sockets.tcp-mss",
        SEGMENTS,
        "auto",
        "the kernel knows the path",
        "The largest segment over TCP, in octets (`TCP_MAXSEG`), which clients are told and held to.",
    )
    .restart()
    .unbound(&["tcp-mss"]),
    row(
        "sockets.free-bind",
        Kind::One(Value::Bool),
        "false",
        "an address with a typing error should be noticed",
        "Whether addresses may be listened on that no interface has yet (`IP_FREEBIND`).",
    )
    .restart()
    .unbound(&["ip-freebind"]),
    row(
        "sockets.transparent",
        Kind::One(Value::Bool),
        "false",
        "it needs rights, and rules of the firewall",
        "Whether addresses may be listened on that are other machines' (`IP_TRANSPARENT`), for queries that the firewall \
         diverts to this server. The server has to be started with `CAP_NET_ADMIN` or `CAP_NET_RAW`.",
    )
    .restart()
    .unbound(&["ip-transparent"]),
    section("outgoing", "Sockets to other servers: those of resolvers and those of `upstreams`."),
    row(
        "outgoing.sources",
        Kind::List(Value::Prefix),
        "[]",
        "the kernel chooses by the route",
        "Addresses that queries come from. Of several, one of the server's family is drawn for each socket and each connection, so \
         that a forged reply has to guess that, too. Of a prefix such as `2001:db8:0:1::/64`, any address is taken: the whole \
         prefix must be routed to this machine (`ip -6 route add local 2001:db8:0:1::/64 dev lo`). A family without an address here \
         is not used. `source` of an upstream server goes before it.",
    )
    .unbound(&["outgoing-interface"]),
    row(
        "outgoing.ports",
        Kind::List(Value::Text { word: None }),
        "[]",
        "the kernel draws from `net.ipv4.ip_local_port_range`, which is for this",
        "UDP ports that queries leave through, such as `[10000-20000, 30000]`: one is drawn for each socket. The fewer they are, the \
         easier replies are forged. Connections have ports of the kernel's in any case.",
    )
    .unbound(&["outgoing-port-permit", "outgoing-port-avoid"]),
    row(
        "outgoing.connections",
        whole(1, 4096),
        "64",
        "most servers of zones are asked over UDP",
        "Connections that each worker may have to servers of zones, for all resolvers together. The one that has been idle longest \
         gives way to a new one.",
    )
    .unbound(&["outgoing-num-tcp"]),
    row(
        "outgoing.dscp",
        whole(0, 63),
        "0",
        "best effort, as all other packets",
        "The DSCP of queries (RFC 2474).",
    )
    .unbound(&["ip-dscp"]),
    Row {
        path: "outgoing.options",
        kind: Kind::Items,
        default: Some("[]"),
        reason: "servers need to know nothing more",
        apply: Apply::Reload,
        role: RoleWord::Admin,
        text: "EDNS options that certain servers are sent with each query, such as `{servers: 192.0.2.0/24, text: branch-7}`. Of \
               several, the longest prefix counts. Servers that take no EDNS get none.",
        unbound: &["edns-client-string"],
    },
    unset("outgoing.options[].servers", Kind::One(Value::Prefix), "The addresses of the servers."),
    row(
        "outgoing.options[].code",
        whole(1, 65_535),
        "65001",
        "RFC 6891 §9: for whoever agrees on it",
        "The number of the option.",
    )
    .unbound(&["edns-client-string-opcode"]),
    unset("outgoing.options[].text", text(), "What is in the option, at most 128 octets."),
    row(
        "outgoing.tcp-mss",
        SEGMENTS,
        "auto",
        "the kernel knows the path",
        "The largest segment over TCP to other servers, in octets (`TCP_MAXSEG`).",
    )
    .unbound(&["outgoing-tcp-mss"]),
];
