//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What a worker tells the jobs: one record for each query that reached a step such as `record` or `effect(…)`.
//!
//! Every worker has a ring of its own with one writer and one reader. Writing a record is a score of plain stores and
//! one release store; a record that finds no room is dropped and counted, so that no reader can slow a query.

use std::iter::Chain;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::slice::Iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use wire::{Class, Name, Query, Rcode, Rtype};

use crate::client::{Client, Now, Transport};
use crate::counters::Counter;
use crate::explain::Recorder;
use crate::finish::Answer;
use crate::matchers::{Facts, Matcher};
use crate::snapshot::Snapshot;
use crate::trace::{Note, StepOutcome, Tracer};

/// Things to tell about one query; a policy that tells more loses the rest, counted.
pub const TELLS_MAX: usize = 8;
/// Addresses of an answer that a record holds; more of them hardly ever fit a datagram.
pub const ADDRESSES_MAX: usize = 16;
/// Steps of the way through the policy that a record holds.
pub const PATH_MAX: usize = 32;
/// Labels that the metrics of one process may have.
pub const LABELS_MAX: usize = 256;

/// Words before the parts of variable length.
const FIXED_WORDS: usize = 6;
/// Octets of the longest name.
const NAME_OCTETS_MAX: usize = 255;
/// The longest record: what the first word says about it fits eight bits.
const RECORD_WORDS_MAX: usize = FIXED_WORDS
    + TELLS_MAX.div_ceil(4)
    + NAME_OCTETS_MAX.div_ceil(8)
    + 2 * ADDRESSES_MAX
    + PATH_MAX.div_ceil(2);
const _: () = assert!(RECORD_WORDS_MAX <= u8::MAX as usize);
/// The smallest ring has room for a few of the longest records.
const RING_WORDS_MIN: usize = 1024;

/// What is to be told: the number of an effect, a log text, a set to learn for, or the recorder.
///
/// Numbers keep their meaning for as long as the process lives, as those of upstream groups do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TellId(pub u16);

/// The number of a metrics label, below [`LABELS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u16);

/// What one query has to tell when its reply is complete. Survives waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tells {
    ids: [u16; TELLS_MAX],
    len: u8,
    is_urgent: bool,
    is_silent: bool,
}

impl Tells {
    /// For work without a client: nothing is told of it.
    pub(crate) const SILENT: Self = Self { is_silent: true, ..Self::NONE };
    /// Nothing so far.
    pub(crate) const NONE: Self = Self { ids: [0; TELLS_MAX], len: 0, is_urgent: false, is_silent: false };

    /// Adds one, if it is not there yet; false if there is no room.
    pub(crate) fn add(&mut self, id: TellId, is_urgent: bool) -> bool {
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
    pub(crate) fn merge(&mut self, other: &Self) {
        for &id in other.ids() {
            self.add(TellId(id), other.is_urgent);
        }
    }

    /// Returns whether there is nothing to tell.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn ids(&self) -> &[u16] {
        self.ids.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// The way a query took through the policy, step by step: what matched, what did not, what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    steps: [u32; PATH_MAX],
    len: u8,
}

/// What came of a step, in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It did what it does.
    Done,
    /// Its condition held.
    Held,
    /// Its condition did not hold.
    Failed,
    /// It found a fresh answer in a cache.
    Hit,
    /// It found a stale answer in a cache.
    Stale,
    /// It found nothing in a cache.
    Missed,
    /// It brought an answer.
    Answered,
    /// It ended the query.
    Ended,
    /// It waited.
    Waited,
}

impl Mark {
    const ALL: [Self; 9] = [
        Self::Done,
        Self::Held,
        Self::Failed,
        Self::Hit,
        Self::Stale,
        Self::Missed,
        Self::Answered,
        Self::Ended,
        Self::Waited,
    ];
}

impl Path {
    /// No step so far.
    const NONE: Self = Self { steps: [0; PATH_MAX], len: 0 };

    /// Adds a step; what comes after the last that fits is left out.
    pub fn push(&mut self, step: u16, mark: Mark) {
        if let Some(slot) = self.steps.get_mut(usize::from(self.len)) {
            *slot = u32::from(step) | (mark as u32) << 16;
            self.len += 1;
        }
    }

    fn steps(&self) -> &[u32] {
        self.steps.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl Tracer for Path {
    fn step(&mut self, at: u16, outcome: StepOutcome<'_>) {
        let mark = match outcome {
            StepOutcome::Done => Mark::Done,
            StepOutcome::Looked(Some(true)) => Mark::Hit,
            StepOutcome::Looked(Some(false)) => Mark::Stale,
            StepOutcome::Looked(None) => Mark::Missed,
            StepOutcome::Answered => Mark::Answered,
            StepOutcome::Ended => Mark::Ended,
            StepOutcome::Waits(_) => Mark::Waited,
        };
        self.push(at, mark);
    }

    fn test(&mut self, at: u16, _: &Matcher, _: Facts<'_>, holds: bool) {
        self.push(at, if holds { Mark::Held } else { Mark::Failed });
    }

    fn note(&mut self, _: Note) {}

    fn keep(&self) -> Option<Recorder> {
        None
    }

    fn path(&self) -> Option<&Path> {
        Some(self)
    }
}

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
    /// Reads the A and AAAA records among the first `count` records of `body`, which begins after the question.
    ///
    /// Stops at what it cannot read: the body of an answer was checked when it was made or received.
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

    fn list(&self) -> &[u128] {
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
    pub tells: &'a Tells,
    /// When the reply was complete, on the clock of [`Now::monotonic_ms`](crate::Now::monotonic_ms).
    pub monotonic_ms: u64,
    /// How long the query waited for others.
    pub waited_ms: u64,
    /// Who asked, as policies see it: a trusted peer may have asked for somebody.
    pub client: IpAddr,
    /// From which port of the peer.
    pub port: u16,
    /// Over what.
    pub transport: Transport,
    /// The name asked for, as the client wrote it.
    pub qname: Name<'a>,
    /// The type asked for.
    pub qtype: Rtype,
    /// The class asked for.
    pub qclass: Class,
    /// The reply's code; `None` when there was no reply.
    pub rcode: Option<Rcode>,
    /// Records in the reply's answer section.
    pub answers: u16,
    /// Its addresses.
    pub addresses: &'a Addresses,
    /// The number of the snapshot that the steps belong to.
    pub snapshot: u32,
    /// The way through the policy.
    pub path: &'a Path,
}

/// Bits of the first word, from the lowest.
mod bits {
    pub(super) const WORDS: u32 = 0;
    pub(super) const NAME: u32 = 8;
    pub(super) const ADDRESSES: u32 = 16;
    pub(super) const TELLS: u32 = 24;
    pub(super) const PATH: u32 = 32;
    pub(super) const TRANSPORT: u32 = 40;
    pub(super) const URGENT: u32 = 46;
    pub(super) const HAS_REPLY: u32 = 47;
    pub(super) const RCODE: u32 = 48;
    /// Bits of the second word that hold the time; the rest is how long the query waited.
    pub(super) const TIME: u32 = 40;
}

/// What a worker's engine tells with; tells nobody until it is given a ring.
#[derive(Default)]
pub struct Teller {
    writer: Option<EventWriter>,
    chance: u32,
}

/// A query whose reply is complete.
pub(crate) struct Told<'a> {
    pub(crate) tells: &'a Tells,
    pub(crate) path: Option<&'a Path>,
    /// What it was answered by.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) now: Now,
    pub(crate) began_ms: u64,
    pub(crate) query: &'a Query<'a>,
    pub(crate) client: &'a Client,
    /// The answer and its octets after the question.
    pub(crate) answer: Option<(&'a Answer, &'a [u8])>,
}

impl Teller {
    /// Returns the ring.
    pub(crate) const fn writer(&self) -> Option<&EventWriter> {
        self.writer.as_ref()
    }

    /// Tells through `writer` from now on.
    pub(crate) fn attach(&mut self, writer: EventWriter) {
        self.writer = Some(writer);
    }

    /// Returns a number that is different every time, for shares: evenly spread, not hard to guess.
    pub(crate) const fn chance(&mut self) -> u32 {
        // A full-period generator (Numerical Recipes) whose upper half is mixed into the lower.
        self.chance = self.chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.chance ^ self.chance >> 16).wrapping_mul(0x9e37_79b1)
    }

    /// Tells what a query has to tell, if it has.
    pub(crate) fn tell(&mut self, told: &Told<'_>) {
        let Some(writer) = self.writer.as_mut().filter(|_| !told.tells.is_empty()) else { return };
        let addresses = match told.answer {
            Some((answer, body)) => Addresses::read(body, answer.counts.first().copied().unwrap_or(0)),
            None => Addresses::default(),
        };
        let question = &told.query.question;
        writer.tell(&Event {
            tells: told.tells,
            monotonic_ms: told.now.monotonic_ms,
            waited_ms: told.now.monotonic_ms.saturating_sub(told.began_ms),
            client: told.client.address_of(told.query, &told.snapshot.trusted_peers),
            port: told.client.port,
            transport: told.client.transport,
            qname: question.qname,
            qtype: question.qtype,
            qclass: question.qclass,
            rcode: told.answer.map(|(answer, _)| answer.rcode),
            answers: told.answer.map_or(0, |(answer, _)| answer.counts.first().copied().unwrap_or(0)),
            addresses: &addresses,
            snapshot: told.snapshot.number,
            path: told.path.unwrap_or(&Path::NONE),
        });
    }
}

/// What both ends of a ring share. A word is written by the writer before `tail` passes it and read by the reader before
/// `head` does.
struct Ring {
    words: Box<[AtomicU64]>,
    /// Words written since the beginning.
    tail: Line,
    /// Words read since the beginning.
    head: Line,
    told: Counter,
    dropped: Counter,
    labels: Box<[Counter]>,
    doorbell: Arc<Doorbell>,
}

/// A counter on cache lines of its own: the two ends do not slow each other.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Wakes the reader of some rings.
#[derive(Debug, Default)]
pub struct Doorbell {
    is_armed: AtomicBool,
    sleeper: OnceLock<Thread>,
}

impl Doorbell {
    /// Says who is to be woken; only the first to say so is.
    pub fn belongs_to(&self, thread: Thread) {
        drop(self.sleeper.set(thread));
    }

    /// The reader is about to sleep; it must look into its rings once more after this.
    pub fn arm(&self) {
        self.is_armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The reader is awake.
    pub fn disarm(&self) {
        self.is_armed.store(false, Ordering::Relaxed);
    }

    /// Wakes the reader if it sleeps: a system call then, and otherwise one load.
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.is_armed.load(Ordering::Relaxed)
            && self.is_armed.swap(false, Ordering::Relaxed)
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
    }
}

/// Makes a ring of about `octets` octets.
// Once per worker.
pub fn ring(octets: usize, doorbell: Arc<Doorbell>) -> (EventWriter, EventReader) {
    let words = (octets / size_of::<u64>()).max(RING_WORDS_MIN).next_power_of_two();
    let ring = Arc::new(Ring {
        words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        tail: Line::default(),
        head: Line::default(),
        told: Counter::default(),
        dropped: Counter::default(),
        labels: (0..LABELS_MAX).map(|_| Counter::default()).collect(),
        doorbell,
    });
    (EventWriter { ring: Arc::clone(&ring), tail: 0, head: 0 }, EventReader { ring, head: 0 })
}

/// The worker's end of a ring.
pub struct EventWriter {
    ring: Arc<Ring>,
    tail: u64,
    /// Where the reader was when we last looked.
    head: u64,
}

impl EventWriter {
    /// Writes a record, or drops it and counts that.
    pub fn tell(&mut self, event: &Event<'_>) {
        let name = event.qname.as_bytes();
        let (tells, addresses, path) = (event.tells.ids(), event.addresses.list(), event.path.steps());
        let words = FIXED_WORDS
            + tells.len().div_ceil(4)
            + name.len().div_ceil(8)
            + 2 * addresses.len()
            + path.len().div_ceil(2);
        let capacity = self.ring.words.len();
        if self.used() + words > capacity {
            self.head = self.ring.head.0.load(Ordering::Acquire);
            if self.used() + words > capacity {
                self.ring.dropped.bump();
                self.ring.doorbell.ring();
                return;
            }
        }
        let transport = u64::from(event.transport.number());
        let at = self.tail as usize & capacity.wrapping_sub(1);
        let Some((begin, end)) = self.ring.words.split_at_checked(at) else { return };
        let mut slots = Slots(end.iter().chain(begin));
        slots.put(
            (words as u64) << bits::WORDS
                | (name.len() as u64) << bits::NAME
                | (addresses.len() as u64) << bits::ADDRESSES
                | (tells.len() as u64) << bits::TELLS
                | (path.len() as u64) << bits::PATH
                | transport << bits::TRANSPORT
                | u64::from(event.tells.is_urgent) << bits::URGENT
                | u64::from(event.rcode.is_some()) << bits::HAS_REPLY
                | u64::from(event.rcode.map_or(0, |rcode| rcode.0)) << bits::RCODE,
        );
        let waited = event.waited_ms.min((1 << (64 - bits::TIME)) - 1);
        slots.put(event.monotonic_ms & ((1 << bits::TIME) - 1) | waited << bits::TIME);
        slots.put(
            u64::from(event.qtype.0)
                | u64::from(event.qclass.0) << 16
                | u64::from(event.port) << 32
                | u64::from(event.answers) << 48,
        );
        slots.put(u64::from(event.addresses.ttl) | u64::from(event.snapshot) << 32);
        slots.put_address(address_bits(event.client));
        slots.put_numbers(tells);
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
        self.tail = self.tail.wrapping_add(words as u64);
        self.ring.tail.0.store(self.tail, Ordering::Release);
        self.ring.told.bump();
        if self.used() > capacity / 2 {
            // Half full by what we last knew; a reader that keeps up is not to be woken for it.
            self.head = self.ring.head.0.load(Ordering::Acquire);
        }
        if event.tells.is_urgent || self.used() > capacity / 2 {
            self.ring.doorbell.ring();
        }
    }

    /// Counts a query under a label.
    pub(crate) fn count(&self, label: LabelId) {
        if let Some(counter) = self.ring.labels.get(usize::from(label.0)) {
            counter.bump();
        }
    }

    /// Counts something that was to be told and cannot be.
    pub(crate) fn lose(&self) {
        self.ring.dropped.bump();
    }

    fn used(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }
}

/// Where the words of a record go: from the writer's place to the end of the ring, and on from its beginning.
struct Slots<'a>(Chain<Iter<'a, AtomicU64>, Iter<'a, AtomicU64>>);

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

/// The jobs' end of a ring.
pub struct EventReader {
    ring: Arc<Ring>,
    head: u64,
}

impl EventReader {
    /// Returns whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.ring.tail.0.load(Ordering::Acquire) == self.head
    }

    /// Replaces the content of `record` with the next one; false when there is none.
    ///
    /// Gives the room back at once: it may be called as long as records come.
    pub fn read(&mut self, record: &mut EventRecord) -> bool {
        if self.is_empty() {
            return false;
        }
        let first = self.word(self.head);
        let words = (first >> bits::WORDS & 0xff).max(1);
        record.len = 0;
        for offset in 0..words {
            let word = self.word(self.head.wrapping_add(offset));
            if let Some(slot) = record.words.get_mut(record.len) {
                *slot = word;
                record.len += 1;
            }
        }
        self.head = self.head.wrapping_add(words);
        self.ring.head.0.store(self.head, Ordering::Release);
        true
    }

    /// Returns how many records were written.
    pub fn told(&self) -> u64 {
        self.ring.told.read()
    }

    /// Returns how many found no room.
    pub fn dropped(&self) -> u64 {
        self.ring.dropped.read()
    }

    /// Returns a view of the ring's counts that outlives the reader's turn.
    pub fn counts(&self) -> EventCounts {
        EventCounts(Arc::clone(&self.ring))
    }

    fn word(&self, at: u64) -> u64 {
        let at = at as usize & self.ring.words.len().wrapping_sub(1);
        self.ring.words.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// What a ring counts, for whoever asks.
#[derive(Clone)]
pub struct EventCounts(Arc<Ring>);

impl EventCounts {
    /// Returns how many records were written.
    pub fn told(&self) -> u64 {
        self.0.told.read()
    }

    /// Returns how many found no room.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.read()
    }

    /// Returns how many queries were counted under a label.
    pub fn label(&self, label: LabelId) -> u64 {
        self.0.labels.get(usize::from(label.0)).map_or(0, Counter::read)
    }
}

/// A record that was read, as words: what readers hand on and keep.
#[derive(Clone)]
pub struct EventRecord {
    words: [u64; RECORD_WORDS_MAX],
    len: usize,
}

impl Default for EventRecord {
    fn default() -> Self {
        Self { words: [0; RECORD_WORDS_MAX], len: 0 }
    }
}

impl EventRecord {
    /// Returns the words: what [`EventView::new`] reads.
    pub fn words(&self) -> &[u64] {
        self.words.get(..self.len).unwrap_or(&[])
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
    pub fn tells(self) -> impl Iterator<Item = TellId> + use<'a> {
        self.numbers(FIXED_WORDS, self.len(bits::TELLS)).map(TellId)
    }

    /// Returns whether somebody waits for it to be passed on.
    pub fn is_urgent(self) -> bool {
        self.word(0) >> bits::URGENT & 1 != 0
    }

    /// Returns when the reply was complete, on the workers' clock.
    pub fn monotonic_ms(self) -> u64 {
        self.word(1) & ((1 << bits::TIME) - 1)
    }

    /// Returns how long the query waited for others.
    pub fn waited_ms(self) -> u32 {
        (self.word(1) >> bits::TIME) as u32
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
        (first >> bits::HAS_REPLY & 1 != 0).then_some(Rcode((first >> bits::RCODE) as u16))
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
        FIXED_WORDS + self.len(bits::TELLS).div_ceil(4)
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

    fn address(self, at: usize) -> IpAddr {
        let bits = u128::from(self.word(at)) | u128::from(self.word(at + 1)) << 64;
        Ipv6Addr::from_bits(bits).to_canonical()
    }

    fn numbers(self, at: usize, count: usize) -> impl Iterator<Item = u16> + use<'a> {
        (0..count).map(move |index| (self.word(at + index / 4) >> (16 * (index % 4))) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NameBuf;

    fn name(text: &str) -> NameBuf {
        text.parse().expect("a name")
    }

    fn tells(ids: &[u16]) -> Tells {
        let mut tells = Tells::default();
        for &id in ids {
            assert!(tells.add(TellId(id), false));
        }
        tells
    }

    /// An answer section of `count` records that point at the question's name.
    fn body(addresses: &[IpAddr], ttl: u32) -> Vec<u8> {
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

    fn tell(writer: &mut EventWriter, qname: &str, addresses: &[IpAddr], number: u64) {
        tell_with(writer, &tells(&[number as u16, 7]), qname, addresses, number);
    }

    fn tell_with(writer: &mut EventWriter, tells: &Tells, qname: &str, addresses: &[IpAddr], number: u64) {
        let (qname, addresses) = (name(qname), addresses.to_vec());
        let mut path = Path::default();
        (0..number as u16 % 40).for_each(|step| path.push(step, Mark::Hit));
        writer.tell(&Event {
            tells,
            monotonic_ms: number,
            waited_ms: number * 2,
            client: "192.0.2.1".parse().expect("an address"),
            port: 5353,
            transport: Transport::Tcp,
            qname: qname.as_name(),
            qtype: Rtype::AAAA,
            qclass: Class::IN,
            rcode: Some(Rcode::NXDOMAIN),
            answers: addresses.len() as u16,
            addresses: &Addresses::read(&body(&addresses, 60), addresses.len() as u16),
            snapshot: 3,
            path: &path,
        });
    }

    fn check(record: &EventRecord, qname: &str, addresses: &[IpAddr], number: u64) {
        let view = record.view();
        let mut room = [0; 256];
        assert!(view.qname(&mut room) == name(qname).as_name());
        assert_eq!(view.addresses().collect::<Vec<_>>(), addresses);
        let mut ids = vec![TellId(number as u16), TellId(7)];
        ids.dedup();
        assert_eq!(view.tells().collect::<Vec<_>>(), ids);
        assert_eq!((view.monotonic_ms(), u64::from(view.waited_ms())), (number, number * 2));
        assert_eq!((view.client().to_string(), view.port()), ("192.0.2.1".to_owned(), 5353));
        assert_eq!((view.transport(), view.qtype(), view.qclass()), (Transport::Tcp, Rtype::AAAA, Class::IN));
        assert_eq!((view.rcode(), view.snapshot()), (Some(Rcode::NXDOMAIN), 3));
        assert_eq!(view.ttl(), if addresses.is_empty() { u32::MAX } else { 60 });
        assert_eq!(view.path().count(), (number as usize % 40).min(PATH_MAX));
        assert!(view.path().enumerate().all(|(index, step)| step == (index as u16, Mark::Hit)));
    }

    #[test]
    fn what_is_told_is_read_in_order_and_whole() {
        let (mut writer, mut reader) = ring(0, Arc::default());
        let both: [IpAddr; 2] = ["192.0.2.7".parse().expect("v4"), "2001:db8::7".parse().expect("v6")];
        let long = format!("{0}.{0}.{0}.example.org", "x".repeat(63));
        let mut record = EventRecord::default();
        // Many times around the ring, at every alignment.
        for number in 0..2000 {
            let qname = ["example.org", ".", &long][number as usize % 3];
            let addresses = &both[..number as usize % 3];
            tell(&mut writer, qname, addresses, number);
            assert!(reader.read(&mut record));
            check(&record, qname, addresses, number);
            assert!(!reader.read(&mut record));
        }
        assert_eq!((reader.told(), reader.dropped()), (2000, 0));
    }

    #[test]
    fn a_full_ring_drops_the_newest_and_counts_them() {
        let (mut writer, mut reader) = ring(0, Arc::default());
        for number in 0..500 {
            tell(&mut writer, "example.org", &[], number);
        }
        let (told, dropped) = (reader.told(), reader.dropped());
        assert!(told > 50 && dropped > 50 && told + dropped == 500, "{told} {dropped}");
        let mut record = EventRecord::default();
        for number in 0..told {
            assert!(reader.read(&mut record));
            check(&record, "example.org", &[], number);
        }
        assert!(!reader.read(&mut record));
        tell(&mut writer, "example.org", &[], 1);
        assert!(reader.read(&mut record), "there is room again");
    }

    #[test]
    fn the_two_ends_may_be_threads() {
        let (mut writer, mut reader) = ring(0, Arc::default());
        const EVENTS: u64 = 20_000;
        let writing = std::thread::spawn(move || {
            for number in 0..EVENTS {
                tell(&mut writer, "www.example.org", &[], number);
            }
        });
        let mut record = EventRecord::default();
        let mut last = None;
        let mut read = 0;
        loop {
            let is_over = writing.is_finished();
            while reader.read(&mut record) {
                let number = record.view().monotonic_ms();
                assert!(last.is_none_or(|last| number > last));
                check(&record, "www.example.org", &[], number);
                last = Some(number);
                read += 1;
            }
            if is_over && reader.is_empty() {
                break;
            }
        }
        assert_eq!(read, reader.told());
        assert_eq!(read + reader.dropped(), EVENTS);
    }

    #[test]
    fn the_doorbell_wakes_only_who_sleeps() {
        let doorbell = Doorbell::default();
        doorbell.belongs_to(std::thread::current());
        doorbell.ring();
        doorbell.arm();
        doorbell.ring();
        assert!(!doorbell.is_armed.load(Ordering::Relaxed), "it was woken");
        // The token is there: this does not wait.
        std::thread::park();
    }

    #[test]
    fn a_reader_that_keeps_up_is_woken_for_what_is_urgent_only() {
        let doorbell = Arc::new(Doorbell::default());
        doorbell.belongs_to(std::thread::current());
        let (mut writer, mut reader) = ring(0, Arc::clone(&doorbell));
        let mut record = EventRecord::default();
        doorbell.arm();
        // Several times around the ring.
        for number in 0..500 {
            tell(&mut writer, "example.org", &[], number);
            assert!(reader.read(&mut record) && !record.view().is_urgent());
            assert!(doorbell.is_armed.load(Ordering::Relaxed), "woken for record {number}");
        }
        let mut urgent = tells(&[1]);
        urgent.is_urgent = true;
        tell_with(&mut writer, &urgent, "example.org", &[], 1);
        assert!(reader.read(&mut record) && record.view().is_urgent());
        assert!(!doorbell.is_armed.load(Ordering::Relaxed), "it was woken");
        doorbell.arm();
        for number in 0..500 {
            tell(&mut writer, "example.org", &[], number);
        }
        assert!(!doorbell.is_armed.load(Ordering::Relaxed), "it was woken before records are lost");
    }

    #[test]
    fn more_than_there_is_room_for_is_left_out() {
        let mut full = tells(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(full.add(TellId(3), false), "it is there already");
        assert!(!full.add(TellId(9), true));
        assert_eq!(full.ids(), [1, 2, 3, 4, 5, 6, 7, 8]);
        let addresses: Vec<IpAddr> = (0..20).map(|last| IpAddr::from([192, 0, 2, last])).collect();
        assert_eq!(Addresses::read(&body(&addresses, 1), 20).list().len(), ADDRESSES_MAX);
        assert_eq!(Addresses::read(&[0xc0, 12, 0, 1], 3).list().len(), 0, "cut off");
    }
}
