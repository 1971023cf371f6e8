//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What workers tell others: counters, and a record of each query that a policy wants told.
//!
//! Never waits for a reader: every worker has a ring of its own with one writer and one reader.
//! Writing a record is a score of plain stores and one release store; a record that finds no room
//! is dropped and counted.

#![forbid(unsafe_code)]

mod counter;
mod path;
mod record;
mod ring;

use std::net::SocketAddr;

use wire::{EdeCode, Header, Query, Rcode};

use clients::client::{Client, Now};
use clients::gate::prefix_set::PrefixSet;
pub use counter::{Count, Counter, Peak};
pub use path::{Listed, Mark, PATH_MAX, Path, list_number};
pub use record::{ADDRESSES_MAX, Addresses, Event, EventRecord, EventView};
pub use ring::{Doorbell, EventCounts, EventReader, EventWriter, ring};

/// Things to tell about one query; a policy that tells more loses the rest, counted.
pub const EVENTS_MAX: usize = 8;
/// How often a worker tells of queries that were turned away, in milliseconds.
const REFUSED_EVERY_MS: u64 = 100;
/// Labels that the metrics of one process may have.
pub const LABELS_MAX: usize = 256;

/// What is to be told: the number of an effect, a log text, a set to learn for, or the recorder.
///
/// Numbers keep their meaning for as long as the process lives, as those of upstream groups do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u16);

/// The number of a metrics label, below [`LABELS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u16);

/// What one query has to tell when its reply is complete. Survives waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSet {
    ids: [u16; EVENTS_MAX],
    len: u8,
    is_urgent: bool,
    is_silent: bool,
}

impl EventSet {
    /// For work without a client: nothing is told of it.
    pub const SILENT: Self = Self { is_silent: true, ..Self::NONE };
    /// Nothing so far.
    pub const NONE: Self = Self { ids: [0; EVENTS_MAX], len: 0, is_urgent: false, is_silent: false };

    /// Adds one, if it is not there yet; false if there is no room.
    #[inline]
    pub fn add(&mut self, id: EventId, is_urgent: bool) -> bool {
        if self.is_silent {
            return true;
        }
        self.is_urgent |= is_urgent;
        let len = usize::from(self.len);
        if self.ids.iter().take(len).any(|&known| known == id.0) {
            return true;
        }
        match self.ids.get_mut(len) {
            Some(slot) => {
                *slot = id.0;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// Adds what another has to tell.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        for &id in other.ids() {
            self.add(EventId(id), other.is_urgent);
        }
    }

    /// Returns whether there is nothing to tell.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether it is of work without a client.
    #[inline]
    pub const fn is_silent(&self) -> bool {
        self.is_silent
    }

    #[inline]
    fn ids(&self) -> &[u16] {
        self.ids.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// What a worker's engine tells with; tells nobody until it is given a ring.
#[derive(Default)]
pub struct EventSink {
    writer: Option<EventWriter>,
    chance: u32,
    /// Queries that were turned away since one of them was told, and when that was.
    refused: u32,
    refused_told_ms: Option<u64>,
}

/// A query whose reply is complete.
pub struct EventContext<'a> {
    /// What is to be told of it.
    pub event_set: &'a EventSet,
    /// Its way through the policy, if that was noted.
    pub path: Option<&'a Path>,
    /// The number of the snapshot that answered it.
    pub snapshot: u32,
    /// Peers whose EDNS client subnet says whom they ask for.
    pub trusted_peers: &'a PrefixSet,
    /// When its reply was complete.
    pub now: Now,
    /// When it came, in microseconds of the same clock.
    pub began_us: u64,
    /// The query.
    pub query: &'a Query<'a>,
    /// Who sent it.
    pub client: &'a Client,
    /// What it was answered; nothing if it was dropped.
    pub answer: Option<AnswerFacts<'a>>,
    /// The server that answered it, if others were asked and it is known.
    pub upstream: Option<SocketAddr>,
}

/// A query that was turned away before the policy.
pub struct RefusedContext<'a> {
    /// Peers that may ask for somebody.
    pub trusted_peers: &'a PrefixSet,
    /// When.
    pub now: Now,
    /// The query.
    pub query: &'a Query<'a>,
    /// Who asked.
    pub client: &'a Client,
    /// What it was answered; nothing if it was dropped.
    pub rcode: Option<Rcode>,
    /// The number of the snapshot.
    pub snapshot: u32,
}

/// The answer of such a query.
pub struct AnswerFacts<'a> {
    /// Its rcode.
    pub rcode: Rcode,
    /// Records in its answer section.
    pub answers: u16,
    /// Its octets after the question, and perhaps more.
    pub body: &'a [u8],
    /// How many octets of them there are.
    pub octets: usize,
    /// Why it is a failure, if that is known.
    pub cause: Option<EdeCode>,
}

impl EventSink {
    /// Returns the ring.
    #[inline]
    pub const fn writer(&self) -> Option<&EventWriter> {
        self.writer.as_ref()
    }

    /// Tells through `writer` from now on.
    pub fn attach(&mut self, writer: EventWriter) {
        self.writer = Some(writer);
    }

    /// Returns a number that is different every time, for shares: evenly spread, not hard to guess.
    #[inline]
    pub const fn chance(&mut self) -> u32 {
        // A full-period generator (Numerical Recipes) whose upper half is mixed into the lower.
        self.chance = self.chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.chance ^ self.chance >> 16).wrapping_mul(0x9e37_79b1)
    }

    /// Tells of queries that were turned away: of one in a while, and for how many it stands, so
    /// that a flood of them is not a flood of records.
    #[cold]
    pub fn tell_refused(&mut self, id: EventId, refused: &RefusedContext<'_>) {
        self.refused = self.refused.saturating_add(1);
        let now_ms = refused.now.monotonic_ms;
        if self.refused_told_ms.is_some_and(|told| now_ms < told.saturating_add(REFUSED_EVERY_MS)) {
            return;
        }
        let Some(writer) = self.writer.as_mut() else { return };
        let mut event_set = EventSet::NONE;
        event_set.add(id, false);
        let question = &refused.query.question;
        writer.tell(&Event {
            event_set: &event_set,
            monotonic_ms: now_ms,
            waited_us: 0,
            octets: 0,
            client: refused.client.address_of(refused.query, refused.trusted_peers),
            port: refused.client.port,
            transport: refused.client.transport,
            qname: question.qname,
            qtype: question.qtype,
            qclass: question.qclass,
            listener: refused.client.listener,
            rcode: refused.rcode,
            cause: None,
            answers: 0,
            addresses: &Addresses::default(),
            snapshot: refused.snapshot,
            path: &Path::NONE,
            upstream: None,
            refused: self.refused,
        });
        (self.refused, self.refused_told_ms) = (0, Some(now_ms));
    }

    /// Tells what a query has to tell, if it has.
    pub fn tell(&mut self, told: &EventContext<'_>) {
        let Some(writer) = self.writer.as_mut().filter(|_| !told.event_set.is_empty()) else { return };
        let addresses = match &told.answer {
            Some(answer) => Addresses::read(answer.body, answer.answers),
            None => Addresses::default(),
        };
        let question = &told.query.question;
        writer.tell(&Event {
            event_set: told.event_set,
            monotonic_ms: told.now.monotonic_ms,
            waited_us: told.now.monotonic_us().saturating_sub(told.began_us),
            octets: told.answer.as_ref().map_or(0, |answer| {
                // OPT without options has eleven octets.
                let before = Header::LEN + told.query.question_bytes().len();
                let opt = if told.query.edns.is_some() { 11 } else { 0 };
                u16::try_from(before + answer.octets + opt).unwrap_or(u16::MAX)
            }),
            client: told.client.address_of(told.query, told.trusted_peers),
            port: told.client.port,
            transport: told.client.transport,
            qname: question.qname,
            qtype: question.qtype,
            qclass: question.qclass,
            listener: told.client.listener,
            rcode: told.answer.as_ref().map(|answer| answer.rcode),
            cause: told.answer.as_ref().and_then(|answer| answer.cause),
            answers: told.answer.as_ref().map_or(0, |answer| answer.answers),
            addresses: &addresses,
            snapshot: told.snapshot,
            path: told.path.unwrap_or(&Path::NONE),
            upstream: told.upstream,
            refused: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn event_set(ids: &[u16]) -> EventSet {
        let mut event_set = EventSet::default();
        for &id in ids {
            assert!(event_set.add(EventId(id), false));
        }
        event_set
    }

    #[test]
    fn more_than_there_is_room_for_is_left_out() {
        let mut full = event_set(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(full.add(EventId(3), false), "it is there already");
        assert!(!full.add(EventId(9), true));
        assert_eq!(full.ids(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
