//! How much one worker may have on the wire to authoritative servers.

use timers::Span;

/// Bounds and times of queries to authoritative servers, for one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// UDP sockets of each family from which one is drawn for each query; at least one.
    ///
    /// They are opened as they are drawn, and at most twice as many besides wait for their last
    /// replies. More are harder to guess and cost more: a batch of replies comes from as many
    /// sockets. On loopback, 256 take a quarter more of the processor's time than 64
    /// (`benches/authorities.rs`).
    pub sockets: u16,
    /// Queries after which a port is replaced.
    pub port_queries: u32,
    /// Age at which a port is given up, used or not.
    ///
    /// What a port that is used again gives away is time to find it. Scans through the ICMP rate
    /// limit test some 1,000 ports a second (CVE-2020-25705).
    pub port_life: Span,
    /// Queries that share one draw, as long as they are sent together; at least one.
    ///
    /// Sharing saves system calls: with 32 a query and its reply take a tenth less of the
    /// processor's time (`benches/authorities.rs`). But who has a server of its own asked in the
    /// same batch learns the port of the others, and has to guess their IDs and letter case only.
    /// So by default nobody shares.
    pub draw_queries: u16,
    /// Queries outstanding. Further ones are not sent.
    pub queries: u32,
    /// Queries outstanding to one address. Further ones are not sent, so that a server that does
    /// not answer, asked for ever other names, leaves room for others.
    pub server_queries: u16,
    /// TCP connections. When there are as many, the one that has been idle longest gives way, then
    /// the one that has been silent longest; else the query is not sent.
    pub links: u16,
    /// Time for a reply in a datagram, also where the query was repeated without EDNS or with a new
    /// cookie.
    pub udp_timeout: Span,
    /// Time for a reply over TCP, the connection included.
    pub tcp_timeout: Span,
    /// Time for which a connection without queries is kept, for those that may come (RFC 7766
    /// §6.2.3).
    pub link_idle: Span,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            sockets: 64,
            port_queries: 1024,
            port_life: Span::from_ms(30_000),
            draw_queries: 1,
            queries: 8192,
            server_queries: 1024,
            links: 64,
            udp_timeout: Span::from_ms(2000),
            tcp_timeout: Span::from_ms(4000),
            link_idle: Span::from_ms(5000),
        }
    }
}
