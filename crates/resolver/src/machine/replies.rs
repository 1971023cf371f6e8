//! What comes back from servers, and what does not.

use std::net::SocketAddr;
use std::sync::Arc;

use wire::Message;

use super::fetches::{Aim, Held};
use super::reports::agent_of;
use super::subnets::scope_of;
use super::{FetchKey, Node, OpenAsk, Resolver};
use crate::addresses::Family;
use crate::budget::Limit;
use crate::effect::{Arrival, AskKey, How, Unanswered};
use crate::moment::Moment;
use crate::scrub::{self, Asked, Doubt, Fault, Reading, Referral, Speaker, Terms, Work};
use crate::trace::TraceEvent;

/// Signatures of one RRset that are taken.
const SIGNATURES_MAX: usize = 16;
/// Those that are passed on without being checked.
const RELAYED_SIGNATURES_MAX: usize = 8;

impl Resolver {
    /// A server answered; the reply is the one to this query as far as the transport can tell.
    pub fn heard(&mut self, key: AskKey, reply: &Message<'_>, arrival: Arrival, now: Moment) {
        let Some(ask) = self.asks.try_remove(key.0 as usize) else { return };
        self.families.heard(Family::of(ask.address.ip()), now);
        let took_us = u32::try_from(now.since_us(ask.sent_at)).unwrap_or(u32::MAX);
        self.memory.tables.servers.record_round_trip(ask.address, took_us);
        if ask.is_first {
            self.first_replies.heard(took_us);
        }
        if let Some(fetch) = ask.fetch {
            self.forget_ask(fetch, key);
            self.charge_late(fetch, now);
            self.take_reply(fetch, &ask, reply, arrival, now);
        }
        self.run(now);
    }

    /// A server did not answer.
    pub fn unanswered(&mut self, key: AskKey, why: Unanswered, now: Moment) {
        if why != Unanswered::NotSent {
            self.charge(key, now);
        }
        let Some(ask) = self.asks.try_remove(key.0 as usize) else { return };
        if let Some(fetch) = ask.fetch {
            self.note(fetch, ask.address, &TraceEvent::Unanswered(why), now);
            self.forget_ask(fetch, key);
            if ask.is_awaited() {
                self.stop_timer(fetch);
            }
            self.ready.push_back(Node::Fetch(fetch));
        }
        self.run(now);
    }

    /// The server that a fetch waits for is late: another one is asked, too.
    pub(super) fn patience_ended(&mut self, key: FetchKey, now: Moment) {
        let Some(fetch) = self.fetch_mut(key) else { return };
        fetch.timer = None;
        for ask in fetch.asks.clone() {
            if let Some(late) = self.ask_mut(ask).filter(|ask| ask.is_awaited()) {
                late.is_late = true;
                let address = late.address;
                self.note(key, address, &TraceEvent::Late, now);
            }
            if self.ask(ask).is_some_and(OpenAsk::is_late_by_itself) {
                self.charge(ask, now);
            }
        }
        self.take_glue_of_late(key, now);
        self.ready.push_back(Node::Fetch(key));
    }

    /// Charges a server with its silence, once; but while nobody answers, it is our own network
    /// that is silent.
    fn charge(&mut self, key: AskKey, now: Moment) {
        let Self { asks, families, memory, .. } = self;
        if let Some(ask) = asks.get_mut(key.0 as usize)
            && !ask.is_charged
            && families.heard_after(ask.sent_at)
        {
            ask.is_charged = true;
            memory.tables.servers.record_silence(ask.address, now.ms());
        }
    }

    /// Somebody answered a fetch: now it is known that those who are late are late by themselves.
    fn charge_late(&mut self, key: FetchKey, now: Moment) {
        let asks = self.fetch(key).map(|fetch| fetch.asks.clone()).unwrap_or_default();
        for key in asks {
            if self.ask(key).is_some_and(OpenAsk::is_late_by_itself) {
                self.charge(key, now);
            }
        }
    }

    fn forget_ask(&mut self, fetch: FetchKey, key: AskKey) {
        if let Some(fetch) = self.fetch_mut(fetch) {
            fetch.asks.retain(|&ask| ask != key);
        }
    }

    pub(super) fn stop_timer(&mut self, key: FetchKey) {
        if let Some(at) = self.fetch_mut(key).and_then(|fetch| fetch.timer.take()) {
            self.timers.remove(&(at, key));
        }
    }

    fn take_reply(
        &mut self,
        key: FetchKey,
        ask: &OpenAsk,
        reply: &Message<'_>,
        arrival: Arrival,
        now: Moment,
    ) {
        let Some((reading, root)) = self.read_reply(key, reply) else {
            return self.end_over_limit(key, Limit::Octets);
        };
        self.note(key, ask.address, &TraceEvent::of(&reading), now);
        let (server, is_forgeable) = (Some(ask.address), arrival == Arrival::Udp);
        let scope = scope_of(reply, ask.subnet);
        match reading {
            Reading::Fault(fault) => self.take_fault(key, ask, fault, now),
            Reading::Doubtful(answer, doubt) => {
                let reading = Reading::Answer(answer);
                self.doubt(key, ask, Held { reading, root, server, is_forgeable, scope }, doubt, now);
            }
            reading => self.hold(key, Held { reading, root, server, is_forgeable, scope }, now),
        }
    }

    /// Puts a doubtful reply aside, so that one more server is asked; the second such reply counts.
    fn doubt(&mut self, key: FetchKey, ask: &OpenAsk, held: Held, doubt: Doubt, now: Moment) {
        let Some(fetch) = self.fetch_mut(key) else { return };
        if fetch.doubtful.is_some() {
            return self.hold(key, held, now);
        }
        fetch.doubtful = Some(Box::new(held));
        fetch.sends_left = fetch.sends_left.min(1);
        let fault = match doubt {
            Doubt::Recursive => Fault::Lame,
            Doubt::Empty => Fault::Malformed,
        };
        self.take_fault(key, ask, fault, now);
    }

    /// Reads a reply for a fetch, whose question pays for its octets, and the root's servers if it
    /// names them; `None` if it may not cost so much.
    pub(super) fn read_reply(
        &mut self,
        key: FetchKey,
        reply: &Message<'_>,
    ) -> Option<(Reading, Option<Referral>)> {
        let octets = reply.as_bytes().len();
        if self.pay_for_fetch(key, |budget| budget.read(octets)) == Err(Limit::Octets) {
            return None;
        }
        if self.settings.error_reports
            && let Some(agent) = agent_of(reply)
            && let Some(fetch) = self.fetch_mut(key)
        {
            fetch.agent = Some(agent);
        }
        let fetch = self.fetch(key)?;
        let (delegation, question) = (Arc::clone(&fetch.delegation), fetch.question.clone());
        let primes = self.routes.stub(&delegation).is_some_and(|stub| stub.primes);
        let asked = Asked {
            zone: delegation.zone.as_name(),
            qname: question.name.as_name(),
            qtype: question.rtype,
            place: question.place(),
            routes: &self.routes,
            primes: primes || delegation.zone.as_name().is_root(),
            by: if fetch.forwarding.is_none() {
                Speaker::Server
            } else if self.validates() && !question.unchecked {
                Speaker::Forwarder { is_judged: true }
            } else {
                Speaker::Forwarder { is_judged: false }
            },
        };
        let work = Work::of_one_reply(std::mem::take(&mut self.room));
        let terms = Terms {
            name: &question.name,
            addresses: &self.settings.addresses,
            servers_max: self.settings.servers_max,
            ttl_max: self.settings.ttl_max,
            negative_ttl_max: self.settings.negative_ttl_max,
            dnssec_ok: self.wants_signatures(),
            signatures_max: if self.validates() { SIGNATURES_MAX } else { RELAYED_SIGNATURES_MAX },
            work: &work,
            requires_authority: self.settings.requires_authority,
            takes_servers: !self.settings.minimal_responses,
            takes_addresses: !self.settings.minimal_additional,
            takes_servers_with_expansions: !self.settings.minimal_expansions,
            takes_servers_with_denials: !self.settings.minimal_denials,
            reads_ns_ttl: self.settings.own_ns_ttl,
            takes_referrals: self.settings.takes_referrals,
        };
        let reading = scrub::read(reply, &asked, &terms);
        let root = scrub::read_priming(reply, &asked, &terms);
        self.room = work.into_room();
        Some((reading, root))
    }

    /// A DNAME that somebody may have forged is asked for again where that is hard.
    pub(super) fn ask_over_tcp(&mut self, key: FetchKey, server: SocketAddr, now: Moment) {
        let how = How { over_tcp: true, ..How::unknown(&self.settings) };
        let at =
            self.fetch(key).and_then(|fetch| fetch.servers.iter().position(|other| other.address == server));
        let facts = self.memory.tables.servers.look(server, now.ms());
        let is_asked = at.is_some_and(|at| self.send(key, (at, facts), how, Aim::Answer, now));
        if !is_asked {
            self.stop_timer(key);
            self.ready.push_back(Node::Fetch(key));
        }
    }

    fn take_fault(&mut self, key: FetchKey, ask: &OpenAsk, fault: Fault, now: Moment) {
        let Self { fetches, memory, settings, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return };
        if let Some(server) = fetch.servers.iter_mut().find(|server| server.address == ask.address) {
            server.fault = Some(fault);
        }
        if fault == Fault::Lame {
            let zone_hash = memory.tables.rrsets.hash_key().hash_name(fetch.delegation.zone.as_name());
            memory.tables.servers.record_lame(ask.address, zone_hash, now.ms(), settings.lame_seconds);
        }
        if ask.is_awaited() {
            self.stop_timer(key);
        }
        self.ready.push_back(Node::Fetch(key));
    }
}
