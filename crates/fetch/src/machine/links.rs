//! The side of connections: persistent ones with many queries in flight (RFC 7766 and what followed it).

use engine::Failure;

use crate::health::Why;
use crate::machine::sending::STREAM_PATIENCE_MIN;
use crate::machine::{AttemptState, Finished, Hindrance, How, Machine, Token, Waiter};
use crate::network::{LinkKey, Network};
use crate::time::{Moment, Span};
use crate::transactions::{Transaction, Transactions};
use crate::upstream::{LINK_QUERIES_EASY, LINK_QUERIES_MAX};
use crate::wheel::TimerKey;

use rand::Rng;

/// Silence on a connection with queries outstanding after which these are asked again over another one: soon enough for
/// clients over UDP, to whom late answers are not sent (`limits.discard-timeout`).
const SILENCE_MAX: Span = Span::from_ms(1500);
/// Silence after which such a connection is closed: the kernel notices peers that are gone, but not those that have merely
/// stopped.
const SILENCE_CLOSES: Span = Span::from_ms(4000);
/// Time from the end of a connection that is to be kept to the next one, at least.
const REFILL_AFTER: Span = Span::from_ms(200);
/// Connections in a row that ended with queries and without any message, after which the server counts as down.
const UNHEARD_LINKS_MAX: u8 = 2;

/// One connection to one upstream.
pub(super) struct Link {
    pub(super) upstream: u32,
    pub(super) transactions: Transactions,
    is_open: bool,
    /// Whether it could not be tried for lack of something of ours.
    is_lacking: bool,
    /// Whether it ever brought a message.
    is_heard: bool,
    /// Whether it has been silent for too long: others are preferred.
    is_suspect: bool,
    /// When it was last given a query or heard.
    used: Moment,
    /// When it was last heard, opened, or given a query with nothing else outstanding.
    quiet_since: Moment,
    timer: TimerKey,
    timer_at: Moment,
}

impl<N: Network, W: Waiter> Machine<N, W> {
    /// Returns a connection for one more query, and whether it is open already.
    pub(super) fn link_for(
        &mut self,
        key: u32,
        force: bool,
        now: Moment,
    ) -> Result<(LinkKey, bool), Hindrance> {
        let upstream = self.upstreams.get(key as usize).ok_or(Hindrance::Network)?;
        let links = &self.links;
        let easiest = upstream
            .links
            .iter()
            .flatten()
            .filter_map(|&link| links.get(link.0 as usize).map(|entry| (link, entry)))
            .min_by_key(|(_, entry)| (entry.is_suspect, entry.transactions.len()));
        let may_try = force || now >= upstream.link_not_before;
        let may_open = may_try && self.has_room_for_link(key);
        let Some((link, entry)) = easiest else {
            if !may_try {
                return Err(Hindrance::Network);
            }
            // Whoever has none may always have one: others must not take all.
            return self.open_link(key, now).map(|link| (link, false)).ok_or(Hindrance::Network);
        };
        let in_flight = entry.transactions.len();
        let is_easy = in_flight < LINK_QUERIES_EASY && !entry.is_suspect;
        if !is_easy && may_open {
            return self.open_link(key, now).map(|link| (link, false)).ok_or(Hindrance::Network);
        }
        if in_flight >= LINK_QUERIES_MAX {
            return Err(Hindrance::Shortage);
        }
        let entry = self.links.get_mut(link.0 as usize).ok_or(Hindrance::Network)?;
        entry.used = now;
        let is_open = entry.is_open;
        if entry.transactions.is_empty() {
            entry.quiet_since = now;
            let watch_at = now + SILENCE_MAX;
            if watch_at < entry.timer_at {
                self.wheel.cancel(entry.timer);
                (entry.timer, entry.timer_at) = (self.wheel.set(watch_at, Token::Link(link.0)), watch_at);
            }
        }
        Ok((link, is_open))
    }

    /// Returns whether one more connection to an upstream may be opened.
    fn has_room_for_link(&self, key: u32) -> bool {
        let Some(upstream) = self.upstreams.get(key as usize) else { return false };
        upstream.link_count() < upstream.links_max()
            && self.links.len() < self.limits.connections_max as usize
    }

    /// Begins to connect.
    fn open_link(&mut self, key: u32, now: Moment) -> Option<LinkKey> {
        let upstream = self.upstreams.get_mut(key as usize)?;
        let slot = upstream.links.iter_mut().find(|slot| slot.is_none())?;
        let entry = self.links.vacant_entry();
        let link = LinkKey(entry.key() as u32);
        let timer_at = now + SILENCE_MAX;
        entry.insert(Link {
            upstream: key,
            transactions: Transactions::default(),
            is_open: false,
            is_lacking: false,
            is_heard: false,
            is_suspect: false,
            used: now,
            quiet_since: now,
            timer: self.wheel.set(timer_at, Token::Link(link.0)),
            timer_at,
        });
        *slot = Some(link);
        self.network.connect(link, &upstream.remote);
        Some(link)
    }

    /// Opens the connections that are to be kept.
    pub(super) fn fill(&mut self, key: u32, now: Moment) {
        let Some(upstream) = self.upstreams.get_mut(key as usize) else { return };
        self.wheel.cancel(upstream.filling);
        upstream.filling = TimerKey::NONE;
        if upstream.users == 0 || self.is_stopping {
            return;
        }
        let missing = upstream.links_min().saturating_sub(upstream.link_count());
        if now < upstream.link_not_before {
            return self.fill_later(key, now);
        }
        for _ in 0..missing {
            if !self.has_room_for_link(key) || self.open_link(key, now).is_none() {
                break;
            }
        }
    }

    /// Sees to it that missing connections are opened when that may work.
    fn fill_later(&mut self, key: u32, now: Moment) {
        let Some(upstream) = self.upstreams.get_mut(key as usize) else { return };
        if upstream.users == 0 || upstream.link_count() >= upstream.links_min() {
            return;
        }
        self.wheel.cancel(upstream.filling);
        let at = upstream.link_not_before.max(now + REFILL_AFTER);
        upstream.filling = self.wheel.set(at, Token::Fill(key));
    }

    /// Takes the news that a connection is open.
    pub(crate) fn link_opened(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.get_mut(key.0 as usize) else { return };
        link.is_open = true;
        link.quiet_since = now;
        let key = link.upstream;
        let waiting: Vec<Transaction> = link.transactions.iter().copied().collect();
        let Some(upstream) = self.upstreams.get_mut(key as usize) else { return };
        upstream.link_opened();
        let patience = upstream.rtt.fallback_after().max(STREAM_PATIENCE_MIN);
        for transaction in waiting {
            self.wait_on(transaction, now + patience);
        }
        self.worked(key, now);
    }

    /// Waits for the answer to a query whose connection took its time, before another address is tried.
    fn wait_on(&mut self, transaction: Transaction, until: Moment) {
        let Some(fetch) = self.fetches.get_mut(transaction.fetch as usize) else { return };
        let Some(attempt) = fetch.attempts_mut().get_mut(usize::from(transaction.attempt)) else { return };
        if attempt.state != AttemptState::Waiting || attempt.due >= until {
            return;
        }
        attempt.due = until;
        if fetch.is_lingering || fetch.retry_at == Moment::NEVER {
            return;
        }
        let waiting = fetch.attempts().iter().filter(|attempt| attempt.state == AttemptState::Waiting);
        if let Some(next) = waiting.map(|attempt| attempt.due).min() {
            fetch.retry_at = next;
            self.arm(transaction.fetch);
        }
    }

    /// Takes the news that a connection could not be made, or that it ended, and why.
    pub(crate) fn link_closed(&mut self, key: LinkKey, trouble: Option<String>, now: Moment) {
        let Some(link) = self.links.try_remove(key.0 as usize) else { return };
        self.wheel.cancel(link.timer);
        self.network.disconnect(key);
        let jitter = self.rng.next_u32();
        if let Some(upstream) = self.upstreams.get_mut(link.upstream as usize) {
            for slot in upstream.links.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
            for _ in link.transactions.iter() {
                upstream.meters.outstanding.take_back();
            }
            self.has_garbage |= upstream.users == 0;
            if link.is_lacking {
                self.counters.shortages.bump();
                upstream.link_failed(now, jitter);
            } else if !link.is_open {
                self.counters.network_errors.bump();
                upstream.link_failed(now, jitter);
                upstream.trouble.clone_from(&trouble);
                // A server that is asked over UDP may well not speak TCP.
                if upstream.is_connected {
                    let change = upstream.refused(now);
                    self.changed(link.upstream, change, Why::Connection(trouble), now);
                }
            } else if !link.is_heard && !link.transactions.is_empty() {
                // Once is chance. A server that takes connections, or datagrams, and never says anything is not there.
                upstream.unheard_links = upstream.unheard_links.saturating_add(1);
                if upstream.is_connected && upstream.unheard_links >= UNHEARD_LINKS_MAX {
                    let change = upstream.refused(now);
                    self.changed(link.upstream, change, Why::Mute, now);
                }
            }
        }
        for transaction in link.transactions.iter() {
            self.lost_with_link(*transaction, &link, now);
        }
        self.fill_later(link.upstream, now);
    }

    /// Takes the news that a connection could not even be tried: no fault of the upstream.
    pub(crate) fn link_lacked(&mut self, key: LinkKey, now: Moment) {
        if let Some(link) = self.links.get_mut(key.0 as usize) {
            link.is_lacking = true;
        }
        self.link_closed(key, None, now);
    }

    /// Takes the news that a message on a connection does not end.
    pub(crate) fn link_stalled(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.get(key.0 as usize) else { return };
        let to = link.upstream;
        self.counters.links_silent.bump();
        if let Some(upstream) = self.upstreams.get_mut(to as usize).filter(|upstream| upstream.is_connected) {
            let change = upstream.refused(now);
            let why = "its replies take seconds to arrive".to_owned();
            self.changed(to, change, Why::Connection(Some(why)), now);
        }
        self.link_closed(key, None, now);
    }

    /// Goes on with a query whose connection is gone.
    fn lost_with_link(&mut self, transaction: Transaction, link: &Link, now: Moment) {
        let key = transaction.fetch;
        let Some(fetch) = self.fetches.get_mut(key as usize) else { return };
        let Some(attempt) = fetch.attempts_mut().get_mut(usize::from(transaction.attempt)) else { return };
        attempt.state = AttemptState::Failed;
        fetch.last_failure = if link.is_lacking { Failure::Overloaded } else { Failure::Network };
        // RFC 7766 §6.2.4: servers close idle connections whenever they like, perhaps just as we write.
        if link.is_open && !fetch.is_lingering && !std::mem::replace(&mut fetch.is_relinked, true) {
            let how = How { stream: true, ..How::default() };
            if self.send(key, link.upstream, how, now) {
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
        link.quiet_since = now;
        link.is_suspect = false;
        if !std::mem::replace(&mut link.is_heard, true)
            && let Some(upstream) = self.upstreams.get_mut(link.upstream as usize)
        {
            upstream.unheard_links = 0;
        }
        let Some(&transaction) = link.transactions.find(header.id) else {
            self.counters.mismatched.bump();
            return None;
        };
        self.answered(transaction, bytes, &header, false, now)
    }

    /// Closes a connection that has nothing to do, and looks after one that is silent.
    pub(super) fn link_due(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.get(key.0 as usize) else { return };
        let Some(upstream) = self.upstreams.get(link.upstream as usize) else { return };
        let is_idle = link.transactions.is_empty();
        let at = if is_idle {
            let idle = upstream.idle();
            let until = link.used + idle;
            if now >= until && upstream.link_count() > upstream.links_min() {
                return self.drop_link(key);
            }
            if now >= until { now + idle } else { until }
        } else {
            let silence = now.since(link.quiet_since);
            if !link.is_open || silence < SILENCE_MAX {
                // Connecting has a limit of its own.
                if link.is_open { link.quiet_since + SILENCE_MAX } else { now + SILENCE_MAX }
            } else if silence < SILENCE_CLOSES {
                link.quiet_since + SILENCE_CLOSES
            } else {
                self.counters.links_silent.bump();
                return self.link_closed(key, None, now);
            }
        };
        let becomes_suspect = !is_idle && link.is_open && now.since(link.quiet_since) >= SILENCE_MAX;
        let timer = self.wheel.set(at, Token::Link(key.0));
        if let Some(link) = self.links.get_mut(key.0 as usize) {
            (link.timer, link.timer_at) = (timer, at);
        }
        if becomes_suspect {
            self.suspect_link(key, now);
        }
    }

    /// Asks again, over another connection, what is outstanding on one that is silent.
    fn suspect_link(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.get_mut(key.0 as usize) else { return };
        link.is_suspect = true;
        let upstream = link.upstream;
        if !self.has_room_for_link(upstream) {
            self.counters.links_silent.bump();
            return self.link_closed(key, None, now);
        }
        let Some(link) = self.links.get(key.0 as usize) else { return };
        let outstanding: Vec<Transaction> = link.transactions.iter().copied().collect();
        for transaction in outstanding {
            let Some(fetch) = self.fetches.get_mut(transaction.fetch as usize) else { continue };
            if fetch.is_lingering || std::mem::replace(&mut fetch.is_relinked, true) {
                continue;
            }
            if self.send(transaction.fetch, upstream, How { stream: true, ..How::default() }, now) {
                self.arm(transaction.fetch);
            }
        }
    }

    /// Prefers new connections to an upstream from now on; those with nothing to do go at once.
    pub(super) fn suspect_links(&mut self, key: u32) {
        let Some(upstream) = self.upstreams.get(key as usize) else { return };
        for link in upstream.links.into_iter().flatten() {
            let Some(entry) = self.links.get_mut(link.0 as usize) else { continue };
            entry.is_suspect |= entry.is_open;
            if entry.is_open && entry.transactions.is_empty() {
                self.drop_link(link);
            }
        }
    }

    /// Closes a connection on which nothing is outstanding.
    pub(super) fn drop_link(&mut self, key: LinkKey) {
        let Some(link) = self.links.try_remove(key.0 as usize) else { return };
        self.wheel.cancel(link.timer);
        self.network.disconnect(key);
        if let Some(upstream) = self.upstreams.get_mut(link.upstream as usize) {
            for slot in upstream.links.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
        }
    }
}
