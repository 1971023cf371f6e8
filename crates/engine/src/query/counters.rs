//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What one worker counts. Only its worker writes; anybody may read and add up.

use wire::Rcode;

use clients::client::Transport;
use events::Counter;

events::counters! {
    queries_udp: "Queries that came over UDP.",
    queries_tls: "Queries over TLS.",
    queries_https: "Queries over HTTPS.",
    queries_quic: "Queries over QUIC.",
    queries_h3: "Queries over HTTP/3.",
    queries_dnscrypt: "Queries over DNSCrypt.",
    queries_unix: "Queries over Unix sockets.",
    queries_tcp: "Queries that came over TCP.",
    malformed: "Messages that were not queries we can read.",
    denied: "Queries refused by the access list.",
    banned: "Queries of banned clients, which got no reply.",
    limited: "Queries over the rate limit of their prefix.",
    cookies_valid: "Queries with a valid server cookie.",
    cookies_client: "Queries with a client cookie alone.",
    cookies_invalid: "Queries with a server cookie that is not ours, or is too old.",
    too_large: "Queries with more octets than may be (`limits.query-size`), which got no reply.",
    without_cookie: "Queries of clients that have to show a cookie and did not (`cookies.required`).",
    answers_local: "Queries answered from hosts and local names.",
    answers_zone: "Queries answered from zones.",
    transfers_whole: "Zones sent to other servers as a whole.",
    transfers_steps: "Differences between versions sent to other servers.",
    notifications: "Notifications of news that were believed.",
    updates: "Updates that their sender may make.",
    answers_fixed: "Queries answered by a rule with a fixed rcode.",
    cache_hits: "Queries answered from the cache.",
    cache_subnets: "Those of them whose answer is for the client's subnet (RFC 7871).",
    cache_misses: "Cache look-ups that found nothing.",
    cache_stale: "Queries answered with stale data.",
    cache_failures: "Queries answered with a remembered failure.",
    prefetches: "Refreshes of popular entries before they expire.",
    deferred: "Queries that waited for an upstream.",
    resumed: "Deferred queries that went on.",
    truncated: "Replies sent with TC because they were too large.",
    noerror: "Replies with NOERROR.",
    nxdomain: "Replies with NXDOMAIN.",
    servfail: "Replies with SERVFAIL.",
    refused: "Replies with REFUSED.",
    other_rcode: "Replies with another rcode.",
    dropped: "Queries that got no reply.",
}

impl Counters {
    /// Returns what counts the queries of a transport. Most come over UDP: a comparison is cheaper
    /// than a jump by table.
    #[inline(always)]
    pub fn queries_over(&self, transport: Transport) -> &Counter {
        if transport == Transport::Udp { &self.queries_udp } else { self.queries_over_other(transport) }
    }

    #[inline(never)]
    fn queries_over_other(&self, transport: Transport) -> &Counter {
        match transport {
            Transport::Udp => &self.queries_udp,
            Transport::Tcp => &self.queries_tcp,
            Transport::Tls => &self.queries_tls,
            Transport::Https => &self.queries_https,
            Transport::Quic => &self.queries_quic,
            Transport::H3 => &self.queries_h3,
            Transport::Dnscrypt => &self.queries_dnscrypt,
            Transport::Unix => &self.queries_unix,
        }
    }

    /// Counts a reply.
    pub(crate) fn count(&self, rcode: Rcode, is_cut: bool) {
        match rcode {
            Rcode::NOERROR => self.noerror.bump(),
            Rcode::NXDOMAIN => self.nxdomain.bump(),
            Rcode::SERVFAIL => self.servfail.bump(),
            Rcode::REFUSED => self.refused.bump(),
            _ => self.other_rcode.bump(),
        }
        if is_cut {
            self.truncated.bump();
        }
    }
}
