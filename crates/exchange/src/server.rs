//! One address we ask: how it is doing, and through which sockets we talk to it.

use std::sync::Arc;

use events::Counter;
use plan::upstreams::CONNECTIONS_MAX;
use timers::{Histogram, Moment, Span, TimerKey};

use crate::health::{Change, Health};
use crate::network::{LinkKey, Remote, SocketKey};
use crate::rtt::Rtt;

/// UDP sockets open to one upstream at once, each on a random port.
///
/// Queries leave through a socket drawn at random, and those of one moment ([`BURST`]) through the
/// same one, so that one `sendmmsg` carries them, and one `recvmmsg` their replies. A forger off
/// the path must hit the port (14.8 bits: the kernel draws from 28,232) and the ID (16 bits) of the
/// query, 30.8 bits a guess, as many as with a port for each query: other sockets and other names'
/// IDs do not help him, and equal queries are coalesced or bounded by
/// [`QUESTION_QUERIES_MAX`](queries::questions::QUESTION_QUERIES_MAX).
///
/// What a port that is used again gives away is time to find it. Scans that use the ICMP rate limit
/// as a side channel test some 1,000 ports a second (CVE-2020-25705), half a minute for all. So a
/// port lives for 5 seconds or 512 queries, in which a scan finds it with a probability of 1 in 6,
/// and then the next query leaves through it with one of 1 in 64: about 8.6 bits, and 16 more for
/// the ID, of which he may try three ([`WRONG_MAX`](crate::machine::requests::WRONG_MAX)) before
/// the query goes on over TCP. A port that is flooded is given up. Below a dozen queries a second
/// nearly every query has a port of its own.
pub(crate) use plan::upstreams::SOCKETS_MAX;
/// Time for which one socket is used before another is drawn.
pub(crate) const BURST: Span = Span(500);
/// Queries after which a port is replaced.
pub(crate) const SOCKET_QUERIES_MAX: u32 = 512;
/// Age at which a port is given up, used or not: an idle upstream holds no descriptors.
pub(crate) const SOCKET_AGE_MAX: Span = Span::from_ms(5000);
/// Queries in flight on one connection before another is opened.
pub(crate) const LINK_QUERIES_EASY: usize = 64;
/// Queries in flight on one connection at most. High, because those for names whose servers are
/// silent stay for seconds, and the other clients' queries share the connection with them.
pub const LINK_QUERIES_MAX: usize = queries::transactions::TRANSACTIONS_MAX;
/// How long a server that did not know EDNS is asked without.
pub(crate) const PLAIN_FOR: Span = Span::from_ms(15 * 60 * 1000);
/// How long a server that does not echo letter case is spared it.
pub(crate) const CASELESS_FOR: Span = Span::from_ms(60 * 60 * 1000);
/// First and last time between attempts to connect after a failure.
const LINK_BACKOFF_FIRST: Span = Span::from_ms(100);
const LINK_BACKOFF_LAST: Span = Span::from_ms(2000);

/// Everything one worker knows about one upstream address.
pub struct Server {
    /// Where it is, and how it is asked.
    pub remote: Remote,
    /// Whether connections are all that is used.
    pub is_connected: bool,
    /// Whether what is sent is encrypted.
    pub is_secured: bool,
    /// How long it takes.
    pub rtt: Rtt,
    /// Whether it answers.
    pub health: Health,
    pub(crate) sockets: [Option<SocketKey>; SOCKETS_MAX],
    /// The socket that this burst goes through, and until when.
    pub(crate) burst: Option<(SocketKey, Moment)>,
    pub(crate) links: [Option<LinkKey>; CONNECTIONS_MAX],
    /// No connection is tried before this.
    pub(crate) link_not_before: Moment,
    link_backoff: Span,
    /// Why the last connection could not be made; gone when one was.
    pub trouble: Option<String>,
    /// Connections in a row that ended without having brought anything.
    pub(crate) unheard_links: u8,
    /// When missing connections are opened.
    pub(crate) filling: TimerKey,
    /// Asked without EDNS until then.
    pub(crate) plain_until: Moment,
    /// Asked without random letter case until then.
    pub(crate) caseless_until: Moment,
    /// Those who hold it.
    pub users: u32,
    /// Whether it was asked by one who does not hold it: it stays until it is evicted.
    pub(crate) is_remembered: bool,
    /// Whether that happened since the last search for one to evict.
    pub(crate) was_asked: bool,
    /// What is counted about it, for others to read.
    pub meters: Arc<Meters>,
}

/// What one worker counts about one upstream. Only it writes.
#[derive(Debug, Default)]
pub struct Meters {
    /// Queries sent.
    pub queries: Counter,
    /// Replies received.
    pub replies: Counter,
    /// Attempts that went unanswered for the retransmission time.
    pub timeouts: Counter,
    /// Network errors.
    pub errors: Counter,
    /// Replies that made us ask another server.
    pub unusable: Counter,
    /// Queries on the wire.
    pub outstanding: Counter,
    /// How long replies took, each from when its query was sent.
    pub reply_times: Histogram,
}

impl Meters {
    /// Returns what was counted so far.
    pub fn tally(&self) -> Tally {
        Tally {
            queries: self.queries.read(),
            replies: self.replies.read(),
            timeouts: self.timeouts.read(),
            errors: self.errors.read(),
            unusable: self.unusable.read(),
        }
    }
}

/// What was counted about one upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Queries sent.
    pub queries: u64,
    /// Replies received.
    pub replies: u64,
    /// Attempts that went unanswered for the retransmission time.
    pub timeouts: u64,
    /// Network errors.
    pub errors: u64,
    /// Replies that made us ask another server.
    pub unusable: u64,
}

impl Server {
    pub(crate) fn new(remote: Remote) -> Self {
        Self {
            is_connected: remote.way().is_connected(),
            is_secured: remote.way().protocol.tls().is_some(),
            remote,
            rtt: Rtt::default(),
            health: Health::default(),
            sockets: [None; SOCKETS_MAX],
            burst: None,
            links: [None; CONNECTIONS_MAX],
            link_not_before: Moment(0),
            link_backoff: LINK_BACKOFF_FIRST,
            trouble: None,
            unheard_links: 0,
            filling: TimerKey::NONE,
            plain_until: Moment(0),
            caseless_until: Moment(0),
            users: 0,
            is_remembered: false,
            was_asked: false,
            meters: Arc::default(),
        }
    }

    /// Takes a reply to what was sent at `sent`.
    pub(crate) fn heard(&mut self, sent: Moment, now: Moment) -> Change {
        self.meters.replies.bump();
        self.rtt.sample(now.since(sent));
        self.health.heard(now)
    }

    /// Notes that what was sent at `sent` is overdue.
    pub(crate) fn silent(&mut self, sent: Moment, now: Moment) -> Change {
        self.meters.timeouts.bump();
        // If others were answered meanwhile, it was this packet that got lost: no reason for
        // patience.
        if self.health.heard_at() < sent {
            self.rtt.silence();
        }
        self.health.silence(sent, now)
    }

    /// Notes that the network refused.
    pub(crate) fn refused(&mut self, now: Moment) -> Change {
        self.meters.errors.bump();
        self.health.fail(now)
    }

    /// Notes that a connection could not be made: the next one has to wait.
    pub(crate) fn link_failed(&mut self, now: Moment, jitter: u32) {
        let wait = self.link_backoff.0;
        self.link_not_before = now + Span(wait * 3 / 4 + wait / 2 * u64::from(jitter & 0xffff) / 0xffff);
        self.link_backoff = Span(wait * 2).min(LINK_BACKOFF_LAST);
    }

    /// Notes that a connection was made.
    pub(crate) fn link_opened(&mut self) {
        self.link_backoff = LINK_BACKOFF_FIRST;
        self.link_not_before = Moment(0);
        self.trouble = None;
    }

    /// Returns whether nothing is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.meters.outstanding.read() == 0
    }

    /// Returns how many connections are kept open.
    pub(crate) fn links_min(&self) -> usize {
        // One that is asked over UDP needs none.
        if self.is_connected { usize::from(self.remote.way().connections.min) } else { 0 }
    }

    /// Returns how many connections there may be.
    pub fn links_max(&self) -> usize {
        usize::from(self.remote.way().connections.max).clamp(1, CONNECTIONS_MAX)
    }

    /// Returns how long a connection may have nothing to do.
    pub(crate) fn idle(&self) -> Span {
        Span::from_ms(u64::from(self.remote.way().connections.idle_ms.max(1)))
    }

    /// Returns how many connections there are, opening ones included.
    pub(crate) fn link_count(&self) -> usize {
        self.links.iter().flatten().count()
    }
}
