//! Zones that this server has: they are read in memory, and nobody is asked for them.

use std::sync::Arc;

use rand::Rng;
use wire::{Class, Flags, Message, Name, Question, Writer};
use zone::{Answered, Asked, Zone, Zones};

use super::fetches::{FetchEnd, Held};
use super::{FetchKey, Resolver};
use crate::budget::Limit;
use crate::delegation::Delegation;
use crate::failure::{Failure, Reason};
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::routes::RouteKey;
use crate::scrub::Reading;
use crate::trace::{TraceEvent, TraceServer};

/// Zones of this server that a resolver may read.
#[derive(Clone, Default)]
pub struct OwnZones {
    /// Those that clients are answered from. One that not everybody may query is read only if a
    /// route names it: whoever asks the resolver may not be one of its clients.
    pub for_clients: Option<Arc<Zones>>,
    /// Those for resolvers alone, each read only if a route names it.
    pub for_resolvers: Option<Arc<Zones>>,
}

impl OwnZones {
    /// Returns the zone with this apex that a route leads to, and those it is among.
    fn get(&self, route: RouteKey, apex: Name<'_>) -> Option<(&Zones, &Zone)> {
        if route == RouteKey::OWN {
            return among(self.for_clients.as_ref(), apex).filter(|(all, _)| all.is_for_everybody(apex));
        }
        among(self.for_resolvers.as_ref(), apex).or_else(|| among(self.for_clients.as_ref(), apex))
    }
}

/// Returns the zone with this apex among others, with these.
fn among<'z>(zones: Option<&'z Arc<Zones>>, apex: Name<'_>) -> Option<(&'z Zones, &'z Zone)> {
    let all = zones?;
    Some((all, all.get(apex)?))
}

impl Resolver {
    /// Reads these zones in memory from now on, those that settings have it read: nobody is asked
    /// for them.
    pub fn serve(&mut self, zones: OwnZones) {
        self.own = zones;
    }

    /// Returns the zone of ours that a question falls into, unless a route or a delegation leads as
    /// close to the name.
    pub(super) fn own_zone(
        &mut self,
        question: &HeapQuestion,
        failed_route: Option<RouteKey>,
        now: Moment,
    ) -> Option<Delegation> {
        let all = self.own.for_clients.as_ref().filter(|_| self.settings.reads_own_zones)?;
        let place = question.place();
        let apex = all.zone_of(place)?.apex();
        let labels = apex.label_count();
        if !all.is_for_everybody(apex) || self.routes.has(apex) {
            return None;
        }
        let route = self.routes.closest(place, failed_route).and_then(|key| self.routes.get(key));
        if route.is_some_and(|route| route.zone.as_name().label_count() > labels) {
            return None;
        }
        let cut = self.memory.delegation(place, now.seconds());
        if cut.is_some_and(|cut| cut.zone.as_name().label_count() > labels) {
            return None;
        }
        Some(Delegation::of_nobody(HeapName::new(apex), Some(RouteKey::OWN)))
    }

    /// Lets a fetch from a zone of ours go on that has nothing to be judged yet.
    pub(super) fn step_own(&mut self, key: FetchKey, now: Moment) {
        let Some(fetch) = self.fetch_mut(key) else { return };
        // What was bogus would be so the next time.
        if let Some(bogus) = fetch.bogus.take() {
            let (failure, held) = *bogus;
            return self.end_unproved(key, held, failure, now);
        }
        // The buffer stays: it is as large as a message can be.
        let mut octets = std::mem::take(&mut self.own_reply);
        octets.resize(wire::MESSAGE_OCTETS_MAX, 0);
        self.read_own(key, &mut octets, now);
        self.own_reply = octets;
    }

    /// Reads the answer of a zone of ours, which is written into `octets`.
    fn read_own(&mut self, key: FetchKey, octets: &mut [u8], now: Moment) {
        let Some(fetch) = self.fetch(key) else { return };
        let question = fetch.question.clone();
        let (zone, route) = (fetch.delegation.zone.clone(), fetch.delegation.route);
        let own = route.and_then(|route| self.own.get(route, zone.as_name()));
        let Some((zones, own)) = own else {
            return self.end_own(key, Reason::NotLoaded, zone);
        };
        let asked = Asked {
            random: self.rng.next_u32(),
            // Modulo 2^32, as signatures count (RFC 4034 §3.1.5).
            now: self.settings.trust.time.or(self.chains.unix_seconds(now) as u32),
            age_at: now.seconds(),
            ..Asked::new(question.name.as_name(), question.rtype, self.wants_signatures())
        };
        let Some(len) = write_answer(&question, octets, |writer| zones.answer_from(own, &asked, writer))
        else {
            return self.end_own(key, Reason::Faulty, zone);
        };
        // It was written here, and can be read.
        let Some(Ok(message)) = octets.get(..len).map(Message::parse) else {
            return self.end_own(key, Reason::Faulty, zone);
        };
        let Some((reading, _)) = self.read_reply(key, &message) else {
            return self.end_over_limit(key, Limit::Octets);
        };
        self.counts.own += 1;
        self.note(key, TraceServer::Own, &TraceEvent::of(&reading), now);
        let reading = match reading {
            Reading::Fault(_) => return self.end_own(key, Reason::Faulty, zone),
            // There is no other server that could have a better one.
            Reading::Doubtful(answer, _) => Reading::Answer(answer),
            reading @ (Reading::Answer(_) | Reading::Referral(_)) => reading,
        };
        let held = Held { reading, root: None, server: None, is_forgeable: false, scope: None };
        self.hold(key, held, now);
    }

    fn end_own(&mut self, key: FetchKey, reason: Reason, zone: HeapName) {
        self.end_fetch(key, &FetchEnd::Failed(Failure::of_zone(reason, zone)));
    }
}

/// Has an answer to a question written as a server of the zone would send it; returns how long it
/// is, and nothing if it is no answer.
fn write_answer(
    question: &HeapQuestion,
    octets: &mut [u8],
    answer: impl FnOnce(&mut Writer<'_>) -> Answered,
) -> Option<usize> {
    let limit = octets.len();
    let mut writer = Writer::new(octets, limit, 0, Flags::QR);
    let (qname, qtype) = (question.name.as_name(), question.rtype);
    writer.question(&Question { qname, qtype, qclass: Class::IN }).ok()?;
    let answered = answer(&mut writer);
    if answered.failure.is_some() || answered.is_truncated {
        return None;
    }
    let flags = Flags::QR.with_rcode(answered.rcode);
    writer.set_flags(if answered.is_authoritative { flags.with(Flags::AA) } else { flags });
    Some(writer.finish())
}
