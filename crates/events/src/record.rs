//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The record of one query: a score of words, which workers write and jobs read.

use std::iter::Chain;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::slice::Iter;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::{Class, EdeCode, Name, Rcode, Rtype};

use crate::path::{Listed, Mark, PATH_MAX, Path};
use crate::{EVENTS_MAX, EventId, EventSet};
use clients::client::{ListenerId, Transport};

/// Addresses of an answer that a record holds; more of them hardly ever fit a datagram.
pub const ADDRESSES_MAX: usize = 16;

/// Words before the parts of variable length.
const FIXED_WORDS: usize = 8;
/// Words of the server that answered.
const UPSTREAM_WORDS: usize = 3;
/// Octets of the longest name.
const NAME_OCTETS_MAX: usize = 255;
/// The longest record: what the first word says about it fits eight bits.
const RECORD_WORDS_MAX: usize = FIXED_WORDS
    + EVENTS_MAX.div_ceil(4)
    + NAME_OCTETS_MAX.div_ceil(8)
    + 2 * ADDRESSES_MAX
    + PATH_MAX.div_ceil(2)
    + 1
    + UPSTREAM_WORDS;
const _: () = assert!(RECORD_WORDS_MAX <= u8::MAX as usize);

/// The addresses of an answer, and how long they hold.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    list: [u128; ADDRESSES_MAX],
    len: u8,
    /// The smallest TTL among them, in seconds.
    pub ttl: u32,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { list: [0; ADDRESSES_MAX], len: 0, ttl: u32::MAX }
    }
}

impl Addresses {
    /// Reads the A and AAAA records among the first `count` records of `body`, which begins after
    /// the question.
    ///
    /// Stops at what it cannot read: the body of an answer was checked when it was made or
    /// received.
    pub fn read(body: &[u8], count: u16) -> Self {
        let mut found = Self::default();
        let mut rest = body;
        for _ in 0..count {
            let Some((rtype, ttl, rdata, after)) = record(rest) else { break };
            rest = after;
            let address = match (rtype, rdata.len()) {
                (Rtype::A, 4) => {
                    rdata.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).to_ipv6_mapped())
                }
                (Rtype::AAAA, 16) => rdata.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets)),
                _ => None,
            };
            let Some(address) = address else { continue };
            let Some(slot) = found.list.get_mut(usize::from(found.len)) else { break };
            *slot = address.to_bits();
            found.len += 1;
            found.ttl = found.ttl.min(ttl);
        }
        found
    }

    pub(super) fn list(&self) -> &[u128] {
        self.list.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// Splits a record off: its type, TTL and data, and what comes after it.
fn record(bytes: &[u8]) -> Option<(Rtype, u32, &[u8], &[u8])> {
    let mut rest = bytes;
    loop {
        let (&octet, after) = rest.split_first()?;
        match octet {
            0 => {
                rest = after;
                break;
            }
            0xc0.. => {
                rest = after.get(1..)?;
                break;
            }
            len => rest = after.get(usize::from(len)..)?,
        }
    }
    let (&[t0, t1, _, _, s0, s1, s2, s3, l0, l1], rest) = rest.split_first_chunk::<10>()?;
    let (rdata, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((Rtype(u16::from_be_bytes([t0, t1])), u32::from_be_bytes([s0, s1, s2, s3]), rdata, rest))
}

/// One query, as the worker tells it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What to tell.
    pub event_set: &'a EventSet,
    /// When the reply was complete, on the clock of
    /// [`Now::monotonic_ms`](clients::client::Now::monotonic_ms).
    pub monotonic_ms: u64,
    /// How long the query waited for others.
    pub waited_us: u64,
    /// Octets of the reply, without its EDNS options.
    pub octets: u16,
    /// Who asked, as policies see it: a trusted peer may have asked for somebody.
    pub client: IpAddr,
    /// From which port of the peer.
    pub port: u16,
    /// Over what.
    pub transport: Transport,
    /// Where it came to.
    pub listener: ListenerId,
    /// The name asked for, as the client wrote it.
    pub qname: Name<'a>,
    /// The type asked for.
    pub qtype: Rtype,
    /// The class asked for.
    pub qclass: Class,
    /// The reply's code; `None` when there was no reply.
    pub rcode: Option<Rcode>,
    /// Why it is a failure, if that is known.
    pub cause: Option<EdeCode>,
    /// Records in the reply's answer section.
    pub answers: u16,
    /// Its addresses.
    pub addresses: &'a Addresses,
    /// The number of the snapshot that the steps belong to.
    pub snapshot: u32,
    /// The way through the policy.
    pub path: &'a Path,
    /// The server that answered, if others were asked and it is known.
    pub upstream: Option<SocketAddr>,
    /// How many queries it stands for that were turned away before the policy; 0: it was let in.
    pub refused: u32,
}

/// Where the octets of the reply stand in the word that has how long the query waited.
const OCTETS_SHIFT: u32 = 48;
/// The longest time that has room beside them.
const WAITED_US_MAX: u64 = (1 << OCTETS_SHIFT) - 1;

/// Where the number of the listener stands in the word that has the moment.
const LISTENER_SHIFT: u32 = 40;
/// Where the code of the cause, and one more, stands there; zero: none.
const CAUSE_SHIFT: u32 = 56;
/// The latest moment that has room beside them: as long as thirty years fit.
const MONOTONIC_MS_MAX: u64 = (1 << LISTENER_SHIFT) - 1;

/// Where what came of the step that decided stands beside it, and that there is one.
const DECIDED_MARK_SHIFT: u32 = 16;
const HAS_DECIDED: u64 = 1 << 24;
/// Where the step stands there that looked at a list.
const LISTED_STEP_SHIFT: u32 = 32;

/// Bits of the first word, from the lowest.
mod bits {
    pub(super) const WORDS: u32 = 0;
    pub(super) const NAME: u32 = 8;
    pub(super) const ADDRESSES: u32 = 16;
    pub(super) const EVENT_SET: u32 = 24;
    pub(super) const PATH: u32 = 32;
    pub(super) const TRANSPORT: u32 = 40;
    pub(super) const LISTED: u32 = 44;
    pub(super) const UPSTREAM: u32 = 45;
    pub(super) const URGENT: u32 = 46;
    pub(super) const HAS_REPLY: u32 = 47;
    pub(super) const RCODE: u32 = 48;
    /// An rcode has twelve bits (RFC 6891 §6.1.3).
    pub(super) const RCODE_MAX: u64 = 0xfff;
    pub(super) const REFUSED: u32 = 63;
}

impl Event<'_> {
    /// Returns how many words the record takes.
    pub(super) fn words(&self) -> usize {
        FIXED_WORDS
            + self.event_set.ids().len().div_ceil(4)
            + self.qname.as_bytes().len().div_ceil(8)
            + 2 * self.addresses.list().len()
            + self.path.steps().len().div_ceil(2)
            + usize::from(self.path.listed().is_some())
            + if self.upstream.is_some() { UPSTREAM_WORDS } else { 0 }
    }

    /// Writes the record, which takes so many words.
    pub(super) fn write(&self, words: usize, mut slots: Slots<'_>) {
        let event = self;
        let name = event.qname.as_bytes();
        let (event_set, addresses, path) =
            (event.event_set.ids(), event.addresses.list(), event.path.steps());
        let transport = u64::from(event.transport.number());
        slots.put(
            (words as u64) << bits::WORDS
                | (name.len() as u64) << bits::NAME
                | (addresses.len() as u64) << bits::ADDRESSES
                | (event_set.len() as u64) << bits::EVENT_SET
                | (path.len() as u64) << bits::PATH
                | transport << bits::TRANSPORT
                | u64::from(event.path.listed().is_some()) << bits::LISTED
                | u64::from(event.upstream.is_some()) << bits::UPSTREAM
                | u64::from(event.event_set.is_urgent) << bits::URGENT
                | u64::from(event.rcode.is_some()) << bits::HAS_REPLY
                | (u64::from(event.rcode.map_or(0, |rcode| rcode.0)) & bits::RCODE_MAX) << bits::RCODE
                | u64::from(event.refused > 0) << bits::REFUSED,
        );
        // The codes that there are, are small.
        let cause = event.cause.and_then(|code| u8::try_from(code.0).ok()?.checked_add(1)).unwrap_or(0);
        slots.put(
            event.monotonic_ms & MONOTONIC_MS_MAX
                | u64::from(event.listener.0) << LISTENER_SHIFT
                | u64::from(cause) << CAUSE_SHIFT,
        );
        slots.put(
            u64::from(event.qtype.0)
                | u64::from(event.qclass.0) << 16
                | u64::from(event.port) << 32
                | u64::from(event.answers) << 48,
        );
        slots.put(u64::from(event.addresses.ttl) | u64::from(event.snapshot) << 32);
        slots.put_address(address_bits(event.client));
        // As long as nine years fit.
        // Nobody waited for what was turned away: their number takes the place.
        let waited_us = if event.refused > 0 { u64::from(event.refused) } else { event.waited_us };
        slots.put(waited_us & WAITED_US_MAX | u64::from(event.octets) << OCTETS_SHIFT);
        // The step that decided, and the one that looked at a list.
        let decided = event
            .path
            .decided()
            .map_or(0, |(step, mark)| u64::from(step) | (mark as u64) << DECIDED_MARK_SHIFT | HAS_DECIDED);
        let listed = event.path.listed();
        slots.put(decided | listed.map_or(0, |listed| u64::from(listed.step) << LISTED_STEP_SHIFT));
        slots.put_numbers(event_set);
        let (whole, rest) = name.as_chunks::<8>();
        for octets in whole {
            slots.put(u64::from_le_bytes(*octets));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(rest) {
                *to = *from;
            }
            slots.put(u64::from_le_bytes(word));
        }
        for address in addresses {
            slots.put_address(*address);
        }
        for steps in path.chunks(2) {
            let word = steps.iter().rev().fold(0, |word, &step| word << 32 | u64::from(step));
            slots.put(word);
        }
        if let Some(listed) = listed {
            slots.put(u64::from(listed.list) | u64::from(listed.line) << 32);
        }
        if let Some(upstream) = event.upstream {
            slots.put_address(address_bits(upstream.ip()));
            slots.put(u64::from(upstream.port()));
        }
    }
}

/// Where the words of a record go: from the writer's place to the end of the ring, and on from its
/// beginning.
pub(super) struct Slots<'a>(pub(super) Chain<Iter<'a, AtomicU64>, Iter<'a, AtomicU64>>);

impl Slots<'_> {
    fn put(&mut self, word: u64) {
        if let Some(slot) = self.0.next() {
            slot.store(word, Ordering::Relaxed);
        }
    }

    fn put_address(&mut self, bits: u128) {
        self.put(bits as u64);
        self.put((bits >> 64) as u64);
    }

    fn put_numbers(&mut self, numbers: &[u16]) {
        for numbers in numbers.chunks(4) {
            let word = numbers.iter().rev().fold(0, |word, &number| word << 16 | u64::from(number));
            self.put(word);
        }
    }
}

fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns how many words the record has whose first word this is.
pub(super) const fn words_of(first: u64) -> u64 {
    let words = first >> bits::WORDS & 0xff;
    if words == 0 { 1 } else { words }
}

/// A record that was read, as words: what readers hand on and keep.
#[derive(Clone, Default)]
pub struct EventRecord(pub(super) Vec<u64>);

impl EventRecord {
    /// Returns the words: what [`EventView::new`] reads.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// Returns what it says.
    pub fn view(&self) -> EventView<'_> {
        EventView { words: self.words() }
    }
}

/// Reads a record.
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    words: &'a [u64],
}

impl<'a> EventView<'a> {
    /// Returns the first record of `words` and the words after it; `None` at the end.
    pub fn split(words: &'a [u64]) -> Option<(Self, &'a [u64])> {
        let len = (words.first()? >> bits::WORDS & 0xff) as usize;
        let (words, rest) = words.split_at_checked(len.max(1))?;
        Some((Self { words }, rest))
    }

    /// Reads what [`EventRecord::words`] gave.
    pub const fn new(words: &'a [u64]) -> Self {
        Self { words }
    }

    fn word(self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    fn len(self, shift: u32) -> usize {
        (self.word(0) >> shift & 0xff) as usize
    }

    /// Returns what to tell.
    pub fn event_set(self) -> impl Iterator<Item = EventId> + use<'a> {
        self.numbers(FIXED_WORDS, self.len(bits::EVENT_SET)).map(EventId)
    }

    /// Returns whether somebody waits for it to be passed on.
    pub fn is_urgent(self) -> bool {
        self.word(0) >> bits::URGENT & 1 != 0
    }

    /// Returns when the reply was complete, on the workers' clock.
    pub fn monotonic_ms(self) -> u64 {
        self.word(1) & MONOTONIC_MS_MAX
    }

    /// Returns where the query came to.
    pub fn listener(self) -> ListenerId {
        ListenerId((self.word(1) >> LISTENER_SHIFT) as u16)
    }

    /// Returns why the answer is a failure, if that is known.
    pub fn cause(self) -> Option<EdeCode> {
        let code = (self.word(1) >> CAUSE_SHIFT) as u16;
        code.checked_sub(1).map(EdeCode)
    }

    /// Returns how long the query waited for others, in microseconds.
    pub fn waited_us(self) -> u64 {
        if self.is_refused() { 0 } else { self.word(6) & WAITED_US_MAX }
    }

    /// Returns for how many queries it stands that were turned away before the policy; 0: it was
    /// let in.
    pub fn refused(self) -> u32 {
        if self.is_refused() { self.word(6) as u32 } else { 0 }
    }

    fn is_refused(self) -> bool {
        self.word(0) >> bits::REFUSED & 1 != 0
    }

    /// Returns the octets of the reply, without its EDNS options.
    pub fn octets(self) -> u16 {
        (self.word(6) >> OCTETS_SHIFT) as u16
    }

    /// Returns how long the query waited for others, in whole milliseconds.
    pub fn waited_ms(self) -> u32 {
        u32::try_from(self.waited_us() / 1000).unwrap_or(u32::MAX)
    }

    /// Returns who asked.
    pub fn client(self) -> IpAddr {
        self.address(4)
    }

    /// Returns the client's port.
    pub fn port(self) -> u16 {
        (self.word(2) >> 32) as u16
    }

    /// Returns over what the query came.
    pub fn transport(self) -> Transport {
        Transport::of_number((self.word(0) >> bits::TRANSPORT & 0xf) as u8)
    }

    /// Returns the type asked for.
    pub fn qtype(self) -> Rtype {
        Rtype(self.word(2) as u16)
    }

    /// Returns the class asked for.
    pub fn qclass(self) -> Class {
        Class((self.word(2) >> 16) as u16)
    }

    /// Returns the reply's code; `None` when there was no reply.
    pub fn rcode(self) -> Option<Rcode> {
        let first = self.word(0);
        (first >> bits::HAS_REPLY & 1 != 0).then_some(Rcode((first >> bits::RCODE & bits::RCODE_MAX) as u16))
    }

    /// Returns the number of records in the answer section.
    pub fn answers(self) -> u16 {
        (self.word(2) >> 48) as u16
    }

    /// Returns the smallest TTL of the addresses, in seconds.
    pub fn ttl(self) -> u32 {
        self.word(3) as u32
    }

    /// Returns the number of the snapshot that the path belongs to.
    pub fn snapshot(self) -> u32 {
        (self.word(3) >> 32) as u32
    }

    fn name_at(self) -> usize {
        FIXED_WORDS + self.len(bits::EVENT_SET).div_ceil(4)
    }

    fn addresses_at(self) -> usize {
        self.name_at() + self.len(bits::NAME).div_ceil(8)
    }

    /// Writes the name asked for, in wire form, into `room`, and returns it.
    pub fn qname<'r>(self, room: &'r mut [u8; NAME_OCTETS_MAX + 1]) -> Name<'r> {
        let (chunks, _) = room.as_chunks_mut::<8>();
        for (offset, chunk) in chunks.iter_mut().enumerate().take(self.len(bits::NAME).div_ceil(8)) {
            *chunk = self.word(self.name_at() + offset).to_le_bytes();
        }
        let name = room.get(..self.len(bits::NAME)).unwrap_or(&[0]);
        Name::parse(name).map_or(Name::ROOT, |(name, _)| name)
    }

    /// Returns the addresses of the answer.
    pub fn addresses(self) -> impl Iterator<Item = IpAddr> + use<'a> {
        let at = self.addresses_at();
        (0..self.len(bits::ADDRESSES)).map(move |index| self.address(at + 2 * index))
    }

    /// Returns the way through the policy: steps, and what came of them.
    pub fn path(self) -> impl Iterator<Item = (u16, Mark)> + use<'a> {
        let at = self.addresses_at() + 2 * self.len(bits::ADDRESSES);
        (0..self.len(bits::PATH)).map(move |index| {
            let step = self.word(at + index / 2) >> (32 * (index % 2));
            (step as u16, Mark::ALL.get((step >> 16 & 0xff) as usize).copied().unwrap_or(Mark::Done))
        })
    }

    /// Returns the step that decided, and what came of it.
    pub fn decided(self) -> Option<(u16, Mark)> {
        let word = self.word(7);
        let mark = Mark::ALL.get((word >> DECIDED_MARK_SHIFT & 0xff) as usize).copied();
        Some((word as u16, mark?)).filter(|_| word & HAS_DECIDED != 0)
    }

    /// Returns the line of a list that the query fitted.
    pub fn listed(self) -> Option<Listed> {
        let word = self.word(self.behind_path());
        let step = (self.word(7) >> LISTED_STEP_SHIFT) as u16;
        (self.word(0) >> bits::LISTED & 1 != 0).then_some(Listed {
            step,
            list: word as u32,
            line: (word >> 32) as u32,
        })
    }

    /// Returns the server that answered.
    pub fn upstream(self) -> Option<SocketAddr> {
        if self.word(0) >> bits::UPSTREAM & 1 == 0 {
            return None;
        }
        let at = self.behind_path() + (self.word(0) >> bits::LISTED & 1) as usize;
        Some(SocketAddr::new(self.address(at), self.word(at + 2) as u16))
    }

    fn behind_path(self) -> usize {
        self.addresses_at() + 2 * self.len(bits::ADDRESSES) + self.len(bits::PATH).div_ceil(2)
    }

    fn address(self, at: usize) -> IpAddr {
        let bits = u128::from(self.word(at)) | u128::from(self.word(at + 1)) << 64;
        Ipv6Addr::from_bits(bits).to_canonical()
    }

    fn numbers(self, at: usize, count: usize) -> impl Iterator<Item = u16> + use<'a> {
        (0..count).map(move |index| (self.word(at + index / 4) >> (16 * (index % 4))) as u16)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An answer section of `count` records that point at the question's name.
    pub(in super::super) fn body(addresses: &[IpAddr], ttl: u32) -> Vec<u8> {
        let mut body = Vec::new();
        for address in addresses {
            let (rtype, rdata) = match address {
                IpAddr::V4(address) => (1_u16, address.octets().to_vec()),
                IpAddr::V6(address) => (28, address.octets().to_vec()),
            };
            body.extend([0xc0, 12]);
            body.extend(rtype.to_be_bytes());
            body.extend([0, 1]);
            body.extend(ttl.to_be_bytes());
            body.extend((rdata.len() as u16).to_be_bytes());
            body.extend(rdata);
        }
        body
    }

    #[test]
    fn more_addresses_than_there_is_room_for_are_left_out() {
        let addresses: Vec<IpAddr> = (0..20).map(|last| IpAddr::from([192, 0, 2, last])).collect();
        assert_eq!(Addresses::read(&body(&addresses, 1), 20).list().len(), ADDRESSES_MAX);
        assert_eq!(Addresses::read(&[0xc0, 12, 0, 1], 3).list().len(), 0, "cut off");
    }
}
