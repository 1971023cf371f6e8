//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Connections to authoritative servers: few, used again while they last (RFC 7766).

use std::net::SocketAddr;

use queries::transactions::Transactions;
use rand::CryptoRng;
use timers::{Moment, Span, TimerKey};
use wire::Header;

use super::deadlines::Token;
use super::network::{Carrier, PoolLinkKey, PoolNetwork};
use super::outstanding::Via;
use super::{Authorities, Heard, Unanswered};

/// Queries in flight on one connection; further ones get another.
const LINK_QUERIES_MAX: usize = 64;
/// Silence on a connection with queries outstanding after which it is not used for others, and
/// gives way to another server's if there is no room.
const SILENCE_MAX: Span = Span::from_ms(1000);

/// One connection to one server.
pub(super) struct Link {
    /// The address by which the server is known; where it is encrypted, it is asked at another
    /// port.
    pub(super) address: SocketAddr,
    pub(super) carrier: Carrier,
    pub(super) is_open: bool,
    /// Whether it takes no more queries.
    is_retiring: bool,
    transactions: Transactions,
    /// Whether it ever brought a reply.
    is_heard: bool,
    /// When a query was last sent or a reply received.
    used: Moment,
    /// When a reply was last received, it was opened, or a query was sent with nothing else
    /// outstanding.
    quiet_since: Moment,
    timer: TimerKey,
}

impl Link {
    fn is_silent(&self, now: Moment) -> bool {
        !self.transactions.is_empty() && now.since(self.quiet_since) >= SILENCE_MAX
    }

    fn begin(&mut self, rng: &mut impl CryptoRng, slot: u32, now: Moment) -> Option<u16> {
        if self.transactions.is_empty() {
            self.quiet_since = now;
        }
        self.used = now;
        self.transactions.begin(rng, slot, 0, 0)
    }

    /// Forgets a query.
    pub(super) fn end(&mut self, id: u16) {
        self.transactions.end(id);
    }

    /// Has it take no more queries: it is closed once it has been idle.
    pub(super) fn retire(&mut self) {
        self.is_retiring = true;
    }

    fn any_query(&self) -> Option<u32> {
        self.transactions.iter().next().map(|transaction| transaction.request)
    }
}

impl<N: PoolNetwork> Authorities<N> {
    /// Registers a query on a connection to its server, perhaps a new one; `None` if there is no
    /// room.
    pub(super) fn link_for(
        &mut self,
        address: SocketAddr,
        carrier: (Carrier, u16),
        slot: u32,
        now: Moment,
    ) -> Option<(PoolLinkKey, u16)> {
        let has_room = |link: &Link| link.transactions.len() < LINK_QUERIES_MAX && !link.is_silent(now);
        let is_it = |link: &Link| link.address == address && link.carrier == carrier.0 && !link.is_retiring;
        let open = self.links.iter().find(|(_, link)| is_it(link) && has_room(link));
        let key = match open {
            Some((key, _)) => PoolLinkKey(key as u32),
            None => self.open_link(address, carrier, now)?,
        };
        let Self { links, rng, .. } = self;
        let id = links.get_mut(key.0 as usize)?.begin(rng, slot, now)?;
        Some((key, id))
    }

    /// Begins to connect to a server: to this port of its.
    pub(super) fn open_link(
        &mut self,
        address: SocketAddr,
        (carrier, port): (Carrier, u16),
        now: Moment,
    ) -> Option<PoolLinkKey> {
        if self.links.len() >= usize::from(self.limits.links) && !self.evict_link(now) {
            return None;
        }
        let entry = self.links.vacant_entry();
        let key = PoolLinkKey(entry.key() as u32);
        entry.insert(Link {
            address,
            carrier,
            is_open: false,
            is_retiring: false,
            transactions: Transactions::default(),
            is_heard: false,
            used: now,
            quiet_since: now,
            timer: self.wheel.set(now + self.limits.link_idle, Token::Link(key.0)),
        });
        self.network.connect(key, SocketAddr::new(address.ip(), port), carrier);
        Some(key)
    }

    /// Makes room for a connection: the one that has been idle longest gives way, or the one that
    /// has been silent longest. Returns false if all are in good use.
    fn evict_link(&mut self, now: Moment) -> bool {
        let idle = self.links.iter().filter(|(_, link)| link.transactions.is_empty());
        let silent = self.links.iter().filter(|(_, link)| link.is_silent(now));
        let evicted = idle
            .min_by_key(|(_, link)| link.used)
            .or_else(|| silent.min_by_key(|(_, link)| link.quiet_since))
            .map(|(key, _)| PoolLinkKey(key as u32));
        let Some(key) = evicted else { return false };
        self.counters.links_evicted.bump();
        self.close_link(key, Unanswered::Timeout, now);
        true
    }

    /// Takes the news that a connection is open.
    pub fn link_opened(&mut self, key: PoolLinkKey, now: Moment) {
        let Some(link) = self.links.get_mut(key.0 as usize) else { return };
        (link.quiet_since, link.is_open) = (now, true);
        let (address, carrier) = (link.address, link.carrier);
        self.encryption_works(address, carrier, now);
    }

    /// Takes the news that a connection could not be made, or that it ended.
    pub fn link_closed(&mut self, key: PoolLinkKey, now: Moment) {
        let Some(link) = self.links.try_remove(key.0 as usize) else { return };
        if link.carrier.is_encrypted() && !link.is_open {
            self.encryption_failed(link.address, link.carrier, now);
        } else if !link.is_heard {
            self.counters.network_errors.bump();
        }
        self.wheel.cancel(link.timer);
        self.network.disconnect(key);
        for slot in link.transactions.iter().map(|transaction| transaction.request) {
            let Some(query) = self.queries.get_mut(slot as usize) else { continue };
            query.via = Via::Nothing;
            // RFC 7766 §6.2.4: servers close idle connections whenever they like, perhaps just as
            // we write. One that never said anything does not want us.
            if !link.is_heard || std::mem::replace(&mut query.tried.relinked, true) {
                self.fail_over(slot, Unanswered::Unreachable, now);
            } else {
                self.again(slot, now);
            }
        }
    }

    /// Takes the news that a connection could not even be tried, for lack of something of ours.
    pub fn link_lacked(&mut self, key: PoolLinkKey, now: Moment) {
        self.counters.shortages.bump();
        self.close_link(key, Unanswered::NotSent, now);
    }

    /// Takes the news that a message on a connection does not end.
    pub fn link_stalled(&mut self, key: PoolLinkKey, now: Moment) {
        self.close_link(key, Unanswered::Timeout, now);
    }

    /// Takes one message from a connection.
    pub fn message<'b>(&mut self, key: PoolLinkKey, bytes: &'b [u8], now: Moment) -> Option<Heard<'b>> {
        let link = self.links.get_mut(key.0 as usize)?;
        let header = Header::parse(bytes);
        let found = header.and_then(|header| Some((header, link.transactions.find(header.id)?.request)));
        let Some((header, slot)) = found else {
            self.counters.mismatched.bump();
            return None;
        };
        (link.is_heard, link.used, link.quiet_since) = (true, now, now);
        self.reply(slot, &header, bytes, false, now)
    }

    /// Closes a connection that has nothing to do.
    pub(super) fn link_due(&mut self, key: PoolLinkKey, now: Moment) {
        let Some(link) = self.links.get_mut(key.0 as usize) else { return };
        link.timer = TimerKey::NONE;
        let until = link.used + self.limits.link_idle;
        if link.transactions.is_empty() && now >= until {
            let (address, carrier, is_open) = (link.address, link.carrier, link.is_open);
            if !is_open {
                self.encryption_failed(address, carrier, now);
            }
            return self.close_link(key, Unanswered::Timeout, now);
        }
        let at = if now < until { until } else { now + self.limits.link_idle };
        link.timer = self.wheel.set(at, Token::Link(key.0));
    }

    /// Closes a connection on which a query went unanswered, if it brought nothing meanwhile.
    pub(super) fn link_was_silent(&mut self, key: PoolLinkKey, now: Moment) {
        let is_silent =
            |link: &Link| link.transactions.is_empty() && now.since(link.quiet_since) >= SILENCE_MAX;
        if self.links.get(key.0 as usize).is_some_and(is_silent) {
            self.close_link(key, Unanswered::Timeout, now);
        }
    }

    /// Closes a connection; what is outstanding on it has no reply, or goes on in plain text.
    fn close_link(&mut self, key: PoolLinkKey, why: Unanswered, now: Moment) {
        // Ends: each round takes a query off it.
        while let Some(slot) = self.links.get(key.0 as usize).and_then(Link::any_query) {
            if !self.leave_encryption(slot, Unanswered::NotSent, now) {
                self.fail(slot, why);
            }
        }
        if let Some(link) = self.links.try_remove(key.0 as usize) {
            self.wheel.cancel(link.timer);
            self.network.disconnect(key);
        }
    }
}
