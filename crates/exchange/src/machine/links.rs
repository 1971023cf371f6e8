//! The side of connections: persistent ones with many queries in flight (RFC 7766 and what followed
//! it).

use engine::Failure;
use queries::transactions::{Transaction, Transactions};
use timers::{Moment, Span, TimerKey};

use crate::health::Why;
use crate::machine::requests::AttemptState;
use crate::machine::{Alternatives, Event, Exchange, Heard, How, SendError, ServerKey, Token};
use crate::network::{LinkKey, Network};
use crate::server::{LINK_QUERIES_EASY, LINK_QUERIES_MAX};

use rand::Rng;

/// Time for an answer over a connection that is open, at least; the kernel retransmits there.
const STREAM_PATIENCE_MIN: Span = Span::from_ms(300);
/// Time to connect, besides that for the answer, before the same server counts as silent.
const CONNECT_PATIENCE: Span = Span::from_ms(700);
/// The same where there is another server.
const CONNECT_PATIENCE_OTHERS: Span = Span::from_ms(250);
/// Time to connect before another address of the same server is tried, too (the Connection Attempt
/// Delay of RFC 8305 §5). Once a connection is open, its answer has the usual time.
const ATTEMPT_DELAY: Span = Span::from_ms(250);
/// Silence on a connection with queries outstanding after which these are asked again over another
/// one: soon enough for clients over UDP, to whom late answers are not sent
/// (`limits.discard-timeout`).
const SILENCE_MAX: Span = Span::from_ms(1500);
/// Silence after which such a connection is closed: the kernel notices peers that are gone, but not
/// those that have merely stopped.
const SILENCE_CLOSES: Span = Span::from_ms(4000);
/// Time from the end of a connection that is to be kept to the next one, at least.
const REFILL_AFTER: Span = Span::from_ms(200);
/// Connections in a row that ended with queries and without any message, after which the server
/// counts as down.
const UNHEARD_LINKS_MAX: u8 = 2;

/// One connection to one server.
pub(super) struct Link {
    pub(super) server: u32,
    pub(super) transactions: Transactions,
    is_open: bool,
    /// Whether it could not be tried for lack of something of ours.
    is_lacking: bool,
    /// Whether it ever brought a message.
    is_heard: bool,
    /// Whether it has been silent for too long: others are preferred.
    is_suspect: bool,
    /// When a query was last sent or a message received.
    used: Moment,
    /// When a message was last received, it was opened, or a query was sent with nothing else
    /// outstanding.
    quiet_since: Moment,
    timer: TimerKey,
    timer_at: Moment,
}

impl<N: Network> Exchange<N> {
    /// Returns a connection for one more query, and whether it is open already.
    pub(super) fn link_for(
        &mut self,
        key: u32,
        force: bool,
        now: Moment,
    ) -> Result<(LinkKey, bool), SendError> {
        let server = self.servers.get(key as usize).ok_or(SendError::Network)?;
        let links = &self.links;
        let easiest = server
            .links
            .iter()
            .flatten()
            .filter_map(|&link| links.get(link.0 as usize).map(|entry| (link, entry)))
            .min_by_key(|(_, entry)| (entry.is_suspect, entry.transactions.len()));
        let may_try = force || now >= server.link_not_before;
        let may_open = may_try && self.has_room_for_link(key);
        let Some((link, entry)) = easiest else {
            if !may_try {
                return Err(SendError::Network);
            }
            // Whoever has none may always have one: others must not take all.
            return self.open_link(key, now).map(|link| (link, false)).ok_or(SendError::Network);
        };
        let in_flight = entry.transactions.len();
        let is_easy = in_flight < LINK_QUERIES_EASY && !entry.is_suspect;
        if !is_easy && may_open {
            return self.open_link(key, now).map(|link| (link, false)).ok_or(SendError::Network);
        }
        if in_flight >= LINK_QUERIES_MAX {
            return Err(SendError::Shortage);
        }
        let entry = self.links.get_mut(link.0 as usize).ok_or(SendError::Network)?;
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

    /// Returns whether one more connection to an server may be opened.
    fn has_room_for_link(&self, key: u32) -> bool {
        let Some(server) = self.servers.get(key as usize) else { return false };
        server.link_count() < server.links_max() && self.links.len() < self.limits.connections_max as usize
    }

    /// Begins to connect.
    fn open_link(&mut self, key: u32, now: Moment) -> Option<LinkKey> {
        let server = self.servers.get_mut(key as usize)?;
        let slot = server.links.iter_mut().find(|slot| slot.is_none())?;
        let entry = self.links.vacant_entry();
        let link = LinkKey(entry.key() as u32);
        let timer_at = now + SILENCE_MAX;
        entry.insert(Link {
            server: key,
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
        self.network.connect(link, &server.remote);
        Some(link)
    }

    /// Opens the connections that are to be kept.
    pub(super) fn fill(&mut self, key: u32, now: Moment) {
        let Some(server) = self.servers.get_mut(key as usize) else { return };
        self.wheel.cancel(server.filling);
        server.filling = TimerKey::NONE;
        if server.users == 0 || self.is_stopping {
            return;
        }
        let missing = server.links_min().saturating_sub(server.link_count());
        if now < server.link_not_before {
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
        let Some(server) = self.servers.get_mut(key as usize) else { return };
        if server.users == 0 || server.link_count() >= server.links_min() {
            return;
        }
        self.wheel.cancel(server.filling);
        let at = server.link_not_before.max(now + REFILL_AFTER);
        server.filling = self.wheel.set(at, Token::Fill(key));
    }

    /// Takes the news that a connection is open.
    pub fn link_opened(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.get_mut(key.0 as usize) else { return };
        link.is_open = true;
        link.quiet_since = now;
        let key = link.server;
        let waiting: Vec<Transaction> = link.transactions.iter().copied().collect();
        let Some(server) = self.servers.get_mut(key as usize) else { return };
        server.link_opened();
        let patience = server.rtt.fallback_after().max(STREAM_PATIENCE_MIN);
        for transaction in waiting {
            self.wait_on(transaction, now + patience);
        }
        self.events.push_back(Event::Connected(ServerKey(key)));
    }

    /// Waits for the answer to a query whose connection took its time, before another address is
    /// tried.
    fn wait_on(&mut self, transaction: Transaction, until: Moment) {
        let Some(request) = self.requests.get_mut(transaction.request as usize) else { return };
        let Some(attempt) = request.attempts_mut().get_mut(usize::from(transaction.attempt)) else { return };
        if attempt.state != AttemptState::Waiting || attempt.due >= until {
            return;
        }
        attempt.due = until;
        if request.is_measured_only() || request.is_probe() {
            return;
        }
        self.later(transaction.request);
    }

    /// Takes the news that a connection could not be made, or that it ended, and why.
    pub fn link_closed(&mut self, key: LinkKey, trouble: Option<String>, now: Moment) {
        let Some(link) = self.links.try_remove(key.0 as usize) else { return };
        self.wheel.cancel(link.timer);
        self.network.disconnect(key);
        let jitter = self.rng.next_u32();
        if let Some(server) = self.servers.get_mut(link.server as usize) {
            for slot in server.links.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
            for _ in link.transactions.iter() {
                server.meters.outstanding.take_back();
            }
            self.has_garbage |= server.users == 0;
            if link.is_lacking {
                self.counters.shortages.bump();
                server.link_failed(now, jitter);
            } else if !link.is_open {
                self.counters.network_errors.bump();
                server.link_failed(now, jitter);
                server.trouble.clone_from(&trouble);
                // A server that is asked over UDP may well not speak TCP.
                if server.is_connected {
                    let change = server.refused(now);
                    self.changed(link.server, change, Why::Connection(trouble));
                }
            } else if !link.is_heard && !link.transactions.is_empty() {
                // Once is chance. A server that takes connections, or datagrams, and never says
                // anything is not there.
                server.unheard_links = server.unheard_links.saturating_add(1);
                if server.is_connected && server.unheard_links >= UNHEARD_LINKS_MAX {
                    let change = server.refused(now);
                    self.changed(link.server, change, Why::Mute);
                }
            }
        }
        for transaction in link.transactions.iter() {
            self.lost_with_link(*transaction, &link, now);
        }
        self.fill_later(link.server, now);
    }

    /// Takes the news that a connection could not even be tried: no fault of the server.
    pub fn link_lacked(&mut self, key: LinkKey, now: Moment) {
        if let Some(link) = self.links.get_mut(key.0 as usize) {
            link.is_lacking = true;
        }
        self.link_closed(key, None, now);
    }

    /// Takes the news that a message on a connection does not end.
    pub fn link_stalled(&mut self, key: LinkKey, now: Moment) {
        let Some(link) = self.links.get(key.0 as usize) else { return };
        let to = link.server;
        self.counters.links_silent.bump();
        if let Some(server) = self.servers.get_mut(to as usize).filter(|server| server.is_connected) {
            let change = server.refused(now);
            let why = "its replies take seconds to arrive".to_owned();
            self.changed(to, change, Why::Connection(Some(why)));
        }
        self.link_closed(key, None, now);
    }

    /// Goes on with a query whose connection is gone.
    fn lost_with_link(&mut self, transaction: Transaction, link: &Link, now: Moment) {
        let slot = transaction.request;
        let Some(request) = self.requests.get_mut(slot as usize) else { return };
        let Some(attempt) = request.attempts_mut().get_mut(usize::from(transaction.attempt)) else { return };
        attempt.state = AttemptState::Failed;
        let alternatives = attempt.alternatives;
        let mut failure = if link.is_lacking { Failure::Overloaded } else { Failure::Network };
        // RFC 7766 §6.2.4: servers close idle connections whenever they like, perhaps just as we
        // write.
        if link.is_open && !request.is_measured_only() && !std::mem::replace(&mut request.is_relinked, true) {
            let how = How { stream: true, ..How::default() };
            match self.send_to(slot, link.server, how, alternatives, now) {
                Ok(due) => return self.resent(slot, due, false),
                Err(error) => failure = error.failure().unwrap_or(failure),
            }
        }
        self.lost(slot, Some(failure), false);
    }

    /// Takes one message from a connection.
    pub fn message<'b>(&mut self, key: LinkKey, bytes: &'b [u8], now: Moment) -> Option<Heard<'b>> {
        let header = wire::Header::parse(bytes)?;
        let link = self.links.get_mut(key.0 as usize)?;
        link.used = now;
        link.quiet_since = now;
        link.is_suspect = false;
        if !std::mem::replace(&mut link.is_heard, true)
            && let Some(server) = self.servers.get_mut(link.server as usize)
        {
            server.unheard_links = 0;
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
        let Some(server) = self.servers.get(link.server as usize) else { return };
        let is_idle = link.transactions.is_empty();
        let at = if is_idle {
            let idle = server.idle();
            let until = link.used + idle;
            if now >= until && server.link_count() > server.links_min() {
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
        let server = link.server;
        if !self.has_room_for_link(server) {
            self.counters.links_silent.bump();
            return self.link_closed(key, None, now);
        }
        let Some(link) = self.links.get(key.0 as usize) else { return };
        let outstanding: Vec<Transaction> = link.transactions.iter().copied().collect();
        for transaction in outstanding {
            let Some(request) = self.requests.get_mut(transaction.request as usize) else { continue };
            if request.is_measured_only() || std::mem::replace(&mut request.is_relinked, true) {
                continue;
            }
            let attempt = request.attempts().get(usize::from(transaction.attempt));
            let alternatives = attempt.map_or(Alternatives::NONE, |attempt| attempt.alternatives);
            let how = How { stream: true, ..How::default() };
            if let Ok(due) = self.send_to(transaction.request, server, how, alternatives, now) {
                self.resent(transaction.request, due, false);
            }
        }
    }

    /// Prefers new connections to an server from now on; those with nothing to do go at once.
    pub(super) fn suspect_links(&mut self, key: u32) {
        let Some(server) = self.servers.get(key as usize) else { return };
        for link in server.links.into_iter().flatten() {
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
        if let Some(server) = self.servers.get_mut(link.server as usize) {
            for slot in server.links.iter_mut().filter(|slot| **slot == Some(key)) {
                *slot = None;
            }
        }
    }
}

/// Returns how long a query over a connection is waited for, of which `base` is what the server
/// needs to answer.
pub(super) fn link_patience(base: Span, is_open: bool, alternatives: Alternatives) -> Span {
    let answering = base.max(STREAM_PATIENCE_MIN);
    match (is_open, alternatives.has_siblings, alternatives.has_others) {
        (true, ..) => answering,
        (false, true, _) => ATTEMPT_DELAY,
        (false, false, true) => Span(answering.0 + CONNECT_PATIENCE_OTHERS.0),
        (false, false, false) => Span(answering.0 + CONNECT_PATIENCE.0),
    }
}
