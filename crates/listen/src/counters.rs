//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What one worker's sockets saw. Only its worker writes; anybody may read and add up.

engine::counters! {
    udp_batches: "Calls that received datagrams.",
    udp_datagrams: "Datagrams received.",
    udp_replies: "Datagrams sent.",
    udp_grouped: "Messages sent that held several datagrams.",
    udp_unusable: "Datagrams dropped unread: too long, or from port 0.",
    udp_unsent: "Replies the kernel did not take.",
    udp_lost: "Datagrams the kernel dropped because they were not read in time.",
    udp_errors: "Calls to receive datagrams that failed.",
    proxy_malformed: "Datagrams and connections of trusted proxies without a readable PROXY header.",
    tcp_accepted: "Connections accepted.",
    tcp_accept_errors: "Failures to accept a connection (such as no free descriptor).",
    tcp_refused_full: "Connections closed at once because all places were taken.",
    tcp_refused_client: "Connections closed at once because their client had too many.",
    tcp_queries: "Queries received over connections.",
    tcp_replies: "Replies queued for connections.",
    tcp_closed_client: "Connections closed by the client.",
    tcp_closed_error: "Connections that failed or were reset.",
    tcp_closed_idle: "Connections closed because they were quiet for too long.",
    tcp_closed_evicted: "Quiet connections closed to make place for others.",
    tcp_closed_slow_writer: "Connections closed because a query took too long to arrive.",
    tcp_closed_slow_reader: "Connections closed because replies were not taken in time.",
    tcp_closed_malformed: "Connections closed because what came is not DNS.",
    tcp_closed_finished: "Connections closed after the last query they were allowed.",
    tcp_closed_stopping: "Connections closed because the server stops.",
}
