//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What servers say, and whether to believe it.

use std::net::SocketAddr;

use cache::servers::{Edns, LetterCase};
use queries::packet::{self, Echo};
use timers::Moment;
use wire::{Flags, Header, Message, Opcode, Rcode};

use super::cookies::{self, Echoed};
use super::network::{PoolNetwork, PoolSocketKey};
use super::outstanding::Via;
use super::{Arrival, Authorities, Heard, ms};

/// Wrong replies to one query after which it goes on over TCP: somebody may be guessing.
const WRONG_MAX: u8 = 4;
/// Queries that one stray datagram is counted against: those that ask one server one question
/// through one socket are hardly ever more than one.
const AIMED_AT_MAX: usize = 8;
/// Seconds for which it is remembered that a server answers with EDNS, and that it does not.
const EDNS_WORKS_SECONDS: u32 = 24 * 60 * 60;
const EDNS_NONE_SECONDS: u32 = 15 * 60;

/// What to do with a message that carries the ID of a query.
enum Verdict {
    /// It is the reply.
    Believed(Arrival),
    /// Drop it, and count it as a guess.
    Wrong,
    /// Drop it, and ask over TCP at once.
    Doubted,
    /// Ask again over TCP.
    ToStream,
    /// Ask again in the same way: without EDNS, or with another cookie.
    Again,
}

impl<N: PoolNetwork> Authorities<N> {
    /// Takes one datagram; `is_cut` says that it was longer than our buffer.
    pub fn datagram<'b>(
        &mut self,
        key: PoolSocketKey,
        from: SocketAddr,
        bytes: &'b [u8],
        is_cut: bool,
        now: Moment,
    ) -> Option<Heard<'b>> {
        let Some(header) = Header::parse(bytes) else {
            self.counters.mismatched.bump();
            return None;
        };
        let slot = self.pool.find(key, header.id);
        match slot.filter(|&slot| self.queries.get(slot as usize).is_some_and(|query| query.is_from(from))) {
            Some(slot) => self.reply(slot, &header, bytes, is_cut, now),
            None => {
                self.stray(key, from, bytes, now);
                None
            }
        }
    }

    /// Takes a message from the right place that carries the ID of a query.
    pub(super) fn reply<'b>(
        &mut self,
        slot: u32,
        header: &Header,
        bytes: &'b [u8],
        is_cut: bool,
        now: Moment,
    ) -> Option<Heard<'b>> {
        self.tap_reply(slot, bytes, now);
        let parsed = if is_cut { None } else { Message::parse(bytes).ok() };
        match self.judge(slot, header, bytes, parsed.as_ref(), is_cut, now) {
            Verdict::Believed(arrival) => {
                self.counters.replies.bump();
                let query = self.end(slot, true)?;
                return Some(Heard { tag: query.tag, message: parsed?, arrival });
            }
            Verdict::Wrong => {
                self.counters.mismatched.bump();
                self.wrong(slot, now);
            }
            Verdict::Doubted => {
                self.counters.mismatched.bump();
                if let Some(query) = self.queries.get_mut(slot as usize) {
                    query.tried.refolded = true;
                }
                self.distrust(slot, now);
            }
            Verdict::ToStream => self.move_to_stream(slot, true, now),
            Verdict::Again => self.again(slot, now),
        }
        None
    }

    /// Judges a message; `parsed` is `None` if it `is_cut` or malformed. What is learned about the
    /// server is written down.
    fn judge(
        &mut self,
        slot: u32,
        header: &Header,
        bytes: &[u8],
        parsed: Option<&Message<'_>>,
        is_cut: bool,
        now: Moment,
    ) -> Verdict {
        let Some(query) = self.queries.get_mut(slot as usize) else { return Verdict::Wrong };
        let (address, is_stream) = (query.address, matches!(query.via, Via::Link(_)));
        let is_reply = header.flags.has(Flags::QR) && header.flags.opcode() == Opcode::QUERY;
        let is_error = !matches!(header.flags.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
        let echo = packet::echo(bytes, header, query.asked(&[], &[]), query.case_seed);
        match echo {
            Echo::Same | Echo::OtherCase if is_reply => (),
            // A server that could not read our query cannot repeat it.
            Echo::Absent if is_reply && is_error => (),
            _ => return Verdict::Wrong,
        }
        let is_truncated = is_cut || header.flags.has(Flags::TC);
        if is_stream && is_truncated && query.tried.encrypted.is_some() && !is_cut {
            // A server that cuts replies for one transport alone has the rest on another.
            query.tried.encrypted = None;
            return Verdict::ToStream;
        }
        if is_stream && is_truncated {
            // There is no other way to ask for the rest, and a part passes for the whole.
            return Verdict::Wrong;
        }
        if !is_stream && is_truncated {
            self.counters.truncated.bump();
            return Verdict::ToStream;
        }
        let Some(message) = parsed else { return Verdict::Wrong };
        if query.is_for_another_subnet(message) {
            return Verdict::Wrong;
        }
        let echoed = if query.has_edns && query.cookies {
            cookies::echoed(message, self.cookie_secret.client(address))
        } else {
            Echoed::Absent
        };
        if echoed == Echoed::Wrong {
            return Verdict::Wrong;
        }
        let has_cookie = matches!(echoed, Echoed::Ours(_));
        if echo == Echo::OtherCase {
            if !is_stream && !has_cookie {
                // Either a guess at our query or a server that folds names: the same over TCP tells
                // which. One datagram, which anybody may have sent, is no proof.
                return Verdict::Doubted;
            }
            self.servers.record_case(address, LetterCase::Changed);
        }
        if let Echoed::Ours(Some(cookie)) = echoed
            && self.servers.cookie(address).is_none_or(|known| known.as_bytes() != cookie)
        {
            self.servers.record_cookie(address, cookie);
        }
        if query.expects_cookie && !has_cookie {
            if !is_stream {
                self.counters.cookies_missing.bump();
                query.tried.cookieless = true;
                return Verdict::ToStream;
            }
            // Nobody guesses on a connection: this server has no cookies any more.
            self.servers.forget_cookie(address);
        }
        if message.rcode() == Rcode::BADCOOKIE && !is_stream {
            self.counters.cookies_refused.bump();
            let is_new = matches!(echoed, Echoed::Ours(Some(_)));
            let is_first = !std::mem::replace(&mut query.tried.new_cookie, true);
            return if is_new && is_first { Verdict::Again } else { Verdict::ToStream };
        }
        if query.has_edns && packet::dislikes_edns(message) {
            self.counters.edns_refused.bump();
            query.tried.plain = true;
            return Verdict::Again;
        }
        if query.tried.caseless {
            self.servers.record_case(address, LetterCase::Changed);
        } else if query.case == LetterCase::Unknown && echo == Echo::Same {
            self.servers.record_case(address, LetterCase::Kept);
        }
        if query.has_edns && message.edns.is_some() && query.edns == Edns::Unknown {
            self.servers.record_edns(address, Edns::Works, ms(now), EDNS_WORKS_SECONDS);
        }
        if !query.has_edns && !is_error && query.edns != Edns::None {
            self.servers.record_edns(address, Edns::None, ms(now), EDNS_NONE_SECONDS);
        }
        Verdict::Believed(match (is_stream, has_cookie) {
            (true, _) => Arrival::Tcp,
            (false, true) => Arrival::UdpWithCookie,
            (false, false) => Arrival::Udp,
        })
    }

    /// Takes a datagram that no query on its socket can have as its reply: late, or forged.
    fn stray(&mut self, key: PoolSocketKey, from: SocketAddr, bytes: &[u8], now: Moment) {
        self.counters.mismatched.bump();
        if self.pool.stray(key) && self.pool.retire(key, &self.limits) {
            self.counters.ports_abandoned.bump();
        }
        // Whose question is it? Replies to queries that ended match nobody and do no harm. An error
        // without a question may be a guess at any query to this server.
        let claimed = packet::claimed(bytes);
        let question = claimed.map(|(name, rtype)| self.question_key.hash(name, u64::from(rtype.0)) as u32);
        let queries = &self.queries;
        let is_aimed = |slot: u32| queries.get(slot as usize).is_some_and(|query| query.is_from(from));
        let mut aimed_at = [None; AIMED_AT_MAX];
        let asking = self.pool.iter(key).filter(|transaction| {
            question.is_none_or(|question| transaction.question == question) && is_aimed(transaction.request)
        });
        for (room, transaction) in aimed_at.iter_mut().zip(asking) {
            *room = Some(transaction.request);
        }
        for slot in aimed_at.into_iter().flatten() {
            self.wrong(slot, now);
        }
    }

    /// Counts a wrong reply to a query; too many of them look like guessing.
    fn wrong(&mut self, slot: u32, now: Moment) {
        let Some(query) = self.queries.get_mut(slot as usize) else { return };
        query.wrong = query.wrong.saturating_add(1);
        if query.wrong >= WRONG_MAX {
            self.distrust(slot, now);
        }
    }

    /// Goes on with a query over TCP, where guessing is hopeless; datagrams for it are no longer
    /// taken.
    fn distrust(&mut self, slot: u32, now: Moment) {
        if self.queries.get(slot as usize).is_some_and(|query| !query.tried.stream) {
            self.counters.spoofs_suspected.bump();
            self.move_to_stream(slot, false, now);
        }
    }
}
