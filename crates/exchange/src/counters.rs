//! What one worker counts about messages to other servers. Only its worker writes; anybody may read
//! and add up.

events::counters! {
    sent_udp: "Queries sent to upstreams over UDP.",
    sent_tcp: "Queries sent to upstreams over TCP.",
    replies: "Replies from upstreams that belonged to a query.",
    truncated: "Replies with TC, asked for again over TCP.",
    edns_refused: "Replies that made us ask again without EDNS.",
    mismatched: "Datagrams dropped because ID, question or form was wrong.",
    spoofs_suspected: "Fetches moved to TCP because of wrong replies.",
    ports_abandoned: "UDP ports given up because somebody flooded them; what was outstanding there was asked again over TCP.",
    shortages: "Queries that could not be sent because there was no free ID, port, descriptor or connection.",
    network_errors: "Sends or connections that the network refused.",
    links_silent: "Connections closed because nothing came on them although queries were outstanding.",
}
