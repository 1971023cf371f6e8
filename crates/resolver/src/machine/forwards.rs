//! Questions to forwarders, which choose among themselves and find answers of any zone.

use std::net::SocketAddr;

use wire::{ClientSubnet, Message};

use super::fetches::{Fetch, Forwarding, Held};
use super::subnets::scope_of;
use super::{FetchKey, Node, OpenForward, Resolver};
use crate::budget::Limit;
use crate::effect::{Effect, Forward, ForwardKey, Unanswered};
use crate::failure::Reason;
use crate::moment::Moment;
use crate::scrub::{Fault, Reading};
use crate::trace::{TraceEvent, TraceServer};

impl Resolver {
    /// A forwarder answered, or several gave one answer; `server` is `None` where it is not known
    /// which.
    pub fn heard_forwarders(
        &mut self,
        key: ForwardKey,
        reply: &Message<'_>,
        server: Option<SocketAddr>,
        now: Moment,
    ) {
        if let Some((key, subnet)) = self.close_forward(key) {
            self.take_forwarded(key, reply, (server, subnet), now);
        }
        self.run(now);
    }

    /// No forwarder answered, or none could be asked.
    pub fn forwarders_failed(&mut self, key: ForwardKey, why: Unanswered, now: Moment) {
        if let Some((key, _)) = self.close_forward(key) {
            // That a cache has nothing is nothing that happened.
            if self.is_second_level(key) {
                self.fail_forward(key, Reason::Silent);
                return self.run(now);
            }
            self.note(key, TraceServer::Forwarders, &TraceEvent::Unanswered(why), now);
            self.fail_forward(key, Reason::Silent);
        }
        self.run(now);
    }

    /// Returns which fetch asked forwarders, and what they were told of the client.
    fn close_forward(&mut self, key: ForwardKey) -> Option<(FetchKey, Option<ClientSubnet>)> {
        let OpenForward { fetch, subnet } = self.forwards.try_remove(key.0 as usize)?;
        let fetch = fetch?;
        if let Some(forwarding) = self.fetch_mut(fetch).and_then(|fetch| fetch.forwarding.as_mut()) {
            forwarding.open = None;
        }
        Some((fetch, subnet))
    }

    fn take_forwarded(
        &mut self,
        key: FetchKey,
        reply: &Message<'_>,
        (server, subnet): (Option<SocketAddr>, Option<ClientSubnet>),
        now: Moment,
    ) {
        let Some((reading, _)) = self.read_reply(key, reply) else {
            return self.end_over_limit(key, Limit::Octets);
        };
        let who = match server {
            Some(server) => TraceServer::At(server),
            None if self.is_second_level(key) => TraceServer::SecondLevel,
            None => TraceServer::Forwarders,
        };
        self.note(key, who, &TraceEvent::of(&reading), now);
        match reading {
            // They have asked each other already, as far as settings have them do so.
            Reading::Fault(Fault::Lame) => self.fail_forward(key, Reason::Lame),
            Reading::Fault(_) => self.fail_forward(key, Reason::Faulty),
            reading => {
                let scope = scope_of(reply, subnet);
                let held = Held { reading, root: None, server, is_forgeable: false, scope };
                self.hold(key, held, now);
            }
        }
    }

    fn fail_forward(&mut self, key: FetchKey, reason: Reason) {
        if let Some(forwarding) = self.fetch_mut(key).and_then(|fetch| fetch.forwarding.as_mut()) {
            forwarding.failed = Some(reason);
        }
        self.ready.push_back(Node::Fetch(key));
    }

    /// Lets a fetch from forwarders go on that has no reply to be judged: asks them, once more if
    /// the reply before was bogus, or ends it.
    pub(super) fn step_forward(&mut self, key: FetchKey, now: Moment) {
        let Some(Forwarding { open: None, failed, .. }) =
            self.fetch(key).and_then(|fetch| fetch.forwarding.as_ref())
        else {
            return;
        };
        let is_asked = failed.is_none()
            && if self.is_second_level(key) { self.look_up(key) } else { self.forward(key, now) };
        if is_asked {
            return;
        }
        match self.fetch_mut(key).and_then(|fetch| fetch.bogus.take()) {
            Some(bogus) => {
                let (failure, held) = *bogus;
                self.end_unproved(key, held, failure, now);
            }
            None => self.end_failed(key),
        }
    }

    /// Has the forwarders asked, if that can be paid for; returns whether they are.
    fn forward(&mut self, key: FetchKey, now: Moment) -> bool {
        let paid = self.pay_for_fetch(key, |budget| budget.send(now));
        let (validates, wants_signatures) = (self.validates(), self.wants_signatures());
        let subnet = self.fetch(key).and_then(|fetch| {
            let forwarding = fetch.forwarding.as_ref()?;
            self.told_forwarders(fetch, forwarding.forwarders?)
        });
        let Self { fetches, forwards, effects, routes, .. } = self;
        let Some(fetch) = fetches.get_mut(key.0 as usize) else { return false };
        if let Err(limit) = paid {
            fetch.spent = Some(limit);
            return false;
        }
        let Fetch { forwarding: Some(forwarding), question, delegation, .. } = fetch else { return false };
        let Some(forwarders) = forwarding.forwarders else { return false };
        let open = ForwardKey(forwards.insert(OpenForward { fetch: Some(key), subnet }) as u32);
        forwarding.open = Some(open);
        let route = delegation.route.and_then(|route| routes.get(route));
        effects.push_back(Effect::Forward(Forward {
            key: open,
            forwarders,
            qname: question.name.clone(),
            qtype: question.rtype,
            validates,
            wants_signatures,
            refused: forwarding.refused.clone(),
            subnet,
            is_optional: route.is_some_and(|route| route.first),
        }));
        self.note(key, TraceServer::Forwarders, &TraceEvent::Sent, now);
        true
    }
}
