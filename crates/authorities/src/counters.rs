//! What one worker counts about queries to authoritative servers. Only its worker writes; anybody
//! may read and add up.

events::counters! {
    sent_udp: "Queries sent to authoritative servers over UDP.",
    sent_tcp: "Queries sent to authoritative servers over TCP.",
    sent_encrypted: "Queries sent to authoritative servers over TLS or QUIC.",
    encryption_probes: "Connections to find out whether an authoritative server has TLS or QUIC.",
    replies: "Replies from authoritative servers that belonged to a query.",
    truncated: "Replies with TC, asked for again over TCP.",
    edns_refused: "Replies that made us ask again without EDNS.",
    cookies_refused: "Replies with BADCOOKIE, asked for again with the new cookie.",
    cookies_missing: "Replies without the cookie that their server is known to send, asked for again over TCP.",
    mismatched: "Datagrams and messages dropped because source, ID, question, cookie or form was wrong.",
    spoofs_suspected: "Queries moved to TCP because of wrong replies.",
    ports_abandoned: "UDP ports given up because somebody flooded them.",
    timeouts: "Queries that no reply came to in time.",
    shortages: "Queries that could not be sent because there was no free ID, port, descriptor, route or connection.",
    network_errors: "Queries that the network refused.",
    links_evicted: "Connections closed to make room for others.",
}
