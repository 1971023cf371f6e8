//! The TCP side: persistent connections with many queries in flight (RFC 7766).

use engine::Failure;

use crate::machine::{AttemptState, Finished, How, Machine, Token, Waiter};
use crate::network::{LinkKey, Network};
use crate::plan::Protocol;
use crate::time::{Moment, Span};
use crate::transactions::{Transaction, Transactions};
use crate::upstream::{LINK_QUERIES_EASY, LINK_QUERIES_MAX};
use crate::wheel::TimerKey;

use rand::Rng;

/// A connection without queries is closed after this (RFC 7766 §6.2.3: clients should, too).
const IDLE_MAX: Span = Span::from_ms(10_000);

/// One TCP connection to one upstream.
pub(super) struct Link {
    pub(super) upstream: u32,
    pub(super) transactions: Transactions,
    is_open: bool,
    used: Moment,
    idle: TimerKey,
}

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Returns a connection for one more query, and whether it is open already; `None` when there can be none now.
    pub(super) fn link_for(&mut self, key: u32, force: bool, now: Moment) -> Option<(LinkKey, bool)> {
        let upstream = self.upstreams.get_mut(key as usize)?;
        let links = &self.links;
        let easiest = upstream
            .links
            .iter()
            .flatten()
            .filter_map(|&link| links.get(link.0 as usize).map(|entry| (link, entry)))
            .min_by_key(|(_, entry)| entry.transactions.len());
        let slot = upstream.links.iter().position(Option::is_none);
        let may_open = (force || now >= upstream.link_not_before)
            && slot.is_some()
            && links.len() < self.limits.connections_max as usize;
        if let Some((link, entry)) = easiest {
            let in_flight = entry.transactions.len();
            if in_flight < LINK_QUERIES_EASY || (!may_open && in_flight < LINK_QUERIES_MAX) {
                let is_open = entry.is_open;
                if let Some(entry) = self.links.get_mut(link.0 as usize) {
                    entry.used = now;
                }
                return Some((link, is_open));
            }
        }
        if !may_open {
            return None;
        }
        let entry = self.links.vacant_entry();
        let link = LinkKey(entry.key() as u32);
        let idle = self.wheel.set(now + IDLE_MAX, Token::Link(link.0));
        entry.insert(Link {
            upstream: key,
            transactions: Transactions::default(),
            is_open: false,
            used: now,
            idle,
        });
        *upstream.links.get_mut(slot?)? = Some(link);
        self.network.connect(link, &upstream.remote);
        Some((link, false))
    }

    /// Takes the news that a connection is open.
    pub(crate) fn link_opened(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key.0 as usize) else { return };
        link.is_open = true;
        if let Some(upstream) = self.upstreams.get_mut(link.upstream as usize) {
            upstream.link_opened();
        }
    }

    /// Takes the news that a connection could not be made, or that it ended.
    pub(crate) fn link_closed(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.try_remove(key.0 as usize) else { return };
        self.wheel.cancel(link.idle);
        self.network.disconnect(key);
        let jitter = self.rng.next_u32();
        if let Some(upstream) = self.upstreams.get_mut(link.upstream as usize) {
            for slot in upstream.links.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
            upstream.outstanding -= link.transactions.len() as u32;
            self.has_garbage |= upstream.users == 0;
            if !link.is_open {
                self.counters.network_errors.bump();
                upstream.link_failed(now, jitter);
                // A server that is asked over UDP may well not speak TCP.
                if upstream.remote.protocol == Protocol::Tcp {
                    let change = upstream.refused(now);
                    self.changed(link.upstream, change, now);
                }
            }
        }
        for transaction in link.transactions.iter() {
            self.lost_with_link(*transaction, link.upstream, link.is_open, now);
        }
    }

    /// Goes on with a query whose connection is gone.
    fn lost_with_link(&mut self, transaction: Transaction, upstream: u32, was_open: bool, now: Moment) {
        let key = transaction.fetch;
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let Some(attempt) = fetch.attempts_mut().get_mut(usize::from(transaction.attempt)) else { return };
        attempt.state = AttemptState::Failed;
        fetch.last_failure = Failure::Network;
        // RFC 7766 §6.2.4: servers close idle connections whenever they like, perhaps just as we write.
        if was_open && !fetch.is_lingering && !std::mem::replace(&mut fetch.is_relinked, true) {
            let how = How { stream: true, ..How::default() };
            if self.send(key, upstream, how, now) {
                return self.arm(key);
            }
        }
        self.advance(key, now);
    }

    /// Takes one message from a connection.
    pub(crate) fn message<'b>(&mut self, key: LinkKey, bytes: &'b [u8], now: Moment) -> Option<Finished<'b>> {
        let header = wire::Header::parse(bytes)?;
        let link = self.links.get_mut(key.0 as usize)?;
        link.used = now;
        let Some(&transaction) = link.transactions.find(header.id) else {
            self.counters.mismatched.bump();
            return None;
        };
        self.answered(transaction, bytes, &header, false, now)
    }

    /// Closes a connection that has nothing to do.
    pub(super) fn link_due(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.get_mut(key.0 as usize) else { return };
        let until = link.used + IDLE_MAX;
        if link.transactions.is_empty() && now >= until {
            self.drop_link(key);
        } else {
            let at = if now >= until { now + IDLE_MAX } else { until };
            link.idle = self.wheel.set(at, Token::Link(key.0));
        }
    }

    /// Closes a connection on which nothing is outstanding.
    pub(super) fn drop_link(&mut self, key: LinkKey) {
        let Some(link) = self.links.try_remove(key.0 as usize) else { return };
        self.wheel.cancel(link.idle);
        self.network.disconnect(key);
        if let Some(upstream) = self.upstreams.get_mut(link.upstream as usize) {
            for slot in upstream.links.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
        }
    }
}
