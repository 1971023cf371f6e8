//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How queries leave, and what becomes of those that cannot, or that nothing comes back for.

use cache::servers::LetterCase;
use queries::packet::{self, CaseSeed, QUERY_OCTETS_MAX, QueryFormat};
use rand::Rng;
use timers::{Moment, TimerKey};

use super::cookies::CookieOption;
use super::deadlines::Token;
use super::network::{Carrier, Family, PoolNetwork, Unsent};
use super::outstanding::Via;
use super::{Authorities, Unanswered};

impl<N: PoolNetwork> Authorities<N> {
    /// Sends a query as a datagram. The first one sets the deadline for all.
    pub(super) fn send_datagram(&mut self, slot: u32, now: Moment) -> Result<(), Unanswered> {
        let query = self.queries.get(slot as usize).ok_or(Unanswered::NotSent)?;
        let family = Family::of(query.address.ip());
        let question = self.question_key.hash(query.name.as_name(), u64::from(query.qtype.0)) as u32;
        let (pool, mut means) = self.pool_and_means();
        let drawn = pool.draw(family, &mut means, now);
        let begun = drawn.and_then(|key| Some((key, pool.begin(key, means.rng, slot, question)?)));
        let Some((key, id)) = begun else {
            self.counters.shortages.bump();
            return Err(Unanswered::NotSent);
        };
        let mut packet = [0; QUERY_OCTETS_MAX];
        let len = self.write_query(slot, id, Via::Socket(key), &mut packet);
        self.counters.sent_udp.bump();
        self.set_deadline(slot, now + self.limits.udp_timeout, false);
        if let (Some(packet), Some(query)) = (packet.get(..len), self.queries.get(slot as usize)) {
            self.network.queue(key, query.address, packet);
            self.tap_query(slot, packet, now);
        }
        Ok(())
    }

    /// Sends a query over a connection, which may have to be made.
    pub(super) fn send_stream(&mut self, slot: u32, now: Moment) -> Result<(), Unanswered> {
        let query = self.queries.get_mut(slot as usize).ok_or(Unanswered::NotSent)?;
        let is_first = !std::mem::replace(&mut query.tried.stream, true);
        let port = query.address.port();
        self.send_on_link(slot, (Carrier::Tcp, port), now)?;
        self.counters.sent_tcp.bump();
        self.set_deadline(slot, now + self.limits.tcp_timeout, is_first);
        Ok(())
    }

    /// Writes a query to a connection of this kind, to this port of its server.
    pub(super) fn send_on_link(
        &mut self,
        slot: u32,
        carrier: (Carrier, u16),
        now: Moment,
    ) -> Result<(), Unanswered> {
        let address = self.queries.get(slot as usize).ok_or(Unanswered::NotSent)?.address;
        let Some((key, id)) = self.link_for(address, carrier, slot, now) else {
            self.counters.shortages.bump();
            return Err(Unanswered::NotSent);
        };
        let mut packet = [0; QUERY_OCTETS_MAX];
        let len = self.write_query(slot, id, Via::Link(key), &mut packet);
        if let Some(packet) = packet.get(..len) {
            self.network.write(key, packet);
            self.tap_query(slot, packet, now);
        }
        Ok(())
    }

    /// Sends a query for which there is no room on an encrypted connection.
    pub(super) fn send_plain(&mut self, slot: u32, now: Moment) -> Result<(), Unanswered> {
        if let Some(query) = self.queries.get_mut(slot as usize) {
            query.tried.encrypted = None;
        }
        self.send_datagram(slot, now)
    }

    /// Writes a query, and remembers how it looks; returns its octets.
    fn write_query(&mut self, slot: u32, id: u16, via: Via, packet: &mut [u8; QUERY_OCTETS_MAX]) -> usize {
        let Self { queries, servers, cookie_secret, rng, options: of_servers, .. } = self;
        let Some(query) = queries.get_mut(slot as usize) else { return 0 };
        (query.id, query.via) = (id, via);
        query.has_edns = !query.tried.plain;
        let is_random = query.case != LetterCase::Changed && !query.tried.caseless;
        query.case_seed = is_random.then(|| CaseSeed(rng.next_u32()));
        let known = servers.cookie(query.address).filter(|_| query.has_edns && query.cookies);
        query.expects_cookie = known.is_some();
        let cookie = CookieOption::new(cookie_secret.client(query.address), known.as_ref());
        let format = QueryFormat {
            recursion_desired: query.recursion_desired,
            edns: query.has_edns.then_some(query.udp_octets),
            // RFC 7830: the length of a message gives away what is asked.
            pads: query.tried.encrypted.is_some(),
            case: query.case_seed,
        };
        let options = if query.cookies { cookie.as_bytes() } else { &[] };
        packet::write(packet, id, query.asked(options, of_servers.of_server(query.address.ip())), format)
    }

    /// Sets when a query counts as unanswered; one that is set already stays unless it `moves`.
    pub(super) fn set_deadline(&mut self, slot: u32, at: Moment, moves: bool) {
        let Some(query) = self.queries.get_mut(slot as usize) else { return };
        if query.timer != TimerKey::NONE {
            if !moves {
                return;
            }
            self.wheel.cancel(query.timer);
        }
        query.timer = self.wheel.set(at, Token::Query(slot));
    }

    /// Sends a query once more in the same way: without EDNS, with another cookie or letter case.
    pub(super) fn again(&mut self, slot: u32, now: Moment) {
        let tried = self.queries.get(slot as usize).map(|query| query.tried).unwrap_or_default();
        self.withdraw(slot, true);
        let sent = match tried.encrypted {
            Some(carrier) => self.send_encrypted(slot, carrier, now).or_else(|_| self.send_plain(slot, now)),
            None if tried.stream => self.send_stream(slot, now),
            None => self.send_datagram(slot, now),
        };
        if let Err(why) = sent {
            self.fail(slot, why);
        }
    }

    /// Goes on with a query over TCP.
    pub(super) fn move_to_stream(&mut self, slot: u32, is_answered: bool, now: Moment) {
        self.withdraw(slot, is_answered);
        if let Err(why) = self.send_stream(slot, now) {
            self.fail(slot, why);
        }
    }

    /// Ends a query that failed over TCP, unless it went there for its letter case alone.
    ///
    /// A server that folds names and has no TCP is asked as it can be: once more as a datagram,
    /// without random case. To get there, a forger must have hit port and ID already.
    pub(super) fn fail_over(&mut self, slot: u32, why: Unanswered, now: Moment) {
        if self.leave_encryption(slot, why, now) {
            return;
        }
        let Some(query) = self.queries.get_mut(slot as usize) else { return };
        if query.tried.cookieless {
            // A server that gave its cookies up and has no TCP would never be heard again.
            self.servers.forget_cookie(query.address);
        }
        if !query.tried.refolded || std::mem::replace(&mut query.tried.caseless, true) {
            return self.fail(slot, why);
        }
        query.tried.stream = false;
        self.again(slot, now);
    }

    /// Ends a query that nothing came back for.
    pub(super) fn query_due(&mut self, slot: u32, now: Moment) {
        let Some(query) = self.queries.get_mut(slot as usize) else { return };
        query.timer = TimerKey::NONE;
        let via = query.via;
        self.counters.timeouts.bump();
        self.fail_over(slot, Unanswered::Timeout, now);
        if let Via::Link(key) = via {
            self.link_was_silent(key, now);
        }
    }

    /// Takes the news that a datagram could not be sent.
    pub(super) fn unsent(&mut self, unsent: &Unsent) {
        let Some(slot) = self.pool.find(unsent.socket, unsent.id) else { return };
        if !self.queries.get(slot as usize).is_some_and(|query| query.is_from(unsent.to)) {
            return;
        }
        let why = if unsent.is_ours {
            self.counters.shortages.bump();
            Unanswered::NotSent
        } else {
            self.counters.network_errors.bump();
            Unanswered::Unreachable
        };
        self.fail(slot, why);
    }
}
