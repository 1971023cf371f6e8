//! One address we ask: how it is doing, and through which sockets we talk to it.

use crate::health::{Change, Health};
use crate::network::{LinkKey, Remote, SocketKey};
use crate::plan::CONNECTIONS_MAX;
use crate::rtt::Rtt;
use crate::time::{Moment, Span};
use crate::wheel::TimerKey;

/// UDP sockets open to one upstream at once, each on a random port.
///
/// All queries of one flush leave through one socket drawn at random, so that one `sendmmsg` carries
/// them. A forger off the path must still hit the one port (of about 28,000) and the one ID (of 65,536)
/// of the one outstanding query for that name, some 31 bits a guess: equal queries are coalesced, so
/// there is no birthday attack, and other sockets or other names' IDs do not help him. What fewer ports
/// than queries do give away is time to find an open one; hence the bounds on a port's life below, and
/// the move to TCP when wrong replies for a question come in.
pub(crate) const SOCKETS_MAX: usize = 8;
/// Queries after which a port is replaced.
pub(crate) const SOCKET_QUERIES_MAX: u32 = 8192;
/// Age at which a port is replaced at its next use.
pub(crate) const SOCKET_AGE_MAX: Span = Span::from_ms(30_000);
/// Queries in flight on one connection before another is opened.
pub(crate) const LINK_QUERIES_EASY: usize = 64;
/// Queries in flight on one connection at most.
pub(crate) const LINK_QUERIES_MAX: usize = 512;
/// How long a server that did not know EDNS is asked without.
pub(crate) const PLAIN_FOR: Span = Span::from_ms(15 * 60 * 1000);
/// How long a server that does not echo letter case is spared it.
pub(crate) const CASELESS_FOR: Span = Span::from_ms(60 * 60 * 1000);
/// First and last time between attempts to connect after a failure.
const LINK_BACKOFF_FIRST: Span = Span::from_ms(100);
const LINK_BACKOFF_LAST: Span = Span::from_ms(2000);

/// Everything one worker knows about one upstream address.
pub(crate) struct Upstream {
    pub(crate) remote: Remote,
    /// Whether connections are all that is used.
    pub(crate) is_connected: bool,
    /// Whether what is sent is encrypted.
    pub(crate) is_secured: bool,
    pub(crate) rtt: Rtt,
    pub(crate) health: Health,
    pub(crate) sockets: [Option<SocketKey>; SOCKETS_MAX],
    /// The socket that this burst goes through.
    pub(crate) burst: Option<SocketKey>,
    pub(crate) links: [Option<LinkKey>; CONNECTIONS_MAX],
    /// No connection is tried before this.
    pub(crate) link_not_before: Moment,
    link_backoff: Span,
    /// Why the last connection could not be made; gone when one was.
    pub(crate) trouble: Option<String>,
    /// Connections in a row that ended without having brought anything.
    pub(crate) unheard_links: u8,
    /// When missing connections are opened.
    pub(crate) filling: TimerKey,
    /// Asked without EDNS until then.
    pub(crate) plain_until: Moment,
    /// Asked without random letter case until then.
    pub(crate) caseless_until: Moment,
    pub(crate) probe: TimerKey,
    /// Pools that have it.
    pub(crate) users: u32,
    /// Queries on the wire.
    pub(crate) outstanding: u32,
    pub(crate) tally: Tally,
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

impl Upstream {
    pub(crate) fn new(remote: Remote) -> Self {
        Self {
            is_connected: remote.way.is_connected(),
            is_secured: remote.way.secure.is_some(),
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
            probe: TimerKey::NONE,
            users: 0,
            outstanding: 0,
            tally: Tally::default(),
        }
    }

    /// Takes a reply to what was sent at `sent`.
    pub(crate) fn heard(&mut self, sent: Moment, now: Moment) -> Change {
        self.tally.replies += 1;
        self.rtt.sample(now.since(sent));
        self.health.heard(now)
    }

    /// Notes that what was sent at `sent` is overdue.
    pub(crate) fn silent(&mut self, sent: Moment, now: Moment) -> Change {
        self.tally.timeouts += 1;
        // If others were answered meanwhile, it was this packet that got lost: no reason for patience.
        if self.health.heard_at() < sent {
            self.rtt.silence();
        }
        self.health.silence(sent, now)
    }

    /// Notes that the network refused.
    pub(crate) fn refused(&mut self, now: Moment) -> Change {
        self.tally.errors += 1;
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

    /// Returns how many connections are kept open.
    pub(crate) fn links_min(&self) -> usize {
        // One that is asked over UDP needs none.
        if self.is_connected { usize::from(self.remote.way.connections.min) } else { 0 }
    }

    /// Returns how many connections there may be.
    pub(crate) fn links_max(&self) -> usize {
        usize::from(self.remote.way.connections.max).clamp(1, CONNECTIONS_MAX)
    }

    /// Returns how long a connection may have nothing to do.
    pub(crate) fn idle(&self) -> Span {
        Span::from_ms(u64::from(self.remote.way.connections.idle_ms.max(1)))
    }

    /// Returns how many connections there are, opening ones included.
    pub(crate) fn link_count(&self) -> usize {
        self.links.iter().flatten().count()
    }
}
