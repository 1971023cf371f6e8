//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The ring that a worker's messages go through: one writer, one reader, no lock.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use crate::message::{Kind, Kinds, Peer, Tapped, to_bits};
use crate::reader::TapReader;

/// Words of a record before the octets of its message.
pub(crate) const FIXED_WORDS: usize = 5;
/// Octets of the longest message.
pub(crate) const OCTETS_MAX: usize = u16::MAX as usize;
/// The smallest ring has room for one of the longest records.
const WORDS_MIN: usize = (FIXED_WORDS + OCTETS_MAX.div_ceil(8)).next_power_of_two();
/// Octets before the question of a message.
const HEADER_OCTETS: usize = 12;
/// Octets of the longest question.
const QUESTION_OCTETS_MAX: usize = 255 + 4;

/// How many of the messages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// One of so many; zero and one: all.
    pub one_of: u32,
    /// What makes it hard to guess which.
    pub seed: u64,
}

/// Says for all rings which messages are wanted, and wakes their reader.
#[derive(Debug, Default)]
pub struct Tap {
    kinds: AtomicU8,
    one_of: AtomicU32,
    seed: AtomicU64,
    pub(crate) bell: Bell,
}

impl Tap {
    /// Takes messages of these kinds from now on. Rings that have no memory yet must be given it
    /// first ([`TapView::fill_in`](crate::TapView::fill_in)).
    pub fn open(&self, kinds: Kinds, sampling: Sampling) {
        self.one_of.store(sampling.one_of, Ordering::Relaxed);
        self.seed.store(sampling.seed, Ordering::Relaxed);
        self.kinds.store(kinds.bits(), Ordering::Release);
    }

    /// Takes no more messages.
    pub fn close(&self) {
        self.kinds.store(0, Ordering::Release);
    }

    /// Returns what wakes the reader.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }
}

/// Wakes the reader of some rings.
#[derive(Debug, Default)]
pub struct Bell {
    /// Whether the reader sleeps until there is a message.
    pub(crate) is_asleep: AtomicBool,
    /// Whether it sleeps, but not for long: a ring that is half full wakes it.
    pub(crate) is_napping: AtomicBool,
    sleeper: OnceLock<Thread>,
}

impl Bell {
    /// Says who is to be woken; only the first to say so is.
    pub fn belongs_to(&self, thread: Thread) {
        drop(self.sleeper.set(thread));
    }

    /// The reader is about to sleep for a moment; it must look into its rings once more after this.
    pub fn nap(&self) {
        self.is_napping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The reader is about to sleep until there is a message. It must look into its rings once
    /// more some milliseconds after this: a writer that has not seen this yet has its message
    /// visible by then.
    pub fn sleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
    }

    /// The reader is awake.
    pub fn wake(&self) {
        self.is_napping.store(false, Ordering::Relaxed);
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the reader, whatever it does.
    pub fn ring(&self) {
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.unpark();
        }
    }

    fn written(&self, is_half_full: bool) {
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::Relaxed) {
            self.ring();
        }
        if is_half_full {
            fence(Ordering::SeqCst);
            if self.is_napping.load(Ordering::Relaxed) && self.is_napping.swap(false, Ordering::Relaxed) {
                self.ring();
            }
        }
    }
}

/// What both ends of a ring share. A word is written by the writer before `tail` passes it and read
/// by the reader before `head` does.
pub(crate) struct Ring {
    /// There once messages were wanted.
    pub(crate) words: OnceLock<Box<[AtomicU64]>>,
    pub(crate) capacity: usize,
    /// Words written since the beginning.
    pub(crate) tail: Line,
    /// Words read since the beginning.
    pub(crate) head: Line,
    pub(crate) dropped: AtomicU64,
    tap: Arc<Tap>,
}

/// A counter on cache lines of its own: the two ends do not slow each other.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Line(pub(crate) AtomicU64);

/// Makes a ring of about `octets` octets, which has no memory yet.
// Once per worker.
pub fn ring(octets: usize, tap: Arc<Tap>) -> (TapWriter, TapReader) {
    let ring = Arc::new(Ring {
        words: OnceLock::new(),
        capacity: (octets / size_of::<u64>()).max(WORDS_MIN).next_power_of_two(),
        tail: Line::default(),
        head: Line::default(),
        dropped: AtomicU64::new(0),
        tap,
    });
    (TapWriter { ring: Arc::clone(&ring), tail: 0, head: 0 }, TapReader::new(ring))
}

/// The worker's end of a ring.
pub struct TapWriter {
    ring: Arc<Ring>,
    tail: u64,
    /// Where the reader was when we last looked.
    head: u64,
}

impl TapWriter {
    /// Returns whether messages of a kind are wanted.
    pub fn wants(&self, kind: Kind) -> bool {
        Kinds::of_bits(self.ring.tap.kinds.load(Ordering::Relaxed)).has(kind)
    }

    /// Copies a message into the ring if it is one of those that are wanted, or drops it and
    /// counts that.
    pub fn write(&mut self, message: &Tapped<'_>) {
        if !self.wants(message.kind) || !self.is_chosen(message) {
            return;
        }
        let Self { ring, tail, head } = self;
        // Whoever opened the tap has seen to the memory before.
        let Some(slots) = ring.words.get() else { return };
        let octets = message.octets.get(..OCTETS_MAX).unwrap_or(message.octets);
        let words = FIXED_WORDS + octets.len().div_ceil(8);
        if tail.wrapping_sub(*head) as usize + words > ring.capacity {
            *head = ring.head.0.load(Ordering::Acquire);
            if tail.wrapping_sub(*head) as usize + words > ring.capacity {
                // Nobody else writes it.
                ring.dropped.store(ring.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                ring.tap.bell.written(true);
                return;
            }
        }
        let at = *tail as usize & (ring.capacity - 1);
        let Some((begin, end)) = slots.split_at_checked(at) else { return };
        let mut places = end.iter().chain(begin);
        let mut put = |word: u64| {
            if let Some(place) = places.next() {
                place.store(word, Ordering::Relaxed);
            }
        };
        fixed(message, octets.len()).into_iter().for_each(&mut put);
        let (whole, rest) = octets.as_chunks::<8>();
        whole.iter().for_each(|chunk| put(u64::from_ne_bytes(*chunk)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last.iter_mut().zip(rest).for_each(|(room, octet)| *room = *octet);
            put(u64::from_ne_bytes(last));
        }
        *tail = tail.wrapping_add(words as u64);
        ring.tail.0.store(*tail, Ordering::Release);
        let half = ring.capacity / 2;
        let mut is_half_full = tail.wrapping_sub(*head) as usize > half;
        if is_half_full {
            // By what we last knew; a reader that keeps up is not to be woken for it.
            *head = ring.head.0.load(Ordering::Acquire);
            is_half_full = tail.wrapping_sub(*head) as usize > half;
        }
        ring.tap.bell.written(is_half_full);
    }

    /// Returns whether a message is one of the sample. A query and its reply both are or neither
    /// is: what they have in common decides.
    fn is_chosen(&self, message: &Tapped<'_>) -> bool {
        let one_of = self.ring.tap.one_of.load(Ordering::Relaxed);
        if one_of <= 1 {
            return true;
        }
        let seed = self.ring.tap.seed.load(Ordering::Relaxed);
        let port = message.peer.address.map_or(0, |address| u64::from(address.port()));
        let id = message.octets.first_chunk::<2>().map_or(0, |id| u64::from(u16::from_be_bytes(*id)));
        let mut hash = mix(seed ^ (id << 16 | port));
        let question = message.octets.get(HEADER_OCTETS..).unwrap_or(&[]);
        let name = question.iter().take(QUESTION_OCTETS_MAX).take_while(|octet| **octet != 0);
        // Replies repeat the name, perhaps in other letter case.
        hash = name.fold(hash, |hash, octet| {
            (hash ^ u64::from(octet.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
        });
        mix(hash).is_multiple_of(u64::from(one_of))
    }
}

/// The worker's end of a ring that several parts of the worker write to; nobody's end by default.
#[derive(Clone, Default)]
pub struct SharedTap(Option<Rc<RefCell<TapWriter>>>);

impl SharedTap {
    /// Writes through `writer`.
    // Once per worker.
    pub fn new(writer: TapWriter) -> Self {
        Self(Some(Rc::new(RefCell::new(writer))))
    }

    /// Does what [`TapWriter::write`] does with a message of a kind that is wanted; nothing is made
    /// of one that is not.
    pub fn write<'m>(&self, kind: Kind, message: impl FnOnce() -> Option<Tapped<'m>>) {
        let Some(writer) = &self.0 else { return };
        if let Ok(mut writer) = writer.try_borrow_mut()
            && writer.wants(kind)
            && let Some(message) = message()
        {
            writer.write(&message);
        }
    }
}

/// Spreads a number over all bits (the end of SplitMix64).
const fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Bits of the first word, from the lowest.
pub(crate) mod bits {
    pub(crate) const OCTETS: u32 = 0;
    pub(crate) const PORT: u32 = 16;
    pub(crate) const LISTENER: u32 = 32;
    pub(crate) const KIND: u32 = 48;
    pub(crate) const PROTOCOL: u32 = 52;
    pub(crate) const HAS_ADDRESS: u32 = 60;
    pub(crate) const IS_V4: u32 = 61;
    pub(crate) const HAS_QUERY_TIME: u32 = 62;
}

/// Returns the words of a record before its message.
fn fixed(message: &Tapped<'_>, octets: usize) -> [u64; FIXED_WORDS] {
    let Peer { address, protocol } = message.peer;
    let (bits, is_v4) = address.map_or((0, false), |address| to_bits(address.ip()));
    let port = address.map_or(0, |address| address.port());
    [
        (octets as u64) << bits::OCTETS
            | u64::from(port) << bits::PORT
            | u64::from(message.listener) << bits::LISTENER
            | (message.kind as u64) << bits::KIND
            | (protocol as u64) << bits::PROTOCOL
            | u64::from(address.is_some()) << bits::HAS_ADDRESS
            | u64::from(is_v4) << bits::IS_V4
            | u64::from(message.query_at_us.is_some()) << bits::HAS_QUERY_TIME,
        (bits >> 64) as u64,
        bits as u64,
        message.at_us,
        message.query_at_us.unwrap_or(0),
    ]
}
